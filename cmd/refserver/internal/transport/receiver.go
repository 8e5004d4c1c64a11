package transport

// Verdict says what became of a sequenced record.
type Verdict uint8

// The verdicts.
const (
	Delivered Verdict = iota // it is the first of what Receive returned
	Queued                   // it waits for its predecessors
	Duplicate                // it was delivered, skipped or queued before
	Outside                  // beyond the window: neither kept nor acknowledged
	Invalid                  // a sequence that does not exist
)

// String returns the verdict as a word for logs.
func (v Verdict) String() string {
	return [...]string{"delivered", "queued", "duplicate", "out_of_window", "invalid_sequence"}[v]
}

// Delivery is a record that the application gets.
type Delivery struct {
	Opcode uint8
	Seq    uint16
	Body   []byte
}

// Receiver puts the sequenced records of one peer in order. Its memory is bounded
// by the window: at most Window records wait in each of at most 87 streams.
type Receiver struct {
	table   Table
	first   uint16
	streams map[int]*inbound
}

// inbound is one stream of a Receiver.
type inbound struct {
	cursor  uint16              // the next sequence expected
	waiting map[uint16]Delivery // future records, by sequence
	ignored map[uint16]bool     // future sequences to skip
}

// NewReceiver returns the receiver of a peer that has said nothing yet. Its
// streams expect the sequence first; 0 stands for First.
func NewReceiver(first uint16) *Receiver {
	if first == 0 {
		first = First
	}
	return &Receiver{first: first, streams: map[int]*inbound{}}
}

// Mode returns the mode in which the peer sends an opcode.
func (r *Receiver) Mode(opcode uint8) Mode { return r.table.Mode(opcode) }

// Learn takes the table of the peer's handshake. The same table again changes
// nothing; another one begins all streams anew. It reports whether it did.
func (r *Receiver) Learn(t Table) bool {
	if r.table.Equal(&t) {
		return false
	}
	r.table = t
	clear(r.streams)
	return true
}

func (r *Receiver) stream(opcode uint8) *inbound {
	key := r.table.stream(opcode)
	s := r.streams[key]
	if s == nil {
		s = &inbound{cursor: r.first, waiting: map[uint16]Delivery{}, ignored: map[uint16]bool{}}
		r.streams[key] = s
	}
	return s
}

// Receive takes a sequenced record. It returns what to deliver, in order, what
// became of the record, and whether to acknowledge it. The body is copied if it
// has to wait; a delivered one aliases what was given to Receive.
func (r *Receiver) Receive(opcode uint8, seq uint16, body []byte) (out []Delivery, v Verdict, ack bool) {
	if !valid(seq) {
		return nil, Invalid, false
	}
	s, d := r.stream(opcode), Delivery{opcode, seq, body}
	if r.Mode(opcode) == Latest {
		return s.latest(d)
	}
	return s.ordered(d)
}

// latest delivers what is not older than the cursor and moves it past the gap.
// Whatever it does not deliver it does not acknowledge (0x00504EB0).
func (s *inbound) latest(d Delivery) ([]Delivery, Verdict, bool) {
	switch n := ahead(d.Seq, s.cursor); {
	case n < 0:
		return nil, Duplicate, false
	case n > Window:
		return nil, Outside, false
	}
	s.cursor = next(d.Seq)
	return []Delivery{d}, Delivered, true
}

// ordered delivers the next one and what waited for it, keeps a future one, and
// drops a stale one, all acknowledged (0x00504F50, 0x005049B0). Of a pending
// record the first copy is kept (0x00503B40).
func (s *inbound) ordered(d Delivery) ([]Delivery, Verdict, bool) {
	n := ahead(d.Seq, s.cursor)
	_, waits := s.waiting[d.Seq]
	switch {
	case n > Window:
		return nil, Outside, false
	case n < 0 || waits || s.ignored[d.Seq]:
		return nil, Duplicate, true
	case n > 0:
		d.Body = append([]byte(nil), d.Body...)
		s.waiting[d.Seq] = d
		return nil, Queued, true
	}
	s.cursor = next(s.cursor)
	return s.drain([]Delivery{d}), Delivered, true
}

// drain appends what waited at the cursor, skipping what is to be ignored.
func (s *inbound) drain(out []Delivery) []Delivery {
	for {
		d, waits := s.waiting[s.cursor]
		if !waits && !s.ignored[s.cursor] {
			return out
		}
		delete(s.waiting, s.cursor)
		delete(s.ignored, s.cursor)
		s.cursor = next(s.cursor)
		if waits {
			out = append(out, d)
		}
	}
}

// Ignore takes a D_IGNORE: it marks a sequence of an ordered stream to be skipped
// and returns what that sets free. A mark for a future sequence is kept as long as
// a sender may have such records in flight; beyond that it is not acknowledged. A
// record that waits already is delivered all the same.
func (r *Receiver) Ignore(opcode uint8, seq uint16) (out []Delivery, ack bool) {
	if !valid(seq) || r.Mode(opcode) != Ordered {
		return nil, false
	}
	s := r.stream(opcode)
	n := ahead(seq, s.cursor)
	if n < 0 {
		return nil, true
	}
	if n >= InFlight {
		return nil, false
	}
	if _, waits := s.waiting[seq]; !waits {
		s.ignored[seq] = true
	}
	return s.drain(nil), true
}

// SetStart takes a D_SET_START, which moves the cursor of a mode 1 stream. It has
// no effect on others, and is answered in any case.
func (r *Receiver) SetStart(opcode uint8, start uint16) {
	if valid(start) && r.Mode(opcode) == Latest {
		r.stream(opcode).cursor = start
	}
}
