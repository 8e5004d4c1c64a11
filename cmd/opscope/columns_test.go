package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// leavesOf collects the values of an object by path, arrays taken apart. Outside of fields
// an empty text stands for nothing.
func leavesOf(v any, path string, found map[string][]string) {
	switch v := v.(type) {
	case map[string]any:
		for k, m := range v {
			switch {
			case path == "":
				leavesOf(m, k, found)
			case regexp.MustCompile(`^[A-Za-z_]\w*$`).MatchString(k):
				leavesOf(m, path+"."+k, found)
			default:
				leavesOf(m, path+`["`+k+`"]`, found)
			}
		}
	case []any:
		for _, e := range v {
			leavesOf(e, path, found)
		}
	case nil:
	default:
		if text := fmt.Sprint(v); text != "" || strings.HasPrefix(path, "fields") {
			found[path] = append(found[path], text)
		}
	}
}

// TestColumns writes every key and field of every capture as a column, and wants what
// NDJSON has there.
func TestColumns(t *testing.T) {
	files, err := filepath.Glob("../../pcaps/*/*.pcapng")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	plain := regexp.MustCompile(`^[ -\[\]-~]*$`)
	cells := 0
	files = thinned(files)
	for _, file := range files {
		var rows []map[string][]string
		all := map[string]bool{}
		for line := range strings.Lines(good(t, "decode", "-T", "json", file)) {
			d := json.NewDecoder(strings.NewReader(line))
			d.UseNumber()
			var o map[string]any
			if err := d.Decode(&o); err != nil {
				t.Fatal(err)
			}
			row := map[string][]string{}
			leavesOf(o, "", row)
			rows = append(rows, row)
			for path := range row {
				all[path] = true
			}
		}
		paths := slices.Sorted(maps.Keys(all))
		var args []string
		for _, path := range paths {
			args = append(args, "-e", path)
		}
		got, err := csv.NewReader(strings.NewReader(good(t, slices.Concat([]string{"decode", "-T", "csv"}, args, []string{file})...))).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(got) != len(rows)+1 || !slices.Equal(got[0], paths) {
			t.Fatalf("%s: %d rows of %d", file, len(got), len(rows)+1)
		}
		for i, row := range rows {
			for k, path := range paths {
				want := row[path]
				if path == "text" || path == "reason" || path == "state" || path == "code" || path == "server" || path == "client" { // a key, or a field
					want = append(want[:len(want):len(want)], row["fields."+path]...)
				}
				for above := range row { // what is masked is masked as a whole
					if len(want) == 0 && strings.HasPrefix(path, above) && slices.Equal(row[above], []string{"***"}) {
						want = row[above]
					}
				}
				if text := strings.Join(want, ","); plain.MatchString(text) && got[i+1][k] != text {
					t.Fatalf("%s, row %d, %s: got %q, want %q", file, i+1, path, got[i+1][k], text)
				}
				cells++
			}
		}
	}
	if cells < 1500*len(files) {
		t.Errorf("only %d cells", cells)
	}
}

// TestColumnShapes writes the same rows in each shape.
func TestColumnShapes(t *testing.T) {
	args := []string{"-Y", "message == LOGIN", "-e", "dir", "-e", "user", "-e", "password", "-e", "size", sessionCapture}
	fields := good(t, append([]string{"decode", "-T", "fields"}, args...)...)
	if !strings.HasPrefix(fields, "c2s\t") || strings.Count(fields, "\t***\t") != strings.Count(fields, "\n") {
		t.Errorf("fields:\n%s", fields)
	}
	if got := good(t, append([]string{"decode", "-T", "tsv"}, args...)...); got != "dir\tuser\tpassword\tsize\n"+fields {
		t.Errorf("tsv:\n%s", got)
	}
	if got := good(t, append([]string{"decode", "-T", "csv"}, args...)...); got != "dir,user,password,size\r\n"+strings.NewReplacer("\t", ",", "\n", "\r\n").Replace(fields) {
		t.Errorf("csv:\n%s", got)
	}
	table := good(t, append([]string{"decode", "-T", "table"}, args...)...)
	var squeezed []string
	for line := range strings.Lines(table) {
		squeezed = append(squeezed, strings.Join(strings.Fields(line), "\t"))
	}
	if got := strings.Join(squeezed, "\n") + "\n"; got != "dir\tuser\tpassword\tsize\n"+fields {
		t.Errorf("table:\n%s", table)
	}
	ndjson := writeTemp(t, "all.ndjson", []byte(good(t, "decode", "-T", "json", sessionCapture)))
	again := slices.Concat([]string{"decode", "-T", "fields"}, args[:len(args)-1], []string{ndjson})
	if got := good(t, again...); got != fields {
		t.Errorf("out of NDJSON:\n%s", got)
	}
	if got := good(t, "decode", "-T", "fields", "-e", "entity_id", sessionCapture); strings.Contains(got, "\n\n") || got == "" {
		t.Errorf("records without the field have a row:\n%s", got)
	}
}

// TestColumnUsage wants exit code 2 before anything is opened.
func TestColumnUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"-e: unknown field \"entity_di\" (did you mean entity_id?) (1:1)\n | entity_di\n | ^": {"-T", "csv", "-e", "entity_di"},
		"entities is a struct":                       {"-T", "fields", "-e", "entities"},
		"want a key or a field":                      {"-T", "fields", "-e", "'x'"},
		"-T fields wants a field":                    {"-T", "fields"},
		"-e goes with -T fields":                     {"-e", "size"},
		"try one of: text json fields tsv csv table": {"-T", "xml"},
		"--tables prints text, not csv":              {"-T", "csv", "--tables"},
	} {
		r := opscope(t, append(append([]string{"decode"}, args...), "nowhere.pcapng")...)
		if r.code != exitUsage || !strings.Contains(r.err, want) || r.out != "" {
			t.Errorf("%v: exit code %d, %q, want %q", args, r.code, r.err, want)
		}
	}
}
