package load

import (
	"bufio"
	"container/heap"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"opscope/cmd/refserver/internal/scenario"
	"opscope/cmd/refserver/internal/tape"
)

// Options say what a capture is to be like. All of them count but Lost.
type Options struct {
	Protocol string
	Bytes    int64  // of the file, about: the last sessions are played to their end
	Flows    int    // at a time, about
	Seed     uint64 // of everything that is drawn
	// Enveloped has every record of Wulfram by UDP in an envelope, and packets with several.
	Enveloped bool
	Lost      float64 // the part of the packets that the capture misses; none of the first ones of a session
}

// Truth is what a capture holds.
type Truth struct {
	Protocol  string         `json:"protocol"`
	Seed      uint64         `json:"seed"`
	Packets   int            `json:"packets"`
	Bytes     int64          `json:"bytes"` // on the wire, of those packets
	Sessions  int            `json:"sessions"`
	Flows     int            `json:"flows"`
	Reordered int            `json:"reordered"` // packets that the next one of their path overtook
	Repeated  int            `json:"repeated"`  // packets that came twice
	Lost      Lost           `json:"lost"`
	Total     int            `json:"records"`
	Records   map[string]int `json:"messages"` // those that are whole, by their names
}

// Lost is what the capture misses.
type Lost struct {
	Segments  int   `json:"segments"`
	Datagrams int   `json:"datagrams"`
	Bytes     int64 `json:"bytes"`   // of streams
	Records   int   `json:"records"` // of which bytes are missing
}

const (
	sessions = 6 // that are played for a capture
	// large is how many bytes make a capture one whose sessions take a minute, and not
	// some ten seconds, of which a small one has more.
	large = 10_000_000
	// The part of the segments and datagrams that the next one overtakes, and that come twice.
	reordered = 0.01
	repeated  = 0.01
	// calm is how long nothing is lost at the start of a session, and no datagram is
	// overtaken: what the rest is read with is said then, and before that nobody, a peer
	// neither, can read it.
	calm = 2500 * time.Millisecond
)

// writer writes a capture.
type writer struct {
	Options
	file     *tape.File
	chance   *rand.Rand
	names    names
	sessions []*session
	cells    agenda
	planned  int64 // bytes of all cells so far
	counts   []int // whole records by the number of their name
	truth    Truth
	last     time.Time
	buf      []byte
}

// Write writes a capture, and returns what it holds. The same options make the same
// bytes.
func Write(out io.Writer, o Options) (*Truth, error) {
	w := &writer{
		Options: o, chance: rand.New(rand.NewPCG(o.Seed, 10)), names: names{of: map[string]int{}}, last: scenario.Start,
		truth: Truth{Protocol: o.Protocol, Seed: o.Seed, Records: map[string]int{}},
	}
	times := 1
	if o.Bytes >= large {
		times = 6
	}
	for i := range uint64(sessions) {
		s, err := w.play(o.Seed*sessions+i, times)
		if err != nil {
			return nil, err
		}
		w.sessions = append(w.sessions, s)
	}
	w.counts = make([]int, len(w.names.list))
	b := bufio.NewWriterSize(out, 1<<16)
	var err error
	w.file, err = tape.NewFile(b, tape.FileOptions{
		Link: tape.Ethernet, Interface: "lan0", Microseconds: true, Comment: fmt.Sprintf("load of %s, seed %d", o.Protocol, o.Seed),
	})
	if err == nil {
		err = w.run()
	}
	if err == nil {
		err = b.Flush()
	}
	for i, n := range w.counts {
		if n > 0 {
			w.truth.Records[w.names.list[i]] = n
			w.truth.Total += n
		}
	}
	return &w.truth, err
}

// play plays a session of some ten seconds, or times as long.
func (w *writer) play(seed uint64, times int) (*session, error) {
	if w.Enveloped {
		return envelop(seed, times, &w.names)
	}
	return play(w.Protocol, seed, times, &w.names)
}

