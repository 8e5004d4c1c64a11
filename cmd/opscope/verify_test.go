package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/joshdk/go-junit"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"opscope/dissect/verify"
)

// checked is a report in JSON, as far as tests look at it.
type checked struct {
	Passed bool
	Files  []struct {
		File    string
		Passed  bool
		Records int
		Error   *string
		Rules   []struct {
			Protocol, Rule, Severity, State string
			Broken                          int
			Breaks                          []struct {
				Text, Line    string
				Packets       []int
				Message       string
				Before, After []string
			}
			Waived []struct {
				Reason string
				Times  int
			}
		}
	}
}

// check runs verify and returns its report, and the exit code.
func check(t *testing.T, args ...string) (checked, int) {
	t.Helper()
	r := opscope(t, append([]string{"verify", "-T", "json"}, args...)...)
	var c checked
	if err := json.Unmarshal([]byte(r.out), &c); err != nil {
		t.Fatalf("exit code %d: %v\n%s%s", r.code, err, r.out, r.err)
	}
	return c, r.code
}

// broken returns the rules that a report finds broken, by how often.
func (c *checked) broken() map[string]int {
	found := map[string]int{}
	for _, f := range c.Files {
		for _, r := range f.Rules {
			if r.Broken > 0 {
				found[r.Rule] += r.Broken
			}
		}
	}
	return found
}

// TestVerifyExitCodes proves that the exit code says what the report does.
func TestVerifyExitCodes(t *testing.T) {
	data := readFile(t, lossyCapture)
	cut := writeTemp(t, "cut.pcapng", data[:len(data)-10])
	foreignTraffic := "../../pcaps/mmo/echo.pcapng"
	for name, test := range map[string]struct {
		args []string
		code int
		want string // in what it prints
	}{
		"every rule is kept":          {[]string{"../../pcaps/wulfram/play.pcapng"}, exitDone, "ok   "},
		"a rule is broken":            {[]string{lossyCapture}, exitCheck, "wulfram/acknowledged"},
		"the rule is off":             {[]string{"--rule", "acknowledged=off", lossyCapture}, exitDone, "with a warning"},
		"the rule only warns":         {[]string{"--rule", "acknowledged=warning", lossyCapture}, exitDone, "warning wulfram/acknowledged"},
		"warnings fail, too":          {[]string{"--rule", "acknowledged=off", "--strict", lossyCapture}, exitCheck, "FAIL"},
		"it is waived":                {[]string{"--waive", "acknowledged=the network is bad", lossyCapture}, exitDone, "the network is bad"},
		"another packet is waived":    {[]string{"--waive", "acknowledged:KUDOS=not yet", lossyCapture}, exitCheck, "FAIL"},
		"a rule is tightened":         {[]string{"--rule", "acknowledged.within=10ms", "../../pcaps/wulfram/play.pcapng"}, exitCheck, "only after"},
		"one capture of two fails":    {[]string{"../../pcaps/wulfram/play.pcapng", lossyCapture}, exitCheck, "ok   ../../pcaps/wulfram/play.pcapng"},
		"nothing of its protocol":     {[]string{"--protocol", "netrek", foreignTraffic}, exitCheck, "FAIL"},
		"a damaged capture":           {[]string{cut}, exitInput, "read in part"},
		"a damaged capture, lenient":  {[]string{"--lenient", "--rule", "acknowledged=off", cut}, exitDone, "read in part"},
		"no such file":                {[]string{"no.pcapng"}, exitInput, "nothing was checked"},
		"records without packets":     {[]string{writeTemp(t, "x.ndjson", []byte(good(t, "decode", "-T", "json", lossyCapture)))}, exitUsage, ""},
		"no capture":                  {nil, exitUsage, ""},
		"an unknown rule":             {[]string{"--rule", "acknowleged=off", lossyCapture}, exitUsage, ""},
		"a waiver without its reason": {[]string{"--waive", "acknowledged:KUDOS", lossyCapture}, exitUsage, ""},
		"a waiver for no packet":      {[]string{"--waive", "acknowledged:KUDDOS=x", lossyCapture}, exitUsage, ""},
		"a report nowhere":            {[]string{"--junit", filepath.Join(t.TempDir(), "no", "x.xml"), lossyCapture}, exitInput, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := opscope(t, append([]string{"verify"}, test.args...)...)
			if r.code != test.code || !strings.Contains(r.out, test.want) {
				t.Errorf("exit code %d, want %d, and %q in\n%s%s", r.code, test.code, test.want, r.out, r.err)
			}
		})
	}
}

