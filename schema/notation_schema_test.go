package schema

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// jsonSchema compiles notation.schema.json.
func jsonSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(NotationSchema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("notation.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("notation.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// documents returns the documents of a YAML file as JSON values. Keys of any kind
// become strings.
func documents(t *testing.T, data []byte) (docs []any) {
	t.Helper()
	d := yaml.NewDecoder(bytes.NewReader(data), yaml.UseOrderedMap())
	for {
		var v any
		if err := d.Decode(&v); err == io.EOF {
			return docs
		} else if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.MarshalWithOptions(v, yaml.JSON())
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		docs = append(docs, doc)
	}
}

func TestTheJSONSchemaAcceptsWhatLoads(t *testing.T) {
	s := jsonSchema(t)
	check := func(name string, data []byte) {
		for i, doc := range documents(t, data) {
			if err := s.Validate(doc); err != nil {
				t.Errorf("%s, document %d: %v", name, i, err)
			}
		}
	}
	err := fs.WalkDir(builtin, "protocols", func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		data, err := builtin.ReadFile(path)
		check(path, data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range notation {
		if c.fields != "[]" {
			check(c.name, []byte(inFields(c.head, c.fields)))
		}
	}
	for name, text := range map[string]string{"sized": sized, "placed": placed, "stateful": stateful, "quantised": quantised} {
		check(name, []byte(text))
	}
	data, err := os.ReadFile(shared(t, "notation.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	check("notation.yaml", data)
}

func TestTheJSONSchemaRefusesWhatDoesNot(t *testing.T) {
	s := jsonSchema(t)
	for name, text := range map[string]string{
		"an unknown key":                `{"protocl": "test"}`,
		"an unknown key of a packet":    `{"packets": {"A": {"opcode": 1, "filds": []}}}`,
		"an unknown key of a field":     `{"packets": {"A": {"opcode": 1, "fields": [{"a": "u8", "iff": "b"}, {"A B": 1}]}}}`,
		"a packet without an opcode":    `{"packets": {"A": {"fields": []}}}`,
		"an opcode that is a word":      `{"packets": {"A": {"opcode": "x", "fields": []}}}`,
		"two bodies":                    `{"packets": {"A": {"opcode": 1, "fields": [], "proto": "M"}}}`,
		"from beside client":            `{"packets": {"A": {"opcode": 1, "from": "client", "client": []}}}`,
		"one alternative":               `{"packets": {"A": {"opcode": 1, "alternatives": [{"source": "x", "fields": []}]}}}`,
		"an alternative without source": `{"packets": {"A": {"opcode": 1, "alternatives": [{"fields": []}, {"fields": []}]}}}`,
		"an unknown confidence":         `{"confidence": "sure"}`,
		"an unknown order":              `{"order": "big"}`,
		"an unknown sender":             `{"packets": {"A": {"opcode": 1, "from": "servr", "fields": []}}}`,
		"an unknown transport":          `{"packets": {"A": {"opcode": 1, "via": ["sctp"], "fields": []}}}`,
		"a port beyond 65535":           `{"ports": [{"tcp": 65536}]}`,
		"a switch without cases":        `{"packets": {"A": {"opcode": 1, "fields": [{"switch": "a"}]}}}`,
		"a case that ends in a comma":   `{"packets": {"A": {"opcode": 1, "fields": [{"switch": "a", "cases": {"x, ": []}}]}}}`,
		"an enum of words":              `{"enums": {"e": {"x": "y"}}}`,
		"flags that are no bits":        `{"flags": {"f": {"-1": "y"}}}`,
		"a truth for an expression":     `{"packets": {"A": {"opcode": 1, "fields": [{"a": "u8", "if": true}]}}}`,
		"an unknown framing":            `{"framings": {"tcp": {"kind": "lines"}}}`,
		"records without modes":         `{"framings": {"udp": {"kind": "records", "max": 1}}}`,
		"an unknown redaction":          `{"packets": {"A": {"opcode": 1, "redact": {"a": "hidden"}, "fields": [{"a": "u8"}]}}}`,
		"a question without one":        `{"open": [{"answer": "yes"}]}`,
	} {
		var doc any
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		if s.Validate(doc) == nil {
			t.Errorf("%s: accepted %s", name, text)
		}
	}
}
