package wulfram

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"opscope/cmd/refserver/internal/machine"
)

func scripted(t testing.TB, text string) []Command {
	t.Helper()
	s, err := Scripts.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Section 6, step by step: who sends what, by which transport.
func TestAcceptFlow(t *testing.T) {
	w := newCable(t, ServerConfig{Seed: 1}, BotConfig{Name: "Ada", Script: scripted(t, "team red\nspawn 1 tank\nwait 12s")})
	var got []string
	w.seen = func(from *station, o machine.Output) {
		via := map[machine.OutputKind]string{machine.SendStream: "tcp", machine.SendDatagram: "udp"}[o.Kind]
		for _, r := range o.Records {
			got = append(got, fmt.Sprintf("%s %s %s", from.name[:1], via, r.Message))
		}
	}
	w.run(20 * time.Second)
	steps := []string{
		"s tcp HELLO", "s tcp HELLO", // 1
		"b tcp HELLO",               // 2
		"b udp ROOT", "b udp HELLO", // 3
		"s udp IDENTIFIED_UDP",       // 4
		"b tcp HELLO", "b tcp LOGIN", // 5, 6
		"s tcp LOGIN_STATUS", "b tcp LOGIN", //
		"s tcp TEAM_INFO", "s tcp LOGIN_STATUS", // 8
		"s tcp PLAYER", "s tcp GAME_CLOCK", "s tcp MOTD", "s tcp BEHAVIOR", "s tcp TRANSLATION", "s tcp ADD_TO_ROSTER", "s tcp WORLD_STATS",
		"s udp HELLO",                     // 7, of the same instant
		"b tcp BPS", "b tcp WANT_UPDATES", // 9
		"s tcp BPS", "s tcp VIEW_UPDATE",
		"b udp D_HANDSHAKE", "s udp D_ACK", "s udp D_HANDSHAKE", "b udp D_ACK", // 10
		"b udp ACK2", "b udp REINCARNATE", // 11, 12
		"s udp D_ACK", "s udp UPDATE_STATS", "s udp REINCARNATE",
		"s udp TANK", "s udp REINCARNATE", "s udp BIRTH_NOTICE", // 13
		"b udp INPUT_FEEDBACK", "s udp VIEW_UPDATE", "b udp ACTION_DUMP", "s tcp PING_REQUEST", "b udp PING", // 14, 15
		"s udp UPDATE_ARRAY",
	}
	at := 0
	for _, step := range steps {
		i := slices.Index(got[at:], step)
		if i < 0 {
			t.Fatalf("%q does not follow; from there on: %s", step, strings.Join(got[at:min(at+30, len(got))], ", "))
		}
		at += i + 1
	}
	if !w.bots[0].done {
		t.Error("the bot has not come to its end")
	}
}

// Both ends send the handshakes of section 5, byte by byte.
func TestHandshakeBytes(t *testing.T) {
	const client = "0300000000" + "0000000f" + "00000002" +
		"000e426561636f6e2053747265616d00" + "00000002" + "0000003a0000003b" +
		"000d5371756164205468696e677300" + "00000004" + "00000042000000460000004900" + "00004a" + "0000000f" +
		"0000001900000001" + "0000002000000003" + "0000002500000003" + "0000002600000001" + "0000002b00000001" +
		"0000002e00000003" + "0000003300000003" + "0000003500000001" + "0000003a00000003" + "0000003b00000003" +
		"0000004200000003" + "0000004600000003" + "0000004900000003" + "0000004a00000003" + "0000004f00000003"
	if got := len(client) / 2; got != 200 {
		t.Fatalf("the client's handshake has %d bytes, the facts say 200", got)
	}
	for style, want := range map[Handshake]int{Original: 200, GameData: 128, Policy: 1 + 12 + 12 + 4 + 4*8 + 4 + 14*8} {
		w := newCable(t, ServerConfig{Handshake: style}, BotConfig{Script: scripted(t, "leave")})
		w.seen = func(from *station, o machine.Output) {
			for _, r := range o.Records {
				if r.Message != "D_HANDSHAKE" {
					continue
				}
				b := slices.Clone(o.Data[r.Offset : r.Offset+r.Size])
				copy(b[1:5], []byte{0, 0, 0, 0}) // the time
				if got := hex.EncodeToString(b); (from == w.bots[0] || style == Original) && got != client {
					t.Errorf("%s, %s sends\n%s, want\n%s", style, from.name, got, client)
				}
				if from == w.server && len(b) != want {
					t.Errorf("%s: the server's handshake has %d bytes, want %d", style, len(b), want)
				}
			}
		}
		w.run(5 * time.Second)
	}
}

// styles are the variants under which two machines must understand each other.
var styles = []struct {
	name   string
	server ServerConfig
	bot    Variant
}{
	{"policy", ServerConfig{}, Variant{}},
	{"original", ServerConfig{Handshake: Original}, Variant{}},
	{"game-data", ServerConfig{Handshake: GameData}, Variant{}},
	{"prefixed", ServerConfig{}, Variant{Prefixed: true}},
	{"delimited", ServerConfig{}, Variant{Delimited: true}},
	{"near the wrap", ServerConfig{FirstSeq: 65530}, Variant{FirstSeq: 65530}},
	{"unarmed", ServerConfig{Unarmed: true}, Variant{}},
	{"early", ServerConfig{Early: true}, Variant{}},
	{"oversize", ServerConfig{}, Variant{Oversize: true}},
}

// Without faults nobody misunderstands anything, and everything is acknowledged.
func TestPlayWithoutFaults(t *testing.T) {
	for _, style := range styles {
		t.Run(style.name, func(t *testing.T) {
			w := newCable(t, style.server, BotConfig{Name: "Ada", Seed: 1, Variant: style.bot}, BotConfig{Name: "Brin", Seed: 2, Variant: style.bot})
			w.run(40 * time.Second)
			for _, s := range append(w.bots, w.server) {
				checkCalm(t, s, style.name)
			}
			for _, b := range w.bots {
				if !b.done {
					t.Errorf("%s is not done", b.name)
				}
			}
		})
	}
}

// checkCalm finds fault with events that a play without faults must not have.
func checkCalm(t *testing.T, s *station, style string) {
	t.Helper()
	for _, e := range s.events {
		code, text, _ := strings.Cut(e, ":")
		switch {
		case code == "left" || code == "session_end" && strings.Contains(text, "closed"):
		case code == "dropped" && style == "oversize":
		case code == "malformed" && style == "early": // what nobody can read before TRANSLATION
		default:
			t.Errorf("%s: %s", s.name, e)
		}
	}
	for _, r := range s.sent {
		if r.Mode == 3 && r.Resend == 0 && !s.acked[r.ID] && r.Message != "REMOVE_FROM_ROSTER" && r.Message != "DELETE_OBJECT" {
			t.Errorf("%s: %s %d (record %d) is not acknowledged", s.name, r.Message, r.Seq, r.ID)
		}
	}
}

// Over a bad path, what is ordered comes exactly once and in order.
func TestOrderedOverABadPath(t *testing.T) {
	for _, style := range styles {
		for seed := range uint64(4) {
			t.Run(fmt.Sprint(style.name, " ", seed), func(t *testing.T) {
				var lines strings.Builder
				var want []string
				for i := range 40 {
					want = append(want, fmt.Sprint("line ", i, " of Ada"))
					lines.WriteString("say " + want[i] + "\nlook " + fmt.Sprint(i) + "\n")
				}
				lines.WriteString("wait 5s\nsay /flood 60\nwait 20s")
				style.server.Seed = seed
				w := newCable(t, style.server, BotConfig{Name: "Ada", Seed: seed, Script: scripted(t, lines.String()), Variant: style.bot})
				w.faults = faults{loss: 0.2, duplicate: 0.1, reorder: 0.3}
				w.run(3 * time.Minute)
				if !w.bots[0].done {
					t.Fatalf("the bot is not done: %q", w.bots[0].events)
				}
				compare(t, "the server", texts(w.server, "COMM_MESSAGE_REQUEST"), append(slices.Clone(want), "/flood 60"))
				if style.server.Handshake == "" { // the others send chat raw
					for i := range 60 {
						want = append(want, fmt.Sprint("line ", i))
					}
					compare(t, "the bot", texts(w.bots[0], "COMM_MESSAGE"), want)
				}
			})
		}
	}
}

// texts returns the texts that a station received in messages of a kind.
func texts(s *station, message string) (got []string) {
	for i, r := range s.heard {
		if r.Message == message {
			got = append(got, s.bodies[i])
		}
	}
	return got
}

func compare(t *testing.T, who string, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("%s has %d messages, want %d; they part at %d:\n%q\n%q", who, len(got), len(want), i, got[min(i, len(got)):], want[min(i, len(want)):])
		}
	}
}

