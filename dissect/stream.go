package dissect

import (
	"math"
	"slices"
	"strconv"
	"time"

	"opscope/reassembly"
	"opscope/schema"
	"opscope/schema/wire"
)

// Limits of a stream.
const (
	// confirmations is how many frames in a row must fit before a boundary found by
	// trial is believed.
	confirmations = 3
	// maxHunt is how many bytes are kept while a boundary is looked for: several of
	// the largest frames of any protocol here.
	maxHunt = 64 << 10
	// giveUpAfter is how many bytes without a boundary make a stream one that is
	// only counted.
	giveUpAfter = 1 << 20
	// maxUndecided is how many bytes of a flow are kept until it is known what it
	// is.
	maxUndecided = 8 << 10
)

type streamState uint8

const (
	inSync  streamState = iota // the next byte begins a frame
	hunting                    // looking for a boundary
	counted                    // given up: bytes are only counted
)

// stream cuts one direction of a connection into frames. It owns what is begun,
// and what waits for a boundary; whole frames are handed on in place.
type stream struct {
	flow *Flow
	side reassembly.Side

	state   streamState
	joined  bool    // its start was not captured
	buf     []byte  // bytes not yet cut
	base    int64   // offset of buf[0] in the stream
	pieces  []piece // which packets brought them
	skip    int64   // bytes that belong to a frame of which a part is missing
	skipped int64   // bytes passed over since the boundary was lost
	hunted  int64   // bytes passed over in all since then
	tried   int     // candidates in buf up to here were looked at
	maybe   []candidate
	lastAt  time.Time
	packets []int
}

// piece is a run of stream bytes that one packet brought.
type piece struct {
	start  int64
	packet int
	time   time.Time
}

// candidate is an offset at which frames may begin.
type candidate struct {
	off  int64
	need int64 // there is nothing new to see before the buffer reaches here
}

// chunk takes the next bytes of the stream.
func (s *stream) chunk(c reassembly.Chunk) {
	s.lastAt = c.Time
	data, off := c.Data, c.Offset
	if s.skip > 0 {
		n := int(min(s.skip, int64(len(data))))
		s.skip -= int64(n)
		data, off = data[n:], off+int64(n)
	}
	if len(data) == 0 {
		return
	}
	switch s.state {
	case counted:
		s.flow.run.summary.UndecodedBytes += int64(len(data))
	case hunting:
		s.keep(data, off, c)
		s.hunt(false)
	case inSync:
		s.feed(data, off, c)
	}
}

// keep appends bytes to the buffer.
func (s *stream) keep(data []byte, off int64, c reassembly.Chunk) {
	if len(s.buf) == 0 {
		s.base = off
		s.pieces = s.pieces[:0]
	}
	s.buf = append(s.buf, data...)
	if n := len(s.pieces); n == 0 || s.pieces[n-1].packet != c.Packet {
		s.pieces = append(s.pieces, piece{off, c.Packet, c.Time})
	}
}

// feed cuts bytes that continue a stream in sync. Of a frame that was begun it
// copies what is needed to end it; the rest is cut in place.
func (s *stream) feed(data []byte, off int64, c reassembly.Chunk) {
	for len(s.buf) > 0 && len(data) > 0 {
		n := min(s.missing(), len(data))
		s.keep(data[:n], off, c)
		data, off = data[n:], off+int64(n)
		s.drop(s.cut(s.buf, s.base, s.pieces))
		if s.state != inSync {
			s.keepAll(data, off, c)
			return
		}
	}
	if len(data) == 0 {
		return
	}
	one := [1]piece{{off, c.Packet, c.Time}}
	n := s.cut(data, off, one[:])
	if n < len(data) {
		s.keepAll(data[n:], off+int64(n), c)
	}
}

// keepAll keeps the rest of a chunk, and looks for a boundary in it if the stream
// has lost its own.
func (s *stream) keepAll(data []byte, off int64, c reassembly.Chunk) {
	if len(data) > 0 {
		s.keep(data, off, c)
	}
	if s.state == hunting {
		s.hunt(false)
	}
}

// missing returns how many bytes the frame begun in the buffer needs, as far as
// one can tell.
func (s *stream) missing() int {
	f, err := s.flow.Session.conversation.Cut(s.direction(), s.buf)
	if err != nil && f.Size > len(s.buf) {
		return f.Size - len(s.buf)
	}
	return 16 // the header is cut: no protocol has a longer one in front of its size
}

func (s *stream) direction() Direction { return s.flow.direction(s.side) }

// drop forgets the first bytes of the buffer.
func (s *stream) drop(n int) {
	s.buf = slices.Delete(s.buf, 0, n)
	s.base += int64(n)
	s.pieces = trimPieces(s.pieces, s.base)
}

