package dissect

import (
	"encoding/binary"
	"math/bits"
	"time"
)

// history is the records that a stream remembers: a ring, in the order of the capture.
// Whom something is true of is a set, so that few of them are looked at, wherever they
// lie. The zero history is ready to use.
type history struct {
	blocks    [historySize / blockSize]*block // of the ring, made as it grows
	made      int                             // places of the ring that were ever in use
	start     int                             // the place of the oldest
	count     int
	flying    set // by place: those that wait for an acknowledgement, but for copies
	sequences tags
	sums      tags
}

// block is some records in a row. What is looked at of many of them stands together.
type block struct {
	sent [blockSize]sent
	last [blockSize]moment // when it, or the last copy of it, was sent
}

const (
	// historySize is how many records a stream remembers: four times what a sender
	// of Wulfram may have in flight, so that copies and late acknowledgements of
	// them are recognised. It is as many as a set has bits.
	historySize = 64
	blockSize   = 8
	// flightTime is how long a record counts as in flight after it was last sent.
	// A sender repeats it within 1 s for as long as it has no acknowledgement, so
	// after twice that it has one, which the capture missed.
	flightTime = moment(2 * time.Second)
)

// sent is a record that was sent. A capture has many streams, and each has many of these.
type sent struct {
	seq     uint64
	sum     uint64 // of its opcode and payload: equal ones are taken for copies
	time    moment
	ticket  Ticket
	packet  uint32
	by      uint32 // packet of the acknowledgement
	message uint16 // index of its name among those of the stream
	state   AckState
	copy    bool // the same sequence was there before
	shown   bool // a packet that the capture shows again: nothing was sent
	over    bool // the receiver was told to start before it, or at it
	place   uint8
}

// set is some records of a history: by age, the lowest bit for the oldest, if nothing
// else is said.
type set uint64

// first returns the number of the lowest bit.
func (s set) first() int { return bits.TrailingZeros64(uint64(s)) }

// last returns the number of the highest bit.
func (s set) last() int { return bits.Len64(uint64(s)) - 1 }

// rest returns s without its lowest bit.
func (s set) rest() set { return s & (s - 1) }

func (s set) count() int { return bits.OnesCount64(uint64(s)) }

// at returns the record of some age, 0 for the oldest.
func (h *history) at(age int) *sent { return h.in(h.start + age) }

// in returns the record in a place.
func (h *history) in(place int) *sent {
	place %= historySize
	return &h.blocks[place/blockSize].sent[place%blockSize]
}

// last returns when the record in a place, or its last copy, was sent.
func (h *history) last(place int) *moment {
	return &h.blocks[place/blockSize].last[place%blockSize]
}

// byAge returns a set by age instead of by place.
func (h *history) byAge(s set) set {
	return set(bits.RotateLeft64(uint64(s), -h.start)) & (1<<h.count - 1)
}

// with returns the records with a sequence.
func (h *history) with(seq uint64) (found set) {
	for s := h.byAge(h.sequences.find(seq)); s != 0; s = s.rest() {
		if h.at(s.first()).seq == seq {
			found |= 1 << s.first()
		}
	}
	return found
}

// inFlight returns the records that wait for an acknowledgement and were last sent no
// longer ago than a flight takes.
func (h *history) inFlight(now moment) (found set) {
	for s := h.flying; s != 0; s = s.rest() {
		if *h.last(s.first()) >= now-flightTime {
			found |= 1 << s.first()
		}
	}
	return h.byAge(found)
}

// latestEqual returns the latest of some records that has the payload of e, nil for none.
func (h *history) latestEqual(e *sent, among set) *sent {
	for s := among & h.byAge(h.sums.find(e.sum)); s != 0; s ^= 1 << s.last() {
		if o := h.at(s.last()); o.sum == e.sum {
			return o
		}
	}
	return nil
}

// add keeps a copy of e, which has to be the latest and for which there has to be room. It
// reports whether that takes more memory than before.
func (h *history) add(e *sent) (kept *sent, grown bool) {
	place := (h.start + h.count) % historySize
	if h.blocks[place/blockSize] == nil {
		h.blocks[place/blockSize] = new(block)
	}
	if grown = place >= h.made; grown {
		h.made = place + 1
	}
	h.count++
	h.put(e, place, e.time)
	return h.in(place), grown
}

// put puts a copy of e into a place.
func (h *history) put(e *sent, place int, last moment) {
	kept := h.in(place)
	*kept = *e
	kept.place = uint8(place)
	*h.last(place) = last
	h.sequences[place], h.sums[place] = uint8(e.seq), uint8(e.sum)
	h.flying &^= 1 << place
	if e.state == AckPending && !e.copy {
		h.flying |= 1 << place
	}
}

// moveUp puts the record of some age in the place of the one behind it, and returns it there.
func (h *history) moveUp(age int) *sent {
	from := (h.start + age) % historySize
	to := (from + 1) % historySize
	h.put(h.in(from), to, *h.last(from))
	return h.in(to)
}

// dropOldest drops the oldest record.
func (h *history) dropOldest() {
	h.flying &^= 1 << h.start
	h.start = (h.start + 1) % historySize
	h.count--
}

// settle ends the wait of e for its acknowledgement.
func (h *history) settle(e *sent, state AckState, by uint32) {
	e.state, e.by = state, by
	h.flying &^= 1 << e.place
}

// again says that a copy of e was sent.
func (h *history) again(e *sent, now moment) { *h.last(int(e.place)) = now }

// tags are the lowest bytes of a number of each record, by place.
type tags [historySize]uint8

// find returns the places with the lowest byte of n.
func (t *tags) find(n uint64) (found set) {
	const ones, low = 0x0101010101010101, 0x7f7f7f7f7f7f7f7f
	for i := 0; i < len(t); i += 8 {
		x := binary.LittleEndian.Uint64(t[i:]) ^ n&0xff*ones
		zero := ^(x&low + low | x | low) // the top bit of each byte that is equal
		found |= set(zero>>7*0x0102040810204080>>56) << i
	}
	return found
}
