package transport

import "opscope/reassembly"

// The numbers of section 4.2.
const (
	// Modulus is how many sequences there are: after 65534 comes 0.
	Modulus = 65535
	// First is the sequence of the first record of a stream.
	First = 1
	// Window is how many positions ahead of its cursor a receiver accepts.
	Window = 5
	// InFlight is how many unacknowledged records of a stream a sender keeps.
	InFlight = 15
)

var circle = reassembly.Serial{Modulus: Modulus}

func next(seq uint16) uint16 { return uint16(circle.Next(uint64(seq))) }

// ahead returns how far seq is after the cursor, negative when it is before.
func ahead(seq, cursor uint16) int64 { return circle.Diff(uint64(seq), uint64(cursor)) }

// valid reports whether seq is a sequence at all. 65535 is not: no client makes
// it, and the policy of section 4.5 rejects it.
func valid(seq uint16) bool { return circle.Contains(uint64(seq)) }
