package lotr2_test

import (
	"context"
	"io"
	"runtime"
	"testing"
	"time"

	"opscope/dissect"
	"opscope/dissect/internal/scene"
)

// counter is a sink that counts.
type counter struct{ records, errors int }

func (c *counter) Write(r *dissect.Record) error {
	if r.Type == dissect.FrameRecord {
		c.records++
	}
	if r.Err != nil || len(r.Notes) > 1 {
		c.errors++
	}
	return nil
}

func (c *counter) Flush() error { return nil }

// slotsInRound is a whole turn of the count of slots.
const slotsInRound = 39

// traffic is an endless game: two players join, then say the same things in each turn of
// their slots.
type traffic struct {
	opening dissect.Source
	round   []dissect.Packet
	grows   [2]int // of the TCP sequence in a round, by who dialled: host, joiner
	turn    int
	next    int
	number  int
	now     time.Time
	bytes   int64
	until   int64
	buf     []byte
}

func newTraffic(t testing.TB, until int64) *traffic {
	m := joined(t)
	s := &traffic{opening: m.Source(), until: until}
	round := &scene.Scene{}
	host, join := *m.host, *m.join
	host.Ends, join.Ends = round.Over(host.Ends), round.Over(join.Ends)
	before := [2]uint32{host.Next[dialer], join.Next[dialer]}
	for slot := 1; slot <= slotsInRound; slot++ {
		if slot%3 == 0 {
			host.Send(dialer, thrice(hostUser, slot, "well met"))
		} else {
			host.Send(dialer, tick(hostUser, slot, 10*slot, 1))
		}
		join.Send(dialer, tick(joinUser, slot, 10*slot, 2))
	}
	s.round = round.Packets()
	s.grows = [2]int{int(host.Next[dialer] - before[0]), int(join.Next[dialer] - before[1])}
	return s
}

const tcpSequence = 14 + 20 + 4

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
	by := 0
	if data[14+12+3] == 2 { // from 10.0.0.2
		by = 1
	}
	rise(s.buf[tcpSequence:tcpSequence+4], s.turn*s.grows[by])
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

// After its first rounds a session decodes frames without allocating, but for the text
// that a copy's note has.
func TestAllocations(t *testing.T) {
	const warm, more = 2 << 20, 4 << 20
	var before, after runtime.MemStats
	var c counter
	var records int
	src := newTraffic(t, more)
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

func BenchmarkLotr2(b *testing.B) {
	const size = 16 << 20
	b.SetBytes(size)
	records := 0
	for b.Loop() {
		var c counter
		run(b, &c, newTraffic(b, size))
		records += c.records
	}
	b.ReportMetric(float64(records)/b.Elapsed().Seconds()/1e6, "Mrec/s")
}
