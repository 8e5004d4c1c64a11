package filter

import (
	"bytes"
	"cmp"
	"math"
	"math/bits"
	"net/netip"
	"strconv"

	"opscope/schema"
)

// kind is a set of kinds of values: one for a value, and for a name those that it may
// have, which differ from packet to packet.
type kind uint16

// The kinds.
const (
	signed kind = 1 << iota
	unsigned
	float
	text
	octets
	guid
	ipv4
	address
	moment
	group  // a struct, or an object of keys: it is there or not
	truth  // true or false
	masked // a secret: there, and nobody may compare it
)

const (
	number   = signed | unsigned | float
	readable = number | text | octets | guid | ipv4 | address | moment | truth
)

var kindWords = []struct {
	kind kind
	word string
}{
	{number, "a number"}, {text, "a text"}, {octets, "bytes"}, {guid, "a GUID"}, {ipv4, "an IPv4 address"},
	{address, "an address"}, {moment, "a time"}, {truth, "true or false"}, {group, "a struct"}, {masked, "masked"},
}

// String names the kinds: "a number or a text".
func (k kind) String() string {
	var list string
	for _, w := range kindWords {
		if k&w.kind == 0 {
			continue
		}
		if list != "" {
			list += " or "
		}
		list += w.word
	}
	return list
}

// value is one value of a record. It is valid during Match: text aliases the record
// or the scratch of the filter.
type value struct {
	kind  kind
	node  int32  // its index in the tree, or among the notes
	num   uint64 // an integer in two's complement, the bits of a float, the seconds of a time
	nanos uint32 // of a time, beyond its seconds
	text  []byte // of a text, of bytes; the name of an opcode
	field *schema.Field
	addr  netip.AddrPort
}

func signedValue(v int64) value  { return value{kind: signed, num: uint64(v)} }
func floatValue(v float64) value { return value{kind: float, num: math.Float64bits(v)} }
func (v *value) negative() bool  { return v.kind == signed && int64(v.num) < 0 }
func (v *value) single() bool    { return v.kind&number != 0 && v.field != nil && v.field.Single }
func (v *value) integer() bool   { return v.kind&(signed|unsigned) != 0 }
func (v *value) small() bool     { return v.kind == signed || v.kind == unsigned && v.num <= math.MaxInt64 }

func (v *value) float() float64 {
	switch v.kind {
	case float:
		return math.Float64frombits(v.num)
	case signed:
		return float64(int64(v.num))
	}
	return float64(v.num)
}