// run tells sessions until there are enough bytes. The first ones begin somewhere in the
// time of a session, and each of the others when one is over.
func (w *writer) run() error {
	for flows := 0; flows < w.Flows && w.planned < w.Bytes; {
		c := w.begin(scenario.Start)
		c.start = scenario.Start.Add(time.Duration(w.chance.Float64() * float64(c.length())))
		flows += c.session.flows
		heap.Push(&w.cells, c)
	}
	for len(w.cells) > 0 {
		c := w.cells[0]
		if err := w.step(c); err != nil {
			return err
		}
		if !c.over() {
			heap.Fix(&w.cells, 0)
			continue
		}
		heap.Pop(&w.cells)
		if w.planned < w.Bytes {
			heap.Push(&w.cells, w.begin(w.last.Add(time.Second)))
		}
	}
	return nil
}

// begin begins the telling of a session.
func (w *writer) begin(at time.Time) *cell {
	s := w.sessions[w.chance.IntN(len(w.sessions))]
	c := &cell{number: w.truth.Sessions, session: s, start: at, late: -1, missing: map[int]bool{}, parts: map[int]int{}}
	w.truth.Sessions++
	w.truth.Flows += s.flows
	w.planned += s.size
	return c
}

// step writes the next packet of a cell, or what becomes of it.
func (w *writer) step(c *cell) error {
	i := c.next
	c.next++
	p := &c.session.packets[i]
	at := c.start.Add(p.after)
	if i == c.late {
		return nil // it was overtaken, and has been written
	}
	lost, twice, late := w.chance.Float64() < w.Lost, w.chance.Float64() < repeated, w.chance.Float64() < reordered
	if !p.segment && !p.whole {
		lost, twice, late = false, false, false
	}
	if p.after < calm {
		lost, late = false, late && p.segment
	}
	switch {
	case lost:
		w.lose(c, p)
		return nil
	case late && c.late < i:
		if next := c.follower(i); next > 0 {
			c.late = next
			w.truth.Reordered++
			if err := w.write(c, next, at); err != nil {
				return err
			}
		}
	}
	if err := w.write(c, i, at); err != nil || !twice {
		return err
	}
	return w.repeat(c, i, at)
}

// lose has the capture miss a packet.
func (w *writer) lose(c *cell, p *packet) {
	if p.segment {
		w.truth.Lost.Segments++
		w.truth.Lost.Bytes += payload(p.data)
	} else {
		w.truth.Lost.Datagrams++
	}
	for _, r := range p.records {
		if !c.missing[r] {
			c.missing[r] = true
			w.truth.Lost.Records++
		}
	}
}

// write writes a packet for the first time, and counts the records that it completes.
func (w *writer) write(c *cell, i int, at time.Time) error {
	for _, r := range c.session.packets[i].records {
		rec := &c.session.records[r]
		if rec.packets > 1 {
			if c.parts[r]++; c.parts[r] < rec.packets {
				continue
			}
		}
		if !c.missing[r] {
			w.counts[rec.message]++
		}
	}
	return w.shoot(c, i, at)
}

// repeat writes a packet once more. A datagram has its records again.
func (w *writer) repeat(c *cell, i int, at time.Time) error {
	p := &c.session.packets[i]
	w.truth.Repeated++
	if !p.segment {
		for _, r := range p.records {
			w.counts[c.session.records[r].message]++
		}
	}
	return w.shoot(c, i, at)
}

// shoot writes a packet, a microsecond after the one before it at least.
func (w *writer) shoot(c *cell, i int, at time.Time) error {
	if !at.After(w.last) {
		at = w.last.Add(time.Microsecond)
	}
	w.last = at
	w.buf = append(w.buf[:0], c.session.packets[i].data...)
	move(w.buf, c.number)
	w.truth.Packets++
	w.truth.Bytes += int64(len(w.buf))
	return w.file.Write(&tape.Shot{Time: at, Data: w.buf, Length: len(w.buf)})
}
