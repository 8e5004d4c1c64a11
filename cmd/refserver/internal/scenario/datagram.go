package scenario

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/tape"
)

// transmission is one time that a datagram goes over the wire.
type transmission struct {
	by       *node
	number   int // of all, from 1
	src, dst netip.AddrPort
	sent     time.Time
	data     []byte
	records  []machine.Record
	copy     bool // the network made it
	packets  []taped
	arrivals int
	arrived  time.Time // the first time
}

// taped is a packet of a transmission, as far as the capture has it.
type taped struct {
	from, to int // the bytes of the payload that it carries
	end      int // those from from up to here were captured
	wire     int // which packet on the wire, 0 while it has not been there
	number   int // which packet of the capture, 0 for none
	arrived  int
}

// bindFrom is the port before those of the sockets that machines ask for. None is used
// twice.
const bindFrom = 40000

// bind opens one more UDP socket.
func (x *node) bind(asker machine.Conn) {
	x.binds++
	port := bindFrom + x.binds
	x.ports = append(x.ports, port)
	x.net.At(x.net.Now, func() { x.handle(machine.Input{Kind: machine.Bound, Conn: asker, Port: port}) })
}

// sendDatagram sends a datagram to its peer.
func (x *node) sendDatagram(out machine.Output) {
	src := netip.AddrPortFrom(x.addr.Addr(), cmp.Or(out.Port, x.addr.Port()))
	t := &transmission{by: x, src: src, dst: out.Peer, data: out.Data, records: out.Records}
	x.net.transmit(t)
}

// transmit sends the packets of a datagram. The network may make a copy of one that
// is a single packet, with the same bytes.
func (n *network) transmit(t *transmission) {
	t.sent = n.Now
	packets, err := n.stack.Datagram(t.src, t.dst, t.data)
	if err != nil {
		n.fail(err)
		return
	}
	twin := *t
	n.carry(t, packets, "")
	if len(packets) == 1 && n.before.draw().twice {
		twin.copy = true
		n.carry(&twin, packets, "duplicated before the tape")
	}
}

// carry sends the packets of a transmission.
func (n *network) carry(t *transmission, packets []tape.Packet, comment string) {
	n.datagrams = append(n.datagrams, t)
	t.number = len(n.datagrams)
	t.packets = make([]taped, len(packets))
	for i, p := range packets {
		piece := &t.packets[i]
		*piece = taped{from: p.From, to: p.To, end: p.From}
		pass := &passage{from: t.by, src: t.src, dst: t.dst, packet: p, comment: comment}
		pass.taped = func(wire, number, captured int) {
			piece.wire, piece.number = wire, number
			if number > 0 {
				piece.end = p.From + p.Captured(captured)
			}
		}
		pass.arrive = func() {
			piece.arrived++
			n.deliver(t, piece.arrived)
		}
		if t.copy {
			n.fault(pass, BeforeTape, "duplicated", 0, 0)
		}
		n.send(pass)
	}
}

// deliver gives a datagram to its receiver, when all of its packets have come this
// often.
func (n *network) deliver(t *transmission, times int) {
	whole := !slices.ContainsFunc(t.packets, func(p taped) bool { return p.arrived < times })
	if !whole || t.arrivals >= times {
		return
	}
	heard := false
	for _, x := range n.nodes {
		if x == t.by || !x.hears(t.dst) {
			continue
		}
		heard = true
		x.carrier = t
		x.handle(machine.Input{Kind: machine.Datagram, Peer: t.src, Port: t.dst.Port(), Data: slices.Clone(t.data)})
		x.carrier = nil
	}
	if !heard {
		return
	}
	if t.arrivals++; t.arrivals == 1 {
		t.arrived = n.Now
	}
}

// lastPacket returns the number of the packet that completes the datagram in the
// capture, 0 where it is not whole.
func (t *transmission) lastPacket() int {
	last := 0
	for _, p := range t.packets {
		if p.number == 0 {
			return 0
		}
		last = max(last, p.number)
	}
	return last
}
