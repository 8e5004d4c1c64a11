package verify

import (
	"slices"
	"time"

	"opscope/dissect"
	"opscope/schema"
)

// lotr2Rules are those of Lords of the Realm II, and of DirectPlay below it. Sections are
// those of protocols/lotr2.md.
var lotr2Rules = []*Rule{
	complete,
	fromStart,
	decodes("lotr2 2, 5 and 8, items 4, 9 and 20", schema.Observed),
	knownOpcode("lotr2 5, 5.1 and 7", schema.Observed),
	direction("lotr2 3, 5 and 7", schema.Observed),
	values("lotr2 2, 6 and 7.1", schema.Observed),
	{
		ID:         "sockaddr",
		Sentence:   "The sockaddr of a DirectPlay frame ends in eight zero bytes.",
		Source:     "lotr2 2",
		Confidence: schema.Observed,
		Severity:   Warning,
		codes:      []string{"padding_nonzero"},
	},
	{
		ID:         "one_way",
		Sentence:   "A connection carries data one way: from the side that dialled it.",
		Source:     "lotr2 3",
		Confidence: schema.Observed,
		watch:      func(time.Duration) watch { return &oneWay{} },
	},
	{
		ID:         "game_on_tcp",
		Sentence:   "All frames of the game travel over TCP.",
		Source:     "lotr2 6",
		Confidence: schema.Observed,
		Severity:   Warning,
		watch: plainly{show: func(r *dissect.Record) string {
			if r.Protocol == "lotr2" && r.Transport == schema.UDP {
				return "a frame of the game in a datagram"
			}
			return ""
		}}.watch,
	},
	{
		ID:         "length",
		Sentence:   "The length of a frame is that of its payload.",
		Source:     "lotr2 6, and 8, item 9",
		Confidence: schema.Observed,
		codes:      []string{"length_disagrees"},
	},
	{
		ID:         "fixed_length",
		Sentence:   "An opcode has one length.",
		Source:     "lotr2 6 and 7",
		Confidence: schema.Observed,
		codes:      []string{"length_unusual"},
		when:       func(r *dissect.Record) bool { return !has(r, "length_disagrees") },
	},
	{
		ID:         "checksum",
		Sentence:   "The checksum is the sum of the payload's bytes modulo 256.",
		Source:     "lotr2 6, and 8, item 10",
		Confidence: schema.Observed,
		codes:      []string{"bad_checksum"},
	},
	{
		ID:         "slots",
		Sentence:   "Each message of a sender takes the next slot; after 39 comes 1.",
		Source:     "lotr2 6, and 8, item 7: what goes to others shows as a gap",
		Confidence: schema.Observed,
		codes:      []string{"sequence_gap"},
		excuse:     elsewhereToo,
	},
	{
		ID:         "slot_zero",
		Sentence:   "Slot 0 is that of the first message of a process.",
		Source:     "lotr2 6, and 8, item 8",
		Confidence: schema.Observed,
		codes:      []string{"sequence_restarted"},
	},
	{
		ID:         "three_sends",
		Sentence:   "A message is sent three times in a row, but for the opcodes that are sent once.",
		Source:     "lotr2 6, and 8, item 6",
		Confidence: schema.Observed,
		codes:      []string{"copies_missing"},
	},
	{
		ID:         "same_bytes",
		Sentence:   "The copies of a message have its bytes.",
		Source:     "lotr2 6, and 8, item 6",
		Confidence: schema.Observed,
		codes:      []string{"conflict"},
	},
	{
		ID:         "sent_once",
		Sentence:   "Opcodes 0x0a, 0x0e, 0x23, 0x43 and 0x54 are sent once.",
		Source:     "lotr2 6",
		Confidence: schema.Observed,
		codes:      []string{"unexpected_copy"},
	},
	{
		ID:         "in_step",
		Sentence:   "Both peers report the same state for one tick.",
		Source:     "lotr2 7.1, opcodes 0x08 and 0x0c",
		Confidence: schema.Observed,
		codes:      []string{"out_of_step"},
	},
	{
		ID:         "pieces",
		Sentence:   "The pieces of a message that is split fit together.",
		Source:     "lotr2 5.1",
		Confidence: schema.Reported,
		codes:      []string{"piece_refused", "pieces_dropped"},
	},
	{
		ID:         "answered",
		Sentence:   "A request of DirectPlay, and a ping, is answered in time.",
		Source:     "lotr2 3 and 5; the time is this project's",
		Confidence: schema.Observed,
		Within:     2 * time.Second,
		watch:      newReplies,
	},
	{
		ID:         "id_first",
		Sentence:   "A player asks for its id before it is created.",
		Source:     "lotr2 3",
		Confidence: schema.Observed,
		watch:      after(messages("RequestPlayerReply"), withHost("AddForwardRequest", "CreatePlayer"), "no RequestPlayerReply has come"),
	},
	{
		ID:         "hello_first",
		Sentence:   "The host welcomes a player who has said hello.",
		Source:     "lotr2 7.2",
		Confidence: schema.Observed,
		watch:      after(messages("join_hello"), messages("join_welcome"), "no join_hello has come"),
	},
	{
		ID:         "start_first",
		Sentence:   "Ticks come when the campaign or the battle has started.",
		Source:     "lotr2 7.2",
		Confidence: schema.Inferred,
		watch:      after(messages("campaign_start", "battle_start"), withHost("tick_reached", "tick_milestone"), "neither campaign_start nor battle_start has come"),
	},
	knownBodies("lotr2 5.1 and 7"),
}

// elsewhereToo reports whether the sender of a record talks to others, too: what it sends
// them takes slots, and is in other sessions. Section 8, item 7.
func elsewhereToo(v *view) bool {
	sender := v.record.Src.Addr()
	for _, s := range v.session.checker.sessions {
		if s != v.session && slices.Contains(s.hosts, sender) {
			return true
		}
	}
	return false
}

// withHost picks messages by their names, in a session with the host: what two joiners say
// to each other has no start of its own.
func withHost(names ...string) func(*dissect.Record) bool {
	pick := messages(names...)
	return func(r *dissect.Record) bool { return r.Direction != dissect.UnknownDirection && pick(r) }
}

// oneWay finds connections with data both ways.
type oneWay struct {
	timeless
	senders map[int]dissect.Direction // the first of each flow
}

func (o *oneWay) take(v *view) {
	r := v.record
	if !isFrame(r) || r.Transport != schema.TCP || r.Direction == dissect.UnknownDirection {
		return
	}
	if o.senders == nil {
		o.senders = map[int]dissect.Direction{}
	}
	switch first, known := o.senders[r.Flow]; {
	case !known:
		o.senders[r.Flow] = r.Direction
	case first != r.Direction && first != dissect.UnknownDirection:
		v.broken("data against the direction of its connection")
		o.senders[r.Flow] = dissect.UnknownDirection
	}
}
