package scenario

import (
	"net/netip"
	"time"

	"opscope/cmd/refserver/internal/lotr2"
	"opscope/cmd/refserver/internal/machine"
)

// lotr2Scenarios are those of Lords of the Realm II. Each frame is a segment of its own,
// as in every real capture, unless a scenario is about that.
var lotr2Scenarios = []Scenario{
	lotr2Scenario("lotr2-lobby", "two players find each other, chat, edit options, and one leaves", 20*time.Second, apart(Faults{}),
		party{host: "lobby", joiners: []guest{{script: "lobby"}}}),
	lotr2Scenario("lotr2-campaign", "two turns of a campaign, with trade and a letter", 30*time.Second, apart(Faults{}),
		party{host: "campaign", joiners: []guest{{script: "campaign"}}}),
	lotr2Scenario("lotr2-skirmish", "a skirmish: set-up, orders, state reports", 20*time.Second, apart(Faults{}),
		party{host: "skirmish", joiners: []guest{{script: "skirmish"}}}),
	lotr2Scenario("lotr2-merged", "what is said at about the same time shares segments", 20*time.Second, Faults{Stream: Shape{Merge: 40 * time.Millisecond}},
		party{host: "brief", joiners: []guest{{script: "brief"}}}),
	lotr2Scenario("lotr2-split", "frames are cut anywhere, also inside their sizes", 20*time.Second, Faults{Stream: Shape{Split: 0.8, Merge: 15 * time.Millisecond}},
		party{host: "brief", joiners: []guest{{script: "brief"}}}),
	lotr2Scenario("lotr2-mid-session", "the capture begins when the game runs", 20*time.Second, apart(Faults{Capture: Capture{Start: 9600 * time.Millisecond}}),
		party{host: "long", joiners: []guest{{script: "long"}}}),
	lotr2Scenario("lotr2-tcp-trouble", "segments split, merged, lost, repeated with overlap, out of order", 25*time.Second,
		Faults{
			Before: Path{Loss: 0.04, Reorder: 0.1, Delay: 40 * time.Millisecond},
			Behind: Path{Loss: 0.08},
			Stream: Shape{Split: 0.4, Merge: 30 * time.Millisecond, Overlap: 0.7, Wrap: true},
		},
		party{host: "brief", joiners: []guest{{script: "brief"}}}),
	lotr2Scenario("lotr2-missed", "the capture misses packets that arrived", 20*time.Second, apart(Faults{Capture: Capture{Miss: 0.05}}),
		party{host: "brief", joiners: []guest{{script: "brief"}}}),
	lotr2Scenario("lotr2-damaged", "wrong checksums and lengths, copies that are missing or differ, an unknown message, a state out of step",
		20*time.Second, apart(Faults{}), party{host: "damaged", joiners: []guest{{script: "damaged"}}}),
	lotr2Scenario("lotr2-rejoin", "a player leaves and comes back, with other ids and the slots where they were", 20*time.Second, apart(Faults{}),
		party{host: "patient", joiners: []guest{{script: "rejoin"}}}),
	lotr2Scenario("lotr2-three", "three players, each with connections to both others", 20*time.Second, apart(Faults{}),
		party{host: "three", joiners: []guest{{script: "first"}, {script: "second", start: 2 * time.Second}}}),
	lotr2Scenario("lotr2-together", "two players who ask one host for its session, and join at the same time", 20*time.Second, apart(Faults{}),
		party{host: "three", joiners: []guest{{script: "first"}, {script: "second"}}, directed: true}),
}

// apart returns faults with a segment for each frame.
func apart(f Faults) Faults {
	f.Stream.Apart = true
	return f
}

// party is a host with those who join.
type party struct {
	host    string // its script, one of lotr2HostScripts or a built-in one
	joiners []guest
	// directed has the joiners ask the host alone for its session, and not everybody.
	directed bool
}

// guest is one who joins.
type guest struct {
	script string // one of lotr2JoinerScripts, or a built-in one
	start  time.Duration
}

func lotr2Scenario(name, doc string, d time.Duration, f Faults, p party) Scenario {
	return Scenario{Name: name, Doc: doc, Protocol: "lotr2", Duration: d, Faults: f, Cast: p.cast}
}

// The ports that a peer dials and asks from are above these.
const (
	hostDials   = 1037
	joinerDials = 1032
	joinerAsks  = 1031
)

