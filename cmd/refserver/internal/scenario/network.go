package scenario

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"opscope/cmd/refserver/internal/clock"
	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/tape"
)

const (
	latency  = 18 * time.Millisecond // one way, half of it on each side of the tape
	jitter   = 3 * time.Millisecond
	sendTime = 11 * time.Microsecond // between two packets of one host
	// maxTicks is how often a machine may want another Tick at one and the same
	// time before it counts as stuck.
	maxTicks = 1000
)

// network is the hosts, and what lies between them.
type network struct {
	clock.Clock
	stack  tape.Stack
	camera *tape.Camera
	shape  Shape

	before, behind dice
	jitter         dice       // of no faults: for usual delays
	random         *rand.Rand // for initial sequence numbers and cuts

	nodes     []*node
	endpoints map[pair]*endpoint
	fifo      map[path]time.Time // when the last packet of a path came to its end

	wire      int // packets on the wire so far
	datagrams []*transmission
	streams   []*endpoint
	faults    []Fault
	events    []Event
	err       error // the tape's first
}

// pair is the two ends of a connection, seen from the first.
type pair struct{ local, remote netip.AddrPort }

// path is one part of the way between two hosts.
type path struct {
	src, dst netip.Addr
	place    Place
}

// node is a machine with its place on the network: a UDP socket, and as many more and
// as many connections as it likes.
type node struct {
	net     *network
	name    string
	addr    netip.AddrPort // of its first UDP socket
	ports   []uint16       // of the others
	listen  netip.AddrPort // where it accepts connections, if it is valid
	server  bool
	machine machine.Machine
	done    bool

	conns   map[machine.Conn]*endpoint
	counted machine.Conn // connections accepted so far; they are numbered downwards
	port    uint16       // of the last connection that was dialled
	binds   uint16       // how many ports the machine has asked for
	sent    time.Time    // when its last packet left
	ticking time.Time    // when a Tick is due
	stuck   int
	carrier *transmission // what the machine is being given
	acked   map[int]Acknowledgement
}

// Event is something that a machine tells beside its records.
type Event struct {
	Time time.Time
	By   string // name of the machine
	Code string
	Text string
}

// Acknowledgement is one as the sender of a record learned it.
type Acknowledgement struct {
	Time   time.Time
	Packet int // that carried it, as the capture counts; 0 where it has none
}

// add gives a machine its place.
func (n *network) add(r *Role) *node {
	x := &node{
		net: n, name: r.Name, addr: r.Addr, ports: slices.Clone(r.Ports), listen: r.Listen, server: r.Server, port: cmp.Or(r.Dials, r.Addr.Port()),
		conns: map[machine.Conn]*endpoint{}, acked: map[int]Acknowledgement{},
	}
	if r.Server && !x.listen.IsValid() {
		x.listen = r.Addr
	}
	x.machine = r.Build(observer{x})
	n.nodes = append(n.nodes, x)
	return x
}

// begin gives a machine its first Tick.
func (x *node) begin(at time.Time) {
	x.net.At(at, func() { x.handle(machine.Input{Kind: machine.Tick}) })
}

// broadcast is the address of everybody on the network.
var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// hears reports whether the machine has a UDP socket for datagrams to addr.
func (x *node) hears(addr netip.AddrPort) bool {
	if addr.Addr() != x.addr.Addr() && addr.Addr() != broadcast {
		return false
	}
	return addr.Port() == x.addr.Port() || slices.Contains(x.ports, addr.Port())
}

// handle has the machine handle an input, and does what it returns.
func (x *node) handle(in machine.Input) {
	if x.done {
		return
	}
	for _, out := range x.machine.Handle(x.net.Now, in) {
		x.do(out)
	}
	x.schedule()
}

// schedule has the machine woken when it wants to be.
func (x *node) schedule() {
	at := x.machine.Deadline()
	if at.IsZero() || x.done {
		x.ticking = time.Time{}
		return
	}
	if at.After(x.net.Now) {
		x.stuck = 0
	} else if x.stuck++; x.stuck > maxTicks {
		x.net.fail(fmt.Errorf("%s wants one tick after the other at %v", x.name, at))
		return
	} else {
		at = x.net.Now
	}
	if at.Equal(x.ticking) {
		return
	}
	x.ticking = at
	x.net.At(at, func() {
		if x.ticking.Equal(at) {
			x.ticking = time.Time{}
			x.handle(machine.Input{Kind: machine.Tick})
		}
	})
}

