package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	lossyCapture = "../../pcaps/wulfram/lossy.pcapng"
	playCapture  = "../../pcaps/wulfram/play.pcapng"
)

// TestSessionUsage types what is wrong before the files.
func TestSessionUsage(t *testing.T) {
	for _, command := range []string{"follow", "ladder"} {
		for _, c := range []struct {
			args []string
			want string
		}{
			{nil, "no session to " + command + "\ntry: opscope " + command + " 1 FILE"},
			{[]string{"0", lossyCapture}, `"0" is no number of a session, which comes before the files` + "\ntry: opscope " + command + " 1 FILE"},
			{[]string{lossyCapture}, `"` + lossyCapture + `" is no number of a session, which comes before the files` + "\ntry: opscope " + command + " 1 " + lossyCapture},
			{[]string{"-1", lossyCapture}, "unknown shorthand flag"},
			{[]string{"1"}, "no file to read\ntry: opscope " + command + " 1 FILE"},
			{[]string{"2", lossyCapture}, "no session 2; there are:\n  1  wulfram, 10.0.0.2:50111 -> 10.0.0.1:2627\n"},
			{[]string{"3", playCapture, "-r", lossyCapture}, "no session 3; there are:\n" +
				"  " + lossyCapture + ": 1  wulfram, 10.0.0.2:50111 -> 10.0.0.1:2627\n" +
				"  " + playCapture + ": 1  wulfram, 10.0.0.2:50111 -> 10.0.0.1:2627\n" +
				"  " + playCapture + ": 2  wulfram, 10.0.0.3:51111 -> 10.0.0.1:2627\n"},
			{[]string{"1", "--color", "sometimes", lossyCapture}, `unknown --color "sometimes"`},
			{[]string{"1", "-t", "x", lossyCapture}, `unknown time format "x"`},
		} {
			r := opscope(t, append([]string{command}, c.args...)...)
			if r.code != exitUsage || !strings.HasPrefix(r.err, "opscope: "+c.want) {
				t.Errorf("opscope %s %v: exit code %d\n%s", command, c.args, r.code, r.err)
			}
		}
	}
}

// TestSessionOfDamagedFile proves that a file which may have had the session is the reason
// that is told by the exit code.
func TestSessionOfDamagedFile(t *testing.T) {
	cut := writeTemp(t, "cut.pcapng", readFile(t, sessionCapture)[:5000])
	for _, command := range []string{"follow", "ladder"} {
		if r := opscope(t, command, "1", cut); r.code != exitInput || !strings.Contains(r.out, "HELLO") {
			t.Errorf("%s: exit code %d, %s", command, r.code, r.out)
		}
		if r := opscope(t, command, "1", "--lenient", cut); r.code != exitDone {
			t.Errorf("%s --lenient: exit code %d", command, r.code)
		}
		if r := opscope(t, command, "2", cut); r.code != exitInput || !strings.Contains(r.err, "no session 2; there are:\n  1  wulfram") {
			t.Errorf("%s of a session that is not there: exit code %d, %s", command, r.code, r.err)
		}
		if r := opscope(t, command, "1", "no-such-file", sessionCapture); r.code != exitInput || !strings.Contains(r.out, "HELLO") {
			t.Errorf("%s: exit code %d", command, r.code)
		}
	}
}

// TestManySessions names some of the sessions there are, not all.
func TestManySessions(t *testing.T) {
	var lines strings.Builder
	for n := 1; n <= 50; n++ {
		fmt.Fprintf(&lines, `{"type":"session","file":0,"time":"2026-11-29T20:15:02Z","session":%d,"flow":%d,"client":"10.0.0.2:%d","server":"10.0.0.1:2627","protocol":"wulfram","state":"opened","reason":"syn"}`+"\n", n, n, n)
	}
	r := opscopeReading(t, strings.NewReader(lines.String()), "follow", "77", "-")
	if r.code != exitUsage || strings.Count(r.err, "wulfram") != maxListed || !strings.HasSuffix(r.err, "  and 30 more\n") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
}

