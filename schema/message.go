package schema

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// This file turns the descriptors of Protocol Buffers into what the decoder and the
// encoder walk along.

// WireType is how a field of Protocol Buffers stands on the wire.
type WireType uint8

// The wire types. NoWire is that of a value that is none of a field.
const (
	NoWire WireType = iota
	WireVarint
	WireI64
	WireLen
	WireGroup
	WireI32
)

// String returns "varint", "i64", "len", "group" or "i32".
func (w WireType) String() string { return [...]string{"", "varint", "i64", "len", "group", "i32"}[w] }

// Number returns the three bits at the end of a tag.
func (w WireType) Number() uint64 { return [...]uint64{0, 0, 1, 2, 3, 5}[w] }

// Mark says what is out of the ordinary about a value of Protocol Buffers.
type Mark uint8

// The marks.
const (
	NoMark     Mark = iota
	Absent          // declared and not on the wire: the value is its default, or Null
	Superseded      // a later value of the same field, or of its oneof, counts
	Unmatched       // the schema does not have the field: its number is its name
)

// message is a message compiled for one packet: its redactions are the packet's.
type message struct {
	name   string
	fields []*messageField // by ascending number
	low    []int16         // index into fields by number, -1 for none, for small numbers
	oneofs int
	redact Redaction // of text and bytes that the schema does not have
	guess  bool      // nothing is declared: all that is known is that this may be a message
}

// messageField is a field of a message.
type messageField struct {
	field    *Field // of the value; of the array, when it repeats
	old      *Field // of a value that another one supersedes
	absent   *Field // of a value that is not on the wire
	element  *Field // of an element, when it repeats
	kind     protoreflect.Kind
	repeated bool
	packed   bool // written packed; read either way
	required bool
	presence bool     // its absence differs from its default
	entry    bool     // of the entry of a map, which is written whole
	oneof    int      // the oneof that it is a member of, -1 for none
	among    string   // its name
	initial  uint64   // its default, as Node.Num has it
	message  *message // of a message or group, or of the entries of a map
}

// find returns the index of the field with this number, or -1.
func (m *message) find(number uint64) int {
	if number < uint64(len(m.low)) {
		return int(m.low[number])
	}
	i, ok := slices.BinarySearchFunc(m.fields, number, func(f *messageField, n uint64) int {
		return cmp.Compare(uint64(f.field.Number), n)
	})
	if !ok {
		return -1
	}
	return i
}

// protoBody is a layout that a .proto file describes, or nothing does.
type protoBody struct {
	name     string // of the message; empty for a body without a schema
	redact   []yamlPair
	heir     bool      // the redactions were made for another message
	all      Redaction // of every text and all bytes
	source   string
	sureness Confidence
	files    *protoFiles
	at       Pos

	once sync.Once
	m    *message
	err  error
}

// strictest returns the redaction that hides the most: what is hidden of a body of
// which no field is known.
func strictest(all Redaction, redact []yamlPair) Redaction {
	for _, p := range redact {
		if r, _ := p.value.redaction(); all == Open || r == Secret {
			all = r
		}
	}
	return all
}

func (b *protoBody) strictest() Redaction { return strictest(b.all, b.redact) }

// guessBody returns the layout of a body without a schema.
func guessBody(source string, all Redaction) *Layout {
	return &Layout{Source: source, Confidence: Guess, proto: &protoBody{all: all, source: source}}
}

// compile compiles the message, once.
func (b *protoBody) compile() error {
	b.once.Do(func() {
		if b.name == "" {
			b.m = &message{guess: true, redact: b.all}
			return
		}
		m, files, err := b.files.find(b.name, b.at)
		if err == nil && m == nil {
			err = errorAt(b.at, "unknown message %q%s", b.name, hint(b.name, b.files.known()))
		}
		if err != nil {
			b.err = err
			return
		}
		files.lock.Lock()
		defer files.lock.Unlock()
		c := messageCompiler{body: b, files: files}
		b.m = c.message(m, hidden{b.redact, b.all})
		b.err = c.err
	})
	return b.err
}

// message returns the compiled message. That of a built-in schema is first compiled
// here; that it does not compile is a mistake in the program.
func (b *protoBody) message() *message {
	if err := b.compile(); err != nil {
		panic(err)
	}
	return b.m
}

// messageKey tells apart what is compiled: packets share a message in which their
// fields are the same.
type messageKey struct {
	name     protoreflect.FullName
	hidden   string
	all      Redaction
	source   string
	sureness Confidence
}

// hidden is what is to be redacted of a message.
type hidden struct {
	fields []yamlPair // the keys are paths
	all    Redaction  // of every text and all bytes
}

type messageCompiler struct {
	body  *protoBody
	files *protoFiles
	err   error
}

