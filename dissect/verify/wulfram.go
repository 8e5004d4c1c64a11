package verify

import (
	"strings"
	"time"

	"opscope/dissect"
	"opscope/schema"
)

// What the rules of Wulfram speak of.
var (
	wulframLoggedIn = with("LOGIN_STATUS", "code", 8)
	wulframVersion  = with("HELLO", "subcommand", 0)
)

// ordered picks records whose every sequence counts.
func ordered(r *dissect.Record) bool { return r.Envelope.Mode == modeOrdered }

// wulframRules are those of Wulfram. Sections are those of protocols/wulfram.md.
var wulframRules = []*Rule{
	complete,
	fromStart,
	decodes("wulfram 12, items 1, 2, 6 and 17", schema.Recovered),
	{
		ID:         "frame_size",
		Sentence:   "A TCP frame has 3 to 10242 bytes, its size among them.",
		Source:     "wulfram 3",
		Confidence: schema.Recovered,
		watch: faults{at: func(r *dissect.Record) bool {
			return r.Transport == schema.TCP && strings.HasPrefix(r.Err.Path, "envelope")
		}}.watch,
	},
	{
		ID:         "datagram_size",
		Sentence:   "A datagram has at most 3072 bytes: the client loses larger ones.",
		Source:     "wulfram 4",
		Confidence: schema.Recovered,
		codes:      []string{"datagram_too_large"},
	},
	knownOpcode("wulfram 1, and 12, item 20", schema.Recovered),
	direction("wulfram 9", schema.Observed),
	{
		ID:         "transport",
		Sentence:   "A packet travels over the transport over which it was seen.",
		Source:     "wulfram 9; which the official server used is open, 13",
		Confidence: schema.Observed,
		Severity:   Warning,
		watch:      plainly{show: elsewhere}.watch,
	},
	{
		ID:         "no_control_on_tcp",
		Sentence:   "Opcodes 0x01 to 0x07 do not travel over TCP, where the client rejects them.",
		Source:     "wulfram 3, and 12, item 20",
		Confidence: schema.Recovered,
		codes:      []string{"control_on_tcp"},
	},
	{
		ID:         "values",
		Sentence:   "Values are within what the layouts allow, and the texts of TRANSLATION are numbers.",
		Source:     "wulfram 7.1, 7.2 and 8",
		Confidence: schema.Reported,
		codes:      []string{"out_of_range"},
	},
	{
		ID:         "strings",
		Sentence:   "The length of a string counts the NUL at its end, which is there.",
		Source:     "wulfram 2, and 12, item 18",
		Confidence: schema.Recovered,
		codes:      []string{"empty_string", "text_without_nul"},
	},
	{
		ID:         "padding",
		Sentence:   "The bits behind a record's last field are zero.",
		Source:     "wulfram 2",
		Confidence: schema.Observed,
		Severity:   Warning,
		codes:      []string{"padding_nonzero"},
	},
	{
		ID:         "modes",
		Sentence:   "A record travels in the mode that its sender's handshake gives its opcode.",
		Source:     "wulfram 4.4, and 12, items 3 to 5",
		Confidence: schema.Recovered,
		codes:      []string{"mode_mismatch", "raw_fallback"},
	},
	{
		ID:         "handshake_first",
		Sentence:   "No record has a sequence before its sender's D_HANDSHAKE has said so.",
		Source:     "wulfram 5, and 12, item 3",
		Confidence: schema.Recovered,
		watch: after(nobody, func(r *dissect.Record) bool { return has(r, "mode_guessed") },
			"its bytes have the envelope of a sequence, and no handshake of its sender has come"),
	},
	{
		ID:         "sequence_range",
		Sentence:   "Sequences run from 0 to 65534.",
		Source:     "wulfram 4.2, and 12, item 9",
		Confidence: schema.Recovered,
		codes:      []string{"sequence_65535"},
	},
	{
		ID:         "in_order",
		Sentence:   "The records of a stream come in the order of their sequences, and none is left out.",
		Source:     "wulfram 4.2, and 12, item 9; the network may be to blame",
		Confidence: schema.Recovered,
		Severity:   Warning,
		codes:      []string{"out_of_order", "sequence_gap", "stale"},
	},
	{
		ID:         "window",
		Sentence:   "A record is at most five positions ahead of what the receiver expects.",
		Source:     "wulfram 4.2",
		Confidence: schema.Recovered,
		codes:      []string{"out_of_window"},
	},
	{
		ID:         "in_flight",
		Sentence:   "At most 15 records of a stream wait for their acknowledgement.",
		Source:     "wulfram 4.2",
		Confidence: schema.Recovered,
		codes:      []string{"too_many_in_flight"},
	},
	{
		ID:         "same_bytes",
		Sentence:   "An ordered record that is sent again has the same bytes.",
		Source:     "wulfram 4.3; a retry callback may rebuild it",
		Confidence: schema.Inferred,
		codes:      []string{"conflict"},
	},
	{
		ID:         "new_sequence",
		Sentence:   "An ordered record that waits for its acknowledgement is not sent again under a new sequence.",
		Source:     "wulfram 4.3: only a rebuilt record of mode 1 may take one",
		Confidence: schema.Recovered,
		codes:      []string{"same_payload_new_sequence"},
		when:       ordered,
	},
	{
		ID:         "acknowledged",
		Sentence:   "Each record of modes 1 and 3 is acknowledged in time.",
		Source:     "wulfram 4.1 and 4.3; the time is twice the longest retry timeout",
		Confidence: schema.Recovered,
		Within:     2 * time.Second,
		watch:      newReplies,
	},
	{
		ID:         "retransmitted",
		Sentence:   "A record that is not acknowledged is sent again in time; in mode 1 a newer one will do.",
		Source:     "wulfram 4.3: the timeout is 1 s at most, here one half more",
		Confidence: schema.Recovered,
		Within:     1500 * time.Millisecond,
		watch:      newPersistence,
	},
	{
		ID:         "acks",
		Sentence:   "Nothing is acknowledged that was never sent.",
		Source:     "wulfram 4.4, and 12, item 11",
		Confidence: schema.Recovered,
		codes:      []string{"acked_unseen"},
	},
	{
		ID:         "tables",
		Sentence:   "TRANSLATION and BEHAVIOR teach the widths that a body needs, before it or soon after.",
		Source:     "wulfram 7.1, 8.1, and 12, items 7 and 8",
		Confidence: schema.Recovered,
		watch: after(nobody, func(r *dissect.Record) bool { return has(r, "assumed_context") },
			"assumed_context: no packet of the session taught what it needs"),
	},
	{
		ID:         "version_first",
		Sentence:   "A client tells its version, HELLO 0, before it logs in.",
		Source:     "wulfram 6, steps 2 and 6",
		Confidence: schema.Observed,
		watch:      after(from(client, wulframVersion), from(client, messages("LOGIN")), "no HELLO 0 of the client has come"),
	},
	{
		ID:         "login_first",
		Sentence:   "Nobody is born, and no vehicle is given, before LOGIN_STATUS 8 has let the client in.",
		Source:     "wulfram 6, steps 6 to 13",
		Confidence: schema.Observed,
		watch:      after(wulframLoggedIn, from(server, messages("TANK", "BIRTH_NOTICE", "REINCARNATE")), "no LOGIN_STATUS 8 has come"),
	},
	{
		ID:         "spawn_asked",
		Sentence:   "A server answers REINCARNATE when the client has asked.",
		Source:     "wulfram 6, steps 12 and 13",
		Confidence: schema.Observed,
		watch:      after(from(client, messages("REINCARNATE")), from(server, messages("REINCARNATE")), "no REINCARNATE of the client has come"),
	},
	{
		ID:         "bare_datagrams",
		Sentence:   "Nothing stands in front of a datagram's first record.",
		Source:     "wulfram 4.5; what the official server did is open, 13",
		Confidence: schema.Policy,
		Severity:   Warning,
		Off:        true,
		codes:      []string{"delimiter_skipped", "size_prefix", "size_prefix_ambiguous"},
	},
	knownBodies("wulfram 9"),
}

