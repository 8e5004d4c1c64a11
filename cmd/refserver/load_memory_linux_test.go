package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"opscope/cmd/refserver/internal/load"
)

// TestLoadMemory reads loads of 60 MB and of 200 MB of each protocol, with as many flows at a
// time: opscope takes hardly more memory for the longer one. In shorter ones not as many
// sessions have been there as are at a time. With OPSCOPE_LONG=1 in the environment the
// longer ones are of 1 GB, and one of 4 GB.
func TestLoadMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a gigabyte")
	}
	opscope := filepath.Join(t.TempDir(), "opscope")
	if out, err := exec.Command("go", "build", "-o", opscope, "opscope/cmd/opscope").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const mega, mebi = 1_000_000, 1 << 20
	sizes := []int64{60 * mega, 200 * mega}
	if os.Getenv("OPSCOPE_LONG") != "" {
		sizes = []int64{60 * mega, 1000 * mega, 4000 * mega}
	}
	for i, protocol := range loadProtocols {
		if i == 1 && len(sizes) == 3 {
			sizes = sizes[:2]
		}
		format := []string{"text", "json"}[i%2]
		var first int64
		for _, size := range sizes {
			most := peakOf(t, opscope, load.Options{Protocol: protocol, Bytes: size, Flows: 40, Seed: 1}, "-T", format)
			if first == 0 {
				first = most
			}
			more := most - first
			t.Logf("%s, %d MB, %s: %.1f MiB", protocol, size/mega, format, float64(most)/mebi)
			// The heap grows by some when the collector happens to be late; what is kept of each
			// session, or record, comes to more.
			if most > 84*mebi || more > 14*mebi {
				t.Errorf("%s, %d MB, %s: %.1f MiB, %.1f more than for %d MB; want at most 84, and at most 14 more",
					protocol, size/mega, format, float64(most)/mebi, float64(more)/mebi, sizes[0]/mega)
			}
		}
	}
}

// summed is a line of the summary that counts the records of a protocol.
var summed = regexp.MustCompile(`(?m)^([\d,]+) \w+ records$`)

// peakOf returns the most memory, in bytes, that opscope takes for a load, of which it is to
// find all records.
func peakOf(t *testing.T, opscope string, o load.Options, args ...string) (most int64) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "load.pcapng")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	truth, err := load.Write(file, o)
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
	defer os.Remove(name)
	cmd := exec.CommandContext(t.Context(), opscope, append(append([]string{"decode", "--summary=text"}, args...), name)...)
	var messages bytes.Buffer
	cmd.Stderr = &messages
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			records := 0
			for _, found := range summed.FindAllSubmatch(messages.Bytes(), -1) {
				n, _ := strconv.Atoi(string(bytes.ReplaceAll(found[1], []byte(","), nil)))
				records += n
			}
			if err != nil || most == 0 || records != truth.Total {
				t.Fatalf("%v, %d bytes of memory, %d records of %d: %s", err, most, records, truth.Total, messages.Bytes())
			}
			return most
		case <-time.After(2 * time.Millisecond): // the system has kept count meanwhile
			most = max(most, highWater(cmd.Process.Pid))
		}
	}
}

// highWater returns the most memory that a process has had so far, in bytes, 0 for none that
// runs.
func highWater(pid int) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		return 0
	}
	kib, _ := strconv.ParseInt(string(found[1]), 10, 64)
	return kib << 10
}
