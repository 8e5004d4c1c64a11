package main

import (
	"encoding/xml"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestPictures proves that the pictures of the README say what the tool says today;
// .ci/pictures/render renders them anew.
func TestPictures(t *testing.T) {
	list := strings.TrimSpace(string(readFile(t, "../../.ci/pictures/list")))
	t.Chdir("../..")
	t.Setenv("TZ", "UTC")
	for line := range strings.Lines(list) {
		words := strings.Fields(line)
		name, parts := words[0], strings.Split(words[1], ";")
		out := strings.Split(good(t, strings.Fields(strings.Replace(strings.Join(words[2:], " "), "--color always", "--color never", 1))...), "\n")
		var want []string
		for _, p := range parts {
			var from, to int
			if _, err := fmt.Sscanf(p, "%d,%dp", &from, &to); err != nil || from < 1 || to > len(out) {
				t.Fatalf("%s: no lines %s", name, p)
			}
			want = append(want, out[from-1:to]...)
		}
		file, err := os.ReadFile("testdata/pictures/" + name + ".svg")
		if err != nil {
			t.Fatal(err)
		}
		var svg struct {
			Lines []struct {
				Spans []string `xml:"tspan"`
			} `xml:"g>text"`
		}
		if err := xml.Unmarshal(file, &svg); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range svg.Lines {
			got = append(got, strings.Join(l.Spans, ""))
		}
		if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); strings.TrimSpace(g) != strings.TrimSpace(w) {
			t.Errorf("%s: %s\ntry: .ci/pictures/render", name, firstDifference(g, w))
		}
		if readme := string(readFile(t, "README.md")); !strings.Contains(readme, "testdata/pictures/"+name+".svg") {
			t.Errorf("the README does not show %s", name)
		}
	}
}
