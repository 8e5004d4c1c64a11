package netrek

import (
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
)

// DiscoveryPort is where servers answer queries, over UDP (section 10).
const DiscoveryPort = 3521

// gamePort is what a reply says, whatever the server listens on.
const gamePort = 2592

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
	// Home and Away have it speak for an INL server, whose reply has two triples:
	// usual clients miss the second.
	INL bool
}

// directory answers queries. It keeps nothing of who asks.
type directory struct {
	cfg      DirectoryConfig
	observer machine.Observer
	lastID   int
	queries  int
}

// NewDirectory returns the machine that answers on DiscoveryPort. Of a real server it
// is another process than the game.
func NewDirectory(cfg DirectoryConfig, o machine.Observer) machine.Machine {
	if cfg.Comment == "" {
		cfg.Comment = "opscope reference server"
	}
	if o == nil {
		o = deaf{}
	}
	return &directory{cfg: cfg, observer: o}
}

// Handle answers a query; only its first byte counts. Everything else is ignored.
func (d *directory) Handle(now time.Time, in machine.Input) []machine.Output {
	if in.Kind != machine.Datagram || len(in.Data) == 0 || in.Data[0] != '?' {
		return nil
	}
	if d.queries++; d.queries <= maxQueries {
		d.observer.Received(now, in.Peer, textRecord("QUERY", string(in.Data)))
	}
	text := d.reply()
	r := textRecord("REPLY", text)
	d.lastID++
	r.ID = d.lastID
	return []machine.Output{{Kind: machine.SendDatagram, Peer: in.Peer, Data: []byte(text), Records: []machine.Record{r}}}
}

// Deadline returns never.
func (d *directory) Deadline() time.Time { return time.Time{} }

func (d *directory) reply() string {
	players, queue := int64(0), int64(0)
	if b := d.cfg.Board; b != nil {
		players, queue = b.players.Load(), b.queue.Load()
	}
	if d.cfg.INL {
		return fmt.Sprintf("s,I,%s,2,4566,%d,%d,4577,%d,%d\n", d.cfg.Comment, players, queue, 0, 0)
	}
	return fmt.Sprintf("s,B,%s,1,%d,%d,%d\n", d.cfg.Comment, gamePort, players, queue)
}

// textRecord is a datagram that is a text: its first byte is its type.
func textRecord(message, text string) machine.Record {
	return machine.Record{Message: message, Opcode: int(text[0]), Size: len(text), Mode: -1, Seq: -1, Length: -1,
		Via: schema.UDP, Body: schema.NewTree(schema.Values{"text": text})}
}

// queryText is what COW sends (section 10).
const queryText = "?version=netrek-client-cow-3.3.2"

// Asker is a client that only looks for a server.
type asker struct {
	to       netip.AddrPort
	observer machine.Observer
	times    int
	next     time.Time
	began    bool
	done     bool
}

// NewAsker returns a machine that sends a few queries, and is done when it has its
// answers or when none comes.
func NewAsker(to netip.AddrPort, o machine.Observer) machine.Machine {
	if o == nil {
		o = deaf{}
	}
	return &asker{to: to, observer: o}
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
	if in.Kind == machine.Datagram && in.Peer == a.to && len(in.Data) > 0 && in.Data[0] == 's' {
		a.observer.Received(now, in.Peer, textRecord("REPLY", string(in.Data)))
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
		text = "?" // as old clients ask
	}
	a.times++
	a.next = now.Add(askEvery)
	r := textRecord("QUERY", text)
	r.ID = a.times
	return []machine.Output{{Kind: machine.SendDatagram, Peer: a.to, Data: []byte(text), Records: []machine.Record{r}}}
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
