package wulfram_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"opscope/dissect"
	"opscope/dissect/protocols"
	"opscope/dissect/scene"
	"opscope/schema"
)

const (
	fromC = scene.Client
	fromS = scene.Server
)

var known = dissect.Options{Protocols: protocols.All, Hold: dissect.DefaultHold}

// play is a session that has been set up: tables are taught, modes are not.
type play struct {
	scene.Scene
	tcp   *scene.Connection
	udp   *scene.Datagrams
	setUp int // records of it
}

func begin() *play {
	p := &play{setUp: 6}
	p.tcp = p.TCP("10.0.0.2:50111", "10.0.0.1:2627")
	p.udp = p.UDP("10.0.0.2:50112", "10.0.0.1:2627")
	p.tcp.Open()
	p.tcp.Send(fromS, scene.AsFrame(scene.HelloUDP(2627)), scene.AsFrame(scene.HelloKey("Key1")))
	p.udp.Send(fromC, scene.HelloThere, scene.EchoKey("Key1"))
	p.tcp.Send(fromS, scene.AsFrame(scene.Behavior()), scene.AsFrame(scene.Translation(4)))
	return p
}

// shaken is one whose client has sent its handshake, and whose server may have.
func shaken(server string) *play {
	p := begin()
	p.udp.Send(fromC, scene.Original(1000))
	p.setUp++
	if server != "" {
		p.udp.Send(fromS, server)
		p.setUp++
	}
	return p
}

// play returns what comes after the set-up.
func (p *play) play(t *testing.T) []*dissect.Record {
	t.Helper()
	out := p.Play(t, known)
	return frames(out)[p.setUp:]
}

func frames(out *scene.Output) []*dissect.Record { return out.Frames() }

// want plays and compares.
func (p *play) want(t *testing.T, want string) {
	t.Helper()
	scene.Want(t, p.play(t), want)
}

func (p *play) client(records ...string) { p.udp.Send(fromC, records...) }
func (p *play) server(records ...string) { p.udp.Send(fromS, records...) }

// B34: all records of a datagram, and the bytes behind them.
func TestRecordsOfADatagram(t *testing.T) {
	p := shaken("")
	p.client("\x40\x00\x00\x00\x07", scene.Viewpoint(1, -1), "\x0b\x00\x00\x00\x01\x00\x00\x00\x02", "\xfe\xfe")
	got := p.play(t)
	scene.Want(t, got, `
		c2s INPUT_FEEDBACK
		c2s VIEWPOINT_INFO 1 unacked +never_acknowledged
		c2s PING_REQUEST
		c2s unknown(0xFE) +unknown_opcode rest=fe`)
	for i, offset := range []int64{0, 5, 14, 23} {
		if got[i].Offset != offset || got[i].Packets[0] != p.Len() {
			t.Errorf("record %d: got offset %d, want %d", i, got[i].Offset, offset)
		}
	}
}

// B44.
func TestTinyDatagrams(t *testing.T) {
	p := shaken("")
	p.client("")
	p.client("\x19")
	p.client("\xee")
	p.client("\x40\x00\x00\x00\x07")
	p.want(t, `
		c2s empty !malformed datagram@0
		c2s TANK_RESEND_REQUEST +raw_fallback
		c2s unknown(0xEE) +unknown_opcode
		c2s INPUT_FEEDBACK`)
}

// Section 12, item 6: what has no length swallows the rest, and says so.
func TestUnknownBodySwallowsTheRest(t *testing.T) {
	p := shaken("")
	p.client("\x40\x00\x00\x00\x07", "\x47\x01\x02\x03", "\x40\x00\x00\x00\x08")
	p.client("\x40\x00\x00\x00\x09")
	p.want(t, `
		c2s INPUT_FEEDBACK
		c2s SQUAD_OUST +unknown_body rest=0102034000000008
		c2s INPUT_FEEDBACK`)
}

