package dissect

import (
	"hash/maphash"
	"slices"
	"time"

	"opscope/schema"
)

// What a Hold keeps at most, unless told otherwise. A server under load sends some thousand records a
// second, so that 2 s of them stay below all three.
const (
	DefaultHold = 2 * time.Second // twice the longest retry timer of the protocols here
	HoldRecords = 65536           // records and places
	HoldBytes   = 10 << 20        // bytes copied, bytes of datagrams that wait, and decoded nodes
)

// nodeBytes is what one node of a tree counts against HoldBytes.
const nodeBytes = 48

// Hold stands between the dissectors and the Sink. It keeps the output in order
// while a record waits for its acknowledgement, or a datagram for the context
// that says how to read it:
//
//	oldest                                                     newest
//	[waits for ack] [done] [done] [place of a datagram] [done] [done]
//
// Whatever stands behind one that waits, waits with it. A record waits when its
// Ack.State is AckPending at Push; Resolve ends that, and so does the time limit.
//
// A record waits, too, while it is Open: for the copies that its sender makes of it.
//
// A Hold owns its records. Take hands one out, Push or Fill takes it back, and
// between the two it may borrow the bytes of a packet: only what stays in the
// queue is copied, or what the sink retains. Records are numbered as they leave, so that N
// rises.
//
// The limit counts in capture time, of which the Hold sees the running maximum,
// and where the caller uses Expire in wall time too. It counts from the arrival
// of the packet: what fills a place is as old as the place.
type Hold struct {
	sink  Sink
	limit time.Duration
	seed  maphash.Seed // for the sums of payloads that streams compare
	root  held         // of the ring: root.next is the oldest, root.prev the newest
	out   []*held      // taken, and not pushed yet
	runs  int          // of sequences, of all streams

	now      time.Time // running maximum of capture time
	wall     moment    // last wall time, 0 without
	closing  bool      // the capture is over: every time is up
	draining bool

	mostRecords, mostBytes int // in the queue

	file, n int // the last record's File and N
	serial  uint64
	records int // in the queue, places among them
	bytes   int // that the queue keeps
	stats   HoldStats
	err     error // the sink's first

	remembered int         // records that the streams of sessions remember
	remembers  map[int]int // of them, those of each session

	free      *held // by next
	freeCount int
	trees     []trees // of records that were kept, for those to come that have none
	nodes     arena[schema.Node]
	copies    arena[byte]
}

// trees is memory for the trees of a record. It grows with the largest of them, so that
// only a record on its way has one: one in the queue has what it needs in the arenas.
type trees struct{ head, body []schema.Node }

// What a slab of the arenas holds: many records, or a large one.
const (
	slabNodes = 4096
	slabBytes = 64 << 10
)

// heldTogether is how many records are made at a time: they fill what the runtime has for
// memory of that size.
const heldTogether = 36

// HoldStats counts what a Hold did.
type HoldStats struct {
	Held    int // records and places in the queue now
	Expired int // released because their time was up
	Evicted int // released because a limit was reached
	Crowded int // of these, because of the number of records and places
}

// held is a record, or a place, with its neighbours in the queue. What drain looks at
// stands together.
type held struct {
	prev, next *held
	deferred   Deferred // what waits here; nil for a record
	since      moment   // capture time of its arrival
	wall       moment   // wall time of its arrival, 0 when not known
	weight     int      // counted against HoldBytes
	serial     uint64   // tells one use from the next; 0 for a free one
	ticket     *Ticket
	after      *held // acknowledgements to follow it, by next
	nodes      *slab[schema.Node]
	copies     *slab[byte]
	owner      *Hold
	kept       bool // nodes and bytes are in the arenas
	retained   bool // by the sink

	record Record
}

// Ticket follows one record beyond its release, so that an acknowledgement that
// comes late still finds its number. It must not move while it is in use, unless
// moved is told; Forget ends that.
type Ticket struct {
	N    int   // number of the record once it is released, 0 before
	held *held // nil once it is released
}

// Place is kept in the queue for the records of one datagram. The zero Place, and
// one whose time was up, is the end of the queue.
type Place struct {
	held   *held
	serial uint64
}

