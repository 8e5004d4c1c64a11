package dissect

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

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
	// Name is that of the protocol, as records of the session have it. A conversation
	// sets it where the layers that it finds tell which one it is.
	Name string

	run          *run
	protocol     Protocol
	schema       *schema.Protocol
	below        *schema.Protocol // of the protocol that carries it, nil for none
	conversation Conversation     // nil once no flow is left
	tables       []LearnedTable
	expects      []expectation
	confirmed    int  // frames in a row that must fit where a boundary is found by trial
	learned      bool // something that datagrams may wait for
	closed       bool
	ended        time.Time // of a closed one: when it, or something of it, was last seen
	said         bool      // peers have said which of them is the client
	entries      int       // of its tables, as far as they are counted
	opening      *opening  // nil once it has been reported
	secrets      Secrets
}

// maxSessions is how many sessions that are over are kept for Result: enough for
// whoever prints their tables, of which each may have some 10 kB.
const maxSessions = 1024

// Schema returns the layouts of the session's protocol.
func (s *Session) Schema() *schema.Protocol { return s.schema }

// Over reports whether the session has ended, though datagrams of it may still come.
func (s *Session) Over() bool { return s.closed }

// Tables returns what the session has learned.
func (s *Session) Tables() []LearnedTable {
	if s.conversation == nil {
		return s.tables
	}
	return s.conversation.Tables()
}

// Scratch returns what all sessions of a run decode with.
func (s *Session) Scratch() *Scratch { return &s.run.scratch }

// Hold returns what stands between the session and the sink.
func (s *Session) Hold() *Hold { return s.run.hold }

// Learned tells that the session now has context which datagrams may wait for.
func (s *Session) Learned() { s.learned = true }

// Record returns an empty record of a frame or datagram, for the conversation to
// fill and to Emit.
func (s *Session) Record(c *Carrier) *Record {
	r := s.run.frameRecord(c)
	if c.Flow.Guessed() && !s.ofPeers() {
		r.Note("role_guessed", "")
	}
	return r
}

// Emit hands on a record that Record returned. What its secret fields held is masked
// from here on wherever it comes back.
func (s *Session) Emit(r *Record) {
	if r.Packet.Secret() && s.secrets.Learn(&r.Body) {
		s.run.summary.reached(LimitSecrets, 1)
	}
	covered := r.Offset + int64(len(r.Raw))
	if r.Packet != nil && len(r.Packet.Teaches) > 0 {
		s.weigh()
	}
	s.run.push(r)
	s.run.covered = covered
}

// Undecoded counts bytes of the session that are in no record.
func (s *Session) Undecoded(n int) { s.run.summary.UndecodedBytes += int64(n) }

// Secrets returns the values that no output of the session may show.
func (s *Session) Secrets() *Secrets { return &s.secrets }

// weigh counts the entries of the session's tables as so many records that it remembers.
func (s *Session) weigh() {
	entries := 0
	for _, t := range s.conversation.Tables() {
		entries += t.Table.Len()
	}
	s.run.hold.remember(s.ID, entries-s.entries)
	s.entries = entries
}

// Event reports something about the flow that c belongs to.
func (s *Session) Event(c *Carrier, code, text string) { s.run.event(c, code, text) }

// Reserve keeps a place for what d emits later, where records go now.
func (s *Session) Reserve(d Deferred, size int) Place {
	return s.run.hold.Reserve(s.run.place, d, size)
}

// At emits what f does at a place that was reserved for it, and closes the place.
func (s *Session) At(p Place, f func()) {
	r := s.run
	outer := r.place
	r.place = p
	f()
	r.place = outer
	r.sink(r.hold.Done(p))
}

// Below returns the layouts of the protocol that carries the session's, nil for none.
func (s *Session) Below() *schema.Protocol { return s.below }

