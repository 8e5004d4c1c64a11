package sink

import (
	_ "embed" // schema.json
	"io"
	"math"
	"net/netip"
	"time"

	"opscope/dissect"
	"opscope/schema"
)

// JSONSchema is the JSON Schema (draft 2020-12) of each line of NDJSON.
//
//go:embed schema.json
var JSONSchema string

// NDJSONOptions say what the NDJSON sink writes. The zero NDJSONOptions mask
// secrets and leave out the bytes of records.
type NDJSONOptions struct {
	Raw bool // the bytes of each record, as "raw"
	dissect.Privacy
	// Immediate writes each record at once, for a live capture.
	Immediate bool
}

// NDJSON writes records as JSON objects, one a line, with the keys of schema.json
// in a fixed order. Where one name repeats in a struct, its first place holds an
// array of all its values.
type NDJSON struct {
	out    output
	o      NDJSONOptions
	redact dissect.Redactor
	second int64
	clock  []byte // the text of second, up to its point
	value  []byte // scratch
	routes [keptRoutes]route
	kinds  kinds
	floats *spellings
	levels []level
}

// kind returns the keys protocol, message and opcode of a record.
func (j *NDJSON) kind(r *dissect.Record) []byte {
	k, same := j.kinds.of(r)
	if same {
		return k.text
	}
	k.text = appendKeyString(k.text, `,"protocol":`, r.Protocol)
	k.text = appendKeyString(k.text, `,"message":`, r.Message)
	k.text = append(k.text, `,"opcode":`...)
	if r.Opcode < 0 {
		k.text = append(k.text, "null"...)
	} else {
		k.text = appendInt(k.text, int64(r.Opcode))
	}
	return k.text
}

// route is the text of direction, transport and addresses of a record, which all
// records of one direction of a flow share.
type route struct {
	direction dissect.Direction
	transport schema.Transport
	src, dst  netip.AddrPort
	text      []byte
}

// keptRoutes is how many routes are kept: two for each flow that talks at the same
// time as others, roughly.
const keptRoutes = 64

// route returns the keys dir, transport, src and dst of a record.
func (j *NDJSON) route(r *dissect.Record) []byte {
	k := &j.routes[(2*r.Flow+int(r.Direction&1))&(keptRoutes-1)]
	if k.src != r.Src || k.dst != r.Dst || k.direction != r.Direction || k.transport != r.Transport || len(k.text) == 0 {
		k.direction, k.transport, k.src, k.dst = r.Direction, r.Transport, r.Src, r.Dst
		k.text = appendRoute(k.text[:0], r)
		k.text = appendKeyAddress(k.text, `,"src":`, r.Src)
		k.text = appendKeyAddress(k.text, `,"dst":`, r.Dst)
	}
	return k.text
}

// NewNDJSON returns a sink that writes NDJSON to w.
func NewNDJSON(w io.Writer, o NDJSONOptions) *NDJSON {
	return &NDJSON{out: output{w: w, immediate: o.Immediate}, o: o, redact: dissect.Redactor{Privacy: o.Privacy}, floats: new(spellings)}
}

// Flush writes out what is buffered.
func (j *NDJSON) Flush() error { return j.out.Flush() }

// Write writes one record.
func (j *NDJSON) Write(r *dissect.Record) error {
	if j.out.err != nil {
		return j.out.err
	}
	j.redact.Prepare(r)
	dst := j.appendHead(j.out.buf, r)
	switch r.Type {
	case dissect.FrameRecord:
		dst = j.appendFrame(append(dst, j.route(r)...), r)
	case dissect.AckRecord:
		dst = appendRoute(dst, r)
		dst = appendKeyInt(dst, `,"n":`, int64(r.Acked))
		if r.Ack.State != dissect.AckAcked {
			dst = appendWord(append(dst, `,"state":`...), r.Ack.State.String())
		}
		dst = appendAckPlace(dst, &r.Ack)
	case dissect.GapRecord:
		dst = appendRoute(dst, r)
		dst = appendKeyInt(dst, `,"bytes":`, r.Bytes)
		dst = appendKeyNumber(dst, `,"after_packet":`, r.After)
		dst = appendKeyNumber(dst, `,"before_packet":`, r.Before)
		dst = appendKeyInt(dst, `,"offset":`, r.Offset)
		dst = appendKeyString(dst, `,"reason":`, r.Text)
	case dissect.SessionRecord:
		dst = appendKeyAddress(dst, `,"client":`, r.Client)
		dst = appendKeyAddress(dst, `,"server":`, r.Server)
		dst = appendKeyString(dst, `,"protocol":`, r.Protocol)
		dst = appendKeyString(dst, `,"state":`, r.Code)
		dst = appendKeyString(dst, `,"reason":`, j.redact.Clean(r.Text))
	case dissect.EventRecord:
		dst = appendRoute(dst, r)
		dst = appendKeyString(dst, `,"code":`, r.Code)
		dst = appendKeyString(dst, `,"text":`, j.redact.Clean(r.Text))
		dst = appendPackets(dst, r.Packets)
		dst = j.appendError(append(dst, `,"error":`...), r)
	}
	j.out.buf = append(dst, "}\n"...)
	return j.out.done()
}

