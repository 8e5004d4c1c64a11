package mmo

import (
	"math/rand/v2"
	"slices"
	"time"

	"opscope/cmd/refserver/internal/mmo/testserver"
)

const (
	// tickEvery is the base of all movement: 20 Hz.
	tickEvery      = 50 * time.Millisecond
	ticksPerSecond = int(time.Second / tickEvery)
	// inputFor is how long an input is in force when no other follows.
	inputFor = 5 * tickEvery
	// metre is in the units of positions. They are whole numbers, so that the same
	// seed moves the same way on every machine.
	metre = 1000
)

// point is a place, or a way per tick, in thousandths of a metre.
type point struct{ x, y int }

func (p point) plus(q point) point { return point{p.x + q.x, p.y + q.y} }

func (p point) minus(q point) point { return point{p.x - q.x, p.y - q.y} }

// within reports whether a point is at most so far away, in metres.
func (p point) within(q point, far float64) bool {
	d, r := p.minus(q), int(far*metre)
	return d.x*d.x+d.y*d.y <= r*r
}

// metres returns a length as the wire has it.
func metres(n int) float32 { return float32(float64(n) / metre) }

// speed returns a way per tick as the wire has it, in metres per second.
func speed(n int) float32 { return float32(float64(n*ticksPerSecond) / metre) }

// world is the characters and the monsters.
type world struct {
	settings   *testserver.Settings
	random     *rand.Rand
	news       news
	characters []*character // in the order in which they came
	monsters   []*monster
	instances  uint64 // of items, so far
}

// news is told what others may have to see.
type news interface {
	hurt(e *entity, change int, source uint64)
	vanished(id uint64, reason string)
	turned(now time.Time, m *monster)
	shot(now time.Time, m *monster, at *character)
	bit(now time.Time, m *monster, at *character, damage int)
}

// entity is what characters and monsters have in common.
type entity struct {
	id    uint64
	kind  string
	at    point
	way   point   // per tick
	yaw   float32 // degrees
	hp    int
	most  int       // hp
	since time.Time // when it died, zero for alive
}

// The kinds of entities in testserver.proto, and why one leaves a view.
const (
	kindCharacter = "ENTITY_KIND_CHARACTER"
	kindMonster   = "ENTITY_KIND_MONSTER"

	leaveOutOfView = "LEAVE_REASON_OUT_OF_VIEW"
	leaveDead      = "LEAVE_REASON_DEAD"
	leaveLoggedOut = "LEAVE_REASON_LOGGED_OUT"
)

func (e *entity) alive() bool { return e.since.IsZero() }

// character is somebody's, or nobody's: a walker.
type character struct {
	entity
	name   string
	home   point
	walker bool
	told   uint32    // input sequence that was last processed
	until  time.Time // when its input is over
	moved  bool      // since the last tick
	pushed bool      // the server has put it elsewhere than its input would
	fight  fight
	bag    inventory
}

// somewhere returns a place near the middle.
func (w *world) somewhere() point {
	far := int(w.settings.World.Spawn * metre)
	return point{w.random.IntN(2*far+1) - far, w.random.IntN(2*far+1) - far}
}

// add puts a character into the world.
func (w *world) add(id uint64, name string) *character {
	c := &character{name: name, home: w.somewhere()}
	c.entity = entity{id: id, kind: kindCharacter, at: c.home, hp: w.settings.Combat.CharacterHP, most: w.settings.Combat.CharacterHP}
	w.characters = append(w.characters, c)
	return c
}

// addWalker puts a character into the world that goes here and there by itself.
func (w *world) addWalker(n int) {
	c := w.add(walkerID+uint64(n), walkerNames[n%len(walkerNames)])
	c.walker = true
}

// walkerID is the id before that of the first walker, MaxWalkers how many there may
// be.
const (
	walkerID   = 900_000
	MaxWalkers = 1000
)

var walkerNames = []string{"Aldo", "Bea", "Cyr", "Dana", "Egon", "Fay", "Gil", "Hope"}

