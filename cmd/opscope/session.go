package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"opscope/dissect"
)

// sessionAndFiles takes the arguments of a command about one session: its number, then
// the files; where it captures no file, and session 1 unless another is named.
func sessionAndFiles(command string, args, read []string, live bool) (session int, files []string, err error) {
	if len(args) == 0 && live {
		return 1, nil, nil
	}
	if len(args) == 0 {
		return 0, nil, usage("no session to %s\ntry: opscope %s 1 FILE", command, command)
	}
	session, err = strconv.Atoi(args[0])
	if err != nil || session < 1 {
		file := args[0] // most likely, unless it is a number
		if err == nil {
			file = "FILE"
		}
		return 0, nil, usage("%q is no number of a session, which comes before the files\ntry: opscope %s 1 %s", args[0], command, file)
	}
	if files = append(read, args[1:]...); len(files) == 0 && !live {
		return 0, nil, usage("no file to read\ntry: opscope %s %d FILE", command, session)
	}
	return session, files, nil
}

// sessionOptions are what a command about one session was asked for.
type sessionOptions struct {
	decodeOptions
	liveOptions
}

// show shows one session of files, or of what is captured. Beside the decoding it is given
// may be set up as it needs.
func (o *sessionOptions) show(c *cobra.Command, s streams, args []string, setUp func(*decoding) error) error {
	live := len(o.interfaces) > 0
	o.holdSet = c.Flags().Changed("hold")
	session, files, err := sessionAndFiles(c.Name(), args, o.read, live)
	if err == nil {
		err = o.liveOptions.fit(c.Flags(), files)
	}
	if err != nil {
		return err
	}
	var x *sniffing
	if live {
		if x, err = newSniffing(&s, &o.liveOptions, o.packetFilter); err != nil {
			return err
		}
	}
	d, err := newDecoding(s, &o.decodeOptions)
	if err == nil && setUp != nil {
		err = setUp(d)
	}
	switch {
	case err != nil:
		return err
	case live:
		x.decoding = d
		return x.session(c.Context(), session)
	}
	return d.session(c.Context(), session, d.inputs(files))
}

// oneSession picks the records of one session out of files, and takes note of the
// sessions there are.
type oneSession struct {
	number int
	found  bool
	file   int // of the last record
	last   int // the highest number in it
	listed []foundSession
	more   int // that are not listed
}

// foundSession is one session of a file.
type foundSession struct {
	file, number   int
	protocol       string
	client, server netip.AddrPort
}

// maxListed is how many sessions a message names.
const maxListed = 20

// wants reports whether a record is of the session.
func (o *oneSession) wants(r *dissect.Record) bool {
	if r.File != o.file {
		o.file, o.last = r.File, 0
	}
	if r.Session > o.last { // they count up
		o.last = r.Session
		o.list(r)
	}
	o.found = o.found || r.Session == o.number
	return r.Session == o.number
}

// list takes note of the session that a record is the first of.
func (o *oneSession) list(r *dissect.Record) {
	if len(o.listed) == maxListed {
		o.more++
		return
	}
	s := foundSession{file: r.File, number: r.Session, protocol: strings.Clone(r.Protocol), client: r.Client, server: r.Server}
	if r.Type != dissect.SessionRecord {
		s.client, s.server = r.Src, r.Dst
		if r.Direction == dissect.ServerToClient {
			s.client, s.server = r.Dst, r.Src
		}
	}
	o.listed = append(o.listed, s)
}

// missing returns the error of files without the session: which ones they have.
func (o *oneSession) missing(files []string) error {
	if len(o.listed) == 0 {
		return usage("no session %d, and no other one", o.number)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "no session %d; there are:", o.number)
	for _, s := range o.listed {
		b.WriteString("\n  ")
		if len(files) > 1 {
			b.WriteString(files[s.file] + ": ")
		}
		fmt.Fprintf(&b, "%d  %s, %v -> %v", s.number, s.protocol, s.client, s.server)
	}
	if o.more > 0 {
		fmt.Fprintf(&b, "\n  and %d more", o.more)
	}
	return usage("%s", b.String())
}

// session captures until it is told to end, and shows what one session says as it
// does.
func (x *sniffing) session(ctx context.Context, number int) error {
	d := x.decoding
	one := oneSession{number: number}
	d.wants = one.wants
	result, err := x.capture(ctx)
	if result == nil {
		if errors.Is(err, errInterrupted) {
			return nil
		}
		return err
	}
	if e := d.out.Flush(); e != nil {
		return outputError(e)
	}
	x.tell()
	if one.found || err != nil {
		return err
	}
	return one.missing(nil)
}

// session reads files, and shows what one session of theirs says.
func (d *decoding) session(ctx context.Context, number int, files []string) error {
	one := oneSession{number: number}
	d.wants = one.wants
	err := d.files(ctx, files)
	if one.found || ctx.Err() != nil {
		return err
	}
	var e *exitError
	if errors.As(err, &e) && e.Error() != "" {
		return err
	}
	missing := one.missing(files)
	if err != nil { // what could not be read may have had it
		return &exitError{e.code, missing}
	}
	return missing
}
