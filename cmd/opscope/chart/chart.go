// Package chart draws what a capture says of its streams over time: sequences with their
// acknowledgements, records per second, round trips.
package chart

import (
	"fmt"
	"image/color"
	"math"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Chart is what is drawn. Times are seconds from its start.
type Chart struct {
	Title   string
	Start   time.Time // UTC
	Seconds float64   // up to its end
	Sides   []Side
	Rates   []Rate // the most frequent first
	Trips   []Trips
}

// Side is one direction of a session.
type Side struct {
	Title string
	Lanes []Lane
	Gaps  []float64 // when stream bytes were missing
}

// Lane is a stream: records whose sequences count together.
type Lane struct {
	Name    string
	Window  int // positions ahead of what is acknowledged that the receiver accepts; 0 for unknown
	Sends   []Send
	Missing []Send // sequences that no packet of the capture has, at the time of the next one
}

// Send is a record as it was sent, once.
type Send struct {
	Seq    int     // does not wrap
	At     float64 // seconds
	Acked  float64 // when its acknowledgement came; NaN for none
	Again  bool    // it had been sent before
	Lost   bool    // none came, though one was waited for
	Beyond bool    // it was beyond the receiver's window
}

// Rate is when the records of one kind were sent.
type Rate struct {
	Name string
	At   []float64
}

// Trips are round trips.
type Trips struct {
	Name string
	At   []float64 // when they ended
	MS   []float64
}

// Colours that people with any sight tell apart: those of Okabe and Ito.
var (
	ink     = color.RGBA{0x22, 0x22, 0x22, 0xff}
	faint   = color.RGBA{0xdd, 0xdd, 0xdd, 0xff}
	band    = color.RGBA{0xf4, 0xf4, 0xf4, 0xff}
	blue    = color.RGBA{0x00, 0x72, 0xb2, 0xff}
	green   = color.RGBA{0x00, 0x9e, 0x73, 0xff}
	orange  = color.RGBA{0xe6, 0x9f, 0x00, 0xff}
	red     = color.RGBA{0xd5, 0x2b, 0x00, 0xff}
	sky     = color.RGBA{0x56, 0xb4, 0xe9, 0xff}
	pink    = color.RGBA{0xcc, 0x79, 0xa7, 0xff}
	kinds   = []color.RGBA{blue, orange, green, sky, pink, {0xf0, 0xe4, 0x42, 0xff}, {0x80, 0x50, 0x20, 0xff}, {0x60, 0x60, 0x60, 0xff}}
	message = color.RGBA{0xbb, 0xbb, 0xbb, 0xff} // of all other kinds together
)

// Sizes, in points.
const (
	width       = 1100
	legendWidth = 190
	titleHeight = 40
	sideHeight  = 90 // without lanes
	laneHeight  = 34
	rateHeight  = 190
	tripHeight  = 170
)

// small is the size of what is not a heading.
const small = 9

// panel is a plot with its height and legend.
type panel struct {
	plot   *plot.Plot
	legend plot.Legend
	height vg.Length
}

// panels lays the chart out, from the top.
func (c *Chart) panels() ([]panel, error) {
	var all []panel
	for i := range c.Sides {
		p, err := c.side(&c.Sides[i])
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	for _, draw := range []func() (panel, error){c.rates, c.trips} {
		p, err := draw()
		if err != nil {
			return nil, err
		}
		if p.plot != nil {
			all = append(all, p)
		}
	}
	return all, nil
}

// size returns what the chart needs.
func size(all []panel) (w, h vg.Length) {
	h = titleHeight
	for _, p := range all {
		h += p.height
	}
	return width, h
}

// draw draws the panels below each other, with their time axes in line.
func (c *Chart) draw(all []panel, on draw.Canvas) {
	on.SetColor(color.White)
	on.Fill(on.Rectangle.Path())
	title := style(14)
	title.Font.Weight = 2
	on.FillText(title, vg.Point{X: 10, Y: on.Max.Y - 22}, c.Title)
	from := style(small)
	from.XAlign = draw.XRight
	on.FillText(from, vg.Point{X: on.Max.X - 60, Y: on.Max.Y - 22}, "0 s is "+c.Start.UTC().Format("2006-01-02 15:04:05.000000")+" UTC")

	var left vg.Length
	areas := make([]draw.Canvas, len(all))
	top := on.Max.Y - titleHeight
	for i, p := range all {
		areas[i] = on
		areas[i].Min.X, areas[i].Max.X = on.Min.X+10, on.Max.X-legendWidth
		areas[i].Min.Y, areas[i].Max.Y = top-p.height+8, top
		top -= p.height
		left = max(left, p.plot.DataCanvas(areas[i]).Min.X)
	}
	for i, p := range all {
		a := areas[i]
		legend := a
		legend.Min.X, legend.Max.X = on.Max.X-legendWidth+12, on.Max.X
		legend.Max.Y -= 18
		a.Min.X += left - p.plot.DataCanvas(a).Min.X
		p.plot.Draw(a)
		p.legend.Draw(legend)
	}
}

func style(size float64) draw.TextStyle {
	return draw.TextStyle{Color: ink, Font: font.From(plot.DefaultFont, vg.Length(size)), Handler: plot.DefaultTextHandler}
}

// panel returns an empty plot over the time of the chart.
func (c *Chart) panel(title string, height vg.Length) panel {
	p := plot.New()
	p.Title.Text = title
	p.Title.TextStyle.Font.Size = 11
	p.Title.TextStyle.XAlign = draw.XCenter
	p.X.Min, p.X.Max = 0, max(c.Seconds*1.01, 0.001)
	p.X.Tick.Marker = plot.TickerFunc(func(least, most float64) []plot.Tick {
		ticks := plot.DefaultTicks{}.Ticks(least, most)
		for i := range ticks {
			if ticks[i].Label != "" {
				ticks[i].Label += " s"
			}
		}
		return ticks
	})
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Tick.Label.Font.Size = small
		a.Label.TextStyle.Font.Size = small
		a.Padding = 0
		a.LineStyle.Color = faint
		a.Tick.LineStyle.Color = faint
	}
	legend := plot.NewLegend()
	legend.Top, legend.Left = true, true
	legend.TextStyle.Font.Size = small
	legend.Padding = 3
	return panel{p, legend, height}
}

// add adds points of a kind to the plot and to its legend, if there are some.
func (p *panel) add(name string, xys plotter.XYs, glyph draw.GlyphStyle) error {
	if len(xys) == 0 {
		return nil
	}
	s, err := plotter.NewScatter(xys)
	if err != nil {
		return err
	}
	s.GlyphStyle = glyph
	p.plot.Add(s)
	p.legend.Add(name, s)
	return nil
}

// lines adds lines that do not hang together, and one entry of the legend.
func (p *panel) lines(name string, all []plotter.XYs, l draw.LineStyle) error {
	for i, xys := range all {
		line, err := plotter.NewLine(xys)
		if err != nil {
			return err
		}
		line.LineStyle = l
		p.plot.Add(line)
		if i == 0 && name != "" {
			p.legend.Add(name, line)
		}
	}
	return nil
}

// area adds a filled polygon.
func (p *panel) area(name string, xys plotter.XYs, c color.Color) error {
	a, err := plotter.NewPolygon(xys)
	if err != nil {
		return err
	}
	a.Color, a.LineStyle.Width = c, 0
	p.plot.Add(a)
	if name != "" {
		p.legend.Add(name, a)
	}
	return nil
}

// side draws the sequences of one direction: a band for each lane, with its sequences
// upwards.
func (c *Chart) side(s *Side) (panel, error) {
	p := c.panel(s.Title, sideHeight+vg.Length(len(s.Lanes))*laneHeight)
	p.plot.Y.Min, p.plot.Y.Max = 0, float64(len(s.Lanes))
	d := marks{chart: c}
	var ticks []plot.Tick
	for i := range s.Lanes {
		l := &s.Lanes[i]
		bottom := float64(len(s.Lanes) - 1 - i)
		if i%2 == 0 {
			end := p.plot.X.Max
			if err := p.area("", plotter.XYs{{X: 0, Y: bottom}, {X: end, Y: bottom}, {X: end, Y: bottom + 1}, {X: 0, Y: bottom + 1}}, band); err != nil {
				return p, err
			}
		}
		least, most := d.lane(l, bottom)
		ticks = append(ticks, plot.Tick{Value: bottom + 0.5, Label: fmt.Sprintf("%s %s   ", l.Name, span(least, most))})
	}
	p.plot.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.plot.Y.Tick.Length = 0
	for _, at := range s.Gaps {
		d.gaps = append(d.gaps, plotter.XYs{{X: at, Y: 0}, {X: at, Y: float64(len(s.Lanes))}})
	}
	return p, d.add(&p)
}

func span(least, most int) string {
	if least == most {
		return fmt.Sprint(least)
	}
	return fmt.Sprintf("%d-%d", least, most)
}

// marks are the marks of a side, by kind.
type marks struct {
	chart                           *Chart
	sent, again, beyond, acks       plotter.XYs
	crosses, missing                plotter.XYs
	trips, resent, lost, gaps, edge []plotter.XYs
	labels                          []string
	labelled                        plotter.XYs
}

// mostLabels is how many lost records of a side are named: more would hide them.
const mostLabels = 24

// lane adds the marks of a lane whose band has its bottom at a height. It returns the range
// of its sequences.
func (d *marks) lane(l *Lane, bottom float64) (least, most int) {
	least, most = math.MaxInt, math.MinInt
	for _, s := range append(l.Sends, l.Missing...) {
		least, most = min(least, s.Seq), max(most, s.Seq)
	}
	height := func(seq int) float64 {
		return bottom + 0.18 + 0.64*(float64(seq-least)+0.5*b2f(least == most))/float64(max(most-least, 1))
	}
	first, last := map[int]float64{}, map[int]float64{}
	acked := map[int]bool{}
	for _, s := range l.Sends {
		at := plotter.XY{X: s.At, Y: height(s.Seq)}
		if _, ok := first[s.Seq]; !ok {
			first[s.Seq] = s.At
		}
		last[s.Seq] = s.At
		switch {
		case s.Beyond:
			d.beyond = append(d.beyond, at)
		case s.Again:
			d.again = append(d.again, at)
		default:
			d.sent = append(d.sent, at)
		}
		if s.Again {
			d.resent = append(d.resent, plotter.XYs{{X: first[s.Seq], Y: at.Y}, at})
		}
		if !math.IsNaN(s.Acked) {
			acked[s.Seq] = true
			d.trips = append(d.trips, plotter.XYs{at, {X: s.Acked, Y: at.Y}})
			d.acks = append(d.acks, plotter.XY{X: s.Acked, Y: at.Y})
		}
	}
	told := map[int]bool{}
	for _, s := range l.Sends {
		if !s.Lost || acked[s.Seq] || told[s.Seq] {
			continue
		}
		told[s.Seq] = true
		end := plotter.XY{X: min(last[s.Seq]+0.03*d.chart.Seconds, d.chart.Seconds), Y: height(s.Seq)}
		d.lost = append(d.lost, plotter.XYs{{X: first[s.Seq], Y: end.Y}, end})
		d.crosses = append(d.crosses, end)
		d.label(end, fmt.Sprintf("%d lost", s.Seq))
	}
	for i, from := 0, 0; i < len(l.Missing); i++ {
		s := l.Missing[i]
		d.missing = append(d.missing, plotter.XY{X: s.At, Y: height(s.Seq)})
		if i+1 == len(l.Missing) || l.Missing[i+1].Seq != s.Seq+1 { // the last of a row
			first := l.Missing[from].Seq
			d.label(plotter.XY{X: s.At, Y: (height(first) + height(s.Seq)) / 2}, span(first, s.Seq)+" not captured")
			from = i + 1
		}
	}
	d.window(l, height, most)
	return least, most
}

// window adds the upper edge of the receiver's window, as acknowledgements move it.
func (d *marks) window(l *Lane, height func(int) float64, most int) {
	if l.Window == 0 {
		return
	}
	var edge plotter.XYs
	highest := math.MinInt
	for _, s := range l.Sends {
		if math.IsNaN(s.Acked) || s.Seq <= highest {
			continue
		}
		highest = s.Seq
		y := height(min(highest+l.Window, most))
		if n := len(edge); n > 0 {
			edge = append(edge, plotter.XY{X: s.Acked, Y: edge[n-1].Y})
		}
		edge = append(edge, plotter.XY{X: s.Acked, Y: y + 0.06})
	}
	if len(edge) > 1 {
		d.edge = append(d.edge, append(edge, plotter.XY{X: d.chart.Seconds, Y: edge[len(edge)-1].Y}))
	}
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (d *marks) label(at plotter.XY, text string) {
	if len(d.labels) < mostLabels {
		d.labels, d.labelled = append(d.labels, text), append(d.labelled, at)
	}
}

// add adds the marks to the plot, those that matter most on top.
func (d *marks) add(p *panel) error {
	line := func(c color.Color, w vg.Length, dashes ...vg.Length) draw.LineStyle {
		return draw.LineStyle{Color: c, Width: w, Dashes: dashes}
	}
	glyph := func(c color.Color, radius vg.Length, shape draw.GlyphDrawer) draw.GlyphStyle {
		return draw.GlyphStyle{Color: c, Radius: radius, Shape: shape}
	}
	for _, err := range []error{
		p.lines("edge of the window", d.edge, line(message, 1, 2, 2)),
		p.lines("", d.trips, line(green, 0.8)),
		p.lines("", d.resent, line(orange, 1, 3, 2)),
		p.lines("", d.lost, line(red, 2)),
		p.lines("bytes not captured", d.gaps, line(red, 1.2, 4, 2)),
		p.add("sent", d.sent, glyph(blue, 2.2, draw.CircleGlyph{})),
		p.add("acknowledged", d.acks, glyph(green, 2.4, draw.PlusGlyph{})),
		p.add("sent again", d.again, glyph(orange, 3.4, draw.TriangleGlyph{})),
		p.add("beyond the window", d.beyond, glyph(pink, 3.4, draw.SquareGlyph{})),
		p.add("lost: never acknowledged", d.crosses, glyph(red, 5, thickCross{})),
		p.add("not captured", d.missing, glyph(red, 4, draw.BoxGlyph{})),
	} {
		if err != nil {
			return err
		}
	}
	if len(d.labels) == 0 {
		return nil
	}
	l, err := plotter.NewLabels(plotter.XYLabels{XYs: d.labelled, Labels: d.labels})
	if err != nil {
		return err
	}
	for i := range l.TextStyle {
		l.TextStyle[i].Color, l.TextStyle[i].Font.Size = red, small
		l.TextStyle[i].YAlign = draw.YCenter
	}
	l.Offset = vg.Point{X: 8}
	p.plot.Add(l)
	return nil
}

// thickCross is a cross that is seen from afar.
type thickCross struct{}

// DrawGlyph draws it.
func (thickCross) DrawGlyph(c *draw.Canvas, s draw.GlyphStyle, at vg.Point) {
	c.SetLineStyle(draw.LineStyle{Color: s.Color, Width: 2.4})
	r := s.Radius * vg.Length(math.Sqrt2) / 2
	for _, sign := range []vg.Length{1, -1} {
		var path vg.Path
		path.Move(vg.Point{X: at.X - r, Y: at.Y - sign*r})
		path.Line(vg.Point{X: at.X + r, Y: at.Y + sign*r})
		c.Stroke(path)
	}
}

// rates draws the records per second, the kinds on top of each other.
func (c *Chart) rates() (panel, error) {
	if len(c.Rates) == 0 {
		return panel{}, nil
	}
	step := binOf(c.Seconds)
	bins := int(c.Seconds/step) + 1
	p := c.panel(fmt.Sprintf("records per second, over %g s each", step), rateHeight)
	base := make([]float64, bins)
	var other []float64
	for i, r := range c.Rates {
		if i >= len(kinds) {
			other = append(other, r.At...)
			continue
		}
		if err := c.pile(&p, r.Name, r.At, base, step, kinds[i]); err != nil {
			return p, err
		}
	}
	if len(other) > 0 {
		if err := c.pile(&p, fmt.Sprintf("%d other kinds", len(c.Rates)-len(kinds)), other, base, step, message); err != nil {
			return p, err
		}
	}
	p.plot.Y.Min = 0
	return p, nil
}

// pile adds the records of a kind on top of base, which it raises.
func (c *Chart) pile(p *panel, name string, at, base []float64, step float64, fill color.Color) error {
	var lower, upper plotter.XYs
	was := append([]float64(nil), base...)
	for _, t := range at {
		base[min(int(t/step), len(base)-1)] += 1 / step
	}
	for i := range base {
		from, to := float64(i)*step, min(float64(i+1)*step, p.plot.X.Max)
		lower = append(lower, plotter.XY{X: from, Y: was[i]}, plotter.XY{X: to, Y: was[i]})
		upper = append(upper, plotter.XY{X: from, Y: base[i]}, plotter.XY{X: to, Y: base[i]})
	}
	for i := len(lower) - 1; i >= 0; i-- {
		upper = append(upper, lower[i])
	}
	return p.area(name, upper, fill)
}

// binOf returns over how many seconds records are counted: some 60 bins.
func binOf(seconds float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(max(seconds, 1e-3)/60)))
	for _, f := range []float64{1, 2, 5, 10} {
		if f*step >= seconds/60 {
			return f * step
		}
	}
	return 10 * step
}

// trips draws the round trips.
func (c *Chart) trips() (panel, error) {
	p := c.panel("round trip in ms, when the acknowledgement came", tripHeight)
	some := false
	for i, t := range c.Trips {
		var xys plotter.XYs
		for k := range t.At {
			xys = append(xys, plotter.XY{X: t.At[k], Y: t.MS[k]})
		}
		some = some || len(xys) > 0
		if err := p.add(t.Name, xys, draw.GlyphStyle{Color: kinds[i%len(kinds)], Radius: 2, Shape: draw.CircleGlyph{}}); err != nil {
			return p, err
		}
	}
	if !some {
		return panel{}, nil
	}
	p.plot.Y.Min = 0
	return p, nil
}
