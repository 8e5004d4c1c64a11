package pcapfilter

import (
	"errors"

	"golang.org/x/net/bpf"
)

// maxProgram is the most instructions that Linux takes (BPF_MAXINSNS).
const maxProgram = 4096

// scratchSlots is how many numbers a program can put aside.
const scratchSlots = 16

var (
	// ErrTooLong is the error for a filter of more instructions than the kernel takes.
	ErrTooLong = errors.New("capture filter: too long for the kernel")
	errTooDeep = errors.New("capture filter: an expression needs more numbers at once than a program can put aside")
)

// label is a place in a program, which is known once it has been emitted.
type label int

// item is an instruction, a place, or a jump to places behind it.
type item struct {
	instruction bpf.Instruction
	place       label // 0 for none
	test        bpf.JumpTest
	value       uint32
	byX         bool // compare with X, not with value
	yes, no     label
}

// assembler turns conditions into instructions.
type assembler struct {
	items  []item
	labels label
	slots  int // numbers put aside
	deep   bool
}

// assemble returns a program that keeps snap bytes of the packets for which c holds, all
// packets for nil.
func assemble(c condition, snap int) ([]bpf.Instruction, error) {
	var a assembler
	accept, reject := a.label(), a.label()
	if c != nil {
		a.condition(c, accept, reject)
	}
	a.place(accept)
	a.emit(bpf.RetConstant{Val: uint32(snap)})
	a.place(reject)
	a.emit(bpf.RetConstant{Val: 0})
	if a.deep {
		return nil, errTooDeep
	}
	program := a.link()
	if len(program) > maxProgram {
		return nil, ErrTooLong
	}
	return program, nil
}

func (a *assembler) label() label {
	a.labels++
	return a.labels
}

func (a *assembler) place(l label)          { a.items = append(a.items, item{place: l}) }
func (a *assembler) emit(i bpf.Instruction) { a.items = append(a.items, item{instruction: i}) }
func (a *assembler) jump(test item)         { a.items = append(a.items, test) }
func (a *assembler) emitAll(l ...bpf.Instruction) {
	for _, i := range l {
		a.emit(i)
	}
}

// condition goes to yes if c holds, else to no; both come later.
func (a *assembler) condition(c condition, yes, no label) {
	switch c := c.(type) {
	case both:
		next := a.label()
		a.condition(c.a, next, no)
		a.place(next)
		a.condition(c.b, yes, no)
	case either:
		next := a.label()
		a.condition(c.a, yes, next)
		a.place(next)
		a.condition(c.b, yes, no)
	case negated:
		a.condition(c.of, no, yes)
	case compare:
		a.compare(c, yes, no)
	}
}

func (a *assembler) compare(c compare, yes, no label) {
	if n, ok := c.right.(number); ok {
		a.load(c.left)
		a.jump(item{test: c.test, value: uint32(n), yes: yes, no: no})
		return
	}
	slot := a.aside(c.right)
	a.load(c.left)
	a.emit(bpf.LoadScratch{Dst: bpf.RegX, N: slot})
	a.slots--
	a.jump(item{test: c.test, byX: true, yes: yes, no: no})
}

// aside puts an operand into a slot, which the caller gives back.
func (a *assembler) aside(o operand) int {
	a.load(o)
	slot := a.slots
	if a.slots++; slot >= scratchSlots {
		a.deep = true
		slot = 0
	}
	a.emit(bpf.StoreScratch{Src: bpf.RegA, N: slot})
	return slot
}

// load brings an operand into A.
func (a *assembler) load(o operand) {
	switch o := o.(type) {
	case number:
		a.emit(bpf.LoadConstant{Dst: bpf.RegA, Val: uint32(o)})
	case field:
		a.emit(bpf.LoadAbsolute{Off: uint32(o.at), Size: o.size})
	case metadata:
		a.emit(bpf.LoadExtension{Num: bpf.Extension(o)})
	case indexed:
		a.indexed(o)
	case arithmetic:
		if n, ok := o.b.(number); ok {
			a.load(o.a)
			a.emit(bpf.ALUOpConstant{Op: o.op, Val: uint32(n)})
			return
		}
		slot := a.aside(o.b)
		a.load(o.a)
		a.emit(bpf.LoadScratch{Dst: bpf.RegX, N: slot})
		a.slots--
		a.emit(bpf.ALUOpX{Op: o.op})
	}
}

func (a *assembler) indexed(o indexed) {
	if n, ok := o.index.(number); ok && o.ip >= 0 {
		a.emitAll(bpf.LoadMemShift{Off: uint32(o.ip)}, bpf.LoadIndirect{Off: uint32(o.at) + uint32(n), Size: o.size})
		return
	}
	a.load(o.index)
	if o.ip >= 0 {
		a.emitAll(bpf.LoadMemShift{Off: uint32(o.ip)}, bpf.ALUOpX{Op: bpf.ALUOpAdd})
	}
	a.emitAll(bpf.TAX{}, bpf.LoadIndirect{Off: uint32(o.at), Size: o.size})
}

// link resolves the places. A jump whose place is too far for one byte goes there in
// two steps.
func (a *assembler) link() []bpf.Instruction {
	far := make([]bool, len(a.items))
	for {
		at, end := a.places(far)
		again := false
		for i, it := range a.items {
			if it.yes == 0 || far[i] {
				continue
			}
			if next := at[i] + 1; end[it.yes]-next > 255 || end[it.no]-next > 255 {
				far[i], again = true, true
			}
		}
		if !again {
			return a.write(far, at, end)
		}
	}
}

// places returns where each item and each label is.
func (a *assembler) places(far []bool) (at []int, end map[label]int) {
	at, end = make([]int, len(a.items)), map[label]int{}
	n := 0
	for i, it := range a.items {
		at[i] = n
		switch {
		case it.place != 0:
			end[it.place] = n
		case it.yes != 0 && far[i]:
			n += 3
		default:
			n++
		}
	}
	return at, end
}

func (a *assembler) write(far []bool, at []int, end map[label]int) []bpf.Instruction {
	var program []bpf.Instruction
	branch := func(it item, yes, no int) {
		if it.byX {
			program = append(program, bpf.JumpIfX{Cond: it.test, SkipTrue: uint8(yes), SkipFalse: uint8(no)})
			return
		}
		program = append(program, bpf.JumpIf{Cond: it.test, Val: it.value, SkipTrue: uint8(yes), SkipFalse: uint8(no)})
	}
	for i, it := range a.items {
		switch {
		case it.place != 0:
		case it.yes == 0:
			program = append(program, it.instruction)
		case far[i]:
			branch(it, 0, 1)
			program = append(program, bpf.Jump{Skip: uint32(end[it.yes] - at[i] - 2)}, bpf.Jump{Skip: uint32(end[it.no] - at[i] - 3)})
		default:
			branch(it, end[it.yes]-at[i]-1, end[it.no]-at[i]-1)
		}
	}
	return program
}
