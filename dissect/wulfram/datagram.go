package wulfram

import (
	"opscope/dissect"
	"opscope/schema"
	"opscope/schema/wire"
)

// maxDepth is how far a datagram is looked ahead into, in records, to settle a
// doubt about one of them.
const maxDepth = 512

// Datagram walks the records of a datagram.
func (c *conversation) Datagram(d *dissect.Datagram, final bool) bool {
	c.useDefaults(final || c.session.Joined)
	if len(d.Data) > 0 {
		c.learnRole(&d.Carrier, uint64(d.Data[0]), schema.UDP)
	}
	start := c.prefix(d)
	if !c.assumed && c.lacksContext(&d.Carrier, d.Data[start.size:]) {
		return false
	}
	if len(d.Data) <= start.size {
		c.empty(d, start)
		return true
	}
	for off := start.size; off < len(d.Data); {
		off += c.record(d, off, start)
		start.code = ""
	}
	return true
}

// useDefaults puts the stated defaults in the place of what nobody taught.
func (c *conversation) useDefaults(yes bool) {
	if !yes || c.assumed {
		return
	}
	c.assumed = true
	for i, t := range c.state.Tables {
		if t.Decl.Name != "stream_modes" && t.Len() == 0 {
			if stated := c.schema.DefaultTable(t.Decl.Name, schema.AnySender); stated != nil {
				c.state.Tables[i] = stated
			}
		}
	}
}

// prefix is what stands in front of a datagram's first record.
type prefix struct {
	size int
	code string // of the note about it
	own  bool   // it is the datagram's size
}

// prefix finds out whether a datagram has its size, or FF FF, in front. A size is
// believed when the rest is records to its end; as a record it would be a
// diagnostic or a control. Section 12, item 16.
func (c *conversation) prefix(d *dissect.Datagram) prefix {
	b := d.Data
	if len(b) < 3 {
		return prefix{}
	}
	if b[0] == 0xff && b[1] == 0xff {
		return prefix{size: 2, code: "delimiter_skipped"}
	}
	if int(b[0])<<8|int(b[1]) != d.Length {
		return prefix{}
	}
	at := d.Carrier
	c.learnRole(&at, uint64(b[2]), schema.UDP)
	if !c.walks(&at, b[2:]) {
		return prefix{}
	}
	d.Carrier = at
	p := prefix{size: 2, code: "size_prefix", own: true}
	if c.walks(&d.Carrier, b) {
		p.code = "size_prefix_ambiguous"
	}
	return p
}

// empty reports a datagram without a record.
func (c *conversation) empty(d *dissect.Datagram, p prefix) {
	r := c.session.Record(&d.Carrier)
	r.Raw, r.Size = d.Data, len(d.Data)
	r.Message, r.Rest = "empty", d.Data[p.size:]
	r.Err = &wire.Error{Layer: c.schema.Name, Path: "datagram", Want: "a record", Got: wire.Bits(8 * len(d.Data)), Kind: wire.Malformed}
	c.session.Emit(r)
}

// reading is one way to read the record at the start of some bytes.
type reading struct {
	mode      mode
	envelope  *schema.Envelope
	frame     schema.Frame
	end       int  // where the record ends
	fits      bool // its body ends where it says, or its layout does
	missing   bool // for want of a table
	truncated int  // bytes of it that were not captured
	err       *wire.Error
}

// frame reads the envelope that a mode gives. left is how many bytes the datagram
// had from here on, on the wire.
func (c *conversation) frame(m mode, data []byte, left int) reading {
	rd := reading{mode: m, envelope: c.udp.Modes[m.mode]}
	if rd.envelope == nil {
		rd.err = &wire.Error{Layer: c.schema.Name, Path: "envelope", Size: len(data),
			Want: "a mode whose header is known", Got: "mode 2", Kind: wire.Malformed}
		rd.end = len(data)
		return rd
	}
	rd.frame, rd.err = rd.envelope.Parse(data, c.schema.Name)
	if over := rd.frame.Size - len(data); over > 0 && rd.frame.Size <= left {
		rd.truncated, rd.err = over, nil
		rd.frame.Size = len(data)
	}
	rd.end = len(data)
	if rd.err == nil && rd.frame.Size > 0 {
		rd.end = rd.frame.Size
	}
	return rd
}

