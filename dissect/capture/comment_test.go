package capture

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"opscope/dissect"
)

// TestWriterKeepsResolution: times, snap length, link type and name come back as they were.
func TestWriterKeepsResolution(t *testing.T) {
	for _, c := range []struct {
		lacks, digits int
		at, want      time.Time
	}{
		{0, 9, time.Unix(1, 123456789), time.Unix(1, 123456789)},
		{3, 6, time.Unix(1<<33, 123456789), time.Unix(1<<33, 123456000)},
		{9, 0, time.Unix(7, 999999999), time.Unix(7, 0)},
	} {
		var file bytes.Buffer
		w, err := NewWriter(&file, "test")
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{
			w.Interface(Interface{Name: "eth1", Link: 276, SnapLen: 96, Lacks: c.lacks}, ""),
			w.Packet(&dissect.Packet{Data: []byte("abcde"), Length: 70, Time: c.at}, "one", "", "two"),
			w.Flush(),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Contains(file.Bytes(), []byte("\x01\x00\x03\x00one\x00\x01\x00\x03\x00two\x00\x00\x00\x00\x00")) {
			t.Errorf("no two comments in % x", file.Bytes())
		}
		f, err := OpenReader("test", &file)
		if err != nil {
			t.Fatal(err)
		}
		var p dissect.Packet
		if err := f.Next(&p); err != nil {
			t.Fatal(err)
		}
		if !p.Time.Equal(c.want) || p.Digits != c.digits || string(p.Data) != "abcde" || p.Length != 70 || p.Link != 276 {
			t.Errorf("lacking %d digits: got %+v, want time %v and %d digits", c.lacks, p, c.want, c.digits)
		}
		if got, want := f.Interfaces()[0], (Interface{"eth1", 276, 96, c.lacks}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// TestWriterCutsComments: an option holds 65,535 bytes, and no character is cut.
func TestWriterCutsComments(t *testing.T) {
	got := short(strings.Repeat("ä", 40_000))
	if len(got) > 65535 || len(got) < 65530 || !utf8.ValidString(got) || !strings.HasSuffix(got, "ä…") {
		t.Errorf("%d bytes ending in %q", len(got), got[len(got)-8:])
	}
}
