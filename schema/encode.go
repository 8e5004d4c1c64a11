package schema

import (
	"cmp"
	"encoding/hex"
	"math"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"opscope/schema/wire"
)

// EncodeError says which value cannot be encoded.
type EncodeError struct {
	Path string
	Want string
	Got  string
}

// Error formats e as "encode TANK.team: want a number, got nothing".
func (e *EncodeError) Error() string {
	return "encode " + e.Path + ": want " + e.Want + ", got " + e.Got
}

// Encoder encodes bodies. It is reused, by one goroutine at a time.
type Encoder struct {
	State *State
	Head  int // bytes in front of the body, which offsets count as well

	m       machine
	w       wire.Writer
	p       *Protocol
	t       *Tree
	start   int // of the body, in the writer's bytes
	offsets map[*op]int
	blank   bool // what the values leave out is zero
	err     *EncodeError
}

// Append appends the body that t describes. Counts that stand alone in [...] and
// offsets are computed where t leaves them out, and written as given otherwise.
// What a value does not show (raw quantised bits, bytes behind a NUL, padding)
// is written back when t was decoded with the same layout.
func (e *Encoder) Append(dst []byte, p *Protocol, message string, l *Layout, t *Tree) ([]byte, error) {
	if l.proto != nil {
		return e.protobuf(dst, message, l.proto.message(), t)
	}
	e.m = machine{slots: slices.Grow(e.m.slots[:0], l.code.slots)[:l.code.slots], p: p, state: e.State}
	clear(e.m.slots)
	e.p, e.t, e.err, e.offsets, e.blank = p, t, nil, nil, false
	e.w = wire.NewWriter(dst)
	e.start = len(dst)
	s := &span{cur: 0, from: 0, to: len(t.Nodes)}
	if !e.list(l.code.ops, s) || !e.padding(l.code, s) {
		e.err.Path = strings.TrimSuffix(message+"."+e.err.Path, ".")
		return dst, e.err
	}
	return e.w.Bytes(), nil
}

// span is the members of one struct value. The cursor walks along with the
// layout, so that a decoded tree is found in its own order.
type span struct{ cur, from, to int }

// find returns the node of a field, or -1.
func (e *Encoder) find(o *op, s *span) int {
	if s.cur < s.to && o.owns(e.t.Nodes[s.cur].Field) {
		return s.take(e.t, s.cur)
	}
	if o.field.Hidden {
		return -1
	}
	i := e.t.Find(s.cur, s.to, o.field.Name)
	if i < 0 {
		i = e.t.Find(s.from, s.to, o.field.Name)
	}
	if i >= 0 {
		return s.take(e.t, i)
	}
	return -1
}

// owns reports whether decoding o makes a node with this field.
func (o *op) owns(f *Field) bool {
	switch {
	case o.field == f:
		return f != nil
	case o.kind == opOptional:
		return o.body[0].owns(f)
	case o.kind == opSwitch:
		return slices.ContainsFunc(o.cases, func(c opCase) bool { return c.owns(f) })
	}
	return false
}

func (c *opCase) owns(f *Field) bool {
	return slices.ContainsFunc(c.ops, func(o *op) bool { return o.owns(f) })
}

func (s *span) take(t *Tree, i int) int {
	s.cur = t.Next(i)
	return i
}

func (e *Encoder) fail(want, got string) bool {
	if e.err == nil {
		e.err = &EncodeError{Want: want, Got: got}
	}
	return false
}

func (e *Encoder) within(name string) bool {
	w := wire.Error{Path: e.err.Path}
	e.err.Path = w.Within(name).Path
	return false
}

// sound turns what an expression could not do into an error.
func (e *Encoder) sound() bool {
	switch {
	case e.m.fault != "":
		return e.fail("a value", e.m.fault)
	case e.m.failed:
		return e.fail(e.m.missing.String(), "none learned")
	}
	return e.err == nil
}

