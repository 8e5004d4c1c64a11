// Package dissect turns packets into records: it joins flows into sessions,
// orders streams, cuts frames, and lets the protocols name what is in them.
//
// This file is the vocabulary; pipeline.go is the one loop. A protocol is a
// Protocol with its Conversations, and an entry in the list of protocols/. The bytes of a
// Packet are borrowed until the source's next call; a Record belongs to the
// pipeline and is valid during the call that hands it to a sink.
package dissect

import (
	"errors"
	"net/netip"
	"time"

	"opscope/reassembly"
	"opscope/schema"
	"opscope/schema/wire"
)

// Packet is what a capture delivers: link-layer bytes with their time.
type Packet struct {
	Number    int       // from 1, as Wireshark counts
	Time      time.Time // UTC
	Digits    int       // decimal digits of the capture's time resolution, 0 to 9
	Data      []byte    // the captured bytes, borrowed until the next call to Next
	Length    int       // bytes on the wire; more than len(Data) when the capture cut it
	Link      LinkType
	Interface int  // index within the capture
	Several   bool // the capture has more than one interface
	Dropped   int  // packets that the capture lost just before this one
}

// LinkType is the link-layer header type, as in https://www.tcpdump.org/linktypes.html.
type LinkType uint32

// Source delivers packets in the order of the capture.
type Source interface {
	// Next fills p with the next packet. It returns io.EOF after the last, ErrIdle when
	// none has come for a while and one still may, and any other error with what was
	// read before it intact. p.Data is valid until the next call.
	Next(p *Packet) error
}

// ErrIdle is what a live Source returns now and then, so that time passes on a silent link.
var ErrIdle = errors.New("no packet for a while")

// Direction says which side of a session sent something.
type Direction uint8

// The directions.
const (
	UnknownDirection Direction = iota
	ClientToServer
	ServerToClient
)

// String returns "c2s", "s2c" or "".
func (d Direction) String() string { return [...]string{"", "c2s", "s2c"}[d] }

// Reverse returns the other direction.
func (d Direction) Reverse() Direction { return [...]Direction{0, ServerToClient, ClientToServer}[d] }

// Sender returns the side that sends in this direction.
func (d Direction) Sender() schema.Sender {
	return [...]schema.Sender{schema.AnySender, schema.Client, schema.Server}[d]
}

// Type is the type of a Record, the "type" of NDJSON.
type Type uint8

// The types of records.
const (
	FrameRecord   Type = iota // a decoded frame: "record"
	AckRecord                 // an acknowledgement of a record already shown
	GapRecord                 // bytes that were never captured
	SessionRecord             // a session begins or ends
	EventRecord               // something that happened to a flow
)

// String returns the word of NDJSON.
func (t Type) String() string {
	return [...]string{"record", "ack", "gap", "session", "event"}[t]
}

// Severity ranks a Note.
type Severity uint8

// The severities.
const (
	Info    Severity = iota // worth knowing
	Notice                  // unusual
	Warning                 // probably wrong
)

// String returns the word of NDJSON.
func (s Severity) String() string { return [...]string{"info", "note", "warning"}[s] }

// Note is a remark on a record. Codes are listed in notes.go.
type Note struct {
	Code string
	Text string // may be empty: then the code says it all
}

// AckState says what became of a record that wants an acknowledgement.
type AckState uint8

// The states.
const (
	AckNone      AckState = iota // needs none
	AckPending                   // not yet known
	AckAcked                     // an acknowledgement of it was captured
	AckUnacked                   // none was captured while it was waited for
	AckDuplicate                 // an acknowledgement for an earlier copy serves
	AckIgnored                   // the sender had the receiver skip it
)

var ackNames = [...]string{"none", "pending", "acked", "unacked", "duplicate", "ignored"}

// String returns the word of NDJSON.
func (s AckState) String() string { return ackNames[s] }

// Ack is the acknowledgement of a record.
type Ack struct {
	State AckState
	By    int           // number of the packet with the acknowledgement, 0 for none
	RTT   time.Duration // from the record to its acknowledgement; negative when open
}

// Envelope is what stands around a body. Numbers are -1 where there is none.
type Envelope struct {
	Mode      int // stream mode
	Seq       int // sequence
	Length    int // as the envelope itself says
	Origin    schema.Origin
	LearnedIn int  // number of the packet that taught the mode, 0 for none
	Prefixed  bool // the datagram had its size in front
	// Of a message that its sender sends several times by design.
	Copies int // how often it was seen, on its first record; 0 where it is sent once
	First  int // number of the packet with the record that counts this one, 0 for none
}

