package sink

import (
	"slices"
	"strings"

	"opscope/dissect"
	"opscope/schema"
)

// gutter stands between fields, notes and errors.
const gutter = "  "

// appendTail appends what a line says of the record's body, behind the columns.
func (t *Text) appendTail(dst []byte, r *dissect.Record) []byte {
	dst = t.pad(dst, tailColumn(r))
	return t.appendContent(dst, r, max(t.origin+tailColumn(r)+minRoom, t.width), t.origin+messageColumn)
}

// appendContent appends fields, notes and the error of a record, up to a column. An error
// that finds no room has a line of its own, and stands so far in there, if it can. A plan
// shares out the room; what then is left goes to the texts of notes.
func (t *Text) appendContent(dst []byte, r *dissect.Record, end, inset int) []byte {
	from := len(dst)
	p := t.share(r, end-t.column(dst))
	end -= p.failure
	dst = t.appendFields(dst, r, end-p.codes)
	for i := range r.Notes {
		n := &r.Notes[i]
		if said(r, n) || p.notes == 0 {
			continue
		}
		p.notes--
		p.codes -= codeWidth(n)
		dst = t.appendNote(gap(dst, from), n, end-p.codes)
	}
	if p.more > 0 {
		dst = appendInt(append(gap(dst, from), "! +"...), int64(p.more))
	}
	switch {
	case p.failure > 0:
		dst = t.appendFailure(gap(dst, from), r, noLimit)
	case r.Err != nil:
		dst = append(trimRight(dst, t.start), '\n')
		t.start, t.hidden = len(dst), 0
		inset = min(inset, max(t.width-t.failureWidth(r), leastIndent), len(spaces))
		dst = t.appendFailure(append(dst, spaces[:inset]...), r, t.width)
	}
	return trimRight(dst, t.start)
}

// leastIndent is how far an error on a line of its own stands in.
const leastIndent = 4

// plan is who gets which columns of a line behind its columns proper.
type plan struct {
	notes   int // that are shown, at least by their codes
	more    int // that are only counted: "! +2"
	codes   int // columns of both
	failure int // columns of the error, 0 where it stands below
}

const (
	moreWidth   = len(gutter) + len("! +10")
	leastFields = 12 // columns that an error leaves to fields
)

// share shares out the room of a line: the error comes first, if it has room beside all
// notes, then codes of notes, then fields. Codes that leave no room to fields need no
// gutter in front.
func (t *Text) share(r *dissect.Record, room int) (p plan) {
	if r.Err != nil {
		need := len(gutter) + t.failureWidth(r)
		for i := range r.Notes {
			if n := &r.Notes[i]; !said(r, n) {
				need += codeWidth(n)
			}
		}
		if len(r.Body.Nodes) > 0 || len(r.Rest) > 0 {
			need += leastFields
		}
		if need <= room {
			p.failure = len(gutter) + t.failureWidth(r)
		}
	}
	room -= p.failure
	for i := range r.Notes {
		n := &r.Notes[i]
		if said(r, n) {
			continue
		}
		if width := codeWidth(n); p.more == 0 && p.codes+width <= len(gutter)+room {
			p.codes += width
			p.notes++
			continue
		}
		p.more++
	}
	for p.more > 0 && p.notes > 0 && p.codes+moreWidth > len(gutter)+room {
		p.drop(r)
	}
	if p.more > 0 {
		p.codes += moreWidth
	}
	return p
}

// failureWidth returns the columns of the record's error with its mark.
func (t *Text) failureWidth(r *dissect.Record) int {
	t.value = appendError(t.value[:0], r, &t.redact)
	return len("!! ") + columns(t.value)
}

// drop takes the last note that is shown for one that is only counted.
func (p *plan) drop(r *dissect.Record) {
	at := 0
	for i := range r.Notes {
		if said(r, &r.Notes[i]) {
			continue
		}
		if at++; at == p.notes {
			p.codes -= codeWidth(&r.Notes[i])
		}
	}
	p.notes--
	p.more++
}

// tailColumn returns the first column that the record leaves empty.
func tailColumn(r *dissect.Record) int {
	switch {
	case r.Ack.State != dissect.AckNone, r.Envelope.Copies > 0:
		return fieldsColumn
	case sequenced(r):
		return ackColumn
	}
	return sequenceColumn
}

