// Package wulfram dissects the game protocol of Wulfram II: frames over TCP, and
// over UDP datagrams of records whose envelopes a handshake decides.
//
// The layouts are in schema/protocols/wulfram. Here is what a session learns and
// how its datagrams are walked; facts.md of the protocol names the sources, and
// sections given in comments are its.
package wulfram

import (
	"slices"

	"opscope/dissect"
	"opscope/schema"
	"opscope/schema/wire"
)

// Protocol is Wulfram II.
type Protocol struct{}

// Head returns what is known without the layouts.
func (Protocol) Head() (schema.Head, error) { return schema.BuiltinHead("wulfram") }

// Schema returns the built-in layouts.
func (Protocol) Schema() (*schema.Protocol, error) { return schema.Builtin("wulfram") }

// Opcodes that a session learns from, or answers with.
const (
	opDiagnostic  = 0x00
	opIgnore      = 0x01
	opAck         = 0x02
	opHandshake   = 0x03
	opSetStart    = 0x04
	opRoot        = 0x08
	opHello       = 0x13
	opBehavior    = 0x24
	opTranslation = 0x32
	lastControl   = 0x07 // rejected over TCP from 0x01 on
)

// Subcommands of HELLO.
const (
	helloVersion = 0
	helloUDP     = 1 // from a server: its UDP port; from a client: the key
	helloKey     = 2 // from a server
)

// Recognize takes a stream that begins with a HELLO, and a datagram that begins
// with a ROOT, the key or a handshake: what a session opens with.
func (p Protocol) Recognize(w *dissect.Scratch, t schema.Transport, data []byte) (schema.Sender, dissect.Recognition) {
	by, ok := p.opens(w, t, data)
	if !ok {
		return by, dissect.Foreign
	}
	return by, dissect.Opening
}

// opens reports whether a session opens like that.
func (p Protocol) opens(w *dissect.Scratch, t schema.Transport, data []byte) (schema.Sender, bool) {
	s, err := p.Schema()
	if err != nil {
		return schema.AnySender, false
	}
	if t == schema.TCP {
		f, err := s.Framing("tcp").Cut(data)
		if err != nil || f.Opcode != opHello {
			return schema.AnySender, false
		}
		return recognizeHello(w, s, data[:f.Size], f.Head)
	}
	if len(data) == 0 {
		return schema.AnySender, false
	}
	switch data[0] {
	case opRoot:
		return schema.Client, decodes(w, s, schema.Client, data, 1) >= 0
	case opHello:
		return recognizeHello(w, s, data, 1)
	case opHandshake:
		return schema.AnySender, decodes(w, s, schema.Client, data, 1) == len(data)
	case opDiagnostic:
		// A client may put a diagnostic in front of its ROOT.
		if n := decodes(w, s, schema.Client, data, 1); n > 0 && n < len(data) && data[n] == opRoot {
			return schema.Client, decodes(w, s, schema.Client, data[n:], 1) >= 0
		}
	}
	return schema.AnySender, false
}

// recognizeHello tells who sends a HELLO by what fits it. A version is echoed by
// some servers and tells nothing, except that a client names it first.
func recognizeHello(w *dissect.Scratch, s *schema.Protocol, data []byte, head int) (schema.Sender, bool) {
	client := decodes(w, s, schema.Client, data, head) == len(data)
	server := decodes(w, s, schema.Server, data, head) == len(data)
	switch {
	case len(data) > head && data[head] > 3:
		return schema.AnySender, false
	case client && server && data[head] == helloVersion:
		return schema.Client, true
	case client && server:
		return schema.AnySender, true
	case client:
		return schema.Client, true
	case server:
		return schema.Server, true
	}
	return schema.AnySender, false
}

// decodes returns where the record at the start of data ends, or -1 when its
// layout does not fit; its fields are in w. Only layouts that need no table are
// asked for.
func decodes(w *dissect.Scratch, s *schema.Protocol, by schema.Sender, data []byte, head int) int {
	p := s.Packet(uint64(data[head-1]), by, schema.UDP)
	if p == nil || len(p.Of(by)) == 0 {
		return -1
	}
	w.Tree.Reset(data)
	w.Trial.State, w.Trial.Short = nil, wire.Malformed
	if err := w.Trial.Decode(s, p.Name, p.Of(by)[0], &w.Tree, 8*head, 8*len(data)); err != nil {
		return -1
	}
	return w.Trial.End / 8
}

// Open begins a session.
func (Protocol) Open(s *dissect.Session) dissect.Conversation {
	p := s.Schema()
	c := &conversation{session: s, schema: p, scratch: s.Scratch(), tcp: p.Framing("tcp"), udp: p.Framing("udp")}
	c.state = p.NewState()
	for m := range c.envelopes {
		c.envelopes[m] = c.udp.Modes[m]
	}
	c.sequenced = c.envelopes[1]
	c.client.init(c, schema.Client)
	c.server.init(c, schema.Server)
	return c
}

