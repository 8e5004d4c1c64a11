package scenario

import (
	"net/netip"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/mmo"
	"opscope/cmd/refserver/internal/mmo/testserver"
)

// mmoScenarios are those of the MMO.
var mmoScenarios = []Scenario{
	mmoScenario("mmo-enter", "a player enters, says hello by UDP, walks a little and leaves", 8*time.Second, Faults{},
		crowd{members: []member{{script: "enter"}}, settings: lively}),
	mmoScenario("mmo-move", "three players walk, 20 inputs and 20 batches a second", 8*time.Second, Faults{},
		crowd{members: []member{{script: "walk"}, {script: "stroll", start: 150 * time.Millisecond}, {script: "stroll", start: 300 * time.Millisecond}}}),
	mmoScenario("mmo-crowd", "more characters in view than a datagram holds: batches are split", 4*time.Second, Faults{},
		crowd{members: []member{{script: "watch"}}, walkers: 40}),
	mmoScenario("mmo-view", "players and monsters come into view and leave it", 12*time.Second, Faults{},
		crowd{members: []member{{script: "away"}, {script: "stay", start: 200 * time.Millisecond}}, settings: shortSighted}),
	mmoScenario("mmo-chat-attack", "two players chat and fight monsters", 10*time.Second, Faults{},
		crowd{members: []member{{script: "fighter"}, {script: "friend", start: 200 * time.Millisecond}}, settings: lively}),
	mmoScenario("mmo-development", "a development build tells of its combat; a player dies, and comes back", 12*time.Second, Faults{},
		crowd{members: []member{{script: "victim"}}, settings: deadly, development: true}),
	mmoScenario("mmo-inventory", "items are moved, split and used; revisions in conflict, requests that come twice", 8*time.Second, Faults{},
		crowd{members: []member{{script: "merchant"}}}),
	mmoScenario("mmo-errors", "every error: malformed, unknown, invalid, too early, too many, deprecated, bad sizes", 10*time.Second, Faults{},
		crowd{members: []member{
			{script: "nuisance"}, {script: "short-size", start: 200 * time.Millisecond}, {script: "long-size", start: 400 * time.Millisecond},
			{script: "half", start: 600 * time.Millisecond},
		}}),
	mmoScenario("mmo-heartbeat", "one client answers pings, another one does not and is cut off", 8*time.Second, Faults{},
		crowd{members: []member{{script: "idle"}, {script: "silent", start: 100 * time.Millisecond, mute: true}}, settings: lively}),
	mmoScenario("mmo-refused", "clients that are not let in: wrong, old and foreign tokens, a character that is there already", 6*time.Second, Faults{},
		crowd{members: []member{
			{script: "refused"}, {script: "enter", start: 100 * time.Millisecond}, {script: "enter", start: 300 * time.Millisecond, impostor: true},
		}}),
	mmoScenario("mmo-nat", "two clients behind one address", 6*time.Second, Faults{},
		crowd{members: []member{{script: "stroll"}, {script: "stroll", sharing: true}}}),
	mmoScenario("mmo-wall", "a player is corrected at the edge of the world, by UDP", 6*time.Second, Faults{},
		crowd{members: []member{{script: "wall"}}, settings: cramped}),
	mmoScenario("mmo-echo", "echo of arbitrary bytes, also of such that look like Protocol Buffers", 6*time.Second, Faults{},
		crowd{members: []member{{script: "echo"}}}),
	mmoScenario("mmo-big-endian", "a server that sends its numbers in the other byte order", 6*time.Second, Faults{},
		crowd{members: []member{{script: "brief"}}, settings: swapped}),
	mmoScenario("mmo-mid-session", "the capture begins when the players are in the game", 8*time.Second,
		Faults{Capture: Capture{Start: 900 * time.Millisecond}},
		crowd{members: []member{{script: "brief"}, {script: "brief", start: 100 * time.Millisecond}}, settings: lively}),
	mmoScenario("mmo-lossy", "datagrams and segments get lost, come twice and overtake each other", 12*time.Second,
		Faults{
			Before: Path{Loss: 0.1, Reorder: 0.1, Duplicate: 0.05, Delay: 120 * time.Millisecond},
			Behind: Path{Loss: 0.1, Reorder: 0.1, Duplicate: 0.05, Delay: 120 * time.Millisecond},
		},
		crowd{members: []member{{script: "brief"}}}),
	mmoScenario("mmo-split", "segments that end inside the four bytes of a header, and hold many frames", 8*time.Second,
		Faults{
			Before: Path{Loss: 0.03, Reorder: 0.05, Delay: 40 * time.Millisecond},
			Stream: Shape{Split: 0.8, Merge: 30 * time.Millisecond, Overlap: 0.7, Wrap: true},
		},
		crowd{members: []member{{script: "brief"}}}),
}

