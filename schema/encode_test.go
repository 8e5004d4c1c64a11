package schema

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

// Bodies built out of values, against bytes written by hand.
var built = []struct {
	name   string
	head   string
	fields string
	values Values
	hex    string
}{
	{"counts are computed", "", "- n: u8\n- a: u16[n]\n- m: u8\n- b: bytes(m)", Values{"a": []int{1, 2}, "b": []byte{9}}, "02 0001 0002 01 09"},
	{"counts of what is not there are 0", "", "- n: u8\n- a: u16[n]\n- m: u8\n- b: bytes(m)", Values{}, "00 00"},
	{"a count is written as given, also when wrong", "", "- n: u8\n- a: u16[n]\n- m: u16\n- b: bytes(m)", Values{"n": 7, "a": []int{1}, "m": 0, "b": []byte{9}}, "07 0001 0000 09"},
	{"counts in the elements of an array", "types:\n  e:\n    - n: u8\n    - a: u8[n]\n", "- n: u8\n- e: e[n]",
		Values{"e": []Values{{"a": []int{1}}, {"a": []int{}}, {"n": 9, "a": []int{2, 3}}}}, "03 01 01 00 09 02 03"},
	{"a join is split", "", "- a: u4\n- b: u4\n- c: u8\n- all: join(a, c)", Values{"all": 0xabc, "b": 5}, "c5 ab"},
	{"a part whose join is in another case is left out", "", "- a: u4\n- k: u4\n- switch: k\n  cases:\n    1:\n      - b: u8\n      - all: join(a, b)\n  else:\n    - c: u8", Values{"k": 2, "c": 7}, "02 07"},
	{"a part whose join is in another case may be given", "", "- a: u4\n- k: u4\n- switch: k\n  cases:\n    1:\n      - b: u8\n      - all: join(a, b)\n  else:\n    - c: u8", Values{"a": 3, "k": 2, "c": 7}, "32 07"},
	{"a part whose join is in this case", "", "- a: u4\n- k: u4\n- switch: k\n  cases:\n    1:\n      - b: u8\n      - all: join(a, b)\n  else:\n    - c: u8", Values{"k": 1, "all": 0x125}, "51 12"},
	{"a join out of its parts", "", "- a: u4\n- b: u4\n- all: join(a, b)\n- x: u8\n  if: all == 0x21", Values{"a": 1, "b": 2, "x": 7}, "12 07"},
	{"one element for each bit", "types:\n  e(i):\n    - v: u8\n    - w: u8\n      if: i == 3\n", "- m: u8\n- e: e(index)[each m]",
		Values{"m": 0x0a, "e": []Values{{"v": 1}, {"v": 2, "w": 3}}}, "0a 01 02 03"},
	{"no element for no bit", "", "- m: u8\n- a: u8[each m]\n- b: u8", Values{"m": 0, "b": 7}, "00 07"},
	{"an optional value", "align: bit", "- a: u7?\n- b: u7?\n- c: u7?", Values{"a": 5, "b": nil}, "85 00"},
	{"an optional struct", "align: bit\ntypes:\n  s: [{x: u3}, {y: u4}]\n", "- a: s?", Values{"a": Values{"x": 3, "y": 6}}, "b6"},
	{"a condition that holds", "", "- a: u8\n- b: u8\n  if: a == 1", Values{"a": 1, "b": 7}, "01 07"},
	{"a condition that does not", "", "- a: u8\n- b: u8\n  if: a == 1", Values{"a": 2, "b": 7}, "02"},
	{"one name under two conditions", "", "- a: u8\n- b: u8\n  if: a == 1\n- b: u16\n  if: a != 1", Values{"a": 2, "b": 7}, "02 0007"},
	{"a switch between types", "types:\n  v(k):\n    switch: k\n    cases: {1: u8, 2: u16}\n    else: text(u8)\n", "- k: u8\n- a: v(k)\n- b: v(3)",
		Values{"k": 2, "a": 258, "b": "hi"}, "02 0102 02 6869"},
	{"a switch between lists", "", "- k: u8\n- switch: k\n  cases:\n    1:\n      - a: u8\n  else:\n    - b: u16", Values{"k": 4, "b": 258}, "04 0102"},
	{"a switch on what comes next, by names", "", "- switch: next(8)\n  cases:\n    1:\n      - a: u8\n    2:\n      - b: u8\n      - c: u8", Values{"b": 2, "c": 3}, "02 03"},
	{"what is looked for ahead is written when it is there", "", "- a: u8\n- b: u8\n  if: left > 0", Values{"a": 1, "b": 2}, "01 02"},
	{"names of an enum as words", "enums: {e: {3: three}}", "- a: u8 e\n- b: u16[2] e", Values{"a": "three", "b": []any{"three", 4}}, "03 0003 0004"},
	{"truth as a number", "", "- a: u8", Values{"a": true}, "01"},
	{"whole floats as integers", "", "- a: u8\n- b: i8", Values{"a": 255.0, "b": -1.0}, "ff ff"},
	{"floats", "", "- a: f32\n- b: f64\n- c: fx\n- d: fx\n- e: fx", Values{"a": 1.5, "b": -2, "c": -1.5, "d": 32767.99999, "e": 0.1},
		// 0.1 * 65536 = 6553.6, to the nearest 6554; 32767.99999 * 65536 = 2147483647.34
		"3fc00000 c000000000000000 fffe8000 7fffffff 0000199a"},
	{"a guid", "", "- a: guid\n- b: guid", Values{"a": "{33221100-5544-7766-8899-aabbccddeeff}", "b": bytes.Repeat([]byte{1}, 16)},
		"00112233445566778899aabbccddeeff 01010101010101010101010101010101"},
	{"an ipv4 address", "", "- a: ipv4\n- b: ipv4", Values{"a": "10.0.0.1", "b": 0x7f000001}, "0a000001 7f000001"},
	{"text", "", "- a: text(u8)\n- b: text(u16, nul counted)\n- c: text(nul)\n- d: text(4)\n- e: text(rest)",
		Values{"a": "ab", "b": "", "c": "c", "d": "dé", "e": "end"}, "02 6162 0001 00 63 00 64e90000 656e64"},
	{"text in UTF-8", "", "- a: text(u8, utf8)\n- b: text(nul, utf8)", Values{"a": "é", "b": "😀"}, "02 c3a9 f09f9880 00"},
	{"text in UTF-16", "", "- a: text(u8, utf16)\n- b: text(nul, utf16)", Values{"a": "é😀", "b": "b"}, "06 00e9d83dde00 0062 0000"},
	{"text in UTF-16, little", "order: le", "- a: text(nul, utf16)\n- b: text(nul, utf16 8bit)", Values{"a": "é", "b": "bé"}, "e900 0000 62e9 0000"},
	{"a text given as bytes is written as it is", "", "- a: text(u8, nul counted)", Values{"a": []byte("ab")}, "02 6162"},
	{"the rest", "", "- a: u8\n- b: rest", Values{"a": 1, "b": []byte{2, 3}}, "01 0203"},
	{"no rest", "", "- a: u8\n- b: rest", Values{"a": 1}, "01"},
	{"fill", "", "- a: u3\n- fill\n- b: u8", Values{"a": 5, "b": 7}, "a0 07"},
	{"fill in little", "order: le", "- a: u3\n- fill\n- b: u8", Values{"a": 5, "b": 7}, "05 07"},
	{"fields without meaning are zero", "types:\n  s:\n    - x: u8\n    - y: u16[2]\n", "- _: u8\n- _: s\n- _: text(3)\n- _: text(u16, nul counted)\n- _: guid\n- _: ipv4\n- _: f64\n- _: fx\n- _: bytes(2)\n- _: u16[2]\n- _: text(nul)\n- a: u8",
		Values{"a": 1}, "00 00 00000000 000000 000100 00000000000000000000000000000000 00000000 0000000000000000 00000000 0000 00000000 00 01"},
	{"computed values are taken from what they read", "", "- a: u8\n- b: = a + 1\n- c: u8\n  if: b == 3", Values{"a": 2, "c": 9}, "02 09"},
	{"numbers of odd widths", "align: bit", "- a: u3\n- b: i5\n- c: u9le\n- d: u7le", Values{"a": 5, "b": -2, "c": 0x101, "d": 0x7f}, "be 01 ff"},
	{"any kind of number", "", "- a: u8\n- b: u16\n- c: u32\n- d: u64\n- e: i32\n- f: i64\n- g: u32[1]\n- h: f64[1]\n- i: text(u8)[1]",
		Values{"a": uint8(1), "b": uint16(2), "c": uint32(3), "d": uint64(math.MaxUint64), "e": int32(-1), "f": int64(-2), "g": []uint32{4}, "h": []float64{0.5}, "i": []string{"i"}},
		"01 0002 00000003 ffffffffffffffff ffffffff fffffffffffffffe 00000004 3fe0000000000000 01 69"},
}

