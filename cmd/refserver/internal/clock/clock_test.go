package clock

import (
	"slices"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 29, 20, 15, 0, 0, time.UTC)

func TestClockKeepsOrder(t *testing.T) {
	c := Clock{Now: start}
	var got []int
	note := func(i int) func() { return func() { got = append(got, i) } }
	c.After(3*time.Second, note(3))
	c.After(time.Second, func() {
		note(1)()
		c.After(0, note(2))
		c.At(start, note(20)) // over already: at once, but behind what was asked for first
	})
	c.After(time.Second, note(10))
	c.After(time.Hour, note(99))
	c.Run(start.Add(time.Minute), func() bool { return false })
	if want := []int{1, 10, 2, 20, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if want := start.Add(3 * time.Second); !c.Now.Equal(want) {
		t.Errorf("the clock stands at %v, want %v", c.Now, want)
	}
}
