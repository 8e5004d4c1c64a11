package sink

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"opscope/dissect"
)

const (
	// maxAckRows is how many streams are told apart; of others the sums know. Each may have a
	// histogram of 20 kB.
	maxAckRows = 1024
	// maxAwaited is how many records are remembered of which nobody knows what became: as many
	// as the Hold keeps.
	maxAwaited = dissect.HoldRecords
)

// Acks counts what became of the records that want an acknowledgement, or an answer: by
// session, direction and message. It is a Sink that prints nothing.
type Acks struct {
	rows     map[ackKey]*AckCount
	came     []ackKey // the keys of rows, as they came
	all      AckCount
	unlisted int // records
	awaited  map[recordNumber]awaited
	order    []recordNumber // of awaited, as they came; some may be answered
}

// recordNumber names a record.
type recordNumber struct{ file, n int }

// awaited is a record of which a later one may tell that it was acknowledged after all.
type awaited struct {
	row   *AckCount
	state dissect.AckState // that it counts as
}

type ackKey struct {
	place
	direction          dissect.Direction
	transport, message string
}

// AckCount is the records of one message in one direction of a session.
type AckCount struct {
	File      int        `json:"file"`
	Session   int        `json:"session"`
	Protocol  string     `json:"protocol"`
	Direction string     `json:"dir"`
	Transport string     `json:"transport"`
	Message   string     `json:"message"`
	Opcode    int        `json:"opcode"` // -1 for none
	Mode      int        `json:"mode"`   // stream mode, -1 for none
	Sent      int        `json:"sent"`   // as captured, copies too
	Acked     int        `json:"acked"`
	Served    int        `json:"served"`    // copies, for which the acknowledgement of an earlier one serves
	Ignored   int        `json:"ignored"`   // that the sender had the receiver skip
	Unacked   int        `json:"unacked"`   // while it was waited for, and no later acknowledgement was captured
	InFlight  int        `json:"in_flight"` // nobody knows yet, at the end
	Again     int        `json:"retransmitted"`
	NotSeen   int        `json:"sequence_gaps"` // how often sequences were not seen, which the capture or the net has lost
	Window    int        `json:"out_of_window"`
	TooMany   int        `json:"too_many_in_flight"`
	RTT       RoundTrips `json:"rtt"`
}

// AckReport is what became of the records of some captures that want an acknowledgement.
type AckReport struct {
	Streams  []*AckCount `json:"streams"`
	Sum      *AckCount   `json:"sum"`
	Unlisted int         `json:"unlisted"` // records of streams beyond those that the list has room for
}

// NewAcks returns a sink for acknowledgements.
func NewAcks() *Acks {
	return &Acks{rows: map[ackKey]*AckCount{}, awaited: map[recordNumber]awaited{}, all: AckCount{Opcode: -1, Mode: -1}}
}

// Flush does nothing.
func (a *Acks) Flush() error { return nil }

// Write takes one record.
func (a *Acks) Write(r *dissect.Record) error {
	switch {
	case r.Type == dissect.AckRecord:
		a.late(r)
	case r.Type == dissect.FrameRecord && r.Ack.State != dissect.AckNone:
		row := a.row(r)
		a.all.add(r)
		if row == nil {
			a.unlisted++
			return nil
		}
		row.add(r)
		if s := r.Ack.State; s == dissect.AckPending || s == dissect.AckUnacked {
			a.wait(r.File, r.N, awaited{row, s})
		}
	}
	return nil
}

// row returns the row of a record, nil where there is no room for another one.
func (a *Acks) row(r *dissect.Record) *AckCount {
	k := ackKey{place{file: r.File, session: r.Session}, r.Direction, r.Transport.String(), r.Message}
	row := a.rows[k]
	if row == nil && len(a.rows) < maxAckRows {
		k.message = strings.Clone(k.message)
		row = &AckCount{
			File: r.File, Session: r.Session, Protocol: strings.Clone(r.Protocol), Direction: r.Direction.String(), Transport: k.transport,
			Message: k.message, Opcode: r.Opcode, Mode: r.Envelope.Mode,
		}
		a.rows[k] = row
		a.came = append(a.came, k)
	}
	return row
}

