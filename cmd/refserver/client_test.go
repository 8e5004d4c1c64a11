package main

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/bits"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var played = flag.String("client", "", "compare what .ci/netrek-client left in this directory")

// TestRealClient compares what three witnesses tell of one game: opscope of its capture,
// the real client by the trace that it prints (section 12 of the facts), and our server
// by its log. The client is in the capture with all of its packets, each way and over
// each transport in the order of the trace, with the values that it prints; and nothing
// is left, but what the server sent when the client had said CP_BYE. The bot that keeps
// the client company says nothing: it is interrupted, and hangs up.
func TestRealClient(t *testing.T) {
	if *played == "" {
		t.Skip(`takes the real client: go test ./cmd/refserver -run RealClient -client "$(.ci/netrek-client)"`)
	}
	p := play{t: t, all: decodedBy(t, filepath.Join(*played, "play.pcap"), "--show-secrets")}
	trace, err := os.ReadFile(filepath.Join(*played, "trace.txt"))
	if err != nil {
		t.Fatal(err)
	}
	p.compareTrace(readTrace(t, trace))
	p.compareLog(jsonLines(t, filepath.Join(*played, "server.ndjson")))
}

// play is a game as opscope tells it.
type play struct {
	t   *testing.T
	all []map[string]any // lines of NDJSON
}

// records returns the records to keep.
func (p *play) records(keep func(o map[string]any) bool) (list []map[string]any) {
	for _, o := range p.all {
		if o["type"] == "record" && keep(o) {
			list = append(list, o)
		}
	}
	return list
}

// compareLog wants everything to be known, and to be what the server tells.
func (p *play) compareLog(log []map[string]any) {
	t := p.t
	left := p.departures()
	found := map[string][]said{}
	last := map[string]float64{} // the packet of the last record, by route
	for _, o := range p.all {
		switch o["type"] {
		case "record":
			p.sound(o)
			s := saidBy(o)
			if s.message == "CP_LOGIN" {
				s.fields["password"] = "***" // as the log has it
			}
			found[s.route], last[s.route] = append(found[s.route], s), packetOf(o)
		case "session", "summary":
		case "event":
			if !expectedEvent(o, left[o["session"]]) {
				t.Errorf("an event: %v", o)
			}
		default:
			t.Errorf("found %v", o)
		}
	}
	summary := p.all[len(p.all)-1]
	for _, key := range []string{"unknown_opcodes", "unknown_bodies", "undecoded_bytes", "gaps", "lost_bytes", "conflicts", "resyncs", "cut_bytes"} {
		if summary[key] != 0.0 {
			t.Errorf("%s of the summary: %v", key, summary[key])
		}
	}
	logged := map[string][]said{}
	n := 0
	next := nextTimes(log)
	for i, o := range log {
		if o["type"] != "record" {
			continue
		}
		dropParts(o["fields"])
		s := saidBy(o)
		if len(logged[s.route]) == len(found[s.route]) && left.late(o, next[i], last[s.route]) {
			continue
		}
		logged[s.route] = append(logged[s.route], s)
		n++
	}
	routes := maps.Clone(logged)
	maps.Copy(routes, found)
	for route := range routes {
		compareRoute(t, route, logged[route], found[route])
	}
	t.Logf("the server's log and the capture: %d records on %d routes", n, len(routes))
}

// departure is when a client has left.
type departure struct {
	packet float64
	time   string
}

// departures are when the clients left, by their sessions and by their addresses: when
// they said CP_BYE, or hung up, with or without having read everything, which comes first.
type departures map[any]departure

// late reports whether a record of a log, which was written by the time of the next entry,
// may have been written to a connection that was no more: its client had left by then, or
// by the packet of the last record that did arrive.
func (d departures) late(o map[string]any, next string, last float64) bool {
	gone, ok := d[o["dst"]]
	return ok && o["transport"] == "tcp" && (next > gone.time || last > gone.packet)
}

