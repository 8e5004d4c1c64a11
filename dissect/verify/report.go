package verify

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"opscope/schema"
)

// Report is what a run found.
type Report struct {
	Files []*File
}

// File is one capture.
type File struct {
	Name     string
	Sessions int
	Records  int
	Outcomes []*Outcome // of each protocol that it has, in the order of their rules
	Err      string     // why it could not be read to its end; empty where it was
}

// Outcome is what became of one rule in one capture.
type Outcome struct {
	Protocol string
	Rule     *Rule
	On       bool
	Severity Severity
	Within   time.Duration
	Broken   int // how often, waivers aside
	Breaks   []Break
	Waived   []Waived

	last *Exhibit
}

// Break is one break of a rule.
type Break struct {
	*Exhibit
	Text string // what is wrong with it
}

// Waived is how often a waiver was used.
type Waived struct {
	*Waiver
	Times int
}

func (o *Outcome) waive(w *Waiver) {
	for i := range o.Waived {
		if o.Waived[i].Waiver == w {
			o.Waived[i].Times++
			return
		}
	}
	o.Waived = append(o.Waived, Waived{w, 1})
}

// finish puts the outcomes of a file in order.
func (f *File) finish(lawful map[string][]*Outcome) {
	for _, name := range slices.Sorted(maps.Keys(lawful)) {
		for _, o := range lawful[name] {
			o.sort()
			f.Outcomes = append(f.Outcomes, o)
		}
	}
}

// sort puts the breaks in the order of their packets.
func (o *Outcome) sort() {
	slices.SortStableFunc(o.Breaks, func(a, b Break) int {
		return cmp.Or(cmp.Compare(a.Packet(), b.Packet()), cmp.Compare(a.N, b.N))
	})
}

// Failed reports whether the check failed; a strict one fails for warnings, too. A capture
// with no record of a known protocol fails: nothing was checked.
func (r *Report) Failed(strict bool) bool {
	return slices.ContainsFunc(r.Files, func(f *File) bool { return f.failed(strict) })
}

func (f *File) failed(strict bool) bool {
	return f.Records == 0 || slices.ContainsFunc(f.Outcomes, func(o *Outcome) bool { return o.failed(strict) })
}

func (o *Outcome) failed(strict bool) bool { return o.Broken > 0 && (strict || o.Severity == Error) }

// nothingChecked is what reports say of a capture without records.
const nothingChecked = "nothing was checked: no record of a known protocol"

// Incomplete says why the capture that was checked last could not be read to its end.
func (c *Checker) Incomplete(why string) { c.file.Err = why }

// wellEnded is the rule for the command that makes the traffic of a capture.
var wellEnded = &Rule{
	ID:         "command",
	Sentence:   "The command that makes the traffic ends well.",
	Source:     captureSource,
	Confidence: schema.Policy,
}

// Command says how the command ended that made the traffic of the capture that was checked
// last; empty for well.
func (c *Checker) Command(failure string) {
	o := &Outcome{Rule: wellEnded, On: true, Severity: wellEnded.Severity}
	if failure != "" {
		o.Broken, o.Breaks = 1, []Break{{orNothing(nil), failure}}
	}
	c.file.Outcomes = append(c.file.Outcomes, o)
}
