package schema

import (
	"bytes"
	encoding "encoding/binary"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"opscope/schema/wire"
)

// Envelope is the bytes around a body that every frame of one kind has. Its
// fields have fixed places in front of the body.
type Envelope struct {
	Name   string
	Layout *Layout // its fields, for whoever shows them; positions as in a body
	size   int     // bytes in front of the body
	fields []EnvelopeField
	// The fields that framing needs; a width of 0 means that there is none. The length
	// may be called size.
	opcode, sequence, length EnvelopeField
	beside                   *EnvelopeField // what shares the word of a length that is part of one
	checks                   []int          // the fields that are checksums

	decls []*fieldDecl // until they are compiled
}

// EnvelopeField is a number in an envelope. It does not change once loaded. The zero
// EnvelopeField stands for one that is not there.
type EnvelopeField struct {
	name  string
	off   int // bits from the start of the frame
	bits  int
	order wire.Order
	fixed bool // the order is written out
	check string
	enum  *Enum

	// Where the number stands in the eight bytes of a frame that begin with its first.
	from  int
	swap  bool // they are big-endian
	shift uint8
	mask  uint64
}

// settle finds where the number stands in eight bytes.
func (f *EnvelopeField) settle() {
	within := f.off & 7
	f.from, f.swap, f.shift, f.mask = f.off>>3, f.order == wire.Big, uint8(within), 1<<uint(f.bits)-1
	if within+f.bits > 64 {
		f.from = math.MaxInt32 // they do not hold it
	} else if f.swap {
		f.shift = uint8(64 - within - f.bits)
	}
}

// Read returns the value in the frame that begins with data, 0 where data ends before it.
func (f *EnvelopeField) Read(data []byte) uint64 {
	if len(data) < f.from+8 {
		return f.short(data)
	}
	v := encoding.LittleEndian.Uint64(data[f.from:])
	if f.swap {
		v = bits.ReverseBytes64(v)
	}
	return v >> (f.shift & 63) & f.mask
}

// short is Read where there are not so many bytes.
func (f *EnvelopeField) short(data []byte) uint64 {
	if f.bits == 0 || f.off+f.bits > 8*len(data) {
		return 0
	}
	return wire.ReadBits(data, f.off, f.bits, f.order)
}

// Search returns the first offset of data, from one on, where a frame would begin that has
// the value in the field; -1 where there is none, as for a field that is not there.
func (f *EnvelopeField) Search(data []byte, from int, value uint64) int {
	if f.bits == 0 {
		return -1
	}
	at, size := f.off>>3, f.bits>>3
	if f.off&7 != 0 || f.bits&7 != 0 || size == 0 {
		for ; 8*from+f.off+f.bits <= 8*len(data); from++ {
			if f.Read(data[from:]) == value {
				return from
			}
		}
		return -1
	}
	var pattern [8]byte
	for i := range size {
		if f.order == wire.Big {
			i = size - 1 - i
		}
		pattern[i] = byte(value)
		value >>= 8
	}
	if n := bytes.Index(data[min(from+at, len(data)):], pattern[:size]); n >= 0 {
		return from + n
	}
	return -1
}

// Size returns the bytes in front of the body.
func (e *Envelope) Size() int { return e.size }

// Field returns the number with this name, which may not be there. The nil Envelope has none.
func (e *Envelope) Field(name string) *EnvelopeField {
	if e != nil {
		for i := range e.fields {
			if e.fields[i].name == name {
				return &e.fields[i]
			}
		}
	}
	return &EnvelopeField{}
}

// Number returns the value of a field by its name in the frame that begins with data; 0
// without such a field, or where data ends before it. Who reads it of every frame asks
// for the Field once.
func (e *Envelope) Number(name string, data []byte) uint64 { return e.Field(name).Read(data) }

// FramingKind is one of the ways to delimit frames.
type FramingKind uint8

