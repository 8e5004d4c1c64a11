package reassembly

import (
	"math"
	"time"
)

// none is an offset that no byte has.
const none = math.MinInt64

// stream is one direction of a connection. Positions are offsets from its start;
// the sequence number of offset 0 is base.
type stream struct {
	conn     *Conn
	side     Side
	counters Counters

	started bool   // base is known
	syn     bool   // the SYN was seen
	closed  bool   // the FIN has been reached
	isn     uint32 // sequence number of the SYN
	base    uint32
	bare    uint32 // before the start: sequence number of the last bare acknowledgement

	next  int64 // first byte not yet delivered
	high  int64 // end of what was seen on the wire
	cut   int64 // bytes from next to here are known to be cut by the capture
	fin   int64 // where the FIN stands, or none
	acked int64 // first byte the peer has not acknowledged, or none

	lastAck  uint32 // before the start: what the peer acknowledged last
	ackKnown bool

	lastPacket int       // packet of the bytes before next
	cutPacket  int       // packet of the bytes that are cut
	cutTime    time.Time // and its time
	lost       [2]int64  // the last gap, from and to
	early      early

	astray   bool   // a segment was set aside, and none came since that was not
	strayEnd uint32 // sequence number after it

	head, tail   *held
	heldEnd      int64 // behind the last byte that is held, of those with bytes
	heldBytes    int
	heldSegments int
	finSeen      held // stands for the FIN while it waits: packet and times

	since      time.Time // when the wait for the hole began
	progress   time.Time // when a segment last came in order
	listed     bool      // in the assembler's waitList
	settled    int64     // acknowledged for settleTime or longer
	settling   int64     // acknowledged when the present settleTime began
	settlingAt time.Time

	earlier, later *stream
	history        history
}

func (s *stream) init(c *Conn, side Side) {
	s.conn, s.side = c, side
	s.fin, s.acked = none, none
	if n := c.assembler.Options.History; n > 0 {
		s.history.ring = make([]byte, n)
	}
}

// piece is the part of a segment that is still to be placed: bytes at off, and
// after them up to end those that the capture has cut.
type piece struct {
	off, end int64
	data     []byte
	packet   int
	time     time.Time
}

// trim drops the part before off.
func (p *piece) trim(off int64) {
	p.data = p.data[min(off-p.off, int64(len(p.data))):]
	p.off = off
}

// limit drops the part from end on.
func (p *piece) limit(end int64) {
	p.data = p.data[:min(end-p.off, int64(len(p.data)))]
	p.end = end
}

// offset returns the position of a sequence number.
func (s *stream) offset(seq uint32) int64 { return unwrap(seq, s.base, s.next) }

// far reports whether [off, end) is too far from the stream to be believed.
func (s *stream) far(off, end int64) bool {
	return off-s.next > plausible || s.next-end > plausible
}

// start sets the sequence number of offset 0.
func (s *stream) start(seq uint32) {
	s.started, s.base, s.acked = true, seq, none
	if s.ackKnown {
		s.acked = s.offset(s.lastAck)
	}
}

// acknowledge takes an acknowledgement by the peer.
func (s *stream) acknowledge(ack uint32) {
	if !s.started {
		s.lastAck, s.ackKnown = ack, true
		return
	}
	if off := s.offset(ack); off > s.acked && off-s.high <= plausible {
		s.acked = off
	}
	if s.listed {
		s.settle()
	}
}

// add takes a segment of this direction, whose SYN and RST are dealt with.
func (s *stream) add(g *Segment) {
	seq, length := g.Seq, g.length()
	if g.Flags&SYN != 0 {
		seq++
	}
	if !s.started && !s.join(g, length) {
		return
	}
	off := s.offset(seq)
	if s.keepAlive(g, off, length) {
		s.note(KeepAlive, g, off, length)
		return
	}
	if length == 0 && g.Flags&FIN == 0 {
		return
	}
	if s.follows(g, off, length) {
		s.take(g)
		return
	}
	if s.far(off, off+length) && !s.follow(g, off, length) {
		return
	}
	if s.conn.reset {
		s.note(AfterClose, g, off, length)
		return
	}
	s.astray = false
	if g.Flags&FIN != 0 {
		s.finish(g, off+length)
	}
	if length > 0 {
		s.place(g, piece{off: off, end: off + length, data: g.Payload, packet: g.Packet, time: g.Time})
	}
	s.drain()
	s.bound()
	s.rewait()
}

