package schema

import (
	"math"
	"strconv"

	"opscope/schema/wire"
)

// primitive is a type that the notation cannot write. Dissector and reference
// server share it. It reads a learned table.
type primitive struct {
	name    string
	args    int
	table   string // the table it reads
	columns int    // members that the table has at least
	decode  func(*Decoder, *op, int) bool
	encode  func(*Encoder, *op, int) bool
}

var primitives = map[string]*primitive{
	"quant":      {name: "quant", args: 1, table: "translation", columns: 4, decode: decodeQuant, encode: encodeQuant},
	"quant_vec3": {name: "quant_vec3", args: 1, table: "translation", columns: 4, decode: decodeQuantVec3, encode: encodeQuantVec3},
}

// A quantised number lies between max and max - range. Its slot of the table
// translation has (a, b, max, range): with b = 0 it takes a bits; otherwise a
// selector of a bits says how many, once for a scalar and once for a vector.
// Raw 0 is exactly 0, raw 1 is max, raw 2^n - 1 is max - range. Source:
// protocols/wulfram.md, 7.1; recovered, and 826 packets of original clients.

// quantBits returns the bits of each value behind a selector.
func quantBits(e *Entry, selector uint64) int {
	a, b := int(e.Values[0]), int(e.Values[1])
	if b == 0 {
		return a
	}
	return max(1, b-1<<uint(min(a, 30))+1) + int(selector)
}

func quantValue(e *Entry, raw uint64, n int) float64 {
	if raw == 0 {
		return 0
	}
	top, span := e.Values[2], e.Values[3]
	steps := math.Exp2(float64(n)) - 2
	if span == 0 || steps <= 0 {
		return top
	}
	return top - float64(raw-1)*span/steps
}

// quantRaw is the inverse of quantValue; a value out of range is clamped.
func quantRaw(e *Entry, v float64, n int) uint64 {
	if v == 0 || v != v {
		return 0
	}
	top, span := e.Values[2], e.Values[3]
	steps := math.Exp2(float64(n)) - 2
	if span == 0 || steps <= 0 {
		return 1
	}
	v = min(max(v, top-span), top)
	return uint64((top-v)*steps/span) + 1
}

// quantEntry evaluates the slot of a primitive and returns its table entry.
func (m *machine) quantEntry(o *op) *Entry { return m.entry(o.bits, m.eval(o.args[0]).asInt()) }

// selector reads the selector in front of a value or vector, -1 without one.
func (d *Decoder) selector(o *op, e *Entry) (sel int8, n int, ok bool) {
	if a, b := e.Values[0], e.Values[1]; !(a >= 0 && a <= 64 && b >= 0 && b <= 64) {
		d.r.Fail("a width of 0 to 64 bits", strconv.FormatFloat(max(a, b), 'g', -1, 64), wire.Malformed)
		return 0, 0, false
	}
	sel = -1
	var raw uint64
	if e.Values[1] != 0 {
		raw = d.r.Uint(int(e.Values[0]), o.order)
		sel = int8(min(raw, 127))
	}
	n = quantBits(e, raw)
	if raw > 127 || n > 64 {
		d.r.Fail("a width of 0 to 64 bits", "selector "+strconv.FormatUint(raw, 10), wire.Malformed)
	}
	return sel, n, d.r.Err() == nil
}

func (d *Decoder) quantNode(o *op, f *Field, e *Entry, off, n int, sel int8) bool {
	raw := d.r.Uint(n, o.order)
	v := quantValue(e, raw, n)
	return d.keep(Node{
		Field: f, Kind: Float, Num: math.Float64bits(v), Raw: raw, Kept: true, Sel: sel,
		Off: int32(off), Len: int32(d.r.Pos() - off), Bits: uint8(n),
	})
}

func decodeQuant(d *Decoder, o *op, off int) bool {
	e := d.m.quantEntry(o)
	if !d.sound(o) {
		return false
	}
	sel, n, ok := d.selector(o, e)
	return ok && d.quantNode(o, o.field, e, off, n, sel)
}

func decodeQuantVec3(d *Decoder, o *op, off int) bool {
	e := d.m.quantEntry(o)
	if !d.sound(o) {
		return false
	}
	sel, n, ok := d.selector(o, e)
	if !ok {
		return false
	}
	i := d.add(Node{Field: o.field, Kind: Array, Off: int32(off), Sel: sel, Kept: true})
	for range 3 {
		if ok = d.quantNode(o, o.body[0].field, e, d.r.Pos(), n, -1); !ok {
			break
		}
	}
	d.close(i)
	return ok
}

// writeSelector writes the selector of node i, or the largest one when the value
// brings none, which gives the finest steps.
func (e *Encoder) writeSelector(entry *Entry, i int) (n int) {
	a, b := int(entry.Values[0]), int(entry.Values[1])
	if b == 0 {
		return a
	}
	sel := uint64(1)<<uint(a) - 1
	if node := &e.t.Nodes[i]; node.Sel >= 0 && node.Kept {
		sel = uint64(node.Sel)
	}
	e.w.Uint(sel, a, e.p.Order)
	return min(64, quantBits(entry, sel))
}

func (e *Encoder) writeQuant(entry *Entry, i, n int) {
	node := &e.t.Nodes[i]
	raw := node.Raw
	if !node.Kept {
		raw = quantRaw(entry, node.Float(), n)
	}
	e.w.Uint(raw, n, e.p.Order)
}

func encodeQuant(e *Encoder, o *op, i int) bool {
	entry := e.m.quantEntry(o)
	if !e.sound(o) {
		return false
	}
	e.writeQuant(entry, i, e.writeSelector(entry, i))
	return true
}

func encodeQuantVec3(e *Encoder, o *op, i int) bool {
	entry := e.m.quantEntry(o)
	if !e.sound(o) {
		return false
	}
	if e.t.Nodes[i].Kind != Array || e.t.Next(i) != i+4 {
		return e.fail(o, "a vector of 3 numbers")
	}
	n := e.writeSelector(entry, i)
	for k := 1; k <= 3; k++ {
		e.writeQuant(entry, i+k, n)
	}
	return true
}
