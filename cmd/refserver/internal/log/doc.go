// Package log writes what the machines of a reference server say they sent,
// received and saw acknowledged, one JSON object a line, in the vocabulary of
// opscope's own NDJSON (DESIGN, section 6), so that the two can be compared. It
// has an encoder of its own, on purpose: the witness shares nothing with what it
// testifies about.
//
// A line has the keys of a record as opscope prints them, as far as its sender or
// receiver can know them, and these of its own:
//
//	id         number of the record at its sender; for a received one absent
//	peer       who says it: "server", or the name of a bot
//	resend_of  id of the record that this one repeats
//	acked      whether its sender saw it acknowledged; for sequenced records
//	opaque     true for a body whose layout nobody knows
//	note       what is on purpose odd about it
//
// The envelope has the values of the wire's envelopes by their names as well, where there
// are more than a sequence and a length. dir is null between two clients, of which neither
// is the server.
//
// A record that its own peer sent has src equal to the peer's address. Times are
// those of the machine, which for a received record is later than the capture's.
package log
