package sink

import (
	"time"

	"opscope/dissect"
	"opscope/schema"
	"opscope/schema/wire"
)

const indent = "    "

// full is the Verbosity that leaves nothing out.
const full = 2

// rowMembers is how many numbers of an array share a line, unless nothing is left
// out.
const rowMembers = 8

// appendDetails appends the lines under the first line of a record.
func (t *Text) appendDetails(dst []byte, r *dissect.Record) []byte {
	dst = t.appendOrigin(dst, r)
	dst = t.appendEnvelope(dst, r)
	dst = t.appendMeaning(dst, r)
	dst = t.appendSource(dst, r)
	for i := 0; i < len(r.Body.Nodes); i = r.Body.Next(i) {
		dst = t.appendField(dst, r, i, -1, 1)
	}
	dst = t.appendUndecoded(dst, r)
	for i := range r.Notes {
		dst = append(t.appendNote(append(dst, indent...), &r.Notes[i], noLimit), '\n')
	}
	if r.Err != nil {
		dst = append(t.appendFailure(append(dst, indent...), r, noLimit), '\n')
	}
	return dst
}

// appendOrigin appends "packets 12 13  10.0.0.2:50111 -> 10.0.0.1:2627  offset 0".
func (t *Text) appendOrigin(dst []byte, r *dissect.Record) []byte {
	dst = append(dst, indent...)
	dst = t.paint(dst, t.ink.name, "packets")
	for _, n := range r.Packets {
		dst = appendInt(append(dst, ' '), int64(n))
	}
	dst = appendAddress(append(dst, gutter...), r.Src)
	dst = appendAddress(append(dst, " -> "...), r.Dst)
	dst = appendInt(append(dst, "  offset "...), r.Offset)
	if p := r.Passage; p.Type != dissect.UnknownPacketType {
		dst = append(append(dst, gutter...), p.Type.String()...)
		if p.Interface > 0 {
			dst = appendInt(append(dst, " on interface "...), int64(p.Interface))
		}
	}
	if r.Ack.By > 0 {
		dst = appendInt(append(dst, "  acknowledged by packet "...), int64(r.Ack.By))
	}
	return append(dst, '\n')
}

// appendEnvelope appends "envelope mode=1 (latest) seq=7 length=9, learned from packet 9",
// or nothing for a record without one.
func (t *Text) appendEnvelope(dst []byte, r *dissect.Record) []byte {
	e := r.Envelope
	if e == dissect.NoEnvelope && len(r.Head.Nodes) == 0 && r.Context == schema.NoOrigin {
		return dst
	}
	dst = t.paint(append(dst, indent...), t.ink.name, "envelope")
	if e.Mode >= 0 {
		dst = appendInt(append(dst, " mode="...), int64(e.Mode))
		dst = append(t.appendMode(append(dst, " ("...), r.Protocol, e.Mode), ')')
	}
	if e.Seq >= 0 {
		dst = appendInt(append(dst, " seq="...), int64(e.Seq))
	}
	if e.Length >= 0 {
		dst = appendInt(append(dst, " length="...), int64(e.Length))
	}
	if e.Prefixed {
		dst = append(dst, " prefixed"...)
	}
	for i := range r.Head.Nodes {
		if n := &r.Head.Nodes[i]; !told(r, n) && (shown(n) || t.o.Verbosity >= full) {
			dst = append(appendEscaped(append(dst, ' '), nameOf(n)), '=')
			dst = t.appendShort(dst, &r.Head, i, noLimit)
		}
	}
	if e.Copies > 0 {
		dst = appendInt(append(dst, " copies="...), int64(e.Copies))
	}
	if e.First > 0 {
		dst = appendInt(append(dst, " first in packet "...), int64(e.First))
	}
	if e.Origin != schema.NoOrigin {
		dst = append(append(dst, ", "...), e.Origin.String()...)
	}
	if e.LearnedIn > 0 {
		dst = appendInt(append(dst, " from packet "...), int64(e.LearnedIn))
	}
	if r.Context != schema.NoOrigin {
		dst = append(append(dst, ", context "...), r.Context.String()...)
	}
	return append(dst, '\n')
}

// appendMeaning appends what the record means for others, each on a line: what it
// acknowledges, and what it teaches.
func (t *Text) appendMeaning(dst []byte, r *dissect.Record) []byte {
	if names(&r.Acks) {
		dst = append(t.appendAcks(append(dst, indent...), &r.Acks, noLimit), '\n')
	}
	if teaches(r) {
		dst = append(t.appendTeaches(append(dst, indent...), r), '\n')
	}
	return dst
}

// appendSource says who says that the packet looks like this.
func (t *Text) appendSource(dst []byte, r *dissect.Record) []byte {
	p := r.Packet
	if p == nil || t.o.Verbosity < full && p.Confidence.Certain() {
		return dst
	}
	dst = t.paint(append(dst, indent...), t.ink.name, "layout")
	dst = appendEscaped(append(dst, ' '), either(p.Confidence.String(), "of no stated confidence"))
	if p.Source != "" {
		dst = appendEscaped(append(dst, ", "...), p.Source)
	}
	return append(dst, '\n')
}

