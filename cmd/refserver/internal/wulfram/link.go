package wulfram

import (
	"fmt"
	"net/netip"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/transport"
	"opscope/schema"
)

// packed is how full a datagram gets before the next record starts another one:
// below the MTU of Ethernet. A single record may be as large as maxDatagram.
const packed = 1400

// handshakeEvery is how often a handshake is repeated until it is answered.
const handshakeEvery = 500 * time.Millisecond

// wrapper is what stands in front of a datagram's first record. No client is known
// to send either; the server accepts both (section 4.5).
type wrapper uint8

const (
	bare      wrapper = iota
	prefixed          // the size of the datagram in two bytes, these two included
	delimited         // FF FF
)

// link is one end of a UDP association: the records of one peer, their modes,
// sequences and acknowledgements, and the datagrams that they share.
//
// Sequenced records wait until the peer has answered our handshake. Before that
// it could not tell them from raw ones, should the handshake be lost or late.
type link struct {
	*clerk
	remote   netip.AddrPort
	wrap     wrapper
	sender   *transport.Sender[*letter]
	receiver *transport.Receiver
	number   uint32 // the second number of our handshake
	started  time.Time
	greeting time.Time // when our handshake was last sent, zero for never
	inForce  bool      // it was answered
	learned  bool      // the peer's handshake has come
	failed   error     // why the peer is to be disconnected
	heard    func(now time.Time, r machine.Record)
	pending  machine.Output
	closed   bool // the pending datagram ends with a record of unknown length
}

// letter is a sequenced record on its way, as it was last sent.
type letter struct{ record machine.Record }

// oversize is a record that no peer could receive.
type oversize struct {
	message   string
	size, max int
}

func (o *oversize) Error() string {
	return fmt.Sprintf("%s: %d bytes, at most %d can be sent", o.message, o.size, o.max)
}

// clock returns the milliseconds since the link's machine began.
func (l *link) clock(now time.Time) uint32 { return uint32(now.Sub(l.started).Milliseconds()) }

// send sends a record in the mode that our handshake gives its opcode.
func (l *link) send(now time.Time, message string, values fields) {
	r, body, err := l.compose(message, values)
	if err != nil {
		l.observer.Event(now, "dropped", err.Error())
		return
	}
	l.post(now, r, body)
}

// sendOpaque sends a record of an opcode whose body nobody knows.
func (l *link) sendOpaque(now time.Time, message string, body []byte) {
	l.post(now, l.composeOpaque(message, body), body)
}

func (l *link) post(now time.Time, r machine.Record, body []byte) {
	opcode := uint8(r.Opcode)
	if l.sender.Mode(opcode) == transport.Raw {
		l.pack(now, r, transport.Raw, 0, body)
		return
	}
	if 1+len(body) > maxPayload {
		l.observer.Event(now, "dropped", (&oversize{r.Message, 1 + len(body), maxPayload}).Error())
		return
	}
	r.ID = l.NextID()
	if err := l.sender.Send(transport.Record[*letter]{Opcode: opcode, Body: body, Item: &letter{record: r}}); err != nil {
		l.failed = err
		return
	}
	l.pump(now)
}

// pump sends what the sequences allow and the timers ask for.
func (l *link) pump(now time.Time) {
	if !l.inForce {
		return
	}
	for _, t := range l.sender.Poll(now) {
		l.transmit(now, t)
	}
}

func (l *link) transmit(now time.Time, t transport.Transmission[*letter]) {
	switch t.Kind {
	case transport.Ignore:
		l.send(now, "D_IGNORE", fields{{"target_opcode", t.Opcode}, {"sequence", t.Seq}})
	case transport.SetStart:
		l.send(now, "D_SET_START", fields{{"target_opcode", t.Opcode}, {"start", t.Seq}})
	default:
		r := l.stamp(t)
		l.pack(now, r, l.sender.Mode(t.Opcode), t.Seq, t.Body)
	}
}

// stamp returns the record of one transmission. A repeated one has a number of its
// own and names the one that it repeats; under a new sequence it takes its place,
// for that is what will be acknowledged.
func (l *link) stamp(t transport.Transmission[*letter]) machine.Record {
	r := t.Item.record
	switch t.Kind {
	case transport.Again:
		r.ID, r.Resend = l.NextID(), r.ID
	case transport.Renewed:
		r.ID, r.Resend = l.NextID(), r.ID
		r.Note = "rebuilt under a new sequence"
		t.Item.record.ID = r.ID
	}
	return r
}

