package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"

	"opscope/dissect"
	"opscope/dissect/capture"
	"opscope/dissect/sink"
	"opscope/schema"
)

// saving writes the packets of the records that are shown to a capture file, with what the
// records say as comments. It is the sink of the run, in front of the one that prints.
//
// Where all records are shown, the other segments of their connections are written, too:
// acknowledgements and handshakes, without which the file would decode to other records.
//
// A record may come long after its packets, and make them to be masked. So the packets are
// taken from the file once it has been read: it is read again.
type saving struct {
	out      *capture.Writer
	file     *os.File     // nil for standard output
	print    dissect.Sink // nil to print nothing
	text     *sink.Text   // writes to said
	said     bytes.Buffer
	mentions *mentions
	declared int // interfaces of the files before
	written  int // packets

	link    dissect.LinkDecoder
	headers dissect.Headers
	all     bool                // all records are shown
	dialled map[connection]bool // by those of this file

	masked  bool
	blanks  *dissect.Blanks
	masking *dissect.Masking // of the file that is read

	source *os.File // a copy of the file that is read, where that can be read only once
	pipe   *os.File // that file, unless it is standard input
}

// connection is the ends of a TCP connection, of either side first.
type connection struct{ src, dst netip.AddrPort }

// save decodes files, and writes the packets of what is shown.
func (d *decoding) save(ctx context.Context, files []string, stdout io.Writer) error {
	s := &saving{print: d.out, masked: d.mask, all: d.count == 0 && d.wanted == nil && d.packetFilter == "", link: dissect.LinkDecoder{Owned: d.owned, Tunnels: d.limits.run.Tunnels}}
	if d.quiet || d.tables || d.write == "-" && !d.print {
		s.print = nil
	}
	s.blanks = dissect.NewBlanks(d.privacy())
	text, err := d.textOptions()
	if err != nil {
		return err
	}
	text.Width, text.Color, text.Timeless, text.Immediate = -1, false, true, true
	s.text = sink.NewText(&s.said, text)
	out, err := s.create(d.write, files, stdout)
	if err != nil {
		return err
	}
	if s.out, err = capture.NewWriter(out, "opscope "+version()); err != nil {
		return s.failed(err)
	}
	if !d.mask {
		complain(d.err, d.write+" holds the packets as they were, passwords and tokens too; --mask masks them")
	}
	d.saving = s
	d.writeTo(s)
	failed := d.files(ctx, files)
	if err := s.close(); err != nil {
		return s.failed(err)
	}
	return failed
}

// create opens the file that is written, which must be none of those that are read.
func (s *saving) create(name string, files []string, stdout io.Writer) (io.Writer, error) {
	if name == "-" {
		if isTerminal(stdout) {
			return nil, usage("-w - writes a capture file, and standard output is a terminal\ntry: -w FILE")
		}
		return stdout, nil
	}
	if there, err := os.Stat(name); err == nil {
		for _, f := range files {
			if read, err := os.Stat(f); err == nil && os.SameFile(there, read) && there.Mode().IsRegular() {
				return nil, usage("-w %s: that file is read", name)
			}
		}
	}
	var err error
	if s.file, err = os.Create(name); err != nil {
		return nil, s.failed(err)
	}
	return s.file, nil
}

func (s *saving) failed(err error) error { return &exitError{exitInput, fmt.Errorf("-w: %w", err)} }

func (s *saving) close() error {
	err := s.out.Flush()
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
	}
	return err
}

// owned reports whether a UDP port belongs to a protocol, as the run has it.
func (d *decoding) owned(port uint16) bool {
	for _, a := range d.assigned {
		if a.Transport == schema.UDP && a.Port == port {
			return true
		}
	}
	for _, p := range d.schemas {
		for _, x := range p.Ports {
			if x.Transport == schema.UDP && x.Number == int(port) {
				return true
			}
		}
	}
	return false
}

// begin makes ready for the next file.
func (s *saving) begin() {
	s.mentions, s.dialled = &mentions{}, map[connection]bool{}
	if s.masked {
		s.masking = dissect.NewMasking(s.link)
	}
}

// keep has a file that can be read only once copied as it is read.
func (s *saving) keep(in io.Reader) (io.Reader, error) {
	var err error
	if s.source, err = temporary(); err != nil {
		return nil, err
	}
	return io.TeeReader(in, s.source), nil
}

// see takes each record of the file, also one that is not shown: its packets may be those of
// others.
func (s *saving) see(r *dissect.Record) {
	if s.masked {
		s.masking.Add(r, s.blanks.Of(r))
	}
}

