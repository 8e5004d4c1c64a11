package misbehave

import (
	"bytes"
	"slices"
	"time"

	"opscope/cmd/refserver/internal/machine"
)

// The packets of Netrek, by hand. Sections are those of protocols/netrek.md.

// netrekPacket is a packet: its type, and what follows. Section 1.
func netrekPacket(message string, data string) frame {
	b := octets(data)
	return frame{message, int(b[0]), b, -1, -1}
}

// text is that many letters, as a field of text without a NUL has them.
func text(n int) []byte { return bytes.Repeat([]byte{'x'}, n) }

// flying is when a player is in the game by UDP: a datagram with its count.
var flying = datagram("SP_SEQUENCE").the(5)

// netrek are the ways to break the rules of Netrek.
var netrek = []Misbehaviour{
	{Rule: "complete", Doc: "the capture misses a packet", Scenario: "netrek-tcp", Lost: 60},
	{Rule: "from_start", Doc: "the capture begins when the players are in the game", Scenario: "netrek-mid-session", Late: 2 * time.Second},
	{
		Rule: "decodes", Doc: "the server cuts the last packet of a datagram", Scenario: "netrek-udp",
		server: once(flying, func(c *culprit, out machine.Output) []machine.Output {
			last := out.Records[len(out.Records)-1].ID
			return []machine.Output{c.edit(out, func(r *machine.Record, data []byte) []byte {
				if r.ID == last {
					return data[:len(data)-2]
				}
				return data
			})}
		}),
	},
	{
		Rule: "known_opcode", Doc: "the server puts a packet of type 200 into a datagram", Scenario: "netrek-udp",
		server: appended(netrekPacket("unknown(0xC8)", "c8 00 00 00")),
	},
	{
		Rule: "direction", Doc: "the server sends a CP_UDP_REQ", Scenario: "netrek-udp",
		server: appended(netrekPacket("CP_UDP_REQ", "23 01 00 00 00001234")),
	},
	{
		Rule: "transport", Doc: "the server sends SP_SEQUENCE by TCP", Scenario: "netrek-tcp",
		server: behind(stream("SP_PICKOK"), netrekPacket("SP_SEQUENCE", "1d 00 0001")),
	},
	{
		Rule: "datagram_size", Doc: "the server sends a datagram of more than 1124 bytes", Scenario: "netrek-udp",
		server: once(flying, func(c *culprit, out machine.Output) []machine.Output {
			return []machine.Output{c.join(out, slices.Repeat([]frame{netrekPacket("SP_HOSTILE", "16 00 00 00")}, 285)...)}
		}),
	},
	{
		Rule: "values", Doc: "the server speaks of slot 40", Scenario: "netrek-tcp",
		server: behind(stream("SP_PICKOK"), netrekPacket("SP_HOSTILE", "16 28 00 00")),
	},
	{
		Rule: "short_text", Doc: "the server's SP_S_MESSAGE has no NUL", Scenario: "netrek-short",
		server: behind(stream("SP_S_REPLY"), netrekPacket("SP_S_MESSAGE", "29 09 00 ff 0d 78787878787878 78 000000")),
	},
	{
		Rule: "fixed_text", Doc: "the server fills an SP_WARNING with letters", Scenario: "netrek-tcp",
		server: behind(stream("SP_PICKOK"), frame{"SP_WARNING", 10, append(octets("0a 000000"), text(80)...), -1, -1}),
	},
	{
		Rule: "sequence_leads", Doc: "the server sends a datagram without SP_SEQUENCE", Scenario: "netrek-udp",
		server: behind(flying, netrekPacket("SP_HOSTILE", "16 00 00 00")),
	},
	{
		Rule: "one_packet", Doc: "the client puts two packets into a datagram", Scenario: "netrek-udp",
		client: once(datagram("CP_DIRECTION"), func(c *culprit, out machine.Output) []machine.Output {
			return []machine.Output{c.join(out, netrekPacket("CP_SPEED", "02 05 00 00"))}
		}),
	},
	{
		Rule: "in_order", Doc: "the server counts a datagram that it does not send", Scenario: "netrek-udp",
		server: once(flying, instead),
	},
	{
		Rule: "same_bytes", Doc: "the server sends a sequence twice, the second time alone", Scenario: "netrek-udp",
		server: once(flying, func(c *culprit, out machine.Output) []machine.Output {
			r := out.Records[0]
			again := frame{r.Message, r.Opcode, bytes.Clone(out.Data[r.Offset : r.Offset+r.Size]), -1, -1}
			return []machine.Output{out, c.byHand(out, again)}
		}),
	},
	{
		Rule: "socket_first", Doc: "the client names a feature in front of CP_SOCKET", Scenario: "netrek-tcp",
		client: once(stream("CP_SOCKET"), func(c *culprit, out machine.Output) []machine.Output {
			var socket []byte
			rest := c.edit(out, func(r *machine.Record, data []byte) []byte {
				if r.Message != "CP_SOCKET" {
					return data
				}
				socket = data
				return nil
			})
			return []machine.Output{rest, c.byHand(out, frame{"CP_SOCKET", 27, socket, -1, -1})}
		}),
	},
	{
		Rule: "login_first", Doc: "the client chooses a ship before its login, and the server refuses it", Scenario: "netrek-tcp",
		client: before(stream("CP_LOGIN"), netrekPacket("CP_OUTFIT", "09 00 02 00")),
		server: behind(stream("SP_LOGIN"), netrekPacket("SP_PICKOK", "10 00 00 00")),
	},
	{
		Rule: "outfit_first", Doc: "the server refuses a ship that nobody has chosen", Scenario: "netrek-tcp",
		server: behind(stream("SP_LOGIN"), netrekPacket("SP_PICKOK", "10 00 00 00")),
	},
	{
		Rule: "udp_asked", Doc: "the server answers a request for UDP that nobody has sent", Scenario: "netrek-tcp",
		server: behind(stream("SP_PICKOK"), netrekPacket("SP_UDP_REPLY", "1c 00 0000 00000000")),
	},
	{
		Rule: "short_asked", Doc: "the server sends a short packet to a client that has not asked for them", Scenario: "netrek-tcp",
		server: behind(stream("SP_PICKOK"), netrekPacket("SP_S_WARNING", "2a 03 05 02")),
	},
	{
		Rule: "negotiated", Doc: "the client knows SP_GENERIC_32 a, and the server sends b", Scenario: "netrek-tcp",
		client: always("CP_FEATURE", patched("CP_FEATURE", func(data []byte) {
			if bytes.Contains(data, []byte("SP_GENERIC_32")) {
				data[2] = 1
			}
		})),
		server: always("SP_GENERIC_32", rewrite("SP_GENERIC_32", func(*machine.Record, []byte) []byte {
			return append(octets("20 62 0000 ff 0000 00 00 73 00 73 00 00"), make([]byte, 18)...)
		})),
	},
	{
		Rule: "login_answered", Doc: "the server does not answer the second CP_LOGIN", Scenario: "netrek-tcp",
		server: once(stream("SP_LOGIN").the(2), without("SP_LOGIN", nil)),
	},
	{
		Rule: "outfit_answered", Doc: "the server does not answer CP_OUTFIT", Scenario: "netrek-tcp",
		server: once(stream("SP_PICKOK"), without("SP_PICKOK", nil)),
	},
	{
		Rule: "feature_answered", Doc: "the server does not answer a CP_FEATURE", Scenario: "netrek-tcp",
		server: once(stream("SP_FEATURE").the(2), func(c *culprit, out machine.Output) []machine.Output {
			dropped := false
			return nonEmpty(c.edit(out, func(r *machine.Record, data []byte) []byte {
				if r.Message == "SP_FEATURE" && !dropped {
					dropped = true
					return nil
				}
				return data
			}))
		}),
	},
}

// appended puts a packet at the end of a datagram.
func appended(f frame) func() act {
	return once(flying, func(c *culprit, out machine.Output) []machine.Output { return []machine.Output{c.join(out, f)} })
}

// join returns an output with frames at its end.
func (c *culprit) join(out machine.Output, frames ...frame) machine.Output {
	more := c.byHand(out, frames...)
	for _, r := range more.Records {
		r.Offset += len(out.Data)
		out.Records = append(slices.Clip(out.Records), r)
	}
	out.Data = append(bytes.Clone(out.Data), more.Data...)
	return out
}
