package schema

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"opscope/schema/wire"
)

// Limits of a schema, beside its Bounds. They bound what a file can make the loader do.
const (
	maxParams = 4       // parameters of a type
	maxCount  = 1 << 18 // a count, or a number of bytes, that is written out
	maxFixed  = 1 << 40 // bits of what is called fixed; more is never there
)

type opKind uint8

const (
	opUint opKind = iota
	opInt
	opFloat
	opFixed
	opText
	opBytes
	opRest
	opFill
	opGUID
	opIPv4
	opComputed
	opJoin
	opStruct
	opArray
	opOptional
	opSwitch
	opPrimitive
)

// op is one compiled field. A layout is a list of them; types are written out
// where they are used, so that every field has its own place.
type op struct {
	kind  opKind
	field *Field
	order wire.Order
	bits  int   // width of a number, or of a length in front of a text
	width *expr // a computed width
	slot  int   // where the value goes for expressions, -1 when none looks at it

	length     textLength
	nulCounted bool
	size       *expr // of text, bytes, array
	each       *expr
	value      *expr
	parts      []joinPart
	joined     *op // of a part: the field that shows it
	shift      int // of a part

	cond   *expr
	at     *expr
	atBase int
	atOff  *op // the field that holds the offset
	valid  *expr
	remark Remark // where valid fails

	body    []*op // members, the element, the optional value
	full    *plan // of an element, with nodes and without
	skim    *plan
	clear   []int // slots that are zero when a member is absent
	args    []*expr
	params  []int // slots of the parameters
	on      *expr
	cases   []opCase
	prim    *primitive
	counts  string // an integer that counts the elements of this field
	minBits int    // of an element
	choice  string // the cases that this op belongs to: "/SWITCH:CASE", outermost first
}

type joinPart struct {
	op    *op
	shift int
}

type opCase struct {
	label string
	low   uint64
	high  uint64
	other bool
	ops   []*op
}

// code is a compiled layout.
type code struct {
	ops   []*op
	full  *plan // of the ops, with nodes and without
	skim  *plan
	slots int
	clear []int
	env   []envRead
	size  *expr      // bytes of the whole frame
	bytes int        // of the body, -1 where they differ
	order wire.Order // of what the last field leaves of its byte
}

// envRead is a field of the envelope that an expression looks at.
type envRead struct {
	name string
	slot int
}

// compiler writes out one layout.
type compiler struct {
	d      *draft
	bounds Bounds
	slots  int
	used   []bool
	ops    int
	nest   []string
	env    []envRead
	above  inherited
}

func (d *draft) compiler() *compiler { return &compiler{d: d, bounds: d.limits()} }

// inherited is what a field has from what holds it, unless it says otherwise.
type inherited struct {
	source     string
	confidence Confidence
	redact     Redaction
}

// inherit gives a field what it does not say itself.
func (f *Field) inherit(above inherited) {
	if f.Source == "" {
		f.Source = above.source
	}
	if f.Confidence == NoConfidence {
		f.Confidence = above.confidence
	}
	if f.Redact == Open {
		f.Redact = above.redact
	}
}

// scope of a list of fields: those before, the parameters, and where the
// names that come later stand.
type listScope struct {
	c       *compiler
	names   map[string]*binding
	later   []*fieldDecl
	clear   []int
	ownInts map[string]*op
}

type binding struct {
	slot    int
	op      *op
	flags   *Flags
	enum    *Enum
	members *listScope
}

func (d *draft) compilePacket(e *packetDecl) error {
	for _, t := range e.Teaches {
		if !slices.ContainsFunc(d.State, func(x TableDecl) bool { return x.Name == t }) {
			return d.unknownTable(t, e.teachesAt)
		}
	}
	if l, err := d.protoLayout(e); err != nil || l != nil {
		e.layouts = [3][]*Layout{{l}, {l}, {l}}
		return err
	}
	done := map[*bodyDecl]*Layout{}
	for s, list := range e.bodies {
		for _, b := range list {
			if done[b] == nil {
				layout, err := d.compileBody(e, b)
				if err != nil {
					return err
				}
				done[b] = layout
			}
			e.layouts[s] = append(e.layouts[s], done[b])
		}
	}
	if e.From != AnySender {
		e.layouts[AnySender] = e.layouts[e.From]
		e.layouts[3-e.From] = e.layouts[e.From]
	} else if e.layouts[Client] == nil {
		e.layouts[AnySender] = e.layouts[Server]
	} else if e.layouts[Server] == nil {
		e.layouts[AnySender] = e.layouts[Client]
	}
	return e.applyRedact(done)
}