// Packets that were seen over one transport only, by servers and clients. Section 9; the
// client itself takes most over either.
var (
	seenOverTCP = messages("LOGIN", "LOGIN_STATUS", "MOTD", "BEHAVIOR", "TRANSLATION", "TEAM_INFO", "PLAYER", "GAME_CLOCK", "BPS", "WANT_UPDATES",
		"REQUEST_ACCOUNT_HANDLE", "LOGIN_INFO")
	seenOverUDP = messages("ROOT", "ACTION_DUMP", "ACTION_UPDATE", "PING", "ACK1", "ACK2", "VIEWPOINT_INFO", "INPUT_FEEDBACK", "TANK_RESEND_REQUEST",
		"RETARGET", "DROP_REQUEST", "TRANSIENT_ARRAY", "DELETE_OBJECT", "DEATH_NOTICE", "CARRYING_INFO", "DOCKING", "RESET_GAME")
)

// elsewhere says that a packet travels over a transport over which nobody has seen it.
func elsewhere(r *dissect.Record) string {
	if seenOverTCP(r) && r.Transport == schema.UDP || seenOverUDP(r) && r.Transport == schema.TCP {
		return "seen over " + ((schema.TCP | schema.UDP) &^ r.Transport).String() + " only"
	}
	return ""
}

// nobody picks no record.
func nobody(*dissect.Record) bool { return false }
