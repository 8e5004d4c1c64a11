package dissect

import "time"

// history is the records that a stream remembers, in the order of the capture. Those with
// one sequence are found, and those in flight counted, without a look at the others. The
// zero history is ready to use.
type history struct {
	oldest, newest *sent
	count          int
	sequences      [historyBuckets]*sent // the oldest of each bucket, by next of seq
	flight         flight
	free           *sent // by next
}

const (
	// historySize is how many records a stream remembers: four times what a sender
	// of Wulfram may have in flight, so that copies and late acknowledgements of
	// them are recognised.
	historySize = 64
	// historyBuckets is how many there are for sequences, and for payloads. With half as
	// many as records they take no more room than a list of the records would.
	historyBuckets = historySize / 2
)

// sent is a record that was sent. Once it is in a history it does not move.
type sent struct {
	ticket  Ticket
	seq     uint64
	opcode  int
	message string
	packet  int
	time    moment
	last    moment // when the last copy was sent, on the first one
	sum     uint64 // of the payload
	size    int
	by      int // packet of the acknowledgement
	state   AckState
	copy    bool // the same sequence was there before
	shown   bool // a packet that the capture shows again: nothing was sent
	over    bool // the receiver was told to start before it, or at it

	prev, next *sent // in the order of the capture
	twin       *sent // the next in its bucket of sequences

	// In the flight.
	aloft         bool
	recent        bool  // it counts, since it was sent no longer than flightTime ago
	before, after *sent // by last
	like          *sent // the next in its bucket of payloads
}

func (e *sent) equal(o *sent) bool {
	return e.sum == o.sum && e.size == o.size && e.opcode == o.opcode
}

// blank returns an empty record for the caller to fill, and whether it is a new one.
func (h *history) blank() (e *sent, made bool) {
	if e = h.free; e == nil {
		return new(sent), true
	}
	h.free = e.next
	*e = sent{}
	return e, false
}

// add adds e, which blank returned, as the newest.
func (h *history) add(e *sent) {
	if e.prev = h.newest; e.prev != nil {
		e.prev.next = e
	} else {
		h.oldest = e
	}
	h.newest = e
	h.count++
	end := h.with(e.seq)
	for *end != nil {
		end = &(*end).twin
	}
	*end = e
	if e.state == AckPending && !e.copy {
		h.flight.add(e)
	}
}

// remove drops e and keeps its memory.
func (h *history) remove(e *sent) {
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		h.oldest = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		h.newest = e.prev
	}
	h.count--
	at := h.with(e.seq)
	for *at != e {
		at = &(*at).twin
	}
	*at = e.twin
	h.flight.remove(e)
	e.next, h.free = h.free, e
}

// with returns the first of the bucket that holds those with this sequence, oldest first,
// and others.
func (h *history) with(seq uint64) **sent { return &h.sequences[seq%historyBuckets] }

// settle ends the wait of e for its acknowledgement.
func (h *history) settle(e *sent, state AckState, by int) {
	e.state, e.by = state, by
	h.flight.remove(e)
}

// flightTime is how long a record counts as in flight after it was last sent.
// A sender repeats it within 1 s for as long as it has no acknowledgement, so
// after twice that it has one, which the capture missed.
const flightTime = moment(2 * time.Second)

// flight is the records that wait for an acknowledgement, by when they were last sent:
//
//	first               recent                   last
//	[too long ago] [...] [counts] [...] [counts]
//
// The clock of a capture may go back, and then some count again.
type flight struct {
	first, last *sent
	recent      *sent  // the first that counts, nil for none
	count       int    // from recent on
	since       moment // when what counts was sent at the earliest
	payloads    [historyBuckets]*sent
}

// add adds e, which is the newest in the capture.
func (f *flight) add(e *sent) {
	e.aloft = true
	f.link(e)
	end := f.like(e)
	for *end != nil {
		end = &(*end).like
	}
	*end = e
}

// remove drops e if it is there.
func (f *flight) remove(e *sent) {
	if !e.aloft {
		return
	}
	e.aloft = false
	f.unlink(e)
	at := f.like(e)
	for *at != e {
		at = &(*at).like
	}
	*at, e.like = e.like, nil
}

// again has e count from a later time on.
func (f *flight) again(e *sent, now moment) {
	if !e.aloft {
		e.last = now
		return
	}
	f.unlink(e)
	e.last = now
	f.link(e)
}

// like returns the first of the bucket that holds those with the payload of e, oldest
// first, and others.
func (f *flight) like(e *sent) **sent { return &f.payloads[e.sum%historyBuckets] }

// link puts e behind those that were sent before it.
func (f *flight) link(e *sent) {
	at := f.last
	for at != nil && at.last > e.last {
		at = at.before
	}
	if e.before = at; at != nil {
		e.after, at.after = at.after, e
	} else {
		e.after, f.first = f.first, e
	}
	if e.after != nil {
		e.after.before = e
	} else {
		f.last = e
	}
	if e.recent = e.last >= f.since; !e.recent {
		return
	}
	f.count++
	if f.recent == e.after {
		f.recent = e
	}
}

func (f *flight) unlink(e *sent) {
	if f.recent == e {
		f.recent = e.after
	}
	if e.before != nil {
		e.before.after = e.after
	} else {
		f.first = e.after
	}
	if e.after != nil {
		e.after.before = e.before
	} else {
		f.last = e.before
	}
	if e.recent {
		f.count--
	}
}

// at has those count that are in flight at some time.
func (f *flight) at(now moment) {
	f.since = now - flightTime
	for e := f.recent; e != nil && e.last < f.since; e = e.after {
		e.recent, f.recent = false, e.after
		f.count--
	}
	e := f.last
	if f.recent != nil {
		e = f.recent.before
	}
	for ; e != nil && e.last >= f.since; e = e.before {
		e.recent, f.recent = true, e
		f.count++
	}
}

// equal returns the last in the capture of those that count and have the payload of e, nil
// for none, and for an empty payload.
func (f *flight) equal(e *sent) (found *sent) {
	if e.size == 0 {
		return nil
	}
	for o := *f.like(e); o != nil; o = o.like {
		if o.recent && o.equal(e) {
			found = o
		}
	}
	return found
}
