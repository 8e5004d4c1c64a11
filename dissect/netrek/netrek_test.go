package netrek_test

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"opscope/dissect"
	"opscope/dissect/netrek"
	"opscope/dissect/scene"
	"opscope/schema"
)

// Packets put together by hand, from the facts.
const (
	socket    = "\x1b\x04\x0a\x00\x00\x00\x75\x2f"
	speed     = "\x02\x05\x00\x00"
	direction = "\x03\x40\x00\x00"
	shield    = "\x0c\x01\x00\x00"
	bye       = "\x1d\x00\x00\x00"
	verify    = "\x23\x02\x00\x00\x00\x00\x00\x00"
	mask      = "\x13\x0f\x00\x00"
	pstatus   = "\x14\x01\x02\x00"
	kills     = "\x03\x01\x00\x00\x00\x00\x00\x64"
	player    = "\x04\x01\x40\x05\x00\x00\x27\x10\x00\x00\x27\x10"
	short11   = "\x2b\x01\x0b\x00"
	short10   = "\x2b\x01\x0a\x00"
	shortYes  = "\x28\x01\x01\xf4\x00\x01\x86\xa0"
	big11     = "\x2d\x00\x20\x05\x01\x90\x08\x00\x00\x00\x00\x2f" // x, y / 40 and flags
	big10     = "\x2d\x00\x20\x05\x00\x00\x54\x9f\x00\x01\x33\x46"
)

func padded(s string, n int) string { return s + strings.Repeat("\x00", n-len(s)) }

func feature(name string, arg1 int) string {
	return "\x3cS" + string([]byte{byte(arg1), 0}) + scene.BE32(1) + padded(name, 80)
}

func udpRequest(mode, port int) string {
	return "\x23\x01" + string([]byte{byte(mode), 0}) + scene.BE32(port)
}
func udpReply(reply, port int) string {
	return "\x1c" + string([]byte{byte(reply)}) + "\x00\x00" + scene.BE32(port)
}
func sequence(n int) string { return "\x1d\x08" + scene.BE16(n) }

// you is an SP_YOU of slot 1.
func you() string { return padded("\x0c\x01", 28) + "\x00\x00\xff\xff" }

// game is a session that has begun.
type game struct {
	scene.Scene
	tcp *scene.Connection
	udp *scene.Datagrams
}

func begin() *game {
	g := &game{}
	g.tcp = g.TCP("10.0.0.2:50111", "10.0.0.1:2592")
	g.udp = g.UDP("10.0.0.2:6000", "10.0.0.1:7000")
	g.tcp.Open()
	g.tcp.Send(fromC, socket)
	return g
}

// onUDP is one that has gone to UDP as connmode 0 does.
func onUDP() *game {
	g := begin()
	g.tcp.Send(fromC, udpRequest(0, 6000))
	g.tcp.Send(fromS, udpReply(1, 7000))
	g.udp.Send(fromC, verify)
	g.udp.Send(fromS, udpReply(3, 7000), kills)
	return g
}

// want plays and compares what comes after the first records.
func (g *game) want(t *testing.T, after int, want string) {
	t.Helper()
	scene.Want(t, g.Play(t, known).Frames()[after:], want)
}

func TestOneUnknownTypeCostsOneRecord(t *testing.T) {
	g := begin()
	for range 4 {
		g.tcp.Send(fromS, mask, pstatus, player)
	}
	g.tcp.Send(fromS, mask, "\x00\xde\xad", player, player, pstatus, mask, player, player, player, player)
	g.tcp.Send(fromS, pstatus)
	out := g.Play(t, known)
	lines := scene.Lines(out.Records[len(out.Records)-12:])
	if !strings.HasPrefix(lines, "s2c SP_MASK\ns2c ? !malformed envelope.opcode@0 rest=00dead\ns2c event resync\ns2c SP_PLAYER\n") {
		t.Errorf("got\n%s", lines)
	}
	if n := out.Result.Summary.Errors; n != [3]int{1, 0, 0} {
		t.Errorf("got errors %v, want one malformed", n)
	}
	for _, r := range out.Frames() {
		if r.Err != nil && r.Err.Error() != "netrek/envelope.opcode at byte 0: want a type that the server sends, got 0 (malformed)" {
			t.Errorf("got %v", r.Err)
		}
	}
}

