package sink

import (
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"opscope/dissect"
)

// hand has a Hold hand so many records to a sink, of one packet's bytes, which the next packet
// overwrites.
func hand(count int, s dissect.Sink) error {
	h := dissect.NewHold(s, 0)
	packet := make([]byte, 9)
	for n := range count {
		if err := push(h, n, packet); err != nil {
			return err
		}
		clear(packet)
	}
	return nil
}

// push hands out record number n, from 0, whose bytes are put into a packet.
func push(h *dissect.Hold, n int, packet []byte) error {
	v, r := someViewpoint, h.Take()
	r.Direction, r.Transport, r.Time, r.Session, r.Flow, r.Src, r.Dst = v.Direction, v.Transport, v.Time, v.Session, v.Flow, v.Src, v.Dst
	r.Protocol, r.Message, r.Opcode, r.Envelope, r.Ack, r.Size = v.Protocol, v.Message, v.Opcode, v.Envelope, v.Ack, v.Size
	r.Body.Nodes = append(r.Body.Nodes, v.Body.Nodes...)
	r.Raw = packet[:copy(packet, v.Raw)]
	r.Raw[4] = byte(n)
	r.Body.Data, r.Rest = r.Raw, r.Raw[4:5]
	r.Packets = append(r.Packets, n)
	r.Note("retransmission", v.Notes[0].Text)
	return h.Push(r)
}

var someViewpoint = viewpoint()

// many is some more records than all batches hold.
const many = (batches + 1) * batchRecords

// What a sink writes beside is what it writes, whether a batch is full or not, with a flush
// in between, and in the same pieces.
func TestBesideWritesTheSame(t *testing.T) {
	for _, count := range []int{0, 1, 100, many, 3*many + 7} {
		var want, got pieces
		alone, beside := NewNDJSON(&want, NDJSONOptions{Raw: true}), NewNDJSON(&got, NDJSONOptions{Raw: true})
		b := NewBeside(beside)
		if err := errors.Join(hand(count, alone), alone.Flush(), hand(count/2, alone)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(hand(count, b), b.Flush(), hand(count/2, b), b.Close()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d records: %d pieces differ from %d", count, len(got), len(want))
		}
		if err := errors.Join(alone.Flush(), beside.Flush()); err != nil || !slices.Equal(got, want) {
			t.Errorf("%d records: what is left over differs, or %v", count, err)
		}
	}
}

// pieces are what was written at a time.
type pieces []string

func (p *pieces) Write(b []byte) (int, error) {
	*p = append(*p, string(b))
	return len(b), nil
}

// A record that no Hold hands over is valid during the call only: it is written then, behind
// those before.
func TestBesideWritesWhatCannotWaitAtOnce(t *testing.T) {
	var got numbers
	b := NewBeside(&got)
	for n := 1; n <= 5; n++ {
		b.Write(&dissect.Record{N: n})
		if len(got) != n {
			t.Fatalf("%v was written after %d records", got, n)
		}
	}
	got = nil
	h := dissect.NewHold(b, 0)
	packet := make([]byte, 9)
	push(h, 0, packet)
	push(h, 1, packet)
	if len(got) != 0 {
		t.Fatalf("%v was written already", got)
	}
	b.Write(&dissect.Record{N: 3})
	push(h, 2, packet) // whose number is 3, too
	if err := b.Close(); err != nil || !slices.Equal(got, numbers{1, 2, 3, 3}) {
		t.Errorf("got %v, %v", got, err)
	}
}

// numbers are those of the records that were written.
type numbers []int

func (s *numbers) Write(r *dissect.Record) error {
	*s = append(*s, r.N)
	return nil
}

func (s *numbers) Flush() error { return nil }

// refusing refuses records from some number on, and counts those.
type refusing struct{ from, given int }

var errRefused = errors.New("refused")

func (s *refusing) Write(r *dissect.Record) error {
	if r.N < s.from {
		return nil
	}
	s.given++
	return errRefused
}

func (s *refusing) Flush() error { return nil }

// The first error of the sink comes back, from a Write before long, or from Flush and Close,
// and stays; the sink is given nothing behind it.
func TestBesideStopsAtAnError(t *testing.T) {
	for _, from := range []int{1, many / 4, many + 5, 3*many - 1} {
		s := &refusing{from: from}
		b := NewBeside(s)
		taken := &counted{Sink: b}
		err := hand(3*many, taken)
		if !errors.Is(err, errRefused) && (err != nil || from+many < 3*many) || taken.count > from+many {
			t.Errorf("from record %d: Write returned %v after %d records", from, err, taken.count)
		}
		if f, c := b.Flush(), b.Close(); !errors.Is(f, errRefused) || !errors.Is(c, errRefused) {
			t.Errorf("from record %d: Flush returned %v, Close %v", from, f, c)
		}
		if s.given != 1 {
			t.Errorf("from record %d: the sink was given %d records, want the first", from, s.given)
		}
	}
}

// counted counts records on their way to another sink.
type counted struct {
	dissect.Sink
	count int
}

func (c *counted) Write(r *dissect.Record) error {
	c.count++
	return c.Sink.Write(r)
}

// A Beside begins no goroutine for a few records, and leaves none.
func TestBesideLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	b := NewBeside(NewNDJSON(io.Discard, NDJSONOptions{}))
	if err := errors.Join(hand(100, b), b.Flush()); err != nil {
		t.Fatal(err)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines for 100 records, want none", n-before)
	}
	if err := errors.Join(hand(many, b), b.Close()); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<16)
			t.Fatalf("goroutines are left:\n%s", strings.TrimSpace(string(stacks[:runtime.Stack(stacks, true)])))
		}
	}
}

func TestBesideAllocatesNothingOnceWarm(t *testing.T) {
	b := NewBeside(NewNDJSON(io.Discard, NDJSONOptions{}))
	h, packet := dissect.NewHold(b, 0), make([]byte, 9)
	n := 0
	write := func() {
		for range many {
			if err := push(h, n, packet); err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	write()
	if got := testing.AllocsPerRun(20, write); got != 0 {
		t.Errorf("got %v allocations for %d records, want none", got, many)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// broken panics at a record.
type broken struct{ left int }

func (k *broken) Flush() error { return nil }

func (k *broken) Write(*dissect.Record) error {
	if k.left--; k.left < 0 {
		panic("at this record")
	}
	return nil
}

// A panic of the sink is an error, wherever it happens: in the goroutine nobody could catch it.
func TestBesideTellsOfAPanic(t *testing.T) {
	for _, at := range []int{0, 3 * batchRecords / 2} {
		b := NewBeside(&broken{at})
		err := errors.Join(hand(many, b), b.Close())
		if err == nil || !strings.Contains(err.Error(), "a defect in what writes the output: at this record") {
			t.Errorf("at record %d: got %v", at, err)
		}
	}
}
