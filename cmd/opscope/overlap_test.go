package main

import (
	"bytes"
	"context"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// many returns one capture of all those here, one behind the other, so many times. The last of
// them is cut. What comes again is no copy of a packet: --no-dedup. Since time goes back again
// and again, hardly anything is shown before the end without --hold 0s.
func many(t *testing.T, times int) string {
	t.Helper()
	files, err := filepath.Glob("../../pcaps/*/*.pcapng")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	var all []byte
	for _, name := range files {
		all = append(all, readFile(t, name)...)
	}
	all = bytes.Repeat(all, times)
	return writeTemp(t, "many.pcapng", all[:len(all)-5])
}

// needCores has a test of what happens on several cores do so where there is one.
func needCores(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		runtime.GOMAXPROCS(2)
		t.Cleanup(func() { runtime.GOMAXPROCS(1) })
	}
}

// TestOverlap reads one file on one core and on several, and wants the same of both, in the
// same order where both streams go to one place.
func TestOverlap(t *testing.T) {
	needCores(t)
	for name, file := range map[string]string{"few records": "../../pcaps/wulfram/lossy.pcapng", "many": many(t, 1)} {
		for _, args := range []string{
			"decode -T json", "decode -T json --raw --summary -z acks -z flows", "decode -T json --hold 0s --show-secrets",
			"decode -T json -Y dir==c2s --before 2 --after 1", "decode -T json -c 2000 --after 3", "decode -T json -q",
			"decode -T json --mask-personal --limit secrets=1 --limit held-bytes=20000",
		} {
			var texts [2]string
			var codes [2]int
			for i, jobs := range []string{"1", "0"} {
				var both bytes.Buffer
				codes[i] = run(t.Context(), append(strings.Fields(args), file, "--no-dedup", "-j", jobs), streams{strings.NewReader(""), &both, &both})
				texts[i] = both.String()
			}
			if codes[0] != codes[1] || codes[0] == exitUsage || texts[0] != texts[1] {
				t.Errorf("%s, %s: exit codes %v; %s", args, name, codes, firstDifference(texts[1], texts[0]))
			}
		}
	}
}

// TestOverlapInterrupted interrupts a run whose records are written on another core: it
// ends, quietly, with a whole line, and what it had printed by then is how the whole output
// begins.
func TestOverlapInterrupted(t *testing.T) {
	needCores(t)
	args := []string{"decode", "-T", "json", "--lenient", "--no-dedup", "--hold", "0s", many(t, 4)}
	all := opscope(t, args...)
	ctx, stop := context.WithCancelCause(t.Context())
	out := &impatient{after: 200_000, stop: stop}
	var messages bytes.Buffer
	if code := run(ctx, args, streams{strings.NewReader(""), out, &messages}); code != exitDone || messages.Len() > 0 {
		t.Errorf("exit code %d, %q", code, messages.String())
	}
	got := out.String()
	if len(got) >= len(all.out) || !strings.HasSuffix(got, "}\n") || got[:out.after] != all.out[:out.after] {
		t.Errorf("%d of %d bytes: %s", len(got), len(all.out), firstDifference(got, all.out))
	}
}

// TestOverlapOutputFull fills the disk that the output goes to: the run ends before the
// damage at the end of the file, and says why once.
func TestOverlapOutputFull(t *testing.T) {
	needCores(t)
	file := many(t, 4)
	for _, room := range []full{0, 100, 200_000, 1_000_000} {
		var messages bytes.Buffer
		code := run(t.Context(), []string{"decode", "-T", "json", "--summary=text", "--no-dedup", "--hold", "0s", file}, streams{strings.NewReader(""), &room, &messages})
		if want := "opscope: output: " + errFull.Error() + "\n"; code != exitInput || messages.String() != want {
			t.Errorf("exit code %d, %q, want %d, %q", code, messages.String(), exitInput, want)
		}
	}
}
