package dissect

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"

	"opscope/schema"
)

// Secrets are the values of a session that no output may show: what a field held that
// the schema calls secret, and what a protocol knows to be one. A value is found again
// wherever its bytes come back, as they are, and as hexadecimal, base64 or escaped text.
//
// The zero Secrets has none. A sink that writes a record later than another was read
// knows the values of both.
type Secrets struct {
	// Anywhere says that bytes which begin no frame may hold a secret, too, as when the
	// stream lost its framing inside of one.
	Anywhere bool
	// Most is how many values are kept; the oldest makes room. 0 is the default.
	Most int

	*known // nil as long as there are no values
	now    *Secrets
}

// known is values, and how they are found. It does not change: whoever learns another value
// makes it anew.
type known struct {
	values   [][]byte // in the order in which they came
	forms    [][]byte // of all values, what to look for
	shortest int
	search
}

// search is what a search looks up, for forms cut to the length of the shortest.
type search struct {
	// pairs is which two bytes the forms have anywhere. It is small, and most records have
	// none of them where a form must.
	pairs [shiftSize / 64]uint64
	// shift is how far a search may move on by the two bytes it sees, as Wu and Manber do it.
	shift [shiftSize]uint8
}

const (
	// leastSecret is the least length of a value that is looked for: shorter ones are in
	// many a record by chance. Their fields are masked all the same.
	leastSecret = 4
	// maxSecrets is how many values a session keeps; the oldest makes room. A session has
	// two tokens or one password.
	maxSecrets = 64
	// maxShift bounds the length of the forms that the search compares at first.
	maxShift  = 64
	shiftSize = 1 << 11
)

// Span is a range of bytes: from From, up to and without To.
type Span struct{ From, To int }

// Now returns what is known by now, which learns nothing more; nil for nil.
func (s *Secrets) Now() *Secrets {
	if s == nil {
		return nil
	}
	if n := s.now; n == nil || n.known != s.known || n.Anywhere != s.Anywhere {
		s.now = &Secrets{Anywhere: s.Anywhere, Most: s.Most, known: s.known}
	}
	return s.now
}

// Empty reports whether there is nothing to look for.
func (s *Secrets) Empty() bool { return s == nil || s.known == nil }

// Values returns the values, in the order in which they came, borrowed.
func (s *Secrets) Values() [][]byte {
	if s.Empty() {
		return nil
	}
	return s.values
}

// Add takes a value, which is copied. It reports whether another one had to make room
// for it.
func (s *Secrets) Add(value []byte) (evicted bool) {
	values := s.Values()
	if len(value) < leastSecret || slices.ContainsFunc(values, func(v []byte) bool { return bytes.Equal(v, value) }) {
		return false
	}
	if evicted = len(values) >= cmp.Or(s.Most, maxSecrets); evicted {
		values = values[1:]
	}
	s.known = compile(append(slices.Clip(values), bytes.Clone(value)))
	return evicted
}

// Learn takes the values of a record's fields that the schema calls secret. It reports
// whether others had to make room.
func (s *Secrets) Learn(t *schema.Tree) (evicted bool) {
	var scratch []byte
	for i := 0; i < len(t.Nodes); {
		n := &t.Nodes[i]
		if n.Field == nil || n.Field.Redact != schema.Secret {
			i++
			continue
		}
		for end := t.Next(i); i < end; i++ {
			switch n := &t.Nodes[i]; n.Kind {
			case schema.Text, schema.Bytes, schema.String:
				scratch = content(t.AppendBytes(scratch[:0], i), n)
				evicted = s.Add(scratch) || evicted
			}
		}
	}
	return evicted
}

// content cuts the bytes of a text at the NUL that ends it.
func content(b []byte, n *schema.Node) []byte {
	if end := bytes.IndexByte(b, 0); end >= 0 && n.Kind == schema.Text && n.Field.Encoding != schema.UTF8Exact {
		return b[:end]
	}
	return b
}

