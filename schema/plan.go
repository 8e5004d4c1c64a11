package schema

import (
	"math"
	"slices"

	"opscope/schema/wire"
)

// A plan is what the decoder follows where nothing is wrong: the fields of a list, and of
// the structs and switches in it, as one flat list of stages, which a loop goes through.
// There are two of each list. One makes nodes (follow). The other skims, and has a stage only for
// what an expression looks at and for what tells where the next field begins.
//
// A plan knows no errors. What it cannot do, above all what does not fit the bytes, it gives
// up, and the body is decoded again from its start, field by field (see Decoder.list): that
// says what is wrong, and where. So a plan may be as curt as it likes, and must only be right
// about what it gets through.

// plan is the stages of a list of fields.
type plan struct {
	first   *stage
	skims   bool
	values  int // at most so many, without the elements of arrays
	longest int // bytes of its longest text of fixed length
	table   int // the learned table that its widths are in, -1 for none
}

// stage is a field, a part of one, or a choice of where to go on. A nil one is the end.
type stage struct {
	next   *stage
	do     deed
	order  wire.Order
	shift  uint8 // 64 less the bits of a number
	signed bool  // its highest bit is its sign

	// A stage may depend on a flag.
	flag int    // the slot that it stands in
	mask uint64 // its bits there, 0 for none
	past *stage // where to go on if it is not set
	rest uint64 // the bits of the flags in this slot that would be looked at one after the other
	last *stage // where to go on if none of these is set

	slot   int     // where the value goes, or the condition looks; -1 for nowhere
	size   int     // bits of a number
	fields []field // of takeFields, lead bits in all
	lead   int     // bits at which nobody looks, in front of a number, or alone
	jump   *stage  // where to go on if a condition does not hold
	key    int     // the slot that the key of a quantiser depends on, -1 for none; of takeLearned, the key itself

	low, high int64    // the integers that surely hold a number's `valid`; a key is low + high * slot
	set       uint64   // of testSet, the numbers
	when      *expr    // a condition
	cases     []*stage // of chooseCase: see ways
	op        *op
	node      Node // what every value has
}

// field is a field of fixed size.
type field struct {
	node  Node // what every value has; its Off counts from the start of the first field
	order wire.Order
	shift uint8  // 64 less the bits of a number
	as    opKind // opUint, opInt, opFloat, opFixed or opBytes
}

// deed is what is done at a stage.
type deed uint8

const (
	passOver    deed = iota // bits
	takeNumber              // an integer of fixed width
	takeLearned             // one of a width that is an entry's
	takeWidth               // one of any other width
	takeFields              // of fixed size, at which nobody looks
	takeQuant               // a quantised number
	takeVector              // three
	takeOp                  // a field as it is decoded where something is wrong
	compute                 // what is not on the wire
	openStruct
	closeStruct
	takeArray
	takeOptional // its bit
	chooseCase
	testFlag // of a condition, not of a stage
	testSet  // a small number in a slot
	testWhen // any other condition than a flag
	goOn     // elsewhere; of a plan in the making
	clearSlots
	enterType
	checkValid
)

// planner makes a plan.
type planner struct {
	plan
	stages []stage
	ways   []way   // of the stages
	lead   int     // bits that nobody looks at, up to here
	fields []field // what these are, of a plan that makes nodes
	terms  []term  // the conditions that hold here, outermost first
	flag   *term   // the flag that the next stage depends on, nil for none
}

// way is where to go on from a stage, as the index of another. That behind the last one is
// the end.
type way struct {
	past, jump int
	cases      []int
}

// term is one of the conditions of a field, all of which must hold. Fields that follow each
// other share those that they begin with.
type term struct {
	do   deed
	slot int
	mask uint64
	when *expr
	at   int  // its stage
	old  bool // what it looks at has been written since
}

// plans returns the plans of a list: with nodes, and without.
func plans(ops []*op) (full, skim *plan) { return newPlan(ops, false), newPlan(ops, true) }

