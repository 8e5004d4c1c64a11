package verify

import (
	"time"

	"opscope/dissect"
	"opscope/schema"
)

// What the rules of the MMO speak of.
var (
	mmoEntered = from(server, with("EnterGameRes", "success", 1))
	mmoOutside = messages("EchoReq", "EnterGameReq", "Pong",
		"LoginReq", "RegisterReq", "ServerListReq", "SelectServerReq")
	mmoInside = func(r *dissect.Record) bool { return r.Direction == client && r.Packet != nil && !mmoOutside(r) }
	mmoWorld  = messages("SpawnMyCharacter", "SpawnOtherCharacter", "DespawnCharacter", "InventorySnapshot", "MoveNotify", "MoveBatchNotify",
		"SpawnMonster", "DespawnMonster", "MonsterMoveNotify")
)

// mmoRules are those of the MMO. Sections are those of protocols/mmo.md.
var mmoRules = []*Rule{
	complete,
	fromStart,
	decodes("mmo 8, items 16 to 20", schema.Inferred),
	{
		ID:         "frame_size",
		Sentence:   "A frame's size is that of its bytes, 4 to 16384.",
		Source:     "mmo 1, and 8, items 2, 5 and 6",
		Confidence: schema.Reported,
		codes:      []string{"frame_size_too_large", "frame_size_too_small", "frame_truncated"},
	},
	{
		ID:         "datagram_size",
		Sentence:   "A datagram has at most 1200 bytes, and so a batch at most 29 entries.",
		Source:     "mmo 1 and 5: settings of the movement sender",
		Confidence: schema.Reported,
		Severity:   Warning,
		codes:      []string{"batch_too_large", "datagram_too_large"},
	},
	{
		ID:         "one_frame",
		Sentence:   "A datagram holds one frame.",
		Source:     "mmo 2; several are not excluded, 10",
		Confidence: schema.Inferred,
		Severity:   Warning,
		codes:      []string{"several_frames"},
	},
	knownOpcode("mmo 3, and 8, item 9", schema.Reported),
	direction("mmo 3, and 8, items 10 and 11", schema.Reported),
	transport("mmo 2, and 8, item 10", schema.Reported, Error),
	{
		ID:         "values",
		Sentence:   "udp_port is a port.",
		Source:     "mmo 4, S_EnterGameRes",
		Confidence: schema.Reported,
		codes:      []string{"out_of_range"},
	},
	wellFormed("mmo 8, items 18, 19 and 21"),
	{
		ID:         "batch_size",
		Sentence:   "The count of a batch is that of its entries.",
		Source:     "mmo 5, and 8, item 24",
		Confidence: schema.Reported,
		codes:      []string{"move_batch_count_mismatch"},
	},
	{
		ID:         "reserved",
		Sentence:   "The reserved number of a batch is 0.",
		Source:     "mmo 5, and 8, item 26",
		Confidence: schema.Reported,
		codes:      []string{"reserved_nonzero"},
	},
	{
		ID:         "no_deprecated",
		Sentence:   "Nobody uses the packets of old clients.",
		Source:     "mmo 3, and 8, item 14",
		Confidence: schema.Reported,
		Severity:   Warning,
		codes:      []string{"deprecated_packet"},
	},
	{
		ID:         "no_development",
		Sentence:   "No packet is one of development builds.",
		Source:     "mmo 3, and 8, item 15",
		Confidence: schema.Reported,
		Off:        true,
		codes:      []string{"development_packet"},
	},
	{
		ID:         "in_order",
		Sentence:   "input_sequence grows.",
		Source:     "mmo 4, C_MoveReq; the network may be to blame",
		Confidence: schema.Reported,
		Severity:   Warning,
		codes:      []string{"conflict", "duplicate", "out_of_order", "sequence_gap", "stale"},
	},
	{
		ID:         "answered",
		Sentence:   "What wants an answer has it in time; so has a ping, and an input.",
		Source:     "mmo 6, and 8, item 33; the time is this project's",
		Confidence: schema.Inferred,
		Within:     2 * time.Second,
		watch:      newReplies,
	},
	{
		ID:         "asked",
		Sentence:   "An answer has its request.",
		Source:     "mmo 8, item 33",
		Confidence: schema.Inferred,
		codes:      []string{"acked_unseen"},
	},
	{
		ID:         "enter_first",
		Sentence:   "A client enters the game before it asks for anything of it.",
		Source:     "mmo 6, step 3, and error 5 of 4",
		Confidence: schema.Inferred,
		watch:      after(mmoEntered, mmoInside, "no EnterGameRes with success has come"),
	},
	{
		ID:         "entered_first",
		Sentence:   "A server tells of the world whom it has let in.",
		Source:     "mmo 6, steps 3 and 4",
		Confidence: schema.Reported,
		watch:      after(mmoEntered, from(server, mmoWorld), "no EnterGameRes with success has come"),
	},
	{
		ID:         "hello_first",
		Sentence:   "The first datagram is UdpHelloReq: it binds the endpoint of the client.",
		Source:     "mmo 6, steps 5 and 6",
		Confidence: schema.Reported,
		watch: after(messages("UdpHelloReq"), func(r *dissect.Record) bool { return r.Transport == schema.UDP && r.Message != "UdpHelloReq" },
			"no UdpHelloReq has come"),
	},
	{
		ID:         "no_leak",
		Sentence:   "A token is nowhere but in its own fields.",
		Source:     "mmo 8, items 28 to 31",
		Confidence: schema.Reported,
		watch:      func(time.Duration) watch { return secrecy{} },
	},
	knownBodies("mmo 3"),
}
