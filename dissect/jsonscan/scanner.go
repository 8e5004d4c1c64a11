// Package jsonscan reads a line of NDJSON key by key, in place: for its two readers, the
// one that makes records of it again and the one that writes down what was said.
package jsonscan

import (
	"iter"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how deep values may nest; the notation allows far less.
const maxDepth = 64

// Scanner is a cursor over one JSON value. The first failure sticks: reads
// after it return nothing, so that a list of keys is checked once, at its end.
type Scanner struct {
	data  []byte
	pos   int
	depth int
	want  string // of the first failure, "" while there is none
	text  []byte // the last string with escapes, without them
}

// Reset has s read data, which is not kept longer than until the next Reset.
func (s *Scanner) Reset(data []byte) { *s = Scanner{data: data, text: s.text[:0]} }

// Failed reports whether something was not as it was wanted.
func (s *Scanner) Failed() bool { return s.want != "" }

// Failure returns of the first failure at which byte it was, what was wanted there, and
// what there was.
func (s *Scanner) Failure() (offset int, want, got string) {
	if s.pos >= len(s.data) {
		return s.pos, s.want, "the end"
	}
	return s.pos, s.want, strconv.QuoteToASCII(string(s.data[s.pos : s.pos+1]))
}

// Fail is a failure to find what is wanted at this place, if it is the first.
func (s *Scanner) Fail(want string) {
	if s.want == "" {
		s.want = want
	}
}

// Peek returns the next byte that is no white space, 0 at the end.
func (s *Scanner) Peek() byte {
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
func (s *Scanner) take(c byte) bool {
	if s.Failed() || s.Peek() != c || c == 0 {
		return false
	}
	s.pos++
	return true
}

// Word reads a literal, if it comes next.
func (s *Scanner) Word(w string) bool {
	if s.Failed() || s.Peek() != w[0] || len(s.data)-s.pos < len(w) || string(s.data[s.pos:s.pos+len(w)]) != w {
		return false
	}
	s.pos += len(w)
	return true
}

// End fails unless nothing is left.
func (s *Scanner) End() {
	if s.Failed() {
		return // where it is
	}
	if s.Peek(); s.pos < len(s.data) {
		s.Fail("the end of the line")
	}
}

// items yields once for each item between brackets; the loop reads it.
func (s *Scanner) items(open, shut byte) iter.Seq[int] {
	return func(yield func(int) bool) {
		if !s.take(open) {
			s.Fail(string(rune(open)))
			return
		}
		if s.depth++; s.depth > maxDepth {
			s.Fail("less depth")
			return
		}
		for i := 0; !s.Failed() && !s.take(shut); i++ {
			if i > 0 && !s.take(',') {
				s.Fail(`"," or "` + string(rune(shut)) + `"`)
				return
			}
			if !yield(i) {
				return
			}
		}
		s.depth--
	}
}

// Members yields the keys of an object, each valid until the next read; the
// loop reads the values.
func (s *Scanner) Members() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for range s.items('{', '}') {
			key := s.Text()
			if !s.Failed() && !s.take(':') {
				s.Fail(`":"`)
			}
			if s.Failed() || !yield(key) {
				return
			}
		}
	}
}

// Elements yields the indices of the elements of an array.
func (s *Scanner) Elements() iter.Seq[int] { return s.items('[', ']') }

// Null reads null, if it comes next.
func (s *Scanner) Null() bool { return s.Word("null") }

// Integer reads an integer.
func (s *Scanner) Integer() int64 {
	start := s.pos
	v, err := strconv.ParseInt(string(s.Number()), 10, 64)
	if err != nil && !s.Failed() {
		s.pos = start
		s.Fail("an integer")
	}
	return v
}

// Number reads the text of a number.
func (s *Scanner) Number() []byte {
	s.Peek()
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
	if s.Failed() {
		s.pos = start
		return nil
	}
	return s.data[start:s.pos]
}

// skip reads one byte, if it is one of these.
func (s *Scanner) skip(any string) bool {
	for i := 0; i < len(any) && s.pos < len(s.data); i++ {
		if s.data[s.pos] == any[i] {
			s.pos++
			return true
		}
	}
	return false
}

func (s *Scanner) digits() {
	end := s.pos
	for end < len(s.data) && s.data[end]-'0' <= 9 {
		end++
	}
	if end == s.pos {
		s.Fail("a number")
	}
	s.pos = end
}

// Skip reads a value of any kind.
func (s *Scanner) Skip() {
	switch s.Peek() {
	case '{':
		for range s.Members() {
			s.Skip()
		}
	case '[':
		for range s.Elements() {
			s.Skip()
		}
	case '"':
		s.Text()
	default:
		s.Literal()
	}
}

// Literal reads a number, true, false or null, and returns its text, which is part of the
// data.
func (s *Scanner) Literal() []byte {
	c := s.Peek()
	start := s.pos
	switch {
	case c == 't' && s.Word("true"), c == 'f' && s.Word("false"), c == 'n' && s.Null():
		return s.data[start:s.pos]
	}
	return s.Number()
}

// stands says of each byte whether it stands for itself in a string, as most do.
var stands = func() (table [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()

// Text reads a string. The result is valid until the next call; without an escape, and
// without a letter that is not ASCII, it is part of the data.
func (s *Scanner) Text() []byte {
	if !s.take('"') {
		s.Fail("a string")
		return nil
	}
	end := s.pos
	for end < len(s.data) && stands[s.data[end]] {
		end++
	}
	plain := s.data[s.pos:end]
	s.pos = end
	if end < len(s.data) && s.data[end] == '"' {
		s.pos++
		return plain
	}
	s.text = append(s.text[:0], plain...)
	return s.restOfText()
}

// restOfText reads on where a byte may not stand for itself.
func (s *Scanner) restOfText() []byte {
	for s.pos < len(s.data) {
		c := s.data[s.pos]
		switch {
		case c == '"':
			s.pos++
			return s.text
		case c == '\\':
			s.escape()
		case c < 0x20:
			s.Fail("an escape instead of a control byte")
		case c < utf8.RuneSelf:
			s.text = append(s.text, c)
			s.pos++
		default:
			r, size := utf8.DecodeRune(s.data[s.pos:])
			s.text = utf8.AppendRune(s.text, r)
			s.pos += size
		}
		if s.Failed() {
			return nil
		}
	}
	s.Fail("the end of a string")
	return nil
}

// escape reads what follows a backslash.
func (s *Scanner) escape() {
	if s.pos+1 >= len(s.data) {
		s.Fail("an escape")
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
		s.Fail("an escape")
		return
	}
	s.text = append(s.text, c)
	s.pos += 2
}

// unit reads \u and four digits.
func (s *Scanner) unit() rune {
	const size = len(`\u0000`)
	if len(s.data)-s.pos < size {
		s.Fail("four hexadecimal digits")
		return 0
	}
	v, err := strconv.ParseUint(string(s.data[s.pos+2:s.pos+size]), 16, 16)
	if err != nil {
		s.Fail("four hexadecimal digits")
		return 0
	}
	s.pos += size
	return rune(v)
}
