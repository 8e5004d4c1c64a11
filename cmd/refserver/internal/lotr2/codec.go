package lotr2

import (
	"fmt"
	"net/netip"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
	"opscope/schema/wire"
)

const (
	token     = 0xfab // of a frame from another machine (section 2)
	inet      = 2     // the family of a sockaddr
	signature = 0x706c6179
	dialect   = 14
	// maxFrame is far more than any frame that a peer has to send: a
	// SuperEnumPlayersReply for five players has some 800 bytes.
	maxFrame = 4096
)

// clerk numbers, encodes and decodes the frames of one machine, and collects what it
// has to do.
type clerk struct {
	machine.Desk

	dplay, lotr2 *schema.Protocol
	system       *schema.Envelope // of DirectPlay's own messages
	player       *schema.Envelope // of what players send
	frame        *schema.Envelope // of the game, inside the latter
	framing      *schema.Framing  // of streams
	side         schema.Sender    // whose frames it encodes
	port         uint16           // where it listens: the reply address of every frame
	observer     machine.Observer
	encoder      schema.Encoder
	decoder      schema.Decoder
}

// newClerk returns the clerk of a machine. It panics if a built-in schema does not
// load, which is a programmer's mistake.
func newClerk(side schema.Sender, port uint16, o machine.Observer) *clerk {
	if o == nil {
		o = machine.Deaf{}
	}
	c := &clerk{dplay: builtin("dplay"), lotr2: builtin("lotr2"), side: side, port: port, observer: o}
	c.system, c.player, c.frame = envelope(c.dplay, "system"), envelope(c.dplay, "player"), envelope(c.lotr2, "game_frame")
	c.framing = c.dplay.Framing("tcp")
	return c
}

func builtin(name string) *schema.Protocol {
	p, err := schema.Builtin(name)
	if err != nil {
		panic(err)
	}
	return p
}

func envelope(p *schema.Protocol, name string) *schema.Envelope {
	for _, e := range p.Envelopes {
		if e.Name == name {
			return e
		}
	}
	panic("lotr2: no envelope is called " + name)
}

// body encodes the body of a message, which has head bytes in front of it.
func (c *clerk) body(p *schema.Protocol, message string, head int, v schema.Values) (machine.Record, []byte, error) {
	k := p.PacketNamed(message)
	if k == nil {
		panic("lotr2: no packet is called " + message)
	}
	r := machine.Record{Message: message, Opcode: int(k.Opcode), Mode: -1, Seq: -1, Length: -1, Body: schema.NewTree(v)}
	readNames(r.Body)
	if i := r.Body.Field("password"); i >= 0 {
		r.Body.Nodes[i].Field.Redact = schema.Secret // no log shows it
	}
	layouts := k.Of(c.side)
	if len(layouts) == 0 {
		return r, nil, fmt.Errorf("%s: no layout is known", message)
	}
	c.encoder.Head = head
	b, err := c.encoder.Append(nil, p, message, layouts[0], r.Body)
	return r, b, err
}

// readNames makes those names of a table texts that are given as bytes, for what stands
// behind their NUL.
func readNames(t *schema.Tree) {
	i := t.Field("names")
	if i < 0 {
		return
	}
	for k := i + 1; k < t.Next(i); k = t.Next(k) {
		if t.Nodes[k].Kind == schema.Bytes {
			t.Nodes[k].Kind = schema.Text
		}
	}
}

// compose returns the frame of a DirectPlay message.
func (c *clerk) compose(message string, v schema.Values) (machine.Record, []byte, error) {
	r, b, err := c.body(c.dplay, message, c.system.Size(), v)
	if err != nil {
		return r, nil, err
	}
	r.Protocol, r.Size = c.dplay.Name, c.system.Size()+len(b)
	r.Head = logged(c.address(r.Size, schema.Values{"version": dialect}))
	head := schema.NewTree(c.address(r.Size, schema.Values{"signature": signature, "version": dialect, "opcode": r.Opcode}))
	return r, c.system.AppendWith(nil, head, b, schema.CountsFrame), nil
}

// address adds what every frame begins with: its size, the token and the reply
// address, whose host is 0.0.0.0, which is wherever the frame came from.
func (c *clerk) address(size int, v schema.Values) schema.Values {
	v["size"], v["token"], v["family"], v["port"], v["addr"] = size, token, inet, c.port, 0
	return v
}

// logged is the values of an envelope for a log, which has the opcode and the length of
// a record elsewhere.
func logged(head schema.Values) *schema.Tree {
	delete(head, "opcode")
	delete(head, "length")
	head["addr"] = netip.IPv4Unspecified().String()
	return schema.NewTree(head)
}

