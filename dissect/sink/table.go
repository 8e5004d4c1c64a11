package sink

import (
	"crypto/sha256"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	"opscope/dissect"
	"opscope/schema"
)

// WriteTable writes rows under a header, in columns without rules, so that the
// lines can be cut and sorted.
func WriteTable(w io.Writer, header []string, rows [][]string) error {
	return writeTable(w, header, rows, 0)
}

// writeTable does so, and breaks the lines of the last column between words where they are
// longer than last; 0 is for no limit.
func writeTable(w io.Writer, header []string, rows [][]string, last int) error {
	var b strings.Builder
	t := tablewriter.NewTable(&b,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.Border{Left: tw.Off, Right: tw.Off, Top: tw.Off, Bottom: tw.Off},
			Settings: tw.Settings{
				Lines:      tw.Lines{ShowHeaderLine: tw.Off, ShowTop: tw.Off, ShowBottom: tw.Off, ShowFooterLine: tw.Off},
				Separators: tw.Separators{BetweenColumns: tw.Off, BetweenRows: tw.Off, ShowHeader: tw.Off},
			},
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAlignment(tw.AlignLeft),
		tablewriter.WithRowAlignment(tw.AlignLeft),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithPadding(tw.Padding{Right: gutter, Overwrite: true}),
		tablewriter.WithTrimSpace(tw.Off),
	)
	if last > 0 {
		t.Configure(func(c *tablewriter.Config) {
			c.Row.Formatting.AutoWrap = tw.WrapNormal
			c.Row.ColMaxWidths = tw.CellWidth{PerColumn: tw.Mapper[int, int]{len(header) - 1: last + len(gutter)}}
		})
	}
	t.Header(header)
	if err := t.Bulk(rows); err != nil {
		return err
	}
	if err := t.Render(); err != nil {
		return err
	}
	_, err := io.WriteString(w, trimLines(b.String()))
	return err
}

// column is a column of a table that may have to do with less room than it wants.
type column struct {
	name string
	rank int // those of a higher rank are left out sooner; 0 never
}

// leastLast is how many columns of the terminal the last column of a table keeps.
const leastLast = 12

// writeFitted writes a table that is at most width columns wide, if that can be; 0 is for no
// limit. It leaves out first columns in which nothing stands, then those of the highest
// rank, of one rank the right ones first, and names what it has left out. Then it breaks the
// lines of the last column.
func writeFitted(b *strings.Builder, columns []column, rows [][]string, width int) error {
	f := fitting{columns: columns, rows: rows}
	total := f.measure()
	var without []string
	for width > 0 && total > width {
		at := f.least()
		if at < 0 {
			break
		}
		if f.filled[at] {
			without = append(without, f.columns[at].name)
		}
		f.hide(at)
		total = f.measure()
	}
	last, limit := f.widths[len(f.widths)-1], 0
	if width > 0 && total > width {
		limit = max(leastLast, last-(total-width))
	}
	header := make([]string, len(f.columns))
	for i, c := range f.columns {
		header[i] = c.name
	}
	if err := writeTable(b, header, f.rows, limit); err != nil {
		return err
	}
	if len(without) > 0 {
		b.WriteString("without " + strings.Join(without, ", ") + ": --width -1 has them\n")
	}
	return nil
}

// fitting is a table on its way to fewer columns.
type fitting struct {
	columns []column
	rows    [][]string
	widths  []int  // of the columns, without what is between them
	filled  []bool // whether anything stands in a column
}

// measure sets the widths, and returns that of the whole table.
func (f *fitting) measure() (total int) {
	f.widths, f.filled = make([]int, len(f.columns)), make([]bool, len(f.columns))
	for i, c := range f.columns {
		f.widths[i] = columns([]byte(c.name))
		for _, row := range f.rows {
			f.widths[i] = max(f.widths[i], columns([]byte(row[i])))
			f.filled[i] = f.filled[i] || row[i] != ""
		}
		total += f.widths[i] + len(gutter)
	}
	return total - len(gutter)
}

// least returns the column that can best be done without, -1 for none.
func (f *fitting) least() int {
	at := -1
	for i, c := range f.columns {
		switch {
		case c.rank == 0:
		case at < 0, f.filled[at] && !f.filled[i], f.filled[at] == f.filled[i] && c.rank >= f.columns[at].rank:
			at = i
		}
	}
	return at
}

// hide leaves a column out. What the last row is called, which stands in its first column,
// stays.
func (f *fitting) hide(at int) {
	if sum := len(f.rows) - 1; at == 0 && sum >= 0 {
		f.rows = slices.Clone(f.rows)
		f.rows[sum] = slices.Clone(f.rows[sum])
		f.rows[sum][1] = either(f.rows[sum][1], f.rows[sum][0])
	}
	f.columns = slices.Delete(slices.Clone(f.columns), at, at+1)
	rows := make([][]string, len(f.rows))
	for i, row := range f.rows {
		rows[i] = slices.Delete(slices.Clone(row), at, at+1)
	}
	f.rows = rows
}

