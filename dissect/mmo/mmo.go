// Package mmo dissects games whose frames begin with a size and a packet id, over TCP
// and over UDP alike, and mostly hold Protocol Buffers: the mmo of protocols/mmo.md, and
// any other whose layouts a user gives.
//
// The layouts, the ids and the limits are data, in schema/protocols/mmo or in the user's
// directory. What is Go here goes by the names of packets and fields, and does nothing in
// a game that has no such names: who answers whom (answers.go), what a session learns, and
// how its datagrams are found by a token (learn.go). Sections and items given in comments
// are those of protocols/mmo.md.
package mmo

import (
	"slices"
	"strconv"

	"opscope/dissect"
	"opscope/schema"
	"opscope/schema/wire"
)

// Protocol is one game. The zero Protocol is the mmo with its built-in layouts.
type Protocol struct{ layouts *schema.Protocol }

// With returns the game that has these layouts.
func With(layouts *schema.Protocol) Protocol { return Protocol{layouts} }

// Head returns what is known without the layouts.
func (p Protocol) Head() (schema.Head, error) {
	if p.layouts != nil {
		return p.layouts.Head(), nil
	}
	return schema.BuiltinHead("mmo")
}

// Schema returns the game's layouts.
func (p Protocol) Schema() (*schema.Protocol, error) {
	if p.layouts != nil {
		return p.layouts, nil
	}
	return schema.Builtin("mmo")
}

// Open begins a session.
func (Protocol) Open(s *dissect.Session) dissect.Conversation {
	p := s.Schema()
	c := &conversation{session: s, schema: p, scratch: s.Scratch(), tcp: framing(p, schema.TCP), udp: framing(p, schema.UDP), state: p.NewState()}
	c.id = c.udp.Envelope.Field("opcode")
	c.batchEntries, c.datagramTarget = p.Limit("move_batch_entries"), p.Limit("datagram_target")
	c.answers.init(c)
	s.Secrets().Anywhere = p.Unknown != nil // a token is among the first bytes of a session
	return c
}

// framing returns how a game delimits what it sends over a transport: as over the other
// one, where it does not say.
func framing(p *schema.Protocol, t schema.Transport) *schema.Framing {
	if f := p.Framing(t.String()); f != nil {
		return f
	}
	return p.Framings[0]
}

// maxFrame is the largest frame of a game that states no limit of its own: what is kept of
// a stream until a frame is whole.
const maxFrame = 16 << 20

// headOf reads the header at the start of data. It returns false for a size that no frame
// has, and for less than a header.
func headOf(f *schema.Framing, data []byte) (schema.Frame, bool) {
	head, ok := f.Head(data)
	return head, ok && head.Size <= maxFrame
}

// conversation is what one session has learned.
type conversation struct {
	session *dissect.Session
	schema  *schema.Protocol
	scratch *dissect.Scratch
	tcp     *schema.Framing
	udp     *schema.Framing
	id      *schema.EnvelopeField // of udp
	state   *schema.State

	lost    [3]bool // by direction: a size that no frame has was met
	answers answers
	// The limits that datagrams are held against, 0 for none.
	batchEntries, datagramTarget int64

	token     []byte // that the client shows over UDP, nil while it is not known
	character uint64 // that the client plays, 0 while it is not known
}

// Cut finds a frame. A size that no frame has, and all that follows it, is a frame up to
// the end of data, which Frame reports once and then only counts: there is nothing in the
// bytes to find a boundary by. Item 2.
func (c *conversation) Cut(d dissect.Direction, data []byte) (schema.Frame, *wire.Error) {
	switch head, ok := headOf(c.tcp, data); {
	case c.lost[d]:
	case len(data) < c.tcp.Envelope.Size():
		return schema.Frame{}, errHeader
	case ok && head.Size > len(data):
		return schema.Frame{Size: head.Size}, errPart
	case ok:
		return head, nil
	}
	return schema.Frame{Size: len(data), Seq: -1, Length: -1}, nil
}

