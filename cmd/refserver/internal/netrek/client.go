package netrek

import (
	"net/netip"
	"slices"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/script"
	"opscope/schema"
	"opscope/schema/wire"
)

// stream takes bytes of the connection. A client has no way to find a boundary
// again: what is no packet ends it.
func (b *bot) stream(now time.Time, data []byte) {
	rest := append(b.in, data...)
	for !b.Over && len(rest) > 0 {
		r, err := b.read(rest, b.state, schema.TCP)
		if err != nil && err.Kind == wire.Incomplete && len(rest) < lookahead {
			break
		}
		if err != nil {
			b.Finish(now, "malformed", err.Error())
			return
		}
		rest = rest[r.Size:]
		b.observer.Received(now, b.cfg.Server, r)
		b.handle(now, r)
	}
	b.in = slices.Clone(rest)
}

// datagram takes the packets of a datagram. One whose sequence is not beyond the
// last is ignored as a whole, as COW does (section 7).
func (b *bot) datagram(now time.Time, in machine.Input) {
	u := &b.udp
	first := u.asked && !u.remote.IsValid() && in.Peer.Addr() == b.cfg.Server.Addr()
	if in.Peer != u.remote && !first {
		b.observer.Event(now, "stranger", in.Peer.String())
		return
	}
	u.received++
	for data := in.Data; len(data) > 0; {
		r, err := b.read(data, b.state, schema.UDP)
		if err != nil {
			b.observer.Event(now, "malformed", err.Error())
			return
		}
		data = data[r.Size:]
		if !u.remote.IsValid() && r.Message != "SP_UDP_REPLY" {
			b.observer.Event(now, "late", "a datagram of the flow before this one")
			return
		}
		if r.Message == "SP_SEQUENCE" {
			sequence := uint16(r.Body.Number("sequence"))
			if u.counted && !circle.Less(uint64(u.sequence), uint64(sequence)) {
				b.observer.Event(now, "late", "a datagram that comes late, or twice")
				return
			}
			u.sequence, u.counted = sequence, true
			b.reached()
		}
		b.observer.Received(now, in.Peer, r)
		if r.Message == "SP_UDP_REPLY" {
			b.replied(now, in.Peer, r.Body)
			continue
		}
		b.handle(now, r)
	}
}

// reached notes that the server's datagrams come.
func (b *bot) reached() {
	if b.udp.asked {
		b.udp.on = true
	}
	b.got(awaitUDP)
}

// replied takes an SP_UDP_REPLY. Peer is its sender when it came by UDP.
func (b *bot) replied(now time.Time, peer netip.AddrPort, v *schema.Tree) {
	u := &b.udp
	switch v.Number("reply") {
	case replyTCP:
		*u = flow{}
	case replyUDP:
		if !u.asked || u.on || u.remote.IsValid() {
			return
		}
		u.remote = netip.AddrPortFrom(b.cfg.Server.Addr(), uint16(v.Number("port")))
		if peer.IsValid() {
			u.remote = peer
		}
		b.knock(now)
	case replyDenied:
		*u = flow{}
		b.got(awaitUDP)
	case replyVerify:
		u.counted = false
		b.reached()
	}
}

// handle does what a client does about a packet.
func (b *bot) handle(now time.Time, r machine.Record) {
	v := r.Body
	switch r.Message {
	case "SP_BADVERSION":
		b.Finish(now, "refused", "the server does not want it")
	case "SP_FEATURE":
		b.setFeature(b.state, v.Text("name"), v.Number("value"))
	case "SP_YOU", "SP_S_YOU":
		b.you(now, v)
	case "SP_LOGIN":
		b.loggedIn(now, v)
	case "SP_MASK":
		b.masked = v.Number("mask") != 0
		b.Ready = b.Ready || b.accepted
		if b.status == outfit && b.masked {
			b.got(awaitOutfit)
		}
	case "SP_PSTATUS":
		b.changed(v.Number("pnum"), status(v.Number("status")))
	case "SP_PLAYER_INFO":
		if n := v.Number("pnum"); n >= 0 && n < MaxSlots {
			b.ships[n].team = v.Number("team")
		}
	case "SP_PLAYER":
		b.saw(v.Number("pnum"), v.Number("x"), v.Number("y"))
	case "SP_S_PLAYER":
		b.sawShort(v)
	case "SP_S_REPLY":
		b.shortened(v)
	case "SP_UDP_REPLY":
		b.replied(now, netip.AddrPort{}, v)
	case "SP_PING":
		if !b.Leaving.IsZero() {
			return // it has said CP_BYE
		}
		b.send("CP_PING_RESPONSE", schema.Values{
			"number": v.Number("number"), "pingme": 1, "cp_sent": b.udp.sent, "cp_recv": b.udp.received,
		})
	}
}

