package capture

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"opscope/schema/wire"
)

// windowSize is the size of the buffer. Reading is fastest from 256 KiB to 1 MiB:
// less costs system calls, more falls out of the processor's cache.
const windowSize = 1 << 20

// firstWindow is its size until a file has filled it: most captures that somebody looks at
// are small, and what is allocated at the start brings the first collection of garbage on.
const firstWindow = 64 << 10

// window is the part of a file that is in memory: one buffer, filled by read and
// walked in place. What it hands out is valid until the next call of a method.
type window struct {
	r          io.Reader
	buf        []byte
	start, end int   // the bytes not yet used are buf[start:end]
	base       int64 // offset of buf[0] in the file
	err        error // what ended reading; io.EOF at the end of the file
}

func newWindow(r io.Reader) *window {
	return &window{r: r, buf: make([]byte, firstWindow)}
}

// offset returns the position in the file of the next byte.
func (w *window) offset() int64 { return w.base + int64(w.start) }

// buffered returns the bytes that are there without reading.
func (w *window) buffered() []byte { return w.buf[w.start:w.end] }

// peek returns the next n bytes without using them up, and fewer only where the
// file ends or reading fails. It never waits for more than n bytes.
func (w *window) peek(n int) []byte {
	if w.end-w.start < n {
		w.fill(n)
	}
	return w.buf[w.start:min(w.start+n, w.end)]
}

// use moves over n bytes that peek has returned.
func (w *window) use(n int) { w.start += n }

// skip moves over n bytes, in memory or not, and returns how many there were.
func (w *window) skip(n int64) int64 {
	left := n
	for left > 0 && len(w.peek(1)) > 0 {
		step := min(left, int64(w.end-w.start))
		w.use(int(step))
		left -= step
	}
	return n - left
}

// fill moves the unused bytes to the front of the buffer, enlarges it if it has
// to or was full, and reads until n bytes are there or reading ends.
func (w *window) fill(n int) {
	dst := w.buf
	if n > len(dst) || w.end == len(dst) && len(dst) < windowSize {
		dst = make([]byte, max(n, windowSize))
	}
	copy(dst, w.buf[w.start:w.end])
	w.base += int64(w.start)
	w.buf, w.start, w.end = dst, 0, w.end-w.start

	for idle := 0; w.end < n && w.err == nil; idle++ {
		var got int
		got, w.err = w.r.Read(w.buf[w.end:])
		w.end += got
		switch {
		case got > 0:
			idle = 0
		case idle > 100 && w.err == nil: // as bufio counts
			w.err = io.ErrNoProgress
		}
	}
}

// Read makes a window the reader of its own file: the bytes in memory first.
func (w *window) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(w.peek(1)) == 0 {
		return 0, w.err
	}
	n := copy(p, w.buffered())
	w.use(n)
	return n, nil
}

// atEnd reports whether the file ended properly, with nothing left.
func (w *window) atEnd() bool { return w.start == w.end && w.err == io.EOF }

// short returns the error for a peek that gave less than it was asked for. What
// was wanted begins skip bytes from here and is n bytes long.
func (w *window) short(layer, path string, skip int, n int64) error {
	if w.err != io.EOF && !errors.Is(w.err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("read at byte %d: %w", w.base+int64(w.end), w.err)
	}
	left := max(w.end-w.start-skip, 0)
	return &wire.Error{
		Layer:  layer,
		Path:   path,
		Offset: int(w.offset()) + min(skip, w.end-w.start),
		Want:   size(n),
		Got:    size(int64(left)) + " left",
		Kind:   wire.Truncated,
	}
}

// size writes a number of bytes in words.
func size(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}
