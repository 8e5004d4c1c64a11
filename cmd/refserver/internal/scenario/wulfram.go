package scenario

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/tape"
	"opscope/cmd/refserver/internal/wulfram"
)

// wulframScenarios are those of Wulfram.
var wulframScenarios = []Scenario{
	wulframScenario("login", "one player logs in, spawns and leaves", 8*time.Second, Faults{},
		game{players: []player{{script: "login"}}}),
	wulframScenario("session", "one player, over a network that is not quite quiet", 8*time.Second,
		Faults{
			Before: Path{Reorder: 0.05, Delay: 50 * time.Millisecond}, Behind: Path{Loss: 0.05},
			Stream: Shape{Split: 0.3},
		},
		game{players: []player{{script: "brief"}}, early: true}),
	wulframScenario("play", "two players drive, shoot and chat", 8*time.Second, Faults{},
		game{players: []player{{script: "outing"}, {script: "visit", start: 700 * time.Millisecond}}}),
	wulframScenario("lossy", "datagrams and segments get lost on both sides of the tape", 12*time.Second,
		Faults{Before: Path{Loss: 0.12}, Behind: Path{Loss: 0.12}},
		game{players: []player{{script: "brief"}}}),
	wulframScenario("reordered", "datagrams overtake each other, some come twice", 8*time.Second,
		Faults{
			Before: Path{Reorder: 0.15, Duplicate: 0.05, Delay: 60 * time.Millisecond},
			Behind: Path{Reorder: 0.15, Duplicate: 0.05, Delay: 60 * time.Millisecond},
		},
		game{players: []player{{script: "brief"}}}),
	wulframScenario("mid-session", "the capture begins when the player is in the game", 8*time.Second,
		Faults{Capture: Capture{Start: 600 * time.Millisecond}},
		game{players: []player{{script: "brief"}}, unarmed: true}),
	wulframScenario("missed", "the capture misses packets that arrived", 8*time.Second,
		Faults{Capture: Capture{Miss: 0.1}},
		game{players: []player{{script: "brief"}}, unarmed: true}),
	wulframScenario("fragments", "many entities and long chats: datagrams above the MTU", 8*time.Second, Faults{},
		game{players: []player{{script: "talk"}}, entities: 50}),
	wulframScenario("groups", "squad and beacon records, which share sequences", 8*time.Second,
		Faults{Behind: Path{Loss: 0.1}},
		game{players: []player{{script: "squad"}}}),
	// Sequences begin at 1, so only a session that has gone on for long can show this.
	wulframScenario("wrap", "a capture of a long session: sequences go on past 65534", 8*time.Second,
		Faults{Capture: Capture{Start: 900 * time.Millisecond}},
		game{players: []player{{script: "many"}}, unarmed: true, firstSeq: 65529}),
	wulframScenario("oversize", "records too large to be sent, which the log tells of", 8*time.Second, Faults{},
		game{players: []player{{script: "brief", variant: wulfram.Variant{Oversize: true}}}}),
	wulframScenario("prefixed", "a client that puts its size in front of each datagram", 8*time.Second, Faults{},
		game{players: []player{{script: "brief", variant: wulfram.Variant{Prefixed: true}}}}),
	wulframScenario("delimited", "a client that puts FF FF in front of each datagram", 8*time.Second, Faults{},
		game{players: []player{{script: "brief", variant: wulfram.Variant{Delimited: true}}}}),
	wulframScenario("early", "an update by UDP comes before the TRANSLATION that it needs", 6*time.Second, Faults{},
		game{players: []player{{script: "login"}}, early: true}),
	wulframScenario("original", "a server that sends the client's own stream modes back", 8*time.Second, Faults{},
		game{players: []player{{script: "brief"}}, handshake: wulfram.Original}),
	wulframScenario("game-data", "a server whose stream modes put the controls in mode 1", 8*time.Second, Faults{},
		game{players: []player{{script: "brief"}}, handshake: wulfram.GameData}),
	wulframScenario("ipv6", "IPv6, with fragments, in nanoseconds", 8*time.Second, Faults{},
		game{players: []player{{script: "talk"}}, entities: 50, ipv6: true}).inNanoseconds(),
	wulframScenario("vlan", "Ethernet with an 802.1Q tag", 6*time.Second, Faults{},
		game{players: []player{{script: "login"}}}).over(tape.Link{VLAN: 42}),
	wulframScenario("cooked", "Linux cooked capture, version 1", 6*time.Second, Faults{},
		game{players: []player{{script: "login"}}}).over(tape.Link{Type: tape.Cooked, Host: serverHost}),
	wulframScenario("cooked2", "Linux cooked capture, version 2", 6*time.Second, Faults{},
		game{players: []player{{script: "login"}}}).over(tape.Link{Type: tape.Cooked2, Host: serverHost}),
	wulframScenario("snaplen", "the capture has at most 256 bytes of a packet", 8*time.Second,
		Faults{Capture: Capture{Snap: 256}},
		game{players: []player{{script: "brief"}}, unarmed: true}),
	wulframScenario("one-direction", "the capture has only what the server sends", 8*time.Second,
		Faults{Capture: Capture{OnlySrc: serverHost}},
		game{players: []player{{script: "brief"}}}),
	wulframScenario("tcp-trouble", "segments split, merged, lost, repeated with overlap, out of order", 8*time.Second,
		Faults{
			Before: Path{Loss: 0.04, Reorder: 0.1, Delay: 40 * time.Millisecond},
			Behind: Path{Loss: 0.08},
			Stream: Shape{Split: 0.4, Merge: 30 * time.Millisecond, Overlap: 0.7, Wrap: true},
		},
		game{players: []player{{script: "brief"}}}),
}

