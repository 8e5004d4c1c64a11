package schema

import (
	"slices"
	"strconv"
	"strings"

	"opscope/schema/wire"
)

// This file reads the words of the notation: types, fields, and the hints that
// go with a wrong one. What they mean together is compile.go's business.

type refKind uint8

const (
	refUint refKind = iota
	refInt
	refFloat
	refFixed // fx: signed 16.16
	refText
	refBytes
	refRest
	refFill
	refGUID
	refIPv4
	refBody
	refNamed // a type or a primitive
	refStruct
	refArray
	refOptional
	refComputed
	refJoin
)

type textLength uint8

const (
	lengthPrefixed textLength = iota
	lengthNUL
	lengthFixed
	lengthRest
)

// typeRef is a type as written behind a field's name.
type typeRef struct {
	kind  refKind
	src   string
	pos   Pos
	name  string // of a named type or primitive
	args  []*expr
	bits  int   // constant width
	width *expr // or a computed one
	order wire.Order
	fixed bool // order is written out

	length     textLength
	size       *expr // of text, bytes or an array
	nulCounted bool
	encoding   Encoding

	elem   *typeRef     // of an array or an optional
	each   *expr        // the mask of [each MASK]
	fields []*fieldDecl // of a list written in place
	value  *expr        // of a computed field
	parts  []string     // of join
	label  string       // the enum, the flags or "hex"
	labelP Pos
}

// fieldDecl is one line of a list of fields.
type fieldDecl struct {
	Field
	pos    Pos
	ref    *typeRef
	cond   *expr
	valid  *expr
	note   string
	at     *expr
	check  string
	choice *choiceDecl // instead of ref, for a switch
}

// typePos returns where the type of a field stands, or a switch.
func (f *fieldDecl) typePos() Pos {
	if f.ref == nil {
		return f.pos
	}
	return f.ref.pos
}

// choiceDecl is a switch: fields or types by the value of an expression.
type choiceDecl struct {
	pos   Pos
	on    *expr
	cases []caseDecl
	other *caseDecl
}

type caseDecl struct {
	label string
	pos   Pos
	ref   *typeRef     // in a type
	list  []*fieldDecl // in a list of fields
}

// typeDecl is an entry under `types:`.
type typeDecl struct {
	name   string
	params []string
	pos    Pos
	ref    *typeRef
	choice *choiceDecl
	unread func() // sets ref or choice, once; nil where they are set
}

var confidences = confidenceNames[1:]

// Hint returns " (did you mean NAME?)" for a word that is nearly one of those known,
// else "". It sorts known.
func Hint(word string, known []string) string { return hint(word, known) }

