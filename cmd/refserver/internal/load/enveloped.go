package load

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"opscope/cmd/refserver/internal/scenario"
	"opscope/cmd/refserver/internal/tape"
	"opscope/cmd/refserver/internal/wulfram"
	"opscope/schema"
)

// What the packets of an enveloped load are like: those of the measurements that tools are
// compared by have 2.9 records and 412 bytes, and 55 of 100 are datagrams.
const (
	datagrams   = 0.55
	mostTurn    = 3 // records, but for acknowledgements
	fullTurn    = 1300
	mostPending = 8 // records that wait for an acknowledgement, before one is sent for it alone
	mss         = 1460
	// lead is before the first record of a session, for its connection to be opened.
	lead = 10 * time.Millisecond

	either = schema.TCP | schema.UDP
)

// envelop plays a session of Wulfram, and has what is said in it said again by peers who put
// an envelope around each record: their datagrams hold several records, and part of what went
// by UDP goes by TCP.
func envelop(seed uint64, times int, n *names) (*session, error) {
	usual := scenario.Crowded(seed, times)
	_, truth, err := usual.Rehearse(seed)
	if err != nil {
		return nil, err
	}
	e := &enveloper{
		session: &session{}, names: n, chance: rand.New(rand.NewPCG(seed, 11)), talks: map[netip.Addr]*talk{},
	}
	for i := range truth.Sent {
		if s := &truth.Sent[i]; s.Resend == 0 && !s.Copy {
			if err := e.take(s); err != nil {
				return nil, err
			}
		}
	}
	for _, t := range e.order {
		if err := t.end(); err != nil {
			return nil, err
		}
	}
	for i := range e.packets {
		e.size += int64(overhead + (len(e.packets[i].data)+3)&^3)
	}
	return e.session, nil
}

// enveloper makes a session of what was said in another one.
type enveloper struct {
	*session
	names  *names
	chance *rand.Rand
	stack  tape.Stack
	talks  map[netip.Addr]*talk // by the client's host
	order  []*talk
	last   time.Duration // of the last packet
}

// talk is a client and the server.
type talk struct {
	*enveloper
	sides [2]side // client, server
	begun bool    // the game has, and records may share packets
	met   bool    // both handshakes are said
}

// side is what one of them says.
type side struct {
	*wulfram.Envelopes
	udp, tcp netip.AddrPort // its ends, once known
	paths    [2]int         // of its datagrams and its segments
	seq      uint32
	turn     []said // what it says next
	size     int
	most     int // records of the turn
	forced   schema.Transport
	heard    []mark // what it has to acknowledge
}

// said is a record without an envelope.
type said struct {
	message string
	opcode  uint8
	body    []byte
}

// mark is a record to be acknowledged.
type mark struct {
	opcode uint8
	seq    uint16
}

func (e *enveloper) talk(client netip.Addr) *talk {
	t := e.talks[client]
	if t == nil {
		t = &talk{enveloper: e}
		for i, sender := range []schema.Sender{schema.Client, schema.Server} {
			t.sides[i].Envelopes = wulfram.NewEnvelopes(sender)
			t.sides[i].paths = [2]int{4*len(e.order) + i, 4*len(e.order) + 2 + i}
			t.sides[i].seq = 1000 * uint32(1+i)
		}
		e.talks[client] = t
		e.order = append(e.order, t)
	}
	return t
}

// take takes the next record that was sent.
func (e *enveloper) take(s *scenario.Sent) error {
	ends, at := [2]netip.AddrPort{s.Src, s.Dst}, 0
	if s.Sender == schema.Server {
		ends, at = [2]netip.AddrPort{s.Dst, s.Src}, 1
	}
	t := e.talk(ends[0].Addr())
	now := max(e.last, s.Time.Sub(scenario.Start)+lead)
	if err := t.connect(s.Transport, ends, now); err != nil {
		return err
	}
	x := &t.sides[at]
	opcode := uint8(s.Opcode)
	if x.Control(opcode) {
		return nil // they say others of their own
	}
	forced := s.Transport
	if t.begun && s.Transport == schema.UDP && x.EitherWay(opcode) {
		forced = either
	}
	r := said{s.Message, opcode, x.Body(s.Bytes, opcode, s.Mode)}
	if len(x.turn) > 0 && (x.forced != either && forced != either && x.forced != forced || x.size+len(r.body) > fullTurn) {
		if err := t.speak(at, now); err != nil {
			return err
		}
	}
	if len(x.turn) == 0 {
		x.forced, x.most = either, 1+e.chance.IntN(mostTurn)
	}
	if forced != either {
		x.forced = forced
	}
	x.turn, x.size = append(x.turn, r), x.size+len(r.body)
	if !t.begun || len(x.turn) >= x.most {
		if err := t.speak(at, now); err != nil {
			return err
		}
	}
	t.begun = t.begun || s.Message == "VIEW_UPDATE" && s.Transport == schema.UDP
	return nil
}

// connect opens a connection, or the association by UDP, when the first record is to go over
// it.
func (t *talk) connect(via schema.Transport, ends [2]netip.AddrPort, now time.Duration) error {
	c, s := &t.sides[0], &t.sides[1]
	switch {
	case via == schema.TCP && !c.tcp.IsValid():
		c.tcp, s.tcp = ends[0], ends[1]
		t.flows++
		for i, flags := range []tape.Flags{tape.SYN, tape.SYN | tape.ACK, tape.ACK} {
			if err := t.segment(i%2, flags, nil, nil, now); err != nil {
				return err
			}
		}
	case via == schema.UDP && !c.udp.IsValid():
		c.udp, s.udp = ends[0], ends[1]
		t.flows++
		return t.greet(now)
	}
	return nil
}