func TestATypeOfTheOtherSide(t *testing.T) {
	g := onUDP()
	g.udp.Send(fromC, "\x3e\x61\x00\x00")
	g.want(t, 6, `
		c2s unknown(0x3E) +unexpected_direction !malformed envelope.opcode@0 rest=3e610000`)
}

func TestDatagrams(t *testing.T) {
	g := onUDP()
	g.udp.Send(fromS, sequence(1), player, kills)
	g.udp.Send(fromS, sequence(2), player[:7])
	g.udp.Send(fromS, sequence(3), "\x00\x01\x02\x03", player)
	g.udp.Send(fromS, "")
	g.udp.Send(fromS, sequence(4))
	g.udp.Send(fromC, speed)
	g.udp.Send(fromC, direction[:3])
	g.want(t, 6, `
		s2c SP_SEQUENCE 1
		s2c SP_PLAYER
		s2c SP_KILLS
		s2c SP_SEQUENCE 2
		s2c SP_PLAYER !malformed SP_PLAYER.x@4 rest=000027
		s2c SP_SEQUENCE 3
		s2c unknown(0x00) !malformed envelope.opcode@0 rest=00010203040140050000271000002710
		s2c empty !malformed datagram@0
		s2c SP_SEQUENCE 4
		c2s CP_SPEED
		c2s CP_DIRECTION !malformed CP_DIRECTION._@2 rest=00`)
}

func TestSequences(t *testing.T) {
	g := onUDP()
	for _, n := range []int{1, 2, 5, 4, 2, 6} {
		g.udp.Send(fromS, sequence(n), "\x03\x01\x00\x00"+scene.BE32(n))
	}
	g.want(t, 6, `
		s2c SP_SEQUENCE 1
		s2c SP_KILLS
		s2c SP_SEQUENCE 2
		s2c SP_KILLS
		s2c SP_SEQUENCE 5 +sequence_gap
		s2c SP_KILLS
		s2c SP_SEQUENCE 4 +stale +datagram_ignored
		s2c SP_KILLS +datagram_ignored
		s2c SP_SEQUENCE 2 +stale +duplicate +datagram_ignored
		s2c SP_KILLS +datagram_ignored
		s2c SP_SEQUENCE 6
		s2c SP_KILLS`)
}

func TestSequencesWrapAndRestart(t *testing.T) {
	g := onUDP()
	for _, n := range []int{1, 20000, 50000, 65535, 0, 1} {
		g.udp.Send(fromS, sequence(n), mask)
	}
	g.udp.Send(fromS, sequence(900), mask)
	g.udp.Send(fromS, sequence(1), mask)
	g.udp.Send(fromS, sequence(2), mask)
	g.udp.Send(fromS, udpReply(3, 7000))
	g.udp.Send(fromS, sequence(1), mask)
	g.udp.Send(fromS, "\x1e\x00\x00\x01", kills)
	var got []*dissect.Record
	for _, r := range g.Play(t, known).Frames()[6:] {
		if r.Message != "SP_MASK" && r.Message != "SP_KILLS" {
			got = append(got, r)
		}
	}
	scene.Want(t, got, `
		s2c SP_SEQUENCE 1
		s2c SP_SEQUENCE 20000 +sequence_gap
		s2c SP_SEQUENCE 50000 +sequence_gap
		s2c SP_SEQUENCE 65535 +sequence_gap
		s2c SP_SEQUENCE 0
		s2c SP_SEQUENCE 1
		s2c SP_SEQUENCE 900 +sequence_gap
		s2c SP_SEQUENCE 1 +sequence_restarted
		s2c SP_SEQUENCE 2
		s2c SP_UDP_REPLY
		s2c SP_SEQUENCE 1
		s2c SP_SC_SEQUENCE 1 +resend_copy`)
}

