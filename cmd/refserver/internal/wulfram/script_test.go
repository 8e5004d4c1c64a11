package wulfram

import (
	"strings"
	"testing"
)

func TestParseScript(t *testing.T) {
	got, err := Scripts.Parse("# a comment\n\n  say  hello   there\nrepeat 3 look 5\nwait 1.5s\nmove jump 1\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 4 || got[0].Verb != "say" || len(got[0].Words) != 2 || got[1].Times != 3 || got[1].Verb != "look" || got[2].Times != 1 {
		t.Errorf("got %+v", got)
	}
	for _, name := range []string{"login", "play", "squad", "talk"} {
		if _, err := Scripts.Builtin(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseScriptFindsFault(t *testing.T) {
	tests := []struct{ name, script, want string }{
		{"an unknown command", "wait 1s\ndance", `script line 2: unknown command "dance"`},
		{"too few words", "spawn 1", "spawn: want at least 2 words behind it, got 1"},
		{"no time", "wait soon", "wait: time: invalid duration"},
		{"no team", "team green", `team: strconv.Atoi: parsing "green"`},
		{"no number of times", "repeat x look 5", `repeat "x"`},
		{"an endless repeat", "repeat 0 look 5", `repeat "0"`},
		{"no channel", "move sideways 1", "move:"},
		{"no value", "move forward fast", "move:"},
		{"a negative length", "long -1", "long:"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Scripts.Parse(test.script)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
	if _, err := Scripts.Builtin("nothing"); err == nil {
		t.Error("an unknown script is found")
	}
	if _, err := ParseHandshake("none"); err == nil {
		t.Error("an unknown handshake is found")
	}
}
