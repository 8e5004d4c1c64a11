package sink

import (
	"cmp"
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"opscope/dissect"
	"opscope/schema"
)

// UnknownOptions say what the Unknown sink shows.
type UnknownOptions struct {
	Samples int // of each kind, at most; 0 means 3
	dissect.Privacy
	// Schema returns the schema of a protocol, nil for none. It says how many packets
	// there are to be seen.
	Schema func(protocol string) *schema.Protocol
}

const (
	defaultSamples = 3
	// sampleBytes is how much of a record a sample shows.
	sampleBytes = 32
	// maxKinds is how many rows each list may have. A protocol with a byte of opcode has
	// at most 1,024; what hostile traffic adds to a list that is full is only counted.
	maxKinds = 4096
)

// Unknown is a sink that writes nothing until Report: it gathers what was not
// understood. It keeps samples, so that its memory is bounded by the kinds it tells
// apart.
type Unknown struct {
	o        UnknownOptions
	redact   dissect.Redactor
	coverage map[string]*Coverage
	opcodes  listing[*Opcode]
	leftover listing[*Leftover]
	failures listing[*Failure]

	undecoded int64 // of whole captures
	rest      int64 // of these, in records
}

// NewUnknown returns a sink for what is not understood.
func NewUnknown(o UnknownOptions) *Unknown {
	o.Samples = cmp.Or(o.Samples, defaultSamples)
	return &Unknown{o: o, redact: dissect.Redactor{Privacy: o.Privacy}, coverage: map[string]*Coverage{}}
}

// listing is one of the lists, by what a row is about.
type listing[T any] struct {
	rows  map[what]T
	order []what // of rows, as they came
	extra int    // records that found no room
}

// what is what a row is about.
type what struct {
	protocol, message, path string
	direction               dissect.Direction
	transport               schema.Transport
	opcode                  int
	kind                    string
}

// row returns the row for k, one made by make if there is room.
func (t *listing[T]) row(k what, make func() T) (r T, ok bool) {
	if r, ok = t.rows[k]; ok {
		return r, true
	}
	if len(t.rows) == maxKinds {
		t.extra++
		return r, false
	}
	if t.rows == nil {
		t.rows = map[what]T{}
	}
	r = make()
	t.rows[k] = r
	t.order = append(t.order, k)
	return r, true
}

// Range is the least and the most of some numbers of bytes.
type Range struct {
	Least int `json:"least"`
	Most  int `json:"most"`
}

func (r *Range) add(n int, first bool) {
	if first {
		*r = Range{n, n}
	}
	r.Least, r.Most = min(r.Least, n), max(r.Most, n)
}

// String returns "5" or "5-9".
func (r Range) String() string {
	if r.Least == r.Most {
		return strconv.Itoa(r.Least)
	}
	return strconv.Itoa(r.Least) + "-" + strconv.Itoa(r.Most)
}

// Coverage is how much of a protocol was understood.
type Coverage struct {
	Protocol     string `json:"protocol"`
	Records      int    `json:"records"`
	Decoded      int    `json:"decoded"` // to the last byte, without an error
	Bytes        int64  `json:"bytes"`   // captured, of records
	DecodedBytes int64  `json:"decoded_bytes"`
	Seen         int    `json:"packets_seen"` // different packets of the schema
	Packets      int    `json:"packets"`      // that the schema has
	Layouts      int    `json:"layouts"`      // of these, with a layout

	seen map[*schema.Packet]bool
}

// Opcode is an opcode, or the body of a packet, that nothing is known about.
type Opcode struct {
	Protocol  string   `json:"protocol"`
	Direction string   `json:"dir,omitempty"`
	Transport string   `json:"transport"`
	Opcode    Number   `json:"opcode"`
	Message   string   `json:"message"`
	What      string   `json:"what"` // unknown_opcode, unknown_packet_id or unknown_body
	Count     int      `json:"count"`
	Size      Range    `json:"size"`
	Samples   []string `json:"samples"`
}

