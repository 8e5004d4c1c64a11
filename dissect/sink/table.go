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
		tablewriter.WithPadding(tw.Padding{Right: "  ", Overwrite: true}),
		tablewriter.WithTrimSpace(tw.Off),
	)
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

// trimLines removes the spaces at the ends of lines.
func trimLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

// WriteTables writes what the sessions of a capture have learned, each entry with
// where it came from. Of a value that is masked it writes the length and the start of a
// hash, by which it can be found again.
func WriteTables(w io.Writer, r *dissect.Result, o dissect.Privacy) error {
	var b strings.Builder
	if r.Dropped > 0 {
		b.WriteString("sessions that were over earlier, and are not kept: " + string(appendCount(nil, int64(r.Dropped))) + "\n\n")
	}
	for i, s := range r.Sessions {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("session " + strconv.Itoa(s.ID) + "  " + s.Name + "  client " + s.Client.String() + "  server " + s.Server.String() + "\n")
		for _, t := range s.Tables() {
			if err := (learned{t, s.Secrets(), o}).write(&b); err != nil {
				return err
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
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
	return WriteTable(b, slices.Concat([]string{d.Key}, d.Columns, []string{"origin"}), l.rows())
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
