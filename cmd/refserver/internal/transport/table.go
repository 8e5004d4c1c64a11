package transport

import "slices"

// Mode says how the records of an opcode travel.
type Mode int

// The stream modes. Mode 2 exists; nobody knows its header.
const (
	Raw     Mode = 0 // no sequence, no acknowledgement
	Latest  Mode = 1 // only the newest matters
	Ordered Mode = 3 // each once, in order
)

// Sequenced reports whether a record of this mode has a sequence that this
// package can keep.
func (m Mode) Sequenced() bool { return m == Latest || m == Ordered }

// Group is a named set of opcodes that share one sequence.
type Group struct {
	Name    string
	Members []uint8
}

// Table is what a handshake teaches about its sender's records. The zero Table is
// that of a sender whose handshake has not come: all raw.
type Table struct {
	Groups []Group
	Pairs  []Pair // in the order of the handshake; a later pair wins
}

// Pair gives an opcode its mode.
type Pair struct {
	Opcode uint8
	Mode   Mode
}

// Mode returns the mode of an opcode.
func (t *Table) Mode(opcode uint8) Mode {
	for _, p := range slices.Backward(t.Pairs) {
		if p.Opcode == opcode {
			return p.Mode
		}
	}
	return Raw
}

// stream returns the number of the stream that an opcode belongs to: its own, or
// that of the first group that names it.
func (t *Table) stream(opcode uint8) int {
	for i, g := range t.Groups {
		if slices.Contains(g.Members, opcode) {
			return groupStreams + i
		}
	}
	return int(opcode)
}

// groupStreams is the number of the first group's stream, above all opcodes.
const groupStreams = 256

// Equal reports whether two tables teach the same.
func (t *Table) Equal(u *Table) bool {
	return slices.Equal(t.Pairs, u.Pairs) && slices.EqualFunc(t.Groups, u.Groups, func(a, b Group) bool {
		return a.Name == b.Name && slices.Equal(a.Members, b.Members)
	})
}
