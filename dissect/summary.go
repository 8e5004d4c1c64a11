package dissect

import (
	"time"

	"opscope/reassembly"
	"opscope/schema/wire"
)

// Summary is the counters of a run. The zero Summary is ready to use.
type Summary struct {
	First, Last    time.Time // of the packets; the earliest and the latest
	Packets        int
	Bytes          int64          // on the wire
	CutBytes       int64          // of those, beyond what the capture keeps of a packet
	Records        map[string]int // by protocol
	UnknownOpcodes int
	UnknownBodies  int
	UndecodedBytes int64 // after the last field of records
	Gaps           int
	LostBytes      int64 // in gaps
	Retransmitted  int
	Segments       Segments
	Fragments      Fragments
	PeakWaiting    int // the most bytes that waited for holes at a time
	Conflicts      int // retransmitted segments with other bytes
	Resyncs        int
	Evictions      int            // flows, holes, fragments and records given up because of a limit
	Limits         map[string]int // how often each limit was reached, by its name
	Defects        int            // records lost to a defect of a dissector
	Copies         int            // packets seen at another interface too, and dissected once
	Backward       int            // packets with a time before that of an earlier one
	WrongSums      int            // packets of known protocols with a wrong checksum
	Unsupported    int            // packets of a link type that is not supported
	OtherFlows     int            // of no known protocol
	Errors         [3]int         // records with an error, by wire.Kind
	Notes          map[string]int // by code
}

// AddPacket counts a packet.
func (s *Summary) AddPacket(p *Packet) {
	s.Packets++
	s.Bytes += int64(p.Length)
	s.CutBytes += int64(max(0, p.Length-len(p.Data)))
	switch {
	case s.Packets == 1:
		s.First, s.Last = p.Time, p.Time
	case p.Time.Before(s.Last):
		s.Backward++
		if p.Time.Before(s.First) {
			s.First = p.Time
		}
	default:
		s.Last = p.Time
	}
}

// AddRecord counts a record with its notes and its error. Packets, conflicts,
// evictions and flows of no known protocol are counted by who sees them.
func (s *Summary) AddRecord(r *Record) {
	if r.Type == FrameRecord {
		s.addRecords(r.Protocol, 1)
	}
	s.addContent(r)
}

// addRecords counts so many records of frames.
func (s *Summary) addRecords(protocol string, n int) {
	if s.Records == nil {
		s.Records = map[string]int{}
	}
	s.Records[protocol] += n
}

// addContent counts what a record tells, and its notes and error.
func (s *Summary) addContent(r *Record) {
	switch r.Type {
	case GapRecord:
		if r.Text != reassembly.SnapLength.String() { // the packet is there
			s.Gaps++
			s.LostBytes += r.Bytes
		}
	case EventRecord:
		if r.Code == "resync" {
			s.Resyncs++
		}
	}
	s.UndecodedBytes += int64(len(r.Rest))
	if r.Err != nil && r.Err.Kind <= wire.Incomplete {
		s.Errors[r.Err.Kind]++
		s.reached(r.Err.Limit, 1)
	}
	for i := range r.Notes {
		if s.Notes == nil {
			s.Notes = map[string]int{}
		}
		code := r.Notes[i].Code
		s.Notes[code]++
		switch code {
		case "unknown_opcode", "unknown_packet_id":
			s.UnknownOpcodes++
		case "unknown_body":
			s.UnknownBodies++
		case "retransmission":
			s.Retransmitted++
		}
	}
}

// Segments counts what was odd about the segments of known protocols, short of a
// loss.
type Segments struct {
	Retransmitted int // with nothing new, or in part
	KeepAlives    int
	OutOfOrder    int
}

// add adds the counts of o.
func (s *Segments) add(o *Segments) {
	s.Retransmitted += o.Retransmitted
	s.KeepAlives += o.KeepAlives
	s.OutOfOrder += o.OutOfOrder
}

// Fragments counts IP fragments of which nothing came.
type Fragments struct {
	Duplicates int // with nothing new
	Refused    int // that fit no datagram
	Incomplete int // datagrams of which only a part was captured
}
