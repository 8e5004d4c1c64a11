package scenario

import (
	"net/netip"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/netrek"
)

// netrekScenarios are those of Netrek.
var netrekScenarios = []Scenario{
	netrekScenario("netrek-tcp", "a player flies, fires, chats, orbits, beams and refits, over TCP alone", 30*time.Second, Faults{},
		crew{pilots: []pilot{{script: "tour"}}}),
	netrekScenario("netrek-raid", "a scout bombs a planet, which shoots back", 20*time.Second, Faults{},
		crew{pilots: []pilot{{script: "raid"}}, near: true}),
	netrekScenario("netrek-duel", "two players fight; one dies, and comes back", 25*time.Second, Faults{},
		crew{pilots: []pilot{{script: "attack"}, {script: "victim", start: 300 * time.Millisecond}}, near: true}),
	netrekScenario("netrek-udp", "UDP in both ways of opening it, its modes, and back to TCP", 16*time.Second, Faults{},
		crew{pilots: []pilot{{script: "udp"}}}),
	netrekScenario("netrek-short", "short packets of both versions over TCP, with another player in sight", 16*time.Second, Faults{},
		crew{pilots: []pilot{{script: "short"}, {script: "target", start: 200 * time.Millisecond}}, near: true}),
	netrekScenario("netrek-short-udp", "short packets over UDP", 12*time.Second, Faults{},
		crew{pilots: []pilot{{script: "short-udp"}, {script: "target", start: 200 * time.Millisecond}}, near: true}),
	netrekScenario("netrek-mid-session", "the capture begins when the players are in the game", 12*time.Second,
		Faults{Capture: Capture{Start: 1500 * time.Millisecond}},
		crew{pilots: []pilot{{script: "brief"}, {script: "target", start: 200 * time.Millisecond}}, near: true}),
	netrekScenario("netrek-lossy", "datagrams get lost, come twice and overtake each other", 12*time.Second,
		Faults{
			Before: Path{Loss: 0.08, Reorder: 0.08, Duplicate: 0.05, Delay: 150 * time.Millisecond},
			Behind: Path{Loss: 0.08, Reorder: 0.08, Duplicate: 0.05, Delay: 150 * time.Millisecond},
		},
		crew{pilots: []pilot{{script: "brief-udp"}}}),
	netrekScenario("netrek-queue", "one slot for two players: the second waits for it", 10*time.Second, Faults{},
		crew{pilots: []pilot{{script: "login"}, {script: "login", start: 300 * time.Millisecond}}, slots: 1}),
	netrekScenario("netrek-refused", "another version, UDP of another version, UDP that is not allowed", 8*time.Second, Faults{},
		crew{pilots: []pilot{
			{script: "login", socketVersion: 3}, {script: "denied", start: 200 * time.Millisecond, udpVersion: 9},
			{script: "denied", start: 400 * time.Millisecond},
		}, noUDP: true}),
	netrekScenario("netrek-garbage", "a client whose stream has bytes that are no packets", 8*time.Second, Faults{},
		crew{pilots: []pilot{{script: "garbage"}}}),
	netrekScenario("netrek-discovery", "queries for servers, while a player is in the game", 8*time.Second, Faults{},
		crew{pilots: []pilot{{script: "login"}}, discovery: true}),
	netrekScenario("netrek-inl", "queries to a server with two ports for players, of which clients miss one", 4*time.Second, Faults{},
		crew{discovery: true, inl: true}),
	netrekScenario("netrek-metaserver", "a server solicits a metaserver, which is asked for its list", 6*time.Second, Faults{},
		crew{pilots: []pilot{{script: "login", start: 700 * time.Millisecond}}, meta: true}),
	netrekScenario("netrek-cut", "segments split, merged, lost, repeated with overlap, out of order", 12*time.Second,
		Faults{
			Before: Path{Loss: 0.04, Reorder: 0.1, Delay: 40 * time.Millisecond},
			Behind: Path{Loss: 0.08},
			Stream: Shape{Split: 0.6, Merge: 30 * time.Millisecond, Overlap: 0.7, Wrap: true},
		},
		crew{pilots: []pilot{{script: "brief"}}}),
}

// crew is a server with its players.
type crew struct {
	pilots    []pilot
	slots     int  // 0 for all
	near      bool // they meet soon
	noUDP     bool
	discovery bool // queries are asked and answered beside the game
	inl       bool // by a server with two ports for players
	meta      bool // the server solicits a metaserver, which is asked, too
}

// pilot is a bot.
type pilot struct {
	script                    string // a built-in one, or one of netrekScripts
	start                     time.Duration
	socketVersion, udpVersion int // 0 for the right ones
}

const netrekPort = 2592

func netrekScenario(name, doc string, d time.Duration, f Faults, c crew) Scenario {
	return Scenario{Name: name, Doc: doc, Protocol: "netrek", Duration: d, Faults: f, Cast: c.cast}
}

// cast makes the machines of a crew.
func (c crew) cast(seed uint64) []Role {
	server := netip.AddrPortFrom(serverHost, netrekPort)
	board := &netrek.Board{}
	roles := []Role{{
		Name: "server", Addr: server, Server: true,
		Build: func(o machine.Observer) machine.Machine {
			return netrek.NewServer(netrek.ServerConfig{Seed: seed, Slots: c.slots, NoUDP: c.noUDP, Near: c.near, Board: board}, o)
		},
	}}
	host := serverHost
	for i, p := range c.pilots {
		host = host.Next()
		name := names[i%len(names)]
		script := commands(netrek.Scripts, netrekScripts, p.script)
		local := netip.AddrPortFrom(host, clientPort+uint16(1000*i))
		config := netrek.BotConfig{
			Name: name, Server: server, Local: local, Script: script, Seed: seed + uint64(i),
			SocketVersion: p.socketVersion, UDPVersion: p.udpVersion,
		}
		roles = append(roles, Role{
			Name: name, Addr: local, Start: p.start,
			Build: func(o machine.Observer) machine.Machine { return netrek.NewBot(config, o) },
		})
	}
	if c.discovery {
		roles = append(roles, c.directory(board, host.Next())...)
	}
	if c.meta {
		roles = append(roles, metaserver(board, server, host.Next())...)
	}
	return roles
}

