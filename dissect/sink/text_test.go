package sink

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"opscope/dissect"
	"opscope/schema"
	"opscope/schema/wire"
)

// print writes records as text in UTC.
func print(t *testing.T, o TextOptions, records ...*dissect.Record) string {
	t.Helper()
	var b bytes.Buffer
	o.Location = time.UTC
	o.Schema = protocols
	sink := NewText(&b, o)
	for _, r := range records {
		if err := sink.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := sink.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func compare(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s\ngot  %q\nwant %q", got, want, got, want)
	}
}

func TestTextLine(t *testing.T) {
	quiet := viewpoint()
	quiet.Notes = nil
	tcp := everything()
	tcp.Transport = schema.TCP
	tcp.Body.Nodes = tcp.Body.Nodes[:8]
	broken := frame("SP_PLAYER", 4, []byte{4, 1, 2, 3})
	broken.Protocol, broken.Transport = "netrek", schema.TCP
	add(broken, &schema.Field{Name: "pnum"}, schema.Uint, 8, 8, 1)
	broken.Err = &wire.Error{Layer: "netrek", Path: "SP_PLAYER.x", Offset: 4, Size: 12, Want: "4 bytes", Got: "2 left", Kind: wire.Truncated}
	unknown := frame("unknown(0x05)", 5, []byte{5, 1, 2})
	unknown.Rest = unknown.Raw[1:]
	unknown.Session, unknown.Direction = 0, dissect.UnknownDirection
	unknown.Notes = []dissect.Note{{Code: "unknown_opcode"}}
	teaching := frame("D_HANDSHAKE", 3, []byte{3, 0})
	teaching.Envelope.Mode = 0
	teaching.Packet = &schema.Packet{Teaches: []string{"stream_modes"}}
	add(teaching, &schema.Field{Name: "modes"}, schema.Array, 8, 8, 0)
	teaching.Ack.State = dissect.AckPending
	answer := acknowledging()
	answer.Notes = nil
	again := acknowledging()
	again.Notes = nil
	again.Envelope.Seq, again.Ack = 12, quiet.Ack
	again.Acks.Message, again.Acks.Seq = "COMM_MESSAGE", 1234
	again.Acks.Verdict, again.Acks.RTT = dissect.AcksAgain, -1
	remarkable := unseen()
	for _, code := range []string{"ack_before_capture", "same_payload_new_sequence", "sequence_gap"} {
		remarkable.Notes = append(remarkable.Notes, dissect.Note{Code: code, Text: "of which there is more to say"})
	}
	add(remarkable, &schema.Field{Name: "subtype"}, schema.Uint, 8, 8, 1)
	left := frame("PING", 6, []byte{6, 9})
	left.Rest = left.Raw[1:]
	left.Envelope = dissect.Envelope{Mode: 7, Seq: 123, Length: -1}
	left.Ack.State = dissect.AckUnacked
	left.Notes = []dissect.Note{{Code: "never_acknowledged"}}

	guessed, stated := *quiet, *quiet
	guessed.Envelope.Origin, stated.Envelope.Origin = schema.Guessed, schema.Default
	stated.Notes = []dissect.Note{{Code: "assumed_context"}}

	far := guessed
	far.Envelope.Seq = 65529
	snapped := *happenings()[0]
	snapped.Bytes, snapped.After, snapped.Before, snapped.Text = 1, 13, 13, dissect.SnapLength

	bare := frame("RESET_GAME", 0x3f, []byte{0x3f})
	bare.Notes = viewpoint().Notes

	for _, c := range []struct {
		name string
		r    *dissect.Record
		want string
	}{
		{"a sequenced record shows mode, sequence and acknowledgement", quiet,
			"20:15:02.310774   1  -> c2s udp  VIEWPOINT_INFO 0x35          9  latest 7   acked 41ms  entity_id=-1 (none)\n"},
		{"a mode that was guessed shows", &guessed,
			"20:15:02.310774   1  -> c2s udp  VIEWPOINT_INFO 0x35          9  latest? 7  acked 41ms  entity_id=-1 (none)\n"},
		{"so does one that was assumed, with what else was", &stated,
			"20:15:02.310774   1  -> c2s udp  VIEWPOINT_INFO 0x35          9  latest? 7  acked 41ms  entity_id=-1…  ! assumed_context\n"},
		{"a note keeps its code, and fields are cut for it", viewpoint(),
			"20:15:02.310774   1  -> c2s udp  VIEWPOINT_INFO 0x35          9  latest 7   acked 41ms  entity_id=-1 …  ! retransmission\n"},
		{"fields of a stream begin earlier and are cut at the width", tcp,
			"20:15:02.310774   1  <- s2c tcp  UPDATE_ARRAY 0x0E           64  data=deadbeef application={1C8248C0-9772-11CF-B74F-00C…\n"},
		{"an error that has no room behind the fields stands below", broken,
			"20:15:02.310774   1  -> c2s tcp  SP_PLAYER 0x04               4  pnum=1\n" +
				"                                 !! netrek/SP_PLAYER.x at byte 4 of 12: want 4 bytes, 2 left (truncated)\n"},
		{"an unknown opcode shows the body", unknown,
			"20:15:02.310774   -  --     udp  unknown(0x05)                3  body=0102  ! unknown_opcode\n"},
		{"a teaching packet says what it teaches", teaching,
			"20:15:02.310774   1  -> c2s udp  D_HANDSHAKE 0x03             2  raw        pending     teaches stream_modes  modes=0\n"},
		{"an acknowledgement names what it is for", answer,
			"20:15:02.310774   1  -> c2s udp  D_ACK 0x02                   5  raw        acks VIEWPOINT_INFO 7 (packet 12, 41ms)  …\n"},
		{"an acknowledgement says as much as there is room for", again,
			"20:15:02.310774   1  -> c2s udp  D_ACK 0x02                   5  raw 12     acked 41ms  acks COMM_MESSAGE 1234  …\n"},
		{"a context that was assumed shows", acknowledging(),
			"20:15:02.310774   1  -> c2s udp  D_ACK 0x02                   5  raw        acks VIEWPOINT_INFO 7  …  ! assumed_context\n"},
		{"codes of notes that have no room are counted", remarkable,
			"20:15:02.310774   1  -> c2s udp  D_ACK 0x02                   1  raw        subtype=1  ! ack_before_capture  ! +2\n"},
		{"a mode gives way to a long sequence", &far,
			"20:15:02.310774   1  -> c2s udp  VIEWPOINT_INFO 0x35          9  la…? 65529 acked 41ms  entity_id=-1 (none)\n"},
		{"notes begin where fields would", bare,
			"20:15:02.310774   1  -> c2s udp  RESET_GAME 0x3F              1  ! retransmission: same bytes as packet 11\n"},
		{"bytes left over are shown, and a mode without a name", left,
			"20:15:02.310774   1  -> c2s udp  PING 0x06                    2  mode 7 123 unacked     rest=09\n"},
		{"a secret is masked, also in a note", login(),
			"20:15:02.310774   1  -> c2s tcp  LOGIN 0x21                  11  kind=1 password=***  ! out_of_range: ***\n"},
		{"a secret cut short is masked in rest and error", brokenLogin(),
			"20:15:02.310774   1  -> c2s tcp  LOGIN 0x21                  11  kind=1 rest=***\n" +
				"                                 !! wulfram/LOGIN.password at byte 4 of 11: want 9 bytes, got *** (truncated)\n"},
		{"a gap of the snap length says which packet was cut", &snapped,
			"20:15:02.310774   1  <- s2c tcp  -- gap: 1 byte of packet 13 cut off by the snap length --\n"},
		{"a gap has a line of its own", happenings()[0],
			"20:15:02.310774   1  <- s2c tcp  -- gap: 1,448 bytes not captured between packets 77 and 81; memory_limit --\n"},
		{"a late acknowledgement names its record", happenings()[1],
			"20:15:02.310774   1  --     tcp  -- ack: record 17 acknowledged by packet 14 after 41ms --\n"},
		{"a session shows its ends", happenings()[2],
			"20:15:02.310774   1              -- session: wulfram opened, 10.0.0.2:50111 -> 10.0.0.1:2627; handshake --\n"},
		{"an event shows its code", happenings()[3],
			"20:15:02.310774   1  --     tcp  -- resync: frame found after 12 bytes --\n"},
	} {
		t.Run(c.name, func(t *testing.T) { compare(t, print(t, TextOptions{}, c.r), c.want) })
	}
}

func TestTextValues(t *testing.T) {
	got := print(t, TextOptions{Width: -1}, everything())
	_, fields, _ := strings.Cut(got, "data=")
	compare(t, "data="+fields, "data=deadbeef application={1C8248C0-9772-11CF-B74F-00C0DF413ED1} host=127.0.0.1 "+
		"token_id=18446744073709551615 bits=0x2d (definition bank=3 0x20) ping=1.5 yaw=NaN local_state=- "+
		"position=(1.5, 0.1, -3) entities=1\n")
}

func TestWhatAnAcknowledgementRepeatsIsLeftOut(t *testing.T) {
	r := acknowledging()
	r.Notes = nil
	_, tail, _ := strings.Cut(print(t, TextOptions{Width: -1}, r), "raw        ")
	compare(t, tail, "acks VIEWPOINT_INFO 7 (packet 12, 41ms)  subtype=1\n")
	r.Acks.Verdict, r.Acks.RTT = dissect.AcksAgain, -1
	_, tail, _ = strings.Cut(print(t, TextOptions{Width: -1}, r), "raw        ")
	compare(t, tail, "acks VIEWPOINT_INFO 7 (packet 12, repeat)  subtype=1\n")
	_, details, _ := strings.Cut(print(t, TextOptions{Verbosity: 1}, r), "offset 0\n")
	compare(t, details, `
    envelope mode=0 (raw), context default
    acks VIEWPOINT_INFO 7 (packet 12, repeat)
    subtype = 1
    acked_opcode = 53 (VIEWPOINT_INFO)
    acked_sequence = 7
`[1:])
}

func TestTextDetails(t *testing.T) {
	compare(t, print(t, TextOptions{Verbosity: 1}, viewpoint()), `
20:15:02.310774   1  -> c2s udp  VIEWPOINT_INFO 0x35          9  latest 7   acked 41ms
    packets 12  10.0.0.2:50111 -> 10.0.0.1:2627  offset 0  acknowledged by packet 14
    envelope mode=1 (latest) seq=7 length=9, learned from packet 9
    entity_id = -1 (none)
    ! retransmission: same bytes as packet 11
`[1:])
	got := print(t, TextOptions{Verbosity: 1}, everything())
	_, details, _ := strings.Cut(got, "offset 0\n")
	compare(t, details, `
    data = deadbeef
    application = {1C8248C0-9772-11CF-B74F-00C0DF413ED1}
    host = 127.0.0.1
    token_id = 18446744073709551615
    bits = 0x2d (definition bank=3 0x20)
    ping = 1.5 ms
    yaw = NaN
    local_state = (absent)
    position = (1.5, 0.1, -3)
    entities = 1
        [0]
            id = 0
            team = 0  [guess]
`[1:])
}

// With -v the numbers of an array share a line, unless they are many, or secret;
// with -V each has its own, with its place.
func TestNumbersShareALine(t *testing.T) {
	vector := func(count int, f schema.Field) *dissect.Record {
		r := frame("POSITION", 0x14, make([]byte, 4*count))
		add(r, &f, schema.Array, 0, 32*count, 0)
		for i := range count {
			add(r, &schema.Field{}, schema.Float, 32*i, 32, math.Float64bits(float64(i)-299.765625))
		}
		nest(r, 0)
		return r
	}
	for _, c := range []struct {
		verbosity int
		r         *dissect.Record
		want      string
	}{
		{1, vector(3, schema.Field{Name: "at", Unit: "m"}), "    at = (-299.7656, -298.7656, -297.7656) m\n"},
		{1, vector(1, schema.Field{Name: "at", Confidence: schema.Guess}), "    at = (-299.7656)  [guess]\n"},
		{1, vector(0, schema.Field{Name: "at"}), "    at = 0\n"},
		{1, vector(2, schema.Field{Name: "at", Redact: schema.Secret}), "    at = ***\n"},
		{1, vector(9, schema.Field{Name: "at"}), "    at = 9\n        [0] = -299.765625\n        [1] = -298.765625\n"},
		{2, vector(2, schema.Field{Name: "at"}), "    at = 2  @0-7\n        [0] = -299.765625  @0-3 raw 0x00000000\n"},
	} {
		_, got, _ := strings.Cut(print(t, TextOptions{Verbosity: c.verbosity}, c.r), "offset 0\n")
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("got\n%swant\n%s", got, c.want)
		}
	}
}

