package schema

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"opscope/schema/wire"
)

func TestDecodeErrorsNameTheField(t *testing.T) {
	for _, c := range []struct{ name, head, fields, hex, want string }{
		{"a short number", "", "- a: u8\n- b: u32", "01 0203", "test/TEST.b at byte 1 of 3: want 4 bytes, 2 bytes left (truncated)"},
		{"bits", "align: bit", "- a: u6\n- b: u3", "ff", "test/TEST.b at byte 0 bit 6 of 1: want 3 bits, 2 bits left (truncated)"},
		{"a member of an element", "types:\n  e: [{x: u8}, {y: u16}]\n", "- n: u8\n- a: e[n]", "01 01 02", "test/TEST.a[0].y at byte 2 of 3: want 2 bytes, 1 byte left (truncated)"},
		{"a member of the second element", "types:\n  e:\n    - k: u8\n    - y: u16\n      if: k\n", "- a: e[2]", "00 01 02", "test/TEST.a[1].y at byte 2 of 3: want 2 bytes, 1 byte left (truncated)"},
		{"a count beyond the bytes", "", "- n: u32\n- a: u8[n]", "ffffffff 00", "test/TEST.a at byte 4 of 5: want 4294967295 elements of at least 1 byte, 1 byte left (truncated)"},
		{"a count of elements without bits", "", "- n: u16\n- a: text(0)[n]", "ffff", "test/TEST.a at byte 2 of 2: want 65535 elements of at least 0 bytes, 0 bytes left (truncated)"},
		{"a negative count", "", "- n: i8\n- a: u8[n]", "ff 00", "test/TEST.a at byte 1 of 2: want a count of at least 0, got -1 (malformed)"},
		{"a text", "", "- a: text(u16)", "0003 6162", "test/TEST.a at byte 2 of 4: want 3 bytes, 2 bytes left (truncated)"},
		{"a text without NUL", "", "- a: text(nul)", "6162", "test/TEST.a at byte 0 of 2: want a NUL at the end of the text, got none (truncated)"},
		{"a text of 64 bits' length", "", "- a: text(u64)", "ffffffffffffffff 00", "test/TEST.a at byte 8 of 9: want a length of at least 0, got -1 (malformed)"},
		{"bytes", "", "- n: u8\n- a: bytes(n)", "02 01", "test/TEST.a at byte 1 of 2: want 2 bytes, 1 byte left (truncated)"},
		{"a guid", "", "- a: guid", "00", "test/TEST.a at byte 0 of 1: want 16 bytes, 1 byte left (truncated)"},
		{"a width beyond 64", "", "- n: u8\n- a: u(n)", "41 00", "test/TEST.a at byte 1 of 2: want a width of 0 to 64 bits, got 65 (malformed)"},
		{"a negative width", "", "- n: i8\n- a: u(n)", "ff 00", "test/TEST.a at byte 1 of 2: want a width of 0 to 64 bits, got -1 (malformed)"},
		{"a division by zero", "", "- n: u8\n- a: u8[4 / n]", "00 00", "test/TEST.a at byte 1 of 2: want a value, got a division by zero (malformed)"},
		{"a division by zero in a condition", "", "- n: u8\n- a: u8\n  if: 4 % n", "00 00", "test/TEST.a at byte 1 of 2: want a value, got a division by zero (malformed)"},
		{"a division by zero in valid", "", "- n: u8\n  valid: 1.5 / n", "00", "test/TEST.n at byte 1 of 1: want a value, got a division by zero (malformed)"},
		{"a type without a case", "types:\n  v(k):\n    switch: k\n    cases: {1: u8}\n", "- k: u8\n- a: v(k)[1]", "07 00", "test/TEST.a[0] at byte 1 of 2: want a case of k, got 7 (malformed)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := parse(t, inFields(c.head, c.fields))
			_, d, err := decodeBody(p, p.PacketNamed("TEST").Of(Client)[0], nil, unhex(t, c.hex))
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if _, missing := d.Missing(); missing {
				t.Error("got a missing entry")
			}
		})
	}
}

