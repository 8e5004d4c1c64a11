package wulfram

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/transport"
	"opscope/schema"
)

const (
	// publishEvery is how often a server tells where everything is (section 6, 15).
	publishEvery = 100 * time.Millisecond
	// pingEvery is how often it asks for a round trip (section 6, 9).
	pingEvery = 10 * time.Second
	// loginWithin is how long a client may take to log in, silentFor how long it
	// may then be silent.
	loginWithin = 30 * time.Second
	silentFor   = 60 * time.Second
	// maxSessions and maxStrangers bound what strangers can make the server keep
	// and say.
	maxSessions  = 64
	maxStrangers = 100
)

// ServerConfig is what a server is to be. The zero value of each field but Addr
// means the default that stands beside it.
type ServerConfig struct {
	Addr      netip.AddrPort // where it listens, TCP and UDP alike
	Seed      uint64
	Handshake Handshake // Policy; ParseHandshake checks a word
	Entities  int       // how many the world has; 9, and none for a negative number
	// FirstSeq is where all sequences begin that it sends or expects; 1. Another
	// one shows a session that has gone on for long, if bots begin there as well.
	FirstSeq uint16
	MOTD     string // "Welcome."
	Welcome  string // a message to who comes in, by UDP; split when it is long
	// Unarmed enables no weapon slot in BEHAVIOR, as in every capture seen: then
	// the stated defaults decode a session of which BEHAVIOR was not captured.
	Unarmed bool
	// Early sends a VIEW_UPDATE by UDP before the TRANSLATION that it needs, as was
	// seen of Wulf-Forge.
	Early bool
}

// server is a Wulfram server. One Handle serves one input.
type server struct {
	*clerk
	cfg       ServerConfig
	world     *world
	random    *rand.Rand
	sessions  []*session // in the order of their connections
	began     time.Time
	published time.Time
	round     int    // publications so far
	players   uint32 // the last player's id
	strangers int    // datagrams of nobody, as far as they were told
}

// NewServer returns a server. It has nothing to do until a connection is opened;
// which port it listens on is its host's business.
func NewServer(cfg ServerConfig, o machine.Observer) machine.Machine {
	if cfg.Entities == 0 {
		cfg.Entities = 9
	}
	if cfg.MOTD == "" {
		cfg.MOTD = "Welcome."
	}
	s := &server{clerk: newClerk(schema.Server, o), cfg: cfg, random: rand.New(rand.NewPCG(cfg.Seed, 2))}
	s.world = newWorld(cfg.Seed, max(0, cfg.Entities))
	if cfg.Unarmed {
		s.world.rules.weapons = weapons{}
	}
	s.world.rules.teach(s.state)
	return s
}

// Handle takes one input and returns what to do.
func (s *server) Handle(now time.Time, in machine.Input) []machine.Output {
	if s.began.IsZero() {
		s.began, s.published = now, now
	}
	s.advance(now)
	switch in.Kind {
	case machine.Opened:
		s.opened(now, in)
	case machine.Stream:
		if c := machine.SessionOf(s.sessions, in.Conn); c != nil {
			c.stream(now, in.Data)
		}
	case machine.Closed, machine.Refused:
		if c := machine.SessionOf(s.sessions, in.Conn); c != nil {
			c.HungUp()
		}
	case machine.Datagram:
		s.datagram(now, in.Peer, in.Data)
	}
	s.settle(now)
	return s.Take()
}

// Deadline returns when the next publication or retry is due; never, while nobody
// is connected.
func (s *server) Deadline() time.Time {
	if len(s.sessions) == 0 {
		return time.Time{}
	}
	when := s.published.Add(publishEvery)
	for _, c := range s.sessions {
		when = machine.Earlier(when, c.udp.deadline())
	}
	return when
}

// opened greets a client, unless there are too many.
func (s *server) opened(now time.Time, in machine.Input) {
	if len(s.sessions) >= maxSessions {
		s.observer.Event(now, "refused", fmt.Sprintf("%s: there are %d sessions", in.Peer, maxSessions))
		s.Do(machine.Output{Kind: machine.Abort, Conn: in.Conn})
		return
	}
	table, number := s.cfg.Handshake.table()
	s.players++
	c := &session{
		Guest: machine.Guest{Conn: in.Conn, Address: in.Peer}, server: s, player: s.players, opened: now, heardAt: now, pinged: now,
		allowance: machine.Allowance{Rate: rate, Burst: burst},
	}
	c.key = fmt.Sprintf("Key%08x", s.random.Uint32())
	c.tcp = frames{clerk: s.clerk, conn: in.Conn}
	c.udp = &link{clerk: s.clerk, number: number, started: s.began, heard: c.heard,
		sender:   transport.NewSender[*letter](table, s.cfg.FirstSeq),
		receiver: transport.NewReceiver(s.cfg.FirstSeq)}
	s.sessions = append(s.sessions, c)
	c.hello(now)
}

// datagram finds whose it is: a peer's that is tied to a session, or one that
// names a session's key (section 6, step 3). All others are strangers', and leave
// nothing behind.
func (s *server) datagram(now time.Time, peer netip.AddrPort, data []byte) {
	for _, c := range s.sessions {
		if c.udp.remote == peer {
			c.datagram(now, data)
			return
		}
	}
	key := s.keyIn(data)
	for _, c := range s.sessions {
		if key != "" && c.key == key && !c.udp.remote.IsValid() {
			c.udp.remote = peer
			c.datagram(now, data)
			return
		}
	}
	if s.strangers++; s.strangers <= maxStrangers {
		s.observer.Event(now, "stranger", fmt.Sprintf("%d bytes from %s, who is tied to no session", len(data), peer))
	}
}

// keyIn returns the key of the HELLO in a stranger's datagram, "" without one.
func (s *server) keyIn(data []byte) string {
	if len(data) > maxDatagram {
		return ""
	}
	for at := wrapperOf(data).size(); at < len(data); {
		r, n, err := s.read(data[at:], 1, schema.UDP, data[at])
		if v := (values{r.Body}); err == nil && r.Message == "HELLO" && v.Number("subcommand") == 1 {
			return v.Text("key")
		}
		if err != nil || r.Message != "ROOT" && r.Message != "diagnostic" {
			return ""
		}
		at += n
	}
	return ""
}

// advance moves the world and publishes it, as often as is due.
func (s *server) advance(now time.Time) {
	if len(s.sessions) == 0 {
		s.published = now
		return
	}
	if !machine.Due(now, &s.published, publishEvery) {
		return
	}
	s.round++
	s.live(now)
	for _, c := range s.sessions {
		c.publish(now)
	}
	for _, e := range s.world.entities {
		e.snapped = false
	}
}

// settle lets every session do what its timers ask for, buries those that have
// ended, and hands over what was written.
func (s *server) settle(now time.Time) {
	for _, c := range s.sessions {
		c.settle(now)
	}
	machine.Bury(&s.sessions, func(c *session) { c.bury(now) })
	for _, c := range s.sessions {
		c.tcp.flush()
		c.udp.flush()
	}
}

// all calls f for every session that is in the game.
func (s *server) all(f func(c *session)) {
	for _, c := range s.sessions {
		if c.entered && !c.Ended() {
			f(c)
		}
	}
}