// An unknown body in an envelope has a length, and the next record follows it.
func TestUnknownBodyInAnEnvelope(t *testing.T) {
	p := shaken("")
	p.client(scene.Sequenced(0x26, 1, "abc"), "\x40\x00\x00\x00\x08")
	p.want(t, `
		c2s RETARGET 1 unacked +unknown_body +never_acknowledged rest=616263
		c2s INPUT_FEEDBACK`)
}

// Section 12, item 5: an envelope that cannot be, and a record that can do without.
func TestEnvelopeThatDoesNotFit(t *testing.T) {
	p := shaken("")
	p.client("\x35\x00\x00\x00\x07")                     // raw: its length would be 7 of 5 bytes
	p.client("\x35\x00\x01\x00\x04", "\x40\x00\x00\x00") // length below 5, and raw does not fit either
	p.client("\x35\x00\x01\x00\xff\xff\xff\xff\xff")     // beyond the datagram, neither
	p.client(scene.Sequenced(0x35, 1, "\x00a"))          // a body that is too short for its layout
	p.client(scene.Sequenced(0x19, 1, "\x00\x00"))       // one that is too long
	p.want(t, `
		c2s VIEWPOINT_INFO +raw_fallback
		c2s VIEWPOINT_INFO 1 !malformed envelope.length@3 rest=350001000440000000
		c2s VIEWPOINT_INFO 1 !malformed envelope.length@3 rest=35000100ffffffffff
		c2s VIEWPOINT_INFO 1 unacked +never_acknowledged !malformed VIEWPOINT_INFO.entity_id@5 rest=0061
		c2s TANK_RESEND_REQUEST 1 unacked +trailing_bytes +never_acknowledged rest=0000`)
}

// Section 12, items 4 and 5: controls follow the table of their sender, who may send
// one raw all the same.
func TestControlsFollowTheTable(t *testing.T) {
	p := begin()
	p.client(scene.Original(1000))
	p.server(scene.Ack(0x20, 9)) // before the server's handshake: raw, 5 bytes
	p.server(scene.Forge(1))
	p.client(scene.Viewpoint(1, -1))
	p.server(scene.Sequenced(0x02, 1, "\x01\x35\x00\x01")) // in mode 1, 9 bytes
	p.client(scene.Ack(0x02, 1))                           // the client's stay raw
	p.server(scene.Forge(2))                               // raw, though it put itself in mode 1
	p.server(scene.Sequenced(0x02, 2, "\x01\x35\x00\x01"), "\x0b\x00\x00\x00\x01")
	got := p.play(t)
	scene.Want(t, got, `
		c2s D_HANDSHAKE
		s2c D_ACK +acked_unseen
		s2c D_HANDSHAKE
		c2s VIEWPOINT_INFO 1 acked
		s2c D_ACK 1 acked
		c2s D_ACK
		s2c D_HANDSHAKE +raw_fallback +retransmission
		s2c D_ACK 2 unacked +ack_repeated +never_acknowledged
		s2c PING_REQUEST`)
	if e := got[4].Envelope; e.Mode != 1 || e.Seq != 1 || e.Length != 9 || e.Origin != schema.Learned || e.LearnedIn != got[2].Packets[0] {
		t.Errorf("got envelope %+v, want mode 1 learned in packet %d", e, got[2].Packets[0])
	}
	if got[3].Ack.By != got[4].Packets[0] || got[3].Ack.RTT != time.Millisecond {
		t.Errorf("got %+v, want an acknowledgement after 1 ms in packet %d", got[3].Ack, got[4].Packets[0])
	}
	if a := got[5].Acks; a.Message != "D_ACK" || a.Packet != got[4].Packets[0] || got[4].Ack.By != got[5].Packets[0] {
		t.Errorf("the acknowledgement of an acknowledgement names %+v", a)
	}
}