func TestShortKeepsItsKind(t *testing.T) {
	p := parse(t, inFields("", "- a: u8\n- b: u16"))
	for _, kind := range []wire.Kind{wire.Malformed, wire.Truncated, wire.Incomplete} {
		tree := &Tree{Data: []byte{1, 2}}
		d := Decoder{Short: kind}
		err := d.Decode(p, "TEST", p.Packets[0].Of(Client)[0], tree, 0, 16)
		if err == nil || err.Kind != kind || show(tree) != "a=1" {
			t.Errorf("got %v and %s, want a %s error beside a=1", err, show(tree), kind)
		}
	}
}

// An array of arrays of arrays without bits must end.
func TestValuesOfABodyAreBounded(t *testing.T) {
	p := parse(t, inFields("types:\n  e:\n    - a: = 1\n    - b: = 2\n", "- x: e[4096][4096]"))
	tree, _, err := decodeBody(p, p.Packets[0].Of(Client)[0], nil, nil)
	if err == nil || len(tree.Nodes) > DefaultBounds.Values+4096 {
		t.Errorf("got %d values (%v), want an error at %d", len(tree.Nodes), err, DefaultBounds.Values)
	}
}

const sized = `
protocol: test
order: be
align: byte
envelopes:
  frame: [{opcode: u8}, {body: body}]
packets:
  TEST:
    opcode: 1
    size: round_up(2 + popcount(mask), 4)
    fields:
      - mask: u8
      - a:    u8[each mask]
`

func TestSizePadsAFrame(t *testing.T) {
	p := parse(t, sized)
	l := p.Packets[0].Of(Client)[0]
	for _, c := range []struct{ hex, want, fail string }{
		{"01 03 0a 0b", "mask=3 a=[10 11]", ""},   // opcode, mask, two bytes: a frame of 4
		{"01 01 0a ff", "mask=1 a=[10] _=ff", ""}, // padding, kept
		{"01 07 0a 0b 0c 01 02 03", "mask=7 a=[10 11 12] _=010203", ""},
		{"01 01 0a", "mask=1 a=[10]", "test/TEST.padding at byte 3 of 3: want 1 byte, 0 bytes left (truncated)"},
	} {
		frame := unhex(t, c.hex)
		tree := &Tree{Data: frame}
		d := Decoder{Short: wire.Truncated}
		err := d.Decode(p, "TEST", l, tree, 8, 8*len(frame))
		if got := show(tree); got != c.want || (err == nil) != (c.fail == "") || err != nil && err.Error() != c.fail {
			t.Errorf("%x: got %s (%v), want %s (%s)", frame, got, err, c.want, c.fail)
		}
		if err == nil {
			e := Encoder{Head: 1}
			if body, err := e.Append(nil, p, "TEST", l, tree); err != nil || !bytes.Equal(body, frame[1:]) {
				t.Errorf("%x: encoded to %x (%v)", frame, body, err)
			}
		}
	}
	e := Encoder{Head: 1}
	body, err := e.Append([]byte{9}, p, "TEST", l, NewTree(Values{"mask": 1, "a": []int{10}}))
	if want := unhex(t, "09 01 0a 00"); err != nil || !bytes.Equal(body, want) {
		t.Errorf("built: got %x (%v), want %x", body, err, want)
	}
}

func TestSizeBelowTheFields(t *testing.T) {
	p := parse(t, strings.Replace(sized, "round_up(2 + popcount(mask), 4)", "mask", 1))
	l := p.Packets[0].Of(Client)[0]
	_, _, err := decodeBody(p, l, nil, unhex(t, "01 0a"))
	if want := "test/TEST.padding at byte 2 of 2: want the end at byte 1, got a field up to byte 2 (malformed)"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	var e Encoder
	_, fault := e.Append(nil, p, "TEST", l, NewTree(Values{"mask": 1, "a": []int{1}}))
	if want := "encode TEST.size: want a size of at least 2, got 1"; fault == nil || fault.Error() != want {
		t.Errorf("got  %v\nwant %s", fault, want)
	}
}

const placed = `
protocol: test
order: le
align: byte
envelopes:
  frame: [{signature: u16}, {opcode: u8}, {body: body}]
packets:
  TEST:
    opcode: 1
    fields:
      - a_offset: u8
      - b_offset: u8
      - x:        u8
      - a:        text(nul)
        at: signature + a_offset
        if: a_offset != 0
      - b:        text(nul)
        at: signature + b_offset
        if: b_offset != 0
`

