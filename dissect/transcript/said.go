package transcript

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// said is a line of NDJSON, as far as it counts.
type said struct {
	session                  int
	protocol, dir, transport []byte
	packets                  []int
	text                     []byte // message and fields, with tabs between them
	message                  int    // size of the message's name in it
	again                    bool   // and not for the first time
}

// reset forgets what was said, and keeps the room for it.
func (r *said) reset() {
	*r = said{protocol: r.protocol[:0], dir: r.dir[:0], transport: r.transport[:0], packets: r.packets[:0], text: r.text[:0]}
}

// again are the codes of notes on what was said before.
var again = []string{"retransmission", "duplicate", "resend_copy", "stale"}

// take takes a line of NDJSON.
func (t *Transcript) take(line []byte) error {
	t.scan.Reset(line)
	t.said.reset()
	for key := range t.scan.Members() {
		if counts := t.member(key); !counts && !t.scan.Failed() {
			return nil
		}
	}
	if t.scan.End(); t.scan.Failed() {
		offset, want, got := t.scan.Failure()
		return fmt.Errorf("transcript: at byte %d of a line: want %s, got %s", offset, want, got)
	}
	if !t.said.again {
		t.add(t.laneOf(&t.said), t.said.text, t.said.packets)
	}
	return nil
}

// member reads the value of a key. It reports whether the line is of a type that counts.
func (t *Transcript) member(key []byte) bool {
	s, r := &t.scan, &t.said
	switch string(key) {
	case "type":
		return t.typeOf()
	case "session":
		if !s.Null() {
			r.session = int(s.Integer())
		}
	case "dir":
		r.dir = t.appendWord(r.dir)
	case "transport":
		r.transport = t.appendWord(r.transport)
	case "packets":
		for range s.Elements() {
			r.packets = append(r.packets, int(s.Integer()))
		}
	case "protocol":
		if r.protocol = t.appendWord(r.protocol); string(r.protocol) == "dplay" { // its session has messages of two
			r.protocol = append(r.protocol[:0], "lotr2"...)
		}
	case "message":
		r.text = t.appendWord(r.text)
		r.message = len(r.text)
	case "fields":
		t.fields()
	case "notes":
		for range s.Elements() {
			t.note()
		}
	case "rest":
		if rest := s.Text(); len(rest) > 0 {
			r.text = append(append(r.text, "\trest="...), rest...)
		}
	case "error":
		t.error()
	case "bytes":
		r.text = append(append(r.text, "\tbytes="...), s.Literal()...)
	default:
		s.Skip()
	}
	return true
}

// typeOf reads the type of a line, and reports whether it counts.
func (t *Transcript) typeOf() bool {
	switch string(t.scan.Text()) {
	case "record":
		return true
	case "gap":
		t.said.text = append(t.said.text, "gap"...)
		return true
	}
	return false
}

// appendWord appends a string, nothing for null.
func (t *Transcript) appendWord(dst []byte) []byte {
	if t.scan.Null() {
		return dst
	}
	return append(dst, t.scan.Text()...)
}

func (t *Transcript) note() {
	for key := range t.scan.Members() {
		if string(key) != "code" {
			t.scan.Skip()
			continue
		}
		code := t.scan.Text()
		t.said.again = t.said.again || slices.ContainsFunc(again, func(a string) bool { return a == string(code) })
	}
}

func (t *Transcript) error() {
	if t.scan.Null() {
		return
	}
	var path, kind string
	for key := range t.scan.Members() {
		switch string(key) {
		case "path":
			path = string(t.scan.Text())
		case "kind":
			kind = string(t.scan.Text())
		default:
			t.scan.Skip()
		}
	}
	t.said.text = append(t.said.text, "\terror="+kind+" "+path...)
}

// fields appends the fields of a record in their order, each with its path.
func (t *Transcript) fields() {
	if t.scan.Null() {
		return
	}
	t.path, t.key = t.path[:0], append(t.key[:0], t.said.text[:t.said.message]...)
	t.members()
}

// members appends the fields of an object.
func (t *Transcript) members() {
	at, plain := len(t.path), len(t.key)
	for key := range t.scan.Members() {
		if at > 0 {
			t.path = append(t.path, '.')
		}
		t.path = append(t.path, key...)
		t.key = appendWithoutIndexes(append(t.key, '.'), key)
		t.value(t.ignoresKey(t.said.message))
		t.path, t.key = t.path[:at], t.key[:plain]
	}
}

// value appends a field, or the fields that it has.
func (t *Transcript) value(ignored bool) {
	switch c := t.scan.Peek(); {
	case c == '{':
		t.members()
	case c == '[':
		t.elements(ignored)
	case ignored:
		t.scan.Skip()
	case c == '"':
		t.said.text = appendQuoted(t.begun(), t.scan.Text())
	default:
		t.said.text = append(t.begun(), t.scan.Literal()...)
	}
}

func (t *Transcript) elements(ignored bool) {
	at := len(t.path)
	for i := range t.scan.Elements() {
		t.path = append(strconv.AppendInt(append(t.path, '['), int64(i), 10), ']')
		t.value(ignored)
		t.path = t.path[:at]
	}
}

// begun returns the text with the beginning of the next field.
func (t *Transcript) begun() []byte {
	return append(append(append(t.said.text, '\t'), t.path...), '=')
}

// appendQuoted appends text as encoding/json writes it; tabs and ends of lines in it are
// escaped.
func appendQuoted(dst, text []byte) []byte {
	if slices.ContainsFunc(text, special) {
		quoted, _ := json.Marshal(string(text)) // which no string fails
		return append(dst, quoted...)
	}
	return append(append(append(dst, '"'), text...), '"')
}

// special reports whether a byte may not stand for itself in what encoding/json writes.
func special(c byte) bool {
	switch c {
	case '"', '\\', '<', '>', '&':
		return true
	}
	return c < 0x20 || c >= 0x80
}