// carry returns the frame around a game frame that a player sends to another. The head
// has the values of both envelopes; it is completed.
func (c *clerk) carry(head schema.Values, payload []byte) []byte {
	if head["checksum"] == nil {
		head["checksum"] = schema.Sum8(payload)
	}
	if head["length"] == nil {
		head["length"] = len(payload)
	}
	c.address(c.player.Size()+c.frame.Size()+len(payload), head)
	t := schema.NewTree(head)
	return c.player.AppendWith(nil, t, c.frame.AppendWith(nil, t, payload, schema.CountsBody), schema.CountsFrame)
}

// received is a frame of a peer.
type received struct {
	machine.Record
	data     []byte // all of it, borrowed
	port     uint16 // where its sender listens
	game     bool   // a player's, not DirectPlay's
	from, to uint32
	length   int // as the game frame says, which may be wrong
	checksum uint8
	slot     int
	copy     int // 0 for the first send, 1 and 2 for its repetitions
	payload  []byte
}

// read decodes the frame that fills data. The sender is the side whose frame it is.
func (c *clerk) read(data []byte, sender schema.Sender, via schema.Transport) (received, error) {
	f := received{data: data, Record: machine.Record{Mode: -1, Seq: -1, Length: -1, Size: len(data), Via: via}}
	h, err := c.open(c.dplay, c.system, data)
	if err != nil {
		return f, err
	}
	f.port = uint16(h.Number("port"))
	if h.Number("signature") == signature {
		f.Protocol, f.Opcode = c.dplay.Name, h.Number("opcode")
		return f, c.decode(&f, c.dplay, sender, c.system.Size())
	}
	if h, err = c.open(c.dplay, c.player, data); err != nil {
		return f, err
	}
	f.game, f.from, f.to = true, h.id("from_id"), h.id("to_id")
	inner := data[c.player.Size():]
	if h, err = c.open(c.lotr2, c.frame, inner); err != nil {
		return f, err
	}
	f.Opcode, f.length, f.checksum = h.Number("opcode"), h.Number("length"), uint8(h.Number("checksum"))
	f.slot, f.copy, f.payload = h.Number("slot"), h.Number("copy"), inner[c.frame.Size():]
	f.Seq, f.Length = f.slot, f.length
	return f, c.decode(&f, c.lotr2, sender, c.player.Size()+c.frame.Size())
}

// open decodes an envelope.
func (c *clerk) open(p *schema.Protocol, e *schema.Envelope, data []byte) (body, error) {
	t := &schema.Tree{Data: data}
	c.decoder.Short = wire.Malformed
	if err := c.decoder.Decode(p, e.Name, e.Layout, t, 0, 8*min(len(data), e.Size())); err != nil {
		return body{t}, err
	}
	return body{t}, nil
}

// decode decodes the body behind a head.
func (c *clerk) decode(f *received, p *schema.Protocol, sender schema.Sender, head int) error {
	f.Message = p.OpcodeName(uint64(f.Opcode))
	k := p.Packet(uint64(f.Opcode), sender, f.Via)
	if k == nil || len(k.Of(sender)) == 0 {
		f.Opaque = true
		f.Body = schema.NewTree(schema.Values{"opaque": f.data[head:]})
		return nil
	}
	f.Message, f.Body = k.Name, &schema.Tree{Data: f.data}
	c.decoder.Short = wire.Malformed
	if err := c.decoder.Decode(p, k.Name, k.Of(sender)[0], f.Body, 8*head, 8*len(f.data)); err != nil {
		return err
	}
	return nil
}

// body is a decoded message, for reading single fields of it.
type body struct{ *schema.Tree }

// id returns a top-level number as the id of a player.
func (b body) id(name string) uint32 { return uint32(b.Number(name)) }

// within returns the members of a top-level struct.
func (b body) within(name string) members { return members{b.Tree, b.Field(name)} }

// members are the members of a struct, or of none.
type members struct {
	tree *schema.Tree
	at   int
}

func (m members) number(name string) int { return int(int64(m.tree.Uint(m.tree.Member(m.at, name)))) }

func (m members) within(name string) members { return members{m.tree, m.tree.Member(m.at, name)} }

// elements returns those of an array that is a member.
func (m members) elements() (list []members) {
	if m.at < 0 {
		return nil
	}
	for i := m.at + 1; i < m.tree.Next(m.at); i = m.tree.Next(i) {
		list = append(list, members{m.tree, i})
	}
	return list
}
