package filter_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math/big"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"opscope/dissect"
	"opscope/dissect/capture"
	"opscope/dissect/filter"
	"opscope/dissect/protocols"
	"opscope/dissect/sink"
	"opscope/schema"
)

// schemas returns those of all protocols, also of those that carry others.
func schemas(t testing.TB) (list []*schema.Protocol, byName func(string) *schema.Protocol) {
	t.Helper()
	known := map[string]*schema.Protocol{}
	for _, name := range schema.BuiltinNames() {
		p, err := schema.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		known[name] = p
		list = append(list, p)
	}
	return list, func(name string) *schema.Protocol { return known[name] }
}

// captures returns the files of pcaps/, in a hurry one in eight.
func captures(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("../../pcaps/*/*.pcapng")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	if !testing.Short() {
		return files
	}
	var some []string
	for i := 0; i < len(files); i += 8 {
		some = append(some, files[i])
	}
	return some
}

// decode hands the records of a capture to a sink.
func decode(t testing.TB, file string, s dissect.Sink) {
	t.Helper()
	decodeFor(t, file, s, dissect.LookWhole)
}

// decodeFor hands over as much of the records as one looks at.
func decodeFor(t testing.TB, file string, s dissect.Sink, look dissect.Look) {
	t.Helper()
	src, err := capture.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if _, err := dissect.NewPipeline(s, dissect.Options{Protocols: protocols.All, Hold: dissect.DefaultHold, Look: look}).Run(context.Background(), src); err != nil {
		t.Fatal(err)
	}
}

// asJSON decodes a capture to NDJSON, a line a record.
func asJSON(t testing.TB, file string, o sink.NDJSONOptions) []string {
	t.Helper()
	var b bytes.Buffer
	j := sink.NewNDJSON(&b, o)
	decode(t, file, j)
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	return slices.Collect(strings.Lines(b.String()))
}

// leaves calls f for each value of an object that is neither object nor array nor null,
// with its path: that of DESIGN section 6, arrays being taken apart.
func leaves(v any, path string, f func(path string, leaf any)) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			leaves(v[k], join(path, k), f)
		}
	case []any:
		for _, e := range v {
			leaves(e, path, f)
		}
	case nil:
	default:
		f(path, v)
	}
}

var identifier = regexp.MustCompile(`^[A-Za-z_]\w*$`)

func join(path, key string) string {
	switch {
	case path == "":
		return key
	case identifier.MatchString(key):
		return path + "." + key
	}
	return path + `["` + key + `"]`
}

// collection is what was asked of a capture: for each record, which of some
// filters want it.
type collection struct {
	filters []*filter.Filter
	frames  bool     // of frames alone
	hits    [][]bool // by record
}

func (c *collection) Write(r *dissect.Record) error {
	if c.frames && r.Type != dissect.FrameRecord {
		return nil
	}
	row := make([]bool, len(c.filters))
	for i, f := range c.filters {
		row[i] = f.Match(r)
	}
	c.hits = append(c.hits, row)
	return nil
}

func (c *collection) Flush() error { return nil }

// readBack asks the same of the capture's NDJSON.
func (c *collection) readBack(t testing.TB, objects []object, byName func(string) *schema.Protocol) {
	t.Helper()
	var text strings.Builder
	for _, o := range objects {
		text.WriteString(o.line)
	}
	r := sink.NewReader(strings.NewReader(text.String()), sink.ReaderOptions{Schema: byName})
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		c.Write(rec)
	}
}

// question is a filter with what it means, as NDJSON has it.
type question struct {
	text   string
	want   func(o object) bool
	filter *filter.Filter // nil until it is compiled
}

// object is a line of NDJSON with its leaves by path. Outside of fields an empty text
// stands for nothing.
type object struct {
	line   string
	leaves map[string][]any
}

