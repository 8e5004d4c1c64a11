package filter

import (
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"opscope/dissect"
	"opscope/schema"
)

// subject compiles what has values: a key, a field, or what is computed of them.
func (c *compiler) subject(n ast.Node) (*subject, error) {
	switch n := n.(type) {
	case *ast.IdentifierNode, *ast.MemberNode, *ast.PointerNode:
		return c.resolve(n)
	case *ast.BinaryNode:
		return c.arithmetic(n)
	case *ast.UnaryNode:
		if v, ok := number64(n); ok {
			return constantOf(v), nil
		}
		if n.Operator == "-" {
			s, err := c.numeric(n.Node)
			if err != nil {
				return nil, err
			}
			zero := &arithmetic{operator: "*", left: s, right: constant{signedValue(-1)}}
			return &subject{operand: zero, path: "-" + s.path, kinds: number, list: s.list}, nil
		}
	case *ast.IntegerNode, *ast.FloatNode:
		v, _ := number64(n)
		return constantOf(v), nil
	case *ast.BuiltinNode:
		switch n.Name {
		case "len":
			return c.length(n)
		case "count":
			q, err := c.counting(n)
			return &subject{operand: q, path: "count(...)", kinds: signed}, err
		}
		return nil, c.noFunction(n, n.Name)
	}
	return nil, c.errorf(n, "want a key or a field here")
}

func constantOf(v value) *subject {
	return &subject{operand: constant{v}, path: "the constant", kinds: v.kind}
}

func (c *compiler) numeric(n ast.Node) (*subject, error) {
	s, err := c.value(n)
	if err == nil && s.kinds&number == 0 {
		err = c.errorf(n, "want a number, %s is %v", s.path, s.kinds)
	}
	return s, err
}

func (c *compiler) arithmetic(n *ast.BinaryNode) (*subject, error) {
	if !slices.Contains([]string{"+", "-", "*", "/", "%"}, n.Operator) {
		return nil, c.errorf(n, "a condition is no value that could be compared")
	}
	left, err := c.numeric(n.Left)
	if err != nil {
		return nil, err
	}
	right, err := c.numeric(n.Right)
	if err != nil {
		return nil, err
	}
	if right.list {
		return nil, c.errorf(n.Right, "%s may be several numbers: only the left side may", right.path)
	}
	a := &arithmetic{operator: n.Operator, left: left, right: right}
	return &subject{operand: a, path: left.path + " " + n.Operator + " " + right.path, kinds: number, list: left.list}, nil
}

func (c *compiler) length(n *ast.BuiltinNode) (*subject, error) {
	if len(n.Arguments) != 1 {
		return nil, c.errorf(n, "len wants an array, a text or bytes")
	}
	s, err := c.subject(n.Arguments[0])
	switch {
	case err != nil:
		return nil, err
	case s.kinds == masked:
		return c.value(n.Arguments[0])
	case !s.list && s.kinds&(text|octets) == 0:
		return nil, c.errorf(n.Arguments[0], "%s is %v, and has no length", s.path, s.kinds)
	}
	f, isField := s.operand.(*fieldOperand)
	if isField = isField && !f.head; isField { // no envelope has an array of its own
		f.whole = true
	}
	l := &length{of: s, count: s.list && !isField}
	return &subject{operand: l, path: "len(" + s.path + ")", kinds: signed, list: false}, nil
}

// steps takes a path apart; root is what it begins with.
func (c *compiler) steps(n ast.Node) (root ast.Node, list []step, nodes []ast.Node, err error) {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return n, []step{{n.Value, -1}}, []ast.Node{n}, nil
	case *ast.PointerNode:
		if n.Name != "" {
			return nil, nil, nil, c.errorf(n, "no #%s here: # is the element", n.Name)
		}
		return n, nil, nil, nil
	case *ast.MemberNode:
		if root, list, nodes, err = c.steps(n.Node); err != nil {
			return nil, nil, nil, err
		}
		switch p := n.Property.(type) {
		case *ast.StringNode:
			return root, append(list, step{p.Value, -1}), append(nodes, n), nil
		case *ast.IntegerNode:
			if k := len(list) - 1; k >= 0 && p.Value >= 0 && list[k].index < 0 {
				list[k].index = p.Value
				return root, list, nodes, nil
			}
		}
		return nil, nil, nil, c.errorf(n.Property, "want the number of one element, from 0")
	}
	return nil, nil, nil, c.errorf(n, "want a key or a field here")
}

// resolve finds what a path names: a key of records, or a field.
func (c *compiler) resolve(n ast.Node) (*subject, error) {
	root, list, nodes, err := c.steps(n)
	if err != nil {
		return nil, err
	}
	if _, ok := root.(*ast.PointerNode); ok {
		return c.inElement(root, list, nodes)
	}
	if list[0].name == "fields" && len(list) > 1 {
		return c.field(c.l.fields, list[1:], nodes[1:], false)
	}
	if s, err := c.keyOf(list, n); s != nil || err != nil {
		return s, err
	}
	if list[0].name == "envelope" {
		return c.inEnvelope(list[1:], nodes[1:])
	}
	if len(list) > 1 && slices.Contains(c.l.messages, list[0].name) {
		return nil, c.ofMessage(list, nodes)
	}
	return c.field(c.l.fields, list, nodes, false)
}

