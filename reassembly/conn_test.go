package reassembly

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// transcript is a Handler that writes down what it is told, a line each:
// "0 chunk 4 BBBB", "0 gap 4+6 not_captured after 2 before 4", "0 closed 8".
type transcript struct {
	lines []string
	next  [2]int64 // where the next chunk or gap must stand
	lost  [2]int64
	bytes [2][]byte
}

func (r *transcript) Chunk(c *Chunk) {
	r.advance(c.Side, c.Offset, int64(len(c.Data)))
	r.bytes[c.Side] = append(r.bytes[c.Side], c.Data...)
	text := string(c.Data)
	if len(text) > 40 {
		text = fmt.Sprintf("(%d bytes)", len(text))
	}
	if c.Cut {
		text += " cut"
	}
	r.printf("%d chunk %d %s", c.Side, c.Offset, text)
}

func (r *transcript) Gap(g Gap) {
	if g.Offset >= 0 || g.Offset+g.Bytes > 0 { // else it lies before the start
		r.advance(g.Side, g.Offset, g.Bytes)
	}
	r.lost[g.Side] += g.Bytes
	r.printf("%d gap %d+%d %s after %d before %d", g.Side, g.Offset, g.Bytes, g.Reason, g.After, g.Before)
}

func (r *transcript) Event(e Event) {
	switch {
	case e.Bytes > 0:
		r.printf("%d %s %d+%d", e.Side, e.Kind, e.Offset, e.Bytes)
	default:
		r.printf("%d %s %d", e.Side, e.Kind, e.Offset)
	}
}

func (r *transcript) advance(side Side, off, n int64) {
	if off != r.next[side] || n <= 0 {
		r.printf("WRONG: offset %d, %d bytes, want them at %d", off, n, r.next[side])
	}
	r.next[side] = off + n
}

func (r *transcript) printf(format string, a ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, a...))
}