func (e *Encoder) list(ops []*op, s *span) bool {
	for _, o := range ops {
		if o.kind == opSwitch && o.field == nil {
			if c := e.chosen(o, s); e.err != nil || c != nil && !e.list(c.ops, s) {
				return false
			}
			continue
		}
		if !e.field(o, s) {
			return e.within(o.field.Name)
		}
	}
	return true
}

func (e *Encoder) field(o *op, s *span) bool {
	i := e.find(o, s)
	if o.cond != nil && !(i >= 0 && (o.at != nil || o.cond.looksAhead())) {
		if o.cond.looksAhead() {
			return true
		}
		v := e.m.eval(o.cond)
		if !e.sound() {
			return false
		}
		if !v.isTrue() {
			return true
		}
	}
	if i < 0 {
		return e.absent(o, s)
	}
	return e.placed(o) && e.one(o, i)
}

// placed fills in the offset of a field with `at`, if the values left it out.
func (e *Encoder) placed(o *op) bool {
	pos, ok := e.offsets[o.atOff]
	if !ok {
		return true
	}
	delete(e.offsets, o.atOff)
	at := e.w.Pos()>>3 - e.start + e.Head - o.atBase
	if at < 0 || at>>uint(o.atOff.bits) != 0 {
		return e.fail("an offset of "+wire.Bits(o.atOff.bits), strconv.Itoa(at))
	}
	e.w.Patch(pos, uint64(at), o.atOff.bits, o.atOff.order)
	return true
}

// absent encodes a field that the values leave out.
func (e *Encoder) absent(o *op, s *span) bool {
	switch {
	case o.kind == opComputed:
		e.store(o, e.m.eval(o.value))
		return e.sound()
	case o.kind == opJoin && o.lacks(e.t, s):
		return e.fail("a value", "nothing")
	case o.kind == opJoin:
		e.store(o, e.m.join(o))
		return true
	case o.kind == opFill:
		e.w.Align()
		return true
	case o.joined != nil && e.t.Find(s.from, s.to, o.joined.field.Name) >= 0:
		v, ok := e.integer(o.joined, e.t.Find(s.from, s.to, o.joined.field.Name))
		return ok && e.writeNumber(o, v>>uint(o.shift)&(1<<uint(o.bits)-1), o.bits)
	case o.joined != nil && o.joined.apart(o):
		return e.writeNumber(o, 0, o.bits)
	case o.counts != "":
		n := 0
		if i := e.t.Find(s.from, s.to, o.counts); i >= 0 {
			n = e.elements(i)
		}
		if o.kind == opPrimitive {
			return e.decimal(o, int64(n))
		}
		return e.writeNumber(o, uint64(n), o.bits)
	case o.kind == opOptional:
		e.w.Uint(0, 1, o.order)
		return true
	case o.kind == opRest:
		return true
	case o.kind == opUint && e.isOffset(o):
		return e.writeNumber(o, 0, o.bits)
	case o.field.Hidden || e.blank:
		return e.zero(o)
	case o.kind == opArray || o.kind == opBytes:
		if n, _ := e.count(o); e.err == nil && n == 0 {
			return true
		}
	}
	return e.fail("a value", "nothing")
}

// apart reports whether a join stands in a case of a switch that its part does not: the
// part means nothing where another case is taken.
func (o *op) apart(part *op) bool { return !strings.HasPrefix(part.choice, o.choice) }

// lacks reports whether parts of a join that may be left out are not among the values.
func (o *op) lacks(t *Tree, s *span) bool {
	return slices.ContainsFunc(o.parts, func(p joinPart) bool {
		return o.apart(p.op) && t.Find(s.from, s.to, p.op.field.Name) < 0
	})
}

// isOffset notes where an offset stands that is filled in later.
func (e *Encoder) isOffset(o *op) bool {
	if !o.field.offset {
		return false
	}
	if e.offsets == nil {
		e.offsets = map[*op]int{}
	}
	e.offsets[o] = e.w.Pos()
	return true
}

