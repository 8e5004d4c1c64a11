//go:build unix

package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// longCapture writes a capture of some megabytes, compressed: a plain session again and again.
func longCapture(t *testing.T) string {
	t.Helper()
	whole := plainSession()
	const header = 24 // of the file, in front of the packets
	return writeTemp(t, "long.pcap.gz", gzipped(t, slices.Concat(whole[:header], bytes.Repeat(whole[header:], 200))))
}

// near reports whether a text is a number, but for its rounding.
func near(text string, want float64) bool {
	got, err := strconv.ParseFloat(text, 64)
	return err == nil && math.Abs(got-want) <= 0.06*want
}

// step is one telling of the progress. What has been read has a unit of its own unless it is that of the whole.
var step = regexp.MustCompile(`\d+ records/s +\d+% .* \( ?[\d.]+(?: [kMG]?B)?/([\d.]+) ([kMG]B), [^)]+/s\) \[(?:\d+[hms])+:(?:\d+[hms])+\]`)

// TestProgress reads for so long that nobody would wait for the end: the terminal tells how
// far it is, in bytes of the files, which are compressed. An interrupt ends it, and leaves
// the line empty for what comes.
func TestProgress(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	long := longCapture(t)
	about, err := os.Stat(long)
	if err != nil {
		t.Fatal(err)
	}
	const times = 2000
	files := slices.Repeat([]string{long}, times)
	for _, c := range []struct {
		name    string
		command []string
	}{
		{"a statistic, on the terminal", append([]string{self, "opcodes", "-j", "1"}, files...)},
		{"records, elsewhere", append([]string{"sh", "-c", `exec "$0" "$@" >/dev/null`, self, "decode", "-j", "2"}, files...)},
		{"a report, on the terminal", append([]string{self, "verify"}, files...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := terminalOf(t, []string{"OPSCOPE_PAGER="}, c.command...)
			p.await(step.String(), step.MatchString)
			p.keys("\x03")
			text, code := p.end()
			if code != exitDone && c.command[1] != "verify" {
				t.Errorf("exit code %d", code)
			}
			told := step.FindStringSubmatch(text)
			unit := map[string]float64{"kB": 1e3, "MB": 1e6, "GB": 1e9}[told[2]]
			if want := times * float64(about.Size()); !near(told[1], want/unit) {
				t.Errorf("it tells of %s %s in all, want %.1f: %q", told[1], told[2], want/unit, told[0])
			}
			at := strings.LastIndex(text, "records/s")
			rest := text[at:]
			clear := strings.Index(rest, "\r"+strings.Repeat(" ", 40))
			if clear < 0 || strings.Trim(rest[clear:strings.LastIndex(rest, "\r")], "\r ") != "" && c.command[1] == "decode" {
				t.Errorf("it leaves its line: %q", rest)
			}
		})
	}
}

// TestNoProgress tells nobody: where the records come on the same terminal, where nobody
// looks, and where nobody wants it.
func TestNoProgress(t *testing.T) {
	ours, terminal, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer ours.Close()
	defer terminal.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, c := range []struct {
		name   string
		silent bool
		o      decodeOptions
		out, e *os.File
		want   bool
	}{
		{"records in a file", false, decodeOptions{}, file, terminal, true},
		{"records on the terminal", false, decodeOptions{}, terminal, terminal, false},
		{"a statistic on the terminal", true, decodeOptions{}, terminal, terminal, true},
		{"messages in a file", false, decodeOptions{}, file, file, false},
		{"a statistic, messages in a file", true, decodeOptions{}, terminal, file, false},
		{"quiet", false, decodeOptions{quiet: true}, file, terminal, false},
		{"unwanted", false, decodeOptions{noProgress: true}, file, terminal, false},
	} {
		d := decoding{decodeOptions: &c.o, streams: streams{nil, c.out, c.e}, silent: c.silent}
		if got := d.tells(); got != c.want {
			t.Errorf("%s: told %v, want %v", c.name, got, c.want)
		}
	}
}

// TestProgressMessage has a message take the place of the progress, on a line of its own. A pipe brings nothing more
// until the progress is told of, and then its end.
func TestProgressMessage(t *testing.T) {
	dir := t.TempDir()
	fifo, bad := filepath.Join(dir, "pipe"), filepath.Join(dir, "no-capture")
	plant(t, dir, map[string][]byte{"no-capture": []byte("text")})
	if err := makeFIFO(fifo); err != nil {
		t.Skip(err)
	}
	w, err := os.OpenFile(fifo, os.O_RDWR, 0) // which does not wait for the other end
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Write(plainSession()); err != nil {
		t.Fatal(err)
	}
	p := terminal(t, []string{"OPSCOPE_PAGER="}, "opcodes", "-j", "1", fifo, bad)
	p.awaitText("records/s")
	w.Close()
	text, code := p.end()
	if code != exitInput {
		t.Errorf("exit code %d", code)
	}
	if before, _, _ := strings.Cut(text, "records/s"); strings.Contains(before, "[") {
		t.Errorf("something else tells of the progress: %q", before)
	}
	if !strings.Contains(text, "\ropscope: "+bad+": not a capture") {
		t.Errorf("the message begins no line: %.2000q", text)
	}
}
