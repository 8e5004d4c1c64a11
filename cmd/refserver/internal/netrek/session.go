package netrek

import (
	"fmt"
	"slices"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
	"opscope/schema/wire"
)

const (
	// rate and burst are how many packets a client may send in a second, and at
	// once. A real one sends some twenty a second.
	rate  = 1000
	burst = 2000
	// maxComplaints is how much nonsense a client may send before it has to go.
	maxComplaints = 50
	// writeMost is what the usual server writes at once at most (section 1).
	writeMost = 16738
)

// session is one client: its connection, its slot and the UDP flow that it may have
// asked for. What goes wrong in it ends it, and nothing else.
type session struct {
	machine.Guest
	server  *server
	state   *schema.State // what its peer has been taught
	in      []byte        // the start of a packet that is not whole
	tcp     machine.Parcel
	udp     udp
	binding bool   // a socket for it was asked for, and is not there yet
	pilot   *pilot // nil without a slot
	shown   map[shownKey][]byte
	scratch []byte

	greeted bool // it has sent CP_SOCKET
	named   bool // it has logged in
	place   int  // in the queue
	placed  time.Time

	short    int // version of its short packets, 0 for none
	messages bool
	generic  byte // version of SP_GENERIC_32, 0 for none
	wants    wants
	every    time.Duration // between updates
	updated  time.Time
	masked   time.Time // when it was last told its teams
	told     time.Time // when it was last sent anything
	full     time.Time // when it last asked for everything
	pinging  bool
	pinged   time.Time
	number   uint8  // of the last ping
	lag      int    // milliseconds, of the last answer
	fate     [3]int // slot, why and by whom it died, as last told
	brief    brief

	opened     time.Time
	heardAt    time.Time
	allowance  machine.Allowance // of packets
	complaints int
}

func newSession(s *server, now time.Time, in machine.Input) *session {
	return &session{
		Guest: machine.Guest{Conn: in.Conn, Address: in.Peer}, server: s, state: s.newState(), shown: map[shownKey][]byte{},
		opened: now, heardAt: now, allowance: machine.Allowance{Rate: rate, Burst: burst}, every: frameEvery,
	}
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
	name := ""
	if c.pilot != nil {
		name = c.pilot.name
	}
	c.Farewell(now, s.observer, name)
	if !c.Gone {
		c.flush()
		s.Do(machine.Output{Kind: machine.Close, Conn: c.Conn})
	}
	c.dropUDP()
	s.queue = slices.DeleteFunc(s.queue, func(o *session) bool { return o == c })
	if c.pilot != nil {
		if c.named {
			s.left(c.pilot)
		}
		c.pilot.vacate()
	}
}

// stream takes bytes of the connection. What is no packet costs the rest of what has
// come with it, not the session: rule 17 of section 11.
func (c *session) stream(now time.Time, data []byte) {
	rest := append(c.in, data...)
	for !c.Ended() && len(rest) > 0 {
		r, err := c.server.read(rest, c.state, schema.TCP)
		if err != nil && err.Kind == wire.Incomplete && len(rest) < lookahead {
			break
		}
		if err != nil {
			c.complain(now, "malformed", fmt.Sprintf("%v, and %d bytes are thrown away", err, len(rest)))
			rest = nil
			break
		}
		if !c.allowance.Charge(now) {
			c.End("flood", "more packets than anybody has to send")
			break
		}
		rest = rest[r.Size:]
		c.server.observer.Received(now, c.Address, r)
		c.handle(now, r)
	}
	c.in = slices.Clone(rest)
}

// datagram takes a datagram of the client: one packet as a rule.
func (c *session) datagram(now time.Time, data []byte) {
	for !c.Ended() && len(data) > 0 {
		if !c.allowance.Charge(now) {
			c.complain(now, "flood", "more datagrams than anybody has to send")
			return
		}
		r, err := c.server.read(data, c.state, schema.UDP)
		if err != nil {
			c.complain(now, "malformed", fmt.Sprintf("%v, and %d bytes of a datagram are thrown away", err, len(data)))
			return
		}
		data, r.Port = data[r.Size:], c.udp.own
		c.server.observer.Received(now, c.udp.remote, r)
		c.handle(now, r)
	}
}

// handle does what a packet asks for. Before CP_SOCKET nothing counts but that and
// the features, before the login only what belongs to it.
func (c *session) handle(now time.Time, r machine.Record) {
	c.heardAt = now
	b := r.Body
	switch r.Message {
	case "CP_SOCKET":
		c.socket(now, b)
		return
	case "CP_FEATURE":
		c.feature(b)
		return
	case "CP_BYE":
		c.End("left", "it has said good bye")
		return
	}
	if c.pilot == nil {
		c.complain(now, "too_early", r.Message+" before there is a slot")
		return
	}
	switch r.Message {
	case "CP_LOGIN":
		c.login(now, b)
	case "CP_PING_RESPONSE":
		c.pong(now, r.Via, b)
	case "CP_UDP_REQ":
		c.udpRequest(now, r.Via, b)
	case "CP_S_REQ":
		c.shortRequest(now, b)
	case "CP_UPDATES":
		c.every = max(frameEvery, time.Duration(min(b.Number("usecs"), 10_000_000))*time.Microsecond)
	case "CP_OPTIONS", "CP_RESERVED", "CP_RESETSTATS", "CP_SEQUENCE", "CP_RSA_KEY", "CP_SCAN",
		"CP_COPILOT", "CP_OGGV", "CP_S_THRS":
		// accepted, and without effect here
	default:
		if !c.named {
			c.complain(now, "too_early", r.Message+" before the login")
			return
		}
		c.play(now, r.Message, b)
	}
}

// expire ends a session that lets others wait.
func (c *session) expire(now time.Time) {
	switch {
	case !c.greeted && now.Sub(c.opened) >= helloWithin:
		c.End("timeout", "it has not sent CP_SOCKET")
	case !c.named && now.Sub(c.opened) >= loginWithin:
		c.End("timeout", "it has not logged in")
	case now.Sub(c.heardAt) >= silentFor:
		c.End("timeout", "it says nothing any more")
	}
}

// send sends a packet, by the transport that its type has.
func (c *session) send(message string, v schema.Values) { c.post(message, v, false) }

// post sends a packet. A critical one goes over TCP whatever its type.
func (c *session) post(message string, v schema.Values, critical bool) {
	r, data, err := c.server.append(c.scratch[:0], c.state, message, v)
	c.scratch = data[:0]
	if err != nil {
		c.server.observer.Event(c.server.advanced, "dropped", err.Error())
		return
	}
	c.put(r, data, critical)
}

func (c *session) put(r machine.Record, data []byte, critical bool) {
	c.told = c.server.advanced
	if c.udp.carries(r.Message) && !critical {
		c.putDatagram(r, data)
		return
	}
	if c.tcp.Len()+len(data) > writeMost {
		c.flushStream()
	}
	c.tcp.Add(&c.server.clerk.Desk, r, data)
}

// flush hands over what was written.
func (c *session) flush() {
	c.flushStream()
	c.flushDatagram()
}

func (c *session) flushStream() { c.tcp.Flush(&c.server.Desk, c.Conn) }
