package schema

import (
	"math"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"opscope/schema/wire"
)

// This file reads Protocol Buffers of which no schema is known. Every reading is a
// guess: two bytes such as 48 31 are the text "H1" as well as field 9 with the value 49.

// guesses are the messages without a field, one for each redaction: all in them is
// unmatched.
var guesses = [Personal + 1]message{{guess: true}, {guess: true, redact: Secret}, {guess: true, redact: Personal}}

func guessed(r Redaction) *message { return &guesses[r] }

// unmatched decodes a field without a schema: what it may be is read off its bytes. In
// a group, text and bytes are redacted as all says.
func (d *Decoder) unmatched(field *Field, as WireType, all Redaction, depth, start int) bool {
	if !d.unread(field, as, all, depth, start) {
		return d.within(field.Name)
	}
	return true
}

func (d *Decoder) unread(field *Field, as WireType, all Redaction, depth, start int) bool {
	body := d.r.Pos()
	switch as {
	case WireVarint:
		v, ok := d.varint(start)
		if ok {
			d.number64(field, start, body, v, 64)
		}
		return ok
	case WireI32:
		return d.has(start, 4) && d.number64(field, start, body, d.r.Uint(32, wire.Little), 32)
	case WireI64:
		return d.has(start, 8) && d.number64(field, start, body, d.r.Uint(64, wire.Little), 64)
	case WireGroup:
		return d.guessGroup(field, all, depth, start)
	}
	n, ok := d.varint(start)
	if !ok || !d.has(start, n) {
		return false
	}
	return d.guessBytes(field, int(n), depth, start)
}

// number64 adds a number whose type nobody knows.
func (d *Decoder) number64(field *Field, start, body int, v uint64, bits int) bool {
	n := d.add(field, Uint, start)
	n.set(v, bits)
	n.Body, n.BodyLen = int32(body), int32(d.r.Pos()-body)>>3
	return true
}

// guessGroup decodes a group without a schema. Its content ends before its end tag.
func (d *Decoder) guessGroup(field *Field, all Redaction, depth, start int) bool {
	i, body := len(d.t.Nodes), d.r.Pos()
	d.add(field, Struct, start)
	ok := d.nested(guessed(all), i, depth, start, uint64(field.Number), false)
	if d.skims {
		return ok
	}
	n := &d.t.Nodes[i]
	n.Body, n.BodyLen = int32(body), int32(max(0, d.reached(ok)-body))>>3
	if ok {
		n.BodyLen -= int32(protowire.SizeTag(protowire.Number(field.Number)))
	}
	return ok
}

// guessBytes adds what a length stands in front of: a text where it can be shown, else
// a message where all of it parses as one, else bytes. What is redacted is not looked
// into.
func (d *Decoder) guessBytes(field *Field, n, depth, start int) bool {
	data := d.t.Data[d.r.Pos()>>3:][:n]
	plain, broken := printable(data)
	switch {
	case plain:
		return d.bytes(field, Text, start, n)
	case field.Redact == Open && depth < maxGuesses && isMessage(data, depth+1):
		return d.submessage(guessed(Open), field, uint64(n), depth, start)
	case broken:
		return d.bytes(field, Text, start, n)
	}
	return d.bytes(field, Bytes, start, n)
}

// printable reports whether bytes are a text that can be shown, and whether they are
// one in lines: a line break is also the tag that most messages begin with.
func printable(data []byte) (plain, lines bool) {
	plain = true
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			plain = false
		case r == utf8.RuneError && size <= 1 || !unicode.IsPrint(r):
			return false, false
		}
		data = data[size:]
	}
	return plain, true
}

// isMessage reports whether bytes parse as fields to their end, at this depth. It does
// not look into what has a length.
func isMessage(data []byte, depth int) bool {
	for len(data) > 0 {
		n, end := fieldSize(data, depth)
		if n < 0 || end != 0 {
			return false
		}
		data = data[n:]
	}
	return true
}

