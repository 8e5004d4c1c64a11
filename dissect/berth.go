package dissect

import (
	"slices"

	"opscope/reassembly"
)

// berths are the places in the output of the segments of a stream that wait behind a
// hole. When the hole turns out to be a gap, their records stand where their packets
// do, and not behind what came in the meantime. When its bytes do come, the records
// come behind them, in the order of the stream.
type berths struct {
	list []berth // in the order of the capture
	used bool    // a gap was told, and what waited behind it is coming
	at   int     // index of the one in use; the output of a stream never goes back
}

type berth struct {
	packet int
	place  Place
}

// berth keeps a place for the present packet, which brought bytes that wait.
func (s *stream) berth() {
	r := s.run()
	s.berths.list = append(s.berths.list, berth{r.packet.Number, r.hold.Reserve(Place{}, s, 0)})
}

// Overdue gives up a berth: what waits comes at the end then.
func (s *stream) Overdue(Place) {}

// moor returns the place for what a packet brings to the stream, and gives up those
// that nothing can stand at any more.
func (s *stream) moor(packet int) Place {
	b := &s.berths
	i := slices.IndexFunc(b.list, func(x berth) bool { return x.packet == packet })
	if i < 0 || !b.used {
		s.unmoor(len(b.list))
		return Place{}
	}
	b.at = max(b.at, i)
	return b.list[b.at].place
}

// unmoor gives up the first n berths.
func (s *stream) unmoor(n int) {
	b := &s.berths
	for _, x := range b.list[:n] {
		s.run().sink(s.run().hold.Done(x.place))
	}
	b.list = slices.Delete(b.list, 0, n)
	if b.at = max(0, b.at-n); len(b.list) == 0 {
		b.used = false
	}
}

// chunkAt takes a chunk, whose records go where its packet is.
func (s *stream) chunkAt(c *reassembly.Chunk) {
	r, outer, waits := s.run(), s.run().place, len(s.berths.list) > 0
	if r.place = (Place{}); waits {
		r.place = s.moor(c.Packet)
	}
	s.chunk(c)
	if r.place = outer; waits {
		s.settled()
	}
}

// gapAt takes a gap, which is told where the packet behind it is.
func (s *stream) gapAt(g reassembly.Gap) {
	r, outer := s.run(), s.run().place
	if g.Reason != reassembly.SnapLength {
		s.berths.used = len(s.berths.list) > 0
	}
	r.place = s.moor(g.Before)
	s.gap(g)
	r.place = outer
	s.settled()
}

// settled gives up the berths that are behind, and all of them when nothing waits.
func (s *stream) settled() {
	n := s.berths.at
	if !s.flow.conn.Waits(s.side) {
		n = len(s.berths.list)
	}
	s.unmoor(n)
}
