// Package wire reads and writes bytes and bits in either order. It is the one
// cursor that every byte off the network passes through.
//
// A Reader keeps the first error with its place; after that, reads return zero
// and the error stays, so that a list of fields is checked once, at its end.
// Data is borrowed: nothing here copies or keeps it beyond the Reader.
package wire

import (
	"encoding/binary"
	"strconv"
)

// Order is the order of bytes, and of bits within a byte.
type Order uint8

const (
	// Big takes the most significant byte first, and within a byte the most
	// significant bit.
	Big Order = iota
	// Little takes the least significant byte first, and within a byte the
	// least significant bit.
	Little
)

// String returns "be" or "le", the suffix used in schema files.
func (o Order) String() string {
	if o == Little {
		return "le"
	}
	return "be"
}

// Reader is a cursor over bytes and bits. The zero Reader is an empty one.
// Positions are in bits from the start of the data.
type Reader struct {
	data  []byte
	pos   int
	end   int
	short Kind
	layer string
	err   *Error
}

// NewReader returns a Reader over data. The layer names the protocol in errors;
// short is the kind of error that running out of data makes.
func NewReader(data []byte, layer string, short Kind) Reader {
	return Reader{data: data, end: 8 * len(data), layer: layer, short: short}
}

// Reset makes r what NewReader returns, without the copy.
func (r *Reader) Reset(data []byte, layer string, short Kind) {
	r.data, r.pos, r.end, r.short, r.layer, r.err = data, 0, 8*len(data), short, layer, nil
}

// Pos returns the position in bits.
func (r *Reader) Pos() int { return r.pos }

// Size returns the number of bits in all.
func (r *Reader) Size() int { return r.end }

// Left returns the number of bits not yet read.
func (r *Reader) Left() int { return r.end - r.pos }

// Data returns the bytes that r reads. They are the caller's own.
func (r *Reader) Data() []byte { return r.data }

// Short returns the kind of error that running out of data makes.
func (r *Reader) Short() Kind { return r.short }

// Err returns the first error, or nil.
func (r *Reader) Err() *Error { return r.err }

// Seek moves to a position in bits. A position outside the data is an error of
// kind Malformed.
func (r *Reader) Seek(bit int) {
	if r.err != nil {
		return
	}
	if bit < 0 || bit > r.end {
		r.Fail("an offset within the frame", "offset "+strconv.Itoa(bit>>3), Malformed)
		return
	}
	r.pos = bit
}

// Window is what a Reader could read before it was narrowed.
type Window struct {
	end   int
	short Kind
}

// Narrow lets r read no further than a bit position, which must not lie beyond what
// it can read; running out there makes an error of kind short. It returns what to
// give to Widen.
func (r *Reader) Narrow(end int, short Kind) Window {
	w := Window{r.end, r.short}
	r.end, r.short = end, short
	return w
}

// Widen takes back what Narrow did.
func (r *Reader) Widen(w Window) { r.end, r.short = w.end, w.short }

// Fail records an error at the current position, unless there is one already.
func (r *Reader) Fail(want, got string, kind Kind) {
	if r.err != nil {
		return
	}
	r.err = &Error{
		Layer:  r.layer,
		Offset: r.pos >> 3,
		Bit:    r.pos & 7,
		Size:   len(r.data),
		Want:   want,
		Got:    got,
		Kind:   kind,
	}
}

// Need reports whether n more bits are there, and fails otherwise. It also
// guards allocations: no count from the wire is believed before it.
func (r *Reader) Need(n int) bool {
	if r.err != nil {
		return false
	}
	if n < 0 || n > r.end-r.pos {
		r.Fail(Bits(n), Bits(r.Left())+" left", r.short)
		return false
	}
	return true
}

// Take moves over n bits and returns where they begin. It reports false, moves nowhere
// and is no failure where they are not there.
func (r *Reader) Take(n int) (pos int, ok bool) {
	if pos = r.pos; r.err != nil || uint(n) > uint(r.end-pos) {
		return pos, false
	}
	r.pos = pos + n
	return pos, true
}

