package schema

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"opscope/schema/wire"
)

// This file compares the walker with the runtime of Protocol Buffers, on messages and
// bytes that are made at random.

// compileDescriptor compiles a message without a packet.
func compileDescriptor(t testing.TB, d protoreflect.MessageDescriptor) *message {
	t.Helper()
	c := messageCompiler{body: &protoBody{}, files: &protoFiles{compiled: map[messageKey]*message{}}}
	m := c.message(d, hidden{})
	if c.err != nil {
		t.Fatal(c.err)
	}
	return m
}

// randomFile makes a file of a few messages that use each other.
func randomFile(t testing.TB, r *rand.Rand) protoreflect.FileDescriptor {
	t.Helper()
	f := &descriptorpb.FileDescriptorProto{Name: proto.String("random.proto"), Package: proto.String("random")}
	switch r.IntN(3) {
	case 0:
		f.Syntax = proto.String("proto2")
	case 1:
		f.Syntax = proto.String("proto3")
	case 2:
		f.Syntax, f.Edition = proto.String("editions"), descriptorpb.Edition_EDITION_2023.Enum()
	}
	f.EnumType = []*descriptorpb.EnumDescriptorProto{{Name: proto.String("E")}}
	for i, n := range []int32{0, 1, 7, -3} {
		f.EnumType[0].Value = append(f.EnumType[0].Value, &descriptorpb.EnumValueDescriptorProto{Name: proto.String(fmt.Sprintf("E%d", i)), Number: proto.Int32(n)})
	}
	const messages = 4
	for i := range messages {
		f.MessageType = append(f.MessageType, randomMessage(r, f, fmt.Sprintf("M%d", i), messages))
	}
	d, err := protodesc.NewFile(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func randomMessage(r *rand.Rand, file *descriptorpb.FileDescriptorProto, name string, messages int) *descriptorpb.DescriptorProto {
	m := &descriptorpb.DescriptorProto{Name: proto.String(name)}
	number := int32(0)
	for k := range 1 + r.IntN(12) {
		number += 1 + int32(r.IntN(4))
		if r.IntN(12) == 0 {
			number += 300
		}
		f := &descriptorpb.FieldDescriptorProto{
			Name: proto.String(fmt.Sprintf("f%d", k)), Number: proto.Int32(number), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}
		m.Field = append(m.Field, f)
		randomType(r, file, f, messages)
		switch {
		case r.IntN(8) == 0:
			randomMap(r, file, m, f)
		case r.IntN(3) == 0:
			f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
			if packable(f) && file.GetSyntax() != "editions" && r.IntN(2) == 0 {
				f.Options = &descriptorpb.FieldOptions{Packed: proto.Bool(r.IntN(2) == 0)}
			}
		case len(m.OneofDecl) == 0 && r.IntN(4) == 0, k > 0 && m.Field[k-1].OneofIndex != nil && r.IntN(2) == 0:
			if len(m.OneofDecl) == 0 {
				m.OneofDecl = append(m.OneofDecl, &descriptorpb.OneofDescriptorProto{Name: proto.String("choice")})
			}
			f.OneofIndex = proto.Int32(0) // its members follow each other
		case file.GetSyntax() == "proto2" && r.IntN(6) == 0:
			f.Label = descriptorpb.FieldDescriptorProto_LABEL_REQUIRED.Enum()
		}
	}
	if len(m.OneofDecl) > 0 || file.GetSyntax() != "proto3" {
		return m
	}
	// A field of proto3 that tells absence from its default is in a oneof of its own.
	for _, f := range m.Field {
		if f.GetLabel() == descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL && f.GetTypeName() == "" && r.IntN(4) == 0 {
			f.Proto3Optional, f.OneofIndex = proto.Bool(true), proto.Int32(int32(len(m.OneofDecl)))
			m.OneofDecl = append(m.OneofDecl, &descriptorpb.OneofDescriptorProto{Name: proto.String("_" + f.GetName())})
		}
	}
	return m
}

func packable(f *descriptorpb.FieldDescriptorProto) bool {
	switch f.GetType() {
	case descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_BYTES,
		descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, descriptorpb.FieldDescriptorProto_TYPE_GROUP:
		return false
	}
	return true
}

func randomType(r *rand.Rand, file *descriptorpb.FileDescriptorProto, f *descriptorpb.FieldDescriptorProto, messages int) {
	kind := descriptorpb.FieldDescriptorProto_Type(1 + r.IntN(18))
	if r.IntN(4) == 0 {
		kind = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	}
	delimited := kind == descriptorpb.FieldDescriptorProto_TYPE_GROUP
	if delimited {
		kind = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	}
	f.Type = kind.Enum()
	switch kind {
	case descriptorpb.FieldDescriptorProto_TYPE_ENUM:
		f.TypeName = proto.String(".random.E")
	case descriptorpb.FieldDescriptorProto_TYPE_MESSAGE:
		f.TypeName = proto.String(fmt.Sprintf(".random.M%d", r.IntN(messages)))
		if delimited && file.GetSyntax() == "editions" { // a group, as editions write one
			f.Options = &descriptorpb.FieldOptions{Features: &descriptorpb.FeatureSet{MessageEncoding: descriptorpb.FeatureSet_DELIMITED.Enum()}}
		}
	}
}

func randomMap(r *rand.Rand, file *descriptorpb.FileDescriptorProto, m *descriptorpb.DescriptorProto, f *descriptorpb.FieldDescriptorProto) {
	keys := []descriptorpb.FieldDescriptorProto_Type{
		descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_BOOL, descriptorpb.FieldDescriptorProto_TYPE_SINT32,
		descriptorpb.FieldDescriptorProto_TYPE_UINT64, descriptorpb.FieldDescriptorProto_TYPE_FIXED32,
	}
	f.Options = nil
	name := strings.ToUpper(f.GetName()[:1]) + f.GetName()[1:] + "Entry"
	value := &descriptorpb.FieldDescriptorProto{
		Name: proto.String("value"), Number: proto.Int32(2), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), Type: f.Type, TypeName: f.TypeName,
	}
	m.NestedType = append(m.NestedType, &descriptorpb.DescriptorProto{
		Name: proto.String(name), Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
		Field: []*descriptorpb.FieldDescriptorProto{
			{
				Name: proto.String("key"), Number: proto.Int32(1), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
				Type: keys[r.IntN(len(keys))].Enum(),
			},
			value,
		},
	})
	f.Type, f.Label = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	f.TypeName = proto.String(".random." + m.GetName() + "." + name)
}

// randomBody makes bytes that mostly fit a message: fields in any order and more than
// once, unknown ones, ones with a wire type that is not theirs.
func randomBody(r *rand.Rand, d protoreflect.MessageDescriptor, depth int) (b []byte) {
	for range r.IntN(max(2, 9-2*depth)) {
		f := d.Fields().Get(r.IntN(d.Fields().Len()))
		n := r.IntN(20)
		if d.IsMapEntry() {
			n = 20
		}
		switch {
		case n == 0:
			b = appendRandom(r, b, protowire.Number(1+r.IntN(2000)), protowire.Type([]int{0, 1, 2, 5}[r.IntN(4)]), depth)
		case n == 1:
			b = appendRandom(r, b, f.Number(), protowire.Type([]int{0, 1, 2, 3, 5}[r.IntN(5)]), depth)
		case f.IsList() && packableKind(f.Kind()) && r.IntN(2) == 0:
			var packed []byte
			for range r.IntN(5) {
				packed = appendScalar(r, packed, f.Kind())
			}
			b = protowire.AppendBytes(appendTag(r, b, f.Number(), protowire.BytesType), packed)
		default:
			b = appendField(r, b, f, depth)
		}
	}
	return b
}

func packableKind(k protoreflect.Kind) bool {
	w := wireType(k)
	return w != WireLen && w != WireGroup
}

// appendTag appends a tag, at times longer than it needs to be.
func appendTag(r *rand.Rand, b []byte, n protowire.Number, w protowire.Type) []byte {
	return appendVarint(r, b, protowire.EncodeTag(n, w))
}

func appendVarint(r *rand.Rand, b []byte, v uint64) []byte {
	b = protowire.AppendVarint(b, v)
	if r.IntN(10) == 0 && v < 1<<56 {
		b[len(b)-1] |= 0x80
		b = append(b, 0)
	}
	return b
}

// appendRandom appends a field that no schema tells the content of.
func appendRandom(r *rand.Rand, b []byte, n protowire.Number, w protowire.Type, depth int) []byte {
	b = appendTag(r, b, n, w)
	switch w {
	case protowire.VarintType:
		return appendVarint(r, b, r.Uint64()>>r.IntN(64))
	case protowire.Fixed32Type:
		return protowire.AppendFixed32(b, r.Uint32())
	case protowire.Fixed64Type:
		return protowire.AppendFixed64(b, r.Uint64())
	case protowire.StartGroupType:
		for range r.IntN(3) {
			b = appendRandom(r, b, protowire.Number(1+r.IntN(20)), protowire.Type([]int{0, 1, 2, 3, 5}[r.IntN(min(5, 8-depth))]), depth+1)
		}
		return protowire.AppendTag(b, n, protowire.EndGroupType)
	}
	return protowire.AppendString(b, strings.Repeat("x\x07", r.IntN(4)))
}

func appendScalar(r *rand.Rand, b []byte, k protoreflect.Kind) []byte {
	switch wireType(k) {
	case WireI32:
		return protowire.AppendFixed32(b, r.Uint32())
	case WireI64:
		return protowire.AppendFixed64(b, r.Uint64()>>r.IntN(64))
	}
	return appendVarint(r, b, r.Uint64()>>r.IntN(64))
}

func appendField(r *rand.Rand, b []byte, f protoreflect.FieldDescriptor, depth int) []byte {
	b = appendTag(r, b, f.Number(), protowire.Type(wireType(f.Kind()).Number()))
	switch f.Kind() {
	case protoreflect.StringKind:
		return protowire.AppendString(b, []string{"", "a", "grün", "with\x00nul", strings.Repeat("long ", r.IntN(50))}[r.IntN(5)])
	case protoreflect.BytesKind:
		return protowire.AppendBytes(b, binaryOf(r, r.IntN(20)))
	case protoreflect.MessageKind, protoreflect.GroupKind:
		var body []byte
		if depth < 5 {
			body = randomBody(r, f.Message(), depth+1)
		}
		if f.Kind() == protoreflect.GroupKind {
			return protowire.AppendTag(append(b, body...), f.Number(), protowire.EndGroupType)
		}
		return protowire.AppendBytes(b, body)
	}
	return appendScalar(r, b, f.Kind())
}

func binaryOf(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// messageOf makes the runtime's message out of what a tree says of it.
func messageOf(t *Tree, from, to int, m protoreflect.Message) {
	var unknown []byte
	for i := from; i < to; i = t.Next(i) {
		n := &t.Nodes[i]
		f := m.Descriptor().Fields().ByNumber(protoreflect.FieldNumber(n.Field.Number))
		switch {
		case n.Field.Mark == Unmatched:
			unknown = append(unknown, t.Data[n.Off>>3:][:n.Len>>3]...)
		case n.Field.Mark != NoMark:
		case f.IsMap():
			for k := i + 1; k < t.Next(i); k = t.Next(k) {
				entry := dynamicpb.NewMessage(f.Message())
				messageOf(t, k+1, t.Next(k), entry)
				value := entry.Get(f.MapValue())
				if f.MapValue().Message() != nil {
					value = protoreflect.ValueOfMessage(entry.Mutable(f.MapValue()).Message())
				}
				m.Mutable(f).Map().Set(entry.Get(f.MapKey()).MapKey(), value)
			}
		case f.IsList():
			list := m.Mutable(f).List()
			for k := i + 1; k < t.Next(i); k = t.Next(k) {
				if f.Message() != nil {
					messageOf(t, k+1, t.Next(k), list.AppendMutable().Message())
				} else {
					list.Append(valueOf(t, k, f))
				}
			}
		case f.Message() != nil:
			messageOf(t, i+1, t.Next(i), m.Mutable(f).Message())
		default:
			m.Set(f, valueOf(t, i, f))
		}
	}
	m.SetUnknown(unknown)
}

func valueOf(t *Tree, i int, f protoreflect.FieldDescriptor) protoreflect.Value {
	n := &t.Nodes[i]
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n.Num == 1)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(int64(n.Num)))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(int64(n.Num)))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(int64(n.Num))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(n.Num))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(n.Num)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(math.Float32frombits(uint32(n.Raw)))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(n.Float())
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(string(t.AppendBytes(nil, i)))
	}
	return protoreflect.ValueOfBytes(t.AppendBytes(nil, i))
}

