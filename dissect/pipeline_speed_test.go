package dissect_test

import (
	"context"
	"io"
	"runtime"
	"testing"
	"time"

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

// traffic is an endless capture of sessions that play: frames over TCP whole and
// cut, raw records, several to a datagram, sequenced ones with their
// acknowledgements. It makes its packets as they are asked for, in one buffer.
type traffic struct {
	opening dissect.Source // what comes first
	round   []packet       // what comes again and again
	next    int
	number  int
	turn    int
	now     time.Time
	bytes   int64
	until   int64 // bytes
	buf     []byte
}

// packet is one of a round. Its numbers rise from round to round.
type packet struct {
	data []byte
	tcp  int   // where the TCP sequence number stands, 0 for none
	step int   // what it rises by
	seqs []int // where sequences of records stand
	rise []int // what they rise by
}

func (s *traffic) Next(p *dissect.Packet) error {
	if s.opening != nil {
		if err := s.opening.Next(p); err != io.EOF {
			s.number, s.now = p.Number, p.Time
			return err
		}
		s.opening = nil
	}
	if s.bytes >= s.until && s.next == 0 { // a whole round, so that nothing is left open
		return io.EOF
	}
	k := &s.round[s.next]
	s.buf = append(s.buf[:0], k.data...)
	if k.tcp > 0 {
		add32(s.buf[k.tcp:], s.turn*k.step)
	}
	for i, at := range k.seqs {
		v := (int(s.buf[at])<<8 | int(s.buf[at+1]) + s.turn*k.rise[i]) % 65535
		s.buf[at], s.buf[at+1] = byte(v>>8), byte(v)
	}
	if s.next++; s.next == len(s.round) {
		s.next = 0
		s.turn++
	}
	s.number++
	s.now = s.now.Add(time.Millisecond)
	*p = dissect.Packet{Number: s.number, Time: s.now, Digits: 6, Data: s.buf, Length: len(s.buf), Link: 1}
	s.bytes += int64(len(s.buf))
	return nil
}

func add32(b []byte, n int) {
	v := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	v += uint32(n)
	b[0], b[1], b[2], b[3] = byte(v>>24), byte(v>>16), byte(v>>8), byte(v)
}

// newTraffic returns traffic of some bytes.
func newTraffic(until int64) *traffic {
	s := &scene.Scene{}
	c, u := s.TCP("10.0.0.2:50111", "10.0.0.1:2627"), s.UDP("10.0.0.2:50112", "10.0.0.1:2627")
	c.Open()
	c.Send(scene.Server, scene.AsFrame(scene.HelloUDP(2627)), scene.AsFrame(scene.HelloKey("Key1")))
	u.Send(scene.Client, scene.HelloThere, scene.EchoKey("Key1"))
	c.Send(scene.Server, scene.AsFrame(scene.Behavior()))
	c.Send(scene.Server, scene.AsFrame(scene.Translation(4)))
	u.Send(scene.Client, scene.Original(1000))
	u.Send(scene.Server, scene.Forge(2000))
	t := &traffic{opening: s.Source(), until: until}

	round := &scene.Scene{}
	c.Ends, u.Ends = round.Over(c.Ends), round.Over(u.Ends)
	start := c.Next
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
	for _, p := range round.Packets() {
		k := packet{data: p.Data}
		if p.Data[23] == 6 {
			k.tcp, k.step = 38, int(c.Next[scene.Server]-start[scene.Server])
		}
		t.round = append(t.round, k)
	}
	const body = 14 + 20 + 8
	rise := func(i, at, by int) {
		t.round[i].seqs = append(t.round[i].seqs, body+at)
		t.round[i].rise = append(t.round[i].rise, by)
	}
	rise(2, 1, 1)
	rise(3, 1, 2)
	rise(3, 7, 1)
	rise(4, 3, 2)
	rise(7, 1, 1)
	rise(8, 1, 2)
	rise(8, 7, 1)
	rise(9, 3, 2)
	return t
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
	for name, o := range map[string]dissect.Options{"without holding": {}, "holding": {Hold: dissect.DefaultHold}, "with the guard": {Guard: true}} {
		t.Run(name, func(t *testing.T) {
			o.Protocols = protocols.All
			const warm, more = 4 << 20, 8 << 20
			var before, after runtime.MemStats
			var d discard
			var records int
			src := newTraffic(more)
			watch := sourceFunc(func(p *dissect.Packet) error {
				if src.bytes >= warm && records == 0 {
					records = d.records
					runtime.ReadMemStats(&before)
				}
				return src.Next(p)
			})
			playInto(t, &d, watch, o)
			runtime.ReadMemStats(&after)
			n := after.Mallocs - before.Mallocs
			t.Logf("%d allocations for %d records", n, d.records-records)
			if n > uint64(d.records-records)/1000 {
				t.Errorf("got %d allocations for %d records, want none per record", n, d.records-records)
			}
		})
	}
}

type sourceFunc func(p *dissect.Packet) error

func (f sourceFunc) Next(p *dissect.Packet) error { return f(p) }

func BenchmarkPipeline(b *testing.B) {
	for name, o := range map[string]dissect.Options{"hold=0": {}, "hold=2s": {Hold: dissect.DefaultHold}, "guard": {Guard: true}} {
		b.Run(name, func(b *testing.B) {
			o.Protocols = protocols.All
			const size = 16 << 20
			b.SetBytes(size)
			records := 0
			for b.Loop() {
				var d discard
				playInto(b, &d, newTraffic(size), o)
				records += d.records
			}
			b.ReportMetric(float64(records)/b.Elapsed().Seconds()/1e6, "Mrec/s")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(records), "ns/rec")
		})
	}
}
