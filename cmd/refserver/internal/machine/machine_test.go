package machine

import (
	"slices"
	"testing"
	"time"
)

// at is a time, in milliseconds after the epoch of tests.
func at(ms int) time.Time {
	return time.Date(2026, 11, 29, 20, 15, 0, 0, time.UTC).Add(time.Duration(ms) * time.Millisecond)
}

// TestAllowance lets three things pass at once, and one more each half second.
func TestAllowance(t *testing.T) {
	a := Allowance{Rate: 2, Burst: 3}
	for i, c := range []struct {
		ms   int
		want bool
	}{{0, true}, {0, true}, {0, true}, {0, false}, {1000, true}, {1000, false}, {60_000, true}, {60_000, true}, {60_000, true}, {60_000, false}} {
		if got := a.Charge(at(c.ms)); got != c.want {
			t.Errorf("thing %d, after %d ms: got %v, want %v", i+1, c.ms, got, c.want)
		}
	}
}

// TestDue asks of something that is done every 100 ms.
func TestDue(t *testing.T) {
	last := at(0)
	for _, c := range []struct {
		now, last int
		want      bool
	}{
		{99, 0, false},
		{100, 100, true},
		{250, 200, true},
		{301, 300, true},
		{900, 900, true}, // what was slept through is not caught up with
		{999, 900, false},
	} {
		if got := Due(at(c.now), &last, 100*time.Millisecond); got != c.want || !last.Equal(at(c.last)) {
			t.Errorf("after %d ms: got %v and %v, want %v and %v", c.now, got, last, c.want, at(c.last))
		}
	}
}

func TestEarlier(t *testing.T) {
	never := time.Time{}
	for _, c := range [][3]time.Time{{at(1), at(2), at(1)}, {at(2), at(1), at(1)}, {never, at(1), at(1)}, {at(1), never, at(1)}, {never, never, never}} {
		if got := Earlier(c[0], c[1]); !got.Equal(c[2]) {
			t.Errorf("of %v and %v got %v", c[0], c[1], got)
		}
	}
}

// caller is a session with friends who leave when it is buried.
type caller struct {
	Guest
	friends []*caller
}

// TestBury buries a session, over which another one ends that stands in front of it.
func TestBury(t *testing.T) {
	a, b, c := &caller{Guest: Guest{Conn: -1}}, &caller{Guest: Guest{Conn: -2}}, &caller{Guest: Guest{Conn: -3}}
	b.friends = []*caller{a}
	list := []*caller{a, b, c}
	b.End("flood", "too much")
	b.HungUp() // the first reason counts
	var buried []Conn
	Bury(&list, func(x *caller) {
		if slices.Contains(list, x) {
			t.Errorf("%d is in the list while it is buried", x.Conn)
		}
		buried = append(buried, x.Conn)
		for _, f := range x.friends {
			f.End("left", "alone")
		}
	})
	if want := []Conn{-2, -1}; !slices.Equal(buried, want) || !slices.Equal(list, []*caller{c}) {
		t.Errorf("buried %v, want %v; %d are left", buried, want, len(list))
	}
	if SessionOf(list, -3) != c || SessionOf(list, -2) != nil {
		t.Error("the list has others")
	}
	if b.code != "flood" || !b.Gone {
		t.Errorf("it ended with %q, gone %v", b.code, b.Gone)
	}
}