// Chosen reports whether the user says that this is the protocol: of all flows, or of
// a port of the session's.
func (s *Session) Chosen() bool {
	o := &s.run.options
	return o.Only != nil || slices.ContainsFunc(o.Assigned, func(a Assignment) bool {
		return a.Protocol == s.protocol && slices.ContainsFunc(s.Flows, func(f *Flow) bool {
			return f.Transport == a.Transport && (f.Ends[0].Port() == a.Port || f.Ends[1].Port() == a.Port)
		})
	})
}

// Expect tells that one side waits for this session's flows at addr, so that one with
// that end is recognised.
func (s *Session) Expect(addr netip.AddrPort, of schema.Sender) {
	e := expectation{addr, of}
	if s.closed || len(s.expects) >= maxExpected || slices.Contains(s.expects, e) {
		return
	}
	s.expects = append(s.expects, e)
	s.run.expected[addr] = append(s.run.expected[addr], s)
}

// expectation is an address at which a side of a session waits for datagrams.
type expectation struct {
	addr netip.AddrPort
	of   schema.Sender
}

// waitsAt returns which side waits at an address that the session expects.
func (s *Session) waitsAt(addr netip.AddrPort) schema.Sender {
	i := slices.IndexFunc(s.expects, func(e expectation) bool { return e.addr == addr })
	return s.expects[i].of
}

// maxExpected is how many addresses a session may announce: some for each host of
// a server.
const maxExpected = 64

// Restart ends the session and begins a new one with the same flows, as when a
// peer starts anew on the same ports. The conversation goes on in the new one, and
// is to forget what the old one had agreed on; tables are those of the old one.
func (s *Session) Restart(c *Carrier, reason string, tables []LearnedTable) {
	r := s.run
	r.sessionRecord(s, c, "closed", reason)
	for _, f := range s.Flows {
		r.account(f)
	}
	old := &Session{
		ID: s.ID, Client: s.Client, Server: s.Server, Joined: s.Joined, Name: s.Name, protocol: s.protocol, schema: s.schema,
		tables: tables, closed: true, secrets: s.secrets,
	}
	r.keepSession(old)
	r.sessions++
	share := r.hold.remembers[s.ID]
	r.hold.forgetSession(s.ID)
	s.ID, s.Joined, s.closed = r.sessions, false, false
	r.hold.remember(s.ID, share) // its streams go on
	r.sessionRecord(s, c, "opened", reason)
}

// Note adds a remark to r.
func (r *Record) Note(code, text string) { r.note(code, text) }

// open makes a session and gives it its first flow.
func (r *run) open(p Protocol, f *Flow, c *Carrier, joined bool, reason string) *Session {
	if err := r.loadSchema(p); err != nil {
		panic(err) // a schema in the program that does not load
	}
	r.sessions++
	s := &Session{
		ID: r.sessions, run: r, protocol: p, schema: r.schemas[p], below: r.below[p], Name: r.schemas[p].Name,
		Joined: joined, secrets: Secrets{Most: r.limits.Secrets},
	}
	s.confirmed = cmp.Or(int(s.schema.Limit("resync_packets")), confirmations)
	s.Client, s.Server = f.ends()
	s.conversation = r.converse(p, s)
	k := hostsOf(s.Client, s.Server)
	r.live[k] = append(r.live[k], s)
	s.adopt(f)
	s.forgetRoles(f)
	s.opening = &opening{reason, *c}
	s.opening.carrier.Packets = slices.Clone(c.Packets)
	return s
}

// opening is what is known of a session's start until its first record, whose
// content may settle the roles.
type opening struct {
	reason  string
	carrier Carrier
}

// announce reports that the session is open, once.
func (s *Session) announce() {
	if o := s.opening; o != nil {
		s.opening = nil
		o.carrier.Direction = o.carrier.Flow.direction(o.carrier.side)
		s.run.sessionRecord(s, &o.carrier, "opened", o.reason)
	}
}

// hosts are the addresses of two ends, the lower one first.
type hosts [2]netip.Addr

func hostsOf(a, b netip.AddrPort) hosts {
	if a.Addr().Compare(b.Addr()) > 0 {
		a, b = b, a
	}
	return hosts{a.Addr(), b.Addr()}
}

