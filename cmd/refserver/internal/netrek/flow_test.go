package netrek

import (
	"slices"
	"strings"
	"testing"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
)

// expect fails unless some record of a kind that a station heard has all of some
// words in its text.
func expect(t *testing.T, s *station, message string, words ...string) {
	t.Helper()
	for _, text := range s.got(message) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(" "+text+" ", w) }) {
			return
		}
	}
	t.Errorf("%s heard no %s with %q; the last of %d is %q", s.name, message, words, len(s.got(message)), s.last(message))
}

// never fails if a station heard something.
func never(t *testing.T, s *station, message string) {
	t.Helper()
	if n := len(s.got(message)); n > 0 {
		t.Errorf("%s heard %d times %s: %q", s.name, n, message, s.last(message))
	}
}

// left checks that every bot has ended by itself.
func (w *cable) left(t *testing.T) {
	t.Helper()
	for _, b := range w.bots {
		if !slices.ContainsFunc(b.events, func(e string) bool { return strings.HasPrefix(e, "left") }) {
			t.Errorf("%s did not come to its end: %q, the server: %q", b.name, b.events, w.server.events)
		}
	}
}

func TestLogin(t *testing.T) {
	w := newCable(t, ServerConfig{Seed: 1}, BotConfig{Script: scripted(t, "feature SHIP_CAP\nfeature SP_RANK\nfeature SP_LTD\noutfit rom destroyer\nwait 500ms")})
	w.run(20 * time.Second)
	w.left(t)
	b := w.bots[0]
	for message, want := range map[string]int{
		"SP_PLANET_LOC": 40, "SP_PSTATUS": 33, "SP_RANK": 9, "SP_SHIP_CAP": 1, "SP_LOGIN": 2, "SP_MOTD": 3, "SP_PICKOK": 1,
	} {
		if n := len(b.got(message)); n != want {
			t.Errorf("%d times %s, want %d", n, message, want)
		}
	}
	expect(t, b, "SP_LOGIN", "accept=1", "flags=175")
	expect(t, b, "SP_FEATURE", "name=FEATURE_PACKETS", "value=1")
	expect(t, b, "SP_MASK", "mask=15")
	expect(t, b, "SP_SHIP_CAP", "name=Destroyer", "desig=DD")
	expect(t, b, "SP_PLAYER_INFO", "pnum=0", "shiptype=1", "team=2")
	expect(t, b, "SP_MESSAGE", " R0->ALL  Ensign Ada is now R0")
	expect(t, w.server, "CP_LOGIN", "query=1", "name=Ada")
	expect(t, w.server, "CP_BYE")
	never(t, b, "SP_SEQUENCE")
	if first := b.heard[0].Message; first != "SP_MOTD" {
		t.Errorf("the first packet is %s", first)
	}
}

func TestGuestSkipsTheQuery(t *testing.T) {
	w := newCable(t, ServerConfig{}, BotConfig{Name: "guest", Script: scripted(t, "outfit fed scout\nwait 200ms")})
	w.run(20 * time.Second)
	w.left(t)
	if n := len(w.server.got("CP_LOGIN")); n != 1 {
		t.Errorf("%d times CP_LOGIN", n)
	}
}

func TestFeatures(t *testing.T) {
	w := newCable(t, ServerConfig{}, BotConfig{Script: scripted(t,
		"feature why_dead\nfeature SHOW_CLOAKERS\nfeature SELF_8FLAGS2\nfeature SP_GENERIC_32\noutfit fed scout\nwait 1500ms")})
	w.run(20 * time.Second)
	b := w.bots[0]
	expect(t, b, "SP_FEATURE", "name=why_dead", "value=1")
	expect(t, b, "SP_FEATURE", "name=SHOW_CLOAKERS", "value=0")
	expect(t, b, "SP_FEATURE", "name=SELF_8FLAGS2", "value=-1", "arg1=0")
	expect(t, b, "SP_FEATURE", "name=SP_GENERIC_32", "value=1", "arg1=2")
	expect(t, b, "SP_GENERIC_32", "version=98", "pl_orbit=-1")
}

