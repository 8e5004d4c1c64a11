package schema

import (
	"math"
	"math/bits"
	"slices"
	"strconv"

	"opscope/schema/wire"
)

// Limits of decoding, beside the schema's Bounds.
const (
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
	// Outline is how many nodes of an array suffice: where the tree has as many, what
	// elements follow are read, and counted in the array's node. 0 stands for all.
	Outline int

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
	far     int // where reading left off to go on elsewhere, at the furthest
	missing bool
	skimmed int     // values of the body that are not in the tree
	short   [8]byte // data of less, for wire.High and Low
	scratch Tree    // of a body that is skimmed

	// Of following a plan.
	data []byte // the data of r, or short
	most int    // so many values there may be
	open []int  // the nodes of the structs that are open

	proto  protoWalk
	skims  bool // no node is made, of Protocol Buffers
	unseen Node // but this one
	bounds Bounds
}

// Missing returns the table entry that the last body needed and that nobody had
// taught, if it failed for that reason.
func (d *Decoder) Missing() (Missing, bool) { return d.m.missing, d.missing }

// Decode decodes a body that is bits from to to of t.Data into t, which the
// caller has reset; positions in t count from the start of t.Data. The error
// names the field; what was decoded before it is in t.
func (d *Decoder) Decode(p *Protocol, message string, l *Layout, t *Tree, from, to int) *wire.Error {
	if l.proto != nil {
		return d.protobuf(p, message, l.proto.message(), t, from, to)
	}
	return d.decode(p, message, l.code, l.code.full, t, from, to)
}

// Skim is Decode without the values: the error is the same, and so are End, Origin,
// Remarks and Missing. The data is not kept.
func (d *Decoder) Skim(p *Protocol, message string, l *Layout, data []byte, from, to int) (err *wire.Error) {
	t, outline := &d.scratch, d.Outline
	t.Reset(data)
	if l.proto != nil {
		d.skims = true
		err = d.protobuf(p, message, l.proto.message(), t, from, to)
	} else {
		d.Outline = 1 // where the plan gives up, too, nodes are few
		err = d.decode(p, message, l.code, l.code.skim, t, from, to)
	}
	t.Data, d.Outline, d.skims = nil, outline, false
	return err
}

// decode decodes a body along a plan, or else field by field.
func (d *Decoder) decode(p *Protocol, message string, c *code, plan *plan, t *Tree, from, to int) *wire.Error {
	first := len(t.Nodes)
	d.start(p, c, t, from, to)
	ok := d.planned(plan)
	if !ok {
		t.Nodes = t.Nodes[:first]
		d.start(p, c, t, from, to)
		ok = d.list(c.ops)
	}
	if ok && c.size != nil {
		d.padTo(c.order, d.m.eval(c.size).asInt())
	} else if ok && p.BitAlign {
		d.pad(p.Order)
	}
	d.End, d.Origin = max(d.far, d.r.Pos()), d.m.origin
	if err := d.r.Err(); err != nil {
		return err.Within(message)
	}
	return nil
}

// start makes ready for a body.
func (d *Decoder) start(p *Protocol, c *code, t *Tree, from, to int) {
	d.begin(p, c.slots, c.clear)
	d.m.origin, d.missing, d.far, d.skimmed, d.Remarks, d.t = NoOrigin, false, 0, 0, d.Remarks[:0], t
	d.r.Reset(t.Data[:(to+7)>>3], p.Name, d.Short)
	d.r.Seek(from)
	for _, e := range c.env {
		d.m.slots[e.slot] = integer(int64(d.Envelope.Number(e.name, t.Data)))
	}
}

// planned follows the plan of a body that has been started.
func (d *Decoder) planned(p *plan) bool {
	d.most, d.open = p.values, d.open[:0]
	if d.r.Err() != nil || d.most > d.bounds.Values {
		return false
	}
	if d.data = d.r.Data(); len(d.data) < len(d.short) {
		copy(d.short[:], d.data)
		d.data = d.short[:]
	}
	if p.skims {
		return d.skim(p, 1)
	}
	return d.follow(p, 1)
}

