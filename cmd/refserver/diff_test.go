package main_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/scenario"
	"opscope/dissect"
	"opscope/dissect/capture"
	"opscope/dissect/sink"
	"opscope/dissect/transcript"
)

// said has x take what was said in a run, and returns it. The world is that of seed 1; the
// seed draws initial sequence numbers and faults.
func said(t *testing.T, s scenario.Scenario, seed uint64, x *transcript.Transcript) *transcript.Transcript {
	t.Helper()
	var buf bytes.Buffer
	play := s.InWorld(1)
	if _, err := play.Run(&buf, seed); err != nil {
		t.Fatal(err)
	}
	src, err := capture.OpenReader(s.Name, &buf)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	out := sink.NewNDJSON(x, sink.NDJSONOptions{})
	p := dissect.NewPipeline(out, dissect.Options{Protocols: layouts(t, &s)[0], Hold: dissect.DefaultHold})
	if _, err := p.Run(context.Background(), src); err != nil {
		t.Fatal(err)
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	return x
}

// untimed returns an empty transcript without ticks, which in lotr2-split the seed draws.
func untimed() *transcript.Transcript { return &transcript.Transcript{Ignore: []string{"tick"}} }

// TestDiffSeeds compares runs of scenarios without faults whose seeds differ: they say the
// same.
func TestDiffSeeds(t *testing.T) {
	for _, s := range scenario.All {
		faults := s.Faults
		faults.Before.Delay, faults.Behind.Delay, faults.Stream = 0, 0, scenario.Shape{}
		if faults != (scenario.Faults{}) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			first := said(t, s, 1, untimed())
			for seed := range uint64(3) {
				other := said(t, s, seed+2, first.Counterpart())
				if list := slices.Collect(transcript.Compare(first, other)); len(list) > 0 {
					t.Errorf("seed %d:\n%s", seed+2, show(list))
				}
			}
		})
	}
}

// greeter is a server whose greeting is another one.
type greeter struct{ machine.Machine }

func (g greeter) Handle(now time.Time, in machine.Input) []machine.Output {
	list := g.Machine.Handle(now, in)
	for i := range list {
		list[i].Data = bytes.Replace(list[i].Data, []byte("Welcome."), []byte("Welcome!"), 1)
	}
	return list
}

// TestDiffPlanted changes one field of one record, in a run with another seed.
func TestDiffPlanted(t *testing.T) {
	s := scenarioOf(t, "login")
	first, cast := said(t, *s, 1, untimed()), s.Cast
	s.Cast = func(seed uint64) []scenario.Role {
		roles := cast(seed)
		build := roles[0].Build
		roles[0].Build = func(o machine.Observer) machine.Machine { return greeter{build(o)} }
		return roles
	}
	list := slices.Collect(transcript.Compare(first, said(t, *s, 2, first.Counterpart())))
	if len(list) != 1 || list[0].Kind != "changed" || list[0].A.Message != "MOTD" || len(list[0].Fields) != 1 ||
		list[0].Fields[0].Path != "text" || *list[0].Fields[0].A != `"Welcome."` || *list[0].Fields[0].B != `"Welcome!"` {
		t.Errorf("got\n%s", show(list))
	}
}

func scenarioOf(t *testing.T, name string) *scenario.Scenario {
	t.Helper()
	s, ok := scenario.Find(name)
	if !ok {
		t.Fatalf("there is no scenario %s", name)
	}
	return &s
}

func show(list []transcript.Difference) string {
	var b strings.Builder
	if _, err := transcript.WriteText(&b, "one", "the other", slices.Values(list), nil); err != nil {
		return err.Error()
	}
	return b.String()
}
