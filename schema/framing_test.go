package schema

import (
	"bytes"
	"strings"
	"testing"

	"opscope/schema/wire"
)

const framed = `
protocol: test
order: le
align: byte
state: {modes: {opcode: mode}}
envelopes:
  game_frame:
    - opcode:   u8
    - length:   u8
    - checksum: u8
      check: sum8(body)
    - slot:     u6
    - copy:     u2
    - body:     body
  counted: [{length: u16be}, {opcode: u16}, {body: body}]
  plain:   [{opcode: u8}, {body: body}]
framings:
  frame: {kind: size_prefixed, envelope: game_frame, counts: frame, min: 4, max: 200}
  body:  {kind: size_prefixed, envelope: counted, counts: body, min: 0}
  whole: {kind: datagram, envelope: plain}
  many:  {kind: records, table: modes, modes: {0: plain, 1: game_frame}, max: 512}
packets:
  TEST:
    opcode: 1
    fields:
      - a: u8
      - b: u8
        if: slot == 5
`

func TestFramesAreFound(t *testing.T) {
	p := parse(t, framed)
	for _, c := range []struct {
		framing, hex string
		want         Frame
		fail         string
		kind         wire.Kind
	}{
		{"frame", "01 06 03 05 0102 ff", Frame{Opcode: 1, Size: 6, Head: 4, Seq: -1, Length: 6}, "", 0},
		{"frame", "01 04 00 00", Frame{Opcode: 1, Size: 4, Head: 4, Seq: -1, Length: 4}, "", 0},
		{"frame", "", Frame{}, "test/envelope at byte 0: want 2 bytes, 0 bytes left (incomplete)", wire.Incomplete},
		{"frame", "01", Frame{}, "test/envelope at byte 0 of 1: want 2 bytes, 1 byte left (incomplete)", wire.Incomplete},
		{"frame", "01 06 03", Frame{Size: 6}, errPart.Error(), wire.Incomplete},
		{"frame", "01 03 03", Frame{}, "test/envelope.length at byte 1 of 3: want a length from 4 to 200, got 3 (malformed)", wire.Malformed},
		{"frame", "01 c9", Frame{}, "test/envelope.length at byte 1 of 2: want a length from 4 to 200, got 201 (malformed)", wire.Malformed},
		{"body", "0001 0201 ff 00", Frame{Opcode: 0x0102, Size: 5, Head: 4, Seq: -1, Length: 1}, "", 0},
		{"body", "0000 0201", Frame{Opcode: 0x0102, Size: 4, Head: 4, Seq: -1}, "", 0},
		{"body", "ffff 0201", Frame{Size: 65539}, errPart.Error(), wire.Incomplete},
		{"whole", "07 01 02", Frame{Opcode: 7, Size: 3, Head: 1, Seq: -1, Length: -1}, "", 0},
		{"whole", "", Frame{Head: 1, Seq: -1, Length: -1}, "test/envelope at byte 0: want 1 byte, 0 bytes left (malformed)", wire.Malformed},
	} {
		t.Run(c.framing+" "+c.hex, func(t *testing.T) {
			f, err := p.Framing(c.framing).Find(unhex(t, c.hex), "test")
			if f != c.want {
				t.Errorf("got %+v, want %+v", f, c.want)
			}
			if (err == nil) != (c.fail == "") || err != nil && (err.Error() != c.fail || err.Kind != c.kind) {
				t.Errorf("got  %v\nwant %s", err, c.fail)
			}
		})
	}
	if p.Framing("none") != nil || p.Framing("many").Modes[1].Name != "game_frame" || p.Framing("many").Modes[2] != nil {
		t.Error("the framings by name, and the modes")
	}
}

func TestChecksumsAreVerifiedAndFilledIn(t *testing.T) {
	p := parse(t, framed)
	e := p.Envelopes[0]
	frame := e.Append(nil, 1, 0, []byte{0xff, 0x03}, CountsFrame)
	if want := unhex(t, "01 06 02 00 ff03"); !bytes.Equal(frame, want) { // 0xff + 0x03 = 0x102
		t.Errorf("got %x, want %x", frame, want)
	}
	if err := e.Verify(frame, p.Name); err != nil {
		t.Error(err)
	}
	frame[5]++
	for _, c := range []struct {
		frame []byte
		want  string
	}{
		{frame, "test/envelope.checksum at byte 2 of 6: want sum8(body) = 3, got 2 (malformed)"},
		{frame[:3], "test/envelope at byte 0 of 3: want 4 bytes, 3 bytes left (malformed)"},
		{nil, "test/envelope at byte 0: want 4 bytes, 0 bytes left (malformed)"},
	} {
		if err := e.Verify(c.frame, p.Name); err == nil || err.Error() != c.want {
			t.Errorf("%x: got  %v\nwant %s", c.frame, err, c.want)
		}
	}
	if err := p.Envelopes[2].Verify([]byte{1}, p.Name); err != nil {
		t.Errorf("without a checksum: %v", err)
	}
	for n, want := range map[string]uint8{"": 0, "\x01\xff": 0, "abc": 0x26} {
		if got := Sum8([]byte(n)); got != want {
			t.Errorf("sum of %q: got %#x, want %#x", n, got, want)
		}
	}
}

