package verify

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"opscope/dissect"
	"opscope/dissect/filter"
	"opscope/schema"
)

// noFault are the codes of notes that break no rule, with why.
var noFault = map[string]string{
	"ack_before_capture":  "the session began before the capture",
	"ack_repeated":        "each copy of a record may be acknowledged",
	"alternative_layout":  "the facts disagree, not the peers",
	"assumed_context":     "the capture may begin late; wulfram/tables looks at the others",
	"heartbeat_number":    "a reading",
	"host_byte_order":     "the sender's right: netrek 10.1, 4",
	"late_context":        "a race between TCP and UDP, as seen of real servers",
	"mode_guessed":        "the capture may begin late; wulfram/handshake_first looks at the others",
	"never_acknowledged":  "the rules acknowledged and answered look at the time",
	"nonzero_after_text":  "what is behind a NUL is rubbish: netrek 11, item 11",
	"port_missed":         "a conflict between programs that is known",
	"presumed_length":     "segmentation offload",
	"reassembled":         "what pieces are for",
	"resend_copy":         "sent by design",
	"resync":              "what was lost before it has its own",
	"retransmission":      "what a sender has to do",
	"role_guessed":        "of the reading, not of the traffic",
	"sequence_skipped":    "mode 1: only the newest matters",
	"slot_unknown_to_old": "old metaservers'",
	"stale_ack":           "of a copy that came late",
	"struct_size_differs": "a conflict between programs that is known",
	"table_changed":       "a server may teach anew",
}

// TestEachNoteIsJudged proves that each note is a rule's, or no fault for a reason.
func TestEachNoteIsJudged(t *testing.T) {
	ruled := map[string]bool{}
	for _, p := range append(Protocols(), "a game of the user's") {
		for _, r := range Rules(p) {
			for _, code := range r.codes {
				ruled[code] = true
				if !slices.ContainsFunc(dissect.NoteCodes, func(n dissect.NoteCode) bool { return n.Code == code }) {
					t.Errorf("%s/%s stands on %s, which is no note", p, r.ID, code)
				}
			}
		}
	}
	for _, n := range dissect.NoteCodes {
		if ruled[n.Code] == (noFault[n.Code] != "") {
			t.Errorf("%s: a rule stands on it: %v; why it is no fault: %q", n.Code, ruled[n.Code], noFault[n.Code])
		}
	}
}