// begin makes the machine ready for a layout with so many slots, some of which are zero
// until a field is there.
func (d *Decoder) begin(p *Protocol, slots int, clear []int) {
	if p != d.m.p {
		d.m.p, d.bounds = p, p.limits()
	}
	if cap(d.m.slots) < slots {
		d.m.slots = make([]number, slots)
	}
	d.m.slots = d.m.slots[:slots]
	for _, s := range clear {
		d.m.slots[s] = number{}
	}
	d.m.state, d.m.index, d.m.failed, d.m.fault, d.m.r = d.State, 0, false, "", &d.r
}

// pad skips to the next byte. Padding that is not zero is kept, and remarked on.
func (d *Decoder) pad(o wire.Order) {
	off := d.r.Pos()
	n := -off & 7
	if n == 0 {
		return
	}
	if v := d.r.Uint(n, o); v != 0 {
		d.add(paddingField, Uint, off).set(v, n)
		d.remark("padding_nonzero", strconv.Itoa(n)+" padding bits are not zero")
	}
}

// padTo skips to the end of a frame of so many bytes. What the last field leaves of
// its byte is kept where it is not zero, and means as little as the bytes behind.
func (d *Decoder) padTo(o wire.Order, size int64) {
	if !d.sound() {
		return
	}
	off := d.r.Pos()
	if n := -off & 7; n > 0 {
		if v := d.r.Uint(n, o); v != 0 {
			d.add(paddingField, Uint, off).set(v, n)
		}
	}
	n := size - int64(d.r.Pos()>>3)
	if n < 0 {
		d.r.Fail("the end at byte "+strconv.FormatInt(size, 10), "a field up to byte "+strconv.Itoa(d.r.Pos()>>3), wire.Malformed)
	} else if n > 0 && d.need(n) {
		d.bytes(paddingField, Bytes, d.r.Pos(), int(n))
	}
	if err := d.r.Err(); err != nil {
		err.Within("padding")
	}
}

var paddingField = &Field{Name: "_", Type: "padding", Hidden: true}

func (d *Decoder) remark(code, text string) {
	d.Remarks = append(d.Remarks, Remark{code, text})
}

// add appends the node of a field that began at a bit and ends here. It is valid until
// the next one.
func (d *Decoder) add(f *Field, kind ValueKind, off int) *Node {
	if d.skims {
		d.skimmed++
		return &d.unseen
	}
	d.t.Nodes = slices.Grow(d.t.Nodes, 1)[:len(d.t.Nodes)+1]
	n := &d.t.Nodes[len(d.t.Nodes)-1]
	n.begin(f, kind, off, d.r.Pos()-off)
	return n
}

// values returns how many values there are so far.
func (d *Decoder) values() int { return len(d.t.Nodes) + d.skimmed }

// begin makes n a node without a value. It sets each field by itself: a literal would be
// put together elsewhere first, and copied, which takes longer than all else.
func (n *Node) begin(f *Field, kind ValueKind, off, bits int) {
	n.Field, n.Num, n.Raw = f, 0, 0
	n.Off, n.Len, n.Body, n.BodyLen, n.Size = int32(off), int32(bits), 0, 0, 0
	n.Kind, n.Bits, n.Sel, n.Kept = kind, 0, -1, false
}

// set sets the value of a number and its width on the wire.
func (n *Node) set(v uint64, bits int) { n.Num, n.Bits = v, uint8(bits) }

// sound turns what an expression could not do into an error.
func (d *Decoder) sound() bool {
	if d.m.failed {
		d.unsound()
	}
	return d.r.Err() == nil
}

func (d *Decoder) unsound() {
	if d.m.fault != "" {
		d.r.Fail("a value", d.m.fault, wire.Malformed)
		return
	}
	d.missing = true
	d.r.Fail(d.m.missing.String(), "none learned", wire.Malformed)
}

// list decodes a list of fields one by one, and says what is wrong with them.
func (d *Decoder) list(ops []*op) bool {
	for _, o := range ops {
		if !d.field(o) {
			if o.field != nil {
				d.r.Err().Within(o.field.Name)
			}
			return false
		}
	}
	return true
}

