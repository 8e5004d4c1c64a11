package lotr2

import (
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/script"
	"opscope/schema"
)

const (
	// lookEvery is how often a joiner asks for sessions, lookTimes how often at most.
	lookEvery = time.Second
	lookTimes = 5
	// thinkFor is how long the player looks at the list of sessions before joining.
	thinkFor = 300 * time.Millisecond
	// helloAfter lies between the player's coming into being and its first message.
	helloAfter = 100 * time.Millisecond
	// joinWithin is how long a join may take, leaveWithin how long the others may take
	// to reset the connections.
	joinWithin  = 20 * time.Second
	leaveWithin = 8 * time.Second
)

// JoinerConfig is what a joiner is to be.
type JoinerConfig struct {
	Config
	// Look is where it asks for sessions: everybody, or one host.
	Look netip.AddrPort
	// From is the port that it asks from, 0 for that of its datagrams.
	From uint16
}

// stage is how far a joiner has come.
type stage uint8

const (
	looking stage = iota
	choosing
	asking   // for its system player
	meeting  // waits for the list of players
	becoming // asks for its player
	greeting // waits for the host's welcome
	playing
	leaving
)

// joiner plays in somebody's session.
type joiner struct {
	*peer
	seek   netip.AddrPort // where it asks for sessions
	from   uint16         // the port that it asks from
	stage  stage
	host   *link
	since  time.Time // the stage
	looked int
	back   bool // it comes back when it has left
}

// NewJoiner returns a joiner. It asks for sessions at once, and joins the first one.
func NewJoiner(cfg JoinerConfig, o machine.Observer) machine.Machine {
	j := &joiner{peer: newPeer(cfg.Config, schema.Client, schema.Server, o), seek: cfg.Look, from: cfg.From}
	j.role = j
	return j
}

func (j *joiner) begin(now time.Time) {
	j.look(now)
	j.watch(now)
}

func (j *joiner) enter(now time.Time, s stage) { j.stage, j.since = s, now }

// finish ends the joiner.
func (j *joiner) finish(now time.Time, code, text string) {
	if !j.over {
		j.over = true
		j.observer.Event(now, code, j.cfg.Name+": "+text)
	}
}

// look asks for sessions until there is one.
func (j *joiner) look(now time.Time) {
	if j.stage != looking {
		return
	}
	if j.looked >= lookTimes {
		j.finish(now, "timeout", "there is no session")
		return
	}
	j.looked++
	j.cast(now, j.seek, j.from, "EnumSessions", schema.Values{"app_guid": application, "flags": 1})
	j.after(now, lookEvery, j.look)
}

func (j *joiner) found(now time.Time, from netip.AddrPort, f received) {
	if f.Message == "YouAreDead" {
		j.observer.Received(now, from, f.Record)
		return
	}
	j.stranger(now, "stranger", fmt.Sprintf("%s from %s", f.Message, from))
}

// opened asks for the id of a system player, once the host takes the connection.
func (j *joiner) opened(now time.Time, l *link) {
	if l == j.host && j.stage == choosing {
		j.enter(now, asking)
		l.send(now, "RequestPlayerId", schema.Values{"flags": isSystem | isLocal})
	}
}

func (j *joiner) refused(now time.Time, l *link) {
	if l == j.host {
		j.finish(now, "refused", "the host takes no connection")
	}
	l.end(now, "refused", "it takes no connection")
}

func (j *joiner) asked(now time.Time, l *link, f received) {
	b := body{f.Body}
	switch f.Message {
	case "EnumSessionsReply":
		j.offered(now, l, b)
	case "RequestPlayerReply":
		j.given(now, l, b)
	case "SuperEnumPlayersReply":
		j.met(now, l, b)
	case "AddForward":
		j.newcomer(now, l, b)
	case "CreatePlayer":
		if l.system == 0 || l == j.host {
			l.complain(now, "unexpected", "a CreatePlayer of one whom the host has not named")
			return
		}
		l.user = b.id("player_id")
	case "DeletePlayer":
		j.deleted(now, l, b)
	default:
		l.complain(now, "unexpected", f.Message)
	}
}

// offered takes the description of a session, and joins it after a while.
func (j *joiner) offered(now time.Time, l *link, b body) {
	if session := b.within("session"); !isGame(b.Tree, b.Member(session.at, "app_guid")) {
		l.complain(now, "stranger", "a session of another game")
		return
	}
	if j.stage != looking {
		return
	}
	j.enter(now, choosing)
	j.host = l
	j.key = uint32(b.within("session").number("reserved1"))
	j.after(now, thinkFor, func(now time.Time) {
		if !l.gone && l.out == 0 {
			l.dial()
		}
	})
	j.after(now, joinWithin, func(now time.Time) {
		if j.host == l && j.stage > looking && j.stage < playing {
			j.finish(now, "timeout", "the host did not let it in")
		}
	})
}

// given takes an id: that of the system player, then that of the player.
func (j *joiner) given(now time.Time, l *link, b body) {
	switch id := b.id("player_id"); {
	case l != j.host:
		l.complain(now, "unexpected", "an id that is not the host's")
	case b.Number("hresult") != 0:
		j.finish(now, "refused", "the host gives no id")
	case j.stage == asking:
		j.enter(now, meeting)
		j.system = id
		l.send(now, "AddForwardRequest", schema.Values{
			"id_to": 0, "player_id": id, "group_id": 0, "password": "", "tail_id_key": j.key,
			"packed_player": j.described(id, isSystem|isLocal),
		})
	case j.stage == becoming:
		j.create(now, id)
	}
}

