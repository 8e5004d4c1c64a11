package wulfram

import (
	"math"
	"math/rand/v2"
	"slices"
)

// The entity types that this world has (section 8.4).
const (
	kindTank       = 0
	kindScout      = 1
	kindBomber     = 3
	kindCargoBox   = 19
	kindUplink     = 20
	kindSupplyShip = 21
	kindRepairPad  = 27
	kindTurret     = 30
	kindDecoration = 37
)

// inhabitants are the types of a world's entities, over and over.
var inhabitants = []int{kindTank, kindRepairPad, kindTurret, kindCargoBox, kindSupplyShip, kindDecoration, kindScout, kindUplink, kindBomber}

const (
	firstEntity = 1000 // the id of the first entity
	ground      = 3.5  // the height at which vehicles hover
	edge        = 8000 // how far from the middle anything gets
	maxBoxes    = 32   // boxes that players dropped; the oldest goes first
)

type vec struct{ x, y, z float64 }

func (v vec) distance(w vec) float64 { return math.Hypot(v.x-w.x, v.y-w.y) }

// fixed returns v as three numbers of 16.16.
func (v vec) fixed() list { return list{fixed(v.x), fixed(v.y), fixed(v.z)} }

// path is a circle that an entity follows, so that where it is depends on nothing
// but the time.
type path struct {
	centre        vec
	radius, phase float64
	rate          float64 // radians a second
}

// entity is something in the world.
type entity struct {
	id       uint32
	kind     int
	team     int
	position vec
	velocity vec
	rotation vec // radians
	spin     vec
	health   float64 // 0 to 1
	energy   float64
	path     *path    // nil for what stands still or is driven
	driver   *session // who drives it, nil for nobody
	cargo    int
	gone     float64 // seconds until it comes back, 0 while it is there
	snapped  bool    // it has jumped to where it is
}

// static reports whether an entity never moves.
func (e *entity) static() bool { return e.path == nil && e.driver == nil }

// world is what the server simulates.
type world struct {
	random   *rand.Rand
	rules    rules
	entities []*entity
	boxes    []*entity
	nextID   uint32
	seconds  float64 // since it began
}

func newWorld(seed uint64, n int) *world {
	w := &world{random: rand.New(rand.NewPCG(seed, 1)), rules: rules{widths: translation(), weapons: armed}, nextID: firstEntity}
	for i := range n {
		w.populate(inhabitants[i%len(inhabitants)], i)
	}
	return w
}

// populate adds the world's i-th entity.
func (w *world) populate(kind, i int) {
	at := vec{w.random.Float64()*2000 - 1000, w.random.Float64()*2000 - 1000, ground}
	e := w.add(kind, i%3, at)
	switch kind {
	case kindTank, kindScout, kindBomber, kindSupplyShip:
		e.path = &path{centre: at, radius: 50 + w.random.Float64()*200, phase: w.random.Float64() * 6, rate: 0.1 + w.random.Float64()*0.4}
	}
}

func (w *world) add(kind, team int, at vec) *entity {
	e := &entity{id: w.nextID, kind: kind, team: team, position: at, health: 1, energy: 1, cargo: int(w.nextID) % 12}
	w.nextID++
	w.entities = append(w.entities, e)
	return e
}

func (w *world) remove(e *entity) {
	w.entities = slices.DeleteFunc(w.entities, func(o *entity) bool { return o == e })
}

// drop leaves a box, and returns the one that gives way to it, or nil.
func (w *world) drop(kind, team int, at vec) (gone *entity) {
	box := w.add(kind, team, at)
	box.snapped = true
	w.boxes = append(w.boxes, box)
	if len(w.boxes) > maxBoxes {
		gone, w.boxes = w.boxes[0], w.boxes[1:]
		w.remove(gone)
	}
	return gone
}

// nearest returns the entity of a kind that is nearest to a place and not farther
// than within, or nil. A kind of -1 is any that can be hit.
func (w *world) nearest(kind int, from *entity, within float64) (found *entity) {
	for _, e := range w.entities {
		if e == from || e.gone > 0 || kind >= 0 && e.kind != kind || kind < 0 && e.kind == kindDecoration {
			continue
		}
		if d := e.position.distance(from.position); d <= within {
			found, within = e, d
		}
	}
	return found
}

// step moves everything by dt seconds, and brings back what was gone for long
// enough.
func (w *world) step(dt float64) {
	w.seconds += dt
	for _, e := range w.entities {
		if e.gone > 0 {
			if e.gone = math.Max(0, e.gone-dt); e.gone == 0 {
				e.health, e.snapped = 1, true
			}
		}
		switch {
		case e.path != nil:
			e.follow(w.seconds)
		case e.driver != nil:
			e.drive(&e.driver.inputs, dt)
		}
	}
}

// follow puts an entity where its path is at a time.
func (e *entity) follow(seconds float64) {
	p := e.path
	angle := p.phase + p.rate*seconds
	sin, cos := math.Sincos(angle)
	e.position = vec{p.centre.x + p.radius*cos, p.centre.y + p.radius*sin, ground + math.Sin(seconds)}
	e.velocity = vec{-p.radius * p.rate * sin, p.radius * p.rate * cos, math.Cos(seconds)}
	e.rotation = vec{0, 0, turned(angle + math.Pi/2)}
	e.spin = vec{0, 0, p.rate}
	e.energy = 0.75 + 0.25*cos
}

// drive moves a vehicle as its driver's inputs say (channels: section 8.3).
func (e *entity) drive(in *inputs, dt float64) {
	e.spin = vec{0, 0, -1.5 * in[channelTurn]}
	e.rotation.z = turned(e.rotation.z + e.spin.z*dt)
	sin, cos := math.Sincos(e.rotation.z)
	ahead, aside := 40*in[channelForward], 20*in[channelStrafe]
	lift := 0.0
	if in[channelJump] > 0 && e.energy > 0.05 {
		lift = 10
		e.energy -= 0.2 * dt
	}
	e.velocity = vec{ahead*cos - aside*sin, ahead*sin + aside*cos, lift - min(10, e.position.z-ground)}
	e.position.x = bounded(e.position.x + e.velocity.x*dt)
	e.position.y = bounded(e.position.y + e.velocity.y*dt)
	e.position.z = max(ground, e.position.z+e.velocity.z*dt)
	e.energy = min(1, e.energy+0.05*dt)
}

// turned returns an angle within half a turn of 0.
func turned(angle float64) float64 { return math.Remainder(angle, 2*math.Pi) }

func bounded(v float64) float64 { return min(max(v, -edge), edge) }