// TestSeveralFilesOfASession shows the session of that number in each file.
func TestSeveralFilesOfASession(t *testing.T) {
	for _, command := range []string{"follow", "ladder"} {
		out := good(t, command, "1", lossyCapture, playCapture)
		if strings.Index(out, "-- file: "+lossyCapture) != 0 || !strings.Contains(out, "\n-- file: "+playCapture+" --\n") {
			t.Errorf("%s: the files have no headings:\n%.200s", command, out)
		}
		if n := strings.Count(out, "session: wulfram opened"); n != 2 {
			t.Errorf("%s: %d sessions, want 2", command, n)
		}
		// Only one of the files has a second one.
		if out := good(t, command, "2", lossyCapture, playCapture); !strings.Contains(out, "10.0.0.3") || strings.Contains(out, "10.0.0.2") {
			t.Errorf("%s: the second session is not alone", command)
		}
	}
	all := objects(t, good(t, "follow", "-T", "json", "1", lossyCapture, playCapture))
	if first, last := all[0]["file"], all[len(all)-1]["file"]; first != 0.0 || last != 1.0 {
		t.Errorf("the files have the numbers %v and %v", first, last)
	}
}

// TestSessionCount counts the records of the session, not those of others.
func TestSessionCount(t *testing.T) {
	if got := records(objects(t, good(t, "follow", "-c", "7", "-T", "json", "2", playCapture))); len(got) != 7 {
		t.Errorf("%d records, want 7", len(got))
	}
	if out := good(t, "ladder", "-c", "7", "2", playCapture); len(rows(out)) != 7 {
		t.Errorf("%d rows, want 7:\n%s", len(rows(out)), out)
	}
}

// What a record, a line of follow and a row of a ladder have in common.
type essence struct {
	packet    string // "" in follow
	time      string
	direction string // "c2s", "s2c" or "" for unknown
	transport string
	message   string
}

var (
	spoken = regexp.MustCompile(`^(\S+) +(->|<-|--) (c2s|s2c|   ) (tcp|udp)  (\S*)`)
	drawn  = regexp.MustCompile(`^ *(\d+) (\S+) +(tcp|udp) [╭│╰ ]{6} │ *│?([◄✗]?)[─═┄]* (\S+) [^│]*│`)
)

// lines returns the records in the output of follow.
func lines(out string) (list []essence) {
	for line := range strings.Lines(out) {
		if m := spoken.FindStringSubmatch(line); m != nil && m[5] != "--" {
			list = append(list, essence{"", m[1], strings.TrimSpace(m[3]), m[4], m[5]})
		}
	}
	return list
}

// rows returns the records in a ladder. One without a name is drawn as "?".
func rows(out string) (list []essence) {
	for line := range strings.Lines(out) {
		if m := drawn.FindStringSubmatch(line); m != nil && m[5] != "--" && !strings.Contains(line, " gap: ") {
			direction := "c2s"
			if m[4] != "" {
				direction = "s2c"
			}
			list = append(list, essence{m[1], m[2], direction, m[3], strings.TrimPrefix(m[5], "?")})
		}
	}
	return list
}

// TestEachRecordStandsOnce proves, for each session of each capture, that follow and
// ladder show what NDJSON has of it: all of it, once, in its order. A further copy of a
// message is counted on the first one; -V shows it.
func TestEachRecordStandsOnce(t *testing.T) {
	captures, err := filepath.Glob("../../pcaps/*/*.pcapng")
	if err != nil || len(captures) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	captures = thinned(captures)
	total := 0
	for _, capture := range captures {
		t.Run(filepath.Base(filepath.Dir(capture))+"/"+filepath.Base(capture), func(t *testing.T) {
			sessions := map[int][]map[string]any{}
			for _, r := range records(objects(t, good(t, "decode", "-T", "json", capture))) {
				n := int(r["session"].(float64))
				sessions[n] = append(sessions[n], r)
			}
			for n, want := range sessions {
				total += len(want)
				followed := good(t, "follow", "-t", "u", "-V", strconv.Itoa(n), capture)
				compareEssence(t, "follow -V", lines(followed), want, false, true)
				followed = good(t, "follow", "-t", "u", strconv.Itoa(n), capture)
				compareEssence(t, "follow", lines(followed), want, false, false)
				ladder := good(t, "ladder", "-t", "u", "--width", "400", strconv.Itoa(n), capture)
				compareEssence(t, "ladder", rows(ladder), want, true, false)
				again := records(objects(t, good(t, "follow", "-T", "json", strconv.Itoa(n), capture)))
				if len(again) != len(want) {
					t.Errorf("follow -T json: %d records, want %d", len(again), len(want))
				}
			}
		})
	}
	if total < 150*len(captures) {
		t.Errorf("only %d records of %d captures were compared", total, len(captures))
	}
}

