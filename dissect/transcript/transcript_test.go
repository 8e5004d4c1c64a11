package transcript

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// linesOf returns the lines that have these texts.
func linesOf(t *texts, list ...string) (lines []line) {
	for _, text := range list {
		message, _, _ := strings.Cut(text, "\t")
		lines = append(lines, line{text: t.number([]byte(text), 0), message: t.number([]byte(message), 0)})
	}
	return lines
}

// split returns the texts of words with a comma before each field.
func split(words string) (list []string) {
	for _, w := range strings.Fields(words) {
		list = append(list, strings.ReplaceAll(w, ",", "\t"))
	}
	return list
}

// TestAlign puts short lanes beside each other. A letter is a message, what is behind a
// comma its field.
func TestAlign(t *testing.T) {
	for _, test := range []struct{ a, b, want string }{
		{"A B C", "A B C", "AA BB CC"},
		{"A B C", "A C", "AA B- CC"},
		{"A C", "A B C", "AA -B CC"},
		{"A,x=1 B", "A,x=2 B", "AA BB"},
		{"A,x=1 A,x=2 A,x=3", "A,x=1 A,x=3", "AA A- AA"},
		{"A,x=1 A,x=2", "A,x=9 A,x=1 A,x=2", "-A AA AA"},
		{"A B", "C D", "A- B- -C -D"},
		{"", "A", "-A"},
		{"", "", ""},
	} {
		texts := newTexts()
		a, b := linesOf(texts, split(test.a)...), linesOf(texts, split(test.b)...)
		var got []string
		for _, p := range align(a, b) {
			x, y := "-", "-"
			if p.a >= 0 {
				x = string(texts.of(a[p.a].message))
			}
			if p.b >= 0 {
				y = string(texts.of(b[p.b].message))
			}
			got = append(got, x+y)
		}
		if s := strings.Join(got, " "); s != test.want {
			t.Errorf("%q and %q: got %q, want %q", test.a, test.b, s, test.want)
		}
	}
}

// TestAlignCoversAll proves that each line stands in the alignment once and in its order,
// also of long lanes, which are aligned in pieces.
func TestAlignCoversAll(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, size := range []int{10, 300, 6000} {
		for _, kinds := range []int{2, 50, 100000} {
			texts := newTexts()
			lane := func() []line {
				var list []string
				for range size + random.IntN(size) {
					list = append(list, fmt.Sprintf("M%d\tx=%d", random.IntN(3), random.IntN(kinds)))
				}
				return linesOf(texts, list...)
			}
			a := lane()
			b := slices.Concat(a[:len(a)/3], lane()[:size/2], a[len(a)/3:])
			i, k, equal := 0, 0, 0
			for _, p := range align(a, b) {
				if p.a >= 0 && p.a != i || p.b >= 0 && p.b != k || p.a < 0 && p.b < 0 {
					t.Fatalf("%d lines, %d kinds: got the pair %v, want %d or %d", size, kinds, p, i, k)
				}
				if p.a >= 0 && p.b >= 0 && a[p.a].text == b[p.b].text {
					equal++
				}
				i, k = i+min(p.a, 0)+1, k+min(p.b, 0)+1
			}
			if i != len(a) || k != len(b) {
				t.Errorf("%d lines, %d kinds: got %d and %d, want %d and %d", size, kinds, i, k, len(a), len(b))
			}
			if equal < len(a) {
				t.Errorf("%d lines, %d kinds: %d of %d that are the same are found", size, kinds, equal, len(a))
			}
		}
	}
}

// TestIgnore names fields in the ways there are.
func TestIgnore(t *testing.T) {
	for pattern, want := range map[string]bool{
		"position": true, "entities.position": true, "UPDATE_ARRAY.entities.position": true, "UPDATE_ARRAY.entities": true, "entities*": true, "p?sition": true,
		"VIEW_UPDATE.entities": false, "entities.rotation": false, "posit": false, "id": false,
	} {
		x := &Transcript{Ignore: []string{pattern}}
		if got := x.ignores([]byte("UPDATE_ARRAY"), []byte("entities[3].position[0]")); got != want {
			t.Errorf("%s: got %v, want %v", pattern, got, want)
		}
	}
}