// said reports whether the line says already what a note says: in its columns, or by the
// marks of what is guessed.
func said(r *dissect.Record, n *dissect.Note) bool {
	switch n.Code {
	case "never_acknowledged":
		return r.Ack.State == dissect.AckUnacked
	case "unknown_body":
		return len(r.Body.Nodes) > 0 && marked(&r.Body.Nodes[0], schema.Unmatched)
	}
	return false
}

// codeWidth returns the columns of a note without its text.
func codeWidth(n *dissect.Note) int { return len(gutter) + len("! ") + len(n.Code) }

// gap appends the gutter, unless nothing stands before it.
func gap(dst []byte, from int) []byte {
	if len(dst) == from {
		return dst
	}
	return append(dst, gutter...)
}

// trimRight removes the spaces at the end of a line, from an index on.
func trimRight(b []byte, from int) []byte {
	for len(b) > from && b[len(b)-1] == ' ' {
		b = b[:len(b)-1]
	}
	return b
}

// appendFields appends the fields of a record on one line, up to a column: first
// what the record means for others, which is what one looks for.
func (t *Text) appendFields(dst []byte, r *dissect.Record, end int) []byte {
	from, begin := len(dst), t.column(dst)
	if end <= begin {
		return dst
	}
	if names(&r.Acks) {
		dst = t.appendAcks(dst, &r.Acks, end)
	}
	if teaches(r) {
		dst = t.appendTeaches(gap(dst, from), r)
	}
	dst = gap(dst, from)
	body := &r.Body
	for i := 0; i < len(body.Nodes); i = body.Next(i) {
		n := &body.Nodes[i]
		if !shown(n) || repeats(n, &r.Acks) {
			continue
		}
		if t.column(dst)+len(nameOf(n))+len("=") >= end {
			return t.fit(t.ellipsis(dst), from, begin, end)
		}
		dst = t.appendName(dst, n)
		if marked(n, schema.Unmatched) {
			dst = append(dst, '?')
		}
		dst = append(dst, '=')
		dst = append(t.appendShort(dst, body, i, min(lineText, end-t.column(dst))), ' ')
	}
	if len(r.Rest) > 0 || t.redact.HidesRest() {
		dst = append(t.appendRest(dst, r, end), ' ')
	}
	return t.fit(trimRight(dst, from), from, begin, end)
}

// fit cuts the line from an index on, if need be, where the line has this column,
// so that it ends before another.
func (t *Text) fit(dst []byte, from, column, end int) []byte {
	if t.column(dst) <= end {
		return dst
	}
	dst, left := cut(dst, from, end-column)
	dst = append(dst, t.ink.name.off...) // the cut may have left it on
	t.hidden = len(dst) - t.start - column - left
	return dst
}

// appendName appends the name of a node.
func (t *Text) appendName(dst []byte, n *schema.Node) []byte {
	if n.Field != nil && n.Field.Key != "" {
		return t.paint(dst, t.ink.name, n.Field.Name) // is plain
	}
	t.hidden += len(t.ink.name.on) + len(t.ink.name.off)
	return append(t.escaped(append(dst, t.ink.name.on...), nameOf(n)), t.ink.name.off...)
}

// names reports whether an acknowledgement names what it is for.
func names(a *dissect.Acks) bool { return a.Message != "" }

// repeats reports whether a field says what the acknowledgement does: which
// message it is for, or which sequence.
func repeats(n *schema.Node, a *dissect.Acks) bool {
	if !names(a) || n.Field == nil || n.Kind != schema.Uint {
		return false
	}
	if n.Field.Enum != nil {
		return n.Field.Enum.NameOf(n.Num) == a.Message
	}
	return a.Seq >= 0 && n.Num == uint64(a.Seq) && strings.Contains(n.Field.Name, "seq")
}

