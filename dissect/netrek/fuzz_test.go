package netrek_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"opscope/dissect"
	"opscope/dissect/scene"
)

// seeds adds the byte vectors of one transport.
func seeds(f *testing.F, transport string, add func(data []byte, client bool)) {
	b, err := os.ReadFile("../../testdata/vectors/netrek/vectors.json")
	if err != nil {
		f.Fatal(err)
	}
	var list []struct{ Hex, Transport, Direction string }
	if err := json.Unmarshal(b, &list); err != nil {
		f.Fatal(err)
	}
	for _, v := range list {
		if data, err := hex.DecodeString(v.Hex); err == nil && v.Transport == transport {
			add(data, v.Direction == "c2s")
		}
	}
}

// Whatever comes in a stream, wherever it is cut and joined, each byte of it is in a
// record or counted.
func FuzzNetrekStream(f *testing.F) {
	seeds(f, "tcp", func(data []byte, client bool) {
		f.Add(data, []byte{40, 3}, client, true)
		f.Add(append(data[len(data)/2:], data...), []byte{7}, client, false)
	})
	f.Add([]byte(speed+"\x2a\x00\x00\x00"+direction+shield+"\x00\x00"+bye+speed), []byte{8, 4}, true, true)
	f.Fuzz(func(t *testing.T, data, cuts []byte, client, opened bool) {
		if len(data) > 1<<13 || len(cuts) == 0 {
			return
		}
		s := &scene.Scene{}
		c := s.TCP("10.0.0.2:50111", "10.0.0.1:2592")
		if opened {
			c.Open()
		}
		from := fromS
		if client {
			from = fromC
		}
		total := len(data)
		for i := 0; len(data) > 0; i++ {
			n := min(int(cuts[i%len(cuts)])+1, len(data))
			c.Send(from, string(data[:n]))
			data = data[n:]
		}
		out := s.Play(t, known)
		seen := int(out.Result.Summary.UndecodedBytes)
		for _, r := range out.Frames() {
			seen += len(r.Raw) - len(r.Rest)
			if r.Size < len(r.Raw) || r.Offset < 0 || len(r.Rest) > len(r.Raw) {
				t.Errorf("%s: %d bytes at %d, %d captured", scene.Line(r), r.Size, r.Offset, len(r.Raw))
			}
		}
		if seen != total {
			t.Errorf("%d of %d bytes are accounted for\n%s", seen, total, out)
		}
	})
}

// Whatever comes in datagrams, each byte of it is in a record.
func FuzzNetrekDatagrams(f *testing.F) {
	seeds(f, "udp", func(data []byte, client bool) {
		f.Add(data, client, uint8(0))
		f.Add(append([]byte(sequence(1)), data...), client, uint8(3))
	})
	f.Add([]byte("s,I,Two,2,4566,1,0,4577,0,0\n"), false, uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, client bool, snap uint8) {
		if len(data) > 1<<11 {
			return
		}
		g := onUDP()
		before := g.Len()
		from := fromS
		if client {
			from = fromC
		}
		if snap > 0 {
			g.Snap = 42 + int(snap)
		}
		g.udp.Send(from, string(data))
		g.udp.Send(from, string(data))
		seen := map[int]int{}
		for _, r := range g.Play(t, dissect.Options{Protocols: known.Protocols}).Frames() {
			seen[r.Packets[0]] += len(r.Raw)
			if r.Packets[0] > before && (len(r.Rest) > len(r.Raw) || r.Size < len(r.Raw)) {
				t.Errorf("%s: %d bytes, %d captured, %d left over", scene.Line(r), r.Size, len(r.Raw), len(r.Rest))
			}
		}
		want := len(data)
		if snap > 0 {
			want = min(want, int(snap))
		}
		for _, n := range []int{before + 1, before + 2} {
			if seen[n] != want {
				t.Errorf("packet %d: %d of %d bytes are in records", n, seen[n], want)
			}
		}
	})
}
