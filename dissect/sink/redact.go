package sink

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"opscope/dissect"
	"opscope/schema"
)

// Privacy says which values are written as a mask. The zero Privacy masks
// secrets and shows what persons wrote.
type Privacy struct {
	ShowSecrets  bool // write passwords and tokens as they are
	MaskPersonal bool // mask texts that persons wrote, too
}

// masked stands for a value that is not shown, whatever its length.
const masked = "***"

// hides reports whether values of this kind are masked.
func (p Privacy) hides(r schema.Redaction) bool {
	return r == schema.Secret && !p.ShowSecrets || r == schema.Personal && p.MaskPersonal
}

// hidesNode reports whether the value of n, and all that is below it, is masked.
func (p Privacy) hidesNode(n *schema.Node) bool {
	return n.Field != nil && n.Field.Redact != schema.Open && (p.hides(n.Field.Redact) || withheld(n))
}

// The fields of nodes that Reader makes where its input was masked: the bytes
// are gone, so that no option shows them.
var (
	withheldRaw  = &schema.Field{Name: "_", Hidden: true, Redact: schema.Secret} // these bytes of the record
	withheldRest = &schema.Field{Name: "_", Hidden: true, Redact: schema.Secret} // the bytes after the last field
)

func withheld(n *schema.Node) bool { return n.Field == withheldRaw || n.Field == withheldRest }

// isMask reports whether the value of node i came masked out of another sink.
func isMask(t *schema.Tree, i int) bool {
	n := &t.Nodes[i]
	return n.Kind == schema.String && int(n.BodyLen) == len(masked) &&
		string(t.Data[n.Body>>3:int(n.Body>>3)+len(masked)]) == masked
}

// redactor finds, for one record, where its masked values show besides in the
// fields: in its bytes, in the bytes left over, in notes and errors.
type redactor struct {
	Privacy
	spans    []span   // bytes of Raw, sorted
	words    [][2]int // masked values as text, in text
	text     []byte
	bytes    []byte // scratch
	rest     bool   // the bytes left over may hold a masked value
	declared declarations
	got      bool // so may what the error says was there
}

// span is a range of bytes: from From, up to and without To.
type span struct{ From, To int }

// prepare looks through a record.
func (m *redactor) prepare(r *dissect.Record) {
	m.spans, m.words, m.text = m.spans[:0], m.words[:0], m.text[:0]
	m.rest, m.got = false, false
	t := &r.Body
	for i := 0; i < len(t.Nodes); {
		if !m.hidesNode(&t.Nodes[i]) {
			i++
			continue
		}
		for end := t.Next(i); i < end; i++ {
			m.hide(r, i)
		}
	}
	m.prepareRest(r)
	if len(m.spans) < 2 {
		return
	}
	slices.SortFunc(m.spans, func(a, b span) int { return cmp.Compare(a.From, b.From) })
}

// hide notes the bytes and the text of node i.
func (m *redactor) hide(r *dissect.Record, i int) {
	n := &r.Body.Nodes[i]
	if n.Field == withheldRest {
		m.rest = true
		return
	}
	placed := n.Len > 0
	m.addBits(int(n.Off), int(n.Len))
	switch n.Kind {
	case schema.Text, schema.Bytes, schema.GUID:
		m.addBits(int(n.Body), 8*int(n.BodyLen))
		placed = true
	case schema.Null:
		return
	}
	if m.addWord(&r.Body, i); !placed && n.Size == 0 && !isMask(&r.Body, i) {
		m.spans = append(m.spans, span{0, len(r.Raw)}) // it is in there, and nobody knows where
	}
}

func (m *redactor) addBits(off, bits int) {
	if bits > 0 {
		m.spans = append(m.spans, span{off >> 3, (off + bits + 7) >> 3})
	}
}

// shortWord is the length from which a masked number is looked for in notes:
// shorter ones are in every offset.
const shortWord = 4

func (m *redactor) addWord(t *schema.Tree, i int) {
	start, shortest := len(m.text), 1
	switch n := &t.Nodes[i]; n.Kind {
	case schema.Text, schema.String:
		m.text = t.AppendText(m.text, i)
	case schema.Bytes, schema.GUID:
		m.bytes = t.AppendBytes(m.bytes[:0], i)
		m.text = appendHex(m.text, m.bytes)
	case schema.Uint:
		m.text, shortest = strconv.AppendUint(m.text, n.Num, 10), shortWord
	case schema.Int:
		m.text, shortest = strconv.AppendInt(m.text, int64(n.Num), 10), shortWord
	}
	if len(m.text)-start >= shortest {
		m.words = append(m.words, [2]int{start, len(m.text)})
	}
}

