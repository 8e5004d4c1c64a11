package schema

import (
	"cmp"
	"math"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"opscope/schema/wire"
)

// This file walks a body of Protocol Buffers along its descriptors, in the order of
// the wire. Nothing is merged away: what is unknown, repeated, of the wrong type or
// cut stays visible, with its bytes.

// Limits of decoding Protocol Buffers.
const (
	maxGuesses = 20      // likewise, where it is only a guess that they are messages
	maxAbsent  = 1 << 14 // absent fields that are listed; two bytes can lack hundreds
	maxAlike   = 8       // remarks with one code
)

// protoWalk is the state of one walk.
type protoWalk struct {
	seen   []uint64 // bits of the fields and oneofs of each message that is open
	stop   int      // where the first field that failed begins, -1 for none
	top    int      // where the outermost field that is being decoded begins
	cut    bool     // it failed because the bytes ran out
	twice  bool     // a field came twice where no node is made
	absent int
}

// protobuf decodes a body of Protocol Buffers.
func (d *Decoder) protobuf(p *Protocol, name string, m *message, t *Tree, from, to int) *wire.Error {
	d.missing, d.skimmed, d.Remarks, d.t, d.Origin = false, 0, d.Remarks[:0], t, NoOrigin
	if p != d.m.p {
		d.m.p, d.bounds = p, p.limits()
	}
	d.proto = protoWalk{seen: d.proto.seen[:0], stop: -1}
	d.r.Reset(t.Data[:(to+7)>>3], p.Name, d.Short)
	d.r.Seek(from)
	first := len(t.Nodes)
	d.message(m, 0, 0, d.Short == wire.Malformed)
	if d.proto.twice { // which of the values counts, the nodes tell
		d.skims = false
		return d.protobuf(p, name, m, t, from, to)
	}
	d.End = d.r.Pos()
	err := d.r.Err()
	if err == nil {
		return nil
	}
	d.End = d.proto.stop
	text := "want " + err.Want + ", got " + err.Got
	if err.Path != "" {
		text = err.Path + ": " + text
	}
	switch {
	case !d.proto.cut && m.guess && d.proto.top == from:
		// What is not to be read as a message at all need not be one.
		t.Nodes, d.End = t.Nodes[:first], from
		d.alike("protobuf_malformed", "not Protocol Buffers at byte "+strconv.Itoa(err.Offset)+": "+text)
		return nil
	case !d.proto.cut:
		d.alike("protobuf_malformed", text)
	case d.Short == wire.Malformed:
		d.alike("protobuf_truncated", text)
	}
	return err.Within(name)
}

// alike adds a remark, unless there are enough with its code.
func (d *Decoder) alike(code, text string) {
	n := 0
	for i := range d.Remarks {
		if d.Remarks[i].Code == code {
			n++
		}
	}
	switch {
	case n < maxAlike:
		d.remark(code, text)
	case n == maxAlike:
		d.remark(code, "and more like that")
	}
}

// malformed fails at the start of a field, for another reason than a lack of bytes.
func (d *Decoder) malformed(start int, want, got string) bool {
	if d.r.Err() == nil {
		d.r.Seek(start)
		d.r.Fail(want, got, wire.Malformed)
	}
	return d.stopped(start)
}

// stopped notes where the field that failed begins. It returns false.
func (d *Decoder) stopped(start int) bool {
	if d.proto.stop < 0 {
		d.proto.stop = start
	}
	return false
}

// varint reads a varint of the field that begins at start.
func (d *Decoder) varint(start int) (uint64, bool) {
	v := d.r.Varint()
	if d.r.Err() != nil {
		d.proto.cut = d.r.Left() == 0
		return 0, d.stopped(start)
	}
	return v, true
}

// has reports whether so many bytes are left for the field that begins at start, and
// fails otherwise.
func (d *Decoder) has(start int, n uint64) bool {
	if n <= uint64(d.r.Left()>>3) {
		return true
	}
	d.r.Need(8 * int(min(n, math.MaxInt32)))
	d.proto.cut = true
	return d.stopped(start)
}

