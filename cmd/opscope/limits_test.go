package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"opscope/dissect"
	"opscope/dissect/scene"
)

// TestEachLimit lowers each limit in turn until it is reached, which the summary counts
// under its name.
func TestEachLimit(t *testing.T) {
	e := versions[0]
	many := &scene.Scene{} // five clients, of which four have hung up long ago
	for n := range 5 {
		c := many.TCP(fmt.Sprintf("10.0.0.%d:50111", n+2), e.server)
		c.Open()
		c.Send(fromServer, chat(n))
		if n < 4 {
			c.Segment(fromServer, scene.FIN|scene.ACK, "")
			c.Segment(fromClient, scene.FIN|scene.ACK, "")
			many.Wait(10 * time.Minute)
		}
	}
	open := &scene.Scene{} // three that have not
	for n := range 3 {
		c := open.TCP(fmt.Sprintf("10.0.0.%d:50111", n+2), e.server)
		c.Open()
		c.Send(fromServer, chat(n))
	}
	hole := &scene.Scene{}
	c := hole.TCP(e.client, e.server)
	c.Open()
	c.Send(fromServer, chat(1))
	c.Lose(fromServer, chat(2))
	c.Drip(fromServer, 1000, chats(3, 400))
	noise := &scene.Scene{}
	n := noise.TCP(e.client, e.server)
	n.Open()
	n.Drip(fromServer, 1000, strings.Repeat("\xff\xfe\xfd", 60_000))
	pieces := &scene.Scene{}
	_, u := greet(pieces, e)
	for range 3 {
		u.SendFragments(fromClient, 104, scene.Original(1))
		pieces.Drop(pieces.Len())
	}
	waits := &scene.Scene{}
	_, w := greet(waits, e)
	w.Send(fromClient, scene.Original(1))
	for i := 1; i < 10; i++ {
		w.Send(fromClient, scene.Viewpoint(i, i))
	}
	neighbours := &scene.Scene{} // four clients on one host
	for n := range 4 {
		neighbours.UDP(fmt.Sprintf("10.0.0.2:%d", 50112+n), e.server).Send(fromClient, counter)
	}
	rivals := &scene.Scene{} // two sessions with sequences
	_, one := greet(rivals, e)
	one.Send(fromClient, scene.Original(1), scene.Viewpoint(1, 1))
	two := rivals.UDP("10.0.0.9:50112", e.server)
	two.Send(fromClient, scene.Original(1))
	for i := 1; i < 10; i++ {
		two.Send(fromClient, scene.Viewpoint(i, i))
	}
	tunnels := &scene.Scene{Around: scene.VXLAN(1)}
	greet(tunnels, e)
	text := &scene.Scene{}
	x := text.TCP(e.client, e.server)
	x.Open()
	x.Send(fromServer, scene.Frame(0x23, scene.Text("message of the day")), scene.AsFrame(scene.Translation(4)))
	ndjson := good(t, "decode", "-T", "json", sessionCapture)
	ng := readFile(t, sessionCapture)
	bomb := gzipped(t, append(pcapng(plainSession(), binary.LittleEndian, 1), block(binary.LittleEndian, 0xbad, make([]byte, 40<<20))...))

	cases := map[string]struct {
		data  []byte
		limit int
	}{
		"flows": {open.Pcap(1), 2}, "sessions": {many.Pcap(1), 1},
		"stream-bytes": {hole.Pcap(1), 4000}, "stream-segments": {hole.Pcap(1), 2}, "total-bytes": {hole.Pcap(1), 4000},
		"resync-bytes": {noise.Pcap(1), 10_000}, "buffered-bytes": {noise.Pcap(1), 1000},
		"fragments": {pieces.Pcap(1), 1}, "fragment-bytes": {pieces.Pcap(1), 200},
		"held-records": {waits.Pcap(1), 3}, "held-bytes": {waits.Pcap(1), 200},
		"candidates":   {neighbours.Pcap(1), 2},
		"remembered":   {rivals.Pcap(1), 10},
		"tunnels":      {tunnels.Pcap(1), 0},
		"packet-bytes": {plainSession(), 60}, "block-bytes": {ng, 200}, "ratio": {bomb, 100},
		"line-bytes": {[]byte(ndjson), 300},
		"values":     {text.Pcap(1), 10}, "text": {text.Pcap(1), 5},
		"secrets":  {readFile(t, "../../pcaps/mmo/enter.pcapng"), 1},
		"messages": {readFile(t, "../../pcaps/mmo/enter.pcapng"), 1},
	}
	schemas := map[string]string{
		"fields": "- a: u8\n- b: u8\n- c: u8", "nesting": "- a: outer", "operators": "- a: u8\n- b: = a + a + a + a", "brackets": "- a: u8\n- b: = ((((a))))",
	}
	for _, l := range allLimits {
		t.Run(l.name, func(t *testing.T) {
			if fields, ok := schemas[l.name]; ok {
				limitOfSchema(t, l.name, fields)
				return
			}
			c, ok := cases[l.name]
			if !ok {
				t.Fatal("no test reaches it")
			}
			file := writeTemp(t, "limit", c.data)
			if l.name == "tunnels" {
				return // see B61: one is the least that can be set
			}
			args := []string{"decode", "-q", "--summary", "json", "--limit", fmt.Sprintf("%s=%d", l.name, c.limit), file}
			r := opscope(t, args...)
			if n := summaryOf(t, r.out)["limits"].(map[string]any)[l.name]; n == nil {
				t.Errorf("not counted: %s\n%s", r.out, r.err)
			}
			damaged := strings.Contains("packet-bytes block-bytes ratio line-bytes", l.name)
			if want := map[bool]int{false: exitDone, true: exitInput}[damaged]; r.code != want {
				t.Errorf("exit code %d, want %d: %s", r.code, want, r.err)
			}
			if damaged && l.name != "line-bytes" && !strings.Contains(r.err, "try: --limit "+l.name+"=N") {
				t.Errorf("it does not say what to do: %s", r.err)
			}
			if text := opscope(t, "decode", "-q", "--limit", args[5], file); !strings.Contains(text.out, "the limit "+l.name+" was reached") {
				t.Errorf("as text: %s", text.out)
			}
			usual := opscope(t, "decode", "-q", "-T", "json", file)
			if l.name != "ratio" && len(summaryOf(t, usual.out)["limits"].(map[string]any)) > 0 {
				t.Errorf("by default: %s", usual.out)
			}
		})
	}
}

