package dissect

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"opscope/reassembly"
	"opscope/schema"
	"opscope/schema/wire"
)

// Assignment gives a port to a protocol, as `-d udp.port==7777,wulfram` does.
type Assignment struct {
	Transport schema.Transport
	Port      uint16
	Protocol  Protocol
}

// Options say how packets are dissected. The zero Options know no protocol.
type Options struct {
	Protocols []Protocol   // those looked for; the first that fits is taken
	Assigned  []Assignment // ports that belong to one of them, whatever they carry
	Only      Protocol     // every flow is this protocol's
	// Hold is how long output waits for an acknowledgement or for context, in
	// capture time, 0 not at all.
	Hold time.Duration
	Live bool // Hold counts wall time too
	// Copies has packets dissected again that were seen at another interface, or on the way
	// out and in.
	Copies bool
	// Schema changes a schema as it is loaded, as with a user's own files; nil
	// leaves all as they are.
	Schema func(*schema.Protocol) (*schema.Protocol, error)
	// Anew prepares Schema for other layouts, after Pipeline.Reload. It tells of its error
	// itself, and false leaves the schemas as they are.
	Anew   func() bool
	File   int // index of the first capture among the inputs
	Limits Limits
	Check  bool // tell of each packet with a wrong checksum
	Look   Look // how much of the records anybody looks at
	// Traffic takes what the packets of each flow amounted to, once it is forgotten, its
	// session begins anew, or the capture ends; nil for nobody. It is valid during the call.
	Traffic func(*Traffic)
	// Forget has Result be without the sessions that are over, for whom nobody asks.
	Forget bool
	// Guard has a panic in a protocol's code cost one record, see Result.Defects. Tests
	// leave it off.
	Guard bool
}

// Pipeline dissects captures, one after the other, into one sink:
//
//	source -> link -> IP fragments -> flow -> TCP stream -> frame    -> protocol -> hold -> sink
//	                                       -> datagram               ->
type Pipeline struct {
	options Options
	limits  Limits
	hold    *Hold
	tally   tally
	file    int
	running *run        // for Snapshot
	stale   atomic.Bool // the schemas are to be loaded anew
}

// NewPipeline returns a pipeline in front of a sink.
func NewPipeline(sink Sink, o Options) *Pipeline {
	p := &Pipeline{options: o, limits: o.Limits.filled(), file: o.File}
	p.tally.sink = sink
	p.hold = NewHold(&p.tally, o.Hold)
	p.hold.Bound(p.limits.HeldRecords, p.limits.HeldBytes)
	return p
}

// tally counts the records on their way to the sink.
type tally struct {
	sink    Sink
	summary *Summary
	// records are those of a protocol that the summary does not have yet: most follow another
	// one of theirs, and are counted without looking the protocol up.
	protocol string
	records  int
}

func (t *tally) Write(r *Record) error {
	if r.Type == FrameRecord {
		if r.Protocol != t.protocol {
			t.settle()
			t.protocol = r.Protocol
		}
		t.records++
	}
	t.summary.addContent(r)
	return t.sink.Write(r)
}

// settle adds to the summary what it does not have yet.
func (t *tally) settle() {
	if t.records > 0 {
		t.summary.addRecords(t.protocol, t.records)
		t.records = 0
	}
}

func (t *tally) Flush() error { return t.sink.Flush() }

// Result is what a capture held, beside its records.
type Result struct {
	Summary  Summary
	Sessions []*Session // with what they have learned: the open ones and the last that are over
	Dropped  int        // sessions that were over earlier, and are not among them
	Defects  []Defect   // of the protocols' code, each place once
}

// Run dissects one capture up to its end. Each capture has its own state. Beside an
// error of the source, what came before it has been written.
func (p *Pipeline) Run(ctx context.Context, src Source) (*Result, error) {
	r := &run{
		Pipeline: p, names: map[Protocol]string{}, schemas: map[Protocol]*schema.Protocol{}, below: map[Protocol]*schema.Protocol{},
		live: map[hosts][]*Session{}, expected: map[netip.AddrPort][]*Session{},
		scratch: Scratch{look: p.options.Look},
	}
	if err := r.load(); err != nil {
		return nil, err
	}
	r.link.Owned = r.owned
	r.limit()
	before := p.hold.Stats()
	p.tally.summary, p.running = &r.summary, r
	err := r.loop(ctx, src)
	p.running = nil
	if end := r.end(); err == nil {
		err = end
	}
	p.file++
	r.reached(before)
	return &Result{Summary: r.summary, Sessions: r.allSessions(), Dropped: r.dropped, Defects: r.defects}, err
}

