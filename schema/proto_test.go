package schema

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"opscope/schema/wire"
)

// extendMmo reads files as --proto does: over the built-in protocols, of which the mmo
// is that of documents without a name.
func extendMmo(files map[string]string) ([]*Protocol, error) {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return Extend(fsys, ".", builtinNamed)
}

func builtinNamed(name string) (*Protocol, error) {
	switch {
	case name == "":
		name = "mmo"
	case !slices.Contains(BuiltinNames(), name):
		return nil, nil
	}
	return Builtin(name)
}

// extendOne is extendMmo for files that give one protocol.
func extendOne(t testing.TB, files map[string]string) *Protocol {
	t.Helper()
	all, err := extendMmo(files)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 {
		t.Fatalf("got %d protocols, want 1", len(all))
	}
	return all[0]
}

// decodeHex decodes a body as a packet, which must go without an error.
func decodeHex(t testing.TB, p *Protocol, packet, body string) (*Tree, *Decoder) {
	t.Helper()
	k := p.PacketNamed(packet)
	if k == nil {
		t.Fatalf("no packet %s", packet)
	}
	tree, d := &Tree{}, &Decoder{}
	tree.Reset(unhex(t, body))
	if err := d.Decode(p, k.Name, k.Of(AnySender)[0], tree, 0, 8*len(tree.Data)); err != nil {
		t.Fatal(err)
	}
	return tree, d
}

// told writes what a tree says, as JSON with sorted names.
func told(t testing.TB, tree *Tree) string {
	t.Helper()
	text, err := json.Marshal(plainMembers(tree, 0, len(tree.Nodes)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A game that nobody made, given by files alone: ids in three bytes' company, a package,
// imports, proto2 beside proto3.
func TestAnotherGameNeedsFilesAlone(t *testing.T) {
	all, err := Extend(os.DirFS("../testdata/proto/ashfall"), ".", builtinNamed)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 || all[0].Name != "ashfall" {
		t.Fatalf("got %d protocols, the first %s", len(all), all[0].Name)
	}
	p := all[0]
	var vectors []*mmoVector
	readJSON(t, "../testdata/proto/ashfall/vectors.json", &vectors)
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			data := unhex(t, v.Hex)
			f := p.Framing(v.Transport)
			frame, fault := f.Find(append(slices.Clone(data), 0xff), p.Name)
			if fault != nil || frame.Opcode != v.ID || frame.Size != v.Size || frame.Size != len(data) {
				t.Fatalf("got %+v (%v), want 0x%04X of %d", frame, fault, v.ID, v.Size)
			}
			k := p.Packet(v.ID, v.sender(), map[string]Transport{"tcp": TCP, "udp": UDP}[v.Transport])
			if k == nil || k.Name != *v.Packet {
				t.Fatalf("got %v, want %s", k, *v.Packet)
			}
			tree, d := &Tree{}, &Decoder{}
			tree.Reset(data)
			if err := d.Decode(p, k.Name, k.Of(v.sender())[0], tree, 8*frame.Head, 8*len(data)); err != nil || len(d.Remarks) > 0 {
				t.Fatalf("got %v, remarks %v", err, d.Remarks)
			}
			v.checkFields(t, tree)
			for _, path := range v.Redact {
				names := strings.Split(path, ".")
				i := tree.Field(names[0])
				for _, name := range names[1:] {
					i = tree.Member(i, name)
				}
				if i < 0 || tree.Nodes[i].Field.Redact != Secret {
					t.Errorf("%s is not redacted", path)
				}
			}
			body, wrong := (&Encoder{Head: frame.Head}).Append(nil, p, k.Name, k.Of(v.sender())[0], tree)
			again := f.Envelope.Append(nil, v.ID, 0, body, f.Counts)
			if v.Name == "checksum" {
				again[2] = 0xa5 // the flags, which no value stands for
			}
			if wrong != nil || !bytes.Equal(again, data) {
				t.Errorf("encoded to %x (%v), want %x", again, wrong, data)
			}
		})
	}
}

