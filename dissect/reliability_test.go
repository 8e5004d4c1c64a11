package dissect

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"opscope/reassembly"
)

// The rules of protocols/wulfram.md section 4, protocols/netrek.md section 7 and
// protocols/lotr2.md section 6.
var (
	wulframMode1 = Rules{
		Serial: reassembly.Serial{Modulus: 65535}, Start: 1, Window: 5, InFlight: 15, Delivery: Latest, Acknowledged: true,
	}
	wulframMode3 = Rules{
		Serial: reassembly.Serial{Modulus: 65535}, Start: 1, Window: 5, InFlight: 15, Delivery: Ordered, Acknowledged: true,
	}
	netrekSequence = Rules{Serial: reassembly.Serial{Modulus: 65536}, Start: 1, Delivery: Latest}
	lotr2Slots     = Rules{Serial: reassembly.Serial{First: 1, Modulus: 39}, Start: 1, Delivery: Latest}
)

// exchange plays the two sides of a stream. Each step is a packet, 10 ms after the one
// before.
type exchange struct {
	t      *testing.T
	out    journal
	hold   *Hold
	stream *SequenceStream
	packet int
	late   int // ms in addition
}

func newExchange(t *testing.T, rules Rules, joined bool, limit time.Duration) *exchange {
	g := &exchange{t: t}
	g.hold = NewHold(&g.out, limit)
	g.stream = NewSequenceStream(g.hold, rules, joined)
	return g
}

// do plays one step and says what the stream found: a disposition with the state
// of the acknowledgement, or a verdict with the packet named, then the notes.
//
//	send 5 abc      sequence 5 with this payload; empty without
//	shown 5 abc     the same packet again, by the capture
//	copy 5 abc      a copy by design
//	ack 5, ignore 5, start 5, answer 5
//	wait 1000       milliseconds
//	reset, join     a new session
func (g *exchange) do(step string) string {
	words := append(strings.Fields(step), "", "")
	number, _ := strconv.Atoi(words[1])
	seq := uint64(number)
	switch words[0] {
	case "wait":
		g.late += number
		g.hold.Advance(at(10*g.packet + g.late))
		return ""
	case "reset", "join":
		g.stream.Reset(words[0] == "join")
		return ""
	}
	g.packet++
	r := take(g.hold, words[0]+words[1], g.packet, 10*g.packet+g.late, AckNone)
	var got string
	kinds := map[string]Copy{"send": NoCopy, "shown": CaptureCopy, "copy": DesignCopy}
	switch c, sent := kinds[words[0]]; {
	case sent:
		got = g.stream.Sent(r, seq, []byte(words[2]), c).String()
		if r.Ack.State != AckNone {
			got += " " + r.Ack.State.String()
		}
		if r.Ack.By != 0 {
			got += fmt.Sprint(" by ", r.Ack.By)
		}
	case words[0] == "ack":
		g.stream.Acknowledged(r, seq)
		got = acksText(r)
	case words[0] == "answer":
		g.stream.SetStartAnswered(r, seq)
		got = acksText(r)
	case words[0] == "ignore":
		g.stream.Ignore(r, seq)
	case words[0] == "start":
		g.stream.SetStart(r, seq)
	default:
		g.t.Fatalf("no such step: %q", step)
	}
	for _, n := range r.Notes {
		got += "; " + n.Code
		if n.Text != "" {
			got += ": " + n.Text
		}
	}
	if err := g.hold.Push(r); err != nil {
		g.t.Fatal(err)
	}
	return got
}

// acksText says what an acknowledgement names.
func acksText(r *Record) string {
	got := r.Acks.Verdict.String()
	if r.Acks.Packet != 0 {
		got += fmt.Sprintf(" %s packet %d", r.Acks.Message, r.Acks.Packet)
	}
	if r.Acks.RTT >= 0 {
		got += fmt.Sprintf(" after %v", r.Acks.RTT)
	}
	return got
}