// The kinds of framing.
const (
	SizePrefixed FramingKind = iota // a length in the envelope
	Records                         // records end to end, the envelope chosen by the opcode's mode
	Datagram                        // one frame fills the datagram
	Typed                           // the size by the opcode, and by fields behind it: see FindTyped
	SizeInWord                      // a length that is part of a word, whose other part has a name in its enum
)

var framingKinds = []string{"size_prefixed", "records", "datagram", "typed", "size_in_word"}

// String returns the word of the notation.
func (k FramingKind) String() string { return framingKinds[k] }

// Counts says what a length field counts.
type Counts uint8

// What a length may count.
const (
	CountsFrame Counts = iota // the whole frame
	CountsBody                // what follows the envelope
	CountsRest                // what follows the length itself
)

var countNames = []string{"frame", "body", "rest"}

// uncounted returns the bytes of a frame that its length does not count.
func (e *Envelope) uncounted(c Counts) int {
	switch c {
	case CountsBody:
		return e.size
	case CountsRest:
		return (e.length.off + e.length.bits + 7) / 8
	}
	return 0
}

// Framing says how frames are delimited.
type Framing struct {
	Name     string
	Kind     FramingKind
	Source   string
	Envelope *Envelope
	Min, Max int // bytes, as the length counts; of a datagram for Records and Datagram
	Counts   Counts
	Table    string            // for Records: the table with an opcode's mode
	Modes    map[int]*Envelope // for Records: the envelope of each mode

	sizes *sizes // for Typed
}

// Frame is one message as delimited on the wire.
type Frame struct {
	Opcode uint64
	Size   int // bytes of the whole frame; 0 when only the body tells
	Head   int // bytes in front of the body
	Seq    int // sequence, -1 when the envelope has none
	Length int // as the envelope says, -1 when it says nothing
}