func TestEnvelopesAreWrittenAsCounted(t *testing.T) {
	p := parse(t, framed)
	if got, want := p.Envelopes[1].Append([]byte{9}, 0x0102, 0, []byte{7}, CountsBody), unhex(t, "09 0001 0201 07"); !bytes.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
	w := wulfram(t)
	for _, c := range []struct{ name, want string }{
		{"tcp_frame", "0005 35 0102"}, {"raw", "35 0102"}, {"sequenced", "35 fffe 0007 0102"},
	} {
		for _, e := range w.Envelopes {
			if e.Name != c.name {
				continue
			}
			if got := e.Append(nil, 0x35, 0xfffe, []byte{1, 2}, CountsFrame); !bytes.Equal(got, unhex(t, c.want)) {
				t.Errorf("%s: got %x, want %s", c.name, got, c.want)
			}
		}
	}
}

// A body may look at its envelope: b is there for slot 5 alone.
func TestABodySeesItsEnvelope(t *testing.T) {
	p := parse(t, framed)
	l := p.Packets[0].Of(Client)[0]
	for _, c := range []struct{ hex, want string }{{"01 06 03 05 0102", "a=1 b=2"}, {"01 06 03 45 0102", "a=1 b=2"}, {"01 06 03 06 0102", "a=1"}} {
		frame := unhex(t, c.hex)
		tree := &Tree{Data: frame}
		d := Decoder{Envelope: p.Envelopes[0]}
		if err := d.Decode(p, "TEST", l, tree, 32, 48); err != nil || show(tree) != c.want {
			t.Errorf("%x: got %s (%v), want %s", frame, show(tree), err, c.want)
		}
	}
	tree, _, err := decodeBody(p, l, nil, []byte{1, 2})
	if err != nil || show(tree) != "a=1" {
		t.Errorf("without an envelope: got %s (%v), want a=1", show(tree), err)
	}
}

func TestRecordsHaveTheEnvelopeOfTheirMode(t *testing.T) {
	udp := wulfram(t).Framing("udp")
	for _, c := range []struct {
		mode int
		hex  string
		want Frame
		fail string
	}{
		{0, "02 01", Frame{Opcode: 2, Head: 1, Seq: -1, Length: -1}, ""},
		{1, "35 0007 0009 ffffffff 02", Frame{Opcode: 0x35, Size: 9, Head: 5, Seq: 7, Length: 9}, ""},
		{3, "19 0001 0005", Frame{Opcode: 0x19, Size: 5, Head: 5, Seq: 1, Length: 5}, ""},
		{1, "19 0001", Frame{}, "wulfram/envelope at byte 0 of 3: want 5 bytes, 3 bytes left (malformed)"},
		{1, "19 0001 0004", Frame{}, "wulfram/envelope.length at byte 3 of 5: want a length from 5 to 5, got 4 (malformed)"},
		{1, "19 0001 0006", Frame{}, "wulfram/envelope.length at byte 3 of 5: want a length from 5 to 5, got 6 (malformed)"},
	} {
		f, err := udp.Modes[c.mode].Parse(unhex(t, c.hex), "wulfram")
		if fits := udp.Modes[c.mode].Fits(unhex(t, c.hex)); fits != (c.fail == "") {
			t.Errorf("%s: fits is %v, against the error %q", c.hex, fits, c.fail)
		}
		if (err == nil) != (c.fail == "") || err != nil && err.Error() != c.fail || err == nil && f != c.want {
			t.Errorf("%s: got %+v (%v)\nwant %+v (%s)", c.hex, f, err, c.want, c.fail)
		}
	}
	if udp.Modes[2] != nil {
		t.Error("an envelope for mode 2, whose header is unknown")
	}
}

func TestTheLargestFrameOfTheClient(t *testing.T) {
	tcp := wulfram(t).Framing("tcp")
	frame := append([]byte{0x28, 0x02, 0x23}, make([]byte, 10239)...) // 0x2802 = 10242
	if f, err := tcp.Find(frame, "wulfram"); err != nil || f.Size != 10242 {
		t.Errorf("got %+v (%v)", f, err)
	}
	if _, err := tcp.Find([]byte{0x28, 0x03, 0x23}, "wulfram"); err == nil || !strings.Contains(err.Error(), "want a length from 3 to 10242, got 10243") {
		t.Errorf("got %v", err)
	}
}

// Sums of whole words and of what is left are those of their bytes.
func TestSum8(t *testing.T) {
	var data []byte
	want := 0
	for n := range 100 {
		if got := Sum8(data); int(got) != want%256 {
			t.Fatalf("%d bytes: got %d, want %d", n, got, want%256)
		}
		b := byte(255 - 7*n)
		data, want = append(data, b), want+int(b)
	}
}
