package wulfram

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"opscope/dissect"
	"opscope/schema"
)

// learn takes what a record teaches. Controls count over UDP only: the client
// rejects them over TCP.
func (c *conversation) learn(r *dissect.Record, at *dissect.Carrier) {
	switch r.Opcode {
	case opHandshake:
		if r.Transport == schema.UDP {
			c.learnModes(r, c.side(at.Direction))
		}
	case opHello:
		c.learnHello(r, at)
	case opTranslation:
		c.teach(r, c.translation(r))
	case opBehavior:
		c.teach(r, c.weaponSlots(r))
	}
}

// packetOf returns the number of the packet that completed r.
func packetOf(r *dissect.Record) int {
	if len(r.Packets) == 0 {
		return 0
	}
	return r.Packets[len(r.Packets)-1]
}

// learnModes takes a handshake for the direction of its sender. One with the same
// pairs and groups is a retransmission.
func (c *conversation) learnModes(r *dissect.Record, h *half) {
	t := &r.Body
	timestamp, _ := t.Value("timestamp")
	old := h.handshake
	if old.seen && timestamp < old.timestamp {
		h.restarted, h.due = !h.due, false
		h.former = h.table()
	}
	new := handshake{true, timestamp, pairsOf(t), packetOf(r)}
	if old.seen && old.body == new.body {
		r.Note("retransmission", "same table as packet "+strconv.Itoa(old.packet))
		h.handshake.timestamp = timestamp
		return
	}
	if old.seen {
		r.Note("table_changed", "replaces that of packet "+strconv.Itoa(old.packet))
	}
	h.handshake = new
	h.use(c.modesOf(r))
	c.path.forget()
}

// pairsOf returns the bytes of a handshake behind its timestamp.
func pairsOf(t *schema.Tree) string {
	if i := t.Field("connection_id"); i >= 0 {
		return string(t.Data[t.Nodes[i].Off/8:])
	}
	return ""
}

// modesOf reads the table that a handshake brings.
func (c *conversation) modesOf(r *dissect.Record) *modes {
	t := &r.Body
	table := schema.NewTable(c.state.Table("stream_modes").Decl)
	eachMember(t, "modes", func(i int) {
		op, m := t.Uint(t.Member(i, "opcode")), t.Uint(t.Member(i, "mode"))
		table.Set(int64(op), schema.Entry{Values: []float64{float64(m)}, Origin: schema.Learned, Packet: packetOf(r)})
	})
	m := newModes(table)
	eachMember(t, "groups", func(i int) {
		var group []uint64
		members := t.Member(i, "members")
		for k := members + 1; members >= 0 && k < t.Next(members); k = t.Next(k) {
			group = append(group, t.Nodes[k].Num)
		}
		for _, op := range group {
			m.join(group, op)
		}
	})
	return m
}

// eachMember calls visit with the index of each element of a top-level array.
func eachMember(t *schema.Tree, name string, visit func(i int)) {
	list := t.Field(name)
	if list < 0 {
		return
	}
	for i := list + 1; i < t.Next(list); i = t.Next(i) {
		visit(i)
	}
}

// learnHello takes the UDP port and the session key that a server tells.
func (c *conversation) learnHello(r *dissect.Record, at *dissect.Carrier) {
	if at.Direction != dissect.ServerToClient {
		return
	}
	t := &r.Body
	switch kind, _ := t.Value("subcommand"); kind {
	case helloUDP:
		port, _ := t.Value("udp_port")
		c.session.Expect(netip.AddrPortFrom(r.Src.Addr(), uint16(port)), schema.Server)
		eachMember(t, "hosts", func(i int) {
			if a, err := netip.ParseAddr(string(t.AppendText(nil, i))); err == nil {
				c.session.Expect(netip.AddrPortFrom(a, uint16(port)), schema.Server)
			}
		})
	case helloKey:
		if i := t.Field("key"); i >= 0 {
			c.key = untilNUL(t.AppendBytes(nil, i))
			c.session.Learned()
		}
	}
}

// untilNUL returns a text as the bytes in front of its NUL.
func untilNUL(b []byte) string {
	text, _, _ := strings.Cut(string(b), "\x00")
	return text
}

