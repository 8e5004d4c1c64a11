// Package machine is what servers and bots are: state machines without I/O. They
// are given the time and an input, and return what to send. Who carries it, real
// sockets or an in-memory network with a virtual clock, is not their business.
package machine

import (
	"net/netip"
	"time"

	"opscope/schema"
)

// Conn names a TCP connection of a machine, by a number that its host gives.
type Conn int

// InputKind says what happened.
type InputKind uint8

// The inputs.
const (
	Tick     InputKind = iota // the time that Deadline asked for has come
	Opened                    // a connection is there, accepted or dialled
	Refused                   // a connection that was dialled is not
	Stream                    // bytes of a connection
	Closed                    // the peer has closed a connection, or it broke
	Datagram                  // a datagram
	Bound                     // a UDP socket that was asked for is there, or cannot be
)

// Input is one thing that happened.
type Input struct {
	Kind InputKind
	Conn Conn           // of Opened, Refused, Stream and Closed; of Bound: who asked
	Peer netip.AddrPort // of Opened: the other end; of Datagram: its sender
	Port uint16         // the machine's own UDP port: to which a Datagram came, or that is Bound, 0 where none can be
	Data []byte         // of Stream and Datagram; borrowed during the call
}

// OutputKind says what to do.
type OutputKind uint8

// The outputs.
const (
	SendStream   OutputKind = iota // write Data to a connection
	SendDatagram                   // send Data to Peer
	Dial                           // open a connection to Peer, named Conn
	Close                          // close a connection, after what was written
	Abort                          // reset a connection
	Bind                           // open one more UDP socket, for connection Conn
	Unbind                         // close the UDP socket Local
	Done                           // the machine has nothing more to do
)

// Output is one thing to do.
type Output struct {
	Kind OutputKind
	Conn Conn
	Peer netip.AddrPort
	Port uint16 // the own UDP port to send a datagram from, 0 for the usual one; of Unbind: which
	Data []byte // the machine's own, not changed afterwards
	// Records says what Data holds, record by record, in its order: what a log
	// writes and a dissector is to find.
	Records []Record
}

// Record is one record as its sender knows it.
type Record struct {
	ID      int // of this machine, from 1; an acknowledgement names it
	Message string
	// Protocol is the one that names the message, empty for that of the machine: a
	// session may speak two.
	Protocol string
	Opcode   int
	Offset   int // bytes from the start of Data
	Size     int
	Mode     int          // stream mode, -1 where there are none, as on TCP
	Seq      int          // -1 for none
	Length   int          // as the envelope says, -1 for none
	Head     *schema.Tree // the values of the envelope by their names, where it has more
	Body     *schema.Tree
	Resend   int              // ID of the record that this one repeats, 0 for none
	Opaque   bool             // a body whose layout nobody knows
	Note     string           // what is on purpose odd about it
	Aside    bool             // it is between two clients: neither is the server
	Via      schema.Transport // of a received record
	Port     uint16           // of a received record: the own port that it came to, 0 for the usual one
}

// Machine is a server or a bot.
type Machine interface {
	// Handle takes one input and returns what to do, in order. The time never goes
	// back.
	Handle(now time.Time, in Input) []Output
	// Deadline returns when the machine wants a Tick, the zero time for never.
	Deadline() time.Time
}

// Observer is told what a machine received and what it thinks of its records; a
// log is one. A machine without one has a Deaf.
type Observer interface {
	// Received tells a record that the machine understood, once, when it is
	// delivered. Its Body is borrowed during the call; its Offset is -1 when it had
	// to wait for its predecessors.
	Received(now time.Time, from netip.AddrPort, r Record)
	// Acknowledged tells that the peer has acknowledged the record with this ID: the
	// first of those with the same bytes, not the one that repeats it.
	Acknowledged(now time.Time, id int)
	// Event tells anything else: a refusal, a retry given up, a session that ends.
	Event(now time.Time, code, text string)
}

// Deaf is the observer of a machine that has none.
type Deaf struct{}

// Received does nothing.
func (Deaf) Received(time.Time, netip.AddrPort, Record) {}

// Acknowledged does nothing.
func (Deaf) Acknowledged(time.Time, int) {}

// Event does nothing.
func (Deaf) Event(time.Time, string, string) {}