func newPlan(ops []*op, skims bool) *plan {
	p := planner{plan: plan{skims: skims, table: -1}}
	p.values = p.list(ops)
	p.flush()
	p.stages = slices.Clip(p.stages)
	for i := len(p.stages) - 1; i >= 0; i-- {
		p.link(&p.stages[i], i)
	}
	p.first = p.at(0)
	return &p.plan
}

// at returns a stage by its index, or where that goes on; it is linked.
func (p *planner) at(i int) *stage {
	switch {
	case i == len(p.stages):
		return nil
	case p.stages[i].do == goOn:
		return p.stages[i].jump
	}
	return &p.stages[i]
}

// link sets where to go on from a stage; those behind it are linked. If its flag is not set,
// the next one may be looked at in its stead.
func (p *planner) link(s *stage, i int) {
	w := &p.ways[i]
	s.next, s.past, s.jump = p.at(i+1), p.at(w.past), p.at(w.jump)
	for _, c := range w.cases {
		s.cases = append(s.cases, p.at(c))
	}
	s.rest, s.last = s.mask, s.past
	if next := s.past; s.mask != 0 && next != nil && next.mask != 0 && next.flag == s.flag {
		s.rest, s.last = s.mask|next.rest, next.last
	}
}

// list plans some fields and returns how many values they make at most.
func (p *planner) list(ops []*op) (values int) {
	outer := p.terms
	p.terms = nil
	for _, o := range ops {
		p.under(o.terms())
		values += p.field(o)
		p.age(o)
	}
	p.under(nil)
	p.terms = outer
	return values
}

// age notes which conditions look at what a field has written.
func (p *planner) age(o *op) {
	if len(p.terms) == 0 {
		return
	}
	walkOps([]*op{o}, func(o *op) {
		for i := range p.terms {
			p.terms[i].old = p.terms[i].old || p.terms[i].slot == o.slot
		}
	})
}

// under makes some conditions those that hold.
func (p *planner) under(terms []term) {
	n := 0
	for n < min(len(terms), len(p.terms)) && p.terms[n].is(&terms[n]) {
		n++
	}
	if n == len(terms) && n == len(p.terms) {
		return
	}
	p.flush()
	for _, t := range p.terms[n:] {
		switch {
		case t.at == len(p.stages): // nothing depends on it
			p.flag = nil
		case t.do == testFlag:
			p.ways[t.at].past = len(p.stages)
		default:
			p.ways[t.at].jump = len(p.stages)
		}
	}
	p.terms = p.terms[:n:n]
	for _, t := range terms[n:] {
		p.test(t)
	}
}

// test makes what follows depend on a condition: a flag is looked at by the next stage.
func (p *planner) test(t term) {
	if p.flag != nil {
		p.push(stage{do: passOver})
	}
	t.at = len(p.stages)
	if t.do == testFlag {
		p.flag = &t
	} else {
		p.push(stage{do: t.do, slot: t.slot, set: t.mask, when: t.when})
	}
	p.terms = append(p.terms, t)
}

// push adds a stage.
func (p *planner) push(s stage) *stage {
	if p.flag != nil {
		s.flag, s.mask = p.flag.slot, p.flag.mask
		p.flag = nil
	}
	p.stages, p.ways = append(p.stages, s), append(p.ways, way{})
	return &p.stages[len(p.stages)-1]
}

func (t *term) is(o *term) bool {
	return !t.old && t.do != testWhen && t.do == o.do && t.slot == o.slot && t.mask == o.mask
}

// terms returns the conditions of a field.
func (o *op) terms() []term { return o.cond.terms(nil) }

func (e *expr) terms(list []term) []term {
	if e == nil {
		return list
	}
	if e.op == opAnd {
		return e.args[1].terms(e.args[0].terms(list))
	}
	if e.op == opFlag {
		return append(list, term{do: testFlag, slot: e.slot, mask: e.mask << e.shift})
	}
	if slot, set, ok := e.among(); ok {
		return append(list, term{do: testSet, slot: slot, mask: set, when: e})
	}
	return append(list, term{do: testWhen, slot: -1, when: e})
}