// trimPieces forgets the pieces before an offset.
func trimPieces(pieces []piece, off int64) []piece {
	n := 0
	for n+1 < len(pieces) && pieces[n+1].start <= off {
		n++
	}
	return slices.Delete(pieces, 0, n)
}

// cut hands on the whole frames at the start of data and returns how many bytes
// it has dealt with. After a size that no frame has, the stream is hunting.
func (s *stream) cut(data []byte, base int64, pieces []piece) int {
	used := 0
	for used < len(data) {
		f, err := s.flow.Session.conversation.Cut(s.direction(), data[used:])
		if err != nil {
			if err.Kind != wire.Incomplete {
				s.broken(err, data[used:], base+int64(used), pieces)
			}
			return used
		}
		s.emit(f, data[used:used+f.Size], base+int64(used), pieces, 0, wire.Malformed)
		used += f.Size
	}
	return used
}

// emit hands on a frame.
func (s *stream) emit(f schema.Frame, data []byte, off int64, pieces []piece, missing int, short wire.Kind) {
	frame := Frame{Carrier: s.carrier(off, off+int64(len(data)), pieces), Frame: f, Data: data, Offset: off, Missing: missing, Short: short}
	s.flow.Session.conversation.Frame(&frame)
	s.flow.run.afterFrame(s.flow.Session)
}

// carrier says which packets brought the bytes from an offset up to another.
func (s *stream) carrier(from, to int64, pieces []piece) Carrier {
	c := Carrier{Flow: s.flow, Direction: s.direction(), Digits: s.flow.run.packet.Digits, side: s.side}
	s.packets = s.packets[:0]
	for i, p := range pieces {
		if p.start < to && (i+1 == len(pieces) || pieces[i+1].start > from) {
			s.packets = append(s.packets, p.packet)
			c.Time = p.time
		}
	}
	c.Packets = s.packets
	return c
}

// broken reports bytes that begin no frame, and looks for the next boundary.
func (s *stream) broken(err *wire.Error, data []byte, off int64, pieces []piece) {
	n := min(len(data), 16)
	c := s.carrier(off, off+int64(n), pieces)
	r := s.flow.run.frameRecord(&c)
	r.Err = err
	r.Raw, r.Size, r.Offset = data[:n], n, off
	r.Rest = data[:n]
	s.flow.run.push(r)
	s.lose()
}

// lose has the stream look for a boundary.
func (s *stream) lose() {
	s.state, s.skipped, s.hunted = hunting, 0, 0
	s.tried, s.maybe = 0, s.maybe[:0]
}

// hunt looks for an offset at which frames begin. Every offset is tried once; one
// that may be right, but whose frames are not all there, is kept in mind.
func (s *stream) hunt(final bool) {
	end := s.base + int64(len(s.buf))
	kept := s.maybe[:0]
	found := int64(-1)
	for _, m := range s.maybe {
		if found < 0 && m.off >= s.base {
			if m.need <= end || final {
				ok, need := s.trial(m.off, final)
				if ok {
					found = m.off
				}
				m.need = need
			}
			if m.need < math.MaxInt64 {
				kept = append(kept, m)
			}
		}
	}
	s.maybe = kept
	for ; found < 0 && s.tried < len(s.buf); s.tried++ {
		off := s.base + int64(s.tried)
		ok, need := s.trial(off, final)
		if ok {
			found = off
		} else if need < math.MaxInt64 {
			s.maybe = append(s.maybe, candidate{off, need})
		}
	}
	if found >= 0 {
		s.resume(found)
		return
	}
	if over := len(s.buf) - maxHunt; over > 0 {
		s.pass(over)
	}
}

// trial tries frames from an offset on. They are right when several in a row are
// plausible, or when the first begins with a packet and the last ends with what
// was captured. Otherwise need is the offset that the buffer has to reach before
// trying again makes sense, and MaxInt64 when it never does.
func (s *stream) trial(off int64, final bool) (ok bool, need int64) {
	c, d := s.flow.Session.conversation, s.direction()
	at := int(off - s.base)
	for good := 0; ; good++ {
		if good >= confirmations {
			return true, 0
		}
		if at == len(s.buf) && good > 0 {
			if final || good > 1 || s.isBoundary(off) {
				return true, 0
			}
			return false, s.base + int64(at) + 1
		}
		f, err := c.Cut(d, s.buf[at:])
		if err != nil {
			if err.Kind == wire.Incomplete && !final {
				return false, s.base + int64(max(at+f.Size, len(s.buf)+1))
			}
			return false, math.MaxInt64
		}
		if !c.Plausible(d, s.buf[at:at+f.Size]) {
			return false, math.MaxInt64
		}
		at += f.Size
	}
}