func TestSequenceStreamFindings(t *testing.T) {
	tests := []struct {
		name   string
		rules  Rules
		joined bool
		steps  [][2]string // what is done, and found
		out    string      // the records, released, when not empty
	}{
		{"an acknowledgement tells the round trip", wulframMode3, false, [][2]string{
			{"send 1 a", "next pending"},
			{"send 2 b", "next pending"},
			{"ack 1", "new send1 packet 1 after 20ms"},
			{"ack 2", "new send2 packet 2 after 20ms"},
		}, "send1 acked; send2 acked; ack1 none; ack2 none"},

		{"the same bytes again are a retransmission, and the round trip is open", wulframMode3, false, [][2]string{
			{"send 1 a", "next pending"},
			{"send 1 a", "stale pending; retransmission: same bytes as packet 1"},
			{"ack 1", "new send1 packet 1"},
			{"ack 1", "repeat send1 packet 1; ack_repeated: first by packet 3"},
		}, "send1 acked; send1 acked; ack1 none; ack1 none"},

		{"an acknowledgement that the sender did not get serves the copy too", wulframMode3, false, [][2]string{
			{"send 1 a", "next pending"},
			{"ack 1", "new send1 packet 1 after 10ms"},
			{"send 1 a", "stale duplicate by 2; retransmission: same bytes as packet 1"},
			{"ack 1", "repeat send1 packet 1; ack_repeated: first by packet 2"},
		}, "send1 acked; ack1 none; send1 duplicate; ack1 none"},

		{"other bytes under the same sequence are a conflict", wulframMode3, false, [][2]string{
			{"send 1 a", "next pending"},
			{"send 1 b", "stale pending; conflict: other bytes than packet 1"},
			{"send 1 b", "stale pending; retransmission: same bytes as packet 2"},
		}, ""},

		{"a packet that the capture shows twice was sent once", wulframMode3, false, [][2]string{
			{"send 1 a", "next pending"},
			{"shown 1 a", "stale pending; duplicate: same as packet 1"},
			{"ack 1", "new send1 packet 1 after 20ms"},
			{"shown 1 a", "stale duplicate by 3; duplicate: same as packet 1"},
		}, "send1 acked; shown1 duplicate; ack1 none; shown1 duplicate"},

		{"the same payload under a new sequence is named while the earlier one waits", wulframMode1, false, [][2]string{
			{"send 1 a", "next pending"},
			{"send 2 a", "next pending; same_payload_new_sequence: same payload as packet 1, sequence 1"},
			{"ack 1", "new send1 packet 1 after 20ms"},
			{"ack 2", "new send2 packet 2 after 20ms"},
			{"send 3 a", "next pending"},
			{"wait 2000", ""},
			{"send 4 a", "next pending"}, // packet 5 cannot be in flight any more
			{"send 5", "next pending"},
			{"send 6", "next pending"}, // an empty payload proves nothing
		}, ""},

		{"fragments 10 to 12, of which 11 is sent again as 13", wulframMode3, true, [][2]string{
			{"send 10 x", "next pending"},
			{"send 11 y", "next pending"},
			{"send 12 z", "next pending"},
			{"ack 10", "new send10 packet 1 after 30ms"},
			{"ack 12", "new send12 packet 3 after 20ms"},
			{"send 13 y", "next pending; same_payload_new_sequence: same payload as packet 2, sequence 11"},
		}, ""},

		{"ordered records wait for the one between", wulframMode3, false, [][2]string{
			{"send 1 a", "next pending"},
			{"send 3 c", "future pending; sequence_gap: sequence 2 not seen"},
			{"send 4 d", "future pending"},
			{"ack 3", "new send3 packet 2 after 20ms"},
			{"send 2 b", "next pending; out_of_order: after sequence 4"},
			{"send 5 e", "next pending"},
		}, ""},

		{"a newer record of latest skips those between", wulframMode1, false, [][2]string{
			{"send 1 a", "next pending"},
			{"send 4 d", "newer pending; sequence_skipped: sequences 2 to 3 not seen"},
			{"send 3 c", "stale pending; stale: expected sequence 5"},
			{"send 4 d", "stale pending; retransmission: same bytes as packet 2"},
			{"send 1 a", "stale pending; stale: expected sequence 5; retransmission: same bytes as packet 1"},
		}, ""},

		{"five ahead are accepted and six are not", wulframMode3, false, [][2]string{
			{"send 7 g", "beyond_window pending; out_of_window: expected sequence 1"},
			{"send 6 f", "future pending; sequence_gap: sequences 1 to 5 not seen"},
			{"send 1 a", "next pending; out_of_order: after sequence 6"},
			{"send 7 g", "future pending; retransmission: same bytes as packet 1"},
		}, ""},

		{"an acknowledgement from beyond the window proves that the capture missed some", wulframMode1, false, [][2]string{
			{"send 1 a", "next pending"},
			{"send 9 i", "beyond_window pending; out_of_window: expected sequence 2"},
			{"ack 9", "new send9 packet 2 after 10ms"},
			{"send 10 j", "next pending"},
		}, ""},

		{"one far sequence proves nothing and two do", wulframMode3, false, [][2]string{
			{"send 1 a", "next pending"},
			{"send 900 x", "beyond_window pending; out_of_window: expected sequence 2"},
			{"send 2 b", "next pending"},
			{"send 100 m", "beyond_window pending; out_of_window: expected sequence 3"},
			{"send 101 n", "next pending"},
			{"send 102 o", "next pending"},
		}, ""},

		{"two that are long behind show that more than half of the circle is missing", wulframMode1, false, [][2]string{
			{"send 1 a", "next pending"},
			{"send 40000 x", "stale pending; stale: expected sequence 2"},
			{"send 2 b", "next pending"},
			{"send 40001 y", "stale pending; stale: expected sequence 3"},
			{"send 40002 z", "next pending"},
			{"send 40004 q", "newer pending; sequence_skipped: sequence 40003 not seen"},
			{"send 40003 p", "stale pending; stale: expected sequence 40005"},
			{"ack 40002", "new send40002 packet 5 after 30ms"},
		}, ""},

		{"two that are long behind resume what nobody acknowledges, too", netrekSequence, false, [][2]string{
			{"send 1 a", "next"},
			{"send 50000 x", "stale; stale: expected sequence 2"},
			{"send 50001 y", "next"},
			{"send 50002 z", "next"},
		}, ""},

		{"what is not that long behind resumes nothing", netrekSequence, true, [][2]string{
			{"send 100 a", "next"},
			{"send 37 x", "stale"}, // 64 behind the expected one
			{"send 38 y", "stale"},
			{"send 39 z", "stale"},
			{"send 101 b", "next"},
		}, ""},

		{"the wrap goes from 65534 to 0", wulframMode3, true, [][2]string{
			{"send 65533 a", "next pending"},
			{"send 65534 b", "next pending"},
			{"send 1 d", "future pending; sequence_gap: sequence 0 not seen"},
			{"send 0 c", "next pending; out_of_order: after sequence 1"},
			{"send 65534 b", "stale pending; retransmission: same bytes as packet 2"},
			{"send 2 e", "next pending"},
			{"ack 65533", "new send65533 packet 1 after 60ms"},
			{"ack 0", "new send0 packet 4 after 40ms"},
		}, ""},

		{"the window reaches over the wrap", wulframMode1, true, [][2]string{
			{"send 65532 a", "next pending"},
			{"send 3 b", "newer pending; sequence_skipped: sequences 65533 to 2 not seen"}, // 65533 expected: 5 ahead
			{"send 65534 c", "stale pending; stale: expected sequence 4"},
			{"send 10 d", "beyond_window pending; out_of_window: expected sequence 4"},
		}, ""},

		{"65535 is no sequence but may be acknowledged", wulframMode1, true, [][2]string{
			{"send 65534 a", "next pending"},
			{"send 65535 b", "impossible pending; sequence_65535"},
			{"send 0 c", "next pending"},
			{"ack 65535", "new send65535 packet 2 after 20ms"},
			{"ack 0", "new send0 packet 3 after 20ms"},
		}, ""},

		{"a stream joined in its middle starts anywhere", wulframMode3, true, [][2]string{
			{"ack 40", "earlier; ack_before_capture"},
			{"send 43 a", "next pending"},
			{"ack 41", "earlier; ack_before_capture"},
			{"send 42 z", "stale pending"}, // late, or a copy: nobody saw
			{"ack 3", "stale; stale_ack: sequence 3"},
			{"ack 43", "new send43 packet 2 after 40ms"},
		}, ""},

		{"a stream seen from its start begins with 1", wulframMode3, false, [][2]string{
			{"ack 1", "unknown; acked_unseen: sequence 1"},
			{"ack 0", "stale; stale_ack: sequence 0"},
			{"send 2 b", "next pending"}, // the receiver has 1: the acknowledgement proves it
			{"send 1 a", "stale acked by 1; out_of_order: after its acknowledgement in packet 1"},
		}, ""},

		{"acknowledgements of long ago and of the future are flagged", Rules{
			Serial: reassembly.Serial{Modulus: 4096}, Start: 4090, Delivery: Ordered, Acknowledged: true, InFlight: 15,
		}, false, [][2]string{
			{"send 4090 a", "next pending"}, {"send 4091 b", "next pending"}, {"send 4092 c", "next pending"},
			{"send 4093 d", "next pending"}, {"send 4094 e", "next pending"}, {"send 4095 f", "next pending"},
			{"send 0 g", "next pending"}, {"send 1 h", "next pending"}, {"send 2 i", "next pending"},
			{"send 3 j", "next pending"}, {"send 4 k", "next pending"}, {"send 5 l", "next pending"},
			{"ack 4090", "new send4090 packet 1 after 120ms"},
			{"ack 3000", "stale; stale_ack: sequence 3000"},
			{"ack 900", "unknown; acked_unseen: sequence 900"},
			{"send 6 m", "next pending"},
			{"ack 4091", "new send4091 packet 2 after 150ms"},
		}, ""},

		{"an ignored sequence is skipped", wulframMode3, false, [][2]string{
			{"send 1 a", "next pending"},
			{"send 2 b", "next pending"},
			{"ignore 2", ""},
			{"ack 2", "ignored send2 packet 2"},
			{"ignore 3", ""},
			{"ack 3", "ignored"},
			{"send 4 d", "next pending"},
			{"send 3 c", "stale ignored by 5; stale: expected sequence 5"},
			{"ack 1", "new send1 packet 1 after 80ms"},
		}, "send1 acked; send2 ignored; ignore2 none; ack2 none; ignore3 none; ack3 none"},

		{"an ignored sequence of the future waits for its turn", wulframMode3, false, [][2]string{
			{"ignore 3", ""},
			{"send 4 d", "future pending; sequence_gap: sequences 1 to 3 not seen"},
			{"send 1 a", "next pending; out_of_order: after sequence 4"},
			{"send 2 b", "next pending; out_of_order: after sequence 4"},
			{"send 5 e", "next pending"},
		}, ""},

		{"latest does not know how to ignore", wulframMode1, false, [][2]string{
			{"send 1 a", "next pending"},
			{"ignore 1", ""},
			{"ack 1", "new send1 packet 1 after 20ms"},
		}, ""},

		{"a new start resets the cursor of latest", wulframMode1, false, [][2]string{
			{"send 1 a", "next pending"},
			{"send 2 b", "next pending"},
			{"start 1", ""},
			{"answer 1", "new start1 packet 3 after 10ms"},
			{"answer 1", "repeat start1 packet 3; ack_repeated"},
			{"send 1 c", "next pending"},
			{"start 300", ""},
			{"start 300", ""},
			{"answer 7", "unknown; acked_unseen: start at sequence 7"},
			{"answer 300", "new start300 packet 7"},
			{"send 300 d", "next pending"},
			{"ack 1", "new send1 packet 6 after 60ms"},
		}, ""},

		{"a new start is answered by ordered and does nothing", wulframMode3, false, [][2]string{
			{"send 1 a", "next pending"},
			{"start 1", ""},
			{"answer 1", "new start1 packet 2 after 10ms"},
			{"send 1 a", "stale pending; retransmission: same bytes as packet 1"},
		}, ""},

		{"an answer to a start before the capture", wulframMode1, true, [][2]string{
			{"answer 1", "earlier; ack_before_capture"},
		}, ""},

		{"a new session forgets", wulframMode3, false, [][2]string{
			{"send 1 a", "next pending"},
			{"reset", ""},
			{"send 1 a", "next pending"},
			{"ack 1", "new send1 packet 2 after 10ms"},
			{"join", ""},
			{"send 77 a", "next pending"},
		}, ""},

		{"a record that is never acknowledged is released when its time is up", wulframMode3, false, [][2]string{
			{"send 1 a", "next pending"},
			{"wait 2000", ""},
			{"send 2 b", "next pending"},
			{"ack 1", "new send1 packet 1 after 2.02s"},
			{"ack 2", "new send2 packet 2 after 20ms"},
		}, "send1 unacked; send2 acked; ack1 none; ack of 1 by 3 after 2.02s; ack2 none"},

		{"netrek counts datagrams and acknowledges none", netrekSequence, false, [][2]string{
			{"send 1", "next"},
			{"send 4", "newer; sequence_gap: sequences 2 to 3 not seen"},
			{"send 3", "stale; stale: expected sequence 5"},
			{"send 4", "stale; duplicate: same bytes as packet 2"},
		}, ""},

		{"netrek uses 65535 and 0", netrekSequence, true, [][2]string{
			{"send 65535", "next"},
			{"send 0", "next"},
			{"send 1", "next"},
		}, ""},

		{"lotr2 sends copies by design, and slot 39 is followed by 1", lotr2Slots, true, [][2]string{
			{"copy 38 a", "next; resend_copy: the first one is not in the capture"},
			{"send 39 b", "next"},
			{"copy 39 b", "stale; resend_copy: same bytes as packet 2"},
			{"copy 39 b", "stale; resend_copy: same bytes as packet 2"},
			{"send 1 c", "next"},
			{"send 3 d", "newer; sequence_gap: sequence 2 not seen"},
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := newExchange(t, tt.rules, tt.joined, DefaultHold)
			for i, s := range tt.steps {
				if got := g.do(s[0]); got != s[1] {
					t.Errorf("step %d, %s:\ngot  %s\nwant %s", i, s[0], got, s[1])
				}
			}
			if got := g.out.text(); tt.out != "" && got != tt.out {
				t.Errorf("out:\ngot  %s\nwant %s", got, tt.out)
			}
		})
	}
}

