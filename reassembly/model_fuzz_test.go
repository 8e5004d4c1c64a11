package reassembly

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

// model is another implementation of reassembly, that has all the time and memory in
// the world: a map of bytes, of which the first copy stays. It knows nothing of order,
// holes or limits. Offsets before a joined stream's start are negative.
type model struct {
	first     map[int64]byte
	seen      map[int64]int  // when a byte came first
	missed    map[int64]bool // told as a gap, before the start
	start     int64          // of what was seen
	end       int64
	conflicts int64 // bytes of later copies that differ
}

func newModel() *model {
	return &model{first: map[int64]byte{}, seen: map[int64]int{}, missed: map[int64]bool{}}
}

func (m *model) add(off int64, data []byte, now int) {
	for i, b := range data {
		at := off + int64(i)
		if at < 0 {
			if _, there := m.seen[at]; !there {
				m.seen[at] = now
			}
			m.start = min(m.start, at)
			continue
		}
		if old, there := m.first[at]; !there {
			m.first[at], m.seen[at] = b, now
		} else if old != b {
			m.conflicts++
		}
		m.end = max(m.end, at+1)
	}
}

// judge is a Handler that holds both streams of a connection against models.
type judge struct {
	t         *testing.T
	models    [2]*model
	next      [2]int64
	conflicts [2]int64
	now       int // number of the segment that is being taken
	strict    bool
}

func (j *judge) Chunk(c *Chunk) {
	m := j.models[c.Side]
	if c.Offset != j.next[c.Side] || len(c.Data) == 0 {
		j.t.Fatalf("side %d: chunk of %d bytes at %d, want it at %d", c.Side, len(c.Data), c.Offset, j.next[c.Side])
	}
	for i, b := range c.Data {
		if want, there := m.first[c.Offset+int64(i)]; !there || b != want {
			j.t.Fatalf("side %d: byte %d is %#02x, want %#02x, which came: %v", c.Side, c.Offset+int64(i), b, want, there)
		}
	}
	j.next[c.Side] += int64(len(c.Data))
}

// Gap wants bytes in a gap not to have come by now.
func (j *judge) Gap(g Gap) {
	m := j.models[g.Side]
	early := g.Offset < 0
	switch {
	case early && (g.Bytes <= 0 || g.Offset+g.Bytes > 0):
		j.t.Fatalf("side %d: gap of %d bytes at %d, want it to end before the start", g.Side, g.Bytes, g.Offset)
	case !early && (g.Bytes <= 0 || g.Offset != j.next[g.Side]):
		j.t.Fatalf("side %d: gap of %d bytes at %d, want it at %d", g.Side, g.Bytes, g.Offset, j.next[g.Side])
	}
	for at := g.Offset; at < g.Offset+g.Bytes; at++ {
		if when, there := m.seen[at]; there && (when <= j.now || j.strict) {
			j.t.Fatalf("side %d: byte %d is in a gap at segment %d, and came with segment %d", g.Side, at, j.now, when)
		}
		if early && m.missed[at] {
			j.t.Fatalf("side %d: byte %d is in two gaps", g.Side, at)
		}
		m.missed[at] = m.missed[at] || early
	}
	if !early {
		j.next[g.Side] += g.Bytes
	}
}

func (j *judge) Event(e Event) {
	switch e.Kind {
	case Conflict:
		j.conflicts[e.Side] += e.Bytes
	case PortReused, Reset, MisplacedFIN, OutOfWindow, AfterClose, Closed:
		j.t.Fatalf("%s, and nothing of the kind happened", e.Kind)
	}
}

// FuzzConnAgainstModel plays both streams of a connection, in segments that the input
// chooses: 6 bytes each for side and wait, where, how long, and what they say, which may
// contradict what was said before. Without limits and waits what comes out is what the
// model has, and all of it; with them, a gap holds nothing that had come.
func FuzzConnAgainstModel(f *testing.F) {
	f.Add(uint32(99), uint32(5), byte(0), []byte{0, 0, 0, 8, 1, 0, 1, 0, 4, 9, 2, 0, 0, 0, 4, 8, 3, 0, 0, 0, 2, 9, 1, 0})
	f.Add(uint32(0xfffffff0), uint32(0xffffffff), byte(4), []byte{0, 0, 20, 8, 1, 0, 0, 0, 4, 30, 2, 0, 1, 0, 0, 200, 3, 0})
	f.Add(uint32(1), uint32(1<<31), byte(3), []byte{0x10, 0, 9, 8, 1, 0, 0x80, 1, 0, 9, 2, 0, 0x70, 0, 0, 8, 3, 0, 0xff, 0, 60, 9, 1, 0})
	f.Fuzz(testAgainstModel)
}

