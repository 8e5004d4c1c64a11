package dissect

import (
	"hash/maphash"
	"slices"
	"strconv"
	"time"

	"opscope/reassembly"
)

// Rules are what a protocol says about records with a sequence.
type Rules struct {
	Serial       reassembly.Serial // how sequences wrap
	Start        uint64            // the first sequence of a session
	Window       int               // how far ahead of the expected one a receiver accepts, 0 for any distance
	InFlight     int               // how many unacknowledged ones a sender may have, 0 for any number
	Delivery     Delivery
	Acknowledged bool // the receiver acknowledges each record it accepts; else nobody sends one again
}

// Delivery is what a receiver does with a record that is newer than expected.
type Delivery uint8

// The deliveries, by example of Wulfram's stream modes.
const (
	Latest  Delivery = iota // mode 1: delivers it, and never delivers an older one
	Ordered                 // mode 3: keeps it until those before it have come
)

// Copy says what the caller knows of a record that was there before.
type Copy uint8

// The copies.
const (
	NoCopy      Copy = iota // nothing, it is for the stream to find out
	CaptureCopy             // the capture shows one and the same packet twice
	DesignCopy              // the record itself says that it is a further copy
)

// Disposition is what a receiver does with a record, if it has seen what the
// capture shows, and nothing else.
type Disposition uint8

// The dispositions.
const (
	Next         Disposition = iota // the expected one: delivered
	Future                          // Ordered: ahead, kept until its turn
	Newer                           // Latest: ahead, delivered, those between are skipped
	Stale                           // older than the expected one: dropped
	BeyondWindow                    // too far ahead: dropped
	Impossible                      // no sequence of the protocol
)

// String returns "next", "future", "newer", "stale", "beyond_window" or
// "impossible".
func (d Disposition) String() string {
	return [...]string{"next", "future", "newer", "stale", "beyond_window", "impossible"}[d]
}

// Verdict is what an acknowledgement turns out to be.
type Verdict uint8

// The verdicts.
const (
	AcksNew     Verdict = iota // the first for a record in the capture
	AcksAgain                  // for one that was acknowledged before
	AcksIgnored                // for one that the sender gave up: it answers that
	AcksEarlier                // for one that was sent before the capture began
	AcksStale                  // for one of long ago
	AcksUnseen                 // for one that the capture does not show, or that was never sent
)

// String returns "new", "repeat", "ignored", "earlier", "stale" or "unknown".
func (v Verdict) String() string {
	return [...]string{"new", "repeat", "ignored", "earlier", "stale", "unknown"}[v]
}

const (
	// streamCost is what a stream takes beside its records, as so many of them.
	streamCost = 4
	// marksSize is how many skipped sequences a stream remembers, and how many that
	// were acknowledged unseen.
	marksSize = 16
	// openRTT is the round trip of a record that was sent more than once: nobody
	// can tell which copy the acknowledgement answers.
	openRTT = time.Duration(-1)
)

// SequenceStream follows the records of one session and direction that share one
// sequence, and the acknowledgements the other side sends for them. What it finds
// it writes on the records: notes, and the state of the acknowledgement.
//
// It stands between the two. A record in the capture may never have arrived, and
// one that is not may have; so an acknowledgement counts as proof that the record
// arrived, whatever the capture shows. Two records in a row that lie beyond all a
// sender may have in flight, close to each other, show that the capture missed
// what lies before them; a single one shows nothing. So do two that lie long behind:
// it missed more than half of the circle.
type SequenceStream struct {
	hold  *Hold
	rules Rules
	run   int // of sequences: Record.Stream

	joined   bool     // the session began before the capture
	started  bool     // first, next and newest are known
	answered bool     // an acknowledgement was seen
	first    uint64   // where it starts, for all we know
	early    bool     // next is so near to first that what is before that can be told
	next     uint64   // the receiver expects this one
	newest   uint64   // the furthest on that was sent
	queued   []uint64 // the receiver has them, ahead of next
	far      bool     // the last record was far beyond the window, at farSeq
	farSeq   uint64

	history  history
	messages []string // names of its records
	cut      bool     // some of them may be over
	top      uint64   // the furthest on of these and those before, accepted or not
	ignored  marks    // the receiver was told to skip them
	unseen   marks    // acknowledged, while the capture had not shown them
	restart  restart
	evicted  int
}

