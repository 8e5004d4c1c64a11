package dissect

import "opscope/schema"

// declared are the fields of packets that the schemas call secret or personal, those of
// all layouts. The zero value is ready to use; it is bounded by the packets of the schemas.
type declared map[declaredKey][]*schema.Field

type declaredKey struct {
	packet *schema.Packet
	sender schema.Sender
}

// of returns the fields of a packet when s sends it; none for a packet nobody knows.
func (d *declared) of(p *schema.Packet, s schema.Sender) []*schema.Field {
	if p == nil {
		return nil
	}
	key := declaredKey{p, s}
	list, ok := (*d)[key]
	if ok {
		return list
	}
	for _, layout := range p.Of(s) {
		for _, it := range layout.Items() {
			if it.Field != nil && it.Field.Name != "" && it.Field.Redact != schema.Open {
				list = append(list, it.Field)
			}
		}
	}
	if *d == nil {
		*d = declared{}
	}
	(*d)[key] = list
	return list
}