// applyRedact carries `redact: {field: secret}` of a packet to its fields.
func (e *packetDecl) applyRedact(done map[*bodyDecl]*Layout) error {
	for _, p := range e.redact {
		r, _ := p.value.redaction()
		found := false
		var names []string
		for _, l := range done {
			walkOps(l.code.ops, func(o *op) {
				if o.field == nil {
					return
				}
				names = append(names, o.field.Name)
				if o.field.Name == p.key.text {
					o.redact(r)
					found = true
				}
			})
		}
		if !found && !e.heir {
			return errorAt(p.key.pos, "%s has no field %q%s", e.Name, p.key.text, hint(p.key.text, names))
		}
	}
	if e.redactAll != Open {
		for _, l := range done {
			walkOps(l.code.ops, func(o *op) {
				if f := o.field; f != nil && f.Redact == Open && (o.kind == opText || o.kind == opBytes || o.kind == opRest) {
					f.Redact = e.redactAll
				}
			})
		}
	}
	return nil
}

// protoLayout returns the layout of a packet in Protocol Buffers, or nil. A message
// without a file is read without a schema, and so is one that the packet calls unknown
// until a file has it.
func (d *draft) protoLayout(e *packetDecl) (*Layout, error) {
	source := cmp.Or(e.Source, d.Source)
	none := e.bodies[AnySender] == nil && e.bodies[Client] == nil && e.bodies[Server] == nil
	if e.Proto == "" && (d.Unknown == nil || !none) {
		return nil, nil
	}
	if e.size != nil {
		return nil, errorAt(e.size.pos, "%s has a size, and a message tells its own end", e.Name)
	}
	if e.Proto == "" && len(e.redact) > 0 && !e.heir {
		return nil, errorAt(e.redact[0].key.pos, "%s has no field %q: its body is unknown, and `redact: secret` hides what it may hold", e.Name, e.redact[0].key.text)
	}
	guess := guessBody(source, strictest(e.redactAll, e.redact))
	if e.Proto == "" || d.protos == nil || e.Confidence == Unknown && d.protos.lazy {
		return guess, nil
	}
	body := &protoBody{
		name: e.Proto, redact: e.redact, heir: e.heir || !e.user, all: e.redactAll, source: source,
		sureness: cmp.Or(e.Confidence, d.Confidence), files: d.protos, at: cmp.Or(e.protoAt, e.Pos),
	}
	if !d.protos.lazy {
		if m, _, err := d.protos.find(e.Proto, body.at); err != nil || m == nil && e.Confidence == Unknown {
			return guess, err
		}
		if err := body.compile(); err != nil {
			return nil, err
		}
	}
	return &Layout{Source: source, Confidence: body.sureness, proto: body}, nil
}

// redact redacts a field and all that is below it.
func (o *op) redact(r Redaction) {
	walkOps([]*op{o}, func(o *op) {
		if o.field != nil {
			o.field.Redact = r
		}
	})
}

// walkOps visits every op of a layout.
func walkOps(ops []*op, visit func(*op)) {
	for _, o := range ops {
		visit(o)
		walkOps(o.body, visit)
		for _, c := range o.cases {
			walkOps(c.ops, visit)
		}
	}
}

func (d *draft) compileBody(e *packetDecl, b *bodyDecl) (*Layout, error) {
	c := d.compiler()
	c.above.source = cmp.Or(b.source, e.Source, d.Source)
	c.above.confidence = cmp.Or(b.confidence, e.Confidence, d.Confidence)
	scope := c.newScope(b.fields)
	ops, err := scope.list(b.fields, "")
	if err != nil {
		return nil, err
	}
	l := &Layout{Source: c.above.source, Confidence: c.above.confidence, code: &code{ops: ops}}
	if e.size != nil {
		size := e.size.clone()
		if err := scope.bind(size); err != nil {
			return nil, err
		}
		if err := d.checkSize(e, size, ops); err != nil {
			return nil, err
		}
		l.code.size = size
	}
	a := aligner{bitAlign: d.BitAlign, seen: map[step]place{}}
	if _, err := a.list(ops, place{}, func(i int) Pos { return b.fields[i].typePos() }); err != nil {
		return nil, err
	}
	c.settle(l.code)
	l.code.size.fold()
	l.code.order = lastOrder(ops, d.Order)
	l.code.slots, l.code.env = c.slots, c.env
	l.code.clear = c.usedOf(scope.clear)
	l.code.bytes = -1
	if bits, fixed := fixedSize(ops); fixed {
		l.code.bytes = (bits + 7) / 8
	}
	return l, nil
}

// settle forgets the slots that no expression looks at, folds the expressions, and makes
// the plans of a layout.
func (c *compiler) settle(l *code) {
	walkOps(l.ops, func(o *op) {
		if o.slot >= 0 && !c.used[o.slot] {
			o.slot = -1
		}
		o.clear = c.usedOf(o.clear)
		if o.kind == opArray {
			o.minBits = minimum(o.body)
		}
	})
	walkOps(l.ops, (*op).fold)
	l.full, l.skim = plans(l.ops)
}

