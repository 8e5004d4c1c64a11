package schema

import (
	"slices"
	"strconv"
)

// Item is one line of a layout, for people.
type Item struct {
	Depth     int
	Field     *Field
	Width     string    // "16 bits", "state.translation[0].a bits", "by slot 5" of its table, "variable", "field 1, varint"
	Condition string    // when the field is there
	Array     string    // how many elements, for an array
	Kind      ValueKind // of the value, of an element for an array; Null for a switch
	Many      bool      // an array, or a vector
	Label     string    // "case 1", for the fields of a switch; the Field is nil
}

// Bytes returns the bytes of every body in this layout, or -1 where they depend on what
// it holds.
func (l *Layout) Bytes() int { return l.code.bytes }

// Items lists the fields of a layout in the order of the wire, members behind
// what holds them.
func (l *Layout) Items() []Item {
	if l.proto != nil {
		return l.proto.message().appendItems(nil, 0, nil)
	}
	return appendItems(nil, l.code.ops, 0)
}

func appendItems(items []Item, ops []*op, depth int) []Item {
	for _, o := range ops {
		items = o.appendItem(items, depth)
	}
	return items
}

func (o *op) appendItem(items []Item, depth int) []Item {
	it := Item{Depth: depth, Field: o.field, Width: o.widthText(), Kind: o.valueKind()}
	it.Many = o.kind == opArray || o.each != nil || o.kind == opPrimitive && o.prim.values > 1
	if o.cond != nil {
		it.Condition = o.cond.text
	}
	if o.each != nil {
		it.Array = "each " + o.each.text
	} else if o.kind == opArray {
		it.Array = o.size.text
	}
	if o.kind == opSwitch {
		it.Label = "switch " + o.on.text
	}
	items = append(items, it)
	switch o.kind {
	case opSwitch:
		for i, c := range o.cases {
			if i > 0 && o.cases[i-1].label == c.label {
				continue
			}
			label := "case " + c.label
			if c.other {
				label = "else"
			}
			items = append(items, Item{Depth: depth + 1, Label: label})
			items = appendItems(items, c.ops, depth+2)
		}
	case opStruct:
		items = appendItems(items, o.body, depth+1)
	case opOptional, opArray:
		if inner := o.body[0]; inner.kind == opStruct {
			items = appendItems(items, inner.body, depth+1)
		} else if inner.kind == opSwitch || inner.kind == opArray {
			items = inner.appendItem(items, depth+1)
		}
	}
	return items
}

// valueKind returns the kind of the node that holds the value, or an element of it.
func (o *op) valueKind() ValueKind {
	switch o.kind {
	case opUint, opJoin, opFill:
		return Uint
	case opInt, opComputed:
		return Int
	case opFloat, opFixed:
		return Float
	case opText:
		return Text
	case opBytes, opRest:
		return Bytes
	case opGUID:
		return GUID
	case opIPv4:
		return IPv4
	case opStruct:
		return Struct
	case opArray, opOptional:
		return o.body[0].valueKind()
	case opPrimitive:
		return o.prim.valueKind()
	}
	return Null
}

func (p *primitive) valueKind() ValueKind {
	switch {
	case p.integer:
		return Uint
	case p.values > 0:
		return Float
	}
	return Text
}

func (o *op) widthText() string {
	switch o.kind {
	case opUint, opInt:
		if o.width != nil {
			return o.width.text + " bits"
		}
		return plural(o.bits, "bit")
	case opComputed, opJoin:
		return "computed"
	case opFill:
		return "to the next byte"
	case opRest:
		return "the rest"
	case opPrimitive:
		return o.primitiveWidth()
	case opSwitch:
		return ""
	}
	if n, ok := o.fixedSize(); ok {
		return sizeText(n)
	}
	if n := o.minimum(); n > 0 {
		return sizeText(n) + " or more"
	}
	return "variable"
}

