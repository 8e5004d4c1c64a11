package netrek

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"opscope/cmd/refserver/internal/machine"
)

// hand feeds a server by hand.
type hand struct {
	*station
	t      testing.TB
	server *server
	now    time.Time
	out    []machine.Output
}

func newHand(t testing.TB, cfg ServerConfig) *hand {
	h := &hand{station: &station{name: "server", addr: serverAddr}, t: t, now: epoch}
	h.server = NewServer(cfg, h.station).(*server)
	return h
}

func (h *hand) give(in machine.Input) {
	if in.Kind == machine.Datagram && len(h.sockets) > 0 {
		in.Port = h.sockets[len(h.sockets)-1].Port()
	}
	for _, o := range h.server.Handle(h.now, in) {
		checkRecords(h.t, "server", o)
		h.out = append(h.out, o)
		switch o.Kind {
		case machine.Bind:
			defer h.give(machine.Input{Kind: machine.Bound, Conn: o.Conn, Port: h.bind().Port()})
		case machine.Unbind:
			h.unbind(h.t, netip.AddrPortFrom(h.addr.Addr(), o.Port))
		}
	}
	h.heard = nil
}

func (h *hand) open(conn machine.Conn, addr string) {
	h.give(machine.Input{Kind: machine.Opened, Conn: conn, Peer: netip.MustParseAddrPort(addr)})
}

func (h *hand) stream(conn machine.Conn, bytes string) {
	h.give(machine.Input{Kind: machine.Stream, Conn: conn, Data: unhexed(h.t, bytes)})
}

func (h *hand) datagram(addr, bytes string) {
	h.give(datagramOf(addr, string(unhexed(h.t, bytes))))
}

func datagramOf(addr, data string) machine.Input {
	return machine.Input{Kind: machine.Datagram, Peer: netip.MustParseAddrPort(addr), Data: []byte(data)}
}

