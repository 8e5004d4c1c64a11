package schema

import (
	"bytes"
	"math"
	"unicode/utf8"

	"opscope/schema/wire"
)

// ValueKind says how a Node's value is to be read.
type ValueKind uint8

// The kinds of values. Struct and Array have members, which follow them in the
// tree; the others stand alone.
const (
	Null   ValueKind = iota // an optional value that is not there
	Uint                    // Num
	Int                     // Num, two's complement
	Float                   // Num, math.Float64bits
	Text                    // bytes of the data in the field's encoding
	Bytes                   // bytes of the data
	GUID                    // 16 bytes of the data, mixed-endian
	IPv4                    // Num
	String                  // UTF-8 in Tree.Data, from a builder; no place on the wire
	Struct
	Array
	Bool // Num, 0 or 1
)

// Node is one value of a Tree, with the bits it came from.
type Node struct {
	Field *Field // what the schema says of it; nil for a value without a schema
	Num   uint64 // the value of a number; of an array, how many of its last elements are not in the tree
	Raw   uint64 // a quantised or floating number as it stood on the wire
	Off   int32  // bits from the start of Tree.Data
	Len   int32  // bits on the wire, 0 for a computed value
	// Body and BodyLen are where the content of Text and Bytes lies, without
	// a length in front of it: bits from the start of Tree.Data, and bytes.
	Body    int32
	BodyLen int32
	Size    int32 // number of nodes below this one; they follow it
	Kind    ValueKind
	Bits    uint8 // width of a number on the wire, 0 when it has none
	Sel     int8  // selector of a quantised number, -1 without
	Kept    bool  // Raw, or the bytes at Body, are to be written as they are
}

// Tree holds decoded values in the order of the wire, each node before its
// members. Data is what the nodes' positions refer to; the decoder borrows it.
// A Tree is reused: Reset keeps its memory.
type Tree struct {
	Nodes []Node
	Data  []byte
}

// Reset empties t for the next record, whose bytes are data.
func (t *Tree) Reset(data []byte) {
	t.Nodes = t.Nodes[:0]
	t.Data = data
}

// Next returns the index of the node after node i and all that is below it.
func (t *Tree) Next(i int) int { return i + 1 + int(t.Nodes[i].Size) }

// Elements counts the elements of node i, an array.
func (t *Tree) Elements(i int) int {
	n := int(t.Nodes[i].Num)
	for k, end := i+1, t.Next(i); k < end; k = t.Next(k) {
		n++
	}
	return n
}

// Find returns the index of the member with this name among the nodes from
// index from to index to, not looking below them, or -1. A superseded one is not
// found.
func (t *Tree) Find(from, to int, name string) int {
	for i := from; i < to; i = t.Next(i) {
		if f := t.Nodes[i].Field; f != nil && f.Name == name && f.Mark != Superseded {
			return i
		}
	}
	return -1
}

// Field returns the index of the top-level field with this name, or -1.
func (t *Tree) Field(name string) int { return t.Find(0, len(t.Nodes), name) }

// Member returns the index of the member of node i with this name, or -1.
func (t *Tree) Member(i int, name string) int {
	if i < 0 {
		return -1
	}
	return t.Find(i+1, t.Next(i), name)
}

// Uint returns the value of the number at index i, or 0 for an index of -1.
func (t *Tree) Uint(i int) uint64 {
	if i < 0 {
		return 0
	}
	return t.Nodes[i].Num
}

// Value returns the value of the top-level number with this name, and whether
// it is there.
func (t *Tree) Value(name string) (uint64, bool) {
	i := t.Field(name)
	return t.Uint(i), i >= 0
}

// Float returns the value of node n as a float.
func (n *Node) Float() float64 {
	switch n.Kind {
	case Float:
		return math.Float64frombits(n.Num)
	case Int:
		return float64(int64(n.Num))
	}
	return float64(n.Num)
}

// isNumber reports whether n is a number that Float can give.
func (n *Node) isNumber() bool { return n.Kind == Uint || n.Kind == Int || n.Kind == Float }

// number returns the value of node n for expressions.
func (n *Node) number() number {
	if n.Kind == Float {
		return number{f: n.Float(), float: true}
	}
	return integer(int64(n.Num))
}

// what names the kind of a value, for errors.
func (n *Node) what() string {
	return [...]string{"nothing", "a number", "a number", "a number", "a text", "bytes", "a GUID", "an address", "a text", "a struct", "an array", "a bool"}[n.Kind]
}