// step is one packet of a test: a segment some time after the one before it.
type step struct {
	Segment
	after time.Duration
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// play gives the steps to a Conn as packets 1, 2, ..., and to a new one where a
// connection begins. It returns the last Conn, not flushed.
func play(a *Assembler, r *transcript, steps ...step) *Conn {
	c := a.Connection(r)
	at := epoch
	for i, s := range steps {
		at = at.Add(s.after)
		s.Time, s.Packet = at, i+1
		a.Tick(at)
		if !c.Add(&s.Segment) {
			r.printf("new connection")
			r.next = [2]int64{}
			c = a.Connection(r)
			if !c.Add(&s.Segment) {
				r.printf("WRONG: refused by a new connection")
			}
		}
	}
	return c
}

func data(side Side, seq uint32, text string) step {
	return step{Segment: Segment{Side: side, Seq: seq, Payload: []byte(text)}}
}

func syn(side Side, isn uint32) step {
	return step{Segment: Segment{Side: side, Seq: isn, Flags: SYN}}
}

func synAck(side Side, isn, ack uint32) step {
	return step{Segment: Segment{Side: side, Seq: isn, Ack: ack, Flags: SYN | ACK}}
}

func ack(side Side, seq, ack uint32) step {
	return step{Segment: Segment{Side: side, Seq: seq, Ack: ack, Flags: ACK}}
}

func fin(side Side, seq uint32, text string) step {
	s := data(side, seq, text)
	s.Flags = FIN
	return s
}

func rst(side Side, seq uint32) step {
	return step{Segment: Segment{Side: side, Seq: seq, Flags: RST}}
}

// cut is data of which the capture has the first n bytes.
func cut(side Side, seq uint32, text string, n int) step {
	s := data(side, seq, text[:n])
	s.Length = len(text)
	return s
}

// later is s, d after the packet before it.
func later(d time.Duration, s step) step {
	s.after = d
	return s
}

func TestConn(t *testing.T) {
	for _, test := range []struct {
		name    string
		options Options
		steps   []step
		flush   bool
		want    string
	}{
		// How a stream starts.
		{
			name:  "B01: a stream without a SYN starts at once, at the first data",
			steps: []step{data(0, 100, "AAAA"), data(0, 104, "BBBB")},
			want:  `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 chunk 4 BBBB`,
		}, {
			name:  "B01: a segment from before the start is reported and not delivered",
			steps: []step{data(0, 104, "BBBB"), data(0, 100, "AAAA"), data(0, 102, "AABBBBCC")},
			want: `0 joined_mid_stream 0; 0 chunk 0 BBBB; 0 before_start -4+4;
				0 before_start -2+2; 0 overlap 0+4; 0 chunk 4 CC`,
		}, {
			name: "what lies between early bytes and the start is a gap, told at the end",
			steps: []step{data(0, 120, "BBBB"), data(0, 104, "AA"), data(0, 100, "ZZ"), data(0, 106, "AA"),
				data(0, 118, "YY"), data(0, 110, "XX")},
			flush: true,
			want: `0 joined_mid_stream 0; 0 chunk 0 BBBB; 0 before_start -16+2; 0 before_start -20+2; 0 before_start -14+2;
				0 before_start -2+2; 0 before_start -10+2; 0 gap -18+2 not_captured after 3 before 4;
				0 gap -12+2 not_captured after 4 before 6; 0 gap -8+6 not_captured after 6 before 5`,
		}, {
			name:  "a gap before the start is told once, and before the end",
			steps: []step{data(0, 120, "BBBB"), data(0, 110, "XX"), fin(0, 124, ""), data(0, 110, "XX")},
			flush: true,
			want: `0 joined_mid_stream 0; 0 chunk 0 BBBB; 0 before_start -10+2; 0 gap -8+8 not_captured after 2 before 1;
				0 closed 4; 0 before_start -10+2`,
		}, {
			name:  "the acknowledgement of the answer to a SYN tells where the other stream starts",
			steps: []step{syn(0, 99), ack(0, 100, 500), data(1, 504, "BBBB"), data(1, 500, "AAAA"), synAck(1, 499, 100)},
			want:  `0 opened 0; 1 out_of_order 0+4; 1 chunk 0 AAAA; 1 chunk 4 BBBB; 1 out_of_order 0`,
		}, {
			name:  "an acknowledgement behind data tells no start",
			steps: []step{syn(0, 99), data(0, 100, "CC"), ack(0, 102, 504), data(1, 504, "BBBB"), data(1, 500, "AAAA")},
			want:  `0 opened 0; 0 chunk 0 CC; 1 joined_mid_stream 0; 1 chunk 0 BBBB; 1 before_start -4+4`,
		}, {
			name:  "bare acknowledgements do not start a stream",
			steps: []step{ack(0, 99, 500), ack(0, 100, 500), data(0, 110, "AAAA")},
			want:  `0 joined_mid_stream 0; 0 chunk 0 AAAA`,
		}, {
			name:  "a stream joined at a keep-alive probe does not begin with its garbage",
			steps: []step{ack(1, 500, 104), data(0, 103, "\x00"), data(0, 104, "BBBB")},
			want:  `0 joined_mid_stream 0; 0 keep_alive -1+1; 0 chunk 0 BBBB`,
		}, {
			name:  "the answer alone tells where both streams start and who opened",
			steps: []step{synAck(1, 499, 100), data(0, 104, "BBBB"), data(0, 100, "AAAA")},
			want:  `0 opened 0; 0 out_of_order 0+4; 0 chunk 0 AAAA; 0 chunk 4 BBBB`,
		}, {
			name:  "a SYN may carry data",
			steps: []step{{Segment: Segment{Seq: 99, Flags: SYN, Payload: []byte("AAAA")}}, data(0, 104, "BBBB")},
			want:  `0 opened 0; 0 chunk 0 AAAA; 0 chunk 4 BBBB`,
		}, {
			name:  "data of a SYN that is sent again comes once",
			steps: []step{{Segment: Segment{Seq: 99, Flags: SYN, Payload: []byte("AAAA")}}, synAck(1, 499, 100), data(0, 100, "AAAA")},
			want:  `0 opened 0; 0 chunk 0 AAAA; 0 retransmission 0+4`,
		}, {
			name:  "B05: a SYN sent again is the same connection",
			steps: []step{syn(0, 99), synAck(1, 499, 100), syn(0, 99), ack(0, 100, 500), data(0, 100, "AAAA")},
			want:  `0 opened 0; 0 syn_retransmission 0; 0 chunk 0 AAAA`,
		}, {
			name:  "a second answer of a forgetful server is the same connection",
			steps: []step{syn(0, 99), synAck(1, 499, 100), synAck(1, 899, 100), data(1, 900, "AAAA")},
			want:  `0 opened 0; 1 chunk 0 AAAA`,
		}, {
			name: "B07: the first SYN after the end is the same connection",
			steps: []step{synAck(1, 499, 100), data(0, 100, "AAAA"), fin(0, 104, ""), fin(1, 500, ""),
				syn(0, 99)},
			want: `0 opened 0; 0 chunk 0 AAAA; 0 closed 4; 1 closed 0; 0 out_of_order 0`,
		}, {
			name:  "B07: the first SYN after the end of a stream without an answer is the same connection",
			steps: []step{data(0, 100, "AAAA"), fin(0, 104, ""), syn(0, 99), syn(0, 99)},
			want: `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 closed 4; 0 out_of_order 0; 0 opened 0;
				0 syn_retransmission 0`,
		}, {
			name:  "B07: the SYN of a side that only acknowledges is the same connection",
			steps: []step{data(1, 500, "AAAA"), ack(0, 100, 504), syn(0, 99)},
			want:  `1 joined_mid_stream 0; 1 chunk 0 AAAA; 0 opened 0`,
		},

		// How endpoints are used again.
		{
			name:  "B04: a SYN with another number begins a new connection",
			steps: []step{syn(0, 99), data(0, 100, "AAAA"), syn(0, 5000), data(0, 5001, "BBBB")},
			want: `0 opened 0; 0 chunk 0 AAAA; 0 port_reused 4; new connection;
				0 opened 0; 0 chunk 0 BBBB`,
		}, {
			name:  "B04: so does one with a lower number",
			steps: []step{syn(0, 9999), data(0, 10000, "AAAA"), syn(0, 4999), data(0, 5000, "BBBB")},
			want: `0 opened 0; 0 chunk 0 AAAA; 0 port_reused 4; new connection;
				0 opened 0; 0 chunk 0 BBBB`,
		}, {
			name:  "B04: so does one after a reset by one side",
			steps: []step{syn(0, 99), data(0, 100, "AAAA"), rst(0, 104), syn(0, 4999), data(0, 5000, "BBBB")},
			want: `0 opened 0; 0 chunk 0 AAAA; 0 reset 4; 0 port_reused 4; new connection;
				0 opened 0; 0 chunk 0 BBBB`,
		}, {
			name:  "B04: what waits is delivered before the new connection begins",
			steps: []step{syn(0, 99), data(0, 104, "BBBB"), syn(0, 5000)},
			want: `0 opened 0; 0 gap 0+4 not_captured after 0 before 2; 0 chunk 4 BBBB; 0 port_reused 8;
				new connection; 0 opened 0`,
		}, {
			name:  "B04: the answer to a SYN that was not captured begins a new connection",
			steps: []step{syn(0, 99), synAck(1, 499, 100), data(1, 500, "AAAA"), synAck(1, 70000, 5001), data(0, 5001, "BBBB")},
			want: `0 opened 0; 1 chunk 0 AAAA; 1 port_reused 4; new connection;
				0 opened 0; 0 chunk 0 BBBB`,
		}, {
			name:  "B04: a SYN in a stream joined mid-way begins a new connection",
			steps: []step{data(0, 1000000, "AAAA"), syn(0, 99)},
			want:  `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 port_reused 4; new connection; 0 opened 0`,
		}, {
			name:  "B04: so does one from a side that only acknowledged elsewhere",
			steps: []step{data(1, 500, "AAAA"), ack(0, 7000, 504), syn(0, 99)},
			want:  `1 joined_mid_stream 0; 1 chunk 0 AAAA; 0 port_reused 0; new connection; 0 opened 0`,
		}, {
			name: "a stream that goes on far behind is a new connection whose SYN is missing",
			steps: []step{data(0, 1<<30, "AAAA"), data(0, 100, "BBBB"), data(0, 104, "CCCC"),
				data(0, 108, "DDDD")},
			want: `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 out_of_window -1073741724+4; 0 port_reused 4;
				new connection; 0 joined_mid_stream 0; 0 chunk 0 CCCC; 0 chunk 4 DDDD`,
		}, {
			name: "so is one that goes on far ahead of its end",
			steps: []step{fin(0, 100, "AAAA"), data(0, 1<<30, "BBBB"), data(0, 1<<30+4, "CCCC"),
				data(0, 1<<30+8, "DDDD")},
			want: `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 closed 4; 0 out_of_window 1073741724+4; 0 port_reused 4;
				new connection; 0 joined_mid_stream 0; 0 chunk 0 CCCC; 0 chunk 4 DDDD`,
		},

		// How a stream ends.
		{
			name:  "B02: a refused connection closes at once",
			steps: []step{syn(0, 99), {Segment: Segment{Side: 1, Ack: 100, Flags: RST | ACK}}},
			want:  `0 opened 0; 1 reset 0`,
		}, {
			name:  "B02: a reset by one side ends both",
			steps: []step{syn(0, 99), synAck(1, 499, 100), ack(0, 100, 500), data(0, 100, "AAAA"), rst(1, 500), data(0, 104, "BBBB")},
			want:  `0 opened 0; 0 chunk 0 AAAA; 1 reset 0; 0 after_close 4+4`,
		}, {
			name:  "B02: what waits is delivered before the reset",
			steps: []step{syn(0, 99), data(0, 104, "BBBB"), rst(1, 500)},
			want:  `0 opened 0; 0 gap 0+4 not_captured after 0 before 2; 0 chunk 4 BBBB; 1 reset 0`,
		}, {
			name:  "a reset tells of bytes before it that the peer acknowledged and nothing brought",
			steps: []step{syn(0, 99), data(0, 100, "AAAA"), ack(1, 500, 108), rst(0, 108)},
			want:  `0 opened 0; 0 chunk 0 AAAA; 0 gap 4+4 not_captured after 2 before 4; 0 reset 8`,
		}, {
			name:  "a reset by the peer that acknowledged them as well",
			steps: []step{syn(0, 99), data(0, 100, "AAAA"), ack(1, 500, 108), rst(1, 500)},
			want:  `0 opened 0; 0 chunk 0 AAAA; 0 gap 4+4 not_captured after 2 before 4; 1 reset 0`,
		}, {
			name:  "but not where one byte more is acknowledged, which may be a FIN",
			steps: []step{syn(0, 99), data(0, 100, "AAAA"), ack(1, 500, 105), rst(1, 500)},
			want:  `0 opened 0; 0 chunk 0 AAAA; 1 reset 0`,
		}, {
			name:  "nor of a stream of which nothing was captured",
			steps: []step{synAck(1, 499, 100), ack(1, 500, 108), rst(1, 500)},
			want:  `0 opened 0; 1 reset 0`,
		}, {
			name:  "nor of those that nobody acknowledged, which may never have been",
			steps: []step{syn(0, 99), data(0, 100, "AAAA"), ack(1, 500, 104), rst(0, 108)},
			want:  `0 opened 0; 0 chunk 0 AAAA; 0 reset 4`,
		}, {
			name:  "a reset with data tells its size and does not deliver it",
			steps: []step{data(0, 100, "AAAA"), {Segment: Segment{Seq: 104, Flags: RST, Payload: []byte("go away")}}},
			want:  `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 reset 4+7`,
		}, {
			name:  "a reset from elsewhere is set aside",
			steps: []step{data(0, 100, "AAAA"), rst(0, 1<<30), data(0, 104, "BBBB")},
			want:  `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 out_of_window 1073741724; 0 chunk 4 BBBB`,
		}, {
			name:  "B08: a FIN that comes early closes at its sequence number",
			steps: []step{syn(0, 99), fin(0, 104, "BBBB"), data(0, 100, "AAAA")},
			want:  `0 opened 0; 0 out_of_order 0+4; 0 chunk 0 AAAA; 0 chunk 4 BBBB; 0 closed 8`,
		}, {
			name:  "B08: a bare FIN that comes early waits too",
			steps: []step{data(0, 100, "AAAA"), fin(0, 108, ""), data(0, 104, "BBBB")},
			want:  `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 chunk 4 BBBB; 0 closed 8`,
		}, {
			name: "B08: a half-closed connection goes on the other way",
			steps: []step{syn(0, 99), synAck(1, 499, 100), fin(0, 100, "AAAA"), ack(1, 500, 105),
				later(time.Minute, data(1, 500, "BBBB")), ack(0, 105, 504), fin(1, 504, "")},
			want: `0 opened 0; 0 chunk 0 AAAA; 0 closed 4; 1 chunk 0 BBBB; 1 closed 4`,
		}, {
			name:  "B08: a FIN behind bytes that never come closes after the gap",
			steps: []step{data(0, 100, "AAAA"), fin(0, 108, ""), later(3*time.Second, ack(1, 500, 0))},
			want:  `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 gap 4+4 not_captured after 1 before 2; 0 closed 8`,
		}, {
			name:  "B10: a reset after a FIN of the same side ends both",
			steps: []step{syn(0, 99), fin(0, 100, ""), rst(0, 101), data(1, 500, "AAAA")},
			want:  `0 opened 0; 0 closed 0; 0 reset 0; 1 joined_mid_stream 0; 1 after_close 0+4`,
		}, {
			name:  "a FIN sent again closes once",
			steps: []step{fin(0, 100, "AAAA"), fin(0, 104, ""), fin(0, 100, "AAAA")},
			want:  `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 closed 4; 0 retransmission 4; 0 retransmission 0+4`,
		}, {
			name:  "a FIN before bytes that were sent is ignored",
			steps: []step{data(0, 100, "AAAA"), fin(0, 102, ""), data(0, 104, "BBBB")},
			want:  `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 misplaced_fin 2; 0 chunk 4 BBBB`,
		}, {
			name:  "bytes behind the FIN are reported and not delivered",
			steps: []step{fin(0, 100, "AAAA"), data(0, 102, "AABB")},
			want:  `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 closed 4; 0 after_close 4+2; 0 retransmission 2+2`,
		}, {
			name: "B11: a direction that was idle is still open",
			steps: []step{data(0, 100, "AAAA"), data(1, 500, "B"), later(150*time.Second, data(1, 501, "B")),
				later(150*time.Second, data(0, 104, "CCCC"))},
			want: `0 joined_mid_stream 0; 0 chunk 0 AAAA; 1 joined_mid_stream 0; 1 chunk 0 B; 1 chunk 1 B; 0 chunk 4 CCCC`,
		},

		// What comes twice.
		{
			name:  "B13: a retransmission across the wrap brings its new bytes once",
			steps: []step{syn(0, 0xFFFFFFFB), data(0, 0xFFFFFFFC, "ABCDEFGH"), data(0, 0xFFFFFFFC, "ABCDEFGHIJKL")},
			want:  `0 opened 0; 0 chunk 0 ABCDEFGH; 0 overlap 0+8; 0 chunk 8 IJKL`,
		}, {
			name:  "B13: a hole across the wrap is as long as it is",
			steps: []step{data(0, 0xFFFFFFF9, "AAAA"), data(0, 3, "BBBB")},
			flush: true,
			want:  `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 gap 4+6 not_captured after 1 before 2; 0 chunk 10 BBBB`,
		}, {
			name:    "B16: keep-alive probes with garbage change nothing",
			options: Options{History: 64},
			steps: []step{data(0, 100, "AAAA"), ack(1, 500, 104), data(0, 103, "\x00"), data(0, 103, "\x00"),
				data(0, 103, "\x00"), data(0, 104, "BBBB")},
			want: `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 keep_alive 3+1; 0 keep_alive 3+1; 0 keep_alive 3+1; 0 chunk 4 BBBB`,
		}, {
			name:  "a single byte not yet acknowledged is a retransmission and no keep-alive",
			steps: []step{ack(1, 500, 100), data(0, 100, "A"), data(0, 100, "A"), ack(1, 500, 101), data(0, 100, "\x00")},
			want:  `0 joined_mid_stream 0; 0 chunk 0 A; 0 retransmission 0+1; 0 keep_alive 0+1`,
		}, {
			name:  "B17: copies are counted and nothing empty is delivered",
			steps: []step{data(0, 100, "AAAA"), data(0, 100, "AAAA"), data(0, 100, "AAAA"), ack(0, 103, 500)},
			want:  `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 retransmission 0+4; 0 retransmission 0+4; 0 keep_alive 3`,
		}, {
			name: "B19: retransmissions longer or shorter than the original bring what is new",
			steps: []step{data(0, 100, "abcdefghij"), data(0, 105, "fghijklmno"),
				data(0, 100, "abcdefghijklmnopqrstuvwxyz0123"), data(0, 120, "uvwx")},
			want: `0 joined_mid_stream 0; 0 chunk 0 abcdefghij; 0 overlap 5+5; 0 chunk 10 klmno;
				0 overlap 0+15; 0 chunk 15 pqrstuvwxyz0123; 0 retransmission 20+4`,
		}, {
			name:    "of bytes delivered the first copy wins and the second is told",
			options: Options{History: 6},
			steps:   []step{data(0, 100, "ABCDEFGH"), data(0, 100, "xxCdeFGHI")},
			want:    `0 joined_mid_stream 0; 0 chunk 0 ABCDEFGH; 0 overlap_conflict 3+2; 0 overlap 0+8; 0 chunk 8 I`,
		}, {
			name:  "of bytes that wait the first copy wins and the second is told",
			steps: []step{syn(0, 99), data(0, 102, "CDEF"), data(0, 100, "ABxDxFGH"), data(0, 103, "D")},
			want: `0 opened 0; 0 overlap_conflict 2+2; 0 overlap 0+4; 0 chunk 0 AB; 0 chunk 2 CDEF; 0 chunk 6 GH;
				0 retransmission 3+1`,
		}, {
			name:  "a copy of what waits is a retransmission",
			steps: []step{syn(0, 99), data(0, 102, "CDEF"), data(0, 102, "CDEF"), data(0, 103, "DE"), data(0, 100, "AB")},
			want:  `0 opened 0; 0 retransmission 2+4; 0 retransmission 3+2; 0 out_of_order 0+2; 0 chunk 0 AB; 0 chunk 2 CDEF`,
		}, {
			name:  "a segment over several that wait fills all holes between them",
			steps: []step{syn(0, 99), data(0, 101, "B"), data(0, 103, "D"), data(0, 105, "F"), data(0, 101, "BCDEFG"), data(0, 100, "A")},
			want: `0 opened 0; 0 overlap 1+3; 0 out_of_order 0+1; 0 chunk 0 A; 0 chunk 1 B; 0 chunk 2 C; 0 chunk 3 D;
				0 chunk 4 E; 0 chunk 5 F; 0 chunk 6 G`,
		},

		// What is missing.
		{
			name:  "B20: a segment far ahead is set aside and the stream goes on",
			steps: []step{syn(0, 99), data(0, 100, "AAAA"), data(0, 100+0x7FFF0000, "x"), data(0, 104, "BBBB")},
			want:  `0 opened 0; 0 chunk 0 AAAA; 0 out_of_window 2147418112+1; 0 chunk 4 BBBB`,
		}, {
			name:  "a stream that goes on far ahead is followed there",
			steps: []step{data(0, 100, "AAAA"), data(0, 100+1<<26, "BBBB"), data(0, 104+1<<26, "CCCC")},
			want: `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 out_of_window 67108864+4;
				0 gap 4+67108864 not_captured after 1 before 3; 0 chunk 67108868 CCCC`,
		}, {
			name: "B22: a hole is given up after its time",
			steps: []step{data(0, 100, "AAAA"), data(0, 108, "CCCC"), later(time.Second, data(0, 112, "DDDD")),
				later(time.Second, data(0, 116, "EEEE"))},
			want: `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 gap 4+4 not_captured after 1 before 2; 0 chunk 8 CCCC;
				0 chunk 12 DDDD; 0 chunk 16 EEEE`,
		}, {
			name:    "B22: a hole is given up when too many bytes wait",
			options: Options{HeldBytes: 2 * (heldOverhead + 8)},
			steps:   []step{data(0, 100, "AAAA"), data(0, 108, "CCCC"), data(0, 112, "DDDD"), data(0, 116, "EEEE")},
			want: `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 gap 4+4 memory_limit after 1 before 2; 0 chunk 8 CCCC;
				0 chunk 12 DDDD; 0 chunk 16 EEEE`,
		}, {
			name:    "B22: a hole is given up when too many segments wait",
			options: Options{HeldSegments: 1},
			steps:   []step{data(0, 100, "AAAA"), data(0, 108, "CCCC"), data(0, 116, "EEEE")},
			flush:   true,
			want: `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 gap 4+4 memory_limit after 1 before 2; 0 chunk 8 CCCC;
				0 gap 12+4 not_captured after 2 before 3; 0 chunk 16 EEEE`,
		}, {
			name: "B22: an acknowledgement beyond a hole proves it once it has settled",
			steps: []step{data(0, 100, "AAAA"), data(0, 108, "CCCC"), ack(1, 500, 112), later(25*time.Millisecond, ack(1, 500, 112)),
				later(25*time.Millisecond, ack(1, 500, 112))},
			want: `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 gap 4+4 not_captured after 1 before 2; 0 chunk 8 CCCC`,
		}, {
			name: "an acknowledgement captured before the data it is for proves nothing yet",
			steps: []step{data(0, 100, "AAAA"), data(0, 108, "CCCC"), ack(1, 500, 112), later(time.Millisecond, ack(1, 500, 112)),
				data(0, 104, "BBBB")},
			want: `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 out_of_order 4+4; 0 chunk 4 BBBB; 0 chunk 8 CCCC`,
		}, {
			name: "a false segment ahead does not end a stream that makes progress",
			steps: []step{data(0, 100, "AAAA"), data(0, 1<<20, "x"), later(1500*time.Millisecond, data(0, 104, "BBBB")),
				later(1500*time.Millisecond, data(0, 108, "CCCC"))},
			want: `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 out_of_order 4+4; 0 chunk 4 BBBB; 0 out_of_order 8+4; 0 chunk 8 CCCC`,
		}, {
			name:  "bytes that come after their gap are told of",
			steps: []step{data(0, 100, "AAAA"), data(0, 108, "CCCC"), later(2*time.Second, ack(0, 112, 0)), data(0, 104, "BBBB")},
			want:  `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 gap 4+4 not_captured after 1 before 2; 0 chunk 8 CCCC; 0 too_late 4+4`,
		}, {
			name:  "a flush leaves the stream open",
			steps: []step{data(0, 100, "AAAA"), data(0, 108, "CCCC")},
			flush: true,
			want:  `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 gap 4+4 not_captured after 1 before 2; 0 chunk 8 CCCC`,
		}, {
			name: "B71: a time that goes back expires nothing, and one that leaps counts",
			steps: []step{data(0, 100, "AAAA"), data(0, 108, "CCCC"), later(-time.Hour, data(0, 112, "DDDD")),
				later(time.Hour+time.Second, data(0, 116, "EEEE")), later(time.Second, data(0, 120, "FFFF"))},
			want: `0 joined_mid_stream 0; 0 chunk 0 AAAA; 0 gap 4+4 not_captured after 1 before 2; 0 chunk 8 CCCC; 0 chunk 12 DDDD;
				0 chunk 16 EEEE; 0 chunk 20 FFFF`,
		},

		// What the capture cut.
		{
			name:  "B70: a cut segment brings what there is and a gap of the rest",
			steps: []step{cut(0, 100, "AAAABBBB", 4), data(0, 108, "CCCC")},
			want:  `0 joined_mid_stream 0; 0 chunk 0 AAAA cut; 0 gap 4+4 snap_length after 1 before 1; 0 chunk 8 CCCC`,
		}, {
			name:  "B70: headers alone keep the offsets right",
			steps: []step{syn(0, 99), cut(0, 100, "AAAA", 0), cut(0, 108, "CCCC", 0), cut(0, 104, "BBBB", 0), fin(0, 112, "")},
			want: `0 opened 0; 0 gap 0+4 snap_length after 2 before 2; 0 out_of_order 4+4; 0 gap 4+4 snap_length after 4 before 4;
				0 gap 8+4 snap_length after 3 before 3; 0 closed 12`,
		}, {
			name:  "B70: a whole copy fills a cut segment that waits",
			steps: []step{syn(0, 99), cut(0, 104, "BBBBCCCC", 4), data(0, 104, "BBBBCCCC"), data(0, 100, "AAAA")},
			want:  `0 opened 0; 0 retransmission 4+8; 0 out_of_order 0+4; 0 chunk 0 AAAA; 0 chunk 4 BBBB cut; 0 chunk 8 CCCC`,
		}, {
			name:  "B70: a whole copy of a cut segment comes too late when its gap is told",
			steps: []step{cut(0, 100, "AAAABBBB", 4), data(0, 100, "AAAABBBB"), data(0, 104, "BBBB"), data(0, 108, "CCCC")},
			want: `0 joined_mid_stream 0; 0 chunk 0 AAAA cut; 0 gap 4+4 snap_length after 1 before 1; 0 retransmission 0+8;
				0 too_late 4+4; 0 chunk 8 CCCC`,
		}, {
			name:  "B70: a part that waits stands in the middle of a cut segment",
			steps: []step{syn(0, 99), data(0, 104, "C"), cut(0, 100, "AABBCDD", 2)},
			want: `0 opened 0; 0 overlap 0+1; 0 chunk 0 AA; 0 gap 2+2 snap_length after 3 before 3; 0 chunk 4 C;
				0 gap 5+2 snap_length after 2 before 3`,
		}, {
			name:  "a wire length below the payload means the payload",
			steps: []step{{Segment: Segment{Seq: 100, Payload: []byte("AAAA"), Length: 2}}},
			want:  `0 joined_mid_stream 0; 0 chunk 0 AAAA`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := &Assembler{Options: test.options}
			var r transcript
			c := play(a, &r, test.steps...)
			if test.flush {
				c.Flush()
			}
			got, want := r.lines, strings.Split(test.want, ";")
			for i := range want {
				want[i] = strings.TrimSpace(want[i])
			}
			if !slices.Equal(got, want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
			}
			c.Flush()
			if a.held != 0 || a.waiting.first != nil || a.waiting.last != nil {
				t.Errorf("after Flush %d bytes are held", a.held)
			}
		})
	}
}

