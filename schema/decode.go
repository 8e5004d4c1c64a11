package schema

import (
	"math"
	"math/bits"
	"strconv"

	"opscope/schema/wire"
)

// Limits of decoding. They bound what one body can make the decoder do.
const (
	// MaxNodes is the largest number of values of one body. The largest real
	// one, a BEHAVIOR of Wulfram, has some 3,000.
	MaxNodes = 1 << 18
	// maxEmpty is the largest count of elements that take no bits.
	maxEmpty = 1 << 12
)

// Remark is something odd about a body that still decodes.
type Remark struct {
	Code string // a note code: "out_of_range", "padding_nonzero"
	Text string
}

// Decoder decodes bodies. It is reused, by one goroutine at a time; once warm it
// does not allocate.
type Decoder struct {
	// State holds the learned tables that layouts look at; nil has none.
	State *State
	// Envelope is the envelope in front of the body, for layouts that look at
	// its fields; it may be nil.
	Envelope *Envelope
	// Short is the kind of error that running out of data makes.
	Short wire.Kind

	// End is where the body ended, padding included, in bits from the start of
	// the tree's data.
	End int
	// Origin is the least sure origin of the table entries that were used.
	Origin Origin
	// Remarks are valid until the next Decode.
	Remarks []Remark

	m       machine
	r       wire.Reader
	t       *Tree
	missing bool
}

// Missing returns the table entry that the last body needed and that nobody had
// taught, if it failed for that reason.
func (d *Decoder) Missing() (Missing, bool) { return d.m.missing, d.missing }

// Decode decodes a body that is bits from to to of t.Data into t, which the
// caller has reset; positions in t count from the start of t.Data. The error
// names the field; what was decoded before it is in t.
func (d *Decoder) Decode(p *Protocol, message string, l *Layout, t *Tree, from, to int) *wire.Error {
	c := l.code
	if cap(d.m.slots) < c.slots {
		d.m.slots = make([]number, c.slots)
	}
	d.m.slots = d.m.slots[:c.slots]
	for _, s := range c.clear {
		d.m.slots[s] = number{}
	}
	d.m.p, d.m.state, d.m.index = p, d.State, 0
	d.m.origin, d.m.isMissing, d.m.fault = NoOrigin, false, ""
	d.missing, d.Remarks, d.t = false, d.Remarks[:0], t
	d.r = wire.NewReader(t.Data[:(to+7)>>3], p.Name, d.Short)
	d.r.Seek(from)
	d.m.r = &d.r
	for _, e := range c.env {
		d.m.slots[e.slot] = integer(int64(d.Envelope.read(e.name, t.Data)))
	}
	ok := d.list(c.ops)
	if ok && c.size != nil {
		ok = d.padTo(int(d.m.eval(c.size).asInt()), p)
	} else if ok && p.BitAlign {
		d.pad()
	}
	d.End, d.Origin = d.r.Pos(), d.m.origin
	if err := d.r.Err(); err != nil {
		return err.Within(message)
	}
	return nil
}

// pad skips to the next byte. Padding that is not zero is kept, and remarked on.
func (d *Decoder) pad() {
	off := d.r.Pos()
	n := -off & 7
	if v := d.r.Uint(n, wire.Big); v != 0 {
		d.add(Node{Field: paddingField, Kind: Uint, Num: v, Off: int32(off), Len: int32(n), Bits: uint8(n)})
		d.remark("padding_nonzero", strconv.Itoa(n)+" padding bits are not zero")
	}
}

// padTo skips to the end of a frame whose size is known.
func (d *Decoder) padTo(size int, p *Protocol) bool {
	d.r.Align()
	if n := size*8 - d.r.Pos(); n > 0 && d.r.Need(n) {
		d.bytes(paddingField, Bytes, d.r.Pos(), n>>3)
	}
	return d.r.Err() == nil
}

var paddingField = &Field{Name: "_", Type: "padding", Hidden: true}

func (d *Decoder) remark(code, text string) {
	d.Remarks = append(d.Remarks, Remark{code, text})
}

