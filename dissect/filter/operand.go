package filter

import (
	"math"
	"unicode/utf8"

	"opscope/dissect"
	"opscope/schema"
)

// operand gives values of the record that the scope looks at: none where the record
// does not have them, several for what repeats.
type operand interface {
	values(s *scope, dst []value) []value
}

// keyOperand reads a key.
type keyOperand struct{ key *key }

func (o keyOperand) values(s *scope, dst []value) []value { return o.key.values(s, s.record, dst) }

// bothOperand reads a key that only records without fields have, and the field with
// its name.
type bothOperand struct{ key, field operand }

func (o bothOperand) values(s *scope, dst []value) []value {
	return o.field.values(s, o.key.values(s, dst))
}

// firstOperand reads a key, and where the record does not have it the field of the
// envelope with its name.
type firstOperand struct{ key, field operand }

func (o firstOperand) values(s *scope, dst []value) []value {
	n := len(dst)
	if dst = o.key.values(s, dst); len(dst) > n {
		return dst
	}
	return o.field.values(s, dst)
}

// indexOperand picks one of the values of a key.
type indexOperand struct {
	of    operand
	index int
	buf   []value
}

func (o *indexOperand) values(s *scope, dst []value) []value {
	o.buf = o.of.values(s, o.buf[:0])
	if o.index >= len(o.buf) {
		return dst
	}
	return append(dst, o.buf[o.index])
}

// step is one name of a path, and which element of an array.
type step struct {
	name  string
	index int // -1 for all
}

// fieldOperand reads fields by their path, through arrays: all elements of each.
type fieldOperand struct {
	steps   []step
	flag    []pick // the last name is that of a flag
	element bool   // from the element that the scope is at
	whole   bool   // an array is not taken apart: it is one value
	head    bool   // of the envelope, not of the body
}

// tree returns the fields that the operand is of.
func (o *fieldOperand) tree(s *scope) *schema.Tree {
	if o.head {
		return &s.record.Head
	}
	return &s.record.Body
}

func (o *fieldOperand) values(s *scope, dst []value) []value {
	t := o.tree(s)
	if !o.element {
		return o.among(s, 0, len(t.Nodes), 0, dst)
	}
	i := int(s.element.node)
	if i >= len(t.Nodes) {
		return dst
	}
	return o.at(s, i, -1, dst)
}

// among looks for the name of a step among the nodes from index from to index to.
func (o *fieldOperand) among(s *scope, from, to, depth int, dst []value) []value {
	t := o.tree(s)
	for i := from; i < to; i = t.Next(i) {
		if f := t.Nodes[i].Field; f == nil || f.Name != o.steps[depth].name || f.Hidden || f.Part || f.Mark == schema.Superseded {
			continue
		}
		index := o.steps[depth].index
		if n := &t.Nodes[i]; n.Kind == schema.Array && index >= 0 && !s.mask().HidesNode(t, i) {
			if k := element(t, i, index); k >= 0 {
				dst = o.at(s, k, depth, dst)
			}
			continue
		}
		dst = o.at(s, i, depth, dst)
	}
	return dst
}

// element returns the index of an element of the array at index i, or -1.
func element(t *schema.Tree, i, index int) int {
	for k := i + 1; k < t.Next(i); k = t.Next(k) {
		if index == 0 {
			return k
		}
		index--
	}
	return -1
}

// at goes on from a node that has taken the steps up to depth. What is masked is not
// looked into: it is one value, of which nothing is known.
func (o *fieldOperand) at(s *scope, i, depth int, dst []value) []value {
	t := o.tree(s)
	n := &t.Nodes[i]
	if s.mask().HidesNode(t, i) || n.Kind == schema.String && dissect.IsMask(t, i) {
		return append(dst, value{kind: masked, node: int32(i)})
	}
	last := depth == len(o.steps)-1
	switch {
	case n.Kind == schema.Array && !(last && o.whole):
		for k := i + 1; k < t.Next(i); k = t.Next(k) {
			dst = o.at(s, k, depth, dst)
		}
		return dst
	case last && o.flag != nil:
		return o.flagOf(n, dst)
	case last:
		return s.node(dst, t, i, isNumber(o.steps[depth].name))
	case n.Kind == schema.Struct:
		return o.among(s, i+1, t.Next(i), depth+1, dst)
	}
	return dst
}