func TestFlight(t *testing.T) {
	w := newCable(t, ServerConfig{Seed: 3}, BotConfig{Script: scripted(t, `outfit fed cruiser
speed 6
course 64
wait 2s
torp 64
phaser 100
plasma 32
cloak on
wait 300ms
torp 1
cloak off
shield off
repeat 9 torp 64
det
mine
say hello, world
tell 0 to me
team-say team`)})
	w.run(60 * time.Second)
	w.left(t)
	b := w.bots[0]
	expect(t, b, "SP_PLAYER", "pnum=0", "dir=64", "speed=6")
	expect(t, b, "SP_TORP_INFO", "status=1", "war=14")
	expect(t, b, "SP_TORP", "dir=64")
	expect(t, b, "SP_PHASER", "status=2", "dir=100")
	expect(t, b, "SP_PLASMA_INFO", "status=1")
	expect(t, b, "SP_PLASMA", "pnum=0")
	expect(t, b, "SP_WARNING", "Phaser missed")
	expect(t, b, "SP_WARNING", "unable to fire while in cloak")
	expect(t, b, "SP_WARNING", "8 live torpedos")
	expect(t, b, "SP_MESSAGE", "m_flags=9", " F0->ALL  hello, world")
	expect(t, b, "SP_MESSAGE", "m_flags=3", " F0->F0   to me")
	expect(t, b, "SP_MESSAGE", "m_flags=5", "m_recpt=1", " F0->FED  team")
}

func TestOrbitBeamAndRefit(t *testing.T) {
	w := newCable(t, ServerConfig{Seed: 5}, BotConfig{Script: scripted(t, `feature SHIP_CAP
outfit fed cruiser
orbit
bomb
beam up
refit scout
speed 5
lock planet 0
wait 7s
orbit
bomb
beam up
wait 1s
refit scout
beam down
wait 3s
refit scout
wait 3s`)})
	w.run(60 * time.Second)
	w.left(t)
	b := w.bots[0]
	for _, text := range []string{"no valid targets", "orbiting to bomb", "docked to beam up", "home planet to refit", "Locking onto Earth",
		"bomb your own", "Beaming up... 1 of 10", "beam your armies down", "Beaming down to Earth", "new vessel"} {
		expect(t, b, "SP_WARNING", text)
	}
	expect(t, b, "SP_PLAYER_INFO", "pnum=0", "shiptype=0", "team=1")
	expect(t, b, "SP_SHIP_CAP", "name=Scout")
}

func TestRaid(t *testing.T) {
	w := newCable(t, ServerConfig{Seed: 5, Near: true}, BotConfig{Script: scripted(t, `outfit rom assault
speed 5
lock planet 0
wait 6s
orbit
bomb
wait 12s
beam down
wait 500ms`)})
	w.run(60 * time.Second)
	w.left(t)
	b := w.bots[0]
	expect(t, b, "SP_WARNING", "Bombing Earth... 4 armies left")
	expect(t, b, "SP_PLANET", "pnum=0", "owner=1", "armies=4")
	expect(t, b, "SP_KILLS", "pnum=0", "kills=")
}

func TestDuelDeathAndReturn(t *testing.T) {
	w := newCable(t, ServerConfig{Seed: 1, Near: true},
		BotConfig{Script: scripted(t, "outfit fed cruiser\nawait enemy\nphaser enemy\nrepeat 8 torp enemy\nphaser enemy\nrepeat 8 torp enemy\nwait 4s")},
		BotConfig{Script: scripted(t, "outfit rom scout\nshield off\nawait dead\noutfit kli cruiser\nwait 1s")})
	w.run(60 * time.Second)
	w.left(t)
	killer, victim := w.bots[0], w.bots[1]
	expect(t, victim, "SP_PSTATUS", "pnum=1", "status=3")
	expect(t, victim, "SP_PSTATUS", "pnum=1", "status=4")
	expect(t, victim, "SP_YOU", "whodead=0")
	expect(t, killer, "SP_MESSAGE", "m_flags=137", "m_from=255", "Brin (R1) was kill")
	expect(t, killer, "SP_KILLS", "pnum=0", "kills=1")
	expect(t, victim, "SP_PLAYER_INFO", "pnum=1", "shiptype=2", "team=4")
	if n := len(w.server.got("CP_OUTFIT")); n != 3 {
		t.Errorf("%d times CP_OUTFIT", n)
	}
}

