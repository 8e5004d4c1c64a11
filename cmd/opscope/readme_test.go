package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"opscope/dissect/sink"
)

const readme = "../../README.md"

// quoted finds a block of the README that quotes a golden file, below a comment that
// says which lines.
var quoted = regexp.MustCompile("(?s)<!-- lines ([0-9, and-]+) of (\\S+); [^>]*-->\n```text\n(.*?)```\n")

// TestReadmeOutput proves that the output which the README shows is that of the tool.
func TestReadmeOutput(t *testing.T) {
	text := string(readFile(t, readme))
	if !quoted.MatchString(text) {
		t.Fatal("the README quotes no golden file")
	}
	want := quoted.ReplaceAllStringFunc(text, func(block string) string {
		m := quoted.FindStringSubmatch(block)
		lines := strings.Split(string(readFile(t, "../../"+m[2])), "\n")
		var parts []string
		for _, r := range regexp.MustCompile(`\d+-\d+`).FindAllString(m[1], -1) {
			var from, to int
			if _, err := fmt.Sscanf(r, "%d-%d", &from, &to); err != nil || from < 1 || to > len(lines) {
				t.Fatalf("no lines %s in %s", r, m[2])
			}
			parts = append(parts, strings.Join(lines[from-1:to], "\n")+"\n")
		}
		return strings.TrimSuffix(block, m[3]+"```\n") + strings.Join(parts, "...\n") + "```\n"
	})
	if *update {
		if err := os.WriteFile(readme, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != want {
		t.Errorf("%s\ntry: go test ./cmd/opscope -update", firstDifference(text, want))
	}
}

// TestReadmeCommands proves that the first two commands of the README are the ones
// that matter, and that the first one works as it stands.
func TestReadmeCommands(t *testing.T) {
	commands := regexp.MustCompile(`(?m)^go (run|test) .*$`).FindAllString(string(readFile(t, readme)), -1)
	if len(commands) < 2 || commands[1] != "go test -timeout 30m ./..." {
		t.Fatalf("got %v", commands)
	}
	words := strings.Fields(commands[0])
	if len(words) < 4 || words[2] != "./cmd/opscope" {
		t.Fatalf("the first command is %q", commands[0])
	}
	t.Chdir("../..")
	if out := good(t, words[3:]...); !strings.Contains(out, "VIEW_UPDATE 0x0F") {
		t.Errorf("%s prints\n%s", commands[0], out)
	}
}

// TestReadmeExamples runs the commands of the README that read a capture of this
// repository.
func TestReadmeExamples(t *testing.T) {
	text := string(readFile(t, readme))
	likeRepository(t)
	run := 0
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(block[1]) {
			if strings.Contains(line, " pcaps/") {
				runExample(t, line)
				run++
			}
		}
	}
	if run < 5 {
		t.Errorf("%d commands, want 5 or more", run)
	}
}

// TestReadmeIsComplete proves that the README knows each flag, key and exit code.
func TestReadmeIsComplete(t *testing.T) {
	text := string(readFile(t, readme))
	listed := func(f *pflag.Flag) {
		name := "`--" + f.Name
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, `--" + f.Name
		}
		if !strings.Contains(text, "| "+name) {
			t.Errorf("it does not list %s`", name)
		}
	}
	newDecode(streams{}).Flags().VisitAll(listed)
	newSniff(streams{}).Flags().VisitAll(listed)
	var published struct {
		Defs map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(sink.JSONSchema), &published); err != nil {
		t.Fatal(err)
	}
	for _, object := range []string{"record", "envelope", "acknowledgement", "note", "error"} {
		if len(published.Defs[object].Properties) == 0 {
			t.Errorf("the JSON Schema has no %s", object)
		}
		for key := range published.Defs[object].Properties {
			if !strings.Contains(text, "`"+key+"`") {
				t.Errorf("it does not explain the key %s of %s", key, object)
			}
		}
	}
	for _, code := range []int{exitDone, exitCheck, exitUsage, exitInput, exitLive, exitInterrupt} {
		if !strings.Contains(text, fmt.Sprintf("\n| %d | ", code)) {
			t.Errorf("it does not explain the exit code %d", code)
		}
	}
}

// readmeYAML returns the YAML in the README that begins with a key.
func readmeYAML(t *testing.T, key string) []byte {
	t.Helper()
	_, block, ok := strings.Cut(string(readFile(t, readme)), "```yaml\n"+key)
	block, _, _ = strings.Cut(block, "```")
	if !ok {
		t.Fatalf("the README has no YAML with %s", key)
	}
	return []byte(key + block)
}

// TestReadmePresets selects with the presets that the README gives as an example.
func TestReadmePresets(t *testing.T) {
	profile := writeTemp(t, "profile.yaml", readmeYAML(t, "presets:"))
	for preset, file := range map[string]string{"trouble": "wulfram/lossy", "chat": "mmo/chat-attack"} {
		file = "../../pcaps/" + file + ".pcapng"
		if got, all := good(t, "decode", "--profile", profile, "--preset", preset, file), good(t, "decode", file); got == "" || len(got) >= len(all) {
			t.Errorf("%s shows %d of %d bytes", preset, len(got), len(all))
		}
	}
}

// TestReadmeOverlay decodes with the layout that the README gives as an example.
func TestReadmeOverlay(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/retarget.yaml", readmeYAML(t, "protocol:"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := good(t, "decode", "-T", "json", "--schema", dir, sessionCapture); !strings.Contains(out, `"target":175`) {
		t.Error("the layout decodes nothing")
	}
}
