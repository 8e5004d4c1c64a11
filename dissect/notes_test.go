package dissect

import (
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
