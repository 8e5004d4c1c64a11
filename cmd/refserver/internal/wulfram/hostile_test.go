package wulfram

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"opscope/cmd/refserver/internal/machine"
)

// host feeds a server by hand.
type host struct {
	*station
	t      testing.TB
	server *server
	now    time.Time
	out    []machine.Output
}

func newHost(t testing.TB, cfg ServerConfig) *host {
	cfg.Addr = serverAddr
	h := &host{station: &station{name: "server", acked: map[int]bool{}}, t: t, now: epoch}
	h.server = NewServer(cfg, h.station).(*server)
	return h
}

func (h *host) give(in machine.Input) {
	out := h.server.Handle(h.now, in)
	for _, o := range out {
		checkSizes(h.t, h.station, o)
		h.outbound += len(o.Data)
	}
	h.out = append(h.out, out...)
}

func (h *host) open(conn machine.Conn, addr string) {
	h.give(machine.Input{Kind: machine.Opened, Conn: conn, Peer: netip.MustParseAddrPort(addr)})
}

func (h *host) stream(conn machine.Conn, data []byte) {
	h.give(machine.Input{Kind: machine.Stream, Conn: conn, Data: data})
}

func (h *host) datagram(addr string, data []byte) {
	h.give(machine.Input{Kind: machine.Datagram, Peer: netip.MustParseAddrPort(addr), Data: data})
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func text(s string) string {
	return fmt.Sprintf("%04x%x00", len(s)+1, s)
}

// enter takes a client by hand through steps 2 to 10.
func (h *host) enter(conn machine.Conn, addr string) *session {
	h.open(conn, addr)
	c := machine.SessionOf(h.server.sessions, conn)
	h.stream(conn, unhex(h.t, "00081300"+"00004e89"))
	h.datagram(addr, unhex(h.t, "08"+text("Hello There")+"1301"+text(c.key)))
	h.stream(conn, unhex(h.t, "00041302"))
	login := unhex(h.t, "2100"+text("Mallory")+text("secret"))
	h.stream(conn, append(binary.BigEndian.AppendUint16(nil, uint16(len(login)+2)), login...))
	h.stream(conn, unhex(h.t, "00074e00007080"+"000339"))
	if !c.entered || !c.wants {
		h.t.Fatalf("the client is not in the game: %q", h.events)
	}
	_, body, _ := h.server.compose("D_HANDSHAKE", handshakeFields(1, 15, &clientTableValue))
	h.datagram(addr, append([]byte{3}, body...))
	h.datagram(addr, unhex(h.t, "020000000000"))
	return c
}

var clientTableValue = clientTable()

const mallory = "10.6.6.6:6666"

func TestHostileStreams(t *testing.T) {
	tests := []struct {
		name string
		hex  string
		want string // in the reason, "" when the session goes on
	}{
		{"a size of 0", "0000", "malformed"},
		{"a size of 2", "000213", "malformed"},
		{"a size beyond the limit", "280313", "malformed"},
		{"the largest size, still to come", "280213", ""},
		{"a control", "000603000000", "control_on_tcp"},
		{"an opcode without a name", "000307", "control_on_tcp"},
		{"an opcode that does not exist", "000357", "unknown_opcode"},
		{"a private extension", "000360", "unknown_opcode"},
		{"another version", "000813000000004e", "version"},
		{"a login without a version", "000c21000003414200000100", "version"},
		{"a text that runs past its frame", "00081301ffff4142", ""},
		{"a record that only servers send", "000722080141", ""},
		{"a spawn before the login", "000425 00", ""},
		{"half a frame", "00", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := newHost(t, ServerConfig{})
			h.open(1, mallory)
			h.open(2, "10.0.0.2:1")
			h.stream(1, unhex(t, test.hex))
			events := strings.Join(h.events, "\n")
			ended := machine.SessionOf(h.server.sessions, 1) == nil
			if ended != (test.want != "") || !strings.Contains(events, test.want) {
				t.Errorf("ended %v, told %q; want %q", ended, events, test.want)
			}
			if machine.SessionOf(h.server.sessions, 2) == nil {
				t.Error("another session ended with it")
			}
		})
	}
}

