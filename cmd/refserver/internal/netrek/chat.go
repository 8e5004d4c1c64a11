package netrek

import (
	"fmt"
	"time"

	"opscope/cmd/refserver/internal/script"
	"opscope/schema"
)

// Message flags, and what the top bits say of a message to everybody (section 6.6).
const (
	messageValid  = 0x01
	messageIndiv  = 0x02
	messageTeam   = 0x04
	messageAll    = 0x08
	messageConfig = 0x40

	kindConquer  = 0x20
	kindByPlanet = 0x60
	kindKill     = 0x80
	kindLeave    = 0xa0
	kindJoin     = 0xc0

	fromServer = 255
)

// The lengths of texts (section 1).
const (
	messageMost = 79 // without the NUL
	shortMost   = 71
)

// said passes on what a player says to everybody, to a team or to one player. Its
// heading is the server's: " F0->ALL  ".
func (c *session) said(now time.Time, b *schema.Tree) {
	p := c.pilot
	flags, to := b.Number("group")|messageValid, b.Number("indiv")
	address, ok := c.addressee(flags, to)
	if !ok {
		c.complain(now, "ignored", fmt.Sprintf("a message to group 0x%02x, %d", b.Number("group"), to))
		return
	}
	m := message{flags: flags, to: to, from: p.slot, heading: fmt.Sprintf(" %-8s ", p.call()+"->"+address), text: b.Text("mesg")}
	c.server.all(func(o *session) {
		switch {
		case flags&messageAll != 0, flags&messageTeam != 0 && (o.pilot.team == to || o == c), flags&messageIndiv != 0 && o.pilot.slot == to:
			o.hear(m)
		}
	})
}

// addressee returns the short name of whom a message is for, and whether there is
// such a one.
func (c *session) addressee(flags, to int) (string, bool) {
	switch {
	case flags&messageAll != 0:
		return "ALL", true
	case flags&messageTeam != 0:
		i := teamIndex(to)
		if i < 0 {
			return "", false
		}
		return teamWords[i].short, true
	case flags&messageIndiv != 0 && to < MaxSlots:
		o := c.server.world.pilots[to]
		if o.session == nil || !o.session.named {
			return "", false
		}
		if flags&messageConfig != 0 {
			return "", true // as the usual server writes it
		}
		return o.call(), true
	}
	return "", false
}

// message is what somebody hears.
type message struct {
	flags, to, from int
	heading, text   string
}

// hear tells a message, short where that is possible: one with a heading that the
// client can rebuild.
func (c *session) hear(m message) {
	if c.short != 0 && c.messages && m.from != fromServer {
		text := script.Clip(" "+m.text, shortMost)
		c.send("SP_S_MESSAGE", schema.Values{
			"m_flags": m.flags, "m_recpt": m.to, "m_from": m.from, "length": roundUp(5 + len([]rune(text)) + 1), "mesg": text,
		})
		return
	}
	c.send("SP_MESSAGE", schema.Values{"m_flags": m.flags, "m_recpt": m.to, "m_from": m.from, "mesg": script.Clip(m.heading+m.text, messageMost)})
}

// announce tells everybody something in the server's words, heading included.
func (s *server) announce(kind, from int, text string) {
	s.all(func(c *session) {
		c.send("SP_MESSAGE", schema.Values{"m_flags": messageValid | messageAll | kind, "m_recpt": 0, "m_from": from, "mesg": script.Clip(text, messageMost)})
	})
}

// roundUp rounds up to a multiple of 4.
func roundUp(n int) int { return (n + 3) &^ 3 }
