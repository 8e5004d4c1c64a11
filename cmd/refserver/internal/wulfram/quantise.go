package wulfram

import "math"

// slot is one entry of TRANSLATION (section 7.1): a fixed width of a bits when b
// is 0, else a selector of a bits that says how many.
type slot struct {
	a, b              uint32
	top, span         float64
	topText, spanText string // as they stand on the wire
}

// The slots by their use (section 7.2).
const (
	slotHealth       = 5
	slotEnergy       = 8
	slotJetStrength  = 10
	slotAnalogue     = 11
	slotPulseCharge  = 13
	slotRepairCharge = 14
	slotPosition     = 16 // bank 0, with velocity, rotation and spin behind it
	slotVelocity     = 17
	slotRotation     = 18
	slotSpin         = 19
	slots            = 28
)

// translation is the server's table QT-WF (section 7.3): the default but for the
// entries named there, vectors alike in all three banks.
func translation() widths {
	var t widths
	for i := range t {
		t[i] = slot{16, 0, 1000, 2000, "1000.0", "2000.0"}
	}
	t[1] = slot{5, 0, 0, 0, "0.0", "0.0"}
	for _, i := range []int{2, 3, 4} {
		t[i] = slot{8, 0, 0, 0, "0.0", "0.0"}
	}
	t[slotHealth] = slot{10, 0, 1, 1, "1.0", "1.0"}
	t[slotEnergy] = t[slotHealth]
	t[slotPulseCharge] = slot{8, 0, 1, 1, "1.0", "1.0"}
	t[slotRepairCharge] = t[slotPulseCharge]
	for bank := range 3 {
		t[slotPosition+4*bank] = slot{4, 16, 8192, 16384, "8192.0", "16384.0"}
		t[slotVelocity+4*bank] = slot{4, 16, 1000, 2000, "1000.0", "2000.0"}
		t[slotRotation+4*bank] = slot{4, 16, 6.3, 12.6, "6.3", "12.6"}
		t[slotSpin+4*bank] = slot{4, 16, 200, 400, "200.0", "400.0"}
	}
	return t
}

// finest is the largest selector, which gives the finest steps.
func (s slot) finest() int { return 1<<s.a - 1 }

// bits returns the width of a value behind a selector.
func (s slot) bits(selector int) int {
	if s.b == 0 {
		return int(s.a)
	}
	return max(1, int(s.b)-1<<s.a+1) + selector
}

// quantise returns the number in n bits that the rule of section 7.1 makes of v,
// and how it is read.
func (s slot) quantise(v float64, n int) quantity {
	if v == 0 {
		return quantity{bits: n, sel: -1}
	}
	steps := math.Exp2(float64(n)) - 2
	v = min(max(v, s.top-s.span), s.top)
	raw := uint64((s.top-v)*steps/s.span) + 1
	return quantity{raw, s.top - float64(raw-1)*s.span/steps, n, -1}
}

// scalar quantises one number.
func (s slot) scalar(v float64) quantity {
	if s.b == 0 {
		return s.quantise(v, int(s.a))
	}
	q := s.quantise(v, s.bits(s.finest()))
	q.sel = int8(s.finest())
	return q
}

// vector quantises three numbers behind one selector.
func (s slot) vector(v vec) vector {
	sel := s.finest()
	n := s.bits(sel)
	return vector{int8(sel), [3]quantity{s.quantise(v.x, n), s.quantise(v.y, n), s.quantise(v.z, n)}}
}
