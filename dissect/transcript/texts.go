package transcript

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// texts keeps what lines say: each text once, however many lines of however many transcripts
// say it, and most of them compressed. A text has a number; equal texts have the same.
//
// Texts are told apart by a hash of 64 bits whose seed nobody knows: that two of a million
// share one happens in one of 10^7 runs.
type texts struct {
	seed    maphash.Seed
	numbers map[uint64]textNumber // by hash
	places  []place               // by number
	fresh   []byte                // the last texts, which are not packed yet
	lanes   []int                 // that have these, one for each
	blocks  [][]byte              // the others, compressed
	read    []block               // some of them as they were, what was read last in front
	zip     *zstd.Encoder         // nil until something is packed
	unzip   *zstd.Decoder         // nil until a block is read
}

// textNumber is the number of a text, from 0.
type textNumber uint32

// place is where a text is.
type place struct {
	block    int32 // isFresh for none
	at, size uint32
}

// isFresh is the block of a text that is in none yet.
const isFresh = -1

// block is a block as it was before it was compressed.
type block struct {
	number int32
	text   []byte
}

// Fresh texts are packed when they are so many bytes. A block has what compresses well, and
// not much more: all of it is read for one text. A few are kept that were read, for texts
// that come again, and for lanes that say the same at about the same time.
const (
	freshBytes = 4 << 20
	blockBytes = 64 << 10
	readBlocks = 32
)

func newTexts() *texts { return &texts{seed: maphash.MakeSeed(), numbers: map[uint64]textNumber{}} }

// number returns the number of a text that a line of a lane has. The text is not kept.
func (t *texts) number(text []byte, lane int) textNumber {
	hash := maphash.Bytes(t.seed, text)
	if n, known := t.numbers[hash]; known {
		return n
	}
	n := textNumber(len(t.places))
	t.numbers[hash] = n
	t.places = append(t.places, place{isFresh, uint32(len(t.fresh)), uint32(len(text))})
	t.lanes = append(t.lanes, lane)
	if t.fresh = append(t.fresh, text...); len(t.fresh) >= freshBytes {
		t.pack()
	}
	return n
}

// of returns a text by its number, valid until the next call.
func (t *texts) of(n textNumber) []byte {
	p := t.places[n]
	if p.block == isFresh {
		return t.fresh[p.at:][:p.size]
	}
	return t.block(p.block)[p.at:][:p.size]
}

// pack compresses the fresh texts, those of a lane beside each other, which is how they are
// read.
func (t *texts) pack() {
	first := len(t.places) - len(t.lanes)
	order := make([]int, len(t.lanes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare(t.lanes[i], t.lanes[k]) })
	var block []byte
	for _, i := range order {
		if len(block) >= blockBytes {
			t.compress(block)
			block = block[:0]
		}
		p := &t.places[first+i]
		text := t.fresh[p.at:][:p.size]
		p.block, p.at = int32(len(t.blocks)), uint32(len(block))
		block = append(block, text...)
	}
	t.compress(block)
	t.fresh, t.lanes = t.fresh[:0], t.lanes[:0]
}

// compress adds a block.
func (t *texts) compress(text []byte) {
	if t.zip == nil {
		t.zip, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), // fails for other options
			zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	}
	t.blocks = append(t.blocks, bytes.Clone(t.zip.EncodeAll(text, nil)))
}

// block returns the text of a block.
func (t *texts) block(number int32) []byte {
	i := slices.IndexFunc(t.read, func(b block) bool { return b.number == number })
	if i < 0 {
		i = t.decompress(number)
	}
	b := t.read[i]
	copy(t.read[1:], t.read[:i])
	t.read[0] = b
	return b.text
}

// decompress reads a block in place of the one that was read longest ago, and returns where
// that was.
func (t *texts) decompress(number int32) int {
	if t.unzip == nil {
		t.unzip, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1)) // fails for other options
	}
	if len(t.read) < readBlocks {
		t.read = append(t.read, block{})
	}
	last := len(t.read) - 1
	text, _ := t.unzip.DecodeAll(t.blocks[number], t.read[last].text[:0]) // fails for what others have compressed
	t.read[last] = block{number, text}
	return last
}
