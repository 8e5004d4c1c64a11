package filter

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"

	"opscope/dissect"
	"opscope/schema"
)

// maxExpression is more than anybody types, and keeps the depth of the parser's
// recursion small.
const maxExpression = 16 << 10

// maxNested is how deep any, all and the like stand in each other: each multiplies the
// work by the length of its array. No layout nests arrays deeper.
const maxNested = 4

// Compile compiles an expression. The error shows it with a caret below the place, and
// the nearest name there is; it says so when the expression is a capture filter.
func (l *Language) Compile(expression string) (*Filter, error) {
	if len(expression) > maxExpression {
		return nil, fmt.Errorf("want an expression of at most %d bytes, got %d", maxExpression, len(expression))
	}
	if strings.TrimSpace(expression) == "" {
		return nil, fmt.Errorf("the expression is empty")
	}
	tree, err := parser.Parse(expression)
	if err != nil {
		return nil, l.explain(expression, err)
	}
	c := compiler{l: l, source: tree.Source, look: dissect.LookKind}
	condition, err := c.condition(tree.Node)
	if err != nil {
		return nil, l.explain(expression, err)
	}
	return &Filter{condition, c.look, l.scope()}, nil
}

// compiler compiles one expression.
type compiler struct {
	l        *Language
	source   file.Source
	look     dissect.Look // how much of a record has been asked for
	elements []*subject   // of the arrays that the place is inside of
}

// subject is an operand with what is known of its values.
type subject struct {
	operand
	path  string
	kinds kind
	list  bool
	words []string // all texts that there are; nil for any
	enums []*schema.Enum
	flags []*schema.Flags
	field *name // of a field, for what is below it
	notes bool  // a note
	bit   bool  // a flag
	part  bool  // a part of a text is looked for: any words will do
}

// names returns the words that stand for values of s.
func (s *subject) names(l *Language) []string {
	list := append(words(s.enums, s.flags), s.words...)
	switch s.path {
	case "message", "acks.message", "opcode":
		list = append(list, l.messages...)
	case "protocol":
		list = append(list, l.names...)
	}
	return list
}

func (c *compiler) errorf(n ast.Node, format string, args ...any) error {
	e := &file.Error{Location: n.Location(), Message: fmt.Sprintf(format, args...)}
	return e.Bind(c.source)
}

// condition compiles what is true or false.
func (c *compiler) condition(n ast.Node) (condition, error) {
	switch n := n.(type) {
	case *ast.BoolNode:
		return always(n.Value), nil
	case *ast.UnaryNode:
		if n.Operator == "not" || n.Operator == "!" {
			return c.negation(n)
		}
	case *ast.BinaryNode:
		return c.binary(n)
	case *ast.BuiltinNode:
		if n.Name != "len" && n.Name != "count" {
			return c.quantifier(n)
		}
	case *ast.CallNode:
		return c.call(n)
	case *ast.IdentifierNode, *ast.MemberNode, *ast.PointerNode:
		s, err := c.subject(n)
		if err != nil {
			return nil, err
		}
		return &present{of: s, set: s.bit}, nil
	default:
		return nil, c.foreign(n)
	}
	return nil, c.errorf(n, "a number is no condition: compare it")
}

// foreign refuses what the grammar has and filters do not.
func (c *compiler) foreign(n ast.Node) error {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.StringNode, *ast.BytesNode, *ast.ArrayNode:
		return c.errorf(n, "a value is no condition: compare a field with it")
	}
	return c.errorf(n, "filters have no such construct (opscope help filter lists what they have)")
}

// negation compiles not. `x not in LIST` is one operator: it wants an x, as != does.
func (c *compiler) negation(n *ast.UnaryNode) (condition, error) {
	of, err := c.condition(n.Node)
	if err != nil {
		return nil, err
	}
	if b, ok := n.Node.(*ast.BinaryNode); ok && b.Location() == n.Location() {
		switch of := of.(type) {
		case *membership:
			of.none = true
			return of, nil
		case *search:
			of.none = true
			return of, nil
		case *comparison:
			of.relation = different
			return of, nil
		case *pairing:
			of.relation = different
			return of, nil
		}
	}
	return &negation{of}, nil
}

// negated returns `not (x == y)` for `not x == y`, as everybody means it. The parser has taken
// that for `(not x) == y`, which would compare nothing that a record has.
func negated(n *ast.BinaryNode) (inner *ast.BinaryNode, ok bool) {
	not, ok := n.Left.(*ast.UnaryNode)
	if !ok || not.Operator != "not" && not.Operator != "!" {
		return nil, false
	}
	inner = &ast.BinaryNode{Operator: n.Operator, Left: not.Node, Right: n.Right}
	inner.SetLocation(n.Location())
	return inner, true
}

