package mmo

import "time"

// monster stands at home until a character comes into its sight; then it goes there,
// shoots, and bites.
type monster struct {
	entity
	template uint32
	home     point
	prey     *character
	acted    time.Time // when it last shot or bit
	showed   time.Time // when its movement was last told
}

// firstMonster is the id of the first monster: ids are numbers of 64 bits.
const firstMonster = 1 << 60

func (w *world) addMonster(n int) {
	m := &monster{template: 300 + uint32(n%3), home: w.somewhere()}
	m.entity = entity{id: firstMonster + uint64(n), kind: kindMonster, at: m.home, hp: w.settings.Monsters.HP, most: w.settings.Monsters.HP}
	w.monsters = append(w.monsters, m)
}

// showEvery is how often the movement of a monster is told while it goes on.
const showEvery = 500 * time.Millisecond

// live has a monster do what it does in a tick.
func (w *world) live(now time.Time, m *monster) {
	if !m.alive() {
		if now.Sub(m.since) >= w.settings.Combat.Respawn {
			m.since, m.hp, m.at, m.way, m.prey = time.Time{}, m.most, m.home, point{}, nil
		}
		return
	}
	m.prey = w.preyOf(m)
	next := point{}
	if p := m.prey; p != nil {
		d := towards(m.at, p.at)
		m.yaw = d.yaw
		if reach := p.at.within(m.at, w.settings.Monsters.Reach); !reach {
			next = way(w.settings.Monsters.Speed, d.x, d.y)
			w.act(now, m, w.shoot)
		} else {
			w.act(now, m, w.bite)
		}
	}
	if turned := next != m.way; turned || next != (point{}) && now.Sub(m.showed) >= showEvery {
		m.way, m.showed = next, now
		w.news.turned(now, m)
	}
	m.at = m.at.plus(m.way)
}

// preyOf returns the nearest character in sight, or nil.
func (w *world) preyOf(m *monster) (found *character) {
	best := 0
	for _, c := range w.characters {
		d := c.at.minus(m.at)
		far := d.x*d.x + d.y*d.y
		if c.alive() && !c.walker && c.at.within(m.at, w.settings.Monsters.Sight) && (found == nil || far < best) {
			found, best = c, far
		}
	}
	return found
}

// act has a monster attack its prey, not too often. The first attack waits as well.
func (w *world) act(now time.Time, m *monster, attack func(time.Time, *monster)) {
	switch {
	case m.acted.IsZero():
		m.acted = now
	case now.Sub(m.acted) >= w.settings.Monsters.Interval:
		m.acted = now
		attack(now, m)
	}
}

func (w *world) shoot(now time.Time, m *monster) {
	w.news.shot(now, m, m.prey)
	if w.random.IntN(2) == 0 { // or it misses
		w.damage(now, &m.prey.entity, 1+w.settings.Monsters.Damage/2, m.id)
	}
}

func (w *world) bite(now time.Time, m *monster) {
	n := w.settings.Monsters.Damage
	w.news.bit(now, m, m.prey, n)
	w.damage(now, &m.prey.entity, n, m.id)
}

// damage takes hp from an entity, which may die of it.
func (w *world) damage(now time.Time, e *entity, n int, source uint64) {
	n = min(n, e.hp)
	e.hp -= n
	w.news.hurt(e, -n, source)
	if e.hp > 0 {
		return
	}
	e.since, e.way = now, point{}
	if e.kind == kindMonster {
		w.news.vanished(e.id, leaveDead)
	}
}