// among returns the small numbers in a slot of which an expression says that one is there.
func (e *expr) among() (slot int, set uint64, ok bool) {
	switch {
	case e.op == opWithin && e.low >= 0 && e.low <= e.high && e.high < 64:
		return e.slot, math.MaxUint64 << uint(e.low) & (math.MaxUint64 >> uint(63-e.high)), true
	case e.op == opOr:
		a, some, ok := e.args[0].among()
		b, more, too := e.args[1].among()
		return a, some | more, ok && too && a == b
	}
	return 0, 0, false
}

// flush makes a stage of the bits that nobody looks at, or of the fields that they are.
func (p *planner) flush() {
	if p.lead == 0 {
		return
	}
	s := stage{do: passOver, lead: p.lead}
	if !p.skims {
		s.do, s.fields = takeFields, p.fields
	}
	p.lead, p.fields = 0, nil
	p.push(s)
}

// add adds the stage of a field.
func (p *planner) add(do deed, o *op) *stage {
	s := stage{do: do, op: o, order: o.order, slot: o.slot, key: -1, low: math.MinInt64, high: math.MaxInt64}
	s.node = Node{Field: o.field, Kind: o.valueKind(), Sel: -1}
	if do == takeArray || do == takeVector {
		s.node.Kind = Array
	}
	if p.skims && do <= takeLearned {
		s.lead, p.lead = p.lead, 0
	} else {
		p.flush()
	}
	return p.push(s)
}

// here ends a jump.
func (p *planner) here(at int) {
	p.flush()
	p.ways[at].jump = len(p.stages)
}

// field plans a field whose conditions hold, and returns how many values it makes at most.
func (p *planner) field(o *op) int {
	values := p.one(o)
	if o.valid != nil && !p.inRange(o) {
		p.add(checkValid, o)
	}
	return values
}

// inRange gives the stage of a number, which is the last one, the range that its `valid` is.
func (p *planner) inRange(o *op) bool {
	low, high := o.validRange()
	if low > high || len(p.stages) == 0 {
		return false
	}
	s := &p.stages[len(p.stages)-1]
	if s.op != o || s.do > takeLearned {
		return false
	}
	s.low, s.high = low, high
	return true
}

// validRange returns the integers of a field that surely hold its `valid`: none where that
// is no range of the field itself.
func (o *op) validRange() (low, high int64) {
	if v := o.valid; v.op == opWithin && v.slot == o.slot {
		return v.low, v.high
	}
	return 1, 0
}

// one plans a value, and returns how many there are in it.
func (p *planner) one(o *op) int {
	switch {
	case o.at != nil:
		p.add(takeOp, o)
	case o.kind == opStruct:
		return p.structure(o)
	case o.kind == opArray:
		return p.array(o)
	case o.kind == opOptional:
		p.add(takeOptional, o)
		at := len(p.stages) - 1
		values := p.one(o.body[0])
		p.here(at)
		return max(1, values)
	case o.kind == opSwitch:
		return p.choose(o)
	case o.kind == opPrimitive:
		return p.primitive(o)
	case o.kind == opComputed || o.kind == opJoin:
		if !p.skims || o.slot >= 0 || o.kind == opComputed && !o.value.certain() {
			p.add(compute, o)
		}
	default:
		p.number(o)
	}
	return 1
}

// number plans a number, a text or bytes.
func (p *planner) number(o *op) {
	bits, fixed := o.fixedSize()
	integer := o.kind == opUint || o.kind == opInt
	switch {
	case integer && (!fixed || bits < 0 || bits > 64):
		p.width(o)
		return
	case !fixed || o.nulCounted || bits < 0 || bits > math.MaxInt32/4:
		p.add(takeOp, o)
		return
	}
	if o.kind == opText || o.kind == opBytes || o.kind == opGUID {
		p.longest = max(p.longest, bits>>3)
	}
	switch {
	case p.skims && o.slot < 0:
		p.pass(bits)
	case o.slot < 0 && bits > 0:
		p.keep(o, bits)
	case integer && bits > 0 && bits <= wire.Reach:
		p.integer(o, bits)
	case integer:
		p.add(takeWidth, o)
	default:
		p.add(takeOp, o)
	}
}

