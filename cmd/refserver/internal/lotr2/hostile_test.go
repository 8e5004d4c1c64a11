package lotr2

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
)

// ear is an observer that keeps what it is told.
type ear struct {
	heard  []string
	events []string
}

func (e *ear) Received(_ time.Time, _ netip.AddrPort, r machine.Record) {
	e.heard = append(e.heard, r.Message)
}
func (e *ear) Acknowledged(time.Time, int)          {}
func (e *ear) Event(_ time.Time, code, text string) { e.events = append(e.events, code+": "+text) }

// count counts what was heard of a message.
func (e *ear) count(message string) (n int) {
	for _, m := range e.heard {
		if m == message {
			n++
		}
	}
	return n
}

// told reports whether there is an event with some words.
func (e *ear) told(words string) bool { return strings.Contains(strings.Join(e.events, "\n"), words) }

// met returns a host in whose session the real joiner of chat.pcapng is.
func met(t *testing.T) (*drill, *host, *ear) {
	t.Helper()
	e := &ear{}
	h := NewHost(HostConfig{Config: Config{Name: "Player1 ", Place: placeOf(hostAddr)}}, e).(*host)
	h.role = realHost{h}
	d := &drill{t: t, now: epoch, machine: h, frames: vectors(t)}
	d.give(machine.Input{Kind: machine.Datagram, Peer: netip.AddrPortFrom(joinerAddr, 1031), Port: DiscoveryPort, Data: d.frames["public-enum-sessions"]})
	d.give(machine.Input{Kind: machine.Opened, Conn: 1, Peer: netip.AddrPortFrom(joinerAddr, 2300)})
	d.give(machine.Input{Kind: machine.Opened, Conn: -1, Peer: netip.AddrPortFrom(joinerAddr, 1033)})
	d.hears(-1, "request-player-id-system", "add-forward-request", "request-player-id-user", "create-player", "op01-first-send-slot0")
	d.out = nil
	return d, h, e
}

// forge makes a frame of the joiner of chat.pcapng.
func forge(head schema.Values, payload []byte) []byte {
	c := newClerk(schema.Client, StreamPort, nil)
	for name, v := range map[string]any{"from_id": 0x000384c8, "to_id": 0} {
		if head[name] == nil {
			head[name] = v
		}
	}
	return c.carry(head, payload)
}

func TestCopiesCountOnce(t *testing.T) {
	chat := append([]byte{2, 0, 0, 0, 'h', 'i'}, make([]byte, 63)...)
	other := append([]byte{2, 0, 0, 0, 'H', 'i'}, make([]byte, 63)...)
	send := func(slot, copy int, payload []byte, more schema.Values) []byte {
		v := schema.Values{"opcode": 6, "slot": slot, "copy": copy}
		for name, x := range more {
			v[name] = x
		}
		return forge(v, payload)
	}
	wrong := schema.Values{"checksum": int(schema.Sum8(chat)) + 1}
	for _, test := range []struct {
		name   string
		frames [][]byte
		chats  int
		tells  string
	}{
		{"three sends are one message", [][]byte{send(5, 0, chat, nil), send(5, 1, chat, nil), send(5, 2, chat, nil)}, 1, ""},
		{"a wrong first send is made good by the second", [][]byte{send(5, 0, chat, wrong), send(5, 1, chat, nil), send(5, 2, chat, nil)}, 1, "checksum"},
		{"wrong three times is never", [][]byte{send(5, 0, chat, wrong), send(5, 1, chat, wrong), send(5, 2, chat, wrong)}, 0, "checksum"},
		{"without the first send", [][]byte{send(5, 1, chat, nil), send(5, 2, chat, nil)}, 1, ""},
		{"another copy is refused", [][]byte{send(5, 0, chat, nil), send(5, 1, other, nil), send(5, 2, chat, nil)}, 1, "not what was sent first"},
		{"another slot is another message", [][]byte{send(5, 0, chat, nil), send(6, 0, chat, nil)}, 2, ""},
		{"a wrong length", [][]byte{send(5, 0, chat, schema.Values{"length": 70})}, 0, "a length of 70, with 69 bytes"},
		{"from somebody else's id", [][]byte{send(5, 0, chat, schema.Values{"from_id": 0x000384ca})}, 0, "not the player's"},
		{"to somebody else's id", [][]byte{send(5, 0, chat, schema.Values{"to_id": 0x000384c8})}, 0, "to the id 0x384c8"},
		{"to this one's id", [][]byte{send(5, 0, chat, schema.Values{"to_id": 0x000384ca})}, 1, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, _, e := met(t)
			for _, f := range test.frames {
				d.give(machine.Input{Kind: machine.Stream, Conn: -1, Data: f})
			}
			if got := e.count("chat"); got != test.chats {
				t.Errorf("%d messages, want %d", got, test.chats)
			}
			if test.tells != "" && !e.told(test.tells) || test.tells == "" && len(e.events) > 1 {
				t.Errorf("it tells %q, want %q", e.events, test.tells)
			}
		})
	}
}

