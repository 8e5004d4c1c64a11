package filter_test

import (
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"opscope/dissect"
	"opscope/dissect/filter"
	"opscope/dissect/sink"
)

// hidden collects, of two outputs of a record, what only the second shows: by path.
func hidden(masked, shown any, path string, found map[string][]string) {
	if masked == dissect.MaskText && shown != masked {
		leaves(shown, path, func(_ string, leaf any) {
			if text := strings.Trim(written(leaf), `"`); text != "" && !slices.Contains(found[path], text) {
				found[path] = append(found[path], text)
			}
		})
		return
	}
	switch m := masked.(type) {
	case map[string]any:
		if s, ok := shown.(map[string]any); ok {
			for k, v := range m {
				hidden(v, s[k], join(path, k), found)
			}
		}
	case []any:
		for i, v := range m {
			if s, ok := shown.([]any); ok && i < len(s) {
				hidden(v, s[i], path, found)
			}
		}
	}
}

// guess is an operator with what it means for a text that the output shows.
type guess struct {
	text string // # for the literal
	is   func(shown, literal string) bool
	all  bool // for a negated one: it wants a text, and none for which it is true
}

var guesses = []guess{
	{`== #`, func(s, l string) bool { return s == l }, false},
	{`!= #`, func(s, l string) bool { return s == l }, true},
	{`< #`, func(s, l string) bool { return s < l }, false},
	{`>= #`, func(s, l string) bool { return s >= l }, false},
	{`in ["~", #]`, func(s, l string) bool { return s == l || s == "~" }, false},
	{`not in [#]`, func(s, l string) bool { return s == l }, true},
	{`contains #`, strings.Contains, false},
	{`not contains #`, strings.Contains, true},
	{`startsWith #`, strings.HasPrefix, false},
	{`endsWith #`, strings.HasSuffix, false},
	{`matches #`, strings.Contains, false}, // quoted, so that each letter stands for itself
}

// free are the keys beside fields that may repeat anything, as text.
var free = []string{"notes.text", "error.want", "error.got", "text", "reason"}

// TestMaskedFilters asks of every capture with a secret after what the secret is: whole, in
// part, as hex. The answer is that of the masked output, of which nothing follows.
func TestMaskedFilters(t *testing.T) {
	list, byName := schemas(t)
	secrets, files := 0, captures(t)
	for _, privacy := range []dissect.Privacy{{}, {MaskPersonal: true}} {
		language := filter.NewLanguage(list, privacy)
		for _, file := range files {
			lines := asJSON(t, file, sink.NDJSONOptions{Privacy: privacy})
			all := asJSON(t, file, sink.NDJSONOptions{Privacy: dissect.Privacy{ShowSecrets: true}})
			found := map[string][]string{}
			objects := make([]object, len(lines))
			for i := range lines {
				objects[i] = objectOf(t, lines[i])
				hidden(parsed(t, lines[i]), parsed(t, all[i]), "", found)
			}
			if len(found) == 0 {
				continue
			}
			secrets += len(found)
			paths := append(slices.Sorted(maps.Keys(found)), free...)
			var questions []question
			for _, path := range slices.Sorted(maps.Keys(found)) {
				values := found[path]
				for _, v := range values[:min(2, len(values))] {
					questions = append(questions, asking(language, paths, path, v)...)
				}
			}
			answer(t, file, language, questions, objects, byName)
		}
	}
	if secrets < 2*len(files) {
		t.Errorf("only %d masked fields in all captures", secrets)
	}
	t.Logf("%d masked fields", secrets)
}

// asking returns questions about one masked value, at its path and wherever else it may
// be. What is refused is left out: a refusal looks at the path alone.
func asking(l *filter.Language, paths []string, path, secret string) (list []question) {
	literals := []string{secret, secret[:1], secret[:(len(secret)+1)/2], secret[len(secret)/2:], hex.EncodeToString([]byte(secret)), secret + "x"}
	for _, at := range paths {
		for _, literal := range literals {
			if _, err := strconv.ParseFloat(literal, 64); err == nil && strings.HasSuffix(at, `"]`) {
				continue // it would be a number
			}
			for _, g := range guesses {
				written := literal
				if strings.HasPrefix(g.text, "matches") {
					if at == "rest" {
						continue // a pattern is for bytes, not for their digits
					}
					written = regexp.QuoteMeta(literal)
				}
				text := at + " " + strings.ReplaceAll(g.text, "#", strconv.Quote(written))
				if f, err := l.Compile(text); err == nil {
					list = append(list, question{text, func(o object) bool { return g.of(o, at, literal) }, f})
				}
			}
		}
	}
	return list
}

var integer = regexp.MustCompile(`^(0|-?[1-9]\d*)$`)

// of says what the guess means for the leaves at a path.
func (g *guess) of(o object, path, literal string) bool {
	seen := false
	all := o.leaves[path]
	if !strings.HasPrefix(path, "fields") {
		all = append(all[:len(all):len(all)], o.leaves["fields."+path]...)
	}
	for _, leaf := range all {
		text, ok := leaf.(string)
		if !ok || text == dissect.MaskText || strings.HasSuffix(path, `"]`) && integer.MatchString(text) {
			continue // a mask, or a number
		}
		seen = true
		if g.is(text, literal) {
			return !g.all
		}
	}
	return seen && g.all
}
