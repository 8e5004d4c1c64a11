package mmo

import (
	"errors"
	"sync"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/mmo/testserver"
	"opscope/schema"
	"opscope/schema/wire"
)

// The errors of S_ErrorRes (section 4).
const (
	codeMalformed    = "ERROR_CODE_MALFORMED_PACKET"
	codeUnknown      = "ERROR_CODE_UNKNOWN_PACKET"
	codeInvalidData  = "ERROR_CODE_INVALID_DATA"
	codeInvalidState = "ERROR_CODE_INVALID_STATE"
	codeAuthRequired = "ERROR_CODE_AUTH_REQUIRED"
	codeRateLimited  = "ERROR_CODE_RATE_LIMITED"
)

// What read returns for the first two of them.
var (
	errMalformed = errors.New("the body does not parse")
	errUnknown   = errors.New("nobody sends this here")
)

// batchMost is the entries of a datagram of the movement sender's target size
// (section 5).
const batchMost = (1200 - 4 - 12) / 40

// secrets are the fields that no log shows; of the deprecated messages it shows none.
var secrets = map[string]bool{"enter_token": true, "udp_token": true}

// clerk numbers, encodes and decodes the frames of one machine, and collects what it
// has to do.
type clerk struct {
	machine.Desk

	protocol *schema.Protocol
	framing  *schema.Framing
	side     schema.Sender // whose frames it encodes
	observer machine.Observer
	encoder  schema.Encoder
	decoder  schema.Decoder
}

// protocol returns the built-in schema with the bodies that the test server has made
// up. It panics if it does not load, which is a programmer's mistake.
var protocol = sync.OnceValue(func() *schema.Protocol {
	p, err := schema.Builtin("mmo")
	if err == nil {
		p, err = p.Overlay(testserver.Messages(), testserver.MessagesDir)
	}
	if err != nil {
		panic(err)
	}
	return p
})

// bigEndian is protocol in the other byte order.
var bigEndian = sync.OnceValue(func() *schema.Protocol {
	p, err := protocol().WithOrder(wire.Big)
	if err != nil {
		panic(err)
	}
	return p
})

// newClerk returns the clerk of a machine.
func newClerk(side schema.Sender, s *testserver.Settings, o machine.Observer) *clerk {
	p := protocol()
	if s.ByteOrder == testserver.Big {
		p = bigEndian()
	}
	if o == nil {
		o = machine.Deaf{}
	}
	return &clerk{protocol: p, framing: p.Framing("tcp"), side: side, observer: o}
}

// compose returns the frame of a message, and its record without a number or a place.
func (c *clerk) compose(message string, v schema.Values) (machine.Record, []byte, error) {
	p := c.protocol.PacketNamed(message)
	if p == nil || len(p.Of(c.side)) == 0 {
		panic("mmo: no message of this side is called " + message)
	}
	r := machine.Record{Message: message, Opcode: int(p.Opcode), Mode: -1, Seq: -1, Body: schema.NewTree(v)}
	hide(r.Body, p.Deprecated != "")
	body, err := c.encoder.Append(nil, c.protocol, message, p.Of(c.side)[0], r.Body)
	if err != nil {
		return r, nil, err
	}
	data := c.frame(r.Opcode, body)
	r.Size, r.Length = len(data), len(data)
	return r, data, nil
}

// frame puts the header in front of a body.
func (c *clerk) frame(id int, body []byte) []byte {
	return c.framing.Envelope.Append(nil, uint64(id), 0, body, c.framing.Counts)
}

// hide has no log show the secrets of a body, or any text of it.
func hide(t *schema.Tree, all bool) {
	for i := range t.Nodes {
		if n := &t.Nodes[i]; secrets[n.Field.Name] || all && n.Kind == schema.String {
			n.Field.Redact = schema.Secret
		}
	}
}

// byHand returns the frame of a body that may make no sense, and its record.
func (c *clerk) byHand(id int, body []byte) (machine.Record, []byte) {
	data := c.frame(id, body)
	return machine.Record{
		Message: c.protocol.OpcodeName(uint64(id)), Opcode: id, Size: len(data), Mode: -1, Seq: -1, Length: len(data), Opaque: true,
		Body: schema.NewTree(schema.Values{"opaque": body}), Note: "made by hand",
	}, data
}

// next finds the first whole frame of what has come. It returns nil while there is
// none; an error means that there never will be.
func (c *clerk) next(data []byte) ([]byte, *wire.Error) {
	f, err := c.framing.Find(data, "mmo")
	if err != nil {
		if err.Kind == wire.Incomplete {
			err = nil
		}
		return nil, err
	}
	return data[:f.Size], nil
}

// opcode returns the id of a whole frame.
func (c *clerk) opcode(frame []byte) uint64 {
	f, _ := c.framing.Find(frame, "mmo")
	return f.Opcode
}

// read decodes a whole frame of the peer. With errUnknown or errMalformed the record
// says at least which message it is. The record borrows the frame.
func (c *clerk) read(frame []byte, via schema.Transport) (machine.Record, error) {
	f, _ := c.framing.Find(frame, "mmo") // it is whole
	r := machine.Record{
		Message: c.protocol.OpcodeName(f.Opcode), Opcode: int(f.Opcode), Size: len(frame), Mode: -1, Seq: -1, Length: len(frame), Via: via,
		Body: &schema.Tree{Data: frame},
	}
	p := c.protocol.Packet(f.Opcode, c.side.Peer(), via)
	if p == nil || len(p.Of(c.side.Peer())) == 0 {
		return r, errUnknown
	}
	c.decoder.Short = wire.Malformed
	if err := c.decoder.Decode(c.protocol, r.Message, p.Of(c.side.Peer())[0], r.Body, 8*f.Head, 8*len(frame)); err != nil {
		return r, errMalformed
	}
	return r, nil
}

// body is a decoded frame, for reading single fields of it. What is not there is the
// default.
type body struct{ *schema.Tree }

func (b body) uint(name string) uint64 { return b.Uint(b.Field(name)) }

func (b body) bool(name string) bool { return b.uint(name) != 0 }

func (b body) float(name string) float32 {
	if i := b.Field(name); i >= 0 {
		return float32(b.Nodes[i].Float())
	}
	return 0
}

func (b body) bytes(name string) []byte {
	if i := b.Field(name); i >= 0 {
		return b.AppendBytes(nil, i)
	}
	return nil
}

// milliseconds returns a time as the server tells it.
func milliseconds(t time.Time) uint64 { return uint64(t.UnixMilli()) }
