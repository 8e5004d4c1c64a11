package main

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"opscope/dissect/verify"
)

// The examples, with the captures that they describe.
var specExamples = map[string]string{
	"wulfram.yaml": "../../pcaps/wulfram/play.pcapng",
	"netrek.yaml":  "../../pcaps/netrek/tcp.pcapng",
	"lotr2.yaml":   "../../pcaps/lotr2/lobby.pcapng",
	"mmo.yaml":     "../../pcaps/mmo/enter.pcapng",
}

// TestSpecExamples proves that the examples hold for their captures, and that the JSON
// Schema for editors knows all that is in them.
func TestSpecExamples(t *testing.T) {
	files, err := filepath.Glob("../../testdata/verify/*.yaml")
	if err != nil || len(files) != len(specExamples) {
		t.Fatalf("got %v (%v), want %v", files, err, slices.Sorted(maps.Keys(specExamples)))
	}
	for _, file := range files {
		good(t, "verify", "--strict", "--spec", file, specExamples[filepath.Base(file)])
		if err := fitsSpecSchema(t, string(readFile(t, file))); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// fitsSpecSchema validates a spec against the JSON Schema that is published.
func fitsSpecSchema(t *testing.T, text string) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(verify.SpecSchema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("spec.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("spec.json")
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

// TestSpecFails gives checks that do not hold for play.pcapng, and wants to be told which
// record it is. The packets are those that opscope decode prints.
func TestSpecFails(t *testing.T) {
	const capture = "../../pcaps/wulfram/play.pcapng"
	for name, test := range map[string]struct {
		check string
		want  string // text of the break
		times int
	}{
		"a step that does not come": {
			`expect: ['message == "LOGIN"', 'message == "LOGIN_STATUS" and code == 5']`, "step 2 has not come", 2,
		},
		"a step that comes too late": {
			`expect: [{record: message == "LOGIN"}, {record: message == "BIRTH_NOTICE", within: 20ms}]`, "step 2 not within 20ms behind this", 2,
		},
		"a step that comes too soon": {
			`expect: [{record: message == "LOGIN"}, {record: message == "BIRTH_NOTICE", after: 10s}]`, "want no sooner than 10s", 2,
		},
		"steps in another order": {
			`expect: ['message == "TANK"', 'message == "LOGIN"']`, "step 2 has not come", 2,
		},
		"a value that does not come back": {
			`expect: [{record: 'message == "PLAYER"', capture: {p: player_id}}, {record: 'message == "ROOT" and text == "$p"'}, {record: 'message == "PING" and timestamp == $p'}]`,
			"step 2 has not come", 2,
		},
		"what must not be":             {`never: message == "TEAM_INFO"`, "never: message", 2},
		"what must always be":          {"always: dir == \"c2s\"\n    of: message == \"HELLO\"", "always: dir", 6},
		"too few":                      {"count: message == \"LOGIN\"\n    least: 3", "2, want at least 3", 2},
		"too many":                     {"count: message == \"LOGIN\"\n    most: 1", "one more than 1", 2},
		"over all":                     {"per: capture\n    count: message == \"LOGIN\"\n    exactly: 3", "one more than 3", 1},
		"no answer":                    {"each: message == \"LOGIN\"\n    answer: message == \"LOGIN_STATUS\" and code == 9\n    within: 1s", "no answer within 1s", 4},
		"no answer with what was kept": {"each: message == \"PLAYER\"\n    capture: {p: player_id}\n    answer: message == \"BIRTH_NOTICE\" and entity_id == $p\n    within: 1s", "no answer within 1s", 2},
	} {
		t.Run(name, func(t *testing.T) {
			spec := writeTemp(t, "spec.yaml", []byte("protocol: wulfram\nchecks:\n  - name: it\n    "+test.check+"\n"))
			c, code := check(t, "--spec", spec, capture)
			if code != exitCheck {
				t.Fatalf("exit code %d", code)
			}
			for _, r := range c.Files[0].Rules {
				if r.Rule != "it" {
					if r.Broken > 0 {
						t.Errorf("%s is broken, too", r.Rule)
					}
					continue
				}
				if r.Broken != test.times || len(r.Breaks) != test.times || !strings.Contains(r.Breaks[0].Text, test.want) {
					t.Errorf("got %+v, want %d times %q", r, test.times, test.want)
				}
				if len(r.Breaks) > 0 && len(r.Breaks[0].Packets) == 0 {
					t.Error("no packet proves it")
				}
			}
		})
	}
}

// TestSpecWithoutSession proves that a check which nothing was there for does not pass.
func TestSpecWithoutSession(t *testing.T) {
	r := opscope(t, "verify", "--spec", "../../testdata/verify/netrek.yaml", "../../pcaps/wulfram/play.pcapng")
	if r.code != exitCheck || !strings.Contains(r.out, "no session to look at") {
		t.Errorf("exit code %d\n%s", r.code, r.out)
	}
}

// TestSpecErrors gives specs with one mistake, and wants to know where it is.
func TestSpecErrors(t *testing.T) {
	for name, test := range map[string]struct {
		spec string
		want string // behind the name of the file
	}{
		"no YAML":                {"checks: [\n", ":1:"},
		"no mapping":             {"- a\n", ":1:1: want a mapping"},
		"an unknown key":         {"cheks: []\n", ":1:1: unknown key \"cheks\" (did you mean checks?)"},
		"an unknown protocol":    {"protocol: wolfram\n", ":1:11: unknown protocol"},
		"an unknown rule":        {"rules:\n  acknowleged: off\n", ":2:16: unknown rule \"acknowleged\" (did you mean acknowledged?)"},
		"a time without a unit":  {"rules:\n  acknowledged: {within: 5}\n", ":2:26: acknowledged: \"5\" is no time"},
		"a waiver for nothing":   {"waive:\n  - {rule: acknowledged, packets: [KUDOS]}\n", ":2:"},
		"a check without a name": {"checks:\n  - never: message == \"PING\"\n", ":2:"},
		"a check that is two":    {"checks:\n  - name: x\n    never: message == \"PING\"\n    count: message == \"PING\"\n", ":2:5:"},
		"a key of another kind":  {"checks:\n  - name: x\n    never: message == \"PING\"\n    least: 3\n", ":4:12: least goes with another kind of check"},
		"a mistyped key":         {"checks:\n  - name: x\n    nevr: message == \"PING\"\n", ":3:5: unknown key \"nevr\" (did you mean never?)"},
		"a mistyped field":       {"checks:\n  - name: x\n    never: playr_id == 3\n", ":3:12: unknown field \"playr_id\""},
		"one in the middle":      {"checks:\n  - name: x\n    never: message == \"PING\" and playr_id == 3\n", ":3:34: unknown field \"playr_id\""},
		"one in quotes":          {"checks:\n  - name: x\n    never: 'playr_id == 3'\n", ":3:13: unknown field \"playr_id\""},
		"a value nobody keeps":   {"checks:\n  - name: x\n    expect: [message == \"PING\" and timestamp == $t]\n", ":3:14: $t: nothing before it captures t"},
		"a field nobody has":     {"checks:\n  - name: x\n    expect: [{record: message == \"PING\", capture: {t: timestmp}}]\n", "unknown field \"timestmp\""},
		"a count of anything":    {"checks:\n  - name: x\n    count: message == \"PING\"\n", "count wants least, most or exactly"},
		"each without an answer": {"checks:\n  - name: x\n    each: message == \"PING\"\n", "each wants answer and within"},
		"a name twice":           {"checks:\n  - name: x\n    never: message == \"PING\"\n  - name: X\n    never: message == \"PING\"\n", ":4:11:"},
		"no such severity":       {"checks:\n  - name: x\n    severity: fatal\n    never: message == \"PING\"\n", ":3:15: \"fatal\": want error or warning"},
	} {
		t.Run(name, func(t *testing.T) {
			file := writeTemp(t, "spec.yaml", []byte(test.spec))
			r := opscope(t, "verify", "--spec", file, "../../pcaps/wulfram/play.pcapng")
			if r.code != exitUsage || r.out != "" || !strings.Contains(r.err, file+":") || !strings.Contains(r.err, test.want) {
				t.Errorf("exit code %d\n%sgot %q\nwant %q", r.code, r.out, r.err, file+test.want)
			}
		})
	}
}
