// Package transport keeps the reliability of Wulfram's UDP as its two ends do: a
// Sender numbers records, holds them back, repeats them and retires them when
// they are acknowledged; a Receiver delivers what came in the order that its mode
// asks for and says what to acknowledge.
//
// Neither does I/O, reads a clock or knows the layout of a record. A Sender is
// told the time and returns what to send, as opcode, sequence and body; framing
// is the caller's. Bodies given to a Sender are kept and must not change; those
// given to a Receiver are copied when they have to wait.
//
// Facts: protocols/wulfram.md, sections 4.1 to 4.5. This package is written from
// them and from nothing else; opscope's dissector has its own reading, and the two
// must agree. What the facts leave open is decided here, each where it stands:
//
//   - The cursor is the next sequence expected, so five ahead of it are six
//     numbers: itself and five more.
//   - The seed of 500 ms is the average itself, so the first timeout is 500 ms.
//   - There is one timer a stream, and its firing counts once, however many
//     records are due. A record that was repeated gives no sample, since nobody
//     knows which copy was acknowledged.
//   - A mode 1 record is repeated as it was, then under a new sequence, in turn:
//     the receiver does not acknowledge a sequence that it has passed, so only a
//     new one ends the case of a lost acknowledgement.
package transport
