// Package netrek dissects the game protocol of Netrek: packets end to end, without
// any length, over TCP and over the UDP that client and server agree on; and the text
// datagrams by which servers are found.
//
// The layouts are in schema/protocols/netrek. Here is who is who, what a session
// learns, and how a stream that was lost is found again; sections given in comments
// are those of protocols/netrek.md, which names the sources.
package netrek

import (
	"opscope/dissect"
	"opscope/schema"
	"opscope/schema/wire"
)

// Protocol is Netrek.
type Protocol struct{}

// Head returns what is known without the layouts.
func (Protocol) Head() (schema.Head, error) { return schema.BuiltinHead("netrek") }

// Schema returns the built-in layouts.
func (Protocol) Schema() (*schema.Protocol, error) { return schema.Builtin("netrek") }

// Types that a session learns from, or that tell who sends them.
const (
	cpSocket     = 27
	cpUDPReq     = 35
	cpSequence   = 36
	cpSReq       = 43
	cpFeature    = 60
	spYou        = 12
	spUDPReply   = 28
	spSequence   = 29
	spSCSequence = 30
	spGeneric32  = 32
	spSReply     = 40
	spSPlayer    = 45
	spFeature    = 60
)

// First bytes of the text datagrams, which are types in neither direction.
const (
	textQuery     = '?'
	textReply     = 's'
	textMetaReply = 'r'
	textSolicit   = 'b'
)

// Open begins a session.
func (Protocol) Open(s *dissect.Session) dissect.Conversation {
	p := s.Schema()
	c := &conversation{
		session: s, schema: p, scratch: s.Scratch(), tcp: p.Framing("tcp"), udp: p.Framing("udp"), state: p.NewState(),
	}
	c.assume()
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

	asked    asked  // the version of short packets that waits for its reply
	pairs    []pair // the UDP ports that were agreed on, the latest last
	channels []*channel
	features bool // the client has named one
	text     bool // this is no game, but text datagrams
	seenYou  bool
	joint    []byte // a packet and what follows it, while it is doubted
}

// Cut finds a packet.
func (c *conversation) Cut(d dissect.Direction, data []byte) (schema.Frame, *wire.Error) {
	return c.tcp.FindTyped(&c.scratch.Trial, c.schema, d.Sender(), data)
}

// Fault says why data does not begin with a whole packet.
func (c *conversation) Fault(d dissect.Direction, data []byte) *wire.Error {
	_, err := c.Cut(d, data)
	return err
}

// Doubt finds stray bytes that look like the start of a packet, and swallow the good
// one behind them: no type follows it, while good packets begin inside. Section 11,
// item 17.
func (c *conversation) Doubt(d dissect.Direction, frame, after []byte) *wire.Error {
	if len(after) == 0 || c.tcp.Knows(d.Sender(), after[0]) {
		return nil
	}
	c.joint = append(append(c.joint[:0], frame...), after[:min(len(after), maxLook)]...)
	n := c.stray(d, c.joint, len(frame))
	if n == 0 {
		return nil
	}
	return &wire.Error{
		Layer: c.schema.Name, Path: c.name(d.Sender(), frame[0]), Size: len(frame), Want: "a packet that another follows",
		Got: wire.Bits(8*n) + " in front of good packets", Kind: wire.Malformed,
	}
}

const (
	// maxStray is how many bytes in front of a packet are taken for stray ones.
	maxStray = 16
	// maxLook is how many bytes behind a packet are looked at to find that out: as
	// many packets as make a boundary, of the larger ones.
	maxLook = 1 << 10
)

// stray returns how many bytes at the start of data, which could be a packet of some
// size, stand in front of packets to the end of data: no more than would have to be
// passed over behind it.
func (c *conversation) stray(d dissect.Direction, data []byte, size int) int {
	for n := 1; n < min(size, maxStray+1); n++ {
		if c.walks(d, data[n:]) {
			return n
		}
		if size+n <= len(data) && c.walks(d, data[size+n:]) {
			return 0
		}
	}
	return 0
}

// row is packets that stand in a row.
type row struct {
	packets int
	size    int  // bytes
	kinds   int  // different types among them
	whole   bool // they end where the bytes do, or there are enough
}

// walks reports whether data begins with packets, as many as make a boundary.
func (c *conversation) walks(d dissect.Direction, data []byte) bool {
	c.scratch.Trial.State = c.state
	return walks(c.schema, c.tcp, schema.TCP, c.scratch, d.Sender(), data)
}

