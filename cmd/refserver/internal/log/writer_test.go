package log

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
)

var (
	when   = time.Date(2026, 11, 29, 20, 15, 2, 104512000, time.UTC)
	server = netip.MustParseAddrPort("10.0.0.1:2627")
	client = netip.MustParseAddrPort("10.0.0.2:50111")
)

func say(w *Writer, p *Peer) {
	body := schema.NewTree(schema.Values{"scope": 0, "text": "say \"hi\"\n\x7f\xff", "list": []float64{0.5, -2}, "none": nil, "raw": []byte{0xca, 0xfe},
		"single": float32(0.1), "wide": uint64(1<<60 + 1), "yes": true})
	o := machine.Output{Kind: machine.SendDatagram, Peer: server, Records: []machine.Record{
		{ID: 7, Message: "COMM_MESSAGE_REQUEST", Opcode: 0x20, Offset: 2, Size: 31, Mode: 3, Seq: 2, Length: 31, Body: body},
		{ID: 8, Message: "SQUAD_OUST", Opcode: 0x47, Offset: 33, Size: 5, Seq: -1, Length: -1, Opaque: true, Note: "the body is made up", Resend: 3},
	}}
	p.Sent(when, o, client, server, 0)
}

const (
	first = `{"type":"record","time":"2026-11-29T20:15:02.104512000Z","dir":"c2s","transport":"udp","src":"10.0.0.2:50111","dst":"10.0.0.1:2627",` +
		`"protocol":"wulfram","message":"COMM_MESSAGE_REQUEST","opcode":32,"envelope":{"mode":3,"seq":2,"length":31},` +
		`"fields":{"list":[0.5,-2],"none":null,"raw":"cafe","scope":0,"single":0.1,"text":"say \"hi\"\u000a\u007f` + "\ufffd" + `",` +
		`"wide":"1152921504606846977","yes":true},"size":31,"offset":2,"id":7,"peer":"Ada"`
	second = `{"type":"record","time":"2026-11-29T20:15:02.104512000Z","dir":"c2s","transport":"udp","src":"10.0.0.2:50111","dst":"10.0.0.1:2627",` +
		`"protocol":"wulfram","message":"SQUAD_OUST","opcode":71,"envelope":{"mode":0},"fields":{},"size":5,"offset":33,"id":8,"resend_of":3,` +
		`"opaque":true,"note":"the body is made up","peer":"Ada"`
)

func TestWriter(t *testing.T) {
	tests := []struct {
		name string
		hold bool
		want []string
	}{
		{"at once, with acknowledgements as lines", false, []string{first + "}", second + "}",
			`{"type":"ack","time":"2026-11-29T20:15:02.104512000Z","id":7,"peer":"Ada"}`,
			`{"type":"event","time":"2026-11-29T20:15:02.104512000Z","code":"left","text":"bye","peer":"Ada"}`}},
		{"held, with acknowledgements on the records", true, []string{first + `,"acked":true}`, second + "}",
			`{"type":"event","time":"2026-11-29T20:15:02.104512000Z","code":"left","text":"bye","peer":"Ada"}`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var b strings.Builder
			w := NewWriter(&b)
			w.Hold = test.hold
			p := w.Peer(Peer{Name: "Ada", Protocol: "wulfram", Addr: client})
			say(w, p)
			p.Acknowledged(when, 7)
			p.Event(when, "left", "bye")
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			got := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
			for i := range max(len(got), len(test.want)) {
				if i >= len(got) || i >= len(test.want) || got[i] != test.want[i] {
					t.Fatalf("line %d of %d:\n%s\nwant\n%s", i+1, len(got), got[min(i, len(got)-1)], test.want[min(i, len(test.want)-1)])
				}
				if !json.Valid([]byte(got[i])) {
					t.Errorf("line %d is no JSON: %s", i+1, got[i])
				}
			}
		})
	}
}

