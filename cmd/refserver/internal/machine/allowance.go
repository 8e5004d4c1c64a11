package machine

import "time"

// Allowance is how much a peer may send: Rate a second, and Burst at once.
type Allowance struct {
	Rate, Burst float64

	left float64   // what it may send now
	then time.Time // when that was counted, zero for never
}

// Charge charges for one thing sent, and reports whether the peer may send it.
func (a *Allowance) Charge(now time.Time) bool {
	if a.then.IsZero() {
		a.left = a.Burst
	} else {
		a.left = min(a.Burst, a.left+a.Rate*now.Sub(a.then).Seconds())
	}
	a.then = now
	a.left--
	return a.left >= 0
}