// Reload has the schemas loaded anew, for the sessions that open from now on; how a flow is
// recognised stays as it is. It may be called while Run runs.
func (p *Pipeline) Reload() { p.stale.Store(true) }

// reload loads the schemas anew if that was asked for.
func (r *run) reload() {
	if r.stale.CompareAndSwap(true, false) && r.options.Anew != nil && r.options.Anew() {
		clear(r.schemas)
		clear(r.below)
		r.sink(r.load())
	}
}

// run is the state of one capture.
type run struct {
	*Pipeline
	names     map[Protocol]string
	schemas   map[Protocol]*schema.Protocol // those loaded
	below     map[Protocol]*schema.Protocol // of those that another one carries
	ports     map[portKey]Protocol
	link      LinkDecoder
	headers   Headers
	packet    Packet
	packets   []int              // numbers of those that carry what is being dissected
	parts     []reassembly.Piece // where each of them lies, for fragments
	assembler reassembly.Assembler
	fragments reassembly.Defragmenter
	copies    copies
	flows     flowTable
	clock     time.Time // the latest time of any packet
	sweeps    time.Time // when next
	started   time.Time // of the first packet
	previous  time.Time // of the packet before
	now       time.Time // of this one

	sessions int                  // ever
	live     map[hosts][]*Session // those not closed
	closed   []*Session           // those that are over and may have flows, the longest over first
	over     []*Session           // those without a flow, at most maxSessions
	dropped  int                  // of those
	expected map[netip.AddrPort][]*Session
	homeless []*Flow // flows without a session whose datagrams wait

	// Used again and again.
	found    []*Session
	carriers []int
	spare    [][]byte
	buffered int // bytes in the buffers of streams
	frame    Frame
	arrived  Datagram
	scratch  Scratch

	place      Place // where records go: the end, or the place of a datagram that waited
	summary    Summary
	foreign    error // about the first packet of a link type that is not supported
	defects    []Defect
	lastDefect string // its place
	covered    int64  // end of the last record emitted by a guarded call
	err        error  // the sink's first
}

// Scratch is what the sessions of a run decode with, one after the other. It is
// nobody's between two calls of a Conversation.
type Scratch struct {
	Decoder schema.Decoder
	Trial   schema.Decoder // for looking ahead
	Tree    schema.Tree    // likewise

	look Look
}

// Look says how much of the records anybody looks at but the session.
func (s *Scratch) Look() Look { return s.look }

// Follows reports whether anybody asks what became of a record, or what its sequence tells.
func (s *Scratch) Follows() bool { return s.look < LookKind }

// Body decodes a body or an envelope into t as schema.Decoder.Decode does, as far as anybody
// looks at it: the whole of it if the session itself does. All that Decoder tells is the same.
func (s *Scratch) Body(p *schema.Protocol, message string, l *schema.Layout, t *schema.Tree, from, to int, whole bool) *wire.Error {
	d := &s.Decoder
	switch {
	case whole || s.look == LookWhole:
		return d.Decode(p, message, l, t, from, to)
	case s.look >= LookNothing:
		return d.Skim(p, message, l, t.Data, from, to)
	}
	d.Outline = OutlineValues
	err := d.Decode(p, message, l, t, from, to)
	d.Outline = 0
	return err
}

// Head decodes an envelope, which has no context, into t as Body does. Whoever looks only at
// kinds asks nothing of one that is all there.
func (s *Scratch) Head(p *schema.Protocol, e *schema.Envelope, t *schema.Tree, from int, short wire.Kind) *wire.Error {
	d := &s.Decoder
	if s.look >= LookKind && from+e.Size() <= len(t.Data) {
		d.Remarks = d.Remarks[:0]
		return nil
	}
	d.State, d.Envelope, d.Short = nil, nil, short
	return s.Body(p, "envelope", e.Layout, t, 8*from, 8*len(t.Data), false)
}

type portKey struct {
	transport schema.Transport
	port      uint16
}

