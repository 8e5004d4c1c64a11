package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/joshdk/go-junit"
)

var reports = flag.String("reports", "", "keep the JUnit reports of TestVerifyRun in this directory")

// verifyRun runs opscope on the first host, with its report, in JSON, in report.
func (l *lan) verifyRun(command string, args ...string) *child {
	l.t.Helper()
	out, err := os.Create(l.file("report"))
	if err != nil {
		l.t.Fatal(err)
	}
	defer out.Close()
	args = append([]string{l.opscope, "verify", "-T", "json", "-i", "lo", "--run", command}, args...)
	cmd := l.command(0, args...)
	cmd.Stdout = out
	return start(l.t, cmd)
}

// verdicts returns what the report says of the rules of its one capture, and the number of
// its records.
func (l *lan) verdicts() (states map[string]string, records int) {
	l.t.Helper()
	var r struct {
		Files []struct {
			Records int
			Rules   []struct{ Rule, State string }
		}
	}
	if err := json.Unmarshal(l.read("report"), &r); err != nil || len(r.Files) != 1 {
		l.t.Fatalf("%d captures, %v\n%s", len(r.Files), err, l.read("report"))
	}
	states = map[string]string{}
	for _, rule := range r.Files[0].Rules {
		states[rule.Rule] = rule.State
	}
	return states, r.Files[0].Records
}

// game is a line for the shell: a server, and bots once it listens.
func (l *lan) game(protocol, serve string) string {
	one := fmt.Sprint("taskset -c ", processor(), " ", l.self) // see sniffed.capture
	return fmt.Sprintf(`%s serve %s %s 2>%[4]s & server=$!
until grep -qs "listening on" %[4]s; do kill -0 $server || exit 9; sleep 0.1; done
%[1]s bot %[2]s --count 2 && kill -INT $server && wait $server`, one, protocol, serve, l.file("server"))
}

// TestVerifyRun has opscope start a server and bots of each protocol, and check what they
// say. The report is that of the capture which it keeps, and a library that is not ours
// reads the report in JUnit.
func TestVerifyRun(t *testing.T) {
	for _, protocol := range []string{"wulfram", "netrek", "lotr2", "mmo"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel() // they mostly wait
			l := newLAN(t)
			dir := l.dir
			if *reports != "" {
				dir = *reports
			}
			xml, kept := filepath.Join(dir, protocol+".xml"), l.file("kept.pcapng")
			// A busy machine is late, which is no fault of the servers.
			late := []string{"--rule", "acknowledged.within=20s", "--rule", "answered.within=20s", "--hold", "20s"}
			c := l.verifyRun(l.game(protocol, "--seed 0"), append(late, "-w", kept, "--junit", xml)...)
			if code := c.end(); code != exitDone {
				t.Fatalf("exit code %d\n%s", code, l.read("report"))
			}
			states, records := l.verdicts()
			if records < 100 || states["command"] != "kept" || states["complete"] != "kept" {
				t.Errorf("%d records; %v", records, states)
			}
			for rule, state := range states {
				if state == "broken" {
					t.Errorf("%s is broken", rule)
				}
			}
			l.sameReport(kept, late)
			suites, err := junit.IngestFile(xml)
			if err != nil || len(suites) != 1 || suites[0].Name != kept {
				t.Fatalf("%d suites, %v", len(suites), err)
			}
			if got := suites[0].Totals; got.Failed+got.Error > 0 || got.Tests != len(states)+1 { // and "readable"
				t.Errorf("JUnit has %+v, want %d rules", got, len(states))
			}
			t.Logf("%d records, %d rules", records, len(states))
		})
	}
}

// sameReport wants the report to be that of the capture, but for the rule about the command.
func (l *lan) sameReport(capture string, args []string) {
	l.t.Helper()
	out, err := exec.Command(l.opscope, append([]string{"verify", "-T", "json", capture}, args...)...).Output()
	if err != nil {
		l.t.Fatal(err)
	}
	var got, want map[string]any
	if err := errors.Join(json.Unmarshal(l.read("report"), &got), json.Unmarshal(out, &want)); err != nil {
		l.t.Fatal(err)
	}
	file := got["files"].([]any)[0].(map[string]any)
	rules := file["rules"].([]any)
	file["rules"] = rules[:len(rules)-1]
	if !reflect.DeepEqual(got, want) {
		l.t.Errorf("of the capture that it kept, the report is another\n%s\nwant\n%s", l.read("report"), out)
	}
}

// TestVerifyRunFails breaks a rule, and has the command fail.
func TestVerifyRunFails(t *testing.T) {
	l := newLAN(t)
	for name, test := range map[string]struct{ command, broken string }{
		"a rule is broken":  {l.game("wulfram", "--misbehave direction"), "direction"},
		"the command fails": {"exit 7", "command"},
		"it is killed":      {"kill -9 $$", "command"},
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(l.file("server"))
			if code := l.verifyRun(test.command).end(); code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			if states, _ := l.verdicts(); states[test.broken] != "broken" {
				t.Errorf("%s is not broken: %v", test.broken, states)
			}
		})
	}
}

// TestVerifyRunTakesAll counts the packets of a command that sends until it ends.
func TestVerifyRunTakesAll(t *testing.T) {
	const packets = 200
	l := newLAN(t)
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash, which sends datagrams: ", err)
	}
	c := l.verifyRun(fmt.Sprintf("%s -c 'for i in {1..%d}; do echo $i >/dev/udp/127.0.0.1/9; done'", bash, packets),
		"-f", "udp dst port 9", "-w", l.file("kept.pcapng"))
	c.end()
	if got := len(l.packets("kept.pcapng")); got != packets {
		t.Errorf("%d packets, want %d", got, packets)
	}
}

// TestVerifyRunStops ends commands that do not end, or leave something behind: when an
// interrupt comes, when the time is over, and when the shell has ended.
func TestVerifyRunStops(t *testing.T) {
	l := newLAN(t)
	for name, test := range map[string]struct {
		command string
		args    []string
		signal  os.Signal
		says    string
	}{
		"an interrupt":        {`trap "echo told; exit 5" TERM; echo $$ >PID; echo ready; while :; do sleep 0.1; done`, nil, os.Interrupt, "told"},
		"the time is over":    {`sleep 1000`, []string{"-a", "duration:1"}, nil, "capturing on"},
		"it obeys no SIGTERM": {`trap "" TERM; echo $$ >PID; echo ready; while :; do sleep 0.1; done`, nil, os.Interrupt, "is killed"},
		"a part is left":      {`sh -c 'trap "echo told; exit 5" TERM; echo $$ >PID; while :; do sleep 0.1; done' & until [ -s PID ]; do sleep 0.1; done`, nil, nil, "told"},
	} {
		t.Run(name, func(t *testing.T) {
			file := l.file("pid")
			_ = os.Remove(file)
			c := l.verifyRun(strings.ReplaceAll(test.command, "PID", file), test.args...)
			if test.signal != nil {
				c.until("ready")
				c.signal(test.signal)
			}
			c.until(test.says)
			if code := c.end(); code != 1 { // nothing was checked
				t.Errorf("exit code %d, want 1", code)
			}
			if states, _ := l.verdicts(); states["command"] != "kept" {
				t.Errorf("that it was stopped counts against the command: %v", states)
			}
			if !strings.Contains(test.command, "PID") {
				return
			}
			pid, err := strconv.Atoi(string(bytes.TrimSpace(l.read("pid"))))
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("process %d is still there (%v)", pid, err)
			}
		})
	}
}
