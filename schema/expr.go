package schema

import (
	"math"
	"math/bits"
	"strconv"
	"strings"

	"opscope/schema/wire"
)

// number is a value of an expression: an integer, or a float.
type number struct {
	i     int64
	f     float64
	float bool
}

func integer(i int64) number { return number{i: i} }

func truth(b bool) number {
	if b {
		return number{i: 1}
	}
	return number{}
}

// real returns n as a number of the kind its value suggests: tables hold
// floats, and a width among them is an integer.
func real(f float64) number {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return number{i: int64(f)}
	}
	return number{f: f, float: true}
}

func (n number) asFloat() float64 {
	if n.float {
		return n.f
	}
	return float64(n.i)
}

// asInt returns n as an integer; a float is truncated, and one beyond the range
// is at its end.
func (n number) asInt() int64 {
	if !n.float {
		return n.i
	}
	switch {
	case n.f >= math.MaxInt64:
		return math.MaxInt64
	case n.f <= math.MinInt64:
		return math.MinInt64
	case n.f != n.f:
		return 0
	}
	return int64(n.f)
}

func (n number) isTrue() bool {
	if n.float {
		return n.f != 0
	}
	return n.i != 0
}

type exprOp uint8

const (
	opConst exprOp = iota
	opName         // a name not yet bound
	opSlot
	opFlag   // some bits of a slot
	opLinear // low + high * a slot
	opWithin // a slot from low to high
	opEntry  // of a table, by a key that is written out or the only one
	opState
	opIndex
	opLeft
	opNext
	opNot
	opNeg
	opInvert
	opAnd
	opOr
	opEqual
	opNotEqual
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
	opAdd
	opSub
	opMul
	opDiv
	opMod
	opBitAnd
	opBitOr
	opBitXor
	opShiftLeft
	opShiftRight
	opPopcount
	opMin
	opMax
	opRoundUp
	opChoose
)

// expr is an expression, bound to the places it reads.
type expr struct {
	op    exprOp
	num   number
	path  []string // of a name: "mask.position"
	spots []Pos    // of its words
	pos   Pos
	args  []*expr
	slot  int
	shift uint8 // of a flag
	mask  uint64
	low   int64 // of opLinear and opWithin
	high  int64
	key   int64 // of opEntry
	table int
	col   int
	plain exprOp // what opLinear and opWithin are where the slot holds a float
	text  string // of the whole expression, on its root
	size  int    // operators up to its end, on its root
	depth int    // brackets within brackets, likewise
}

// precedence of the binary operators; a higher one binds tighter.
var binary = map[string]struct {
	prec int
	op   exprOp
}{
	"or": {1, opOr}, "and": {2, opAnd},
	"==": {4, opEqual}, "!=": {4, opNotEqual},
	"<": {4, opLess}, "<=": {4, opLessEqual}, ">": {4, opGreater}, ">=": {4, opGreaterEqual},
	"|": {5, opBitOr}, "^": {6, opBitXor}, "&": {7, opBitAnd},
	"<<": {8, opShiftLeft}, ">>": {8, opShiftRight},
	"+": {9, opAdd}, "-": {9, opSub},
	"*": {10, opMul}, "/": {10, opDiv}, "%": {10, opMod},
}

var functions = map[string]struct {
	args int
	op   exprOp
}{
	"popcount": {1, opPopcount}, "min": {2, opMin}, "max": {2, opMax},
	"round_up": {2, opRoundUp}, "choose": {3, opChoose}, "next": {1, opNext},
}

// Limits of parsing an expression. A schema's Bounds are narrower, and are looked at
// once it is known whose expression it is.
const (
	maxExprDepth = 1000    // brackets within brackets
	maxExprSize  = 1 << 16 // operators
)

// lexer cuts the words of a type or an expression.
type lexer struct {
	src     string
	pos     Pos // of src
	i       int // behind the current word
	word    string
	start   int
	depth   int
	deepest int
	size    int // operators so far
}

