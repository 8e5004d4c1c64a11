package sink

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"opscope/dissect"
	"opscope/schema"
	"opscope/schema/wire"
)

// printJSON writes records as NDJSON.
func printJSON(t *testing.T, o NDJSONOptions, records ...*dissect.Record) string {
	t.Helper()
	var b bytes.Buffer
	sink := NewNDJSON(&b, o)
	for _, r := range records {
		if err := sink.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := sink.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const head = `"file":0,"n":17,"packets":[12],"time":"2026-11-29T20:15:02.310774000Z","session":1,"flow":2,`

func TestNDJSONLine(t *testing.T) {
	zone := frame("X", -1, nil)
	zone.Session, zone.Direction, zone.Src = 0, dissect.UnknownDirection, client
	zone.Dst = dissect.Record{}.Dst
	zone.Envelope.Prefixed = true
	for _, c := range []struct {
		name string
		r    *dissect.Record
		want string
	}{
		{"a sequenced record", viewpoint(), `{"type":"record",` + head + `"dir":"c2s","transport":"udp",` +
			`"src":"10.0.0.2:50111","dst":"10.0.0.1:2627","protocol":"wulfram","message":"VIEWPOINT_INFO","opcode":53,` +
			`"envelope":{"mode":1,"seq":7,"length":9,"origin":"learned","learned_in":9},"context":null,` +
			`"fields":{"entity_id":-1},"size":9,"offset":0,"ack":{"state":"acked","by":14,"rtt_ms":41.2},"acks":null,` +
			`"notes":[{"severity":"note","code":"retransmission","text":"same bytes as packet 11"}],` +
			`"rest":"","error":null,"raw":"3500070009ffffffff"}`},
		{"nothing known is null", zone, `{"type":"record","file":0,"n":17,"packets":[12],"time":"2026-11-29T20:15:02.310774000Z",` +
			`"session":null,"flow":2,"dir":null,"transport":"udp","src":"10.0.0.2:50111","dst":null,"protocol":"wulfram",` +
			`"message":"X","opcode":null,"envelope":{"prefixed":true},"context":null,"fields":{},"size":0,"offset":0,"ack":null,"acks":null,"notes":[],` +
			`"rest":"","error":null,"raw":""}`},
		{"each kind of value", everything(), `{"type":"record",` + head + `"dir":"s2c","transport":"udp",` +
			`"src":"10.0.0.1:2627","dst":"10.0.0.2:50111","protocol":"wulfram","message":"UPDATE_ARRAY","opcode":14,"envelope":null,"context":null,` +
			`"fields":{"data":"deadbeef","application":"{1C8248C0-9772-11CF-B74F-00C0DF413ED1}","host":"127.0.0.1",` +
			`"token_id":"18446744073709551615","bits":45,"ping":15,"yaw":"NaN","local_state":null,"position":[1.5,0.1,-3],` +
			`"entities":[{"id":0,"team":0}]},"size":64,"offset":0,"ack":null,"acks":null,"notes":[],"rest":"","error":null,` +
			`"raw":"0edeadbeef000000c048821c7297cf11b74f00c0df413ed10000000000000000ffffffffffffffff` + strings.Repeat("00", 24) + `"}`},
		{"a secret is masked in fields, notes and raw", login(), `{"type":"record",` + head + `"dir":"c2s","transport":"tcp",` +
			`"src":"10.0.0.2:50111","dst":"10.0.0.1:2627","protocol":"wulfram","message":"LOGIN","opcode":33,"envelope":null,"context":null,` +
			`"fields":{"kind":1,"password":"***"},"size":11,"offset":0,"ack":null,"acks":null,` +
			`"notes":[{"severity":"warning","code":"out_of_range","text":"***"}],"rest":"","error":null,"raw":"000b2101**************"}`},
		{"a secret cut short is masked in rest, error and raw", brokenLogin(), `{"type":"record",` + head + `"dir":"c2s","transport":"tcp",` +
			`"src":"10.0.0.2:50111","dst":"10.0.0.1:2627","protocol":"wulfram","message":"LOGIN","opcode":33,"envelope":null,"context":null,` +
			`"fields":{"kind":1},"size":11,"offset":0,"ack":null,"acks":null,"notes":[],"rest":"***",` +
			`"error":{"layer":"wulfram","path":"LOGIN.password","offset":4,"bit":0,"want":"9 bytes","got":"***","kind":"truncated"},` +
			`"raw":"000b2101**************"}`},
		{"a gap", happenings()[0], `{"type":"gap","file":0,"time":"2026-11-29T20:15:02.310774000Z","session":1,"flow":2,` +
			`"dir":"s2c","transport":"tcp","bytes":1448,"after_packet":77,"before_packet":81,"offset":4096,"reason":"memory_limit"}`},
		{"a late acknowledgement", happenings()[1], `{"type":"ack","file":0,"time":"2026-11-29T20:15:02.310774000Z",` +
			`"session":1,"flow":2,"dir":null,"transport":"tcp","n":17,"by":14,"rtt_ms":41.2}`},
		{"a session", happenings()[2], `{"type":"session","file":0,"time":"2026-11-29T20:15:02.310774000Z","session":1,"flow":2,` +
			`"client":"10.0.0.2:50111","server":"10.0.0.1:2627","protocol":"wulfram","state":"opened","reason":"handshake"}`},
		{"an acknowledgement", acknowledging(), `{"type":"record",` + head + `"dir":"c2s","transport":"udp",` +
			`"src":"10.0.0.2:50111","dst":"10.0.0.1:2627","protocol":"wulfram","message":"D_ACK","opcode":2,` +
			`"envelope":{"mode":0},"context":"default","fields":{"subtype":1,"acked_opcode":53,"acked_sequence":7},"size":5,"offset":0,` +
			`"ack":null,"acks":{"state":"new","message":"VIEWPOINT_INFO","seq":7,"packet":12,"n":9,"rtt_ms":41},` +
			`"notes":[{"severity":"note","code":"assumed_context","text":"widths by the stated default"}],` +
			`"rest":"","error":null,"raw":"0201350007"}`},
		{"an acknowledgement of a record nobody saw", unseen(), `{"type":"record",` + head + `"dir":"c2s","transport":"udp",` +
			`"src":"10.0.0.2:50111","dst":"10.0.0.1:2627","protocol":"wulfram","message":"D_ACK","opcode":2,` +
			`"envelope":{"mode":0},"context":null,"fields":{},"size":1,"offset":0,` +
			`"ack":null,"acks":{"state":"earlier","message":null},"notes":[],"rest":"","error":null,"raw":"02"}`},
		{"a broken packet", happenings()[4], `{"type":"event","file":0,"time":"2026-11-29T20:15:02.310774000Z","session":null,"flow":null,` +
			`"dir":null,"transport":null,"code":"bad_packet","text":"ipv4 at byte 14: want 20 bytes, 3 left (truncated)","packets":[5],` +
			`"error":{"layer":"ipv4","path":"","offset":14,"bit":0,"want":"20 bytes","got":"3 left","kind":"truncated"}}`},
		{"an event", happenings()[3], `{"type":"event","file":0,"time":"2026-11-29T20:15:02.310774000Z","session":1,"flow":2,` +
			`"dir":null,"transport":"tcp","code":"resync","text":"frame found after 12 bytes","packets":[81],"error":null}`},
	} {
		t.Run(c.name, func(t *testing.T) { compare(t, printJSON(t, NDJSONOptions{Raw: true}, c.r), c.want+"\n") })
	}
}

func TestPrivacy(t *testing.T) {
	hidden := []dissect.Record{*login(), *brokenLogin()}
	for i := range hidden {
		for _, o := range []TextOptions{{Hex: true}, {Verbosity: 1, Hex: true}, {Verbosity: 2, Hex: true, Color: true}} {
			got := print(t, o, &hidden[i])
			if strings.Contains(got, "hunter") || strings.Contains(got, "68 75") {
				t.Errorf("the secret shows: %s", got)
			}
			o.ShowSecrets = true
			if got := print(t, o, &hidden[i]); !strings.Contains(got, "hunter2") {
				t.Errorf("the secret does not show: %s", got)
			}
		}
	}
	text := says("hello there")
	text.Body.Nodes[0].Field = &schema.Field{Name: "text", Redact: schema.Personal}
	if got := printJSON(t, NDJSONOptions{}, text); !strings.Contains(got, `"text":"hello there"`) {
		t.Errorf("got %s", got)
	}
	got := printJSON(t, NDJSONOptions{Raw: true, Privacy: dissect.Privacy{MaskPersonal: true}}, text)
	if !strings.Contains(got, `"text":"***"`) || !strings.Contains(got, `"raw":"1f**********************"`) {
		t.Errorf("got %s", got)
	}
}

func TestASecretInsideAnArrayIsMaskedWhereItIsCutShort(t *testing.T) {
	r := frame("ENTER", 0x0d, []byte("\x0d\x01\x05\x00\x09hunt"))
	r.Packet = loaded().PacketNamed("ENTER")
	r.Layout = r.Packet.Of(schema.Client)[0]
	d := schema.Decoder{Short: wire.Truncated}
	r.Err = d.Decode(loaded(), "ENTER", r.Layout, &r.Body, 8, 8*len(r.Raw))
	if r.Err == nil {
		t.Fatal("no error")
	}
	r.Rest = r.Raw[5:]
	got := printJSON(t, NDJSONOptions{Raw: true}, r)
	if strings.Contains(got, "68756e74") || !strings.Contains(got, `"rest":"***"`) || !strings.Contains(got, `********"}`) {
		t.Errorf("got %s", got)
	}
}

func TestASecretWithoutAPlaceHidesTheRecord(t *testing.T) {
	r := frame("TOKEN", 9, []byte{9, 1, 2, 3})
	add(r, &schema.Field{Name: "token", Redact: schema.Secret}, schema.Uint, 0, 0, 123456)
	if got := printJSON(t, NDJSONOptions{Raw: true}, r); !strings.Contains(got, `"raw":"********"`) {
		t.Errorf("got %s", got)
	}
}

func TestRepeatedNamesBecomeAnArray(t *testing.T) {
	r := frame("X", 1, make([]byte, 8))
	for i, name := range []string{"a", "b", "a", "c", "a"} {
		add(r, &schema.Field{Name: name}, schema.Uint, 8*i, 8, uint64(i))
	}
	add(r, &schema.Field{Name: "_", Hidden: true}, schema.Uint, 0, 8, 0)
	add(r, &schema.Field{Name: "_", Hidden: true}, schema.Uint, 0, 8, 0)
	add(r, nil, schema.Uint, 0, 8, 7)
	got := printJSON(t, NDJSONOptions{}, r)
	if want := `"fields":{"a":[0,2,4],"b":1,"c":3,"value":7},`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNamesRepeatAtAnyDepth(t *testing.T) {
	r := frame("X", 1, make([]byte, 8))
	for i, n := range []struct {
		name string
		kind schema.ValueKind
		size int32
	}{
		{"list", schema.Array, 8}, {"", schema.Struct, 7},
		{"a", schema.Uint, 0},
		{"inner", schema.Struct, 3}, {"b", schema.Array, 0}, {"c", schema.Struct, 0}, {"b", schema.Uint, 0},
		{"a", schema.Struct, 1}, {"x", schema.Int, 0},
		{"d", schema.Uint, 0},
	} {
		add(r, &schema.Field{Name: n.name}, n.kind, 0, 8, uint64(i))
		r.Body.Nodes[i].Size = n.size
	}
	got := printJSON(t, NDJSONOptions{}, r)
	if want := `"fields":{"list":[{"a":[2,{"x":8}],"inner":{"b":[[],6],"c":{}}}],"d":9},`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A float has its own text whatever was written before it: of another width, or in its place.
func TestFloatsAreSpelledAsIfTheyWereNew(t *testing.T) {
	var kept spellings
	single, double := &schema.Field{Single: true}, &schema.Field{}
	random := rand.New(rand.NewPCG(1, 2))
	values := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), -math.SmallestNonzeroFloat64, -math.MaxFloat64, -1.0000000000000002e-6}
	for range 4 << spellingBits {
		values = append(values, float64(float32(random.NormFloat64())), math.Float64frombits(random.Uint64()))
	}
	for range 4 * len(values) {
		v := values[random.IntN(len(values))]
		for _, f := range []*schema.Field{single, double} {
			n := &schema.Node{Kind: schema.Float, Field: f, Num: math.Float64bits(v)}
			want := wantFloat(v, 64)
			if f.Single {
				want = wantFloat(float64(float32(v)), 32)
			}
			if v = n.Float(); math.IsNaN(v-v) || f.Single && math.IsInf(float64(float32(v)), 0) {
				want = string(appendJSONFloat(nil, n)) // a word
			}
			k := kept.of(n)
			if k.size == 0 {
				k.spell(n)
			}
			if got := string(k.append(nil)); got != want {
				t.Fatalf("%x, single %v: got %s, want %s", n.Num, f.Single, got, want)
			}
		}
	}
}

func TestHostileStringsInJSON(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"controls", "\x1b[2J\x07\x00\r\n\x7f", `"\u001b[2J\u0007\u0000\u000d\u000a\u007f"`},
		{"C1", "\u009b", `"\u009b"`},
		{"bidirectional", "\u202e\u2066", `"\u202e\u2066"`},
		{"separators", "\u2028", `"\u2028"`},
		{"no UTF-8", "a\xff\xc3", `"a\ufffd\ufffd"`},
		{"beyond 16 bits", "\U000e0041😀", `"\udb40\udc41😀"`},
		{"quotes", `"\`, `"\"\\"`},
	} {
		t.Run(c.name, func(t *testing.T) { compare(t, string(appendString(nil, c.text)), c.want) })
	}
}

func TestFloats(t *testing.T) {
	for _, c := range []struct {
		v      float64
		single bool
		want   string
		line   string
	}{
		{0, false, "0", "0"}, {math.Copysign(0, -1), false, "-0", "-0"}, {1.5, false, "1.5", "1.5"},
		{float64(float32(0.1)), true, "0.1", "0.1"}, {0.1, false, "0.1", "0.1"},
		{1234.56789012, false, "1234.56789012", "1234.568"}, {1.0000000001, false, "1.0000000001", "1"},
		{123456789.25, false, "123456789.25", "123456789"}, {0.000001, false, "0.000001", "0.000001"},
		{1e-7, false, "1e-07", "1e-07"}, {1e20, false, "100000000000000000000", "100000000000000000000"},
		{1e21, false, "1e+21", "1e+21"}, {math.MaxFloat64, false, "1.7976931348623157e+308", "1.7976931348623157e+308"},
		{math.Inf(-1), false, "-Inf", "-Inf"}, {math.NaN(), false, "NaN", "NaN"},
	} {
		compare(t, string(appendFloat(nil, c.v, c.single)), c.want)
		compare(t, string(appendRounded(nil, c.v, c.single)), c.line)
		if v := c.v; !math.IsNaN(v) && !math.IsInf(v, 0) && !json.Valid([]byte(c.want)) {
			t.Errorf("%s is no JSON", c.want)
		}
	}
}

func TestEveryLineIsValid(t *testing.T) {
	compiled := compileSchema(t)
	summary := &dissect.Summary{}
	summary.AddPacket(&dissect.Packet{Time: at, Length: 60})
	for _, r := range all() {
		summary.AddRecord(r)
	}
	for _, raw := range []bool{false, true} {
		var b bytes.Buffer
		sink := NewNDJSON(&b, NDJSONOptions{Raw: raw})
		for _, r := range all() {
			_ = sink.Write(r)
		}
		_ = sink.WriteSummary(0, summary)
		_ = sink.WriteSummary(1, &dissect.Summary{})
		_ = sink.Flush()
		for line := range strings.Lines(b.String()) {
			if err := strict(line); err != nil {
				t.Errorf("%v in %s", err, line)
			}
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
			if err != nil {
				t.Errorf("%v in %s", err, line)
				continue
			}
			if err := compiled.Validate(v); err != nil {
				t.Errorf("%v in %s", err, line)
			}
		}
	}
}

func TestSummary(t *testing.T) {
	s := &dissect.Summary{}
	s.AddPacket(&dissect.Packet{Time: at, Length: 60, Data: make([]byte, 60)})
	s.AddPacket(&dissect.Packet{Time: at.Add(-time.Second), Length: 40, Data: make([]byte, 33)})
	for _, r := range all() {
		s.AddRecord(r)
	}
	var b bytes.Buffer
	sink := NewNDJSON(&b, NDJSONOptions{Immediate: true})
	if err := sink.WriteSummary(0, s); err != nil {
		t.Fatal(err)
	}
	compare(t, b.String(), `{"type":"summary","file":0,"time":"2026-11-29T20:15:02.310774000Z",`+
		`"first_time":"2026-11-29T20:15:01.310774000Z","last_time":"2026-11-29T20:15:02.310774000Z","packets":2,"bytes":100,"cut_bytes":7,`+
		`"records":{"wulfram":9},"unknown_opcodes":1,"unknown_bodies":0,"undecoded_bytes":9,"gaps":1,"lost_bytes":1448,`+
		`"retransmissions":1,"conflicts":0,"resyncs":1,"evictions":0,"limits":{},"defects":0,"copied_packets":0,"backward_times":1,"wrong_checksums":0,"other_flows":0,"unsupported_packets":0,`+
		`"segments":{"retransmitted":0,"out_of_order":0,"keep_alives":0},`+
		`"fragments":{"duplicates":0,"refused":0,"incomplete":0},"peak_waiting_bytes":0,"errors":{"truncated":2,"incomplete":0,"malformed":0},"notes":{"assumed_context":1,"out_of_range":1,"retransmission":1,"unknown_opcode":1}}`+"\n")
}

func TestSummaryInWords(t *testing.T) {
	s := &dissect.Summary{
		First: at, Last: at.Add(1500 * time.Millisecond), Packets: 12, Bytes: 4711, CutBytes: 1234,
		Records: map[string]int{"wulfram": 3, "netrek": 1}, Errors: [3]int{wire.Malformed: 1, wire.Truncated: 2, wire.Incomplete: 3},
	}
	const rest = `
1 netrek record
3 wulfram records
1 malformed record
2 records truncated by the capture
3 incomplete records
1,234 bytes cut off by the snap length; capture with -s 0
`
	for _, c := range []struct {
		zone *time.Location
		from string
	}{
		{time.UTC, "2026-11-29 20:15:02.310774 UTC"},
		{time.FixedZone("CET", 3600), "2026-11-29 21:15:02.310774 CET (+01:00)"},
	} {
		var b bytes.Buffer
		if err := WriteSummary(&b, s, c.zone); err != nil {
			t.Fatal(err)
		}
		compare(t, b.String(), "12 packets, 4,711 bytes, 1.5s from "+c.from+rest)
	}
	var b bytes.Buffer
	if err := WriteSummary(&b, &dissect.Summary{}, time.UTC); err != nil {
		t.Fatal(err)
	}
	compare(t, b.String(), "0 packets, 0 bytes\n")
}

func TestRoundTripTimesReadBackExactly(t *testing.T) {
	for _, c := range []struct {
		ms   string
		want time.Duration
	}{
		{"41.2", 41200 * time.Microsecond}, {"0", 0}, {"0.000001", 1}, {"1e-06", 1}, {"4.12e1", 41200 * time.Microsecond},
		{"281474976730.927008", 281474976730927008}, {"9223372036854.775807", math.MaxInt64},
	} {
		line := strings.Replace(printJSON(t, NDJSONOptions{}, viewpoint()), `"rtt_ms":41.2`, `"rtt_ms":`+c.ms, 1)
		r, err := NewReader(strings.NewReader(line), ReaderOptions{}).Next()
		if err != nil || r.Ack.RTT != c.want {
			t.Errorf("%s ms: got %d (%v), want %d", c.ms, r.Ack.RTT, err, c.want)
		}
	}
	line := strings.Replace(printJSON(t, NDJSONOptions{}, viewpoint()), `"rtt_ms":41.2`, `"rtt_ms":9223372036854.775808`, 1)
	if r, err := NewReader(strings.NewReader(line), ReaderOptions{}).Next(); err == nil {
		t.Errorf("more than a duration can hold: got %d", r.Ack.RTT)
	}
}

// RFC 3339 has four digits for the year. A capture's clock has more, when it is
// damaged.
func TestTimesThatCannotBeSaid(t *testing.T) {
	compiled := compileSchema(t)
	for _, c := range []struct {
		time time.Time
		want string
	}{
		{time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC), `"9999-12-31T23:59:59.999999999Z"`},
		{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), "null"},
		{time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), `"0000-01-01T00:00:00.000000000Z"`},
		{time.Date(-1, 12, 31, 23, 59, 59, 0, time.UTC), "null"},
		{time.Unix(1<<62, 5), "null"},
		{time.Time{}, "null"},
	} {
		r := viewpoint()
		r.Time = c.time
		line := printJSON(t, NDJSONOptions{}, r)
		if !strings.Contains(line, `,"time":`+c.want+`,"session"`) {
			t.Errorf("%v: got %s, want %s", c.time, line, c.want)
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiled.Validate(v); err != nil {
			t.Errorf("%v: %v", c.time, err)
		}
		back, err := NewReader(strings.NewReader(line), ReaderOptions{Schema: protocols}).Next()
		if err != nil {
			t.Fatal(err)
		}
		compare(t, printJSON(t, NDJSONOptions{}, back), line)
		if got := print(t, TextOptions{}, back); c.want == "null" && !strings.HasPrefix(got, "-   1  -> c2s udp  VIEW") {
			t.Errorf("as text: got %s", got)
		}
	}
}

func TestTheSchemaIsStrict(t *testing.T) {
	compiled := compileSchema(t)
	good := printJSON(t, NDJSONOptions{}, viewpoint())
	for _, bad := range []string{
		`{}`,
		strings.Replace(good, `"n":17`, `"n":"17"`, 1),
		strings.Replace(good, `"dir":"c2s"`, `"dir":"up"`, 1),
		strings.Replace(good, `"size":9`, `"size":9,"extra":1`, 1),
		strings.Replace(good, `"rest":""`, `"rest":"0"`, 1),
		strings.Replace(good, `"state":"acked"`, `"state":"lost"`, 1),
		strings.Replace(good, `"mode":1`, `"modus":1`, 1),
		strings.Replace(good, `02.310774000Z`, `02.310774Z`, 1),
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(bad))
		if err != nil {
			t.Fatal(err)
		}
		if compiled.Validate(v) == nil {
			t.Errorf("valid: %s", bad)
		}
	}
}

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(JSONSchema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("ndjson.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("ndjson.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// strict reads one line of JSON and refuses duplicate keys.
func strict(line string) error {
	d := json.NewDecoder(strings.NewReader(line))
	if err := strictValue(d); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}

func strictValue(d *json.Decoder) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	delim, nested := token.(json.Delim)
	if !nested {
		return nil
	}
	seen := map[string]bool{}
	for d.More() {
		if delim == '{' {
			key, err := d.Token()
			if err != nil {
				return err
			}
			if name := key.(string); seen[name] {
				return errors.New("duplicate key " + name)
			} else {
				seen[name] = true
			}
		}
		if err := strictValue(d); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

func TestStrictFindsDuplicates(t *testing.T) {
	if strict(`{"a":{"b":1,"b":2}}`) == nil || strict(`{"a":[{"b":1},{"b":2}]}`) != nil {
		t.Error("the test's own parser is wrong")
	}
}