// trimLines removes the spaces at the ends of lines.
func trimLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

// learned is a table of a session, as it is written.
type learned struct {
	dissect.LearnedTable
	secrets *dissect.Secrets
	dissect.Privacy
}

func (l learned) write(b *strings.Builder) error {
	if l.Table == nil {
		return nil
	}
	d := l.Table.Decl
	b.WriteString("\n" + d.Name)
	if l.Sender != schema.AnySender {
		b.WriteString(" of the " + l.Sender.String())
	}
	if l.Table.Len() == 0 {
		b.WriteString(": nothing learned\n")
		return nil
	}
	b.WriteByte('\n')
	return WriteTable(b, l.columns(), l.rows())
}

// rows returns the rows of a table: key, values, origin.
func (l learned) rows() [][]string {
	t := l.Table
	var rows [][]string
	for keys := t.Keys(); len(keys) > 0; {
		n := alike(t, keys)
		e := t.Get(keys[0])
		row := []string{keysText(t.Decl, keys[0], keys[n-1])}
		for i := range t.Decl.Columns {
			row = append(row, l.value(e, i))
		}
		rows = append(rows, append(row, originText(e)))
		keys = keys[n:]
	}
	return rows
}

// value writes a value, or what may be said of a masked one.
func (l learned) value(e *schema.Entry, i int) string {
	if i < len(e.Texts) && !l.ShowSecrets && l.secrets.Within(e.Texts[i]) {
		sum := sha256.Sum256([]byte(e.Texts[i]))
		return dissect.MaskText + " (" + strconv.Itoa(len(e.Texts[i])) + " bytes, sha256 " + string(appendHex(nil, sum[:4])) + "…)"
	}
	if e.Personal == i+1 && l.Hides(schema.Personal) {
		return dissect.MaskText
	}
	return valueText(l.Table.Decl, e, i)
}

// alike returns how many keys, from the first on, one row can stand for: those that
// follow each other, have no name, and the same default.
func alike(t *schema.Table, keys []int64) int {
	n := 1
	for first := t.Get(keys[0]); n < len(keys) && keys[n] == keys[n-1]+1; n++ {
		e := t.Get(keys[n])
		switch {
		case first.Origin != schema.Default, t.Decl.KeyEnum.NameOf(uint64(keys[n-1])) != "":
			return n
		case e.Origin != schema.Default, t.Decl.KeyEnum.NameOf(uint64(keys[n])) != "":
			return n
		case !slices.Equal(e.Values, first.Values), !slices.Equal(e.Texts, first.Texts):
			return n
		}
	}
	return n
}

// keysText writes a key with its name, or a range of keys, which have none.
func keysText(d *schema.TableDecl, first, last int64) string {
	text := keyText(d, first)
	if last > first {
		return text + "-" + keyText(d, last)
	}
	if n := d.KeyEnum.NameOf(uint64(first)); n != "" {
		text += " " + n
	}
	return text
}

// keyText writes a key: an opcode as everywhere, any other in decimal.
func keyText(d *schema.TableDecl, k int64) string {
	switch {
	case d.Key == "opcode":
		return string(appendOpcode(nil, uint64(k)))
	case d.HexKey:
		return string(appendHexNumber(nil, uint64(k)))
	}
	return strconv.FormatInt(k, 10)
}

func originText(e *schema.Entry) string {
	if e.Packet > 0 {
		return e.Origin.String() + " in packet " + strconv.Itoa(e.Packet)
	}
	return e.Origin.String()
}

// valueText writes a value with its name, a number that was text as it stood on the
// wire, and a mask as the names of its bits.
func valueText(d *schema.TableDecl, e *schema.Entry, i int) string {
	v := uint64(e.Values[i])
	if d.Flags != nil && d.Columns[i] == "mask" {
		return maskText(d.Flags, v)
	}
	text := strconv.FormatFloat(e.Values[i], 'g', -1, 64)
	if i < len(e.Texts) {
		text = string(appendEscaped(nil, e.Texts[i]))
	}
	if n := d.Enum.NameOf(v); n != "" {
		text += " " + n
	}
	return text
}

// maskText writes a mask in hexadecimal, and what its bits are called.
func maskText(f *schema.Flags, v uint64) string {
	text := appendHexNumber(nil, v)
	if v != 0 {
		text = appendFlags(append(text, ' '), f, v)
	}
	return string(text)
}
