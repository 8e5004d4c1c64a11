package netrek

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"opscope/cmd/refserver/internal/clock"
	"opscope/cmd/refserver/internal/machine"
)

// epoch is when tests begin.
var epoch = time.Date(2026, 11, 29, 20, 15, 0, 0, time.UTC)

var serverAddr = netip.MustParseAddrPort("10.0.0.1:2592")

// station is a machine on the wire, and what it told.
type station struct {
	cable   *cable
	name    string
	addr    netip.AddrPort
	sockets []netip.AddrPort // beside that
	bound   uint16           // how many of those there have been
	machine machine.Machine
	heard   []heard
	events  []string
	done    bool
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

// heard is a record that a machine understood, with its values as text.
type heard struct {
	machine.Record
	text string
}

func (s *station) Received(_ time.Time, _ netip.AddrPort, r machine.Record) {
	h := heard{Record: r, text: textOf(r)}
	h.Body = nil
	s.heard = append(s.heard, h)
}
func (s *station) Acknowledged(time.Time, int) {}
func (s *station) Event(_ time.Time, code, text string) {
	s.events = append(s.events, code+": "+text)
}

// textOf writes the top-level values of a record: "pnum=0 dir=64".
func textOf(r machine.Record) string {
	var b strings.Builder
	for i := 0; i < len(r.Body.Nodes); i = r.Body.Next(i) {
		n := &r.Body.Nodes[i]
		if n.Field == nil || n.Field.Hidden || n.Field.Part {
			continue
		}
		if n.BodyLen > 0 {
			fmt.Fprintf(&b, " %s=%s", n.Field.Name, r.Body.AppendText(nil, i))
		} else {
			fmt.Fprintf(&b, " %s=%d", n.Field.Name, int64(n.Num))
		}
	}
	return strings.TrimPrefix(b.String(), " ")
}

// got returns the texts of what was heard of a kind.
func (s *station) got(message string) (texts []string) {
	for _, h := range s.heard {
		if h.Message == message {
			texts = append(texts, h.text)
		}
	}
	return texts
}

// last returns the text of the last of a kind, "" for none.
func (s *station) last(message string) string {
	list := s.got(message)
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

// bind opens one more socket.
func (s *station) bind() netip.AddrPort {
	s.bound++
	local := netip.AddrPortFrom(s.addr.Addr(), 40000+s.bound)
	s.sockets = append(s.sockets, local)
	return local
}

// unbind closes one, which has to be open.
func (s *station) unbind(t testing.TB, local netip.AddrPort) {
	t.Helper()
	i := slices.Index(s.sockets, local)
	if i < 0 {
		t.Fatalf("%s closes %v, which is not open", s.name, local)
	}
	s.sockets = slices.Delete(s.sockets, i, i+1)
}

// cable joins one server and its bots, without a tape. It loses datagrams with a
// probability.
type cable struct {
	clock.Clock
	t      testing.TB
	server *station
	bots   []*station
	all    []clock.Sleeper // all of them
	random *rand.Rand
	loss   float64
	log    []string // every output, as text
	conns  map[machine.Conn]*station
}

func newCable(t testing.TB, cfg ServerConfig, bots ...BotConfig) *cable {
	w := &cable{t: t, Clock: clock.Clock{Now: epoch}, random: rand.New(rand.NewPCG(cfg.Seed, 9)), conns: map[machine.Conn]*station{}}
	w.server = &station{cable: w, name: "server", addr: serverAddr}
	w.server.machine = NewServer(cfg, w.server)
	w.all = append(w.all, w.server)
	for i, b := range bots {
		s := &station{cable: w, name: fmt.Sprint("bot", i+1)}
		s.addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(2 + i)}), 50111)
		b.Server, b.Local = serverAddr, s.addr
		if b.Name == "" {
			b.Name = []string{"Ada", "Brin", "Caro"}[i%3]
		}
		s.machine = NewBot(b, s)
		w.bots, w.all = append(w.bots, s), append(w.all, s)
	}
	return w
}

