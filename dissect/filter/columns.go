package filter

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/expr-lang/expr/parser"

	"opscope/dissect"
	"opscope/schema"
)

// Columns reads some values of each record: keys, fields, and what is computed of them.
// It is not for use by several goroutines.
type Columns struct {
	names []string
	list  []operand
	scope scope
	buf   []value
}

// Cell is one value, as the kind that NDJSON has it as. Bytes are valid until the next
// record is read.
type Cell struct {
	Kind   schema.ValueKind // Uint, Int, Float, Text, Bytes, GUID, IPv4 or Bool; Null for the others
	Num    uint64           // of a number, as schema.Node has it
	Single bool             // a float of 32 bits
	Bytes  []byte           // of Text, in UTF-8; of Bytes and GUID
	Addr   netip.AddrPort   // of an address; its port is 0 where it has none
	Time   time.Time        // of a time
	Masked bool             // it is there, and nobody may see it
}

// Columns compiles what is to be read, each an operand as in a filter: "entity_id",
// "entities[0].id", "len(entities)". The error shows the place.
func (l *Language) Columns(paths []string) (*Columns, error) {
	c := &Columns{names: paths, scope: l.scope()}
	for _, path := range paths {
		if len(path) > maxExpression {
			return nil, fmt.Errorf("want a name of at most %d bytes, got %d", maxExpression, len(path))
		}
		tree, err := parser.Parse(path)
		if err != nil {
			return nil, err
		}
		compiler := compiler{l: l, source: tree.Source}
		s, err := compiler.subject(tree.Node)
		if err == nil && s.kinds&(readable|masked) == 0 {
			_, err = compiler.value(tree.Node)
		}
		if err != nil {
			return nil, err
		}
		c.list = append(c.list, s.operand)
	}
	return c, nil
}

// Names returns what was compiled, as it was written.
func (c *Columns) Names() []string { return c.names }

// Read turns to a record, which is to stay valid until the next one.
func (c *Columns) Read(r *dissect.Record) { c.scope.turnTo(r) }

// Append appends the values that column i has in the record: none where it is not there,
// several for what repeats.
func (c *Columns) Append(dst []Cell, i int) []Cell {
	c.buf = c.list[i].values(&c.scope, c.buf[:0])
	for k := range c.buf {
		if cell, ok := c.scope.cell(&c.buf[k]); ok {
			dst = append(dst, cell)
		}
	}
	return dst
}

// cell returns what a value is for others, and false for what is only there or not.
func (s *scope) cell(v *value) (Cell, bool) {
	c := Cell{Num: v.num, Bytes: v.text}
	switch v.kind {
	case signed:
		c.Kind, c.Bytes = schema.Int, nil
	case unsigned:
		c.Kind = schema.Uint
	case float:
		c.Kind, c.Single = schema.Float, v.single()
	case text:
		c.Kind = schema.Text
	case octets:
		c.Kind = schema.Bytes
	case guid:
		c.Kind = schema.GUID
	case ipv4:
		c.Kind = schema.IPv4
	case truth:
		c.Kind = schema.Bool
	case address:
		c.Addr = v.addr
	case moment:
		c.Time = time.Unix(int64(v.num), int64(v.nanos)).UTC()
	case masked:
		return Cell{Masked: true}, true
	default:
		return c, false
	}
	if f := v.field; f != nil && f.Symbol && v.kind&(signed|unsigned) != 0 {
		if name := f.Enum.NameOf(v.num); name != "" {
			return Cell{Kind: schema.Text, Bytes: s.copyOf(name)}, true
		}
	}
	return c, true
}
