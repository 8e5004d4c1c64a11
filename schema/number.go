package schema

import "opscope/schema/wire"

// Number is a field of an envelope that was looked up once, for whoever reads it in every
// frame. The zero Number reads 0.
type Number struct {
	off, bits int // in bits
	order     wire.Order
}

// Field returns the field with this name; the zero Number where the envelope has none. The
// nil Envelope has none.
func (e *Envelope) Field(name string) Number {
	if e == nil {
		return Number{}
	}
	for i := range e.fields {
		if f := &e.fields[i]; f.name == name {
			return Number{f.off, f.bits, f.order}
		}
	}
	return Number{}
}

// Of returns the number in the frame that begins with data; 0 where data ends before it.
func (n *Number) Of(data []byte) uint64 {
	if n.bits == 0 || n.off+n.bits > 8*len(data) {
		return 0
	}
	if n.bits == 16 && n.off&7 == 0 { // most are, and many bytes are tried
		a, b := uint64(data[n.off>>3]), uint64(data[n.off>>3+1])
		if n.order == wire.Little {
			return a | b<<8
		}
		return a<<8 | b
	}
	return wire.ReadBits(data, n.off, n.bits, n.order)
}
