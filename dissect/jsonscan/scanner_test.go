package jsonscan

import (
	"encoding/json"
	"strings"
	"testing"
)

// values are JSON, and what has none of its escapes.
var values = []string{
	`null`, `true`, `false`, `0`, `-1`, `12.5e+3`, `""`, `"plain"`, `"a \"quoted\" \\ \/ \b\f\n\r\t word"`, `"\u0041\u00e9\ud83d\ude00"`, `"é and 😀"`,
	`{}`, `[]`, `{"a":1,"b":[true,{"c":null}],"d e":"f"}`, ` [ 1 , "two" , [ ] ] `,
}

// TestText reads strings as encoding/json does.
func TestText(t *testing.T) {
	for _, value := range values {
		if value[0] != '"' {
			continue
		}
		var want string
		if err := json.Unmarshal([]byte(value), &want); err != nil {
			t.Fatal(err)
		}
		var s Scanner
		s.Reset([]byte(value))
		got := string(s.Text())
		if s.End(); got != want || s.Failed() {
			t.Errorf("%s: got %q, want %q", value, got, want)
		}
	}
}

// TestSkip passes over a value, to its end and no further.
func TestSkip(t *testing.T) {
	for _, value := range values {
		var s Scanner
		s.Reset([]byte("[" + value + `,"next"]`))
		for i := range s.Elements() {
			if i == 0 {
				s.Skip()
			} else if got := string(s.Text()); got != "next" {
				t.Errorf("after %s: got %q", value, got)
			}
		}
		if s.End(); s.Failed() {
			t.Errorf("%s is not passed over", value)
		}
	}
}

// TestLiteral returns the text of what is no string, object or array, as it is.
func TestLiteral(t *testing.T) {
	for _, value := range values {
		var s Scanner
		s.Reset([]byte(value))
		got := string(s.Literal())
		if literal := !strings.ContainsAny(value, `"{[`); literal != !s.Failed() || literal && got != value {
			t.Errorf("%s: got %q", value, got)
		}
	}
}

// TestFailure names the place, what was wanted there, and what there was.
func TestFailure(t *testing.T) {
	for _, test := range []struct {
		text      string
		offset    int
		want, got string
	}{
		{`{"a":`, 5, "a number", "the end"},
		{`{"a" 1}`, 5, `":"`, `"1"`},
		{`[1 2]`, 3, `"," or "]"`, `"2"`},
		{`"cut`, 4, "the end of a string", "the end"},
		{"\"a\tb\"", 2, "an escape instead of a control byte", `"\t"`},
		{`truth`, 0, "a number", `"t"`},
		{`1 2`, 2, "the end of the line", `"2"`},
	} {
		var s Scanner
		s.Reset([]byte(test.text))
		s.Skip()
		s.End()
		if offset, want, got := s.Failure(); !s.Failed() || offset != test.offset || want != test.want || got != test.got {
			t.Errorf("%q: got %d, %q, %q, want %d, %q, %q", test.text, offset, want, got, test.offset, test.want, test.got)
		}
	}
}

// TestNothingIsAllocated reads a line without an allocation.
func TestNothingIsAllocated(t *testing.T) {
	line := []byte("[" + strings.Join(values, ",") + "]")
	var s Scanner
	read := func() {
		s.Reset(line)
		s.Skip()
	}
	if n := testing.AllocsPerRun(100, read); n != 0 || s.Failed() {
		t.Errorf("got %v allocations", n)
	}
}