// TestParse reads back what was printed.
func TestParse(t *testing.T) {
	var x Transcript
	for _, line := range []string{
		`{"type":"record","session":7,"dir":"c2s","transport":"udp","protocol":"wulfram","message":"ROOT","fields":{"text":"tab\there, and\nan end","timestamp":5},"packets":[3]}`,
		`{"type":"record","session":7,"dir":"s2c","transport":"udp","protocol":"wulfram","message":"PING","fields":{"list":[{"a":1},{"a":"18446744073709551615"}]},"packets":[4]}`,
		`{"type":"record","session":7,"dir":"s2c","transport":"udp","protocol":"wulfram","message":"PING","notes":[{"code":"retransmission"}],"packets":[5]}`,
		`{"type":"gap","session":9,"dir":"s2c","transport":"tcp","protocol":"netrek","bytes":12}`,
		`{"type":"event","session":9,"code":"closed"}`,
	} {
		if _, err := x.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	if err := x.Print(&b); err != nil {
		t.Fatal(err)
	}
	want := "== session 1 wulfram c2s udp\nROOT\ttext=\"tab\\there, and\\nan end\"\n\n" +
		"== session 1 wulfram s2c udp\nPING\tlist[0].a=1\tlist[1].a=\"18446744073709551615\"\n\n" +
		"== session 2 netrek s2c tcp\ngap\tbytes=12\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	y := x.Counterpart()
	if err := y.Parse(strings.NewReader(b.String())); err != nil {
		t.Fatal(err)
	}
	for d := range Compare(&x, y) {
		t.Errorf("read back: %+v", d)
	}
	if err := y.Counterpart().Parse(strings.NewReader("PING\n")); err == nil {
		t.Error("a line without a heading is taken")
	}
}

// TestWriteInPieces takes lines however they are cut.
func TestWriteInPieces(t *testing.T) {
	const lines = `{"type":"record","session":1,"message":"A","fields":{"x":[1,{"y":"<&>"}]},"notes":[],"error":null}` + "\n" +
		`{"type":"record","session":2,"message":"B","fields":{},"rest":"00ff","error":{"layer":"l","path":"B.x","kind":"truncated"}}` + "\n"
	const want = "== session 1\nA\tx[0]=1\tx[1].y=\"\\u003c\\u0026\\u003e\"\n\n== session 2\nB\trest=00ff\terror=truncated B.x\n"
	for size := 1; size <= len(lines); size++ {
		var x Transcript
		for piece := range slices.Chunk([]byte(lines), size) {
			if n, err := x.Write(piece); n != len(piece) || err != nil {
				t.Fatalf("pieces of %d: got %d, %v", size, n, err)
			}
		}
		var b strings.Builder
		if err := x.Print(&b); err != nil || b.String() != want {
			t.Fatalf("pieces of %d: got\n%s\nwant\n%s", size, b.String(), want)
		}
	}
}

// TestQuoted writes strings as encoding/json does.
func TestQuoted(t *testing.T) {
	for _, text := range []string{"", "plain", `a "quoted" \ word`, "<b>&", "tab\tand\nend\x00", "\x7f", "é\u2028\u202e\U0001f600", "\xff"} {
		want, err := json.Marshal(text)
		if got := appendQuoted([]byte("x="), []byte(text)); err != nil || string(got) != "x="+string(want) {
			t.Errorf("%q: got %s, want x=%s", text, got, want)
		}
	}
}

// TestTexts gives texts back by their numbers from where they are kept, in little room.
func TestTexts(t *testing.T) {
	const lanes, lines = 50, 1000
	texts := newTexts()
	said := func(lane, i int) string {
		return fmt.Sprintf("UPDATE\tlane=%d"+strings.Repeat("\tposition=%[2]d", 50), lane, i)
	}
	var numbers []textNumber
	size := 0
	for i := range lines {
		for lane := range lanes {
			text := said(lane, i)
			numbers = append(numbers, texts.number([]byte(text), lane))
			size += len(text)
		}
	}
	for k, n := range numbers {
		if again := texts.number([]byte(said(k%lanes, k/lanes)), 0); again != n {
			t.Fatalf("text %d: got number %d again, want %d", k, again, n)
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		k := random.IntN(len(numbers))
		if got, want := string(texts.of(numbers[k])), said(k%lanes, k/lanes); got != want {
			t.Fatalf("text %d: got %q, want %q", k, got, want)
		}
	}
	kept := cap(texts.fresh)
	for _, b := range texts.blocks {
		kept += cap(b)
	}
	if kept > size/4 {
		t.Errorf("%d bytes of text are kept in %d", size, kept)
	}
}

// TestPackets gives the packets back of lines that have one, several and none.
func TestPackets(t *testing.T) {
	var x Transcript
	want := [][]int{{7}, {}, {8, 9, 10}, {}, {1 << 20}, {}}
	for _, packets := range want {
		x.add([]byte("session 1"), []byte("PING"), packets)
	}
	for i, packets := range want {
		if got := x.lanes["session 1"].packetsOf(i); !slices.Equal(got, packets) {
			t.Errorf("line %d: got %v, want %v", i, got, packets)
		}
	}
}

// TestWriteJSON writes one object, as encoding/json would.
func TestWriteJSON(t *testing.T) {
	one, two := "1", "<2>"
	all := []Difference{
		{Lane: "session 1", Kind: "changed", A: &Place{"A", "A\tx=1", []int{1}}, B: &Place{"A", "A\tx=<2>", []int{}}, Fields: []Change{{"x", &one, &two}}},
		{Lane: "session 2", Kind: "missing", A: &Place{"B", "B", []int{2, 3}}},
	}
	for n := range len(all) + 1 {
		var got, want strings.Builder
		same, err := WriteJSON(&got, "a&b", "b", slices.Values(all[:n]))
		if err != nil || same != (n == 0) {
			t.Fatalf("%d differences: got %v, %v", n, same, err)
		}
		list := slices.Clone(all[:n])
		for i := range list {
			list[i].Fields = append([]Change{}, list[i].Fields...)
		}
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(struct {
			A           string       `json:"a"`
			B           string       `json:"b"`
			Same        bool         `json:"same"`
			Differences []Difference `json:"differences"`
		}{"a&b", "b", n == 0, append([]Difference{}, list...)}); err != nil {
			t.Fatal(err)
		}
		if got.String() != want.String() {
			t.Errorf("%d differences: got\n%s\nwant\n%s", n, got.String(), want.String())
		}
	}
}