// A sequence is told to be from before the first one only as long as that is near: half a
// circle on, all are before it by the shorter way around.
func TestALongStreamForgetsWhereItBegan(t *testing.T) {
	for _, joined := range []bool{false, true} {
		g := newExchange(t, wulframMode1, joined, DefaultHold)
		for seq := 1; seq <= 40000; seq += 1 + wulframMode1.Window {
			g.do(fmt.Sprint("send ", seq))
			g.do(fmt.Sprint("ack ", seq))
		}
		if got, want := g.do("ack 40003"), "unknown; acked_unseen: sequence 40003"; got != want {
			t.Errorf("joined %v: got %q, want %q", joined, got, want)
		}
		if got, want := g.do("send 39000 x"), "stale pending; stale: expected sequence 40004"; got != want {
			t.Errorf("joined %v: got %q, want %q", joined, got, want)
		}
	}
}

func TestTheSixteenthInFlightIsOneTooMany(t *testing.T) {
	g := newExchange(t, wulframMode3, false, DefaultHold)
	for i := 1; i <= 15; i++ {
		if got, want := g.do(fmt.Sprint("send ", i, " p", i)), "next pending"; got != want {
			t.Errorf("%d: got %q, want %q", i, got, want)
		}
	}
	g.do("send 1 p1")
	if got, want := g.do("send 16 p16"), "next pending; too_many_in_flight: 16 without acknowledgement"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	g.do("ack 3")
	g.do("ack 4")
	if got, want := g.do("send 17 p17"), "next pending"; got != want {
		t.Errorf("after two acknowledgements: got %q, want %q", got, want)
	}
	g.do("wait 3000")
	if got, want := g.do("send 18 p18"), "next pending"; got != want {
		t.Errorf("acknowledgements that the capture missed: got %q, want %q", got, want)
	}

	g = newExchange(t, wulframMode3, true, DefaultHold)
	for i := 1; i <= 20; i++ {
		if got, want := g.do(fmt.Sprint("send ", i, " p", i)), "next pending"; got != want {
			t.Errorf("one direction of a session, %d: got %q, want %q", i, got, want)
		}
	}
}

