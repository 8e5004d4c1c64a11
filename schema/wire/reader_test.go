package wire

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// bitAt is the naive model of the two orders: bit k of the stream, counted as the
// order counts bits within a byte.
func bitAt(data []byte, k int, o Order) uint64 {
	if o == Big {
		return uint64(data[k/8]>>(7-k%8)) & 1
	}
	return uint64(data[k/8]>>(k%8)) & 1
}

// naive reads a number bit by bit: the first bit is the most significant one in
// Big, and the least significant one in Little.
func naive(data []byte, pos, bits int, o Order) (v uint64) {
	for k := range bits {
		if o == Big {
			v = v<<1 | bitAt(data, pos+k, o)
		} else {
			v |= bitAt(data, pos+k, o) << k
		}
	}
	return v
}

func noise(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestUintReadsEveryWidthAtEveryOffset(t *testing.T) {
	data := noise(17)
	for _, o := range []Order{Big, Little} {
		for bits := range 65 {
			for pos := range 64 {
				r := NewReader(data, "wire", Malformed)
				r.Seek(pos)
				want := naive(data, pos, bits, o)
				if got := r.Peek(bits, o); got != want {
					t.Errorf("peek u%d%s at bit %d of %x: got %#x, want %#x", bits, o, pos, data, got, want)
				}
				if got := r.Uint(bits, o); got != want || r.Err() != nil || r.Pos() != pos+bits {
					t.Errorf("u%d%s at bit %d of %x: got %#x to bit %d (%v), want %#x", bits, o, pos, data, got, r.Pos(), r.Err(), want)
				}
			}
		}
	}
}

func TestNumbersByHand(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		pos  int
		bits int
		o    Order
		want uint64
	}{
		{"a big-endian u16", []byte{0x12, 0x34}, 0, 16, Big, 0x1234},
		{"a little-endian u16", []byte{0x12, 0x34}, 0, 16, Little, 0x3412},
		{"the high nibble comes first in big order", []byte{0xa5}, 0, 4, Big, 0xa},
		{"the low nibble comes first in little order", []byte{0xa5}, 0, 4, Little, 0x5},
		{"a big u9 across bytes", []byte{0x80, 0x80}, 0, 9, Big, 0x101},
		{"a little u9 across bytes", []byte{0xff, 0x01}, 0, 9, Little, 0x1ff},
		{"the second little u9", []byte{0xff, 0x03, 0x00}, 9, 9, Little, 1},
		{"a big u16 in mid-byte", []byte{0x0a, 0xbc, 0xd0}, 4, 16, Big, 0xabcd},
		{"a big u64 in mid-byte", []byte{0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xf0}, 4, 64, Big, 0x0fffffffffffffff},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(c.data, "wire", Malformed)
			r.Seek(c.pos)
			if got := r.Uint(c.bits, c.o); got != c.want || r.Err() != nil {
				t.Errorf("%x: got %#x (%v), want %#x", c.data, got, r.Err(), c.want)
			}
		})
	}
}

func TestIntExtendsTheSign(t *testing.T) {
	for _, c := range []struct {
		v    uint64
		bits int
		want int64
	}{
		{0, 1, 0}, {1, 1, -1}, {7, 4, 7}, {8, 4, -8}, {15, 4, -1}, {0x80, 8, -128}, {0x7f, 8, 127},
		{0xffffffff, 32, -1}, {0x80000000, 32, -1 << 31}, {1 << 63, 64, -1 << 63}, {1<<64 - 1, 64, -1}, {0, 0, 0},
	} {
		w := NewWriter(nil)
		w.Uint(c.v, c.bits, Big)
		r := NewReader(w.Bytes(), "wire", Malformed)
		if got := r.Int(c.bits, Big); got != c.want {
			t.Errorf("i%d of %#x: got %d, want %d", c.bits, c.v, got, c.want)
		}
	}
}

func TestTheFirstErrorStays(t *testing.T) {
	for _, short := range []Kind{Malformed, Truncated, Incomplete} {
		r := NewReader([]byte{1, 2, 3}, "netrek", short)
		if got := r.Uint(8, Big); got != 1 {
			t.Fatalf("got %d, want 1", got)
		}
		if got := r.Uint(32, Big); got != 0 {
			t.Errorf("beyond the end: got %#x, want 0", got)
		}
		first := r.Err()
		want := Error{Layer: "netrek", Offset: 1, Size: 3, Want: "4 bytes", Got: "2 bytes left", Kind: short}
		if first == nil || *first != want {
			t.Fatalf("got %+v, want %+v", first, want)
		}
		// What would have worked does not any more.
		r.Seek(0)
		r.Fail("something else", "", Malformed)
		if r.Uint(8, Big) != 0 || r.Int(8, Big) != 0 || r.Peek(8, Big) != 0 || r.Bytes(1) != nil || r.Varint() != 0 || r.Need(0) {
			t.Error("a read after the error did not give zero")
		}
		r.Skip(1)
		r.Align()
		if r.Err() != first || *first != want || r.Pos() != 8 {
			t.Errorf("got %+v at bit %d, want the first error at bit 8", r.Err(), r.Pos())
		}
	}
}

