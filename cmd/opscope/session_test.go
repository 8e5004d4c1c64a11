package main

import (
	"bytes"
	"flag"
	"os"
	"strconv"
	"testing"
	"time"

	"opscope/schema"
)

const sessionCapture = "../../pcaps/wulfram/session.pcapng"

var writePcaps = flag.Bool("write-pcaps", false, "write the captures of pcaps/ that tests make")

// What is in pcaps/wulfram/session.pcapng, for those who open it elsewhere.
const sessionComment = "A Wulfram session written by hand, record by record, in cmd/opscope/session_test.go"

// TestSessionCapture proves that the capture in pcaps/ is what this file says.
func TestSessionCapture(t *testing.T) {
	want := wulframSession(t)
	if *writePcaps {
		if err := os.WriteFile(sessionCapture, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(sessionCapture)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what its recipe writes: %d bytes, want %d\ntry: go test ./cmd/opscope -run TestSessionCapture -write-pcaps",
			sessionCapture, len(got), len(want))
	}
}

// wulfram makes the records of one Wulfram session.
type wulfram struct {
	t      *testing.T
	schema *schema.Protocol
	state  *schema.State
}

// newWulfram makes the tables that the server teaches: the stated default, but for
// actions from -1 to 1, as original clients had them from wulfram2-server, and with
// two weapon slots of the tank enabled: the autocannon and the pulse shell.
func newWulfram(t *testing.T) *wulfram {
	p, err := schema.Builtin("wulfram")
	if err != nil {
		t.Fatal(err)
	}
	w := &wulfram{t: t, schema: p, state: p.NewState()}
	stated := p.DefaultTable("translation", schema.AnySender)
	translation := schema.NewTable(stated.Decl)
	for _, slot := range stated.Keys() {
		translation.Set(slot, *stated.Get(slot))
	}
	for _, slot := range []int64{10, 11} {
		translation.Set(slot, schema.Entry{Values: []float64{16, 0, 1, 2}, Origin: schema.Learned})
	}
	w.state.Replace(translation)
	weapons := schema.NewTable(w.state.Table("weapon_slots").Decl)
	weapons.Set(0, schema.Entry{Values: []float64{1<<0 | 1<<4}, Origin: schema.Learned})
	w.state.Replace(weapons)
	return w
}

// body encodes a body by the first layout of its packet.
func (w *wulfram) body(by schema.Sender, message string, v schema.Values) (opcode uint64, body []byte) {
	w.t.Helper()
	p := w.schema.PacketNamed(message)
	if p == nil {
		w.t.Fatalf("no packet %s", message)
	}
	e := schema.Encoder{State: w.state}
	body, err := e.Append(nil, w.schema, message, p.Of(by)[0], schema.NewTree(v))
	if err != nil {
		w.t.Fatal(err)
	}
	return p.Opcode, body
}

// frame makes a TCP frame.
func (w *wulfram) frame(by schema.Sender, message string, v schema.Values) []byte {
	w.t.Helper()
	f := w.schema.Framing("tcp")
	opcode, body := w.body(by, message, v)
	return f.Envelope.Append(nil, opcode, 0, body, f.Counts)
}

// record makes a UDP record in the envelope of a mode; seq is of no use to mode 0.
func (w *wulfram) record(by schema.Sender, mode, seq int, message string, v schema.Values) []byte {
	w.t.Helper()
	opcode, body := w.body(by, message, v)
	return w.sealed(mode, seq, opcode, body)
}

func (w *wulfram) sealed(mode, seq int, opcode uint64, body []byte) []byte {
	f := w.schema.Framing("udp")
	return f.Modes[mode].Append(nil, opcode, seq, body, f.Counts)
}

// ack makes the acknowledgement of a record; it travels raw, as both handshakes
// of this session have it.
func (w *wulfram) ack(by schema.Sender, message string, seq int) []byte {
	w.t.Helper()
	return w.record(by, 0, 0, "D_ACK", schema.Values{
		"subtype": "record", "acked_opcode": int(w.schema.PacketNamed(message).Opcode), "acked_sequence": seq,
	})
}

// modesOf makes the values of a D_HANDSHAKE: groups by name, and modes by opcode.
func modesOf(timestamp, id int, groups []schema.Values, pairs ...[2]int) schema.Values {
	var modes []schema.Values
	for _, p := range pairs {
		modes = append(modes, schema.Values{"opcode": p[0], "mode": p[1]})
	}
	return schema.Values{"timestamp": timestamp, "connection_id": id, "groups": groups, "modes": modes}
}

