package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// plant writes files into a directory, with those above it.
func plant(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// headings returns the files that a decoding was of, below a directory.
func headings(out, dir string) (list []string) {
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(line, "-- file: "); ok {
			name = strings.TrimSuffix(name, " --\n")
			if below, err := filepath.Rel(dir, name); err == nil {
				name = filepath.ToSlash(below)
			}
			list = append(list, name)
		}
	}
	return list
}

// TestDirectory reads directories: the captures in them, whatever they are called, in the
// order of their names, and nothing else.
func TestDirectory(t *testing.T) {
	pcapng, pcap := readFile(t, sessionCapture), plainSession()
	dir := t.TempDir()
	plant(t, dir, map[string][]byte{
		"b/2.pcapng": pcapng, "b/10.dat": pcap, "b/deeper/packed": gzipped(t, pcap), "a.zst": zstandard(t, pcapng), "c": pcap,
		"b/notes.txt": []byte("not a capture"), "b/empty.pcap": nil, "b/short": []byte("\x0a\x0d"), "package.json": []byte(`{"type":"record"}`),
		"b/log.gz": gzipped(t, []byte("a log")), "none/readme": []byte("nothing here"),
	})
	for name, c := range map[string]struct {
		args, want []string
		code       int
		message    string
	}{
		"a directory":              {[]string{dir}, []string{"a.zst", "b/10.dat", "b/2.pcapng", "b/deeper/packed", "c"}, exitDone, ""},
		"a directory and a file":   {[]string{filepath.Join(dir, "b"), filepath.Join(dir, "c")}, []string{"b/10.dat", "b/2.pcapng", "b/deeper/packed", "c"}, exitDone, ""},
		"a pattern":                {[]string{filepath.Join(dir, "b", "*.[dp]*[tg]")}, []string{"b/10.dat", "b/2.pcapng"}, exitDone, ""},
		"a pattern of directories": {[]string{filepath.Join(dir, "b*")}, []string{"b/10.dat", "b/2.pcapng", "b/deeper/packed"}, exitDone, ""},
		"no capture":               {[]string{filepath.Join(dir, "none"), filepath.Join(dir, "c")}, []string{"none", "c"}, exitInput, "none: no capture in this directory"},
		"no match":                 {[]string{filepath.Join(dir, "x*"), filepath.Join(dir, "c")}, []string{"x*", "c"}, exitInput, "x*: no file has such a name"},
		"a wrong pattern":          {[]string{filepath.Join(dir, "[x"), filepath.Join(dir, "c")}, []string{"[x", "c"}, exitInput, "[x: syntax error in pattern"},
	} {
		t.Run(name, func(t *testing.T) {
			r := opscope(t, append([]string{"decode"}, c.args...)...)
			if r.code != c.code || !strings.Contains(r.err, c.message) || c.message == "" && r.err != "" {
				t.Errorf("exit code %d, %q, want %d, %q", r.code, r.err, c.code, c.message)
			}
			if got := strings.Join(headings(r.out, dir), " "); got != strings.Join(c.want, " ") {
				t.Errorf("read %s, want %s", got, strings.Join(c.want, " "))
			}
		})
	}
}

// TestDirectoryOfEachCommand has the other commands read directories and patterns, as if the
// files had been named.
func TestDirectoryOfEachCommand(t *testing.T) {
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "1.pcapng"), filepath.Join(dir, "2.pcapng")}
	plant(t, dir, map[string][]byte{"1.pcapng": readFile(t, sessionCapture), "2.pcapng": readFile(t, "../../pcaps/mmo/nat.pcapng"), "x": []byte("x")})
	for _, command := range []string{"decode", "decode -T json", "flows", "opcodes", "acks", "tables", "unknown", "verify", "follow 1", "ladder 1"} {
		words := strings.Fields(command)
		want := opscope(t, append(words, files...)...)
		for _, name := range []string{dir, filepath.Join(dir, "*.pcapng")} {
			if got := opscope(t, append(words, name)...); got != want {
				t.Errorf("%s %s: exit code %d, %s, %s", command, name, got.code, got.err, firstDifference(got.out, want.out))
			}
		}
	}
	if r := opscope(t, dir); r != opscope(t, append([]string{"decode"}, files...)...) {
		t.Errorf("opscope DIR: exit code %d, %s", r.code, r.err)
	}
	if r := opscope(t, "plot", "-o", filepath.Join(dir, "x.svg"), dir); r.code != exitInput {
		t.Errorf("plot takes one file, and not a directory: exit code %d, %q", r.code, r.err)
	}
}

// TestPatternThatIsAName reads a file whose name could be a pattern.
func TestPatternThatIsAName(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string][]byte{"a[1].pcap": readFile(t, sessionCapture), "a1.pcap": nil})
	if out := good(t, "decode", filepath.Join(dir, "a[1].pcap")); out != good(t, "decode", sessionCapture) {
		t.Error("another file was read")
	}
}

// TestDirectoryOfLinks reads a directory with links: to files they are followed, to
// directories they are not, so that one above ends nothing.
func TestDirectoryOfLinks(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string][]byte{"real/1.pcap": plainSession()})
	for name, target := range map[string]string{
		"real/up": dir, "real/self": "self", "real/file": "1.pcap", "real/gone": "nowhere", "beside": "real",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	r := opscope(t, "decode", dir)
	if got := strings.Join(headings(r.out, dir), " "); got != "real/1.pcap real/file real/gone real/self" {
		t.Errorf("read %s", got)
	}
	if r.code != exitInput || !strings.Contains(r.err, "gone") || !strings.Contains(r.err, "self") {
		t.Errorf("links to nothing: exit code %d, %q", r.code, r.err)
	}
	r = opscope(t, "decode", filepath.Join(dir, "beside"))
	if got := strings.Join(headings(r.out, filepath.Join(dir, "beside")), " "); got != "1.pcap file gone self" {
		t.Errorf("of a link to a directory: read %s", got)
	}
}

// TestDirectoryUnreadable reads a directory with what nobody may read: it says so, and reads
// the others.
func TestDirectoryUnreadable(t *testing.T) {
	asOwner(t)
	dir := t.TempDir()
	plant(t, dir, map[string][]byte{"1.pcap": plainSession(), "closed/2.pcap": plainSession(), "secret.pcap": plainSession(), "9.pcap": plainSession()})
	for _, name := range []string{"closed", "secret.pcap"} {
		if err := os.Chmod(filepath.Join(dir, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "closed"), 0o755) })
	if _, err := os.ReadDir(filepath.Join(dir, "closed")); err == nil {
		t.Skip("this user, or this system, may read everything")
	}
	r := opscope(t, "decode", "-j", "1", dir) // on this thread
	if got := strings.Join(headings(r.out, dir), " "); got != "1.pcap 9.pcap closed secret.pcap" {
		t.Errorf("read %s", got)
	}
	if lines := strings.Split(strings.TrimSpace(r.err), "\n"); r.code != exitInput || len(lines) != 2 || !strings.Contains(lines[0], "closed") || !strings.Contains(lines[1], "secret.pcap") {
		t.Errorf("exit code %d, %q", r.code, r.err)
	}
}

// TestDirectoryWithPipe passes over what is no file: nobody may ever write to it.
func TestDirectoryWithPipe(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string][]byte{"1.pcap": readFile(t, sessionCapture)})
	if err := makeFIFO(filepath.Join(dir, "pipe")); err != nil {
		t.Skip(err)
	}
	if out := good(t, "decode", dir); out != good(t, "decode", sessionCapture) {
		t.Error("not the same as the one capture in it")
	}
}