// add appends a node and returns its index.
func (d *Decoder) add(n Node) int {
	d.t.Nodes = append(d.t.Nodes, n)
	return len(d.t.Nodes) - 1
}

// list decodes the fields of a list and reports whether there was no error.
func (d *Decoder) list(ops []*op) bool {
	for _, o := range ops {
		if o.cond != nil {
			v := d.m.eval(o.cond)
			if !d.sound(o) {
				return false
			}
			if !v.isTrue() {
				continue
			}
		}
		if !d.field(o) {
			if o.field != nil {
				d.r.Err().Within(o.field.Name)
			}
			return false
		}
		if o.valid != nil && !d.m.eval(o.valid).isTrue() && d.sound(o) {
			d.remark(o.note, o.field.Name+": not "+o.valid.text)
		}
	}
	return true
}

// sound turns what an expression could not do into an error.
func (d *Decoder) sound(o *op) bool {
	switch {
	case d.m.isMissing:
		d.missing = true
		d.r.Fail("state."+d.m.missing.Table+"["+strconv.FormatInt(d.m.missing.Key, 10)+"]", "none learned", wire.Malformed)
	case d.m.fault != "":
		d.r.Fail("a value", d.m.fault, wire.Malformed)
	}
	return d.r.Err() == nil
}

func (d *Decoder) field(o *op) bool {
	if o.at != nil {
		d.r.Seek(8 * (o.atBase + int(d.m.eval(o.at).asInt())))
		if !d.sound(o) {
			return false
		}
	}
	return d.one(o)
}

func (d *Decoder) one(o *op) bool {
	off := d.r.Pos()
	switch o.kind {
	case opUint, opInt:
		return d.number(o, off)
	case opFloat:
		raw := d.r.Uint(o.bits, o.order)
		f := math.Float64frombits(raw)
		if o.bits == 32 {
			f = float64(math.Float32frombits(uint32(raw)))
		}
		return d.float(o, off, f, raw)
	case opFixed:
		raw := d.r.Uint(32, o.order)
		return d.float(o, off, float64(int32(raw))/65536, raw)
	case opStruct:
		return d.structure(o, off)
	case opArray:
		return d.array(o, off)
	case opOptional:
		return d.optional(o, off)
	case opSwitch:
		return d.choose(o)
	case opPrimitive:
		return o.prim.decode(d, o, off)
	case opText:
		return d.text(o, off)
	case opBytes:
		n := d.m.eval(o.size).asInt()
		return d.sound(o) && d.need(n) && d.bytes(o.field, Bytes, off, int(n))
	case opRest:
		return d.bytes(o.field, Bytes, off, d.r.Left()>>3)
	case opGUID:
		return d.r.Need(128) && d.bytes(o.field, GUID, off, 16)
	case opIPv4:
		v := d.r.Uint(32, wire.Big)
		return d.keep(Node{Field: o.field, Kind: IPv4, Num: v, Off: int32(off), Len: 32, Bits: 32})
	case opFill:
		n := -off & 7
		v := d.r.Uint(n, o.order)
		return d.keep(Node{Field: o.field, Kind: Uint, Num: v, Off: int32(off), Len: int32(n), Bits: uint8(n)})
	case opComputed:
		v := d.m.eval(o.value)
		return d.sound(o) && d.computed(o, off, v)
	case opJoin:
		return d.join(o, off)
	}
	return false
}

// keep adds a node unless reading it failed.
func (d *Decoder) keep(n Node) bool {
	if d.r.Err() != nil {
		return false
	}
	d.add(n)
	return true
}

func (d *Decoder) store(o *op, v number) {
	if o.slot >= 0 {
		d.m.slots[o.slot] = v
	}
}

