package sink

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"time"

	"opscope/dissect"
	"opscope/schema"
)

// TextOptions say what the text sink shows. The zero TextOptions show one line
// a record, 120 columns wide, in local time, without colour, secrets masked.
type TextOptions struct {
	// Verbosity is 0 for a line a record, 1 for a line a field besides with the
	// envelope, 2 for everything: fields without meaning, types, sources, places
	// and bits on the wire, and texts in full length.
	Verbosity int
	Hex       bool // the bytes of each record, marked with its fields
	Time      TimeFormat
	Location  *time.Location // of local times; nil for the system's
	Timeless  bool           // leave the time out, for what has one of its own
	Width     int            // columns of a line; 0 for 120, negative without limit
	Color     bool
	dissect.Privacy
	// Sides tells the sides of a session apart by their place, too: what the server
	// says stands further right. All records are then of one session, whose number is
	// left out.
	Sides bool
	// Immediate writes each record at once, for a terminal or a live capture.
	Immediate bool
	// Schema returns the schema of a protocol, nil for none. It names stream
	// modes; without it they are numbers.
	Schema func(protocol string) *schema.Protocol
}

// The columns of a line, counted from the end of the time. The last two are left
// out where they are empty: fields begin behind the last column that is in use.
const (
	sessionColumn  = 2
	routeColumn    = sessionColumn + 4 // "-> c2s udp"
	messageColumn  = routeColumn + 12
	sizeColumn     = messageColumn + 25 // right-aligned in sizeWidth
	sizeWidth      = 5
	sequenceColumn = sizeColumn + sizeWidth + 2
	ackColumn      = sequenceColumn + 11
	fieldsColumn   = ackColumn + 12
)

const (
	defaultWidth = 120
	minRoom      = 28 // columns of fields and notes, however narrow the line; 120 have them behind a time in nanoseconds
	noLimit      = 1 << 30
	sideIndent   = 8 // of what the server says, with Sides
)

// Text writes records as lines of text for a person to read. A line is cut, visibly, to
// the width, but for minRoom columns that it always has behind the others. What it leaves
// out, more Verbosity shows.
type Text struct {
	out    output
	o      TextOptions
	width  int
	ink    palette
	clock  clock
	redact dissect.Redactor

	// The line that is being written. A byte of it is a column, but for those in
	// hidden: escape strings, and what UTF-8 needs beyond the columns of a rune.
	start  int // index in the buffer
	origin int // column at which the time ends
	margin int // columns that the record stands further right
	hidden int

	kinds        kinds
	protocol     string           // of the line before
	modes        *schema.Enum     // its stream modes
	opcodeDigits int              // of its opcodes, 0 before any line
	readings     []schema.Reading // scratch
	packed       []uint64         // scratch
	value        []byte           // scratch: a text before it is escaped
	legend       []claim          // of the dump
	passed       int              // entries of legend that end before the row of the dump
	path         path             // of the last entry of legend that was shown
}

// NewText returns a sink that writes text to w.
func NewText(w io.Writer, o TextOptions) *Text {
	t := &Text{
		out:    output{w: w, immediate: o.Immediate},
		o:      o,
		width:  o.Width,
		clock:  clock{format: o.Time, location: o.Location},
		redact: dissect.Redactor{Privacy: o.Privacy},
	}
	switch {
	case o.Width == 0:
		t.width = defaultWidth
	case o.Width < 0:
		t.width = noLimit
	}
	if o.Color {
		t.ink = newPalette()
	}
	return t
}

// Anew begins another capture: differences of time begin anew.
func (t *Text) Anew() { t.clock.first, t.clock.last = time.Time{}, time.Time{} }

// Flush writes out what is buffered.
func (t *Text) Flush() error { return t.out.Flush() }

// Write writes one record.
func (t *Text) Write(r *dissect.Record) error {
	if t.out.err != nil {
		return t.out.err
	}
	if r.Envelope.First > 0 && t.o.Verbosity < full {
		return nil // its first record counts it
	}
	t.redact.Prepare(r)
	dst := t.begin(t.out.buf, r)
	switch {
	case r.Type != dissect.FrameRecord:
		dst = append(t.appendHappening(dst, r), '\n')
	case t.o.Verbosity == 0:
		dst = append(t.appendTail(t.appendColumns(dst, r), r), '\n')
	default:
		dst = append(t.appendColumns(dst, r), '\n')
	}
	if r.Type == dissect.FrameRecord {
		dst = t.appendBelow(dst, r)
	}
	t.out.buf = dst
	return t.out.done()
}

