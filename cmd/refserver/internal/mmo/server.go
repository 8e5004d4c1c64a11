package mmo

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/mmo/testserver"
	"opscope/schema"
)

// maxSessions and maxStrangers bound what strangers can make the server keep and
// say.
const (
	maxSessions  = 128
	maxStrangers = 100
)

// ServerConfig is what a server is to be. The zero value of each field means the
// default that stands beside it.
type ServerConfig struct {
	Seed     uint64
	Settings *testserver.Settings // those of server.yaml
	UDPPort  uint16               // where datagrams come, as 0x0202 tells; that of the settings
	Walkers  int                  // characters without a client
	// Development has the server tell of its combat, as development builds do.
	Development bool
}

// server is a server of the MMO. One Handle serves one input.
type server struct {
	*clerk
	cfg       ServerConfig
	settings  *testserver.Settings
	random    *rand.Rand // for tokens
	world     *world
	sessions  []*session // in the order of their connections
	now       time.Time
	advanced  time.Time
	strangers int // datagrams of nobody, as far as they were told
}

// NewServer returns a server. It has nothing to do until a connection is opened;
// which ports it listens on is its host's business.
func NewServer(cfg ServerConfig, o machine.Observer) machine.Machine {
	if cfg.Settings == nil {
		cfg.Settings = testserver.Default()
	}
	if cfg.UDPPort == 0 {
		cfg.UDPPort = cfg.Settings.UDPPort
	}
	s := &server{clerk: newClerk(schema.Server, cfg.Settings, o), cfg: cfg, settings: cfg.Settings, random: rand.New(rand.NewPCG(cfg.Seed, 11))}
	s.world = &world{settings: s.settings, random: rand.New(rand.NewPCG(cfg.Seed, 12)), news: s}
	for i := range s.settings.Monsters.Count {
		s.world.addMonster(i + 1)
	}
	for i := range cfg.Walkers {
		s.world.addWalker(i + 1)
	}
	return s
}

// Handle takes one input and returns what to do.
func (s *server) Handle(now time.Time, in machine.Input) []machine.Output {
	s.now = now
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

// Deadline returns when the next tick is due; never, while nobody is connected.
func (s *server) Deadline() time.Time {
	if len(s.sessions) == 0 {
		return time.Time{}
	}
	return s.advanced.Add(tickEvery)
}

// session returns the first that is as wanted, or nil.
func (s *server) session(wanted func(*session) bool) *session {
	i := slices.IndexFunc(s.sessions, wanted)
	if i < 0 {
		return nil
	}
	return s.sessions[i]
}

// opened waits for what a client says, unless there are too many.
func (s *server) opened(now time.Time, in machine.Input) {
	if len(s.sessions) >= maxSessions {
		s.observer.Event(now, "refused", fmt.Sprintf("%s: there are %d sessions", in.Peer, maxSessions))
		s.Do(machine.Output{Kind: machine.Abort, Conn: in.Conn})
		return
	}
	s.sessions = append(s.sessions, newSession(s, now, in))
}

// datagram takes a datagram of a session: of the one whose token it has, else of the
// one that its sender is tied to. All others are strangers', and leave nothing behind.
func (s *server) datagram(now time.Time, peer netip.AddrPort, data []byte) {
	c := s.greeted(now, data)
	if c == nil {
		c = s.bound(peer)
	}
	if c != nil {
		c.datagram(now, peer, data)
		return
	}
	if s.strangers++; s.strangers <= maxStrangers {
		s.observer.Event(now, "stranger", fmt.Sprintf("%d bytes from %s, who is tied to no session", len(data), peer))
	}
}

// bound returns the session that a peer is tied to, or nil.
func (s *server) bound(peer netip.AddrPort) *session {
	return s.session(func(c *session) bool { return c.udp == peer })
}

// greeted returns the session whose token a UdpHelloReq has, nil for anything else.
func (s *server) greeted(now time.Time, data []byte) *session {
	frame, err := s.next(data)
	if err != nil || len(frame) != len(data) || s.opcode(frame) != s.protocol.PacketNamed("UdpHelloReq").Opcode {
		return nil
	}
	r, bad := s.read(frame, schema.UDP)
	if bad != nil {
		return nil
	}
	token := body{r.Body}.Text("udp_token")
	return s.session(func(c *session) bool { return c.avatar != nil && c.token == token && c.holds(now) })
}

// advance moves the world by the ticks that are due, and tells of it.
func (s *server) advance(now time.Time) {
	if len(s.sessions) == 0 {
		s.advanced = now
		return
	}
	if !machine.Due(now, &s.advanced, tickEvery) {
		return
	}
	s.world.step(now)
	for _, c := range s.sessions {
		c.tick(now)
	}
	for _, c := range s.world.characters {
		c.moved, c.pushed = false, false
	}
}

// settle buries the sessions that have ended, and hands over what was written.
func (s *server) settle(now time.Time) {
	for _, c := range s.sessions {
		c.expire(now)
	}
	machine.Bury(&s.sessions, func(c *session) { c.bury(now) })
	for _, c := range s.sessions {
		c.flush()
	}
}