// field decodes a field, unless its condition says that it is not there.
func (d *Decoder) field(o *op) bool {
	if o.cond != nil {
		if there := d.m.eval(o.cond).isTrue(); !d.sound() || !there {
			return d.r.Err() == nil
		}
	}
	return d.placed(o) && (o.valid == nil || d.check(o))
}

// placed decodes the value of a field, at its place.
func (d *Decoder) placed(o *op) bool { return (o.at == nil || d.seek(o)) && d.one(o) }

// check remarks on a field that does not hold its `valid`.
func (d *Decoder) check(o *op) bool {
	if d.Short != wire.Malformed && o.valid.looksAhead() {
		return true // what it looks at may not be there
	}
	if !d.m.eval(o.valid).isTrue() && d.sound() {
		d.Remarks = append(d.Remarks, o.remark)
	}
	return d.sound()
}

// seek moves to the offset of a field with `at`.
func (d *Decoder) seek(o *op) bool {
	off := d.m.eval(o.at).asInt()
	if !d.sound() {
		return false
	}
	d.far = max(d.far, d.r.Pos())
	if off < 0 || off > int64(d.r.Size()>>3) {
		d.r.Fail("an offset within the frame", "offset "+strconv.FormatInt(off, 10), wire.Malformed)
		return false
	}
	d.r.Seek(8 * (o.atBase + int(off)))
	return d.r.Err() == nil
}

// one decodes a value of a field's type.
func (d *Decoder) one(o *op) bool {
	off := d.r.Pos()
	switch o.kind {
	case opUint, opInt:
		return d.number(o, off)
	case opFloat, opFixed:
		raw := d.r.Uint(o.bits, o.order)
		return d.float(o, off, float(raw, o.bits, o.kind == opFixed), raw)
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
		return d.sound() && d.need(n) && d.bytes(o.field, Bytes, off, int(n))
	case opRest:
		return d.bytes(o.field, Bytes, off, d.r.Left()>>3)
	case opGUID:
		return d.r.Need(128) && d.bytes(o.field, GUID, off, 16)
	case opIPv4:
		return d.keep(o, IPv4, off, d.r.Uint(32, wire.Big), 32)
	case opFill:
		n := -off & 7
		return d.keep(o, Uint, off, d.r.Uint(n, o.order), n)
	case opComputed:
		v := d.m.eval(o.value)
		return d.sound() && d.computed(o, off, v)
	case opJoin:
		return d.join(o, off)
	}
	return false
}

// keep adds a number unless reading it failed.
func (d *Decoder) keep(o *op, kind ValueKind, off int, v uint64, bits int) bool {
	if d.r.Err() != nil {
		return false
	}
	d.add(o.field, kind, off).set(v, bits)
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
		if !d.sound() {
			return false
		}
		if n < 0 || n > 64 {
			d.r.Fail("a width of 0 to 64 bits", strconv.FormatInt(n, 10), wire.Malformed)
			return false
		}
		width = int(n)
	}
	pos, ok := d.r.Take(width)
	if !ok {
		return d.r.Need(width)
	}
	kind, v := Uint, wire.ReadBits(d.r.Data(), pos, width, o.order)
	if o.kind == opInt {
		kind, v = Int, uint64(wire.SignExtend(v, width))
	}
	d.store(o, integer(int64(v)))
	d.add(o.field, kind, off).set(v, width)
	return true
}

// float returns a number that does not show its bits: a fraction of 65536 if it is fixed.
func float(raw uint64, bits int, fixed bool) float64 {
	switch {
	case fixed:
		return float64(int32(raw)) / 65536
	case bits == 32:
		return float64(math.Float32frombits(uint32(raw)))
	}
	return math.Float64frombits(raw)
}

func (d *Decoder) float(o *op, off int, f float64, raw uint64) bool {
	d.store(o, number{f: f, float: true})
	return d.keepFloat(o.field, off, f, raw, o.bits)
}

// keepFloat adds a number that does not show its bits.
func (d *Decoder) keepFloat(field *Field, off int, f float64, raw uint64, bits int) bool {
	if d.r.Err() != nil {
		return false
	}
	n := d.add(field, Float, off)
	n.set(math.Float64bits(f), bits)
	n.Raw, n.Kept = raw, true
	return true
}

