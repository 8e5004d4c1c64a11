package mmo_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"opscope/dissect"
	"opscope/dissect/scene"
	"opscope/dissect/sink"
)

// newTraffic is an endless game: an opening, then rounds of segments and datagrams whose
// sequences rise.
func newTraffic(until int64) *scene.Endless {
	g := onUDP()
	round := &scene.Scene{}
	tcp, udp := *g.tcp, *g.udp
	tcp.Ends, udp.Ends = round.Over(tcp.Ends), round.Over(udp.Ends)
	const perRound = 4
	for i := range perRound {
		tcp.Send(fromC, frame(0x0231, "\x08", padded(i)), frame(0x0221, text(1, "hello")))
		udp.Send(fromC, frame(0x0211, "\x08", padded(i)))
		tcp.Send(fromS, frame(0x0232, "\x18", padded(i)), frame(4, "\x08\x01"), frame(0x0241, varint(1, 9), text(2, "a monster")), frame(0x0251, "\x08\x01")[:5])
		tcp.Send(fromC, frame(5, "\x08\x01"))
		tcp.Send(fromS, frame(0x0251, "\x08\x01")[5:], frame(3, varint(1, 0x0221), varint(2, 3)))
		udp.Send(fromS, batch(1001, i, 1000, 4, 1002, 7))
	}
	e := scene.NewEndless(&g.Scene, round, until)
	e.Change = func(packet []byte, _, turn int) { count(packet, turn*perRound) }
	return e
}

// padded is a number as a varint of five bytes, which it need not have.
func padded(v int) string {
	return string([]byte{byte(v | 0x80), byte(v>>7 | 0x80), byte(v>>14 | 0x80), byte(v>>21 | 0x80), byte(v >> 28)})
}

// count raises the sequences of what a packet carries.
func count(data []byte, by int) {
	for _, head := range []string{"\x31\x02\x08", "\x11\x02\x08", "\x32\x02\x18"} {
		if i := bytes.Index(data, []byte(head)); i >= 0 {
			at := data[i+3 : i+8]
			copy(at, padded(int(at[0]&0x7f)+by))
		}
	}
	if i := bytes.Index(data, []byte("\x13\x02\x03\x00")); i >= 0 {
		at := data[i+14+8 : i+14+12]
		binary.LittleEndian.PutUint32(at, uint32(int(at[0])+by))
	}
}

// After its first rounds a session decodes frames, pairs requests with answers, and looks
// for its tokens in what is printed, without allocating.
func TestAllocations(t *testing.T) {
	for name, to := range map[string]dissect.Sink{
		"counted": &scene.Counter{}, "as text": sink.NewText(io.Discard, sink.TextOptions{Verbosity: 2, Hex: true}),
		"as NDJSON": sink.NewNDJSON(io.Discard, sink.NDJSONOptions{Raw: true}),
	} {
		t.Run(name, func(t *testing.T) { scene.Spares(t, known, to, newTraffic(8<<20)) })
	}
}

func BenchmarkMMO(b *testing.B) { scene.Benchmark(b, known, newTraffic) }
