package reassembly

// Serial is arithmetic on numbers that wrap: sequence numbers, slots, ids. Two of
// them are compared by the shorter way around the circle, as in RFC 1982, so that
// the number after the last one is greater than it.
//
//	TCP sequence        Serial{Modulus: 1 << 32}
//	16-bit sequence     Serial{Modulus: 1 << 16}
//	0 to 65534          Serial{Modulus: 65535}
//	1 to 39             Serial{First: 1, Modulus: 39}
//
// A number outside the circle counts as the one it is congruent to; who must
// tell them apart asks Contains. The zero Serial is the circle of all 64-bit
// numbers.
type Serial struct {
	First   uint64 // the smallest number
	Modulus uint64 // how many numbers there are, less than 1<<63; 0 means 1<<64
}

// Contains reports whether v is one of the numbers of s.
func (s Serial) Contains(v uint64) bool {
	return s.Modulus == 0 || v >= s.First && v-s.First < s.Modulus
}

// Add returns the number n steps after v, or before it when n is negative.
func (s Serial) Add(v uint64, n int64) uint64 {
	if s.Modulus == 0 {
		return v + uint64(n)
	}
	if m := int64(s.Modulus); n >= m || n <= -m {
		n %= m
	}
	if n < 0 {
		n += int64(s.Modulus)
	}
	v = s.steps(v) + uint64(n)
	if v >= s.Modulus {
		v -= s.Modulus
	}
	return s.First + v
}

// Next returns the number after v.
func (s Serial) Next(v uint64) uint64 { return s.Add(v, 1) }

// Diff returns how far a is after b, by the shorter way around: negative when a is
// before b. Numbers exactly half the circle apart are each before the other.
func (s Serial) Diff(a, b uint64) int64 {
	if s.Modulus == 0 {
		return int64(a - b)
	}
	d, all := int64(s.steps(a)-s.steps(b)), int64(s.Modulus)
	if d < 0 {
		d += all
	}
	if d >= all-all/2 {
		d -= all
	}
	return d
}

// Less reports whether a is before b.
func (s Serial) Less(a, b uint64) bool { return s.Diff(a, b) < 0 }

// steps returns how many steps lead from First to v, in 0 to Modulus-1.
func (s Serial) steps(v uint64) uint64 {
	if n := v - s.First; n < s.Modulus { // as it is for all but odd numbers; a division takes long
		return n
	}
	if v < s.First {
		return (s.Modulus - (s.First-v)%s.Modulus) % s.Modulus
	}
	return (v - s.First) % s.Modulus
}

// Diff32 is Serial{Modulus: 1 << 32}.Diff in one instruction, for TCP.
func Diff32(a, b uint32) int32 { return int32(a - b) }

// unwrap returns the position nearest to near that has the sequence number seq,
// where position 0 has the number base.
func unwrap(seq, base uint32, near int64) int64 {
	return near + int64(Diff32(seq, base+uint32(near)))
}
