// Package sink writes records: as lines of text for a person, and as NDJSON for
// a program, which Reader turns into records again.
//
// Everything that came off the wire is escaped in escape.go and, where the
// schema calls it secret, masked as dissect.Redactor says; no other file writes wire bytes.
// A sink keeps nothing of a record after Write returns, and allocates nothing
// per record once its buffers have grown.
package sink

import "io"

// flushAt is how much is gathered before it is written: large enough that the
// writes cost nothing, small enough for a reader at the other end of a pipe.
const flushAt = 64 << 10

// output gathers whole lines for w. The first write error sticks.
type output struct {
	w         io.Writer
	buf       []byte
	immediate bool // a line at a time, for a terminal or a live capture
	err       error
}

// done ends a record: it writes what was gathered when that is due.
func (o *output) done() error {
	if o.immediate || len(o.buf) >= flushAt {
		return o.Flush()
	}
	return o.err
}

// Flush writes out what is buffered. After a write error it writes no more and
// returns that error.
func (o *output) Flush() error {
	if len(o.buf) > 0 && o.err == nil {
		_, o.err = o.w.Write(o.buf)
	}
	o.buf = o.buf[:0]
	return o.err
}