// UDP is joined to its session by the ports that were told over TCP: in both
// connmodes, with new ports, and where another session used one of them before.
func TestUDPJoinsItsSession(t *testing.T) {
	g := &game{}
	a, b := g.TCP("10.0.0.2:50111", "10.0.0.1:2592"), g.TCP("10.0.0.2:50112", "10.0.0.1:2592")
	for _, c := range []*scene.Connection{a, b} {
		c.Open()
		c.Send(fromC, socket)
	}
	a.Send(fromC, udpRequest(1, 6000))
	g.UDP("10.0.0.2:6000", "10.0.0.1:7000").Send(fromS, udpReply(1, 7000)) // connmode 1: before TCP tells
	a.Send(fromS, udpReply(1, 7000))
	b.Send(fromC, udpRequest(0, 6000))
	b.Send(fromS, udpReply(1, 7001))
	g.UDP("10.0.0.2:6000", "10.0.0.1:7001").Send(fromC, verify)
	g.UDP("10.0.0.2:6000", "10.0.0.1:7000").Send(fromC, verify)
	a.Send(fromC, udpRequest(0, 6002))
	a.Send(fromS, udpReply(1, 7002))
	g.UDP("10.0.0.2:9999", "10.0.0.1:7002").Send(fromC, verify) // its port was changed on the way
	g.UDP("10.0.0.2:9999", "10.0.0.1:7002").Send(fromS, sequence(1), mask)
	out := g.Play(t, known)
	var got []int
	for _, r := range out.Frames() {
		if r.Transport == schema.UDP {
			got = append(got, r.Session)
			if r.Direction == dissect.UnknownDirection || len(r.Notes) > 0 {
				t.Errorf("got %s", scene.Line(r))
			}
		}
	}
	if want := []int{1, 2, 1, 1, 1, 1}; !equal(got, want) {
		t.Errorf("got sessions %v, want %v\n%s", got, want, out)
	}
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestShortVersions(t *testing.T) {
	value := func(r *dissect.Record) (v uint64) {
		v, _ = r.Body.Value("short_version")
		return v
	}
	t.Run("the version asked for is in force before the reply", func(t *testing.T) {
		g := begin()
		g.tcp.Send(fromC, short11)
		g.tcp.Send(fromS, big11, shortYes, big11)
		for _, r := range g.Play(t, known).Named("SP_S_PLAYER") {
			if value(r) != 11 || r.Context != schema.Learned || len(r.Notes) > 0 {
				t.Errorf("got version %d by %s, %s", value(r), r.Context, scene.Line(r))
			}
		}
	})
	t.Run("another version waits for the reply", func(t *testing.T) {
		g := begin()
		g.tcp.Send(fromC, short10)
		g.tcp.Send(fromS, shortYes, big10)
		g.tcp.Send(fromC, short11)
		g.tcp.Send(fromS, big10, shortYes, big11)
		var got []int
		for _, r := range g.Play(t, known).Named("SP_S_PLAYER") {
			got = append(got, int(value(r)))
		}
		if !equal(got, []int{10, 10, 11}) {
			t.Errorf("got versions %v", got)
		}
	})
	t.Run("where nobody asked the bytes tell, and a note says so", func(t *testing.T) {
		g := begin()
		g.tcp.Send(fromS, big10, big11)
		scene.Want(t, g.Play(t, known).Frames()[1:], `
			s2c SP_S_PLAYER +assumed_context
			s2c SP_S_PLAYER +assumed_context`)
	})
}

func TestFeaturesAreThoseGranted(t *testing.T) {
	g := onUDP()
	g.udp.Send(fromS, sequence(1))
	g.tcp.Send(fromC, feature("19flags", 0))
	g.udp.Send(fromS, sequence(2))
	g.tcp.Send(fromS, feature("19FLAGS", 0))
	g.udp.Send(fromS, sequence(3))
	g.tcp.Send(fromS, feature("LITE_PLAYERS_MAP", 0))
	out := g.Play(t, known)
	var got []string
	for _, r := range out.Named("SP_SEQUENCE") {
		got = append(got, r.Body.Nodes[0].Field.Flags.Name)
	}
	if want := "sequence_flags sequence_flags sequence_19flags"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	table := out.Result.Sessions[0].Tables()[0].Table
	if e := table.Get(6); e.Origin != schema.Learned || e.Packet != 12 {
		t.Errorf("got 19FLAGS %s in packet %d", e.Origin, e.Packet)
	}
	if e := table.Get(1000); e == nil || table.Decl.KeyEnum.NameOf(1000) != "LITE_PLAYERS_MAP" {
		t.Errorf("got no LITE_PLAYERS_MAP: %v", table.Keys())
	}
}

func TestConflicts(t *testing.T) {
	generic := func(version byte, rest string) string { return padded("\x20"+string([]byte{version})+rest, 32) }
	t.Run("4: the byte order of SP_GENERIC_32 a", func(t *testing.T) {
		g := begin()
		g.tcp.Send(fromC, feature("SP_GENERIC_32", 1))
		g.tcp.Send(fromS, generic('a', "\x05\x00\xff\xff"), generic('a', "\x05\x00\x07\x00"), generic('a', "\x00\x05\x00\x07"), generic('b', "\x00\x05\x07"))
		got := g.Play(t, known).Named("SP_GENERIC_32")
		scene.Want(t, got, `
			s2c SP_GENERIC_32 +host_byte_order
			s2c SP_GENERIC_32 +host_byte_order
			s2c SP_GENERIC_32 +alternative_layout +host_byte_order
			s2c SP_GENERIC_32 +not_negotiated`)
		for i, want := range []string{
			"read as little-endian; big-endian would do as well", "read as little-endian; big-endian gives no planet",
			"read as big-endian, because little-endian gives no planet", "version 2, the client knows 1",
		} {
			if n := got[i].Notes; n[len(n)-1].Text != want {
				t.Errorf("got %q, want %q", n[len(n)-1].Text, want)
			}
		}
		for i, want := range []uint64{5, 5, 5, 5} {
			if v, _ := got[i].Body.Value("repair_time"); v != want {
				t.Errorf("got a repair time of %d, want %d", v, want)
			}
		}
	})
	t.Run("2: what a probe makes of SP_YOU", func(t *testing.T) {
		g := begin()
		g.tcp.Send(fromS, you(), you())
		g.want(t, 1, "s2c SP_YOU +struct_size_differs\ns2c SP_YOU")
		g = begin()
		g.tcp.Send(fromC, feature("FEATURE_PACKETS", 0))
		g.tcp.Send(fromS, you())
		g.want(t, 2, "s2c SP_YOU")
	})
	t.Run("1: the ports of a server", func(t *testing.T) {
		s := &scene.Scene{}
		u := s.UDP("10.0.0.2:4000", "10.0.0.1:3521")
		u.Send(fromC, "?")
		u.Send(fromS, "s,I,Two ports,2,4566,1,0,4577,2,3\n")
		u.Send(fromS, "s,B,One,1,2592,1,0,4577,2,3\n")
		u.Send(fromS, "s,B,Too few,2,2592,1,0\n")
		u.Send(fromS, "s,B,No number,x,2592,1,0\n")
		got := s.Play(t, known).Frames()
		scene.Want(t, got, `
			c2s QUERY
			s2c REPLY +port_missed
			s2c REPLY +trailing_bytes rest=343537372c322c330a
			s2c REPLY !malformed REPLY.entries[1].port@23
			s2c REPLY !malformed REPLY.ports@14 rest=782c323539322c312c300a`)
		if text := got[1].Notes[0].Text; text != "clients look at the first port only, and miss 4577" {
			t.Errorf("got %q", text)
		}
	})
	t.Run("3: slots beyond j", func(t *testing.T) {
		s := &scene.Scene{}
		u := s.UDP("10.0.0.1:4000", "10.0.0.9:3530")
		head := "b\n10.0.0.1\nB\n2592\n2593\n2\n30\ny\nn\nn\nA comment, with a comma\n"
		u.Send(fromC, head+"j\nF\n2\n0\nalice\na@b\n")
		u.Send(fromC, head+"j\nF\n2\n0\nalice\na@b\nk\nR\n1\n3\nbob\nb@c\n")
		scene.Want(t, s.Play(t, known).Frames(), `
			c2s SOLICIT
			c2s SOLICIT +slot_unknown_to_old`)
	})
}

// The side that accepted a connection may be the client: what it says tells.
func TestServerThatCalls(t *testing.T) {
	s := &scene.Scene{}
	c := s.TCP("10.0.0.1:58154", "10.0.0.2:2700") // by who opens it
	c.Open()
	c.Send(fromS, socket, feature("FEATURE_PACKETS", 0))
	c.Send(fromC, mask, player)
	scene.Want(t, s.Play(t, known).Frames(), `
		c2s CP_SOCKET
		c2s CP_FEATURE
		s2c SP_MASK
		s2c SP_PLAYER`)
}

// On a port that tells nothing, a client of another version is known by the feature that it
// names, and a server by a longer row of packets where they are of few types.
func TestPortThatTellsNothing(t *testing.T) {
	motd := padded("\x0b\x00\x00\x00welcome", 84)
	for name, c := range map[string]struct {
		from  scene.Side
		sends []string
		want  string
	}{
		"another version": {fromC, []string{"\x1b\x03\x0a\x00\x00\x00\x75\x2f", feature("FEATURE_PACKETS", 0)}, `
			c2s CP_SOCKET +out_of_range
			c2s CP_FEATURE`},
		"a greeting": {fromS, append([]string{feature("FPS", 0)}, slices.Repeat([]string{motd}, 9)...), "s2c SP_FEATURE" +
			strings.Repeat("\ns2c SP_MOTD", 9)},
		"a long greeting": {fromS, []string{strings.Repeat(motd, 20) + pstatus + player}, strings.Repeat("s2c SP_MOTD\n", 20) +
			"s2c SP_PSTATUS\ns2c SP_PLAYER"},
		"updates": {fromS, slices.Repeat([]string{player + you() + player}, 18),
			"s2c SP_PLAYER\ns2c SP_YOU +struct_size_differs\ns2c SP_PLAYER" + strings.Repeat("\ns2c SP_PLAYER\ns2c SP_YOU\ns2c SP_PLAYER", 17)},
		"a list of numbers": {fromC, slices.Repeat([]string{speed, direction}, 50), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scene.Scene{}
			tcp := s.TCP("10.0.0.2:50111", "10.0.0.1:2700")
			tcp.Open()
			for _, x := range c.sends {
				tcp.Send(c.from, x)
			}
			scene.Want(t, s.Play(t, known).Frames(), c.want)
		})
	}
}