// Fault says why data does not begin with a whole frame.
func (c *conversation) Fault(d dissect.Direction, data []byte) *wire.Error {
	_, err := c.Cut(d, data)
	return err
}

// The answers for less than a header, and for less than a frame.
var (
	errHeader = &wire.Error{Layer: "framing", Path: "envelope", Want: "a header", Got: "less", Kind: wire.Incomplete}
	errPart   = &wire.Error{Layer: "framing", Path: "envelope", Want: "a whole frame", Got: "its start", Kind: wire.Incomplete}
)

// Doubt doubts no frame: it has told its size.
func (c *conversation) Doubt(dissect.Direction, []byte, []byte) *wire.Error { return nil }

// Plausible finds a frame convincing whose id is one that d brings over TCP, and whose
// body has a known layout that reads all of it without a remark. Item 4.
func (c *conversation) Plausible(d dissect.Direction, frame []byte) dissect.Plausibility {
	return plausible(c.schema, c.scratch, schema.TCP, d.Sender(), frame)
}

// plausible judges a whole frame.
func plausible(s *schema.Protocol, w *dissect.Scratch, t schema.Transport, by schema.Sender, frame []byte) dissect.Plausibility {
	head, ok := headOf(framing(s, t), frame)
	if !ok || head.Size != len(frame) {
		return dissect.Implausible
	}
	p := s.Packet(head.Opcode, by, t)
	if p == nil {
		return dissect.Implausible
	}
	layouts := p.Of(p.From)
	if len(layouts) == 0 {
		return dissect.Possible
	}
	w.Tree.Reset(frame)
	w.Trial.State, w.Trial.Short = nil, wire.Malformed
	err := w.Trial.Decode(s, p.Name, layouts[0], &w.Tree, 8*head.Head, 8*len(frame))
	switch {
	case err != nil || len(w.Trial.Remarks) > 0 || w.Trial.End < 8*len(frame):
		return dissect.Implausible
	case layouts[0].Guessed() || len(frame) == head.Head || !tells(&w.Tree):
		return dissect.Possible
	}
	return dissect.Convincing
}

// tells reports whether a body has anything that could be wrong, and is all known.
func tells(t *schema.Tree) bool {
	some := false
	for i := range t.Nodes {
		f := t.Nodes[i].Field
		if f == nil || f.Mark == schema.Unmatched {
			return false
		}
		some = some || f.Mark == schema.NoMark && f.Type != "rest"
	}
	return some
}

// Frame decodes a frame of a stream.
func (c *conversation) Frame(f *dissect.Frame) {
	head, ok := headOf(c.tcp, f.Data)
	switch {
	case c.lost[f.Direction]:
		c.session.Undecoded(len(f.Data))
		return
	case !ok:
		c.lost[f.Direction] = f.Direction != dissect.UnknownDirection
		c.broken(&f.Carrier, schema.TCP, f.Data, f.Offset, "what follows in this direction is kept as opaque bytes")
		return
	}
	c.learnRole(&f.Carrier, head.Opcode)
	r := c.session.Record(&f.Carrier)
	r.Raw, r.Size, r.Offset = f.Data, f.Size, f.Offset
	c.decode(r, &piece{&f.Carrier, schema.TCP, head, f.Data, f.Missing, f.Short})
	c.session.Emit(r)
}

