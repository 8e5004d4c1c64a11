package machine

import "time"

// Earlier returns the earlier of two deadlines; the zero time is never.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Due reports whether what is done every so often is to be done again, and moves on when it
// last was. What a host has slept through is not caught up with.
func Due(now time.Time, last *time.Time, every time.Duration) bool {
	if now.Sub(*last) < every {
		return false
	}
	if *last = last.Add(every); now.Sub(*last) >= every {
		*last = now
	}
	return true
}