// prepareRest hides what was not decoded of a record that should have, or may
// have, a masked field there: nobody knows how far that field reaches.
func (m *redactor) prepareRest(r *dissect.Record) {
	if r.Err != nil || len(r.Rest) > 0 {
		m.undecoded(r, m.declared.of(r.Packet, r.Direction.Sender()))
	}
}

func (m *redactor) undecoded(r *dissect.Record, fields []declaration) {
	for i := range fields {
		d := &fields[i]
		m.undecoded(r, d.members)
		if !m.hides(d.Redact) {
			continue
		}
		failed := r.Err != nil && strings.Contains(r.Err.Path, d.Name)
		if !failed && holds(&r.Body, d.Field) && zeros(r.Rest) {
			continue
		}
		m.rest = true
		m.got = m.got || failed
		m.spans = append(m.spans, span{min(decoded(r), len(r.Raw)), len(r.Raw)})
	}
}

// zeros reports whether bytes can give nothing away: padding.
func zeros(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 })
}

// holds reports whether a field was decoded.
func holds(t *schema.Tree, f *schema.Field) bool {
	return slices.ContainsFunc(t.Nodes, func(n schema.Node) bool { return n.Field == f })
}

// decoded returns the number of bytes in front of what was not decoded.
func decoded(r *dissect.Record) int {
	end := 0
	for i := range r.Body.Nodes {
		n := &r.Body.Nodes[i]
		end = max(end, (int(n.Off)+int(n.Len))>>3)
	}
	switch {
	case end > 0:
		return end
	case r.Err != nil:
		return max(0, r.Err.Offset)
	}
	return max(0, len(r.Raw)-len(r.Rest))
}

// covers reports whether the byte of Raw at offset i is masked.
func (m *redactor) covers(i int) bool {
	for _, s := range m.spans {
		if s.From > i {
			break
		}
		if i < s.To {
			return true
		}
	}
	return false
}

// leaks reports whether a text repeats a masked value.
func (m *redactor) leaks(text string) bool {
	for _, w := range m.words {
		if containsBytes(text, m.text[w[0]:w[1]]) {
			return true
		}
	}
	return false
}

// clean returns text, or the mask where it repeats a masked value.
func (m *redactor) clean(text string) string {
	if len(m.words) > 0 && m.leaks(text) {
		return masked
	}
	return text
}

// errorGot returns what the error says was there.
func (m *redactor) errorGot(r *dissect.Record) string {
	if m.got {
		return masked
	}
	return m.clean(r.Err.Got)
}

func containsBytes(text string, word []byte) bool {
	for i := 0; i+len(word) <= len(text); i++ {
		if text[i] == word[0] && text[i:i+len(word)] == string(word) {
			return true
		}
	}
	return false
}

// appendRaw appends the bytes of a record as hex, masked ones as **.
func (m *redactor) appendRaw(dst []byte, r *dissect.Record) []byte {
	from := 0
	for _, s := range m.spans {
		to := min(s.To, len(r.Raw))
		if to <= from {
			continue
		}
		start := max(from, s.From)
		dst = appendHex(dst, r.Raw[from:start])
		for range to - start {
			dst = append(dst, "**"...)
		}
		from = to
	}
	return appendHex(dst, r.Raw[from:])
}

// appendError appends the error of a record as wire.Error has it, escaped and
// without masked values.
func (m *redactor) appendError(dst []byte, r *dissect.Record) []byte {
	e := r.Err
	dst = appendEscaped(dst, e.Layer)
	if e.Path != "" {
		dst = appendEscaped(append(dst, '/'), e.Path)
	}
	dst = strconv.AppendInt(append(dst, " at byte "...), int64(e.Offset), 10)
	if e.Bit != 0 {
		dst = strconv.AppendInt(append(dst, " bit "...), int64(e.Bit), 10)
	}
	if e.Size > 0 {
		dst = strconv.AppendInt(append(dst, " of "...), int64(e.Size), 10)
	}
	dst = appendEscaped(append(dst, ": want "...), m.clean(e.Want))
	if e.Got != "" {
		joint := ", got "
		if strings.HasSuffix(e.Got, "left") {
			joint = ", "
		}
		dst = appendEscaped(append(dst, joint...), m.errorGot(r))
	}
	dst = append(append(dst, " ("...), e.Kind.String()...)
	return append(dst, ')')
}