func TestFieldsAtAnOffset(t *testing.T) {
	p := parse(t, placed)
	l := p.Packets[0].Of(Client)[0]
	for _, c := range []struct {
		name, hex, want, fail string
		end                   int
	}{
		{"both, in order", "5350 01 06 08 07 6100 6200", `a_offset=6 b_offset=8 x=7 a="a" b="b"`, "", 10},
		{"neither", "5350 01 00 00 07", "a_offset=0 b_offset=0 x=7", "", 6},
		{"crosswise: what was read counts as read", "5350 01 08 06 07 6200 6100", `a_offset=8 b_offset=6 x=7 a="a" b="b"`, "", 10},
		{"beyond the frame", "5350 01 0b 00 07 6100", "a_offset=11 b_offset=0 x=7",
			"test/TEST.a at byte 6 of 8: want an offset within the frame, got offset 11 (malformed)", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			frame := unhex(t, c.hex)
			tree := &Tree{Data: frame}
			d := Decoder{Envelope: p.Envelopes[0]}
			err := d.Decode(p, "TEST", l, tree, 24, 8*len(frame))
			if got := show(tree); got != c.want || err != nil && err.Error() != c.fail || (err == nil) != (c.fail == "") {
				t.Errorf("got %s (%v)\nwant %s (%s)", got, err, c.want, c.fail)
			}
			if err == nil && d.End != 8*c.end {
				t.Errorf("got the end at bit %d, want byte %d", d.End, c.end)
			}
		})
	}
	for _, c := range []struct {
		name string
		v    Values
		hex  string
	}{
		{"offsets are filled in", Values{"x": 7, "a": "a", "b": "b"}, "06 08 07 6100 6200"},
		{"without a value the offset is 0", Values{"x": 7, "b": "b"}, "00 06 07 6200"},
		{"offsets are written as given, also when wrong", Values{"x": 7, "a_offset": 99, "a": "a", "b": "b"}, "63 08 07 6100 6200"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := Encoder{Head: 3}
			got, err := e.Append(nil, p, "TEST", l, NewTree(c.v))
			if want := unhex(t, c.hex); err != nil || !bytes.Equal(got, want) {
				t.Errorf("got %x (%v), want %x", got, err, want)
			}
		})
	}
}

const stateful = `
protocol: test
order: be
align: bit
state:
  widths: {kind: [bits, extra]}
  build:  number
  modes:  {opcode: mode}
  slots:  {kind: mask}
enums:
  opcode_mode: {0: raw, 1: latest}
  kind: {1: first}
flags:
  mask:  {0: another}
  slots: {0: cannon}
defaults:
  widths:
    - source: a guess
      entries: {0-2: [4, 1.5]}
  modes:
    - sender: client
      source: a client
      entries: {0x01: 1}
packets:
  TEST:
    opcode: 1
    teaches: [widths, modes]
    fields:
      - k: u4
      - a: u(state.widths[k].bits)
      - b: u4
        if: state.build == 2
`

func TestStateIsLookedUpAndItsLackNamed(t *testing.T) {
	p := parse(t, stateful)
	l := p.PacketNamed("TEST").Of(Client)[0]
	if !slices.Equal(p.Packets[0].Teaches, []string{"widths", "modes"}) {
		t.Errorf("teaches %v", p.Packets[0].Teaches)
	}
	s := p.NewState()
	body := unhex(t, "3abc")
	for _, step := range []struct {
		teach   func()
		want    string
		missing Missing
		fail    string
		origin  Origin
	}{
		{func() {}, "k=3", Missing{Table: "widths", Key: 3}, "test/TEST.a at byte 0 bit 4 of 2: want state.widths[3], got none learned (malformed)", NoOrigin},
		{func() { s.Table("widths").Set(3, Entry{Values: []float64{8, 0}, Origin: Learned}) },
			"k=3 a=171", Missing{Table: "build", Single: true}, "test/TEST.b at byte 1 bit 4 of 2: want state.build, got none learned (malformed)", Learned},
		{func() { s.Table("build").Set(0, Entry{Values: []float64{2}, Origin: User}) }, "k=3 a=171 b=12", Missing{}, "", User},
		{func() { s.Table("build").Set(0, Entry{Values: []float64{3}, Origin: User}) }, "k=3 a=171 _=12", Missing{}, "", User},
		{func() { s.Table("widths").Set(3, Entry{Values: []float64{8, 0}, Origin: Guessed}) }, "k=3 a=171 _=12", Missing{}, "", Guessed},
	} {
		step.teach()
		tree, d, err := decodeBody(p, l, s, body)
		if got := show(tree); got != step.want || d.Origin != step.origin {
			t.Errorf("got %s, %s; want %s, %s", got, d.Origin, step.want, step.origin)
		}
		if (err == nil) != (step.fail == "") || err != nil && err.Error() != step.fail {
			t.Errorf("got  %v\nwant %s", err, step.fail)
		}
		if m, ok := d.Missing(); ok != (step.fail != "") || ok && m != step.missing {
			t.Errorf("got missing %+v (%v), want %+v", m, ok, step.missing)
		}
	}
	if _, d, err := decodeBody(p, l, nil, body); err == nil {
		t.Error("decoded without any state")
	} else if m, ok := d.Missing(); !ok || m.Key != 3 {
		t.Errorf("without any state: got %+v", m)
	}
	var e Encoder
	if _, err := e.Append(nil, p, "TEST", l, NewTree(Values{"k": 3, "a": 1})); err == nil || err.Error() != "encode TEST.a: want state.widths[3], got none learned" {
		t.Errorf("got %v", err)
	}
}