// marks are sequences about which a packet said something.
type marks []mark

type mark struct {
	seq    uint64
	packet int
}

// find returns the packet that marked seq, and whether there is one.
func (m marks) find(seq uint64) (packet int, ok bool) {
	for _, k := range m {
		if k.seq == seq {
			return k.packet, true
		}
	}
	return 0, false
}

// add marks seq, unless it is, and drops the oldest mark if there are too many.
func (m *marks) add(seq uint64, packet int) {
	if _, ok := m.find(seq); ok {
		return
	}
	if len(*m) == marksSize {
		*m = slices.Delete(*m, 0, 1)
	}
	*m = append(*m, mark{seq, packet})
}

// prune drops what is so far behind next that its sequence may come again.
func (m *marks) prune(s reassembly.Serial, next uint64) {
	for i := len(*m) - 1; i >= 0; i-- {
		if s.Diff(next, (*m)[i].seq) > historySize {
			*m = slices.Delete(*m, i, i+1)
		}
	}
}

// restart is the last order to start anew.
type restart struct {
	state   AckState // AckNone: there was none
	seq     uint64
	message string
	packet  int
	time    moment
	again   bool // it was sent more than once
}

// NewSequenceStream returns a stream whose records go through h. A stream that was
// joined in its middle starts wherever its first record is.
func NewSequenceStream(h *Hold, rules Rules, joined bool) *SequenceStream {
	s := &SequenceStream{hold: h, rules: rules}
	s.Reset(joined)
	return s
}

// Reset starts anew, as for a new session: nothing that was sent before counts.
func (s *SequenceStream) Reset(joined bool) {
	for s.history.count > 0 {
		s.forget(0)
	}
	s.cut = false
	s.ignored, s.unseen = s.ignored[:0], s.unseen[:0]
	s.restart = restart{}
	s.run = s.hold.Stream()
	s.answered, s.joined, s.started = false, joined, false
	if !joined {
		s.begin(s.rules.Start)
	}
}

// begin has the receiver expect seq, with nothing before it.
func (s *SequenceStream) begin(seq uint64) {
	s.started, s.early, s.far = true, true, false
	if s.history.count == 0 {
		s.top = s.rules.Serial.Add(seq, -1)
	}
	s.queued = s.queued[:0]
	s.first, s.next, s.newest = seq, seq, s.rules.Serial.Add(seq, -1)
}

// Evicted returns how many records were forgotten while they still waited for an
// acknowledgement.
func (s *SequenceStream) Evicted() int { return s.evicted }

// Sent takes the record r with this sequence. The payload is what must be equal in
// a copy, without the sequence; it is not kept. r is not pushed yet; where records
// are acknowledged its state is set, so that the Hold knows whether it waits.
func (s *SequenceStream) Sent(r *Record, seq uint64, payload []byte, c Copy) Disposition {
	e := sent{
		seq: seq, sum: s.sum(r.Opcode, payload), message: s.name(r.Message), packet: uint32(r.LastPacket()), time: momentOf(r.Time),
		shown: c == CaptureCopy,
	}
	r.Stream = s.run
	first, same := s.earlier(&e)
	if first == nil && s.cut {
		s.forgetOver(seq)
	}
	e.copy = first != nil

	d := s.arrive(r, &e, first)
	switch {
	case first == nil:
		s.remarkFirst(r, &e, c, len(payload) > 0)
	case c == CaptureCopy:
		r.note("duplicate", packetText("same as", first))
	case same == nil:
		r.note("conflict", packetText("other bytes than", first))
	case c == DesignCopy:
		r.note("resend_copy", packetText("same bytes as", same))
	case !s.rules.Acknowledged: // nobody sends it again
		r.note("duplicate", packetText("same bytes as", same))
	default:
		r.note("retransmission", packetText("same bytes as", same))
	}
	if first != nil && !e.shown {
		s.history.again(first, e.time)
	}
	s.expect(r, &e, first)
	s.remember(r, &e)
	return d
}

// sum stands for what copies of a record have in common.
func (s *SequenceStream) sum(opcode int, payload []byte) uint64 {
	const scatter = 0x9e3779b97f4a7c15 // odd, by the golden ratio: each opcode turns other bits
	return maphash.Bytes(s.hold.seed, payload) ^ uint64(opcode+1)*scatter
}

