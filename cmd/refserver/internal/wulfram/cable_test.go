package wulfram

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"opscope/cmd/refserver/internal/clock"
	"opscope/cmd/refserver/internal/machine"
)

// epoch is when tests begin.
var epoch = time.Date(2026, 11, 29, 20, 15, 0, 0, time.UTC)

var serverAddr = netip.MustParseAddrPort("10.0.0.1:2627")

// The world under test: one server and its bots, joined by a cable without a tape.

// station is a machine on the wire, and what it told.
type station struct {
	cable    *cable
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

// Deadline returns when the machine wants a Tick.
func (s *station) Deadline() time.Time {
	if s.done {
		return time.Time{}
	}
	return s.machine.Deadline()
}

// Wake gives the machine a Tick.
func (s *station) Wake() { s.cable.give(s, machine.Input{Kind: machine.Tick}) }

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
	clock.Clock
	t       testing.TB
	server  *station
	bots    []*station
	all     []clock.Sleeper // all of them
	random  *rand.Rand
	faults  faults
	seen    func(from *station, o machine.Output) // may be nil
	outputs []string
}

func newCable(t testing.TB, cfg ServerConfig, bots ...BotConfig) *cable {
	cfg.Addr = serverAddr
	w := &cable{t: t, Clock: clock.Clock{Now: epoch}, random: rand.New(rand.NewPCG(cfg.Seed, 9))}
	w.server = &station{cable: w, name: "server", addr: serverAddr, acked: map[int]bool{}}
	w.server.machine = NewServer(cfg, w.server)
	w.all = append(w.all, w.server)
	for i, b := range bots {
		b.Server = serverAddr
		s := &station{cable: w, name: fmt.Sprint("bot", i+1), acked: map[int]bool{}}
		s.addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(2 + i)}), 50111)
		s.machine = NewBot(b, s)
		w.bots, w.all = append(w.bots, s), append(w.all, s)
	}
	return w
}

func (w *cable) post(to *station, in machine.Input, delay time.Duration) {
	w.After(delay, func() { w.give(to, in) })
}

// run plays until a time has passed or everybody is done.
func (w *cable) run(d time.Duration) {
	if !w.Play(w.Now.Add(d), 5_000_000, w.all...) {
		w.t.Fatal("the machines do not come to rest")
	}
}

func (w *cable) give(s *station, in machine.Input) {
	for _, o := range s.machine.Handle(w.Now, in) {
		s.sent = append(s.sent, o.Records...)
		s.outbound += len(o.Data)
		w.outputs = append(w.outputs, fmt.Sprintf("%s %s %d %d %s %x", w.Now.Format("05.000000"), s.name, o.Kind, o.Conn, o.Peer, o.Data))
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
		w.post(w.server, machine.Input{Kind: machine.Opened, Conn: w.connOf(from), Peer: from.addr}, delay)
		w.post(from, machine.Input{Kind: machine.Opened, Conn: o.Conn, Peer: serverAddr}, delay)
	case machine.SendStream:
		w.post(to, machine.Input{Kind: machine.Stream, Conn: conn, Data: o.Data}, delay)
	case machine.Close, machine.Abort:
		w.post(to, machine.Input{Kind: machine.Closed, Conn: conn}, delay)
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
	w.post(to, in, d)
	if w.random.Float64() < w.faults.duplicate {
		w.post(to, in, d+time.Duration(w.random.IntN(80))*time.Millisecond)
	}
}

// other returns who is at the other end, and what it calls the connection.
func (w *cable) other(from *station, o machine.Output) (*station, machine.Conn) {
	if from != w.server {
		return w.server, w.connOf(from)
	}
	for i, b := range w.bots {
		if o.Kind == machine.SendDatagram && b.addr == o.Peer || o.Kind != machine.SendDatagram && o.Conn == machine.Conn(100+i) {
			return b, machine.BotConn
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