func hint(word string, known []string) string {
	best, distance := "", 3
	if len(word) < 4 {
		distance = 2
	}
	slices.Sort(known)
	for _, k := range known {
		if d := editDistance(strings.ToLower(word), strings.ToLower(k)); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return " (did you mean " + best + "?)"
}

// editDistance counts the letters to insert, delete, change or swap with their
// neighbour to make b of a.
func editDistance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		row, last, before := rows[i%3], rows[(i+2)%3], rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// wantKeys checks the keys of a mapping.
func (n *yamlNode) wantKeys(what string, known ...string) error {
	if n.kind != yamlMap {
		return errorAt(n.pos, "%s must be a mapping", what)
	}
	for _, p := range n.pairs {
		if !slices.Contains(known, p.key.text) {
			return errorAt(p.key.pos, "unknown key %q%s", p.key.text, hint(p.key.text, slices.Clone(known)))
		}
	}
	return nil
}

// word returns the text of a scalar.
func (n *yamlNode) word(what string) (string, error) {
	if n.kind != yamlScalar {
		return "", errorAt(n.pos, "%s must be a word", what)
	}
	return n.text, nil
}

// words returns a scalar, or a list of them.
func (n *yamlNode) words(what string) ([]*yamlNode, error) {
	switch n.kind {
	case yamlScalar:
		return []*yamlNode{n}, nil
	case yamlList:
		for _, i := range n.items {
			if i.kind != yamlScalar {
				return nil, errorAt(i.pos, "%s must be words", what)
			}
		}
		return n.items, nil
	}
	return nil, errorAt(n.pos, "%s must be a word or a list of words", what)
}

func (n *yamlNode) integer(what string) (int64, error) {
	u, err := strconv.ParseInt(n.text, 0, 64)
	if n.kind != yamlScalar || err != nil {
		return 0, errorAt(n.pos, "%s must be a number, got %q", what, n.text)
	}
	return u, nil
}

// oneOf returns the index of the word among the known ones.
func (n *yamlNode) oneOf(what string, known []string) (int, error) {
	i := slices.Index(known, n.text)
	if n.kind != yamlScalar || i < 0 {
		return 0, errorAt(n.pos, "unknown %s %q%s", what, n.text, hint(n.text, slices.Clone(known)))
	}
	return i, nil
}

func (n *yamlNode) confidence() (Confidence, error) {
	i, err := n.oneOf("confidence", confidences)
	return Confidence(i + 1), err
}

func (n *yamlNode) redaction() (Redaction, error) {
	i, err := n.oneOf("redaction", []string{"secret", "personal"})
	return Redaction(i + 1), err
}

var fieldKeys = []string{"if", "unit", "scale", "doc", "source", "confidence", "redact", "check", "valid", "note", "at"}

// parseFields reads a list of fields.
func parseFields(n *yamlNode) ([]*fieldDecl, error) {
	if n.kind != yamlList {
		return nil, errorAt(n.pos, "fields must be a list")
	}
	fields := []*fieldDecl{}
	for _, item := range n.items {
		f, err := parseField(item)
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	return fields, nil
}

func parseField(n *yamlNode) (*fieldDecl, error) {
	if n.kind == yamlScalar && n.text == "fill" {
		n = &yamlNode{kind: yamlMap, pos: n.pos, pairs: []yamlPair{{&yamlNode{kind: yamlScalar, text: "_", pos: n.pos}, n}}}
	}
	if n.kind != yamlMap || len(n.pairs) == 0 {
		return nil, errorAt(n.pos, "a field must be written as `name: type`")
	}
	if n.pairs[0].key.text == "switch" {
		choice, err := parseChoice(n, true)
		return &fieldDecl{pos: n.pos, choice: choice}, err
	}
	first := n.pairs[0]
	f := &fieldDecl{pos: first.key.pos}
	f.Name = first.key.text
	f.Hidden = f.Name == "_"
	if !isName(f.Name) {
		return nil, errorAt(f.pos, "%q is not a field name", f.Name)
	}
	if n.flow {
		if err := flowComma(n); err != nil {
			return nil, err
		}
	}
	if err := (&yamlNode{kind: yamlMap, pairs: n.pairs[1:]}).wantKeys("a field", fieldKeys...); err != nil {
		return nil, err
	}
	ref, err := parseTypeNode(first.value)
	if err != nil {
		return nil, err
	}
	f.ref = ref
	f.Type = ref.src
	for _, p := range n.pairs[1:] {
		if err := f.qualify(p.key.text, p.value); err != nil {
			return nil, err
		}
	}
	if f.note != "" && f.valid == nil {
		return nil, errorAt(n.pos, "%q has a note but no valid", f.Name)
	}
	return f, nil
}

// flowComma finds a type that YAML cut at a comma.
func flowComma(n *yamlNode) error {
	for i, p := range n.pairs {
		if p.value.kind == yamlScalar && strings.Count(p.value.text, "(") != strings.Count(p.value.text, ")") && i+1 < len(n.pairs) {
			return errorAt(p.value.pos, "%q is cut off: in {...} a plain word ends at a comma; write the field on its own line", p.value.text)
		}
	}
	return nil
}

func isName(s string) bool {
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for i := range len(s) {
		if !isWordByte(s[i]) {
			return false
		}
	}
	return true
}

func (f *fieldDecl) qualify(key string, v *yamlNode) error {
	if v.kind != yamlScalar {
		return errorAt(v.pos, "%s must be a word", key)
	}
	var err error
	switch key {
	case "if":
		f.cond, err = parseExpr(v.text, v.pos)
	case "valid":
		f.valid, err = parseExpr(v.text, v.pos)
	case "at":
		f.at, err = parseExpr(v.text, v.pos)
	case "unit":
		f.Unit = v.text
	case "doc":
		f.Doc = v.text
	case "source":
		f.Source = v.text
	case "note":
		if f.note = v.text; !isName(v.text) {
			err = errorAt(v.pos, "%q is not a note code", v.text)
		}
	case "check":
		if f.check = v.text; f.check != "sum8(body)" {
			err = errorAt(v.pos, "unknown check %q%s", v.text, hint(v.text, []string{"sum8(body)"}))
		}
	case "scale":
		if f.Scale, err = strconv.ParseFloat(v.text, 64); err != nil {
			err = errorAt(v.pos, "scale must be a number, got %q", v.text)
		}
	case "confidence":
		f.Confidence, err = v.confidence()
	case "redact":
		f.Redact, err = v.redaction()
	}
	return err
}

// parseChoice reads `switch` with `cases` and `else`: in a list of fields the
// cases are lists, in a type they are types.
func parseChoice(n *yamlNode, list bool) (*choiceDecl, error) {
	if err := n.wantKeys("a switch", "switch", "cases", "else"); err != nil {
		return nil, err
	}
	c := &choiceDecl{pos: n.pos}
	on := n.get("switch")
	if on == nil {
		return nil, errorAt(n.pos, "a switch without `switch: EXPR`")
	}
	text, err := on.word("switch")
	if err != nil {
		return nil, err
	}
	if c.on, err = parseExpr(text, on.pos); err != nil {
		return nil, err
	}
	cases := n.get("cases")
	if cases == nil || cases.kind != yamlMap {
		return nil, errorAt(n.pos, "a switch needs cases")
	}
	for _, p := range cases.pairs {
		one, err := parseCase(p.key, p.value, list)
		if err != nil {
			return nil, err
		}
		c.cases = append(c.cases, *one)
	}
	if e := n.get("else"); e != nil {
		c.other, err = parseCase(&yamlNode{text: "else", pos: e.pos}, e, list)
	}
	return c, err
}

func parseCase(key, value *yamlNode, list bool) (*caseDecl, error) {
	c := &caseDecl{label: key.text, pos: key.pos}
	var err error
	if list {
		c.list, err = parseFields(value)
	} else {
		c.ref, err = parseTypeNode(value)
	}
	return c, err
}

func parseTypeNode(n *yamlNode) (*typeRef, error) {
	switch n.kind {
	case yamlScalar:
		return parseType(n.text, n.pos)
	case yamlList:
		fields, err := parseFields(n)
		return &typeRef{kind: refStruct, pos: n.pos, fields: fields, src: "struct"}, err
	}
	return nil, errorAt(n.pos, "want a type")
}

// parseType parses a type as written: a base, its suffixes, and a name.
func parseType(src string, pos Pos) (*typeRef, error) {
	l := newLexer(src, pos)
	if l.take("=") {
		e, err := l.whole()
		return &typeRef{kind: refComputed, value: e, src: src, pos: pos}, err
	}
	t, err := l.base()
	if err != nil {
		return nil, err
	}
	core := t
	for err == nil {
		switch {
		case l.take("?"):
			t = &typeRef{kind: refOptional, elem: t, pos: pos}
			continue
		case l.take("["):
			t, err = l.array(t)
			continue
		}
		break
	}
	if err != nil {
		return nil, err
	}
	if l.word != "" {
		if !isWordByte(l.word[0]) {
			return nil, l.unexpected("a type")
		}
		core.label, core.labelP = l.word, l.place()
		l.next()
	}
	if l.word != "" {
		return nil, l.unexpected("the end of the type")
	}
	t.src = src
	if core != t {
		core.src = strings.TrimSpace(src[:strings.IndexAny(src+"[", "[?")] + " " + core.label)
	}
	return t, nil
}

func (l *lexer) whole() (*expr, error) {
	e, err := l.expr(0)
	if err == nil && l.word != "" {
		err = l.unexpected("an operator")
	}
	return e, err
}

func (l *lexer) array(elem *typeRef) (*typeRef, error) {
	t := &typeRef{kind: refArray, elem: elem, pos: elem.pos}
	var err error
	if l.take("each") {
		t.each, err = l.expr(0)
	} else {
		t.size, err = l.expr(0)
	}
	if err != nil {
		return nil, err
	}
	return t, l.expect("]")
}

// base parses a type without suffixes.
func (l *lexer) base() (*typeRef, error) {
	t := &typeRef{pos: l.place(), src: l.src}
	word := l.word
	if word == "" || !isWordByte(word[0]) {
		return nil, l.unexpected("a type")
	}
	l.next()
	bare, order, fixed := cutOrder(word)
	t.order, t.fixed = order, fixed
	switch bare {
	case "f32", "f64":
		t.kind = refFloat
		t.bits, _ = strconv.Atoi(bare[1:])
		return t, nil
	case "fx":
		t.kind, t.bits = refFixed, 32
		return t, nil
	}
	t.fixed = t.fixed && isNumberType(bare)
	if isNumberType(bare) {
		return t, l.number(t, bare)
	}
	t.order = wire.Big
	switch word {
	case "text":
		return t, l.text(t)
	case "bytes":
		t.kind = refBytes
		return t, l.sized(t)
	case "rest":
		t.kind = refRest
	case "fill":
		t.kind = refFill
	case "guid":
		t.kind = refGUID
	case "ipv4":
		t.kind = refIPv4
	case "body":
		t.kind = refBody
	case "join":
		return t, l.join(t)
	default:
		t.kind, t.name = refNamed, word
		if l.take("(") {
			args, err := l.args()
			t.args = args
			return t, err
		}
	}
	return t, nil
}

// cutOrder cuts the suffix le or be off a type.
func cutOrder(word string) (bare string, order wire.Order, fixed bool) {
	if bare, ok := strings.CutSuffix(word, "le"); ok {
		return bare, wire.Little, true
	}
	bare, fixed = strings.CutSuffix(word, "be")
	return bare, wire.Big, fixed
}

// isNumberType reports whether a word is u or i with a width, or u alone.
func isNumberType(word string) bool {
	if word == "u" {
		return true
	}
	if len(word) < 2 || word[0] != 'u' && word[0] != 'i' {
		return false
	}
	_, err := strconv.ParseUint(word[1:], 10, 32)
	return err == nil
}

func (l *lexer) number(t *typeRef, word string) error {
	if word[0] == 'i' {
		t.kind = refInt
	}
	if word == "u" {
		if err := l.expect("("); err != nil {
			return err
		}
		e, err := l.expr(0)
		if err != nil {
			return err
		}
		if err := l.expect(")"); err != nil {
			return err
		}
		if n, ok := e.constant(); ok && (n < 0 || n > 64) {
			return errorAt(e.pos, "a width of %d bits; a number has 0 to 64", n)
		}
		t.width = e
		if l.src[l.i-len(l.word)-1] == ')' && (l.word == "le" || l.word == "be") {
			t.fixed = true
			if l.word == "le" {
				t.order = wire.Little
			}
			l.next()
		}
		return nil
	}
	t.bits, _ = strconv.Atoi(word[1:])
	if t.bits < 1 || t.bits > 64 {
		return errorAt(t.pos, "%s has a width of %d bits; a number has 1 to 64", word, t.bits)
	}
	return nil
}

func (l *lexer) sized(t *typeRef) error {
	if err := l.expect("("); err != nil {
		return err
	}
	e, err := l.expr(0)
	if err != nil {
		return err
	}
	t.size = e
	return l.expect(")")
}

// text parses text(u16, nul counted), text(nul), text(N) and text(rest), with an
// encoding behind.
func (l *lexer) text(t *typeRef) error {
	t.kind = refText
	if err := l.expect("("); err != nil {
		return err
	}
	switch {
	case l.take("nul"):
		t.length = lengthNUL
	case l.take("rest"):
		t.length = lengthRest
	case isTextPrefix(l.word):
		prefix, err := l.base()
		if err != nil {
			return err
		}
		t.bits, t.order, t.fixed = prefix.bits, prefix.order, prefix.fixed
	default:
		t.length = lengthFixed
		e, err := l.expr(0)
		if err != nil {
			return err
		}
		t.size = e
	}
	for l.take(",") {
		pos := l.place()
		words := l.word
		for l.next(); l.word != "" && l.word != "," && l.word != ")"; l.next() {
			words += " " + l.word
		}
		switch words {
		case "nul counted":
			t.nulCounted = true
		case "utf8":
			t.encoding = UTF8
		case "utf16":
			t.encoding = UTF16
		case "utf16 8bit":
			t.encoding = UTF16Lax
		default:
			return errorAt(pos, "unknown option %q of text%s", words, hint(words, []string{"nul counted", "utf8", "utf16", "utf16 8bit"}))
		}
	}
	if t.nulCounted && t.length != lengthPrefixed {
		return errorAt(t.pos, "nul counted goes with a length in front, such as text(u16, nul counted)")
	}
	return l.expect(")")
}

// isTextPrefix reports whether a word is a number that can be a text's length.
func isTextPrefix(word string) bool {
	bare, _, _ := cutOrder(word)
	return isNumberType(bare) && bare[0] == 'u' && bare != "u"
}

func (l *lexer) join(t *typeRef) error {
	t.kind = refJoin
	if err := l.expect("("); err != nil {
		return err
	}
	for !l.take(")") {
		if len(t.parts) > 0 {
			if err := l.expect(","); err != nil {
				return err
			}
		}
		if !isName(l.word) {
			return l.unexpected("the name of a field")
		}
		t.parts = append(t.parts, l.word)
		l.next()
	}
	if len(t.parts) < 2 {
		return errorAt(t.pos, "join takes two parts or more")
	}
	return nil
}

// parseRange reads "3", "0-3" or a name.
func parseRange(word string) (low, high uint64, ok bool) {
	a, b, ranged := strings.Cut(word, "-")
	low, err := strconv.ParseUint(strings.TrimSpace(a), 0, 64)
	if err != nil {
		return 0, 0, false
	}
	if !ranged {
		return low, low, true
	}
	high, err = strconv.ParseUint(strings.TrimSpace(b), 0, 64)
	return low, high, err == nil && high >= low
}

// parseEnum reads {0: raw, 1: latest}.
func parseEnum(name string, n *yamlNode) (*Enum, error) {
	if n.kind != yamlMap {
		return nil, errorAt(n.pos, "an enum must be a mapping of numbers to names")
	}
	var values []Name
	for _, p := range n.pairs {
		v, err := strconv.ParseInt(p.key.text, 0, 64)
		if err != nil {
			u, err := strconv.ParseUint(p.key.text, 0, 64)
			if err != nil {
				return nil, errorAt(p.key.pos, "%q is not a number", p.key.text)
			}
			v = int64(u)
		}
		if i := slices.IndexFunc(values, func(n Name) bool { return n.Value == uint64(v) }); i >= 0 {
			return nil, errorAt(p.key.pos, "%s twice: %s and %s", p.key.text, values[i].Name, p.value.text)
		}
		if p.value.kind != yamlScalar {
			return nil, errorAt(p.value.pos, "a name must be a word")
		}
		values = append(values, Name{uint64(v), p.value.text})
	}
	return NewEnum(name, values), nil
}

// parseFlags reads {0: definition, 1-3: count}.
func parseFlags(name string, n *yamlNode) (*Flags, error) {
	if n.kind != yamlMap {
		return nil, errorAt(n.pos, "flags must be a mapping of bits to names")
	}
	f := &Flags{Name: name}
	for _, p := range n.pairs {
		low, high, ok := parseRange(p.key.text)
		if !ok || high > 63 {
			return nil, errorAt(p.key.pos, "%q is not a bit from 0 to 63, or a range of bits", p.key.text)
		}
		for _, b := range f.Bits {
			if int(low) <= b.High && int(high) >= b.Low {
				return nil, errorAt(p.key.pos, "bit %d twice: %s and %s", max(int(low), b.Low), b.Name, p.value.text)
			}
		}
		if p.value.kind != yamlScalar || !isName(p.value.text) {
			return nil, errorAt(p.value.pos, "%q is not a name", p.value.text)
		}
		f.Bits = append(f.Bits, Flag{int(low), int(high), p.value.text})
	}
	slices.SortFunc(f.Bits, func(a, b Flag) int { return a.Low - b.Low })
	return f, nil
}
