//go:build unix

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// onTerminal is opscope as a process of its own, with a terminal.
type onTerminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	tty    *os.File // our end
	mu     sync.Mutex
	shown  bytes.Buffer
	closed chan struct{} // nothing more is shown
}

// terminal starts opscope on a terminal of 24 lines. The settings stand in its environment;
// one with an empty value does not.
func terminal(t *testing.T, settings []string, args ...string) *onTerminal {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return terminalOf(t, settings, append([]string{self}, args...)...)
}

// terminalOf starts a command line on a terminal.
func terminalOf(t *testing.T, settings []string, args ...string) *onTerminal {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = append([]string{asMain + "=1", "PATH=" + os.Getenv("PATH"), "TERM=xterm", "LANG=C.UTF-8", "TZ=UTC"}, settings...)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 100})
	if err != nil {
		t.Skipf("no terminal to be had: %v", err)
	}
	p := &onTerminal{t: t, cmd: cmd, tty: tty, closed: make(chan struct{})}
	go func() {
		defer close(p.closed)
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			p.mu.Lock()
			p.shown.Write(buf[:n])
			p.mu.Unlock()
			if err != nil { // EIO when the last process has closed it
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_, _ = cmd.Process.Wait()
		tty.Close()
	})
	return p
}

// text returns what the terminal has shown so far, with plain ends of lines.
func (p *onTerminal) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.ReplaceAll(p.shown.String(), "\r\n", "\n")
}

// await waits until what the terminal shows is as it should be.
func (p *onTerminal) await(what string, as func(text string) bool) {
	p.t.Helper()
	for end := time.Now().Add(hang); !as(p.text()); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("%s does not come, but\n%q", what, p.text())
		}
	}
}

// awaitText waits until the terminal shows some words.
func (p *onTerminal) awaitText(words string) {
	p.t.Helper()
	p.await(words, func(text string) bool { return strings.Contains(text, words) })
}

// keys types.
func (p *onTerminal) keys(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p.tty, text); err != nil {
		p.t.Fatal(err)
	}
}

// end waits for the process, and returns all that was shown, and the exit code.
func (p *onTerminal) end() (text string, code int) {
	p.t.Helper()
	stop := time.AfterFunc(hang, func() { _ = p.cmd.Process.Kill() })
	defer stop.Stop()
	_ = p.cmd.Wait()
	<-p.closed
	return p.text(), p.cmd.ProcessState.ExitCode()
}

// shownBy is a pager that marks what it shows, so that a test can tell.
const shownBy = `OPSCOPE_PAGER=sed "s/^/P /"`

// TestPager proves when there is a pager, and when there is none.
func TestPager(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "pipe")
	if err := makeFIFO(fifo); err != nil {
		t.Skip(err)
	}
	go func() {
		if w, err := os.OpenFile(fifo, os.O_WRONLY, 0); err == nil {
			_, _ = w.Write(plainSession())
			w.Close()
		}
	}()
	for _, c := range []struct {
		name     string
		settings []string
		args     []string
		paged    bool
	}{
		{"a capture", []string{shownBy}, []string{"decode", sessionCapture}, true},
		{"without the command", []string{shownBy}, []string{sessionCapture}, true},
		{"follow", []string{shownBy}, []string{"follow", "1", sessionCapture}, true},
		{"ladder", []string{shownBy}, []string{"ladder", "1", sessionCapture}, true},
		{"unknown", []string{shownBy}, []string{"unknown", sessionCapture}, true},
		{"notes", []string{shownBy}, []string{"notes"}, true},
		{"a schema", []string{shownBy}, []string{"schema", "show", "wulfram", "LOGIN"}, true},
		{"PAGER", []string{`PAGER=sed "s/^/P /"`}, []string{"notes"}, true},
		{"OPSCOPE_PAGER before PAGER", []string{shownBy, "PAGER=cat"}, []string{"notes"}, true},
		{"no OPSCOPE_PAGER", []string{"OPSCOPE_PAGER=", `PAGER=sed "s/^/P /"`}, []string{"notes"}, false},
		{"cat", []string{"PAGER=cat"}, []string{"notes"}, false},
		{"--no-pager", []string{shownBy}, []string{"notes", "--no-pager"}, false},
		{"--no-pager in front", []string{shownBy}, []string{"--no-pager", sessionCapture}, false},
		{"JSON", []string{shownBy}, []string{"decode", "-T", "json", sessionCapture}, false},
		{"JSON of follow", []string{shownBy}, []string{"follow", "-T", "json", "1", sessionCapture}, false},
		{"a summary in JSON", []string{shownBy}, []string{"decode", "-q", "--summary", "json", sessionCapture}, false},
		{"the schema of JSON", []string{shownBy}, []string{"schema", "json", "ndjson"}, false},
		{"a named pipe", []string{shownBy}, []string{"decode", fifo}, false},
		{"the version", []string{shownBy}, []string{"version"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, code := terminal(t, c.settings, c.args...).end()
			if code != exitDone || text == "" {
				t.Fatalf("exit code %d\n%s", code, text)
			}
			for line := range strings.Lines(text) {
				if strings.HasPrefix(line, "P ") != c.paged {
					t.Fatalf("got the line %q", line)
				}
			}
		})
	}
}

