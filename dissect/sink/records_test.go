package sink

import (
	"encoding/binary"
	"math"
	"net/netip"
	"sync"
	"testing/fstest"
	"time"

	"opscope/dissect"
	"opscope/schema"
	"opscope/schema/wire"
)

// The records of these tests are built by hand, so that the sinks are judged
// without the decoder.

var (
	at     = time.Date(2026, 11, 29, 20, 15, 2, 310774000, time.UTC)
	client = netip.MustParseAddrPort("10.0.0.2:50111")
	server = netip.MustParseAddrPort("10.0.0.1:2627")
	lost   = ^uint64(0) // -1

	targets = schema.NewEnum("target", []schema.Name{{Value: lost, Name: "none"}})
	opcodes = schema.NewEnum("opcode", []schema.Name{{Value: 0x35, Name: "VIEWPOINT_INFO"}})
	mask    = &schema.Flags{Name: "mask", Bits: []schema.Flag{
		{Low: 0, High: 0, Name: "definition"}, {Low: 1, High: 1, Name: "position"}, {Low: 2, High: 4, Name: "bank"},
	}}
)

// layouts is a schema of the records below.
const layouts = `
protocol: wulfram
order: be
align: bit
enums:
  stream_mode: {0: raw, 1: latest, 3: ordered}
  target: {-1: none}
flags:
  mask: {0: definition, 1: position, 2-4: bank}
types:
  vec3: f32[3]
  entity:
    - id:   u3
    - team: u5
      confidence: guess
  credentials:
    - kind:  u8
    - token: text(u16)
      redact: secret
packets:
  ENTER:
    opcode: 0x0d
    from: client
    fields:
      - count:   u8
      - entries: credentials[count]
  UPDATE_ARRAY:
    opcode: 0x0e
    from: server
    fields:
      - data:        bytes(4)
      - _:           u8
      - application: guid
      - host:        ipv4
      - token_id:    u64
      - bits:        u8 mask
      - ping:        u16
        scale: 0.1
        unit: ms
      - yaw:         f32
      - local_state: u8?
      - position:    vec3
      - entities:    entity[1]
  COMM_MESSAGE:
    opcode: 0x1f
    from: client
    fields:
      - text: text(rest, utf8)
  LOGIN:
    opcode: 0x21
    from: client
    fields:
      - kind:     u8
      - password: text(rest)
        redact: secret
  VIEWPOINT_INFO:
    opcode: 0x35
    from: client
    fields:
      - entity_id: i32 target
`

var loaded = sync.OnceValue(func() *schema.Protocol {
	list, err := schema.Load(fstest.MapFS{"wulfram.yaml": {Data: []byte(layouts)}}, ".")
	if err != nil {
		panic(err)
	}
	return list[0]
})

func protocols(name string) *schema.Protocol {
	if name == "wulfram" {
		return loaded()
	}
	return nil
}

// frame returns a record with what all of them have; its body is in raw from
// byte head on.
func frame(message string, opcode int, raw []byte) *dissect.Record {
	r := &dissect.Record{
		N: 17, Packets: []int{12}, Time: at, Digits: 6, Session: 1, Flow: 2,
		Direction: dissect.ClientToServer, Transport: schema.UDP, Src: client, Dst: server,
		Protocol: "wulfram", Message: message, Opcode: opcode, Envelope: dissect.NoEnvelope,
		Raw: raw, Size: len(raw),
	}
	r.Body.Reset(raw)
	return r
}

// add adds a node; off and bits are its place in bits.
func add(r *dissect.Record, f *schema.Field, kind schema.ValueKind, off, bits int, num uint64) {
	r.Body.Nodes = append(r.Body.Nodes, schema.Node{
		Field: f, Kind: kind, Num: num, Off: int32(off), Len: int32(bits),
		Body: int32(off), BodyLen: int32(bits / 8), Sel: -1,
	})
}

// nest makes the nodes from index i+1 on the members of node i.
func nest(r *dissect.Record, i int) { r.Body.Nodes[i].Size = int32(len(r.Body.Nodes) - i - 1) }

func viewpoint() *dissect.Record {
	r := frame("VIEWPOINT_INFO", 0x35, []byte{0x35, 0, 7, 0, 9, 0xff, 0xff, 0xff, 0xff})
	add(r, &schema.Field{Name: "entity_id", Type: "i32 target", Enum: targets}, schema.Int, 40, 32, lost)
	r.Envelope = dissect.Envelope{Mode: 1, Seq: 7, Length: 9, Origin: schema.Learned, LearnedIn: 9}
	r.Ack = dissect.Ack{State: dissect.AckAcked, By: 14, RTT: 41200 * time.Microsecond}
	r.Notes = []dissect.Note{{Code: "retransmission", Text: "same bytes as packet 11"}}
	return r
}

