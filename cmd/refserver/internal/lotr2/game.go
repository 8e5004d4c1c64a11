package lotr2

import (
	"encoding/binary"
	"hash/fnv"
	"time"

	"opscope/schema"
)

const (
	// tickEvery is how often a tick is told, and tickStep how many of the game's go by in
	// it (section 7.1).
	tickEvery = 100 * time.Millisecond
	tickStep  = 10
	// milestoneEvery ticks a milestone is told, which is ahead by some.
	milestoneEvery = 1000
	milestoneAhead = 40
	// turnAhead is how many ticks after the last player's end of turn the turn ends, and
	// decideAfter how long the host takes to say so.
	turnAhead   = 100
	decideAfter = 600 * time.Millisecond
	// reportEvery ticks the state of a battle is reported.
	reportEvery = 130
	// firstTicks are told after a turn before the ticks begin once more.
	firstTicks = 4

	againAfter  = 48 * time.Millisecond // between the two ends of a turn of a player
	reportAfter = 10 * time.Millisecond // behind the tick that ends a turn
	reportAgain = 50 * time.Millisecond
	doneAfter   = 10 * time.Millisecond // behind the host's second report
	restAfter   = 200 * time.Millisecond
	orderAgain  = 30 * time.Millisecond
	startAfter  = 300 * time.Millisecond // between the start of a campaign and its ticks
)

// game is what runs in step on all peers.
type game struct {
	generation int // counts the times that ticks were started or stopped: older errands do nothing
	running    bool
	battle     bool
	tick       int
	told       int // ticks that were told since they began
	restarts   int // how often they are to begin once more
	seeds      [2]uint32
	turn       int         // from 1
	ends       int         // the tick at which the turn ends, 0 while that is not known
	ended      map[int]int // who has ended the turn, and when; of the host
	ending     bool        // the host is about to end its own
	finished   bool        // the turn's state was reported twice
	done       bool        // and before that, the host said that the turn is done
	reports    int         // states that were reported
	orders     int
	marks      int
	turns      int  // that are over, and were not waited for
	chats      int  // that came, and were not waited for
	noticed    bool // the set-up of a skirmish was
	apart      bool // this peer's state is not that of the others, on purpose
}

// awaited reports whether something that a script may wait for is there.
func (g *game) awaited(what string) bool {
	switch what {
	case "start":
		return g.running
	case "turn":
		if g.turns == 0 {
			return false
		}
		g.turns-- // each is waited for once
	case "chat":
		if g.chats == 0 {
			return false
		}
		g.chats--
	}
	return true
}

// startTurns begins a campaign.
func (p *peer) startTurns(now time.Time, a, b uint32) {
	p.game = game{generation: p.game.generation + 1, turn: 1, seeds: [2]uint32{a, b}, apart: p.game.apart, chats: p.game.chats}
	p.afterHere(now, startAfter, func(now time.Time) { p.startTicks(now, false) })
}

// startTicks has the ticks run from the beginning.
func (p *peer) startTicks(now time.Time, battle bool) {
	g := &p.game
	g.generation++
	g.running, g.battle, g.tick, g.told, g.ends, g.ended = true, battle, 0, 0, 0, map[int]int{}
	g.ending, g.finished, g.done = false, false, false
	p.nextTick(now)
}

// stopTicks ends them.
func (p *peer) stopTicks() {
	p.game.generation++
	p.game.running = false
}

// afterHere has something done in a while, unless ticks are started or stopped before.
func (p *peer) afterHere(now time.Time, d time.Duration, do func(now time.Time)) {
	generation := p.game.generation
	p.after(now, d, func(now time.Time) {
		if p.game.generation == generation {
			do(now)
		}
	})
}

func (p *peer) nextTick(now time.Time) { p.afterHere(now, tickEvery, p.step) }

// step tells the next tick, and what belongs to it.
func (p *peer) step(now time.Time) {
	g := &p.game
	g.tick += tickStep
	if g.tick%milestoneEvery == 0 {
		p.say(now, "tick_milestone", schema.Values{"tick": g.tick + milestoneAhead})
	}
	if g.battle && g.tick%reportEvery == 0 {
		p.report(now)
	} else {
		p.say(now, "tick_reached", schema.Values{"tick": g.tick & 0xffff, "byte_2": 0, "player_number": p.number})
	}
	if g.told++; g.restarts > 0 && g.told == firstTicks {
		g.restarts, g.tick, g.told = g.restarts-1, 0, 0
	}
	if g.ends != 0 && g.tick >= g.ends {
		p.finishTurn(now)
		return
	}
	p.nextTick(now)
}

// turned takes what all peers do alike about turns and chat.
func (p *peer) turned(now time.Time, f received) {
	b := body{f.Body}
	switch f.Message {
	case "campaign_start":
		p.startTurns(now, b.id("word_0"), b.id("word_4"))
	case "turn_ends_at_tick":
		p.game.ends = b.Number("tick")
	case "turn_done":
		p.turnDone(now)
	case "chat":
		p.game.chats++
	}
}

