package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

// roomFor makes room of so many bytes in memory and on disk.
func roomFor(memory, disk int64) *room {
	r := &room{}
	r.memory.Store(memory)
	r.disk.Store(disk)
	return r
}

// TestOutbox has a file say more and more before its turn: it is kept in memory, then on
// disk, and comes out in its order, on both streams, whatever has room.
func TestOutbox(t *testing.T) {
	for name, r := range map[string]*room{
		"in memory": roomFor(1<<20, 0), "on disk": roomFor(0, 1<<20), "in both": roomFor(150, 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			memory, disk := r.memory.Load(), r.disk.Load()
			var out, messages, want, wantMessages bytes.Buffer
			b := newOutbox(t.Context(), streams{nil, &out, &messages}, r, &header{})
			s := b.streams()
			say := func() {
				for _, text := range []string{"", "one", strings.Repeat("two", 50), "three"} {
					want.WriteString(text)
					wantMessages.WriteString(text)
					for _, w := range []interface{ Write([]byte) (int, error) }{s.out, s.err} {
						if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
							t.Fatal(n, err)
						}
					}
				}
			}
			say()
			if out.Len()+messages.Len() > 0 {
				t.Fatal("it speaks before its turn")
			}
			if err := b.begin(); err != nil {
				t.Fatal(err)
			}
			say()
			if out.String() != want.String() || messages.String() != wantMessages.String() {
				t.Errorf("got %q and %q, want %q", out.String(), messages.String(), want.String())
			}
			if r.memory.Load() != memory || r.disk.Load() != disk {
				t.Errorf("it gives back room for %d and %d bytes, want %d and %d", r.memory.Load(), r.disk.Load(), memory, disk)
			}
		})
	}
}

// TestOutboxWithoutRoom has a file say more than there is room for: it waits for its turn, or
// for the end of the run.
func TestOutboxWithoutRoom(t *testing.T) {
	for _, ends := range []bool{false, true} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var out bytes.Buffer
		b := newOutbox(ctx, streams{nil, &out, &out}, roomFor(20, 20), &header{})
		w := b.streams().out
		if _, err := w.Write([]byte("0123456789")); err != nil {
			t.Fatal(err)
		}
		said := make(chan error, 1)
		go func() {
			_, err := w.Write([]byte("and what does not fit"))
			said <- err
		}()
		select {
		case <-said:
			t.Fatal("it does not wait")
		case <-time.After(10 * time.Millisecond): // if it is slow to begin, this tests less
		}
		if ends {
			cancel(errInterrupted)
			if err := <-said; err != errInterrupted {
				t.Errorf("the run ends: got %v", err)
			}
			b.discard()
			continue
		}
		if err := b.begin(); err != nil {
			t.Fatal(err)
		}
		if err := <-said; err != nil || out.String() != "0123456789and what does not fit" {
			t.Errorf("its turn comes: got %q, %v", out.String(), err)
		}
		cancel(nil)
	}
}

// TestOutboxHeader has one header for all files, that of the first that has one.
func TestOutboxHeader(t *testing.T) {
	var out bytes.Buffer
	h := &header{text: []byte("a,b\r\n")}
	for _, said := range [][]string{{}, {"a,b\r\n1,2\r\n", "a,b\r\n"}, {"a,b\r\n3,4\r\n"}, {}, {"a,b\r\n", "5,6\r\n"}} {
		b := newOutbox(t.Context(), streams{nil, &out, nil}, newRoom(), h)
		for i, text := range said {
			if i == 1 {
				_ = b.begin()
			}
			if _, err := b.streams().out.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		if len(said) < 2 {
			_ = b.begin()
		}
	}
	if want := "a,b\r\n1,2\r\na,b\r\n3,4\r\n5,6\r\n"; out.String() != want { // a row may look like it
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
