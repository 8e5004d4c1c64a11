package mmo

import (
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
)

// chat hands a line on to everybody, its sender too.
func (c *session) chat(now time.Time, id int, b body) {
	text := string(b.bytes("text")) // as it came, to judge it
	if text == "" || len(text) > c.server.settings.World.Chat || !utf8.ValidString(text) {
		c.refuse(now, id, codeInvalidData, "no line of chat")
		return
	}
	for _, o := range c.server.sessions {
		if o.avatar != nil {
			o.send("ChatNtf", schema.Values{
				"character_id": c.avatar.id, "name": c.avatar.name, "text": text, "server_time_ms": milliseconds(now),
			})
		}
	}
}

// attack answers an attack, and tells those who see it.
func (c *session) attack(now time.Time, id int, b body) {
	s := c.server
	sequence, step := uint32(b.uint("attack_sequence")), uint32(b.uint("combo_step"))
	if step < 1 || step > uint32(s.settings.Combat.Combo) {
		c.refuse(now, id, codeInvalidData, "no step of a combo")
		return
	}
	hit, refusal := s.world.attack(now, c.avatar, sequence, step)
	c.send("AttackAck", schema.Values{
		"success": refusal == "", "message": refusal, "attack_sequence": sequence, "combo_step": step, "server_time_ms": milliseconds(now),
	})
	if refusal != "" {
		return
	}
	targets := []any{}
	if hit != nil {
		targets = append(targets, hit.id)
	}
	s.watching(c.avatar.id, func(o *session) {
		if o != c {
			o.send("AttackNotify", schema.Values{
				"character_id": c.avatar.id, "attack_sequence": sequence, "combo_step": step, "target_ids": targets, "server_time_ms": milliseconds(now),
			})
		}
	})
	if hit == nil {
		return
	}
	if s.cfg.Development {
		c.send("CombatDebugNotify", schema.Values{
			"character_id": c.avatar.id, "text": fmt.Sprintf("step %d hits %d", step, hit.id), "distance": distance(c.avatar.at, hit.at),
		})
	}
	s.world.damage(now, &hit.entity, s.settings.Combat.Damage, c.avatar.id)
}

// distance is in metres.
func distance(p, q point) float64 {
	d := p.minus(q)
	return math.Sqrt(float64(d.x*d.x+d.y*d.y)) / metre
}

// operate answers a request about the inventory: with the state after it, or before
// it where somebody has asked for another one. Other refusals have no state.
func (c *session) operate(now time.Time, r machine.Record, b body) {
	s, bag := c.server, &c.avatar.bag
	request := b.bytes("client_request_id")
	if len(request) == 0 {
		c.refuse(now, r.Opcode, codeInvalidData, "no request id")
		return
	}
	if answer := bag.known(request); answer != nil {
		s.observer.Event(now, "repeated", fmt.Sprintf("%s: request %x was answered before", c.Address, request))
		c.send("InventoryOperationResult", answer)
		return
	}
	refusal := s.world.operate(bag, r.Message, b)
	answer := schema.Values{"success": refusal == "", "message": refusal, "client_request_id": request}
	if refusal == "" || refusal == conflict {
		answer["snapshot"] = bag.snapshot(s.settings)
	}
	bag.remember(s.settings, request, answer)
	c.send("InventoryOperationResult", answer)
}

// hurt tells of hp that have changed.
func (s *server) hurt(e *entity, change int, source uint64) {
	s.watching(e.id, func(c *session) {
		c.send("EntityHpChanged", schema.Values{
			"kind": e.kind, "entity_id": e.id, "hp": e.hp, "max_hp": e.most, "change": change, "source_id": source,
		})
	})
}

// turned tells how a monster moves.
func (s *server) turned(now time.Time, m *monster) {
	s.watching(m.id, func(c *session) {
		c.send("MonsterMoveNotify", schema.Values{
			"monster_id": m.id, "position": vector(m.at, metres), "velocity": vector(m.way, speed), "yaw": m.yaw, "server_time_ms": milliseconds(now),
		})
	})
}

// shot tells of a monster that shoots.
func (s *server) shot(now time.Time, m *monster, at *character) {
	s.watching(m.id, func(c *session) {
		c.send("MonsterRangedShotNotify", schema.Values{
			"monster_id": m.id, "start": vector(m.at, metres), "end": vector(at.at, metres), "server_time_ms": milliseconds(now),
		})
	})
	s.debug(m, at, "shoots at")
}

// bit tells of a monster that bites.
func (s *server) bit(now time.Time, m *monster, at *character, damage int) {
	s.watching(m.id, func(c *session) {
		c.send("MonsterAttackNotify", schema.Values{
			"monster_id": m.id, "target_id": at.id, "damage": damage, "server_time_ms": milliseconds(now),
		})
	})
	s.debug(m, at, "bites")
}

// debug is what development builds say of a monster's fights.
func (s *server) debug(m *monster, at *character, does string) {
	if !s.cfg.Development {
		return
	}
	s.watching(at.id, func(c *session) {
		c.send("MonsterCombatDebugNotify", schema.Values{
			"monster_id": m.id, "text": fmt.Sprintf("%s %s", does, at.name), "distance": distance(m.at, at.at),
		})
	})
}
