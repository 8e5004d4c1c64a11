package schema

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The vectors of ../shared have short and collected names of their own. This table
// says, for each message, which of our fields they mean.
var sharedNames = map[string]map[string]ours{
	"HELLO": {
		"subcommand": {to: "subcommand"}, "udp_port": {to: "udp_port"}, "host_count": {to: "host_count"}, "hosts": {to: "hosts"},
		"version": {to: "version"}, "key": {to: "key"}, "string_length": {textLength: "key"},
	},
	"LOGIN_STATUS": {"donor": {to: "donor"}, "code": {to: "code"}, "meaning": {named: "code"}},
	"BPS":          {"rate": {to: "rate"}, "approved": {to: "approved"}},
	"SHIP_STATUS":  {"ship_id": {to: "ship_id"}, "team": {to: "team"}, "name": {to: "name"}},
	"CARRYING_INFO": {
		"player_or_entity_id": {to: "id"}, "byte4": {to: "cargo_type"}, "byte5": {to: "has_uplink"}, "byte6": {to: "count"},
	},
	"UPLINK_INFO": {"team_index": {to: "team_index"}, "holder": {to: "holder"}, "state": {to: "state"}},
	"D_HANDSHAKE": {
		"timestamp": {to: "timestamp"}, "second_u32": {to: "connection_id"},
		"groups": {to: "groups", columns: []string{"name", "members"}}, "modes": {to: "modes", columns: []string{"opcode", "mode"}},
	},
	"D_ACK": {
		"subtype": {to: "subtype"}, "timestamp": {to: "timestamp"}, "acked_opcode": {to: "acked_opcode"},
		"acked_sequence": {to: "acked_sequence"},
	},
	"D_SET_START":    {"target_opcode": {to: "target_opcode"}, "start": {to: "start"}},
	"ACK2":           {"value": {to: "value"}},
	"INPUT_FEEDBACK": {"value": {to: "accumulator"}},
	"PING":           {"timestamp": {to: "timestamp"}},
	"PING_REQUEST":   {"ts": {to: "timestamp"}, "fb": {to: "accumulator"}},
	"UPDATE_STATS": {
		"player_id": {to: "player_id"}, "u32_2": {to: "u32_2"}, "u16": {spread: []string{"team", "stats[0]", "stats[1]", "stats[2]", "stats[3]"}},
		"team": {to: "team"}, "fixed": {to: "fixed"}, "u32_last": {to: "u32_last"},
	},
	"ACTION_UPDATE": {
		"count": {to: "count"}, "timestamp": {to: "timestamp"}, "second_u32": {to: "pending"},
		"changes": {to: "changes", columns: []string{"channel", "value"}},
	},
	"ACTION_DUMP":  {"timestamp": {to: "timestamp"}, "second_u32": {to: "pending"}, "values": {to: "values"}},
	"UPDATE_ARRAY": {"sequence": {to: "sequence"}, "local_state": {to: "local_state"}, "entities": {to: "entities", members: entityNames}},
	"VIEW_UPDATE": {
		"timestamp": {to: "timestamp"}, "sequence": {to: "sequence"}, "local_state": {to: "local_state"},
		"entities": {to: "entities", members: entityNames},
	},
	"TANK": {
		"sequence": {to: "sequence"}, "unit_type": {to: "unit_type"}, "net_id": {to: "net_id"}, "team": {to: "team"},
		"position": {to: "position"}, "rotation": {to: "rotation"},
		"local_state": {to: "local_state", members: map[string]ours{
			"weapon": {to: "weapon"}, "health_raw": {raw: "health"}, "energy_raw": {raw: "energy"},
		}},
	},
	"WORLD_STATS": {"map": {to: "map"}, "byte_a": {to: "byte_a"}, "byte_b": {to: "byte_b"}, "fixed": {to: "fixed"}},
	"GAME_CLOCK":  {"time": {to: "time"}, "flag": {to: "flag"}, "phase": {to: "phase"}, "duration_ms": {to: "duration_ms"}},
	"REINCARNATE": {"code": {to: "code"}, "message": {to: "message"}, "m": {to: "mode"}, "a": {to: "team"}, "b": {hidden: true}},
	"TRANSLATION": {
		"slots": {length: "entries"}, "slot_0": slot(0), "slot_1": slot(1), "slot_10": slot(10), "slot_16": slot(16),
		"slot_17": slot(17), "slot_18": slot(18),
	},
	"VIEWPOINT_INFO": {"entity_id": {to: "entity_id"}},
	"ROOT":           {"s": {to: "text"}},
	"LOGIN":          {"sub": {to: "subtype"}, "u": {to: "user"}, "p": {to: "password"}},
	"TEAM_INFO":      {"t": {to: "teams", columns: []string{"team", "strings"}}},
	"COMM_MESSAGE": {
		"t": {to: "type"}, "src": {to: "source_id"}, "scope": {to: "scope"}, "dst": {to: "recipient"}, "s": {to: "text"},
	},
	"BIRTH_NOTICE":  {"p": {to: "player_id"}, "e": {to: "entity_id"}},
	"ACK1":          {"e": {to: "entities", columns: []string{"id", "timestamps"}}},
	"DROP_REQUEST":  {"v": {to: "value"}},
	"DOCKING":       {"seq": {to: "sequence"}, "id": {to: "entity"}, "on": {to: "docked"}},
	"DEATH_NOTICE":  {"id": {to: "id"}},
	"DELETE_OBJECT": {"ts": {to: "time"}, "o": {to: "objects", columns: []string{"id", "effect"}}},
}