// nextTimes returns for each entry of a log the time of the first one that is later. What
// one step of a machine writes has the time of its beginning.
func nextTimes(log []map[string]any) []string {
	times := make([]string, len(log))
	now, next := "", "~" // behind all times
	for i, o := range slices.Backward(log) {
		if t, ok := o["time"].(string); ok && t != now {
			if now != "" {
				next = now
			}
			now = t
		}
		times[i] = next
	}
	return times
}

func TestNextTimes(t *testing.T) {
	var log []map[string]any
	for _, at := range []string{"1", "1", "2", "4", "4"} {
		log = append(log, map[string]any{"time": at})
	}
	if got, want := nextTimes(log), []string{"2", "2", "4", "~", "~"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// departures finds out when the clients left.
func (p *play) departures() departures {
	left := departures{}
	address := map[any]any{} // of the clients' connections, by session
	for _, o := range p.all {
		if o["dir"] != "c2s" || o["transport"] != "tcp" {
			continue
		}
		if o["type"] == "record" {
			address[o["session"]] = o["src"]
		}
		if o["message"] != "CP_BYE" && o["code"] != "closed" && o["code"] != "reset" {
			continue
		}
		d := departure{packetOf(o), o["time"].(string)}
		if old, ok := left[o["session"]]; !ok || d.packet < old.packet {
			left[o["session"]], left[address[o["session"]]] = d, d
		}
	}
	return left
}

// expectedEvent reports whether an event belongs to a game. The server may send something
// before it has heard that the client is gone, which is answered with a reset, or with an
// ICMP error. Packets of the same microsecond have an order, and so their numbers count.
func expectedEvent(o map[string]any, left departure) bool {
	switch o["code"] {
	case "closed":
		return true
	case "reset", "icmp_error":
		return left.packet > 0 && packetOf(o) > left.packet
	}
	return false
}

// TestExpectedEvent has two clients in one game, sessions 1 and 2. The end of one is none
// of the other.
func TestExpectedEvent(t *testing.T) {
	const before, at = "2026-01-01T00:00:01.000000000Z", "2026-01-01T00:00:02.000000000Z"
	line := func(kind, what string, session, packet float64, time string) map[string]any {
		o := map[string]any{"type": kind, "dir": "c2s", "transport": "tcp", "session": session, "packets": []any{packet}, "time": time}
		if kind == "event" {
			o["code"] = what
		} else {
			o["message"], o["src"] = what, fmt.Sprint("127.0.0.1:", session)
		}
		return o
	}
	record := func(what string, session, packet float64, time string) map[string]any {
		return line("record", what, session, packet, time)
	}
	event := func(what string, session, packet float64, time string) map[string]any {
		return line("event", what, session, packet, time)
	}
	began := []map[string]any{record("CP_SOCKET", 1, 1, before), record("CP_SOCKET", 2, 2, before)}
	bye, hangUp := record("CP_BYE", 1, 5, at), event("closed", 1, 5, at)
	serverEnds := event("closed", 1, 5, at)
	serverEnds["dir"] = "s2c"
	for _, test := range []struct {
		name  string
		ends  []map[string]any
		event map[string]any
		want  bool
	}{
		{"a reset in the game", nil, event("reset", 1, 6, at), false},
		{"an ICMP error in the game", nil, event("icmp_error", 1, 6, at), false},
		{"a reset behind CP_BYE, in the same microsecond", []map[string]any{bye}, event("reset", 1, 6, at), true},
		{"an ICMP error behind CP_BYE", []map[string]any{bye}, event("icmp_error", 1, 6, at), true},
		{"a reset before CP_BYE", []map[string]any{bye}, event("reset", 1, 4, before), false},
		{"a reset behind the CP_BYE of the other client", []map[string]any{bye}, event("reset", 2, 6, at), false},
		{"a reset by who has hung up", []map[string]any{hangUp}, event("reset", 1, 6, at), true},
		{"a reset before that", []map[string]any{hangUp}, event("reset", 1, 4, before), false},
		{"a reset by a client on which the server has hung up", []map[string]any{serverEnds}, event("reset", 1, 6, at), false},
		{"the end", nil, event("closed", 1, 6, at), true},
		{"anything else behind CP_BYE", []map[string]any{bye}, event("overlap_conflict", 1, 6, at), false},
	} {
		p := play{t: t, all: slices.Concat(began, test.ends, []map[string]any{test.event})}
		if got := expectedEvent(test.event, p.departures()[test.event["session"]]); got != test.want {
			t.Errorf("%s: expected %v, want %v", test.name, got, test.want)
		}
	}
}

// sound wants a record to be known, to its last byte, and without anything odd.
func (p *play) sound(o map[string]any) {
	if o["error"] != nil || o["rest"] != "" || o["opaque"] == true {
		p.t.Errorf("%v in packets %v: error %v, left over %q, opaque %v", o["message"], o["packets"], o["error"], o["rest"], o["opaque"])
	}
	for _, n := range o["notes"].([]any) {
		if n.(map[string]any)["severity"] != "info" {
			p.t.Errorf("%v in packets %v: %v", o["message"], o["packets"], n)
		}
	}
}

// dropParts drops the parts of what is put together, such as x_0 and x_8 of x: opscope
// does not show them.
func dropParts(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if dropParts(x); partName.MatchString(k) {
				delete(v, k)
			}
		}
	case []any:
		for _, x := range v {
			dropParts(x)
		}
	}
}