// limitOfSchema loads a schema of a user's that is too large for a lowered limit.
func limitOfSchema(t *testing.T, name, fields string) {
	t.Helper()
	dir := t.TempDir()
	layout := "protocol: wulfram\ntypes:\n  inner: [{x: u8}]\n  outer: [{y: inner}]\npackets:\n  MINE:\n    opcode: 0xF0\n    source: mine\n    confidence: guess\n    fields:\n      " +
		strings.ReplaceAll(fields, "\n", "\n      ") + "\n"
	if err := os.WriteFile(filepath.Join(dir, "mine.yaml"), []byte(layout), 0o644); err != nil {
		t.Fatal(err)
	}
	good(t, "decode", "--schema", dir, sessionCapture)
	// The built-in layouts keep to the limits as well, where a user's file is laid over them.
	r := opscope(t, "decode", "--schema", dir, "--limit", name+"=1", sessionCapture)
	if r.code != exitUsage || !strings.Contains(r.err, ".yaml:") || !strings.Contains(r.err, " 1") {
		t.Errorf("exit code %d, %q", r.code, r.err)
	}
}

func summaryOf(t *testing.T, out string) map[string]any {
	t.Helper()
	v := map[string]any{}
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	return v
}

// TestLimitFlag proves that a limit that is none is refused, and all are in the help.
func TestLimitFlag(t *testing.T) {
	for _, word := range []string{"flows", "flows=", "flows=0", "flows=-1", "flows=x", "flows=99999999999999", "flow=3", "=3"} {
		if r := opscope(t, "decode", "--limit", word, sessionCapture); r.code != exitUsage || !strings.Contains(r.err, "try") {
			t.Errorf("%q: exit code %d, %q", word, r.code, r.err)
		}
	}
	help := good(t, "decode", "--help")
	for _, l := range allLimits {
		if !strings.Contains(help, fmt.Sprintf("  %-15s %9d  %s", l.name, l.usual, l.text)) {
			t.Errorf("the help does not list %s", l.name)
		}
	}
	dir := t.TempDir()
	good(t, "man", dir)
	if page := string(readFile(t, filepath.Join(dir, "opscope-decode.1"))); !strings.Contains(page, "stream-segments") {
		t.Error("the manual does not list them")
	}
	many := good(t, "decode", "--limit", "flows=10", "--limit", "flows=1", "--limit", "fragments=5", "-q", sessionCapture)
	if !strings.Contains(many, "the limit flows was reached") {
		t.Errorf("of two, the last counts: %s", many)
	}
}

