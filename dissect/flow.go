package dissect

import (
	"encoding/binary"
	"net/netip"
	"time"

	"opscope/reassembly"
	"opscope/schema"
)

// Limits of the flow table. A flow takes some 400 bytes, and its streams what
// they have begun.
const (
	// MaxFlows is the largest number of flows that are known at a time; the one
	// that was quiet the longest makes room.
	MaxFlows = 65536
	// closedFlow is how long a closed connection is remembered, for what comes
	// late: the time that TCP itself keeps the ports back. It is as long for a flow
	// of no known protocol.
	closedFlow = 2 * time.Minute
	// closedSession is how long the flows of a session that is over are remembered when
	// they have fallen silent: longer than a sender takes to repeat its last segment four
	// times, which it does after 1, 2, 4 and 8 s (RFC 6298).
	closedSession = 20 * time.Second
	// idleFlow is how long two endpoints may exchange no datagram before they are
	// forgotten. No game here is silent for a minute. A connection is never
	// forgotten for its silence, but to make room.
	idleFlow = 10 * time.Minute
)

// flowKey names a flow: the lower end first.
type flowKey struct {
	low, high         [16]byte
	lowPort, highPort uint16
	transport         schema.Transport
	tunnel            Tunnel
}

// keyOf returns the key of the flow that a packet belongs to, and which of its
// ends sent the packet.
func keyOf(h *Headers, t schema.Transport) (flowKey, reassembly.Side) {
	k := flowKey{
		low: h.Src.As16(), high: h.Dst.As16(), lowPort: h.SrcPort, highPort: h.DstPort,
		transport: t, tunnel: h.Tunnel,
	}
	if k.lowPort < k.highPort || k.lowPort == k.highPort && h.Src.Compare(h.Dst) <= 0 {
		return k, 0
	}
	k.low, k.high, k.lowPort, k.highPort = k.high, k.low, k.highPort, k.lowPort
	return k, 1
}

// evidence is what the roles of a flow's ends rest on.
type evidence uint8

const (
	noEvidence   evidence = iota
	portEvidence          // a guess
	synEvidence
	saidEvidence // by what was sent, or by another flow
)

// flowState is whether a flow belongs to a protocol.
type flowState uint8

const (
	undecided flowState = iota // its first bytes will tell
	accepted
	ignored // of no known protocol
)

// Flow is a pair of endpoints and a transport, both directions.
type Flow struct {
	ID        int // from 1
	Transport schema.Transport
	Ends      [2]netip.AddrPort // by side
	Session   *Session          // nil while nobody knows

	run      *run
	key      flowKey
	protocol Protocol
	port     string // name of the protocol that has its port, where it is another one's
	state    flowState
	client   int8 // the client's side, -1 while unknown
	evidence evidence
	opened   bool // its SYN was seen

	conn     *reassembly.Conn
	streams  []stream   // of a connection, by side
	queue    []*waiting // datagrams that wait for context, oldest first
	segments Segments   // what was odd about its own
	traffic  traffic    // since it was last accounted for
	unread   int64      // bytes of datagrams that came before that
	looks    int        // first datagrams or chunks that told nothing
	owned    bool       // its session knows it by what it said

	last       time.Time
	done       bool   // the connection has ended
	ending     string // how
	prev, next *Flow  // by last
}

// forgotten reports whether a flow has been quiet for so long that nothing more is
// expected of it.
func (f *Flow) forgotten(now time.Time) bool {
	quiet := now.Sub(f.last)
	switch {
	case f.done, f.state == ignored, f.state == undecided && f.protocol == nil:
		return quiet > closedFlow
	case f.Transport == schema.UDP:
		return quiet > idleFlow
	}
	return false
}

// direction returns the direction of what a side sends.
func (f *Flow) direction(side reassembly.Side) Direction {
	switch f.client {
	case int8(side):
		return ClientToServer
	case -1:
		return UnknownDirection
	}
	return ServerToClient
}

// setClient settles the roles, unless better evidence already did.
func (f *Flow) setClient(side reassembly.Side, e evidence) {
	if e < f.evidence {
		return
	}
	f.client, f.evidence = int8(side), e
}

// setSender settles the roles by who sent what a side has sent, unless either may.
func (f *Flow) setSender(side reassembly.Side, by schema.Sender) {
	switch by {
	case schema.Client:
		f.setClient(side, saidEvidence)
	case schema.Server:
		f.setClient(side.Peer(), saidEvidence)
	}
}

// forgetPort takes back the roles that the ports made likely.
func (f *Flow) forgetPort() {
	if f.evidence == portEvidence {
		f.client, f.evidence = -1, noEvidence
	}
}

// ends returns the endpoints of client and server; the first end stands for the
// client as long as nobody knows.
func (f *Flow) ends() (client, server netip.AddrPort) {
	if f.client == 1 {
		return f.Ends[1], f.Ends[0]
	}
	return f.Ends[0], f.Ends[1]
}

// Guessed reports whether the roles of the flow's ends are a guess.
func (f *Flow) Guessed() bool { return f.evidence <= portEvidence }