// Where nothing tells who sends, a type that both have is shown as such, until one
// comes that only one side sends.
func TestUnknownSides(t *testing.T) {
	s := &scene.Scene{}
	c := s.TCP("10.0.0.2:50111", "10.0.0.1:2700")
	c.Send(fromC, speed)
	c.Send(fromC, verify)
	c.Send(fromS, "\x02\x01\x02\x0f")
	got := s.Play(t, dissect.Options{Protocols: known.Protocols, Only: netrek.Protocol{}}).Frames()
	scene.Want(t, got, `
		unknown(0x02) +role_guessed +ambiguous_type rest=050000
		c2s CP_UDP_REQ
		s2c SP_PLAYER_INFO`)
}

// A packet that the capture cut is shown as far as it goes.
func TestSnapLength(t *testing.T) {
	g := onUDP()
	g.Snap = 54 + 14
	g.tcp.Send(fromS, player, kills, mask)
	g.udp.Send(fromS, udpReply(3, 7000), mask, player, player)
	scene.Want(t, g.Play(t, known).Frames()[6:], `
		s2c SP_PLAYER
		s2c SP_KILLS +not_captured !truncated SP_KILLS._@2
		s2c SP_UDP_REPLY
		s2c SP_MASK
		s2c SP_PLAYER
		s2c SP_PLAYER +not_captured !truncated SP_PLAYER.dir@2`)
}