// name returns the index of a message's name, of which a stream has few.
func (s *SequenceStream) name(message string) uint16 {
	for i, m := range s.messages {
		if m == message {
			return uint16(i)
		}
	}
	s.messages = append(s.messages, message)
	return uint16(len(s.messages) - 1)
}

// earlier returns the first record with the sequence of e, and the first of those
// that has its bytes too.
func (s *SequenceStream) earlier(e *sent) (first, same *sent) {
	if s.rules.Serial.Less(s.top, e.seq) { // the usual case: all are older
		return nil, nil
	}
	for twins := s.history.with(e.seq); twins != 0; twins = twins.rest() {
		o := s.history.at(twins.first())
		if o.over && o.sum != e.sum {
			continue
		}
		if first == nil {
			first = o
		}
		if o.sum == e.sum {
			return first, o
		}
	}
	return first, nil
}

// arrive moves the receiver's cursor and notes what it means for e to come now.
func (s *SequenceStream) arrive(r *Record, e, first *sent) Disposition {
	serial, seq := s.rules.Serial, e.seq
	if !serial.Contains(seq) {
		code := "out_of_range"
		if seq == 65535 {
			code = "sequence_65535"
		}
		r.note(code, "")
		return Impossible
	}
	if !s.started {
		s.begin(seq)
	}
	expected := s.next
	d := s.accept(seq)
	switch d {
	case Stale:
		if by, ok := s.unseen.find(seq); ok && first == nil {
			r.note("out_of_order", "after its acknowledgement in packet "+strconv.Itoa(by))
		} else if s.outdated(e, first) {
			r.note("stale", sequenceText("expected ", expected))
		}
		return d
	case BeyondWindow:
		r.note("out_of_window", sequenceText("expected ", expected))
		return d
	}
	ahead := serial.Diff(seq, s.newest)
	switch {
	case ahead < 0 && first == nil:
		r.note("out_of_order", sequenceText("after ", s.newest))
	case ahead > 1 && d != Next:
		code := "sequence_gap"
		if s.rules.Delivery == Latest && s.rules.Acknowledged {
			code = "sequence_skipped" // the sender's newest is all that matters
		}
		r.note(code, rangeText(serial.Next(s.newest), serial.Add(seq, -1)))
	}
	if ahead > 0 {
		s.newest = seq
	}
	return d
}

// outdated reports whether e, which is stale, is that for another reason than being
// a copy.
func (s *SequenceStream) outdated(e, first *sent) bool {
	switch {
	case e.shown:
		return false
	case first != nil: // a newer one has taken its place
		return s.rules.Delivery == Latest && s.rules.Serial.Next(e.seq) != s.next
	}
	// In a stream that was joined, one from before the first is merely late.
	return !s.joined || !s.beforeFirst(e.seq)
}

// beforeFirst reports whether seq is from before the first of the stream.
func (s *SequenceStream) beforeFirst(seq uint64) bool {
	return s.early && s.rules.Serial.Less(seq, s.first)
}

// accept does what the receiver does with seq.
func (s *SequenceStream) accept(seq uint64) Disposition {
	ahead := s.rules.Serial.Diff(seq, s.next)
	if (s.beyond(ahead) || ahead < -historySize) && s.resumed(seq, ahead) {
		ahead = s.rules.Serial.Diff(seq, s.next)
	}
	switch {
	case ahead < 0:
		return Stale
	case s.beyond(ahead):
		return BeyondWindow
	}
	s.far = false
	s.ignored.prune(s.rules.Serial, s.next)
	s.unseen.prune(s.rules.Serial, s.next)
	s.take(seq, ahead)
	switch {
	case ahead == 0:
		return Next
	case s.rules.Delivery == Ordered:
		return Future
	}
	return Newer
}

// take has the receiver take seq, which is that much ahead: the cursor moves, or
// the record is kept until its turn.
func (s *SequenceStream) take(seq uint64, ahead int64) {
	if ahead > 0 && s.rules.Delivery == Ordered {
		if len(s.queued) < historySize && !slices.Contains(s.queued, seq) {
			s.queued = append(s.queued, seq)
		}
		return
	}
	s.expectAfter(seq)
}