// compareNumbers returns how a stands to b, and false for what has no order: NaN. Beside a
// float of 32 bits both count as such, so that 0.1 is what the record shows as 0.1.
func compareNumbers(a, b *value) (int, bool) {
	if a.integer() && b.integer() {
		switch {
		case a.negative() != b.negative():
			return cmp.Compare(b2i(b.negative()), b2i(a.negative())), true
		case a.negative():
			return cmp.Compare(int64(a.num), int64(b.num)), true
		}
		return cmp.Compare(a.num, b.num), true
	}
	x, y := a.float(), b.float()
	if a.single() || b.single() {
		x, y = float64(float32(x)), float64(float32(y))
	}
	return cmp.Compare(x, y), x == x && y == y
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// compareValues returns how a stands to b, and false for two that cannot be compared.
func compareValues(a, b *value) (int, bool) {
	switch {
	case a.kind&number != 0 && b.kind&number != 0:
		return compareNumbers(a, b)
	case a.kind != b.kind:
		return 0, false
	case a.kind == text || a.kind == octets || a.kind == guid:
		return bytes.Compare(a.text, b.text), true
	case a.kind == ipv4 || a.kind == truth:
		return cmp.Compare(a.num, b.num), true
	case a.kind == moment:
		return compareMoments(a, b), true
	case a.kind == address:
		return a.addr.Compare(b.addr), true
	}
	return 0, false
}

func compareMoments(a, b *value) int {
	if c := cmp.Compare(int64(a.num), int64(b.num)); c != 0 {
		return c
	}
	return cmp.Compare(a.nanos, b.nanos)
}

// literal is what is written in a filter, as each kind of value that it can stand for.
type literal struct {
	kinds kind // those that it stands for

	number value
	truth  bool
	text   []byte
	octets []byte
	guid   []byte
	ipv4   uint64
	moment value
	net    netip.Prefix
	port   uint16  // 0 for any
	names  []named // of enums and flags
	opcode bool    // text is the name of an opcode
}

// named is the number that a name stands for in one enum or flags.
type named struct {
	enum  *schema.Enum
	flags *schema.Flags
	num   uint64
}

// compare returns how v stands to l, and false where the two cannot be compared.
// Where only equality has a meaning any other value is greater.
func (l *literal) compare(v *value) (int, bool) {
	switch v.kind {
	case signed, unsigned, float:
		return l.compareNumber(v)
	case text:
		return bytes.Compare(v.text, l.text), l.kinds&text != 0
	case octets:
		return bytes.Compare(v.text, l.octets), l.kinds&octets != 0
	case guid:
		return bytes.Compare(v.text, l.guid), l.kinds&guid != 0
	case ipv4:
		return cmp.Compare(v.num, l.ipv4), l.kinds&ipv4 != 0
	case truth:
		return unequal((v.num != 0) == l.truth), l.kinds&truth != 0
	case moment:
		return compareMoments(v, &l.moment), l.kinds&moment != 0
	case address:
		same := l.net.Contains(v.addr.Addr().WithZone("").Unmap()) && (l.port == 0 || l.port == v.addr.Port())
		return unequal(same), l.kinds&address != 0
	}
	return 0, false
}

func unequal(same bool) int { return b2i(!same) }

func (l *literal) compareNumber(v *value) (int, bool) {
	switch {
	case l.opcode:
		return bytes.Compare(v.text, l.text), true
	case l.kinds&truth != 0:
		return unequal((v.num != 0) == l.truth), true
	case l.kinds&number != 0:
		return compareNumbers(v, &l.number)
	}
	known := false
	for i := range l.names {
		n := &l.names[i]
		switch {
		case v.field == nil || v.field.Enum == nil && v.field.Flags == nil: // read back without a schema
			if known = true; n.num == v.num {
				return 0, true
			}
		case n.enum != nil && n.enum == v.field.Enum || n.flags != nil && n.flags == v.field.Flags:
			return compareNumbers(v, &value{kind: v.kind, num: n.num})
		}
	}
	return 1, known
}

// relation is an operator that compares.
type relation uint8

const (
	equal relation = iota
	different
	less
	atMost
	greater
	atLeast
)

var relations = map[string]relation{"==": equal, "!=": different, "<": less, "<=": atMost, ">": greater, ">=": atLeast}

// flipped returns the relation for the two sides exchanged.
func (r relation) flipped() relation {
	return [...]relation{equal, different, greater, atLeast, less, atMost}[r]
}

// of reports whether r holds for what a comparison returned.
func (r relation) of(c int) bool {
	switch r {
	case equal:
		return c == 0
	case different:
		return c != 0
	case less:
		return c < 0
	case atMost:
		return c <= 0
	case greater:
		return c > 0
	}
	return c >= 0
}

// parseInteger reads an integer in decimal as NDJSON writes one: without a plus, and
// without a zero in front. It allocates nothing.
func parseInteger(s []byte) (value, bool) {
	digits, negative := bytes.CutPrefix(s, []byte("-"))
	if len(digits) == 0 || len(digits) > 1 && digits[0] == '0' {
		return value{}, false
	}
	n := uint64(0)
	for _, c := range digits {
		high, low := bits.Mul64(n, 10)
		sum, carry := bits.Add64(low, uint64(c-'0'), 0)
		if c < '0' || c > '9' || high != 0 || carry != 0 {
			return value{}, false
		}
		n = sum
	}
	switch {
	case !negative:
		return value{kind: unsigned, num: n}, true
	case n == 0 || n > 1<<63:
		return value{}, false
	}
	return signedValue(int64(-n)), true
}

// parseNumber reads a number in decimal or with 0x.
func parseNumber(s string) (value, bool) {
	if v, err := strconv.ParseUint(s, 0, 64); err == nil && (len(s) == 1 || s[0] != '0' || s[1] == 'x' || s[1] == 'X') {
		return value{kind: unsigned, num: v}, true
	}
	if v, err := strconv.ParseUint(s, 10, 64); err == nil {
		return value{kind: unsigned, num: v}, true
	}
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		return signedValue(v), true
	}
	if v, err := strconv.ParseFloat(s, 64); err == nil {
		return floatValue(v), true
	}
	return value{}, false
}