// conversation is what one session has learned.
type conversation struct {
	session *dissect.Session
	schema  *schema.Protocol
	scratch *dissect.Scratch
	tcp     *schema.Framing
	udp     *schema.Framing
	state   *schema.State

	envelopes [4]*schema.Envelope // by mode, the least ones
	sequenced *schema.Envelope    // of modes 1 and 3

	client, server half
	key            string // of the session, which the client echoes over UDP
	assumed        bool   // the stated defaults stand in for tables not learned
	path           path   // of the datagram that is being walked
}

// side returns what is known of one direction.
func (c *conversation) side(d dissect.Direction) *half {
	if d == dissect.ServerToClient {
		return &c.server
	}
	return &c.client
}

// Cut finds a frame.
func (c *conversation) Cut(_ dissect.Direction, data []byte) (schema.Frame, *wire.Error) {
	return c.tcp.Cut(data)
}

// Fault says why data does not begin with a whole frame.
func (c *conversation) Fault(_ dissect.Direction, data []byte) *wire.Error {
	_, err := c.tcp.Find(data, c.schema.Name)
	return err
}

// Doubt doubts no frame: it has told its size.
func (c *conversation) Doubt(dissect.Direction, []byte, []byte) *wire.Error { return nil }

// Plausible finds a frame convincing whose opcode is one that d brings over TCP, and
// whose body the opcode's layout reads without a remark. Only zeros may follow,
// which LOGIN and BEHAVIOR have (section 12, item 17). A control, which nobody has
// seen there, is not plausible: small numbers with zeros around them look like one.
func (c *conversation) Plausible(d dissect.Direction, frame []byte) dissect.Plausibility {
	by := d.Sender()
	p := c.schema.Packet(uint64(frame[2]), by, schema.TCP)
	if p == nil || p.Opcode <= lastControl {
		return dissect.Implausible
	}
	layouts := p.Of(by)
	if len(layouts) == 0 {
		return dissect.Possible
	}
	for _, l := range layouts {
		w := c.scratch
		w.Trial.State, w.Trial.Short = c.state, wire.Malformed
		err := w.Trial.Skim(c.schema, p.Name, l, frame, 8*c.tcp.Envelope.Size(), 8*len(frame))
		if _, missing := w.Trial.Missing(); missing {
			return dissect.Possible
		}
		if err == nil && len(w.Trial.Remarks) == 0 && zeros(frame[min((w.Trial.End+7)/8, len(frame)):]) {
			return dissect.Convincing
		}
	}
	return dissect.Implausible
}

func zeros(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 })
}

// Frame decodes a TCP frame.
func (c *conversation) Frame(f *dissect.Frame) {
	if f.Missing > 0 && !c.reread(f) {
		return
	}
	c.learnRole(&f.Carrier, f.Opcode, schema.TCP)
	r := c.session.Record(&f.Carrier)
	r.Raw, r.Size, r.Offset = f.Data, f.Size, f.Offset
	r.Opcode = int(f.Opcode)
	r.Envelope.Length = f.Length
	r.Body.Reset(f.Data)
	if f.Opcode >= opIgnore && f.Opcode <= lastControl {
		r.Note("control_on_tcp", "")
	}
	c.scratch.Decoder.Short = wire.Malformed
	if f.Missing > 0 {
		c.scratch.Decoder.Short = f.Short
		r.Note("not_captured", wire.Bits(8*f.Missing)+" of it")
	}
	c.useDefaults(c.session.Joined)
	end, ok := c.body(r, &f.Carrier, schema.TCP, f.Head, len(f.Data), true)
	if !ok {
		// What a stream brings it brings in order: the table has been lost.
		c.useDefaults(true)
		r.Reread()
		end, _ = c.body(r, &f.Carrier, schema.TCP, f.Head, len(f.Data), true)
	}
	if r.Err == nil && end < len(f.Data) && len(r.Rest) == 0 {
		r.Rest = f.Data[end:]
		r.Note("trailing_bytes", "")
	}
	if r.Err == nil && f.Missing == 0 {
		c.learn(r, &f.Carrier)
	}
	c.session.Emit(r)
}

// reread reads the envelope of a frame of which only the start is there. Without an
// opcode it emits the record of what there is, and returns false.
func (c *conversation) reread(f *dissect.Frame) bool {
	head, err := c.tcp.Envelope.Parse(f.Data, c.schema.Name)
	if len(f.Data) >= c.tcp.Envelope.Size() {
		head.Size = f.Size
		f.Frame = head
		return true
	}
	r := c.session.Record(&f.Carrier)
	r.Raw, r.Rest, r.Size, r.Offset, r.Err = f.Data, f.Data, f.Size, f.Offset, err
	r.Err.Kind = f.Short
	c.session.Emit(r)
	return false
}

