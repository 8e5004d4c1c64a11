package filter

import (
	"net/netip"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"opscope/dissect"
	"opscope/schema"
	"opscope/schema/wire"
)

// layouts is a schema of the records below, with names of every kind.
const layouts = `
protocol: game
order: be
align: byte
enums:
  status: {0: denied, 8: accepted}
  other_status: {3: accepted}
  chat: {5: team}
flags:
  sides: {0: fed, 1: rom, 2-3: rank}
types:
  item:
    - kind: u8
  entity:
    - id:    u16
    - sides: u8 sides
    - count: u8
    - items: item[count]
packets:
  LOGIN:
    opcode: 0x21
    from: client
    fields:
      - code:     u8 status
      - password: text(nul)
        redact: secret
  RESULT:
    opcode: 0x22
    from: server
    fields:
      - code:    u8 other_status
      - type:    u8 chat
      - name:    text(nul)
      - nick:    text(nul)
        redact: personal
      - key:     bytes(2)
      - host:    ipv4
      - big:     u64
      - small:   f32
      - entities: entity[2]
`

func loadGame(t testing.TB) *schema.Protocol {
	t.Helper()
	list, err := schema.Load(fstest.MapFS{"game.yaml": {Data: []byte(layouts)}}, ".")
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

const result = "\x03" + "\x05" + "Hi \xc5 there\x00" + "Ada\x00" + "\x0a\x1b" + "\x0a\x00\x00\x02" + "\xff\xff\xff\xff\xff\xff\xff\xff" +
	"\x3d\xcc\xcc\xcd" + // 0.1
	"\x01\x00" + "\x05" + "\x02" + "\x07\x09" + // id 256, fed and rank 1, two items
	"\x00\x02" + "\x02" + "\x00" // id 2, rom, none

// game returns records of a schema, by a short name.
func game(t testing.TB, p *schema.Protocol) map[string]*dissect.Record {
	frame := func(message, raw string, d dissect.Direction) *dissect.Record {
		k := p.PacketNamed(message)
		r := &dissect.Record{
			N: 17, Packets: []int{12, 13}, Time: time.Date(2026, 11, 29, 20, 15, 2, 5e8, time.UTC), Session: 1, Flow: 2,
			Direction: d, Transport: schema.UDP, Protocol: "game", Message: message, Opcode: int(k.Opcode), Packet: k,
			Src: netip.MustParseAddrPort("10.0.0.2:50111"), Dst: netip.MustParseAddrPort("10.0.0.1:2627"),
			Envelope: dissect.Envelope{Mode: 1, Seq: 7, Length: -1, Origin: schema.Learned, LearnedIn: 9},
			Ack:      dissect.Ack{State: dissect.AckAcked, By: 14, RTT: 41200 * time.Microsecond}, Size: len(raw), Raw: []byte(raw),
		}
		r.Layout = k.Of(d.Sender())[0]
		r.Body.Reset(r.Raw)
		if err := new(schema.Decoder).Decode(p, message, r.Layout, &r.Body, 0, 8*len(raw)); err != nil {
			t.Fatal(err)
		}
		return r
	}
	login := frame("LOGIN", "\x08secret\x00", dissect.ClientToServer)
	login.Ack, login.Envelope = dissect.Ack{RTT: -1}, dissect.NoEnvelope
	login.Rest, login.Notes = []byte("secret"), []dissect.Note{{Code: "trailing_bytes", Text: "secret"}}
	login.Err = &wire.Error{Layer: "game", Path: "LOGIN.password", Want: "NUL", Got: "secret", Kind: wire.Truncated}
	answer := frame("RESULT", result, dissect.ServerToClient)
	answer.Notes = []dissect.Note{{Code: "retransmission"}, {Code: "conflict", Text: "other bytes"}}
	return map[string]*dissect.Record{
		"login": login, "result": answer,
		"ack":     {Type: dissect.AckRecord, Acked: 17, Opcode: -1, Session: 1, Ack: dissect.Ack{By: 14, RTT: time.Second}, Direction: dissect.ServerToClient},
		"gap":     {Type: dissect.GapRecord, Opcode: -1, Bytes: 1448, After: 77, Before: 81, Offset: 5, Text: dissect.NotCaptured},
		"session": {Type: dissect.SessionRecord, Opcode: -1, Session: 1, Protocol: "game", Code: "opened", Client: netip.MustParseAddrPort("10.0.0.2:50111")},
		"event":   {Type: dissect.EventRecord, Opcode: -1, Code: "closed", Text: "by client", Packets: []int{99}},
	}
}

// TestMatch asks of six records, one of each type and two frames, which of them a
// filter wants.
func TestMatch(t *testing.T) {
	p := loadGame(t)
	records := game(t, p)
	language := NewLanguage([]*schema.Protocol{p}, dissect.Privacy{})
	for expression, want := range map[string]string{
		// each type of record, by its type and by the keys that only it has
		"type == record":                      "login result",
		"type == gap":                         "gap",
		`type == "session"`:                   "session",
		"type == event":                       "event",
		"type == ack":                         "ack",
		"type in [ack, gap]":                  "ack gap",
		"bytes > 1000 and after_packet == 77": "gap",
		"rtt_ms >= 1000":                      "ack",
		`state == "opened"`:                   "session",
		`reason contains "captured"`:          "gap",
		`client == "10.0.0.2"`:                "session",
		`text == "by client"`:                 "event",
		"n == 17":                             "ack login result",
		"99 in packets":                       "event",
		"packets[1] == 13":                    "login result",
		"len(packets) == 2":                   "login result",
		"session == 1":                        "ack login result session",
		// keys of frames
		"dir == c2s":                              "login",
		"dir != c2s":                              "ack result",
		"c2s == dir":                              "login",
		"opcode == 0x21":                          "login",
		"opcode == 33":                            "login",
		"opcode == LOGIN":                         "login",
		"opcode in [LOGIN, 34]":                   "login result",
		"opcode not in [LOGIN, 99]":               "result",
		`message == RESULT`:                       "result",
		`message matches "^LOG"`:                  "login",
		`src == "10.0.0.2:50111"`:                 "login result",
		`src == "10.0.0.2:1"`:                     "",
		`src in "10.0.0.0/8"`:                     "login result",
		`dst.port in 2600..2700`:                  "login result",
		"envelope.seq == 7":                       "result",
		"envelope.origin == learned":              "result",
		"envelope":                                "result",
		"ack.rtt_ms > 41.1 and ack.rtt_ms < 41.3": "result",
		"ack.rtt_ms > 200":                        "",
		"ack.state == acked":                      "result",
		`note("retransmission")`:                  "result",
		"note(conflict)":                          "result",
		"any(notes, .code == conflict and .severity == warning)":      "result",
		"all(notes, .severity == warning)":                            "",
		`notes[1].severity == warning or notes.text == "other bytes"`: "result",
		`error.kind == "truncated"`:                                   "login",
		"error":                                                       "login",
		`error.path endsWith "password"`:                              "login",
		`time > "2026-11-29 20:15:02"`:                                "login result",
		`time > "2026-11-29T20:15:02.5Z"`:                             "",
		// fields
		"code == accepted":                      "login result", // 8 in one packet, 3 in the other
		`code == "accepted"`:                    "login result",
		"code == 8":                             "login",
		`code == "closed"`:                      "event", // the key of events
		"fields.type == team":                   "result",
		`name == "Hi Å there"`:                  "result",
		`name contains "there" && !(size > 99)`: "result",
		`name matches "(?i)^hi"`:                "result",
		`key == "0a1b"`:                         "result",
		`key == "0a:1b"`:                        "result",
		`key contains "1b"`:                     "result",
		`host == "10.0.0.2"`:                    "result",
		`big == "18446744073709551615"`:         "result",
		"big > 9223372036854775807":             "result",
		"small == 0.1":                          "result",
		"small < 0.1":                           "",
		// arrays
		"entities.id == 256":                              "result",
		"entities.id == 255 + 1":                          "result",
		"entities.id != 256":                              "", // one of them is
		"entities.id != 5":                                "result",
		"entities[1].id == 2":                             "result",
		"entities[0].id == 2":                             "",
		"entities[2].id":                                  "",
		"any(entities, .id == 256 and .sides.fed)":        "result",
		"any(entities, .id == 2 and .sides.fed)":          "",
		"all(entities, .id > 1)":                          "result",
		"none(entities, .id == 2)":                        "ack event gap login session",
		"one(entities, .sides.rom)":                       "result",
		"count(entities, .id > 1) == 2":                   "result",
		"len(entities) == 2 and len(entities.items) == 2": "result",
		"any(entities, any(.items, .kind == 9))":          "result",
		"any(entities, any(.items, .kind == 10))":         "",
		"entities.sides.rank == 1":                        "result",
		"entities.sides == rom":                           "result",
		"entities.items.kind in [1..6, 9]":                "result",
		"entities.id % 2 == 0 and entities.id - 1 == 255": "result",
		"entities.id == entities.count":                   "result", // 2 in the second, 2 in the first
		// what a record does not have: see the table of the help
		"entities.id":                     "result",
		"not entities.id":                 "ack event gap login session",
		"not (entities.id == 256)":        "ack event gap login session",
		"entities.id not in [256, 7]":     "",
		"entities.id not in [7]":          "result",
		`name not contains "x"`:           "result",
		"ack.rtt_ms < 1e9":                "result",
		"all(entities, .id < 0) or false": "",
		// secrets: there, and no more
		"password":                     "login",
		"rest":                         "login",
		`rest contains "73"`:           "",
		`notes.text contains "secret"`: "",
		`len(name) == 10`:              "result",
		`error.got != "x"`:             "",
		`len(rest) > 0`:                "",
	} {
		f, err := language.Compile(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		var got []string
		for _, name := range []string{"ack", "event", "gap", "login", "result", "session"} {
			if f.Match(records[name]) {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", expression, strings.Join(got, " "), want)
		}
	}
}

// TestShownSecrets compares what was asked to be shown.
func TestShownSecrets(t *testing.T) {
	p := loadGame(t)
	records := game(t, p)
	language := NewLanguage([]*schema.Protocol{p}, dissect.Privacy{ShowSecrets: true})
	for _, expression := range []string{`password == "secret"`, `rest contains "7365"`, `notes.text == "secret"`, "len(password) == 6"} {
		f, err := language.Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		if !f.Match(records["login"]) || f.Match(records["result"]) {
			t.Errorf("%s does not want the login alone", expression)
		}
	}
}

// TestErrors wants each mistake shown at its place, with what was meant.
func TestErrors(t *testing.T) {
	language := NewLanguage([]*schema.Protocol{loadGame(t)}, dissect.Privacy{})
	for expression, want := range map[string]string{
		"entites.id == 3":                   "unknown field \"entites\" (did you mean entities?) (1:1)\n | entites.id == 3\n | ^",
		"size > 3 and items > 1":            "unknown field \"items\" (did you mean entities.items?) (1:14)\n | size > 3 and items > 1\n | .............^",
		"entities.idd == 3":                 "entities has no \"idd\" (did you mean id?) (1:10)\n",
		"ack.rtt == 3":                      "unknown field \"ack\" (did you mean",
		"type == gup":                       "type has no value \"gup\" (did you mean gap?) (1:9)",
		`dir == "up"`:                       "dir has no value \"up\" (there are: c2s s2c) (1:8)",
		"type == 5":                         "the field is fields.type (1:9)",
		"message == LOGN":                   "message has no value \"LOGN\" (did you mean LOGIN?)",
		"LOGIN":                             "unknown field \"LOGIN\" (did you mean message == LOGIN?)",
		"LOGIN.code == 8":                   "LOGIN is a message, and its fields are asked for without it (did you mean message == LOGIN and code?) (1:1)",
		"LOGIN.cod == 8":                    "LOGIN has no field \"cod\" (did you mean code?) (1:7)",
		"RESULT.entities.idd == 8":          "RESULT has no field \"idd\" (did you mean id?)",
		"name == hello":                     "unknown field \"hello\"; a text stands in quotes (1:9)",
		"name == 5":                         "name is a text: put it in quotes",
		`size == "big"`:                     "size is a number, \"big\" is none (1:9)",
		"code == acepted":                   "code has no value \"acepted\" (did you mean accepted?)",
		`note("retransmision")`:             "(did you mean retransmission?)",
		`password == "x"`:                   "password is masked, and a filter would tell what it is (--show-secrets shows it) (1:1)",
		`len(password) > 3`:                 "password is masked",
		`password matches "^a"`:             "password is masked",
		"password in [1]":                   "password is masked",
		"entities == 3":                     "entities is a struct: compare one of its members, such as entities.count",
		"size + 1":                          "a number is no condition: compare it",
		"5":                                 "a value is no condition",
		"1 == 1":                            "both sides are constants",
		"any(size, # > 3)":                  "size is no array (1:5)",
		"# == 3":                            "unexpected token",
		"size[1] == 3":                      "size is no array",
		`name matches "("`:                  "missing closing )",
		"size contains 3":                   "contains looks into a text or into bytes, and size is a number",
		"sum(packets) > 3":                  "no function \"sum\"",
		"notes(\"x\")":                      "no function \"notes\" (did you mean note?)",
		"let x = 1; x > 0":                  "filters have no such construct",
		"size > 1 ? true : false":           "filters have no such construct",
		"opcode > LOGIN":                    "is not less or more",
		`src == "nowhere"`:                  "src is an address",
		`time > "noon"`:                     "time is a time",
		`key == "xyz"`:                      "key is bytes: want hexadecimal digits",
		"name == size":                      "name is a text, size is a number",
		"size = 3":                          "== compares",
		"src == 10.0.0.2":                   "addresses and times stand in quotes",
		"udp.port == 2627":                  "here: src.port and dst.port, with transport == udp",
		"udp port 2627":                     "\"udp port 2627\" is a capture filter (BPF, as tcpdump and -f have it); -Y wants a display filter\ntry: transport == udp and (src.port == 2627 or dst.port == 2627)",
		"host 10.0.0.2":                     "try: src == \"10.0.0.2\" or dst == \"10.0.0.2\"",
		"tcp":                               "try: transport == tcp",
		"src host 10.0.0.2 and not port 22": "is a capture filter",
		strings.Repeat("any(packets, ", 30) + "true" + strings.Repeat(")", 30):     "at most 4 deep",
		"a == len(" + strings.Repeat("-(", 3000) + "a" + strings.Repeat(")", 3001): "(1:1)",
		"":                         "the expression is empty",
		strings.Repeat("(", 20000): "at most 16384 bytes",
	} {
		_, err := language.Compile(expression)
		switch {
		case err == nil:
			t.Errorf("%s: no error", expression)
		case !strings.Contains(err.Error(), want):
			t.Errorf("%s: got\n%v\nwant\n%s", expression, err, want)
		}
	}
}

// TestTranslations proves that what is offered for a capture filter is a filter.
func TestTranslations(t *testing.T) {
	language := NewLanguage(nil, dissect.Privacy{})
	for _, expression := range []string{"udp", "udp port 5", "port 5", "src port 5", "tcp dst host 10.0.0.1", "host fe80::1"} {
		same := translate(expression)
		if _, err := language.Compile(same); same == "" || err != nil {
			t.Errorf("%s becomes %q: %v", expression, same, err)
		}
	}
}

func TestOpcodes(t *testing.T) {
	p := loadGame(t)
	records := game(t, p)
	language := NewLanguage([]*schema.Protocol{p}, dissect.Privacy{})
	for list, want := range map[string]bool{"LOGIN": true, "0x21": true, "33": true, "RESULT, 33": true, "RESULT": false, "0x22,35": false} {
		f, err := language.Opcodes([]string{list})
		if err != nil {
			t.Fatal(err)
		}
		if f.Match(records["login"]) != want || f.Match(records["gap"]) {
			t.Errorf("%s", list)
		}
		if f = f.Not(); f.Match(records["login"]) == want || !f.Match(records["gap"]) {
			t.Errorf("not %s", list)
		}
	}
	if _, err := language.Opcodes([]string{"LOGIN,RESLT"}); err == nil || !strings.Contains(err.Error(), "did you mean RESULT?") {
		t.Errorf("got %v", err)
	}
	if f, err := language.Opcodes(nil); f != nil || err != nil {
		t.Errorf("an empty list: %v, %v", f, err)
	}
}

// TestNothingIsAllocated guards what runs once per record.
func TestNothingIsAllocated(t *testing.T) {
	p := loadGame(t)
	records, masked := game(t, p), repeating(t, p, twoSecrets[0])
	language := NewLanguage([]*schema.Protocol{p}, dissect.Privacy{})
	for _, expression := range []string{
		"dir == s2c and opcode == RESULT", "ack.rtt_ms > 200 or note(conflict)", `name contains "x" or name matches "^z"`,
		`name == "x" or rest contains "00" or notes.text contains "x" or error.got == "x"`, `fields["1"] == 3`,
		"any(entities, .id == 3 and any(.items, .kind > 100))", "entities.sides.rank in [2, 3]", "entities.id + 1 > 1000", `src in "11.0.0.0/8"`,
	} {
		f, err := language.Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		match := func() {
			for _, r := range records {
				f.Match(r)
			}
			for _, r := range masked {
				f.Match(r)
			}
		}
		match()
		if n := testing.AllocsPerRun(500, match); n != 0 {
			t.Errorf("%s: %v allocations for %d records", expression, n, len(records)+len(masked))
		}
	}
}

// FuzzCompile compiles anything, and asks of each record what compiles.
func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		"code == accepted", `note("retransmission") and not (dir != c2s)`, "any(entities, any(.items, .kind in [1..3, 5]))",
		"count(entities, # != 1) > len(entities[0].items) * 2", `name matches "a+" || key contains "0a"`, "udp port 2627", "-size % 0 < 1e300",
		"packets[0] in packets", `time > "2026-11-29"`, "all(notes, .code == .text)",
	} {
		f.Add(seed)
	}
	p := loadGame(f)
	records := game(f, p)
	language := NewLanguage([]*schema.Protocol{p}, dissect.Privacy{})
	f.Fuzz(func(t *testing.T, expression string) {
		filter, err := language.Compile(expression)
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Error("an empty message")
			}
			return
		}
		for _, r := range records {
			if first := filter.Match(r); filter.Match(r) != first {
				t.Errorf("%q answers once %v, and then not", expression, first)
			}
		}
	})
}
