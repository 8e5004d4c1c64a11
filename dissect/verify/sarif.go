package verify

import (
	"io"
	"net/url"
	"path/filepath"
	"strconv"
)

// The objects of a SARIF log, version 2.1.0, as far as they are used. A capture has no
// lines: the number of the packet stands in their place, as readers want one.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID            string          `json:"id"`
		Short         sarifText       `json:"shortDescription"`
		Help          sarifText       `json:"help"`
		Configuration sarifConfig     `json:"defaultConfiguration"`
		Properties    sarifRuleOrigin `json:"properties"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifConfig struct {
		Enabled bool   `json:"enabled"`
		Level   string `json:"level"`
	}
	sarifRuleOrigin struct {
		Source     string `json:"source"`
		Confidence string `json:"confidence"`
	}
	sarifInvocation struct {
		Successful    bool                `json:"executionSuccessful"`
		Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Level   string    `json:"level"`
		Message sarifText `json:"message"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    int                `json:"ruleIndex"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Locations    []sarifLocation    `json:"locations"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
		Properties   *sarifPlace        `json:"properties,omitempty"`
	}
	sarifLocation struct {
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int        `json:"startLine"`
		Snippet   *sarifText `json:"snippet,omitempty"`
	}
	sarifLogical struct {
		Name string `json:"name"`
		Kind string `json:"kind"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification"`
	}
	sarifPlace struct {
		Session int   `json:"session"`
		Packets []int `json:"packets"`
	}
)

// WriteSARIF writes the report in SARIF: a result for each break that is kept, and one for
// each waiver that was used, which it suppresses.
func (r *Report) WriteSARIF(w io.Writer, version string) error {
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "opscope", Version: version, Rules: []sarifRule{}}}, Results: []sarifResult{}}
	run.Invocations = []sarifInvocation{{Successful: true}}
	index := map[string]int{}
	for _, f := range r.Files {
		if f.Err != "" {
			v := &run.Invocations[0]
			v.Successful = false
			v.Notifications = append(v.Notifications, sarifNotification{"error", sarifText{f.Name + ": " + f.Err}})
		}
		for _, o := range f.Outcomes {
			i, known := index[o.name()]
			if !known {
				i = len(run.Tool.Driver.Rules)
				index[o.name()] = i
				run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, o.sarifRule())
			}
			run.Results = o.appendSARIF(run.Results, f, i)
		}
	}
	return encode(w, &sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

// uriOf returns the name of a file as a reference.
func uriOf(name string) string { return (&url.URL{Path: filepath.ToSlash(name)}).String() }

func (o *Outcome) sarifRule() sarifRule {
	return sarifRule{
		o.name(), sarifText{o.sentence()}, sarifText{o.Rule.Sentence + " Source: " + o.Rule.Source + "."},
		sarifConfig{!o.Rule.Off, o.Rule.Severity.String()}, sarifRuleOrigin{o.Rule.Source, o.Rule.Confidence.String()},
	}
}

func (o *Outcome) appendSARIF(list []sarifResult, f *File, rule int) []sarifResult {
	for i := range o.Breaks {
		x := &o.Breaks[i]
		place := sarifPhysical{Artifact: sarifArtifact{uriOf(f.Name)}}
		var logical []sarifLogical
		if n := x.Packet(); n > 0 {
			place.Region = &sarifRegion{n, &sarifText{x.Line}}
			logical = []sarifLogical{{"packet " + strconv.Itoa(n), "packet"}}
		}
		list = append(list, sarifResult{
			RuleID: o.name(), RuleIndex: rule, Level: o.Severity.String(), Message: sarifText{x.where() + ": " + x.Text},
			Locations: []sarifLocation{{place, logical}}, Properties: &sarifPlace{x.Session, append([]int{}, x.Packets...)},
		})
	}
	for _, w := range o.Waived {
		list = append(list, sarifResult{
			RuleID: o.name(), RuleIndex: rule, Level: o.Severity.String(), Message: sarifText{count(w.Times, "record") + " waived: " + w.Reason},
			Locations:    []sarifLocation{{sarifPhysical{Artifact: sarifArtifact{uriOf(f.Name)}}, nil}},
			Suppressions: []sarifSuppression{{"external", w.Reason}},
		})
	}
	return list
}
