package sink

import (
	"math"
	"strings"
	"testing"

	"opscope/dissect"
	"opscope/schema"
)

// message is a record of Protocol Buffers with one of each mark: bytes 4 and 5 are field
// 1, a bool; 6 and 7 field 2, an enum; 8 to 12 field 9, four bytes that nobody knows; 13
// to 19 field 10, a text that nobody knows; 20 to 24 field 3, a text that is no UTF-8.
func message() *dissect.Record {
	raw := []byte("\x19\x00\x03\x00\x08\x01\x10\x02\x4d\x00\x00\xc0\x3f\x52\x05hello\x1a\x03a\xff\xfe")
	r := frame("ErrorRes", 3, raw)
	r.Envelope.Length = len(raw)
	codes := schema.NewEnum("Code", []schema.Name{{Value: 2, Name: "CODE_TWO"}})
	field := func(name string, number int, m schema.Mark) *schema.Field {
		f := &schema.Field{Name: name, Number: number, Mark: m, Encoding: schema.UTF8Exact}
		if m == schema.Unmatched {
			f.Confidence = schema.Guess
		}
		return f
	}
	code := field("code", 2, schema.NoMark)
	code.Enum, code.Symbol = codes, true
	number, text := field("9", 9, schema.Unmatched), field("10", 10, schema.Unmatched)
	number.Wire, text.Wire = schema.WireI32, schema.WireLen
	single := field("x", 4, schema.Absent)
	single.Single = true
	old := field("old", 5, schema.Superseded)
	add(r, field("ok", 1, schema.NoMark), schema.Bool, 32, 16, 1)
	add(r, code, schema.Uint, 48, 16, 2)
	add(r, old, schema.Uint, 48, 16, 7)
	add(r, number, schema.Uint, 64, 40, uint64(math.Float32bits(1.5)))
	add(r, text, schema.Text, 104, 56, 0)
	add(r, field("said", 3, schema.NoMark), schema.Text, 160, 40, 0)
	add(r, single, schema.Float, 0, 0, 0)
	add(r, field("items", 6, schema.Absent), schema.Array, 0, 0, 0)
	add(r, field("inner", 7, schema.Absent), schema.Null, 0, 0, 0)
	for i, body := range map[int][2]int32{3: {9, 4}, 4: {15, 5}, 5: {22, 3}} {
		r.Body.Nodes[i].Body, r.Body.Nodes[i].BodyLen = 8*body[0], body[1]
	}
	return r
}

func TestProtocolBuffersAsText(t *testing.T) {
	line := print(t, TextOptions{Width: -1}, message())
	want := `ok=true code=2 (CODE_TWO) 9?=1069547520 10?="hello" said="a\xff\xfe" x=(0) items=(0) inner=-`
	if !strings.Contains(line, want) {
		t.Errorf("got\n%s\nwant\n%s", line, want)
	}
	details := print(t, TextOptions{Verbosity: 1}, message())
	for _, want := range []string{
		"    ok = true\n", "    code = 2 (CODE_TWO)\n",
		"    9 = 1069547520  (i32)  [guess]  or float 1.5, s32 1069547520\n",
		"    10 = \"hello\"  (len)  [guess]  or packed (104, 101, 108, 108, 111), bytes 68656c6c6f\n",
		"    said = \"a\\xff\\xfe\"\n", "    x = 0  (absent)\n", "    items = 0  (absent)\n", "    inner = (absent)  (absent)\n",
	} {
		if !strings.Contains(details, want) {
			t.Errorf("got\n%s\nwant\n%s", details, want)
		}
	}
	if strings.Contains(details, "old") || !strings.Contains(print(t, TextOptions{Verbosity: 2}, message()), "old = 7  @6-7  (superseded)") {
		t.Error("a superseded value is to be shown with all else, and only then")
	}
}

