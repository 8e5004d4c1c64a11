package main

import (
	"bytes"
	"image/png"
	"path/filepath"
	"strings"
	"testing"
)

// plotted draws a capture.
func plotted(t *testing.T, capture, ext string, flags ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "out"+ext)
	if out := good(t, append([]string{"plot", capture, "-o", name}, flags...)...); capture == lossyCapture &&
		!strings.HasSuffix(out, ": records: 203, streams: 11, records lost: 6, not captured: 1\n") {
		t.Errorf("it says %q", out)
	}
	return string(readFile(t, name))
}

// TestPlotShowsLosses: the records that were never acknowledged, by the golden file:
// VIEWPOINT_INFO 2 and 3, DROP_REQUEST and TANK_RESEND_REQUEST 1 and 2; and the one between
// COMM_MESSAGE_REQUEST 2 and 4 that no packet has. The first messages of the server share a
// sequence, from 1 to 9.
func TestPlotShowsLosses(t *testing.T) {
	svg := plotted(t, lossyCapture, ".svg")
	for text, want := range map[string]int{
		">1 lost<": 2, ">2 lost<": 3, ">3 lost<": 1, " lost<": 6, ">3 not captured<": 1, " not captured<": 1,
		">SHIP_STATUS +4 1-9   <": 1, ">VIEWPOINT_INFO 1-3   <": 1, ">lossy.pcapng<": 1,
	} {
		if got := strings.Count(svg, text); got != want {
			t.Errorf("%q stands there %d times, want %d", text, got, want)
		}
	}
	if again := plotted(t, lossyCapture, ".svg"); again != svg {
		t.Error("another run draws another picture")
	}
}

// TestPlotFormats: an image of the right size, and a page that needs nothing else.
func TestPlotFormats(t *testing.T) {
	if c, err := png.DecodeConfig(strings.NewReader(plotted(t, lossyCapture, ".png"))); err != nil || c.Width != 2200 {
		t.Errorf("got %+v, %v", c, err)
	}
	page := plotted(t, lossyCapture, ".html")
	if !strings.Contains(page, "<tr><td>VIEWPOINT_INFO</td><td>5</td><td>2</td><td>1</td><td class=\"lost\">2</td>") {
		t.Errorf("no row of VIEWPOINT_INFO: 5 sent, 2 again, 1 acknowledged, 2 lost")
	}
	for _, link := range []string{"src=", "@import", "<link", "<script"} {
		if strings.Contains(page, link) {
			t.Errorf("the page has %s", link)
		}
	}
}

// TestPlotHidesSecrets: no value is in a picture.
func TestPlotHidesSecrets(t *testing.T) {
	for _, file := range []string{sessionCapture, "../../pcaps/mmo/enter.pcapng"} {
		page := plotted(t, file, ".html")
		for _, s := range hiddenIn(t, file) {
			if strings.Contains(page, s) {
				t.Errorf("%s: it shows %q", file, s)
			}
		}
	}
}

// TestPlotRefuses: what cannot be drawn.
func TestPlotRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{lossyCapture}, exitUsage},
		{[]string{lossyCapture, "-o", "x.pdf"}, exitUsage},
		{[]string{lossyCapture, lossyCapture, "-o", "x.svg"}, exitUsage},
		{[]string{lossyCapture, "-o", "/no/such/dir/x.svg"}, exitInput},
		{[]string{lossyCapture, "--session", "9", "-o", filepath.Join(t.TempDir(), "x.svg")}, exitUsage},
		{[]string{lossyCapture, "--session", "-1", "-o", filepath.Join(t.TempDir(), "x.svg")}, exitUsage},
	} {
		if got := opscope(t, append([]string{"plot"}, c.args...)...); got.code != c.code || got.err == "" {
			t.Errorf("%v: code %d, want %d; %q", c.args, got.code, c.code, got.err)
		}
	}
	if bytes.Contains([]byte(plotted(t, lossyCapture, ".svg", "--session", "1")), []byte("session 2")) {
		t.Error("it draws another session")
	}
}
