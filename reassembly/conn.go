package reassembly

// Conn is one TCP connection, both directions.
//
// A stream starts at the byte after its SYN. Where that was not captured, its answer
// tells the start: the other side's SYN, or the bare acknowledgement that ends the
// handshake. Where none of these was, it starts with the first data seen, at once,
// which is offset 0; what comes with a lower sequence afterwards is reported as
// BeforeStart and not delivered, since waiting for it would delay what every joined
// stream has. What lies between such bytes and offset 0 is a Gap, told at the end.
//
// What comes early waits, until the hole before it is filled or given up: when the
// stream has made no progress for Options.Wait, when too much waits, or when an
// acknowledgement shows that the peer has had the missing bytes for longer than
// captures are out of order.
//
// Of bytes that come twice the first copy wins, whether it has been delivered or
// still waits. A FIN counts at its sequence number, not at its place in the
// capture. A reset ends both streams at once, after what waits has been delivered.
//
// A segment that the capture cut brings the bytes there are; the rest is a
// Gap of SnapLength at once when its turn comes, for nothing will be sent to
// fill it. A whole copy fills it only if it comes while the cut one waits.
type Conn struct {
	assembler *Assembler
	handler   Handler
	streams   [2]stream
	opened    bool
	reset     bool
}

// Add takes one segment, of whose packet Tick has told the time, and tells the handler
// what it brings. It reports whether the segment belongs to this connection. If not, it
// begins another one between the same endpoints: then this one is over, its waiting bytes have been
// delivered and PortReused is told, and the segment is to be given to a new
// Conn. That is so for a SYN with another initial sequence number, and for the
// second of two consecutive segments far behind or after the end, where the
// SYN was not captured.
func (c *Conn) Add(g *Segment) bool {
	s, peer := c.stream(g.Side), c.stream(g.Side.Peer())
	if c.foreign(s, peer, g) {
		c.Flush()
		c.reset = true
		s.note(PortReused, g, s.next, 0)
		return false
	}
	s.counters.Segments++
	if g.Flags&ACK != 0 {
		if !peer.started && s.endsHandshake(g) {
			peer.start(g.Ack)
		}
		peer.acknowledge(g.Ack)
	}
	if g.Flags&RST != 0 {
		c.abort(s, g)
		return true
	}
	if g.Flags&SYN != 0 {
		c.handshake(s, peer, g)
	}
	s.add(g)
	return true
}

// Flush delivers what waits, with gaps for what does not come, and closes
// nothing but a stream whose FIN waits. It is the last call at the end of a capture
// or before an idle Conn is dropped; but the Conn may also be used on.
func (c *Conn) Flush() {
	for side := range c.streams {
		s := &c.streams[side]
		s.skipAll(NotCaptured)
		s.tellEarly()
		s.rewait()
	}
}

// Done reports whether both streams have ended. Segments may still come late, so
// the Conn is best kept for some time.
func (c *Conn) Done() bool {
	return c.reset || c.streams[0].closed && c.streams[1].closed
}

// Ended reports whether the stream of one side has ended.
func (c *Conn) Ended(side Side) bool { return c.reset || c.stream(side).closed }

// Waits reports whether something of one side waits behind a hole.
func (c *Conn) Waits(side Side) bool { return c.stream(side).waits() }

// Zero returns the sequence number of offset 0 of the stream of one side, once that has
// started.
func (c *Conn) Zero(side Side) uint32 { return c.stream(side).base }

// Counters returns the counts of the stream of one side.
func (c *Conn) Counters(side Side) Counters { return c.stream(side).counters }

func (c *Conn) stream(side Side) *stream { return &c.streams[side&1] }

// foreign reports whether g begins another connection.
func (c *Conn) foreign(s, peer *stream, g *Segment) bool {
	switch {
	case g.Flags&SYN == 0:
		return s.confirms(g) && s.elsewhere(g)
	case s.syn:
		return g.Seq != s.isn && !c.answersAgain(s, peer, g)
	case s.started:
		ahead := Diff32(s.base, g.Seq+1)
		return ahead < 0 || ahead > synReorder
	default:
		// Nothing but bare acknowledgements came from here. They stand right
		// after the SYN, if it is theirs.
		spoken := s.counters.Segments > 0 && peer.next > 0
		return c.reset || spoken && g.Seq+1 != s.bare
	}
}

// elsewhere reports whether g stands where the stream cannot get to: far behind,
// or far ahead of its end.
func (s *stream) elsewhere(g *Segment) bool {
	off := s.offset(g.Seq)
	ended := s.conn.reset || s.fin != none
	return s.far(off, off+g.length()) && (off < s.next || ended)
}

// answersAgain reports whether a SYN with another number is a second answer to the
// same SYN, by a server that has forgotten the first. Then the last one holds.
func (c *Conn) answersAgain(s, peer *stream, g *Segment) bool {
	return g.Flags&ACK != 0 && peer.syn && g.Ack == peer.isn+1 && s.high == 0 && !c.reset
}

// handshake takes a SYN of this connection.
func (c *Conn) handshake(s, peer *stream, g *Segment) {
	switch {
	case s.syn && g.Seq == s.isn:
		s.note(SYNRetransmission, g, 0, 0)
		return
	case s.started && !s.syn:
		s.note(OutOfOrder, g, 0, 0)
	default:
		s.start(g.Seq + 1)
	}
	s.syn, s.isn = true, g.Seq
	opener := s
	if g.Flags&ACK != 0 {
		opener = peer
		if !peer.started {
			peer.start(g.Ack)
		}
	}
	if !c.opened {
		c.opened = true
		opener.note(Opened, g, 0, 0)
	}
}

// endsHandshake reports whether g, of the side that opened, answers the peer's SYN.
func (s *stream) endsHandshake(g *Segment) bool {
	return s.syn && g.Seq == s.isn+1 && s.high == 0 && g.length() == 0 && g.Flags&(SYN|FIN|RST) == 0
}

// abort takes a RST. One with a sequence number that its receiver would not
// believe is set aside: it belongs to an earlier connection, or is forged.
func (c *Conn) abort(s *stream, g *Segment) {
	off := s.next
	if s.started {
		off = s.offset(g.Seq)
	}
	switch {
	case c.Done():
		return
	case s.far(off, off):
		s.note(OutOfWindow, g, off, 0)
		return
	}
	c.Flush()
	for side := range c.streams {
		c.streams[side].skipAcknowledged(g)
	}
	c.reset = true
	s.note(Reset, g, s.next, g.length())
}
