package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"opscope/dissect"
	"opscope/dissect/capture"
)

// upTo copies a capture up to a time, and returns it with the number of its packets.
func upTo(t *testing.T, file string, until time.Time) (part []byte, packets int) {
	t.Helper()
	f, err := capture.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b bytes.Buffer
	w, err := capture.NewWriter(&b, "test")
	if err != nil {
		t.Fatal(err)
	}
	var p dissect.Packet
	for err = f.Next(&p); err == nil && p.Time.Before(until); err = f.Next(&p) {
		if packets++; packets == 1 {
			if err := w.Interface(capture.Interface{Name: "one", Link: p.Link, SnapLen: 1 << 18}, ""); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Packet(&p); err != nil {
			t.Fatal(err)
		}
	}
	if err != nil && !errors.Is(err, io.EOF) || w.Flush() != nil {
		t.Fatal(err)
	}
	return b.Bytes(), packets
}

// jsonOf parses one object, without the time that it counts up to, which it returns.
func jsonOf(t *testing.T, line string) (o map[string]any, until time.Time) {
	t.Helper()
	if err := json.Unmarshal([]byte(line), &o); err != nil {
		t.Fatalf("%v\n%s", err, line)
	}
	if text, ok := o["time"].(string); ok {
		var err error
		if until, err = time.Parse(time.RFC3339Nano, text); err != nil {
			t.Fatal(err)
		}
		delete(o, "time")
	}
	return o, until
}

// TestEvery wants each table to be the one of the capture up to its time, which differs only
// in what ends with a capture: a record that waits for its acknowledgement is in flight, and
// lost once nothing more can come. The last table is that of the whole.
func TestEvery(t *testing.T) {
	settle := regexp.MustCompile(`"(?:lost|unacked|in_flight)":\d+`)
	for _, test := range []struct {
		file, every string
		tables      int // at least
	}{{"wulfram/lossy", "500ms", 8}, {"wulfram/early", "300ms", 2}, {"netrek/udp", "700ms", 6}, {"lotr2/campaign", "3s", 3}, {"mmo/move", "250ms", 4}} {
		file := "../../pcaps/" + test.file + ".pcapng"
		for _, command := range statisticNames {
			t.Run(command+" "+test.file, func(t *testing.T) {
				args := []string{command, "-T", "json"}
				out := good(t, append(args, "--every", test.every, file)...)
				lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
				if len(lines) < test.tables {
					t.Fatalf("%d tables, want %d or more", len(lines), test.tables)
				}
				whole, _ := jsonOf(t, good(t, append(args, file)...))
				if last, _ := jsonOf(t, lines[len(lines)-1]); !reflect.DeepEqual(last, whole) {
					t.Errorf("the last table is\n%v\nwant\n%v", last, whole)
				}
				var before time.Time
				for _, line := range lines[:len(lines)-1] {
					_, until := jsonOf(t, line)
					part, packets := upTo(t, file, until)
					if !until.After(before) || packets == 0 {
						t.Fatalf("until %v, of %d packets, after %v", until, packets, before)
					}
					before = until
					want := good(t, append(args, writeTemp(t, "part.pcapng", part))...)
					if command == "acks" {
						line, want = settle.ReplaceAllString(line, `"waits":0`), settle.ReplaceAllString(want, `"waits":0`)
					}
					g, _ := jsonOf(t, strings.ReplaceAll(line, `"waits":0,`, ""))
					w, _ := jsonOf(t, strings.ReplaceAll(want, `"waits":0,`, ""))
					if !reflect.DeepEqual(g, w) {
						t.Errorf("until %v\ngot  %v\nwant %v", until, g, w)
					}
				}
				stdin := opscopeReading(t, bytes.NewReader(readFile(t, file)), append(args, "--every", test.every, "-")...)
				if stdin.out != out {
					t.Errorf("of standard input: %s", firstDifference(stdin.out, out))
				}
			})
		}
	}
}

// TestEveryInFlight: what waits is in flight, and lost or acknowledged later.
func TestEveryInFlight(t *testing.T) {
	most := 0
	for line := range strings.Lines(good(t, "acks", "-T", "json", "--every", "10ms", "../../pcaps/wulfram/lossy.pcapng")) {
		var r ackReport
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		most = max(most, r.Sum.InFlight)
		if r.Sum.Sent != r.Sum.Acked+r.Sum.Served+r.Sum.Ignored+r.Sum.Unacked+r.Sum.InFlight {
			t.Errorf("the states do not add up: %+v", r.Sum)
		}
	}
	if most == 0 {
		t.Error("nothing was ever in flight")
	}
}

// TestEveryText: each table has its time above it, in all formats of input; intervals
// without packets have none.
func TestEveryText(t *testing.T) {
	const file = "../../pcaps/wulfram/lossy.pcapng"
	ndjson := writeTemp(t, "records.ndjson", []byte(good(t, "decode", "-T", "json", file)))
	for _, input := range []string{file, ndjson} {
		out := good(t, "opcodes", "--every", "1s", input)
		headings := regexp.MustCompile(`(?m)^-- until 2026-11-29 20:15:\d\d\.\d{3} UTC --\nprotocol `).FindAllString(out, -1)
		if want := 5; len(headings) != want { // 4.6 s of packets, and the whole
			t.Errorf("%s: %d tables, want %d\n%s", input, len(headings), want, out)
		}
	}
	silent := strings.Count(good(t, "opcodes", "--every", "1ms", file), "-- until ")
	_, packets := upTo(t, file, time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
	if silent > packets+1 {
		t.Errorf("%d tables of %d packets", silent, packets)
	}
	for _, args := range [][]string{{"opcodes", "--every", "-1s", file}, {"flows", "--port", "2627", file}, {"acks", "-i", "lo", file}, {"tables", "-i", "lo", "-w", "-"}} {
		if r := opscope(t, args...); r.code != exitUsage {
			t.Errorf("%v: exit code %d, %q", args, r.code, r.err)
		}
	}
}

// TestStatisticsOfNDJSON: the records of a capture count the same when they are read back,
// and with no time to wait for acknowledgements.
func TestStatisticsOfNDJSON(t *testing.T) {
	for _, name := range []string{"wulfram/lossy", "netrek/lossy", "lotr2/three", "mmo/lossy"} {
		file := "../../pcaps/" + name + ".pcapng"
		for hold, state := range map[string]string{"2s": "lost", "0s": "in_flight"} {
			again := writeTemp(t, "records.ndjson", []byte(good(t, "decode", "-T", "json", "--hold", hold, file)))
			direct, _ := jsonOf(t, good(t, "acks", "-T", "json", "--hold", hold, file))
			back, _ := jsonOf(t, good(t, "acks", "-T", "json", again))
			if !reflect.DeepEqual(direct, back) {
				t.Errorf("%s, held %s: read back\n%v\nwant\n%v", name, hold, back, direct)
			}
			if n := inside(direct, "sum", state).(float64); n == 0 && strings.HasPrefix(name, "wulfram") {
				t.Errorf("%s, held %s: nothing is %s", name, hold, state)
			}
		}
		var direct, back opcodeReport
		again := writeTemp(t, "records.ndjson", []byte(good(t, "decode", "-T", "json", file)))
		for out, r := range map[string]*opcodeReport{good(t, "opcodes", "-T", "json", file): &direct, good(t, "opcodes", "-T", "json", again): &back} {
			if err := json.Unmarshal([]byte(out), r); err != nil {
				t.Fatal(err)
			}
		}
		if back.Seconds == 0 || direct.Records != back.Records || direct.Bytes != back.Bytes || len(direct.Opcodes) != len(back.Opcodes) {
			t.Errorf("%s: opcodes read back: %d records, %d bytes in %v s, want %d, %d", name, back.Records, back.Bytes, back.Seconds, direct.Records, direct.Bytes)
		}
	}
}

// TestNarrowTables: at 80 columns no table of ours is wider, says what it is without, and
// keeps what matters; elsewhere it has all.
func TestNarrowTables(t *testing.T) {
	keeps := map[string][]string{
		"flows": {"client", "server", "records", "packets", "state"}, "opcodes": {"dir", "message", "count", "bytes"}, "acks": {"session", "dir", "sent", "acked", "lost", "rtt p50", "messages"},
		"tables": {"session"},
	}
	for command, words := range keeps {
		for _, file := range []string{"wulfram/lossy", "netrek/udp", "lotr2/campaign", "mmo/crowd"} {
			file = "../../pcaps/" + file + ".pcapng"
			full, narrow := good(t, command, file), good(t, command, "--width", "80", file)
			for line := range strings.Lines(narrow) {
				if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 && !strings.HasPrefix(line, "without ") && command != "tables" {
					t.Errorf("%s %s: %d columns: %s", command, file, n, line)
				}
			}
			for _, w := range words {
				if !strings.Contains(narrow, w) {
					t.Errorf("%s %s: no %s in\n%s", command, file, w, narrow)
				}
			}
			if unlimited := good(t, command, "--width", "-1", file); unlimited != full {
				t.Errorf("%s: --width -1: %s", command, firstDifference(unlimited, full))
			}
			if command != "tables" && !slices.Contains(words, "without") && strings.Count(full, "\n") > 2 && narrow == full {
				t.Errorf("%s %s fits 80 columns as it is, and proves nothing", command, file)
			}
		}
	}
}

// TestLostInAllViews: acks and the plot find the same records lost.
func TestLostInAllViews(t *testing.T) {
	for _, file := range []string{"../../pcaps/wulfram/lossy.pcapng", "../../pcaps/wulfram/one-direction.pcapng"} {
		var r ackReport
		if err := json.Unmarshal([]byte(good(t, "acks", "-T", "json", file)), &r); err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`records lost: (\d+)`).FindStringSubmatch(good(t, "plot", file, "-o", t.TempDir()+"/plot.svg"))
		if m == nil || m[1] != strconv.Itoa(r.Sum.Lost) || r.Sum.Lost == 0 {
			t.Errorf("%s: acks has %d lost, the plot %v", file, r.Sum.Lost, m)
		}
	}
}
