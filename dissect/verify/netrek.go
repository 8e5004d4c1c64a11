package verify

import (
	"bytes"
	"strings"
	"time"

	"opscope/dissect"
	"opscope/schema"
)

// What the rules of Netrek speak of.
var (
	netrekShort = func(r *dissect.Record) bool {
		return strings.HasPrefix(r.Message, "SP_S_") && r.Message != "SP_S_REPLY"
	}
	netrekInUDP   = func(r *dissect.Record) bool { return r.Transport == schema.UDP && strings.HasPrefix(r.Message, "SP_") }
	netrekFirst   = func(r *dissect.Record) bool { return r.Transport == schema.TCP }
	netrekLogin   = from(server, with("SP_LOGIN", "accept", 1))
	netrekUnknown = func(r *dissect.Record) bool {
		return strings.HasPrefix(r.Message, "unknown(") && !has(r, "unexpected_direction") && !has(r, "ambiguous_type")
	}
)

// The places of packets in a server's datagrams.
const (
	spUDPReply   = 28
	spSequence   = 29
	spSCSequence = 30
)

// netrekRules are those of Netrek. Sections are those of protocols/netrek.md; what it
// takes from the sources of server and client counts as reported, what its captures show
// as observed.
var netrekRules = []*Rule{
	complete,
	fromStart,
	decodes("netrek 3 to 5, and 11, items 1 to 5", schema.Observed),
	{
		ID:         "known_opcode",
		Sentence:   "Each type is one of those that its sender has.",
		Source:     "netrek 3 and 5, and 11, item 1",
		Confidence: schema.Observed,
		codes:      []string{"unknown_opcode"},
		watch:      faults{at: netrekUnknown}.watch,
	},
	direction("netrek 2, and 11, item 2", schema.Observed),
	transport("netrek 7", schema.Observed, Error),
	{
		ID:         "datagram_size",
		Sentence:   "A server's datagram has at most 1024 bytes, and 100 more of fat data.",
		Source:     "netrek 1",
		Confidence: schema.Reported,
		codes:      []string{"datagram_too_large"},
	},
	values("netrek 3 to 6", schema.Reported),
	{
		ID:         "short_text",
		Sentence:   "The text of a short packet ends in a NUL within its length.",
		Source:     "netrek 4.1, 4.2 and 5",
		Confidence: schema.Observed,
		watch:      plainly{show: unendedShort}.watch,
	},
	{
		ID:         "fixed_text",
		Sentence:   "A text ends in a NUL within its field, as it does where it is shorter.",
		Source:     "netrek, notation, and 11, item 12: a full field may have none",
		Confidence: schema.Observed,
		Severity:   Warning,
		watch:      plainly{show: unendedFixed}.watch,
	},
	{
		ID:         "sequence_leads",
		Sentence:   "A server's datagram begins with SP_SEQUENCE, but for the replies that open UDP.",
		Source:     "netrek 7, step 4, and 11, item 7",
		Confidence: schema.Observed,
		watch: plainly{show: func(r *dissect.Record) string {
			if !netrekInUDP(r) || r.Direction != server || r.Offset > 0 || r.Opcode == spUDPReply || r.Opcode == spSequence || r.Opcode == spSCSequence {
				return ""
			}
			return "the first packet of its datagram"
		}}.watch,
	},
	{
		ID:         "one_packet",
		Sentence:   "A client's datagram holds one packet.",
		Source:     "netrek 2, item 4, and 7",
		Confidence: schema.Observed,
		Severity:   Warning,
		watch: plainly{show: func(r *dissect.Record) string {
			if r.Transport == schema.UDP && r.Direction == client && r.Offset > 0 {
				return "not the first packet of its datagram"
			}
			return ""
		}}.watch,
	},
	{
		ID:         "in_order",
		Sentence:   "The sequences of datagrams rise by one: a client ignores what comes late.",
		Source:     "netrek 7, and 11, item 7; the network may be to blame",
		Confidence: schema.Observed,
		Severity:   Warning,
		codes:      []string{"datagram_ignored", "duplicate", "out_of_order", "sequence_gap", "sequence_restarted", "stale"},
		when:       func(r *dissect.Record) bool { return !has(r, "conflict") },
	},
	{
		ID:         "same_bytes",
		Sentence:   "Two datagrams with one sequence are the same.",
		Source:     "netrek 7",
		Confidence: schema.Inferred,
		codes:      []string{"conflict"},
	},
	{
		ID:         "socket_first",
		Sentence:   "A client begins with CP_SOCKET.",
		Source:     "netrek 2, item 2, and 8, step 1",
		Confidence: schema.Observed,
		watch:      after(messages("CP_SOCKET"), from(client, netrekFirst), "no CP_SOCKET has come"),
	},
	{
		ID:         "login_first",
		Sentence:   "A player chooses team and ship when SP_LOGIN has let it in.",
		Source:     "netrek 8, steps 4 and 5",
		Confidence: schema.Observed,
		watch:      after(netrekLogin, from(client, messages("CP_OUTFIT")), "no SP_LOGIN with accept 1 has come"),
	},
	{
		ID:         "outfit_first",
		Sentence:   "SP_PICKOK answers CP_OUTFIT.",
		Source:     "netrek 8, step 5",
		Confidence: schema.Observed,
		watch:      after(from(client, messages("CP_OUTFIT")), from(server, messages("SP_PICKOK")), "no CP_OUTFIT has come"),
	},
	{
		ID:         "udp_asked",
		Sentence:   "SP_UDP_REPLY answers CP_UDP_REQ.",
		Source:     "netrek 7",
		Confidence: schema.Observed,
		watch:      after(from(client, messages("CP_UDP_REQ")), from(server, messages("SP_UDP_REPLY")), "no CP_UDP_REQ has come"),
	},
	{
		ID:         "short_asked",
		Sentence:   "Short packets are for a client that has asked for them by CP_S_REQ.",
		Source:     "netrek 8, and 10.1",
		Confidence: schema.Observed,
		watch:      after(from(client, with("CP_S_REQ", "req", 1)), from(server, netrekShort), "no CP_S_REQ 1 has come"),
	},
	{
		ID:         "negotiated",
		Sentence:   "SP_GENERIC_32 has no higher version than the client knows.",
		Source:     "netrek 3.1",
		Confidence: schema.Observed,
		codes:      []string{"not_negotiated"},
	},
	{
		ID:         "login_answered",
		Sentence:   "Each CP_LOGIN is answered by SP_LOGIN in time, until one has let the player in.",
		Source:     "netrek 8, step 4; the time is this project's",
		Confidence: schema.Observed,
		Within:     5 * time.Second,
		watch: requests{
			ask: from(client, messages("CP_LOGIN")), reply: from(server, messages("SP_LOGIN")),
			last: with("CP_LOGIN", "query", 0), grant: netrekLogin,
		}.watch,
	},
	{
		ID:         "outfit_answered",
		Sentence:   "Each CP_OUTFIT is answered by SP_PICKOK in time.",
		Source:     "netrek 8, step 5; the time is this project's",
		Confidence: schema.Observed,
		Within:     5 * time.Second,
		watch:      requests{ask: from(client, messages("CP_OUTFIT")), reply: from(server, messages("SP_PICKOK"))}.watch,
	},
	{
		ID:         "feature_answered",
		Sentence:   "Each CP_FEATURE gets one SP_FEATURE in time.",
		Source:     "netrek 8, step 2; the time is this project's",
		Confidence: schema.Observed,
		Within:     5 * time.Second,
		watch:      requests{ask: from(client, messages("CP_FEATURE")), reply: from(server, messages("SP_FEATURE"))}.watch,
	},
}

// unendedShort says which text of a short packet, whose length counts its NUL, has none.
func unendedShort(r *dissect.Record) string {
	if !strings.Contains(r.Message, "_S_") || r.Err != nil {
		return ""
	}
	return unended(r)
}

// unendedFixed says which fixed field of text is full.
func unendedFixed(r *dissect.Record) string {
	if strings.Contains(r.Message, "_S_") || r.Err != nil || !strings.Contains(r.Message, "P_") {
		return ""
	}
	return unended(r)
}

// shortestText is the length from which a field is a text: shorter ones are letters.
const shortestText = 8

// keymap is a field of letters, each of which is a key's.
const keymap = "keymap"

func unended(r *dissect.Record) string {
	t := &r.Body
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if n.Kind != schema.Text || n.BodyLen < shortestText || n.Body%8 != 0 || n.Field.Name == keymap {
			continue
		}
		if from := int(n.Body) / 8; !bytes.Contains(t.Data[from:from+int(n.BodyLen)], []byte{0}) {
			return n.Field.Name + " has no NUL"
		}
	}
	return ""
}
