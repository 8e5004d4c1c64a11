package sink

import (
	"strconv"
	"strings"

	"opscope/dissect"
	"opscope/schema"
)

// gutter stands between fields, notes and errors.
const gutter = "  "

// appendTail appends what a line says of the record's body: fields, notes and
// the error. The codes of notes have their room before all else, fields take what
// they need of the rest, and what then is left goes to the texts of notes.
func (t *Text) appendTail(dst []byte, r *dissect.Record) []byte {
	dst = t.pad(dst, tailColumn(r))
	from, end := len(dst), max(t.column(dst)+minRoom, t.width)
	codes := codeColumns(r)
	dst = t.appendFields(dst, r, end-codes)
	for i := range r.Notes {
		n := &r.Notes[i]
		if said(r, n) {
			continue
		}
		codes -= codeWidth(n)
		dst = t.appendNote(gap(dst, from), n, end-codes)
	}
	if r.Err != nil {
		dst = t.appendFailure(gap(dst, from), r)
	}
	return trimRight(dst, t.start)
}

// tailColumn returns the first column that the record leaves empty.
func tailColumn(r *dissect.Record) int {
	switch {
	case r.Ack.State != dissect.AckNone:
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

// codeColumns returns the columns of all notes without their texts.
func codeColumns(r *dissect.Record) int {
	columns := 0
	for i := range r.Notes {
		if n := &r.Notes[i]; !said(r, n) {
			columns += codeWidth(n)
		}
	}
	return columns
}

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
	if len(r.Rest) > 0 || t.redact.rest {
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
	t.hidden += len(t.ink.name.on) + len(t.ink.name.off)
	dst = t.escaped(append(dst, t.ink.name.on...), nameOf(n))
	return append(dst, t.ink.name.off...)
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
		dst = strconv.AppendInt(append(dst, ' '), int64(a.Seq), 10)
	}
	if a.Packet <= 0 {
		return dst
	}
	start := len(dst)
	dst = strconv.AppendInt(append(dst, " (packet "...), int64(a.Packet), 10)
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
	if t.redact.rest {
		return append(dst, masked...)
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
		dst = t.appendShortened(append(dst, ": "...), t.redact.clean(n.Text), room)
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

// appendFailure appends the error of a record as wire.Error has it, after "!!".
func (t *Text) appendFailure(dst []byte, r *dissect.Record) []byte {
	dst = append(append(dst, t.ink.failure.on...), "!! "...)
	dst = t.redact.appendError(dst, r)
	return append(dst, t.ink.failure.off...)
}