// TestTorpsVanishWithTheirPlayer has a player leave whose torps are on their way.
func TestTorpsVanishWithTheirPlayer(t *testing.T) {
	for _, first := range []string{"", "short v1\n", "short v2\n"} {
		w := newCable(t, ServerConfig{Near: true}, BotConfig{Script: scripted(t, first+"outfit fed cruiser\nwait 3s")},
			BotConfig{Script: scripted(t, "outfit rom cruiser\nwait 500ms\ntorp 200\nplasma 200\nwait 300ms\nleave")})
		w.run(20 * time.Second)
		w.left(t)
		b := w.bots[0]
		expect(t, b, "SP_PLASMA_INFO", "status=0", "pnum=1")
		expect(t, b, "SP_PSTATUS", "status=0", "pnum=1")
		if first == "" {
			expect(t, b, "SP_TORP_INFO", "status=1", "tnum=8")
			expect(t, b, "SP_TORP_INFO", "status=0", "tnum=8")
		} else {
			expect(t, b, "SP_S_TORP_INFO", "bitset=1", "whichtorps=1")
			expect(t, b, "SP_S_TORP", "bitset=0", "whichtorps=1")
		}
	}
}

func TestSelfDestruct(t *testing.T) {
	w := newCable(t, ServerConfig{}, BotConfig{Script: scripted(t, "outfit fed scout\nquit\nwait 1s\nspeed 2\nwait 300ms\nquit\nawait dead\nwait 3s")})
	w.run(60 * time.Second)
	b := w.bots[0]
	expect(t, b, "SP_WARNING", "Self Destruct in 10 seconds")
	expect(t, b, "SP_WARNING", "has been canceled")
	expect(t, b, "SP_WARNING", "Self Destruct in 1 seconds")
	expect(t, b, "SP_YOU", "whydead=1")
	expect(t, b, "SP_PSTATUS", "pnum=0", "status=3")
}

func TestUDP(t *testing.T) {
	for _, mode := range []string{"port", "packet"} {
		w := newCable(t, ServerConfig{}, BotConfig{Script: scripted(t,
			"outfit fed scout\nping on\nudp "+mode+"\nspeed 3\ntorp 5\nwait 3s\nmode tcp\nwait 500ms\nmode double\nwait 200ms\ntcp\nwait 300ms\nspeed 1\nwait 300ms")})
		w.run(60 * time.Second)
		w.left(t)
		b := w.bots[0]
		expect(t, b, "SP_UDP_REPLY", "reply=1", "port=40001")
		expect(t, b, "SP_UDP_REPLY", "reply=3")
		expect(t, b, "SP_UDP_REPLY", "reply=0")
		expect(t, b, "SP_WARNING", "TCP only")
		expect(t, b, "SP_WARNING", "double UDP DENIED")
		expect(t, w.server, "CP_PING_RESPONSE", "number=1")
		sequence, first := 0, true
		for _, h := range b.heard {
			if h.Message == "SP_SEQUENCE" {
				if sequence++; h.Via != schema.UDP {
					t.Error("a sequence over TCP")
				}
			}
			if h.Via == schema.UDP && first {
				if first = false; h.Message != "SP_UDP_REPLY" {
					t.Errorf("the first datagram begins with %s", h.Message)
				}
			}
		}
		if sequence < 20 || !strings.Contains(b.last("SP_SEQUENCE"), "sequence=") {
			t.Errorf("%d sequences", sequence)
		}
		for _, h := range w.server.heard {
			if h.Message == "CP_TORP" && h.Via != schema.UDP || h.Message == "CP_MESSAGE" && h.Via != schema.TCP {
				t.Errorf("%s over %v", h.Message, h.Via)
			}
		}
		if speeds := w.server.got("CP_SPEED"); len(speeds) != 2 {
			t.Errorf("speeds %q", speeds)
		}
	}
}

