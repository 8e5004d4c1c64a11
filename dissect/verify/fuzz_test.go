package verify

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"opscope/dissect"
	"opscope/dissect/filter"
	"opscope/schema"
)

// FuzzLoadSpec wants of any text a spec, or an error with a place in it.
func FuzzLoadSpec(f *testing.F) {
	files, err := filepath.Glob("../../testdata/verify/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("checks: [{name: x, each: [], answer: {}, within: null}]")
	f.Add("checks: &a [*a]")
	f.Add("rules: {? [a] : b}")
	p, err := schema.Builtin("wulfram")
	if err != nil {
		f.Fatal(err)
	}
	language := filter.NewLanguage([]*schema.Protocol{p}, dissect.Privacy{})
	f.Fuzz(func(t *testing.T, text string) {
		var settings Settings
		s, err := LoadSpec("spec.yaml", []byte(text), language, Protocols(), &settings)
		if err == nil && s == nil {
			t.Fatal("neither a spec nor an error")
		}
		if err != nil && !strings.HasPrefix(err.Error(), "spec.yaml:") {
			t.Errorf("got %v, want a place", err)
		}
	})
}
