package protocols_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"opscope/dissect"
	"opscope/dissect/capture"
	"opscope/dissect/protocols"
	"opscope/dissect/scene"
	"opscope/dissect/sink"
	"opscope/schema"
)

// These targets play arbitrary bytes to every protocol there is, from the packets of a
// capture to the text on the screen. A new protocol joins by being in protocols.All.

// subject is a protocol with its schema, and a port that is its own.
type subject struct {
	dissect.Protocol
	schema *schema.Protocol
	ports  map[schema.Transport]int
}

func subjects(t testing.TB) (list []subject) {
	for _, p := range protocols.All {
		s, err := p.Schema()
		if err != nil {
			t.Fatal(err)
		}
		x := subject{p, s, map[schema.Transport]int{schema.TCP: 7777, schema.UDP: 7777}}
		for _, port := range s.Ports {
			x.ports[port.Transport] = port.Number
		}
		list = append(list, x)
	}
	return list
}

// said is what one side says over one transport.
type said struct {
	transport schema.Transport
	side      scene.Side
	data      [][]byte // a datagram or the payload of a segment each
}

// vectors returns bytes of a protocol that are known to mean something, over a transport.
func vectors(t testing.TB, protocol string, transport schema.Transport) (list []said) {
	b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "vectors", protocol, "vectors.json"))
	if errors.Is(err, os.ErrNotExist) { // it carries others, which have them
		return nil
	}
	var all []struct{ Hex, Transport, Direction string }
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		data, err := hex.DecodeString(v.Hex)
		if err != nil {
			t.Fatal(err)
		}
		side := scene.Client
		if v.Direction == "s2c" {
			side = scene.Server
		}
		if v.Transport == transport.String() {
			list = append(list, said{transport, side, [][]byte{data}})
		}
	}
	return list
}

