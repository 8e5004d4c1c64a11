package lotr2_test

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"opscope/cmd/refserver/internal/scenario"
)

// play plays a scenario over the network in memory.
func play(t *testing.T, name string) *scenario.Result {
	t.Helper()
	s, ok := scenario.Find(name)
	if !ok {
		t.Fatalf("there is no scenario %s", name)
	}
	var capture bytes.Buffer
	r, err := s.Run(&capture, 7)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range r.Events {
		if e.Code == "dropped" || e.Code == "timeout" || e.Code == "malformed" {
			t.Errorf("%s: %s", e.By, e.Text)
		}
	}
	return r
}

// firsts lists the first sends of a peer in their order, without those that come all
// the time.
func firsts(r *scenario.Result, by string) (messages []string) {
	often := []string{"tick_reached", "set_up_screen_heartbeat", "lobby_table_without_names", "battle_state_report"}
	for _, s := range inOrder(r, by) {
		if s.Resend == 0 && !slices.Contains(often, s.Message) {
			messages = append(messages, s.Message)
		}
	}
	return messages
}

// inOrder lists what a peer sent, in the order in which it did.
func inOrder(r *scenario.Result, by string) (list []scenario.Sent) {
	for _, s := range r.Sent {
		if s.By == by {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b scenario.Sent) int { return a.ID - b.ID })
	return list
}

