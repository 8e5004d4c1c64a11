package misbehave

import (
	"bytes"
	"encoding/binary"
	"time"

	"opscope/cmd/refserver/internal/machine"
)

// The frames of the MMO, by hand. Sections are those of protocols/mmo.md.

// mmoFrame is a header, the size of all and an id, with a body. Section 1.
func mmoFrame(message string, id uint16, body string) frame {
	b := octets(body)
	data := binary.LittleEndian.AppendUint16(nil, uint16(4+len(b)))
	data = binary.LittleEndian.AppendUint16(data, id)
	return frame{message, int(id), append(data, b...), -1, -1}
}

// batch is a MoveBatchNotify with a count, the reserved number and entries of nobody.
// Section 5.
func batch(count, reserved uint16, entries int) frame {
	b := binary.LittleEndian.AppendUint16(nil, uint16(16+40*entries))
	b = binary.LittleEndian.AppendUint16(b, 0x0213)
	b = binary.LittleEndian.AppendUint16(b, count)
	b = binary.LittleEndian.AppendUint16(b, reserved)
	b = binary.LittleEndian.AppendUint64(b, 1)
	for i := range entries {
		b = binary.LittleEndian.AppendUint64(b, uint64(1000+i))
		b = append(b, make([]byte, 32)...)
	}
	return frame{"MoveBatchNotify", 0x0213, b, -1, -1}
}

// The moments when a client is in the game: by TCP, and by UDP.
var (
	inGame = stream("SpawnMyCharacter")
	moving = datagram("MoveBatchNotify")
)

// mmo are the ways to break the rules of the MMO.
var mmo = []Misbehaviour{
	{Rule: "complete", Doc: "the capture misses a packet", Scenario: "mmo-enter", Lost: 8},
	{Rule: "from_start", Doc: "the capture begins when the players are in the game", Scenario: "mmo-mid-session", Late: 900 * time.Millisecond},
	{
		Rule: "decodes", Doc: "the message of an ErrorRes is longer than its body", Scenario: "mmo-enter",
		server: behind(inGame, mmoFrame("ErrorRes", 0x0003, "1a 05 61")),
	},
	{
		Rule: "frame_size", Doc: "a datagram of the server has less bytes than its size says", Scenario: "mmo-enter",
		server: behind(moving, frame{"MoveNotify", 0x0212, octets("3200 1202 0801 1001"), -1, -1}),
	},
	{
		Rule: "datagram_size", Doc: "the server sends a batch of 30 entries, 1216 bytes", Scenario: "mmo-enter",
		server: behind(moving, batch(30, 0, 30)),
	},
	{
		Rule: "one_frame", Doc: "the server puts two frames into a datagram", Scenario: "mmo-enter",
		server: behind(moving, mmoFrame("MoveNotify", 0x0212, "08e807"), mmoFrame("MoveNotify", 0x0212, "08e907")),
	},
	{
		Rule: "known_opcode", Doc: "the server sends id 0x0299", Scenario: "mmo-enter",
		server: behind(inGame, mmoFrame("unknown(0x299)", 0x0299, "0801")),
	},
	{
		Rule: "direction", Doc: "the server sends an AttackReq", Scenario: "mmo-enter",
		server: behind(inGame, mmoFrame("AttackReq", 0x0231, "0801 1001")),
	},
	{
		Rule: "transport", Doc: "the server sends an ErrorRes by UDP", Scenario: "mmo-enter",
		server: behind(moving, mmoFrame("ErrorRes", 0x0003, "1001")),
	},
	{
		Rule: "values", Doc: "the server tells a udp_port above 65535", Scenario: "mmo-enter",
		server: always("EnterGameRes", rewrite("EnterGameRes", func(_ *machine.Record, data []byte) []byte {
			i := bytes.LastIndexByte(data[:len(data)-1], 0x30) // field 6, a varint
			data = append(data[:i], octets("30 f0a204")...)
			data[0] = byte(len(data))
			return data
		})),
	},
	{
		Rule: "protobuf", Doc: "the request_packet_id of an ErrorRes is a text", Scenario: "mmo-enter",
		server: behind(inGame, mmoFrame("ErrorRes", 0x0003, "0a 01 41")),
	},
	{
		Rule: "batch_size", Doc: "the count of a batch is not that of its entries", Scenario: "mmo-enter",
		server: behind(moving, batch(2, 0, 1)),
	},
	{
		Rule: "reserved", Doc: "the reserved number of a batch is 1", Scenario: "mmo-enter",
		server: behind(moving, batch(0, 1, 0)),
	},
	{
		Rule: "no_deprecated", Doc: "the server sends a LoginRes", Scenario: "mmo-enter",
		server: behind(inGame, mmoFrame("LoginRes", 0x0102, "")),
	},
	{
		Rule: "no_development", Doc: "the server sends a CombatDebugNotify", Scenario: "mmo-enter",
		server: behind(inGame, mmoFrame("CombatDebugNotify", 0x0245, "")),
	},
	{
		Rule: "in_order", Doc: "the client counts an input that it does not send", Scenario: "mmo-enter",
		client: once(datagram("MoveReq").the(3), instead),
	},
	{
		Rule: "answered", Doc: "the server does not answer an attack", Scenario: "mmo-chat-attack",
		server: once(stream("AttackAck"), without("AttackAck", nil)),
	},
	{
		Rule: "asked", Doc: "the server answers an attack that nobody has made", Scenario: "mmo-enter",
		server: behind(inGame, mmoFrame("AttackAck", 0x0232, "1809")),
	},
	{
		Rule: "enter_first", Doc: "the client chats before it knows that it is in the game", Scenario: "mmo-enter",
		client: behind(stream("EnterGameReq"), mmoFrame("ChatReq", 0x0221, "0a026869")),
	},
	{
		Rule: "entered_first", Doc: "the server tells of the world before it lets the client in", Scenario: "mmo-enter",
		server: before(stream("EnterGameRes"), mmoFrame("SpawnMonster", 0x0241, "")),
	},
	{
		Rule: "hello_first", Doc: "the client moves before its UdpHelloReq", Scenario: "mmo-enter",
		client: before(datagram("UdpHelloReq"), mmoFrame("MoveReq", 0x0211, "")),
	},
	{
		Rule: "no_leak", Doc: "the server repeats the token of the client in an error", Scenario: "mmo-enter",
		server: once(stream("EnterGameRes"), func(c *culprit, out machine.Output) []machine.Output {
			token := tokenIn(out.Data)
			body := append([]byte{0x1a, byte(len(token))}, token...)
			data := binary.LittleEndian.AppendUint16(nil, uint16(4+len(body)))
			data = append(binary.LittleEndian.AppendUint16(data, 0x0003), body...)
			return []machine.Output{out, c.byHand(out, frame{"ErrorRes", 0x0003, data, -1, -1})}
		}),
	},
	{
		Rule: "known_bodies", Doc: "nothing: of most packets nobody knows the body", Scenario: "mmo-enter",
		server: behind(inGame, mmoFrame("ChatNtf", 0x0222, "0801")),
	},
}

// tokenIn returns the udp_token in an EnterGameRes: field 5, behind numbers and a text.
// Section 4.
func tokenIn(data []byte) []byte {
	for at := 4; at < len(data); {
		tag := data[at]
		at++
		if tag&7 != 2 {
			_, n := binary.Uvarint(data[at:])
			at += n
			continue
		}
		size := int(data[at])
		at++
		if tag>>3 == 5 {
			return data[at : at+size]
		}
		at += size
	}
	return nil
}
