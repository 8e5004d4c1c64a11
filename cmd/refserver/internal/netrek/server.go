package netrek

import (
	"fmt"
	"math/rand/v2"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
)

const (
	// frameEvery is the base frame of the game. Clients that do not ask for fewer
	// updates get one a frame.
	frameEvery = 100 * time.Millisecond
	// helloWithin is how long CP_SOCKET may take (section 8), loginWithin how long
	// the login may take, silentFor how long a client may then be silent.
	helloWithin = 30 * time.Second
	loginWithin = 5 * time.Minute
	silentFor   = 10 * time.Minute
	// maxSessions and maxStrangers bound what strangers can make the server keep
	// and say, maxQueue who waits for a slot.
	maxSessions  = 64
	maxStrangers = 100
	maxQueue     = 8
)

// ServerConfig is what a server is to be. The zero value of each field
// means the default that stands beside it.
type ServerConfig struct {
	Seed  uint64
	Slots int      // how many may play at once; 32, which is also the most
	NoUDP bool     // it refuses every request for UDP
	MOTD  []string // lines; a welcome
	// Board is told who plays, for a Directory that answers queries; nil for none.
	Board *Board
	// Near has all players start near one place, so that they meet soon.
	Near bool
}

// server is a Netrek server. One Handle serves one input.
type server struct {
	*clerk
	cfg       ServerConfig
	world     *world
	sessions  []*session // in the order of their connections
	queue     []*session // those without a slot, in their order
	advanced  time.Time
	strangers int // datagrams of nobody, as far as they were told
}

// NewServer returns a server. It has nothing to do until a connection is opened;
// which port it listens on is its host's business.
func NewServer(cfg ServerConfig, o machine.Observer) machine.Machine {
	if cfg.Slots <= 0 || cfg.Slots > MaxSlots {
		cfg.Slots = MaxSlots
	}
	if cfg.MOTD == nil {
		cfg.MOTD = []string{"Welcome to the opscope reference server.", "", "\t@@@"}
	}
	random := rand.New(rand.NewPCG(cfg.Seed, 2))
	s := &server{clerk: newClerk(schema.Server, o), cfg: cfg}
	s.world = &world{random: random, planets: newPlanets(random), news: s.report, near: cfg.Near}
	for i := range s.world.pilots {
		s.world.pilots[i] = &pilot{slot: i}
		s.world.pilots[i].vacate()
	}
	return s
}

// Handle takes one input and returns what to do.
func (s *server) Handle(now time.Time, in machine.Input) []machine.Output {
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
		s.datagram(now, in)
	case machine.Bound:
		s.bound(in.Conn, in.Port)
	}
	s.settle(now)
	return s.Take()
}

// Deadline returns when the next frame is due; never, while nobody is connected.
func (s *server) Deadline() time.Time {
	if len(s.sessions) == 0 {
		return time.Time{}
	}
	return s.advanced.Add(frameEvery)
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

// datagram finds whose it is, by the socket that it came to: of the peer that has
// verified, or of the first one to do so, from the client's host (section 7). All others
// are strangers', and leave nothing behind.
func (s *server) datagram(now time.Time, in machine.Input) {
	for _, c := range s.sessions {
		if c.udp.own != in.Port {
			continue
		}
		if c.udp.phase == udpAsked && c.Address.Addr() == in.Peer.Addr() && s.verifies(in.Data) {
			c.udp.remote = in.Peer
		}
		if c.udp.remote == in.Peer {
			c.datagram(now, in.Data)
			return
		}
	}
	if s.strangers++; s.strangers <= maxStrangers {
		s.observer.Event(now, "stranger", fmt.Sprintf("%d bytes from %s, who is tied to no session", len(in.Data), in.Peer))
	}
}

// verifies reports whether a datagram is what has to be a client's first.
func (s *server) verifies(data []byte) bool {
	if len(data) == 0 {
		return false
	}
	r, err := s.read(data, nil, schema.UDP)
	return err == nil && r.Message == "CP_UDP_REQ" && r.Body.Number("request") == requestVerify
}

// advance moves the world by the frames that are due, and tells of it.
func (s *server) advance(now time.Time) {
	if len(s.sessions) == 0 {
		s.advanced = now
		return
	}
	if !machine.Due(now, &s.advanced, frameEvery) {
		return
	}
	s.world.step()
	s.seat(now)
	for _, c := range s.sessions {
		c.frame(now)
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
	if s.cfg.Board != nil {
		s.cfg.Board.Set(s.playing(), len(s.queue))
	}
}

// playing counts the slots in use.
func (s *server) playing() (n int) {
	for _, p := range s.world.pilots {
		if p.status != free {
			n++
		}
	}
	return n
}

// all calls f for every session that has logged in.
func (s *server) all(f func(c *session)) {
	for _, c := range s.sessions {
		if c.named && !c.Ended() {
			f(c)
		}
	}
}
