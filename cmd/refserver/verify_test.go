package main_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"opscope/cmd/refserver/internal/misbehave"
	"opscope/cmd/refserver/internal/scenario"
	"opscope/dissect"
	"opscope/dissect/capture"
	"opscope/dissect/verify"
)

// names prints a record by its message.
type names struct{}

func (names) Line(r *dissect.Record) string               { return r.Message }
func (names) Clean(_ *dissect.Record, text string) string { return text }

// broken plays a scenario and returns the rules that its capture breaks, sorted, with the
// report. Rules that are off are switched on where only says one.
func broken(t *testing.T, s scenario.Scenario, seed uint64, only string) ([]string, *verify.File) {
	t.Helper()
	var buf bytes.Buffer
	if _, err := s.Run(&buf, seed); err != nil {
		t.Fatal(err)
	}
	var settings verify.Settings
	if only != "" {
		if err := settings.Change(s.Protocol + "/" + only + "=on"); err != nil {
			t.Fatal(err)
		}
	}
	c := verify.NewChecker(verify.Options{Settings: settings, Printer: names{}, Context: 2, Most: 3})
	src, err := capture.OpenReader(s.Name, &buf)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	c.Begin(s.Name)
	p := dissect.NewPipeline(c, dissect.Options{Protocols: layouts(t, &s)[0], Hold: dissect.DefaultHold})
	result, err := p.Run(context.Background(), src)
	if err != nil {
		t.Fatal(err)
	}
	c.End(result.Summary.Last)
	f := c.Report().Files[0]
	var list []string
	for _, o := range f.Outcomes {
		if o.Broken > 0 {
			list = append(list, o.Rule.ID)
		}
	}
	slices.Sort(list)
	return list, f
}

// TestMisbehaviours proves that each rule has a capture that breaks it and no other, so
// that none is dead; with three seeds, so that none is lucky.
func TestMisbehaviours(t *testing.T) {
	for i := range misbehave.All {
		m := &misbehave.All[i]
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s/%s, seed %d", m.Protocol, m.Rule, seed+1), func(t *testing.T) {
				s, ok := scenario.Find(m.Scenario)
				if !ok {
					t.Fatalf("there is no scenario %s", m.Scenario)
				}
				got, f := broken(t, s.Breaking(m), seed+1, m.Rule)
				if !slices.Equal(got, []string{m.Rule}) {
					t.Errorf("got %v broken\n%s", got, reportOf(f))
				}
				for _, o := range f.Outcomes {
					for _, x := range o.Breaks {
						if len(x.Packets) == 0 && o.Rule.ID != "complete" {
							t.Errorf("%s: no packet proves it", o.Rule.ID)
						}
					}
				}
			})
		}
	}
}

// TestEachRuleCanBeBroken proves that the list of misbehaviours is that of the rules.
func TestEachRuleCanBeBroken(t *testing.T) {
	for _, p := range verify.Protocols() {
		for _, r := range verify.Rules(p) {
			if _, err := misbehave.Find(p, r.ID); err != nil {
				t.Error(err)
			}
		}
	}
	for _, m := range misbehave.All {
		if !slices.ContainsFunc(verify.Rules(m.Protocol), func(r *verify.Rule) bool { return r.ID == m.Rule }) {
			t.Errorf("%s has no rule %s", m.Protocol, m.Rule)
		}
	}
}

// odd are the scenarios without faults in which somebody does wrong on purpose, with the
// rules that this breaks.
var odd = map[string][]string{
	"mmo-errors":     {"answered", "decodes", "direction", "enter_first", "frame_size", "known_opcode", "no_deprecated", "one_frame", "protobuf", "transport"},
	"lotr2-damaged":  {"checksum", "in_step", "known_opcode", "length", "same_bytes", "slots", "three_sends"},
	"netrek-garbage": {"decodes"},
	"netrek-refused": {"values"}, // a client of another version
}

// TestCleanScenarios proves that nothing is broken where nothing is wrong.
func TestCleanScenarios(t *testing.T) {
	clean := 0
	for _, s := range scenario.All {
		if s.Faults != (scenario.Faults{}) && !harmless(s.Faults) {
			continue
		}
		clean++
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s, seed %d", s.Name, seed+1), func(t *testing.T) {
				got, f := broken(t, s, seed+1, "")
				if f.Records == 0 {
					t.Fatal("no records")
				}
				if !slices.Equal(got, odd[s.Name]) {
					t.Errorf("got %v broken, want %v\n%s", got, odd[s.Name], reportOf(f))
				}
			})
		}
	}
	if clean < 40 {
		t.Errorf("only %d of %d scenarios are without faults", clean, len(scenario.All))
	}
}

// harmless reports whether faults are no more than how streams are cut into segments.
func harmless(f scenario.Faults) bool {
	f.Stream = scenario.Shape{}
	return f == scenario.Faults{}
}

func reportOf(f *verify.File) string {
	var b strings.Builder
	r := verify.Report{Files: []*verify.File{f}}
	if err := r.WriteText(&b, verify.TextOptions{}); err != nil {
		return err.Error()
	}
	return b.String()
}