// Stray bytes that look like the start of a packet do not swallow the next one.
func TestStrayBytes(t *testing.T) {
	const ping, stray = "\x2a\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00", "\x2a\x00\x00\x00"
	for name, send := range map[string]func(g *game){
		"in one segment": func(g *game) { g.tcp.Send(fromC, speed, stray, ping, direction, shield) },
		"in a segment of their own": func(g *game) {
			g.tcp.Send(fromC, speed)
			g.tcp.Send(fromC, stray)
			g.tcp.Send(fromC, ping, direction, shield)
		},
		"behind which it ends": func(g *game) {
			g.tcp.Send(fromC, speed)
			g.tcp.Send(fromC, stray)
			g.tcp.Send(fromC, ping)
			g.tcp.Send(fromC, direction, shield)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := begin()
			send(g)
			g.want(t, 1, `
				c2s CP_SPEED
				c2s ? !malformed CP_PING_RESPONSE@0 rest=2a000000
				c2s CP_PING_RESPONSE
				c2s CP_DIRECTION
				c2s CP_SHIELD`)
		})
	}
}

// What is found in front of a gap, where nothing more can be waited for.
func TestBoundaryBeforeAGap(t *testing.T) {
	const hostile, info = "\x16\x0d\x00\x00", "\x02\x0d\x00\x00"
	login := padded("\x18\x0d", 52)
	self, _ := hex.DecodeString("0c000b000000000000000801000000000000006400002614000000280000ffff")
	for _, test := range []struct {
		name string
		cut  int    // bytes captured of the segment, 0 for all
		send string // behind a gap; another one follows
		want string
	}{
		{
			name: "a type that never travels by TCP is none",
			send: "\x1d\x00\x00\x02\x1d\x00\x00\x03", // of SP_PLAYER_INFO and its neighbours
		}, {
			name: "packets that end where the capture has cut one do not fill it",
			send: "\x00\x00\x00\x00" + login + hostile + info + kills, cut: 4 + 52 + 4 + 4 + 1,
			want: `
				s2c SP_PL_LOGIN
				s2c SP_HOSTILE
				s2c SP_PLAYER_INFO
				s2c SP_KILLS +not_captured !truncated SP_KILLS.pnum@1`,
		}, {
			name: "the most packets in a row win", // not two SP_QUEUE and a part of SP_MESSAGE
			send: "\x0d\x00\x00\x01\x0d\x00\x00" + "\x02\x01\x00\x01" + kills + pstatus + mask + kills + player[:6],
			want: `
				s2c SP_PLAYER_INFO
				s2c SP_KILLS
				s2c SP_PSTATUS
				s2c SP_MASK
				s2c SP_KILLS
				s2c SP_PLAYER +not_captured !incomplete SP_PLAYER.x@4 rest=0000`,
		}, {
			name: "the start of a packet counts", // not SP_PSTATUS and SP_S_REPLY, out of its numbers
			send: string(self) + player + player, cut: 32 + 3,
			want: `
				s2c SP_YOU +struct_size_differs
				s2c SP_PLAYER +not_captured !truncated SP_PLAYER.speed@3`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := begin()
			n := len(g.Play(t, known).Frames())
			g.tcp.Lose(fromS, player)
			if test.cut > 0 {
				g.Snap = 54 + test.cut
			}
			g.tcp.Send(fromS, test.send)
			g.tcp.Lose(fromS, strings.Repeat(mask, 10))
			g.Snap = 0
			g.tcp.Send(fromS, "\x00")
			scene.Want(t, g.Play(t, known).Frames()[n:], test.want)
		})
	}
}