func group(name string, members ...int) schema.Values {
	return schema.Values{"name": name, "members": members}
}

// entity makes an entity record; its mask is that of the values it has.
func entity(id int, v schema.Values) schema.Values {
	mask := 0
	for i, name := range []string{"type", "position", "velocity", "rotation", "spin", "health", "weapon_state", "energy", "owner"} {
		if _, ok := v[name]; ok {
			mask |= 1 << i
		}
	}
	v["id"], v["mask"], v["bank"] = id, mask, 0
	if _, ok := v["manned"]; !ok {
		v["manned"] = 0
	}
	if _, ok := v["type"]; ok {
		v["snap"] = 1
	}
	return v
}

func xyz(x, y, z float64) []float64 { return []float64{x, y, z} }

// wulframSession is a session from its SYN to its FIN, with the oddities that a
// reader should know by sight: a snapshot before the tables it needs, frames across
// segments, a retransmission, a record that nobody acknowledges, one that comes too
// late, and one whose body nobody knows. The client's stream modes are those of the
// original client, the server's those that this project's server advertises.
func wulframSession(t *testing.T) []byte {
	const client, server = schema.Client, schema.Server
	const us, ms = time.Microsecond, time.Millisecond
	w := newWulfram(t)
	r := newRecording(t, "eth0", sessionComment, time.Date(2026, 11, 29, 20, 15, 2, 104512000, time.UTC))

	// The connection, and UDP tied to it.
	r.connect()
	r.after(420 * us)
	r.tcp(server,
		w.frame(server, "HELLO", schema.Values{"subcommand": "udp_port", "udp_port": 2627, "hosts": []string{"10.0.0.1"}}),
		w.frame(server, "HELLO", schema.Values{"subcommand": "key", "key": "Key5d0c41be"}))
	r.after(900 * us)
	r.tcp(client, w.frame(client, "HELLO", schema.Values{"subcommand": "version", "version": 20105}))
	r.after(80 * us)
	r.udp(client,
		w.record(client, 0, 0, "ROOT", schema.Values{"text": "Hello There"}),
		w.record(client, 0, 0, "HELLO", schema.Values{"subcommand": "key", "key": "Key5d0c41be"}))
	r.after(310 * us)
	r.udp(server, w.record(server, 0, 0, "IDENTIFIED_UDP", nil))
	r.after(700 * us)
	r.tcp(client,
		w.frame(client, "HELLO", schema.Values{"subcommand": "confirmation"}),
		w.frame(client, "LOGIN", schema.Values{"subtype": 0, "user": "Alpha", "password": ""}))
	r.after(250 * us)
	r.tcp(server, w.frame(server, "LOGIN_STATUS", schema.Values{"donor": 0, "code": "ask_password"}))
	r.after(1200 * us)
	r.tcp(client, w.frame(client, "LOGIN", schema.Values{"subtype": 0, "user": "Alpha", "password": "correct horse"}))
	r.after(330 * us)
	r.udp(server, w.record(server, 0, 0, "HELLO", schema.Values{"subcommand": "verified"}))

	// A snapshot overtakes the tables that it needs.
	r.after(150 * us)
	r.udp(server, w.record(server, 0, 0, "VIEW_UPDATE", schema.Values{
		"timestamp": 110000, "sequence": 110000,
		"entities": []schema.Values{
			entity(1, schema.Values{"type": "repair_pad", "team_a": 1, "team_b": "red", "position": xyz(500, 400, 25.5), "health": 1.0}),
			entity(2, schema.Values{"type": "repair_pad", "team_a": 2, "team_b": "blue", "position": xyz(-512, -420.25, 31), "health": 1.0}),
			entity(3, schema.Values{"type": "cargo_box", "team_a": 1, "team_b": "red", "cargo": "gun_turret", "position": xyz(480, 410, 26), "rotation": xyz(0, 0, 1.5707)}),
		},
	}))
	r.after(820 * us)
	r.tcp(server,
		w.frame(server, "TEAM_INFO", schema.Values{"teams": []schema.Values{
			{"team": "red", "strings": []string{"Crimson_Federation", "Crimson Federation", "Crimson Base", "The red team.", "Crimson Federation wins!"}},
			{"team": "blue", "strings": []string{"Azure_Alliance", "Azure Alliance", "Azure Base", "The blue team.", "Azure Alliance wins!"}},
		}}),
		w.frame(server, "LOGIN_STATUS", schema.Values{"donor": 0, "code": "accepted"}),
		w.frame(server, "PLAYER", schema.Values{"player_id": 7, "flag": 0}),
		w.frame(server, "GAME_CLOCK", schema.Values{"time": 110000, "flag": 1, "phase": 1, "duration_ms": 1800000}),
		w.frame(server, "MOTD", schema.Values{"text": "Welcome back to Wulfram."}),
		w.frame(server, "BEHAVIOR", behavior()),
		w.frame(server, "TRANSLATION", w.translation()),
		w.frame(server, "ADD_TO_ROSTER", schema.Values{
			"player_id": 7, "clan_id": 0, "team": "none", "flags_16": 0, "name": "Alpha", "tag": "", "kills": 0, "deaths": 0, "score": 0.0, "flags_32": 0,
		}),
		w.frame(server, "WORLD_STATS", schema.Values{"map": "crossroads", "byte_a": 8, "byte_b": 8, "fixed": 1.0}))
	r.after(160 * us)
	r.acknowledge(client)

	// WANT_UPDATES is cut after its first byte.
	r.after(21 * ms)
	bps := w.frame(client, "BPS", schema.Values{"rate": 10})
	want := w.frame(client, "WANT_UPDATES", nil)
	r.tcp(client, bps, want[:1])
	r.after(95 * us)
	r.tcp(client, want[1:])
	r.after(480 * us)
	r.tcp(server, w.frame(server, "BPS", schema.Values{"rate": 10, "approved": 1}))

	// The handshakes; each side says how its own records travel.
	r.after(640 * us)
	r.udp(client, w.record(client, 0, 0, "D_HANDSHAKE", modesOf(6251780, 15,
		[]schema.Values{group("Beacon Stream", 0x3A, 0x3B), group("Squad Things", 0x42, 0x46, 0x49, 0x4A)},
		[2]int{0x19, 1}, [2]int{0x20, 3}, [2]int{0x25, 3}, [2]int{0x26, 1}, [2]int{0x2B, 1}, [2]int{0x2E, 3}, [2]int{0x33, 3}, [2]int{0x35, 1},
		[2]int{0x3A, 3}, [2]int{0x3B, 3}, [2]int{0x42, 3}, [2]int{0x46, 3}, [2]int{0x49, 3}, [2]int{0x4A, 3}, [2]int{0x4F, 3})))
	r.after(260 * us)
	r.udp(server,
		w.record(server, 0, 0, "D_ACK", schema.Values{"subtype": "handshake", "timestamp": 6251780}),
		w.record(server, 0, 0, "D_HANDSHAKE", modesOf(110028, 7,
			[]schema.Values{group("Lifecycle", 0x15, 0x18, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x27)},
			[2]int{0x1F, 3}, [2]int{0x15, 3}, [2]int{0x18, 3}, [2]int{0x1A, 3}, [2]int{0x1B, 3}, [2]int{0x1C, 3}, [2]int{0x1D, 3}, [2]int{0x1E, 3}, [2]int{0x27, 3})))
	r.after(190 * us)
	r.udp(client, w.record(client, 0, 0, "D_ACK", schema.Values{"subtype": "handshake", "timestamp": 110028}))
	r.after(70 * us)
	r.udp(client, w.record(client, 3, 1, "ACK2", schema.Values{"value": 1}))
	r.after(350 * us)
	r.udp(server, w.ack(server, "ACK2", 1))

	// Looking around, and a chat.
	r.after(40 * ms)
	r.udp(client,
		w.record(client, 1, 1, "VIEWPOINT_INFO", schema.Values{"entity_id": "none"}),
		w.record(client, 0, 0, "PING_REQUEST", schema.Values{"timestamp": 6251830, "accumulator": 0}))
	r.after(380 * us)
	r.udp(server, w.ack(server, "VIEWPOINT_INFO", 1), w.record(server, 0, 0, "PING", schema.Values{"timestamp": 6251830}))
	r.after(120 * ms)
	r.udp(client, w.record(client, 3, 1, "COMM_MESSAGE_REQUEST", schema.Values{"scope": "all", "u16_2": 0, "text": "hello there"}))
	r.after(410 * us)
	r.udp(server,
		w.ack(server, "COMM_MESSAGE_REQUEST", 1),
		w.record(server, 3, 1, "COMM_MESSAGE", schema.Values{"type": "chat", "source_id": 7, "scope": "all", "recipient": 0, "text": "hello there"}))
	r.after(220 * us)
	r.udp(client, w.ack(client, "COMM_MESSAGE", 1))

	// A team is chosen; the first request goes unanswered and is sent again.
	team := w.record(client, 3, 1, "REINCARNATE", schema.Values{"mode": "team", "team": "red"})
	r.after(210 * ms)
	r.udp(client, team)
	r.after(500 * ms)
	r.udp(client, team)
	r.after(390 * us)
	r.udp(server,
		w.ack(server, "REINCARNATE", 1),
		w.record(server, 3, 1, "UPDATE_STATS", schema.Values{"player_id": 7, "u32_2": 0, "team": "red", "stats": []int{0, 0, 0, 0}, "fixed": []float64{0, 0}, "u32_last": 0}),
		w.record(server, 0, 0, "REINCARNATE", schema.Values{"code": "team_changed", "message": ""}))
	r.after(180 * us)
	r.udp(client, w.ack(client, "UPDATE_STATS", 1))

	// Into the tank.
	r.after(95 * ms)
	r.udp(client, w.record(client, 3, 2, "REINCARNATE", schema.Values{"mode": "spawn", "pad": 1, "unit_type": "tank", "x": 0, "y": 0}))
	r.after(520 * us)
	tank := schema.Values{"weapon": 0, "health": 1.0, "energy": 1.0, "active": 0, "pulse_charge": 0.0}
	r.udp(server,
		w.ack(server, "REINCARNATE", 2),
		w.record(server, 3, 2, "TANK", schema.Values{
			"sequence": 110900, "local_state": tank, "unit_type": "tank", "net_id": 9, "team": "red",
			"position": xyz(500, 400, 27.5), "rotation": xyz(0, 0, 0),
		}),
		w.record(server, 3, 3, "BIRTH_NOTICE", schema.Values{"player_id": 7, "entity_id": 9}),
		w.record(server, 0, 0, "REINCARNATE", schema.Values{"code": "done", "message": ""}))
	r.after(240 * us)
	r.udp(client, w.ack(client, "TANK", 2), w.ack(client, "BIRTH_NOTICE", 3))

	// Driving and firing.
	r.after(30 * ms)
	values := make([]float64, 21)
	values[4] = 0.5 // jet strength; the first is channel 1
	r.udp(client,
		w.record(client, 0, 0, "INPUT_FEEDBACK", schema.Values{"accumulator": 0}),
		w.record(client, 0, 0, "ACTION_DUMP", schema.Values{"timestamp": 6252900, "pending": 0, "values": values}))
	r.after(66 * ms)
	r.udp(client, w.record(client, 0, 0, "ACTION_UPDATE", schema.Values{"timestamp": 6252966, "pending": 0, "changes": []schema.Values{
		{"channel": "forward", "value": 1.0}, {"channel": "primary_fire", "value": 1},
	}}))
	r.after(34 * ms)
	firing := schema.Values{"weapon": 0, "health": 1.0, "energy": 0.94, "active": 1, "pulse_charge": 0.25}
	r.udp(server, w.record(server, 0, 0, "VIEW_UPDATE", schema.Values{
		"timestamp": 111030, "sequence": 111030, "local_state": firing,
		"entities": []schema.Values{entity(9, schema.Values{
			"manned": 1, "position": xyz(501.25, 400, 27.5), "velocity": xyz(24, 0.5, 0), "rotation": xyz(0, 0, 0.02),
		})},
	}))
	r.after(100 * us)
	r.udp(server, w.record(server, 0, 0, "UPDATE_ARRAY", schema.Values{"sequence": 111030, "entities": []schema.Values{
		entity(12, schema.Values{"manned": 1, "type": "scout", "team_a": 2, "team_b": "blue", "position": xyz(-300, 250, 40), "velocity": xyz(31.5, -4, 1), "rotation": xyz(0.01, 0, 3.1)}),
		entity(31, schema.Values{"type": "pulse_shell", "team_a": 1, "team_b": "red", "position": xyz(503, 400, 28), "velocity": xyz(180, 0, 0), "rotation": xyz(0, 0, 0.02)}),
	}}))

	// Two viewpoints change places on their way; the older one is stale.
	r.after(20 * ms)
	r.udp(client, w.record(client, 1, 3, "VIEWPOINT_INFO", schema.Values{"entity_id": 12}))
	r.after(130 * us)
	r.udp(client, w.record(client, 1, 2, "VIEWPOINT_INFO", schema.Values{"entity_id": 9}))
	r.after(270 * us)
	r.udp(server, w.ack(server, "VIEWPOINT_INFO", 3))
	r.after(79 * ms)
	r.udp(server, w.record(server, 0, 0, "UPDATE_ARRAY", schema.Values{"sequence": 111130, "local_state": firing, "entities": []schema.Values{
		entity(12, schema.Values{"manned": 1, "position": xyz(-296.75, 249.5, 40), "velocity": xyz(31, -5, 1), "rotation": xyz(0.01, 0, 3.05), "health": 0.8}),
		entity(31, schema.Values{"position": xyz(521, 400, 28), "velocity": xyz(180, 0, 0)}),
	}}))

	// A target, in a body that nobody knows, and a drop that nobody acknowledges.
	r.after(15 * ms)
	r.udp(client, w.sealed(1, 1, w.schema.PacketNamed("RETARGET").Opcode, []byte{0, 0, 0, 12}))
	r.after(360 * us)
	r.udp(server, w.ack(server, "RETARGET", 1))
	r.after(45 * ms)
	r.udp(client, w.record(client, 1, 1, "DROP_REQUEST", schema.Values{"value": "drop"}))
	r.after(30 * ms)
	r.udp(client, w.record(client, 0, 0, "ACTION_UPDATE", schema.Values{"timestamp": 6253200, "pending": 0, "changes": []schema.Values{
		{"channel": "forward", "value": 0.0}, {"channel": "primary_fire", "value": 0},
	}}))

	// The end.
	r.after(800 * ms)
	r.udp(server,
		w.record(server, 3, 4, "DEATH_NOTICE", schema.Values{"id": 7}),
		w.record(server, 3, 5, "DELETE_OBJECT", schema.Values{"time": 112000, "objects": []schema.Values{{"id": 9, "effect": 1}}}))
	r.after(210 * us)
	r.udp(client, w.ack(client, "DEATH_NOTICE", 4), w.ack(client, "DELETE_OBJECT", 5))
	r.after(60 * ms)
	r.udp(server, w.record(server, 3, 2, "COMM_MESSAGE", schema.Values{"type": "system", "source_id": 0, "scope": "all", "recipient": 0, "text": "Good bye, Alpha."}))
	r.after(230 * us)
	r.udp(client, w.ack(client, "COMM_MESSAGE", 2))
	r.after(50 * ms)
	r.closeFrom(client)
	return r.file
}