// login has a secret in bytes 4 to 10.
func login() *dissect.Record {
	r := frame("LOGIN", 0x21, []byte("\x00\x0b\x21\x01hunter2"))
	r.Transport = schema.TCP
	add(r, &schema.Field{Name: "kind", Type: "u8"}, schema.Uint, 24, 8, 1)
	add(r, secretField, schema.Text, 32, 56, 0)
	r.Notes = []dissect.Note{{Code: "out_of_range", Text: `password="hunter2"`}}
	return r
}

var secretField = &schema.Field{Name: "password", Type: "text(rest)", Redact: schema.Secret}

// brokenLogin ends inside its secret.
func brokenLogin() *dissect.Record {
	r := login()
	r.Packet = loaded().PacketNamed("LOGIN")
	r.Notes = nil
	r.Body.Nodes = r.Body.Nodes[:1]
	r.Rest = r.Raw[4:]
	r.Err = &wire.Error{
		Layer: "wulfram", Path: "LOGIN.password", Offset: 4, Size: 11,
		Want: "9 bytes", Got: "hunter2", Kind: wire.Truncated,
	}
	return r
}

func says(text string) *dissect.Record {
	r := frame("COMM_MESSAGE", 0x1f, []byte("\x1f"+text))
	add(r, &schema.Field{Name: "text", Encoding: schema.UTF8, Type: "text(rest)"}, schema.Bytes, 8, 8*len(text), 0)
	r.Body.Nodes[0].Kind = schema.Text
	return r
}

// everything has a value of each kind.
func everything() *dissect.Record {
	raw := make([]byte, 64)
	copy(raw, "\x0e\xde\xad\xbe\xef")
	copy(raw[8:], "\xc0\x48\x82\x1c\x72\x97\xcf\x11\xb7\x4f\x00\xc0\xdf\x41\x3e\xd1")
	binary.BigEndian.PutUint64(raw[32:], math.MaxUint64)
	r := frame("UPDATE_ARRAY", 0x0e, raw)
	r.Direction, r.Src, r.Dst = dissect.ServerToClient, server, client
	number := &schema.Field{Name: "x", Type: "f32", Single: true}
	add(r, &schema.Field{Name: "data", Type: "bytes(4)"}, schema.Bytes, 8, 32, 0)
	add(r, &schema.Field{Name: "_", Hidden: true}, schema.Uint, 40, 8, 5)
	add(r, &schema.Field{Name: "part", Part: true}, schema.Uint, 48, 8, 6)
	add(r, &schema.Field{Name: "application", Type: "guid"}, schema.GUID, 64, 128, 0)
	add(r, &schema.Field{Name: "host", Type: "ipv4"}, schema.IPv4, 192, 32, 0x7f000001)
	add(r, &schema.Field{Name: "token_id", Type: "u64", Wide: true}, schema.Uint, 256, 64, math.MaxUint64)
	add(r, &schema.Field{Name: "bits", Type: "u8 mask", Flags: mask}, schema.Uint, 320, 8, 0x2d)
	add(r, &schema.Field{Name: "ping", Type: "u16", Scale: 0.1, Unit: "ms"}, schema.Uint, 328, 16, 15)
	add(r, &schema.Field{Name: "yaw", Type: "f32", Single: true}, schema.Float, 344, 32, math.Float64bits(math.NaN()))
	add(r, &schema.Field{Name: "local_state"}, schema.Null, 0, 0, 0)
	position := len(r.Body.Nodes)
	add(r, &schema.Field{Name: "position", Type: "vec3"}, schema.Array, 376, 96, 0)
	for i, v := range []float64{1.5, float64(float32(0.1)), -3} {
		add(r, number, schema.Float, 376+32*i, 32, math.Float64bits(v))
	}
	nest(r, position)
	entities := len(r.Body.Nodes)
	add(r, &schema.Field{Name: "entities", Type: "entity[1]"}, schema.Array, 472, 16, 0)
	add(r, &schema.Field{Name: "entities", Type: "entity"}, schema.Struct, 472, 16, 0)
	add(r, &schema.Field{Name: "id", Type: "u3"}, schema.Uint, 472, 3, 0)
	add(r, &schema.Field{Name: "team", Type: "u5", Confidence: schema.Guess}, schema.Uint, 475, 5, 0)
	nest(r, entities+1)
	nest(r, entities)
	return r
}