// load makes the table of ports. A schema that nobody has changed is loaded when it is
// first needed: most captures are of one protocol.
func (r *run) load() error {
	r.ports = map[portKey]Protocol{}
	for _, p := range r.options.Protocols {
		head, err := p.Head()
		if err == nil && r.options.Schema != nil {
			if err = r.loadSchema(p); err == nil {
				head = r.schemas[p].Head()
			}
		}
		if err != nil {
			return err
		}
		r.names[p] = head.Name
		for _, port := range head.Ports {
			if k := (portKey{port.Transport, uint16(port.Number)}); r.ports[k] == nil {
				r.ports[k] = p
			}
		}
	}
	for _, a := range r.options.Assigned {
		r.ports[portKey{a.Transport, a.Port}] = a.Protocol
	}
	return nil
}

// loadSchema loads the schema of a protocol, and of the one below it, unless they are.
func (r *run) loadSchema(p Protocol) error {
	if r.schemas[p] != nil {
		return nil
	}
	s, err := r.changed(p.Schema())
	if err == nil && s.Over != "" {
		r.below[p], err = r.changed(schema.Builtin(s.Over))
	}
	r.schemas[p] = s
	return err
}

// changed returns a schema that was loaded as the options will have it.
func (r *run) changed(s *schema.Protocol, err error) (*schema.Protocol, error) {
	if err == nil && r.options.Schema != nil {
		return r.options.Schema(s)
	}
	return s, err
}

// owned reports whether a UDP port belongs to a protocol.
func (r *run) owned(port uint16) bool { return r.ports[portKey{schema.UDP, port}] != nil }

// loop is the one loop: a packet in, its records out.
func (r *run) loop(ctx context.Context, src Source) error {
	for r.err == nil {
		if r.summary.Packets&0xff == 0 {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			r.reload()
		}
		if err := src.Next(&r.packet); err != nil {
			if errors.Is(err, ErrIdle) {
				r.idle()
				continue
			}
			if errors.Is(err, io.EOF) {
				err = r.foreign
			}
			return err
		}
		r.take(&r.packet)
	}
	return r.err
}

// idle lets time pass although no packet comes.
func (r *run) idle() {
	r.reload()
	if r.options.Live {
		r.sink(r.hold.Expire(time.Now()))
		r.sink(r.tally.Flush())
	}
}

// take dissects one packet.
func (r *run) take(p *Packet) {
	if r.summary.AddPacket(p); r.summary.Packets == 1 {
		r.started, r.now = p.Time, p.Time
	}
	r.previous, r.now = r.now, p.Time
	if p.Time.After(r.clock) {
		r.clock = p.Time
	}
	if p.Dropped > 0 {
		r.event(&Carrier{Packets: []int{p.Number}, Time: p.Time, Digits: p.Digits}, "capture_dropped",
			strconv.Itoa(p.Dropped)+" packets that were not captured, before packet "+strconv.Itoa(p.Number))
	}
	r.assembler.Tick(p.Time)
	r.orphans(r.fragments.Tick(p.Time))
	r.sink(r.hold.Advance(p.Time))
	if r.options.Live {
		r.sink(r.hold.Expire(time.Now()))
	}
	r.sweep()
	r.leave()
	r.crowd()

	h := &r.headers
	if err := r.link.Decode(h, p); err != nil {
		r.undecodable(err)
		return
	}
	if !r.options.Copies && r.copies.again(h, p) {
		r.summary.Copies++
		return
	}
	r.packets, r.parts = append(r.packets[:0], p.Number), nil
	if h.Content == FragmentContent && !r.fragment(h) {
		return
	}
	switch h.Content {
	case TCPContent:
		r.count(r.segment(h))
	case UDPContent:
		r.count(r.datagram(h))
	case ICMPContent:
		r.trouble(h)
	}
}

// undecodable counts a packet whose headers are broken. Packets of a link type that
// is not supported are passed over; the run ends with an error that names it.
func (r *run) undecodable(err error) {
	var e *wire.Error
	if errors.As(err, &e) {
		c := Carrier{Packets: []int{r.packet.Number}, Time: r.packet.Time, Digits: r.packet.Digits}
		rec := r.record(&c, EventRecord)
		rec.Code, rec.Err, rec.Text = "bad_packet", e, err.Error()
		r.push(rec)
		return
	}
	r.summary.Unsupported++
	if r.foreign == nil {
		r.foreign = err
	}
}

