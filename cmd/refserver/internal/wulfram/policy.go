package wulfram

import (
	"fmt"

	"opscope/cmd/refserver/internal/transport"
)

// Handshake is the style of a server's D_HANDSHAKE: which of its records it
// sequences, and how.
type Handshake string

// The styles. An empty Handshake is the policy.
const (
	// Policy is the table of section 4.5: controls raw, chat ordered, entity
	// lifecycle and roster ordered in one group.
	Policy Handshake = "policy"
	// Original is the client's own table sent back, as wulfram-server does.
	Original Handshake = "original"
	// GameData is Wulf-Forge's: stream numbers meant, opcodes 0 to 3 put in mode 1.
	GameData Handshake = "game-data"
)

// ParseHandshake returns the style that a word names.
func ParseHandshake(word string) (Handshake, error) {
	switch h := Handshake(word); h {
	case "", Policy:
		return Policy, nil
	case Original, GameData:
		return h, nil
	}
	return "", fmt.Errorf("unknown handshake %q: want policy, original or game-data", word)
}

// lifecycle is the group of the policy: what makes, shows and ends entities and
// players shares one sequence. The facts name only the kind of message; which
// opcodes those are is this server's own choice.
var lifecycle = transport.Group{Name: "Lifecycle", Members: []uint8{
	0x15, // DELETE_OBJECT
	0x18, // TANK
	0x1A, // ADD_TO_ROSTER
	0x1B, // REMOVE_FROM_ROSTER
	0x1C, // UPDATE_STATS
	0x1D, // DEATH_NOTICE
	0x1E, // BIRTH_NOTICE
	0x27, // SHIP_STATUS
}}

const chatOpcode = 0x1F // COMM_MESSAGE, ordered, a stream of its own

// table returns what a server of this style advertises, and the second number of
// its handshake.
func (h Handshake) table() (transport.Table, uint32) {
	switch h {
	case Original:
		return clientTable(), transport.InFlight
	case GameData:
		return gameDataTable(), 1
	}
	return policyTable(), 1
}

// policyTable lists the controls as well, and gives each member of the group its
// own pair, as the original client does with its groups.
func policyTable() transport.Table {
	t := transport.Table{Groups: []transport.Group{lifecycle}}
	for opcode := range uint8(5) {
		t.Pairs = append(t.Pairs, transport.Pair{Opcode: opcode, Mode: transport.Raw})
	}
	t.Pairs = append(t.Pairs, transport.Pair{Opcode: chatOpcode, Mode: transport.Ordered})
	for _, opcode := range lifecycle.Members {
		t.Pairs = append(t.Pairs, transport.Pair{Opcode: opcode, Mode: transport.Ordered})
	}
	return t
}

// clientTable is that of the original client: 200 bytes with its opcode (section
// 5, observed).
func clientTable() transport.Table {
	t := transport.Table{Groups: []transport.Group{
		{Name: "Beacon Stream", Members: []uint8{0x3A, 0x3B}},
		{Name: "Squad Things", Members: []uint8{0x42, 0x46, 0x49, 0x4A}},
	}}
	for _, opcode := range []uint8{0x19, 0x20, 0x25, 0x26, 0x2B, 0x2E, 0x33, 0x35, 0x3A, 0x3B, 0x42, 0x46, 0x49, 0x4A, 0x4F} {
		mode := transport.Ordered
		switch opcode {
		case 0x19, 0x26, 0x2B, 0x35:
			mode = transport.Latest
		}
		t.Pairs = append(t.Pairs, transport.Pair{Opcode: opcode, Mode: mode})
	}
	return t
}

// gameDataTable is Wulf-Forge's, 128 bytes with its opcode.
func gameDataTable() (t transport.Table) {
	for i, name := range []string{"Unreliable", "Reliable", "Stream 2", "Game Data"} {
		t.Groups = append(t.Groups, transport.Group{Name: name, Members: []uint8{uint8(i)}})
		t.Pairs = append(t.Pairs, transport.Pair{Opcode: uint8(i), Mode: transport.Latest})
	}
	return t
}
