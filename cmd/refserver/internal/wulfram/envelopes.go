package wulfram

import (
	"opscope/cmd/refserver/internal/transport"
	"opscope/reassembly"
	"opscope/schema"
)

// Envelopes writes what one side says in a session where every opcode has mode 1, so that
// each record by UDP has an envelope of five bytes. No peer is known to talk like this; it is
// for those who take every record for such a one.
type Envelopes struct {
	*clerk
	table transport.Table
	next  map[uint8]uint16 // sequence, by opcode
}

// NewEnvelopes returns what writes for a side.
func NewEnvelopes(side schema.Sender) *Envelopes {
	e := &Envelopes{clerk: newClerk(side, nil), next: map[uint8]uint16{}}
	for opcode := range uint8(lastOpcode + 1) {
		e.table.Pairs = append(e.table.Pairs, transport.Pair{Opcode: opcode, Mode: transport.Latest})
	}
	return e
}

// AppendHandshake appends the side's D_HANDSHAKE, which alone is raw: before it nobody can
// know of an envelope. Its time, of which it returns the milliseconds, is such that its size
// stands where an envelope has that.
func (e *Envelopes) AppendHandshake(dst []byte) ([]byte, uint32, error) {
	compose := func(clock uint32) ([]byte, error) {
		_, body, err := e.compose("D_HANDSHAKE", handshakeFields(clock, 1, &e.table))
		return body, err
	}
	body, err := compose(0)
	if err != nil {
		return dst, 0, err
	}
	clock := uint32(1 + len(body))
	body, err = compose(clock)
	return append(append(dst, byte(e.opcode("D_HANDSHAKE"))), body...), clock, err
}

// AppendAnswer appends the D_ACK of a handshake.
func (e *Envelopes) AppendAnswer(dst []byte, clock uint32) ([]byte, error) {
	_, body, err := e.compose("D_ACK", fields{{"subtype", 0}, {"timestamp", clock}})
	dst, _ = e.AppendRecord(dst, uint8(e.opcode("D_ACK")), body)
	return dst, err
}

// AppendAck appends the D_ACK of a record.
func (e *Envelopes) AppendAck(dst []byte, opcode uint8, seq uint16) ([]byte, error) {
	_, body, err := e.compose("D_ACK", fields{{"subtype", 1}, {"acked_opcode", opcode}, {"acked_sequence", seq}})
	dst, _ = e.AppendRecord(dst, uint8(e.opcode("D_ACK")), body)
	return dst, err
}

// AppendRecord appends a record with a sequence, which it returns.
func (e *Envelopes) AppendRecord(dst []byte, opcode uint8, body []byte) ([]byte, uint16) {
	seq, known := e.next[opcode]
	if !known {
		seq = transport.First
	}
	e.next[opcode] = uint16(reassembly.Serial{Modulus: transport.Modulus}.Next(uint64(seq)))
	return e.protocol.Framing("udp").Modes[int(transport.Latest)].Append(dst, uint64(opcode), int(seq), body, schema.CountsFrame), seq
}

// AppendFrame appends a frame of TCP.
func (e *Envelopes) AppendFrame(dst []byte, opcode uint8, body []byte) []byte {
	framing := e.protocol.Framing("tcp")
	return framing.Envelope.Append(dst, uint64(opcode), 0, body, framing.Counts)
}

// Body returns the body of a record as it was sent in a mode, -1 for a frame of TCP.
func (e *Envelopes) Body(data []byte, opcode uint8, mode int) []byte {
	if mode < 0 {
		return data[len(e.AppendFrame(nil, opcode, nil)):]
	}
	return data[len(e.protocol.Framing("udp").Modes[mode].Append(nil, uint64(opcode), 0, nil, schema.CountsFrame)):]
}

// EitherWay reports whether the side may send an opcode over TCP as well as over UDP, with the
// same layout.
func (e *Envelopes) EitherWay(opcode uint8) bool {
	tcp := e.protocol.Packet(uint64(opcode), e.side, schema.TCP)
	return opcode > lastControl && tcp != nil && tcp == e.protocol.Packet(uint64(opcode), e.side, schema.UDP)
}

// lastControl is the last of the opcodes that are rejected on TCP (section 3).
const lastControl = 0x07

// Control reports whether an opcode is one of the transport controls, D_ACK among them.
func (e *Envelopes) Control(opcode uint8) bool { return opcode <= e.opcode("D_SET_START") }

func (e *Envelopes) opcode(message string) uint8 {
	return uint8(e.protocol.PacketNamed(message).Opcode)
}
