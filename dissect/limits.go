package dissect

import (
	"cmp"

	"opscope/reassembly"
)

// Limits bound what a run keeps and how long it tries. A zero field stands for its
// default. What a limit costs the output is shown in its place, and counted by the
// limit's name in Summary.Limits.
type Limits struct {
	// Flows is the largest number of flows that are known at a time; the one that was
	// quiet the longest makes room. A flow takes some 400 bytes, and its streams what
	// they have begun.
	Flows int
	// Sessions is how many sessions that are over are kept for Result; those that are
	// not have a flow each. A session's tables may have some 10 kB.
	Sessions int
	// StreamBytes and StreamSegments wait at most for a hole in one direction of a
	// connection to be filled, TotalBytes in all of them.
	StreamBytes, StreamSegments, TotalBytes int
	// ResyncBytes without a boundary, beyond those of the frames found since, make a
	// stream one that is only counted.
	ResyncBytes int
	// BufferedBytes is how much all streams may have of what is not cut yet. Beyond that, a
	// connection of which nobody knows what it is counts as something else, and a stream that
	// looks for a boundary keeps nothing to look on in.
	BufferedBytes int
	// Fragments is how many datagrams may wait for the rest of their IP fragments, and
	// FragmentBytes how much.
	Fragments, FragmentBytes int
	// HeldRecords and HeldBytes bound the Hold: records and places; bytes copied, bytes
	// of datagrams that wait, and decoded nodes.
	HeldRecords, HeldBytes int
	// Candidates is how many sessions, the newest, a datagram is compared with to find its
	// own, and how many flows may wait for theirs.
	Candidates int
	// Remembered is how many records the streams of all sessions remember, to tell copies
	// and acknowledgements, and how many entries their tables have, of some 170 bytes
	// each; the sessions that were quiet the longest make room.
	Remembered int
	// Secrets is how many values of a session are looked for wherever they come back; the
	// oldest makes room.
	Secrets int
	// Tunnels is how deep tunnels may lie in each other.
	Tunnels int
}

// DefaultLimits are those of a run that says nothing else.
var DefaultLimits = Limits{
	Flows: MaxFlows, Sessions: maxSessions,
	StreamBytes: reassembly.DefaultHeldBytes, StreamSegments: reassembly.DefaultHeldSegments, TotalBytes: reassembly.DefaultTotalBytes,
	ResyncBytes: giveUpAfter, BufferedBytes: 16 << 20,
	Fragments: reassembly.DefaultFragmentSets, FragmentBytes: reassembly.DefaultFragmentBytes,
	HeldRecords: HoldRecords, HeldBytes: HoldBytes,
	Candidates: 512,
	Remembered: 1 << 20,
	Secrets:    maxSecrets,
	Tunnels:    maxTunnels,
}

// The names of limits in Summary.Limits, beside those of schema.Bounds and of the
// captures.
const (
	LimitFlows          = "flows"
	LimitSessions       = "sessions"
	LimitStreamBytes    = "stream-bytes"
	LimitStreamSegments = "stream-segments"
	LimitTotalBytes     = "total-bytes"
	LimitResyncBytes    = "resync-bytes"
	LimitBufferedBytes  = "buffered-bytes"
	LimitFragments      = "fragments"
	LimitFragmentBytes  = "fragment-bytes"
	LimitHeldRecords    = "held-records"
	LimitHeldBytes      = "held-bytes"
	LimitCandidates     = "candidates"
	LimitRemembered     = "remembered"
	LimitSecrets        = "secrets"
	LimitTunnels        = "tunnels"
)

// filled returns l with its zero fields filled in.
func (l Limits) filled() Limits {
	d := &DefaultLimits
	return Limits{
		Flows: cmp.Or(l.Flows, d.Flows), Sessions: cmp.Or(l.Sessions, d.Sessions),
		StreamBytes: cmp.Or(l.StreamBytes, d.StreamBytes), StreamSegments: cmp.Or(l.StreamSegments, d.StreamSegments),
		TotalBytes: cmp.Or(l.TotalBytes, d.TotalBytes), ResyncBytes: cmp.Or(l.ResyncBytes, d.ResyncBytes),
		BufferedBytes: cmp.Or(l.BufferedBytes, d.BufferedBytes),
		Fragments:     cmp.Or(l.Fragments, d.Fragments), FragmentBytes: cmp.Or(l.FragmentBytes, d.FragmentBytes),
		HeldRecords: cmp.Or(l.HeldRecords, d.HeldRecords), HeldBytes: cmp.Or(l.HeldBytes, d.HeldBytes),
		Candidates: cmp.Or(l.Candidates, d.Candidates),
		Remembered: cmp.Or(l.Remembered, d.Remembered), Secrets: cmp.Or(l.Secrets, d.Secrets), Tunnels: cmp.Or(l.Tunnels, d.Tunnels),
	}
}

// limit sets the limits of a run.
func (r *run) limit() {
	l := r.limits
	r.assembler.Options = reassembly.Options{
		HeldBytes: l.StreamBytes, HeldSegments: l.StreamSegments, TotalBytes: l.TotalBytes,
	}
	r.fragments.Options = reassembly.FragmentOptions{Sets: l.Fragments, Bytes: l.FragmentBytes}
	r.link.Tunnels = l.Tunnels
}

// reached takes over the counts that are kept elsewhere. before is what the Hold, which
// captures share, had counted when this one began.
func (r *run) reached(before HoldStats) {
	s, hold := &r.summary, r.hold.Stats()
	a, f := r.assembler.Limited(), r.fragments.Counters()
	s.Fragments = Fragments{Duplicates: f.Duplicates, Refused: f.Refused}
	for _, n := range f.Orphans {
		s.Fragments.Incomplete += n
	}
	s.PeakWaiting = r.assembler.Peak()
	s.reached(LimitStreamBytes, a.Bytes)
	s.reached(LimitStreamSegments, a.Segments)
	s.reached(LimitTotalBytes, a.Total)
	s.reached(LimitFragments, f.EvictedSets)
	s.reached(LimitFragmentBytes, f.EvictedBytes)
	s.reached(LimitHeldRecords, hold.Crowded-before.Crowded)
	s.reached(LimitHeldBytes, hold.Evicted-hold.Crowded-(before.Evicted-before.Crowded))
	s.reached(LimitSessions, r.dropped)
	for _, name := range []string{
		LimitFlows, LimitRemembered, LimitSecrets, LimitStreamBytes, LimitStreamSegments, LimitTotalBytes, LimitFragments, LimitFragmentBytes, LimitHeldRecords, LimitHeldBytes,
	} {
		s.Evictions += s.Limits[name]
	}
}

// reached counts that a limit was reached, so many times.
func (s *Summary) reached(limit string, times int) {
	if times <= 0 || limit == "" {
		return
	}
	if s.Limits == nil {
		s.Limits = map[string]int{}
	}
	s.Limits[limit] += times
}

// Reached counts that a limit of the capture was reached, which ended it.
func (s *Summary) Reached(limit string) { s.reached(limit, 1) }