// broken reports bytes whose size is one that no frame has.
func (c *conversation) broken(at *dissect.Carrier, t schema.Transport, data []byte, off int64, then string) {
	f := framing(c.schema, t)
	head, _ := f.Head(data)
	r := c.session.Record(at)
	r.Lost = true
	r.Raw, r.Size, r.Offset, r.Rest = data, len(data), off, data[head.Head:]
	r.Opcode, r.Envelope.Length, r.Message = int(head.Opcode), head.Length, c.schema.OpcodeName(head.Opcode)
	if _, r.Err = f.Find(data, c.schema.Name); r.Err == nil || r.Err.Kind != wire.Malformed {
		r.Err = &wire.Error{Layer: c.schema.Name, Path: "envelope.length", Size: len(data),
			Want: "a frame of at most " + wire.Bits(8*maxFrame), Got: strconv.Itoa(head.Length), Kind: wire.Malformed}
	}
	code := "frame_size_too_large"
	if head.Length < f.Min {
		code = "frame_size_too_small"
	}
	r.Note(code, "size "+strconv.Itoa(head.Length)+" at offset "+strconv.FormatInt(off, 10)+": "+then)
	c.session.Emit(r)
}

// piece is a frame as decode takes it.
type piece struct {
	at      *dissect.Carrier
	over    schema.Transport
	head    schema.Frame
	data    []byte // as far as it is there
	missing int    // bytes at its end
	short   wire.Kind
}

// decode decodes a frame whose header is there into r, whose bytes are set.
func (c *conversation) decode(r *dissect.Record, f *piece) {
	r.Opcode, r.Envelope.Length, r.Envelope.Seq = int(f.head.Opcode), f.head.Length, f.head.Seq
	r.Body.Reset(r.Raw)
	p, l := c.layout(r, f)
	r.Packet, r.Layout = p, l
	if f.missing > 0 {
		r.Note("frame_truncated", "its header says "+wire.Bits(8*f.head.Size)+", "+strconv.Itoa(len(f.data))+" are there")
	}
	if l == nil {
		r.Rest = f.data[f.head.Head:]
		r.Note("unknown_body", "")
		return
	}
	k := c.answers.known(f.head.Opcode)
	c.body(r, f, l, k)
	if f.missing > 0 && r.Err == nil {
		r.Err = &wire.Error{Layer: c.schema.Name, Path: r.Message, Offset: len(f.data), Size: len(f.data),
			Want: wire.Bits(8 * f.missing), Got: "0 bytes left", Kind: f.short}
	}
	r.Lost = p == nil && r.Err != nil // an id that nobody knows, and no body
	c.remark(r, f, k)
	if f.at.Direction != dissect.UnknownDirection && f.missing == 0 {
		c.learn(r, f.at)
		if c.scratch.Follows() {
			c.answers.follow(r, k, f)
		}
	}
}

// body decodes the body of a frame with a layout.
func (c *conversation) body(r *dissect.Record, f *piece, l *schema.Layout, k *kind) {
	w := &c.scratch.Decoder
	w.State, w.Short = c.state, wire.Malformed
	if f.missing > 0 {
		w.Short = f.short
	}
	err := c.scratch.Body(c.schema, r.Message, l, &r.Body, 8*f.head.Head, 8*len(f.data), c.reads(r.Packet, l, k))
	for _, m := range w.Remarks {
		if f.missing == 0 || m.Code != "protobuf_truncated" { // else the frame is what is cut
			r.Note(m.Code, m.Text)
		}
	}
	end := min((w.End+7)/8, len(f.data))
	switch {
	case err != nil:
		r.Err, r.Rest = err, f.data[end:]
	case end < len(f.data):
		r.Rest = f.data[end:]
		if !said(r, "move_batch_count_mismatch") && !said(r, "protobuf_malformed") {
			r.Note("trailing_bytes", "")
		}
	}
	if l.Guessed() && r.Packet != nil && len(f.data) > f.head.Head {
		r.Note("unknown_body", "")
	}
}

// reads reports whether the session itself looks at the values of a packet. Of a batch it
// looks at one entry, which it finds in the bytes if they tell where.
func (c *conversation) reads(p *schema.Packet, l *schema.Layout, k *kind) bool {
	switch k.role.part {
	case asks, replies: // they teach, too
		return true
	case movesMany:
		if c.scratch.Look() == dissect.LookNothing || c.scratch.Follows() && !c.answers.batchIn(l).known() {
			return true
		}
	case steers, moves, refuses:
		if c.scratch.Follows() {
			return true
		}
	}
	return p.Secret() || !l.Guessed() && l.FieldAt(portField) != nil
}

