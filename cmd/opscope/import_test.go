package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The table of imports: what a package, and what lies below it, may import of ours.
// The longest name counts. .golangci.yml says the same.
var importTable = map[string][]string{
	"opscope/schema/wire":            {},
	"opscope/reassembly":             {},
	"opscope/schema":                 {"opscope/schema/wire"},
	"opscope/dissect":                {"opscope/schema", "opscope/schema/wire", "opscope/reassembly"},
	"opscope/dissect/capture":        {"opscope/dissect", "opscope/schema", "opscope/schema/wire"},
	"opscope/dissect/filter":         {"opscope/dissect", "opscope/schema", "opscope/schema/wire"},
	"opscope/dissect/jsonscan":       {},
	"opscope/dissect/sink":           {"opscope/dissect", "opscope/schema", "opscope/schema/wire", "opscope/dissect/filter", "opscope/dissect/jsonscan"},
	"opscope/dissect/verify":         {"opscope/dissect", "opscope/schema", "opscope/schema/wire", "opscope/dissect/filter"},
	"opscope/dissect/transcript":     {"opscope/dissect/jsonscan"},
	"opscope/dissect/wulfram":        protocolImports,
	"opscope/dissect/netrek":         protocolImports,
	"opscope/dissect/dplay":          protocolImports,
	"opscope/dissect/lotr2":          append(slices.Clip(protocolImports), "opscope/dissect/dplay"),
	"opscope/dissect/mmo":            protocolImports,
	"opscope/dissect/protocols":      {"opscope/dissect", "opscope/dissect/wulfram", "opscope/dissect/netrek", "opscope/dissect/lotr2", "opscope/dissect/mmo"},
	"opscope/cmd/refserver/internal": {"opscope/schema", "opscope/schema/wire", "opscope/reassembly"}, // never dissect
	"opscope/cmd":                    nil,                                                             // everything
}

var protocolImports = []string{"opscope/dissect", "opscope/schema", "opscope/schema/wire", "opscope/reassembly"}

// The edges that need a third-party package; no other package may import it.
var edges = map[string][]string{
	"github.com/spf13/cobra":                {"opscope/cmd"},
	"github.com/fatih/color":                {"opscope/dissect/sink"},
	"github.com/olekukonko/tablewriter":     {"opscope/dissect/sink"},
	"github.com/google/gopacket":            {"opscope/dissect", "opscope/dissect/capture", "opscope/dissect/sink", "opscope/cmd/refserver/internal"},
	"github.com/klauspost/compress":         {"opscope/dissect/capture", "opscope/dissect/transcript"},
	"github.com/goccy/go-yaml":              {"opscope/schema", "opscope/dissect/verify", "opscope/cmd", "opscope/cmd/refserver/internal"},
	"github.com/bufbuild/protocompile":      {"opscope/schema"},
	"github.com/expr-lang/expr":             {"opscope/dissect/filter"},
	"github.com/schollz/progressbar":        {"opscope/cmd"},
	"golang.org/x/net":                      {"opscope/dissect/capture"},
	"golang.org/x/sys":                      {"opscope/dissect/capture"},
	"google.golang.org/protobuf":            {"opscope/schema", "opscope/dissect/mmo"},
	"gonum.org/v1/plot":                     {"opscope/cmd"},
	"github.com/santhosh-tekuri/jsonschema": {}, // tests only
	"github.com/creack/pty":                 {}, // tests only
}

// TestImports proves that imports point one way.
func TestImports(t *testing.T) {
	for _, p := range goList(t) {
		home := longest(p.ImportPath)
		if home == "" {
			t.Errorf("%s is not in the table of imports", p.ImportPath)
			continue
		}
		for _, i := range p.Imports {
			if to := longest(i); to != "" && to != home && home != "opscope/cmd" && !slices.Contains(importTable[home], to) {
				t.Errorf("%s imports %s, which the table of imports does not allow", p.ImportPath, i)
			}
			if module, who := edgeOf(i); module != "" && !slices.Contains(who, home) {
				t.Errorf("%s imports %s, which belongs to %v alone", p.ImportPath, i, who)
			}
		}
		for _, i := range slices.Concat(p.TestImports, p.XTestImports) {
			if home == "opscope/cmd/refserver/internal" && within(i, "opscope/dissect") {
				t.Errorf("a test of %s imports %s: the witness is to be independent", p.ImportPath, i)
			}
		}
	}
}

// edgeOf returns the module of the list that a package belongs to, with those who may
// import it.
func edgeOf(pkg string) (module string, who []string) {
	for m, w := range edges {
		if within(pkg, m) {
			return m, w
		}
	}
	return "", nil
}

// longest returns the entry of the table that a package falls under.
func longest(pkg string) string {
	found := ""
	for name := range importTable {
		if within(pkg, name) && len(name) > len(found) {
			found = name
		}
	}
	return found
}

// listed is what go list tells of a package.
type listed struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func goList(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "opscope/...")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, complaint.Bytes())
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// within reports whether a package is another one, or lies below it.
func within(pkg, top string) bool { return pkg == top || strings.HasPrefix(pkg, top+"/") }
