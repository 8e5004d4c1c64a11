package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// statisticsOf is what the statistics of one capture say, as far as tests compare it.
type statisticsOf struct {
	flows   flowReport
	opcodes opcodeReport
	acks    ackReport
	tables  struct{ Sessions []struct{ Session int } }
	ndjson  []map[string]any // records, and the summary at the end
}

type flowCounts struct {
	Packets, Records, Errors, Retransmissions, Gaps int
	Bytes                                           int64
	RecordBytes                                     int64 `json:"record_bytes"`
	LostBytes                                       int64 `json:"lost_bytes"`
	SegmentsAgain                                   int   `json:"segments_retransmitted"`
	OutOfOrder                                      int   `json:"segments_out_of_order"`
}

type flowReport struct {
	Packets  int
	Bytes    int64
	Sessions []struct {
		flowCounts
		Session, Flows int
		State          string
		RTT            struct{ Count int }
	}
	Flows []struct {
		flowCounts
		Session, Flow             int
		Transport, Client, Server string
	}
	Sum                flowCounts
	Other, Sessionless struct{ Flows, Packets int }
	Flowless           int `json:"flowless_packets"`
}

type ackRow struct {
	Dir, Transport                                               string
	Messages                                                     []string
	Session, Stream, Sent, Acked, Served, Ignored, Unacked, Lost int
	InFlight                                                     int `json:"in_flight"`
	Retransmitted, Copies, Missing                               int
	OutOfWindow                                                  int `json:"out_of_window"`
	TooMany                                                      int `json:"too_many_in_flight"`
	RTT                                                          struct {
		Count int
		P50   float64 `json:"p50_ms"`
		P90   float64 `json:"p90_ms"`
		P99   float64 `json:"p99_ms"`
		Max   float64 `json:"max_ms"`
	}
}

type ackReport struct {
	Streams []ackRow
	Sum     ackRow
}

func readStatistics(t *testing.T, file, hold string) *statisticsOf {
	var s statisticsOf
	t.Helper()
	out := good(t, "decode", "-T", "json", "-z", "flows", "-z", "opcodes", "-z", "acks", "-z", "tables", "--summary", "--hold", hold, file)
	lines := strings.SplitAfter(strings.TrimSuffix(out, "\n"), "\n")
	into := map[string]any{"flows": &s.flows, "opcodes": &s.opcodes, "acks": &s.acks, "tables": &s.tables}
	var rest []string
	for _, line := range lines {
		var of struct{ Type string }
		if err := json.Unmarshal([]byte(line), &of); err != nil {
			t.Fatal(err)
		}
		if v := into[of.Type]; v == nil {
			rest = append(rest, line)
		} else if err := json.Unmarshal([]byte(line), v); err != nil {
			t.Fatal(err)
		}
	}
	s.ndjson = objects(t, strings.Join(rest, ""))
	return &s
}

// TestStatisticsAgree counts the NDJSON of every capture again, and wants the same numbers
// of flows, opcodes, acks and the summary.
func TestStatisticsAgree(t *testing.T) {
	files, err := filepath.Glob("../../pcaps/*/*.pcapng")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	for _, file := range thinned(files) {
		for _, hold := range []string{"2s", "0s"} {
			t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file)+" held "+hold, func(t *testing.T) {
				readStatistics(t, file, hold).compare(t)
			})
		}
	}
}

// compare compares what all of them tell of one capture.
func (s *statisticsOf) compare(t *testing.T) {
	summary := s.ndjson[len(s.ndjson)-1]
	if summary["type"] != "summary" {
		t.Fatalf("the summary is not there, but %v", summary)
	}
	s.compareFlows(t, summary)
	s.compareAcks(t)
	if s.opcodes.Records != s.flows.Sum.Records || int64(s.opcodes.Bytes) != s.flows.Sum.RecordBytes {
		t.Errorf("opcodes counts %d records, %d bytes; flows %d, %d", s.opcodes.Records, s.opcodes.Bytes, s.flows.Sum.Records, s.flows.Sum.RecordBytes)
	}
	if len(s.tables.Sessions) != len(s.flows.Sessions) {
		t.Errorf("tables of %d sessions, flows of %d", len(s.tables.Sessions), len(s.flows.Sessions))
	}
}

