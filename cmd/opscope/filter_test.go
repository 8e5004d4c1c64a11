package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// filterCases are filters beside what they mean, said again in terms of NDJSON.
var filterCases = []struct {
	file, filter string
	want         func(o map[string]any) bool
}{
	{"wulfram/lossy", `dir == c2s and note("retransmission")`, func(o map[string]any) bool { return o["dir"] == "c2s" && noted(o, "retransmission") }},
	{"wulfram/session", "ack.rtt_ms > 40", func(o map[string]any) bool { v, ok := inside(o, "ack", "rtt_ms").(float64); return ok && v > 40 }},
	{"wulfram/session", "not dir == c2s and not message in [D_ACK, HELLO] and not message contains 'STAT'", func(o map[string]any) bool {
		m, _ := o["message"].(string)
		return o["dir"] != "c2s" && m != "D_ACK" && m != "HELLO" && !strings.Contains(m, "STAT")
	}},
	{"netrek/tcp", "!size > 8 or !(not opcode == 2)", func(o map[string]any) bool {
		size, sized := o["size"].(float64)
		return !sized || size <= 8 || o["opcode"] == 2.0
	}},
	{"wulfram/lossy", "type == session", func(o map[string]any) bool { return o["type"] == "session" }},
	{"wulfram/missed", "type == gap", func(o map[string]any) bool { return o["type"] == "gap" }},
	{"wulfram/missed", "type == event", func(o map[string]any) bool { return o["type"] == "event" }},
	{"wulfram/missed", "not error and type != gap", func(o map[string]any) bool { return o["error"] == nil && o["type"] != "gap" }},
	{"wulfram/snaplen", `error.kind == "truncated"`, func(o map[string]any) bool { return inside(o, "error", "kind") == "truncated" }},
	{"wulfram/session", "code == accepted", func(o map[string]any) bool {
		return o["message"] == "LOGIN_STATUS" && inside(o, "fields", "code") == 8.0
	}},
	{"wulfram/session", "opcode in [D_ACK, 0x35]", func(o map[string]any) bool { return o["opcode"] == 2.0 || o["opcode"] == 53.0 }},
	{"wulfram/play", "any(entities, .id == 1003)", func(o map[string]any) bool {
		list, _ := inside(o, "fields", "entities").([]any)
		return slices.ContainsFunc(list, func(e any) bool { return e.(map[string]any)["id"] == 1003.0 })
	}},
	{"netrek/tcp", "message matches '^SP_' and size in 1..8", func(o map[string]any) bool {
		m, _ := o["message"].(string)
		size, _ := o["size"].(float64)
		return strings.HasPrefix(m, "SP_") && size <= 8
	}},
	{"netrek/short-udp", "transport == udp and message startsWith 'SP_S_'", func(o map[string]any) bool {
		m, _ := o["message"].(string)
		return o["transport"] == "udp" && strings.HasPrefix(m, "SP_S_")
	}},
	{"lotr2/lobby", "protocol == dplay", func(o map[string]any) bool { return o["protocol"] == "dplay" }},
	{"lotr2/lobby", "envelope.copies == 3 and envelope.slot >= 10", func(o map[string]any) bool {
		slot, ok := inside(o, "envelope", "slot").(float64)
		return ok && slot >= 10 && inside(o, "envelope", "copies") == 3.0
	}},
	{"lotr2/lobby", `session.max_players == 5 or fields.session`, func(o map[string]any) bool { return inside(o, "fields", "session") != nil }},
	{"lotr2/lobby", `any(names, # == "Ada") and lord_shields[1] == 2`, func(o map[string]any) bool {
		names, _ := inside(o, "fields", "names").([]any)
		shields, _ := inside(o, "fields", "lord_shields").([]any)
		return slices.Contains(names, any("Ada")) && len(shields) > 1 && shields[1] == 2.0
	}},
	{"mmo/errors", "error_code == ERROR_CODE_AUTH_REQUIRED", func(o map[string]any) bool { return inside(o, "fields", "error_code") == "ERROR_CODE_AUTH_REQUIRED" }},
	{"mmo/errors", "error_code in 1..3", func(o map[string]any) bool {
		return slices.Contains([]any{"ERROR_CODE_MALFORMED_PACKET", "ERROR_CODE_UNKNOWN_PACKET", "ERROR_CODE_INVALID_DATA"}, inside(o, "fields", "error_code"))
	}},
	{"mmo/errors", "message == AttackAck and not success", func(o map[string]any) bool {
		return o["message"] == "AttackAck" && inside(o, "fields", "success") == false
	}},
	{"mmo/inventory", "any(snapshot.items, .template_id == 2002 and .slot_index > 1) or revision == 19", func(o map[string]any) bool {
		snapshot, _ := inside(o, "fields", "snapshot").(map[string]any)
		items, _ := snapshot["items"].([]any)
		return inside(o, "fields", "revision") == "19" || slices.ContainsFunc(items, func(e any) bool {
			item := e.(map[string]any)
			return item["template_id"] == 2002.0 && item["slot_index"].(float64) > 1
		})
	}},
	{"mmo/inventory", "len(snapshot.items) == 4", func(o map[string]any) bool {
		snapshot, _ := inside(o, "fields", "snapshot").(map[string]any)
		items, _ := snapshot["items"].([]any)
		return len(items) == 4
	}},
	{"mmo/move", `fields["3"]["1"] > 1 and note("unknown_body")`, func(o map[string]any) bool {
		inner, _ := inside(o, "fields", "3").(map[string]any)
		v, _ := inner["1"].(float64)
		return v > 1 && noted(o, "unknown_body")
	}},
	{"mmo/enter", "udp_token", func(o map[string]any) bool { return inside(o, "fields", "udp_token") != nil }},
	{"netrek/tcp", "fields.dir > 100", func(o map[string]any) bool { v, ok := inside(o, "fields", "dir").(float64); return ok && v > 100 }},
}

