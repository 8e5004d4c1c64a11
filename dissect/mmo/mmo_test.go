package mmo_test

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"opscope/dissect"
	"opscope/dissect/mmo"
	"opscope/dissect/scene"
	"opscope/schema"
	"opscope/schema/wire"
)

// Frames put together by hand, from the facts.
const (
	fromC = scene.Client
	fromS = scene.Server

	token    = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMDAxIn0.c3ludGhldGlj"
	udpToken = "3f9c0a7e5d1b4c28"
)

var known = dissect.Options{Protocols: []dissect.Protocol{mmo.Protocol{}}, Hold: time.Second}

func le16(v int) string { return string(binary.LittleEndian.AppendUint16(nil, uint16(v))) }
func le32(v int) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(v))) }
func le64(v int) string { return string(binary.LittleEndian.AppendUint64(nil, uint64(v))) }
func f32(v float32) string {
	return string(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
}

// frame is a header and a body.
func frame(id int, body ...string) string {
	b := strings.Join(body, "")
	return le16(4+len(b)) + le16(id) + b
}

// varint and text are fields of Protocol Buffers.
func varint(number, v int) string {
	return string(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(number)<<3), uint64(v)))
}

func text(number int, s string) string {
	return string(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(number)<<3|2), uint64(len(s)))) + s
}

func enter(character int) string { return frame(0x0201, text(1, token), varint(2, character)) }

func entered(character int, token string, port int) string {
	return frame(0x0202, varint(1, 1), varint(3, 77), varint(4, character), text(5, token), varint(6, port))
}

func hello(token string) string { return frame(0x0204, text(1, token)) }

func move(seq int) string { return frame(0x0211, varint(1, seq)) }

// batch is a MoveBatchNotify of characters and their last processed input.
func batch(entries ...int) string {
	b := le16(len(entries)/2) + le16(0) + le64(1750000000123)
	for i := 0; i+1 < len(entries); i += 2 {
		b += le64(entries[i]) + le32(entries[i+1]) + strings.Repeat(f32(1.5), 7)
	}
	return frame(0x0213, b)
}

const (
	attackBody = "\x08\x07\x10\x02\x18\xfb\xb8\x83\xa1\xf7\x32"         // 7, step 2
	ackBody    = "\x08\x01\x18\x07\x20\x02\x28\x9a\xb9\x83\xa1\xf7\x32" // success, 7, step 2
)

// game is a session that has begun, on ports that nobody knows.
type game struct {
	scene.Scene
	tcp *scene.Connection
	udp *scene.Datagrams
}

func begin() *game {
	g := &game{}
	g.tcp = g.TCP("10.0.0.2:50111", "10.0.0.1:41000")
	g.udp = g.UDP("10.0.0.2:6000", "10.0.0.1:7778")
	g.tcp.Open()
	return g
}

// onUDP is one whose client has entered, and has bound its endpoint.
func onUDP() *game {
	g := begin()
	g.tcp.Send(fromC, enter(1001))
	g.tcp.Send(fromS, entered(1001, udpToken, 7778))
	g.udp.Send(fromC, hello(udpToken))
	g.udp.Send(fromS, frame(0x0205, varint(1, 1)))
	return g
}

func (g *game) frames(t *testing.T, want string) *scene.Output {
	t.Helper()
	out := g.Play(t, known)
	scene.Want(t, out.Frames(), want)
	return out
}

