package main

import (
	"encoding/json"
	"math"
	"os/exec"
	"path/filepath"
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
	Dir, Message                                   string
	Session, Sent, Acked, Served, Ignored, Unacked int
	InFlight                                       int `json:"in_flight"`
	Retransmitted                                  int
	RTT                                            struct {
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

func readStatistics(t *testing.T, file string) (s statisticsOf) {
	t.Helper()
	out := good(t, "decode", "-T", "json", "-z", "flows", "-z", "opcodes", "-z", "acks", "-z", "tables", "--summary", file)
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
	return s
}

// TestStatisticsAgree counts the NDJSON of every capture again, and wants the same numbers
// of flows, opcodes, acks and the summary.
func TestStatisticsAgree(t *testing.T) {
	files, err := filepath.Glob("../../pcaps/*/*.pcapng")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	for _, file := range thinned(files) {
		t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), func(t *testing.T) {
			s := readStatistics(t, file)
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
		})
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

// compareAcks compares acks with the records, and with the acknowledgements that came late.
func (s *statisticsOf) compareAcks(t *testing.T) {
	state, again := map[int]string{}, 0
	var trips []float64
	took := func(o map[string]any) {
		if rtt, ok := o["rtt_ms"].(float64); ok && o["state"] == "acked" {
			trips = append(trips, rtt)
		}
	}
	for _, o := range s.ndjson {
		a, _ := o["ack"].(map[string]any)
		switch {
		case o["type"] == "record" && a != nil && a["state"] != "none":
			state[number(o, "n")] = a["state"].(string)
			took(a)
			for _, n := range o["notes"].([]any) {
				if n.(map[string]any)["code"] == "retransmission" {
					again++
				}
			}
		case o["type"] == "ack":
			state[number(o, "n")] = o["state"].(string)
			took(o)
		}
	}
	count := map[string]int{}
	for _, word := range state {
		count[word]++
	}
	g := &s.acks.Sum
	if g.Sent != len(state) || g.Acked != count["acked"] || g.Served != count["duplicate"] || g.Ignored != count["ignored"] ||
		g.Unacked != count["unacked"] || g.InFlight != count["pending"] || g.Retransmitted != again {
		t.Errorf("acks: got %+v, want %d sent, %d again, and of states %v", g, len(state), again, count)
	}
	var sum ackRow
	for _, r := range s.acks.Streams {
		sum.Sent, sum.Acked, sum.Unacked, sum.Retransmitted = sum.Sent+r.Sent, sum.Acked+r.Acked, sum.Unacked+r.Unacked, sum.Retransmitted+r.Retransmitted
	}
	if sum.Sent != g.Sent || sum.Acked != g.Acked || sum.Unacked != g.Unacked || sum.Retransmitted != g.Retransmitted {
		t.Errorf("the streams add up to %+v, want %+v", sum, g)
	}
	slices.Sort(trips)
	if g.RTT.Count != len(trips) {
		t.Errorf("%d round trips, want %d", g.RTT.Count, len(trips))
	} else if len(trips) > 0 {
		rank := func(p float64) float64 { return trips[max(0, int(math.Ceil(p*float64(len(trips))))-1)] }
		near := func(got, want float64) bool { return math.Abs(got-want) <= want/100+0.002 }
		if !near(g.RTT.P50, rank(0.5)) || !near(g.RTT.P90, rank(0.9)) || !near(g.RTT.P99, rank(0.99)) || !near(g.RTT.Max, trips[len(trips)-1]) {
			t.Errorf("round trips: got %+v, want %v", g.RTT, trips)
		}
	}
}

// The rows of tshark's conversations: two ends, frames and bytes back, there, and of both.
var (
	conversation = regexp.MustCompile(`(?m)^(\S+) +<-> (\S+) +(\d+) (\d+ \S+) +(\d+) (\d+ \S+) +(\d+) (\d+ \S+) `)
	ioColumns    = regexp.MustCompile(`(?m)^ *\|[^|]*<>[^|]*\| +(\d+) \| +(\d+) \|`)
)

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
