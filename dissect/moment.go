package dissect

import "time"

// moment is a point of time in nanoseconds since 1970, as it is kept and compared for each
// record and packet: a third of a time.Time. It reaches from 1678 to 2262.
type moment int64

func momentOf(t time.Time) moment { return moment(t.UnixNano()) }

// roundTrip returns the time from one moment to the other, or openRTT where the capture's
// clock went back.
func roundTrip(from, to moment) time.Duration {
	if to < from {
		return openRTT
	}
	return time.Duration(to - from)
}
