package verify

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"opscope/dissect"
)

// TextOptions say what a report in text shows.
type TextOptions struct {
	Strict bool
	Quiet  bool // only captures that fail
	// Color paints a word, red for what fails and yellow for what only warns; nil paints nothing.
	Color func(text string, s Severity) string
}

// WriteText writes the report for a person: for each rule that is broken the records, with
// those around them, then a line for the capture.
func (r *Report) WriteText(w io.Writer, o TextOptions) error {
	var b strings.Builder
	for _, f := range r.Files {
		if !o.Quiet || f.failed(o.Strict) {
			f.writeText(&b, o)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (f *File) writeText(b *strings.Builder, o TextOptions) {
	verdict := "ok  "
	if f.failed(o.Strict) {
		verdict = o.paint("FAIL", Error)
	}
	fmt.Fprintf(b, "%s %s: %s, %s; %s\n", verdict, f.Name, count(f.Sessions, "session"), count(f.Records, "record"), f.tally())
	if f.Records == 0 {
		b.WriteString("  " + nothingChecked + "\n")
	}
	if f.Err != "" {
		b.WriteString("  read in part: " + f.Err + "\n")
	}
	for _, out := range f.Outcomes {
		out.writeText(b, o)
	}
}

// tally counts the rules of a capture by what became of them.
func (f *File) tally() string {
	var kept, broken, warned, off int
	for _, o := range f.Outcomes {
		switch {
		case !o.On:
			off++
		case o.Broken == 0:
			kept++
		case o.Severity == Warning:
			warned++
		default:
			broken++
		}
	}
	return count(kept+broken+warned, "rule") + ": " + strconv.Itoa(kept) + " kept, " + strconv.Itoa(broken) + " broken, " +
		strconv.Itoa(warned) + " with a warning, " + strconv.Itoa(off) + " off"
}

func (o *Outcome) writeText(b *strings.Builder, t TextOptions) {
	if o.Broken > 0 {
		fmt.Fprintf(b, "\n%s %s: %s [%s]\n", t.paint(o.Severity.String(), o.Severity), o.name(), o.sentence(), o.source())
	}
	for i := range o.Breaks {
		o.Breaks[i].writeText(b)
	}
	if more := o.Broken - len(o.Breaks); more > 0 {
		b.WriteString("  and " + count(more, "more record") + "\n")
	}
	for _, w := range o.Waived {
		fmt.Fprintf(b, "waived %s, %s: %s\n", o.name(), count(w.Times, "record"), w.Reason)
	}
}

func (x *Break) writeText(b *strings.Builder) {
	fmt.Fprintf(b, "  %s: %s\n", x.where(), x.Text)
	const indent = "      "
	for _, line := range x.Before {
		b.WriteString(indent + indented(line, indent) + "\n")
	}
	if x.Line == "" {
		return
	}
	b.WriteString("    > " + indented(x.Line, indent) + "\n")
	for _, line := range x.After {
		b.WriteString(indent + indented(line, indent) + "\n")
	}
}

// indented indents what of a record stands on a line of its own: its error.
func indented(line, indent string) string { return strings.ReplaceAll(line, "\n", "\n"+indent) }

// where names the packets and the session of an exhibit.
func (x *Exhibit) where() string {
	var text string
	switch len(x.Packets) {
	case 0:
		text = "no packet"
	case 1:
		text = "packet " + strconv.Itoa(x.Packets[0])
	default:
		var list []string
		for _, p := range x.Packets {
			list = append(list, strconv.Itoa(p))
		}
		text = "packets " + strings.Join(list, " ")
	}
	if x.Session > 0 {
		text += ", session " + strconv.Itoa(x.Session)
	}
	if x.Direction != dissect.UnknownDirection {
		text += ", " + x.Direction.String()
	}
	if x.Message != "" {
		text += ", " + x.Message
	}
	return text
}

// name is how a rule is named in reports: "wulfram/acknowledged".
func (o *Outcome) name() string {
	if o.Protocol == "" {
		return o.Rule.ID
	}
	return o.Protocol + "/" + o.Rule.ID
}

// sentence is that of the rule, with its time.
func (o *Outcome) sentence() string {
	if o.Within == 0 {
		return o.Rule.Sentence
	}
	return strings.TrimSuffix(o.Rule.Sentence, ".") + ", " + o.Within.String() + "."
}

func (o *Outcome) source() string {
	if c := o.Rule.Confidence.String(); c != "" {
		return o.Rule.Source + "; " + c
	}
	return o.Rule.Source
}

func (t *TextOptions) paint(text string, s Severity) string {
	if t.Color == nil {
		return text
	}
	return t.Color(text, s)
}

// count returns "1 rule" or "2 rules".
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}