func TestAnAcknowledgementMayWantOne(t *testing.T) {
	var j journal
	h := NewHold(&j, DefaultHold)
	c2s, s2c := NewSequenceStream(h, wulframMode3, false), NewSequenceStream(h, wulframMode1, false)

	chat := take(h, "COMM_MESSAGE_REQUEST", 1, 0, AckNone)
	c2s.Sent(chat, 1, []byte("hello"), NoCopy)
	h.Push(chat)
	ack := take(h, "D_ACK", 2, 10, AckNone)
	ack.Opcode = 2
	c2s.Acknowledged(ack, 1)
	s2c.Sent(ack, 1, []byte{1, 0x20, 0, 1}, NoCopy)
	h.Push(ack)
	if got, want := j.text(), "COMM_MESSAGE_REQUEST acked"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	raw := take(h, "D_ACK", 3, 15, AckNone)
	s2c.Acknowledged(raw, 1)
	if got, want := acksText(raw), "new D_ACK packet 2 after 5ms"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	h.Push(raw)
	if got, want := j.text(), "D_ACK acked; D_ACK none"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWithoutHoldingEveryCopyIsAnnounced(t *testing.T) {
	g := newExchange(t, wulframMode3, false, 0)
	for _, step := range []string{"send 1 a", "send 1 a", "send 2 b", "ack 1", "ack 2", "ack 2"} {
		g.do(step)
	}
	want := "send1 pending; send1 pending; send2 pending; ack1 none; ack of 1 by 4 after -1ns; ack of 2 by 4 after -1ns; " +
		"ack2 none; ack of 3 by 5 after 20ms; ack2 none"
	if got := g.out.text(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestStreamRemembersSoManyRecords(t *testing.T) {
	g := newExchange(t, wulframMode3, false, 0)
	for i := 1; i <= historySize+1; i++ {
		g.do(fmt.Sprint("send ", i, " p", i))
	}
	if got := g.stream.Evicted(); got != 1 {
		t.Errorf("evicted: got %d, want 1", got)
	}
	if got, want := g.do("ack 1"), "stale; stale_ack: sequence 1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := g.do("ack 2"), "new send2 packet 2 after 650ms"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOldMarksDoNotReachOverTheWrap(t *testing.T) {
	rules := wulframMode3
	rules.Serial = reassembly.Serial{Modulus: 300}
	g := newExchange(t, rules, false, 0)
	g.do("ignore 5")
	for i := range 298 {
		if seq := i + 1; seq != 5 {
			g.do(fmt.Sprint("send ", seq, " p"))
			g.do(fmt.Sprint("ack ", seq))
		}
	}
	for _, seq := range []int{299, 0, 1, 2, 3, 4, 5, 6} {
		if got, want := g.do(fmt.Sprint("send ", seq, " p", seq)), "next pending"; got != want {
			t.Errorf("%d: got %q, want %q", seq, got, want)
		}
	}
}

// receiver is section 4 of protocols/wulfram.md, written down as it stands there,
// on numbers that do not wrap.
type receiver struct {
	ordered bool
	next    int
	pending map[int]bool
}

func (r *receiver) take(seq int) (d Disposition, acknowledged bool) {
	switch {
	case seq < r.next:
		return Stale, r.ordered
	case seq > r.next+5:
		return BeyondWindow, false
	case !r.ordered:
		d = Newer
		if seq == r.next {
			d = Next
		}
		r.next = seq + 1
		return d, true
	case seq > r.next:
		r.pending[seq] = true
		return Future, true
	}
	for r.next++; r.pending[r.next]; r.next++ {
	}
	return Next, true
}

// A sender with 15 in flight sends over a network that loses and turns around, and
// the capture at the receiver sees everything that arrives.
func TestDispositionsAgainstANaiveReceiver(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 2))
		rules := wulframMode1
		if seed%2 == 1 {
			rules = wulframMode3
		}
		const first = 65535 - 40 // the wrap comes soon
		model := receiver{ordered: rules.Delivery == Ordered, next: first, pending: map[int]bool{}}
		rules.Start = first
		hold := NewHold(discard{}, DefaultHold)
		stream := NewSequenceStream(hold, rules, false)
		oldest := first // not retired by the sender
		for i := range 400 {
			seq := oldest + random.IntN(15)
			if random.IntN(3) > 0 {
				seq = model.next + random.IntN(2)
			}
			r := take(hold, "x", i, i, AckNone)
			got := stream.Sent(r, uint64(seq%65535), []byte{byte(seq), byte(seq >> 8)}, NoCopy)
			hold.Push(r)
			want, acknowledged := model.take(seq)
			if got != want {
				t.Fatalf("seed %d, step %d: sequence %d: got %v, want %v", seed, i, seq, got, want)
			}
			if acknowledged {
				r := take(hold, "ack", i, i, AckNone)
				if v := stream.Acknowledged(r, uint64(seq%65535)); v != AcksNew && v != AcksAgain {
					t.Fatalf("seed %d, step %d: sequence %d: got %v", seed, i, seq, v)
				}
				hold.Push(r)
			}
			oldest = max(oldest, model.next-3)
		}
	}
}