// expectAfter has the receiver expect what is behind seq, which it has.
func (s *SequenceStream) expectAfter(seq uint64) {
	s.next = s.rules.Serial.Next(seq)
	s.settle()
	if s.early {
		ahead := s.rules.Serial.Diff(s.next, s.first)
		s.early = ahead >= 0 && ahead <= historySize
	}
}

// settle moves the cursor over what the receiver has already, or skips.
func (s *SequenceStream) settle() {
	for {
		if i := slices.Index(s.queued, s.next); i >= 0 {
			s.queued = slices.Delete(s.queued, i, i+1)
		} else if _, skip := s.ignored.find(s.next); !skip {
			return
		}
		s.next = s.rules.Serial.Next(s.next)
	}
}

// beyond reports whether a receiver does not accept what is that far ahead.
func (s *SequenceStream) beyond(ahead int64) bool {
	return s.rules.Window > 0 && ahead > int64(s.rules.Window)
}

// resumed reports whether seq, beyond the window or long behind it, shows that the
// capture missed something, and moves the cursor past that.
func (s *SequenceStream) resumed(seq uint64, ahead int64) bool {
	if ahead > 0 && ahead <= int64(s.rules.InFlight) {
		return false
	}
	if step := s.rules.Serial.Diff(seq, s.farSeq); s.far && step > 0 && step <= historySize && !s.beyond(step) {
		s.jump(s.farSeq)
		return true
	}
	s.far, s.farSeq = true, seq
	return false
}

// jump moves the cursor behind seq, which the receiver has, whatever was before.
func (s *SequenceStream) jump(seq uint64) {
	s.queued = s.queued[:0]
	if ahead := s.rules.Serial.Diff(seq, s.newest); ahead > 0 || ahead < -historySize {
		s.newest = seq
	}
	s.expectAfter(seq)
}

// remarkFirst notes what is odd about e, whose sequence was not there before.
func (s *SequenceStream) remarkFirst(r *Record, e *sent, c Copy, payload bool) {
	switch c {
	case CaptureCopy:
		r.note("duplicate", "")
		return
	case DesignCopy:
		r.note("resend_copy", "the first one is not in the capture")
		return
	}
	if !s.rules.Acknowledged {
		return
	}
	flight := s.history.inFlight(e.time)
	if rebuilt := s.history.latestEqual(e, flight); rebuilt != nil && payload {
		r.note("same_payload_new_sequence", packetText("same payload as", rebuilt)+
			sequenceText(", ", rebuilt.seq))
	}
	inFlight := 1 + flight.count()
	deaf := s.joined && !s.answered // perhaps only one direction was captured
	if s.rules.InFlight > 0 && inFlight > s.rules.InFlight && !deaf {
		r.note("too_many_in_flight", inFlightTexts[inFlight])
	}
}

// expect says what r may expect for an acknowledgement.
func (s *SequenceStream) expect(r *Record, e, first *sent) {
	if !s.rules.Acknowledged {
		return
	}
	e.state = AckPending
	if by, ok := s.ignored.find(e.seq); ok {
		e.state, e.by = AckIgnored, uint32(by)
	}
	if by, ok := s.unseen.find(e.seq); ok {
		e.state, e.by = AckAcked, uint32(by)
	}
	if first != nil && (first.state == AckAcked || first.state == AckDuplicate) {
		e.state, e.by = AckDuplicate, first.by
	}
	r.Ack = Ack{State: e.state, By: int(e.by), RTT: openRTT}
}

// remember keeps e, in the place of the oldest if there are too many.
func (s *SequenceStream) remember(r *Record, e *sent) {
	h := &s.history
	if h.count == s.size() {
		if h.at(0).state == AckPending {
			s.evicted++
		}
		s.forget(0)
	}
	first := h.made == 0
	kept, grown := h.add(e)
	switch {
	case first:
		s.hold.remember(r.Session, 1+streamCost)
	case grown:
		s.hold.remember(r.Session, 1)
	}
	if s.rules.Acknowledged {
		s.hold.Follow(r, &kept.ticket)
	}
	if s.rules.Serial.Less(s.top, e.seq) {
		s.top = e.seq
	}
}

// size is how many records the stream remembers. In a small circle an older one
// has been overtaken by the wrap.
func (s *SequenceStream) size() int {
	if m := s.rules.Serial.Modulus; m > 0 && m < 2*historySize {
		return max(int(m/2), 1)
	}
	return historySize
}

