package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// listening is an opscope that captures on the first host's veth0 into a file of its own.
type listening struct {
	*child
	lan  *lan
	args []string // the command first
	name string   // of its files: NAME.pcapng and NAME.out
}

// listen starts one. The words are a command with what it shows.
func (l *lan) listen(name string, words ...string) *listening {
	l.t.Helper()
	out, err := os.Create(l.file(name + ".out"))
	if err != nil {
		l.t.Fatal(err)
	}
	defer out.Close()
	args := slices.Concat([]string{l.opscope}, words, []string{"-i", "veth0", "-B", "2", "-w", l.file(name + ".pcapng")})
	cmd := l.command(0, args...)
	cmd.Stdout = out
	return &listening{start(l.t, cmd), l, words, name}
}

// finish waits until one has seen the last words, or has had enough, ends it, and returns
// what it printed.
func (c *listening) finish() string {
	l := c.lan
	l.t.Helper()
	seen := func() bool {
		b, err := os.ReadFile(l.file(c.name + ".pcapng"))
		return err == nil && bytes.Contains(b, []byte(lastWords))
	}
	if !await(func() bool { return c.over() || seen() }) {
		l.t.Fatalf("%v does not see the last words", c.args)
	}
	_ = c.cmd.Process.Signal(os.Interrupt) // unless it has ended
	if code := c.end(); code != exitDone {
		l.t.Errorf("%v ends with %d", c.args, code)
	}
	return string(l.read(c.name + ".out"))
}

// over reports whether the process has ended.
func (c *listening) over() bool {
	select {
	case err := <-c.ended:
		c.ended <- err
		return true
	default:
		return false
	}
}

// again returns what a command prints of the recording of another run.
func (c *listening) again(command string, args ...string) string {
	c.lan.t.Helper()
	cmd := exec.Command(c.lan.opscope, slices.Concat([]string{command}, args, []string{c.lan.file(c.name + ".pcapng")})...)
	out, err := cmd.Output()
	if err != nil {
		c.lan.t.Fatalf("%v: %v", cmd.Args, err)
	}
	return string(out)
}

// play sends the packets of a capture from the second host, and the last words behind them.
func (l *lan) play(name string) (packets int) {
	l.t.Helper()
	r := replay{fd: l.packetSocket(1)}
	r.load(l.t, filepath.Join("../../pcaps", name+".pcapng"))
	for range r.frames {
		r.send(l.t)
	}
	l.mark()
	return len(r.frames)
}

// TestSniffMatrix: filter, limits and formats have the same effect on an interface as on the
// recording of the same packets, in each protocol. What they do to files, standard input,
// compressed ones and NDJSON is compared in cmd/opscope, by TestFilterMatrix.
func TestSniffMatrix(t *testing.T) {
	formats := [][]string{{"-T", "text"}, {"-T", "json"}, {"-T", "csv"}}
	limits := [][]string{nil, {"-c", "4"}, {"--before", "1", "--after", "2"}}
	for name, filters := range map[string][]string{
		"wulfram/lossy": {"", `dir == c2s and note("retransmission")`, "ack.state == unacked or type == session"},
		"netrek/udp":    {"", "transport == udp and size > 20", "message startsWith 'SP_P'"},
		"lotr2/three":   {"", "envelope.copies == 3", "protocol == dplay or type == session"},
		"mmo/errors":    {"", "error_code == ERROR_CODE_AUTH_REQUIRED", "ack.rtt_ms >= 0 and dir == c2s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they mostly wait
			l := newLAN(t)
			var all []*listening
			for _, filter := range filters {
				for _, limit := range limits {
					if filter == "" && len(limit) > 2 {
						continue // nothing is around a hit where all are hits
					}
					for _, format := range formats {
						args := slices.Concat([]string{"sniff", "--hold", "2s"}, format, limit)
						if filter != "" {
							args = append(args, "-Y", filter)
						}
						all = append(all, l.listen(fmt.Sprintf("run%d", len(all)), args...))
					}
				}
			}
			for _, c := range all {
				c.until("capturing on ")
			}
			l.play(name)
			for _, c := range all {
				got, want := c.finish(), c.again("decode", c.args[1:]...)
				if got != want || got == "" {
					t.Errorf("%v: live\n%s\nof the recording\n%s", c.args, got, want)
				}
			}
			t.Logf("%d runs", len(all))
		})
	}
}

// TestSniffStatistics: the tables of an interface are those of its recording, and --every
// has them meanwhile, with what is in flight.
func TestSniffStatistics(t *testing.T) {
	l := newLAN(t)
	runs := map[string]*listening{}
	for _, command := range []string{"flows", "opcodes", "acks", "tables"} {
		runs[command] = l.listen(command, command, "-T", "json", "--every", "100ms")
	}
	for _, c := range runs {
		c.until("capturing on ")
	}
	packets := l.play("wulfram/lossy")
	// Nothing more comes, so that what they print next is by the clock alone.
	l.printed("flows", func(o map[string]any) bool { return inside(o, "sum", "packets") == float64(packets) })
	l.printed("acks", func(o map[string]any) bool { return inside(o, "sum", "in_flight") != 0.0 })
	l.printed("acks", func(o map[string]any) bool {
		return inside(o, "sum", "in_flight") == 0.0 && inside(o, "sum", "lost") != 0.0
	})
	l.printed("opcodes", func(o map[string]any) bool { return o["records"].(float64) > 100 })
	l.printed("tables", func(o map[string]any) bool { return len(o["sessions"].([]any)) > 0 })
	for command, c := range runs {
		lines := strings.Split(strings.TrimSuffix(c.finish(), "\n"), "\n")
		_, got, _ := strings.Cut(lines[len(lines)-1], ",")
		if want := c.again(command, "-T", "json"); "{"+got+"\n" != want {
			t.Errorf("%s: live\n{%s\nof the recording\n%s", command, got, want)
		}
	}
}

func inside(o map[string]any, key, member string) any {
	m, _ := o[key].(map[string]any)
	return m[member]
}

// printed waits until a line of what a run prints is as it should be.
func (l *lan) printed(name string, as func(map[string]any) bool) {
	l.t.Helper()
	found := func() bool {
		for line := range bytes.Lines(l.read(name + ".out")) {
			var o map[string]any
			if json.Unmarshal(line, &o) == nil && as(o) { // the last may not be whole yet
				return true
			}
		}
		return false
	}
	if !await(found) {
		l.t.Fatalf("%s prints only\n%s", name, l.read(name+".out"))
	}
}

// TestSniffSession: follow and ladder show live what they show of the recording.
func TestSniffSession(t *testing.T) {
	l := newLAN(t)
	var all []*listening
	for _, args := range [][]string{{"ladder", "-t", "u"}, {"follow", "-t", "u", "--hold", "2s"}, {"follow", "-t", "u", "-x", "--hold", "2s"}} {
		all = append(all, l.listen(fmt.Sprintf("run%d", len(all)), args...)) // the first session
	}
	for _, c := range all {
		c.until("capturing on ")
	}
	l.play("wulfram/lossy")
	waitFor(t, l.file("run0.out"), "─✗") // which nobody acknowledged: shown while it goes on
	for _, c := range all {
		got, want := c.finish(), c.again(c.args[0], append(c.args[1:], "1")...)
		if got != want || got == "" {
			t.Errorf("%v: live\n%s\nof the recording\n%s", c.args, got, want)
		}
	}
}