// game is a server with its players.
type game struct {
	players   []player
	entities  int
	handshake wulfram.Handshake
	firstSeq  uint16 // of all sequences, 0 for 1
	early     bool   // an update comes before its widths
	unarmed   bool   // the stated defaults read the session where its BEHAVIOR is not captured
	ipv6      bool
}

// player is a bot.
type player struct {
	script  string // a built-in one, or one of scripts
	start   time.Duration
	variant wulfram.Variant
	// sharing says that the player sits behind the same address as the one before.
	sharing bool
}

var (
	serverHost  = netip.MustParseAddr("10.0.0.1")
	serverHost6 = netip.MustParseAddr("fd00::1")
)

const (
	serverPort = 2627
	clientPort = 50110
)

func wulframScenario(name, doc string, d time.Duration, f Faults, g game) Scenario {
	return Scenario{Name: name, Doc: doc, Protocol: "wulfram", Duration: d, Faults: f, Cast: g.cast, Acks: wulframAcks}
}

// cast makes the machines of a game.
func (g game) cast(seed uint64) []Role {
	host := serverHost
	if g.ipv6 {
		host = serverHost6
	}
	server := netip.AddrPortFrom(host, serverPort)
	roles := []Role{{
		Name: "server", Addr: server, Server: true,
		Build: func(o machine.Observer) machine.Machine {
			return wulfram.NewServer(wulfram.ServerConfig{
				Addr: server, Seed: seed, Handshake: g.handshake, Entities: g.entities, FirstSeq: g.firstSeq, Early: g.early, Unarmed: g.unarmed,
			}, o)
		},
	}}
	for i, p := range g.players {
		if !p.sharing {
			host = host.Next()
		}
		name := names[i%len(names)]
		script := commands(wulfram.Scripts, scripts, p.script)
		p.variant.FirstSeq = g.firstSeq
		config := wulfram.BotConfig{Name: name, Server: server, Script: script, Seed: seed + uint64(i) + 1, Variant: p.variant}
		roles = append(roles, Role{
			Name: name, Addr: netip.AddrPortFrom(host, clientPort+uint16(1000*i)), Start: p.start,
			Build: func(o machine.Observer) machine.Machine { return wulfram.NewBot(config, o) },
		})
	}
	return roles
}

// scripts are those that only scenarios want.
var scripts = map[string]string{
	// brief has a little of everything that play has.
	"brief": `team red
spawn 1 tank
say hello there
move forward 1
look 1003
wait 300ms
move fire 1
squad
beacon
retarget
wait 300ms
look none
drop
resend
ping
team-say on my way
skip
wait 400ms
say good bye
leave`,
	// outing is what play does, in less time.
	"outing": `team red
spawn 1 tank
wait 300ms
say hello there
move forward 1
look 1003
move turn 0.5
move jump 1
wait 300ms
move jump 0
look none
move fire 1
wait 500ms
move fire 0
ping
drop
team-say on my way
say /dock
wait 300ms
say /die
wait 400ms
spawn 1 scout
wait 500ms
deploy
skip
say good bye
leave`,
	// visit is a player who comes while another one is there, and leaves before.
	"visit": `team blue
spawn 2 scout
say hello, who is there?
move forward 1
wait 400ms
move turn -0.5
look 1001
wait 400ms
say bye
leave`,
	// many has each sequence of the client go on for more than ten records.
	"many": `team red
spawn 1 tank
wait 400ms
repeat 12 look 1003
repeat 12 say again
wait 500ms
repeat 5 squad
repeat 6 beacon
wait 500ms
repeat 6 look none
repeat 6 say and again
wait 500ms
leave`,
}