// number returns a number of a JSON object.
func number(o map[string]any, key string) int {
	n, _ := o[key].(float64)
	return int(n)
}

// compareFlows compares flows with the records, and with the summary.
func (s *statisticsOf) compareFlows(t *testing.T, summary map[string]any) {
	var want flowCounts
	bySession, opened := map[int]int{}, map[int]bool{}
	for _, o := range s.ndjson {
		switch o["type"] {
		case "record":
			want.Records++
			want.RecordBytes += int64(number(o, "size"))
			bySession[number(o, "session")]++
			if o["error"] != nil {
				want.Errors++
			}
		case "gap":
			if o["reason"] != "snap_length" {
				want.Gaps++
				want.LostBytes += int64(number(o, "bytes"))
			}
		case "session":
			opened[number(o, "session")] = o["state"] == "opened"
		}
	}
	want.Retransmissions = number(summary, "retransmissions")
	segments := summary["segments"].(map[string]any)
	want.SegmentsAgain, want.OutOfOrder = number(segments, "retransmitted"), number(segments, "out_of_order")
	got := s.flows.Sum
	want.Packets, want.Bytes = got.Packets, got.Bytes // compared below
	if got != want {
		t.Errorf("flows: got %+v, want %+v", got, want)
	}
	if want.Gaps != number(summary, "gaps") || want.LostBytes != int64(number(summary, "lost_bytes")) {
		t.Errorf("%d gaps, %d bytes; the summary has %v, %v", want.Gaps, want.LostBytes, summary["gaps"], summary["lost_bytes"])
	}
	if s.flows.Packets != number(summary, "packets") || s.flows.Bytes != int64(number(summary, "bytes")) || s.flows.Flowless < 0 ||
		s.flows.Other.Flows != number(summary, "other_flows") {
		t.Errorf("flows counts %d packets, %d bytes, %d of no flow, %d other flows; the summary has %v", s.flows.Packets, s.flows.Bytes, s.flows.Flowless, s.flows.Other.Flows, summary)
	}
	var flows, sessions flowCounts
	lines := map[int]int{}
	for _, f := range s.flows.Flows {
		flows.add(&f.flowCounts)
		lines[f.Session]++
	}
	for _, x := range s.flows.Sessions {
		sessions.add(&x.flowCounts)
		if x.Records != bySession[x.Session] || x.Flows != lines[x.Session] || (x.State == "opened") != opened[x.Session] {
			t.Errorf("session %d: got %+v, want %d records, %d flows, open: %v", x.Session, x, bySession[x.Session], lines[x.Session], opened[x.Session])
		}
	}
	if flows != got || sessions != got {
		t.Errorf("the flows add up to %+v, the sessions to %+v, want %+v", flows, sessions, got)
	}
}

func (c *flowCounts) add(o *flowCounts) {
	c.Packets += o.Packets
	c.Records += o.Records
	c.Errors += o.Errors
	c.Retransmissions += o.Retransmissions
	c.Gaps += o.Gaps
	c.Bytes += o.Bytes
	c.RecordBytes += o.RecordBytes
	c.LostBytes += o.LostBytes
	c.SegmentsAgain += o.SegmentsAgain
	c.OutOfOrder += o.OutOfOrder
}

// ackStream is a stream by the records that have its number, or the requests of a message.
type ackStream struct {
	session, stream int
	dir, message    string
}

// notSeen is what the note says that tells of sequences which were not seen.
var notSeen = regexp.MustCompile(`^(?:sequence|slot)s? (\d+)(?: to (\d+))? not seen$`)

// skipped returns the first and the last sequence of such a note. One whose range wraps is not
// among those of our captures but for slots, which are 1 to 39.
func skipped(t *testing.T, text string) (first, last int) {
	m := notSeen.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("sequence_gap says %q", text)
	}
	first, _ = strconv.Atoi(m[1])
	if last = first; m[2] != "" {
		last, _ = strconv.Atoi(m[2])
	}
	if last < first {
		last += 39
	}
	return first, last
}