var partName = regexp.MustCompile(`_\d+$`)

// compareTrace compares the client's trace with its session in the capture.
func (p *play) compareTrace(trace []traced) {
	t := p.t
	first := p.records(func(o map[string]any) bool { return trace[0].message == "CP_SOCKET" && trace[0].differs(o) == "" })
	if len(first) != 1 {
		t.Fatalf("%d sessions begin as the trace does, with %v", len(first), &trace[0])
	}
	bye := p.records(func(o map[string]any) bool { return o["message"] == "CP_BYE" && o["session"] == first[0]["session"] })
	if len(bye) != 1 {
		t.Fatalf("the client says CP_BYE %d times", len(bye))
	}
	for _, dir := range []string{"c2s", "s2c"} {
		told := slices.DeleteFunc(slices.Clone(trace), func(e traced) bool { return e.dir != dir })
		w := walk{t: t, dir: dir, counts: map[string]int{}}
		for i, transport := range []string{"tcp", "udp"} {
			w.found[i] = p.records(func(o map[string]any) bool {
				// Of what it sends for pings the client does not tell.
				return o["session"] == first[0]["session"] && o["dir"] == dir && o["transport"] == transport && o["message"] != "CP_PING_RESPONSE"
			})
		}
		w.compare(told, packetOf(bye[0]))
	}
}

// packetOf returns the number of the last packet with a record.
func packetOf(o map[string]any) float64 {
	list := o["packets"].([]any)
	return list[len(list)-1].(float64)
}

// walk goes along one direction of the trace. The client takes what TCP and UDP bring as
// it comes to read them, but each of them in order, and a datagram as a whole.
type walk struct {
	t      *testing.T
	dir    string
	found  [2][]map[string]any // over TCP, over UDP: what is still to come
	inside float64             // packet of the datagram that the last entry was in, else 0
	counts map[string]int      // entries that agree, by transport and message
	values int                 // that agree in them
}