// walkBody decodes a body along a message.
func walkBody(m *message, body []byte) (*Tree, *Decoder, *wire.Error) {
	t, d := &Tree{}, &Decoder{Short: wire.Malformed}
	t.Reset(body)
	err := d.protobuf(&Protocol{Name: "test"}, m.name, m, t, 0, 8*len(body))
	return t, d, err
}

// unmarshal has the runtime decode a body. It reports false where that panics, as it
// does on the entry of a map whose key comes a second time with another wire type.
func unmarshal(body []byte, into proto.Message) (err error, ok bool) {
	defer func() { recover() }()
	return proto.UnmarshalOptions{AllowPartial: true}.Unmarshal(body, into), true
}

// compareWithRuntime decodes a body along a descriptor, and by the runtime.
func compareWithRuntime(t *testing.T, d protoreflect.MessageDescriptor, m *message, body []byte) {
	t.Helper()
	tree, decoder, err := walkBody(m, body)
	compareWithSkimming(t, m, body, decoder, err)
	want := dynamicpb.NewMessage(d)
	fault, ok := unmarshal(body, want)
	if !ok {
		return
	}
	if decoder.End > 8*len(body) || err == nil && decoder.End != 8*len(body) {
		t.Fatalf("the end at bit %d of %d\n%s", decoder.End, 8*len(body), hex.Dump(body))
	}
	if fault != nil {
		text := slices.ContainsFunc(decoder.Remarks, func(r Remark) bool { return r.Code == "invalid_utf8" })
		if err == nil && !text {
			t.Fatalf("no error, where the runtime says %v\n%s", fault, hex.Dump(body))
		}
		return
	}
	if err != nil {
		t.Fatalf("%v, where the runtime says nothing\n%s", err, hex.Dump(body))
	}
	got := dynamicpb.NewMessage(d)
	messageOf(tree, 0, len(tree.Nodes), got)
	if !proto.Equal(got, want) {
		t.Fatalf("got  %v\nwant %v\n%s", got, want, hex.Dump(body))
	}
	checkPlaces(t, tree)
	checkAbsent(t, tree, want)
	again, wrong := (&Encoder{}).protobuf(nil, m.name, m, tree)
	back := dynamicpb.NewMessage(d)
	fault, ok = unmarshal(again, back)
	if !ok {
		return
	}
	if wrong != nil || fault != nil || !proto.Equal(back, want) {
		t.Fatalf("encoded to %v (%v, %v)\nwant %v\n%s", back, wrong, fault, want, hex.Dump(again))
	}
}

