package netrek

import "opscope/schema"

// weapons tells what one player has fired. Of what was never there nothing is told.
func (c *session) weapons(p *pilot) {
	if c.short != 0 && !(p == c.pilot && c.has("FULL_WEAPON_RESOLUTION")) {
		c.shortTorps(p)
	} else {
		for i := range p.torps {
			c.torp(p.slot*shotCount+i, &p.torps[i])
		}
	}
	c.plasma(p)
	if c.short == shortV2 {
		c.shortPhaser(p)
	} else if f := &p.phaser; f.status != phaserFree || c.seen("SP_PHASER", p.slot) {
		c.show("SP_PHASER", p.slot, schema.Values{
			"pnum": p.slot, "status": f.status, "dir": int(f.dir), "x": f.x, "y": f.y, "target": f.target,
		})
	}
}

func (c *session) torp(number int, t *shot) {
	if t.status == shotFree && !c.seen("SP_TORP_INFO", number) {
		return
	}
	c.show("SP_TORP_INFO", number, schema.Values{"war": t.war, "status": t.status, "tnum": number})
	if t.status != shotFree {
		c.show("SP_TORP", number, schema.Values{"dir": int(t.dir), "tnum": number, "x": t.x, "y": t.y})
	}
}

func (c *session) plasma(p *pilot) {
	s := &p.plasma
	if s.status == shotFree && !c.seen("SP_PLASMA_INFO", p.slot) {
		return
	}
	c.show("SP_PLASMA_INFO", p.slot, schema.Values{"war": s.war, "status": s.status, "pnum": p.slot})
	if s.status != shotFree {
		c.show("SP_PLASMA", p.slot, schema.Values{"pnum": p.slot, "x": s.x, "y": s.y})
	}
}
