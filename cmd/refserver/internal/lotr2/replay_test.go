package lotr2

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"os"
	"testing"
	"time"

	"opscope/cmd/refserver/internal/machine"
)

// epoch is when tests begin.
var epoch = time.Date(2026, 11, 29, 20, 15, 0, 0, time.UTC)

var (
	hostAddr   = netip.MustParseAddr("169.254.103.209")
	joinerAddr = netip.MustParseAddr("169.254.3.245")
)

func placeOf(addr netip.Addr) Place {
	return Place{netip.AddrPortFrom(addr, StreamPort), netip.AddrPortFrom(addr, DatagramPort)}
}

// vectors are real frames by their names: testdata/vectors/lotr2.
func vectors(t *testing.T) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile("../../../../testdata/vectors/lotr2/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct{ Name, Hex string }
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	frames := map[string][]byte{}
	for _, v := range list {
		if frames[v.Name], err = hex.DecodeString(v.Hex); err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
	}
	return frames
}

// drill has a machine play one side of a real session, and compares what it sends.
type drill struct {
	t       *testing.T
	now     time.Time
	machine machine.Machine
	frames  map[string][]byte
	out     []machine.Output // that no step has looked at
}

// give gives the machine an input, and keeps what it returns.
func (d *drill) give(in machine.Input) {
	d.out = append(d.out, d.machine.Handle(d.now, in)...)
}

// pass lets time go by, with the ticks that the machine asks for.
func (d *drill) pass(by time.Duration) {
	for until := d.now.Add(by); ; {
		at := d.machine.Deadline()
		if at.IsZero() || at.After(until) {
			d.now = until
			return
		}
		if at.After(d.now) {
			d.now = at
		}
		d.give(machine.Input{Kind: machine.Tick})
	}
}

// hears gives a frame of a name as bytes of a connection.
func (d *drill) hears(conn machine.Conn, names ...string) {
	d.t.Helper()
	for _, name := range names {
		if d.frames[name] == nil {
			d.t.Fatalf("there is no vector %s", name)
		}
		d.give(machine.Input{Kind: machine.Stream, Conn: conn, Data: d.frames[name]})
	}
}

// says wants the next output to be a frame of a name, whatever else was meant for
// others.
func (d *drill) says(kind machine.OutputKind, names ...string) {
	d.t.Helper()
	for _, name := range names {
		if len(d.out) == 0 {
			d.t.Fatalf("%s: it says nothing", name)
		}
		out := d.out[0]
		d.out = d.out[1:]
		want := d.frames[name]
		if out.Kind != kind || !bytes.Equal(out.Data, want) {
			d.t.Errorf("%s: output %d\n%x\nwant %d\n%x", name, out.Kind, out.Data, kind, want)
		}
	}
}

// quiet wants nothing to be left.
func (d *drill) quiet() {
	d.t.Helper()
	for _, out := range d.out {
		d.t.Errorf("it also does %d with %x", out.Kind, out.Data)
	}
	d.out = nil
}

// TestHostPlaysTheRealOne gives a host what the real joiner of chat.pcapng sent, and wants
// what the real host answered, byte by byte.
func TestHostPlaysTheRealOne(t *testing.T) {
	config := HostConfig{Config: Config{Name: "Player1 ", Place: placeOf(hostAddr)}}
	h := NewHost(config, nil).(*host)
	h.role = realHost{h}
	d := drill{t: t, now: epoch, machine: h, frames: vectors(t)}
	d.give(machine.Input{Kind: machine.Tick})
	d.pass(3500 * time.Millisecond) // alone: it takes slots that nobody sees
	if d.quiet(); h.slots.next != 6 {
		t.Errorf("the next slot is %d, want 6: two heartbeats and four tables", h.slots.next)
	}
	asker := netip.AddrPortFrom(joinerAddr, 1031)
	d.give(machine.Input{Kind: machine.Datagram, Peer: asker, Port: DiscoveryPort, Data: d.frames["public-enum-sessions"]})
	if len(d.out) != 1 || d.out[0].Kind != machine.Dial || d.out[0].Peer != netip.AddrPortFrom(joinerAddr, 2300) {
		t.Fatalf("it does not dial the joiner: %+v", d.out)
	}
	d.out = nil
	d.give(machine.Input{Kind: machine.Opened, Conn: 1, Peer: netip.AddrPortFrom(joinerAddr, 2300)})
	d.says(machine.SendStream, "enum-sessions-reply")

	d.give(machine.Input{Kind: machine.Opened, Conn: -1, Peer: netip.AddrPortFrom(joinerAddr, 1033)})
	d.hears(-1, "request-player-id-system")
	d.says(machine.SendStream, "request-player-reply-system")
	d.hears(-1, "add-forward-request")
	d.says(machine.SendStream, "super-enum-players-reply")
	d.hears(-1, "request-player-id-user")
	d.says(machine.SendStream, "request-player-reply-user")
	d.hears(-1, "create-player")
	d.quiet()

	d.pass(520 * time.Millisecond)
	if len(d.out) != 2 || !bytes.Equal(d.out[1].Data, d.frames["op0e-lobby-one-player"]) {
		t.Errorf("no heartbeat and no table as in the real lobby: %+v", d.out)
	}
	d.out = nil
	d.hears(-1, "op01-first-send-slot0", "op01-copy-40", "op01-copy-80")
	if len(d.out) != 3 {
		t.Fatalf("%d frames answer the hello and its copies, want 3", len(d.out))
	}
	d.says(machine.SendStream, "op02-directed")
	for i, flag := range []byte{0x40, 0x80} {
		want := bytes.Clone(d.frames["op02-directed"])
		want[31] |= flag
		if got := d.out[i].Data; !bytes.Equal(got, want) {
			t.Errorf("copy %d:\n%x\nwant\n%x", i+1, got, want)
		}
	}
	d.out = nil
	for _, name := range []string{"op4c-all-zero", "op09-options", "op03-lobby-table"} {
		d.pass(10 * time.Millisecond)
		d.says(machine.SendStream, name)
		if len(d.out) != 2 {
			t.Errorf("%s: %d copies, want 2", name, len(d.out))
		}
		d.out = nil
	}
	ping := d.frames["ping-from-host"]
	d.give(machine.Input{Kind: machine.Datagram, Peer: netip.AddrPortFrom(joinerAddr, 2350), Port: 2350, Data: joinersPing(ping, d.frames["pong-from-joiner"])})
	if len(d.out) != 1 || !bytes.Equal(d.out[0].Data[:28], append(bytes.Clone(ping[:24]), 0x17, 0, 14, 0)) || !bytes.Equal(d.out[0].Data[28:], ping[28:]) {
		t.Errorf("no pong with the host's id and the ping's tick: %+v", d.out)
	}
}