// appendBelow appends the lines under a record's first one, as far right as that.
func (t *Text) appendBelow(dst []byte, r *dissect.Record) []byte {
	from := len(dst)
	t.width -= t.margin
	if t.o.Verbosity > 0 {
		dst = t.appendDetails(dst, r)
	}
	if t.o.Hex {
		dst = t.appendDump(dst, r)
	}
	t.width += t.margin
	if t.margin == 0 {
		return dst
	}
	for i := from; i < len(dst); {
		dst = slices.Insert(dst, i, []byte(spaces[:t.margin])...)
		i += bytes.IndexByte(dst[i:], '\n') + 1
	}
	return dst
}

// Clean returns a text about a record as a line shows it: escaped, and masked where it
// repeats what is masked.
func (t *Text) Clean(r *dissect.Record, text string) string {
	t.redact.Prepare(r)
	return Escape(t.redact.Clean(text))
}

// begin begins a line with time, session, direction and transport.
func (t *Text) begin(dst []byte, r *dissect.Record) []byte {
	t.start, t.hidden, t.margin = len(dst), 0, 0
	if !t.o.Timeless {
		dst = t.clock.append(dst, r)
	}
	t.origin = t.column(dst)
	if t.o.Sides {
		if r.Direction == dissect.ServerToClient {
			t.margin = sideIndent
		}
		t.origin += t.margin - (routeColumn - sessionColumn)
	} else {
		dst = appendSessionOf(append(dst, "  "...), r)
	}
	if r.Type == dissect.SessionRecord { // has both directions, and several transports
		return dst
	}
	dst = t.paint(t.pad(dst, routeColumn), t.ink.direction[r.Direction], [...]string{"--    ", "-> c2s", "<- s2c"}[r.Direction])
	if r.Transport == 0 {
		return dst
	}
	return append(append(dst, ' '), r.Transport.String()...)
}

// appendSessionOf appends the number of a record's session, "-" for none.
func appendSessionOf(dst []byte, r *dissect.Record) []byte {
	if r.Session < 10 {
		dst = append(dst, ' ')
	}
	if r.Session > 0 {
		return appendInt(dst, int64(r.Session))
	}
	return append(dst, '-')
}

// column returns the column that the line has reached.
func (t *Text) column(dst []byte) int { return len(dst) - t.start - t.hidden }

// spaces is as many as the columns that may stay empty.
const spaces = "                                                                                "

// pad appends spaces up to a column counted from the origin, and at least one.
func (t *Text) pad(dst []byte, column int) []byte {
	n := t.origin + column - t.column(dst)
	return append(dst, spaces[:min(max(n, 1), len(spaces))]...)
}

// paint appends text in an ink. The text is the sink's own, in ASCII.
func (t *Text) paint(dst []byte, k ink, text string) []byte {
	if k.on == "" {
		return append(dst, text...)
	}
	t.hidden += len(k.on) + len(k.off)
	return append(append(append(dst, k.on...), text...), k.off...)
}

// escaped appends text that is not the sink's own.
func (t *Text) escaped(dst []byte, text string) []byte {
	if plainRun(text) == len(text) {
		return append(dst, text...)
	}
	start := len(dst)
	dst = appendEscaped(dst, text)
	t.hidden += len(dst) - start - columns(dst[start:])
	return dst
}

// ellipsis appends the mark of what is left out.
func (t *Text) ellipsis(dst []byte) []byte {
	t.hidden += len(ellipsis) - 1
	return append(dst, ellipsis...)
}

// appendColumns appends message, size, sequence and acknowledgement.
func (t *Text) appendColumns(dst []byte, r *dissect.Record) []byte {
	dst = t.appendMessage(t.pad(dst, messageColumn), r)
	digits := 1
	for n := r.Size; n >= 10; n /= 10 {
		digits++
	}
	dst = t.pad(dst, sizeColumn+sizeWidth-digits)
	dst = appendInt(dst, int64(r.Size))
	if sequenced(r) {
		dst = t.appendSequence(t.pad(dst, sequenceColumn), r)
	}
	if r.Envelope.Copies > 0 {
		dst = appendInt(append(t.pad(dst, ackColumn), "copies: "...), int64(r.Envelope.Copies))
	}
	if r.Ack.State != dissect.AckNone {
		dst = append(t.pad(dst, ackColumn), r.Ack.State.String()...)
		if r.Ack.State == dissect.AckAcked && r.Ack.RTT >= 0 {
			dst = appendRTT(append(dst, ' '), r.Ack.RTT)
		}
	}
	return dst
}