// message compiles a message.
func (c *messageCompiler) message(d protoreflect.MessageDescriptor, h hidden) *message {
	fields := c.all(d)
	h = c.fitting(d, fields, h)
	key := messageKey{name: d.FullName(), all: h.all, source: c.body.source, sureness: c.body.sureness}
	for _, p := range h.fields {
		key.hidden += p.key.text + "=" + p.value.text + ";"
	}
	if m := c.files.compiled[key]; m != nil {
		return m
	}
	m := &message{name: string(d.Name()), redact: h.all}
	c.files.compiled[key] = m
	oneofs := map[protoreflect.FullName]int{}
	for _, f := range fields {
		m.fields = append(m.fields, c.field(f, h, oneofs))
	}
	m.oneofs = len(oneofs)
	m.index()
	return m
}

// fitting returns what is hidden of a message whose fields may be called otherwise. That
// is a mistake, unless it was written for a message that this one takes the place of:
// then all of its texts and bytes are hidden.
func (c *messageCompiler) fitting(d protoreflect.MessageDescriptor, fields []protoreflect.FieldDescriptor, h hidden) hidden {
	fits := hidden{all: h.all}
	for _, p := range h.fields {
		name, below, nested := strings.Cut(p.key.text, ".")
		i := slices.IndexFunc(fields, func(f protoreflect.FieldDescriptor) bool { return fieldName(f) == name })
		switch {
		case i >= 0 && (!nested || fields[i].Message() != nil):
			fits.fields = append(fits.fields, p)
		case c.body.heir:
			fits.all = strictest(fits.all, []yamlPair{p})
		case i >= 0:
			c.fail(p.key.pos, "%s is no message, and has no %q", name, below)
		default:
			c.fail(p.key.pos, "%s has no field %q%s", d.FullName(), name, hint(name, fieldNames(fields)))
		}
	}
	return fits
}

func (c *messageCompiler) fail(at Pos, format string, args ...any) {
	if c.err == nil {
		c.err = errorAt(at, format, args...)
	}
}

// fieldName returns the name of a field; that of an extension is in brackets, with its
// package.
func fieldName(d protoreflect.FieldDescriptor) string {
	if d.IsExtension() {
		return "[" + string(d.FullName()) + "]"
	}
	return string(d.Name())
}

func fieldNames(fields []protoreflect.FieldDescriptor) (names []string) {
	for _, f := range fields {
		names = append(names, fieldName(f))
	}
	return names
}

// all returns the fields of a message by number, extensions among them.
func (c *messageCompiler) all(d protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	var list []protoreflect.FieldDescriptor
	for i := range d.Fields().Len() {
		list = append(list, d.Fields().Get(i))
	}
	for _, x := range c.files.extensions[d.FullName()] {
		list = append(list, protoreflect.FieldDescriptor(x))
	}
	slices.SortFunc(list, func(a, b protoreflect.FieldDescriptor) int { return cmp.Compare(a.Number(), b.Number()) })
	return list
}

// maxLow is the largest field number that is looked up without a search.
const maxLow = 255

func (m *message) index() {
	for i, f := range m.fields {
		if f.field.Number > maxLow {
			break
		}
		for len(m.low) <= f.field.Number {
			m.low = append(m.low, -1)
		}
		m.low[f.field.Number] = int16(i)
	}
}

// field compiles a field.
func (c *messageCompiler) field(d protoreflect.FieldDescriptor, h hidden, oneofs map[protoreflect.FullName]int) *messageField {
	f := &messageField{
		kind: d.Kind(), repeated: d.IsList() || d.IsMap(), packed: d.IsPacked(), oneof: -1,
		presence: d.HasPresence(), entry: d.ContainingMessage().IsMapEntry(), required: d.Cardinality() == protoreflect.Required,
	}
	if o := d.ContainingOneof(); o != nil && !o.IsSynthetic() {
		i, ok := oneofs[o.FullName()]
		if !ok {
			i = len(oneofs)
			oneofs[o.FullName()] = i
		}
		f.oneof, f.among = i, string(o.Name())
	}
	f.field = &Field{
		Type: typeName(d), Number: int(d.Number()), Source: c.body.source, Confidence: c.body.sureness,
		Doc: docOf(d), Wire: wireType(d.Kind()),
	}
	f.field.call(fieldName(d))
	below := h.of(f)
	c.value(f, d)
	if m := d.Message(); m != nil {
		f.message = c.message(m, below)
	}
	f.twins()
	return f
}

// of redacts a field, and returns what is hidden of the message that it may hold.
func (h hidden) of(f *messageField) hidden {
	below := hidden{all: h.all}
	if f.kind == protoreflect.StringKind || f.kind == protoreflect.BytesKind {
		f.field.Redact = h.all
	}
	for _, p := range h.fields {
		name, rest, nested := strings.Cut(p.key.text, ".")
		if name != f.field.Name {
			continue
		}
		if nested {
			key := *p.key
			key.text, key.pos = rest, key.pos.at(len(name)+1)
			below.fields = append(below.fields, yamlPair{&key, p.value})
			continue
		}
		f.field.Redact, _ = p.value.redaction()
		below.all = f.field.Redact
	}
	return below
}

