package sink

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"opscope/dissect"
	"opscope/schema"
)

// table returns a table with the entries of values by key.
func table(d *schema.TableDecl, o schema.Origin, values map[int64]float64) *schema.Table {
	t := schema.NewTable(d)
	for k, v := range values {
		t.Set(k, schema.Entry{Values: []float64{v}, Origin: o})
	}
	return t
}

func TestRowsOfATable(t *testing.T) {
	modes := &schema.TableDecl{
		Name: "modes", Key: "opcode", Columns: []string{"mode"}, KeyEnum: opcodes,
		Enum: schema.NewEnum("mode", []schema.Name{{Value: 1, Name: "latest"}}),
	}
	masks := &schema.TableDecl{
		Name: "mask", Key: "kind", Columns: []string{"mask"}, Flags: mask,
		KeyEnum: schema.NewEnum("kind", []schema.Name{{Value: 2, Name: "tank"}}),
	}
	partly := table(masks, schema.Default, map[int64]float64{0: 0, 1: 0, 2: 0, 3: 0, 4: 0, 6: 0, 7: 0, 8: 1, 9: 1})
	partly.Set(4, schema.Entry{Values: []float64{45}, Origin: schema.Learned, Packet: 12}) // 0x2d
	stated := table(modes, schema.Default, nil)
	stated.Set(0x35, schema.Entry{Values: []float64{1}, Texts: []string{"01"}, Origin: schema.Default})
	for _, c := range []struct {
		name  string
		table *schema.Table
		want  []string
	}{
		{"opcodes are written as everywhere, and values named", table(modes, schema.User, map[int64]float64{0x35: 1, 0x05: 2}),
			[]string{"0x05|2|user", "0x35 VIEWPOINT_INFO|1 latest|user"}},
		{"equal defaults without names that follow each other share a row", partly,
			[]string{"0-1|0x00|default", "2 tank|0x00|default", "3|0x00|default", "4|0x2d definition bank=3 0x20|learned in packet 12",
				"6-7|0x00|default", "8-9|0x01 definition|default"}},
		{"what was learned does not", table(masks, schema.Learned, map[int64]float64{0: 0, 1: 0}), []string{"0|0x00|learned", "1|0x00|learned"}},
		{"a text as it stood in the schema, named too", stated, []string{"0x35 VIEWPOINT_INFO|01 latest|default"}},
		{"a range of opcodes", table(modes, schema.Default, map[int64]float64{0x0e: 1, 0x0f: 1, 0x10: 1}), []string{"0x0E-0x10|1 latest|default"}},
	} {
		var got []string
		for _, row := range (learned{LearnedTable: dissect.LearnedTable{Table: c.table}}).rows() {
			got = append(got, strings.Join(row, "|"))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestTableLinesEndWithTheirText(t *testing.T) {
	var b bytes.Buffer
	if err := WriteTable(&b, []string{"key", "value"}, [][]string{{"a", "long"}, {"longer", ""}}); err != nil {
		t.Fatal(err)
	}
	compare(t, b.String(), "key     value\na       long\nlonger\n")
}
