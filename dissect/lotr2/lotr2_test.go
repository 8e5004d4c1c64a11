package lotr2_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"opscope/dissect"
	"opscope/dissect/lotr2"
	"opscope/dissect/scene"
	"opscope/schema"
)

// Who dials, in a scene.
const (
	dialer   = scene.Client
	listener = scene.Server
)

func le16(v int) string { return string(binary.LittleEndian.AppendUint16(nil, uint16(v))) }
func le32(v int) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(v))) }

// enveloped puts size, token and sockaddr in front of a body.
func enveloped(body string) string { return sized(20+len(body), body) }

// sized says any size.
func sized(size int, body string) string {
	return le32(size|0xfab<<20) + "\x02\x00\x08\xfc" + strings.Repeat("\x00", 12) + body
}

func command(number int, body string) string {
	return enveloped("play" + le16(number) + le16(14) + body)
}

// The ids of the players in chat.pcapng.
const (
	hostSystem = 0x384cb
	hostUser   = 0x384ca
	joinSystem = 0x384c9
	joinUser   = 0x384c8
)

// said is a player message to all.
func said(from int, data string) string { return enveloped(le32(from) + le32(0) + data) }

// game is a game frame.
func game(op, slot, copy int, payload string) string {
	sum := 0
	for _, b := range []byte(payload) {
		sum += int(b)
	}
	return string([]byte{byte(op), byte(len(payload)), byte(sum), byte(slot | copy<<6)}) + payload
}

// Messages of the game: one that is sent once, and one that is sent three times.
func tick(from, slot, n, player int) string {
	return said(from, game(0x0a, slot, 0, le16(n)+"\x00"+string([]byte{byte(player)})))
}

func chat(from, slot, copy int, text string) string {
	return said(from, game(0x06, slot, copy, le32(1)+text+strings.Repeat("\x00", 65-len(text))))
}

func thrice(from, slot int, text string) string {
	return chat(from, slot, 0, text) + chat(from, slot, 1, text) + chat(from, slot, 2, text)
}

// seen is the frame of a vector, which was seen on the wire.
func seen(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("../../testdata/vectors/lotr2/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct{ Name, Hex string }
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatal(err)
	}
	for _, v := range list {
		if v.Name == name {
			data, err := hex.DecodeString(v.Hex)
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		}
	}
	t.Fatal("no vector " + name)
	return ""
}

// match is a game between two hosts: the host dials first, and each side sends over what it
// dialled.
type match struct {
	scene.Scene
	host, join *scene.Connection // what each of them dialled
	pings      *scene.Datagrams
	t          testing.TB
}

func newMatch(t testing.TB) *match {
	m := &match{t: t}
	m.host = m.TCP("10.0.0.1:1038", "10.0.0.2:2300")
	m.join = m.TCP("10.0.0.2:1033", "10.0.0.1:2300")
	m.pings = m.UDP("10.0.0.2:2350", "10.0.0.1:2350")
	return m
}

// enter has the joiner join.
func (m *match) enter() {
	m.host.Open()
	m.host.Send(dialer, seen(m.t, "enum-sessions-reply"))
	m.join.Open()
	for _, step := range []struct {
		c    *scene.Connection
		name string
	}{
		{m.join, "request-player-id-system"}, {m.host, "request-player-reply-system"}, {m.join, "add-forward-request"},
		{m.host, "super-enum-players-reply"}, {m.join, "request-player-id-user"}, {m.host, "request-player-reply-user"}, {m.join, "create-player"},
	} {
		step.c.Send(dialer, seen(m.t, step.name))
	}
}

// joined is a match in which the joiner has joined.
func joined(t testing.TB) *match {
	m := newMatch(t)
	m.enter()
	return m
}

// since plays the match and returns what its packets from a number on made.
func (m *match) since(packet int, o dissect.Options) []*dissect.Record {
	return slices.DeleteFunc(m.Play(m.t, o).Frames(), func(r *dissect.Record) bool { return r.Packets[0] <= packet })
}