var entityNames = map[string]ours{
	"id": {to: "id"}, "manned": {to: "manned"}, "mask": {to: "mask"}, "bank": {to: "bank"}, "type": {to: "type"},
	"team_fields": {spread: []string{"team_a", "team_b"}}, "snap": {to: "snap"},
	"position": {to: "position"}, "velocity": {to: "velocity"}, "rotation": {to: "rotation"}, "health": {to: "health"},
}

func slot(i int) ours {
	return ours{to: fmt.Sprintf("entries[%d]", i), columns: []string{"a", "unused", "b", "max", "range"}}
}

// ours says where a collected value is to be found.
type ours struct {
	to         string          // the field that holds it
	columns    []string        // the members of a struct, which the collection lists without names
	members    map[string]ours // the members of a struct, or of each in a list
	spread     []string        // the fields of which it is a list
	textLength string          // of this field, with its NUL
	named      string          // the name that the enum of this field gives
	raw        string          // the bits of this field
	length     string          // of this list
	hidden     bool            // a field without meaning, which the round trip checks
}

type sharedVector struct {
	Name, Transport, Direction, Hex, Note, Context string
	Fields                                         map[string]any
}

func (v *sharedVector) contexts() (names []string) {
	for _, c := range []struct{ in, name string }{
		{"QT-CPP", "QT-CPP"}, {"QT-ES", "QT-ES"}, {"client table", "client modes"}, {"0x02 in mode 1", "server acknowledgements in mode 1"},
	} {
		if strings.Contains(v.Context, c.in) || c.name == "client modes" && strings.Contains(v.Note, c.in) {
			names = append(names, c.name)
		}
	}
	return names
}

func TestSharedVectors(t *testing.T) {
	var all []*sharedVector
	readJSON(t, shared(t, "vectors/wulfram.json"), &all)
	p := wulfram(t)
	for _, v := range all {
		t.Run(v.Name, func(t *testing.T) {
			if strings.Contains(v.Note, "UNCONFIRMED") {
				t.Skip("its sources contradict each other")
			}
			data, err := hex.DecodeString(v.Hex)
			if err != nil {
				t.Fatal(err)
			}
			for _, by := range (&vector{Direction: v.Direction}).senders() {
				v.check(t, walk(t, p, v.Transport, by, v.contexts(), data))
			}
		})
	}
}

func (v *sharedVector) check(t *testing.T, all []*decoded) {
	t.Helper()
	switch {
	case v.Fields["error"] != nil:
		const want = "wulfram/envelope.length at byte 0 of 2: want a length from 3 to 10242, got 2 (malformed)"
		if len(all) != 1 || all[0].err == nil || all[0].err.Error() != want {
			t.Errorf("got %v, want %s (%v)", all[0].err, want, v.Fields["error"])
		}
	case v.Fields["frames"] != nil:
		list := v.Fields["frames"].([]any)
		for i, d := range all {
			f := list[i].(map[string]any)
			got := hex.EncodeToString(d.data[d.envelope.length.bits/8:])
			if d.err != nil || float64(d.frame.Length) != f["size"] || got != f["payload"] {
				t.Errorf("frame %d: got length %d, %s (%v), want %v", i, d.frame.Length, got, d.err, f)
			}
		}
		if len(all) != len(list) {
			t.Errorf("got %d frames, want %d", len(all), len(list))
		}
	case v.Fields["records"] != nil:
		list := v.Fields["records"].([]any)
		if len(all) != len(list) {
			t.Fatalf("got %d records, want %d", len(all), len(list))
		}
		for i, d := range all {
			v.compare(t, d, list[i].(map[string]any))
		}
	default:
		if len(all) != 1 {
			t.Fatalf("got %d records, want 1", len(all))
		}
		v.compare(t, all[0], v.Fields)
	}
}

