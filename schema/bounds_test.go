package schema

import (
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// What a file can make the loader do is bounded: each of these would take forever,
// or all memory, if it were not. Those that load are decoded.
func TestTheLoaderIsBounded(t *testing.T) {
	doubling := "types:\n  t0: [{x: u3}, {y: u3}]\n"
	for i := 1; i < 31; i++ {
		a, b := "t"+strconv.Itoa(i), "t"+strconv.Itoa(i-1)
		doubling += "  " + a + ": [{x: " + b + "}, {y: " + b + "}]\n"
	}
	chain := "types:\n  t0: [{x: u3}]\n"
	for i := 1; i < 31; i++ {
		chain += "  t" + strconv.Itoa(i) + ":\n    - n: u3\n    - x: t" + strconv.Itoa(i-1) + "[n]\n"
	}
	deep := "- a: u8"
	for range 200 {
		deep = "- switch: 1\n  cases:\n    1:\n" + indent(deep, "      ")
	}
	for _, c := range []struct{ name, head, fields, want string }{
		{"types that double", doubling, "- a: t30", "a layout of more than 100000 fields"},
		{"arrays of arrays in mid-byte", "align: bit", "- a: u1" + strings.Repeat("[3]", 500), ""},
		{"arrays of arrays whose size overflows", "align: bit", "- a: u64" + strings.Repeat("[262144]", 50), ""},
		{"arrays of arrays of unknown length", "align: bit", "- n: u3\n- a: u3" + strings.Repeat("[n]", 500), ""},
		{"a chain of arrays", "align: bit\n" + chain, "- a: t30", ""},
		{"optionals of optionals", "align: bit", "- a: u1" + strings.Repeat("?", 5000), ""},
		{"more arrays than fields", "", "- a: u8" + strings.Repeat("[1]", 200_000), "a layout of more than 100000 fields"},
		{"switches in switches", "", deep, ""},
		{"an expression of brackets", "", "- a: u8\n- b: = " + strings.Repeat("(", 100_000) + "a", "an expression nested deeper than 1000"},
		{"an expression of signs", "", "- a: u8\n- b: = " + strings.Repeat("-", 100_000) + "a", "an expression nested deeper than 1000"},
		{"a long sum", "", "- a: u8\n- b: = 0" + strings.Repeat(" + a", 50_000), "an expression of more than 1000 operators"},
		{"lists in lists", "", "- a: " + strings.Repeat("[", 50_000), "brackets nested deeper than 500"},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, err := LoadFile(fstest.MapFS{"t.yaml": {Data: []byte(inFields(c.head, c.fields))}}, "t.yaml")
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want an error with %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			data := []byte(strings.Repeat("\x49\x24\x92", 100)) // 3-bit numbers of 2, 2, 2 and so on
			tree, d, _ := decodeBody(all[0], all[0].Packets[0].Of(Client)[0], nil, data)
			if len(tree.Nodes) > DefaultBounds.Values+500 || d.End > 8*len(data) {
				t.Errorf("got %d values up to bit %d", len(tree.Nodes), d.End)
			}
		})
	}
}
