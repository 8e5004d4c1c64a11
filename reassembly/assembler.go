package reassembly

import "time"

// Defaults of Options.
const (
	// A megabyte is about the receive window of a game's connection: more than
	// that cannot be on its way to fill a hole.
	DefaultHeldBytes = 1 << 20
	// A megabyte in full-sized segments is some 700 of them.
	DefaultHeldSegments = 1024
	// All connections together stay far below what a small machine has.
	DefaultTotalBytes = 16 << 20
	// The first retransmission by timer comes after at least a second (RFC 6298,
	// section 2.1); with it, its way and the delay of the capture, two suffice.
	defaultWait = 2 * time.Second
)

const (
	// An acknowledgement beyond a hole proves that its bytes arrived and that the
	// capture missed them, unless it is only late with them: packets of two
	// directions often come from two queues. That disorder is of milliseconds.
	settleTime = 20 * time.Millisecond
	// No window of a usual stack reaches further than this, so a segment further
	// off is either forged or behind a pause of the capture.
	plausible = 16 << 20
	// A SYN may be captured after data that it precedes by at most this much.
	synReorder = 64 << 10
	// What a held segment costs beside its buffer.
	heldOverhead = 128
	// Buffers are kept for reuse up to this many bytes in all.
	spareBytes = 1 << 20
)

// Options bound what waits for a hole to be filled. The zero Options are good.
// Bytes are counted as memory taken, not as payload.
type Options struct {
	HeldBytes    int           // in one direction of one connection; 0 means 1 MiB
	HeldSegments int           // likewise; 0 means 1,024
	TotalBytes   int           // in all connections; 0 means 16 MiB
	Wait         time.Duration // capture time since the last progress; 0 means 2 s
	// History is the number of delivered bytes that each direction remembers, to
	// compare a retransmission with. 0 means none: then a Conflict is noticed only
	// against bytes that wait. It costs a copy of every byte.
	History int
}

// Assembler is what connections share: their limits, their spare buffers and the
// time. The zero Assembler is ready to use.
type Assembler struct {
	Options Options // to be set before the first connection

	now      time.Time // the latest time that any packet had
	held     int       // bytes that wait, in all connections
	peak     int       // the most that did
	waiting  waitList
	spare    *held // released buffers
	spareCap int   // bytes in them
	limited  Limited
	chunk    Chunk // the one being handed over
}

// Limited counts the holes that were given up because of a limit.
type Limited struct {
	Bytes, Segments, Total int // by Options.HeldBytes, HeldSegments and TotalBytes
}

// Connection returns a new connection that reports to h.
func (a *Assembler) Connection(h Handler) *Conn {
	c := &Conn{assembler: a, handler: h}
	for side := range c.streams {
		c.streams[side].init(c, Side(side))
	}
	return c
}

// Tick tells the time of a packet, of whatever protocol, and is to be called once
// for each before it is taken apart. It gives up the holes that are too old, and the
// oldest ones while too many bytes wait, so that the Handler of any connection
// may be called. It closes nothing but a stream whose FIN stands behind such a
// hole. Times that run backwards are ignored.
func (a *Assembler) Tick(now time.Time) {
	a.advance(now)
	for s := a.waiting.first; s != nil && a.now.Sub(s.since) >= a.wait(); s = a.waiting.first {
		s.skip(NotCaptured)
		s.rewait()
	}
	for a.held > orDefault(a.Options.TotalBytes, DefaultTotalBytes) {
		a.evict()
	}
}

// Peak returns the most bytes that waited at a time, in all connections.
func (a *Assembler) Peak() int { return a.peak }

// Limited returns how many holes were given up so far because of a limit.
func (a *Assembler) Limited() Limited { return a.limited }

// Held returns the bytes that wait now, in all connections.
func (a *Assembler) Held() int { return a.held }

// evict gives up the oldest hole with bytes behind it. There is one.
func (a *Assembler) evict() {
	s := a.waiting.first
	for s.head == nil {
		s = s.later
	}
	a.limited.Total++
	s.skip(MemoryLimit)
	s.rewait()
}

func (a *Assembler) advance(now time.Time) {
	if now.After(a.now) {
		a.now = now
	}
}

func (a *Assembler) wait() time.Duration {
	if a.Options.Wait > 0 {
		return a.Options.Wait
	}
	return defaultWait
}

func orDefault(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}