// keep keeps a field of fixed size, at which no expression looks, for the next stage.
func (p *planner) keep(o *op, bits int) {
	f := field{order: o.order, shift: uint8(64 - min(bits, 64)), as: o.kind}
	f.node = Node{Field: o.field, Kind: o.valueKind(), Off: int32(p.lead), Len: int32(bits), Sel: -1}
	switch o.kind {
	case opText, opBytes, opGUID:
		f.as, f.node.BodyLen, f.node.Kept = opBytes, int32(bits>>3), true
	default:
		f.node.Bits, f.node.Kept = uint8(bits), o.kind == opFloat || o.kind == opFixed
	}
	if o.kind == opIPv4 {
		f.as, f.order = opUint, wire.Big
	}
	p.pass(bits)
	p.fields = append(p.fields, f)
}

// integer plans an integer of fixed width.
func (p *planner) integer(o *op, bits int) {
	s := p.add(takeNumber, o)
	s.size, s.shift, s.signed = bits, uint8(64-bits), o.kind == opInt
	s.node.Len, s.node.Bits = int32(bits), uint8(bits)
}

// width plans an integer whose width is computed.
func (p *planner) width(o *op) {
	switch w := o.width; {
	case w.looksAhead():
		p.add(takeOp, o)
	case w.op == opEntry && w.col == 0 && o.kind == opUint && o.order == wire.Big && uint64(w.key) < lowKeys && p.learns(w.table):
		p.add(takeLearned, o).key = int(w.key)
	default:
		p.add(takeWidth, o)
	}
}

// learns makes a table that of the plan's widths, unless that is another one.
func (p *planner) learns(table int) bool {
	if p.table < 0 {
		p.table = table
	}
	return p.table == table
}

// pass passes over bits that nobody looks at.
func (p *planner) pass(bits int) {
	if bits > math.MaxInt32/2-p.lead {
		p.flush()
	}
	p.lead += bits
}

// structure plans the members of a struct.
func (p *planner) structure(o *op) int {
	p.enter(o)
	if p.skims {
		return 1 + p.list(o.body)
	}
	if p.lead < math.MaxInt32/4 && o.plain() {
		i, from := len(p.fields), p.lead
		p.fields = append(p.fields, field{as: opStruct, node: Node{Field: o.field, Kind: Struct, Off: int32(from), Sel: -1}})
		values := p.list(o.body)
		n := &p.fields[i].node
		n.Len, n.Size = int32(p.lead-from), int32(values)
		return 1 + values
	}
	p.add(openStruct, o)
	values := p.list(o.body)
	p.add(closeStruct, o)
	return 1 + values
}

func (p *planner) enter(o *op) {
	switch {
	case len(o.args) > 0:
		p.add(enterType, o)
	case len(o.clear) > 0:
		p.add(clearSlots, o)
	}
}

// plain reports whether all of a struct can be kept for one stage: it is small, and no
// expression looks at any of it.
func (o *op) plain() bool {
	bits, fixed := fixedSize(o.body)
	return fixed && bits > 0 && bits < math.MaxInt32/4 && len(o.args)+len(o.clear) == 0 && !slices.ContainsFunc(o.body, func(m *op) bool {
		n, _ := m.fixedSize()
		switch m.kind {
		case opUint, opInt:
			return m.slot >= 0 || m.valid != nil || n <= 0 || n > 64
		case opFloat, opFixed, opIPv4, opGUID, opText, opBytes:
			return m.slot >= 0 || m.valid != nil || n <= 0 || m.nulCounted
		case opStruct:
			return m.valid != nil || !m.plain()
		}
		return true
	})
}