// walks reports whether data begins with packets of one sender, as many as make a boundary.
// Their sizes come first: they break off soon where there are none.
func walks(p *schema.Protocol, f *schema.Framing, t schema.Transport, w *dissect.Scratch, by schema.Sender, data []byte) bool {
	r := measure(p, f, w, by, data, int(p.Limit("resync_packets")))
	return r.whole && convincing(p, f, t, w, by, data, r.packets)
}

// measure counts the packets of one sender that stand at the start of data by their sizes, up
// to as many as are enough.
func measure(p *schema.Protocol, f *schema.Framing, w *dissect.Scratch, by schema.Sender, data []byte, enough int) (r row) {
	var seen [4]uint64 // types
	for r.size < len(data) && r.packets < enough {
		next := data[r.size:]
		frame, err := f.FindTyped(&w.Trial, p, by, next)
		if err != nil {
			return
		}
		if word, bit := &seen[next[0]>>6], uint64(1)<<(next[0]&63); *word&bit == 0 {
			*word |= bit
			r.kinds++
		}
		r.packets++
		r.size += frame.Size
	}
	r.whole = true
	return r
}

// convincing reports whether so many packets, which were measured, are plausible, and one of
// them convinces.
func convincing(p *schema.Protocol, f *schema.Framing, t schema.Transport, w *dissect.Scratch, by schema.Sender, data []byte, packets int) bool {
	convinced := false
	for ; packets > 0; packets-- {
		frame, err := f.FindTyped(&w.Trial, p, by, data)
		if err != nil {
			return false
		}
		switch plausible(p, t, w, by, data[:frame.Size]) {
		case dissect.Implausible:
			return false
		case dissect.Convincing:
			convinced = true
		}
		data = data[frame.Size:]
	}
	return convinced
}

// name names a type for an error.
func (c *conversation) name(by schema.Sender, first byte) string {
	if p := c.schema.Packet(uint64(first), by, schema.TCP); p != nil {
		return p.Name
	}
	return "envelope.opcode"
}

// Plausible finds a packet convincing that its layout reads to the end, with values
// that the protocol knows and text that can be shown.
func (c *conversation) Plausible(d dissect.Direction, frame []byte) dissect.Plausibility {
	c.scratch.Trial.State = c.state
	return plausible(c.schema, schema.TCP, c.scratch, d.Sender(), frame)
}

// plausible judges a packet with the state that the scratch has. One that never travels
// over t is none.
func plausible(s *schema.Protocol, t schema.Transport, w *dissect.Scratch, by schema.Sender, frame []byte) dissect.Plausibility {
	p := s.Packet(uint64(frame[0]), by, t)
	if p == nil && by == schema.AnySender { // either of two
		return max(plausible(s, t, w, schema.Client, frame), plausible(s, t, w, schema.Server, frame))
	}
	best := dissect.Implausible
	for _, l := range p.Of(by) {
		w.Tree.Reset(frame)
		w.Trial.Short = wire.Malformed
		err := w.Trial.Decode(s, p.Name, l, &w.Tree, 8, 8*len(frame))
		if _, missing := w.Trial.Missing(); missing {
			best = max(best, dissect.Possible)
			continue
		}
		controls := controlsIn(&w.Tree)
		switch {
		case err != nil || len(w.Trial.Remarks) > 0 || controls > maxControls:
		case controls == 0 && tells(&w.Tree):
			return dissect.Convincing
		default:
			best = max(best, dissect.Possible)
		}
	}
	return best
}

// maxControls is how many control characters the texts of a packet may hold. A status
// token and a name have some, and the password of a robot is what was in its memory.
const maxControls = 8

// tells reports whether a packet has anything that could be wrong.
func tells(t *schema.Tree) bool {
	for i := range t.Nodes {
		if f := t.Nodes[i].Field; f != nil && !f.Hidden {
			return true
		}
	}
	return false
}

// controlsIn counts the control characters in front of the NUL of a packet's texts.
// Bytes above 127 are distress calls.
func controlsIn(t *schema.Tree) (count int) {
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if n.Kind != schema.Text {
			continue
		}
		from := int(n.Body) / 8
		for _, b := range t.Data[from : from+int(n.BodyLen)] {
			if b == 0 {
				break
			}
			if b < ' ' && b != '\t' && b != '\n' {
				count++
			}
		}
	}
	return count
}