func TestValuesEncodeToBytesByHand(t *testing.T) {
	for _, c := range built {
		t.Run(c.name, func(t *testing.T) {
			p := parse(t, inFields(c.head, c.fields))
			var e Encoder
			got, err := e.Append([]byte{0xee}, p, "TEST", p.Packets[0].Of(Client)[0], NewTree(c.values))
			if want := append([]byte{0xee}, unhex(t, c.hex)...); err != nil || !bytes.Equal(got, want) {
				t.Errorf("got  %x (%v)\nwant %x", got, err, want)
			}
		})
	}
}

func TestEncodeErrorsNameTheValue(t *testing.T) {
	for _, c := range []struct {
		name, head, fields string
		values             Values
		want               string
	}{
		{"a missing value", "", "- a: u8", Values{}, "encode TEST.a: want a value, got nothing"},
		{"a missing member", "types:\n  e: [{x: u8}, {y: u8}]\n", "- n: u8\n- a: e[n]", Values{"a": []Values{{"x": 1, "y": 2}, {"x": 1}}}, "encode TEST.a[1].y: want a value, got nothing"},
		{"a missing mask", "", "- m: u8\n- a: u8[each m]", Values{"a": []int{1}}, "encode TEST.m: want a value, got nothing"},
		{"a missing value in a case", "", "- k: u8\n- switch: k\n  cases:\n    1:\n      - a: u8", Values{"k": 1}, "encode TEST.a: want a value, got nothing"},
		{"too large", "", "- a: u8", Values{"a": 256}, "encode TEST.a: want a number of 1 byte, got 256"},
		{"too large for odd bits", "", "- a: u3\n- b: u5", Values{"a": 8, "b": 0}, "encode TEST.a: want a number of 3 bits, got 8"},
		{"negative", "", "- a: u32", Values{"a": -1}, "encode TEST.a: want a number of 4 bytes, got -1"},
		{"too small", "", "- a: i8", Values{"a": -129}, "encode TEST.a: want a number of 1 byte, got -129"},
		{"too large for its sign", "", "- a: i8", Values{"a": 128}, "encode TEST.a: want a number of 1 byte, got 128"},
		{"a fraction", "", "- a: u8", Values{"a": 1.5}, "encode TEST.a: want an integer, got 1.5"},
		{"no number", "", "- a: u8", Values{"a": math.NaN()}, "encode TEST.a: want an integer, got NaN"},
		{"beyond integers", "", "- a: u64", Values{"a": 1e19}, "encode TEST.a: want an integer, got 1e+19"},
		{"beyond fx", "", "- a: fx", Values{"a": 32768}, "encode TEST.a: want a number that fits fx, got 32768"},
		{"beyond fx by its rounding", "", "- a: fx", Values{"a": 32767.999999}, "encode TEST.a: want a number that fits fx, got 32767.999999"},
		{"fx of no number", "", "- a: fx", Values{"a": math.NaN()}, "encode TEST.a: want a number that fits fx, got NaN"},
		{"beyond f32", "", "- a: f32", Values{"a": 1e300}, "encode TEST.a: want a number that fits f32, got 1e+300"},
		{"a word for a number", "", "- a: u8", Values{"a": "x"}, `encode TEST.a: want a number, or a name of the enum, got "x"`},
		{"a struct for a number", "", "- a: u8", Values{"a": Values{}}, "encode TEST.a: want a number, got a struct"},
		{"a number for a text", "", "- a: text(u8)", Values{"a": 1}, "encode TEST.a: want a text, got a number"},
		{"a number for bytes", "", "- a: rest", Values{"a": 1}, "encode TEST.a: want bytes, got a number"},
		{"a number for a struct", "types:\n  s: [{x: u8}]\n", "- a: s", Values{"a": 1}, "encode TEST.a: want a struct, got a number"},
		{"a number for an array", "", "- a: u8[1]", Values{"a": 1}, "encode TEST.a: want an array, got a number"},
		{"a text for fx", "", "- a: fx", Values{"a": "1"}, "encode TEST.a: want a number, got a text"},
		{"no guid", "", "- a: guid", Values{"a": "xyz"}, `encode TEST.a: want a GUID, got "xyz"`},
		{"no address", "", "- a: ipv4", Values{"a": "::1"}, `encode TEST.a: want an IPv4 address, got "::1"`},
		{"too many elements", "", "- a: u8[2]", Values{"a": []int{1, 2, 3}}, "encode TEST.a: want 2 elements, got 3"},
		{"fewer elements than bits", "", "- m: u8\n- a: u8[each m]", Values{"m": 3, "a": []int{1}}, "encode TEST.a: want 2 elements, got 1"},
		{"elements against an expression", "", "- n: u8\n- a: u8[n * 2]", Values{"n": 1, "a": []int{1}}, "encode TEST.a: want 2 elements, got 1"},
		{"too few bytes", "", "- a: bytes(2)", Values{"a": []byte{1}}, "encode TEST.a: want 2 bytes, got 1"},
		{"too long a text", "", "- a: text(2)", Values{"a": "abc"}, "encode TEST.a: want a text of at most 2 bytes, got 3"},
		{"a text too long for its length", "", "- a: text(u8)", Values{"a": strings.Repeat("x", 256)}, "encode TEST.a: want a text whose length fits 1 byte, got 256 bytes"},
		{"a text beyond Latin-1", "", "- a: text(u8)", Values{"a": "a€"}, "encode TEST.a: want a text of Latin-1, got '€'"},
		{"a count that overflows", "", "- n: u2\n- a: u8[n]\n- b: u6", Values{"a": []int{1, 2, 3, 4}, "b": 0}, "encode TEST.n: want a number of 2 bits, got 4"},
		{"a join too large for its parts", "", "- a: u4\n- b: u4\n- c: join(a, b)", Values{"c": 256}, "encode TEST.c: want a number of 1 byte, got 256"},
		{"a part and its join in a case", "", "- a: u4\n- k: u4\n- switch: k\n  cases:\n    1:\n      - b: u8\n      - all: join(a, b)\n  else:\n    - c: u8", Values{"k": 1, "b": 1}, "encode TEST.all: want a value, got nothing"},
		{"a computed width beyond 64", "", "- n: u8\n- a: u(n)", Values{"n": 65, "a": 0}, "encode TEST.a: want a width of 0 to 64 bits, got 65"},
		{"a type without a case", "types:\n  v(k):\n    switch: k\n    cases: {1: u8}\n", "- k: u8\n- a: v(k)", Values{"k": 9, "a": 1}, "encode TEST.a: want a case of k, got 9"},
		{"a division by zero", "", "- n: u8\n- switch: 1 / n\n  cases:\n    1:\n      - a: u8", Values{"n": 0}, "encode TEST: want a value, got a division by zero"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := inFields(c.head, c.fields)
			if strings.Contains(c.fields, "u2\n") {
				text = strings.Replace(text, "align: byte", "align: bit", 1)
			}
			p := parse(t, text)
			var e Encoder
			got, err := e.Append([]byte{0xee}, p, "TEST", p.Packets[0].Of(Client)[0], NewTree(c.values))
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v (%x)\nwant %s", err, got, c.want)
			}
			if err != nil && !bytes.Equal(got, []byte{0xee}) {
				t.Errorf("got %x beside the error, want what was there before", got)
			}
		})
	}
}

