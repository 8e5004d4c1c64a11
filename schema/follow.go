package schema

import (
	"math"
	"math/bits"
	"slices"

	"opscope/schema/wire"
)

// follow follows a plan that makes nodes, so many times. It reports false where it gives up; whatever it has
// made is then to be forgotten.
func (d *Decoder) follow(p *plan, times int) (ok bool) {
	if p.longest > d.bounds.Text {
		return false
	}
	data, pos, end, slots, quants := d.data, d.r.Pos(), d.r.Size(), d.m.slots, d.State.quants(p.table)
	nodes := d.t.Nodes
	for ; times > 0; times-- {
		nodes = slices.Grow(nodes, p.values)
		for s := p.first; s != nil; {
			if s.mask != 0 {
				rest, last := s.rest, s.last
				if flags := uint64(slots[s.flag].i); flags&s.mask == 0 {
					if s = s.past; flags&rest == 0 {
						s = last
					}
					continue
				}
			}
			next, at, k := s.next, pos, len(nodes)
			switch s.do {
			case passOver: // only a flag is looked at
			case takeNumber:
				if pos += s.size; pos > end {
					return false
				}
				v := s.number(data, at)
				nodes = nodes[:k+1]
				n := &nodes[k]
				*n = s.node
				n.Off, n.Num = int32(at), uint64(v)
				if s.slot >= 0 {
					slots[s.slot] = integer(v)
					if v < s.low || v > s.high {
						d.check(s.op)
					}
				}
			case takeLearned:
				if quants == nil || !quants[s.key].plain {
					return false
				}
				q := &quants[s.key]
				if pos += int(q.a); pos > end {
					return false
				}
				v := int64(wire.High(data, at) >> (64 - uint(q.a)))
				nodes = nodes[:k+1]
				n := &nodes[k]
				*n = s.node
				n.Off, n.Num, n.Len, n.Bits = int32(at), uint64(v), int32(q.a), q.a
				if s.slot >= 0 {
					slots[s.slot] = integer(v)
					if v < s.low || v > s.high {
						d.check(s.op)
					}
				}
				d.m.origin = max(d.m.origin, q.origin)
			case takeFields:
				if pos += s.lead; pos > end {
					return false
				}
				nodes = nodes[:k+len(s.fields)]
				take(s.fields, nodes[k:], data, at)
			case takeVector:
				nodes = nodes[:k+4]
				if pos, ok = s.vector(d, quants, nodes[k:], at); !ok {
					return false
				}
			case testSet:
				v := &slots[s.slot]
				if v.float {
					return false
				}
				if uint64(v.i) > 63 || s.set>>uint(v.i&63)&1 == 0 {
					next = s.jump
				}
			case clearSlots:
				for _, c := range s.op.clear {
					slots[c] = number{}
				}
			case openStruct:
				d.open = append(d.open, k)
				nodes = nodes[:k+1]
				n := &nodes[k]
				*n = s.node
				n.Off = int32(pos)
			case closeStruct:
				i := d.open[len(d.open)-1]
				d.open = d.open[:len(d.open)-1]
				n := &nodes[i]
				n.Len, n.Size = int32(pos)-n.Off, int32(k-i-1)
			default:
				d.t.Nodes = nodes
				d.r.Seek(pos)
				if next, ok = d.detour(p, s); !ok || d.m.failed {
					return false
				}
				pos, nodes = d.r.Pos(), slices.Grow(d.t.Nodes, p.values)
			}
			s = next
		}
		if times > 1 {
			d.m.index++
		}
	}
	d.t.Nodes = nodes
	d.r.Seek(pos)
	return true
}

