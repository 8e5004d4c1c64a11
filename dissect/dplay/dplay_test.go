package dplay_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"opscope/dissect"
	"opscope/dissect/protocols"
	"opscope/dissect/scene"
	"opscope/schema"
)

const (
	dialer   = scene.Client
	listener = scene.Server
)

var known = dissect.Options{Protocols: protocols.All, Hold: dissect.DefaultHold}

func le16(v int) string { return string(binary.LittleEndian.AppendUint16(nil, uint16(v))) }
func le32(v int) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(v))) }

func enveloped(body string) string {
	return le32(20+len(body)|0xfab<<20) + "\x02\x00\x08\xfc" + strings.Repeat("\x00", 12) + body
}

func command(number int, body string) string {
	return enveloped("play" + le16(number) + le16(14) + body)
}

// seen is the frame of a vector, which was seen on the wire.
func seen(t testing.TB, name string) string {
	t.Helper()
	for n, data := range vectors(t) {
		if n == name {
			return data
		}
	}
	t.Fatal("no vector " + name)
	return ""
}

// vectors are the frames of all vectors by name.
func vectors(t testing.TB) map[string]string {
	t.Helper()
	b, err := os.ReadFile("../../testdata/vectors/lotr2/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct{ Name, Hex string }
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, v := range list {
		data, err := hex.DecodeString(v.Hex)
		if err != nil {
			t.Fatal(err)
		}
		all[v.Name] = string(data)
	}
	return all
}

// another is a session of another game, over one connection of the host's.
type another struct {
	scene.Scene
	host *scene.Connection
}

func newAnother(t testing.TB) *another {
	a := &another{}
	a.host = a.TCP("10.0.0.1:1038", "10.0.0.2:2300")
	a.host.Open()
	a.host.Send(dialer, strings.Replace(seen(t, "enum-sessions-reply"), "\xc0\x48\x82\x1c", "\xc0\x48\x82\x1d", 1))
	return a
}

// frames returns the records after the first one, and the session's name.
func (a *another) frames(t testing.TB) ([]*dissect.Record, string) {
	t.Helper()
	out := a.Play(t, known)
	return out.Frames()[1:], out.Result.Sessions[0].Name
}

// The messages of another game stay bytes, of any size that 20 bits can say.
func TestAnotherGame(t *testing.T) {
	a := newAnother(t)
	long := strings.Repeat("x", 70_000)
	for data := enveloped(le32(7) + le32(0) + long); len(data) > 0; data = data[min(len(data), 1400):] {
		a.host.Send(dialer, data[:min(len(data), 1400)])
	}
	a.host.Send(dialer, enveloped(le32(7)+le32(9)+"hi"))
	got, name := a.frames(t)
	scene.Want(t, got, `
		s2c PlayerMessage
		s2c PlayerMessage`)
	if name != "dplay" || got[0].Protocol != "dplay" || got[0].Size != 70_028 || len(got[0].Packets) != 51 || got[0].Opcode != -1 {
		t.Errorf("got %s of %s, %d bytes in %d packets, opcode %d", got[0].Protocol, name, got[0].Size, len(got[0].Packets), got[0].Opcode)
	}
	if to, _ := got[1].Head.Value("to_id"); to != 9 || string(got[1].Body.AppendBytes(nil, got[1].Body.Field("data"))) != "hi" {
		t.Errorf("to %d: %v", to, got[1].Body.Nodes)
	}
}

// A flow on ports of no fixed number is known by its content, also from inside a frame.
func TestRecognitionByContent(t *testing.T) {
	s := &scene.Scene{}
	c := s.TCP("10.0.0.1:1038", "10.0.0.2:2317")
	c.Next[dialer] += 7
	text := seen(t, "op01-first-send-slot0")
	c.Send(dialer, text[50:])
	c.Send(dialer, text)
	c.Send(dialer, seen(t, "op01-copy-40")+seen(t, "op01-copy-80"))
	u := s.UDP("10.0.0.2:2361", "10.0.0.1:2363")
	u.Send(dialer, seen(t, "ping-from-host"))
	out := s.Play(t, known)
	if n := len(out.Named("join_hello")); n != 3 || len(out.Named("Ping")) != 1 || len(out.Result.Sessions) != 1 || out.Result.Summary.OtherFlows != 0 {
		t.Errorf("got %d messages in %d sessions\n%s", n, len(out.Result.Sessions), out)
	}
}

// What is no DirectPlay is left alone.
func TestForeignContent(t *testing.T) {
	s := &scene.Scene{}
	c := s.TCP("10.0.0.1:1038", "10.0.0.2:80")
	c.Open()
	c.Send(dialer, "GET / HTTP/1.1\r\n\r\n"+strings.Repeat("\x00", 200))
	u := s.UDP("10.0.0.2:2361", "10.0.0.1:53")
	u.Send(dialer, strings.Repeat("\x02", 60))
	u.Send(dialer, seen(t, "ping-from-host")+"x") // the size is not the datagram's
	if out := s.Play(t, known); len(out.Frames()) != 0 || out.Result.Summary.OtherFlows != 2 {
		t.Errorf("got\n%s", out)
	}
}

// guid is that of a message in pieces.
const guid = "0123456789abcdef"

// piece is one piece of a message.
func piece(number, index, total, size, offset int, data string) string {
	return command(number, guid+le32(index)+le32(len(data))+le32(offset)+le32(total)+le32(size)+le32(48)+data)
}

// Facts, section 5.1: a message in pieces begins at "play" or at the ids; offsets in it
// count from there.
func TestPieces(t *testing.T) {
	whole := strings.Replace(seen(t, "super-enum-players-reply")[20:], "\xc0\x48\x82\x1c", "\xc0\x48\x82\x1d", 1)
	data := le32(7) + le32(0) + "a message of another game"
	a := newAnother(t)
	a.host.Send(dialer, piece(0x15, 0, 3, len(whole), 0, whole[:100]), piece(0x15, 2, 3, len(whole), 200, whole[200:]))
	a.host.Send(dialer, piece(0x15, 2, 3, len(whole), 200, whole[200:])) // it comes twice
	a.host.Send(dialer, piece(0x15, 1, 3, len(whole), 100, whole[100:200]))
	a.host.Send(dialer, piece(0x30, 0, 2, len(data), 0, data[:9]), command(0x31, guid+le32(0)), piece(0x30, 1, 2, len(data), 9, data[9:]))
	got, _ := a.frames(t)
	scene.Want(t, got, `
		s2c Packet
		s2c Packet
		s2c Packet
		s2c Packet
		s2c SuperEnumPlayersReply +reassembled
		s2c Packet2Data
		s2c Packet2Ack
		s2c Packet2Data
		s2c PlayerMessage +reassembled`)
	r := got[4]
	name := string(r.Body.AppendText(nil, r.Body.Field("session_name")))
	if size, _ := r.Head.Value("size"); int(size) != len(whole)+20 || name != "Lords2 Session1" || !slices.Equal(r.Packets, []int{5, 7}) {
		t.Errorf("got size %d, %q, packets %v", size, name, r.Packets)
	}
	if text := string(got[8].Body.AppendBytes(nil, got[8].Body.Field("data"))); text != data[8:] {
		t.Errorf("got %q", text)
	}
}

// Pieces that do not fit are refused, and what never becomes whole is dropped.
func TestPiecesThatDoNotFit(t *testing.T) {
	for _, c := range []struct {
		name string
		send []string
		want string
	}{
		{"beyond the message", []string{piece(0x15, 0, 2, 20, 15, "0123456789")}, "piece_refused: piece 0 of 2, bytes 15 to 25 of 20"},
		{"beyond the pieces", []string{piece(0x15, 2, 2, 20, 0, "0123456789")}, "piece_refused: piece 2 of 2, bytes 0 to 10 of 20"},
		{"too large", []string{piece(0x15, 0, 2, 1<<31, 0, "0123456789")}, "piece_refused: piece 0 of 2, bytes 0 to 10 of 2147483648"},
		{"too small for a message", []string{piece(0x15, 0, 1, 4, 0, "play")}, "piece_refused: piece 0 of 1, bytes 0 to 4 of 4"},
		{"of two sizes", []string{piece(0x15, 0, 2, 20, 0, "0123456789"), piece(0x15, 1, 2, 21, 10, "0123456789")},
			"piece_refused: 2 pieces and 21 bytes, where another piece said 2 and 20"},
		{"with a hole between them", []string{piece(0x15, 0, 2, 20, 0, "012345678"), piece(0x15, 1, 2, 20, 10, "0123456789")},
			"piece_refused: the 2 pieces do not make 20 bytes"},
		{"of pieces", []string{piece(0x15, 0, 1, 56, 0, piece(0x15, 0, 1, 8, 0, "01234567")[20:])}, "reassembled: of 1 pieces"},
	} {
		a := newAnother(t)
		for _, s := range c.send {
			a.host.Send(dialer, s)
		}
		got, _ := a.frames(t)
		last := got[len(got)-1]
		if len(last.Notes) != 1 || last.Notes[0].Code+": "+last.Notes[0].Text != c.want {
			t.Errorf("%s: got %v, want %s", c.name, last.Notes, c.want)
		}
	}
	a := newAnother(t)
	for i := range 17 {
		a.host.Send(dialer, strings.Replace(piece(0x15, 0, 2, 20, 0, "0123456789"), guid, guid[:15]+string(rune('A'+i)), 1))
	}
	got, _ := a.frames(t)
	if last := got[16]; len(last.Notes) != 1 || last.Notes[0].Code != "pieces_dropped" {
		t.Errorf("got %v", last.Notes)
	}
}

// What is kept of pieces is bounded, and so is what a piece may have made for it.
func TestPiecesAreBounded(t *testing.T) {
	a := newAnother(t)
	dropped := 0
	for i := range 8 {
		large := strings.Replace(piece(0x15, 0, 2, 1_000_000, 0, strings.Repeat("x", 200_000)), guid, guid[:15]+string(rune('A'+i)), 1)
		for len(large) > 0 {
			a.host.Send(dialer, large[:min(len(large), 60_000)])
			large = large[min(len(large), 60_000):]
		}
	}
	got, _ := a.frames(t)
	for _, r := range got {
		for _, n := range r.Notes {
			if n.Code == "pieces_dropped" {
				dropped++
			}
		}
	}
	if len(got) != 8 || dropped != 3 { // five of 200,000 bytes stay
		t.Errorf("got %d records, %d dropped", len(got), dropped)
	}
}

// Passwords are secret.
func TestSecrets(t *testing.T) {
	s := &scene.Scene{}
	u := s.UDP("10.0.0.2:1032", "255.255.255.255:47624")
	u.Send(dialer, command(0x02, seen(t, "public-enum-sessions")[28:44]+le32(32)+le32(0x41)+"h\x00i\x00\x00\x00"))
	r := s.Play(t, known).Frames()[0]
	i := r.Body.Field("password")
	if i < 0 || string(r.Body.AppendText(nil, i)) != "hi" || r.Body.Nodes[i].Field.Redact != schema.Secret || r.Err != nil {
		t.Errorf("got %s %v", scene.Line(r), r.Body.Nodes)
	}
}

// What is said of groups can bring a packed player and a password, as CreatePlayer can.
func TestGroupsWithPackedPlayers(t *testing.T) {
	const signature = 20
	create := seen(t, "create-player")
	at := signature + int(binary.LittleEndian.Uint32([]byte(create[28+12:])))
	packed := create[at:][:binary.LittleEndian.Uint32([]byte(create[at:]))]
	five := le32(0) + le32(7) + le32(8) + le32(8+20) + le32(8+20+len(packed))
	for number, name := range map[int]string{0x09: "CreateGroup", 0x0c: "DeleteGroup", 0x0d: "AddPlayerToGroup", 0x0e: "DeletePlayerFromGroup"} {
		a := newAnother(t)
		a.host.Send(dialer, command(number, five+packed+"p\x00w\x00\x00\x00"), command(number, five[:12]+le32(0)+le32(0)))
		got, _ := a.frames(t)
		scene.Want(t, got, "s2c "+name+"\ns2c "+name)
		if i := got[0].Body.Field("password"); i < 0 || string(got[0].Body.AppendText(nil, i)) != "pw" || got[0].Body.Field("packed_player") < 0 {
			t.Errorf("%s: %v", name, got[0].Body.Nodes)
		}
	}
}

// TestHeaderWithoutItsEnd: all bytes of a header that ends too early are counted, also
// those that its record does not show.
func TestHeaderWithoutItsEnd(t *testing.T) {
	for n := 1; n < headerBytes; n++ {
		s := &scene.Scene{}
		c := s.TCP("10.0.0.1:1038", "10.0.0.2:2300")
		c.Open()
		c.Send(dialer, "\x03\x28\xb0\xfa\x02\x00\x00\x00\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"[:n])
		out := s.Play(t, known)
		if got := out.Result.Summary.UndecodedBytes; len(out.Frames()) != 1 || out.Frames()[0].Err == nil || got != int64(n) {
			t.Errorf("%d bytes: %d of them counted\n%s", n, got, out)
		}
	}
}

// headerBytes are size, token and sockaddr.
const headerBytes = 20

// streamSeeds adds frames of the vectors, cut and mended.
func streamSeeds(f *testing.F) {
	all := ""
	for _, data := range vectors(f) {
		f.Add([]byte(data), []byte{40, 3}, true, true)
		all += data
	}
	f.Add([]byte(all), []byte{200}, true, false)
	f.Add([]byte(all[50:]), []byte{7}, false, false)
	f.Add([]byte(piece(0x15, 0, 1, 8, 0, "01234567")+piece(0x30, 0, 2, 20, 0, "0123456789")), []byte{255}, true, true)
}

// FuzzDirectPlayStream plays arbitrary bytes, in arbitrary segments, from the side that
// dialled or from the other. Every byte is in a record or counted, once.
func FuzzDirectPlayStream(f *testing.F) {
	streamSeeds(f)
	f.Fuzz(func(t *testing.T, data, cuts []byte, dialled, opened bool) {
		if len(data) > 1<<13 || len(cuts) == 0 {
			return
		}
		s := &scene.Scene{}
		c := s.TCP("10.0.0.1:1038", "10.0.0.2:2300")
		if opened {
			c.Open()
		}
		from := listener
		if dialled {
			from = dialer
		}
		c.SendCut(from, data, cuts)
		s.Play(t, known).Accounts(t, len(data))
	})
}

// FuzzDirectPlayDatagrams plays an arbitrary datagram, whole or cut, twice.
func FuzzDirectPlayDatagrams(f *testing.F) {
	for _, data := range vectors(f) {
		f.Add([]byte(data), uint16(2350), uint8(0))
		f.Add([]byte(data), uint16(47624), uint8(50))
	}
	f.Fuzz(func(t *testing.T, data []byte, port uint16, snap uint8) {
		if len(data) > 1<<11 || port == 0 {
			return
		}
		s := &scene.Scene{}
		if snap > 0 {
			s.Snap = 42 + int(snap)
		}
		u := s.UDP("10.0.0.2:1032", "10.0.0.1:2350")
		u.Addr[listener] = netip.AddrPortFrom(u.Addr[listener].Addr(), port)
		u.Send(dialer, string(data))
		u.Send(dialer, string(data))
		want := len(data)
		if snap > 0 {
			want = min(want, int(snap))
		}
		for _, r := range s.Play(t, known).Frames() {
			scene.Sound(t, r)
			if r.Protocol == "dplay" && r.Packets[0] <= 2 && len(r.Raw) != want && !slices.ContainsFunc(r.Notes, func(n dissect.Note) bool { return n.Code == "reassembled" }) {
				t.Errorf("%s: %d of %d bytes are in the record", scene.Line(r), len(r.Raw), want)
			}
		}
	})
}