// TestSummary proves where the summary goes, and as what.
func TestSummary(t *testing.T) {
	plain := good(t, "decode", sessionCapture)
	quiet := good(t, "decode", "-q", sessionCapture)
	for _, args := range [][]string{{"--summary"}, {"--summary", "text"}, {"--summary=text"}} {
		r := opscope(t, append([]string{"decode", sessionCapture}, args...)...)
		if r.out != plain || r.err != quiet || r.code != exitDone {
			t.Errorf("%v: %q on standard error", args, r.err)
		}
	}
	r := opscope(t, "decode", "--summary", "json", sessionCapture)
	if all := objects(t, r.err); r.out != plain || len(all) != 1 || all[0]["type"] != "summary" {
		t.Errorf("as JSON: %q", r.err)
	}
	if got := good(t, "decode", "-q", "--summary", "json", sessionCapture); got != r.err {
		t.Errorf("-q --summary json: %q", got)
	}
	ndjson := good(t, "decode", "-T", "json", "--summary", sessionCapture)
	if !strings.HasSuffix(ndjson, r.err) || !strings.HasPrefix(ndjson, good(t, "decode", "-T", "json", sessionCapture)) {
		t.Error("with -T json it is not the last object")
	}
	if r := opscope(t, "decode", "-T", "json", "--summary=text", sessionCapture); r.err != quiet {
		t.Errorf("-T json --summary=text: %q", r.err)
	}
	if r := opscope(t, "decode", "--summary=yaml", sessionCapture); r.code != exitUsage {
		t.Errorf("exit code %d", r.code)
	}
	both := opscope(t, "decode", "-q", sessionCapture, "--", sessionCapture)
	if heading := "-- file: " + sessionCapture + " --\n"; both.out != heading+quiet+heading+quiet {
		t.Errorf("of two files: %s", both.out)
	}
}

// TestAnyFile reads what is no capture: one line, and exit code 3.
func TestAnyFile(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	files := []string{self, "main.go", "../../go.sum", ".", "../../README.md", t.TempDir(), writeTemp(t, "empty", nil), writeTemp(t, "one", []byte{0}),
		writeTemp(t, "zeros", make([]byte, 100_000)), writeTemp(t, "latin", []byte("caf\xe9 \xff")), "/dev/null", "/dev/zero", "/dev/urandom", "/proc/self/mem", "/proc/cpuinfo", "/no/such/file"}
	for _, file := range files {
		if strings.HasPrefix(file, "/dev/") || strings.HasPrefix(file, "/proc/") {
			if _, err := os.Stat(file); err != nil {
				continue // another system
			}
		}
		for _, args := range [][]string{{"decode", file}, {"decode", "-T", "json", file}, {"unknown", file}} {
			ended := make(chan result, 1)
			go func() { ended <- opscope(t, args...) }()
			select {
			case r := <-ended:
				if r.code != exitInput || strings.Count(r.err, "\n") != 1 || !strings.HasPrefix(r.err, "opscope: ") || !strings.Contains(r.err, file) ||
					args[0] == "decode" && r.out != "" {
					t.Errorf("%v: exit code %d, %q, %q", args, r.code, r.out, r.err)
				}
			case <-time.After(hang):
				t.Fatalf("%v does not end", args)
			}
		}
	}
}