func TestConnKnowsWhatHasEnded(t *testing.T) {
	for _, test := range []struct {
		name  string
		steps []step
		want  [3]bool // Ended(0), Ended(1), Done()
	}{
		{"nothing before a FIN", []step{data(0, 100, "AAAA")}, [3]bool{}},
		{"one side by its FIN", []step{fin(0, 100, "AAAA")}, [3]bool{true, false, false}},
		{"no side by a FIN behind a hole", []step{syn(0, 99), fin(0, 104, "BBBB")}, [3]bool{}},
		{"both sides by their FINs", []step{fin(0, 100, "AAAA"), fin(1, 500, "")}, [3]bool{true, true, true}},
		{"both sides by one reset", []step{data(0, 100, "AAAA"), rst(1, 500)}, [3]bool{true, true, true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := play(new(Assembler), new(transcript), test.steps...)
			if got := [3]bool{c.Ended(0), c.Ended(1), c.Done()}; got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestCountersAdd(t *testing.T) {
	c := play(new(Assembler), new(transcript), data(0, 100, "AAAA"), data(0, 100, "AAAA"), data(0, 108, "CC"))
	c.Flush()
	var sum Counters
	for range 2 {
		k := c.Counters(0)
		sum.Add(&k)
	}
	want := Counters{Segments: 6, Bytes: 12, Gaps: 2, BytesLost: 8}
	want.Events[Joined], want.Events[Retransmission] = 2, 2
	if sum != want {
		t.Errorf("got %+v, want %+v", sum, want)
	}
}

func TestConnOrderAcrossTheWrap(t *testing.T) {
	// B14: 64 KiB in 1,400-byte segments from just below the wrap, two of them swapped.
	const start = 0xFFFFF000
	want := make([]byte, 64<<10)
	for i := range want {
		want[i] = byte(i / 4 >> (i % 4 * 8))
	}
	steps := []step{syn(0, start)}
	for off := 0; off < len(want); off += 1400 {
		steps = append(steps, data(0, start+1+uint32(off), string(want[off:min(off+1400, len(want))])))
	}
	steps[3], steps[4] = steps[4], steps[3]
	var r transcript
	c := play(new(Assembler), &r, steps...)
	if !bytes.Equal(r.bytes[0], want) || r.lost[0] != 0 {
		t.Errorf("got %d bytes and %d lost, want %d and 0", len(r.bytes[0]), r.lost[0], len(want))
	}
	if n := c.Counters(0).Events[OutOfOrder]; n != 1 {
		t.Errorf("got %d out of order, want 1", n)
	}
}

func TestConnHoleIsBounded(t *testing.T) {
	// B22: 10 bytes, a hole of 10, then 50 MB over 10 minutes.
	a := new(Assembler)
	var r transcript
	c := a.Connection(&r)
	payload := make([]byte, 1000)
	g := Segment{Seq: 100, Payload: payload[:10], Packet: 1, Time: epoch}
	c.Add(&g)
	g.Seq = 120
	g.Payload = payload
	peak := 0
	for range 50_000 {
		g.Packet++
		g.Time = g.Time.Add(12 * time.Millisecond)
		a.Tick(g.Time)
		c.Add(&g)
		g.Seq += 1000
		peak = max(peak, a.Held())
	}
	k := c.Counters(0)
	if k.Gaps != 1 || k.BytesLost != 10 || k.Bytes != 50_000_010 {
		t.Errorf("got %d gaps, %d lost, %d bytes; want 1, 10, 50000010", k.Gaps, k.BytesLost, k.Bytes)
	}
	if peak == 0 || peak > DefaultHeldBytes {
		t.Errorf("got a peak of %d bytes held, want at most %d", peak, DefaultHeldBytes)
	}
}

func TestConnBuffersCarryNothingOver(t *testing.T) {
	// B23: a flow with a gap, then a clean one in the same buffers, then the first.
	a := new(Assembler)
	var lossy, clean transcript
	x, y := a.Connection(&lossy), a.Connection(&clean)
	add := func(c *Conn, steps ...step) {
		for _, s := range steps {
			c.Add(&s.Segment)
		}
		c.Flush()
	}
	add(x, data(0, 100, "AAAA"), data(0, 108, "CCCC"))
	add(y, data(0, 100, "AAAA"), data(0, 108, "CC"), data(0, 104, "BBBB"))
	add(x, data(0, 116, "EEEE"), data(0, 112, "DDDD"))
	if lossy.lost[0] != 4 || string(lossy.bytes[0]) != "AAAACCCCDDDDEEEE" {
		t.Errorf("got %d lost and %q", lossy.lost[0], lossy.bytes[0])
	}
	if clean.lost[0] != 0 || string(clean.bytes[0]) != "AAAABBBBCC" {
		t.Errorf("got %d lost and %q", clean.lost[0], clean.bytes[0])
	}
}

func TestAssemblerGivesUpTheOldestHole(t *testing.T) {
	a := &Assembler{Options: Options{TotalBytes: 2 * (heldOverhead + 8)}}
	var r [3]transcript
	for i := range r {
		c := a.Connection(&r[i])
		for _, s := range []step{data(0, 100, "AAAA"), data(0, 108, "CCCC")} {
			s.Time = epoch.Add(time.Duration(i) * time.Millisecond)
			a.Tick(s.Time)
			c.Add(&s.Segment)
		}
	}
	a.Tick(epoch)
	got := [...]int64{r[0].lost[0], r[1].lost[0], r[2].lost[0]}
	if want := [...]int64{4, 0, 0}; got != want {
		t.Errorf("got %v bytes lost, want %v", got, want)
	}
	if !strings.Contains(strings.Join(r[0].lines, "\n"), "memory_limit") {
		t.Errorf("the gap does not say memory_limit: %q", r[0].lines)
	}
}

func TestConnAllocatesNothingPerSegment(t *testing.T) {
	a := new(Assembler)
	c := a.Connection(discard{})
	g := Segment{Seq: 100, Flags: ACK, Payload: make([]byte, 1400), Time: epoch}
	inOrder := func() {
		g.Time = g.Time.Add(time.Millisecond)
		a.Tick(g.Time)
		c.Add(&g)
		g.Seq += 1400
	}
	swapped := func() {
		g.Seq += 1400
		c.Add(&g)
		g.Seq -= 1400
		c.Add(&g)
		g.Seq += 2800
	}
	for name, f := range map[string]func(){"in order": inOrder, "swapped": swapped} {
		f()
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s: got %v allocations a segment, want 0", name, n)
		}
	}
}

type discard struct{}

func (discard) Chunk(*Chunk) {}
func (discard) Gap(Gap)      {}
func (discard) Event(Event)  {}

func BenchmarkConn(b *testing.B) {
	for _, bench := range []struct {
		name    string
		options Options
		size    int
		swapped bool
	}{
		{"in order, 1400 bytes", Options{}, 1400, false},
		{"in order, 60 bytes", Options{}, 60, false},
		{"in order, with history", Options{History: 4096}, 1400, false},
		{"swapped, 1400 bytes", Options{}, 1400, true},
	} {
		b.Run(bench.name, func(b *testing.B) {
			a := &Assembler{Options: bench.options}
			c := a.Connection(discard{})
			g := Segment{Flags: ACK, Payload: make([]byte, bench.size), Time: epoch}
			size := uint32(bench.size)
			c.Add(&g)
			b.SetBytes(int64(bench.size))
			b.ReportAllocs()
			for i := uint32(0); b.Loop(); i++ {
				at := i
				if bench.swapped {
					at ^= 1
				}
				g.Seq = size * (at + 1)
				g.Packet++
				a.Tick(g.Time)
				c.Add(&g)
			}
		})
	}
}
