package mmo_test

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/mmo"
	"opscope/cmd/refserver/internal/mmo/testserver"
	"opscope/cmd/refserver/internal/scenario"
	"opscope/schema"
)

// game is a server with its bots, over a network in memory.
type game struct {
	server   mmo.ServerConfig
	settings func(*testserver.Settings)
	bots     []mmo.BotConfig // one starts 100 ms after the other
	faults   scenario.Faults
	duration time.Duration // 30 s
}

// played is what was said.
type played struct {
	t *testing.T
	*scenario.Result
}

// play plays a game over a quiet network.
func play(t *testing.T, g game, scripts ...string) played {
	t.Helper()
	for i, text := range scripts {
		script, err := mmo.Scripts.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if i == len(g.bots) {
			g.bots = append(g.bots, mmo.BotConfig{})
		}
		g.bots[i].Script = script
	}
	s := scenario.Scenario{Name: "test", Protocol: "mmo", Duration: max(g.duration, 30*time.Second), Faults: g.faults, Cast: g.cast}
	r, err := s.Run(io.Discard, 1)
	if err != nil {
		t.Fatal(err)
	}
	return played{t, r}
}

func (g game) cast(seed uint64) []scenario.Role {
	settings := testserver.Default()
	if g.settings != nil {
		g.settings(settings)
	}
	server := netip.MustParseAddrPort("10.0.0.1:7777")
	g.server.Seed, g.server.Settings = seed, settings
	roles := []scenario.Role{{
		Name: "server", Addr: netip.AddrPortFrom(server.Addr(), settings.UDPPort), Listen: server, Server: true,
		Build: func(o machine.Observer) machine.Machine { return mmo.NewServer(g.server, o) },
	}}
	for i, b := range g.bots {
		if b.Name == "" {
			b.Name = []string{"Ada", "Brin", "Caro"}[i]
		}
		b.Server, b.Settings, b.Seed = server, settings, seed
		roles = append(roles, scenario.Role{
			Name: b.Name, Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(2 + i)}), 50110),
			Start: time.Duration(i) * 100 * time.Millisecond,
			Build: func(o machine.Observer) machine.Machine { return mmo.NewBot(b, o) },
		})
	}
	return roles
}

// textOf writes the values of a record: "character_id=7 entries=[{x=1 y=2}]".
func textOf(r *machine.Record) string { return members(r.Body, 0, len(r.Body.Nodes)) }

func members(t *schema.Tree, from, to int) string {
	var list []string
	for i := from; i < to; i = t.Next(i) {
		list = append(list, t.Nodes[i].Field.Name+"="+value(t, i))
	}
	return strings.Join(list, " ")
}

func value(t *schema.Tree, i int) string {
	switch n := &t.Nodes[i]; n.Kind {
	case schema.Struct:
		return "{" + members(t, i+1, t.Next(i)) + "}"
	case schema.Array:
		var list []string
		for k := i + 1; k < t.Next(i); k = t.Next(k) {
			list = append(list, value(t, k))
		}
		return "[" + strings.Join(list, " ") + "]"
	case schema.Float:
		return fmt.Sprint(float32(n.Float()))
	case schema.String:
		return string(t.AppendText(nil, i))
	case schema.Bytes:
		return fmt.Sprintf("%x", t.AppendBytes(nil, i))
	default:
		return fmt.Sprint(int64(n.Num))
	}
}

// said returns what somebody said to somebody, in order; "" is anybody, and what was
// said is any of some messages, or anything.
func (p played) said(by string, messages ...string) (list []*scenario.Sent) {
	for i := range p.Sent {
		s := &p.Sent[i]
		if (by == "" || s.By == by) && (len(messages) == 0 || slices.Contains(messages, s.Message)) {
			list = append(list, s)
		}
	}
	return list
}

// to returns what was said to the n-th bot, from 0.
func to(n int, list []*scenario.Sent) (some []*scenario.Sent) {
	host := netip.AddrFrom4([4]byte{10, 0, 0, byte(2 + n)})
	for _, s := range list {
		if s.Dst.Addr() == host {
			some = append(some, s)
		}
	}
	return some
}

