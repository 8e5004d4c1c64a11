package dissect

import (
	"slices"
	"testing"
	"time"
)

// TestCopies: a packet that passes several interfaces counts once, one that is sent again
// counts again.
func TestCopies(t *testing.T) {
	ip4 := func(ttl, sum, text string) string {
		return "\x45\x00\x00\x20\x00\x01\x00\x00" + ttl + "\x11" + sum + "\x0a\x00\x00\x01\x0a\x00\x00\x02\xc3\xbf\x0a\x43\x00\x0c\x00\x00" + text
	}
	ip6 := func(hops, text string) string {
		return "\x60\x00\x00\x00\x00\x0c\x11" + hops + "\xfe\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" +
			"\xfe\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\xc3\xbf\x0a\x43\x00\x0c\x00\x00" + text
	}
	type step struct {
		ip      string
		passage passage
		ms      int
		copied  bool
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"through a bridge", []step{
			{ip4("\x40", "\x12\x34", "data"), passage{host: 2, packet: Incoming}, 0, false},
			{ip4("\x40", "\x12\x34", "data"), passage{host: 3, packet: Incoming}, 0, true},
			{ip4("\x40", "\x12\x34", "data"), passage{host: 4, packet: Outgoing}, 1, true},
		}},
		{"through a router", []step{
			{ip4("\x40", "\x12\x34", "data"), passage{host: 2, packet: Incoming}, 0, false},
			{ip4("\x3f", "\x13\x34", "data"), passage{host: 3, packet: Outgoing}, 0, true},
		}},
		{"through a router, IPv6", []step{
			{ip6("\x40", "data"), passage{host: 2, packet: Incoming}, 0, false},
			{ip6("\x3f", "data"), passage{host: 3, packet: Outgoing}, 0, true},
		}},
		{"out and in again", []step{
			{ip4("\x40", "\x12\x34", "data"), passage{host: 2, packet: Outgoing}, 0, false},
			{ip4("\x40", "\x12\x34", "data"), passage{host: 2, packet: Incoming}, 0, true},
		}},
		{"on two interfaces of a file", []step{
			{ip4("\x40", "\x12\x34", "data"), passage{file: 0}, 0, false},
			{ip4("\x40", "\x12\x34", "data"), passage{file: 1}, 0, true},
		}},
		{"sent twice, each seen twice", []step{
			{ip4("\x40", "\x12\x34", "data"), passage{host: 2}, 0, false},
			{ip4("\x40", "\x12\x34", "data"), passage{host: 3}, 0, true},
			{ip4("\x40", "\x12\x34", "data"), passage{host: 2}, 20, false},
			{ip4("\x40", "\x12\x34", "data"), passage{host: 3}, 20, true},
		}},
		{"another payload", []step{
			{ip4("\x40", "\x12\x34", "data"), passage{host: 2}, 0, false},
			{ip4("\x40", "\x12\x34", "dada"), passage{host: 3}, 0, false},
		}},
		{"much later", []step{
			{ip4("\x40", "\x12\x34", "data"), passage{host: 2}, 0, false},
			{ip4("\x40", "\x12\x34", "data"), passage{host: 3}, 500, false},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var k copies
			start := time.Unix(1, 0)
			for i, s := range c.steps {
				h := Headers{Interface: s.passage.host, PacketType: s.passage.packet, network: []byte(s.ip)}
				p := Packet{Time: start.Add(time.Duration(s.ms) * time.Millisecond), Interface: s.passage.file, Several: true}
				if got := k.again(&h, &p); got != s.copied {
					t.Errorf("packet %d: got %v, want %v", i+1, got, s.copied)
				}
			}
		})
	}
}

// TestCopiesAmongOthers: which packets are recognised among many does not depend on chance, and
// hardly one is missed.
func TestCopiesAmongOthers(t *testing.T) {
	const packets, between = 5000, 500 // packets that pass before one is seen again
	var first []int
	for run := range 3 {
		var k copies
		var missed []int
		see := func(n, host, ms int) bool {
			ip := []byte("\x45\x00\x00\x20\x00\x01\x00\x00\x40\x11\x12\x34\x0a\x00\x00\x01\x0a\x00\x00\x02\xc3\xbf\x0a\x43\x00\x0c\x00\x00data")
			ip[4], ip[5], ip[30] = byte(n>>8), byte(n), byte(7*n)
			return k.again(&Headers{Interface: host, network: ip}, &Packet{Time: time.Unix(1, int64(ms)*1e6), Several: true})
		}
		for n := range packets {
			if see(n, 2, n/10) {
				t.Fatalf("packet %d is new", n)
			}
			if m := n - between; m >= 0 && !see(m, 3, n/10) {
				missed = append(missed, m)
			}
		}
		if len(missed) > packets/500 {
			t.Errorf("%d of %d sights were missed", len(missed), packets-between)
		}
		if run == 0 {
			first = missed
		} else if !slices.Equal(missed, first) {
			t.Errorf("missed %v, and %v before", missed, first)
		}
	}
}

// TestCopiesOfOnePlace: where a capture has one interface and tells no more, nothing is
// remembered and nothing is a copy.
func TestCopiesOfOnePlace(t *testing.T) {
	var k copies
	for range 2 {
		if k.again(&Headers{network: []byte("\x45 a packet of some kind")}, &Packet{}) {
			t.Error("a packet from one place is a copy")
		}
	}
	if k.slots != nil {
		t.Error("packets from one place are remembered")
	}
}
