package netrek

import (
	"slices"
	"time"

	"opscope/cmd/refserver/internal/script"
	"opscope/schema"
)

// The reasons of SP_BADVERSION (section 3).
const (
	badVersion = 0
	badNoSlot  = 2
)

// The versions of the protocol (section 1).
const (
	socketVersion = 4
	udpVersion    = 10
)

// queueEvery is how often a client in the queue is told its place.
const queueEvery = time.Second

// socket takes the first packet of a client: another version is refused, all others
// get a slot or wait for one.
func (c *session) socket(now time.Time, b *schema.Tree) {
	s := c.server
	if c.greeted {
		return
	}
	if got := b.Number("version"); got != socketVersion {
		c.refuse(badVersion, "version", "its CP_SOCKET has another version")
		return
	}
	c.greeted = true
	c.udp.mismatch = b.Number("udp_version") != udpVersion
	if len(s.queue) >= maxQueue {
		c.refuse(badNoSlot, "full", "there is no slot, and the queue is full")
		return
	}
	s.queue = append(s.queue, c)
	s.seat(now)
}

// refuse ends the session with an SP_BADVERSION.
func (c *session) refuse(why int, code, reason string) {
	c.send("SP_BADVERSION", schema.Values{"why": why})
	c.End(code, reason)
}

// seat gives free slots to those who wait, and tells the others their place.
func (s *server) seat(now time.Time) {
	s.queue = slices.DeleteFunc(s.queue, func(c *session) bool { return c.Ended() })
	for len(s.queue) > 0 {
		p := s.vacancy()
		if p == nil {
			break
		}
		c := s.queue[0]
		s.queue = s.queue[1:]
		c.seated(now, p)
	}
	for i, c := range s.queue {
		if c.place != i+1 || now.Sub(c.placed) >= queueEvery {
			c.place, c.placed = i+1, now
			c.send("SP_QUEUE", schema.Values{"pos": i + 1})
		}
	}
}

func (s *server) vacancy() *pilot {
	for _, p := range s.world.pilots[:s.cfg.Slots] {
		if p.status == free {
			return p
		}
	}
	return nil
}

// seated gives the session its slot, and tells it who and what there is (section 8,
// step 3).
func (c *session) seated(now time.Time, p *pilot) {
	p.vacate()
	p.session, p.status, p.team, p.ship = c, outfit, 0, 2
	p.x, p.y, p.whoDead = nowhere, nowhere, -1
	p.host = script.Clip(c.Address.Addr().String(), 15)
	c.pilot = p
	for _, line := range c.server.cfg.MOTD {
		c.send("SP_MOTD", schema.Values{"line": script.Clip(line, 79)})
	}
	c.refresh(now)
	for _, at := range c.server.world.planets {
		c.send("SP_PLANET_LOC", schema.Values{"pnum": at.number, "x": at.x, "y": at.y, "name": at.name})
	}
}
