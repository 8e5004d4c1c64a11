package schema

import "cmp"

// Bounds bound what a schema file can make the loader do, and what one body can make
// the decoder do. A zero field stands for its default.
type Bounds struct {
	Fields    int // compiled fields of one packet, types written out
	Nesting   int // types within types
	Operators int // of one expression
	Brackets  int // within each other, in one expression
	Values    int // of one body
	Text      int // bytes of one field of text or bytes
	Messages  int // Protocol Buffers messages within each other
}

// DefaultBounds are the bounds of a Protocol that says nothing else. The largest
// real body, a BEHAVIOR of Wulfram, has some 3,000 values; no frame of a protocol
// here is a megabyte long; 100 messages are what the common runtimes take.
var DefaultBounds = Bounds{Fields: 100_000, Nesting: 32, Operators: 1000, Brackets: 64, Values: 1 << 18, Text: 1 << 20, Messages: 100}

// The names of the bounds that decoding may reach, as wire.Error has them.
const (
	BoundValues   = "values"
	BoundText     = "text"
	BoundMessages = "messages"
)

// Bounded returns p with other bounds. What is loaded over it keeps to them, too.
func (p *Protocol) Bounded(b Bounds) *Protocol {
	c := *p
	c.bounds = b.or(DefaultBounds)
	return &c
}

// or returns b with its zero fields filled in.
func (b Bounds) or(d Bounds) Bounds {
	return Bounds{
		Fields: cmp.Or(b.Fields, d.Fields), Nesting: cmp.Or(b.Nesting, d.Nesting), Operators: cmp.Or(b.Operators, d.Operators),
		Brackets: cmp.Or(b.Brackets, d.Brackets), Values: cmp.Or(b.Values, d.Values), Text: cmp.Or(b.Text, d.Text),
		Messages: cmp.Or(b.Messages, d.Messages),
	}
}

// limits returns the bounds of p.
func (p *Protocol) limits() Bounds {
	if p.bounds.Values == 0 { // none is set
		return DefaultBounds
	}
	return p.bounds
}
