package sink

import (
	"bytes"
	"math"
	"strconv"
	"time"

	"opscope/schema"
)

// appendFloat appends a float as JSON allows it: the fewest digits that read
// back as the same value, of 32 bits for single, without an exponent between
// 1e-6 and 1e21. NaN and infinities, which JSON has not, are the words NaN,
// +Inf and -Inf.
func appendFloat(dst []byte, v float64, single bool) []byte {
	bits := 64
	if single {
		bits = 32
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, v, 'e', -1, bits)
	at := bytes.IndexByte(dst[start:], 'e')
	if at < 0 {
		return dst
	}
	// The exponent decides, not the value: the digits of a 32-bit float then look
	// the same when they come back as a 64-bit one.
	exp, err := strconv.Atoi(string(dst[start+at+1:]))
	if err == nil && exp >= -6 && exp < 21 {
		return strconv.AppendFloat(dst[:start], v, 'f', -1, bits)
	}
	return dst
}

// appendMillis appends a duration that is not negative as milliseconds, exactly
// and without zeros at its end.
func appendMillis(dst []byte, d time.Duration) []byte {
	dst = strconv.AppendInt(dst, int64(d/time.Millisecond), 10)
	rest := int(d % time.Millisecond)
	if rest == 0 {
		return dst
	}
	dst = appendFraction(dst, rest*int(time.Second/time.Millisecond), 6)
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// lineDigits is how many significant digits of a float a line shows; the value
// in full is in the details and in NDJSON.
const lineDigits = 7

// appendRounded appends a float for a line of text.
func appendRounded(dst []byte, v float64, single bool) []byte {
	start := len(dst)
	dst = appendFloat(dst, v, single)
	size := math.Abs(v)
	if len(dst)-start <= lineDigits || size >= 1e15 || size < 1e-3 || math.IsNaN(v) {
		return dst
	}
	decimals := lineDigits - 1
	for ; size >= 10 && decimals > 0; size /= 10 {
		decimals--
	}
	dst = strconv.AppendFloat(dst[:start], v, 'f', decimals, 64)
	if decimals == 0 {
		return dst
	}
	dst = append(dst[:start], bytes.TrimRight(dst[start:], "0")...)
	return bytes.TrimSuffix(dst, []byte("."))
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
		dst = strconv.AppendUint(dst, v>>uint(shift)&0xff, 10)
		if shift > 0 {
			dst = append(dst, '.')
		}
	}
	return dst
}

// appendCount appends a number with a comma between groups of three digits.
func appendCount(dst []byte, n int64) []byte {
	start := len(dst)
	dst = strconv.AppendInt(dst, n, 10)
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
			dst = strconv.AppendUint(append(dst, '='), set, 10)
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

// nameOf returns the name of a node; values without a schema are all called
// "value".
func nameOf(n *schema.Node) string {
	if n.Field == nil || n.Field.Name == "" {
		return "value"
	}
	return n.Field.Name
}

// shown reports whether a node belongs to what a record says: not one without
// meaning, nor one that another is made of.
func shown(n *schema.Node) bool { return n.Field == nil || !n.Field.Hidden && !n.Field.Part }