// missing takes a record for the sequences of its stream that were not seen: it may tell of
// some, or be a late one. Which one is late nobody says of inputs of the mmo, whose sequence is
// a field: gaps count, each as one.
func missing(t *testing.T, absent map[int]bool, o map[string]any) {
	for _, n := range o["notes"].([]any) {
		if n := n.(map[string]any); n["code"] == "sequence_gap" {
			first, last := skipped(t, n["text"].(string))
			if _, ok := inside(o, "envelope", "seq").(float64); !ok {
				last = first
			}
			for seq := first; seq <= last; seq++ {
				absent[seq] = true
			}
		}
	}
	if !noted(o, "out_of_order") && !noted(o, "stale") {
		return
	}
	if seq, ok := inside(o, "envelope", "seq").(float64); ok {
		delete(absent, int(seq))
		return
	}
	for seq := range absent {
		delete(absent, seq)
		return
	}
}

// add counts a record of NDJSON.
func (r *ackRow) add(o map[string]any) {
	r.Sent++
	if m := o["message"].(string); !slices.Contains(r.Messages, m) {
		r.Messages = append(r.Messages, m)
	}
	for _, n := range o["notes"].([]any) {
		switch n.(map[string]any)["code"] {
		case "retransmission":
			r.Retransmitted++
		case "resend_copy":
			r.Copies++
		case "out_of_window":
			r.OutOfWindow++
		case "too_many_in_flight":
			r.TooMany++
		}
	}
}

// ended counts what became of a record.
func (r *ackRow) ended(state string, again bool) {
	switch state {
	case "acked":
		r.Acked++
	case "duplicate":
		r.Served++
	case "ignored":
		r.Ignored++
	case "unacked":
		if r.Unacked++; !again {
			r.Lost++
		}
	case "pending":
		r.InFlight++
	}
}

// streamsOf counts records again: by stream, and all of them. Late news count.
func streamsOf(t *testing.T, ndjson []map[string]any) (rows map[ackStream]*ackRow, sum ackRow, trips []float64) {
	rows = map[ackStream]*ackRow{}
	absent := map[ackStream]map[int]bool{}
	states, of, again := map[int]string{}, map[int]*ackRow{}, map[int]bool{}
	for _, o := range ndjson {
		a, _ := o["ack"].(map[string]any)
		news := a
		switch stream, _ := inside(o, "envelope", "stream").(float64); {
		case o["type"] == "record" && (a != nil || stream > 0):
			k := ackStream{number(o, "session"), int(stream), fmt.Sprint(o["dir"]), ""}
			if stream == 0 {
				k.message = o["transport"].(string) + " " + o["message"].(string)
			}
			if rows[k] == nil {
				rows[k], absent[k] = &ackRow{}, map[int]bool{}
			}
			rows[k].add(o)
			sum.add(o)
			missing(t, absent[k], o)
			of[number(o, "n")], again[number(o, "n")] = rows[k], noted(o, "retransmission")
		case o["type"] == "ack":
			news = o
		default:
			continue
		}
		if news != nil {
			state, told := news["state"].(string)
			if !told {
				state = "acked" // as of what is acknowledged late
			}
			states[number(o, "n")] = state
			if rtt, ok := news["rtt_ms"].(float64); ok && state == "acked" {
				trips = append(trips, rtt)
			}
		}
	}
	for k, seqs := range absent {
		rows[k].Missing = len(seqs)
		sum.Missing += len(seqs)
	}
	for n, state := range states {
		of[n].ended(state, again[n])
		sum.ended(state, again[n])
	}
	slices.Sort(trips)
	return rows, sum, trips
}

