package dissect

import (
	"math"
	"slices"
	"time"

	"opscope/reassembly"
	"opscope/schema"
	"opscope/schema/wire"
)

// Limits of a stream.
const (
	// confirmations is how many frames in a row must fit before a boundary found by
	// trial is believed, unless the protocol's limit resync_packets says otherwise.
	confirmations = 3
	// unconvinced is how many times as many it takes when none of them convinces.
	unconvinced = 4
	// maxHunt is how many bytes are kept while a boundary is looked for: several of
	// the largest frames of any protocol here. The buffer grows to twice that, so
	// that each byte moves once.
	maxHunt = 64 << 10
	// giveUpAfter is how many bytes without a boundary, beyond those of the frames
	// found since, make a stream one that is only counted.
	giveUpAfter = 1 << 20
	// maxUndecided is how many bytes of a flow are kept until it is known what it
	// is.
	maxUndecided = 8 << 10
	// headerStep is how many bytes are taken at a time while not even the size of a
	// frame is known.
	headerStep = 16
	// brokenShown is how many bytes that begin no frame are shown.
	brokenShown = 16
	// spareBuffers is how many buffers are kept for the next stream that needs one.
	spareBuffers = 64
)

type streamState uint8

const (
	inSync  streamState = iota // the next byte begins a frame
	hunting                    // looking for a boundary
	counted                    // given up: bytes are only counted
)

// stream cuts one direction of a connection into frames. It owns what is begun,
// and what waits for a boundary; whole frames are handed on in place.
//
// Every byte that it is given ends in a frame, in the record of bytes that begin
// no frame, or in Summary.UndecodedBytes.
type stream struct {
	flow *Flow
	side reassembly.Side

	state   streamState
	joined  bool    // its start was not captured
	buf     []byte  // bytes not yet cut
	base    int64   // offset of buf[0] in the stream
	pieces  []piece // which packets brought them
	snapped bool    // the last of those had more, which the capture has cut
	need    int     // size of the frame begun in buf, 0 while that is not known
	skip    int64   // bytes still to come of a frame of which a part is missing

	// While a boundary is looked for.
	fault   *wire.Error // why it was lost, until that has been reported
	shown   int64       // bytes before this offset are in the report
	skipped int64       // bytes passed over
	tried   int         // every offset of buf before this one was tried
	maybe   []candidate // of those, what may still be right
	due     int64       // the least need among them
	garbage int64       // bytes passed over, less those of frames found since

	lastAt time.Time
	berths berths

	// Until it is known what the flow is.
	early  []reassembly.Gap
	passed int64 // bytes kept before them
	looked int   // bytes of buf that the last look saw
}

// piece is a run of stream bytes that one packet brought.
type piece struct {
	start  int64
	packet int
	time   time.Time
}

// candidate is an offset at which frames may begin.
type candidate struct {
	off    int64
	need   int64 // there is nothing new to see before the buffer reaches here
	frames int   // that fit so far
}

// never is the need of an offset at which no frames begin.
const never = math.MaxInt64

func (s *stream) run() *run                  { return s.flow.run }
func (s *stream) conversation() Conversation { return s.flow.Session.conversation }
func (s *stream) direction() Direction       { return s.flow.direction(s.side) }
func (s *stream) end() int64                 { return s.base + int64(len(s.buf)) }

// chunk takes the next bytes of the stream.
func (s *stream) chunk(c *reassembly.Chunk) {
	s.lastAt = c.Time
	if s.skip > 0 {
		n := int(min(s.skip, int64(len(c.Data))))
		s.skip -= int64(n)
		s.run().summary.UndecodedBytes += int64(n)
		c.Data, c.Offset = c.Data[n:], c.Offset+int64(n)
	}
	if len(c.Data) == 0 {
		return
	}
	switch s.state {
	case counted:
		s.run().summary.UndecodedBytes += int64(len(c.Data))
	case hunting:
		s.keep(c)
		s.hunt(false)
	case inSync:
		s.feed(c)
	}
}

// keep appends bytes to the buffer.
func (s *stream) keep(c *reassembly.Chunk) {
	if len(s.buf) == 0 {
		s.buf = s.run().buffer(s.buf)
		s.base = c.Offset
		s.pieces = s.pieces[:0]
	}
	s.buf = append(s.buf, c.Data...)
	s.run().buffered += len(c.Data)
	s.snapped = c.Cut
	if n := len(s.pieces); n == 0 || s.pieces[n-1].packet != c.Packet {
		s.pieces = append(s.pieces, piece{c.Offset, c.Packet, c.Time})
	}
}

