// Package reassembly puts the bytes of a conversation back in order: TCP
// segments into streams, IP fragments into datagrams.
//
// What comes in are segments and fragments as a capture shows them: late,
// twice, cut, or not at all. What goes out is what is true of the traffic: chunks
// of each stream at their offsets, gaps where the capture has nothing, and events
// for everything odd on the way. A gap is never filled with zeros, and no byte is
// passed over in silence.
//
// An observer in the middle is neither end. It must not wait for a segment
// that it alone has missed, and it may see an acknowledgement before the data.
// So every wait here is bounded, by bytes, by segments and by capture time, and
// nothing looks at a clock: time is what the packets say, and where they
// disagree, the latest that any of them has said.
//
// Bytes are borrowed both ways. A payload is read during the call and copied only
// if it has to wait; a Chunk is valid during the call that hands it over, and a
// Datagram until the next call. Nothing is allocated per packet once warm.
//
// Sequence numbers wrap. They are compared in serial.go and nowhere else; behind
// it, a position in a stream is an int64 that never does.
package reassembly
