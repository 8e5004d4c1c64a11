package dissect

import "testing"

// A panic in the midst of a body leaves a decoder that passes over values. The sessions that
// come after are decoded with another one.
func TestADefectTakesTheScratchWithIt(t *testing.T) {
	r := &run{scratch: Scratch{look: LookOutline}}
	r.scratch.Decoder.Outline = OutlineValues
	r.defect("a panic", "wulfram", nil)
	if got := r.scratch.Decoder.Outline; got != 0 {
		t.Errorf("the decoder leaves out what follows %d values, want all of them", got)
	}
	if got := r.scratch.Look(); got != LookOutline {
		t.Errorf("one looks at bodies as %v, want %v", got, LookOutline)
	}
}