func inside(o map[string]any, key, member string) any {
	m, _ := o[key].(map[string]any)
	return m[member]
}

func noted(o map[string]any, code string) bool {
	list, _ := o["notes"].([]any)
	return slices.ContainsFunc(list, func(n any) bool { return n.(map[string]any)["code"] == code })
}

// matrixShapes are limits and formats, which are to have the same effect on all inputs. Text
// tells more than NDJSON holds, how a value stood on the wire: it is compared of packets only.
var matrixShapes = [][]string{
	{"-T", "text"}, {"-T", "text", "-v", "-t", "ud", "-c", "2"}, {"-T", "json", "-c", "3"}, {"-T", "text", "--before", "1", "--after", "2"},
	{"-T", "json", "--before", "2", "-c", "2"}, {"-T", "csv"}, {"-T", "table"}, {"-T", "tsv", "-e", "time", "-e", "n", "-e", "notes.code", "-c", "2", "--after", "1"},
}

// TestFilterMatrix filters a capture as a file, as standard input, compressed, and as
// NDJSON, and wants the lines for which the condition holds. Limits and formats go with it.
// Interfaces have their own test: TestSniffMatrix of the reference server.
func TestFilterMatrix(t *testing.T) {
	for i, test := range filterCases {
		if raceDetector && testing.Short() && i%5 > 0 {
			continue // they differ in what they ask, not in who runs when
		}
		t.Run(test.file+" "+test.filter, func(t *testing.T) {
			file := "../../pcaps/" + test.file + ".pcapng"
			all := good(t, "decode", "-T", "json", file)
			var want strings.Builder
			for line := range strings.Lines(all) {
				var o map[string]any
				if err := json.Unmarshal([]byte(line), &o); err != nil {
					t.Fatal(err)
				}
				if test.want(o) {
					want.WriteString(line)
				}
			}
			if want.Len() == 0 || want.Len() == len(all) {
				t.Fatal("the capture does not put the filter to the test")
			}
			ndjson, capture := writeTemp(t, "all.ndjson", []byte(all)), readFile(t, file)
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			if _, err := z.Write(capture); err != nil || z.Close() != nil {
				t.Fatal(err)
			}
			zipped := writeTemp(t, "x.gz", packed.Bytes())
			same := func(want string, shape ...string) {
				args := slices.Concat([]string{"decode", "-Y", test.filter, "--hold", "2s"}, shape)
				for name, got := range map[string]string{
					"file":   good(t, append(args, file)...),
					"gzip":   good(t, append(args, zipped)...),
					"stdin":  opscopeReading(t, bytes.NewReader(capture), append(args, "-")...).out,
					"ndjson": good(t, append(args, ndjson)...),
				} {
					if got != want && (name != "ndjson" || shape[1] != "text") {
						t.Errorf("%v of %s: %s", shape, name, firstDifference(got, want))
					}
				}
			}
			same(want.String(), "-T", "json")
			for _, shape := range matrixShapes {
				whole := good(t, slices.Concat([]string{"decode", "-Y", test.filter}, shape, []string{file})...)
				if whole == "" {
					t.Errorf("%v shows nothing", shape)
				}
				same(whole, shape...)
			}
			if got, whole := good(t, "decode", "-q", "-Y", test.filter, file), good(t, "decode", "-q", file); got != whole {
				t.Errorf("the summary counts other records: %s", firstDifference(got, whole))
			}
		})
	}
}

