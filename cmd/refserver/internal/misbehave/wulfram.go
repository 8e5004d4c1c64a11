package misbehave

import (
	"encoding/binary"
	"time"

	"opscope/cmd/refserver/internal/machine"
)

// The frames and records of Wulfram, by hand. Sections are those of protocols/wulfram.md.

// wulframTCP is a frame: its size, its opcode, a body. Section 3.
func wulframTCP(message string, opcode byte, body string) frame {
	b := octets(body)
	data := binary.BigEndian.AppendUint16(nil, uint16(3+len(b)))
	return frame{message, int(opcode), append(append(data, opcode), b...), -1, -1}
}

// wulframRaw is a record without an envelope. Section 4.1.
func wulframRaw(message string, opcode byte, body string) frame {
	return frame{message, int(opcode), append([]byte{opcode}, octets(body)...), 0, -1}
}

// wulframOrdered is a record in mode 3: opcode, sequence, length, body. Section 4.1.
func wulframOrdered(message string, opcode byte, seq uint16, body []byte) frame {
	data := binary.BigEndian.AppendUint16([]byte{opcode}, seq)
	data = binary.BigEndian.AppendUint16(data, uint16(5+len(body)))
	return frame{message, int(opcode), append(data, body...), 3, int(seq)}
}

// chat is the body of a COMM_MESSAGE: type, source, scope, recipient, text. Section 10.10.
func chat(text string) []byte {
	b := octets("0005 00000001 0000 00000000")
	b = binary.BigEndian.AppendUint16(b, uint16(len(text)+1))
	return append(append(b, text...), 0)
}

const commMessage = 0x1f

// said is a chat of a server, in a stream that the scenario "login" leaves to us.
func said(seq uint16, text string) frame {
	return wulframOrdered("COMM_MESSAGE", commMessage, seq, chat(text))
}

// playing is when a client is in the game: its first entities have come, and the server's
// handshake is in force.
var playing = datagram("BIRTH_NOTICE")