// forget drops the record of some age. Older ones move up, which are rarely any.
func (s *SequenceStream) forget(age int) {
	h := &s.history
	s.hold.Forget(&h.at(age).ticket)
	for ; age > 0; age-- {
		s.hold.moved(&h.moveUp(age - 1).ticket)
	}
	h.dropOldest()
}

// forgetOver drops those with this sequence that are over.
func (s *SequenceStream) forgetOver(seq uint64) {
	for twins := s.history.with(seq); twins != 0; {
		age := twins.last() // NB: which leaves the ages of the older ones as they are
		if twins ^= 1 << age; s.history.at(age).over {
			s.forget(age)
		}
	}
}

// Acknowledged takes the acknowledgement of a sequence, which the record r of the
// other direction carries; r.Acks tells what it names. The rules say that there are some.
//
// It acknowledges all copies that were sent until now, and where there is more
// than one nobody can say after how long. Copies sent later find it there and are
// AckDuplicate; so does a record that the capture shows behind its
// acknowledgement, which is AckAcked then.
func (s *SequenceStream) Acknowledged(r *Record, seq uint64) Verdict {
	s.answered = true
	first, copies := s.copies(seq)
	if first == nil {
		r.Acks = Acks{Verdict: s.acknowledgedUnseen(r, seq), Seq: int(seq), RTT: openRTT}
		return r.Acks.Verdict
	}
	r.Acks = Acks{
		Verdict: AcksAgain, Seq: int(seq), Message: s.messages[first.message], Packet: int(first.packet), N: first.ticket.N, RTT: openRTT,
	}
	switch first.state {
	case AckPending:
		rtt := openRTT
		if copies == 1 {
			rtt = roundTrip(first.time, momentOf(r.Time))
		}
		r.Acks.Verdict, r.Acks.RTT = AcksNew, rtt
		s.resolve(r, seq, rtt)
	case AckIgnored:
		r.Acks.Verdict = AcksIgnored
	default:
		r.note("ack_repeated", "first by packet "+strconv.Itoa(int(first.by)))
	}
	s.arrived(seq, true)
	return r.Acks.Verdict
}

// resolve has r acknowledge all copies that wait for it.
func (s *SequenceStream) resolve(r *Record, seq uint64, rtt time.Duration) {
	for twins := s.history.with(seq); twins != 0; twins = twins.rest() {
		e := s.history.at(twins.first())
		if e.state != AckPending {
			continue
		}
		a := Ack{State: AckAcked, By: r.LastPacket(), RTT: rtt}
		if e.shown {
			a.State, a.RTT = AckDuplicate, openRTT
		}
		s.history.settle(e, a.State, uint32(a.By))
		s.hold.Resolve(&e.ticket, a, r)
	}
}

// copies returns the first record with this sequence, and how often it was sent.
func (s *SequenceStream) copies(seq uint64) (first *sent, n int) {
	for twins := s.history.with(seq); twins != 0; twins = twins.rest() {
		e := s.history.at(twins.first())
		if first == nil {
			first = e
		}
		if !e.shown {
			n++
		}
	}
	return first, n
}

// acknowledgedUnseen takes an acknowledgement of what is not in the history.
func (s *SequenceStream) acknowledgedUnseen(r *Record, seq uint64) Verdict {
	serial := s.rules.Serial
	before := s.started && s.beforeFirst(seq)
	near := s.rules.InFlight == 0 || serial.Diff(seq, s.first) >= -int64(s.rules.InFlight)
	forgotten := s.history.count == s.size() && serial.Less(seq, s.history.at(0).seq)
	if _, ok := s.ignored.find(seq); ok {
		return AcksIgnored
	}
	switch {
	case !serial.Contains(seq):
	case s.joined && (!s.started || before && near):
		r.note("ack_before_capture", "")
		return AcksEarlier
	case before, forgotten:
		r.note("stale_ack", sequenceText("", seq))
		return AcksStale
	}
	r.note("acked_unseen", sequenceText("", seq))
	s.unseen.add(seq, r.LastPacket())
	s.arrived(seq, false)
	return AcksUnseen
}