// compareAcks compares acks with the records, and with the acknowledgements that came late.
func (s *statisticsOf) compareAcks(t *testing.T) {
	rows, sum, trips := streamsOf(t, s.ndjson)
	sum.Messages = nil
	g := s.acks.Sum
	g.Messages, g.RTT = nil, ackRow{}.RTT
	if !reflect.DeepEqual(g, sum) {
		t.Errorf("acks: got %+v, want %+v", g, sum)
	}
	if len(s.acks.Streams) != len(rows) {
		t.Errorf("%d streams, want %d", len(s.acks.Streams), len(rows))
	}
	for _, r := range s.acks.Streams {
		k := ackStream{r.Session, r.Stream, cmp.Or(r.Dir, "<nil>"), ""}
		if r.Stream == 0 {
			k.message = r.Transport + " " + r.Messages[0]
		}
		want := rows[k]
		if want == nil {
			t.Errorf("a stream that no record has: %+v", r)
			continue
		}
		got := r
		got.RTT, got.Session, got.Stream, got.Dir, got.Transport = ackRow{}.RTT, 0, 0, "", ""
		if !reflect.DeepEqual(&got, want) {
			t.Errorf("stream %v: got %+v, want %+v", k, got, want)
		}
	}
	inSessions := 0
	for _, x := range s.flows.Sessions {
		inSessions += x.RTT.Count
	}
	if inSessions != len(trips) {
		t.Errorf("flows has %d round trips, want %d", inSessions, len(trips))
	}
	rtt := &s.acks.Sum.RTT
	if rtt.Count != len(trips) {
		t.Errorf("%d round trips, want %d", rtt.Count, len(trips))
	} else if len(trips) > 0 {
		rank := func(p float64) float64 { return trips[max(0, int(math.Ceil(p*float64(len(trips))))-1)] }
		near := func(got, want float64) bool { return math.Abs(got-want) <= want/100+0.002 }
		if !near(rtt.P50, rank(0.5)) || !near(rtt.P90, rank(0.9)) || !near(rtt.P99, rank(0.99)) || !near(rtt.Max, trips[len(trips)-1]) {
			t.Errorf("round trips: got %+v, want %v", rtt, trips)
		}
	}
}

// The rows of tshark's conversations: two ends, frames and bytes back, there, and of both.
var (
	conversation = regexp.MustCompile(`(?m)^(\S+) +<-> (\S+) +(\d+) (\d+ \S+) +(\d+) (\d+ \S+) +(\d+) (\d+ \S+) `)
	ioColumns    = regexp.MustCompile(`(?m)^ *\|[^|]*<>[^|]*\| +(\d+) \| +(\d+) \|`)
)

// jsonTimes are the times in an object of JSON, by their keys.
var jsonTimes = regexp.MustCompile(`"(?:[a-z]+_)?time": ?("[^"]*"|null)`)

// TestTimesInJSON: all reports write times as NDJSON does, and those that RFC 3339 cannot
// say cost no report.
func TestTimesInJSON(t *testing.T) {
	lossy, err := os.ReadFile("../../pcaps/wulfram/lossy.pcapng")
	if err != nil {
		t.Fatal(err)
	}
	late := filepath.Join(t.TempDir(), "late.pcapng")
	if err := os.WriteFile(late, laterPackets(lossy, 49, 0xf0000000), 0o666); err != nil {
		t.Fatal(err)
	}
	commands := [][]string{
		{"decode", "-q", "--summary=json"}, {"decode"}, {"flows"}, {"flows", "--every", "1s"}, {"acks", "--every", "1s"}, {"verify"},
	}
	for file, want := range map[string]string{
		"../../pcaps/wulfram/lossy.pcapng": `"2026-11-29T20:15:0`,
		late:                               "null",
	} {
		for _, args := range commands {
			got := opscope(t, append(args, "-T", "json", file)...)
			if got.code > exitCheck || got.err != "" {
				t.Errorf("%v of %s ends with %d: %s", args, file, got.code, got.err)
			}
			found := false
			for _, m := range jsonTimes.FindAllStringSubmatch(got.out, -1) {
				found = found || strings.HasPrefix(m[1], want)
				if m[1] != "null" && len(m[1]) != len(`"2026-11-29T20:15:02.104512000Z"`) {
					t.Errorf("%v of %s: %s", args, file, m[0])
				}
			}
			if !found {
				t.Errorf("%v of %s has no time %s", args, file, want)
			}
			for d := json.NewDecoder(strings.NewReader(got.out)); d.More(); {
				var object map[string]any
				if err := d.Decode(&object); err != nil {
					t.Fatalf("%v of %s: %v", args, file, err)
				}
			}
		}
	}
}