// TestPipeFiles reads named pipes: one that brings a capture, one that brings nothing.
func TestPipeFiles(t *testing.T) {
	for name, data := range map[string][]byte{"a capture": plainSession(), "nothing": nil, "text": []byte("hello\n")} {
		fifo := filepath.Join(t.TempDir(), "pipe")
		if err := makeFIFO(fifo); err != nil {
			t.Skip(err)
		}
		go func() {
			w, err := os.OpenFile(fifo, os.O_WRONLY, 0)
			if err == nil {
				io.Copy(w, bytes.NewReader(data))
				w.Close()
			}
		}()
		r := opscope(t, "decode", fifo)
		if name == "a capture" {
			if r.code != exitDone || !strings.Contains(r.out, "INPUT_FEEDBACK") {
				t.Errorf("%s: exit code %d, %q", name, r.code, r.err)
			}
		} else if r.code != exitInput || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%s: exit code %d, %q", name, r.code, r.err)
		}
	}
}

// TestDefectsAreTold prints a defect of a dissector once, with its place.
func TestDefectsAreTold(t *testing.T) {
	var messages bytes.Buffer
	d := &decoding{decodeOptions: &decodeOptions{}, streams: streams{err: &messages}}
	d.told("x.pcap", &dissect.Result{Defects: []dissect.Defect{{Protocol: "wulfram", Text: "index out of range [3]", Place: "wulfram/learn.go:7", Packet: 12, Count: 3}}}, nil)
	const want = "opscope: x.pcap: packet 12: defect in the dissector of wulfram at wulfram/learn.go:7: index out of range [3] (3 times)\n"
	if messages.String() != want {
		t.Errorf("got %q, want %q", messages.String(), want)
	}
}

// TestForeignJSON reads JSON that is not opscope's: one line says so. Where there are
// records among lines that are none, each of the first such lines is named.
func TestForeignJSON(t *testing.T) {
	record, _, _ := strings.Cut(good(t, "decode", "-T", "json", sessionCapture), "\n")
	for name, c := range map[string]struct {
		content string
		lines   int
	}{
		"a document":             {"{\n" + strings.Repeat("  \"key\": 1,\n", 500) + "}\n", 1},
		"one object":             {`{"name":"x"}` + "\n", 1},
		"objects":                {strings.Repeat(`{"name":"x"}`+"\n", 500), 1},
		"a record in the end":    {strings.Repeat("{}\n", 5) + record + "\n", 6},
		"few behind a record":    {record + "\n" + strings.Repeat("{}\n", 5), 6},
		"many behind a record":   {record + "\n" + strings.Repeat("{}\n", 500), 21},
		"much before any record": {strings.Repeat("{}\n", 11) + record + "\n", 1},
	} {
		file := writeTemp(t, "x.json", []byte(c.content))
		r := opscope(t, "decode", file)
		if n := strings.Count(r.err, "\n"); r.code != exitInput || n != c.lines {
			t.Errorf("%s: exit code %d, %d lines, want %d\n%s", name, r.code, n, c.lines, r.err)
		}
		if c.lines == 1 && !strings.Contains(r.err, "looks like JSON of something else") {
			t.Errorf("%s: %s", name, r.err)
		}
	}
}