// adopt makes f one of the session's flows.
func (s *Session) adopt(f *Flow) {
	f.leave()
	s.Flows = append(s.Flows, f)
	f.Session, f.protocol, f.state = s, s.protocol, accepted
	if f.evidence == saidEvidence && !s.said && s.ofPeers() {
		s.agree()
	}
}

// ofPeers reports whether either side of the session dials the other.
func (s *Session) ofPeers() bool {
	_, ok := s.conversation.(Connector)
	return ok
}

// forgetRoles undoes what port and SYN seemed to say of the roles, between peers.
func (s *Session) forgetRoles(f *Flow) {
	if s.ofPeers() && f.evidence < saidEvidence {
		f.client, f.evidence = -1, noEvidence
	}
}

// agree has all flows between the hosts of a session of peers follow the roles that one
// of them said.
func (s *Session) agree() {
	s.said = true
	for _, f := range s.Flows {
		s.follow(f)
	}
}

// follow has a flow between the hosts of a session follow its roles.
func (s *Session) follow(f *Flow) {
	if client, ok := s.sameHosts(f); ok && client >= 0 && f.evidence <= portEvidence {
		f.client, f.evidence = client, saidEvidence
	}
}

// meet makes f, which comes from the other end of what was a broadcast, a flow of the
// session's two hosts.
func (s *Session) meet(f *Flow) {
	if _, ok := s.sameHosts(f); ok || s.closed {
		return
	}
	for side, end := range f.Ends {
		if end.Addr() != s.Client.Addr() {
			continue
		}
		remove(s.run.live, hostsOf(s.Client, s.Server), s)
		s.Server = f.Ends[1-side]
		k := hostsOf(s.Client, s.Server)
		s.run.live[k] = append(s.run.live[k], s)
	}
}

// leave takes f out of its session, and returns that if no flow is left in it.
func (f *Flow) leave() (deserted *Session) {
	s := f.Session
	if s == nil {
		return nil
	}
	if i := slices.Index(s.Flows, f); i == 0 {
		s.Flows = s.Flows[1:] // the oldest mostly goes first, and peers may have thousands
	} else if i > 0 {
		s.Flows = slices.Delete(s.Flows, i, i+1)
	}
	if len(s.Flows) > 0 {
		return nil
	}
	return s
}

// has reports whether the session has a flow of this transport.
func (s *Session) has(t schema.Transport) bool {
	return slices.ContainsFunc(s.Flows, func(f *Flow) bool { return f.Transport == t && !f.done })
}

// close ends a session. What its flows still bring belongs to it.
func (r *run) close(s *Session, c *Carrier, reason string) {
	if s.closed {
		return
	}
	r.lodge(s)
	s.closed, s.ended = true, r.clock
	r.closed = append(r.closed, s)
	s.announce()
	r.sessionRecord(s, c, "closed", reason)
	remove(r.live, hostsOf(s.Client, s.Server), s)
	for _, e := range s.expects {
		remove(r.expected, e.addr, s)
	}
	s.expects = nil
}

// remove takes a session out of a list.
func remove[K comparable](lists map[K][]*Session, k K, s *Session) {
	list := slices.DeleteFunc(lists[k], func(x *Session) bool { return x == s })
	if len(list) == 0 {
		delete(lists, k)
		return
	}
	lists[k] = list
}

// release ends a session of which no flow is left, but for what it has learned.
func (r *run) release(s *Session, c *Carrier, reason string) {
	r.close(s, c, reason)
	s.tables, s.conversation = s.conversation.Tables(), nil
	r.hold.forgetSession(s.ID)
	r.keepSession(s)
}

// keepSession keeps a session that is over for the result, in the place of the
// oldest if there are too many.
func (r *run) keepSession(s *Session) {
	if r.options.Forget {
		return
	}
	if len(r.over) >= r.limits.Sessions {
		r.over = slices.Delete(r.over, 0, 1)
		r.dropped++
	}
	r.over = append(r.over, s)
}