func TestASessionIsFoundByWhatIsSaid(t *testing.T) {
	g := onUDP()
	g.udp.Send(fromC, move(1))
	g.udp.Send(fromS, batch(1000, 9, 1001, 1))
	g.tcp.Send(fromC, frame(0x0231, attackBody))
	g.tcp.Send(fromS, frame(0x0232, ackBody), frame(4))
	g.tcp.Send(fromC, frame(5))
	out := g.frames(t, `
		c2s EnterGameReq acked
		s2c EnterGameRes
		c2s UdpHelloReq acked +unknown_body
		s2c UdpHelloRes +unknown_body
		c2s MoveReq acked
		s2c MoveBatchNotify
		c2s AttackReq acked
		s2c AttackAck
		s2c Ping acked
		c2s Pong
	`)
	if n := len(out.Result.Sessions); n != 1 {
		t.Errorf("got %d sessions, want TCP and UDP in one", n)
	}
	for _, r := range out.Frames() {
		if r.Ack.State == dissect.AckAcked && r.Ack.RTT != time.Millisecond {
			t.Errorf("%s: answered after %v, want 1ms", scene.Line(r), r.Ack.RTT)
		}
	}
	ack := out.Named("AttackAck")[0].Acks
	if ack.Message != "AttackReq" || ack.Seq != 7 || ack.Packet != 10 || ack.RTT != time.Millisecond {
		t.Errorf("AttackAck answers %+v", ack)
	}
}

// Item 1 and 3: the size counts the header; frames lie in segments as they like.
func TestFramesAndSegments(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 7, 1000} {
		g := begin()
		g.tcp.Drip(fromC, n, enter(1001), frame(0x0231, attackBody), frame(5), frame(1, "x"))
		g.tcp.Send(fromS, entered(1001, udpToken, 7778), frame(0x0232, ackBody), frame(4))
		g.frames(t, `
			c2s EnterGameReq acked
			c2s AttackReq acked
			c2s Pong +acked_unseen
			c2s EchoReq
			s2c EnterGameRes
			s2c AttackAck
			s2c Ping unacked +never_acknowledged
		`)
	}
}

// What a stream is does not depend on its segments either, where its first frames alone tell.
func TestFoundInSmallSegments(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 7, 1000} {
		g := begin()
		g.tcp.Drip(fromC, n, frame(1, strings.Repeat("x", 40)), frame(0x0231, attackBody), frame(5), frame(0x0231, attackBody))
		g.frames(t, `
			c2s EchoReq
			c2s AttackReq unacked +never_acknowledged
			c2s Pong +acked_unseen
			c2s AttackReq unacked +never_acknowledged
		`)
	}
}

// Item 2: after a size that no frame has, nothing in that direction is believed, and the
// other one goes on.
func TestABadSizeEndsADirection(t *testing.T) {
	for _, c := range []struct {
		name, header, code string
	}{
		{"below the header", "\x03\x00\x01\x00", "frame_size_too_small"},
		{"zero", "\x00\x00\x01\x00", "frame_size_too_small"},
		{"above the limit", "\x01\x40\x51\x02", "frame_size_too_large"},
	} {
		g := begin()
		g.tcp.Send(fromC, enter(1001))
		g.tcp.Send(fromS, entered(1001, udpToken, 7778))
		g.tcp.Send(fromC, frame(1, "ab"), c.header+"junk")
		for range 5 {
			g.tcp.Send(fromC, frame(0x0231, attackBody))
			g.tcp.Send(fromS, frame(2, "cd"))
		}
		out := g.Play(t, known)
		broken, echoes, attacks := 0, 0, 0
		for _, r := range out.Frames() {
			for _, n := range r.Notes {
				if n.Code == c.code {
					broken++
					if r.Err == nil || r.Offset != 62+6 || string(r.Rest) != "junk" || !strings.Contains(n.Text, "offset 68") {
						t.Errorf("%s: error %v at offset %d, rest %q, note %q", c.name, r.Err, r.Offset, r.Rest, n.Text)
					}
				}
			}
			switch r.Message {
			case "EchoRes":
				echoes++
			case "AttackReq":
				attacks++
			}
		}
		if broken != 1 || echoes != 5 || attacks != 0 {
			t.Errorf("%s: reported %d times, %d frames of the other direction, %d of the lost one", c.name, broken, echoes, attacks)
		}
		if got, want := out.Result.Summary.UndecodedBytes, int64(4+5*len(frame(0x0231, attackBody))); got != want {
			t.Errorf("%s: %d bytes not decoded, want %d", c.name, got, want)
		}
	}
}

