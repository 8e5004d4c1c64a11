package sink

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"opscope/dissect"
	"opscope/schema"
)

// from makes a record one of another packet, so many milliseconds after the others.
func from(r *dissect.Record, packet, ms int) *dissect.Record {
	r.Packets, r.Time = []int{packet}, at.Add(time.Duration(ms)*time.Millisecond)
	return r
}

// back makes a record one of the server.
func back(r *dissect.Record) *dissect.Record {
	r.Direction, r.Src, r.Dst = dissect.ServerToClient, r.Dst, r.Src
	return r
}

// ack is an acknowledgement of a record of packet 12, and its packet.
func ack(packet, seq int) *dissect.Record {
	r := back(frame("D_ACK", 0x02, []byte{2, 1, 0x35, 0, byte(seq)}))
	r.Acks = dissect.Acks{Message: "VIEWPOINT_INFO", Seq: seq, Packet: 12, RTT: 41200 * time.Microsecond}
	return from(r, packet, 41)
}

// sent is a record with a sequence, of some state.
func sent(packet, seq int, state dissect.AckState, by int, notes ...string) *dissect.Record {
	r := frame("VIEWPOINT_INFO", 0x35, []byte{0x35})
	r.Envelope = dissect.Envelope{Mode: 1, Seq: seq, Length: -1, Origin: schema.Learned}
	r.Ack = dissect.Ack{State: state, By: by, RTT: -1}
	if state == dissect.AckAcked {
		r.Ack.RTT = 41200 * time.Microsecond
	}
	for _, n := range notes {
		r.Notes = append(r.Notes, dissect.Note{Code: n})
	}
	return from(r, packet, 0)
}

func opened() *dissect.Record {
	return &dissect.Record{
		Type: dissect.SessionRecord, Packets: []int{11}, Time: at, Digits: 6, Session: 1, Protocol: "wulfram", Code: "opened",
		Client: client, Server: server, Envelope: dissect.NoEnvelope,
	}
}

func lostBytes() *dissect.Record {
	return back(&dissect.Record{
		Type: dissect.GapRecord, Time: at, Digits: 6, Session: 1, Transport: schema.TCP, Src: client, Dst: server,
		Envelope: dissect.NoEnvelope, Bytes: 1448, After: 77, Before: 81, Text: dissect.NotCaptured,
	})
}