// Section 12, item 3: a handshake says nothing about the other direction, and
// nothing about what was sent before it.
func TestModesArePerDirectionAndFromTheirPacketOn(t *testing.T) {
	p := begin()
	p.client("\x35\xff\xff\xff\xff")
	p.client("\x35\xff\xff\xff\xff", scene.Original(1000), scene.Viewpoint(1, -1))
	p.server("\x19\x0b\x00\x00\x00\x01")
	p.want(t, `
		c2s VIEWPOINT_INFO
		c2s VIEWPOINT_INFO
		c2s D_HANDSHAKE
		c2s VIEWPOINT_INFO 1 unacked +never_acknowledged
		s2c TANK_RESEND_REQUEST +unexpected_direction
		s2c PING_REQUEST`)
}

func TestHandshakeRepeatedAndChanged(t *testing.T) {
	p := shaken("")
	p.client(scene.Viewpoint(1, 1))
	p.client(scene.Original(1400))
	p.client(scene.Viewpoint(2, 2))
	p.client(scene.Handshake(1800, nil, scene.Pair{Opcode: 0x40, Mode: 3}))
	p.client("\x35\xff\xff\xff\xff", scene.Sequenced(0x40, 1, "\x00\x00\x00\x07"))
	p.want(t, `
		c2s VIEWPOINT_INFO 1 unacked +never_acknowledged
		c2s D_HANDSHAKE +retransmission
		c2s VIEWPOINT_INFO 2 unacked +never_acknowledged
		c2s D_HANDSHAKE +table_changed
		c2s VIEWPOINT_INFO
		c2s INPUT_FEEDBACK 1 unacked +never_acknowledged`)
}

// B41: a peer that starts again on the same ports.
func TestPeerRestarts(t *testing.T) {
	p := shaken(scene.Forge(500))
	p.client(scene.Viewpoint(1, -1))
	p.server(scene.Sequenced(0x02, 1, "\x01\x35\x00\x01"))
	p.client(scene.Viewpoint(2, -1))
	p.server(scene.Sequenced(0x02, 2, "\x01\x35\x00\x02"))
	// Again, with other modes and a clock that starts anew.
	p.client(scene.Handshake(10, nil, scene.Pair{Opcode: 0x40, Mode: 1}))
	p.client("\x35\xff\xff\xff\xff", scene.Sequenced(0x40, 1, "\x00\x00\x00\x07"))
	p.server(scene.Forge(20))
	p.server(scene.Sequenced(0x02, 1, "\x01\x40\x00\x01"))
	p.client(scene.Sequenced(0x40, 2, "\x00\x00\x00\x08"))
	p.server(scene.Sequenced(0x02, 2, "\x01\x40\x00\x02"))
	out := p.Play(t, known)
	i := slices.IndexFunc(out.Records, func(r *dissect.Record) bool { return r.Message == "VIEWPOINT_INFO" })
	scene.Want(t, out.Records[i:], `
		c2s VIEWPOINT_INFO 1 acked
		s2c D_ACK 1 unacked +never_acknowledged
		c2s VIEWPOINT_INFO 2 acked
		s2c D_ACK 2 unacked +never_acknowledged
		c2s D_HANDSHAKE +table_changed
		c2s VIEWPOINT_INFO
		session 1 closed: handshake
		session 2 opened: handshake
		c2s INPUT_FEEDBACK 1 acked
		s2c D_HANDSHAKE +raw_fallback +retransmission
		s2c D_ACK 1 unacked +never_acknowledged
		c2s INPUT_FEEDBACK 2 acked
		s2c D_ACK 2 unacked +never_acknowledged`)
	list := out.Result.Sessions
	if len(list) != 2 || list[0].ID != 1 || list[1].ID != 2 {
		t.Fatalf("got %d sessions", len(list))
	}
	for i, op := range []int64{0x35, 0x40} {
		if modes := list[i].Tables()[0].Table; modes.Get(op) == nil || modes.Get([]int64{0x40, 0x35}[i]) != nil {
			t.Errorf("session %d: got modes %v", i+1, modes.Keys())
		}
	}
	for _, r := range out.Frames()[p.setUp+6:] {
		if r.Session != 2 {
			t.Errorf("got session %d for %s", r.Session, scene.Line(r))
		}
	}
}

