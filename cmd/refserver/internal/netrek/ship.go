package netrek

// status is the state of a player (section 6.3).
type status int

const (
	free status = iota
	outfit
	alive
	exploding
	dead
)

// Player flags (section 6.1), those that this server uses.
const (
	flagShield   = 0x1
	flagRepair   = 0x2
	flagBomb     = 0x4
	flagOrbit    = 0x8
	flagCloak    = 0x10
	flagWep      = 0x20
	flagEng      = 0x40
	flagBeamUp   = 0x100
	flagBeamDown = 0x200
	flagSelfDest = 0x400
	flagGreen    = 0x800
	flagYellow   = 0x1000
	flagRed      = 0x2000
	flagPLock    = 0x4000
	flagPlanet   = 0x8000 // locked on a planet
	flagWar      = 0x20000
	flagRefit    = 0x200000 // refitting
	flagTract    = 0x400000
	flagPress    = 0x800000
	flagDockOK   = 0x1000000
	flagAlert    = flagGreen | flagYellow | flagRed

	// What others see of them, and what they see of a ship that is not in view.
	flagsInView  = 0x89040091
	flagsOfOther = 0x89040090
)

// Causes of death (section 6.4).
const (
	diedQuit      = 1
	diedTorp      = 2
	diedPhaser    = 3
	diedPlanet    = 4
	diedExplosion = 5
	diedPlasma    = 11
	diedDetonated = 16
)

// causes are the words of kill messages.
var causes = map[int]string{
	diedQuit: "quit", diedTorp: "photon", diedPhaser: "phaser", diedPlanet: "planet", diedExplosion: "explosion",
	diedPlasma: "plasma", diedDetonated: "det",
}

// Where a ship is told to be that is not in the game, and one that is hidden.
const (
	nowhere = -100000
	hidden  = -10000
)

// Times in frames, and distances in units. They are this server's own.
const (
	explodeFrames = 10
	deadFrames    = 10
	destructAfter = 100 // 10 s, for a base six times as long
	refitFrames   = 20
	orbitRadius   = 800
	orbitReach    = 900
	orbitSpeed    = 2 // the fastest at which a ship can enter one
	workEvery     = 5 // frames between two bombs, or two armies
	explodeReach  = 1500
)

// pilot is a player in a slot: who, and the ship.
type pilot struct {
	slot    int
	session *session // nil in a free slot
	name    string
	login   string
	host    string

	status  status
	elapsed int // frames in the status
	team    int // a bit; allTeams before the player has chosen
	ship    int // -1 before
	x, y    int
	dir     uint8
	wantDir uint8
	speed   int
	want    int // the speed that was asked for
	flags   int
	damage  int
	shield  int
	fuel    int
	etemp   int
	wtemp   int
	armies  int
	kills   int // in hundredths, of this ship
	war     int // teams it is at war with
	planet  int // that it orbits or is locked on
	target  int // slot that it is locked on
	tractor int // slot, -1 for none
	whyDead int
	whoDead int

	destruct int // frames until it destroys itself, 0 for not
	refit    int // frames until it is refitted
	refitTo  int
	totals   totals

	torps  [shotCount]shot
	plasma shot
	phaser phaser
}

// totals are the statistics of a player.
type totals struct{ kills, losses, armies, planets, ticks, maxKills int }

// class returns what the ship can do.
func (p *pilot) class() *class { return &classes[max(0, p.ship)] }

// has reports whether all of some flags are set.
func (p *pilot) has(flags int) bool { return p.flags&flags == flags }

// set sets flags or clears them.
func (p *pilot) set(flags int, on bool) {
	p.flags &^= flags
	if on {
		p.flags |= flags
	}
}

// vacate makes a slot free.
func (p *pilot) vacate() {
	*p = pilot{slot: p.slot, tractor: -1, planet: -1, target: -1}
}

