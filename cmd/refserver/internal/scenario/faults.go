package scenario

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"opscope/cmd/refserver/internal/tape"
)

// Faults are everything that may go wrong with packets. The zero Faults are a
// quiet network and a capture of all of it.
type Faults struct {
	Before  Path // between the senders and the tape: the capture shows it
	Behind  Path // between the tape and the receivers: it does not
	Capture Capture
	Stream  Shape
}

// Path is what may happen to a packet on a part of its way. The numbers are
// probabilities.
type Path struct {
	Loss      float64
	Duplicate float64       // it comes twice; before the tape only a datagram does
	Reorder   float64       // it waits for a while, and others overtake it
	Delay     time.Duration // how long at most, beyond what is usual
}

// Capture is what may be wrong with a capture.
type Capture struct {
	Start   time.Duration // from the start of the scenario
	End     time.Duration // likewise, 0 for its end
	Snap    int           // at most so many bytes of a packet
	Miss    float64       // the probability of a packet to be missed
	OnlySrc netip.Addr    // only packets from this host, if it is valid
	Lost    int           // the packet of this number on the wire, from 1; 0 for none
}

// Shape is how the hosts cut their streams into segments.
type Shape struct {
	Split   float64       // the probability of a segment to be cut short
	Merge   time.Duration // how long written bytes wait for others
	Apart   bool          // but what was written at once has segments of its own
	Overlap float64       // the probability of a retransmission to be cut elsewhere
	Wrap    bool          // sequence numbers begin just below 1<<32
}

// camera returns the faults as the tape wants them.
func (c Capture) camera(start time.Time) tape.Faults {
	f := tape.Faults{Snap: c.Snap, Miss: c.Miss, Only: c.OnlySrc, Lost: c.Lost}
	if c.Start > 0 {
		f.Start = start.Add(c.Start)
	}
	if c.End > 0 {
		f.End = start.Add(c.End)
	}
	return f
}

// fate is what happens to one packet on a part of its way.
type fate struct {
	lost, twice, late bool
	delay             time.Duration // of a late one
}

// dice draw fates from a seed.
type dice struct {
	chance *rand.Rand
	delays *rand.Rand // chance, or that of a world
	path   Path
}

// dice returns those of one part of a path. Each has numbers of its own, so that a fault in
// one place changes nothing elsewhere by itself.
func (s *Scenario) dice(seed, stream uint64, p Path) dice {
	d := dice{chance: newChance(seed, stream), path: p}
	if d.delays = d.chance; s.world != 0 {
		d.delays = newChance(s.world, stream)
	}
	return d
}

func newChance(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

// draw draws the fate of a packet.
func (d dice) draw() fate {
	f := fate{
		lost:  d.chance.Float64() < d.path.Loss,
		twice: d.chance.Float64() < d.path.Duplicate,
		late:  d.chance.Float64() < d.path.Reorder,
	}
	part := d.delays.Float64()
	f.delay = time.Duration(part * float64(d.path.Delay)).Truncate(time.Microsecond)
	f.twice = f.twice && !f.lost
	return f
}

// Place is where a fault happens.
type Place string

// The places.
const (
	BeforeTape Place = "before the tape" // on the network
	BehindTape Place = "behind the tape" // on the network
	InCapture  Place = "capture"         // between the wire and the file
)

// Fault is one that happened.
type Fault struct {
	Time   time.Time
	Place  Place
	What   string // "lost", "duplicated", "delayed", "missed", "cut"
	Wire   int    // which packet on the wire, from 1; 0 for one that never got there
	Packet int    // its number in the capture, 0 for none
	Src    netip.AddrPort
	Dst    netip.AddrPort
}