func TestAnEncoderIsReusedAfterAnError(t *testing.T) {
	p := parse(t, inFields("", "- a: u8\n- b: u8\n  if: a"))
	var e Encoder
	l := p.Packets[0].Of(Client)[0]
	if _, err := e.Append(nil, p, "TEST", l, NewTree(Values{"a": 1})); err == nil {
		t.Fatal("got no error")
	}
	if got, err := e.Append(nil, p, "TEST", l, NewTree(Values{"a": 0})); err != nil || !bytes.Equal(got, []byte{0}) {
		t.Errorf("got %x (%v), want 00", got, err)
	}
}

const quantised = `
protocol: test
order: be
align: bit
state:
  translation: {slot: [a, b, max, range]}
packets:
  TEST:
    opcode: 1
    fields:
      - a: quant(5)
      - v: quant_vec3(16)
      - b: u8
        if: a > 0.5
`

// The rule is in protocols/wulfram.md, section 7.1.
func TestQuantisedNumbersByHand(t *testing.T) {
	p := parse(t, quantised)
	l := p.Packets[0].Of(Client)[0]
	s := p.NewState()
	s.Replace(translation(p, "QT-WF"))
	for _, c := range []struct {
		name    string
		a       any
		v       []float64
		aRaw    uint64
		vRaw    [3]uint64
		decoded []float64
	}{
		// Slot 5: 10 bits, max 1, range 1. 0.6: (1 - 0.6) * 1022 / 1 = 408.8, raw 409; back: 1 - 408 / 1022.
		// Slot 16: 16 bits behind selector 15, max 8192, range 16384. 100: 8092 * 65534 / 16384 = 32367.01,
		// raw 32368; back: 8192 - 32367 * 16384 / 65534.
		{"in the range", 0.6, []float64{100, 0, -8192}, 409, [3]uint64{32368, 0, 65535}, []float64{1 - 408.0/1022, 8192 - 32367.0*16384/65534, 0, -8192}},
		{"beyond it, clamped", 7, []float64{1e9, -1e9, 8192}, 1, [3]uint64{1, 65535, 1}, []float64{1, 8192, -8192, 8192}},
		{"whole numbers", 1, []float64{0, 0, 0}, 1, [3]uint64{0, 0, 0}, []float64{1, 0, 0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := Encoder{State: s}
			body, err := e.Append(nil, p, "TEST", l, NewTree(Values{"a": c.a, "v": c.v, "b": 7}))
			if err != nil {
				t.Fatal(err)
			}
			// 10 bits, a selector of 4 bits, three of 16, eight of b, two of padding.
			if len(body) != 9 {
				t.Fatalf("got %d bytes, want 9: %x", len(body), body)
			}
			tree, _, fault := decodeBody(p, l, s, body)
			if fault != nil {
				t.Fatal(fault)
			}
			a, v := tree.Field("a"), tree.Field("v")
			if got := tree.Nodes[a].Raw; got != c.aRaw {
				t.Errorf("a: got raw %d, want %d", got, c.aRaw)
			}
			if got := tree.Nodes[v].Sel; got != 15 {
				t.Errorf("got selector %d, want 15", got)
			}
			for k := range 3 {
				if got := tree.Nodes[v+1+k].Raw; got != c.vRaw[k] {
					t.Errorf("v[%d]: got raw %d, want %d", k, got, c.vRaw[k])
				}
			}
			for k, i := range []int{a, v + 1, v + 2, v + 3} {
				if got := tree.Nodes[i].Float(); math.Abs(got-c.decoded[k]) > 1e-9 {
					t.Errorf("value %d: got %v, want %v", k, got, c.decoded[k])
				}
			}
		})
	}
}

