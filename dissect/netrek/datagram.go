package netrek

import (
	"slices"
	"strconv"
	"strings"

	"opscope/dissect"
	"opscope/reassembly"
	"opscope/schema"
	"opscope/schema/wire"
)

// channel is the sequences of one UDP flow, which begin anew with new ports.
type channel struct {
	flow   *dissect.Flow
	client *dissect.SequenceStream
	server *dissect.SequenceStream
	last   uint64 // of the server
	late   bool   // the receiver ignores what follows, up to the next sequence
}

const (
	// maxChannels is how many flows of a session are followed: the one in use, and
	// those of which something may come late.
	maxChannels = 4
	// A sequence of 1 within restartAfter of the last one came late; further on it is
	// a new count, unless the last one is about to wrap. Section 11, item 7.
	restartAfter  = 64
	restartBefore = 65000
)

// channel returns what is known of a flow's sequences.
func (c *conversation) channel(f *dissect.Flow) *channel {
	for _, ch := range c.channels {
		if ch.flow == f {
			return ch
		}
	}
	if len(c.channels) == maxChannels {
		c.channels = slices.Delete(c.channels, 0, 1)
	}
	rules := dissect.Rules{Serial: reassembly.Serial{Modulus: 1 << 16}, Start: 1, Delivery: dissect.Latest}
	ch := &channel{
		flow:   f,
		client: dissect.NewSequenceStream(c.session.Hold(), rules, true),
		server: dissect.NewSequenceStream(c.session.Hold(), rules, c.session.Joined),
	}
	c.channels = append(c.channels, ch)
	return ch
}

// Datagram decodes the packets of a datagram, or its text.
func (c *conversation) Datagram(d *dissect.Datagram, _ bool) bool {
	if p := textPacket(c.schema, d.Data); p != nil {
		c.textDatagram(d, p)
		return true
	}
	if len(d.Data) == 0 {
		c.empty(d)
		return true
	}
	c.learnSide(d)
	ch := c.channel(d.Flow)
	ch.late = false
	for off := 0; off < len(d.Data); {
		off += c.packet(d, ch, off)
	}
	return true
}

// learnSide settles who sends the datagrams of a flow. A client sends no datagram that
// begins with a sequence, a reply or a feature. Section 2, item 4.
func (c *conversation) learnSide(d *dissect.Datagram) {
	switch d.Data[0] {
	case spUDPReply, spSequence:
		d.Said(schema.Server)
	default:
		c.learnRole(&d.Carrier, d.Data[0], schema.UDP)
	}
}

// empty reports a datagram without a packet.
func (c *conversation) empty(d *dissect.Datagram) {
	r := c.session.Record(&d.Carrier)
	r.Message, r.Size = "empty", d.Length
	r.Err = &wire.Error{Layer: c.schema.Name, Path: "datagram", Want: "a packet", Got: "0 bytes", Kind: wire.Malformed}
	if d.Length > 0 {
		r.Err.Kind = wire.Truncated
		r.Note("not_captured", wire.Bits(8*d.Length)+" of it")
	}
	c.session.Emit(r)
}

// packet decodes the packet at an offset and returns its size. A type without a size
// takes the rest of the datagram with it.
func (c *conversation) packet(d *dissect.Datagram, ch *channel, off int) int {
	data := d.Data[off:]
	f, err := c.udp.FindTyped(&c.scratch.Decoder, c.schema, d.Direction.Sender(), data)
	r := c.session.Record(&d.Carrier)
	r.Opcode, r.Offset, r.Size = int(data[0]), int64(off), f.Size
	short := wire.Malformed
	cut := d.Length > len(d.Data)
	if cut {
		short = wire.Truncated
	}
	size := f.Size
	switch {
	case err == nil:
		data = data[:size]
	case err.Kind == wire.Incomplete && size > 0:
		size = len(data)
		if cut {
			r.Note("not_captured", wire.Bits(8*(f.Size-size))+" of it")
		}
	default:
		c.unsized(r, d, data, err, short)
		size = len(data)
	}
	r.Raw = data
	if r.Message == "" {
		if off == 0 && d.Length > c.udp.Max {
			r.Note("datagram_too_large", "")
		}
		c.body(r, d.Direction, schema.UDP, data, short)
	}
	d.Locate(r, off, off+size)
	c.follow(r, d, ch, off)
	c.session.Emit(r)
	return size
}

// unsized shows the rest of a datagram whose next packet has no size.
func (c *conversation) unsized(r *dissect.Record, d *dissect.Datagram, data []byte, err *wire.Error, short wire.Kind) {
	e := *err // it is shared
	if e.Kind == wire.Incomplete {
		e.Kind = short
	} else if p := c.schema.Packet(uint64(data[0]), d.Direction.Reverse().Sender(), schema.UDP); p != nil {
		r.Note("unexpected_direction", p.Name)
	}
	r.Message = schema.UnknownName(uint64(data[0]))
	if p := c.schema.Packet(uint64(data[0]), d.Direction.Sender(), schema.UDP); p != nil {
		r.Message = p.Name
	}
	r.Size, r.Rest, r.Err = len(data), data, &e
}