// TestFramesInPieces gives a host a session byte by byte, and all at once.
func TestFramesInPieces(t *testing.T) {
	for _, size := range []int{1, 3, 1 << 20} {
		e := &ear{}
		h := NewHost(HostConfig{Config: Config{Name: "Player1 ", Place: placeOf(hostAddr)}}, e).(*host)
		h.role = realHost{h}
		d := &drill{t: t, now: epoch, machine: h, frames: vectors(t)}
		var stream []byte
		for _, name := range []string{"request-player-id-system", "add-forward-request", "request-player-id-user", "create-player", "op01-first-send-slot0", "op01-copy-40"} {
			stream = append(stream, d.frames[name]...)
		}
		d.give(machine.Input{Kind: machine.Opened, Conn: -1, Peer: netip.AddrPortFrom(joinerAddr, 1033)})
		for len(stream) > 0 {
			n := min(size, len(stream))
			d.give(machine.Input{Kind: machine.Stream, Conn: -1, Data: stream[:n]})
			stream = stream[n:]
		}
		if e.count("join_hello") != 1 || len(h.joined()) != 1 || len(e.events) != 1 {
			t.Errorf("in pieces of %d: %v, %q", size, e.heard, e.events)
		}
	}
}

func TestNonsense(t *testing.T) {
	big := []byte{0xff, 0xff, 0xbf, 0xfa} // 1048575 bytes
	for _, test := range []struct {
		name  string
		give  func(d *drill)
		tells string
		gone  bool // the link is
	}{
		{"no frame at all", func(d *drill) { d.stream([]byte("GET / HTTP/1.1\r\n\r\n")) }, "malformed", true},
		{"a huge frame", func(d *drill) { d.stream(append(big, make([]byte, 60)...)) }, "a frame of 1048575 bytes", true},
		{"a size below the envelope", func(d *drill) { d.stream([]byte{8, 0, 0xb0, 0xfa, 2, 0, 8, 0xfc}) }, "malformed", true},
		{"a third id", func(d *drill) { d.hears(-1, "request-player-id-user") }, "one more id", false},
		{"a second system player", func(d *drill) { d.hears(-1, "request-player-id-system") }, "one more id", false},
		{"somebody else's player deleted", func(d *drill) { d.hears(-1, "public-delete-player") }, "a DeletePlayer for another", false},
		{"what only a host says", func(d *drill) { d.hears(-1, "enum-sessions-reply") }, "", false},
		{"a second connection", func(d *drill) {
			d.give(machine.Input{Kind: machine.Opened, Conn: -2, Peer: netip.AddrPortFrom(joinerAddr, 1040)})
		}, "a connection more", false},
		{"bytes on the wrong connection", func(d *drill) { d.give(machine.Input{Kind: machine.Stream, Conn: 1, Data: []byte{1}}) }, "backwards", false},
		{"a closed connection", func(d *drill) { d.give(machine.Input{Kind: machine.Closed, Conn: -1}) }, "closed", true},
		{"nonsense without end", func(d *drill) {
			for range maxComplaints + 1 {
				d.hears(-1, "request-player-id-system")
			}
		}, "too much that makes no sense", true},
		{"a flood", func(d *drill) {
			for range burst + 1 {
				d.hears(-1, "op54-single-send")
			}
		}, "", true},
		{"a frame in a longer datagram", func(d *drill) {
			d.give(machine.Input{Kind: machine.Datagram, Peer: netip.AddrPortFrom(joinerAddr, 2350), Data: append(bytes.Clone(d.frames["ping-from-host"]), 0)})
		}, "in a datagram of 37", false},
		{"another game's question", func(d *drill) {
			f := bytes.Clone(d.frames["public-enum-sessions"])
			f[30] ^= 1
			d.give(machine.Input{Kind: machine.Datagram, Peer: netip.MustParseAddrPort("10.9.9.9:99"), Port: DiscoveryPort, Data: f})
		}, "EnumSessions from 10.9.9.9:99", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, h, e := met(t)
			test.give(d)
			if !e.told(test.tells) {
				t.Errorf("it tells %q, want %q", e.events, test.tells)
			}
			if gone := h.linkTo(joinerAddr) == nil; gone != test.gone {
				t.Errorf("the link is gone: %v, want %v", gone, test.gone)
			}
			if resets := d.count(machine.Abort); test.gone && resets == 0 {
				t.Error("its connections are not reset")
			}
		})
	}
}