func texts(list []*scenario.Sent) (texts []string) {
	for _, s := range list {
		texts = append(texts, textOf(&s.Record))
	}
	return texts
}

func names(list []*scenario.Sent) (names []string) {
	for _, s := range list {
		names = append(names, s.Message)
	}
	return names
}

// expect wants texts that have each some words.
func (p played) expect(got []string, want ...string) {
	p.t.Helper()
	if len(got) != len(want) {
		p.t.Errorf("%d of them: %q, want %d: %q", len(got), got, len(want), want)
		return
	}
	for i := range want {
		for _, word := range strings.Split(want[i], ", ") {
			if !strings.Contains(" "+got[i]+" ", " "+word+" ") {
				p.t.Errorf("number %d is %q, want %q in it", i+1, got[i], word)
			}
		}
	}
}

// ended wants a code among the events of somebody, and some words in its text.
func (p played) ended(by, code, words string) {
	p.t.Helper()
	for _, e := range p.Events {
		if e.By == by && e.Code == code && strings.Contains(e.Text, words) {
			return
		}
	}
	p.t.Errorf("no event %s of %s with %q among %v", code, by, words, p.Events)
}

// peaceful has no monsters.
func peaceful(s *testserver.Settings) { s.Monsters.Count = 0 }

func TestEnter(t *testing.T) {
	p := play(t, game{settings: peaceful}, "echo cafe00\nwait 100ms")
	want := []string{"EnterGameReq", "EnterGameRes", "SpawnMyCharacter", "InventorySnapshot", "UdpHelloReq", "UdpHelloRes", "EchoReq", "EchoRes"}
	if got := names(p.said("")); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	res := p.said("server", "EnterGameRes")[0]
	p.expect([]string{textOf(&res.Record)}, "success=1, udp_port=7778")
	token := value(res.Body, res.Body.Field("udp_token"))
	p.expect(texts(p.said("Ada", "UdpHelloReq")), "udp_token="+token+", attempt=1")
	p.expect(texts(p.said("server", "EchoRes")), "payload=cafe00")
	for _, s := range p.said("") {
		udp := s.Message == "UdpHelloReq" || s.Message == "UdpHelloRes"
		if (s.Transport == schema.UDP) != udp {
			t.Errorf("%s goes by %v", s.Message, s.Transport)
		}
	}
	if r := p.said("Ada", "UdpHelloReq")[0]; r.Dst.Port() != 7778 {
		t.Errorf("datagrams go to %v", r.Dst)
	}
	p.ended("Ada", "left", "the script is over")
}

func TestRefusedToEnter(t *testing.T) {
	p := play(t, game{}, "enter wrong\nenter expired\nenter stranger\nwait 2s", "enter\nawait UdpHelloRes\nwait 500ms", "wait 1s")
	p.expect(texts(to(0, p.said("server", "EnterGameRes"))),
		"success=0, message=the token is not ours", "success=0, message=the token has expired", "success=0, message=no such character")
	p.ended("server", "session_end", "refused: no such character")
	p.expect(texts(to(1, p.said("server", "EnterGameRes"))), "success=1")

	twin := game{bots: []mmo.BotConfig{{Name: "Ada"}, {Name: "Ada"}}}
	p = play(t, twin, "wait 1s", "wait 100ms")
	p.expect(texts(to(1, p.said("server", "EnterGameRes"))), "success=0, message=the character is in the game already")
	p.ended("Ada", "refused", "in the game already")
}