// Item 4: what is joined in its middle is believed only at a row of frames.
func TestJoinedInsideAFrame(t *testing.T) {
	g := &game{}
	g.tcp = g.TCP("10.0.0.2:50111", "10.0.0.1:41000")
	middle := frame(1, strings.Repeat("\x08\x00\x31\x02", 5))[9:] // looks like a header now and then
	g.tcp.Send(fromC, middle, frame(0x0231, attackBody), frame(0x0231, attackBody))
	g.tcp.Send(fromC, frame(0x0254, text(1, "\xde\xad\xbe\xef"), varint(2, 42)), frame(5), frame(0x0231, attackBody))
	g.tcp.Send(fromS, frame(0x0232, ackBody))
	out := g.Play(t, known)
	if n := len(out.Named("AttackReq")); n != 3 {
		t.Errorf("%d attacks, want 3:\n%s", n, out)
	}
	for _, r := range out.Frames() {
		if r.Direction == dissect.UnknownDirection || r.Err != nil {
			t.Errorf("%s", scene.Line(r))
		}
	}
}

// Item 12: without a SYN the ids say who is who, whatever the ports say.
func TestIdsTellTheRoles(t *testing.T) {
	g := &game{}
	g.tcp = g.TCP("10.0.0.1:41000", "10.0.0.2:50111")
	g.tcp.Send(fromC, frame(0x0232, ackBody), frame(0x0203, varint(1, 1)), frame(0x0232, ackBody))
	g.tcp.Send(fromS, frame(0x0231, attackBody))
	forced := known
	forced.Assigned = []dissect.Assignment{{Transport: schema.TCP, Port: 50111, Protocol: mmo.Protocol{}}}
	for _, o := range []dissect.Options{known, forced} {
		out := g.Play(t, o)
		for _, r := range out.Named("AttackAck") {
			if r.Direction != dissect.ServerToClient {
				t.Errorf("%s, want it from the server", scene.Line(r))
			}
		}
		if len(out.Named("AttackReq")) != 1 || len(out.Named("AttackAck")) != 2 {
			t.Errorf("got\n%s", out)
		}
	}
}

// Item 5: a frame that is cut shows what is there.
func TestCutFrames(t *testing.T) {
	g := begin()
	g.tcp.Send(fromC, enter(1001), frame(0x0231, attackBody)[:9])
	out := g.Play(t, known)
	scene.Want(t, out.Frames(), `
		c2s EnterGameReq unacked +never_acknowledged
		c2s AttackReq +frame_truncated !incomplete AttackReq.client_time_ms@9 rest=18
	`)
	if r := out.Named("AttackReq"); len(r) == 1 {
		if v, _ := r[0].Body.Value("attack_sequence"); v != 7 || r[0].Size != 15 {
			t.Errorf("sequence %d, size %d", v, r[0].Size)
		}
	}
	g = begin()
	g.tcp.Send(fromC, enter(1001))
	g.Snap = 14 + 20 + 20 + 9
	g.tcp.Send(fromC, frame(0x0231, attackBody))
	g.Snap = 0
	g.tcp.Send(fromC, frame(5))
	g.frames(t, `
		c2s EnterGameReq unacked +never_acknowledged
		c2s AttackReq +frame_truncated !truncated AttackReq.client_time_ms@9 rest=18
		c2s Pong +acked_unseen
	`)
}

// Item 6: a datagram is a frame; what else it holds is told.
func TestDatagrams(t *testing.T) {
	g := onUDP()
	first := g.Len()
	g.udp.Send(fromC, move(1), move(2))
	g.udp.Send(fromC, move(3), "\x01\x02\x03")
	g.udp.Send(fromC, le16(100)+le16(0x0211)+varint(1, 4))
	g.udp.Send(fromC, le16(100)+le16(0x0211)+varint(1, 4)+"\x15\x00")
	g.udp.Send(fromC, "\x03\x00\x11\x02")
	g.udp.Send(fromC, "\x04")
	g.udp.Send(fromC, move(5))
	g.udp.Send(fromS, batch(1001, 5))
	var later []*dissect.Record
	for _, r := range g.Play(t, known).Frames() {
		if r.Packets[0] > first {
			later = append(later, r)
		}
	}
	scene.Want(t, later, `
		c2s MoveReq acked
		c2s MoveReq acked +several_frames
		c2s MoveReq acked +trailing_bytes rest=010203
		c2s MoveReq +frame_truncated !malformed MoveReq@6
		c2s MoveReq +frame_truncated !malformed MoveReq.move_x@7 rest=1500
		c2s MoveReq +frame_size_too_small !malformed envelope.length@0
		c2s empty +frame_truncated !malformed envelope@0 rest=04
		c2s MoveReq acked +sequence_gap
		s2c MoveBatchNotify
	`)
}