// translation makes the values of TRANSLATION from the table in the state.
func (w *wulfram) translation() schema.Values {
	table := w.state.Table("translation")
	var entries []schema.Values
	for _, k := range table.Keys() {
		v := table.Get(k).Values
		entries = append(entries, schema.Values{"a": int(v[0]), "unused": 0, "b": int(v[1]), "max": decimal(v[2]), "range": decimal(v[3])})
	}
	return schema.Values{"entries": entries}
}

// behavior makes the values of a BEHAVIOR whose numbers mean little, but for the
// two weapon slots of the tank that have their gate and active flags set.
func behavior() schema.Values {
	fx := func(n int) []float64 {
		list := make([]float64, n)
		for i := range list {
			list[i] = float64(i + 1)
		}
		return list
	}
	tables := make([]any, 4)
	for table := range tables {
		slots := make([]schema.Values, 13)
		for i := range slots {
			on := 0
			if table == 0 && (i == 0 || i == 4) {
				on = 1
			}
			slots[i] = schema.Values{
				"gate": on, "ammo": 0, "reload": 0, "active": on, "cooldown": 0,
				"fixed_5": 0.0, "refire_ms": 250, "u32_13": []int{0, 0, 0, 0}, "fixed_29": fx(4),
			}
		}
		tables[table] = slots
	}
	types := make([]schema.Values, 39)
	for i := range types {
		types[i] = schema.Values{"fixed_0": 1.0, "fixed_4": 1.0, "u32_8": 0}
	}
	vehicle := schema.Values{"fixed_0": fx(2), "u32_8": []int{0, 0}, "fixed_16": fx(3), "u32_28": []int{0, 0}}
	point := schema.Values{"fixed_0": fx(6), "u32_24": 0}
	shape := schema.Values{"points": []schema.Values{point, point}, "fixed": 1.0}
	return schema.Values{
		"u8_0": 0, "construction_timeout": 5.0, "fixed_5": fx(4), "team_size": 20, "glimpse_ms": 25000, "push_ms": 35000,
		"gravity": 100.0, "u32_37": []int{0, 0}, "minimum_pulse_strength": 0.25, "fixed_49": fx(11), "u8_93": []int{0, 0},
		"weapon_tables": tables, "entity_types": types, "vehicles": []schema.Values{vehicle, vehicle},
		"jet_shapes": []schema.Values{shape, shape, shape, shape}, "tank": fx(7), "scout": fx(9), "bomber": fx(11),
	}
}

// decimal writes a number as TRANSLATION has it: "8192.0".
func decimal(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
