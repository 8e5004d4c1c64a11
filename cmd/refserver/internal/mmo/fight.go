package mmo

import "time"

// fight is what a character has done in its fights.
type fight struct {
	sequence uint32 // of its last attack
	step     uint32 // of its combo, 0 for none
	at       time.Time
}

// attack has a character attack what is in its reach. It returns the monster that it
// hits, nil for none, and why not, "" for done.
func (w *world) attack(now time.Time, c *character, sequence, step uint32) (hit *monster, refusal string) {
	f := &c.fight
	switch {
	case !c.alive():
		return nil, "dead"
	case sequence <= f.sequence:
		return nil, "old sequence"
	case !f.at.IsZero() && now.Sub(f.at) < w.settings.Combat.Cooldown:
		return nil, "cooldown"
	case step != 1 && step != f.step+1:
		return nil, "out of combo"
	}
	f.sequence, f.step, f.at = sequence, step, now
	return w.inReach(c), ""
}

// inReach returns the nearest monster that a character reaches, or nil.
func (w *world) inReach(c *character) (found *monster) {
	best := 0
	for _, m := range w.monsters {
		d := m.at.minus(c.at)
		far := d.x*d.x + d.y*d.y
		if m.alive() && m.at.within(c.at, w.settings.Combat.Reach) && (found == nil || far < best) {
			found, best = m, far
		}
	}
	return found
}
