package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"opscope/dissect/sink"
)

// TestMain takes away what a machine could add to the output.
func TestMain(m *testing.M) {
	if os.Getenv(peakFile) != "" {
		code := run(context.Background(), os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
		tellPeak()
		os.Exit(code)
	}
	if os.Getenv(asMain) != "" {
		main()
	}
	time.Local = time.UTC
	for _, name := range []string{"NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"} {
		os.Unsetenv(name)
	}
	os.Setenv(noGuard, "1") // a defect is to fail the test
	os.Exit(m.Run())
}

// hang is how long a test waits for what must happen: so long that a busy machine is in time.
const hang = 5 * time.Minute

// result is what a command line came to.
type result struct {
	out, err string
	code     int
}

// opscope runs a command line without standard input.
func opscope(t *testing.T, args ...string) result {
	t.Helper()
	return opscopeReading(t, strings.NewReader(""), args...)
}

// opscopeReading runs a command line. The standard input that it gets is no
// *os.File, so that nothing can be known of it but its bytes.
func opscopeReading(t *testing.T, stdin io.Reader, args ...string) result {
	t.Helper()
	var out, err bytes.Buffer
	code := run(t.Context(), args, streams{stdin, &out, &err})
	return result{out.String(), err.String(), code}
}

// good runs a command line that succeeds and has nothing to complain about, but for the
// secrets that it shows.
func good(t *testing.T, args ...string) string {
	t.Helper()
	r := opscope(t, args...)
	if slices.Contains(args, "--show-secrets") {
		if r.err != secretsShown+"\n" {
			t.Errorf("opscope %s: got %q, want %q", strings.Join(args, " "), r.err, secretsShown)
		}
		r.err = ""
	}
	if r.code != exitDone || r.err != "" {
		t.Fatalf("opscope %s: exit code %d\n%s", strings.Join(args, " "), r.code, r.err)
	}
	return r.out
}

// published is the JSON Schema that the tool publishes, compiled.
var published = sync.OnceValues(func() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(sink.JSONSchema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("opscope.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("opscope.json")
})

// objects parses NDJSON. Every line of it must be one object without duplicate
// keys, in valid UTF-8, as the published JSON Schema has it. In a hurry the race detector, for
// which that is most of the work, has one in ten compared with the schema.
func objects(t *testing.T, ndjson string) []map[string]any {
	t.Helper()
	s, err := published()
	if err != nil {
		t.Fatal(err)
	}
	if ndjson != "" && !strings.HasSuffix(ndjson, "\n") {
		t.Fatal("the last line has no end")
	}
	var list []map[string]any
	for line := range strings.Lines(ndjson) {
		v, err := strictJSON(line)
		if err == nil && (!raceDetector || !testing.Short() || len(list)%10 == 0) {
			err = s.Validate(v)
		}
		if err != nil {
			t.Fatalf("line %d: %v\n%s", len(list)+1, err, line)
		}
		list = append(list, v.(map[string]any))
	}
	return list
}

// strictJSON parses one object and refuses duplicate keys and what stands behind it.
func strictJSON(line string) (any, error) {
	if strings.ToValidUTF8(line, "") != line {
		return nil, errors.New("not valid UTF-8")
	}
	d := json.NewDecoder(strings.NewReader(line))
	v, err := strictValue(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something behind the object")
	}
	if _, ok := v.(map[string]any); !ok {
		return nil, errors.New("not an object")
	}
	return v, nil
}

func strictValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		object := map[string]any{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name := key.(string)
			if _, twice := object[name]; twice {
				return nil, fmt.Errorf("the key %q stands twice", name)
			}
			if object[name], err = strictValue(d); err != nil {
				return nil, err
			}
		}
		_, err = d.Token()
		return object, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := strictValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	}
	return token, nil
}

// records returns the objects that are records.
func records(objects []map[string]any) []map[string]any {
	var list []map[string]any
	for _, o := range objects {
		if o["type"] == "record" {
			list = append(list, o)
		}
	}
	return list
}

// firstDifference says where two texts part, for a failure that can be read.
func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		switch {
		case i >= len(g):
			return fmt.Sprintf("line %d: got the end, want\n%s", i+1, w[i])
		case i >= len(w):
			return fmt.Sprintf("line %d: want the end, got\n%s", i+1, g[i])
		case g[i] != w[i]:
			return fmt.Sprintf("line %d: got\n%s\nwant\n%s", i+1, g[i], w[i])
		}
	}
	return "no difference"
}
