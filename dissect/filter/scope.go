package filter

import (
	"bytes"
	"encoding/hex"
	"unicode/utf8"

	"opscope/dissect"
	"opscope/schema"
)

// scope is what a filter knows while it looks at one record.
type scope struct {
	record   *dissect.Record
	redact   dissect.Redactor
	prepared bool   // redact has looked at the record
	element  value  // of the array that any, all, none, one or count goes through
	text     []byte // scratch
}

func (l *Language) scope() scope { return scope{redact: dissect.Redactor{Privacy: l.privacy}} }

// turnTo looks at another record.
func (s *scope) turnTo(r *dissect.Record) { s.record, s.text, s.prepared = r, s.text[:0], false }

// copyOf returns the bytes of a string, in the scratch.
func (s *scope) copyOf(word string) []byte {
	start := len(s.text)
	s.text = append(s.text, word...)
	return s.text[start:]
}

// word appends a text, nothing for an empty one.
func (s *scope) word(dst []value, word string) []value {
	if word == "" {
		return dst
	}
	return append(dst, value{kind: text, text: s.copyOf(word)})
}

// free appends a text that may repeat what is masked, masked itself if it does.
func (s *scope) free(dst []value, word string) []value {
	if word == "" {
		return dst
	}
	return s.maskable(dst, s.mask().Clean(word))
}

// maskable appends a text, or what stands for a mask.
func (s *scope) maskable(dst []value, word string) []value {
	if word == dissect.MaskText {
		return append(dst, value{kind: masked})
	}
	return s.word(dst, word)
}

// mask returns what is masked of the record. It is looked for once it matters.
func (s *scope) mask() *dissect.Redactor {
	if !s.prepared {
		s.redact.Prepare(s.record)
		s.prepared = true
	}
	return &s.redact
}

func (s *scope) noteSeverity(dst []value, n *dissect.Note) []value {
	return s.word(dst, dissect.SeverityOf(n.Code).String())
}

// rest appends the bytes left over.
func (s *scope) rest(dst []value) []value {
	switch {
	case s.mask().HidesRest():
		return append(dst, value{kind: masked})
	case len(s.record.Rest) == 0:
		return dst
	}
	return append(dst, value{kind: octets, text: s.record.Rest})
}

// node appends the value of node i of a tree, which is not masked. One that no schema has
// is what NDJSON leaves of it: bytes are their digits, and a text is a number if it can be.
func (s *scope) node(dst []value, t *schema.Tree, i int, guessed bool) []value {
	n := &t.Nodes[i]
	v := value{kind: kindOf(n.Kind), node: int32(i), num: n.Num, field: n.Field}
	switch {
	case n.Kind == schema.Null:
		return dst
	case v.kind == text:
		v.text = s.textOf(t, i)
	case v.kind == octets && guessed:
		start := len(s.text)
		s.text = hex.AppendEncode(s.text, s.bytesOf(t, i))
		v.kind, v.text = text, s.text[start:]
	case v.kind == octets, v.kind == guid:
		v.text = s.bytesOf(t, i)
	}
	if n, ok := parseInteger(v.text); ok && guessed {
		n.node = v.node
		v = n
	}
	return append(dst, v)
}

// textOf returns the text of a node: in the record where that needs no conversion.
func (s *scope) textOf(t *schema.Tree, i int) []byte {
	n := &t.Nodes[i]
	if n.Body&7 == 0 && (n.Kind == schema.String || n.Field == nil || n.Field.Encoding <= schema.UTF8) {
		b := t.Data[n.Body>>3:][:n.BodyLen]
		if end := bytes.IndexByte(b, 0); end >= 0 && n.Kind == schema.Text {
			b = b[:end]
		}
		if isASCII(b) {
			return b
		}
	}
	start := len(s.text)
	s.text = t.AppendText(s.text, i)
	return s.text[start:]
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func (s *scope) bytesOf(t *schema.Tree, i int) []byte {
	n := &t.Nodes[i]
	if n.Body&7 == 0 {
		return t.Data[n.Body>>3:][:n.BodyLen]
	}
	start := len(s.text)
	s.text = t.AppendBytes(s.text, i)
	return s.text[start:]
}
