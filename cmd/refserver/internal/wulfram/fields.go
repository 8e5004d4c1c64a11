package wulfram

import (
	"fmt"
	"math"

	"opscope/schema"
)

// fields are the values of a body in the order of the wire. They are what a log
// says was sent, so counts stand in them as well, and numbers are those that the
// wire can carry. Unlike schema.Values they keep their order.
type fields []field

// field is a named value: an integer, a float64, a string, []byte, a secret, a
// quantity or a vector, fields for a struct, nil for what is left out, or a list
// of any of these.
type field struct {
	name  string
	value any
}

// list is the elements of an array.
type list []any

// secret is a text that no log shows.
type secret string

// quantity is a quantised number, as it stands on the wire and as it is read.
type quantity struct {
	raw   uint64
	value float64
	bits  int  // width of raw
	sel   int8 // the selector in front, -1 for none
}

// vector is three quantities behind one selector.
type vector struct {
	sel   int8
	parts [3]quantity
}

// tree returns the values as the encoder takes them.
func (f fields) tree() *schema.Tree {
	t := &schema.Tree{}
	addMembers(t, f)
	return t
}

func addMembers(t *schema.Tree, members fields) {
	for _, m := range members {
		addValue(t, &schema.Field{Name: m.name}, m.value)
	}
}

// addValue appends one value and all below it.
func addValue(t *schema.Tree, f *schema.Field, value any) {
	i := len(t.Nodes)
	t.Nodes = append(t.Nodes, schema.Node{Field: f, Sel: -1})
	n := &t.Nodes[i]
	switch v := value.(type) {
	case nil:
		n.Kind = schema.Null
	case int:
		n.Kind, n.Num = schema.Int, uint64(v)
	case uint8:
		n.Kind, n.Num = schema.Uint, uint64(v)
	case uint16:
		n.Kind, n.Num = schema.Uint, uint64(v)
	case uint32:
		n.Kind, n.Num = schema.Uint, uint64(v)
	case uint64:
		n.Kind, n.Num = schema.Uint, v
	case float64:
		n.Kind, n.Num = schema.Float, math.Float64bits(v)
	case quantity:
		n.Kind, n.Num = schema.Float, math.Float64bits(v.value)
		n.Raw, n.Bits, n.Sel, n.Kept = v.raw, uint8(v.bits), v.sel, true
	case secret:
		f.Redact = schema.Secret
		addBytes(t, n, schema.String, []byte(v))
	case string:
		addBytes(t, n, schema.String, []byte(v))
	case []byte:
		addBytes(t, n, schema.Bytes, v)
	default:
		addCompound(t, i, value)
	}
}

// addCompound fills in node i, whose value has members. It panics on a type that
// fields do not take: a programmer's mistake.
func addCompound(t *schema.Tree, i int, value any) {
	element := &schema.Field{}
	t.Nodes[i].Kind = schema.Array
	switch v := value.(type) {
	case fields:
		t.Nodes[i].Kind = schema.Struct
		addMembers(t, v)
	case list:
		for _, e := range v {
			addValue(t, element, e)
		}
	case vector:
		t.Nodes[i].Sel, t.Nodes[i].Kept = v.sel, true
		for _, q := range v.parts {
			addValue(t, element, q)
		}
	default:
		panic(fmt.Sprintf("wulfram: a field of type %T", value))
	}
	t.Nodes[i].Size = int32(len(t.Nodes) - i - 1)
}

func addBytes(t *schema.Tree, n *schema.Node, k schema.ValueKind, b []byte) {
	n.Kind, n.Body, n.BodyLen = k, int32(8*len(t.Data)), int32(len(b))
	t.Data = append(t.Data, b...)
}

// fixed returns the number of 16.16 that is nearest to v (section 2).
func fixed(v float64) float64 { return math.Floor(v*65536+0.5) / 65536 }

// repeat returns a list of n equal values.
func repeat(n int, value any) list {
	l := make(list, n)
	for i := range l {
		l[i] = value
	}
	return l
}

// values is a decoded body, for reading single fields of it.
type values struct{ *schema.Tree }

// elements returns the indexes of the elements of a top-level array.
func (v values) elements(name string) (at []int) {
	i := v.Field(name)
	if i < 0 {
		return nil
	}
	for k := i + 1; k < v.Next(i); k = v.Next(k) {
		at = append(at, k)
	}
	return at
}

// member returns a number of the struct at index i.
func (v values) member(i int, name string) int { return int(int64(v.Uint(v.Member(i, name)))) }