func TestSequenceStreamAllocatesNothingOnceWarm(t *testing.T) {
	for _, limit := range []time.Duration{0, DefaultHold} {
		h := NewHold(discard{}, limit)
		s := NewSequenceStream(h, wulframMode3, false)
		payload := []byte("hello there 0000")
		seq, ms := uint64(1), 0
		round := func() {
			for range 4 {
				ms++
				payload[15] = byte(seq)
				r := h.Take()
				r.Time, r.Raw = at(ms), payload
				r.Packets = append(r.Packets, ms)
				s.Sent(r, seq, payload, NoCopy)
				if len(r.Notes) > 0 {
					t.Fatal(r.Notes)
				}
				h.Push(r)

				ms++
				r = h.Take()
				r.Time = at(ms)
				r.Packets = append(r.Packets, ms)
				if got := s.Acknowledged(r, seq); got != AcksNew {
					t.Fatal(got)
				}
				h.Push(r)
				seq = s.rules.Serial.Next(seq)
			}
		}
		for range historySize {
			round()
		}
		if got := testing.AllocsPerRun(100, round); got != 0 {
			t.Errorf("limit %v: got %v allocations, want 0", limit, got)
		}
	}
}

// Whatever is sent and acknowledged, each record comes out once and in order.
func FuzzSequenceStream(f *testing.F) {
	f.Add([]byte{0, 1, 0, 2, 3, 1, 3, 2}, false)
	f.Add([]byte{0, 0xfe, 1, 0xff, 4, 3, 0, 3, 5, 9, 6, 9, 7, 0}, true)
	f.Fuzz(func(t *testing.T, script []byte, joined bool) {
		var j journal
		h := NewHold(&j, 50*time.Millisecond)
		rules := []Rules{wulframMode1, wulframMode3, lotr2Slots, netrekSequence}[len(script)%4]
		s := NewSequenceStream(h, rules, joined)
		var want []string
		for i := 0; i+1 < len(script); i += 2 {
			seq := uint64(script[i+1])
			if seq >= 0x80 {
				seq += 65535 - 0xfe
			}
			name := "r" + strconv.Itoa(i)
			r := take(h, name, i, 3*i, AckNone)
			switch script[i] % 8 {
			case 0, 1, 2:
				s.Sent(r, seq, script[i:i+1], Copy(script[i]%3))
			case 3, 4:
				s.Acknowledged(r, seq)
			case 5:
				s.Ignore(r, seq)
			case 6:
				s.SetStart(r, seq)
				s.SetStartAnswered(r, seq)
			case 7:
				s.Reset(joined)
			}
			want = append(want, name)
			h.Push(r)
		}
		h.Close()
		got := slices.DeleteFunc(j.lines, func(l string) bool { return strings.HasPrefix(l, "ack of") })
		for i := range got {
			got[i] = strings.Fields(got[i])[0]
		}
		if !slices.Equal(got, want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
		if s.history.count > historySize || len(s.queued) > historySize || len(s.ignored) > marksSize {
			t.Errorf("remembers %d, %d, %d", s.history.count, len(s.queued), len(s.ignored))
		}
	})
}

func BenchmarkSequenceStream(b *testing.B) {
	h := NewHold(discard{}, DefaultHold)
	s := NewSequenceStream(h, wulframMode3, false)
	payload := []byte("hello there 0000")
	b.ReportAllocs()
	b.SetBytes(int64(len(payload)))
	seq := uint64(1)
	for b.Loop() {
		r := h.Take()
		r.Time = start
		s.Sent(r, seq, payload, NoCopy)
		h.Push(r)
		r = h.Take()
		r.Time = start
		s.Acknowledged(r, seq)
		h.Push(r)
		seq = s.rules.Serial.Next(seq)
	}
}
