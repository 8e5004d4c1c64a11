package wulfram

import (
	"strconv"
	"strings"
	"time"
)

// maxText is how many bytes of text a message has at most; longer ones are split
// (section 4.5). With its NUL, its length and the rest of a COMM_MESSAGE that is
// the largest ordered payload.
const maxText = 3052

// The types and scopes of a COMM_MESSAGE (section 10.10).
const (
	typeSystem = 0
	typeChat   = 5
	scopeAll   = 0
	scopeTeam  = 4
)

// pieces splits a text into parts of at most maxText bytes on the wire, where it
// can behind a space or a line break. The parts together are the text.
func pieces(text string) (parts []string) {
	rest := []rune(text) // a byte each in Latin-1
	for len(rest) > maxText {
		at := maxText
		for at > 0 && rest[at-1] != ' ' && rest[at-1] != '\n' {
			at--
		}
		if at == 0 {
			at = maxText
		}
		parts = append(parts, string(rest[:at]))
		rest = rest[at:]
	}
	return append(parts, string(rest))
}

// tell sends a message of the server's own; an empty one is none.
func (c *session) tell(now time.Time, text string) {
	if text != "" {
		c.chat(now, typeSystem, 0, scopeAll, text)
	}
}

func (c *session) chat(now time.Time, kind int, source uint32, scope int, text string) {
	for _, part := range pieces(text) {
		c.udp.send(now, "COMM_MESSAGE", fields{{"type", kind}, {"source_id", source}, {"scope", scope}, {"recipient", 0}, {"text", part}})
	}
}

// said takes what a player says, to everybody or to the own team. What begins with
// a slash is for the server.
func (c *session) said(now time.Time, v values) {
	text, scope := v.Text("text"), v.Number("scope")
	if command, ok := strings.CutPrefix(text, "/"); ok {
		c.command(now, strings.Fields(command))
		return
	}
	c.server.all(func(o *session) {
		if scope != scopeTeam || o.team == c.team {
			o.chat(now, typeChat, c.player, scope, text)
		}
	})
}

// maxFlood bounds what one command can make the server send.
const maxFlood = 2000

// command does what a player asks of the server itself, so that a script can bring
// about what would take a battle.
func (c *session) command(now time.Time, words []string) {
	if len(words) == 0 {
		return
	}
	n := 1
	if len(words) > 1 {
		n, _ = strconv.Atoi(words[1])
	}
	n = min(max(n, 0), maxFlood*10)
	switch words[0] {
	case "die":
		if c.vehicle != nil {
			c.server.kill(now, c)
		}
	case "dock":
		if pad := c.server.world.nearest(kindRepairPad, &entity{}, 4*edge); pad != nil && c.vehicle != nil {
			c.vehicle.position, c.vehicle.snapped = pad.position, true
		}
	case "long":
		c.tell(now, strings.Repeat("All work and no play. ", n/22+1)[:n])
	case "flood":
		for i := range min(n, maxFlood) {
			c.tell(now, "line "+strconv.Itoa(i))
		}
	case "reset":
		c.server.reset(now)
	default:
		c.tell(now, "no such command: "+words[0])
	}
}

// reset begins the match anew: everybody loses vehicle and score.
func (s *server) reset(now time.Time) {
	s.all(func(c *session) {
		s.lose(now, c)
		c.kills, c.deaths = 0, 0
		c.udp.send(now, "RESET_GAME", nil)
		c.udp.send(now, "WORLD_STATS", worldFields())
	})
}
