package scenario

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/tape"
)

const (
	window        = 65535
	retryAfter    = 200 * time.Millisecond // of a segment without an acknowledgement, doubled each time
	retryAtMost   = 2 * time.Second
	delayedAck    = 40 * time.Millisecond
	ackEverySize  = 2 // segments
	repeatsOfLoss = 3
)

// endpoint is one end of a connection: enough of TCP that its stream arrives
// whatever happens to segments. Positions count bytes of a stream from 0; the FIN
// stands behind the last one.
//
// There is no congestion and no window: what a machine writes is sent.
type endpoint struct {
	net           *network
	node          *node
	id            machine.Conn
	local, remote netip.AddrPort
	state         endState

	initial   uint32  // sequence number of the SYN
	out       []byte  // all that was written
	una, next int64   // first byte not acknowledged, first not sent
	cuts      []int64 // where what was written at once ends
	last      bool    // a FIN is to follow
	flushing  bool    // written bytes wait for others
	retries   int
	repeats   int   // acknowledgements of una in a row, beside the first
	recover   int64 // what was sent when a loss was noticed: up to here there may be others
	timer     int   // the retry that counts; older ones do not

	remoteInitial uint32
	want          int64 // first byte not received
	pieces        []span
	in            []byte // received from 0 to want, and what is beyond as far as pieces say
	fin           int64  // where the peer's FIN stands, -1 while it is not known
	finished      bool   // it has been reached
	unanswered    int    // segments without an acknowledgement
	answering     int    // the delayed acknowledgement that counts

	records []placed
	taped   []segment // in the order of the wire
	told    []arrival // when the receiver had how much
}

// endState is the state of an endpoint.
type endState uint8

const (
	dialling    endState = iota // sent its SYN
	answered                    // has answered one
	established                 //
	over                        // reset, or refused
)

// span is the bytes from one position up to another.
type span struct{ from, to int64 }

// placed is a record with its place in the stream.
type placed struct {
	machine.Record
	span
	sent time.Time
}

// segment is one that passed the tape.
type segment struct {
	span
	end    int64 // the bytes up to here were captured
	wire   int
	number int // 0 for none
}

// arrival is how far a stream had come at a time.
type arrival struct {
	to   int64
	time time.Time
}

// dial opens a connection to the peer.
func (x *node) dial(out machine.Output) {
	x.port++
	local := netip.AddrPortFrom(x.addr.Addr(), x.port)
	e := x.net.open(x, out.Conn, local, out.Peer)
	e.sendSYN()
}

// open makes an endpoint.
func (n *network) open(x *node, id machine.Conn, local, remote netip.AddrPort) *endpoint {
	e := &endpoint{net: n, node: x, id: id, local: local, remote: remote, fin: -1, initial: n.random.Uint32()}
	if n.shape.Wrap {
		e.initial = -uint32(n.random.IntN(2000)) - 1
	}
	x.conns[id] = e
	n.endpoints[pair{local, remote}] = e
	n.streams = append(n.streams, e)
	return e
}

// sendSYN sends the SYN, or its answer, and again until it is acknowledged.
func (e *endpoint) sendSYN() {
	flags := tape.SYN
	if e.state == answered {
		flags |= tape.ACK
	}
	e.segment(flags, -1, nil, "")
	e.await(5 * e.delay())
}

// delay returns how long to wait for an acknowledgement.
func (e *endpoint) delay() time.Duration { return min(retryAfter<<e.retries, retryAtMost) }

// await has the endpoint try again, unless something happens before.
func (e *endpoint) await(d time.Duration) {
	e.timer++
	this := e.timer
	e.net.After(d, func() {
		if e.timer == this {
			e.retry()
		}
	})
}

// retry sends again what was not acknowledged: a SYN, or the first bytes.
func (e *endpoint) retry() {
	e.retries = min(e.retries+1, 8)
	switch {
	case e.state == over:
	case e.state < established:
		e.sendSYN()
	case e.una < e.next:
		e.resend()
	}
}

// resend sends the first bytes without an acknowledgement again, cut where they
// were or elsewhere.
func (e *endpoint) resend() {
	n := min(e.mss(), e.next-e.una)
	if e.net.chance(e.net.shape.Overlap) && n > 1 {
		n = 1 + int64(e.net.random.IntN(int(min(e.mss(), int64(len(e.out))-e.una))))
	}
	e.recover, e.repeats = e.next, 0
	e.data(e.una, n, "retransmission")
	e.await(e.delay())
}

func (n *network) chance(p float64) bool { return n.random.Float64() < p }

func (e *endpoint) mss() int64 { return int64(e.net.stack.MSS(e.local.Addr())) }

// write takes bytes from the machine, with the records that they are. It returns
// false when nothing can be written any more.
func (e *endpoint) write(out machine.Output) bool {
	if e.state == over || e.last {
		return false
	}
	base := int64(len(e.out))
	for _, r := range out.Records {
		from := base + int64(r.Offset)
		e.records = append(e.records, placed{r, span{from, from + int64(r.Size)}, e.net.Now})
	}
	e.out = append(e.out, out.Data...)
	e.cuts = append(e.cuts, int64(len(e.out)))
	e.flushSoon()
	return true
}

