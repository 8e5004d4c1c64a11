package lotr2

import (
	"strconv"
	"strings"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/script"
	"opscope/schema"
)

// What a name, chat and a letter can hold: a NUL stands behind it.
const (
	nameMost   = 19
	textMost   = 64
	letterMost = 201
)

// progress is how far a script has come.
type progress struct {
	script.Cursor
	ready bool // it may be followed
}

// follow does the commands of the script until it has to wait. A joiner leaves behind
// the last.
func (p *peer) follow(now time.Time) {
	s := &p.progress
	for s.ready && !p.over && !s.Asleep(now) {
		c, more := s.Next()
		if !more {
			p.role.followed(now)
			return
		}
		if !p.do(now, c) {
			return
		}
		if s.Done() && !s.Asleep(now) {
			p.sleep(now, script.RepeatEvery)
		}
	}
}

// sleep has the script wait.
func (p *peer) sleep(now time.Time, d time.Duration) {
	p.progress.Sleep(now.Add(d))
	p.after(now, d, func(time.Time) {}) // the script goes on behind it
}

// do does one command, which was checked when it was read. It reports whether it is
// done; if not it is tried again when something has happened.
func (p *peer) do(now time.Time, c script.Command) bool {
	text := strings.Join(c.Words, " ")
	switch c.Verb {
	case "wait":
		d, _ := time.ParseDuration(text)
		p.sleep(now, d)
	case "say":
		p.say(now, "chat", schema.Values{"player_number": p.number, "text": script.Clip(text, textMost)})
	case "letter":
		to, _ := strconv.Atoi(c.Words[0])
		p.say(now, "letter_between_players", schema.Values{
			"from_player_number": p.number, "to_player_number": to, "word_8": 1, "word_12": 0, "word_16": 0,
			"text": script.Clip(strings.Join(c.Words[1:], " "), letterMost),
		})
	case "trade":
		n, _ := strconv.Atoi(c.Words[0])
		p.trade(now, n)
	case "mark":
		p.mark(now)
	case "end-turn":
		p.endTurn(now)
	case "order":
		x, _ := strconv.Atoi(c.Words[0])
		y, _ := strconv.Atoi(c.Words[1])
		p.order(now, x, y)
	case "ping":
		for _, l := range p.joined() {
			p.ping(now, l)
		}
	case "desync":
		p.game.apart = true
	case "opcode":
		p.unknown(now, c.Words)
	case "odd":
		p.odd = oddities[c.Words[0]]
	default:
		return p.role.do(now, c)
	}
	return true
}

// unknown sends a message that no schema has.
func (p *peer) unknown(now time.Time, words []string) {
	opcode, payload, _ := messageOf(words)
	r := machine.Record{
		Message: p.lotr2.OpcodeName(opcode), Opcode: int(opcode), Mode: -1, Seq: -1, Length: -1, Opaque: true,
		Body: schema.NewTree(schema.Values{"opaque": payload}), Note: "the message is made up",
	}
	p.post(now, p.joined(), 0, r, payload)
}
