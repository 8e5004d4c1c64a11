package filter

import (
	"bytes"
	"regexp"
)

// condition holds for a record, or does not. One about values that the record does not
// have does not hold.
type condition interface {
	holds(s *scope) bool
}

type both struct{ left, right condition }

func (c *both) holds(s *scope) bool { return c.left.holds(s) && c.right.holds(s) }

type either struct{ left, right condition }

func (c *either) holds(s *scope) bool { return c.left.holds(s) || c.right.holds(s) }

type negation struct{ of condition }

func (c *negation) holds(s *scope) bool { return !c.of.holds(s) }

type always bool

func (c always) holds(*scope) bool { return bool(c) }

// present holds for a record that has the operand; with set, one that is not zero, which
// goes without saying for what is true or false.
type present struct {
	of  operand
	set bool
	buf []value
}

func (c *present) holds(s *scope) bool {
	c.buf = c.of.values(s, c.buf[:0])
	for i := range c.buf {
		if set := c.set || c.buf[i].kind == truth; !set || c.buf[i].num != 0 {
			return true
		}
	}
	return false
}

// comparison holds when any value of the left operand stands so to the literal; `!=`
// when all that can be compared do, and there is one.
type comparison struct {
	left     operand
	relation relation
	literal  *literal
	buf      []value
}

func (c *comparison) holds(s *scope) bool {
	c.buf = c.left.values(s, c.buf[:0])
	seen := false
	for i := range c.buf {
		order, ok := c.literal.compare(&c.buf[i])
		if !ok {
			continue
		}
		seen = true
		if c.relation.of(order) != (c.relation == different) {
			return c.relation != different
		}
	}
	return seen && c.relation == different
}

// pairing compares the values of two operands, each with each.
type pairing struct {
	left, right operand
	relation    relation
	a, b        []value
}

func (c *pairing) holds(s *scope) bool {
	c.a, c.b = c.left.values(s, c.a[:0]), c.right.values(s, c.b[:0])
	seen := false
	for i := range c.a {
		for j := range c.b {
			order, ok := compareValues(&c.a[i], &c.b[j])
			if !ok {
				continue
			}
			seen = true
			if c.relation.of(order) != (c.relation == different) {
				return c.relation != different
			}
		}
	}
	return seen && c.relation == different
}

// membership holds when any value is among those listed; with none, when there are
// values that can be compared and none of them is.
type membership struct {
	of     operand
	ranges []interval
	none   bool
	buf    []value
}

// interval is a value, or all between two.
type interval struct{ from, to *literal }

func (c *membership) holds(s *scope) bool {
	c.buf = c.of.values(s, c.buf[:0])
	seen := false
	for i := range c.buf {
		for _, r := range c.ranges {
			within, ok := r.holds(&c.buf[i])
			if within {
				return !c.none
			}
			seen = seen || ok
		}
	}
	return seen && c.none
}

// holds reports whether v is within r, and whether the two can be compared.
func (r *interval) holds(v *value) (within, ok bool) {
	from, ok := r.from.compare(v)
	if !ok || r.to == nil {
		return ok && from == 0, ok
	}
	to, ok := r.to.compare(v)
	return ok && from >= 0 && to <= 0, ok
}

// search holds when any text, or any bytes, has what is looked for; with none, when
// there are some and none has.
type search struct {
	of      operand
	how     func(s, part []byte) bool // nil for the pattern
	literal *literal
	pattern *regexp.Regexp
	none    bool
	buf     []value
}

var searches = map[string]func(s, part []byte) bool{
	"contains": bytes.Contains, "startsWith": bytes.HasPrefix, "endsWith": bytes.HasSuffix,
}

func (c *search) holds(s *scope) bool {
	c.buf = c.of.values(s, c.buf[:0])
	seen := false
	for i := range c.buf {
		v := &c.buf[i]
		if v.kind&(text|octets) == 0 {
			continue
		}
		seen = true
		if c.finds(v) {
			return !c.none
		}
	}
	return seen && c.none
}

func (c *search) finds(v *value) bool {
	switch {
	case c.pattern != nil:
		return c.pattern.Match(v.text)
	case v.kind == text:
		return c.literal.kinds&text != 0 && c.how(v.text, c.literal.text)
	}
	return c.literal.kinds&octets != 0 && c.how(v.text, c.literal.octets)
}

// counting says for how many elements of an array a condition holds.
type counting struct {
	array operand
	each  condition
	buf   []value
}

func (c *counting) count(s *scope) (hits, of int) {
	c.buf = c.array.values(s, c.buf[:0])
	outer := s.element
	for i := range c.buf {
		s.element = c.buf[i]
		if c.each.holds(s) {
			hits++
		}
	}
	s.element = outer
	return hits, len(c.buf)
}

func (c *counting) values(s *scope, dst []value) []value {
	hits, _ := c.count(s)
	return append(dst, signedValue(int64(hits)))
}

// quantifier is any, all, none or one.
type quantifier struct {
	counting
	word string
}

func (c *quantifier) holds(s *scope) bool {
	hits, of := c.count(s)
	switch c.word {
	case "any":
		return hits > 0
	case "all":
		return hits == of && of > 0
	case "none":
		return hits == 0
	}
	return hits == 1
}
