package schema

import "opscope/schema/wire"

// A byte is shared only by numbers of one order: `be` counts its bits from the
// most significant and `le` from the least, and would meet in its middle. With
// `align: byte`, numbers of whole bytes, text and bytes moreover begin on a byte.
// Both are followed here, field by field, as a place within a byte.

// place is where a field begins.
type place struct {
	bit   int        // of its byte, or anywhere
	order wire.Order // of the bits in front, if there are any
}

const (
	anywhere = -1
	mixed    = wire.Order(2) // one or the other
)

// aligner follows a layout. It remembers what it has followed: arrays of arrays
// would take it there again and again.
type aligner struct {
	bitAlign bool
	seen     map[step]place
}

type step struct {
	o  *op
	at place
}

// list follows fields from a place and returns the one behind them. The positions
// are those of the fields, or of what holds them.
func (a *aligner) list(ops []*op, at place, pos func(int) Pos) (place, error) {
	for i, o := range ops {
		before := at
		if o.at != nil {
			at = place{}
		}
		var err error
		if at, err = a.field(o, at, pos(i)); err != nil {
			return place{}, err
		}
		if o.cond != nil {
			at = merge(before, at)
		}
	}
	return at, nil
}

func merge(a, b place) place {
	switch {
	case a.bit == 0 && b.bit == 0:
		return place{}
	case a.bit == 0:
		a.order = b.order
	case b.bit != 0 && a.order != b.order:
		a.order = mixed
	}
	if a.bit != b.bit {
		a.bit = anywhere
	}
	return a
}

func (a *aligner) field(o *op, at place, pos Pos) (place, error) {
	if known, ok := a.seen[step{o, at}]; ok {
		return known, nil
	}
	behind, err := a.follow(o, at, pos)
	if err == nil {
		a.seen[step{o, at}] = behind
	}
	return behind, err
}

func (a *aligner) follow(o *op, at place, pos Pos) (place, error) {
	if err := a.begins(o, at, pos); err != nil {
		return place{}, err
	}
	same := func(int) Pos { return pos }
	switch o.kind {
	case opFill:
		return place{}, nil
	case opComputed, opJoin:
		return at, nil
	case opStruct:
		return a.list(o.body, at, same)
	case opOptional:
		flag := o.behind(at, 1)
		after, err := a.list(o.body, flag, same)
		return merge(flag, after), err
	case opSwitch:
		return a.cases(o, at, same)
	case opArray:
		return a.array(o, at, same)
	}
	if n, ok := o.fixedSize(); ok {
		return o.behind(at, n), nil
	}
	switch o.kind {
	case opText, opBytes, opRest:
		return o.behind(at, o.bits), nil
	}
	return place{anywhere, o.order}, nil
}

// behind returns the place behind some bits of a field.
func (o *op) behind(at place, bits int) place {
	switch {
	case at.bit == anywhere || bits%8 == 0:
		return at
	case (at.bit+bits)%8 == 0:
		return place{}
	}
	return place{(at.bit + bits) % 8, o.order}
}

// begins checks the place where a field begins.
func (a *aligner) begins(o *op, at place, pos Pos) error {
	var order wire.Order
	whole := false
	switch o.kind {
	case opUint, opInt:
		order, whole = o.order, o.width == nil && o.bits%8 == 0
	case opFloat, opFixed:
		order, whole = o.order, true
	case opText, opBytes, opRest, opGUID, opIPv4:
		order, whole = wire.Big, true
		if o.bits%8 != 0 && !a.bitAlign {
			return errorAt(pos, "%s has its first byte in mid-byte; its length takes whole bytes", o.field.Type)
		}
	case opOptional, opPrimitive:
		order = o.order
	default:
		return nil
	}
	switch {
	case at.bit == 0:
		return nil
	case at.order != order:
		return errorAt(pos, "%s shares a byte with bits in the other order; add fill before it", o.field.Type)
	case !whole || a.bitAlign:
		return nil
	case at.bit == anywhere:
		return errorAt(pos, "%s may begin in mid-byte; add fill before it", o.field.Type)
	}
	return errorAt(pos, "%s begins in mid-byte (bit %d); add fill before it", o.field.Type, at.bit)
}

func (a *aligner) cases(o *op, at place, pos func(int) Pos) (place, error) {
	var result place
	other := false
	for i, c := range o.cases {
		after, err := a.list(c.ops, at, pos)
		if err != nil {
			return place{}, err
		}
		if i == 0 {
			result = after
		}
		result = merge(result, after)
		other = other || c.other
	}
	if !other {
		result = merge(result, at)
	}
	return result, nil
}

// array follows an array until an element begins where another one did.
func (a *aligner) array(o *op, at place, pos func(int) Pos) (place, error) {
	count, constant := int64(0), false
	if o.size != nil {
		count, constant = o.size.constant()
	}
	result := at
	been := []place{at}
	for i := int64(0); !constant || i < count; i++ {
		after, err := a.list(o.body, at, pos)
		if err != nil {
			return place{}, err
		}
		for k, p := range been {
			if p != after {
				continue
			}
			if round := been[k:]; constant {
				return round[(count-i-1)%int64(len(round))], nil
			}
			return result, nil
		}
		been = append(been, after)
		at = after
		if !constant {
			result = merge(result, after)
		} else {
			result = after
		}
	}
	return result, nil
}