// TestMovement walks a second: 20 inputs and 20 batches a second, each a twentieth of
// the speed further.
func TestMovement(t *testing.T) {
	p := play(t, game{settings: peaceful}, "walk east\nwait 1s\nstop\nwait 300ms")
	inputs := p.said("Ada", "MoveReq")
	if len(inputs) < 20 || len(inputs) > 22 {
		t.Fatalf("%d inputs", len(inputs))
	}
	p.expect(texts(inputs[:1]), "input_sequence=1, move_x=1, move_y=0, yaw=90")
	p.expect(texts(inputs[len(inputs)-1:]), fmt.Sprintf("input_sequence=%d, move_x=0, move_y=0, yaw=90", len(inputs)))
	batches := p.said("server", "MoveBatchNotify")
	if n := len(batches); n < 20 || n > 23 {
		t.Errorf("%d batches", n)
	}
	at := func(s *scenario.Sent) float64 {
		i := s.Body.Member(s.Body.Field("entries")+1, "x")
		return s.Body.Nodes[i].Float()
	}
	for i, s := range batches[1:] {
		text := textOf(&s.Record)
		switch step := at(s) - at(batches[i]); {
		case strings.Contains(text, "velocity_x=6 ") && (step < 0.299 || step > 0.301):
			t.Errorf("batch %d goes %v", i+1, step)
		case strings.Contains(text, "velocity_x=0 ") && step != 0:
			t.Errorf("batch %d stands and goes %v", i+1, step)
		}
	}
	p.expect(texts(batches[len(batches)-1:]), fmt.Sprintf("last_processed_input_sequence=%d, velocity_x=0", len(inputs)))
}

// TestInputEnds has a client fall silent: nothing goes on for ever.
func TestInputEnds(t *testing.T) {
	const input = "0801 15 0000803f" // sequence 1, east
	p := play(t, game{settings: peaceful}, "datagram 0x0211 "+strings.ReplaceAll(input, " ", "")+"\nwait 1s")
	batches := texts(p.said("server", "MoveBatchNotify"))
	if n := len(batches); n < 5 || n > 7 {
		t.Errorf("%d batches for an input of a quarter of a second", n)
	}
	p.expect(batches[len(batches)-1:], "last_processed_input_sequence=1, velocity_x=0")
}

func TestEdgeOfTheWorld(t *testing.T) {
	small := func(s *testserver.Settings) {
		s.World.Size, s.World.Spawn, s.Monsters.Count, s.MoveNotify = 4, 1, 0, testserver.UDP
	}
	p := play(t, game{settings: small}, "walk north\nwait 1s\nstop\nwait 100ms")
	notes := p.said("server", "MoveNotify")
	if len(notes) == 0 || notes[0].Transport != schema.UDP {
		t.Fatalf("%d corrections", len(notes))
	}
	p.expect(texts(notes[len(notes)-1:]), "y=2, velocity_y=0")
}

// TestCrowd wants every batch of a tick: 41 characters in 29 and 12.
func TestCrowd(t *testing.T) {
	p := play(t, game{settings: peaceful, server: mmo.ServerConfig{Walkers: 40}}, "walk west\nwait 3s")
	full, most := 0, 0
	for _, s := range p.said("server", "MoveBatchNotify") {
		n := strings.Count(textOf(&s.Record), "character_id=")
		if s.Size != 16+40*n || s.Size > 1200 {
			t.Errorf("%d bytes for %d entries", s.Size, n)
		}
		if s.Size == 1176 {
			full++
		}
		most = max(most, n)
	}
	if full == 0 || most != 29 {
		t.Errorf("%d full batches, %d entries at most", full, most)
	}
	if n := len(p.said("server", "SpawnOtherCharacter")); n != 40 {
		t.Errorf("%d others", n)
	}
}

func TestView(t *testing.T) {
	near := func(s *testserver.Settings) {
		s.World.View, s.World.Leave, s.World.Spawn, s.Monsters.Count = 5, 6, 0.1, 0
	}
	p := play(t, game{settings: near}, "await SpawnOtherCharacter\nwalk south\nwait 1500ms\nwalk north\nwait 1500ms\nstop\nwait 2s", "wait 4s")
	for n := range 2 {
		var got []string
		for _, s := range to(n, p.said("server", "SpawnOtherCharacter", "DespawnCharacter")) {
			got = append(got, s.Message)
		}
		want := []string{"SpawnOtherCharacter", "DespawnCharacter", "SpawnOtherCharacter"}
		if n == 0 {
			want = append(want, "DespawnCharacter") // the other one leaves first
		}
		if !slices.Equal(got, want) {
			t.Errorf("bot %d: %v, want %v", n+1, got, want)
		}
	}
	p.expect(texts(to(0, p.said("server", "DespawnCharacter"))), "reason=LEAVE_REASON_OUT_OF_VIEW", "reason=LEAVE_REASON_LOGGED_OUT")
	// Who is out of view is in no batch.
	out := false
	all := to(1, p.said("server"))
	slices.SortStableFunc(all, func(a, b *scenario.Sent) int { // as they were said: a datagram overtakes the stream
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.ID, b.ID))
	})
	for _, s := range all {
		switch s.Message {
		case "DespawnCharacter":
			out = true
		case "SpawnOtherCharacter":
			out = false
		case "MoveBatchNotify":
			if out {
				t.Errorf("a batch about who is out of view: %s", textOf(&s.Record))
			}
		}
	}
}