func (w *cable) post(to *station, in machine.Input) {
	w.After(10*time.Millisecond, func() { w.give(to, in) })
}

// run plays until a time has passed or all bots are done.
func (w *cable) run(d time.Duration) {
	if !w.Play(w.Now.Add(d), 1_000_000, w.all...) {
		w.t.Fatal("the machines do not come to rest")
	}
}

func (w *cable) give(s *station, in machine.Input) {
	if s.done {
		return
	}
	for _, o := range s.machine.Handle(w.Now, in) {
		w.log = append(w.log, fmt.Sprintf("%s %d %d %v %x", s.name, o.Kind, o.Conn, o.Peer, o.Data))
		checkRecords(w.t, s.name, o)
		w.carry(s, o)
	}
}

// carry does what a machine wants. The connections of bots are numbered by the
// server's side as -1, -2, ...
func (w *cable) carry(s *station, o machine.Output) {
	switch o.Kind {
	case machine.Done:
		s.done = true
	case machine.Dial:
		id := machine.Conn(-1 - slices.Index(w.bots, s))
		w.conns[id] = s
		w.post(w.server, machine.Input{Kind: machine.Opened, Conn: id, Peer: netip.AddrPortFrom(s.addr.Addr(), 40000)})
		w.post(s, machine.Input{Kind: machine.Opened, Conn: o.Conn, Peer: serverAddr})
	case machine.Bind:
		w.post(s, machine.Input{Kind: machine.Bound, Conn: o.Conn, Port: s.bind().Port()})
	case machine.Unbind:
		s.unbind(w.t, netip.AddrPortFrom(s.addr.Addr(), o.Port))
	case machine.SendDatagram:
		for _, to := range append([]*station{w.server}, w.bots...) {
			if (to.addr == o.Peer || slices.Contains(to.sockets, o.Peer)) && w.random.Float64() >= w.loss {
				w.post(to, machine.Input{Kind: machine.Datagram, Peer: netip.AddrPortFrom(s.addr.Addr(), cmp.Or(o.Port, s.addr.Port())), Port: o.Peer.Port(), Data: o.Data})
			}
		}
	default:
		to, id := w.server, machine.Conn(-1-slices.Index(w.bots, s))
		if s == w.server {
			to, id = w.conns[o.Conn], machine.BotConn
		}
		in := machine.Input{Kind: machine.Stream, Conn: id, Peer: s.addr, Data: o.Data}
		if o.Kind != machine.SendStream {
			in.Kind = machine.Closed
		}
		w.post(to, in)
	}
}

// checkRecords checks that the records of an output tile its data, and that a
// datagram of the server begins with its sequence and is not too large.
func checkRecords(t testing.TB, name string, o machine.Output) {
	t.Helper()
	at := 0
	for _, r := range o.Records {
		if r.Offset != at || r.Size < 1 {
			t.Fatalf("%s: %s stands at %d with %d bytes, want it at %d", name, r.Message, r.Offset, r.Size, at)
		}
		at += r.Size
	}
	if at != len(o.Data) {
		t.Fatalf("%s: the records make %d bytes of %d", name, at, len(o.Data))
	}
	if o.Kind != machine.SendDatagram || name != "server" {
		return
	}
	if len(o.Data) > datagramMost {
		t.Fatalf("a datagram of %d bytes", len(o.Data))
	}
	for i, r := range o.Records {
		if first := r.Message == "SP_SEQUENCE" || r.Message == "SP_UDP_REPLY"; first != (i == 0) {
			t.Fatalf("%s is packet %d of a datagram", r.Message, i)
		}
		if r.Message != "SP_SEQUENCE" && r.Message != "SP_UDP_REPLY" && !overUDP[r.Message] {
			t.Fatalf("%s goes over UDP", r.Message)
		}
	}
}

// script parses one that is right.
func scripted(t testing.TB, text string) []Command {
	t.Helper()
	s, err := Scripts.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
