package reassembly

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

// oracle knows the whole stream, and marks what of it the capture shows.
type oracle struct {
	stream   []byte
	captured []bool
}

func newOracle(size int, seed byte) *oracle {
	o := &oracle{stream: make([]byte, size), captured: make([]bool, size)}
	x := uint32(seed)*2654435761 + 1
	for i := range o.stream {
		x = x*1664525 + 1013904223
		o.stream[i] = byte(x >> 24)
	}
	return o
}

// show returns the bytes from off to end, and marks them as captured.
func (o *oracle) show(off, end int) []byte {
	for i := off; i < end; i++ {
		o.captured[i] = true
	}
	return o.stream[off:end]
}

// witness is a Handler that holds one direction against an oracle.
type witness struct {
	t     *testing.T
	o     *oracle
	next  int64
	gap   []bool // bytes reported missing
	ended int
}

func (w *witness) Chunk(c *Chunk) {
	if c.Offset != w.next || len(c.Data) == 0 {
		w.t.Fatalf("chunk of %d bytes at %d, want it at %d", len(c.Data), c.Offset, w.next)
	}
	for i, b := range c.Data {
		if want := w.o.stream[w.next+int64(i)]; b != want {
			w.t.Fatalf("byte %d is %#02x, want %#02x", w.next+int64(i), b, want)
		}
	}
	w.next += int64(len(c.Data))
}

func (w *witness) Gap(g Gap) {
	if g.Offset != w.next || g.Bytes <= 0 {
		w.t.Fatalf("gap of %d bytes at %d, want it at %d", g.Bytes, g.Offset, w.next)
	}
	for i := range g.Bytes {
		w.gap[g.Offset+i] = true
	}
	w.next += g.Bytes
}

func (w *witness) Event(e Event) {
	switch e.Kind {
	case Conflict, BeforeStart, OutOfWindow, AfterClose, MisplacedFIN, Joined, PortReused:
		w.t.Fatalf("%s at %d+%d, and nothing of the kind happened", e.Kind, e.Offset, e.Bytes)
	case Closed:
		w.ended++
	}
}

// FuzzConn plays a known stream in segments that the input chooses: 5 bytes each
// for where, how long, how much of it captured, and how much later. What is
// delivered must be the stream; what is not must be in gaps, and without cut
// segments and limits exactly what was never captured.
func FuzzConn(f *testing.F) {
	f.Add(uint32(99), uint16(20), byte(0), []byte{0, 0, 4, 0, 0, 0, 8, 4, 0, 0, 0, 4, 4, 0, 0})
	f.Add(uint32(0xFFFFFFFB), uint16(12), byte(0), []byte{0, 0, 8, 0, 0, 0, 0, 12, 0, 0})
	f.Add(uint32(0xFFFFFF00), uint16(2000), byte(1), []byte{0, 0, 255, 100, 0, 1, 0, 255, 0, 9, 0, 200, 255, 3, 1})
	f.Add(uint32(0xFFFFFFF0), uint16(60), byte(2), []byte{0, 40, 9, 0, 0, 0, 10, 9, 0, 0, 0, 5, 30, 0, 200, 0, 0, 9, 0, 0})
	f.Fuzz(testKnownStream)
}

// The fuzzer finds the corners; this goes through the middle, the same way each
// time.
func TestConnAgainstKnownStreams(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 3000 {
		size := uint16(random.IntN(1 << random.IntN(12)))
		script := make([]byte, 5*random.IntN(80))
		for i := range script {
			script[i] = byte(random.Uint32())
			if i%5 == 2 {
				script[i] >>= random.IntN(8)
			}
		}
		isn, mode := -random.Uint32N(2*uint32(size)+2), byte(random.Uint32())
		t.Run(strconv.Itoa(i), func(t *testing.T) { testKnownStream(t, isn, size, mode, script) })
	}
}