// Item 7: the order is an option.
func TestTheOtherOrder(t *testing.T) {
	s, err := schema.Builtin("mmo")
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.WithOrder(wire.Big); err != nil {
		t.Fatal(err)
	}
	g := begin()
	body := text(1, token) + varint(2, 1001)
	g.tcp.Send(fromC, scene.BE16(4+len(body))+"\x02\x01"+body)
	g.tcp.Send(fromS, "\x00\x08\x02\x32\x08\x01\x18\x07")
	if out := g.Play(t, known); len(out.Frames()) > 0 {
		t.Errorf("read as little-endian it is\n%s", out)
	}
	big := known
	big.Protocols = []dissect.Protocol{mmo.With(s)}
	scene.Want(t, g.Play(t, big).Frames(), `
		c2s EnterGameReq unacked +never_acknowledged
		s2c AttackAck +acked_unseen
	`)
}

// Items 9 and 10.
func TestOddIds(t *testing.T) {
	g := onUDP()
	first := g.Len()
	g.tcp.Send(fromC, frame(0x0299, varint(1, 150)))
	g.tcp.Send(fromC, entered(7, "another one", 9999))
	g.udp.Send(fromC, enter(1001))
	g.tcp.Send(fromS, batch(1000, 1))
	g.udp.Send(fromS, frame(0x0212, varint(1, 1000)))
	g.tcp.Send(fromS, frame(0x0212, varint(1, 1000)))
	g.tcp.Send(fromS, frame(0x0245, varint(1, 1)))
	g.tcp.Send(fromC, frame(0x0101, text(1, "alice"), text(2, "not-a-real-password")))
	g.tcp.Send(fromS, frame(3, varint(1, 0x0101), varint(2, 99)))
	out := g.Play(t, known)
	var later []*dissect.Record
	for _, r := range out.Frames() {
		if r.Packets[0] > first {
			later = append(later, r)
		}
	}
	scene.Want(t, later, `
		c2s unknown(0x299) +unknown_packet_id
		c2s EnterGameRes +unexpected_direction
		c2s EnterGameReq unacked +unexpected_transport +never_acknowledged
		s2c MoveBatchNotify +unexpected_transport
		s2c MoveNotify
		s2c MoveNotify
		s2c CombatDebugNotify +unknown_body +development_packet
		c2s LoginReq +unknown_body +deprecated_packet
		s2c ErrorRes
	`)
	last := later[len(later)-1]
	if last.Acks.Message != "LoginReq" || last.Acks.RTT != time.Millisecond {
		t.Errorf("the error is about %+v", last.Acks)
	}
	for _, n := range later[7].Notes {
		if n.Code == "deprecated_packet" && (!strings.Contains(n.Text, "HTTPS auth server") || !strings.Contains(n.Text, "0x0201")) {
			t.Errorf("it says %q", n.Text)
		}
	}
}

