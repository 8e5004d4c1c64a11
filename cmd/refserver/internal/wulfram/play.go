package wulfram

import (
	"time"

	"opscope/cmd/refserver/internal/machine"
)

// The codes of REINCARNATE (section 10.13).
const (
	spawnDone        = 0
	spawnNotPossible = 4
	teamChanged      = 17
	teamInvalid      = 18
)

// The actions of DROP_REQUEST.
const dropDeploy = 1

// onGround is the entity of a DOCKING that has none.
const onGround = 0xFFFFFFFF

// play does what a client in the game asks for.
func (c *session) play(now time.Time, r machine.Record, v values) {
	switch r.Message {
	case "BPS":
		c.tcp.tell(now, "BPS", fields{{"rate", v.Number("rate")}, {"approved", 1}})
	case "WANT_UPDATES":
		c.want(now)
	case "REINCARNATE":
		c.reincarnate(now, v)
	case "ACTION_DUMP":
		c.inputs.dumped(v)
	case "ACTION_UPDATE":
		c.inputs.changed(v)
	case "COMM_MESSAGE_REQUEST":
		c.said(now, v)
	case "DROP_REQUEST":
		c.dropped(now, v.Number("value"))
	case "TANK_RESEND_REQUEST":
		if c.vehicle != nil {
			c.udp.send(now, "TANK", c.tankFields(now))
		}
	case "ACK1", "ACK2", "INPUT_FEEDBACK", "VIEWPOINT_INFO":
	default:
		if !r.Opaque {
			c.complain(now, "ignored", r.Message)
		}
	}
}

// want is the server's half of step 9: every entity, and what else there is to
// know.
func (c *session) want(now time.Time) {
	s := c.server
	c.wants = true
	c.split(s.snapshot(), func(part list) bool {
		f := c.view(now, part)
		_, body, err := s.compose("VIEW_UPDATE", f)
		if err != nil || 1+len(body) > maxTCPPayload {
			return false
		}
		c.tcp.tell(now, "VIEW_UPDATE", f)
		return true
	})
	c.tell(now, s.cfg.Welcome)
	s.report(now, c)
}

// reincarnate is the server's half of steps 12 and 13.
func (c *session) reincarnate(now time.Time, v values) {
	if v.Number("mode") == 1 {
		c.join(now, v.Number("team"))
		return
	}
	kind := v.Number("unit_type")
	switch {
	case c.vehicle != nil || kind != kindTank && kind != kindScout:
		c.result(now, spawnNotPossible, "Invalid Entry Point.")
	case c.team == 0:
		c.result(now, teamInvalid, "Choose a team first.")
	default:
		c.spawn(now, kind, vec{float64(v.Number("x")), float64(v.Number("y")), ground})
	}
}

func (c *session) result(now time.Time, code int, message string) {
	c.udp.send(now, "REINCARNATE", fields{{"code", code}, {"message", message}})
}

// join changes the team. Without the UPDATE_STATS the client's map of entries
// stays disabled (section 6, step 12).
func (c *session) join(now time.Time, team int) {
	if team != 1 && team != 2 {
		c.result(now, teamInvalid, "There is no such team.")
		return
	}
	c.team = team
	c.server.all(func(o *session) { o.udp.send(now, "UPDATE_STATS", c.statsFields()) })
	c.result(now, teamChanged, "")
}

func (c *session) spawn(now time.Time, kind int, at vec) {
	at.x, at.y = bounded(at.x), bounded(at.y)
	c.vehicle = c.server.world.add(kind, c.team, at)
	c.vehicle.driver, c.vehicle.snapped = c, true
	c.udp.send(now, "TANK", c.tankFields(now))
	c.result(now, spawnDone, "")
	c.server.all(func(o *session) {
		o.udp.send(now, "BIRTH_NOTICE", fields{{"player_id", c.player}, {"entity_id", c.vehicle.id}})
	})
	c.carry(now, true)
}

func (c *session) tankFields(now time.Time) fields {
	e := c.vehicle
	return fields{{"sequence", c.udp.clock(now)}, {"local_state", c.server.world.rules.localState(e)}, {"unit_type", e.kind},
		{"net_id", e.id}, {"team", e.team}, {"position", e.position.fixed()}, {"rotation", e.rotation.fixed()}}
}

func (c *session) statsFields() fields {
	return fields{{"player_id", c.player}, {"u32_2", 0}, {"team", c.team}, {"stats", list{c.kills, c.deaths, 0, 0}},
		{"fixed", list{fixed(float64(c.kills)), 0.0}}, {"u32_last", 0}}
}

// carry tells everybody what the vehicle carries.
func (c *session) carry(now time.Time, carrying bool) {
	c.carrying = carrying
	f := fields{{"id", c.vehicle.id}, {"has_cargo", 0}, {"cargo_type", 0}, {"variant", 0}}
	if carrying {
		f = fields{{"id", c.vehicle.id}, {"has_cargo", 1}, {"cargo_type", c.vehicle.cargo}, {"variant", 0}}
	}
	c.server.all(func(o *session) { o.udp.send(now, "CARRYING_INFO", f) })
}

// dropped leaves the cargo behind, as a box or as what is in it.
func (c *session) dropped(now time.Time, action int) {
	if c.vehicle == nil || !c.carrying {
		c.complain(now, "ignored", "a drop of nothing")
		return
	}
	kind := kindCargoBox
	if action == dropDeploy {
		kind = kindTurret
	}
	s := c.server
	if gone := s.world.drop(kind, c.team, c.vehicle.position); gone != nil {
		s.delete(now, gone, 0)
	}
	c.carry(now, false)
}

// dock tells the driver when the vehicle has reached a repair pad, or left it.
func (c *session) dock(now time.Time, pad *entity) {
	if docked := pad != nil; docked != c.docked {
		c.docked = docked
		f := fields{{"sequence", c.udp.clock(now)}, {"entity", uint32(onGround)}, {"docked", 0}}
		if docked {
			f = fields{{"sequence", c.udp.clock(now)}, {"entity", pad.id}, {"docked", 1}}
		}
		c.udp.send(now, "DOCKING", f)
	}
}