// TestFlows compares the messages of whole sessions with the order of events of section
// 3 and section 7.2 of the facts.
func TestFlows(t *testing.T) {
	join := "EnumSessionsReply RequestPlayerReply SuperEnumPlayersReply RequestPlayerReply " +
		"join_welcome unknown(0x4C) game_options lobby_table_with_names " +
		"unknown(0x4C) game_options shield_owner_map_one_player lobby_table_with_names "
	joined := "EnumSessions RequestPlayerId AddForwardRequest RequestPlayerId CreatePlayer join_hello joiners_choice "
	gone := "DeletePlayer DeletePlayer"
	turn := "turn_end_state_report turn_end_state_report "
	for _, test := range []struct{ scenario, peer, want string }{
		{"lotr2-lobby", "Ada", joined + "chat Ping " + gone},
		{"lotr2-campaign", "Ada", joined + "unknown(0x23) unknown(0x23) unknown(0x23) player_ended_the_turn player_ended_the_turn " + turn +
			"trade trade player_ended_the_turn player_ended_the_turn " + turn + gone},
		{"lotr2-skirmish", "host", join + "skirmish_set_up_block skirmish_set_up_numbers chat skirmish_set_up_last_step battle_start " +
			"unit_order_in_battle unit_order_in_battle unit_order_in_battle set_up_screen_notice_empty"},
		{"lotr2-skirmish", "Ada", joined + "set_up_screen_notice_empty " + strings.Repeat("unit_order_in_battle ", 9) + "chat " + gone},
		{"lotr2-rejoin", "Ada", joined + "chat DeletePlayer DeletePlayer " + joined + "chat " + gone},
	} {
		t.Run(test.scenario+", "+test.peer, func(t *testing.T) {
			if got := strings.Join(firsts(play(t, test.scenario), test.peer), " "); got != strings.TrimSpace(test.want) {
				t.Errorf("it sends\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// TestSlotsAndCopies follows section 6: one counter for all that a peer sends, from 0, and
// from 39 to 1; three sends back to back, but for the five opcodes that are sent once.
func TestSlotsAndCopies(t *testing.T) {
	once := map[int]bool{0x0a: true, 0x0e: true, 0x23: true, 0x43: true, 0x54: true}
	r := play(t, "lotr2-campaign")
	for _, by := range []string{"host", "Ada"} {
		last, first, wraps := -1, 0, 0
		var list []scenario.Sent
		for _, s := range inOrder(r, by) {
			if s.Protocol == "" {
				list = append(list, s)
			}
		}
		for i := 0; i < len(list); {
			s := &list[i]
			sends := 3
			if once[s.Opcode] {
				sends = 1
			}
			for k := range sends {
				c := &list[i+k]
				if copy, _ := c.Head.Value("copy"); c.Seq != s.Seq || c.Opcode != s.Opcode || int(copy) != k || k > 0 && c.Resend != s.ID {
					t.Fatalf("%s: send %d of %s in slot %d is %s in slot %d, copy %d of %d", by, k, s.Message, s.Seq, c.Message, c.Seq, copy, c.Resend)
				}
			}
			i += sends
			switch {
			case last < 0:
				first = s.Seq
			case s.Seq == 1 && last == 39:
				wraps++
			case s.Seq != last+1:
				t.Errorf("%s: slot %d behind slot %d", by, s.Seq, last)
			}
			last = s.Seq
		}
		if by == "Ada" && first != 0 || wraps == 0 {
			t.Errorf("%s: slots begin at %d and wrap %d times", by, first, wraps)
		}
	}
}

// TestConnectionsAreOneWay looks at who dials whom, and that no side writes to a
// connection that it has accepted (section 3).
func TestConnectionsAreOneWay(t *testing.T) {
	for scenarioName, want := range map[string]int{"lotr2-lobby": 2, "lotr2-three": 6} {
		r := play(t, scenarioName)
		used := 0
		for _, s := range r.Streams {
			if s.Src.Port() == 2300 && s.Bytes > 0 {
				t.Errorf("%s: %v writes %d bytes to %v, who has dialled it", scenarioName, s.Src, s.Bytes, s.Dst)
			}
			if s.Bytes > 0 {
				used++
			}
		}
		if used != want {
			t.Errorf("%s: %d connections are used, want %d", scenarioName, used, want)
		}
		if first := r.Streams[0].Src; first.Addr() != netip.MustParseAddr("10.0.0.1") || first.Port() == 2300 {
			t.Errorf("%s: %v dials first, want the host", scenarioName, first)
		}
	}
}

// TestThreePlayers looks for what more than two bring: AddForward with its answer, and
// slots that one of them does not see (rule 7 of section 8).
func TestThreePlayers(t *testing.T) {
	r := play(t, "lotr2-three")
	seen := map[netip.Addr]map[int]bool{}
	messages := map[string]int{}
	for _, s := range inOrder(r, "host") {
		messages[s.Message]++
		if s.Protocol == "" {
			if seen[s.Dst.Addr()] == nil {
				seen[s.Dst.Addr()] = map[int]bool{}
			}
			seen[s.Dst.Addr()][s.ID] = true
		}
	}
	if messages["AddForward"] != 1 || messages["join_welcome"] != 6 {
		t.Errorf("the host sends %v", messages)
	}
	if got := strings.Join(firsts(r, "Ada"), " "); !strings.Contains(got, "AddForwardAck") {
		t.Errorf("the first joiner sends %s", got)
	}
	between := 0
	for _, s := range r.Sent {
		if s.By == "Brin" && s.Dst.Addr() == netip.MustParseAddr("10.0.0.2") && s.Arrivals > 0 {
			between++
		}
	}
	if between == 0 {
		t.Error("the joiners say nothing to each other")
	}
}

// TestSessionsEndWithResets looks at the end: five seconds behind the DeletePlayer both
// connections are reset (section 3).
func TestSessionsEndWithResets(t *testing.T) {
	r := play(t, "lotr2-lobby")
	var deleted, reset time.Time
	for _, s := range r.Sent {
		if s.Message == "DeletePlayer" {
			deleted = s.Arrived
		}
	}
	for _, e := range r.Events {
		if e.By == "host" && e.Code == "left" {
			reset = e.Time
		}
	}
	if d := reset.Sub(deleted); d != 5*time.Second {
		t.Errorf("%v between the DeletePlayer and the reset, want 5s", d)
	}
}
