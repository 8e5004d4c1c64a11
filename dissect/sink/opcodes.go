package sink

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"opscope/dissect"
)

// Opcodes counts records by message and direction. It is a Sink that prints nothing.
type Opcodes struct {
	rows    listing[*opcodeRow]
	recent  [recentKinds]*opcodeRow
	records int
	bytes   int64
	span    time.Duration
}

// recentKinds is how many kinds of records are found again without their row being looked
// up, each at the place that its opcode, direction and transport give it.
const recentKinds = 1 << (7 + 4)

// opcodeRow is the count of one kind of record.
type opcodeRow struct {
	is what
	OpcodeCount
}

// OpcodeCount is the records of one message in one direction.
type OpcodeCount struct {
	Protocol  string  `json:"protocol"`
	Direction string  `json:"dir"`
	Transport string  `json:"transport"`
	Message   string  `json:"message"`
	Opcode    Number  `json:"opcode"`
	Count     int     `json:"count"`
	Share     float64 `json:"share"` // of all records, from 0 to 1
	Rate      float64 `json:"per_second"`
	Bytes     int64   `json:"bytes"`
	Size      Range   `json:"size"`
	Mean      float64 `json:"mean_size"`
	Errors    int     `json:"errors"`  // records with one
	Unknown   string  `json:"unknown"` // the code of the note that says so; empty for what has a layout
}

// Number is the opcode of a message, -1 for none: null in JSON, nothing in a table.
type Number int

// String returns it as lines have it: "0x4D", or "".
func (n Number) String() string {
	if n < 0 {
		return ""
	}
	return string(appendOpcode(nil, uint64(n)))
}

// MarshalJSON writes the number, or null.
func (n Number) MarshalJSON() ([]byte, error) {
	if n < 0 {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(n), 10), nil
}

// OpcodeReport is the records of some captures by message.
type OpcodeReport struct {
	Records  int            `json:"records"`
	Bytes    int64          `json:"bytes"`
	Seconds  float64        `json:"seconds"` // that the captures cover
	Opcodes  []*OpcodeCount `json:"opcodes"`
	Unlisted int            `json:"unlisted"` // records of kinds beyond those that the list has room for
}

// Flush does nothing.
func (o *Opcodes) Flush() error { return nil }

// AddSpan adds the time that a capture covers.
func (o *Opcodes) AddSpan(s *dissect.Summary) { o.span += s.Last.Sub(s.First) }

// Write takes one record.
func (o *Opcodes) Write(r *dissect.Record) error {
	if r.Type != dissect.FrameRecord {
		return nil
	}
	o.records++
	o.bytes += int64(r.Size)
	c := o.row(r)
	if c == nil {
		return nil
	}
	c.Size.add(r.Size, c.Count == 0)
	c.Count++
	c.Bytes += int64(r.Size)
	if r.Err != nil {
		c.Errors++
	}
	for i := range r.Notes {
		switch code := r.Notes[i].Code; code {
		case "unknown_opcode", "unknown_packet_id", "unknown_body":
			c.Unknown = code
		}
	}
	return nil
}

// row returns the row of a record, nil where there is no room for it.
func (o *Opcodes) row(r *dissect.Record) *opcodeRow {
	const scatter, bits = 2654435761, 7 // Knuth's: opcodes that differ in any bits go to different places
	recent := &o.recent[uint32(r.Opcode)*scatter>>(32-bits)<<4|uint32(r.Direction)<<2|uint32(r.Transport)]
	if c := *recent; c != nil && c.is.opcode == r.Opcode && c.is.direction == r.Direction && c.is.transport == r.Transport &&
		c.is.message == r.Message && c.is.protocol == r.Protocol {
		return c
	}
	k := what{protocol: r.Protocol, direction: r.Direction, transport: r.Transport, opcode: r.Opcode, message: r.Message}
	c, ok := o.rows.row(k, func() *opcodeRow {
		return &opcodeRow{k, OpcodeCount{
			Protocol: r.Protocol, Direction: r.Direction.String(), Transport: r.Transport.String(), Message: r.Message, Opcode: Number(r.Opcode),
		}}
	})
	if !ok {
		return nil
	}
	*recent = c
	return c
}

// Fork returns a copy that counts on by itself.
func (o *Opcodes) Fork() *Opcodes {
	f := *o
	f.recent = [recentKinds]*opcodeRow{} // they are the other's
	f.rows.rows, f.rows.order = make(map[what]*opcodeRow, len(o.rows.rows)), slices.Clip(o.rows.order)
	for k, c := range o.rows.rows {
		row := *c
		f.rows.rows[k] = &row
	}
	return &f
}

// Report returns what was counted so far: by protocol, the commonest first.
func (o *Opcodes) Report() *OpcodeReport {
	r := &OpcodeReport{
		Records: o.records, Bytes: o.bytes, Seconds: o.span.Seconds(), Unlisted: o.rows.extra, Opcodes: []*OpcodeCount{},
	}
	for _, row := range sorted(&o.rows, func(c *opcodeRow) int { return c.Count }) {
		c := &row.OpcodeCount
		r.Opcodes = append(r.Opcodes, c)
		c.Share = float64(c.Count) / float64(o.records)
		c.Mean = float64(c.Bytes) / float64(c.Count)
		if o.span > 0 {
			c.Rate = float64(c.Count) / r.Seconds
		}
	}
	return r
}

// WriteJSON writes a report as one line of JSON.
func (r *OpcodeReport) WriteJSON(w io.Writer) error { return writeObject(w, r) }

// opcodeColumns are those of the table.
var opcodeColumns = []column{
	{"protocol", 4}, {"dir", 0}, {"over", 3}, {"message", 0}, {"opcode", 1}, {"count", 0}, {"share", 1}, {"per s", 2}, {"bytes", 0}, {"size", 3},
	{"mean", 5}, {"errors", 1}, {"unknown", 1},
}

// WriteText writes a report as a table with the sum below it, at most width columns wide
// where that can be; 0 is for no limit.
func (r *OpcodeReport) WriteText(w io.Writer, width int) error {
	rows := make([][]string, 0, len(r.Opcodes)+1)
	for _, c := range r.Opcodes {
		errors := ""
		if c.Errors > 0 {
			errors = grouped(int64(c.Errors))
		}
		rows = append(rows, []string{
			c.Protocol, c.Direction, c.Transport, string(appendEscaped(nil, c.Message)), c.Opcode.String(), grouped(int64(c.Count)),
			strconv.FormatFloat(100*c.Share, 'f', 1, 64) + "%", strconv.FormatFloat(c.Rate, 'f', 1, 64), grouped(c.Bytes), c.Size.String(),
			strconv.FormatFloat(c.Mean, 'f', 1, 64), errors, c.Unknown,
		})
	}
	rows = append(rows, slices.Concat([]string{"all", "", "", "", "", grouped(int64(r.Records)), "", "", grouped(r.Bytes)}, make([]string, 4)))
	var b strings.Builder
	if err := writeFitted(&b, opcodeColumns, rows, width); err != nil {
		return err
	}
	if r.Unlisted > 0 {
		b.WriteString("\nrecords of further kinds, not listed: " + grouped(int64(r.Unlisted)) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
