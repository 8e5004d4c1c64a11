package schema

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"opscope/schema/wire"
)

// parse loads a schema out of a text. A packet named TEST with opcode 1 is what
// most tests look at.
func parse(t testing.TB, text string) *Protocol {
	t.Helper()
	all, err := LoadFile(fstest.MapFS{"test.yaml": {Data: []byte(text)}}, "test.yaml")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return all[0]
}

// inFields puts fields, one a line, into a schema. The head says what else there is.
func inFields(head, fields string) string {
	if !strings.Contains(head, "order:") {
		head = "order: be\n" + head
	}
	if !strings.Contains(head, "align:") {
		head = "align: byte\n" + head
	}
	return "protocol: test\n" + strings.TrimSpace(head) + "\n" + "packets:\n  TEST:\n    opcode: 1\n    fields:\n" + indent(fields, "      ")
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+by) + "\n"
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// decodeBody decodes a body without an envelope.
func decodeBody(p *Protocol, l *Layout, s *State, body []byte) (*Tree, *Decoder, *wire.Error) {
	d := &Decoder{State: s, Short: wire.Truncated}
	t := &Tree{}
	t.Reset(body)
	err := d.Decode(p, "TEST", l, t, 0, 8*len(body))
	return t, d, err
}

// show writes a tree as the tests below expect it.
func show(t *Tree) string { return strings.TrimSpace(showList(t, 0, len(t.Nodes), true)) }

func showList(t *Tree, from, to int, named bool) string {
	var b strings.Builder
	for i := from; i < to; i = t.Next(i) {
		n := &t.Nodes[i]
		b.WriteByte(' ')
		if f := n.Field; named {
			b.WriteString(f.Name)
			if f.Part {
				b.WriteByte('~')
			}
			b.WriteByte('=')
		}
		switch n.Kind {
		case Struct:
			b.WriteString("{" + strings.TrimSpace(showList(t, i+1, t.Next(i), true)) + "}")
		case Array:
			b.WriteString("[" + strings.TrimSpace(showList(t, i+1, t.Next(i), false)) + "]")
		case Text, String:
			fmt.Fprintf(&b, "%q", t.AppendText(nil, i))
		case Bytes, GUID:
			b.WriteString(hex.EncodeToString(t.AppendBytes(nil, i)))
		case Null:
			b.WriteByte('-')
		case Int:
			fmt.Fprint(&b, int64(n.Num))
		default:
			fmt.Fprint(&b, n.Float())
		}
	}
	return b.String()
}

