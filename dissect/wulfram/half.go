package wulfram

import (
	"maps"
	"slices"

	"opscope/dissect"
	"opscope/reassembly"
	"opscope/schema"
)

// modeRaw is the mode of an opcode that no table names: no envelope.
const modeRaw = 0

// half is what is known of one direction: the stream modes that its sender
// announced, and the sequences that it sends.
type half struct {
	c      *conversation
	sender schema.Sender

	modes   *modes // nil while everything is raw
	streams map[uint16]*dissect.SequenceStream
	sent    bool // a record with a sequence
	rejoin  bool // streams go on wherever their next record is

	handshake handshake
	restarted bool          // its handshake's clock started again; the next sequence will tell
	former    *schema.Table // what it had announced before that
	due       bool          // it has not shaken hands in this session, which its peer began anew
}

// modes is how the opcodes of one direction travel.
type modes struct {
	table  *schema.Table
	mode   [256]mode
	groups [256]uint16 // the stream of an opcode in a group, 0 for its own
}

// mode is how an opcode travels in one direction.
type mode struct {
	number int32
	packet int32 // that taught it
	origin schema.Origin
}

// grouped is added to the least opcode of a group, to name its stream.
const grouped = 256

// handshake is the last D_HANDSHAKE of a direction.
type handshake struct {
	seen      bool
	timestamp uint64
	body      string // behind the timestamp
	packet    int
}

func (h *half) init(c *conversation, s schema.Sender) {
	h.c, h.sender = c, s
	if c.session.Joined {
		h.assume()
	}
}

// of returns how an opcode travels.
func (h *half) of(op byte) mode {
	if h.modes == nil {
		return mode{}
	}
	return h.modes.mode[op]
}

// table returns what was learned; nil before anything was.
func (h *half) table() *schema.Table {
	if h.modes == nil {
		return nil
	}
	return h.modes.table
}

// assume takes the stated default, as for a session joined in its middle.
func (h *half) assume() {
	t := h.c.schema.DefaultTable("stream_modes", h.sender)
	if t == nil {
		return
	}
	m := newModes(t)
	for _, g := range h.c.schema.Groups {
		for _, op := range g.Opcodes {
			m.join(g.Opcodes, op)
		}
	}
	h.modes = m
}

func newModes(t *schema.Table) *modes {
	m := &modes{table: t}
	for _, op := range t.Keys() {
		if e := t.Get(op); op < 256 && len(e.Values) > 0 {
			m.mode[op] = mode{int32(e.Values[0]), int32(e.Packet), e.Origin}
		}
	}
	return m
}

// join gives an opcode the stream of a group.
func (m *modes) join(group []uint64, op uint64) {
	if op > 255 {
		return
	}
	least := op
	for _, o := range group {
		least = min(least, o)
	}
	m.groups[op] = grouped + uint16(least)
}

// key names the stream of an opcode.
func (m *modes) key(op byte) uint16 {
	if m == nil || m.groups[op] == 0 {
		return uint16(op)
	}
	return m.groups[op]
}

// use makes a table the one in force. A stream goes on, unless what shares it or
// how it is delivered has changed.
func (h *half) use(m *modes) {
	old := h.modes
	h.modes = m
	for key, s := range h.streams {
		op := byte(key)
		if old.key(op) == m.key(op) && old.delivery(op) == m.delivery(op) {
			continue
		}
		s.Reset(true)
		delete(h.streams, key)
		h.rejoin = true
	}
}

// delivery returns what a receiver does with a newer record of an opcode.
func (m *modes) delivery(op byte) dissect.Delivery {
	if m != nil && m.mode[op].number == 3 {
		return dissect.Ordered
	}
	return dissect.Latest
}

// guess notes that an opcode turned out to have an envelope. The table in force may
// be the stated default, which is everybody's, and is not written to.
func (h *half) guess(op byte, packet int) {
	t := schema.NewTable(h.c.state.Table("stream_modes").Decl)
	if h.modes != nil {
		for _, k := range h.modes.table.Keys() {
			t.Set(k, *h.modes.table.Get(k))
		}
	}
	t.Set(int64(op), schema.Entry{Values: []float64{1}, Origin: schema.Guessed, Packet: packet})
	m := newModes(t)
	if h.modes != nil {
		m.groups = h.modes.groups
	}
	h.modes = m
}

// stream returns the sequences of an opcode.
func (h *half) stream(op byte) *dissect.SequenceStream {
	key := h.modes.key(op)
	if s := h.streams[key]; s != nil {
		return s
	}
	limit := func(name string) int { return int(h.c.schema.Limit(name)) }
	rules := dissect.Rules{
		Serial:       reassembly.Serial{Modulus: uint64(limit("sequence_modulus"))},
		Start:        uint64(limit("first_sequence")),
		Window:       limit("window"),
		InFlight:     limit("in_flight"),
		Delivery:     h.modes.delivery(op),
		Acknowledged: true,
	}
	joined := h.rejoin || h.c.session.Joined && !h.handshake.seen
	s := dissect.NewSequenceStream(h.c.session.Hold(), rules, joined)
	if h.streams == nil {
		h.streams = map[uint16]*dissect.SequenceStream{}
	}
	h.streams[key] = s
	return s
}

// restart begins every stream anew.
func (h *half) restart() {
	h.restarted, h.former, h.sent, h.rejoin = false, nil, false, false
	for _, key := range slices.Sorted(maps.Keys(h.streams)) { // each takes the next number
		h.streams[key].Reset(false)
	}
}
