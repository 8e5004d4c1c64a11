package lotr2

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/script"
	"opscope/schema"
)

const (
	maxPlayers  = 5
	sessionName = "Lords2 Session1"
	// sessionFlags are those of every session: host migration, keep-alive (section 5).
	sessionFlags = 0x44
	// turnAfter is how long a host that ends its turns by itself takes for it.
	turnAfter = 500 * time.Millisecond
)

// HostConfig is what a host is to be.
type HostConfig struct {
	Config
	// Again has it begin its script anew when everybody has left, instead of doing nothing
	// more.
	Again bool
}

// host keeps a session.
type host struct {
	*peer
	again    bool
	table    table
	instance string // a GUID
	lobby    lobby
	// endsTurns has it end each turn when all others have.
	endsTurns bool
}

// NewHost returns a host. It answers those who look for a session, from its first
// input on.
func NewHost(cfg HostConfig, o machine.Observer) machine.Machine {
	h := &host{peer: newPeer(cfg.Config, schema.Server, schema.Client, o), again: cfg.Again}
	h.role = h
	return h
}

func (h *host) begin(now time.Time) {
	h.key = h.random.Uint32() | 1
	h.instance = fmt.Sprintf("{%08X-%04X-%04X-%04X-%012X}", h.random.Uint32(), h.random.IntN(1<<16), h.random.IntN(1<<16), h.random.IntN(1<<16), h.random.Int64N(1<<48))
	h.announce(now)
}

// announce opens the session, once its key and its GUID are there.
func (h *host) announce(now time.Time) {
	h.table.key = h.key
	h.system = h.table.add(nil, 0)
	h.user = h.table.add(nil, h.system)
	h.number = hostNumber
	h.lobby.options = usualOptions
	h.lobby.lords[hostNumber] = lord{id: h.user, name: h.cfg.Name, shield: 1, present: true, chosen: true, ready: true}
	h.progress.ready = true
	h.beat(now)
	h.watch(now)
}

// found answers who looks for a session of the game: it is dialled, and told of the
// session over that connection (section 3).
func (h *host) found(now time.Time, from netip.AddrPort, f received) {
	if f.Message != "EnumSessions" || !isGame(f.Body, f.Body.Field("app_guid")) {
		h.stranger(now, "stranger", fmt.Sprintf("%s from %s", f.Message, from))
		return
	}
	h.observer.Received(now, from, f.Record)
	l := h.link(now, from.Addr(), f.port)
	switch {
	case l == nil:
	case l.open:
		h.opened(now, l)
	case l.out == 0:
		l.port = f.port
		l.dial()
	}
}

// isGame reports whether node i of a message, -1 for none, names the application of
// the game.
func isGame(t *schema.Tree, i int) bool {
	return i >= 0 && bytes.Equal(t.AppendBytes(nil, i), applicationBytes)
}

// applicationBytes is the application on the wire.
var applicationBytes, _ = hex.DecodeString("c048821c7297cf11b74f00c0df413ed1")

// opened tells who has no player yet of the session.
func (h *host) opened(now time.Time, l *link) {
	if l.system == 0 {
		l.send(now, "EnumSessionsReply", schema.Values{"session": h.description(), "session_name": sessionName})
	}
}

// description describes the session.
func (h *host) description() schema.Values {
	return schema.Values{
		"size": 80, "flags": sessionFlags, "instance_guid": h.instance, "app_guid": application,
		"max_players": maxPlayers, "current_players": 1 + len(h.joined()), "name_pointer": 0, "password_pointer": 0,
		"reserved1": h.key, "reserved2": 0, "user": []int{0, 0, 0, 0},
	}
}

func (h *host) asked(now time.Time, l *link, f received) {
	b := body{f.Body}
	switch f.Message {
	case "RequestPlayerId":
		h.requested(now, l, b)
	case "AddForwardRequest":
		h.forward(now, l, b)
	case "CreatePlayer":
		h.created(now, l, b)
	case "DeletePlayer":
		h.deleted(now, l, b)
	case "AddForwardAck":
	default:
		l.complain(now, "unexpected", f.Message)
	}
}

// noSecurity is the security description of a session without any.
var noSecurity = schema.Values{
	"size": 0, "flags": 0, "provider_pointer": 0, "algorithm_pointer": 0, "provider_type": 0, "algorithm": 0,
}

// requested gives out an id: for a system player, then for a player.
func (h *host) requested(now time.Time, l *link, b body) {
	id := uint32(0)
	switch system := b.Number("flags")&isSystem != 0; {
	case system && l.system == 0:
		id = h.table.add(l, 0)
		l.system = id
	case !system && l.system != 0 && l.promised == 0:
		id = h.table.add(l, l.system)
		l.promised = id
	default:
		l.complain(now, "unexpected", "a request for one more id")
		return
	}
	if id == 0 {
		l.end(now, "full", "there is no place in the session")
		return
	}
	l.send(now, "RequestPlayerReply", schema.Values{"player_id": id, "security": noSecurity, "hresult": 0})
}

