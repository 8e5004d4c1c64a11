package dissect_test

import (
	"context"
	"encoding/binary"
	"testing"

	"opscope/dissect"
	"opscope/dissect/protocols"
	"opscope/dissect/scene"
)

// discard is a sink that counts.
type discard struct{ records, others, notes int }

func (d *discard) Write(r *dissect.Record) error {
	if r.Type == dissect.FrameRecord {
		d.records++
	} else {
		d.others++
	}
	d.notes += len(r.Notes)
	return nil
}

func (d *discard) Flush() error { return nil }

// newTraffic is an endless capture of a session that plays: frames over TCP whole and cut,
// raw records, several to a datagram, sequenced ones with their acknowledgements.
func newTraffic(until int64) *scene.Endless {
	s := &scene.Scene{}
	c, u := s.TCP("10.0.0.2:50111", "10.0.0.1:2627"), s.UDP("10.0.0.2:50112", "10.0.0.1:2627")
	c.Open()
	c.Send(scene.Server, scene.AsFrame(scene.HelloUDP(2627)), scene.AsFrame(scene.HelloKey("Key1")))
	u.Send(scene.Client, scene.HelloThere, scene.EchoKey("Key1"))
	c.Send(scene.Server, scene.AsFrame(scene.Behavior()))
	c.Send(scene.Server, scene.AsFrame(scene.Translation(4)))
	u.Send(scene.Client, scene.Original(1000))
	u.Send(scene.Server, scene.Forge(2000))

	round := &scene.Scene{}
	c.Ends, u.Ends = round.Over(c.Ends), round.Over(u.Ends)
	view := scene.View
	chat := scene.AsFrame(scene.Numbered(7))
	c.Send(scene.Server, chat, chat, chat[:20])
	c.Send(scene.Server, chat[20:], chat)
	u.Send(scene.Client, scene.Viewpoint(1, -1), "\x40\x00\x00\x00\x07")
	u.Send(scene.Server, scene.Sequenced(0x02, 1, scene.Ack(0x35, 1)[1:]))
	u.Send(scene.Client, scene.Ack(0x02, 1))
	u.Send(scene.Server, view)
	u.Send(scene.Server, "\x0b\x00\x00\x00\x07", view)
	u.Send(scene.Client, scene.Chat(1, "hello there"))
	u.Send(scene.Server, scene.Sequenced(0x02, 2, scene.Ack(0x20, 1)[1:]))
	u.Send(scene.Client, scene.Ack(0x02, 2))
	e := scene.NewEndless(s, round, until)
	e.Change = func(packet []byte, at, turn int) {
		for _, q := range sequences[at] {
			const body = 14 + 20 + 8
			v := packet[body+q.at:]
			binary.BigEndian.PutUint16(v, uint16((int(binary.BigEndian.Uint16(v))+turn*q.rise)%65535))
		}
	}
	return e
}

// sequences says where the packets of a round have sequences of records, and what they rise
// by in a round.
var sequences = map[int][]struct{ at, rise int }{
	2: {{1, 1}}, 3: {{1, 2}, {7, 1}}, 4: {{3, 2}}, 7: {{1, 1}}, 8: {{1, 2}, {7, 1}}, 9: {{3, 2}},
}

// playInto plays a source into a sink.
func playInto(tb testing.TB, sink dissect.Sink, src dissect.Source, o dissect.Options) *dissect.Result {
	tb.Helper()
	r, err := dissect.NewPipeline(sink, o).Run(context.Background(), src)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// The traffic is what the other tests here take it for.
func TestTrafficIsSound(t *testing.T) {
	out := &scene.Output{}
	r := playInto(t, out, newTraffic(20_000), known)
	notes := r.Summary.Notes
	if len(notes) > 0 || r.Summary.Errors != [3]int{} || r.Summary.UndecodedBytes != 0 {
		t.Errorf("got notes %v, errors %v, %d bytes undecoded\n%s", notes, r.Summary.Errors, r.Summary.UndecodedBytes, out)
	}
}

// After its first rounds a pipeline takes packets without allocating.
func TestPipelineAllocations(t *testing.T) {
	for name, o := range map[string]dissect.Options{"without holding": {}, "holding": {Hold: dissect.DefaultHold},
		"in haste": {Hold: dissect.DefaultHold, Look: dissect.LookKind}, "with the guard": {Guard: true}} {
		t.Run(name, func(t *testing.T) {
			o.Protocols = protocols.All
			scene.Spares(t, o, &scene.Counter{}, newTraffic(8<<20))
		})
	}
}

type sourceFunc func(p *dissect.Packet) error

func (f sourceFunc) Next(p *dissect.Packet) error { return f(p) }

func BenchmarkPipeline(b *testing.B) {
	for name, o := range map[string]dissect.Options{"hold=0": {}, "hold=2s": {Hold: dissect.DefaultHold}, "guard": {Guard: true}} {
		b.Run(name, func(b *testing.B) {
			o.Protocols = protocols.All
			scene.Benchmark(b, o, newTraffic)
		})
	}
}