// fold folds the expressions of a field.
func (o *op) fold() {
	for _, e := range []*expr{o.width, o.size, o.each, o.value, o.cond, o.at, o.valid, o.on} {
		e.fold()
	}
	for _, a := range o.args {
		a.fold()
	}
}

func (c *compiler) usedOf(slots []int) []int {
	var out []int
	for _, s := range slots {
		if c.used[s] {
			out = append(out, s)
		}
	}
	return out
}

// headBytes returns the bytes in front of a body: of the only envelope, or of
// the opcode alone.
func (d *draft) headBytes() int {
	if len(d.Envelopes) == 1 {
		return d.Envelopes[0].size
	}
	return d.OpcodeBits / 8
}

func (d *draft) checkSize(e *packetDecl, size *expr, ops []*op) error {
	want, ok := size.constant()
	if !ok {
		return nil
	}
	if bits, fixed := fixedSize(ops); fixed {
		if got := d.headBytes() + (bits+7)/8; int64(got) != want {
			return errorAt(size.pos, "%s has size %d, but its fields make %d", e.Name, want, got)
		}
	} else if least := d.headBytes() + (minimum(ops)+7)/8; int64(least) > want {
		return errorAt(size.pos, "%s has size %d, but its fields make at least %d", e.Name, want, least)
	}
	return nil
}

// checkType compiles a type that no packet may use, for its errors.
func (d *draft) checkType(t *typeDecl) error {
	c := d.compiler()
	scope := c.newScope(nil)
	ref := &typeRef{kind: refNamed, name: t.name, pos: t.pos}
	for range t.params {
		ref.args = append(ref.args, &expr{op: opConst, pos: t.pos})
	}
	_, err := scope.compile(&fieldDecl{Field: Field{Name: t.name}, pos: t.pos, ref: ref}, ref)
	return err
}

func (c *compiler) newScope(later []*fieldDecl) *listScope {
	return &listScope{c: c, names: map[string]*binding{}, later: later, ownInts: map[string]*op{}}
}

func (c *compiler) newSlot() int {
	c.slots++
	c.used = append(c.used, false)
	return c.slots - 1
}

// list compiles the fields of a list in order. The choice is the case they
// belong to.
func (s *listScope) list(fields []*fieldDecl, choice string) ([]*op, error) {
	var ops []*op
	for _, f := range fields {
		o, err := s.field(f, choice)
		if err != nil {
			return nil, err
		}
		if o.kind == opFill && o.field != nil {
			o.order = lastOrder(ops, o.order)
			o.field.Order = o.order
		}
		ops = append(ops, o)
	}
	return ops, nil
}

// lastOrder returns the order of the last field with bits, which is that of what it
// leaves of its byte.
func lastOrder(ops []*op, order wire.Order) wire.Order {
	for _, o := range slices.Backward(ops) {
		switch o.kind {
		case opComputed, opJoin:
			continue
		case opStruct, opArray, opOptional:
			return lastOrder(o.body, order)
		case opSwitch:
			for _, c := range o.cases {
				if len(c.ops) > 0 {
					return lastOrder(c.ops, order)
				}
			}
			continue
		}
		return o.order
	}
	return order
}

// grow counts what is compiled.
func (c *compiler) grow(pos Pos) error {
	if c.ops++; c.ops > c.bounds.Fields {
		return errorAt(pos, "a layout of more than %d fields", c.bounds.Fields)
	}
	return nil
}

func (s *listScope) field(f *fieldDecl, choice string) (*op, error) {
	if f.choice != nil {
		if err := s.c.grow(f.pos); err != nil {
			return nil, err
		}
		here := choice + "/" + strconv.Itoa(s.c.ops) + ":"
		return s.choice(f.choice, func(k *caseDecl) ([]*op, error) { return s.list(k.list, here+k.label) })
	}
	if f.check != "" {
		return nil, errorAt(f.pos, "%q has a check, which belongs in an envelope", f.Name)
	}
	if old := s.names[f.Name]; old != nil && !f.Hidden && !s.mayRepeat(old, f, choice) {
		return nil, errorAt(f.pos, "field %q twice; the conditions do not exclude each other", f.Name)
	}
	cond, err := s.bound(f.cond)
	if err != nil {
		return nil, err
	}
	o, err := s.compile(f, f.ref)
	if err != nil {
		return nil, err
	}
	o.cond, o.choice = cond, choice
	if err := s.place(o, f); err != nil {
		return nil, err
	}
	s.declare(f, o)
	if o.valid, err = s.bound(f.valid); err != nil {
		return nil, err
	}
	if o.valid != nil {
		o.remark = Remark{cmp.Or(f.note, "out_of_range"), f.Name + ": not " + o.valid.text}
	}
	return o, nil
}