// compareWithSkimming compares a walk that makes nodes with one that makes none.
func compareWithSkimming(t *testing.T, m *message, body []byte, made *Decoder, fault *wire.Error) {
	t.Helper()
	d := Decoder{Short: wire.Malformed, skims: true}
	d.scratch.Reset(body)
	err := d.protobuf(&Protocol{Name: "test"}, m.name, m, &d.scratch, 0, 8*len(body))
	if !reflect.DeepEqual(err, fault) || d.End != made.End || !slices.Equal(d.Remarks, made.Remarks) {
		t.Fatalf("skimmed to %d (%v, %q), made to %d (%v, %q)\n%s", d.End, err, d.Remarks, made.End, fault, made.Remarks, hex.Dump(body))
	}
}

// checkPlaces compares the place of each value with what stands there: a field with
// its number, or a value in a packed field.
func checkPlaces(t *testing.T, tree *Tree) {
	t.Helper()
	for i, n := range tree.Nodes {
		if n.Kind == Array || n.Field.Mark == Absent {
			continue
		}
		at := tree.Data[n.Off>>3:]
		number, _, size := protowire.ConsumeField(at)
		if int(number) == n.Field.Number && size == int(n.Len>>3) {
			continue
		}
		bare := map[WireType]int{WireVarint: len(protowireVarint(at)), WireI32: 4, WireI64: 8}[n.Field.Wire]
		if n.Field.Name != "" || bare != int(n.Len>>3) {
			t.Fatalf("node %d, field %d %q, is said to be %d bytes at %d\n%s", i, n.Field.Number, n.Field.Name, n.Len>>3, n.Off>>3, hex.Dump(tree.Data))
		}
	}
}

