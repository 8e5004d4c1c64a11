package lotr2

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/script"
	"opscope/schema"
)

// inGame returns a player of lotr2.pcapng in the middle of the game, with a link to the
// other one.
func inGame(number int) *peer {
	const hostID, joinerID = 0x7ec7, 0x7ec5
	p := newPeer(Config{Place: placeOf(hostAddr)}, schema.Server, schema.Client, nil)
	p.number, p.user, p.begun = number, hostID, true
	other := uint32(joinerID)
	if number != hostNumber {
		p.user, other, p.side, p.others = joinerID, hostID, schema.Client, schema.Server
	}
	p.role = &host{peer: p}
	l := p.link(epoch, joinerAddr, StreamPort)
	l.user, l.out, l.open = other, 1, true
	p.game = game{turn: 1, ended: map[int]int{}}
	return p
}

// TestActionsAreTheRealOnes wants each action to send what a real client of
// lotr2.pcapng sent.
func TestActionsAreTheRealOnes(t *testing.T) {
	frames := vectors(t)
	for _, test := range []struct {
		vector       string
		number, slot int
		sends        int
		do           func(p *peer, now time.Time)
	}{
		{"op0a-tick-host", 1, 19, 1, func(p *peer, now time.Time) { p.step(now) }},
		{"op0b-tick", 2, 23, 4, func(p *peer, now time.Time) { p.game.tick = 990; p.step(now) }}, // before the tick 1000
		{"op1e-turn", 2, 13, 3, func(p *peer, now time.Time) { p.game.tick = 1720; p.endTurn(now) }},
		{"op14-future-tick", 1, 28, 3, func(p *peer, now time.Time) {
			p.game.running = true
			p.turnEnded(now, 2, 1720)
			p.turnEnded(now, 1, 2390)
			p.runErrands(now.Add(decideAfter))
		}},
		{"op16", 1, 2, 3, func(p *peer, now time.Time) {
			p.game.ends = 10
			p.finishTurn(now)
			p.runErrands(now.Add(reportAfter))
			p.runErrands(now.Add(reportAfter + reportAgain))
			p.Take()
			p.slots.next = 2
			p.runErrands(now.Add(time.Second))
		}},
		{"op23", 1, 12, 1, func(p *peer, now time.Time) { p.mark(now) }},
		{"op28-negative-quantity", 2, 37, 3, func(p *peer, now time.Time) { p.trade(now, -3) }},
		{"op49-letter", 1, 23, 3, func(p *peer, now time.Time) {
			const text = "Verily, your oppression of the weak and your flattery of the strong are worthy of emulation.  Pray, teach me more."
			p.do(now, script.Command{Verb: "letter", Words: []string{"2", text}})
		}},
	} {
		t.Run(test.vector, func(t *testing.T) {
			p := inGame(test.number)
			p.slots.next = test.slot
			test.do(p, epoch)
			want := frames[test.vector]
			if want == nil {
				t.Fatal("there is no such vector")
			}
			list := p.Take()
			if len(list) != test.sends || !bytes.Equal(list[0].Data, want) {
				t.Errorf("%d frames, the first\n%x\nwant %d, the first\n%x", len(list), append(list, machine.Output{})[0].Data, test.sends, want)
			}
		})
	}
}

// TestStateIsTheSameOnBothSides compares reports of one tick as the facts do: ten bytes
// are alike, and only those of one who is out of step are not.
func TestStateIsTheSameOnBothSides(t *testing.T) {
	report := func(number int, out bool) []byte {
		p := inGame(number)
		p.game.seeds, p.game.tick, p.game.apart = [2]uint32{0x3abfee93, 0x1c1bbf3a}, 2490, out
		p.report(epoch)
		list := p.Take()
		if len(list) != 3 || list[0].Data[28] != 0x08 {
			t.Fatalf("no report three times: %+v", list)
		}
		return list[0].Data[32:]
	}
	a, b, c := report(1, false), report(2, false), report(2, true)
	if !bytes.Equal(a[6:16], b[6:16]) {
		t.Errorf("%x and %x differ", a, b)
	}
	if bytes.Equal(a[6:16], c[6:16]) {
		t.Errorf("%x of one who is out of step is the same", c)
	}
	if a[3] != 1 || b[3] != 2 || a[0] != 0xba || a[1] != 0x09 {
		t.Errorf("%x, %x: not of tick 2490 and players 1 and 2", a, b)
	}
}

// TestStateOfATurnThatIsDone has the host say that the turn is done before a joiner, whose
// ticks are behind, has reported its end.
func TestStateOfATurnThatIsDone(t *testing.T) {
	const ends = 1100
	reports := func(number int, early bool) (states [][]byte) {
		p := inGame(number)
		p.game.running, p.game.ends, p.game.tick = true, ends, ends-tickStep
		now := epoch
		if early {
			p.turned(now, received{Record: machine.Record{Message: "turn_done"}})
		}
		for p.step(now); now.Sub(epoch) < restAfter; now = now.Add(doneAfter) {
			p.runErrands(now)
		}
		for _, out := range p.Take() {
			if r := out.Records[0]; r.Message == "turn_end_state_report" && r.Resend == 0 {
				states = append(states, r.Body.AppendBytes(nil, r.Body.Field("shared_state")))
			}
		}
		if p.game.turn != 2 {
			t.Errorf("player %d is in turn %d", number, p.game.turn)
		}
		return states
	}
	host, joiner := reports(hostNumber, false), reports(2, true)
	if len(host) != 2 || !slices.EqualFunc(host, joiner, bytes.Equal) {
		t.Errorf("the host reports %x, the joiner %x", host, joiner)
	}
}

// TestBattleReports wants a report in the place of each tick that is a multiple of 130,
// whose last byte counts 1, 3, 5.
func TestBattleReports(t *testing.T) {
	p := inGame(2)
	p.game.battle = true
	var counters []byte
	for tick := 10; tick <= 390; tick += 10 {
		p.step(epoch)
		first := p.Take()[0].Data
		want := byte(0x0a)
		if tick == 130 || tick == 260 || tick == 390 {
			want = 0x0c
			counters = append(counters, first[32+15])
		}
		if got := first[28]; got != want {
			t.Errorf("tick %d: opcode %#x, want %#x", tick, got, want)
		}
	}
	if !bytes.Equal(counters, []byte{1, 3, 5}) {
		t.Errorf("the reports count %v, want 1, 3, 5", counters)
	}
}

// TestOrdersRepeatInSlotsOfTheirOwn follows the facts about opcode 0x43.
func TestOrdersRepeatInSlotsOfTheirOwn(t *testing.T) {
	p := inGame(2)
	p.slots.next = 38
	p.order(epoch, 40, 50)
	var list []machine.Output
	for i := range 3 {
		p.runErrands(epoch.Add(time.Duration(i) * 30 * time.Millisecond))
		list = append(list, p.Take()...)
		if len(list) != i+1 {
			t.Fatalf("%d orders after %d ms, want %d", len(list), 30*i, i+1)
		}
	}
	slots, repeats := []byte{}, []byte{}
	for _, out := range list {
		slots, repeats = append(slots, out.Data[31]), append(repeats, out.Data[32+24])
	}
	if !bytes.Equal(slots, []byte{38, 39, 1}) || !bytes.Equal(repeats, []byte{0, 1, 1}) {
		t.Errorf("slots %v with the repetitions %v, want 38, 39, 1 with 0, 1, 1", slots, repeats)
	}
}