// follows reports whether g is the usual case: whole, next, and with nothing that
// waits or ends.
func (s *stream) follows(g *Segment, off, length int64) bool {
	return off == s.next && s.head == nil && s.fin == none && g.Flags&FIN == 0 &&
		length == int64(len(g.Payload)) && !s.conn.reset
}

// take delivers a segment that follows, in place.
func (s *stream) take(g *Segment) {
	s.astray = false
	s.progress = s.conn.assembler.now
	s.high = s.next + int64(len(g.Payload))
	s.deliver(g.Payload, false, g.Packet, g.Time)
}

// join starts the stream at a segment in its midst. It reports whether there is
// something to place: not for a bare acknowledgement, which may be a probe one
// byte too low and so starts nothing.
func (s *stream) join(g *Segment, length int64) bool {
	if length == 0 && g.Flags&FIN == 0 {
		s.bare = g.Seq
		return false
	}
	start := g.Seq
	if length == 1 && s.ackKnown && s.lastAck == g.Seq+1 {
		start++ // acknowledged already: a probe with its byte of garbage
	}
	s.start(start)
	s.early.begin(g)
	s.note(Joined, g, 0, 0)
	return true
}

// keepAlive reports whether g is a probe: at the last byte sent, which is
// acknowledged as far as the capture shows, with at most one byte (RFC 9293,
// section 3.8.4). A byte not acknowledged yet is a retransmission.
func (s *stream) keepAlive(g *Segment, off, length int64) bool {
	if length > 1 || off != s.high-1 || g.Flags&(SYN|FIN) != 0 {
		return false
	}
	return length == 0 || s.acked == none || s.acked >= s.high
}

// confirms reports whether g goes on where a segment that was set aside ended.
func (s *stream) confirms(g *Segment) bool {
	return s.astray && g.Seq == s.strayEnd && g.length() > 0
}

// follow deals with a segment too far off to be believed. It is set aside, and
// believed when the next one goes on where it ended, as after a pause of the
// capture: then the stream goes on there. It reports whether it does. (What is
// behind, or ahead of the end, Conn.foreign has taken for another connection.)
func (s *stream) follow(g *Segment, off, length int64) bool {
	if s.confirms(g) {
		s.skipAll(NotCaptured)
		s.gap(off, NotCaptured, g.Packet, g.Time)
		return true
	}
	s.astray, s.strayEnd = true, g.Seq+uint32(length)
	s.note(OutOfWindow, g, off, length)
	return false
}

// finish takes a FIN that stands at off.
func (s *stream) finish(g *Segment, off int64) {
	switch {
	case s.fin == off:
		if g.length() == 0 {
			s.note(Retransmission, g, off, 0)
		}
	case s.fin != none || off < s.high:
		s.note(MisplacedFIN, g, off, 0)
	default:
		s.fin = off
		s.finSeen = held{off: off, packet: g.Packet, time: g.Time, arrived: s.conn.assembler.now}
	}
}

// place delivers what of p is next, and holds what is not. It tells of every
// byte that it does neither with.
func (s *stream) place(g *Segment, p piece) {
	if s.fin != none && p.end > s.fin {
		s.note(AfterClose, g, max(p.off, s.fin), p.end-max(p.off, s.fin))
		if p.off >= s.fin {
			return
		}
		p.limit(s.fin)
	}
	if p.off < 0 {
		s.note(BeforeStart, g, p.off, min(p.end, 0)-p.off)
		s.keepEarly(p)
		if p.end <= 0 {
			return
		}
		p.trim(0)
	}
	if !s.compare(g, p) {
		return
	}
	if p.off < s.next {
		p.trim(s.next)
	}
	if p.off == s.next {
		s.pass(&p)
	}
	if p.off < p.end {
		s.hold(p)
	}
}

// pass delivers the bytes of p up to the first that are held, in place.
func (s *stream) pass(p *piece) {
	end := p.off + int64(len(p.data))
	if s.head != nil {
		end = min(end, s.head.off)
	}
	s.deliver(p.data[:end-p.off], s.head == nil && end < p.end, p.packet, p.time)
	s.progress = s.conn.assembler.now
	p.trim(end)
	if s.head == nil {
		s.cutTo(p.end, p.packet, p.time)
		p.off = p.end
	}
}