// feed cuts bytes that continue a stream in sync. Of a frame that was begun it
// copies what is needed to end it; the rest is cut in place.
func (s *stream) feed(c *reassembly.Chunk) {
	for len(s.buf) > 0 && len(c.Data) > 0 {
		part := *c
		part.Data = c.Data[:min(s.missing(), len(c.Data))]
		s.keep(&part)
		c.Data, c.Offset = c.Data[len(part.Data):], c.Offset+int64(len(part.Data))
		if len(s.buf) >= s.need {
			s.cutBuffer(c.Data)
		}
		if s.state == hunting {
			break
		}
	}
	if s.state == inSync && len(c.Data) > 0 {
		one := [1]piece{{c.Offset, c.Packet, c.Time}}
		n := s.cut(c.Data, c.Offset, one[:], nil)
		c.Data, c.Offset = c.Data[n:], c.Offset+int64(n)
	}
	if len(c.Data) > 0 {
		s.keep(c)
	}
	if s.state == hunting {
		s.hunt(false)
	}
}

// missing returns how many bytes to take for the frame begun in the buffer.
func (s *stream) missing() int {
	if s.need > len(s.buf) {
		return s.need - len(s.buf)
	}
	return headerStep
}

// drop forgets the first bytes of the buffer.
func (s *stream) drop(n int) {
	s.base += int64(n)
	if n == len(s.buf) {
		s.clear()
		return
	}
	s.buf = slices.Delete(s.buf, 0, n)
	s.run().buffered -= n
	i := max(0, s.pieceAt(s.pieces, s.base))
	s.pieces = slices.Delete(s.pieces, 0, i)
}

// clear forgets the buffer. What stays is the piece that came last, to say where
// the stream stands.
func (s *stream) clear() {
	s.run().buffered -= len(s.buf)
	s.buf = s.run().giveBack(s.buf)
	if n := len(s.pieces); n > 1 {
		s.pieces = slices.Delete(s.pieces, 0, n-1)
	}
	s.tried, s.maybe, s.due = 0, s.maybe[:0], never
}

// pieceAt returns the index of the piece that an offset lies in, -1 before all.
func (s *stream) pieceAt(pieces []piece, off int64) int {
	i, found := slices.BinarySearchFunc(pieces, off, func(p piece, off int64) int { return int(p.start - off) })
	if found {
		return i
	}
	return i - 1
}

// buffer returns an empty buffer: b, if it has room, or a spare one.
func (r *run) buffer(b []byte) []byte {
	if n := len(r.spare); cap(b) == 0 && n > 0 {
		b = r.spare[n-1]
		r.spare = r.spare[:n-1]
	}
	return b[:0]
}

// giveBack takes a buffer that is not needed now, so that streams which wait in
// their midst are the only ones that have one.
func (r *run) giveBack(b []byte) []byte {
	if cap(b) > 0 && len(r.spare) < spareBuffers {
		r.spare = append(r.spare, b)
	}
	return nil
}

// cutBuffer hands on the whole frames in the buffer, behind which come more bytes.
func (s *stream) cutBuffer(more []byte) {
	if n := s.cut(s.buf, s.base, s.pieces, more); n > 0 {
		s.drop(n)
	}
}

// cut hands on the whole frames at the start of data and returns how many bytes
// it has dealt with; more is what is known to follow data. After a size that no frame
// has, the stream is hunting.
func (s *stream) cut(data []byte, base int64, pieces []piece, more []byte) int {
	used := 0
	s.need = 0
	for used < len(data) {
		f, err := s.conversation().Cut(s.direction(), data[used:])
		if err != nil {
			if s.need = f.Size; err.Kind != wire.Incomplete {
				s.lose(s.conversation().Fault(s.direction(), data[used:]))
			}
			break
		}
		after := data[used+f.Size:]
		if len(after) == 0 {
			after = more
		}
		if err := s.conversation().Doubt(s.direction(), data[used:used+f.Size], after); err != nil {
			s.lose(err)
			break
		}
		s.emit(f, data[used:used+f.Size], base+int64(used), pieces, 0, wire.Malformed)
		used += f.Size
	}
	return used
}

// emit hands on a frame.
func (s *stream) emit(f schema.Frame, data []byte, off int64, pieces []piece, missing int, short wire.Kind) {
	s.garbage = max(0, s.garbage-int64(len(data)))
	frame := &s.run().frame
	s.carry(&frame.Carrier, off, off+int64(len(data)), pieces)
	frame.Frame, frame.Data, frame.Offset, frame.Missing, frame.Short = f, data, off, missing, short
	s.conversation().Frame(frame)
	s.run().afterFrame(s.flow.Session)
}