func TestHostileDatagrams(t *testing.T) {
	huge := "ffffffff"
	tests := []struct{ name, hex, want string }{
		{"nothing", "", ""},
		{"an opcode that does not exist", "57", "no opcode"},
		{"a private extension", "60000000", "no opcode"},
		{"a control cut short", "0201", "want"},
		{"an acknowledgement of an unknown kind", "0209", ""},
		{"a huge number of groups", "03 00000001 0000000f" + huge, "want"},
		{"a huge number of members", "03 00000001 0000000f 00000001 0001 00" + huge, "want"},
		{"a huge number of pairs", "03 00000001 0000000f 00000000" + huge, "want"},
		{"a mode for an opcode that does not exist", "03 00000001 0000000f 00000000 00000001 00000400 00000003", "refused"},
		{"a group of an opcode that does not exist", "03 00000001 0000000f 00000001 0001 00 00000001 00000400 00000000", "refused"},
		{"many actions that are not there", "0aff 00000000 00000000", "want"},
		{"an envelope longer than the datagram", "20 0001 ffff", "want"},
		{"an envelope shorter than itself", "20 0001 0004", "want"},
		{"a sequence that does not exist", "20 ffff 000a 0000 0000 0000", "invalid_sequence"},
		{"a sequence beyond the window", "20 0100 000c 0000 0000 0001 00", "out_of_window"},
		{"an ordered body that is none", "25 0001 0006 00", "malformed"},
		{"a text past its record", "20 0001 000b 0000 0000 00ff", "malformed"},
		{"a server's record", "18 00000000", "does not send"},
		{"an unnamed control", "05", "does not send"},
		{"a raw body that nobody knows", "47 ffffffffff", ""},
		{"a mark for a raw stream", "01 40 0001", ""},
		{"a start beyond all sequences", "04 35 ffff", ""},
		{"an empty delimited datagram", "ffff", "no opcode"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := newHost(t, ServerConfig{})
			c := h.enter(1, mallory)
			h.events = nil
			h.datagram(mallory, unhex(t, test.hex))
			if got := strings.Join(h.events, "\n"); (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
				t.Errorf("told %q, want %q", got, test.want)
			}
			if machine.SessionOf(h.server.sessions, 1) != c {
				t.Error("one bad datagram has ended the session")
			}
		})
	}
}

// A mode whose envelope nobody knows hides what follows, and is told.
func TestModeTwo(t *testing.T) {
	h := newHost(t, ServerConfig{})
	h.enter(1, mallory)
	h.datagram(mallory, unhex(t, "03 00000001 0000000f 00000000 00000001 00000020 00000002"))
	h.datagram(mallory, unhex(t, "20 0001 0000"))
	if got := strings.Join(h.events, "\n"); !strings.Contains(got, "mode 2") {
		t.Errorf("told %q", got)
	}
}

func TestTooLargeADatagramIsRefused(t *testing.T) {
	h := newHost(t, ServerConfig{})
	h.enter(1, mallory)
	h.datagram(mallory, make([]byte, 3073))
	if got := strings.Join(h.events, "\n"); !strings.Contains(got, "3073 bytes") {
		t.Errorf("told %q", got)
	}
}

func TestStrangersLeaveNothingBehind(t *testing.T) {
	h := newHost(t, ServerConfig{})
	c := h.enter(1, mallory)
	sent := h.outbound
	for i := range 10000 {
		addr := fmt.Sprintf("10.9.%d.%d:%d", i>>8&255, i&255, 1000+i)
		h.datagram(addr, unhex(t, "1301"+text(c.key)))  // a key that is tied already
		h.datagram(addr, unhex(t, "1301"+text("Key0"))) // and one of nobody
	}
	if len(h.events) > maxStrangers+10 {
		t.Errorf("%d events over strangers", len(h.events))
	}
	if h.outbound != sent || c.udp.remote.String() != mallory || len(h.server.sessions) != 1 {
		t.Error("strangers have moved something")
	}
}

func TestTooManyConnections(t *testing.T) {
	h := newHost(t, ServerConfig{})
	for i := range 200 {
		h.open(machine.Conn(i+1), mallory)
	}
	if got := len(h.server.sessions); got != maxSessions {
		t.Errorf("%d sessions, want %d", got, maxSessions)
	}
	if last := h.out[len(h.out)-1]; last.Kind != machine.Abort || last.Conn != 200 {
		t.Errorf("the last connection gets %+v", last)
	}
	h.now = h.now.Add(loginWithin)
	h.give(machine.Input{Kind: machine.Tick})
	if got := len(h.server.sessions); got != 0 {
		t.Errorf("%d sessions that have not logged in are kept", got)
	}
}

