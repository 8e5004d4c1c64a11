package scene

import (
	"context"
	"encoding/binary"
	"io"
	"runtime"
	"testing"
	"time"

	"opscope/dissect"
)

// Endless is a capture as long as one likes: an opening, then the packets of a round again
// and again, whose TCP sequences rise as if the round went on. It makes them as they are
// asked for, in one buffer.
type Endless struct {
	// Change alters what a packet of the round carries; at is its index, turn how many
	// rounds were before. Nil leaves all alike.
	Change func(packet []byte, at, turn int)

	opening dissect.Source
	round   []dissect.Packet
	rises   []int // what the TCP sequence of each rises by in a round; 0 for datagrams
	next    int
	turn    int
	number  int
	now     time.Time
	bytes   int64 // of the rounds so far
	until   int64
	buf     []byte
}

// The places in a packet of IPv4 on Ethernet, without options of IP.
const (
	atProtocol = 14 + 9
	atEnds     = 14 + 12 // both addresses and both ports
	endsLength = 12
	atTCP      = 14 + 20
	atSequence = atTCP + 4
)

// NewEndless returns a capture that ends behind the round in which it has so many bytes.
func NewEndless(opening, round *Scene, until int64) *Endless {
	e := &Endless{opening: opening.Source(), round: round.Packets(), until: until}
	sent := map[string]int{}
	for _, p := range e.round {
		if p.Data[atProtocol] == 6 {
			sent[endsOf(p.Data)] += len(p.Data) - atTCP - int(p.Data[atTCP+12]>>4)*4
		}
	}
	for _, p := range e.round {
		e.rises = append(e.rises, sent[endsOf(p.Data)])
	}
	return e
}

func endsOf(packet []byte) string { return string(packet[atEnds : atEnds+endsLength]) }

// Next makes the next packet.
func (e *Endless) Next(p *dissect.Packet) error {
	if e.opening != nil {
		if err := e.opening.Next(p); err != io.EOF {
			e.number, e.now = p.Number, p.Time
			return err
		}
		e.opening = nil
	}
	if e.bytes >= e.until && e.next == 0 { // a whole round, so that nothing is left open
		return io.EOF
	}
	e.buf = append(e.buf[:0], e.round[e.next].Data...)
	if n := e.rises[e.next]; n > 0 {
		at := e.buf[atSequence:]
		binary.BigEndian.PutUint32(at, binary.BigEndian.Uint32(at)+uint32(n*e.turn))
	}
	if e.Change != nil {
		e.Change(e.buf, e.next, e.turn)
	}
	if e.next++; e.next == len(e.round) {
		e.next, e.turn = 0, e.turn+1
	}
	e.number++
	e.now = e.now.Add(time.Millisecond)
	*p = dissect.Packet{Number: e.number, Time: e.now, Digits: 6, Data: e.buf, Length: len(e.buf), Link: 1}
	e.bytes += int64(len(e.buf))
	return nil
}

// Counter is a sink that counts.
type Counter struct{ Records, Errors, Notes int }

// Write counts a record.
func (c *Counter) Write(r *dissect.Record) error {
	if r.Type == dissect.FrameRecord {
		c.Records++
	}
	if r.Err != nil {
		c.Errors++
	}
	c.Notes += len(r.Notes)
	return nil
}

// Flush does nothing.
func (*Counter) Flush() error { return nil }

// warmed notes the allocations so far once a capture has brought so many bytes.
type warmed struct {
	*Endless
	warm   int64
	number int // of the packet before which that was
	before runtime.MemStats
}

func (w *warmed) Next(p *dissect.Packet) error {
	if w.number == 0 && w.bytes >= w.warm {
		w.number = w.Endless.number
		runtime.ReadMemStats(&w.before)
	}
	return w.Endless.Next(p)
}

// Spares wants a pipeline to take packets without allocating, once it has taken half of the
// capture. It returns what the whole gave.
func Spares(t testing.TB, o dissect.Options, to dissect.Sink, src *Endless) *dissect.Result {
	t.Helper()
	w := &warmed{Endless: src, warm: src.until / 2}
	r, err := dissect.NewPipeline(to, o).Run(context.Background(), w)
	if err != nil {
		t.Fatal(err)
	}
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	n, packets := after.Mallocs-w.before.Mallocs, src.number-w.number
	t.Logf("%d allocations for %d packets; records %v, notes %v", n, packets, r.Summary.Records, r.Summary.Notes)
	if w.number == 0 || n > uint64(packets)/1000 {
		t.Errorf("got %d allocations for %d packets, want none per packet", n, packets)
	}
	return r
}

// Benchmark measures a pipeline without a sink to speak of.
func Benchmark(b *testing.B, o dissect.Options, traffic func(until int64) *Endless) {
	const size = 16 << 20
	b.SetBytes(size)
	records := 0
	for b.Loop() {
		var c Counter
		if _, err := dissect.NewPipeline(&c, o).Run(context.Background(), traffic(size)); err != nil {
			b.Fatal(err)
		}
		records += c.Records
	}
	b.ReportMetric(float64(records)/b.Elapsed().Seconds()/1e6, "Mrec/s")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(records), "ns/rec")
}
