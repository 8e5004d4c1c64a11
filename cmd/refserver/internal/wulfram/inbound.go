package wulfram

import (
	"fmt"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/transport"
	"opscope/schema"
)

// The bounds of a handshake that public parsers use (section 5).
const (
	maxGroups  = 64
	maxMembers = 256
	maxPairs   = 1024
)

// receive walks the records of a datagram. What makes no sense ends the walk, and
// is the error; the records before it stand.
func (l *link) receive(now time.Time, data []byte) error {
	if len(data) > maxDatagram {
		return fmt.Errorf("a datagram of %d bytes", len(data))
	}
	for at := wrapperOf(data).size(); at < len(data); {
		n, err := l.record(now, data, at)
		if err != nil {
			return fmt.Errorf("at byte %d of %d: %w", at, len(data), err)
		}
		at += n
	}
	return nil
}

// record takes the record at data[at:] and returns its size.
func (l *link) record(now time.Time, data []byte, at int) (int, error) {
	opcode := data[at]
	if opcode > lastOpcode {
		return 0, fmt.Errorf("there is no opcode 0x%02X", opcode)
	}
	mode := l.receiver.Mode(opcode)
	if mode == transport.Raw {
		return l.rawRecord(now, data, at)
	}
	if !mode.Sequenced() {
		return 0, fmt.Errorf("nobody knows the envelope of mode %d", mode)
	}
	n, err := l.sequenced(now, data, at, mode)
	if err != nil && opcode <= 4 {
		return l.rawRecord(now, data, at) // rule 5 of section 12: some send controls raw all the same
	}
	return n, err
}

func (l *link) rawRecord(now time.Time, data []byte, at int) (int, error) {
	r, n, err := l.read(data[at:], 1, schema.UDP, data[at])
	if err != nil {
		return 0, err
	}
	r.Offset, r.Size, r.Mode = at, n, int(transport.Raw)
	l.handle(now, r)
	return n, nil
}

func (l *link) sequenced(now time.Time, data []byte, at int, mode transport.Mode) (int, error) {
	envelope := l.protocol.Framing("udp").Modes[int(mode)]
	f, bad := envelope.Parse(data[at:], "wulfram")
	if bad != nil {
		return 0, bad
	}
	whole := data[at : at+f.Size]
	opcode, seq := data[at], uint16(f.Seq)
	if opcode <= 4 { // a control tells by its body whether it has an envelope at all
		if _, n, err := l.read(whole, f.Head, schema.UDP, opcode); err != nil || n != f.Size {
			return 0, fmt.Errorf("a control that does not end where its envelope says")
		}
	}
	out, verdict, ack := l.receiver.Receive(opcode, seq, whole[f.Head:])
	if ack {
		l.send(now, "D_ACK", fields{{"subtype", 1}, {"acked_opcode", opcode}, {"acked_sequence", seq}})
	}
	if verdict != transport.Delivered {
		l.observer.Event(now, verdict.String(), fmt.Sprintf("%s %d from %s", l.protocol.OpcodeName(uint64(opcode)), seq, l.remote))
	}
	l.deliver(now, out, at)
	return f.Size, nil
}

// deliver decodes what the receiver has put in order. Only the first one stands in
// the datagram at hand; the others have waited, and have no offset.
func (l *link) deliver(now time.Time, out []transport.Delivery, at int) {
	for _, d := range out {
		r, _, err := l.read(d.Body, 0, schema.UDP, d.Opcode)
		if err != nil {
			l.observer.Event(now, "malformed", fmt.Sprintf("from %s: %v", l.remote, err))
			continue
		}
		r.Mode, r.Seq, r.Offset = int(l.receiver.Mode(d.Opcode)), int(d.Seq), at
		r.Size = len(d.Body) + 5
		r.Length, at = r.Size, -1
		l.handle(now, r)
	}
}

