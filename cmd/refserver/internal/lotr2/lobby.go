package lotr2

import (
	"strconv"
	"time"

	"opscope/cmd/refserver/internal/script"
	"opscope/schema"
)

const (
	hostNumber = 1 // the host's, as a player
	// beatEvery is how often the table of the lobby is sent; the heartbeat of the set-up
	// screen goes out with every second one (section 7.2).
	beatEvery = time.Second
	// stepEvery lies between the messages of one step of a join.
	stepEvery = 10 * time.Millisecond
	// castles stands in whatever tells of a player. What it means is not known.
	castles = "castles"
)

// The unexplained values of a hello and of a welcome (section 7.1).
const (
	joinerValue = 20
	hostValue   = 10
)

// usualOptions are those of a new lobby, as in chat.pcapng packet 35. Nobody knows what
// each is.
var usualOptions = [13]int{0, 0, 3, 0, 0, 0, 3, 2, 2, 1, 6, 1, 2}

// lobby is what a host shows to those who have joined.
type lobby struct {
	options [13]int
	lords   [maxPlayers + 1]lord // humans, by their numbers
	beats   int
	closed  bool // the game has begun
	setUp   bool // it is that of a skirmish
}

// lord is a human player.
type lord struct {
	id      uint32
	name    string
	shield  int // 0 while none is chosen
	present bool
	chosen  bool
	ready   bool
}

// computers are the names of the lords that nobody plays, by their shields, with what real
// hosts have behind the NUL: chat.pcapng packets 40 and 67.
var computers = [maxPlayers + 1]string{
	2: "The Knight\x00The B", 3: "The Baron\x00The Co", 4: "The Bishop\x00Crown", 5: "The Countess\x00The",
}

// free returns the lowest number that no player has.
func (b *lobby) free() int {
	for n := hostNumber + 1; n < len(b.lords); n++ {
		if !b.lords[n].present {
			return n
		}
	}
	return 0
}

// taken reports whether a player has chosen a shield.
func (b *lobby) taken(shield int) bool {
	for _, l := range b.lords {
		if l.present && l.shield == shield {
			return true
		}
	}
	return false
}

// table is the values of the lobby's table. Whoever has not chosen is shown with the
// shield of his number; the lords of the computer have those that are left.
func (b *lobby) table(names bool) schema.Values {
	shields, states, players, ids := make([]int, maxPlayers), make([]int, maxPlayers), make([]int, maxPlayers), make([]uint32, maxPlayers)
	called := make([]any, maxPlayers)
	for i := range called {
		called[i] = ""
	}
	owners, ready := make([]int, maxPlayers+1), make([]int, maxPlayers+1)
	humans := 0
	for n := hostNumber; n < len(b.lords); n++ {
		l := &b.lords[n]
		if !l.present {
			continue
		}
		shields[humans], states[humans], ids[humans], called[humans] = n, 1, l.id, l.name
		if l.shield != 0 {
			shields[humans], players[n-1], owners[l.shield] = l.shield, l.shield, n
			if n != hostNumber {
				states[humans] = 2
			}
		}
		if l.ready {
			ready[n] = 1
		}
		humans++
	}
	for i, shield := humans, 1; i < maxPlayers && shield <= maxPlayers; shield++ {
		if !b.taken(shield) {
			shields[i], called[i] = shield, []byte(computers[shield])
			i++
		}
	}
	if humans == 1 {
		ids[0] = 0 // alone the host shows none
	}
	v := schema.Values{
		"player_count": humans, "lord_shields": shields, "bytes_9": states, "player_shields": players, "player_ids": ids,
		"shield_players": owners, "ready": ready,
	}
	if names {
		v["names"] = called
	}
	return v
}