// stream gives bytes of the joiner's connection.
func (d *drill) stream(data []byte) {
	d.give(machine.Input{Kind: machine.Stream, Conn: -1, Data: data})
}

// count counts what was not looked at of a kind.
func (d *drill) count(kind machine.OutputKind) (n int) {
	for _, out := range d.out {
		if out.Kind == kind {
			n++
		}
	}
	return n
}

// TestStrangersLeaveNothingBehind has many hosts ask for sessions and ping.
func TestStrangersLeaveNothingBehind(t *testing.T) {
	d, h, e := met(t)
	for i := range 5000 {
		from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 1031)
		d.give(machine.Input{Kind: machine.Datagram, Peer: from, Port: DiscoveryPort, Data: d.frames["public-enum-sessions"]})
		d.give(machine.Input{Kind: machine.Datagram, Peer: from, Port: DatagramPort, Data: d.frames["ping-from-host"]})
	}
	if len(h.links) > maxLinks || len(h.agenda) > 20 || len(e.events) > 3*maxStrangers {
		t.Errorf("%d links, %d errands, %d events", len(h.links), len(h.agenda), len(e.events))
	}
	if n := d.count(machine.SendDatagram); n > maxStrangers {
		t.Errorf("%d datagrams answer strangers, want at most %d", n, maxStrangers)
	}
	if n := d.count(machine.Dial); n > maxLinks {
		t.Errorf("%d strangers are dialled, want at most %d", n, maxLinks)
	}
}

// TestFullSession lets five players play, and no sixth.
func TestFullSession(t *testing.T) {
	e := &ear{}
	h := NewHost(HostConfig{Config: Config{Name: "Player1", Place: placeOf(hostAddr)}}, e).(*host)
	d := &drill{t: t, now: epoch, machine: h, frames: vectors(t)}
	request := func(i int, name string) {
		d.give(machine.Input{Kind: machine.Stream, Conn: machine.Conn(-1 - i), Data: d.frames[name]})
	}
	for i := range 5 {
		d.give(machine.Input{Kind: machine.Opened, Conn: machine.Conn(-1 - i), Peer: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 2)}), 1033)})
		request(i, "request-player-id-system")
		request(i, "request-player-id-user")
	}
	if len(h.links) != 4 || len(h.table.members) != 10 || !e.told("no place in the session") {
		t.Errorf("%d links and %d members, %q", len(h.links), len(h.table.members), e.events)
	}
}

