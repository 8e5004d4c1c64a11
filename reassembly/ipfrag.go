package reassembly

import (
	"net/netip"
	"slices"
	"strconv"
	"time"
)

const (
	// RFC 1122, section 3.3.2 wants 60 to 120 s of a host, RFC 791 began with 15;
	// Linux uses 30. It must stay below the time in which 16-bit ids come round.
	fragmentWait = 30 * time.Second
	// What Linux allows itself (ipfrag_high_thresh).
	DefaultFragmentBytes = 4 << 20
	DefaultFragmentSets  = 1024
	// An offset is 13 bits of 8 bytes, and no datagram is longer than its length
	// field can say.
	maxDatagram = 65535
	// Sets kept for reuse; their buffers are at most a megabyte.
	spareSets = 16
)

// FragmentOptions bound the incomplete sets. The zero FragmentOptions are good.
type FragmentOptions struct {
	Wait  time.Duration // capture time from the first fragment on; 0 means 30 s
	Sets  int           // 0 means 1,024
	Bytes int           // buffers of all sets; 0 means 4 MiB
}

// FragmentKey says which datagram a fragment is of. Protocol is part of it for
// IPv6 too, though RFC 8200 leaves it out: two protocols in one datagram are two
// datagrams.
type FragmentKey struct {
	Src, Dst netip.Addr
	ID       uint32 // 16 bits in IPv4
	Link     uint32 // VLAN or tunnel, as the caller numbers them; 0 for none
	Protocol uint8
}

// Fragment is what one packet carries of a datagram: the payload after the IPv4
// header with its options, or after the IPv6 fragment header. The flag DF
// does not matter.
type Fragment struct {
	Key     FragmentKey
	Offset  int // bytes from the start of the datagram's payload
	More    bool
	Payload []byte // the captured bytes, borrowed during the call
	Length  int    // payload bytes on the wire; what is below len(Payload) means len(Payload)
	Packet  int
	Time    time.Time
}

// Piece is the place of a fragment in its datagram.
type Piece struct {
	Packet int // number of the packet
	Offset int // bytes from the start of the datagram's payload
	Length int // bytes on the wire
}

// Datagram is the payload of a whole IP packet, after reassembly. It is valid until
// the next call to Add; that of a single fragment aliases the fragment's bytes.
type Datagram struct {
	Payload []byte  // up to the first byte that the capture cut
	Length  int     // bytes on the wire; more than len(Payload) when it cut some
	Pieces  []Piece // those with bytes of the datagram, in the order of the capture

	OutOfOrder bool // a piece came after one that follows it
	Duplicates int  // fragments that brought nothing new
	Conflicts  int  // bytes that differed from the first copy, which stands
}

// Verdict is what Add makes of a fragment.
type Verdict uint8

// The verdicts.
const (
	Waiting   Verdict = iota // other fragments are still to come
	Complete                 // this one was the last
	Duplicate                // nothing new in it
	Refused                  // it fits no datagram: its place, its length, or, in IPv6, an overlap
)

var verdictNames = [...]string{"waiting", "complete", "duplicate", "refused"}

// String returns the verdict in lower case.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return "verdict(" + strconv.Itoa(int(v)) + ")"
}

// Loss says why a datagram was given up.
type Loss uint8

// The ways to lose a datagram.
const (
	Expired    Loss = iota // the rest did not come in time
	Evicted                // too much was waiting
	Superseded             // the id was used again
	Overlapped             // IPv6 fragments overlap, and its receiver must drop them
	EndOfInput             // the capture ended
)

var lossNames = [...]string{"expired", "evicted", "superseded", "overlapped", "end_of_input"}

// String returns the loss in snake case.
func (l Loss) String() string {
	if int(l) < len(lossNames) {
		return lossNames[l]
	}
	return "loss(" + strconv.Itoa(int(l)) + ")"
}

// Orphan is a datagram of which only a part was captured.
type Orphan struct {
	Key    FragmentKey
	Loss   Loss
	Length int     // bytes on the wire, -1 when the last fragment is missing
	Bytes  int     // of them seen
	Pieces []Piece // in the order of the capture
	Time   time.Time
}