// joinersPing is a ping of the joiner, made of the host's ping and the joiner's pong.
func joinersPing(ping, pong []byte) []byte {
	b := bytes.Clone(ping)
	copy(b[28:32], pong[28:32])
	return b
}

// realHost begins with the key and the session of chat.pcapng.
type realHost struct{ *host }

func (r realHost) begin(now time.Time) {
	h := r.host
	h.key = 0x000284cb
	h.instance = "{F6F3D983-E12E-42D9-864B-D7D1E6AC0DEC}"
	h.announce(now)
}

// TestJoinerPlaysTheRealOne gives a joiner what the real host of chat.pcapng sent.
func TestJoinerPlaysTheRealOne(t *testing.T) {
	script, err := JoinerScripts.Parse("choose 2\nwait 5s\nsay i am player 2")
	if err != nil {
		t.Fatal(err)
	}
	look := netip.AddrPortFrom(netip.MustParseAddr("255.255.255.255"), DiscoveryPort)
	j := NewJoiner(JoinerConfig{Config: Config{Name: "Player2    ", Place: placeOf(joinerAddr), Script: script}, Look: look, From: 1031}, nil)
	d := drill{t: t, now: epoch, machine: j, frames: vectors(t)}
	d.give(machine.Input{Kind: machine.Tick})
	if len(d.out) != 1 || d.out[0].Peer != look || d.out[0].Port != 1031 {
		t.Errorf("it does not ask everybody, from its own port: %+v", d.out)
	}
	d.says(machine.SendDatagram, "public-enum-sessions")
	d.give(machine.Input{Kind: machine.Opened, Conn: -1, Peer: netip.AddrPortFrom(hostAddr, 1038)})
	d.hears(-1, "enum-sessions-reply")
	d.pass(time.Second)
	if len(d.out) != 1 || d.out[0].Kind != machine.Dial || d.out[0].Peer != netip.AddrPortFrom(hostAddr, 2300) {
		t.Fatalf("it does not dial the host: %+v", d.out)
	}
	d.out = nil
	d.give(machine.Input{Kind: machine.Opened, Conn: 1, Peer: netip.AddrPortFrom(hostAddr, 2300)})
	d.says(machine.SendStream, "request-player-id-system")
	d.hears(-1, "request-player-reply-system")
	d.says(machine.SendStream, "add-forward-request")
	d.hears(-1, "super-enum-players-reply")
	d.says(machine.SendStream, "request-player-id-user")
	d.hears(-1, "request-player-reply-user")
	d.says(machine.SendStream, "create-player")
	d.quiet()
	d.pass(200 * time.Millisecond)
	d.says(machine.SendStream, "op01-first-send-slot0", "op01-copy-40", "op01-copy-80")
	d.hears(-1, "op02-directed")
	d.says(machine.SendStream, "op05-joiner-choice")
	d.out = nil
	d.pass(6 * time.Second)
	d.says(machine.SendStream, "op06-chat-joiner")
	d.out = nil
	d.give(machine.Input{Kind: machine.Datagram, Peer: netip.AddrPortFrom(hostAddr, 2350), Port: 2350, Data: d.frames["ping-from-host"]})
	d.says(machine.SendDatagram, "pong-from-joiner")
}
