package schema

import (
	"encoding/hex"
	"math"
	"math/bits"
	"net/netip"
	"sort"
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
	err     *EncodeError
}

// Append appends the body that t describes. Counts that stand alone in [...] and
// offsets are computed where t leaves them out, and written as given otherwise.
// What a value does not show (raw quantised bits, bytes behind a NUL, padding)
// is written back when t was decoded with the same layout.
func (e *Encoder) Append(dst []byte, p *Protocol, message string, l *Layout, t *Tree) ([]byte, error) {
	e.m = machine{slots: make([]number, l.code.slots), p: p, state: e.State}
	e.p, e.t, e.err, e.offsets = p, t, nil, nil
	e.w = wire.NewWriter(dst)
	e.start = len(dst)
	s := &span{cur: 0, from: 0, to: len(t.Nodes)}
	ok := e.list(l.code.ops, s)
	if ok {
		e.padding(l.code, s)
	}
	if !ok {
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
	if s.cur < s.to && e.t.Nodes[s.cur].Field == o.field {
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

func (s *span) take(t *Tree, i int) int {
	s.cur = t.Next(i)
	return i
}

func (e *Encoder) fail(o *op, want string) bool {
	got := "nothing"
	if e.err == nil {
		e.err = &EncodeError{Want: want, Got: got}
	}
	return false
}

func (e *Encoder) failWith(want, got string) bool {
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
func (e *Encoder) sound(*op) bool {
	switch {
	case e.m.isMissing:
		return e.failWith("state."+e.m.missing.Table+"["+strconv.FormatInt(e.m.missing.Key, 10)+"]", "none learned")
	case e.m.fault != "":
		return e.failWith("a value", e.m.fault)
	}
	return e.err == nil
}

func (e *Encoder) list(ops []*op, s *span) bool {
	for _, o := range ops {
		if o.kind == opSwitch && o.field == nil {
			if o.cond != nil && !e.m.eval(o.cond).isTrue() {
				continue
			}
			if c := e.chosen(o); c != nil && !e.list(c.ops, s) {
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
		if !e.sound(o) {
			return false
		}
		if !v.isTrue() {
			return true
		}
	}
	if i < 0 {
		return e.absent(o, s)
	}
	if o.atOff != nil {
		if pos, ok := e.offsets[o.atOff]; ok {
			at := e.w.Pos()>>3 - e.start + e.Head - o.atBase
			e.w.Patch(pos, uint64(at), o.atOff.bits, o.atOff.order)
		}
	}
	return e.one(o, i)
}

// absent encodes a field that the values leave out.
func (e *Encoder) absent(o *op, s *span) bool {
	switch {
	case o.kind == opComputed:
		e.store(o, e.m.eval(o.value))
		return e.sound(o)
	case o.kind == opJoin, o.kind == opFill:
		if o.kind == opFill {
			e.w.Align()
		}
		return true
	case o.joined != nil:
		if i := e.t.Find(s.from, s.to, o.joined.field.Name); i >= 0 {
			v := e.t.Nodes[i].Num >> uint(o.shift) & (1<<uint(o.bits) - 1)
			return e.writeNumber(o, v, o.bits)
		}
	case o.counts != "":
		if i := e.t.Find(s.from, s.to, o.counts); i >= 0 {
			return e.writeNumber(o, uint64(e.elements(i)), o.bits)
		}
		return e.writeNumber(o, 0, o.bits)
	case o.kind == opOptional:
		e.w.Uint(0, 1, o.order)
		return true
	case o.field.Hidden:
		return e.zero(o)
	case o.kind == opArray && o.size != nil && !e.m.eval(o.size).isTrue():
		return e.sound(o)
	case o.kind == opRest:
		return true
	case o.kind == opUint && e.isOffset(o):
		return e.writeNumber(o, 0, o.bits)
	}
	return e.fail(o, "a value")
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

func (e *Encoder) zero(o *op) bool {
	n := o.bits
	switch {
	case o.width != nil:
		n = int(e.m.eval(o.width).asInt())
	case o.kind == opBytes:
		n = 8 * int(e.m.eval(o.size).asInt())
	}
	if !e.sound(o) {
		return false
	}
	for ; n > 0; n -= 64 {
		e.w.Uint(0, min(n, 64), o.order)
	}
	return true
}

// elements counts the elements of an array, or the bytes of a text or bytes.
func (e *Encoder) elements(i int) int {
	if e.t.Nodes[i].Kind != Array {
		return int(e.t.Nodes[i].BodyLen)
	}
	n := 0
	for k := i + 1; k < e.t.Next(i); k = e.t.Next(k) {
		n++
	}
	return n
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
		e.w.Append(e.t.AppendBytes(nil, i))
		return true
	case opGUID:
		return e.guid(o, i)
	case opIPv4:
		return e.ipv4(o, i)
	case opComputed, opJoin:
		e.store(o, number{i: int64(n.Num)})
		return true
	case opStruct:
		if n.Kind != Struct {
			return e.failWith("a struct", "something else")
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
		c := e.chosen(o)
		return e.err == nil && (c == nil || e.one(c.ops[0], i))
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
	return e.sound(o)
}

// chosen returns the case of a switch, or nil.
func (e *Encoder) chosen(o *op) *opCase {
	if !e.enter(o) {
		return nil
	}
	v := uint64(e.m.eval(o.on).asInt())
	if !e.sound(o) {
		return nil
	}
	for i := range o.cases {
		if c := &o.cases[i]; c.other || v >= c.low && v <= c.high {
			return c
		}
	}
	return nil
}

func (e *Encoder) number(o *op, i int) bool {
	n := &e.t.Nodes[i]
	width := o.bits
	switch {
	case o.width != nil:
		if width = int(e.m.eval(o.width).asInt()); width < 0 || width > 64 {
			return e.failWith("a width of 0 to 64 bits", strconv.Itoa(width))
		}
	case o.kind == opFill:
		width = -e.w.Pos() & 7
	}
	if !e.sound(o) {
		return false
	}
	v := n.Num
	switch n.Kind {
	case Uint, Int, IPv4:
	case Float:
		f := n.Float()
		if f != math.Trunc(f) {
			return e.failWith("an integer", strconv.FormatFloat(f, 'g', -1, 64))
		}
		v = uint64(int64(f))
	case String:
		word := string(e.t.AppendBytes(nil, i))
		var ok bool
		if v, ok = o.field.named(word); !ok {
			return e.failWith("a number, or a name of the enum", strconv.Quote(word))
		}
	default:
		return e.failWith("a number", "something else")
	}
	return e.writeNumber(o, v, width)
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
			return e.failWith("a number of "+wire.Bits(width), strconv.FormatInt(int64(v), 10))
		}
	} else if width < 64 && v>>uint(width) != 0 {
		return e.failWith("a number of "+wire.Bits(width), strconv.FormatUint(v, 10))
	}
	e.store(o, integer(int64(v)))
	e.w.Uint(v, width, o.order)
	return true
}

func (e *Encoder) float(o *op, n *Node) bool {
	if n.Kind != Float && n.Kind != Uint && n.Kind != Int {
		return e.failWith("a number", "something else")
	}
	f := n.Float()
	e.store(o, number{f: f, float: true})
	raw := n.Raw
	if !n.Kept {
		switch {
		case o.kind == opFixed:
			if f < -32768 || f >= 32768 {
				return e.failWith("a number from -32768 to 32768", strconv.FormatFloat(f, 'g', -1, 64))
			}
			raw = uint64(uint32(int32(math.Floor(f*65536 + 0.5))))
		case o.bits == 32:
			raw = uint64(math.Float32bits(float32(f)))
		default:
			raw = math.Float64bits(f)
		}
	}
	e.w.Uint(raw, o.bits, o.order)
	return true
}

func (e *Encoder) array(o *op, i int) bool {
	if e.t.Nodes[i].Kind != Array {
		return e.failWith("an array", "something else")
	}
	var mask uint64
	if o.each != nil {
		mask = uint64(e.m.eval(o.each).asInt())
	} else if want, ok := o.size.constant(); ok && int(want) != e.elements(i) {
		return e.failWith(plural(int(want), "element"), strconv.Itoa(e.elements(i)))
	}
	if !e.sound(o) {
		return false
	}
	outer, ok := e.m.index, true
	for k, n := i+1, int64(0); k < e.t.Next(i) && ok; k, n = e.t.Next(k), n+1 {
		e.m.index = n
		if mask != 0 {
			e.m.index = int64(bits.TrailingZeros64(mask))
			mask &= mask - 1
		}
		if ok = e.one(o.body[0], k); !ok {
			e.within("[" + strconv.FormatInt(n, 10) + "]")
		}
	}
	e.m.index = outer
	return ok
}

// text writes a text: its own bytes when it was decoded, else the encoding of
// the string, with its NUL.
func (e *Encoder) text(o *op, i int) bool {
	n := &e.t.Nodes[i]
	var b []byte
	switch {
	case n.Kind == Text && n.Kept:
		b = e.t.AppendBytes(nil, i)
	case n.Kind == String || n.Kind == Text:
		b = encodeText(string(e.t.AppendText(nil, i)), o)
	default:
		return e.failWith("a text", "something else")
	}
	switch o.length {
	case lengthPrefixed:
		if len(b)>>uint(min(o.bits, 62)) != 0 {
			return e.failWith("a text whose length fits "+wire.Bits(o.bits), strconv.Itoa(len(b))+" bytes")
		}
		e.w.Uint(uint64(len(b)), o.bits, o.order)
	case lengthFixed:
		want := int(e.m.eval(o.size).asInt())
		if !e.sound(o) {
			return false
		}
		if len(b) > want {
			return e.failWith("a text of at most "+plural(want, "byte"), strconv.Itoa(len(b)))
		}
		b = append(b, make([]byte, want-len(b))...)
	}
	e.w.Append(b)
	return true
}

func encodeText(s string, o *op) []byte {
	var b []byte
	nul := o.nulCounted || o.length == lengthNUL
	switch o.field.Encoding {
	case Latin1:
		for _, r := range s {
			if r > 0xff {
				r = '?'
			}
			b = append(b, byte(r))
		}
	case UTF16:
		for _, u := range utf16.Encode([]rune(s)) {
			if o.field.Order == wire.Little {
				b = append(b, byte(u), byte(u>>8))
			} else {
				b = append(b, byte(u>>8), byte(u))
			}
		}
		if nul {
			b = append(b, 0)
		}
	case UTF16Lax:
		b = append([]byte(s), 0)
	default:
		b = []byte(s)
	}
	if nul {
		b = append(b, 0)
	}
	return b
}

func (e *Encoder) guid(o *op, i int) bool {
	n := &e.t.Nodes[i]
	if n.Kind == GUID || n.Kind == Bytes && n.BodyLen == 16 {
		e.w.Append(e.t.AppendBytes(nil, i))
		return true
	}
	word := string(e.t.AppendText(nil, i))
	b, err := hex.DecodeString(strings.NewReplacer("{", "", "}", "", "-", "").Replace(word))
	if err != nil || len(b) != 16 {
		return e.failWith("a GUID", strconv.Quote(word))
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

func (e *Encoder) ipv4(o *op, i int) bool {
	n := &e.t.Nodes[i]
	v := n.Num
	if n.Kind == String {
		a, err := netip.ParseAddr(string(e.t.AppendText(nil, i)))
		if err != nil || !a.Is4() {
			return e.failWith("an IPv4 address", "something else")
		}
		b := a.As4()
		v = wire.ReadBits(b[:], 0, 32, wire.Big)
	}
	e.w.Uint(v, 32, wire.Big)
	return true
}

// padding ends a body.
func (e *Encoder) padding(c *code, s *span) {
	n := &Node{}
	if s.cur < s.to && e.t.Nodes[s.cur].Field == paddingField {
		n = &e.t.Nodes[s.cur]
	}
	switch {
	case n.Kind == Bytes:
		e.w.Align()
		e.w.Append(e.t.AppendBytes(nil, s.cur))
	case n.Kind == Uint:
		e.w.Uint(n.Num, int(n.Bits), wire.Big)
	case c.size != nil:
		want := int(e.m.eval(c.size).asInt()) - e.Head
		if n := want - (len(e.w.Bytes()) - e.start); n > 0 {
			e.w.Append(make([]byte, n))
		}
	}
	e.w.Align()
}

// Values are the fields of a struct by name, for a tree that is built and not
// decoded: integers, floats, strings, []byte, bool, nil, Values, or slices of
// them.
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
	sort.Strings(names)
	for _, name := range names {
		t.addValue(&Field{Name: name}, v[name])
	}
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
		set(Uint, uint64(truth(v).i))
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
