// Command measure measures opscope beside other tools, whole processes in turn, and prints
// what comes out as tables in Markdown.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// yardstick is the dissector for tshark, as a user would write it.
const yardstick = "../shared/bench/game.lua"

// trials is how often each is run; medians count.
const trials = 3

func main() {
	size := flag.String("size", "20MB", "about how large the captures are")
	flag.Parse()
	scratch, err := os.MkdirTemp("", "ratios-")
	if err == nil {
		m := &measurement{scratch: scratch, size: *size, out: bufio.NewWriter(os.Stdout)}
		err = m.run()
		m.out.Flush()
		os.RemoveAll(scratch)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

// measurement is one run.
type measurement struct {
	scratch, size string
	out           *bufio.Writer
	left          []string // what was left out, and why
}

// file returns the name of a file of this run.
func (m *measurement) file(name string) string { return filepath.Join(m.scratch, name) }

// load is a capture, and what it holds.
type load struct {
	file    string
	bytes   int64
	Records int `json:"records"`
}

// make makes a load. One that is not to be larger than most says so with it.
func (m *measurement) make(name, size string, args ...string) (*load, error) {
	l := &load{file: m.file(name + ".pcapng")}
	out, err := exec.Command(m.file("refserver"), append([]string{"record", "load", "--bytes", size, "-o", l.file}, args...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", name, err)
	}
	if err := json.Unmarshal(out, l); err != nil {
		return nil, err
	}
	about, err := os.Stat(l.file)
	if err == nil {
		l.bytes = about.Size()
	}
	return l, err
}

func (m *measurement) run() error {
	for _, command := range []string{"opscope", "refserver"} {
		if out, err := exec.Command("go", "build", "-o", m.scratch+"/", "./cmd/"+command).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	l, err := m.make("enveloped", m.size, "--protocol", "wulfram", "--enveloped")
	if err != nil {
		return err
	}
	small := l
	if megabytes(m.size) > 20 { // of which tshark makes JSON for half a minute
		if small, err = m.make("small", "20MB", "--protocol", "wulfram", "--enveloped"); err != nil {
			return err
		}
	}
	fmt.Fprintf(m.out, "| what (%s, %d records) | opscope | beside it | |\n|---|---|---|---|\n", m.size, l.Records)
	for _, step := range []func(l, small *load) error{m.beside, m.itself, m.startUp, m.found, m.allocations} {
		if err := step(l, small); err != nil {
			return err
		}
		m.out.Flush()
	}
	if err := m.protocols(); err != nil {
		return err
	}
	for _, why := range m.left {
		fmt.Fprintf(m.out, "\nleft out: %s\n", why)
	}
	return nil
}

// megabytes reads a size as refserver does, as far as it goes for sizes of loads.
func megabytes(size string) int {
	n, _ := strconv.Atoi(strings.TrimRight(size, "kMGB"))
	if strings.HasSuffix(size, "GB") {
		return 1000 * n
	}
	return n
}

// command is a command line whose output nobody reads.
type command []string

// once runs a command, and returns how long it took, and the most memory it had, in bytes,
// where the system tells.
func (c command) once() (took time.Duration, memory int64, err error) {
	cmd := exec.Command(c[0], c[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TZ=UTC")
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			return time.Since(start), memory, err
		case <-time.After(5 * time.Millisecond):
			memory = max(memory, highWater(cmd.Process.Pid))
		}
	}
}

// status is where Linux tells the most memory that a process has had.
var status = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

func highWater(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if found := status.FindSubmatch(text); found != nil {
		kib, _ := strconv.ParseInt(string(found[1]), 10, 64)
		return kib << 10
	}
	return 0
}

// taken is what some runs of a command took.
type taken struct {
	times  []time.Duration
	memory int64
}

func (t *taken) median() time.Duration { return median(t.times) }

func median[T interface{ ~int64 | ~float64 }](list []T) T {
	return slices.Sorted(slices.Values(list))[len(list)/2]
}

// inTurn runs commands in turn, again and again.
func inTurn(times int, commands ...command) ([]taken, error) {
	all := make([]taken, len(commands))
	for range times {
		for i, c := range commands {
			took, memory, err := c.once()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", strings.Join(c, " "), err)
			}
			all[i].times, all[i].memory = append(all[i].times, took), max(all[i].memory, memory)
		}
	}
	return all, nil
}

// ratio returns the median of how many times as long b took as a.
func ratio(a, b taken) float64 {
	var list []float64
	for i := range a.times {
		list = append(list, float64(b.times[i])/float64(a.times[i]))
	}
	return median(list)
}

func (m *measurement) opscope(args ...string) command {
	return append(command{m.file("opscope")}, args...)
}

// beside measures opscope and others that do the same.
func (m *measurement) beside(l, small *load) error {
	shark := func(l *load, args ...string) command {
		return append(command{"tshark", "-n", "-r", l.file, "-X", "lua_script:" + yardstick, "-o", "tcp.reassemble_out_of_order:TRUE"}, args...)
	}
	const counts = "io,stat,0,COUNT(gtcp.size)gtcp.size,COUNT(gudp.len)gudp.len"
	for _, pair := range []struct {
		what   string
		with   string // the other's name
		of     *load
		us, by command
	}{
		{"count records", "`tshark -q -z io,stat`", l, m.opscope("opcodes", l.file), shark(l, "-q", "-z", counts)},
		{"a line a record", "`tshark`, a line a packet", l, m.opscope("decode", l.file), shark(l)},
		{"a line a record", "`tcpdump -n -q`", l, m.opscope("decode", l.file), command{"tcpdump", "-n", "-q", "-r", l.file}},
		{"NDJSON", "`tshark -T ek`", small, m.opscope("decode", "-T", "json", small.file), shark(small, "-T", "ek", "-J", "gtcp gudp")},
	} {
		if why := missing(pair.by[0]); why != "" {
			m.leave(pair.with + ": " + why)
			continue
		}
		all, err := inTurn(trials, pair.us, pair.by)
		if err != nil {
			return err
		}
		fmt.Fprintf(m.out, "| %s | %s | %s: %s, %s | %.3gx |\n", pair.what, told(all[0], pair.of), pair.with, seconds(all[1].median()), mebi(all[1].memory), ratio(all[0], all[1]))
		m.out.Flush()
	}
	return nil
}

// missing says what a tool lacks, "" for nothing.
func missing(tool string) string {
	if _, err := exec.LookPath(tool); err != nil {
		return "not installed"
	}
	if _, err := os.Stat(yardstick); err != nil && tool == "tshark" {
		return "../shared is not there, which has its dissector"
	}
	return ""
}

// leave notes what is left out.
func (m *measurement) leave(why string) {
	if !slices.Contains(m.left, why) {
		m.left = append(m.left, why)
	}
}

// told writes how fast a load was read, and with how much memory.
func told(t taken, l *load) string {
	return fmt.Sprintf("%s, %.3g million records/s, %s", seconds(t.median()), float64(l.Records)/t.median().Seconds()/1e6, mebi(t.memory))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3g s", d.Seconds()) }

func mebi(bytes int64) string {
	if bytes == 0 {
		return "? MiB"
	}
	return fmt.Sprintf("%.0f MiB", float64(bytes)/(1<<20))
}

// itself measures opscope beside the disk, and one of its outputs beside another.
func (m *measurement) itself(l, _ *load) error {
	var shares []float64
	var counted []time.Duration
	for range trials {
		read, err := readThrough(l.file)
		if err != nil {
			return err
		}
		took, _, err := m.opscope("opcodes", l.file).once()
		if err != nil {
			return err
		}
		shares, counted = append(shares, read.Seconds()/took.Seconds()), append(counted, took)
	}
	fmt.Fprintf(m.out, "| count records, share of a read of the file in the page cache | %s | read: %s | %.1f %% |\n",
		seconds(median(counted)), seconds(time.Duration(median(shares)*float64(median(counted)))), 100*median(shares))
	all, err := inTurn(trials, m.opscope("decode", l.file), m.opscope("decode", "-T", "json", l.file), m.opscope("decode", "--color", "always", l.file))
	if err != nil {
		return err
	}
	fmt.Fprintf(m.out, "| NDJSON, beside lines of text | %s | text: %s | %.2f |\n", told(all[1], l), seconds(all[0].median()), ratio(all[0], all[1]))
	fmt.Fprintf(m.out, "| lines in colour, beside plain ones | %s | plain: %s | %.2f |\n", told(all[2], l), seconds(all[0].median()), ratio(all[0], all[2]))
	return nil
}

// readThrough reads a file with a buffer of 1 MiB, and returns how long that took.
func readThrough(name string) (time.Duration, error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	buf := make([]byte, 1<<20)
	start := time.Now()
	for {
		if _, err = f.Read(buf); err != nil {
			break
		}
	}
	if err == io.EOF {
		err = nil
	}
	return time.Since(start), err
}

// startUp measures how long opscope takes to begin, beside a program that does nothing but
// link the library for packets.
func (m *measurement) startUp(_, _ *load) error {
	const empty = "package main\n\nimport _ \"github.com/google/gopacket\"\n\nfunc main() {}\n"
	source := m.file("empty.go")
	if err := os.WriteFile(source, []byte(empty), 0o644); err != nil {
		return err
	}
	if out, err := exec.Command("go", "build", "-o", m.file("empty"), source).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	all, err := inTurn(21, m.opscope("version"), command{m.file("empty")}, m.opscope("decode", "pcaps/wulfram/session.pcapng"))
	if err != nil {
		return err
	}
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
	for _, i := range []int{0, 2} {
		what := map[int]string{0: "start (`opscope version`)", 2: "a capture of 71 packets, from start to end"}[i]
		fmt.Fprintf(m.out, "| %s | %s | an empty program: %s | +%s |\n", what, ms(all[i].median()), ms(all[1].median()), ms(all[i].median()-all[1].median()))
	}
	return nil
}

// found compares the records that are found with those that are there: one in a hundred
// packets is overtaken, one comes twice.
func (m *measurement) found(l, _ *load) error {
	out, err := exec.Command(m.file("opscope"), "opcodes", "-T", "json", l.file).Output()
	if err != nil {
		return err
	}
	var counted struct{ Records int }
	if err := json.Unmarshal(out, &counted); err != nil {
		return err
	}
	share := func(n int) string { return fmt.Sprintf("%.4g %%", 100*float64(n)/float64(l.Records)) }
	other := "tshark: left out"
	if missing("tshark") == "" {
		out, err := exec.Command("tshark", "-n", "-q", "-r", l.file, "-X", "lua_script:"+yardstick, "-z",
			"io,stat,0,COUNT(gtcp.size)gtcp.size,COUNT(gudp.len)gudp.len").Output()
		if err != nil {
			return err
		}
		sum := 0
		if found := regexp.MustCompile(`<>[^|]*\| +(\d+) \| +(\d+) \|`).FindSubmatch(out); found != nil {
			for _, n := range found[1:] {
				k, _ := strconv.Atoi(string(n))
				sum += k
			}
		}
		other = "tshark, as it is set up: " + share(sum)
	}
	fmt.Fprintf(m.out, "| records found, of those that are there | %s | %s | |\n", share(counted.Records), other)
	return nil
}

// allocations runs the tests that count them: each fails for one allocation in any of many
// records, once everything has been seen.
func (m *measurement) allocations(_, _ *load) error {
	found := "0"
	if out, err := exec.Command("go", "test", "-run", "Allocat", "./schema/...", "./reassembly/...", "./dissect/...").CombinedOutput(); err != nil {
		found = "**tests fail**"
		m.leave("allocations: " + string(out))
	}
	fmt.Fprintf(m.out, "| allocations for a record, once warm | %s | | |\n", found)
	return nil
}

// protocols measures each protocol, by way of each output.
func (m *measurement) protocols() error {
	fmt.Fprintf(m.out, "\n| million records a second (%s) | counted | lines | NDJSON | memory |\n|---|---|---|---|---|\n", m.size)
	for _, protocol := range []string{"wulfram", "netrek", "lotr2", "mmo"} {
		l, err := m.make(protocol, m.size, "--protocol", protocol)
		if err != nil {
			return err
		}
		all, err := inTurn(trials, m.opscope("opcodes", l.file), m.opscope("decode", l.file), m.opscope("decode", "-T", "json", l.file))
		if err != nil {
			return err
		}
		fmt.Fprintf(m.out, "| %s, %d records", protocol, l.Records)
		var memory int64
		for _, t := range all {
			fmt.Fprintf(m.out, " | %.3g", float64(l.Records)/t.median().Seconds()/1e6)
			memory = max(memory, t.memory)
		}
		fmt.Fprintf(m.out, " | %s |\n", mebi(memory))
		m.out.Flush()
		os.Remove(l.file)
	}
	return nil
}
