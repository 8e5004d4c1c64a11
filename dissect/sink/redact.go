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
// secrets and shows what persons wrote. A value is masked by its field, which the
// schema calls secret or personal; a secret besides by its bytes, wherever a record of
// its session repeats them.
type Privacy struct {
	ShowSecrets  bool // write passwords and tokens as they are
	MaskPersonal bool // mask texts that persons wrote, and their names, too
}

// masked stands for a value that is not shown, whatever its length.
const masked = "***"

// hides reports whether values of this kind are masked.
func (p Privacy) hides(r schema.Redaction) bool {
	return r == schema.Secret && !p.ShowSecrets || r == schema.Personal && p.MaskPersonal
}

// hidesField reports whether the value of n, and all that is below it, is masked by its
// field.
func (p Privacy) hidesField(n *schema.Node) bool {
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
	secrets  *dissect.Secrets // of the session, nil where none is masked
	spans    []dissect.Span   // bytes of Raw, sorted
	found    []dissect.Span   // those of them that repeat a secret of the session
	repeats  []int            // nodes that do
	words    [][2]int         // masked values as text, in text
	text     []byte
	bytes    []byte // scratch
	rest     bool   // the bytes left over may hold a masked value
	declared declarations
	got      bool // so may what the error says was there
	whole    bool // so may all of the body
}

// prepare looks through a record.
func (m *redactor) prepare(r *dissect.Record) {
	m.spans, m.found, m.repeats, m.words, m.text = m.spans[:0], m.found[:0], m.repeats[:0], m.words[:0], m.text[:0]
	m.rest, m.got, m.whole, m.secrets = false, false, false, nil
	if !m.ShowSecrets {
		m.secrets = r.Secrets
	}
	m.prepareBytes(r)
	t := &r.Body
	for i := 0; i < len(t.Nodes); {
		if !m.hidesField(&t.Nodes[i]) {
			m.compare(t, i)
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
	slices.SortFunc(m.spans, func(a, b dissect.Span) int { return cmp.Compare(a.From, b.From) })
}

// prepareBytes hides what of the record's bytes repeats a secret of its session, or the
// start or end of one where the record is cut; all of them where a secret may be
// anywhere.
func (m *redactor) prepareBytes(r *dissect.Record) {
	if m.secrets == nil {
		return
	}
	if m.whole = r.Lost && m.secrets.Anywhere || m.formerLogin(r); m.whole {
		m.found = append(m.found, dissect.Span{From: bodyOf(r), To: len(r.Raw)})
		m.rest = len(r.Rest) > 0
	}
	m.found = m.secrets.AppendSpans(m.found, r.Raw)
	if r.Err != nil || r.Size > len(r.Raw) {
		m.found = m.secrets.AppendEdges(m.found, r.Raw)
	}
	m.spans = append(m.spans, m.found...)
	m.rest = m.rest || m.secrets.WithinBytes(r.Rest) || r.Err != nil && m.repeated(8*(len(r.Raw)-len(r.Rest)), 8*len(r.Rest))
}

// formerLogin reports whether a record is a packet of which every text is secret and which
// is not in use any more: a login of old clients, whose numbers may be secret as well.
func (m *redactor) formerLogin(r *dissect.Record) bool {
	return r.Packet != nil && r.Packet.Deprecated != "" && r.Layout != nil && r.Layout.Redaction() == schema.Secret
}

// bodyOf returns the bytes in front of a record's body, as far as that is known.
func bodyOf(r *dissect.Record) int {
	if r.Lost {
		return 0
	}
	for i := range r.Body.Nodes {
		if n := &r.Body.Nodes[i]; n.Len > 0 {
			return min(int(n.Off)>>3, len(r.Raw))
		}
	}
	if len(r.Body.Nodes) > 0 { // read from NDJSON, which does not say where
		return 0
	}
	return max(0, len(r.Raw)-len(r.Rest))
}

// compare notes node i if it repeats a secret: one with a place on the wire by that, any
// other by what it says.
func (m *redactor) compare(t *schema.Tree, i int) {
	n := &t.Nodes[i]
	switch {
	case m.secrets == nil, n.Kind == schema.Struct, n.Kind == schema.Array, n.Kind == schema.Null:
		return
	case m.whole:
	case n.Len > 0:
		if len(m.found) == 0 || !m.repeated(int(n.Off), int(n.Len)) && !m.repeated(int(n.Body), 8*int(n.BodyLen)) {
			return
		}
	case n.BodyLen == 0:
		return
	default:
		if m.bytes = t.AppendBytes(m.bytes[:0], i); !m.secrets.WithinBytes(m.bytes) {
			return
		}
	}
	m.repeats = append(m.repeats, i)
}

// repeated reports whether some bits of the record are among those that repeat a secret.
func (m *redactor) repeated(off, bits int) bool {
	for _, s := range m.found {
		if bits > 0 && off < 8*s.To && 8*s.From < off+bits {
			return true
		}
	}
	return false
}

// hidesNode reports whether the value of node i, and all that is below it, is masked.
func (m *redactor) hidesNode(t *schema.Tree, i int) bool {
	return m.hidesField(&t.Nodes[i]) || len(m.repeats) > 0 && slices.Contains(m.repeats, i)
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
		m.spans = append(m.spans, dissect.Span{From: 0, To: len(r.Raw)}) // it is in there, and nobody knows where
	}
}

func (m *redactor) addBits(off, bits int) {
	if bits > 0 {
		m.spans = append(m.spans, dissect.Span{From: off >> 3, To: (off + bits + 7) >> 3})
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
	if r.Err == nil && len(r.Rest) == 0 {
		return
	}
	m.undecoded(r, m.declared.of(r.Packet, r.Direction.Sender()))
	if l := r.Layout; l != nil && m.hides(l.Redaction()) {
		m.hideRest(r, true)
	}
}

// hideRest hides what was not decoded, and what the error says was there if that is of it.
func (m *redactor) hideRest(r *dissect.Record, failed bool) {
	m.rest = true
	m.got = m.got || failed
	from := min(decoded(r), len(r.Raw))
	m.spans = append(m.spans, dissect.Span{From: from, To: len(r.Raw)})
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
		m.hideRest(r, failed)
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

// covered reports whether a part of what node n holds is masked.
func (m *redactor) covered(n *schema.Node) bool {
	from, to := int(n.Body)>>3, int(n.Body)>>3+int(n.BodyLen)
	return slices.ContainsFunc(m.spans, func(s dissect.Span) bool { return s.From < to && from < s.To })
}

// leaks reports whether a text repeats a masked value.
func (m *redactor) leaks(text string) bool {
	for _, w := range m.words {
		if containsBytes(text, m.text[w[0]:w[1]]) {
			return true
		}
	}
	return m.secrets.Within(text)
}

// clean returns text, or the mask where it repeats a masked value.
func (m *redactor) clean(text string) string {
	if m.leaks(text) {
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