// mayRepeat reports whether two fields of one name exclude each other: they
// stand in different cases of a switch, or have different conditions.
func (s *listScope) mayRepeat(old *binding, f *fieldDecl, choice string) bool {
	if old.op == nil {
		return false
	}
	return exclusive(old.op.choice, choice) || f.cond != nil && old.op.cond != nil && f.cond.text != old.op.cond.text
}

// exclusive reports whether two places are in different cases of one switch.
func exclusive(a, b string) bool {
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			x, _, _ := strings.Cut(as[i], ":")
			y, _, _ := strings.Cut(bs[i], ":")
			return x == y
		}
	}
	return false
}

// place compiles `at: BASE + EXPR`.
func (s *listScope) place(o *op, f *fieldDecl) error {
	if f.at == nil {
		return nil
	}
	e := f.at.clone()
	if e.op != opAdd || e.args[0].op != opName || len(e.args[0].path) != 1 {
		return errorAt(f.at.pos, "at is written as BASE + EXPR, BASE being a field of the envelope")
	}
	base, ok := s.c.d.envelopeField(e.args[0].path[0])
	if !ok {
		return errorAt(e.args[0].pos, "no envelope has a field %q", e.args[0].path[0])
	}
	o.atBase, o.at = base, e.args[1]
	if err := s.bind(o.at); err != nil {
		return err
	}
	if n := f.at.args[1]; n.op == opName && len(n.path) == 1 && s.names[n.path[0]] != nil {
		o.atOff = s.names[n.path[0]].op
		o.atOff.field.offset = true
	}
	return nil
}

// envelopeField returns the byte at which a field of an envelope lies. A
// protocol that declares no envelope takes it from its caller, at byte 0.
func (d *draft) envelopeField(name string) (int, bool) {
	for _, e := range d.Envelopes {
		for _, f := range e.fields {
			if f.name == name {
				return f.off >> 3, true
			}
		}
	}
	return 0, len(d.Envelopes) == 0
}

func (s *listScope) bound(e *expr) (*expr, error) {
	if e == nil {
		return nil, nil
	}
	e = e.clone()
	return e, s.bind(e)
}

// bind binds an expression that keeps to the bounds.
func (s *listScope) bind(e *expr) error {
	switch b := s.c.bounds; {
	case e.size > b.Operators:
		return errorAt(e.pos, "an expression of more than %d operators", b.Operators)
	case e.depth > b.Brackets:
		return errorAt(e.pos, "an expression nested deeper than %d", b.Brackets)
	}
	return e.bind(s)
}

// declare makes a field visible to the expressions after it.
func (s *listScope) declare(f *fieldDecl, o *op) {
	if f.Hidden {
		return
	}
	if old := s.names[f.Name]; old != nil && old.op != nil && old.op.slot >= 0 && o.slot >= 0 {
		o.slot = old.op.slot
	}
	s.names[f.Name] = o.binding()
	if o.kind == opUint || o.kind == opInt || o.kind == opPrimitive && o.prim.integer {
		s.ownInts[f.Name] = o
	}
}

// binding returns what an expression sees of a field. An optional number is that
// number, and another optional value whether it is there.
func (o *op) binding() *binding {
	b := &binding{slot: o.slot, op: o, flags: o.field.Flags, enum: o.field.Enum}
	inner := o
	if o.kind == opOptional {
		if inner = o.body[0]; inner.slot >= 0 {
			b.slot = inner.slot
		}
	}
	if inner.kind == opStruct {
		b.members = &listScope{names: map[string]*binding{}}
		b.members.show(inner.body)
	}
	return b
}

// show makes the members of a struct visible, those of its switches too.
func (s *listScope) show(ops []*op) {
	for _, m := range ops {
		if m.kind == opSwitch && m.field == nil {
			for _, c := range m.cases {
				s.show(c.ops)
			}
		} else if !m.field.Hidden {
			s.names[m.field.Name] = m.binding()
		}
	}
}