func (d *Decoder) number(o *op, off int) bool {
	width := o.bits
	if o.width != nil {
		n := d.m.eval(o.width).asInt()
		if !d.sound(o) {
			return false
		}
		if n < 0 || n > 64 {
			d.r.Fail("a width of 0 to 64 bits", strconv.FormatInt(n, 10), wire.Malformed)
			return false
		}
		width = int(n)
	}
	v := d.r.Uint(width, o.order)
	n := Node{Field: o.field, Kind: Uint, Num: v, Off: int32(off), Len: int32(width), Bits: uint8(width)}
	if o.kind == opInt {
		n.Kind, n.Num = Int, uint64(wire.SignExtend(v, width))
	}
	d.store(o, integer(int64(n.Num)))
	return d.keep(n)
}

func (d *Decoder) float(o *op, off int, f float64, raw uint64) bool {
	d.store(o, number{f: f, float: true})
	return d.keep(Node{
		Field: o.field, Kind: Float, Num: math.Float64bits(f), Raw: raw, Kept: true, Sel: -1,
		Off: int32(off), Len: int32(o.bits), Bits: uint8(o.bits),
	})
}

func (d *Decoder) computed(o *op, off int, v number) bool {
	d.store(o, v)
	n := Node{Field: o.field, Kind: Int, Num: uint64(v.i), Off: int32(off)}
	if v.float {
		n.Kind, n.Num = Float, math.Float64bits(v.f)
	}
	return d.keep(n)
}

func (d *Decoder) join(o *op, off int) bool {
	var v uint64
	for _, p := range o.parts {
		v |= uint64(d.m.slots[p.op.slot].i) << uint(p.shift)
	}
	d.store(o, integer(int64(v)))
	return d.keep(Node{Field: o.field, Kind: Uint, Num: v, Off: int32(off)})
}

// need guards a count of bytes that came off the wire.
func (d *Decoder) need(bytes int64) bool {
	if bytes < 0 || bytes > int64(d.r.Left()>>3) {
		d.r.Fail(strconv.FormatInt(bytes, 10)+" bytes", strconv.Itoa(d.r.Left()>>3)+" left", d.Short)
		return false
	}
	return true
}

func (d *Decoder) bytes(f *Field, kind ValueKind, off, n int) bool {
	pos := d.r.Pos()
	d.r.Skip(8 * n)
	return d.keep(Node{
		Field: f, Kind: kind, Off: int32(off), Len: int32(d.r.Pos() - off), Body: int32(pos), BodyLen: int32(n), Kept: true,
	})
}

func (d *Decoder) text(o *op, off int) bool {
	n := int64(d.r.Left() >> 3)
	switch o.length {
	case lengthPrefixed:
		n = int64(d.r.Uint(o.bits, o.order))
	case lengthFixed:
		n = d.m.eval(o.size).asInt()
	case lengthNUL:
		if n = d.untilNUL(o); n < 0 {
			return false
		}
	}
	if !d.sound(o) || !d.need(n) || !d.bytes(o.field, Text, off, int(n)) {
		return false
	}
	if o.nulCounted {
		d.checkNUL(o, int(n))
	}
	return true
}

// untilNUL returns the bytes of a text up to and with its NUL, or -1.
func (d *Decoder) untilNUL(o *op) int64 {
	unit := 8
	if o.field.Encoding == UTF16 || o.field.Encoding == UTF16Lax && d.r.Left() >= 16 && d.r.Peek(8, wire.Big) != 0 &&
		wire.ReadBits(d.t.Data, d.r.Pos()+8, 8, wire.Big) == 0 {
		unit = 16
	}
	data, pos := d.t.Data, d.r.Pos()
	for n := 0; pos+unit <= d.r.Size(); n += unit / 8 {
		if wire.ReadBits(data, pos, unit, wire.Big) == 0 {
			n += unit / 8
			// 8-bit text in a 16-bit field ends with a 16-bit NUL.
			if o.field.Encoding == UTF16Lax && unit == 8 && pos+16 <= d.r.Size() && wire.ReadBits(data, pos+8, 8, wire.Big) == 0 {
				n++
			}
			return int64(n)
		}
		pos += unit
	}
	d.r.Fail("a NUL at the end of the text", "none", d.Short)
	return -1
}