func TestQuantisedNumbersKeepTheirBits(t *testing.T) {
	p := parse(t, quantised)
	l := p.Packets[0].Of(Client)[0]
	s := p.NewState()
	s.Replace(translation(p, "QT-WF"))
	// a = raw 1022, so no b; selector 3 is 4 bits a component: raw 1, 15 and 0; 14 bits and 12, six of padding.
	body := unhex(t, "ff8c 7c00")
	tree, d, err := decodeBody(p, l, s, body)
	if err != nil || d.End != 32 || tree.Nodes[tree.Field("v")].Sel != 3 {
		t.Fatalf("got %s to bit %d (%v)", show(tree), d.End, err)
	}
	if got := tree.Nodes[tree.Field("v")+2].Float(); got != -8192 {
		t.Errorf("raw 15 of 4 bits: got %v, want -8192", got)
	}
	e := Encoder{State: s}
	if again, err := e.Append(nil, p, "TEST", l, tree); err != nil || !bytes.Equal(again, body) {
		t.Errorf("got %x (%v), want %x", again, err, body)
	}
	// Under another table the widths differ, and the values are quantised anew.
	s.Table("translation").Set(16, Entry{Values: []float64{8, 0, 8192, 16384}})
	if again, err := e.Append(nil, p, "TEST", l, tree); err != nil || !bytes.Equal(again, unhex(t, "ff80 7fc0 00")) {
		t.Errorf("with 8 bits a component: got %x (%v)", again, err)
	}
}