// handle does what the transport has to do about a record, and hands it on.
func (l *link) handle(now time.Time, r machine.Record) {
	v := values{r.Body}
	switch r.Message {
	case "D_ACK":
		l.acknowledged(now, v)
	case "D_IGNORE":
		l.ignore(now, uint8(v.Number("target_opcode")), uint16(v.Number("sequence")))
	case "D_SET_START":
		l.setStart(now, uint8(v.Number("target_opcode")), uint16(v.Number("start")))
	case "D_HANDSHAKE":
		l.learn(now, v)
	}
	l.heard(now, r)
}

func (l *link) acknowledged(now time.Time, v values) {
	opcode, seq := uint8(v.Number("acked_opcode")), uint16(v.Number("acked_sequence"))
	switch v.Number("subtype") {
	case 0:
		l.inForce = l.inForce || !l.greeting.IsZero()
	case 1:
		if letter, ok := l.sender.Acknowledge(now, opcode, seq); ok && letter != nil {
			l.observer.Acknowledged(now, letter.record.ID)
		}
	case 2:
		l.sender.Restarted(now, opcode, seq)
	}
	l.pump(now)
}

func (l *link) ignore(now time.Time, opcode uint8, seq uint16) {
	out, ack := l.receiver.Ignore(opcode, seq)
	if ack {
		l.send(now, "D_ACK", fields{{"subtype", 1}, {"acked_opcode", opcode}, {"acked_sequence", seq}})
	}
	l.deliver(now, out, -1)
}

func (l *link) setStart(now time.Time, opcode uint8, start uint16) {
	l.receiver.SetStart(opcode, start)
	l.send(now, "D_ACK", fields{{"subtype", 2}, {"timestamp", l.clock(now)}, {"acked_opcode", opcode}, {"acked_sequence", start}})
}

// learn takes the peer's handshake and answers it. A table that no client could
// hold is refused.
func (l *link) learn(now time.Time, v values) {
	t, err := tableOf(v)
	if err != nil {
		l.observer.Event(now, "refused", fmt.Sprintf("the handshake of %s: %v", l.remote, err))
		return
	}
	l.receiver.Learn(t)
	l.learned = true
	l.answer(now, uint32(v.Number("timestamp")))
}

// answer acknowledges a handshake. As long as ours is not in force, an
// acknowledgement travels raw.
func (l *link) answer(now time.Time, timestamp uint32) {
	f := fields{{"subtype", 0}, {"timestamp", timestamp}}
	if l.inForce {
		l.send(now, "D_ACK", f)
		return
	}
	if r, body, err := l.compose("D_ACK", f); err == nil {
		l.pack(now, r, transport.Raw, 0, body)
	}
}

// tableOf reads a handshake.
func tableOf(v values) (t transport.Table, err error) {
	groups, pairs := v.elements("groups"), v.elements("modes")
	if len(groups) > maxGroups || len(pairs) > maxPairs {
		return t, fmt.Errorf("%d groups and %d pairs", len(groups), len(pairs))
	}
	for _, i := range groups {
		g := transport.Group{Name: string(v.AppendText(nil, v.Member(i, "name")))}
		members := v.Member(i, "members")
		if int(v.Nodes[members].Size) > maxMembers {
			return t, fmt.Errorf("a group of %d members", v.Nodes[members].Size)
		}
		for k := members + 1; k < v.Next(members); k++ {
			if v.Nodes[k].Num > lastOpcode {
				return t, fmt.Errorf("a group with opcode 0x%X", v.Nodes[k].Num)
			}
			g.Members = append(g.Members, uint8(v.Nodes[k].Num))
		}
		t.Groups = append(t.Groups, g)
	}
	for _, i := range pairs {
		opcode := v.member(i, "opcode")
		if opcode < 0 || opcode > lastOpcode {
			return t, fmt.Errorf("a mode for opcode 0x%X", opcode)
		}
		t.Pairs = append(t.Pairs, transport.Pair{Opcode: uint8(opcode), Mode: transport.Mode(v.member(i, "mode"))})
	}
	return t, nil
}
