package wire

import (
	"bytes"
	"testing"
)

func TestWriterAgreesWithTheNaiveModel(t *testing.T) {
	for _, o := range []Order{Big, Little} {
		for bits := range 65 {
			for skip := range 16 {
				v := uint64(0xdeadbeefcafef00d)
				w := NewWriter(nil)
				w.Uint(1<<63-1, skip, o)
				w.Uint(v, bits, o) // the high bits of v are not written
				if w.Pos() != skip+bits || len(w.Bytes()) != (skip+bits+7)/8 {
					t.Fatalf("u%d%s behind %d bits: %d bits in %d bytes", bits, o, skip, w.Pos(), len(w.Bytes()))
				}
				want := v
				if bits < 64 {
					want &= 1<<bits - 1
				}
				if got := naive(w.Bytes(), skip, bits, o); got != want {
					t.Errorf("u%d%s behind %d bits, %x: got %#x, want %#x", bits, o, skip, w.Bytes(), got, want)
				}
				if got := naive(w.Bytes(), 0, skip, o); got != 1<<skip-1 {
					t.Errorf("u%d%s behind %d bits, %x: the bits in front are now %#x", bits, o, skip, w.Bytes(), got)
				}
			}
		}
	}
}

func TestWriterAppendsBehindWhatIsThere(t *testing.T) {
	w := NewWriter([]byte{0xaa})
	w.Uint(1, 1, Big)
	w.Append([]byte{0x12, 0x34})
	w.Align()
	w.Append([]byte{0xff})
	w.Align() // on a byte: nothing to fill
	if want := []byte{0xaa, 0x89, 0x1a, 0x00, 0xff}; !bytes.Equal(w.Bytes(), want) || w.Pos() != 40 {
		t.Errorf("got %x to bit %d, want %x to bit 40", w.Bytes(), w.Pos(), want)
	}
	var zero Writer
	zero.Uint(3, 2, Little)
	if got := zero.Bytes(); !bytes.Equal(got, []byte{0x03}) {
		t.Errorf("the zero Writer: got %x, want 03", got)
	}
}

func TestPatchChangesItsBitsAndNoOthers(t *testing.T) {
	for _, o := range []Order{Big, Little} {
		for bits := range 65 {
			for pos := range 16 {
				for _, ground := range []byte{0x00, 0xff} {
					data := bytes.Repeat([]byte{ground}, 11)
					w := NewWriter(data)
					w.Patch(pos, 0x123456789abcdef5, bits, o)
					want := uint64(0x123456789abcdef5)
					if bits < 64 {
						want &= 1<<bits - 1
					}
					if got := naive(w.Bytes(), pos, bits, o); got != want {
						t.Errorf("u%d%s at bit %d over %02x: got %#x, want %#x", bits, o, pos, ground, got, want)
					}
					for k := range 8 * len(data) {
						if (k < pos || k >= pos+bits) && bitAt(w.Bytes(), k, o) != uint64(ground&1) {
							t.Errorf("u%d%s at bit %d over %02x: bit %d changed, %x", bits, o, pos, ground, k, w.Bytes())
						}
					}
					if w.Pos() != 88 {
						t.Errorf("a patch moved the writer to bit %d", w.Pos())
					}
				}
			}
		}
	}
}

func TestVarintRoundTrip(t *testing.T) {
	for shift := range 64 {
		for _, v := range []uint64{1 << shift, 1<<shift - 1, 1<<shift + 1} {
			for _, skip := range []int{0, 3} {
				var w Writer
				w.Uint(0, skip, Big)
				w.Varint(v)
				r := NewReader(w.Bytes(), "wire", Malformed)
				r.Skip(skip)
				if got := r.Varint(); got != v || r.Err() != nil || r.Pos() != w.Pos() {
					t.Errorf("behind %d bits, %x: got %d (%v), want %d", skip, w.Bytes(), got, r.Err(), v)
				}
			}
		}
	}
}

// FuzzReadWrite takes the input as a program: each step reads a number from the
// data, writes it, and must find the data's own bits again.
func FuzzReadWrite(f *testing.F) {
	f.Add([]byte{0x12, 0x34, 0x56, 0x78}, []byte{8, 16, 3, 1, 4})
	f.Add([]byte{0xff, 0x00, 0xff}, []byte{0x80 | 9, 0x80 | 7, 64, 65, 66})
	f.Add([]byte("wulfram\x00\x80\x01"), []byte{65, 66, 67, 0x80 | 33})
	f.Fuzz(func(t *testing.T, data, program []byte) {
		r := NewReader(data, "wire", Incomplete)
		var w Writer
		order := Big // one order a byte: the two count its bits from different ends
		for _, step := range program {
			if r.Pos()&7 == 0 {
				order = Order(step >> 7)
			}
			before := r.Pos()
			switch n := int(step & 0x7f); {
			case n <= 64:
				if want := r.Peek(n, order); r.Need(n) && r.Uint(n, order) != want {
					t.Fatalf("u%d%s at bit %d of %x: read and peek differ", n, order, before, data)
				}
				if r.Err() == nil {
					w.Uint(naive(data, before, n, order), n, order)
				}
			case n == 65 && order == Big:
				b := r.Bytes(int(step>>7) + 2)
				w.Append(b)
			case n == 66 && before&7 == 0:
				v := r.Varint()
				if r.Err() == nil {
					var again Writer
					again.Varint(v)
					if len(again.Bytes()) > (r.Pos()-before)/8 {
						t.Fatalf("%d takes %d bytes, and was read from %d", v, len(again.Bytes()), (r.Pos()-before)/8)
					}
					w.Append(data[before/8 : r.Pos()/8])
				}
			case n == 67:
				k := min(before, 64)
				w.Patch(0, naive(data, 0, k, order), k, order)
			}
			if err := r.Err(); err != nil {
				if err.Offset*8+err.Bit > 8*len(data) || r.Uint(1, Big) != 0 {
					t.Fatalf("a bad place, or a read after the error: %v", err)
				}
				break
			}
			if w.Pos() != r.Pos() {
				w.Uint(naive(data, w.Pos(), r.Pos()-w.Pos(), order), r.Pos()-w.Pos(), order)
			}
		}
		whole := w.Pos() / 8
		if !bytes.Equal(w.Bytes()[:whole], data[:whole]) {
			t.Fatalf("got %x, want the start of %x", w.Bytes(), data)
		}
	})
}
