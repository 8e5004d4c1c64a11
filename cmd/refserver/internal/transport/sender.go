package transport

import (
	"errors"
	"slices"
	"time"
)

// maxBacklog is how many ordered records may queue behind the ones in flight. The
// facts leave the number to the server: section 4.5.
const maxBacklog = 256

// maxTries is how often a mode 1 record is sent before it is given up. An ordered
// record is never given up: no message is dropped, the session ends.
const maxTries = 10

// errBacklog means that too many ordered records wait for a peer, and that it is
// to be disconnected.
var errBacklog = errors.New("too many ordered records wait for their acknowledgement")

// Record is what a Sender is given to send. Item is the caller's own; it comes
// back with every transmission and with the acknowledgement.
type Record[T any] struct {
	Opcode uint8
	Body   []byte // kept; must not change
	Item   T
}

// Kind says what a Transmission is.
type Kind uint8

// The kinds of transmissions.
const (
	Fresh    Kind = iota // a record's first
	Again                // the same bytes once more
	Renewed              // the same body under a new sequence
	Ignore               // a D_IGNORE for Opcode and Seq
	SetStart             // a D_SET_START for Opcode and Seq
)

// Transmission is something to send now.
type Transmission[T any] struct {
	Record[T]
	Kind Kind
	Seq  uint16
}

// Sender sends the sequenced records of one peer.
type Sender[T any] struct {
	table   Table
	first   uint16
	streams []*outbound[T] // in the order of their first use, so that runs repeat
}

// outbound is one stream of a Sender.
type outbound[T any] struct {
	key    int
	mode   Mode
	next   uint16        // the next sequence to give
	base   uint16        // the one after the last that was acknowledged
	flight []*pending[T] // in the order of their sequences
	queue  []Record[T]
	timer  retryTimer
	paused bool // mode 1: until a D_SET_START is answered
}

// pending is a record that waits for its acknowledgement.
type pending[T any] struct {
	Record[T]
	seq    uint16
	skip   bool // it was never sent: the peer is to ignore its sequence
	prompt bool // due without a timeout
	sent   time.Time
	due    time.Time
	tries  int
}

// NewSender returns a sender whose handshake says table. Its streams begin at
// first; 0 stands for First.
func NewSender[T any](table Table, first uint16) *Sender[T] {
	if first == 0 {
		first = First
	}
	return &Sender[T]{table: table, first: first}
}

// Table returns what the sender's handshake says.
func (s *Sender[T]) Table() *Table { return &s.table }

// Mode returns the mode in which an opcode is sent.
func (s *Sender[T]) Mode(opcode uint8) Mode { return s.table.Mode(opcode) }

func (s *Sender[T]) find(opcode uint8) *outbound[T] {
	key := s.table.stream(opcode)
	i := slices.IndexFunc(s.streams, func(o *outbound[T]) bool { return o.key == key })
	if i < 0 {
		return nil
	}
	return s.streams[i]
}

func (s *Sender[T]) stream(opcode uint8) *outbound[T] {
	if o := s.find(opcode); o != nil {
		return o
	}
	o := &outbound[T]{key: s.table.stream(opcode), mode: s.Mode(opcode), next: s.first, base: s.first, timer: newRetryTimer()}
	s.streams = append(s.streams, o)
	return o
}

// Send queues a record of a sequenced opcode; Poll sends it. It returns
// errBacklog when too many ordered ones wait. In mode 1 the oldest one that waits
// gives way.
func (s *Sender[T]) Send(r Record[T]) error {
	o := s.stream(r.Opcode)
	if len(o.queue) >= maxBacklog {
		if o.mode == Ordered {
			return errBacklog
		}
		o.queue = o.queue[1:]
	}
	o.queue = append(o.queue, r)
	return nil
}

// Room reports whether a record of this opcode would be sent at once.
func (s *Sender[T]) Room(opcode uint8) bool {
	o := s.find(opcode)
	return o == nil || !o.paused && len(o.queue) == 0 && len(o.flight) < InFlight
}

// Idle reports whether everything was sent and acknowledged.
func (s *Sender[T]) Idle() bool {
	return !slices.ContainsFunc(s.streams, func(o *outbound[T]) bool { return len(o.queue)+len(o.flight) > 0 })
}

// Skip uses up a sequence of an ordered opcode without a record. Poll tells the
// peer to ignore it.
func (s *Sender[T]) Skip(opcode uint8) {
	o := s.stream(opcode)
	o.fly(&pending[T]{Record: Record[T]{Opcode: opcode}, skip: true, prompt: true})
}

