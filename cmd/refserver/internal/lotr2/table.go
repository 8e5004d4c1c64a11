package lotr2

import (
	"net/netip"
	"slices"

	"opscope/schema"
)

// Flags of a player (section 5).
const (
	isSystem     = 1
	isNameServer = 2
	isInGroup    = 4
	isLocal      = 8 // to the sender
)

// maxMembers is how many entries a name table of five players needs: each has a system
// player as well.
const maxMembers = 2 * maxPlayers

// member is a player in the name table of a session.
type member struct {
	index  int
	id     uint32
	system uint32 // id of its system player, its own for one
	link   *link  // nil for the host
}

// table is the name table of a session, which its host keeps. An id is the index in
// it, below how often that was used, all under the key (section 4).
type table struct {
	key     uint32
	members []member // in the order of their coming
	used    [maxMembers]uint32
}

// add gives a player an id, 0 when there is no place. System is that of its system
// player, 0 for one.
func (t *table) add(l *link, system uint32) uint32 {
	for i := range t.used {
		if slices.ContainsFunc(t.members, func(m member) bool { return m.index == i }) {
			continue
		}
		t.used[i]++
		m := member{index: i, id: (t.used[i]<<16 | uint32(i)) ^ t.key, system: system, link: l}
		if system == 0 {
			m.system = m.id
		}
		t.members = append(t.members, m)
		return m.id
	}
	return 0
}

// remove forgets the players of a link.
func (t *table) remove(l *link) {
	t.members = slices.DeleteFunc(t.members, func(m member) bool { return m.link == l })
}

func (m member) isSystem() bool { return m.id == m.system }

// flags are those that the name table shows.
func (m member) flags() int {
	flags := isInGroup
	if m.isSystem() {
		flags |= isSystem
	}
	if m.link == nil {
		flags |= isLocal
		if m.isSystem() {
			flags |= isNameServer
		}
	}
	return flags
}

// sockaddr is an address as it stands in a message: of nobody in particular where the
// owner speaks of itself.
func sockaddr(addr netip.Addr, port uint16) schema.Values {
	if !addr.Is4() {
		addr = netip.IPv4Unspecified()
	}
	return schema.Values{"family": inet, "port": port, "addr": addr.String()}
}

// reach adds to the description of a player its service provider's data: where it
// takes connections and datagrams (section 5).
func reach(v schema.Values, addr netip.Addr, streams, datagrams uint16) schema.Values {
	v["sp_data_size"], v["stream_addr"], v["dgram_addr"] = 32, sockaddr(addr, streams), sockaddr(addr, datagrams)
	return v
}

// playerName is what DirectPlay calls everybody (section 5).
const playerName = "Nobleman"

// packed is a player in the messages that are about one. A user player has a name.
func packed(id, system uint32, flags int) schema.Values {
	v := schema.Values{
		"size": 80, "flags": flags, "id": id, "short_name_len": 0, "long_name_len": 0, "player_data_size": 0,
		"system_player_id": system, "fixed_size": 48, "version": dialect, "word_44": 0, "short_name": "", "long_name": "",
	}
	if id != system {
		v["short_name"], v["short_name_len"], v["size"] = playerName, 10, 90
	}
	return v
}