// teach puts a table in force, and says when it differs from an earlier one.
func (c *conversation) teach(r *dissect.Record, t *schema.Table) {
	if old := c.state.Table(t.Decl.Name); old.Len() > 0 && learned(old) && !sameEntries(old, t) {
		r.Note("table_changed", "state."+t.Decl.Name)
	}
	c.state.Replace(t)
	c.path.forget()
	c.session.Learned()
}

func learned(t *schema.Table) bool {
	return slices.ContainsFunc(t.Keys(), func(k int64) bool { return t.Get(k).Origin == schema.Learned })
}

func sameEntries(a, b *schema.Table) bool {
	return slices.EqualFunc(a.Keys(), b.Keys(), func(i, j int64) bool {
		return i == j && slices.Equal(a.Get(i).Values, b.Get(j).Values)
	})
}

// translation reads the widths and ranges of quantised numbers. A text that is no
// number counts as 0, and is remarked on.
func (c *conversation) translation(r *dissect.Record) *schema.Table {
	t := &r.Body
	table := schema.NewTable(c.state.Table("translation").Decl)
	slot := int64(0)
	eachMember(t, "entries", func(i int) {
		e := schema.Entry{Origin: schema.Learned, Packet: packetOf(r)}
		e.Values = []float64{float64(t.Uint(t.Member(i, "a"))), float64(t.Uint(t.Member(i, "b")))}
		e.Texts = []string{strconv.FormatUint(t.Uint(t.Member(i, "a")), 10), strconv.FormatUint(t.Uint(t.Member(i, "b")), 10)}
		for _, name := range []string{"max", "range"} {
			text := string(t.AppendText(nil, t.Member(i, name)))
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				v = 0
				r.Note("out_of_range", "entries["+strconv.FormatInt(slot, 10)+"]."+name+" is no number")
			}
			e.Values = append(e.Values, v)
			e.Texts = append(e.Texts, text)
		}
		table.Set(slot, e)
		slot++
	})
	return table
}

// weaponSlots reads which weapon slots have a bit in local states: those whose gate
// and active flags are set. Section 8.1.
func (c *conversation) weaponSlots(r *dissect.Record) *schema.Table {
	t := &r.Body
	decl := c.state.Table("weapon_slots").Decl
	table := schema.NewTable(decl)
	if stated := c.schema.DefaultTable(decl.Name, schema.AnySender); stated != nil {
		for _, k := range stated.Keys() { // BEHAVIOR has fewer tables than there are ids
			table.Set(k, *stated.Get(k))
		}
	}
	id := int64(0)
	eachMember(t, "weapon_tables", func(i int) {
		mask, bit := uint64(0), uint64(1)
		for k := i + 1; k < t.Next(i); k = t.Next(k) {
			if t.Uint(t.Member(k, "gate")) != 0 && t.Uint(t.Member(k, "active")) != 0 {
				mask |= bit
			}
			bit <<= 1
		}
		table.Set(id, schema.Entry{Values: []float64{float64(mask)}, Origin: schema.Learned, Packet: packetOf(r)})
		id++
	})
	return table
}

// Claim looks for the session key that a client echoes in its first datagrams.
func (c *conversation) Claim(d *dissect.Datagram) dissect.Claim {
	if d.Direction == dissect.ServerToClient {
		return dissect.Maybe
	}
	data := d.Data
	if len(data) > 2 && (data[0] == 0xff && data[1] == 0xff || int(data[0])<<8|int(data[1]) == d.Length) {
		data = data[2:] // what may stand in front of the first record
	}
	for range 4 { // a diagnostic and a ROOT may come first
		if len(data) < 2 || data[0] != opDiagnostic && data[0] != opRoot && data[0] != opHello {
			return dissect.Maybe
		}
		n := decodes(c.scratch, c.schema, schema.Client, data, 1)
		switch {
		case n < 0:
			return dissect.Maybe
		case data[0] == opHello:
			return c.claimKey(&c.scratch.Tree)
		}
		data = data[n:]
	}
	return dissect.Maybe
}

// claimKey compares the key of a client's HELLO.
func (c *conversation) claimKey(t *schema.Tree) dissect.Claim {
	i := t.Field("key")
	switch {
	case i < 0:
		return dissect.Maybe
	case c.key == "":
		return dissect.Unsure
	case untilNUL(t.AppendBytes(nil, i)) == c.key:
		return dissect.Owned
	}
	return dissect.Disowned
}