// cast makes the machines of a party.
func (p party) cast(seed uint64) []Role {
	script := commands(lotr2.HostScripts, lotr2HostScripts, p.host)
	host := lotr2Place(serverHost)
	config := lotr2.HostConfig{Config: lotr2.Config{Name: "Player1", Place: host, Script: script, Seed: seed}}
	roles := []Role{{
		Name: "host", Server: true, Addr: host.Datagrams, Listen: host.Streams, Ports: []uint16{lotr2.DiscoveryPort}, Dials: hostDials,
		Build: func(o machine.Observer) machine.Machine { return lotr2.NewHost(config, o) },
	}}
	addr := serverHost
	for i, g := range p.joiners {
		addr = addr.Next()
		script := commands(lotr2.JoinerScripts, lotr2JoinerScripts, g.script)
		place := lotr2Place(addr)
		look := broadcast
		if p.directed {
			look = serverHost
		}
		config := lotr2.JoinerConfig{
			Config: lotr2.Config{Name: names[i%len(names)], Place: place, Script: script, Seed: seed + uint64(i) + 1},
			Look:   netip.AddrPortFrom(look, lotr2.DiscoveryPort), From: joinerAsks,
		}
		roles = append(roles, Role{
			Name: config.Name, Addr: place.Datagrams, Listen: place.Streams, Ports: []uint16{joinerAsks}, Dials: joinerDials, Start: g.start,
			Build: func(o machine.Observer) machine.Machine { return lotr2.NewJoiner(config, o) },
		})
	}
	return roles
}

func lotr2Place(addr netip.Addr) lotr2.Place {
	return lotr2.Place{Streams: netip.AddrPortFrom(addr, lotr2.StreamPort), Datagrams: netip.AddrPortFrom(addr, lotr2.DatagramPort)}
}

// lotr2HostScripts and lotr2JoinerScripts are those that only scenarios want. Those of
// one name belong together.
var (
	lotr2HostScripts = map[string]string{
		"lobby": `await choice
option 2 2
wait 500ms
option 11 2
say i am player1`,
		"campaign": `await choice
wait 1200ms
campaign
end-turns
await start
wait 500ms
mark
trade 10
letter 2 Verily, your oppression of the weak is worthy of emulation.  Pray, teach me more.
say a fine day`,
		"skirmish": `await choice
skirmish
wait 1s
say to arms
battle
wait 2500ms
order 70 12
wait 300ms
finish`,
		"brief": `await choice
option 7 1
wait 500ms
campaign
end-turns`,
		"long": `await choice
campaign
end-turns`,
		"damaged": `await choice
odd checksum
say a wrong sum in the first send
odd checksums
say a wrong sum in all
odd length
say a wrong length
odd slot
say a slot is left out
opcode 2f 01020304
opcode 58
campaign
end-turns`,
		"patient": `await choice
say you again`,
		"three": `await choice 2
say all here
wait 500ms
campaign`,
	}
	lotr2JoinerScripts = map[string]string{
		"lobby": `choose 2
wait 2s
say i am player 2
wait 1s
ping
wait 800ms
leave`,
		"campaign": `choose 2
await start
repeat 3 mark
wait 400ms
end-turn
await turn
await start
wait 500ms
trade 10
trade -3
wait 200ms
end-turn
await turn
wait 500ms
leave`,
		"skirmish": `choose 2
await start
wait 500ms
order 40 50
wait 300ms
order 41 52
wait 1500ms
order 12 7
wait 2s
say well fought
wait 500ms
leave`,
		"brief": `choose 3
say hello there
await start
wait 500ms
trade 10
mark
wait 300ms
end-turn
await turn
wait 300ms
ping
say good bye
wait 200ms
leave`,
		"long": `choose 3
await start
wait 8500ms
trade 10
say good day
wait 300ms
end-turn
await turn
wait 800ms
leave`,
		"damaged": `choose 2
odd first
say the first send is missing
odd second
say the second
odd third
say the third
odd copy
say the second send is another
await start
wait 300ms
desync
odd checksum
mark
end-turn
await turn
wait 300ms
leave`,
		"rejoin": `choose 2
say here for a moment
wait 500ms
rejoin
choose 4
say here again
wait 500ms
leave`,
		"first": `choose 2
say the first
await start
wait 500ms
say good bye
leave`,
		"second": `choose 4
say the second
await start
ping
wait 800ms
leave`,
	}
)

// mixedLOTR2 returns a scenario of Lords of the Realm II with faults of all kinds, drawn
// from a seed.
func mixedLOTR2(seed uint64) Scenario {
	c := newChance(seed, 8)
	name := []string{"brief", "brief", "damaged", "lobby", "skirmish"}[c.IntN(5)]
	f := mixedFaults(c)
	f.Stream.Apart = c.IntN(2) == 0
	p := party{host: name, joiners: []guest{{script: name}}, directed: c.IntN(3) == 0}
	if c.IntN(4) == 0 {
		p = party{host: "three", joiners: []guest{{script: "first"}, {script: "second", start: time.Duration(c.IntN(2)) * time.Second}}, directed: p.directed}
	}
	s := lotr2Scenario("lotr2-mixed", "faults of all kinds, drawn from the seed", 25*time.Second, f, p)
	return s.drawn(c)
}