// Sections 8.2, 8.3 and 8.13: the host dials first and both listen on one port; roles come
// from what is said, and answers come over the other connection.
func TestJoining(t *testing.T) {
	m := joined(t)
	m.pings.Send(listener, command(0x16, le32(hostSystem)+le32(5000)))
	m.pings.Send(dialer, command(0x17, le32(joinSystem)+le32(5000)))
	m.join.Send(dialer, seen(t, "op01-first-send-slot0")+seen(t, "op01-copy-40")+seen(t, "op01-copy-80"))
	out := m.Play(t, known)
	scene.Want(t, out.Records, `
		session 1 opened: syn
		s2c EnumSessionsReply
		c2s RequestPlayerId acked
		s2c RequestPlayerReply
		c2s AddForwardRequest acked
		s2c SuperEnumPlayersReply
		c2s RequestPlayerId acked
		s2c RequestPlayerReply
		c2s CreatePlayer
		s2c Ping acked
		c2s Pong
		c2s join_hello 0
		c2s join_hello 0 +resend_copy
		c2s join_hello 0 +resend_copy`)
	s := out.Result.Sessions[0]
	if s.Name != "lotr2" || s.Client.Addr().String() != "10.0.0.2" || s.Server.Addr().String() != "10.0.0.1" || len(s.Flows) != 3 {
		t.Errorf("got %s, client %v, server %v, %d flows", s.Name, s.Client, s.Server, len(s.Flows))
	}
	for _, r := range out.Frames() {
		if want := map[bool]string{true: "lotr2", false: "dplay"}[r.Message == "join_hello"]; r.Session != 1 || r.Protocol != want {
			t.Errorf("%s: session %d, protocol %s", r.Message, r.Session, r.Protocol)
		}
	}
	ids := out.Named("RequestPlayerId")
	if a := ids[0].Ack; a.By != ids[0].Packets[0]+1 || a.RTT != time.Millisecond {
		t.Errorf("got %+v, want the next packet after 1 ms", a)
	}
	if a := out.Named("Pong")[0].Acks; a.Message != "Ping" || a.RTT != time.Millisecond {
		t.Errorf("got %+v, want a Ping after 1 ms", a)
	}
	if r := out.Named("join_hello")[0]; r.Envelope.Copies != 3 {
		t.Errorf("got %d copies", r.Envelope.Copies)
	}
}

