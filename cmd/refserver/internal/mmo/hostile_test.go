package mmo

import (
	"encoding/hex"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/mmo/testserver"
	"opscope/schema"
)

// epoch is when tests begin.
var epoch = time.Date(2026, 11, 29, 20, 15, 0, 0, time.UTC)

const mallory = "10.6.6.6:6666"

// hand feeds a server by hand.
type hand struct {
	t      testing.TB
	server *server
	client *clerk
	now    time.Time
	out    []machine.Output
	events []string
}

func (h *hand) Received(time.Time, netip.AddrPort, machine.Record) {}
func (h *hand) Acknowledged(time.Time, int)                        {}
func (h *hand) Event(_ time.Time, code, text string)               { h.events = append(h.events, code+": "+text) }

func newHand(t testing.TB) *hand {
	h := &hand{t: t, now: epoch}
	s := testserver.Default()
	h.server = NewServer(ServerConfig{Settings: s}, h).(*server)
	h.client = newClerk(schema.Client, s, nil)
	return h
}

// give gives the server an input, and checks that the records of what it says tile its
// data.
func (h *hand) give(in machine.Input) {
	h.t.Helper()
	for _, o := range h.server.Handle(h.now, in) {
		at := 0
		for _, r := range o.Records {
			if r.Offset != at || r.Size < 4 || r.Size > 16384 || r.Length != r.Size {
				h.t.Fatalf("%s stands at %d with %d bytes, want it at %d", r.Message, r.Offset, r.Size, at)
			}
			at += r.Size
		}
		if at != len(o.Data) || o.Kind == machine.SendDatagram && (len(o.Records) != 1 || at > 1200) {
			h.t.Fatalf("%d records make %d bytes of %d", len(o.Records), at, len(o.Data))
		}
		h.out = append(h.out, o)
	}
}

func (h *hand) open(conn machine.Conn) {
	h.give(machine.Input{Kind: machine.Opened, Conn: conn, Peer: netip.MustParseAddrPort(mallory)})
}

func (h *hand) stream(conn machine.Conn, data []byte) {
	h.give(machine.Input{Kind: machine.Stream, Conn: conn, Data: data})
}

func (h *hand) datagram(addr string, data []byte) {
	h.give(machine.Input{Kind: machine.Datagram, Peer: netip.MustParseAddrPort(addr), Data: data})
}

// frame encodes a message of a client.
func (h *hand) frame(message string, v schema.Values) []byte {
	h.t.Helper()
	_, data, err := h.client.compose(message, v)
	if err != nil {
		h.t.Fatal(err)
	}
	return data
}

// enter takes a client into the game, and returns its session.
func (h *hand) enter(conn machine.Conn) *session {
	h.t.Helper()
	h.open(conn)
	id := uint64(1000 + conn)
	token := enterToken(h.server.settings, h.now, claims{Account: id, Name: "Mallory", Characters: []uint64{id}})
	h.stream(conn, h.frame("EnterGameReq", schema.Values{"enter_token": token, "character_id": id}))
	c := machine.SessionOf(h.server.sessions, conn)
	if c == nil || c.avatar == nil {
		h.t.Fatalf("the client is not in: %q", h.events)
	}
	return c
}

func (h *hand) hello(c *session) []byte {
	return h.frame("UdpHelloReq", schema.Values{"udp_token": c.token, "character_id": c.avatar.id, "attempt": 1})
}

// tick goes on in time, tick by tick.
func (h *hand) tick(d time.Duration) {
	for end := h.now.Add(d); h.now.Before(end); {
		h.now = h.now.Add(tickEvery)
		h.give(machine.Input{Kind: machine.Tick})
	}
}

// sent counts what was sent of a message.
func (h *hand) sent(message string) (n int) {
	for _, o := range h.out {
		for _, r := range o.Records {
			if r.Message == message {
				n++
			}
		}
	}
	return n
}

func TestWhoIsBound(t *testing.T) {
	h := newHand(t)
	c := h.enter(1)
	h.datagram("10.9.9.9:1", h.frame("UdpHelloReq", schema.Values{"udp_token": "guess", "character_id": c.avatar.id}))
	h.datagram("10.9.9.9:1", h.frame("MoveReq", schema.Values{"input_sequence": 1}))
	h.datagram("10.9.9.9:1", []byte{1})
	h.datagram("10.9.9.9:1", nil)
	if c.udp.IsValid() || len(h.events) != 4 || h.sent("UdpHelloRes") != 0 {
		t.Fatalf("bound to %v, told %q", c.udp, h.events)
	}
	h.datagram("10.6.6.6:5000", h.hello(c))
	if c.udp.String() != "10.6.6.6:5000" || h.sent("UdpHelloRes") != 1 {
		t.Fatalf("bound to %v, told %q", c.udp, h.events)
	}
	h.datagram("10.6.6.6:5000", h.hello(c)) // the answer got lost
	if h.sent("UdpHelloRes") != 2 {
		t.Error("a second hello is not answered")
	}
	h.tick(h.server.settings.Heartbeat.Interval) // the token has long been used
	h.datagram("10.6.6.6:5001", h.hello(c))      // NAT has moved it
	if c.udp.String() != "10.6.6.6:5001" {
		t.Errorf("bound to %v", c.udp)
	}
}