// TestUDPPorts has each request answered with a port of its own, and the socket before
// it closed (section 7).
func TestUDPPorts(t *testing.T) {
	const play = "outfit any scout\nudp port\nspeed 3\nwait 500ms\nudp packet\nspeed 4\nwait 500ms"
	w := newCable(t, ServerConfig{}, BotConfig{Script: scripted(t, play+"\nwait 1m")}, BotConfig{Script: scripted(t, play)})
	w.run(30 * time.Second)
	ports := map[string]bool{}
	for _, b := range w.bots {
		for _, text := range b.got("SP_UDP_REPLY") {
			if strings.HasPrefix(text, "reply=1") {
				ports[text] = true
			}
		}
	}
	if len(ports) != 4 {
		t.Errorf("answered with %v", ports)
	}
	for _, h := range w.server.heard {
		if h.Message == "CP_SPEED" && (h.Via != schema.UDP || h.Port == 0 || h.Port == serverAddr.Port()) {
			t.Errorf("%s over %v, at %v", h.text, h.Via, h.Port)
		}
	}
	if len(w.server.sockets) != 1 { // the second player has left
		t.Errorf("sockets %v are open", w.server.sockets)
	}
}

func TestUDPUnderLoss(t *testing.T) {
	for seed := range uint64(20) {
		w := newCable(t, ServerConfig{Seed: seed}, BotConfig{Script: scripted(t, "outfit fed scout\nudp port\nspeed 3\nwait 5s\nupdate\nwait 1s")})
		w.loss = 0.3
		w.run(60 * time.Second)
		w.left(t)
		if n := len(w.bots[0].got("SP_SEQUENCE")); n < 10 {
			t.Errorf("seed %d: %d sequences", seed, n)
		}
	}
}

func TestUDPDenied(t *testing.T) {
	w := newCable(t, ServerConfig{NoUDP: true}, BotConfig{Script: scripted(t, "outfit fed scout\nudp port\nspeed 3\nwait 300ms")},
		BotConfig{UDPVersion: 9, Script: scripted(t, "outfit fed scout\nudp port\nspeed 3\nwait 300ms")})
	w.run(60 * time.Second)
	w.left(t)
	expect(t, w.bots[0], "SP_UDP_REPLY", "reply=2", "port=0")
	expect(t, w.bots[1], "SP_UDP_REPLY", "reply=2", "port=65536")
}

func TestShortPackets(t *testing.T) {
	const play = `
outfit fed cruiser
await enemy
speed 3
repeat 8 torp enemy
phaser enemy
wait 500ms
plasma enemy
say hello, in short
bomb
wait 500ms
short off
wait 500ms`
	for version, only := range map[string][]string{"v1": nil, "v2": {"SP_S_PHASER", "SP_S_STATS", "SP_S_KILLS"}} {
		w := newCable(t, ServerConfig{Near: true}, BotConfig{Script: scripted(t, "short "+version+play)},
			BotConfig{Script: scripted(t, "outfit rom battleship\nspeed 2\nwait 6s")})
		w.run(60 * time.Second)
		w.left(t)
		b := w.bots[0]
		expect(t, b, "SP_S_REPLY", "repl=1", "winside=500", "gwidth=100000")
		expect(t, b, "SP_S_REPLY", "repl=0")
		for _, message := range append(only, "SP_S_PLAYER", "SP_S_TORP_INFO", "SP_S_TORP", "SP_S_YOU", "SP_S_YOU_SS", "SP_S_PLANET", "SP_S_MESSAGE", "SP_S_WARNING") {
			expect(t, b, message)
		}
		expect(t, b, "SP_S_MESSAGE", "mesg= hello, in short")
		expect(t, b, "SP_S_WARNING", "which=0", "arg=39")
		expect(t, w.server, "CP_S_MESSAGE", "hello, in short")
		if version == "v1" {
			never(t, b, "SP_S_PHASER")
			expect(t, b, "SP_PHASER", "pnum=0")
		}
	}
}

// TestShortPlaces compares where a bot sees another by short packets with where the
// server has it.
func TestShortPlaces(t *testing.T) {
	for _, version := range []string{"v1", "v2"} {
		w := newCable(t, ServerConfig{Near: true, Seed: 4}, BotConfig{Script: scripted(t, "short "+version+"\noutfit fed cruiser\nwait 9s")},
			BotConfig{Script: scripted(t, "outfit rom cruiser\nspeed 5\ncourse 77\nwait 9s")})
		w.run(6 * time.Second)
		seen := w.bots[0].machine.(*bot).ships[1]
		there := w.server.machine.(*server).world.pilots[1]
		if there.status != alive || apart(seen.x, seen.y, there.x, there.y, 5*20*2+2*perPixel) {
			t.Errorf("%s: seen at %d, %d; it is at %d, %d", version, seen.x, seen.y, there.x, there.y)
		}
	}
}

