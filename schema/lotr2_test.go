package schema

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"opscope/schema/wire"
)

// lotr2Vector is one entry of testdata/vectors/lotr2/vectors.json: a DirectPlay frame,
// or bytes of a stream, and the values that an independent decoder read in it. Names
// are those of the facts where the collection has others.
type lotr2Vector struct {
	Name, Layer, Transport, Direction, Source, Hex, Message string

	Envelope         map[string]any
	Fields           map[string]any
	Sizes            []int // of the frames of a stream
	Leftover         int
	LengthOK         *bool    `json:"length_ok"`
	ChecksumOK       *bool    `json:"checksum_ok"`
	ChecksumExpected *float64 `json:"checksum_expected"`
}

// lotr2Protocols returns the envelope's protocol and the game's.
func lotr2Protocols(t testing.TB) (dplay, game *Protocol) {
	t.Helper()
	dplay, err := Builtin("dplay")
	if err != nil {
		t.Fatal(err)
	}
	if game, err = Builtin("lotr2"); err != nil {
		t.Fatal(err)
	}
	return dplay, game
}

func lotr2Vectors(t testing.TB) []*lotr2Vector {
	t.Helper()
	var all []*lotr2Vector
	readJSON(t, "../testdata/vectors/lotr2/vectors.json", &all)
	return all
}

// layered is a DirectPlay frame as it comes apart.
type layered struct {
	message   string
	protocol  *Protocol
	layout    *Layout
	envelopes []*Envelope // from the outside in
	head      Tree
	body      Tree
	from      int // of the body, in bytes
	end       int
}

// lotr2Layers takes a frame apart. DirectPlay's own frames begin with a word behind the
// sockaddr.
func lotr2Layers(t testing.TB, data []byte) (*layered, *wire.Error) {
	t.Helper()
	dplay, game := lotr2Protocols(t)
	l := &layered{protocol: dplay, envelopes: []*Envelope{dplay.Envelopes[0]}}
	player := len(data) >= 24 && string(data[20:24]) != "play"
	if player {
		l.protocol, l.envelopes = game, []*Envelope{dplay.Envelopes[1], game.Envelopes[0]}
	}
	l.head.Reset(data)
	d := &Decoder{Short: wire.Malformed}
	for i, e := range l.envelopes {
		if err := d.Decode([]*Protocol{dplay, game}[i], "envelope", e.Layout, &l.head, 8*l.from, 8*len(data)); err != nil {
			return l, err
		}
		l.from += e.Size()
	}
	opcode, _ := l.head.Value("opcode")
	l.message = l.protocol.OpcodeName(opcode)
	l.end = l.from
	l.body.Reset(data)
	if k := l.protocol.Packet(opcode, AnySender, TCP); k != nil && len(k.Of(AnySender)) > 0 {
		l.layout = k.Of(AnySender)[0]
		d.Envelope = l.envelopes[len(l.envelopes)-1]
		err := d.Decode(l.protocol, l.message, l.layout, &l.body, 8*l.from, 8*len(data))
		l.end = (d.End + 7) / 8
		return l, err
	}
	return l, nil
}

// encode puts a frame together again, out of what it was taken apart to or of values.
func (l *layered) encode(head, body *Tree) ([]byte, error) {
	b, err := (&Encoder{Head: l.from}).Append(nil, l.protocol, l.message, l.layout, body)
	for i := len(l.envelopes) - 1; i >= 0 && err == nil; i-- {
		counts := CountsFrame
		if l.envelopes[i].Name == "game_frame" {
			counts = l.protocol.Framing("message").Counts
		}
		b = l.envelopes[i].AppendWith(nil, head, b, counts)
		head = playerHead(head)
	}
	return b, err
}

// playerHead is a head without the names that the game's envelope has too.
func playerHead(head *Tree) *Tree {
	v := Values{}
	for _, n := range head.Nodes {
		if f := n.Field; f.Name != "opcode" && f.Name != "length" && !f.Hidden {
			v[f.Name] = n.Num
		}
	}
	return NewTree(v)
}

