package reassembly

import (
	"slices"
	"time"
)

// maxRuns is how many runs of early bytes are told apart; beyond it the gaps between
// those there are have been told.
const maxRuns = 32

// run is bytes before the start of a joined stream, which came late.
type run struct {
	from, to int64 // offsets, not above 0
	packet   int   // that came last of those with the bytes
	time     time.Time
}

// early keeps which bytes from before the start of a joined stream were captured: what
// lies between them is a gap, as soon as nothing more will come to fill it.
type early struct {
	runs []run // ascending and apart; the last one stands for the start
}

// begin notes the segment at which the stream was joined.
func (e *early) begin(g *Segment) {
	e.runs = append(e.runs[:0], run{packet: g.Packet, time: g.Time})
}

// add notes a run.
func (e *early) add(r run) {
	i, _ := slices.BinarySearchFunc(e.runs, r, func(a, b run) int { return int(a.to - b.from) })
	j := i
	for ; j < len(e.runs) && e.runs[j].from <= r.to; j++ {
		r.from, r.to = min(r.from, e.runs[j].from), max(r.to, e.runs[j].to)
	}
	e.runs = slices.Replace(e.runs, i, j, r)
}

// keepEarly notes the bytes of p that lie before the start.
func (s *stream) keepEarly(p piece) {
	if len(s.early.runs) == 0 || len(p.data) == 0 {
		return // the start is known, and these are no bytes of the stream; or there are none
	}
	s.early.add(run{p.off, min(p.off+int64(len(p.data)), 0), p.packet, p.time})
	if len(s.early.runs) > maxRuns {
		s.tellEarly()
	}
}

// tellEarly tells the gaps before the start, up to the first byte that was captured.
func (s *stream) tellEarly() {
	e := s.early.runs
	if len(e) < 2 {
		return
	}
	for i := range e[1:] {
		a, b := &e[i], &e[i+1]
		s.counters.Gaps++
		s.counters.BytesLost += b.from - a.to
		s.conn.handler.Gap(Gap{
			Side: s.side, Offset: a.to, Bytes: b.from - a.to, Reason: NotCaptured,
			After: a.packet, Before: b.packet, Time: b.time,
		})
	}
	e[0].to = 0
	s.early.runs = e[:1]
}
