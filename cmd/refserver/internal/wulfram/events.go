package wulfram

import (
	"math"
	"time"
)

// What the world does by itself, so that there is something to tell.
const (
	reportEvery  = 150 // publications between reports on ships and uplinks
	fireEvery    = 0.5 // seconds
	fireRange    = 300.0
	turretRange  = 200.0
	dockRange    = 30.0
	absence      = 3.0 // seconds until what was destroyed comes back
	playerDamage = 0.25
	turretDamage = 0.05
	explosion    = 1 // the effect of a DELETE_OBJECT
	shot         = 1 // the type of a TRANSIENT_ARRAY's event
)

// live moves the world by one publication.
func (s *server) live(now time.Time) {
	s.world.step(publishEvery.Seconds())
	for _, c := range s.sessions {
		if c.vehicle != nil {
			s.fight(now, c)
		}
	}
	if s.round%reportEvery == 0 {
		s.all(func(c *session) { s.report(now, c) })
	}
}

// fight lets a player's vehicle fire, be fired at and be repaired.
func (s *server) fight(now time.Time, c *session) {
	pad := s.world.nearest(kindRepairPad, c.vehicle, dockRange)
	if pad != nil {
		c.vehicle.health = math.Min(1, c.vehicle.health+0.05)
	}
	c.dock(now, pad)
	if c.inputs[channelPrimary] > 0 && s.world.seconds-c.fired >= fireEvery {
		c.fired = s.world.seconds
		s.fire(now, c)
	}
	turret := s.world.nearest(kindTurret, c.vehicle, turretRange)
	if turret != nil && turret.team != c.team && s.round%statusEvery == 0 {
		s.hit(now, nil, c.vehicle, turretDamage)
	}
}

// fire shows a shot, and hits what is nearest.
func (s *server) fire(now time.Time, c *session) {
	e := c.vehicle
	event := fields{{"type", shot}, {"has_position", 1}, {"position_raw", s.rawPosition(e.position)}, {"has_entity", 1}, {"entity", e.id}}
	s.all(func(o *session) {
		if o.wants {
			o.udp.send(now, "TRANSIENT_ARRAY", fields{{"count", 1}, {"events", list{event}}})
		}
	})
	if target := s.world.nearest(-1, e, fireRange); target != nil {
		s.hit(now, c, target, playerDamage)
	}
}

// rawPosition is a place in the width of slot 16's second number.
func (s *server) rawPosition(v vec) list {
	t := s.world.rules.widths[slotPosition]
	raw := func(x float64) any { return t.quantise(x, int(t.b)).raw }
	return list{raw(v.x), raw(v.y), raw(v.z)}
}

// hit damages a target; by may be nil.
func (s *server) hit(now time.Time, by *session, target *entity, damage float64) {
	if target.health -= damage; target.health > 0 {
		return
	}
	if by != nil {
		by.kills++
		s.all(func(o *session) { o.udp.send(now, "UPDATE_STATS", by.statsFields()) })
	}
	if target.driver != nil {
		s.kill(now, target.driver)
		return
	}
	target.gone = absence
	s.delete(now, target, explosion)
}

// kill takes a player's vehicle away, and tells why.
func (s *server) kill(now time.Time, c *session) {
	c.deaths++
	s.all(func(o *session) {
		o.udp.send(now, "DEATH_NOTICE", fields{{"id", c.player}})
		o.udp.send(now, "UPDATE_STATS", c.statsFields())
	})
	s.lose(now, c)
}

// lose takes a player's vehicle away.
func (s *server) lose(now time.Time, c *session) {
	if c.vehicle == nil {
		return
	}
	s.delete(now, c.vehicle, explosion)
	s.world.remove(c.vehicle)
	c.vehicle, c.carrying, c.docked, c.inputs = nil, false, false, inputs{}
}

// delete tells everybody that an entity is not there any more.
func (s *server) delete(now time.Time, e *entity, effect int) {
	object := fields{{"id", e.id}, {"effect", effect}}
	s.all(func(o *session) {
		o.udp.send(now, "DELETE_OBJECT", fields{{"time", o.udp.clock(now)}, {"count", 1}, {"objects", list{object}}})
	})
}

// report tells a client of the clock, the supply ships and the uplinks.
func (s *server) report(now time.Time, c *session) {
	c.tcp.tell(now, "GAME_CLOCK", s.clockFields(now))
	for _, e := range s.world.entities {
		switch e.kind {
		case kindSupplyShip:
			c.udp.send(now, "SHIP_STATUS", fields{{"ship_id", e.id}, {"team", e.team}, {"name", "Supply Ship"}})
			c.udp.send(now, "SUPPLY_SHIP_INFO", shipFields(e))
		case kindUplink:
			c.udp.send(now, "UPLINK_INFO", fields{{"team_index", e.team}, {"holder", e.id}, {"state", s.round / reportEvery % 4}})
		}
	}
}

func shipFields(e *entity) fields {
	var cargo list
	for i := range 4 {
		cargo = append(cargo, fields{{"cargo_type", 25 + i}, {"time", 1000 * i}})
	}
	return fields{{"ship_id", e.id}, {"shield_percent", int(100 * e.health)}, {"template", 0}, {"cargo", cargo}, {"mode", 1}}
}