func TestWhatAColumnSaysIsNotRepeatedOnTheLine(t *testing.T) {
	r := viewpoint()
	r.Ack, r.Notes = dissect.Ack{State: dissect.AckUnacked}, []dissect.Note{{Code: "never_acknowledged"}}
	if got := print(t, TextOptions{}, r); strings.Contains(got, "never") {
		t.Errorf("got %s", got)
	}
	if got := print(t, TextOptions{Verbosity: 1}, r) + printJSON(t, NDJSONOptions{}, r); strings.Count(got, "never_acknowledged") != 2 {
		t.Errorf("got %s", got)
	}
}

func TestTextEverything(t *testing.T) {
	r := everything()
	r.Body.Nodes = append(r.Body.Nodes[1:3:3], r.Body.Nodes[len(r.Body.Nodes)-4:]...)
	got := print(t, TextOptions{Verbosity: 2}, r)
	_, details, _ := strings.Cut(got, "offset 0\n")
	compare(t, details, `
    _ = 5  @5 raw 0x00
    part = 6  @6 raw 0x00
    entities: entity[1] = 1  @59-60
        [0]  @59-60
            id: u3 = 0  @59.0-59.2 raw 0b000
            team: u5 = 0  @59.3-59.7 raw 0b00000  [guess]
`[1:])
}

