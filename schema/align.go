package schema

// With `align: byte`, numbers of whole bytes, text and bytes begin on a byte, and
// narrower numbers share bytes. Where a list stands is followed here as a
// position within its byte, which is unknown behind what varies.

const anywhere = -1

// checkAlignment follows a list from a position within a byte and returns the
// position behind it.
func checkAlignment(ops []*op, at int, fields []*fieldDecl) (int, error) {
	for i, o := range ops {
		var pos Pos
		if i < len(fields) {
			pos = fields[i].pos
			if fields[i].ref != nil {
				pos = fields[i].ref.pos
			}
		}
		before := at
		var err error
		if o.at != nil {
			at = 0
		}
		if at, err = o.align(at, pos); err != nil {
			return 0, err
		}
		if o.cond != nil {
			at = merge(before, at)
		}
	}
	return at, nil
}

func merge(a, b int) int {
	if a != b {
		return anywhere
	}
	return a
}

// needsByte reports whether a field begins on a byte.
func (o *op) needsByte() bool {
	switch o.kind {
	case opUint, opInt:
		return o.width == nil && o.bits%8 == 0
	case opFloat, opFixed, opText, opBytes, opRest, opGUID, opIPv4:
		return true
	}
	return false
}

func (o *op) align(at int, pos Pos) (int, error) {
	if o.needsByte() && at != 0 {
		if at == anywhere {
			return 0, errorAt(pos, "%s may begin in mid-byte; add fill before it", o.field.Type)
		}
		return 0, errorAt(pos, "%s begins in mid-byte (bit %d); add fill before it", o.field.Type, at)
	}
	switch o.kind {
	case opFill:
		return 0, nil
	case opStruct:
		return checkAlignment(o.body, at, placeholders(o.body, pos))
	case opOptional:
		if at >= 0 {
			at = (at + 1) % 8
		}
		after, err := checkAlignment(o.body, at, placeholders(o.body, pos))
		return merge(at, after), err
	case opSwitch:
		return o.alignCases(at, pos)
	case opArray:
		return o.alignArray(at, pos)
	case opPrimitive:
		return anywhere, nil
	}
	if n, ok := o.fixedSize(); ok && at >= 0 {
		return (at + n) % 8, nil
	} else if ok && n%8 == 0 || o.kind == opText || o.kind == opBytes || o.kind == opRest {
		return at, nil
	}
	return anywhere, nil
}

// placeholders gives the members of a type the place where it is used.
func placeholders(ops []*op, pos Pos) []*fieldDecl {
	out := make([]*fieldDecl, len(ops))
	for i := range out {
		out[i] = &fieldDecl{pos: pos}
	}
	return out
}

func (o *op) alignCases(at int, pos Pos) (int, error) {
	result, first, other := at, true, false
	for _, c := range o.cases {
		after, err := checkAlignment(c.ops, at, placeholders(c.ops, pos))
		if err != nil {
			return 0, err
		}
		if other = other || c.other; first {
			result, first = after, false
		} else {
			result = merge(result, after)
		}
	}
	if !other {
		result = merge(result, at)
	}
	return result, nil
}

// alignArray follows an array until an element begins where another one did.
func (o *op) alignArray(at int, pos Pos) (int, error) {
	count, constant := int64(1<<62), false
	if o.size != nil {
		if n, ok := o.size.constant(); ok {
			count, constant = n, true
		}
	}
	result := at
	for i := int64(0); i < min(count, 16); i++ {
		after, err := checkAlignment(o.body, at, placeholders(o.body, pos))
		if err != nil {
			return 0, err
		}
		if constant {
			result = after
		} else {
			result = merge(result, after)
		}
		at = after
	}
	if constant && count > 16 {
		if n, ok := fixedSize(o.body); ok && result >= 0 {
			return (result + int((count-16)%8)*(n%8)) % 8, nil
		}
	}
	return result, nil
}