func TestQueue(t *testing.T) {
	w := newCable(t, ServerConfig{Slots: 1}, BotConfig{Script: scripted(t, "outfit fed scout\nwait 4s")}, BotConfig{Script: scripted(t, "outfit fed scout\nwait 300ms")})
	w.run(60 * time.Second)
	w.left(t)
	expect(t, w.bots[1], "SP_QUEUE", "pos=1")
	never(t, w.bots[0], "SP_QUEUE")
	expect(t, w.bots[1], "SP_PLAYER_INFO", "pnum=0", "team=1")
}

func TestRefusals(t *testing.T) {
	bots := make([]BotConfig, 1+maxQueue+1)
	for i := range bots {
		bots[i] = BotConfig{Script: scripted(t, "outfit fed scout\nwait 8s")}
	}
	bots = append(bots, BotConfig{SocketVersion: 3})
	w := newCable(t, ServerConfig{Slots: 1}, bots...)
	w.run(5 * time.Second)
	expect(t, w.bots[len(bots)-1], "SP_BADVERSION", "why=0")
	expect(t, w.bots[len(bots)-2], "SP_BADVERSION", "why=2")
}

func TestBadChoices(t *testing.T) {
	h := newHand(t, ServerConfig{})
	h.enter(1, "10.0.0.2:40000")
	h.stream(1, "09 05 02 00")
	h.stream(1, "09 00 09 00")
	if got := h.sent(1, "SP_PICKOK"); len(got) != 2 || got[0] != "state=0" {
		t.Errorf("got %q", got)
	}
	h.stream(1, "09 ff 00 00")
	if machine.SessionOf(h.server.sessions, 1) != nil {
		t.Error("the session goes on")
	}
}

// TestDeterminism plays the same twice.
func TestDeterminism(t *testing.T) {
	play := func(seed uint64) string {
		duel, err := Scripts.Builtin("duel")
		if err != nil {
			t.Fatal(err)
		}
		w := newCable(t, ServerConfig{Seed: seed, Near: true}, BotConfig{Script: duel}, BotConfig{Seed: 1, Script: duel})
		w.run(30 * time.Second)
		w.left(t)
		return strings.Join(w.log, "\n")
	}
	first, again := play(1), play(1)
	if first != again {
		t.Error("two runs differ")
	}
	if first == play(2) {
		t.Error("two seeds make the same")
	}
}

func TestBuiltinScripts(t *testing.T) {
	for name := range builtin {
		s, err := Scripts.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		w := newCable(t, ServerConfig{Seed: 2}, BotConfig{Script: s}, BotConfig{Seed: 1, Script: s})
		w.run(2 * time.Minute)
		w.left(t)
		for _, e := range append(slices.Clone(w.server.events), append(w.bots[0].events, w.bots[1].events...)...) {
			if strings.HasPrefix(e, "dropped") || strings.HasPrefix(e, "malformed") {
				t.Errorf("%s: %s", name, e)
			}
		}
	}
}

func TestDirectory(t *testing.T) {
	s := &station{}
	board := &Board{}
	board.Set(3, 1)
	for inl, want := range map[bool]string{
		false: "s,B,opscope reference server,1,2592,3,1\n", true: "s,I,opscope reference server,2,4566,3,1,4577,0,0\n",
	} {
		d := NewDirectory(DirectoryConfig{Board: board, INL: inl}, s)
		out := d.Handle(epoch, datagramOf("10.0.0.9:999", "?version=x"))
		if len(out) != 1 || string(out[0].Data) != want {
			t.Errorf("got %+v, want %q", out, want)
		}
		for _, other := range []string{"", "s,B", "\x00?"} {
			if out := d.Handle(epoch, datagramOf("10.0.0.9:999", other)); len(out) != 0 {
				t.Errorf("%q is answered with %+v", other, out)
			}
		}
	}
}
