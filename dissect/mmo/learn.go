package mmo

import (
	"bytes"
	"net/netip"
	"strconv"

	"opscope/dissect"
	"opscope/schema"
	"opscope/schema/wire"
)

// The items of the table `session`.
const (
	itemState = iota
	itemEnterToken
	itemUDPToken
	itemUDPPort
	itemAccount
	itemCharacter
	itemUDPClient
)

// learn takes what a whole record teaches: who enters, by which token and at which port
// the client goes on over UDP, and from where. Section 6.
func (c *conversation) learn(r *dissect.Record, at *dissect.Carrier) {
	if r.Err != nil || r.Packet == nil || at.Direction.Sender() != r.Packet.From {
		return
	}
	switch r.Packet.Name {
	case "EnterGameReq":
		c.set(r, itemState, "entering")
		c.setText(r, itemEnterToken, "enter_token")
		c.setNumber(r, itemCharacter, "character_id")
	case "EnterGameRes":
		c.entered(r)
	case "UdpHelloReq":
		if r.Transport == schema.UDP {
			c.set(r, itemUDPClient, r.Src.String())
		}
	case "UdpHelloRes":
		c.set(r, itemState, "udp_bound")
	}
}

// entered takes the answer to a client that wants to enter.
func (c *conversation) entered(r *dissect.Record) {
	t := &r.Body
	if ok, _ := t.Value("success"); ok == 0 {
		c.set(r, itemState, "refused")
		return
	}
	c.set(r, itemState, "entered")
	c.setNumber(r, itemAccount, "account_id")
	c.setNumber(r, itemCharacter, "character_id")
	c.character, _ = t.Value("character_id")
	if i := t.Field("udp_token"); i >= 0 && t.Nodes[i].BodyLen > 0 {
		c.token = t.AppendBytes(nil, i)
		c.setText(r, itemUDPToken, "udp_token")
	}
	if port, _ := t.Value(portField); port > 0 && port <= maxPort {
		c.setNumber(r, itemUDPPort, portField)
		c.session.Expect(netip.AddrPortFrom(r.Src.Addr(), uint16(port)), schema.Server)
	}
	c.session.Learned()
}

// set puts an item of the table in force.
func (c *conversation) set(r *dissect.Record, item int64, text string) {
	if t := c.state.Table("session"); t != nil {
		t.Set(item, schema.Entry{Values: []float64{0}, Texts: []string{text}, Origin: schema.Learned, Packet: packetOf(r)})
	}
}

func (c *conversation) setNumber(r *dissect.Record, item int64, field string) {
	if v, ok := r.Body.Value(field); ok {
		c.set(r, item, strconv.FormatUint(v, 10))
	}
}

func (c *conversation) setText(r *dissect.Record, item int64, field string) {
	if i := r.Body.Field(field); i >= 0 && r.Body.Nodes[i].BodyLen > 0 {
		c.set(r, item, string(r.Body.AppendBytes(nil, i)))
	}
}

// Claim looks for the session's token in the packet that binds an endpoint. That is the
// safe way to find the session of a datagram: several clients may share an address.
// Section 6.
func (c *conversation) Claim(d *dissect.Datagram) dissect.Claim {
	if d.Direction == dissect.ServerToClient {
		return dissect.Maybe
	}
	data := d.Data
	p := c.schema.Packet(c.id.Read(data), schema.Client, schema.UDP)
	if p == nil || p.Name != "UdpHelloReq" {
		return dissect.Maybe
	}
	head, ok := headOf(c.udp, data)
	switch {
	case !ok || head.Size > len(data):
		return dissect.Maybe
	case c.token == nil:
		return dissect.Unsure
	case !bytes.Contains(data[head.Head:], c.token):
		return dissect.Disowned
	}
	if c.shows(p, head, data[:head.Size]) {
		return dissect.Owned
	}
	return dissect.Disowned
}

// shows reports whether a packet has the token as one of its values. One that cannot be
// read has it if it has its bytes.
func (c *conversation) shows(p *schema.Packet, head schema.Frame, frame []byte) bool {
	layouts := p.Of(schema.Client)
	if len(layouts) == 0 {
		return true
	}
	w := c.scratch
	w.Tree.Reset(frame)
	w.Trial.State, w.Trial.Short = nil, wire.Malformed
	if err := w.Trial.Decode(c.schema, p.Name, layouts[0], &w.Tree, 8*head.Head, 8*len(frame)); err != nil || len(w.Tree.Nodes) == 0 {
		return true
	}
	for i := range w.Tree.Nodes {
		n := &w.Tree.Nodes[i]
		if n.Kind != schema.Text && n.Kind != schema.Bytes || n.Body&7 != 0 {
			continue
		}
		if bytes.Equal(frame[n.Body/8:][:n.BodyLen], c.token) {
			return true
		}
	}
	return false
}