func TestChat(t *testing.T) {
	p := play(t, game{settings: peaceful}, "await SpawnOtherCharacter\nsay hello,  Größe\nwait 300ms", "await ChatNtf\nwait 300ms")
	p.expect(texts(to(0, p.said("server", "ChatNtf"))), "name=Ada, text=hello,") // and so on
	p.expect(texts(to(1, p.said("server", "ChatNtf"))), "name=Ada, Größe")
}

func TestCombat(t *testing.T) {
	arena := func(s *testserver.Settings) {
		s.World.Spawn, s.Monsters.Count, s.Combat.Respawn = 0.5, 1, time.Second
	}
	p := play(t, game{settings: arena}, "await SpawnOtherCharacter\nattack\nwait 400ms\nattack\nattack\nwait 400ms\nattack 3\nwait 400ms\nattack 3\n"+
		"wait 400ms\nattack 1\nawait SpawnMonster\nawait SpawnMonster\nwait 100ms", "wait 5s")
	p.expect(texts(p.said("server", "AttackAck")),
		"success=1, attack_sequence=1, combo_step=1", "success=1, attack_sequence=2, combo_step=2", "success=0, message=cooldown, attack_sequence=3",
		"success=1, combo_step=3", "success=0, message=out of, attack_sequence=5", "success=1, combo_step=1")
	// The other one sees the attacks, and who is hit by them; 40 hp are gone after the third.
	notes := to(1, p.said("server", "AttackNotify"))
	p.expect(texts(notes), "combo_step=1, target_ids=[1152921504606846977]", "combo_step=2, target_ids=[1152921504606846977]",
		"combo_step=3, target_ids=[1152921504606846977]", "combo_step=1, target_ids=[]")
	if n := len(to(0, p.said("server", "AttackNotify"))); n > 0 {
		t.Errorf("it hears %d times of its own attack", n)
	}
	var hurt []string
	for _, s := range to(1, p.said("server", "EntityHpChanged")) {
		if text := textOf(&s.Record); strings.Contains(text, "kind=ENTITY_KIND_MONSTER") {
			hurt = append(hurt, text)
		}
	}
	p.expect(hurt, "hp=26, change=-14", "hp=12, change=-14", "hp=0, change=-12")
	p.expect(texts(to(1, p.said("server", "DespawnMonster"))), "monster_id=1152921504606846977, reason=LEAVE_REASON_DEAD")
	if n := len(to(1, p.said("server", "SpawnMonster"))); n != 2 {
		t.Errorf("the monster was there %d times", n)
	}
}

func TestMonsters(t *testing.T) {
	cruel := func(s *testserver.Settings) {
		s.Combat.CharacterHP, s.Combat.Respawn, s.World.Spawn = 40, time.Second, 5
		s.Monsters.Interval, s.Monsters.Count = 200*time.Millisecond, 5
	}
	p := play(t, game{settings: cruel, server: mmo.ServerConfig{Development: true}}, "await MoveNotify\nattack\nwait 100ms")
	for _, message := range []string{
		"MonsterMoveNotify", "MonsterAttackNotify", "MonsterRangedShotNotify", "MonsterCombatDebugNotify", "EntityHpChanged", "MoveNotify",
	} {
		if len(p.said("server", message)) == 0 {
			t.Errorf("no %s", message)
		}
	}
	var hp []string
	for _, s := range p.said("server", "EntityHpChanged") {
		hp = append(hp, value(s.Body, s.Body.Field("hp")))
	}
	dead := slices.Index(hp, "0")
	if dead < 0 || hp[dead+1] != "40" {
		t.Errorf("hp goes %v, want it to be 0 and then 40", hp)
	}
}