// Items 24 to 27.
func TestBatches(t *testing.T) {
	g := onUDP()
	first := g.Len()
	many := make([]int, 60)
	lie := []byte(batch(1000, 1, 1001, 2))
	lie[4], lie[5] = 0xff, 0xff
	g.udp.Send(fromS, string(lie))
	g.udp.Send(fromS, batch())
	g.udp.Send(fromS, batch(many...))
	g.udp.Send(fromS, frame(0x0213, "\x01\x00\x00\x00\x00"))
	var later []*dissect.Record
	for _, r := range g.Play(t, known).Frames() {
		if r.Packets[0] > first {
			later = append(later, r)
		}
	}
	scene.Want(t, later, `
		s2c MoveBatchNotify +move_batch_count_mismatch +batch_too_large
		s2c MoveBatchNotify
		s2c MoveBatchNotify +datagram_too_large +batch_too_large
		s2c MoveBatchNotify +move_batch_count_mismatch !malformed MoveBatchNotify.server_time_ms@8 rest=00
	`)
	entries := later[0].Body.Field("entries")
	if n := later[0].Body.Nodes[entries].Size; n != 2*10 {
		t.Errorf("%d nodes below the entries, want the two whole entries of 10", n)
	}
}

// Section 6: several clients behind one address, and UDP from ports that say nothing.
func TestTokensFindTheSession(t *testing.T) {
	for _, late := range []bool{false, true} {
		g := &game{}
		server := "10.0.0.1:41000"
		a, b := g.TCP("10.0.0.9:50001", server), g.TCP("10.0.0.9:50002", server)
		ua, ub := g.UDP("10.0.0.9:6001", "10.0.0.1:7778"), g.UDP("10.0.0.9:6002", "10.0.0.1:7778")
		a.Open()
		b.Open()
		a.Send(fromC, enter(1))
		b.Send(fromC, enter(2))
		if late { // UDP overtakes the answer that it is due to
			ub.Send(fromC, hello("token of b"))
			ub.Send(fromC, move(1))
		}
		a.Send(fromS, entered(1, "token of a", 7778))
		b.Send(fromS, entered(2, "token of b", 7778))
		ub.Send(fromC, hello("token of b"))
		ua.Send(fromC, hello("token of a"))
		ub.Send(fromC, move(1))
		ua.Send(fromC, move(1))
		out := g.Play(t, known)
		if n := len(out.Result.Sessions); n != 2 {
			t.Errorf("%d sessions, want 2:\n%s", n, out)
		}
		for _, r := range out.Frames() {
			want := 1
			if port := r.Src.Port(); port == 50002 || port == 6002 || r.Dst.Port() == 50002 {
				want = 2
			}
			if r.Session != want {
				t.Errorf("%s from %v in session %d, want %d", scene.Line(r), r.Src, r.Session, want)
			}
		}
	}
}

// A token of another session, which began before the capture, binds nobody else's.
func TestAForeignToken(t *testing.T) {
	g := begin()
	g.tcp.Send(fromC, enter(1001))
	g.tcp.Send(fromS, entered(1001, udpToken, 7778))
	other := g.UDP("10.0.0.2:6009", "10.0.0.1:7778")
	other.Send(fromC, hello("somebody else's"))
	g.udp.Send(fromC, hello(udpToken))
	out := g.Play(t, known)
	for _, r := range out.Named("UdpHelloReq") {
		if want := map[uint16]int{6009: 2, 6000: 1}[r.Src.Port()]; r.Session != want {
			t.Errorf("from %v in session %d, want %d", r.Src, r.Session, want)
		}
	}
}

// A foreign stream is not taken for the game.
func TestForeignTraffic(t *testing.T) {
	for name, data := range map[string]string{
		"http":           "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n" + strings.Repeat("x", 3000),
		"tls":            "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x12\x34\x56", 200),
		"zeros":          strings.Repeat("\x00", 4000),
		"small numbers":  strings.Repeat("\x04\x00\x05\x00", 500),
		"a related game": strings.Repeat("\x08\x00\xe8\x03\x08\x01\x10\x02", 100),
	} {
		g := begin()
		g.tcp.Send(fromC, data)
		g.udp.Send(fromC, data[:100])
		if out := g.Play(t, known); len(out.Records) > 0 {
			t.Errorf("%s: got\n%s", name, out)
		}
	}
}

