package schema

import (
	"math"
	"strconv"

	"opscope/schema/wire"
)

// primitive is a type that the notation cannot write. Dissector and reference
// server share it.
type primitive struct {
	name    string
	args    int
	table   string // the learned table it reads, if it does
	columns int    // members that the table has at least
	values  int    // numbers that it is; expressions can see a single one
	integer bool   // and an integer, which an enum can name
	width   string // for people, where no table has it
	decode  func(*Decoder, *op, int) bool
	empty   func(*Encoder, *op) bool // writes a field without meaning
	encode  func(*Encoder, *op, int) bool
}

var primitives = map[string]*primitive{
	"quant":      {name: "quant", args: 1, table: "translation", columns: 4, values: 1, decode: decodeQuant, encode: encodeQuant},
	"quant_vec3": {name: "quant_vec3", args: 1, table: "translation", columns: 4, values: 3, decode: decodeQuantVec3, encode: encodeQuantVec3},

	"text_to":    {name: "text_to", args: 1, width: "to what ends it", decode: decodeTextTo, encode: encodeTextTo, empty: (*Encoder).delimiter},
	"decimal_to": {name: "decimal_to", args: 1, values: 1, integer: true, width: "to what ends it", decode: decodeDecimalTo, encode: encodeDecimalTo},
	"count_of":   {name: "count_of", args: 1, values: 1, integer: true, width: "computed", decode: decodeCountOf, encode: encodeCountOf},
}

// quantiser is an entry of the table translation: (a, b, max, range). A number
// lies between max and max - range. With b = 0 it takes a bits; otherwise a
// selector of a bits says how many, once for a scalar and once for a vector.
// Raw 0 is exactly 0, raw 1 is max, raw 2^n - 1 is max - range. Source:
// protocols/wulfram.md, 7.1; recovered, and 826 packets of original clients.
type quantiser struct {
	top, span float64
	a, b      uint8
	least     uint8 // bits of a number with selector 0
	most      uint8 // the largest selector, which gives the finest steps
	sound     bool  // it has widths that there can be
	whole     bool  // a is all of the entry's first value
	plain     bool  // and its bits can be read at once
	origin    Origin
}

const (
	maxWidth    = 64
	maxSelector = 127 // what Node.Sel holds
)

// quantiserOf returns the quantiser of an entry.
func quantiserOf(e *Entry) (q quantiser) {
	v := e.Values
	if len(v) < 4 || !(v[0] >= 0 && v[0] <= maxWidth && v[1] >= 0 && v[1] <= maxWidth) {
		return q
	}
	a, b := int(v[0]), int(v[1])
	least := max(1, b-1<<uint(min(a, 30))+1)
	most := min(1<<uint(a)-1, maxSelector, uint64(maxWidth-least))
	whole := float64(a) == v[0]
	plain := whole && a <= wire.Reach && (a > 0 || b == 0)
	return quantiser{v[2], v[3], uint8(a), uint8(b), uint8(least), uint8(most), true, whole, plain, e.Origin}
}

// quantiser evaluates the slot of a primitive. It returns nil for a missing entry, and
// for one whose widths there cannot be.
func (m *machine) quantiser(o *op) (q *quantiser, e *Entry) {
	key := m.eval(o.args[0]).asInt()
	if q = m.quantised(o.bits, key); q != nil {
		return q, nil
	}
	if e = m.entry(o.bits, key); e != nil {
		if m.single = quantiserOf(e); m.single.sound {
			return &m.single, e
		}
	}
	return nil, e
}

// widths names the widths of an entry, for errors.
func (e *Entry) widths() string {
	return strconv.FormatFloat(e.Values[0], 'g', -1, 64) + " and " + strconv.FormatFloat(e.Values[1], 'g', -1, 64)
}

// steps returns how many steps there are between the values of n bits: 2^n - 2.
func steps(n int) float64 {
	if n == maxWidth {
		return 1<<maxWidth - 2
	}
	return float64(uint64(1)<<uint(n)) - 2
}

// value returns the value of raw bits that are so many steps wide.
func (q *quantiser) value(raw uint64, steps float64) float64 {
	if raw == 0 {
		return 0
	}
	if q.span == 0 || steps <= 0 {
		return q.top
	}
	return q.top - float64(raw-1)*q.span/steps
}

// raw is the inverse of value; a value out of range is clamped.
func (q *quantiser) raw(v float64, n int) uint64 {
	if v == 0 || v != v {
		return 0
	}
	steps := steps(n)
	if q.span == 0 || steps <= 0 {
		return 1
	}
	v = min(max(v, q.top-q.span), q.top)
	up := (q.top - v) * steps / q.span
	if up >= steps {
		return 1<<uint(n) - 1
	}
	return uint64(up) + 1
}