// fragment takes a piece of an IP packet, and goes on with the whole one in h once
// it is there.
func (r *run) fragment(h *Headers) bool {
	d, verdict := r.fragments.Add(&reassembly.Fragment{
		Key: fragmentKey(h), Offset: h.Piece.Offset, More: h.Piece.More, Payload: h.Payload, Length: h.PayloadLength,
		Packet: r.packet.Number, Time: r.packet.Time,
	})
	if verdict != reassembly.Complete {
		return false
	}
	r.summary.Conflicts += d.Conflicts
	r.packets, r.parts = r.packets[:0], d.Pieces
	for _, p := range d.Pieces {
		r.packets = append(r.packets, p.Packet)
	}
	if err := r.link.DecodeTransport(h, h.Protocol, d.Payload, d.Length); err != nil {
		r.undecodable(err)
		return false
	}
	return true
}

// fragmentKey says which datagram a fragment is of.
func fragmentKey(h *Headers) reassembly.FragmentKey {
	return reassembly.FragmentKey{
		Src: h.Src, Dst: h.Dst, ID: h.Piece.ID, Link: uint32(h.Tunnel) ^ uint32(h.Tunnel>>32), Protocol: h.Protocol,
	}
}

// orphans reports datagrams of which only a part was captured.
func (r *run) orphans(list []reassembly.Orphan) {
	for _, o := range list {
		c := Carrier{Time: o.Time, Digits: r.packet.Digits}
		for _, p := range o.Pieces {
			c.Packets = append(c.Packets, p.Packet)
		}
		rec := r.record(&c, EventRecord)
		rec.Code = "fragments_incomplete"
		rec.Text = strconv.Itoa(o.Bytes) + " bytes of a fragmented datagram captured: " + o.Loss.String()
		rec.Src, rec.Dst = netip.AddrPortFrom(o.Key.Src, 0), netip.AddrPortFrom(o.Key.Dst, 0)
		r.push(rec)
	}
}

// flow returns the flow of a packet, a new one if need be.
func (r *run) flow(h *Headers, t schema.Transport) (*Flow, reassembly.Side) {
	f, side := r.flows.find(h, t)
	if f == nil {
		if len(r.flows.flows) >= r.limits.Flows {
			r.evict(r.flows.first, LimitFlows)
		}
		f = r.flows.add(h, t)
		f.run = r
		if t == schema.TCP {
			f.streams = []stream{{flow: f, side: 0, due: never}, {flow: f, side: 1, due: never}}
		}
		r.recognizePort(f)
	}
	r.flows.touch(f, r.clock)
	return f, side
}

// datagram takes a UDP packet, and returns its flow and who sent it.
func (r *run) datagram(h *Headers) (*Flow, reassembly.Side) {
	f, side := r.flow(h, schema.UDP)
	if !r.decide(f, side, h.Payload) {
		f.unread += int64(len(h.Payload))
		return f, side
	}
	r.summary.UndecodedBytes += f.unread
	f.unread = 0
	r.verify(f, side, h)
	d := &r.arrived
	*d = Datagram{
		Carrier: Carrier{
			Flow: f, Direction: f.direction(side), Packets: r.packets, Time: r.packet.Time, Digits: r.packet.Digits, side: side,
			passage: h.Passage(),
		},
		Data: h.Payload, Length: h.PayloadLength, Pieces: r.parts,
	}
	if len(f.queue) > 0 || !r.decode(f, d, Place{}, false) {
		r.wait(f, d)
		if f.Session == nil {
			r.retry(f)
		}
	}
	return f, side
}