// Number returns a top-level number by its name, 0 where there is none.
func (t *Tree) Number(name string) int {
	v, _ := t.Value(name)
	return int(int64(v))
}

// Text returns a top-level text by its name, "" where there is none.
func (t *Tree) Text(name string) string {
	i := t.Field(name)
	if i < 0 {
		return ""
	}
	return string(t.AppendText(nil, i))
}

// AppendBytes appends the content of node i: the bytes of a Text, Bytes, GUID
// or String, without a length in front of them, and for other kinds the bits on
// the wire, filled up to whole bytes.
func (t *Tree) AppendBytes(dst []byte, i int) []byte {
	n := &t.Nodes[i]
	switch n.Kind {
	case Text, Bytes, GUID, String:
		return wire.AppendBytes(dst, t.Data, int(n.Body), int(n.BodyLen))
	}
	for pos, left := int(n.Off), int(n.Len); left > 0; {
		k := min(8, left)
		dst = append(dst, byte(wire.ReadBits(t.Data, pos, k, wire.Big)<<uint(8-k)))
		pos += k
		left -= k
	}
	return dst
}

// AppendText appends the text of node i as UTF-8, up to its first NUL. Bytes
// that are no valid text of the encoding become U+FFFD; nothing is escaped. Text
// of UTF8Exact is whole, and its invalid bytes become \xff and the like.
func (t *Tree) AppendText(dst []byte, i int) []byte {
	n := &t.Nodes[i]
	var scratch [256]byte
	text := t.text(scratch[:0], n)
	switch encodingOf(n, text) {
	case Latin1:
		return appendLatin1(dst, untilNUL(text))
	case UTF16:
		return appendUTF16(dst, text, n.Field.Order)
	case UTF8Exact:
		return appendExact(dst, text)
	}
	if n.Kind == Text {
		text = untilNUL(text)
	}
	return appendUTF8(dst, text)
}

// text returns the bytes of a text: in the data, or in the scratch where they do not
// begin with a byte of it.
func (t *Tree) text(scratch []byte, n *Node) []byte {
	if n.Body&7 == 0 {
		return t.Data[n.Body>>3:][:n.BodyLen]
	}
	return wire.AppendBytes(scratch, t.Data, int(n.Body), int(n.BodyLen))
}

// encodingOf returns the encoding of a node's text, where that is settled: any but
// UTF16Lax.
func encodingOf(n *Node, text []byte) Encoding {
	switch {
	case n.Kind != Text || n.Field == nil:
		return UTF8
	case n.Field.Encoding != UTF16Lax:
		return n.Field.Encoding
	case looksWide(text):
		return UTF16
	}
	return Latin1
}

// looksWide reports whether every second byte is zero, as in western text of
// 16-bit units.
func looksWide(text []byte) bool {
	if len(text) < 2 {
		return false
	}
	for k := 1; k < len(text); k += 2 {
		if text[k] != 0 {
			return false
		}
	}
	return true
}

func untilNUL(text []byte) []byte {
	if end := bytes.IndexByte(text, 0); end >= 0 {
		return text[:end]
	}
	return text
}

func appendUTF8(dst, text []byte) []byte {
	if utf8.Valid(text) {
		return append(dst, text...)
	}
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		dst = utf8.AppendRune(dst, r)
		text = text[size:]
	}
	return dst
}

func appendExact(dst, text []byte) []byte {
	const digits = "0123456789abcdef"
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r == utf8.RuneError && size <= 1 {
			dst = append(dst, '\\', 'x', digits[text[0]>>4], digits[text[0]&15])
		} else {
			dst = append(dst, text[:size]...)
		}
		text = text[size:]
	}
	return dst
}

func appendLatin1(dst, text []byte) []byte {
	for _, c := range text {
		dst = utf8.AppendRune(dst, rune(c))
	}
	return dst
}

func appendUTF16(dst, text []byte, o wire.Order) []byte {
	unit := func(k int) rune {
		a, b := rune(text[k]), rune(text[k+1])
		if o == wire.Little {
			a, b = b, a
		}
		return a<<8 | b
	}
	for k := 0; k+1 < len(text); k += 2 {
		r := unit(k)
		if r == 0 {
			break
		}
		if r >= 0xd800 && r < 0xdc00 && k+3 < len(text) {
			if low := unit(k + 2); low >= 0xdc00 && low < 0xe000 {
				r = (r-0xd800)<<10 + (low - 0xdc00) + 0x10000
				k += 2
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}
