package netrek

import (
	"fmt"
	"time"

	"opscope/schema"
)

// The versions of short packets (section 1).
const (
	shortV1 = 10
	shortV2 = 11
)

// What short packets cannot say (section 8), and the requests for them (section 5).
const (
	shortFuel  = 61000
	shortKills = 1000

	requestOff      = 0
	requestOn       = 1
	requestNoChat   = 2
	requestChat     = 3
	requestSmall    = 9
	requestMedium   = 10
	unseen          = 501 // a coordinate of what is not visible
	fullUpdateAfter = 5 * time.Second
)

// brief is what a client was last told, as far as that can be compared without
// writing it again, or several things share a packet.
type brief struct {
	persons [MaxSlots]person
	own     ownSight
	players [MaxSlots]shortSight
	torps   [MaxSlots]torpSight
	planets [len(atlas)]planetSight
	kills   [MaxSlots]int
	words   [2]uint32
}

type ownSight struct {
	dir         uint8
	speed, x, y int
	told        bool
}

// shortSight is a body of SP_S_PLAYER.
type shortSight struct {
	galactic, dir, speed, x, y int
	told                       bool
}

// torpSight is the torps of one player.
type torpSight struct {
	bits   int
	status [shotCount]int
	war    [shotCount]int
	x, y   [shotCount]int
}

// shortRequest turns short packets on or off, and other things about them.
func (c *session) shortRequest(now time.Time, b *schema.Tree) {
	request, version := b.Number("req"), b.Number("version")
	switch request {
	case requestOff:
		c.short = 0
		c.forget()
	case requestOn:
		if version != shortV1 && version != shortV2 {
			c.complain(now, "ignored", fmt.Sprintf("short packets of version %d", version))
			return
		}
		c.say("Sending variable and short packets.")
		c.forget()
		c.short, c.messages = version, true
	case requestNoChat, requestChat:
		c.messages = request == requestChat
	case requestSmall, requestMedium:
		c.everything(now)
		return // observed: short2-tcp.pcap, war-short2-udp.pcap; COW complains of an answer
	}
	v := schema.Values{"repl": request}
	if request == requestOn {
		v["winside"], v["gwidth"] = window, galaxy
	}
	c.send("SP_S_REPLY", v)
	if request == requestOn || request == requestOff {
		setEntry(c.state, "short_version", 0, c.short)
	}
}

// everything answers a request for a full update, unless one was answered just now.
func (c *session) everything(now time.Time) {
	if !c.full.IsZero() && now.Sub(c.full) < fullUpdateAfter {
		c.warn(texts[98], 98)
		return
	}
	c.full = now
	c.forget()
	c.update(now)
}

// brisk reports whether players are told by SP_S_PLAYER.
func (c *session) brisk() bool { return c.short != 0 && !c.has("FULL_DIRECTION_RESOLUTION") }

// shortYou tells the player of its own ship, in two packets.
func (c *session) shortYou(critical bool) {
	p := c.pilot
	c.present("SP_S_YOU", 0, schema.Values{
		"pnum": p.slot, "hostile": p.war, "swar": 0, "armies": p.armies & 0x7f, "whydead": c.whyDead(p), "whodead": p.whoDead, "flags": uint32(p.flags),
	}, critical)
	c.show("SP_S_YOU_SS", 0, schema.Values{
		"pad1": c.packedFlags(), "damage": p.damage, "shield": p.shield, "fuel": p.fuel, "etemp": p.etemp, "wtemp": p.wtemp,
	})
}

// packedFlags is the first byte of SP_S_YOU_SS (section 6.2).
func (c *session) packedFlags() int {
	p := c.pilot
	switch {
	case c.has("19FLAGS"):
		digit := func(low, high int) int {
			switch {
			case p.flags&high != 0:
				return 2
			case p.flags&low != 0:
				return 1
			}
			return 0
		}
		tractor := digit(flagPress, flagTract)
		if p.has(flagPress) {
			tractor = 1
		}
		return digit(flagYellow, flagGreen) + 3*digit(flagBeamDown, flagBeamUp) + 9*digit(flagPlanet, flagPLock) + 27*tractor + 81*digit(0, flagOrbit)
	case c.has("SELF_8FLAGS"):
		return p.flags & 0xff
	}
	return 0
}