// TestFilterCount counts what passed, of any type where a filter says which.
func TestFilterCount(t *testing.T) {
	const file = "../../pcaps/wulfram/lossy.pcapng"
	all := good(t, "decode", "-Y", "dir == c2s", file)
	first := strings.SplitAfter(all, "\n")[:3]
	if got := good(t, "decode", "-Y", "dir == c2s", "-c", "3", file); got != strings.Join(first, "") {
		t.Errorf("got\n%s", got)
	}
	if got := good(t, "decode", "-Y", "type == session", "-c", "1", file); strings.Count(got, "\n") != 1 {
		t.Errorf("got\n%s", got)
	}
}

// TestContext wants the lines that grep -B and -A would choose out of the whole.
func TestContext(t *testing.T) {
	const file = "../../pcaps/wulfram/session.pcapng"
	lines := strings.SplitAfter(good(t, "decode", file), "\n")
	lines = lines[:len(lines)-1]
	const before, after = 2, 1
	var want strings.Builder
	last := -1
	for i := range lines {
		near := false
		for k := max(0, i-after); k <= min(len(lines)-1, i+before); k++ {
			near = near || strings.Contains(lines[k], "VIEWPOINT_INFO 0x35") && strings.Contains(lines[k], "-> c2s")
		}
		if !near {
			continue
		}
		if last >= 0 && i > last+1 {
			want.WriteString("--\n")
		}
		last = i
		want.WriteString(lines[i])
	}
	got := good(t, "decode", "-Y", "message == VIEWPOINT_INFO", "--before", "2", "--after", "1", file)
	if got != want.String() || !strings.Contains(got, "\n--\n") {
		t.Errorf("%s", firstDifference(got, want.String()))
	}
	json := good(t, "decode", "-T", "json", "-Y", "message == VIEWPOINT_INFO", "--before", "2", "--after", "1", file)
	if strings.Contains(json, "\n--\n") || strings.Count(json, "\n") != strings.Count(got, "\n")-strings.Count(got, "\n--\n") {
		t.Error("as JSON there are other records, or separators")
	}
	again := writeTemp(t, "raw.ndjson", []byte(good(t, "decode", "-T", "json", "--raw", file)))
	args := []string{"decode", "-T", "json", "--raw", "-Y", "message == VIEWPOINT_INFO", "--before", "2", "--after", "1"}
	if a, b := good(t, append(args, file)...), good(t, append(args, again)...); a != b {
		t.Errorf("read back: %s", firstDifference(b, a))
	}
	one := good(t, "decode", "-Y", "message == VIEWPOINT_INFO", "--after", "2", "-c", "1", file)
	if strings.Count(one, "\n") != 3 {
		t.Errorf("-c 1 --after 2 shows\n%s", one)
	}
}