// appendHead appends the keys that all records share; a frame has n and packets
// among them.
func (j *NDJSON) appendHead(dst []byte, r *dissect.Record) []byte {
	if r.Type == dissect.FrameRecord {
		dst = appendKeyInt(dst, `{"type":"record","file":`, int64(r.File))
		dst = appendKeyInt(dst, `,"n":`, int64(r.N))
		dst = appendPackets(dst, r.Packets)
	} else {
		dst = append(append(dst, `{"type":"`...), r.Type.String()...)
		dst = appendKeyInt(dst, `","file":`, int64(r.File))
	}
	dst = j.appendTime(append(dst, `,"time":`...), r.Time)
	dst = appendKeyNumber(dst, `,"session":`, r.Session)
	return appendKeyNumber(dst, `,"flow":`, r.Flow)
}

// appendFrame appends the keys of a decoded frame after the common ones.
func (j *NDJSON) appendFrame(dst []byte, r *dissect.Record) []byte {
	if r.Passage.Type != dissect.UnknownPacketType {
		dst = appendWord(append(dst, `,"passed":`...), r.Passage.Type.String())
	}
	if r.Passage.Interface > 0 {
		dst = appendKeyInt(dst, `,"interface":`, int64(r.Passage.Interface))
	}
	dst = append(dst, j.kind(r)...)
	dst = j.appendEnvelope(append(dst, `,"envelope":`...), r)
	dst = appendWord(append(dst, `,"context":`...), r.Context.String())
	dst = j.appendLevel(append(dst, `,"fields":`...), &r.Body, level{end: len(r.Body.Nodes)})
	dst = appendKeyInt(dst, `,"size":`, int64(r.Size))
	dst = appendKeyInt(dst, `,"offset":`, r.Offset)
	dst = appendAck(append(dst, `,"ack":`...), &r.Ack)
	dst = appendAcks(append(dst, `,"acks":`...), &r.Acks)
	if len(r.Notes) == 0 && len(r.Rest) == 0 && r.Err == nil && !j.redact.HidesRest() {
		dst = append(dst, `,"notes":[],"rest":"","error":null`...) // of most records
	} else {
		dst = j.appendTrouble(dst, r)
	}
	if j.o.Raw {
		dst = append(appendRaw(append(dst, `,"raw":"`...), r, &j.redact), '"')
	}
	return dst
}

// appendTrouble appends notes, the bytes left over and the error.
func (j *NDJSON) appendTrouble(dst []byte, r *dissect.Record) []byte {
	dst = j.appendNotes(append(dst, `,"notes":`...), r.Notes)
	dst = append(dst, `,"rest":"`...)
	if j.redact.HidesRest() {
		dst = append(dst, dissect.MaskText...)
	} else {
		dst = appendHex(dst, r.Rest)
	}
	return j.appendError(append(dst, `","error":`...), r)
}

// level is an object or an array that is being written.
type level struct {
	from, end int    // its nodes
	start     int    // in the output
	seen      uint64 // signs of the names that it has
	array     bool
}

