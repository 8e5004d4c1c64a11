package transcript

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"iter"
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

// Compare returns what differs between two counterparts, lane by lane.
func Compare(a, b *Transcript) iter.Seq[Difference] {
	if a.texts != b.texts {
		panic("transcript: two are compared that are no counterparts")
	}
	return func(yield func(Difference) bool) {
		names := slices.AppendSeq(slices.Collect(maps.Keys(a.lanes)), maps.Keys(b.lanes))
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			c := comparison{name, a.texts, cmp.Or(a.lanes[name], &lane{}), cmp.Or(b.lanes[name], &lane{})}
			if !c.differences(yield) {
				return
			}
		}
	}
}

// comparison compares two lanes of one name.
type comparison struct {
	name  string
	texts *texts
	a, b  *lane
}

// differences yields what differs, and reports whether more is wanted.
func (c *comparison) differences(yield func(Difference) bool) bool {
	var same []textNumber
	for _, p := range align(c.a.lines, c.b.lines) {
		if p.a >= 0 && p.b >= 0 && c.a.lines[p.a].text == c.b.lines[p.b].text {
			same = append(same, c.a.lines[p.a].text)
			continue
		}
		d := Difference{Lane: c.name}
		for _, n := range same[max(0, len(same)-shown):] {
			d.before = append(d.before, string(c.texts.of(n)))
		}
		same = same[:0]
		d.A, d.B = c.placeOf(c.a, p.a), c.placeOf(c.b, p.b)
		switch {
		case d.B == nil:
			d.Kind = "missing"
		case d.A == nil:
			d.Kind = "added"
		default:
			d.Kind, d.Fields = "changed", changes(d.A.Line, d.B.Line)
		}
		if !yield(d) {
			return false
		}
	}
	return true
}

// placeOf returns line i of a lane, nil for none.
func (c *comparison) placeOf(l *lane, i int) *Place {
	if i < 0 {
		return nil
	}
	line := string(c.texts.of(l.lines[i].text))
	message, _, _ := strings.Cut(line, "\t")
	return &Place{message, line, l.packetsOf(i)}
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

// WriteText writes differences for a person, and reports whether there are none. Paint
// colours a line by its first letter; nil leaves it.
func WriteText(w io.Writer, a, b string, list iter.Seq[Difference], paint func(line string) string) (same bool, err error) {
	out := bufio.NewWriter(w)
	put := func(line string) {
		if paint != nil {
			line = paint(line)
		}
		out.WriteString(line)
		out.WriteByte('\n')
	}
	same = true
	lane := ""
	for d := range list {
		if same {
			put("--- " + a)
			put("+++ " + b)
			same = false
		}
		if d.Lane != lane {
			lane = d.Lane
			put("@@ " + lane + " @@")
		}
		d.write(put)
	}
	return same, out.Flush()
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
	runes := 0
	for i := range line {
		if runes == longest {
			return line[:i] + " …"
		}
		runes++
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

// WriteJSON writes differences as one JSON object, and reports whether there are none.
func WriteJSON(w io.Writer, a, b string, list iter.Seq[Difference]) (same bool, err error) {
	out := bufio.NewWriter(w)
	same = true
	for d := range list {
		if same {
			out.WriteString(opening(a, b, false))
			same = false
		} else {
			out.WriteByte(',')
		}
		if d.Fields == nil {
			d.Fields = []Change{}
		}
		out.WriteString("\n    " + indented(d, "    "))
	}
	if same {
		out.WriteString(opening(a, b, true) + "]\n}\n")
	} else {
		out.WriteString("\n  ]\n}\n")
	}
	return same, out.Flush()
}

// opening returns the start of the object, to where its differences begin.
func opening(a, b string, same bool) string {
	object := indented(struct {
		A           string       `json:"a"`
		B           string       `json:"b"`
		Same        bool         `json:"same"`
		Differences []Difference `json:"differences"`
	}{a, b, same, []Difference{}}, "")
	return strings.TrimSuffix(object, "]\n}")
}

// indented returns the JSON of a value, whose further lines begin with a prefix.
func indented(v any, prefix string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, "  ")
	_ = e.Encode(v) // which has nothing that JSON has not
	return strings.TrimSuffix(b.String(), "\n")
}