func TestOnlyAndHide(t *testing.T) {
	shown := func(args ...string) []string {
		var list []string
		for _, o := range records(objects(t, good(t, append([]string{"decode", "-T", "json"}, args...)...))) {
			list = append(list, o["message"].(string))
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	if got := shown("--only", "D_ACK,0x35", sessionCapture); !slices.Equal(got, []string{"D_ACK", "VIEWPOINT_INFO"}) {
		t.Errorf("--only shows %v", got)
	}
	if got := shown("--only", "D_ACK,0x35", "--hide", "2", sessionCapture); !slices.Equal(got, []string{"VIEWPOINT_INFO"}) {
		t.Errorf("--only with --hide shows %v", got)
	}
	all := shown(sessionCapture)
	if got := shown("--hide", "D_ACK", sessionCapture); len(got) != len(all)-1 || slices.Contains(got, "D_ACK") {
		t.Errorf("--hide shows %v", got)
	}
}

// TestFilterUsage wants exit code 2, and the place.
func TestFilterUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"-Y: unknown field \"entity_di\" (did you mean entity_id?) (1:1)\n | entity_di == 3\n | ^": {"-Y", "entity_di == 3"},
		"-Y: VIEWPOINT_INFO has no field \"entity\" (there are: entity_id) (1:16)":                 {"-Y", "VIEWPOINT_INFO.entity == 3"},
		"size is a number, \"big\" is none (1:9)":                                                  {"-Y", `size == "big"`},
		"udp_token is masked":                               {"-Y", `udp_token startsWith "a"`},
		"without --mask-personal it is shown":               {"--mask-personal", "-Y", `user == "Ada"`},
		"capture filter":                                    {"-Y", "udp port 2627"},
		"--show-secrets":                                    {"-Y", `password == "x"`},
		"--only: no message \"D_AK\" (did you mean D_ACK?)": {"--only", "D_AK"},
		"--hide: no message":                                {"--hide", "NOTHING_LIKE_IT"},
		"--before -1":                                       {"--before", "-1"},
		"--after -1":                                        {"--after", "-1"},
	} {
		r := opscope(t, append(append([]string{"decode"}, args...), "nowhere.pcapng")...) // said before anything is opened
		if r.code != exitUsage || !strings.Contains(r.err, want) || r.out != "" {
			t.Errorf("%v: exit code %d, %q, want %q", args, r.code, r.err, want)
		}
	}
}

