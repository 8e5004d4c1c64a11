package transcript

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Difference is a message that two transcripts do not share.
type Difference struct {
	Lane   string   `json:"lane"`
	Kind   string   `json:"kind"` // changed, missing (of the second) or added (by it)
	A      *Place   `json:"a"`
	B      *Place   `json:"b"`
	Fields []Change `json:"fields"` // of a changed one
	before []string // lines in front that are the same
}

// Place is a message in one of them.
type Place struct {
	Message string `json:"message"`
	Line    string `json:"line"`
	Packets []int  `json:"packets"`
}

// Change is a field that differs; null where it is not there.
type Change struct {
	Path string  `json:"path"`
	A    *string `json:"a"`
	B    *string `json:"b"`
}

// shown is how many lines that are the same stand in front of a difference.
const shown = 2

// Compare returns what differs, lane by lane.
func Compare(a, b *Transcript) []Difference {
	var list []Difference
	names := slices.AppendSeq(slices.Collect(maps.Keys(a.lanes)), maps.Keys(b.lanes))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		x, y := a.lanes[name], b.lanes[name]
		var same []string
		for _, p := range align(x, y) {
			if p.a >= 0 && p.b >= 0 && x[p.a].Text == y[p.b].Text {
				same = append(same, x[p.a].Text)
				continue
			}
			d := Difference{Lane: name, before: slices.Clone(same[max(0, len(same)-shown):])}
			same = nil
			d.A, d.B = placeOf(x, p.a), placeOf(y, p.b)
			switch {
			case d.B == nil:
				d.Kind = "missing"
			case d.A == nil:
				d.Kind = "added"
			default:
				d.Kind, d.Fields = "changed", changes(d.A.Line, d.B.Line)
			}
			list = append(list, d)
		}
	}
	return list
}

func placeOf(lines []Line, i int) *Place {
	if i < 0 {
		return nil
	}
	return &Place{lines[i].Message(), lines[i].Text, append([]int{}, lines[i].Packets...)}
}

// changes returns the fields that differ between two lines of one message, in their order.
func changes(a, b string) (list []Change) {
	x, y := fieldsOf(a), fieldsOf(b)
	for _, f := range x {
		if i := slices.IndexFunc(y, func(g field) bool { return g.path == f.path }); i < 0 {
			list = append(list, Change{f.path, &f.value, nil})
		} else if g := y[i]; g.value != f.value {
			list = append(list, Change{f.path, &f.value, &g.value})
		}
	}
	for _, g := range y {
		if !slices.ContainsFunc(x, func(f field) bool { return f.path == g.path }) {
			list = append(list, Change{g.path, nil, &g.value})
		}
	}
	return list
}

type field struct{ path, value string }

func fieldsOf(line string) (list []field) {
	for _, item := range strings.Split(line, "\t")[1:] {
		path, value, _ := strings.Cut(item, "=")
		list = append(list, field{path, value})
	}
	return list
}

// WriteText writes differences for a person. Paint colours a line by its first letter; nil
// leaves it.
func WriteText(w io.Writer, a, b string, list []Difference, paint func(line string) string) error {
	var out strings.Builder
	put := func(line string) {
		if paint != nil {
			line = paint(line)
		}
		out.WriteString(line + "\n")
	}
	if len(list) > 0 {
		put("--- " + a)
		put("+++ " + b)
	}
	lane := ""
	for i := range list {
		d := &list[i]
		if d.Lane != lane {
			lane = d.Lane
			put("@@ " + lane + " @@")
		}
		d.write(put)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (d *Difference) write(put func(string)) {
	for _, line := range d.before {
		put("  " + spaced(line))
	}
	if d.Kind != "changed" {
		if d.A != nil {
			put("- " + spaced(d.A.Line) + d.A.where())
		}
		if d.B != nil {
			put("+ " + spaced(d.B.Line) + d.B.where())
		}
		return
	}
	put("! " + d.A.Message + d.A.where() + " |" + d.B.where())
	for _, c := range d.Fields {
		if c.A != nil {
			put("-   " + c.Path + "=" + *c.A)
		}
		if c.B != nil {
			put("+   " + c.Path + "=" + *c.B)
		}
	}
}

// longest is how much of a line a text shows.
const longest = 160

func spaced(line string) string {
	line = strings.ReplaceAll(line, "\t", "  ")
	if runes := []rune(line); len(runes) > longest {
		return string(runes[:longest]) + " …"
	}
	return line
}

// where names the packets of a message, where they are known.
func (p *Place) where() string {
	if len(p.Packets) == 0 {
		return ""
	}
	var list []string
	for _, n := range p.Packets {
		list = append(list, strconv.Itoa(n))
	}
	return "  (packet " + strings.Join(list, " ") + ")"
}

// WriteJSON writes differences as one JSON object.
func WriteJSON(w io.Writer, a, b string, list []Difference) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	for i := range list {
		if list[i].Fields == nil {
			list[i].Fields = []Change{}
		}
	}
	err := e.Encode(struct {
		A           string       `json:"a"`
		B           string       `json:"b"`
		Same        bool         `json:"same"`
		Differences []Difference `json:"differences"`
	}{a, b, len(list) == 0, append([]Difference{}, list...)})
	if err != nil {
		return fmt.Errorf("diff: %w", err)
	}
	return nil
}
