package schema

import (
	"bytes"
	"encoding/hex"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"opscope/schema/wire"
)

// mmoVector is one entry of testdata/vectors/mmo/vectors.json, as section 9 of the
// facts describes it.
type mmoVector struct {
	Name, Transport, Direction, Hex, Message, Schema string
	ID                                               uint64  `json:"packet_id"`
	Packet                                           *string `json:"packet_name"`
	Size                                             int
	Fields                                           map[string]any
	Absent, Redact, Segments                         []string
	Unknown                                          []mmoUnknown `json:"unknown_fields"`
	Diagnostics                                      []struct{ Severity, Code, Detail string }
	Frames                                           []*mmoVector
}

type mmoUnknown struct {
	Number int
	Wire   string
	Value  any
	Path   string
}

func mmo(t testing.TB) *Protocol {
	t.Helper()
	p, err := Builtin("mmo")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mmoVectors(t testing.TB) (all []*mmoVector) {
	t.Helper()
	readJSON(t, "../testdata/vectors/mmo/vectors.json", &all)
	return all
}

func (v *mmoVector) sender() Sender {
	return map[string]Sender{"c2s": Client, "s2c": Server}[v.Direction]
}

// packetOf returns the packet with an id, whoever sends it over whatever transport,
// and its layout.
func packetOf(p *Protocol, id uint64) (string, *Layout) {
	for _, t := range []Transport{TCP, UDP} {
		if k := p.Packet(id, AnySender, t); k != nil {
			return k.Name, k.Of(AnySender)[0]
		}
	}
	return UnknownName(id), p.Unknown
}

// plainValue returns the value of node i as the vectors have it.
func plainValue(t *Tree, i int) any {
	n := &t.Nodes[i]
	if n.Field.Mark == Unmatched {
		_, value := plainUnmatched(t, i)
		return map[string]any{"wire": n.Field.Wire.String(), "value": value}
	}
	switch n.Kind {
	case Bool:
		return n.Num == 1
	case Null:
		return nil
	case Text:
		return string(t.AppendText(nil, i))
	case Bytes:
		return hex.EncodeToString(t.AppendBytes(nil, i))
	case Float:
		if f := n.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return strconv.FormatFloat(f, 'g', -1, 64)
		}
		return n.Float()
	case Struct:
		return plainMembers(t, i+1, t.Next(i))
	case Array:
		list := []any{}
		for k := i + 1; k < t.Next(i); k = t.Next(k) {
			list = append(list, plainValue(t, k))
		}
		return list
	}
	if name := n.Field.Enum.NameOf(n.Num); name != "" && n.Field.Symbol {
		return name
	}
	text := strconv.FormatUint(n.Num, 10)
	if n.Kind == Int {
		text = strconv.FormatInt(int64(n.Num), 10)
	}
	if n.Field.Wide {
		return text
	}
	f, _ := strconv.ParseFloat(text, 64)
	return f
}

// plainMembers returns what counts of a message by name, without what no schema has
// where there is one.
func plainMembers(t *Tree, from, to int) map[string]any {
	m := map[string]any{}
	for i := from; i < to; i = t.Next(i) {
		if f := t.Nodes[i].Field; f.Mark != Superseded && !f.Hidden {
			m[f.Name] = plainValue(t, i)
		}
	}
	return m
}

func plainUnmatched(t *Tree, i int) (number int, value string) {
	n := &t.Nodes[i]
	if n.Field.Wire == WireVarint {
		return n.Field.Number, strconv.FormatUint(n.Num, 10)
	}
	return n.Field.Number, hex.EncodeToString(t.Data[n.Body>>3:][:n.BodyLen])
}

// raisedHere are the diagnostics of the vectors that decoding a body raises.
var raisedHere = []string{
	"protobuf_truncated", "protobuf_malformed", "wire_type_mismatch", "invalid_utf8", "move_batch_count_mismatch", "reserved_nonzero",
}

func TestMmoVectorsAreTheSharedOnes(t *testing.T) {
	want, err := os.ReadFile(shared(t, "vectors/mmo.json"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../testdata/vectors/mmo/vectors.json")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("testdata/vectors/mmo/vectors.json is not the collection (%v)", err)
	}
}

func TestMmoVectors(t *testing.T) {
	for _, v := range mmoVectors(t) {
		if len(v.Frames) == 0 {
			t.Run(v.Name, func(t *testing.T) { v.check(t, unhex(t, v.Hex)) })
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			data := unhex(t, v.Hex)
			for _, f := range v.Frames {
				f.Transport, f.Direction = v.Transport, v.Direction
				f.check(t, data)
				data = data[f.Size:]
			}
			if len(data) > 0 {
				t.Errorf("%d bytes left", len(data))
			}
		})
	}
}

