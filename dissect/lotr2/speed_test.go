package lotr2_test

import (
	"testing"

	"opscope/dissect/scene"
)

// slotsInRound is a whole turn of the count of slots.
const slotsInRound = 39

// newTraffic is an endless game: two players join, then say the same things in each turn of
// their slots.
func newTraffic(t testing.TB, until int64) *scene.Endless {
	m := joined(t)
	round := &scene.Scene{}
	host, join := *m.host, *m.join
	host.Ends, join.Ends = round.Over(host.Ends), round.Over(join.Ends)
	for slot := 1; slot <= slotsInRound; slot++ {
		if slot%3 == 0 {
			host.Send(dialer, thrice(hostUser, slot, "well met"))
		} else {
			host.Send(dialer, tick(hostUser, slot, 10*slot, 1))
		}
		join.Send(dialer, tick(joinUser, slot, 10*slot, 2))
	}
	return scene.NewEndless(&m.Scene, round, until)
}

// After its first rounds a session decodes frames without allocating; copies have a note,
// and nothing else has one.
func TestAllocations(t *testing.T) {
	var c scene.Counter
	r := scene.Spares(t, known, &c, newTraffic(t, 4<<20))
	for code, n := range r.Summary.Notes {
		if code != "resend_copy" && n > 1 { // the slots of the opening are not those of the round
			t.Errorf("%d records with the note %s", n, code)
		}
	}
	if c.Errors > 0 {
		t.Errorf("%d errors", c.Errors)
	}
}

func BenchmarkLotr2(b *testing.B) {
	scene.Benchmark(b, known, func(until int64) *scene.Endless { return newTraffic(b, until) })
}