func newLexer(src string, pos Pos) *lexer {
	l := &lexer{src: src, pos: pos}
	l.next()
	return l
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// next moves to the next word; the word is empty at the end.
func (l *lexer) next() {
	for l.i < len(l.src) && (l.src[l.i] == ' ' || l.src[l.i] == '\n') {
		l.i++
	}
	l.start = l.i
	if l.i == len(l.src) {
		l.word = ""
		return
	}
	c := l.src[l.i]
	switch {
	case isWordByte(c):
		for l.i < len(l.src) && (isWordByte(l.src[l.i]) || l.src[l.i] == '.' && c >= '0' && c <= '9') {
			l.i++
		}
	case l.i+1 < len(l.src) && strings.Contains(" == != <= >= << >> ", " "+l.src[l.i:l.i+2]+" "):
		l.i += 2
	default:
		l.i++
	}
	l.word = l.src[l.start:l.i]
}

// take moves on if the current word is w.
func (l *lexer) take(w string) bool {
	if l.word != w || w == "" {
		return false
	}
	l.next()
	return true
}

func (l *lexer) place() Pos { return l.pos.at(l.start) }

// expect moves over w or says that it is missing.
func (l *lexer) expect(w string) error {
	if l.take(w) {
		return nil
	}
	return l.unexpected(strconv.Quote(w))
}

func (l *lexer) unexpected(want string) error {
	if l.word == "" {
		return errorAt(l.place(), "want %s, got the end of %q", want, l.src)
	}
	return errorAt(l.place(), "want %s, got %q", want, l.word)
}

// parseExpr parses a whole text as an expression.
func parseExpr(src string, pos Pos) (*expr, error) {
	l := newLexer(src, pos)
	e, err := l.expr(0)
	if err != nil {
		return nil, err
	}
	if l.word != "" {
		return nil, l.unexpected("an operator")
	}
	e.text = src
	return e, nil
}

// expr parses operators that bind tighter than prec.
func (l *lexer) expr(prec int) (*expr, error) {
	if l.depth++; l.depth > maxExprDepth {
		return nil, errorAt(l.place(), "an expression nested deeper than %d", maxExprDepth)
	}
	l.deepest = max(l.deepest, l.depth)
	defer func() { l.depth-- }()
	from := l.start
	left, err := l.unary()
	if err != nil {
		return nil, err
	}
	for {
		b, ok := binary[l.word]
		if !ok || b.prec <= prec {
			left.text = strings.TrimSpace(l.src[from:l.start])
			left.size, left.depth = l.size, l.deepest
			return left, nil
		}
		pos := l.place()
		if l.size++; l.size > maxExprSize {
			return nil, errorAt(pos, "an expression of more than %d operators", maxExprSize)
		}
		l.next()
		right, err := l.expr(b.prec)
		if err != nil {
			return nil, err
		}
		left = &expr{op: b.op, pos: pos, args: []*expr{left, right}}
	}
}

func (l *lexer) unary() (*expr, error) {
	pos := l.place()
	switch {
	case l.take("not"):
		e, err := l.expr(3)
		return &expr{op: opNot, pos: pos, args: []*expr{e}}, err
	case l.take("-"):
		e, err := l.expr(10)
		return &expr{op: opNeg, pos: pos, args: []*expr{e}}, err
	case l.take("~"):
		e, err := l.expr(10)
		return &expr{op: opInvert, pos: pos, args: []*expr{e}}, err
	case l.take("("):
		e, err := l.expr(0)
		if err != nil {
			return nil, err
		}
		return e, l.expect(")")
	}
	word := l.word
	if word == "" || !isWordByte(word[0]) {
		return nil, l.unexpected("a value")
	}
	l.next()
	if word[0] >= '0' && word[0] <= '9' {
		return parseNumber(word, pos)
	}
	if f, ok := functions[word]; ok || l.word == "(" {
		return l.call(word, f.args, f.op, ok, pos)
	}
	return l.name(word, pos)
}

func parseNumber(word string, pos Pos) (*expr, error) {
	if u, err := strconv.ParseUint(word, 0, 64); err == nil {
		return &expr{op: opConst, num: integer(int64(u)), pos: pos}, nil
	}
	if f, err := strconv.ParseFloat(word, 64); err == nil {
		return &expr{op: opConst, num: number{f: f, float: true}, pos: pos}, nil
	}
	return nil, errorAt(pos, "%q is not a number", word)
}

func (l *lexer) call(word string, n int, op exprOp, known bool, pos Pos) (*expr, error) {
	if !known {
		names := make([]string, 0, len(functions))
		for name := range functions {
			names = append(names, name)
		}
		return nil, errorAt(pos, "unknown function %q%s", word, hint(word, names))
	}
	e := &expr{op: op, pos: pos}
	if err := l.expect("("); err != nil {
		return nil, err
	}
	args, err := l.args()
	if err != nil {
		return nil, err
	}
	if len(args) != n {
		return nil, errorAt(pos, "%s takes %s, got %d", word, plural(n, "argument"), len(args))
	}
	e.args = args
	return e, nil
}

// args parses the arguments of a call, up to and over its ")".
func (l *lexer) args() ([]*expr, error) {
	var args []*expr
	for !l.take(")") {
		if len(args) > 0 {
			if err := l.expect(","); err != nil {
				return nil, err
			}
		}
		a, err := l.expr(0)
		if err != nil {
			return nil, err
		}
		args = append(args, a)
	}
	return args, nil
}

// name parses what follows a name: members, and the key of a table.
func (l *lexer) name(word string, pos Pos) (*expr, error) {
	e := &expr{op: opName, path: []string{word}, spots: []Pos{pos}, pos: pos}
	for {
		switch {
		case l.take("."):
			if l.word == "" || !isWordByte(l.word[0]) {
				return nil, l.unexpected("a name")
			}
			e.path, e.spots = append(e.path, l.word), append(e.spots, l.place())
			l.next()
		case word == "state" && len(e.path) == 2 && e.args == nil && l.take("["):
			key, err := l.expr(0)
			if err != nil {
				return nil, err
			}
			if err := l.expect("]"); err != nil {
				return nil, err
			}
			e.args = []*expr{key}
		default:
			return e, nil
		}
	}
}

// scope resolves the names of an expression.
type scope interface {
	// lookup binds the name in e, or says why it cannot.
	lookup(e *expr) error
}

// bind resolves every name in e, which is then ready to evaluate.
func (e *expr) bind(s scope) error {
	for _, a := range e.args {
		if err := a.bind(s); err != nil {
			return err
		}
	}
	if e.op == opName {
		return s.lookup(e)
	}
	return nil
}

// clone returns a copy of e that can be bound elsewhere.
func (e *expr) clone() *expr {
	if e == nil {
		return nil
	}
	c := *e
	c.args = make([]*expr, len(e.args))
	for i, a := range e.args {
		c.args[i] = a.clone()
	}
	return &c
}

// looksAhead reports whether e depends on bytes not yet read, which are not
// there while encoding.
func (e *expr) looksAhead() bool {
	if e == nil {
		return false
	}
	if e.op == opLeft || e.op == opNext {
		return true
	}
	for _, a := range e.args {
		if a.looksAhead() {
			return true
		}
	}
	return false
}

// constant returns the value of an integer that is written out.
func (e *expr) constant() (int64, bool) {
	if e.op == opNeg {
		n, ok := e.args[0].constant()
		return -n, ok
	}
	return e.num.i, e.op == opConst && !e.num.float
}

// fold writes a bound expression, and what it is made of, as less to evaluate: what is
// constant as its value, and the commonest forms as one operator. It may be folded again.
func (e *expr) fold() {
	if e == nil {
		return
	}
	constant := len(e.args) > 0
	for _, a := range e.args {
		a.fold()
		constant = constant && a.op == opConst
	}
	switch {
	case constant && e.op == opState:
		e.op, e.key, e.args = opEntry, e.args[0].num.asInt(), nil
	case constant && e.op != opNext:
		m := machine{}
		if v := m.eval(e); !m.failed {
			e.op, e.num, e.args = opConst, v, nil
		}
	case e.op == opAnd:
		e.foldRange()
	case len(e.args) == 2:
		e.foldPair()
	}
}

// foldPair folds an operator between a slot, or a multiple of one, and a constant.
func (e *expr) foldPair() {
	a, b, op := e.args[0], e.args[1], e.op
	if mirror, ok := mirrored[op]; ok && a.isInteger() {
		a, b, op = b, a, mirror
	}
	if !b.isInteger() {
		return
	}
	c := b.num.i
	if a.op == opLinear && a.low == 0 && op == opAdd { // c + n * slot
		e.linear(a.slot, c, a.high)
		return
	}
	if a.op != opSlot {
		return
	}
	switch op {
	case opAdd:
		e.linear(a.slot, c, 1)
	case opSub:
		if e.args[1] == b {
			e.linear(a.slot, -c, 1)
		}
	case opMul:
		e.linear(a.slot, 0, c)
	case opEqual:
		e.within(a.slot, c, c)
	case opLessEqual:
		e.within(a.slot, math.MinInt64, c)
	case opGreaterEqual:
		e.within(a.slot, c, math.MaxInt64)
	case opLess:
		if c > math.MinInt64 {
			e.within(a.slot, math.MinInt64, c-1)
		}
	case opGreater:
		if c < math.MaxInt64 {
			e.within(a.slot, c+1, math.MaxInt64)
		}
	}
}

// mirrored are the operators whose operands can change places, as what they then are.
var mirrored = map[exprOp]exprOp{
	opAdd: opAdd, opMul: opMul, opEqual: opEqual,
	opLess: opGreater, opLessEqual: opGreaterEqual, opGreater: opLess, opGreaterEqual: opLessEqual,
}

// foldRange folds the two ends of a range into one operator.
func (e *expr) foldRange() {
	a, b := e.args[0], e.args[1]
	if a.op == opWithin && b.op == opWithin && a.slot == b.slot {
		e.within(a.slot, max(a.low, b.low), min(a.high, b.high))
	}
}

func (e *expr) linear(slot int, low, high int64) {
	e.plain, e.op, e.slot, e.low, e.high = e.op, opLinear, slot, low, high
}

func (e *expr) within(slot int, low, high int64) {
	e.plain, e.op, e.slot, e.low, e.high = e.op, opWithin, slot, low, high
}

// isInteger reports whether e is an integer that is written out.
func (e *expr) isInteger() bool { return e.op == opConst && !e.num.float }

// machine is what expressions are evaluated in: the fields seen so far, the
// learned tables and, while decoding, the cursor.
type machine struct {
	slots []number
	index int64
	p     *Protocol
	state *State
	r     *wire.Reader // nil while encoding

	single  quantiser // of an entry that has none in its table
	origin  Origin    // the least sure origin of the entries used
	failed  bool      // for a fault, or else for the first missing entry
	missing Missing
	fault   string // what an expression could not do
}

// eval evaluates an expression: here what most of them are, in compound what is
// put together.
func (m *machine) eval(e *expr) number {
	switch e.op {
	case opConst:
		return e.num
	case opSlot:
		return m.slots[e.slot]
	case opFlag:
		return integer(int64(m.flag(e)))
	case opLinear:
		if s := &m.slots[e.slot]; !s.float {
			return integer(e.low + e.high*s.i)
		}
		return m.compute(e.plain, e)
	case opWithin:
		if s := &m.slots[e.slot]; !s.float {
			return truth(s.i >= e.low && s.i <= e.high)
		}
		return m.compute(e.plain, e)
	case opEntry:
		return m.evalEntry(e, e.key)
	}
	return m.compute(e.op, e)
}

// flag evaluates an expression that is a flag. It cannot fail.
func (m *machine) flag(e *expr) uint64 { return uint64(m.slots[e.slot].i) >> e.shift & e.mask }

// compute evaluates an expression as one of an operator.
func (m *machine) compute(op exprOp, e *expr) number {
	switch op {
	case opIndex:
		return integer(m.index)
	case opState:
		return m.evalEntry(e, m.eval(e.args[0]).asInt())
	case opLeft:
		if m.r == nil {
			return number{}
		}
		return integer(int64(m.r.Left() >> 3))
	case opNext:
		if m.r == nil {
			return number{}
		}
		return integer(int64(m.r.Peek(int(min(64, max(0, m.eval(e.args[0]).asInt()))), m.p.Order)))
	case opNot:
		return truth(!m.eval(e.args[0]).isTrue())
	case opAnd:
		return truth(m.eval(e.args[0]).isTrue() && m.eval(e.args[1]).isTrue())
	case opOr:
		return truth(m.eval(e.args[0]).isTrue() || m.eval(e.args[1]).isTrue())
	case opChoose:
		if m.eval(e.args[0]).isTrue() {
			return m.eval(e.args[1])
		}
		return m.eval(e.args[2])
	case opNeg:
		n := m.eval(e.args[0])
		return number{i: -n.i, f: -n.f, float: n.float}
	case opInvert:
		return integer(^m.eval(e.args[0]).asInt())
	case opPopcount:
		return integer(int64(bits.OnesCount64(uint64(m.eval(e.args[0]).asInt()))))
	}
	a, b := m.eval(e.args[0]), m.eval(e.args[1])
	if a.float || b.float {
		return m.evalFloats(op, a.asFloat(), b.asFloat())
	}
	return m.evalInts(op, a.i, b.i)
}

func (m *machine) evalInts(op exprOp, a, b int64) number {
	switch op {
	case opEqual:
		return truth(a == b)
	case opNotEqual:
		return truth(a != b)
	case opLess:
		return truth(a < b)
	case opLessEqual:
		return truth(a <= b)
	case opGreater:
		return truth(a > b)
	case opGreaterEqual:
		return truth(a >= b)
	case opAdd:
		return integer(a + b)
	case opSub:
		return integer(a - b)
	case opMul:
		return integer(a * b)
	case opDiv, opMod, opRoundUp:
		if b == 0 {
			m.failed, m.fault = true, "a division by zero"
			return number{}
		}
		switch op {
		case opDiv:
			return integer(a / b)
		case opMod:
			return integer(a % b)
		}
		return integer((a + b - 1) / b * b)
	case opBitAnd:
		return integer(a & b)
	case opBitOr:
		return integer(a | b)
	case opBitXor:
		return integer(a ^ b)
	case opShiftLeft:
		return integer(a << uint64(b))
	case opShiftRight:
		return integer(int64(uint64(a) >> uint64(b)))
	case opMin:
		return integer(min(a, b))
	}
	return integer(max(a, b))
}

func (m *machine) evalFloats(op exprOp, a, b float64) number {
	switch op {
	case opEqual:
		return truth(a == b)
	case opNotEqual:
		return truth(a != b)
	case opLess:
		return truth(a < b)
	case opLessEqual:
		return truth(a <= b)
	case opGreater:
		return truth(a > b)
	case opGreaterEqual:
		return truth(a >= b)
	case opAdd:
		return number{f: a + b, float: true}
	case opSub:
		return number{f: a - b, float: true}
	case opMul:
		return number{f: a * b, float: true}
	case opDiv, opMod:
		if b == 0 {
			m.failed, m.fault = true, "a division by zero"
			return number{}
		}
		if op == opMod {
			return number{f: math.Mod(a, b), float: true}
		}
		return number{f: a / b, float: true}
	case opMin:
		return number{f: min(a, b), float: true}
	case opMax:
		return number{f: max(a, b), float: true}
	}
	return m.evalInts(op, number{f: a, float: true}.asInt(), number{f: b, float: true}.asInt())
}

func (m *machine) evalEntry(e *expr, key int64) number {
	if q := m.quantised(e.table, key); q != nil && q.whole && e.col == 0 {
		return integer(int64(q.a))
	}
	if f := m.entry(e.table, key); f != nil && e.col < len(f.Values) {
		return real(f.Values[e.col])
	}
	return number{}
}

// quantised returns the quantiser of an entry of a learned table, and notes its origin. It
// returns nil, and notes nothing, for an entry without one.
func (m *machine) quantised(table int, key int64) *quantiser {
	if m.state == nil {
		return nil
	}
	q := m.state.Tables[table].quantiser(key)
	if q != nil && q.origin > m.origin {
		m.origin = q.origin
	}
	return q
}

// entry returns an entry of a learned table and notes its origin, or notes that it is
// missing.
func (m *machine) entry(table int, key int64) (e *Entry) {
	if m.state != nil {
		e = m.state.Tables[table].Get(key)
	}
	if e == nil {
		m.lacks(table, key)
		return nil
	}
	m.origin = max(m.origin, e.Origin)
	return e
}

// lacks notes that an entry is missing.
func (m *machine) lacks(table int, key int64) {
	if !m.failed {
		m.missing, m.failed = Missing{Table: m.p.State[table].Name, Key: key, Single: m.p.State[table].Key == ""}, true
	}
}