// TestLadderOfAPipe draws what is not held: each record once, and what acknowledges it
// later once, too.
func TestLadderOfAPipe(t *testing.T) {
	data := string(readFile(t, lossyCapture))
	r := opscopeReading(t, strings.NewReader(data), "ladder", "-t", "u", "--width", "400", "1", "-")
	want := opscopeReading(t, strings.NewReader(data), "decode", "-T", "json", "-")
	if r.code != exitDone || want.code != exitDone {
		t.Fatalf("exit codes %d and %d", r.code, want.code)
	}
	all := objects(t, want.out)
	compareEssence(t, "ladder", rows(r.out), records(all), true, false)
	acks, beside, said := 0, 0, any(nil) // said is the record that the row above acknowledges
	for _, o := range all {
		switch o["type"] {
		case "ack":
			if acks++; o["n"] != said {
				beside++
			}
		case "record":
			named, _ := o["acks"].(map[string]any)
			said = named["n"]
		}
	}
	if got := strings.Count(r.out, "-- ack: "); got != beside || acks < 10*beside {
		t.Errorf("%d of %d acknowledgements have a row of their own, want %d", got, acks, beside)
	}
	if n := strings.Count(r.out, "pending"); n < acks {
		t.Errorf("%d records wait for an acknowledgement, want %d or more", n, acks)
	}
}

// compareEssence compares what is shown with the records; of a ladder with the packet.
// Copies are among them or not.
func compareEssence(t *testing.T, what string, got []essence, of []map[string]any, ladder, copies bool) {
	t.Helper()
	var want []essence
	for _, r := range of {
		if isCopy(r) && !copies {
			continue
		}
		e := essence{transport: r["transport"].(string), message: r["message"].(string)}
		e.direction, _ = r["dir"].(string)
		_, clock, _ := strings.Cut(r["time"].(string), "T")
		e.time = clock[:len("20:15:02.104512")]
		if packets := r["packets"].([]any); ladder {
			e.packet = fmt.Sprint(packets[len(packets)-1])
		}
		want = append(want, e)
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d records, want %d", what, len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		g, w := got[i], want[i]
		if w.direction == "" {
			g.direction = ""
		}
		g.time = g.time[:min(len(g.time), len(w.time))]
		if g != w {
			t.Errorf("%s: record %d is %v, want %v", what, i+1, g, w)
			return
		}
	}
}

// isCopy reports whether a record is a further copy of a message that is sent several times.
func isCopy(record map[string]any) bool {
	envelope, _ := record["envelope"].(map[string]any)
	return envelope["first"] != nil
}

// TestLadderShowsLosses proves that what NDJSON calls unacked, sent again, missing or not
// captured is drawn as such.
func TestLadderShowsLosses(t *testing.T) {
	for _, capture := range []string{lossyCapture, "../../pcaps/wulfram/missed.pcapng", "../../pcaps/mmo/lossy.pcapng", "../../pcaps/lotr2/three.pcapng"} {
		counts := map[string]int{}
		for _, o := range objects(t, good(t, "decode", "-T", "json", capture)) {
			if o["session"] != 1.0 {
				continue
			}
			if o["type"] == "gap" {
				counts["gap"]++
			}
			if o["type"] != "record" {
				continue
			}
			if isCopy(o) {
				continue
			}
			if ack, _ := o["ack"].(map[string]any); ack["state"] == "unacked" || ack["state"] == "ignored" {
				counts["lost"]++
			}
			if has(o, "sequence_gap") {
				counts["missing"]++
			}
			if slices.ContainsFunc([]string{"retransmission", "duplicate", "same_payload_new_sequence", "resend_copy", "unexpected_copy"}, func(code string) bool { return has(o, code) }) {
				counts["again"]++
			}
		}
		out := good(t, "ladder", "--width", "400", "1", capture)
		for what, pattern := range map[string]string{
			"gap": `~ gap: |gap: .* ~`, "lost": `(?m)^ *\d+ .*[─═]✗|^ *\d+ .*✗[─═]`, "missing": `(?m)^ +│.*not seen`, "again": "(?m)^.*(═►|═✗|◄═|✗═)",
		} {
			if got := len(regexp.MustCompile(pattern).FindAllString(out, -1)); got != counts[what] {
				t.Errorf("%s: %s is drawn %d times, want %d", capture, what, got, counts[what])
			}
		}
		t.Logf("%s: %v", capture, counts)
	}
}
