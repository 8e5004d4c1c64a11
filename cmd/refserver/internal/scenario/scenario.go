package scenario

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/misbehave"
	"opscope/cmd/refserver/internal/script"
	"opscope/cmd/refserver/internal/tape"
	"opscope/schema"
)

// Scenario is a session, or several, with what goes wrong.
type Scenario struct {
	Name        string
	Doc         string // one line
	Protocol    string
	Duration    time.Duration // at most; the run ends when all bots are done
	Link        tape.Link
	MTU         int  // 0 for 1500
	Nanoseconds bool // the resolution of the capture; else microseconds
	Faults      Faults
	// Cast lists the machines for a seed.
	Cast func(seed uint64) []Role
	// Acks tells acknowledgements from other records; nil knows none.
	Acks Acks

	world uint64 // see InWorld; 0 for the seed of the network
}

// All is the scenarios, in the order in which they are listed. Each of them wants
// little: a capture shall be small.
var All = slices.Concat(wulframScenarios, netrekScenarios, lotr2Scenarios, mmoScenarios)

// Drawn are the scenarios whose faults come from the seed.
var Drawn = []func(seed uint64) Scenario{mixedWulfram, mixedNetrek, mixedLOTR2, mixedMMO}

// Find returns the scenario with a name.
func Find(name string) (Scenario, bool) {
	for _, s := range All {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}

// over returns s with another link layer.
func (s Scenario) over(l tape.Link) Scenario {
	s.Link = l
	return s
}

// inNanoseconds returns s with a capture of that resolution.
func (s Scenario) inNanoseconds() Scenario {
	s.Nanoseconds = true
	return s
}

// Breaking returns s with a machine, or with a capture, that breaks a rule.
func (s Scenario) Breaking(m *misbehave.Misbehaviour) Scenario {
	s.Faults.Capture.Start = max(s.Faults.Capture.Start, m.Late)
	s.Faults.Capture.Lost = m.Lost
	cast := s.Cast
	s.Cast = func(seed uint64) []Role {
		roles := cast(seed)
		for i := range roles {
			build, side := roles[i].Build, schema.Client
			if roles[i].Server {
				side = schema.Server
			}
			roles[i].Build = func(o machine.Observer) machine.Machine { return m.Wrap(build(o), side) }
		}
		return roles
	}
	return s
}

// Role is a machine with its place.
type Role struct {
	Name   string
	Addr   netip.AddrPort // of its datagrams
	Server bool
	Listen netip.AddrPort // where it accepts connections; of a server Addr if it is not set
	Ports  []uint16       // more ports for its datagrams
	Dials  uint16         // the port before those that it dials from, 0 for that of Addr
	Start  time.Duration  // when it gets its first Tick
	Build  func(machine.Observer) machine.Machine
}

// Result is what is true of a run.
type Result struct {
	Scenario string
	Protocol string
	Seed     uint64
	Sent     []Sent
	Streams  []Stream
	Faults   []Fault
	Events   []Event
	Wire     int // packets on the wire
}

// commands reads the script that a player follows: one of a list, a built-in one, or, where
// it has more than a line, the text itself.
func commands(b *script.Book, list map[string]string, name string) []script.Command {
	read := func() ([]script.Command, error) { return b.Find(list, name) }
	if strings.Contains(name, "\n") {
		read = func() ([]script.Command, error) { return b.Parse(name) }
	}
	found, err := read()
	if err != nil {
		panic(err) // of the tables here
	}
	return found
}

// Start is when every scenario starts.
var Start = time.Date(2026, 11, 29, 20, 15, 2, 0, time.UTC)

// grace is how long a run goes on when all bots are done.
const grace = 600 * time.Millisecond

// InWorld returns the scenario in a world with a seed of its own: machines do what they do,
// and packets take as long as they take, for this one, and that of the network draws initial
// sequence numbers and faults. 0 is the seed of the network.
func (s Scenario) InWorld(seed uint64) Scenario {
	s.world = seed
	return s
}

// Run plays the scenario and writes its capture.
func (s *Scenario) Run(w io.Writer, seed uint64) (*Result, error) {
	n, err := s.run(w, seed)
	if err != nil {
		return nil, err
	}
	return s.result(n, seed), nil
}

// result is what is true of a network after a run.
func (s *Scenario) result(n *network, seed uint64) *Result {
	r := &Result{
		Scenario: s.Name, Protocol: s.Protocol, Seed: seed,
		Sent: n.truth(s.Acks), Faults: n.faults, Events: n.events, Wire: n.wire,
	}
	for _, e := range n.streams {
		r.Streams = append(r.Streams, e.bytes())
	}
	return r
}

// run plays the scenario and writes its capture. The network has what is true of it.
func (s *Scenario) run(w io.Writer, seed uint64) (*network, error) {
	out := bufio.NewWriter(w)
	file, err := tape.NewFile(out, tape.FileOptions{
		Link: s.Link.Type, Snap: s.Faults.Capture.Snap, Interface: "lan0", Microseconds: !s.Nanoseconds,
		Comment: fmt.Sprintf("scenario %s, seed %d", s.Name, seed),
	})
	if err != nil {
		return nil, s.failed(seed, err)
	}
	n, err := s.shoot(file, seed)
	return n, s.failed(seed, firstError(err, file.Flush(), out.Flush()))
}

// failed says of which run an error is.
func (s *Scenario) failed(seed uint64, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("scenario %s, seed %d: %w", s.Name, seed, err)
}

// shoot plays the scenario before a camera.
func (s *Scenario) shoot(film tape.Film, seed uint64) (*network, error) {
	n := s.network(seed)
	n.camera = tape.NewCamera(film, s.Faults.Capture.camera(Start), newChance(seed, 4))
	for _, r := range s.Cast(cmp.Or(s.world, seed)) {
		n.add(&r).begin(Start.Add(r.Start))
	}
	n.play(Start.Add(s.Duration))
	return n, n.err
}

// network returns the network of a scenario, without machines.
func (s *Scenario) network(seed uint64) *network {
	n := &network{
		stack: tape.Stack{Link: s.Link, MTU: s.MTU}, shape: s.Faults.Stream,
		before: s.dice(seed, 1, s.Faults.Before), behind: s.dice(seed, 2, s.Faults.Behind),
		jitter: s.dice(seed, 3, Path{Delay: jitter}), random: newChance(seed, 5),
		endpoints: map[pair]*endpoint{}, fifo: map[path]time.Time{},
	}
	n.Now = Start
	return n
}

// play runs until the time is over, or until all bots are done and a while longer.
func (n *network) play(until time.Time) {
	n.Run(until, func() bool { return n.err != nil || n.finished() })
	if n.err == nil && n.finished() {
		end := n.Now.Add(grace)
		if end.After(until) {
			end = until
		}
		n.Run(end, func() bool { return n.err != nil })
	}
}

// finished reports whether all bots are done.
func (n *network) finished() bool {
	bots := 0
	for _, x := range n.nodes {
		if x.server {
			continue
		}
		if bots++; !x.done {
			return false
		}
	}
	return bots > 0
}

// firstError returns the first that is one.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