func unhexed(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sent returns the texts of what was sent to a connection of a kind.
func (h *hand) sent(conn machine.Conn, message string) (texts []string) {
	for _, o := range h.out {
		for _, r := range o.Records {
			if o.Conn == conn && r.Message == message {
				texts = append(texts, textOf(r))
			}
		}
	}
	return texts
}

// tick goes on in time, frame by frame.
func (h *hand) tick(d time.Duration) {
	for end := h.now.Add(d); h.now.Before(end); {
		h.now = h.now.Add(frameEvery)
		h.give(machine.Input{Kind: machine.Tick})
	}
}

const (
	hello   = "1b 04 0a 00 00000000"
	outfit0 = "09 00 02 00"
)

func login(name string) string {
	b := make([]byte, 52)
	b[0] = 8
	copy(b[4:], name)
	return hex.EncodeToString(b)
}

// enter takes a client by hand to the choice of a team.
func (h *hand) enter(conn machine.Conn, addr string) *session {
	h.open(conn, addr)
	h.stream(conn, hello+login("Mallory"))
	c := machine.SessionOf(h.server.sessions, conn)
	if c == nil || !c.named {
		h.t.Fatalf("the client is not in: %q", h.events)
	}
	return c
}

const mallory = "10.6.6.6:6666"

func chat(group, to byte, text string) string {
	b := make([]byte, 84)
	b[0], b[1], b[2] = 1, group, to
	copy(b[4:], text)
	return hex.EncodeToString(b)
}

func TestHostileStreams(t *testing.T) {
	tests := []struct {
		name, hex string
		want      string // among the events
		ends      bool
	}{
		{"a type that does not exist", "00000000", "malformed", false},
		{"a type without a size", "38000000", "malformed", false},
		{"a type of the server", "1d000001", "left", true}, // 29 is CP_BYE in this direction
		{"a type that only the server has", "0d000001", "", false},
		{"the letter of a query", "3f766572", "malformed", false},
		{"half a packet", "08", "", false},
		{"a length that is less than its header", "2d080003 00", "malformed", false},
		{"a length of nothing", "2d080000", "malformed", false},
		{"a message to nobody", chat(0, 0, "x"), "ignored", false},
		{"a message to a slot that does not exist", chat(2, 99, "x"), "ignored", false},
		{"a message to an empty slot", chat(2, 7, "x"), "ignored", false},
		{"a message to no team", chat(4, 6, "x"), "ignored", false},
		{"a message without NUL", chat(8, 0, strings.Repeat("\xff", 80)), "", false},
		{"UDP to port 0", "2301000000000000", "ignored", false},
		{"UDP to a negative port", "23010000ffffffff", "ignored", false},
		{"UDP to a huge port", "2301000000010000", "ignored", false},
		{"UDP in a mode that does not exist", "2301070000001000", "ignored", false},
		{"a verification over TCP", "2302000000000000", "ignored", false},
		{"a request of UDP that does not exist", "2363000000000000", "", false},
		{"a mode that does not exist", "2304630000000000", "", false},
		{"short packets of a version that does not exist", "2b016300", "ignored", false},
		{"a lock on a planet that does not exist", outfit0 + "0f7f0000 0fff0000", "", false},
		{"a lock on a player that does not exist", outfit0 + "10200000 10ff0000", "", false},
		{"a lock on itself", outfit0 + "10000000", "", false},
		{"a tractor on a player that does not exist", outfit0 + "18017f00 1801ff00 19018000", "", false},
		{"a refit to a ship that does not exist", outfit0 + "17ff0000 17080000", "", false},
		{"a torp that does not exist", outfit0 + "1500ffff", "", false},
		{"a speed beyond all", outfit0 + "027f0000 02ff0000", "", false},
		{"war on itself", outfit0 + "0aff0000", "", false},
		{"a planet that does not exist", outfit0 + "26ff0000 00000000 00000000", "", false},
		{"updates at once, and never", "1f000000 00000000 1f000000 ffffffff", "", false},
		{"a feature without a name", "3c00000000000001" + strings.Repeat("00", 80), "", false},
		{"a feature with an endless name", "3c5300007fffffff" + strings.Repeat("ff", 80), "", false},
		{"the highest version of SP_GENERIC_32", "3c537f0000000001" + hex.EncodeToString([]byte("SP_GENERIC_32")) + strings.Repeat("00", 67) + outfit0, "", false},
		{"a second login", login("Again"), "", false},
		{"a second CP_SOCKET", hello, "", false},
		{"good bye", "1d000000", "left", true},
		{"a bot's three bytes", "320102" + "32" + "0102", "", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := newHand(t, ServerConfig{})
			h.enter(1, mallory)
			h.enter(2, "10.0.0.2:40000")
			h.stream(2, outfit0)
			h.stream(1, test.hex)
			h.tick(3 * time.Second)
			events := strings.Join(h.events, "\n")
			if ended := machine.SessionOf(h.server.sessions, 1) == nil; ended != test.ends || !strings.Contains(events, test.want) {
				t.Errorf("ended %v, told %q; want %q", ended, events, test.want)
			}
			if strings.Contains(events, "dropped") {
				t.Errorf("it makes the server drop packets: %s", events)
			}
			if machine.SessionOf(h.server.sessions, 2) == nil {
				t.Error("another session ended with it")
			}
		})
	}
}

func TestHostileBeginnings(t *testing.T) {
	tests := []struct {
		name, hex, want string
		ends            bool
	}{
		{"another version", "1b030a0000000000", "version", true},
		{"a login before CP_SOCKET", login("x"), "too_early", false},
		{"an order before CP_SOCKET", "02050000", "too_early", false},
		{"an order before the login", hello + "02050000", "too_early", false},
		{"a ship before the login", hello + outfit0, "too_early", false},
		{"a message before the login", hello + chat(8, 0, "x"), "too_early", false},
		{"a login without a name", hello + login(""), "", false},
		{"a name that is no text", hello + login("\x01\xff\x00x"), "", false},
		{"another protocol", hex.EncodeToString([]byte("GET / HTTP/1.1\r\n\r\n")), "malformed", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := newHand(t, ServerConfig{})
			h.open(1, mallory)
			h.stream(1, test.hex)
			if ended := machine.SessionOf(h.server.sessions, 1) == nil; ended != test.ends || !strings.Contains(strings.Join(h.events, "\n"), test.want) {
				t.Errorf("ended %v, told %q; want %q", ended, h.events, test.want)
			}
			h.tick(31 * time.Second)
			if c := machine.SessionOf(h.server.sessions, 1); c != nil && !c.greeted {
				t.Error("a client that does not say who it is stays")
			}
		})
	}
}

