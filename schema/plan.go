package schema

import (
	"math"

	"opscope/schema/wire"
)

// A plan is what the decoder walks along: the ops of a list as stages. Fields of fixed
// size that follow each other are one stage, a run, for whose room is looked once. A run
// that the bytes cannot hold is decoded op by op, which names the field that lacks some.

// stage is one op, or a run of fields.
type stage struct {
	op    *op  // of a stage that is no run
	plain bool // no condition but a flag, and no `at`: the op needs but its type, and its `valid`

	run     []runField
	seen    []runField // those of them that an expression looks at
	order   wire.Order // of the run
	bits    int        // likewise
	widest  int        // bits of its widest number
	longest int        // bytes of its longest text

	slot int    // of the flag on which the stage depends
	mask uint64 // its bits there; 0 for a stage without such a condition
	skip int    // stages behind this one that depend on the same flag
	rest uint64 // the bits of this one and of those behind it that depend on flags of this slot
	last int    // so many are behind it
}

// runField is a field of a run.
type runField struct {
	node  Node // what every value of the field has; its Off counts from the start of the run
	op    *op  // the same, for whoever needs more
	as    runKind
	slot  int
	shift uint8 // 64 less the bits of a number
	// The integers that surely hold its `valid`: all without one, and none where that is
	// no range of the field itself.
	low, high int64
}

// runKind is how a field of a run is read.
type runKind uint8

const (
	runBytes runKind = iota
	runUint
	runInt
	runSingle // what follows has bits that its value does not show
	runDouble
	runFixed
)

// plan returns the stages of a list, and makes those of all lists in it.
func plan(ops []*op) []stage {
	var stages []stage
	for _, o := range ops {
		o.plan = plan(o.body)
		o.blind = o.blindly()
		for i := range o.cases {
			o.cases[i].plan = plan(o.cases[i].ops)
		}
		slot, mask, whole := o.flag()
		f, fits := o.runField()
		if fits && len(stages) > 0 && stages[len(stages)-1].takes(&f, slot, mask) {
			stages[len(stages)-1].add(f)
			continue
		}
		s := stage{slot: slot, mask: mask, rest: mask}
		if fits {
			s.add(f)
		} else {
			s.op, s.plain = o, whole && o.at == nil
		}
		stages = append(stages, s)
	}
	for i := len(stages) - 2; i >= 0; i-- {
		s, next := &stages[i], &stages[i+1]
		if s.mask == 0 || next.mask == 0 || s.slot != next.slot {
			continue
		}
		if s.rest, s.last = s.mask|next.rest, next.last+1; s.mask == next.mask {
			s.skip = next.skip + 1
		}
	}
	return stages
}

// flag returns where the flag stands without which a field is not there, and whether
// that is the whole condition. The mask is 0 where there is none, or another condition.
func (o *op) flag() (slot int, mask uint64, whole bool) {
	if o.cond == nil {
		return 0, 0, true
	}
	e := o.cond
	for e.op == opAnd {
		e = e.args[0] // what stands first is looked at first
	}
	if e.op != opFlag {
		return 0, 0, false
	}
	return e.slot, e.mask << e.shift, e == o.cond
}

// takes reports whether a field with such a condition may join the run.
func (s *stage) takes(f *runField, slot int, mask uint64) bool {
	if s.run == nil || s.mask != mask || s.slot != slot || s.bits > math.MaxInt32/2 {
		return false
	}
	if last := &s.run[len(s.run)-1]; mask != 0 && last.slot == slot {
		return false
	}
	return f.as == runBytes || s.widest == 0 || s.order == f.order() && (s.bits%8 == 0 || int(f.node.Len) <= wire.Reach)
}

func (s *stage) add(f runField) {
	bits := int(f.node.Len)
	f.node.Off = int32(s.bits)
	s.bits += bits
	if f.as == runBytes {
		s.longest = max(s.longest, bits>>3)
	} else {
		s.order, s.widest = f.order(), max(s.widest, bits)
	}
	s.run = append(s.run, f)
	if f.slot >= 0 || f.op.valid != nil {
		s.seen = append(s.seen, f)
	}
}