// Section 8.14: the answer to a broadcast is a connection to where its sockaddr says.
func TestDiscovery(t *testing.T) {
	m := newMatch(t)
	ask := m.UDP("10.0.0.2:1032", "255.255.255.255:47624")
	ask.Send(dialer, seen(t, "public-enum-sessions"))
	m.enter()
	other := m.TCP("10.0.0.9:1040", "10.0.0.2:2300") // another host answers
	other.Open()
	other.Send(dialer, seen(t, "enum-sessions-reply"))
	again := m.UDP("10.0.0.2:1040", "255.255.255.255:47624")
	again.Send(dialer, seen(t, "public-enum-sessions"))
	out := m.Play(t, known)
	var lines []string
	for _, r := range out.Records {
		if r.Message == "EnumSessions" || r.Message == "EnumSessionsReply" || r.Type == dissect.SessionRecord {
			lines = append(lines, scene.Line(r)+" in "+string('0'+rune(r.Session)))
		}
	}
	want := "session 1 opened: opening in 1|c2s EnumSessions acked in 1|s2c EnumSessionsReply in 1|session 2 opened: syn in 2|" +
		"s2c EnumSessionsReply in 2|c2s EnumSessions unacked +never_acknowledged in 1"
	if got := strings.Join(lines, "|"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if s := out.Result.Sessions[0]; s.Server.Addr().String() != "10.0.0.1" || len(s.Flows) != 4 {
		t.Errorf("got server %v, %d flows", s.Server, len(s.Flows))
	}
}

// Section 8.4: real stacks merge frames and split them anywhere, in the size word too.
func TestSegmentsOfAnySize(t *testing.T) {
	whole := joined(t)
	text := thrice(hostUser, 5, "hello") + tick(hostUser, 6, 10, 1) + thrice(hostUser, 7, "again")
	whole.host.Send(dialer, text)
	want := scene.Lines(whole.since(0, known))
	for n := 1; n <= 110; n += 1 + n/20 {
		m := joined(t)
		m.host.Drip(dialer, n, text)
		if got := scene.Lines(m.since(0, known)); got != want {
			t.Fatalf("%d bytes a segment: got\n%s\nwant\n%s", n, got, want)
		}
	}
}

// Section 8.5: what TCP sends again makes no record, what the game sends again does.
func TestRetransmissionsAndCopies(t *testing.T) {
	m := joined(t)
	before := m.Len()
	first := chat(hostUser, 5, 0, "hello")
	seq := m.host.Next[dialer]
	m.host.Send(dialer, first)
	m.host.SegmentAt(dialer, scene.ACK, seq, first)
	m.host.Send(dialer, chat(hostUser, 5, 1, "hello"), chat(hostUser, 5, 2, "hello"))
	scene.Want(t, m.since(before, known), `
		s2c chat 5
		s2c chat 5 +resend_copy
		s2c chat 5 +resend_copy`)
}

// Sections 8.6 to 8.8.
func TestSlotsAndCopies(t *testing.T) {
	for _, c := range []struct {
		name string
		send []string
		want string
	}{
		{"the first slot is whatever it is", []string{tick(hostUser, 27, 10, 1), tick(hostUser, 28, 20, 1)}, `
			s2c tick_reached 27
			s2c tick_reached 28`},
		{"after 39 comes 1", []string{tick(hostUser, 38, 10, 1), thrice(hostUser, 39, "x"), tick(hostUser, 1, 20, 1)}, `
			s2c tick_reached 38
			s2c chat 39
			s2c chat 39 +resend_copy
			s2c chat 39 +resend_copy
			s2c tick_reached 1`},
		{"slot 0 is legal, and 1 follows", []string{thrice(hostUser, 0, "x"), tick(hostUser, 1, 10, 1)}, `
			s2c chat 0
			s2c chat 0 +resend_copy
			s2c chat 0 +resend_copy
			s2c tick_reached 1`},
		{"slot 0 again is another process", []string{tick(hostUser, 7, 10, 1), thrice(hostUser, 0, "x")}, `
			s2c tick_reached 7
			s2c chat 0 +sequence_restarted
			s2c chat 0 +resend_copy
			s2c chat 0 +resend_copy`},
		{"a gap, and one over the end", []string{tick(hostUser, 3, 10, 1), tick(hostUser, 5, 20, 1), tick(hostUser, 39, 30, 1), tick(hostUser, 3, 40, 1)}, `
			s2c tick_reached 3
			s2c tick_reached 5 +sequence_gap
			s2c tick_reached 39 +sequence_gap
			s2c tick_reached 3 +sequence_gap`},
		{"a slot that no client has", []string{tick(hostUser, 39, 10, 1), tick(hostUser, 40, 20, 1)}, `
			s2c tick_reached 39
			s2c tick_reached 40 +out_of_range`},
		{"a copy that differs", []string{chat(hostUser, 5, 0, "hello"), chat(hostUser, 5, 1, "hullo"), chat(hostUser, 5, 2, "hello")}, `
			s2c chat 5
			s2c chat 5 +conflict
			s2c chat 5 +resend_copy`},
		{"a copy of another opcode", []string{chat(hostUser, 5, 0, "hello"), said(hostUser, game(0x16, 5, 1, "\x01"))}, `
			s2c chat 5
			s2c turn_done 5 +conflict`},
		{"a copy without its first", []string{tick(hostUser, 4, 10, 1), chat(hostUser, 5, 1, "hello"), chat(hostUser, 5, 2, "hello"), tick(hostUser, 6, 20, 1)}, `
			s2c tick_reached 4
			s2c chat 5 +resend_copy
			s2c chat 5 +resend_copy
			s2c tick_reached 6`},
		{"a copy that is missing", []string{chat(hostUser, 5, 0, "hello"), chat(hostUser, 5, 2, "hello"), tick(hostUser, 6, 20, 1)}, `
			s2c chat 5 +copies_missing
			s2c chat 5 +resend_copy
			s2c tick_reached 6`},
		{"a copy of what is sent once", []string{tick(hostUser, 5, 10, 1), said(hostUser, game(0x0a, 5, 1, le16(10)+"\x00\x01"))}, `
			s2c tick_reached 5
			s2c tick_reached 5 +unexpected_copy +resend_copy`},
		{"both marks at once", []string{chat(hostUser, 5, 3, "hello")}, `
			s2c chat 5 +out_of_range +resend_copy`},
		{"one count for each sender", []string{tick(hostUser, 5, 10, 1), tick(hostSystem, 9, 10, 1), tick(hostUser, 6, 20, 1)}, `
			s2c tick_reached 5
			s2c tick_reached 9
			s2c tick_reached 6`},
		{"one slot for two messages", []string{tick(hostUser, 5, 10, 1), tick(hostUser, 5, 20, 1)}, `
			s2c tick_reached 5
			s2c tick_reached 5 +conflict`},
		{"one message twice", []string{tick(hostUser, 5, 10, 1), tick(hostUser, 5, 10, 1)}, `
			s2c tick_reached 5
			s2c tick_reached 5 +retransmission`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := joined(t)
			before := m.Len()
			m.host.Send(dialer, c.send...)
			scene.Want(t, m.since(before, known), c.want)
		})
	}
}

