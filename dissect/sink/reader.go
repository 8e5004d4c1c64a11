package sink

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"opscope/dissect"
	"opscope/dissect/jsonscan"
	"opscope/schema"
	"opscope/schema/wire"
)

const (
	// DefaultMaxLine is enough for a record of the largest datagram with its bytes.
	DefaultMaxLine = 16 << 20
	// maxInterned bounds the names that a Reader keeps, so that hostile input
	// cannot fill memory; names beyond it are made anew each time.
	maxInterned = 4096
	// coarseDigits is the time resolution of almost all captures. NDJSON does not
	// say it.
	coarseDigits = 6
)

// ReaderOptions say how NDJSON is read. The zero ReaderOptions need no schema.
type ReaderOptions struct {
	// Schema returns the schema of a protocol, nil for none. It gives fields
	// their enums, units and kinds; without it values are what JSON has.
	Schema  func(protocol string) *schema.Protocol
	MaxLine int // bytes; 0 for 16 MiB
}

// Reader reads the NDJSON of the NDJSON sink into records again. Written by that
// sink once more they give the same bytes; what was masked stays masked. Not in
// NDJSON are the positions of fields, which fields of Protocol Buffers were absent or
// guessed, the sizes in errors and the resolution of the capture's clock, which is taken
// for microseconds until a time is finer.
type Reader struct {
	in       *bufio.Reader
	o        ReaderOptions
	line     []byte
	number   int // of the line, from 1
	last     bool
	scan     jsonscan.Scanner
	rec      dissect.Record
	err      wire.Error // of the record
	data     []byte     // texts of the fields
	raw      []byte
	rest     []byte
	digits   int
	names    map[string]string
	plain    map[string]*schema.Field // fields without a schema
	secret   map[string]*schema.Field // the same, masked
	personal map[string]*schema.Field // the same, written by persons
	sessions map[sessionKey]*dissect.Secrets
	declared declarations
}

// NewReader returns a Reader of r.
func NewReader(r io.Reader, o ReaderOptions) *Reader {
	if o.MaxLine <= 0 {
		o.MaxLine = DefaultMaxLine
	}
	return &Reader{
		in: bufio.NewReaderSize(r, flushAt), o: o, digits: coarseDigits,
		names: map[string]string{}, plain: map[string]*schema.Field{}, secret: map[string]*schema.Field{},
		personal: map[string]*schema.Field{}, sessions: map[sessionKey]*dissect.Secrets{},
	}
}

// Next returns the next record, which is valid until the next call; summaries
// and blank lines are passed over. After the last record it returns io.EOF. For
// a line that is no record it returns *wire.Error, whose Path is the line and
// whose Offset counts from its start; reading may go on.
func (r *Reader) Next() (*dissect.Record, error) {
	for {
		if err := r.readLine(); err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(r.line)) == 0 {
			continue
		}
		summary, err := r.parse()
		switch {
		case err != nil:
			return nil, err
		case !summary:
			return &r.rec, nil
		}
	}
}

