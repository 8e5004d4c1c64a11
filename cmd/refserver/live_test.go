package main

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var live = flag.Bool("live", false, "play over loopback for a minute with tcpdump listening, which takes root")

const mmoLive = `say hello there
walk east
wait 2s
walk northwest
wait 2s
stop
echo cafe00ff
repeat 8 attack
carry 0 9
await InventoryOperationResult
stale
use 9
await InventoryOperationResult
use 9
again
login Ada swordfish
servers
walk south
wait 2s
stop
repeat 15 say again
await Ping
walk southeast
wait 2s
stop
say good bye
wait 2s
leave
`

const wulframLive = `team red
spawn 1 tank
say hello there
move forward 1
look 1003
wait 2s
repeat 3 squad
beacon
retarget
demand
kudos
wait 2s
move turn 0.5
move jump 1
long 5000
wait 2s
move fire 1
move jump 0
repeat 20 look none
repeat 20 say again
wait 2s
move fire 0
ping
drop
team-say on my way
say /dock
wait 2s
say /die
wait 2s
spawn 2 scout
move strafe -0.25
repeat 5 beacon
wait 3s
deploy
skip
resend
say good bye
wait 5s
leave
`

// lotr2LiveHost and lotr2LiveScript let three peers play two turns of a campaign.
const (
	lotr2LiveHost = `await choice
say welcome
option 2 2
await players 2
wait 1s
campaign
end-turns
await start
wait 1s
letter 2 Verily, your oppression of the weak is worthy of emulation.  Pray, teach me more.
mark
trade 10
`
	lotr2LiveScript = `choose 2
wait 500ms
say hello there
await start
ping
wait 9s
repeat 3 mark
trade -3
end-turn
await turn
await start
wait 500ms
end-turn
await turn
say good game
wait 1s
leave
`
)

// livePlay is a game over loopback.
type livePlay struct {
	protocol     string
	serve, bots  []string // arguments
	host, script string   // scripts; the server's may be empty
	filter       string   // of tcpdump; empty for the server's port
	listens      []string // where nobody else may
	routes       int      // pairs of ends with records between them
	notes        []string // that are usual
	decoder      []string // arguments of opscope
	port         int      // of the server, where it has the usual one
}

var livePlays = []livePlay{
	{
		protocol: "wulfram", port: 2627, serve: []string{"--listen", "127.0.0.1:0"}, bots: []string{"--count", "3"}, script: wulframLive, routes: 12,
		notes: []string{"unknown_body", "retransmission", "ack_repeated", "late_context", "same_payload_new_sequence", "never_acknowledged"},
	},
	{ // each pair has two connections, and pings both ways; the joiners ask for sessions
		protocol: "lotr2", port: 2300, bots: []string{"--count", "2"}, host: lotr2LiveHost, script: lotr2LiveScript,
		filter: "(host 127.0.0.2 or host 127.0.0.3) and (tcp port 2300 or udp port 2350 or udp port 47624)", routes: 3*4 + 2, listens: []string{"127.0.0.1:2300", "127.0.0.2:2300", "127.0.0.3:2300"},
		notes: []string{"resend_copy", "sequence_gap"},
	},
	{
		protocol: "mmo", port: 7777, serve: []string{"--listen", "127.0.0.1:0", "--udp-port", "0", "--development", "--seed", "0"}, bots: []string{"--count", "3"},
		script: mmoLive, routes: 12,
		notes:   []string{"deprecated_packet", "development_packet", "ack_repeated", "never_acknowledged"},
		decoder: []string{"--proto", "internal/mmo/testserver/messages"},
	},
}

// TestLive plays over real sockets while tcpdump captures them, decodes the capture
// with opscope, and compares it with what both sides say they sent and received.
func TestLive(t *testing.T) {
	switch {
	case !*live:
		t.Skip("takes a minute and root: go test ./cmd/refserver -run Live -live")
	case runtime.GOOS != "linux" || os.Geteuid() != 0:
		t.Skip("capturing takes root on Linux")
	}
	tcpdump, err := exec.LookPath("tcpdump")
	if err != nil {
		t.Skip(err)
	}
	for _, p := range livePlays {
		t.Run(p.protocol, func(t *testing.T) {
			r := recording{t: t, dir: t.TempDir(), livePlay: p}
			r.capture(tcpdump)
			r.compare(decodedBy(t, r.file("lo.pcap"), p.decoder...))
		})
	}
}

