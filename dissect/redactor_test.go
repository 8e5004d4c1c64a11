package dissect

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Joined spans have the bytes that the spans have, in order and apart from each other, and
// touches finds them.
func TestJoinedSpans(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const size = 40
	for range 2000 {
		var has [size + 1]bool
		var spans []Span
		for range rng.IntN(8) {
			from := rng.IntN(size)
			s := Span{from, from + 1 + rng.IntN(size-from)}
			spans = append(spans, s)
			for i := s.From; i < s.To; i++ {
				has[i] = true
			}
		}
		list := joined(slices.Clone(spans))
		for i := 1; i < len(list); i++ {
			if list[i].From <= list[i-1].To {
				t.Fatalf("%v joined are %v", spans, list)
			}
		}
		for from := range size {
			for to := from; to <= size; to++ {
				if want := slices.Contains(has[from:to], true); touches(list, from, to) != want {
					t.Fatalf("%v: bytes %d to %d: want %v", list, from, to, want)
				}
			}
		}
	}
}