// TestJoinerKnowsItsHost has strangers dial a joiner, and say what only those may say
// whom the host has named.
func TestJoinerKnowsItsHost(t *testing.T) {
	e := &ear{}
	look := netip.AddrPortFrom(hostAddr, DiscoveryPort)
	j := NewJoiner(JoinerConfig{Config: Config{Name: "a name that is longer than any other", Place: placeOf(joinerAddr)}, Look: look}, e).(*joiner)
	d := &drill{t: t, now: epoch, machine: j, frames: vectors(t)}
	d.give(machine.Input{Kind: machine.Opened, Conn: -1, Peer: netip.AddrPortFrom(hostAddr, 1038)})
	d.hears(-1, "enum-sessions-reply")
	d.pass(time.Second)
	d.give(machine.Input{Kind: machine.Opened, Conn: 1, Peer: netip.AddrPortFrom(hostAddr, 2300)})
	d.hears(-1, "request-player-reply-system", "super-enum-players-reply", "request-player-reply-user")
	d.give(machine.Input{Kind: machine.Opened, Conn: -2, Peer: netip.MustParseAddrPort("10.9.9.9:1033")})
	d.hears(-2, "enum-sessions-reply", "request-player-reply-user", "create-player", "op54-single-send", "op02-directed")
	if len(j.joined()) != 1 || j.host.addr != hostAddr || j.stage != greeting || j.over {
		t.Errorf("%d others, host %v, stage %d, over: %v", len(j.joined()), j.host.addr, j.stage, j.over)
	}
	if !e.told("whom the host has not named") || !e.told("which is not the player's") {
		t.Errorf("it tells %q", e.events)
	}
	d.out = nil
	d.pass(time.Second)
	if len(d.out) != 3 || !bytes.Equal(d.out[0].Data[36:56], []byte("a name that is long\x00")) {
		t.Errorf("its hello is %+v", d.out)
	}
	d.give(machine.Input{Kind: machine.Opened, Conn: 77, Peer: netip.AddrPortFrom(hostAddr, 2300)})
	if d.count(machine.Abort) != 1 {
		t.Error("a connection that nobody wants is kept")
	}
}

// TestRandomInput gives both machines bytes that make no sense, and some that nearly
// do: nothing may panic, and nothing may grow.
func TestRandomInput(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	frames := vectors(t)
	var list [][]byte
	for _, f := range frames {
		list = append(list, f)
	}
	look := netip.AddrPortFrom(hostAddr, DiscoveryPort)
	for name, m := range map[string]machine.Machine{
		"host":   NewHost(HostConfig{Config: Config{Name: "Player1", Place: placeOf(hostAddr)}}, nil),
		"joiner": NewJoiner(JoinerConfig{Config: Config{Name: "Player2", Place: placeOf(joinerAddr)}, Look: look}, nil),
	} {
		t.Run(name, func(t *testing.T) {
			d := &drill{t: t, now: epoch, machine: m}
			conn := machine.Conn(0)
			for i := range 20_000 {
				data := bytes.Clone(list[i%len(list)])
				for range random.IntN(4) {
					data[random.IntN(len(data))] = byte(random.Uint32())
				}
				data = data[:random.IntN(len(data)+1)]
				peer := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(random.IntN(6))}), 1033)
				switch random.IntN(8) {
				case 0:
					conn--
					d.give(machine.Input{Kind: machine.Opened, Conn: conn, Peer: peer})
				case 1:
					d.give(machine.Input{Kind: machine.Opened, Conn: machine.Conn(random.IntN(20)), Peer: peer})
				case 2:
					d.give(machine.Input{Kind: machine.Datagram, Peer: peer, Port: DatagramPort, Data: data})
				case 3:
					d.pass(time.Duration(random.IntN(300)) * time.Millisecond)
				default:
					d.give(machine.Input{Kind: machine.Stream, Conn: conn + machine.Conn(random.IntN(3)), Data: data})
				}
				d.out = nil
			}
			p := peerOf(m)
			if len(p.links) > maxLinks || len(p.agenda) > 100 {
				t.Errorf("%d links, %d errands", len(p.links), len(p.agenda))
			}
		})
	}
}

func peerOf(m machine.Machine) *peer {
	switch m := m.(type) {
	case *host:
		return m.peer
	case *joiner:
		return m.peer
	}
	panic(fmt.Sprintf("%T", m))
}
