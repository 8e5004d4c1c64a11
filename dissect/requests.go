package dissect

import (
	"hash/maphash"
	"slices"
	"strconv"
	"time"

	"opscope/reassembly"
)

// Requests follows the packets of one kind that the other side answers, and says on both
// records what became of them: the request is acknowledged by the answer, after so long.
// Unlike a SequenceStream it knows nothing of windows: it is for what TCP carries, or for
// what nobody sends again.
//
// A request has a key, which its answer repeats, or none (0).
type Requests struct {
	hold *Hold
	list []*request // in the order of the capture, at most maxRequests
	done int        // how many at its start have had their answer
	free []*request
	// early are answers that were read before their request, which a stream in its hunt
	// for a boundary may hold back; at most marksSize.
	early []early
}

// early is an answer whose request was not there yet.
type early struct {
	key    uint64
	packet int
	time   moment
}

// request is a packet that waits for its answer, or has had it.
type request struct {
	ticket  Ticket
	key     uint64
	opcode  int
	message string
	packet  int
	time    moment
	by      int // packet of the answer, 0 while there is none
}

// maxRequests is how many requests of a kind are remembered: the input of a client that
// sends 60 a second, for twice the time that output is held.
const maxRequests = 256

// NewRequests returns requests whose records go through h.
func NewRequests(h *Hold) *Requests { return &Requests{hold: h} }

// KeyOf returns the key that stands for some bytes, such as an identifier.
func (q *Requests) KeyOf(b []byte) uint64 { return maphash.Bytes(q.hold.seed, b) }

// Asked takes a request, whose record is not pushed yet.
func (q *Requests) Asked(r *Record, key uint64) {
	r.Ack = Ack{State: AckPending, RTT: openRTT}
	if i := slices.IndexFunc(q.early, func(a early) bool { return a.key == key }); i >= 0 {
		a := q.early[i]
		r.Ack = Ack{State: AckAcked, By: a.packet, RTT: roundTrip(momentOf(r.Time), a.time)}
		q.early = slices.Delete(q.early, i, i+1)
	}
	if len(q.list) == maxRequests {
		oldest := q.list[0]
		q.hold.Forget(&oldest.ticket)
		q.list = slices.Delete(q.list, 0, 1)
		q.done = max(0, q.done-1)
		q.free = append(q.free, oldest)
	}
	if len(q.free) == 0 {
		q.free = append(q.free, new(request))
	}
	e := q.free[len(q.free)-1]
	q.free = q.free[:len(q.free)-1]
	e.key, e.opcode, e.message, e.packet, e.time, e.by = key, r.Opcode, r.Message, r.LastPacket(), momentOf(r.Time), r.Ack.By
	q.hold.Follow(r, &e.ticket)
	q.list = append(q.list, e)
}

// Answered takes the answer to all requests with a key, which are copies of one: where
// there are several, nobody can tell after how long it came. It reports whether the
// capture has one; r.Acks tells what it is for.
func (q *Requests) Answered(r *Record, key uint64) bool {
	var first *request
	waiting := 0
	for _, e := range q.list {
		switch {
		case e.key != key:
		case e.by == 0:
			if waiting++; waiting == 1 {
				first = e
			}
		case first == nil:
			first = e
		}
	}
	if first == nil {
		if len(q.early) == marksSize {
			q.early = slices.Delete(q.early, 0, 1)
		}
		q.early = append(q.early, early{key, r.LastPacket(), momentOf(r.Time)})
		return false
	}
	if waiting == 0 {
		r.acks(first, AcksAgain, openRTT)
		r.note("ack_repeated", "first by packet "+strconv.Itoa(first.by))
		return true
	}
	rtt := openRTT
	if waiting == 1 {
		rtt = roundTrip(first.time, momentOf(r.Time))
	}
	r.acks(first, AcksNew, rtt)
	for _, e := range q.list {
		if e.key == key && e.by == 0 {
			q.resolve(r, e, rtt)
		}
	}
	return true
}

// AnsweredFirst takes the answer to the oldest request that waits, as where answers come
// in order and name nothing.
func (q *Requests) AnsweredFirst(r *Record) bool {
	q.skip()
	if q.done == len(q.list) {
		return false
	}
	return q.answer(r, q.done)
}

// AnsweredLast takes the answer to the latest request that waits: the latest with a key
// if there is one. An earlier answer that the capture has missed does no harm then.
func (q *Requests) AnsweredLast(r *Record, key uint64) bool {
	last := -1
	q.skip()
	for i := q.done; i < len(q.list); i++ {
		if e := q.list[i]; e.by == 0 && (last < 0 || e.key == key || q.list[last].key != key) {
			last = i
		}
	}
	return q.answer(r, last)
}

// Refused takes an answer that names no more than the opcode of the latest request.
func (q *Requests) Refused(r *Record, opcode int) bool {
	for i, e := range slices.Backward(q.list) {
		if e.opcode == opcode && e.by == 0 {
			return q.answer(r, i)
		}
	}
	return false
}

// skip passes over the requests at the start of the list that have had their answer.
func (q *Requests) skip() {
	for q.done < len(q.list) && q.list[q.done].by != 0 {
		q.done++
	}
}

func (q *Requests) answer(r *Record, i int) bool {
	if i < 0 {
		return false
	}
	e := q.list[i]
	rtt := roundTrip(e.time, momentOf(r.Time))
	r.acks(e, AcksNew, rtt)
	q.resolve(r, e, rtt)
	return true
}

// AnsweredUpTo takes an answer to all requests whose keys, which are sequences, are not
// behind one. r.Acks names the furthest on that had none yet; it stays as it is where
// there is none. What has had its answer is forgotten: nothing asks for it again.
func (q *Requests) AnsweredUpTo(r *Record, s reassembly.Serial, seq uint64) {
	var last *request
	waiting := q.list[:0]
	for _, e := range q.list {
		switch {
		case e.by != 0:
		case s.Less(seq, e.key):
			waiting = append(waiting, e)
			continue
		default:
			rtt := roundTrip(e.time, momentOf(r.Time))
			q.resolve(r, e, rtt)
			if last == nil || s.Less(last.key, e.key) {
				last = e
				r.acks(e, AcksNew, rtt)
				r.Acks.Seq = int(e.key)
			}
		}
		q.hold.Forget(&e.ticket)
		q.free = append(q.free, e)
	}
	q.list, q.done = waiting, 0
}

// Waiting reports whether a request has had no answer.
func (q *Requests) Waiting() bool {
	q.skip()
	return q.done < len(q.list)
}

// Unasked notes on an answer that the capture does not hold what it answers.
func (r *Record) Unasked(joined bool) {
	verdict, code := AcksUnseen, "acked_unseen"
	if joined {
		verdict, code = AcksEarlier, "ack_before_capture"
	}
	r.Acks = Acks{Verdict: verdict, Seq: -1, RTT: openRTT}
	r.note(code, "")
}

func (q *Requests) resolve(r *Record, e *request, rtt time.Duration) {
	e.by = r.LastPacket()
	q.hold.Resolve(&e.ticket, Ack{State: AckAcked, By: e.by, RTT: rtt}, r)
}

// acks names what r answers.
func (r *Record) acks(e *request, v Verdict, rtt time.Duration) {
	r.Acks = Acks{Verdict: v, Seq: -1, Message: e.message, Packet: e.packet, N: e.ticket.N, RTT: rtt}
}
