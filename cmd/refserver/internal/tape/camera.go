package tape

import (
	"math/rand/v2"
	"net/netip"
	"time"
)

// Faults are the faults of a capture: what lies between the wire and the file. The
// zero Faults capture everything.
type Faults struct {
	Start time.Time  // packets before it are not captured
	End   time.Time  // nor those after it, if it is set
	Snap  int        // at most so many bytes of a packet, 0 for all of them
	Miss  float64    // the probability of a packet to be missed
	Only  netip.Addr // only packets from this host, if it is valid
	Lost  int        // the packet of this number, counted from 1 as they come; 0 for none
}

// Film is what a camera captures into: a File, or memory.
type Film interface {
	// Write appends a packet. Its bytes stay as they are.
	Write(*Shot) error
}

// Camera captures packets into a film, as far as its faults let it.
type Camera struct {
	film   Film
	faults Faults
	chance *rand.Rand
	count  int
	seen   int
}

// NewCamera returns a camera in front of a film. It draws from chance for every
// packet, so that a fault more or less does not change the others.
func NewCamera(f Film, faults Faults, chance *rand.Rand) *Camera {
	return &Camera{film: f, faults: faults, chance: chance}
}

// Take shows the camera a packet. It returns the packet's number on the film, from
// 1, and how many bytes of it are there; the number 0 means that it was missed.
func (c *Camera) Take(at time.Time, src netip.Addr, data []byte, comment string) (number, captured int, err error) {
	missed := c.chance.Float64() < c.faults.Miss
	f := &c.faults
	if c.seen++; missed || c.seen == f.Lost || at.Before(f.Start) || !f.End.IsZero() && at.After(f.End) || f.Only.IsValid() && f.Only != src {
		return 0, 0, nil
	}
	shot := Shot{Time: at, Data: data, Length: len(data), Comment: comment}
	if f.Snap > 0 && len(data) > f.Snap {
		shot.Data = data[:f.Snap]
	}
	c.count++
	return c.count, len(shot.Data), c.film.Write(&shot)
}
