package netrek

import (
	"net/netip"
	"sync/atomic"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
)

// DiscoveryPort is where servers answer queries, over UDP (section 10).
const DiscoveryPort = 3521

// The ports that a reply says, whatever the server listens on: of a usual server, and
// of the two sides of an INL game.
const (
	gamePort = 2592
	homePort = 4566
	awayPort = 4577
)

// maxQueries bounds how many queries are told of.
const maxQueries = 1000

// Board is who plays, as a server tells a directory. They may run at the same time.
type Board struct{ players, queue atomic.Int64 }

// Set puts numbers on the board.
func (b *Board) Set(players, queue int) {
	b.players.Store(int64(players))
	b.queue.Store(int64(queue))
}

// DirectoryConfig is what a directory is to be.
type DirectoryConfig struct {
	Board   *Board
	Comment string // "opscope reference server"; no comma
	// INL has it speak for an INL server, whose reply has two triples: usual clients
	// miss the second.
	INL bool
}

// directory answers queries. It keeps nothing of who asks.
type directory struct {
	*clerk
	cfg     DirectoryConfig
	queries int
}

// NewDirectory returns the machine that answers on DiscoveryPort. Of a real server it
// is another process than the game.
func NewDirectory(cfg DirectoryConfig, o machine.Observer) machine.Machine {
	if cfg.Comment == "" {
		cfg.Comment = "opscope reference server"
	}
	return &directory{clerk: newClerk(schema.Server, o), cfg: cfg}
}

// Handle answers a query; only its first byte counts. Everything else is ignored.
func (d *directory) Handle(now time.Time, in machine.Input) []machine.Output {
	if in.Kind != machine.Datagram || len(in.Data) == 0 || in.Data[0] != '?' {
		return nil
	}
	if d.queries++; d.queries <= maxQueries {
		d.received(now, in)
	}
	d.say(now, in.Peer, "REPLY", d.reply())
	return d.Take()
}

// Deadline returns never.
func (d *directory) Deadline() time.Time { return time.Time{} }

func (d *directory) reply() schema.Values {
	players, queue := 0, 0
	if b := d.cfg.Board; b != nil {
		players, queue = int(b.players.Load()), int(b.queue.Load())
	}
	if d.cfg.INL {
		return schema.Values{"type": "I", "comment": d.cfg.Comment, "ports": 2, "entries": []schema.Values{
			{"port": homePort, "players": players, "queue": queue}, {"port": awayPort, "players": 0, "queue": 0},
		}}
	}
	return schema.Values{"type": "B", "comment": d.cfg.Comment, "ports": 1, "entries": []schema.Values{
		{"port": gamePort, "players": players, "queue": queue},
	}}
}

// say sends a text datagram.
func (c *clerk) say(now time.Time, to netip.AddrPort, message string, v schema.Values) {
	r, data, err := c.append(nil, nil, message, v)
	if err != nil {
		c.observer.Event(now, "dropped", err.Error())
		return
	}
	var p machine.Parcel
	p.Add(&c.Desk, r, data)
	c.Do(p.Take(machine.Output{Kind: machine.SendDatagram, Peer: to}))
}

// received tells of a text datagram.
func (c *clerk) received(now time.Time, in machine.Input) {
	r, err := c.readText(in.Data)
	if err != nil {
		c.observer.Event(now, "malformed", err.Error())
		return
	}
	c.observer.Received(now, in.Peer, r)
}

// queryText is what COW sends behind the question mark (section 10).
const queryText = "version=netrek-client-cow-3.3.2"

// asker is a client that only looks for a server, or for a metaserver's list.
type asker struct {
	*clerk
	to    netip.AddrPort
	times int
	next  time.Time
	began bool
	done  bool
}

// NewAsker returns a machine that sends a few queries, and is done when it has its
// answers or when none comes.
func NewAsker(to netip.AddrPort, o machine.Observer) machine.Machine {
	return &asker{clerk: newClerk(schema.Client, o), to: to}
}

const (
	askTimes = 3
	askEvery = 500 * time.Millisecond
)

// Handle sends the next query, and takes answers.
func (a *asker) Handle(now time.Time, in machine.Input) []machine.Output {
	if a.done {
		return nil
	}
	if in.Kind == machine.Datagram && in.Peer == a.to && len(in.Data) > 0 && (in.Data[0] == 's' || in.Data[0] == 'r') {
		a.received(now, in)
	}
	if a.began && now.Before(a.next) {
		return nil
	}
	a.began = true
	if a.times >= askTimes {
		a.done = true
		return []machine.Output{{Kind: machine.Done}}
	}
	text := queryText
	if a.times == 1 {
		text = "" // as old clients ask
	}
	a.times++
	a.next = now.Add(askEvery)
	a.say(now, a.to, "QUERY", schema.Values{"text": text})
	return a.Take()
}

// Deadline returns when the next query is due.
func (a *asker) Deadline() time.Time {
	switch {
	case a.done:
		return time.Time{}
	case !a.began:
		return time.Unix(0, 0)
	}
	return a.next
}
