package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// manyCaptures returns captures of all protocols and damaged ones among them, a large one in
// front: those behind it are done first.
func manyCaptures(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../pcaps/*/*.pcapng")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	slices.SortFunc(files, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) }) // all protocols mixed
	files = files[:24]
	if raceDetector || testing.Short() {
		files = files[:8]
	}
	whole := readFile(t, sessionCapture)
	for i, damaged := range [][]byte{whole[:len(whole)/2], whole[:30], {}, gzipped(t, whole)[:2000], []byte("no capture at all\n")} {
		at := i * len(files) / 5
		files = slices.Insert(files, at, writeTemp(t, "damaged.pcapng", damaged))
	}
	return append([]string{largest(t)}, files...)
}

// largest returns the largest capture in pcaps/.
func largest(t *testing.T) (name string) {
	t.Helper()
	files, _ := filepath.Glob("../../pcaps/*/*.pcapng")
	var most int64
	for _, f := range files {
		about, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		if about.Size() > most {
			name, most = f, about.Size()
		}
	}
	return name
}

// TestJobs reads many files, one at a time and several, and wants the same of both: what
// stands on each stream, and the exit code.
func TestJobs(t *testing.T) {
	many := manyCaptures(t)
	records := filepath.Join(t.TempDir(), "records.ndjson")
	if err := os.WriteFile(records, []byte(good(t, "decode", "-T", "json", sessionCapture)), 0o644); err != nil {
		t.Fatal(err)
	}
	missing := []string{sessionCapture, "no-such-file", "../../pcaps/mmo/nat.pcapng", "main.go", sessionCapture}
	mixed := []string{sessionCapture, records, "../../pcaps/mmo/nat.pcapng", sessionCapture}
	for i, c := range []struct {
		args  string
		files []string
		code  int
	}{
		{"decode", many, exitInput},
		{"decode --lenient --summary", many, exitDone},
		{"decode -T json --summary -z flows -z opcodes -z acks -z tables", many, exitInput},
		{"decode -q -z opcodes", many, exitInput},
		{"decode -q -T json --summary=json", many, exitInput},
		{"decode -v -x -t dd", many, exitInput},
		{"decode -t r", mixed, exitDone},
		{"decode -T csv", many, exitInput},
		{"decode -T fields -e message -e size", many, exitInput},
		{"decode -T tsv -e kind --only LOGIN", many, exitInput},
		{"decode -T table -c 1000", many, exitInput},
		{"decode -Y error --before 2 --after 1", many, exitInput},
		{"decode -Y error -T json", many, exitInput},
		{"decode -c 1000", many, exitInput},
		{"decode --tables", many, exitInput},
		{"decode --tables", mixed, exitUsage},
		{"decode --limit flows=1 --limit held-records=3 --summary", many, exitInput},
		{"decode", missing, exitInput},
		{"flows", many, exitInput},
		{"flows -T json", missing, exitInput},
		{"acks", many, exitInput},
		{"opcodes -Y size>20", many, exitInput},
		{"tables", many, exitInput},
		{"tables -T json", missing, exitInput},
		{"verify", many, exitInput},
		{"verify -T json --spec ../../testdata/verify/wulfram.yaml --waive acknowledged:0x2b=known", many, exitInput},
		{"verify", missing, exitInput},
		{"verify", mixed, exitUsage},
	} {
		if raceDetector && i%4 != 1 && i != 2 { // it takes long, and one of each kind tells
			continue
		}
		t.Run(c.args, func(t *testing.T) {
			args := append(strings.Fields(c.args), c.files...)
			want := opscope(t, append(args, "-j", "1")...)
			if want.code != c.code {
				t.Errorf("one at a time: exit code %d, want %d\n%s", want.code, c.code, want.err)
			}
			got := opscope(t, append(args, "-j", "3")...)
			if got.code != want.code {
				t.Errorf("exit code %d, want %d", got.code, want.code)
			}
			if got.out != want.out {
				t.Errorf("standard output: %s", firstDifference(got.out, want.out))
			}
			if got.err != want.err {
				t.Errorf("standard error: %s", firstDifference(got.err, want.err))
			}
		})
	}
}

// TestJobsTogether wants both streams in the same order, too, where they go to one place.
func TestJobsTogether(t *testing.T) {
	files := append(manyCaptures(t), "no-such-file", sessionCapture)
	var texts [2]string
	for i, jobs := range []string{"1", "4"} {
		var both bytes.Buffer
		run(t.Context(), append([]string{"decode", "-T", "json", "--summary=text", "-j", jobs}, files...), streams{strings.NewReader(""), &both, &both})
		texts[i] = both.String()
	}
	if texts[0] != texts[1] {
		t.Error(firstDifference(texts[1], texts[0]))
	}
}

// impatient is a buffer that interrupts the run once there is so much in it.
type impatient struct {
	bytes.Buffer
	after int
	stop  context.CancelCauseFunc
}

func (w *impatient) Write(b []byte) (int, error) {
	n, err := w.Buffer.Write(b)
	if w.Len() > w.after {
		w.stop(errInterrupted)
	}
	return n, err
}

// TestJobsInterrupted interrupts a run of several files: it ends, quietly, and what it has
// printed is how the whole output begins.
func TestJobsInterrupted(t *testing.T) {
	args := append([]string{"decode", "-T", "json", "-j", "3", "--lenient"}, manyCaptures(t)...)
	all := opscope(t, args...)
	ctx, stop := context.WithCancelCause(t.Context())
	out := &impatient{after: 200_000, stop: stop}
	var messages bytes.Buffer
	if code := run(ctx, args, streams{strings.NewReader(""), out, &messages}); code != exitDone {
		t.Errorf("exit code %d, want %d\n%s", code, exitDone, messages.String())
	}
	if got := out.String(); !strings.HasPrefix(all.out, got) || len(got) == len(all.out) {
		t.Errorf("%d of %d bytes: %s", len(got), len(all.out), firstDifference(got, all.out))
	}
}

// full is a disk that is full after so many bytes.
type full int

var errFull = errors.New("no space left on device")

func (f *full) Write(b []byte) (int, error) {
	if *f -= full(len(b)); *f < 0 {
		return 0, errFull
	}
	return len(b), nil
}

// TestJobsOutputFull fills the disk that the output goes to: the run ends, and says why once.
func TestJobsOutputFull(t *testing.T) {
	for _, jobs := range []string{"1", "3"} {
		disk := full(200_000)
		var messages bytes.Buffer
		args := append([]string{"decode", "-T", "json", "-j", jobs, "--lenient"}, "../../pcaps/wulfram", "../../pcaps/mmo", "../../pcaps/netrek")
		code := run(t.Context(), args, streams{strings.NewReader(""), &disk, &messages})
		if want := "opscope: output: " + errFull.Error() + "\n"; code != exitInput || messages.String() != want {
			t.Errorf("-j %s: exit code %d, %q, want %d, %q", jobs, code, messages.String(), exitInput, want)
		}
	}
}
