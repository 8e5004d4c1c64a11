package sink

import (
	"io"
	"net/netip"
	"strconv"
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
	Width     int            // columns of a line; 0 for 120, negative without limit
	Color     bool
	Privacy
	// Immediate writes each record at once, for a terminal or a live capture.
	Immediate bool
	// Schema returns the schema of a protocol, nil for none. It names stream
	// modes; without it they are numbers.
	Schema func(protocol string) *schema.Protocol
}

// The columns of a line, counted from the end of the time.
const (
	sessionColumn  = 2
	routeColumn    = sessionColumn + 4 // "-> c2s udp"
	messageColumn  = routeColumn + 12
	sizeColumn     = messageColumn + 25 // right-aligned in sizeWidth
	sizeWidth      = 5
	sequenceColumn = sizeColumn + sizeWidth + 2
	ackColumn      = sequenceColumn + 11
	fieldsColumn   = ackColumn + 11
	// A stream has no sequences and no acknowledgements of its own: the fields of
	// a TCP record begin where those columns would.
	streamFieldsColumn = sequenceColumn
)

const (
	defaultWidth = 120
	minRoom      = 32 // columns of fields and notes, however narrow the line
	minFields    = 12 // columns that notes leave to the fields
	noLimit      = 1 << 30
)

// Text writes records as lines of text for a person to read. A line is cut,
// visibly, to the width; an error is never cut, and makes its line longer.
type Text struct {
	out     output
	o       TextOptions
	width   int
	ink     palette
	clock   clock
	redact  redactor
	modes   *schema.Enum // stream modes of the protocol in modesOf
	modesOf string
	value   []byte  // scratch: a text before it is escaped
	legend  []claim // of the dump
	passed  int     // entries of legend that end before the row of the dump
}