func (d *Decoder) computed(o *op, off int, v number) bool {
	d.store(o, v)
	if v.float {
		return d.keep(o, Float, off, math.Float64bits(v.f), 0)
	}
	return d.keep(o, Int, off, uint64(v.i), 0)
}

func (d *Decoder) join(o *op, off int) bool {
	v := d.m.join(o)
	d.store(o, v)
	return d.keep(o, Uint, off, uint64(v.i), 0)
}

// join puts the parts of a number together, low part first.
func (m *machine) join(o *op) number {
	var v uint64
	for _, p := range o.parts {
		v |= uint64(m.slots[p.op.slot].i) << uint(p.shift)
	}
	return integer(int64(v))
}

// need guards a count of bytes that came off the wire.
func (d *Decoder) need(bytes int64) bool {
	if bytes < 0 {
		d.r.Fail("a length of at least 0", strconv.FormatInt(bytes, 10), wire.Malformed)
		return false
	}
	if bytes > int64(d.r.Left()>>3) {
		d.r.Fail(plural(int(bytes), "byte"), wire.Bits(d.r.Left())+" left", d.Short)
		return false
	}
	return true
}

// bound ends decoding at a bound.
func (d *Decoder) bound(name string, most int, of, got string) {
	d.r.Fail("at most "+strconv.Itoa(most)+" "+of, got, wire.Malformed)
	if err := d.r.Err(); err != nil {
		err.Limit = name
	}
}

func (d *Decoder) bytes(f *Field, kind ValueKind, off, n int) bool {
	if n > d.bounds.Text {
		d.bound(BoundText, d.bounds.Text, "bytes in a field", strconv.Itoa(n))
		return false
	}
	pos := d.r.Pos()
	d.r.Skip(8 * n)
	if d.r.Err() != nil {
		return false
	}
	node := d.add(f, kind, off)
	node.Body, node.BodyLen, node.Kept = int32(pos), int32(n), true
	return true
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
	if !d.sound() || !d.need(n) || !d.bytes(o.field, Text, off, int(n)) {
		return false
	}
	if o.nulCounted {
		d.checkNUL(o, int(n))
	}
	return true
}

// untilNUL returns the bytes of a text up to and with its NUL, or -1.
func (d *Decoder) untilNUL(o *op) int64 {
	var n int64
	switch o.field.Encoding {
	case UTF16, UTF16Lax: // 8-bit text ends with a unit of 16 bits as well
		n = d.nul(16)
	default:
		n = d.nul(8)
	}
	if n < 0 {
		d.r.Fail("a NUL at the end of the text", "none", d.Short)
	}
	return n
}

// nul returns the bytes up to and with the first NUL of so many bits, or -1.
func (d *Decoder) nul(unit int) int64 {
	for pos := d.r.Pos(); pos+unit <= d.r.Size(); pos += unit {
		if wire.ReadBits(d.t.Data, pos, unit, wire.Big) == 0 {
			return int64(pos+unit-d.r.Pos()) / 8
		}
	}
	return -1
}

func (d *Decoder) checkNUL(o *op, n int) {
	if n == 0 {
		d.remark("empty_string", o.field.Name+": a length of 0, without the NUL that it counts")
		return
	}
	body := d.r.Pos() - 8*n
	at := func(i int) uint64 { return wire.ReadBits(d.t.Data, body+8*i, 8, wire.Big) }
	if at(n-1) != 0 {
		d.remark("text_without_nul", o.field.Name+": the last byte is no NUL")
	}
	ended := false
	for i := range n {
		if at(i) == 0 {
			ended = true
		} else if ended {
			d.remark("nonzero_after_text", o.field.Name+": bytes follow the NUL at "+strconv.Itoa(i))
			return
		}
	}
}

// structure decodes the members of a struct.
func (d *Decoder) structure(o *op, off int) bool {
	if !d.enter(o) {
		return false
	}
	i := len(d.t.Nodes)
	d.add(o.field, Struct, off)
	ok := d.list(o.body)
	d.close(i)
	return ok
}

// enter gives a type its parameters, and clears what its members may leave out.
func (d *Decoder) enter(o *op) bool {
	for i, a := range o.args {
		d.m.slots[o.params[i]] = d.m.eval(a)
	}
	for _, s := range o.clear {
		d.m.slots[s] = number{}
	}
	return d.sound()
}