// endTurn ends the own turn; two messages say so, in slots of their own.
func (p *peer) endTurn(now time.Time) {
	say := func(now time.Time) {
		g := &p.game
		p.say(now, "player_ended_the_turn", schema.Values{
			"tick": g.tick & 0xffff, "byte_2": 0, "player_number": p.number, "byte_4": (g.turn+2)%4 + 1,
		})
	}
	say(now)
	p.afterHere(now, againAfter, say)
	if p.number == hostNumber {
		p.turnEnded(now, p.number, p.game.tick)
	}
}

// turnEnded notes that a player has ended the turn. When all have, the host says at
// which tick it ends.
func (p *peer) turnEnded(now time.Time, number, tick int) {
	g := &p.game
	if !g.running || g.battle || g.ends != 0 {
		return
	}
	if _, before := g.ended[number]; before {
		return
	}
	g.ended[number] = tick
	if len(g.ended) <= len(p.joined()) {
		return
	}
	last := 0
	for _, t := range g.ended {
		last = max(last, t)
	}
	g.ends = last + turnAhead
	p.afterHere(now, decideAfter, func(now time.Time) { p.say(now, "turn_ends_at_tick", schema.Values{"tick": g.ends}) })
}

// finishTurn reports the state twice; then the host says that the turn is done.
func (p *peer) finishTurn(now time.Time) {
	p.afterHere(now, reportAfter, p.report)
	p.afterHere(now, reportAfter+reportAgain, func(now time.Time) {
		p.game.reports-- // the same once more
		p.report(now)
		if p.game.finished = true; p.game.done {
			p.rest(now)
			return
		}
		if p.number == hostNumber {
			p.afterHere(now, doneAfter, func(now time.Time) {
				p.say(now, "turn_done", schema.Values{"byte_0": 1})
				p.rest(now)
			})
		}
	})
}

// turnDone has a peer rest, but not one whose ticks are behind the host's: what it is to
// report is the state of the turn that is done.
func (p *peer) turnDone(now time.Time) {
	if g := &p.game; g.ends != 0 && !g.finished {
		g.done = true
		return
	}
	p.rest(now)
}

// rest begins the next turn after a while. Its ticks begin twice, as in both turn
// changes of lotr2.pcapng.
func (p *peer) rest(now time.Time) {
	g := &p.game
	g.turn++
	g.turns++
	g.restarts = 1
	p.afterHere(now, restAfter, func(now time.Time) { p.startTicks(now, false) })
}

// report tells of the own state, which is that of all others at the same tick. Real
// peers differ by a few in a number that nobody can explain.
func (p *peer) report(now time.Time) {
	g := &p.game
	message := "turn_end_state_report"
	if g.battle {
		message = "battle_state_report"
	}
	p.say(now, message, schema.Values{
		"tick": g.tick & 0xffff, "byte_2": 0, "player_number": p.number, "i16_4": 55 + p.random.IntN(6), "shared_state": g.state(),
	})
	g.reports++
}

// state is ten bytes that peers have in common as long as they are in step: here what
// the campaign began with, how far it is, and an odd counter of seven bits.
func (g *game) state() []byte {
	sum := fnv.New64a()
	for _, n := range []uint32{g.seeds[0], g.seeds[1], uint32(g.turn), uint32(g.tick), uint32(truth(g.apart))} {
		_, _ = sum.Write(binary.LittleEndian.AppendUint32(nil, n))
	}
	return append(sum.Sum(nil), 0, byte(2*g.reports+1)&0x7f)
}

// order gives an order in a battle: one message and two repetitions, each in a slot of
// its own.
func (p *peer) order(now time.Time, x, y int) {
	p.game.orders++
	number := p.game.orders
	tick := p.game.tick & 0xffff
	say := func(now time.Time, repeat int) {
		p.say(now, "unit_order_in_battle", schema.Values{
			"tick": tick, "byte_2": 0, "player_number": p.number, "unit_mask": uint64(1)<<(number%20) | 1, "word_12": 0,
			"x": x, "y": y, "target": 0, "order_number": number, "repeat": repeat,
		})
	}
	say(now, 0)
	for i := 1; i < copies; i++ {
		p.afterHere(now, time.Duration(i)*orderAgain, func(now time.Time) { say(now, 1) })
	}
}

// county is a number that goes with trade, as it was seen of the host and of the first
// joiner.
func (p *peer) county() int { return map[int]int{1: 11, 2: 4}[p.number] }

// trade buys or sells. All but the quantity is as in the packets 1661 and 4492 of
// lotr2.pcapng.
func (p *peer) trade(now time.Time, quantity int) {
	v := schema.Values{
		"byte_0": 1, "quantity": quantity, "kind": 1, "i32_6": 4, "i32_10": 2, "player_number": p.number, "byte_15": p.county(),
	}
	if quantity < 0 {
		v["kind"], v["i32_6"], v["i32_10"] = 2, 24, 12
	}
	p.say(now, "trade", v)
}

// mark sends the message of two bytes that nobody can explain: a county, it seems, and
// a counter.
func (p *peer) mark(now time.Time) {
	p.game.marks++
	p.say(now, "unknown(0x23)", schema.Values{"byte_0": p.county(), "counter": p.game.marks & 0xff})
}
