package schema

import (
	"maps"
	"slices"
	"strconv"
)

// Origin says where an entry of a learned table came from. The strongest
// uncertainty wins when several entries decode one record.
type Origin uint8

// The origins, from the surest to the least sure.
const (
	NoOrigin Origin = iota // no table was needed
	Learned                // taught by a packet of this capture
	User                   // given by the user
	Default                // the protocol's stated default
	Guessed                // read off the bytes
)

var originNames = [...]string{NoOrigin: "", Learned: "learned", User: "user", Default: "default", Guessed: "guessed"}

// String returns the word used in NDJSON, empty for NoOrigin.
func (o Origin) String() string {
	if int(o) < len(originNames) {
		return originNames[o]
	}
	return "origin"
}

// TableDecl declares a learned table: `translation: {slot: [a, b, max, range]}`.
type TableDecl struct {
	Name    string
	Key     string   // what the key is called; empty for a single entry
	Columns []string // what the members of an entry are called
	Enum    *Enum    // names of the only column's values, by the column's name
	Flags   *Flags   // names of the bits of a column called mask, by the table's name
	KeyEnum *Enum    // names of the keys, by the key's name
	HexKey  bool     // keys are shown in hexadecimal, as values of the type with the key's name are
}

// Entry is one line of a learned table.
type Entry struct {
	Values []float64 // one for each column
	Texts  []string  // as they stood on the wire, where a number was text; may be nil
	Origin Origin
	Packet int // number of the packet that taught it, 0 for none
	// Personal is the column, from 1, with a name that a person gave himself; 0 for none.
	Personal int
}

// Table is a learned table: entries by key, each with its origin. A Table that
// is in use is not changed in place but replaced, except by Set.
type Table struct {
	Decl   *TableDecl
	low    *[lowKeys]*Entry    // the keys below lowKeys, as most are; nil without any
	quants *[lowKeys]quantiser // what decoding looks at of those that quantise; nil without any
	far    map[int64]*Entry    // the other keys; nil without any
	len    int
	shared bool // low, quants and far are another table's too, and Set copies them first
}

const lowKeys = 64

// quantiser returns the quantiser of an entry, nil without one: entries of far keys have
// none, nor have those that are of no quantised number. Those of a table lie side by side:
// a server has a table of its own for each player, and each record needs some of one.
func (t *Table) quantiser(key int64) *quantiser {
	if t == nil || t.quants == nil || uint64(key) >= lowKeys || !t.quants[key].sound {
		return nil
	}
	return &t.quants[key]
}

// quants returns the quantisers of a table, nil without any.
func (s *State) quants(table int) *[lowKeys]quantiser {
	if s == nil || table < 0 || s.Tables[table] == nil {
		return nil
	}
	return s.Tables[table].quants
}

// NewTable returns an empty table.
func NewTable(d *TableDecl) *Table { return &Table{Decl: d} }

// share returns a table with the entries of t. It costs no more than an empty one
// until it is Set; t must not be Set after that.
func (t *Table) share() *Table {
	shared := *t
	shared.shared = true
	return &shared
}

// Get returns the entry of a key, or nil. The entry is not to be changed.
func (t *Table) Get(key int64) *Entry {
	switch {
	case t == nil:
		return nil
	case uint64(key) >= lowKeys:
		return t.far[key]
	case t.low == nil:
		return nil
	}
	return t.low[key]
}

// Set puts an entry in place.
func (t *Table) Set(key int64, e Entry) {
	if t.shared {
		t.unshare()
	}
	if t.Get(key) == nil {
		t.len++
	}
	t.put(key, &e)
}

// unshare copies the entries that are another table's too.
func (t *Table) unshare() {
	if t.low != nil {
		low := *t.low
		t.low = &low
	}
	if t.quants != nil {
		quants := *t.quants
		t.quants = &quants
	}
	t.far = maps.Clone(t.far)
	t.shared = false
}

func (t *Table) put(key int64, e *Entry) {
	if uint64(key) >= lowKeys {
		if t.far == nil {
			t.far = map[int64]*Entry{}
		}
		t.far[key] = e
		return
	}
	if t.low == nil {
		t.low = new([lowKeys]*Entry)
	}
	t.low[key] = e
	q := quantiserOf(e)
	if t.quants == nil && q.sound {
		t.quants = new([lowKeys]quantiser)
	}
	if t.quants != nil {
		t.quants[key] = q
	}
}

// Len returns the number of entries.
func (t *Table) Len() int {
	if t == nil {
		return 0
	}
	return t.len
}

// Keys returns the keys in ascending order.
func (t *Table) Keys() []int64 {
	if t.Len() == 0 {
		return nil
	}
	keys := slices.AppendSeq(make([]int64, 0, t.len), maps.Keys(t.far))
	if t.low != nil {
		for k, e := range t.low {
			if e != nil {
				keys = append(keys, int64(k))
			}
		}
	}
	slices.Sort(keys)
	return keys
}

// State is what the layouts of one session may look at. It has one table for
// each of the protocol's declarations, in their order; a nil table is empty.
type State struct {
	Tables []*Table
}

// NewState returns the empty state of a protocol.
func (p *Protocol) NewState() *State {
	s := &State{Tables: make([]*Table, len(p.State))}
	for i := range p.State {
		s.Tables[i] = NewTable(&p.State[i])
	}
	return s
}

// Table returns the table with this name, or nil.
func (s *State) Table(name string) *Table {
	for _, t := range s.Tables {
		if t != nil && t.Decl.Name == name {
			return t
		}
	}
	return nil
}

// Replace puts t in the place of the table with the same name.
func (s *State) Replace(t *Table) {
	for i, old := range s.Tables {
		if old.Decl.Name == t.Decl.Name {
			s.Tables[i] = t
		}
	}
}

// Missing names a table entry that a layout needed and nobody had taught.
type Missing struct {
	Table  string
	Key    int64
	Single bool // the table has no key
}

// String returns "state.translation[3]", or "state.build" for a table without a
// key.
func (m Missing) String() string {
	if m.Single {
		return "state." + m.Table
	}
	return "state." + m.Table + "[" + strconv.FormatInt(m.Key, 10) + "]"
}
