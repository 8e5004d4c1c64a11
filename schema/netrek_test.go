package schema

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"testing/fstest"

	"opscope/schema/wire"
)

// netrekVector is one entry of testdata/vectors/netrek/vectors.json: a packet that
// was seen on the wire, and the values that an independent decoder read in it. They
// are raw: no scale, numbers for masks.
type netrekVector struct {
	Name, Transport, Direction, Source, Hex, Message string
	Fields                                           map[string]any
}

func netrek(t testing.TB) *Protocol {
	t.Helper()
	p, err := Builtin("netrek")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func netrekVectors(t testing.TB) []*netrekVector {
	t.Helper()
	var all []*netrekVector
	readJSON(t, "../testdata/vectors/netrek/vectors.json", &all)
	return all
}

func (v *netrekVector) bytes(t testing.TB) []byte {
	t.Helper()
	b, err := hex.DecodeString(v.Hex)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (v *netrekVector) sender() Sender {
	return map[string]Sender{"c2s": Client, "s2c": Server}[v.Direction]
}

// text reports whether v is a text datagram, which has no type of the game.
func (v *netrekVector) text() bool {
	return v.Transport == "udp" && strings.Contains("?srb", string(v.first()))
}

func (v *netrekVector) first() byte {
	b, _ := hex.DecodeString(v.Hex[:2])
	return b[0]
}

// netrekState is what a session has learned before anything was said.
func netrekState(p *Protocol) *State {
	s := p.NewState()
	for i, t := range s.Tables {
		if stated := p.DefaultTable(t.Decl.Name, AnySender); stated != nil {
			s.Tables[i] = stated
		}
	}
	return s
}

func (v *netrekVector) decode(p *Protocol, tree *Tree, data []byte) (*Decoder, *wire.Error) {
	d := &Decoder{State: netrekState(p), Short: wire.Malformed}
	tree.Reset(data)
	return d, d.Decode(p, v.Message, p.PacketNamed(v.Message).Of(v.sender())[0], tree, 8, 8*len(data))
}

func TestNetrekVectors(t *testing.T) {
	p := netrek(t)
	for _, v := range netrekVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			data := v.bytes(t)
			if !v.text() {
				f, err := p.Framing(v.Transport).FindTyped(&Decoder{}, p, v.sender(), append(data, 0xff, 0xff))
				if err != nil || f.Size != len(data) {
					t.Fatalf("got a frame of %d bytes (%v), want %d\n%s", f.Size, err, len(data), hex.Dump(data))
				}
				via := TCP
				if v.Transport == UDP.String() {
					via = UDP
				}
				if k := p.Packet(f.Opcode, v.sender(), via); k == nil || k.Name != v.Message {
					t.Fatalf("got %v, want %s", k, v.Message)
				}
			}
			var tree Tree
			d, err := v.decode(p, &tree, data)
			if err != nil || d.End != 8*len(data) || len(d.Remarks) > 0 {
				t.Fatalf("got %v, remarks %v, the end at bit %d of %d\n%s", err, d.Remarks, d.End, 8*len(data), hex.Dump(data))
			}
			for _, line := range diff(v.Message, values(&tree, 0, len(tree.Nodes)), v.Fields, nil, 0, true) {
				t.Errorf("%s\n%s", line, hex.Dump(data))
			}
			again, fault := (&Encoder{State: d.State, Head: 1}).Append(data[:1:1], p, v.Message, p.PacketNamed(v.Message).Of(v.sender())[0], &tree)
			if fault != nil || !bytes.Equal(again, data) {
				t.Errorf("encoded again %x (%v), want %x", again, fault, data)
			}
		})
	}
}

// The vectors are those of the collection, with the names of the facts where the
// collection has others.
func TestNetrekVectorsAreTheSharedOnes(t *testing.T) {
	var all []struct{ Name, Hex, Type, Transport, Direction string }
	readJSON(t, shared(t, "vectors/netrek.json"), &all)
	own := netrekVectors(t)
	if len(own) != len(all) {
		t.Fatalf("got %d, want %d", len(own), len(all))
	}
	for i, v := range own {
		w := all[i]
		if v.Name != w.Name || v.Hex != w.Hex || v.Message != w.Type || v.Transport != w.Transport || v.Direction != w.Direction {
			t.Errorf("got %s, want %s", v.Name, w.Name)
		}
	}
}

