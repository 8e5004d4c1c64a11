package netrek

import (
	"fmt"
	"net/netip"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
)

// datagramMost is the most that the usual server puts into a datagram (section 1).
const datagramMost = 1024

// The requests of CP_UDP_REQ and the answers to them (sections 3 and 6.7).
const (
	requestTCP    = 0
	requestUDP    = 1
	requestVerify = 2
	requestFull   = 3
	requestMode   = 4

	replyTCP    = 0
	replyUDP    = 1
	replyDenied = 2
	replyVerify = 3

	connectPort   = 0 // the client sends first
	connectPacket = 1 // the server does

	modeTCP    = 0
	modeSimple = 1
	modeFat    = 2
	modeDouble = 3
)

// swappedVersion is the port of a denial that a mismatch of versions has: a 16-bit
// swap in a 32-bit field (section 7).
const swappedVersion = 0x00010000

// overUDP is the packets that go over UDP while that is on (section 7). Everything
// else goes over TCP.
var overUDP = newOverUDP()

func newOverUDP() map[string]bool {
	set := map[string]bool{}
	for _, name := range []string{
		"KILLS", "TORP_INFO", "PHASER", "PLASMA_INFO", "YOU", "PLANET", "FLAGS", "HOSTILE", "PLAYER", "TORP", "PLASMA", "STATS", "STATUS", "PING",
		"GENERIC_32", "FLAGS_ALL", "S_YOU", "S_YOU_SS", "S_PLANET", "S_PHASER", "S_KILLS", "S_PLAYER", "S_TORP", "S_TORP_INFO", "S_8_TORP", "S_STATS",
	} {
		set["SP_"+name] = true
	}
	return set
}

// udpPhase is how far the talk about UDP has come.
type udpPhase uint8

const (
	udpOff     udpPhase = iota
	udpBinding          // the client has asked, and there is no socket yet
	udpAsked            // the client has to verify
	udpOn
)

// udp is the UDP flow of a session.
type udp struct {
	phase    udpPhase
	mismatch bool           // the client speaks another version of it
	own      uint16         // the port of the socket, from udpAsked on
	remote   netip.AddrPort // once it has verified
	port     int            // that the client has announced
	connmode int
	mode     int    // modeTCP keeps the flow open, and silent
	sequence uint16 // of the last datagram
	pending  machine.Parcel
}

// turning reports whether the client is on its way to UDP: it has a socket then, and no
// address yet to send the answer to a ping to (observed: netrek-client-cow says so, and
// drops the answer).
func (u *udp) turning() bool { return u.phase == udpBinding || u.phase == udpAsked }

// carries reports whether a packet goes over UDP.
func (u *udp) carries(message string) bool {
	return u.phase == udpOn && u.mode != modeTCP && overUDP[message]
}

// udpRequest is section 7, from the server's side.
func (c *session) udpRequest(now time.Time, via schema.Transport, b *schema.Tree) {
	u := &c.udp
	switch b.Number("request") {
	case requestTCP:
		c.closeUDP()
		c.reply(replyTCP, 0)
	case requestUDP:
		c.openUDP(now, b)
	case requestVerify:
		if via != schema.UDP {
			c.complain(now, "ignored", "a verification over TCP")
			return
		}
		if u.phase == udpAsked {
			u.phase, u.mode, u.sequence = udpOn, modeSimple, 0
			// The first datagram has no sequence.
			r, data, err := c.server.append(nil, c.state, "SP_UDP_REPLY", schema.Values{"reply": replyVerify, "port": 0})
			if err == nil {
				u.pending.Add(&c.server.clerk.Desk, r, data)
			}
		}
	case requestFull:
		c.everything(now)
	case requestMode:
		c.setMode(b.Number("connmode"))
	}
}

// openUDP answers a request for UDP. One while it is on starts again.
func (c *session) openUDP(now time.Time, b *schema.Tree) {
	port, mode := b.Number("port"), b.Number("connmode")
	switch {
	case c.udp.mismatch:
		c.reply(replyDenied, swappedVersion)
		return
	case c.server.cfg.NoUDP:
		c.reply(replyDenied, 0)
		return
	case port < 1 || port > 0xffff || mode != connectPort && mode != connectPacket:
		c.complain(now, "ignored", fmt.Sprintf("UDP to port %d in mode %d", port, mode))
		return
	}
	c.closeUDP()
	c.udp.phase, c.udp.port, c.udp.connmode = udpBinding, port, mode
	if !c.binding {
		c.binding = true
		c.server.Do(machine.Output{Kind: machine.Bind, Conn: c.Conn})
	}
}