// order returns the order of a number.
func (f *runField) order() wire.Order {
	if f.op.kind == opIPv4 {
		return wire.Big
	}
	return f.op.order
}

// runField returns what a field is in a run, and whether it may be in one.
func (o *op) runField() (f runField, fits bool) {
	if o.at != nil || o.cond != nil && o.cond.op != opFlag || o.valid != nil && !o.valid.certain() {
		return f, false
	}
	bits, fixed := o.fixedSize()
	if !fixed {
		return f, false
	}
	f = runField{op: o, slot: o.slot, node: Node{Field: o.field, Kind: o.valueKind(), Len: int32(bits), Sel: -1}}
	f.low, f.high = o.validRange()
	switch o.kind {
	case opUint, opIPv4:
		f.as, fits = runUint, o.width == nil
	case opInt:
		f.as, fits = runInt, o.width == nil
	case opFloat:
		if f.as, fits = runDouble, true; bits == 32 {
			f.as = runSingle
		}
	case opFixed:
		f.as, fits = runFixed, true
	case opText, opBytes, opGUID:
		f.as, fits = runBytes, !o.nulCounted
	}
	if f.as == runBytes {
		f.node.BodyLen, f.node.Kept = int32(bits>>3), true
	} else {
		f.node.Bits, f.node.Kept, f.shift = uint8(bits), f.as >= runSingle, uint8(64-bits)
	}
	return f, fits
}

// validRange returns the integers of a field that surely hold its `valid`.
func (o *op) validRange() (low, high int64) {
	switch v := o.valid; {
	case v == nil:
		return math.MinInt64, math.MaxInt64
	case v.op == opWithin && v.slot == o.slot && (o.kind == opUint || o.kind == opInt):
		return v.low, v.high
	}
	return 1, 0
}

// blindly returns the run that every element of an array is, where no expression looks
// at any of it; nil for another op.
func (o *op) blindly() *stage {
	if o.kind != opArray {
		return nil
	}
	p := o.plan
	if e := o.body[0]; e.kind == opStruct && len(e.args) == 0 {
		p = e.plan
	}
	if len(p) != 1 || p[0].run == nil || p[0].mask != 0 || len(p[0].seen) > 0 {
		return nil
	}
	return &p[0]
}

// repeat decodes an array whose elements are one run each, at which no expression looks.
// It reports false, having done nothing, for another array and for one that is not all
// there.
func (d *Decoder) repeat(o *op, count int) bool {
	s, data := o.blind, d.r.Data()
	if s == nil || s.longest > d.bounds.Text || len(data) < 8 || s.widest > wire.Reach && (d.r.Pos()|s.bits)&7 != 0 {
		return false
	}
	element, each := o.body[0], len(s.run)
	if element.kind == opStruct {
		each++
	}
	if d.values()+1+count*each > d.bounds.Values {
		return false
	}
	base, ok := d.r.Take(count * s.bits)
	if !ok {
		return false
	}
	if d.skims {
		d.skimmed += 1 + count*each
		return true
	}
	made := count
	if d.Outline > 0 {
		made = min(count, (d.Outline+each-1)/each)
	}
	d.skimmed += (count - made) * each
	nodes := d.t.extend(1 + made*each)
	nodes[0].begin(o.field, Array, base, count*s.bits)
	nodes[0].Num, nodes[0].Size = uint64(count-made), int32(made*each)
	nodes = nodes[1:]
	for range made {
		if each > len(s.run) {
			nodes[0].begin(element.field, Struct, base, s.bits)
			nodes[0].Size = int32(len(s.run))
			nodes = nodes[1:]
		}
		for i := range s.run {
			nodes[i] = s.run[i].node
			nodes[i].Off += int32(base)
			s.run[i].read(&nodes[i], s.order, data)
		}
		nodes = nodes[len(s.run):]
		base += s.bits
	}
	return true
}

// certain reports whether an expression cannot fail, and looks at no byte to come.
func (e *expr) certain() bool {
	switch e.op {
	case opState, opEntry, opLeft, opNext, opDiv, opMod, opRoundUp:
		return false
	}
	for _, a := range e.args {
		if !a.certain() {
			return false
		}
	}
	return true
}