// carrier says which packets brought the bytes from an offset up to another. Its
// Packets are valid until the next call.
func (s *stream) carrier(from, to int64, pieces []piece) (c Carrier) {
	s.carry(&c, from, to, pieces)
	return c
}

// carry is carrier in place.
func (s *stream) carry(c *Carrier, from, to int64, pieces []piece) {
	r := s.run()
	c.Flow, c.Direction, c.Digits, c.side, c.passage = s.flow, s.direction(), r.packet.Digits, s.side, r.headers.Passage()
	r.carriers = r.carriers[:0]
	if len(pieces) == 1 && pieces[0].start < to { // the usual case
		r.carriers = append(r.carriers, pieces[0].packet)
		c.Time, c.Packets = pieces[0].time, r.carriers
		return
	}
	c.Time = time.Time{}
	for i := max(0, s.pieceAt(pieces, from)); i < len(pieces) && pieces[i].start < to; i++ {
		if !slices.Contains(r.carriers, pieces[i].packet) {
			r.carriers = append(r.carriers, pieces[i].packet)
		}
		c.Time = pieces[i].time
	}
	c.Packets = r.carriers
}

// lose has the stream look for a boundary, because of a size that no frame has, or
// for no fault of its own.
func (s *stream) lose(fault *wire.Error) {
	s.state, s.need, s.skipped = hunting, 0, 0
	s.fault, s.tried, s.maybe, s.due = fault, 0, s.maybe[:0], never
	if fault != nil {
		s.tried = 1 // there is no frame where the fault is
	}
}

// hunt looks for an offset at which frames begin, and cuts what it finds. At the
// end of what was captured it believes what it could not wait for.
func (s *stream) hunt(final bool) {
	for s.state == hunting && len(s.buf) > 0 {
		off, ok := s.boundary(final)
		if !ok {
			s.report(s.bad())
			switch {
			case len(s.buf) > 2*maxHunt:
				s.pass(len(s.buf) - maxHunt)
				s.giveUp()
			case s.run().full():
				s.pass(len(s.buf))
				s.giveUp()
			}
			return
		}
		s.resume(off)
	}
}

// bad returns how many bytes at the start of the buffer begin no frame for sure.
func (s *stream) bad() int {
	if len(s.maybe) > 0 {
		return int(s.maybe[0].off - s.base)
	}
	return len(s.buf)
}

// boundary finds an offset at which frames begin. Every one is tried once; where
// they may begin, but are not all there, it is tried again when more is. When no more
// will come, it is the one from which the most frames fit.
func (s *stream) boundary(final bool) (off int64, ok bool) {
	if final {
		return s.likeliest()
	}
	if s.due <= s.end() {
		kept := s.maybe[:0]
		s.due = never
		for _, m := range s.maybe {
			if m.off < s.base {
				continue
			}
			if m.need <= s.end() {
				t := s.trial(m.off, false)
				if t.ok && !outdone(kept, t) {
					return m.off, true
				}
				m.need, m.frames = t.need, t.frames
			}
			if m.need < never {
				kept = append(kept, m)
				s.due = min(s.due, m.need)
			}
		}
		s.maybe = kept
	}
	for ; s.tried < len(s.buf); s.tried++ {
		off = s.base + int64(s.tried)
		t := s.trial(off, false)
		if t.ok && !outdone(s.maybe, t) {
			return off, true
		}
		if t.need < never {
			s.maybe = append(s.maybe, candidate{off, t.need, t.frames})
			s.due = min(s.due, t.need)
		}
	}
	return 0, false
}

// outdone reports whether one of the candidates in front has more frames so far than those
// that fill a packet.
func outdone(ahead []candidate, t trial) bool {
	return t.need < never && slices.ContainsFunc(ahead, func(m candidate) bool { return m.frames > t.frames })
}

// likeliest finds the offset from which the most frames fit up to the end of the
// buffer; the first of several. The start of a packet counts as much as a frame, since
// senders write whole ones.
func (s *stream) likeliest() (off int64, ok bool) {
	best := 0
	try := func(at int64) {
		if t := s.trial(at, true); t.ok && t.frames > best {
			off, best = at, t.frames
		}
	}
	for _, m := range s.maybe {
		if m.off >= s.base {
			try(m.off)
		}
	}
	for i := s.tried; i < len(s.buf); i++ {
		try(s.base + int64(i))
	}
	return off, best > 0
}

// trial is what came of trying frames from an offset on.
type trial struct {
	ok     bool
	frames int   // in a row that fit, and one more for the start of a packet
	need   int64 // the offset that the buffer has to reach before trying again makes sense
}