// close has a FIN follow what was written.
func (e *endpoint) close() {
	if e.state != over && !e.last {
		e.last = true
		e.flushSoon()
	}
}

// abort resets the connection.
func (e *endpoint) abort() {
	if e.state != over {
		e.segment(tape.RST|tape.ACK, e.next, nil, "")
		e.end()
	}
}

// end forgets the connection, which is over.
func (e *endpoint) end() {
	e.state = over
	e.timer++
	delete(e.node.conns, e.id)
}

// flushSoon sends what was written once the machine has written all it has to say
// now, or after the time that it waits for more.
func (e *endpoint) flushSoon() {
	if e.flushing {
		return
	}
	e.flushing = true
	e.net.After(e.net.shape.Merge, func() {
		e.flushing = false
		e.flush()
	})
}

// flush sends what was written and not sent.
func (e *endpoint) flush() {
	if e.state != established {
		return
	}
	for e.next < e.size() {
		n := min(e.mss(), e.piece())
		if n > 1 && e.net.chance(e.net.shape.Split) {
			n = 1 + int64(e.net.random.IntN(int(n-1)))
		}
		if e.una == e.next {
			e.retries = 0
			e.await(e.delay())
		}
		e.data(e.next, n, "")
	}
}

// piece returns how many of the bytes to send next may share a segment.
func (e *endpoint) piece() int64 {
	to := int64(len(e.out))
	for e.net.shape.Apart && len(e.cuts) > 0 {
		if to = e.cuts[0]; to > e.next {
			break
		}
		e.cuts = e.cuts[1:]
	}
	return to - e.next
}

// size returns how much there is to send, the FIN included.
func (e *endpoint) size() int64 {
	n := int64(len(e.out))
	if e.last {
		n++
	}
	return n
}

// data sends n bytes from a position on, or as many as there are, and the FIN if it
// follows.
func (e *endpoint) data(from, n int64, comment string) {
	to := min(from+n, int64(len(e.out)))
	flags := tape.ACK
	end := to
	if e.last && to == int64(len(e.out)) {
		flags |= tape.FIN
		end++
	}
	whole := e.net.shape.Apart && len(e.cuts) > 0 && to == e.cuts[0]
	if to > from && (to == int64(len(e.out)) || whole) {
		flags |= tape.PSH
	}
	e.next = max(e.next, end)
	e.segment(flags, from, e.out[from:to], comment)
}

// segment sends a segment that begins at a position; -1 is that of the SYN.
func (e *endpoint) segment(flags tape.Flags, from int64, data []byte, comment string) {
	g := tape.Segment{
		Src: e.local, Dst: e.remote, Seq: e.initial + 1 + uint32(from), Flags: flags, Window: window, Data: slices.Clone(data),
	}
	if flags&tape.ACK != 0 {
		g.Ack = e.acknowledges()
		e.unanswered = 0
		e.answering++
	}
	p, err := e.net.stack.Segment(&g)
	if err != nil {
		e.net.fail(err)
		return
	}
	place := span{from, from + int64(len(data))}
	pass := &passage{from: e.node, src: e.local, dst: e.remote, packet: p, comment: comment}
	pass.taped = func(wire, number, captured int) {
		if len(data) > 0 {
			e.taped = append(e.taped, segment{place, from + int64(p.Captured(captured)), wire, number})
		}
	}
	pass.arrive = func() { e.net.segment(&g) }
	e.net.send(pass)
}

// acknowledges returns the sequence number that the endpoint expects next.
func (e *endpoint) acknowledges() uint32 {
	n := e.remoteInitial + 1 + uint32(e.want)
	if e.want == e.fin {
		n++
	}
	return n
}

// segment takes a segment at its receiver.
func (n *network) segment(g *tape.Segment) {
	if e := n.endpoints[pair{g.Dst, g.Src}]; e != nil {
		e.take(g)
		return
	}
	at := slices.IndexFunc(n.nodes, func(x *node) bool { return x.listen == g.Dst })
	if g.Flags&(tape.SYN|tape.ACK) == tape.SYN && at >= 0 {
		x := n.nodes[at]
		x.counted--
		e := n.open(x, x.counted, g.Dst, g.Src)
		e.state, e.remoteInitial = answered, g.Seq
		e.sendSYN()
		return
	}
	n.refuse(g)
}

// refuse answers a segment for nobody with a reset.
func (n *network) refuse(g *tape.Segment) {
	host := slices.IndexFunc(n.nodes, func(x *node) bool { return x.addr.Addr() == g.Dst.Addr() })
	if host < 0 || g.Flags&tape.RST != 0 {
		return
	}
	answer := tape.Segment{Src: g.Dst, Dst: g.Src, Flags: tape.RST | tape.ACK, Seq: g.Ack, Ack: g.Seq + uint32(len(g.Data))}
	if g.Flags&(tape.SYN|tape.FIN) != 0 {
		answer.Ack++
	}
	p, err := n.stack.Segment(&answer)
	if err != nil {
		n.fail(err)
		return
	}
	n.send(&passage{
		from: n.nodes[host], src: g.Dst, dst: g.Src, packet: p, taped: func(int, int, int) {}, arrive: func() { n.segment(&answer) },
	})
}

