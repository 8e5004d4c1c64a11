package misbehave

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
)

// The frames of DirectPlay and of Lords of the Realm II, by hand. Sections are those of
// protocols/lotr2.md.

// The places in a frame of the game. Sections 2 and 6.
const (
	dplayHead  = 20 // size, token and sockaddr
	gameOpcode = 28
	gameLength = 29
	gameSum    = 30
	gameSlot   = 31 // with the copy in its two upper bits
	gameBody   = 32

	lastSlot  = 39
	slotMask  = 0x3f
	copyUnit  = 0x40
	datagrams = 2350
)

// dplayFrame puts the size, the token and the sockaddr in front of what follows. Section 2.
func dplayFrame(rest []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0xfab<<20|uint32(dplayHead+len(rest)))
	b = append(b, octets("0200 08fc 00000000 0000000000000000")...)
	return append(b, rest...)
}

// command is a message of DirectPlay's own. Section 2.1.
func command(message string, number uint16, body string) frame {
	b := binary.LittleEndian.AppendUint16([]byte("play"), number)
	b = binary.LittleEndian.AppendUint16(b, 14)
	return frame{message, int(number), dplayFrame(append(b, octets(body)...)), -1, -1}
}

// nobodysID is the player id of who sends what is made by hand: with slots of its own.
const nobodysID = 0x1234

// gameFrame is one send of a message to all. Section 6.
func gameFrame(message string, opcode byte, slot, copy int, payload []byte) frame {
	b := binary.LittleEndian.AppendUint32(nil, nobodysID)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = append(b, opcode, byte(len(payload)), schema.Sum8(payload), byte(slot|copy*copyUnit))
	return frame{message, int(opcode), dplayFrame(append(b, payload...)), -1, slot}
}

// thrice is all sends of a message.
func thrice(message string, opcode byte, slot int, payload []byte) (all []frame) {
	for copy := range 3 {
		all = append(all, gameFrame(message, opcode, slot, copy, payload))
	}
	return all
}

// createPlayer is that of chat.pcapng but for the ids, which are nobody's. Section 5.
const createPlayer = "00000000 34120000 00000000 1c000000 00000000" +
	"5a000000 08000000 34120000 0a000000 00000000 20000000 00000000 00000000 35120000 30000000 0e000000 00000000" +
	"4e6f626c656d616e 0000 0200 08fc 00000000 0000000000000000 0200 092e 00000000 0000000000000000 000000000000"

// welcome is the payload of a join_welcome. Section 7.1.
const welcome = "34120000 4e6f626f64790000000000000000000000000000 00000000 636173746c657300 01000000 02000000 00000000 0a000000 14000000 01"

const (
	heartbeat = "set_up_screen_heartbeat"
	saying    = "chat"
)

