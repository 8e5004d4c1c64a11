package wulfram

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"opscope/cmd/refserver/internal/machine"
)

// epoch is when tests begin.
var epoch = time.Date(2026, 11, 29, 20, 15, 0, 0, time.UTC)

var serverAddr = netip.MustParseAddrPort("10.0.0.1:2627")

// The world under test: one server and its bots, joined by a cable without a tape.

// parcel is something on its way.
type parcel struct {
	at   time.Time
	n    int // of parcels, so that equal times keep their order
	to   *station
	from netip.AddrPort
	in   machine.Input
}

type parcels []parcel

func (p parcels) Len() int { return len(p) }
func (p parcels) Less(i, j int) bool {
	return p[i].at.Before(p[j].at) || p[i].at.Equal(p[j].at) && p[i].n < p[j].n
}
func (p parcels) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *parcels) Push(x any)   { *p = append(*p, x.(parcel)) }
func (p *parcels) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

// station is a machine on the wire, and what it told.
type station struct {
	name     string
	addr     netip.AddrPort
	machine  machine.Machine
	heard    []machine.Record
	bodies   []string // of heard, as text
	sent     []machine.Record
	acked    map[int]bool
	events   []string
	done     bool
	outbound int // bytes
}

func (s *station) Received(_ time.Time, _ netip.AddrPort, r machine.Record) {
	s.bodies = append(s.bodies, textOf(r))
	r.Body = nil
	s.heard = append(s.heard, r)
}
func (s *station) Acknowledged(_ time.Time, id int) { s.acked[id] = true }
func (s *station) Event(_ time.Time, code, text string) {
	s.events = append(s.events, code+": "+text)
}

// textOf returns the "text" of a record, for those that have one.
func textOf(r machine.Record) string { return values{r.Body}.Text("text") }

// faults are what the wire does to datagrams.
type faults struct {
	loss, duplicate, reorder float64
}

type cable struct {
	t       testing.TB
	now     time.Time
	server  *station
	bots    []*station
	queue   parcels
	n       int
	random  *rand.Rand
	faults  faults
	seen    func(from *station, o machine.Output) // may be nil
	outputs []string
}

func newCable(t testing.TB, cfg ServerConfig, bots ...BotConfig) *cable {
	cfg.Addr = serverAddr
	w := &cable{t: t, now: epoch, random: rand.New(rand.NewPCG(cfg.Seed, 9))}
	w.server = &station{name: "server", addr: serverAddr, acked: map[int]bool{}}
	w.server.machine = NewServer(cfg, w.server)
	for i, b := range bots {
		b.Server = serverAddr
		s := &station{name: fmt.Sprint("bot", i+1), acked: map[int]bool{}}
		s.addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(2 + i)}), 50111)
		s.machine = NewBot(b, s)
		w.bots = append(w.bots, s)
	}
	return w
}

func (w *cable) post(to *station, from netip.AddrPort, in machine.Input, delay time.Duration) {
	w.n++
	heap.Push(&w.queue, parcel{w.now.Add(delay), w.n, to, from, in})
}

// run plays until a time has passed or everybody is done.
func (w *cable) run(d time.Duration) {
	end := w.now.Add(d)
	for steps := 0; ; steps++ {
		if steps > 5_000_000 {
			w.t.Fatal("the machines do not come to rest")
		}
		next, who := w.next()
		if next.IsZero() || next.After(end) {
			w.now = end
			return
		}
		w.now = next
		if who != nil {
			w.give(who, machine.Input{Kind: machine.Tick})
			continue
		}
		p := heap.Pop(&w.queue).(parcel)
		w.give(p.to, p.in)
	}
}

// next returns when something happens next, and to whom a tick is due then.
func (w *cable) next() (when time.Time, who *station) {
	if len(w.queue) > 0 {
		when = w.queue[0].at
	}
	for _, s := range append([]*station{w.server}, w.bots...) {
		d := s.machine.Deadline()
		if s.done || d.IsZero() {
			continue
		}
		if d.Before(w.now) {
			d = w.now
		}
		if when.IsZero() || d.Before(when) {
			when, who = d, s
		}
	}
	return when, who
}

func (w *cable) give(s *station, in machine.Input) {
	for _, o := range s.machine.Handle(w.now, in) {
		s.sent = append(s.sent, o.Records...)
		s.outbound += len(o.Data)
		w.outputs = append(w.outputs, fmt.Sprintf("%s %s %d %d %s %x", w.now.Format("05.000000"), s.name, o.Kind, o.Conn, o.Peer, o.Data))
		if w.seen != nil {
			w.seen(s, o)
		}
		w.carry(s, o)
	}
}

const delay = 10 * time.Millisecond

// carry takes an output to the other end. Connections are numbered by the bot.
func (w *cable) carry(from *station, o machine.Output) {
	to, conn := w.other(from, o)
	if to == nil {
		return
	}
	switch o.Kind {
	case machine.Dial:
		w.post(w.server, from.addr, machine.Input{Kind: machine.Opened, Conn: w.connOf(from), Peer: from.addr}, delay)
		w.post(from, serverAddr, machine.Input{Kind: machine.Opened, Conn: o.Conn, Peer: serverAddr}, delay)
	case machine.SendStream:
		w.post(to, from.addr, machine.Input{Kind: machine.Stream, Conn: conn, Data: o.Data}, delay)
	case machine.Close, machine.Abort:
		w.post(to, from.addr, machine.Input{Kind: machine.Closed, Conn: conn}, delay)
	case machine.SendDatagram:
		w.datagram(from, to, o.Data)
	case machine.Done:
		from.done = true
	}
}

func (w *cable) datagram(from, to *station, data []byte) {
	if w.random.Float64() < w.faults.loss {
		return
	}
	d := delay
	if w.random.Float64() < w.faults.reorder {
		d += time.Duration(w.random.IntN(80)) * time.Millisecond
	}
	in := machine.Input{Kind: machine.Datagram, Peer: from.addr, Data: data}
	w.post(to, from.addr, in, d)
	if w.random.Float64() < w.faults.duplicate {
		w.post(to, from.addr, in, d+time.Duration(w.random.IntN(80))*time.Millisecond)
	}
}

// other returns who is at the other end, and what it calls the connection.
func (w *cable) other(from *station, o machine.Output) (*station, machine.Conn) {
	if from != w.server {
		return w.server, w.connOf(from)
	}
	for i, b := range w.bots {
		if o.Kind == machine.SendDatagram && b.addr == o.Peer || o.Kind != machine.SendDatagram && o.Conn == machine.Conn(100+i) {
			return b, botConn
		}
	}
	return nil, 0
}

func (w *cable) connOf(s *station) machine.Conn {
	for i, b := range w.bots {
		if b == s {
			return machine.Conn(100 + i)
		}
	}
	return 0
}