// appendAcks appends what an acknowledgement is for, and where that was sent, as
// far as there is room: "acks VIEWPOINT_INFO 7 (packet 12, 41ms)".
func (t *Text) appendAcks(dst []byte, a *dissect.Acks, end int) []byte {
	dst = t.escaped(append(dst, "acks "...), a.Message)
	if a.Seq >= 0 {
		dst = appendInt(append(dst, ' '), int64(a.Seq))
	}
	if a.Packet <= 0 {
		return dst
	}
	start := len(dst)
	dst = appendInt(append(dst, " (packet "...), int64(a.Packet))
	bare := len(dst)
	switch {
	case a.RTT >= 0:
		dst = appendRTT(append(dst, ", "...), a.RTT)
	case a.Verdict != dissect.AcksNew:
		dst = append(append(dst, ", "...), a.Verdict.String()...)
	}
	if t.column(dst) >= end {
		dst = dst[:bare]
	}
	if t.column(dst) >= end {
		return dst[:start]
	}
	return append(dst, ')')
}

// teaches reports whether later records are decoded with what this one says.
func teaches(r *dissect.Record) bool {
	p := r.Packet
	return p != nil && r.Err == nil && len(p.Teaches) > 0 && (p.From == schema.AnySender || p.From == r.Direction.Sender())
}

func (t *Text) appendTeaches(dst []byte, r *dissect.Record) []byte {
	dst = append(dst, "teaches"...)
	for _, table := range r.Packet.Teaches {
		dst = t.escaped(append(dst, ' '), table)
	}
	return dst
}

// appendRest appends the bytes after the last field, or the body of a record
// that nobody can decode.
func (t *Text) appendRest(dst []byte, r *dissect.Record, end int) []byte {
	dst = append(t.paint(dst, t.ink.name, restName(r)), '=')
	if t.redact.HidesRest() {
		return append(dst, dissect.MaskText...)
	}
	return t.appendShortHex(dst, r.Rest, end-t.column(dst))
}

// restName returns "body" when all of the record's body was left over.
func restName(r *dissect.Record) string {
	if len(r.Body.Nodes) > 0 {
		return "rest"
	}
	for i := range r.Notes {
		switch r.Notes[i].Code {
		case "unknown_body", "unknown_opcode", "raw_fallback":
			return "body"
		}
	}
	return "rest"
}

// appendNote appends "! retransmission: same bytes as packet 11"; the text up to
// a column, or not at all where it has no room.
func (t *Text) appendNote(dst []byte, n *dissect.Note, end int) []byte {
	k := t.ink.severity[dissect.SeverityOf(n.Code)]
	t.hidden += len(k.on)
	dst = t.escaped(append(append(dst, k.on...), "! "...), n.Code)
	if room := end - t.column(dst) - len(": "); n.Text != "" && room >= minText {
		dst = t.appendShortened(append(dst, ": "...), t.redact.Clean(n.Text), room)
	}
	t.hidden += len(k.off)
	return append(dst, k.off...)
}

// appendShortened appends a text, escaped, in at most limit columns.
func (t *Text) appendShortened(dst []byte, text string, limit int) []byte {
	start := len(dst)
	dst, n, used := appendEscapedUpTo(dst, text, limit)
	if n < len(text) {
		dst, _, used = appendEscapedUpTo(dst[:start], text, limit-1)
		t.hidden += len(dst) - start - used
		return t.ellipsis(dst)
	}
	t.hidden += len(dst) - start - used
	return dst
}

// appendFailure appends the error of a record as wire.Error has it, after "!!". Where that
// does not end before a column it leaves out the layer and the message, which the line
// says already.
func (t *Text) appendFailure(dst []byte, r *dissect.Record, end int) []byte {
	k := t.ink.failure
	t.hidden += len(k.on)
	dst = append(append(dst, k.on...), "!! "...)
	from, room := len(dst), end-t.column(dst)
	dst = appendError(dst, r, &t.redact)
	if columns(dst[from:]) > room {
		dst = slices.Delete(dst, from, from+saidBefore(dst[from:], r))
	}
	t.hidden += len(dst) - from - columns(dst[from:]) + len(k.off)
	return append(dst, k.off...)
}

// saidBefore returns how many bytes of an error say what the line does: which layer, and
// which message.
func saidBefore(text []byte, r *dissect.Record) int {
	n := behind(text, 0, r.Err.Layer)
	if n > 0 {
		n = behind(text, n, "/")
	}
	if k := behind(text, n, r.Message); k > n {
		n = max(n, behind(text, k, "."))
	}
	return n
}

// behind returns where text goes on behind a part that it has at some place; that place
// if it has another one.
func behind(text []byte, at int, part string) int {
	if to := at + len(part); to <= len(text) && string(text[at:to]) == part {
		return to
	}
	return at
}