// compile compiles one type for a field.
func (s *listScope) compile(f *fieldDecl, ref *typeRef) (*op, error) {
	if err := s.c.grow(ref.pos); err != nil {
		return nil, err
	}
	field := f.Field
	field.call(f.Name)
	field.Type, field.Order, field.Encoding = ref.src, s.c.d.Order, ref.encoding
	if ref.fixed {
		field.Order = ref.order
	}
	outer := s.c.above
	field.inherit(outer)
	s.c.above = inherited{field.Source, field.Confidence, field.Redact}
	defer func() { s.c.above = outer }()
	o := &op{field: &field, order: field.Order, bits: ref.bits, length: ref.length, nulCounted: ref.nulCounted, slot: -1}
	if err := s.label(o, ref); err != nil {
		return nil, err
	}
	var err error
	switch ref.kind {
	case refUint, refInt:
		err = s.compileNumber(o, ref)
	case refFloat:
		o.kind, field.Single = opFloat, ref.bits == 32
		s.give(o)
	case refFixed:
		o.kind = opFixed
		s.give(o)
	case refText:
		o.kind = opText
		o.size, err = s.size(ref.size)
	case refBytes:
		o.kind = opBytes
		o.size, err = s.size(ref.size)
		s.counted(o, ref.size)
	case refRest:
		o.kind = opRest
	case refFill:
		o.kind = opFill
	case refGUID:
		o.kind = opGUID
	case refIPv4:
		o.kind = opIPv4
	case refBody:
		return nil, errorAt(ref.pos, "body belongs in an envelope")
	case refComputed:
		o.kind = opComputed
		o.value, err = s.bound(ref.value)
		s.give(o)
	case refJoin:
		return o, s.compileJoin(o, ref)
	case refStruct:
		return s.compileStruct(o, ref.fields, nil, nil)
	case refArray:
		return s.compileArray(o, f, ref)
	case refOptional:
		return s.compileOptional(o, f, ref)
	case refNamed:
		return s.compileNamed(o, f, ref)
	}
	return o, err
}

// size binds a number of elements or bytes.
func (s *listScope) size(e *expr) (*expr, error) {
	if e == nil {
		return nil, nil
	}
	if n, ok := e.constant(); ok && (n < 0 || n > maxCount) {
		return nil, errorAt(e.pos, "a count of %d; want 0 to %d", n, maxCount)
	}
	return s.bound(e)
}

// give gives a number a slot.
func (s *listScope) give(o *op) {
	o.slot = s.c.newSlot()
	s.clear = append(s.clear, o.slot)
}

// label resolves the enum, the flags or hex behind a type.
func (s *listScope) label(o *op, ref *typeRef) error {
	if ref.label == "" {
		return nil
	}
	p := primitives[ref.name]
	if ref.kind != refUint && ref.kind != refInt && ref.kind != refComputed && ref.kind != refJoin && !(ref.kind == refNamed && p != nil && p.integer) {
		return errorAt(ref.labelP, "%q behind a type that is no integer", ref.label)
	}
	switch ref.label {
	case "hex":
		o.field.Hex = true
		return nil
	case "opcode":
		o.field.Enum = s.c.d.names
		return nil
	}
	names := []string{"hex", "opcode"}
	for _, e := range s.c.d.Enums {
		if names = append(names, e.Name); e.Name == ref.label {
			o.field.Enum = e
			return nil
		}
	}
	for _, f := range s.c.d.Flags {
		if names = append(names, f.Name); f.Name == ref.label {
			o.field.Flags = f
			return nil
		}
	}
	return errorAt(ref.labelP, "unknown enum %q%s", ref.label, hint(ref.label, names))
}

func (s *listScope) compileNumber(o *op, ref *typeRef) error {
	if ref.kind == refInt {
		o.kind = opInt
	}
	s.give(o)
	o.field.Wide = ref.bits > 53
	var err error
	o.width, err = s.bound(ref.width)
	return err
}

func (s *listScope) compileJoin(o *op, ref *typeRef) error {
	o.kind = opJoin
	s.give(o)
	shift := 0
	for _, name := range ref.parts {
		b := s.names[name]
		if b == nil || b.op == nil || b.op.kind != opUint || b.op.width != nil || b.op.field.Name != name {
			return s.unknown(&expr{path: []string{name}, pos: ref.pos.at(max(0, strings.Index(ref.src, name)))})
		}
		b.op.field.Part, b.op.joined, b.op.shift = true, o, shift
		o.parts = append(o.parts, joinPart{b.op, shift})
		s.c.used[b.slot] = true
		shift += b.op.bits
	}
	if shift > 64 {
		return errorAt(ref.pos, "joined parts of %d bits; a number has at most 64", shift)
	}
	o.field.Wide = shift > 53
	return nil
}

func (s *listScope) compileStruct(o *op, fields []*fieldDecl, params []string, args []*expr) (*op, error) {
	o.kind, o.args = opStruct, args
	inner := s.c.newScope(fields)
	for _, p := range params {
		slot := s.c.newSlot()
		s.c.used[slot] = true
		o.params = append(o.params, slot)
		inner.names[p] = &binding{slot: slot}
	}
	ops, err := inner.list(fields, "")
	o.body, o.clear = ops, inner.clear
	s.clear = append(s.clear, inner.clear...)
	return o, err
}