// TestVerifyGaps: what was not captured is proved by the packets around it, and what the snap
// length cut by the packet that it was cut off.
func TestVerifyGaps(t *testing.T) {
	for file, want := range map[string][]int{"missed": {6, 10}, "snaplen": {13}} {
		c, _ := check(t, "--most", "1000", "../../pcaps/wulfram/"+file+".pcapng")
		found := false
		for _, r := range c.Files[0].Rules {
			for _, b := range r.Breaks {
				if len(b.Packets) == 0 {
					t.Errorf("%s: no packet proves that %s: %s", file, r.Rule, b.Text)
				}
				found = found || strings.Contains(b.Text, "are missing") && slices.Equal(b.Packets, want)
			}
		}
		if !found {
			t.Errorf("%s: no gap at %v", file, want)
		}
	}
}

// TestVerifyReportIsStable proves that the same capture gives the same reports, and that
// they mask what the outputs do.
func TestVerifyReportIsStable(t *testing.T) {
	dir := t.TempDir()
	var reports [2][]byte
	for i := range reports {
		x, s := filepath.Join(dir, "x.xml"), filepath.Join(dir, "s.sarif")
		r := opscope(t, "verify", "--rule", "answered.within=1ms", "--github", "--junit", x, "--sarif", s, "../../pcaps/mmo/enter.pcapng")
		if r.code != exitCheck {
			t.Fatalf("exit code %d\n%s", r.code, r.err)
		}
		reports[i] = slices.Concat([]byte(r.out), readFile(t, x), readFile(t, s))
	}
	if !bytes.Equal(reports[0], reports[1]) {
		t.Error("two runs, two reports")
	}
	if !bytes.Contains(reports[0], []byte("enter_token=***")) {
		t.Error("the token is not there, masked or not")
	}
	if bytes.Contains(reports[0], []byte("eyJ")) { // a JWT begins so
		t.Error("a report shows the token")
	}
}

var junitFile = flag.String("junit", "", "read this JUnit report, which has passed, too")

// TestVerifyJUnit reads a JUnit report back by a library that is not ours.
func TestVerifyJUnit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.xml")
	captures := []string{"../../pcaps/wulfram/play.pcapng", lossyCapture}
	if *junitFile != "" {
		suites, err := junit.IngestFile(*junitFile)
		if err != nil || len(suites) == 0 {
			t.Fatalf("%s: %d suites, %v", *junitFile, len(suites), err)
		}
		for _, s := range suites {
			if s.Totals.Failed+s.Totals.Error > 0 || s.Totals.Passed < 15 {
				t.Errorf("%s: got %+v", s.Name, s.Totals)
			}
		}
	}
	c, _ := check(t, append([]string{"--junit", file}, captures...)...)
	suites, err := junit.IngestFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(suites) != len(captures) {
		t.Fatalf("got %d suites, want %d", len(suites), len(captures))
	}
	for i, s := range suites {
		if s.Name != captures[i] {
			t.Errorf("suite %d is %s, want %s", i, s.Name, captures[i])
		}
		want := map[string]junit.Status{"readable": junit.StatusPassed}
		for _, r := range c.Files[i].Rules {
			want[r.Rule] = map[string]junit.Status{
				"kept": junit.StatusPassed, "warned": junit.StatusPassed, "broken": junit.StatusFailed, "off": junit.StatusSkipped,
			}[r.State]
		}
		if len(s.Tests) != len(want) {
			t.Errorf("%s: got %d cases, want %d", s.Name, len(s.Tests), len(want))
		}
		for _, test := range s.Tests {
			if test.Status != want[test.Name] {
				t.Errorf("%s: %s: got %s, want %s", s.Name, test.Name, test.Status, want[test.Name])
			}
			if test.Status == junit.StatusFailed && !strings.Contains(test.Error.Error(), "packet 42") {
				t.Errorf("%s does not name packet 42:\n%v", test.Name, test.Error)
			}
		}
	}
}

// TestVerifySARIF reads a SARIF log back by a library that is not ours, which knows the
// official schema.
func TestVerifySARIF(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.sarif")
	c, _ := check(t, "--sarif", file, "--waive", "in_order:COMM_MESSAGE=the network", lossyCapture)
	log, err := sarif.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range log.Runs { // the library writes what is not there as empty, which its schema refuses
		r.Language, r.Tool.Driver.Language, r.NewlineSequences = "en", "en", []string{"\n"}
	}
	if err := log.Validate(); err != nil {
		t.Fatal(err)
	}
	results := map[string]int{}
	for _, r := range log.Runs[0].Results {
		results[*r.RuleID]++
		if place := r.Locations[0].PhysicalLocation; *place.ArtifactLocation.URI != lossyCapture {
			t.Errorf("%s is at %s", *r.RuleID, *place.ArtifactLocation.URI)
		}
		if rule := log.Runs[0].Tool.Driver.Rules[r.RuleIndex]; *rule.ID != *r.RuleID {
			t.Errorf("the index of %s is that of %s", *r.RuleID, *rule.ID)
		}
	}
	for _, r := range c.Files[0].Rules {
		if want := len(r.Breaks) + len(r.Waived); results["wulfram/"+r.Rule] != want {
			t.Errorf("%s: got %d results, want %d", r.Rule, results["wulfram/"+r.Rule], want)
		}
	}
}