// A sequence passes 65534 when it gets there by itself.
func TestSequencesWrap(t *testing.T) {
	if testing.Short() {
		t.Skip("sends 66,000 records")
	}
	w := newCable(t, ServerConfig{Entities: -1}, BotConfig{Script: scripted(t, "repeat 65540 look 5\nwait 1s")})
	w.run(5 * time.Minute)
	var last []int
	for _, r := range w.server.heard {
		if r.Message == "VIEWPOINT_INFO" {
			last = append(last, r.Seq)
		}
	}
	if len(last) != 65540 || last[65533] != 65534 || last[65534] != 0 || last[65539] != 5 {
		t.Errorf("%d records, the last of them %v", len(last), last[max(0, len(last)-8):])
	}
}

// The same seed and inputs give the same outputs, byte by byte.
func TestDeterminism(t *testing.T) {
	play := func() []string {
		w := newCable(t, ServerConfig{Seed: 7}, BotConfig{Name: "Ada", Seed: 1}, BotConfig{Name: "Brin", Seed: 2})
		w.faults = faults{loss: 0.1, duplicate: 0.1, reorder: 0.2}
		w.run(30 * time.Second)
		return w.outputs
	}
	compare(t, "the second run", play(), play())
}

// What a script asks for arrives: skipped sequences, squads and beacons, the
// answers of the world.
func TestPlayShowsTheProtocol(t *testing.T) {
	w := newCable(t, ServerConfig{}, BotConfig{Name: "Ada"}, BotConfig{Name: "Brin"})
	w.run(40 * time.Second)
	for who, messages := range map[*station][]string{
		w.server: {"D_IGNORE", "SQUAD_CREATE", "SQUAD_INVITE", "SQUAD_OUST", "SQUAD_COMMAND", "BEACON_REQUEST", "BEACON_MODIFY", "RETARGET",
			"ACK1", "ACK2", "VIEWPOINT_INFO", "DROP_REQUEST", "TANK_RESEND_REQUEST", "PING_REQUEST", "ACTION_DUMP", "ACTION_UPDATE", "INPUT_FEEDBACK"},
		w.bots[0]: {"TANK", "REINCARNATE", "BIRTH_NOTICE", "DEATH_NOTICE", "DELETE_OBJECT", "UPDATE_STATS", "ADD_TO_ROSTER", "COMM_MESSAGE",
			"TRANSIENT_ARRAY", "UPDATE_ARRAY", "VIEW_UPDATE", "CARRYING_INFO", "DOCKING", "SHIP_STATUS", "SUPPLY_SHIP_INFO", "UPLINK_INFO", "PING"},
	} {
		for _, m := range messages {
			if !slices.ContainsFunc(who.heard, func(r machine.Record) bool { return r.Message == m }) {
				t.Errorf("%s has not received a %s", who.name, m)
			}
		}
	}
}
