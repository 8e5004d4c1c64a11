package verify

import (
	"slices"
	"time"

	"opscope/dissect"
)

// Printer shows a record as the outputs do, with what they mask masked.
type Printer interface {
	// Line returns the record as one line.
	Line(r *dissect.Record) string
	// Clean returns a text about the record without what is masked in it.
	Clean(r *dissect.Record, text string) string
}

// Exhibit is the record that breaks a rule, with those of its session around it.
type Exhibit struct {
	N         int // number of the record in its file, 0 for none
	Packets   []int
	Time      time.Time
	Session   int // 0 for none
	Direction dissect.Direction
	Message   string
	Opcode    int // -1 for none

	Before []string // lines of records, oldest first
	Line   string
	After  []string
}

// Packet returns the number of the packet that completes the record, 0 for none.
func (x *Exhibit) Packet() int {
	if len(x.Packets) == 0 {
		return 0
	}
	return x.Packets[len(x.Packets)-1]
}

// scene is the last lines of a session, and the exhibits that still want those behind them.
type scene struct {
	lines   []string
	keep    int // lines around an exhibit
	pending []*Exhibit
	latest  *Exhibit // of the record at hand
}

// add takes a record: it stands behind what was exhibited before.
func (s *scene) add(line string) {
	for _, x := range s.pending {
		x.After = append(x.After, line)
	}
	s.pending = slices.DeleteFunc(s.pending, func(x *Exhibit) bool { return len(x.After) >= s.keep })
	if s.latest = nil; len(s.lines) > s.keep {
		s.lines = slices.Delete(s.lines, 0, 1)
	}
	s.lines = append(s.lines, line)
}

// exhibit returns the exhibit of the record that was added last.
func (s *scene) exhibit(r *dissect.Record) *Exhibit {
	if s.latest != nil {
		return s.latest
	}
	last := len(s.lines) - 1
	s.latest = &Exhibit{
		N: r.N, Packets: packetsOf(r), Time: r.Time, Session: r.Session, Direction: r.Direction,
		Message: r.Message, Opcode: r.Opcode, Before: slices.Clone(s.lines[:last]), Line: s.lines[last],
	}
	if r.Type != dissect.FrameRecord {
		s.latest.Opcode = -1
	}
	if s.keep > 0 {
		s.pending = append(s.pending, s.latest)
	}
	return s.latest
}

// packetsOf returns the packets that show a record: of a gap those around it.
func packetsOf(r *dissect.Record) []int {
	if r.Type != dissect.GapRecord {
		return slices.Clone(r.Packets)
	}
	around := slices.DeleteFunc([]int{r.After, r.Before}, func(n int) bool { return n == 0 })
	return slices.Compact(around)
}
