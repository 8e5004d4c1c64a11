package schema

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRefusesWrongFiles loads every file of testdata/broken/schema. Its first
// line says which error it must give: "# LINE:COL: message".
func TestRefusesWrongFiles(t *testing.T) {
	files, err := filepath.Glob("../testdata/broken/schema/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("got %d wrong schema files, want at least 30 (%v)", len(files), err)
	}
	head := regexp.MustCompile(`^# (\d+:\d+: .*)`)
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			m := head.FindStringSubmatch(string(data))
			if m == nil {
				t.Fatal("no expected error in the first line")
			}
			want := "schema " + filepath.Base(name) + ":" + m[1]
			_, err = LoadFile(os.DirFS(filepath.Dir(name)), filepath.Base(name))
			if err == nil {
				t.Fatalf("got no error, want %s", want)
			}
			if err.Error() != want {
				t.Errorf("got  %s\nwant %s", err, want)
			}
		})
	}
}

// shared returns the path of a file that is not part of the project, and skips
// the test where it is absent.
func shared(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join("../../shared", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not beside this checkout", name)
	}
	return path
}

func TestTheNotationByExampleLoads(t *testing.T) {
	path := shared(t, "notation.yaml")
	all, err := LoadFile(os.DirFS(filepath.Dir(path)), filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
	}
	if got, want := strings.Join(names, " "), "wulfram netrek dplay lotr2 mmo"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestBuiltinProtocolsLoad(t *testing.T) {
	for _, name := range BuiltinNames() {
		if _, err := Builtin(name); err != nil {
			t.Error(err)
		}
	}
}

// TestHeadIsWhatTheProtocolSays compares what is read of a built-in protocol before it is
// loaded with what it is.
func TestHeadIsWhatTheProtocolSays(t *testing.T) {
	for _, name := range BuiltinNames() {
		head, err := BuiltinHead(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		if want := p.Head(); head.Name != name || head.Over != want.Over || !slices.Equal(head.Ports, want.Ports) {
			t.Errorf("got %+v, want %+v", head, want)
		}
	}
}