// draw draws records on so many columns.
func draw(t *testing.T, width int, ascii bool, records ...*dissect.Record) string {
	t.Helper()
	var b bytes.Buffer
	l := NewLadder(&b, LadderOptions{TextOptions: TextOptions{Width: width, Location: time.UTC, Schema: protocols}, ASCII: ascii})
	for _, r := range records {
		if err := l.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// story is a bit of everything.
func story() []*dissect.Record {
	gap := back(sent(83, 3, dissect.AckPending, 0))
	gap.Notes = []dissect.Note{{Code: "sequence_gap", Text: "sequence 2 not seen"}}
	return []*dissect.Record{
		opened(), sent(12, 7, dissect.AckAcked, 14), sent(12, 8, dissect.AckAcked, 14), frameAt(13), ack(14, 7), ack(14, 8),
		sent(15, 9, dissect.AckUnacked, 0), sent(16, 9, dissect.AckUnacked, 0, "retransmission"), lostBytes(), gap, frameAt(84),
	}
}

func frameAt(packet int) *dissect.Record {
	return from(frame("PING_REQUEST", 0x0b, []byte{0x0b}), packet, 1)
}

// The drawings below were drawn by hand: the first bar is in column 34, or 31 of a line
// below 100 columns, and the second 48 columns, or what is left, further right.

func TestLadder(t *testing.T) {
	const want = `
packet time                client 10.0.0.2                                 server 10.0.0.1
    11 20:15:02.310774            │ -- session: wulfram opened, 10.0.0.2:50111 -> 10.0.0.1:2627 --
    12 20:15:02.310774 udp ╭      │─ VIEWPOINT_INFO latest 7 ────────────────────►│  acked by 14, 41ms
    12 20:15:02.310774 udp │╭     │─ VIEWPOINT_INFO latest 8 ────────────────────►│  acked by 14, 41ms
    13 20:15:02.311774 udp ││     │─ PING_REQUEST ───────────────────────────────►│
    14 20:15:02.351774 udp ╰│     │◄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ D_ACK ┄│  acks VIEWPOINT_INFO 7 (packet 12)
    14 20:15:02.351774 udp  ╰     │◄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ D_ACK ┄│  acks VIEWPOINT_INFO 8 (packet 12)
    15 20:15:02.310774 udp        │─ VIEWPOINT_INFO latest 9 ───────────✗         │  unacked
    16 20:15:02.310774 udp        │═ VIEWPOINT_INFO latest 9 ═══════════✗         │  unacked  ! retransmission
    81 20:15:02.310774 tcp        │         ✗~~~~~~~~~~~~~~~~~~ gap: 1,448 bytes ~│  not captured between packets 77 a…
                                  │         ✗┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ sequence 2 not seen ┄│
    83 20:15:02.310774 udp ╭      │◄──────────────────── VIEWPOINT_INFO latest 3 ─│  pending  ! sequence_gap: sequence…
    84 20:15:02.311774 udp │      │─ PING_REQUEST ───────────────────────────────►│
`
	compareDrawing(t, draw(t, 119, false, story()...), want)
}

func TestLadderInASCII(t *testing.T) {
	const want = `
packet time             client 10.0.0.2          server 10.0.0.1
    11 20:15:02.310774         | -- session: wulfram opened, 10.0.0.2:50111 ~ --
    12 20:15:02.310774 udp /   |- VIEWPOINT_INFO 7 ---->|  by 14, 41ms
    12 20:15:02.310774 udp |/  |- VIEWPOINT_INFO 8 ---->|  by 14, 41ms
    13 20:15:02.311774 udp ||  |- PING_REQUEST -------->|
    14 20:15:02.351774 udp \|  |<............... D_ACK .|  acks VIEWPOINT_INFO 7
    14 20:15:02.351774 udp  \  |<............... D_ACK .|  acks VIEWPOINT_INFO 8
    15 20:15:02.310774 udp     |- VIEWPOINT_INFO 9 -x   |  unacked
    16 20:15:02.310774 udp     |= VIEWPOINT_INFO 9 =x   |  unacked  ! +1
    81 20:15:02.310774 tcp     |    x gap: 1,448 bytes ~|  not captured between~
                               |   x sequence 2 not s~ .|
    83 20:15:02.310774 udp /   |<---- VIEWPOINT_INFO 3 -|  pending  ! +1
    84 20:15:02.311774 udp |   |- PING_REQUEST -------->|
`
	compareDrawing(t, draw(t, 80, true, story()...), want)
}

func compareDrawing(t *testing.T, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "\n"), strings.Split(strings.TrimPrefix(want, "\n"), "\n")
	for i := range max(len(g), len(w)) {
		switch {
		case i >= len(g) || i >= len(w):
			t.Fatalf("got %d lines, want %d:\n%s", len(g), len(w), got)
		case g[i] != w[i]:
			t.Errorf("line %d: got\n%s\nwant\n%s", i+1, g[i], w[i])
		}
	}
}

// TestLadderHosts draws more than two hosts, what goes to all of them, both ends on one
// address, and ends whose roles nobody knows.
func TestLadderHosts(t *testing.T) {
	host := func(r *dissect.Record, src, dst string, d dissect.Direction) *dissect.Record {
		r.Src, r.Dst, r.Direction = netip.MustParseAddrPort(src), netip.MustParseAddrPort(dst), d
		return r
	}
	const c2s, s2c, unknown = dissect.ClientToServer, dissect.ServerToClient, dissect.UnknownDirection
	for _, c := range []struct {
		name    string
		records []*dissect.Record
		want    string
	}{
		{"three hosts, and all of them", []*dissect.Record{
			host(frameAt(1), "10.0.0.2:1031", "255.255.255.255:47624", c2s),
			host(frameAt(2), "10.0.0.1:2300", "10.0.0.2:1031", s2c),
			host(frameAt(3), "10.0.0.2:1031", "10.0.0.3:2300", unknown),
			host(frameAt(4), "10.0.0.3:2300", "10.0.0.1:2300", unknown),
			host(frameAt(5), "10.0.0.3:2300", "255.255.255.255:47624", unknown),
		}, `
packet time                client 10.0.0.2
     1 20:15:02.311774 udp        │─ PING_REQUEST to all ────────────────────────►│
packet time                client 10.0.0.2                                 server 10.0.0.1
     2 20:15:02.311774 udp        │◄─────────────────────────────── PING_REQUEST ─│
packet time                client 10.0.0.2               server 10.0.0.1                  10.0.0.3
     3 20:15:02.311774 udp        │─ PING_REQUEST ───────────────────────────────────────────►│
     4 20:15:02.311774 udp        │                             │◄───────────── PING_REQUEST ─│
     5 20:15:02.311774 udp        │◄──────────────────────────────────── PING_REQUEST to all ─│
`},
		{"one address", []*dissect.Record{
			host(frameAt(1), "127.0.0.1:2627", "127.0.0.1:50111", s2c),
			host(frameAt(2), "127.0.0.1:50112", "127.0.0.1:2627", c2s),
		}, `
packet time               client 127.0.0.1                                server 127.0.0.1
     1 20:15:02.311774 udp        │◄─────────────────────────────── PING_REQUEST ─│
     2 20:15:02.311774 udp        │─ PING_REQUEST ───────────────────────────────►│
`},
		{"one address, and nobody knows who is who", []*dissect.Record{
			host(frameAt(1), "127.0.0.1:2627", "127.0.0.1:50111", unknown),
			host(frameAt(2), "127.0.0.1:50111", "127.0.0.1:2627", unknown),
		}, `
packet time              127.0.0.1 port 2627                            127.0.0.1 port 50111
     1 20:15:02.311774 udp        │─ PING_REQUEST ───────────────────────────────►│
     2 20:15:02.311774 udp        │◄─────────────────────────────── PING_REQUEST ─│
`},
		{"no address", []*dissect.Record{{
			N: 1, Packets: []int{1}, Time: at, Digits: 6, Direction: c2s, Transport: schema.UDP, Message: "PING", Opcode: 1, Envelope: dissect.NoEnvelope,
		}}, `
packet time                   client ?                                        server ?
     1 20:15:02.310774 udp        │─ PING ───────────────────────────────────────►│
`},
		{"a zone that drives a terminal", []*dissect.Record{
			host(frameAt(1), "[fe80::1%\x1b[2J]:1", "[fe80::2%a]:2", c2s),
		}, `
packet time            client fe80::1%\x1b[2J                             server fe80::2%a
     1 20:15:02.311774 udp        │─ PING_REQUEST ───────────────────────────────►│
`},
	} {
		t.Run(c.name, func(t *testing.T) { compareDrawing(t, draw(t, 119, false, c.records...), c.want) })
	}
}

// TestLadderOfManyHosts proves that a session between hundreds of hosts takes no more room
// than a line has, and that each of its records still has a row.
func TestLadderOfManyHosts(t *testing.T) {
	for _, width := range []int{67, 80, 120, 300} {
		var records []*dissect.Record
		for i := range 500 {
			r := frameAt(i + 1)
			r.Src = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 7)
			r.Dst = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i % 7), byte(i * 11)}), 7)
			records = append(records, r)
		}
		out := draw(t, width, false, records...)
		if n := strings.Count(out, " udp "); n != len(records) {
			t.Errorf("%d columns: %d rows, want %d", width, n, len(records))
		}
		if n := strings.Count(out, "packet time"); n > maxHosts+1 {
			t.Errorf("%d columns: %d headers", width, n)
		}
		if !strings.Contains(out, "others") {
			t.Errorf("%d columns: the last column does not say that it is for others", width)
		}
		for line := range strings.Lines(out) {
			if n := columns([]byte(strings.TrimSuffix(line, "\n"))); n > width {
				t.Errorf("%d columns in %d: %s", n, width, line)
			}
		}
	}
}