// array plans an array. The elements, of which there may be many, are counted when their
// number is known.
func (p *planner) array(o *op) int {
	if o.full == nil {
		o.full, o.skim = plans(o.body)
	}
	if p.skims && o.each == nil {
		n, fixed := o.size.constant()
		if each := o.skim.passes(); fixed && each > 0 && n >= 0 && n <= math.MaxInt32/4/int64(each) {
			p.longest = max(p.longest, o.skim.longest)
			p.pass(int(n) * each)
			return 1 + int(n)*o.skim.values
		}
	}
	p.add(takeArray, o)
	return 1
}

// passes returns how many bits a plan passes over, if that is all it does, and else 0.
func (p *plan) passes() int {
	if s := p.first; s != nil && s.do == passOver && s.next == nil {
		return s.lead
	}
	return 0
}

// keeps returns the stage of a plan that has but one, which takes fields, and else nil.
func (p *plan) keeps() *stage {
	if s := p.first; s != nil && s.do == takeFields && s.next == nil && s.mask == 0 {
		return s
	}
	return nil
}

// maxTable is how many values there may be for which the way on stands in a table.
const maxTable = 256

// choose plans a switch: the cases stand one behind the other.
func (p *planner) choose(o *op) (values int) {
	p.enter(o)
	p.add(chooseCase, o)
	at := len(p.stages) - 1
	starts := make([]int, len(o.cases))
	var ends []int
	for i := range o.cases {
		c := &o.cases[i]
		if same := slices.IndexFunc(o.cases[:i], func(k opCase) bool { return slices.Equal(k.ops, c.ops) }); same >= 0 {
			starts[i] = starts[same]
			continue
		}
		starts[i] = len(p.stages)
		if o.field == nil {
			values = max(values, p.list(c.ops))
		} else {
			values = max(values, p.one(c.ops[0]))
		}
		p.flush()
		if p.flag != nil {
			p.push(stage{do: passOver})
		}
		ends = append(ends, len(p.stages))
		p.push(stage{do: goOn})
	}
	for _, end := range ends {
		p.here(end)
	}
	p.here(at)
	p.ways[at].cases = o.ways(starts, p.ways[at].jump)
	return values
}

// ways returns where to go on by the value of a switch, if it is small, and behind these by
// its case.
func (o *op) ways(starts []int, none int) []int {
	size := uint64(0)
	for _, c := range o.cases {
		if c.high < maxTable {
			size = max(size, c.high+1)
		}
	}
	var table []int
	for v := range size {
		if i := o.caseOf(v); i >= 0 {
			table = append(table, starts[i])
		} else {
			table = append(table, none)
		}
	}
	return append(table, starts...)
}

// caseOf returns the index of the case of a value, or -1.
func (o *op) caseOf(v uint64) int {
	for i := range o.cases {
		if c := &o.cases[i]; c.other || v >= c.low && v <= c.high {
			return i
		}
	}
	return -1
}

// primitive plans what the notation cannot write. Of quantised numbers it follows those
// whose slot of the table depends on one field.
func (p *planner) primitive(o *op) int {
	if o.prim.table == "" || o.order != wire.Big || !p.learns(o.bits) {
		p.add(takeOp, o)
		return 1 + o.prim.values
	}
	key, low, high := -1, int64(0), int64(0)
	switch e := o.args[0]; {
	case e.isInteger():
		low = e.num.i
	case e.op == opSlot:
		key, high = e.slot, 1
	case e.op == opLinear:
		key, low, high = e.slot, e.low, e.high
	default:
		p.add(takeOp, o)
		return 1 + o.prim.values
	}
	do := takeQuant
	if o.prim.values > 1 {
		do = takeVector
	}
	s := p.add(do, o)
	s.key, s.low, s.high = key, low, high
	return 1 + o.prim.values
}

// certain reports whether an expression cannot fail, and notes no origin.
func (e *expr) certain() bool {
	switch e.op {
	case opState, opEntry, opDiv, opMod, opRoundUp:
		return false
	}
	return !slices.ContainsFunc(e.args, func(a *expr) bool { return !a.certain() })
}
