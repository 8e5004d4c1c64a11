package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"opscope/dissect/scene"
)

// The cases of field-reports.md, as somebody sees them who decodes a capture: as text
// and as NDJSON, from a file and from a pipe, over IPv4 and over IPv6. The files
// reports_*_test.go hold them, each under its number.

const (
	fromClient = scene.Client
	fromServer = scene.Server
)

// ends are the endpoints of a case.
type ends struct {
	name                  string
	client, other, server string // the client's two ports, and the server's
}

// versions are those of IP.
var versions = []ends{
	{"IPv4", "10.0.0.2:50111", "10.0.0.2:50112", "10.0.0.1:2627"},
	{"IPv6", "[fd00::2]:50111", "[fd00::2]:50112", "[fd00::1]:2627"},
}

// report is one case.
type report struct {
	name string // "B02: what is right"
	play func(t *testing.T, e ends)
}

// hold runs cases over both versions of IP; over one where the race detector is in a hurry.
func hold(t *testing.T, list []report) {
	t.Helper()
	for i, e := range versions {
		if i > 0 && raceDetector && testing.Short() {
			break
		}
		holdOver(t, e.name, list)
	}
}

// holdOver runs cases over one version of IP.
func holdOver(t *testing.T, version string, list []report) {
	t.Helper()
	e := versions[slices.IndexFunc(versions, func(e ends) bool { return e.name == version })]
	for _, r := range list {
		t.Run(r.name+"/"+e.name, func(t *testing.T) { r.play(t, e) })
	}
}

// shown is what a capture gives.
type shown struct {
	t       *testing.T
	text    string
	objects []map[string]any
	summary map[string]any
	err     string
	code    int
}

// show decodes a scene of Ethernet packets.
func show(t *testing.T, s *scene.Scene, args ...string) *shown {
	t.Helper()
	return showFile(t, s.Pcap(1), args...)
}

// showFile decodes a capture in all ways, which must agree.
func showFile(t *testing.T, data []byte, args ...string) *shown {
	t.Helper()
	file := writeTemp(t, "case.pcap", data)
	args = append([]string{"decode", "--hold", "2s"}, args...)
	text := opscope(t, append(slices.Clone(args), "-t", "u", "--width", "-1", file)...)
	json := opscope(t, append(slices.Clone(args), "-T", "json", "--summary", file)...)
	if text.code != json.code {
		t.Errorf("exit code %d as text, %d as NDJSON", text.code, json.code)
	}
	for _, way := range []struct {
		want result
		args []string
	}{{text, []string{"-t", "u", "--width", "-1"}}, {json, []string{"-T", "json", "--summary"}}} {
		got := opscopeReading(t, bytes.NewReader(data), append(append(slices.Clone(args), way.args...), "-")...)
		if got.out != way.want.out || got.code != way.want.code {
			t.Errorf("from a pipe: exit code %d, want %d; %s", got.code, way.want.code, firstDifference(got.out, way.want.out))
		}
	}
	out := &shown{t: t, text: text.out, err: text.err, code: text.code}
	for _, o := range objects(t, json.out) {
		if o["type"] == "summary" {
			out.summary = o
		} else {
			out.objects = append(out.objects, o)
		}
	}
	return out
}

// lines says in a line for each object what a case looks at.
func (s *shown) lines(types ...string) []string {
	var list []string
	for _, o := range s.objects {
		if len(types) == 0 || slices.Contains(types, o["type"].(string)) {
			list = append(list, lineOf(o))
		}
	}
	return list
}

// lineOf says in a line what a case looks at:
//
//	c2s CHAT 3 +retransmission !malformed ~0007
//	s2c gap 10 not_captured
//	s2c event reset: by server
//	session 1 opened: syn
func lineOf(o map[string]any) string {
	var w []string
	if d, ok := o["dir"].(string); ok {
		w = append(w, d)
	}
	switch o["type"] {
	case "record":
		w = append(w, o["message"].(string))
		envelope, _ := o["envelope"].(map[string]any)
		if seq, ok := envelope["seq"]; ok {
			w = append(w, fmt.Sprint(seq))
		}
		for _, n := range o["notes"].([]any) {
			w = append(w, "+"+n.(map[string]any)["code"].(string))
		}
		if e, ok := o["error"].(map[string]any); ok {
			w = append(w, "!"+e["kind"].(string))
		}
		if rest := o["rest"].(string); rest != "" {
			w = append(w, "~"+rest)
		}
	case "gap":
		w = append(w, "gap", fmt.Sprint(o["bytes"]), fmt.Sprint(o["reason"]))
	case "event":
		w = append(w, "event", o["code"].(string)+":", fmt.Sprint(o["text"]))
	case "session":
		w = append(w, "session", fmt.Sprint(o["session"]), o["state"].(string)+":", fmt.Sprint(o["reason"]))
	default:
		w = append(w, fmt.Sprint(o["type"]))
	}
	return strings.TrimSpace(strings.Join(w, " "))
}

