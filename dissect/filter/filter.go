// Package filter is the display filter: it compiles an expression over the keys and
// fields of records, and says of each record whether it is wanted.
//
// The grammar, its precedence and the place in an error are those of
// github.com/expr-lang/expr, of which only the parser is used. What the words mean is
// decided here, once, from the schemas: names.go has the fields, keys.go the keys of
// a record. The result is a tree of conditions that allocates nothing once warm; the
// virtual machine of expr would box each value, and has no way to say that a record
// does not have one.
package filter

import (
	"slices"

	"opscope/dissect"
	"opscope/schema"
)

// Language is what filters may speak of: the keys of records, and the fields of some
// protocols.
type Language struct {
	fields   *name
	envelope *name    // what envelopes have beside the keys of all
	messages []string // names of packets, sorted
	packets  []*schema.Packet
	names    []string // of protocols
	privacy  dissect.Privacy
}

// NewLanguage returns the language of some protocols. What privacy masks is there in a
// record, and no filter compares it: it would tell what the output does not.
func NewLanguage(protocols []*schema.Protocol, privacy dissect.Privacy) *Language {
	l := &Language{fields: &name{}, envelope: &name{path: "envelope"}, privacy: privacy}
	for _, p := range protocols {
		l.names = append(l.names, p.Name)
		for _, k := range p.Packets {
			l.messages = append(l.messages, k.Name)
			l.packets = append(l.packets, k)
			addPacket(l.fields, k, privacy)
		}
		for _, e := range p.Envelopes {
			l.envelope.add(e.Layout.Items(), "", privacy)
		}
	}
	delete(l.envelope.members, "opcode") // the key says it
	slices.Sort(l.names)
	slices.Sort(l.messages)
	l.messages = slices.Compact(l.messages)
	return l
}

// addPacket adds the fields of all layouts of a packet.
func addPacket(n *name, k *schema.Packet, p dissect.Privacy) {
	var done []*schema.Layout
	for _, by := range []schema.Sender{schema.AnySender, schema.Client, schema.Server} {
		for _, layout := range k.Of(by) {
			if slices.Contains(done, layout) {
				continue
			}
			done = append(done, layout)
			n.add(layout.Items(), "", p)
		}
	}
}

// Filter says which records are wanted. A nil Filter wants all of them. It is not for
// use by several goroutines.
type Filter struct {
	condition condition
	look      dissect.Look
	scope     scope
}

// Look says how much of a record the filter looks at.
func (f *Filter) Look() dissect.Look {
	if f == nil {
		return dissect.LookKind
	}
	return f.look
}

// Match reports whether r is wanted. It keeps nothing of r.
func (f *Filter) Match(r *dissect.Record) bool {
	if f == nil {
		return true
	}
	f.scope.turnTo(r)
	wanted := f.condition.holds(&f.scope)
	f.scope.record = nil
	return wanted
}

// And returns a filter that wants what both want. Neither is to be used by itself
// afterwards.
func (f *Filter) And(g *Filter) *Filter {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return &Filter{&both{f.condition, g.condition}, min(f.look, g.look), f.scope}
}

// Not returns a filter that wants what f does not; f is not to be used by itself
// afterwards. Of a nil Filter it is nil.
func (f *Filter) Not() *Filter {
	if f == nil {
		return nil
	}
	return &Filter{&negation{f.condition}, f.look, f.scope}
}
