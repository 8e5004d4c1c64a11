package lotr2

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/script"
	"opscope/schema"
)

// The ports that peers use, if no other program has them (section 1).
const (
	StreamPort    = 2300
	DatagramPort  = 2350
	DiscoveryPort = 47624
)

const (
	// maxLinks bounds how many others strangers can make a peer know: a session has
	// five players at most, and four of them are others.
	maxLinks = 8
	// maxStrangers is how many datagrams of nobody are told of.
	maxStrangers = 100
	// pingEvery is how long nothing was heard of a peer before it is pinged (section 3).
	pingEvery = 15 * time.Second
	// resetAfter is how long a player is gone before its connections are reset.
	resetAfter = 5 * time.Second
)

// application is the game's: every session of the game says so (section 5).
const application = "{1C8248C0-9772-11CF-B74F-00C0DF413ED1}"

// Place is where a peer is to be reached.
type Place struct {
	Streams   netip.AddrPort // where it listens
	Datagrams netip.AddrPort
}

// Config is what a peer is to be.
type Config struct {
	Name   string // of the player; what is beyond 19 bytes of Latin-1 is cut
	Place  Place
	Script []script.Command
	Seed   uint64
}

// role is what hosts and joiners do in their own ways.
type role interface {
	// begin is called once, with the first input.
	begin(now time.Time)
	// found takes a datagram that is no ping.
	found(now time.Time, from netip.AddrPort, f received)
	// opened is told that the connection of a link is there.
	opened(now time.Time, l *link)
	// asked takes a message of DirectPlay.
	asked(now time.Time, l *link, f received)
	// told takes a message of the game that players do not handle alike.
	told(now time.Time, l *link, f received)
	// left is told that a link is over.
	left(now time.Time, l *link)
	// refused is told that a link could not be made.
	refused(now time.Time, l *link)
	// do does a command that players do not do alike, and reports whether it is done: if
	// not it is tried again.
	do(now time.Time, c script.Command) bool
	// followed is told, more than once, that the script is over.
	followed(now time.Time)
}

// peer is what hosts and joiners have in common.
type peer struct {
	*clerk
	role   role
	cfg    Config
	others schema.Sender // the side of those that it first meets
	random *rand.Rand

	links     []*link
	dials     machine.Conn // connections dialled so far
	strangers int
	begun     bool
	over      bool // nothing more is to be done
	agenda    []errand

	key          uint32 // of ids; 0 while it is not known
	system, user uint32 // its own ids
	number       int    // its own, as a player; 0 while it is not known
	started      time.Time
	slots        slots
	odd          oddity // of the next message
	game         game
	progress     progress // through the script
}

// errand is something to do at a time.
type errand struct {
	at time.Time
	do func(now time.Time)
}

func newPeer(cfg Config, side, others schema.Sender, o machine.Observer) *peer {
	cfg.Name = script.Clip(cfg.Name, nameMost)
	p := &peer{clerk: newClerk(side, cfg.Place.Streams.Port(), o), cfg: cfg, others: others}
	p.random = rand.New(rand.NewPCG(cfg.Seed, 3))
	p.progress.Cursor = script.Begin(cfg.Script)
	return p
}

// Handle takes one input and returns what to do.
func (p *peer) Handle(now time.Time, in machine.Input) []machine.Output {
	if p.over {
		return nil
	}
	if !p.begun {
		p.begun, p.started = true, now
		p.role.begin(now)
	}
	p.runErrands(now)
	switch in.Kind {
	case machine.Opened:
		p.connected(now, in)
	case machine.Refused:
		if l := p.linkOf(in.Conn); l != nil {
			l.out = 0
			p.role.refused(now, l)
		}
	case machine.Stream:
		if l := p.linkOf(in.Conn); l != nil && in.Conn == l.in {
			l.stream(now, in.Data)
		} else if l != nil {
			l.complain(now, "backwards", "bytes on the connection that only this side writes to")
		}
	case machine.Closed:
		if l := p.linkOf(in.Conn); l != nil {
			l.closed(now, in.Conn)
		}
	case machine.Datagram:
		p.datagram(now, in)
	}
	p.follow(now)
	if p.over {
		p.Do(machine.Output{Kind: machine.Done})
	}
	return p.Take()
}

// Deadline returns when something is to be done. Before the peer has begun that is at
// once.
func (p *peer) Deadline() (when time.Time) {
	switch {
	case p.over:
		return time.Time{}
	case !p.begun:
		return time.Unix(0, 0)
	}
	for _, e := range p.agenda {
		when = machine.Earlier(when, e.at)
	}
	return when
}

// after has something done in a while.
func (p *peer) after(now time.Time, d time.Duration, do func(now time.Time)) {
	p.agenda = append(p.agenda, errand{now.Add(d), do})
}

// runErrands does what is due, in the order of its times. What these ask for is done
// no sooner than the next time.
func (p *peer) runErrands(now time.Time) {
	var due []errand
	p.agenda = slices.DeleteFunc(p.agenda, func(e errand) bool {
		if e.at.After(now) {
			return false
		}
		due = append(due, e)
		return true
	})
	slices.SortStableFunc(due, func(a, b errand) int { return a.at.Compare(b.at) })
	for _, e := range due {
		e.do(now)
	}
}

// connected notes a connection, dialled or accepted.
func (p *peer) connected(now time.Time, in machine.Input) {
	if in.Conn > 0 {
		l := p.linkOf(in.Conn)
		if l == nil { // it is over already
			p.Do(machine.Output{Kind: machine.Abort, Conn: in.Conn})
			return
		}
		l.opened()
		p.role.opened(now, l)
		return
	}
	l := p.link(now, in.Peer.Addr(), StreamPort)
	if l == nil || l.in != 0 {
		p.stranger(now, "refused", fmt.Sprintf("%s: a connection more", in.Peer))
		p.Do(machine.Output{Kind: machine.Abort, Conn: in.Conn})
		return
	}
	l.in, l.from = in.Conn, in.Peer
}

// joined lists the links to players, in the order in which they came.
func (p *peer) joined() (list []*link) {
	for _, l := range p.links {
		if l.user != 0 && !l.leaving {
			list = append(list, l)
		}
	}
	return list
}

// played takes a message of the game.
func (p *peer) played(now time.Time, l *link, f received) {
	p.turned(now, f)
	p.role.told(now, l, f)
}