// greet has both sides say how they talk, and answer the other.
func (t *talk) greet(now time.Duration) error {
	var clocks [2]uint32
	for at := range t.sides {
		data, clock, err := t.sides[at].AppendHandshake(nil)
		if err != nil {
			return err
		}
		clocks[at] = clock
		if err := t.datagram(at, data, []int{t.record("D_HANDSHAKE")}, now); err != nil {
			return err
		}
	}
	for at := range t.sides {
		data, err := t.sides[at].AppendAnswer(nil, clocks[1-at])
		if err != nil {
			return err
		}
		if err := t.datagram(at, data, []int{t.record("D_ACK")}, now); err != nil {
			return err
		}
	}
	t.met = true
	return nil
}

// record notes a record of a message, which one packet carries unless it is said otherwise.
func (t *talk) record(message string) int {
	t.records = append(t.records, record{t.names.number(message), 1})
	return len(t.records) - 1
}

// speak sends the turn of a side.
func (t *talk) speak(at int, now time.Duration) error {
	x := &t.sides[at]
	via := x.forced
	if via == either {
		via = schema.TCP
		if t.chance.Float64() < datagrams || !x.tcp.IsValid() {
			via = schema.UDP
		}
	}
	turn := x.turn
	x.turn, x.size = nil, 0
	if via == schema.TCP {
		return t.write(at, turn, now)
	}
	return t.send(at, turn, now)
}

// send sends records in a datagram, with the acknowledgements that are due.
func (t *talk) send(at int, turn []said, now time.Duration) (err error) {
	x, peer := &t.sides[at], &t.sides[1-at]
	var data []byte
	var records []int
	for _, r := range turn {
		var seq uint16
		data, seq = x.AppendRecord(data, r.opcode, r.body)
		records = append(records, t.record(r.message))
		peer.heard = append(peer.heard, mark{r.opcode, seq})
	}
	for _, m := range x.heard {
		if data, err = x.AppendAck(data, m.opcode, m.seq); err != nil {
			return err
		}
		records = append(records, t.record("D_ACK"))
	}
	x.heard = nil
	if err := t.datagram(at, data, records, now); err != nil || len(peer.heard) < mostPending {
		return err
	}
	return t.send(1-at, nil, now)
}

// write writes records as frames, in segments.
func (t *talk) write(at int, turn []said, now time.Duration) error {
	x := &t.sides[at]
	var data []byte
	var ends, records []int
	for _, r := range turn {
		data = x.AppendFrame(data, r.opcode, r.body)
		ends, records = append(ends, len(data)), append(records, t.record(r.message))
		t.records[len(t.records)-1].packets = 0 // they are counted below
	}
	for from := 0; from < len(data); from += mss {
		to := min(from+mss, len(data))
		var carried []int
		start := 0
		for i, end := range ends {
			if start < to && end > from {
				carried = append(carried, records[i])
				t.records[records[i]].packets++
			}
			start = end
		}
		if err := t.segment(at, tape.ACK|tape.PSH, data[from:to], carried, now); err != nil {
			return err
		}
	}
	return nil
}

// segment sends a segment.
func (t *talk) segment(at int, flags tape.Flags, data []byte, records []int, now time.Duration) error {
	x, peer := &t.sides[at], &t.sides[1-at]
	g := tape.Segment{Src: x.tcp, Dst: peer.tcp, Seq: x.seq, Ack: peer.seq, Flags: flags, Window: 64240, Data: data}
	if flags&tape.ACK == 0 {
		g.Ack = 0
	}
	p, err := t.stack.Segment(&g)
	if err != nil {
		return err
	}
	x.seq += uint32(len(data))
	if flags&(tape.SYN|tape.FIN) != 0 {
		x.seq++
	}
	t.packet(p.Data, records, x.paths[1], now)
	return nil
}

// datagram sends a datagram.
func (t *talk) datagram(at int, data []byte, records []int, now time.Duration) error {
	x, peer := &t.sides[at], &t.sides[1-at]
	list, err := t.stack.Datagram(x.udp, peer.udp, data)
	if err != nil {
		return err
	}
	if len(list) != 1 {
		return fmt.Errorf("a datagram of %d bytes comes in %d packets", len(data), len(list))
	}
	t.packet(list[0].Data, records, x.paths[0], now)
	return nil
}

func (t *talk) packet(data []byte, records []int, path int, now time.Duration) {
	now = max(now, t.last+time.Microsecond)
	t.last = now
	p := packet{after: now, data: data, records: records, path: path}
	p.segment, p.whole = kindOf(data)
	t.packets = append(t.packets, p)
}

// end says what is left to be said, and closes the connection.
func (t *talk) end() error {
	for at := range t.sides {
		if len(t.sides[at].turn) > 0 {
			if err := t.speak(at, t.last); err != nil {
				return err
			}
		}
	}
	for at := range t.sides {
		if len(t.sides[at].heard) > 0 {
			if err := t.send(at, nil, t.last); err != nil {
				return err
			}
		}
	}
	if !t.sides[0].tcp.IsValid() {
		return nil
	}
	for i, flags := range []tape.Flags{tape.FIN | tape.ACK, tape.FIN | tape.ACK, tape.ACK} {
		if err := t.segment(i%2, flags, nil, nil, t.last); err != nil {
			return err
		}
	}
	return nil
}