// allSessions returns the sessions that are over and those that are not, by number.
func (r *run) allSessions() []*Session {
	list := slices.Clone(r.over)
	for f := r.flows.first; f != nil; f = f.next {
		if s := f.Session; s != nil && s.Flows[0] == f {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *Session) int { return a.ID - b.ID })
	return list
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

// newest returns the newest sessions of a list, as many as are considered.
func (r *run) newest(list []*Session) []*Session {
	over := len(list) - r.limits.Candidates
	if over <= 0 {
		return list
	}
	r.summary.reached(LimitCandidates, 1)
	return list[over:]
}

// candidates returns the open sessions that a flow may belong to by its
// addresses.
func (r *run) candidates(f *Flow) []*Session {
	list := r.found[:0]
	for _, s := range r.newest(r.live[hostsOf(f.Ends[0], f.Ends[1])]) {
		if s.protocol == f.protocol {
			list = append(list, s)
		}
	}
	r.found = list
	return list
}

// claimants returns the open sessions that a flow may turn out to belong to by what
// it says: also those whose server waits at one of its ends, whatever address the
// client sends from.
func (r *run) claimants(f *Flow) []*Session {
	list := r.candidates(f)
	between := hostsOf(f.Ends[0], f.Ends[1])
	for _, end := range f.Ends {
		for _, s := range r.newest(r.expected[end]) {
			if s.protocol == f.protocol && hostsOf(s.Client, s.Server) != between {
				list = append(list, s)
			}
		}
	}
	r.found = list
	return list
}

// join finds the session of a UDP flow, whose first datagram is d: the one that
// owns it by what it says, else the only one between the two hosts, else a new
// one. It returns nil while that is open and may become clear, unless final.
func (r *run) join(f *Flow, d *Datagram, final bool) *Session {
	if s := owner(r.claimants(f), f, d); s != nil {
		s.displace(f)
		s.forgetRoles(f)
		return s
	}
	list := r.candidates(f)
	last, free := vacant(list, d)
	switch {
	case free == 1 && len(list) == 1, free > 0 && final:
		return last
	case free > 0:
		return nil // a later datagram may say whose it is
	}
	_, as := r.recognize(f.protocol, schema.UDP, d.Data)
	opening := as == Opening
	reason := "first packet"
	if opening {
		reason = "opening"
	}
	return r.open(f.protocol, f, &d.Carrier, !opening, reason)
}

// vacant returns how many sessions have no flow of datagrams yet and may own d, and the
// last of them.
func vacant(list []*Session, d *Datagram) (last *Session, count int) {
	for _, s := range list {
		if s.conversation.Claim(d) != Disowned && !s.has(schema.UDP) {
			last = s
			count++
		}
	}
	return last, count
}

// lodge has flows that wait for a session join s, which is about to close, if it is the
// only one that they can join: nothing that is still to come will tell more.
func (r *run) lodge(s *Session) {
	for _, f := range slices.Clone(r.homeless) {
		if f.Session != nil || len(f.queue) == 0 || f.protocol != s.protocol {
			continue
		}
		last := f.queue[len(f.queue)-1]
		if only, n := vacant(r.candidates(f), &f.queue[0].datagram); n == 1 && only == s {
			last.Overdue(last.place)
			r.sink(r.hold.Done(last.place))
		}
	}
}

// owner returns the session that owns a datagram, or one that waits behind it.
func owner(list []*Session, f *Flow, d *Datagram) *Session {
	for _, s := range list {
		if s.conversation.Claim(d) == Owned {
			return s
		}
	}
	for _, w := range f.queue {
		for _, s := range list {
			if s.conversation.Claim(&w.datagram) == Owned {
				return s
			}
		}
	}
	return nil
}

// displace makes room for a flow of datagrams that turned out to be the session's.
// One from another port of the client is not, if it is there only because nothing
// spoke against it: the client of another session, which began before the capture,
// sits behind the same address. Its next datagram finds it a new session.
func (s *Session) displace(own *Flow) {
	own.owned = true
	if s.ofPeers() {
		return // they have as many sockets as they like
	}
	client, _ := own.ends()
	for _, f := range slices.Clone(s.Flows) {
		if end, _ := f.ends(); f.Transport == schema.UDP && !f.owned && end != client {
			f.leave()
			f.Session = nil
		}
	}
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

// waitingBytes is what a datagram that waits takes beside its bytes.
const waitingBytes = 256

// wait has a datagram wait at the end of its flow's queue.
func (r *run) wait(f *Flow, d *Datagram) {
	w := &waiting{datagram: *d}
	w.bytes = append(w.bytes, d.Data...)
	w.packets = append(w.packets, d.Packets...)
	w.datagram.Data, w.datagram.Packets = w.bytes, w.packets
	w.datagram.Pieces = slices.Clone(d.Pieces)
	w.datagram.Waited = true
	f.queue = append(f.queue, w)
	if f.Session == nil && !slices.Contains(r.homeless, f) {
		r.homeless = append(slices.DeleteFunc(r.homeless, func(x *Flow) bool { return x.Session != nil }), f)
	}
	w.place = r.hold.Reserve(r.place, w, len(w.bytes)+waitingBytes)
}

// Overdue decodes what waits with what is known by now.
func (w *waiting) Overdue(p Place) {
	f := w.datagram.Flow
	for len(f.queue) > 0 {
		head := f.queue[0]
		f.queue = f.queue[1:]
		if head == w {
			f.run.decode(f, &w.datagram, p, true)
			break
		}
		f.run.decode(f, &head.datagram, head.place, true)
		f.run.hold.Done(head.place)
	}
	f.run.retry(f)
}

// retry decodes what waits in a flow, as far as that is possible by now.
func (r *run) retry(f *Flow) {
	for len(f.queue) > 0 {
		w := f.queue[0]
		if !r.decode(f, &w.datagram, w.place, false) {
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
	done := r.decodeHere(f, d, final)
	r.place = outer
	return done
}

func (r *run) decodeHere(f *Flow, d *Datagram, final bool) bool {
	if f.Session == nil {
		s := r.join(f, d, final || len(r.homeless) >= r.limits.Candidates)
		if s == nil {
			return false
		}
		if f.Session == nil { // else it is a new one, which has the flow
			s.adopt(f)
		}
		r.settleRoles(f)
	} else if c := f.Session.conversation.Claim(d); c == Disowned || c == Unsure {
		r.rejoin(f, d)
	}
	d.Direction = f.direction(d.side)
	if !f.Session.conversation.Datagram(d, final) {
		return false
	}
	f.Session.learned = false // the flow's own datagrams come after this one
	return true
}

// rejoin moves a flow to the session that owns its datagram, if there is one.
func (r *run) rejoin(f *Flow, d *Datagram) {
	s := owner(r.claimants(f), f, d)
	if s == nil && f.Session.closed && f.Session.ofPeers() {
		r.reopen(f, d)
		return
	}
	if s == nil || s == f.Session {
		return
	}
	old := f.leave()
	s.displace(f)
	s.adopt(f)
	r.settleRoles(f)
	if old != nil {
		r.release(old, &d.Carrier, "continued as another session")
	}
}

// reopen begins a new session with a flow whose session has ended, when a peer looks for
// another one.
func (r *run) reopen(f *Flow, d *Datagram) {
	if _, as := r.recognize(f.protocol, f.Transport, d.Data); as != Opening {
		return
	}
	old := f.leave()
	r.open(f.protocol, f, &d.Carrier, false, "opening")
	if old != nil {
		r.release(old, &d.Carrier, "continued as another session")
	}
}

// settleRoles takes the roles of a flow's ends from its session.
func (r *run) settleRoles(f *Flow) {
	if f.evidence > portEvidence || len(f.Session.Flows) < 2 {
		return
	}
	if f.Session.ofPeers() {
		if f.Session.said {
			f.Session.follow(f)
		}
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
	for _, f := range slices.Clone(s.Flows) { // some may leave
		r.retry(f)
	}
	r.homeless = slices.DeleteFunc(r.homeless, func(f *Flow) bool {
		if f.Session == nil {
			r.retry(f)
		}
		return f.Session != nil
	})
}