// TestLadderWidth proves that no row but an error is wider than its line, however long
// names, numbers and notes are.
func TestLadderWidth(t *testing.T) {
	long := sent(123456, 65534, dissect.AckAcked, 123459, "retransmission", "late_context", "assumed_context")
	long.Message = strings.Repeat("LONG_", 30)
	wide := sent(1, 2, dissect.AckDuplicate, 123459)
	wide.Message = strings.Repeat("漢", 40)
	hostile := sent(1, 2, dissect.AckUnacked, 0)
	hostile.Message = "\x1b[2J\u202e" + strings.Repeat("\x00", 40)
	records := append(story(), long, back(long), wide, hostile, typical(), everything(), says(strings.Repeat("é", 200)))
	records = append(records, happenings()...)
	for width := 67; width < 200; width++ {
		for _, ascii := range []bool{false, true} {
			out := draw(t, width, ascii, records...)
			for line := range strings.Lines(out) {
				line = strings.TrimSuffix(line, "\n")
				if n := columns([]byte(line)); n > width && !strings.Contains(line, "!! ") {
					t.Fatalf("%d columns in %d: %s", n, width, line)
				}
				if bad := strings.IndexFunc(line, func(r rune) bool { return unprintable(r) || ascii && r > 0x7e }); bad >= 0 {
					t.Fatalf("%q in %q", line[bad:], line)
				}
			}
		}
	}
}