// ofMessage refuses MESSAGE.field, and says how to ask for it, or which fields that
// message has.
func (c *compiler) ofMessage(list []step, nodes []ast.Node) error {
	fields := &name{}
	for _, k := range c.l.packets {
		if k.Name == list[0].name {
			addPacket(fields, k, c.l.privacy)
		}
	}
	at, words := fields, make([]string, 0, len(list))
	for i, s := range list[1:] {
		next := at.members[s.name]
		if next == nil && len(at.picks(s.name)) == 0 {
			return c.errorf(nodes[i+1], "%s has no field %q%s", list[0].name, s.name, hintOrList(s.name, at.below()))
		}
		words = append(words, s.name)
		if at = next; at == nil {
			break
		}
	}
	return c.errorf(nodes[0], "%s is a message, and its fields are asked for without it (did you mean message == %[1]s and %s?)",
		list[0].name, strings.Join(words, "."))
}

// keyOf returns the key that a path names, nil for none.
func (c *compiler) keyOf(list []step, n ast.Node) (*subject, error) {
	words := make([]string, 0, len(list))
	for _, s := range list {
		words = append(words, s.name)
	}
	path := strings.Join(words, ".")
	k := keys[path]
	if k == nil {
		return nil, nil
	}
	s := c.key(path)
	if k.beside && c.l.fields.members[path] != nil {
		f, err := c.field(c.l.fields, list, []ast.Node{n}, false)
		if err != nil {
			return nil, err
		}
		f.operand = bothOperand{s.operand, f.operand}
		f.kinds |= s.kinds
		return f, nil
	}
	if len(list) == 2 && list[0].name == "envelope" && c.l.envelope.members[list[1].name] != nil {
		f, err := c.inEnvelope(list[1:], []ast.Node{n})
		if err != nil {
			return nil, err
		}
		f.operand = firstOperand{s.operand, f.operand}
		f.kinds |= s.kinds
		return f, nil
	}
	index := list[len(list)-1].index
	if index < 0 {
		return s, nil
	}
	if !k.list {
		return nil, c.errorf(n, "%s is no array", path)
	}
	s.operand, s.list = &indexOperand{of: s.operand, index: index}, false
	return s, nil
}

func (c *compiler) key(path string) *subject {
	k := keys[path]
	c.look = min(c.look, k.look)
	return &subject{operand: keyOperand{k}, path: path, kinds: k.kinds, list: k.list, words: k.words, notes: path == "notes"}
}

// inEnvelope finds what only the envelopes of some protocols have.
func (c *compiler) inEnvelope(list []step, nodes []ast.Node) (*subject, error) {
	s, err := c.field(c.l.envelope, list, nodes, false)
	if err == nil {
		s.operand.(*fieldOperand).head = true
	}
	return s, err
}

// inElement finds what a path names in the element of the innermost array.
func (c *compiler) inElement(root ast.Node, list []step, nodes []ast.Node) (*subject, error) {
	if len(c.elements) == 0 {
		return nil, c.errorf(root, "# is the element of an array, inside of any, all, none, one and count")
	}
	array := c.elements[len(c.elements)-1]
	switch {
	case len(list) == 0:
		s := *array
		s.operand, s.list = elementOperand{}, false
		return &s, nil
	case array.notes:
		if len(list) == 1 && keys["notes."+list[0].name] != nil {
			s := c.key("notes." + list[0].name)
			s.operand, s.list = noteOperand{list[0].name}, false
			return s, nil
		}
		return nil, c.errorf(nodes[0], "a note has no %q%s", list[0].name, hintOrList(list[0].name, []string{"severity", "code", "text"}))
	case array.field == nil:
		return nil, c.errorf(nodes[0], "an element of %s has no members", array.path)
	}
	return c.field(array.field, list, nodes, true)
}

// field finds a field below from.
func (c *compiler) field(from *name, list []step, nodes []ast.Node, element bool) (*subject, error) {
	c.look = dissect.LookWhole
	o := &fieldOperand{steps: list, element: element}
	s := &subject{operand: o}
	at := from
	for i, step := range list {
		next := at.members[step.name]
		if next == nil && isNumber(step.name) {
			next = numbered(at, step.name)
		}
		if next == nil {
			if o.flag = at.picks(step.name); len(o.flag) > 0 && i == len(list)-1 && i+1 > b2i(!element) && step.index < 0 {
				o.steps = list[:i]
				s.path, s.kinds, s.bit = at.path+"."+step.name, unsigned, true
				return s, nil
			}
			return nil, c.unknown(at, step.name, nodes[min(i, len(nodes)-1)])
		}
		if step.index >= 0 && !next.list {
			return nil, c.errorf(nodes[min(i, len(nodes)-1)], "%s is no array", next.path)
		}
		s.list = s.list || next.list && step.index < 0
		at = next
	}
	s.path, s.kinds, s.enums, s.flags, s.field = at.path, at.kinds, at.enums, at.flags, at
	if s.kinds == 0 { // its type is chosen by a switch of structs
		s.kinds = group
	}
	return s, nil
}

// unknown says that a field has no such member, and what was meant.
func (c *compiler) unknown(at *name, word string, n ast.Node) error {
	if at == c.l.envelope {
		return c.errorf(n, "envelope has no %q%s", word, hintOrList(word, append(at.below(), keysBelow("envelope")...)))
	}
	if at != c.l.fields {
		return c.errorf(n, "%s has no %q%s", at.path, word, hintOrList(word, at.below()))
	}
	if paths := at.find(word); len(paths) > 0 {
		return c.errorf(n, "unknown field %q (did you mean %s?)", word, strings.Join(paths[:min(3, len(paths))], " or "))
	}
	known := at.below()
	for k := range keys {
		known = append(known, k)
		if i := strings.IndexByte(k, '.'); i > 0 {
			known = append(known, k[:i])
		}
	}
	hint := schema.Hint(word, known)
	if hint == "" && slices.Contains(c.l.messages, word) {
		hint = " (did you mean message == " + word + "?)"
	}
	return c.errorf(n, "unknown field %q%s", word, hint)
}