// described describes a player of this peer.
func (j *joiner) described(id uint32, flags int) schema.Values {
	return reach(packed(id, j.system, flags), netip.Addr{}, j.cfg.Place.Streams.Port(), j.cfg.Place.Datagrams.Port())
}

// met takes the list of players, and asks for an id for its own.
func (j *joiner) met(now time.Time, l *link, b body) {
	if l != j.host || j.stage != meeting {
		return
	}
	for _, m := range b.within("players").elements() {
		j.meet(now, m)
	}
	j.enter(now, becoming)
	l.send(now, "RequestPlayerId", schema.Values{"flags": isLocal})
}

// meet takes an entry of the name table. The host's says nothing of its address.
func (j *joiner) meet(now time.Time, m members) {
	id, flags := uint32(m.number("id")), m.number("flags")
	l := j.host
	if addr := m.within("stream_addr").number("addr"); addr != 0 {
		l = j.link(now, ipv4(addr), uint16(m.within("stream_addr").number("port")))
	}
	if l == nil || l.addr == j.cfg.Place.Streams.Addr() || id == j.system {
		return
	}
	if l != j.host {
		l.side = schema.Client
	}
	l.datagrams = uint16(m.within("dgram_addr").number("port"))
	if flags&isSystem != 0 {
		l.system = id
	} else {
		l.user = id
	}
}

func ipv4(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// newcomer takes the host's word that there is one more.
func (j *joiner) newcomer(now time.Time, l *link, b body) {
	if l != j.host {
		l.complain(now, "unexpected", "an AddForward that is not the host's")
		return
	}
	j.meet(now, b.within("packed_player"))
	l.send(now, "AddForwardAck", schema.Values{"player_id": b.id("player_id")})
}

// create brings the player into being, for everybody, and says hello a while later.
func (j *joiner) create(now time.Time, id uint32) {
	j.enter(now, greeting)
	j.user = id
	for _, l := range j.links {
		if l.system != 0 {
			l.send(now, "CreatePlayer", schema.Values{
				"id_to": 0, "player_id": id, "group_id": 0, "packed_player": j.described(id, isLocal), "trailer": make([]byte, 6),
			})
		}
	}
	j.after(now, helloAfter, func(now time.Time) {
		j.say(now, "join_hello", schema.Values{
			"player_id": j.user, "name": j.cfg.Name, "word_24": 0, "tag": castles, "word_36": 1, "word_40": joinerValue,
		})
	})
}

// deleted takes another player out.
func (j *joiner) deleted(now time.Time, l *link, b body) {
	switch b.id("player_id") {
	case l.user:
		l.leaving = true
	case l.system:
		j.after(now, resetAfter, func(now time.Time) { l.end(now, "left", "its player is gone") })
	}
}

func (j *joiner) told(now time.Time, l *link, f received) {
	b := body{f.Body}
	switch {
	case l != j.host:
	case f.Message == "join_welcome" && j.stage == greeting:
		j.number = b.Number("player_number")
		j.enter(now, playing)
		j.progress.ready = true
	case f.Message == "set_up_screen_heartbeat" && b.Number("word_0") == 1 && !j.game.noticed:
		j.game.noticed = true
		j.say(now, "set_up_screen_notice_empty", nil)
	case f.Message == "set_up_screen_notice_empty":
		j.stopTicks()
	case f.Message == "battle_start":
		j.startTicks(now, true)
	}
}

// left is told that a link is over.
func (j *joiner) left(now time.Time, l *link) {
	if l != j.host {
		return
	}
	j.host = nil
	switch {
	case j.stage == leaving && j.back:
		j.comeBack(now)
	case j.stage == leaving:
		j.finish(now, "left", "the script is over")
	default:
		j.finish(now, "closed", "the host has closed a connection")
	}
}

// comeBack looks for a session again. The slots go on where they were (section 9).
func (j *joiner) comeBack(now time.Time) {
	for len(j.links) > 0 {
		j.links[0].end(now, "left", "this player is gone")
	}
	j.game = game{generation: j.game.generation + 1}
	j.key, j.system, j.user, j.number, j.back, j.looked = 0, 0, 0, 0, false, 0
	j.progress.ready = false
	j.enter(now, looking)
	j.look(now)
}

// leave says that the players are gone, and waits for the reset (section 3).
func (j *joiner) leave(now time.Time) {
	j.stopTicks()
	j.enter(now, leaving)
	j.progress.ready = false
	for _, l := range j.links {
		if l.system == 0 {
			continue
		}
		for _, id := range []uint32{j.user, j.system} {
			l.send(now, "DeletePlayer", schema.Values{"id_to": 0, "player_id": id, "group_id": 0, "create_offset": 0, "password_offset": 0})
		}
	}
	j.after(now, leaveWithin, func(now time.Time) {
		if j.stage == leaving && now.Sub(j.since) >= leaveWithin {
			j.finish(now, "left", "the script is over")
		}
	})
}

func (j *joiner) do(now time.Time, c script.Command) bool {
	switch c.Verb {
	case "await":
		return j.game.awaited(c.Words[0])
	case "choose":
		shield, _ := strconv.Atoi(c.Words[0])
		j.say(now, "joiners_choice", schema.Values{
			"player_number": j.number, "shield_number": shield, "name": j.cfg.Name, "word_28": 0, "tag": castles,
		})
	case "leave":
		j.leave(now)
	case "rejoin":
		j.back = true
		j.leave(now)
	}
	return true
}

func (j *joiner) followed(now time.Time) {
	if j.stage == playing {
		j.leave(now)
	}
}