// launch puts a player into a ship near the home planet of the team.
func (w *world) launch(p *pilot, team, ship int) {
	home := w.planets[10*teamIndex(team)]
	if w.near {
		home = w.planets[0]
	}
	p.team, p.ship = team, ship
	p.status, p.elapsed = alive, 0
	p.x, p.y = within(home.x+w.random.IntN(5000)-2500), within(home.y+w.random.IntN(5000)-2500)
	p.dir, p.wantDir, p.speed, p.want = 0, 0, 0, 0
	p.flags, p.damage, p.etemp, p.wtemp, p.armies, p.kills = flagShield|flagGreen, 0, 0, 0, 0, 0
	p.shield, p.fuel = p.class().shield, p.class().fuel
	p.war = allTeams &^ team
	p.planet, p.target, p.tractor = -1, -1, -1
	p.destruct, p.refit = 0, 0
	p.torps, p.plasma, p.phaser = [shotCount]shot{}, shot{}, phaser{}
}

// world is everything that all players share.
type world struct {
	random  source
	planets []*planet
	pilots  [MaxSlots]*pilot
	frame   int
	totals  totals
	near    bool // all start at one place
	news    func(newsItem)
}

// source is what a world draws from.
type source interface{ IntN(n int) int }

// newsItem is something that happened, for those who have to be told.
type newsItem struct {
	kind   newsKind
	pilot  *pilot
	other  *pilot // nil for none
	planet *planet
	value  int
}

type newsKind uint8

const (
	newsHit      newsKind = iota // the pilot's phaser hit the other, for so much
	newsMissed                   // the pilot's phaser hit nothing
	newsKilled                   // the pilot was killed, perhaps by another
	newsBombed                   // the planet has so many armies left
	newsBeamUp                   // the pilot has so many armies on board
	newsBeamDown                 // the planet got one
	newsTaken                    // the planet was taken by the pilot
	newsDestruct                 // so many seconds are left
	newsRefitted                 // the pilot has another ship
	newsWasted                   // the pilot is out of the game and has to choose again
)

// step moves everything by one frame.
func (w *world) step() {
	w.frame++
	w.totals.ticks++
	for _, p := range w.pilots {
		p.elapsed++
		switch p.status {
		case alive:
			p.totals.ticks++
			w.fly(p)
		case exploding:
			if p.elapsed >= explodeFrames {
				p.status, p.elapsed = dead, 0
			}
		case dead:
			if p.elapsed >= deadFrames {
				p.status, p.elapsed, p.flags = outfit, 0, 0
				w.news(newsItem{kind: newsWasted, pilot: p})
			}
		}
		w.shots(p)
	}
	if w.frame%300 == 0 {
		w.grow()
	}
}

// grow lets planets with few armies have more.
func (w *world) grow() {
	for _, p := range w.planets {
		if p.owner != 0 && p.armies < 5 {
			p.armies++
		}
	}
}

// fly moves one ship by a frame.
func (w *world) fly(p *pilot) {
	w.countdown(p)
	if p.status != alive {
		return
	}
	w.steer(p)
	w.engines(p)
	if p.has(flagOrbit) {
		w.orbit(p)
	} else {
		p.x = within(p.x + p.speed*20*course[p.dir].x/1024)
		p.y = within(p.y + p.speed*20*course[p.dir].y/1024)
	}
	w.pull(p)
	w.scout(p)
	w.alert(p)
}

// countdown is the self-destruct and the refit.
func (w *world) countdown(p *pilot) {
	if p.refit > 0 {
		if p.refit--; p.refit == 0 {
			p.ship = p.refitTo
			p.set(flagRefit, false)
			p.damage, p.shield, p.fuel = 0, p.class().shield, p.class().fuel
			p.etemp, p.wtemp = 0, 0
			w.news(newsItem{kind: newsRefitted, pilot: p})
		}
	}
	if p.destruct > 0 {
		if p.destruct--; p.destruct == 0 {
			w.kill(p, nil, diedQuit)
		} else if p.destruct%10 == 0 && p.destruct < 50 {
			w.news(newsItem{kind: newsDestruct, pilot: p, value: p.destruct / 10})
		}
	}
}

