package wulfram

import "time"

// statusEvery is how many publications pass between those that tell everything, for
// whoever has missed it: datagrams get lost.
const statusEvery = 10

// snapshot returns every entity that is there, as for a client that knows none.
func (s *server) snapshot() (all list) {
	for _, e := range s.world.entities {
		if e.gone == 0 {
			all = append(all, s.world.rules.record(e, whole))
		}
	}
	return all
}

// view returns a VIEW_UPDATE with these entities.
func (c *session) view(now time.Time, entities list) fields {
	t := c.udp.clock(now)
	return fields{{"timestamp", t}, {"sequence", t}, {"local_state", c.server.world.rules.localState(c.vehicle)},
		{"count", len(entities)}, {"entities", entities}}
}

// publish tells the client of its own vehicle and of the others that have moved.
func (c *session) publish(now time.Time) {
	if !c.wants || c.Ended() {
		return
	}
	if c.vehicle != nil && c.vehicle.gone == 0 {
		c.udp.send(now, "VIEW_UPDATE", c.view(now, list{c.server.record(c.vehicle)}))
	}
	c.split(c.others(), func(part list) bool { return c.array(now, part) })
}

// others returns what is to be told of all vehicles but the client's own.
func (c *session) others() (moved list) {
	for _, e := range c.server.world.entities {
		told := !e.static() || e.snapped || c.server.round%statusEvery == 0
		if e != c.vehicle && e.gone == 0 && told {
			moved = append(moved, c.server.record(e))
		}
	}
	return moved
}

// record returns what a publication tells of an entity.
func (s *server) record(e *entity) fields {
	mask := 0
	if !e.static() {
		mask = moving
	}
	if s.round%statusEvery == 0 {
		mask |= whole | hasEnergy
		if e.driver != nil {
			mask |= hasOwner
		}
		if e.driver != nil || e.kind == kindTurret {
			mask |= hasWeapon
		}
	}
	return s.world.rules.record(e, mask)
}

// array sends an UPDATE_ARRAY and reports whether it fits a datagram. Every other
// one carries the local state.
func (c *session) array(now time.Time, entities list) bool {
	var local any
	if c.server.round%2 == 0 && c.vehicle != nil {
		local = c.server.world.rules.localState(c.vehicle)
	}
	f := fields{{"sequence", c.udp.clock(now)}, {"local_state", local}, {"count", len(entities)}, {"entities", entities}}
	r, body, err := c.server.compose("UPDATE_ARRAY", f)
	if err != nil || 1+len(body) > maxDatagram {
		return false
	}
	c.udp.post(now, r, body)
	return true
}

// split sends entities in as many parts as it takes, halving what does not fit.
// All parts are of one publication, and carry its time.
func (c *session) split(entities list, send func(part list) bool) {
	if len(entities) == 0 || len(entities) <= maxEntities && send(entities) || len(entities) == 1 {
		return
	}
	half := len(entities) / 2
	c.split(entities[:half], send)
	c.split(entities[half:], send)
}
