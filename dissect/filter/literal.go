package filter

import (
	"encoding/hex"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/expr-lang/expr/ast"
)

func isLiteral(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.StringNode, *ast.BoolNode, *ast.BytesNode:
		return true
	case *ast.UnaryNode:
		_, ok := number64(n)
		return ok
	}
	return false
}

// number64 returns the number that is written, with its sign.
func number64(n ast.Node) (value, bool) {
	switch n := n.(type) {
	case *ast.IntegerNode:
		return signedValue(int64(n.Value)), true
	case *ast.FloatNode:
		return floatValue(n.Value), true
	case *ast.UnaryNode:
		v, ok := number64(n.Node)
		if !ok || n.Operator != "-" && n.Operator != "+" {
			return v, false
		}
		if n.Operator == "-" && v.kind == float {
			v = floatValue(-v.float())
		} else if n.Operator == "-" {
			v.num = -v.num
		}
		return v, true
	}
	return value{}, false
}

// literal compiles a constant to what it stands for beside s.
func (c *compiler) literal(s *subject, n ast.Node, r relation) (*literal, error) {
	if v, ok := number64(n); ok {
		return c.numberLiteral(s, n, v)
	}
	switch n := n.(type) {
	case *ast.BoolNode:
		if s.kinds&(number|truth) == 0 {
			return nil, c.errorf(n, "%s is %v", s.path, s.kinds)
		}
		return &literal{kinds: truth, truth: n.Value}, nil
	case *ast.BytesNode:
		if s.kinds&(octets|text) == 0 {
			return nil, c.errorf(n, "%s is %v", s.path, s.kinds)
		}
		return &literal{kinds: octets | text, octets: n.Value, text: n.Value}, nil
	case *ast.StringNode:
		return c.wordLiteral(s, n, n.Value, r)
	case *ast.IdentifierNode:
		if c.isName(s, n) {
			return c.wordLiteral(s, n, n.Value, r)
		}
		return nil, c.notAValue(s, n, c.errorf(n, "want a value of %s here, not a field", s.path))
	}
	return nil, c.errorf(n, "want a value of %s here", s.path)
}

func (c *compiler) numberLiteral(s *subject, n ast.Node, v value) (*literal, error) {
	switch {
	case s.kinds&number != 0:
		return &literal{kinds: number, number: v}, nil
	case s.kinds&moment != 0:
		return &literal{kinds: moment, moment: secondsValue(v.float())}, nil
	}
	known := s.names(c.l)
	switch {
	case s.kinds&text != 0 && len(known) == 0:
		return nil, c.errorf(n, "%s is %v: put it in quotes", s.path, s.kinds)
	case c.l.fields.members[s.path] != nil && s.field == nil:
		return nil, c.errorf(n, "%s is %v%s; the field is fields.%[1]s", s.path, s.kinds, hintOrList("", known))
	}
	return nil, c.errorf(n, "%s is %v%s", s.path, s.kinds, hintOrList("", known))
}

func secondsValue(seconds float64) value {
	whole := math.Floor(seconds)
	if !(math.Abs(whole) < 1<<62) {
		whole = 0
	}
	return value{kind: moment, num: uint64(int64(whole)), nanos: uint32((seconds - whole) * 1e9)}
}

