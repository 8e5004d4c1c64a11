package lotr2

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
	"opscope/schema/wire"
)

const (
	// rate and burst are how many frames a peer may send in a second, and at once. A
	// real one sends some thirty a second.
	rate  = 1000
	burst = 2000
	// maxComplaints is how much nonsense a peer may send before it has to go.
	maxComplaints = 50
	// maxWaiting is how many frames wait for a connection.
	maxWaiting = 256
)

// link is one other peer: a connection that this one has dialled and writes to, and
// one that it has accepted and reads from (section 3).
type link struct {
	peer      *peer
	addr      netip.Addr
	port      uint16 // where it listens
	datagrams uint16 // where it takes datagrams, 0 while that is not known
	side      schema.Sender

	out     machine.Conn // that was dialled, 0 for none
	open    bool
	waiting []machine.Output
	in      machine.Conn   // that was accepted, 0 for none
	from    netip.AddrPort // its other end
	rest    []byte         // the start of a frame that is not whole

	system, user uint32 // ids, 0 while they are not known
	promised     uint32 // an id that was given out, for the player to come
	number       int    // as a player
	last         heard
	heardAt      time.Time // when anything came from it last
	known        bool      // the others know of its system player
	leaving      bool      // its player is gone: the connections are to be reset

	allowance  machine.Allowance // of frames
	complaints int
	gone       bool
}

// link returns the link to a host, a new one if there is none. It returns nil when
// there are too many.
func (p *peer) link(now time.Time, addr netip.Addr, port uint16) *link {
	if l := p.linkTo(addr); l != nil {
		return l
	}
	if len(p.links) >= maxLinks {
		p.stranger(now, "refused", fmt.Sprintf("%s: there are %d others", addr, maxLinks))
		return nil
	}
	l := &link{peer: p, addr: addr, port: port, side: p.others, heardAt: now, allowance: machine.Allowance{Rate: rate, Burst: burst}}
	p.links = append(p.links, l)
	return l
}

func (p *peer) linkTo(addr netip.Addr) *link {
	i := slices.IndexFunc(p.links, func(l *link) bool { return l.addr == addr })
	if i < 0 {
		return nil
	}
	return p.links[i]
}

// linkOf returns the link that a connection belongs to, or nil.
func (p *peer) linkOf(conn machine.Conn) *link {
	i := slices.IndexFunc(p.links, func(l *link) bool { return conn != 0 && (l.in == conn || l.out == conn) })
	if i < 0 {
		return nil
	}
	return p.links[i]
}

// dial opens the connection that the link writes to.
func (l *link) dial() {
	p := l.peer
	p.dials++
	l.out = p.dials
	p.Do(machine.Output{Kind: machine.Dial, Conn: l.out, Peer: netip.AddrPortFrom(l.addr, l.port)})
}

// write writes to the link, once its connection is there.
func (l *link) write(now time.Time, out machine.Output) {
	for i := range out.Records {
		out.Records[i].Aside = l.aside()
	}
	if l.open {
		out.Conn = l.out
		l.peer.Do(out)
		return
	}
	if len(l.waiting) >= maxWaiting {
		l.end(now, "backlog", "it does not take a connection")
		return
	}
	l.waiting = append(l.waiting, out)
	if l.out == 0 {
		l.dial()
	}
}

// aside reports whether neither end is the host.
func (l *link) aside() bool { return l.side == l.peer.side }

// opened is told that the connection is there.
func (l *link) opened() {
	l.open = true
	for _, out := range l.waiting {
		out.Conn = l.out
		l.peer.Do(out)
	}
	l.waiting = nil
}

// send sends a message of DirectPlay over the link.
func (l *link) send(now time.Time, message string, v schema.Values) {
	p := l.peer
	r, data, err := p.compose(message, v)
	if err != nil {
		p.observer.Event(now, "dropped", err.Error())
		return
	}
	r.ID = p.NextID()
	l.write(now, machine.Output{Kind: machine.SendStream, Data: data, Records: []machine.Record{r}})
}

// stream takes bytes of the connection that was accepted.
func (l *link) stream(now time.Time, data []byte) {
	l.heardAt = now
	rest := append(l.rest, data...)
	for !l.gone && len(rest) > 0 {
		f, err := l.peer.framing.Find(rest, "dplay")
		switch {
		case f.Size > maxFrame:
			l.end(now, "malformed", fmt.Sprintf("a frame of %d bytes", f.Size))
			return
		case err != nil && err.Kind == wire.Incomplete:
			l.rest = slices.Clone(rest)
			return
		case err != nil:
			l.end(now, "malformed", err.Error())
			return
		case !l.allowance.Charge(now):
			l.end(now, "flood", "more frames than anybody has to send")
			return
		}
		l.take(now, rest[:f.Size])
		rest = rest[f.Size:]
	}
	l.rest = nil
}

// take takes a frame.
func (l *link) take(now time.Time, data []byte) {
	p := l.peer
	f, err := p.read(data, l.side, schema.TCP)
	f.Aside = l.aside()
	if f.port != 0 {
		l.port = f.port
	}
	if f.game {
		l.message(now, f, err)
		return
	}
	if err != nil {
		l.complain(now, "malformed", err.Error())
		return
	}
	p.observer.Received(now, l.from, f.Record)
	if !f.Opaque {
		p.role.asked(now, l, f)
	}
}

// complain tells of nonsense; too much of it ends the link.
func (l *link) complain(now time.Time, code, text string) {
	if l.complaints++; l.complaints > maxComplaints {
		l.end(now, "nonsense", "too much that makes no sense")
		return
	}
	l.peer.observer.Event(now, code, fmt.Sprintf("%s: %s", l.addr, text))
}

// end resets the connections of the link, and forgets it.
func (l *link) end(now time.Time, code, text string) {
	p := l.peer
	if l.gone {
		return
	}
	l.gone = true
	p.observer.Event(now, code, fmt.Sprintf("%s: %s", l.addr, text))
	for _, conn := range []machine.Conn{l.out, l.in} {
		if conn != 0 {
			p.Do(machine.Output{Kind: machine.Abort, Conn: conn})
		}
	}
	p.links = slices.DeleteFunc(p.links, func(o *link) bool { return o == l })
	p.role.left(now, l)
}

// closed is told that one of the connections is over; then both are.
func (l *link) closed(now time.Time, conn machine.Conn) {
	switch conn {
	case l.out:
		l.out = 0
	case l.in:
		l.in = 0
	}
	l.end(now, "closed", "the peer has closed a connection")
}