// crowd is a server with its players.
type crowd struct {
	members     []member
	walkers     int // characters without a client
	development bool
	settings    func(*testserver.Settings) // changes those of server.yaml; nil for none
}

// member is a bot.
type member struct {
	script   string // a built-in one, or one of mmoScripts
	start    time.Duration
	sharing  bool // it sits behind the same address as the one before
	mute     bool // it answers no pings
	impostor bool // it comes with the name and the seed of the one before: the same character
}

// The choices of scenarios that are not those of server.yaml.
func lively(s *testserver.Settings) {
	s.Heartbeat.Interval, s.Heartbeat.Timeout = 600*time.Millisecond, 2*time.Second
}

func shortSighted(s *testserver.Settings) {
	s.World.Spawn, s.World.View, s.World.Leave = 0.5, 4, 5
	s.Monsters.Count, s.Monsters.Sight = 1, 0.2
}

func deadly(s *testserver.Settings) {
	s.Combat.CharacterHP, s.Combat.Respawn = 12, time.Second
	s.Monsters.Count, s.Monsters.Interval, s.Monsters.Speed = 3, 400*time.Millisecond, 6
}

func cramped(s *testserver.Settings) {
	s.World.Size, s.World.Spawn, s.MoveNotify = 6, 2, testserver.UDP
}

func swapped(s *testserver.Settings) { s.ByteOrder = testserver.Big }

func mmoScenario(name, doc string, d time.Duration, f Faults, p crowd) Scenario {
	return Scenario{Name: name, Doc: doc, Protocol: "mmo", Duration: d, Faults: f, Cast: p.cast}
}

// cast makes the machines of a crowd.
func (p crowd) cast(seed uint64) []Role {
	settings := testserver.Default()
	if p.settings != nil {
		p.settings(settings)
	}
	server := netip.AddrPortFrom(serverHost, settings.TCPPort)
	roles := []Role{{
		Name: "server", Addr: netip.AddrPortFrom(serverHost, settings.UDPPort), Listen: server, Server: true,
		Build: func(o machine.Observer) machine.Machine {
			return mmo.NewServer(mmo.ServerConfig{Seed: seed, Settings: settings, Walkers: p.walkers, Development: p.development}, o)
		},
	}}
	host := serverHost
	for i, m := range p.members {
		if !m.sharing {
			host = host.Next()
		}
		script := commands(mmo.Scripts, mmoScripts, m.script)
		self := i
		if m.impostor {
			self--
		}
		config := mmo.BotConfig{
			Name: names[self%len(names)], Server: server, Script: script, Seed: seed + uint64(self), Settings: settings, Mute: m.mute,
		}
		roles = append(roles, Role{
			Name: names[i%len(names)], Addr: netip.AddrPortFrom(host, clientPort+uint16(1000*i)), Start: m.start,
			Build: func(o machine.Observer) machine.Machine { return mmo.NewBot(config, o) },
		})
	}
	return roles
}