// TestProtoFilter asks about a game that is known by its .proto files alone: members of a
// oneof, entries of a map, packed numbers, optional fields, extensions.
func TestProtoFilter(t *testing.T) {
	const dir = "../../testdata/proto/ashfall"
	for text, want := range map[string]string{
		"platform == PLATFORM_LINUX":                          "sign_in",
		"credentials.user == 'ann'":                           "sign_in",
		"credentials.password":                                "sign_in",
		"motd == 0":                                           "signed_in_refused",
		"not ok and message == SignedIn":                      "signed_in_refused signed_in_empty",
		"ok != true and not motd":                             "signed_in_empty",
		"any(units, .attack == 9 and .deltas == 300)":         "world_state",
		"any(units, .attack == 9 and .move_to)":               "",
		"any(units, .id == 8 and .move_to.x == 0)":            "world_state",
		"any(scores, .key == 'ann' and .value == -3)":         "world_state",
		"any(scores, .key == 'ann' and .value > 0)":           "",
		"units.deltas[2] == 300":                              "world_state",
		`fields["[ashfall.note]"] == "ok" and offer.gold < 0`: "trade",
		"offer.items == 2 and not tax":                        "trade",
		`fields["1"] == 150`:                                  "telemetry",
		"sum == 0x01020304":                                   "checksum",
	} {
		var got []string
		for _, v := range readVectors(t, dir+"/vectors.json") {
			if good(t, "decode", "--proto", dir, "-Y", text, "--only", "SignIn,SignedIn,WorldState,Say,Trade,Telemetry,Checksum", v.capture(t)) != "" {
				got = append(got, v.Name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", text, strings.Join(got, " "), want)
		}
	}
}

// TestPresets combines presets with each other, and with flags.
func TestPresets(t *testing.T) {
	const file = sessionCapture
	profile := writeTemp(t, "profile.yaml", []byte(`presets:
  late:   {filter: ack.rtt_ms > 40}
  acks:   {only: [0x02, D_IGNORE]}
  client: {filter: dir == c2s, before: 1, hide: [D_ACK]}
  typo:   {filter: siz > 3}
`))
	for _, test := range []struct{ presets, same []string }{
		{[]string{"--preset", "late"}, []string{"-Y", "ack.rtt_ms > 40"}},
		{[]string{"--preset", "acks", "--hide", "D_IGNORE"}, []string{"--only", "2"}},
		{[]string{"--preset", "late", "--preset", "client"}, []string{"-Y", "ack.rtt_ms > 40 and dir == c2s and opcode != D_ACK", "--before", "1"}},
	} {
		got := good(t, slices.Concat([]string{"decode", "--profile", profile, file}, test.presets)...)
		if want := good(t, slices.Concat([]string{"decode", file}, test.same)...); got != want || got == "" {
			t.Errorf("%v: %s", test.presets, firstDifference(got, want))
		}
	}
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	if r := opscope(t, "decode", "--preset", "late", file); r.code != exitUsage || !strings.Contains(r.err, "there is no "+home+"/opscope/profile.yaml") {
		t.Errorf("without a profile: %d, %s", r.code, r.err)
	}
	if err := os.MkdirAll(home+"/opscope", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(home+"/opscope/profile.yaml", readFile(t, profile), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := good(t, "decode", "--preset", "acks", file); got != good(t, "decode", "--only", "2,1", file) {
		t.Errorf("with the user's profile\n%s", got)
	}
	for want, name := range map[string]string{"no preset \"x\" (there are: acks client late typo)": "x", "preset typo: -Y: unknown field \"siz\"": "typo"} {
		if r := opscope(t, "decode", "--preset", name, "nowhere"); r.code != exitUsage || !strings.Contains(r.err, want) {
			t.Errorf("--preset %s: %d, %s", name, r.code, r.err)
		}
	}
	for want, text := range map[string]string{`[1:15] unknown field "filtr"`: "presets: {a: {filtr: x}}", "[1:": "presets: ["} {
		if r := opscope(t, "decode", "--preset", "a", "--profile", writeTemp(t, "wrong.yaml", []byte(text)), "nowhere"); r.code != exitUsage || !strings.Contains(r.err, want) {
			t.Errorf("%s: %d, %s", text, r.code, r.err)
		}
	}
}

// TestFilterExamples runs the examples of the help topic: each shows something, and not
// all there is.
func TestFilterExamples(t *testing.T) {
	t.Chdir("../..")
	if help := good(t, "help", "filter"); !strings.Contains(help, "not there") {
		t.Errorf("opscope help filter prints\n%s", help)
	}
	for line := range strings.Lines(newFilter().Example) {
		args := shellWords(line)
		got, all := good(t, args[1:]...), good(t, "decode", args[len(args)-1])
		if got == "" || len(got) >= len(all) {
			t.Errorf("%s shows %d of %d bytes", strings.TrimSpace(line), len(got), len(all))
		}
	}
}
