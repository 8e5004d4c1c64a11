package netrek

import (
	"fmt"
	"strings"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
	"opscope/schema/wire"
)

// lookahead is more than the largest packet of either side: SP_S_PLANET with a
// count of 255 has 1532 bytes.
const lookahead = 2048

// head is the bytes in front of a body: the type.
const head = 1

// clerk numbers, encodes and decodes the packets of one machine, and collects what
// it has to do.
type clerk struct {
	machine.Desk

	protocol *schema.Protocol
	side     schema.Sender // whose packets it encodes
	packets  map[string]*schema.Packet
	features *schema.Enum // keys of the table of features
	observer machine.Observer
	encoder  schema.Encoder
	decoder  schema.Decoder
}

// newClerk returns the clerk of a machine. It panics if the built-in schema does
// not load, which is a programmer's mistake.
func newClerk(side schema.Sender, o machine.Observer) *clerk {
	p, err := schema.Builtin("netrek")
	if err != nil {
		panic(err)
	}
	if o == nil {
		o = machine.Deaf{}
	}
	c := &clerk{protocol: p, side: side, packets: map[string]*schema.Packet{}, observer: o}
	for _, k := range p.Packets {
		c.packets[k.Name] = k
	}
	for _, e := range p.Enums {
		if e.Name == "feature" {
			c.features = e
		}
	}
	return c
}

// newState returns what a fresh session has learned: no feature is on, and short
// packets are off.
func (c *clerk) newState() *schema.State {
	s := c.protocol.NewState()
	for _, f := range c.features.Values {
		setEntry(s, "features", int64(f.Value), 0)
	}
	setEntry(s, "short_version", 0, 0)
	return s
}

func setEntry(s *schema.State, table string, key int64, value int) {
	s.Table(table).Set(key, schema.Entry{Values: []float64{float64(value)}, Origin: schema.Learned})
}

// setFeature notes the answer to a feature, by its name without regard to case. It
// leaves names alone that the table does not have.
func (c *clerk) setFeature(s *schema.State, name string, value int) {
	if key, ok := c.features.ValueOf(strings.ToUpper(name)); ok {
		setEntry(s, "features", int64(key), value)
	}
}

// append appends a packet to b, and returns its record with its place in b but
// without a number.
func (c *clerk) append(b []byte, s *schema.State, message string, v schema.Values) (machine.Record, []byte, error) {
	p := c.packets[message]
	if p == nil {
		panic("netrek: no packet is called " + message)
	}
	r := machine.Record{Message: message, Opcode: int(p.Opcode), Offset: len(b), Mode: -1, Seq: -1, Length: -1, Body: schema.NewTree(v)}
	if i := r.Body.Field("password"); i >= 0 {
		r.Body.Nodes[i].Field.Redact = schema.Secret // no log shows it
	}
	c.encoder.State, c.encoder.Head = s, head
	out, err := c.encoder.Append(append(b, byte(p.Opcode)), c.protocol, message, p.Of(c.side)[0], r.Body)
	if err != nil {
		return r, b, err
	}
	r.Size = len(out) - len(b)
	return r, out, nil
}

// read decodes the packet of the peer at the start of data. The error has the kind
// Incomplete while there is less than one packet. The record borrows data.
func (c *clerk) read(data []byte, s *schema.State, via schema.Transport) (machine.Record, *wire.Error) {
	return c.decode(data[:min(len(data), lookahead)], s, via, textual(data[0]))
}

// readText decodes a text datagram of the peer, which is no packet of the game.
func (c *clerk) readText(data []byte) (machine.Record, *wire.Error) {
	return c.decode(data, nil, schema.UDP, !textual(data[0]))
}

func (c *clerk) decode(data []byte, s *schema.State, via schema.Transport, misplaced bool) (machine.Record, *wire.Error) {
	r := machine.Record{Opcode: int(data[0]), Mode: -1, Seq: -1, Length: -1, Via: via}
	p := c.protocol.Packet(uint64(data[0]), c.side.Peer(), via)
	if p == nil || len(p.Of(c.side.Peer())) == 0 || misplaced {
		r.Message = schema.UnknownName(uint64(data[0]))
		return r, &wire.Error{Layer: "netrek", Size: len(data), Want: "a type that the peer sends", Got: fmt.Sprint(data[0]), Kind: wire.Malformed}
	}
	r.Message, r.Body = p.Name, &schema.Tree{Data: data}
	c.decoder.State, c.decoder.Short = s, wire.Incomplete
	if via == schema.UDP {
		c.decoder.Short = wire.Malformed
	}
	if err := c.decoder.Decode(c.protocol, p.Name, p.Of(c.side.Peer())[0], r.Body, 8*head, 8*len(data)); err != nil {
		return r, err
	}
	r.Size = c.decoder.End / 8
	return r, nil
}

// textual reports whether a type is the first letter of a text datagram.
func textual(opcode byte) bool { return strings.IndexByte("?srb", opcode) >= 0 }