// Frame decodes a packet of a stream.
func (c *conversation) Frame(f *dissect.Frame) {
	if len(f.Data) == 0 {
		return
	}
	opcode := f.Data[0]
	c.learnRole(&f.Carrier, opcode, schema.TCP)
	r := c.session.Record(&f.Carrier)
	r.Raw, r.Size, r.Offset, r.Opcode = f.Data, f.Size, f.Offset, int(opcode)
	short := wire.Malformed
	if f.Missing > 0 {
		short = f.Short
		r.Note("not_captured", wire.Bits(8*f.Missing)+" of it")
	}
	c.body(r, f.Direction, schema.TCP, f.Data, short)
	if r.Err == nil && f.Missing == 0 {
		c.learn(r, f.Direction)
	}
	c.session.Emit(r)
}

// learnRole settles the roles of a flow's ends by a type that only one side sends.
func (c *conversation) learnRole(at *dissect.Carrier, opcode byte, t schema.Transport) {
	if !at.Flow.Guessed() {
		return
	}
	if p := c.schema.Packet(uint64(opcode), schema.AnySender, t); p != nil && p.From != schema.AnySender {
		at.Said(p.From)
	}
}

// body decodes a packet that is all of data into r.
func (c *conversation) body(r *dissect.Record, d dissect.Direction, t schema.Transport, data []byte, short wire.Kind) {
	by := d.Sender()
	p := c.schema.Packet(uint64(data[0]), by, t)
	if p == nil && t == schema.TCP { // it has a size, so that it could be cut
		if p = c.schema.Packet(uint64(data[0]), by, schema.UDP); p != nil {
			r.Note("unexpected_transport", "")
		}
	}
	r.Packet = p
	r.Body.Reset(data)
	layouts := p.Of(by)
	if len(layouts) == 0 {
		c.unread(r, p, by, data)
		return
	}
	r.Message = p.Name
	best := 0
	if len(layouts) > 1 {
		best = c.choose(p, layouts, data)
	}
	r.Layout = layouts[best]
	w := &c.scratch.Decoder
	w.State, w.Short = c.state, short
	err := c.scratch.Body(c.schema, p.Name, r.Layout, &r.Body, 8, 8*len(data), c.reads(r, d))
	for _, m := range w.Remarks {
		r.Note(m.Code, m.Text)
	}
	if best > 0 {
		r.Note("alternative_layout", r.Layout.Source)
	}
	r.Context = w.Origin
	if r.Context >= schema.Default {
		c.noteAssumed(r)
	}
	end := (w.End + 7) / 8
	switch {
	case err != nil:
		r.Err, r.Rest = err, data[min(end, len(data)):]
	case end < len(data):
		r.Rest = data[end:]
		r.Note("trailing_bytes", "")
	}
	c.remark(r, d)
}

// reads reports whether the session itself looks at the values of a packet.
func (c *conversation) reads(r *dissect.Record, d dissect.Direction) bool {
	switch r.Opcode {
	case cpSequence, spSequence, spSCSequence, spGeneric32:
		if c.scratch.Follows() {
			return true
		}
	}
	return lessons[d][byte(r.Opcode)] != nil || r.Layout.Strictest() == schema.Secret
}

// unread shows a packet without a layout as bytes.
func (c *conversation) unread(r *dissect.Record, p *schema.Packet, by schema.Sender, data []byte) {
	r.Rest = data[1:]
	if p == nil {
		r.Message = schema.UnknownName(uint64(data[0]))
		if by == schema.AnySender && c.tcp.Knows(by, data[0]) {
			r.Note("ambiguous_type", c.name(schema.Client, data[0])+" or "+c.name(schema.Server, data[0]))
			return
		}
		r.Note("unknown_opcode", "")
		return
	}
	r.Message = p.Name
	r.Note("unknown_body", "")
}

// choose returns which of the disputed layouts reads a packet: the first, unless
// only another one holds every valid.
func (c *conversation) choose(p *schema.Packet, layouts []*schema.Layout, data []byte) int {
	for i := range layouts {
		if c.fits(p, layouts[i], data) {
			return i
		}
	}
	return 0
}

// fits reports whether a layout reads a packet without a remark.
func (c *conversation) fits(p *schema.Packet, l *schema.Layout, data []byte) bool {
	w := c.scratch
	w.Trial.State, w.Trial.Short = c.state, wire.Malformed
	return w.Trial.Skim(c.schema, p.Name, l, data, 8, 8*len(data)) == nil && len(w.Trial.Remarks) == 0
}

// noteAssumed says which default stands in for what nobody taught. That a feature is
// off until the server grants it is no assumption where the session's start was seen.
func (c *conversation) noteAssumed(r *dissect.Record) {
	switch {
	case r.Opcode == spSPlayer:
		r.Note("assumed_context", "the version of short packets by its own bytes")
	case c.session.Joined:
		r.Note("assumed_context", "features that nobody granted are off")
	}
}
