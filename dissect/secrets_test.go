package dissect

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"opscope/schema"
)

// Spans are where a value is, in each form that an output could give it; found by hand.
func TestSecretsAreFound(t *testing.T) {
	const value = "s3cr\x00t/\xfb\xef"
	digits := hex.EncodeToString([]byte(value))
	for _, c := range []struct {
		name, form string
		from, to   int // of the value's own bytes within the form
	}{
		{"as it is", value, 0, len(value)},
		{"hexadecimal", digits, 0, len(digits)},
		{"in capitals", strings.ToUpper(digits), 0, len(digits)},
		// 9 bytes are 12 digits of 6 bits; behind another byte the first two digits and the
		// last are not the value's alone, behind two bytes the first three and the last.
		{"base64", base64.StdEncoding.EncodeToString([]byte(value)), 0, 12},
		{"base64 behind a byte", base64.StdEncoding.EncodeToString([]byte("a" + value + "z")), 2, 13},
		{"base64 behind two bytes", base64.URLEncoding.EncodeToString([]byte("ab" + value + "z")), 3, 14},
		{"quoted", `s3cr\x00t/\xfb\xef`, 0, 18},
	} {
		var s Secrets
		s.Add([]byte(value))
		text := "before " + c.form + " after"
		want := []Span{{7 + c.from, 7 + c.to}}
		if got := s.AppendSpans(nil, []byte(text)); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", c.name, got, want)
		}
		if !s.Within(text) || !s.WithinBytes([]byte(text)) {
			t.Errorf("%s: not within", c.name)
		}
	}
}

// What Secrets were at some time finds what it found then, also when the oldest value has made
// room. It is made once, as long as nothing is learned.
func TestSecretsOfNowLearnNothing(t *testing.T) {
	s := Secrets{Most: 2}
	s.Add([]byte("hunter2"))
	s.Add([]byte("swordfish"))
	then := s.Now()
	s.Add([]byte("open sesame"))
	for _, c := range []struct {
		text      string
		then, now bool
	}{{"hunter2", true, false}, {"swordfish", true, true}, {"open sesame", false, true}} {
		if got := then.Within(c.text); got != c.then {
			t.Errorf("then %q was found: %v, want %v", c.text, got, c.then)
		}
		if got := s.Within(c.text); got != c.now {
			t.Errorf("now %q is found: %v, want %v", c.text, got, c.now)
		}
	}
	if now := s.Now(); now == then || now != s.Now() {
		t.Error("want other Secrets when something was learned, and the same as long as nothing is")
	}
	s.Anywhere = true
	if !s.Now().Anywhere {
		t.Error("Anywhere is not known")
	}
}

// The search finds what a plain one finds.
func TestSecretsSearch(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = "ab"[rng.IntN(2)] // so that values are in each other and in the data
		}
		return b
	}
	for range 2000 {
		var s Secrets
		for range 1 + rng.IntN(4) {
			s.Add(random(4 + rng.IntN(9)))
		}
		data := random(rng.IntN(60))
		var want []Span
		for at := range data {
			longest := 0
			for _, v := range s.Values() {
				if strings.HasPrefix(string(data[at:]), string(v)) {
					longest = max(longest, len(v))
				}
			}
			if longest > 0 {
				want = append(want, Span{at, at + longest})
			}
		}
		if got := s.AppendSpans(nil, data); !slices.Equal(got, want) {
			t.Fatalf("%q in %q: got %v, want %v", s.Values(), data, got, want)
		}
	}
}

func TestSecretsAtTheEdges(t *testing.T) {
	var s Secrets
	s.Add([]byte("token-of-ada"))
	for text, want := range map[string][]Span{
		"echo token-of": {{5, 13}}, "f-ada": {{0, 5}}, "n-of-ada and token-": {{0, 8}, {13, 19}}, "tok": nil, "ada": nil, "": nil,
	} {
		if got := s.AppendEdges(nil, []byte(text)); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestSecretsAreBounded(t *testing.T) {
	var s Secrets
	evicted := 0
	for i := range 3 * maxSecrets {
		if s.Add(fmt.Appendf(nil, "value %d", i)) {
			evicted++
		}
	}
	s.Add([]byte("abc"))
	if n := len(s.Values()); n != maxSecrets || evicted != 2*maxSecrets {
		t.Errorf("%d values, %d evicted", n, evicted)
	}
	if s.Within("value 1.") || !s.Within("value 191") {
		t.Error("the oldest do not make room")
	}
	var none *Secrets
	if !none.Empty() || none.Within("x") || none.AppendSpans(nil, []byte("x")) != nil {
		t.Error("no Secrets have something")
	}
}

// What a field held that the schema calls secret is learned, up to the NUL of a text.
func TestSecretsLearn(t *testing.T) {
	open, secret := &schema.Field{Name: "name"}, &schema.Field{Name: "password", Redact: schema.Secret}
	tree := schema.Tree{Data: []byte("alice\x00\x00\x00swordfish\x00\x00"), Nodes: []schema.Node{
		{Field: open, Kind: schema.Text, Len: 64, BodyLen: 8},
		{Field: secret, Kind: schema.Struct, Size: 1},
		{Field: open, Kind: schema.Text, Off: 64, Len: 88, Body: 64, BodyLen: 11},
	}}
	var s Secrets
	s.Learn(&tree)
	if got := s.Values(); len(got) != 1 || string(got[0]) != "swordfish" {
		t.Errorf("learned %q", got)
	}
}

func BenchmarkSecrets(b *testing.B) {
	var s Secrets
	s.Add([]byte(strings.Repeat("eyJhbGciOiJIUzI1NiJ9.", 10)))
	s.Add([]byte("3f9c0a7e5d1b4c28"))
	data := make([]byte, 1176)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	b.SetBytes(int64(len(data)))
	var spans []Span
	for b.Loop() {
		spans = s.AppendSpans(spans[:0], data)
	}
}