// try reads a record without a trace, to see whether a mode fits it.
func (c *conversation) try(at *dissect.Carrier, m mode, data []byte) reading {
	rd := c.frame(m, data, len(data))
	if rd.err != nil {
		return rd
	}
	by := at.Direction.Sender()
	p := c.schema.Packet(uint64(data[0]), by, schema.UDP)
	layouts := p.Of(by)
	if p == nil || len(layouts) == 0 {
		rd.fits = p != nil && rd.frame.Size > 0
		return rd
	}
	c.tree.Reset(data)
	c.trial.State, c.trial.Short = c.state, wire.Malformed
	if rd.err = c.trial.Decode(c.schema, p.Name, layouts[0], &c.tree, 8*rd.frame.Head, 8*rd.end); rd.err != nil {
		_, rd.missing = c.trial.Missing()
		return rd
	}
	end := (c.trial.End + 7) / 8
	rd.fits = rd.frame.Size == 0 || end == rd.end
	if rd.frame.Size == 0 {
		rd.end = end
	}
	return rd
}

// walks reports whether some bytes are records up to their end, by the modes in
// force.
func (c *conversation) walks(at *dissect.Carrier, data []byte) bool {
	exact, _ := c.look(at, data)
	return exact
}

// lacksContext reports whether a record in some bytes needs a table that nobody
// taught.
func (c *conversation) lacksContext(at *dissect.Carrier, data []byte) bool {
	_, missing := c.look(at, data)
	return missing
}

func (c *conversation) look(at *dissect.Carrier, data []byte) (exact, missing bool) {
	h := c.side(at.Direction)
	for range maxDepth {
		if len(data) == 0 {
			return true, false
		}
		rd := c.try(at, h.mode[data[0]], data)
		if rd.missing {
			return false, true
		}
		if !rd.fits {
			return false, false
		}
		data = data[rd.end:]
	}
	return true, false // as far as one looks
}

// record decodes the record at an offset and returns its size.
func (c *conversation) record(d *dissect.Datagram, off int, p prefix) int {
	data := d.Data[off:]
	r := c.session.Record(&d.Carrier)
	r.Opcode, r.Offset = int(data[0]), int64(off)
	r.Envelope.Prefixed = p.own
	if p.code != "" {
		r.Note(p.code, "")
	}
	if off == p.size && d.Length > int(c.schema.Limit("datagram")) {
		r.Note("datagram_too_large", "")
	}
	rd := c.read(d, data, d.Length-off, r)
	r.Envelope.Mode, r.Envelope.Origin, r.Envelope.LearnedIn = rd.mode.mode, rd.mode.origin, rd.mode.packet
	r.Envelope.Seq, r.Envelope.Length = rd.frame.Seq, rd.frame.Length
	r.Body.Reset(data)
	if rd.err != nil {
		c.unreadable(r, rd, data)
		return len(data)
	}
	size := c.decode(r, d, rd, data)
	r.Raw, r.Size = data[:size], size+rd.truncated
	d.Locate(r, off, off+size)
	c.follow(r, d, rd)
	c.session.Emit(r)
	return size
}

// read settles how the record at the start of data is to be read: by the mode of
// its opcode, unless only another reading fits. Section 12, items 4 and 5.
func (c *conversation) read(d *dissect.Datagram, data []byte, left int, r *dissect.Record) reading {
	h := c.side(d.Direction)
	m := h.mode[data[0]]
	if m.mode != modeRaw {
		rd := c.frame(m, data, left)
		if rd.err == nil && rd.truncated == 0 && c.udp.Modes[m.mode] != nil {
			if t := c.try(&d.Carrier, m, data); t.fits || t.missing || !c.fitsRaw(d, data) {
				return rd
			}
		} else if rd.err == nil || !c.fitsRaw(d, data) {
			return rd
		}
		r.Note("raw_fallback", "the envelope of its mode does not fit")
		return c.frame(mode{modeRaw, m.origin, m.packet}, data, left)
	}
	rd := c.frame(m, data, left)
	if guess, ok := c.guess(d, h, data); ok {
		code := "mode_guessed"
		if h.handshake.seen {
			code = "mode_mismatch"
		}
		r.Note(code, "")
		return guess
	}
	return rd
}

// fitsRaw reports whether data begins with a record without an envelope, and goes
// on with others to its end.
func (c *conversation) fitsRaw(d *dissect.Datagram, data []byte) bool {
	rd := c.try(&d.Carrier, mode{}, data)
	return rd.fits && c.walks(&d.Carrier, data[rd.end:])
}

