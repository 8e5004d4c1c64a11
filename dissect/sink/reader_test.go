package sink

import (
	"errors"
	"io"
	"strings"
	"testing"

	"opscope/dissect"
	"opscope/schema"
	"opscope/schema/wire"
)

// reread sends NDJSON through a Reader into a sink.
func reread(t *testing.T, input string, o ReaderOptions, sink dissect.Sink) {
	t.Helper()
	for r := NewReader(strings.NewReader(input), o); ; {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := sink.Write(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := sink.Flush(); err != nil {
		t.Fatal(err)
	}
}

func TestNDJSONReadsBackToTheSameBytes(t *testing.T) {
	for _, o := range []NDJSONOptions{{}, {Raw: true}, {Raw: true, Privacy: dissect.Privacy{ShowSecrets: true}}} {
		first := printJSON(t, o, all()...)
		for _, again := range []NDJSONOptions{o, {Raw: o.Raw, Privacy: dissect.Privacy{ShowSecrets: true}}} {
			for _, lookup := range []func(string) *schema.Protocol{nil, protocols} {
				var b strings.Builder
				reread(t, first, ReaderOptions{Schema: lookup}, NewNDJSON(&b, again))
				compare(t, b.String(), first)
			}
		}
	}
}

func TestWhatWasShownIsMaskedWhenItIsReadBack(t *testing.T) {
	shown := printJSON(t, NDJSONOptions{Raw: true, Privacy: dissect.Privacy{ShowSecrets: true}}, login(), brokenLogin())
	if !strings.Contains(shown, "hunter2") {
		t.Fatal(shown)
	}
	var b strings.Builder
	reread(t, shown, ReaderOptions{Schema: protocols}, NewNDJSON(&b, NDJSONOptions{Raw: true}))
	if got := b.String(); strings.Contains(got, "hunter") || strings.Contains(got, "68756e") {
		t.Errorf("the secret shows: %s", got)
	}
}

func TestTextIsTheSameAfterNDJSON(t *testing.T) {
	for _, r := range all() {
		if r.Err != nil {
			r.Err.Size = 0 // not in NDJSON
		}
		var b strings.Builder
		reread(t, printJSON(t, NDJSONOptions{}, r), ReaderOptions{Schema: protocols}, NewText(&b, TextOptions{Time: UTC, Schema: protocols}))
		compare(t, b.String(), print(t, TextOptions{}, r))
	}
}

// What a value means can depend on a case that a line does not name: then nothing is said of
// it, instead of something that may be wrong.
func TestFieldOfSeveralCases(t *testing.T) {
	builtin := func(name string) *schema.Protocol {
		p, err := schema.Builtin(name)
		if err != nil {
			t.Error(err)
		}
		return p
	}
	for line, want := range map[string]string{
		`"dir":"c2s","transport":"tcp","protocol":"netrek","message":"CP_UDP_REQ","opcode":35,"fields":{"request":3,"connmode":0,"port":0}`:       "request=3 (full_update) connmode=0 …",
		`"dir":"s2c","transport":"udp","protocol":"netrek","message":"SP_S_YOU_SS","opcode":44,"fields":{"pad1":20,"damage":7}`:                   "pad1=20 damage=7",
		`"dir":"s2c","transport":"tcp","protocol":"netrek","message":"SP_S_WARNING","opcode":42,"fields":{"which":1,"arg":3,"arg2":9,"damage":9}`: "which=1 (phaser_hit) arg=3 arg2=9 damage=9",
		`"dir":"c2s","transport":"tcp","protocol":"netrek","message":"CP_OUTFIT","opcode":9,"fields":{"team":1,"ship":2}`:                         "team=1 (rom) ship=2 (cruiser)",
	} {
		var b strings.Builder
		reread(t, `{"type":"record","file":0,"n":1,"packets":[1],"time":"2026-11-29T20:15:02.000000000Z","session":1,"flow":1,`+line+`,"size":8,"offset":0}`+"\n",
			ReaderOptions{Schema: builtin}, NewText(&b, TextOptions{Time: UTC, Schema: builtin}))
		if !strings.Contains(b.String(), want) {
			t.Errorf("got %q, want %q in it", b.String(), want)
		}
	}
}

func TestDirtyLines(t *testing.T) {
	good := printJSON(t, NDJSONOptions{}, viewpoint())
	for _, c := range []struct {
		name, line string
		want       string
	}{
		{"a line that is no JSON", "hello\n", `ndjson/line 2 at byte 0 of 5: want {, got "h" (malformed)`},
		{"a line cut off in the middle", good[:20] + "\n", `ndjson/line 2 at byte 20 of 20: want the end of a string, got the end (malformed)`},
		{"no type", "{\"file\":0}\n", `ndjson/line 2 at byte 8 of 10: want "type" as the first key, got "0" (malformed)`},
		{"another type", "{\"type\":\"cake\"}\n", `ndjson/line 2 at byte 14 of 15: want a type of record, got "}" (malformed)`},
		{"an unknown key", "{\"type\":\"gap\",\"colour\":1}\n", `ndjson/line 2 at byte 23 of 25: want a key of this type of record, got "1" (malformed)`},
		{"no time", "{\"type\":\"gap\"}\n", `ndjson/line 2 at byte 14 of 14: want "time", got the end (malformed)`},
		{"a second value", strings.TrimSuffix(good, "\n") + "1\n", ``},
		{"a fraction where an integer stands", strings.Replace(good, `"n":17`, `"n":1.5`, 1), ``},
		{"a line that is too long", "{\"type\":\"" + strings.Repeat("x", 200<<10) + "\"}\n", `ndjson/line 2 at byte 100000: want a line of at most 100000 bytes, got more (malformed)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(strings.NewReader(good+c.line+"\n"+good), ReaderOptions{MaxLine: 100000})
			if _, err := r.Next(); err != nil {
				t.Fatal(err)
			}
			_, err := r.Next()
			var e *wire.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			if c.want != "" && err.Error() != c.want {
				t.Errorf("got  %v\nwant %v", err, c.want)
			}
			if rec, err := r.Next(); err != nil || rec.Message != "VIEWPOINT_INFO" {
				t.Errorf("reading did not go on: %v", err)
			}
			if _, err := r.Next(); !errors.Is(err, io.EOF) {
				t.Errorf("got %v, want the end", err)
			}
		})
	}
	t.Run("an input cut off in its last line", func(t *testing.T) {
		r := NewReader(strings.NewReader(good[:len(good)-9]), ReaderOptions{})
		_, err := r.Next()
		var e *wire.Error
		if !errors.As(err, &e) || e.Kind != wire.Truncated {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a summary is passed over", func(t *testing.T) {
		r := NewReader(strings.NewReader("{\"type\":\"summary\",\"file\":0}\n\n"+good), ReaderOptions{})
		if rec, err := r.Next(); err != nil || rec.N != 17 {
			t.Errorf("got %v", err)
		}
	})
}

// FuzzReader: whatever is read can be written, and then reads back to the same
// bytes.
func FuzzReader(f *testing.F) {
	for _, r := range all() {
		var b strings.Builder
		sink := NewNDJSON(&b, NDJSONOptions{Raw: true})
		_ = sink.Write(r)
		_ = sink.Flush()
		f.Add(b.String())
	}
	f.Fuzz(func(t *testing.T, input string) {
		once := rewrite(input)
		for line := range strings.Lines(once) {
			if err := strict(line); err != nil {
				t.Fatalf("%v in %q", err, line)
			}
		}
		if twice := rewrite(once); twice != once {
			t.Errorf("once\n%s\ntwice\n%s", once, twice)
		}
	})
}

// rewrite reads NDJSON and writes what can be read, also as text.
func rewrite(input string) string {
	var b strings.Builder
	sink := NewNDJSON(&b, NDJSONOptions{Raw: true})
	text := NewText(io.Discard, TextOptions{Verbosity: 2, Hex: true, Color: true, Schema: protocols})
	r := NewReader(strings.NewReader(input), ReaderOptions{Schema: protocols, MaxLine: 1 << 20})
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			_ = sink.Write(rec)
			_ = text.Write(rec)
		}
	}
	_ = sink.Flush()
	return b.String()
}
