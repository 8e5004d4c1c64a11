package sink

import (
	"slices"

	"opscope/dissect"
)

// rails join records to their acknowledgements, at the left of a ladder: one lane for
// each that waits. A record that finds no lane is joined by words alone.
type rails struct {
	lanes []lane
	most  int
}

// lane is one rail. It is free when now is idle.
type lane struct {
	now       laneState
	direction dissect.Direction // of the record
	message   []byte
	seq       int
	by        int // packet that acknowledges it, 0 while nobody knows
	overdue   int // rows of later packets
}

// patience is how many rows of later packets a lane waits for its acknowledgement, which
// comes late where a stream had to wait for a segment, and never where no record names
// what it acknowledges.
const patience = 8

// laneState is what a lane looks like in a row.
type laneState uint8

const (
	idle  laneState = iota
	opens           // at the record
	runs
	shuts // at its acknowledgement
)

// busy reports whether there is a rail in the row.
func (s *rails) busy() bool {
	return slices.ContainsFunc(s.lanes, func(l lane) bool { return l.now != idle })
}

// rest moves on to a row that neither opens nor shuts a lane.
func (s *rails) rest() {
	for i := range s.lanes {
		switch l := &s.lanes[i]; l.now {
		case opens:
			l.now = runs
		case shuts:
			l.now = idle
		}
	}
}

// pass moves on to the row of a record.
func (s *rails) pass(r *dissect.Record) {
	s.rest()
	packet := 0
	if n := len(r.Packets); n > 0 {
		packet = r.Packets[n-1]
	}
	for i := range s.lanes {
		switch l := &s.lanes[i]; {
		case l.now == idle:
		case l.acknowledged(r, packet):
			l.now = shuts
		case l.by > 0 && packet > l.by:
			if l.overdue++; l.overdue > patience {
				l.now = idle
			}
		}
	}
	if r.Ack.State == dissect.AckAcked && r.Ack.By > packet || r.Ack.State == dissect.AckPending {
		s.open(r)
	}
}

// acknowledged reports whether a record is the acknowledgement that ends a lane. It may
// name a later one, up to which it acknowledges all.
func (l *lane) acknowledged(r *dissect.Record, packet int) bool {
	if !names(&r.Acks) || r.Direction == l.direction || r.Acks.Message != string(l.message) {
		return false
	}
	return r.Acks.Seq < 0 || r.Acks.Seq == l.seq || l.by == packet && l.seq >= 0 && l.seq < r.Acks.Seq
}

// open opens a lane for a record. One that waits for an acknowledgement which may never
// come makes room for it.
func (s *rails) open(r *dissect.Record) {
	free := -1
	for i := range s.lanes {
		if s.lanes[i].now == idle {
			free = i
			break
		}
		if s.lanes[i].now == runs && s.lanes[i].by == 0 && free < 0 {
			free = i
		}
	}
	if free < 0 || s.lanes[free].now != idle && len(s.lanes) < s.most {
		if len(s.lanes) == s.most {
			return
		}
		if len(s.lanes) < cap(s.lanes) {
			s.lanes = s.lanes[:len(s.lanes)+1] // with the text that it had
		} else {
			s.lanes = append(s.lanes, lane{})
		}
		free = len(s.lanes) - 1
	}
	l := &s.lanes[free]
	l.now, l.direction, l.seq, l.by, l.overdue = opens, r.Direction, r.Envelope.Seq, r.Ack.By, 0
	l.message = append(l.message[:0], r.Message...)
}
