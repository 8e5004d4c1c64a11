package sink

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// Text off the wire may try to drive the terminal: ESC and C1 sequences erase
// and retitle, bidirectional controls and zero-width characters make a line
// read as something else. Both outputs write such characters as escapes, so
// that what is printed is what was sent.

const (
	lowerDigits = "0123456789abcdef"
	upperDigits = "0123456789ABCDEF"
)

// unprintable reports whether a rune has no picture of its own: C0, DEL and C1
// controls, format characters (bidirectional, zero-width, tags), and the line
// and paragraph separators.
func unprintable(r rune) bool {
	switch {
	case r < 0x20:
		return true
	case r < 0x7f:
		return false
	case r < 0xa0:
		return true
	}
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// plain says of each byte whether it stands for itself in both outputs.
var plain = func() (table [256]bool) {
	for c := 0x20; c < 0x7f; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()

// plainRun returns how many bytes at the start of s stand for themselves.
func plainRun[T string | []byte](s T) int {
	n := 0
	for n < len(s) && plain[s[n]] {
		n++
	}
	return n
}

// decode returns the first rune of s and its length; utf8.RuneError with length
// 1 for a byte that is no UTF-8.
func decode[T string | []byte](s T) (rune, int) {
	var b [utf8.UTFMax]byte
	return utf8.DecodeRune(b[:copy(b[:], s)])
}

// appendEscaped appends s for a person to read: \n \r \t \" \\, \x1b for other
// control bytes and for bytes that are no UTF-8, \u202e and \U000e0001 for
// runes. The result is valid UTF-8 without anything a terminal obeys.
func appendEscaped[T string | []byte](dst []byte, s T) []byte {
	dst, _, _ = appendEscapedUpTo(dst, s, len(s)*maxEscape)
	return dst
}

// Escape returns a message with everything escaped that a terminal obeys, but for the
// ends of its lines.
func Escape(message string) string {
	var dst []byte
	for i := 0; i < len(message); {
		r, size := decode(message[i:])
		if r == '\n' || r == '"' || r == '\\' {
			dst = append(dst, byte(r))
		} else {
			dst = appendEscapedRune(dst, r, size, message[i])
		}
		i += size
	}
	return string(dst)
}

// maxEscape is the longest escape, \U000e0001, in columns.
const maxEscape = 10

// appendEscapedUpTo is appendEscaped that stops before it passes the given
// number of columns. It returns how many bytes of s it wrote, in how many columns.
func appendEscapedUpTo[T string | []byte](dst []byte, s T, limit int) (result []byte, wrote, used int) {
	i := 0
	for i < len(s) {
		if n := plainRun(s[i:]); n > 0 {
			n = min(n, limit-used)
			dst = append(dst, s[i:i+n]...)
			i += n
			if used += n; used == limit {
				break
			}
			continue
		}
		start := len(dst)
		r, size := decode(s[i:])
		dst = appendEscapedRune(dst, r, size, s[i])
		width := columns(dst[start:])
		if used+width > limit {
			return dst[:start], i, used
		}
		used += width
		i += size
	}
	return dst, i, used
}

// appendEscapedRune appends a rune that was size bytes long and began with c.
func appendEscapedRune(dst []byte, r rune, size int, c byte) []byte {
	switch {
	case r == utf8.RuneError && size == 1:
		return append(dst, '\\', 'x', lowerDigits[c>>4], lowerDigits[c&15])
	case r == '\n':
		return append(dst, `\n`...)
	case r == '\r':
		return append(dst, `\r`...)
	case r == '\t':
		return append(dst, `\t`...)
	case r == '"' || r == '\\':
		return append(dst, '\\', byte(r))
	case !unprintable(r):
		return utf8.AppendRune(dst, r)
	case r < 0x80:
		return append(dst, '\\', 'x', lowerDigits[r>>4], lowerDigits[r&15])
	case r > 0xffff:
		return appendDigits(append(dst, '\\', 'U'), uint64(r), 8)
	}
	return appendDigits(append(dst, '\\', 'u'), uint64(r), 4)
}

// appendDigits appends the low n hexadecimal digits of v.
func appendDigits(dst []byte, v uint64, n int) []byte {
	for n--; n >= 0; n-- {
		dst = append(dst, lowerDigits[v>>uint(4*n)&15])
	}
	return dst
}

// appendString appends s as a JSON string. It is valid UTF-8 whatever s is:
// bytes that are no UTF-8 become U+FFFD, which is always written as an escape,
// and everything unprintable is written as \u escapes.
func appendString[T string | []byte](dst []byte, s T) []byte {
	n := plainRun(s)
	dst = append(append(dst, '"'), s[:n]...)
	for i := n; i < len(s); {
		if n := plainRun(s[i:]); n > 0 {
			dst = append(dst, s[i:i+n]...)
			i += n
			continue
		}
		r, size := decode(s[i:])
		i += size
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r != utf8.RuneError && !unprintable(r):
			dst = utf8.AppendRune(dst, r)
		case r > 0xffff:
			r -= 0x10000
			dst = appendDigits(append(dst, '\\', 'u'), uint64(0xd800+r>>10), 4)
			dst = appendDigits(append(dst, '\\', 'u'), uint64(0xdc00+r&0x3ff), 4)
		default:
			dst = appendDigits(append(dst, '\\', 'u'), uint64(r), 4)
		}
	}
	return append(dst, '"')
}

// escape is what starts a colour sequence. The sink's own are the only ones in
// its output.
const escape = 0x1b

// columns returns how many columns of a terminal b takes, colour sequences not
// counted.
func columns(b []byte) int {
	n := 0
	for len(b) > 0 {
		narrow := singles(b)
		n += narrow
		if b = b[narrow:]; len(b) > 0 {
			size, width := step(b)
			n += width
			b = b[size:]
		}
	}
	return n
}

// singles returns how many bytes at the start of b take a column each.
func singles(b []byte) int {
	for i, c := range b {
		if c == escape || c >= utf8.RuneSelf {
			return i
		}
	}
	return len(b)
}

// step returns the length of the first character, or colour sequence, of b, and
// the columns it takes.
func step(b []byte) (size, width int) {
	switch c := b[0]; {
	case c == escape:
		for i, c := range b {
			if c == 'm' {
				return i + 1, 0
			}
		}
		return len(b), 0
	case c < utf8.RuneSelf:
		return 1, 1
	}
	r, size := utf8.DecodeRune(b)
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return size, 0
	case wide(r):
		return size, 2
	}
	return size, 1
}

// wide reports whether a rune takes two columns: Hangul, kana, ideographs, full
// width forms, emoji.
func wide(r rune) bool {
	switch {
	case r < 0x1100:
		return false
	case r <= 0x115f, r >= 0x2e80 && r <= 0x303e, r >= 0x3041 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60,
		r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return true
	}
	return false
}

// ellipsis stands for what is left out, in one column.
const ellipsis = "…"

// cut shortens b[from:] to a number of columns, the last of which then is an
// ellipsis. It returns how many columns are left.
func cut(b []byte, from, limit int) (short []byte, left int) {
	used, room, at := 0, from, 0 // room is where the ellipsis fits, at its column
	for i := from; i < len(b); {
		size, width := 1, 1
		if b[i] == escape || b[i] >= utf8.RuneSelf {
			size, width = step(b[i:])
		}
		if used += width; used > limit {
			if bytes.HasSuffix(b[:room], []byte(ellipsis)) {
				return b[:room], at // one is enough
			}
			return append(b[:room], ellipsis...), at + 1
		}
		if i += size; used < limit {
			room, at = i, used
		}
	}
	return b, used
}
