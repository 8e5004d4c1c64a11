package capture

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"opscope/dissect"
)

// Rotation says when a recording goes on in another file; each zero means never.
type Rotation struct {
	Bytes   int64
	Time    time.Duration
	Packets int
	Files   int // most files kept; the oldest is deleted. 0 keeps all
}

// every reports whether there is more than one file.
func (r Rotation) every() bool { return r.Bytes > 0 || r.Time > 0 || r.Packets > 0 }

// Recording is the files that live packets are written to. With a rotation their names
// have a number and a time, as with tshark: game_00001_20261130201502.pcapng.
type Recording struct {
	path        string
	application string
	rotation    Rotation
	stop        Rotation
	out         io.Writer // for "-"; files otherwise
	interfaces  []Interface
	filters     []string

	writer  *Writer
	file    *os.File
	names   []string // of the files that are there
	files   int      // ever
	begun   time.Time
	packets int  // in this file
	all     int  // packets, in all files
	over    bool // as many files as were asked for are full
}

// NewRecording returns a recording into files at path, or into out for "-". It is full after
// the bytes of a file, the packets of all, or the files that stop has. Nothing is opened before Begin.
func NewRecording(path string, out io.Writer, application string, r, stop Rotation) (*Recording, error) {
	switch {
	case path == "-" && r.every():
		return nil, errors.New("standard output has no next file")
	case r.Files > 0 && !r.every():
		return nil, errors.New("files:N wants something after which the next file comes, such as filesize:100000")
	}
	return &Recording{path: path, application: application, rotation: r, stop: stop, out: out}, nil
}

// Begin opens the first file, for packets of these interfaces, each with the filter of
// its capture.
func (r *Recording) Begin(interfaces []Interface, filters []string, now time.Time) error {
	r.interfaces, r.filters = interfaces, filters
	return r.open(now)
}

// Write adds a packet, unless the recording is full.
func (r *Recording) Write(p *dissect.Packet, counters func(int) Counters) error {
	if r.due(p) && !r.full() {
		if r.stop.Files > 0 && r.files >= r.stop.Files {
			r.over = true
			return nil
		}
		if err := r.Close(counters); err != nil {
			return err
		}
		if err := r.open(p.Time); err != nil {
			return err
		}
	}
	if r.full() {
		return nil
	}
	r.packets++
	r.all++
	return failed(r.writer.Packet(p, ""))
}

// full reports whether no packet will be written any more.
func (r *Recording) full() bool {
	return r.over || r.stop.Bytes > 0 && r.writer.Size() >= r.stop.Bytes || r.stop.Packets > 0 && r.all >= r.stop.Packets
}

// failed says what an error is about.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrRecording, err)
}

// due reports whether a packet belongs into the next file.
func (r *Recording) due(p *dissect.Packet) bool {
	l := r.rotation
	return r.packets > 0 && (l.Bytes > 0 && r.writer.Size() >= l.Bytes || l.Packets > 0 && r.packets >= l.Packets ||
		l.Time > 0 && p.Time.Sub(r.begun) >= l.Time)
}

// Flush writes out what is buffered.
func (r *Recording) Flush() error { return failed(r.writer.Flush()) }

// Close ends the file, with what has become of the packets of each interface.
func (r *Recording) Close(counters func(int) Counters) error {
	now := time.Now()
	var errs []error
	for i := range r.interfaces {
		errs = append(errs, r.writer.Statistics(i, counters(i), now))
	}
	errs = append(errs, r.writer.Flush())
	if r.file != nil {
		errs = append(errs, r.file.Close())
		r.file = nil
	}
	return failed(errors.Join(errs...))
}

func (r *Recording) open(now time.Time) error {
	r.begun, r.packets = now, 0
	r.files++
	out := r.out
	if r.path != "-" {
		name := r.path
		if r.rotation.every() {
			ext := filepath.Ext(name)
			name = fmt.Sprintf("%s_%05d_%s%s", strings.TrimSuffix(name, ext), r.files, now.Format("20060102150405"), ext)
		}
		f, err := os.Create(name)
		if err != nil {
			return failed(err)
		}
		r.file, out = f, f
		if r.names = append(r.names, name); r.rotation.Files > 0 && len(r.names) > r.rotation.Files {
			if err := os.Remove(r.names[0]); err != nil && !errors.Is(err, os.ErrNotExist) {
				return failed(err)
			}
			r.names = r.names[1:]
		}
	}
	w, err := NewWriter(out, r.application)
	if err != nil {
		return failed(err)
	}
	r.writer = w
	for i, f := range r.interfaces {
		if err := w.Interface(f, r.filters[i]); err != nil {
			return failed(err)
		}
	}
	return failed(w.Flush())
}