func TestDefaultTables(t *testing.T) {
	p := parse(t, stateful)
	d := p.DefaultTable("widths", Server)
	if d.Len() != 3 || !slices.Equal(d.Keys(), []int64{0, 1, 2}) {
		t.Fatalf("got keys %v, want 0 to 2", d.Keys())
	}
	if e := d.Get(1); e.Origin != Default || e.Values[0] != 4 || e.Values[1] != 1.5 || e.Texts[1] != "1.5" {
		t.Errorf("got %+v", e)
	}
	if p.DefaultTable("modes", Client).Get(1).Values[0] != 1 || p.DefaultTable("modes", Server) != nil || p.DefaultTable("none", Client) != nil {
		t.Error("the default of modes is the client's alone")
	}
	if p.State[0].KeyEnum.NameOf(1) != "first" || p.State[2].KeyEnum.NameOf(1) != "TEST" || p.State[2].Enum.NameOf(1) != "latest" {
		t.Errorf("names of keys and columns: %+v", p.State)
	}
	if f := p.State[3].Flags; f == nil || f.Bits[0].Name != "cannon" || p.State[2].Flags != nil {
		t.Errorf("names of the bits of masks: %+v", p.State)
	}
	d.Set(1, Entry{Values: []float64{9, 9}, Origin: User})
	d.Set(70, Entry{Origin: User})
	if d.Get(1).Values[0] != 9 || !slices.Equal(d.Keys(), []int64{0, 1, 2, 70}) || d.Len() != 4 {
		t.Errorf("set: got %+v of keys %v", d.Get(1), d.Keys())
	}
	if again := p.DefaultTable("widths", Server); again.Get(1).Values[0] != 4 || again.Get(70) != nil || again.Len() != 3 {
		t.Errorf("to set one caller's table changes that of the next: %+v", again.Get(1))
	}
	var none *Table
	if none.Get(1) != nil || none.Len() != 0 || none.Keys() != nil {
		t.Error("the nil table is not empty")
	}
	far := NewTable(&p.State[0])
	far.Set(-1, Entry{Packet: 7})
	far.Set(1<<40, Entry{Packet: 8})
	far.Set(-1, Entry{Packet: 7})
	if far.Get(-1).Packet != 7 || far.Get(1<<40).Packet != 8 || far.Get(0) != nil {
		t.Error("keys far off")
	}
	far.Set(0, Entry{})
	if !slices.Equal(far.Keys(), []int64{-1, 0, 1 << 40}) || far.Len() != 3 {
		t.Errorf("got %d keys, %v", far.Len(), far.Keys())
	}
}

