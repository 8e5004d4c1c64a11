package sink

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"time"
	"unicode/utf8"

	"opscope/schema"
)

// powers are the powers of ten that fit in 64 bits.
var powers = func() (table [20]uint64) {
	for i, v := 0, uint64(1); i < len(table); i, v = i+1, 10*v {
		table[i] = v
	}
	return table
}()

// appendUint appends a number in decimal digits.
func appendUint(dst []byte, v uint64) []byte {
	if v < 10 {
		return append(dst, byte('0'+v)) // most are
	}
	return appendUints(dst, v)
}

// appendUints appends a number of several digits. Up to eight are written together, which
// strconv does not do; every line has a dozen numbers.
func appendUints(dst []byte, v uint64) []byte {
	if v >= 1e8 {
		dst, v = appendUint(dst, v/1e8), v%1e8
		return binary.LittleEndian.AppendUint64(dst, eight(v)|zeros)
	}
	digits := eight(v)
	ahead := bits.TrailingZeros64(digits) / 8
	dst = binary.LittleEndian.AppendUint64(dst, (digits|zeros)>>(8*ahead&63))
	return dst[:len(dst)-ahead]
}

// appendInt appends a number with its sign.
func appendInt(dst []byte, v int64) []byte {
	if v < 0 {
		return appendUint(append(dst, '-'), -uint64(v))
	}
	return appendUint(dst, uint64(v))
}

// appendMillis appends a duration that is not negative as milliseconds, exactly
// and without zeros at its end.
func appendMillis(dst []byte, d time.Duration) []byte {
	dst = appendInt(dst, int64(d/time.Millisecond))
	rest := int(d % time.Millisecond)
	if rest == 0 {
		return dst
	}
	return trimZeros(appendFraction(dst, rest*int(time.Second/time.Millisecond), 6))
}

// lineDigits is how many significant digits of a float a line shows, and of those in
// an array. The value in full is in the details, for an array with -V, and in NDJSON.
const lineDigits = 7

// appendRounded appends a float for a line of text.
func appendRounded(dst []byte, v float64, single bool) []byte {
	size := math.Abs(v)
	if !(size >= 1e-3 && size < 1e15) {
		return appendFloat(dst, v, single)
	}
	decimals, unit := lineDigits-1, uint64(1e6)
	for rest := size; rest >= 10 && decimals > 0; rest /= 10 {
		decimals--
		unit /= 10
	}
	if v < 0 {
		dst = append(dst, '-')
	}
	n := uint64(math.Round(size * float64(unit)))
	dst = appendUint(dst, n/unit)
	nano := int(n % unit * (uint64(time.Second) / unit))
	if nano == 0 {
		return dst
	}
	return trimZeros(appendFraction(dst, nano, decimals))
}

// trimZeros removes the zeros at the end of a fraction that is not zero.
func trimZeros(dst []byte) []byte {
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// textOf returns the text of node i as UTF-8: in the tree where it is ASCII, which
// needs no conversion, else in the scratch.
func textOf(scratch *[]byte, t *schema.Tree, i int) []byte {
	n := &t.Nodes[i]
	if n.Body&7 == 0 && n.Kind == schema.Text && (n.Field == nil || n.Field.Encoding <= schema.UTF8 || n.Field.Encoding == schema.UTF8Exact) {
		text := t.Data[n.Body>>3:][:n.BodyLen]
		if end := bytes.IndexByte(text, 0); end >= 0 && (n.Field == nil || n.Field.Encoding != schema.UTF8Exact) {
			text = text[:end]
		}
		if isASCII(text) {
			return text
		}
	}
	*scratch = t.AppendText((*scratch)[:0], i)
	return *scratch
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// appendHexNumber appends v as 0x and an even number of digits.
func appendHexNumber(dst []byte, v uint64) []byte {
	digits := 2
	for digits < 16 && v>>uint(4*digits) != 0 {
		digits += 2
	}
	return appendDigits(append(dst, "0x"...), v, digits)
}

// appendHex appends bytes as pairs of lower-case digits.
func appendHex(dst, b []byte) []byte {
	for _, c := range b {
		dst = append(dst, lowerDigits[c>>4], lowerDigits[c&15])
	}
	return dst
}

// guidOrder is where the digits of a GUID's text come from: the first three
// groups are little-endian numbers.
var guidOrder = [16]uint8{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15}

// appendGUID appends 16 bytes as {1C8248C0-9772-11CF-B74F-00C0DF413ED1}, and
// any other number of bytes as hex.
func appendGUID(dst, b []byte) []byte {
	if len(b) != len(guidOrder) {
		return appendHex(dst, b)
	}
	dst = append(dst, '{')
	for i, k := range guidOrder {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, upperDigits[b[k]>>4], upperDigits[b[k]&15])
	}
	return append(dst, '}')
}

// appendIPv4 appends a 32-bit number as a dotted address.
func appendIPv4(dst []byte, v uint64) []byte {
	for shift := 24; shift >= 0; shift -= 8 {
		dst = appendUint(dst, v>>uint(shift)&0xff)
		if shift > 0 {
			dst = append(dst, '.')
		}
	}
	return dst
}

// appendCount appends a number with a comma between groups of three digits.
func appendCount(dst []byte, n int64) []byte {
	start := len(dst)
	dst = appendInt(dst, n)
	if n < 0 {
		start++
	}
	for i := len(dst) - 3; i > start; i -= 3 {
		dst = append(dst, 0)
		copy(dst[i+1:], dst[i:])
		dst[i] = ','
	}
	return dst
}

// nameOf returns the name of a node; values without a schema are all called
// "value".
func nameOf(n *schema.Node) string {
	if n.Field == nil || n.Field.Name == "" {
		return "value"
	}
	return n.Field.Name
}

// shown reports whether a node belongs to what a record says: not one without
// meaning, nor one that another is made of or takes the place of.
func shown(n *schema.Node) bool {
	return n.Field == nil || !n.Field.Hidden && !n.Field.Part && n.Field.Mark != schema.Superseded
}

// marked reports whether a node has a mark.
func marked(n *schema.Node, m schema.Mark) bool { return n.Field != nil && n.Field.Mark == m }

// appendBool appends the word of a truth value.
func appendBool(dst []byte, n *schema.Node) []byte { return strconv.AppendBool(dst, n.Num != 0) }
