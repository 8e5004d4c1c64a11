package netrek

// enterOrbit puts a ship into the orbit of a planet.
func (w *world) enterOrbit(p *pilot, at *planet) {
	p.set(flagOrbit, true)
	p.set(flagPlanet|flagPLock, false)
	p.planet, p.target = at.number, -1
	p.speed, p.want = 0, 0
	p.dir = bearing(at.x, at.y, p.x, p.y) + 64
	p.wantDir = p.dir
	w.place(p, at)
}

// place puts a ship where its direction is a tangent.
func (w *world) place(p *pilot, at *planet) {
	c := course[p.dir-64]
	p.x, p.y = within(at.x+orbitRadius*c.x/1024), within(at.y+orbitRadius*c.y/1024)
}

// orbit moves a ship around its planet.
func (w *world) orbit(p *pilot) {
	p.dir += 2
	p.wantDir = p.dir
	w.place(p, w.planets[p.planet])
}

// leaveOrbit has a ship fly by itself.
func (p *pilot) leaveOrbit() {
	if p.has(flagOrbit) {
		p.set(flagOrbit|flagBomb|flagBeamUp|flagBeamDown, false)
		p.planet = -1
	}
}

// nearest returns the planet that a ship could orbit, or nil.
func (w *world) nearest(p *pilot) *planet {
	for _, at := range w.planets {
		if !apart(p.x, p.y, at.x, at.y, orbitReach) {
			return at
		}
	}
	return nil
}

// work bombs a planet or beams an army, as far as that is possible.
func (w *world) work(p *pilot, at *planet) {
	switch {
	case p.has(flagBomb):
		w.bomb(p, at)
	case p.has(flagBeamUp):
		if at.owner != p.team || at.armies <= 4 || p.armies >= p.class().armies {
			p.set(flagBeamUp, false)
			return
		}
		at.armies--
		p.armies++
		w.news(newsItem{kind: newsBeamUp, pilot: p, planet: at, value: p.armies})
	case p.has(flagBeamDown):
		w.beamDown(p, at)
	}
}

// bomb kills one to three armies; the last four hold out.
func (w *world) bomb(p *pilot, at *planet) {
	if at.owner == p.team || at.owner == 0 || at.armies <= 4 {
		p.set(flagBomb, false)
		return
	}
	n := min(at.armies-4, 1+w.random.IntN(3))
	at.armies -= n
	p.totals.armies += n
	w.totals.armies += n
	p.kills += 2 * n
	w.news(newsItem{kind: newsBombed, pilot: p, planet: at, value: at.armies})
}

// beamDown strengthens an own planet, fights on another one and takes it when nobody
// is left on it.
func (w *world) beamDown(p *pilot, at *planet) {
	if p.armies == 0 {
		p.set(flagBeamDown, false)
		return
	}
	p.armies--
	switch {
	case at.owner == p.team:
		at.armies++
	case at.armies > 0:
		at.armies--
	default:
		at.owner, at.armies, at.info = p.team, 1, at.info|p.team
		p.totals.planets++
		w.totals.planets++
		p.kills += 25
		w.news(newsItem{kind: newsTaken, pilot: p, planet: at})
		return
	}
	w.news(newsItem{kind: newsBeamDown, pilot: p, planet: at, value: at.armies})
}