func TestExpressions(t *testing.T) {
	for _, c := range []struct {
		text string // over a = 6, b = 3, c = -2 and f = 1.5
		want float64
	}{
		{"a + b * 2", 12}, {"(a + b) * 2", 18}, {"a - b - 1", 2}, {"a / 4", 1}, {"-7 / 2", -3}, {"a / 4.0", 1.5}, {"a % 4", 2},
		{"c", -2}, {"-c", 2}, {"~0", -1}, {"f * 2", 3}, {"5.5 % 2", 1.5}, {"0x10", 16}, {"0b11", 3}, {"1.5e1", 15},
		{"a == 6", 1}, {"a != 6", 0}, {"a < b", 0}, {"b <= 3", 1}, {"a > b", 1}, {"a >= 7", 0}, {"f > 1", 1}, {"f == 1.5", 1},
		{"a and b", 1}, {"a and 0", 0}, {"0 or f", 1}, {"not a", 0}, {"not 0", 1}, {"not a == 5", 1}, {"a == 6 and b == 3 or 0", 1},
		{"0 and 1 / 0", 0}, {"1 or 1 / 0", 1}, {"choose(1, 2, 1 / 0)", 2}, // what does not count is not evaluated
		{"a & 3", 2}, {"a | 1", 7}, {"a ^ 3", 5}, {"1 << a", 64}, {"a >> 1", 3}, {"1 << 64", 0}, {"a & 2 == 2", 1}, {"1 | 2 << 1", 5},
		{"popcount(a)", 2}, {"popcount(-1)", 64}, {"min(a, b)", 3}, {"max(a, b)", 6}, {"max(f, 1)", 1.5}, {"min(c, f)", -2},
		{"round_up(a, 4)", 8}, {"round_up(8, 4)", 8}, {"round_up(0, 4)", 0}, {"choose(a > b, 10, 20)", 10}, {"choose(0, 10, 20)", 20},
		{"min(max(a, 1), popcount(7) + 1)", 4}, {"1 + 2 == 3 and 4 > 3", 1}, {"2 - -1", 3},
	} {
		p := parse(t, inFields("", "- a: u8\n- b: u8\n- c: i8\n- f: fx\n- x: = "+c.text))
		tree, _, err := decodeBody(p, p.Packets[0].Of(Client)[0], nil, unhex(t, "06 03 fe 00018000"))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
		} else if got := tree.Nodes[tree.Field("x")].Float(); got != c.want {
			t.Errorf("%s: got %v, want %v", c.text, got, c.want)
		}
	}
}

func TestConfidenceAndSourceAreInherited(t *testing.T) {
	p := parse(t, `
protocol: test
order: be
align: byte
source: the protocol
confidence: guess
types:
  inner:
    - x: u8
    - y: u8
      source: y alone
      confidence: policy
packets:
  PLAIN:
    opcode: 1
    fields: [{a: u8}]
  TEST:
    opcode: 2
    source: the packet
    confidence: observed
    alternatives:
      - source: the first
        fields:
          - a: u8
          - b: inner
            source: b alone
            confidence: implemented
          - c: inner[2]
      - source: the second
        confidence: recovered
        fields:
          - a: u8
            confidence: inferred
`)
	test := p.PacketNamed("TEST").Of(Server)
	for _, c := range []struct {
		l      *Layout
		path   string
		source string
		level  Confidence
	}{
		{p.PacketNamed("PLAIN").Of(Client)[0], "a", "the protocol", Guess},
		{test[0], "a", "the first", Observed},
		{test[0], "b", "b alone", Implemented},
		{test[0], "b.x", "b alone", Implemented},
		{test[0], "b.y", "y alone", Policy},
		{test[0], "c.x", "the first", Observed},
		{test[1], "a", "the second", Inferred},
	} {
		f := c.l.FieldAt(strings.Split(c.path, ".")...)
		if f.Source != c.source || f.Confidence != c.level {
			t.Errorf("%s: got %q, %s; want %q, %s", c.path, f.Source, f.Confidence, c.source, c.level)
		}
	}
	if test[0].Source != "the first" || test[0].Confidence != Observed || test[1].Confidence != Recovered {
		t.Errorf("the layouts: %+v, %+v", test[0], test[1])
	}
	if !Recovered.Certain() || !Observed.Certain() || Implemented.Certain() || Unknown.Certain() {
		t.Error("what is certain")
	}
}

