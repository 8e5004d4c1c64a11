package dplay

import (
	"slices"
	"strconv"

	"opscope/dissect"
	"opscope/schema"
	"opscope/schema/wire"
)

// frame is one frame of DirectPlay, off a stream, a datagram, or put together of pieces.
type frame struct {
	*dissect.Carrier
	data    []byte    // as far as it was captured, borrowed
	size    int       // all of it
	offset  int64     // of its first byte, in its stream or datagram
	missing int       // bytes at its end that were not captured
	short   wire.Kind // what running out of data means
	joined  int       // pieces that it was put together of
}

// Frame decodes a frame, which Cut has found, and emits its record.
func (c *conversation) Frame(f *dissect.Frame) {
	one := frame{Carrier: &f.Carrier, data: f.Data, size: f.Size, offset: f.Offset, missing: f.Missing, short: wire.Malformed}
	if f.Missing > 0 {
		one.short = f.Short
	}
	c.take(&one, nil)
}

// Datagram decodes the one frame of a datagram and emits its record.
func (c *conversation) Datagram(d *dissect.Datagram, _ bool) bool {
	f := frame{Carrier: &d.Carrier, data: d.Data, size: d.Length, missing: d.Length - len(d.Data), short: wire.Malformed}
	if f.missing > 0 {
		f.short = wire.Truncated
	}
	c.take(&f, c.fits(f.data))
	return true
}

// fits returns an error where data begins no frame.
func (c *conversation) fits(data []byte) *wire.Error {
	if _, err := c.tcp.Find(data, c.Protocol.Name); err != nil && err.Kind != wire.Incomplete {
		return err
	}
	return nil
}

// take decodes a frame by what it is; err is that it is none.
func (c *conversation) take(f *frame, err *wire.Error) {
	if c.verdict == undecided && c.session.Chosen() {
		c.claim()
	}
	switch {
	case len(f.data) < c.system.Size() || err != nil:
		c.headless(f, err)
	case c.isSystem(f.data):
		c.command(f)
	case c.weigh(f):
		c.message(f)
	}
}

// record returns the record of a frame, with its bytes.
func (c *conversation) record(f *frame) *dissect.Record {
	r := c.session.Record(f.Carrier)
	r.Protocol = c.Protocol.Name
	r.Raw, r.Size, r.Offset = f.data, f.size, f.offset
	if f.missing > 0 {
		r.Note("not_captured", wire.Bits(8*f.missing)+" of it")
	}
	if f.joined > 0 {
		r.Made = true
		r.Note("reassembled", "of "+strconv.Itoa(f.joined)+" pieces")
	}
	return r
}

// headless emits the record of what is too short for an envelope, or begins no frame.
func (c *conversation) headless(f *frame, err *wire.Error) {
	r := c.record(f)
	if r.Err = err; err == nil {
		r.Err = c.fault("envelope", f.size, "size, token and sockaddr of a frame", wire.Bits(8*len(f.data)))
		r.Err.Kind = f.short
	}
	r.Rest = f.data
	c.session.Emit(r)
}

// head decodes the envelope of DirectPlay.
func (c *conversation) head(r *dissect.Record, f *frame, e *envelope) *wire.Error {
	r.Head.Reset(f.data)
	err := c.scratch.Head(c.Protocol, e.Envelope, &r.Head, 0, f.short)
	for _, m := range c.scratch.Decoder.Remarks {
		r.Note(m.Code, m.Text)
	}
	if err == nil && e.zero.Read(f.data) != 0 {
		r.Note("padding_nonzero", "the end of the sockaddr is not zero")
	}
	return err
}

// command decodes a frame of DirectPlay's own.
func (c *conversation) command(f *frame) {
	opcode := c.header.opcode.Read(f.data)
	k := c.Protocol.Packet(opcode, schema.AnySender, schema.TCP)
	c.foresee(f, k, opcode)
	r := c.record(f)
	r.Opcode, r.Message, r.Packet = int(opcode), c.Protocol.OpcodeName(opcode), k
	r.Err = c.head(r, f, &c.system)
	end := c.body(r, f, k)
	if r.Err == nil && f.joined == 0 {
		r.Err = c.checkSize(r, f)
	}
	if k != nil && k.From != schema.AnySender && r.Direction != dissect.UnknownDirection && r.Direction.Sender() != k.From {
		r.Note("unexpected_direction", "")
	}
	if r.Err == nil && f.missing == 0 && end > 0 {
		c.uncovered(r, end)
		c.learn(r)
	}
	c.follow(r)
	joined := c.piece(r, f)
	c.session.Emit(r)
	if joined != nil {
		c.take(joined, c.fits(joined.data))
	}
}