// trial tries frames from an offset on. They are right when several in a row are
// plausible and one of them convinces, or more of them are; or when they fill packets: the first begins
// with one, or one of several convinces, or one is certain, and the last came whole in the packet
// that was captured last and ends with it.
func (s *stream) trial(off int64, final bool) trial {
	c, d := s.conversation(), s.direction()
	at, last, convinced, certain := int(off-s.base), 0, false, false
	enough := s.flow.Session.confirmed
	good, evidence := 0, 0
	if final && s.beginsPacket(off) {
		evidence = 1
	}
	for ; good < enough || !convinced && good < unconvinced*enough; good++ {
		several := convinced && good+evidence > 1 || certain
		if at == len(s.buf) && good > 0 {
			whole := !s.snapped && s.pieces[len(s.pieces)-1].start <= s.base+int64(last)
			return trial{whole && (several || s.beginsPacket(off)) || final && several, good + evidence, s.end() + 1}
		}
		f, err := c.Cut(d, s.buf[at:])
		switch {
		case err != nil && err.Kind != wire.Incomplete:
			return trial{need: never}
		case err != nil && final:
			return trial{several, good + evidence, never}
		case err != nil:
			return trial{frames: good, need: s.base + int64(max(at+f.Size, len(s.buf)+1))}
		}
		switch c.Plausible(d, s.buf[at:at+f.Size]) {
		case Implausible:
			return trial{need: never}
		case Convincing:
			convinced = true
		case Certain:
			convinced, certain = true, true
		}
		last, at = at, at+f.Size
	}
	return trial{true, good + evidence, never}
}

// beginsPacket reports whether a packet's bytes begin at an offset.
func (s *stream) beginsPacket(off int64) bool {
	i := s.pieceAt(s.pieces, off)
	return i >= 0 && s.pieces[i].start == off
}

// report emits the record of bytes that begin no frame: the first n of the buffer,
// or as many as are shown.
func (s *stream) report(n int) {
	if s.fault == nil {
		return
	}
	n = min(n, brokenShown)
	c := s.carrier(s.base, s.base+int64(n), s.pieces)
	r := s.run().frameRecord(&c)
	r.Err, s.fault, r.Lost = s.fault, nil, true
	r.Raw, r.Rest = s.buf[:n], s.buf[:n]
	r.Size, r.Offset = n, s.base
	s.shown = s.base + int64(n)
	s.run().push(r)
}

// pass passes over the first bytes of the buffer.
func (s *stream) pass(n int) {
	s.report(n)
	to := s.base + int64(n)
	s.run().summary.UndecodedBytes += max(0, to-max(s.base, s.shown))
	s.skipped += int64(n)
	s.garbage += int64(n)
	s.tried = max(0, s.tried-n)
	s.drop(n)
}

// giveUp leaves a stream without frames alone.
func (s *stream) giveUp() {
	if s.garbage <= int64(s.run().limits.ResyncBytes) {
		return
	}
	s.run().summary.reached(LimitResyncBytes, 1)
	s.pass(len(s.buf))
	s.event("resync_failed", s.skippedText()+" without a frame; what follows is only counted")
	s.state = counted
}

func (s *stream) skippedText() string { return wire.Bits(8 * int(s.skipped)) }

// resume goes on from a boundary that was found.
func (s *stream) resume(off int64) {
	if n := int(off - s.base); n > 0 {
		s.pass(n)
	}
	s.state = inSync
	if s.skipped > 0 {
		s.event("resync", s.skippedText()+" passed over before the next frame")
	}
	s.cutBuffer(nil)
}

// event reports something about this stream.
func (s *stream) event(code, text string) {
	c := s.carrier(s.base, s.base+1, s.pieces)
	if len(c.Packets) == 0 {
		c.Time = s.lastAt
	}
	s.run().event(&c, code, text)
}

// gap takes the place of bytes that were not captured. A frame whose size is
// known tells where the next one begins, if the gap does not reach beyond it. One before
// the start of a joined stream took nothing from what has been cut.
func (s *stream) gap(g reassembly.Gap) {
	if g.Offset < 0 {
		s.gapRecord(g)
		return
	}
	s.lastAt = g.Time
	if s.state == hunting && len(s.buf) > 0 && !s.torn(g) {
		s.hunt(true)
	}
	switch {
	case s.skip > 0:
		s.within(g)
	case s.state == inSync && len(s.buf) > 0:
		s.interrupted(g)
	case s.state == hunting:
		s.pass(len(s.buf))
		s.gapRecord(g)
		s.giveUp()
	default:
		s.gapRecord(g)
		if s.state == inSync {
			s.lose(nil)
		}
	}
	s.clear()
}