func TestErrorsReadAsOneLine(t *testing.T) {
	for _, c := range []struct {
		err  Error
		want string
	}{
		{Error{"netrek", "SP_PLAYER.x", 4, 0, 12, "4 bytes", "2 bytes left", Truncated, ""},
			"netrek/SP_PLAYER.x at byte 4 of 12: want 4 bytes, 2 bytes left (truncated)"},
		{Error{"wulfram", "envelope", 0, 0, 0, "length >= 3", "1", Malformed, ""},
			"wulfram/envelope at byte 0: want length >= 3, got 1 (malformed)"},
		{Error{"wulfram", "TANK.position[1]", 9, 3, 40, "32 bits", "31 bits left", Incomplete, ""},
			"wulfram/TANK.position[1] at byte 9 bit 3 of 40: want 32 bits, 31 bits left (incomplete)"},
		{Error{Layer: "pcap", Want: "a magic number", Kind: Malformed}, "pcap at byte 0: want a magic number (malformed)"},
		{Error{Layer: "x", Want: "y", Kind: 9}, "x at byte 0: want y (kind(9))"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestErrorsGatherTheirPathOutwards(t *testing.T) {
	e := &Error{Layer: "wulfram", Want: "1 byte"}
	for _, name := range []string{"x", "[2]", "", "entities", "VIEW_UPDATE"} {
		if e.Within(name) != e {
			t.Fatal("got another error")
		}
	}
	if want := "VIEW_UPDATE.entities[2].x"; e.Path != want {
		t.Errorf("got %s, want %s", e.Path, want)
	}
}

func TestReaderErrorsNameWhatWasThere(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*Reader)
		want string
	}{
		{"bits", func(r *Reader) { r.Skip(3); r.Uint(30, Big) }, "p at byte 0 bit 3 of 4: want 30 bits, 29 bits left (truncated)"},
		{"one byte", func(r *Reader) { r.Skip(32); r.Uint(8, Big) }, "p at byte 4 of 4: want 1 byte, 0 bytes left (truncated)"},
		{"bytes", func(r *Reader) { r.Bytes(5) }, "p at byte 0 of 4: want 5 bytes, 4 bytes left (truncated)"},
		{"bytes in mid-byte", func(r *Reader) { r.Skip(1); r.Bytes(4) }, "p at byte 0 bit 1 of 4: want 4 bytes, 31 bits left (truncated)"},
		{"a count that overflows in bits", func(r *Reader) { r.Bytes(1 << 61) }, "p at byte 0 of 4: want 2305843009213693952 bytes, 4 bytes left (truncated)"},
		{"a negative count", func(r *Reader) { r.Bytes(-1) }, "p at byte 0 of 4: want -1 bytes, 4 bytes left (truncated)"},
		{"a negative skip", func(r *Reader) { r.Skip(-8) }, "p at byte 0 of 4: want -1 bytes, 4 bytes left (truncated)"},
		{"an offset behind the end", func(r *Reader) { r.Seek(33) }, "p at byte 0 of 4: want an offset within the frame, got offset 4 (malformed)"},
		{"an offset before the start", func(r *Reader) { r.Skip(8); r.Seek(-8) }, "p at byte 1 of 4: want an offset within the frame, got offset -1 (malformed)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader([]byte{1, 2, 3, 4}, "p", Truncated)
			c.do(&r)
			if r.Err() == nil || r.Err().Error() != c.want {
				t.Errorf("got  %v\nwant %s", r.Err(), c.want)
			}
		})
	}
}

func TestSeekAndAlign(t *testing.T) {
	r := NewReader(noise(4), "wire", Malformed)
	for _, c := range []struct{ to, passed, at int }{{0, 0, 0}, {1, 7, 8}, {7, 1, 8}, {8, 0, 8}, {25, 7, 32}, {32, 0, 32}} {
		r.Seek(c.to)
		if got := r.Align(); got != c.passed || r.Pos() != c.at {
			t.Errorf("align at bit %d: passed %d to %d, want %d to %d", c.to, got, r.Pos(), c.passed, c.at)
		}
	}
	if r.Err() != nil || r.Left() != 0 || r.Size() != 32 {
		t.Errorf("got %d of %d bits left (%v), want 0 of 32", r.Left(), r.Size(), r.Err())
	}
}