// skim is follow for a plan without nodes, so many times. It looks whether the bytes hold
// what it passes over before it needs to know.
func (d *Decoder) skim(p *plan, times int) (ok bool) {
	if p.longest > d.bounds.Text {
		return false
	}
	data, pos, end, slots, quants := d.data, d.r.Pos(), d.r.Size(), d.m.slots, d.State.quants(p.table)
	for ; times > 0; times-- {
		for s := p.first; s != nil; {
			if s.mask != 0 {
				rest, last := s.rest, s.last
				if flags := uint64(slots[s.flag].i); flags&s.mask == 0 {
					if s = s.past; flags&rest == 0 {
						s = last
					}
					continue
				}
			}
			next := s.next
			switch s.do {
			case passOver:
				pos += s.lead
			case takeNumber:
				at := pos + s.lead
				if pos = at + s.size; pos > end {
					return false
				}
				v := s.number(data, at)
				slots[s.slot] = integer(v)
				if v < s.low || v > s.high {
					d.check(s.op)
				}
			case takeVector:
				q := s.quantiser(quants, slots)
				if q == nil || pos > end {
					return false
				}
				width := int(q.a)
				if q.b != 0 {
					sel := wire.High(data, pos) >> (-q.a & 63)
					if sel > uint64(q.most) {
						return false
					}
					pos += width
					width = int(q.least) + int(sel)
				}
				pos += 3 * width
				d.m.origin = max(d.m.origin, q.origin)
			case takeLearned:
				if quants == nil || pos > end {
					return false
				}
				q := &quants[s.key]
				v := int64(wire.High(data, pos+s.lead) >> (64 - uint(q.a)))
				if pos += s.lead + int(q.a); !q.plain {
					return false
				}
				if s.slot >= 0 {
					slots[s.slot] = integer(v)
					if v < s.low || v > s.high {
						d.check(s.op)
					}
				}
				d.m.origin = max(d.m.origin, q.origin)
			case testSet:
				v := &slots[s.slot]
				if v.float {
					return false
				}
				if uint64(v.i) > 63 || s.set>>uint(v.i&63)&1 == 0 {
					next = s.jump
				}
			case clearSlots:
				for _, c := range s.op.clear {
					slots[c] = number{}
				}
			default:
				if pos > end {
					return false
				}
				d.r.Seek(pos)
				if next, ok = d.detour(p, s); !ok || d.m.failed {
					return false
				}
				pos = d.r.Pos()
			}
			s = next
		}
		if times > 1 {
			d.m.index++
		}
	}
	d.r.Seek(pos)
	return pos <= end
}

// number reads the number of a stage at a bit.
func (s *stage) number(data []byte, at int) int64 {
	var top uint64 // its highest bits are the number
	if s.order == wire.Big {
		top = wire.High(data, at)
	} else {
		top = wire.Low(data, at) << (s.shift & 63)
	}
	if s.signed {
		return int64(top) >> (s.shift & 63)
	}
	return int64(top >> (s.shift & 63))
}

// detour does what is not done in the loop itself, and returns the stage to go on with.
func (d *Decoder) detour(p *plan, s *stage) (to *stage, ok bool) {
	switch s.do {
	case testWhen:
		if d.m.eval(s.when).isTrue() {
			return s.next, true
		}
		return s.jump, true
	case enterType:
		return s.next, d.enter(s.op)
	case checkValid:
		return s.next, d.check(s.op)
	case chooseCase:
		return s.chosen(uint64(d.m.eval(s.op.on).asInt()))
	case takeOptional:
		return d.takeOptional(p, s)
	case takeWidth:
		return s.next, d.takeWidth(p, s)
	case takeQuant:
		return s.next, d.takeQuant(p, s)
	case compute:
		return s.next, d.compute(p, s)
	case takeArray:
		return s.next, d.elements(p, s)
	}
	return s.next, d.takeOp(p, s)
}

// take fills the nodes of fields, all of which are there.
func take(fields []field, nodes []Node, data []byte, base int) {
	for i := range fields {
		f, n := &fields[i], &nodes[i]
		*n = f.node
		at := base + int(f.node.Off)
		n.Off = int32(at)
		switch f.as {
		case opBytes:
			n.Body = int32(at)
			continue
		case opStruct:
			continue
		}
		var top uint64 // its highest bits are the number
		switch {
		case f.shift < 64-wire.Reach:
			top = wire.ReadBits(data, at, 64-int(f.shift), f.order) << (f.shift & 63)
		case f.order == wire.Big:
			top = wire.High(data, at)
		default:
			top = wire.Low(data, at) << (f.shift & 63)
		}
		raw := top >> (f.shift & 63)
		switch f.as {
		case opUint:
			n.Num = raw
		case opInt:
			n.Num = uint64(int64(top) >> (f.shift & 63))
		default:
			n.Num, n.Raw = math.Float64bits(float(raw, 64-int(f.shift), f.as == opFixed)), raw
		}
	}
}

