package netrek

import "opscope/schema"

// you tells the player of its own ship. When its slot or its death has changed, that
// must not be lost: it goes over TCP (section 7).
func (c *session) you() {
	p := c.pilot
	fate := [3]int{p.slot, p.whyDead, p.whoDead}
	critical := fate != c.fate
	c.fate = fate
	if c.short != 0 && p.fuel <= shortFuel {
		c.shortYou(critical)
		return
	}
	c.present("SP_YOU", 0, schema.Values{
		"pnum": p.slot, "hostile": p.war, "swar": 0, "armies": p.armies & 0x7f, "tractor": p.tractorByte(), "flags": uint32(p.flags),
		"damage": p.damage, "shield": p.shield, "fuel": p.fuel, "etemp": p.etemp, "wtemp": p.wtemp,
		"whydead": c.whyDead(p), "whodead": p.whoDead,
	}, critical)
}

// whyDead is the cause of death as the client knows it: without WHY_DEAD_2 the newer
// ones are folded into older ones (section 6.4).
func (c *session) whyDead(p *pilot) int {
	if p.whyDead == diedDetonated && !c.has("WHY_DEAD_2") {
		return diedTorp
	}
	return p.whyDead
}

func (p *pilot) tractorByte() int {
	if p.tractor < 0 {
		return 0
	}
	return 0x40 + p.tractor
}

// person is what seldom changes about a player.
type person struct {
	name, login, host                   string
	status                              status
	ship, team, war, kills, short, ours int
	told                                bool
}

// player tells of one slot.
func (c *session) player(p *pilot) {
	now := person{p.name, p.login, p.host, p.status, p.ship, p.team, p.war, p.kills, c.short, c.pilot.team, true}
	if now != c.brief.persons[p.slot] {
		c.brief.persons[p.slot] = now
		c.introduce(p)
	}
	if c.brisk() {
		return // the rest is in SP_S_PLAYER
	}
	if p != c.pilot {
		c.show("SP_FLAGS", p.slot, schema.Values{"pnum": p.slot, "tractor": 0, "flags": uint32(p.flags & c.mayKnow(p))})
	}
	x, y := c.position(p)
	c.show("SP_PLAYER", p.slot, schema.Values{"pnum": p.slot, "dir": int(p.dir), "speed": p.shownSpeed(), "x": x, "y": y})
}

// introduce tells who a player is.
func (c *session) introduce(p *pilot) {
	c.show("SP_PL_LOGIN", p.slot, schema.Values{"pnum": p.slot, "rank": 0, "name": p.name, "monitor": p.host, "login": p.login})
	c.show("SP_HOSTILE", p.slot, c.hostility(p))
	c.show("SP_PLAYER_INFO", p.slot, schema.Values{"pnum": p.slot, "shiptype": max(0, p.ship), "team": p.team})
	if c.short != shortV2 || p.kills > shortKills {
		c.show("SP_KILLS", p.slot, schema.Values{"pnum": p.slot, "kills": p.kills})
	}
	c.show("SP_PSTATUS", p.slot, schema.Values{"pnum": p.slot, "status": int(p.status)})
}

// shownSpeed is the speed that others see: in an orbit a ship moves without one.
func (p *pilot) shownSpeed() int {
	if p.has(flagOrbit) {
		return orbitSpeed
	}
	return p.speed
}

// hostility is of others only what concerns the player's own team (section 3).
func (c *session) hostility(p *pilot) schema.Values {
	war := p.war
	if p != c.pilot {
		war &= c.pilot.team
	}
	return schema.Values{"pnum": p.slot, "war": war, "hostile": war}
}

// mayKnow is the flags of another player that this one may know.
func (c *session) mayKnow(p *pilot) int {
	if c.hidden(p) || apart(p.x, p.y, c.pilot.x, c.pilot.y, window*perPixel/2) {
		return flagsOfOther
	}
	return flagsInView
}

// hidden reports whether the player does not see a ship: a cloaked one of another
// team.
func (c *session) hidden(p *pilot) bool {
	return p.status == alive && p.has(flagCloak) && p != c.pilot && p.team != c.pilot.team
}

// position is where the player sees a ship.
func (c *session) position(p *pilot) (x, y int) {
	if c.hidden(p) {
		return hidden, hidden
	}
	return p.x, p.y
}

// slotStates is two bits a slot: of the first sixteen, or of those behind them
// (section 3, SP_FLAGS_ALL).
func (w *world) slotStates(group int) uint32 {
	var word uint32
	for i, p := range w.pilots[16*group : 16*group+16] {
		state := uint32(0)
		switch {
		case p.status != alive:
		case p.has(flagCloak):
			state = 1
		case p.has(flagShield):
			state = 2
		default:
			state = 3
		}
		word |= state << (2 * i)
	}
	return word
}