// directory is who answers queries, and who asks.
func (c crew) directory(board *netrek.Board, asker netip.Addr) []Role {
	at := netip.AddrPortFrom(serverHost, netrek.DiscoveryPort)
	return []Role{
		{Name: "directory", Addr: at, Server: true, Build: func(o machine.Observer) machine.Machine {
			return netrek.NewDirectory(netrek.DirectoryConfig{Board: board, INL: c.inl}, o)
		}},
		{Name: "asker", Addr: netip.AddrPortFrom(asker, clientPort+500), Start: time.Second, Build: func(o machine.Observer) machine.Machine {
			return netrek.NewAsker(at, o)
		}},
	}
}

// metaserver is who lists servers, a server's part that solicits, and who asks for the
// list.
func metaserver(board *netrek.Board, server netip.AddrPort, asker netip.Addr) []Role {
	at := netip.AddrPortFrom(asker.Next(), netrek.DiscoveryPort)
	return []Role{
		{Name: "metaserver", Addr: at, Server: true, Build: func(o machine.Observer) machine.Machine {
			return netrek.NewMetaserver(o)
		}},
		{Name: "solicitor", Addr: netip.AddrPortFrom(server.Addr(), clientPort+600), Start: 200 * time.Millisecond, Build: func(o machine.Observer) machine.Machine {
			return netrek.NewSolicitor(netrek.SolicitorConfig{Board: board, Server: server, Meta: at}, o)
		}},
		{Name: "asker", Addr: netip.AddrPortFrom(asker, clientPort+500), Start: 3 * time.Second, Build: func(o machine.Observer) machine.Machine {
			return netrek.NewAsker(at, o)
		}},
	}
}

// netrekScripts are those that only scenarios want.
var netrekScripts = map[string]string{
	"tour": `feature SHIP_CAP
feature SP_RANK
feature SP_GENERIC_32
feature WHY_DEAD_2
feature NOBODY_KNOWS
outfit fed cruiser
rate 300ms
ping on
say hello there
speed 4
course 32
repeat 2 torp 32
phaser 64
plasma 96
cloak on
wait 600ms
cloak off
team-say on my way
tell 0 to myself
speed 6
lock planet 0
wait 5s
orbit
wait 300ms
beam up
wait 1200ms
beam down
wait 1500ms
refit scout
wait 2500ms
quit
wait 1200ms
shield off
war 6
leave`,
	"raid": `outfit rom scout
speed 5
lock planet 0
wait 5s
orbit
bomb
rate 300ms
wait 6s
leave`,
	"victim": `feature WHY_DEAD_2
outfit rom cruiser
rate 300ms
shield off
await dead
outfit rom scout
wait 1s
leave`,
	"attack": `feature WHY_DEAD_2
outfit fed cruiser
rate 200ms
await enemy
course enemy
speed 2
phaser enemy
repeat 3 torp enemy
phaser enemy
repeat 4 torp enemy
wait 1s
phaser enemy
repeat 3 torp enemy
phaser enemy
wait 3s
say good fight
leave`,
	"target": `outfit rom cruiser
rate 500ms
shield off
speed 2
wait 1s
phaser enemy
repeat 2 torp enemy
wait 2500ms
leave`,
	"brief": `outfit any cruiser
say hello there
speed 5
course 64
torp 64
wait 600ms
phaser 96
shield off
torp 32
wait 1s
say good bye
leave`,
	"brief-udp": `feature 19FLAGS
outfit any cruiser
udp port
say hello there
speed 5
course 64
torp 64
wait 600ms
phaser 96
shield off
ping on
wait 1s
update
torp 32
wait 2s
say good bye
leave`,
	"short-udp": `feature 19FLAGS
feature SELF_8FLAGS
outfit fed cruiser
udp port
short v2
await enemy
say hello, in short
speed 5
course enemy
repeat 3 torp enemy
phaser enemy
wait 1s
det
phaser enemy
wait 1s
leave`,
	"denied": `outfit any scout
udp port
speed 3
wait 500ms
leave`,
	"garbage": `outfit any scout
raw 00ffffff
speed 3
wait 300ms
raw 2700
wait 300ms
say still here
wait 300ms
leave`,
}

// mixedNetrek returns a scenario of Netrek with faults of all kinds, drawn from a
// seed.
func mixedNetrek(seed uint64) Scenario {
	c := newChance(seed, 7)
	script := []string{"brief", "brief-udp", "brief-udp", "short-udp", "attack"}[c.IntN(5)]
	g := crew{pilots: []pilot{{script: script}}, near: true}
	if script == "short-udp" || script == "attack" || c.IntN(3) == 0 {
		g.pilots = append(g.pilots, pilot{script: "target", start: 200 * time.Millisecond})
	}
	g.discovery = c.IntN(4) == 0
	s := netrekScenario("netrek-mixed", "faults of all kinds, drawn from the seed", 12*time.Second, mixedFaults(c), g)
	return s.drawn(c)
}