// laterPackets sets the upper half of the time of the packets of a pcapng from one on.
func laterPackets(pcapng []byte, from int, upper uint32) []byte {
	b, le := bytes.Clone(pcapng), binary.LittleEndian
	const enhanced, timeHigh, total = 6, 12, 4
	for at, n := 0, 0; at < len(b); at += int(le.Uint32(b[at+total:])) {
		if le.Uint32(b[at:]) != enhanced {
			continue
		}
		if n++; n >= from {
			le.PutUint32(b[at+timeHigh:], upper)
		}
	}
	return b
}

// TestTsharkConversations compares packets and bytes of flows with the conversations that
// tshark finds in every capture.
func TestTsharkConversations(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip(err)
	}
	if testing.Short() {
		t.Skip("takes a second for each capture")
	}
	files, err := filepath.Glob("../../pcaps/*/*.pcapng")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), func(t *testing.T) {
			// Pieces of a datagram count with it, as they do for us, where it is not put together:
			// then they are IP, and in the sum.
			out, err := exec.Command(tshark, "-n", "-r", file, "-q", "-z", "conv,tcp", "-z", "conv,udp",
				"-z", "io,stat,0,(tcp || udp || ip.flags.mf == 1 || ip.frag_offset > 0 || ipv6.fraghdr) && !icmp && !icmpv6").Output()
			if err != nil {
				t.Fatal(err)
			}
			compareConversations(t, string(out), file)
		})
	}
}

// compareConversations compares what tshark prints of a file with flows. Where a flow has
// fragments, tshark counts the last of each datagram only.
func compareConversations(t *testing.T, out, file string) {
	var r flowReport
	if err := json.Unmarshal([]byte(good(t, "flows", "-T", "json", "--no-dedup", file)), &r); err != nil {
		t.Fatal(err)
	}
	type ends [2]string
	sorted := func(a, b string) ends { return ends{min(a, b), max(a, b)} }
	plain := strings.NewReplacer("[", "", "]", "") // tshark writes fd00::1:2627
	ours := map[ends]flowCounts{}
	for _, f := range r.Flows {
		k := sorted(plain.Replace(f.Client), plain.Replace(f.Server))
		k[0] += " " + f.Transport
		c := ours[k]
		c.add(&f.flowCounts)
		ours[k] = c
	}
	matched, others, otherPackets := 0, 0, 0
	for i, part := range strings.Split(out, "TCP Conversations") { // UDP comes first
		transport := [2]string{"udp", "tcp"}[i]
		for _, m := range conversation.FindAllStringSubmatch(part, -1) {
			k := sorted(m[1], m[2])
			k[0] += " " + transport
			frames, err := strconv.Atoi(m[7])
			c, known := ours[k]
			if !known || err != nil {
				others, otherPackets = others+1, otherPackets+frames
				continue
			}
			matched++
			fragments := (strings.HasSuffix(file, "fragments.pcapng") || strings.HasSuffix(file, "ipv6.pcapng")) && transport == "udp"
			if fragments && c.Packets <= frames || !fragments && (c.Packets != frames || !shows(m[8], c.Bytes)) {
				t.Errorf("%v: %d packets, %d bytes; tshark has %s", k, c.Packets, c.Bytes, m[0])
			}
		}
	}
	if matched != len(ours) || otherPackets != r.Other.Packets+r.Sessionless.Packets {
		t.Errorf("tshark has %d of our %d conversations, and %d others of %d packets; we have %d packets there", matched, len(ours), others, otherPackets, r.Other.Packets)
	}
	m := ioColumns.FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("tshark prints no sum:\n%s", out)
	}
	if packets := r.Sum.Packets + r.Other.Packets + r.Sessionless.Packets; strconv.Itoa(packets) != m[1] || packets == r.Sum.Packets && strconv.FormatInt(r.Sum.Bytes, 10) != m[2] {
		t.Errorf("%d packets, %d bytes in all flows; tshark has %s, %s", packets, r.Sum.Bytes, m[1], m[2])
	}
}

// shows reports whether tshark would print that many bytes so: from 10,000 on in kB.
func shows(text string, bytes int64) bool {
	word, unit, _ := strings.Cut(text, " ")
	n, err := strconv.ParseInt(word, 10, 64)
	switch {
	case err != nil:
		return false
	case unit == "kB":
		return bytes/1000 == n
	}
	return unit == "bytes" && n == bytes
}
