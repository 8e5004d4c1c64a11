package netrek

import (
	"fmt"

	"opscope/cmd/refserver/internal/script"
	"opscope/schema"
)

// Codes of SP_S_WARNING (section 4.2).
const (
	warnText     = 0
	warnHit      = 1
	warnBombing  = 3
	warnBeamUp   = 5
	warnBeamDown = 11
	warnPair     = 12
	warnPlanet   = 14
	warnPlayer   = 15
	warnTaken    = 26
	warnString   = 33
)

// texts are the warnings that a number stands for (section 4.8), in words near those
// of the usual server.
var texts = map[int]string{
	2: "Weapon's Officer:  Vessel is out of range of our tractor beam.", 9: "I cannot allow that.  Pick another team",
	11: "That is an illegal ship type.  Try again.", 18: "Weapon's Officer:  Captain, this ship is not armed with plasma torpedoes!",
	19: "Plasma tube is too hot.", 20: "Our fire control system limits us to 1 live torp at a time captain!",
	22: "Not enough fuel for plasma.", 23: "Cannot fire plasma while repairing.", 24: "Cannot fire plasma while cloaked.",
	25: "Torp tubes are too hot.", 26: "Our computers limit us to having 8 live torpedos at a time captain!", 27: "Not enough fuel for torpedo.",
	28: "Cannot fire torps while repairing.", 29: "We are unable to fire while in cloak, captain!",
	32: "Phasers have not recharged.", 33: "Not enough fuel for phaser.", 34: "Can't fire phasers while repairing.", 35: "Weapons overheated.",
	36: "We are unable to fire phasers while in cloak, captain!", 37: "Phaser missed.", 38: "You destroyed the plasma torpedo!",
	39: "Must be orbiting to bomb", 40: "Can't bomb your own armies.  Have you been reading Catch-22 again?",
	44: "Must be orbiting or docked to beam up.", 45: "Those aren't our men.", 47: "Must be orbiting or docked to beam down.",
	50: "You must be orbiting your home planet to refit.", 56: "You must beam your armies down before moving to your new ship",
	62: "You are being transported to your new vessel .... ", 79: "Helmsman: Captain, the maximum safe speed for docking or orbiting is warp 2!",
	81: "Helmsman:  Sensors read no valid targets in range to dock or orbit sir!", 85: "Self Destruct has been canceled",
	90: "Self destruct initiated", 93: "Unknown UDP mode.", 94: "Server will send with TCP only", 95: "Server will send with simple UDP",
	96: "Request for fat UDP DENIED (set to simple)", 97: "Request for double UDP DENIED (set to simple)",
	98: "Request for update DENIED (chill out!)",
}

// warn sends a warning: its number as a short packet, or the text.
func (c *session) warn(text string, number int) {
	c.warning(text, schema.Values{"which": warnText, "arg": number, "arg2": 0})
}

// refused sends why an order is not carried out.
func (c *session) refused(r refusal) {
	if r != carriedOut {
		c.warn(texts[int(r)], int(r))
	}
}

// say sends a text that no number stands for.
func (c *session) say(text string) {
	text = script.Clip(text, shortMost)
	c.warning(text, schema.Values{"which": warnString, "index": 0, "length": roundUp(4 + len([]rune(text)) + 1), "mesg": text})
}

func (c *session) warning(text string, short schema.Values) {
	if c.short != 0 {
		c.send("SP_S_WARNING", short)
		return
	}
	c.send("SP_WARNING", schema.Values{"mesg": script.Clip(text, messageMost)})
}

// report tells those of an event who have to know.
func (s *server) report(n newsItem) {
	c := n.pilot.session
	if c == nil || c.Ended() {
		return
	}
	switch n.kind {
	case newsHit:
		c.warning(fmt.Sprintf("Phaser burst hit %s for %d points", n.other.name, n.value), schema.Values{
			"which": warnHit, "arg": n.other.slot | n.value>>2&0xc0, "arg2": n.value & 0xff})
	case newsMissed:
		c.warn(texts[37], 37)
	case newsKilled:
		s.obituary(n)
	case newsBombed:
		c.warning(fmt.Sprintf("Bombing %s... %d armies left", n.planet.name, n.value), schema.Values{
			"which": warnBombing, "arg": n.planet.number, "arg2": n.value})
	case newsBeamUp:
		c.warning(fmt.Sprintf("Beaming up... %d of %d", n.value, n.pilot.class().armies), schema.Values{
			"which": warnBeamUp, "arg": n.value, "arg2": n.pilot.class().armies & 0xff})
	case newsBeamDown:
		if c.short != 0 {
			c.warning("", schema.Values{"which": warnPair, "arg": n.pilot.armies, "arg2": n.pilot.class().armies & 0xff})
		}
		c.warning(fmt.Sprintf("Beaming down to %s... %d armies there", n.planet.name, n.value), schema.Values{
			"which": warnBeamDown, "arg": n.planet.number, "arg2": min(n.value, 255)})
	case newsTaken:
		s.announce(kindConquer, fromServer, fmt.Sprintf("GOD->ALL  %s taken over by %s (%s)", n.planet.name, n.pilot.name, n.pilot.call()))
		c.warning(fmt.Sprintf("%s taken over", n.planet.name), schema.Values{"which": warnTaken, "arg": n.planet.number, "arg2": n.pilot.slot})
	case newsDestruct:
		c.say(fmt.Sprintf("Stand By ... Self Destruct in %d seconds", n.value))
	case newsRefitted:
		if c.has("SHIP_CAP") {
			c.capability(n.pilot.ship)
		}
	case newsWasted:
		c.wasted()
	}
}

// obituary is the message about a death.
func (s *server) obituary(n newsItem) {
	p, why := n.pilot, causes[n.value]
	text := fmt.Sprintf("GOD->ALL  %s (%s) was killed [%s]", p.name, p.call(), why)
	kind := kindKill
	switch {
	case n.other != nil && n.other != p:
		o := n.other
		text = fmt.Sprintf("GOD->ALL  %s (%s) was kill %d.%02d for %s (%s) [%s]", p.name, p.call(), o.kills/100, o.kills%100, o.name, o.call(), why)
	case n.value == diedPlanet:
		kind = kindByPlanet
		text = fmt.Sprintf("GOD->ALL  %s (%s) killed by %s", p.name, p.call(), s.world.planets[max(0, p.planet)].name)
	}
	s.announce(kind, fromServer, text)
}

// wasted is what a player hears who has to choose again.
func (c *session) wasted() {
	for _, line := range c.server.cfg.MOTD {
		c.send("SP_MOTD", schema.Values{"line": script.Clip(line, 79)})
	}
	if c.has("SP_LTD") {
		c.send("SP_LTD", c.history())
	}
	c.mask(c.server.advanced)
}