// The streams of a peer that starts again are numbered the same way each time.
func TestStreamsOfARestartAreNumberedInOrder(t *testing.T) {
	const first, count = 0x35, 8
	var pairs []scene.Pair
	for op := range count {
		pairs = append(pairs, scene.Pair{Opcode: first + op, Mode: 1})
	}
	p := begin()
	for _, clock := range []int{500, 10} {
		p.client(scene.Handshake(clock, nil, pairs...))
		for op := range count {
			p.client(scene.Sequenced(byte(first+op), 1, "\x00\x00\x00\x07"))
		}
	}
	var streams []int
	for _, r := range p.Play(t, known).Frames() {
		if r.Session == 2 && r.Envelope.Seq == 1 {
			streams = append(streams, r.Stream)
		}
	}
	if len(streams) != count || !slices.IsSorted(streams) {
		t.Errorf("got streams %v, want %d in order", streams, count)
	}
}

// A handshake that the network brought late is no restart.
func TestHandshakesOutOfOrder(t *testing.T) {
	p := begin()
	p.client(scene.Original(1400))
	p.client(scene.Original(1000))
	p.client(scene.Viewpoint(1, -1))
	out := p.Play(t, known)
	if len(out.Result.Sessions) != 1 {
		t.Errorf("got %d sessions\n%s", len(out.Result.Sessions), out)
	}
}

// Section 12, item 19.
func TestHandshakeWithHugeCounts(t *testing.T) {
	p := begin()
	p.client("\x03" + scene.BE32(1) + scene.BE32(15) + scene.BE32(-1))
	p.client("\x03" + scene.BE32(1) + scene.BE32(15) + scene.BE32(1) + scene.Text("G") + scene.BE32(-1))
	p.client("\x03" + scene.BE32(1) + scene.BE32(15) + scene.BE32(0) + scene.BE32(0x40000000))
	p.client("\x40\x00\x00\x00\x07")
	p.want(t, `
		c2s D_HANDSHAKE +out_of_range !malformed D_HANDSHAKE.groups@13
		c2s D_HANDSHAKE +out_of_range !malformed D_HANDSHAKE.groups[0].members@21
		c2s D_HANDSHAKE +out_of_range !malformed D_HANDSHAKE.modes@17
		c2s INPUT_FEEDBACK`)
}

// Mode 2 in a table: its header is not known.
func TestModeTwo(t *testing.T) {
	p := begin()
	p.client(scene.Handshake(1, nil, scene.Pair{Opcode: 0x40, Mode: 2}, scene.Pair{Opcode: 0x26, Mode: 9}))
	p.client("\x40\x00\x01\x00\x00\x00\x07")
	p.client("\x26\x00\x01")
	p.client("\x0b\x00\x00\x00\x01\x00\x00\x00\x02")
	got := p.play(t)
	scene.Want(t, got[1:], `
		c2s INPUT_FEEDBACK !malformed envelope@0 rest=40000100000007
		c2s RETARGET !malformed envelope@0 rest=260001
		c2s PING_REQUEST`)
	if got[1].Err.Got != "mode 2" || got[2].Err.Got != "mode 9" {
		t.Errorf("got %v and %v", got[1].Err, got[2].Err)
	}
}

func TestDatagramTooLarge(t *testing.T) {
	p := begin()
	p.server(scene.BE16(0x11ff)[:1] + strings.Repeat("x", 3071))
	p.server(scene.BE16(0x11ff)[:1] + strings.Repeat("x", 3072))
	p.want(t, `
		s2c HUD_MESSAGE +unknown_body rest=78787878787878787878787878787878
		s2c HUD_MESSAGE +datagram_too_large +unknown_body rest=78787878787878787878787878787878`)
}