// zero encodes a field without meaning that the values leave out.
func (e *Encoder) zero(o *op) bool {
	outer := e.blank
	e.blank = true
	defer func() { e.blank = outer }()
	switch o.kind {
	case opUint, opInt:
		width, ok := e.width(o)
		return ok && e.writeNumber(o, 0, width)
	case opFloat, opFixed:
		e.w.Uint(0, o.bits, o.order)
		return true
	case opGUID:
		e.w.Append(make([]byte, 16))
		return true
	case opIPv4:
		e.w.Append(make([]byte, 4))
		return true
	case opBytes:
		n, _ := e.count(o)
		if e.err == nil {
			e.w.Append(make([]byte, n))
		}
		return e.err == nil
	case opText:
		return e.putText(o, encodeText("", o))
	case opOptional:
		e.w.Uint(0, 1, o.order)
		return true
	case opStruct:
		return e.enter(o) && e.list(o.body, &span{})
	case opSwitch:
		c := e.chosen(o, nil)
		return c != nil && e.zero(c.ops[0])
	case opPrimitive:
		if o.prim.empty != nil {
			return o.prim.empty(e, o)
		}
	case opArray:
		n, _ := e.count(o)
		return e.err == nil && e.each(o, int(n), func() bool { return e.zero(o.body[0]) })
	}
	return e.fail("a value", "nothing")
}

// elements counts the elements of an array, or the bytes of a text or bytes.
func (e *Encoder) elements(i int) int {
	if e.t.Nodes[i].Kind != Array {
		return int(e.t.Nodes[i].BodyLen)
	}
	return e.t.Elements(i)
}

func (e *Encoder) store(o *op, v number) {
	if o.slot >= 0 {
		e.m.slots[o.slot] = v
	}
}

func (e *Encoder) one(o *op, i int) bool {
	n := &e.t.Nodes[i]
	switch o.kind {
	case opUint, opInt, opFill:
		return e.number(o, i)
	case opFloat, opFixed:
		return e.float(o, n)
	case opText:
		return e.text(o, i)
	case opBytes, opRest:
		return e.bytes(o, i)
	case opGUID:
		return e.guid(i)
	case opIPv4:
		return e.ipv4(i)
	case opComputed:
		e.store(o, n.number())
		return true
	case opJoin:
		return e.join(o, i)
	case opStruct:
		if n.Kind != Struct {
			return e.fail("a struct", n.what())
		}
		return e.enter(o) && e.list(o.body, &span{i + 1, i + 1, e.t.Next(i)})
	case opArray:
		return e.array(o, i)
	case opOptional:
		if n.Kind == Null {
			e.w.Uint(0, 1, o.order)
			return true
		}
		e.w.Uint(1, 1, o.order)
		e.store(o, integer(1))
		return e.one(o.body[0], i)
	case opSwitch:
		c := e.chosen(o, &span{i, i, e.t.Next(i)})
		return c != nil && e.one(c.ops[0], i)
	case opPrimitive:
		return o.prim.encode(e, o, i)
	}
	return false
}

func (e *Encoder) enter(o *op) bool {
	var args [maxParams]number
	for i, a := range o.args {
		args[i] = e.m.eval(a)
	}
	for _, s := range o.clear {
		e.m.slots[s] = number{}
	}
	for i, s := range o.params {
		e.m.slots[s] = args[i]
	}
	return e.sound()
}

// chosen returns the case of a switch, or nil. What looks ahead cannot be
// evaluated: the values tell the case. A type needs one.
func (e *Encoder) chosen(o *op, s *span) *opCase {
	if !e.enter(o) {
		return nil
	}
	if o.on.looksAhead() && s != nil {
		return e.told(o, s)
	}
	v := uint64(e.m.eval(o.on).asInt())
	if !e.sound() {
		return nil
	}
	for i := range o.cases {
		if c := &o.cases[i]; c.other || v >= c.low && v <= c.high {
			return c
		}
	}
	if o.field != nil {
		e.fail("a case of "+o.on.text, strconv.FormatUint(v, 10))
	}
	return nil
}

