package sink

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// wantFloat is the text of a float as strconv has it.
func wantFloat(v float64, width int) string {
	size, format := math.Abs(v), byte('f')
	if width == 32 {
		size = float64(float32(size))
	}
	if small := size < 1e-6 && width == 64 || float32(size) < 1e-6 && width == 32; small && v != 0 || size >= 1e21 {
		format = 'e'
	}
	return strconv.FormatFloat(v, format, -1, width)
}

// checkFloat compares the texts of a float, of its neighbours, and of all these as floats
// of 32 bits.
func checkFloat(t *testing.T, v float64) {
	t.Helper()
	single := float32(v)
	for _, v := range []float64{v, -v, math.Nextafter(v, math.Inf(1)), math.Nextafter(v, 0)} {
		if got, want := string(appendFloat(nil, v, false)), wantFloat(v, 64); got != want {
			t.Fatalf("%x: got %s, want %s", math.Float64bits(v), got, want)
		}
	}
	for _, v := range []float32{single, -single, math.Nextafter32(single, float32(math.Inf(1))), math.Nextafter32(single, 0)} {
		if got, want := string(appendFloat(nil, float64(v), true)), wantFloat(float64(v), 32); got != want {
			t.Fatalf("%x of 32 bits: got %s, want %s", math.Float32bits(v), got, want)
		}
	}
}

// Floats are written as strconv writes them: whatever their size, with few digits in
// decimal or in binary, at the middle between two decimals, and quantised.
func TestShortestFloats(t *testing.T) {
	for _, v := range []float64{0, math.MaxFloat64, math.SmallestNonzeroFloat64, math.MaxFloat32, math.SmallestNonzeroFloat32,
		0.3, 2.0 / 3, 1 + 1.0/(1<<17), 1<<50 + 0.25, 1<<50 + 0.75, 1<<20 + 0.125, 1<<21 + 0.25, math.Inf(1)} {
		checkFloat(t, v)
	}
	for shift := -80; shift < 80; shift++ {
		checkFloat(t, math.Ldexp(1, shift))
		checkFloat(t, math.Ldexp(1<<53-1, shift))
		checkFloat(t, math.Ldexp(1<<24-1, shift))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		checkFloat(t, math.Float64frombits(random.Uint64()&^(1<<63)%(0x7ff<<52)))
		checkFloat(t, math.Ldexp(float64(random.Uint64()>>random.IntN(64)), -random.IntN(80)))
		checkFloat(t, float64(random.Uint64()>>random.IntN(64))/float64(powers[random.IntN(len(powers))]))
		steps := uint64(1)<<(2+random.IntN(30)) - 2
		checkFloat(t, 1200-float64(random.Uint64N(steps+1))*2400/float64(steps))
	}
}

func FuzzFloat(f *testing.F) {
	for _, v := range []float64{0, 0.3, 0.5, 1.0000076293945312, 1e-6, 1e21, 696.2712485122229} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v float64) {
		if v = math.Abs(v); v == v {
			checkFloat(t, v)
		}
	})
}

func BenchmarkFloat(b *testing.B) {
	var values [4096]float64
	random := rand.New(rand.NewPCG(1, 2))
	for i := range values {
		values[i] = 1200 - float64(random.IntN(1<<14))*2400/(1<<14-2)
	}
	text, i := make([]byte, 0, 64), 0
	for b.Loop() {
		text = appendFloat(text[:0], values[i%len(values)], false)
		i++
	}
}