// FragmentCounters sum up a Defragmenter.
type FragmentCounters struct {
	Fragments, Datagrams, Duplicates, Refused int
	Conflicts                                 int // bytes
	Orphans                                   [5]int
	EvictedSets, EvictedBytes                 int // orphans by the limit that made them
}

// Defragmenter puts IP fragments together, of both versions. The zero
// Defragmenter is ready to use.
//
// Where fragments overlap, the first copy wins in IPv4, and bytes that differ are
// counted. In IPv6 an overlap that is not an exact duplicate is forbidden (RFC
// 5722; RFC 8200, section 4.5): the datagram is given up at once, as its receiver
// does, and what else comes for it is refused until its time is over. A
// fragment in the exact place of an earlier one, with other bytes, is taken for
// a new datagram that uses the id again, in both versions.
type Defragmenter struct {
	Options FragmentOptions

	now         time.Time // the latest time that any packet had
	sets        map[FragmentKey]*fragments
	first, last *fragments // by age
	bytes       int
	spare       *fragments
	spares      int
	done        *fragments // holds the last Datagram until the next call
	datagram    Datagram
	single      [1]Piece // of a datagram in one piece
	orphans     []Orphan // since the last call to Tick
	counters    FragmentCounters
}

// fragments is what came of one datagram.
type fragments struct {
	key      FragmentKey
	buf      []byte  // the bytes at their places
	have     []span  // which of them were seen, sorted, apart from each other
	cut      int     // first byte that the capture cut, or maxDatagram
	length   int     // -1 until the last fragment comes
	pieces   []Piece // in the order of the capture
	began    time.Time
	poisoned bool // given up, and refusing what else comes

	outOfOrder bool
	duplicates int
	conflicts  int

	older, younger *fragments
}

// span is a range of bytes.
type span struct{ from, to int }

// Tick tells the time of a packet and returns the datagrams given up since the
// last call. They are valid until the next call to a method of d.
func (d *Defragmenter) Tick(now time.Time) []Orphan {
	d.expire(now)
	return d.tell()
}

// Flush gives up what is incomplete at the end of the capture, and returns
// all datagrams given up since the last call to Tick.
func (d *Defragmenter) Flush() []Orphan {
	for d.first != nil {
		d.giveUp(d.first, EndOfInput)
	}
	return d.tell()
}

// Counters returns the counts so far.
func (d *Defragmenter) Counters() FragmentCounters { return d.counters }

// Add takes one fragment. With the verdict Complete it returns the datagram,
// otherwise nil.
func (d *Defragmenter) Add(f *Fragment) (*Datagram, Verdict) {
	d.expire(f.Time)
	d.recycle()
	d.counters.Fragments++
	f.Length = max(f.Length, len(f.Payload))
	end := f.Offset + f.Length
	if !f.plausible() {
		return d.refuse()
	}
	if f.Offset == 0 && !f.More {
		return d.whole(f), Complete
	}
	s := d.set(f)
	if s.reused(f) {
		d.giveUp(s, Superseded)
		s = d.set(f)
	}
	switch {
	case s.poisoned, s.contradicts(f):
		return d.refuse()
	case f.Key.Src.Unmap().Is6() && s.overlaps(f):
		d.report(s, Overlapped)
		s.poisoned = true
		return d.refuse()
	}
	if !f.More {
		s.length = end
	}
	if !d.fill(s, f) {
		s.duplicates++
		d.counters.Duplicates++
		return nil, Duplicate
	}
	if len(s.have) == 1 && s.have[0] == (span{0, s.length}) {
		return d.complete(s), Complete
	}
	d.bound(s)
	return nil, Waiting
}

// plausible reports whether the fragment can be part of any datagram.
func (f *Fragment) plausible() bool {
	return f.Offset >= 0 && f.Offset+f.Length <= maxDatagram && f.Length > 0 &&
		(!f.More || f.Length%8 == 0)
}

