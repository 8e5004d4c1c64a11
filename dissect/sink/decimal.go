package sink

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// Most numbers of a game are fractions near 1, and their digits are most of what NDJSON
// says. strconv finds the digits of any float; those of these are found here, where two
// words hold all that it takes, exactly.
//
// A float is m·2^-s, with an m of 53 bits, or of 24, and reads back from what is nearer to
// it than half of 2^-s. Let n be the fewest places with 10^n >= 2^s. In units of the last
// of them, 10^-n, the float is m·5^n/2^(s-n), and what reads back lies between
// (2m-1)·5^n/2^(s-n+1) and (2m+1)·5^n/2^(s-n+1). Each is an odd number over an even one, so
// that no number of units is on a bound, and it does not matter to whom a bound belongs. The
// bounds are 10^n/2^s units apart, more than one and less than ten. So
//
//   - there is one multiple of ten between them at most. If there is, it is the answer
//     without its zeros: whatever has fewer places is a multiple of ten, too;
//   - if there is none it takes all n places, and the answer is the number next to the
//     float, the even one of two. It is half a unit away at most, which is within bounds.
//
// A power of two has a neighbour below that is nearer than the one above: strconv has it.

// scale is what there is to know of an s.
type scale struct {
	places          uint
	five, ten, rest uint64 // 5 and 10 to the power of places, and what 10 is short of 10^maxPlaces
}

// maxPlaces is the largest power of ten that fits in 64 bits.
const maxPlaces = 19

// smallest is the smallest float of which 10^n fits in 64 bits, a power of two.
const smallest = 1.0 / (1 << 10)

// scales are those of all s that a float has from smallest on.
var scales = func() (table [52 + 10 + 1]scale) {
	places, five := uint(0), uint64(1)
	for s := range table {
		if powers[places] < 1<<s {
			places, five = places+1, 5*five
		}
		table[s] = scale{places, five, powers[places], powers[maxPlaces-places]}
	}
	return table
}()

// appendFloat appends a float as JSON allows it: the fewest digits that read
// back as the same value, of 32 bits for single, without an exponent between
// 1e-6 and 1e21. NaN and infinities, which JSON has not, are the words NaN,
// +Inf and -Inf.
func appendFloat(dst []byte, v float64, single bool) []byte {
	const full, bias = 52, 1023
	width := uint(full)
	if single {
		v, width = float64(float32(v)), 23
	}
	size := math.Abs(v)
	b := math.Float64bits(size)
	if !(size >= smallest && size < float64(uint64(2)<<width)) {
		if math.Float64bits(v) == 0 {
			return append(dst, '0')
		}
		return appendAnyFloat(dst, v, single)
	}
	m, s := (b&(1<<full-1)|1<<full)>>(full-width&63), bias+width-uint(b>>full)
	whole := m >> (s & 63)
	if m&(m-1) == 0 && whole == 0 {
		return appendAnyFloat(dst, v, single)
	}
	if v < 0 {
		dst = append(dst, '-')
	}
	dst = appendUint(dst, whole)
	if whole<<(s&63) == m {
		return dst
	}
	k := &scales[s]
	units := unitsOf(m, k.five, s-k.places+1) - whole*k.ten
	return appendPlaces(dst, units*k.rest)
}

// appendAnyFloat is appendFloat for those that strconv writes.
func appendAnyFloat(dst []byte, v float64, single bool) []byte {
	bits, size := 64, math.Abs(v)
	small := size < 1e-6
	if single {
		// Compared as what it is, its digits look the same when they come back as a
		// 64-bit float.
		bits, small = 32, float32(size) < 1e-6
	}
	if small && v != 0 || size >= 1e21 {
		return strconv.AppendFloat(dst, v, 'e', -1, bits)
	}
	return strconv.AppendFloat(dst, v, 'f', -1, bits)
}

// unitsOf returns the number of units that stands for 2m·five/2^shift.
func unitsOf(m, five uint64, shift uint) uint64 {
	high, low := bits.Mul64(2*m, five)
	below, borrow := bits.Sub64(low, five, 0)
	least := shifted(high-borrow, below, shift) // is out of bounds
	above, carry := bits.Add64(low, five, 0)
	most := shifted(high+carry, above, shift)
	odd := low >> (shift & 63) & 1
	half, carry := bits.Add64(low, 1<<(shift-1&63)-1+odd, 0)
	units := shifted(high+carry, half, shift)
	if tens := most - most%10; tens > least {
		units = tens
	}
	return units
}

// shifted returns the low word of two that are shifted to the right, by 1 to 63.
func shifted(high, low uint64, shift uint) uint64 { return high<<(-shift&63) | low>>(shift&63) }

// appendPlaces appends a fraction in units of 10^-maxPlaces, which is not 0, without zeros at
// its end.
func appendPlaces(dst []byte, v uint64) []byte {
	const size = len(".") + maxPlaces
	dst = slices.Grow(dst, size)
	text := dst[len(dst):][:size]
	first, second, third := eight(v/1e16), eight(v/1e8%1e8), eight(v%1e8)
	binary.LittleEndian.PutUint32(text, uint32(first>>32)|uint32(zeros&0xffffff00)|'.')
	binary.LittleEndian.PutUint64(text[4:], second|zeros)
	binary.LittleEndian.PutUint64(text[12:], third|zeros)
	end := size - bits.LeadingZeros64(third)/8
	if third == 0 {
		end -= bits.LeadingZeros64(second) / 8
		if second == 0 {
			end -= bits.LeadingZeros64(first) / 8
		}
	}
	return dst[:len(dst)+end]
}

// zeros makes text of what eight returns.
const zeros = 0x30303030_30303030

// eight returns the digits of a number below 10^8, a byte for each, the first in the lowest.
func eight(v uint64) uint64 {
	v = v/1e4 | v%1e4<<32
	hundreds := v * 10486 >> 20 & 0x7f_0000007f
	v = hundreds | (v-100*hundreds)<<16
	tens := v * 103 >> 10 & 0xf_000f_000f_000f
	return tens | (v-10*tens)<<8
}