func objectOf(t testing.TB, line string) object {
	t.Helper()
	o := object{line, map[string][]any{}}
	leaves(parsed(t, line), "", func(path string, leaf any) {
		if leaf != "" || strings.HasPrefix(path, "fields") {
			o.leaves[path] = append(o.leaves[path], leaf)
		}
	})
	return o
}

func parsed(t testing.TB, line string) (members map[string]any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber()
	if err := d.Decode(&members); err != nil {
		t.Fatal(err)
	}
	return members
}

// has reports whether a leaf at a path meets a condition.
func (o object) has(path string, is func(leaf any) bool) bool {
	return slices.ContainsFunc(o.leaves[path], is)
}

// numbers has what number has read; there are few, and each is asked for often.
var numbers = map[string]*big.Rat{}

// number returns the number that a leaf is, or that a text stands for.
func number(leaf any) (*big.Rat, bool) {
	text := ""
	switch v := leaf.(type) {
	case json.Number:
		text = string(v)
	case string:
		text = v
	}
	n, known := numbers[text]
	if !known {
		n, _ = new(big.Rat).SetString(text) // nil for none
		numbers[text] = n
	}
	return n, n != nil
}

// same reports whether two leaves are equal. A number of 64 bits is a text in JSON, and so
// is what is no number.
func same(a, b any) bool {
	_, aText := a.(string)
	if _, bText := b.(string); aText && bText {
		return a == b
	}
	x, ok := number(a)
	if y, both := number(b); ok && both {
		return x.Cmp(y) == 0
	}
	return a == b
}

// plain is a text that needs no escapes in a filter.
var plain = regexp.MustCompile(`^[ !#-\[\]-~]*$`)

// written returns a leaf as a filter has it, "" where it cannot be asked for.
func written(leaf any) string {
	switch v := leaf.(type) {
	case json.Number:
		return string(v)
	case bool:
		if v {
			return "true"
		}
		return "false"
	case string:
		if plain.MatchString(v) && v != dissect.MaskText && v != "NaN" && !strings.HasSuffix(v, "Infinity") {
			return `"` + v + `"`
		}
	}
	return ""
}

