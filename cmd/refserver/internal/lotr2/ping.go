package lotr2

import (
	"fmt"
	"net/netip"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
)

// watch pings those of whom nothing was heard for a while, over and over. While the
// game runs that does not happen.
func (p *peer) watch(now time.Time) {
	for _, l := range p.links {
		if l.datagrams != 0 && !l.leaving && now.Sub(l.heardAt) >= pingEvery {
			l.heardAt = now // the next one is not due before as long a time
			p.ping(now, l)
		}
	}
	p.after(now, time.Second, p.watch)
}

// ping asks a peer for a sign of life.
func (p *peer) ping(now time.Time, l *link) {
	tick := uint32(now.Sub(p.started).Milliseconds())
	p.cast(now, netip.AddrPortFrom(l.addr, l.datagrams), 0, "Ping", schema.Values{"id_from": p.system, "tick": tick})
}

// cast sends a message of DirectPlay as a datagram, from one of the own ports.
func (p *peer) cast(now time.Time, to netip.AddrPort, port uint16, message string, v schema.Values) {
	r, data, err := p.compose(message, v)
	if err != nil {
		p.observer.Event(now, "dropped", err.Error())
		return
	}
	r.ID = p.NextID()
	if l := p.linkTo(to.Addr()); l != nil {
		r.Aside = l.aside()
	}
	p.Do(machine.Output{Kind: machine.SendDatagram, Peer: to, Port: port, Data: data, Records: []machine.Record{r}})
}

// datagram takes a datagram.
func (p *peer) datagram(now time.Time, in machine.Input) {
	f, err := p.readDatagram(in)
	switch {
	case err != nil:
		p.stranger(now, "malformed", fmt.Sprintf("%s: %v", in.Peer, err))
	case f.Message == "Ping":
		p.pinged(now, in.Peer, f)
	case f.Message == "Pong":
		if l := p.linkTo(in.Peer.Addr()); l != nil {
			l.heardAt = now
			p.observer.Received(now, in.Peer, f.Record)
		}
	default:
		p.role.found(now, in.Peer, f)
	}
}

// readDatagram decodes a datagram: one frame of DirectPlay that fills it.
func (p *peer) readDatagram(in machine.Input) (received, error) {
	f, err := p.framing.Find(in.Data, "dplay")
	if err != nil {
		return received{}, err
	}
	if f.Size != len(in.Data) {
		return received{}, fmt.Errorf("a frame of %d bytes in a datagram of %d", f.Size, len(in.Data))
	}
	r, fault := p.read(in.Data, p.others, schema.UDP)
	if r.game {
		return r, fmt.Errorf("%s: a message of the game", r.Message)
	}
	r.Port = in.Port
	if l := p.linkTo(in.Peer.Addr()); l != nil {
		r.Aside = l.aside()
	}
	return r, fault
}

// pinged answers a ping with the own id and the ping's tick; a stranger is told that
// nobody knows it (section 5.1).
func (p *peer) pinged(now time.Time, from netip.AddrPort, f received) {
	b := body{f.Body}
	l := p.linkTo(from.Addr())
	if l == nil || l.system != b.id("id_from") {
		if p.stranger(now, "stranger", fmt.Sprintf("a ping from %s", from)) {
			p.cast(now, from, f.Port, "YouAreDead", nil)
		}
		return
	}
	p.observer.Received(now, from, f.Record)
	l.datagrams = from.Port()
	p.cast(now, from, f.Port, "Pong", schema.Values{"id_from": p.system, "tick": b.Number("tick")})
}

// stranger tells of somebody who is nobody's, as far as that is told. It reports
// whether it was.
func (p *peer) stranger(now time.Time, code, text string) bool {
	if p.strangers++; p.strangers > maxStrangers {
		return false
	}
	p.observer.Event(now, code, text)
	return true
}