// within takes a gap inside a frame that has been shown as far as it goes.
func (s *stream) within(g reassembly.Gap) {
	left := s.skip - g.Bytes
	if s.skip = max(0, left); left < 0 || g.Reason != reassembly.SnapLength {
		s.gapRecord(g)
	}
	if left < 0 {
		s.lose(nil)
	}
}

// torn finds the boundary that a cut packet gives away: frames begin with it, and
// the last one, of which only the start was captured, ends where it ends.
func (s *stream) torn(g reassembly.Gap) bool {
	last := len(s.pieces) - 1
	if g.Reason != reassembly.SnapLength || last < 0 || s.pieces[last].packet != g.Before {
		return false
	}
	c, d := s.conversation(), s.direction()
	start := s.pieces[last].start
	for at := int(start - s.base); at >= 0 && at < len(s.buf); {
		f, err := c.Cut(d, s.buf[at:])
		if err != nil {
			if err.Kind != wire.Incomplete || s.base+int64(at+f.Size) != g.Offset+g.Bytes {
				return false
			}
			s.resume(start)
			return true
		}
		if c.Plausible(d, s.buf[at:at+f.Size]) == Implausible {
			return false
		}
		at += f.Size
	}
	return false
}

// interrupted ends the frame in the buffer, of which a gap took the rest.
func (s *stream) interrupted(g reassembly.Gap) {
	short := wire.Incomplete
	if g.Reason == reassembly.SnapLength {
		short = wire.Truncated
	}
	beyond := g.Offset + g.Bytes - (s.base + int64(s.need)) // of the frame's end
	known := s.need > 0
	if s.unfinished(short) {
		s.hunt(true)
		s.pass(len(s.buf))
		known = false
	}
	switch {
	case !known || beyond > 0:
		s.gapRecord(g)
		s.lose(nil)
	default:
		if short != wire.Truncated { // else the frame says it
			s.gapRecord(g)
		}
		s.skip = -beyond
	}
}

// unfinished hands on the frame in the buffer as far as it goes; its size may be
// missing, too. It returns true where what is there shows that it is none: then the
// stream is hunting, with the buffer as it was.
func (s *stream) unfinished(short wire.Kind) (doubted bool) {
	f, err := s.conversation().Cut(s.direction(), s.buf)
	if err == nil {
		return false // NB: cut has left no whole frame
	}
	s.need = 0
	if f.Size > len(s.buf) {
		if err := s.conversation().Doubt(s.direction(), s.buf, nil); err != nil && short == wire.Incomplete {
			s.lose(err)
			return true
		}
		s.emit(f, s.buf, s.base, s.pieces, f.Size-len(s.buf), short)
		return false
	}
	fault := *s.conversation().Fault(s.direction(), s.buf)
	fault.Kind = short
	s.fault = &fault
	s.pass(len(s.buf)) // of which the report shows the start
	return false
}

// gapRecord emits the record of a gap.
func (s *stream) gapRecord(g reassembly.Gap) {
	c := Carrier{Flow: s.flow, Direction: s.direction(), Time: g.Time, Digits: s.run().packet.Digits, side: s.side}
	r := s.run().record(&c, GapRecord)
	r.Bytes, r.Offset, r.After, r.Before = g.Bytes, g.Offset, g.After, g.Before
	r.Text = g.Reason.String()
	s.run().push(r)
}

// finish is called when nothing more will come, once or more often.
func (s *stream) finish() {
	for again := true; again; {
		if s.state == hunting && len(s.buf) > 0 {
			if s.hunt(true); s.state == hunting {
				s.pass(len(s.buf))
				s.event("resync_failed", s.skippedText()+" without a frame")
			}
		}
		again = s.state == inSync && len(s.buf) > 0 && s.unfinished(wire.Incomplete)
	}
	s.clear()
	s.maybe, s.need, s.skip = nil, 0, 0
}

// before takes a gap while it is not known what the flow is. What was kept tells
// nothing any more; both are told if the flow turns out to be a protocol's.
func (s *stream) before(g reassembly.Gap) {
	s.early = append(s.early, g)
	if g.Offset < 0 {
		return
	}
	s.passed += int64(len(s.buf))
	s.joined, s.looked = true, 0
	s.clear()
}

// begin cuts what was kept until it was known what the flow is.
func (s *stream) begin() {
	if s.joined {
		s.lose(nil)
	}
	for _, g := range s.early {
		s.gapRecord(g)
	}
	s.run().summary.UndecodedBytes += s.passed
	s.early, s.passed = nil, 0
	if s.state == inSync && len(s.buf) > 0 {
		s.cutBuffer(nil)
	}
	s.hunt(false)
}
