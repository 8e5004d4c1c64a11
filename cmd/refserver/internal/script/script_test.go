package script

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

var book = Book{
	Verbs: map[string]int{"wait": 1, "say": 1, "leave": 0},
	Check: func(c Command) error {
		if c.Verb == "wait" && c.Words[0] != "1s" {
			return errors.New("not so long")
		}
		return nil
	},
	Texts: map[string]string{"short": "leave", "wrong": "dance"},
}

func TestParse(t *testing.T) {
	got, err := book.Parse("# a comment\n\n  say  hello   there\nrepeat 3 wait 1s\nleave")
	if err != nil {
		t.Fatal(err)
	}
	want := []Command{{"say", []string{"hello", "there"}, 1}, {"wait", []string{"1s"}, 3}, {"leave", []string{}, 1}}
	same := func(a, b Command) bool {
		return a.Verb == b.Verb && a.Times == b.Times && slices.Equal(a.Words, b.Words)
	}
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestFaultsAreNamed(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"an unknown command":    {"leave\ndance", `script line 2: unknown command "dance": want one of leave, say, wait`},
		"too few words":         {"say", "script line 1: say: want at least 1 words behind it, got 0"},
		"words that do not fit": {"wait 2s", "script line 1: wait: not so long"},
		"no number of times":    {"repeat x leave now", `script line 1: repeat "x": want a number of times`},
		"never":                 {"repeat 0 leave", `script line 1: repeat "0": want a number of times`},
		"repeat of nothing":     {"repeat 3", `unknown command "repeat"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := book.Parse(test.text); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestFind(t *testing.T) {
	own := map[string]string{"short": "say hello\nleave"}
	if got, err := book.Find(own, "short"); err != nil || len(got) != 2 {
		t.Errorf("the own script of a name: %v, %v", got, err)
	}
	if got, err := book.Find(nil, "short"); err != nil || len(got) != 1 {
		t.Errorf("the built-in one: %v, %v", got, err)
	}
	if _, err := book.Builtin("long"); err == nil || err.Error() != `unknown script "long": want one of short, wrong` {
		t.Errorf("one that is not there: %v", err)
	}
	if _, err := book.Builtin("wrong"); err == nil {
		t.Error("a built-in script that says nonsense is read")
	}
}

func TestClip(t *testing.T) {
	for text, want := range map[string]string{"hello": "hel", "äöü": "äöü", "a→b": "a?b", "": ""} {
		if got := Clip(text, 3); got != want {
			t.Errorf("%q is clipped to %q, want %q", text, got, want)
		}
	}
}