func (w *walk) compare(told []traced, bye float64) {
	for i := range told {
		if why := w.step(&told[i]); why != "" {
			w.t.Errorf("%s, entry %d of %d in the trace, %v: %s", w.dir, i+1, len(told), &told[i], why)
			return
		}
	}
	unread := 0
	for _, o := range slices.Concat(w.found[0], w.found[1]) {
		if unread++; w.dir == "c2s" || packetOf(o) < bye {
			w.t.Errorf("the client does not tell of %v in packets %v", o["message"], o["packets"])
		}
	}
	keys := slices.Sorted(maps.Keys(w.counts))
	for i, k := range keys {
		keys[i] = fmt.Sprint(k, " ", w.counts[k])
	}
	w.t.Logf("the client's trace and the capture, %s: %d packets with %d values, and %d packets behind CP_BYE: %s",
		w.dir, len(told), w.values, unread, strings.Join(keys, ", "))
}

// step finds the record of an entry, or says why that is not possible.
func (w *walk) step(e *traced) string {
	why := [2]string{"nothing more in the capture", "nothing more in the capture"}
	for i, list := range w.found {
		if len(list) > 0 {
			why[i] = e.differs(list[0])
		}
	}
	if w.inside != 0 { // the rest of a datagram comes first
		why[0] = "the datagram is not at its end"
	}
	i := slices.Index(why[:], "")
	if i < 0 {
		return fmt.Sprintf("over TCP %s; over UDP %s", why[0], why[1])
	}
	o := w.found[i][0]
	w.found[i] = w.found[i][1:]
	w.counts[fmt.Sprint(o["transport"], " ", o["message"])]++
	w.values += e.compared
	w.inside = 0
	if i == 1 && len(w.found[1]) > 0 && packetOf(w.found[1][0]) == packetOf(o) {
		w.inside = packetOf(o)
	}
	return ""
}

// traced is an entry of the client's trace.
type traced struct {
	dir, message string
	values       []printed
	compared     int // how many of them could be
}

// printed is a value of an entry, as it stands there.
type printed struct {
	name, text string
	quoted     bool
}

func (e *traced) String() string { return fmt.Sprint(e.message, " ", e.values) }

var (
	entryStart = regexp.MustCompile(`(?m)^(S->C|C->S) ([A-Z0-9_]+)\t`)
	valueName  = regexp.MustCompile(`^[, \n]*([a-z][A-Za-z0-9_]*) ?= ?`)
	textEnd    = regexp.MustCompile(`^"(?:, [a-z0-9_]+=|,?$)`)
	bareValue  = regexp.MustCompile(`^(?:0x[0-9A-F]+|-?[0-9]+|[^ ,])`)
)

// readTrace reads a trace, which is Latin-1, and ends with the client's farewell.
func readTrace(t *testing.T, trace []byte) (list []traced) {
	text, ok := strings.CutSuffix(latin1(trace), "you quit\n")
	if !ok {
		t.Errorf("the client does not end with its farewell, but with %q", text[max(0, len(text)-100):])
	}
	starts := entryStart.FindAllStringSubmatchIndex(text, -1)
	for i, s := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		e := traced{dir: "s2c", message: text[s[4]:s[5]]}
		if text[s[2]:s[3]] == "C->S" {
			e.dir = "c2s"
		}
		if e.message == "CP_PLAMSA" {
			e.message = "CP_PLASMA"
		}
		if rest := e.read(strings.TrimSuffix(text[s[1]:end], "\n")); rest != "" {
			t.Errorf("%s in the trace: %q is no value", e.message, rest)
		}
		list = append(list, e)
	}
	if len(list) == 0 {
		t.Fatal("the trace is empty")
	}
	return list
}

// read reads the values of an entry, and returns what is none.
func (e *traced) read(body string) string {
	for {
		m := valueName.FindStringSubmatch(body)
		if m == nil {
			rest := strings.Trim(body, ", \n")
			return strings.TrimSuffix(rest, "no args") // said of a packet without fields
		}
		body = body[len(m[0]):]
		v := printed{name: m[1]}
		if v.quoted = strings.HasPrefix(body, `"`); v.quoted {
			body = body[1:]
			end := 0
			for end < len(body) && !textEnd.MatchString(body[end:]) {
				end++
			}
			v.text, body = body[:end], body[min(end+1, len(body)):]
		} else {
			v.text = bareValue.FindString(body)
			body = body[len(v.text):]
		}
		e.values = append(e.values, v)
	}
}

