package dissect_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"opscope/dissect"
	"opscope/dissect/scene"
)

// seeds adds the byte vectors of the protocol, where they are at hand.
func seeds(f *testing.F, transport string, add func(data []byte)) {
	b, err := os.ReadFile(filepath.Join("..", "..", "shared", "vectors", "wulfram.json"))
	if err != nil {
		return
	}
	var list []struct{ Hex, Transport string }
	if err := json.Unmarshal(b, &list); err != nil {
		f.Fatal(err)
	}
	for _, v := range list {
		if data, err := hex.DecodeString(v.Hex); err == nil && v.Transport == transport {
			add(data)
		}
	}
}

// datagrams takes fuzzed bytes apart: a direction, a length, and so many bytes.
func datagrams(data []byte, send func(from scene.Side, payload string)) {
	for len(data) >= 2 && len(data) < 1<<16 {
		from, n := scene.Side(data[0]&1), min(int(data[1]), len(data)-2)
		send(from, string(data[2:2+n]))
		data = data[2+n:]
	}
}

// Whatever comes in datagrams, each byte of it is in a record, or is the prefix that
// a record says to be there.
func FuzzPipelineDatagrams(f *testing.F) {
	seeds(f, "udp", func(data []byte) {
		if len(data) < 256 {
			f.Add(append([]byte{0, byte(len(data))}, data...), true)
			f.Add(append([]byte{1, byte(len(data))}, data...), false)
		}
	})
	for _, s := range []string{
		scene.Viewpoint(1, -1) + feedback, scene.View, scene.Ack(0x35, 1), "\x00\x07" + feedback, "\xff\xff" + feedback,
		scene.Sequenced(2, 1, "\x01\x35\x00\x01"), "\x0d\x02\x00\x01\x98\x8c\x19\x54\x3f\xf9\x41\x4e\x40",
	} {
		f.Add([]byte("\x00"+string([]byte{byte(len(s))})+s+"\x01"+string([]byte{byte(len(s))})+s), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, taught bool) {
		s := &scene.Scene{}
		c, u := opening(s)
		if taught {
			c.Send(fromS, scene.AsFrame(scene.Behavior()))
			c.Send(fromS, scene.AsFrame(scene.Translation(4)))
			u.Send(fromC, scene.Original(1))
			u.Send(fromS, scene.Forge(1))
		}
		sent := map[int]int{} // by packet
		datagrams(data, func(from scene.Side, payload string) {
			u.Send(from, payload)
			sent[s.Len()] = len(payload)
			s.Wait(time.Duration(len(payload)) * 10 * time.Millisecond)
		})
		for _, o := range []dissect.Options{known, {Protocols: known.Protocols}} {
			out := s.Play(t, o)
			seen := map[int]int{}
			for _, r := range out.Frames() {
				seen[r.Packets[0]] += len(r.Raw)
				for _, n := range r.Notes {
					switch n.Code {
					case "delimiter_skipped", "size_prefix", "size_prefix_ambiguous":
						if r.Message != "empty" {
							seen[r.Packets[0]] += 2
						}
					}
				}
				if len(r.Rest) > len(r.Raw) || r.Size < len(r.Raw) {
					t.Errorf("%s: %d bytes, %d captured, %d left over", scene.Line(r), r.Size, len(r.Raw), len(r.Rest))
				}
			}
			for packet, n := range sent {
				if seen[packet] != n {
					t.Errorf("packet %d: %d of %d bytes are in records\n%s", packet, seen[packet], n, out)
				}
			}
		}
	})
}

// Whatever comes in a stream, however it is cut and whatever is lost of it, each
// byte that was captured is in a record or counted.
func FuzzPipelineStream(f *testing.F) {
	seeds(f, "tcp", func(data []byte) { f.Add(data, []byte{40, 3, 0x82}, true, uint8(0)) })
	f.Add([]byte(lines(1, 4)+garbage+lines(5, 9)), []byte{30}, true, uint8(0))
	f.Add([]byte(lines(1, 4)+garbage+lines(5, 9)), []byte{1}, true, uint8(0))
	f.Add([]byte(lines(1, 9)), []byte{50, 50, 0x90}, false, uint8(0))
	f.Add([]byte(lines(1, 9)), []byte{100, 70}, true, uint8(30))
	f.Fuzz(func(t *testing.T, data, cuts []byte, opened bool, snap uint8) {
		if len(data) > 1<<14 || len(cuts) == 0 {
			return
		}
		s := &scene.Scene{}
		c := s.TCP(client, server)
		if opened {
			c.Open()
		}
		if snap > 0 {
			s.Snap = 54 + int(snap)
		}
		captured := 0
		for i := 0; len(data) > 0; i++ {
			cut := cuts[i%len(cuts)]
			n := min(int(cut&0x7f)+1, len(data))
			if cut&0x80 != 0 && i%3 == 1 {
				c.Lose(fromS, string(data[:n]))
			} else {
				c.Send(fromS, string(data[:n]))
				captured += n
				if snap > 0 {
					captured -= max(0, n-int(snap))
				}
			}
			data = data[n:]
		}
		if cuts[0]&1 != 0 {
			c.Segment(fromS, scene.FIN|scene.ACK, "")
		}
		out := s.Play(t, known)
		seen := int(out.Result.Summary.UndecodedBytes)
		for _, r := range out.Frames() {
			seen += len(r.Raw) - len(r.Rest)
			if r.Size < len(r.Raw) || r.Offset < 0 {
				t.Errorf("%s: %d bytes at %d, %d captured", scene.Line(r), r.Size, r.Offset, len(r.Raw))
			}
		}
		if seen != captured {
			t.Errorf("%d of %d bytes are accounted for\n%s", seen, captured, out)
		}
	})
}