// forward tells a newcomer of the session and of its players, and the others of it. Who
// joins at the same time learns of the newcomer here, or has come before and is in the
// list.
func (h *host) forward(now time.Time, l *link, b body) {
	if l.system == 0 || b.id("player_id") != l.system {
		l.complain(now, "unexpected", "an AddForwardRequest for another")
		return
	}
	l.reachable(b)
	l.send(now, "SuperEnumPlayersReply", h.everybody(l))
	l.known = true
	for _, o := range h.links {
		if o != l && o.known && !o.leaving {
			v := packed(l.system, l.system, isSystem)
			o.send(now, "AddForward", schema.Values{
				"id_to": o.system, "player_id": l.system, "group_id": 0, "packed_player": reach(v, l.addr, l.port, l.datagrams),
			})
		}
	}
}

// reachable learns from a description of a peer where it is to be reached.
func (l *link) reachable(b body) {
	player := b.within("packed_player")
	if port := player.within("stream_addr").number("port"); port != 0 {
		l.port = uint16(port)
	}
	l.datagrams = uint16(player.within("dgram_addr").number("port"))
}

// everybody lists the players for one of them, which is the first.
func (h *host) everybody(l *link) schema.Values {
	var own, others, rest []schema.Values
	for _, m := range h.table.members {
		switch {
		case m.link == l && !m.isSystem():
		case m.link == l:
			own = append(own, h.entry(m))
		case m.link == nil:
			others = append(others, h.entry(m))
		case m.link.known && !m.link.leaving:
			rest = append(rest, h.entry(m))
		}
	}
	return schema.Values{
		"shortcut_count": 0, "session": h.description(), "session_name": sessionName,
		"players": append(append(own, others...), rest...),
	}
}

// Bits of the mask that says what an entry has.
const (
	hasShortName  = 1
	hasOneByteFor = 4 // the length of the provider's data has one byte
)

// entry is a player as the name table tells of it.
func (h *host) entry(m member) schema.Values {
	addr, at := netip.Addr{}, h.cfg.Place
	streams, datagrams := at.Streams.Port(), at.Datagrams.Port()
	if m.link != nil {
		addr, streams, datagrams = m.link.addr, m.link.port, m.link.datagrams
	}
	v := reach(schema.Values{"size": 16, "flags": m.flags(), "id": m.id, "info_mask": hasOneByteFor}, addr, streams, datagrams)
	if m.isSystem() {
		v["version"] = dialect
	} else {
		v["system_player_id"], v["short_name"], v["info_mask"] = m.system, playerName, hasOneByteFor|hasShortName
	}
	return v
}

// created takes the player of a newcomer into the session. It is in the game with its
// hello.
func (h *host) created(now time.Time, l *link, b body) {
	if l.promised == 0 || l.user != 0 || b.id("player_id") != l.promised {
		l.complain(now, "unexpected", "a CreatePlayer for another")
		return
	}
	l.user = l.promised
	h.observer.Event(now, "joined", fmt.Sprintf("%s: id %#x", l.addr, l.user))
}

// deleted takes a player out: first the user player, then the system player. The
// connections are reset a while later (section 3).
func (h *host) deleted(now time.Time, l *link, b body) {
	switch b.id("player_id") {
	case l.user:
		if !l.leaving {
			l.leaving = true
			h.absent(now, l)
		}
	case l.system:
		h.after(now, resetAfter, func(now time.Time) { l.end(now, "left", "its player is gone") })
	default:
		l.complain(now, "unexpected", "a DeletePlayer for another")
	}
}

// left forgets a peer.
func (h *host) left(now time.Time, l *link) {
	if !l.leaving {
		h.absent(now, l)
	}
	h.table.remove(l)
}

// absent takes a player out of the game. When nobody is left the game is over.
func (h *host) absent(now time.Time, l *link) {
	if l.number != 0 {
		h.lobby.lords[l.number] = lord{}
	}
	if len(h.joined()) > 0 || l.user == 0 {
		return
	}
	h.game = game{generation: h.game.generation + 1}
	if h.again {
		h.progress = progress{Cursor: script.Begin(h.cfg.Script), ready: true}
		h.lobby.closed, h.lobby.setUp, h.endsTurns = false, false, false
	}
}

// refused forgets one who looked for a session and takes no connection.
func (h *host) refused(now time.Time, l *link) { l.end(now, "refused", "it takes no connection") }

func (h *host) told(now time.Time, l *link, f received) {
	b := body{f.Body}
	switch f.Message {
	case "join_hello":
		h.welcome(now, l, b)
	case "joiners_choice":
		h.chose(now, l, b)
	case "player_ended_the_turn":
		if l.number == 0 {
			l.complain(now, "too_early", "a turn before the hello")
			return
		}
		h.turnEnded(now, l.number, b.Number("tick"))
		if g := &h.game; h.endsTurns && !g.ending && len(g.ended) == len(h.joined()) {
			g.ending = true
			h.afterHere(now, turnAfter, h.endTurn)
		}
	case "set_up_screen_notice_empty":
		h.noticed(now)
	}
}

func (h *host) do(now time.Time, c script.Command) bool {
	switch c.Verb {
	case "await":
		return h.awaited(c)
	case "option":
		h.setOption(now, c)
	case "campaign":
		h.startCampaign(now)
	case "skirmish":
		h.startSkirmish(now)
	case "battle":
		h.startBattle(now)
	case "finish":
		h.finishBattle(now)
	case "end-turns":
		h.endsTurns = true
	}
	return true
}

func (h *host) followed(time.Time) {}
