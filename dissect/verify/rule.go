package verify

import (
	"slices"
	"time"

	"opscope/dissect"
	"opscope/schema"
)

// Severity says what a break of a rule means for the run.
type Severity uint8

// The severities.
const (
	Error   Severity = iota // the check fails
	Warning                 // it is shown, and fails a strict check
)

// String returns "error" or "warning".
func (s Severity) String() string { return [...]string{"error", "warning"}[s] }

// The sides of a session, as the rules call them.
const (
	client = dissect.ClientToServer
	server = dissect.ServerToClient
)

// Rule is one thing that a protocol asks for.
type Rule struct {
	ID         string // words in snake case; rules of several protocols that ask the same share one
	Sentence   string // what holds where it is kept
	Source     string // the item of the facts: "wulfram 4.2"
	Confidence schema.Confidence
	Severity   Severity
	Off        bool          // it counts only where it is switched on
	Within     time.Duration // of a rule about time: how long is allowed

	codes []string                   // of notes: a record that has one breaks it
	when  func(*dissect.Record) bool // of those records, only such; nil for all
	// excuse reports whether what a note says is no break for all that; nil excuses nothing.
	excuse func(v *view) bool
	watch  func(within time.Duration) watch // finds what no note says; nil for nothing
}

// Codes returns the codes of the notes that break the rule.
func (r *Rule) Codes() []string { return slices.Clone(r.codes) }

// watch follows one session for one rule.
type watch interface {
	// take looks at a record of the session.
	take(v *view)
	// end is told that the session, or the capture, ends at a time: what was due until
	// then has not come.
	end(v *view, at time.Time)
}

// Protocols names the protocols that have rules of their own.
func Protocols() []string { return []string{"wulfram", "netrek", "lotr2", "mmo"} }

// Rules returns the rules of a protocol, in the order in which reports have them. A game
// of the user's own has those that need nothing but its schema. DirectPlay is that of
// lotr2: both are in one session.
func Rules(protocol string) []*Rule {
	switch protocol {
	case "wulfram":
		return wulframRules
	case "netrek":
		return netrekRules
	case "lotr2", "dplay":
		return lotr2Rules
	case "mmo":
		return mmoRules
	}
	return gameRules
}

// family returns the name under which the rules of a session's protocol are listed.
func family(protocol string) string {
	if protocol == "dplay" {
		return "lotr2"
	}
	return protocol
}

// The rules about the capture, which are no protocol's.
const captureSource = "this project's own: without it the other rules say nothing"

// complete and fromStart stand first in each table.
var (
	complete = &Rule{
		ID:         "complete",
		Sentence:   "The capture holds every byte of what it shows.",
		Source:     captureSource,
		Confidence: schema.Policy,
		codes:      []string{"not_captured"},
		watch:      func(time.Duration) watch { return &wholeness{} },
	}
	fromStart = &Rule{
		ID:         "from_start",
		Sentence:   "The capture holds each session from its start: else nobody can check what must come first.",
		Source:     captureSource,
		Confidence: schema.Policy,
		Severity:   Warning,
		watch:      func(time.Duration) watch { return arrival{} },
	}
)

// The rules of all protocols, each with its own source.

func decodes(source string, c schema.Confidence) *Rule {
	return &Rule{
		ID:         "decodes",
		Sentence:   "Every byte of a record is read by its layout.",
		Source:     source,
		Confidence: c,
		codes: []string{
			"ambiguous_layout", "ambiguous_type", "bytes_between", "defect", "fields_overlap", "protobuf_malformed", "protobuf_truncated",
			"required_missing", "trailing_bytes",
		},
		watch: func(time.Duration) watch { return &legibility{} },
	}
}

func knownOpcode(source string, c schema.Confidence) *Rule {
	return &Rule{
		ID:         "known_opcode",
		Sentence:   "Each opcode is one of the protocol's.",
		Source:     source,
		Confidence: c,
		codes:      []string{"unknown_opcode", "unknown_packet_id"},
	}
}

func direction(source string, c schema.Confidence) *Rule {
	return &Rule{
		ID:         "direction",
		Sentence:   "Each packet comes from the side that sends it.",
		Source:     source,
		Confidence: c,
		codes:      []string{"unexpected_direction"},
	}
}

func transport(source string, c schema.Confidence, s Severity) *Rule {
	return &Rule{
		ID:         "transport",
		Sentence:   "Each packet travels over the transport that it has.",
		Source:     source,
		Confidence: c,
		Severity:   s,
		codes:      []string{"unexpected_transport"},
	}
}

func values(source string, c schema.Confidence) *Rule {
	return &Rule{
		ID:         "values",
		Sentence:   "Values are within what the layouts allow.",
		Source:     source,
		Confidence: c,
		codes:      []string{"out_of_range"},
	}
}

// knownBodies is off: of many packets nobody knows more than the opcode.
func knownBodies(source string) *Rule {
	return &Rule{
		ID:         "known_bodies",
		Sentence:   "The body of each packet has a layout.",
		Source:     source,
		Confidence: schema.Policy,
		Severity:   Warning,
		Off:        true,
		codes:      []string{"unknown_body"},
	}
}

// gameRules are those of a game of the user's own.
var gameRules = []*Rule{
	complete,
	fromStart,
	decodes("the game's .proto files", schema.Reported),
	{
		ID:         "frame_size",
		Sentence:   "A frame's size is that of its bytes, and within the limits.",
		Source:     "the game's framing",
		Confidence: schema.Reported,
		codes:      []string{"frame_size_too_large", "frame_size_too_small", "frame_truncated"},
	},
	knownOpcode("the game's ids", schema.Reported),
	direction("the game's ids", schema.Reported),
	transport("the game's ids", schema.Reported, Error),
	values("the game's layouts", schema.Reported),
	wellFormed("proto3, the wire format"),
	knownBodies("the game's ids"),
}

func wellFormed(source string) *Rule {
	return &Rule{
		ID:         "protobuf",
		Sentence:   "Fields come once, in the form that they have, with numbers that fit and texts in UTF-8.",
		Source:     source,
		Confidence: schema.Inferred,
		codes:      []string{"field_repeated", "invalid_utf8", "value_cut", "wire_type_mismatch"},
	}
}