// appendField appends the lines of node i, the element at this index of an
// array, or -1 for a member.
func (t *Text) appendField(dst []byte, r *dissect.Record, i, index, depth int) []byte {
	n := &r.Body.Nodes[i]
	if !shown(n) && (t.o.Verbosity < full || dissect.Withheld(n)) {
		return dst
	}
	for range depth {
		dst = append(dst, indent...)
	}
	if index >= 0 {
		dst = append(appendInt(append(dst, '['), int64(index)), ']')
	} else {
		dst = append(appendEscaped(append(dst, t.ink.name.on...), nameOf(n)), t.ink.name.off...)
		if t.o.Verbosity >= full && n.Field != nil && n.Field.Type != "" {
			dst = appendEscaped(append(dst, ": "...), n.Field.Type)
		}
	}
	hidden := t.redact.HidesNode(&r.Body, i)
	whole := hidden || t.o.Verbosity < full && t.isTuple(&r.Body, i, rowMembers)
	switch {
	case hidden:
		dst = append(append(dst, " = "...), dissect.MaskText...)
	case whole:
		dst = appendUnit(t.appendTuple(append(dst, " = "...), &r.Body, i), n)
	case n.Kind == schema.Array, n.Kind == schema.Struct:
		dst = t.appendHeading(dst, r, i)
	default:
		dst = t.appendLong(append(dst, " = "...), r, i)
	}
	dst = t.appendQualities(dst, r, n, hidden)
	if !hidden {
		dst = t.appendReadings(dst, &r.Body, i)
	}
	dst = append(dst, '\n')
	if whole {
		return dst
	}
	for k, element := i+1, 0; k < r.Body.Next(i); k = r.Body.Next(k) {
		if n.Kind == schema.Array {
			dst = t.appendField(dst, r, k, element, depth+1)
		} else {
			dst = t.appendField(dst, r, k, -1, depth+1)
		}
		element++
	}
	return dst
}

// appendHeading appends, for an array, the number of its elements.
func (t *Text) appendHeading(dst []byte, r *dissect.Record, i int) []byte {
	if r.Body.Nodes[i].Kind == schema.Struct {
		return dst
	}
	return appendInt(append(dst, " = "...), int64(r.Body.Elements(i)))
}

// appendLong appends the value of node i on its own line, with its unit.
func (t *Text) appendLong(dst []byte, r *dissect.Record, i int) []byte {
	n := &r.Body.Nodes[i]
	switch n.Kind {
	case schema.Null:
		return append(dst, "(absent)"...)
	case schema.Text, schema.String:
		dst = t.appendQuoted(dst, &r.Body, i, t.page())
	case schema.Bytes:
		t.value = r.Body.AppendBytes(t.value[:0], i)
		dst = t.appendLongHex(dst, t.value)
	default:
		dst = t.appendScalar(dst, &r.Body, i)
	}
	return appendUnit(dst, n)
}

func appendUnit(dst []byte, n *schema.Node) []byte {
	if n.Field == nil || n.Field.Unit == "" {
		return dst
	}
	return appendEscaped(append(dst, ' '), n.Field.Unit)
}

// page returns the columns that a value may take on a line of its own.
func (t *Text) page() int {
	if t.o.Verbosity >= full {
		return noLimit
	}
	return pageText
}

// appendLongHex appends bytes as hex; when they do not fit, the first ones and
// their number.
func (t *Text) appendLongHex(dst, b []byte) []byte {
	if 2*len(b) <= t.page() {
		return appendHex(dst, b)
	}
	return t.appendMore(appendHex(dst, b[:t.page()/2]), "", len(b))
}

// appendQualities appends what stands behind a value: how sure its layout is
// and, when nothing is left out, its place, its bits and its source.
func (t *Text) appendQualities(dst []byte, r *dissect.Record, n *schema.Node, hidden bool) []byte {
	f := n.Field
	dst = append(dst, t.ink.quiet.on...)
	if t.o.Verbosity >= full && n.Len > 0 {
		dst = appendRange(append(dst, "  @"...), int(n.Off), int(n.Len))
		if !hidden {
			dst = appendWireBits(dst, r, n)
		}
	}
	if word := markOf(n); word != "" {
		dst = append(append(append(dst, "  ("...), word...), ')')
	}
	if f != nil && (t.o.Verbosity >= full && f.Confidence != schema.NoConfidence || !f.Confidence.Certain()) {
		dst = append(append(append(dst, "  ["...), f.Confidence.String()...), ']')
	}
	if t.o.Verbosity >= full && f != nil && f.Source != "" && (r.Packet == nil || f.Source != r.Packet.Source) {
		dst = appendEscaped(append(dst, gutter...), f.Source)
	}
	return append(dst, t.ink.quiet.off...)
}