// Leftover is a packet whose layout leaves bytes over.
type Leftover struct {
	Protocol  string   `json:"protocol"`
	Direction string   `json:"dir,omitempty"`
	Message   string   `json:"message"`
	Count     int      `json:"count"`
	Bytes     Range    `json:"bytes"`
	Samples   []string `json:"samples"` // of the bytes left over
}

// Failure is a field at which decoding fails.
type Failure struct {
	Protocol  string `json:"protocol"`
	Direction string `json:"dir,omitempty"`
	Message   string `json:"message"`
	Path      string `json:"path"`
	Kind      string `json:"kind"`
	Count     int    `json:"count"`
	Want      string `json:"want"` // the first time
	Got       string `json:"got"`
	File      int    `json:"file"`
	Packet    int    `json:"packet"` // of the first one, 0 for none
	Sample    string `json:"sample"` // its bytes
}

// Flush does nothing.
func (u *Unknown) Flush() error { return nil }

// AddUndecoded adds the bytes of a capture that no field covers, Summary.UndecodedBytes:
// those behind the last field of records, and those of streams that are in no record.
func (u *Unknown) AddUndecoded(n int64) { u.undecoded += n }

// Write takes one record.
func (u *Unknown) Write(r *dissect.Record) error {
	if r.Type != dissect.FrameRecord {
		return nil
	}
	u.redact.Prepare(r)
	u.rest += int64(len(r.Rest))
	u.cover(r)
	k := what{protocol: r.Protocol, direction: r.Direction, transport: r.Transport, opcode: r.Opcode, message: r.Message}
	unread := ""
	for i := range r.Notes {
		switch code := r.Notes[i].Code; code {
		case "unknown_opcode", "unknown_packet_id", "unknown_body", "ambiguous_type", "defect":
			unread = code
		}
	}
	switch {
	case unread != "":
		u.unread(r, k, unread)
	case r.Err != nil:
		u.fail(r, k)
	case len(r.Rest) > 0, u.redact.HidesRest(): // masked where it is read back, and of unknown length
		u.left(r, k)
	}
	return nil
}

// cover counts a record.
func (u *Unknown) cover(r *dissect.Record) {
	c := u.coverage[r.Protocol]
	if c == nil {
		c = u.newCoverage(r.Protocol)
	}
	c.Records++
	// What is read back has no bytes, and says how many there were.
	size := len(r.Raw)
	if size == 0 {
		size = r.Size
	}
	c.Bytes += int64(size)
	c.DecodedBytes += int64(max(0, size-len(r.Rest)))
	if r.Err == nil && len(r.Rest) == 0 && !u.redact.HidesRest() {
		c.Decoded++
	}
	if p := r.Packet; p != nil && !c.seen[p] {
		c.seen[p] = true
		c.Seen++
	}
}

func (u *Unknown) newCoverage(protocol string) *Coverage {
	c := &Coverage{Protocol: protocol, seen: map[*schema.Packet]bool{}}
	u.coverage[protocol] = c
	if u.o.Schema == nil {
		return c
	}
	if p := u.o.Schema(protocol); p != nil {
		c.Packets = len(p.Packets)
		for _, k := range p.Packets {
			if len(k.Of(schema.AnySender)) > 0 || len(k.Of(schema.Client)) > 0 || len(k.Of(schema.Server)) > 0 || k.Proto != "" {
				c.Layouts++
			}
		}
	}
	return c
}

func (u *Unknown) unread(r *dissect.Record, k what, code string) {
	k.kind = code
	row, ok := u.opcodes.row(k, func() *Opcode {
		return &Opcode{Protocol: r.Protocol, Direction: r.Direction.String(), Transport: r.Transport.String(), Opcode: Number(r.Opcode), Message: r.Message, What: code}
	})
	if !ok {
		return
	}
	row.Count++
	row.Size.add(r.Size, row.Count == 1)
	row.Samples = u.sample(row.Samples, u.raw(r))
}

func (u *Unknown) left(r *dissect.Record, k what) {
	row, ok := u.leftover.row(k, func() *Leftover {
		return &Leftover{Protocol: r.Protocol, Direction: r.Direction.String(), Message: r.Message}
	})
	if !ok {
		return
	}
	row.Count++
	row.Bytes.add(len(r.Rest), row.Count == 1)
	row.Samples = u.sample(row.Samples, u.restSample(r))
}