// TestVerifyGitHub looks at the annotations.
func TestVerifyGitHub(t *testing.T) {
	r := opscope(t, "verify", "--github", lossyCapture)
	want := "::error file=" + lossyCapture + ",line=42,title=wulfram/acknowledged::Each record of modes 1 and 3 is acknowledged in time, 2s.%0Apacket 42"
	if !strings.Contains(r.out, "\n"+want) {
		t.Errorf("want %s\nin %s", want, r.out)
	}
}

// TestVerifyRules lists the rules of each protocol.
func TestVerifyRules(t *testing.T) {
	for _, p := range verify.Protocols() {
		out := good(t, "verify", "--rules", p)
		for _, r := range verify.Rules(p) {
			if !strings.Contains(out, "\n"+r.ID+" ") || !strings.Contains(out, r.Source) {
				t.Errorf("%s: %s or its source is not listed", p, r.ID)
			}
		}
	}
}

// TestVerifyForeign checks captures of other servers. What the servers of Wulfram do wrong
// is told by an independent decoder; the others have but the faults of their notes.
func TestVerifyForeign(t *testing.T) {
	want := map[string][]string{
		"wulfram/session-one-client.pcap":   {"acknowledged", "retransmitted"}, // six records, for which nobody cares
		"wulfram/session-midstart.pcapng":   {"acknowledged", "from_start", "retransmitted"},
		"netrek/rejected.pcap":              {"values"}, // a client of another version
		"netrek/derived-big-endian-ns.pcap": {"values"}, // the same
		"netrek/derived-midpacket.pcap":     {"from_start"},
		"netrek/mid-tcp.pcap":               {"from_start"},
		"netrek/mid-short2-tcp.pcap":        {"from_start"},
		"netrek/derived-udp-loss.pcap":      {"in_order"},
		"netrek/malformed-client.pcap":      {"decodes"},
	}
	for _, protocol := range verify.Protocols() {
		list, _ := filepath.Glob(foreign + protocol + "/*.pcap*")
		for _, file := range thinned(list) {
			name := filepath.Join(protocol, filepath.Base(file))
			t.Run(name, func(t *testing.T) {
				c, _ := check(t, "--context", "0", "--most", "10000", file)
				got := []string{}
				for rule := range c.broken() {
					got = append(got, rule)
				}
				slices.Sort(got)
				if !slices.Equal(got, want[name]) {
					t.Errorf("got %v broken, want %v", got, want[name])
				}
				if protocol == "wulfram" {
					compareUnacknowledged(t, &c, file)
				}
			})
		}
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Skip("needs the folder ../shared beside the checkout, with captures that do not belong into the repository")
	}
}

// compareUnacknowledged compares the records that a report says are not acknowledged, and
// not sent again, with those of an independent decoder.
func compareUnacknowledged(t *testing.T, c *checked, file string) {
	t.Helper()
	f, err := os.Open(strings.TrimSuffix(file, filepath.Ext(file)) + ".records.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var want []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r struct {
			Ack, Message string
			Packets      []int
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r.Ack == "unacked" {
			want = append(want, r.Message+" in packet "+strconv.Itoa(r.Packets[len(r.Packets)-1]))
		}
	}
	for _, rule := range c.Files[0].Rules {
		if rule.Rule != "acknowledged" {
			continue
		}
		var got []string
		for _, x := range rule.Breaks {
			got = append(got, x.Message+" in packet "+strconv.Itoa(x.Packets[len(x.Packets)-1]))
		}
		if !slices.Equal(got, want) {
			t.Errorf("not acknowledged:\n%v, want\n%v", got, want)
		}
	}
}

// TestReadmeVerify proves that the report which the README shows is that of the command
// above it.
func TestReadmeVerify(t *testing.T) {
	m := regexp.MustCompile("(?s)<!-- opscope (verify [^;]*); a test of cmd/opscope compares it -->\n```text\n(.*?)```\n").
		FindStringSubmatch(string(readFile(t, readme)))
	if m == nil {
		t.Fatal("the README shows no report")
	}
	t.Chdir("../..")
	if r := opscope(t, strings.Fields(m[1])...); r.out != m[2] {
		t.Errorf("%s prints\n%s", m[1], r.out)
	}
}

// TestReadmeSpec proves that the spec in the README is one, and holds.
func TestReadmeSpec(t *testing.T) {
	m := regexp.MustCompile("(?s)```yaml\n(# ci/play.yaml\n.*?)```\n").FindStringSubmatch(string(readFile(t, readme)))
	if m == nil {
		t.Fatal("the README has no spec")
	}
	good(t, "verify", "--spec", writeTemp(t, "spec.yaml", []byte(m[1])), "../../pcaps/wulfram/play.pcapng")
}