// want compares the lines of some types with those wanted, which may be indented.
func (s *shown) want(types, want string) {
	s.t.Helper()
	lines := strings.Split(strings.TrimSpace(want), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	if want == "" {
		lines = nil
	}
	if got := s.lines(strings.Fields(types)...); !slices.Equal(got, lines) {
		s.t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(lines, "\n\t"))
	}
}

// says wants a text in what is printed for a person.
func (s *shown) says(words ...string) {
	s.t.Helper()
	for _, w := range words {
		if !strings.Contains(s.text, w) {
			s.t.Errorf("the text does not say %q:\n%s", w, s.text)
		}
	}
}

// counts wants a number in the summary; a path is "segments.keep_alives".
func (s *shown) counts(path string, want int) {
	s.t.Helper()
	var v any = s.summary
	for _, key := range strings.Split(path, ".") {
		v = v.(map[string]any)[key]
	}
	if v == nil {
		v = 0.0
	}
	if v != float64(want) {
		s.t.Errorf("the summary counts %v for %s, want %d", v, path, want)
	}
}

// exits wants an exit code, and something in the message; "" wants none.
func (s *shown) exits(code int, message string) {
	s.t.Helper()
	if s.code != code || !strings.Contains(s.err, message) || message == "" && s.err != "" {
		s.t.Errorf("exit code %d, %q; want %d, %q", s.code, s.err, code, message)
	}
}

// texts returns the numbers of the chat lines, as "1 2 3".
func (s *shown) texts() string {
	var list []string
	for _, o := range s.objects {
		if o["message"] != "COMM_MESSAGE" || o["error"] != nil {
			continue
		}
		text, _ := o["fields"].(map[string]any)["text"].(string)
		list = append(list, strings.TrimPrefix(text, "line "))
	}
	return strings.Join(list, " ")
}

func (s *shown) wantTexts(want string) {
	s.t.Helper()
	if got := s.texts(); got != want {
		s.t.Errorf("got lines %s, want %s\n\t%s", got, want, strings.Join(s.lines(), "\n\t"))
	}
}

// record returns the nth record, from 0.
func (s *shown) record(n int) map[string]any {
	s.t.Helper()
	all := records(s.objects)
	if n >= len(all) {
		s.t.Fatalf("%d records:\n\t%s", len(all), strings.Join(s.lines(), "\n\t"))
	}
	return all[n]
}

// chat is a frame with a number in it, of 24 bytes with one digit.
func chat(n int) string { return scene.AsFrame(scene.Numbered(n)) }

func chats(from, to int) string {
	var b strings.Builder
	for n := from; n <= to; n++ {
		b.WriteString(chat(n))
	}
	return b.String()
}

func numbersFrom(from, to int) string {
	var list []string
	for n := from; n <= to; n++ {
		list = append(list, fmt.Sprint(n))
	}
	return strings.Join(list, " ")
}

// counter is a record over UDP of 5 bytes, INPUT_FEEDBACK.
const counter = "\x40\x00\x00\x00\x07"

// opened returns a scene with a connection that has its handshake.
func opened(e ends) (*scene.Scene, *scene.Connection) {
	s := &scene.Scene{}
	c := s.TCP(e.client, e.server)
	c.Open()
	return s, c
}

// greet opens a session in view of the capture: what the server says over TCP, and the
// key that its client echoes over UDP.
func greet(s *scene.Scene, e ends) (*scene.Connection, *scene.Datagrams) {
	c, u := s.TCP(e.client, e.server), s.UDP(e.other, e.server)
	c.Open()
	c.Send(fromServer, scene.AsFrame(scene.HelloUDP(2627)), scene.AsFrame(scene.HelloKey("KeyA")))
	u.Send(fromClient, scene.HelloThere, scene.EchoKey("KeyA"))
	return c, u
}

// greeted returns a scene with such a session, and its datagrams.
func greeted(e ends) (*scene.Scene, *scene.Datagrams) {
	s := &scene.Scene{}
	_, u := greet(s, e)
	return s, u
}

// TestFieldReports proves that each report is held by a test, in whatever package.
func TestFieldReports(t *testing.T) {
	text, err := os.ReadFile("../../../shared/field-reports.md")
	if err != nil {
		t.Skip("no ../shared/field-reports.md beside the checkout")
	}
	held := map[string]bool{}
	err = filepath.WalkDir("../..", func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		// A number counts where it stands in the name of a case, or above a test.
		for _, m := range regexp.MustCompile(`(?m)^\s*// .*\bB\d\d\b.*$|"B\d\d: `).FindAllString(string(readFile(t, path)), -1) {
			for _, n := range regexp.MustCompile(`\bB\d\d\b`).FindAllString(m, -1) {
				held[n] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	numbers := regexp.MustCompile(`(?m)^### (B\d\d) `).FindAllStringSubmatch(string(text), -1)
	if len(numbers) < 50 {
		t.Fatalf("%d reports", len(numbers))
	}
	for _, m := range numbers {
		if n := m[1]; !held[n] {
			t.Errorf("%s is held by no test", n)
		}
	}
}