func TestAnswers(t *testing.T) {
	g := onUDP()
	first := g.Len()
	id := text(1, "\x00\x01\x02\x03")
	g.tcp.Send(fromC, frame(0x0252, id, varint(2, 41)), frame(0x0254, text(1, "\xff"), varint(2, 42)))
	g.Wait(20 * time.Millisecond)
	g.tcp.Send(fromS, frame(0x0253, varint(1, 1), text(3, "\xff")), frame(0x0253, text(3, "\x00\x01\x02\x03")))
	g.tcp.Send(fromS, frame(0x0253, text(3, "nobody's")))
	g.udp.Send(fromC, move(2))
	g.udp.Send(fromC, move(3))
	g.udp.Send(fromC, move(4))
	g.Wait(10 * time.Millisecond)
	g.udp.Send(fromS, batch(1000, 4, 1001, 3))
	g.tcp.Send(fromS, frame(3, varint(1, 0x0211), varint(2, 6)))
	g.tcp.Send(fromS, frame(4, "\x08\x01"), frame(4, "\x08\x02"))
	g.tcp.Send(fromC, frame(5, "\x08\x01"), frame(5, "\x08\x02"))
	var later []*dissect.Record
	for _, r := range g.Play(t, known).Frames() {
		if r.Packets[0] > first {
			later = append(later, r)
		}
	}
	scene.Want(t, later, `
		c2s InventoryMoveReq acked
		c2s InventoryUseReq acked
		s2c InventoryOperationResult
		s2c InventoryOperationResult
		s2c InventoryOperationResult +acked_unseen
		c2s MoveReq acked
		c2s MoveReq acked
		c2s MoveReq acked
		s2c MoveBatchNotify
		s2c ErrorRes
		s2c Ping acked +unknown_body
		s2c Ping acked +unknown_body
		c2s Pong +unknown_body
		c2s Pong +unknown_body
	`)
	for i, want := range map[int]dissect.Acks{
		2:  {Message: "InventoryUseReq", Packet: first + 1, Seq: -1, RTT: 21 * time.Millisecond},
		3:  {Message: "InventoryMoveReq", Packet: first + 1, Seq: -1, RTT: 21 * time.Millisecond},
		8:  {Message: "MoveReq", Packet: first + 5, Seq: 3, RTT: 12 * time.Millisecond},
		9:  {Message: "MoveReq", Packet: first + 6, Seq: -1, RTT: 12 * time.Millisecond},
		12: {Message: "Ping", Packet: first + 9, Seq: -1, RTT: time.Millisecond},
	} {
		got := later[i].Acks
		got.N = 0
		if got != want {
			t.Errorf("%s answers %+v, want %+v", scene.Line(later[i]), got, want)
		}
	}
	if rtt := later[5].Ack.RTT; rtt != 13*time.Millisecond {
		t.Errorf("input 2 took %v, want 13ms", rtt)
	}
}

// A request that is sent again before its answer has no round trip that one could know.
func TestRepeatedHello(t *testing.T) {
	g := begin()
	g.tcp.Send(fromC, enter(1001))
	g.tcp.Send(fromS, entered(1001, udpToken, 7778))
	g.udp.Send(fromC, hello(udpToken))
	g.udp.Send(fromC, hello(udpToken))
	g.udp.Send(fromS, frame(0x0205, varint(1, 1)))
	g.udp.Send(fromS, frame(0x0205, varint(1, 1)))
	out := g.Play(t, known)
	for _, r := range out.Named("UdpHelloReq") {
		if r.Ack.State != dissect.AckAcked || r.Ack.RTT >= 0 {
			t.Errorf("%s after %v, want acked after nobody knows how long", scene.Line(r), r.Ack.RTT)
		}
	}
	if again := out.Named("UdpHelloRes")[1]; again.Acks.Verdict != dissect.AcksAgain {
		t.Errorf("the second answer is %v", again.Acks.Verdict)
	}
}

