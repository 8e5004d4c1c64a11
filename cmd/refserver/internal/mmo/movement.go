package mmo

import (
	"math"
	"time"

	"opscope/cmd/refserver/internal/mmo/testserver"
	"opscope/schema"
)

// move takes an input. One that is not newer than the last was overtaken, or came
// twice.
func (c *session) move(now time.Time, id int, b body) {
	a := c.avatar
	sequence, x, y, yaw := uint32(b.uint("input_sequence")), b.float("move_x"), b.float("move_y"), b.float("yaw")
	switch {
	case !normalised(float64(x), float64(y)) || math.IsNaN(float64(yaw)) || math.IsInf(float64(yaw), 0):
		c.refuse(now, id, codeInvalidData, "no direction")
	case sequence <= a.told || !a.alive():
	default:
		a.steer(c.server.settings, sequence, x, y, yaw)
		a.until = now.Add(inputFor)
	}
}

// normalised reports whether a direction is no longer than 1, but for rounding.
func normalised(x, y float64) bool { return float64(x*x)+float64(y*y) <= 1.001 }

// publish tells the client of the characters in its view that have moved, its own
// among them, in as many batches as that takes. A character that the server has put
// elsewhere is told its place by itself.
func (c *session) publish(now time.Time) {
	a := c.avatar
	if a.pushed {
		v := place(a)
		v["server_time_ms"] = milliseconds(now)
		if c.server.settings.MoveNotify == testserver.UDP {
			c.sendDatagram("MoveNotify", v)
		} else {
			c.send("MoveNotify", v)
		}
	}
	if !c.udp.IsValid() {
		return
	}
	var entries []schema.Values
	for _, o := range c.server.world.characters {
		if o.moved && (o == a || c.seen[o.id]) {
			entries = append(entries, place(o))
		}
	}
	for len(entries) > 0 {
		n := min(len(entries), batchMost)
		c.sendDatagram("MoveBatchNotify", schema.Values{"reserved": 0, "server_time_ms": milliseconds(now), "entries": entries[:n]})
		entries = entries[n:]
	}
}

// place is what S_MoveNotify and the entries of a batch have in common (section 5).
func place(c *character) schema.Values {
	return schema.Values{
		"character_id": c.id, "last_processed_input_sequence": c.told,
		"x": metres(c.at.x), "y": metres(c.at.y), "z": float32(0),
		"velocity_x": speed(c.way.x), "velocity_y": speed(c.way.y), "velocity_z": float32(0), "yaw": c.yaw,
	}
}