// told returns the case whose field comes next, else the first that has a field of
// a name among the values, else the first without any field.
func (e *Encoder) told(o *op, s *span) *opCase {
	named := func(f *op) bool {
		return f.field != nil && !f.field.Hidden && e.t.Find(s.from, s.to, f.field.Name) >= 0
	}
	for _, fits := range []func(*opCase) bool{
		func(c *opCase) bool { return s.cur < s.to && c.owns(e.t.Nodes[s.cur].Field) },
		func(c *opCase) bool { return slices.ContainsFunc(c.ops, named) },
		func(c *opCase) bool { return len(c.ops) == 0 || o.field != nil },
	} {
		for i := range o.cases {
			if c := &o.cases[i]; fits(c) {
				return c
			}
		}
	}
	return nil
}

// width returns the width of a number.
func (e *Encoder) width(o *op) (int, bool) {
	width := o.bits
	if o.kind == opFill {
		width = -e.w.Pos() & 7
	}
	if o.width != nil {
		n := e.m.eval(o.width).asInt()
		if n < 0 || n > 64 {
			return 0, e.fail("a width of 0 to 64 bits", strconv.FormatInt(n, 10))
		}
		width = int(n)
	}
	return width, e.sound()
}

func (e *Encoder) number(o *op, i int) bool {
	width, ok := e.width(o)
	if !ok {
		return false
	}
	v, ok := e.integer(o, i)
	return ok && e.writeNumber(o, v, width)
}

// integer returns the value of node i as an integer: a number, or a name.
func (e *Encoder) integer(o *op, i int) (uint64, bool) {
	n := &e.t.Nodes[i]
	switch n.Kind {
	case Uint, Int, IPv4, Bool:
		return n.Num, true
	case Float:
		f := n.Float()
		if f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
			return 0, e.fail("an integer", strconv.FormatFloat(f, 'g', -1, 64))
		}
		return uint64(int64(f)), true
	case String:
		word := string(e.t.AppendBytes(nil, i))
		v, ok := o.field.named(word)
		return v, ok || e.fail("a number, or a name of the enum", strconv.Quote(word))
	}
	return 0, e.fail("a number", n.what())
}

// join checks a joined number; its parts are written where they stand.
func (e *Encoder) join(o *op, i int) bool {
	v, ok := e.integer(o, i)
	if !ok {
		return false
	}
	last := o.parts[len(o.parts)-1]
	if width := last.shift + last.op.bits; width < 64 && v>>uint(width) != 0 {
		return e.fail("a number of "+wire.Bits(width), strconv.FormatInt(int64(v), 10))
	}
	e.store(o, integer(int64(v)))
	return true
}

// named returns the value that a word has in the field's enum or flags.
func (f *Field) named(word string) (uint64, bool) {
	if f.Enum != nil {
		return f.Enum.ValueOf(word)
	}
	return 0, false
}

func (e *Encoder) writeNumber(o *op, v uint64, width int) bool {
	if o.kind == opInt {
		if low := wire.SignExtend(v, width); uint64(low) != v {
			return e.fail("a number of "+wire.Bits(width), strconv.FormatInt(int64(v), 10))
		}
	} else if width < 64 && v>>uint(width) != 0 {
		return e.fail("a number of "+wire.Bits(width), strconv.FormatInt(int64(v), 10))
	}
	e.store(o, integer(int64(v)))
	e.w.Uint(v, width, o.order)
	return true
}

func (e *Encoder) float(o *op, n *Node) bool {
	if !n.isNumber() {
		return e.fail("a number", n.what())
	}
	f := n.Float()
	e.store(o, number{f: f, float: true})
	raw := n.Raw
	if !n.Kept || int(n.Bits) != o.bits {
		var ok bool
		if raw, ok = o.rawFloat(f); !ok {
			return e.fail("a number that fits "+o.field.Type, strconv.FormatFloat(f, 'g', -1, 64))
		}
	}
	e.w.Uint(raw, o.bits, o.order)
	return true
}

