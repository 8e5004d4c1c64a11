package mmo_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"runtime"
	"testing"
	"time"

	"opscope/dissect"
	"opscope/dissect/internal/scene"
	"opscope/dissect/sink"
)

// counter is a sink that counts.
type counter struct{ records, errors int }

func (c *counter) Write(r *dissect.Record) error {
	if r.Type == dissect.FrameRecord {
		c.records++
	}
	if r.Err != nil {
		c.errors++
	}
	return nil
}

func (c *counter) Flush() error { return nil }

// traffic is an endless game: an opening, then rounds of segments and datagrams whose
// sequences rise.
type traffic struct {
	opening dissect.Source
	round   []dissect.Packet
	turn    int
	next    int
	number  int
	now     time.Time
	bytes   int64
	until   int64
	grows   [2]int // what TCP sequences rise by in a round, by side
	buf     []byte
}

func newTraffic(until int64) *traffic {
	g := onUDP()
	t := &traffic{opening: g.Source(), until: until}
	round := &scene.Scene{}
	tcp, udp := *g.tcp, *g.udp
	tcp.Ends, udp.Ends = round.Over(tcp.Ends), round.Over(udp.Ends)
	start := tcp.Next
	for i := range perRound {
		tcp.Send(fromC, frame(0x0231, "\x08", padded(i)), frame(0x0221, text(1, "hello")))
		udp.Send(fromC, frame(0x0211, "\x08", padded(i)))
		tcp.Send(fromS, frame(0x0232, "\x18", padded(i)), frame(4, "\x08\x01"), frame(0x0241, varint(1, 9), text(2, "a monster")), frame(0x0251, "\x08\x01")[:5])
		tcp.Send(fromC, frame(5, "\x08\x01"))
		tcp.Send(fromS, frame(0x0251, "\x08\x01")[5:], frame(3, varint(1, 0x0221), varint(2, 3)))
		udp.Send(fromS, batch(1001, i, 1000, 4, 1002, 7))
	}
	t.round = round.Packets()
	for side := range t.grows {
		t.grows[side] = int(tcp.Next[side] - start[side])
	}
	return t
}

const (
	perRound    = 4
	tcpSequence = 14 + 20 + 4
)

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

func (s *traffic) Next(p *dissect.Packet) error {
	if s.opening != nil {
		if err := s.opening.Next(p); err != io.EOF {
			s.number, s.now = p.Number, p.Time
			return err
		}
		s.opening = nil
	}
	if s.bytes >= s.until && s.next == 0 {
		return io.EOF
	}
	data := s.round[s.next].Data
	s.buf = append(s.buf[:0], data...)
	count(s.buf, s.turn*perRound)
	if data[23] == 6 {
		side := fromC
		if data[14+12+3] == 1 {
			side = fromS
		}
		rise(s.buf[tcpSequence:tcpSequence+4], s.turn*s.grows[side])
	}
	if s.next++; s.next == len(s.round) {
		s.next, s.turn = 0, s.turn+1
	}
	s.number++
	s.now = s.now.Add(time.Millisecond)
	*p = dissect.Packet{Number: s.number, Time: s.now, Digits: 6, Data: s.buf, Length: len(s.buf), Link: 1}
	s.bytes += int64(len(s.buf))
	return nil
}

// rise adds to a big-endian number.
func rise(b []byte, n int) {
	for i := len(b) - 1; i >= 0; i-- {
		n += int(b[i])
		b[i] = byte(n)
		n >>= 8
	}
}

func run(tb testing.TB, to dissect.Sink, src dissect.Source) *dissect.Result {
	tb.Helper()
	r, err := dissect.NewPipeline(to, known).Run(context.Background(), src)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

type sourceFunc func(p *dissect.Packet) error

func (f sourceFunc) Next(p *dissect.Packet) error { return f(p) }

// After its first rounds a session decodes frames, pairs requests with answers, and looks
// for its tokens in what is printed, without allocating.
func TestAllocations(t *testing.T) {
	const warm, more = 4 << 20, 8 << 20
	for name, to := range map[string]dissect.Sink{
		"counted": &counter{}, "as text": sink.NewText(io.Discard, sink.TextOptions{Verbosity: 2, Hex: true}),
		"as NDJSON": sink.NewNDJSON(io.Discard, sink.NDJSONOptions{Raw: true}),
	} {
		var before, after runtime.MemStats
		src := newTraffic(more)
		packets, warmed := 0, 0
		r := run(t, to, sourceFunc(func(p *dissect.Packet) error {
			if packets++; src.bytes >= warm && warmed == 0 {
				warmed = packets
				runtime.ReadMemStats(&before)
			}
			return src.Next(p)
		}))
		runtime.ReadMemStats(&after)
		n, of := after.Mallocs-before.Mallocs, packets-warmed
		t.Logf("%s: %d allocations for %d packets, %d records, notes %v", name, n, of, r.Summary.Records["mmo"], r.Summary.Notes)
		if n > uint64(of)/1000 {
			t.Errorf("%s: got %d allocations for %d packets, want none per record", name, n, of)
		}
	}
}

func BenchmarkMMO(b *testing.B) {
	const size = 16 << 20
	b.SetBytes(size)
	records := 0
	for b.Loop() {
		var c counter
		run(b, &c, newTraffic(size))
		records += c.records
	}
	b.ReportMetric(float64(records)/b.Elapsed().Seconds()/1e6, "Mrec/s")
}
