package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// foreign is the folder ../shared beside the checkout, seen from this package: it
// holds captures that others made, with what an independent decoder found in them.
const foreign = "../../../shared/captures/"

// foreignCaptures returns the captures of a protocol in the folder ../shared beside
// the checkout, and skips the test where there is no such folder.
func foreignCaptures(t *testing.T, protocol string) []string {
	t.Helper()
	var files []string
	for _, ext := range []string{"pcap", "pcapng"} {
		f, err := filepath.Glob(foreign + protocol + "/*." + ext)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f...)
	}
	if len(files) == 0 {
		t.Skip("needs the folder ../shared beside the checkout, with captures that do not belong into the repository")
	}
	slices.Sort(files)
	return files
}

// foreignCapture returns one of them.
func foreignCapture(t *testing.T, protocol, file string) string {
	t.Helper()
	files := foreignCaptures(t, protocol)
	i := slices.IndexFunc(files, func(f string) bool { return filepath.Base(f) == file })
	if i < 0 {
		t.Fatalf("no %s among the captures of %s", file, protocol)
	}
	return files[i]
}

// truthFile returns the file of an independent decoder beside a capture.
func truthFile(capture, ext string) string {
	return strings.TrimSuffix(capture, filepath.Ext(capture)) + ext
}

// TestWulframTruth compares each record of the foreign captures with what an
// independent decoder counted.
func TestWulframTruth(t *testing.T) {
	for _, capture := range foreignCaptures(t, "wulfram") {
		t.Run(filepath.Base(capture), func(t *testing.T) {
			got := records(objects(t, good(t, "-T", "json", capture)))
			want := readTruth(t, truthFile(capture, ".records.jsonl"))
			if len(got) != len(want) {
				t.Errorf("got %d records, want %d", len(got), len(want))
			}
			for i := range min(len(got), len(want)) {
				if t.Failed() {
					return // the records behind are most likely shifted
				}
				compareRecord(t, got[i], want[i])
				compareAcks(t, got[i], want[i], want)
			}
		})
	}
}

