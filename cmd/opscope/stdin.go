package main

import (
	"context"
	"io"
	"time"

	"opscope/dissect"
)

// standardInput reads standard input, which may be a pipe that brings something now and
// then. In a lull it writes out what is buffered, so that what has come is shown; and it
// does not wait beyond the end of its context.
type standardInput struct {
	ctx  context.Context
	out  dissect.Sink
	want chan struct{}
	got  chan chunk
	left chunk
}

// lull is how long nothing comes before what has come is written out. A pipe that is being
// filled, and a file, bring more sooner, so that a table of theirs has one header.
const lull = 200 * time.Millisecond

// chunk is what one read brought. Its data belongs to the reader again when more is
// wanted.
type chunk struct {
	data []byte
	err  error
}

// newStandardInput begins to read. The goroutine ends with the input, or is left in its
// last read when the context ends.
func newStandardInput(ctx context.Context, in io.Reader, out dissect.Sink) *standardInput {
	l := &standardInput{ctx: ctx, out: out, want: make(chan struct{}, 1), got: make(chan chunk, 1)}
	go func() {
		buf := make([]byte, 64<<10)
		for range l.want {
			n, err := in.Read(buf)
			l.got <- chunk{buf[:n], err}
			if err != nil {
				return
			}
		}
	}()
	return l
}

// Read returns the next bytes. After an error it returns that error again.
func (l *standardInput) Read(p []byte) (int, error) {
	if len(l.left.data) == 0 && l.left.err == nil {
		l.want <- struct{}{}
		if err := l.wait(); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.left.data)
	if l.left.data = l.left.data[n:]; len(l.left.data) > 0 {
		return n, nil
	}
	return n, l.left.err
}

// wait waits for what is wanted. It returns the error of the output.
func (l *standardInput) wait() error {
	for late := time.After(lull); ; late = nil {
		select {
		case l.left = <-l.got:
			return nil
		case <-l.ctx.Done():
			l.left.err = context.Cause(l.ctx)
			return nil
		case <-late:
			select {
			case l.left = <-l.got: // it was this process that was late
				return nil
			default:
			}
			if err := l.out.Flush(); err != nil {
				return err
			}
		}
	}
}