// beat goes on as long as the process does; what it says is seen by those who have
// joined, and takes its slots without them as well (section 6).
func (h *host) beat(now time.Time) {
	b := &h.lobby
	if !b.closed {
		if b.beats%2 == 0 {
			h.say(now, "set_up_screen_heartbeat", schema.Values{"word_0": truth(b.setUp)})
		}
		if !b.setUp {
			h.after(now, stepEvery, h.showTable)
		}
	}
	b.beats++
	h.after(now, beatEvery, h.beat)
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// showTable shows the table without names; with it those who have chosen become ready.
func (h *host) showTable(now time.Time) {
	if h.lobby.closed || h.lobby.setUp {
		return
	}
	for n := range h.lobby.lords {
		l := &h.lobby.lords[n]
		l.ready = l.ready || l.chosen
	}
	h.say(now, "lobby_table_without_names", h.lobby.table(false))
}

// inTurn does things one after another, a step between them.
func (p *peer) inTurn(now time.Time, steps ...func(now time.Time)) {
	for i, do := range steps {
		p.after(now, time.Duration(i+1)*stepEvery, do)
	}
}

func (h *host) showBlank(now time.Time) {
	h.say(now, "unknown(0x4C)", schema.Values{"payload": make([]byte, 12)})
}

func (h *host) showOptions(now time.Time) {
	h.say(now, "game_options", schema.Values{"options": h.lobby.options[:]})
}

func (h *host) showNames(now time.Time) {
	h.say(now, "lobby_table_with_names", h.lobby.table(true))
}

// welcome answers a hello (section 7.2): from now on there is one player more.
func (h *host) welcome(now time.Time, l *link, b body) {
	if l.number == 0 {
		l.number = h.lobby.free()
	}
	if l.number == 0 {
		l.complain(now, "full", "there is no place in the game")
		return
	}
	h.lobby.lords[l.number] = lord{id: l.user, name: b.Text("name"), present: true}
	h.tell(now, l, "join_welcome", schema.Values{
		"player_id": h.user, "name": h.cfg.Name, "word_24": 0, "tag": castles, "word_36": 1, "player_number": l.number,
		"word_44": 0, "word_48": hostValue, "word_52": b.Number("word_40"), "byte_56": 1,
	})
	h.inTurn(now, h.showBlank, h.showOptions, h.showNames)
}

// chose takes the choice of a shield. One that is taken changes nothing.
func (h *host) chose(now time.Time, l *link, b body) {
	if l.number == 0 {
		l.complain(now, "too_early", "a choice before the hello")
		return
	}
	me := &h.lobby.lords[l.number]
	me.name = b.Text("name")
	if shield := b.Number("shield_number"); shield >= 1 && shield <= maxPlayers && !h.lobby.taken(shield) {
		me.shield, me.chosen = shield, true
	}
	h.showBlank(now)
	h.inTurn(now, h.showOptions, func(now time.Time) { h.showOwners(now, l) }, h.showNames)
}

// showOwners tells one player whose the shields are.
func (h *host) showOwners(now time.Time, l *link) {
	if l.gone || l.leaving {
		return
	}
	h.tell(now, l, "shield_owner_map_one_player", schema.Values{
		"shield_players": h.lobby.table(false)["shield_players"], "player_number": l.number,
	})
}

// setOption edits an option, and tells of it.
func (h *host) setOption(now time.Time, c script.Command) {
	i, _ := strconv.Atoi(c.Words[0])
	h.lobby.options[i], _ = strconv.Atoi(c.Words[1])
	h.showOptions(now)
}

// awaited reports whether what a script waits for is there: so many others who have
// joined, or who have chosen.
func (h *host) awaited(c script.Command) bool {
	want := 1
	if len(c.Words) > 1 {
		want, _ = strconv.Atoi(c.Words[1])
	}
	n := 0
	for i, l := range h.lobby.lords {
		if i != hostNumber && l.present && (c.Words[0] == "players" && l.name != "" || c.Words[0] == "choice" && l.chosen) {
			n++
		}
	}
	switch c.Words[0] {
	case "players", "choice":
		return n >= want
	}
	return h.game.awaited(c.Words[0])
}

// startCampaign closes the lobby. The words are random, perhaps seeds.
func (h *host) startCampaign(now time.Time) {
	h.lobby.closed = true
	v := schema.Values{"word_0": h.random.Uint32(), "word_4": h.random.Uint32()}
	h.say(now, "campaign_start", v)
	h.startTurns(now, v["word_0"].(uint32), v["word_4"].(uint32))
}

// startSkirmish goes over to the set-up of a skirmish; the joiners answer its first
// heartbeat with a notice.
func (h *host) startSkirmish(now time.Time) {
	h.lobby.setUp = true
	h.say(now, "set_up_screen_heartbeat", schema.Values{"word_0": 1})
	h.lobby.beats = 1
}

// skirmishFile is the name of a scenario's file.
const skirmishFile = "BATTLE.SKR"

// noticed answers the notice of the joiners with the set-up of the skirmish. What the
// block and the last step hold is not known, but for the name of the file.
func (h *host) noticed(now time.Time) {
	if !h.lobby.setUp || h.lobby.closed {
		return
	}
	h.inTurn(now,
		func(now time.Time) {
			h.say(now, "skirmish_set_up_block", schema.Values{"bytes_0": make([]byte, 50), "file_name": skirmishFile})
		},
		func(now time.Time) {
			h.say(now, "skirmish_set_up_numbers", schema.Values{
				"word_0": 1, "word_4": 2, "word_8": 800, "numbers": []int{250, 75, 75, 75, 125, 200},
			})
		})
}

// startBattle begins the battle of a skirmish.
func (h *host) startBattle(now time.Time) {
	h.lobby.closed = true
	h.say(now, "skirmish_set_up_last_step", schema.Values{"payload": make([]byte, 10)})
	h.say(now, "battle_start", schema.Values{"payload": make([]byte, 4)})
	h.startTicks(now, true)
}

// finishBattle goes back to the set-up.
func (h *host) finishBattle(now time.Time) {
	h.stopTicks()
	h.lobby.closed = false
	h.say(now, "set_up_screen_notice_empty", nil)
}