// Section 12, item 16.
func TestWhatStandsInFrontOfADatagram(t *testing.T) {
	feedback := "\x40\x00\x00\x00\x07"
	t.Run("FF FF", func(t *testing.T) {
		p := begin()
		p.client("\xff\xff", feedback, feedback)
		p.client("\xff\xff")
		p.want(t, `
			c2s INPUT_FEEDBACK +delimiter_skipped
			c2s INPUT_FEEDBACK
			c2s empty +delimiter_skipped !malformed datagram@0`)
	})
	t.Run("FF FF at the end is data", func(t *testing.T) {
		p := shaken("")
		p.client(feedback, scene.Viewpoint(1, -1))
		p.client("\x35\xff\xff\xff\xff")
		got := p.play(t)
		scene.Want(t, got, `
			c2s INPUT_FEEDBACK
			c2s VIEWPOINT_INFO 1 unacked +never_acknowledged
			c2s VIEWPOINT_INFO +raw_fallback`)
		if string(got[1].Raw[5:]) != "\xff\xff\xff\xff" {
			t.Errorf("got % x", got[1].Raw)
		}
	})
	t.Run("its size", func(t *testing.T) {
		p := begin()
		p.client("\x00\x0c", feedback, feedback)
		got := p.play(t)
		scene.Want(t, got, "c2s INPUT_FEEDBACK +size_prefix\nc2s INPUT_FEEDBACK")
		if r := got[0]; r.Size != 5 || r.Offset != 2 || !r.Envelope.Prefixed {
			t.Errorf("got %d bytes at %d, prefixed %v", r.Size, r.Offset, r.Envelope.Prefixed)
		}
	})
	t.Run("its size, and what has no layout", func(t *testing.T) {
		p := begin()
		p.client("\x00\x05\x47ab")
		p.want(t, "c2s SQUAD_OUST +size_prefix +unknown_body rest=6162")
	})
	t.Run("a size above 255", func(t *testing.T) {
		p := begin()
		p.client(scene.BE16(2+60*5) + strings.Repeat(feedback, 60))
		got := p.play(t)
		if len(got) != 60 || scene.Line(got[0]) != "c2s INPUT_FEEDBACK +size_prefix" {
			t.Errorf("got %d records, the first %s", len(got), scene.Line(got[0]))
		}
	})
	t.Run("a size that may be a record", func(t *testing.T) {
		// 01 2C is 300, and D_IGNORE of opcode 2C: read so, 4 bytes, and the rest
		// fits both ways.
		p := begin()
		p.server("\x01\x2c" + "\x4d\x4d" + strings.Repeat("\x4d", 296))
		got := p.play(t)
		if len(got) != 298 || !strings.Contains(scene.Line(got[0]), "+size_prefix_ambiguous") {
			t.Errorf("got %d records, the first %s", len(got), scene.Line(got[0]))
		}
	})
	t.Run("a record that looks like a size", func(t *testing.T) {
		// 01 0D: D_IGNORE for opcode 0D, in a datagram of 269 bytes that is records
		// only when read so.
		p := begin()
		p.client("\x01\x0d\x0d\x00" + strings.Repeat(feedback, 53))
		got := p.play(t)
		if len(got) != 54 || scene.Line(got[0]) != "c2s D_IGNORE" {
			t.Errorf("got %d records, the first %s", len(got), scene.Line(got[0]))
		}
	})
	t.Run("a number that is not its size", func(t *testing.T) {
		p := begin()
		p.client("\x00\x02ab", feedback)
		p.want(t, "c2s diagnostic\nc2s INPUT_FEEDBACK")
	})
}