// said reports whether a record has a note.
func said(r *dissect.Record, code string) bool {
	return slices.ContainsFunc(r.Notes, func(n dissect.Note) bool { return n.Code == code })
}

// layout finds the packet for an id and its layout, and remarks on one that nobody knows,
// from the wrong side or over the wrong transport. Items 9 and 10.
func (c *conversation) layout(r *dissect.Record, f *piece) (*schema.Packet, *schema.Layout) {
	by, other := f.at.Direction.Sender(), (schema.TCP|schema.UDP)&^f.over
	p := c.schema.Packet(f.head.Opcode, by, f.over)
	if p == nil {
		if p = c.schema.Packet(f.head.Opcode, schema.AnySender, f.over); p != nil {
			r.Note("unexpected_direction", "the "+p.From.String()+" sends it")
		}
	}
	if p == nil {
		if p = c.schema.Packet(f.head.Opcode, schema.AnySender, other); p != nil {
			r.Note("unexpected_transport", "it travels over "+p.Via.String())
			if p.From != by && p.From != schema.AnySender && by != schema.AnySender {
				r.Note("unexpected_direction", "the "+p.From.String()+" sends it")
			}
		}
	}
	r.Message = c.schema.OpcodeName(f.head.Opcode)
	if p == nil {
		r.Note("unknown_packet_id", "")
		return nil, c.schema.Unknown
	}
	if layouts := p.Of(p.From); len(layouts) > 0 {
		return p, layouts[0]
	}
	return p, nil
}

// learnRole settles the roles of a flow's ends by an id that only one side sends. Item 12.
func (c *conversation) learnRole(at *dissect.Carrier, opcode uint64) {
	if !at.Flow.Guessed() {
		return
	}
	p := c.schema.Packet(opcode, schema.AnySender, at.Flow.Transport)
	if p != nil && p.From != schema.AnySender {
		at.Said(p.From)
	}
}

// remark says what is odd about a frame that was read.
func (c *conversation) remark(r *dissect.Record, f *piece, k *kind) {
	if p := r.Packet; p != nil && p.Deprecated != "" {
		r.Note("deprecated_packet", p.Deprecated)
	}
	if k.development {
		r.Note("development_packet", "")
	}
	if most := c.batchEntries; most > 0 && k.role.part == movesMany {
		if n, _ := r.Body.Value("count"); n > uint64(most) {
			r.Note("batch_too_large", strconv.FormatUint(n, 10)+" entries; the sender puts "+strconv.FormatInt(most, 10)+" into a datagram")
		}
	}
	if port, _ := r.Body.Value(portField); port > maxPort {
		r.Note("out_of_range", "udp_port "+strconv.FormatUint(port, 10)+" is none")
	}
	if k.heartbeat {
		c.remarkClock(r, f)
	}
}

const (
	portField = "udp_port"
	// maxPort is the largest port there is.
	maxPort = 1<<16 - 1
)

// remarkClock offers the reading as a number for a heartbeat's body of 8 bytes, which may
// be no Protocol Buffers at all. Section 7.
func (c *conversation) remarkClock(r *dissect.Record, f *piece) {
	body := f.data[f.head.Head:]
	if len(body) != 8 {
		return
	}
	r.Note("heartbeat_number", "as one number: "+strconv.FormatUint(wire.ReadBits(body, 0, 64, c.schema.Order), 10))
}

// Tables returns what the session has learned.
func (c *conversation) Tables() []dissect.LearnedTable {
	var list []dissect.LearnedTable
	for _, t := range c.state.Tables {
		list = append(list, dissect.LearnedTable{Table: t})
	}
	return list
}