// lotr2 are the ways to break the rules of Lords of the Realm II. The host is the server.
var lotr2 = []Misbehaviour{
	{Rule: "complete", Doc: "the capture misses a packet", Scenario: "lotr2-lobby", Lost: 20},
	{Rule: "from_start", Doc: "the capture begins when the game runs", Scenario: "lotr2-mid-session", Late: 2 * time.Second},
	{
		Rule: "decodes", Doc: "a Ping has four bytes too many", Scenario: "lotr2-lobby",
		client: always("Ping", rewrite("Ping", func(_ *machine.Record, data []byte) []byte {
			data[0] += 4
			return append(data, 1, 2, 3, 4)
		})),
	},
	{
		Rule: "known_opcode", Doc: "the host sends opcode 0x4f in the place of 0x4c", Scenario: "lotr2-lobby",
		server: altered("unknown(0x4C)", func(data []byte) { data[gameOpcode] = 0x4f }),
	},
	{
		Rule: "direction", Doc: "the joiner sends a heartbeat of the set-up screen, which the host does, in the place of a tick", Scenario: "lotr2-campaign",
		client: once(stream("tick_reached").the(3), patched("tick_reached", func(data []byte) {
			data[gameOpcode] = 0x54
		})),
	},
	{
		Rule: "values", Doc: "the host sends a message in slot 45", Scenario: "lotr2-lobby",
		server: once(stream(heartbeat), patched(heartbeat, func(data []byte) {
			data[gameSlot] = 45
		})),
	},
	{
		Rule: "sockaddr", Doc: "the end of a Ping's sockaddr is not zero", Scenario: "lotr2-lobby",
		client: always("Ping", patched("Ping", func(data []byte) {
			data[dplayHead-1] = 1
		})),
	},
	{
		Rule: "one_way", Doc: "the host writes to the connection that the joiner has dialled", Scenario: "lotr2-lobby",
		server: once(stream(heartbeat), func(c *culprit, out machine.Output) []machine.Output {
			back := c.byHand(out, command("Pong", 0x17, "34120000 01000000"))
			back.Conn = c.peer.Conn // the last that was opened, which the joiner has dialled
			return []machine.Output{out, back}
		}),
	},
	{
		Rule: "game_on_tcp", Doc: "the host sends a heartbeat as a datagram", Scenario: "lotr2-lobby",
		server: once(stream(heartbeat), func(c *culprit, out machine.Output) []machine.Output {
			out.Kind, out.Conn = machine.SendDatagram, 0
			out.Peer = netip.AddrPortFrom(c.peer.Peer.Addr(), datagrams)
			return []machine.Output{out}
		}),
	},
	{
		Rule: "length", Doc: "the host says a length that is not that of the payload", Scenario: "lotr2-lobby",
		server: once(stream(heartbeat), patched(heartbeat, func(data []byte) {
			data[gameLength]++
		})),
	},
	{
		Rule: "fixed_length", Doc: "a heartbeat of the host has a byte more than it always has", Scenario: "lotr2-lobby",
		server: once(stream(heartbeat), rewrite(heartbeat, func(_ *machine.Record, data []byte) []byte {
			data[0]++
			data[gameLength]++
			return append(data, 0)
		})),
	},
	{
		Rule: "checksum", Doc: "the checksum of a heartbeat of the host is wrong", Scenario: "lotr2-lobby",
		server: once(stream(heartbeat), patched(heartbeat, func(data []byte) {
			data[gameSum]++
		})),
	},
	{
		Rule: "slots", Doc: "the host leaves a slot out", Scenario: "lotr2-lobby",
		server: renumbered(func(slot int) int { return slot%lastSlot + 1 }),
	},
	{
		Rule: "slot_zero", Doc: "the host begins anew at slot 0", Scenario: "lotr2-lobby",
		server: restarted,
	},
	{
		Rule: "three_sends", Doc: "the host leaves the third send of a chat out", Scenario: "lotr2-lobby",
		server: always(saying, without(saying, func(data []byte) bool { return data[gameSlot]/copyUnit == 2 })),
	},
	{
		Rule: "same_bytes", Doc: "the second send of the host's chat has other bytes", Scenario: "lotr2-lobby",
		server: altered(saying, func(data []byte) {
			if data[gameSlot]/copyUnit == 1 {
				data[gameBody+4] ^= 0x20
			}
		}),
	},
	{
		Rule: "sent_once", Doc: "the host sends a heartbeat twice", Scenario: "lotr2-lobby",
		server: once(stream(heartbeat), func(c *culprit, out machine.Output) []machine.Output {
			again := bytes.Clone(out.Data)
			again[gameSlot] |= copyUnit
			return []machine.Output{out, c.byHand(out, frame{heartbeat, 0x54, again, -1, int(again[gameSlot] & slotMask)})}
		}),
	},
	{
		Rule: "in_step", Doc: "the joiner reports another state", Scenario: "lotr2-campaign",
		client: altered("turn_end_state_report", func(data []byte) { data[len(data)-1] ^= 0xff }),
	},
	{
		Rule: "pieces", Doc: "the host sends the sixth piece of a message in two", Scenario: "lotr2-lobby",
		server: behind(stream(heartbeat), command("Packet", 0x15,
			"00112233445566778899aabbccddeeff 05000000 04000000 00000000 02000000 64000000 00000000 01020304")),
	},
	{
		Rule: "answered", Doc: "the host does not answer a Ping", Scenario: "lotr2-lobby",
		server: always("Pong", instead),
	},
	{
		Rule: "id_first", Doc: "the joiner creates a player before it has an id", Scenario: "lotr2-lobby",
		client: before(stream("RequestPlayerId"), command("CreatePlayer", 0x08, createPlayer)),
	},
	{
		Rule: "hello_first", Doc: "the host welcomes a player who has said nothing", Scenario: "lotr2-lobby",
		server: behind(stream("SuperEnumPlayersReply"), thrice("join_welcome", 0x02, 1, octets(welcome))...),
	},
	{
		Rule: "start_first", Doc: "the host counts ticks in the lobby", Scenario: "lotr2-lobby",
		server: behind(stream(heartbeat), gameFrame("tick_reached", 0x0a, 1, 0, octets("0a000001"))),
	},
	{
		Rule: "known_bodies", Doc: "the host sends a GroupDataChanged, whose body nobody knows", Scenario: "lotr2-lobby",
		server: behind(stream(heartbeat), command("GroupDataChanged", 0x11, "01020304")),
	},
}

// altered changes all sends of a message, and has the checksum follow.
func altered(message string, change func(data []byte)) func() act {
	return always(message, patched(message, func(data []byte) {
		change(data)
		data[gameSum] = schema.Sum8(data[gameBody:])
	}))
}

// isGame reports whether a record is a frame of the game.
func isGame(r *machine.Record) bool { return r.Protocol == "" }

// renumbered gives each message from the first heartbeat on another slot.
func renumbered(slot func(int) int) func() act {
	return func() act {
		begun := false
		return func(c *culprit, out machine.Output) []machine.Output {
			begun = begun || says(out, heartbeat)
			return []machine.Output{c.edit(out, func(r *machine.Record, data []byte) []byte {
				if begun && isGame(r) {
					r.Seq = slot(int(data[gameSlot] & slotMask))
					data[gameSlot] = data[gameSlot]&^slotMask | byte(r.Seq)
				}
				return data
			})}
		}
	}
}

// restarted has the slots begin at 0 with the first heartbeat.
func restarted() act {
	from := -1
	return func(c *culprit, out machine.Output) []machine.Output {
		return []machine.Output{c.edit(out, func(r *machine.Record, data []byte) []byte {
			if !isGame(r) || from < 0 && r.Message != heartbeat {
				return data
			}
			if from < 0 {
				from = r.Seq
			}
			if r.Seq -= from; r.Seq < 0 {
				r.Seq += lastSlot
			}
			data[gameSlot] = data[gameSlot]&^slotMask | byte(r.Seq)
			return data
		})}
	}
}