// add counts a record.
func (c *AckCount) add(r *dissect.Record) {
	c.Sent++
	c.state(r.Ack.State, 1)
	c.RTT.add(&r.Ack)
	for i := range r.Notes {
		switch r.Notes[i].Code {
		case "retransmission":
			c.Again++
		case "sequence_gap":
			c.NotSeen++
		case "out_of_window":
			c.Window++
		case "too_many_in_flight":
			c.TooMany++
		}
	}
}

// state counts one more, or less, in a state.
func (c *AckCount) state(s dissect.AckState, n int) {
	switch s {
	case dissect.AckPending:
		c.InFlight += n
	case dissect.AckAcked:
		c.Acked += n
	case dissect.AckUnacked:
		c.Unacked += n
	case dissect.AckDuplicate:
		c.Served += n
	case dissect.AckIgnored:
		c.Ignored += n
	}
}

// wait remembers a record that may still be acknowledged, in the place of the oldest if
// there are too many.
func (a *Acks) wait(file, n int, w awaited) {
	if len(a.order) >= maxAwaited {
		delete(a.awaited, a.order[0])
		a.order = a.order[1:]
	}
	k := recordNumber{file, n}
	a.awaited[k] = w
	a.order = append(a.order, k)
}

// late takes the news of a record that was counted already.
func (a *Acks) late(r *dissect.Record) {
	k := recordNumber{r.File, r.Acked}
	w, ok := a.awaited[k]
	if !ok {
		return
	}
	delete(a.awaited, k)
	for _, c := range []*AckCount{w.row, &a.all} {
		c.state(w.state, -1)
		c.state(r.Ack.State, 1)
		c.RTT.add(&r.Ack)
	}
}

// Report returns what was counted so far, by file, session, direction and message.
func (a *Acks) Report() *AckReport {
	r := &AckReport{Streams: []*AckCount{}, Sum: &a.all, Unlisted: a.unlisted}
	a.all.RTT.settle()
	for _, k := range slices.SortedFunc(maps.Keys(a.rows), ackKey.compare) {
		row := a.rows[k]
		row.RTT.settle()
		r.Streams = append(r.Streams, row)
	}
	return r
}

func (k ackKey) compare(o ackKey) int {
	return cmp.Or(
		k.place.compare(o.place), cmp.Compare(k.direction, o.direction), cmp.Compare(k.transport, o.transport), cmp.Compare(k.message, o.message),
	)
}

// WriteJSON writes a report as one line of JSON.
func (r *AckReport) WriteJSON(w io.Writer) error { return writeObject(w, r) }

// WriteText writes a report as a table with the sum below it.
func (r *AckReport) WriteText(w io.Writer) error {
	several := slices.ContainsFunc(r.Streams, func(c *AckCount) bool { return c.File != r.Streams[0].File })
	header := []string{
		"session", "dir", "over", "message", "opcode", "mode", "sent", "acked", "served", "again", "unacked", "ignored", "in flight", "gaps", "window",
		"too many", "rtt p50", "p90", "p99", "max",
	}
	var rows [][]string
	for _, c := range r.Streams {
		mode := ""
		if c.Mode >= 0 {
			mode = strconv.Itoa(c.Mode)
		}
		rows = append(rows, append([]string{
			numbered(several, c.File, c.Session), c.Direction, c.Transport, string(appendEscaped(nil, c.Message)), opcodeText(c.Opcode), mode,
		}, c.texts()...))
	}
	rows = append(rows, append([]string{"all", "", "", "", "", ""}, r.Sum.texts()...))
	var b strings.Builder
	if err := WriteTable(&b, header, rows); err != nil {
		return err
	}
	if r.Unlisted > 0 {
		b.WriteString("\nrecords of further streams, not listed: " + grouped(int64(r.Unlisted)) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *AckCount) texts() []string {
	t := &c.RTT
	return []string{
		grouped(int64(c.Sent)), grouped(int64(c.Acked)), some(c.Served), some(c.Again), some(c.Unacked), some(c.Ignored), some(c.InFlight),
		some(c.NotSeen), some(c.Window), some(c.TooMany), t.tripText(t.P50), t.tripText(t.P90), t.tripText(t.P99), t.tripText(t.Max),
	}
}
