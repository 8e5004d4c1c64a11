package sink

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"opscope/dissect"
	"opscope/schema"
)

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

// TableReport is what the sessions of some captures have learned. Of each capture it holds
// as many sessions as dissect.Result does.
type TableReport struct {
	Sessions []*SessionTables `json:"sessions"`
	Dropped  int              `json:"dropped"` // sessions that were over earlier, and are not kept
	text     strings.Builder
}

// SessionTables is what one session has learned.
type SessionTables struct {
	File     int           `json:"file"`
	Session  int           `json:"session"`
	Protocol string        `json:"protocol"`
	Client   string        `json:"client"`
	Server   string        `json:"server"`
	Tables   []LearnedRows `json:"tables"`
}

// LearnedRows is one table, as text has it: a row is the key, the values, and the origin.
type LearnedRows struct {
	Name    string     `json:"name"`
	Sender  string     `json:"sender"` // whose table it is, empty for both sides'
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// Add takes the sessions of one of several captures, or of the only one.
func (t *TableReport) Add(file int, several bool, r *dissect.Result, o dissect.Privacy) error {
	if several {
		if file > 0 {
			t.text.WriteByte('\n')
		}
		t.text.WriteString("file " + strconv.Itoa(file+1) + "\n")
	}
	if err := WriteTables(&t.text, r, o); err != nil {
		return err
	}
	t.Dropped += r.Dropped
	for _, s := range r.Sessions {
		rows := &SessionTables{
			File: file, Session: s.ID, Protocol: s.Name, Client: s.Client.String(), Server: s.Server.String(), Tables: []LearnedRows{},
		}
		for _, table := range s.Tables() {
			if l := (learned{table, s.Secrets(), o}); l.Table != nil {
				rows.Tables = append(rows.Tables, l.listed())
			}
		}
		t.Sessions = append(t.Sessions, rows)
	}
	return nil
}

// listed returns the table for a report.
func (l learned) listed() LearnedRows {
	rows := LearnedRows{Name: l.Table.Decl.Name, Columns: l.columns(), Rows: l.rows()}
	if l.Sender != schema.AnySender {
		rows.Sender = l.Sender.String()
	}
	if rows.Rows == nil {
		rows.Rows = [][]string{}
	}
	return rows
}

// columns returns the names of a table's columns.
func (l learned) columns() []string {
	d := l.Table.Decl
	return slices.Concat([]string{d.Key}, d.Columns, []string{"origin"})
}

// WriteJSON writes a report as one line of JSON.
func (t *TableReport) WriteJSON(w io.Writer) error { return writeObject(w, t) }

// Fork returns a copy that takes further captures by itself.
func (t *TableReport) Fork() *TableReport {
	f := &TableReport{Sessions: slices.Clip(t.Sessions), Dropped: t.Dropped}
	f.text.WriteString(t.text.String())
	return f
}

// WriteText writes a report as WriteTables does. Its tables are narrow, whatever the width.
func (t *TableReport) WriteText(w io.Writer, _ int) error {
	_, err := io.WriteString(w, t.text.String())
	return err
}