// TestTwoBehindOneAddress ties two sessions to two ports of one host.
func TestTwoBehindOneAddress(t *testing.T) {
	h := newHand(t)
	a, b := h.enter(1), h.enter(2)
	h.datagram("10.6.6.6:5000", h.hello(b))
	h.datagram("10.6.6.6:5001", h.hello(a))
	if a.udp.Port() != 5001 || b.udp.Port() != 5000 {
		t.Errorf("bound to %v and %v", a.udp, b.udp)
	}
	stolen := h.frame("UdpHelloReq", schema.Values{"udp_token": a.token, "character_id": b.avatar.id})
	h.datagram("10.6.6.6:5000", stolen) // it is refused
	if a.udp.Port() != 5001 || b.udp.Port() != 5000 || h.sent("ErrorRes") != 1 {
		t.Errorf("bound to %v and %v, %d errors", a.udp, b.udp, h.sent("ErrorRes"))
	}
	h.datagram("10.6.6.6:5000", h.hello(a)) // NAT has given it the port of one that is gone
	if a.udp.Port() != 5000 || b.udp.IsValid() {
		t.Errorf("bound to %v and %v", a.udp, b.udp)
	}
}

func TestTokensEnd(t *testing.T) {
	h := newHand(t)
	h.server.settings.UDPToken.Lifetime = time.Second
	c := h.enter(1)
	h.tick(time.Second)
	h.datagram("10.6.6.6:5000", h.hello(c))
	if c.udp.IsValid() {
		t.Error("a token is good for ever")
	}
	s := testserver.Default()
	token := enterToken(s, epoch, claims{Account: 1, Characters: []uint64{2}})
	for name, test := range map[string]struct {
		token string
		at    time.Time
		want  error
	}{
		"in time":             {token, epoch.Add(s.EnterToken.Lifetime - time.Second), nil},
		"too late":            {token, epoch.Add(s.EnterToken.Lifetime), errExpired},
		"cut":                 {token[:len(token)-1], epoch, errToken},
		"without a signature": {token[:strings.LastIndexByte(token, '.')+1], epoch, errToken},
		"other claims":        {"x" + token, epoch, errToken},
		"no token":            {"", epoch, errToken},
		"two dots":            {"..", epoch, errToken},
	} {
		if _, err := verifyToken(s, test.at, test.token); err != test.want {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
	}
}

func TestSessionsAreBounded(t *testing.T) {
	h := newHand(t)
	for i := range 500 {
		h.open(machine.Conn(i + 1))
	}
	if n := len(h.server.sessions); n != maxSessions {
		t.Errorf("%d sessions", n)
	}
	for range 5000 {
		h.datagram("10.9.9.9:1", []byte{4, 0, 5, 0})
	}
	if n := len(h.events); n > 500-maxSessions+maxStrangers {
		t.Errorf("%d events", n)
	}
	h.tick(h.server.settings.Heartbeat.Timeout)
	if n := len(h.server.sessions); n > 0 {
		t.Errorf("%d sessions that never said anything are there", n)
	}
}

func TestErrorsEndASession(t *testing.T) {
	h := newHand(t)
	h.enter(1)
	h.enter(2)
	for range h.server.settings.MaxErrors {
		h.tick(time.Second / 20)
		h.stream(1, []byte{4, 0, 0x99, 2})
	}
	if machine.SessionOf(h.server.sessions, 1) != nil || machine.SessionOf(h.server.sessions, 2) == nil {
		t.Errorf("the wrong sessions are there: %q", h.events)
	}
}

// TestMemoryIsBounded has a client send for long, in pieces.
func TestMemoryIsBounded(t *testing.T) {
	h := newHand(t)
	c := h.enter(1)
	h.datagram(mallory, h.hello(c))
	grow := func(rounds int) int64 {
		for i := range rounds {
			use := h.frame("InventoryUseReq", schema.Values{"client_request_id": []byte{byte(i), byte(i >> 8)}, "expected_revision": 1})
			h.stream(1, use[:3])
			h.stream(1, use[3:])
			h.stream(1, h.frame("Pong", schema.Values{"number": c.number}))
			h.datagram(mallory, h.frame("MoveReq", schema.Values{"input_sequence": i}))
			h.tick(100 * time.Millisecond)
			h.out, h.events = nil, nil
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := grow(200)
	if grown := grow(3000) - before; grown > 1<<20 {
		t.Errorf("%d bytes more", grown)
	}
	if n := len(c.avatar.bag.results); n != h.server.settings.Inventory.Remember {
		t.Errorf("%d results are remembered", n)
	}
	h.stream(1, []byte{0, 0x40, 1, 0}) // 16384 bytes are to come
	h.stream(1, make([]byte, 16379))
	if n := cap(c.in); n > 17<<10 {
		t.Errorf("%d bytes wait", n)
	}
}

// noise returns a frame with the id of a message and a body that is none, or nearly
// one.
func noise(r *rand.Rand) []byte {
	ids := []uint16{1, 2, 3, 4, 5, 0x101, 0x103, 0x111, 0x121, 0x201, 0x202, 0x204, 0x211, 0x213, 0x221, 0x231, 0x252, 0x254, 0x299, 0xffff}
	id := ids[r.IntN(len(ids))]
	n := r.IntN(24)
	b := []byte{byte(4 + n), 0, byte(id), byte(id >> 8)}
	for len(b) < 4+n {
		switch r.IntN(3) {
		case 0:
			b = append(b, byte(r.IntN(8)<<3|r.IntN(6)))
		case 1:
			b = append(b, byte(r.IntN(6)))
		default:
			b = append(b, byte(r.Uint32()))
		}
	}
	return b
}

func TestServerUnderNoise(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		h := newHand(t)
		h.server.settings.MaxPacketsPerSecond, h.server.settings.MaxErrors = 1e6, 1e6
		c := h.enter(1)
		h.enter(2)
		h.datagram(mallory, h.hello(c))
		for range 200 {
			if random.IntN(2) == 0 {
				h.stream(1, noise(random))
			} else {
				h.datagram(mallory, noise(random))
			}
			if random.IntN(4) == 0 {
				h.tick(tickEvery)
			}
		}
		h.check()
	}
}

// check wants nothing to have gone wrong with the other session, nor with what the
// server says.
func (h *hand) check() {
	h.t.Helper()
	if machine.SessionOf(h.server.sessions, 2) == nil {
		h.t.Fatalf("the other session has ended: %q", h.events)
	}
	for _, e := range h.events {
		if strings.HasPrefix(e, "dropped") {
			h.t.Fatal(e)
		}
	}
}

// FuzzServer feeds a server chunks: the first byte of each says what comes, the second
// how many bytes of it.
func FuzzServer(f *testing.F) {
	h := newHand(f)
	chunk := func(kind byte, data []byte) []byte { return append([]byte{kind, byte(len(data))}, data...) }
	unhexed := func(s string) []byte {
		b, _ := hex.DecodeString(s)
		return b
	}
	f.Add(chunk(0, h.frame("ChatReq", schema.Values{"text": "hello"})))
	f.Add(chunk(0, h.frame("AttackReq", schema.Values{"attack_sequence": 1, "combo_step": 1})))
	f.Add(chunk(0, h.frame("InventoryMoveReq", schema.Values{"client_request_id": []byte{1}, "expected_revision": 1, "quantity": 1, "destination_slot": 9})))
	f.Add(chunk(1, h.frame("MoveReq", schema.Values{"input_sequence": 1, "move_x": float32(1)})))
	f.Add(append(chunk(1, unhexed("08ac02150000")), chunk(0, unhexed("0300"))...))
	f.Add(append(chunk(3, nil), chunk(0, unhexed("04000100"))...))
	f.Fuzz(func(t *testing.T, data []byte) {
		h := newHand(t)
		h.datagram(mallory, h.hello(h.enter(1)))
		h.enter(2)
		conn := machine.Conn(1)
		for steps := 0; len(data) > 2 && steps < 200; steps++ {
			kind, n := data[0], min(int(data[1]), len(data)-2)
			part := data[2 : 2+n]
			data = data[2+n:]
			switch kind % 4 {
			case 0:
				h.stream(conn, part)
			case 1:
				h.datagram(mallory, part)
			case 2:
				h.tick(time.Duration(n%8) * tickEvery)
				h.stream(2, h.frame("Pong", schema.Values{"number": 1})) // it is there
			case 3:
				h.give(machine.Input{Kind: machine.Closed, Conn: conn})
				conn += 10
				h.open(conn)
			}
		}
		h.check()
	})
}