// close ends a node with members: its length, and how many nodes are below it.
func (d *Decoder) close(i int) {
	if d.skims {
		return
	}
	n := &d.t.Nodes[i]
	n.Len = int32(d.r.Pos()) - n.Off
	n.Size = int32(len(d.t.Nodes) - i - 1)
}

// count computes how many elements an array has, and of one for each bit of a number that.
func (d *Decoder) count(o *op) (count int64, mask uint64) {
	if o.each == nil {
		return d.m.eval(o.size).asInt(), 0
	}
	mask = uint64(d.m.eval(o.each).asInt())
	return int64(bits.OnesCount64(mask)), mask
}

func (d *Decoder) array(o *op, off int) bool {
	count, mask := d.count(o)
	if !d.sound() || !d.holds(count, o.minBits) {
		return false
	}
	i := len(d.t.Nodes)
	d.add(o.field, Array, off)
	outer, passed := d.m.index, uint64(0)
	ok := true
	for k := int64(0); k < count && ok; k++ {
		d.m.index = k
		if o.each != nil {
			d.m.index = int64(bits.TrailingZeros64(mask))
			mask &= mask - 1
		}
		first, before := len(d.t.Nodes), d.values()
		if ok = d.one(o.body[0]) && (d.values() <= d.bounds.Values || d.few()); !ok {
			d.r.Err().Within("[" + strconv.FormatInt(k, 10) + "]")
		}
		if d.Outline > 0 && first-i > d.Outline && d.values() > before {
			d.skimmed += len(d.t.Nodes) - first
			d.t.Nodes = d.t.Nodes[:first]
			passed++
		}
	}
	d.m.index = outer
	d.t.Nodes[i].Num = passed
	d.close(i)
	return ok
}

// few guards the number of values of a body.
func (d *Decoder) few() bool {
	if d.values() > d.bounds.Values {
		d.bound(BoundValues, d.bounds.Values, "values", "more")
	}
	return d.r.Err() == nil
}

// mostElements returns how many elements of at least so many bits there may be.
func (d *Decoder) mostElements(least int) int64 {
	switch {
	case least == 0:
		return maxEmpty
	case d.Short != wire.Malformed:
		return int64(d.bounds.Values)
	}
	return int64(d.r.Left() / least)
}

// holds guards a count of elements that came off the wire. Where the capture has
// cut the body, those that are there are decoded.
func (d *Decoder) holds(count int64, least int) bool {
	if count < 0 {
		d.r.Fail("a count of at least 0", strconv.FormatInt(count, 10), wire.Malformed)
		return false
	}
	most := d.mostElements(least)
	room := int64(d.bounds.Values - d.values())
	switch {
	case count <= min(most, room):
		return true
	case count <= most && (least == 0 || count <= int64(d.r.Left()/least)):
		d.bound(BoundValues, d.bounds.Values, "values", plural(int(count), "element"))
	default:
		d.r.Fail(plural(int(count), "element")+" of at least "+wire.Bits(least), wire.Bits(d.r.Left())+" left", d.Short)
	}
	return false
}

func (d *Decoder) optional(o *op, off int) bool {
	v := d.r.Uint(1, o.order)
	d.store(o, integer(int64(v)))
	if d.r.Err() != nil {
		return false
	}
	if v == 0 {
		d.add(o.field, Null, off)
		return true
	}
	return d.one(o.body[0])
}

func (d *Decoder) choose(o *op) bool {
	if !d.enter(o) {
		return false
	}
	v := uint64(d.m.eval(o.on).asInt())
	if !d.sound() {
		return false
	}
	if i := o.caseOf(v); i >= 0 {
		return d.branch(o, &o.cases[i])
	}
	if o.field != nil {
		d.r.Fail("a case of "+o.on.text, strconv.FormatUint(v, 10), wire.Malformed)
	}
	return o.field == nil
}

// branch decodes one case. In a type, the case stands for the field itself, so
// that its name is not put in front twice.
func (d *Decoder) branch(o *op, c *opCase) bool {
	if o.field == nil {
		return d.list(c.ops)
	}
	return d.one(c.ops[0])
}
