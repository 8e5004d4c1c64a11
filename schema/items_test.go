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