// bound takes the socket of a request: each has its own (section 7).
func (s *server) bound(conn machine.Conn, own uint16) {
	c := machine.SessionOf(s.sessions, conn)
	if c != nil {
		c.binding = false
	}
	switch {
	case c == nil || c.udp.phase != udpBinding: // nobody wants it any more
		if own != 0 {
			s.Do(machine.Output{Kind: machine.Unbind, Port: own})
		}
	case own == 0:
		c.closeUDP()
		c.reply(replyDenied, 0)
	default:
		c.offerUDP(own)
	}
}

// offerUDP tells the client where its datagrams go.
func (c *session) offerUDP(own uint16) {
	u := &c.udp
	u.phase, u.own = udpAsked, own
	port := int(own)
	if u.connmode == connectPacket {
		r, data, err := c.server.append(nil, c.state, "SP_UDP_REPLY", schema.Values{"reply": replyUDP, "port": port})
		if err == nil {
			var p machine.Parcel
			p.Add(&c.server.clerk.Desk, r, data)
			to := netip.AddrPortFrom(c.Address.Addr(), uint16(u.port))
			c.server.Do(p.Take(machine.Output{Kind: machine.SendDatagram, Port: own, Peer: to}))
		}
	}
	c.reply(replyUDP, port)
}

// reply answers over TCP.
func (c *session) reply(reply, port int) {
	c.post("SP_UDP_REPLY", schema.Values{"reply": reply, "port": port}, true)
}

// closeUDP goes back to TCP. What waits for a datagram still goes out.
func (c *session) closeUDP() {
	c.flushDatagram()
	c.dropUDP()
}

// dropUDP closes the flow's socket, and forgets what waits for it.
func (c *session) dropUDP() {
	if c.udp.own != 0 {
		c.server.Do(machine.Output{Kind: machine.Unbind, Port: c.udp.own})
	}
	c.udp = udp{mismatch: c.udp.mismatch}
}

// setMode chooses what goes over the flow. Fat and double UDP are refused.
func (c *session) setMode(mode int) {
	switch mode {
	case modeTCP:
		c.flushDatagram()
		c.udp.mode = modeTCP
		c.warn(texts[94], 94)
	case modeSimple:
		c.udp.mode = modeSimple
		c.warn(texts[95], 95)
	case modeFat:
		c.udp.mode = modeSimple
		c.warn(texts[96], 96)
	case modeDouble:
		c.udp.mode = modeSimple
		c.warn(texts[97], 97)
	default:
		c.warn(texts[93], 93)
	}
}

// putDatagram adds a packet to the pending datagram, or to a new one, which begins
// with its sequence.
func (c *session) putDatagram(r machine.Record, data []byte) {
	u := &c.udp
	if u.pending.Len()+len(data) > datagramMost {
		c.flushDatagram()
	}
	if u.pending.Len() == 0 {
		u.sequence++
		s, head, err := c.server.append(nil, c.state, "SP_SEQUENCE", schema.Values{"flag8": c.sequenceFlags(), "sequence": int(u.sequence)})
		if err == nil {
			s.Seq = int(u.sequence)
			u.pending.Add(&c.server.clerk.Desk, s, head)
		}
	}
	u.pending.Add(&c.server.clerk.Desk, r, data)
}

// sequenceFlags is what SP_SEQUENCE says of the player's flags (section 6.2).
func (c *session) sequenceFlags() int {
	flags := c.pilot.flags
	if !c.has("19FLAGS") {
		return flags >> 8 & 0xff
	}
	packed := 0
	for i, f := range []int{flagShield, flagRepair, flagBomb, flagCloak, flagWep, flagEng, flagRefit, flagDockOK} {
		if flags&f != 0 {
			packed |= 1 << i
		}
	}
	return packed
}

func (c *session) flushDatagram() {
	if u := &c.udp; u.pending.Len() > 0 {
		c.server.Do(u.pending.Take(machine.Output{Kind: machine.SendDatagram, Port: u.own, Peer: u.remote}))
	}
}

// ping asks for a round trip.
func (c *session) ping(now time.Time) {
	c.pinged = now
	c.number++
	c.send("SP_PING", schema.Values{"number": c.number, "lag": c.lag, "tloss_sc": 0, "tloss_cs": 0, "iloss_sc": 0, "iloss_cs": 0})
}

// pong takes the answer to a ping. Over TCP one with the number 0 starts or stops
// them.
func (c *session) pong(now time.Time, via schema.Transport, b *schema.Tree) {
	number := b.Number("number")
	if via == schema.TCP && number == 0 {
		if c.pinging = b.Number("pingme") == 1; c.pinging {
			c.say("Server sending PING packets at 2 second intervals")
		}
		return
	}
	if number == int(c.number) {
		c.lag = int(min(now.Sub(c.pinged).Milliseconds(), 0xffff))
	}
}