// message decodes fields up to the end of what can be read, or of the group with this
// number. The depth is the number of messages around it. Whole says that all of it is
// there; of one that is cut nobody knows which fields are absent.
func (d *Decoder) message(m *message, depth int, group uint64, whole bool) bool {
	w := messageWalk{m: m, depth: depth, first: len(d.t.Nodes), open: -1, base: len(d.proto.seen)}
	for range (len(m.fields) + m.oneofs + 63) / 64 {
		d.proto.seen = append(d.proto.seen, 0)
	}
	ok, ended := d.fields(&w, group)
	d.closeArray(&w)
	if ok && group != 0 && !ended {
		d.r.Fail("the end of group "+strconv.FormatUint(group, 10), "0 bytes left", d.Short)
		d.proto.cut = true
		ok = d.stopped(d.r.Pos())
	}
	switch {
	case w.again && d.skims:
		d.proto.twice = true
	case w.again:
		d.settle(m, w.first)
	}
	if ok && (whole || group != 0) {
		d.addAbsent(m, func(k int) bool { return d.saw(&w, k) })
	}
	d.proto.seen = d.proto.seen[:w.base]
	return ok
}

// messageWalk is one message that is being decoded.
type messageWalk struct {
	m     *message
	depth int
	first int  // index of its first node
	base  int  // of its bits in protoWalk.seen
	open  int  // index of the field whose array is being filled, -1 for none
	array int  // index of that array's node
	end   int  // where its last element ended
	count int  // of its elements
	again bool // a field came twice
}

// see notes that field k, or a oneof, is there, and returns whether it was before.
func (d *Decoder) see(w *messageWalk, k int) bool {
	word, bit := &d.proto.seen[w.base+k>>6], uint64(1)<<(k&63)
	before := *word&bit != 0
	*word |= bit
	return before
}

func (d *Decoder) saw(w *messageWalk, k int) bool {
	return d.proto.seen[w.base+k>>6]>>(k&63)&1 != 0
}

// wireTypes are the wire types by the last three bits of a tag, but for the end of a
// group, which is no field.
var wireTypes = [8]WireType{0: WireVarint, 1: WireI64, 2: WireLen, 3: WireGroup, 5: WireI32}

const endGroup = 4

// fields decodes the fields of a message, and reports whether there was no error, and
// whether the group with this number has ended.
func (d *Decoder) fields(w *messageWalk, group uint64) (ok, ended bool) {
	for d.r.Left() > 0 {
		start := d.r.Pos()
		if w.depth == 0 {
			d.proto.top = start
		}
		tag, ok := d.varint(start)
		if !ok {
			return false, false
		}
		number, as := tag>>3, wireTypes[tag&7]
		switch {
		case number == 0 || number > uint64(protowire.MaxValidNumber):
			return d.malformed(start, "a field number from 1 to "+strconv.Itoa(int(protowire.MaxValidNumber)), strconv.FormatUint(number, 10)), false
		case tag&7 == endGroup && number == group:
			return true, true
		case tag&7 == endGroup:
			return d.malformed(start, "a field, or the end of its own group", "the end of group "+strconv.FormatUint(number, 10)), false
		case as == NoWire:
			return d.malformed(start, "a wire type from 0 to 5", strconv.Itoa(int(tag&7))), false
		case !d.protoField(w, number, as, start) || !d.few():
			return d.stopped(start), false
		}
	}
	return true, false
}

// protoField decodes one field behind its tag.
func (d *Decoder) protoField(w *messageWalk, number uint64, as WireType, start int) bool {
	k := w.m.find(number)
	if k < 0 {
		d.closeArray(w)
		return d.unmatched(unmatchedField(number, as, w.m.redact), as, w.m.redact, w.depth, start)
	}
	f := w.m.fields[k]
	packed := f.repeated && as == WireLen && f.scalar()
	if as != f.field.Wire && !packed {
		d.closeArray(w)
		d.alike("wire_type_mismatch", "field "+f.field.Name+" ("+strconv.FormatUint(number, 10)+") is "+f.field.Type+", and arrives as "+as.String())
		u := f.mismatched(number, as, w.m.redact)
		return d.unmatched(u, as, cmp.Or(u.Redact, w.m.redact), w.depth, start)
	}
	if f.oneof >= 0 && d.see(w, len(w.m.fields)+f.oneof) {
		w.again = true
	}
	if d.see(w, k) && w.open != k {
		w.again = true
	}
	if !f.repeated {
		d.closeArray(w)
		return d.value(f, f.field, as, w.depth, start) || d.within(f.field.Name)
	}
	if w.open != k {
		d.closeArray(w)
		w.open, w.array, w.end, w.count = k, len(d.t.Nodes), start, 0
		d.add(f.field, Array, start)
	}
	ok := false
	if packed {
		ok = d.packed(w, f, start)
	} else if ok = d.value(f, f.element, as, w.depth, start); ok {
		w.count++
	}
	w.end = d.reached(ok)
	if !ok {
		d.within("[" + strconv.Itoa(w.count) + "]")
		d.within(f.field.Name)
	}
	return ok
}