// TestRails proves that no record loses its words when there are more than rails, and that
// what is acknowledged as a whole ends together.
func TestRails(t *testing.T) {
	var records []*dissect.Record
	for seq := range 10 {
		records = append(records, sent(12, seq, dissect.AckAcked, 14))
	}
	out := draw(t, 119, false, append(records, ack(14, 9), frameAt(15))...)
	rows := strings.Split(out, "\n")
	for i, want := range []string{"╭     ", "│╭    ", "││╭   ", "│││╭  ", "││││╭ ", "│││││╭", "││││││", "││││││", "││││││", "││││││", "╰╰╰╰╰╰", "      "} {
		if got := string([]rune(rows[i+1])[27:33]); got != want {
			t.Errorf("row %d: rails %q, want %q", i+1, got, want)
		}
	}
	if n := strings.Count(out, "acked by 14, 41ms"); n != 10 {
		t.Errorf("%d records say what acknowledged them, want 10", n)
	}
	// What may never be acknowledged makes room.
	records = records[:0]
	for seq := range 7 {
		records = append(records, sent(12, seq, dissect.AckPending, 0))
	}
	rows = strings.Split(draw(t, 119, false, records...), "\n")
	if got := string([]rune(rows[7])[27:33]); got != "╭│││││" {
		t.Errorf("the seventh has the rails %q", got)
	}
}

// TestLadderMasks proves that a secret shows nowhere.
func TestLadderMasks(t *testing.T) {
	for _, r := range []*dissect.Record{login(), brokenLogin()} {
		if out := draw(t, -1, false, r); strings.Contains(out, "hunter") || !strings.Contains(out, dissect.MaskText) {
			t.Errorf("got\n%s", out)
		}
	}
}

// TestSides draws what both sides say apart, with the lines below a record.
func TestSides(t *testing.T) {
	var b bytes.Buffer
	text := NewText(&b, TextOptions{Sides: true, Hex: true, Location: time.UTC, Schema: protocols})
	for _, r := range []*dissect.Record{opened(), frameAt(12), ack(14, 7)} {
		if err := text.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := text.Flush(); err != nil {
		t.Fatal(err)
	}
	const want = `
20:15:02.310774              -- session: wulfram opened, 10.0.0.2:50111 -> 10.0.0.1:2627 --
20:15:02.311774  -> c2s udp  PING_REQUEST 0x0B            1
    0000  0b                                               |.|
          ..
20:15:02.351774          <- s2c udp  D_ACK 0x02                   5  acks VIEWPOINT_INFO 7 (packet 12, 41ms)
            0000  02 01 35 00 07                                   |..5..|
                  .. .. .. .. ..
`
	compareDrawing(t, b.String(), want)
}