// appendLevel appends nodes as an object or an array, with all that is below them: in one
// loop over the tree, since a call for each level or number takes as long as its text. That a
// name repeats in an object is found on the way, and its members are begun anew then; signs
// tell almost all names apart at once.
func (j *NDJSON) appendLevel(dst []byte, t *schema.Tree, l level) []byte {
	outer := len(j.levels)
	l.start = len(dst)
	for i := l.from; ; {
		if i == l.end {
			dst = l.close(dst)
			last := len(j.levels) - 1
			if last < outer {
				return dst
			}
			l, j.levels = j.levels[last], j.levels[:last]
			continue
		}
		n := &t.Nodes[i]
		switch {
		case l.array:
			dst = append(dst, ',')
		case !shown(n):
			i = t.Next(i)
			continue
		default:
			sign := signOf(n)
			if l.seen&sign == sign && nextNamed(t, l.from, i, nameOf(n)) < i {
				dst, i = j.appendRepeating(dst[:l.start], t, l.from, l.end), l.end
				continue
			}
			l.seen |= sign
			dst = appendKey(dst, n)
		}
		i++
		if f := n.Field; f != nil && j.redact.Open(n) {
			switch n.Kind {
			case schema.Float:
				k := j.floats.of(n)
				if k.size == 0 {
					k.spell(n)
				}
				dst = k.append(dst)
				continue
			case schema.Uint:
				if !f.Symbol && !f.Wide {
					dst = appendUint(dst, n.Num)
					continue
				}
			case schema.Int:
				if !f.Symbol && !f.Wide {
					dst = appendInt(dst, int64(n.Num))
					continue
				}
			case schema.Struct, schema.Array:
				j.levels = append(j.levels, l)
				l = below(t, i-1)
				l.start = len(dst)
				continue
			}
		}
		dst = j.appendValue(dst, t, i-1)
		i += int(n.Size)
	}
}

// below returns the level of what is below node i.
func below(t *schema.Tree, i int) level {
	return level{from: i + 1, end: t.Next(i), array: t.Nodes[i].Kind == schema.Array}
}

// close ends a level, of which each member begins with a comma.
func (l *level) close(dst []byte) []byte {
	brackets := "{}"
	if l.array {
		brackets = "[]"
	}
	if len(dst) == l.start {
		return append(dst, brackets...)
	}
	dst[l.start] = brackets[0]
	return append(dst, brackets[1])
}

// signOf returns the sign of a node's name.
func signOf(n *schema.Node) uint64 {
	if n.Field != nil && n.Field.Sign != 0 {
		return n.Field.Sign
	}
	return schema.SignOf(nameOf(n))
}

// appendKey appends the name of a node as the key of a member, behind a comma.
func appendKey(dst []byte, n *schema.Node) []byte {
	if n.Field != nil && n.Field.Key != "" {
		return append(dst, n.Field.Key...)
	}
	return append(appendString(append(dst, ','), nameOf(n)), ':')
}

// appendRepeating appends the members of an object of which a name repeats.
func (j *NDJSON) appendRepeating(dst []byte, t *schema.Tree, from, to int) []byte {
	for i := from; i < to; i = t.Next(i) {
		n := &t.Nodes[i]
		if !shown(n) || nextNamed(t, from, to, nameOf(n)) != i {
			continue
		}
		dst = appendKey(dst, n)
		if nextNamed(t, t.Next(i), to, nameOf(n)) < to {
			dst = j.appendRepeated(dst, t, i, to)
		} else {
			dst = j.appendValue(dst, t, i)
		}
	}
	return dst
}

// appendRepeated appends all values of the name of node i as an array.
func (j *NDJSON) appendRepeated(dst []byte, t *schema.Tree, i, to int) []byte {
	name := nameOf(&t.Nodes[i])
	dst = append(dst, '[')
	for first := i; i < to; i = nextNamed(t, t.Next(i), to, name) {
		if i != first {
			dst = append(dst, ',')
		}
		dst = j.appendValue(dst, t, i)
	}
	return append(dst, ']')
}

// nextNamed returns the index of the first shown member with this name from
// index from on, or to.
func nextNamed(t *schema.Tree, from, to int, name string) int {
	for i := from; i < to; i = t.Next(i) {
		if n := &t.Nodes[i]; shown(n) && nameOf(n) == name {
			return i
		}
	}
	return to
}

// appendValue appends the value of node i.
func (j *NDJSON) appendValue(dst []byte, t *schema.Tree, i int) []byte {
	n := &t.Nodes[i]
	if j.hides(t, i) {
		return append(append(append(dst, '"'), dissect.MaskText...), '"')
	}
	switch n.Kind {
	case schema.Float:
		return appendJSONFloat(dst, n)
	case schema.Null:
		return append(dst, "null"...)
	case schema.Bool:
		return appendBool(dst, n)
	case schema.Struct, schema.Array:
		return j.appendLevel(dst, t, below(t, i))
	case schema.Text, schema.String:
		return appendString(dst, textOf(&j.value, t, i))
	case schema.Bytes:
		j.value = t.AppendBytes(j.value[:0], i)
		return append(appendHex(append(dst, '"'), j.value), '"')
	case schema.GUID:
		j.value = t.AppendBytes(j.value[:0], i)
		return append(appendGUID(append(dst, '"'), j.value), '"')
	case schema.IPv4:
		return append(appendIPv4(append(dst, '"'), n.Num), '"')
	}
	return appendInteger(dst, n)
}

