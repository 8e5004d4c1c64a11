package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"opscope/cmd/opscope/chart"
	"opscope/dissect"
	"opscope/dissect/sink"
)

// plotOptions are what `opscope plot` was asked for.
type plotOptions struct {
	decodeOptions
	output  string
	session int
}

// The bounds of a picture.
const (
	mostPoints = 500_000 // records that are drawn
	mostSides  = 6       // directions of sessions
	mostLanes  = 24      // streams of each
)

func newPlot(s streams) *cobra.Command {
	o := plotOptions{decodeOptions: decodeOptions{format: "text", time: "a", color: "never", hold: dissect.DefaultHold, holdSet: true}}
	c := &cobra.Command{
		Use:   "plot [flags] FILE -o out.svg|out.png|out.html",
		Short: "Draw sequences, acknowledgements, rates and round trips over time",
		Long: `plot decodes a capture file as decode does, and draws it over time: for each direction
of a session the sequences of its streams, when they were acknowledged, what was sent
again, lost, or beyond the receiver's window; the records per second by message; and the
round trips. What follows the last point of FILE says the format: .svg, .png or .html, a page
that needs no other file and has the numbers as a table.

A picture has names of messages, and no values.`,
		Example: `  opscope plot pcaps/wulfram/lossy.pcapng -o lossy.svg
  opscope plot pcaps/wulfram/play.pcapng --session 2 -o play.html`,
		RunE: func(c *cobra.Command, args []string) error {
			return plotFile(c.Context(), s, append(o.read, args...), &o)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVarP(&o.output, "output", "o", "", "draw into this `FILE`: .svg, .png or .html")
	f.IntVar(&o.session, "session", 0, "draw only session `N`; 0 for those with the most records")
	input := pflag.NewFlagSet("", pflag.ContinueOnError)
	inputFlags(input, &o.decodeOptions)
	input.VisitAll(func(x *pflag.Flag) {
		if x.Name == "option" {
			x.Shorthand = "" // -o is the output, as for who draws elsewhere
		}
		f.AddFlag(x)
	})
	completeFlags(c)
	return c
}

// formatOf returns the format of a picture by its file's name.
func formatOf(name string) (chart.Format, error) {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".svg":
		return chart.SVG, nil
	case ".png":
		return chart.PNG, nil
	case ".html", ".htm":
		return chart.HTML, nil
	}
	return 0, usage("-o %q: want a FILE that ends in .svg, .png or .html", name)
}

// plotFile decodes a file and draws it, also a damaged one.
func plotFile(ctx context.Context, s streams, files []string, o *plotOptions) error {
	format, err := formatOf(o.output)
	if err != nil {
		return err
	}
	if len(files) != 1 {
		return usage("plot takes one FILE, not %d\ntry: opscope plot pcaps/wulfram/lossy.pcapng -o lossy.svg", len(files))
	}
	d, err := newDecoding(s, &o.decodeOptions)
	if err != nil {
		return err
	}
	if o.session < 0 {
		return usage("--session %d: want the number of a session, 0 for those with the most records", o.session)
	}
	one := oneSession{number: o.session}
	if o.session > 0 {
		d.wants = one.wants
	}
	p := newPlotting(d)
	d.silent = true
	d.writeTo(p)
	failed := d.files(ctx, files)
	if failed == nil && o.session > 0 && !one.found && ctx.Err() == nil {
		return one.missing(files)
	}
	if p.points == 0 {
		if failed == nil {
			failed = &exitError{exitInput, fmt.Errorf("%s: no records to draw", files[0])}
		}
		return failed
	}
	var picture bytes.Buffer
	c := p.chart(files[0])
	if err := c.Write(&picture, format); err != nil {
		return &exitError{exitInput, fmt.Errorf("-o %s: %w", o.output, err)}
	}
	if err := os.WriteFile(o.output, picture.Bytes(), 0o666); err != nil {
		return &exitError{exitInput, fmt.Errorf("-o: %w", err)}
	}
	if _, err := fmt.Fprintf(s.out, "%s: records: %d, %s\n", sink.Escape(o.output), p.points, summed(c)); err != nil {
		return outputError(err)
	}
	return failed
}

// summed says in numbers what is drawn.
func summed(c *chart.Chart) string {
	streams, lost, missing := 0, 0, 0
	for i := range c.Sides {
		for k := range c.Sides[i].Lanes {
			n := c.Sides[i].Lanes[k].Count()
			streams, lost, missing = streams+1, lost+n.Lost, missing+n.Missing
		}
	}
	return fmt.Sprintf("streams: %d, records lost: %d, not captured: %d", streams, lost, missing)
}

// plotting is the sink of plot: it keeps when what was sent.
type plotting struct {
	decoding *decoding
	points   int
	left     int // records that were too many
	start    time.Time
	end      float64
	lanes    map[laneKey]*lane
	gaps     map[side][]float64
	rates    map[string][]float64
	trips    map[side]*chart.Trips
	waiting  map[int]sending // by the number of the record
}

// side is a direction of a session.
type side struct {
	session  int
	dir      dissect.Direction
	protocol string
}

type laneKey struct {
	side
	stream  int
	message string // where that is 0
}

// sending is where a record went that is not acknowledged.
type sending struct {
	lane  *lane
	index int
}

// lane is a stream as it grows.
type lane struct {
	chart.Lane
	stream   int
	messages []string
	modulus  int
	high     int // the highest sequence so far; it does not wrap
	seen     map[int]bool
	late     bool // the first ones, from sequence 1 on, are missing
}

func newPlotting(d *decoding) *plotting {
	return &plotting{
		decoding: d, lanes: map[laneKey]*lane{}, gaps: map[side][]float64{},
		rates: map[string][]float64{}, trips: map[side]*chart.Trips{}, waiting: map[int]sending{},
	}
}

// Flush does nothing: all is drawn at the end.
func (p *plotting) Flush() error { return nil }

// Write takes one record.
func (p *plotting) Write(r *dissect.Record) error {
	if p.points >= mostPoints {
		p.left++
		return nil
	}
	if p.start.IsZero() {
		p.start = r.Started
	}
	at := r.Time.Sub(p.start).Seconds()
	s := side{r.Session, r.Direction, r.Protocol}
	switch r.Type {
	case dissect.GapRecord:
		p.gaps[s] = append(p.gaps[s], at)
	case dissect.AckRecord:
		if w, ok := p.waiting[r.Acked]; ok {
			w.lane.Sends[w.index].Acked, w.lane.Sends[w.index].Lost = at, false
			delete(p.waiting, r.Acked)
		}
		p.trip(s, at, r.Ack.RTT)
	case dissect.FrameRecord:
		p.points++
		p.end = max(p.end, at)
		p.rates[r.Message] = append(p.rates[r.Message], at)
		p.send(r, s, at)
	}
	return nil
}

// send takes a record for what its sequence says.
func (p *plotting) send(r *dissect.Record, s side, at float64) {
	acked := math.NaN()
	if r.Ack.RTT >= 0 && r.Ack.State == dissect.AckAcked {
		acked = at + r.Ack.RTT.Seconds()
		p.trip(s, acked, r.Ack.RTT)
	}
	if r.Envelope.Seq < 0 {
		return
	}
	k := laneKey{side: s, stream: r.Stream}
	if k.stream == 0 {
		k.message = r.Message
	}
	l := p.lane(k, r)
	x := chart.Send{Seq: l.unwrap(r.Envelope.Seq), At: at, Acked: acked, Lost: r.Ack.State == dissect.AckUnacked}
	for _, n := range r.Notes {
		x.Again = x.Again || n.Code == "retransmission" || n.Code == "duplicate"
		x.Beyond = x.Beyond || n.Code == "out_of_window"
	}
	l.seen[x.Seq] = true
	if len(l.Sends) == 0 {
		l.late = slices.ContainsFunc(r.Notes, func(n dissect.Note) bool { return n.Code == "sequence_gap" })
	}
	l.Sends = append(l.Sends, x)
	if math.IsNaN(acked) {
		p.waiting[r.N] = sending{l, len(l.Sends) - 1}
	}
}

// trip takes a round trip that ended at a time.
func (p *plotting) trip(s side, at float64, rtt time.Duration) {
	if rtt < 0 {
		return
	}
	if p.trips[s] == nil {
		p.trips[s] = &chart.Trips{Name: s.String()}
	}
	t := p.trips[s]
	t.At, t.MS = append(t.At, at), append(t.MS, rtt.Seconds()*1000)
	p.end = max(p.end, at)
}

func (s side) String() string {
	dir := s.dir.String()
	if dir == "" {
		dir = "unknown direction"
	}
	return fmt.Sprintf("session %d %s", s.session, dir)
}

// lane returns the lane of a record.
func (p *plotting) lane(k laneKey, r *dissect.Record) *lane {
	l := p.lanes[k]
	if l == nil {
		l = &lane{stream: k.stream, modulus: 1 << 16, high: r.Envelope.Seq, seen: map[int]bool{}}
		p.lanes[k] = l
		if s := p.decoding.schemaOf(r.Protocol); s != nil {
			l.Window = int(s.Limit("window"))
			l.modulus = cmp.Or(int(s.Limit("sequence_modulus")), l.modulus)
		}
	}
	if !slices.Contains(l.messages, r.Message) {
		l.messages = append(l.messages, r.Message)
		l.Name = sink.Escape(l.messages[0])
		if n := len(l.messages) - 1; n > 0 {
			l.Name += " +" + strconv.Itoa(n)
		}
	}
	return l
}

// unwrap returns the sequence nearest to the highest so far that is seq on the wire.
func (l *lane) unwrap(seq int) int {
	turn := (l.high - seq + l.modulus/2) / l.modulus
	if l.high-seq+l.modulus/2 < 0 {
		turn = -1
	}
	at := seq + turn*l.modulus
	l.high = max(l.high, at)
	return at
}

// mostMissing is how many sequences in a row may be missing: a longer row is a jump.
const mostMissing = 1000

// missing finds the sequences that no record has.
func (l *lane) missing() {
	last := -1
	if l.late {
		last = 0
	}
	for _, s := range l.Sends {
		for seq := last + 1; last >= 0 && seq < s.Seq && s.Seq-last <= mostMissing; seq++ {
			if !l.seen[seq] {
				l.Missing = append(l.Missing, chart.Send{Seq: seq, At: s.At, Acked: math.NaN()})
			}
		}
		last = max(last, s.Seq)
	}
}

// chart returns what is drawn of a file.
func (p *plotting) chart(name string) *chart.Chart {
	c := &chart.Chart{Title: sink.Escape(filepath.Base(name)), Start: p.start, Seconds: p.end}
	bySide := map[side][]*lane{}
	for k, l := range p.lanes {
		bySide[k.side] = append(bySide[k.side], l)
	}
	sides := sortedSides(bySide)
	if len(sides) > mostSides {
		complain(p.decoding.err, fmt.Sprintf("%d directions of sessions have sequences, of which the first %d are drawn\ntry: --session N", len(sides), mostSides))
		sides = sides[:mostSides]
	}
	for _, s := range sides {
		c.Sides = append(c.Sides, p.side(s, bySide[s]))
	}
	for _, m := range slices.Sorted(maps.Keys(p.rates)) {
		c.Rates = append(c.Rates, chart.Rate{Name: sink.Escape(m), At: p.rates[m]})
	}
	slices.SortStableFunc(c.Rates, func(a, b chart.Rate) int { return cmp.Compare(len(b.At), len(a.At)) })
	for _, s := range sortedSides(p.trips) {
		c.Trips = append(c.Trips, *p.trips[s])
	}
	if p.left > 0 {
		complain(p.decoding.err, strconv.Itoa(p.left)+" records are not drawn: a picture has the first "+strconv.Itoa(mostPoints)+"\ntry: --session N")
	}
	return c
}

func sortedSides[T any](of map[side]T) []side {
	return slices.SortedFunc(maps.Keys(of), func(a, b side) int {
		return cmp.Or(cmp.Compare(a.session, b.session), cmp.Compare(a.dir, b.dir), cmp.Compare(a.protocol, b.protocol))
	})
}

// side returns what is drawn of one direction: the streams with the most records.
func (p *plotting) side(s side, lanes []*lane) chart.Side {
	out := chart.Side{Title: fmt.Sprintf("%s, %s: sequences of each stream, upwards", s, s.protocol), Gaps: p.gaps[s]}
	for _, l := range lanes {
		l.missing()
	}
	slices.SortFunc(lanes, func(a, b *lane) int {
		return cmp.Or(cmp.Compare(len(b.Sends), len(a.Sends)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.stream, b.stream))
	})
	if len(lanes) > mostLanes {
		complain(p.decoding.err, fmt.Sprintf("%s has %d streams, of which the %d with the most records are drawn", s, len(lanes), mostLanes))
		lanes = lanes[:mostLanes]
	}
	for _, l := range lanes {
		out.Lanes = append(out.Lanes, l.Lane)
	}
	return out
}
