package capture

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"opscope/dissect"
)

// MaxPacket is the most bytes that one packet may hold, unless Limits say otherwise.
const MaxPacket = 256 << 10

// Interface is where packets were captured.
type Interface struct {
	Name    string // as the file has it; empty where it says nothing
	Link    dissect.LinkType
	SnapLen int // most bytes kept of a packet, 0 for all
	Lacks   int // decimal digits that its times lack of nanoseconds: 3 for microseconds
}

// File is an open capture file, a dissect.Source.
type File struct {
	name     string
	format   Format
	in       *window
	packets  packets // nil for NDJSON
	number   int
	warnings warnings
	limits   Limits
	closers  []io.Closer // innermost first
	err      error       // what ended the file, returned ever after
}

// packets reads the packets of one file format. It leaves the number to File.
type packets interface {
	next(p *dissect.Packet) error
	interfaces() []Interface
}

// Open opens the capture file at path.
func Open(path string) (*File, error) {
	return Limits{}.Open(path, nil)
}

// OpenReader reads a capture file from r, which Close does not close. The name stands in
// errors only. It blocks until the header of the file is there.
//
// A file that is no capture is an error that says what it looks like.
func OpenReader(name string, r io.Reader) (*File, error) {
	return Limits{}.OpenReader(name, r)
}

// open finds out what the file is, behind a compression where there is one.
func (f *File) open() error {
	if err := f.decompress(); err != nil {
		return err
	}
	format, err := recognise(f.in)
	if err != nil {
		return err
	}
	f.format = format
	switch format {
	case Pcap:
		f.packets, err = openPcap(f.in, &f.warnings, f.limits)
	case Pcapng:
		f.packets, err = openPcapng(f.in, &f.warnings, f.limits)
	}
	return err
}

// Format returns what the file turned out to be.
func (f *File) Format() Format { return f.format }

// Next fills p with the next packet; p.Data is valid until the next call. It
// returns io.EOF after the last packet of an intact file, and otherwise the
// error that ended the file, wrapped with the file's name. The same error is
// returned ever after.
func (f *File) Next(p *dissect.Packet) error {
	if f.err != nil {
		return f.err
	}
	if f.packets == nil {
		return f.named(errors.New("holds records, not packets"))
	}
	if err := f.packets.next(p); err != nil {
		f.err = f.named(err)
		return f.err
	}
	f.number++
	p.Number = f.number
	return nil
}

// Text returns the bytes of the file from its start, decompressed: how a file of
// format NDJSON is read.
func (f *File) Text() io.Reader { return f.in }

// Interfaces returns what the file has said so far about where its packets come
// from. Packet.Interface is an index into it; in pcapng it grows as the file is read.
func (f *File) Interfaces() []Interface {
	if f.packets == nil {
		return nil
	}
	return f.packets.interfaces()
}

// Warnings returns what was odd about the file so far and did not keep it from
// being read, each once.
func (f *File) Warnings() []string { return f.warnings }

// Offset returns how many bytes of the decompressed file were read and used.
func (f *File) Offset() int64 { return f.in.offset() }

// Close releases what Open opened.
func (f *File) Close() error {
	var err error
	for _, c := range f.closers {
		err = errors.Join(err, c.Close())
	}
	f.closers = nil
	return err
}

// named puts the name of the file in front of an error, except at the end.
func (f *File) named(err error) error {
	if err == io.EOF {
		return err
	}
	return fmt.Errorf("%s: %w", f.name, err)
}

// warnings are remarks on a file, each made once. Remarks are constants, so that
// making one costs nothing per packet.
type warnings []string

func (w *warnings) add(text string) {
	if !slices.Contains(*w, text) {
		*w = append(*w, text)
	}
}