// NewText returns a sink that writes text to w.
func NewText(w io.Writer, o TextOptions) *Text {
	t := &Text{
		out:    output{w: w, immediate: o.Immediate},
		o:      o,
		width:  o.Width,
		clock:  clock{format: o.Time, location: o.Location},
		redact: redactor{Privacy: o.Privacy},
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

// Flush writes out what is buffered.
func (t *Text) Flush() error { return t.out.Flush() }

// Write writes one record.
func (t *Text) Write(r *dissect.Record) error {
	if t.out.err != nil {
		return t.out.err
	}
	t.redact.prepare(r)
	dst := t.out.buf
	start := len(dst)
	dst = t.clock.append(dst, r)
	l := &line{start: start, seen: start}
	l.origin = l.at(dst)
	dst = t.appendRoute(dst, l, r)
	switch {
	case r.Type != dissect.FrameRecord:
		dst = l.pad(dst, messageColumn)
		dst = t.appendHappening(dst, l, r)
	case t.o.Verbosity == 0:
		dst = t.appendColumns(dst, l, r)
		dst = t.appendFieldsAndNotes(dst, l, r)
	default:
		dst = t.appendColumns(dst, l, r)
		dst = t.appendDetails(append(dst, '\n'), r)
	}
	if dst[len(dst)-1] != '\n' {
		dst = append(dst, '\n')
	}
	if t.o.Hex && r.Type == dissect.FrameRecord {
		dst = t.appendDump(dst, r)
	}
	t.out.buf = dst
	return t.out.done()
}

// line counts the columns of one line in a buffer, each byte once.
type line struct {
	start, seen int // indices in the buffer: of the line, and of what is not yet counted
	width       int // columns up to seen
	origin      int // column at which the time ends
}

// at returns the column that the line has reached.
func (l *line) at(dst []byte) int {
	l.width += columns(dst[l.seen:])
	l.seen = len(dst)
	return l.width
}

// pad appends spaces up to a column counted from the origin, and at least one.
func (l *line) pad(dst []byte, column int) []byte {
	for n := l.origin + column - l.at(dst); n > 1; n-- {
		dst = append(dst, ' ')
	}
	return append(dst, ' ')
}

// cut shortens the line from an index on to a number of columns.
func (l *line) cut(dst []byte, from, limit int, off string) []byte {
	dst, was := cut(dst, from, limit, off)
	if was {
		l.seen, l.width = l.start, 0
	}
	return dst
}

// appendRoute appends session, direction and transport.
func (t *Text) appendRoute(dst []byte, l *line, r *dissect.Record) []byte {
	dst = append(dst, "  "...)
	if r.Session < 10 {
		dst = append(dst, ' ')
	}
	if r.Session > 0 {
		dst = strconv.AppendInt(dst, int64(r.Session), 10)
	} else {
		dst = append(dst, '-')
	}
	dst = l.pad(dst, routeColumn)
	dst = t.ink.direction[r.Direction].paint(dst, [...]string{"--    ", "-> c2s", "<- s2c"}[r.Direction])
	if r.Transport == 0 || r.Type == dissect.SessionRecord { // a session has several
		return dst
	}
	return append(append(dst, ' '), r.Transport.String()...)
}

// appendColumns appends message, size, sequence and acknowledgement.
func (t *Text) appendColumns(dst []byte, l *line, r *dissect.Record) []byte {
	dst = l.pad(dst, messageColumn)
	dst = append(dst, t.ink.message.on...)
	dst = appendEscaped(dst, r.Message)
	dst = append(dst, t.ink.message.off...)
	if r.Opcode >= 0 && !strings.HasPrefix(r.Message, "unknown(") {
		dst = appendOpcode(append(dst, ' '), uint64(r.Opcode))
	}
	digits := 1
	for n := r.Size; n >= 10; n /= 10 {
		digits++
	}
	dst = l.pad(dst, sizeColumn+sizeWidth-digits)
	dst = strconv.AppendInt(dst, int64(r.Size), 10)
	if e := r.Envelope; e.Mode >= 0 || e.Seq >= 0 {
		dst = t.appendSequence(l.pad(dst, sequenceColumn), r)
	}
	if r.Ack.State != dissect.AckNone {
		dst = append(l.pad(dst, ackColumn), r.Ack.State.String()...)
		if r.Ack.State == dissect.AckAcked && r.Ack.RTT >= 0 {
			dst = appendRTT(append(dst, ' '), r.Ack.RTT)
		}
	}
	return dst
}

// appendOpcode appends an opcode as facts and captures write it: 0x35, 0x0211.
func appendOpcode(dst []byte, v uint64) []byte {
	digits := 2
	for digits < 16 && v>>uint(4*digits) != 0 {
		digits += 2
	}
	dst = append(dst, "0x"...)
	for digits--; digits >= 0; digits-- {
		dst = append(dst, upperDigits[v>>uint(4*digits)&15])
	}
	return dst
}

// appendSequence appends the mode by its name, and the sequence: "latest 7".
func (t *Text) appendSequence(dst []byte, r *dissect.Record) []byte {
	switch mode := r.Envelope.Mode; {
	case mode < 0:
		dst = append(dst, "seq"...)
	default:
		dst = t.appendMode(dst, r.Protocol, mode)
	}
	if r.Envelope.Seq >= 0 {
		dst = strconv.AppendInt(append(dst, ' '), int64(r.Envelope.Seq), 10)
	}
	return dst
}

func (t *Text) appendMode(dst []byte, protocol string, mode int) []byte {
	if protocol != t.modesOf {
		t.modesOf, t.modes = strings.Clone(protocol), t.findModes(protocol)
	}
	if name := t.modes.NameOf(uint64(mode)); name != "" {
		return appendEscaped(dst, name)
	}
	return strconv.AppendInt(append(dst, "mode "...), int64(mode), 10)
}

func (t *Text) findModes(protocol string) *schema.Enum {
	if t.o.Schema == nil {
		return nil
	}
	p := t.o.Schema(protocol)
	if p == nil {
		return nil
	}
	for _, e := range p.Enums {
		if e.Name == "stream_mode" {
			return e
		}
	}
	return nil
}

// appendFieldsAndNotes appends what is left of a line, within the width. Notes
// keep their codes, fields take what they need of the rest, and what then is
// left goes to the texts of notes.
func (t *Text) appendFieldsAndNotes(dst []byte, l *line, r *dissect.Record) []byte {
	column := fieldsColumn
	if r.Transport == schema.TCP {
		column = streamFieldsColumn
	}
	dst = l.pad(dst, column)
	from := len(dst)
	begin := l.at(dst)
	room := max(minRoom, t.width-begin)
	codes := codeColumns(r.Notes)
	fields := room
	if codes > 0 {
		fields = max(minFields, room-len(gutter)-codes)
	}
	dst = t.appendFields(dst, l, fields, r)
	if codes > 0 {
		dst = gap(dst, from)
		start, left := len(dst), room-(l.at(dst)-begin)
		dst = l.cut(t.appendNotes(dst, r), start, left, t.ink.quiet.off)
	}
	if r.Err != nil {
		dst = t.appendFailure(gap(dst, from), r)
	}
	return trimRight(dst)
}

// codeColumns returns the columns that notes take when their texts are cut.
func codeColumns(notes []dissect.Note) int {
	n := 0
	for i := range notes {
		if n += len("! ") + len(notes[i].Code); notes[i].Text != "" {
			n += len(": ")
		}
		if i > 0 {
			n += len(gutter)
		}
	}
	return n
}

// gutter stands between fields, notes and errors.
const gutter = "  "

// gap appends the gutter, unless nothing stands before it.
func gap(dst []byte, from int) []byte {
	if len(dst) == from {
		return dst
	}
	return append(dst, gutter...)
}

// trimRight removes the spaces at the end of a line.
func trimRight(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] == ' ' {
		b = b[:len(b)-1]
	}
	return b
}

// appendFields appends the fields of a record on one line, in at most limit
// columns.
func (t *Text) appendFields(dst []byte, l *line, limit int, r *dissect.Record) []byte {
	from, end := len(dst), l.at(dst)+limit
	body := &r.Body
	for i := 0; i < len(body.Nodes) && l.at(dst) <= end; i = body.Next(i) {
		n := &body.Nodes[i]
		if !shown(n) {
			continue
		}
		if len(dst) > from {
			dst = append(dst, ' ')
		}
		dst = append(t.ink.name.paint(dst, nameOf(n)), '=')
		dst = t.appendShort(dst, body, i, min(lineText, end-l.at(dst)))
	}
	if len(r.Rest) > 0 || t.redact.rest {
		dst = t.appendRest(dst, l, r, end)
	}
	if r.Acks.Packet > 0 {
		dst = appendAcks(gap(dst, from), &r.Acks)
	}
	if r.Packet != nil && r.Err == nil && len(r.Packet.Teaches) > 0 {
		dst = append(gap(dst, from), "teaches"...)
		for _, table := range r.Packet.Teaches {
			dst = appendEscaped(append(dst, ' '), table)
		}
	}
	return l.cut(dst, from, limit, t.ink.name.off)
}

// appendAcks appends what an acknowledgement is for, and when that was sent:
// "acks VIEWPOINT_INFO 7 (packet 12, 41ms)".
func appendAcks(dst []byte, a *dissect.Acks) []byte {
	dst = appendEscaped(append(dst, "acks "...), a.Message)
	dst = strconv.AppendInt(append(dst, ' '), int64(a.Seq), 10)
	dst = strconv.AppendInt(append(dst, " (packet "...), int64(a.Packet), 10)
	if a.RTT >= 0 {
		dst = appendRTT(append(dst, ", "...), a.RTT)
	}
	return append(dst, ')')
}

// appendRest appends the bytes after the last field, or the body of a record
// that nobody can decode.
func (t *Text) appendRest(dst []byte, l *line, r *dissect.Record, end int) []byte {
	if dst[len(dst)-1] != ' ' {
		dst = append(dst, ' ')
	}
	name := "rest"
	if isUndecoded(r) {
		name = "body"
	}
	dst = append(t.ink.name.paint(dst, name), '=')
	if t.redact.rest {
		return append(dst, masked...)
	}
	return appendShortHex(dst, r.Rest, end-l.at(dst))
}

// isUndecoded reports whether the record's whole body is in Rest.
func isUndecoded(r *dissect.Record) bool {
	for _, n := range r.Notes {
		if n.Code == "unknown_body" || n.Code == "unknown_opcode" || n.Code == "raw_fallback" {
			return len(r.Body.Nodes) == 0
		}
	}
	return false
}

// shortHex is how many bytes of hex a line shows when it has the room.
const shortHex = 16

// appendShortHex appends bytes as hex; when they take more than limit columns,
// or are many, the first ones and their number.
func appendShortHex(dst, b []byte, limit int) []byte {
	if len(b) <= shortHex && 2*len(b) <= max(limit, 8) {
		return appendHex(dst, b)
	}
	shown := min(len(b), shortHex, max(4, (limit-len("… (10,000 bytes)"))/2))
	dst = append(appendHex(dst, b[:shown]), "… ("...)
	return append(appendCount(dst, int64(len(b))), " bytes)"...)
}

// appendShort appends the value of node i in the short form of a line. A text
// that takes more than limit columns is cut, with its length.
func (t *Text) appendShort(dst []byte, body *schema.Tree, i, limit int) []byte {
	n := &body.Nodes[i]
	if t.redact.hidesNode(n) {
		return append(dst, masked...)
	}
	switch n.Kind {
	case schema.Struct:
		return t.appendShortStruct(dst, body, i)
	case schema.Array:
		return t.appendShortArray(dst, body, i)
	case schema.Text, schema.String:
		return t.appendQuoted(dst, body, i, limit)
	case schema.Bytes:
		t.value = body.AppendBytes(t.value[:0], i)
		return appendShortHex(dst, t.value, limit)
	case schema.Float:
		if n.Field == nil || n.Field.Scale == 0 {
			return appendRounded(dst, n.Float(), n.Field != nil && n.Field.Single)
		}
	}
	return t.appendScalar(dst, body, i)
}

// appendScalar appends a number, GUID, address or missing value in full, with
// the names that its enum or flags give it.
func (t *Text) appendScalar(dst []byte, body *schema.Tree, i int) []byte {
	n := &body.Nodes[i]
	switch n.Kind {
	case schema.Null:
		return append(dst, '-')
	case schema.GUID:
		t.value = body.AppendBytes(t.value[:0], i)
		return appendGUID(dst, t.value)
	case schema.IPv4:
		return appendIPv4(dst, n.Num)
	}
	f := n.Field
	switch {
	case f == nil:
		return appendNumber(dst, n, false)
	case f.Scale != 0:
		return strconv.AppendFloat(dst, n.Float()*f.Scale, 'g', 12, 64)
	case f.Hex && n.Kind == schema.Uint, f.Flags != nil:
		dst = appendHexNumber(dst, n.Num)
	default:
		dst = appendNumber(dst, n, f.Single)
	}
	if name := f.Enum.NameOf(n.Num); name != "" {
		dst = append(appendEscaped(append(dst, " ("...), name), ')')
	}
	if f.Flags != nil && n.Num != 0 {
		dst = append(appendFlags(append(dst, " ("...), f.Flags, n.Num), ')')
	}
	return dst
}

// appendNumber appends the number of a node, as NDJSON has it.
func appendNumber(dst []byte, n *schema.Node, single bool) []byte {
	switch n.Kind {
	case schema.Float:
		return appendFloat(dst, n.Float(), single)
	case schema.Int:
		return strconv.AppendInt(dst, int64(n.Num), 10)
	}
	return strconv.AppendUint(dst, n.Num, 10)
}

// A short text is always shown, and its length stands behind what is cut.
const (
	minText  = 8
	lineText = 64  // columns of a text on a line
	pageText = 256 // columns of a text in the details
)

// appendQuoted appends a text, escaped and in quotes, in at most limit columns.
func (t *Text) appendQuoted(dst []byte, body *schema.Tree, i, limit int) []byte {
	t.value = body.AppendText(t.value[:0], i)
	start := len(dst)
	dst = append(dst, '"')
	limit = max(minText, limit-len(`""`))
	var n int
	dst, n = appendEscapedUpTo(dst, t.value, limit)
	if n == len(t.value) {
		return append(dst, '"')
	}
	limit = max(minText, limit-len("… (10,000 bytes)"))
	dst, _ = appendEscapedUpTo(dst[:start+1], t.value, limit)
	dst = append(dst, `…" (`...)
	return append(appendCount(dst, int64(len(t.value))), " bytes)"...)
}

// shortMembers is how many members of a struct or array a line shows; larger
// ones are only counted.
const shortMembers = 4

// appendShortArray appends an array: a few numbers as (1.5, 2, 3), anything
// else as the number of its elements.
func (t *Text) appendShortArray(dst []byte, body *schema.Tree, i int) []byte {
	count, numbers := 0, true
	for k := i + 1; k < body.Next(i); k = body.Next(k) {
		count++
		switch body.Nodes[k].Kind {
		case schema.Uint, schema.Int, schema.Float, schema.IPv4:
			numbers = numbers && !t.redact.hidesNode(&body.Nodes[k])
		default:
			numbers = false
		}
	}
	if count == 0 || !numbers || count > shortMembers {
		return strconv.AppendInt(dst, int64(count), 10)
	}
	dst = append(dst, '(')
	for k := i + 1; k < body.Next(i); k = body.Next(k) {
		if k > i+1 {
			dst = append(dst, ", "...)
		}
		dst = t.appendShort(dst, body, k, minText)
	}
	return append(dst, ')')
}

// appendShortStruct appends a struct: a few values as {x=1 y=2}, anything else
// as the number of its fields.
func (t *Text) appendShortStruct(dst []byte, body *schema.Tree, i int) []byte {
	count, flat := 0, true
	for k := i + 1; k < body.Next(i); k = body.Next(k) {
		if shown(&body.Nodes[k]) {
			count++
			flat = flat && body.Nodes[k].Size == 0
		}
	}
	if !flat || count > shortMembers {
		dst = strconv.AppendInt(append(dst, '{'), int64(count), 10)
		return append(dst, " fields}"...)
	}
	dst = append(dst, '{')
	for k := i + 1; k < body.Next(i); k = body.Next(k) {
		n := &body.Nodes[k]
		if !shown(n) {
			continue
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ' ')
		}
		dst = append(append(dst, nameOf(n)...), '=')
		dst = t.appendShort(dst, body, k, minText)
	}
	return append(dst, '}')
}