// markOf says what is out of the ordinary about a value of Protocol Buffers.
func markOf(n *schema.Node) string {
	switch {
	case marked(n, schema.Absent):
		return "absent"
	case marked(n, schema.Superseded):
		return "superseded"
	case marked(n, schema.Unmatched):
		return n.Field.Wire.String()
	}
	return ""
}

// appendReadings appends the other ways to read a value without a schema.
func (t *Text) appendReadings(dst []byte, body *schema.Tree, i int) []byte {
	if !marked(&body.Nodes[i], schema.Unmatched) {
		return dst
	}
	t.readings = body.AppendReadings(t.readings[:0], i)
	joint := "  or"
	for k := range t.readings {
		if r := &t.readings[k]; !taken(&body.Nodes[i], r) {
			dst = t.appendReading(append(dst, joint...), body, i, r)
			joint = ","
		}
	}
	return dst
}

// taken reports whether a reading is the one that the node has.
func taken(n *schema.Node, r *schema.Reading) bool {
	return r.Kind == n.Kind && r.Name != "time" && (n.Kind >= schema.Text || r.Num == n.Num)
}

// appendReading appends a reading: its name, and what it gives.
func (t *Text) appendReading(dst []byte, body *schema.Tree, i int, r *schema.Reading) []byte {
	dst = append(append(dst, ' '), r.Name...)
	n := schema.Node{Kind: r.Kind, Num: r.Num}
	switch {
	case r.Name == "time":
		return time.UnixMilli(int64(r.Num)).UTC().AppendFormat(append(dst, ' '), "2006-01-02T15:04:05.000Z")
	case r.Kind == schema.Bool:
		return appendBool(append(dst, ' '), &n)
	case r.Kind == schema.Uint, r.Kind == schema.Int, r.Kind == schema.Float:
		return appendNumber(append(dst, ' '), &n, r.Name == "float")
	case r.Kind != schema.Bytes && r.Kind != schema.Array:
		return dst
	case t.redact.Covered(&body.Nodes[i]):
		return append(append(dst, ' '), dissect.MaskText...)
	case r.Kind == schema.Array:
		return t.appendPacked(append(dst, ' '), content(&t.value, body, i))
	}
	return t.appendShortHex(append(dst, ' '), content(&t.value, body, i), pageText)
}

// content returns the bytes of a value without a schema, whatever it was read as.
func content(scratch *[]byte, body *schema.Tree, i int) []byte {
	n := &body.Nodes[i]
	*scratch = wire.AppendBytes((*scratch)[:0], body.Data, int(n.Body), int(n.BodyLen))
	return *scratch
}

// appendPacked appends the numbers that bytes are made of, as many as a row has.
func (t *Text) appendPacked(dst, data []byte) []byte {
	t.packed, _ = schema.AppendPacked(t.packed[:0], data)
	dst = append(dst, '(')
	for k, v := range t.packed {
		if k > 0 {
			dst = append(dst, ", "...)
		}
		if k == rowMembers {
			dst = t.ellipsis(dst)
			break
		}
		dst = appendUint(dst, v)
	}
	return append(dst, ')')
}

// appendWireBits appends a number as it stood on the wire, in hexadecimal, and
// in binary where it is no whole number of bytes.
func appendWireBits(dst []byte, r *dissect.Record, n *schema.Node) []byte {
	switch n.Kind {
	case schema.Uint, schema.Int, schema.Float, schema.IPv4:
	default:
		return dst
	}
	if n.Len > 64 || n.Field != nil && n.Field.Number > 0 { // of Protocol Buffers, with its tag
		return dst
	}
	order := wire.Big
	if n.Field != nil {
		order = n.Field.Order
	}
	if n.Len&7 == 0 {
		v := wire.ReadBits(r.Body.Data, int(n.Off), int(n.Len), order)
		dst = appendDigits(append(dst, " raw 0x"...), v, int(n.Len/4))
	} else {
		v := wire.ReadBits(r.Body.Data, int(n.Off), int(n.Len), order)
		dst = append(dst, " raw 0b"...)
		for bit := int(n.Len) - 1; bit >= 0; bit-- {
			dst = append(dst, byte('0'+v>>uint(bit)&1))
		}
	}
	if n.Sel >= 0 && n.Kind == schema.Float && n.Kept {
		dst = appendInt(append(dst, " selector "...), int64(n.Sel))
	}
	return dst
}

// appendUndecoded appends the line of the bytes after the last field.
func (t *Text) appendUndecoded(dst []byte, r *dissect.Record) []byte {
	if len(r.Rest) == 0 && !t.redact.HidesRest() {
		return dst
	}
	dst = append(t.paint(append(dst, indent...), t.ink.name, restName(r)), " = "...)
	if t.redact.HidesRest() {
		return append(append(dst, dissect.MaskText...), '\n')
	}
	return append(t.appendLongHex(dst, r.Rest), '\n')
}