// compare compares a record with what was collected of it.
func (v *sharedVector) compare(t *testing.T, d *decoded, fields map[string]any) {
	t.Helper()
	if d.err != nil {
		t.Fatalf("%v\n%s", d.err, hex.Dump(d.data))
	}
	tolerance := map[string]float64{}
	off := 0.0
	for name, value := range v.Fields {
		if of, ok := strings.CutPrefix(name, "tolerance_"); ok {
			tolerance[of] = value.(float64)
		} else if name == "tolerance" {
			off = value.(float64)
		}
	}
	rest := maps.Clone(fields)
	for _, of := range []struct {
		name string
		got  int
	}{
		{"size", d.frame.Length}, {"length", d.frame.Length}, {"sequence", d.frame.Seq}, {"total_bytes", len(d.data)},
		{"rest", len(d.data) - d.end}, {"opcode", int(d.frame.Opcode)}, {"mode", d.mode},
	} {
		if of.name == "sequence" && d.frame.Seq < 0 || of.name == "mode" && d.mode < 0 {
			continue // a field of the body
		}
		if want, ok := rest[of.name]; ok && float64(of.got) != want {
			t.Errorf("%s: got %d, want %v", of.name, of.got, want)
		}
		delete(rest, of.name)
	}
	if body, ok := rest["body"]; ok && body == "" && len(d.data) > d.frame.Head {
		t.Errorf("got a body of %d bytes, want none", len(d.data)-d.frame.Head)
	}
	maps.DeleteFunc(rest, func(name string, _ any) bool { return name == "body" || strings.HasPrefix(name, "tolerance") })
	names := sharedNames[d.message]
	for _, line := range compareNames(&d.tree, 0, len(d.tree.Nodes), rest, names, tolerance, off) {
		t.Errorf("%s.%s\n%s", d.message, line, hex.Dump(d.data))
	}
}

// compareNames compares the members of a struct with a collection of them.
func compareNames(t *Tree, from, to int, want map[string]any, names map[string]ours, tolerance map[string]float64, off float64) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		o, ok := names[name]
		if !ok {
			out = append(out, name+": means no field that this test knows")
			continue
		}
		for _, line := range o.compare(t, from, to, want[name], tolerance, off) {
			out = append(out, name+": "+line)
		}
	}
	return out
}

func (o ours) compare(t *Tree, from, to int, want any, tolerance map[string]float64, off float64) (out []string) {
	switch {
	case o.hidden:
		return nil
	case o.spread != nil:
		for i, path := range o.spread {
			out = append(out, diff(path, value(t, at(t, from, to, path)), want.([]any)[i], tolerance, off, false)...)
		}
		return out
	case o.textLength != "":
		return diff(o.textLength, float64(t.Nodes[at(t, from, to, o.textLength)].BodyLen), want, nil, 0, false)
	case o.named != "":
		n := &t.Nodes[at(t, from, to, o.named)]
		word := strings.NewReplacer(" for ", "_", " ", "_").Replace(want.(string))
		return diff(o.named, n.Field.Enum.NameOf(n.Num), word, nil, 0, false)
	case o.raw != "":
		return diff(o.raw, float64(t.Nodes[at(t, from, to, o.raw)].Raw), want, nil, 0, false)
	case o.length != "":
		return diff(o.length, float64(len(value(t, at(t, from, to, o.length)).([]any))), want, nil, 0, false)
	}
	i := at(t, from, to, o.to)
	if i < 0 {
		return []string{"got no " + o.to}
	}
	if own, ok := tolerance[o.to]; ok {
		off = own
	}
	if o.members == nil {
		return diff(o.to, value(t, i), o.shape(want), tolerance, off, true)
	}
	if one, ok := want.(map[string]any); ok {
		return compareNames(t, i+1, t.Next(i), one, o.members, tolerance, off)
	}
	for k, w := 0, want.([]any); k < len(w); k++ {
		e := at(t, from, to, o.to+"["+strconv.Itoa(k)+"]")
		out = append(out, compareNames(t, e+1, t.Next(e), w[k].(map[string]any), o.members, tolerance, off)...)
	}
	return out
}

// shape gives names to the columns of a collected list, and numbers their values.
func (o ours) shape(want any) any {
	switch w := want.(type) {
	case string:
		if n, err := strconv.ParseUint(w, 0, 64); err == nil && strings.HasPrefix(w, "0x") {
			return float64(n)
		}
	case map[string]any:
		if o.columns == nil {
			return w
		}
		var rows []any // a mapping of the first column to the second
		for _, key := range slices.Sorted(maps.Keys(w)) {
			rows = append(rows, map[string]any{o.columns[0]: o.shape(key), o.columns[1]: w[key]})
		}
		return rows
	case []any:
		if o.columns == nil {
			return w
		}
		if _, nested := w[0].([]any); !nested {
			row := map[string]any{}
			for i, x := range w {
				row[o.columns[i]] = x
			}
			return row
		}
		var rows []any
		for _, x := range w {
			rows = append(rows, o.shape(x))
		}
		return rows
	}
	return want
}

// at returns the index of a member by its path, such as "entries[3]", or -1.
func at(t *Tree, from, to int, path string) int {
	name, index, _ := strings.Cut(strings.TrimSuffix(path, "]"), "[")
	i := t.Find(from, to, name)
	if k, err := strconv.Atoi(index); err == nil && i >= 0 {
		e := i + 1
		for range k {
			e = t.Next(e)
		}
		return e
	}
	return i
}