// element finds the index of an array's element in a path. Fields of all elements
// are one row.
var element = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\[\d+\]`)
})

func (u *Unknown) fail(r *dissect.Record, k what) {
	k.path, k.kind = element().ReplaceAllString(r.Err.Path, "[]"), r.Err.Kind.String()
	row, ok := u.failures.row(k, func() *Failure {
		f := &Failure{
			Protocol: r.Protocol, Direction: r.Direction.String(), Message: r.Message, Path: strings.Clone(k.path), Kind: k.kind,
			Want: u.redact.Clean(r.Err.Want), Got: u.redact.ErrorGot(r), File: r.File, Sample: u.raw(r),
		}
		if n := len(r.Packets); n > 0 {
			f.Packet = r.Packets[n-1]
		}
		return f
	})
	if ok {
		row.Count++
	}
}

// sample adds a sample, unless it is there or there are enough.
func (u *Unknown) sample(list []string, s string) []string {
	if len(list) == u.o.Samples || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// raw returns the first bytes of a record as hex, masked ones as **. What is read back
// has only those behind its last field.
func (u *Unknown) raw(r *dissect.Record) string {
	if len(r.Raw) == 0 {
		return u.restSample(r)
	}
	return shortened(string(appendRaw(nil, r, &u.redact)))
}

// restSample returns the first bytes left over as hex, or the mask.
func (u *Unknown) restSample(r *dissect.Record) string {
	if u.redact.HidesRest() {
		return dissect.MaskText
	}
	return shortened(string(appendHex(nil, r.Rest)))
}

// shortened cuts a sample.
func shortened(hex string) string {
	if len(hex) > 2*sampleBytes {
		return hex[:2*sampleBytes] + "…"
	}
	return hex
}

// Report is what was not understood.
type Report struct {
	Coverage []*Coverage `json:"coverage"`
	Opcodes  []*Opcode   `json:"unknown"`
	Leftover []*Leftover `json:"leftover"`
	Failures []*Failure  `json:"failures"`
	// PassedOver is bytes of streams that are in no record.
	PassedOver int64 `json:"passed_over_bytes"`
	// Records of kinds beyond those that the lists have room for.
	Unlisted int `json:"unlisted"`
}

// Report returns what was gathered so far: the commonest first.
func (u *Unknown) Report() *Report {
	r := &Report{
		Coverage: []*Coverage{},
		Opcodes:  sorted(&u.opcodes, func(o *Opcode) int { return o.Count }),
		Leftover: sorted(&u.leftover, func(l *Leftover) int { return l.Count }),
		Failures: sorted(&u.failures, func(f *Failure) int { return f.Count }),
		Unlisted: u.opcodes.extra + u.leftover.extra + u.failures.extra,

		PassedOver: max(0, u.undecoded-u.rest),
	}
	for _, c := range u.coverage {
		r.Coverage = append(r.Coverage, c)
	}
	slices.SortFunc(r.Coverage, func(a, b *Coverage) int { return cmp.Compare(a.Protocol, b.Protocol) })
	return r
}

// sorted returns the rows of a table: by protocol, then the commonest first, then by
// what they are about.
func sorted[T any](t *listing[T], count func(T) int) []T {
	keys := make([]what, 0, len(t.rows))
	for k := range t.rows {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b what) int {
		return cmp.Or(
			cmp.Compare(a.protocol, b.protocol), cmp.Compare(count(t.rows[b]), count(t.rows[a])), cmp.Compare(a.opcode, b.opcode),
			cmp.Compare(a.message, b.message), cmp.Compare(a.path, b.path), cmp.Compare(a.direction, b.direction),
			cmp.Compare(a.transport, b.transport), cmp.Compare(a.kind, b.kind),
		)
	})
	rows := make([]T, len(keys))
	for i, k := range keys {
		rows[i] = t.rows[k]
	}
	return rows
}

// WriteJSON writes a report as one line of JSON.
func (r *Report) WriteJSON(w io.Writer) error { return writeObject(w, r) }

// writeObject writes a report as one line of JSON.
func writeObject(w io.Writer, report any) error {
	b, err := json.Marshal(report)
	if err != nil {
		return err
	}
	// What json leaves as it is may still drive a terminal. It stands in strings only.
	var dst []byte
	for i := 0; i < len(b); {
		c, size := utf8.DecodeRune(b[i:])
		if c >= 0x7f && unprintable(c) && c <= 0xffff {
			dst = appendDigits(append(dst, '\\', 'u'), uint64(c), 4)
		} else {
			dst = append(dst, b[i:i+size]...)
		}
		i += size
	}
	_, err = w.Write(append(dst, '\n'))
	return err
}

// WriteText writes a report as tables.
func (r *Report) WriteText(w io.Writer) error {
	b := &strings.Builder{}
	var rows [][]string
	for _, c := range r.Coverage {
		rows = append(rows, []string{
			c.Protocol, grouped(int64(c.Records)), percent(int64(c.Decoded), int64(c.Records)), grouped(c.Bytes), percent(c.DecodedBytes, c.Bytes),
			strconv.Itoa(c.Seen) + " of " + strconv.Itoa(c.Packets), strconv.Itoa(c.Layouts),
		})
	}
	if err := section(b, "coverage", []string{"protocol", "records", "decoded", "bytes", "decoded", "packets seen", "with a layout"}, rows); err != nil {
		return err
	}
	rows = nil
	for _, o := range r.Opcodes {
		rows = append(rows, withSamples([]string{
			o.Protocol, o.Direction, o.Transport, o.Opcode.String(), o.Message, grouped(int64(o.Count)), o.Size.String(),
		}, o.Samples)...)
	}
	if err := section(b, "unknown opcodes and bodies", []string{"protocol", "dir", "over", "opcode", "message", "count", "size", "samples"}, rows); err != nil {
		return err
	}
	rows = nil
	for _, l := range r.Leftover {
		rows = append(rows, withSamples([]string{l.Protocol, l.Direction, l.Message, grouped(int64(l.Count)), l.Bytes.String()}, l.Samples)...)
	}
	if err := section(b, "records with bytes left over", []string{"protocol", "dir", "message", "count", "bytes", "samples"}, rows); err != nil {
		return err
	}
	rows = nil
	for _, f := range r.Failures {
		rows = append(rows, []string{
			f.Protocol, f.Direction, f.Path, grouped(int64(f.Count)), f.Kind, f.Want, f.Got, strconv.Itoa(f.Packet), f.Sample,
		})
	}
	if err := section(b, "fields at which decoding fails", []string{"protocol", "dir", "field", "count", "kind", "want", "got", "packet", "sample"}, rows); err != nil {
		return err
	}
	if r.PassedOver > 0 {
		b.WriteString("\nbytes of streams in no record: " + grouped(r.PassedOver) + "\n")
	}
	if r.Unlisted > 0 {
		b.WriteString("\nrecords of further kinds, not listed: " + grouped(int64(r.Unlisted)) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// section writes one table under its name, or that there is nothing for it.
func section(b *strings.Builder, name string, header []string, rows [][]string) error {
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	if len(rows) == 0 {
		b.WriteString(name + ": none\n")
		return nil
	}
	b.WriteString(name + "\n")
	for _, row := range rows {
		for i := range row {
			row[i] = Escape(row[i])
		}
	}
	return WriteTable(b, header, rows)
}

// withSamples puts samples behind a row, the further ones on rows of their own.
func withSamples(row, samples []string) [][]string {
	rows := [][]string{row}
	for i, s := range samples {
		if i > 0 {
			rows = append(rows, make([]string, len(row)))
		}
		rows[i] = append(rows[i], s)
	}
	return rows
}

func grouped(n int64) string { return string(appendCount(nil, n)) }

// percent returns how many of all there are, cut to a tenth, so that 100% is all.
func percent(n, all int64) string {
	if all == 0 {
		return "-"
	}
	tenths := n * 1000 / all
	return strconv.FormatInt(tenths/10, 10) + "." + strconv.FormatInt(tenths%10, 10) + "%"
}