func TestFloods(t *testing.T) {
	ping := unhexQuietly("0b0000000000000000")
	tests := []struct {
		name  string
		flood func(h *host)
	}{
		{"datagrams", func(h *host) { h.datagram(mallory, ping) }},
		{"frames", func(h *host) { h.stream(1, unhexQuietly("000339")) }},
		{"nonsense", func(h *host) { h.datagram(mallory, []byte{0x60}) }},
		{"logins", func(h *host) { h.stream(1, unhexQuietly("000c21000003414200000100")) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := newHost(t, ServerConfig{})
			h.enter(1, mallory)
			for range 20000 {
				test.flood(h)
			}
			if machine.SessionOf(h.server.sessions, 1) != nil {
				t.Error("the session goes on")
			}
			if h.outbound > 50<<20 || len(h.events) > 5000 {
				t.Errorf("it made the server send %d bytes and tell %d events", h.outbound, len(h.events))
			}
		})
	}
}

func unhexQuietly(s string) []byte {
	b, _ := hex.DecodeString(s)
	return b
}

// One session's trouble is nobody else's.
func TestTwoPlayersOneHostile(t *testing.T) {
	w := newCable(t, ServerConfig{}, BotConfig{Name: "Ada"}, BotConfig{Name: "Brin"})
	r := rand.New(rand.NewPCG(1, 1))
	w.seen = func(from *station, o machine.Output) {
		if from == w.bots[1] && o.Kind == machine.SendDatagram {
			b := make([]byte, r.IntN(60))
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			w.post(w.server, machine.Input{Kind: machine.Datagram, Peer: from.addr, Data: b}, delay)
		}
	}
	w.run(40 * time.Second)
	if !w.bots[0].done {
		t.Errorf("the other player has not come to its end: %q", w.bots[0].events)
	}
	if got := strings.Join(w.bots[0].events, ""); !strings.HasPrefix(got, "left") {
		t.Errorf("the other player has noticed: %q", got)
	}
}

// FuzzServer feeds a server with a client in the game whatever comes: inputs of a
// kind byte, a length byte and so many bytes, with time going on between them.
func FuzzServer(f *testing.F) {
	f.Add([]byte("\x01\x03\x00\x03\x39"))
	f.Add(append([]byte{0, 18}, unhexQuietly("20000100120000000000087365637265743100")...))
	f.Add(append([]byte{0, 14}, unhexQuietly("250001000e010000000100000000")...))
	f.Add(append([]byte{0, 22}, unhexQuietly("2500010016000000000100000000000000000000000000")...))
	f.Add([]byte{2, 5, 8, 0, 1, 0, 0, 3, 0, 4, 0})
	f.Add(append([]byte{0, 24}, unhexQuietly("03000000010000000f0000000000000001000000020000000304350001")...))
	f.Fuzz(func(t *testing.T, data []byte) {
		h := newHost(t, ServerConfig{Entities: 3})
		h.enter(1, mallory)
		h.open(2, "10.0.0.2:2")
		given := 0
		for len(data) >= 2 {
			kind, n := data[0], min(int(data[1]), len(data)-2)
			chunk := data[2 : 2+n]
			data = data[2+n:]
			given += n + 1
			h.now = h.now.Add(time.Duration(kind>>4) * 20 * time.Millisecond)
			switch kind & 7 {
			case 0, 1, 4:
				h.datagram(mallory, chunk)
			case 2:
				h.stream(1, chunk)
			case 3:
				h.stream(2, chunk)
			case 5:
				h.datagram("10.9.9.9:9", chunk)
			case 6:
				h.give(machine.Input{Kind: machine.Closed, Conn: machine.Conn(n)})
			case 7:
				h.give(machine.Input{Kind: machine.Tick})
			}
			h.out = nil
		}
		if h.outbound > 64<<10+20000*given {
			t.Errorf("%d bytes in made %d bytes out", given, h.outbound)
		}
	})
}

// A long random attack leaves the memory as it was.
func TestMemoryIsBounded(t *testing.T) {
	h := newHost(t, ServerConfig{})
	r := rand.New(rand.NewPCG(2, 2))
	h.enter(1, mallory)
	for i := range 100000 {
		h.now = h.now.Add(time.Millisecond)
		b := make([]byte, 5+r.IntN(20))
		for k := range b {
			b[k] = byte(r.Uint32())
		}
		b[0] = []byte{0x20, 0x25, 0x35, 0x3A, 0x01, 0x04}[r.IntN(6)]
		b[1], b[3], b[4] = 0, 0, byte(len(b))
		h.datagram(mallory, b)
		if machine.SessionOf(h.server.sessions, 1) == nil {
			h.enter(1, mallory)
		}
		h.out, h.events, h.heard, h.bodies = nil, nil, nil, nil
		if i == 5000 {
			h.t.Log("settled at", heapSize())
		}
	}
	if got := heapSize(); got > 64<<20 {
		t.Errorf("the heap has %d bytes", got)
	}
}

func heapSize() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
