package sink

import (
	"encoding/json"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzEscape: neither output holds anything that a terminal obeys or hides, and
// JSON reads back to what was written.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "\x1b[2J", "\x9b", "\u009b\u202e\u2066\u200b", "\xff\xc3\x28", "日本 😀", "a\"b\\c", "\U000e0001"} {
		f.Add(s, 8)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		text := appendEscaped(nil, s)
		quoted := appendString(nil, []byte(s))
		for _, out := range [][]byte{text, quoted} {
			if !utf8.Valid(out) {
				t.Errorf("%q is no UTF-8", out)
			}
			for _, r := range string(out) {
				if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
					t.Errorf("%U in %q", r, out)
				}
			}
		}
		var back string
		if err := json.Unmarshal(quoted, &back); err != nil {
			t.Fatalf("%v in %s", err, quoted)
		}
		if want := string([]rune(s)); back != want {
			t.Errorf("got %q, want %q", back, want)
		}
		limit = limit & 63
		short, n, used := appendEscapedUpTo(nil, s, limit)
		if columns(short) != used || used > limit || n > len(s) {
			t.Errorf("%q takes not %d of %d columns", short, used, limit)
		}
		if got, left := cut(text, 0, limit+1); columns(got) != left || left > limit+1 {
			t.Errorf("%q takes not %d of %d columns", got, left, limit+1)
		}
	})
}
