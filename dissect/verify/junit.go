package verify

import (
	"encoding/xml"
	"io"
	"strings"
)

// The elements of a JUnit report, as Jenkins and its many readers take them: a suite is a
// capture, a case a rule. There are no times in it, so that the same captures give the
// same bytes.
type (
	junitSuites struct {
		XMLName  xml.Name `xml:"testsuites"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Errors   int      `xml:"errors,attr"`
		Skipped  int      `xml:"skipped,attr"`
		Suites   []*junitSuite
	}
	junitSuite struct {
		XMLName  xml.Name `xml:"testsuite"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Errors   int      `xml:"errors,attr"`
		Skipped  int      `xml:"skipped,attr"`
		Cases    []*junitCase
	}
	junitCase struct {
		XMLName xml.Name    `xml:"testcase"`
		Class   string      `xml:"classname,attr"`
		Name    string      `xml:"name,attr"`
		Failure *junitFault `xml:"failure"`
		Error   *junitFault `xml:"error"`
		Skipped *junitFault `xml:"skipped"`
		Output  string      `xml:"system-out,omitempty"`
	}
	junitFault struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes the report for readers of JUnit. A warning is a failure in a strict
// report, else what the case has printed.
func (r *Report) WriteJUnit(w io.Writer, strict bool) error {
	all := junitSuites{Name: "opscope verify"}
	for _, f := range r.Files {
		s := f.junit(strict)
		all.Suites = append(all.Suites, s)
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Errors += s.Errors
		all.Skipped += s.Skipped
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(&all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (f *File) junit(strict bool) *junitSuite {
	s := &junitSuite{Name: f.Name}
	read := &junitCase{Class: "capture", Name: "readable"}
	switch {
	case f.Err != "":
		read.Error = &junitFault{Message: f.Err}
	case f.Records == 0:
		read.Failure = &junitFault{Message: nothingChecked}
	}
	s.add(read)
	for _, o := range f.Outcomes {
		s.add(o.junit(strict))
	}
	return s
}

func (s *junitSuite) add(c *junitCase) {
	s.Cases = append(s.Cases, c)
	s.Tests++
	switch {
	case c.Error != nil:
		s.Errors++
	case c.Failure != nil:
		s.Failures++
	case c.Skipped != nil:
		s.Skipped++
	}
}

func (o *Outcome) junit(strict bool) *junitCase {
	c := &junitCase{Class: "capture", Name: o.Rule.ID}
	if o.Protocol != "" {
		c.Class = o.Protocol
	}
	var b strings.Builder
	o.writeText(&b, TextOptions{})
	text := strings.TrimSpace(b.String())
	switch {
	case !o.On:
		c.Skipped = &junitFault{Message: "off"}
	case o.failed(strict):
		c.Failure = &junitFault{Message: count(o.Broken, "break") + ": " + o.sentence(), Type: o.Severity.String(), Text: text}
	default:
		c.Output = text
	}
	return c
}
