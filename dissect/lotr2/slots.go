package lotr2

import (
	"bytes"
	"slices"
	"strconv"

	"opscope/dissect"
)

// Slots are one count of each sender, for all its messages: 1 to 39, then 1, and 0 for the
// first message of a process. A message that is not sent once is sent three times in a
// row, as copies 0, 1 and 2 of one slot. Facts, section 6.
//
// Messages come in order, over a connection. A slot that is not the next one therefore
// shows messages that went elsewhere or were not captured, at least so many; it is never an
// older one that comes late, which is what dissect.SequenceStream would take half of them for.

// sent is one send of a message.
type sent struct {
	by      uint64 // player id
	slot    int
	copy    int
	opcode  uint64
	payload []byte
	whole   bool // all of the payload was captured
	once    bool // the opcode is one of those that are sent once
	known   bool // the schema has the opcode, and so knows that
}

// sender is what is known of one sender: its last message.
type sender struct {
	id      uint64
	stream  int // of its records
	slot    int
	opcode  uint64
	payload []byte
	whole   bool
	packet  int
	seen    int            // sends of it, as a set of copies
	several bool           // it is to be sent several times
	ticket  dissect.Ticket // of its first record
}

// maxSenders is how many senders of a session are followed.
const maxSenders = 16

// slots follows all senders of a session.
type slots struct {
	last    int // slot before 1
	copies  int // sends of a message
	senders []*sender
}

// reset forgets all senders.
func (s *slots) reset(h *dissect.Hold) {
	for _, p := range s.senders {
		h.Forget(&p.ticket)
	}
	s.senders = nil
}

// of returns a sender, and whether it was known before.
func (s *slots) of(h *dissect.Hold, id uint64) (p *sender, known bool) {
	for _, p := range s.senders {
		if p.id == id {
			return p, true
		}
	}
	if len(s.senders) == maxSenders {
		h.Forget(&s.senders[0].ticket)
		s.senders = slices.Delete(s.senders, 0, 1)
	}
	p = &sender{id: id, stream: h.Stream()}
	s.senders = append(s.senders, p)
	return p, false
}

// take takes one send, and writes on its record what it is to the ones before.
func (s *slots) take(h *dissect.Hold, r *dissect.Record, m *sent) {
	p, known := s.of(h, m.by)
	r.Stream = p.stream
	same := known && p.slot == m.slot && p.opcode == m.opcode && p.equal(m)
	s.remark(r, m)
	switch {
	case m.copy > 0 && same:
		s.again(h, r, p, m)
		return
	case m.copy > 0 && known && p.slot == m.slot:
		r.Note("conflict", "a copy that differs from the message in packet "+strconv.Itoa(p.packet))
		p.seen |= 1 << m.copy
		return
	case m.copy == 0 && same && p.seen&1 != 0:
		r.Note("retransmission", "same bytes as packet "+strconv.Itoa(p.packet))
		return
	case m.copy == 0 && known && p.slot == m.slot && m.slot > 0:
		r.Note("conflict", "the slot of the message in packet "+strconv.Itoa(p.packet))
	case known:
		s.complete(h, r, p)
		s.step(r, p.slot, m.slot)
	}
	if m.copy > 0 {
		r.Note("resend_copy", "the first one is not in the capture")
	}
	s.begin(h, r, p, m)
}

// equal compares payloads as far as both were captured.
func (p *sender) equal(m *sent) bool {
	if p.whole && m.whole {
		return bytes.Equal(p.payload, m.payload)
	}
	n := min(len(p.payload), len(m.payload))
	return bytes.Equal(p.payload[:n], m.payload[:n])
}

// remark notes what no client sends.
func (s *slots) remark(r *dissect.Record, m *sent) {
	if m.slot > s.last {
		r.Note("out_of_range", "slot "+strconv.Itoa(m.slot)+", above "+strconv.Itoa(s.last))
	}
	if m.copy >= s.copies {
		r.Note("out_of_range", "marked as second and third copy at once")
	} else if m.copy > 0 && m.once {
		r.Note("unexpected_copy", r.Message+" is sent once")
	}
}

// begin makes a message the last one of its sender. What is sent several times stays open
// for its copies.
func (s *slots) begin(h *dissect.Hold, r *dissect.Record, p *sender, m *sent) {
	if last := h.Held(&p.ticket); last != nil {
		last.Open = false
	}
	h.Forget(&p.ticket)
	p.slot, p.opcode, p.packet, p.seen = m.slot, m.opcode, r.LastPacket(), 1<<m.copy
	p.payload = append(p.payload[:0], m.payload...)
	p.whole, p.several = m.whole, !m.once && m.known
	if m.once {
		return
	}
	r.Envelope.Copies = 1
	h.Follow(r, &p.ticket)
	r.Open = m.copy < s.copies-1
}

// again takes a further copy of a sender's last message. Its first record counts it, if
// that is still there; then the envelope says which packet has that, and no text is made.
func (s *slots) again(h *dissect.Hold, r *dissect.Record, p *sender, m *sent) {
	code, text := "resend_copy", ""
	if p.seen>>m.copy != 0 {
		code = "duplicate"
	}
	p.seen |= 1 << m.copy
	if first := h.Held(&p.ticket); first != nil {
		first.Envelope.Copies++
		r.Envelope.First = p.packet
	} else {
		text = "same bytes as packet " + strconv.Itoa(p.packet)
	}
	r.Note(code, text)
	if m.copy == s.copies-1 {
		s.complete(h, r, p)
	}
}

// complete ends the message that a sender sent last: its copies have come or never will.
func (s *slots) complete(h *dissect.Hold, r *dissect.Record, p *sender) {
	first := h.Held(&p.ticket)
	if first != nil {
		first.Open = false
	}
	if !p.several || p.seen == 1<<s.copies-1 || p.seen&1 == 0 { // what has no first send says so
		return
	}
	if first == nil {
		first = r
	}
	first.Note("copies_missing", missing(p, s.copies))
	p.several = false
}

// missing names the copies of a sender's last message that were not captured.
func missing(p *sender, copies int) string {
	text := "of slot " + strconv.Itoa(p.slot) + ": "
	for k := range copies {
		if p.seen>>k&1 == 0 {
			text += [...]string{"first ", "second ", "third ", "fourth "}[k&3]
		}
	}
	return text[:len(text)-1] + " send"
}

// step notes slots that were not seen between two messages.
func (s *slots) step(r *dissect.Record, last, slot int) {
	if slot == 0 {
		r.Note("sequence_restarted", "slot 0 is the first of a process")
		return
	}
	next := last%s.last + 1
	switch {
	case slot == next || slot > s.last || last > s.last:
	case slot == next%s.last+1:
		r.Note("sequence_gap", "slot "+strconv.Itoa(next)+" not seen")
	default:
		r.Note("sequence_gap", "slots "+strconv.Itoa(next)+" to "+strconv.Itoa((slot+s.last-2)%s.last+1)+" not seen")
	}
}