// recorded returns what is said in some captures of a protocol, which the reference server
// has encoded.
func recorded(t testing.TB, x subject) (list []said) {
	files, err := filepath.Glob(filepath.Join("..", "..", "pcaps", x.schema.Name, "*.pcapng"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files[:min(len(files), 4)] {
		f, err := capture.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		var d dissect.LinkDecoder
		var h dissect.Headers
		var p dissect.Packet
		all := [2][2]said{ // over TCP and over UDP
			{{transport: schema.TCP, side: scene.Client}, {transport: schema.TCP, side: scene.Server}},
			{{transport: schema.UDP, side: scene.Client}, {transport: schema.UDP, side: scene.Server}},
		}
		for f.Next(&p) == nil {
			if d.Decode(&h, &p) != nil || len(h.Payload) == 0 || h.Content != dissect.TCPContent && h.Content != dissect.UDPContent {
				continue
			}
			of := &all[0]
			if h.Content == dissect.UDPContent {
				of = &all[1]
			}
			s := &of[scene.Client]
			if h.SrcPort < h.DstPort {
				s = &of[scene.Server]
			}
			s.data = append(s.data, bytes.Clone(h.Payload))
		}
		f.Close()
		list = append(append(list, all[0][:]...), all[1][:]...)
	}
	return list
}

// keys of the fuzzed options.
const (
	fromServer  = 1 << iota
	strangePort // one that tells nothing
	only        // every flow is the protocol's
	holding
	mirrored // the other side says the same afterwards
	cut      // the capture keeps the first bytes only
	lossy    // and misses segments
	opened   // the connection was opened in its view
)

// play plays a scene with all protocols, and looks at what comes out of every sink.
func play(t *testing.T, s *scene.Scene, x subject, keys uint8) (*dissect.Result, []*dissect.Record) {
	t.Helper()
	o := dissect.Options{Protocols: protocols.All}
	if keys&only != 0 {
		o.Only = x.Protocol
	}
	if keys&holding != 0 {
		o.Hold = dissect.DefaultHold
	}
	out := s.Play(t, o)
	for _, look := range partialLooks {
		partial := o
		partial.Look = look
		sameButValues(t, s.Play(t, partial), out)
	}
	byName := func(name string) *schema.Protocol {
		for _, x := range subjects(t) {
			if x.schema.Name == name {
				return x.schema
			}
		}
		return nil
	}
	var text, ndjson bytes.Buffer
	sinks := []dissect.Sink{
		sink.NewText(&text, sink.TextOptions{Schema: byName}),
		sink.NewText(&text, sink.TextOptions{Verbosity: 2, Hex: true, Color: true, Privacy: dissect.Privacy{MaskPersonal: true}, Schema: byName}),
		sink.NewNDJSON(&ndjson, sink.NDJSONOptions{Raw: true, Privacy: dissect.Privacy{ShowSecrets: true}}),
		sink.NewUnknown(sink.UnknownOptions{Schema: byName}),
	}
	last := 0
	for _, r := range out.Records {
		check(t, r, s.Len())
		if r.Type == dissect.FrameRecord {
			if r.N != last+1 {
				t.Fatalf("record %d follows record %d", r.N, last)
			}
			last = r.N
		}
		for _, k := range sinks {
			if err := k.Write(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, k := range sinks {
		if err := k.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range text.Bytes() {
		if (c < ' ' && c != '\n' && c != 0x1b) || c == 0x7f {
			t.Fatalf("the text has %#02x at %d", c, i)
		}
	}
	readBack(t, ndjson.String(), byName)
	for _, session := range out.Result.Sessions {
		session.Tables()
	}
	return out.Result, out.Records
}

// check looks at what must be true of any record.
func check(t *testing.T, r *dissect.Record, packets int) {
	t.Helper()
	if r.Type != dissect.FrameRecord {
		return
	}
	switch {
	case r.Size < len(r.Raw), r.Offset < 0, len(r.Rest) > len(r.Raw):
		t.Fatalf("%s: %d bytes at %d, %d captured, %d left over", scene.Line(r), r.Size, r.Offset, len(r.Raw), len(r.Rest))
	case len(r.Packets) == 0, r.Session == 0, r.Flow == 0, r.Protocol == "", r.Message == "" && r.Err == nil:
		t.Fatalf("%s: packets %v, session %d, flow %d of %q", scene.Line(r), r.Packets, r.Session, r.Flow, r.Protocol)
	}
	for _, n := range r.Packets {
		if n < 1 || n > packets {
			t.Fatalf("%s: packet %d of %d", scene.Line(r), n, packets)
		}
	}
	for i := range r.Body.Nodes {
		if n := &r.Body.Nodes[i]; int(n.Off)+int(n.Len) > 8*len(r.Body.Data) || r.Body.Next(i) > len(r.Body.Nodes) {
			t.Fatalf("%s: a field reaches beyond the bytes", scene.Line(r))
		}
	}
	for _, n := range r.Notes {
		if !slices.ContainsFunc(dissect.NoteCodes, func(c dissect.NoteCode) bool { return c.Code == n.Code }) {
			t.Fatalf("%s: the note %q is not in the list", scene.Line(r), n.Code)
		}
	}
}

// readBack reads NDJSON, and writes it again to the same text.
func readBack(t *testing.T, ndjson string, byName func(string) *schema.Protocol) {
	t.Helper()
	var again bytes.Buffer
	j := sink.NewNDJSON(&again, sink.NDJSONOptions{Raw: true, Privacy: dissect.Privacy{ShowSecrets: true}})
	r := sink.NewReader(strings.NewReader(ndjson), sink.ReaderOptions{Schema: byName})
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, ndjson)
		}
		_ = j.Write(rec)
	}
	_ = j.Flush()
	if again.String() != ndjson {
		t.Fatalf("written\n%s\nread back\n%s", ndjson, &again)
	}
}

// place returns the endpoints of a case.
func (x subject) place(t schema.Transport, keys uint8) (client, server string) {
	port := x.ports[t]
	if keys&strangePort != 0 {
		port = 17777
	}
	return "10.0.0.2:50111", fmt.Sprintf("10.0.0.1:%d", port)
}

// FuzzProtocolStreams plays a stream to each protocol: in segments as long as the bytes
// of cuts say, of which some may be missing. No byte of it goes unmentioned.
func FuzzProtocolStreams(f *testing.F) {
	all := subjects(f)
	for i, x := range all {
		var joined [2][]byte
		for _, v := range vectors(f, x.schema.Name, schema.TCP) {
			side, data := uint8(v.side), v.data[0]
			f.Add(uint8(i), side|opened|holding, []byte{40, 3}, data)
			f.Add(uint8(i), side|lossy|strangePort, []byte{7, 60}, append(data[len(data)/2:], data...))
			if joined[side] = append(joined[side], data...); len(joined[side]) > 1<<12 {
				joined[side] = joined[side][:1<<12]
			}
		}
		for _, s := range recorded(f, x) {
			side := uint8(s.side)
			if data := bytes.Join(s.data, nil); s.transport == schema.TCP && len(data) > 0 {
				data = data[:min(len(data), 1<<12)]
				f.Add(uint8(i), side|opened, []byte{255, 30}, data)
				f.Add(uint8(i), side|lossy|holding, []byte{90}, data)
			}
		}
		for side, data := range joined {
			f.Add(uint8(i), uint8(side)|opened|mirrored, []byte{200, 90, 1}, data)
			f.Add(uint8(i), uint8(side)|cut|only, []byte{120}, data)
		}
	}
	f.Fuzz(func(t *testing.T, which, keys uint8, cuts, data []byte) {
		if len(data) > 1<<13 || len(cuts) == 0 || len(cuts) > 64 {
			return
		}
		x := all[int(which)%len(all)]
		s := &scene.Scene{}
		c := s.TCP(x.place(schema.TCP, keys))
		if keys&opened != 0 {
			c.Open()
		}
		const snap = 60
		if keys&cut != 0 {
			s.Snap = 54 + snap
		}
		captured := 0
		sides := []scene.Side{scene.Side(keys & fromServer)}
		if keys&mirrored != 0 {
			sides = append(sides, 1-sides[0])
		}
		for _, from := range sides {
			for i, left := 0, data; len(left) > 0; i++ {
				n := min(int(cuts[i%len(cuts)])+1, len(left))
				if part := string(left[:n]); keys&lossy != 0 && i%5 == 3 {
					c.Lose(from, part)
				} else {
					c.Send(from, part)
					captured += n
					if keys&cut != 0 {
						captured -= max(0, n-snap)
					}
				}
				left = left[n:]
				s.Wait(time.Duration(n) * time.Millisecond)
			}
		}
		result, records := play(t, s, x, keys)
		// NB: of a flow that is nobody's, nothing is counted.
		seen := int(result.Summary.UndecodedBytes)
		for _, r := range records {
			if r.Type == dissect.FrameRecord {
				seen += len(r.Raw) - len(r.Rest)
			}
		}
		if seen < captured && result.Summary.OtherFlows == 0 {
			t.Fatalf("%d of %d bytes are accounted for", seen, captured)
		}
	})
}

// FuzzProtocolDatagrams plays datagrams to each protocol: data is a direction, a length
// and so many bytes, again and again. None of them goes unmentioned.
func FuzzProtocolDatagrams(f *testing.F) {
	all := subjects(f)
	pack := func(side uint8, data []byte) []byte {
		data = data[:min(len(data), 255)]
		return append([]byte{side, byte(len(data))}, data...)
	}
	for i, x := range all {
		var joined []byte
		for _, v := range vectors(f, x.schema.Name, schema.UDP) {
			one := pack(uint8(v.side), v.data[0])
			f.Add(uint8(i), uint8(holding), one)
			f.Add(uint8(i), uint8(strangePort), append(append([]byte{}, one...), one...))
			if len(joined) < 1<<12 {
				joined = append(joined, one...)
			}
		}
		f.Add(uint8(i), uint8(holding), joined)
		f.Add(uint8(i), uint8(only|cut), joined)
		for _, s := range recorded(f, x) {
			var all []byte
			for _, d := range s.data {
				if s.transport == schema.UDP && len(all) < 1<<12 {
					all = append(all, pack(uint8(s.side), d)...)
				}
			}
			f.Add(uint8(i), uint8(holding), all)
		}
	}
	// Sequences of Netrek that come late, in a session of their own.
	late := pack(1, []byte("\x1d\x08\x00\x05\x03\x01\x00\x00\x00\x00\x00\x64"))
	f.Add(uint8(1), uint8(holding|only), append(append([]byte{}, late...), pack(1, []byte("\x1d\x08\x00\x02\x03\x01\x00\x00\x00\x00\x00\x64"))...))
	f.Fuzz(func(t *testing.T, which, keys uint8, data []byte) {
		if len(data) > 1<<13 {
			return
		}
		x := all[int(which)%len(all)]
		s := &scene.Scene{}
		u := s.UDP(x.place(schema.UDP, keys))
		const snap = 60
		if keys&cut != 0 {
			s.Snap = 42 + snap
		}
		sent := map[int]int{} // by packet
		for n := 0; len(data) >= 2 && n < 200; n++ {
			size := min(int(data[1]), len(data)-2)
			u.Send(scene.Side(data[0]&1), string(data[2:2+size]))
			sent[s.Len()] = size
			s.Wait(time.Duration(data[0]>>1) * 20 * time.Millisecond)
			data = data[2+size:]
		}
		result, records := play(t, s, x, keys)
		if result.Summary.OtherFlows > 0 {
			return
		}
		mentioned := map[int]bool{}
		for _, r := range records {
			for _, n := range r.Packets {
				mentioned[n] = true
			}
		}
		silent := 0 // bytes that came before their flow was recognised; they are counted
		for n, size := range sent {
			if !mentioned[n] {
				silent += size
			}
		}
		if len(result.Sessions) > 0 && keys&strangePort == 0 && int64(silent) > result.Summary.UndecodedBytes {
			t.Fatalf("%d bytes go unmentioned, of which %d are counted", silent, result.Summary.UndecodedBytes)
		}
	})
}