func readTruth(t *testing.T, file string) []map[string]any {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	var list []map[string]any
	for lines.Scan() {
		var v map[string]any
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// compareRecord compares a record of ours with one of the truth.
func compareRecord(t *testing.T, got, want map[string]any) {
	t.Helper()
	same := func(what string, g, w any) {
		t.Helper()
		if !equal(g, w) {
			t.Errorf("record %v (%v in packet %v), %s: got %v, want %v", got["n"], want["message"], want["packets"], what, g, w)
		}
	}
	for _, key := range []string{"packets", "session", "dir", "transport", "src", "dst", "opcode", "message", "size"} {
		same(key, got[key], want[key])
	}
	envelope, _ := got["envelope"].(map[string]any)
	for _, key := range []string{"mode", "seq", "length"} {
		same("envelope."+key, envelope[key], want[key])
	}
	if want["mode_origin"] != "guessed" { // else it is the packet that the guess was read off
		same("envelope.learned_in", envelope["learned_in"], want["learned_in"])
	}
	same("envelope.prefixed", envelope["prefixed"], want["prefixed"])
	origin := map[any]any{"assumed": "default", nil: nil}
	if w, ok := origin[want["mode_origin"]]; ok {
		same("envelope.origin", envelope["origin"], w)
	} else {
		same("envelope.origin", envelope["origin"], want["mode_origin"])
	}
	ack, _ := got["ack"].(map[string]any)
	same("ack.state", ack["state"], want["ack"])
	same("ack.by", ack["by"], want["acked_by"])

	undecoded, _ := want["undecoded"].(float64)
	trailing, _ := want["trailing"].(float64)
	same("bytes in rest", float64(len(got["rest"].(string))/2), undecoded+trailing)
	same("error", got["error"], nil)
	same("note unknown_body", has(got, "unknown_body"), want["body"] == "unknown")
	same("note assumed_context", has(got, "assumed_context"), want["context"] == "missing")
	same("note late_context", has(got, "late_context"), want["context"] == "late")
	same("note role_guessed", has(got, "role_guessed"), false)

	fields := got["fields"].(map[string]any)
	for name, w := range want["fields"].(map[string]any) {
		same(name, collected(fields, name), w)
	}
	if assumed, ok := want["assumed"].(map[string]any); ok {
		for name, w := range assumed {
			same("assumed "+name, collected(fields, name), w)
		}
	}
}

// compareAcks compares what an acknowledgement names: a record, or what it answers.
func compareAcks(t *testing.T, got, want map[string]any, all []map[string]any) {
	t.Helper()
	acks, _ := got["acks"].(map[string]any)
	state, named := any(nil), any(nil)
	if w, ok := want["acks"].(map[string]any); ok {
		state, named = w["state"], w["record"]
	} else if w, ok := want["answers"]; ok {
		state, named = "new", w
	}
	if state == "unknown" && acks["state"] == "earlier" { // it is known to be from before the capture
		state = "earlier"
	}
	if acks["state"] != state {
		t.Errorf("record %v acknowledges: got %v, want %v", got["n"], acks, state)
	}
	i, ok := named.(float64)
	if !ok {
		return
	}
	record := all[int(i)]
	packets := record["packets"].([]any)
	if acks["message"] != record["message"] || !equal(acks["packet"], packets[len(packets)-1]) || !equal(acks["seq"], record["seq"]) && record["seq"] != nil {
		t.Errorf("record %v acknowledges %v, want %v %v in packet %v", got["n"], acks, record["message"], record["seq"], packets)
	}
}

// has reports whether a record of ours carries a note.
func has(record map[string]any, code string) bool {
	return slices.ContainsFunc(record["notes"].([]any), func(n any) bool { return n.(map[string]any)["code"] == code })
}

// The names of the truth that stand for more than one field, or for members in a
// list without their names.
var shortNames = map[string]struct {
	field   string
	members []string
}{
	"teams":    {"teams", []string{"team", "strings"}},
	"groups":   {"groups", []string{"name", "members"}},
	"modes":    {"modes", []string{"opcode", "mode"}},
	"changes":  {"changes", []string{"channel", "value"}},
	"objects":  {"objects", []string{"id", "effect"}},
	"entities": {"entities", []string{"id", "timestamps"}}, // of ACK1
}

// collected returns what the truth calls by a name from the fields of a record.
func collected(fields map[string]any, name string) any {
	entities, _ := fields["entities"].([]any)
	local, _ := fields["local_state"].(map[string]any)
	switch name {
	case "entity_count":
		return fields["count"]
	case "entity_ids":
		return each(entities, "id")
	case "entity_masks":
		return each(entities, "mask")
	case "first_position", "first_rotation":
		for _, e := range entities {
			if v, ok := e.(map[string]any)[strings.TrimPrefix(name, "first_")]; ok {
				return v
			}
		}
		return nil
	case "weapon":
		return local["weapon"]
	case "local_health":
		return local["health"]
	case "local":
		return pick(local, "weapon", "health", "energy")
	}
	if slot, ok := strings.CutPrefix(name, "entry_"); ok {
		var i int
		if _, err := fmt.Sscan(slot, &i); err != nil {
			return err
		}
		return row(fields["entries"].([]any)[i], "a", "unused", "b", "max", "range")
	}
	if s, ok := shortNames[name]; ok {
		list, _ := fields[s.field].([]any)
		if name == "entities" && len(list) > 0 && list[0].(map[string]any)["mask"] != nil {
			return list // of an update, by their names
		}
		var rows []any
		for _, v := range list {
			rows = append(rows, row(v, s.members...))
		}
		return rows
	}
	return fields[name]
}

func each(list []any, name string) []any {
	values := []any{}
	for _, v := range list {
		values = append(values, v.(map[string]any)[name])
	}
	return values
}

func row(v any, names ...string) []any {
	var values []any
	for _, name := range names {
		values = append(values, v.(map[string]any)[name])
	}
	return values
}

func pick(v map[string]any, names ...string) map[string]any {
	some := map[string]any{}
	for _, name := range names {
		some[name] = v[name]
	}
	return some
}

// equal compares two JSON values; numbers may differ by what six decimals hide.
func equal(got, want any) bool {
	switch w := want.(type) {
	case float64:
		g, ok := got.(float64)
		return ok && math.Abs(g-w) <= 1e-6*max(1, math.Abs(w))
	case []any:
		g, ok := got.([]any)
		return ok && slices.EqualFunc(g, w, equal)
	case map[string]any:
		g, ok := got.(map[string]any)
		return ok && maps.EqualFunc(g, w, equal)
	}
	return reflect.DeepEqual(got, want)
}

// TestWulframCounts compares the counts per flow, and what sessions learned, with
// the truth.
func TestWulframCounts(t *testing.T) {
	for _, capture := range foreignCaptures(t, "wulfram") {
		t.Run(filepath.Base(capture), func(t *testing.T) {
			var truth wulframTruth
			data, err := os.ReadFile(truthFile(capture, ".truth.json"))
			if err == nil {
				err = json.Unmarshal(data, &truth)
			}
			if err != nil {
				t.Fatal(err)
			}
			truth.compare(t, objects(t, good(t, "-T", "json", "--summary", capture)))
			truth.compareTables(t, good(t, "--tables", capture))
		})
	}
}

// wulframTruth is what a *.truth.json says.
type wulframTruth struct {
	Packets  int
	Records  int
	Sessions []struct {
		Session     int
		TCPClient   string `json:"tcp_client"`
		Translation *int   `json:"translation_in"`
		Behavior    *int   `json:"behavior_in"`
		Handshake   struct {
			Client *int `json:"c2s"`
			Server *int `json:"s2c"`
		} `json:"handshake_in"`
	}
	Flows []struct {
		Transport string
		Client    string
		Session   int
		C2S       map[string]int
		S2C       map[string]int
		Modes     map[string]map[string]int
		Undecoded map[string]int   `json:"undecoded_bytes"`
		Gaps      map[string][]any `json:"gaps"`
	}
	UnknownBodies int `json:"records_with_unknown_body"`
}

func (w *wulframTruth) compare(t *testing.T, all []map[string]any) {
	t.Helper()
	summary := all[len(all)-1]
	gaps, undecoded := 0, 0
	for _, f := range w.Flows {
		for _, side := range []struct {
			dir   string
			named map[string]int
		}{{"c2s", f.C2S}, {"s2c", f.S2C}} {
			messages, modes := map[string]int{}, map[string]int{}
			for _, r := range records(all) {
				end := r["src"]
				if side.dir == "s2c" {
					end = r["dst"]
				}
				if r["dir"] != side.dir || r["transport"] != f.Transport || end != f.Client {
					continue
				}
				messages[r["message"].(string)]++
				if f.Transport == "udp" {
					modes[fmt.Sprint(r["envelope"].(map[string]any)["mode"])]++
				}
			}
			if !maps.Equal(messages, side.named) {
				t.Errorf("%s %s of %s: got %v, want %v", f.Transport, side.dir, f.Client, messages, side.named)
			}
			if want := f.Modes[side.dir]; !maps.Equal(modes, want) && len(modes)+len(want) > 0 {
				t.Errorf("modes of %s %s of %s: got %v, want %v", f.Transport, side.dir, f.Client, modes, want)
			}
			gaps += len(f.Gaps[side.dir])
			undecoded += f.Undecoded[side.dir]
		}
	}
	for key, want := range map[string]int{
		"packets": w.Packets, "gaps": gaps, "undecoded_bytes": undecoded, "unknown_bodies": w.UnknownBodies, "other_flows": 0, "conflicts": 0,
	} {
		if summary[key] != float64(want) {
			t.Errorf("%s: got %v, want %d", key, summary[key], want)
		}
	}
	if got := summary["records"].(map[string]any)["wulfram"]; got != float64(w.Records) {
		t.Errorf("records: got %v, want %d", got, w.Records)
	}
	var sessions []string
	for _, o := range all {
		if o["type"] == "session" && o["state"] == "opened" {
			sessions = append(sessions, o["client"].(string))
		}
	}
	if len(sessions) != len(w.Sessions) {
		t.Errorf("sessions: got %v, want %d", sessions, len(w.Sessions))
	}
}

// compareTables looks for where each table was learned; "default" where it was
// not.
func (w *wulframTruth) compareTables(t *testing.T, tables string) {
	t.Helper()
	if len(w.Sessions) != 1 {
		t.Fatalf("%d sessions, of which the output's tables do not tell", len(w.Sessions))
	}
	s := w.Sessions[0]
	for _, want := range []struct {
		table, row string
		in         *int
	}{
		{"stream_modes of the client", "VIEWPOINT_INFO", s.Handshake.Client},
		{"stream_modes of the server", "D_ACK", s.Handshake.Server},
		{"translation", "position_0", s.Translation},
		{"weapon_slots", "tank", s.Behavior},
	} {
		origin := "default"
		switch {
		case want.in != nil:
			origin = fmt.Sprintf("learned in packet %d", *want.in)
		case want.row == "D_ACK": // no default says it, the bytes do
			origin = `guessed in packet \d+`
		}
		_, rest, _ := strings.Cut(tables, "\n"+want.table+"\n")
		rest, _, _ = strings.Cut(rest, "\n\n")
		found := false
		for line := range strings.Lines(rest) {
			if strings.Contains(line, want.row) {
				found = true
				if !regexp.MustCompile(origin + `$`).MatchString(strings.TrimSpace(line)) {
					t.Errorf("%s: got %q, want its origin %q", want.table, strings.TrimSpace(line), origin)
				}
			}
		}
		if !found {
			t.Errorf("%s: no row for %s in\n%s", want.table, want.row, rest)
		}
	}
}

// TestEarlySnapshot proves that the UDP snapshot which overtakes TRANSLATION is
// decoded and shown in its place. Also without holding anything back it is there,
// read with a stated default that says so.
func TestEarlySnapshot(t *testing.T) {
	capture := foreignCapture(t, "wulfram", "session-one-client.pcap")
	all := records(objects(t, good(t, "-T", "json", capture)))
	i := slices.IndexFunc(all, func(r map[string]any) bool { return equal(r["packets"], []any{21.0}) })
	if i < 1 || i+1 >= len(all) {
		t.Fatalf("no record of packet 21")
	}
	r := all[i]
	if r["message"] != "VIEW_UPDATE" || r["transport"] != "udp" || len(r["fields"].(map[string]any)["entities"].([]any)) != 8 {
		t.Errorf("got %v with %v, want a VIEW_UPDATE over UDP with 8 entities", r["message"], r["fields"])
	}
	before, after := all[i-1], all[i+1]
	if !equal(before["packets"], []any{20.0}) || !equal(after["packets"], []any{23.0}) {
		t.Errorf("it stands between packets %v and %v, want 20 and 23", before["packets"], after["packets"])
	}
	text := good(t, capture)
	if at := regexp.MustCompile(`<- s2c udp  VIEW_UPDATE 0x0F +161 `).FindStringIndex(text); at == nil || at[0] > strings.Index(text, "TRANSLATION") {
		t.Error("the text does not show it in front of TRANSLATION")
	}
}

// TestMidSessionSaysSo proves that a capture without handshakes is decoded by
// defaults, and that every record they were needed for says so.
func TestMidSessionSaysSo(t *testing.T) {
	capture := foreignCapture(t, "wulfram", "session-midstart.pcapng")
	counts := map[string]int{}
	for _, r := range records(objects(t, good(t, "-T", "json", capture))) {
		if origin, ok := r["envelope"].(map[string]any)["origin"]; ok {
			counts[origin.(string)]++
		}
		if has(r, "assumed_context") {
			counts["assumed_context"]++
		}
	}
	if want := map[string]int{"default": 25, "guessed": 19, "assumed_context": 27}; !maps.Equal(counts, want) {
		t.Errorf("got %v, want %v", counts, want)
	}
	if text := good(t, capture); !strings.Contains(text, "! assumed_context") {
		t.Error("the text does not say that it assumes something")
	}
}

// TestFragmentsJoin proves that datagrams in IP fragments come out whole, with all
// packets that carry them.
func TestFragmentsJoin(t *testing.T) {
	capture := foreignCapture(t, "wulfram", "session-fragments.pcap")
	joined := 0
	for _, r := range records(objects(t, good(t, "-T", "json", capture))) {
		if r["transport"] != "udp" || r["size"].(float64) < 1480 {
			continue
		}
		if joined++; len(r["packets"].([]any)) < 2 || r["rest"] != "" {
			t.Errorf("record %v of %v bytes: packets %v, rest %v", r["n"], r["size"], r["packets"], r["rest"])
		}
	}
	if joined == 0 {
		t.Error("no record larger than a packet")
	}
}
