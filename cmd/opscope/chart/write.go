package chart

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"sync"

	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Format is a format of pictures.
type Format uint8

// The formats.
const (
	SVG Format = iota
	PNG
	HTML // one page with everything in it
)

// pixels is how many of them an inch of a PNG has.
const pixels = 144

// Write draws the chart and writes it.
func (c *Chart) Write(w io.Writer, f Format) error {
	all, err := c.panels()
	if err != nil {
		return err
	}
	switch f {
	case PNG:
		width, height := size(all)
		canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(pixels))
		c.draw(all, draw.New(canvas))
		_, err = vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	case HTML:
		var svg bytes.Buffer
		if err := c.writeSVG(&svg, all); err != nil {
			return err
		}
		// What stands in front of the element belongs to a file of its own.
		picture := svg.Bytes()[bytes.Index(svg.Bytes(), []byte("<svg")):]
		return page().Execute(w, struct {
			*Chart
			Picture template.HTML
		}{c, template.HTML(picture)})
	default:
		return c.writeSVG(w, all)
	}
	return err
}

func (c *Chart) writeSVG(w io.Writer, all []panel) error {
	canvas := vgsvg.New(size(all))
	c.draw(all, draw.New(canvas))
	_, err := canvas.WriteTo(w)
	return err
}

//go:embed page.html
var pageText string

// page is parsed when one is written.
var page = sync.OnceValue(func() *template.Template {
	seconds := func(s float64) string { return fmt.Sprintf("%.6f", s) }
	return template.Must(template.New("page").Funcs(template.FuncMap{"seconds": seconds}).Parse(pageText))
})

// Count sums up a lane in numbers.
type Count struct{ Sent, Again, Acked, Lost, Missing int }

// Count counts the sends of a lane; a sequence that was sent several times is one record.
func (l *Lane) Count() Count {
	n := Count{Missing: len(l.Missing)}
	acked, lost := map[int]bool{}, map[int]bool{}
	for _, s := range l.Sends {
		if n.Sent++; s.Again {
			n.Again++
		}
		if s.Acked >= 0 {
			acked[s.Seq] = true
		}
		if s.Lost {
			lost[s.Seq] = true
		}
	}
	for seq := range lost {
		if !acked[seq] {
			n.Lost++
		}
	}
	n.Acked = len(acked)
	return n
}