// Deferred is a datagram that waits for context.
type Deferred interface {
	// Overdue is called when the time is up: what waits at p is to be decoded with
	// what is known by now, and Fill takes its records. The place is closed
	// afterwards.
	Overdue(p Place)
}

// NewHold returns a Hold in front of sink. With a limit of 0 nothing waits:
// records go straight to the sink, pending as they are.
func NewHold(sink Sink, limit time.Duration) *Hold {
	h := &Hold{sink: sink, limit: max(limit, 0), seed: maphash.MakeSeed(), mostRecords: HoldRecords, mostBytes: HoldBytes}
	h.root.next, h.root.prev = &h.root, &h.root
	h.nodes.size, h.copies.size = slabNodes, slabBytes
	return h
}

// remember counts what the streams of a session remember more.
func (h *Hold) remember(session, records int) {
	if h.remembers == nil {
		h.remembers = map[int]int{}
	}
	h.remembers[session] += records
	h.remembered += records
}

// forgetSession takes a session's share off the count, as its streams are dropped.
func (h *Hold) forgetSession(session int) {
	h.remembered -= h.remembers[session]
	delete(h.remembers, session)
}

// Bound sets how many records and places the Hold keeps, and how many bytes.
func (h *Hold) Bound(records, bytes int) { h.mostRecords, h.mostBytes = records, bytes }

// Stats returns the counters.
func (h *Hold) Stats() HoldStats {
	s := h.stats
	s.Held = h.records
	return s
}

// Take returns an empty record for the caller to fill, and to give to Push, Fill
// or Discard.
func (h *Hold) Take() *Record {
	e := h.take()
	h.out = append(h.out, e)
	return &e.record
}

// Push puts r, which Take returned, at the end. What need not wait goes to the
// sink at once; the error is the sink's first. r belongs to the Hold from here on.
func (h *Hold) Push(r *Record) error { return h.Fill(Place{}, r) }

// Fill puts r, which Take returned, at the place p, behind what was filled in
// before. Otherwise it is like Push.
func (h *Hold) Fill(p Place, r *Record) error {
	e := h.untake(r)
	if e == nil {
		panic("dissect: record is not one that Take returned")
	}
	h.see(r.Time)
	if h.root.next == &h.root && e.after == nil && !h.waits(e) {
		h.release(e) // the usual case where nothing waits
		return h.err
	}
	h.put(e, h.at(p))
	return h.drain()
}

// Discard takes back r, which Take returned and nobody wants to see.
func (h *Hold) Discard(r *Record) {
	if e := h.untake(r); e != nil {
		h.putAll(e.after, &h.root)
		h.recycle(e)
	}
}

// untake ends the time that r is out, nil for one that is not.
func (h *Hold) untake(r *Record) *held {
	i := h.index(r)
	if i < 0 {
		return nil
	}
	e, last := h.out[i], len(h.out)-1
	copy(h.out[i:], h.out[i+1:])
	h.out = h.out[:last]
	return e
}

// Reserve keeps a place at another one, or at the end, for the records of d, which keeps
// size bytes meanwhile. Without a time limit it calls d.Overdue before it returns.
func (h *Hold) Reserve(at Place, d Deferred, size int) Place {
	e := h.take()
	e.deferred = d
	e.weight = size
	p := Place{e, e.serial}
	h.link(e, h.at(at))
	h.drain()
	return p
}

// Done closes the place p: its datagram has been decoded.
func (h *Hold) Done(p Place) error {
	if p.Open() {
		h.unlink(p.held)
		h.recycle(p.held)
	}
	return h.drain()
}

// Open reports whether p is still a place of its own in the queue.
func (p Place) Open() bool { return p.held != nil && p.held.serial == p.serial }

// Follow has t follow r, which Take returned and which is not pushed yet. A
// record has one ticket: the last.
func (h *Hold) Follow(r *Record, t *Ticket) {
	h.Forget(t)
	if i := h.index(r); i >= 0 {
		e := h.out[i]
		if e.ticket != nil {
			e.ticket.held = nil
		}
		e.ticket, t.held = t, e
	}
}