// primitiveWidth says which entry of its table has the width of a primitive, and
// how many values it is for: "by slot 5", "3 by slot 16 + 4 * bank".
func (o *op) primitiveWidth() string {
	if o.prim.width != "" {
		return o.prim.width
	}
	text := "by slot " + o.args[0].text
	if o.prim.values == 1 {
		return text
	}
	return strconv.Itoa(o.prim.values) + " " + text
}

func sizeText(bits int) string {
	if bits%8 == 0 {
		return plural(bits/8, "byte")
	}
	return plural(bits, "bit")
}

// FieldAt finds what the schema says of a member, by names from the top:
// "entities", "position". It returns nil where no field has this path.
func (l *Layout) FieldAt(path ...string) *Field {
	if l.proto != nil {
		return l.proto.message().fieldAt(path)
	}
	ops := l.code.ops
	var found *Field
	for _, name := range path {
		o := findOp(ops, name)
		if o == nil {
			return nil
		}
		found, ops = o.field, o.members()
	}
	return found
}

// Column is where a number stands in each element of an array, which all have one size. It
// reads the number of an element off its bytes, without what is around it.
type Column struct {
	Size   int // bytes of an element
	number EnvelopeField
}

// Read returns the number in the element that data begins with.
func (c *Column) Read(data []byte) uint64 { return c.number.Read(data[:c.Size]) }

// Column finds a number in the elements of an array, both by their names. It returns nil where
// the array does not begin with a byte, or not always with the same one, where an element tells
// its own size, or where the number is not one that stands there as it is.
func (l *Layout) Column(array, member string) *Column {
	if l == nil || l.proto != nil {
		return nil
	}
	i := slices.IndexFunc(l.code.ops, func(o *op) bool { return o.field != nil && o.field.Name == array })
	if i < 0 || l.code.ops[i].kind != opArray || l.code.ops[i].each != nil {
		return nil
	}
	a := l.code.ops[i]
	before, placed := fixedSize(l.code.ops[:i])
	size, fixed := fixedSize(a.body)
	if !placed || before%8 != 0 || !fixed || size%8 != 0 {
		return nil
	}
	off := 0
	for _, o := range a.members() {
		bits, _ := o.fixedSize()
		if o.kind == opUint && o.field.Name == member {
			c := &Column{Size: size / 8, number: EnvelopeField{name: member, off: off, bits: bits, order: o.order}}
			c.number.settle()
			return c
		}
		off += bits
	}
	return nil
}

// findOp finds a field by name in a list, looking into the cases of switches.
func findOp(ops []*op, name string) *op {
	for _, o := range ops {
		if o.field != nil && o.field.Name == name {
			return o
		}
		if o.kind == opSwitch && o.field == nil {
			for _, c := range o.cases {
				if f := findOp(c.ops, name); f != nil {
					return f
				}
			}
		}
	}
	return nil
}

// members returns the fields below a field, through arrays and optionals.
func (o *op) members() []*op {
	switch o.kind {
	case opStruct:
		return o.body
	case opArray, opOptional:
		return o.body[0].members()
	}
	return nil
}

// appendItems appends the fields of a message. One within itself is not written out
// again.
func (m *message) appendItems(items []Item, depth int, around []*message) []Item {
	if slices.Contains(around, m) {
		return items
	}
	around = append(around, m)
	for _, f := range m.fields {
		it := Item{
			Depth: depth, Field: f.field, Width: "field " + strconv.Itoa(f.field.Number) + ", " + f.field.Wire.String(),
			Kind: f.valueKind(), Many: f.repeated,
		}
		if f.among != "" {
			it.Condition = "one of " + f.among
		}
		if f.repeated {
			it.Array = "any number"
		}
		items = append(items, it)
		if f.message != nil {
			items = f.message.appendItems(items, depth+1, around)
		}
	}
	return items
}

func (m *message) fieldAt(path []string) *Field {
	var found *Field
	for _, name := range path {
		if m == nil {
			return nil
		}
		i := slices.IndexFunc(m.fields, func(f *messageField) bool { return f.field.Name == name })
		if i < 0 {
			return nil
		}
		found, m = m.fields[i].field, m.fields[i].message
	}
	return found
}
