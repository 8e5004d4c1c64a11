package wulfram

import (
	"strconv"
	"strings"
	"time"
)

// wordy are the verbs that send a sequenced record, by its opcode: they wait until
// there is room in flight for it.
var wordy = map[string]uint8{
	"say": 0x20, "team-say": 0x20, "long": 0x20, "team": 0x25, "spawn": 0x25, "look": 0x35, "drop": 0x2B, "deploy": 0x2B,
	"resend": 0x19, "squad": 0x42, "beacon": 0x3A, "retarget": 0x26, "demand": 0x2E, "kudos": 0x4F, "skip": 0x20,
}

// follow does the commands of the script until it has to wait.
func (b *bot) follow(now time.Time) {
	for b.Leaving.IsZero() && b.udp.failed == nil && !b.Waits(now) {
		c, more := b.Script.Next()
		if !more {
			b.Leaving = now
			return
		}
		if opcode, ok := wordy[c.Verb]; ok && !b.udp.sender.Room(opcode) {
			return
		}
		b.do(now, c)
		b.Script.Done()
	}
}

// do does one command, which was checked when it was read.
func (b *bot) do(now time.Time, c Command) {
	switch text := strings.Join(c.Words, " "); c.Verb {
	case "wait":
		d, _ := time.ParseDuration(c.Words[0])
		b.Script.Sleep(now.Add(d))
	case "say":
		b.say(now, scopeAll, text)
	case "team-say":
		b.say(now, scopeTeam, text)
	case "long":
		n, _ := strconv.Atoi(text)
		b.say(now, scopeAll, strings.Repeat("All work and no play. ", n/22+1)[:n])
	case "leave":
		b.Leaving = now
	case "oversize":
		b.oversize(now)
	case "move":
		b.move(now, c)
	case "ping":
		b.udp.send(now, "PING_REQUEST", fields{{"timestamp", b.udp.clock(now)}, {"accumulator", b.feedback}})
	case "skip":
		b.udp.sender.Skip(wordy[c.Verb])
		b.udp.pump(now)
	default:
		b.request(now, c)
	}
}

// request does the commands that are one sequenced record.
func (b *bot) request(now time.Time, c Command) {
	switch c.Verb {
	case "team":
		team, _ := numberOf(c.Words[0], teamNames)
		b.udp.send(now, "REINCARNATE", fields{{"mode", 1}, {"team", team}})
	case "spawn":
		b.spawn(now, c)
	case "look":
		id, _ := numberOf(c.Words[0], viewNames)
		b.udp.send(now, "VIEWPOINT_INFO", fields{{"entity_id", id}})
	case "drop":
		b.udp.send(now, "DROP_REQUEST", fields{{"value", 0}})
	case "deploy":
		b.udp.send(now, "DROP_REQUEST", fields{{"value", dropDeploy}})
	case "resend":
		b.udp.send(now, "TANK_RESEND_REQUEST", nil)
	default:
		b.opaque(now, c.Verb)
	}
}

// opaque sends a request whose body nobody knows. What stands in it is made up.
func (b *bot) opaque(now time.Time, verb string) {
	messages := map[string][]string{
		"squad":  {"SQUAD_CREATE", "SQUAD_INVITE", "SQUAD_OUST", "SQUAD_COMMAND"},
		"beacon": {"BEACON_REQUEST", "BEACON_MODIFY"}, "retarget": {"RETARGET"}, "demand": {"WEAPON_DEMAND"}, "kudos": {"KUDOS"},
	}
	for _, m := range messages[verb] {
		b.udp.sendOpaque(now, m, []byte{0, 0, 0, byte(1 + b.random.UintN(200))})
	}
}

// say chats, in as many messages as the text takes.
func (b *bot) say(now time.Time, scope int, text string) {
	for _, part := range pieces(text) {
		b.udp.send(now, "COMM_MESSAGE_REQUEST", fields{{"scope", scope}, {"u16_2", 0}, {"text", part}})
	}
}

// oversize tries to send what no datagram may hold, raw and in an envelope.
func (b *bot) oversize(now time.Time) {
	text := strings.Repeat("x", maxDatagram)
	b.udp.send(now, "ROOT", fields{{"text", text}})
	b.udp.send(now, "COMM_MESSAGE_REQUEST", fields{{"scope", scopeAll}, {"u16_2", 0}, {"text", text}})
}

func (b *bot) move(now time.Time, c Command) {
	channel, _ := numberOf(c.Words[0], channelNames)
	value, _ := strconv.ParseFloat(c.Words[1], 64)
	channel = min(max(channel, 0), channels-1)
	b.inputs[channel] = value
	change := fields{{"channel", channel}, {"value", table.input(channel, value)}}
	b.udp.send(now, "ACTION_UPDATE", fields{{"count", 1}, {"timestamp", b.udp.clock(now)}, {"pending", 0}, {"changes", list{change}}})
}

// spawn asks for a vehicle and lets the script wait for it. Pads are a hundred
// units apart.
func (b *bot) spawn(now time.Time, c Command) {
	pad, _ := strconv.Atoi(c.Words[0])
	kind, _ := numberOf(c.Words[1], vehicleNames)
	b.udp.send(now, "REINCARNATE", fields{{"mode", 0}, {"pad", pad}, {"unit_type", kind}, {"x", 100 * pad}, {"y", 50}})
	b.Until = now.Add(spawnWithin)
}