// rawFloat returns the bits of a float or a fixed-point number.
func (o *op) rawFloat(f float64) (raw uint64, ok bool) {
	switch {
	case o.kind == opFixed:
		scaled := math.Floor(f*65536 + 0.5)
		return uint64(uint32(int32(max(math.MinInt32, min(scaled, math.MaxInt32))))), scaled >= math.MinInt32 && scaled <= math.MaxInt32
	case o.bits == 32:
		return uint64(math.Float32bits(float32(f))), math.IsInf(f, 0) || !math.IsInf(float64(float32(f)), 0)
	}
	return math.Float64bits(f), true
}

// count returns how many elements or bytes the layout has, and of which bits.
func (e *Encoder) count(o *op) (n int64, mask uint64) {
	if o.each != nil {
		mask = uint64(e.m.eval(o.each).asInt())
		n = int64(bits.OnesCount64(mask))
	} else {
		n = e.m.eval(o.size).asInt()
	}
	if e.sound() && (n < 0 || n > maxCount) {
		e.fail("a count from 0 to "+strconv.Itoa(maxCount), strconv.FormatInt(n, 10))
	}
	return n, mask
}

// agrees reports whether there are as many elements or bytes as the layout has. A
// count that stands alone may be wrong: the values are written as given.
func (e *Encoder) agrees(o *op, got int, noun string) bool {
	if o.size != nil && (o.size.op == opSlot || o.size.looksAhead()) || o.each.looksAhead() {
		return e.err == nil
	}
	n, _ := e.count(o)
	if e.err == nil && n != int64(got) {
		return e.fail(plural(int(n), noun), strconv.Itoa(got))
	}
	return e.err == nil
}

func (e *Encoder) array(o *op, i int) bool {
	n := &e.t.Nodes[i]
	if n.Kind != Array {
		return e.fail("an array", n.what())
	}
	if !e.agrees(o, e.elements(i), "element") {
		return false
	}
	k := i + 1
	return e.each(o, e.elements(i), func() bool {
		ok := e.one(o.body[0], k)
		k = e.t.Next(k)
		return ok
	})
}

// each encodes so many elements, with their index.
func (e *Encoder) each(o *op, n int, element func() bool) bool {
	outer := e.m.index
	defer func() { e.m.index = outer }()
	var mask uint64
	if o.each != nil {
		_, mask = e.count(o)
	}
	for k := range n {
		e.m.index = int64(k)
		if o.each != nil {
			e.m.index = int64(bits.TrailingZeros64(mask))
			mask &= mask - 1
		}
		if !element() {
			return e.within("[" + strconv.Itoa(k) + "]")
		}
	}
	return true
}

func (e *Encoder) bytes(o *op, i int) bool {
	n := &e.t.Nodes[i]
	switch n.Kind {
	case Bytes, Text, String, GUID:
	default:
		return e.fail("bytes", n.what())
	}
	if o.kind == opBytes && !e.agrees(o, int(n.BodyLen), "byte") {
		return false
	}
	e.w.Append(e.t.AppendBytes(nil, i))
	return true
}

// text writes a text: its own bytes when it was decoded, else the encoding of
// the string, with its NUL.
func (e *Encoder) text(o *op, i int) bool {
	n := &e.t.Nodes[i]
	switch n.Kind {
	case Text, Bytes:
		return e.putText(o, e.t.AppendBytes(nil, i))
	case String:
		s := string(e.t.AppendText(nil, i))
		if r := firstBeyond(s, o.field.Encoding); r != 0 {
			return e.fail("a text of Latin-1", strconv.QuoteRune(r))
		}
		return e.putText(o, encodeText(s, o))
	}
	return e.fail("a text", n.what())
}

// firstBeyond returns the first letter of s that the encoding has not, or 0.
func firstBeyond(s string, encoding Encoding) rune {
	for _, r := range s {
		if r > 0xff && (encoding == Latin1 || encoding == UTF16Lax) {
			return r
		}
	}
	return 0
}