// appendNotes appends the notes of a record on one line.
func (t *Text) appendNotes(dst []byte, r *dissect.Record) []byte {
	for i := range r.Notes {
		if i > 0 {
			dst = append(dst, gutter...)
		}
		dst = t.appendNote(dst, &r.Notes[i])
	}
	return dst
}

// appendNote appends "! retransmission: same bytes as packet 11".
func (t *Text) appendNote(dst []byte, n *dissect.Note) []byte {
	k := t.ink.severity[dissect.SeverityOf(n.Code)]
	dst = append(append(dst, k.on...), "! "...)
	dst = appendEscaped(dst, n.Code)
	if n.Text != "" {
		dst = appendEscaped(append(dst, ": "...), t.redact.clean(n.Text))
	}
	return append(dst, k.off...)
}

// appendFailure appends the error of a record as wire.Error has it, after "!!".
func (t *Text) appendFailure(dst []byte, r *dissect.Record) []byte {
	dst = append(append(dst, t.ink.failure.on...), "!! "...)
	dst = t.redact.appendError(dst, r)
	return append(dst, t.ink.failure.off...)
}

// appendHappening appends what stands between dashes on the line of a record
// that is no frame.
func (t *Text) appendHappening(dst []byte, l *line, r *dissect.Record) []byte {
	k := t.ink.quiet
	if r.Type == dissect.GapRecord {
		k = t.ink.severity[dissect.Warning]
	}
	dst = append(append(dst, k.on...), "-- "...)
	from, room := len(dst), max(minRoom, t.width-l.at(dst)-len(" --"))
	switch r.Type {
	case dissect.GapRecord:
		dst = appendGap(dst, r)
	case dissect.AckRecord:
		dst = appendLateAck(dst, r)
	case dissect.SessionRecord:
		dst = appendSession(dst, r)
	case dissect.EventRecord:
		dst = appendEscaped(dst, r.Code)
		if r.Text != "" {
			dst = appendEscaped(append(dst, ": "...), t.redact.clean(r.Text))
		}
	}
	dst = l.cut(dst, from, room, "")
	return append(append(dst, " --"...), k.off...)
}