// hides reports whether a value is masked.
func (j *NDJSON) hides(t *schema.Tree, i int) bool {
	return !j.redact.Open(&t.Nodes[i]) && j.redact.HidesNode(t, i)
}

// appendJSONFloat appends a float, as a string where it is no number.
func appendJSONFloat(dst []byte, n *schema.Node) []byte {
	v, single := math.Float64frombits(n.Num), n.Field != nil && n.Field.Single
	if math.IsNaN(v - v) {
		return append(appendFloat(append(dst, '"'), v, single), '"')
	}
	return appendFloat(dst, v, single)
}

// appendInteger appends an integer, or the name that stands for it; as a string where a
// float64 cannot hold it.
func appendInteger(dst []byte, n *schema.Node) []byte {
	f := n.Field
	if f != nil && f.Symbol {
		if name := f.Enum.NameOf(n.Num); name != "" {
			return appendString(dst, name)
		}
	}
	if f != nil && f.Wide {
		return append(appendNumber(append(dst, '"'), n, false), '"')
	}
	return appendNumber(dst, n, false)
}

func (j *NDJSON) appendNotes(dst []byte, notes []dissect.Note) []byte {
	dst = append(dst, '[')
	for i := range notes {
		if i > 0 {
			dst = append(dst, ',')
		}
		n := &notes[i]
		dst = appendWord(append(dst, `{"severity":`...), dissect.SeverityOf(n.Code).String())
		dst = appendKeyString(dst, `,"code":`, n.Code)
		dst = append(appendKeyString(dst, `,"text":`, j.redact.Clean(n.Text)), '}')
	}
	return append(dst, ']')
}

func (j *NDJSON) appendError(dst []byte, r *dissect.Record) []byte {
	e := r.Err
	if e == nil {
		return append(dst, "null"...)
	}
	dst = appendString(append(dst, `{"layer":`...), e.Layer)
	dst = appendKeyString(dst, `,"path":`, e.Path)
	dst = appendKeyInt(dst, `,"offset":`, int64(e.Offset))
	dst = appendKeyInt(dst, `,"bit":`, int64(e.Bit))
	dst = appendKeyString(dst, `,"want":`, j.redact.Clean(e.Want))
	dst = appendKeyString(dst, `,"got":`, j.redact.ErrorGot(r))
	dst = appendKeyString(dst, `,"kind":`, e.Kind.String())
	return append(dst, '}')
}

// appendTime appends a time as a dissect.Stamp has it.
func (j *NDJSON) appendTime(dst []byte, t time.Time) []byte {
	if !(dissect.Stamp{Time: t}).Written() {
		return append(dst, "null"...)
	}
	if second := t.Unix(); second != j.second || len(j.clock) == 0 {
		j.second = second
		j.clock = t.UTC().AppendFormat(j.clock[:0], "2006-01-02T15:04:05")
	}
	dst = append(append(dst, '"'), j.clock...)
	return append(appendFraction(dst, t.Nanosecond(), 9), `Z"`...)
}

// appendEnvelope appends the members that the envelope has, null for none.
func (j *NDJSON) appendEnvelope(dst []byte, r *dissect.Record) []byte {
	e, start := &r.Envelope, len(dst)
	if e.Mode >= 0 {
		dst = appendKeyInt(dst, `,"mode":`, int64(e.Mode))
	}
	if e.Seq >= 0 {
		dst = appendKeyInt(dst, `,"seq":`, int64(e.Seq))
	}
	if r.Stream > 0 {
		dst = appendKeyInt(dst, `,"stream":`, int64(r.Stream))
	}
	if e.Length >= 0 {
		dst = appendKeyInt(dst, `,"length":`, int64(e.Length))
	}
	if e.Origin != schema.NoOrigin {
		dst = appendWord(append(dst, `,"origin":`...), e.Origin.String())
	}
	if e.LearnedIn > 0 {
		dst = appendKeyInt(dst, `,"learned_in":`, int64(e.LearnedIn))
	}
	if e.Prefixed {
		dst = append(dst, `,"prefixed":true`...)
	}
	for i := range r.Head.Nodes {
		if n := &r.Head.Nodes[i]; shown(n) && !told(r, n) {
			dst = j.appendValue(appendKey(dst, n), &r.Head, i)
		}
	}
	if e.Copies > 0 {
		dst = appendKeyInt(dst, `,"copies":`, int64(e.Copies))
	}
	if e.First > 0 {
		dst = appendKeyInt(dst, `,"first":`, int64(e.First))
	}
	return closeObject(dst, start)
}