func (v *lotr2Vector) bytes(t testing.TB) []byte {
	t.Helper()
	b, err := hex.DecodeString(v.Hex)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// plain writes GUIDs and addresses of a decoded value as the vectors have them.
func plain(got, want any) any {
	switch w := want.(type) {
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			for name := range w {
				g[name] = plain(g[name], w[name])
			}
		}
	case []any:
		if g, ok := got.([]any); ok && len(g) == len(w) {
			for i := range w {
				g[i] = plain(g[i], w[i])
			}
		}
	case string:
		if n, ok := got.(float64); ok {
			return netip.AddrFrom4([4]byte{byte(uint32(n) >> 24), byte(uint32(n) >> 16), byte(uint32(n) >> 8), byte(uint32(n))}).String()
		}
		if b, err := hex.DecodeString(fmt.Sprint(got)); err == nil && len(b) == 16 {
			return strings.ToUpper(fmt.Sprintf("{%02x%02x%02x%02x-%02x%02x-%02x%02x-%x-%x}", b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], b[8:10], b[10:]))
		}
	}
	return got
}

func TestLotr2Vectors(t *testing.T) {
	dplay, _ := lotr2Protocols(t)
	for _, v := range lotr2Vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			data := v.bytes(t)
			if v.Layer == "stream" {
				v.frames(t, dplay, data)
				return
			}
			f, err := dplay.Framing(v.Transport).Find(data, dplay.Name)
			if err != nil || f.Size != len(data) {
				t.Fatalf("got a frame of %d bytes (%v), want %d\n%s", f.Size, err, len(data), hex.Dump(data))
			}
			l, err := lotr2Layers(t, data)
			if err != nil || l.end != len(data) && l.layout != nil || l.message != v.Message {
				t.Fatalf("got %s, %v, the end at %d of %d, want %s\n%s", l.message, err, l.end, len(data), v.Message, hex.Dump(data))
			}
			head, body := values(&l.head, 0, len(l.head.Nodes)), values(&l.body, 0, len(l.body.Nodes))
			for _, line := range append(diff("envelope", plain(head, v.Envelope), v.Envelope, nil, 0, true),
				diff(v.Message, plain(body, v.Fields), v.Fields, nil, 0, true)...) {
				t.Errorf("%s\n%s", line, hex.Dump(data))
			}
			v.checksum(t, l, data)
			if l.layout == nil || v.LengthOK != nil && (!*v.LengthOK || !*v.ChecksumOK) {
				return
			}
			again, fault := l.encode(&l.head, &l.body)
			if fault != nil || !bytes.Equal(again, data) {
				t.Errorf("encoded again %x (%v), want %x", again, fault, data)
			}
		})
	}
}

// frames compares the frames of a stream.
func (v *lotr2Vector) frames(t *testing.T, p *Protocol, data []byte) {
	t.Helper()
	for _, want := range v.Sizes {
		f, err := p.Framing("tcp").Find(data, p.Name)
		if err != nil || f.Size != want {
			t.Fatalf("got a frame of %d bytes (%v), want %d", f.Size, err, want)
		}
		data = data[f.Size:]
	}
	if len(data) != v.Leftover {
		t.Errorf("got %d bytes left over, want %d", len(data), v.Leftover)
	}
	if len(data) > 0 {
		if f, err := p.Framing("tcp").Find(data, p.Name); err == nil || err.Kind != wire.Incomplete || f.Size <= len(data) {
			t.Errorf("got size %d, %v, want an incomplete frame", f.Size, err)
		}
	}
}

func (v *lotr2Vector) checksum(t *testing.T, l *layered, data []byte) {
	t.Helper()
	if v.ChecksumOK == nil {
		return
	}
	err := l.envelopes[1].Verify(data[28:], l.protocol.Name)
	if (err == nil) != *v.ChecksumOK {
		t.Errorf("got %v, want a checksum that is right: %v", err, *v.ChecksumOK)
	}
	if v.ChecksumExpected != nil && float64(Sum8(data[32:])) != *v.ChecksumExpected {
		t.Errorf("got a sum of %d, want %v", Sum8(data[32:]), *v.ChecksumExpected)
	}
}