// decodedBy returns what opscope prints of a capture, with its summary last.
func decodedBy(t *testing.T, capture string, args ...string) []map[string]any {
	t.Helper()
	dir := t.TempDir()
	opscope, decoded := filepath.Join(dir, "opscope"), filepath.Join(dir, "decoded")
	if out, err := exec.Command("go", "build", "-o", opscope, "opscope/cmd/opscope").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var printed, complaint bytes.Buffer
	cmd := exec.Command(opscope, append([]string{"decode", "-T", "json", "--summary", capture}, args...)...)
	cmd.Stdout, cmd.Stderr = &printed, &complaint
	const shown = "opscope: passwords and tokens are shown as they are; do not hand the output on\n" // as asked for
	if err := cmd.Run(); err != nil || strings.Replace(complaint.String(), shown, "", 1) != "" {
		t.Fatalf("%v\n%s", err, complaint.Bytes())
	}
	if err := os.WriteFile(decoded, printed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return jsonLines(t, decoded)
}

// recording is a game over loopback, with what is known of it.
type recording struct {
	livePlay
	t   *testing.T
	dir string
}

func (r *recording) file(name string) string { return filepath.Join(r.dir, name) }

// capture has bots play against a server, and tcpdump write what they say to lo.pcap.
func (r *recording) capture(tcpdump string) {
	t := r.t
	for _, addr := range r.listens {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Skip("somebody has the ports, or there is no such address: ", err)
		}
		l.Close()
	}
	for name, text := range map[string]string{"script": r.script, "host": r.host} {
		if err := os.WriteFile(r.file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	end, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Skip("no sockets here: ", err)
	}
	defer end.Close()
	mark := end.LocalAddr().(*net.UDPAddr)
	args := append([]string{"serve", r.protocol, "--log", r.file("server")}, r.serve...)
	if r.host != "" {
		args = append(args, "--script", r.file("host"))
	}
	server := refserver(t, args...)
	addr, _, _ := strings.Cut(server.until("listening on "), ",")
	filter := r.filter
	args = append([]string{"bot", r.protocol, "--script", r.file("script"), "--log", r.file("bots")}, r.bots...)
	if filter == "" {
		_, port, _ := net.SplitHostPort(addr)
		filter = "port " + port
		args = append(args, "--connect", addr)
	}
	filter += fmt.Sprintf(" or udp port %d", mark.Port)
	dump := start(t, exec.Command(tcpdump, "-i", "lo", "-n", "-U", "-B", "8192", "-Z", "root", "-w", r.file("lo.pcap"), filter))
	dump.until("listening on lo")

	began := time.Now()
	bots := refserver(t, args...)
	bots.end()
	t.Logf("the bots played for %v", time.Since(began).Round(100*time.Millisecond))
	server.signal(os.Interrupt)
	if code := server.end(); code != exitDone {
		t.Errorf("the server ends with %d", code)
	}
	const said = "that was all, says the test"
	if _, err := end.WriteToUDP([]byte(said), mark); err != nil { // to itself
		t.Fatal(err)
	}
	waitFor(t, r.file("lo.pcap"), said)
	dump.signal(os.Interrupt)
	if lost := dump.until("packets received by filter"); lost != "" {
		t.Errorf("tcpdump says %q", lost)
	}
	if lost := dump.until(" packets dropped by kernel"); lost != "" {
		t.Errorf("tcpdump says %q", lost)
	}
	dump.end()
}

// compare compares the records of opscope with the logs.
func (r *recording) compare(all []map[string]any) {
	t := r.t
	left := (&play{t, all}).departures()
	byRoute := map[string][]said{}
	last := map[string]float64{} // the packet of the last record, by route
	found, opaque := 0, 0
	for _, o := range all {
		switch o["type"] {
		case "record":
			s := saidBy(o)
			byRoute[s.route], last[s.route] = append(byRoute[s.route], s), packetOf(o)
			opaque += len(s.opaque)
			found++
			r.sound(o)
		case "gap":
			t.Errorf("a gap: %v", o)
		}
	}
	summary := all[len(all)-1]
	for key, want := range map[string]int{"undecoded_bytes": opaque, "unknown_opcodes": 0, "gaps": 0, "conflicts": 0, "resyncs": 0} {
		if got, ok := summary[key].(float64); !ok || got != float64(want) {
			t.Errorf("%s of the summary: %v, want %d", key, summary[key], want)
		}
	}
	sent, received := 0, 0
	logged := map[string][]said{}
	acked := 0
	for _, name := range []string{"server", "bots"} {
		lines := jsonLines(t, r.file(name))
		acks, next := acknowledged(lines), nextTimes(lines)
		for i, o := range lines {
			if o["type"] != "record" {
				continue
			}
			s := saidBy(o)
			if s.acked = acks[numbered(o)]; s.acked {
				acked++
			}
			if o["id"] == nil { // what a receiver tells has no number
				received++
				if !slices.ContainsFunc(byRoute[s.route], s.same) {
					t.Errorf("%s received what was not found: %v", name, s)
				}
				continue
			}
			if len(logged[s.route]) == len(byRoute[s.route]) && left.late(o, next[i], last[s.route]) {
				continue
			}
			sent++
			logged[s.route] = append(logged[s.route], s)
		}
	}
	for route := range maps.Keys(byRoute) {
		compareRoute(t, route, logged[route], byRoute[route])
		delete(logged, route)
	}
	for route, list := range logged {
		t.Errorf("%s: %d records are not found at all", route, len(list))
	}
	t.Logf("%d records found; %d sent, %d received, %d acknowledged by the logs; %d opaque bytes", found, sent, received, acked, opaque)
	if len(byRoute) != r.routes {
		t.Errorf("records between %d pairs of ends, want %d: %v", len(byRoute), r.routes, slices.Sorted(maps.Keys(byRoute)))
	}
}

// sound wants a record to be known, without an error, and read with what was
// learned.
func (r *recording) sound(o map[string]any) {
	for _, n := range o["notes"].([]any) {
		if code := n.(map[string]any)["code"]; !slices.Contains(r.notes, fmt.Sprint(code)) {
			r.t.Errorf("%v %v in packets %v: %v", o["message"], o["envelope"], o["packets"], n)
		}
	}
	if o["error"] != nil || o["context"] == "default" || o["context"] == "guessed" {
		r.t.Errorf("%v in packets %v: error %v, context %v", o["message"], o["packets"], o["error"], o["context"])
	}
}

// compareRoute compares what went from one end to another, in order.
func compareRoute(t *testing.T, route string, logged, found []said) {
	t.Helper()
	for i := range max(len(logged), len(found)) {
		if i >= len(logged) || i >= len(found) || !logged[i].same(found[i]) {
			t.Errorf("%s, record %d of %d: found %v, want %v of %d", route, i+1, len(found),
				append(found, said{})[min(i, len(found))], append(logged, said{})[min(i, len(logged))], len(logged))
			return
		}
		if logged[i].acked && !found[i].acked {
			t.Errorf("%s: acknowledged, says its sender, and %v", route, found[i])
		}
	}
}

// acknowledged lists the records that a log says were acknowledged.
func acknowledged(lines []map[string]any) map[string]bool {
	acks := map[string]bool{}
	for _, o := range lines {
		if o["type"] == "ack" {
			acks[numbered(o)] = true
		}
	}
	return acks
}

// numbered names a record of a log.
func numbered(o map[string]any) string { return fmt.Sprint(o["peer"], " ", o["id"]) }

// said is a record as a log and opscope both tell it.
type said struct {
	route, message string // with the transport and the direction
	mode, seq      any
	size           float64
	fields         map[string]any
	opaque         string // bytes that nobody knows
	acked          bool
}

func (s said) String() string {
	return fmt.Sprintf("%s, %s, mode %v seq %v, %v bytes, %v %x", s.route, s.message, s.mode, s.seq, s.size, s.fields, s.opaque)
}

// saidBy takes a line of a log, or of opscope.
func saidBy(o map[string]any) said {
	e, _ := o["envelope"].(map[string]any)
	s := said{
		route:   fmt.Sprint(o["transport"], " ", o["dir"], " ", o["src"], " > ", o["dst"]),
		message: o["message"].(string), mode: e["mode"], seq: e["seq"], size: o["size"].(float64),
		fields: o["fields"].(map[string]any),
	}
	if ack, ok := o["ack"].(map[string]any); ok {
		s.acked = ack["state"] != "unacked"
	}
	body, _ := o["rest"].(string)
	if o["opaque"] == true {
		body, _ = s.fields["opaque"].(string)
		s.fields = map[string]any{}
	}
	b, _ := hex.DecodeString(body)
	s.opaque = string(b)
	return s
}

// same reports whether two tell the same, but for fields that opscope computes.
func (s said) same(f said) bool {
	return s.route == f.route && s.message == f.message && s.mode == f.mode && s.seq == f.seq && s.size == f.size &&
		s.opaque == f.opaque && sameValue(s.fields, f.fields)
}

// sameValue compares a value that was sent with one that was found. Numbers may differ
// by what printing loses.
func sameValue(want, got any) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		for k, v := range w {
			ok = ok && (v == nil || sameValue(v, g[k]))
		}
		return ok
	case []any:
		g, ok := got.([]any)
		return ok && slices.EqualFunc(w, g, sameValue)
	case float64:
		g, ok := got.(float64)
		if text, wide := got.(string); wide { // an integer of 64 bits
			n, err := strconv.ParseFloat(text, 64)
			g, ok = n, err == nil
		}
		return ok && math.Abs(g-w) <= 1e-6*max(1, math.Abs(w))
	}
	return want == got
}
