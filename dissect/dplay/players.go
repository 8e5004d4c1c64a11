package dplay

import (
	"cmp"
	"net/netip"
	"strconv"

	"opscope/dissect"
	"opscope/schema"
)

// Players are the players of a session by their ids, with the packet that named each.
//
// An id is (unique << 16 | index) ^ key, where the key is part of the session's
// description and the index a slot of the host's name table. Facts, section 4.
type Players struct {
	table *schema.Table
	key   *schema.Table
	list  []player // in the order in which they were named
	known bool     // the key
	value uint64   // of the key
}

type player struct {
	id     uint64
	system uint64 // id of the system player; its own for one of these
	flags  uint64
	role   string
	kind   string
	name   string
	packet int
}

// maxPlayers is how many players of a session are kept. Games have some ten.
const maxPlayers = 256

func (p *Players) init(s *schema.Protocol) {
	state := s.NewState()
	*p = Players{table: state.Table("players"), key: state.Table("id_key")}
}

func (p *Players) tables() []dissect.LearnedTable {
	return []dissect.LearnedTable{{Table: p.table}, {Table: p.key}}
}

// find returns the player with an id, a new one where there is none, nil where there are
// too many.
func (p *Players) find(id uint64, packet int) *player {
	for i := range p.list {
		if p.list[i].id == id {
			return &p.list[i]
		}
	}
	if id == 0 || len(p.list) == maxPlayers {
		return nil
	}
	p.list = append(p.list, player{id: id, packet: packet})
	return &p.list[len(p.list)-1]
}

// Name notes the name that a player has in the game.
func (p *Players) Name(id uint64, name string, packet int) {
	if q := p.find(id, packet); q != nil && q.name != name {
		q.name = name
		p.show(q)
	}
}

// setKey takes the key of the ids.
func (p *Players) setKey(key uint64, packet int) {
	if p.known && p.value == key {
		return
	}
	p.known, p.value = true, key
	p.key.Set(0, schema.Entry{Values: []float64{float64(key)}, Texts: []string{hex(key)}, Origin: schema.Learned, Packet: packet})
	for i := range p.list {
		p.show(&p.list[i])
	}
}

// hex writes an id as records show it.
func hex(v uint64) string {
	s := strconv.FormatUint(v, 16)
	return "0x" + "0"[:len(s)&1] + s
}

// show puts a player into the table.
func (p *Players) show(q *player) {
	index, at := "-", -1
	if p.known {
		at = int((q.id ^ p.value) & 0xffff)
		index = strconv.Itoa(at)
	}
	if q.role == "" && at == 0 {
		q.role = hostRole
	}
	system := "-"
	if q.system != 0 {
		system = hex(q.system)
	}
	e := schema.Entry{
		Values: []float64{float64(at), 0, 0, float64(q.system), 0},
		Texts:  []string{index, cmp.Or(q.role, "-"), cmp.Or(q.kind, "-"), system, cmp.Or(q.name, "-")},
		Origin: schema.Learned, Packet: q.packet,
	}
	if q.name != "" {
		e.Personal = len(e.Texts)
	}
	p.table.Set(int64(q.id), e)
}

// The words of the table.
const (
	hostRole   = "host"
	joinerRole = "joiner"
	systemKind = "system"
	userKind   = "user"
)

// The flags of players.
const (
	systemFlag     = 1
	nameServerFlag = 2
)

func kindOf(flags uint64) string {
	if flags&systemFlag != 0 {
		return systemKind
	}
	return userKind
}

// learn takes what a command says of the session and its players.
func (c *conversation) learn(r *dissect.Record) {
	t := &r.Body
	if s := t.Field("session"); s >= 0 {
		c.players.setKey(t.Uint(t.Member(s, "reserved1")), r.LastPacket())
	}
	switch uint64(r.Opcode) {
	case requestPlayerID:
		c.asked, _ = t.Value("flags")
	case requestPlayerReply:
		id, _ := t.Value("player_id")
		c.person(r, player{id: id, flags: c.asked, role: joinerRole}, -1)
	case addForwardRequest:
		key, _ := t.Value("tail_id_key")
		c.players.setKey(key, r.LastPacket())
	case superEnumPlayersReply:
		c.everybody(r)
	}
	if i := t.Field("packed_player"); i >= 0 && t.Field("player_id") >= 0 {
		say := player{id: t.Uint(t.Member(i, "id")), flags: t.Uint(t.Member(i, "flags")), system: t.Uint(t.Member(i, "system_player_id"))}
		if r.Opcode == addForwardRequest || r.Opcode == addForward { // they are about newcomers
			say.role = joinerRole
		}
		c.person(r, say, i)
	}
}

// everybody takes the list of players that a newcomer gets. The name server among the
// system players is the host; users belong to their system players.
func (c *conversation) everybody(r *dissect.Record) {
	t := &r.Body
	list := t.Field("players")
	if list < 0 {
		return
	}
	for i := list + 1; i < t.Next(list); i = t.Next(i) {
		p := player{id: t.Uint(t.Member(i, "id")), flags: t.Uint(t.Member(i, "flags")), system: t.Uint(t.Member(i, "system_player_id")), role: joinerRole}
		if p.system == 0 {
			p.system = p.id
		}
		if p.flags&nameServerFlag != 0 || c.players.role(p.system) == hostRole {
			p.role = hostRole
		}
		c.person(r, p, i)
	}
}

// role returns the role of a player, "" where it is not known.
func (p *Players) role(id uint64) string {
	for i := range p.list {
		if p.list[i].id == id {
			return p.list[i].role
		}
	}
	return ""
}

// person takes what a command says of one player; i is the node that describes it, -1
// for none.
func (c *conversation) person(r *dissect.Record, say player, i int) {
	q := c.players.find(say.id, r.LastPacket())
	if q == nil {
		return
	}
	if say.flags != 0 {
		q.flags, q.kind = say.flags, kindOf(say.flags)
	}
	if say.system != 0 {
		q.system = say.system
	} else if q.kind == systemKind {
		q.system = q.id
	}
	q.role = cmp.Or(say.role, q.role, c.players.role(q.system))
	if i >= 0 {
		c.described(r, q, i)
	}
	c.players.show(q)
}

// described takes the name and the addresses of a player.
func (c *conversation) described(r *dissect.Record, q *player, i int) {
	t := &r.Body
	if n := t.Member(i, "short_name"); n >= 0 && q.name == "" {
		q.name = string(t.AppendText(nil, n))
	}
	by := schema.Client
	if q.role == hostRole {
		by = schema.Server
	}
	for _, name := range []string{"stream_addr", "dgram_addr"} {
		a := t.Member(i, name)
		if a < 0 || r.Direction == dissect.UnknownDirection {
			continue
		}
		addr := r.Src.Addr() // of one that describes itself
		if v := uint32(t.Uint(t.Member(a, "addr"))); v != 0 {
			addr = netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
		}
		if addr == r.Src.Addr() || addr == r.Dst.Addr() {
			c.session.Expect(addrOf(addr, t.Uint(t.Member(a, "port"))), by)
		}
	}
}

func addrOf(a netip.Addr, port uint64) netip.AddrPort { return netip.AddrPortFrom(a, uint16(port)) }