func (s *listScope) compileArray(o *op, f *fieldDecl, ref *typeRef) (*op, error) {
	o.kind = opArray
	var err error
	if o.size, err = s.size(ref.size); err != nil {
		return nil, err
	}
	if o.each, err = s.bound(ref.each); err != nil {
		return nil, err
	}
	s.counted(o, ref.size)
	elem := *f
	elem.Name = ""
	e, err := s.compile(&elem, ref.elem)
	if err != nil {
		return nil, err
	}
	o.body = []*op{e}
	if e.field != nil { // for whoever knows the array alone
		o.field.Hex, o.field.Enum, o.field.Flags = e.field.Hex, e.field.Enum, e.field.Flags
	}
	return o, nil
}

// counted notes that a field counts the elements, which stands alone in [...] or is
// bounded there: [min(count, left / 40)].
func (s *listScope) counted(o *op, size *expr) {
	if size != nil && size.op == opMin {
		size = size.args[0]
	}
	if size != nil && size.op == opName && len(size.path) == 1 {
		if n := s.ownInts[size.path[0]]; n != nil && n.counts == "" {
			n.counts = o.field.Name
		}
	}
}

func (s *listScope) compileOptional(o *op, f *fieldDecl, ref *typeRef) (*op, error) {
	o.kind = opOptional
	s.give(o)
	e, err := s.compile(f, ref.elem)
	if err != nil {
		return nil, err
	}
	e.field.Type = ref.src
	o.body = []*op{e}
	return o, nil
}

func (s *listScope) compileNamed(o *op, f *fieldDecl, ref *typeRef) (*op, error) {
	args := make([]*expr, len(ref.args))
	for i, a := range ref.args {
		var err error
		if args[i], err = s.bound(a); err != nil {
			return nil, err
		}
	}
	if p := primitives[ref.name]; p != nil {
		return o, s.compilePrimitive(o, p, args, ref)
	}
	t := s.c.d.typeNamed(ref.name)
	if t == nil {
		return nil, s.c.d.unknownType(ref)
	}
	if len(args) != len(t.params) {
		return nil, errorAt(ref.pos, "%s takes %s, got %d", t.name, plural(len(t.params), "argument"), len(args))
	}
	if slices.Contains(s.c.nest, t.name) {
		return nil, errorAt(ref.pos, "type %q contains itself: %s", t.name, strings.Join(append(s.c.nest, t.name), " > "))
	}
	if len(s.c.nest) >= s.c.bounds.Nesting {
		return nil, errorAt(ref.pos, "types nested deeper than %d", s.c.bounds.Nesting)
	}
	s.c.nest = append(s.c.nest, t.name)
	defer func() { s.c.nest = s.c.nest[:len(s.c.nest)-1] }()
	switch {
	case t.choice != nil:
		return s.compileChoiceType(o, f, t, args)
	case t.ref.kind == refStruct:
		return s.compileStruct(o, t.ref.fields, t.params, args)
	}
	if len(t.params) > 0 {
		return nil, errorAt(t.pos, "%s has parameters; only a list of fields or a switch takes them", t.name)
	}
	alias := *t.ref
	if ref.label != "" {
		alias.label, alias.labelP = ref.label, ref.labelP
	}
	e, err := s.compile(f, &alias)
	if err == nil {
		e.field.Type = ref.src
	}
	return e, err
}

// typeNamed returns the type with this name, with what it is, or nil.
func (d *draft) typeNamed(name string) *typeDecl {
	for _, t := range d.Types {
		if t.name == name {
			if t.unread != nil {
				t.unread()
			}
			return t
		}
	}
	return nil
}

func (d *draft) unknownType(ref *typeRef) error {
	names := slices.Clone(builtinTypes)
	for _, n := range []int{8, 16, 32, 64} {
		names = append(names, "u"+strconv.Itoa(n), "i"+strconv.Itoa(n))
	}
	for _, t := range d.Types {
		names = append(names, t.name)
	}
	for p := range primitives {
		names = append(names, p)
	}
	word := ref.name
	h := hint(word, names)
	if h == "" {
		// unit16, uint16, int32: names of numbers in other languages.
		digits := strings.TrimLeft(word, "abcdefghijklmnopqrstuvwxyz")
		if short := word[:1] + digits; digits != "" && slices.Contains(names, short) {
			h = " (did you mean " + short + "?)"
		}
	}
	return errorAt(ref.pos, "unknown type %q%s", word, h)
}

func (s *listScope) compilePrimitive(o *op, p *primitive, args []*expr, ref *typeRef) error {
	if len(args) != p.args {
		return errorAt(ref.pos, "%s takes %s, got %d", ref.name, plural(p.args, "argument"), len(args))
	}
	table := slices.IndexFunc(s.c.d.State, func(t TableDecl) bool { return t.Name == p.table })
	if p.table != "" && (table < 0 || len(s.c.d.State[table].Columns) < p.columns) {
		return errorAt(ref.pos, "%s needs a table state.%s with %s", ref.name, p.table, plural(p.columns, "member"))
	}
	o.kind, o.prim, o.args, o.bits = opPrimitive, p, args, table
	if p.values == 1 {
		s.give(o)
	}
	elem := *o.field
	elem.call("")
	o.body = []*op{{kind: opComputed, field: &elem, slot: -1, value: &expr{}}}
	return nil
}