// The vectors are those of the collection.
func TestLotr2VectorsAreTheSharedOnes(t *testing.T) {
	var all struct {
		Vectors []struct {
			Name, Hex, Layer, Transport string
			Code                        uint64
		}
	}
	readJSON(t, shared(t, "vectors/lotr2.json"), &all)
	own := lotr2Vectors(t)
	if len(own) != len(all.Vectors) {
		t.Fatalf("got %d, want %d", len(own), len(all.Vectors))
	}
	dplay, game := lotr2Protocols(t)
	for i, v := range own {
		w := all.Vectors[i]
		if v.Name != w.Name || v.Hex != w.Hex || v.Layer != w.Layer || v.Transport != w.Transport {
			t.Errorf("got %s, want %s", v.Name, w.Name)
		}
		if p := map[string]*Protocol{"dplay": dplay, "lotr2": game}[v.Layer]; p != nil && p.OpcodeName(w.Code) != v.Message {
			t.Errorf("%s: got %s for 0x%02X, want %s", v.Name, p.OpcodeName(w.Code), w.Code, v.Message)
		}
	}
}

// Each proper prefix gives an error that names the field which it cuts, or, where the
// layout says that six bytes may follow, a shorter record.
func TestLotr2Truncation(t *testing.T) {
	dplay, _ := lotr2Protocols(t)
	for _, v := range lotr2Vectors(t) {
		data := v.bytes(t)
		if v.Layer == "stream" {
			continue
		}
		whole, err := lotr2Layers(t, data)
		if err != nil || whole.layout == nil {
			continue
		}
		for n := range len(data) {
			f, err := dplay.Framing("tcp").Find(data[:n], dplay.Name)
			if err == nil || err.Kind != wire.Incomplete || f.Size != 0 && f.Size != len(data) {
				t.Errorf("%s, %d bytes: got size %d, %v", v.Name, n, f.Size, err)
			}
			if n < 24 {
				continue // too short to tell one envelope from the other
			}
			l, err := lotr2Layers(t, data[:n])
			trailer := v.Message == "CreatePlayer" && n >= len(data)-6
			switch {
			case err == nil && !trailer:
				t.Errorf("%s: got no error for %d of %d bytes", v.Name, n, len(data))
			case err != nil && !strings.HasPrefix(err.Path, v.Message+".") && !strings.HasPrefix(err.Path, "envelope."):
				t.Errorf("%s, %d bytes: got %v, which names no field", v.Name, n, err)
			case len(l.body.Nodes) > len(whole.body.Nodes), l.end > n:
				t.Errorf("%s, %d bytes: got %d values up to byte %d", v.Name, n, len(l.body.Nodes), l.end)
			}
		}
	}
}