// The notation, one feature a case, with bytes worked out by hand. What decodes
// must encode to the same bytes.
var notation = []struct {
	name   string
	head   string // document keys besides order and align
	fields string
	hex    string
	want   string
	left   int    // bytes left over
	notes  string // codes of the remarks
}{
	// Numbers.
	{name: "unsigned and signed numbers", fields: "- a: u8\n- b: i8\n- c: u16\n- d: i32", hex: "ff ff 0102 fffffffe", want: "a=255 b=-1 c=258 d=-2"},
	{name: "numbers of odd widths share bytes", fields: "- a: u4\n- b: u12\n- c: i3\n- d: u5", hex: "abcd f1", want: "a=10 b=3021 c=-1 d=17"},
	{name: "the widest numbers", fields: "- a: u64\n- b: i64", hex: "0000000000000001 ffffffffffffffff", want: "a=1 b=-1"},
	{name: "a suffix against the order", fields: "- a: u16le\n- b: u16\n- c: f32le", hex: "0201 0102 0000803f", want: "a=258 b=258 c=1"},
	{name: "a suffix against little", head: "order: le", fields: "- a: u16be\n- b: u16\n- c: u16le", hex: "0102 0201 0100", want: "a=258 b=258 c=1"},
	{name: "bits of big come from the top", fields: "- a: u1\n- b: u7", hex: "81", want: "a=1 b=1"},
	{name: "bits of little come from the bottom", head: "order: le", fields: "- a: u1\n- b: u7", hex: "81", want: "a=1 b=64"},
	{name: "u9le across bytes", fields: "- x: u9le\n- y: u9le\n- fill", hex: "01 05 00", want: "x=257 y=2 _=0"},
	{name: "a computed width", fields: "- n: u8\n- a: u(n)\n- b: u(16 - n)", hex: "04 abcd", want: "n=4 a=10 b=3021"},
	{name: "a computed width against the order", fields: "- n: u8\n- a: u(n)le\n- fill\n- b: u(8)be", hex: "10 0201 07", want: "n=16 a=258 _=0 b=7"},
	{name: "a width of zero reads nothing", fields: "- n: u8\n- a: u(n)\n- fill\n- b: u8", hex: "00 07", want: "n=0 a=0 _=0 b=7"},
	{name: "floats", fields: "- a: f32\n- b: f64\n- c: fx\n- d: fx", hex: "3fc00000 c000000000000000 00018000 ffff0000", want: "a=1.5 b=-2 c=1.5 d=-1"},
	{name: "fx in little", fields: "- a: fxle", hex: "00800100", want: "a=1.5"},
	{name: "a name behind a type", head: "enums: {team: {1: red}}", fields: "- a: u8 team\n- b: u8[2] team\n- c: u16 hex\n- d: u8 opcode", hex: "01 0102 0003 01", want: "a=1 b=[1 2] c=3 d=1"},

	// Alignment.
	{name: "fill skips to the next byte", fields: "- a: u3\n- fill\n- b: u8\n- fill\n- c: u8", hex: "e0 01 02", want: "a=7 _=0 b=1 _=0 c=2"},
	{name: "fill keeps its bits", fields: "- a: u3\n- fill", hex: "e5", want: "a=7 _=5"},
	{name: "any field in mid-byte with align bit", head: "align: bit", fields: "- a: u4\n- b: u8\n- c: text(u8)\n- d: bytes(1)\n- e: fx", hex: "1 02 01 61 7f 00010000 0", want: `a=1 b=2 c="a" d=7f e=1`},
	{name: "padding that is not zero is kept", head: "align: bit", fields: "- a: u3", hex: "e5", want: "a=7 _=5", notes: "padding_nonzero"},
	{name: "padding of little is what is left of the byte", head: "order: le\nalign: bit", fields: "- a: u3", hex: "2f", want: "a=7 _=5", notes: "padding_nonzero"},

	// Enums, flags.
	{name: "flags in conditions", head: "flags: {m: {0: a, 1-3: n, 7: b}}", fields: "- m: u8 m\n- x: u8\n  if: m.a\n- y: u8\n  if: m.n == 5\n- z: u8\n  if: m.b", hex: "0b 01 02", want: "m=11 x=1 y=2"},
	{name: "flags of 64 bits", head: "flags: {m: {0-63: all}}", fields: "- m: u64 m\n- x: u8\n  if: m.all == 1", hex: "0000000000000001 05", want: "m=1 x=5"},

	// Text and bytes.
	{name: "text with a length", fields: "- a: text(u8)\n- b: text(u16le)", hex: "02 6162 0100 63", want: `a="ab" b="c"`},
	{name: "text with a counted NUL", fields: "- a: text(u16, nul counted)", hex: "0003 616200", want: `a="ab"`},
	{name: "an empty text with a counted NUL", fields: "- a: text(u8, nul counted)", hex: "01 00", want: `a=""`},
	{name: "text of length 0 whose NUL is counted", fields: "- a: text(u8, nul counted)\n- b: u8", hex: "00 07", want: `a="" b=7`, notes: "empty_string"},
	{name: "text whose counted NUL is missing", fields: "- a: text(u8, nul counted)", hex: "02 6162", want: `a="ab"`, notes: "text_without_nul"},
	{name: "text up to a NUL", fields: "- a: text(nul)\n- b: u8", hex: "616200 07", want: `a="ab" b=7`},
	{name: "text of fixed length keeps what follows its NUL", fields: "- a: text(5)\n- b: u8", hex: "6100626364 07", want: `a="a" b=7`},
	{name: "text of a length in front", fields: "- n: u8\n- a: text(n)", hex: "02 6162", want: `n=2 a="ab"`},
	{name: "text up to the end", fields: "- a: u8\n- b: text(rest)", hex: "01 616263", want: `a=1 b="abc"`},
	{name: "no text up to the end", fields: "- a: u8\n- b: text(rest, utf8)", hex: "01", want: `a=1 b=""`},
	{name: "text without an encoding is Latin-1", fields: "- a: text(2)", hex: "61e9", want: `a="aé"`},
	{name: "text in UTF-8", fields: "- a: text(3, utf8)", hex: "61c3a9", want: `a="aé"`},
	{name: "text that is no UTF-8", fields: "- a: text(2, utf8)", hex: "61e9", want: `a="a�"`},
	{name: "text in UTF-16 of the order", fields: "- a: text(u8, utf16)", hex: "08 006100e9 d83dde00", want: `a="aé😀"`},
	{name: "text in UTF-16, little", head: "order: le", fields: "- a: text(nul, utf16)\n- b: u8", hex: "6100 0001 0000 07", want: `a="aĀ" b=7`},
	{name: "8-bit text in a UTF-16 field", head: "order: le", fields: "- a: text(nul, utf16 8bit)\n- b: u8", hex: "6162 0000 07", want: `a="ab" b=7`},
	{name: "16-bit text in a UTF-16 field", head: "order: le", fields: "- a: text(nul, utf16 8bit)\n- b: u8", hex: "61006200 0000 07", want: `a="ab" b=7`},
	{name: "one letter of 8 bits in a UTF-16 field", head: "order: le", fields: "- a: text(nul, utf16 8bit)", hex: "61 00 0000", want: `a="a"`},
	{name: "bytes", fields: "- n: u8\n- a: bytes(n)\n- b: bytes(2)\n- c: rest", hex: "01 aa bbbb ccdd", want: "n=1 a=aa b=bbbb c=ccdd"},
	{name: "no rest", fields: "- a: u8\n- b: rest", hex: "01", want: "a=1 b="},
	{name: "guid and ipv4", fields: "- a: guid\n- b: ipv4", hex: "00112233445566778899aabbccddeeff 0a000001", want: "a=00112233445566778899aabbccddeeff b=1.67772161e+08"},

	// Structs, arrays, optionals.
	{name: "a list is a struct", head: "types:\n  pair:\n    - x: u8\n    - y: u8\n", fields: "- a: pair\n- b: [{z: u8}]", hex: "01 02 03", want: "a={x=1 y=2} b={z=3}"},
	{name: "an array with a count", fields: "- n: u8\n- a: u16[n]", hex: "02 0001 0002", want: "n=2 a=[1 2]"},
	{name: "an array of a fixed length", fields: "- a: u4[3]\n- b: u4", hex: "123 4", want: "a=[1 2 3] b=4"},
	{name: "an array of arrays", fields: "- a: u8[2][2]", hex: "01020304", want: "a=[[1 2] [3 4]]"},
	{name: "an array with an expression", fields: "- n: u8\n- a: u8[n / 2 + 1]", hex: "03 01 02", want: "n=3 a=[1 2]"},
	{name: "an empty array", fields: "- n: u8\n- a: u16[n]\n- b: u8", hex: "00 07", want: "n=0 a=[] b=7"},
	{name: "one element for each bit", fields: "- m: u8\n- a: u8[each m]", hex: "05 0a 0b", want: "m=5 a=[10 11]"},
	{name: "index is the element", head: "types:\n  e:\n    - i: = index\n    - v: u8\n", fields: "- a: e[2]", hex: "0a0b", want: "a=[{i=0 v=10} {i=1 v=11}]"},
	{name: "index is the bit", head: "types:\n  e(n):\n    - i: = n\n    - v: u8\n", fields: "- m: u8\n- a: e(10 * m + index)[each m]", hex: "12 0a0b", want: "m=18 a=[{i=181 v=10} {i=184 v=11}]"},
	{name: "an optional value", head: "align: bit", fields: "- a: u8?\n- b: u8?\n- c: u6", hex: "8385", want: "a=7 b=- c=5"},
	{name: "an optional struct", head: "align: bit\ntypes:\n  s: [{x: u3}, {y: u4}]\n", fields: "- a: s?\n- b: s?", hex: "b6 00", want: "a={x=3 y=6} b=-"},

	// Conditions, computed values, joins, references.
	{name: "a condition", fields: "- a: u8\n- b: u8\n  if: a == 1\n- c: u8\n  if: a != 1", hex: "01 02", want: "a=1 b=2"},
	{name: "a name repeats where conditions exclude each other", fields: "- a: u8\n- b: u8\n  if: a == 1\n- b: u16\n  if: a != 1\n- c: = b + 1", hex: "02 0102", want: "a=2 b=258 c=259"},
	{name: "what is absent counts as 0", fields: "- a: u8\n- b: u8\n  if: a\n- c: = b + 7", hex: "00", want: "a=0 c=7"},
	{name: "what is absent counts as 0 in each element", head: "types:\n  e:\n    - a: u8\n    - b: u8\n      if: a\n    - c: = b\n", fields: "- x: e[2]", hex: "01 05 00", want: "x=[{a=1 b=5 c=5} {a=0 c=0}]"},
	{name: "computed values are not on the wire", fields: "- a: u8\n- b: = a * 2 - 1\n- c: = a * 0.5\n- d: u8", hex: "03 07", want: "a=3 b=5 c=1.5 d=7"},
	{name: "a join, low part first", fields: "- a: u4\n- b: u4\n- c: u8\n- all: join(a, c)\n- d: u8\n  if: all == 0x121", hex: "1f 12 05", want: "a~=1 b=15 c~=18 all=289 d=5"},
	{name: "dotted into a struct", head: "types:\n  s:\n    - m: u8 f\n    - in: [{x: u8}]\nflags: {f: {1: on}}\n", fields: "- s: s\n- a: u8\n  if: s.m.on and s.in.x == 3", hex: "02 03 07", want: "s={m=2 in={x=3}} a=7"},
	{name: "dotted into an optional struct", head: "align: bit\ntypes:\n  s: [{x: u7}]\n", fields: "- s: s?\n- a: u8\n  if: s and s.x == 3", hex: "83 07", want: "s={x=3} a=7"},
	{name: "dotted into the case of a switch", head: "types:\n  s:\n    - k: u8\n    - switch: k\n      cases:\n        1:\n          - x: u8\n        2:\n          - x: u16\n", fields: "- s: s\n- a: u8\n  if: s.x == 258", hex: "02 0102 07", want: "s={k=2 x=258} a=7"},
	{name: "an optional number in an expression", head: "align: bit", fields: "- n: u7?\n- a: u8[n]", hex: "82 0102", want: "n=2 a=[1 2]"},
	{name: "a parameter", head: "types:\n  t(w, k):\n    - a: u(w)\n    - b: = k\n", fields: "- n: u8\n- x: t(n, 3)\n- y: t(8, n)", hex: "08 01 02", want: "n=8 x={a=1 b=3} y={a=2 b=8}"},

	// Switches.
	{name: "a switch of fields", fields: "- k: u8\n- switch: k\n  cases:\n    0: []\n    1-2, 5:\n      - a: u8\n  else:\n    - b: u16\n- c: u8", hex: "05 01 07", want: "k=5 a=1 c=7"},
	{name: "the else of a switch", fields: "- k: u8\n- switch: k\n  cases:\n    1:\n      - a: u8\n  else:\n    - b: u16", hex: "09 0102", want: "k=9 b=258"},
	{name: "a switch without a case", fields: "- k: u8\n- switch: k\n  cases:\n    1:\n      - a: u8\n- c: u8", hex: "09 07", want: "k=9 c=7"},
	{name: "a switch by names of the enum", head: "enums: {kind: {0: none, 3: some}}", fields: "- k: u8 kind\n- switch: k\n  cases:\n    some:\n      - a: u8\n    none: []", hex: "03 07", want: "k=3 a=7"},
	{name: "a case of several names and numbers", head: "enums: {kind: {0: none, 3: some, 4: more}}", fields: "- k: u8 kind\n- switch: k\n  cases:\n    some, more:\n      - a: u8\n    none, 0x5, 6-7: []", hex: "04 07", want: "k=4 a=7"},
	{name: "a field named state", head: "state: {t: {k: v}}\n", fields: "- state: u8\n  valid: state < 2\n- a: u8\n  if: state == 3", hex: "03 07", want: "state=3 a=7", notes: "out_of_range"},
	{name: "members of a field named state", head: "types:\n  s: [{t: u8}]\n", fields: "- state: s\n- a: u8[state.t]", hex: "02 0708", want: "state={t=2} a=[7 8]"},
	{name: "a case that is negative", fields: "- k: i8\n- switch: k\n  cases:\n    -1:\n      - a: u8", hex: "ff 07", want: "k=-1 a=7"},
	{name: "a switch in a switch", fields: "- k: u8\n- l: u8\n- switch: k\n  cases:\n    1:\n      - switch: l\n        cases:\n          2:\n            - a: u8", hex: "01 02 07", want: "k=1 l=2 a=7"},
	{name: "a switch of types", head: "types:\n  v(k):\n    switch: k\n    cases: {1: u8, 2: u16}\n    else: text(u8)\n", fields: "- k: u8\n- a: v(k)\n- b: v(3)", hex: "02 0102 01 61", want: `k=2 a=258 b="a"`},
	{name: "a switch of types in an array", head: "types:\n  v(k):\n    switch: k\n    cases: {0: u8}\n    else: u16\n", fields: "- a: v(index)[2]", hex: "01 0102", want: "a=[1 258]"},
	{name: "a switch of fields in an element", head: "types:\n  e:\n    - k: u8\n    - switch: k\n      cases:\n        1:\n          - x: u8\n      else:\n        - y: u16\n    - z: = x\n", fields: "- a: e[2]", hex: "01 05 02 0102", want: "a=[{k=1 x=5 z=5} {k=2 y=258 z=0}]"},
	{name: "a switch of types without meaning", head: "types:\n  v(k):\n    switch: k\n    cases: {1: u8}\n    else: u16\n", fields: "- k: u8\n- _: v(k)\n- _: u8", hex: "01 05 06", want: "k=1 _=5 _=6"},

	// What lies ahead.
	{name: "left is whole bytes", fields: "- a: u8\n- b: u8[left - 1]\n- c: u8", hex: "01 02 03 04", want: "a=1 b=[2 3] c=4"},
	{name: "text up to the last byte", fields: "- a: text(left - 1)\n- b: u8", hex: "6162 07", want: `a="ab" b=7`},
	{name: "next looks and does not read", fields: "- a: u8\n  if: next(8) == 5\n- b: u8\n  if: next(16) == 0x0607\n- c: u8", hex: "05 06 07", want: "a=5 b=6 c=7"},
	{name: "next in little", head: "order: le", fields: "- a: u8\n  if: next(16) == 0x0605\n- c: u8", hex: "05 06", want: "a=5 c=6"},
	{name: "next behind the end is zero", fields: "- a: u8\n- b: u8\n  if: next(8) != 0", hex: "05", want: "a=5"},
	{name: "a switch on what comes next", fields: "- switch: next(8)\n  cases:\n    1:\n      - a: u8\n      - b: u8\n    2:\n      - c: u8\n- d: u8", hex: "02 07", want: "c=2 d=7"},

	// Notes.
	{name: "valid leaves a note", fields: "- a: u8\n  valid: a < 3\n- b: u8\n  valid: b == a\n  note: b_is_not_a", hex: "03 04", want: "a=3 b=4", notes: "out_of_range b_is_not_a"},
	{name: "valid holds", fields: "- a: u8\n  valid: a < 4 or a > 250", hex: "03", want: "a=3"},

	// Left over.
	{name: "an empty body", fields: "[]", hex: "", want: ""},
	{name: "bytes left over", fields: "- a: u8", hex: "01 02 03", want: "a=1", left: 2},
}

