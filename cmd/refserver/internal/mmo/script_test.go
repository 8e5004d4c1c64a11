package mmo

import (
	"strings"
	"testing"
)

func TestParseScript(t *testing.T) {
	script, err := Scripts.Parse("# a comment\n\nwait 20ms\nrepeat 3 attack 2\nsend 0x0299 0801 5 -\nwalk northwest\nawait ChatNtf\n")
	if err != nil || len(script) != 5 || script[1].Times != 3 || number(script[1], 0, 9) != 2 || len(data(script[2], 3)) != 0 {
		t.Errorf("got %+v, %v", script, err)
	}
	for text, want := range map[string]string{
		"dance":               `line 1: unknown command "dance"`,
		"\nwait":              "line 2: wait: want at least 1 words behind it, got 0",
		"wait long":           "long",
		"walk up":             "direction",
		"await ChatNtff":      "ChatNtf",
		"await ChatReq":       "no message of the server",
		"repeat none wait 1s": "number of times",
		"send 1":              "want at least 2 words",
		"send 1 2 3":          "an id and a body",
		"send 0x10000 00":     "0x10000",
		"send 1 xyz":          "hex",
		"raw -":               "hex",
		"attack x":            "x",
		"enter backwards":     "backwards",
		"stop now":            "1 words",
	} {
		if _, err := Scripts.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q in it", text, err, want)
		}
	}
	for name := range builtin {
		if _, err := Scripts.Builtin(name); err != nil {
			t.Error(err)
		}
	}
}

// TestAccountsDiffer compares accounts: bots of one process must not get in each other's
// way.
func TestAccountsDiffer(t *testing.T) {
	seen := map[uint64]string{}
	for seed := range uint64(100) {
		for _, name := range []string{"Ada", "Brin", "Bot1", "Bot2"} {
			a := accountOf(name, seed)
			if other, taken := seen[a]; taken {
				t.Errorf("%s with seed %d has the account of %s", name, seed, other)
			}
			seen[a] = name
		}
	}
}
