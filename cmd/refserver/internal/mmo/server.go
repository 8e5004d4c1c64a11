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
		if c := s.ofConn(in.Conn); c != nil {
			c.stream(now, in.Data)
		}
	case machine.Closed, machine.Refused:
		if c := s.ofConn(in.Conn); c != nil {
			c.gone = true
			c.end("closed", "the client has closed the connection")
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

func (s *server) ofConn(conn machine.Conn) *session {
	return s.session(func(c *session) bool { return c.conn == conn })
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

// advance moves the world by the ticks that are due, and tells of it. What a host
// has slept through is not caught up with.
func (s *server) advance(now time.Time) {
	if len(s.sessions) == 0 {
		s.advanced = now
		return
	}
	if now.Sub(s.advanced) < tickEvery {
		return
	}
	if s.advanced = s.advanced.Add(tickEvery); now.Sub(s.advanced) >= tickEvery {
		s.advanced = now
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
	for i := 0; i < len(s.sessions); i++ {
		if c := s.sessions[i]; c.ended != "" {
			s.sessions = slices.Delete(s.sessions, i, i+1)
			c.bury(now)
			i = -1 // others may have ended over it
		}
	}
	for _, c := range s.sessions {
		c.flush()
	}
}