// fieldSize returns the bytes of the field at the start of data, or -1 where there is
// none; of the end of a group, the group's number as well.
func fieldSize(data []byte, depth int) (size int, end protowire.Number) {
	number, as, n := protowire.ConsumeTag(data)
	switch {
	case n < 0 || number > protowire.MaxValidNumber || depth >= DefaultBounds.Messages:
		return -1, 0
	case as == protowire.EndGroupType:
		return n, number
	case as != protowire.StartGroupType:
		size := protowire.ConsumeFieldValue(number, as, data[n:])
		if size < 0 {
			return -1, 0
		}
		return n + size, 0
	}
	for {
		size, end := fieldSize(data[n:], depth+1)
		if size < 0 || end != 0 && end != number {
			return -1, 0
		}
		n += size
		if end == number {
			return n, 0
		}
	}
}

// Reading is one way to read a value without a schema.
type Reading struct {
	Name string // "uint", "zigzag", "time", "float", "text" and so on
	Kind ValueKind
	Num  uint64 // of a number; of a time, milliseconds since 1970
}

// The times that a number of milliseconds may be taken for: those of this century.
const (
	firstTime = 946_684_800_000
	lastTime  = 4_102_444_800_000
)

// AppendReadings appends the ways to read node i, which has no schema: all that fit
// its wire type, the likeliest first. Text, bytes and members are those of the node.
func (t *Tree) AppendReadings(dst []Reading, i int) []Reading {
	n := &t.Nodes[i]
	if n.Field == nil || n.Field.Mark != Unmatched {
		return dst
	}
	switch n.Field.Wire {
	case WireVarint:
		return appendVarintReadings(dst, n.Num)
	case WireI32:
		f := float64(math.Float32frombits(uint32(n.Num)))
		return append(dst, Reading{"float", Float, math.Float64bits(f)}, Reading{"u32", Uint, n.Num}, Reading{"s32", Int, uint64(int64(int32(n.Num)))})
	case WireI64:
		return appendTime(append(dst, Reading{"double", Float, n.Num}, Reading{"u64", Uint, n.Num}, Reading{"s64", Int, n.Num}), n.Num)
	case WireGroup:
		return append(dst, Reading{Name: "group", Kind: Struct})
	}
	return t.appendBytesReadings(dst, n)
}

func appendVarintReadings(dst []Reading, v uint64) []Reading {
	dst = append(dst, Reading{"uint", Uint, v})
	if int64(v) < 0 {
		dst = append(dst, Reading{"int", Int, v})
	}
	dst = append(dst, Reading{"zigzag", Int, uint64(protowire.DecodeZigZag(v))})
	if v <= 1 {
		dst = append(dst, Reading{"bool", Bool, v})
	}
	return appendTime(dst, v)
}

func appendTime(dst []Reading, v uint64) []Reading {
	if v >= firstTime && v < lastTime {
		return append(dst, Reading{"time", Uint, v})
	}
	return dst
}

func (t *Tree) appendBytesReadings(dst []Reading, n *Node) []Reading {
	data := t.Data[n.Body>>3:][:n.BodyLen]
	_, text := printable(data)
	message := len(data) > 0 && isMessage(data, 1)
	if n.Kind == Struct {
		dst = append(dst, Reading{Name: "message", Kind: Struct})
	}
	if text {
		dst = append(dst, Reading{Name: "text", Kind: Text})
	}
	if message && n.Kind != Struct {
		dst = append(dst, Reading{Name: "message", Kind: Struct})
	}
	if len(data) > 0 && isPacked(data) {
		dst = append(dst, Reading{Name: "packed", Kind: Array})
	}
	return append(dst, Reading{Name: "bytes", Kind: Bytes})
}

// isPacked reports whether data is made of varints.
func isPacked(data []byte) bool {
	for len(data) > 0 {
		_, n := protowire.ConsumeVarint(data)
		if n < 0 {
			return false
		}
		data = data[n:]
	}
	return true
}

// AppendPacked appends the varints that data is made of, and reports whether it is
// made of them.
func AppendPacked(dst []uint64, data []byte) ([]uint64, bool) {
	for len(data) > 0 {
		v, n := protowire.ConsumeVarint(data)
		if n < 0 {
			return dst, false
		}
		dst = append(dst, v)
		data = data[n:]
	}
	return dst, true
}
