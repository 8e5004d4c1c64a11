package dissect

// Blank is a run of bits of a record's bytes that holds what is to be masked, without the
// lengths and tags around it: what stays of the record when the blank is filled in decodes
// as before.
type Blank struct {
	From, To int // bits from the start of Record.Raw
	Fill     Fill
}

// Fill says what a blank is filled with.
type Fill uint8

// The fills.
const (
	FillBytes  Fill = iota // letters
	FillText               // letters, but for NULs, which end a text
	FillNumber             // zero bits
	FillVarint             // letters, but for the bit of each byte that says that more follow
)

// filler stands for a byte that is masked. It is a character of text in any encoding here, and
// no opcode of a protocol that is recognised by its opcodes.
const filler = 'x'

// markLetters tell values apart that are masked, at their ends: tokens that were different
// stay different, and a session still finds its own.
const markLetters = "abcdefghijklmnopqrstuvw"

// letters returns those for the n-th value, none for the first.
func letters(n int) (mark string) {
	for ; n > 0; n /= len(markLetters) {
		mark = string(markLetters[n%len(markLetters)]) + mark
	}
	return mark
}

// fill fills the bits of data from one up to another, which lie behind those of base bytes,
// and ends them with a mark if there is room.
func (f Fill) fill(data []byte, base, from, to int, mark string) {
	first, end := max(8*base, from+8*base), min(to+8*base, 8*len(data))
	for at := first; at < end; {
		n := min(8-at&7, end-at)
		b := &data[at>>3]
		mask := byte(0xff>>(8-n)) << (8 - n - at&7)
		value := byte(filler)
		if left := (to + 8*base - at) >> 3; f <= FillText && left <= len(mark) && left > 0 && to-from > 16*len(mark) {
			value = mark[len(mark)-left]
		}
		switch {
		case f == FillNumber, n < 8:
			value = 0
		case f == FillText && *b == 0:
			mask = 0
		case f == FillVarint:
			mask = 0x7f
		}
		*b = *b&^mask | value&mask
		at += n
	}
}
