package dissect

import (
	"strconv"
	"time"

	"opscope/reassembly"
	"opscope/schema"
)

// Chunk, Gap and Event are what a Flow takes as the Handler of its connection. Chunk takes the
// next bytes of one of its streams.
func (f *Flow) Chunk(c *reassembly.Chunk) {
	switch f.state {
	case accepted:
		f.streams[c.Side].chunkAt(c)
	case undecided:
		s := &f.streams[c.Side]
		s.keep(c)
		if f.run.decide(f, c.Side, s.buf) {
			f.begin(c.Side, c.Time)
		}
	}
}

// begin gives a connection that has been recognised its session, and cuts what its
// streams have kept.
func (f *Flow) begin(side reassembly.Side, now time.Time) {
	r := f.run
	carrier := Carrier{Flow: f, Direction: f.direction(side), Packets: r.packets, Time: now, Digits: r.packet.Digits, side: side}
	if s := r.sessionOf(f); s != nil {
		s.meet(f)
		s.adopt(f)
		s.forgetRoles(f)
		r.settleRoles(f)
	} else {
		reason := "syn"
		if !f.opened {
			reason = "joined mid-stream"
		}
		if f.port != "" {
			reason += ", on a port of " + f.port
		}
		r.open(f.protocol, f, &carrier, !f.opened, reason)
	}
	r.summary.Segments.add(&f.segments)
	for i := range f.streams {
		f.streams[i].begin()
	}
}

// sessionOf finds the session of a connection: among peers one that says so, else, where
// its start was not captured, the one between the same hosts that has only datagrams so
// far.
func (r *run) sessionOf(f *Flow) *Session {
	for _, s := range r.claimants(f) {
		if c, ok := s.conversation.(Connector); ok && c.Connects(f) {
			return s
		}
	}
	if f.opened {
		return nil
	}
	for _, s := range r.candidates(f) {
		if s.Joined && !s.has(schema.TCP) {
			return s
		}
	}
	return nil
}

// Gap takes the place of bytes that were not captured.
func (f *Flow) Gap(g reassembly.Gap) {
	switch f.state {
	case accepted:
		f.streams[g.Side].gapAt(g)
	case undecided:
		f.streams[g.Side].before(g)
		if f.protocol != nil { // its port tells enough
			f.begin(g.Side, g.Time)
		}
	}
}

// Event takes what the connection tells beside its bytes.
func (f *Flow) Event(e reassembly.Event) {
	r := f.run
	switch e.Kind {
	case reassembly.Opened:
		f.opened = true
		f.setClient(e.Side, synEvidence)
		return
	case reassembly.Joined:
		if s := &f.streams[e.Side]; f.state == accepted {
			s.lose(nil)
		} else {
			s.joined = true
		}
	case reassembly.Retransmission, reassembly.SYNRetransmission, reassembly.Overlap:
		f.odd(Segments{Retransmitted: 1})
		return
	case reassembly.KeepAlive:
		f.odd(Segments{KeepAlives: 1})
		return
	case reassembly.OutOfOrder:
		f.odd(Segments{OutOfOrder: 1})
		return
	case reassembly.Conflict:
		r.summary.Conflicts++
	case reassembly.Closed:
		f.finish(e.Side)
		f.ending = "closed"
	case reassembly.Reset:
		f.finish(0)
		f.finish(1)
		f.ending = "reset by " + by(f.direction(e.Side))
	}
	if f.state != accepted && f.protocol == nil {
		return
	}
	c := Carrier{
		Flow: f, Direction: f.direction(e.Side), Packets: []int{e.Packet}, Time: e.Time, Digits: r.packet.Digits, side: e.Side,
	}
	text := eventText(e)
	switch {
	case e.Kind == reassembly.Reset:
		text = "by " + by(c.Direction)
	case e.Kind == reassembly.Closed && f.conn.Ended(e.Side.Peer()):
		text = "by " + by(c.Direction)
	case e.Kind == reassembly.Closed:
		text = "half-closed by " + by(c.Direction)
	}
	r.event(&c, e.Kind.String(), text)
}

// odd counts what is odd about a segment. The summary has it once the flow is known to
// be a protocol's.
func (f *Flow) odd(s Segments) {
	f.segments.add(&s)
	if f.state == accepted {
		f.run.summary.Segments.add(&s)
	}
}

// by names the side that sends in a direction.
func by(d Direction) string {
	if d == UnknownDirection {
		return "one side"
	}
	return d.Sender().String()
}

// finish ends the stream of a side, if anybody has begun to read it, or would now that all
// of it is there.
func (f *Flow) finish(side reassembly.Side) {
	if len(f.streams) == 0 {
		return
	}
	s := &f.streams[side]
	if f.state == undecided && len(s.buf) > s.looked {
		s.looked = 0
		if f.run.decide(f, side, s.buf) {
			f.begin(side, f.last)
		}
	}
	if f.state == accepted {
		s.finish()
	}
}

func eventText(e reassembly.Event) string {
	if e.Bytes == 0 {
		return ""
	}
	return strconv.FormatInt(e.Bytes, 10) + " bytes at offset " + strconv.FormatInt(e.Offset, 10)
}