// Forget ends the use of t.
func (h *Hold) Forget(t *Ticket) {
	if t.held != nil {
		t.held.ticket = nil
	}
	*t = Ticket{}
}

// moved says that t is a copy of the ticket that followed its record, and takes its place.
func (h *Hold) moved(t *Ticket) {
	if t.held != nil {
		t.held.ticket = t
	}
}

// Held returns the record that t follows as long as it has not been released, for the
// caller to change what copies of it add; else nil. The sink is not called here.
func (h *Hold) Held(t *Ticket) *Record {
	if t.held == nil {
		return nil
	}
	return &t.held.record
}

// Resolve says what became of the record that t follows. If that was released
// already, an AckRecord says it, right behind the record by, which is the
// acknowledgement; without one nothing is said. The sink is not called here but
// by the next Push, Advance or Expire.
func (h *Hold) Resolve(t *Ticket, a Ack, by *Record) {
	switch {
	case t.held != nil:
		t.held.record.Ack = a
	case t.N > 0 && by != nil:
		h.announce(t.N, a, by)
	}
}

// announce puts an AckRecord for record n behind by.
func (h *Hold) announce(n int, a Ack, by *Record) {
	e := h.take()
	r := &e.record
	r.Type, r.Acked, r.Ack = AckRecord, n, a
	r.File, r.Time, r.Digits = by.File, by.Time, by.Digits
	r.Started, r.Previous = by.Started, by.Previous
	r.Packets = append(r.Packets, by.Packets...)
	r.Session, r.Flow, r.Direction, r.Protocol = by.Session, by.Flow, by.Direction, by.Protocol
	r.Transport, r.Src, r.Dst = by.Transport, by.Src, by.Dst

	i := h.index(by)
	if i < 0 {
		h.put(e, &h.root)
		return
	}
	last := &h.out[i].after
	for *last != nil {
		last = &(*last).next
	}
	*last = e
}

// Advance tells the capture time of a packet and releases what has waited long
// enough.
func (h *Hold) Advance(t time.Time) error {
	h.see(t)
	return h.drain()
}

// Expire tells the wall time and releases what has waited long enough by it. A
// caller that reads from a live source calls it now and then; records count as
// arrived at the call before.
func (h *Hold) Expire(wall time.Time) error {
	now := momentOf(wall)
	if h.wall == 0 {
		for e := h.root.next; e != &h.root; e = e.next {
			e.wall = now
		}
	}
	h.wall = now
	return h.drain()
}

// Close releases everything: the capture is over, and no acknowledgement will
// come. The Hold is ready for the next file then.
func (h *Hold) Close() error {
	h.closing = true
	h.drain()
	h.closing = false
	h.now, h.wall = time.Time{}, 0
	return h.err
}

// drain releases from the oldest on, up to the first that has to wait longer.
func (h *Hold) drain() error {
	if h.draining { // called from Overdue: the drain that called it goes on
		return h.err
	}
	h.draining = true
	defer func() { h.draining = false }() // also where a sink panics
	for e := h.root.next; e != &h.root; e = h.root.next {
		if h.waits(e) && !h.giveUp(e) {
			break
		}
		if e.deferred != nil {
			h.overdue(e)
			continue
		}
		h.unlink(e)
		h.release(e)
	}
	return h.err
}

// waits reports whether e has something to wait for.
func (h *Hold) waits(e *held) bool {
	return e.deferred != nil || h.limit > 0 && (e.record.Ack.State == AckPending || e.record.Open)
}

// giveUp reports whether the oldest, which waits, may not do so any longer.
func (h *Hold) giveUp(e *held) bool {
	switch {
	case h.closing:
		e.record.unacknowledged()
	case momentOf(h.now)-e.since >= moment(h.limit), e.wall != 0 && h.wall-e.wall >= moment(h.limit):
		e.record.unacknowledged()
		h.stats.Expired++
	case h.records > h.mostRecords:
		h.stats.Evicted++
		h.stats.Crowded++
	case h.bytes > h.mostBytes:
		h.stats.Evicted++
	default:
		return false
	}
	return true
}