// you is the first thing that tells a client its slot; then it logs in (section 8,
// step 4).
func (b *bot) you(now time.Time, v *schema.Tree) {
	n := v.Number("pnum")
	if n < 0 || n >= MaxSlots {
		return
	}
	b.slot = n
	if b.asked {
		return
	}
	b.asked = true
	query := 1
	if b.cfg.Name == "guest" || b.cfg.Name == "Guest" {
		query = 0
	}
	b.logIn(query)
}

func (b *bot) logIn(query int) {
	b.accepted = query == 0
	b.tell("CP_LOGIN", schema.Values{"query": query, "name": script.Clip(b.cfg.Name, 15), "password": "swordfish", "login": "bot"})
}

func (b *bot) loggedIn(now time.Time, v *schema.Tree) {
	switch {
	case v.Number("accept") != 1:
		b.Finish(now, "refused", "the server does not let it in")
	case !b.accepted:
		b.logIn(0)
	default:
		b.tell("CP_OPTIONS", schema.Values{"flags": savedOptions, "keymap": savedKeys()})
	}
}

// changed notes the state of a player.
func (b *bot) changed(n int, s status) {
	if n < 0 || n >= MaxSlots {
		return
	}
	b.ships[n].status = s
	if n == b.slot {
		b.status = s
		switch s {
		case alive:
			b.got(awaitShip)
		case exploding, dead:
			b.masked = false
			b.got(awaitDead)
		}
	}
	b.look()
}

// look notes whether there is an enemy to be seen.
func (b *bot) look() {
	if b.enemy() >= 0 {
		b.got(awaitEnemy)
	}
}

func (b *bot) saw(n, x, y int) {
	if n >= 0 && n < MaxSlots {
		b.ships[n].x, b.ships[n].y, b.ships[n].known = x, y, x >= 0 && y >= 0
		b.look()
	}
}

// sawShort takes an SP_S_PLAYER: the own place from a big header, the others from
// there (section 4.3).
func (b *bot) sawShort(v *schema.Tree) {
	if b.slot < 0 {
		return
	}
	me := &b.ships[b.slot]
	if v.Number("header") == 0 {
		scale := 1
		if b.short == shortV2 {
			scale = perPixel
		}
		b.saw(b.slot, v.Number("x")*scale, v.Number("y")*scale)
	}
	list := v.Field("players")
	if list < 0 {
		return
	}
	for i := list + 1; i < v.Next(list); i = v.Next(i) {
		member := func(name string) int { return int(int64(v.Uint(v.Member(i, name)))) }
		n, x, y := member("pnum"), member("x"), member("y")
		switch {
		case x >= unseen || y >= unseen:
			x, y = hidden, hidden
		case member("galactic") == 1:
			x, y = x*galaxy/window, y*galaxy/window
		default:
			x, y = me.x+(x-window/2)*perPixel, me.y+(y-window/2)*perPixel
		}
		b.saw(n, x, y)
	}
}

// shortened takes the answer to a request about short packets: only that proves
// them.
func (b *bot) shortened(v *schema.Tree) {
	switch v.Number("repl") {
	case requestOn:
		b.short = b.wanted
	case requestOff:
		b.short = 0
	default:
		return
	}
	setEntry(b.state, "short_version", 0, b.short)
	b.got(awaitShort)
}

// enemy returns the slot of the nearest enemy that can be seen, or -1.
func (b *bot) enemy() int {
	if b.slot < 0 {
		return -1
	}
	me := &b.ships[b.slot]
	found, best := -1, 0
	for i := range b.ships {
		s := &b.ships[i]
		if i == b.slot || s.status != alive || !s.known || !me.known || s.team == me.team || teamIndex(s.team) < 0 {
			continue
		}
		if d := distance(me.x, me.y, s.x, s.y); found < 0 || d < best {
			found, best = i, d
		}
	}
	return found
}
