package mmo

import (
	"time"

	"opscope/schema"
)

// look spawns what has come into view, and despawns what has left it: the area of
// interest. What comes and goes at the edge does not flicker.
func (c *session) look(now time.Time) {
	w := c.server.world
	for _, o := range w.characters {
		if o == c.avatar {
			continue
		}
		switch near, far := c.sees(&o.entity); {
		case near && !c.seen[o.id]:
			c.seen[o.id] = true
			c.send("SpawnOtherCharacter", spawn(now, o))
		case far && c.seen[o.id]:
			c.lose(o.id, leaveOutOfView)
		}
	}
	for _, m := range w.monsters {
		if !m.alive() {
			continue
		}
		switch near, far := c.sees(&m.entity); {
		case near && !c.seen[m.id]:
			c.seen[m.id] = true
			c.send("SpawnMonster", schema.Values{
				"monster_id": m.id, "template_id": m.template, "position": vector(m.at, metres), "yaw": m.yaw, "hp": m.hp, "max_hp": m.most,
			})
		case far && c.seen[m.id]:
			c.lose(m.id, leaveOutOfView)
		}
	}
}

// sees reports whether an entity is near enough to be spawned, or far enough to be
// despawned; between the two it is neither.
func (c *session) sees(e *entity) (near, far bool) {
	near = e.at.within(c.avatar.at, c.server.settings.World.View)
	return near, !near && !e.at.within(c.avatar.at, c.server.settings.World.Leave)
}

// lose despawns what the client sees.
func (c *session) lose(id uint64, reason string) {
	delete(c.seen, id)
	if id >= firstMonster {
		c.send("DespawnMonster", schema.Values{"monster_id": id, "reason": reason})
		return
	}
	c.send("DespawnCharacter", schema.Values{"character_id": id, "reason": reason})
}

// watching calls f for every session that has entered, and sees an entity or has it
// for its own.
func (s *server) watching(id uint64, f func(c *session)) {
	for _, c := range s.sessions {
		if c.avatar != nil && (c.seen[id] || c.avatar.id == id) {
			f(c)
		}
	}
}

// vanished tells those who see an entity that it is gone.
func (s *server) vanished(id uint64, reason string) {
	s.watching(id, func(c *session) {
		if c.seen[id] {
			c.lose(id, reason)
		}
	})
}

// appeared has everybody see what is new, at once.
func (s *server) appeared() {
	for _, c := range s.sessions {
		if c.avatar != nil && !c.Ended() {
			c.look(s.now)
		}
	}
}

func spawn(now time.Time, c *character) schema.Values {
	return schema.Values{
		"character_id": c.id, "name": c.name, "x": metres(c.at.x), "y": metres(c.at.y), "z": float32(0), "yaw": c.yaw,
		"hp": c.hp, "max_hp": c.most, "server_time_ms": milliseconds(now),
	}
}

// vector returns a place or a speed as the messages of the test server have it.
func vector(p point, unit func(int) float32) schema.Values {
	return schema.Values{"x": unit(p.x), "y": unit(p.y), "z": float32(0)}
}
