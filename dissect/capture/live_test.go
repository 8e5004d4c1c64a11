package capture

import (
	"context"
	"errors"
	"io"
	"testing"

	"opscope/dissect"
)

// TestLiveDrops: what finds no room in the queue is counted, and the next packet that does
// says how many are missing, those that the kernel dropped included.
func TestLiveDrops(t *testing.T) {
	l := &Live{queue: newQueue(4 * (queuedHeader + 64))}
	n := &listener{live: l}
	l.devices = []*listener{n}
	for i := range 10 {
		p := dissect.Packet{Data: make([]byte, 64), Length: 64}
		if i == 7 {
			p.Dropped = 100 // by the kernel
		}
		n.take(&p)
	}
	var p dissect.Packet
	for range 4 {
		if err := l.Next(&p); err != nil || p.Dropped != 0 {
			t.Fatalf("got %v, %d dropped before it", err, p.Dropped)
		}
	}
	if err := l.Next(&p); !errors.Is(err, dissect.ErrIdle) {
		t.Fatalf("got %v from an empty queue", err)
	}
	n.take(&dissect.Packet{Data: make([]byte, 64), Length: 64})
	if err := l.Next(&p); err != nil || p.Dropped != 106 || p.Number != 5 {
		t.Errorf("got %v, packet %d with %d dropped before it, want packet 5 with 106", err, p.Number, p.Dropped)
	}
	if c := l.Total(); c.Received != 11 || c.OwnDropped != 6 {
		t.Errorf("got %+v", c)
	}
}

// TestOpenLiveCannot: an interface that is not there is said, or awaited until the context
// ends.
func TestOpenLiveCannot(t *testing.T) {
	o := LiveOptions{Interfaces: []string{"no such interface"}}
	_, err := OpenLive(t.Context(), o)
	if err == nil {
		t.Fatal("it is open")
	}
	var missing *NoSuchInterface
	if !errors.As(err, &missing) {
		t.Skip("no live capture here: ", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	o.Wait, o.Warn = true, func(text string) {
		if text != "waiting for no such interface" {
			t.Errorf("it says %q", text)
		}
		cancel(io.ErrClosedPipe)
	}
	if _, err := OpenLive(ctx, o); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}
