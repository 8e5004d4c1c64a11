package reassembly

import "time"

// Side is one end of a connection: 0 or 1, as the caller numbers them. Which of
// them is the client is for the caller to say.
type Side uint8

// Peer returns the other side.
func (s Side) Peer() Side { return s ^ 1 }

// Flags are the control bits of a TCP header, in the places they have in its
// byte 13 (RFC 9293, section 3.1). Bits that have no name here are ignored.
type Flags uint8

// The flags that matter to the order of bytes.
const (
	FIN Flags = 1 << 0
	SYN Flags = 1 << 1
	RST Flags = 1 << 2
	ACK Flags = 1 << 4
)

// Segment is the TCP part of one packet.
type Segment struct {
	Side    Side // who sent it
	Flags   Flags
	Seq     uint32
	Ack     uint32 // read only when Flags has ACK
	Payload []byte // the captured bytes, borrowed during the call
	Length  int    // payload bytes on the wire; what is below len(Payload) means len(Payload)
	Packet  int    // number of the packet
	Time    time.Time
}

// length returns the number of payload bytes on the wire.
func (g *Segment) length() int64 { return int64(max(g.Length, len(g.Payload))) }