func TestHostileDatagrams(t *testing.T) {
	tests := []struct{ name, from, hex, want string }{
		{"nothing", mallory, "", ""},
		{"a type that does not exist", mallory, "00", "malformed"},
		{"half a packet", mallory, "0205", "malformed"},
		{"a packet and a half", mallory, "02050000 02", "malformed"},
		{"a second verification", mallory, "2302000000000000", ""},
		{"a stranger", "10.9.9.9:1", "02050000", "stranger"},
		{"a stranger who verifies", "10.9.9.9:1", "2302000000000000", "stranger"},
		{"a stranger of the same host", "10.6.6.6:1", "2302000000000000", "stranger"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := newHand(t, ServerConfig{})
			c := h.enter(1, mallory)
			h.stream(1, outfit0+"23010000 00001a0a") // port 6666
			h.datagram(mallory, "2302000000000000")
			if c.udp.phase != udpOn {
				t.Fatal("UDP is not on")
			}
			h.datagram(test.from, test.hex)
			h.tick(time.Second)
			if !strings.Contains(strings.Join(h.events, "\n"), test.want) {
				t.Errorf("told %q, want %q", h.events, test.want)
			}
			if machine.SessionOf(h.server.sessions, 1) == nil || c.udp.remote.String() != mallory {
				t.Error("the session is not what it was")
			}
		})
	}
}

// TestAnotherPort has the client's datagrams come from a port that it did not
// announce, as behind NAT.
func TestAnotherPort(t *testing.T) {
	h := newHand(t, ServerConfig{})
	c := h.enter(1, mallory)
	h.stream(1, "23010000 00000fa0")
	h.datagram("10.6.6.6:5555", "2302000000000000")
	if c.udp.phase != udpOn || c.udp.remote.Port() != 5555 {
		t.Errorf("UDP is %d to %v", c.udp.phase, c.udp.remote)
	}
}

// TestNoPingOnTheWayToUDP: a client that has asked for UDP and is not there yet gets no
// ping, as it could not answer; before and behind that it does.
func TestNoPingOnTheWayToUDP(t *testing.T) {
	h := newHand(t, ServerConfig{})
	h.enter(1, mallory)
	h.stream(1, "2a000100 00000000 00000000"+outfit0)
	h.tick(2 * pingEvery)
	before := len(h.sent(1, "SP_PING"))
	h.stream(1, "23010000 00000fa0")
	h.tick(2 * pingEvery)
	during := len(h.sent(1, "SP_PING")) - before
	h.datagram("10.6.6.6:4000", "2302000000000000")
	h.tick(2 * pingEvery)
	if after := len(h.sent(0, "SP_PING")); before == 0 || during != 0 || after == 0 {
		t.Errorf("%d pings before, %d on the way, %d behind", before, during, after)
	}
}

// TestManyUDPRequests has a client ask for UDP over and over: it costs one socket.
func TestManyUDPRequests(t *testing.T) {
	h := newHand(t, ServerConfig{})
	c := h.enter(1, mallory)
	for range 3 {
		h.out = nil
		h.stream(1, strings.Repeat("23010000 00000fa0 23000000 00000000", 100)+"23010000 00000fa0")
		binds := 0
		for _, o := range h.out {
			if o.Kind == machine.Bind {
				binds++
			}
		}
		if binds != 1 || len(h.sockets) != 1 || c.udp.own != h.sockets[0].Port() {
			t.Errorf("%d sockets were asked for, %v are open, %v is used", binds, h.sockets, c.udp.own)
		}
	}
	h.give(machine.Input{Kind: machine.Closed, Conn: 1})
	if len(h.sockets) != 0 {
		t.Errorf("%v are open behind the session", h.sockets)
	}
}

func TestFloodEndsOneSession(t *testing.T) {
	h := newHand(t, ServerConfig{})
	h.enter(1, mallory)
	h.enter(2, "10.0.0.2:40000")
	for range 40 {
		h.stream(1, strings.Repeat("02050000", 100))
	}
	if machine.SessionOf(h.server.sessions, 1) != nil || machine.SessionOf(h.server.sessions, 2) == nil {
		t.Errorf("the wrong sessions are there: %q", h.events)
	}
}

func TestNonsenseEndsASession(t *testing.T) {
	h := newHand(t, ServerConfig{})
	h.enter(1, mallory)
	for range maxComplaints + 1 {
		h.stream(1, "00")
	}
	if machine.SessionOf(h.server.sessions, 1) != nil {
		t.Error("it goes on")
	}
	if len(h.events) > maxComplaints+2 {
		t.Errorf("%d events", len(h.events))
	}
}

