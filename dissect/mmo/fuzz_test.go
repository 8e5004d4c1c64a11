package mmo_test

import (
	"testing"

	"opscope/dissect"
	"opscope/dissect/mmo"
	"opscope/dissect/scene"
)

// forced takes everything for the game.
func forced() dissect.Options {
	o := known
	o.Only = mmo.Protocol{}
	return o
}

// Whatever comes in a stream, wherever it is cut and joined, each byte of it is in a
// record or counted; and no record is of bytes behind a size that no frame has.
func FuzzMMOStream(f *testing.F) {
	scene.Vectors(f, "mmo", "tcp", func(data []byte, client bool) {
		f.Add(data, []byte{40, 3}, client, true)
		f.Add(append(data[len(data)/2:], data...), []byte{7}, client, false)
	})
	f.Add([]byte(enter(1001)+"\x02\x00\x00\x00"+frame(5)), []byte{8, 4}, true, true)
	f.Fuzz(func(t *testing.T, data, cuts []byte, client, opened bool) {
		if len(data) > 1<<13 || len(cuts) == 0 {
			return
		}
		s := &scene.Scene{}
		c := s.TCP("10.0.0.2:50111", "10.0.0.1:41000")
		if opened {
			c.Open()
		}
		from := fromS
		if client {
			from = fromC
		}
		c.SendCut(from, data, cuts)
		out := s.Play(t, forced())
		out.Accounts(t, len(data))
		lost := false
		for _, r := range out.Frames() {
			if lost && r.Direction != dissect.UnknownDirection {
				t.Errorf("%s: after the framing was lost", scene.Line(r))
			}
			for _, n := range r.Notes {
				lost = lost || n.Code == "frame_size_too_small" || n.Code == "frame_size_too_large"
			}
		}
	})
}

// Whatever comes in datagrams, each byte of it is in a record.
func FuzzMMODatagrams(f *testing.F) {
	scene.Vectors(f, "mmo", "udp", func(data []byte, client bool) {
		f.Add(data, client, uint8(0))
		f.Add(append(data, data...), client, uint8(3))
	})
	f.Add([]byte(move(1)+move(2)+"\x01\x02\x03"), true, uint8(0))
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
		want := len(data)
		if snap > 0 {
			want = min(want, int(snap))
		}
		g.Play(t, forced()).AccountsDatagrams(t, want, before+1, before+2)
	})
}