// chosen returns the stage where the case of a value begins.
func (s *stage) chosen(v uint64) (to *stage, ok bool) {
	byValue := uint64(len(s.cases) - len(s.op.cases))
	to = s.jump
	if v < byValue {
		to = s.cases[v]
	} else if i := s.op.caseOf(v); i >= 0 {
		to = s.cases[int(byValue)+i]
	}
	return to, to != s.jump || s.op.field == nil
}

// takeWidth takes an integer of any width.
func (d *Decoder) takeWidth(p *plan, s *stage) bool {
	o, width := s.op, int64(s.op.bits)
	if o.width != nil {
		width = d.m.eval(o.width).asInt()
	}
	if width < 0 || width > 64 {
		return false
	}
	at, ok := d.r.Take(int(width))
	if !ok {
		return false
	}
	v := wire.ReadBits(d.data, at, int(width), o.order)
	if o.kind == opInt {
		v = uint64(wire.SignExtend(v, int(width)))
	}
	d.store(o, integer(int64(v)))
	if !p.skims {
		n := d.t.next(s, at)
		n.Num, n.Len, n.Bits = v, int32(width), uint8(width)
	}
	return true
}

// next adds the node of a stage that begins at a bit.
func (t *Tree) next(s *stage, at int) *Node {
	t.Nodes = append(t.Nodes, s.node)
	n := &t.Nodes[len(t.Nodes)-1]
	n.Off = int32(at)
	return n
}

// takeQuant takes a quantised number.
func (d *Decoder) takeQuant(p *plan, s *stage) bool {
	off := d.r.Pos()
	q, sel, n, ok := d.selector(s.op)
	if !ok {
		return false
	}
	at, ok := d.r.Take(n)
	if !ok || p.skims && s.slot < 0 {
		return ok
	}
	raw := wire.ReadBits(d.data, at, n, s.order)
	if !p.skims {
		node := d.t.next(s, off)
		node.quantise(q, raw, steps(n), n)
		node.Len, node.Sel = int32(at+n-off), sel
	}
	d.store(s.op, number{f: q.value(raw, steps(n)), float: true})
	return true
}

// compute computes a value that is not on the wire.
func (d *Decoder) compute(p *plan, s *stage) bool {
	var v number
	if s.op.kind == opJoin {
		v = d.m.join(s.op)
	} else if v = d.m.eval(s.op.value); d.m.failed {
		return false
	}
	d.store(s.op, v)
	if !p.skims {
		n := d.t.next(s, d.r.Pos())
		if n.Num = uint64(v.i); v.float {
			n.Kind, n.Num = Float, math.Float64bits(v.f)
		}
	}
	return true
}

// takeOptional takes the bit that says whether a value is there.
func (d *Decoder) takeOptional(p *plan, s *stage) (to *stage, ok bool) {
	at, ok := d.r.Take(1)
	if !ok {
		return nil, false
	}
	v := wire.ReadBits(d.data, at, 1, s.order)
	d.store(s.op, integer(int64(v)))
	if v != 0 {
		return s.next, true
	}
	if !p.skims {
		n := d.t.next(s, at)
		n.Kind, n.Len = Null, 1
	}
	return s.jump, true
}

// takeOp takes a field as it is decoded where something is wrong.
func (d *Decoder) takeOp(p *plan, s *stage) bool {
	first, before := len(d.t.Nodes), d.values()
	if !d.placed(s.op) || !d.afford(d.values()-before) {
		return false
	}
	if p.skims {
		d.t.Nodes = d.t.Nodes[:first]
	}
	return true
}

// afford counts values that there may be, and reports whether they keep to the bound.
func (d *Decoder) afford(values int) bool {
	d.most += values
	return d.most <= d.bounds.Values
}

