package dissect

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

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

// MaskText stands for a value that is not shown, whatever its length.
const MaskText = "***"

// Hides reports whether values of this kind are masked.
func (p Privacy) Hides(r schema.Redaction) bool {
	return r == schema.Secret && !p.ShowSecrets || r == schema.Personal && p.MaskPersonal
}

// hidesField reports whether the value of n, and all that is below it, is masked by its
// field.
func (p Privacy) hidesField(n *schema.Node) bool {
	return n.Field != nil && n.Field.Redact != schema.Open && (p.Hides(n.Field.Redact) || Withheld(n))
}

// The fields of nodes that a reader of records makes where its input was masked: the
// bytes are gone, so that no option shows them.
var (
	WithheldRaw  = &schema.Field{Name: "_", Hidden: true, Redact: schema.Secret} // these bytes of the record
	WithheldRest = &schema.Field{Name: "_", Hidden: true, Redact: schema.Secret} // the bytes after the last field
)

// Withheld reports whether a node stands for bytes whose record came masked.
func Withheld(n *schema.Node) bool { return n.Field == WithheldRaw || n.Field == WithheldRest }

// IsMask reports whether the value of node i came masked out of a sink.
func IsMask(t *schema.Tree, i int) bool {
	n := &t.Nodes[i]
	return n.Kind == schema.String && int(n.BodyLen) == len(MaskText) &&
		string(t.Data[n.Body>>3:int(n.Body>>3)+len(MaskText)]) == MaskText
}

// Redactor finds, for one record, where its masked values show besides in the
// fields: in its bytes, in the bytes left over, in notes and errors.
type Redactor struct {
	Privacy
	secrets  *Secrets // of the session, nil where none is masked
	spans    []Span   // bytes of Raw, one behind the other
	found    []Span   // bytes that repeat a secret of the session
	places   []Span   // all of found, one behind the other
	repeats  []int    // nodes that do, in their order
	words    [][2]int // masked values as text, in text
	text     []byte
	bytes    []byte // scratch
	rest     bool   // the bytes left over may hold a masked value
	declared declared
	got      bool // so may what the error says was there
	whole    bool // so may all of the body
}

// Prepare looks through a record.
func (m *Redactor) Prepare(r *Record) {
	m.spans, m.found, m.places, m.repeats, m.words, m.text = m.spans[:0], m.found[:0], m.places[:0], m.repeats[:0], m.words[:0], m.text[:0]
	m.rest, m.got, m.whole, m.secrets = false, false, false, nil
	if !m.ShowSecrets {
		m.secrets = r.Secrets
	}
	m.prepareBytes(r)
	if len(m.found) > 0 || r.Retold || r.Layout == nil || r.Layout.Strictest() != schema.Open {
		m.prepareFields(r)
	}
	m.prepareRest(r)
	m.spans = joined(m.spans)
}

// joined returns spans in their order, with those that overlap or touch as one.
func joined(spans []Span) []Span {
	if len(spans) < 2 {
		return spans
	}
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	last := 0
	for _, s := range spans[1:] {
		if end := &spans[last].To; s.From <= *end {
			*end = max(*end, s.To)
			continue
		}
		last++
		spans[last] = s
	}
	return spans[:last+1]
}

// touches reports whether one of the spans, which are one behind the other, has bytes from one
// offset up to another.
func touches(spans []Span, from, to int) bool {
	i, _ := slices.BinarySearchFunc(spans, from, func(s Span, from int) int { return cmp.Compare(s.To, from+1) })
	return from < to && i < len(spans) && spans[i].From < to
}

// prepareFields hides the fields that are masked, and notes those that repeat a secret.
func (m *Redactor) prepareFields(r *Record) {
	t := &r.Body
	repeats := len(m.found) > 0
	for i := 0; i < len(t.Nodes); {
		n := &t.Nodes[i]
		if open := n.Field == nil || n.Field.Redact == schema.Open; open && n.Len > 0 && !repeats {
			i++ // most are such
			continue
		}
		if !m.hidesField(n) {
			m.compare(t, i)
			i++
			continue
		}
		for end := t.Next(i); i < end; i++ {
			m.hide(r, i)
		}
	}
}

// prepareBytes hides what of the record's bytes repeats a secret of its session, or the
// start or end of one where the record is cut; all of them where a secret may be
// anywhere.
func (m *Redactor) prepareBytes(r *Record) {
	if m.secrets == nil {
		return
	}
	if m.whole = r.Lost && m.secrets.Anywhere || m.formerLogin(r); m.whole {
		m.found = append(m.found, Span{From: bodyOf(r), To: len(r.Raw)})
		m.rest = len(r.Rest) > 0
	}
	m.found = m.secrets.AppendSpans(m.found, r.Raw)
	if r.Err != nil || r.Size > len(r.Raw) {
		m.found = m.secrets.AppendEdges(m.found, r.Raw)
	}
	m.places = joined(append(m.places, m.found...))
	m.spans = append(m.spans, m.places...)
	m.rest = m.rest || m.secrets.WithinBytes(r.Rest) || r.Err != nil && m.repeated(8*(len(r.Raw)-len(r.Rest)), 8*len(r.Rest))
}

