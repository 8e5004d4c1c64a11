package reassembly

import "testing"

func TestSerial(t *testing.T) {
	tcp := Serial{Modulus: 1 << 32}
	short := Serial{Modulus: 1 << 16}
	wulfram := Serial{Modulus: 65535}
	slots := Serial{First: 1, Modulus: 39}
	for _, c := range []struct {
		name string
		s    Serial
		a, b uint64
		want int64
	}{
		{"equal numbers are 0 apart", tcp, 7, 7, 0},
		{"the first TCP sequence follows the last", tcp, 0, 0xFFFFFFFF, 1},
		{"half the circle is before", tcp, 1 << 31, 0, -1 << 31},
		{"just less than half the circle is after", tcp, 1<<31 - 1, 0, 1<<31 - 1},
		{"0 follows 65535 of 16 bits", short, 0, 65535, 1},
		{"0 follows 65534 of 65535 numbers", wulfram, 0, 65534, 1},
		{"65534 comes before 1 of 65535 numbers", wulfram, 65534, 1, -2},
		{"half of an odd circle is after", wulfram, 32767, 0, 32767},
		{"more than half of an odd circle is before", wulfram, 32768, 0, -32767},
		{"slot 1 follows slot 39", slots, 1, 39, 1},
		{"slot 39 comes before slot 2", slots, 39, 2, -2},
		{"slot 20 is 19 after slot 1", slots, 20, 1, 19},
		{"slot 21 is 19 before slot 1", slots, 21, 1, -19},
		{"a number below the first counts as its congruent one", slots, 0, 1, -1},
		{"a number above the last counts as its congruent one", wulfram, 65535, 65534, 1},
		{"the zero Serial has 64 bits", Serial{}, 0, 1<<64 - 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.s.Diff(c.a, c.b); got != c.want {
				t.Errorf("Diff(%d, %d): got %d, want %d", c.a, c.b, got, c.want)
			}
			if got, want := c.s.Less(c.a, c.b), c.want < 0; got != want {
				t.Errorf("Less(%d, %d): got %t, want %t", c.a, c.b, got, want)
			}
			if c.s == tcp {
				if got := Diff32(uint32(c.a), uint32(c.b)); int64(got) != c.want {
					t.Errorf("Diff32(%d, %d): got %d, want %d", c.a, c.b, got, c.want)
				}
			}
		})
	}
}

// Every circle keeps the same laws, so small ones are tried out whole.
func TestSerialLaws(t *testing.T) {
	for modulus := uint64(1); modulus <= 9; modulus++ {
		for _, first := range []uint64{0, 1, 5} {
			s := Serial{First: first, Modulus: modulus}
			for a := first; a < first+modulus; a++ {
				if !s.Contains(a) || s.Contains(first+modulus) || first > 0 && s.Contains(first-1) {
					t.Errorf("%+v does not contain exactly its numbers", s)
				}
				for n := int64(-20); n <= 20; n++ {
					b := s.Add(a, n)
					d := s.Diff(b, a)
					if !s.Contains(b) || s.Add(a, d) != b || (d-n)%int64(modulus) != 0 || 2*d < -int64(modulus) || 2*d >= int64(modulus) && modulus > 1 {
						t.Errorf("%+v: Add(%d, %d) = %d, at distance %d", s, a, n, b, d)
					}
				}
				if s.Next(a) != s.Add(a, 1) {
					t.Errorf("%+v: Next(%d) = %d", s, a, s.Next(a))
				}
			}
		}
	}
}