// steer follows a lock, and turns towards the direction that was asked for: the
// faster the ship, the slower it turns.
func (w *world) steer(p *pilot) {
	switch {
	case p.has(flagPlanet) && p.planet >= 0:
		home := w.planets[p.planet]
		p.wantDir = bearing(p.x, p.y, home.x, home.y)
		if !apart(p.x, p.y, home.x, home.y, orbitReach) && p.speed <= orbitSpeed {
			w.enterOrbit(p, home)
		} else if !apart(p.x, p.y, home.x, home.y, 1000*p.speed) {
			p.want = min(p.want, max(orbitSpeed, p.speed-1))
		}
	case p.has(flagPLock) && p.target >= 0:
		if t := w.pilots[p.target]; t.status == alive {
			p.wantDir = bearing(p.x, p.y, t.x, t.y)
		} else {
			p.set(flagPLock, false)
			p.target = -1
		}
	}
	turn := 64 / (p.speed + 1)
	switch d := int(int8(p.wantDir - p.dir)); {
	case p.speed == 0 || d <= turn && -d <= turn:
		p.dir = p.wantDir
	case d > 0:
		p.dir += uint8(turn)
	default:
		p.dir -= uint8(turn)
	}
}

// engines change the speed by one warp in two frames, use fuel and cool.
func (w *world) engines(p *pilot) {
	c := p.class()
	if p.has(flagRepair) {
		p.want = 0
	}
	if w.frame%2 == 0 {
		p.speed += min(1, max(-1, min(p.want, c.speed)-p.speed))
	}
	p.fuel += 10 - 2*p.speed
	if p.has(flagShield) {
		p.fuel -= 2
	}
	if p.has(flagCloak) {
		p.fuel -= 30
	}
	p.etemp = max(0, p.etemp+p.speed-5)
	p.wtemp = max(0, p.wtemp-4)
	if p.planet >= 0 && p.has(flagOrbit) {
		w.serve(p, w.planets[p.planet])
	}
	p.fuel = max(0, min(c.fuel, p.fuel))
	if p.fuel == 0 {
		p.set(flagCloak, false)
		p.want = min(p.want, 2)
	}
	if w.frame%10 == 0 {
		rest := 1
		if p.has(flagRepair) {
			rest = 4
		}
		p.shield = min(c.shield, p.shield+rest)
		p.damage = max(0, p.damage-rest)
	}
	p.set(flagWep, p.wtemp >= maxHeat)
	p.set(flagEng, p.etemp >= maxHeat)
}

// serve is what a planet does for a ship in its orbit.
func (w *world) serve(p *pilot, at *planet) {
	friendly := at.owner == p.team
	if friendly && at.flags&planetFuel != 0 {
		p.fuel += 40
	}
	if friendly && at.flags&planetRepair != 0 && w.frame%5 == 0 {
		p.damage = max(0, p.damage-2)
	}
	if !friendly && at.owner != 0 && p.war&at.owner != 0 && at.armies > 0 && w.frame%20 == 0 {
		w.hurt(p, nil, 2+at.armies/10, diedPlanet)
	}
	if w.frame%workEvery == 0 && p.status == alive {
		w.work(p, at)
	}
}

// pull moves two ships that a tractor or a pressor ties.
func (w *world) pull(p *pilot) {
	if p.tractor < 0 {
		return
	}
	t := w.pilots[p.tractor]
	if t.status != alive || apart(p.x, p.y, t.x, t.y, tractorReach) || p.fuel < 20 {
		p.tractor = -1
		p.set(flagTract|flagPress, false)
		return
	}
	p.fuel -= 20
	d := bearing(t.x, t.y, p.x, p.y)
	if p.has(flagPress) {
		d += 128
	}
	t.set(flagOrbit, false)
	t.x, t.y = within(t.x+40*course[d].x/1024), within(t.y+40*course[d].y/1024)
}

// scout lets a team know the planets that one of its ships is near.
func (w *world) scout(p *pilot) {
	for _, at := range w.planets {
		if at.info&p.team == 0 && !apart(p.x, p.y, at.x, at.y, window*perPixel/4) {
			at.info |= p.team
		}
	}
}

// alert is red with an enemy near, yellow with one not far.
func (w *world) alert(p *pilot) {
	level := flagGreen
	for _, o := range w.pilots {
		if o.status != alive || !w.enemies(p, o) {
			continue
		}
		switch {
		case !apart(p.x, p.y, o.x, o.y, window*perPixel/2):
			level = flagRed
		case level == flagGreen && !apart(p.x, p.y, o.x, o.y, window*perPixel):
			level = flagYellow
		}
	}
	p.set(flagAlert, false)
	p.set(level, true)
}

// enemies reports whether either is at war with the other's team.
func (w *world) enemies(p, o *pilot) bool {
	return p != o && p.team != o.team && (p.war&o.team != 0 || o.war&p.team != 0)
}
