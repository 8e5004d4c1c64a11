package sink

import (
	"slices"

	"opscope/schema"
)

// spellings keep the texts of floats in JSON. What games send as floats is quantised, or
// changes little from one record to the next: most have been spelled just before, and a copy
// takes a fraction of the time that their digits take.
type spellings [1 << spellingBits]spelling

// spellingBits is the logarithm of how many are kept, in what fits a processor's own cache.
const spellingBits = 14

// spelling is the text of a float.
type spelling struct {
	bits   uint64 // of the float
	single bool   // it has 32 of them on the wire
	size   uint8  // of the text; 0 as long as there is none
	text   [30]byte
}

// of returns the spelling of a node's float, without a text if it is not one of those kept.
func (s *spellings) of(n *schema.Node) *spelling {
	const golden = 0x9e3779b97f4a7c15 // spreads the bits over the upper ones
	k := &s[n.Num*golden>>(64-spellingBits)]
	if k.bits != n.Num || k.single != n.Field.Single {
		k.bits, k.single, k.size = n.Num, n.Field.Single, 0
	}
	return k
}

// spell gives k the text of a node's float.
func (k *spelling) spell(n *schema.Node) {
	var room [64]byte // digits are written eight at a time: more room than the text takes in the end
	k.size = uint8(copy(k.text[:], appendJSONFloat(room[:0], n)))
}

// append appends the text.
func (k *spelling) append(dst []byte) []byte {
	at := len(dst)
	dst = slices.Grow(dst, len(k.text))[:at+len(k.text)]
	*(*[len(k.text)]byte)(dst[at:]) = k.text
	return dst[:at+int(k.size)]
}