// The texts of notes about slots and copies.
func TestWhatIsMissing(t *testing.T) {
	m := joined(t)
	m.host.Send(dialer, tick(hostUser, 38, 10, 1), tick(hostUser, 3, 20, 1), tick(hostUser, 5, 30, 1), chat(hostUser, 6, 0, "x"), tick(hostUser, 7, 40, 1))
	var got []string
	for _, r := range m.Play(t, known).Frames() {
		for _, n := range r.Notes {
			got = append(got, n.Code+": "+n.Text)
		}
	}
	want := []string{"sequence_gap: slots 39 to 2 not seen", "sequence_gap: slot 4 not seen", "copies_missing: of slot 6: second third send"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// Sections 8.9 to 8.11, and other bytes that no client sends: each is an error or a note on
// its own record, and the next frame is decoded.
func TestBadFrames(t *testing.T) {
	good := game(0x54, 13, 0, le32(0))
	for _, c := range []struct{ name, send, want string }{
		{"a wrong checksum", said(hostUser, good[:2]+"\x07"+good[3:]),
			"s2c set_up_screen_heartbeat 13 +bad_checksum !malformed envelope.checksum@2"},
		{"a length that disagrees with the message", said(hostUser, "\x54\x05"+good[2:]),
			"s2c set_up_screen_heartbeat 13 +length_disagrees +length_unusual !malformed envelope.length@1"},
		{"a length of the wrong opcode", said(hostUser, game(0x54, 13, 0, "\x00\x00\x00\x00\x00")),
			"s2c set_up_screen_heartbeat 13 +trailing_bytes +length_unusual !malformed envelope.length@1 rest=00"},
		{"too short for its opcode", said(hostUser, game(0x54, 13, 0, "\x00\x00")),
			"s2c set_up_screen_heartbeat 13 +length_unusual !malformed set_up_screen_heartbeat.word_0@32 rest=0000"},
		{"an unknown opcode", said(hostUser, game(0x2f, 13, 0, "\x01\x02")),
			"s2c unknown(0x2F) 13 +unknown_opcode rest=0102"},
		{"an opcode beyond the tables", said(hostUser, game(0xfe, 13, 0, "")), "s2c unknown(0xFE) 13 +unknown_opcode"},
		{"no room for a header", said(hostUser, "\x54\x00"), "s2c set_up_screen_heartbeat !malformed envelope.checksum@30 rest=5400"},
		{"no data", said(hostUser, ""), "s2c ? !malformed envelope.opcode@28"},
		{"the host says what joiners say", strings.Replace(seen(t, "op01-first-send-slot0"), le32(joinUser)+le32(0), le32(hostUser)+le32(0), 1),
			"s2c join_hello 0 +unexpected_direction"},
		{"a command that nobody knows", command(0x99, "abc"), "s2c unknown(0x99) +unknown_opcode rest=616263"},
		{"a command without a layout", command(0x03, "abc"), "s2c EnumPlayersReply +unknown_body rest=616263"},
		{"an offset that points outside", command(0x35, le32(0)+le32(1)+le32(0)+le32(77)),
			"s2c IAmNameServer !malformed IAmNameServer.data@44"},
		{"a name outside of the frame", strings.Replace(seen(t, "enum-sessions-reply"), "\x5c\x00\x00\x00L", "\xff\x00\x00\x00L", 1),
			"s2c EnumSessionsReply !malformed EnumSessionsReply.session_name@112 rest=4c6f726473322053657373696f6e3100"},
		{"a name that points far outside", strings.Replace(seen(t, "enum-sessions-reply"), "\x5c\x00\x00\x00L", "\xff\xff\xff\xffL", 1),
			"s2c EnumSessionsReply !malformed EnumSessionsReply.session_name@112 rest=4c6f726473322053657373696f6e3100"},
		{"a name over the description", strings.Replace(seen(t, "enum-sessions-reply"), "\x5c\x00\x00\x00L", "\x44\x00\x00\x00L", 1),
			"s2c EnumSessionsReply +trailing_bytes +fields_overlap"},
		{"a name behind a hole", strings.Replace(seen(t, "enum-sessions-reply"), "\x5c\x00\x00\x00L", "\x60\x00\x00\x00L", 1),
			"s2c EnumSessionsReply +bytes_between"},
		{"a sockaddr that does not end in zeros", seen(t, "request-player-reply-system")[:15] + "\x01" + seen(t, "request-player-reply-system")[16:],
			"s2c RequestPlayerReply +padding_nonzero"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := joined(t)
			before := m.Len()
			m.host.Send(dialer, c.send, tick(hostUser, 14, 10, 1))
			got := m.since(before, known)
			lines := strings.Split(strings.TrimSpace(scene.Lines(got)), "\n")
			if !strings.HasPrefix(lines[0], c.want) || len(lines) != 2 || !strings.HasPrefix(lines[1], "s2c tick_reached 14") {
				t.Errorf("got\n%s\nwant\n%s\ns2c tick_reached 14", strings.Join(lines, "\n"), c.want)
			}
		})
	}
}

// A size that no frame has loses the stream, and one that is a lie loses what it covers;
// the next frame is found.
func TestSizesThatLie(t *testing.T) {
	a, b, c := tick(hostUser, 5, 10, 1), tick(hostUser, 6, 20, 1), tick(hostUser, 7, 30, 1)
	lie := func(size int) string { return sized(size, b[20:]) }
	for _, k := range []struct {
		name, send string
		want       []string // of some lines
		slots      string
	}{
		{"below 28", a + lie(27) + c, []string{"? !malformed envelope.size@0", "event resync"}, "5 7"},
		{"0", a + lie(0) + c, []string{"? !malformed envelope.size@0", "event resync"}, "5 7"},
		{"too small for its message", a + lie(30) + c, []string{"tick_reached !malformed envelope.checksum@30", "event resync"}, "5 7"},
		{"larger than any message of the game", a + lie(1000) + c, []string{"? !malformed envelope.size@0", "event resync"}, "5 7"},
		{"beyond the next frame", a + lie(50) + c, []string{"? !malformed envelope.size@0", "event resync"}, "5 7"},
		{"beyond the end", a + lie(200) + c, []string{"? !malformed envelope.size@0", "event resync"}, "5 7"},
		{"of another token", a + "\x24\x00\x00\xfa" + b[4:] + c, []string{"? !malformed envelope.token@2", "event resync"}, "5 7"},
	} {
		t.Run(k.name, func(t *testing.T) {
			m := joined(t)
			m.host.Send(dialer, k.send)
			out := m.Play(t, known)
			for _, line := range k.want {
				if !strings.Contains(out.String(), line) {
					t.Errorf("got\n%s\nwant %s", out, line)
				}
			}
			var slots []string
			for _, r := range out.Named("tick_reached") {
				if r.Err == nil {
					slots = append(slots, string(rune('0'+r.Envelope.Seq)))
				}
			}
			if got := strings.Join(slots, " "); got != k.slots {
				t.Errorf("got slots %s, want %s\n%s", got, k.slots, out)
			}
		})
	}
}

// Section 8.12: a capture that starts inside of a frame, without any set-up.
func TestJoinedInTheMiddle(t *testing.T) {
	text := thrice(hostUser, 5, "hello") + tick(hostUser, 6, 10, 1) + tick(hostUser, 7, 20, 1) + tick(hostUser, 8, 30, 1)
	for _, cut := range []int{0, 1, 3, 4, 19, 27, 50, 100} {
		m := newMatch(t)
		m.host.Next[dialer] += uint32(cut)
		m.host.Send(dialer, text[cut:])
		m.join.Send(dialer, tick(joinUser, 9, 10, 2))
		out := m.Play(t, known)
		if got := len(out.Named("tick_reached")); got != 4 {
			t.Errorf("cut at %d: got\n%s\nwant 4 ticks", cut, out)
		}
		for _, r := range out.Frames() {
			if r.Protocol != "lotr2" || r.Session != 1 {
				t.Errorf("cut at %d: got %s in session %d", cut, r.Protocol, r.Session)
			}
		}
		if c := out.Named("chat"); cut > 0 && (len(c) != 2 || c[0].Notes[0].Code != "resend_copy") {
			t.Errorf("cut at %d: got\n%s", cut, scene.Lines(c))
		}
		// Player 1 is the host: its ticks say who is the server.
		if last := out.Named("tick_reached")[3]; last.Direction != dissect.ClientToServer {
			t.Errorf("cut at %d: the joiner's tick goes %v", cut, last.Direction)
		}
	}
}

// Section 8.19: the GUID tells the game; without one, several messages that pass its tests.
func TestWhoseGame(t *testing.T) {
	reply := seen(t, "enum-sessions-reply")
	foreign := strings.Replace(reply, "\xc0\x48\x82\x1c", "\xc0\x48\x82\x1d", 1)
	for _, c := range []struct {
		name string
		send []string
		o    dissect.Options
		want string
	}{
		{"named", []string{reply, tick(hostUser, 5, 10, 1)}, known, `
			session 1 opened: syn
			s2c EnumSessionsReply
			s2c tick_reached 5`},
		{"another game, whatever its messages look like", []string{foreign, tick(hostUser, 5, 10, 1), tick(hostUser, 6, 20, 1), tick(hostUser, 7, 30, 1)}, known, `
			session 1 opened: syn
			s2c EnumSessionsReply
			s2c PlayerMessage
			s2c PlayerMessage
			s2c PlayerMessage`},
		{"another game, which the user knows better", []string{foreign, tick(hostUser, 5, 10, 1)},
			dissect.Options{Protocols: known.Protocols, Only: lotr2.Protocol{}}, `
			session 1 opened: syn
			s2c EnumSessionsReply
			s2c tick_reached 5`},
		{"another game, on a port that the user gave", []string{foreign, tick(hostUser, 5, 10, 1)},
			dissect.Options{Protocols: known.Protocols, Assigned: []dissect.Assignment{{Transport: schema.TCP, Port: 2300, Protocol: lotr2.Protocol{}}}}, `
			session 1 opened: syn
			s2c EnumSessionsReply
			s2c tick_reached 5`},
		{"several messages", []string{tick(hostUser, 5, 10, 1), tick(hostUser, 6, 20, 1), tick(hostUser, 7, 30, 1)}, known, `
			session 1 opened: syn
			s2c tick_reached 5
			s2c tick_reached 6
			s2c event game_recognized
			s2c tick_reached 7`},
		{"one message", []string{tick(hostUser, 5, 10, 1)}, known, `
			session 1 opened: syn
			PlayerMessage`},
		{"two messages and no more", []string{tick(hostUser, 5, 10, 1), tick(hostUser, 6, 20, 1)}, known, `
			session 1 opened: syn
			s2c tick_reached 5
			s2c tick_reached 6
			s2c event game_recognized`},
		{"messages that are none of the game's", []string{said(1, "hello world"), said(1, "\x05\x00\x00\x00"), said(1, "")}, known, `
			session 1 opened: syn
			PlayerMessage
			PlayerMessage
			PlayerMessage`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMatch(t)
			m.host.Open()
			for _, s := range c.send {
				m.host.Send(dialer, s)
			}
			out := m.Play(t, c.o)
			scene.Want(t, out.Records, c.want)
			name := "dplay"
			if strings.Contains(c.want, "tick_reached") {
				name = "lotr2"
			}
			if s := out.Result.Sessions[0]; s.Name != name {
				t.Errorf("got a session of %s, want %s", s.Name, name)
			}
		})
	}
}

