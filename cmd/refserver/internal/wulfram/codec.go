package wulfram

import (
	"fmt"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
	"opscope/schema/wire"
)

// The limits of section 4.5. An outgoing record beyond them is logged and dropped,
// never truncated; the same bounds hold for what comes in.
const (
	maxDatagram   = 3072  // bytes, everything counted
	maxPayload    = 3068  // opcode and body of a record in mode 1 or 3
	maxTCPPayload = 10240 // opcode and body of a frame
	maxEntities   = 255   // records in one entity array
	lastOpcode    = 0x56  // section 1: 87 slots
)

// clerk numbers, encodes and decodes the records of one machine, and collects
// what it has to do.
type clerk struct {
	machine.Desk

	protocol *schema.Protocol
	side     schema.Sender // whose records it encodes
	state    *schema.State // the widths and masks in force
	observer machine.Observer
	encoder  schema.Encoder
	decoder  schema.Decoder
}

// newClerk returns the clerk of a machine. It panics if the built-in schema does
// not load, which is a programmer's mistake.
func newClerk(side schema.Sender, o machine.Observer) *clerk {
	p, err := schema.Builtin("wulfram")
	if err != nil {
		panic(err)
	}
	if o == nil {
		o = machine.Deaf{}
	}
	return &clerk{protocol: p, side: side, state: p.NewState(), observer: o}
}

// compose returns a record without a number or a place yet, and its body.
func (c *clerk) compose(message string, f fields) (machine.Record, []byte, error) {
	p := c.protocol.PacketNamed(message)
	if p == nil {
		panic("wulfram: no packet is called " + message)
	}
	r := machine.Record{Message: message, Opcode: int(p.Opcode), Seq: -1, Length: -1, Body: f.tree()}
	c.encoder.State = c.state
	layouts := p.Of(c.side)
	if len(layouts) == 0 {
		return r, nil, fmt.Errorf("%s: no layout is known", message)
	}
	body, err := c.encoder.Append(nil, c.protocol, message, layouts[0], r.Body)
	return r, body, err
}

// composeOpaque returns a record whose body nobody knows: bytes, and named so.
func (c *clerk) composeOpaque(message string, body []byte) machine.Record {
	p := c.protocol.PacketNamed(message)
	r := machine.Record{Message: message, Opcode: int(p.Opcode), Seq: -1, Length: -1, Opaque: true}
	r.Body = fields{{"opaque", body}}.tree()
	r.Note = "the body is made up"
	return r
}

// packet returns the packet that the peer sends with an opcode, or nil.
func (c *clerk) packet(opcode uint8, via schema.Transport) *schema.Packet {
	return c.protocol.Packet(uint64(opcode), c.side.Peer(), via)
}

// read decodes the body at data[head:] of a record of the peer. It returns the
// record and the bytes that it takes from data; of a record without a layout that
// is all of them.
func (c *clerk) read(data []byte, head int, via schema.Transport, opcode uint8) (machine.Record, int, error) {
	r := machine.Record{Message: c.protocol.OpcodeName(uint64(opcode)), Opcode: int(opcode), Mode: -1, Seq: -1, Length: -1, Size: len(data), Via: via}
	p := c.packet(opcode, via)
	if p == nil {
		return r, 0, fmt.Errorf("%s: the peer does not send it here", r.Message)
	}
	r.Body = &schema.Tree{Data: data}
	layouts := p.Of(c.side.Peer())
	if len(layouts) == 0 {
		r.Opaque = true
		r.Body = fields{{"opaque", data[head:]}}.tree()
		return r, len(data), nil
	}
	c.decoder.State = c.state
	c.decoder.Short = wire.Malformed
	if err := c.decoder.Decode(c.protocol, r.Message, layouts[0], r.Body, 8*head, 8*len(data)); err != nil {
		return r, 0, err
	}
	return r, c.decoder.End / 8, nil
}
