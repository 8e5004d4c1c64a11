package scenario

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
)

// Extent is how much of a record a capture has.
type Extent string

// The extents.
const (
	Whole  Extent = "whole"
	Partly Extent = "partly" // some of its bytes, or all of them in an incomplete datagram
	None   Extent = "none"
)

// Sent is the truth about one record: once for each time that it went over the
// wire in a datagram, and once for a record of a stream.
type Sent struct {
	machine.Record // Offset is that in the datagram, for streams see Position
	By             string
	Sender         schema.Sender // AnySender where neither end is a server
	Transport      schema.Transport
	Src, Dst       netip.AddrPort
	Time           time.Time // when the machine sent it
	Position       int64     // in the datagram, or in the stream
	Bytes          []byte    // as it was sent; borrowed
	Copy           bool      // the network sent it again, before the tape

	Wire     int   // the packet on the wire that completes it, from 1; 0 for never
	Packets  []int // those of the capture that carry bytes of it
	Captured Extent
	// Late says that bytes of it were first seen cut by the snap length, and are
	// there only because its sender sent them again.
	Late     bool
	Arrived  time.Time // the first time; zero for never
	Arrivals int

	Acked    Acknowledgement // as its sender learned it; zero for never
	AckedBy  int             // the first packet in the capture that acknowledges it, 0 for none
	datagram *transmission
}

// Datagram tells the datagrams of records apart: it is 0 for a stream.
func (s *Sent) Datagram() int {
	if s.datagram == nil {
		return 0
	}
	return s.datagram.number
}

// Fragments returns in how many packets the datagram was sent.
func (s *Sent) Fragments() int { return len(s.datagram.packets) }

// DatagramPackets returns the packets of the capture with bytes of the datagram.
func (s *Sent) DatagramPackets() (packets []int) {
	for _, p := range s.datagram.packets {
		if p.number > 0 {
			packets = append(packets, p.number)
		}
	}
	return packets
}

// Stream is the truth about the bytes of one direction of a connection.
type Stream struct {
	Src, Dst netip.AddrPort
	Bytes    int64 // that were on the wire
	Missing  int64 // of those, not in the capture at all
	Inside   int64 // of those, between bytes that are in the capture, behind its first segment
	Late     int64 // bytes that were first seen cut, and came again
	Never    int64 // bytes that were sent, and lost before the tape each time; a FIN may stand behind them
}

// bytes counts the bytes of a stream.
func (e *endpoint) bytes() Stream {
	f := e.look()
	s := Stream{Src: e.local, Dst: e.remote}
	run := int64(0) // missing since the last byte that was captured, if there was one
	begun := false
	first := segment{number: math.MaxInt}
	for _, g := range e.taped {
		if g.number > 0 && g.number < first.number {
			first = g
		}
	}
	for i := range f.wire {
		switch {
		case f.wire[i] == 0:
			if int64(i) < e.next {
				s.Never++
			}
			continue
		case f.captured[i] == 0:
			s.Missing++
			run++
		default:
			if begun && int64(i) > first.from {
				s.Inside += run
			}
			if begun, run = true, 0; f.captured[i] != f.shown[i] {
				s.Late++
			}
		}
		s.Bytes++
	}
	return s
}

// truth lists what was sent, in the order in which it was complete on the wire; what
// never was stands at the end.
func (n *network) truth(acks Acks) []Sent {
	var list []Sent
	for _, t := range n.datagrams {
		list = append(list, t.truth()...)
	}
	for _, e := range n.streams {
		list = append(list, e.truth()...)
	}
	slices.SortStableFunc(list, func(a, b Sent) int {
		if (a.Wire == 0) != (b.Wire == 0) {
			return cmp.Compare(b.Wire, a.Wire)
		}
		return cmp.Or(cmp.Compare(a.Wire, b.Wire), cmp.Compare(a.Position, b.Position))
	})
	n.acknowledge(list, acks)
	return list
}

// said begins the truth about a record.
func (x *node) said(r machine.Record, t schema.Transport, src, dst netip.AddrPort) Sent {
	s := Sent{Record: r, By: x.name, Sender: schema.Client, Transport: t, Src: src, Dst: dst, Captured: None}
	switch {
	case r.Aside:
		s.Sender = schema.AnySender
	case x.server:
		s.Sender = schema.Server
	}
	a, ok := x.acked[r.ID]
	if !ok && r.Resend != 0 {
		a = x.acked[r.Resend]
	}
	s.Acked = a
	return s
}

// truth tells of the records of a datagram.
func (t *transmission) truth() []Sent {
	wire, visible := t.seen()
	list := make([]Sent, 0, len(t.records))
	for _, r := range t.records {
		s := t.by.said(r, schema.UDP, t.src, t.dst)
		s.Time, s.Position, s.Copy, s.datagram = t.sent, int64(r.Offset), t.copy, t
		s.Wire, s.Arrivals, s.Arrived = wire, t.arrivals, t.arrived
		end := r.Offset + r.Size
		s.Bytes = t.data[r.Offset:end]
		for _, p := range t.packets {
			if p.number > 0 && p.from < end && p.end > r.Offset {
				s.Packets = append(s.Packets, p.number)
			}
		}
		slices.Sort(s.Packets)
		s.Captured = extent(s.Packets, end <= visible)
		list = append(list, s)
	}
	return list
}