func TestBytesAliasOnAByteAndAreCopiedInMidByte(t *testing.T) {
	data := []byte{0x12, 0x34, 0x56, 0x78}
	r := NewReader(data, "wire", Malformed)
	r.Skip(8)
	whole := r.Bytes(2)
	if &whole[0] != &data[1] || !bytes.Equal(whole, []byte{0x34, 0x56}) {
		t.Errorf("on a byte: got %x, want 3456, aliasing the data", whole)
	}
	r.Seek(4)
	if got, want := r.Bytes(3), []byte{0x23, 0x45, 0x67}; !bytes.Equal(got, want) {
		t.Errorf("in mid-byte: got %x, want %x", got, want)
	}
	if got := r.Bytes(0); len(got) != 0 || r.Err() != nil {
		t.Errorf("no bytes: got %x (%v)", got, r.Err())
	}
	for pos := range 9 {
		var want []byte
		for k := range 3 {
			want = append(want, byte(naive(data, pos+8*k, 8, Big)))
		}
		if got := AppendBytes([]byte{9}, data, pos, 3); !bytes.Equal(got[1:], want) || got[0] != 9 {
			t.Errorf("from bit %d of %x: got %x, want %x behind 09", pos, data, got, want)
		}
	}
}

func TestPeekBeyondTheEndIsZero(t *testing.T) {
	r := NewReader([]byte{0xff}, "wire", Malformed)
	r.Skip(4)
	if got := r.Peek(8, Big); got != 0xf0 {
		t.Errorf("big: got %#x, want 0xf0", got)
	}
	if got := r.Peek(8, Little); got != 0x0f {
		t.Errorf("little: got %#x, want 0x0f", got)
	}
	if r.Peek(0, Big) != 0 || r.Peek(-1, Big) != 0 || r.Err() != nil || r.Pos() != 4 {
		t.Errorf("a peek moved or failed: bit %d, %v", r.Pos(), r.Err())
	}
}

func TestVarint(t *testing.T) {
	for _, c := range []struct {
		data string
		want uint64
	}{
		{"\x00", 0}, {"\x01", 1}, {"\x7f", 127}, {"\x80\x01", 128}, {"\xac\x02", 300}, {"\x80\x00", 0}, // not the shortest, and legal
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 1<<64 - 1},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 1 << 63},
	} {
		r := NewReader([]byte(c.data), "wire", Malformed)
		if got := r.Varint(); got != c.want || r.Err() != nil || r.Left() != 0 {
			t.Errorf("%x: got %d, %d bits left (%v), want %d", c.data, got, r.Left(), r.Err(), c.want)
		}
	}
	for _, c := range []struct{ data, want string }{
		{"", "wire at byte 0: want 1 byte, 0 bytes left (incomplete)"},
		{"\x80", "wire at byte 1 of 1: want 1 byte, 0 bytes left (incomplete)"},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "wire at byte 0 of 10: want a varint of at most 64 bits, got more (malformed)"},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", "wire at byte 0 of 11: want a varint of at most 64 bits, got more (malformed)"},
	} {
		r := NewReader([]byte(c.data), "wire", Incomplete)
		if got := r.Varint(); got != 0 || r.Err() == nil || r.Err().Error() != c.want {
			t.Errorf("%x: got %d, %v\nwant %s", c.data, got, r.Err(), c.want)
		}
	}
}

func TestWords(t *testing.T) {
	got := fmt.Sprint(Big, Little, Malformed, Truncated, Incomplete, Bits(0), Bits(1), Bits(7), Bits(8), Bits(16), Bits(17))
	if want := "be le malformed truncated incomplete0 bytes1 bit7 bits1 byte2 bytes17 bits"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var r Reader
	if r.Left() != 0 || r.Uint(0, Big) != 0 || r.Err() != nil || r.Uint(1, Big) != 0 || r.Err() == nil {
		t.Error("the zero Reader is not an empty one")
	}
}

func BenchmarkUint(b *testing.B) {
	data := noise(1024)
	for _, c := range []struct {
		name string
		skip int
		bits int
	}{{"u8", 0, 8}, {"u32", 0, 32}, {"u32 in mid-byte", 3, 32}, {"u10", 0, 10}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				r := NewReader(data, "wire", Malformed)
				for r.Skip(c.skip); r.Left() >= c.bits; {
					r.Uint(c.bits, Big)
				}
			}
		})
	}
}

// A message within another one is read in a window of its own.
func TestNarrow(t *testing.T) {
	r := NewReader([]byte{1, 0x80, 2, 3}, "test", Truncated)
	w := r.Narrow(16, Malformed)
	if r.Left() != 16 || r.Short() != Malformed {
		t.Errorf("got %d bits left, %v", r.Left(), r.Short())
	}
	if r.Varint() != 1 {
		t.Error("the first byte is not 1")
	}
	if r.Varint(); r.Err() == nil || r.Err().Kind != Malformed || r.Err().Offset != 2 {
		t.Errorf("got %v", r.Err())
	}
	r.Widen(w)
	if r.Left() != 16 || r.Short() != Truncated || r.Err() == nil {
		t.Errorf("got %d bits left, %v, %v", r.Left(), r.Short(), r.Err())
	}
}
