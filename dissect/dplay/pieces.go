package dplay

import (
	"slices"
	"strconv"

	"opscope/dissect"
	"opscope/schema"
)

// A message that is too large for a frame comes in pieces, each in a frame of its own. What
// they make begins behind the sockaddr of a frame: at the word, or at the ids.

// Limits of what is put together.
const (
	maxPuzzles    = 16      // messages at a time
	maxPuzzle     = 1 << 20 // bytes of one; a frame's size has 20 bits
	maxPuzzleSum  = 1 << 20 // bytes that are kept of all
	maxPieces     = 4096    // of a message
	smallestInner = 8       // bytes of a message: the word and a command, or two ids
)

// puzzle is a message of which pieces are missing.
type puzzle struct {
	guid    [16]byte
	size    int
	total   int // pieces
	pieces  []part
	kept    int // bytes of them
	packets []int
}

// part is a piece that has come.
type part struct {
	index, offset int
	data          []byte
}

// piece takes a piece of a message, and returns the frame that it completes, or nil.
func (c *conversation) piece(r *dissect.Record, f *frame) *frame {
	if r.Opcode != packet && r.Opcode != packet2Data || r.Err != nil || f.missing > 0 || f.joined > 0 {
		return nil
	}
	t := &r.Body
	number := func(name string) int {
		v, _ := t.Value(name)
		return int(v)
	}
	index, total, size, offset, length := number("packet_index"), number("total_packets"), number("message_size"), number("offset"), number("data_size")
	if total > maxPieces || index >= total || size < smallestInner || size > maxPuzzle-headerSize || offset+length > size {
		r.Note("piece_refused", "piece "+strconv.Itoa(index)+" of "+strconv.Itoa(total)+", bytes "+strconv.Itoa(offset)+" to "+strconv.Itoa(offset+length)+" of "+strconv.Itoa(size))
		return nil
	}
	p := c.puzzle([16]byte(t.AppendBytes(nil, t.Field("guid"))), size, total, r)
	if p == nil {
		return nil
	}
	if slices.ContainsFunc(p.pieces, func(x part) bool { return x.index == index }) {
		return nil // it comes again
	}
	p.pieces = append(p.pieces, part{index, offset, t.AppendBytes(nil, t.Field("data"))})
	p.kept += length
	for _, n := range r.Packets {
		if !slices.Contains(p.packets, n) {
			p.packets = append(p.packets, n)
		}
	}
	if len(p.pieces) < total {
		c.makeRoom(r, p)
		return nil
	}
	c.puzzles = slices.DeleteFunc(c.puzzles, func(x *puzzle) bool { return x == p })
	data := p.join()
	if data == nil {
		r.Note("piece_refused", "the "+strconv.Itoa(total)+" pieces do not make "+strconv.Itoa(size)+" bytes")
		return nil
	}
	return c.whole(p, data, f)
}

// join returns the message that the pieces make, nil where they leave a hole or overlap.
func (p *puzzle) join() []byte {
	slices.SortFunc(p.pieces, func(a, b part) int { return a.offset - b.offset })
	data := make([]byte, 0, p.kept)
	for _, x := range p.pieces {
		if x.offset != len(data) {
			return nil
		}
		data = append(data, x.data...)
	}
	if len(data) != p.size {
		return nil
	}
	return data
}

// makeRoom drops the oldest messages but one, when too much is kept.
func (c *conversation) makeRoom(r *dissect.Record, but *puzzle) {
	sum := 0
	for _, p := range c.puzzles {
		sum += p.kept
	}
	for i := 0; i < len(c.puzzles) && (len(c.puzzles) > maxPuzzles || sum > maxPuzzleSum); {
		p := c.puzzles[i]
		if p == but && len(c.puzzles) > 1 {
			i++
			continue
		}
		r.Note("pieces_dropped", "of a message of which "+strconv.Itoa(len(p.pieces))+" of "+strconv.Itoa(p.total)+" pieces had come")
		sum -= p.kept
		c.puzzles = slices.Delete(c.puzzles, i, i+1)
	}
}

// puzzle returns the message that a piece belongs to, a new one if need be, nil where it
// does not fit what others said.
func (c *conversation) puzzle(guid [16]byte, size, total int, r *dissect.Record) *puzzle {
	for _, p := range c.puzzles {
		switch {
		case p.guid != guid:
		case p.size != size || p.total != total:
			r.Note("piece_refused", strconv.Itoa(total)+" pieces and "+strconv.Itoa(size)+" bytes, where another piece said "+strconv.Itoa(p.total)+" and "+strconv.Itoa(p.size))
			return nil
		default:
			return p
		}
	}
	p := &puzzle{guid: guid, size: size, total: total}
	c.puzzles = append(c.puzzles, p)
	return p
}

// whole makes a frame of a message: with the sockaddr of the last piece.
func (c *conversation) whole(p *puzzle, message []byte, f *frame) *frame {
	data := append(slices.Clone(f.data[:headerSize]), message...)
	e := c.player
	if c.isSystem(data) {
		e = c.system
	}
	var head schema.Tree
	head.Reset(data)
	// The envelope is there: the message has its eight bytes.
	_ = c.scratch.Trial.Decode(c.Protocol, "envelope", e.Layout, &head, 0, 8*len(data))
	head.Nodes = slices.DeleteFunc(head.Nodes, func(n schema.Node) bool { return n.Field.Name == "size" })
	data = e.AppendWith(nil, &head, data[e.Size():], c.tcp.Counts)
	carrier := *f.Carrier
	carrier.Packets = p.packets
	return &frame{Carrier: &carrier, data: data, size: len(data), offset: f.offset, short: f.short, joined: p.total}
}