// compileChoiceType compiles a type that is a switch between types.
func (s *listScope) compileChoiceType(o *op, f *fieldDecl, t *typeDecl, args []*expr) (*op, error) {
	inner := s.c.newScope(nil)
	for _, p := range t.params {
		slot := s.c.newSlot()
		s.c.used[slot] = true
		inner.names[p] = &binding{slot: slot}
	}
	sw, err := inner.choice(t.choice, func(k *caseDecl) ([]*op, error) {
		e, err := inner.compile(f, k.ref)
		return []*op{e}, err
	})
	if err != nil {
		return nil, err
	}
	for _, p := range t.params {
		sw.params = append(sw.params, inner.names[p].slot)
	}
	s.clear = append(s.clear, inner.clear...)
	sw.args, sw.field = args, o.field
	return sw, nil
}

// choice compiles a switch; body compiles one case.
func (s *listScope) choice(c *choiceDecl, body func(*caseDecl) ([]*op, error)) (*op, error) {
	on, err := s.bound(c.on)
	if err != nil {
		return nil, err
	}
	o := &op{kind: opSwitch, on: on, slot: -1}
	enum := s.enumOf(c.on)
	for i := range c.cases {
		k := &c.cases[i]
		ops, err := body(k)
		if err != nil {
			return nil, err
		}
		for _, word := range strings.Split(k.label, ",") {
			low, high, err := caseRange(strings.TrimSpace(word), enum, k.pos)
			if err != nil {
				return nil, err
			}
			for _, other := range o.cases {
				if low <= other.high && high >= other.low {
					return nil, errorAt(k.pos, "case %s is covered by case %s", k.label, other.label)
				}
			}
			o.cases = append(o.cases, opCase{label: k.label, low: low, high: high, ops: ops})
		}
	}
	if c.other != nil {
		ops, err := body(c.other)
		if err != nil {
			return nil, err
		}
		o.cases = append(o.cases, opCase{label: "else", other: true, ops: ops})
	}
	return o, nil
}

// enumOf returns the enum of a plain field in an expression.
func (s *listScope) enumOf(e *expr) *Enum {
	if e.op == opName && len(e.path) == 1 && s.names[e.path[0]] != nil {
		return s.names[e.path[0]].enum
	}
	return nil
}

func caseRange(word string, enum *Enum, pos Pos) (low, high uint64, err error) {
	if low, high, ok := parseRange(word); ok {
		return low, high, nil
	}
	if v, err := strconv.ParseInt(word, 0, 64); err == nil {
		return uint64(v), uint64(v), nil
	}
	if enum == nil {
		return 0, 0, errorAt(pos, "case %q is no number, and what is switched on has no enum", word)
	}
	v, ok := enum.ValueOf(word)
	if !ok {
		var names []string
		for _, n := range enum.Values {
			names = append(names, n.Name)
		}
		return 0, 0, errorAt(pos, "case %q is not in the enum %s%s", word, enum.Name, hint(word, names))
	}
	return v, v, nil
}

// lookup binds a name in an expression.
func (s *listScope) lookup(e *expr) error {
	name := e.path[0]
	switch {
	case name == "state" && s.names[name] == nil:
		return s.lookupState(e)
	case name == "index" && len(e.path) == 1 && s.names[name] == nil:
		e.op = opIndex
		return nil
	case name == "left" && len(e.path) == 1 && s.names[name] == nil:
		e.op = opLeft
		return nil
	}
	b := s.names[name]
	if b == nil {
		if f, ok := s.c.d.envelopeNumber(name); ok && len(e.path) == 1 {
			e.op, e.slot = opSlot, s.c.envSlot(f)
			return nil
		}
		return s.unknown(e)
	}
	if len(e.args) > 0 {
		return errorAt(e.pos, "%q is a field here, and hides the tables", name)
	}
	for i, member := range e.path[1:] {
		if b.flags != nil && i == len(e.path)-2 {
			return s.lookupFlag(e, b, member, e.spots[i+1])
		}
		if b.members == nil || b.members.names[member] == nil {
			var names []string
			if b.members != nil {
				for n := range b.members.names {
					names = append(names, n)
				}
			}
			return errorAt(e.spots[i+1], "%q has no member %q%s", strings.Join(e.path[:i+1], "."), member, hint(member, names))
		}
		b = b.members.names[member]
	}
	if b.slot < 0 {
		return errorAt(e.pos, "%q is not a number", strings.Join(e.path, "."))
	}
	e.op, e.slot = opSlot, b.slot
	s.c.used[b.slot] = true
	return nil
}