// compare tells what of p was there before, and reports whether something of it
// is new. Bytes that are held count as well as those delivered.
func (s *stream) compare(g *Segment, p piece) bool {
	seen := max(min(p.end, s.next)-p.off, 0)
	d := s.history.differ(p.off, p.data)
	reached := p.off + seen
	fills := false // bytes that the capture cut from the first copy
	for h := s.head; h != nil && h.off < p.end; h = h.next {
		if to := min(h.end, p.end); to > reached {
			seen += to - max(h.off, reached)
			reached = to
		}
		fills = fills || len(h.data) == 0 && p.off+int64(len(p.data)) > h.off
		h.differ(p, &d)
	}
	if d.bytes > 0 {
		s.note(Conflict, g, d.first, d.bytes)
	}
	late := p.off < s.high
	s.high = max(s.high, p.end)
	switch {
	case p.off >= s.lost[0] && p.end <= s.lost[1]:
		s.note(TooLate, g, p.off, seen)
		return false
	case seen == p.end-p.off:
		s.note(Retransmission, g, p.off, seen)
		return fills
	case seen > 0:
		s.note(Overlap, g, p.off, seen)
	case late:
		s.note(OutOfOrder, g, p.off, p.end-p.off)
	}
	return true
}

// drain delivers what follows next without a hole, and the end if it is there.
func (s *stream) drain() {
	for {
		h := s.head
		switch {
		case h != nil && h.off <= s.next:
			s.unlink()
			s.deliver(h.data, s.head.cuts(h), h.packet, h.time)
			s.cutTo(h.end, h.packet, h.time)
			s.conn.assembler.release(h)
		case s.cut > s.next:
			s.gap(s.cutEnd(), SnapLength, s.cutPacket, s.cutTime)
		case s.next == s.fin && !s.closed:
			s.closed = true
			s.tellEarly()
			s.tell(Closed, s.next, 0, s.finSeen.packet, s.finSeen.time)
			return
		default:
			return
		}
	}
}

// deliver hands over the next bytes of the stream, behind which the capture may have
// cut others of the packet.
func (s *stream) deliver(data []byte, cut bool, packet int, at time.Time) {
	s.lastPacket = packet
	if len(data) == 0 {
		return
	}
	off := s.next
	s.next += int64(len(data))
	s.counters.Bytes += int64(len(data))
	s.history.keep(off, data)
	c := &s.conn.assembler.chunk
	c.Side, c.Offset, c.Data, c.Cut, c.Packet, c.Time = s.side, off, data, cut, packet, at
	s.conn.handler.Chunk(c)
}

// gap gives up the bytes up to to; packet is the one after them.
func (s *stream) gap(to int64, reason Reason, packet int, at time.Time) {
	from := s.next
	if to <= from {
		return
	}
	s.lost = [2]int64{from, to}
	s.next, s.high = to, max(s.high, to)
	s.counters.Gaps++
	s.counters.BytesLost += to - from
	s.conn.handler.Gap(Gap{
		Side: s.side, Offset: from, Bytes: to - from, Reason: reason,
		After: s.lastPacket, Before: packet, Time: at,
	})
}

// skipAcknowledged gives up the bytes at the end that the peer has acknowledged and g, a
// reset, ends the wait for. A single one may be a FIN that was not captured.
func (s *stream) skipAcknowledged(g *Segment) {
	if s.lastPacket > 0 && s.fin == none && s.acked > s.next+1 {
		s.gap(s.acked, NotCaptured, g.Packet, g.Time)
	}
}

// cutTo marks the bytes from next to end as cut by the capture, where they do not
// come from another packet.
func (s *stream) cutTo(end int64, packet int, at time.Time) {
	if end > s.cut {
		s.cut, s.cutPacket, s.cutTime = end, packet, at
	}
}

// cutEnd returns where the bytes that the capture cut end: at the latest where
// others wait.
func (s *stream) cutEnd() int64 {
	if s.head != nil {
		return min(s.cut, s.head.off)
	}
	return s.cut
}

// note tells of the segment g.
func (s *stream) note(k Kind, g *Segment, off, n int64) { s.tell(k, off, n, g.Packet, g.Time) }

// tell counts an event and hands it over.
func (s *stream) tell(k Kind, off, n int64, packet int, at time.Time) {
	s.counters.Events[k]++
	s.conn.handler.Event(Event{Kind: k, Side: s.side, Offset: off, Bytes: n, Packet: packet, Time: at})
}
