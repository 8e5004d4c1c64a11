package wulfram

import (
	"fmt"
	"time"

	"opscope/cmd/refserver/internal/machine"
)

const (
	// protocolVersion is the one hard gate (section 6, step 2).
	protocolVersion = 20105
	// rate and burst are how many records a client may send in a second, and at
	// once. A real one sends some twenty a second.
	rate  = 2000
	burst = 4000
	// maxComplaints is how much nonsense a client may send before it has to go.
	maxComplaints = 50
	maxName       = 32 // bytes
)

// session is one client: its connection, and the UDP association that its key
// ties to it. What goes wrong in it ends it, and nothing else.
type session struct {
	machine.Guest
	server  *server
	tcp     frames
	udp     *link
	key     string
	player  uint32
	name    string
	team    int
	kills   int
	deaths  int
	vehicle *entity // nil when it has none
	inputs  inputs

	versioned bool // it has told the right version
	confirmed bool // it has confirmed that it is known by UDP
	named     bool // it has logged in
	entered   bool // it has been told of the game
	wants     bool // it wants updates

	carrying bool
	docked   bool
	fired    float64 // when its vehicle last fired, in the world's seconds

	opened     time.Time
	heardAt    time.Time
	pinged     time.Time
	allowance  machine.Allowance // of records
	complaints int
}

// complain tells of nonsense; too much of it ends the session.
func (c *session) complain(now time.Time, code, text string) {
	if c.complaints++; c.complaints > maxComplaints {
		c.End("nonsense", "too much that makes no sense")
		return
	}
	c.server.observer.Event(now, code, fmt.Sprintf("%s: %s", c.Address, text))
}

// bury tells the others that the session is over, and closes its connection.
func (c *session) bury(now time.Time) {
	s := c.server
	c.Farewell(now, s.observer, c.name)
	if !c.Gone {
		c.tcp.flush()
		s.Do(machine.Output{Kind: machine.Close, Conn: c.tcp.conn})
	}
	if !c.entered {
		return
	}
	s.lose(now, c)
	s.all(func(o *session) { o.udp.send(now, "REMOVE_FROM_ROSTER", fields{{"player_id", c.player}}) })
}

// stream takes bytes of the connection.
func (c *session) stream(now time.Time, data []byte) {
	c.tcp.in = append(c.tcp.in, data...)
	for !c.Ended() {
		frame, err := c.tcp.next()
		switch {
		case err != nil:
			c.End("malformed", err.Error())
		case frame == nil:
			return
		case !c.allowance.Charge(now):
			c.End("flood", "more frames than anybody has to send")
		default:
			c.frame(now, frame)
		}
	}
}

func (c *session) frame(now time.Time, data []byte) {
	switch opcode := data[2]; {
	case opcode >= 0x01 && opcode <= 0x07:
		c.End("control_on_tcp", fmt.Sprintf("opcode 0x%02X does not travel by TCP", opcode))
		return
	case opcode > lastOpcode:
		c.End("unknown_opcode", fmt.Sprintf("there is no opcode 0x%02X", opcode))
		return
	}
	r, err := c.tcp.frame(data)
	if err != nil {
		c.complain(now, "malformed", err.Error())
		return
	}
	c.server.observer.Received(now, c.Address, r)
	c.handle(now, r)
}

// datagram takes a datagram of the client. A flood is ignored, unacknowledged.
func (c *session) datagram(now time.Time, data []byte) {
	if c.Ended() {
		return
	}
	if !c.allowance.Charge(now) {
		c.complain(now, "flood", "more datagrams than anybody has to send")
		return
	}
	if err := c.udp.receive(now, data); err != nil {
		c.complain(now, "malformed", err.Error())
	}
}

// heard takes a record that the link has understood.
func (c *session) heard(now time.Time, r machine.Record) {
	c.allowance.Charge(now)
	c.server.observer.Received(now, c.udp.remote, r)
	c.handle(now, r)
}

// handle does what a record asks for. Before a client is in the game, it is only
// let in.
func (c *session) handle(now time.Time, r machine.Record) {
	c.heardAt = now
	v := values{r.Body}
	switch r.Message {
	case "HELLO":
		c.helloed(now, v)
	case "LOGIN":
		c.login(now, v)
	case "D_HANDSHAKE":
		c.greet(now)
	case "PING_REQUEST":
		c.udp.send(now, "PING", fields{{"timestamp", v.Number("timestamp")}})
	case "ROOT", "diagnostic", "D_ACK", "D_IGNORE", "D_SET_START", "PING":
	default:
		if !c.entered {
			c.complain(now, "too_early", r.Message+" before the login")
			return
		}
		c.play(now, r, v)
	}
}

// settle does what the time asks for.
func (c *session) settle(now time.Time) {
	switch {
	case !c.entered && now.Sub(c.opened) >= loginWithin:
		c.End("timeout", "it has not logged in")
	case now.Sub(c.heardAt) >= silentFor:
		c.End("timeout", "it says nothing any more")
	case c.udp.failed != nil:
		c.End("backlog", c.udp.failed.Error())
	}
	if c.Ended() {
		return
	}
	c.udp.tick(now)
	if c.entered && now.Sub(c.pinged) >= pingEvery {
		c.pinged = now
		c.tcp.tell(now, "PING_REQUEST", fields{{"timestamp", c.udp.clock(now)}})
	}
}