// wulfram are the ways to break the rules of Wulfram.
var wulfram = []Misbehaviour{
	{Rule: "complete", Doc: "the capture misses a packet", Scenario: "login", Lost: 21},
	{Rule: "from_start", Doc: "the capture begins when the player is in the game", Scenario: "mid-session", Late: 600 * time.Millisecond},
	{
		Rule: "decodes", Doc: "the server puts a byte behind a GAME_CLOCK", Scenario: "login",
		server: behind(stream("BPS"), wulframTCP("GAME_CLOCK", 0x2f, "00000001 01 00000001 001b7740 aa")),
	},
	{
		Rule: "frame_size", Doc: "the server sends a frame whose size is 2", Scenario: "login",
		server: behind(stream("BPS"), frame{"HELLO", 0x13, octets("0002"), -1, -1}),
	},
	{
		Rule: "datagram_size", Doc: "the server sends a datagram of 3100 bytes", Scenario: "login",
		server: once(playing, func(c *culprit, out machine.Output) []machine.Output {
			var pings []frame
			for range 620 {
				pings = append(pings, wulframRaw("PING", 0x0c, "00000001"))
			}
			return []machine.Output{out, c.byHand(out, pings...)}
		}),
	},
	{
		Rule: "known_opcode", Doc: "the server sends opcode 0x60", Scenario: "login",
		server: behind(stream("BPS"), wulframTCP("unknown(0x60)", 0x60, "0102")),
	},
	{
		Rule: "direction", Doc: "the server sends a LOGIN", Scenario: "login",
		server: behind(stream("BPS"), wulframTCP("LOGIN", 0x21, "00 0002 6100 0001 00")),
	},
	{
		Rule: "transport", Doc: "the server sends a MOTD by UDP", Scenario: "login",
		server: behind(playing, wulframRaw("MOTD", 0x23, "0003 6869 00")),
	},
	{
		Rule: "no_control_on_tcp", Doc: "the server sends a D_ACK by TCP", Scenario: "login",
		server: behind(stream("BPS"), wulframTCP("D_ACK", 0x02, "00 00000001")),
	},
	{
		Rule: "values", Doc: "a range in the server's TRANSLATION, of a slot that nobody uses, is no number", Scenario: "login",
		server: once(stream("TRANSLATION"), patched("TRANSLATION", spoilSlot)),
	},
	{
		Rule: "strings", Doc: "the server's MOTD lacks the NUL that its length counts", Scenario: "login",
		server: behind(stream("BPS"), wulframTCP("MOTD", 0x23, "0002 6869")),
	},
	{
		Rule: "padding", Doc: "the server pads an UPDATE_ARRAY with ones", Scenario: "login",
		server: behind(playing, wulframRaw("UPDATE_ARRAY", 0x0e, "00000001 007f")),
	},
	{
		Rule: "modes", Doc: "the server sends a chat raw that its handshake says is ordered", Scenario: "login",
		server: behind(playing, frame{"COMM_MESSAGE", commMessage, append([]byte{commMessage}, chat("raw")...), 0, -1}),
	},
	{
		Rule: "handshake_first", Doc: "the server sends an ordered chat in front of its handshake", Scenario: "login",
		server: before(datagram("D_HANDSHAKE"), said(1, "too early")),
	},
	{
		Rule: "sequence_range", Doc: "the server sends sequence 65535", Scenario: "login",
		server: behind(playing, said(65535, "no such sequence")),
	},
	{
		Rule: "in_order", Doc: "the server leaves a sequence out", Scenario: "login",
		server: behind(playing, said(2, "the second")),
	},
	{
		Rule: "window", Doc: "the server sends a record nine positions ahead", Scenario: "login",
		server: behind(playing, said(9, "far ahead")),
	},
	{
		Rule: "in_flight", Doc: "the server sends 17 records at once", Scenario: "login",
		server: once(playing, func(c *culprit, out machine.Output) []machine.Output {
			var all []frame
			for i := range uint16(17) {
				all = append(all, said(i+1, "number "+string(rune('a'+i))))
			}
			return []machine.Output{out, c.byHand(out, all...)}
		}),
	},
	{
		Rule: "same_bytes", Doc: "the server sends a sequence twice, with different bytes", Scenario: "login",
		server: behind(playing, said(1, "one thing"), said(1, "another thing")),
	},
	{
		Rule: "new_sequence", Doc: "the server sends a chat again under the next sequence, before it is acknowledged", Scenario: "login",
		server: behind(playing, said(1, "the same"), said(2, "the same")),
	},
	{
		Rule: "acknowledged", Doc: "the server does not acknowledge ACK2", Scenario: "login",
		server: always("D_ACK", without("D_ACK", acknowledges(0x33))),
	},
	{
		Rule: "retransmitted", Doc: "the server does not repeat a chat whose acknowledgement takes its time", Scenario: "login",
		server: behind(playing, said(1, "only once")),
		client: slowAck(commMessage, 1800*time.Millisecond),
	},
	{
		Rule: "acks", Doc: "the server acknowledges a chat that nobody has sent", Scenario: "login",
		server: behind(playing, wulframRaw("D_ACK", 0x02, "01 20 0007")),
	},
	{
		Rule: "tables", Doc: "the server sends no TRANSLATION", Scenario: "login",
		server: always("TRANSLATION", without("TRANSLATION", nil)),
	},
	{
		Rule: "version_first", Doc: "the client logs in without its version", Scenario: "login",
		client: once(stream("HELLO"), without("HELLO", func(data []byte) bool { return len(data) == 8 })),
	},
	{
		Rule: "login_first", Doc: "the server tells of a birth before the login", Scenario: "login",
		server: behind(stream("HELLO"), wulframTCP("BIRTH_NOTICE", 0x1e, "00000001 000003e8")),
	},
	{
		Rule: "spawn_asked", Doc: "the server answers a REINCARNATE that nobody has sent", Scenario: "login",
		server: behind(stream("BPS"), wulframTCP("REINCARNATE", 0x25, "11 0001 00")),
	},
	{
		Rule: "bare_datagrams", Doc: "the client puts its size in front of a datagram", Scenario: "login",
		client: once(datagram("INPUT_FEEDBACK"), func(_ *culprit, out machine.Output) []machine.Output {
			size := uint16(2 + len(out.Data))
			out.Data = append(binary.BigEndian.AppendUint16(nil, size), out.Data...)
			for i := range out.Records {
				out.Records[i].Offset += 2
			}
			return []machine.Output{out}
		}),
	},
	{
		Rule: "known_bodies", Doc: "the server sends a HUD_MESSAGE, whose body nobody knows", Scenario: "login",
		server: behind(stream("BPS"), wulframTCP("HUD_MESSAGE", 0x11, "0102")),
	},
}

// acknowledges picks the raw D_ACK records for an opcode: subtype 1, then the opcode.
// Section 4.4.
func acknowledges(opcode byte) func(data []byte) bool {
	return func(data []byte) bool { return len(data) == 5 && data[1] == 1 && data[2] == opcode }
}

// slowAck has a client acknowledge an opcode late, and leave later.
func slowAck(opcode byte, after time.Duration) func() act {
	pick := acknowledges(opcode)
	return func() act {
		return func(c *culprit, out machine.Output) []machine.Output {
			if out.Kind == machine.Close || out.Kind == machine.Done {
				c.later(after+after/2, out)
				return nil
			}
			var late []byte
			rest := c.edit(out, func(r *machine.Record, data []byte) []byte {
				if r.Message != "D_ACK" || !pick(data) {
					return data
				}
				late = data
				return nil
			})
			if late == nil {
				return []machine.Output{out}
			}
			c.later(after, c.byHand(out, frame{"D_ACK", 0x02, late, 0, -1}))
			return nonEmpty(rest)
		}
	}
}

// spoilSlot makes the largest number of slot 7 no number. Entries are three u32 and two
// strings. Sections 7.1 and 7.2.
func spoilSlot(data []byte) {
	at := 3
	for slot := 0; ; slot++ {
		at += 12
		if slot == 7 {
			data[at+2] = 'x'
			return
		}
		for range 2 {
			at += 2 + int(binary.BigEndian.Uint16(data[at:]))
		}
	}
}