// appendGap appends "gap: 1,448 bytes not captured between packets 77 and 81".
func appendGap(dst []byte, r *dissect.Record) []byte {
	dst = appendCount(append(dst, "gap: "...), r.Bytes)
	if r.Bytes == 1 {
		dst = append(dst, " byte not captured"...)
	} else {
		dst = append(dst, " bytes not captured"...)
	}
	switch {
	case r.After > 0 && r.Before > 0:
		dst = strconv.AppendInt(append(dst, " between packets "...), int64(r.After), 10)
		dst = strconv.AppendInt(append(dst, " and "...), int64(r.Before), 10)
	case r.After > 0:
		dst = strconv.AppendInt(append(dst, " after packet "...), int64(r.After), 10)
	case r.Before > 0:
		dst = strconv.AppendInt(append(dst, " before packet "...), int64(r.Before), 10)
	}
	if r.Text != "" {
		dst = appendEscaped(append(dst, "; "...), r.Text)
	}
	return dst
}

// appendLateAck appends "ack: record 17 acked by packet 14 after 41ms".
func appendLateAck(dst []byte, r *dissect.Record) []byte {
	dst = strconv.AppendInt(append(dst, "ack: record "...), int64(r.Acked), 10)
	dst = append(dst, " acknowledged"...)
	if r.Ack.By > 0 {
		dst = strconv.AppendInt(append(dst, " by packet "...), int64(r.Ack.By), 10)
	}
	if r.Ack.RTT >= 0 {
		dst = appendRTT(append(dst, " after "...), r.Ack.RTT)
	}
	return dst
}

// appendSession appends "session: wulfram opened, 10.0.0.2:50111 -> 10.0.0.1:2627".
func appendSession(dst []byte, r *dissect.Record) []byte {
	dst = append(dst, "session:"...)
	if r.Protocol != "" {
		dst = appendEscaped(append(dst, ' '), r.Protocol)
	}
	if r.Code != "" {
		dst = appendEscaped(append(dst, ' '), r.Code)
	}
	if r.Client.IsValid() || r.Server.IsValid() {
		dst = appendAddress(append(dst, ", "...), r.Client)
		dst = appendAddress(append(dst, " -> "...), r.Server)
	}
	if r.Text != "" {
		dst = appendEscaped(append(dst, "; "...), r.Text)
	}
	return dst
}

// appendAddress appends an endpoint, "?" for one not known.
func appendAddress(dst []byte, a netip.AddrPort) []byte {
	if !a.IsValid() {
		return append(dst, '?')
	}
	if a.Addr().Zone() != "" {
		return appendEscaped(dst, a.String())
	}
	return a.AppendTo(dst)
}