// elements takes an array.
func (d *Decoder) elements(p *plan, s *stage) bool {
	o, at := s.op, d.r.Pos()
	count, mask := d.count(o)
	if d.m.failed || count < 0 || count > int64(d.bounds.Values) ||
		count > d.mostElements(o.minBits) || !d.afford(int(count)*o.full.values) {
		return false
	}
	if each := o.skim.passes(); p.skims && each > 0 {
		_, ok := d.r.Take(int(count) * each)
		return ok && o.skim.longest <= d.bounds.Text
	}
	i, outer, made, ok := len(d.t.Nodes), d.m.index, int64(0), true
	if !p.skims {
		d.t.next(s, at)
	}
	for k, times := int64(0), int64(0); k < count && ok; k += times {
		d.m.index, times = k, count-k
		if o.each != nil {
			d.m.index, times = int64(bits.TrailingZeros64(mask)), 1
			mask &= mask - 1
		}
		switch {
		case p.skims, d.Outline > 0 && len(d.t.Nodes)-i > d.Outline:
			ok = d.skim(o.skim, int(times))
			continue
		case d.Outline > 0 && o.full.keeps() != nil:
			times = min(times, int64((d.Outline+o.full.values-1)/o.full.values))
		case d.Outline > 0:
			times = 1
		}
		made += times
		if s := o.full.keeps(); s != nil && o.each == nil {
			ok = d.takeAll(o.full, s, int(times))
		} else {
			ok = d.follow(o.full, int(times))
		}
	}
	d.m.index = outer
	if !p.skims && ok {
		n := &d.t.Nodes[i]
		n.Len, n.Num, n.Size = int32(d.r.Pos()-at), uint64(count-made), int32(len(d.t.Nodes)-i-1)
	}
	return ok
}

// takeAll follows a plan that is one stage, which takes fields.
func (d *Decoder) takeAll(p *plan, s *stage, times int) bool {
	at, ok := d.r.Take(times * s.lead)
	if !ok || p.longest > d.bounds.Text {
		return false
	}
	k := len(d.t.Nodes)
	d.t.Nodes = slices.Grow(d.t.Nodes, times*len(s.fields))[:k+times*len(s.fields)]
	for ; times > 0; times-- {
		take(s.fields, d.t.Nodes[k:], d.data, at)
		k, at = k+len(s.fields), at+s.lead
	}
	return true
}

// quantiser returns the quantiser of a value, nil where the plan is to be given up.
func (s *stage) quantiser(quants *[lowKeys]quantiser, slots []number) *quantiser {
	key := s.low
	if s.key >= 0 {
		v := &slots[s.key]
		if v.float {
			return nil
		}
		key += s.high * v.i
	}
	if quants == nil || uint64(key) >= lowKeys || !quants[key].plain {
		return nil
	}
	return &quants[key]
}

// vector fills the nodes of a vector that begins at a bit, and returns where it ends.
func (s *stage) vector(d *Decoder, quants *[lowKeys]quantiser, nodes []Node, off int) (end int, ok bool) {
	q := s.quantiser(quants, d.m.slots)
	if q == nil {
		return 0, false
	}
	data, at, width, sel := d.data, off, int(q.a), int8(-1)
	if q.b != 0 {
		raw := wire.High(data, off) >> (-q.a & 63)
		if raw > uint64(q.most) {
			return 0, false
		}
		at, width, sel = off+width, int(q.least)+int(raw), int8(raw)
	}
	if end = at + 3*width; end > d.r.Size() {
		return 0, false
	}
	d.m.origin = max(d.m.origin, q.origin)
	n, steps, member := &nodes[0], steps(width), s.op.body[0].field
	*n = s.node
	n.Off, n.Len, n.Size, n.Sel, n.Kept = int32(off), int32(end-off), 3, sel, true
	top, together := uint64(0), 0 < width && 3*width <= wire.Reach
	if together {
		top = wire.High(data, at)
	}
	for k := 1; k < 4; k++ {
		raw := top >> (-width & 63)
		if top <<= width & 63; !together {
			raw = wire.ReadBits(data, at, width, wire.Big)
		}
		n := &nodes[k]
		n.begin(member, Float, at, width)
		n.quantise(q, raw, steps, width)
		at += width
	}
	return end, true
}
