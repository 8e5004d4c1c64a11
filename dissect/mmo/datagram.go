package mmo

import (
	"strconv"

	"opscope/dissect"
	"opscope/schema"
	"opscope/schema/wire"
)

// Datagram decodes the frames of a datagram: one, as far as is known. Item 6.
func (c *conversation) Datagram(d *dissect.Datagram, _ bool) bool {
	if len(d.Data) < c.udp.Envelope.Size() {
		c.short(d)
		return true
	}
	for off, n := 0, 1; off < len(d.Data); n++ {
		head, ok := headOf(c.udp, d.Data[off:])
		if !ok {
			c.broken(&d.Carrier, schema.UDP, d.Data[off:], int64(off), "the datagram is kept as opaque bytes")
			break
		}
		off += c.frame(d, head, off, n)
	}
	return true
}

// short reports a datagram without a header.
func (c *conversation) short(d *dissect.Datagram) {
	r := c.session.Record(&d.Carrier)
	r.Message, r.Lost, r.Size = "empty", true, d.Length
	r.Raw, r.Rest = d.Data, d.Data
	r.Err = &wire.Error{Layer: c.schema.Name, Path: "envelope", Size: len(d.Data),
		Want: wire.Bits(8 * c.udp.Envelope.Size()), Got: wire.Bits(8*len(d.Data)) + " left", Kind: wire.Malformed}
	if d.Length > len(d.Data) {
		r.Err.Kind = wire.Truncated
	}
	r.Note("frame_truncated", "")
	c.session.Emit(r)
}

// frame decodes the frame at an offset, the nth of the datagram, and returns how many
// bytes the record has.
func (c *conversation) frame(d *dissect.Datagram, head schema.Frame, off, n int) int {
	data := d.Data[off:]
	c.learnRole(&d.Carrier, head.Opcode)
	r := c.session.Record(&d.Carrier)
	f := piece{at: &d.Carrier, over: schema.UDP, head: head, data: data, short: wire.Malformed}
	if f.missing = max(0, head.Size-len(data)); f.missing > 0 && head.Size <= d.Length-off {
		f.short = wire.Truncated
	}
	f.data = data[:len(data)-max(0, len(data)-head.Size)]
	size := len(f.data)
	trailing := data[size:]
	if len(trailing) > 0 && c.another(d, trailing) {
		trailing = nil
	}
	r.Raw, r.Offset, r.Size = data[:size+len(trailing)], int64(off), max(head.Size, size+len(trailing))
	if n > 1 {
		r.Note("several_frames", "the "+ordinal(n)+" of this datagram")
	}
	if most := c.datagramTarget; most > 0 && int64(d.Length) > most && off == 0 {
		r.Note("datagram_too_large", "")
	}
	d.Locate(r, off, off+len(r.Raw))
	c.decode(r, &f)
	if len(trailing) > 0 {
		r.Rest = r.Raw[size-min(len(r.Rest), size):]
		r.Note("trailing_bytes", wire.Bits(8*len(trailing))+" behind the frame")
	}
	size = len(r.Raw)
	c.session.Emit(r)
	return size
}

// another reports whether bytes behind a frame are another one, whole and plausible.
func (c *conversation) another(d *dissect.Datagram, rest []byte) bool {
	head, ok := headOf(c.udp, rest)
	return ok && head.Size <= len(rest) && plausible(c.schema, c.scratch, schema.UDP, d.Direction.Sender(), rest[:head.Size]) > dissect.Implausible
}

// ordinal returns "2nd" for 2.
func ordinal(n int) string {
	suffix := "th"
	if tens := n / 10 % 10; tens != 1 && n%10 >= 1 && n%10 <= 3 {
		suffix = [...]string{"st", "nd", "rd"}[n%10-1]
	}
	return strconv.Itoa(n) + suffix
}