// pack frames a record and puts it into the pending datagram, or into a new one.
func (l *link) pack(now time.Time, r machine.Record, m transport.Mode, seq uint16, body []byte) {
	framing := l.protocol.Framing("udp")
	data := framing.Modes[int(m)].Append(nil, uint64(r.Opcode), int(seq), body, schema.CountsFrame)
	if r.Size = len(data); r.Size+l.wrap.size() > maxDatagram {
		l.observer.Event(now, "dropped", (&oversize{r.Message, r.Size, maxDatagram - l.wrap.size()}).Error())
		return
	}
	if r.Mode = int(m); r.ID == 0 {
		r.ID = l.NextID()
	}
	if m != transport.Raw {
		r.Seq, r.Length = int(seq), r.Size
	}
	if l.closed || len(l.pending.Data)+r.Size > packed {
		l.flush()
	}
	if len(l.pending.Data) == 0 {
		l.pending.Data = make([]byte, l.wrap.size(), packed)
	}
	r.Offset = len(l.pending.Data)
	l.pending.Data = append(l.pending.Data, data...)
	l.pending.Records = append(l.pending.Records, r)
	l.closed = r.Opaque && m == transport.Raw
}

// flush hands over the pending datagram.
func (l *link) flush() {
	if len(l.pending.Records) > 0 {
		l.wrap.fill(l.pending.Data)
		l.pending.Kind, l.pending.Peer = machine.SendDatagram, l.remote
		l.Do(l.pending)
	}
	l.pending, l.closed = machine.Output{}, false
}

func (w wrapper) size() int {
	if w == bare {
		return 0
	}
	return 2
}

// fill writes the wrapper into the first bytes of a datagram.
func (w wrapper) fill(data []byte) {
	switch w {
	case prefixed:
		data[0], data[1] = byte(len(data)>>8), byte(len(data))
	case delimited:
		data[0], data[1] = 0xff, 0xff
	}
}

// wrapperOf returns what stands in front of a datagram's first record. A size
// counts only when it is that of the datagram and the bytes would make no record:
// a D_ACK is the one that could (rule 16 of section 12).
func wrapperOf(data []byte) wrapper {
	if len(data) < 3 {
		return bare
	}
	size := int(data[0])<<8 | int(data[1])
	switch {
	case size == 0xffff:
		return delimited
	case size != len(data) || data[0] == 0x02 && data[1] <= 2:
		return bare
	}
	return prefixed
}

// deadline returns when the link wants to be ticked, the zero time for never.
func (l *link) deadline() time.Time {
	if !l.inForce {
		if l.greeting.IsZero() {
			return time.Time{}
		}
		return l.greeting.Add(handshakeEvery)
	}
	return l.sender.Deadline()
}

// tick repeats what is due.
func (l *link) tick(now time.Time) {
	if !l.inForce && !l.greeting.IsZero() && !now.Before(l.greeting.Add(handshakeEvery)) {
		l.greet(now)
	}
	l.pump(now)
}

// greet sends our handshake, raw whatever it says of itself: until it is answered
// nothing it says is in force.
func (l *link) greet(now time.Time) {
	l.greeting = now
	t := l.sender.Table()
	r, body, err := l.compose("D_HANDSHAKE", handshakeFields(l.clock(now), l.number, t))
	if err != nil {
		l.observer.Event(now, "dropped", err.Error())
		return
	}
	l.pack(now, r, transport.Raw, 0, body)
}

// handshakeFields writes a table as section 5 lays it out.
func handshakeFields(clock, number uint32, t *transport.Table) fields {
	var groups, pairs list
	for _, g := range t.Groups {
		var members list
		for _, m := range g.Members {
			members = append(members, m)
		}
		groups = append(groups, fields{{"name", g.Name}, {"count", len(g.Members)}, {"members", members}})
	}
	for _, p := range t.Pairs {
		pairs = append(pairs, fields{{"opcode", p.Opcode}, {"mode", int(p.Mode)}})
	}
	return fields{{"timestamp", clock}, {"connection_id", number}, {"group_count", len(groups)}, {"groups", groups},
		{"mode_count", len(pairs)}, {"modes", pairs}}
}