func TestRedactionReachesWhatIsBelow(t *testing.T) {
	p := parse(t, `
protocol: test
order: be
align: byte
types:
  pair: [{user: text(u8)}, {password: text(u8)}]
packets:
  TEST:
    opcode: 1
    redact: {words: personal, key: secret}
    fields:
      - login: pair
        redact: secret
      - words: text(u8)[2]
      - pairs: pair[1]
      - key:   u32
      - open:  u8
`)
	tree, _, err := decodeBody(p, p.Packets[0].Of(Client)[0], nil, unhex(t, "0161 0162 0163 0164 0165 0166 00000001 07"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Redaction{"login": Secret, "words": Personal, "pairs": Open, "key": Secret, "open": Open}
	for i := 0; i < len(tree.Nodes); i = tree.Next(i) {
		name := tree.Nodes[i].Field.Name
		for k := i; k < tree.Next(i); k++ {
			if got := tree.Nodes[k].Field.Redact; got != want[name] {
				t.Errorf("%s, node %d below: got %d, want %d", name, k-i, got, want[name])
			}
		}
	}
}

func TestClientAndServerLayouts(t *testing.T) {
	p := parse(t, `
protocol: test
order: be
align: byte
packets:
  BOTH:
    opcode: 1
    client: [{a: u8}]
    server: [{b: u16}]
  UP:
    opcode: 2
    client: [{a: u8}]
  DOWN:
    opcode: 3
    server: [{b: u16}]
  EMPTY:   {opcode: 4, fields: []}
  UNKNOWN: {opcode: 5, from: server}
  ONE:     {opcode: 6, from: client, fields: [{a: u8}]}
  OTHER:   {opcode: 6, from: server, fields: [{b: u8}]}
  UDP:     {opcode: 7, via: udp, fields: [{b: u8}]}
`)
	for _, c := range []struct {
		name                string
		any, client, server string // the first field, "-" for an empty body, "" for an unknown one
	}{
		{"BOTH", "", "a", "b"}, {"UP", "a", "a", ""}, {"DOWN", "b", "", "b"}, {"EMPTY", "-", "-", "-"}, {"UNKNOWN", "", "", ""}, {"ONE", "a", "a", "a"},
	} {
		k := p.PacketNamed(c.name)
		for s, want := range []string{c.any, c.client, c.server} {
			got := ""
			if l := k.Of(Sender(s)); len(l) > 0 {
				got = "-"
				if items := l[0].Items(); len(items) > 0 {
					got = items[0].Field.Name
				}
			}
			if got != want {
				t.Errorf("%s from %s: got %q, want %q", c.name, Sender(s), got, want)
			}
		}
	}
	for _, c := range []struct {
		opcode uint64
		by     Sender
		via    Transport
		want   string
	}{
		{6, Client, TCP, "ONE"}, {6, Server, TCP, "OTHER"}, {6, AnySender, TCP, ""}, {5, AnySender, UDP, "UNKNOWN"}, {5, Client, UDP, ""},
		{5, Server, UDP, "UNKNOWN"}, {7, Client, UDP, "UDP"}, {7, Client, TCP, ""}, {99, Client, TCP, ""},
	} {
		got := ""
		if k := p.Packet(c.opcode, c.by, c.via); k != nil {
			got = k.Name
		}
		if got != c.want {
			t.Errorf("opcode %d from %s over %s: got %q, want %q", c.opcode, c.by, c.via, got, c.want)
		}
	}
	if got := []string{p.OpcodeName(1), p.OpcodeName(0xab), UnknownName(0x1234)}; !slices.Equal(got, []string{"BOTH", "unknown(0xAB)", "unknown(0x1234)"}) {
		t.Errorf("got names %q", got)
	}
	var none *Packet
	if none.Of(Client) != nil {
		t.Error("the nil packet has a layout")
	}
}

func TestGroupsLimitsPortsAndQuestions(t *testing.T) {
	p := parse(t, `
protocol: test
order: be
align: byte
doc: a test
opcode: u16
ports: [{tcp: 1}, {udp: 65535}]
groups:
  Beacon Stream: [0x3A, 0x3B]
limits:
  window: 5
  big:    {value: 0x100, doc: why}
open:
  - question: why?
    answer: because
    evidence: none
packets:
  TEST:
    opcode: 0x0213
    open: [{question: what?}]
    fields: []
`)
	if p.Doc != "a test" || p.OpcodeBits != 16 || !slices.Equal(p.Ports, []Port{{1, TCP}, {65535, UDP}}) {
		t.Errorf("got %q, %d, %v", p.Doc, p.OpcodeBits, p.Ports)
	}
	if len(p.Groups) != 1 || p.Groups[0].Name != "Beacon Stream" || !slices.Equal(p.Groups[0].Opcodes, []uint64{0x3a, 0x3b}) {
		t.Errorf("got groups %+v", p.Groups)
	}
	if p.Limit("window") != 5 || p.Limit("big") != 256 || p.Limit("none") != 0 || p.Limits[1].Doc != "why" {
		t.Errorf("got limits %+v", p.Limits)
	}
	if !slices.Equal(p.Open, []Question{{"why?", "because", "none"}}) || p.Packets[0].Open[0].Question != "what?" {
		t.Errorf("got %+v and %+v", p.Open, p.Packets[0].Open)
	}
}

func TestEnumsAndFlags(t *testing.T) {
	p := parse(t, inFields("enums: {e: {0: none, -1: minus, 0xFFFFFFFF: max}}\nflags: {f: {4: b, 0-2: a}}", "- a: u8 e\n- b: u8 f"))
	e, f := p.Enums[0], p.Flags[0]
	if e.NameOf(0) != "none" || e.NameOf(math.MaxUint64) != "minus" || e.NameOf(math.MaxUint32) != "max" || e.NameOf(5) != "" {
		t.Errorf("got %+v", e.Values)
	}
	if v, ok := e.ValueOf("max"); !ok || v != math.MaxUint32 {
		t.Errorf("got %d, %v", v, ok)
	}
	if _, ok := e.ValueOf("other"); ok || (*Enum)(nil).NameOf(0) != "" {
		t.Error("a name that is not there")
	}
	if len(f.Bits) != 2 || f.Bits[0].Name != "a" || f.Bits[0].Of(0xfd) != 5 || f.Bits[1].Of(0x10) != 1 || f.Rest(0xff) != 0xe8 {
		t.Errorf("got %+v, rest %#x", f.Bits, f.Rest(0xff))
	}
}

// An overlay is a user's directory over the built-in one.
func TestOverlay(t *testing.T) {
	base := parse(t, `
protocol: test
order: be
align: byte
builds: [old, new]
state:
  modes: {opcode: mode}
limits: {window: 5}
enums: {team: {1: red}}
types:
  pair: [{x: u8}]
packets:
  BOTH: {opcode: 1, fields: [{a: u8}]}
  UP:   {opcode: 2, from: client, fields: [{a: pair}]}
  DOWN: {opcode: 2, from: server, fields: [{b: u8}]}
  OLD:  {opcode: 3, build: old, fields: [{b: u8}]}
  NEW:  {opcode: 3, build: new, fields: [{b: u8}]}
`)
	names := func(p *Protocol) string {
		var out []string
		for _, k := range p.Packets {
			out = append(out, k.Name+"/"+k.From.String())
		}
		return strings.Join(out, " ")
	}
	before := names(base)
	for _, c := range []struct{ name, text, want string }{
		{"the same direction", "packets: {MINE: {opcode: 2, from: client, fields: [{m: u8}]}}", "BOTH/any DOWN/server OLD/any NEW/any MINE/client"},
		{"both directions", "packets: {MINE: {opcode: 2, fields: [{m: u8}]}}", "BOTH/any OLD/any NEW/any MINE/any"},
		{"one direction of both", "packets: {MINE: {opcode: 1, from: server, fields: [{m: u8}]}}", "BOTH/client UP/client DOWN/server OLD/any NEW/any MINE/server"},
		{"each direction of both", "packets: {M: {opcode: 1, from: server, fields: []}, N: {opcode: 1, from: client, fields: []}}", "UP/client DOWN/server OLD/any NEW/any M/server N/client"},
		{"a build", "packets: {MINE: {opcode: 3, build: new, fields: [{m: u8}]}}", "BOTH/any UP/client DOWN/server OLD/any MINE/any"},
		{"a new opcode", "packets: {MINE: {opcode: 9, fields: [{m: u8 team}]}}", before + " MINE/any"},
		{"another protocol", "protocol: other\npackets: {MINE: {opcode: 2, fields: []}}", before},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := base.Overlay(fstest.MapFS{"my/a.yaml": {Data: []byte(c.text)}}, "my")
			if err != nil {
				t.Fatal(err)
			}
			if got := names(p); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if names(base) != before {
				t.Errorf("the base is now %s", names(base))
			}
		})
	}
	p, err := base.Overlay(fstest.MapFS{"a.yaml": {Data: []byte("types: {pair: [{x: u8}, {y: u8}]}\nenums: {team: {2: blue}}\nlimits: {mine: 1}\nstate: {more: number}\n")}}, ".")
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Packet(2, Client, TCP).Of(Client)[0].FieldAt("a", "y"); got == nil {
		t.Error("a user's type does not reach the built-in packets")
	}
	if p.Limit("window") != 5 || p.Limit("mine") != 1 || base.Limit("mine") != 0 || len(base.State) != 1 || base.Enums[0].NameOf(1) != "red" {
		t.Error("an overlay changed what lies below it")
	}
	if base.Packet(2, Client, TCP).Of(Client)[0].FieldAt("a", "y") != nil {
		t.Error("a user's type reached the base")
	}
	for _, c := range []struct{ name, text, want string }{
		{"no files", "", "no schema files (*.yaml) in ."},
		{"an unknown build", "packets: {MINE: {opcode: 3, build: nwe, fields: []}}", `schema a.yaml:1:11: MINE has an unknown build "nwe" (did you mean new?)`},
		{"two of one opcode", "packets: {M: {opcode: 9, fields: []}, N: {opcode: 9, fields: []}}", "schema a.yaml:1:51: opcode 0x09 twice: M and N (first at line 1 of a.yaml)"},
	} {
		files := fstest.MapFS{}
		if c.text != "" {
			files["a.yaml"] = &fstest.MapFile{Data: []byte(c.text)}
		}
		if _, err := base.Overlay(files, "."); err == nil || err.Error() != c.want {
			t.Errorf("%s: got  %v\nwant %s", c.name, err, c.want)
		}
	}
}