// wordLiteral compiles a text, or a name.
func (c *compiler) wordLiteral(s *subject, n ast.Node, word string, r relation) (*literal, error) {
	l := &literal{}
	known := s.names(c.l)
	named := slices.Contains(known, word)
	if s.kinds&text != 0 && (named || !closed(s, known) || strings.HasPrefix(word, "unknown(")) {
		l.kinds, l.text = l.kinds|text, []byte(word)
	}
	l.bytesOf(s.kinds, word)
	l.placeOf(s.kinds, word)
	if s.kinds&number != 0 {
		c.numberOf(l, s, word, named)
	}
	switch {
	case l.opcode && r != equal && r != different:
		return nil, c.errorf(n, "the name of an opcode is not less or more than another")
	case l.kinds != 0 || len(l.names) > 0:
		return l, nil
	case len(known) > 0:
		return nil, c.errorf(n, "%s has no value %q%s", s.path, word, hintOrList(word, known))
	case s.kinds == octets:
		return nil, c.errorf(n, "%s is bytes: want hexadecimal digits, such as \"0a1b\"", s.path)
	case s.kinds&address != 0:
		return nil, c.errorf(n, "%s is an address: want one such as \"10.0.0.2\", \"10.0.0.2:2627\" or \"10.0.0.0/8\"", s.path)
	case s.kinds&moment != 0:
		return nil, c.errorf(n, "%s is a time: want one such as \"2026-11-29T20:15:02Z\"", s.path)
	}
	return nil, c.errorf(n, "%s is %v, %q is none", s.path, s.kinds, word)
}

// closed reports whether the texts that s has are all known.
func closed(s *subject, known []string) bool { return len(known) > 0 && s.field == nil && !s.part }

func (c *compiler) numberOf(l *literal, s *subject, word string, isName bool) {
	if v, ok := parseNumber(word); ok && !isName {
		l.kinds, l.number = l.kinds|number, v
		return
	}
	if s.path == "opcode" && (isName || strings.HasPrefix(word, "unknown(")) {
		l.kinds, l.text, l.opcode = l.kinds|text, []byte(word), true
		return
	}
	for _, e := range s.enums {
		if v, ok := e.ValueOf(word); ok {
			l.names = append(l.names, named{enum: e, num: v})
		}
	}
	for _, f := range s.flags {
		for _, b := range f.Bits {
			if b.Name == word {
				l.names = append(l.names, named{flags: f, num: (1<<uint(b.High-b.Low+1) - 1) << uint(b.Low)})
			}
		}
	}
}

// bytesOf reads a word as hexadecimal digits, as a GUID and as an IPv4 address.
func (l *literal) bytesOf(kinds kind, word string) {
	digits := strings.NewReplacer(" ", "", ":", "", "-", "", "{", "", "}", "").Replace(word)
	b, err := hex.DecodeString(digits)
	if kinds&octets != 0 && err == nil {
		l.kinds, l.octets = l.kinds|octets, b
	}
	if kinds&guid != 0 && err == nil && len(b) == 16 {
		slices.Reverse(b[:4]) // the first three groups are little-endian on the wire
		slices.Reverse(b[4:6])
		slices.Reverse(b[6:8])
		l.kinds, l.guid = l.kinds|guid, b
	}
	if a, err := netip.ParseAddr(word); kinds&ipv4 != 0 && err == nil && a.Is4() {
		for _, part := range a.As4() {
			l.ipv4 = l.ipv4<<8 | uint64(part)
		}
		l.kinds |= ipv4
	}
}

// times are how a time may be written, in UTC unless it says otherwise.
var times = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"}

// placeOf reads a word as an address, with or without a port, as a network, and as a
// time.
func (l *literal) placeOf(kinds kind, word string) {
	if kinds&address != 0 {
		if p, err := netip.ParseAddrPort(word); err == nil {
			l.net, l.port, l.kinds = hostOf(p.Addr()), p.Port(), l.kinds|address
		} else if a, err := netip.ParseAddr(word); err == nil {
			l.net, l.kinds = hostOf(a), l.kinds|address
		} else if p, err := netip.ParsePrefix(word); err == nil {
			l.net, l.kinds = p, l.kinds|address
		}
	}
	for _, layout := range times {
		if t, err := time.Parse(layout, word); kinds&moment != 0 && err == nil {
			l.kinds, l.moment = l.kinds|moment, momentValue(t)
			return
		}
	}
}

func hostOf(a netip.Addr) netip.Prefix {
	a = a.WithZone("").Unmap()
	return netip.PrefixFrom(a, a.BitLen())
}