// Said tells which side sent what c carries, as its content says. Where the roles
// were a guess, they follow, and c.Direction with them.
func (c *Carrier) Said(by schema.Sender) {
	f := c.Flow
	if f.evidence > portEvidence {
		return
	}
	if d := c.Direction; d == UnknownDirection {
		c.Direction = ClientToServer
		if by == schema.Server {
			c.Direction = ServerToClient
		}
		f.client = int8(c.side)
		if by == schema.Server {
			f.client = int8(c.side.Peer())
		}
	} else if d.Sender() != by {
		c.Direction = d.Reverse()
		f.client = 1 - f.client
	}
	f.evidence = saidEvidence
	s := f.Session
	if s == nil {
		return
	}
	if !s.ofPeers() {
		s.Client, s.Server = f.ends()
		return
	}
	client, ok := s.sameHosts(f)
	if ok { // else it is a broadcast
		s.Client, s.Server = f.ends()
	}
	if !s.said || ok && client != f.client {
		s.agree()
	}
}

// Ends returns the ends that sent and that received what c carries.
func (c *Carrier) Ends() (src, dst netip.AddrPort) {
	return c.Flow.Ends[c.side], c.Flow.Ends[c.side.Peer()]
}

// Turn gives c the direction that the roles of its flow's ends say by now.
func (c *Carrier) Turn() { c.Direction = c.Flow.direction(c.side) }

// flowTable holds the flows of a capture, the one heard of last at its end.
type flowTable struct {
	flows       map[flowKey]*Flow
	near        [nearFlows]*Flow // those heard of lately, by a hash of their ends
	first, last *Flow
	count       int // ever
}

// nearFlows is how many flows are found without the table, if their hashes differ: so many
// that two of some hundred rarely take turns at one place.
const (
	nearBits  = 12
	nearFlows = 1 << nearBits
)

// find returns the flow that a packet belongs to, and which of its ends sent the packet; nil
// for one that is not there yet.
func (t *flowTable) find(h *Headers, over schema.Transport) (*Flow, reassembly.Side) {
	near := t.nearby(h.Source(), h.Destination())
	if f := *near; f != nil && f.Transport == over && f.key.tunnel == h.Tunnel {
		if side, ok := f.between(h.Source(), h.Destination()); ok {
			return f, side
		}
	}
	k, side := keyOf(h, over)
	f := t.flows[k]
	if f != nil {
		*near = f
	}
	return f, side
}

// between reports whether the flow runs between two ends, and on which side the first one is.
func (f *Flow) between(src, dst netip.AddrPort) (side reassembly.Side, ok bool) {
	switch {
	case f.Ends[0] == src && f.Ends[1] == dst:
		return 0, true
	case f.Ends[1] == src && f.Ends[0] == dst:
		return 1, true
	}
	return 0, false
}

// nearby returns the place among the flows heard of lately of one between two ends, which
// may change places.
func (t *flowTable) nearby(a, b netip.AddrPort) **Flow {
	const odd = 0x9e3779b97f4a7c15 // of the golden ratio, as Knuth's multiplicative hash has it
	return &t.near[(endHash(a)+endHash(b))*odd>>(64-nearBits)]
}

// endHash returns a hash of one end, of which few make the same sum as those of two others.
func endHash(e netip.AddrPort) uint64 {
	const odd = 0xff51afd7ed558ccd
	n := uint64(e.Port()) << 48
	if a := e.Addr(); a.Is4() {
		b := a.As4()
		n ^= uint64(binary.NativeEndian.Uint32(b[:]))
	} else {
		b := a.As16()
		n ^= binary.NativeEndian.Uint64(b[8:])
	}
	return n * odd
}

// add makes a new flow.
func (t *flowTable) add(h *Headers, over schema.Transport) *Flow {
	t.count++
	k, side := keyOf(h, over)
	f := &Flow{ID: t.count, Transport: over, key: k, client: -1}
	f.Ends[side], f.Ends[side.Peer()] = h.Source(), h.Destination()
	if t.flows == nil {
		t.flows = make(map[flowKey]*Flow)
	}
	t.flows[k] = f
	t.append(f)
	return f
}

// touch moves a flow to the end. Time, here, never goes back.
func (t *flowTable) touch(f *Flow, now time.Time) {
	f.last = now
	if t.last != f {
		t.unlink(f)
		t.append(f)
	}
}

func (t *flowTable) append(f *Flow) {
	f.prev, f.next = t.last, nil
	if t.last != nil {
		t.last.next = f
	} else {
		t.first = f
	}
	t.last = f
}

func (t *flowTable) unlink(f *Flow) {
	if f.prev != nil {
		f.prev.next = f.next
	} else {
		t.first = f.next
	}
	if f.next != nil {
		f.next.prev = f.prev
	} else {
		t.last = f.prev
	}
}

func (t *flowTable) remove(f *Flow) {
	t.unlink(f)
	f.prev, f.next = nil, nil // so that one which is still known keeps no others alive
	delete(t.flows, f.key)
	if near := t.nearby(f.Ends[0], f.Ends[1]); *near == f {
		*near = nil
	}
}
