package wulfram

import (
	"slices"
	"strconv"

	"opscope/dissect"
	"opscope/schema"
	"opscope/schema/wire"
)

// Datagram walks the records of a datagram.
func (c *conversation) Datagram(d *dissect.Datagram, final bool) bool {
	c.useDefaults(final || c.session.Joined)
	c.path.begin(d)
	start := c.prefix(d)
	if len(d.Data) > start.size {
		c.learnRole(&d.Carrier, uint64(d.Data[start.size]), schema.UDP)
	}
	if c.mayLackContext() && c.lacksContext(&d.Carrier, d.Data[start.size:]) {
		return false
	}
	if len(d.Data) <= start.size {
		c.empty(d, start)
		return true
	}
	for off := start.size; off < len(d.Data); {
		if c.path.of != d { // what was emitted has let another one go first
			c.path.begin(d)
		}
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

// prefix finds out whether a datagram has its size, or FF FF, in front. A number
// that is the datagram's size is believed, unless only the reading as a record,
// which would be a diagnostic or a control, is one of records to the end.
// Section 12, item 16.
func (c *conversation) prefix(d *dissect.Datagram) prefix {
	b := d.Data
	if len(b) >= 2 && b[0] == 0xff && b[1] == 0xff {
		return prefix{size: 2, code: "delimiter_skipped"}
	}
	if len(b) < 3 {
		return prefix{}
	}
	if int(b[0])<<8|int(b[1]) != d.Length {
		return prefix{}
	}
	at := d.Carrier
	c.learnRole(&at, uint64(b[2]), schema.UDP)
	p := prefix{size: 2, code: "size_prefix", own: true}
	if c.walks(&d.Carrier, b) {
		if !c.walks(&at, b[2:]) {
			return prefix{}
		}
		p.code = "size_prefix_ambiguous"
	}
	d.Carrier = at
	return p
}

// empty reports a datagram without a record.
func (c *conversation) empty(d *dissect.Datagram, p prefix) {
	r := c.session.Record(&d.Carrier)
	r.Raw, r.Size = d.Data, len(d.Data)
	r.Message, r.Rest = "empty", d.Data[p.size:]
	if p.code != "" {
		r.Note(p.code, "")
	}
	r.Err = &wire.Error{Layer: c.schema.Name, Path: "datagram", Want: "a record", Got: wire.Bits(8 * len(d.Data)), Kind: wire.Malformed}
	if missing := d.Length - len(d.Data); missing > 0 {
		r.Err.Kind, r.Size = wire.Truncated, d.Length
		r.Note("not_captured", wire.Bits(8*missing)+" of it")
	}
	c.session.Emit(r)
}

// reading is one way to read the record at the start of some bytes.
type reading struct {
	mode      mode
	envelope  *schema.Envelope
	frame     schema.Frame
	end       int  // where the record ends
	fits      bool // its body ends where it says, or its layout does
	doubtful  bool // though a value is one that the layout does not allow
	missing   bool // for want of a table
	truncated int  // bytes of it that were not captured
	err       *wire.Error
}

// frame reads the envelope that a mode gives. left is how many bytes the datagram
// had from here on, on the wire.
func (c *conversation) frame(m mode, data []byte, left int) reading {
	rd := reading{mode: m, envelope: c.envelope(m), frame: schema.Frame{Seq: -1, Length: -1}, end: len(data)}
	if rd.envelope == nil {
		rd.err = &wire.Error{Layer: c.schema.Name, Path: "envelope", Size: len(data),
			Want: "a mode whose header is known", Got: "mode " + strconv.Itoa(int(m.number)), Kind: wire.Malformed}
		return rd
	}
	f, err := rd.envelope.Parse(data, c.schema.Name)
	if rd.err = err; err != nil && len(data) < rd.envelope.Size() {
		if left > len(data) {
			err.Kind = wire.Truncated
		}
		return rd
	}
	rd.frame = f
	if over := f.Size - len(data); over > 0 && f.Size <= left {
		rd.truncated, rd.err = over, nil
		rd.frame.Size = len(data)
	}
	if rd.err == nil && rd.frame.Size > 0 {
		rd.end = rd.frame.Size
	}
	return rd
}

// envelope returns the envelope of a mode, nil for a mode whose header is not known.
func (c *conversation) envelope(m mode) *schema.Envelope {
	if uint(m.number) < uint(len(c.envelopes)) {
		return c.envelopes[m.number]
	}
	return c.udp.Modes[int(m.number)]
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
	w := c.scratch
	w.Trial.State, w.Trial.Short = c.state, wire.Malformed
	if rd.err = w.Trial.Skim(c.schema, p.Name, layouts[0], data, 8*rd.frame.Head, 8*rd.end); rd.err != nil {
		_, rd.missing = w.Trial.Missing()
		return rd
	}
	end := (w.Trial.End + 7) / 8
	rd.fits = rd.frame.Size == 0 || end == rd.end
	rd.doubtful = invalid(w.Trial.Remarks)
	if rd.frame.Size == 0 {
		rd.end = end
	}
	return rd
}

// walks reports whether some bytes at the end of the datagram are records up to
// their end, by the modes in force.
func (c *conversation) walks(at *dissect.Carrier, data []byte) bool {
	return c.look(at, data) == walkable
}

// lacksContext reports whether a record in some bytes needs a table that nobody
// taught.
func (c *conversation) lacksContext(at *dissect.Carrier, data []byte) bool {
	return c.look(at, data) == lacking
}

// mayLackContext reports whether there is a table that nobody taught and nothing
// stands in for.
func (c *conversation) mayLackContext() bool {
	return !c.assumed && slices.ContainsFunc(c.state.Tables, func(t *schema.Table) bool {
		return t.Decl.Name != c.udp.Table && t.Len() == 0
	})
}

// outcome is how a walk from some byte of a datagram ends.
type outcome uint8

const (
	unwalked outcome = iota
	walkable         // with the datagram
	stuck            // before it
	lacking          // for want of a table
)

// path is how the walks through one datagram have ended, so that none goes the
// same way twice, however much about it is in doubt.
type path struct {
	of      *dissect.Datagram
	at      dissect.Direction
	ends    []outcome // by bytes left
	visited []int
}

// begin starts a datagram.
func (p *path) begin(d *dissect.Datagram) {
	p.of = d
	p.forget()
}

// forget drops what was found, as when the tables change.
func (p *path) forget() { p.ends = p.ends[:0] }

// end returns how the walk ends when so many bytes are left.
func (p *path) end(left int, d dissect.Direction) *outcome {
	if len(p.ends) == 0 || p.at != d {
		p.at = d
		size := len(p.of.Data) + 1
		p.ends = slices.Grow(p.ends[:0], size)[:size]
		clear(p.ends)
		p.ends[0] = walkable
	}
	return &p.ends[left]
}

// look walks some bytes at the end of the datagram.
func (c *conversation) look(at *dissect.Carrier, data []byte) outcome {
	h, p := c.side(at.Direction), &c.path
	p.visited = p.visited[:0]
	end := *p.end(len(data), at.Direction)
	for end == unwalked {
		p.visited = append(p.visited, len(data))
		m := h.of(data[0])
		rd := c.try(at, m, data)
		if m.number != modeRaw && (!rd.fits || rd.doubtful) && !rd.missing {
			// Servers repeat their handshake, and its acknowledgement, raw.
			if raw := c.try(at, mode{}, data); raw.fits && !raw.doubtful {
				rd = raw
			}
		}
		switch {
		case rd.missing:
			end = lacking
		case !rd.fits || rd.doubtful || c.afterthought(data):
			end = stuck
		default:
			data = data[rd.end:]
			end = p.ends[len(data)]
		}
	}
	for _, left := range p.visited {
		p.ends[left] = end
	}
	return end
}

// afterthought reports whether a record is a diagnostic behind others, which nobody
// has seen: zeros read like one.
func (c *conversation) afterthought(data []byte) bool {
	return data[0] == opDiagnostic && len(data) < len(c.path.of.Data)-2
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
	if off == p.size && d.Length > c.udp.Max {
		r.Note("datagram_too_large", "")
	}
	rd, size := c.read(d, data, d.Length-off, r)
	r.Envelope.Mode, r.Envelope.Origin, r.Envelope.LearnedIn = int(rd.mode.number), rd.mode.origin, int(rd.mode.packet)
	r.Envelope.Seq, r.Envelope.Length = rd.frame.Seq, rd.frame.Length
	if rd.err != nil {
		c.unreadable(r, rd, data)
		return len(data)
	}
	r.Raw, r.Size = data[:size], size+rd.truncated
	r.Body.Data = r.Raw
	if d.Waited && r.Context == schema.Learned {
		r.Note("late_context", "")
	}
	d.Locate(r, off, off+size)
	c.follow(r, d, rd)
	c.session.Emit(r)
	return size
}

// read settles how the record at the start of data is to be read, decodes it into
// r, and returns its size: by the mode of its opcode, unless only another reading
// fits. Section 12, items 4 and 5.
func (c *conversation) read(d *dissect.Datagram, data []byte, left int, r *dissect.Record) (reading, int) {
	h := c.side(d.Direction)
	m := h.of(data[0])
	rd := c.frame(m, data, left)
	if m.number == modeRaw {
		if guess, ok := c.guess(d, h, data); ok {
			code := "mode_guessed"
			if h.handshake.seen {
				code = "mode_mismatch"
			}
			r.Note(code, "")
			rd = guess
		}
		return rd, c.decode(r, d, rd, data)
	}
	notes := len(r.Notes)
	size := 0
	if rd.err == nil {
		size = c.decode(r, d, rd, data)
		_, missing := c.scratch.Decoder.Missing()
		fits := r.Err == nil && len(r.Rest) == 0 && !invalid(c.scratch.Decoder.Remarks)
		if rd.truncated > 0 || missing || fits || r.Layout == nil {
			return rd, size
		}
	}
	if rd.envelope == nil || !c.fitsRaw(d, data) {
		return rd, size
	}
	r.Notes = r.Notes[:notes]
	r.Reread()
	r.Note("raw_fallback", "the envelope of its mode does not fit")
	rd = c.frame(mode{modeRaw, m.packet, m.origin}, data, left)
	return rd, c.decode(r, d, rd, data)
}

// invalid reports whether a value was one that the layout does not allow, or a text
// one that no sender writes: what a reading that fits by accident is full of.
func invalid(remarks []schema.Remark) bool {
	return slices.ContainsFunc(remarks, func(m schema.Remark) bool {
		return m.Code == "out_of_range" || m.Code == "text_without_nul" || m.Code == "empty_string"
	})
}

// fitsRaw reports whether data begins with a record without an envelope, and goes
// on with others to its end.
func (c *conversation) fitsRaw(d *dissect.Datagram, data []byte) bool {
	rd := c.try(&d.Carrier, mode{}, data)
	return rd.fits && !rd.doubtful && c.walks(&d.Carrier, data[rd.end:])
}

// guess reads a raw record as one with an envelope, when that fits to its last
// byte and the raw reading does not, or only with a value that cannot be: zeros
// behind a record that ends too early look like diagnostics. A body without a layout
// fits anything, and is no reason.
func (c *conversation) guess(d *dissect.Datagram, h *half, data []byte) (reading, bool) {
	by := d.Direction.Sender()
	if !c.sequenced.Fits(data) || len(c.schema.Packet(uint64(data[0]), by, schema.UDP).Of(by)) == 0 {
		return reading{}, false
	}
	raw := c.try(&d.Carrier, mode{}, data)
	if !raw.doubtful && c.walks(&d.Carrier, data) {
		return reading{}, false
	}
	rd := c.try(&d.Carrier, mode{1, 0, schema.Guessed}, data)
	if !rd.fits || rd.doubtful || rd.frame.Seq >= int(c.schema.Limit("sequence_modulus")) {
		return rd, false
	}
	// The bytes behind must go on as well as the raw reading's do.
	if raw.fits && !raw.doubtful && !c.walks(&d.Carrier, data[rd.end:]) {
		return rd, false
	}
	if !h.handshake.seen && c.session.Joined {
		h.guess(data[0], d.Packets[len(d.Packets)-1])
		c.path.forget()
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
	w := &c.scratch.Decoder
	w.Short = wire.Malformed
	if rd.truncated > 0 || rd.frame.Size == 0 && d.Length > len(d.Data) {
		w.Short = wire.Truncated
	}
	if rd.truncated > 0 {
		r.Note("not_captured", wire.Bits(8*rd.truncated)+" of it")
	}
	r.Body.Reset(data)
	sized := rd.frame.Size > 0
	end, _ := c.body(r, &d.Carrier, schema.UDP, rd.frame.Head, rd.end, sized)
	if !sized {
		if missing := d.Length - len(d.Data); r.Err != nil && r.Err.Kind == wire.Truncated && missing > 0 {
			r.Note("not_captured", wire.Bits(8*missing)+" of the datagram")
		}
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
		if c.scratch.Follows() {
			c.control(r, h)
		}
		c.learn(r, &d.Carrier)
	}
}

// sequence follows the stream of a record. A sender whose handshake's clock has
// started again, and whose sequences do so too, is a new session.
func (c *conversation) sequence(r *dissect.Record, d *dissect.Datagram, h *half, rd reading) {
	op := byte(r.Opcode)
	if h.restarted && h.sent && int64(rd.frame.Seq) == c.schema.Limit("first_sequence") {
		c.restart(&d.Carrier)
		r.Session = c.session.ID
	}
	h.sent = true
	if c.scratch.Follows() {
		h.stream(op).Sent(r, uint64(rd.frame.Seq), r.Raw[rd.frame.Head:], dissect.NoCopy)
	}
}

// restart begins a new session on the same ports. Where only one side has shaken
// hands so far, the other will, and that begins no third one.
func (c *conversation) restart(at *dissect.Carrier) {
	former := func(h *half) *schema.Table {
		if h.restarted {
			return h.former
		}
		return h.table()
	}
	c.session.Restart(at, "handshake", c.tables(former(&c.client), former(&c.server)))
	for _, x := range []*half{&c.client, &c.server} {
		x.due = !x.restarted
		x.restart()
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
