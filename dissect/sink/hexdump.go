package sink

import (
	"slices"

	"opscope/dissect"
	"opscope/schema"
)

// The dump shows each byte of a record, under it the letters of the fields that
// it belongs to, and below the letters' meaning:
//
//	0000  35 00 07 00 09 ff ff ff ff                       |5........|
//	      .. .. .. .. .. aa aa aa aa
//	aa entity_id 5-8
//
// A byte shared by two fields carries one letter of each, in the order of the
// wire; one shared by more carries the first and "+". Places are bytes, or
// byte.bit with bits counted from the first on the wire. Bytes of no field, such
// as envelope and padding, are marked "..", undecoded ones "??".

const (
	rowBytes = 16
	letters  = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// claim is a field's claim to some bits of a record.
type claim struct {
	node     int // index in the tree
	off, len int // bits
}

// appendDump appends the bytes of a record, marked with its fields. The letters
// start again after the last one: the legend is in the order of the wire.
func (t *Text) appendDump(dst []byte, r *dissect.Record) []byte {
	t.claims(r)
	for row := 0; row < len(r.Raw); row += rowBytes {
		end := min(row+rowBytes, len(r.Raw))
		t.pass(row)
		dst = appendDigits(append(dst, indent...), uint64(row), 4)
		dst = append(dst, ' ')
		for i := row; i < end; i++ {
			dst = t.appendByte(append(dst, ' '), r, i)
		}
		for i := end; i < row+rowBytes; i++ {
			dst = append(dst, "   "...)
		}
		dst = t.appendPicture(append(dst, "  |"...), r, row, end)
		dst = append(append(dst, "|\n"...), indent...)
		dst = append(dst, "     "...)
		for i := row; i < end; i++ {
			dst = t.appendMark(append(dst, ' '), r, i)
		}
		dst = append(dst, '\n')
	}
	return t.appendLegend(dst, r)
}

// claims gathers the fields that have a place in the record, sorted by it.
func (t *Text) claims(r *dissect.Record) {
	t.legend, t.passed, t.path = t.legend[:0], 0, t.path[:0]
	for i := range r.Body.Nodes {
		n := &r.Body.Nodes[i]
		if bits := ownBits(&r.Body, i); bits > 0 && !dissect.Withheld(n) {
			t.legend = append(t.legend, claim{i, int(n.Off), bits})
		}
	}
	slices.SortStableFunc(t.legend, func(a, b claim) int { return a.off - b.off })
}

// ownBits returns how many bits of node i belong to none of its members: all, or
// those in front of the first, such as a count or a selector.
func ownBits(body *schema.Tree, i int) int {
	n := &body.Nodes[i]
	for k := i + 1; k < body.Next(i); k++ {
		if member := &body.Nodes[k]; member.Len > 0 {
			return int(member.Off - n.Off)
		}
	}
	return int(n.Len)
}

// pass leaves out of the search for claimants those that end before byte i.
func (t *Text) pass(i int) {
	for t.passed < len(t.legend) && t.legend[t.passed].off+t.legend[t.passed].len <= 8*i {
		t.passed++
	}
}

// claimants returns the indices in the legend of the first and the second field
// with bits in byte i, -1 for none, and how many fields there are.
func (t *Text) claimants(i int) (first, second, count int) {
	first, second = -1, -1
	for k := t.passed; k < len(t.legend); k++ {
		c := t.legend[k]
		if c.off >= 8*(i+1) {
			break
		}
		if c.off+c.len <= 8*i {
			continue
		}
		switch count++; count {
		case 1:
			first = k
		case 2:
			second = k
		}
	}
	return first, second, count
}

// fieldInk returns the colour of an entry of the legend.
func (t *Text) fieldInk(k int) ink {
	if k < 0 || len(t.ink.fields) == 0 {
		return ink{}
	}
	return t.ink.fields[k%len(t.ink.fields)]
}

func (t *Text) appendByte(dst []byte, r *dissect.Record, i int) []byte {
	first, _, _ := t.claimants(i)
	k := t.fieldInk(first)
	dst = append(dst, k.on...)
	if t.redact.Covers(i) {
		dst = append(dst, "**"...)
	} else {
		dst = appendHex(dst, r.Raw[i:i+1])
	}
	return append(dst, k.off...)
}

// appendPicture appends bytes as ASCII, "." for others.
func (t *Text) appendPicture(dst []byte, r *dissect.Record, from, to int) []byte {
	for i := from; i < to; i++ {
		switch c := r.Raw[i]; {
		case t.redact.Covers(i):
			dst = append(dst, '*')
		case c >= 0x20 && c < 0x7f:
			dst = append(dst, c)
		default:
			dst = append(dst, '.')
		}
	}
	return dst
}

func (t *Text) appendMark(dst []byte, r *dissect.Record, i int) []byte {
	first, second, count := t.claimants(i)
	switch {
	case count > 2:
		return append(dst, letter(first), '+')
	case count == 2:
		return append(dst, letter(first), letter(second))
	case count == 1:
		return append(dst, letter(first), letter(first))
	case i >= len(r.Raw)-len(r.Rest):
		return append(dst, "??"...)
	}
	return append(dst, ".."...)
}

func letter(k int) byte { return letters[k%len(letters)] }

// appendLegend appends what the letters mean, as many on a line as fit.
func (t *Text) appendLegend(dst []byte, r *dissect.Record) []byte {
	start := len(dst)
	for k, c := range t.legend {
		from := len(dst)
		dst = append(dst, "   "...)
		dst = append(append(append(dst, t.fieldInk(k).on...), letter(k)), t.fieldInk(k).off...)
		dst = t.path.append(append(dst, ' '), &r.Body, c.node)
		dst = appendRange(append(dst, ' '), c.off, c.len)
		dst = t.breakLine(dst, start, from, &start)
	}
	if n := len(r.Rest); n > 0 && n <= len(r.Raw) {
		from := len(dst)
		dst = appendRange(append(dst, "   ?? undecoded "...), 8*(len(r.Raw)-n), 8*n)
		dst = t.breakLine(dst, start, from, &start)
	}
	if len(dst) > start {
		dst = append(dst, '\n')
	}
	return dst
}

// breakLine moves the entry that begins at from to a line of its own when the
// line that began at start has become too long, or has just begun.
func (t *Text) breakLine(dst []byte, start, from int, next *int) []byte {
	if from > start && columns(dst[start:]) <= t.width {
		return dst
	}
	if from > start {
		dst = slices.Insert(dst, from, '\n')
		from++
		*next = from
	}
	return slices.Insert(dst, from, ' ')
}

// path is the way from the top of a tree down to a node: a waypoint for each level. The next
// node mostly stands a little further, so that no level is counted through again.
type path []waypoint

// waypoint is a node of a level, which begins at from, and its index there.
type waypoint struct{ from, node, index int }

// append appends the name of a node with the names above it, as errors have it:
// entities[1].position[0].
func (p *path) append(dst []byte, body *schema.Tree, node int) []byte {
	start, inArray, from := len(dst), false, 0
	for level := 0; ; level++ {
		if level == len(*p) {
			*p = append(*p, waypoint{from, from, 0})
		}
		s := &(*p)[level]
		if s.from != from || s.node > node {
			*s = waypoint{from, from, 0}
		}
		for body.Next(s.node) <= node {
			s.node = body.Next(s.node)
			s.index++
		}
		n := &body.Nodes[s.node]
		switch {
		case inArray:
			dst = append(appendInt(append(dst, '['), int64(s.index)), ']')
		case len(dst) > start:
			dst = appendEscaped(append(dst, '.'), nameOf(n))
		default:
			dst = appendEscaped(dst, nameOf(n))
		}
		if s.node == node {
			return dst
		}
		inArray, from = n.Kind == schema.Array, s.node+1
	}
}

// appendRange appends a range of bits: 5 or 5-8 for whole bytes, else
// byte.bit, as 9.0-10.1.
func appendRange(dst []byte, off, bits int) []byte {
	last := off + bits - 1
	whole := off&7 == 0 && bits&7 == 0
	dst = appendPlace(dst, off, whole)
	if whole && bits == 8 || bits == 1 {
		return dst
	}
	return appendPlace(append(dst, '-'), last, whole)
}

func appendPlace(dst []byte, bit int, whole bool) []byte {
	dst = appendInt(dst, int64(bit>>3))
	if whole {
		return dst
	}
	return append(dst, '.', byte('0'+bit&7))
}