// putText writes the bytes of a text with its length, or filled up to it.
func (e *Encoder) putText(o *op, b []byte) bool {
	switch {
	case o.length == lengthPrefixed:
		if len(b)>>uint(min(o.bits, 62)) != 0 {
			return e.fail("a text whose length fits "+wire.Bits(o.bits), plural(len(b), "byte"))
		}
		e.w.Uint(uint64(len(b)), o.bits, o.order)
	case o.length == lengthFixed && !o.size.looksAhead():
		want, _ := e.count(o)
		if e.err == nil && int64(len(b)) > want {
			e.fail("a text of at most "+plural(int(want), "byte"), strconv.Itoa(len(b)))
		}
		if e.err != nil {
			return false
		}
		b = append(b, make([]byte, int(want)-len(b))...)
	}
	e.w.Append(b)
	return true
}

func encodeText(s string, o *op) []byte {
	nul := o.nulCounted || o.length == lengthNUL
	var b []byte
	switch o.field.Encoding {
	case Latin1, UTF16Lax:
		for _, r := range s {
			b = append(b, byte(r))
		}
	case UTF8:
		b = []byte(s)
	case UTF16:
		for _, u := range utf16.Encode([]rune(s)) {
			if o.field.Order == wire.Little {
				b = append(b, byte(u), byte(u>>8))
			} else {
				b = append(b, byte(u>>8), byte(u))
			}
		}
	}
	if nul && o.field.Encoding == UTF16Lax && len(b)%2 != 0 {
		b = append(b, 0) // it is read in units of 16 bits
	}
	if nul {
		b = append(b, 0)
	}
	if nul && o.field.Encoding >= UTF16 {
		b = append(b, 0)
	}
	return b
}

func (e *Encoder) guid(i int) bool {
	n := &e.t.Nodes[i]
	if n.Kind == GUID || n.Kind == Bytes && n.BodyLen == 16 {
		e.w.Append(e.t.AppendBytes(nil, i))
		return true
	}
	if n.Kind != String {
		return e.fail("a GUID", n.what())
	}
	word := string(e.t.AppendText(nil, i))
	b, err := hex.DecodeString(strings.NewReplacer("{", "", "}", "", "-", "").Replace(word))
	if err != nil || len(b) != 16 {
		return e.fail("a GUID", strconv.Quote(word))
	}
	// The first three groups are little-endian on the wire.
	for _, g := range [][2]int{{0, 4}, {4, 6}, {6, 8}} {
		for a, z := g[0], g[1]-1; a < z; a, z = a+1, z-1 {
			b[a], b[z] = b[z], b[a]
		}
	}
	e.w.Append(b)
	return true
}

func (e *Encoder) ipv4(i int) bool {
	n := &e.t.Nodes[i]
	v := n.Num
	switch n.Kind {
	case Uint, Int, IPv4:
	case String:
		word := string(e.t.AppendText(nil, i))
		a, err := netip.ParseAddr(word)
		if err != nil || !a.Is4() {
			return e.fail("an IPv4 address", strconv.Quote(word))
		}
		b := a.As4()
		v = wire.ReadBits(b[:], 0, 32, wire.Big)
	default:
		return e.fail("an IPv4 address", n.what())
	}
	if v>>32 != 0 {
		return e.fail("an IPv4 address", strconv.FormatInt(int64(v), 10))
	}
	e.w.Uint(v, 32, wire.Big)
	return true
}

// padding ends a body.
// paddingAt returns the padding that was decoded here, or an empty node.
func (e *Encoder) paddingAt(s *span) *Node {
	if s.cur < s.to && e.t.Nodes[s.cur].Field == paddingField {
		return &e.t.Nodes[s.cur]
	}
	return &Node{}
}