// generated returns questions after values that a capture has: at most two for each
// path, whether a record has that value there, has it not, and for numbers which are less.
func generated(objects []object) (list []question) {
	found := map[string][]any{}
	for _, o := range objects {
		for path, all := range o.leaves {
			for _, leaf := range all {
				if written(leaf) != "" && !slices.ContainsFunc(found[path], func(v any) bool { return same(v, leaf) }) {
					found[path] = append(found[path], leaf)
				}
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(found)) {
		all := found[path]
		for _, i := range slices.Compact([]int{0, len(all) - 1}) {
			list = append(list, about(path, all[i])...)
		}
	}
	return list
}

// about returns questions about one value at a path.
func about(path string, leaf any) []question {
	equal := func(o object) bool { return o.has(path, func(v any) bool { return same(v, leaf) }) }
	list := []question{
		{text: path + " == " + written(leaf), want: equal},
		{text: "not (" + path + " == " + written(leaf) + ")", want: func(o object) bool { return !equal(o) }},
	}
	limit, ok := leaf.(json.Number)
	if !ok {
		return list
	}
	b, _ := number(limit)
	return append(list, question{text: path + " < " + string(limit), want: func(o object) bool {
		return o.has(path, func(v any) bool { a, ok := number(v); return ok && a.Cmp(b) < 0 })
	}})
}

// TestGeneratedFilters asks of every capture after every key and field that it has, by
// values that it has, and wants the records for which the NDJSON says the same; and the
// same again of that NDJSON, read back.
func TestGeneratedFilters(t *testing.T) {
	list, byName := schemas(t)
	language := filter.NewLanguage(list, dissect.Privacy{})
	asked := 0
	files := captures(t)
	for _, file := range files {
		lines := asJSON(t, file, sink.NDJSONOptions{})
		objects := make([]object, len(lines))
		for i := range lines {
			objects[i] = objectOf(t, lines[i])
		}
		questions := generated(objects)
		asked += len(questions)
		answer(t, file, language, questions, objects, byName)
	}
	if asked < 80*len(files) {
		t.Errorf("only %d questions", asked)
	}
	t.Logf("%d filters", asked)
}

// answer compares the answers of filters with what they mean.
func answer(t *testing.T, file string, l *filter.Language, questions []question, objects []object, byName func(string) *schema.Protocol) {
	t.Helper()
	var live, back collection
	asked := questions[:0:0]
	for _, q := range questions {
		f, err := q.filter, error(nil)
		if f == nil {
			f, err = l.Compile(q.text)
		}
		if err != nil && strings.Contains(q.text, ` == ""`) && strings.Contains(err.Error(), "is masked") {
			continue // an absent secret is an empty one
		}
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		live.filters = append(live.filters, f)
		asked = append(asked, q)
	}
	back.filters = live.filters
	decode(t, file, &live)
	back.readBack(t, objects, byName)
	for i, q := range asked {
		for k, o := range objects {
			want := q.want(o)
			if got := live.hits[k][i]; got != want {
				t.Errorf("%s: %s: got %v, want %v for\n%s", file, q.text, got, want, o.line)
				break
			}
			if got := back.hits[k][i]; got != want {
				t.Errorf("%s, read back: %s: got %v, want %v for\n%s", file, q.text, got, want, o.line)
				break
			}
		}
	}
}

// TestLook asks after keys of records as far as filters look at them, and wants the answers
// that whole records give. Of a run that looks at kinds only frames are compared, for it makes
// no others of acknowledgements.
func TestLook(t *testing.T) {
	list, _ := schemas(t)
	language := filter.NewLanguage(list, dissect.Privacy{})
	asked := map[dissect.Look]int{}
	files := captures(t)
	for _, file := range files {
		var objects []object
		for _, line := range asJSON(t, file, sink.NDJSONOptions{}) {
			objects = append(objects, objectOf(t, line))
		}
		texts := []string{"fields", "rest", "notes", "ack", "acks", "error"}
		for _, q := range generated(objects) {
			texts = append(texts, q.text)
		}
		for _, look := range []dissect.Look{dissect.LookNothing, dissect.LookKind} {
			whole, some := collection{frames: look == dissect.LookKind}, collection{frames: look == dissect.LookKind}
			var these []string
			for _, text := range texts {
				if f, err := language.Compile(text); err == nil && f.Look() == look {
					whole.filters, these = append(whole.filters, f), append(these, text)
				}
			}
			some.filters = whole.filters
			decode(t, file, &whole)
			decodeFor(t, file, &some, look)
			compareHits(t, file, these, some.hits, whole.hits)
			asked[look] += len(these)
		}
	}
	if least := 20 * len(files); asked[dissect.LookKind] < least || asked[dissect.LookNothing] < least {
		t.Errorf("filters of each look: got %v, want %d or more", asked, least)
	}
}

// compareHits compares which records some filters want.
func compareHits(t *testing.T, file string, texts []string, got, want [][]bool) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %d records, want %d", file, len(got), len(want))
		return
	}
	for k := range want {
		for i, text := range texts {
			if got[k][i] != want[k][i] {
				t.Errorf("%s: %s: got %v, want %v for record %d", file, text, got[k][i], want[k][i], k)
				return
			}
		}
	}
}

// TestPaths: what is offered as a column is one.
func TestPaths(t *testing.T) {
	list, _ := schemas(t)
	language := filter.NewLanguage(list, dissect.Privacy{})
	paths := language.Paths()
	for _, path := range paths {
		if _, err := language.Columns([]string{path}); err != nil {
			t.Error(err)
		}
	}
	for _, path := range []string{"time", "ack.rtt_ms", "src.port", "envelope.slot", "entity_id", "entities.mask.position", "fields.dir", "udp_token"} {
		if !slices.Contains(paths, path) {
			t.Errorf("%s is not among them", path)
		}
	}
}
