package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
)

// outbox is what one file of several has to say on both streams. It waits there until the
// files before have said theirs, and goes straight out from then on.
//
// It waits in memory, then in a temporary file. Where there is no more room for it, who has
// something to say waits.
type outbox struct {
	to     streams
	ctx    context.Context
	room   *room
	header *header
	turn   chan struct{} // closed when the turn has come

	mu    sync.Mutex
	open  bool     // the turn has come, and what waited is out
	began bool     // something was written to standard output
	kept  []byte   // pieces in memory: the stream, the length, the text
	file  *os.File // earlier pieces
	spilt int64    // bytes of these
	err   error    // that a stream returned
}

// room is what there is for all that waits at the same time.
type room struct{ memory, disk atomic.Int64 }

const (
	// keptMemory and keptDisk are how much waits at most in memory, and in temporary files. The
	// records of small captures fit in the one, those of a gigabyte or so in the other.
	keptMemory = 16 << 20
	keptDisk   = 2 << 30

	// The streams of a piece.
	toOut = 0
	toErr = 1
	// pieceHead is the bytes in front of the text of a piece.
	pieceHead = 5
)

func newRoom() *room {
	r := &room{}
	r.memory.Store(keptMemory)
	r.disk.Store(keptDisk)
	return r
}

// take takes some of the room, if there is enough of it.
func take(room *atomic.Int64, n int64) bool {
	if room.Add(-n) < 0 {
		room.Add(n)
		return false
	}
	return true
}

func newOutbox(ctx context.Context, to streams, r *room, h *header) *outbox {
	return &outbox{to: to, ctx: ctx, room: r, header: h, turn: make(chan struct{})}
}

// streams returns what the file is to be read with.
func (b *outbox) streams() streams {
	return streams{b.to.in, &boxed{b, toOut, b.to.out}, &boxed{b, toErr, b.to.err}}
}

// boxed is one stream of an outbox.
type boxed struct {
	box    *outbox
	stream byte
	w      io.Writer
}

// Fd returns the file descriptor of what it stands for.
func (w *boxed) Fd() uintptr {
	if f, ok := w.w.(descriptor); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// Write writes a text, or keeps it.
func (w *boxed) Write(text []byte) (int, error) {
	b := w.box
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open && !b.keep(w.stream, text) {
		b.mu.Unlock()
		err := b.wait()
		b.mu.Lock()
		if err != nil {
			return 0, err
		}
	}
	if !b.open {
		return len(text), nil
	}
	if b.err == nil {
		b.err = b.send(w.stream, text)
	}
	return len(text), b.err
}

// wait waits for the turn, or for the end of the run.
func (b *outbox) wait() error {
	select {
	case <-b.turn:
		return nil
	case <-b.ctx.Done():
		return context.Cause(b.ctx)
	}
}

// keep keeps a text. It returns false where there is no room for it.
func (b *outbox) keep(stream byte, text []byte) bool {
	before, n := len(b.kept), int64(pieceHead+len(text))
	fits := take(&b.room.memory, n)
	b.kept = append(b.kept, stream)
	b.kept = binary.BigEndian.AppendUint32(b.kept, uint32(len(text)))
	b.kept = append(b.kept, text...)
	if fits {
		return true
	}
	if !b.spill() {
		b.kept = b.kept[:before]
		return false
	}
	b.room.memory.Add(int64(before))
	return true
}

// spill moves the pieces in memory to the temporary file. It returns false where that is
// not possible.
func (b *outbox) spill() bool {
	n := int64(len(b.kept))
	if !take(&b.room.disk, n) {
		return false
	}
	var err error
	if b.file == nil {
		b.file, err = temporary()
	}
	if err == nil {
		_, err = b.file.WriteAt(b.kept, b.spilt)
	}
	if err != nil {
		b.room.disk.Add(n)
		return false
	}
	b.spilt += n
	b.kept = b.kept[:0]
	return true
}

// begin says that the turn has come: what waited goes out, and what follows straight after.
func (b *outbox) begin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file != nil {
		b.err = b.sendAll(bufio.NewReaderSize(io.NewSectionReader(b.file, 0, b.spilt), 64<<10))
	}
	if b.err == nil {
		b.err = b.sendAll(bytes.NewReader(b.kept))
	}
	b.discard()
	b.open = true
	close(b.turn)
	return b.err
}

// discard gives up what waits.
func (b *outbox) discard() {
	b.room.memory.Add(int64(len(b.kept)))
	b.room.disk.Add(b.spilt)
	discard(b.file)
	b.kept, b.file, b.spilt = nil, nil, 0
}

// sendAll writes pieces that have waited.
func (b *outbox) sendAll(pieces io.Reader) error {
	var head [pieceHead]byte
	var text []byte
	for {
		if _, err := io.ReadFull(pieces, head[:]); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		text = slices.Grow(text[:0], int(binary.BigEndian.Uint32(head[1:])))[:binary.BigEndian.Uint32(head[1:])]
		if _, err := io.ReadFull(pieces, text); err != nil {
			return err
		}
		if err := b.send(head[0], text); err != nil {
			return err
		}
	}
}

// send writes a text to its stream. Of several files, the first with something to say
// writes the header, which the others have, too.
func (b *outbox) send(stream byte, text []byte) error {
	if stream == toErr {
		_, err := b.to.err.Write(text)
		return err
	}
	if !b.began {
		b.began = true
		text = b.header.once(text)
	}
	_, err := b.to.out.Write(text)
	return err
}

// header is what the output begins with, whichever file comes first.
type header struct {
	text []byte
	said bool
}

// once takes the header off a text if it was written before.
func (h *header) once(text []byte) []byte {
	rest, ok := bytes.CutPrefix(text, h.text)
	if ok && h.said {
		return rest
	}
	h.said = h.said || ok
	return text
}