// follow decodes along a plan and reports whether there was no error.
func (d *Decoder) follow(plan []stage) bool {
	for i := 0; i < len(plan); i++ {
		s := &plan[i]
		if s.mask != 0 {
			if flags := uint64(d.m.slots[s.slot].i); flags&s.rest == 0 {
				i += s.last
				continue
			} else if flags&s.mask == 0 {
				i += s.skip
				continue
			}
		}
		switch {
		case s.run != nil:
			if !d.run(s) {
				return false
			}
		case s.plain:
			if !d.one(s.op) || s.op.valid != nil && !d.check(s.op) {
				return d.lost(s.op)
			}
		case !d.field(s.op):
			return d.lost(s.op)
		}
	}
	return true
}

// lost puts the name of a field in front of the error's path. It returns false.
func (d *Decoder) lost(o *op) bool {
	if o.field != nil {
		d.r.Err().Within(o.field.Name)
	}
	return false
}

// run decodes a run.
func (d *Decoder) run(s *stage) bool {
	data := d.r.Data()
	if s.widest > wire.Reach && d.r.Pos()&7 != 0 || len(data) < 8 || s.longest > d.bounds.Text {
		return d.apart(s)
	}
	base, ok := d.r.Take(s.bits)
	if !ok {
		return d.apart(s)
	}
	if d.skims {
		d.skimmed += len(s.run)
		for i := range s.seen {
			f, n := &s.seen[i], &d.unseen[0]
			n.Off = f.node.Off + int32(base)
			d.expose(f, f.read(n, s.order, data))
		}
		return true
	}
	nodes := d.t.extend(len(s.run))
	for i := range s.run {
		f, n := &s.run[i], &nodes[i]
		*n = f.node
		n.Off += int32(base)
		d.expose(f, f.read(n, s.order, data))
	}
	return true
}

// expose shows the value of a field to expressions, and to its `valid`.
func (d *Decoder) expose(f *runField, v number) {
	if f.slot >= 0 {
		d.m.slots[f.slot] = v
	}
	if v.i < f.low || v.i > f.high {
		d.check(f.op)
	}
}

// apart decodes the fields of a run one after the other.
func (d *Decoder) apart(s *stage) bool {
	for i := range s.run {
		if o := s.run[i].op; !d.field(o) {
			return d.lost(o)
		}
	}
	return true
}

// read reads the field, all of which is there, into its node, and returns its value for
// expressions.
func (f *runField) read(n *Node, o wire.Order, data []byte) number {
	if f.as == runBytes {
		n.Body = n.Off
		return number{}
	}
	var bits uint64 // the highest are the number
	if o == wire.Big {
		bits = wire.High(data, int(n.Off))
	} else {
		bits = wire.Low(data, int(n.Off)) << (f.shift & 63)
	}
	raw := bits >> (f.shift & 63)
	switch f.as {
	case runUint:
		n.Num = raw
		return integer(int64(raw))
	case runInt:
		n.Num = uint64(int64(bits) >> (f.shift & 63))
		return integer(int64(n.Num))
	}
	v := f.float(raw)
	n.Num, n.Raw = math.Float64bits(v), raw
	return number{f: v, float: true}
}

// float returns a number that does not show its bits.
func (f *runField) float(raw uint64) float64 {
	switch f.as {
	case runDouble:
		return math.Float64frombits(raw)
	case runSingle:
		return float64(math.Float32frombits(uint32(raw)))
	}
	return float64(int32(raw)) / 65536
}

// room returns up to four nodes to be filled: at the end of the tree, or for none to see.
// They hold what was there before.
func (d *Decoder) room(n int) []Node {
	if d.skims {
		d.skimmed += n
		return d.unseen[:n]
	}
	return d.t.extend(n)
}

// extend appends n nodes and returns them. They hold what was there before.
func (t *Tree) extend(n int) []Node {
	k := len(t.Nodes)
	if k+n > cap(t.Nodes) {
		t.Nodes = append(t.Nodes, make([]Node, n)...)
	} else {
		t.Nodes = t.Nodes[:k+n]
	}
	return t.Nodes[k:]
}