func latin1(b []byte) string {
	r := make([]rune, len(b))
	for i, c := range b {
		r[i] = rune(c)
	}
	return string(r)
}

// differs says what an entry tells otherwise than a record, which is nothing if they
// agree.
func (e *traced) differs(o map[string]any) string {
	if o["message"] != e.message {
		return fmt.Sprintf("there is %v in packets %v", o["message"], o["packets"])
	}
	fields := o["fields"].(map[string]any)
	nth := map[string]int{}
	e.compared = 0
	for _, v := range e.values {
		want, known := expected(e, v.name, fields)
		if !known {
			continue
		}
		n := nth[v.name]
		nth[v.name]++
		e.compared++
		if n >= len(want) || !v.tells(want[n]) {
			return fmt.Sprintf("%s is %q, and %v of %v in packets %v", v.name, v.text, want, fields, o["packets"])
		}
	}
	for name, n := range nth {
		if want, _ := expected(e, name, fields); n != len(want) {
			return fmt.Sprintf("%d values of %s, and %v in packets %v", n, name, want, o["packets"])
		}
	}
	return ""
}

// tells reports whether a value was printed of a field. A number is printed with or
// without a sign, whatever it is; one of 8 bits may be printed as the letter that it is,
// and a letter as its number.
func (v *printed) tells(field any) bool {
	n, err := strconv.ParseInt(v.text, 0, 64)
	switch field := field.(type) {
	case float64:
		if err != nil {
			return !v.quoted && len(v.text) == 1 && float64(v.text[0]) == field
		}
		return uint32(n) == uint32(int64(field))
	case int:
		return v.tells(float64(field))
	case string:
		switch {
		case !v.quoted && err == nil && len(field) == 1:
			return n == int64(field[0])
		case v.quoted && v.name == "keymap" && len(field) == keymapSize: // without a NUL it does not end
			return strings.HasPrefix(v.text, field)
		}
		return strings.TrimRight(v.text, "\x00") == field
	}
	return false
}

const keymapSize = 96

// expected returns what the client is to print under a name, by the fields of a record:
// one value, or those of a list. It is not known where the client prints what stands
// behind the packet.
func expected(e *traced, name string, fields map[string]any) (want []any, known bool) {
	if f := quirks[e.message+"."+name]; f != nil {
		v := f(fields)
		return []any{v}, v != nil
	}
	path := cmp.Or(names[e.message+"."+name], name)
	return values(fields, strings.Split(path, ".")), true
}

// values returns the values at a path through structs and lists.
func values(v any, path []string) []any {
	switch v := v.(type) {
	case []any:
		var list []any
		for _, x := range v {
			list = append(list, values(x, path)...)
		}
		return list
	case map[string]any:
		if len(path) > 0 && v[path[0]] != nil {
			return values(v[path[0]], path[1:])
		}
		return nil
	}
	return []any{v}
}

