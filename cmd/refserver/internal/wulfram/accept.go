package wulfram

import (
	"fmt"
	"time"
)

// The codes of LOGIN_STATUS (section 10.11).
const (
	askPassword = 1
	askHandle   = 5
	accepted    = 8
)

// hello is step 1 of section 6: the UDP port and the key.
func (c *session) hello(now time.Time) {
	a := c.server.cfg.Addr
	c.tcp.tell(now, "HELLO", fields{{"subcommand", 1}, {"udp_port", a.Port()}, {"host_count", 1}, {"hosts", list{a.Addr().String()}}})
	c.tcp.tell(now, "HELLO", fields{{"subcommand", 2}, {"key", c.key}})
}

// helloed takes the client's side of steps 2, 3 and 5. A repeated key is answered
// again, for the first answer may be lost.
func (c *session) helloed(now time.Time, v values) {
	switch v.Number("subcommand") {
	case 0:
		if got := v.Number("version"); got != protocolVersion {
			c.End("version", fmt.Sprintf("it speaks version %d, not %d", got, protocolVersion))
			return
		}
		c.versioned = true
	case 1:
		if !c.udp.remote.IsValid() || v.Text("key") != c.key {
			c.complain(now, "refused", "a key that is not its own")
			return
		}
		c.udp.send(now, "IDENTIFIED_UDP", nil)
	case 2:
		c.confirmed = true
	}
	c.enter(now)
}

// login is step 6. A client that brings no password is asked for one.
func (c *session) login(now time.Time, v values) {
	name := v.Text("user")
	switch {
	case !c.versioned:
		c.End("version", "a login without a version")
	case c.named:
		c.complain(now, "refused", "a second login")
	case name == "" || len(name) > maxName:
		c.status(now, askHandle)
	case v.Text("password") == "":
		c.status(now, askPassword)
	default:
		c.name, c.named = name, true
		c.enter(now)
	}
}

func (c *session) status(now time.Time, code int) {
	c.tcp.tell(now, "LOGIN_STATUS", fields{{"donor", 1}, {"code", code}})
}

// enter is steps 7 and 8: everything that a client has to know, once it is named,
// tied to its address and has confirmed that.
func (c *session) enter(now time.Time) {
	if c.entered || !c.named || !c.confirmed || !c.udp.remote.IsValid() {
		return
	}
	c.entered = true
	s := c.server
	c.udp.send(now, "HELLO", fields{{"subcommand", 3}})
	if s.cfg.Early {
		c.udp.send(now, "VIEW_UPDATE", c.view(now, s.snapshot()))
	}
	c.tcp.tell(now, "TEAM_INFO", teamFields())
	c.status(now, accepted)
	c.tcp.tell(now, "PLAYER", fields{{"player_id", c.player}, {"flag", 0}})
	c.tcp.tell(now, "GAME_CLOCK", s.clockFields(now))
	c.tcp.tell(now, "MOTD", fields{{"text", s.cfg.MOTD}})
	c.tcp.tell(now, "BEHAVIOR", s.world.rules.weapons.fields())
	c.tcp.tell(now, "TRANSLATION", s.world.rules.widths.fields())
	s.all(func(o *session) { c.tcp.tell(now, "ADD_TO_ROSTER", o.rosterFields()) })
	c.tcp.tell(now, "WORLD_STATS", worldFields())
	s.all(func(o *session) {
		if o != c {
			o.udp.send(now, "ADD_TO_ROSTER", c.rosterFields())
		}
	})
}

// greet is the server's half of step 10. The link has answered the client's
// handshake already; ours follows, again until it is answered.
func (c *session) greet(now time.Time) {
	if c.udp.inForce {
		return
	}
	c.udp.greet(now)
	if c.server.cfg.Handshake == GameData {
		for _, stream := range []int{1, 2} { // stream numbers are what Wulf-Forge means
			c.udp.send(now, "D_SET_START", fields{{"target_opcode", stream}, {"start", 1}})
		}
	}
}

func teamFields() fields {
	team := func(id int, strings ...any) fields { return fields{{"team", id}, {"strings", list(strings)}} }
	return fields{{"teams", list{
		team(1, "Crimson_Federation", "Crimson Federation", "Crimson Base", "The red team.", "Crimson Federation wins!"),
		team(2, "Azure_Alliance", "Azure Alliance", "Azure Base", "The blue team.", "Azure Alliance wins!"),
	}}}
}

func worldFields() fields {
	return fields{{"map", "crossroads"}, {"byte_a", 16}, {"byte_b", 16}, {"fixed", 1.0}}
}

func (s *server) clockFields(now time.Time) fields {
	ms := now.Sub(s.began).Milliseconds()
	return fields{{"time", uint32(ms)}, {"flag", 1}, {"phase", 1}, {"duration_ms", 1800000}}
}

func (c *session) rosterFields() fields {
	return fields{{"player_id", c.player}, {"clan_id", 0}, {"team", c.team}, {"flags_16", 0}, {"name", c.name}, {"tag", ""},
		{"kills", c.kills}, {"deaths", c.deaths}, {"score", fixed(float64(c.kills))}, {"flags_32", 0}}
}