// guess reads a raw record as one with an envelope, when that fits to its last
// byte and the raw reading does not.
func (c *conversation) guess(d *dissect.Datagram, h *half, data []byte) (reading, bool) {
	m := mode{1, schema.Guessed, 0}
	if f := c.frame(m, data, len(data)); f.err != nil || f.frame.Seq == 0xffff {
		return f, false
	}
	rd := c.try(&d.Carrier, m, data)
	if !rd.fits || c.fitsRaw(d, data) {
		return rd, false
	}
	// The bytes behind must go on as well as the raw reading's do.
	if raw := c.try(&d.Carrier, mode{}, data); raw.fits && !c.walks(&d.Carrier, data[rd.end:]) {
		return rd, false
	}
	if !h.handshake.seen && c.session.Joined {
		h.guess(data[0], d.Packets[len(d.Packets)-1])
	}
	return rd, true
}

// unreadable ends the walk of a datagram at a record whose envelope is broken.
func (c *conversation) unreadable(r *dissect.Record, rd reading, data []byte) {
	r.Message = c.schema.OpcodeName(uint64(r.Opcode))
	r.Raw, r.Size, r.Rest, r.Err = data, len(data), data, rd.err
	c.session.Emit(r)
}

// decode decodes the body of a record and returns the record's size.
func (c *conversation) decode(r *dissect.Record, d *dissect.Datagram, rd reading, data []byte) int {
	c.decoder.Short = wire.Malformed
	if rd.truncated > 0 || rd.frame.Size == 0 && d.Length > len(d.Data) {
		c.decoder.Short = wire.Truncated
	}
	if rd.truncated > 0 {
		r.Note("not_captured", wire.Bits(8*rd.truncated)+" of it")
	}
	sized := rd.frame.Size > 0
	end, _ := c.body(r, &d.Carrier, schema.UDP, rd.frame.Head, rd.end, sized)
	if !sized {
		return end
	}
	if r.Err == nil && end < rd.end && len(r.Rest) == 0 {
		r.Rest = data[end:rd.end]
		r.Note("trailing_bytes", "")
	}
	return rd.end
}

// follow takes a decoded record for what it means: a sequence, an acknowledgement,
// something learned.
func (c *conversation) follow(r *dissect.Record, d *dissect.Datagram, rd reading) {
	h := c.side(d.Direction)
	if rd.frame.Seq >= 0 && d.Direction != dissect.UnknownDirection {
		c.sequence(r, d, h, rd)
	}
	if r.Err == nil && d.Direction != dissect.UnknownDirection {
		c.control(r, h)
		c.learn(r, &d.Carrier)
	}
}

// sequence follows the stream of a record. A sender whose handshake's clock has
// started again, and whose sequences do so too, is a new session.
func (c *conversation) sequence(r *dissect.Record, d *dissect.Datagram, h *half, rd reading) {
	op := byte(r.Opcode)
	if h.restarted && int64(rd.frame.Seq) == c.schema.Limit("first_sequence") {
		c.restart(&d.Carrier, h)
		r.Session = c.session.ID
	}
	h.stream(op).Sent(r, uint64(rd.frame.Seq), r.Raw[rd.frame.Head:], dissect.NoCopy)
}

// restart begins a new session on the same ports.
func (c *conversation) restart(at *dissect.Carrier, h *half) {
	c.session.Restart(at, "handshake")
	h.restarted = false
	for _, x := range []*half{&c.client, &c.server} {
		for _, s := range x.streams {
			s.Reset(false)
		}
	}
}

// control takes the transport controls: what they name is in the other direction,
// but for orders about the sender's own.
func (c *conversation) control(r *dissect.Record, h *half) {
	peer := &c.client
	if h == peer {
		peer = &c.server
	}
	switch r.Opcode {
	case opAck:
		c.acknowledge(r, peer)
	case opIgnore:
		target, _ := r.Body.Value("target_opcode")
		seq, _ := r.Body.Value("sequence")
		h.stream(byte(target)).Ignore(r, seq)
	case opSetStart:
		target, _ := r.Body.Value("target_opcode")
		start, _ := r.Body.Value("start")
		h.stream(byte(target)).SetStart(r, start)
	}
}

// acknowledge takes a D_ACK: of a handshake, of a record, or of a D_SET_START.
func (c *conversation) acknowledge(r *dissect.Record, peer *half) {
	subtype, _ := r.Body.Value("subtype")
	op, _ := r.Body.Value("acked_opcode")
	seq, _ := r.Body.Value("acked_sequence")
	switch subtype {
	case 0:
		if peer.handshake.seen {
			r.Acks = dissect.Acks{Message: "D_HANDSHAKE", Packet: peer.handshake.packet, Seq: -1, RTT: -1}
		}
	case 1:
		peer.stream(byte(op)).Acknowledged(r, seq)
	case 2:
		peer.stream(byte(op)).SetStartAnswered(r, seq)
	}
}