// names is fields that the trace has under another name. Those of SP_S_PLANET are
// mixed up in it.
var names = map[string]string{
	"CP_S_MESSAGE.size":                "length",
	"CP_S_MESSAGE.mess":                "mesg",
	"SP_GENERIC_32.tourn_teams":        "tournament_teams",
	"SP_GENERIC_32.tourn_age":          "tournament_age",
	"SP_GENERIC_32.tourn_age_units":    "tournament_age_units",
	"SP_GENERIC_32.tourn_remain":       "tournament_remain",
	"SP_GENERIC_32.tourn_remain_units": "tournament_remain_units",
	"SP_SEQUENCE.flag16":               "flag8",
	"SP_SHIP_CAP.s_torpspeed":          "torpspeed",
	"SP_SHIP_CAP.s_phaserrange":        "phaserrange",
	"SP_SHIP_CAP.s_width":              "width",
	"SP_SHIP_CAP.s_height":             "height",
	"SP_SHIP_CAP.s_maxarmies":          "maxarmies",
	"SP_SHIP_CAP.s_letter":             "letter",
	"SP_SHIP_CAP.s_name":               "name",
	"SP_SHIP_CAP.s_bitmap":             "bitmap",
	"SP_S_8_TORP.dx":                   "torps.x",
	"SP_S_8_TORP.dy":                   "torps.y",
	"SP_S_8_TORP.which":                "whichtorps",
	"SP_S_KILLS.kills":                 "kills.kills",
	"SP_S_PLANET.nplanets":             "count",
	"SP_S_PLANET.pnum":                 "planets.pnum",
	"SP_S_PLANET.pl_owner":             "planets.owner",
	"SP_S_PLANET.info":                 "planets.info",
	"SP_S_PLANET.flags":                "planets.armies",
	"SP_S_PLANET.armies":               "planets.flags",
	"SP_S_TORP.dx":                     "torps.x",
	"SP_S_TORP.dy":                     "torps.y",
	"SP_S_TORP.which":                  "whichtorps",
	"SP_S_TORP_INFO.dx":                "torps.x",
	"SP_S_TORP_INFO.dy":                "torps.y",
	"SP_S_TORP_INFO.which":             "whichtorps",
	"SP_S_TORP_INFO.war":               "info.war",
	"SP_S_TORP_INFO.status":            "info.status",
	"SP_S_WARNING.whichmessage":        "which",
	"SP_S_YOU_SS.ddamage":              "damage",
}