// Packets that fill a segment, by accident, are not believed while more of them fit in
// front, of which the last is not all there.
func TestBoundaryWaitsForALongerRow(t *testing.T) {
	status := "\x0e\x00\x00\x00\x0d\x00\x00\x01\x0d\x00\x00\x02" + strings.Repeat("\x00", 16) // not two SP_QUEUE
	g := begin()
	n := len(g.Play(t, known).Frames())
	g.tcp.Lose(fromS, player)
	g.tcp.Send(fromS, mask+kills+kills+status[:12])
	g.tcp.Send(fromS, status[12:]+pstatus)
	g.want(t, n, `
		s2c SP_MASK
		s2c SP_KILLS
		s2c SP_KILLS
		s2c SP_STATUS
		s2c SP_PSTATUS`)
}

// What waits in a stream for bytes that never come is shown where its packets are; when
// they come, in the order of the stream.
func TestOrderBehindAGap(t *testing.T) {
	hold := known
	hold.Hold = 5 * time.Second
	g := begin()
	n := len(g.Play(t, hold).Frames())
	g.tcp.Lose(fromS, mask)
	g.tcp.Send(fromS, kills)
	g.tcp.Send(fromC, speed)
	g.tcp.Send(fromS, pstatus)
	g.tcp.Send(fromC, shield)
	g.Wait(3 * time.Second)
	g.tcp.Send(fromC, direction)
	records := g.Play(t, hold).Records
	from := slices.IndexFunc(records, func(r *dissect.Record) bool { return r.Type == dissect.GapRecord })
	scene.Want(t, records[from:], `
		s2c gap 4 not_captured
		s2c SP_KILLS
		c2s CP_SPEED
		s2c SP_PSTATUS
		c2s CP_SHIELD
		c2s CP_DIRECTION`)

	g = begin()
	g.tcp.Lose(fromS, mask)
	g.tcp.Send(fromS, kills)
	g.tcp.Send(fromC, speed)
	g.tcp.SegmentAt(fromS, scene.ACK, g.tcp.Next[fromS]-12, mask)
	scene.Want(t, g.Play(t, hold).Frames()[n:], `
		c2s CP_SPEED
		s2c SP_MASK
		s2c SP_KILLS`)
}

