package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The kinds of golden files, and what prints them.
var goldenKinds = []struct {
	ext  string
	args []string
}{
	{".txt", []string{"decode", "--color", "never", "--width", "120"}},
	{".ndjson", []string{"decode", "-T", "json", "--summary"}},
	{".tables", []string{"decode", "--tables"}},
}

// TestGolden compares the output for each capture in pcaps/ with its golden files.
func TestGolden(t *testing.T) {
	captures, err := filepath.Glob("../../pcaps/*/*.pcapng")
	if err != nil || len(captures) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	for _, capture := range thinned(captures) {
		protocol := filepath.Base(filepath.Dir(capture))
		scenario := strings.TrimSuffix(filepath.Base(capture), ".pcapng")
		for _, kind := range goldenKinds {
			t.Run(protocol+"/"+scenario+kind.ext, func(t *testing.T) {
				got := good(t, append(kind.args, capture)...)
				if kind.ext == ".ndjson" {
					objects(t, got)
				}
				compareGolden(t, filepath.Join("../../testdata/golden", protocol, scenario+kind.ext), got)
			})
		}
	}
}

// The golden files of commands about one session, and of statistics, and the arguments that print them.
var goldenSessions = []struct{ file, args string }{
	{"wulfram/lossy.follow", "follow 1 pcaps/wulfram/lossy.pcapng"},
	{"wulfram/lossy.ladder", "ladder 1 pcaps/wulfram/lossy.pcapng"},
	{"wulfram/missed.ladder", "ladder 1 pcaps/wulfram/missed.pcapng"},
	{"wulfram/one-direction.ladder", "ladder --width 100 1 pcaps/wulfram/one-direction.pcapng"},
	{"netrek/garbage.ladder", "ladder -t r 1 pcaps/netrek/garbage.pcapng"},
	{"lotr2/three.ladder", "ladder 1 pcaps/lotr2/three.pcapng"},
	{"wulfram/lossy.flows", "flows pcaps/wulfram/lossy.pcapng"},
	{"wulfram/lossy.acks", "acks pcaps/wulfram/lossy.pcapng"},
	{"mmo/nat.flows", "flows pcaps/mmo/nat.pcapng"},
	{"mmo/nat.follow", "follow -v 2 pcaps/mmo/nat.pcapng"},
	{"mmo/lossy.ladder", "ladder --ascii --width 80 1 pcaps/mmo/lossy.pcapng"},
}

// TestGoldenSessions compares what follow and ladder print with their golden files.
func TestGoldenSessions(t *testing.T) {
	for _, g := range goldenSessions {
		t.Run(g.file, func(t *testing.T) {
			got := good(t, strings.Fields(strings.Replace(g.args, "pcaps/", "../../pcaps/", 1))...)
			compareGolden(t, filepath.Join("../../testdata/golden", g.file), got)
		})
	}
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v\ntry: go test ./cmd/opscope -update", err)
	}
	if got != string(want) {
		t.Errorf("%s: %s\nif that is right: go test ./cmd/opscope -update", file, firstDifference(got, string(want)))
	}
}

// TestGoldenText proves what makes a golden text worth reading: lines within their
// width, and no byte that a terminal would obey.
func TestGoldenText(t *testing.T) {
	texts, err := filepath.Glob("../../testdata/golden/*/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range goldenSessions {
		if ext := filepath.Ext(g.file); ext == ".flows" || ext == ".acks" {
			continue // their columns are as wide as they must be
		}
		texts = append(texts, "../../testdata/golden/"+g.file)
	}
	for _, file := range texts {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 120 {
				t.Errorf("%s: %d columns: %s", file, n, line)
			}
			if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Errorf("%s: a control character: %q", file, line)
			}
		}
	}
}

// TestManifest proves that the manifest lists the captures that there are, each with
// how it was made.
func TestManifest(t *testing.T) {
	manifest := string(readFile(t, "../../pcaps/MANIFEST.yaml"))
	var listed, there []string
	for _, m := range regexp.MustCompile(`(?m)^  - file:\s+(\S+)\n    command: \S.*\n    seed:\s+\S`).FindAllStringSubmatch(manifest, -1) {
		listed = append(listed, m[1])
	}
	captures, err := filepath.Glob("../../pcaps/*/*.pcapng")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range captures {
		there = append(there, strings.TrimPrefix(filepath.ToSlash(c), "../../pcaps/"))
	}
	slices.Sort(listed)
	if !slices.Equal(listed, there) {
		t.Errorf("it lists %v, there are %v", listed, there)
	}
}