// TestRulesAreComplete proves that each rule says what, why and how sure.
func TestRulesAreComplete(t *testing.T) {
	for _, p := range append(Protocols(), "a game of the user's") {
		seen := map[string]bool{}
		for _, r := range Rules(p) {
			name := p + "/" + r.ID
			switch {
			case seen[r.ID]:
				t.Errorf("%s is there twice", name)
			case !regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`).MatchString(r.ID):
				t.Errorf("%s is not in snake case", name)
			case !strings.HasSuffix(r.Sentence, ".") || strings.Count(r.Sentence, ".") != 1:
				t.Errorf("%s: %q is not one sentence", name, r.Sentence)
			case r.Source == "" || r.Confidence == schema.NoConfidence:
				t.Errorf("%s names no source, or not how sure it is", name)
			case len(r.codes) == 0 && r.watch == nil:
				t.Errorf("%s looks at nothing", name)
			case r.Within == 0 && strings.Contains(r.Sentence, "in time"):
				t.Errorf("%s has no time", name)
			}
			seen[r.ID] = true
		}
	}
}

// TestSettings switches, tightens and waives rules, and refuses what makes no sense.
func TestSettings(t *testing.T) {
	rule := func(p, id string) *Rule {
		_, r, err := ruleNamed(p + "/" + id)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	var s Settings
	for _, text := range []string{"acknowledged=off", "netrek/in_order=error", "wulfram/retransmitted.within=750ms", "known_bodies=on", "padding = warning"} {
		if err := s.Change(text); err != nil {
			t.Error(err)
		}
	}
	for _, test := range []struct {
		protocol, id string
		want         setting
	}{
		{"wulfram", "acknowledged", setting{false, Error, 2 * time.Second}},
		{"netrek", "in_order", setting{true, Error, 0}},
		{"wulfram", "in_order", setting{true, Warning, 0}},
		{"wulfram", "retransmitted", setting{true, Error, 750 * time.Millisecond}},
		{"mmo", "known_bodies", setting{true, Warning, 0}},
	} {
		if got := s.of(test.protocol, rule(test.protocol, test.id)); got != test.want {
			t.Errorf("%s/%s: got %+v, want %+v", test.protocol, test.id, got, test.want)
		}
	}
	for text, want := range map[string]string{
		"acknowledged":           "want RULE=on",
		"acknowleged=off":        "did you mean acknowledged?",
		"quake/acknowledged=off": `unknown protocol "quake"`,
		"acknowledged=maybe":     "want on, off, error or warning",
		"acknowledged.within=2":  "want such as 500ms",
		"acknowledged.after=2s":  "want within",
		"decodes.within=2s":      "no rule about time",
	} {
		if err := s.Change(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestWaivers(t *testing.T) {
	var s Settings
	for _, text := range []string{"acknowledged:RETARGET, 0x2B,58=not yet", "mmo/direction=by design"} {
		if err := s.Waive(text); err != nil {
			t.Error(err)
		}
	}
	for _, test := range []struct {
		protocol, id, message string
		opcode                int
		want                  bool
	}{
		{"wulfram", "acknowledged", "RETARGET", 0x26, true},
		{"wulfram", "acknowledged", "DROP_REQUEST", 0x2b, true},
		{"wulfram", "acknowledged", "BEACON_REQUEST", 58, true},
		{"wulfram", "acknowledged", "KUDOS", 0x4f, false},
		{"wulfram", "retransmitted", "RETARGET", 0x26, false},
		{"mmo", "direction", "Ping", 4, true},
		{"wulfram", "direction", "PING", 12, false},
	} {
		if got := s.waiver(test.protocol, test.id, test.message, test.opcode) != nil; got != test.want {
			t.Errorf("%s of %s/%s: got %v, want %v", test.message, test.protocol, test.id, got, test.want)
		}
	}
	for _, text := range []string{"acknowledged:RETARGET", "acknowledged:RETARGET= ", "nothing:X=because"} {
		if err := s.Waive(text); err == nil {
			t.Errorf("%s: got no error", text)
		}
	}
}

// plain prints a record by its code.
type plain struct{}

func (plain) Line(r *dissect.Record) string               { return r.Code }
func (plain) Clean(_ *dissect.Record, text string) string { return text }

// TestDroppedPackets: where packets were not captured, the capture is incomplete.
func TestDroppedPackets(t *testing.T) {
	for code, want := range map[string]int{"capture_dropped": 1, "resync": 0} {
		c := NewChecker(Options{Printer: plain{}, Most: 1})
		c.Begin("lo")
		if err := c.Write(&dissect.Record{Type: dissect.EventRecord, Code: code, Packets: []int{7}}); err != nil {
			t.Fatal(err)
		}
		c.End(time.Time{})
		outcomes := c.Report().Files[0].Outcomes
		if len(outcomes) != 1 || outcomes[0].Rule != complete || outcomes[0].Broken != want {
			t.Errorf("%s: got %+v, want complete broken %d times", code, outcomes, want)
		}
	}
}

// TestCommand: how the command ended is a rule of the capture.
func TestCommand(t *testing.T) {
	for failure, want := range map[string]int{"": 0, "it ended with exit status 3": 1} {
		c := NewChecker(Options{Printer: plain{}, Most: 1})
		c.Begin("lo")
		c.End(time.Time{})
		c.Command(failure)
		o := c.Report().Files[0].Outcomes
		if len(o) != 1 || o[0].Broken != want || o[0].Severity != Error {
			t.Errorf("%q: got %+v", failure, o)
		}
	}
}

// TestNoQuestionIsForgotten asks more than can be waited for, and is answered nothing.
func TestNoQuestionIsForgotten(t *testing.T) {
	p, err := schema.Builtin("wulfram")
	if err != nil {
		t.Fatal(err)
	}
	const text = "checks: [{name: answered, each: message == \"PING_REQUEST\", answer: message == \"PING\", within: 1s}]"
	spec, err := LoadSpec("spec.yaml", []byte(text), filter.NewLanguage([]*schema.Protocol{p}, dissect.Privacy{}), Protocols(), &Settings{})
	if err != nil {
		t.Fatal(err)
	}
	c := NewChecker(Options{Specs: []*Spec{spec}, Printer: plain{}, Most: 1})
	c.Begin("lo")
	start := time.Date(2026, 11, 29, 20, 15, 0, 0, time.UTC)
	for n := range maxDue + 1 {
		r := &dissect.Record{Type: dissect.FrameRecord, N: n + 1, Time: start, Session: 1, Protocol: "wulfram", Message: "PING_REQUEST", Packets: []int{n + 1}}
		if err := c.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	c.End(start.Add(time.Minute))
	outcomes := c.Report().Files[0].Outcomes
	if o := outcomes[len(outcomes)-1]; o.Rule.ID != "answered" || o.Broken != maxDue+1 {
		t.Errorf("%s is broken %d times, want %d", o.Rule.ID, o.Broken, maxDue+1)
	}
}
