package dissect

import (
	"net/netip"
	"slices"

	"opscope/schema"
)

// Session is all flows of one client with one server. The protocol's state hangs
// on it.
type Session struct {
	ID     int // from 1
	Client netip.AddrPort
	Server netip.AddrPort
	Flows  []*Flow
	// Joined says that the session began before the capture, so that what it had
	// agreed on is not known.
	Joined bool

	run          *run
	protocol     Protocol
	schema       *schema.Protocol
	conversation Conversation
	learned      bool // something that datagrams may wait for
	closed       bool
}

// Schema returns the layouts of the session's protocol.
func (s *Session) Schema() *schema.Protocol { return s.schema }

// Tables returns what the session has learned.
func (s *Session) Tables() []LearnedTable { return s.conversation.Tables() }

// Hold returns what stands between the session and the sink.
func (s *Session) Hold() *Hold { return s.run.hold }

// Learned tells that the session now has context which datagrams may wait for.
func (s *Session) Learned() { s.learned = true }

// Record returns an empty record of a frame or datagram, for the conversation to
// fill and to Emit.
func (s *Session) Record(c *Carrier) *Record {
	r := s.run.frameRecord(c)
	if c.Flow.Guessed() {
		r.Note("role_guessed", "")
	}
	return r
}

// Emit hands on a record that Record returned.
func (s *Session) Emit(r *Record) { s.run.push(r) }

// Event reports something about the flow that c belongs to.
func (s *Session) Event(c *Carrier, code, text string) { s.run.event(c, code, text) }

// Expect tells that the server waits for this session's datagrams at addr, so that
// a flow to it is recognised.
func (s *Session) Expect(addr netip.AddrPort) {
	if !slices.Contains(s.run.expected[addr], s) {
		s.run.expected[addr] = append(s.run.expected[addr], s)
	}
}

// Restart ends the session and begins a new one with the same flows, as when a
// peer starts anew on the same ports. The conversation goes on in the new one, and
// is to forget what the old one had agreed on.
func (s *Session) Restart(c *Carrier, reason string) {
	s.run.sessionRecord(s, c, "closed", reason)
	s.run.sessions++
	s.ID = s.run.sessions
	s.Joined = false
	s.run.sessionRecord(s, c, "opened", reason)
}

// Note adds a remark to r.
func (r *Record) Note(code, text string) { r.note(code, text) }

// open makes a session and gives it its first flow.
func (r *run) open(p Protocol, f *Flow, c *Carrier, joined bool, reason string) *Session {
	r.sessions++
	s := &Session{ID: r.sessions, run: r, protocol: p, schema: r.schemas[p], Joined: joined}
	s.Client, s.Server = f.ends()
	s.conversation = p.Open(s)
	r.live = append(r.live, s)
	r.all = append(r.all, s)
	s.adopt(f)
	r.sessionRecord(s, c, "opened", reason)
	return s
}

// adopt makes f one of the session's flows.
func (s *Session) adopt(f *Flow) {
	if old := f.Session; old != nil {
		old.Flows = slices.DeleteFunc(old.Flows, func(x *Flow) bool { return x == f })
	}
	s.Flows = append(s.Flows, f)
	f.Session, f.protocol, f.state = s, s.protocol, accepted
}

// has reports whether the session has a flow of this transport.
func (s *Session) has(t schema.Transport) bool {
	return slices.ContainsFunc(s.Flows, func(f *Flow) bool { return f.Transport == t && !f.done })
}

// close ends a session once its connection is over.
func (r *run) close(s *Session, c *Carrier, reason string) {
	if s.closed {
		return
	}
	s.closed = true
	r.sessionRecord(s, c, "closed", reason)
	r.live = slices.DeleteFunc(r.live, func(x *Session) bool { return x == s })
	for addr, list := range r.expected {
		if list = slices.DeleteFunc(list, func(x *Session) bool { return x == s }); len(list) == 0 {
			delete(r.expected, addr)
		} else {
			r.expected[addr] = list
		}
	}
}

// sameHosts reports whether a flow runs between the hosts of a session, and on
// which side its client is.
func (s *Session) sameHosts(f *Flow) (client int8, ok bool) {
	c, v := s.Client.Addr(), s.Server.Addr()
	a, b := f.Ends[0], f.Ends[1]
	switch {
	case a.Addr() == c && b.Addr() == v && a.Addr() == b.Addr():
		// Client and server on one host: the ports must tell.
		return f.client, true
	case a.Addr() == c && b.Addr() == v:
		return 0, true
	case b.Addr() == c && a.Addr() == v:
		return 1, true
	}
	return -1, false
}

// candidates returns the open sessions that a flow may belong to by its
// addresses.
func (r *run) candidates(f *Flow) []*Session {
	list := r.scratch[:0]
	for _, s := range r.live {
		if s.protocol == f.protocol {
			if _, ok := s.sameHosts(f); ok {
				list = append(list, s)
			}
		}
	}
	r.scratch = list
	return list
}