// do carries out what the machine wants.
func (x *node) do(out machine.Output) {
	c := x.conns[out.Conn]
	switch out.Kind {
	case machine.SendDatagram:
		x.sendDatagram(out)
	case machine.Bind:
		x.bind(out.Conn)
	case machine.Unbind:
		x.ports = slices.DeleteFunc(x.ports, func(p uint16) bool { return p == out.Port })
	case machine.Dial:
		x.dial(out)
	case machine.Done:
		x.done = true
	case machine.SendStream:
		if c == nil || !c.write(out) {
			x.net.event(x.name, "not_sent", fmt.Sprintf("%d bytes for connection %d, which is closed", len(out.Data), out.Conn))
		}
	case machine.Close:
		if c != nil {
			c.close()
		}
	case machine.Abort:
		if c != nil {
			c.abort()
		}
	}
}

func (n *network) event(by, code, text string) {
	n.events = append(n.events, Event{n.Now, by, code, text})
}

// fail keeps the first error, which ends the run.
func (n *network) fail(err error) {
	if n.err == nil {
		n.err = err
	}
}

// observer passes on what a machine tells.
type observer struct{ x *node }

// Received is not of interest: the network knows what arrives.
func (observer) Received(time.Time, netip.AddrPort, machine.Record) {}

// Acknowledged notes the datagram that brought an acknowledgement; the first one
// counts.
func (o observer) Acknowledged(now time.Time, id int) {
	if _, ok := o.x.acked[id]; ok {
		return
	}
	a := Acknowledgement{Time: now}
	if t := o.x.carrier; t != nil {
		a.Packet = t.lastPacket()
	}
	o.x.acked[id] = a
}

// Event notes it.
func (o observer) Event(_ time.Time, code, text string) { o.x.net.event(o.x.name, code, text) }

// passage is a packet on its way.
type passage struct {
	from     *node
	src, dst netip.AddrPort
	packet   tape.Packet
	comment  string
	// taped is told where the packet is on the wire, from 1, its number in the
	// capture and how many of its bytes the capture has; the number is 0 for none.
	taped func(wire, number, captured int)
	// arrive is called when the packet reaches its receiver, perhaps twice.
	arrive func()
}

// send sends a packet: it passes the tape after a while, and its receiver after
// another.
func (n *network) send(p *passage) {
	leaves := n.Now
	if next := p.from.sent.Add(sendTime); leaves.Before(next) {
		leaves = next
	}
	p.from.sent = leaves
	f := n.before.draw()
	if f.lost {
		n.fault(p, BeforeTape, "lost", 0, 0)
		return
	}
	n.At(n.arrival(p, BeforeTape, leaves, f), func() { n.pass(p) })
}

// pass has a packet pass the tape. What becomes of it behind is drawn first, so that a
// comment can say it.
func (n *network) pass(p *passage) {
	f := n.behind.draw()
	comment := p.comment
	switch {
	case f.lost:
		comment = joined(comment, "lost behind the tape")
	case f.twice:
		comment = joined(comment, "duplicated behind the tape")
	}
	n.wire++
	number, captured, err := n.camera.Take(n.Now, p.src.Addr(), p.packet.Data, comment)
	if err != nil {
		n.fail(err)
		return
	}
	wire := n.wire
	switch {
	case number == 0:
		n.fault(p, InCapture, "missed", wire, 0)
	case captured < len(p.packet.Data):
		n.fault(p, InCapture, "cut", wire, number)
	}
	p.taped(wire, number, captured)
	if f.lost {
		n.fault(p, BehindTape, "lost", wire, number)
		return
	}
	if f.late {
		n.fault(p, BehindTape, "delayed", wire, number)
	}
	arrives := n.arrival(p, BehindTape, n.Now, f)
	n.At(arrives, p.arrive)
	if f.twice {
		n.fault(p, BehindTape, "duplicated", wire, number)
		n.At(arrives.Add(time.Millisecond), p.arrive)
	}
}

// arrival returns when a packet reaches the end of a part of its way: behind those
// before it, unless it is late, when others overtake it.
func (n *network) arrival(p *passage, place Place, leaves time.Time, f fate) time.Time {
	usual := n.jitter.draw().delay
	at := leaves.Add(latency/2 + usual)
	if f.late {
		if place == BeforeTape {
			n.fault(p, place, "delayed", 0, 0)
		}
		return at.Add(f.delay)
	}
	k := path{p.src.Addr(), p.dst.Addr(), place}
	if last := n.fifo[k]; !at.After(last) {
		at = last.Add(time.Microsecond)
	}
	n.fifo[k] = at
	return at
}

func (n *network) fault(p *passage, place Place, what string, wire, number int) {
	n.faults = append(n.faults, Fault{Time: n.Now, Place: place, What: what, Wire: wire, Packet: number, Src: p.src, Dst: p.dst})
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + ", " + b
}