// The same each time, for those who do not fuzz.
func TestConnAgainstModel(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	count := 3000
	if testing.Short() {
		count = 500
	}
	for i := range count {
		script := make([]byte, 6*random.IntN(100))
		for i := range script {
			script[i] = byte(random.Uint32())
			if i%6 == 1 {
				script[i] >>= 4 + random.IntN(4)
			}
		}
		a, b, mode := random.Uint32(), -random.Uint32N(1<<12), byte(random.Uint32())
		t.Run(strconv.Itoa(i), func(t *testing.T) { testAgainstModel(t, a, b, mode, script) })
	}
}

func testAgainstModel(t *testing.T, isnA, isnB uint32, mode byte, script []byte) {
	const segment = 6
	waits, limits, joined := mode&1 != 0, mode&2 != 0, mode&4 != 0
	j := &judge{t: t, models: [2]*model{newModel(), newModel()}, strict: !waits && !limits}
	a := &Assembler{Options: Options{History: 1 << 17}}
	if limits {
		a.Options = Options{HeldBytes: 2 << 10, HeldSegments: 5, TotalBytes: 3 << 10, History: 1 << 17}
	}
	c := a.Connection(j)
	base := [2]uint32{isnA + 1, isnB + 1}
	at := epoch
	add := func(g Segment) {
		g.Time = at
		if !c.Add(&g) {
			t.Fatalf("segment %+v is taken for another connection", g)
		}
	}
	if !joined {
		add(Segment{Seq: isnA, Flags: SYN})
		add(Segment{Side: 1, Seq: isnB, Flags: SYN | ACK, Ack: isnA + 1})
	}
	var started [2]bool
	for n := 1; len(script) >= segment; n++ {
		side, wait := Side(script[0]&1), time.Duration(script[0]>>1)
		off, length, seed := int64(binary.BigEndian.Uint16(script[1:])), int(script[3]), script[4]
		script = script[segment:]
		if length < 2 {
			continue // may be a keep-alive
		}
		if waits {
			at = at.Add(wait * 20 * time.Millisecond)
		}
		if joined && !started[side] {
			started[side] = true
			base[side] += uint32(off) // offset 0 is the first byte seen
			off = 0
		} else if joined {
			off -= 1 << 8 // something lies before it
		}
		data := make([]byte, length)
		for i := range data {
			data[i] = byte((off + int64(i)) * 7)
			if seed&7 == 0 { // one that lies
				data[i] ^= seed>>3 | 1
			}
		}
		a.Tick(at)
		j.now = n
		j.models[side].add(off, data, n)
		add(Segment{Side: side, Seq: base[side] + uint32(off), Payload: data, Packet: n})
		clear(data)
		if held := a.Held(); limits && held > 3<<10+heldOverhead+512 {
			t.Fatalf("%d bytes are held", held)
		}
	}
	j.now++
	c.Flush()
	for side, m := range j.models {
		if j.next[side] != m.end {
			t.Errorf("side %d ends at %d, want %d", side, j.next[side], m.end)
		}
		for at := m.start; at < 0; at++ {
			if _, there := m.seen[at]; !there && !m.missed[at] {
				t.Errorf("side %d: byte %d before the start has not come, and is in no gap", side, at)
				break
			}
		}
		if j.strict && j.conflicts[side] != m.conflicts {
			t.Errorf("side %d: %d bytes in conflict, want %d", side, j.conflicts[side], m.conflicts)
		}
	}
	if a.Held() != 0 || a.waiting.first != nil {
		t.Errorf("%d bytes are held after the end", a.Held())
	}
}