// NoEnvelope is the envelope with nothing in it.
var NoEnvelope = Envelope{Mode: -1, Seq: -1, Length: -1}

// Record is one line of output: a decoded frame, or something that happened. It
// is reused; a sink that keeps one copies it, or has it retained.
type Record struct {
	Type      Type
	Direction Direction
	Transport schema.Transport
	Context   schema.Origin // the least sure table entry that the body was read with
	Retold    bool          // read from what a sink wrote: fields have no place in Raw, and may be masked
	Made      bool          // Raw was put together, and stands nowhere on the wire as it is
	Lost      bool          // Raw begins no frame, for all that is known
	Open      bool          // more copies may come, for which the Hold waits
	Joined    bool          // of a SessionRecord: the session began before the capture

	Zero    uint32 // TCP sequence number of the stream's offset 0
	Ack     Ack
	File    int // index of the input, from 0
	N       int // number of the record in its file, from 1; 0 for other types
	Packets []int
	Time    time.Time
	Digits  int // decimal digits of the capture's time resolution
	// Started and Previous are the times of the first packet of the file and of
	// the one before this record's last packet; zero where nobody knows.
	Started, Previous time.Time

	Session  int // from 1; 0 for none
	Flow     int // from 1
	Src, Dst netip.AddrPort
	Passage  Passage // of its last packet

	Protocol string
	Message  string // wire name
	Opcode   int    // -1 for none
	Packet   *schema.Packet
	Layout   *schema.Layout
	Envelope Envelope
	Stream   int         // from 1 in each capture: the records whose sequences count together; 0 where none counts
	Head     schema.Tree // fields of the envelope beside those in Envelope, where it has more; as Body
	Body     schema.Tree // decoded fields; positions count from the start of Raw
	Raw      []byte      // the whole record as it stood on the wire
	Size     int         // bytes of the record on the wire
	Offset   int64       // where it starts, in its datagram or stream
	Rest     []byte      // bytes after the last field, part of Raw
	Acks     Acks        // of an acknowledgement; Packet and Message are empty for others
	Notes    []Note
	Err      *wire.Error
	Secrets  *Secrets // what no output may show, of the record's session; nil for nothing

	// AckRecord.
	Acked int // N of the acknowledged record
	// GapRecord.
	Bytes         int64
	After, Before int // packets around the gap, 0 for none
	// SessionRecord and EventRecord.
	Code           string // state of the session, or code of the event
	Text           string
	Client, Server netip.AddrPort

	home *held // where it is in a Hold; nil for a copy
}

// Acks is what an acknowledgement names.
type Acks struct {
	Verdict Verdict
	Seq     int
	Message string // of the acknowledged record; empty when it is not known
	Packet  int    // that carried it, 0 when it is not known
	N       int    // its number, 0 as long as it has not been written
	RTT     time.Duration
}

// Carrier says where the bytes of a frame or datagram came from.
type Carrier struct {
	Flow      *Flow
	Direction Direction
	Packets   []int // numbers of the packets with bytes of it, in their order; borrowed
	Time      time.Time
	Digits    int

	side    reassembly.Side
	passage Passage
}

// Frame is one message of a stream, as a Conversation takes it.
type Frame struct {
	Carrier
	schema.Frame
	Data    []byte    // the frame as far as it was captured, borrowed
	Offset  int64     // of its first byte in the stream
	Missing int       // bytes at its end that were not captured; then only Size is set above
	Short   wire.Kind // what running out of data means
}

// Datagram is the payload of a UDP packet, as a Conversation takes it.
type Datagram struct {
	Carrier
	Data   []byte // as far as it was captured, borrowed
	Length int    // bytes on the wire
	Waited bool   // for context, or behind one that did
	// Pieces says which packets brought which bytes of the IP payload, where it came
	// in fragments; the datagram begins behind the 8 bytes of its UDP header.
	Pieces []reassembly.Piece
}

// Locate notes which packets carry the bytes of r, which are those from one offset
// of the datagram up to another.
func (d *Datagram) Locate(r *Record, from, to int) {
	if len(d.Pieces) == 0 {
		return
	}
	const header = 8
	r.Packets = r.Packets[:0]
	for _, p := range d.Pieces {
		if p.Offset < to+header && p.Offset+p.Length > from+header {
			r.Packets = append(r.Packets, p.Packet)
		}
	}
}