// flagOf appends the value of a flag. A number read back without a schema is taken for
// the first of the flags that have the name.
func (o *fieldOperand) flagOf(n *schema.Node, dst []value) []value {
	if n.Kind != schema.Uint && n.Kind != schema.Int {
		return dst
	}
	for i := range o.flag {
		p := &o.flag[i]
		if n.Field == nil || n.Field.Flags == nil && n.Field.Enum == nil || n.Field.Flags == p.of {
			return append(dst, value{kind: unsigned, num: p.flag.Of(n.Num)})
		}
	}
	return dst
}

// elementOperand reads what the scope's element is itself.
type elementOperand struct{}

func (elementOperand) values(s *scope, dst []value) []value { return append(dst, s.element) }

// noteOperand reads a key of the note that the scope's element is.
type noteOperand struct{ key string }

func (o noteOperand) values(s *scope, dst []value) []value {
	if int(s.element.node) >= len(s.record.Notes) {
		return dst
	}
	n := &s.record.Notes[s.element.node]
	switch o.key {
	case "severity":
		return s.noteSeverity(dst, n)
	case "code":
		return s.word(dst, n.Code)
	}
	return s.free(dst, n.Text)
}

// arithmetic is numbers of the left operand with the first of the right one.
type arithmetic struct {
	operator    string
	left, right operand
	a, b        []value
}

func (o *arithmetic) values(s *scope, dst []value) []value {
	o.a, o.b = o.left.values(s, o.a[:0]), o.right.values(s, o.b[:0])
	if len(o.b) == 0 || o.b[0].kind&number == 0 {
		return dst
	}
	for i := range o.a {
		if o.a[i].kind&number == 0 {
			continue
		}
		if v, ok := calculate(o.operator, &o.a[i], &o.b[0]); ok {
			dst = append(dst, v)
		}
	}
	return dst
}

// calculate returns a number: an integer of two integers as long as it fits into 64
// bits, and of a division only where none is left.
func calculate(operator string, a, b *value) (value, bool) {
	if a.small() && b.small() {
		if v, ok := calculateIntegers(operator, int64(a.num), int64(b.num)); ok {
			return signedValue(v), true
		}
	}
	x, y := a.float(), b.float()
	switch operator {
	case "+":
		return floatValue(x + y), true
	case "-":
		return floatValue(x - y), true
	case "*":
		return floatValue(x * y), true
	case "/":
		return floatValue(x / y), y != 0
	}
	return floatValue(math.Mod(x, y)), y != 0
}

func calculateIntegers(operator string, x, y int64) (int64, bool) {
	const safe = 1 << 62
	near := x > -safe && x < safe && y > -safe && y < safe
	switch operator {
	case "+":
		return x + y, near
	case "-":
		return x - y, near
	case "*":
		return x * y, x > -1<<31 && x < 1<<31 && y > -1<<31 && y < 1<<31
	case "/":
		if y == 0 || y == -1 || x%y != 0 {
			return 0, false
		}
		return x / y, true
	}
	if y == 0 || y == -1 {
		return 0, y != 0
	}
	return x % y, true
}

// constant is a number that is written in the filter.
type constant struct{ value value }

func (o constant) values(_ *scope, dst []value) []value { return append(dst, o.value) }

// length is how many elements an array has, letters a text and bytes what is bytes.
type length struct {
	of    operand
	count bool // of a key: how many values there are
	buf   []value
}

func (o *length) values(s *scope, dst []value) []value {
	o.buf = o.of.values(s, o.buf[:0])
	if o.count {
		return append(dst, signedValue(int64(len(o.buf))))
	}
	t := &s.record.Body
	for i := range o.buf {
		switch v := &o.buf[i]; v.kind {
		case text:
			dst = append(dst, signedValue(int64(utf8.RuneCount(v.text))))
		case octets:
			dst = append(dst, signedValue(int64(len(v.text))))
		case group:
			if n := int(v.node); n < len(t.Nodes) && t.Nodes[n].Kind == schema.Array {
				dst = append(dst, signedValue(int64(t.Elements(n))))
			}
		}
	}
	return dst
}