// remove takes a character out of the world.
func (w *world) remove(c *character) {
	w.characters = slices.DeleteFunc(w.characters, func(o *character) bool { return o == c })
}

// character returns the one with an id, or nil.
func (w *world) character(id uint64) *character {
	i := slices.IndexFunc(w.characters, func(c *character) bool { return c.id == id })
	if i < 0 {
		return nil
	}
	return w.characters[i]
}

// step moves everything by one tick.
func (w *world) step(now time.Time) {
	for _, c := range w.characters {
		if !c.alive() {
			w.revive(now, c)
			continue
		}
		if c.walker {
			w.stroll(now, c)
		}
		w.move(now, c)
	}
	for _, m := range w.monsters {
		w.live(now, m)
	}
}

// stroll gives a walker an input now and then.
func (w *world) stroll(now time.Time, c *character) {
	if now.Before(c.until) {
		return
	}
	d := compass[w.random.IntN(len(compass))]
	c.steer(w.settings, c.told+1, d.x, d.y, d.yaw)
	c.until = now.Add(time.Duration(1+w.random.IntN(4)) * 500 * time.Millisecond)
}

// steer takes an input.
func (c *character) steer(s *testserver.Settings, sequence uint32, x, y, yaw float32) {
	c.told, c.yaw, c.moved = sequence, yaw, true
	c.way = way(s.World.Speed, x, y)
}

// way returns the way in a tick at a speed in metres per second.
func way(speed float64, x, y float32) point {
	most := speed * metre / float64(ticksPerSecond)
	return point{int(float64(x) * most), int(float64(y) * most)}
}

// move moves a character, not beyond the edge of the world.
func (w *world) move(now time.Time, c *character) {
	if c.way != (point{}) && !now.Before(c.until) {
		c.way, c.moved = point{}, true
	}
	if c.way == (point{}) {
		return
	}
	edge := int(w.settings.World.Size * metre / 2)
	to := c.at.plus(c.way)
	at := point{min(max(to.x, -edge), edge), min(max(to.y, -edge), edge)}
	if at != to {
		c.pushed, c.way = true, at.minus(c.at)
	}
	c.at, c.moved = at, true
}

// revive has a dead character be at home again, after a while.
func (w *world) revive(now time.Time, c *character) {
	if now.Sub(c.since) < w.settings.Combat.Respawn {
		return
	}
	c.since, c.hp, c.at, c.way = time.Time{}, c.most, c.home, point{}
	c.moved, c.pushed = true, true
	w.news.hurt(&c.entity, c.most, c.id)
}

// direction is an input that a client can have, with its yaw.
type direction struct {
	name   string
	x, y   float32
	yaw    float32
	facing point
}

// diagonal is 1/sqrt(2), rounded down.
const diagonal = 0.70710677

// compass is the directions, clockwise from the north, which is where y grows.
var compass = []direction{
	{"north", 0, 1, 0, point{0, 1}},
	{"northeast", diagonal, diagonal, 45, point{1, 1}},
	{"east", 1, 0, 90, point{1, 0}},
	{"southeast", diagonal, -diagonal, 135, point{1, -1}},
	{"south", 0, -1, 180, point{0, -1}},
	{"southwest", -diagonal, -diagonal, 225, point{-1, -1}},
	{"west", -1, 0, 270, point{-1, 0}},
	{"northwest", -diagonal, diagonal, 315, point{-1, 1}},
}

// towards returns the direction from one point to another, roughly.
func towards(from, to point) direction {
	d := to.minus(from)
	facing := point{sign3(d.x, d.y), sign3(d.y, d.x)}
	i := slices.IndexFunc(compass, func(c direction) bool { return c.facing == facing })
	return compass[max(i, 0)]
}

// sign3 returns the sign of a, 0 if it is little beside b.
func sign3(a, b int) int {
	switch {
	case 5*max(a, -a) < 2*max(b, -b) || a == 0:
		return 0
	case a < 0:
		return -1
	}
	return 1
}