// selector reads the selector in front of a value or vector, -1 without one.
func (d *Decoder) selector(o *op) (q *quantiser, sel int8, n int, ok bool) {
	q, e := d.m.quantiser(o)
	if q == nil && e != nil {
		d.r.Fail("widths of 0 to 64 bits", e.widths(), wire.Malformed)
	}
	if !d.sound() {
		return nil, 0, 0, false
	}
	if q.b == 0 {
		return q, -1, int(q.a), true
	}
	width := int(q.a)
	pos, room := d.r.Take(width)
	if !room {
		return nil, 0, 0, d.r.Need(width)
	}
	raw := wire.ReadBits(d.r.Data(), pos, width, o.order)
	if raw > uint64(q.most) {
		d.r.Fail("a width of 0 to 64 bits", "selector "+strconv.FormatUint(raw, 10), wire.Malformed)
		return nil, 0, 0, false
	}
	return q, int8(raw), int(q.least) + int(raw), true
}

func decodeQuant(d *Decoder, o *op, off int) bool {
	q, sel, n, ok := d.selector(o)
	if !ok {
		return false
	}
	pos, room := d.r.Take(n)
	if !room {
		return d.r.Need(n)
	}
	raw := wire.ReadBits(d.r.Data(), pos, n, o.order)
	node := d.add(o.field, Float, off)
	node.quantise(q, raw, steps(n), n)
	node.Sel = sel
	d.store(o, node.number())
	return true
}

func decodeQuantVec3(d *Decoder, o *op, off int) bool {
	q, sel, n, ok := d.selector(o)
	if !ok {
		return false
	}
	i := len(d.t.Nodes)
	node := d.add(o.field, Array, off)
	node.Sel, node.Kept = sel, true
	for k := 0; k < 3 && ok; k++ {
		pos := d.r.Pos()
		raw := d.r.Uint(n, o.order)
		if ok = d.r.Err() == nil; !ok {
			d.r.Err().Within("[" + strconv.Itoa(k) + "]")
			break
		}
		d.add(o.body[0].field, Float, pos).quantise(q, raw, steps(n), n)
	}
	d.close(i)
	return ok
}

// quantise makes the value of a node that of raw bits, which are so many and so many steps.
func (n *Node) quantise(q *quantiser, raw uint64, steps float64, bits int) {
	n.Num, n.Raw, n.Bits, n.Kept = math.Float64bits(q.value(raw, steps)), raw, uint8(bits), true
}

// selector writes the selector of node i, or the finest one when the value brings
// none that fits.
func (e *Encoder) selector(o *op, i int) (q *quantiser, n int, ok bool) {
	q, entry := e.m.quantiser(o)
	if q == nil && entry != nil {
		e.fail("widths of 0 to 64 bits", entry.widths())
	}
	if !e.sound() {
		return q, 0, false
	}
	if q.b == 0 {
		return q, int(q.a), true
	}
	sel := uint64(q.most)
	if node := &e.t.Nodes[i]; node.Kept && node.Sel >= 0 && uint64(node.Sel) <= uint64(q.most) {
		sel = uint64(node.Sel)
	}
	e.w.Uint(sel, int(q.a), o.order)
	return q, int(q.least) + int(sel), true
}

// quantised writes a number, by its raw bits when it was read in as many.
func (e *Encoder) quantised(o *op, q *quantiser, i, n int) bool {
	node := &e.t.Nodes[i]
	if !node.isNumber() {
		return e.fail("a number", node.what())
	}
	raw := node.Raw
	if !node.Kept || int(node.Bits) != n {
		raw = q.raw(node.Float(), n)
	}
	e.store(o, number{f: node.Float(), float: true})
	e.w.Uint(raw, n, o.order)
	return true
}

func encodeQuant(e *Encoder, o *op, i int) bool {
	q, n, ok := e.selector(o, i)
	return ok && e.quantised(o, q, i, n)
}

func encodeQuantVec3(e *Encoder, o *op, i int) bool {
	if e.t.Nodes[i].Kind != Array || e.elements(i) != 3 {
		return e.fail("a vector of 3 numbers", e.t.Nodes[i].what())
	}
	q, n, ok := e.selector(o, i)
	for k := 1; ok && k <= 3; k++ {
		if ok = e.t.Nodes[i+k].Size == 0 && e.quantised(o, q, i+k, n); !ok {
			e.fail("a number", e.t.Nodes[i+k].what())
			return e.within("[" + strconv.Itoa(k-1) + "]")
		}
	}
	return ok
}

// Text datagrams, such as those by which servers of Netrek are found, are fields of
// text with a byte behind each. text_to(BYTE) is a text, decimal_to(BYTE) a decimal
// number. A newline ends them as well, and a number also ends with a comma; so does
// the end of the data. What ended them is kept. count_of(BYTE) is how many of these
// bytes are still to come; it takes none of them.