// whole returns the datagram of a fragment that is all of it. It has nothing to do
// with others of the same key (RFC 6946), and is not copied.
func (d *Defragmenter) whole(f *Fragment) *Datagram {
	d.counters.Datagrams++
	d.single[0] = Piece{Packet: f.Packet, Length: f.Length}
	d.datagram = Datagram{Payload: f.Payload, Length: f.Length, Pieces: d.single[:]}
	return &d.datagram
}

func (d *Defragmenter) refuse() (*Datagram, Verdict) {
	d.counters.Refused++
	return nil, Refused
}

// set returns the set that f belongs to, a new one if need be.
func (d *Defragmenter) set(f *Fragment) *fragments {
	if s := d.sets[f.Key]; s != nil {
		return s
	}
	if d.sets == nil {
		d.sets = make(map[FragmentKey]*fragments)
	}
	s := d.spare
	if s == nil {
		s = new(fragments)
	} else {
		d.spare = s.younger
		d.spares--
	}
	*s = fragments{
		key: f.Key, buf: s.buf[:0], have: s.have[:0], pieces: s.pieces[:0],
		cut: maxDatagram, length: -1, began: d.now, older: d.last,
	}
	if d.last == nil {
		d.first = s
	} else {
		d.last.younger = s
	}
	d.last = s
	d.sets[f.Key] = s
	d.bytes += cap(s.buf)
	return s
}

// reused reports whether f stands in the exact place of an earlier fragment, with
// other bytes.
func (s *fragments) reused(f *Fragment) bool {
	for _, p := range s.pieces {
		if p.Offset == f.Offset && p.Length == f.Length {
			return s.differ(f) > 0
		}
	}
	return false
}

// contradicts reports whether f lies behind the end of the datagram, or says
// that the end is where it is not.
func (s *fragments) contradicts(f *Fragment) bool {
	end := f.Offset + f.Length
	switch {
	case s.length >= 0:
		return end > s.length || !f.More && end != s.length
	case f.More || len(s.have) == 0:
		return false
	}
	return end < s.have[len(s.have)-1].to
}

// overlaps reports whether f shares bytes with earlier fragments, other than as an
// exact duplicate of one.
func (s *fragments) overlaps(f *Fragment) bool {
	for _, p := range s.pieces {
		if p.Offset == f.Offset && p.Length == f.Length {
			return false
		}
	}
	for _, h := range s.have {
		if f.Offset < h.to && h.from < f.Offset+f.Length {
			return true
		}
	}
	return false
}

// differ counts the bytes of f that are not those of the first copy.
func (s *fragments) differ(f *Fragment) int {
	n := 0
	for _, h := range s.have {
		to := min(h.to, f.Offset+len(f.Payload), s.cut)
		for i := max(h.from, f.Offset); i < to; i++ {
			if s.buf[i] != f.Payload[i-f.Offset] {
				n++
			}
		}
	}
	return n
}

// fill copies the bytes of f that are new to s, and reports whether there are any.
func (d *Defragmenter) fill(s *fragments, f *Fragment) bool {
	conflicts := s.differ(f)
	s.conflicts += conflicts
	d.counters.Conflicts += conflicts
	end := f.Offset + f.Length
	d.grow(s, end)
	fresh := false
	at := f.Offset
	for _, h := range s.have {
		if h.from > at {
			fresh = s.write(f, at, min(h.from, end)) || fresh
		}
		at = max(at, h.to)
	}
	fresh = s.write(f, at, end) || fresh
	if !fresh {
		return false
	}
	if captured := f.Offset + len(f.Payload); captured < end {
		s.cut = min(s.cut, captured)
	}
	if n := len(s.have); n > 0 && f.Offset < s.have[n-1].from {
		s.outOfOrder = true
	}
	s.cover(span{f.Offset, end})
	s.pieces = append(s.pieces, Piece{Packet: f.Packet, Offset: f.Offset, Length: f.Length})
	return true
}

// write copies what f has of the bytes from to to, and reports whether it
// stands for any of them.
func (s *fragments) write(f *Fragment, from, to int) bool {
	if from >= to {
		return false
	}
	if from < f.Offset+len(f.Payload) {
		copy(s.buf[from:to], f.Payload[from-f.Offset:])
	}
	return true
}