// compile makes the forms of values, and the table of the search.
func compile(values [][]byte) *known {
	k := &known{values: values, shortest: maxShift}
	for _, v := range values {
		k.forms = appendForms(k.forms, v)
	}
	for _, f := range k.forms {
		k.shortest = min(k.shortest, len(f))
	}
	last := k.shortest - 2 // where the last pair of a form's head begins
	for i := range k.shift {
		k.shift[i] = uint8(last + 1)
	}
	for _, f := range k.forms {
		for at := range last + 1 {
			h := pair(f[at], f[at+1])
			k.shift[h] = min(k.shift[h], uint8(last-at))
			k.pairs[h>>6] |= 1 << (h & 63)
		}
	}
	return k
}

func pair(a, b byte) int { return (int(a)<<3 ^ int(b)) & (shiftSize - 1) }

// appendForms appends what a value may look like.
func appendForms(forms [][]byte, v []byte) [][]byte {
	add := func(f []byte) {
		if len(f) >= leastSecret && !slices.ContainsFunc(forms, func(o []byte) bool { return bytes.Equal(o, f) }) {
			forms = append(forms, f)
		}
	}
	add(v)
	digits := hex.AppendEncode(nil, v)
	add(digits)
	add(bytes.ToUpper(digits))
	for lead := range 3 {
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			add(base64Core(e, v, lead))
		}
	}
	for _, quoted := range []string{strconv.Quote(string(v)), strconv.QuoteToASCII(string(v))} {
		add([]byte(quoted[1 : len(quoted)-1]))
	}
	return forms
}

// base64Core returns the digits that are those of v alone, where so many bytes stand in
// front of it in their group of three.
func base64Core(e *base64.Encoding, v []byte, lead int) []byte {
	all := e.AppendEncode(nil, append(make([]byte, lead, lead+len(v)), v...))
	const digit = 6 // bits
	first, end := (8*lead+digit-1)/digit, 8*(lead+len(v))/digit
	return all[first:end]
}

// AppendSpans appends where the values are in data, in the order of their ends' search;
// spans may overlap.
func (s *Secrets) AppendSpans(dst []Span, data []byte) []Span {
	if s.Empty() {
		return dst
	}
	for at := 0; ; at++ {
		var n int
		if at, n = find(s, data, at); n == 0 {
			return dst
		}
		dst = append(dst, Span{at, at + n})
	}
}

// AppendEdges appends the part of a value that data ends or begins with, as data cut
// out of a longer run does.
func (s *Secrets) AppendEdges(dst []Span, data []byte) []Span {
	if s.Empty() {
		return dst
	}
	head, tail := 0, 0
	for _, f := range s.forms {
		for n := min(len(f)-1, len(data)); n >= leastSecret && n > min(head, tail); n-- {
			if n > tail && bytes.HasSuffix(data, f[:n]) {
				tail = n
			}
			if n > head && bytes.HasPrefix(data, f[len(f)-n:]) {
				head = n
			}
		}
	}
	if head > 0 {
		dst = append(dst, Span{0, head})
	}
	if tail > 0 {
		dst = append(dst, Span{len(data) - tail, len(data)})
	}
	return dst
}

// Within reports whether a text holds one of the values.
func (s *Secrets) Within(text string) bool {
	if s.Empty() {
		return false
	}
	_, n := find(s, text, 0)
	return n > 0
}

// WithinBytes is Within for bytes.
func (s *Secrets) WithinBytes(data []byte) bool {
	if s.Empty() {
		return false
	}
	_, n := find(s, data, 0)
	return n > 0
}

// find returns where the first value from an index on is, and its length; 0 without one.
func find[T string | []byte](s *Secrets, data T, from int) (at, n int) {
	last, shift, pairs := s.shortest-2, &s.shift, &s.pairs
	for some := from + last; some+1 < len(data); some += last + 1 { // a form covers one of these pairs
		if h := pair(data[some], data[some+1]); pairs[h>>6]>>(h&63)&1 == 0 {
			continue
		}
		for i := some; i <= some+last && i+1 < len(data); { // where the head of that form ends
			if step := int(shift[pair(data[i], data[i+1])]); step > 0 {
				i += step
				continue
			}
			if n := longest(s.forms, data[i-last:]); n > 0 {
				return i - last, n
			}
			i++
		}
	}
	return 0, 0
}

// longest returns the length of the longest form that data begins with, 0 for none.
func longest[T string | []byte](forms [][]byte, data T) (n int) {
	for _, f := range forms {
		if len(f) > n && len(f) <= len(data) && string(data[:len(f)]) == string(f) {
			n = len(f)
		}
	}
	return n
}