func TestAVectorIsOfThreeNumbers(t *testing.T) {
	p := parse(t, quantised)
	s := p.NewState()
	s.Replace(translation(p, "QT-WF"))
	for _, c := range []struct {
		v    any
		want string
	}{
		{[]any{1, "x", 2}, "encode TEST.v[1]: want a number, got a text"},
		{[]any{1, []int{2}, 3}, "encode TEST.v[1]: want a number, got an array"},
		{[]int{1, 2}, "encode TEST.v: want a vector of 3 numbers, got an array"},
		{1, "encode TEST.v: want a vector of 3 numbers, got a number"},
	} {
		e := Encoder{State: s}
		if _, err := e.Append(nil, p, "TEST", p.Packets[0].Of(Client)[0], NewTree(Values{"a": 0, "v": c.v})); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

func TestQuantisersThatCannotBe(t *testing.T) {
	p := parse(t, quantised)
	l := p.Packets[0].Of(Client)[0]
	for _, c := range []struct {
		entry []float64
		want  string
	}{
		{[]float64{65, 0, 1, 1}, "test/TEST.a at byte 0 of 12: want widths of 0 to 64 bits, got 65 and 0 (malformed)"},
		{[]float64{-1, 0, 1, 1}, "test/TEST.a at byte 0 of 12: want widths of 0 to 64 bits, got -1 and 0 (malformed)"},
		{[]float64{1, 1e300, 1, 1}, "test/TEST.a at byte 0 of 12: want widths of 0 to 64 bits, got 1 and 1e+300 (malformed)"},
		{[]float64{math.NaN(), 0, 1, 1}, "test/TEST.a at byte 0 of 12: want widths of 0 to 64 bits, got NaN and 0 (malformed)"},
		{[]float64{8, 1, 1, 1}, "test/TEST.a at byte 1 of 12: want a width of 0 to 64 bits, got selector 255 (malformed)"},
	} {
		s := p.NewState()
		s.Table("translation").Set(5, Entry{Values: c.entry})
		body := bytes.Repeat([]byte{0xff}, 12)
		if _, _, err := decodeBody(p, l, s, body); err == nil || err.Error() != c.want {
			t.Errorf("%v: got %v\nwant %s", c.entry, err, c.want)
		}
		e := Encoder{State: s}
		_, err := e.Append(nil, p, "TEST", l, NewTree(Values{"a": 0.5, "v": []float64{0, 0, 0}}))
		if c.entry[0] != 8 && (err == nil || !strings.HasPrefix(err.Error(), "encode TEST.a: want widths of 0 to 64 bits")) {
			t.Errorf("%v: encoded, %v", c.entry, err)
		}
	}
	// The widest and the narrowest that can be.
	for _, entry := range [][]float64{{64, 0, 1, 2}, {1, 0, 1, 2}, {0, 0, 1, 2}, {0, 64, 1, 2}, {6, 64, 1, 2}, {64, 64, 1, 2}, {4, 16, 5, 0}} {
		s := p.NewState()
		s.Table("translation").Set(5, Entry{Values: entry})
		s.Table("translation").Set(16, Entry{Values: []float64{0, 0, 1, 1}})
		for _, v := range []float64{-1, -0.9, 0, 0.25, 1} {
			e := Encoder{State: s}
			body, err := e.Append(nil, p, "TEST", l, NewTree(Values{"a": v, "v": []float64{0, 0, 0}, "b": 1}))
			if err != nil {
				t.Errorf("%v: %v", entry, err)
				continue
			}
			tree, _, fault := decodeBody(p, l, s, body)
			if fault != nil {
				continue // b is not there, or there, by what was left of the value
			}
			if got := tree.Nodes[0].Float(); entry[0] == 64 && entry[1] == 0 && math.Abs(got-v) > 1e-9 {
				t.Errorf("%v: %v came back as %v", entry, v, got)
			}
		}
	}
}