// appendAck appends the state and what else is known, null when the record
// needs no acknowledgement.
func appendAck(dst []byte, a *dissect.Ack) []byte {
	if a.State == dissect.AckNone {
		return append(dst, "null"...)
	}
	start := len(dst)
	dst = appendWord(append(dst, `,"state":`...), a.State.String())
	return closeObject(appendAckPlace(dst, a), start)
}

// appendAcks appends what an acknowledgement is for, null when the record is
// none.
func appendAcks(dst []byte, a *dissect.Acks) []byte {
	if a.Message == "" && a.Packet <= 0 && a.Verdict == dissect.AcksNew {
		return append(dst, "null"...)
	}
	dst = appendWord(append(dst, `{"state":`...), a.Verdict.String())
	if dst = append(dst, `,"message":`...); a.Message == "" {
		dst = append(dst, "null"...)
	} else {
		dst = appendString(dst, a.Message)
	}
	if a.Seq >= 0 {
		dst = appendKeyInt(dst, `,"seq":`, int64(a.Seq))
	}
	if a.Packet > 0 {
		dst = appendKeyInt(dst, `,"packet":`, int64(a.Packet))
	}
	if a.N > 0 {
		dst = appendKeyInt(dst, `,"n":`, int64(a.N))
	}
	if a.RTT >= 0 {
		dst = appendMillis(append(dst, `,"rtt_ms":`...), a.RTT)
	}
	return append(dst, '}')
}

// appendAckPlace appends the keys by and rtt_ms, each only where it is known.
func appendAckPlace(dst []byte, a *dissect.Ack) []byte {
	if a.By <= 0 {
		return dst
	}
	dst = appendKeyInt(dst, `,"by":`, int64(a.By))
	if a.RTT < 0 {
		return dst
	}
	return appendMillis(append(dst, `,"rtt_ms":`...), a.RTT)
}

// closeObject makes an object of the members since start, which begin with a
// comma; null where there are none.
func closeObject(dst []byte, start int) []byte {
	if len(dst) == start {
		return append(dst, "null"...)
	}
	dst[start] = '{'
	return append(dst, '}')
}

// Keys are given with all that stands around them, as `,"size":`.

func appendKeyString(dst []byte, key, value string) []byte {
	return appendString(append(dst, key...), value)
}

func appendKeyInt(dst []byte, key string, value int64) []byte {
	return appendInt(append(dst, key...), value)
}

// appendKeyNumber appends a number that counts from 1, null for 0.
func appendKeyNumber(dst []byte, key string, value int) []byte {
	if value == 0 {
		return append(append(dst, key...), "null"...)
	}
	return appendKeyInt(dst, key, int64(value))
}

func appendKeyAddress(dst []byte, key string, a netip.AddrPort) []byte {
	dst = append(dst, key...)
	switch {
	case !a.IsValid():
		return append(dst, "null"...)
	case a.Addr().Zone() != "":
		return appendString(dst, a.String())
	}
	return append(a.AppendTo(append(dst, '"')), '"')
}

// appendRoute appends direction and transport, each null where nobody knows.
func appendRoute(dst []byte, r *dissect.Record) []byte {
	dst = appendWord(append(dst, `,"dir":`...), r.Direction.String())
	return appendWord(append(dst, `,"transport":`...), r.Transport.String())
}

// appendWord appends a word that this project made, null for none.
func appendWord(dst []byte, word string) []byte {
	if word == "" {
		return append(dst, "null"...)
	}
	return append(append(append(dst, '"'), word...), '"')
}

func appendPackets(dst []byte, packets []int) []byte {
	dst = append(dst, `,"packets":[`...)
	for i, n := range packets {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendInt(dst, int64(n))
	}
	return append(dst, ']')
}