func (c *compiler) binary(n *ast.BinaryNode) (condition, error) {
	if inner, ok := negated(n); ok && n.Operator != "and" && n.Operator != "&&" && n.Operator != "or" && n.Operator != "||" {
		of, err := c.binary(inner)
		if err != nil {
			return nil, err
		}
		return &negation{of}, nil
	}
	if r, ok := relations[n.Operator]; ok {
		return c.comparison(n, r)
	}
	switch n.Operator {
	case "and", "&&", "or", "||":
		left, err := c.condition(n.Left)
		if err != nil {
			return nil, err
		}
		right, err := c.condition(n.Right)
		if err != nil {
			return nil, err
		}
		if n.Operator == "and" || n.Operator == "&&" {
			return &both{left, right}, nil
		}
		return &either{left, right}, nil
	case "in":
		return c.membership(n)
	case "contains", "startsWith", "endsWith", "matches":
		return c.search(n)
	case "+", "-", "*", "/", "%":
		return nil, c.errorf(n, "a number is no condition: compare it")
	}
	return nil, c.errorf(n, "filters have no operator %q", n.Operator)
}

// comparison compiles == and the like. A word on one side is a value of the other
// side where that has it, and else a field.
func (c *compiler) comparison(n *ast.BinaryNode, r relation) (condition, error) {
	left, right := n.Left, n.Right
	if isLiteral(left) && isLiteral(right) {
		return nil, c.errorf(n, "both sides are constants")
	}
	if isLiteral(left) || c.names(right, left) {
		left, right, r = right, left, r.flipped()
	}
	s, err := c.value(left)
	if err != nil {
		return nil, err
	}
	if isLiteral(right) || c.isName(s, right) {
		literal, err := c.literal(s, right, r)
		if err != nil {
			return nil, err
		}
		return &comparison{left: s, relation: r, literal: literal}, nil
	}
	t, err := c.value(right)
	if err != nil {
		return nil, c.notAValue(s, right, err)
	}
	if s.kinds&t.kinds == 0 && (s.kinds&number == 0 || t.kinds&number == 0) {
		return nil, c.errorf(n, "%s is %v, %s is %v", s.path, s.kinds, t.path, t.kinds)
	}
	return &pairing{left: s, right: t, relation: r}, nil
}

// names reports whether a word names a value of what the other side is: only keys and
// fields have names.
func (c *compiler) names(other, word ast.Node) bool {
	if _, ok := word.(*ast.IdentifierNode); !ok {
		return false
	}
	switch other.(type) {
	case *ast.IdentifierNode, *ast.MemberNode, *ast.PointerNode:
	default: // NB: compiling both sides twice at each level would take for ever
		return false
	}
	look := c.look // of what is compiled, which this is not
	s, err := c.subject(other)
	c.look = look
	return err == nil && c.isName(s, word)
}

func (c *compiler) isName(s *subject, n ast.Node) bool {
	word, ok := n.(*ast.IdentifierNode)
	return ok && (slices.Contains(s.names(c.l), word.Value))
}

// notAValue says of an unknown word what it could have been as a value of s.
func (c *compiler) notAValue(s *subject, n ast.Node, err error) error {
	word, ok := n.(*ast.IdentifierNode)
	known := s.names(c.l)
	if !ok || len(known) == 0 && s.kinds&text == 0 || c.known(word.Value) {
		return err
	}
	if s.kinds&text != 0 && !closed(s, known) && schema.Hint(word.Value, known) == "" {
		return c.errorf(n, "unknown field %q; a text stands in quotes", word.Value)
	}
	return c.errorf(n, "%s has no value %q%s", s.path, word.Value, hintOrList(word.Value, known))
}

func (c *compiler) known(word string) bool {
	_, isKey := keys[word]
	return isKey || c.l.fields.members[word] != nil
}

// hintOrList names the word that was meant, or all there are if they are few.
func hintOrList(word string, known []string) string {
	if hint := schema.Hint(word, known); hint != "" || len(known) > 8 {
		return hint
	}
	return " (there are: " + strings.Join(known, " ") + ")"
}

// value compiles an operand whose values can be compared.
func (c *compiler) value(n ast.Node) (*subject, error) {
	s, err := c.subject(n)
	switch {
	case err != nil:
		return nil, err
	case s.kinds&readable != 0:
		return s, nil
	case s.kinds&masked != 0 && s.field.personal:
		return nil, c.errorf(n, "%s is masked, and a filter would tell what it is (without --mask-personal it is shown)", s.path)
	case s.kinds&masked != 0:
		return nil, c.errorf(n, "%s is masked, and a filter would tell what it is (--show-secrets shows it)", s.path)
	}
	return nil, c.errorf(n, "%s is %v: compare one of its members%s", s.path, s.kinds, c.membersOf(s))
}

func (c *compiler) membersOf(s *subject) string {
	var list []string
	if s.field != nil {
		list = s.field.below()
	}
	list = append(list, keysBelow(s.path)...)
	if slices.Sort(list); len(list) == 0 {
		return ""
	}
	return ", such as " + s.path + "." + list[0]
}

