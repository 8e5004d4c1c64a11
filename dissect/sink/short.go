package sink

import (
	"strconv"

	"opscope/dissect"
	"opscope/schema"
)

// shortHex is how many bytes of hex a line shows when it has the room.
const shortHex = 16

// appendShortHex appends bytes as hex; when they take more than limit columns,
// or are many, the first ones and their number.
func (t *Text) appendShortHex(dst, b []byte, limit int) []byte {
	if len(b) <= shortHex && 2*len(b) <= max(limit, 8) {
		return appendHex(dst, b)
	}
	shown := min(len(b), shortHex, max(4, (limit-len("… (10,000 bytes)"))/2))
	return t.appendMore(appendHex(dst, b[:shown]), "", len(b))
}

// appendMore appends, behind what is shown of n bytes, that there are more.
func (t *Text) appendMore(dst []byte, quote string, n int) []byte {
	dst = append(append(t.ellipsis(dst), quote...), " ("...)
	return append(appendCount(dst, int64(n)), " bytes)"...)
}

// appendShort appends the value of node i in the short form of a line. A text
// that takes more than limit columns is cut, with its length.
func (t *Text) appendShort(dst []byte, body *schema.Tree, i, limit int) []byte {
	n := &body.Nodes[i]
	open := t.redact.Open(n)
	switch {
	case open && n.Kind == schema.Uint && bare(n.Field):
		return appendUint(dst, n.Num) // most are such
	case !open && t.redact.HidesNode(body, i):
		return append(dst, dissect.MaskText...)
	case marked(n, schema.Absent) && n.Kind != schema.Null:
		return append(t.appendPresent(append(dst, '('), body, i, limit-len("()")), ')')
	}
	return t.appendPresent(dst, body, i, limit)
}

// bare reports whether the digits of a number are all that a line says of it.
func bare(f *schema.Field) bool {
	return f != nil && f.Mark == schema.NoMark && f.Enum == nil && f.Flags == nil && f.Scale == 0 && !f.Hex
}

// appendPresent appends a value that is to be seen. One that is not on the wire stands
// in brackets.
func (t *Text) appendPresent(dst []byte, body *schema.Tree, i, limit int) []byte {
	n := &body.Nodes[i]
	switch n.Kind {
	case schema.Struct:
		return t.appendShortStruct(dst, body, i)
	case schema.Array:
		return t.appendShortArray(dst, body, i)
	case schema.Text, schema.String:
		return t.appendQuoted(dst, body, i, limit)
	case schema.Bytes:
		t.value = body.AppendBytes(t.value[:0], i)
		return t.appendShortHex(dst, t.value, limit)
	case schema.Float:
		if n.Field == nil || n.Field.Scale == 0 {
			return appendRounded(dst, n.Float(), n.Field != nil && n.Field.Single)
		}
	}
	return t.appendScalar(dst, body, i)
}

// appendScalar appends a number, GUID, address or missing value in full, with
// the names that its enum or flags give it.
func (t *Text) appendScalar(dst []byte, body *schema.Tree, i int) []byte {
	n := &body.Nodes[i]
	switch n.Kind {
	case schema.Null:
		return append(dst, '-')
	case schema.Bool:
		return appendBool(dst, n)
	case schema.GUID:
		t.value = body.AppendBytes(t.value[:0], i)
		return appendGUID(dst, t.value)
	case schema.IPv4:
		return appendIPv4(dst, n.Num)
	}
	f := n.Field
	switch {
	case f == nil:
		return appendNumber(dst, n, false)
	case f.Scale != 0:
		return strconv.AppendFloat(dst, n.Float()*f.Scale, 'g', 12, 64)
	case f.Hex && n.Kind == schema.Uint, f.Flags != nil:
		dst = appendHexNumber(dst, n.Num)
	default:
		dst = appendNumber(dst, n, f.Single)
	}
	if name := f.Enum.NameOf(n.Num); name != "" {
		dst = append(t.escaped(append(dst, " ("...), name), ')')
	}
	if f.Flags != nil && n.Num != 0 {
		start := len(dst)
		dst = append(appendFlags(append(dst, " ("...), f.Flags, n.Num), ')')
		t.hidden += len(dst) - start - columns(dst[start:])
	}
	return dst
}