// names are what bots are called.
var names = []string{"Ada", "Brin", "Caro", "Dov"}

// wulframAcks tells the acknowledgements of records: D_ACK with subtype 1. Section
// 4.4 of the facts.
func wulframAcks(r *machine.Record) (opcode, seq int, ok bool) {
	const ack = 0x02
	if r.Opcode != ack || r.Body == nil {
		return 0, 0, false
	}
	subtype, _ := r.Body.Value("subtype")
	op, _ := r.Body.Value("acked_opcode")
	s, _ := r.Body.Value("acked_sequence")
	return int(op), int(s), subtype == 1
}

// mixedWulfram returns a scenario with faults of all kinds, drawn from a seed.
func mixedWulfram(seed uint64) Scenario {
	c := newChance(seed, 6)
	script := []string{"brief", "brief", "many", "play"}[c.IntN(4)]
	g := game{players: []player{{script: script}}}
	if c.IntN(3) == 0 {
		g.players = append(g.players, player{script: "brief", start: 900 * time.Millisecond, sharing: c.IntN(2) == 0})
	}
	if c.IntN(3) == 0 {
		g.entities = 10 + c.IntN(80)
	}
	g.early = c.IntN(4) == 0
	g.handshake = []wulfram.Handshake{wulfram.Policy, wulfram.Policy, wulfram.Original, wulfram.GameData}[c.IntN(4)]
	switch c.IntN(6) {
	case 0:
		g.players[0].variant.Prefixed = true
	case 1:
		g.players[0].variant.Delimited = true
	case 2:
		if g.handshake != wulfram.GameData { // whose D_SET_START has the sequences begin at 1
			g.firstSeq = uint16(65520 + c.IntN(15))
		}
	}
	f := mixedFaults(c)
	if g.firstSeq > 0 {
		f.Capture.Start = max(f.Capture.Start, 900*time.Millisecond)
	}
	s := wulframScenario("mixed", "faults of all kinds, drawn from the seed", 10*time.Second, f, g)
	return s.drawn(c)
}

// drawn returns the scenario over a link that is drawn.
func (s Scenario) drawn(c *rand.Rand) Scenario {
	s.Nanoseconds = c.IntN(2) == 0
	s.MTU = []int{1500, 1500, 1280, 576}[c.IntN(4)]
	switch c.IntN(6) {
	case 0:
		s.Link.VLAN = 7
	case 1:
		s.Link = tape.Link{Type: tape.Cooked, Host: serverHost}
	case 2:
		s.Link = tape.Link{Type: tape.Cooked2, Host: serverHost}
	}
	return s
}

// mixedFaults draws faults: each kind is there in one of three scenarios.
func mixedFaults(c *rand.Rand) (f Faults) {
	some := func(most float64) float64 {
		v := c.Float64() * most
		if c.IntN(3) > 0 {
			return 0
		}
		return v
	}
	for _, p := range []*Path{&f.Before, &f.Behind} {
		p.Loss, p.Duplicate, p.Reorder = some(0.1), some(0.1), some(0.2)
		p.Delay = time.Duration(c.IntN(80)) * time.Millisecond
	}
	f.Stream.Split, f.Stream.Overlap = some(0.6), some(1)
	f.Stream.Merge = time.Duration(some(80)) * time.Millisecond
	f.Stream.Wrap = c.IntN(4) == 0
	f.Capture.Miss = some(0.08)
	switch c.IntN(8) {
	case 0:
		f.Capture.Snap = 90 + c.IntN(400)
	case 1:
		f.Capture.Start = time.Duration(500+c.IntN(5000)) * time.Millisecond
	case 2:
		f.Capture.OnlySrc = serverHost
	}
	return f
}
