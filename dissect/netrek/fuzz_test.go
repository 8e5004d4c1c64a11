package netrek_test

import (
	"testing"

	"opscope/dissect"
	"opscope/dissect/scene"
)

// Whatever comes in a stream, wherever it is cut and joined, each byte of it is in a
// record or counted.
func FuzzNetrekStream(f *testing.F) {
	scene.Vectors(f, "netrek", "tcp", func(data []byte, client bool) {
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
		c.SendCut(from, data, cuts)
		s.Play(t, known).Accounts(t, len(data))
	})
}

// Whatever comes in datagrams, each byte of it is in a record.
func FuzzNetrekDatagrams(f *testing.F) {
	scene.Vectors(f, "netrek", "udp", func(data []byte, client bool) {
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
		want := len(data)
		if snap > 0 {
			want = min(want, int(snap))
		}
		g.Play(t, dissect.Options{Protocols: known.Protocols}).AccountsDatagrams(t, want, before+1, before+2)
	})
}