// typical is a record of the size that most have: five fields, no notes.
func typical() *dissect.Record {
	raw := []byte("\x20\x00\x07\x00\x23\x00\x00\x10\x21\x02\x00\x00\x00\x09hello there")
	r := frame("COMM_MESSAGE_REQUEST", 0x20, raw)
	r.Envelope = dissect.Envelope{Mode: 3, Seq: 7, Length: len(raw), Origin: schema.Learned, LearnedIn: 9}
	r.Context = schema.Learned
	r.Ack = dissect.Ack{State: dissect.AckAcked, By: 14, RTT: 41200 * time.Microsecond}
	for i, f := range typicalFields {
		kind := [...]schema.ValueKind{schema.Uint, schema.Uint, schema.Int, schema.Float, schema.Text}[i]
		num := [...]uint64{4129, 2, lost, math.Float64bits(500.01525925473834), 0}[i]
		add(r, f, kind, 40+16*i, 8*len("hello there"), num)
	}
	r.Body.Nodes[4].Body = 8 * int32(len(raw)-len("hello there"))
	return r
}

var typicalFields = []*schema.Field{
	{Name: "timestamp", Type: "u32"}, {Name: "scope", Type: "u8 target", Enum: targets}, {Name: "recipient", Type: "i32 target", Enum: targets},
	{Name: "distance", Type: "quant(1)"}, {Name: "text", Type: "string"},
}

// happenings is a record of each type that is no frame.
func happenings() []*dissect.Record {
	base := dissect.Record{Time: at, Digits: 6, Session: 1, Flow: 2, Opcode: -1, Transport: schema.TCP}
	gap, ack, session, event := base, base, base, base
	gap.Type, gap.Direction, gap.Bytes, gap.After, gap.Before = dissect.GapRecord, dissect.ServerToClient, 1448, 77, 81
	gap.Offset, gap.Text = 4096, "memory_limit"
	ack.Type, ack.Acked, ack.Ack = dissect.AckRecord, 17, dissect.Ack{State: dissect.AckAcked, By: 14, RTT: 41200 * time.Microsecond}
	session.Type, session.Client, session.Server = dissect.SessionRecord, client, server
	session.Protocol, session.Code, session.Text = "wulfram", "opened", "handshake"
	event.Type, event.Code, event.Text, event.Packets = dissect.EventRecord, "resync", "frame found after 12 bytes", []int{81}
	broken := event
	broken.Session, broken.Flow, broken.Transport, broken.Code, broken.Packets = 0, 0, 0, "bad_packet", []int{5}
	broken.Err = &wire.Error{Layer: "ipv4", Offset: 14, Want: "20 bytes", Got: "3 left", Kind: wire.Truncated}
	broken.Text = broken.Err.Error()
	return []*dissect.Record{&gap, &ack, &session, &event, &broken}
}

// acknowledging is a record that acknowledges another, read with what was assumed.
func acknowledging() *dissect.Record {
	r := frame("D_ACK", 2, []byte{2, 1, 0x35, 0, 7})
	r.Envelope.Mode = 0
	add(r, &schema.Field{Name: "subtype"}, schema.Uint, 8, 8, 1)
	add(r, &schema.Field{Name: "acked_opcode", Enum: opcodes}, schema.Uint, 16, 8, 0x35)
	add(r, &schema.Field{Name: "acked_sequence"}, schema.Uint, 24, 16, 7)
	r.Acks = dissect.Acks{Seq: 7, Message: "VIEWPOINT_INFO", Packet: 12, N: 9, RTT: 41 * time.Millisecond}
	r.Context = schema.Default
	r.Notes = []dissect.Note{{Code: "assumed_context", Text: "widths by the stated default"}}
	return r
}

// unseen acknowledges a record from before the capture.
func unseen() *dissect.Record {
	r := frame("D_ACK", 2, []byte{2})
	r.Envelope.Mode = 0
	r.Acks = dissect.Acks{Verdict: dissect.AcksEarlier, Seq: -1, RTT: -1}
	return r
}

// all is every record that these tests know.
func all() []*dissect.Record {
	undecoded := frame("unknown(0x05)", 5, []byte{5, 1, 2})
	undecoded.Rest = undecoded.Raw[1:]
	undecoded.Notes = []dissect.Note{{Code: "unknown_opcode"}}
	undecoded.Direction = dissect.UnknownDirection
	list := []*dissect.Record{
		viewpoint(), login(), brokenLogin(), everything(), typical(), acknowledging(), unseen(), undecoded,
		says("\x1b[2J\x1b]52;c;x\x07\u009b\u202e\r\x00\xff\"\\\U000e0001"),
	}
	return append(list, happenings()...)
}
