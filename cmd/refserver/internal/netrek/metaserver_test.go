package netrek

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"opscope/cmd/refserver/internal/machine"
)

// The lines of section 10: address, type, ports, players, free slots, three times y or n,
// comment.
func solicits(port, players, free string) string {
	return strings.Join([]string{"b", "10.0.0.1", "B", port, "2593", players, free, "n", "n", "n", "a comment", ""}, "\n")
}

// A metaserver lists who has solicited, as it did last, until it wants to be left out.
func TestMetaserver(t *testing.T) {
	m := NewMetaserver(nil)
	now := time.Date(2026, 11, 29, 20, 15, 0, 0, time.UTC)
	tell := func(after time.Duration, text string) string {
		now = now.Add(after)
		out := m.Handle(now, machine.Input{Kind: machine.Datagram, Peer: netip.MustParseAddrPort("10.0.0.3:50610"), Data: []byte(text)})
		if len(out) == 0 {
			return ""
		}
		return string(out[0].Data)
	}
	for _, c := range []struct {
		what, text, want string
		after            time.Duration
	}{
		{"nothing yet", "?", "r,0\n", 0},
		{"no answer to a solicitation", solicits("2592", "3", "29"), "", 0},
		{"open", "?version=x", "r,1\n10.0.0.1,2592,2,5,3,0,B\n", 5 * time.Second},
		{"another server", solicits("2692", "0", "32"), "", 0},
		{"and one that is full", solicits("2592", "32", "-4"), "", 0},
		{"empty, and a queue", "?", "r,2\n10.0.0.1,2692,3,1,0,0,B\n10.0.0.1,2592,1,1,32,4,B\n", time.Second},
		{"off the list", solicits("2692", "-1", "0"), "", 0},
		{"one is left", "?", "r,1\n10.0.0.1,2592,1,1,32,4,B\n", 0},
		{"nonsense", "b\nx", "", 0},
	} {
		if got := tell(c.after, c.text); got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
	}
}

// A solicitor tells of changes, not more often than it may, and nothing else.
func TestSolicitor(t *testing.T) {
	board := &Board{}
	s := NewSolicitor(SolicitorConfig{Board: board, Server: netip.MustParseAddrPort("10.0.0.1:2592"), Meta: netip.MustParseAddrPort("10.0.0.4:3521")}, nil)
	now := time.Date(2026, 11, 29, 20, 15, 0, 0, time.UTC)
	said := func() (text string) {
		for _, o := range s.Handle(now, machine.Input{Kind: machine.Tick}) {
			text += string(o.Data)
		}
		return text
	}
	want := "b\n10.0.0.1\nB\n2592\n2593\n0\n32\nn\nn\nn\nopscope reference server\n"
	if got := said(); got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	board.Set(32, 2)
	if got := said(); got != "" {
		t.Errorf("got %q at once, want nothing", got)
	}
	now = s.Deadline()
	if got := said(); !strings.Contains(got, "\n32\n-2\nn\nn\ny\n") {
		t.Errorf("got %q, want 32 players and a queue of 2", got)
	}
	for range 3 {
		now = s.Deadline()
		if got := said(); got != "" || !s.Deadline().After(now) {
			t.Errorf("got %q, and a deadline of %v at %v", got, s.Deadline(), now)
		}
	}
}