const (
	newline   = '\n'
	comma     = ','
	maxDigits = 18 // of a decimal number, which an int64 holds
)

// delimited returns the bytes of the field at the cursor and its node, nil where it
// fails, and moves behind what ends it. The text at the cursor is whole bytes.
func (d *Decoder) delimited(o *op, f *Field, kind ValueKind, off int) ([]byte, *Node) {
	end := byte(d.m.eval(o.args[0]).asInt())
	if !d.sound() {
		return nil, nil
	}
	from, to := off>>3, d.r.Size()>>3
	if off&7 != 0 || from >= to {
		d.r.Fail("a text up to byte "+strconv.Itoa(int(end)), wire.Bits(d.r.Left())+" left", d.Short)
		return nil, nil
	}
	text := d.t.Data[from:to]
	taken := len(text)
	for i, b := range text {
		if b == end || b == newline || b == comma && kind == Int {
			text, taken = text[:i], i+1
			break
		}
	}
	d.r.Skip(8 * taken)
	n := d.add(f, kind, off)
	n.Body, n.BodyLen, n.Kept = int32(off), int32(len(text)), true
	return text, n
}

// writeDelimited writes the bytes of node i as they stood, if it was decoded.
func (e *Encoder) writeDelimited(i int) bool {
	n := &e.t.Nodes[i]
	if !n.Kept || n.Field == nil {
		return false
	}
	e.w.Append(wire.AppendBytes(nil, e.t.Data, int(n.Body), int(n.Len>>3)))
	return true
}

// delimiter writes what ends a field.
func (e *Encoder) delimiter(o *op) bool {
	end := e.m.eval(o.args[0]).asInt()
	if e.sound() {
		e.w.Uint(uint64(end), 8, o.order)
	}
	return e.err == nil
}

func decodeTextTo(d *Decoder, o *op, off int) bool {
	_, n := d.delimited(o, o.field, Text, off)
	return n != nil
}

func encodeTextTo(e *Encoder, o *op, i int) bool {
	if e.writeDelimited(i) {
		return true
	}
	n := &e.t.Nodes[i]
	if n.Kind != String && n.Kind != Text && n.Kind != Bytes {
		return e.fail("a text", n.what())
	}
	text := e.t.AppendBytes(nil, i)
	end := byte(e.m.eval(o.args[0]).asInt())
	for _, b := range text {
		if b == end || b == newline {
			return e.fail("a text without byte "+strconv.Itoa(int(b)), strconv.Quote(string(text)))
		}
	}
	e.w.Append(text)
	return e.delimiter(o)
}

func decodeDecimalTo(d *Decoder, o *op, off int) bool {
	text, n := d.delimited(o, o.field, Int, off)
	if n == nil {
		return false
	}
	v, good := decimal(text)
	if !good {
		d.t.Nodes = d.t.Nodes[:len(d.t.Nodes)-1]
		d.r.Seek(off)
		d.r.Fail("a decimal number", strconv.Quote(string(text[:min(len(text), maxDigits)])), wire.Malformed)
		return false
	}
	d.store(o, integer(v))
	n.Num = uint64(v)
	return true
}

// decimal reads digits, with a sign in front or none.
func decimal(text []byte) (v int64, ok bool) {
	digits := text
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > maxDigits {
		return 0, false
	}
	for _, b := range digits {
		if b < '0' || b > '9' {
			return 0, false
		}
		v = 10*v + int64(b-'0')
	}
	if len(digits) < len(text) {
		v = -v
	}
	return v, true
}

func encodeDecimalTo(e *Encoder, o *op, i int) bool {
	v, ok := e.integer(o, i)
	if !ok {
		return false
	}
	if e.writeDelimited(i) {
		e.store(o, integer(int64(v)))
		return true
	}
	return e.decimal(o, int64(v))
}

// decimal writes a decimal number and what ends it.
func (e *Encoder) decimal(o *op, v int64) bool {
	e.store(o, integer(v))
	e.w.Append(strconv.AppendInt(nil, v, 10))
	return e.delimiter(o)
}

func decodeCountOf(d *Decoder, o *op, off int) bool {
	which := byte(d.m.eval(o.args[0]).asInt())
	if !d.sound() {
		return false
	}
	n := 0
	for _, b := range d.t.Data[min(off>>3, d.r.Size()>>3) : d.r.Size()>>3] {
		if b == which {
			n++
		}
	}
	return d.computed(o, off, integer(int64(n)))
}

func encodeCountOf(e *Encoder, o *op, i int) bool {
	if !e.t.Nodes[i].isNumber() {
		return e.fail("a number", e.t.Nodes[i].what())
	}
	e.store(o, e.t.Nodes[i].number())
	return true
}