func (s *listScope) lookupFlag(e *expr, b *binding, member string, pos Pos) error {
	var names []string
	for _, f := range b.flags.Bits {
		names = append(names, f.Name)
		if f.Name == member {
			e.op, e.slot, e.shift, e.mask = opFlag, b.slot, uint8(f.Low), 1<<uint(f.High-f.Low+1)-1
			s.c.used[b.slot] = true
			return nil
		}
	}
	return errorAt(pos, "the flags %s have no %q%s", b.flags.Name, member, hint(member, names))
}

// unknown says why a name is not known here.
func (s *listScope) unknown(e *expr) error {
	var names []string
	for n := range s.names {
		names = append(names, n)
	}
	for _, f := range s.later {
		if f.Name == e.path[0] {
			return errorAt(e.pos, "%q is not known here (it comes later)", e.path[0])
		}
	}
	return errorAt(e.pos, "%q is not known here%s", e.path[0], hint(e.path[0], names))
}

// lookupState binds state.TABLE[key].member and state.NAME.
func (s *listScope) lookupState(e *expr) error {
	if len(e.path) < 2 {
		return errorAt(e.pos, "state is written as state.TABLE[KEY].MEMBER or state.NAME")
	}
	table := slices.IndexFunc(s.c.d.State, func(t TableDecl) bool { return t.Name == e.path[1] })
	if table < 0 {
		return s.c.d.unknownTable(e.path[1], e.spots[1])
	}
	t := &s.c.d.State[table]
	if (t.Key != "") != (len(e.args) > 0) {
		return errorAt(e.pos, "state.%s takes %s", t.Name, map[bool]string{true: "a key in [ ]", false: "no key"}[t.Key != ""])
	}
	e.op, e.table = opState, table
	if len(e.args) == 0 {
		e.op = opEntry
	}
	if len(e.path) == 2 {
		if len(t.Columns) != 1 {
			return errorAt(e.pos, "state.%s has several members: %s", t.Name, strings.Join(t.Columns, ", "))
		}
		return nil
	}
	if e.col = slices.Index(t.Columns, e.path[2]); e.col < 0 || len(e.path) > 3 {
		return errorAt(e.spots[2], "state.%s has no member %q%s", t.Name, e.path[2], hint(e.path[2], slices.Clone(t.Columns)))
	}
	return nil
}

// envelopeNumber reports whether an envelope has a number of this name.
func (d *draft) envelopeNumber(name string) (string, bool) {
	for _, e := range d.Envelopes {
		for _, f := range e.fields {
			if f.name == name {
				return name, true
			}
		}
	}
	return "", false
}

func (c *compiler) envSlot(name string) int {
	for _, r := range c.env {
		if r.name == name {
			return r.slot
		}
	}
	slot := c.newSlot()
	c.used[slot] = true
	c.env = append(c.env, envRead{name, slot})
	return slot
}

// fixedSize returns the bits of a list whose size does not depend on the bytes.
func fixedSize(ops []*op) (bits int, fixed bool) {
	for _, o := range ops {
		n, ok := o.fixedSize()
		if !ok || o.cond != nil || o.at != nil {
			return 0, false
		}
		bits += n
	}
	return bits, true
}

func (o *op) fixedSize() (int, bool) {
	switch o.kind {
	case opUint, opInt, opFloat, opFixed:
		if o.width != nil {
			n, ok := o.width.constant()
			return int(n), ok
		}
		return o.bits, true
	case opGUID:
		return 128, true
	case opIPv4:
		return 32, true
	case opComputed, opJoin:
		return 0, true
	case opStruct:
		return fixedSize(o.body)
	case opText, opBytes, opArray:
		if o.size == nil || o.length != lengthFixed && o.kind == opText {
			return 0, false
		}
		n, ok := o.size.constant()
		if o.kind != opArray {
			return 8 * int(n), ok
		}
		each, fixed := fixedSize(o.body)
		return int(n) * each, ok && fixed && int(n)*each <= maxFixed
	}
	return 0, false
}

// minimum returns the fewest bits that a list can take.
func minimum(ops []*op) int {
	bits := 0
	for _, o := range ops {
		if o.cond != nil || o.at != nil {
			continue
		}
		bits += o.minimum()
	}
	return bits
}

func (o *op) minimum() int {
	if n, ok := o.fixedSize(); ok {
		return n
	}
	switch o.kind {
	case opStruct:
		return minimum(o.body)
	case opOptional:
		return 1
	case opText:
		switch o.length {
		case lengthPrefixed:
			return o.bits
		case lengthNUL:
			return 8
		}
	case opSwitch:
		least := 0
		for i, c := range o.cases {
			if n := minimum(c.ops); i == 0 || n < least {
				least = n
			}
		}
		if !slices.ContainsFunc(o.cases, func(c opCase) bool { return c.other }) {
			return 0
		}
		return least
	}
	return 0
}
