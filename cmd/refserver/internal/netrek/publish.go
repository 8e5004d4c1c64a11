package netrek

import (
	"bytes"
	"slices"
	"time"

	"opscope/schema"
)

const (
	// maskEvery is how often a choosing player is told its teams, pingEvery how
	// often a ping is sent (section 8), genericEvery how often SP_GENERIC_32.
	maskEvery    = time.Second
	pingEvery    = 2 * time.Second
	genericEvery = 10  // frames
	totalsEvery  = 100 // frames
	// silence is the longest that a client in a ship is told nothing: it waits for
	// packets with its screen unpainted (section 12).
	silence = 200 * time.Millisecond
)

// shownKey names something that a client was shown: a packet about a slot, a torp, a
// planet.
type shownKey struct {
	message string
	n       int
}

// show sends a packet unless the client was last sent the same about this one.
func (c *session) show(message string, n int, v schema.Values) {
	c.present(message, n, v, false)
}

func (c *session) present(message string, n int, v schema.Values, critical bool) {
	r, data, err := c.server.append(c.scratch[:0], c.state, message, v)
	c.scratch = data[:0]
	if err != nil {
		c.server.observer.Event(c.server.advanced, "dropped", err.Error())
		return
	}
	key := shownKey{message, n}
	if bytes.Equal(c.shown[key], data) {
		return
	}
	c.shown[key] = slices.Clone(data)
	c.put(r, data, critical)
}

// seen reports whether the client was ever shown a packet about this one.
func (c *session) seen(message string, n int) bool { return c.shown[shownKey{message, n}] != nil }

// frame does what is due for a session in a frame.
func (c *session) frame(now time.Time) {
	if !c.named || c.Ended() {
		return
	}
	if c.pilot.status == outfit && now.Sub(c.masked) >= maskEvery {
		c.mask(now)
	}
	if c.pinging && now.Sub(c.pinged) >= pingEvery && !c.udp.turning() {
		c.ping(now)
	}
	if now.Sub(c.updated) >= c.every {
		c.update(now)
	}
	if now.Sub(c.told) >= silence && c.pilot.status != outfit {
		delete(c.shown, shownKey{"SP_YOU", 0})
		delete(c.shown, shownKey{"SP_S_YOU_SS", 0})
		c.you()
	}
}

// refresh tells everything, about free slots as well.
func (c *session) refresh(now time.Time) {
	c.forget()
	c.you()
	for _, p := range c.server.world.pilots {
		c.player(p)
	}
	c.updated = now
}

// forget has the next update tell everything that is to be told.
func (c *session) forget() {
	clear(c.shown)
	c.brief = brief{}
}

// update tells what has changed.
func (c *session) update(now time.Time) {
	w := c.server.world
	c.updated = now
	c.you()
	for _, p := range w.pilots {
		if p.status != free || c.brief.persons[p.slot].status != free {
			c.player(p)
		}
	}
	if c.short != 0 {
		c.shortPlayers()
		c.shortKills()
	}
	for _, p := range w.pilots {
		c.weapons(p) // also of one who has left: what was on its way is gone
	}
	c.surroundings()
}

// surroundings tells of planets and totals.
func (c *session) surroundings() {
	w := c.server.world
	c.planets()
	if due := w.frame%totalsEvery == 0; due || !c.seen("SP_STATUS", 0) {
		c.show("SP_STATUS", 0, w.status())
		c.statistics()
	}
	if c.generic != 0 && (w.frame%genericEvery == 0 || !c.seen("SP_GENERIC_32", 0)) {
		c.show("SP_GENERIC_32", 0, c.circumstances())
	}
	if c.has("SP_FLAGS_ALL") {
		for i := range 2 {
			c.show("SP_FLAGS_ALL", i, schema.Values{"offset": i, "flags": w.slotStates(i)})
		}
	}
}

// status is the totals of the server, divided by 10.
func (w *world) status() schema.Values {
	t := &w.totals
	return schema.Values{"tourn": 0, "armsbomb": 1 + t.armies/10, "planets": 1 + t.planets/10, "kills": 1 + t.kills/10,
		"losses": 1 + t.losses/10, "time": 1 + t.ticks/10, "timeprod": 1 + t.ticks/10}
}

// statistics tells the player its own.
func (c *session) statistics() {
	p := c.pilot
	t := &p.totals
	v := schema.Values{"pnum": p.slot, "tkills": t.kills, "tlosses": t.losses, "kills": 0, "losses": 0, "tticks": t.ticks,
		"tplanets": t.planets, "tarmies": t.armies, "sbkills": 0, "sblosses": 0, "armies": 0, "planets": 0, "maxkills": t.maxKills, "sbmaxkills": 0}
	message := "SP_STATS"
	if c.short == shortV2 {
		message = "SP_S_STATS"
		for _, name := range []string{"tplanets", "tkills", "tlosses"} {
			v[name] = min(v[name].(int), 0xffff)
		}
	}
	c.show(message, p.slot, v)
}

// history is the SP_LTD of a player: of its 80 counters this server counts few.
func (c *session) history() schema.Values {
	v := schema.Values{}
	for _, it := range c.server.packets["SP_LTD"].Of(schema.Server)[0].Items() {
		if !it.Field.Hidden {
			v[it.Field.Name] = 0
		}
	}
	t := &c.pilot.totals
	v["version"], v["kt"], v["kmax"], v["dt"], v["tt"] = "a", t.kills, t.maxKills, t.losses, t.ticks
	return v
}

// circumstances is an SP_GENERIC_32 of the version that was negotiated.
func (c *session) circumstances() schema.Values {
	p := c.pilot
	orbit := -1
	if p.has(flagOrbit) {
		orbit = p.planet
	}
	v := schema.Values{"version": int(c.generic), "repair_time": p.repairTime(), "pl_orbit": orbit}
	if c.generic == 'b' {
		gameup := 0
		if p.status == alive {
			gameup = 1 // not safe: the player is not idle
		}
		v["gameup"], v["tournament_teams"], v["starbase_remain"], v["team_remain"] = gameup, 0, 0, 0
		v["tournament_age"], v["tournament_age_units"] = 0, "s"
		v["tournament_remain"], v["tournament_remain_units"] = 0, "s"
	}
	return v
}

// repairTime is how many seconds a ship needs to be whole again, at the rate of
// engines.
func (p *pilot) repairTime() int {
	if !p.has(flagRepair) {
		return 0
	}
	return (max(p.damage, p.class().shield-p.shield) + 3) / 4
}

// planets tells of those that have changed, each as far as the player's team knows
// it.
func (c *session) planets() {
	var list []schema.Values
	for _, at := range c.server.world.planets {
		sight := c.known(at)
		if sight == c.brief.planets[at.number] {
			continue
		}
		c.brief.planets[at.number] = sight
		if c.short == 0 || sight.armies > 0xff {
			c.send("SP_PLANET", sight.values(at))
		} else {
			list = append(list, sight.values(at))
		}
	}
	if len(list) > 0 {
		c.send("SP_S_PLANET", schema.Values{"count": len(list), "planets": list})
	}
}

// planetSight is a planet as a client was told of it.
type planetSight struct {
	owner, info, flags, armies int
	told                       bool
}

func (p planetSight) values(at *planet) schema.Values {
	return schema.Values{"pnum": at.number, "owner": p.owner, "info": p.info, "flags": p.flags, "armies": p.armies}
}

// known is what the player's team knows of a planet.
func (c *session) known(at *planet) planetSight {
	if at.info&c.pilot.team == 0 {
		return planetSight{told: true}
	}
	return planetSight{at.owner, at.info, at.flags & planetMask, at.armies, true}
}