// formerLogin reports whether a record is a packet of which every text is secret and which
// is not in use any more: a login of old clients, whose numbers may be secret as well.
func (m *Redactor) formerLogin(r *Record) bool {
	return r.Packet != nil && r.Packet.Deprecated != "" && r.Layout != nil && r.Layout.Redaction() == schema.Secret
}

// bodyOf returns the bytes in front of a record's body, as far as that is known.
func bodyOf(r *Record) int {
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
func (m *Redactor) compare(t *schema.Tree, i int) {
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
func (m *Redactor) repeated(off, bits int) bool {
	return bits > 0 && touches(m.places, off>>3, (off+bits+7)>>3)
}

// HidesNode reports whether the value of node i, and all that is below it, is masked.
func (m *Redactor) HidesNode(t *schema.Tree, i int) bool {
	_, repeats := slices.BinarySearch(m.repeats, i)
	return repeats || m.hidesField(&t.Nodes[i])
}

// Open reports whether a node is shown for sure, which most are; of others HidesNode tells.
func (m *Redactor) Open(n *schema.Node) bool {
	return len(m.repeats) == 0 && (n.Field == nil || n.Field.Redact == schema.Open)
}

// hide notes the bytes and the text of node i.
func (m *Redactor) hide(r *Record, i int) {
	n := &r.Body.Nodes[i]
	if n.Field == WithheldRest {
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
	if m.addWord(&r.Body, i); !placed && n.Size == 0 && !IsMask(&r.Body, i) {
		m.spans = append(m.spans, Span{From: 0, To: len(r.Raw)}) // it is in there, and nobody knows where
	}
}

func (m *Redactor) addBits(off, bits int) {
	if bits > 0 {
		m.spans = append(m.spans, Span{From: off >> 3, To: (off + bits + 7) >> 3})
	}
}

// shortWord is the length from which a masked number is looked for in notes:
// shorter ones are in every offset.
const shortWord = 4

func (m *Redactor) addWord(t *schema.Tree, i int) {
	start, shortest := len(m.text), 1
	switch n := &t.Nodes[i]; n.Kind {
	case schema.Text, schema.String:
		m.text = t.AppendText(m.text, i)
	case schema.Bytes, schema.GUID:
		m.bytes = t.AppendBytes(m.bytes[:0], i)
		m.text = hex.AppendEncode(m.text, m.bytes)
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
func (m *Redactor) prepareRest(r *Record) {
	if r.Err == nil && len(r.Rest) == 0 {
		return
	}
	m.undecoded(r, m.declared.of(r.Packet, r.Direction.Sender()))
	if l := r.Layout; l != nil && m.Hides(l.Redaction()) {
		m.hideRest(r, true)
	}
}

// hideRest hides what was not decoded, and what the error says was there if that is of it.
func (m *Redactor) hideRest(r *Record, failed bool) {
	m.rest = true
	m.got = m.got || failed
	from := min(decoded(r), len(r.Raw))
	m.spans = append(m.spans, Span{From: from, To: len(r.Raw)})
}

func (m *Redactor) undecoded(r *Record, fields []*schema.Field) {
	for _, f := range fields {
		if !m.Hides(f.Redact) {
			continue
		}
		failed := r.Err != nil && strings.Contains(r.Err.Path, f.Name)
		if !failed && holds(&r.Body, f) && zeros(r.Rest) {
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
func decoded(r *Record) int {
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

// HidesRest reports whether the bytes left over are masked, all of them.
func (m *Redactor) HidesRest() bool { return m.rest }

// Spans returns the bytes of Raw that are masked, one behind the other. They are
// valid until the next Prepare.
func (m *Redactor) Spans() []Span { return m.spans }

// Covers reports whether the byte of Raw at offset i is masked.
func (m *Redactor) Covers(i int) bool {
	return touches(m.spans, i, i+1)
}

// Covered reports whether a part of what node n holds is masked.
func (m *Redactor) Covered(n *schema.Node) bool {
	return touches(m.spans, int(n.Body)>>3, int(n.Body)>>3+int(n.BodyLen))
}

// Leaks reports whether a text repeats a masked value.
func (m *Redactor) Leaks(text string) bool {
	for _, w := range m.words {
		if containsBytes(text, m.text[w[0]:w[1]]) {
			return true
		}
	}
	return m.secrets.Within(text)
}

// Clean returns text, or the mask where it repeats a masked value.
func (m *Redactor) Clean(text string) string {
	if m.Leaks(text) {
		return MaskText
	}
	return text
}

// ErrorGot returns what the error says was there.
func (m *Redactor) ErrorGot(r *Record) string {
	if m.got {
		return MaskText
	}
	return m.Clean(r.Err.Got)
}

func containsBytes(text string, word []byte) bool {
	for i := 0; i+len(word) <= len(text); i++ {
		if text[i] == word[0] && text[i:i+len(word)] == string(word) {
			return true
		}
	}
	return false
}