// readLine reads the next line, without its end. A line that is too long is
// read to its end and not kept.
func (r *Reader) readLine() error {
	r.line = r.line[:0]
	long := false
	for {
		part, err := r.in.ReadSlice('\n')
		if long = long || len(r.line)+len(part) > r.o.MaxLine+len("\n"); !long {
			r.line = append(r.line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return err
		case err != nil && len(part) == 0 && len(r.line) == 0 && !long:
			return io.EOF
		}
		r.last = err != nil
		r.number++
		if long {
			r.line = r.line[:0]
			e := r.lineError(r.o.MaxLine, "a line of at most "+strconv.Itoa(r.o.MaxLine)+" bytes", "more")
			e.Limit = LimitLine
			return e
		}
		r.line = bytes.TrimSuffix(r.line, []byte("\n"))
		return nil
	}
}

// LimitLine is the name of ReaderOptions.MaxLine in wire.Error.
const LimitLine = "line-bytes"

func (r *Reader) lineError(offset int, want, got string) *wire.Error {
	return &wire.Error{
		Layer: "ndjson", Path: "line " + strconv.Itoa(r.number), Offset: offset, Size: len(r.line),
		Want: want, Got: got, Kind: wire.Malformed,
	}
}

// parse reads one line into the record.
func (r *Reader) parse() (summary bool, err error) {
	r.reset()
	s := &r.scan
	s.Reset(r.line)
	kind, ok := r.typeOf()
	if kind != "" {
		return true, nil
	}
	if ok {
		s.Reset(r.line)
		r.object()
		s.End()
	}
	if s.Failed() {
		e := r.lineError(s.Failure())
		if r.last && e.Offset >= e.Size {
			e.Kind = wire.Truncated
		}
		return false, e
	}
	r.finish()
	return false, nil
}

func (r *Reader) reset() {
	packets, notes, nodes, head := r.rec.Packets[:0], r.rec.Notes[:0], r.rec.Body.Nodes[:0], r.rec.Head.Nodes[:0]
	r.rec = dissect.Record{
		Packets: packets, Notes: notes, Retold: true, Opcode: -1, Envelope: dissect.NoEnvelope,
		Head: schema.Tree{Nodes: head}, Body: schema.Tree{Nodes: nodes}, Ack: dissect.Ack{RTT: -1},
	}
	r.data, r.raw, r.rest = r.data[:0], r.raw[:0], r.rest[:0]
}

// typeOf reads the record's type, which the sink writes first. What the other
// keys mean, and which schema the fields have, depends on keys before them.
func (r *Reader) typeOf() (string, bool) {
	s := &r.scan
	for key := range s.Members() {
		if string(key) != "type" {
			break
		}
		switch word := string(s.Text()); word {
		case "record":
			r.rec.Type = dissect.FrameRecord
		case "ack":
			r.rec.Type, r.rec.Ack.State = dissect.AckRecord, dissect.AckAcked
		case "gap":
			r.rec.Type = dissect.GapRecord
		case "session":
			r.rec.Type = dissect.SessionRecord
		case "event":
			r.rec.Type = dissect.EventRecord
		case "summary", "flows", "opcodes", "acks", "tables":
			return word, true
		default:
			s.Fail("a type of record")
			return "", false
		}
		return "", true
	}
	s.Fail(`"type" as the first key`)
	return "", false
}

// object reads all keys of a record.
func (r *Reader) object() {
	s, rec := &r.scan, &r.rec
	timed := false
	for key := range s.Members() {
		switch string(key) {
		case "type":
			s.Text()
		case "file":
			rec.File = int(s.Integer())
		case "time":
			rec.Time, timed = r.time(), true
		case "session":
			rec.Session = r.count()
		case "flow":
			rec.Flow = r.count()
		case "dir":
			rec.Direction = word(s, dissect.ServerToClient, "a direction")
		case "transport":
			rec.Transport = word(s, schema.UDP, "a transport")
		case "packets":
			for range s.Elements() {
				rec.Packets = append(rec.Packets, int(s.Integer()))
			}
		default:
			if !r.typeKey(key) {
				s.Fail("a key of this type of record")
				return
			}
		}
	}
	if !timed && !s.Failed() {
		s.Fail(`"time"`)
	}
}

// typeKey reads the value of a key that only one type of record has, and
// reports whether there is such a key.
func (r *Reader) typeKey(key []byte) bool {
	switch r.rec.Type {
	case dissect.FrameRecord:
		return r.frameKey(key)
	case dissect.AckRecord:
		return r.ackKey(key)
	case dissect.GapRecord:
		return r.gapKey(key)
	}
	return r.eventKey(key)
}

func (r *Reader) frameKey(key []byte) bool {
	s, rec := &r.scan, &r.rec
	switch string(key) {
	case "n":
		rec.N = int(s.Integer())
	case "src":
		rec.Src = r.address()
	case "dst":
		rec.Dst = r.address()
	case "passed":
		rec.Passage.Type = word(s, dissect.Outgoing, "how a packet passed")
	case "interface":
		rec.Passage.Interface = int(s.Integer())
	case "protocol":
		rec.Protocol = r.name()
	case "message":
		rec.Message = r.name()
	case "opcode":
		if !s.Null() {
			rec.Opcode = int(s.Integer())
		}
	case "envelope":
		r.envelope()
	case "context":
		rec.Context = word(s, schema.Guessed, "an origin")
	case "fields":
		r.findPacket()
		r.members(r.declared.of(rec.Packet, rec.Direction.Sender()))
		r.redactAll()
	case "size":
		rec.Size = int(s.Integer())
	case "offset":
		rec.Offset = s.Integer()
	case "ack":
		r.acknowledgement()
	case "acks":
		r.acks()
	case "notes":
		for range s.Elements() {
			r.note()
		}
	case "rest":
		r.restBytes()
	case "error":
		r.error()
	case "raw":
		r.rawBytes()
	default:
		return false
	}
	return true
}

func (r *Reader) ackKey(key []byte) bool {
	switch string(key) {
	case "n":
		r.rec.Acked = int(r.scan.Integer())
	case "state":
		r.rec.Ack.State = word(&r.scan, dissect.AckIgnored, "a state of an acknowledgement")
	case "by":
		r.rec.Ack.By = int(r.scan.Integer())
	case "rtt_ms":
		r.rec.Ack.RTT = r.duration()
	default:
		return false
	}
	return true
}

func (r *Reader) gapKey(key []byte) bool {
	switch string(key) {
	case "bytes":
		r.rec.Bytes = r.scan.Integer()
	case "after_packet":
		r.rec.After = r.count()
	case "before_packet":
		r.rec.Before = r.count()
	case "offset":
		r.rec.Offset = r.scan.Integer()
	case "reason":
		r.rec.Text = r.name()
	default:
		return false
	}
	return true
}

func (r *Reader) eventKey(key []byte) bool {
	switch string(key) {
	case "client":
		r.rec.Client = r.address()
	case "server":
		r.rec.Server = r.address()
	case "protocol":
		r.rec.Protocol = r.name()
	case "state", "code":
		r.rec.Code = r.name()
	case "reason", "text":
		r.rec.Text = string(r.scan.Text())
	case "error":
		r.error()
	default:
		return false
	}
	return true
}

// finish gives the record what other keys add up to.
func (r *Reader) finish() {
	rec := &r.rec
	if rec.Time.Nanosecond()%int(time.Microsecond) != 0 {
		r.digits = 9
	}
	rec.Digits = r.digits
	rec.Raw, rec.Rest, rec.Body.Data, rec.Head.Data = r.raw, r.rest, r.data, r.data
	if rec.Secrets = r.secretsOf(sessionKey{rec.File, rec.Session}); rec.Secrets == nil {
		return
	}
	if rec.Packet.Secret() {
		rec.Secrets.Learn(&rec.Body)
	}
	rec.Lost = rec.Err != nil && (rec.Packet == nil || slices.ContainsFunc(rec.Notes, func(n dissect.Note) bool {
		return n.Code == "frame_size_too_small" || n.Code == "frame_size_too_large"
	}))
	if p := r.schemaOf(rec.Protocol); p != nil {
		rec.Secrets.Anywhere = p.Unknown != nil
	}
}

// schemaOf returns the schema of a protocol, nil for none.
func (r *Reader) schemaOf(protocol string) *schema.Protocol {
	if r.o.Schema == nil {
		return nil
	}
	return r.o.Schema(protocol)
}

// sessionKey names a session among several files.
type sessionKey struct{ file, session int }

// secretsOf returns what no output of a session may show, as far as its records say it.
func (r *Reader) secretsOf(k sessionKey) *dissect.Secrets {
	s := r.sessions[k]
	if s == nil && k.session > 0 && len(r.sessions) < maxInterned {
		s = &dissect.Secrets{}
		r.sessions[k] = s
	}
	return s
}

// redactAll hides the texts of a body of which every text is to be hidden. Where one is
// a mask, all were; numbers of 64 bits, which are texts here, then stand as they were.
func (r *Reader) redactAll() {
	rec := &r.rec
	rec.Body.Data = r.data
	if rec.Layout == nil || rec.Layout.Redaction() == schema.Open {
		return
	}
	fields := r.personal
	if rec.Layout.Redaction() == schema.Secret {
		fields = r.secret
		for i := range rec.Body.Nodes {
			if dissect.IsMask(&rec.Body, i) {
				return
			}
		}
	}
	for i := range rec.Body.Nodes {
		n := &rec.Body.Nodes[i]
		if n.Kind != schema.String && n.Kind != schema.Bytes {
			continue
		}
		text := rec.Body.AppendBytes(nil, i)
		var number schema.Node
		if len(text) > 0 && !integer(&number, text) {
			n.Field = r.fieldOf(fields, []byte(n.Field.Name), rec.Layout.Redaction())
		}
	}
}

// findPacket gives the record its packet, by opcode or else by name.
func (r *Reader) findPacket() {
	rec := &r.rec
	p := r.schemaOf(rec.Protocol)
	if p == nil {
		return
	}
	if rec.Opcode >= 0 {
		rec.Packet = p.Packet(uint64(rec.Opcode), rec.Direction.Sender(), rec.Transport)
	}
	if rec.Packet == nil {
		rec.Packet = p.PacketNamed(rec.Message)
	}
	if layouts := rec.Packet.Of(rec.Direction.Sender()); len(layouts) > 0 {
		rec.Layout = layouts[0]
	}
}

// name reads a string that many records share.
func (r *Reader) name() string { return r.intern(r.scan.Text()) }

func (r *Reader) intern(b []byte) string {
	if name, ok := r.names[string(b)]; ok {
		return name
	}
	name := string(b)
	if len(r.names) < maxInterned {
		r.names[name] = name
	}
	return name
}

// count reads a number that counts from 1, null for 0.
func (r *Reader) count() int {
	if r.scan.Null() {
		return 0
	}
	return int(r.scan.Integer())
}

// time reads a time, null for one that NDJSON cannot say.
func (r *Reader) time() time.Time {
	if r.scan.Null() {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, string(r.scan.Text()))
	if err != nil {
		r.scan.Fail("a time of RFC 3339")
	}
	return t.UTC()
}

// duration reads milliseconds: exactly, unless another program has written them
// with an exponent.
func (r *Reader) duration() time.Duration {
	number := string(r.scan.Number())
	if d, err := time.ParseDuration(number + "ms"); err == nil {
		return d
	}
	v, _ := strconv.ParseFloat(number, 64)
	if v *= float64(time.Millisecond); !(math.Abs(v) < math.MaxInt64) {
		r.scan.Fail("milliseconds")
		return 0
	}
	return time.Duration(math.Round(v))
}

// word reads the String of one of the values up to last, null for the zero value.
func word[T interface {
	~uint8
	String() string
}](s *jsonscan.Scanner, last T, want string) T {
	if s.Null() {
		return 0
	}
	text := s.Text()
	for v := T(0); v <= last; v++ {
		if v.String() == string(text) {
			return v
		}
	}
	s.Fail(want)
	return 0
}

func (r *Reader) address() netip.AddrPort {
	if r.scan.Null() {
		return netip.AddrPort{}
	}
	a, err := netip.ParseAddrPort(string(r.scan.Text()))
	if err != nil {
		r.scan.Fail("an address and port")
	}
	return a
}

func (r *Reader) envelope() {
	s, e := &r.scan, &r.rec.Envelope
	if s.Null() {
		return
	}
	for key := range s.Members() {
		switch string(key) {
		case "mode":
			e.Mode = int(s.Integer())
		case "seq":
			e.Seq = int(s.Integer())
		case "stream":
			r.rec.Stream = int(s.Integer())
		case "length":
			e.Length = int(s.Integer())
		case "origin":
			e.Origin = word(s, schema.Guessed, "an origin")
		case "learned_in":
			e.LearnedIn = int(s.Integer())
		case "prefixed":
			e.Prefixed = s.Word("true")
		case "copies":
			e.Copies = int(s.Integer())
		case "first":
			e.First = int(s.Integer())
		default:
			r.head(key)
		}
	}
}

// head reads another field of the envelope.
func (r *Reader) head(key []byte) {
	body := r.rec.Body.Nodes
	r.rec.Body.Nodes = r.rec.Head.Nodes
	if d := findBytes(r.declared.envelopes(r.o.Schema, r.rec.Protocol), key); d != nil {
		r.value(d.Field, d)
	} else {
		r.value(r.fieldOf(r.plain, key, schema.Open), nil)
	}
	r.rec.Head.Nodes, r.rec.Body.Nodes = r.rec.Body.Nodes, body
}

func (r *Reader) acknowledgement() {
	s, a := &r.scan, &r.rec.Ack
	if s.Null() {
		return
	}
	for key := range s.Members() {
		switch string(key) {
		case "state":
			a.State = word(s, dissect.AckIgnored, "a state of an acknowledgement")
		case "by":
			a.By = int(s.Integer())
		case "rtt_ms":
			a.RTT = r.duration()
		default:
			s.Fail("a key of an acknowledgement")
		}
	}
}

func (r *Reader) acks() {
	s, a := &r.scan, &r.rec.Acks
	if s.Null() {
		return
	}
	*a = dissect.Acks{Seq: -1, RTT: -1}
	for key := range s.Members() {
		switch string(key) {
		case "state":
			a.Verdict = word(s, dissect.AcksUnseen, "what an acknowledgement is")
		case "message":
			if !s.Null() {
				a.Message = r.name()
			}
		case "seq":
			a.Seq = int(s.Integer())
		case "packet":
			a.Packet = int(s.Integer())
		case "n":
			a.N = int(s.Integer())
		case "rtt_ms":
			a.RTT = r.duration()
		default:
			s.Fail("a key of what is acknowledged")
		}
	}
}

func (r *Reader) note() {
	s := &r.scan
	var n dissect.Note
	for key := range s.Members() {
		switch string(key) {
		case "severity": // that of the code
			s.Text()
		case "code":
			n.Code = r.name()
		case "text":
			n.Text = string(s.Text())
		default:
			s.Fail("a key of a note")
		}
	}
	r.rec.Notes = append(r.rec.Notes, n)
}

func (r *Reader) error() {
	s, e := &r.scan, &r.err
	if s.Null() {
		return
	}
	*e = wire.Error{}
	for key := range s.Members() {
		switch string(key) {
		case "layer":
			e.Layer = r.name()
		case "path":
			e.Path = string(s.Text())
		case "offset":
			e.Offset = int(s.Integer())
		case "bit":
			e.Bit = int(s.Integer())
		case "want":
			e.Want = string(s.Text())
		case "got":
			e.Got = string(s.Text())
		case "kind":
			e.Kind = word(s, wire.Incomplete, "a kind of error")
		default:
			s.Fail("a key of an error")
		}
	}
	r.rec.Err = e
}

// restBytes reads hex, or the mask.
func (r *Reader) restBytes() {
	text := r.scan.Text()
	if string(text) == dissect.MaskText {
		r.addNode(schema.Node{Field: dissect.WithheldRest})
		return
	}
	if r.rest = appendBytesOf(r.rest, text); len(r.rest) != len(text)/2 || len(text)%2 != 0 {
		r.scan.Fail("pairs of hexadecimal digits")
	}
}

// rawBytes reads hex with ** for masked bytes.
func (r *Reader) rawBytes() {
	text := r.scan.Text()
	for i := 0; i+1 < len(text); i += 2 {
		n := len(r.raw)
		if string(text[i:i+2]) == "**" {
			r.raw = append(r.raw, 0)
			r.withhold(n)
			continue
		}
		if r.raw = appendBytesOf(r.raw, text[i:i+2]); len(r.raw) == n {
			break
		}
	}
	if len(r.raw) != len(text)/2 || len(text)%2 != 0 {
		r.scan.Fail("pairs of hexadecimal digits, or **")
	}
}

// withhold marks a byte of the record as masked.
func (r *Reader) withhold(at int) {
	if k := len(r.rec.Body.Nodes) - 1; k >= 0 {
		n := &r.rec.Body.Nodes[k]
		if n.Field == dissect.WithheldRaw && int(n.Off+n.Len) == 8*at {
			n.Len += 8
			return
		}
	}
	r.addNode(schema.Node{Field: dissect.WithheldRaw, Off: int32(8 * at), Len: 8})
}

// appendBytesOf appends the bytes that pairs of lower-case digits stand for, up
// to the first that does not.
func appendBytesOf(dst, text []byte) []byte {
	for ; len(text) >= 2; text = text[2:] {
		high := strings.IndexByte(lowerDigits, text[0])
		low := strings.IndexByte(lowerDigits, text[1])
		if high < 0 || low < 0 {
			break
		}
		dst = append(dst, byte(high<<4|low))
	}
	return dst
}

func (r *Reader) addNode(n schema.Node) int {
	n.Sel = -1
	r.rec.Body.Nodes = append(r.rec.Body.Nodes, n)
	return len(r.rec.Body.Nodes) - 1
}

// members reads an object of fields.
func (r *Reader) members(fields []declaration) {
	for key := range r.scan.Members() {
		d := findBytes(fields, key)
		if d == nil {
			r.value(r.fieldOf(r.plain, key, schema.Open), nil)
			continue
		}
		r.value(d.Field, d)
	}
}

func findBytes(fields []declaration, name []byte) *declaration {
	i := slices.IndexFunc(fields, func(d declaration) bool { return d.Name == string(name) })
	if i < 0 {
		return nil
	}
	return &fields[i]
}

// fieldOf returns the field of this name among those without a schema.
func (r *Reader) fieldOf(known map[string]*schema.Field, name []byte, redact schema.Redaction) *schema.Field {
	if f, ok := known[string(name)]; ok {
		return f
	}
	f := &schema.Field{Name: r.intern(name), Redact: redact}
	if len(known) < maxInterned {
		known[f.Name] = f
	}
	return f
}

// value reads the value of a field; d is what the schema says of it, nil for
// nothing.
func (r *Reader) value(f *schema.Field, d *declaration) {
	s := &r.scan
	switch c := s.Peek(); {
	case c == '{':
		r.nested(f, d, schema.Struct)
	case c == '[':
		r.nested(f, d, schema.Array)
	case c == '"':
		r.text(f, s.Text(), d != nil)
	case s.Null():
		r.addNode(schema.Node{Field: f, Kind: schema.Null})
	case s.Word("true"):
		r.addNode(schema.Node{Field: f, Kind: schema.Bool, Num: 1})
	case s.Word("false"):
		r.addNode(schema.Node{Field: f, Kind: schema.Bool})
	default:
		r.numeral(f, s.Number())
	}
}

func (r *Reader) nested(f *schema.Field, d *declaration, kind schema.ValueKind) {
	i := r.addNode(schema.Node{Field: f, Kind: kind})
	if kind == schema.Array {
		for range r.scan.Elements() {
			r.value(f, d)
		}
	} else {
		var fields []declaration
		if d != nil {
			fields = d.members
		}
		r.members(fields)
	}
	r.rec.Body.Nodes[i].Size = int32(len(r.rec.Body.Nodes) - i - 1)
}

// numeral adds a number by its text: an integer, unless it is written as another one or has
// more than 64 bits.
func (r *Reader) numeral(f *schema.Field, text []byte) {
	if r.scan.Failed() {
		return
	}
	n := schema.Node{Field: f}
	if !bytes.ContainsAny(text, ".eE") && integer(&n, text) || float(&n, text) {
		r.addNode(n)
	}
}

// integer gives n the value of a decimal integer as this package writes it.
func integer(n *schema.Node, text []byte) bool {
	if text[0] == '-' {
		v, err := strconv.ParseInt(string(text), 10, 64)
		n.Kind, n.Num = schema.Int, uint64(v)
		return err == nil && v < 0 && text[1] != '0'
	}
	v, err := strconv.ParseUint(string(text), 10, 64)
	n.Kind, n.Num = schema.Uint, v
	return err == nil && (string(text) == "0" || text[0] != '0')
}

func float(n *schema.Node, text []byte) bool {
	v, err := strconv.ParseFloat(string(text), 64)
	n.Kind, n.Num = schema.Float, math.Float64bits(v)
	return err == nil || math.IsInf(v, 0)
}

// text adds a string, which the schema may know as something else.
func (r *Reader) text(f *schema.Field, text []byte, known bool) {
	if r.scan.Failed() {
		return
	}
	n := schema.Node{Field: f}
	switch {
	case len(text) == 0 && f.Redact != schema.Open: // what is not there gives nothing away
		n.Field = r.fieldOf(r.plain, []byte(f.Name), schema.Open)
	case string(text) == dissect.MaskText:
		if !known {
			n.Field = r.fieldOf(r.secret, []byte(f.Name), schema.Secret)
		}
	case known && r.typed(&n, text):
		r.addNode(n)
		return
	}
	n.Kind, n.Body, n.BodyLen = schema.String, int32(8*len(r.data)), int32(len(text))
	r.data = append(r.data, text...)
	r.addNode(n)
}

// typed gives n the value that a string stands for by its field's type, and
// reports whether there is one.
func (r *Reader) typed(n *schema.Node, text []byte) bool {
	f := n.Field
	kind := leadingWord(f.Type)
	switch {
	case f.Wide:
		return len(text) > 0 && integer(n, text)
	case f.Symbol:
		v, ok := f.Enum.ValueOf(string(text))
		n.Kind, n.Num = schema.Uint, v
		return ok
	case string(text) == "NaN" || string(text) == "+Inf" || string(text) == "-Inf":
		return kind != "text" && kind != "string" && float(n, text)
	case kind == "bytes" || kind == "rest":
		return r.typedBytes(n, schema.Bytes, appendBytesOf(r.data, text), len(text)/2) && len(text)%2 == 0
	case kind == "guid":
		return r.typedBytes(n, schema.GUID, appendBytesOfGUID(r.data, text), len(guidOrder))
	case kind == "ipv4":
		a, err := netip.ParseAddr(string(text))
		if err != nil || !a.Is4() {
			return false
		}
		for _, b := range a.As4() {
			n.Num = n.Num<<8 | uint64(b)
		}
		n.Kind = schema.IPv4
		return true
	}
	return false
}

// typedBytes makes n the bytes appended to the record's data, if they are size.
func (r *Reader) typedBytes(n *schema.Node, kind schema.ValueKind, data []byte, size int) bool {
	start := len(r.data)
	if len(data)-start != size {
		return false
	}
	r.data = data
	n.Kind, n.Body, n.BodyLen = kind, int32(8*start), int32(size)
	return true
}

// appendBytesOfGUID appends the 16 bytes that a GUID's text stands for, or
// nothing for another text.
func appendBytesOfGUID(dst, text []byte) []byte {
	const example = "{1C8248C0-9772-11CF-B74F-00C0DF413ED1}"
	if len(text) != len(example) {
		return dst
	}
	start := len(dst)
	dst = append(dst, make([]byte, len(guidOrder))...)
	at := 0
	for _, k := range guidOrder {
		for at < len(example) && (example[at] == '{' || example[at] == '-') {
			at++
		}
		high := strings.IndexByte(upperDigits, text[at])
		low := strings.IndexByte(upperDigits, text[at+1])
		if high < 0 || low < 0 {
			return dst[:start]
		}
		dst[start+int(k)] = byte(high<<4 | low)
		at += 2
	}
	if string(appendGUID(nil, dst[start:])) != string(text) {
		return dst[:start]
	}
	return dst
}

// leadingWord returns the word that a type begins with: "text" of "text(u16)".
func leadingWord(typ string) string {
	i := strings.IndexFunc(typ, func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' })
	if i < 0 {
		return typ
	}
	return typ[:i]
}
