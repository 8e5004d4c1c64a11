package netrek

// The state of a torp or a plasma, and of a phaser (section 6.5).
const (
	shotFree      = 0
	shotMoving    = 1
	shotExploding = 2
	shotDetonated = 3
	shotOff       = 4

	phaserFree    = 0
	phaserHit     = 1
	phaserMiss    = 2
	phaserHitTorp = 4
)

// What weapons cost and do, in this server's own choice.
const (
	torpFuse     = 40 // frames
	plasmaFuse   = 30
	plasmaSpeed  = 15 // warp
	blastFrames  = 3
	phaserFrames = 10
	torpReach    = 350  // at which one explodes
	blastReach   = 2000 // up to which it does harm
	detReach     = 1700
	phaserReach  = 6000
	tractorReach = 6000
	torpFuel     = 280
	phaserFuel   = 700
	plasmaFuel   = 2000
	detFuel      = 100
	torpHeat     = 60
	phaserHeat   = 80
	plasmaDamage = 130
	phaserDamage = 100
)

// shot is a torp or a plasma.
type shot struct {
	status int
	x, y   int
	dir    uint8
	fuse   int // frames until it changes
	war    int // teams that it is hostile to
}

// phaser is one burst.
type phaser struct {
	status int
	dir    uint8
	x, y   int // of phaserHitTorp
	target int // slot, of phaserHit
	damage int
	fuse   int
}

// refusal is why an order is not carried out: the number of a text (section 4.8),
// -1 for none.
type refusal int

const carriedOut refusal = -1

// fireTorp fires a torp.
func (w *world) fireTorp(p *pilot, dir uint8) refusal {
	switch {
	case p.has(flagWep):
		return 25
	case p.has(flagRepair):
		return 28
	case p.has(flagCloak):
		return 29
	case p.fuel < torpFuel:
		return 27
	}
	for i := range p.torps {
		if t := &p.torps[i]; t.status == shotFree {
			*t = shot{status: shotMoving, x: p.x, y: p.y, dir: dir, fuse: torpFuse, war: p.war}
			p.fuel -= torpFuel
			p.wtemp += torpHeat
			return carriedOut
		}
	}
	return 26
}

// firePlasma fires a plasma. Whether a player has earned one is not looked at.
func (w *world) firePlasma(p *pilot, dir uint8) refusal {
	switch {
	case !p.class().plasma:
		return 18
	case p.plasma.status != shotFree:
		return 20
	case p.has(flagWep):
		return 19
	case p.has(flagRepair):
		return 23
	case p.has(flagCloak):
		return 24
	case p.fuel < plasmaFuel:
		return 22
	}
	p.plasma = shot{status: shotMoving, x: p.x, y: p.y, dir: dir, fuse: plasmaFuse, war: p.war}
	p.fuel -= plasmaFuel
	p.wtemp += torpHeat
	return carriedOut
}

// firePhaser fires a phaser: at the nearest enemy near its line, else at a plasma.
func (w *world) firePhaser(p *pilot, dir uint8) refusal {
	switch {
	case p.phaser.status != phaserFree:
		return 32
	case p.has(flagWep):
		return 35
	case p.has(flagRepair):
		return 34
	case p.has(flagCloak):
		return 36
	case p.fuel < phaserFuel:
		return 33
	}
	p.fuel -= phaserFuel
	p.wtemp += phaserHeat
	p.phaser = phaser{status: phaserMiss, dir: dir, fuse: phaserFrames}
	reach := phaserReach * p.class().phaser / 100
	var hit *pilot
	for _, o := range w.pilots {
		if o.status != alive || !w.enemies(p, o) || apart(p.x, p.y, o.x, o.y, reach) || !ahead(p, dir, o.x, o.y) {
			continue
		}
		if hit == nil || apart(p.x, p.y, hit.x, hit.y, distance(p.x, p.y, o.x, o.y)) {
			hit = o
		}
	}
	if hit != nil {
		d := phaserDamage * p.class().phaser / 100 * (reach - distance(p.x, p.y, hit.x, hit.y)) / reach
		p.phaser.status, p.phaser.target, p.phaser.damage = phaserHit, hit.slot, max(1, d)
		w.news(newsItem{kind: newsHit, pilot: p, other: hit, value: p.phaser.damage})
		w.hurt(hit, p, p.phaser.damage, diedPhaser)
		return carriedOut
	}
	for _, o := range w.pilots {
		s := &o.plasma
		if s.status == shotMoving && w.enemies(p, o) && !apart(p.x, p.y, s.x, s.y, reach) && ahead(p, dir, s.x, s.y) {
			p.phaser.status, p.phaser.x, p.phaser.y = phaserHitTorp, s.x, s.y
			w.blast(o, s, plasmaDamage, diedPlasma)
			return carriedOut
		}
	}
	w.news(newsItem{kind: newsMissed, pilot: p})
	return carriedOut
}

