package mmo

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
)

// session is one client: its connection, its character, and the UDP endpoint that it
// has tied to it. What goes wrong in it ends it, and nothing else.
type session struct {
	machine.Guest
	server *server
	in     []byte // the start of a frame that is not whole
	tcp    machine.Parcel
	udp    netip.AddrPort // where its datagrams go, once it is bound

	avatar   *character // nil before it has entered
	account  uint64
	token    string // for UdpHelloReq
	issued   time.Time
	attempts int // to enter
	seen     map[uint64]bool

	opened  time.Time
	window  time.Time // the second in which packets are counted
	packets int       // in it
	limited bool      // it was told so in this second
	errors  int
	pinged  time.Time
	number  uint32    // of the last ping
	heard   time.Time // when the last pong came
}

func newSession(s *server, now time.Time, in machine.Input) *session {
	return &session{Guest: machine.Guest{Conn: in.Conn, Address: in.Peer}, server: s, seen: map[uint64]bool{}, opened: now, window: now}
}

// bury takes its character out of the world, and closes its connection.
func (c *session) bury(now time.Time) {
	s := c.server
	name := ""
	if c.avatar != nil {
		name = c.avatar.name
		s.world.remove(c.avatar)
		s.vanished(c.avatar.id, leaveLoggedOut)
	}
	c.Farewell(now, s.observer, name)
	if !c.Gone {
		c.flush()
		s.Do(machine.Output{Kind: machine.Close, Conn: c.Conn})
	}
}

// stream takes bytes of the connection. A size that no frame has ends it.
func (c *session) stream(now time.Time, data []byte) {
	rest := append(c.in, data...)
	for !c.Ended() {
		frame, err := c.server.next(rest)
		if err != nil {
			c.End("bad_size", err.Error())
		}
		if frame == nil {
			break
		}
		c.take(now, c.Address, frame, schema.TCP)
		rest = rest[len(frame):]
	}
	c.in = slices.Clone(rest)
}

// datagram takes a datagram: one frame, and nothing else.
func (c *session) datagram(now time.Time, peer netip.AddrPort, data []byte) {
	frame, err := c.server.next(data)
	if err != nil || len(frame) != len(data) {
		c.refuse(now, 0, codeMalformed, "a datagram is one frame")
		return
	}
	c.take(now, peer, frame, schema.UDP)
}

// take takes a frame, unless there were too many.
func (c *session) take(now time.Time, from netip.AddrPort, frame []byte, via schema.Transport) {
	if !c.allow(now) {
		if !c.limited {
			c.limited = true
			c.refuse(now, int(c.server.opcode(frame)), codeRateLimited, "too many packets")
		}
		return
	}
	r, err := c.server.read(frame, via)
	switch {
	case errors.Is(err, errUnknown):
		c.refuse(now, r.Opcode, codeUnknown, "nobody handles this packet")
	case err != nil:
		c.refuse(now, r.Opcode, codeMalformed, "the body does not parse")
	default:
		c.server.observer.Received(now, from, r)
		c.handle(now, from, r)
	}
}

// allow counts a packet of the present second.
func (c *session) allow(now time.Time) bool {
	if now.Sub(c.window) >= time.Second {
		c.window, c.packets, c.limited = now, 0, false
	}
	c.packets++
	return c.packets <= c.server.settings.MaxPacketsPerSecond
}

// handle does what a packet asks for. Before the client has entered nothing counts
// but echo, entering, and what is deprecated.
func (c *session) handle(now time.Time, from netip.AddrPort, r machine.Record) {
	b := body{r.Body}
	switch r.Message {
	case "EchoReq":
		c.send("EchoRes", schema.Values{"payload": b.bytes("payload")})
		return
	case "LoginReq", "RegisterReq", "ServerListReq", "SelectServerReq":
		d := c.server.settings.Deprecated
		c.refuse(now, r.Opcode, d.Error, d.Message)
		return
	case "EnterGameReq":
		c.enter(now, r.Opcode, b)
		return
	}
	if c.avatar == nil {
		c.refuse(now, r.Opcode, codeAuthRequired, "enter the game first")
		return
	}
	switch r.Message {
	case "Pong":
		c.pong(now, b)
	case "UdpHelloReq":
		c.bind(now, from, r.Opcode, b)
	case "MoveReq":
		c.move(now, r.Opcode, b)
	case "ChatReq":
		c.chat(now, r.Opcode, b)
	case "AttackReq":
		c.attack(now, r.Opcode, b)
	case "InventoryMoveReq", "InventoryUseReq":
		c.operate(now, r, b)
	}
}

// refuse answers with an error, over TCP whatever was asked by. After too many the
// session ends.
func (c *session) refuse(now time.Time, id int, code, text string) {
	c.server.observer.Event(now, "error", fmt.Sprintf("%s: packet 0x%04x: %s, %s", c.Address, id, code, text))
	c.send("ErrorRes", schema.Values{"request_packet_id": id, "error_code": code, "message": text})
	if c.errors++; c.errors >= c.server.settings.MaxErrors {
		c.End("errors", "too many errors")
	}
}

// expire ends a session that does not answer, or does not enter.
func (c *session) expire(now time.Time) {
	since := c.opened
	if c.avatar != nil {
		since = c.heard
	}
	if now.Sub(since) >= c.server.settings.Heartbeat.Timeout {
		c.End("timeout", "it says nothing any more")
	}
}

// tick does what is due for a session in a tick.
func (c *session) tick(now time.Time) {
	if c.avatar == nil || c.Ended() {
		return
	}
	if now.Sub(c.pinged) >= c.server.settings.Heartbeat.Interval {
		c.ping(now)
	}
	c.look(now)
	c.publish(now)
}

// send queues a message for the connection.
func (c *session) send(message string, v schema.Values) {
	r, data, err := c.server.compose(message, v)
	if err != nil {
		c.server.observer.Event(c.server.now, "dropped", err.Error())
		return
	}
	c.tcp.Add(&c.server.clerk.Desk, r, data)
}

// sendDatagram sends a message as a datagram of its own, once the session is bound.
func (c *session) sendDatagram(message string, v schema.Values) {
	r, data, err := c.server.compose(message, v)
	if err != nil {
		c.server.observer.Event(c.server.now, "dropped", err.Error())
		return
	}
	if !c.udp.IsValid() {
		return
	}
	c.flush() // in the order in which things are said
	var p machine.Parcel
	p.Add(&c.server.clerk.Desk, r, data)
	c.server.Do(p.Take(machine.Output{Kind: machine.SendDatagram, Peer: c.udp}))
}

// flush hands over what was written.
func (c *session) flush() { c.tcp.Flush(&c.server.Desk, c.Conn) }
