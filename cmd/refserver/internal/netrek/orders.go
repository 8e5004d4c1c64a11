package netrek

import (
	"fmt"
	"time"

	"opscope/schema"
)

// play does what a player asks for. Orders to a ship that is not there are ignored,
// as the usual server does.
func (c *session) play(now time.Time, message string, b *schema.Tree) {
	switch message {
	case "CP_OUTFIT":
		c.outfit(now, b)
		return
	case "CP_MESSAGE", "CP_S_MESSAGE":
		c.said(now, b)
		return
	case "CP_PLANET":
		c.compare(b)
		return
	}
	p := c.pilot
	if p.status != alive || p.refit > 0 {
		return
	}
	if p.destruct > 0 && message != "CP_QUIT" {
		p.destruct = 0
		p.set(flagSelfDest, false)
		c.warn(texts[85], 85)
	}
	c.order(message, b)
}

// order gives an order to the ship.
func (c *session) order(message string, b *schema.Tree) {
	p, w := c.pilot, c.server.world
	on := b.Number("state") != 0
	switch message {
	case "CP_SPEED":
		p.leaveOrbit()
		p.set(flagRepair|flagPlanet|flagPLock, false)
		p.want = max(0, min(b.Number("speed"), p.class().speed))
	case "CP_DIRECTION":
		p.leaveOrbit()
		p.set(flagPlanet|flagPLock, false)
		p.wantDir = uint8(b.Number("dir"))
	case "CP_TORP":
		c.refused(w.fireTorp(p, uint8(b.Number("dir"))))
	case "CP_PLASMA":
		c.refused(w.firePlasma(p, uint8(b.Number("dir"))))
	case "CP_PHASER":
		c.refused(w.firePhaser(p, uint8(b.Number("dir"))))
	case "CP_DET_TORPS":
		w.detonate(p)
	case "CP_DET_MYTORP":
		c.recall(b.Number("tnum"))
	case "CP_SHIELD":
		p.set(flagShield, on)
		p.set(flagRepair, false)
	case "CP_CLOAK":
		p.set(flagCloak, on)
	case "CP_REPAIR":
		p.set(flagRepair, on)
		p.set(flagShield, p.has(flagShield) && !on)
	case "CP_ORBIT":
		c.enterOrbit(on)
	case "CP_BOMB":
		c.bomb(on)
	case "CP_BEAM":
		c.beam(b.Number("state"))
	case "CP_PLANLOCK", "CP_PLAYLOCK":
		c.lock(message, b.Number("pnum"))
	case "CP_TRACTOR", "CP_REPRESS":
		c.pull(message == "CP_REPRESS", on, b.Number("pnum"))
	case "CP_WAR":
		p.war = b.Number("newmask") & allTeams &^ p.team
	case "CP_REFIT":
		c.refit(b.Number("ship"))
	case "CP_DOCKPERM":
		p.set(flagDockOK, on)
	case "CP_QUIT":
		c.destruct()
	}
}

// recall has one of the player's torps vanish, or all of them with short packets
// (section 5).
func (c *session) recall(number int) {
	for i := range c.pilot.torps {
		if t := &c.pilot.torps[i]; t.status == shotMoving && (c.short != 0 || number == c.pilot.slot*shotCount+i) {
			t.status, t.fuse = shotOff, blastFrames
		}
	}
}

func (c *session) enterOrbit(on bool) {
	p, w := c.pilot, c.server.world
	at := w.nearest(p)
	switch {
	case !on:
		p.leaveOrbit()
	case p.speed > orbitSpeed:
		c.warn(texts[79], 79)
	case at == nil:
		c.warn(texts[81], 81)
	default:
		w.enterOrbit(p, at)
	}
}

func (c *session) bomb(on bool) {
	p := c.pilot
	switch {
	case !on:
		p.set(flagBomb, false)
	case !p.has(flagOrbit):
		c.warn(texts[39], 39)
	case c.server.world.planets[p.planet].owner == p.team:
		c.warn(texts[40], 40)
	default:
		p.set(flagBeamUp|flagBeamDown, false)
		p.set(flagBomb, true)
	}
}

// beam starts to beam up (1) or down (2), or stops (0).
func (c *session) beam(state int) {
	p := c.pilot
	p.set(flagBeamUp|flagBeamDown|flagBomb, false)
	switch {
	case state == 1 && !p.has(flagOrbit):
		c.warn(texts[44], 44)
	case state == 1 && c.server.world.planets[p.planet].owner != p.team:
		c.warn(texts[45], 45)
	case state == 1:
		p.set(flagBeamUp, true)
	case state == 2 && !p.has(flagOrbit):
		c.warn(texts[47], 47)
	case state == 2:
		p.set(flagBeamDown, true)
	}
}

func (c *session) lock(message string, number int) {
	p, w := c.pilot, c.server.world
	if message == "CP_PLANLOCK" && number >= 0 && number < len(w.planets) {
		p.leaveOrbit()
		p.set(flagPLock, false)
		p.set(flagPlanet, true)
		p.planet, p.target = number, -1
		c.warning(fmt.Sprintf("Locking onto %s", w.planets[number].name), schema.Values{"which": warnPlanet, "arg": number, "arg2": 0})
	}
	if message == "CP_PLAYLOCK" && number >= 0 && number < MaxSlots && number != p.slot && w.pilots[number].status == alive {
		p.leaveOrbit()
		p.set(flagPlanet, false)
		p.set(flagPLock, true)
		p.planet, p.target = -1, number
		c.warning(fmt.Sprintf("Locking onto %s", w.pilots[number].name), schema.Values{"which": warnPlayer, "arg": number, "arg2": 0})
	}
}

func (c *session) pull(away, on bool, number int) {
	p, w := c.pilot, c.server.world
	p.tractor = -1
	p.set(flagTract|flagPress, false)
	if !on || number < 0 || number >= MaxSlots || number == p.slot || w.pilots[number].status != alive {
		return
	}
	if t := w.pilots[number]; apart(p.x, p.y, t.x, t.y, tractorReach) {
		c.warn(texts[2], 2)
		return
	}
	p.tractor = number
	p.set(flagTract, true)
	p.set(flagPress, away)
}

// refit changes the ship, at the home planet of the team.
func (c *session) refit(ship int) {
	p := c.pilot
	switch {
	case ship < 0 || ship >= len(classes):
		c.warn(texts[11], 11)
	case !p.has(flagOrbit) || p.planet != 10*teamIndex(p.team):
		c.warn(texts[50], 50)
	case p.armies > 0:
		c.warn(texts[56], 56)
	default:
		p.refit, p.refitTo = refitFrames, ship
		p.set(flagRefit, true)
		c.warn(texts[62], 62)
	}
}

// destruct starts the self-destruct.
func (c *session) destruct() {
	p := c.pilot
	if p.destruct > 0 {
		return
	}
	p.destruct = destructAfter
	if p.class().desig == "SB" {
		p.destruct *= 6
	}
	p.set(flagSelfDest, true)
	c.warn(texts[90], 90)
	c.say(fmt.Sprintf("Stand By ... Self Destruct in %d seconds", p.destruct/10))
}

// compare answers a CP_PLANET that says what the server does not know.
func (c *session) compare(b *schema.Tree) {
	n := b.Number("pnum")
	if n < 0 || n >= len(c.server.world.planets) || !c.has("CHECK_PLANETS") {
		return
	}
	at := c.server.world.planets[n]
	sight := c.known(at)
	if (sight != planetSight{b.Number("owner"), b.Number("info"), b.Number("flags"), b.Number("armies"), true}) {
		c.send("SP_PLANET", sight.values(at))
	}
}
