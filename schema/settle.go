package schema

import (
	"slices"
	"strconv"
)

// settle puts the values of a message in order in which a field came twice: the
// elements of a repeated field are gathered where the first one stands, messages are
// merged, and of other values the last one counts, as it does within a oneof.
func (d *Decoder) settle(m *message, first int) {
	nodes := d.settled(m, split(d.t.Nodes[first:]))
	d.t.Nodes = append(d.t.Nodes[:first], nodes...)
}

// split returns the values of a message, each with what is below it. They alias nodes.
func split(nodes []Node) (values [][]Node) {
	for len(nodes) > 0 {
		n := int(nodes[0].Size) + 1
		values = append(values, nodes[:n:n])
		nodes = nodes[n:]
	}
	return values
}

// settled returns the nodes of a message with these values, in which a field may
// come twice. It copies: what it does is rare.
func (d *Decoder) settled(m *message, values [][]Node) (nodes []Node) {
	s := settler{d: d, m: m, places: map[int]int{}, chosen: map[int]int{}}
	for _, v := range values {
		s.take(v)
	}
	for _, spot := range s.spots {
		switch {
		case len(spot.parts) == 1:
			nodes = append(nodes, spot.parts[0]...)
		case m.fields[spot.field].repeated:
			nodes = append(nodes, gathered(spot.parts)...)
		default:
			nodes = append(nodes, d.merged(m.fields[spot.field], spot.parts)...)
		}
	}
	return nodes
}

// settler finds a place for each value of a message.
type settler struct {
	d      *Decoder
	m      *message
	spots  []spot
	places map[int]int // the spot of the value that counts, by the index of its field
	chosen map[int]int // index of the field by that of its oneof
}

// spot is where a value stands: with all its parts, if it is an array or a message.
type spot struct {
	field int // index in the message, -1 for none
	parts [][]Node
}

func (s *settler) take(v []Node) {
	field := -1
	if mark := v[0].Field.Mark; mark == NoMark || mark == Superseded {
		field = s.m.find(uint64(v[0].Field.Number))
	}
	if field >= 0 && s.m.fields[field].oneof >= 0 {
		s.choose(s.m.fields[field].oneof, field)
	}
	if field < 0 || v[0].Field.Mark == Superseded {
		s.spots = append(s.spots, spot{-1, [][]Node{v}})
		return
	}
	f := s.m.fields[field]
	if at, twice := s.places[field]; twice {
		if f.repeated || f.message != nil {
			s.spots[at].parts = append(s.spots[at].parts, v)
			return
		}
		s.supersede(field)
	}
	s.places[field] = len(s.spots)
	s.spots = append(s.spots, spot{field, [][]Node{v}})
}

// choose makes a field the one of a oneof, in the place of another.
func (s *settler) choose(oneof, field int) {
	if other, ok := s.chosen[oneof]; ok && other != field {
		s.supersede(other)
	}
	s.chosen[oneof] = field
}

// supersede marks the value of a field that another one takes the place of.
func (s *settler) supersede(field int) {
	at, ok := s.places[field]
	if !ok {
		return
	}
	delete(s.places, field)
	f := s.m.fields[field]
	for _, v := range s.spots[at].parts {
		v[0].Field = f.old
	}
	s.d.alike("field_repeated", f.field.Name+" does not count, another value follows")
}

// gathered returns one array of several.
func gathered(parts [][]Node) []Node {
	all := slices.Clone(parts[0])
	for _, v := range parts[1:] {
		all = append(all, v[1:]...)
	}
	all[0].Size = int32(len(all) - 1)
	return all
}

// merged returns one message of several.
func (d *Decoder) merged(f *messageField, parts [][]Node) []Node {
	d.alike("field_repeated", f.field.Name+" came in "+strconv.Itoa(len(parts))+" parts, which are merged")
	var values [][]Node
	there := make([]bool, len(f.message.fields))
	for _, v := range parts {
		for _, member := range split(v[1:]) {
			if member[0].Field.Mark == Absent {
				continue
			}
			values = append(values, member)
			if k := f.message.find(uint64(member[0].Field.Number)); k >= 0 && member[0].Field.Mark == NoMark {
				there[k] = true
			}
		}
	}
	outer := d.t.Nodes
	d.t.Nodes = append([]Node{parts[0][0]}, d.settled(f.message, values)...)
	d.addAbsent(f.message, func(k int) bool { return there[k] })
	all := d.t.Nodes
	d.t.Nodes = outer
	all[0].Size = int32(len(all) - 1)
	return all
}
