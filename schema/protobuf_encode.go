package schema

import (
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"opscope/schema/wire"
)

// protobuf appends the body that t describes: known fields by ascending number, as the
// common runtimes write them, then what has a number for its name. Defaults are left
// out, unless the field tells them from absence.
func (e *Encoder) protobuf(dst []byte, message string, m *message, t *Tree) ([]byte, error) {
	e.t, e.err = t, nil
	out, ok := e.message(dst, m, 0, len(t.Nodes))
	if !ok {
		e.within(message)
		return dst, e.err
	}
	return out, nil
}

// message appends the members among the nodes from index from to index to.
func (e *Encoder) message(dst []byte, m *message, from, to int) ([]byte, bool) {
	for i := from; i < to; i = e.t.Next(i) {
		if f := e.t.Nodes[i].Field; !m.has(f) {
			return dst, e.fail("a field of "+m.name+" or the number of one", strconv.Quote(f.Name))
		}
	}
	ok := true
	for _, f := range m.fields {
		if i := e.t.Find(from, to, f.field.Name); i >= 0 {
			if dst, ok = e.protoField(dst, f, i); !ok {
				return dst, e.within(f.field.Name)
			}
		}
	}
	for i := from; i < to; i = e.t.Next(i) {
		if n := &e.t.Nodes[i]; n.Field.number() > 0 && n.Field.Mark != Superseded {
			if dst, ok = e.unmatched(dst, i); !ok {
				return dst, e.within(n.Field.Name)
			}
		}
	}
	return dst, true
}

// has reports whether a member with this name belongs to the message.
func (m *message) has(f *Field) bool {
	return f.number() > 0 || slices.ContainsFunc(m.fields, func(k *messageField) bool { return k.field.Name == f.Name })
}

// number returns the field number that stands for a name, or 0.
func (f *Field) number() protowire.Number {
	n, err := strconv.ParseUint(f.Name, 10, 29)
	if err != nil {
		return 0
	}
	return protowire.Number(n)
}

func (e *Encoder) protoField(dst []byte, f *messageField, i int) ([]byte, bool) {
	n := &e.t.Nodes[i]
	switch {
	case n.Kind == Null || n.Field.Mark == Absent && !f.entry:
		return dst, true
	case !f.repeated:
		return e.value(dst, f, i, !f.presence && !f.entry)
	case n.Kind != Array:
		return dst, e.fail("an array", n.what())
	case f.packed:
		return e.packed(dst, f, i)
	}
	ok := true
	for k, index := i+1, 0; k < e.t.Next(i); k, index = e.t.Next(k), index+1 {
		if dst, ok = e.value(dst, f, k, false); !ok {
			return dst, e.within("[" + strconv.Itoa(index) + "]")
		}
	}
	return dst, true
}

// packed appends all elements behind one length; nothing, where there are none.
func (e *Encoder) packed(dst []byte, f *messageField, i int) ([]byte, bool) {
	var body []byte
	for k, index := i+1, 0; k < e.t.Next(i); k, index = e.t.Next(k), index+1 {
		v, ok := e.protoNumber(f, k)
		if !ok {
			return dst, e.within("[" + strconv.Itoa(index) + "]")
		}
		body = appendNumber(body, f.field.Wire, v)
	}
	if len(body) == 0 {
		return dst, true
	}
	dst = protowire.AppendTag(dst, protowire.Number(f.field.Number), protowire.BytesType)
	return protowire.AppendBytes(dst, body), true
}

// value appends a field with its tag. A default is left out where bare says so.
func (e *Encoder) value(dst []byte, f *messageField, i int, bare bool) ([]byte, bool) {
	number := protowire.Number(f.field.Number)
	switch f.kind {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return e.submessage(dst, f, i)
	case protoreflect.StringKind, protoreflect.BytesKind:
		switch n := &e.t.Nodes[i]; n.Kind {
		case Text, Bytes, String, GUID:
		default:
			return dst, e.fail("a text or bytes", n.what())
		}
		if bare && e.t.Nodes[i].BodyLen == 0 {
			return dst, true
		}
		dst = protowire.AppendTag(dst, number, protowire.BytesType)
		return protowire.AppendBytes(dst, e.t.AppendBytes(nil, i)), true
	}
	v, ok := e.protoNumber(f, i)
	if !ok || bare && v == 0 {
		return dst, ok
	}
	dst = protowire.AppendTag(dst, number, protowire.Type(f.field.Wire.Number()))
	return appendNumber(dst, f.field.Wire, v), true
}

func (e *Encoder) submessage(dst []byte, f *messageField, i int) ([]byte, bool) {
	if n := &e.t.Nodes[i]; n.Kind != Struct {
		return dst, e.fail("a struct", n.what())
	}
	number := protowire.Number(f.field.Number)
	body, ok := e.message(nil, f.message, i+1, e.t.Next(i))
	if !ok {
		return dst, false
	}
	if f.kind == protoreflect.GroupKind {
		dst = append(protowire.AppendTag(dst, number, protowire.StartGroupType), body...)
		return protowire.AppendTag(dst, number, protowire.EndGroupType), true
	}
	return protowire.AppendBytes(protowire.AppendTag(dst, number, protowire.BytesType), body), true
}

