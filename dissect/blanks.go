package dissect

import (
	"encoding/binary"

	"opscope/schema"
)

// Blanks finds what of a record's bytes is to be masked, for whoever writes packets.
type Blanks struct {
	redact Redactor
	list   []Blank
}

// NewBlanks returns a Blanks that hides what p hides.
func NewBlanks(p Privacy) *Blanks { return &Blanks{redact: Redactor{Privacy: p}} }

// Of returns the blanks of a record, valid until the next call.
func (b *Blanks) Of(r *Record) []Blank {
	b.list = b.list[:0]
	m := &b.redact
	if r.Type != FrameRecord {
		return nil
	}
	m.Prepare(r)
	t := &r.Body
	for i := 0; i < len(t.Nodes); i++ {
		switch {
		case m.whole:
			b.value(r, i)
		case m.hidesField(&t.Nodes[i]):
			end := t.Next(i)
			for ; i < end; i++ {
				b.value(r, i)
			}
			i--
		}
	}
	found := m.found
	if m.whole && len(t.Nodes) > 0 {
		found = found[1:] // the first is all of the body, whose values are masked one by one
	}
	for _, s := range found {
		b.add(8*s.From, 8*s.To, FillBytes)
	}
	if from := decoded(r); m.rest || m.whole {
		b.add(8*min(from, len(r.Raw)), 8*len(r.Raw), FillBytes)
	}
	return b.list
}

// value adds the bits of node i that are its value alone.
func (b *Blanks) value(r *Record, i int) {
	n := &r.Body.Nodes[i]
	body := int(n.Body)
	switch n.Kind {
	case schema.Struct, schema.Array, schema.Null:
	case schema.Text:
		b.add(body, body+8*int(n.BodyLen), FillText)
	case schema.Bytes, schema.GUID, schema.String:
		b.add(body, body+8*int(n.BodyLen), FillBytes)
	default:
		b.number(r, n)
	}
}

// number adds the bits of a number. In a Protocol Buffers message its field number stands in
// front of it, unless it is one of several in a row.
func (b *Blanks) number(r *Record, n *schema.Node) {
	from, to := int(n.Off), int(n.Off)+int(n.Len)
	if n.Field == nil || n.Field.Number == 0 {
		b.add(from, to, FillNumber)
		return
	}
	if from&7 == 0 && to <= 8*len(r.Raw) {
		tag, size := binary.Uvarint(r.Raw[from>>3 : to>>3])
		if size > 0 && int(tag>>3) == n.Field.Number && from+8*size < to {
			from += 8 * size
		}
	}
	fill := FillNumber
	if n.Field.Wire == schema.WireVarint {
		fill = FillVarint
	}
	b.add(from, to, fill)
}

func (b *Blanks) add(from, to int, fill Fill) {
	if from < to {
		b.list = append(b.list, Blank{From: from, To: to, Fill: fill})
	}
}