// Text datagrams are built out of values, as a server does.
func TestNetrekTextOfValues(t *testing.T) {
	p := netrek(t)
	for _, c := range []struct {
		message string
		values  Values
		want    string // or of the error
	}{
		{"REPLY", Values{"type": "I", "comment": "A server", "entries": []Values{
			{"port": 4566, "players": 1, "queue": 0}, {"port": 4577, "players": 2, "queue": 3},
		}}, "s,I,A server,2,4566,1,0,4577,2,3\n"},
		{"META_REPLY", Values{"servers": []Values{{"host": "a.example", "port": 2592, "status": "open", "age": 1, "players": 2, "queue": 0, "type": "B"}}},
			"r,1\na.example,2592,2,1,2,0,B\n"},
		{"SOLICIT", Values{
			"address": "10.0.0.1", "type": "B", "port": 2592, "observer_port": 2593, "players": -1, "free": -2, "tmode": "y", "rsa": "n", "full": "n",
			"comment": "delist", "lines": 0, "player_list": []Values{},
		}, "b\n10.0.0.1\nB\n2592\n2593\n-1\n-2\ny\nn\nn\ndelist\n"},
		{"REPLY", Values{"type": "I", "comment": "one, two", "entries": []Values{}}, `encode REPLY.comment: want a text without byte 44, got "one, two"`},
		{"REPLY", Values{"type": "I", "comment": "x", "entries": []Values{{"port": "x"}}}, `encode REPLY.entries[0].port: want a number, or a name of the enum, got "x"`},
	} {
		k := p.PacketNamed(c.message)
		got, err := (&Encoder{Head: 1}).Append([]byte{byte(k.Opcode)}, p, k.Name, k.Of(k.From)[0], NewTree(c.values))
		if err != nil {
			got = []byte(err.Error())
		}
		if string(got) != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}

func TestNetrekTruncation(t *testing.T) {
	p := netrek(t)
	for _, v := range netrekVectors(t) {
		data := v.bytes(t)
		var whole Tree
		if _, err := v.decode(p, &whole, data); err != nil {
			t.Fatal(err)
		}
		for n := 1; n < len(data); n++ {
			if !v.text() {
				f, err := p.Framing("tcp").FindTyped(&Decoder{}, p, v.sender(), data[:n])
				if err == nil || err.Kind != wire.Incomplete || f.Size != 0 && f.Size != len(data) {
					t.Errorf("%s, %d bytes: got size %d, %v", v.Name, n, f.Size, err)
				}
			}
			var tree Tree
			d, err := v.decode(p, &tree, data[:n])
			switch {
			case err == nil && !v.text():
				t.Errorf("%s: got no error for %d of %d bytes", v.Name, n, len(data))
			case err != nil && !strings.HasPrefix(err.Path, v.Message+"."):
				t.Errorf("%s, %d bytes: got %v, which names no field", v.Name, n, err)
			case len(tree.Nodes) > len(whole.Nodes), d.End > 8*n:
				t.Errorf("%s, %d bytes: got %d values up to bit %d", v.Name, n, len(tree.Nodes), d.End)
			}
		}
	}
}

func TestNetrekSizes(t *testing.T) {
	p := netrek(t)
	for _, c := range []struct {
		name   string
		by     Sender
		hex    string
		size   int
		want   string // of the error
		others string
	}{
		{"CP_OGGV is the only one of 3 bytes", Client, "320102", 3, "", ""},
		{"type 29 of a server", Server, "1d000001", 4, "", ""},
		{"type 1 of an unknown sender", AnySender, "01", 84, "netrek", ""},
		{"SP_S_WARNING with a text knows its length at byte 3", Server, "2a2100", 0, "netrek/SP_S_WARNING.length at byte 3 of 3: want 1 byte, 0 bytes left (incomplete)", ""},
		{"SP_S_WARNING without one is 4 bytes", Server, "2a0e", 4, "framing/envelope at byte 0: want a whole frame, got its start (incomplete)", ""},
		{"SP_S_PLAYER, extended, with one body", Server, "2d81", 8, "framing/envelope at byte 0: want a whole frame, got its start (incomplete)", ""},
		{"SP_S_PLAYER, small, waits for its flags", Server, "2d41", 0, "netrek/SP_S_PLAYER.numflags at byte 2 of 2: want 1 byte, 0 bytes left (incomplete)", ""},
		{"SP_S_MESSAGE shorter than its header", Server, "2901000003000000", 0, "netrek/SP_S_MESSAGE.size at byte 0 of 8: want a size of at least 5, got 4 (malformed)", ""},
		{"SP_S_MESSAGE of no length", Server, "2901000000000000", 0, "netrek/SP_S_MESSAGE.size at byte 0 of 8: want a size of at least 5, got 0 (malformed)", ""},
		{"CP_S_MESSAGE of no length", Client, "2d010000", 0, "netrek/CP_S_MESSAGE.size at byte 0 of 4: want a size of at least 4, got 0 (malformed)", ""},
		{"a type of nobody", Server, "00", 0, "netrek/envelope.opcode at byte 0: want a type that the server sends, got 0 (malformed)", ""},
		{"SP_S_SEQUENCE has no layout", Server, "38000000", 0, "netrek/envelope.opcode at byte 0: want a type that the server sends, got 56, SP_S_SEQUENCE, which has no size (malformed)", ""},
		{"a type of the other side", Client, "3e000000", 0, "netrek/envelope.opcode at byte 0: want a type that the client sends, got 62, SP_LTD of the server (malformed)", ""},
		{"a text datagram", Server, "732c", 0, "netrek/envelope.opcode at byte 0: want a type that the server sends, got 115, REPLY, which has no size (malformed)", ""},
	} {
		f, err := p.Framing("tcp").FindTyped(&Decoder{}, p, c.by, unhex(t, c.hex))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if f.Size != c.size || got != c.want && !(c.want == "netrek" && err != nil) {
			t.Errorf("%s: got size %d, %s\nwant %d, %s", c.name, f.Size, got, c.size, c.want)
		}
	}
}

func TestFindTypedDoesNotAllocate(t *testing.T) {
	p := netrek(t)
	f, d := p.Framing("tcp"), &Decoder{}
	var all [][]byte
	var by []Sender
	for _, v := range netrekVectors(t) {
		if !v.text() {
			all, by = append(all, v.bytes(t)), append(by, v.sender())
		}
	}
	nobody := []byte{0}
	find := func() {
		for i, data := range all {
			if _, err := f.FindTyped(d, p, by[i], data); err != nil {
				t.Fatal(err)
			}
			if _, err := f.FindTyped(d, p, AnySender, nobody); err == nil {
				t.Fatal("got a frame of type 0")
			}
		}
	}
	if n := testing.AllocsPerRun(20, find); n > 0 {
		t.Errorf("got %v allocations", n)
	}
}

// typed is a protocol whose size depends on a field in one case of a switch.
const typed = `protocol: typed
source: made up
opcode: u8
envelopes:
  packet: [{opcode: u8}, {body: body}]
framings:
  tcp: {kind: typed, envelope: packet, max: 64}
packets:
  A:
    opcode: 1
    size: choose(k == 2, n, 4)
    fields:
      - k: u8
      - switch: k
        cases:
          2: [{n: u8}]
        else: [{m: u16}]
      - rest: bytes(left)
  B:
    opcode: 2
    size: 3
    fields:
      - x: u16
`

func TestTypedFramingRefuses(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"a size behind a text", "      - k: u8\n", "      - t: text(nul)\n      - k: u8\n", `schema typed.yaml:11:11: the size of A looks at a field behind t, whose size is not fixed`},
		{"a size of what may be absent", "      - k: u8\n", "      - j: u8\n      - k: u8\n        if: j\n", `schema typed.yaml:11:11: the size of A looks at a field without a fixed place`},
		{"an envelope without an opcode", "packet: [{opcode: u8}, {body: body}]", "packet: [{kind: u8}, {body: body}]", `schema typed.yaml:7:32: envelope "packet" does not begin with an opcode of one byte, which typed needs`},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(typed, c.from, c.to, 1)
			_, err := LoadFile(fstest.MapFS{"typed.yaml": {Data: []byte(text)}}, "typed.yaml")
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// FuzzNetrek frames and decodes arbitrary bytes of either side. What decodes must
// encode to the same bytes.
func FuzzNetrek(f *testing.F) {
	p := netrek(f)
	for _, v := range netrekVectors(f) {
		f.Add(v.bytes(f), v.sender() == Client)
	}
	f.Add(unhex(f, "2f010001 02fcaabb"), false)
	f.Add([]byte("s,I,Two,2,4566,1,0,4577,0,0\n"), false)
	f.Fuzz(func(t *testing.T, data []byte, client bool) {
		if len(data) == 0 {
			return
		}
		by := Server
		if client {
			by = Client
		}
		d := &Decoder{State: netrekState(p), Short: wire.Malformed}
		k := p.Packet(uint64(data[0]), by, UDP)
		frame, err := p.Framing("udp").FindTyped(d, p, by, data)
		if err == nil {
			data = data[:frame.Size]
		} else if k == nil || k.Of(by) == nil {
			return
		}
		for _, l := range k.Of(by) {
			var tree Tree
			tree.Reset(data)
			if d.Decode(p, k.Name, l, &tree, 8, 8*len(data)) != nil {
				continue
			}
			again, fault := (&Encoder{State: d.State, Head: 1}).Append(data[:1:1], p, k.Name, l, &tree)
			if fault != nil || !bytes.Equal(again, data[:(d.End+7)/8]) {
				t.Fatalf("%s: encoded again %x (%v), want %x", k.Name, again, fault, data[:(d.End+7)/8])
			}
		}
	})
}