// Poll returns what is to be sent now: queued records as far as they may be in
// flight, and those whose retry timeout has run out.
func (s *Sender[T]) Poll(now time.Time) (out []Transmission[T]) {
	for _, o := range s.streams {
		out = o.retry(out, now)
		out = o.fill(out, now)
	}
	return out
}

// Deadline returns when Poll has something to send, the zero time for never.
func (s *Sender[T]) Deadline() (when time.Time) {
	for _, o := range s.streams {
		for _, p := range o.repeated() {
			if when.IsZero() || p.due.Before(when) {
				when = p.due
			}
		}
	}
	return when
}

// fly gives p the next sequence.
func (o *outbound[T]) fly(p *pending[T]) {
	p.seq = o.next
	o.next = next(o.next)
	o.flight = append(o.flight, p)
}

func (o *outbound[T]) fill(out []Transmission[T], now time.Time) []Transmission[T] {
	for len(o.queue) > 0 && len(o.flight) < InFlight && !o.paused {
		p := &pending[T]{Record: o.queue[0]}
		o.queue = o.queue[1:]
		o.fly(p)
		out = append(out, o.sent(p, Fresh, now))
	}
	return out
}

// sent notes that p goes out now.
func (o *outbound[T]) sent(p *pending[T], k Kind, now time.Time) Transmission[T] {
	p.sent, p.due, p.prompt = now, now.Add(o.timer.timeout()), false
	p.tries++
	return Transmission[T]{p.Record, k, p.seq}
}

// repeated returns the records that are repeated when they are due: in mode 1
// only the newest, for the peer skips older ones once it has seen it.
func (o *outbound[T]) repeated() []*pending[T] {
	if o.mode == Latest {
		return o.flight[max(0, len(o.flight)-1):]
	}
	return o.flight
}

// retry repeats what is due. However many are, the timeout has fired once.
func (o *outbound[T]) retry(out []Transmission[T], now time.Time) []Transmission[T] {
	fired := false
	for _, p := range slices.Clone(o.repeated()) {
		if p.due.After(now) {
			continue
		}
		if !p.prompt && !fired {
			o.timer.fired()
			fired = true
		}
		out = o.again(out, p, now)
	}
	return out
}

// again repeats one record that is due, in the manner of its mode.
func (o *outbound[T]) again(out []Transmission[T], p *pending[T], now time.Time) []Transmission[T] {
	switch {
	case p.skip:
		return append(out, o.sent(p, Ignore, now))
	case o.mode == Ordered, p.prompt:
		return append(out, o.sent(p, Again, now))
	case p.tries >= maxTries:
		o.flight, o.paused = nil, false
		return out
	case o.paused || ahead(p.seq, o.base) > Window:
		o.paused = true
		return append(out, o.sent(p, SetStart, now))
	case p.tries%2 == 0:
		return append(out, o.renew(p, now))
	}
	return append(out, o.sent(p, Again, now))
}

// renew gives the newest record of a mode 1 stream a new sequence.
func (o *outbound[T]) renew(p *pending[T], now time.Time) Transmission[T] {
	o.flight = nil
	o.fly(p)
	return o.sent(p, Renewed, now)
}

// Acknowledge takes a D_ACK of subtype 1. It returns the item of the record that
// it retires, and whether there is one; of a skipped sequence that is the zero T. An acknowledgement of anything else is none.
// In mode 1 the older ones retire with it, unacknowledged.
func (s *Sender[T]) Acknowledge(now time.Time, opcode uint8, seq uint16) (item T, ok bool) {
	o := s.find(opcode)
	if o == nil {
		return item, false
	}
	i := slices.IndexFunc(o.flight, func(p *pending[T]) bool { return p.seq == seq && p.Opcode == opcode })
	if i < 0 {
		return item, false
	}
	p := o.flight[i]
	if p.tries == 1 && !p.skip {
		o.timer.measured(now.Sub(p.sent))
	}
	if ahead(seq, o.base) >= 0 {
		o.base = next(seq)
	}
	if o.mode == Latest {
		o.flight, o.paused = o.flight[i+1:], false
	} else {
		o.flight = slices.Delete(o.flight, i, i+1)
	}
	return p.Item, true
}

// Restarted takes a D_ACK of subtype 2. One that answers our D_SET_START unpauses
// the stream, whose newest record is due at once.
func (s *Sender[T]) Restarted(now time.Time, opcode uint8, start uint16) bool {
	o := s.find(opcode)
	if o == nil || !o.paused || len(o.flight) == 0 {
		return false
	}
	p := o.flight[len(o.flight)-1]
	if p.seq != start {
		return false
	}
	o.paused, o.base = false, start
	o.flight = []*pending[T]{p}
	p.due, p.prompt = now, true
	return true
}