func TestOverlayOfABuiltin(t *testing.T) {
	p := wulfram(t)
	q, err := p.Overlay(fstest.MapFS{"mine.yaml": {Data: []byte("packets:\n  MY_HUD:\n    opcode: 0x11\n    fields: [{text: string}]\n")}}, ".")
	if err != nil {
		t.Fatal(err)
	}
	if q.OpcodeName(0x11) != "MY_HUD" || p.OpcodeName(0x11) != "HUD_MESSAGE" || len(q.Packets) != len(p.Packets) {
		t.Errorf("got %s over %s, %d packets of %d", q.OpcodeName(0x11), p.OpcodeName(0x11), len(q.Packets), len(p.Packets))
	}
}

func TestTheFirstBuildIsTheDefault(t *testing.T) {
	p := parse(t, `
protocol: test
order: be
align: byte
builds: [new, old]
packets:
  ALL: {opcode: 1, fields: [{a: u8}]}
  NEW: {opcode: 1, build: new, fields: [{b: u8}]}
  OLD: {opcode: 2, build: old, fields: [{b: u8}]}
`)
	if k := p.Packet(1, Client, UDP); k.Name != "NEW" {
		t.Errorf("got %s, want NEW", k.Name)
	}
	if k := p.Packet(2, Client, UDP); k != nil {
		t.Errorf("got %s, want nothing", k.Name)
	}
}

// `redact: secret` on a packet hides every text and all bytes of it, and no number.
func TestRedactionOfAWholePacket(t *testing.T) {
	fsys := fstest.MapFS{"test.yaml": {Data: []byte(`
protocol: test
order: be
align: byte
packets:
  TEST:
    opcode: 1
    redact: secret
    fields:
      - number: u8
      - name:   text(u8)
        redact: personal
      - key:    bytes(2)
      - inner:  [{text: text(u8)}]
      - left:   rest
`)}}
	all, err := Load(fsys, ".")
	if err != nil {
		t.Fatal(err)
	}
	k := all[0].PacketNamed("TEST")
	want := map[string]Redaction{"number": Open, "name": Personal, "key": Secret, "inner": Open, "text": Secret, "left": Secret}
	for _, it := range k.Of(Client)[0].Items() {
		if it.Field.Redact != want[it.Field.Name] {
			t.Errorf("%s: got %v, want %v", it.Field.Name, it.Field.Redact, want[it.Field.Name])
		}
	}
	if !k.Secret() {
		t.Error("the packet is not called secret")
	}
}