func (d *Decoder) checkNUL(o *op, n int) {
	if n == 0 {
		d.remark("text_without_nul", o.field.Name+": a length of 0, without the NUL that it counts")
		return
	}
	last := &d.t.Nodes[len(d.t.Nodes)-1]
	if wire.ReadBits(d.t.Data, int(last.Body)+8*(n-1), 8, wire.Big) != 0 {
		d.remark("text_without_nul", o.field.Name+": the last byte is no NUL")
	}
}

// structure decodes the members of a struct.
func (d *Decoder) structure(o *op, off int) bool {
	if !d.enter(o) {
		return false
	}
	i := d.add(Node{Field: o.field, Kind: Struct, Off: int32(off)})
	ok := d.list(o.body)
	d.close(i)
	return ok
}

// enter gives a type its parameters, and clears what its members may leave out.
func (d *Decoder) enter(o *op) bool {
	var args [maxParams]number
	for i, a := range o.args {
		args[i] = d.m.eval(a)
	}
	if !d.sound(o) {
		return false
	}
	for _, s := range o.clear {
		d.m.slots[s] = number{}
	}
	for i, s := range o.params {
		d.m.slots[s] = args[i]
	}
	return true
}

// close ends a node with members: its length, and how many nodes are below it.
func (d *Decoder) close(i int) {
	n := &d.t.Nodes[i]
	n.Len = int32(d.r.Pos()) - n.Off
	n.Size = int32(len(d.t.Nodes) - i - 1)
}

func (d *Decoder) array(o *op, off int) bool {
	mask, count := uint64(0), int64(0)
	if o.each != nil {
		mask = uint64(d.m.eval(o.each).asInt())
		count = int64(bits.OnesCount64(mask))
	} else {
		count = d.m.eval(o.size).asInt()
	}
	if !d.sound(o) || !d.holds(count, o.minBits) {
		return false
	}
	i := d.add(Node{Field: o.field, Kind: Array, Off: int32(off)})
	outer := d.m.index
	ok := true
	for k := int64(0); k < count && ok; k++ {
		d.m.index = k
		if o.each != nil {
			d.m.index = int64(bits.TrailingZeros64(mask))
			mask &= mask - 1
		}
		if ok = d.one(o.body[0]); !ok {
			d.r.Err().Within("[" + strconv.FormatInt(k, 10) + "]")
		}
	}
	d.m.index = outer
	d.close(i)
	return ok
}

// holds guards a count of elements that came off the wire.
func (d *Decoder) holds(count int64, least int) bool {
	most := int64(maxEmpty)
	if least > 0 {
		most = int64(d.r.Left() / least)
	}
	most = min(most, int64(MaxNodes-len(d.t.Nodes)))
	if count < 0 || count > most {
		d.r.Fail(strconv.FormatInt(count, 10)+" elements of at least "+wire.Bits(least), wire.Bits(d.r.Left())+" left", d.Short)
		return false
	}
	return true
}

func (d *Decoder) optional(o *op, off int) bool {
	v := d.r.Uint(1, o.order)
	d.store(o, integer(int64(v)))
	if d.r.Err() != nil {
		return false
	}
	if v == 0 {
		d.add(Node{Field: o.field, Kind: Null, Off: int32(off), Len: 1})
		return true
	}
	return d.one(o.body[0])
}

func (d *Decoder) choose(o *op) bool {
	if !d.enter(o) {
		return false
	}
	v := uint64(d.m.eval(o.on).asInt())
	if !d.sound(o) {
		return false
	}
	for i := range o.cases {
		if c := &o.cases[i]; c.other || v >= c.low && v <= c.high {
			return d.branch(o, c)
		}
	}
	return true
}

// branch decodes one case. In a type, the case stands for the field itself, so
// that its name is not put in front twice.
func (d *Decoder) branch(o *op, c *opCase) bool {
	if o.field == nil {
		return d.list(c.ops)
	}
	return d.one(c.ops[0])
}
