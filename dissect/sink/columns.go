package sink

import (
	"bytes"
	"io"
	"strconv"

	"opscope/dissect"
	"opscope/dissect/filter"
	"opscope/schema"
)

// Shape is how Columns writes rows.
type Shape uint8

// The shapes.
const (
	Fields  Shape = iota // tabs between values, no header, as tshark -T fields
	TSV                  // the same with a header
	CSV                  // RFC 4180, with a header
	Aligned              // a table with a header
)

// maxAligned is how many rows are aligned with each other: as many are kept. Behind them
// a new table begins.
const maxAligned = 1000

// Columns writes a row a record: values of some keys and fields, those of one column with
// commas between them. A record that has none of them is left out. Texts are escaped as
// everywhere, so that a row is a line.
type Columns struct {
	out     output
	columns *filter.Columns
	shape   Shape
	began   bool
	cells   []filter.Cell
	value   []byte
	row     []string
	rows    [][]string // of a table
}

// NewColumns returns a sink that writes columns to w; immediate is for a terminal.
func NewColumns(w io.Writer, c *filter.Columns, s Shape, immediate bool) *Columns {
	return &Columns{out: output{w: w, immediate: immediate}, columns: c, shape: s}
}

// Write writes the row of a record.
func (c *Columns) Write(r *dissect.Record) error {
	if c.out.err != nil {
		return c.out.err
	}
	c.columns.Read(r)
	if c.shape == Aligned {
		return c.keep()
	}
	if !c.began && c.shape != Fields {
		c.header()
	}
	c.began = true
	start, some := len(c.out.buf), false
	for i := range c.columns.Names() {
		if i > 0 {
			c.out.buf = append(c.out.buf, c.between())
		}
		some = c.read(i) || some
		c.append(c.value)
	}
	if !some {
		c.out.buf = c.out.buf[:start]
		return nil
	}
	c.end()
	return c.out.done()
}

// Flush writes out what is buffered.
func (c *Columns) Flush() error {
	if len(c.rows) == 0 {
		return c.out.Flush()
	}
	rows := c.rows
	c.rows = nil
	var b bytes.Buffer
	if err := WriteTable(&b, c.columns.Names(), rows); err != nil {
		return err
	}
	c.out.buf = append(c.out.buf, b.Bytes()...)
	return c.out.Flush()
}

// keep keeps a row of a table.
func (c *Columns) keep() error {
	some := false
	c.row = c.row[:0]
	for i := range c.columns.Names() {
		some = c.read(i) || some
		c.row = append(c.row, string(c.value))
	}
	if !some {
		return nil
	}
	c.rows = append(c.rows, append([]string(nil), c.row...))
	if len(c.rows) == maxAligned {
		return c.Flush()
	}
	return nil
}

// Header returns the line that the output begins with, where there is one and anything
// behind it.
func (c *Columns) Header() []byte {
	h := Columns{columns: c.columns, shape: c.shape}
	if c.shape == TSV || c.shape == CSV {
		h.header()
	}
	return h.out.buf
}

func (c *Columns) header() {
	for i, name := range c.columns.Names() {
		if i > 0 {
			c.out.buf = append(c.out.buf, c.between())
		}
		c.append([]byte(name))
	}
	c.end()
}

func (c *Columns) between() byte {
	if c.shape == CSV {
		return ','
	}
	return '\t'
}

func (c *Columns) end() {
	if c.shape == CSV {
		c.out.buf = append(c.out.buf, '\r')
	}
	c.out.buf = append(c.out.buf, '\n')
}

// append appends the text of a column, in quotes where CSV needs them.
func (c *Columns) append(text []byte) {
	if c.shape != CSV || !bytes.ContainsAny(text, `",`) {
		c.out.buf = append(c.out.buf, text...)
		return
	}
	c.out.buf = append(c.out.buf, '"')
	for _, b := range text {
		if b == '"' {
			c.out.buf = append(c.out.buf, '"')
		}
		c.out.buf = append(c.out.buf, b)
	}
	c.out.buf = append(c.out.buf, '"')
}

// read reads column i, and reports whether the record has it.
func (c *Columns) read(i int) bool {
	c.cells, c.value = c.columns.Append(c.cells[:0], i), c.value[:0]
	for k := range c.cells {
		if k > 0 {
			c.value = append(c.value, ',')
		}
		c.value = appendCell(c.value, &c.cells[k])
	}
	return len(c.cells) > 0
}

// appendLine appends a text with everything escaped that is no plain letter, but for
// quotes.
func appendLine(dst, text []byte) []byte {
	for len(text) > 0 {
		r, size := decode(text)
		if r == '"' {
			dst = append(dst, '"')
		} else {
			dst = appendEscapedRune(dst, r, size, text[0])
		}
		text = text[size:]
	}
	return dst
}

// appendCell appends a value as NDJSON has it, without quotes.
func appendCell(dst []byte, c *filter.Cell) []byte {
	switch {
	case c.Masked:
		return append(dst, dissect.MaskText...)
	case c.Addr.IsValid():
		return appendAddress(dst, c.Addr)
	case !c.Time.IsZero():
		return append(appendFraction(c.Time.AppendFormat(dst, "2006-01-02T15:04:05"), c.Time.Nanosecond(), 9), 'Z')
	}
	switch c.Kind {
	case schema.Bool:
		return strconv.AppendBool(dst, c.Num != 0)
	case schema.Uint:
		return appendUint(dst, c.Num)
	case schema.Int:
		return appendInt(dst, int64(c.Num))
	case schema.Float:
		n := schema.Node{Kind: schema.Float, Num: c.Num}
		return appendFloat(dst, n.Float(), c.Single)
	case schema.Text:
		return appendLine(dst, c.Bytes)
	case schema.Bytes:
		return appendHex(dst, c.Bytes)
	case schema.GUID:
		return appendGUID(dst, c.Bytes)
	}
	return appendIPv4(dst, c.Num)
}