// Section 7: a heartbeat may be a plain number.
func TestHeartbeatsOfEightBytes(t *testing.T) {
	g := onUDP()
	first := g.Len()
	g.tcp.Send(fromS, frame(4, le64(1750000000123)), frame(4, "\xff\xff\xff"))
	g.tcp.Send(fromC, frame(5, le64(1750000000123)))
	var later []*dissect.Record
	for _, r := range g.Play(t, known).Frames() {
		if r.Packets[0] > first {
			later = append(later, r)
		}
	}
	scene.Want(t, later, `
		s2c Ping acked +protobuf_malformed +unknown_body +heartbeat_number rest=7bdc207497010000
		s2c Ping unacked +protobuf_truncated +unknown_body +never_acknowledged !malformed Ping@7 rest=ffffff
		c2s Pong +protobuf_malformed +unknown_body +heartbeat_number rest=7bdc207497010000
	`)
	if text := later[0].Notes[2].Text; !strings.Contains(text, "1750000000123") {
		t.Errorf("it says %q", text)
	}
}

// A token may be longer than what is kept of a flow that nobody knows.
func TestALongToken(t *testing.T) {
	g := begin()
	long := frame(0x0201, text(1, strings.Repeat("eyJhbGciOiJIUzI1NiJ9.", 700)), varint(2, 1001))
	g.tcp.Drip(fromC, 1400, long)
	g.tcp.Send(fromS, entered(1001, udpToken, 70000))
	out := g.frames(t, `
		c2s EnterGameReq acked
		s2c EnterGameRes +out_of_range
	`)
	if r := out.Frames()[0]; r.Size != len(long) || len(r.Packets) != (len(long)+1399)/1400 {
		t.Errorf("%d bytes in %d packets", r.Size, len(r.Packets))
	}
}

// What a session has learned, and from which packet; the client's own EnterGameRes teaches
// nothing.
func TestTables(t *testing.T) {
	g := onUDP()
	g.tcp.Send(fromC, entered(66, "a token of the client's", 1))
	out := g.Play(t, known)
	table := out.Result.Sessions[0].Tables()[0].Table
	for key, want := range []struct {
		text   string
		packet int
	}{{"udp_bound", 7}, {token, 4}, {udpToken, 5}, {"7778", 5}, {"77", 5}, {"1001", 5}, {"10.0.0.2:6000", 6}} {
		e := table.Get(int64(key))
		if e == nil || e.Texts[0] != want.text || e.Packet != want.packet || e.Origin != schema.Learned {
			t.Errorf("entry %d is %+v, want %+v", key, e, want)
		}
	}
}

// Other datagrams between the hosts are not the game's.
func TestNobodyElsesDatagrams(t *testing.T) {
	g := onUDP()
	dns := g.UDP("10.0.0.2:53000", "10.0.0.1:53")
	dns.Send(fromC, "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x03org\x00\x00\x01\x00\x01")
	if out := g.Play(t, known); len(out.Frames()) != 4 {
		t.Errorf("got\n%s", out)
	}
}

// A game that states no limit for its frames has one all the same: a size of two gigabytes
// is waited for by nobody.
func TestAGameWithoutLimits(t *testing.T) {
	layouts, err := schema.Load(fstest.MapFS{"ids.yaml": {Data: []byte(`
protocol: tiny
order: be
align: byte
opcode: u16
bodies: protobuf
ports: [{tcp: 41000}]
envelopes: {header: [{length: u32}, {opcode: u16}, {body: body}]}
framings: {tcp: {kind: size_prefixed, envelope: header, counts: rest}}
packets:
  Hello: {opcode: 1, from: client, confidence: unknown}
`)}}, ".")
	if err != nil {
		t.Fatal(err)
	}
	tiny := dissect.Options{Protocols: []dissect.Protocol{mmo.With(layouts[0])}}
	g := begin()
	g.tcp.Send(fromC, "\x00\x00\x00\x04\x00\x01\x08\x07", "\x7f\xff\xff\xff\x00\x01\x08\x07")
	g.tcp.Send(fromS, "\x00\x00\x00\x02\x00\x09")
	g.udp.Send(fromC, "\x00\x00\x00\x02\x00\x01")
	scene.Want(t, g.Play(t, tiny).Frames(), `
		c2s Hello +unknown_body
		c2s Hello +frame_size_too_large !malformed envelope.length@0 rest=0807
		s2c unknown(0x09) +unknown_packet_id
	`)
}
