package verify

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"opscope/dissect"
)

// The objects of a report in JSON. Their keys are those of NDJSON where one says the same.
type (
	jsonReport struct {
		Passed bool       `json:"passed"`
		Strict bool       `json:"strict"`
		Files  []jsonFile `json:"files"`
	}
	jsonFile struct {
		File     string     `json:"file"`
		Passed   bool       `json:"passed"`
		Sessions int        `json:"sessions"`
		Records  int        `json:"records"`
		Error    *string    `json:"error"`
		Rules    []jsonRule `json:"rules"`
	}
	jsonRule struct {
		Protocol   string       `json:"protocol"`
		Rule       string       `json:"rule"`
		Sentence   string       `json:"sentence"`
		Source     string       `json:"source"`
		Confidence string       `json:"confidence"`
		Severity   string       `json:"severity"`
		State      string       `json:"state"` // kept, broken, warned or off
		WithinMS   *float64     `json:"within_ms"`
		Broken     int          `json:"broken"`
		Breaks     []jsonBreak  `json:"breaks"`
		Waived     []jsonWaiver `json:"waived"`
	}
	jsonBreak struct {
		Text    string        `json:"text"`
		N       *int          `json:"n"`
		Packets []int         `json:"packets"`
		Time    dissect.Stamp `json:"time"`
		Session *int          `json:"session"`
		Dir     *string       `json:"dir"`
		Message *string       `json:"message"`
		Opcode  *int          `json:"opcode"`
		Before  []string      `json:"before"`
		Line    string        `json:"line"`
		After   []string      `json:"after"`
	}
	jsonWaiver struct {
		Packets []string `json:"packets"`
		Reason  string   `json:"reason"`
		Times   int      `json:"times"`
	}
)

// WriteJSON writes the report as one JSON object.
func (r *Report) WriteJSON(w io.Writer, strict bool) error {
	all := jsonReport{Passed: !r.Failed(strict), Strict: strict, Files: []jsonFile{}}
	for _, f := range r.Files {
		j := jsonFile{File: f.Name, Passed: !f.failed(strict), Sessions: f.Sessions, Records: f.Records, Error: optional(f.Err), Rules: []jsonRule{}}
		for _, o := range f.Outcomes {
			j.Rules = append(j.Rules, o.json())
		}
		all.Files = append(all.Files, j)
	}
	return encode(w, &all)
}

// encode writes an object as JSON for persons, too.
func encode(w io.Writer, object any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(object)
}

func (o *Outcome) json() jsonRule {
	j := jsonRule{
		Protocol: o.Protocol, Rule: o.Rule.ID, Sentence: o.Rule.Sentence, Source: o.Rule.Source, Confidence: o.Rule.Confidence.String(),
		Severity: o.Severity.String(), State: o.state(), Broken: o.Broken, Breaks: []jsonBreak{}, Waived: []jsonWaiver{},
	}
	if o.Within > 0 {
		ms := float64(o.Within) / float64(time.Millisecond)
		j.WithinMS = &ms
	}
	for i := range o.Breaks {
		x := &o.Breaks[i]
		j.Breaks = append(j.Breaks, jsonBreak{
			Text: x.Text, N: positive(x.N), Packets: append([]int{}, x.Packets...), Time: dissect.Stamp{Time: x.Time}, Session: positive(x.Session),
			Dir: optional(x.Direction.String()), Message: optional(x.Message), Opcode: opcodeOf(x.Exhibit),
			Before: append([]string{}, x.Before...), Line: x.Line, After: append([]string{}, x.After...),
		})
	}
	for _, w := range o.Waived {
		j.Waived = append(j.Waived, jsonWaiver{append([]string{}, w.Packets...), w.Reason, w.Times})
	}
	return j
}

// state says in a word what became of the rule.
func (o *Outcome) state() string {
	switch {
	case !o.On:
		return "off"
	case o.Broken == 0:
		return "kept"
	case o.Severity == Warning:
		return "warned"
	}
	return "broken"
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func positive(n int) *int {
	if n <= 0 {
		return nil
	}
	return &n
}

func opcodeOf(x *Exhibit) *int {
	if x.Opcode < 0 {
		return nil
	}
	return &x.Opcode
}

// WriteGitHub writes the breaks as workflow commands, which GitHub Actions show beside the
// file: at a line that is the number of the packet.
func (r *Report) WriteGitHub(w io.Writer, strict bool) error {
	var b strings.Builder
	for _, f := range r.Files {
		name := propertyOf.Replace(f.Name)
		if f.Err != "" {
			fmt.Fprintf(&b, "::error file=%s,title=capture::%s\n", name, messageOf.Replace(f.Err))
		}
		if f.Records == 0 {
			fmt.Fprintf(&b, "::error file=%s,title=capture::%s\n", name, nothingChecked)
		}
		for _, o := range f.Outcomes {
			command := o.Severity.String()
			if strict {
				command = Error.String()
			}
			for i := range o.Breaks {
				x := &o.Breaks[i]
				fmt.Fprintf(&b, "::%s file=%s,line=%d,title=%s::%s\n", command, name, max(x.Packet(), 1), propertyOf.Replace(o.name()),
					messageOf.Replace(o.sentence()+"\n"+x.where()+": "+x.Text+"\n"+x.Line))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// What workflow commands want escaped in their message and, besides, in their properties.
var (
	messageOf  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	propertyOf = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)
