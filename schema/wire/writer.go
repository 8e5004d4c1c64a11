package wire

// Writer appends bytes and bits, the counterpart of Reader. The zero Writer is
// ready to use.
type Writer struct {
	buf []byte // whole and begun bytes
	pos int    // bits written, from the start of buf
}

// NewWriter returns a Writer that appends to dst, at the byte after its end.
func NewWriter(dst []byte) Writer { return Writer{buf: dst, pos: 8 * len(dst)} }

// Pos returns the position in bits from the start of the buffer.
func (w *Writer) Pos() int { return w.pos }

// Bytes returns what was written. A begun byte is filled up with zero bits.
func (w *Writer) Bytes() []byte { return w.buf }

// Uint appends the low bits of v, 0 to 64 of them.
func (w *Writer) Uint(v uint64, bits int, o Order) {
	for 8*len(w.buf) < w.pos+bits {
		w.buf = append(w.buf, 0)
	}
	putBits(w.buf, w.pos, v, bits, o)
	w.pos += bits
}

// Patch overwrites bits that were written before, at a position in bits from
// the start of the buffer.
func (w *Writer) Patch(pos int, v uint64, bits int, o Order) { putBits(w.buf, pos, v, bits, o) }

// putBits overwrites the bits of data that start at bit position pos, the
// counterpart of ReadBits. They must lie within data.
func putBits(data []byte, pos int, v uint64, bits int, o Order) {
	for done := 0; done < bits; {
		in := pos & 7
		n := min(8-in, bits-done)
		mask := byte(1)<<uint(n) - 1
		b, shift := byte(v>>uint(done))&mask, in
		if o == Big {
			b, shift = byte(v>>uint(bits-done-n))&mask, 8-in-n
		}
		at := &data[pos>>3]
		*at = *at&^(mask<<uint(shift)) | b<<uint(shift)
		pos += n
		done += n
	}
}

// Append appends whole bytes at the current bit position, most significant bit
// first.
func (w *Writer) Append(p []byte) {
	if w.pos&7 == 0 {
		w.buf = append(w.buf, p...)
		w.pos += 8 * len(p)
		return
	}
	for _, b := range p {
		w.Uint(uint64(b), 8, Big)
	}
}

// Align fills up the begun byte with zero bits.
func (w *Writer) Align() { w.pos = 8 * len(w.buf) }

// Varint appends v as a base-128 varint.
func (w *Writer) Varint(v uint64) {
	for v >= 0x80 {
		w.Uint(v&0x7f|0x80, 8, Big)
		v >>= 7
	}
	w.Uint(v, 8, Big)
}
