package dissect

import (
	"bytes"
	"testing"
)

// TestMend is the example of RFC 1624, section 4: from 0x5555 to 0x3285, a checksum of
// 0xDD2F becomes 0x0000. A checksum that was wrong stays wrong by as much.
func TestMend(t *testing.T) {
	for _, c := range []struct {
		name              string
		at                int
		old, changed, sum string
	}{
		{"the RFC", 4, "\x55\x55\x00\x00\xdd\x2f", "\x32\x85\x00\x00\xdd\x2f", "\x00\x00"},
		{"UDP has no sum of zero", 6, "\x55\x55\x00\x00\x00\x00\xdd\x2f", "\x32\x85\x00\x00\x00\x00\xdd\x2f", "\xff\xff"},
		{"UDP without one", 6, "\x55\x55\x00\x00\x00\x00\x00\x00", "\x32\x85\x00\x00\x00\x00\x00\x00", "\x00\x00"},
		// An odd byte is the high half of a word: 0x4100 becomes 0x7800, 0x1000 becomes 0x1000-0x3700 = 0xd8ff.
		{"an odd byte", 4, "\x00\x00\x00\x00\x10\x00\x41", "\x00\x00\x00\x00\x10\x00\x78", "\xd8\xff"},
	} {
		m := Masking{sums: []checksum{{c.at, 0, len(c.old)}}}
		now := []byte(c.changed)
		m.mend([]byte(c.old), now)
		if got := now[c.at : c.at+2]; string(got) != c.sum {
			t.Errorf("%s: got % x, want % x", c.name, got, c.sum)
		}
	}
}

// TestFill fills bits by hand.
func TestFill(t *testing.T) {
	for _, c := range []struct {
		name           string
		fill           Fill
		data, want     string
		base, from, to int
		mark           string
	}{
		{"bytes", FillBytes, "abcdef", "abxxxf", 1, 8, 32, ""},
		{"a text and its NULs", FillText, "ab\x00\x00c", "xx\x00\x00x", 0, 0, 40, ""},
		{"bits in the middle", FillNumber, "\xff\xff\xff", "\xf0\x00\x7f", 0, 4, 17, ""},
		{"a varint", FillVarint, "\xff\x81\x01", "\xf8\xf8\x78", 0, 0, 24, ""},
		{"beyond the packet", FillBytes, "abc", "abx", 0, 16, 80, ""},
		{"in front of the payload", FillBytes, "abc", "axc", 1, -8, 8, ""},
		{"with a mark", FillBytes, "secret", "xxxxxb", 0, 0, 48, "b"},
		{"no room for a mark", FillBytes, "se", "xx", 0, 0, 16, "b"},
	} {
		data := []byte(c.data)
		c.fill.fill(data, c.base, c.from, c.to, c.mark)
		if string(data) != c.want {
			t.Errorf("%s: got %q, want %q", c.name, data, c.want)
		}
	}
	if got := []string{letters(0), letters(1), letters(23)}; got[0] != "" || got[1] != "b" || got[2] != "ba" {
		t.Errorf("letters %q", got)
	}
	if bytes.ContainsRune([]byte(markLetters), filler) {
		t.Error("a mark may look like filler")
	}
}