func TestTextHex(t *testing.T) {
	got := print(t, TextOptions{Hex: true}, viewpoint())
	_, dump, _ := strings.Cut(got, "\n")
	compare(t, dump, `
    0000  35 00 07 00 09 ff ff ff ff                       |5........|
          .. .. .. .. .. aa aa aa aa
    a entity_id 5-8
`[1:])
	got = print(t, TextOptions{Hex: true}, brokenLogin())
	_, dump, _ = strings.Cut(got, "(truncated)\n")
	compare(t, dump, `
    0000  00 0b 21 01 ** ** ** ** ** ** **                 |..!.*******|
          .. .. .. aa ?? ?? ?? ?? ?? ?? ??
    a kind 3   ?? undecoded 4-10
`[1:])
	bits := frame("BITS", 1, []byte{1, 0xff, 0x80})
	for i, width := range []int{3, 4, 4} {
		add(bits, &schema.Field{Name: string(rune('p' + i))}, schema.Uint, []int{8, 11, 15}[i], width, 0)
	}
	got = print(t, TextOptions{Hex: true, Width: 40}, bits)
	_, dump, _ = strings.Cut(got, "\n")
	compare(t, dump, `
    0000  01 ff 80                                         |...|
          .. a+ cc
    a p 1.0-1.2   b q 1.3-1.6
    c r 1.7-2.2
`[1:])
}