func TestInventory(t *testing.T) {
	p := play(t, game{settings: peaceful}, strings.Join([]string{
		"carry 0 5", "await InventoryOperationResult", // the whole stack
		"carry 5 6 1", "await InventoryOperationResult", // one of it
		"again", "await InventoryOperationResult",
		"stale", "use 1", "await InventoryOperationResult",
		"use 1", "await InventoryOperationResult",
		"use 6", "await InventoryOperationResult", // the last one
		"carry 5 99", "await InventoryOperationResult",
		"use 20", "await InventoryOperationResult",
		"carry 5 2 100", "await InventoryOperationResult",
	}, "\n"))
	snapshot := textOf(&p.said("server", "InventorySnapshot")[0].Record)
	if strings.Count(snapshot, "item_instance_id=") != 4 {
		t.Errorf("the inventory begins as %s", snapshot)
	}
	results := p.said("server", "InventoryOperationResult")
	requests := p.said("Ada", "InventoryMoveReq", "InventoryUseReq")
	p.expect(texts(results), "success=1", "success=1", "success=1", "success=0, message=revision", "success=1", "success=1",
		"success=0, message=no", "success=0, message=no", "success=0, message=not")
	var revisions, ids []string
	for i, s := range results {
		text := textOf(&s.Record)
		ids = append(ids, value(s.Body, s.Body.Field("client_request_id")))
		if want := value(requests[i].Body, requests[i].Body.Field("client_request_id")); ids[i] != want {
			t.Errorf("result %d is for %s, want %s", i+1, ids[i], want)
		}
		_, rest, found := strings.Cut(text, " revision=")
		if !found {
			revisions = append(revisions, "none")
			continue
		}
		number, _, _ := strings.Cut(rest, "}")
		revisions = append(revisions, strings.Fields(number)[0])
	}
	// Each change makes one more; a repeated answer is the old one, a conflict has the present state, other refusals have none.
	var first int
	if _, err := fmt.Sscan(revisions[0], &first); err != nil {
		t.Fatal(err)
	}
	n := func(k int) string { return fmt.Sprint(first + k) }
	if want := []string{n(0), n(1), n(1), n(1), n(2), n(3), "none", "none", "none"}; !slices.Equal(revisions, want) {
		t.Errorf("revisions are %v, want %v", revisions, want)
	}
	if ids[1] != ids[2] || ids[0] == ids[1] {
		t.Errorf("request ids are %v", ids)
	}
	if a, b := textOf(&results[1].Record), textOf(&results[2].Record); a != b {
		t.Errorf("the repeated answer is %s, want %s", b, a)
	}
	p.ended("server", "repeated", ids[1])
}