func TestProtocolBuffersAsJSON(t *testing.T) {
	got := printJSON(t, NDJSONOptions{}, message())
	want := `"fields":{"ok":true,"code":"CODE_TWO","9":1069547520,"10":"hello","said":"a\\xff\\xfe","x":0,"items":[],"inner":null}`
	if !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var b strings.Builder
	reread(t, got, ReaderOptions{}, NewNDJSON(&b, NDJSONOptions{}))
	compare(t, b.String(), got)
	unknown := message()
	unknown.Body.Nodes[1].Num = 77
	if got := printJSON(t, NDJSONOptions{}, unknown); !strings.Contains(got, `"code":77`) {
		t.Errorf("a number without a name: %s", got)
	}
}

// repeating is a record of a session whose token comes back in each place that a record
// has: in a field, in a number, in what is left over, in a note and in an error.
func repeating(secret string) *dissect.Record {
	r := frame("CHAT", 0x1f, []byte("\x1fmy token is "+secret+"!"+secret+"?"))
	r.Secrets = &dissect.Secrets{}
	r.Secrets.Add([]byte(secret))
	add(r, &schema.Field{Name: "text"}, schema.Text, 8, 8*(12+len(secret)+1), 0)
	add(r, &schema.Field{Name: "number"}, schema.Uint, 8*(14+len(secret)), 32, 0x12345678)
	r.Rest = r.Raw[18+len(secret):]
	r.Notes = []dissect.Note{{Code: "invalid_utf8", Text: "in " + secret}}
	r.Err = brokenLogin().Err
	r.Err.Path, r.Err.Got, r.Err.Want = "CHAT.x", secret, "less than "+secret
	return r
}

func TestASecretIsMaskedWhereverItComesBack(t *testing.T) {
	const secret = "swordfish"
	r := repeating(secret)
	outputs := []string{printJSON(t, NDJSONOptions{Raw: true}, r)}
	for verbosity := range 3 {
		outputs = append(outputs, print(t, TextOptions{Verbosity: verbosity, Hex: true, Width: -1}, r))
	}
	for _, got := range outputs {
		for _, part := range []string{"sword", "fish", "73776f72", "73 77 6f", "66 69 73 68", "12345678", "305419896"} {
			if strings.Contains(got, part) {
				t.Errorf("shows %q: %s", part, got)
			}
		}
	}
	want := `"raw":"1f6d7920746f6b656e20697320******************21******************3f"`
	if !strings.Contains(outputs[0], want) {
		t.Errorf("got %s, want %s", outputs[0], want)
	}
	if got := printJSON(t, NDJSONOptions{Raw: true, Privacy: dissect.Privacy{ShowSecrets: true}}, r); strings.Count(got, secret) != 4 {
		t.Errorf("asked for, it shows %s", got)
	}
}

// A secret that a record teaches is masked in the later ones of its session, when they
// are read back, and not in those of another session.
func TestSecretsAreLearnedFromNDJSON(t *testing.T) {
	said, elsewhere := says("it is hunter2, really"), says("it is hunter2, really")
	elsewhere.Session = 2
	shown := printJSON(t, NDJSONOptions{Privacy: dissect.Privacy{ShowSecrets: true}}, login(), said, elsewhere)
	var b strings.Builder
	reread(t, shown, ReaderOptions{Schema: protocols}, NewNDJSON(&b, NDJSONOptions{}))
	lines := strings.Split(b.String(), "\n")
	if strings.Contains(lines[1], "hunter2") || !strings.Contains(lines[2], "hunter2") {
		t.Errorf("got %s", b.String())
	}
}

// What is lost may be a secret, where the protocol says so.
func TestLostBytesAreMasked(t *testing.T) {
	r := frame("", -1, []byte("\x00\x00hunter2"))
	r.Rest, r.Lost, r.Err = r.Raw, true, brokenLogin().Err
	r.Err.Got = "0"
	r.Secrets = &dissect.Secrets{Anywhere: true}
	got := printJSON(t, NDJSONOptions{Raw: true}, r)
	if !strings.Contains(got, `"rest":"***"`) || !strings.Contains(got, `"raw":"******************"`) {
		t.Errorf("got %s", got)
	}
	r.Secrets = &dissect.Secrets{}
	if got := printJSON(t, NDJSONOptions{Raw: true}, r); !strings.Contains(got, "hunter2") && !strings.Contains(got, "68756e74657232") {
		t.Errorf("got %s", got)
	}
}
