package main

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// opcodeReport is the JSON of `opscope opcodes`.
type opcodeReport struct {
	Records  int
	Bytes    int
	Seconds  float64
	Unlisted int
	Opcodes  []opcodeRow
}

type opcodeRow struct {
	Protocol, Dir, Transport, Message, Unknown string
	Opcode                                     any
	Count, Bytes, Errors                       int
	Share                                      float64
	Size                                       struct{ Least, Most int }
}

func readOpcodes(t *testing.T, args ...string) (r opcodeReport) {
	t.Helper()
	if err := json.Unmarshal([]byte(good(t, append([]string{"opcodes", "-T", "json"}, args...)...)), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestOpcodes counts the NDJSON of every capture again, and wants the same numbers of the
// table, and of the summary.
func TestOpcodes(t *testing.T) {
	files, err := filepath.Glob("../../pcaps/*/*.pcapng")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	type kind struct {
		protocol, dir, transport, message string
		opcode                            any // nil for none
	}
	for _, file := range thinned(files) {
		count, bytes, failed := map[kind]int{}, map[kind]int{}, map[kind]int{}
		all := objects(t, good(t, "decode", "-T", "json", "--summary", file))
		for _, o := range records(all) {
			dir, _ := o["dir"].(string)
			k := kind{o["protocol"].(string), dir, o["transport"].(string), o["message"].(string), o["opcode"]}
			count[k]++
			bytes[k] += int(o["size"].(float64))
			if o["error"] != nil {
				failed[k]++
			}
		}
		r := readOpcodes(t, file)
		got, sum, share := 0, 0, 0.0
		for _, c := range r.Opcodes {
			k := kind{c.Protocol, c.Dir, c.Transport, c.Message, c.Opcode}
			if c.Count != count[k] || c.Bytes != bytes[k] || c.Errors != failed[k] || c.Size.Least*c.Count > c.Bytes || c.Size.Most*c.Count < c.Bytes {
				t.Errorf("%s, %v: got %+v, want %d records, %d bytes, %d errors", file, k, c, count[k], bytes[k], failed[k])
			}
			got, sum, share = got+c.Count, sum+c.Bytes, share+c.Share
		}
		total := 0
		for _, n := range all[len(all)-1]["records"].(map[string]any) {
			total += int(n.(float64))
		}
		if len(r.Opcodes) != len(count) || got != total || r.Records != total || sum != r.Bytes || total > 0 && (share < 0.999 || share > 1.001) {
			t.Errorf("%s: %d rows, %d records, %d bytes, share %v; want %d rows, %d records, %d bytes", file, len(r.Opcodes), got, sum, share, len(count), total, r.Bytes)
		}
	}
}

// TestOpcodesOfFiles adds files, and counts what a filter wants alone.
func TestOpcodesOfFiles(t *testing.T) {
	const lossy = "../../pcaps/wulfram/lossy.pcapng"
	a, b, both := readOpcodes(t, sessionCapture), readOpcodes(t, lossy), readOpcodes(t, sessionCapture, lossy)
	if both.Records != a.Records+b.Records || math.Abs(both.Seconds-a.Seconds-b.Seconds) > 1e-6 {
		t.Errorf("got %d records in %v s, want %d and %d in %v and %v s", both.Records, both.Seconds, a.Records, b.Records, a.Seconds, b.Seconds)
	}
	some := readOpcodes(t, "-Y", "dir == c2s", "--hide", "D_ACK", lossy)
	for _, c := range some.Opcodes {
		if c.Dir != "c2s" || c.Message == "D_ACK" {
			t.Errorf("it counts %s %s", c.Dir, c.Message)
		}
	}
	if some.Records == 0 || some.Records >= b.Records {
		t.Errorf("the filter leaves %d of %d records", some.Records, b.Records)
	}
	unknown := readOpcodes(t, "../../pcaps/mmo/enter.pcapng")
	if !slices.ContainsFunc(unknown.Opcodes, func(c opcodeRow) bool { return c.Message == "SpawnMonster" && c.Unknown == "unknown_body" }) {
		t.Error("a message without a layout is not marked")
	}
	if text := good(t, "opcodes", sessionCapture); !strings.Contains(text, "D_HANDSHAKE") || !strings.Contains(text, "\nall ") {
		t.Errorf("as text:\n%s", text)
	}
	if r := opscope(t, "opcodes", "-T", "csv", "nowhere"); r.code != exitUsage {
		t.Errorf("-T csv: exit code %d", r.code)
	}
}