// Section 12, item 10.
func TestGroupsShareASequence(t *testing.T) {
	p := shaken("")
	p.client(scene.Sequenced(0x3a, 1, "a"), scene.Sequenced(0x3b, 2, "b"), scene.Sequenced(0x42, 1, "c"))
	p.client(scene.Sequenced(0x4a, 2, "d"), scene.Sequenced(0x3a, 3, "e"), scene.Sequenced(0x20, 1, "\x00\x00\x00\x00\x00\x01\x00"))
	p.client(scene.Sequenced(0x25, 3, "\x01\x00\x00\x00\x00\x00\x00\x00\x00"))
	p.client("\x47xyz")
	p.server(scene.Ack(0x3b, 1)) // by the other name of the group
	p.want(t, `
		c2s BEACON_REQUEST 1 acked +unknown_body rest=61
		c2s BEACON_MODIFY 2 unacked +unknown_body +never_acknowledged rest=62
		c2s SQUAD_CREATE 1 unacked +unknown_body +never_acknowledged rest=63
		c2s SQUAD_COMMAND 2 unacked +unknown_body +never_acknowledged rest=64
		c2s BEACON_REQUEST 3 unacked +unknown_body +never_acknowledged rest=65
		c2s COMM_MESSAGE_REQUEST 1 unacked +never_acknowledged
		c2s REINCARNATE 3 unacked +sequence_gap +never_acknowledged
		c2s SQUAD_OUST +unknown_body rest=78797a
		s2c D_ACK`)
}

// A session whose handshake names no group: members are on their own.
func TestWithoutGroups(t *testing.T) {
	p := begin()
	p.client(scene.Handshake(1, nil, scene.Pair{Opcode: 0x3a, Mode: 3}, scene.Pair{Opcode: 0x3b, Mode: 3}))
	p.client(scene.Sequenced(0x3a, 1, "a"), scene.Sequenced(0x3b, 1, "b"))
	got := p.play(t)
	scene.Want(t, got[1:], `
		c2s BEACON_REQUEST 1 unacked +unknown_body +never_acknowledged rest=61
		c2s BEACON_MODIFY 1 unacked +unknown_body +never_acknowledged rest=62`)
}

// Section 4.4: D_IGNORE for a sequence, and the acknowledgement that answers it.
func TestIgnore(t *testing.T) {
	p := shaken("")
	p.client(scene.Chat(1, "a"))
	p.server(scene.Ack(0x20, 1))
	p.client(scene.Chat(2, "b"))
	p.client("\x01\x20\x00\x02")
	p.server(scene.Ack(0x20, 2))
	p.client(scene.Chat(3, "c"))
	p.server(scene.Ack(0x20, 3))
	got := p.play(t)
	scene.Want(t, got, `
		c2s COMM_MESSAGE_REQUEST 1 acked
		s2c D_ACK
		c2s COMM_MESSAGE_REQUEST 2 ignored
		c2s D_IGNORE
		s2c D_ACK
		c2s COMM_MESSAGE_REQUEST 3 acked
		s2c D_ACK`)
	if got[4].Acks.Verdict != dissect.AcksIgnored {
		t.Errorf("got %v for the answer to D_IGNORE", got[4].Acks.Verdict)
	}
}

// Section 4.4: D_SET_START and its answer, of subtype 2.
func TestSetStart(t *testing.T) {
	p := shaken(scene.Forge(500))
	p.server(scene.Sequenced(0x02, 1, "\x01\x35\x00\x09"))
	p.server("\x04\x02\x00\x28")
	p.client("\x02\x02" + scene.BE32(77) + "\x02\x00\x28")
	p.server(scene.Sequenced(0x02, 40, "\x01\x35\x00\x0a"))
	p.client(scene.Ack(0x02, 40))
	got := p.play(t)
	scene.Want(t, got, `
		s2c D_ACK 1 unacked +acked_unseen +never_acknowledged
		s2c D_SET_START
		c2s D_ACK
		s2c D_ACK 40 acked +acked_unseen
		c2s D_ACK`)
	if a := got[2].Acks; a.Verdict != dissect.AcksNew || a.Message != "D_SET_START" || a.RTT != time.Millisecond {
		t.Errorf("got %+v", a)
	}
}