// Bits names a number of bits, in bytes when it is whole bytes.
func Bits(n int) string {
	if n&7 == 0 {
		return count(n>>3, "byte")
	}
	return count(n, "bit")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Uint reads an unsigned number of 0 to 64 bits.
func (r *Reader) Uint(bits int, o Order) uint64 {
	if r.err != nil || uint(bits) > uint(r.end-r.pos) {
		r.Need(bits)
		return 0
	}
	pos := r.pos
	r.pos += bits
	return ReadBits(r.data, pos, bits, o)
}

// Int reads a two's-complement number of 1 to 64 bits.
func (r *Reader) Int(bits int, o Order) int64 {
	return SignExtend(r.Uint(bits, o), bits)
}

// SignExtend reads the low bits of v as a two's-complement number.
func SignExtend(v uint64, bits int) int64 {
	if bits <= 0 || bits >= 64 {
		return int64(v)
	}
	s := 64 - uint(bits)
	return int64(v<<s) >> s
}

// Peek returns the next bits without reading them. Bits beyond the data are
// zero, and no error.
func (r *Reader) Peek(bits int, o Order) uint64 {
	if r.err != nil || bits <= 0 {
		return 0
	}
	if left := r.end - r.pos; bits > left {
		v := ReadBits(r.data, r.pos, left, o)
		if o == Big {
			v <<= uint(bits - left)
		}
		return v
	}
	return ReadBits(r.data, r.pos, bits, o)
}

// Reach is how many bits High and Low surely hold of those that start anywhere.
const Reach = 57

// High returns the bits of data that start at bit position pos, most significant first:
// the first is the highest of the result. It holds at least a Reach of them, or those up
// to the end of data, which must have eight bytes; what lies below is not said.
func High(data []byte, pos int) uint64 {
	i := min(pos>>3, len(data)-8)
	return binary.BigEndian.Uint64(data[i:]) << (uint(pos-8*i) & 63)
}

// Low is High with the least significant bit first, and lowest in the result.
func Low(data []byte, pos int) uint64 {
	i := min(pos>>3, len(data)-8)
	return binary.LittleEndian.Uint64(data[i:]) >> (uint(pos-8*i) & 63)
}

// ReadBits returns the bits of data that start at bit position pos. They must
// lie within data.
func ReadBits(data []byte, pos, bits int, o Order) uint64 {
	if len(data) < 8 || bits > Reach && pos&7+bits > 64 {
		return gatherBits(data, pos, bits, o)
	}
	if o == Big {
		return High(data, pos) >> uint(64-bits)
	}
	return Low(data, pos) & (1<<uint(bits) - 1)
}

// gatherBits reads bits byte by byte, where no eight bytes hold them all.
func gatherBits(data []byte, pos, bits int, o Order) uint64 {
	var v uint64
	for done := 0; done < bits; {
		in := pos & 7
		n := min(8-in, bits-done)
		b := data[pos>>3]
		if o == Big {
			b = b << uint(in) >> uint(8-n)
			v = v<<uint(n) | uint64(b)
		} else {
			b = b >> uint(in) & (1<<uint(n) - 1)
			v |= uint64(b) << uint(done)
		}
		pos += n
		done += n
	}
	return v
}

// Skip moves over n bits.
func (r *Reader) Skip(n int) {
	if r.Need(n) {
		r.pos += n
	}
}

// Align moves to the next byte boundary and returns the number of bits passed
// over.
func (r *Reader) Align() int {
	n := -r.pos & 7
	r.Skip(n)
	return n
}

// Bytes returns the next n bytes. They alias the data when the position is on
// a byte boundary and are a new slice otherwise.
func (r *Reader) Bytes(n int) []byte {
	if n > r.Left()>>3 {
		r.Fail(count(n, "byte"), Bits(r.Left())+" left", r.short)
	}
	if !r.Need(8 * n) {
		return nil
	}
	pos := r.pos
	r.pos += 8 * n
	if pos&7 == 0 {
		return r.data[pos>>3 : pos>>3+n]
	}
	return AppendBytes(make([]byte, 0, n), r.data, pos, n)
}

// AppendBytes appends n bytes that start at bit position pos of data, most
// significant bit first. They must lie within data.
func AppendBytes(dst, data []byte, pos, n int) []byte {
	i, s := pos>>3, uint(pos&7)
	if s == 0 {
		return append(dst, data[i:i+n]...)
	}
	for range n {
		dst = append(dst, data[i]<<s|data[i+1]>>(8-s))
		i++
	}
	return dst
}

// Varint reads a base-128 varint of at most ten bytes, as Protocol Buffers
// write them.
func (r *Reader) Varint() uint64 {
	if r.err == nil && r.pos&7 == 0 {
		if r.pos < r.end && r.data[r.pos>>3] < 0x80 { // most are small
			v := r.data[r.pos>>3]
			r.pos += 8
			return uint64(v)
		}
		if v, n := binary.Uvarint(r.data[r.pos>>3 : r.end>>3]); n > 0 {
			r.pos += 8 * n
			return v
		}
	}
	var v uint64
	start := r.pos
	for shift := uint(0); shift < 70; shift += 7 {
		b := r.Uint(8, Big)
		if r.err != nil {
			return 0
		}
		if shift == 63 && b > 1 {
			break
		}
		v |= b & 0x7f << shift
		if b < 0x80 {
			return v
		}
	}
	r.pos = start
	r.Fail("a varint of at most 64 bits", "more", Malformed)
	return 0
}