// Write takes a record that is shown: it is told of at its last packet.
func (s *saving) Write(r *dissect.Record) error {
	s.said.Reset()
	if err := s.text.Write(r); err != nil {
		return err
	}
	last := 0
	for _, n := range r.Packets {
		last = max(last, n)
	}
	if r.Type == dissect.GapRecord {
		last = max(last, r.Before)
	}
	for _, n := range r.Packets {
		if n != last {
			if err := s.mentions.add(n, ""); err != nil {
				return err
			}
		}
	}
	if last > 0 {
		if err := s.mentions.add(last, string(bytes.TrimSpace(s.said.Bytes()))); err != nil {
			return err
		}
	}
	if s.all && r.Transport == schema.TCP {
		s.dialled[connection{r.Src, r.Dst}] = true
	}
	if s.print == nil {
		return nil
	}
	return s.print.Write(r)
}

// Flush writes out what is printed.
func (s *saving) Flush() error {
	if s.print == nil {
		return nil
	}
	return s.print.Flush()
}

// end writes the packets of a file of which so many have been read.
func (s *saving) end(open func() (*capture.File, error), name string, packets int) error {
	defer func() {
		s.mentions.close()
		discard(s.source)
		if s.pipe != nil {
			s.pipe.Close()
		}
		s.source, s.pipe = nil, nil
	}()
	if s.mentions.last == 0 {
		return nil
	}
	if s.masked {
		if err := s.each(open, func(_ *capture.File, p *dissect.Packet) (bool, error) {
			s.masking.Survey(p)
			return true, nil
		}); err != nil {
			return err
		}
	}
	return s.copy(open, name, packets)
}

// each calls a function for each packet of a file, as long as it returns true. That the file
// is damaged, has been told.
func (s *saving) each(open func() (*capture.File, error), do func(*capture.File, *dissect.Packet) (bool, error)) error {
	f, err := open()
	if err != nil {
		return err
	}
	defer f.Close()
	var p dissect.Packet
	for f.Next(&p) == nil {
		if more, err := do(f, &p); err != nil || !more {
			return err
		}
	}
	return nil
}

// copy writes the packets that were mentioned, and those of the same connections.
func (s *saving) copy(open func() (*capture.File, error), name string, packets int) error {
	h, err := s.mentions.sorted()
	if err != nil {
		return err
	}
	next, said, err := h.take(nil)
	if err != nil {
		return err
	}
	declared := 0
	err = s.each(open, func(f *capture.File, p *dissect.Packet) (bool, error) {
		for _, i := range f.Interfaces()[declared:] {
			declared++
			if err := s.out.Interface(i, ""); err != nil {
				return false, err
			}
		}
		if p.Number != next {
			if s.belongs(p) {
				err = s.packet(p, nil, name)
			}
			return p.Number < packets, err
		}
		if err := s.packet(p, said, name); err != nil {
			return false, err
		}
		next, said, err = h.take(said[:0])
		return (next > 0 || s.all) && p.Number < packets, err
	})
	s.declared += declared
	if err == nil && next > 0 {
		err = fmt.Errorf("%s: packet %d is gone: the file has changed while it was read", name, next)
	}
	return err
}

// belongs reports whether a packet is of a connection whose records are all shown.
func (s *saving) belongs(p *dissect.Packet) bool {
	if len(s.dialled) == 0 || s.link.Decode(&s.headers, p) != nil || s.headers.Content != dissect.TCPContent {
		return false
	}
	src, dst := s.headers.Source(), s.headers.Destination()
	return s.dialled[connection{src, dst}] || s.dialled[connection{dst, src}]
}

// packet writes one packet. Comments name packets by their numbers in the file that was
// read; one that has another number now says so.
func (s *saving) packet(p *dissect.Packet, said []string, name string) error {
	if s.written++; s.written != p.Number {
		said = append([]string{"packet " + strconv.Itoa(p.Number) + " of " + sink.Escape(filepath.Base(name))}, said...)
	}
	if s.masked {
		p.Data = s.masking.Mask(p)
	}
	p.Interface += s.declared
	return s.out.Packet(p, said...)
}

// readOnce reports whether a file gives what it holds but once, as a pipe does.
func readOnce(name string) bool {
	about, err := os.Stat(name)
	return err == nil && !about.Mode().IsRegular() && !about.IsDir()
}

// openKept opens a file that gives what it holds but once, of which a copy is kept.
func (d *decoding) openKept(name string, in io.Reader) (*capture.File, error) {
	in, err := d.saving.keep(in)
	if err != nil {
		return nil, d.saving.failed(err)
	}
	return d.limits.capture.OpenReader(name, in)
}

// reopen opens a file that has been read once more.
func (d *decoding) reopen(name string) (*capture.File, error) {
	s := d.saving.source
	if s == nil {
		return d.limits.capture.Open(name, nil)
	}
	about, err := s.Stat()
	if err != nil {
		return nil, err
	}
	return d.limits.capture.OpenReader(name, io.NewSectionReader(s, 0, about.Size()))
}

// packetsOf returns how many packets of a file were read.
func packetsOf(r *dissect.Result) int {
	if r == nil {
		return 0
	}
	return int(r.Summary.Packets)
}