// Protocol is one game protocol. It has no state of its own.
type Protocol interface {
	// Head returns what is known of the protocol before its layouts are loaded.
	Head() (schema.Head, error)
	// Schema returns the protocol's layouts.
	Schema() (*schema.Protocol, error)
	// Recognize judges the first bytes that one side of a flow sent, of a stream or
	// a datagram: whether they are this protocol's, and which side sends them. Most flows are
	// nobody's, so that it is to say no soon. It decodes with w, which keeps no state.
	Recognize(w *Scratch, t schema.Transport, data []byte) (schema.Sender, Recognition)
	// Open begins a session.
	Open(s *Session) Conversation
}

// Recognition is what first bytes are to a protocol.
type Recognition uint8

// The recognitions.
const (
	Foreign  Recognition = iota // nothing that it knows
	Familiar                    // its own, from the middle of a session
	Opening                     // what a session begins with
)

// Conversation is what a protocol knows of one session. Its methods are called
// in the order of the capture; what they are given is borrowed.
type Conversation interface {
	// Cut finds one frame at the start of data, as schema.Framing.Cut does. Of one
	// that is incomplete it tells the size, once that is there. The error may be one and
	// the same each time, and tell no more than its kind: it is asked for at each byte where
	// a boundary is looked for.
	Cut(d Direction, data []byte) (schema.Frame, *wire.Error)
	// Fault says why Cut has just found no whole frame at the start of data.
	Fault(d Direction, data []byte) *wire.Error
	// Doubt judges whether a whole frame was none, by what is known to follow it, which
	// may be nothing, or what there is of one that nothing follows. The error says so; a
	// boundary is looked for inside the frame.
	Doubt(d Direction, frame, after []byte) *wire.Error
	// Plausible judges whether a whole frame could be one that d brings: what finding
	// a boundary trusts.
	Plausible(d Direction, frame []byte) Plausibility
	// Frame decodes a frame and emits its record.
	Frame(f *Frame)
	// Datagram decodes a datagram and emits its records. It returns false, and has
	// done nothing, when the datagram needs context that may still come; if final, it
	// will not come any more.
	Datagram(d *Datagram, final bool) bool
	// Claim judges whether a datagram of a flow belongs to this session.
	Claim(d *Datagram) Claim
	// Tables returns what the session has learned.
	Tables() []LearnedTable
}

// Connector is a Conversation of peers: either side dials the other, and more than
// once. Neither ports nor who dialled say there who is client; Carrier.Said does, for
// all flows of the session.
type Connector interface {
	// Connects judges whether another connection belongs to this session: one between
	// its hosts, or to an address that it expects.
	Connects(f *Flow) bool
}

// What the Text of a GapRecord says, which is why the bytes are missing; there are
// others.
const (
	NotCaptured = "not_captured" // no packet brought them
	SnapLength  = "snap_length"  // the capture cut them off the packet that is both After and Before
)

// Plausibility is how well bytes would do for a frame.
type Plausibility uint8

// The plausibilities.
const (
	Implausible Plausibility = iota
	Possible                 // nothing speaks against it, and little for it
	Convincing               // a layout reads it to its end
	Certain                  // no other bytes look like it: one is enough where nothing follows
)

// Claim is what a session says of a datagram that may be its own.
type Claim uint8

// The claims.
const (
	Maybe    Claim = iota // nothing speaks against it
	Disowned              // it says that it belongs elsewhere
	Unsure                // it says where it belongs, and that is not known of any session here
	Owned                 // it says so
)

// LearnedTable is a table of one session, and of one side where it differs.
type LearnedTable struct {
	Sender schema.Sender
	Table  *schema.Table
}

// Reread drops what reading a body into r has left, for it to be read anew. Notes
// stay.
func (r *Record) Reread() {
	r.Err, r.Rest, r.Layout, r.Context = nil, nil, nil, schema.NoOrigin
	r.Body.Nodes = r.Body.Nodes[:0]
}

// Look says how much of a record a sink looks at. What a session learns from is there all
// the same.
type Look uint8

// How one looks at records, each at less than the one before.
const (
	LookWhole   Look = iota
	LookOutline      // of bodies at arrays of less than OutlineValues, and at the number of elements of others
	LookNothing      // at no value of a body or an envelope
	LookKind         // nor at what sequences and answers tell: only at what a record is, its size and its error
)

// OutlineValues is more values of an array than a line shows.
const OutlineValues = 5

// Sink takes records and writes them somewhere.
type Sink interface {
	// Write takes one record, which is valid during the call.
	Write(*Record) error
	// Flush writes out what is buffered.
	Flush() error
}