// within puts a name in front of the error's path. It returns false.
func (d *Decoder) within(name string) bool {
	d.r.Err().Within(name)
	return false
}

// mismatched returns the field for a known number with a wire type that is not its
// own. What it holds may be what the field would hide.
func (f *messageField) mismatched(number uint64, as WireType, r Redaction) *Field {
	if f.field.Redact == Open {
		return unmatchedField(number, as, r)
	}
	u := newUnmatched(number, as, r)
	u.Redact = f.field.Redact
	return &u
}

// closeArray ends the array that is being filled.
func (d *Decoder) closeArray(w *messageWalk) {
	if w.open >= 0 && !d.skims {
		n := &d.t.Nodes[w.array]
		n.Size = int32(len(d.t.Nodes) - w.array - 1)
		n.Len = int32(w.end) - n.Off
	}
	w.open = -1
}

// value decodes one value of a field, behind its tag.
func (d *Decoder) value(f *messageField, field *Field, as WireType, depth, start int) bool {
	switch as {
	case WireVarint:
		v, ok := d.varint(start)
		if ok {
			d.scalar(f, field, start, v)
		}
		return ok
	case WireI32, WireI64:
		size := 4
		if as == WireI64 {
			size = 8
		}
		if !d.has(start, uint64(size)) {
			return false
		}
		d.scalar(f, field, start, d.r.Uint(8*size, wire.Little))
		return true
	case WireGroup:
		i := len(d.t.Nodes)
		d.add(field, Struct, start)
		return d.nested(f.message, i, depth, start, uint64(f.field.Number), false)
	}
	n, ok := d.varint(start)
	if !ok {
		return false
	}
	if f.message != nil {
		return d.submessage(f.message, field, n, depth, start)
	}
	if !d.has(start, n) {
		return false
	}
	kind := Bytes
	if f.kind == protoreflect.StringKind {
		kind = Text
		d.checkUTF8(f, int(n))
	}
	return d.bytes(field, kind, start, int(n))
}

// checkUTF8 remarks on a text that is none.
func (d *Decoder) checkUTF8(f *messageField, n int) {
	from := d.r.Pos() >> 3
	if text := d.t.Data[from : from+n]; !utf8.Valid(text) {
		at := 0
		for at < n {
			r, size := utf8.DecodeRune(text[at:])
			if r == utf8.RuneError && size <= 1 {
				break
			}
			at += size
		}
		d.alike("invalid_utf8", "string "+f.field.Name+" ("+strconv.Itoa(f.field.Number)+") is no UTF-8 from byte "+strconv.Itoa(at)+" on")
	}
}

// scalar adds a number of a field that began at start and ends here.
func (d *Decoder) scalar(f *messageField, field *Field, start int, v uint64) {
	n := d.add(field, Uint, start)
	bits := 64
	switch f.kind {
	case protoreflect.BoolKind:
		n.Kind, n.Num, n.Bits = Bool, uint64(truth(v != 0).i), 1
		return
	case protoreflect.Int32Kind, protoreflect.Sfixed32Kind:
		d.cut32(f, uint64(int64(int32(v))) == v || f.kind == protoreflect.Sfixed32Kind)
		n.Kind, v, bits = Int, uint64(int64(int32(v))), 32
	case protoreflect.Sint32Kind:
		d.cut32(f, v>>32 == 0)
		n.Kind, v, bits = Int, uint64(protowire.DecodeZigZag(v&math.MaxUint32)), 32
	case protoreflect.EnumKind:
		d.cut32(f, uint64(int64(int32(v))) == v)
		v, bits = uint64(int64(int32(v))), 32
		if int64(v) < 0 {
			n.Kind = Int
		}
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		d.cut32(f, v>>32 == 0)
		v, bits = v&math.MaxUint32, 32
	case protoreflect.Int64Kind, protoreflect.Sfixed64Kind:
		n.Kind = Int
	case protoreflect.Sint64Kind:
		n.Kind, v = Int, uint64(protowire.DecodeZigZag(v))
	case protoreflect.FloatKind:
		n.Kind, n.Raw, n.Kept, bits = Float, v, true, 32
		v = math.Float64bits(float64(math.Float32frombits(uint32(v))))
	case protoreflect.DoubleKind:
		n.Kind, n.Raw, n.Kept = Float, v, true
	}
	n.set(v, bits)
}

