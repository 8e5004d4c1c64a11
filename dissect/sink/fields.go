package sink

import (
	"slices"

	"opscope/dissect"
	"opscope/schema"
)

// told reports whether other members say what a field of the envelope does: opcode and
// length.
func told(r *dissect.Record, n *schema.Node) bool {
	switch nameOf(n) {
	case "opcode":
		return true
	case "length":
		return r.Envelope.Length >= 0
	}
	return false
}

// declaration is what the schema says of a field and of the fields inside it:
// the members of its struct, or of the elements of its array.
type declaration struct {
	*schema.Field
	members []declaration
}

// fieldsOf returns the fields of a packet when s sends it, those of all its
// layouts, each name once; none for a packet nobody knows.
func fieldsOf(p *schema.Packet, s schema.Sender) []declaration {
	var list []declaration
	for _, layout := range p.Of(s) {
		list = append(list, nested(layout.Items())...)
	}
	return settled(list)
}

// settled makes one of the fields of a name, which stand in several cases or layouts. Nothing
// tells which of them a value had, so that only what they all say of it is said.
func settled(list []declaration) []declaration {
	var out []declaration
	for _, d := range list {
		i := slices.IndexFunc(out, func(o declaration) bool { return o.Name == d.Name })
		if i < 0 {
			out = append(out, d)
			continue
		}
		out[i].Field = common(out[i].Field, d.Field)
		out[i].members = append(slices.Clip(out[i].members), d.members...)
	}
	for i := range out {
		out[i].members = settled(out[i].members)
	}
	return out
}

// common returns what two fields of a name agree on, of how a value is shown.
func common(a, b *schema.Field) *schema.Field {
	f := *a
	if a.Enum != b.Enum {
		f.Enum = nil
	}
	if a.Flags != b.Flags {
		f.Flags = nil
	}
	if a.Scale != b.Scale {
		f.Scale = 0
	}
	if a.Unit != b.Unit {
		f.Unit = ""
	}
	f.Hex = a.Hex && b.Hex
	if a.Redact == schema.Open || b.Redact == schema.Secret {
		f.Redact = b.Redact
	}
	return &f
}

// nested makes a tree of a list of lines with depths. Lines without a name, the
// cases of a switch, give their fields to the list that they stand in.
func nested(items []schema.Item) []declaration {
	var list []declaration
	for len(items) > 0 {
		f, end := items[0].Field, 1
		for end < len(items) && items[end].Depth > items[0].Depth {
			end++
		}
		members := nested(items[1:end])
		if f != nil && f.Name != "" {
			list = append(list, declaration{Field: f, members: members})
		} else {
			list = append(list, members...)
		}
		items = items[end:]
	}
	return list
}

// declarations keeps what fieldsOf returned. The zero value is ready to use; it
// is bounded by the packets of the schemas.
type declarations map[declarationKey][]declaration

type declarationKey struct {
	packet   *schema.Packet
	sender   schema.Sender
	protocol string // of envelopes, which have no packet
}

func (d *declarations) of(p *schema.Packet, s schema.Sender) []declaration {
	if p == nil {
		return nil
	}
	key := declarationKey{packet: p, sender: s}
	list, ok := (*d)[key]
	if !ok {
		if *d == nil {
			*d = declarations{}
		}
		list = fieldsOf(p, s)
		(*d)[key] = list
	}
	return list
}

// envelopes returns the fields of all envelopes of a protocol, and of those around it.
func (d *declarations) envelopes(schemaOf func(string) *schema.Protocol, protocol string) []declaration {
	if schemaOf == nil {
		return nil
	}
	key := declarationKey{protocol: protocol}
	list, ok := (*d)[key]
	if ok {
		return list
	}
	for p := schemaOf(protocol); p != nil; p = schemaOf(p.Over) {
		for _, e := range p.Envelopes {
			list = append(list, nested(e.Layout.Items())...)
		}
	}
	if *d == nil {
		*d = declarations{}
	}
	(*d)[key] = list
	return list
}