func TestTheJSONSchemaAcceptsAnIDMap(t *testing.T) {
	s := jsonSchema(t)
	files, err := filepath.Glob("../testdata/proto/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range documents(t, data) {
			if err := s.Validate(doc); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestLengthsCountWhatTheFramingSays(t *testing.T) {
	for _, c := range []struct {
		envelope, counts string
		frame            string // with the body aa bb
	}{
		{"[{length: u16}, {opcode: u16}, {body: body}]", "frame", "0006 0102 aabb"},
		{"[{length: u16}, {opcode: u16}, {body: body}]", "body", "0002 0102 aabb"},
		{"[{length: u16}, {opcode: u16}, {body: body}]", "rest", "0004 0102 aabb"},
		{"[{opcode: u16}, {length: u32le}, {body: body}]", "rest", "0102 02000000 aabb"},
		{"[{flags: u8}, {length: u24}, {opcode: u16le}, {body: body}]", "rest", "00 000004 0201 aabb"},
		{"[{opcode: u8}, {length: u8}, {body: body}]", "frame", "02 04 aabb"},
	} {
		p := extendOne(t, map[string]string{"ids.yaml": "protocol: other\norder: be\nenvelopes:\n  e: " + c.envelope +
			"\nframings:\n  tcp: {kind: size_prefixed, envelope: e, counts: " + c.counts + "}\n"})
		f, want := p.Framing("tcp"), unhex(t, c.frame)
		id := uint64(0x0102)
		if len(want) == 4 {
			id = 2
		}
		if got := f.Envelope.Append(nil, id, 0, []byte{0xaa, 0xbb}, f.Counts); !bytes.Equal(got, want) {
			t.Errorf("%s, %s: appended %x, want %x", c.envelope, c.counts, got, want)
		}
		got, err := f.Find(append(slices.Clone(want), 1, 2, 3), "other")
		if err != nil || got.Size != len(want) || got.Opcode != id || got.Head != len(want)-2 {
			t.Errorf("%s, %s: found %+v (%v)", c.envelope, c.counts, got, err)
		}
		for n := range len(want) {
			if _, err := f.Find(want[:n], "other"); err == nil || err.Kind != wire.Incomplete {
				t.Errorf("%s, %s: %d bytes give %v", c.envelope, c.counts, n, err)
			}
		}
	}
}

func TestProtoDirectories(t *testing.T) {
	const chat = `syntax = "proto3"; package game; message C_ChatReq { string text = 1; uint32 channel = 2; }`
	t.Run("a message for an id", func(t *testing.T) {
		p := extendOne(t, map[string]string{
			"chat.proto": chat,
			"ids.yaml":   "packets:\n  ChatReq: {opcode: 0x0221, from: client, via: [tcp], proto: C_ChatReq}\n",
		})
		if len(p.Packets) != 40 {
			t.Errorf("got %d packets, want 40", len(p.Packets))
		}
		tree, _ := decodeHex(t, p, "ChatReq", "0a026869 1003")
		if got := told(t, tree); got != `{"channel":3,"text":"hi"}` {
			t.Errorf("got %s", got)
		}
		// The built-in packet redacts the whole body, and the new one does not say.
		if f := p.PacketNamed("ChatReq").Of(Client)[0].FieldAt("text"); f == nil || f.Redact != Personal {
			t.Errorf("got %+v", f)
		}
		// The others are as they were.
		tree, _ = decodeHex(t, p, "AttackReq", "0807")
		if n, ok := tree.Value("attack_sequence"); !ok || n != 7 {
			t.Errorf("got %d", n)
		}
	})
	t.Run("a new id", func(t *testing.T) {
		p := extendOne(t, map[string]string{
			"chat.proto": chat,
			"ids.yaml":   "packets:\n  Whisper: {opcode: 0x0223, proto: game.C_ChatReq}\n",
		})
		if k := p.Packet(0x0223, Server, TCP); len(p.Packets) != 41 || k == nil || k.Name != "Whisper" {
			t.Errorf("got %d packets, %v", len(p.Packets), k)
		}
	})
	t.Run("messages alone", func(t *testing.T) {
		// The packet page names the message of UdpHelloReq, and does not tell what is in it.
		p := extendOne(t, map[string]string{"hello.proto": `syntax = "proto3"; message C_UdpHelloReq { string token = 3; fixed32 nonce = 4; }`})
		tree, _ := decodeHex(t, p, "UdpHelloReq", "1a0161 2501000000")
		if got := told(t, tree); got != `{"nonce":1,"token":"a"}` {
			t.Errorf("got %s", got)
		}
		if f := tree.Nodes[tree.Field("token")].Field; f.Redact != Secret {
			t.Error("the token is not redacted")
		}
	})
	t.Run("a message in the place of a built-in one", func(t *testing.T) {
		// Its token has another name: what was redacted there is not to be seen here.
		p := extendOne(t, map[string]string{"enter.proto": `syntax = "proto3"; message C_EnterGameReq { string jwt = 1; uint64 who = 2; }`})
		tree, _ := decodeHex(t, p, "EnterGameReq", "0a0161 1002")
		if got := told(t, tree); got != `{"jwt":"a","who":"2"}` {
			t.Errorf("got %s", got)
		}
		if f := tree.Nodes[tree.Field("jwt")].Field; f.Redact != Secret || !p.PacketNamed("EnterGameReq").Secret() {
			t.Error("the token is not redacted")
		}
	})
	t.Run("a packet that says itself what it hides", func(t *testing.T) {
		p := extendOne(t, map[string]string{
			"chat.proto": chat,
			"ids.yaml":   "packets:\n  ChatReq: {opcode: 0x0221, from: client, proto: C_ChatReq, redact: {}}\n",
		})
		if f := p.PacketNamed("ChatReq").Of(Client)[0].FieldAt("text"); f.Redact != Open {
			t.Errorf("got %v", f.Redact)
		}
	})
	t.Run("two protocols in one directory", func(t *testing.T) {
		all, err := extendMmo(map[string]string{
			"chat.proto": chat,
			"ids.yaml":   "protocol: mmo\npackets:\n  Whisper: {opcode: 0x0223, proto: C_ChatReq}\n---\nprotocol: other\npackets:\n  Chat: {opcode: 1, proto: C_ChatReq}\n",
		})
		if err != nil || len(all) != 2 || all[0].Name != "mmo" || all[1].Name != "other" {
			t.Fatal(all, err)
		}
		tree, _ := decodeHex(t, all[1], "Chat", "0a026869")
		if got := told(t, tree); got != `{"channel":0,"text":"hi"}` {
			t.Errorf("got %s", got)
		}
	})
	t.Run("one directory over another", func(t *testing.T) {
		files := func(message string) fstest.MapFS {
			return fstest.MapFS{
				"chat.proto": {Data: []byte(`syntax = "proto3"; message ` + message + ` { string text = 1; }`)},
				"ids.yaml":   {Data: []byte("packets:\n  ChatReq: {opcode: 0x0221, from: client, proto: " + message + "}\n")},
			}
		}
		first, err := mmo(t).Overlay(files("First"), ".")
		if err != nil {
			t.Fatal(err)
		}
		second, err := first.Overlay(files("Second"), ".")
		if err != nil || len(second.Packets) != 40 || second.PacketNamed("ChatReq").Proto != "Second" {
			t.Fatal(second, err)
		}
		if f := second.PacketNamed("ChatReq").Of(Client)[0].FieldAt("text"); f.Redact != Personal {
			t.Errorf("got %v", f.Redact)
		}
	})
	t.Run("the built-in protocol stays", func(t *testing.T) {
		if !mmo(t).PacketNamed("ChatReq").Of(Client)[0].Guessed() {
			t.Error("it has changed")
		}
	})
	t.Run("in the other order", func(t *testing.T) {
		p, err := extendOne(t, map[string]string{
			"chat.proto": chat, "ids.yaml": "packets:\n  Whisper: {opcode: 0x0223, proto: C_ChatReq}\n",
		}).WithOrder(wire.Big)
		if err != nil || p.PacketNamed("Whisper") == nil || p.PacketNamed("Whisper").Of(Client)[0].FieldAt("text") == nil {
			t.Fatal(p, err)
		}
		if f, fault := p.Framing("tcp").Find([]byte{0, 4, 2, 0x23}, "mmo"); fault != nil || f.Opcode != 0x0223 {
			t.Errorf("got %+v, %v", f, fault)
		}
	})
}

func TestProtoDirectoriesAreRefusedWithAPlace(t *testing.T) {
	const a = `syntax = "proto3"; message A { uint32 n = 1; B b = 2; } message B { string text = 1; }`
	ids := func(packet string) map[string]string {
		return map[string]string{"a.proto": a, "ids.yaml": "protocol: other\npackets:\n  P: " + packet + "\n"}
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"an unknown message", ids("{opcode: 1, proto: Aa}"), `schema ids.yaml:3:25: unknown message "Aa" (did you mean A?)`},
		{"an unknown field to redact", ids("{opcode: 1, proto: A, redact: {m: secret}}"), `schema ids.yaml:3:37: A has no field "m"`},
		{"an unknown field below", ids("{opcode: 1, proto: A, redact: {b.txt: secret}}"), `schema ids.yaml:3:39: B has no field "txt" (did you mean text?)`},
		{"below what is no message", ids("{opcode: 1, proto: A, redact: {n.x: secret}}"), `schema ids.yaml:3:37: n is no message, and has no "x"`},
		{"an unknown redaction", ids("{opcode: 1, proto: A, redact: hidden}"), `schema ids.yaml:3:36: unknown redaction "hidden"`},
		{"an unknown key", ids("{opcode: 1, message: A}"), `schema ids.yaml:3:18: unknown key "message"`},
		{"a size", ids("{opcode: 1, proto: A, size: 4}"), "schema ids.yaml:3:34: P has a size"},
		{"a field to redact in an unknown body", map[string]string{"ids.yaml": "packets:\n  P: {opcode: 0x300, redact: {a: secret}}\n"},
			"schema ids.yaml:2:31: P has no field \"a\": its body is unknown"},
		{"an unknown kind of bodies", map[string]string{"ids.yaml": "protocol: other\nbodies: json\n"}, `schema ids.yaml:2:9: unknown kind of bodies "json"`},
		{"an id twice", map[string]string{"a.proto": a, "ids.yaml": "packets:\n  P: {opcode: 0x300, proto: A}\n  Q: {opcode: 0x300, proto: B}\n"},
			"schema ids.yaml:3:15: opcode 0x300 twice: P and Q (first at line 2 of ids.yaml)"},
		{"an unknown count", map[string]string{"ids.yaml": "protocol: other\nenvelopes:\n  e: [{length: u16}, {opcode: u16}, {body: body}]\nframings:\n  tcp: {kind: size_prefixed, envelope: e, counts: all}\n"},
			`schema ids.yaml:5:51: unknown count "all"`},
		{"a fault in a .proto file", map[string]string{"a.proto": "syntax = \"proto3\";\nmessage A {\n  uint32 n 1;\n}\n"},
			"schema a.proto:3:12: syntax error"},
		{"an unknown type", map[string]string{"a.proto": "syntax = \"proto3\";\nmessage A {\n  C c = 1;\n}\n"},
			"schema a.proto:3:3: field A.c: unknown type C"},
		{"an import that is not there", map[string]string{"a.proto": "syntax = \"proto3\";\nimport \"b.proto\";\n"},
			"schema a.proto:2:8: no file b.proto"},
		{"a fault in an import", map[string]string{"a.proto": "syntax = \"proto3\";\nimport \"x/b.proto\";\n", "x/b.proto": "syntax = \"proto3\";\nmessage {}\n"},
			"schema x/b.proto:2:9: syntax error"},
		{"files that import each other", map[string]string{
			"a.proto": "syntax = \"proto3\";\nimport \"b.proto\";\n", "b.proto": "syntax = \"proto3\";\nimport \"a.proto\";\n",
		}, "schema b.proto:2:8: a.proto imports itself"},
		{"one name for two messages", map[string]string{
			"a.proto": `syntax = "proto3"; package a; message M {}`, "b.proto": `syntax = "proto3"; package b; message M {}`,
			"ids.yaml": "packets:\n  P: {opcode: 0x300, proto: M}\n",
		}, `schema ids.yaml:2:29: "M" is the name of several messages: a.M and b.M`},
	} {
		all, err := extendMmo(c.files)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || !IsSchemaError(err) {
			t.Errorf("%s: got %v, %v\nwant %s", c.name, all, err, c.want)
		}
	}
	if _, err := extendMmo(nil); err == nil {
		t.Error("an empty directory is accepted")
	}
}

// features is a message of everything that the language has.
const features = `
syntax = "proto2";
import "google/protobuf/timestamp.proto";
message M {
  enum E { ZERO = 0; ONE = 1; NEGATIVE = -2; }
  optional int32 i32 = 1;
  optional int64 i64 = 2;
  optional uint32 u32 = 3;
  optional uint64 u64 = 4;
  optional sint32 s32 = 5;
  optional sint64 s64 = 6;
  optional bool yes = 7;
  optional E e = 8;
  optional fixed32 f32 = 9;
  optional sfixed64 f64 = 10;
  optional float fl = 11;
  optional double db = 12;
  optional string text = 13;
  optional bytes raw = 14;
  optional M sub = 15;
  repeated uint32 list = 16;
  repeated fixed32 packed = 17 [packed = true];
  repeated M subs = 18;
  map<uint32, string> names = 19;
  oneof choice { uint32 a = 20; M b = 21; string c = 22; }
  optional group G = 23 { optional uint32 n = 1; }
  optional google.protobuf.Timestamp at = 24;
  repeated E es = 25;
  extensions 100 to max;
}
extend M { optional uint32 extra = 100; repeated string tags = 536870911; }
`

func featuresProtocol(t testing.TB) *Protocol {
	return extendOne(t, map[string]string{
		"f.proto": features, "ids.yaml": "protocol: other\nbodies: protobuf\npackets:\n  M: {opcode: 1, proto: M, redact: {sub.sub.text: secret, subs: personal}}\n",
	})
}

// present returns what of a tree is on the wire: absent fields would hide the rest.
func present(t testing.TB, tree *Tree) string {
	t.Helper()
	kept := &Tree{Data: tree.Data, Nodes: withoutAbsent(tree.Nodes)}
	return told(t, kept)
}

func withoutAbsent(nodes []Node) (kept []Node) {
	for _, v := range split(nodes) {
		if v[0].Field.Mark == Absent {
			continue
		}
		head := v[0]
		below := withoutAbsent(v[1:])
		head.Size = int32(len(below))
		kept = append(append(kept, head), below...)
	}
	return kept
}

func TestProtocolBuffersOnTheWire(t *testing.T) {
	p := featuresProtocol(t)
	for _, c := range []struct {
		name, body, want string
		remarks          []string
	}{
		{"numbers", "08ffffffffffffffffff01 10ffffffffffffffffff01 18ffffffff0f 20ffffffffffffffffff01",
			`{"i32":-1,"i64":"-1","u32":4294967295,"u64":"18446744073709551615"}`, nil},
		{"zigzag", "2803 3001", `{"s32":-2,"s64":"-1"}`, nil},
		{"a bool and enums", "3801 4001", `{"e":"ONE","yes":true}`, nil},
		{"an enum without a name stays a number", "4005", `{"e":5}`, nil},
		{"an enum below zero", "40feffffffffffffffff01", `{"e":"NEGATIVE"}`, nil},
		{"fixed numbers", "4d01000000 51ffffffffffffffff 5d0000c03f 61000000000000f8bf",
			`{"db":-1.5,"f32":1,"f64":"-1","fl":1.5}`, nil},
		{"no number and infinities", "5d0000c07f 61000000000000f0ff", `{"db":"-Inf","fl":"NaN"}`, nil},
		{"text and bytes", "6a03610062 720200ff", `{"raw":"00ff","text":"a\u0000b"}`, nil},
		{"text that is no UTF-8", "6a0361ff62", `{"text":"a\\xffb"}`, []string{"invalid_utf8"}},
		{"text that ends in a letter", "6a0261c3", `{"text":"a\\xc3"}`, []string{"invalid_utf8"}},
		{"numbers longer than need be", "08818000 888000 05", `{"i32":5}`, []string{"field_repeated"}},
		{"a number wider than its type", "188180808010", `{"u32":1}`, []string{"value_cut"}},
		{"a bool beyond 1", "3802", `{"yes":true}`, nil},
		{"elements one by one", "800101 800102", `{"list":[1,2]}`, nil},
		{"elements packed, though declared otherwise", "820103 0102 03", `{"list":[1,2,3]}`, nil},
		{"elements one by one, though declared packed", "8d0101000000 8d0102000000", `{"packed":[1,2]}`, nil},
		{"elements packed", "8a010801000000 02000000", `{"packed":[1,2]}`, nil},
		{"elements both ways, and others between", "800101 0805 82010102 1006 800103", `{"i32":5,"i64":"6","list":[1,2,3]}`, nil},
		{"an empty packed field", "8a0100", `{"packed":[]}`, nil},
		{"a map", "9a0106 0807 12026869 9a0102 0808", `{"names":[{"key":7,"value":"hi"},{"key":8}]}`, nil},
		{"a oneof, the last counts", "a00101 b201026f6b", `{"c":"ok"}`, []string{"field_repeated"}},
		{"a oneof back and forth", "a00101 aa01020805 a00102", `{"a":2}`, []string{"field_repeated", "field_repeated"}},
		{"a message of a oneof in two parts", "aa01020805 aa01021006", `{"b":{"i32":5,"i64":"6"}}`, []string{"field_repeated"}},
		{"a group", "bb01 0805 bc01", `{"g":{"n":5}}`, nil},
		{"a scalar twice, the last counts", "0801 0802 0803", `{"i32":3}`, []string{"field_repeated", "field_repeated"}},
		{"a message twice is merged", "7a04 0801 1001 7a04 0802 8001 01", `{"i64":"1","sub":{"i32":2,"list":[1]}}`, nil},
		{"a well-known type", "c20104 0805 1006", `{"at":{"nanos":6,"seconds":"5"}}`, nil},
		{"extensions", "a00605 faffffff0f026869", `{"[extra]":5,"[tags]":["hi"]}`, nil},
		{"unknown fields stay", "f80105 8202 020801", `{"31":{"value":"5","wire":"varint"},"32":{"value":"0801","wire":"len"}}`, nil},
		{"a known field with another wire type", "0a0161 0d01000000", `{"1":{"value":"01000000","wire":"i32"}}`, []string{"wire_type_mismatch", "wire_type_mismatch"}},
		{"a message with the wire type of a number", "7805", `{"15":{"value":"5","wire":"varint"}}`, []string{"wire_type_mismatch"}},
		{"a group for a message", "7b0801 7c", `{"15":{"value":"0801","wire":"group"}}`, []string{"wire_type_mismatch"}},
	} {
		if c.name == "a message twice is merged" { // written out: the parts are of the lengths that they say
			c.body, c.want, c.remarks = "7a0408011001 7a0508028001 01", `{"sub":{"i32":2,"i64":"1","list":[1]}}`, []string{"field_repeated", "field_repeated"}
		}
		tree, d := decodeHex(t, p, "M", c.body)
		if got := present(t, tree); got != c.want {
			t.Errorf("%s: got  %s\n\twant %s", c.name, got, c.want)
		}
		var codes []string
		for _, r := range d.Remarks {
			codes = append(codes, r.Code)
		}
		if !slices.Equal(codes, c.remarks) {
			t.Errorf("%s: got the remarks %v, want %v", c.name, d.Remarks, c.remarks)
		}
	}
}

// Values that do not count stay where they were on the wire.
func TestSupersededValuesStay(t *testing.T) {
	tree, _ := decodeHex(t, featuresProtocol(t), "M", "0801 1005 0802")
	var got []string
	for _, n := range withoutAbsent(tree.Nodes) {
		got = append(got, fmt.Sprintf("%s=%d@%d mark %d", n.Field.Name, n.Num, n.Off/8, n.Field.Mark))
	}
	want := []string{"i32=1@0 mark 2", "i64=5@2 mark 0", "i32=2@4 mark 0"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if v, _ := tree.Value("i32"); v != 2 {
		t.Errorf("the value is %d", v)
	}
}

func TestProtocolBuffersThatBreakOff(t *testing.T) {
	p := featuresProtocol(t)
	k := p.PacketNamed("M")
	for _, c := range []struct {
		name, body, want, err, code string
		end                         int // byte
	}{
		{"a tag", "0801 88", `{"i32":1}`, "other/M at byte 3 of 3: want 1 byte, 0 bytes left (malformed)", "protobuf_truncated", 2},
		{"a number", "0801 1080", `{"i32":1}`, "other/M.i64 at byte 4 of 4: want 1 byte, 0 bytes left (malformed)", "protobuf_truncated", 2},
		{"a fixed number", "0801 5d0000", `{"i32":1}`, "other/M.fl at byte 3 of 5: want 4 bytes, 2 bytes left (malformed)", "protobuf_truncated", 2},
		{"a text", "0801 6a0561", `{"i32":1}`, "other/M.text at byte 4 of 5: want 5 bytes, 1 byte left (malformed)", "protobuf_truncated", 2},
		{"a huge length", "6affffffffffffffffff01", `{}`, "other/M.text at byte 11 of 11: want 2147483647 bytes, 0 bytes left (malformed)", "protobuf_truncated", 0},
		{"a message in a message", "7a0a 0805 1080", `{"sub":{"i32":5}}`, "other/M.sub.i64 at byte 6 of 6: want 1 byte, 0 bytes left (malformed)", "protobuf_truncated", 4},
		{"a message between its fields", "7a0a 0805", `{"sub":{"i32":5}}`, "other/M.sub at byte 2 of 4: want 10 bytes, 2 bytes left (malformed)", "protobuf_truncated", 4},
		{"an element", "9201020805 92010a0806", `{"subs":[{"i32":5},{"i32":6}]}`, "other/M.subs[1] at byte 8 of 10: want 10 bytes, 2 bytes left (malformed)", "protobuf_truncated", 10},
		{"a packed element", "8a010801000000 0200", `{"packed":[1]}`, "other/M.packed[1] at byte 7 of 9: want 4 bytes, 2 bytes left (malformed)", "protobuf_truncated", 7},
		{"a group without an end", "bb01 0805", `{"g":{"n":5}}`, "other/M.g at byte 4 of 4: want the end of group 23, 0 bytes left (malformed)", "protobuf_truncated", 4},
		{"an unknown field", "f20105 0801", `{}`, "other/M.30 at byte 3 of 5: want 5 bytes, 2 bytes left (malformed)", "protobuf_truncated", 0},
		{"a number of more than ten bytes", "0801 10ffffffffffffffffffff01", `{"i32":1}`, "other/M.i64 at byte 3 of 14: want a varint of at most 64 bits, got more (malformed)", "protobuf_malformed", 2},
		{"field number 0", "0801 0001", `{"i32":1}`, "other/M at byte 2 of 4: want a field number from 1 to 536870911, got 0 (malformed)", "protobuf_malformed", 2},
		{"a field number too large", "8080808010 01", `{}`, "other/M at byte 0 of 6: want a field number from 1 to 536870911, got 536870912 (malformed)", "protobuf_malformed", 0},
		{"wire type 6", "0801 0e", `{"i32":1}`, "other/M at byte 2 of 3: want a wire type from 0 to 5, got 6 (malformed)", "protobuf_malformed", 2},
		{"the end of no group", "0801 0c", `{"i32":1}`, "other/M at byte 2 of 3: want a field, or the end of its own group, got the end of group 1 (malformed)", "protobuf_malformed", 2},
		{"the end of another group", "bb01 0805 0c", `{"g":{"n":5}}`, "other/M.g at byte 4 of 5: want a field, or the end of its own group, got the end of group 1 (malformed)", "protobuf_malformed", 4},
	} {
		tree, d := &Tree{}, &Decoder{}
		tree.Reset(unhex(t, c.body))
		err := d.Decode(p, "M", k.Of(Client)[0], tree, 0, 8*len(tree.Data))
		if got := present(t, tree); err == nil || err.Error() != c.err || got != c.want || d.End != 8*c.end {
			t.Errorf("%s: got  %s, the end at %d, %v\n\twant %s, %d, %s", c.name, got, d.End/8, err, c.want, c.end, c.err)
		}
		if len(d.Remarks) != 1 || d.Remarks[0].Code != c.code {
			t.Errorf("%s: got the remarks %v, want %s", c.name, d.Remarks, c.code)
		}
		d.Short = wire.Truncated
		tree.Reset(tree.Data)
		err = d.Decode(p, "M", k.Of(Client)[0], tree, 0, 8*len(tree.Data))
		cut := c.code == "protobuf_truncated"
		if kind := map[bool]wire.Kind{true: wire.Truncated}[cut]; err == nil || err.Kind != kind || cut && len(d.Remarks) > 0 {
			t.Errorf("%s, cut by the capture: got %v, %v", c.name, err, d.Remarks)
		}
	}
}

func TestRedactionReachesByPath(t *testing.T) {
	tree, _ := decodeHex(t, featuresProtocol(t), "M", "7a0a 6a0161 7a05 6a0162 0801"+"6a0163"+"9201 03 6a0164")
	var got []string
	for _, n := range withoutAbsent(tree.Nodes) {
		got = append(got, fmt.Sprintf("%s %d", n.Field.Name, n.Field.Redact))
	}
	want := []string{"sub 0", "text 0", "sub 0", "text 1", "i32 0", "text 0", "subs 2", " 2", "text 2"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// What is read without a schema, section 7 of the facts.
func TestBodiesWithoutASchema(t *testing.T) {
	p := mmo(t)
	for _, c := range []struct {
		name, body, want string
		kinds            []ValueKind // of all nodes
	}{
		{"in the order of the wire, with repeats", "1001 0802 1003", `2 1 2`, []ValueKind{Uint, Uint, Uint}},
		{"text before a message", "0a024831", "1", []ValueKind{Text}},
		{"a message", "0a020801", "1(1)", []ValueKind{Struct, Uint}},
		{"a message that begins as a line does", "0a060a0461626364", "1(1)", []ValueKind{Struct, Text}},
		{"text in lines", "0a03610a62", "1", []ValueKind{Text}},
		{"bytes", "0a0200ff", "1", []ValueKind{Bytes}},
		{"a group", "0b0805 0c", "1(1)", []ValueKind{Struct, Uint}},
		{"nothing behind a length", "0a00", "1", []ValueKind{Text}},
		{"fixed numbers", "0d0000c03f 0900000000000000f8", "1 1", []ValueKind{Uint, Uint}},
		{"a message in messages", "0a040a020801", "1(1(1))", []ValueKind{Struct, Struct, Uint}},
	} {
		tree, d := decodeHex(t, p, "SpawnMonster", c.body)
		var kinds []ValueKind
		for _, n := range tree.Nodes {
			kinds = append(kinds, n.Kind)
		}
		if got := outline(tree.Nodes); got != c.want || !slices.Equal(kinds, c.kinds) || len(d.Remarks) > 0 {
			t.Errorf("%s: got %s of kinds %v, remarks %v\n\twant %s of %v", c.name, got, kinds, d.Remarks, c.want, c.kinds)
		}
		for _, n := range tree.Nodes {
			if n.Field.Confidence != Guess || n.Field.Mark != Unmatched {
				t.Errorf("%s: %s is no guess", c.name, n.Field.Name)
			}
		}
	}
	if l := p.PacketNamed("SpawnMonster").Of(Server)[0]; !l.Guessed() || l.Confidence != Guess || !p.Unknown.Guessed() {
		t.Error("the layout is not called a guess")
	}
}

// outline writes the names of nodes, with those below in brackets.
func outline(nodes []Node) string {
	var words []string
	for _, v := range split(nodes) {
		word := v[0].Field.Name
		if len(v) > 1 {
			word += "(" + outline(v[1:]) + ")"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// What cannot be a message from its first field on is left as bytes, with a word about
// it; else the fields in front are kept.
func TestBodiesThatAreNoMessages(t *testing.T) {
	p := mmo(t)
	l := p.PacketNamed("Ping").Of(Server)[0]
	for _, c := range []struct {
		name, body, want, code string
		end                    int
		failed                 bool
	}{
		{"a struct of the heartbeat", "7bdc207497010000", "", "protobuf_malformed", 0, false},
		{"field number 0", "0001", "", "protobuf_malformed", 0, false},
		{"field number 0 behind a field", "0801 0001", "1", "protobuf_malformed", 2, true},
		{"a group that ends as another", "0801 130801 1c", "1 2(1)", "protobuf_malformed", 5, true},
		{"a text that breaks off", "0801 1205 6161", "1", "protobuf_truncated", 2, true},
	} {
		tree, d := &Tree{}, &Decoder{}
		tree.Reset(unhex(t, c.body))
		err := d.Decode(p, "Ping", l, tree, 0, 8*len(tree.Data))
		if got := outline(tree.Nodes); got != c.want || d.End != 8*c.end || (err != nil) != c.failed || len(d.Remarks) != 1 || d.Remarks[0].Code != c.code {
			t.Errorf("%s: got %q, the end at %d, %v, %v", c.name, got, d.End/8, err, d.Remarks)
		}
	}
}

func TestReadings(t *testing.T) {
	p := mmo(t)
	for _, c := range []struct{ body, want string }{
		{"0801", "uint 1, zigzag -1, bool 1"},
		{"082a", "uint 42, zigzag 21"},
		{"08fbb883a1f732", "uint 1750000000123, zigzag -875000000062, time 1750000000123"},
		{"08ffffffffffffffffff01", "uint 18446744073709551615, int -1, zigzag -9223372036854775808"},
		{"0d000080bf", "float -1, u32 3212836864, s32 -1082130432"},
		{"09 7bdc207497010000", "double 8.64614880283e-312, u64 1750000000123, s64 1750000000123, time 1750000000123"},
		{"0a024831", "text, message, packed, bytes"},
		{"0a020801", "message, packed, bytes"},
		{"0a0200ff", "bytes"},
		{"0a00", "text, bytes"},
		{"0b0c", "group"},
	} {
		tree, _ := decodeHex(t, p, "SpawnMonster", c.body)
		var words []string
		for _, r := range tree.AppendReadings(nil, 0) {
			n := Node{Kind: r.Kind, Num: r.Num}
			switch r.Kind {
			case Float:
				words = append(words, fmt.Sprintf("%s %.12g", r.Name, n.Float()))
			case Int:
				words = append(words, fmt.Sprintf("%s %d", r.Name, int64(r.Num)))
			case Uint, Bool:
				words = append(words, fmt.Sprintf("%s %d", r.Name, r.Num))
			default:
				words = append(words, r.Name)
			}
		}
		if got := strings.Join(words, ", "); got != c.want {
			t.Errorf("%s: got  %s\n\twant %s", c.body, got, c.want)
		}
	}
	if got, ok := AppendPacked(nil, []byte{1, 0x96, 1, 0}); !ok || !slices.Equal(got, []uint64{1, 150, 0}) {
		t.Errorf("got %v, %v", got, ok)
	}
}

// A body cannot make the decoder work or remember without bound.
func TestProtocolBuffersAreBounded(t *testing.T) {
	nested := func(tag string, depth int) []byte {
		body := []byte{}
		for range depth {
			b := append(unhex(t, tag), appendLength(len(body))...)
			body = append(b, body...)
		}
		return body
	}
	p, q := featuresProtocol(t), mmo(t)
	for _, c := range []struct {
		name string
		p    *Protocol
		k    string
		body []byte
		want string // in the error
	}{
		{"messages within messages", p, "M", nested("7a", 5000), "at most 100 messages within each other"},
		{"messages within what is no message", q, "SpawnMonster", nested("0a", 5000), ""},
		{"groups within groups", q, "SpawnMonster", bytes.Repeat([]byte{0x0b}, 16000), ""},
		{"messages of which each lacks its fields", p, "M", bytes.Repeat(unhex(t, "920100"), 100000), ""},
		{"a message in thousands of parts", p, "M", bytes.Repeat(unhex(t, "7a03800101"), 30000), ""},
		{"a scalar thousands of times", p, "M", bytes.Repeat(unhex(t, "0801"), 60000), ""},
		{"two lists by turns", p, "M", bytes.Repeat(unhex(t, "800101 8d0101000000"), 20000), ""},
		{"a list of more than there is room for", p, "M", bytes.Repeat(unhex(t, "800101"), DefaultBounds.Values+10), "at most 262144 values"},
		{"a oneof back and forth", p, "M", bytes.Repeat(unhex(t, "a00101 aa01020805"), 20000), ""},
		{"wrong texts", p, "M", bytes.Repeat(unhex(t, "6a01ff"), 20000), ""},
	} {
		tree, d := &Tree{}, &Decoder{}
		tree.Reset(c.body)
		k := c.p.PacketNamed(c.k)
		err := d.Decode(c.p, k.Name, k.Of(AnySender)[0], tree, 0, 8*len(c.body))
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v", c.name, err)
		}
		if len(tree.Nodes) > DefaultBounds.Values+maxAbsent+1 || len(d.Remarks) > 100 {
			t.Errorf("%s: %d nodes, %d remarks", c.name, len(tree.Nodes), len(d.Remarks))
		}
	}
}

func appendLength(n int) (b []byte) {
	w := wire.NewWriter(nil)
	w.Varint(uint64(n))
	return w.Bytes()
}

func TestEncodingProtocolBuffersOfValues(t *testing.T) {
	p := featuresProtocol(t)
	l := p.PacketNamed("M").Of(Client)[0]
	for _, c := range []struct {
		values Values
		want   string // hex
	}{
		{Values{}, ""},
		{Values{"i64": 2, "i32": -1}, "08ffffffffffffffffff01 1002"},
		{Values{"s32": -2, "s64": int64(-1), "yes": true, "e": "ONE"}, "2803 3001 3801 4001"},
		{Values{"e": "NEGATIVE"}, "40feffffffffffffffff01"},
		{Values{"fl": 1.5, "db": -1.5, "f32": uint32(1), "f64": -1}, "4d01000000 51ffffffffffffffff 5d0000c03f 61000000000000f8bf"},
		{Values{"i32": 0, "text": ""}, "0800 6a00"}, // proto2: what is given is there
		{Values{"text": []byte{0xff}, "raw": "hi"}, "6a01ff 72026869"},
		{Values{"list": []int{1, 2}, "packed": []uint32{1, 2}}, "800101 800102 8a01080100000002000000"},
		{Values{"sub": Values{"i32": 5}, "subs": []Values{{}, {"i32": 6}}}, "7a020805 920100 9201020806"},
		{Values{"names": []Values{{"key": 7, "value": "hi"}, {"key": 0, "value": ""}}}, "9a0106080712026869 9a010408001200"},
		{Values{"g": Values{"n": 5}, "[extra]": 5}, "bb010805bc01 a00605"},
		{Values{"es": []any{"ONE", 5}}, "c80101 c80105"},
		{Values{"i32": 1, "200": 5, "31": "hi", "30": Values{"1": 2}}, "0801 f2010208 02 fa01026869 c00c05"},
		{Values{"1": "no number", "2": float32(1.5), "3": 1.5, "4": []any{1, "a"}}, "0a096e6f206e756d626572 150000c03f 19000000000000f83f 2001 220161"},
	} {
		got, err := (&Encoder{}).Append(nil, p, "M", l, NewTree(c.values))
		if want := unhex(t, c.want); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v: got %x (%v), want %x", c.values, got, err, want)
		}
	}
	for _, c := range []struct {
		values Values
		want   string
	}{
		{Values{"i33": 1}, `encode M: want a field of M or the number of one, got "i33"`},
		{Values{"i32": 1 << 31}, "encode M.i32: want a number that fits int32, got 2147483648"},
		{Values{"u32": -1}, "encode M.u32: want a number that fits uint32, got -1"},
		{Values{"u64": -1}, "encode M.u64: want a number that fits uint64, got -1"},
		{Values{"i64": uint64(1 << 63)}, "encode M.i64: want a number that fits int64, got 9223372036854775808"},
		{Values{"yes": 2}, "encode M.yes: want a number that fits bool, got 2"},
		{Values{"e": "TWO"}, `encode M.e: want a number, or a name of the enum, got "TWO"`},
		{Values{"fl": 1e300}, "encode M.fl: want a number that fits float, got 1e+300"},
		{Values{"text": 1}, "encode M.text: want a text or bytes, got a number"},
		{Values{"sub": 1}, "encode M.sub: want a struct, got a number"},
		{Values{"subs": []any{Values{}, Values{"i32": "x"}}}, `encode M.subs[1].i32: want a number, or a name of the enum, got "x"`},
		{Values{"list": 1}, "encode M.list: want an array, got a number"},
		{Values{"0": 1}, `encode M: want a field of M or the number of one, got "0"`},
	} {
		if got, err := (&Encoder{}).Append(nil, p, "M", l, NewTree(c.values)); err == nil || err.Error() != c.want {
			t.Errorf("%v: got %x, %v\nwant %s", c.values, got, err, c.want)
		}
	}
}

func TestItemsOfAMessage(t *testing.T) {
	p := mmo(t)
	var got []string
	for _, it := range p.PacketNamed("InventoryOperationResult").Of(Server)[0].Items() {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%d %s %s %s %s", it.Depth, it.Field.Name, it.Field.Type, it.Width, it.Array)))
	}
	want := []string{
		"0 success bool field 1, varint", "0 message string field 2, len", "0 client_request_id bytes field 3, len",
		"0 snapshot S_InventorySnapshot field 4, len",
		"1 success bool field 1, varint", "1 message string field 2, len", "1 revision uint64 field 3, varint",
		"1 capacity uint32 field 4, varint", "1 items repeated InventoryItem field 5, len any number",
		"2 item_instance_id uint64 field 1, varint", "2 template_id uint32 field 2, varint", "2 quantity uint32 field 3, varint",
		"2 slot_index uint32 field 4, varint", "2 durability uint32 field 5, varint",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if f := p.PacketNamed("InventoryOperationResult").Of(Server)[0].FieldAt("snapshot", "items", "quantity"); f == nil || f.Number != 3 {
		t.Errorf("got %+v", f)
	}
	if f := p.PacketNamed("MoveReq").Of(Client)[0].FieldAt("yaw"); f == nil || f.Doc != "facing, degrees" {
		t.Errorf("got %+v", f)
	}
	// A message within itself is not written out for ever.
	if n := len(featuresProtocol(t).PacketNamed("M").Of(Client)[0].Items()); n < 30 || n > 1000 {
		t.Errorf("got %d lines", n)
	}
}

// FuzzProtocolBuffers decodes arbitrary bytes along a message and without one. What
// decodes is the same again after encoding; without a schema, it is the same bytes.
func FuzzProtocolBuffers(f *testing.F) {
	for _, v := range mmoVectors(f) {
		if b, err := hex.DecodeString(v.Hex); err == nil && len(b) > 4 {
			f.Add(b[4:])
		}
	}
	f.Add(unhex(f, "7a0408011001 7a0508028001 01 a00101 aa01020805 a00102 bb01 0805 bc01 9a010608071202 6869"))
	f.Add(unhex(f, "0a040a020801 0b0805 0c 0d0000c03f 0900000000000000f8"))
	p, q := featuresProtocol(f), mmo(f)
	m, _, err := p.protos.find("M", Pos{})
	if err != nil {
		f.Fatal(err)
	}
	compiled := compileDescriptor(f, m)
	known, guess := p.PacketNamed("M").Of(Client)[0], q.Unknown
	f.Fuzz(func(t *testing.T, body []byte) {
		compareWithRuntime(t, m, compiled, body)
		for _, l := range []*Layout{known, guess} {
			tree, d := &Tree{}, &Decoder{}
			tree.Reset(body)
			err := d.Decode(p, "M", l, tree, 0, 8*len(body))
			if d.End > 8*len(body) || err != nil && err.Offset > len(body) {
				t.Fatalf("the end at bit %d, %v", d.End, err)
			}
			if err != nil || l.Guessed() && len(d.Remarks) > 0 {
				continue
			}
			again, fault := (&Encoder{}).Append(nil, p, "M", l, tree)
			if fault != nil || l.Guessed() && !bytes.Equal(again, body) {
				t.Fatalf("encoded to %x (%v), want %x", again, fault, body)
			}
			var second Tree
			second.Reset(again)
			if err := d.Decode(p, "M", l, &second, 0, 8*len(again)); err != nil || told(t, &second) != told(t, tree) {
				t.Fatalf("decoded to %s (%v), and first to %s", told(t, &second), err, told(t, tree))
			}
			for i := range tree.Nodes {
				tree.AppendReadings(nil, i)
			}
		}
	})
}

// FuzzIDMap reads arbitrary files beside a .proto file. A fault has a place.
func FuzzIDMap(f *testing.F) {
	ids, err := os.ReadFile("../testdata/proto/ashfall/ids.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(ids), features)
	f.Add("packets:\n  P: {opcode: 0x300, proto: M, redact: {sub.text: secret}}\n", features)
	f.Add("protocol: other\nbodies: protobuf\npackets:\n  P: {opcode: 1, redact: secret}\n", `syntax = "proto3"; import "f.proto";`)
	f.Fuzz(func(t *testing.T, ids, text string) {
		all, err := extendMmo(map[string]string{"ids.yaml": ids, "f.proto": text})
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Pos.Line < 1 || e.Pos.Col < 1 || e.Pos.File == "" {
				t.Fatalf("no place: %v", err)
			}
			return
		}
		for _, p := range all {
			for _, k := range p.Packets {
				for _, l := range k.Of(Client) {
					l.Items()
				}
			}
		}
	})
}