func protowireVarint(b []byte) []byte {
	_, n := protowire.ConsumeVarint(b)
	return b[:max(n, 0)]
}

// checkAbsent compares which fields are called absent at the top, and their defaults.
func checkAbsent(t *testing.T, tree *Tree, m protoreflect.Message) {
	t.Helper()
	for k := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(k)
		i := tree.Field(string(f.Name()))
		oneof := f.ContainingOneof() != nil && !f.ContainingOneof().IsSynthetic()
		switch {
		case oneof && !m.Has(f):
			if i >= 0 {
				t.Fatalf("%s is there", f.Name())
			}
		case i < 0:
			t.Fatalf("%s is not there", f.Name())
		case tree.Nodes[i].Field.Mark == Absent:
			n := &tree.Nodes[i]
			if m.Has(f) || n.Kind == Null != (f.HasPresence() && !f.IsList() && !f.IsMap()) {
				t.Fatalf("%s is called absent, of kind %d", f.Name(), n.Kind)
			}
			if n.Kind != Null && n.Kind != Array && !valueOf(tree, i, f).Equal(m.Get(f)) {
				t.Fatalf("%s has the default %v, want %v", f.Name(), valueOf(tree, i, f), m.Get(f))
			}
		case !m.Has(f) && f.HasPresence():
			t.Fatalf("%s is not called absent", f.Name())
		}
	}
}

func TestTheWalkerAgreesWithTheRuntime(t *testing.T) {
	files, bodies := 40, 40
	for seed := range files {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		file := randomFile(t, r)
		for i := range file.Messages().Len() {
			d := file.Messages().Get(i)
			m := compileDescriptor(t, d)
			for range bodies {
				body := randomBody(r, d, 0)
				compareWithRuntime(t, d, m, body)
				if len(body) == 0 {
					continue
				}
				cut := body[:r.IntN(len(body))]
				compareWithRuntime(t, d, m, cut)
				bent := slices.Clone(body)
				bent[r.IntN(len(bent))] ^= 1 << r.IntN(8)
				compareWithRuntime(t, d, m, bent)
			}
		}
	}
}
