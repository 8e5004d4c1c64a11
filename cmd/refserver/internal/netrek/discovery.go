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
		d.observer.Received(now, in.Peer, queryRecord(string(in.Data)))
	}
	text, r := d.reply()
	d.lastID++
	r.ID = d.lastID
	return []machine.Output{{Kind: machine.SendDatagram, Peer: in.Peer, Data: []byte(text), Records: []machine.Record{r}}}
}

// Deadline returns never.
func (d *directory) Deadline() time.Time { return time.Time{} }

// reply returns the answer to a query. It is written here and not by the schema,
// whose layout has the comma behind the type as a byte without a meaning.
func (d *directory) reply() (string, machine.Record) {
	players, queue := 0, 0
	if b := d.cfg.Board; b != nil {
		players, queue = int(b.players.Load()), int(b.queue.Load())
	}
	kind, entries := "B", []schema.Values{{"port": gamePort, "players": players, "queue": queue}}
	if d.cfg.INL {
		kind = "I"
		entries = []schema.Values{{"port": homePort, "players": players, "queue": queue}, {"port": awayPort, "players": 0, "queue": 0}}
	}
	text := fmt.Sprintf("s,%s,%s,%d", kind, d.cfg.Comment, len(entries))
	for _, e := range entries {
		text += fmt.Sprintf(",%d,%d,%d", e["port"], e["players"], e["queue"])
	}
	text += "\n"
	return text, textRecord("REPLY", text, schema.Values{"type": kind, "comment": d.cfg.Comment, "ports": len(entries), "entries": entries})
}

// textRecord is a datagram that is a text: its first byte is its type.
func textRecord(message, text string, v schema.Values) machine.Record {
	return machine.Record{Message: message, Opcode: int(text[0]), Size: len(text), Mode: -1, Seq: -1, Length: -1, Via: schema.UDP, Body: schema.NewTree(v)}
}

func queryRecord(text string) machine.Record {
	return textRecord("QUERY", text, schema.Values{"text": text[1:]})
}

// queryText is what COW sends (section 10).
const queryText = "?version=netrek-client-cow-3.3.2"

// asker is a client that only looks for a server.
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
		a.observer.Received(now, in.Peer, textRecord("REPLY", string(in.Data), schema.Values{"text": string(in.Data)}))
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
	r := queryRecord(text)
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
