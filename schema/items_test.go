package schema

import (
	"slices"
	"testing"
)

func TestWidthsInWords(t *testing.T) {
	p := parse(t, `
protocol: test
order: be
align: bit
state:
  translation: {slot: [a, b, max, range]}
types:
  some: [{a: u1}, {b: u8}]
packets:
  TEST:
    opcode: 1
    fields:
      - one:      u1
      - many:     u7
      - whole:    u8[2]
      - odd:      u3[3]
      - least:    u8?
      - more:     some?
      - learned:  u(state.translation[one].a)
      - scalar:   quant(5)
      - vector:   quant_vec3(16 + 4 * many)
      - computed: = many + 1
      - open:     text(u16)
      - tail:     rest
`)
	want := []string{
		"one: 1 bit", "many: 7 bits", "whole: 2 bytes", "odd: 9 bits", "least: 1 bit or more", "more: 1 bit or more", " a: 1 bit", " b: 8 bits",
		"learned: state.translation[one].a bits", "scalar: by slot 5", "vector: 3 by slot 16 + 4 * many", "computed: computed",
		"open: 2 bytes or more", "tail: the rest",
	}
	var got []string
	for _, it := range p.Packets[0].Of(Client)[0].Items() {
		got = append(got, "      "[:it.Depth]+it.Field.Name+": "+it.Width)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// A column has the numbers that stand in the elements of an array, if their places are fixed.
func TestColumn(t *testing.T) {
	p := parse(t, `
protocol: test
order: be
align: bit
types:
  even: [{a: u4}, {b: u12}, {c: i8}, {d: u16le}]
  odd:  [{a: u4}]
  some: [{a: u8}, {b: u8, if: a == 1}]
  byte: [{a: u8}]
packets:
  TEST:
    opcode: 1
    fields:
      - evens: even[2]
      - odds:  odd[2]
      - somes: some[2]
      - each:  u8[2]
      - alone: u8
      - half:  u4
      - split: byte[2]
      - other: u4
      - text:  text(u8)
      - late:  byte[2]
`)
	l := p.Packets[0].Of(Client)[0]
	data := []byte{0x12, 0x03, 0xff, 0x07, 0x01, 0x45, 0x06, 0x00, 0x08, 0x02}
	for name, want := range map[string][2]uint64{"a": {1, 4}, "b": {0x203, 0x506}, "d": {0x107, 0x208}} {
		c := l.Column("evens", name)
		if c == nil || c.Size != 5 {
			t.Fatalf("%s: got %+v", name, c)
		}
		if got := [2]uint64{c.Read(data), c.Read(data[c.Size:])}; got != want {
			t.Errorf("%s: got %#x, want %#x", name, got, want)
		}
	}
	for _, path := range [][2]string{{"evens", "c"}, {"evens", "x"}, {"odds", "a"}, {"somes", "a"}, {"each", "a"}, {"alone", "a"}, {"none", "a"},
		{"split", "a"}, {"late", "a"}} {
		if c := l.Column(path[0], path[1]); c != nil {
			t.Errorf("%v: got %+v", path, c)
		}
	}
}