func (v *mmoVector) check(t *testing.T, data []byte) {
	t.Helper()
	p := mmo(t)
	frame, fault := p.Framing(v.Transport).Find(data, p.Name)
	if v.framing(t, frame, fault) {
		return
	}
	if frame.Opcode != v.ID || frame.Size != v.Size {
		t.Fatalf("got a frame 0x%04X of %d, want 0x%04X of %d", frame.Opcode, frame.Size, v.ID, v.Size)
	}
	tree, d, err := v.decode(p, data[:frame.Size])
	v.checkFields(t, tree)
	for _, name := range v.Redact {
		if i := tree.Field(name); i >= 0 && tree.Nodes[i].Field.Redact != Secret {
			t.Errorf("%s is not redacted", name)
		}
	}
	var got, want []string
	for _, r := range d.Remarks {
		got = append(got, r.Code)
	}
	for _, w := range v.Diagnostics {
		if slices.Contains(raisedHere, w.Code) {
			want = append(want, w.Code)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got the remarks %v, want %v", d.Remarks, want)
	}
	if failed := slices.Contains(want, "protobuf_truncated") || slices.Contains(want, "protobuf_malformed"); failed != (err != nil) {
		t.Errorf("got the error %v", err)
	}
}

// framing reports whether the vector is about a frame that is none.
func (v *mmoVector) framing(t *testing.T, f Frame, err *wire.Error) bool {
	t.Helper()
	for _, d := range v.Diagnostics {
		switch d.Code {
		case "frame_size_too_small", "frame_size_too_large":
			if err == nil || err.Kind != wire.Malformed || err.Path != "envelope.length" {
				t.Errorf("got %v", err)
			}
			return true
		case "frame_truncated":
			if err == nil || err.Kind != wire.Incomplete || f.Size != v.Size {
				t.Errorf("got a frame of %d and %v, want the start of one of %d", f.Size, err, v.Size)
			}
			return true
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return false
}

func (v *mmoVector) decode(p *Protocol, frame []byte) (*Tree, *Decoder, *wire.Error) {
	name, layout := packetOf(p, v.ID)
	tree, d := &Tree{}, &Decoder{Short: wire.Malformed}
	tree.Reset(frame)
	return tree, d, d.Decode(p, name, layout, tree, 8*4, 8*len(frame))
}

func (v *mmoVector) checkFields(t *testing.T, tree *Tree) {
	t.Helper()
	got := plainMembers(tree, 0, len(tree.Nodes))
	var absent []string
	var unknown []mmoUnknown
	for i := 0; i < len(tree.Nodes); i = tree.Next(i) {
		switch f := tree.Nodes[i].Field; {
		case f.Mark == Absent:
			absent = append(absent, f.Name)
		case f.Mark == Unmatched && v.Message != "":
			number, value := plainUnmatched(tree, i)
			unknown = append(unknown, mmoUnknown{number, f.Wire.String(), value, ""})
			delete(got, f.Name)
		}
	}
	for _, line := range diff(v.Name, any(got), any(v.Fields), nil, 0, false) {
		t.Error(line)
	}
	if v.Absent != nil && !sameWords(absent, v.Absent) {
		t.Errorf("absent: got %v, want %v", absent, v.Absent)
	}
	if !slices.Equal(unknown, v.Unknown) {
		t.Errorf("unknown fields: got %v, want %v", unknown, v.Unknown)
	}
}

func sameWords(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

// A whole body comes back out of its tree, byte for byte: the vectors are written in
// the canonical order.
func TestMmoVectorsEncodeToTheirBytes(t *testing.T) {
	p := mmo(t)
	for _, v := range mmoVectors(t) {
		if len(v.Frames) > 0 || len(v.Diagnostics) > 0 && v.Diagnostics[0].Severity == "error" {
			continue
		}
		frame := unhex(t, v.Hex)
		tree, _, _ := v.decode(p, frame)
		name, layout := packetOf(p, v.ID)
		got, err := (&Encoder{Head: 4}).Append(nil, p, name, layout, tree)
		want := frame[4:]
		if v.Name == "attack_req_wire_type_mismatch" {
			want = unhex(t, "10020a0107") // what is known comes first
		}
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: got %x (%v), want %x", v.Name, got, err, want)
		}
	}
}

// The same bytes are made out of the values alone, as the reference server makes them.
func TestMmoVectorsEncodeFromTheirValues(t *testing.T) {
	p := mmo(t)
	count := 0
	for _, v := range mmoVectors(t) {
		if v.Schema == "unknown" || len(v.Unknown) > 0 || len(v.Frames) > 0 || len(v.Diagnostics) > 0 && v.Diagnostics[0].Code != "move_batch_on_tcp" {
			continue
		}
		count++
		frame := unhex(t, v.Hex)
		name, layout := packetOf(p, v.ID)
		got, err := (&Encoder{Head: 4}).Append(nil, p, name, layout, NewTree(mmoValues(layout, v.Fields, nil).(Values)))
		if err != nil || !bytes.Equal(got, frame[4:]) {
			t.Errorf("%s: got %x (%v), want %x", v.Name, got, err, frame[4:])
		}
	}
	if count < 20 {
		t.Errorf("only %d vectors", count)
	}
}

// mmoValues returns values for an encoder: integers and bytes out of their texts.
func mmoValues(l *Layout, v any, path []string) any {
	switch v := v.(type) {
	case map[string]any:
		m := Values{}
		for name, x := range v {
			m[name] = mmoValues(l, x, append(slices.Clone(path), name))
		}
		if path == nil {
			delete(m, "count") // counted by the encoder
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, x := range v {
			list[i] = mmoValues(l, x, path)
		}
		return list
	case string:
		f := l.FieldAt(path...)
		if f.Wide {
			n, _ := strconv.ParseUint(v, 10, 64)
			return n
		}
		if f.Type == "bytes" || f.Type == "rest" {
			b, _ := hex.DecodeString(v)
			return b
		}
	}
	return v
}

// Every proper prefix of a body gives an error, or fewer fields: those that are whole.
func TestMmoTruncation(t *testing.T) {
	p := mmo(t)
	for _, v := range mmoVectors(t) {
		if len(v.Frames) > 0 {
			continue
		}
		frame := unhex(t, v.Hex)
		if v.Size < len(frame) && v.Size >= 4 {
			frame = frame[:v.Size]
		}
		whole, _, _ := v.decode(p, frame)
		for n := 4; n < len(frame); n++ {
			tree, d, err := v.decode(p, frame[:n])
			if !fits(tree, 0, len(tree.Nodes), 0, 8*n) || d.End > 8*n {
				t.Errorf("%s cut at %d: a field reaches beyond the bytes", v.Name, n)
			}
			if err != nil && err.Offset > n {
				t.Errorf("%s cut at %d: %v", v.Name, n, err)
			}
			for i := 0; i < len(tree.Nodes) && err == nil; i = tree.Next(i) {
				if f := tree.Nodes[i].Field; f.Mark == NoMark && whole.Field(f.Name) < 0 {
					t.Errorf("%s cut at %d: got %s", v.Name, n, f.Name)
				}
			}
			d.Short = wire.Truncated
			name, layout := packetOf(p, v.ID)
			tree.Reset(frame[:n])
			if err := d.Decode(p, name, layout, tree, 32, 8*n); err != nil && err.Kind == wire.Malformed && v.Diagnostics == nil {
				t.Errorf("%s captured up to %d: %v", v.Name, n, err)
			}
			for i := 0; i < len(tree.Nodes); i = tree.Next(i) {
				if f := tree.Nodes[i].Field; f.Mark == Absent {
					t.Errorf("%s captured up to %d: %s is called absent, and was not captured", v.Name, n, f.Name)
				}
			}
		}
	}
}

// A batch that the capture cut has the entries that are whole; what it counts may have
// been there.
func TestMmoBatchCutByTheCapture(t *testing.T) {
	p := mmo(t)
	for _, v := range mmoVectors(t) {
		if v.Name != "move_batch_29_full_datagram" {
			continue
		}
		frame := unhex(t, v.Hex)[:200]
		name, layout := packetOf(p, v.ID)
		tree, d := &Tree{}, &Decoder{Short: wire.Truncated}
		tree.Reset(frame)
		err := d.Decode(p, name, layout, tree, 32, 8*len(frame))
		if n := tree.Elements(tree.Field("entries")); err != nil || n != 4 || len(d.Remarks) > 0 || d.End != 8*(16+4*40) {
			t.Errorf("got %d entries up to byte %d, %v, remarks %v", n, d.End/8, err, d.Remarks)
		}
	}
}

// The batch of the vectors, each of its numbers turned round by hand.
func TestMmoInTheOtherOrder(t *testing.T) {
	p, err := mmo(t).WithOrder(wire.Big)
	if err != nil {
		t.Fatal(err)
	}
	const batch = "0038" + "0213" + "0001" + "0000" + "0000019774" + "20dc7b" +
		"00000000000003e9" + "0000012c" + "41480000" + "c0e80000" + "42b40000" + "40400000" + "bf000000" + "3e000000" + "4387a000"
	data := unhex(t, batch)
	frame, fault := p.Framing("udp").Find(data, p.Name)
	if fault != nil || frame.Opcode != 0x0213 || frame.Size != 56 {
		t.Fatalf("got %+v, %v", frame, fault)
	}
	for _, v := range mmoVectors(t) {
		if v.Name != "move_batch_1" {
			continue
		}
		tree, d, err := v.decode(p, data)
		if err != nil || len(d.Remarks) > 0 {
			t.Fatalf("got %v, %v", err, d.Remarks)
		}
		v.checkFields(t, tree)
	}
	// Protocol Buffers have an order of their own.
	data = unhex(t, "001d02110"+"8ac0215000080bf1d0000003f2500a0874328fbb883a1f732")
	frame, fault = p.Framing("udp").Find(data, p.Name)
	if fault != nil || frame.Opcode != 0x0211 {
		t.Fatalf("got %+v, %v", frame, fault)
	}
	var tree Tree
	tree.Reset(data)
	if err := (&Decoder{}).Decode(p, "MoveReq", p.PacketNamed("MoveReq").Of(Client)[0], &tree, 32, 8*len(data)); err != nil {
		t.Fatal(err)
	}
	if i := tree.Field("move_x"); i < 0 || tree.Nodes[i].Float() != -1 {
		t.Errorf("got %v", plainMembers(&tree, 0, len(tree.Nodes)))
	}
	if q := mmo(t); q.Order != wire.Little || q.Envelopes[0].opcode.order != wire.Little {
		t.Error("the built-in protocol has changed")
	}
	back := p.Framing("tcp").Envelope.Append(nil, 0x0201, 0, []byte{1, 2, 3}, CountsFrame)
	if want := unhex(t, "00070201010203"); !bytes.Equal(back, want) {
		t.Errorf("got %x, want %x", back, want)
	}
}

// Section 3 of the facts: who sends what, over what, and what is deprecated.
func TestMmoPackets(t *testing.T) {
	p := mmo(t)
	if len(p.Packets) != 40 {
		t.Errorf("got %d packets, want 40", len(p.Packets))
	}
	udp := []string{"UdpHelloReq", "UdpHelloRes", "MoveReq", "MoveBatchNotify"}
	clients := []string{
		"EchoReq", "Pong", "LoginReq", "RegisterReq", "ServerListReq", "SelectServerReq", "EnterGameReq", "UdpHelloReq", "MoveReq",
		"ChatReq", "AttackReq", "InventoryMoveReq", "InventoryUseReq",
	}
	for _, k := range p.Packets {
		via, from := TCP, Server
		if slices.Contains(udp, k.Name) {
			via = UDP
		} else if k.Name == "MoveNotify" {
			via = TCP | UDP
		}
		if slices.Contains(clients, k.Name) {
			from = Client
		}
		if k.Via != via || k.From != from {
			t.Errorf("%s: got %s by the %s, want %s by the %s", k.Name, k.Via, k.From, via, from)
		}
		if deprecated := k.Opcode>>8 == 1; deprecated != (k.Deprecated != "") {
			t.Errorf("%s: deprecated is %q", k.Name, k.Deprecated)
		}
		if len(k.Of(Client)) != 1 || len(k.Of(Server)) != 1 {
			t.Errorf("%s has no layout", k.Name)
		}
	}
}

// What is secret or personal, sections 28 to 32 of the facts.
func TestMmoRedaction(t *testing.T) {
	p := mmo(t)
	for _, c := range []struct {
		packet, body string // hex
		want         map[string]Redaction
	}{
		{"EnterGameReq", "0a0161" + "1001", map[string]Redaction{"enter_token": Secret, "character_id": Open}},
		{"EnterGameRes", "120161" + "2a0161", map[string]Redaction{"message": Open, "udp_token": Secret}},
		// The token's number with another wire type: it is no token, and may still be one.
		{"EnterGameReq", "0b1200" + "0c", map[string]Redaction{"1": Secret}},
		{"UdpHelloReq", "0a0161" + "3a020801" + "1005", map[string]Redaction{"1": Secret, "7": Secret, "2": Open}},
		{"UdpHelloReq", "0b120161" + "0c", map[string]Redaction{"1": Open, "2": Secret}}, // inside of a group
		{"LoginReq", "0a0161" + "120162", map[string]Redaction{"1": Secret, "2": Secret}},
		{"RegisterReq", "a2020161", map[string]Redaction{"36": Secret}},
		{"ChatReq", "0a0161", map[string]Redaction{"1": Personal}},
		{"ChatNtf", "0a0161" + "1001", map[string]Redaction{"1": Personal, "2": Open}},
		{"SpawnMonster", "0a0161", map[string]Redaction{"1": Open}},
	} {
		k := p.PacketNamed(c.packet)
		var tree Tree
		tree.Reset(unhex(t, c.body))
		if err := (&Decoder{}).Decode(p, k.Name, k.Of(AnySender)[0], &tree, 0, 8*len(tree.Data)); err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
		got := map[string]Redaction{}
		for i := range tree.Nodes {
			if f := tree.Nodes[i].Field; f.Mark != Absent {
				got[f.Name] = f.Redact
			}
		}
		for name, want := range c.want {
			if r, ok := got[name]; !ok || r != want {
				t.Errorf("%s.%s: got %v (%v), want %v", k.Name, name, r, ok, want)
			}
		}
	}
	for _, k := range p.Packets {
		secret := slices.Contains([]string{"EnterGameReq", "EnterGameRes", "UdpHelloReq"}, k.Name) || k.Opcode>>8 == 1
		if k.Secret() != secret {
			t.Errorf("%s: got %v", k.Name, k.Secret())
		}
	}
}

// Whoever sees no message of this game does not pay for its .proto files.
func TestProtoFilesAreCompiledWhenTheyAreNeeded(t *testing.T) {
	l := loader{trusted: true}
	all, err := l.load(builtin, "protocols/mmo")
	if err != nil {
		t.Fatal(err)
	}
	p := all[0]
	p.Packet(0x0201, Client, TCP).Secret()
	decode := func(name string) {
		k := p.PacketNamed(name)
		var tree Tree
		tree.Reset([]byte{8, 1})
		(&Decoder{}).Decode(p, k.Name, k.Of(AnySender)[0], &tree, 0, 16)
	}
	decode("SpawnMonster")
	decode("MoveBatchNotify")
	if p.protos.messages != nil {
		t.Error("compiled, and no message was asked for")
	}
	decode("EnterGameRes")
	if p.protos.messages == nil {
		t.Error("not compiled")
	}
}

func TestDecodingProtocolBuffersDoesNotAllocate(t *testing.T) {
	p := mmo(t)
	var tree Tree
	d := &Decoder{Short: wire.Malformed}
	for _, v := range mmoVectors(t) {
		if len(v.Frames) > 0 || len(v.Diagnostics) > 0 {
			continue
		}
		frame := unhex(t, v.Hex)
		name, layout := packetOf(p, v.ID)
		run := func() {
			tree.Reset(frame)
			if err := d.Decode(p, name, layout, &tree, 32, 8*len(frame)); err != nil {
				t.Fatal(err)
			}
		}
		run()
		if n := testing.AllocsPerRun(20, run); n != 0 {
			t.Errorf("%s: %v allocations", v.Name, n)
		}
	}
}

func BenchmarkDecodeProtocolBuffers(b *testing.B) {
	p := mmo(b)
	for _, v := range mmoVectors(b) {
		if v.Name != "move_req" && v.Name != "inventory_snapshot" && v.Name != "udp_hello_res_schemaless" {
			continue
		}
		b.Run(v.Name, func(b *testing.B) {
			frame := unhex(b, v.Hex)
			name, layout := packetOf(p, v.ID)
			tree, d := &Tree{}, &Decoder{Short: wire.Malformed}
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			for b.Loop() {
				tree.Reset(frame)
				if err := d.Decode(p, name, layout, tree, 32, 8*len(frame)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
