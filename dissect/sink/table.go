package sink

import (
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
	t := tablewriter.NewTable(w,
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
	return t.Render()
}

// WriteTables writes what the sessions of a capture have learned, each entry with
// where it came from.
func WriteTables(w io.Writer, sessions []*dissect.Session) error {
	for i, s := range sessions {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		head := "session " + strconv.Itoa(s.ID) + "  " + s.Schema().Name + "  client " + s.Client.String() + "  server " + s.Server.String() + "\n"
		if _, err := io.WriteString(w, head); err != nil {
			return err
		}
		for _, t := range s.Tables() {
			if err := writeLearned(w, t); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeLearned(w io.Writer, l dissect.LearnedTable) error {
	if l.Table == nil {
		return nil
	}
	d := l.Table.Decl
	title := "\n" + d.Name
	if l.Sender != schema.AnySender {
		title += " of the " + l.Sender.String()
	}
	if l.Table.Len() == 0 {
		_, err := io.WriteString(w, title+": nothing learned\n")
		return err
	}
	if _, err := io.WriteString(w, title+"\n"); err != nil {
		return err
	}
	var rows [][]string
	for _, k := range l.Table.Keys() {
		e := l.Table.Get(k)
		row := []string{keyText(d, k)}
		for i := range d.Columns {
			row = append(row, valueText(d, e, i))
		}
		from := e.Origin.String()
		if e.Packet > 0 {
			from += " in packet " + strconv.Itoa(e.Packet)
		}
		rows = append(rows, append(row, from))
	}
	return WriteTable(w, slices.Concat([]string{d.Key}, d.Columns, []string{"origin"}), rows)
}

func keyText(d *schema.TableDecl, k int64) string {
	if n := d.KeyEnum.NameOf(uint64(k)); n != "" {
		return strconv.FormatInt(k, 10) + " " + n
	}
	return strconv.FormatInt(k, 10)
}

func valueText(d *schema.TableDecl, e *schema.Entry, i int) string {
	if i < len(e.Texts) {
		return string(appendEscaped(nil, e.Texts[i]))
	}
	text := strconv.FormatFloat(e.Values[i], 'g', -1, 64)
	if n := d.Enum.NameOf(uint64(e.Values[i])); n != "" {
		text += " " + n
	}
	return text
}

// WriteSummary writes the counters of a run as text, a line a thing; what did not
// happen is left out.
func WriteSummary(w io.Writer, s *dissect.Summary) error {
	var b strings.Builder
	line := func(n int64, one, many string) {
		if n == 0 {
			return
		}
		b.WriteString(string(appendCount(nil, n)))
		if n == 1 {
			b.WriteString(" " + one + "\n")
		} else {
			b.WriteString(" " + many + "\n")
		}
	}
	b.WriteString(string(appendCount(nil, int64(s.Packets))) + " packets, " + string(appendCount(nil, s.Bytes)) + " bytes")
	if s.Packets > 0 {
		b.WriteString(", " + s.Last.Sub(s.First).String() + " from " + s.First.UTC().Format("2006-01-02 15:04:05.000000 MST"))
	}
	b.WriteString("\n")
	for _, p := range sorted(s.Records) {
		line(int64(s.Records[p]), p+" record", p+" records")
	}
	line(int64(s.UnknownOpcodes), "unknown opcode", "unknown opcodes")
	line(int64(s.UnknownBodies), "unknown body", "unknown bodies")
	line(s.UndecodedBytes, "byte not decoded", "bytes not decoded")
	line(int64(s.Errors[0]), "malformed record", "malformed records")
	line(int64(s.Errors[1]), "record truncated by the capture", "records truncated by the capture")
	line(int64(s.Errors[2]), "incomplete record", "incomplete records")
	line(int64(s.Gaps), "gap", "gaps")
	line(s.LostBytes, "byte not captured", "bytes not captured")
	line(int64(s.Retransmitted), "record retransmitted", "records retransmitted")
	line(int64(s.Segments.Retransmitted), "segment retransmitted", "segments retransmitted")
	line(int64(s.Segments.OutOfOrder), "segment out of order", "segments out of order")
	line(int64(s.Segments.KeepAlives), "keep-alive", "keep-alives")
	line(int64(s.Conflicts), "conflict", "conflicts")
	line(int64(s.Resyncs), "resync", "resyncs")
	line(int64(s.Evictions), "eviction", "evictions")
	line(int64(s.Backward), "packet with a time before an earlier one", "packets with a time before an earlier one")
	line(int64(s.OtherFlows), "flow of no known protocol", "flows of no known protocol")
	_, err := io.WriteString(w, b.String())
	return err
}

func sorted(m map[string]int) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