// Section 8.15: both peers ping; a pong repeats the tick of the ping.
func TestPings(t *testing.T) {
	m := joined(t)
	before := m.Len()
	m.pings.Send(listener, command(0x16, le32(hostSystem)+le32(5000)))
	m.pings.Send(dialer, command(0x16, le32(joinSystem)+le32(7000)))
	m.pings.Send(listener, command(0x16, le32(hostSystem)+le32(5001)))
	m.pings.Send(dialer, command(0x17, le32(joinSystem)+le32(5001)))
	m.pings.Send(listener, command(0x17, le32(hostSystem)+le32(7000)))
	m.pings.Send(dialer, command(0x17, le32(joinSystem)+le32(5001)))
	got := m.since(before, known)
	scene.Want(t, got, `
		s2c Ping unacked +never_acknowledged
		c2s Ping acked
		s2c Ping acked
		c2s Pong
		s2c Pong
		c2s Pong`)
	if by := got[1].Ack.By; by != before+5 {
		t.Errorf("the joiner's ping is answered by packet %d, want %d", by, before+5)
	}
	if v := got[5].Acks.Verdict; v != dissect.AcksAgain {
		t.Errorf("the second answer is %v", v)
	}
}

// A player message may come in a datagram, too; and a datagram holds one frame.
func TestDatagrams(t *testing.T) {
	m := joined(t)
	before := m.Len()
	m.pings.Send(listener, tick(hostUser, 5, 10, 1))
	m.pings.Send(listener, command(0x16, le32(hostSystem)+le32(1))+"x")
	m.pings.Send(listener, sized(60, "play"+le16(0x16)+le16(14)+le32(hostSystem)+le32(1)))
	m.pings.Send(listener, "\x24\x00\xb0\xfa")
	m.pings.Send(listener, "no frame, though on the port of one")
	m.pings.Send(listener, "")
	lines := strings.Split(strings.TrimSpace(scene.Lines(m.since(before, known))), "\n")
	want := []string{
		"s2c tick_reached 5",
		"s2c Ping +trailing_bytes !malformed envelope.size@0 rest=78",
		"s2c Ping !malformed envelope.size@0",
		"s2c ? !malformed envelope@0 rest=2400b0fa",
		"s2c ? !malformed envelope.token@2 rest=6e6f206672616d652c2074686f756768",
		"s2c ? !malformed envelope@0",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

// The session ends with its last connection, once; another one between the same hosts is
// another session, also for its datagrams.
func TestSessionsOfTwoHosts(t *testing.T) {
	m := joined(t)
	m.pings.Send(listener, command(0x16, le32(hostSystem)+le32(1)))
	m.join.Send(dialer, seen(t, "public-delete-player"))
	m.host.Segment(dialer, scene.RST, "")
	m.join.Segment(listener, scene.RST, "")
	m.Wait(time.Second)
	m.host = m.TCP("10.0.0.1:1041", "10.0.0.2:2300")
	m.join = m.TCP("10.0.0.2:1036", "10.0.0.1:2300")
	m.enter()
	m.pings.Send(listener, command(0x16, le32(hostSystem)+le32(2)))
	out := m.Play(t, known)
	var got []string
	for _, r := range out.Records {
		if r.Type == dissect.SessionRecord {
			got = append(got, scene.Line(r))
		}
		if r.Message == "Ping" {
			got = append(got, "Ping in "+string('0'+rune(r.Session)))
		}
	}
	want := []string{"session 1 opened: syn", "Ping in 1", "session 1 closed: reset by server", "session 2 opened: syn", "Ping in 2"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q\n%s", got, want, out)
	}
}

// Who looks for a session after the last one has ended, from the same socket, begins
// another one with that.
func TestLookingAgain(t *testing.T) {
	m := newMatch(t)
	ask := m.UDP("10.0.0.2:1032", "255.255.255.255:47624")
	ask.Send(dialer, seen(t, "public-enum-sessions"))
	m.enter()
	m.host.Segment(dialer, scene.RST, "")
	m.join.Segment(listener, scene.RST, "")
	ask.Send(dialer, seen(t, "public-enum-sessions"))
	m.host = m.TCP("10.0.0.1:1041", "10.0.0.2:2300")
	m.join = m.TCP("10.0.0.2:1036", "10.0.0.1:2300")
	m.enter()
	out := m.Play(t, known)
	asked := out.Named("EnumSessions")
	if len(out.Result.Sessions) != 2 || asked[1].Session != 2 || asked[1].Ack.State != dissect.AckAcked || out.Named("CreatePlayer")[1].Session != 2 {
		t.Errorf("got %d sessions\n%s", len(out.Result.Sessions), out)
	}
}

// Another instance of the game on connections that go on is another session.
func TestAnotherInstance(t *testing.T) {
	m := joined(t)
	m.host.Send(dialer, strings.Replace(seen(t, "enum-sessions-reply"), "\x83\xd9\xf3\xf6", "\x84\xd9\xf3\xf6", 1))
	m.host.Send(dialer, tick(hostUser, 5, 10, 1))
	out := m.Play(t, known)
	if r := out.Named("tick_reached")[0]; r.Session != 2 || len(out.Result.Sessions) != 2 {
		t.Errorf("got session %d of %d\n%s", r.Session, len(out.Result.Sessions), out)
	}
}

// With three players each pair has its own connections. A directed message makes a gap in
// the count that the others see: a note, no error.
func TestThreePlayers(t *testing.T) {
	m := joined(t)
	host2 := m.TCP("10.0.0.1:1050", "10.0.0.3:2300")
	host2.Open()
	host2.Send(dialer, seen(t, "enum-sessions-reply"))
	m.host.Send(dialer, command(0x2e, seen(t, "create-player")[28:138]))
	m.join.Send(dialer, command(0x2f, le32(joinUser)))
	between := m.TCP("10.0.0.3:1060", "10.0.0.2:2300")
	between.Open()
	between.Send(dialer, tick(0x384c6, 5, 10, 3), tick(0x384c6, 6, 20, 3), tick(0x384c6, 7, 30, 3))
	pings := m.UDP("10.0.0.2:2350", "10.0.0.3:2350")
	pings.Send(dialer, command(0x16, le32(joinSystem)+le32(1)))
	between.Send(dialer, tick(0x384c6, 8, 40, 3))
	m.host.Send(dialer, tick(hostUser, 5, 10, 1))
	host2.Send(dialer, tick(hostUser, 5, 10, 1), tick(hostUser, 6, 20, 1))
	m.host.Send(dialer, tick(hostUser, 7, 30, 1))
	out := m.Play(t, known)
	sessions := map[string]int{}
	for _, r := range out.Frames() {
		if r.Err != nil {
			t.Errorf("%s", scene.Line(r))
		}
		sessions[r.Src.Addr().String()+" to "+r.Dst.Addr().String()] = r.Session
	}
	if sessions["10.0.0.1 to 10.0.0.2"] != 1 || sessions["10.0.0.1 to 10.0.0.3"] != 2 || sessions["10.0.0.3 to 10.0.0.2"] != 3 {
		t.Errorf("got %v", sessions)
	}
	if r := out.Named("AddForward")[0]; r.Ack.State != dissect.AckAcked {
		t.Errorf("got %s", scene.Line(r))
	}
	ticks := out.Named("tick_reached")
	if r := ticks[len(ticks)-1]; len(r.Notes) != 1 || r.Notes[0].Code != "sequence_gap" || r.Err != nil {
		t.Errorf("got %s", scene.Line(r))
	}
	for _, r := range ticks {
		// Nobody of the two joiners is the host of the session.
		if unknown := r.Direction == dissect.UnknownDirection; unknown != (r.Session == 3) {
			t.Errorf("session %d: %v", r.Session, r.Direction)
		}
	}
}

// A state that differs between the peers is a loss of synchronisation.
func TestPeersOutOfStep(t *testing.T) {
	m := joined(t)
	before := m.Len()
	report := func(from, slot, player int, state string) string {
		return said(from, game(0x08, slot, 0, le16(2490)+"\x00"+string([]byte{byte(player)})+le16(57)+state))
	}
	m.join.Send(dialer, report(joinUser, 5, 2, "0123456789"))
	m.host.Send(dialer, report(hostUser, 8, 1, "0123456789"), report(hostUser, 9, 1, "0123456780"))
	scene.Want(t, m.since(before, known), `
		c2s turn_end_state_report 5
		s2c turn_end_state_report 8 +copies_missing
		s2c turn_end_state_report 9 +out_of_step`)
}

// What is not held is shown at once: then nothing counts the copies, and each is shown.
func TestWithoutHolding(t *testing.T) {
	m := joined(t)
	before := m.Len()
	m.host.Send(dialer, thrice(hostUser, 5, "x"))
	m.host.Send(dialer, tick(hostUser, 6, 10, 1))
	got := m.since(before, dissect.Options{Protocols: known.Protocols})
	scene.Want(t, got, `
		s2c chat 5
		s2c chat 5 +resend_copy
		s2c chat 5 +resend_copy
		s2c tick_reached 6`)
	if got[0].Envelope.Copies != 1 || got[1].Envelope.First != 0 {
		t.Errorf("got %d copies, first in packet %d", got[0].Envelope.Copies, got[1].Envelope.First)
	}
}

// Of frames that the capture cuts, what is there is decoded.
func TestSnapLength(t *testing.T) {
	m := joined(t)
	m.Snap = 54 + 60
	before := m.Len()
	m.host.Send(dialer, chat(hostUser, 5, 0, "hello"))
	m.host.Send(dialer, tick(hostUser, 6, 10, 1))
	lines := strings.Split(strings.TrimSpace(scene.Lines(m.since(before, known))), "\n")
	if !strings.HasPrefix(lines[0], "s2c chat 5 +not_captured") || !strings.Contains(lines[0], "!truncated chat.text") || !strings.HasPrefix(lines[1], "s2c tick_reached 6") {
		t.Errorf("got\n%s", strings.Join(lines, "\n"))
	}
}

// A capture may keep no more of a frame than its size; that tells where the next begins.
func TestSnapLengthWithinTheEnvelope(t *testing.T) {
	m := joined(t)
	m.Snap = 54 + 10
	before := m.Len()
	m.host.Send(dialer, chat(hostUser, 5, 0, "hello"))
	m.host.Send(dialer, seen(t, "super-enum-players-reply"))
	m.Snap = 0
	m.host.Send(dialer, tick(hostUser, 6, 10, 1))
	got := m.since(before, known)
	scene.Want(t, got, `
		s2c ? +not_captured !truncated envelope@0 rest=6500b0fa020008fc0000
		s2c ? +not_captured !truncated envelope@0 rest=4301b0fa020008fc0000
		s2c tick_reached 6`)
	if got[0].Size != 101 || got[1].Size != 323 {
		t.Errorf("got sizes %d and %d", got[0].Size, got[1].Size)
	}
}

// Opcodes, lengths and senders as in section 7 of the facts.
func TestOpcodes(t *testing.T) {
	p, err := schema.Builtin("lotr2")
	if err != nil {
		t.Fatal(err)
	}
	lengths := map[uint64]int{
		0x01: 44, 0x02: 57, 0x03: 151, 0x04: 8, 0x05: 40, 0x06: 69, 0x08: 16, 0x09: 52, 0x0a: 4, 0x0b: 4, 0x0c: 16, 0x0e: 51, 0x14: 4, 0x15: 4,
		0x16: 1, 0x1e: 5, 0x23: 2, 0x28: 16, 0x43: 25, 0x49: 222, 0x4c: 12, 0x4d: 7, 0x52: 34, 0x54: 4, 0x55: 0, 0x56: 121, 0x57: 10,
	}
	for op, length := range lengths {
		k := p.Packet(op, schema.AnySender, schema.TCP)
		if k == nil || k.Of(schema.AnySender)[0].Bytes() != length {
			t.Errorf("0x%02X: got %v, want a length of %d", op, k, length)
		}
	}
	if len(p.Packets) != len(lengths) {
		t.Errorf("got %d packets, want %d", len(p.Packets), len(lengths))
	}
	if i := slices.IndexFunc(p.Groups, func(g schema.Group) bool { return g.Name == "SentOnce" }); !slices.Equal(p.Groups[i].Opcodes, []uint64{0x0a, 0x0e, 0x23, 0x43, 0x54}) {
		t.Errorf("got %v", p.Groups)
	}
}

// The tables name the players, with the packets that did.
func TestTables(t *testing.T) {
	m := joined(t)
	m.join.Send(dialer, seen(t, "op01-first-send-slot0"))
	tables := m.Play(t, known).Result.Sessions[0].Tables()
	var got []string
	for _, l := range tables {
		for _, k := range l.Table.Keys() {
			e := l.Table.Get(k)
			got = append(got, l.Table.Decl.Name+" "+strings.Join(e.Texts, " ")+" "+e.Origin.String())
		}
	}
	want := []string{
		"players 3 joiner user 0x0384c9 Player2     learned", "players 2 joiner system 0x0384c9 - learned",
		"players 1 host user 0x0384cb Nobleman learned", "players 0 host system 0x0384cb - learned", "id_key 0x0284cb learned",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if e := tables[0].Table.Get(joinSystem); e.Packet != 9 || tables[0].Table.Decl.Key != "player_id" {
		t.Errorf("the joiner's system player: packet %d, want 9", e.Packet)
	}
}

// Many who look for a session at the same time, and none who answers, are told apart.
func TestManySeekers(t *testing.T) {
	s, question := &scene.Scene{}, seen(t, "public-enum-sessions")
	for i := range 3000 {
		u := s.UDP("10.1."+strconv.Itoa(i/200)+"."+strconv.Itoa(i%200+1)+":1032", "255.255.255.255:47624")
		u.Send(dialer, question)
	}
	if out := s.Play(t, known); len(out.Result.Sessions) != 3000 {
		t.Errorf("got %d sessions, want 3000", len(out.Result.Sessions))
	}
}
