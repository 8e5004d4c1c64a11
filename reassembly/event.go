package reassembly

import (
	"strconv"
	"time"
)

// Handler is told what a connection brings, in the order of each stream's bytes.
// It must not call the Conn or the Assembler that calls it.
type Handler interface {
	// Chunk takes the next bytes of a stream. The chunk, which may be changed, and its Data
	// are valid during the call.
	Chunk(*Chunk)
	// Gap takes the place of bytes that will not come.
	Gap(Gap)
	// Event takes a remark. One about the segment that Add is given comes before
	// the chunk that the segment brings; Closed comes after the last chunk.
	Event(Event)
}

// Chunk is a piece of a stream, all of it from one packet.
type Chunk struct {
	Side   Side
	Offset int64 // bytes from the start of the stream
	Data   []byte
	Cut    bool // the packet had more behind Data, which the capture has cut
	Packet int
	Time   time.Time
}

// Gap is a run of stream bytes that the capture does not have.
type Gap struct {
	Side   Side
	Offset int64 // bytes from the start of the stream; negative before the first one delivered
	Bytes  int64
	After  int       // number of the last packet before the gap, 0 for none
	Before int       // number of the packet after it; of SnapLength, the packet that was cut
	Time   time.Time // of the packet Before
	Reason Reason
}

// Reason says why bytes are missing.
type Reason uint8

// The reasons for a Gap.
const (
	NotCaptured Reason = iota // no packet with these bytes came in time
	SnapLength                // the packet came, and the capture had cut it
	MemoryLimit               // too much waited behind the hole
)

var reasonNames = [...]string{"not_captured", "snap_length", "memory_limit"}

// String returns the reason in snake case.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "reason(" + strconv.Itoa(int(r)) + ")"
}

// Event is something that happened to a connection, beside its bytes.
type Event struct {
	Kind   Kind
	Side   Side
	Offset int64 // where in the stream of Side; negative before its start
	Bytes  int64 // how many bytes it is about, 0 for none
	Packet int
	Time   time.Time
}

// Kind is what an Event tells.
type Kind uint8

// The kinds of events.
const (
	// Opened: Side has opened the connection, by its SYN or as the SYN of the
	// other side's answer shows. It comes once.
	Opened Kind = iota
	// Joined: the start of the stream was not captured; offset 0 is the first
	// byte that was.
	Joined
	// SYNRetransmission: a SYN with the initial sequence number already known,
	// however late.
	SYNRetransmission
	// Retransmission: every byte of the segment was there before.
	Retransmission
	// Overlap: Bytes of the segment were there before, the others are new.
	Overlap
	// Conflict: Bytes of an overlap differ from the first copy, which stands. Offset
	// is that of the first one that does.
	Conflict
	// KeepAlive: a probe at the last byte sent, with none or one byte of garbage,
	// which is neither delivered nor compared.
	KeepAlive
	// OutOfOrder: the segment brings new bytes, or the SYN, after bytes that follow
	// them.
	OutOfOrder
	// TooLate: the bytes lie in the gap reported last, and cannot be delivered.
	TooLate
	// BeforeStart: Bytes lie before offset 0 and are not delivered.
	BeforeStart
	// OutOfWindow: the segment is set aside for its sequence number, which is too
	// far from the stream's to be believed.
	OutOfWindow
	// AfterClose: Bytes lie behind the FIN, or came after a reset.
	AfterClose
	// MisplacedFIN: a FIN before bytes that were sent, or at another place than the
	// first. It is ignored.
	MisplacedFIN
	// Closed: the stream of Side ended with its FIN; the other one may go on.
	Closed
	// Reset: Side has reset the connection, and both streams end. Bytes counts the
	// payload, which is a message about the reset and no part of the stream.
	Reset
	// PortReused: the segment belongs to another connection of the same
	// endpoints, and this one is over.
	PortReused

	kinds = iota
)

var kindNames = [kinds]string{
	"opened", "joined_mid_stream", "syn_retransmission", "retransmission", "overlap",
	"overlap_conflict", "keep_alive", "out_of_order", "too_late", "before_start",
	"out_of_window", "after_close", "misplaced_fin", "closed", "reset", "port_reused",
}

// String returns the kind in snake case.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// Counters sum up one direction of a connection.
type Counters struct {
	Segments  int
	Bytes     int64 // delivered
	Gaps      int
	BytesLost int64      // in gaps
	Events    [kinds]int // by Kind
}

// Add adds the counts of o to c.
func (c *Counters) Add(o *Counters) {
	c.Segments += o.Segments
	c.Bytes += o.Bytes
	c.Gaps += o.Gaps
	c.BytesLost += o.BytesLost
	for k, n := range o.Events {
		c.Events[k] += n
	}
}
