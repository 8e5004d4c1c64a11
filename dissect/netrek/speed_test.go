package netrek_test

import (
	"context"
	"io"
	"runtime"
	"testing"
	"time"

	"opscope/dissect"
	"opscope/dissect/scene"
)

// counter is a sink that counts.
type counter struct{ records, errors int }

func (c *counter) Write(r *dissect.Record) error {
	if r.Type == dissect.FrameRecord {
		c.records++
	}
	if r.Err != nil {
		c.errors++
	}
	return nil
}

func (c *counter) Flush() error { return nil }

// traffic is an endless game: an opening, then rounds of segments and datagrams
// whose sequences rise.
type traffic struct {
	opening dissect.Source
	round   []dissect.Packet
	turn    int
	next    int
	number  int
	now     time.Time
	bytes   int64
	until   int64
	grows   [2]int // what TCP sequences rise by in a round, by side
	buf     []byte
}

func newTraffic(until int64) *traffic {
	g := onUDP()
	t := &traffic{opening: g.Source(), until: until}
	round := &scene.Scene{}
	tcp, udp := *g.tcp, *g.udp
	tcp.Ends, udp.Ends = round.Over(tcp.Ends), round.Over(udp.Ends)
	start := tcp.Next
	for range 4 {
		tcp.Send(fromS, player, kills, mask, player, player[:5])
		tcp.Send(fromS, player[5:], you(), pstatus)
		udp.Send(fromS, sequence(0), player, kills, player, big11, you())
		udp.Send(fromC, speed)
		tcp.Send(fromC, direction, shield, speed)
	}
	t.round = round.Packets()
	for side := range t.grows {
		t.grows[side] = int(tcp.Next[side] - start[side])
	}
	return t
}

const (
	tcpSequence = 14 + 20 + 4
	udpSequence = 14 + 20 + 8 + 2
)

func (s *traffic) Next(p *dissect.Packet) error {
	if s.opening != nil {
		if err := s.opening.Next(p); err != io.EOF {
			s.number, s.now = p.Number, p.Time
			return err
		}
		s.opening = nil
	}
	if s.bytes >= s.until && s.next == 0 {
		return io.EOF
	}
	data := s.round[s.next].Data
	s.buf = append(s.buf[:0], data...)
	switch server := data[14+12+3] == 1; {
	case data[23] == 6:
		side := fromC
		if server {
			side = fromS
		}
		rise(s.buf[tcpSequence:tcpSequence+4], s.turn*s.grows[side])
	case server:
		rise(s.buf[udpSequence:udpSequence+2], s.turn*4+s.next/5+1)
	}
	if s.next++; s.next == len(s.round) {
		s.next, s.turn = 0, s.turn+1
	}
	s.number++
	s.now = s.now.Add(time.Millisecond)
	*p = dissect.Packet{Number: s.number, Time: s.now, Digits: 6, Data: s.buf, Length: len(s.buf), Link: 1}
	s.bytes += int64(len(s.buf))
	return nil
}

// rise adds to a big-endian number.
func rise(b []byte, n int) {
	for i := len(b) - 1; i >= 0; i-- {
		n += int(b[i])
		b[i] = byte(n)
		n >>= 8
	}
}

func run(tb testing.TB, sink dissect.Sink, src dissect.Source) *dissect.Result {
	tb.Helper()
	r, err := dissect.NewPipeline(sink, known).Run(context.Background(), src)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

type sourceFunc func(p *dissect.Packet) error

func (f sourceFunc) Next(p *dissect.Packet) error { return f(p) }

// After its first rounds a session decodes packets without allocating.
func TestAllocations(t *testing.T) {
	const warm, more = 4 << 20, 8 << 20
	var before, after runtime.MemStats
	var c counter
	var records int
	src := newTraffic(more)
	r := run(t, &c, sourceFunc(func(p *dissect.Packet) error {
		if src.bytes >= warm && records == 0 {
			records = c.records
			runtime.ReadMemStats(&before)
		}
		return src.Next(p)
	}))
	runtime.ReadMemStats(&after)
	n, of := after.Mallocs-before.Mallocs, c.records-records
	t.Logf("%d allocations for %d records, notes %v", n, of, r.Summary.Notes)
	if n > uint64(of)/1000 || c.errors > 0 {
		t.Errorf("got %d allocations for %d records and %d errors, want none per record", n, of, c.errors)
	}
}

func BenchmarkNetrek(b *testing.B) {
	const size = 16 << 20
	b.SetBytes(size)
	records := 0
	for b.Loop() {
		var c counter
		run(b, &c, newTraffic(size))
		records += c.records
	}
	b.ReportMetric(float64(records)/b.Elapsed().Seconds()/1e6, "Mrec/s")
}
