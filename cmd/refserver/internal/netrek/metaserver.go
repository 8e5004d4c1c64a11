package netrek

import (
	"net/netip"
	"slices"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
)

// maxListed is how many servers a metaserver lists.
const maxListed = 64

// listed is a server as its last solicitation had it.
type listed struct {
	address        string
	port           int
	players, queue int
	kind           string
	since          time.Time
}

// metaserver keeps a list of the servers that solicit, and tells it to who asks. It
// answers no solicitation (section 10).
type metaserver struct {
	*clerk
	servers []listed
	queries int
}

// NewMetaserver returns the machine that lists servers, on DiscoveryPort.
func NewMetaserver(o machine.Observer) machine.Machine {
	return &metaserver{clerk: newClerk(schema.Server, o)}
}

// Handle takes a query or a solicitation; everything else is ignored.
func (m *metaserver) Handle(now time.Time, in machine.Input) []machine.Output {
	if in.Kind != machine.Datagram || len(in.Data) == 0 {
		return nil
	}
	switch in.Data[0] {
	case '?':
		if m.queries++; m.queries <= maxQueries {
			m.received(now, in)
		}
		m.say(now, in.Peer, "META_REPLY", m.list(now))
	case 'b':
		m.enlist(now, in)
	}
	return m.Take()
}

// Deadline returns never.
func (m *metaserver) Deadline() time.Time { return time.Time{} }

// enlist takes a solicitation, the last of a server.
func (m *metaserver) enlist(now time.Time, in machine.Input) {
	r, err := m.readText(in.Data)
	if err != nil {
		m.observer.Event(now, "malformed", err.Error())
		return
	}
	m.observer.Received(now, in.Peer, r)
	b := r.Body
	s := listed{
		address: b.Text("address"), port: b.Number("port"), players: b.Number("players"),
		queue: max(0, -b.Number("free")), kind: b.Text("type"), since: now,
	}
	m.servers = slices.DeleteFunc(m.servers, func(x listed) bool { return x.address == s.address && x.port == s.port })
	if s.players >= 0 && len(m.servers) < maxListed { // else it wants to be off the list
		m.servers = append(m.servers, s)
	}
}

// The states of a server in a list.
const (
	statusQueue = 1
	statusOpen  = 2
	statusEmpty = 3
)

// list is the servers, with the seconds since each was heard of.
func (m *metaserver) list(now time.Time) schema.Values {
	list := []schema.Values{}
	for _, s := range m.servers {
		status := statusOpen
		switch {
		case s.queue > 0:
			status = statusQueue
		case s.players == 0:
			status = statusEmpty
		}
		list = append(list, schema.Values{
			"host": s.address, "port": s.port, "status": status, "age": int(now.Sub(s.since) / time.Second),
			"players": s.players, "queue": s.queue, "type": s.kind,
		})
	}
	return schema.Values{"count": len(list), "servers": list}
}

// Of a solicitation: how far apart two are at least, and at most.
const (
	solicitMin = 2 * time.Second
	solicitMax = 60 * time.Second
)

// solicitor tells a metaserver of a server, as a part of it that has its own port.
type solicitor struct {
	*clerk
	cfg  SolicitorConfig
	last [2]int64 // players and queue, as told
	told time.Time
	next time.Time // when the board is looked at again
}

// SolicitorConfig is whom a solicitor speaks for, and to.
type SolicitorConfig struct {
	Board  *Board
	Server netip.AddrPort
	Meta   netip.AddrPort
}

// NewSolicitor returns the machine that solicits.
func NewSolicitor(cfg SolicitorConfig, o machine.Observer) machine.Machine {
	return &solicitor{clerk: newClerk(schema.Client, o), cfg: cfg}
}

// Handle solicits when something has changed, or when it has not for long. Nothing
// comes back.
func (s *solicitor) Handle(now time.Time, _ machine.Input) []machine.Output {
	if now.Before(s.next) {
		return nil
	}
	s.next = now.Add(solicitMin)
	board := [2]int64{s.cfg.Board.players.Load(), s.cfg.Board.queue.Load()}
	if s.told.IsZero() || board != s.last || now.Sub(s.told) >= solicitMax {
		s.last, s.told = board, now
		s.say(now, s.cfg.Meta, "SOLICIT", s.solicitation())
	}
	return s.Take()
}

// Deadline returns when the board is to be looked at again; before it has begun that is
// at once.
func (s *solicitor) Deadline() time.Time {
	if s.next.IsZero() {
		return time.Unix(0, 0)
	}
	return s.next
}

// solicitation lists no players: those who have just come are left out.
func (s *solicitor) solicitation() schema.Values {
	players, queue := int(s.last[0]), int(s.last[1])
	free := MaxSlots - players
	if queue > 0 {
		free = -queue
	}
	return schema.Values{
		"address": s.cfg.Server.Addr().String(), "type": "B", "port": int(s.cfg.Server.Port()), "observer_port": int(s.cfg.Server.Port()) + 1,
		"players": players, "free": free, "tmode": "n", "rsa": "n", "full": yes(queue > 0), "comment": "opscope reference server",
		"lines": 0, "player_list": []schema.Values{},
	}
}

// yes is y or n.
func yes(b bool) string {
	if b {
		return "y"
	}
	return "n"
}