// cut32 remarks on a number that does not fit its type of 32 bits: runtimes drop what
// is above without a word.
func (d *Decoder) cut32(f *messageField, fits bool) {
	if !fits {
		d.alike("value_cut", f.field.Name+" is "+f.field.Type+", and loses the bits above 32")
	}
}

// packed decodes the elements of a slice.
func (d *Decoder) packed(w *messageWalk, f *messageField, start int) bool {
	n, ok := d.varint(start)
	if !ok {
		return false
	}
	body, left := d.r.Pos(), d.r.Left()
	outer := d.inside(n)
	for ok && d.r.Left() > 0 {
		at := d.r.Pos()
		if ok = d.value(f, f.element, f.field.Wire, 0, at) && d.few(); ok {
			w.count++
		}
	}
	return d.outside(body, n, left, outer, ok)
}

// inside lets only the next n bytes be read, or those of them that are there.
func (d *Decoder) inside(n uint64) wire.Window {
	left := uint64(d.r.Left() >> 3)
	if n > left {
		return d.r.Narrow(d.r.Size(), d.r.Short())
	}
	return d.r.Narrow(d.r.Pos()+8*int(n), wire.Malformed)
}

// outside takes back what inside did, and fails where not all n bytes from body on were
// there, but only so many bits.
func (d *Decoder) outside(body int, n uint64, left int, outer wire.Window, ok bool) bool {
	d.r.Widen(outer)
	if n <= uint64(left>>3) || !ok {
		return ok
	}
	d.stopped(d.r.Pos())
	d.proto.cut = true
	d.r.Seek(body)
	d.r.Fail(wire.Bits(8*int(min(n, math.MaxInt32))), wire.Bits(left)+" left", d.r.Short())
	return false
}

// reached returns the end of what has been decoded.
func (d *Decoder) reached(ok bool) int {
	if !ok && d.proto.stop >= 0 {
		return d.proto.stop
	}
	return d.r.Pos()
}

// submessage decodes a message behind its length. Of one that is cut, the fields that
// are there are kept.
func (d *Decoder) submessage(m *message, field *Field, n uint64, depth, start int) bool {
	i := len(d.t.Nodes)
	body, left := d.r.Pos(), d.r.Left()
	d.add(field, Struct, start)
	outer := d.inside(n)
	ok := d.nested(m, i, depth, start, 0, n <= uint64(left>>3))
	if !d.skims {
		node := &d.t.Nodes[i]
		node.Body, node.BodyLen = int32(body), int32(max(0, d.reached(ok)-body))>>3
	}
	return d.outside(body, n, left, outer, ok)
}

// nested decodes the members of node i, which has been added.
func (d *Decoder) nested(m *message, i, depth, start int, group uint64, whole bool) bool {
	if depth+1 >= d.bounds.Messages {
		d.r.Seek(start)
		d.bound(BoundMessages, d.bounds.Messages, "messages within each other", "more")
		return d.stopped(start)
	}
	ok := d.message(m, depth+1, group, whole)
	if d.close(i); !d.skims {
		d.t.Nodes[i].Len = int32(max(d.reached(ok), start)) - d.t.Nodes[i].Off
	}
	return ok
}

// addAbsent adds the fields of a message that are not on the wire. There says of the
// index of a field whether it is.
func (d *Decoder) addAbsent(m *message, there func(int) bool) {
	for k, f := range m.fields {
		if there(k) || f.field.isExtension() {
			continue
		}
		if f.required {
			d.alike("required_missing", m.name+"."+f.field.Name)
		}
		if f.oneof >= 0 {
			continue
		}
		if d.proto.absent++; d.proto.absent > maxAbsent {
			return
		}
		d.add(f.absent, f.absentKind(), d.r.Pos()).Num = f.initial
	}
}

// absentKind returns what stands for a field that is not there.
func (f *messageField) absentKind() ValueKind {
	switch {
	case f.repeated:
		return Array
	case f.message != nil, f.presence && !f.entry:
		return Null
	}
	return f.valueKind()
}

// valueKind returns the kind of the node that holds the value, or an element of it. An
// enum's is Int where the value is negative.
func (f *messageField) valueKind() ValueKind {
	if f.message != nil {
		return Struct
	}
	switch f.kind {
	case protoreflect.BoolKind:
		return Bool
	case protoreflect.StringKind:
		return Text
	case protoreflect.BytesKind:
		return Bytes
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return Float
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind, protoreflect.EnumKind:
		return Uint
	}
	return Int
}

func (f *Field) isExtension() bool { return f.Name != "" && f.Name[0] == '[' }
