package schema

import (
	"testing"

	"opscope/schema/wire"
)

// textNode returns a tree of one text that begins at a bit of data and has size
// bytes.
func textNode(data string, bit, size int, f *Field) *Tree {
	return &Tree{Data: []byte(data), Nodes: []Node{{Field: f, Kind: Text, Body: int32(bit), BodyLen: int32(size)}}}
}

func TestTextsAreReadInTheirEncoding(t *testing.T) {
	for _, c := range []struct {
		name      string
		data      string
		bit, size int
		field     Field
		want      string
	}{
		{"latin-1 up to its NUL", "xna\xefve\x00!", 8, 7, Field{}, "naïve"},
		{"a text that begins in mid-byte", "\x06\x16\x20", 4, 2, Field{}, "ab"}, // 0 61 62 0
		{"UTF-8", "na\xc3\xafve\x00!", 0, 8, Field{Encoding: UTF8}, "naïve"},
		{"bytes that are no UTF-8, each", "a\xff\xfeb\xc3", 0, 5, Field{Encoding: UTF8}, "a\ufffd\ufffdb\ufffd"},
		{"UTF-16 with a pair", "\x00a\xd8\x3d\xde\x00\x00\x00\x00b", 0, 10, Field{Encoding: UTF16}, "a\U0001f600"},
		{"UTF-16 that ends in mid-unit", "a\x00b", 0, 3, Field{Encoding: UTF16, Order: wire.Little}, "a"},
		{"8-bit text in a UTF-16 field", "ab", 0, 2, Field{Encoding: UTF16Lax, Order: wire.Little}, "ab"},
		{"UTF-16 in such a field", "a\x00b\x00", 0, 4, Field{Encoding: UTF16Lax, Order: wire.Little}, "ab"},
	} {
		if got := string(textNode(c.data, c.bit, c.size, &c.field).AppendText([]byte("> "), 0)); got != "> "+c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, "> "+c.want)
		}
	}
	made := NewTree(Values{"a": "x\x00y"})
	if got := string(made.AppendText(nil, 0)); got != "x\x00y" {
		t.Errorf("a text that a builder made: got %q", got)
	}
}

func TestReadingATextAllocatesNothing(t *testing.T) {
	dst := make([]byte, 0, 64)
	for _, tree := range []*Tree{
		textNode("hello there", 0, 11, &Field{}), textNode("\x06\x86\x90", 4, 2, &Field{}),
		textNode("hello \xff there", 0, 13, &Field{Encoding: UTF8}), textNode("h\x00i\x00", 0, 4, &Field{Encoding: UTF16, Order: wire.Little}),
	} {
		if n := testing.AllocsPerRun(100, func() { tree.AppendText(dst, 0) }); n != 0 {
			t.Errorf("%v allocations for %q", n, tree.Data)
		}
	}
}