func testKnownStream(t *testing.T, isn uint32, size uint16, mode byte, script []byte) {
	const segment = 5
	cuts, limits := mode&1 != 0, mode&2 != 0
	o := newOracle(int(size), mode)
	w := &witness{t: t, o: o, gap: make([]bool, size)}
	a := &Assembler{Options: Options{History: int(mode >> 2)}}
	if limits {
		a.Options.HeldBytes, a.Options.HeldSegments = 4*heldOverhead, 3
		a.Options.TotalBytes = 2 * heldOverhead
	}
	c := a.Connection(w)
	at := epoch
	add := func(g Segment) {
		g.Time = at
		if limits {
			a.Tick(at)
		}
		if !c.Add(&g) {
			t.Fatalf("segment %+v is taken for a new connection", g)
		}
	}
	add(Segment{Seq: isn, Flags: SYN})
	for n := 1; len(script) >= segment; n++ {
		off := int(binary.BigEndian.Uint16(script))
		length, loss, wait := int(script[2]), int(script[3]), time.Duration(script[4])
		script = script[segment:]
		off %= int(size) + 1
		end := min(off+length, int(size))
		seen := end
		if cuts {
			seen = max(off, end-loss)
		}
		if limits {
			at = at.Add(wait * 20 * time.Millisecond)
		}
		g := Segment{Seq: isn + 1 + uint32(off), Length: end - off, Packet: n}
		if end == int(size) && loss&1 != 0 {
			g.Flags = FIN
		}
		if single := end-off == 1 && g.Flags == 0; single && !o.captured[off] && cuts {
			continue // looks like a keep-alive when its byte was cut before
		}
		g.Payload = append([]byte(nil), o.show(off, seen)...)
		add(g)
		clear(g.Payload) // borrowed, and not to be read again
	}
	add(Segment{Seq: isn + 1 + uint32(size), Flags: FIN})
	c.Flush()
	if w.next != int64(size) || w.ended != 1 {
		t.Fatalf("ended %d times, at %d, want once at %d", w.ended, w.next, size)
	}
	if a.held != 0 || a.waiting.first != nil {
		t.Fatalf("%d bytes are held after the end", a.held)
	}
	for i := range w.gap {
		if !w.gap[i] && !o.captured[i] || w.gap[i] && o.captured[i] && !cuts && !limits {
			t.Fatalf("byte %d: captured %t, in a gap %t", i, o.captured[i], w.gap[i])
		}
	}
}

// FuzzConnAnything gives arbitrary segments of both sides to a Conn: whatever
// they say, offsets go up without a hole, memory is bounded, and nothing panics.
func FuzzConnAnything(f *testing.F) {
	f.Add([]byte{0, 2, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 1, 18, 0, 0, 0, 9, 0, 0, 0, 10, 3, 0})
	f.Add([]byte{0, 0, 255, 255, 255, 250, 0, 0, 0, 0, 9, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 10, 0, 3})
	f.Fuzz(func(t *testing.T, script []byte) {
		const segment = 12
		a := &Assembler{Options: Options{HeldBytes: 1 << 10, HeldSegments: 4, TotalBytes: 2 << 10, History: 16}}
		var r transcript
		c := a.Connection(&r)
		var payload [255]byte
		at := epoch
		for n := 1; len(script) >= segment; n++ {
			g := Segment{
				Side: Side(script[0] & 1), Flags: Flags(script[1]),
				Seq: binary.BigEndian.Uint32(script[2:]), Ack: binary.BigEndian.Uint32(script[6:]),
				Payload: payload[:script[10]], Length: int(script[11]), Packet: n,
			}
			at = at.Add(time.Duration(script[0]>>1) * 10 * time.Millisecond)
			g.Time = at
			script = script[segment:]
			a.Tick(at)
			if !c.Add(&g) {
				r = transcript{}
				c = a.Connection(&r)
				if !c.Add(&g) {
					t.Fatalf("segment %+v is refused by a new connection", g)
				}
			}
			if a.held > 2<<10+heldOverhead+256 {
				t.Fatalf("%d bytes are held", a.held)
			}
		}
		c.Flush()
		for _, line := range r.lines {
			if line[0] == 'W' {
				t.Fatal(line)
			}
		}
		if a.held != 0 || a.waiting.first != nil {
			t.Fatalf("%d bytes are held after the end", a.held)
		}
	})
}