// checkSize compares the size that a frame says with its bytes: a datagram has one frame.
func (c *conversation) checkSize(r *dissect.Record, f *frame) *wire.Error {
	if said := c.size(f.data); said != f.size {
		return c.fault("envelope.size", f.size, "a size of "+strconv.Itoa(f.size), strconv.Itoa(said))
	}
	return nil
}

// body decodes the body of a command and returns where it ends, 0 where nobody knows its
// layout.
func (c *conversation) body(r *dissect.Record, f *frame, k *schema.Packet) int {
	start := c.system.Size()
	r.Body.Reset(f.data)
	if len(k.Of(schema.AnySender)) == 0 {
		r.Rest = f.data[start:]
		if k == nil {
			r.Note("unknown_opcode", "")
		} else {
			r.Note("unknown_body", "")
		}
		return 0
	}
	return c.decode(r, f, k, start)
}

// decode decodes a body and returns where it ends.
func (c *conversation) decode(r *dissect.Record, f *frame, k *schema.Packet, start int) int {
	w := &c.scratch.Decoder
	w.State, w.Envelope, w.Short = nil, c.system.Envelope, f.short
	r.Packet, r.Layout = k, k.Of(schema.AnySender)[0]
	err := w.Decode(c.Protocol, k.Name, r.Layout, &r.Body, 8*start, 8*len(f.data))
	for _, m := range w.Remarks {
		r.Note(m.Code, m.Text)
	}
	end := (w.End + 7) / 8
	switch {
	case err != nil:
		r.Err, r.Rest = err, f.data[min(end, len(f.data)):]
	case end < len(f.data):
		r.Rest = f.data[end:]
		r.Note("trailing_bytes", "")
	}
	return end
}

// uncovered remarks on bytes that belong to no field, or to several: offsets can point
// anywhere.
func (c *conversation) uncovered(r *dissect.Record, end int) {
	c.covered = slices.Grow(c.covered[:0], end)[:end]
	clear(c.covered)
	for i := range r.Body.Nodes {
		n := &r.Body.Nodes[i]
		if n.Size > 0 || n.Kind == schema.Struct || n.Kind == schema.Array {
			continue
		}
		for b := int(n.Off) / 8; b < int(n.Off+n.Len)/8; b++ {
			c.covered[b] = min(c.covered[b]+1, 2)
		}
	}
	first, holes, twice := -1, 0, 0
	for b, times := range c.covered[c.system.Size():] {
		switch {
		case times > 1:
			twice++
		case times == 0:
			if holes++; first < 0 {
				first = b + c.system.Size()
			}
		}
	}
	if holes > 0 {
		r.Note("bytes_between", wire.Bits(8*holes)+" that belong to no field, the first at "+strconv.Itoa(first))
	}
	if twice > 0 {
		r.Note("fields_overlap", wire.Bits(8*twice)+" that belong to more than one field")
	}
}

// message decodes a player message, which is the game's, or bytes where it is another's.
func (c *conversation) message(f *frame) {
	start := c.player.Size()
	if c.verdict == claimed && f.Flow.Guessed() && c.talk.Host(f.data[start:]) {
		f.Said(schema.Server)
	}
	r := c.record(f)
	r.Err = c.head(r, f, &c.player)
	if c.verdict != claimed {
		k := c.Protocol.Packet(playerMessage, schema.AnySender, schema.TCP)
		r.Message = k.Name
		r.Body.Reset(f.data)
		c.decode(r, f, k, start)
		if r.Err == nil && f.joined == 0 {
			r.Err = c.checkSize(r, f)
		}
		c.session.Emit(r)
		return
	}
	r.Protocol = c.session.Schema().Name
	m := &c.heard
	m.Frame, m.Start, m.Missing, m.Short, m.From = f.data, start, f.missing, f.short, c.from.Read(f.data)
	c.talk.Message(r, m)
	if r.Err == nil && f.joined == 0 {
		r.Err = c.checkSize(r, f)
	}
	c.session.Emit(r)
}
