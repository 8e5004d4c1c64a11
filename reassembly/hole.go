package reassembly

// waits reports whether there is a hole with something behind it.
func (s *stream) waits() bool { return s.head != nil || s.fin > s.next }

// behind returns what stands behind the hole that s waits for: a segment, or the
// FIN.
func (s *stream) behind() *held {
	if s.head != nil {
		return s.head
	}
	return &s.finSeen
}

// skip gives up the first hole and delivers what stands behind it.
func (s *stream) skip(reason Reason) {
	h := s.behind()
	s.gap(h.off, reason, h.packet, h.time)
	s.drain()
}

// skipAll gives up every hole.
func (s *stream) skipAll(reason Reason) {
	for s.waits() {
		s.skip(reason)
	}
}

// bound gives up holes while too much waits behind them.
func (s *stream) bound() {
	o := &s.conn.assembler.Options
	for {
		switch {
		case s.heldSegments > orDefault(o.HeldSegments, DefaultHeldSegments):
			s.conn.assembler.limited.Segments++
		case s.heldBytes > orDefault(o.HeldBytes, DefaultHeldBytes):
			s.conn.assembler.limited.Bytes++
		default:
			return
		}
		s.skip(MemoryLimit)
	}
}

// settle gives up the holes whose bytes the peer has had for settleTime.
func (s *stream) settle() {
	now := s.conn.assembler.now
	if now.Sub(s.settlingAt) >= settleTime {
		s.settled, s.settling, s.settlingAt = s.settling, s.acked, now
	}
	for s.waits() && s.behind().off <= s.settled {
		s.skip(NotCaptured)
	}
	s.rewait()
}

// rewait puts s in its place among the streams that wait, or takes it out. The
// wait for a hole begins when the first segment behind it comes, and again when
// the stream makes progress before it: then that segment may be a false one.
func (s *stream) rewait() {
	list := &s.conn.assembler.waiting
	if !s.waits() {
		if s.listed {
			list.remove(s)
		}
		return
	}
	since := s.behind().arrived
	if s.progress.After(since) {
		since = s.progress
	}
	switch {
	case !s.listed:
		s.settled, s.settling, s.settlingAt = none, s.acked, s.conn.assembler.now
	case since.Equal(s.since):
		return
	default:
		list.remove(s)
	}
	s.since = since
	list.insert(s)
}

// waitList links the streams that wait for a hole to be filled, the longest
// waiting first.
type waitList struct {
	first, last *stream
}

// insert adds s at its place by s.since, which is mostly the end.
func (l *waitList) insert(s *stream) {
	before := l.last
	for before != nil && before.since.After(s.since) {
		before = before.earlier
	}
	s.earlier = before
	if before == nil {
		s.later, l.first = l.first, s
	} else {
		s.later, before.later = before.later, s
	}
	if s.later == nil {
		l.last = s
	} else {
		s.later.earlier = s
	}
	s.listed = true
}

func (l *waitList) remove(s *stream) {
	if s.earlier == nil {
		l.first = s.later
	} else {
		s.earlier.later = s.later
	}
	if s.later == nil {
		l.last = s.earlier
	} else {
		s.later.earlier = s.earlier
	}
	s.earlier, s.later, s.listed = nil, nil, false
}