// ahead reports whether a place lies near the line of fire.
func ahead(p *pilot, dir uint8, x, y int) bool {
	d := int(int8(bearing(p.x, p.y, x, y) - dir))
	return d <= 4 && -d <= 4
}

// distance returns how far two places are apart, in whole units.
func distance(x, y, tox, toy int) int {
	dx, dy := tox-x, toy-y
	n := dx*dx + dy*dy
	low, high := 0, 2*galaxy
	for low < high {
		if mid := (low + high + 1) / 2; mid*mid <= n {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// detonate has the torps of enemies explode that are near a ship.
func (w *world) detonate(p *pilot) {
	if p.fuel < detFuel {
		return
	}
	p.fuel -= detFuel
	for _, o := range w.pilots {
		for i := range o.torps {
			t := &o.torps[i]
			if t.status == shotMoving && w.enemies(p, o) && !apart(p.x, p.y, t.x, t.y, detReach) {
				t.status, t.fuse = shotDetonated, blastFrames
				w.spread(o, t, o.class().torpDamage, diedDetonated)
			}
		}
	}
}

// shots moves what a player has fired by one frame.
func (w *world) shots(p *pilot) {
	for i := range p.torps {
		w.advance(p, &p.torps[i], p.class().torpSpeed, p.class().torpDamage, diedTorp)
	}
	w.advance(p, &p.plasma, plasmaSpeed, plasmaDamage, diedPlasma)
	if p.phaser.status != phaserFree {
		if p.phaser.fuse--; p.phaser.fuse <= 0 {
			p.phaser = phaser{}
		}
	}
}

func (w *world) advance(p *pilot, s *shot, speed, damage, why int) {
	if s.status == shotFree {
		return
	}
	if s.fuse--; s.status != shotMoving {
		if s.fuse <= 0 {
			*s = shot{}
		}
		return
	}
	s.x += speed * 20 * course[s.dir].x / 1024
	s.y += speed * 20 * course[s.dir].y / 1024
	if s.fuse <= 0 || s.x != within(s.x) || s.y != within(s.y) {
		s.x, s.y = within(s.x), within(s.y)
		s.status, s.fuse = shotOff, blastFrames
		return
	}
	for _, o := range w.pilots {
		if o.status == alive && o != p && s.war&o.team != 0 && !apart(s.x, s.y, o.x, o.y, torpReach) {
			w.blast(p, s, damage, why)
			return
		}
	}
}

// blast has a shot explode.
func (w *world) blast(p *pilot, s *shot, damage, why int) {
	s.status, s.fuse = shotExploding, blastFrames
	w.spread(p, s, damage, why)
}

// spread does harm to whom a shot is hostile, the less the further away.
func (w *world) spread(p *pilot, s *shot, damage, why int) {
	for _, o := range w.pilots {
		if o.status != alive || o == p || s.war&o.team == 0 || apart(s.x, s.y, o.x, o.y, blastReach) {
			continue
		}
		d := damage
		if far := distance(s.x, s.y, o.x, o.y); far > torpReach {
			d = damage * (blastReach - far) / (blastReach - torpReach)
		}
		w.hurt(o, p, d, why)
	}
}

// hurt takes shields first, if they are up.
func (w *world) hurt(p, by *pilot, damage, why int) {
	if p.status != alive || damage <= 0 {
		return
	}
	if p.has(flagShield) {
		n := min(damage, p.shield)
		p.shield -= n
		damage -= n
	}
	if p.damage += damage; p.damage >= p.class().hull {
		p.damage = p.class().hull
		w.kill(p, by, why)
	}
}

// kill has a ship explode, which hurts who is near.
func (w *world) kill(p, by *pilot, why int) {
	p.status, p.elapsed = exploding, 0
	p.whyDead, p.whoDead = why, -1
	p.speed, p.want, p.destruct, p.refit, p.tractor = 0, 0, 0, 0, -1
	p.set(flagOrbit|flagCloak|flagBomb|flagBeamUp|flagBeamDown|flagSelfDest|flagRefit|flagTract|flagPress, false)
	p.totals.losses++
	w.totals.losses++
	if by != nil && by != p {
		p.whoDead = by.slot
		by.kills += 100 + 10*p.armies + p.kills/10
		by.totals.kills++
		by.totals.maxKills = max(by.totals.maxKills, by.kills)
		w.totals.kills++
	}
	w.news(newsItem{kind: newsKilled, pilot: p, other: by, value: why})
	for _, o := range w.pilots {
		if o.status == alive && o != p && !apart(p.x, p.y, o.x, o.y, explodeReach) {
			w.hurt(o, p, p.class().hull/2, diedExplosion)
		}
	}
	p.armies = 0
}