func TestErrors(t *testing.T) {
	for name, test := range map[string]struct{ script, want string }{
		"nobody knows the id":              {"send 0x0299 0801", "request_packet_id=665, error_code=ERROR_CODE_UNKNOWN_PACKET"},
		"an id of the server":              {"send 0x0202 0801", "request_packet_id=514, error_code=ERROR_CODE_UNKNOWN_PACKET"},
		"an id of UDP by TCP":              {"send 0x0211 0801", "request_packet_id=529, error_code=ERROR_CODE_UNKNOWN_PACKET"},
		"an id of TCP by UDP":              {"datagram 0x0221 0a0161", "request_packet_id=545, error_code=ERROR_CODE_UNKNOWN_PACKET"},
		"a body that ends too soon":        {"send 0x0221 0a05", "request_packet_id=545, error_code=ERROR_CODE_MALFORMED_PACKET"},
		"a wire type that is none":         {"send 0x0221 0f", "request_packet_id=545, error_code=ERROR_CODE_MALFORMED_PACKET"},
		"a text that is none":              {"send 0x0221 0a01ff", "error_code=ERROR_CODE_INVALID_DATA"},
		"a line that is empty":             {"send 0x0221 -", "request_packet_id=545, error_code=ERROR_CODE_INVALID_DATA"},
		"a line that is too long":          {"say " + strings.Repeat("x", 201), "error_code=ERROR_CODE_INVALID_DATA"},
		"a body by UDP that is malformed":  {"datagram 0x0211 08ac02150000", "request_packet_id=529, error_code=ERROR_CODE_MALFORMED_PACKET"},
		"a direction that is too long":     {"datagram 0x0211 0801150000c03f", "request_packet_id=529, error_code=ERROR_CODE_INVALID_DATA"},
		"a direction that is no number":    {"datagram 0x0211 0801150000c07f", "request_packet_id=529, error_code=ERROR_CODE_INVALID_DATA"},
		"a yaw that is infinite":           {"datagram 0x0211 0801250000807f", "request_packet_id=529, error_code=ERROR_CODE_INVALID_DATA"},
		"two frames in a datagram":         {"datagram 0x0211 0801 0x0211 0802", "error_code=ERROR_CODE_MALFORMED_PACKET"},
		"less than a frame in a datagram":  {"raw-datagram 1000110208", "error_code=ERROR_CODE_MALFORMED_PACKET"},
		"entering twice":                   {"send 0x0201 -", "request_packet_id=513, error_code=ERROR_CODE_INVALID_STATE"},
		"a step of no combo":               {"attack 4", "request_packet_id=561, error_code=ERROR_CODE_INVALID_DATA"},
		"a request without an id":          {"send 0x0252 1001", "request_packet_id=594, error_code=ERROR_CODE_INVALID_DATA"},
		"login":                            {"login Ada secret", "request_packet_id=257, error_code=ERROR_CODE_INVALID_STATE"},
		"registration":                     {"register Ada secret a@example.org", "request_packet_id=259, error_code=ERROR_CODE_INVALID_STATE"},
		"the list of servers":              {"servers", "request_packet_id=273, error_code=ERROR_CODE_INVALID_STATE"},
		"the choice of a server":           {"select 2", "request_packet_id=289, error_code=ERROR_CODE_INVALID_STATE"},
		"hello with another's token":       {"datagram 0x0204 0a0161", "request_packet_id=516, error_code=ERROR_CODE_INVALID_DATA"},
		"a packet before entering":         {"send 0x0221 0a0161\nenter\nawait UdpHelloRes", "request_packet_id=545, error_code=ERROR_CODE_AUTH_REQUIRED"},
		"a deprecated one before entering": {"servers\nenter\nawait UdpHelloRes", "request_packet_id=273, error_code=ERROR_CODE_INVALID_STATE"},
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t, game{settings: peaceful}, test.script+"\necho 77\nawait EchoRes\nwait 100ms")
			p.expect(texts(p.said("server", "ErrorRes")), test.want)
			p.expect(texts(p.said("server", "EchoRes")), "payload=77") // it goes on
			for _, s := range p.said("server", "ErrorRes") {
				if s.Transport != schema.TCP {
					t.Error("an error goes by UDP")
				}
			}
		})
	}
}

func TestRateLimit(t *testing.T) {
	p := play(t, game{settings: peaceful}, "flood 100\nwait 1500ms\nflood 70\nwait 500ms")
	p.expect(texts(p.said("server", "ErrorRes")), "request_packet_id=1, error_code=ERROR_CODE_RATE_LIMITED", "request_packet_id=1, error_code=ERROR_CODE_RATE_LIMITED")
	if n := len(p.said("server", "EchoRes")); n < 110 || n > 120 {
		t.Errorf("%d answers for 170 packets, want those of two seconds", n)
	}
}