// appendFlags appends the names of the flags set in v, a number of several bits
// with its value, and bits without a name as hex.
func appendFlags(dst []byte, f *schema.Flags, v uint64) []byte {
	start := len(dst)
	for _, b := range f.Bits {
		set := b.Of(v)
		if set == 0 {
			continue
		}
		if len(dst) > start {
			dst = append(dst, ' ')
		}
		dst = appendEscaped(dst, b.Name)
		if b.High > b.Low {
			dst = appendUint(append(dst, '='), set)
		}
	}
	if rest := f.Rest(v); rest != 0 {
		if len(dst) > start {
			dst = append(dst, ' ')
		}
		dst = appendHexNumber(dst, rest)
	}
	return dst
}

// appendNumber appends the number of a node, as NDJSON has it.
func appendNumber(dst []byte, n *schema.Node, single bool) []byte {
	switch n.Kind {
	case schema.Float:
		return appendFloat(dst, n.Float(), single)
	case schema.Int:
		return appendInt(dst, int64(n.Num))
	}
	return appendUint(dst, n.Num)
}

// A short text is always shown, and its length stands behind what is cut.
const (
	minText  = 8
	lineText = 64  // columns of a text on a line
	pageText = 256 // columns of a text in the details
)

// appendQuoted appends a text, escaped and in quotes, in at most limit columns.
func (t *Text) appendQuoted(dst []byte, body *schema.Tree, i, limit int) []byte {
	text := textOf(&t.value, body, i)
	if n := &body.Nodes[i]; n.Kind == schema.Text && n.Field != nil && n.Field.Encoding == schema.UTF8Exact {
		t.value = body.AppendBytes(t.value[:0], i) // what is no UTF-8 is escaped below
		text = t.value
	}
	dst = append(dst, '"')
	start := len(dst)
	limit = max(minText, limit-len(`""`))
	dst, n, used := appendEscapedUpTo(dst, text, limit)
	if n == len(text) {
		t.hidden += len(dst) - start - used
		return append(dst, '"')
	}
	limit = max(minText, limit-len("… (10,000 bytes)"))
	dst, _, used = appendEscapedUpTo(dst[:start], text, limit)
	t.hidden += len(dst) - start - used
	return t.appendMore(dst, `"`, len(text))
}

// shortMembers is how many members of a struct or array a line shows; larger
// ones are only counted.
const shortMembers = dissect.OutlineValues - 1

// appendShortArray appends an array: a few numbers as (1.5, 2, 3), anything
// else as the number of its elements.
func (t *Text) appendShortArray(dst []byte, body *schema.Tree, i int) []byte {
	if !t.isTuple(body, i, shortMembers) {
		return appendInt(dst, int64(body.Elements(i)))
	}
	return t.appendTuple(dst, body, i)
}

// isTuple reports whether node i is an array of numbers that may be shown, at least
// one and at most so many.
func (t *Text) isTuple(body *schema.Tree, i, most int) bool {
	n := &body.Nodes[i]
	if n.Kind != schema.Array || n.Size == 0 || int(n.Size) > most {
		return false
	}
	for k := i + 1; k < body.Next(i); k++ {
		switch element := &body.Nodes[k]; element.Kind {
		case schema.Uint, schema.Int, schema.Float, schema.IPv4:
			if t.redact.HidesNode(body, k) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// appendTuple appends an array of numbers as (1.5, 2, 3).
func (t *Text) appendTuple(dst []byte, body *schema.Tree, i int) []byte {
	dst = append(dst, '(')
	for k := i + 1; k < body.Next(i); k = body.Next(k) {
		if k > i+1 {
			dst = append(dst, ", "...)
		}
		dst = t.appendShort(dst, body, k, minText)
	}
	return append(dst, ')')
}

// appendShortStruct appends a struct: a few values as {x=1 y=2}, anything else
// as the number of its fields.
func (t *Text) appendShortStruct(dst []byte, body *schema.Tree, i int) []byte {
	count, flat := 0, true
	for k := i + 1; k < body.Next(i); k = body.Next(k) {
		if shown(&body.Nodes[k]) {
			count++
			flat = flat && body.Nodes[k].Size == 0
		}
	}
	if !flat || count > shortMembers {
		dst = appendInt(append(dst, '{'), int64(count))
		return append(dst, " fields}"...)
	}
	dst = append(dst, '{')
	for k := i + 1; k < body.Next(i); k = body.Next(k) {
		n := &body.Nodes[k]
		if !shown(n) {
			continue
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ' ')
		}
		dst = append(t.escaped(dst, nameOf(n)), '=')
		dst = t.appendShort(dst, body, k, minText)
	}
	return append(dst, '}')
}