func TestReceivedAndSecrets(t *testing.T) {
	var b strings.Builder
	w := NewWriter(&b)
	p := w.Peer(Peer{Name: "server", Server: true, Protocol: "wulfram", Addr: server})
	tree := &schema.Tree{Nodes: []schema.Node{{Field: &schema.Field{Name: "password", Redact: schema.Secret}, Kind: schema.String}}}
	p.Received(when, client, machine.Record{ID: 3, Message: "LOGIN", Opcode: 0x21, Size: 21, Mode: -1, Via: schema.TCP, Seq: -1, Length: 21, Offset: -1, Body: tree})
	want := `{"type":"record","time":"2026-11-29T20:15:02.104512000Z","dir":"c2s","transport":"tcp","src":"10.0.0.2:50111","dst":"10.0.0.1:2627",` +
		`"protocol":"wulfram","message":"LOGIN","opcode":33,"envelope":{"length":21},"fields":{"password":"***"},"size":21,"peer":"server"}` + "\n"
	if b.String() != want {
		t.Errorf("got  %swant %s", b.String(), want)
	}
}

func TestAddressesAndGUIDs(t *testing.T) {
	var b strings.Builder
	p := NewWriter(&b).Peer(Peer{Name: "Ada", Protocol: "lotr2", Addr: client})
	id := []byte{0xc0, 0x48, 0x82, 0x1c, 0x72, 0x97, 0xcf, 0x11, 0xb7, 0x4f, 0x00, 0xc0, 0xdf, 0x41, 0x3e, 0xd1}
	tree := &schema.Tree{Data: id, Nodes: []schema.Node{
		{Field: &schema.Field{Name: "app_guid"}, Kind: schema.GUID, BodyLen: 16},
		{Field: &schema.Field{Name: "addr"}, Kind: schema.IPv4, Num: 0xa9fe03f5},
	}}
	head := schema.NewTree(schema.Values{"token": 0xfab})
	p.Received(when, server, machine.Record{
		Message: "EnumSessions", Protocol: "dplay", Mode: -1, Seq: -1, Length: -1, Offset: -1, Via: schema.UDP, Port: 2350, Aside: true, Head: head, Body: tree,
	})
	for _, want := range []string{
		`"app_guid":"{1C8248C0-9772-11CF-B74F-00C0DF413ED1}","addr":"169.254.3.245"`, `"protocol":"dplay"`, `"dir":null`, `"dst":"10.0.0.2:2350"`,
		`"envelope":{"token":4011}`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("got %swant %s", b.String(), want)
		}
	}
}

func TestBotsHaveTwoEnds(t *testing.T) {
	var b strings.Builder
	p := NewWriter(&b).Peer(Peer{Name: "Ada", Addr: client, Stream: netip.MustParseAddrPort("10.0.0.2:50110")})
	p.Received(when, server, machine.Record{Via: schema.TCP, Mode: -1, Seq: -1, Length: 3, Offset: -1})
	p.Received(when, server, machine.Record{Via: schema.UDP, Mode: 0, Seq: -1, Length: -1, Offset: -1})
	tcp, udp, _ := strings.Cut(b.String(), "\n")
	if !strings.Contains(tcp, `"dst":"10.0.0.2:50110"`) || !strings.Contains(udp, `"dst":"10.0.0.2:50111"`) {
		t.Errorf("got %s", b.String())
	}
}

func TestStreamOffsets(t *testing.T) {
	var b strings.Builder
	w := NewWriter(&b)
	p := w.Peer(Peer{Name: "server", Server: true, Protocol: "wulfram", Addr: server})
	p.Sent(when, machine.Output{Kind: machine.SendStream, Records: []machine.Record{{ID: 1, Offset: 20, Mode: -1, Seq: -1, Length: 3}}}, server, client, 100)
	if !strings.Contains(b.String(), `"offset":120`) || !strings.Contains(b.String(), `"dir":"s2c","transport":"tcp"`) {
		t.Errorf("got %s", b.String())
	}
}