// TestPagerShowsTheSame proves that a pager gets what the terminal would: all lines, in
// the terminal's width, with colour, and messages in their place.
func TestPagerShowsTheSame(t *testing.T) {
	cut := writeTemp(t, "cut.pcapng", readFile(t, sessionCapture)[:5000])
	for _, args := range [][]string{
		{"decode", sessionCapture}, {"decode", cut}, {"decode", "no-such-file", cut}, {"ladder", "1", cut}, {"follow", "7", cut}, {"decode", "--nonsense"},
	} {
		want, code := terminal(t, nil, append(args, "--no-pager")...).end()
		got, other := terminal(t, []string{`PAGER=tr a a`}, args...).end()
		if want = strings.TrimSuffix(want, "\n"); strings.TrimSuffix(got, "\n") != want || other != code {
			t.Errorf("opscope %v: exit codes %d and %d, %s", args, other, code, firstDifference(got, want))
		}
		if args[0] == "decode" && args[1] == sessionCapture && !strings.Contains(got, "\x1b[") {
			t.Error("no colour")
		}
	}
}

// TestPagerEnvironment proves that less gets settings, and that those of the user stay.
func TestPagerEnvironment(t *testing.T) {
	const tell = `PAGER=cat >/dev/null; echo "$LESS $LV"`
	if text, _ := terminal(t, []string{tell}, "notes").end(); text != "FRX -c\n" {
		t.Errorf("got %q", text)
	}
	if text, _ := terminal(t, []string{tell, "LESS=-S", "LV=-x"}, "notes").end(); text != "-S -x\n" {
		t.Errorf("got %q", text)
	}
}

// TestPagerMissing prints without a pager where there is none; of one that somebody asked
// for it says so.
func TestPagerMissing(t *testing.T) {
	p := terminal(t, []string{"PAGER=no-such-pager"}, "notes")
	if text, code := p.end(); code != exitDone || !strings.HasPrefix(text, "opscope: pager: ") || !strings.Contains(text, "retransmission") {
		t.Errorf("exit code %d, %q", code, text)
	}
	p = terminal(t, []string{"PATH=" + t.TempDir()}, "notes")
	if text, code := p.end(); code != exitDone || strings.Contains(text, "pager") || !strings.Contains(text, "retransmission") {
		t.Errorf("exit code %d, %q", code, text)
	}
}

// TestPagerStatus proves that the exit code is that of the command, whatever becomes of the
// pager: one that fails, one that quits at once, and one that quits in the middle.
func TestPagerStatus(t *testing.T) {
	cut := writeTemp(t, "cut.pcapng", readFile(t, sessionCapture)[:5000])
	for _, c := range []struct {
		pager string
		args  []string
		code  int
	}{
		{"cat; exit 9", []string{"decode", sessionCapture}, exitDone},
		{"cat; exit 9", []string{"decode", cut}, exitInput},
		{"cat; exit 9", []string{"decode", "--lenient", cut}, exitDone},
		{"cat; exit 9", []string{"follow", "7", sessionCapture}, exitUsage},
		{"true", []string{"decode", "-V", "-x", sessionCapture, sessionCapture, sessionCapture}, exitDone},
		{"head -n 3", []string{"decode", "-V", "-x", sessionCapture, sessionCapture, sessionCapture}, exitDone},
		{"head -n 3", []string{"ladder", "1", sessionCapture}, exitDone},
		{"head -n 3", []string{"unknown", "../../pcaps/netrek/short.pcapng"}, exitDone},
	} {
		text, code := terminal(t, []string{"PAGER=" + c.pager}, c.args...).end()
		if code != c.code || strings.Contains(text, "pipe") || strings.Contains(text, "interrupted") {
			t.Errorf("PAGER=%q opscope %v: exit code %d, want %d\n%s", c.pager, c.args, code, c.code, text)
		}
		if n := strings.Count(text, "\n"); c.pager == "head -n 3" && n != 3 {
			t.Errorf("%d lines, want 3:\n%s", n, text)
		}
	}
}

// TestPagerInterrupts proves that interrupts are the pager's: opscope stays until the
// reader quits, however often he interrupts, so that the terminal is not left to two.
func TestPagerInterrupts(t *testing.T) {
	// The pager shows all, and then waits for three interrupts and a key. It sleeps until the
	// interrupts have come: a shell that is just about to read misses one that comes then.
	const patient = `PAGER=n=0; trap 'n=$((n+1)); echo interrupted' INT; cat; echo ready; ` +
		`while [ $n -lt 3 ]; do sleep 0.01; done; read key </dev/tty; echo "quit by $key"`
	p := terminal(t, []string{patient}, "notes")
	p.awaitText("ready")
	for n := 1; n <= 3; n++ {
		p.keys("\x03")
		p.await("another interrupt", func(text string) bool { return strings.Count(text, "interrupted\n") >= n })
		if err := p.cmd.Process.Signal(syscall.Signal(0)); err != nil {
			t.Fatalf("opscope is gone after interrupt %d: %v", n, err)
		}
	}
	p.keys("q\n")
	text, code := p.end()
	if code != exitDone || !strings.Contains(text, "quit by q\n") {
		t.Errorf("exit code %d\n%s", code, text)
	}
}

// TestLess runs the pager that most have. It ends by itself when all fits the screen, and
// waits for q when it does not.
func TestLess(t *testing.T) {
	if _, err := exec.LookPath("less"); err != nil {
		t.Skip("no less here")
	}
	p := terminal(t, nil, "decode", "--color", "never", "-c", "3", sessionCapture)
	if text, code := p.end(); code != exitDone || strings.Count(text, "\n") < 3 {
		t.Errorf("exit code %d\n%s", code, text)
	}
	p = terminal(t, nil, "decode", "--color", "never", sessionCapture)
	p.awaitText("\n:")
	p.keys("q")
	if text, code := p.end(); code != exitDone || strings.Contains(text, "INPUT_FEEDBACK") {
		t.Errorf("exit code %d\n%s", code, text)
	}
}
