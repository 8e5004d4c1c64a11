package wulfram

import (
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

	modes   *schema.Table // nil before a handshake, and without a default
	mode    [256]mode     // the same by opcode
	groups  [256]uint16   // the stream of an opcode: that of its group, else its own
	streams map[uint16]*dissect.SequenceStream

	handshake handshake
	restarted bool // its handshake's clock started again; the next sequence will tell
}

// mode is how an opcode travels in one direction.
type mode struct {
	mode   int
	origin schema.Origin
	packet int // that taught it
}

// handshake is the last D_HANDSHAKE of a direction.
type handshake struct {
	seen      bool
	timestamp uint64
	body      string // behind the timestamp
	packet    int
}

func (h *half) init(c *conversation, s schema.Sender) {
	h.c, h.sender = c, s
	h.forget()
	if c.session.Joined {
		h.assume()
	}
}

// forget returns to what holds before a handshake: everything is raw.
func (h *half) forget() {
	h.modes, h.mode = nil, [256]mode{}
	h.handshake, h.restarted = handshake{}, false
	h.ungroup()
	h.streams = map[uint16]*dissect.SequenceStream{}
}

// ungroup gives every opcode a stream of its own.
func (h *half) ungroup() {
	for i := range h.groups {
		h.groups[i] = uint16(i)
	}
}

// assume takes the stated default, as for a session joined in its middle.
func (h *half) assume() {
	if t := h.c.schema.DefaultTable("stream_modes", h.sender); t != nil {
		h.use(t)
		for i, g := range h.c.schema.Groups {
			for _, op := range g.Opcodes {
				if op < 256 {
					h.groups[op] = uint16(256 + i)
				}
			}
		}
	}
}

// use makes a table the one in force.
func (h *half) use(t *schema.Table) {
	h.modes, h.mode = t, [256]mode{}
	for _, op := range t.Keys() {
		if e := t.Get(op); op < 256 && len(e.Values) > 0 {
			h.mode[op] = mode{int(e.Values[0]), e.Origin, e.Packet}
		}
	}
}

// guess notes that an opcode turned out to have an envelope.
func (h *half) guess(op byte, packet int) {
	if h.modes == nil {
		h.modes = schema.NewTable(h.c.state.Table("stream_modes").Decl)
	}
	h.modes.Set(int64(op), schema.Entry{Values: []float64{1}, Origin: schema.Guessed})
	h.mode[op] = mode{1, schema.Guessed, packet}
}

// stream returns the sequences of an opcode.
func (h *half) stream(op byte) *dissect.SequenceStream {
	key := h.groups[op]
	if s := h.streams[key]; s != nil {
		return s
	}
	limit := func(name string) int { return int(h.c.schema.Limit(name)) }
	rules := dissect.Rules{
		Serial:       reassembly.Serial{Modulus: uint64(limit("sequence_modulus"))},
		Start:        uint64(limit("first_sequence")),
		Window:       limit("window"),
		InFlight:     limit("in_flight"),
		Delivery:     dissect.Latest,
		Acknowledged: true,
	}
	if h.mode[op].mode == 3 {
		rules.Delivery = dissect.Ordered
	}
	s := dissect.NewSequenceStream(h.c.session.Hold(), rules, h.c.session.Joined && !h.handshake.seen)
	h.streams[key] = s
	return s
}