// Framing returns the framing with this name, or nil.
func (p *Protocol) Framing(name string) *Framing {
	i := slices.IndexFunc(p.Framings, func(f *Framing) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return p.Framings[i]
}

// Find finds one frame at the start of data. The error has the kind Incomplete
// while data is less than a frame, and Malformed for a length that no frame has.
// It does not look at data beyond the frame. Of a frame that is not all there, the
// size is returned where it is known; the error is shared, and not to be changed.
func (f *Framing) Find(data []byte, layer string) (Frame, *wire.Error) {
	found, err := f.Cut(data)
	switch err {
	case errHead:
		err = f.short(data, layer)
	case errNone:
		err = f.misfit(data, layer)
	}
	return found, err
}

// Cut is Find for trying, where most bytes begin no frame: all its errors are shared, and
// tell no more than their kind.
func (f *Framing) Cut(data []byte) (Frame, *wire.Error) {
	e := f.Envelope
	switch {
	case f.Kind == Datagram && len(data) < e.size:
		return e.frame(data, len(data)), errNone
	case f.Kind == Datagram:
		return e.frame(data, len(data)), nil
	case len(data) < f.prefix():
		return Frame{}, errHead
	case f.Kind == SizeInWord && e.beside.enum.NameOf(e.beside.Read(data)) == "":
		return Frame{}, errNone
	}
	length := f.length(data)
	size := length + e.uncounted(f.Counts)
	switch {
	case length < f.Min || f.Max > 0 && length > f.Max || size < e.size:
		return Frame{}, errNone
	case len(data) < size:
		return Frame{Size: size}, errPart
	}
	return e.frame(data, size), nil
}

// The answers for what is no whole frame. They are no faults where more bytes may come.
var (
	errHead = &wire.Error{Layer: "framing", Path: "envelope", Want: "a size", Got: "its start", Kind: wire.Incomplete}
	errPart = &wire.Error{Layer: "framing", Path: "envelope", Want: "a whole frame", Got: "its start", Kind: wire.Incomplete}
	errNone = &wire.Error{Layer: "framing", Path: "envelope", Want: "a frame", Got: "none", Kind: wire.Malformed}
)

// length returns the length that an envelope says, which is there, or more than any frame has.
func (f *Framing) length(data []byte) int { return int(min(f.Envelope.length.Read(data), 1<<31)) }

// short returns the error for bytes that do not tell a length.
func (f *Framing) short(data []byte, layer string) *wire.Error {
	return &wire.Error{Layer: layer, Path: "envelope", Size: len(data),
		Want: wire.Bits(8 * f.prefix()), Got: wire.Bits(8*len(data)) + " left", Kind: wire.Incomplete}
}

// misfit returns the error for bytes that begin no frame.
func (f *Framing) misfit(data []byte, layer string) *wire.Error {
	e := f.Envelope
	if f.Kind == Datagram {
		return e.holds(data, layer, wire.Malformed)
	}
	if f.Kind == SizeInWord {
		if err := e.beside.named(data, layer); err != nil {
			return err
		}
	}
	length := f.length(data)
	err := &wire.Error{Layer: layer, Path: "envelope." + e.length.name, Offset: e.length.off / 8, Bit: e.length.off % 8, Size: len(data),
		Want: f.lengths(), Got: strconv.Itoa(length), Kind: wire.Malformed}
	if length >= f.Min && (f.Max == 0 || length <= f.Max) { // less than its envelope
		err.Want = "a length of at least " + strconv.Itoa(e.size-e.uncounted(f.Counts))
	}
	return err
}

// prefix returns the bytes that tell the length.
func (f *Framing) prefix() int {
	end := f.Envelope.length.off + f.Envelope.length.bits
	if f.Kind == SizeInWord {
		end += f.Envelope.beside.bits
	}
	return (end + 7) / 8
}

// named checks that a field has one of the values that its enum names.
func (f *EnvelopeField) named(data []byte, layer string) *wire.Error {
	v := f.Read(data)
	if f.enum.NameOf(v) != "" {
		return nil
	}
	return &wire.Error{Layer: layer, Path: "envelope." + f.name, Offset: f.off / 8, Bit: f.off % 8, Size: len(data),
		Want: "a " + f.enum.Name, Got: "0x" + strconv.FormatUint(v, 16), Kind: wire.Malformed}
}

// Head reads the envelope of a frame at the start of data, of which the body need not be
// there. It returns false for less than an envelope, and for a length that no frame has.
func (f *Framing) Head(data []byte) (Frame, bool) {
	if len(data) < f.Envelope.size {
		return Frame{Seq: -1, Length: -1}, false
	}
	e := f.Envelope
	head, length := e.frame(data, 0), 0
	if e.length.bits > 0 {
		length = f.length(data)
	}
	head.Size = length + e.uncounted(f.Counts)
	return head, length >= f.Min && (f.Max == 0 || length <= f.Max) && head.Size >= e.size
}

// lengths names the lengths that a frame can have.
func (f *Framing) lengths() string {
	if f.Max > 0 {
		return "a length from " + strconv.Itoa(f.Min) + " to " + strconv.Itoa(f.Max)
	}
	return "a length of at least " + strconv.Itoa(f.Min)
}

// Verify compares the checksums of a whole frame with what they cover. The error
// names the first that does not match.
func (e *Envelope) Verify(frame []byte, layer string) *wire.Error {
	if err := e.holds(frame, layer, wire.Malformed); err != nil {
		return err
	}
	for _, i := range e.checks {
		f := &e.fields[i]
		if want, got := uint64(Sum8(frame[e.size:])), f.Read(frame); got != want {
			return &wire.Error{Layer: layer, Path: "envelope." + f.name, Offset: f.off / 8, Bit: f.off % 8, Size: len(frame),
				Want: f.check + " = " + strconv.FormatUint(want, 10), Got: strconv.FormatUint(got, 10), Kind: wire.Malformed}
		}
	}
	return nil
}

// Parse reads the envelope of a record at the start of data. An envelope with a
// length is Malformed when that length is below its own size or beyond data.
func (e *Envelope) Parse(data []byte, layer string) (Frame, *wire.Error) {
	if err := e.holds(data, layer, wire.Malformed); err != nil {
		return Frame{}, err
	}
	if e.length.bits == 0 {
		return e.frame(data, 0), nil
	}
	f := e.frame(data, int(e.length.Read(data)))
	if f.Size < e.size || f.Size > len(data) {
		return f, &wire.Error{Layer: layer, Path: "envelope." + e.length.name, Offset: e.length.off / 8, Bit: e.length.off % 8, Size: len(data),
			Want: "a length from " + strconv.Itoa(e.size) + " to " + strconv.Itoa(len(data)), Got: strconv.Itoa(f.Size), Kind: wire.Malformed}
	}
	return f, nil
}

// Fits reports whether data may begin with a record in this envelope, whose length
// is one that it can have there. Parse says why not.
func (e *Envelope) Fits(data []byte) bool {
	if len(data) < e.size {
		return false
	}
	length := e.length.Read(data)
	return e.length.bits == 0 || length >= uint64(e.size) && length <= uint64(len(data))
}

func (e *Envelope) holds(data []byte, layer string, kind wire.Kind) *wire.Error {
	if len(data) >= e.size {
		return nil
	}
	return &wire.Error{Layer: layer, Path: "envelope", Size: len(data),
		Want: wire.Bits(8 * e.size), Got: wire.Bits(8*len(data)) + " left", Kind: kind}
}

func (e *Envelope) frame(data []byte, size int) Frame {
	f := Frame{Opcode: e.opcode.Read(data), Size: size, Head: e.size, Seq: -1, Length: -1}
	if e.sequence.bits > 0 {
		f.Seq = int(e.sequence.Read(data))
	}
	if e.length.bits > 0 {
		f.Length = int(e.length.Read(data))
	}
	return f
}

// Append appends a frame around a body. The sequence is left out where the
// envelope has none; a length is that of the whole frame, or of the part of it that
// counts says.
func (e *Envelope) Append(dst []byte, opcode uint64, seq int, body []byte, counts Counts) []byte {
	w := wire.NewWriter(dst)
	for _, f := range e.fields {
		var v uint64
		switch f.name {
		case "opcode":
			v = opcode
		case "sequence":
			v = uint64(seq)
		case "length":
			v = uint64(e.size + len(body) - e.uncounted(counts))
		}
		if f.check == "sum8(body)" {
			v = uint64(Sum8(body))
		}
		w.Uint(v, f.bits, f.order)
	}
	w.Append(body)
	return w.Bytes()
}

// AppendWith appends a frame around a body, with the numbers in head by their names.
// What head leaves out is computed where it is a length or a checksum, and else zero.
func (e *Envelope) AppendWith(dst []byte, head *Tree, body []byte, counts Counts) []byte {
	w := wire.NewWriter(dst)
	for _, f := range e.fields {
		v, given := head.Value(f.name)
		switch {
		case given:
		case f.name == e.length.name:
			v = uint64(len(body) + e.size - e.uncounted(counts))
		case f.check != "":
			v = uint64(Sum8(body))
		}
		w.Uint(v, f.bits, f.order)
	}
	w.Append(body)
	return w.Bytes()
}

// turn gives the protocol another order, with its envelopes and framings.
func (d *draft) turn(o wire.Order) {
	d.Order = o
	turned := map[*Envelope]*Envelope{}
	for i, e := range d.Envelopes {
		turned[e] = e.turned(o)
		d.Envelopes[i] = turned[e]
	}
	for i, f := range d.Framings {
		c := *f
		c.Envelope, c.Modes = turned[f.Envelope], maps.Clone(f.Modes)
		for mode, e := range c.Modes {
			c.Modes[mode] = turned[e]
		}
		d.Framings[i] = &c
	}
}

// turned returns a copy of e with another order.
func (e *Envelope) turned(o wire.Order) *Envelope {
	c := *e
	c.fields = slices.Clone(e.fields)
	for i := range c.fields {
		c.fields[i].turn(o)
	}
	c.opcode.turn(o)
	c.sequence.turn(o)
	c.length.turn(o)
	if e.beside != nil {
		beside := *e.beside
		beside.turn(o)
		c.beside = &beside
	}
	return &c
}

func (f *EnvelopeField) turn(o wire.Order) {
	if !f.fixed {
		f.order = o
		f.settle()
	}
}

// Sum8 is the sum of bytes modulo 256.
func Sum8(b []byte) (sum uint8) {
	const low, ones = 0x00ff00ff00ff00ff, 0x0001000100010001 // of four pairs of bytes
	for ; len(b) >= 8; b = b[8:] {
		eight := wire.Low(b, 0)
		sum += uint8((eight&low + eight>>8&low) * ones >> 48) // the product has the sum of the pairs at its top
	}
	for _, c := range b {
		sum += c
	}
	return sum
}

// envelope returns the envelope that a word names.
func (d *draft) envelope(n *yamlNode) (*Envelope, error) {
	var names []string
	for _, e := range d.Envelopes {
		if names = append(names, e.Name); e.Name == n.text {
			return e, nil
		}
	}
	return nil, errorAt(n.pos, "unknown envelope %q%s", n.text, hint(n.text, names))
}

func (d *draft) parseEnvelopes(n *yamlNode) error {
	pairs, err := n.mapping("envelopes")
	if err != nil {
		return err
	}
	for _, p := range pairs {
		e, err := d.parseEnvelope(p.key, p.value)
		if err != nil {
			return err
		}
		d.Envelopes = append(d.Envelopes, e)
	}
	return nil
}

// parseEnvelope reads a list of numbers of fixed width and a body at its end.
func (d *draft) parseEnvelope(key, n *yamlNode) (*Envelope, error) {
	fields, err := parseFields(n)
	if err != nil {
		return nil, err
	}
	e := &Envelope{Name: key.text}
	off := 0
	for i, f := range fields {
		switch {
		case f.ref == nil || f.cond != nil:
			return nil, errorAt(f.pos, "an envelope has no switch and no condition")
		case f.ref.kind == refBody:
			if i != len(fields)-1 {
				return nil, errorAt(f.pos, "the body is the last of an envelope")
			}
			if off%8 != 0 {
				return nil, errorAt(f.pos, "the body begins in mid-byte (bit %d)", off%8)
			}
			e.size, e.decls = off/8, fields[:i]
			return e, nil
		case f.ref.kind == refIPv4:
			f.ref.bits, f.ref.order, f.ref.fixed = 32, wire.Big, true
		case f.ref.kind != refUint && f.ref.kind != refInt || f.ref.bits == 0:
			return nil, errorAt(f.ref.pos, "an envelope has numbers of fixed width, such as u16")
		}
		ef := EnvelopeField{name: f.Name, off: off, bits: f.ref.bits, order: d.Order, check: f.check}
		if f.ref.fixed {
			ef.order, ef.fixed = f.ref.order, true
		}
		ef.settle()
		switch f.Name {
		case "opcode":
			e.opcode = ef
		case "sequence":
			e.sequence = ef
		case "length", "size":
			e.length = ef
		}
		if ef.check != "" {
			e.checks = append(e.checks, i)
		}
		e.fields = append(e.fields, ef)
		off += f.ref.bits
	}
	return nil, errorAt(key.pos, "envelope %q has no body", key.text)
}

// compileEnvelopes makes the layouts of the envelopes, once all enums are known. What
// an overlay has from below is compiled already.
func (d *draft) compileEnvelopes() error {
	for _, e := range d.Envelopes {
		if e.Layout != nil {
			continue
		}
		c := d.compiler()
		c.above = inherited{source: d.Source, confidence: d.Confidence}
		scope := c.newScope(e.decls)
		var ops []*op
		for _, f := range e.decls {
			plain := *f
			plain.check = ""
			o, err := scope.field(&plain, "")
			if err != nil {
				return err
			}
			ops = append(ops, o)
		}
		e.Layout = &Layout{Source: d.Source, Confidence: d.Confidence, code: &code{ops: ops, slots: c.slots, order: d.Order}}
		c.settle(e.Layout.code)
		for i, o := range ops {
			e.fields[i].enum = o.field.Enum
			if k := i - 1; k >= 0 && e.fields[k].name == e.length.name && e.length.bits%8 != 0 {
				e.beside = &e.fields[i]
			}
		}
		e.decls = nil
	}
	return nil
}

func (d *draft) parseFramings(n *yamlNode) error {
	pairs, err := n.mapping("framings")
	if err != nil {
		return err
	}
	for _, p := range pairs {
		f, err := d.parseFraming(p.key, p.value)
		if err != nil {
			return err
		}
		d.Framings = append(d.Framings, f)
	}
	return nil
}

func (d *draft) parseFraming(key, n *yamlNode) (*Framing, error) {
	if err := n.wantKeys("a framing", "kind", "envelope", "counts", "min", "max", "source", "confidence", "table", "modes", "doc"); err != nil {
		return nil, err
	}
	f := &Framing{Name: key.text}
	kind := n.get("kind")
	if kind == nil {
		return nil, errorAt(key.pos, "framing %q has no kind", key.text)
	}
	k, err := kind.oneOf("kind", framingKinds)
	if err != nil {
		return nil, err
	}
	f.Kind = FramingKind(k)
	for _, p := range n.pairs {
		if err := d.framingKey(f, p.key.text, p.value); err != nil {
			return nil, err
		}
	}
	switch {
	case f.Kind == Records && (f.Table == "" || len(f.Modes) == 0):
		return nil, errorAt(key.pos, "framing %q needs a table and modes", key.text)
	case f.Kind != Records && f.Envelope == nil:
		return nil, errorAt(key.pos, "framing %q needs an envelope", key.text)
	case f.Kind == Typed && (f.Envelope.opcode.bits != 8 || f.Envelope.opcode.off != 0):
		return nil, errorAt(n.get("envelope").pos, "envelope %q does not begin with an opcode of one byte, which typed needs", f.Envelope.Name)
	case (f.Kind == SizePrefixed || f.Kind == SizeInWord) && f.Envelope.length.bits == 0:
		return nil, errorAt(n.get("envelope").pos, "envelope %q has no length, which %s needs", f.Envelope.Name, f.Kind)
	case f.Kind == SizeInWord && !f.Envelope.sharesWord():
		return nil, errorAt(n.get("envelope").pos, "envelope %q has no length in a word with a number that has an enum, which size_in_word needs", f.Envelope.Name)
	}
	return f, nil
}

// sharesWord reports whether the length is part of a word, of which a number with an
// enum has the rest.
func (e *Envelope) sharesWord() bool {
	return e.beside != nil && e.beside.enum != nil && (e.length.bits+e.beside.bits)%8 == 0
}

func (d *draft) framingKey(f *Framing, key string, v *yamlNode) error {
	switch key {
	case "source":
		f.Source = v.text
	case "envelope":
		e, err := d.envelope(v)
		f.Envelope = e
		return err
	case "counts":
		i, err := v.oneOf("count", countNames)
		f.Counts = Counts(i)
		return err
	case "min", "max":
		i, err := v.integer(key)
		if key == "min" {
			f.Min = int(i)
		} else {
			f.Max = int(i)
		}
		return err
	case "confidence":
		_, err := v.confidence()
		return err
	case "table":
		if !slices.ContainsFunc(d.State, func(t TableDecl) bool { return t.Name == v.text }) {
			return d.unknownTable(v.text, v.pos)
		}
		f.Table = v.text
	case "modes":
		pairs, err := v.mapping("modes")
		if err != nil {
			return err
		}
		f.Modes = map[int]*Envelope{}
		for _, p := range pairs {
			mode, err := p.key.integer("a mode")
			if err != nil {
				return err
			}
			if f.Modes[int(mode)], err = d.envelope(p.value); err != nil {
				return err
			}
		}
	}
	return nil
}