func TestSessionsAreBounded(t *testing.T) {
	h := newHand(t, ServerConfig{})
	for i := range 500 {
		h.open(machine.Conn(i+1), mallory)
		h.stream(machine.Conn(i+1), hello)
	}
	if n := len(h.server.sessions); n > maxSessions {
		t.Errorf("%d sessions", n)
	}
	if n := len(h.server.queue); n > maxQueue {
		t.Errorf("%d wait", n)
	}
	for range 5000 {
		h.datagram("10.9.9.9:1", "00")
	}
	if len(h.events) > 2000 {
		t.Errorf("%d events", len(h.events))
	}
}

// TestMemoryIsBounded has a client send for long, in pieces.
func TestMemoryIsBounded(t *testing.T) {
	h := newHand(t, ServerConfig{})
	h.enter(1, mallory)
	h.stream(1, outfit0+"2b010b00")
	c := machine.SessionOf(h.server.sessions, 1)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 3000 {
		if i%100 == 0 {
			h.out = nil
			h.tick(time.Second)
		}
		h.stream(1, "06400000 2d0800")
		h.stream(1, "08 78 78 78 00")
		h.events = nil
	}
	h.out = nil
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("%d bytes more", grown)
	}
	if cap(c.in) > 4096 {
		t.Errorf("%d bytes wait", cap(c.in))
	}
}

// FuzzServer feeds a server chunks: the first byte of each says what comes, and how
// many bytes of it.
func FuzzServer(f *testing.F) {
	chunk := func(kind byte, data string) []byte {
		b := unhexed(f, data)
		return append([]byte{kind, byte(len(b))}, b...)
	}
	start := append(chunk(0, hello), chunk(0, login("x"))...)
	f.Add(start)
	f.Add(append(start, chunk(0, outfit0+"06400000 04400000 05400000 0c000000 13010000 11010000 12010000")...))
	f.Add(append(start, chunk(0, outfit0+"2b010b00 23010000 00001a0a")...))
	f.Add(append(append(start, chunk(0, outfit0+"2b010a00 23010100 00001a0a")...), append(chunk(1, "2302000000000000"), chunk(1, "06400000")...)...))
	f.Add(append(start, chunk(0, outfit0+"07000000 0f000000 0e010000 17000000 26010000 00000000 00000001")...))
	f.Add(append(start, chunk(0, chat(8, 0, "hello"))...))
	f.Fuzz(func(t *testing.T, data []byte) {
		h := newHand(t, ServerConfig{Near: true})
		h.enter(2, "10.0.0.2:40000")
		h.stream(2, "09 01 02 00 2b010b00")
		h.open(1, mallory)
		for steps := 0; len(data) > 2 && steps < 200; steps++ {
			kind, n := data[0], min(int(data[1]), len(data)-2)
			part := data[2 : 2+n]
			data = data[2+n:]
			switch kind % 4 {
			case 0:
				h.give(machine.Input{Kind: machine.Stream, Conn: 1, Data: part})
			case 1:
				h.give(machine.Input{Kind: machine.Datagram, Peer: netip.MustParseAddrPort(mallory), Data: part})
			case 2:
				h.tick(time.Duration(n%8) * frameEvery)
			case 3:
				h.give(machine.Input{Kind: machine.Closed, Conn: 1})
				h.open(1, mallory)
			}
		}
		h.tick(time.Second)
		if machine.SessionOf(h.server.sessions, 2) == nil {
			t.Fatalf("the other session has ended: %q", h.events)
		}
		for _, e := range h.events {
			if strings.HasPrefix(e, "dropped") {
				t.Fatal(e)
			}
		}
	})
}

// TestServerUnderNoise is a short fuzz with a seed: packets with right types and
// random bodies.
func TestServerUnderNoise(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		h := newHand(t, ServerConfig{Near: true})
		h.enter(1, mallory)
		h.enter(2, "10.0.0.2:40000")
		h.stream(1, outfit0)
		h.stream(2, "09 01 02 00")
		for range 200 {
			b := binary.BigEndian.AppendUint64(nil, random.Uint64())
			b[0] %= 64
			h.give(machine.Input{Kind: machine.Stream, Conn: 1, Data: b})
			if random.IntN(4) == 0 {
				h.tick(frameEvery)
			}
		}
		if machine.SessionOf(h.server.sessions, 2) == nil {
			t.Fatalf("the other session has ended: %q", h.events)
		}
		for _, e := range h.events {
			if strings.HasPrefix(e, "dropped") {
				t.Fatal(e)
			}
		}
	}
}
