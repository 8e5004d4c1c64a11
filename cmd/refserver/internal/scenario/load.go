package scenario

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"opscope/cmd/refserver/internal/tape"
)

// Usual returns a session of a protocol as any evening has many: a server, and a few
// players who come, move, talk and leave, as the seed has it. Nothing goes wrong. They stay
// for some ten seconds, or times as long. ok is false for a protocol that is not played
// here.
func Usual(protocol string, seed uint64, times int) (s Scenario, ok bool) {
	c := newChance(seed, 9)
	const doc = "what players usually do, drawn from the seed"
	name, most := "load", time.Duration(times)*time.Minute
	switch protocol {
	case "wulfram":
		return wulframScenario(name, doc, most, Faults{}, wulframGame(c, times, 2+c.IntN(6))), true
	case "netrek":
		g := crew{near: true}
		for i := range 2 + c.IntN(2) {
			habits := netrekHabits
			habits.begin = []string{"outfit fed cruiser", "outfit rom cruiser\nudp port", "outfit fed scout\nudp port\nshort v2"}[i%3]
			g.pilots = append(g.pilots, pilot{script: usual(c, habits, times), start: time.Duration(i) * 300 * time.Millisecond})
		}
		return netrekScenario(name, doc, most, Faults{}, g), true
	case "lotr2":
		script := usual(c, lotr2Habits, times)
		p := party{host: "long", joiners: []guest{{script: script}}, directed: true}
		return lotr2Scenario(name, doc, most, apart(Faults{}), p), true
	case "mmo":
		p := crowd{walkers: c.IntN(6)}
		for i := range 2 + c.IntN(2) {
			p.members = append(p.members, member{script: usual(c, mmoHabits, times), start: time.Duration(i) * 400 * time.Millisecond})
		}
		return mmoScenario(name, doc, most, Faults{}, p), true
	}
	return s, false
}

// wulframGame is a game of a few players among so many entities.
func wulframGame(c *rand.Rand, times, entities int) game {
	g := game{entities: entities}
	for i := range 2 + c.IntN(2) {
		g.players = append(g.players, player{script: usual(c, wulframHabits, times), start: time.Duration(i) * 700 * time.Millisecond})
	}
	return g
}

// Crowded returns a usual session of Wulfram with so many entities that the updates of them
// are long.
func Crowded(seed uint64, times int) Scenario {
	const entities = 32
	return wulframScenario("crowd", "what players usually do, in a crowd", time.Duration(times)*time.Minute, Faults{},
		wulframGame(newChance(seed, 9), times, entities))
}

// habits are what players of a game do.
type habits struct {
	begin, end string   // the first and the last commands
	often      []string // commands with a number, %d, from 0 up to most
	most       int
	say        string // the command that says something
	times      int    // how many of them in ten seconds
	wait       time.Duration
}

var (
	wulframHabits = habits{
		begin: "team red\nspawn 1 tank\nwait 300ms", end: "leave", say: "say", times: 40, wait: 250 * time.Millisecond, most: 2,
		often: []string{"move forward %d", "move turn %d", "move fire %d", "look 100%d", "move jump %d", "move strafe %d"},
	}
	netrekHabits = habits{
		end: "leave", say: "say", times: 25, wait: 400 * time.Millisecond, most: 200,
		often: []string{"course %d", "torp %d", "phaser %d", "course %d"},
	}
	lotr2Habits = habits{
		begin: "choose 3\nawait start", end: "end-turn\nawait turn\nwait 300ms\nleave", say: "say", times: 40,
		wait: 300 * time.Millisecond, most: 40, often: []string{"trade %d", "trade -%d", "letter 2 hail %d"},
	}
	mmoHabits = habits{
		end: "leave", say: "say", times: 20, wait: 400 * time.Millisecond, most: 3,
		often: []string{"walk north", "walk southeast", "walk west", "stop", "attack %d"},
	}
)

// phrases are what is said.
var phrases = []string{
	"hello there", "on my way", "where is everybody?", "good shot", "I need repairs at the eastern pad, and soon", "gg",
	"they come from the north, three of them", "wait for me", "thanks",
}

// usual returns a script as one has it who follows habits.
func usual(c *rand.Rand, h habits, times int) string {
	var b strings.Builder
	b.WriteString(h.begin + "\n")
	for range h.times * times {
		what := h.often[c.IntN(len(h.often))]
		switch {
		case c.IntN(8) == 0:
			what = h.say + " " + phrases[c.IntN(len(phrases))]
		case strings.Contains(what, "%d"):
			what = fmt.Sprintf(what, c.IntN(h.most+1))
		}
		b.WriteString(what + "\nwait " + strconv.Itoa(int(h.wait.Milliseconds())/2+c.IntN(int(h.wait.Milliseconds()))) + "ms\n")
	}
	return b.String() + h.end
}

// Reel is a capture in memory.
type Reel []tape.Shot

// Write appends a packet, whose bytes the reel keeps.
func (r *Reel) Write(s *tape.Shot) error {
	*r = append(*r, *s)
	return nil
}

// Rehearse plays the scenario into memory.
func (s *Scenario) Rehearse(seed uint64) (Reel, *Result, error) {
	var reel Reel
	n, err := s.shoot(&reel, seed)
	if err != nil {
		return nil, nil, s.failed(seed, err)
	}
	return reel, s.result(n, seed), nil
}