// value says how a field's value is shown, and what it is where it is absent.
func (c *messageCompiler) value(f *messageField, d protoreflect.FieldDescriptor) {
	switch d.Kind() {
	case protoreflect.StringKind:
		f.field.Encoding = UTF8Exact
	case protoreflect.FloatKind:
		f.field.Single = true
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		f.field.Wide = true
	case protoreflect.EnumKind:
		f.field.Enum, f.field.Symbol = enumOf(d.Enum()), true
	}
	if f.repeated || d.Message() != nil {
		return
	}
	switch v := d.Default(); d.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind:
	case protoreflect.BoolKind:
		f.initial = uint64(truth(v.Bool()).i)
	case protoreflect.EnumKind:
		f.initial = uint64(int64(v.Enum()))
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		f.initial = math.Float64bits(v.Float())
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		f.initial = v.Uint()
	default:
		f.initial = uint64(v.Int())
	}
}

// twins makes the fields that stand for f where its value is marked.
func (f *messageField) twins() {
	twin := func(mark Mark) *Field {
		t := *f.field
		t.Mark = mark
		return &t
	}
	f.old, f.absent = twin(Superseded), twin(Absent)
	f.absent.Redact = Open // what is not there gives nothing away
	if f.repeated {
		f.element = twin(NoMark)
		f.element.call("")
	}
}

// enumOf returns the values of an enum. Those below zero are sign-extended.
func enumOf(d protoreflect.EnumDescriptor) *Enum {
	var values []Name
	for i := range d.Values().Len() {
		v := d.Values().Get(i)
		values = append(values, Name{uint64(int64(v.Number())), string(v.Name())})
	}
	return NewEnum(string(d.Name()), values)
}

// typeName returns the type of a field as a .proto file has it.
func typeName(d protoreflect.FieldDescriptor) string {
	switch {
	case d.IsMap():
		return "map<" + typeName(d.MapKey()) + ", " + typeName(d.MapValue()) + ">"
	case d.IsList():
		return "repeated " + scalarName(d)
	}
	return scalarName(d)
}

func scalarName(d protoreflect.FieldDescriptor) string {
	switch {
	case d.Enum() != nil:
		return string(d.Enum().Name())
	case d.Message() != nil:
		return string(d.Message().Name())
	}
	return d.Kind().String()
}

// docOf returns the comment of a field, in one line.
func docOf(d protoreflect.FieldDescriptor) string {
	at := d.ParentFile().SourceLocations().ByDescriptor(d)
	text := cmp.Or(at.TrailingComments, at.LeadingComments)
	return strings.Join(strings.Fields(text), " ")
}

// wireType returns how a kind of value stands on the wire, unless it is packed.
func wireType(k protoreflect.Kind) WireType {
	switch k {
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return WireI32
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return WireI64
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
		return WireLen
	case protoreflect.GroupKind:
		return WireGroup
	}
	return WireVarint
}

// scalar reports whether elements of f may stand packed in one slice.
func (f *messageField) scalar() bool {
	return f.field.Wire != WireLen && f.field.Wire != WireGroup
}

// unmatchedFields are the fields of what the schema does not have, by number and wire
// type. Those with a small number are made once, when they are first met.
type unmatchedFields struct {
	small [maxUnmatched + 1]atomic.Pointer[[WireI32 + 1]Field]
}

// maxUnmatched is the largest number of a field without a schema that costs no memory
// each time: messages are written with small numbers.
const maxUnmatched = 1023

// unmatched are the fields without a schema for each redaction.
var unmatched [Personal + 1]unmatchedFields

// unmatchedField returns the field with a number that no schema has. Numbers give
// nothing away; what a redaction is of is text and bytes.
func unmatchedField(number uint64, w WireType, r Redaction) *Field {
	if number > maxUnmatched {
		f := newUnmatched(number, w, r)
		return &f
	}
	at := &unmatched[r].small[number]
	all := at.Load()
	if all == nil {
		all = new([WireI32 + 1]Field)
		for w := range all {
			all[w] = newUnmatched(number, WireType(w), r)
		}
		at.Store(all)
	}
	return &all[w]
}

func newUnmatched(number uint64, w WireType, r Redaction) Field {
	f := Field{
		Name: strconv.FormatUint(number, 10), Type: w.String(), Number: int(number), Wire: w, Mark: Unmatched,
		Confidence: Guess, Wide: w == WireVarint || w == WireI64, Encoding: UTF8Exact,
	}
	if w == WireLen {
		f.Redact = r
	}
	return f
}