// seen returns the packet on the wire that completes the datagram, 0 for none, and
// how many of its first bytes the capture gives away: none without all packets.
func (t *transmission) seen() (wire, visible int) {
	whole := true
	for _, p := range t.packets {
		if p.wire == 0 {
			return 0, 0
		}
		wire = max(wire, p.wire)
		whole = whole && p.number > 0
		if visible == p.from {
			visible = p.end
		}
	}
	if !whole {
		visible = 0
	}
	return wire, visible
}

// extent returns how much of a record there is.
func extent(packets []int, all bool) Extent {
	switch {
	case all:
		return Whole
	case len(packets) > 0:
		return Partly
	}
	return None
}

// truth tells of the records of a stream. A byte belongs to the first packet that
// shows it.
func (e *endpoint) truth() []Sent {
	f := e.look()
	list := make([]Sent, 0, len(e.records))
	for _, r := range e.records {
		s := e.node.said(r.Record, schema.TCP, e.local, e.remote)
		s.Time, s.Position, s.Bytes = r.sent, r.from, e.out[r.from:r.to]
		if packets, all := carriers(f.wire, r.span); all {
			s.Wire = slices.Max(packets)
		}
		packets, all := carriers(f.captured, r.span)
		s.Packets = packets
		s.Late = all && !slices.Equal(f.captured[r.from:r.to], f.shown[r.from:r.to])
		s.Captured = extent(packets, all)
		if s.Arrived = e.arrival(r.to); !s.Arrived.IsZero() {
			s.Arrivals = 1
		}
		list = append(list, s)
	}
	return list
}

// arrival returns when the peer had the stream up to a position, the zero time for
// never.
func (e *endpoint) arrival(to int64) time.Time {
	if peer := e.net.endpoints[pair{e.remote, e.local}]; peer != nil {
		for _, a := range peer.told {
			if a.to >= to {
				return a.time
			}
		}
	}
	return time.Time{}
}

// firsts are for each byte of a stream the first packet with it, 0 for none.
type firsts struct {
	wire     []int // as the wire counts
	shown    []int // of the capture, also where the snap length cut the byte
	captured []int // of the capture
}

// look finds the first packets.
func (e *endpoint) look() firsts {
	f := firsts{make([]int, len(e.out)), make([]int, len(e.out)), make([]int, len(e.out))}
	mark := func(list []int, from, to int64, packet int) {
		for i := from; i < to; i++ {
			if list[i] == 0 {
				list[i] = packet
			}
		}
	}
	for _, g := range e.taped {
		mark(f.wire, g.from, g.to, g.wire)
		mark(f.shown, g.from, g.to, g.number)
		mark(f.captured, g.from, g.end, g.number)
	}
	return f
}

// carriers returns the packets with bytes of a span, ascending, and whether they
// have all of them.
func carriers(owners []int, s span) (packets []int, all bool) {
	all = s.to > s.from
	for _, p := range owners[s.from:s.to] {
		if p == 0 {
			all = false
		} else if !slices.Contains(packets, p) {
			packets = append(packets, p)
		}
	}
	slices.Sort(packets)
	return packets, all
}

// Acks says which record of the peer a record acknowledges: by its opcode and
// sequence.
type Acks func(r *machine.Record) (opcode, seq int, ok bool)

// ackKey names a record for its receiver.
type ackKey struct {
	src, dst    netip.AddrPort // of the record
	opcode, seq int
}

// acknowledge finds the first acknowledgement that the capture has of each record. One
// that stands before the record on the wire is of another with its sequence.
func (n *network) acknowledge(list []Sent, acks Acks) {
	if acks == nil {
		return
	}
	seen := map[ackKey][]*Sent{}
	first := map[ackKey]int{} // the packet on the wire with the first copy of a record
	for i := range list {
		s := &list[i]
		if s.Wire == 0 || s.Transport != schema.UDP {
			continue
		}
		if k := s.key(); s.Seq >= 0 && first[k] == 0 {
			first[k] = s.Wire
		}
		if opcode, seq, ok := acks(&s.Record); ok && s.Captured == Whole {
			k := ackKey{s.Dst, s.Src, opcode, seq}
			seen[k] = append(seen[k], s)
		}
	}
	for i := range list {
		s := &list[i]
		k := s.key()
		at := slices.IndexFunc(seen[k], func(a *Sent) bool { return a.Wire > first[k] })
		if s.Seq >= 0 && s.Transport == schema.UDP && s.Wire > 0 && at >= 0 {
			packets := seen[k][at].Packets
			s.AckedBy = packets[len(packets)-1]
		}
	}
}

// key names s for its receiver.
func (s *Sent) key() ackKey { return ackKey{s.Src, s.Dst, s.Opcode, s.Seq} }