// follow takes a decoded packet for what it means to the datagram and to the session.
func (c *conversation) follow(r *dissect.Record, d *dissect.Datagram, ch *channel, off int) {
	if r.Err == nil && c.scratch.Follows() {
		c.sequence(r, d, ch, off)
	}
	if ch.late {
		r.Note("datagram_ignored", "")
	}
	if r.Err == nil {
		c.learn(r, d.Direction)
	}
}

// sequence follows the count of datagrams.
func (c *conversation) sequence(r *dissect.Record, d *dissect.Datagram, ch *channel, off int) {
	switch rest := d.Data[off+len(r.Raw):]; {
	case d.Direction == dissect.ServerToClient && r.Opcode == spUDPReply && off == 0:
		if reply, _ := r.Body.Value("reply"); reply == udpVerify {
			ch.server.Reset(false)
			ch.last = 0
		}
	case d.Direction == dissect.ServerToClient && r.Opcode == spSequence:
		ch.counted(r, rest)
	case d.Direction == dissect.ServerToClient && r.Opcode == spSCSequence:
		r.Envelope.Seq = r.Body.Number("sequence")
		r.Note("resend_copy", "semi-critical packets of datagram "+strconv.Itoa(r.Envelope.Seq))
	case d.Direction == dissect.ClientToServer && r.Opcode == cpSequence:
		r.Envelope.Seq = r.Body.Number("sequence")
		ch.client.Sent(r, uint64(r.Envelope.Seq), rest, dissect.NoCopy)
	}
}

// counted takes the sequence of a datagram of the server, and what follows it there.
func (ch *channel) counted(r *dissect.Record, rest []byte) {
	seq, _ := r.Body.Value("sequence")
	if seq == 1 && ch.last > restartAfter && ch.last < restartBefore {
		ch.server.Reset(false)
		r.Note("sequence_restarted", "after "+strconv.FormatUint(ch.last, 10))
	}
	r.Envelope.Seq = int(seq)
	stale := ch.server.Sent(r, seq, rest, dissect.NoCopy) == dissect.Stale
	if ch.late = stale; !stale {
		ch.last = seq
	}
}

// textDatagram decodes a text by which servers are found.
func (c *conversation) textDatagram(d *dissect.Datagram, p *schema.Packet) {
	if len(d.Flow.Session.Flows) == 1 && len(c.pairs) == 0 && len(c.channels) == 0 {
		c.text = true
	}
	d.Said(p.From)
	r := c.session.Record(&d.Carrier)
	r.Opcode, r.Raw, r.Size = int(d.Data[0]), d.Data, d.Length
	r.Message, r.Packet, r.Layout = p.Name, p, p.Of(p.From)[0]
	r.Body.Reset(d.Data)
	w := &c.scratch.Decoder
	w.State, w.Short = c.state, wire.Malformed
	if missing := d.Length - len(d.Data); missing > 0 {
		w.Short = wire.Truncated
		r.Note("not_captured", wire.Bits(8*missing)+" of it")
	}
	r.Err = w.Decode(c.schema, p.Name, r.Layout, &r.Body, 8, 8*len(d.Data))
	for _, m := range w.Remarks {
		r.Note(m.Code, m.Text)
	}
	if end := (w.End + 7) / 8; end < len(d.Data) {
		r.Rest = d.Data[end:]
		if r.Err == nil {
			r.Note("trailing_bytes", "")
		}
	}
	switch d.Data[0] {
	case textReply:
		remarkPorts(r)
	case textSolicit:
		remarkSlots(r)
	}
	c.session.Emit(r)
}

// remarkPorts says which ports of a server the usual clients do not see: all but the
// first. Conflict 1.
func remarkPorts(r *dissect.Record) {
	var missed []string
	t := &r.Body
	list := t.Field("entries")
	if list < 0 {
		return
	}
	for i, k := list+1, 0; i < t.Next(list); i, k = t.Next(i), k+1 {
		if port := t.Member(i, "port"); k > 0 && port >= 0 {
			missed = append(missed, strconv.FormatInt(int64(t.Uint(port)), 10))
		}
	}
	if len(missed) > 0 {
		r.Note("port_missed", "clients look at the first port only, and miss "+strings.Join(missed, ", "))
	}
}

// lastOldSlot is the last slot character that old metaservers knew.
const lastOldSlot = "j"

// remarkSlots says where old metaservers end the list of players. Conflict 3.
func remarkSlots(r *dissect.Record) {
	t := &r.Body
	list := t.Field("player_list")
	if list < 0 {
		return
	}
	for i := list + 1; i < t.Next(list); i = t.Next(i) {
		k := t.Member(i, "slot")
		if k < 0 {
			return
		}
		if slot := string(t.AppendText(nil, k)); len(slot) == 1 && slot > lastOldSlot {
			r.Note("slot_unknown_to_old", "old metaservers end the list of players before slot "+slot)
			return
		}
	}
}