// grow makes room for the bytes up to end.
func (d *Defragmenter) grow(s *fragments, end int) {
	if end <= len(s.buf) {
		return
	}
	d.bytes -= cap(s.buf)
	s.buf = slices.Grow(s.buf, end-len(s.buf))[:end]
	d.bytes += cap(s.buf)
}

// cover adds c to the ranges seen, and joins those that touch.
func (s *fragments) cover(c span) {
	i, _ := slices.BinarySearchFunc(s.have, c.from, func(h span, from int) int { return h.to - from })
	j := i
	for j < len(s.have) && s.have[j].from <= c.to {
		c.from = min(c.from, s.have[j].from)
		c.to = max(c.to, s.have[j].to)
		j++
	}
	s.have = slices.Replace(s.have, i, j, c)
}

// complete takes s out and returns its datagram.
func (d *Defragmenter) complete(s *fragments) *Datagram {
	d.remove(s)
	d.counters.Datagrams++
	d.done = s
	d.datagram = Datagram{
		Payload: s.buf[:min(s.cut, s.length)], Length: s.length, Pieces: s.pieces,
		OutOfOrder: s.outOfOrder, Duplicates: s.duplicates, Conflicts: s.conflicts,
	}
	return &d.datagram
}

// bound gives up the oldest sets while there are too many, or too many bytes.
// The set keep, to which something was just added, stays.
func (d *Defragmenter) bound(keep *fragments) {
	for d.first != keep {
		switch {
		case len(d.sets) > orDefault(d.Options.Sets, DefaultFragmentSets):
			d.counters.EvictedSets++
		case d.bytes > orDefault(d.Options.Bytes, DefaultFragmentBytes):
			d.counters.EvictedBytes++
		default:
			return
		}
		d.giveUp(d.first, Evicted)
	}
}

// expire gives up the sets that began too long ago.
func (d *Defragmenter) expire(now time.Time) {
	if now.After(d.now) {
		d.now = now
	}
	wait := d.Options.Wait
	if wait <= 0 {
		wait = fragmentWait
	}
	for d.first != nil && d.now.Sub(d.first.began) >= wait {
		d.giveUp(d.first, Expired)
	}
}

// giveUp takes an incomplete set out.
func (d *Defragmenter) giveUp(s *fragments, l Loss) {
	if !s.poisoned {
		d.report(s, l)
	}
	d.remove(s)
	d.keep(s)
}

// report puts s on the list that Tick returns. Without calls to Tick only the
// count is kept, once the list is long.
func (d *Defragmenter) report(s *fragments, l Loss) {
	d.counters.Orphans[l]++
	if len(d.orphans) >= DefaultFragmentSets {
		return
	}
	o := Orphan{Key: s.key, Loss: l, Length: s.length, Pieces: slices.Clone(s.pieces), Time: s.began}
	for _, h := range s.have {
		o.Bytes += h.to - h.from
	}
	d.orphans = append(d.orphans, o)
}

// tell returns the orphans that were not told before.
func (d *Defragmenter) tell() []Orphan {
	told := d.orphans
	d.orphans = d.orphans[:0]
	return told
}

// remove takes s out of the table and the list.
func (d *Defragmenter) remove(s *fragments) {
	delete(d.sets, s.key)
	if s.older == nil {
		d.first = s.younger
	} else {
		s.older.younger = s.younger
	}
	if s.younger == nil {
		d.last = s.older
	} else {
		s.younger.older = s.older
	}
	s.older, s.younger = nil, nil
	d.bytes -= cap(s.buf)
}

// recycle takes back the datagram that the last call returned.
func (d *Defragmenter) recycle() {
	if d.done != nil {
		d.keep(d.done)
		d.done = nil
	}
}

// keep puts s aside for reuse, or drops it when enough are kept.
func (d *Defragmenter) keep(s *fragments) {
	if d.spares < spareSets {
		s.younger, d.spare = d.spare, s
		d.spares++
	}
}
