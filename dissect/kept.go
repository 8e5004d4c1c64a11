package dissect

import (
	"opscope/schema"
	"opscope/schema/wire"
)

// Kept is a copy of a record that borrows nothing. It is used again and again, and
// keeps its memory.
type Kept struct {
	record Record
	fault  wire.Error
	bytes  []byte
}

// Keep copies r with all that it borrows, in the place of what was there.
//
// NB: in a record that a sink reads back the fields have bytes of their own, apart from
// Raw; they are copied one behind the other.
func (k *Kept) Keep(r *Record) {
	packets, notes := k.record.Packets[:0], k.record.Notes[:0]
	nodes, heads := k.record.Body.Nodes[:0], k.record.Head.Nodes[:0]
	data, head := r.Body.Data[:extent(&r.Body)], r.Head.Data[:extent(&r.Head)]
	k.bytes = append(append(append(append(k.bytes[:0], data...), r.Raw...), r.Rest...), head...)
	raw, rest := len(data), len(data)+len(r.Raw)
	after := rest + len(r.Rest)

	k.record = *r
	k.record.home = nil
	k.record.Packets = append(packets, r.Packets...)
	k.record.Notes = append(notes, r.Notes...)
	k.record.Body = schema.Tree{Nodes: append(nodes, r.Body.Nodes...), Data: k.bytes[:raw:raw]}
	k.record.Head = schema.Tree{Nodes: append(heads, r.Head.Nodes...), Data: k.bytes[after:]}
	k.record.Raw, k.record.Rest = k.bytes[raw:rest:rest], k.bytes[rest:after:after]
	if r.Err != nil {
		k.fault = *r.Err
		k.record.Err = &k.fault
	}
}

// Record returns the copy, which is valid until the next call to Keep.
func (k *Kept) Record() *Record { return &k.record }