func TestBadSizesEndTheConnection(t *testing.T) {
	for name, test := range map[string]struct{ raw, want string }{
		"nothing":           {"0000", "bad_size"},
		"below the header":  {"03000100", "bad_size"},
		"above the largest": {"0140310208011001", "bad_size"},
		"half a frame":      {"3e0001020a35", "closed: the client"},
		"half a header":     {"3e", "closed: the client"},
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t, game{settings: peaceful}, "raw "+test.raw+"\nwait 1s", "wait 2s")
			p.ended("server", "session_end", test.want)
			p.ended("Brin", "left", "")
		})
	}
	// 16384 is a size, of which 10 bytes come.
	p := play(t, game{settings: peaceful}, "raw 00400100010203040506\nwait 1s")
	p.ended("server", "session_end", "closed: the client")
}

func TestHeartbeat(t *testing.T) {
	quick := func(s *testserver.Settings) {
		peaceful(s)
		s.Heartbeat.Interval, s.Heartbeat.Timeout = 300*time.Millisecond, time.Second
	}
	p := play(t, game{settings: quick, bots: []mmo.BotConfig{{}, {Mute: true}}}, "wait 3s", "wait 3s")
	pings, pongs := to(0, p.said("server", "Ping")), p.said("Ada", "Pong")
	if len(pings) < 9 || len(pongs) < len(pings)-1 {
		t.Errorf("%d pings, %d pongs", len(pings), len(pongs))
	}
	for i := range pongs {
		if a, b := textOf(&pings[i].Record), textOf(&pongs[i].Record); a != b {
			t.Errorf("the answer to %s is %s", a, b)
		}
	}
	p.ended("server", "session_end", `"Brin": timeout`)
	p.ended("Brin", "closed", "")
	p.ended("Ada", "left", "")
	p = play(t, game{settings: quick}, "wait 3s\nenter")
	p.ended("server", "session_end", "timeout")
}

// TestHelloIsRepeated loses datagrams on their way: the same token is said until it is
// answered.
func TestHelloIsRepeated(t *testing.T) {
	found := false
	for seed := range uint64(40) {
		s, _ := scenario.Find("mmo-lossy")
		r, err := s.Run(io.Discard, seed)
		if err != nil {
			t.Fatal(err)
		}
		p := played{t, r}
		var attempts []string
		for _, h := range p.said("Ada", "UdpHelloReq") {
			if !h.Copy {
				attempts = append(attempts, value(h.Body, h.Body.Field("attempt")))
			}
		}
		found = found || len(attempts) > 1 && attempts[0] == "1" && attempts[1] == "2"
		if len(p.said("server", "MoveBatchNotify")) > 0 && len(p.said("server", "UdpHelloRes")) == 0 {
			t.Errorf("seed %d: movement without a hello", seed)
		}
	}
	if !found {
		t.Error("no hello is said twice")
	}
}

// TestLogsKeepSecrets looks for tokens and passwords in what a log has of them.
func TestLogsKeepSecrets(t *testing.T) {
	p := play(t, game{}, "enter wrong\nenter\nawait UdpHelloRes\nlogin Ada swordfish\nregister Ada swordfish a@example.org\nwait 200ms")
	var secrets []string
	for _, s := range p.Sent {
		for _, field := range []string{"enter_token", "udp_token", "password", "mail"} {
			if i := s.Body.Field(field); i >= 0 {
				secrets = append(secrets, value(s.Body, i))
			}
		}
	}
	if len(secrets) != 7 {
		t.Fatalf("%d secrets were sent: %q", len(secrets), secrets)
	}
	var log bytes.Buffer
	if err := p.WriteLog(&log); err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets {
		if strings.Contains(log.String(), secret) || strings.Contains(log.String(), hex.EncodeToString([]byte(secret))) {
			t.Errorf("the log has %q", secret)
		}
	}
	if n := strings.Count(log.String(), `"***"`); n != 9 { // the names as well
		t.Errorf("the log masks %d values", n)
	}
}

// TestBigEndian has both play in the other byte order.
func TestBigEndian(t *testing.T) {
	p := play(t, game{settings: func(s *testserver.Settings) { s.ByteOrder = testserver.Big }}, "walk west\nwait 300ms")
	if len(p.said("server", "MoveBatchNotify")) == 0 {
		t.Error("nothing moves")
	}
	p.ended("Ada", "left", "")
}