// unacknowledged notes that the time for an acknowledgement of r is up.
func (r *Record) unacknowledged() {
	if r.Ack.State == AckPending {
		r.Ack.State = AckUnacked
		r.note("never_acknowledged", "")
	}
}

// overdue has the datagram that waits at e decoded, and closes the place.
func (h *Hold) overdue(e *held) {
	p := Place{e, e.serial}
	e.deferred.Overdue(p)
	h.Done(p)
}

// at returns what the records for p stand in front of.
func (h *Hold) at(p Place) *held {
	if p.Open() {
		return p.held
	}
	return &h.root
}

// put puts e in front of at, and behind it the acknowledgements that follow it.
// With nothing to wait for it goes to the sink, as it is.
func (h *Hold) put(e, at *held) {
	after := e.after
	e.after = nil
	if at.prev == &h.root && !h.waits(e) {
		h.release(e)
	} else {
		h.keep(e)
		h.link(e, at)
	}
	h.putAll(after, at)
}

// putAll puts e, and what is chained to it, in front of at.
func (h *Hold) putAll(e, at *held) {
	for e != nil {
		next := e.next
		e.next = nil
		h.put(e, at)
		e = next
	}
}

// link puts e into the queue in front of at, whose age it has if that is a place.
func (h *Hold) link(e, at *held) {
	e.since, e.wall = momentOf(h.now), h.wall
	if at != &h.root {
		e.since, e.wall = at.since, at.wall
	}
	e.prev, e.next = at.prev, at
	e.prev.next, e.next.prev = e, e
	h.records++
	h.bytes += e.weight
}

func (h *Hold) unlink(e *held) {
	e.prev.next, e.next.prev = e.next, e.prev
	e.prev, e.next = nil, nil
	h.records--
	h.bytes -= e.weight
}

// release numbers e and hands it to the sink. After an error of the sink it only
// makes room.
func (h *Hold) release(e *held) {
	r := &e.record
	if r.File != h.file {
		h.file, h.n = r.File, 0
	}
	if r.Type == FrameRecord {
		h.n++
		r.N = h.n
	}
	if e.ticket != nil {
		e.ticket.N = r.N
		e.ticket.held, e.ticket = nil, nil
	}
	if h.err == nil {
		h.err = h.sink.Write(r)
	}
	if !e.retained {
		h.recycle(e)
	}
}

// Retain is for a sink that is given r: until Done, r stays as it is, and another goroutine may
// read it. It returns how many bytes r keeps meanwhile. It is false, and r is valid during the
// call only, where no Hold hands r over: one that was copied, or that waits in the queue.
// Retain and Done are called on the goroutine of the run.
func (r *Record) Retain() (bytes int, ok bool) {
	e := r.home
	if e == nil || &e.record != r || e.next != nil {
		return 0, false
	}
	if !e.kept {
		e.owner.keep(e)
	}
	r.Secrets = r.Secrets.Now()
	e.retained = true
	return e.weight, true
}

// Done ends what Retain has begun.
func (r *Record) Done() {
	r.home.retained = false
	r.home.owner.recycle(r.home)
}

// see moves the capture time on. It never goes back.
func (h *Hold) see(t time.Time) {
	if t.After(h.now) {
		h.now = t
	}
}

// each hands over the records that are held, oldest first, with the numbers that they will
// have if no datagram that waits brings others.
func (h *Hold) each(write func(*Record) error) error {
	file, n := h.file, h.n
	for e := h.root.next; e != &h.root; e = e.next {
		if e.deferred != nil {
			continue
		}
		if e.record.File != file {
			file, n = e.record.File, 0
		}
		if e.record.Type == FrameRecord {
			n++
			e.record.N = n
		}
		err := write(&e.record)
		if e.record.N = 0; err != nil {
			return err
		}
	}
	return nil
}

// Stream returns the number of another stream, for Record.Stream.
func (h *Hold) Stream() int {
	h.runs++
	return h.runs
}

// index finds r among those that were taken: nearly always the last one.
func (h *Hold) index(r *Record) int {
	for i := len(h.out) - 1; i >= 0; i-- {
		if &h.out[i].record == r {
			return i
		}
	}
	return -1
}