// Frames are built out of values, as a peer does: sizes, offsets and checksums are
// computed.
func TestLotr2FramesOfValues(t *testing.T) {
	head := Values{"token": 0xfab, "family": 2, "port": 2300, "signature": 0x706c6179, "version": 14}
	player := Values{"token": 0xfab, "family": 2, "port": 2300, "from_id": 0x384c8}
	sockaddr := func(port int) Values { return Values{"family": 2, "port": port, "addr": "0.0.0.0"} }
	session := Values{
		"size": 80, "flags": 0x44, "instance_guid": "{F6F3D983-E12E-42D9-864B-D7D1E6AC0DEC}", "app_guid": "{1C8248C0-9772-11CF-B74F-00C0DF413ED1}",
		"max_players": 5, "current_players": 1, "name_pointer": 0, "password_pointer": 0, "reserved1": 0x284cb, "reserved2": 0, "user": []int{0, 0, 0, 0},
	}
	for _, c := range []struct {
		vector     string
		head, body Values
	}{
		{"enum-sessions-reply", Values{"opcode": 1}, Values{"session": session, "session_name": "Lords2 Session1"}},
		{"create-player", Values{"opcode": 8}, Values{
			"id_to": 0, "player_id": 0x384c8, "group_id": 0, "packed_player": Values{
				"size": 90, "flags": 8, "id": 0x384c8, "short_name_len": 10, "long_name_len": 0, "sp_data_size": 32, "player_data_size": 0,
				"system_player_id": 0x384c9, "fixed_size": 48, "version": 14, "word_44": 0, "short_name": "Nobleman", "long_name": "",
				"stream_addr": sockaddr(2300), "dgram_addr": sockaddr(2350), "player_ids": []int{},
			}, "trailer": make([]byte, 6),
		}},
		{"super-enum-players-reply", Values{"opcode": 0x29}, Values{
			"shortcut_count": 0, "session": session, "session_name": "Lords2 Session1", "groups": []Values{}, "players": []Values{
				{"size": 16, "flags": 5, "id": 0x384c9, "info_mask": 4, "version": 14, "sp_data_size": 32,
					"stream_addr": Values{"family": 2, "port": 2300, "addr": "169.254.3.245"}, "dgram_addr": Values{"family": 2, "port": 2350, "addr": "169.254.3.245"}},
				{"size": 16, "flags": 15, "id": 0x384cb, "info_mask": 4, "version": 14, "sp_data_size": 32, "stream_addr": sockaddr(2300), "dgram_addr": sockaddr(2350)},
				{"size": 16, "flags": 12, "id": 0x384ca, "info_mask": 5, "system_player_id": 0x384cb, "short_name": "Nobleman", "sp_data_size": 32,
					"stream_addr": sockaddr(2300), "dgram_addr": sockaddr(2350)},
			},
		}},
		{"op06-chat-joiner", Values{"opcode": 6, "slot": 2}, Values{"player_number": 2, "text": "i am player 2"}},
	} {
		for _, v := range lotr2Vectors(t) {
			if v.Name != c.vector {
				continue
			}
			l, err := lotr2Layers(t, v.bytes(t))
			if err != nil {
				t.Fatal(err)
			}
			outer := head
			if v.Layer == "lotr2" {
				outer = player
			}
			for name, value := range outer {
				c.head[name] = value
			}
			again, fault := l.encode(NewTree(c.head), NewTree(c.body))
			if fault != nil || hex.EncodeToString(again) != v.Hex {
				t.Errorf("%s: got\n%x (%v), want\n%s", c.vector, again, fault, v.Hex)
			}
		}
	}
}

// The size has 20 bits: a frame may be longer than 16 bits can say.
func TestSizeInPartOfAWord(t *testing.T) {
	dplay, _ := lotr2Protocols(t)
	f := dplay.Framing("tcp")
	long := append(unhex(t, "ffffbffa 0200 08fc 00000000 0000000000000000"), make([]byte, 1<<20)...)
	for _, c := range []struct {
		name string
		data []byte
		size int
		want string
	}{
		{"of 20 bits", long, 1<<20 - 1, ""},
		{"only begun", long[:3], 0, "dplay/envelope at byte 0 of 3: want 4 bytes, 3 bytes left (incomplete)"},
		{"known, and not all there", long[:40], 1<<20 - 1, errPart.Error()},
		{"to be forwarded", unhex(t, "1c00b0ca"), 28, errPart.Error()},
		{"from the local helper", unhex(t, "1c00b0ba"), 28, errPart.Error()},
		{"of another token", unhex(t, "1c00b0da"), 0, "dplay/envelope.token at byte 2 bit 4 of 4: want a token, got 0xdab (malformed)"},
		{"below the smallest", unhex(t, "1b00b0fa"), 0, "dplay/envelope.size at byte 0 of 4: want a length from 28 to 1048575, got 27 (malformed)"},
	} {
		got, err := f.Find(c.data, dplay.Name)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got.Size != c.size || text != c.want {
			t.Errorf("%s: got size %d, %s\nwant %d, %s", c.name, got.Size, text, c.size, c.want)
		}
	}
}

// FuzzLotr2 takes frames apart. What decodes must encode to the same bytes, unless an
// offset has the bytes in another order.
func FuzzLotr2(f *testing.F) {
	for _, v := range lotr2Vectors(f) {
		f.Add(v.bytes(f))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<12 {
			return
		}
		l, err := lotr2Layers(t, data)
		if l.end > len(data) {
			t.Errorf("the end at %d of %d", l.end, len(data))
		}
		if err != nil || l.layout == nil || l.protocol.Name != "lotr2" {
			return
		}
		again, fault := (&Encoder{Head: l.from}).Append(nil, l.protocol, l.message, l.layout, &l.body)
		if fault != nil || !bytes.Equal(again, data[l.from:l.end]) {
			t.Fatalf("%s: encoded again %x (%v), want %x", l.message, again, fault, data[l.from:l.end])
		}
	})
}