// keysBelow returns the members of a key.
func keysBelow(path string) []string {
	var list []string
	for k := range keys {
		if rest, ok := strings.CutPrefix(k, path+"."); ok {
			list = append(list, rest)
		}
	}
	return list
}

// membership compiles `x in [1, 2, 5..9]`, `x in 1..9`, and `x in y`, which is x == y.
func (c *compiler) membership(n *ast.BinaryNode) (condition, error) {
	list, isList := n.Right.(*ast.ArrayNode)
	between, isRange := n.Right.(*ast.BinaryNode)
	isRange = isRange && between.Operator == ".."
	if !isList && !isRange {
		return c.comparison(n, equal)
	}
	s, err := c.value(n.Left)
	if err != nil {
		return nil, err
	}
	nodes := []ast.Node{n.Right}
	if isList {
		nodes = list.Nodes
	}
	m := &membership{of: s}
	for _, item := range nodes {
		r, err := c.interval(s, item)
		if err != nil {
			return nil, err
		}
		m.ranges = append(m.ranges, r)
	}
	return m, nil
}

func (c *compiler) interval(s *subject, n ast.Node) (r interval, err error) {
	b, ok := n.(*ast.BinaryNode)
	if !ok || b.Operator != ".." {
		r.from, err = c.literal(s, n, equal)
		return r, err
	}
	if r.from, err = c.literal(s, b.Left, atLeast); err != nil {
		return r, err
	}
	r.to, err = c.literal(s, b.Right, atMost)
	return r, err
}

// search compiles contains, startsWith, endsWith and matches.
func (c *compiler) search(n *ast.BinaryNode) (condition, error) {
	s, err := c.value(n.Left)
	if err != nil {
		return nil, err
	}
	if s.kinds&(text|octets) == 0 {
		return nil, c.errorf(n, "%s looks into a text or into bytes, and %s is %v", n.Operator, s.path, s.kinds)
	}
	if n.Operator != "matches" {
		free := *s
		free.part = true
		literal, err := c.literal(&free, n.Right, equal)
		if err != nil {
			return nil, err
		}
		return &search{of: s, how: searches[n.Operator], literal: literal}, nil
	}
	word, ok := n.Right.(*ast.StringNode)
	if !ok {
		return nil, c.errorf(n.Right, `matches wants a pattern in quotes, such as "^hello"`)
	}
	pattern, err := regexp.Compile(word.Value)
	if err != nil {
		return nil, c.errorf(word, "%v", err)
	}
	return &search{of: s, pattern: pattern}, nil
}

// quantifier compiles any, all, none and one.
func (c *compiler) quantifier(n *ast.BuiltinNode) (condition, error) {
	if !slices.Contains([]string{"any", "all", "none", "one"}, n.Name) {
		return nil, c.noFunction(n, n.Name)
	}
	q, err := c.counting(n)
	if err != nil {
		return nil, err
	}
	return &quantifier{*q, n.Name}, nil
}

var functions = []string{"any", "all", "none", "one", "count", "len", "note"}

func (c *compiler) noFunction(n ast.Node, word string) error {
	return c.errorf(n, "no function %q%s", word, hintOrList(word, slices.Clone(functions)))
}

func (c *compiler) counting(n *ast.BuiltinNode) (*counting, error) {
	if len(n.Arguments) != 2 {
		return nil, c.errorf(n, "%s wants an array and a condition, such as %[1]s(notes, .severity == warning)", n.Name)
	}
	array, err := c.subject(n.Arguments[0])
	if err != nil {
		return nil, err
	}
	if !array.list {
		return nil, c.errorf(n.Arguments[0], "%s is no array", array.path)
	}
	if len(c.elements) == maxNested {
		return nil, c.errorf(n, "conditions on arrays stand in each other at most %d deep", maxNested)
	}
	predicate, ok := n.Arguments[1].(*ast.PredicateNode)
	if !ok {
		return nil, c.foreign(n.Arguments[1])
	}
	c.elements = append(c.elements, array)
	each, err := c.condition(predicate.Node)
	c.elements = c.elements[:len(c.elements)-1]
	if err != nil {
		return nil, err
	}
	return &counting{array: array, each: each}, nil
}

// call compiles note("CODE").
func (c *compiler) call(n *ast.CallNode) (condition, error) {
	callee, ok := n.Callee.(*ast.IdentifierNode)
	switch {
	case !ok:
		return nil, c.foreign(n)
	case callee.Value != "note":
		return nil, c.noFunction(n, callee.Value)
	case len(n.Arguments) != 1:
		return nil, c.errorf(n, `note wants a code, such as note("retransmission")`)
	}
	s := c.key("notes.code")
	literal, err := c.literal(s, n.Arguments[0], equal)
	if err != nil {
		return nil, err
	}
	return &comparison{left: s, relation: equal, literal: literal}, nil
}