// quirks is what the client prints of fields where it does not print them as they are, as
// seen in its traces: it takes 16 bits of 32, forgets the byte order, or takes the fields
// of one packet for those of another. A result of nil is what stands behind the packet.
var quirks = map[string]func(f map[string]any) any{
	"SP_YOU.flags":             func(f map[string]any) any { return number(f, "flags") >> 16 },
	"SP_YOU.whydead":           func(f map[string]any) any { return number(f, "whydead") & 0xffff },
	"SP_YOU.whodead":           func(f map[string]any) any { return number(f, "whodead") & 0xffff },
	"SP_PING.lag":              func(f map[string]any) any { return int(bits.ReverseBytes16(uint16(number(f, "lag")))) },
	"SP_SHIP_CAP.s_maxspeed":   swapped("maxspeed"),
	"SP_SHIP_CAP.s_maxfuel":    swapped("maxfuel"),
	"SP_SHIP_CAP.s_maxshield":  swapped("maxshield"),
	"SP_SHIP_CAP.s_maxdamage":  swapped("maxdamage"),
	"SP_SHIP_CAP.s_maxwpntemp": swapped("maxwpntemp"),
	"SP_SHIP_CAP.s_maxegntemp": swapped("maxegntemp"),
	"SP_SHIP_CAP.s_desig1":     func(f map[string]any) any { return f["desig"].(string)[:1] },
	"SP_SHIP_CAP.s_desig2":     func(f map[string]any) any { return f["desig"].(string)[1:] },
	"SP_S_WARNING.argument":    func(f map[string]any) any { return int(int8(number(f, "arg", "index"))) },
	"SP_S_WARNING.argument2":   func(f map[string]any) any { return int(int8(number(f, "arg2", "length"))) },

	// Only the answer to a request that turns them on has these; else there is rubbish.
	"SP_S_REPLY.windside": inAnswerToOn("winside"),
	"SP_S_REPLY.gwidth":   inAnswerToOn("gwidth"),

	// The layout of the big header's first version, whatever the header.
	"SP_S_PLAYER.packets": func(f map[string]any) any { return int(int8(number(f, "header")<<6 | number(f, "count"))) },
	"SP_S_PLAYER.dir":     inBig(func(f map[string]any) any { return number(f, "dir") << 24 }),
	"SP_S_PLAYER.speed":   inBig(func(f map[string]any) any { return number(f, "speed") }),
	"SP_S_PLAYER.x": inBig(func(f map[string]any) any {
		if number(f, "short_version") == 10 {
			return number(f, "x")
		}
		return number(f, "x")<<16 | number(f, "y")&0xffff
	}),
	"SP_S_PLAYER.y": inBig(func(f map[string]any) any {
		if number(f, "short_version") == 10 {
			return number(f, "y")
		}
		return number(f, "flags")
	}),

	// Byte 3 is called target, whatever it is.
	"SP_S_PHASER.target": func(f map[string]any) any {
		switch number(f, "status") {
		case 0:
			return nil // one that is free has no target
		case 1:
			return number(f, "damage")&0xc0 | number(f, "target")
		case 2:
			return number(f, "dir")
		}
		return number(f, "target")
	},
	"SP_S_PHASER.x":   inLongPhaser(3, "x"),
	"SP_S_PHASER.y":   inLongPhaser(3, "y"),
	"SP_S_PHASER.dir": inLongPhaser(5, "dir"),

	// The layout of SP_STATS, and 16 bits of 32.
	"SP_S_STATS.tkills":     func(f map[string]any) any { return number(f, "tkills") },
	"SP_S_STATS.tlosses":    func(f map[string]any) any { return number(f, "kills") },
	"SP_S_STATS.kills":      func(f map[string]any) any { return number(f, "tticks") >> 16 },
	"SP_S_STATS.losses":     func(f map[string]any) any { return number(f, "tarmies") >> 16 },
	"SP_S_STATS.tticks":     func(f map[string]any) any { return number(f, "maxkills") },
	"SP_S_STATS.tplanets":   func(f map[string]any) any { return number(f, "sbkills") },
	"SP_S_STATS.tarmies":    func(f map[string]any) any { return number(f, "armies")<<16 | number(f, "planets") },
	"SP_S_STATS.sbkills":    func(f map[string]any) any { return number(f, "sbmaxkills") >> 16 },
	"SP_S_STATS.sblosses":   func(map[string]any) any { return nil },
	"SP_S_STATS.armies":     func(map[string]any) any { return nil },
	"SP_S_STATS.planets":    func(map[string]any) any { return nil },
	"SP_S_STATS.maxkills":   func(map[string]any) any { return nil },
	"SP_S_STATS.sbmaxkills": func(map[string]any) any { return nil },
}

// number returns the first of some fields that is there.
func number(f map[string]any, names ...string) int {
	for _, n := range names {
		if v, ok := f[n].(float64); ok {
			return int(v)
		}
	}
	return 0
}

// swapped returns a number of 32 bits with its bytes the other way round.
func swapped(name string) func(map[string]any) any {
	return func(f map[string]any) any { return int(bits.ReverseBytes32(uint32(number(f, name)))) }
}

func inAnswerToOn(name string) func(map[string]any) any {
	return func(f map[string]any) any {
		if number(f, "repl") != 1 {
			return nil
		}
		return number(f, name)
	}
}

// inBig is for fields that only the big header of SP_S_PLAYER has.
func inBig(value func(map[string]any) any) func(map[string]any) any {
	return func(f map[string]any) any {
		if number(f, "header") != 0 {
			return nil
		}
		return value(f)
	}
}

// inLongPhaser is for fields that SP_S_PHASER has from some status on, coordinates in
// units of 40.
func inLongPhaser(from int, name string) func(map[string]any) any {
	return func(f map[string]any) any {
		switch {
		case number(f, "status") < from:
			return nil
		case name == "dir":
			return number(f, name)
		}
		return 40 * (number(f, name) & 0xffff)
	}
}
