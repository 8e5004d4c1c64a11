package reassembly

import "time"

// held is bytes of a stream that wait behind a hole, in a list sorted by offset.
// Those with bytes do not overlap. One without marks bytes that were on the
// wire, [off, end), and that the capture cut; bytes for them may come from another
// copy while it waits.
type held struct {
	off, end int64
	data     []byte // a copy; its capacity is reused
	packet   int
	time     time.Time
	arrived  time.Time // the assembler's time when it came
	next     *held
}

// size is the memory that h takes.
func (h *held) size() int { return cap(h.data) + heldOverhead }

// cuts reports whether h, which may be nil, marks the end of another one's packet as cut.
func (h *held) cuts(o *held) bool {
	return h != nil && len(h.data) == 0 && h.off == o.end && h.packet == o.packet
}

// hold copies the bytes of p that are not held already.
func (s *stream) hold(p piece) {
	at := &s.head
	if s.tail != nil && p.off >= max(s.tail.off, s.heldEnd) {
		at = &s.tail.next
	}
	off, end := p.off, p.off+int64(len(p.data))
	for off < end {
		n, to := *at, end
		if n != nil {
			to = min(to, n.off)
		}
		if off < to {
			at = s.insert(at, off, to, p)
			off = to
			continue
		}
		off = max(off, n.off+int64(len(n.data)))
		at = &n.next
	}
	if end == p.end {
		return
	}
	for *at != nil && (*at).off < end {
		at = &(*at).next
	}
	s.insert(at, end, p.end, piece{off: end, end: p.end, packet: p.packet, time: p.time})
}

// insert puts the part [off, end) of p in front of *at, and returns the place
// after it.
func (s *stream) insert(at **held, off, end int64, p piece) **held {
	a := s.conn.assembler
	h := a.spare
	if h == nil {
		h = new(held)
	} else {
		a.spare = h.next
		a.spareCap -= h.size()
	}
	if s.head == nil {
		s.heldEnd = 0
	}
	if len(p.data) > 0 {
		s.heldEnd = max(s.heldEnd, end)
		h.data = append(h.data[:0], p.data[off-p.off:end-p.off]...)
	}
	h.off, h.end = off, end
	h.packet, h.time, h.arrived = p.packet, p.time, a.now
	h.next = *at
	*at = h
	if h.next == nil {
		s.tail = h
	}
	s.heldSegments++
	s.heldBytes += h.size()
	a.held += h.size()
	a.peak = max(a.peak, a.held)
	return &h.next
}

// unlink takes the first held segment out of the list.
func (s *stream) unlink() *held {
	h := s.head
	s.head = h.next
	if s.head == nil {
		s.tail = nil
	}
	s.heldSegments--
	s.heldBytes -= h.size()
	s.conn.assembler.held -= h.size()
	return h
}

// release keeps h for reuse, or drops it when enough are kept.
func (a *Assembler) release(h *held) {
	if a.spareCap+h.size() > spareBytes {
		return
	}
	h.data = h.data[:0]
	h.next = a.spare
	a.spare = h
	a.spareCap += h.size()
}

// differ adds to d the bytes of p that are not those of h.
func (h *held) differ(p piece, d *difference) {
	from := max(h.off, p.off)
	to := min(h.off+int64(len(h.data)), p.off+int64(len(p.data)))
	for i := from; i < to; i++ {
		if h.data[i-h.off] != p.data[i-p.off] {
			d.add(i)
		}
	}
}