// appendNumber appends a number as its wire type has it.
func appendNumber(dst []byte, as WireType, v uint64) []byte {
	switch as {
	case WireI32:
		return protowire.AppendFixed32(dst, uint32(v))
	case WireI64:
		return protowire.AppendFixed64(dst, v)
	}
	return protowire.AppendVarint(dst, v)
}

// protoNumber returns the bits of a number on the wire.
func (e *Encoder) protoNumber(f *messageField, i int) (uint64, bool) {
	n := &e.t.Nodes[i]
	switch f.kind {
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return e.protoFloat(f, n)
	}
	v, ok := e.enumValue(f, i)
	if !ok {
		return 0, false
	}
	least, most := int64(math.MinInt32), int64(math.MaxInt32)
	switch f.kind {
	case protoreflect.BoolKind:
		least, most = 0, 1
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		least, most = 0, math.MaxUint32
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		least, most = math.MinInt64, math.MaxInt64
	}
	unsigned := f.kind == protoreflect.Uint64Kind || f.kind == protoreflect.Fixed64Kind
	negative := int64(v) < 0 && n.Kind != Uint
	switch {
	case unsigned && negative, !unsigned && (int64(v) < least || int64(v) > most || n.Kind == Uint && int64(v) < 0):
		got := strconv.FormatUint(v, 10)
		if n.Kind != Uint {
			got = strconv.FormatInt(int64(v), 10)
		}
		return 0, e.fail("a number that fits "+scalarType(f), got)
	}
	switch f.kind {
	case protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		v = protowire.EncodeZigZag(int64(v))
	case protoreflect.Sfixed32Kind:
		v &= math.MaxUint32
	}
	return v, true
}

func scalarType(f *messageField) string { return f.kind.String() }

// enumValue returns the integer of node i: a number, or a name of the field's enum.
func (e *Encoder) enumValue(f *messageField, i int) (uint64, bool) {
	return e.integer(&op{field: f.field}, i)
}

func (e *Encoder) protoFloat(f *messageField, n *Node) (uint64, bool) {
	switch {
	case !n.isNumber():
		return 0, e.fail("a number", n.what())
	case f.kind == protoreflect.DoubleKind && n.Kept && n.Bits == 64, f.kind == protoreflect.FloatKind && n.Kept && n.Bits == 32:
		return n.Raw, true
	case f.kind == protoreflect.DoubleKind:
		return math.Float64bits(n.Float()), true
	}
	v := float32(n.Float())
	if math.IsInf(float64(v), 0) && !math.IsInf(n.Float(), 0) {
		return 0, e.fail("a number that fits float", strconv.FormatFloat(n.Float(), 'g', -1, 64))
	}
	return uint64(math.Float32bits(v)), true
}

// unmatched appends a field that no schema has: its own bytes where it was decoded,
// else the wire type that suits the value. Integers are varints, floats of 32 and 64
// bits are i32 and i64, text and bytes have a length, and so has a message.
func (e *Encoder) unmatched(dst []byte, i int) ([]byte, bool) {
	n := &e.t.Nodes[i]
	if n.Field.Mark == Unmatched && n.Len > 0 {
		return wire.AppendBytes(dst, e.t.Data, int(n.Off), int(n.Len)>>3), true
	}
	if n.Kind != Array {
		return e.numbered(dst, n.Field.number(), i)
	}
	ok := true
	for k := i + 1; ok && k < e.t.Next(i); k = e.t.Next(k) {
		dst, ok = e.numbered(dst, n.Field.number(), k)
	}
	return dst, ok
}

// numbered appends a value as the field with this number.
func (e *Encoder) numbered(dst []byte, number protowire.Number, i int) ([]byte, bool) {
	n := &e.t.Nodes[i]
	switch n.Kind {
	case Uint, Int, Bool:
		return protowire.AppendVarint(protowire.AppendTag(dst, number, protowire.VarintType), n.Num), true
	case Float:
		if n.Bits == 32 {
			return protowire.AppendFixed32(protowire.AppendTag(dst, number, protowire.Fixed32Type), math.Float32bits(float32(n.Float()))), true
		}
		return protowire.AppendFixed64(protowire.AppendTag(dst, number, protowire.Fixed64Type), n.Num), true
	case Text, Bytes, String, GUID:
		return protowire.AppendBytes(protowire.AppendTag(dst, number, protowire.BytesType), e.t.AppendBytes(nil, i)), true
	case Struct:
		body, ok := e.message(nil, guessed(Open), i+1, e.t.Next(i))
		return protowire.AppendBytes(protowire.AppendTag(dst, number, protowire.BytesType), body), ok
	}
	return dst, e.fail("a value", n.what())
}
