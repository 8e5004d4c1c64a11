package load

import (
	"encoding/binary"
	"time"
)

// cell is one telling of a session: between hosts of its own, at its own time.
type cell struct {
	number  int
	session *session
	start   time.Time
	next    int          // index of the next packet
	late    int          // index of a packet that was written before its turn, -1 for none
	missing map[int]bool // records with bytes that the capture misses
	parts   map[int]int  // how many packets with bytes of a record there were, where it has several
}

func (c *cell) over() bool { return c.next == len(c.session.packets) }

// due returns when the next packet is to be written.
func (c *cell) due() time.Time { return c.start.Add(c.session.packets[c.next].after) }

// length returns how long the session takes.
func (c *cell) length() time.Duration {
	return c.session.packets[len(c.session.packets)-1].after
}

// follower returns the index of the packet that may overtake one: the next with a
// payload on its path, if it follows soon; or 0.
func (c *cell) follower(i int) int {
	const soon = 40 // packets
	list := c.session.packets
	for j := i + 1; j < min(i+soon, len(list)); j++ {
		if p := &list[j]; p.path == list[i].path {
			if p.segment == list[i].segment && p.whole == list[i].whole {
				return j
			}
			return 0
		}
	}
	return 0
}

// payload returns the bytes of a segment's payload.
func payload(data []byte) int64 {
	total := int(binary.BigEndian.Uint16(data[atIP+2:]))
	return int64(total - 20 - int(data[atOffset]>>4)*4)
}

// agenda is a heap of cells by the time of their next packets.
type agenda []*cell

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	x, y := a[i].due(), a[j].due()
	return x.Before(y) || x.Equal(y) && a[i].number < a[j].number
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(*cell)) }
func (a *agenda) Pop() any {
	old := *a
	last := old[len(old)-1]
	*a = old[:len(old)-1]
	return last
}
