// Package lotr2 dissects Lords of the Realm II: game frames in the player messages of
// DirectPlay, which dplay finds. A frame has an opcode, a length and a checksum, and a slot
// in its sender's count of messages; most are sent three times.
package lotr2

import (
	"cmp"
	"slices"
	"strconv"

	"opscope/dissect"
	"opscope/dissect/dplay"
	"opscope/schema"
	"opscope/schema/wire"
)

// Protocol is Lords of the Realm II, as a dissect.Protocol.
type Protocol struct{}

// Head returns what is known without the layouts.
func (Protocol) Head() (schema.Head, error) { return schema.BuiltinHead("lotr2") }

// Schema returns the layouts of the game.
func (Protocol) Schema() (*schema.Protocol, error) { return schema.Builtin("lotr2") }

// Recognize takes every flow of DirectPlay. What its session says tells whether it is
// this game's; if not, only DirectPlay is shown.
func (Protocol) Recognize(_ *dissect.Scratch, t schema.Transport, data []byte) (schema.Sender, dissect.Recognition) {
	return dplay.Recognize(t, data)
}

// Open begins a session.
func (Protocol) Open(s *dissect.Session) dissect.Conversation { return dplay.Open(s, game{}) }

// application is {1C8248C0-9772-11CF-B74F-00C0DF413ED1} on the wire. Facts, section 5.
var application = [16]byte{0xc0, 0x48, 0x82, 0x1c, 0x72, 0x97, 0xcf, 0x11, 0xb7, 0x4f, 0x00, 0xc0, 0xdf, 0x41, 0x3e, 0xd1}

// game is the dplay.Game.
type game struct{}

// Application returns the GUID of the game.
func (game) Application() [16]byte { return application }

// Open begins a session.
func (game) Open(s *dissect.Session, p *dplay.Players) dplay.Talk {
	sc := s.Schema()
	t := &talk{session: s, schema: sc, message: sc.Framing("message"), envelope: sc.Framing("message").Envelope, scratch: s.Scratch(), players: p}
	e := t.envelope
	t.header = header{opcode: e.Field("opcode"), length: e.Field("length"), slot: e.Field("slot"), copy: e.Field("copy")}
	t.slots.last = int(sc.Limit("last_slot"))
	t.slots.copies = int(sc.Limit("copies"))
	for _, g := range sc.Groups {
		if g.Name == "SentOnce" {
			t.once = g.Opcodes
		}
	}
	return t
}

// header is the fields of a game frame's envelope.
type header struct{ opcode, length, slot, copy *schema.EnvelopeField }

// talk is what one session has learned.
type talk struct {
	session  *dissect.Session
	schema   *schema.Protocol
	message  *schema.Framing
	envelope *schema.Envelope
	header   header
	scratch  *dissect.Scratch
	players  *dplay.Players
	once     []uint64 // opcodes that are sent once
	slots    slots
	reports  reports
}

// Reset forgets slots and reports.
func (t *talk) Reset() {
	t.slots.reset(t.session.Hold())
	t.reports = reports{}
}

// Largest returns the bytes of a frame with the longest payload.
func (t *talk) Largest() int { return t.envelope.Size() + t.message.Max }

// Passes takes a frame of a known opcode with its own length, and the right checksum.
func (t *talk) Passes(data []byte) bool {
	f, err := t.message.Find(data, t.schema.Name)
	if err != nil || f.Size != len(data) || t.envelope.Verify(data, t.schema.Name) != nil {
		return false
	}
	p := t.packet(f.Opcode)
	return len(p.Of(schema.AnySender)) > 0 && p.Of(schema.AnySender)[0].Bytes() == f.Length
}

// packet returns the packet of an opcode, whoever sends it, or nil.
func (t *talk) packet(opcode uint64) *schema.Packet {
	return t.schema.Packet(opcode, schema.AnySender, schema.TCP)
}

// hostNumber is the player number of the host. Facts, section 7.1.
const hostNumber = 1

// Host takes what only the host sends, and what says that its sender is player 1.
func (t *talk) Host(data []byte) bool {
	if !t.Passes(data) {
		return false
	}
	p := t.packet(t.header.opcode.Read(data))
	if p.From == schema.Server {
		return true
	}
	w := t.scratch
	w.Tree.Reset(data)
	w.Trial.State, w.Trial.Envelope, w.Trial.Short = nil, t.envelope, wire.Malformed
	if w.Trial.Decode(t.schema, p.Name, p.Of(schema.AnySender)[0], &w.Tree, 8*t.envelope.Size(), 8*len(data)) != nil {
		return false
	}
	number, ok := w.Tree.Value("player_number")
	return ok && number == hostNumber && p.From == schema.AnySender
}

