package netrek

import (
	"fmt"
	"strings"
	"time"

	"opscope/cmd/refserver/internal/script"
	"opscope/schema"
)

// savedOptions and savedKeys are what this server remembers of everybody, as the
// usual one does of a new name.
const savedOptions = 0xaf

func savedKeys() string {
	var b strings.Builder
	for c := byte(0x20); c < 0x80; c++ {
		b.WriteByte(c)
	}
	return b.String()
}

// login answers a question about a name, or lets it in. Every name exists, and every
// password is right.
func (c *session) login(now time.Time, b *schema.Tree) {
	name := b.Text("name")
	if name == "" || c.named {
		c.send("SP_LOGIN", schema.Values{"accept": 0})
		return
	}
	c.send("SP_LOGIN", schema.Values{"accept": 1, "flags": savedOptions, "keymap": savedKeys()})
	if b.Number("query") == 1 {
		return
	}
	c.named = true
	p := c.pilot
	p.name, p.login = script.Clip(name, 15), script.Clip(b.Text("login"), 15)
	if c.has("SP_LTD") {
		c.send("SP_LTD", c.history())
	}
	c.update(now)
	c.mask(now)
}

// mask tells which teams the player may join.
func (c *session) mask(now time.Time) {
	c.masked = now
	c.send("SP_MASK", schema.Values{"mask": allTeams})
}

// outfit puts the player into a ship (section 8, step 5), or lets it leave.
func (c *session) outfit(now time.Time, b *schema.Tree) {
	p := c.pilot
	team, ship := b.Number("team"), b.Number("ship")
	switch {
	case team == -1:
		c.End("left", "it has chosen to leave")
		return
	case p.status != outfit:
		return
	case team < 0 || team >= len(teamWords):
		c.warn("I cannot allow that.  Pick another team", 9)
		c.send("SP_PICKOK", schema.Values{"state": 0})
		return
	case ship < 0 || ship >= len(classes):
		c.warn("That is an illegal ship type.  Try again.", 11)
		c.send("SP_PICKOK", schema.Values{"state": 0})
		return
	}
	c.send("SP_PICKOK", schema.Values{"state": 1})
	first := p.totals.ticks == 0
	c.server.world.launch(p, 1<<team, ship)
	if c.has("SP_RANK") && first {
		c.ranks()
	}
	if c.has("SHIP_CAP") {
		c.capability(ship)
	}
	c.update(now)
	c.server.joined(p)
}

// ranks are those of captures: hours, ratings and offence in hundredths.
var ranks = [...]struct {
	name, short           string
	hours, rating, attack int
}{
	{"Ensign", "Esgn", 0, 0, 0}, {"Lieutenant", "Lt  ", 200, 100, 0}, {"Lt. Cmdr.", "LtCm", 400, 200, 0},
	{"Commander", "Cder", 800, 300, 0}, {"Captain", "Capt", 1500, 400, 0}, {"Flt. Capt.", "FltC", 2000, 500, 0},
	{"Commodore", "Cdor", 2500, 600, 0}, {"Rear Adm.", "RAdm", 3000, 700, 0}, {"Admiral", "Admr", 4000, 800, 0},
}

func (c *session) ranks() {
	for i, r := range ranks {
		c.send("SP_RANK", schema.Values{
			"rnum": i, "rmax": len(ranks) - 1, "name": r.name, "hours": r.hours, "ratings": r.rating, "offense": r.attack, "cname": r.short,
		})
	}
}

// capability tells what a ship can do.
func (c *session) capability(ship int) {
	k := &classes[ship]
	c.send("SP_SHIP_CAP", schema.Values{
		"operation": 0, "s_type": ship, "torpspeed": k.torpSpeed, "phaserrange": k.phaser, "maxspeed": k.speed, "maxfuel": k.fuel,
		"maxshield": k.shield, "maxdamage": k.hull, "maxwpntemp": maxHeat, "maxegntemp": maxHeat, "width": 20, "height": 20,
		"maxarmies": k.armies, "letter": k.letter, "name": k.name, "desig": k.desig, "bitmap": k.bitmap,
	})
}

// call is how messages speak of a player: F0.
func (p *pilot) call() string { return fmt.Sprintf("%c%c", teamLetter(p.team), slotLetter(p.slot)) }

// slotLetter returns the character of a slot: 0 to 9, then a to v.
func slotLetter(slot int) byte {
	if slot < 10 {
		return byte('0' + slot)
	}
	return byte('a' + slot - 10)
}

// joined tells everybody that a player has a ship, left that one is gone.
func (s *server) joined(p *pilot) {
	s.announce(kindJoin, p.slot, fmt.Sprintf(" %-8s %s %s is now %s (%s@%s)", p.call()+"->ALL", ranks[0].name, p.name, p.call(), p.login, p.host))
}

func (s *server) left(p *pilot) {
	s.announce(kindLeave, p.slot, fmt.Sprintf(" %-8s %s %s (%s) leaving game (%s@%s)", p.call()+"->ALL", ranks[0].name, p.name, p.call(), p.login, p.host))
}
