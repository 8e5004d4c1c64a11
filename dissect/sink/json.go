package sink

import (
	"iter"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how deep values may nest; the notation allows far less.
const maxDepth = 64

// scanner is a cursor over one JSON value. The first failure sticks: reads
// after it return nothing, so that a list of keys is checked once, at its end.
type scanner struct {
	data  []byte
	pos   int
	depth int
	want  string // of the first failure, "" while there is none
	text  []byte // the last string, unescaped
}

func (s *scanner) reset(data []byte) { *s = scanner{data: data, text: s.text[:0]} }

func (s *scanner) failed() bool { return s.want != "" }

func (s *scanner) fail(want string) {
	if s.want == "" {
		s.want = want
	}
}

// peek returns the next byte that is no white space, 0 at the end.
func (s *scanner) peek() byte {
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// take reads c, if it comes next.
func (s *scanner) take(c byte) bool {
	if s.failed() || s.peek() != c || c == 0 {
		return false
	}
	s.pos++
	return true
}

// word reads a literal, if it comes next.
func (s *scanner) word(w string) bool {
	if s.failed() || s.peek() != w[0] || len(s.data)-s.pos < len(w) || string(s.data[s.pos:s.pos+len(w)]) != w {
		return false
	}
	s.pos += len(w)
	return true
}

// end fails unless nothing is left.
func (s *scanner) end() {
	if s.peek(); s.pos < len(s.data) {
		s.fail("the end of the line")
	}
}

// items yields once for each item between brackets; the loop reads it.
func (s *scanner) items(open, shut byte) iter.Seq[int] {
	return func(yield func(int) bool) {
		if !s.take(open) {
			s.fail(string(rune(open)))
			return
		}
		if s.depth++; s.depth > maxDepth {
			s.fail("less depth")
			return
		}
		for i := 0; !s.failed() && !s.take(shut); i++ {
			if i > 0 && !s.take(',') {
				s.fail(`"," or "` + string(rune(shut)) + `"`)
				return
			}
			if !yield(i) {
				return
			}
		}
		s.depth--
	}
}

// members yields the keys of an object, each valid until the next read; the
// loop reads the values.
func (s *scanner) members() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for range s.items('{', '}') {
			key := s.string()
			if !s.failed() && !s.take(':') {
				s.fail(`":"`)
			}
			if s.failed() || !yield(key) {
				return
			}
		}
	}
}

// elements yields the indices of the elements of an array.
func (s *scanner) elements() iter.Seq[int] { return s.items('[', ']') }

// null reads null, if it comes next.
func (s *scanner) null() bool { return s.word("null") }

// integer reads an integer.
func (s *scanner) integer() int64 {
	start := s.pos
	v, err := strconv.ParseInt(string(s.number()), 10, 64)
	if err != nil && !s.failed() {
		s.pos = start
		s.fail("an integer")
	}
	return v
}

// number reads the text of a number.
func (s *scanner) number() []byte {
	s.peek()
	start := s.pos
	s.skip("-")
	if !s.skip("0") {
		s.digits()
	}
	if s.skip(".") {
		s.digits()
	}
	if s.skip("eE") {
		s.skip("+-")
		s.digits()
	}
	if s.failed() {
		s.pos = start
		return nil
	}
	return s.data[start:s.pos]
}

// skip reads one byte, if it is one of these.
func (s *scanner) skip(any string) bool {
	for i := 0; i < len(any) && s.pos < len(s.data); i++ {
		if s.data[s.pos] == any[i] {
			s.pos++
			return true
		}
	}
	return false
}

func (s *scanner) digits() {
	start := s.pos
	for s.pos < len(s.data) && s.data[s.pos]-'0' <= 9 {
		s.pos++
	}
	if s.pos == start {
		s.fail("a number")
	}
}

// string reads a string. The result is valid until the next call.
func (s *scanner) string() []byte {
	s.text = s.text[:0]
	if !s.take('"') {
		s.fail("a string")
		return nil
	}
	for s.pos < len(s.data) {
		c := s.data[s.pos]
		switch {
		case c == '"':
			s.pos++
			return s.text
		case c == '\\':
			s.escape()
		case c < 0x20:
			s.fail("an escape instead of a control byte")
		case c < utf8.RuneSelf:
			s.text = append(s.text, c)
			s.pos++
		default:
			r, size := utf8.DecodeRune(s.data[s.pos:])
			s.text = utf8.AppendRune(s.text, r)
			s.pos += size
		}
		if s.failed() {
			return nil
		}
	}
	s.fail("the end of a string")
	return nil
}

// escape reads what follows a backslash.
func (s *scanner) escape() {
	if s.pos+1 >= len(s.data) {
		s.fail("an escape")
		return
	}
	c := s.data[s.pos+1]
	switch c {
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case '"', '\\', '/':
	case 'u':
		r := s.unit()
		if low := s.pos; utf16.IsSurrogate(r) && s.skip(`\`) && s.pos < len(s.data) && s.data[s.pos] == 'u' {
			s.pos = low
			if both := utf16.DecodeRune(r, s.unit()); both != utf8.RuneError {
				r = both
			} else {
				s.pos = low
			}
		} else if utf16.IsSurrogate(r) {
			s.pos = low
		}
		s.text = utf8.AppendRune(s.text, r)
		return
	default:
		s.fail("an escape")
		return
	}
	s.text = append(s.text, c)
	s.pos += 2
}

// unit reads \u and four digits.
func (s *scanner) unit() rune {
	const size = len(`\u0000`)
	if len(s.data)-s.pos < size {
		s.fail("four hexadecimal digits")
		return 0
	}
	v, err := strconv.ParseUint(string(s.data[s.pos+2:s.pos+size]), 16, 16)
	if err != nil {
		s.fail("four hexadecimal digits")
		return 0
	}
	s.pos += size
	return rune(v)
}
