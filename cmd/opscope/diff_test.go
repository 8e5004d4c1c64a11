package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const loginCapture = "../../pcaps/wulfram/login.pcapng"

// differences runs diff and returns what it finds.
func differences(t *testing.T, args ...string) (list []struct {
	Lane, Kind string
	A, B       *struct {
		Message string
		Packets []int
	}
	Fields []struct{ Path, A, B string }
}, code int) {
	t.Helper()
	r := opscope(t, append([]string{"diff", "-T", "json"}, args...)...)
	var found struct {
		Same        bool
		Differences json.RawMessage
	}
	err := json.Unmarshal([]byte(r.out), &found)
	if err == nil {
		err = json.Unmarshal(found.Differences, &list)
	}
	if err != nil || found.Same != (len(list) == 0) {
		t.Fatalf("exit code %d: %v\n%s%s", r.code, err, r.out, r.err)
	}
	return list, r.code
}

// TestDiffSame compares a session with itself, and with itself over other links.
func TestDiffSame(t *testing.T) {
	for _, other := range []string{"login", "vlan", "cooked", "cooked2"} {
		if out := good(t, "diff", loginCapture, "../../pcaps/wulfram/"+other+".pcapng"); out != "" {
			t.Errorf("%s:\n%s", other, out)
		}
	}
}

// TestDiffPlanted changes one field of one record, and wants to see that and nothing else.
func TestDiffPlanted(t *testing.T) {
	for name, test := range map[string]struct {
		capture, was, is string
		message, path    string
	}{
		"a greeting":          {loginCapture, "Welcome.", "Welcome!", "MOTD", "text"},
		"a name of a warning": {"../../pcaps/netrek/tcp.pcapng", "Locking onto Earth", "Locking onto Mars!", "SP_WARNING", "mesg"},
		"an echo":             {"../../pcaps/mmo/echo.pcapng", "\x0c\x00\x01\x00hello\x00\xff\x7f", "\x0c\x00\x01\x00hellO\x00\xff\x7f", "EchoReq", "payload"},
	} {
		t.Run(name, func(t *testing.T) {
			data := readFile(t, test.capture)
			if bytes.Count(data, []byte(test.was)) == 0 {
				t.Fatal("it is not there")
			}
			changed := writeTemp(t, "changed.pcapng", bytes.Replace(data, []byte(test.was), []byte(test.is), 1))
			list, code := differences(t, test.capture, changed)
			if code != exitCheck || len(list) != 1 || list[0].Kind != "changed" || list[0].A.Message != test.message ||
				len(list[0].Fields) != 1 || list[0].Fields[0].Path != test.path || len(list[0].A.Packets) == 0 {
				t.Errorf("exit code %d, got %+v", code, list)
			}
			if list, code := differences(t, "--ignore", test.message+"."+test.path, test.capture, changed); code != exitDone || len(list) != 0 {
				t.Errorf("with what changed ignored: exit code %d, got %+v", code, list)
			}
		})
	}
}

// TestDiffMissing compares with a capture that ends sooner.
func TestDiffMissing(t *testing.T) {
	list, code := differences(t, "../../pcaps/wulfram/login.pcapng", "../../pcaps/wulfram/original.pcapng")
	kinds := map[string]int{}
	for _, d := range list {
		kinds[d.Kind]++
	}
	if code != exitCheck || kinds["missing"] == 0 || kinds["added"] == 0 || kinds["changed"] == 0 {
		t.Errorf("exit code %d, got %v", code, kinds)
	}
}

// TestDiffGolden keeps a transcript, compares with it, and finds what was changed in it.
func TestDiffGolden(t *testing.T) {
	golden := filepath.Join(t.TempDir(), "login.txt")
	good(t, "diff", "--golden", golden, "--update", loginCapture)
	good(t, "diff", "--golden", golden, loginCapture)
	text := string(readFile(t, golden))
	if !strings.Contains(text, "== session 1 wulfram c2s tcp\nHELLO\tsubcommand=0\tversion=20105\n") || strings.Contains(text, "timestamp") {
		t.Errorf("got\n%s", text)
	}
	if err := os.WriteFile(golden, []byte(strings.Replace(text, "version=20105", "version=20104", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	r := opscope(t, "diff", "--golden", golden, loginCapture)
	if want := "! HELLO |  (packet 6)\n-   version=20104\n+   version=20105\n"; r.code != exitCheck || !strings.HasSuffix(r.out, want) {
		t.Errorf("exit code %d\n%swant %s", r.code, r.out, want)
	}
}

// TestDiffExitCodes proves that what cannot be compared is not the same.
func TestDiffExitCodes(t *testing.T) {
	data := readFile(t, loginCapture)
	cut := writeTemp(t, "cut.pcapng", data[:len(data)-10])
	empty := writeTemp(t, "empty.pcapng", nil)
	for name, test := range map[string]struct {
		args []string
		code int
	}{
		"an empty one":           {[]string{loginCapture, empty}, exitInput},
		"two empty ones":         {[]string{"--lenient", empty, empty}, exitInput},
		"one capture":            {[]string{loginCapture}, exitUsage},
		"a golden and two":       {[]string{"--golden", "x", loginCapture, loginCapture}, exitUsage},
		"an update of nothing":   {[]string{"--update", loginCapture, loginCapture}, exitUsage},
		"a pattern that is none": {[]string{"--ignore", "[", loginCapture, loginCapture}, exitUsage},
		"no such file":           {[]string{loginCapture, "no.pcapng"}, exitInput},
		"no such golden":         {[]string{"--golden", filepath.Join(t.TempDir(), "no"), loginCapture}, exitInput},
		"a damaged one":          {[]string{loginCapture, cut}, exitInput},
	} {
		if r := opscope(t, append([]string{"diff"}, test.args...)...); r.code != test.code {
			t.Errorf("%s: exit code %d, want %d\n%s%s", name, r.code, test.code, r.out, r.err)
		} else if slices.Contains(test.args, empty) && r.out != "" {
			t.Errorf("%s: differs from nothing by\n%s", name, r.out)
		}
	}
}

// TestDiffMasks proves that no transcript has a token.
func TestDiffMasks(t *testing.T) {
	golden := filepath.Join(t.TempDir(), "enter.txt")
	good(t, "diff", "--golden", golden, "--update", "../../pcaps/mmo/enter.pcapng")
	if text := readFile(t, golden); bytes.Contains(text, []byte("eyJ")) || !bytes.Contains(text, []byte("enter_token=\"***\"")) {
		t.Errorf("got\n%s", text)
	}
}