// shortPlayers tells of all ships that have moved: the own one in the header.
func (c *session) shortPlayers() {
	if !c.brisk() {
		return
	}
	w, me := c.server.world, c.pilot
	own := ownSight{me.dir, me.shownSpeed(), me.x, me.y, true}
	words := [2]uint32{w.slotStates(0), w.slotStates(1)}
	var list []schema.Values
	for _, p := range w.pilots {
		if p.status == free {
			c.brief.players[p.slot] = shortSight{}
		}
		if p.status == free || p == me {
			continue
		}
		s := c.shortSight(p)
		if s == c.brief.players[p.slot] {
			continue
		}
		c.brief.players[p.slot] = s
		list = append(list, schema.Values{"pnum": p.slot, "galactic": s.galactic, "dir16": s.dir, "speed": s.speed, "x": s.x, "y": s.y})
	}
	if own == c.brief.own && len(list) == 0 && (c.short == shortV1 || words == c.brief.words) {
		return
	}
	v := schema.Values{"header": 0, "count": len(list), "dir": int(me.dir), "speed": own.speed, "short_version": c.short, "x": me.x, "y": me.y, "players": list}
	if c.short == shortV2 {
		v["x"], v["y"], v["flags"] = squeeze(me.x), squeeze(me.y), words[0]
	}
	c.send("SP_S_PLAYER", v)
	if c.short == shortV2 && words[1] != c.brief.words[1] {
		c.send("SP_S_PLAYER", schema.Values{"header": 1, "count": 0, "numflags": 1, "index": 1, "flags": []uint32{words[1]}, "players": []schema.Values(nil)})
	}
	c.brief.own, c.brief.words = own, words
}

// squeeze is a coordinate in the big header of v2: divided without regard to its
// sign, as the usual server does.
func squeeze(v int) int { return int(int16(uint32(int32(v)) / perPixel)) }

// shortSight is a ship as SP_S_PLAYER shows it: in the player's window as pixels of
// it, else on the map.
func (c *session) shortSight(p *pilot) shortSight {
	s := shortSight{galactic: 1, dir: int(p.dir / 16), speed: min(p.shownSpeed(), 15), x: unseen, y: unseen, told: true}
	if c.hidden(p) || p.x < 0 || p.y < 0 {
		return s
	}
	x, y, ok := c.pixel(p.x, p.y)
	if ok {
		s.galactic, s.x, s.y = 0, x, y
		return s
	}
	s.x, s.y = p.x*window/galaxy, p.y*window/galaxy
	return s
}

// pixel is a place in the player's window, and whether it lies in it.
func (c *session) pixel(x, y int) (px, py int, ok bool) {
	const half = window / 2 * perPixel
	px, py = x-c.pilot.x+half, y-c.pilot.y+half
	ok = px >= 0 && py >= 0 && px <= 2*half && py <= 2*half
	return px / perPixel, py / perPixel, ok
}

// shortTorps tells of the torps of one player: of all that are there where they are,
// and of those that have changed how.
func (c *session) shortTorps(p *pilot) {
	var now torpSight
	info := 0
	last := &c.brief.torps[p.slot]
	var places, states []schema.Values
	for i := range p.torps {
		t := &p.torps[i]
		if t.status == shotFree {
			continue
		}
		now.bits |= 1 << i
		now.status[i], now.war[i] = t.status, t.war
		x, y, ok := c.pixel(t.x, t.y)
		if !ok {
			x, y = unseen, unseen
		}
		now.x[i], now.y[i] = x, y
		places = append(places, schema.Values{"x": x, "y": y})
		if now.status[i] != last.status[i] || now.war[i] != last.war[i] {
			info |= 1 << i
			states = append(states, schema.Values{"status": t.status, "war": t.war})
		}
	}
	if now == *last {
		return
	}
	*last = now
	switch {
	case info != 0:
		c.send("SP_S_TORP_INFO", schema.Values{"bitset": now.bits, "whichtorps": p.slot, "infobitset": info, "torps": places, "info": states})
	case now.bits == 0xff:
		c.send("SP_S_8_TORP", schema.Values{"whichtorps": p.slot, "torps": places})
	default:
		c.send("SP_S_TORP", schema.Values{"bitset": now.bits, "whichtorps": p.slot, "torps": places})
	}
}

// shortPhaser tells of a phaser as v2 does.
func (c *session) shortPhaser(p *pilot) {
	f := &p.phaser
	if f.status == phaserFree && !c.seen("SP_S_PHASER", p.slot) {
		return
	}
	v := schema.Values{"status": f.status, "pnum": p.slot}
	if f.status == phaserHit {
		v["target"], v["damage"] = f.target, min(f.damage, 0xff)
	}
	switch f.status {
	case phaserMiss:
		v["dir"] = int(f.dir)
	case phaserHitTorp:
		v["target"], v["x"], v["y"] = 0, f.x/perPixel, f.y/perPixel
	}
	c.show("SP_S_PHASER", p.slot, v)
}

// shortKills tells of kills as v2 does; larger ones come as SP_KILLS.
func (c *session) shortKills() {
	if c.short != shortV2 {
		return
	}
	var list []schema.Values
	for _, p := range c.server.world.pilots {
		if p.status == free || p.kills > shortKills || p.kills == c.brief.kills[p.slot] {
			continue
		}
		c.brief.kills[p.slot] = p.kills
		list = append(list, schema.Values{"kills": p.kills, "pnum": p.slot})
	}
	if len(list) > 0 {
		c.send("SP_S_KILLS", schema.Values{"count": len(list), "kills": list})
	}
}