func TestTextColour(t *testing.T) {
	quiet := viewpoint()
	quiet.Notes = nil
	compare(t, print(t, TextOptions{Color: true}, quiet), "20:15:02.310774   1  \x1b[32m-> c2s\x1b[0m udp  \x1b[1mVIEWPOINT_INFO\x1b[22m 0x35"+
		"          9  latest 7   acked 41ms  \x1b[36mentity_id\x1b[0m=-1 (none)\n")
	for _, o := range []TextOptions{{}, {Verbosity: 1}, {Verbosity: 2}, {Hex: true}, {Width: 100}} {
		coloured := o
		coloured.Color = true
		compare(t, strip(print(t, coloured, all()...)), print(t, o, all()...))
	}
}

// strip removes colour sequences.
func strip(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		size, width := step([]byte(s))
		if width > 0 || s[0] != escape {
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

func TestTextFitsItsWidth(t *testing.T) {
	long := happenings()[3]
	long.Text = strings.Repeat("x", 300)
	for _, r := range append(all(), long) {
		for _, width := range []int{0, 100, 200} {
			limit := width
			if width == 0 {
				limit = 120
			}
			for line := range strings.Lines(print(t, TextOptions{Width: width, Color: true}, r)) {
				if n := columns([]byte(line)) - 1; n > max(limit, 88+32) {
					t.Errorf("%d columns of %d: %s", n, limit, line)
				}
			}
		}
	}
}

func TestColumnsAreCountedAsTheyAreWritten(t *testing.T) {
	records := append(all(), says("Größe 日本 \x1b[2J, a text that is cut somewhere in its middle"))
	for _, r := range records {
		if r.Err != nil || r.Type != dissect.FrameRecord {
			continue // nothing follows that would need the column
		}
		for width := 80; width < 200; width++ {
			sink := NewText(io.Discard, TextOptions{Width: width, Color: width%2 == 0, Schema: protocols})
			if err := sink.Write(r); err != nil {
				t.Fatal(err)
			}
			if got, want := sink.column(sink.out.buf), columns(sink.out.buf); got != want {
				t.Errorf("width %d: got %d columns, want %d: %q", width, got, want, sink.out.buf)
			}
		}
	}
}

func TestTextTimes(t *testing.T) {
	second := viewpoint()
	second.Time = at.Add(-1500 * time.Millisecond)
	second.Digits = 3
	exact := viewpoint()
	exact.Digits = 0
	exact.Time = at.Add(2 * time.Second)
	exact.Started, exact.Previous = at.Add(-time.Minute), at.Add(time.Second)
	for word, want := range map[string][3]string{
		"a":    {"20:15:02.310774", "20:15:00.810", "20:15:04"},
		"u":    {"20:15:02.310774", "20:15:00.810", "20:15:04"},
		"ad":   {"2026-11-29 20:15:02.310774", "2026-11-29 20:15:00.810", "2026-11-29 20:15:04"},
		"ud":   {"2026-11-29 20:15:02.310774", "2026-11-29 20:15:00.810", "2026-11-29 20:15:04"},
		"adoy": {"2026/333 20:15:02.310774", "2026/333 20:15:00.810", "2026/333 20:15:04"},
		"udoy": {"2026/333 20:15:02.310774", "2026/333 20:15:00.810", "2026/333 20:15:04"},
		"e":    {"1795983302.310774", "1795983300.810", "1795983304"},
		"r":    {"    0.000000", "   -1.500", "   62"},
		"d":    {"    0.000000", "   -1.500", "    1"},
		"dd":   {"    0.000000", "   -1.500", "    3"},
	} {
		format, ok := TimeFormatOf(word)
		if !ok || format.String() != word {
			t.Fatalf("no format %q", word)
		}
		got := strings.Split(print(t, TextOptions{Time: format}, viewpoint(), second, exact), "\n")
		for i, w := range want {
			if i == 2 && (word == "r") {
				w = "   62"
			}
			if !strings.HasPrefix(got[i], w+"   1  ") {
				t.Errorf("-t %s, line %d: got %q, want %q", word, i, got[i], w)
			}
		}
	}
	tokyo := time.FixedZone("Asia/Tokyo", 9*3600)
	var b bytes.Buffer
	for _, format := range []TimeFormat{Absolute, UTC} {
		sink := NewText(&b, TextOptions{Location: tokyo, Time: format, Immediate: true})
		_ = sink.Write(viewpoint())
	}
	if got := b.String(); !strings.HasPrefix(got, "05:15:02.310774 ") || !strings.Contains(got, "\n20:15:02.310774 ") {
		t.Errorf("got %s", got)
	}
}

func TestErrorTextIsThatOfWire(t *testing.T) {
	for _, e := range []*wire.Error{
		{Layer: "netrek", Path: "SP_PLAYER.x", Offset: 4, Size: 12, Want: "4 bytes", Got: "2 left", Kind: wire.Truncated},
		{Layer: "wulfram", Offset: 3, Bit: 5, Want: "length >= 3", Got: "1"},
		{Layer: "mmo", Want: "a header", Kind: wire.Incomplete},
	} {
		var m dissect.Redactor
		compare(t, string(appendError(nil, &dissect.Record{Err: e}, &m)), e.Error())
	}
}

func TestHostileText(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"an erase sequence", "\x1b[2J", `\x1b[2J`},
		{"a clipboard sequence", "\x1b]52;c;aGk=\x07", `\x1b]52;c;aGk=\x07`},
		{"a C1 rune", "\u009b31m", `\u009b31m`},
		{"a bare C1 byte", "\x9b31m", `�31m`},
		{"a bidirectional override", "a\u202eb", `a\u202eb`},
		{"isolates", "\u2066\u2069", `\u2066\u2069`},
		{"marks and zero width", "\u200e\u200f\u200b\ufeff", `\u200e\u200f\u200b\ufeff`},
		{"separators", "\u2028\u2029", `\u2028\u2029`},
		{"a tag", "\U000e0041", `\U000e0041`},
		{"line ends and tabs", "a\r\n\tb", `a\r\n\tb`},
		{"delete", "\x7f", `\x7f`},
		{"quotes and backslashes", `"\`, `\"\\`},
		{"letters of any script", "Größe 日本", `Größe 日本`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := print(t, TextOptions{Width: -1}, says(c.text))
			_, got, _ = strings.Cut(got, "text=")
			compare(t, got, `"`+c.want+"\"\n")
		})
	}
	t.Run("names of fields that a program made up", func(t *testing.T) {
		r := says("x")
		r.Body.Nodes[0].Field = &schema.Field{Name: "\x1b[2J"}
		inside := everything()
		inside.Body.Nodes[len(inside.Body.Nodes)-1].Field = r.Body.Nodes[0].Field
		for _, o := range []TextOptions{{}, {Verbosity: 1}, {Verbosity: 2, Hex: true}} {
			if got := print(t, o, r, inside); strings.ContainsRune(got, escape) || !strings.Contains(got, `\x1b[2J`) {
				t.Errorf("got %q", got)
			}
		}
	})
	t.Run("bytes that are no UTF-8", func(t *testing.T) {
		compare(t, string(appendEscaped(nil, "a\xffb\xc3")), `a\xffb\xc3`)
	})
	t.Run("64 KiB are cut with their length", func(t *testing.T) {
		long := says(strings.Repeat("A", 65536))
		got := print(t, TextOptions{}, long)
		_, got, _ = strings.Cut(got, "text=")
		compare(t, got, `"`+strings.Repeat("A", 30)+`…" (65,536 bytes)`+"\n")
		if got := print(t, TextOptions{Verbosity: 2}, long); !strings.Contains(got, strings.Repeat("A", 65536)) {
			t.Error("-V does not show the whole text")
		}
	})
}

// failing is a writer that fails.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errBroken }

var errBroken = &wire.Error{Layer: "pipe"}

func TestWriteErrorsStick(t *testing.T) {
	for _, s := range []dissect.Sink{NewText(failing{}, TextOptions{Immediate: true}), NewNDJSON(failing{}, NDJSONOptions{Immediate: true})} {
		if err := s.Write(viewpoint()); err != errBroken {
			t.Errorf("got %v", err)
		}
		if err := s.Write(viewpoint()); err != errBroken {
			t.Errorf("got %v", err)
		}
	}
}