// Message decodes a game frame into r.
func (t *talk) Message(r *dissect.Record, m *dplay.Message) {
	data := m.Frame[m.Start:]
	if err := t.scratch.Head(t.schema, t.envelope, &r.Head, m.Start, m.Short); err != nil {
		if r.Err, r.Rest = cmp.Or(r.Err, err), data; len(data) > 0 {
			r.Opcode = int(t.header.opcode.Read(data))
			r.Message = t.schema.OpcodeName(uint64(r.Opcode))
		}
		return
	}
	opcode, slot := t.header.opcode.Read(data), int(t.header.slot.Read(data))
	copy := int(t.header.copy.Read(data))
	p := t.packet(opcode)
	r.Opcode, r.Message, r.Packet = int(opcode), t.schema.OpcodeName(opcode), p
	r.Envelope.Seq, r.Envelope.Length = slot, int(t.header.length.Read(data))
	t.body(r, m, p)
	if m.Missing == 0 {
		t.check(r, data)
	}
	if p != nil && p.From != schema.AnySender && r.Direction != dissect.UnknownDirection && r.Direction.Sender() != p.From {
		r.Note("unexpected_direction", "")
	}
	if t.scratch.Follows() {
		t.slots.take(t.session.Hold(), r, &sent{
			by: m.From, slot: slot, copy: copy, opcode: opcode, payload: data[t.envelope.Size():], whole: m.Missing == 0,
			once: slices.Contains(t.once, opcode), known: p != nil,
		})
	}
	if r.Err == nil && m.Missing == 0 && copy == 0 {
		t.learn(r, m.From)
	}
}

// body decodes the payload, all that the size of DirectPlay has room for: that size is
// what cuts frames. Section 8, item 9.
func (t *talk) body(r *dissect.Record, m *dplay.Message, p *schema.Packet) {
	start := m.Start + t.envelope.Size()
	r.Body.Reset(m.Frame)
	if len(p.Of(schema.AnySender)) == 0 {
		r.Rest = m.Frame[start:]
		r.Note("unknown_opcode", "")
		return
	}
	w := &t.scratch.Decoder
	w.State, w.Envelope, w.Short = nil, t.envelope, m.Short
	r.Layout = p.Of(schema.AnySender)[0]
	err := t.scratch.Body(t.schema, p.Name, r.Layout, &r.Body, 8*start, 8*len(m.Frame), reads(p))
	for _, k := range w.Remarks {
		r.Note(k.Code, k.Text)
	}
	end := (w.End + 7) / 8
	switch {
	case err != nil:
		r.Err, r.Rest = cmp.Or(r.Err, err), m.Frame[min(end, len(m.Frame)):]
	case end < len(m.Frame):
		r.Rest = m.Frame[end:]
		r.Note("trailing_bytes", "")
	}
}

// check compares length and checksum with the payload. A wrong one is remarked on and
// becomes the record's error, but hides nothing.
func (t *talk) check(r *dissect.Record, data []byte) {
	head := t.envelope.Size()
	said, there := r.Envelope.Length, len(data)-head
	if said != there {
		r.Note("length_disagrees", strconv.Itoa(said)+", in a message with room for "+strconv.Itoa(there))
		r.Err = cmp.Or(r.Err, t.fault("envelope.length", data, strconv.Itoa(there), said))
	}
	if r.Layout != nil && r.Layout.Bytes() != said {
		r.Note("length_unusual", strconv.Itoa(said)+", where "+r.Message+" always has "+strconv.Itoa(r.Layout.Bytes()))
		r.Err = cmp.Or(r.Err, t.fault("envelope.length", data, strconv.Itoa(r.Layout.Bytes()), said))
	}
	if err := t.envelope.Verify(data[:head+min(said, there)], t.schema.Name); err != nil {
		r.Note("bad_checksum", err.Got+", where the payload has "+strconv.Itoa(int(schema.Sum8(data[head:head+min(said, there)]))))
		r.Err = cmp.Or(r.Err, err)
	}
}

func (t *talk) fault(path string, data []byte, want string, got int) *wire.Error {
	return &wire.Error{Layer: t.schema.Name, Path: path, Offset: 1, Size: len(data), Want: want, Got: strconv.Itoa(got), Kind: wire.Malformed}
}

// The opcodes that name their sender, and those of state reports.
const (
	opJoinHello    = 0x01
	opJoinWelcome  = 0x02
	opTurnReport   = 0x08
	opBattleReport = 0x0c
)

// reads reports whether the session itself looks at the values of a message.
func reads(p *schema.Packet) bool {
	switch p.Opcode {
	case opJoinHello, opJoinWelcome, opTurnReport, opBattleReport:
		return true
	}
	return p.Secret()
}

// learn takes what a message says.
func (t *talk) learn(r *dissect.Record, from uint64) {
	switch r.Opcode {
	case opJoinHello, opJoinWelcome:
		id, _ := r.Body.Value("player_id")
		t.players.Name(id, string(r.Body.AppendText(nil, r.Body.Field("name"))), r.LastPacket())
	case opTurnReport, opBattleReport:
		t.reports.take(r, from)
	}
}