func (e *Encoder) padding(c *code, s *span) bool {
	n := e.paddingAt(s)
	if c.size != nil && n.Kind == Uint && int(n.Bits) == -e.w.Pos()&7 {
		e.w.Uint(n.Num, int(n.Bits), c.order)
		s.cur++
		n = e.paddingAt(s)
	}
	switch width := -e.w.Pos() & 7; {
	case n.Kind == Bytes:
		e.w.Align()
		e.w.Append(e.t.AppendBytes(nil, s.cur))
	case n.Kind == Uint && int(n.Bits) == width:
		e.w.Uint(n.Num, width, e.p.Order)
	case c.size != nil:
		e.w.Align()
		size := e.m.eval(c.size).asInt()
		have := int64(len(e.w.Bytes()) - e.start + e.Head)
		if e.sound() && (size < have || size > maxCount) {
			e.fail("a size of at least "+strconv.FormatInt(have, 10), strconv.FormatInt(size, 10))
		}
		if e.err != nil {
			return e.within("size")
		}
		e.w.Append(make([]byte, size-have))
	}
	e.w.Align()
	return true
}

// Values are the fields of a struct by name, for a tree that is built and not
// decoded: integers, floats, strings, []byte, bool, nil, Values, or slices of
// them. In Protocol Buffers a name of digits is a field by its number, which is
// written as what its value is: an integer as a varint, a float32 as i32, a float64
// as i64, and text, bytes and Values behind their length.
type Values map[string]any

// NewTree returns a tree with these values at its top.
func NewTree(v Values) *Tree {
	t := &Tree{}
	t.addMembers(v)
	return t
}

func (t *Tree) addMembers(v Values) {
	names := make([]string, 0, len(v))
	for name := range v {
		names = append(names, name)
	}
	slices.SortFunc(names, inNumbers)
	for _, name := range names {
		t.addValue(&Field{Name: name}, v[name])
	}
}

// inNumbers compares names; numbers stand by their value.
func inNumbers(a, b string) int {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	if errX == nil && errY == nil {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(a, b)
}

func (t *Tree) addValue(f *Field, v any) {
	n := Node{Field: f, Sel: -1}
	i := len(t.Nodes)
	t.Nodes = append(t.Nodes, n)
	set := func(k ValueKind, num uint64) { t.Nodes[i].Kind, t.Nodes[i].Num = k, num }
	switch v := v.(type) {
	case nil:
		set(Null, 0)
	case bool:
		set(Bool, uint64(truth(v).i))
	case int:
		set(Int, uint64(v))
	case int32:
		set(Int, uint64(v))
	case int64:
		set(Int, uint64(v))
	case uint8:
		set(Uint, uint64(v))
	case uint16:
		set(Uint, uint64(v))
	case uint32:
		set(Uint, uint64(v))
	case uint64:
		set(Uint, v)
	case float32:
		set(Float, math.Float64bits(float64(v)))
		t.Nodes[i].Bits = 32
	case float64:
		set(Float, math.Float64bits(v))
	case string:
		t.addBytes(i, String, []byte(v))
	case []byte:
		t.addBytes(i, Bytes, v)
	case Values:
		set(Struct, 0)
		t.addMembers(v)
	case []Values:
		addElements(t, i, v)
	case []any:
		addElements(t, i, v)
	case []float64:
		addElements(t, i, v)
	case []int:
		addElements(t, i, v)
	case []uint32:
		addElements(t, i, v)
	case []string:
		addElements(t, i, v)
	default:
		panic("schema: a value of a type that Values does not take")
	}
	t.Nodes[i].Size = int32(len(t.Nodes) - i - 1)
}

func (t *Tree) addBytes(i int, k ValueKind, b []byte) {
	n := &t.Nodes[i]
	n.Kind, n.Body, n.BodyLen = k, int32(8*len(t.Data)), int32(len(b))
	t.Data = append(t.Data, b...)
}

func addElements[T any](t *Tree, i int, list []T) {
	t.Nodes[i].Kind = Array
	element := &Field{}
	for _, v := range list {
		t.addValue(element, v)
	}
}
