package schema

import (
	"slices"
	"strconv"
	"sync"

	"opscope/schema/wire"
)

// A Typed framing has no length on the wire: the opcode, and for some packets a few
// fields behind it, give the size that the packet's `size` states. Which packet an
// opcode names depends on its sender.

// sizes are the sizes of every packet, by sender and opcode. They do not change
// once loaded.
type sizes struct {
	of     [3][256]*sizing
	faults func() *[3][256]*wire.Error // for an opcode without a size
}

// sizing is how the size of one packet follows from its first bytes.
type sizing struct {
	packet *Packet
	fixed  int          // the size, or 0 where it is computed
	settle func() error // otherwise: sets what follows, once

	size  *expr
	lead  []*op // the fields that size looks at, and what stands before them
	slots int
	clear []int
}

// maxLead is how many fields may stand in front of the last that a size looks at.
const maxLead = 16

// compileSizes gives the typed framings the sizes of all packets. An overlay shares
// the framings of what is below it, so they are copied.
func (d *draft) compileSizes() error {
	for i, f := range d.Framings {
		if f.Kind != Typed {
			continue
		}
		c := *f
		c.sizes = &sizes{faults: sync.OnceValue(d.unsized)}
		for op := range uint64(256) {
			for _, by := range []Sender{AnySender, Client, Server} {
				if err := d.compileSize(&c, by, op); err != nil {
					return err
				}
			}
		}
		d.Framings[i] = &c
	}
	return nil
}

// compileSize finds the size of the packet that an opcode names. Where it is not
// known who sends, two packets of one fixed size will do.
func (d *draft) compileSize(f *Framing, by Sender, opcode uint64) error {
	p := d.sized(opcode, by)
	if p == nil && by == AnySender {
		a, b := f.sizes.of[Client][opcode], f.sizes.of[Server][opcode]
		a, b = d.sizingOf(d.sized(opcode, Client), a), d.sizingOf(d.sized(opcode, Server), b)
		if a != nil && b != nil && a.fixed > 0 && a.fixed == b.fixed {
			f.sizes.of[by][opcode] = a
			return nil
		}
	}
	if z := d.sizingOf(p, nil); z != nil {
		f.sizes.of[by][opcode] = z
		if z.fixed == 0 && p.compile == nil {
			return z.settle()
		}
	}
	return nil
}

// sized returns the packet that an opcode names, over any transport.
func (d *draft) sized(opcode uint64, by Sender) *Packet {
	if p := d.Packet(opcode, by, TCP); p != nil {
		return p
	}
	return d.Packet(opcode, by, UDP)
}

// sizingOf returns the sizing of a packet with a `size`, not settled; nil for another.
func (d *draft) sizingOf(p *Packet, known *sizing) *sizing {
	if known != nil || p == nil || p.size == nil || !p.bodied {
		return known
	}
	if n, ok := p.size.constant(); ok {
		return &sizing{packet: p, fixed: int(n)}
	}
	z := &sizing{packet: p}
	z.settle = sync.OnceValue(z.find)
	return z
}

// unsized says of each opcode, by sender, why it begins no frame.
func (d *draft) unsized() *[3][256]*wire.Error {
	all := new([3][256]*wire.Error)
	for by := range all {
		for opcode := range all[by] {
			all[by][opcode] = d.fault(Sender(by), uint64(opcode))
		}
	}
	return all
}

func (d *draft) fault(by Sender, opcode uint64) *wire.Error {
	want := "a type that the " + by.String() + " sends"
	if by == AnySender {
		want = "a type of this protocol"
	}
	got := strconv.FormatUint(opcode, 10)
	if own := d.sized(opcode, by); own != nil {
		got += ", " + own.Name + ", which has no size"
	} else if by != AnySender {
		if o := d.sized(opcode, 3-by); o != nil {
			got += ", " + o.Name + " of the " + (3 - by).String()
		}
	}
	return &wire.Error{Layer: d.Name, Path: "envelope.opcode", Want: want, Got: got, Kind: wire.Malformed}
}

// find finds the fields that the size looks at. Their places must be known when
// those before them are read.
func (z *sizing) find() error {
	p := z.packet
	c := p.Of(p.From)[0].code
	z.size, z.slots = c.size, c.slots
	need := map[int]bool{}
	z.size.reads(need)
	found := map[int]bool{}
	lead, err := z.trim(p, c.ops, need, found)
	if err != nil {
		return err
	}
	for slot := range need {
		if !found[slot] {
			return errorAt(z.size.pos, "the size of %s looks at what is no field of the body", p.Name)
		}
		z.clear = append(z.clear, slot)
	}
	slices.Sort(z.clear)
	z.lead = lead
	return nil
}

// reads notes the slots that an expression looks at.
func (e *expr) reads(slots map[int]bool) {
	if e.op == opSlot || e.op == opFlag {
		slots[e.slot] = true
	}
	for _, a := range e.args {
		a.reads(slots)
	}
}