func TestNotation(t *testing.T) {
	for _, c := range notation {
		t.Run(c.name, func(t *testing.T) {
			text := inFields(c.head, c.fields)
			if c.fields == "[]" {
				text = strings.Replace(inFields(c.head, "[]"), "fields:\n      []", "fields: []", 1)
			}
			p := parse(t, text)
			body := unhex(t, c.hex)
			l := p.PacketNamed("TEST").Of(Client)[0]
			tree, d, err := decodeBody(p, l, nil, body)
			if err != nil {
				t.Fatal(err)
			}
			if got := show(tree); got != c.want {
				t.Errorf("%x\ngot  %s\nwant %s", body, got, c.want)
			}
			if got := len(body) - (d.End+7)/8; got != c.left {
				t.Errorf("got %d bytes left over, want %d", got, c.left)
			}
			var notes []string
			for _, r := range d.Remarks {
				notes = append(notes, r.Code)
			}
			if got := strings.Join(notes, " "); got != c.notes {
				t.Errorf("got notes %q, want %q", got, c.notes)
			}
			var e Encoder
			again, fault := e.Append(nil, p, "TEST", l, tree)
			if want := body[:(d.End+7)/8]; fault != nil || !bytes.Equal(again, want) {
				t.Errorf("encoded to %x (%v), want %x", again, fault, want)
			}
			for n := range body {
				if cut, _, _ := decodeBody(p, l, nil, body[:n]); !fits(cut, 0, len(cut.Nodes), 0, 8*n) {
					t.Errorf("%x: a field reaches beyond the bytes: %s", body[:n], show(cut))
				}
			}
		})
	}
}
