package netrek_test

import (
	"encoding/binary"
	"testing"

	"opscope/dissect/scene"
)

// newTraffic is an endless game: an opening, then rounds of segments and datagrams whose
// sequences rise.
func newTraffic(until int64) *scene.Endless {
	g := onUDP()
	round := &scene.Scene{}
	tcp, udp := *g.tcp, *g.udp
	tcp.Ends, udp.Ends = round.Over(tcp.Ends), round.Over(udp.Ends)
	const times, packets = 4, 5
	for range times {
		tcp.Send(fromS, player, kills, mask, player, player[:5])
		tcp.Send(fromS, player[5:], you(), pstatus)
		udp.Send(fromS, sequence(0), player, kills, player, big11, you())
		udp.Send(fromC, speed)
		tcp.Send(fromC, direction, shield, speed)
	}
	e := scene.NewEndless(&g.Scene, round, until)
	e.Change = func(packet []byte, at, turn int) {
		if at%packets == 2 { // the datagram with the sequence
			const sequenceAt = 14 + 20 + 8 + 2
			binary.BigEndian.PutUint16(packet[sequenceAt:], uint16(turn*times+at/packets+1))
		}
	}
	return e
}

// After its first rounds a session decodes packets without allocating.
func TestAllocations(t *testing.T) {
	var c scene.Counter
	if scene.Spares(t, known, &c, newTraffic(8<<20)); c.Errors > 0 {
		t.Errorf("%d errors", c.Errors)
	}
}

func BenchmarkNetrek(b *testing.B) { scene.Benchmark(b, known, newTraffic) }
