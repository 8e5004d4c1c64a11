package transcript

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func linesOf(words string) (list []Line) {
	for _, w := range strings.Fields(words) {
		list = append(list, Line{Text: strings.ReplaceAll(w, ",", "\t")})
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
		a, b := linesOf(test.a), linesOf(test.b)
		var got []string
		for _, p := range align(a, b) {
			x, y := "-", "-"
			if p.a >= 0 {
				x = a[p.a].Message()
			}
			if p.b >= 0 {
				y = b[p.b].Message()
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
			lane := func() (list []Line) {
				for range size + random.IntN(size) {
					list = append(list, Line{Text: fmt.Sprintf("M%d\tx=%d", random.IntN(3), random.IntN(kinds))})
				}
				return list
			}
			a := lane()
			b := slices.Concat(a[:len(a)/3], lane()[:size/2], a[len(a)/3:])
			i, k, equal := 0, 0, 0
			for _, p := range align(a, b) {
				if p.a >= 0 && p.a != i || p.b >= 0 && p.b != k || p.a < 0 && p.b < 0 {
					t.Fatalf("%d lines, %d kinds: got the pair %v, want %d or %d", size, kinds, p, i, k)
				}
				if p.a >= 0 && p.b >= 0 && a[p.a].Text == b[p.b].Text {
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
	y, err := Parse(strings.NewReader(b.String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if list := Compare(&x, y); len(list) > 0 {
		t.Errorf("read back: %+v", list)
	}
	if _, err := Parse(strings.NewReader("PING\n"), nil); err == nil {
		t.Error("a line without a heading is taken")
	}
}