// Retransmitted, stale, beyond the window; the wrap; a sequence that is none.
// Section 12, item 9.
func TestSequences(t *testing.T) {
	t.Run("repeats and leaps", func(t *testing.T) {
		p := shaken("")
		p.client(scene.Viewpoint(1, 1))
		p.client(scene.Viewpoint(1, 1))
		p.client(scene.Viewpoint(4, 4))
		p.client(scene.Viewpoint(2, 2))
		p.client(scene.Viewpoint(10, 10)) // expected is 5
		p.client(scene.Viewpoint(65535, 0))
		p.want(t, `
			c2s VIEWPOINT_INFO 1 unacked +never_acknowledged
			c2s VIEWPOINT_INFO 1 unacked +retransmission +never_acknowledged
			c2s VIEWPOINT_INFO 4 unacked +sequence_skipped +never_acknowledged
			c2s VIEWPOINT_INFO 2 unacked +stale +never_acknowledged
			c2s VIEWPOINT_INFO 10 unacked +sequence_skipped +never_acknowledged
			c2s VIEWPOINT_INFO 65535 unacked +sequence_65535 +never_acknowledged`)
	})
	t.Run("beyond the window", func(t *testing.T) {
		p := shaken("")
		p.client(scene.Viewpoint(1, 1))
		p.client(scene.Viewpoint(8, 8)) // expected is 2, and 7 is the last accepted
		got := p.play(t)
		scene.Want(t, got[1:], "c2s VIEWPOINT_INFO 8 unacked +out_of_window +never_acknowledged")
	})
	t.Run("the wrap", func(t *testing.T) {
		p := shaken("")
		p.server("\x0b\x00\x00\x00\x01")
		p.client("\x04\x35" + scene.BE16(65533))
		for _, seq := range []int{65533, 65534, 0, 1} {
			p.client(scene.Viewpoint(seq, seq))
			p.server(scene.Ack(0x35, seq))
		}
		got := p.play(t)
		scene.Want(t, got[2:], `
			c2s VIEWPOINT_INFO 65533 acked
			s2c D_ACK
			c2s VIEWPOINT_INFO 65534 acked
			s2c D_ACK
			c2s VIEWPOINT_INFO 0 acked
			s2c D_ACK
			c2s VIEWPOINT_INFO 1 acked
			s2c D_ACK`)
	})
}

// A raw record of an opcode that the handshake does not name, with an envelope all
// the same.
func TestModeMismatch(t *testing.T) {
	p := shaken(scene.Handshake(1, nil))
	p.server(scene.Sequenced(0x02, 1, "\x01\x35\x00\x01"), "\x0b\x00\x00\x00\x01")
	p.want(t, `
		s2c D_ACK 1 unacked +mode_mismatch +acked_unseen +never_acknowledged
		s2c PING_REQUEST`)
}

// Section 12, item 14: a session joined in its middle reads a client by its usual
// table, and a server's acknowledgements by their looks. The guess is that
// session's own.
func TestJoinedSessionGuesses(t *testing.T) {
	s := &scene.Scene{}
	for _, host := range []string{"10.0.0.2:50112", "10.0.0.3:50112"} {
		u := s.UDP(host, "10.0.0.1:2627")
		u.Send(fromC, scene.Viewpoint(700, -1))
		u.Send(fromS, scene.Sequenced(0x02, 7, "\x01\x35\x02\xbc"))
		u.Send(fromC, scene.Ack(0x02, 7))
	}
	out := s.Play(t, known)
	const one = `
		c2s VIEWPOINT_INFO 700 acked
		s2c D_ACK 7 acked +mode_guessed
		c2s D_ACK
		`
	scene.Want(t, slices.DeleteFunc(out.Frames(), func(r *dissect.Record) bool { return r.Session == 2 }), one)
	scene.Want(t, slices.DeleteFunc(out.Frames(), func(r *dissect.Record) bool { return r.Session == 1 }), one)
	if e := out.Frames()[0].Envelope; e.Origin != schema.Default {
		t.Errorf("got origin %v for the stated default", e.Origin)
	}
	if e := out.Frames()[1].Envelope; e.Origin != schema.Guessed {
		t.Errorf("got origin %v for a guess", e.Origin)
	}
	p, err := protocols.All[0].Schema()
	if err != nil {
		t.Fatal(err)
	}
	if stated := p.DefaultTable("stream_modes", schema.Client); stated.Get(0x02) != nil || stated.Len() != 15 {
		t.Errorf("the stated default has changed: %v", stated.Keys())
	}
}