// take takes a segment.
func (e *endpoint) take(g *tape.Segment) {
	switch {
	case e.state == over:
		if g.Flags&tape.RST == 0 {
			e.net.refuse(g)
		}
		return
	case g.Flags&tape.RST != 0:
		e.broken()
		return
	case g.Flags&tape.SYN != 0:
		e.synchronize(g)
		return
	case e.state == dialling:
		return // without its SYN it says nothing
	}
	e.acknowledged(g.Ack, len(g.Data) == 0 && g.Flags&tape.FIN == 0)
	e.store(g)
}

// broken takes a reset.
func (e *endpoint) broken() {
	kind := machine.Closed
	if e.state == dialling {
		kind = machine.Refused
	}
	e.end()
	e.node.handle(machine.Input{Kind: kind, Conn: e.id, Peer: e.remote})
}

// synchronize takes a SYN: the answer to one's own, or one that was sent again.
func (e *endpoint) synchronize(g *tape.Segment) {
	switch {
	case g.Flags&tape.ACK == 0:
		if e.state == answered {
			e.sendSYN()
		}
	case e.state == dialling:
		e.remoteInitial = g.Seq
		e.establish()
		e.segment(tape.ACK, e.next, nil, "")
	default:
		e.segment(tape.ACK, e.next, nil, "")
	}
}

// establish tells the machine that the connection is there.
func (e *endpoint) establish() {
	e.state = established
	e.timer++
	e.retries = 0
	e.node.handle(machine.Input{Kind: machine.Opened, Conn: e.id, Peer: e.remote})
	e.flushSoon() // what was written before
}

// acknowledged takes an acknowledgement. Three of the same in a row, in segments
// that bring nothing else, tell of a loss; one that goes on only a little then tells
// of another. RFC 5681 section 3.2 and RFC 6582.
func (e *endpoint) acknowledged(ack uint32, bare bool) {
	if e.state == answered {
		e.establish()
	}
	to := e.una + int64(int32(ack-e.initial-1-uint32(e.una)))
	if to == e.una && bare && e.una < e.next {
		if e.repeats++; e.repeats == repeatsOfLoss {
			e.resend()
		}
	}
	if to <= e.una || to > e.next {
		return
	}
	e.una, e.retries, e.repeats = to, 0, 0
	e.timer++
	switch {
	case e.una < e.recover:
		e.resend()
	case e.una < e.next:
		e.await(e.delay())
	}
}

// store takes the bytes of a segment, gives the machine what is now in order, and
// acknowledges.
func (e *endpoint) store(g *tape.Segment) {
	from := e.want + int64(int32(g.Seq-e.remoteInitial-1-uint32(e.want)))
	to := from + int64(len(g.Data))
	fin := g.Flags&tape.FIN != 0
	if to == from && !fin {
		return
	}
	if fin {
		e.fin = to
	}
	before := e.want
	e.keep(from, g.Data)
	odd := len(e.pieces) > 0 || to <= before && !fin
	if e.unanswered++; odd {
		e.unanswered = ackEverySize
	}
	if e.want > before {
		e.told = append(e.told, arrival{e.want, e.net.Now})
		e.node.handle(machine.Input{Kind: machine.Stream, Conn: e.id, Peer: e.remote, Data: slices.Clone(e.in[before:e.want])})
	}
	if e.fin == e.want {
		e.unanswered = ackEverySize
		e.hangUp()
	}
	e.answer()
}

// hangUp tells the machine that the peer has closed, and closes this side as well.
func (e *endpoint) hangUp() {
	if e.finished || e.state == over {
		return
	}
	e.finished = true
	e.node.handle(machine.Input{Kind: machine.Closed, Conn: e.id, Peer: e.remote})
	e.close()
}

// keep puts bytes in their place.
func (e *endpoint) keep(from int64, data []byte) {
	to := from + int64(len(data))
	if over := to - int64(len(e.in)); over > 0 {
		e.in = append(e.in, make([]byte, over)...)
	}
	copy(e.in[from:], data)
	e.pieces = append(e.pieces, span{from, to})
	slices.SortFunc(e.pieces, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	kept := e.pieces[:0]
	for _, p := range e.pieces {
		if p.from <= e.want {
			e.want = max(e.want, p.to)
		} else {
			kept = append(kept, p)
		}
	}
	e.pieces = kept
}

// answer acknowledges what came, at once or after a while, unless a segment has
// done so in the meantime.
func (e *endpoint) answer() {
	switch {
	case e.unanswered == 0 || e.state == over:
	case e.unanswered >= ackEverySize:
		e.segment(tape.ACK, e.next, nil, "")
	default:
		e.answering++
		this := e.answering
		e.net.After(delayedAck, func() {
			if e.answering == this && e.state != over {
				e.segment(tape.ACK, e.next, nil, "")
			}
		})
	}
}