// mmoScripts are those that only scenarios want.
var mmoScripts = map[string]string{
	"enter": `wait 200ms
echo 70696e67
walk northeast
wait 400ms
stop
wait 500ms
leave`,
	"walk": `walk north
wait 400ms
walk southeast
wait 400ms
stop
wait 200ms
leave`,
	"stroll": `walk east
wait 300ms
walk southwest
wait 300ms
stop
wait 200ms
leave`,
	"watch": `walk south
wait 200ms
stop
wait 100ms
leave`,
	"away": `await UdpHelloRes
walk west
wait 1200ms
walk east
wait 1200ms
stop
leave`,
	"stay": `await DespawnCharacter
say where are you?
await SpawnOtherCharacter
say there you are
await DespawnCharacter
leave`,
	"fighter": `await SpawnOtherCharacter
say hello, is there somebody?
await ChatNtf
attack
wait 350ms
attack
wait 350ms
attack
attack
wait 500ms
attack 3
wait 350ms
repeat 6 attack 1
walk east
wait 500ms
stop
repeat 3 attack 1
say Größe, 雪, 🐉: enough
wait 400ms
leave`,
	"friend": `await ChatNtf
say hello to you
await AttackNotify
repeat 8 attack 1
say I have to go
wait 200ms
leave`,
	"victim": `repeat 4 attack 1
await MonsterAttackNotify
attack 1
await MoveNotify
attack 1
wait 300ms
leave`,
	"merchant": `carry 0 5
await InventoryOperationResult
carry 5 6 1
await InventoryOperationResult
again
await InventoryOperationResult
stale
use 1
await InventoryOperationResult
use 1
await InventoryOperationResult
use 6
await InventoryOperationResult
carry 5 2
await InventoryOperationResult
carry 2 99
await InventoryOperationResult
use 20
await InventoryOperationResult
carry 1 3
await InventoryOperationResult
leave`,
	// Before it enters, then in the game: each line has its own answer.
	"nuisance": `send 0x0221 0a026869 0x0231 08011001
echo 00
enter wrong
enter stranger
enter
await InventorySnapshot
await UdpHelloRes
enter
login Ada swordfish
register Ada swordfish ada@example.org
servers
select 3
send 0x0299 089601120774657374696e67
send 0x0202 0801
send 0x0211 0801
datagram 0x0201 0a03616263
datagram 0x0211 08ac02150000
datagram 0x0211 08ac02150000c03f
datagram 0x0211 0802 0x0211 -
raw-datagram 100011020802
wait 300ms
send 0x0231 0a0107
send 0x0231 0a01071002
send 0x0231 080710017863a2010668656c6c6f21
send 0x0252 0a0400
send 0x0252 1001
send 0x0221 -
attack 9
wait 500ms
flood 70
wait 1s
echo 01
wait 200ms
leave`,
	"short-size": `say this is the last frame
raw 03000100
wait 1s
leave`,
	"long-size": `raw 0140310208011001
wait 1s
leave`,
	"half": `say the next frame is not whole
raw 3e0001020a3565794a68624763694f694a49557a49314e694a392e65794a
leave`,
	"silent": `wait 6s
leave`,
	"idle": `wait 3s
leave`,
	"refused": `enter wrong
enter expired
enter stranger
wait 1s
leave`,
	"wall": `walk west
wait 1s
walk south
wait 200ms
stop
leave`,
	"echo": `echo 68656c6c6f00ff7f
echo 0801
echo 0801120548656c6c6f
echo 1000130201000000
echo ffffffffffffffffffff
send 0x0001 -
wait 300ms
leave`,
	"brief": `say hello there
walk east
wait 500ms
walk northwest
wait 500ms
stop
attack
wait 350ms
attack
carry 0 7
await InventoryOperationResult
use 7
echo cafe
wait 300ms
say good bye
wait 200ms
leave`,
}

// mixedMMO returns a scenario of the MMO with faults of all kinds, drawn from a seed.
func mixedMMO(seed uint64) Scenario {
	c := newChance(seed, 8)
	p := crowd{members: []member{{script: []string{"brief", "brief", "stroll", "merchant", "nuisance"}[c.IntN(5)]}}}
	if c.IntN(2) == 0 {
		p.members = append(p.members, member{script: "brief", start: 200 * time.Millisecond, sharing: c.IntN(2) == 0})
	}
	if c.IntN(4) == 0 {
		p.walkers = 5 + c.IntN(40)
	}
	p.development = c.IntN(4) == 0
	p.settings = []func(*testserver.Settings){nil, lively, deadly, cramped}[c.IntN(4)]
	s := mmoScenario("mmo-mixed", "faults of all kinds, drawn from the seed", 10*time.Second, mixedFaults(c), p)
	return s.drawn(c)
}