// segment takes a TCP packet, and returns its flow and who sent it.
func (r *run) segment(h *Headers) (*Flow, reassembly.Side) {
	f, side := r.flow(h, schema.TCP)
	if f.state == ignored {
		if h.Flags&SYN == 0 {
			return f, side
		}
		f = r.renew(f, h) // it may be something else this time
	}
	g := reassembly.Segment{
		Side: side, Flags: reassembly.Flags(h.Flags), Seq: h.Seq, Ack: h.Ack,
		Payload: h.Payload, Length: h.PayloadLength, Packet: r.packet.Number, Time: r.packet.Time,
	}
	r.verify(f, side, h)
	if f.conn == nil {
		f.conn = r.assembler.Connection(f)
	}
	if !f.conn.Add(&g) {
		f = r.reuse(f, h)
		f.conn.Add(&g)
	}
	if f.state == accepted && len(g.Payload) > 0 && f.conn.Waits(side) {
		f.streams[side].berth()
	}
	if f.done = f.conn != nil && f.conn.Done(); f.done && f.Session != nil && !f.Session.has(schema.TCP) {
		r.close(f.Session, r.carrier(f), f.ending)
	}
	return f, side
}

// verify counts a packet of a known protocol with a wrong checksum.
func (r *run) verify(f *Flow, side reassembly.Side, h *Headers) {
	if f.state != accepted && f.protocol == nil {
		return
	}
	layer, given := h.wrongSum()
	if layer == "" {
		return
	}
	if r.summary.WrongSums++; r.options.Check {
		c := r.carrier(f)
		c.Direction, c.side = f.direction(side), side
		r.event(c, "wrong_checksum", layer+" checksum 0x"+strconv.FormatUint(uint64(given), 16))
	}
}

// carrier names a flow, and the packets being dissected.
func (r *run) carrier(f *Flow) *Carrier {
	return &Carrier{Flow: f, Packets: r.packets, Time: r.packet.Time, Digits: r.packet.Digits}
}

// reuse ends a connection whose endpoints begin another one, and returns that.
func (r *run) reuse(f *Flow, h *Headers) *Flow {
	f.finish(0)
	f.finish(1)
	f.done = true
	if s := f.Session; s != nil && !s.has(schema.TCP) {
		r.close(s, r.carrier(f), "port reused")
	}
	n := r.renew(f, h)
	n.conn = r.assembler.Connection(n)
	return n
}

// renew puts a new flow in the place of one with the same ends.
func (r *run) renew(f *Flow, h *Headers) *Flow {
	r.forget(f, "port reused")
	n, _ := r.flow(h, f.Transport)
	return n
}

// trouble reports an ICMP error about a flow. What it quotes is no traffic.
func (r *run) trouble(h *Headers) {
	text := h.Trouble()
	q := &h.Message.Quote
	if text == "" || !q.Src.IsValid() {
		return
	}
	t := schema.UDP
	if q.Protocol == ipTCP {
		t = schema.TCP
	}
	f, side := r.flows.find(&Headers{Src: q.Src, Dst: q.Dst, SrcPort: q.SrcPort, DstPort: q.DstPort, Tunnel: h.Tunnel}, t)
	if f == nil || f.state != accepted {
		return
	}
	r.event(&Carrier{
		Flow: f, Direction: f.direction(side), Packets: r.packets, Time: r.packet.Time, Digits: r.packet.Digits, side: side,
	}, "icmp_error", text)
}

// sweep forgets flows of which nothing more is expected.
func (r *run) sweep() {
	if r.clock.Before(r.sweeps) {
		return
	}
	r.sweeps = r.clock.Add(closedFlow / 4)
	for f := r.flows.first; f != nil && r.clock.Sub(f.last) > closedFlow; {
		next := f.next
		if f.forgotten(r.clock) {
			r.forget(f, "idle")
		}
		f = next
	}
}

// leave forgets the flows of sessions that are over once none of them brings anything: what
// such a session has learned is most of what a flow takes.
func (r *run) leave() {
	for len(r.closed) > 0 && r.clock.Sub(r.closed[0].ended) > closedSession {
		s := r.closed[0]
		if r.closed = r.closed[1:]; !s.closed { // it began anew
			continue
		}
		for _, f := range s.Flows {
			if s.ended.Before(f.last) {
				s.ended = f.last
			}
		}
		if r.clock.Sub(s.ended) <= closedSession {
			r.closed = append(r.closed, s)
			continue
		}
		for _, f := range slices.Clone(s.Flows) {
			r.forget(f, "idle")
		}
	}
}