// take returns an empty one, from the free ones if there are any.
func (h *Hold) take() *held {
	if h.free == nil {
		h.more()
	}
	e := h.free
	h.free = e.next
	h.freeCount--
	e.next = nil
	h.serial++
	e.serial = h.serial
	r := &e.record
	head, body := r.Head.Nodes, r.Body.Nodes
	if last := len(h.trees) - 1; cap(head)+cap(body) == 0 && last >= 0 {
		head, body = h.trees[last].head, h.trees[last].body
		h.trees = h.trees[:last]
	}
	r.clear()
	r.Head.Nodes, r.Body.Nodes, r.home = head, body, e
	return e
}

// more makes free ones.
func (h *Hold) more() {
	made := new([heldTogether]held)
	for i := range made {
		made[i].owner, made[i].next = h, h.free
		h.free = &made[i]
	}
	h.freeCount += len(made)
}

// recycle ends the use of e.
func (h *Hold) recycle(e *held) {
	r := &e.record
	if e.ticket != nil {
		e.ticket.held = nil
		e.ticket = nil
	}
	if e.kept {
		h.nodes.done(e.nodes)
		h.copies.done(e.copies)
		e.kept, e.nodes, e.copies = false, nil, nil
		r.Head.Nodes, r.Body.Nodes = nil, nil // they are the arena's
	}
	r.Head.Reset(nil)
	r.Body.Reset(nil)
	r.Secrets = nil // which keeps a session alive
	e.serial, e.weight, e.deferred, e.after = 0, 0, nil, nil
	if h.freeCount >= h.mostRecords {
		return
	}
	h.freeCount++
	e.next = h.free
	h.free = e
}

// keep copies what e's record borrows, and its trees, into the arenas.
//
// NB: Body.Data starts where Raw does. It may be a whole datagram, of which only
// what Raw and the nodes cover is kept. Rest is copied apart, so that it need not
// be the end of Raw.
func (h *Hold) keep(e *held) {
	r := &e.record
	data := r.Raw
	if len(r.Body.Data) > len(data) {
		if n := extent(&r.Body); n > len(data) {
			data = r.Body.Data[:n]
		}
	}
	var own []byte
	own, e.copies = h.copies.room(len(data) + len(r.Rest))
	copy(own[copy(own, data):], r.Rest)
	r.Rest = own[len(data):]
	r.Body.Data = slices.Clip(own[:min(len(data), len(r.Body.Data))])
	r.Raw = slices.Clip(own[:len(r.Raw)])
	r.Head.Data = r.Raw

	heads := len(r.Head.Nodes)
	var nodes []schema.Node
	nodes, e.nodes = h.nodes.room(heads + len(r.Body.Nodes))
	copy(nodes[copy(nodes, r.Head.Nodes):], r.Body.Nodes)
	if cap(r.Head.Nodes)+cap(r.Body.Nodes) > 0 {
		h.trees = append(h.trees, trees{r.Head.Nodes[:0], r.Body.Nodes[:0]})
	}
	r.Head.Nodes, r.Body.Nodes = nodes[:heads:heads], nodes[heads:]

	e.kept = true
	e.weight = len(own) + nodeBytes*len(nodes)
	if r.Err != nil {
		own := *r.Err // it is a decoder's, and used again
		r.Err = &own
	}
}

// extent returns how many bytes of its data the nodes of t refer to.
func extent(t *schema.Tree) int {
	end := 0
	for i := range t.Nodes {
		n := &t.Nodes[i]
		end = max(end, int(n.Off)+int(n.Len), int(n.Body)+8*int(n.BodyLen))
	}
	return min((end+7)/8, len(t.Data))
}

// clear empties r and keeps its memory.
func (r *Record) clear() {
	packets, notes := r.Packets[:0], r.Notes[:0]
	*r = Record{} // NB: alone, so that it is done in place
	r.Packets, r.Notes = packets, notes
	r.Opcode, r.Envelope, r.Ack.RTT = -1, NoEnvelope, -1
}

// note adds a remark to r.
func (r *Record) note(code, text string) {
	r.Notes = append(r.Notes, Note{Code: code, Text: text})
}