// A packet of datagrams that stands in a stream is shown as what it is.
func TestSequenceInAStream(t *testing.T) {
	g := begin()
	g.tcp.Send(fromS, mask, sequence(5), mask)
	g.want(t, 1, `
		s2c SP_MASK
		s2c SP_SEQUENCE +unexpected_transport
		s2c SP_MASK`)
}

// A session of which only datagrams were captured goes by what they say.
func TestDatagramsAlone(t *testing.T) {
	s := &scene.Scene{}
	u := s.UDP("10.0.0.2:6000", "10.0.0.1:7000")
	for n := 700; n < 703; n++ {
		u.Send(fromS, sequence(n), player, kills)
		u.Send(fromC, speed)
	}
	got := s.Play(t, known).Frames()
	if len(got) != 12 {
		t.Fatalf("got\n%s", scene.Lines(got))
	}
	scene.Want(t, got[:4], `
		s2c SP_SEQUENCE 700 +assumed_context
		s2c SP_PLAYER
		s2c SP_KILLS
		c2s CP_SPEED`)
}

func TestLoginHidesNothingItReads(t *testing.T) {
	g := begin()
	g.tcp.Send(fromC, "\x08\x00\x00\x00"+padded("alice", 16)+padded("secret", 16)+padded("al", 16), bye)
	r := g.Play(t, known).Named("CP_LOGIN")[0]
	if i := r.Body.Field("password"); r.Body.Nodes[i].Field.Redact != schema.Secret {
		t.Error("the password is not a secret")
	}
}