// crowd makes room where the sessions remember too much: all flows of those that were
// quiet the longest go. It goes on until an eighth is free, so that it has something to
// do now and then only.
func (r *run) crowd() {
	most := r.limits.Remembered
	if r.hold.remembered <= most {
		return
	}
	for f := r.flows.first; f != nil && r.hold.remembered > most-most/8; {
		s := f.Session
		if s == nil || r.hold.remembers[s.ID] == 0 || s == r.flows.last.Session {
			f = f.next
			continue
		}
		for _, x := range slices.Clone(s.Flows) {
			r.evict(x, LimitRemembered)
		}
		f = r.flows.first
	}
}

// evict makes room for another flow, because of a limit.
func (r *run) evict(f *Flow, limit string) {
	r.summary.reached(limit, 1)
	if f.state == accepted {
		c := Carrier{Flow: f, Time: r.packet.Time, Digits: r.packet.Digits}
		r.event(&c, "evicted", "forgotten after "+r.clock.Sub(f.last).Truncate(time.Second).String()+" of silence, to make room")
	}
	r.forget(f, "evicted")
}

// forget drops a flow, after what it still holds, and with its last flow a session.
func (r *run) forget(f *Flow, reason string) {
	r.finish(f)
	r.account(f)
	r.flows.remove(f)
	if s := f.leave(); s != nil {
		r.release(s, &Carrier{Flow: f, Time: r.packet.Time, Digits: r.packet.Digits}, reason)
	}
}

// finish hands on what a flow still holds.
func (r *run) finish(f *Flow) {
	if f.conn != nil {
		f.conn.Flush()
	}
	f.finish(0)
	f.finish(1)
	if len(f.queue) > 0 {
		last := f.queue[len(f.queue)-1]
		last.Overdue(last.place)
		r.hold.Done(last.place)
	}
	if f.state == undecided && f.protocol == nil {
		r.summary.OtherFlows++
	}
}

// end finishes the capture.
func (r *run) end() error {
	r.orphans(r.fragments.Flush())
	for f := r.flows.first; f != nil; f = f.next {
		r.finish(f)
	}
	for f := r.flows.first; f != nil; f = f.next {
		r.account(f)
	}
	r.sink(r.hold.Close())
	r.tally.settle()
	r.hold.remembered, r.hold.remembers, r.hold.runs = 0, nil, 0 // the next capture has sessions of its own
	return r.err
}

// sink keeps the sink's first error, which ends the run.
func (r *run) sink(err error) {
	if r.err == nil {
		r.err = err
	}
}

// record returns an empty record of some type, with what is known of its place.
func (r *run) record(c *Carrier, t Type) *Record {
	if f := c.Flow; f != nil && f.Session != nil && t != SessionRecord {
		f.Session.announce()
	}
	rec := r.hold.Take()
	rec.Type, rec.File, rec.Time, rec.Digits = t, r.file, c.Time, c.Digits
	rec.Started, rec.Previous = r.started, r.previous
	rec.Packets = append(rec.Packets, c.Packets...)
	rec.Direction, rec.Passage = c.Direction, c.passage
	if f := c.Flow; f != nil {
		rec.Flow, rec.Transport = f.ID, f.Transport
		rec.Src, rec.Dst = f.Ends[c.side], f.Ends[c.side.Peer()]
		if f.conn != nil {
			rec.Zero = f.conn.Zero(c.side)
		}
		if s := f.Session; s != nil {
			rec.Session, rec.Protocol = s.ID, s.Name
			rec.Secrets = &s.secrets
		}
	}
	return rec
}

// frameRecord returns an empty record of a frame or of a record in a datagram.
func (r *run) frameRecord(c *Carrier) *Record {
	rec := r.record(c, FrameRecord)
	if c.passage.Presumed {
		rec.note("presumed_length", "")
	}
	return rec
}

// push hands on a record.
func (r *run) push(rec *Record) { r.sink(r.hold.Fill(r.place, rec)) }

// event reports something that happened to a flow.
func (r *run) event(c *Carrier, code, text string) {
	rec := r.record(c, EventRecord)
	rec.Code, rec.Text = code, text
	r.push(rec)
}

// sessionRecord reports that a session begins or ends.
func (r *run) sessionRecord(s *Session, c *Carrier, state, reason string) {
	rec := r.record(c, SessionRecord)
	rec.Session, rec.Protocol = s.ID, s.Name
	rec.Client, rec.Server = s.Client, s.Server
	rec.Code, rec.Text, rec.Joined = state, reason, s.Joined
	r.push(rec)
}