// learnRole settles the roles of a flow's ends by an opcode that only one side
// sends.
func (c *conversation) learnRole(at *dissect.Carrier, opcode uint64, t schema.Transport) {
	if !at.Flow.Guessed() {
		return
	}
	if p := c.schema.Packet(opcode, schema.AnySender, t); p != nil && p.From != schema.AnySender {
		at.Said(p.From)
	}
}

// body decodes a body into r, trying disputed layouts where the first does not
// fit, and returns the byte behind it. With exact, the body ends at to; otherwise
// it ends where its layout does. It reports false when a table is missing.
func (c *conversation) body(r *dissect.Record, at *dissect.Carrier, t schema.Transport, from, to int, exact bool) (end int, ok bool) {
	by := at.Direction.Sender()
	p := c.packet(r, by, t)
	r.Packet = p
	if p == nil {
		r.Message = schema.UnknownName(uint64(r.Opcode))
		r.Note("unknown_opcode", "")
		r.Rest = r.Body.Data[from:to]
		return to, true
	}
	r.Message = p.Name
	layouts := p.Of(by)
	if len(layouts) == 0 {
		if to > from || p.Proto != "" {
			r.Rest = r.Body.Data[from:to]
		}
		r.Note("unknown_body", "")
		return to, true
	}
	best := 0
	if len(layouts) > 1 {
		best = c.choose(p, layouts, r.Body.Data, at, from, to, exact)
	}
	r.Layout = layouts[best]
	w := &c.scratch.Decoder
	w.State = c.state
	err := c.scratch.Body(c.schema, p.Name, r.Layout, &r.Body, 8*from, 8*to, c.reads(p))
	_, missing := w.Missing()
	for _, m := range w.Remarks {
		r.Note(m.Code, m.Text)
	}
	if best > 0 {
		r.Note("alternative_layout", r.Layout.Source)
	}
	c.noteOrigin(r)
	end = (w.End + 7) / 8
	if err != nil {
		r.Err = err
		r.Rest = r.Body.Data[min(end, to):to]
		return to, !missing
	}
	return end, !missing
}

// reads reports whether the session itself reads the values of a packet.
func (c *conversation) reads(p *schema.Packet) bool {
	switch p.Opcode {
	case opHandshake, opHello, opBehavior, opTranslation:
		return true
	case opAck, opIgnore, opSetStart:
		return c.scratch.Follows()
	}
	return p.Secret()
}

// packet finds the packet for an opcode, and remarks on one from the wrong side or
// over the wrong transport.
func (c *conversation) packet(r *dissect.Record, by schema.Sender, t schema.Transport) *schema.Packet {
	opcode := uint64(r.Opcode)
	if p := c.schema.Packet(opcode, by, t); p != nil {
		return p
	}
	if p := c.schema.Packet(opcode, by, (schema.TCP|schema.UDP)&^t); p != nil {
		if opcode > lastControl {
			r.Note("unexpected_transport", "")
		}
		return p
	}
	if p := c.schema.Packet(opcode, schema.AnySender, t); p != nil {
		r.Note("unexpected_direction", "")
		return p
	}
	return nil
}

// noteOrigin says which kind of table entries a body was read with.
func (c *conversation) noteOrigin(r *dissect.Record) {
	r.Context = c.scratch.Decoder.Origin
	if r.Context >= schema.Default {
		r.Note("assumed_context", "widths by the stated default")
	}
}

// choose returns which of the disputed layouts reads a body: the first, unless
// only another one ends exactly and holds every valid.
func (c *conversation) choose(p *schema.Packet, layouts []*schema.Layout, data []byte, at *dissect.Carrier, from, to int, exact bool) int {
	w := c.scratch
	for i, l := range layouts {
		w.Trial.State, w.Trial.Short = c.state, wire.Malformed
		err := w.Trial.Skim(c.schema, p.Name, l, data, 8*from, 8*to)
		if err != nil || len(w.Trial.Remarks) > 0 {
			continue
		}
		end := (w.Trial.End + 7) / 8
		if end == to || !exact && c.walks(at, data[end:to]) {
			return i
		}
	}
	return 0
}

// Tables returns what the session has learned.
func (c *conversation) Tables() []dissect.LearnedTable {
	return c.tables(c.client.table(), c.server.table())
}

func (c *conversation) tables(client, server *schema.Table) []dissect.LearnedTable {
	list := []dissect.LearnedTable{{Sender: schema.Client, Table: client}, {Sender: schema.Server, Table: server}}
	for _, t := range c.state.Tables {
		if t.Decl.Name != "stream_modes" {
			list = append(list, dissect.LearnedTable{Table: t})
		}
	}
	return list
}