// trim returns the fields of a list up to the last that is needed.
func (z *sizing) trim(p *Packet, ops []*op, need, found map[int]bool) ([]*op, error) {
	last := -1
	for i, o := range ops {
		if o.holds(need) {
			last = i
		}
	}
	var lead []*op
	for _, o := range ops[:last+1] {
		if o.cond != nil || o.at != nil || len(lead) == maxLead {
			return nil, errorAt(z.size.pos, "the size of %s looks at a field without a fixed place", p.Name)
		}
		switch _, fixed := o.fixedSize(); {
		case o.kind == opSwitch && o.field == nil && !o.on.looksAhead():
			o.on.reads(need)
			s := *o
			s.cases = slices.Clone(o.cases)
			for i := range s.cases {
				var err error
				if s.cases[i].ops, err = z.trim(p, s.cases[i].ops, need, found); err != nil {
					return nil, err
				}
			}
			o = &s
		case (o.kind == opUint || o.kind == opInt) && o.width == nil, o.kind == opBytes && fixed:
			if o.slot >= 0 {
				found[o.slot] = true
			}
		default:
			what := "a switch"
			if o.field != nil {
				what = o.field.Name
			}
			return nil, errorAt(z.size.pos, "the size of %s looks at a field behind %s, whose size is not fixed", p.Name, what)
		}
		lead = append(lead, o)
	}
	return lead, nil
}

// holds reports whether a field, or one in a case of it, is among some slots.
func (o *op) holds(slots map[int]bool) bool {
	if o.kind == opSwitch && o.field == nil {
		return slices.ContainsFunc(o.cases, func(c opCase) bool {
			return slices.ContainsFunc(c.ops, func(o *op) bool { return o.holds(slots) })
		})
	}
	return o.slot >= 0 && slots[o.slot]
}

// Knows reports whether a frame of a Typed framing may begin with a byte.
func (f *Framing) Knows(by Sender, first byte) bool { return f.sizes.of[by][first] != nil }

// FindTyped finds one frame of a Typed framing at the start of data, as Find does
// for the others. It decodes what the size depends on with d, and no more; an error
// for an opcode without a size, and for a frame that is not all there, is shared.
func (f *Framing) FindTyped(d *Decoder, p *Protocol, by Sender, data []byte) (Frame, *wire.Error) {
	if len(data) < f.Envelope.size {
		return Frame{}, f.Envelope.holds(data, p.Name, wire.Incomplete)
	}
	opcode := data[0]
	z := f.sizes.of[by][opcode]
	if z == nil {
		return Frame{}, f.sizes.faults()[by][opcode]
	}
	size := z.fixed
	if size == 0 {
		n, err := d.sizeOf(f, p, z, data)
		if err != nil {
			return Frame{}, err
		}
		size = n
	}
	if len(data) < size {
		return Frame{Size: size}, errPart
	}
	return Frame{Opcode: uint64(opcode), Size: size, Head: f.Envelope.size, Seq: -1, Length: -1}, nil
}

// sizeOf computes the size of a packet.
func (d *Decoder) sizeOf(f *Framing, p *Protocol, z *sizing, data []byte) (int, *wire.Error) {
	if err := z.settle(); err != nil {
		panic(err) // of a built-in schema: a test has settled all of it
	}
	d.begin(p, z.slots, z.clear)
	d.r.Reset(data, p.Name, wire.Incomplete)
	d.r.Seek(8 * f.Envelope.size)
	d.lead(z.lead)
	if err := d.r.Err(); err != nil {
		return 0, err.Within(z.packet.Name)
	}
	size, least := d.m.eval(z.size).asInt(), int64(d.r.Pos()+7)>>3
	if most := int64(f.Max); d.m.failed || size < least || most > 0 && size > most {
		want := "a size of at least " + strconv.FormatInt(least, 10)
		if size > least {
			want = "a size of at most " + strconv.FormatInt(most, 10)
		}
		return 0, &wire.Error{Layer: p.Name, Path: z.packet.Name + ".size", Size: len(data),
			Want: want, Got: strconv.FormatInt(size, 10), Kind: wire.Malformed}
	}
	return int(size), nil
}

// lead reads the fields that a size depends on.
func (d *Decoder) lead(ops []*op) {
	for _, o := range ops {
		switch o.kind {
		case opSwitch:
			v := uint64(d.m.eval(o.on).asInt())
			for i := range o.cases {
				if c := &o.cases[i]; c.other || v >= c.low && v <= c.high {
					d.lead(c.ops)
					break
				}
			}
		case opBytes:
			d.r.Skip(8 * int(d.m.eval(o.size).asInt()))
		default:
			v := d.r.Uint(o.bits, o.order)
			if o.kind == opInt {
				v = uint64(wire.SignExtend(v, o.bits))
			}
			d.store(o, integer(int64(v)))
		}
		if err := d.r.Err(); err != nil {
			if o.field != nil {
				err.Within(o.field.Name)
			}
			return
		}
	}
}