// arrived takes an acknowledgement as proof that the receiver has seq. What the
// capture does not show, and no sender would send yet, proves nothing.
func (s *SequenceStream) arrived(seq uint64, seen bool) {
	if !s.started || !s.rules.Serial.Contains(seq) {
		return
	}
	ahead := s.rules.Serial.Diff(seq, s.next)
	switch {
	case ahead < 0, !seen && s.rules.InFlight > 0 && ahead > int64(s.rules.InFlight):
	case s.beyond(ahead):
		s.jump(seq)
	default:
		s.take(seq, ahead)
	}
}

// Ignore takes the sender's order, in its record r, to skip a sequence. The order
// may come before the record, or in its stead; Ack.By is its packet. A Latest
// receiver skips anyway, and does nothing.
func (s *SequenceStream) Ignore(r *Record, seq uint64) {
	if s.rules.Delivery != Ordered || !s.rules.Serial.Contains(seq) {
		return
	}
	for twins := s.history.with(seq); twins != 0; twins = twins.rest() {
		if e := s.history.at(twins.first()); e.state == AckPending {
			s.history.settle(e, AckIgnored, uint32(r.LastPacket()))
			s.hold.Resolve(&e.ticket, Ack{State: AckIgnored, By: int(e.by), RTT: openRTT}, nil)
		}
	}
	s.ignored.add(seq, r.LastPacket())
	if s.started {
		s.settle()
	}
}

// SetStart takes the sender's order, in its record r, that the receiver expect
// start from now on. An Ordered receiver answers it and does nothing else. The
// sender's own numbers go on: the same bytes under a sequence are a retransmission,
// other bytes are a record of their own.
func (s *SequenceStream) SetStart(r *Record, start uint64) {
	if s.restart.state == AckPending && s.restart.seq == start {
		s.restart.again = true
		return
	}
	s.restart = restart{AckPending, start, r.Message, r.LastPacket(), momentOf(r.Time), false}
	serial := s.rules.Serial
	if s.rules.Delivery != Latest || !serial.Contains(start) {
		return
	}
	for age := range s.history.count {
		e := s.history.at(age)
		e.over = e.over || !serial.Less(e.seq, start)
	}
	s.cut = true
	s.begin(start)
}

// SetStartAnswered takes the answer to SetStart, which the record r of the other
// direction carries; r.Acks tells what it names.
func (s *SequenceStream) SetStartAnswered(r *Record, start uint64) Verdict {
	o := &s.restart
	r.Acks = Acks{Verdict: AcksUnseen, Seq: int(start), RTT: openRTT}
	switch {
	case o.state == AckNone && s.joined:
		r.Acks.Verdict = AcksEarlier
		r.note("ack_before_capture", "")
	case o.state == AckNone, o.seq != start:
		r.note("acked_unseen", sequenceText("start at ", start))
	case o.state == AckAcked:
		r.Acks.Verdict, r.Acks.Message, r.Acks.Packet = AcksAgain, o.message, o.packet
		r.note("ack_repeated", "")
	default:
		r.Acks.Verdict, r.Acks.Message, r.Acks.Packet = AcksNew, o.message, o.packet
		if !o.again {
			r.Acks.RTT = roundTrip(o.time, momentOf(r.Time))
		}
		o.state = AckAcked
	}
	return r.Acks.Verdict
}

// LastPacket returns the number of the packet that completed r, or 0.
func (r *Record) LastPacket() int {
	if len(r.Packets) == 0 {
		return 0
	}
	return r.Packets[len(r.Packets)-1]
}

// inFlightTexts say how many records wait, up to one more than a stream remembers. A stream
// that nobody answers has one with each record.
var inFlightTexts = func() (texts [historySize + 2]string) {
	for n := range texts {
		texts[n] = strconv.Itoa(n) + " without acknowledgement"
	}
	return texts
}()

// packetText names the packet of e.
func packetText(what string, e *sent) string { return what + " packet " + strconv.Itoa(int(e.packet)) }

// sequenceText names a sequence.
func sequenceText(what string, seq uint64) string {
	return what + "sequence " + strconv.FormatUint(seq, 10)
}

// rangeText names the sequences from first to last.
func rangeText(first, last uint64) string {
	if first == last {
		return sequenceText("", first) + " not seen"
	}
	return "sequences " + strconv.FormatUint(first, 10) + " to " + strconv.FormatUint(last, 10) + " not seen"
}