// A chat in an envelope can be read raw to its end: as a chat whose text has no NUL,
// and zeros that look like diagnostics.
func TestJoinedSessionGuessesInSpiteOfZeros(t *testing.T) {
	s := &scene.Scene{}
	u := s.UDP("10.0.0.2:50112", "10.0.0.1:2627")
	u.Send(fromS, scene.Sequenced(0x1f, 3, scene.Numbered(1)[1:]))
	u.Send(fromC, scene.Ack(0x1f, 3))
	scene.Want(t, s.Play(t, known).Frames(), `
		s2c COMM_MESSAGE 3 acked +mode_guessed
		c2s D_ACK`)
}

// Section 12, item 13.
func TestLayoutsByDirection(t *testing.T) {
	p := begin()
	p.client("\x0c\x00\x00\x00\x01\x00\x00\x00\x02")
	p.server("\x0c\x00\x00\x00\x01")
	p.server("\x25\x11" + scene.Text("ok"))
	p.client("\x25\x01\x00\x00\x00\x01\x00\x00\x00\x00")
	p.tcp.Send(fromC, scene.Frame(0x4e, "\x00\x00\x00\x05"))
	p.tcp.Send(fromS, scene.Frame(0x4e, "\x00\x00\x00\x05\x01"))
	p.want(t, `
		c2s PING
		s2c PING
		s2c REINCARNATE
		c2s REINCARNATE
		c2s BPS
		s2c BPS`)
}

// Section 12, item 17.
func TestTrailingBytesOfLogin(t *testing.T) {
	p := begin()
	p.tcp.Send(fromC, scene.Frame(0x21, "\x00"+scene.Text("a")+scene.Text("b")+strings.Repeat("\x00", 204)))
	got := p.play(t)
	if len(got) != 1 || got[0].Size != 216 || len(got[0].Rest) != 204 || got[0].Err != nil {
		t.Errorf("got %s", scene.Lines(got))
	}
}

// B70, for datagrams: what was cut is truncated, not malformed, and the walk ends.
func TestCutDatagrams(t *testing.T) {
	p := shaken("")
	p.Snap = 42 + 7
	p.client("\x40\x00\x00\x00\x07", scene.Viewpoint(1, -1)) // 2 bytes of the second
	p.client(scene.Viewpoint(2, -1))                         // 7 bytes of 9
	p.client("\x0b\x00\x00\x00\x01\x00\x00\x00\x02")
	p.Snap = 42
	p.client("\x0b\x00\x00\x00\x01\x00\x00\x00\x02")
	got := p.play(t)
	scene.Want(t, got, `
		c2s INPUT_FEEDBACK
		c2s VIEWPOINT_INFO !truncated envelope@0 rest=3500
		c2s VIEWPOINT_INFO 2 unacked +not_captured +sequence_skipped +never_acknowledged !truncated VIEWPOINT_INFO.entity_id@5 rest=ffff
		c2s PING_REQUEST +not_captured !truncated PING_REQUEST.accumulator@5 rest=0000
		c2s empty +not_captured !truncated datagram@0`)
	if got[2].Size != 9 {
		t.Errorf("got %d bytes, want the 9 of the wire", got[2].Size)
	}
}

// However much is in doubt about a datagram, it takes linear time.
func TestDoubtfulDatagramsTakeLinearTime(t *testing.T) {
	p := shaken("")
	p.server(strings.Repeat("\x0d\x00", 32000))                                // disputed layouts
	p.client(strings.Repeat("\x19\x00\x01\x00\x06", 13000))                    // envelopes that do not fit
	p.client(strings.Repeat("\x0b\x00\x05\x00\x09\x00\x00\x00\x00", 7000), "") // and some that might
	// It takes half a second; the square of it would be an hour, and the test would not end.
	if got := len(p.play(t)); got < 30000 {
		t.Errorf("%d records", got)
	}
}
