package sink

import "opscope/dissect"

// kinds keep what a sink writes of protocol, message and opcode of a record, which all
// records of one message share. Most games have fewer messages.
type kinds [256]kind

type kind struct {
	protocol, message string
	opcode            int
	text              []byte
	hidden            int // bytes of text that are no columns
}

// of returns the kind of a record, and whether its text is there; if not, it is empty, and
// for the sink to make.
func (k *kinds) of(r *dissect.Record) (*kind, bool) {
	at := &k[uint(r.Opcode^r.Opcode>>8)%uint(len(k))]
	if at.opcode == r.Opcode && at.message == r.Message && at.protocol == r.Protocol && len(at.text) > 0 {
		return at, true
	}
	at.protocol, at.message, at.opcode = r.Protocol, r.Message, r.Opcode
	at.text, at.hidden = at.text[:0], 0
	return at, false
}