// appendMessage appends the message of a record with its opcode.
func (t *Text) appendMessage(dst []byte, r *dissect.Record) []byte {
	k, same := t.kinds.of(r)
	if !same {
		hidden := t.hidden
		k.text = append(k.text, t.ink.message.on...)
		k.text = append(t.escaped(k.text, r.Message), t.ink.message.off...)
		if r.Opcode >= 0 && !strings.HasPrefix(r.Message, "unknown(") {
			k.text = t.appendOpcodeOf(append(k.text, ' '), r)
		}
		k.hidden = t.hidden - hidden + len(t.ink.message.on) + len(t.ink.message.off)
		t.hidden = hidden
	}
	t.hidden += k.hidden
	return append(dst, k.text...)
}

// sequenced reports whether the column of the sequence is in use.
func sequenced(r *dissect.Record) bool { return r.Envelope.Mode >= 0 || r.Envelope.Seq >= 0 }

// appendOpcodeOf appends the opcode of a record, as wide as those of its protocol.
func (t *Text) appendOpcodeOf(dst []byte, r *dissect.Record) []byte {
	t.learnProtocol(r.Protocol)
	return appendWideOpcode(dst, uint64(r.Opcode), t.opcodeDigits)
}

// appendOpcode appends an opcode as facts and captures write it: 0x35, 0x0211.
func appendOpcode(dst []byte, v uint64) []byte { return appendWideOpcode(dst, v, 2) }

// appendWideOpcode appends an opcode of at least so many digits.
func appendWideOpcode(dst []byte, v uint64, digits int) []byte {
	for digits < 16 && v>>uint(4*digits) != 0 {
		digits += 2
	}
	dst = append(dst, "0x"...)
	for digits--; digits >= 0; digits-- {
		dst = append(dst, upperDigits[v>>uint(4*digits)&15])
	}
	return dst
}

// appendSequence appends the mode by its name, and the sequence: "latest 7", or
// "latest? 7" where no packet taught the mode. A name that leaves the sequence no room
// in its column is cut: "or…? 65529".
func (t *Text) appendSequence(dst []byte, r *dissect.Record) []byte {
	t.value = t.value[:0]
	if o := r.Envelope.Origin; r.Envelope.Mode >= 0 && (o == schema.Default || o == schema.Guessed) {
		t.value = append(t.value, '?')
	}
	if r.Envelope.Seq >= 0 {
		t.value = appendInt(append(t.value, ' '), int64(r.Envelope.Seq))
	}
	from, hidden := len(dst), t.hidden
	switch mode := r.Envelope.Mode; {
	case mode < 0 && r.Head.Field("slot") >= 0:
		dst = append(dst, "slot"...)
	case mode < 0:
		dst = append(dst, "seq"...)
	default:
		dst = t.appendMode(dst, r.Protocol, mode)
	}
	const room, leastMode = ackColumn - sequenceColumn - 1, 2
	if limit := max(room-len(t.value), leastMode); t.o.Verbosity == 0 && len(dst)-from > limit {
		dst, _ = cut(dst, from, limit)
		t.hidden = hidden + len(dst) - from - columns(dst[from:])
	}
	return append(dst, t.value...)
}

func (t *Text) appendMode(dst []byte, protocol string, mode int) []byte {
	t.learnProtocol(protocol)
	if name := t.modes.NameOf(uint64(mode)); name != "" {
		return t.escaped(dst, name)
	}
	return appendInt(append(dst, "mode "...), int64(mode))
}

// learnProtocol looks up what the lines of a protocol's records need of its schema.
func (t *Text) learnProtocol(protocol string) {
	if protocol == t.protocol && t.opcodeDigits > 0 {
		return
	}
	t.protocol, t.modes, t.opcodeDigits = strings.Clone(protocol), nil, 2
	if t.o.Schema == nil {
		return
	}
	if p := t.o.Schema(protocol); p != nil {
		t.modes, t.opcodeDigits = findModes(p), max(2, (p.OpcodeBits+7)/8*2)
	}
}

func findModes(p *schema.Protocol) *schema.Enum {
	for _, e := range p.Enums {
		if e.Name == "stream_mode" {
			return e
		}
	}
	return nil
}