// isBoundary reports whether a packet's bytes begin at an offset.
func (s *stream) isBoundary(off int64) bool {
	return slices.ContainsFunc(s.pieces, func(p piece) bool { return p.start == off })
}

// pass passes over the first bytes of the buffer.
func (s *stream) pass(n int) {
	s.skipped += int64(n)
	s.hunted += int64(n)
	s.drop(n)
	s.tried = max(0, s.tried-n)
	s.flow.run.summary.UndecodedBytes += int64(n)
	if s.hunted > giveUpAfter {
		s.event("resync_failed", strconv.FormatInt(s.skipped, 10)+" bytes without a frame; the rest is only counted")
		s.state, s.buf = counted, s.buf[:0]
	}
}

// resume goes on from a boundary that was found.
func (s *stream) resume(off int64) {
	s.pass(int(off - s.base))
	s.state = inSync
	if s.skipped > 0 {
		s.event("resync", strconv.FormatInt(s.skipped, 10)+" bytes passed over before the next frame")
	}
	s.skipped = 0
	s.maybe = s.maybe[:0]
	s.tried = 0
	s.drop(s.cut(s.buf, s.base, s.pieces))
	if s.state == hunting {
		s.hunt(false)
	}
}

// event reports something about this stream.
func (s *stream) event(code, text string) {
	c := s.carrier(s.base, s.base+1, s.pieces)
	if len(c.Packets) == 0 {
		c.Time = s.lastAt
	}
	s.flow.run.event(&c, code, text)
}

// gap takes the place of bytes that were not captured. A frame whose size is
// known tells where the next one begins, if the gap does not reach beyond it.
func (s *stream) gap(g reassembly.Gap) {
	s.lastAt = g.Time
	end := g.Offset + g.Bytes
	switch {
	case s.skip > 0:
		s.report(g)
		if s.skip -= g.Bytes; s.skip < 0 {
			s.skip = 0
			s.lose()
		}
	case s.state == inSync && len(s.buf) > 0:
		s.interrupted(g, end)
	default:
		s.report(g)
		if s.state == hunting {
			s.pass(len(s.buf))
		} else if s.state == inSync {
			s.lose()
		}
	}
	s.buf, s.maybe, s.tried = s.buf[:0], s.maybe[:0], 0
}

// interrupted ends the frame in the buffer, of which a gap took the rest.
func (s *stream) interrupted(g reassembly.Gap, end int64) {
	f, err := s.flow.Session.conversation.Cut(s.direction(), s.buf)
	short := wire.Incomplete
	if g.Reason == reassembly.SnapLength {
		short = wire.Truncated
	}
	after := s.base + int64(f.Size)
	if err == nil || f.Size == 0 {
		s.begun(err, short)
		s.report(g)
		s.lose()
		return
	}
	s.emit(f, s.buf, s.base, s.pieces, f.Size-len(s.buf), short)
	s.report(g)
	if s.state != inSync {
		return
	}
	if after < end {
		s.lose()
		return
	}
	s.skip = after - end
}

// begun reports a frame of which not even the size is there.
func (s *stream) begun(err *wire.Error, short wire.Kind) {
	if err == nil {
		return
	}
	c := s.carrier(s.base, s.base+int64(len(s.buf)), s.pieces)
	r := s.flow.run.frameRecord(&c)
	e := *err
	e.Kind = short
	r.Err, r.Raw, r.Rest = &e, s.buf, s.buf
	r.Size, r.Offset = len(s.buf), s.base
	s.flow.run.push(r)
}

// report emits the record of a gap.
func (s *stream) report(g reassembly.Gap) {
	c := Carrier{Flow: s.flow, Direction: s.direction(), Time: g.Time, Digits: s.flow.run.packet.Digits, side: s.side}
	r := s.flow.run.record(&c, GapRecord)
	r.Bytes, r.Offset, r.After, r.Before = g.Bytes, g.Offset, g.After, g.Before
	r.Text = g.Reason.String()
	s.flow.run.push(r)
}

// end is called when nothing more will come.
func (s *stream) end() {
	switch {
	case len(s.buf) == 0:
	case s.state == inSync && s.flow.Session != nil:
		f, err := s.flow.Session.conversation.Cut(s.direction(), s.buf)
		if err != nil && f.Size > len(s.buf) {
			s.emit(f, s.buf, s.base, s.pieces, f.Size-len(s.buf), wire.Incomplete)
		} else {
			s.begun(err, wire.Incomplete)
		}
	case s.state == hunting:
		if s.hunt(true); s.state == hunting {
			s.pass(len(s.buf))
			s.event("resync_failed", strconv.FormatInt(s.skipped, 10)+" bytes without a frame")
		}
	}
	s.buf = s.buf[:0]
}