// join finds the session of a UDP flow, whose first datagram is d: the one that
// owns it by what it says, else the only one between the two hosts, else a new
// one. It returns nil while that is open and may become clear, unless final.
func (r *run) join(f *Flow, d *Datagram, final bool) *Session {
	list := r.candidates(f)
	for _, s := range list {
		if s.owns(f, d) {
			return s
		}
	}
	var free []*Session
	for _, s := range list {
		if s.conversation.Claim(d) != Disowned && !s.has(schema.UDP) {
			free = append(free, s)
		}
	}
	switch {
	case len(free) == 1 && len(list) == 1:
		return free[0]
	case len(list) > 0 && !final && len(free) > 0:
		return nil // a later datagram may say whose it is
	case len(free) > 0:
		return free[len(free)-1]
	}
	_, opening := f.protocol.Recognize(schema.UDP, d.Data)
	reason := "first packet"
	if opening {
		reason = "opening"
	}
	return r.open(f.protocol, f, &d.Carrier, !opening, reason)
}

// owns reports whether a session owns a datagram, or one that waits behind it.
func (s *Session) owns(f *Flow, d *Datagram) bool {
	if s.conversation.Claim(d) == Owned {
		return true
	}
	return slices.ContainsFunc(f.queue, func(w *waiting) bool { return s.conversation.Claim(&w.datagram) == Owned })
}

// waiting is a datagram that waits for context: for the session that it belongs
// to, or for a table that says how to read it. Behind it wait the later ones of its
// flow, so that each is read with what was known at its packet, and only with what
// it waited for besides.
type waiting struct {
	datagram Datagram
	place    Place
	bytes    []byte
	packets  []int
}

// wait has a datagram wait at the end of its flow's queue.
func (r *run) wait(f *Flow, d *Datagram) {
	w := &waiting{datagram: *d}
	w.bytes = append(w.bytes, d.Data...)
	w.packets = append(w.packets, d.Packets...)
	w.datagram.Data, w.datagram.Packets = w.bytes, w.packets
	w.datagram.Pieces = slices.Clone(d.Pieces)
	f.queue = append(f.queue, w)
	w.place = r.hold.Reserve(w, len(w.bytes)+256)
}

// Overdue decodes what waits with what is known by now.
func (w *waiting) Overdue(p Place) {
	f := w.datagram.Flow
	for len(f.queue) > 0 {
		head := f.queue[0]
		f.queue = f.queue[1:]
		at := head.place
		if head == w {
			at = p
		}
		f.run.decode(f, &head.datagram, at, true)
		if head == w {
			break
		}
		f.run.hold.Done(head.place)
	}
	f.run.retry(f)
}

// retry decodes what waits in a flow, as far as that is possible by now.
func (r *run) retry(f *Flow) {
	for len(f.queue) > 0 {
		w := f.queue[0]
		if !w.place.Open() || !r.decode(f, &w.datagram, w.place, false) {
			return
		}
		f.queue = f.queue[1:]
		r.hold.Done(w.place)
	}
}

// decode decodes a datagram at a place. It returns false when context is missing
// that may still come.
func (r *run) decode(f *Flow, d *Datagram, at Place, final bool) bool {
	outer := r.place
	r.place = at
	defer func() { r.place = outer }()
	if f.Session != nil && f.Session.conversation.Claim(d) == Disowned {
		r.rejoin(f, d)
	}
	if f.Session == nil {
		s := r.join(f, d, final)
		if s == nil {
			return false
		}
		if f.Session == nil {
			s.adopt(f)
		}
		r.settleRoles(f)
	}
	d.Direction = f.direction(d.side)
	if !f.Session.conversation.Datagram(d, final) {
		return false
	}
	r.afterDatagram(f.Session)
	return true
}

// rejoin moves a flow to the session that owns its datagram, if there is one.
func (r *run) rejoin(f *Flow, d *Datagram) {
	for _, s := range r.candidates(f) {
		if s != f.Session && s.conversation.Claim(d) == Owned {
			s.adopt(f)
			return
		}
	}
}

// settleRoles takes the roles of a flow's ends from its session.
func (r *run) settleRoles(f *Flow) {
	if f.evidence > portEvidence || len(f.Session.Flows) < 2 {
		return
	}
	if client, ok := f.Session.sameHosts(f); ok && client >= 0 {
		f.client = client
		f.evidence = f.Session.Flows[0].evidence
	}
}

// afterFrame decodes the datagrams that waited for what a frame taught.
func (r *run) afterFrame(s *Session) {
	if !s.learned {
		return
	}
	s.learned = false
	for _, f := range s.Flows {
		r.retry(f)
	}
	for f := r.flows.first; f != nil; f = f.next {
		if f.Session == nil && len(f.queue) > 0 {
			r.retry(f)
		}
	}
}

// afterDatagram does so for a datagram, whose own flow goes on by itself.
func (r *run) afterDatagram(s *Session) { s.learned = false }
