package dissect

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestNoteCodesAreSortedWords(t *testing.T) {
	if !slices.IsSortedFunc(NoteCodes, func(a, b NoteCode) int { return strings.Compare(a.Code, b.Code) }) {
		t.Error("the codes are not sorted: SeverityOf cannot find them")
	}
	for i, n := range NoteCodes {
		if strings.Trim(n.Code, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || n.Text == "" {
			t.Errorf("%q is no code, or has no text", n.Code)
		}
		if i > 0 && NoteCodes[i-1].Code == n.Code {
			t.Errorf("%s is listed twice", n.Code)
		}
		if got := SeverityOf(n.Code); got != n.Severity {
			t.Errorf("%s: got %v, want %v", n.Code, got, n.Severity)
		}
	}
	if got := SeverityOf("a_code_of_somebody"); got != Notice {
		t.Errorf("got %v, want note", got)
	}
}

// Each code that a protocol's source gives to Note is in the list.
func TestNoteCodesAreComplete(t *testing.T) {
	given := regexp.MustCompile(`\.[nN]ote\("([a-z0-9_]+)"`)
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range given.FindAllSubmatch(b, -1) {
			if !slices.ContainsFunc(NoteCodes, func(n NoteCode) bool { return n.Code == string(m[1]) }) {
				t.Errorf("%s: %s is not in the list", path, m[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
