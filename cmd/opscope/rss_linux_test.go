package main

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"testing"
)

// peakFile is the variable with the name of the file that tellPeak writes.
const peakFile = "OPSCOPE_TEST_PEAK"

// tellPeak writes down how much memory this process had at most. What the system counts
// for a child begins with what its parent had when it was forked.
func tellPeak() {
	if name := os.Getenv(peakFile); name != "" {
		status, err := os.ReadFile("/proc/self/status")
		if err == nil {
			err = os.WriteFile(name, status, 0o600)
		}
		if err != nil {
			panic(err)
		}
	}
}

// peak returns what tellPeak wrote, in bytes.
func peak(t *testing.T, name string) int64 {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(readFile(t, name)))
	for lines.Scan() {
		if words := bytes.Fields(lines.Bytes()); len(words) == 3 && string(words[0]) == "VmHWM:" {
			kib, err := strconv.ParseInt(string(words[1]), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("the system does not tell how much memory the process had")
	return 0
}
