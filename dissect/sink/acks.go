package sink

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"opscope/dissect"
	"opscope/schema"
)

const (
	// maxAckRows is how many streams are told apart; of others the sums know. Each may have a
	// histogram of 20 kB.
	maxAckRows = 1024
	// maxStreamMessages is how many messages of a stream are named: more than any group has.
	maxStreamMessages = 64
	// maxAwaited is how many records are remembered of which nobody knows what became: as many
	// as the Hold keeps.
	maxAwaited = dissect.HoldRecords
	// maxAbsent is how many missing sequences of a stream are known, in case that they come late.
	maxAbsent = 1024
	// usualModulus is in what sequences count where the schema says nothing: 16 bits.
	usualModulus = 1 << 16
)

// Acks counts what became of the records that have a sequence, or want an answer: by
// stream, which is the records of one session and direction whose sequences count together.
// Requests without a sequence count by message. It is a Sink that prints nothing.
type Acks struct {
	schema   func(protocol string) *schema.Protocol
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
	row   ackKey
	state dissect.AckState // that it counts as
	again bool             // it was sent before
}

// ackKey is a stream, or the requests of one message, with what the other has zero. A stream
// may use both transports.
type ackKey struct {
	place
	stream             int
	direction          dissect.Direction
	transport, message string
}

// AckCount is the records of one stream.
type AckCount struct {
	File      int        `json:"file"`
	Session   int        `json:"session"`
	Protocol  string     `json:"protocol"`
	Direction string     `json:"dir"`
	Transport string     `json:"transport"` // tcp, udp or, as they came, udp+tcp
	Stream    int        `json:"stream"`    // as envelope.stream of its records; 0 for requests without a sequence
	Messages  []string   `json:"messages"`  // in the order in which they came, at most maxStreamMessages
	Mode      int        `json:"mode"`      // stream mode, -1 for none
	Sent      int        `json:"sent"`      // as captured, copies too
	Acked     int        `json:"acked"`
	Served    int        `json:"served"`    // copies, for which the acknowledgement of an earlier one serves
	Ignored   int        `json:"ignored"`   // that the sender had the receiver skip
	Unacked   int        `json:"unacked"`   // while it was waited for, and no later acknowledgement was captured
	Lost      int        `json:"lost"`      // of these, what was not sent before: one for each that never arrived, for all we know
	InFlight  int        `json:"in_flight"` // nobody knows yet
	Again     int        `json:"retransmitted"`
	Copies    int        `json:"copies"`  // sent by design
	Missing   int        `json:"missing"` // sequences that were not captured, lost in the net or by the capture
	Window    int        `json:"out_of_window"`
	TooMany   int        `json:"too_many_in_flight"`
	RTT       RoundTrips `json:"rtt"`

	key     ackKey
	modulus int
	top     int          // the last sequence that was new; streams begin with 1
	absent  map[int]bool // of those that are missing, at most maxAbsent
}

// AckReport is what became of the records of some captures that have a sequence, or want an
// answer.
type AckReport struct {
	Streams  []*AckCount `json:"streams"`
	Sum      *AckCount   `json:"sum"`
	Unlisted int         `json:"unlisted"` // records of streams beyond those that the list has room for
}

// NewAcks returns a sink for acknowledgements. The function returns the schema of a
// protocol, nil for none; it says in what sequences count.
func NewAcks(schema func(protocol string) *schema.Protocol) *Acks {
	return &Acks{
		schema: schema, rows: map[ackKey]*AckCount{}, awaited: map[recordNumber]awaited{},
		all: AckCount{Mode: -1, Messages: []string{}},
	}
}

// Fork returns a copy that counts on by itself.
func (a *Acks) Fork() *Acks {
	f := *a
	f.all.RTT = a.all.RTT.fork()
	f.rows = make(map[ackKey]*AckCount, len(a.rows))
	for k, c := range a.rows {
		row := *c
		row.RTT, row.Messages, row.absent = c.RTT.fork(), slices.Clip(c.Messages), maps.Clone(c.absent)
		f.rows[k] = &row
	}
	f.awaited, f.order, f.came = maps.Clone(a.awaited), slices.Clip(a.order), slices.Clip(a.came)
	return &f
}

// Flush does nothing.
func (a *Acks) Flush() error { return nil }

// Write takes one record.
func (a *Acks) Write(r *dissect.Record) error {
	switch {
	case r.Type == dissect.AckRecord:
		a.late(r)
	case r.Type == dissect.FrameRecord && (r.Ack.State != dissect.AckNone || r.Stream > 0):
		row := a.row(keyOf(r), r)
		again := noted(r, "retransmission")
		a.all.add(r, again)
		if row == nil {
			a.unlisted++
			return nil
		}
		row.add(r, again)
		a.all.Missing += row.sequence(r)
		if s := r.Ack.State; s == dissect.AckPending || s == dissect.AckUnacked {
			a.wait(r.File, r.N, awaited{row.key, s, again})
		}
	}
	return nil
}

// keyOf says which stream a record belongs to.
func keyOf(r *dissect.Record) ackKey {
	k := ackKey{place: place{file: r.File, session: r.Session}, stream: r.Stream}
	if k.stream == 0 {
		k.direction, k.transport, k.message = r.Direction, r.Transport.String(), r.Message
	}
	return k
}

// row returns the row of a record, nil where there is no room for another one.
func (a *Acks) row(k ackKey, r *dissect.Record) *AckCount {
	row := a.rows[k]
	if row == nil {
		if len(a.rows) >= maxAckRows {
			return nil
		}
		k.message = strings.Clone(k.message)
		row = &AckCount{
			File: r.File, Session: r.Session, Protocol: strings.Clone(r.Protocol), Direction: r.Direction.String(), Transport: r.Transport.String(),
			Stream: r.Stream, Mode: r.Envelope.Mode, key: k, modulus: usualModulus,
		}
		if s := a.schema(r.Protocol); s != nil {
			row.modulus = cmp.Or(int(s.Limit("sequence_modulus")), usualModulus)
		}
		a.rows[k] = row
		a.came = append(a.came, k)
	}
	if t := r.Transport.String(); !strings.Contains(row.Transport, t) {
		row.Transport += "+" + t
	}
	if !slices.Contains(row.Messages, r.Message) && len(row.Messages) < maxStreamMessages {
		row.Messages = append(row.Messages, strings.Clone(r.Message))
	}
	return row
}

// sequence moves the row to the sequence of a record, and returns how many more are missing
// for that: those before it, where a note says that some are, less one that comes late. Where
// the sequence itself stands in no envelope, a gap counts as one.
func (c *AckCount) sequence(r *dissect.Record) (missing int) {
	seq, old := r.Envelope.Seq, c.top
	late := noted(r, "out_of_order") || noted(r, "stale") // else it begins another round
	if late && (c.absent[seq] || seq < 0 && c.Missing > 0) {
		delete(c.absent, seq)
		c.Missing--
		return -1
	}
	for i := range r.Notes {
		switch r.Notes[i].Code {
		case "sequence_gap":
			missing = 1
		case "retransmission", "duplicate", "conflict", "resend_copy", "stale", "out_of_order", "out_of_window", "out_of_range", "sequence_65535":
			return 0
		}
	}
	if seq >= 0 {
		if c.top = seq; missing > 0 {
			missing = max(1, (seq-old-1+c.modulus)%c.modulus)
		}
		for k := 1; k <= missing && len(c.absent) < maxAbsent; k++ {
			if c.absent == nil {
				c.absent = map[int]bool{}
			}
			c.absent[(old+k)%c.modulus] = true
		}
	}
	c.Missing += missing
	return missing
}

// noted reports whether a record has a note.
func noted(r *dissect.Record, code string) bool {
	return slices.ContainsFunc(r.Notes, func(n dissect.Note) bool { return n.Code == code })
}

// add counts a record, which may have been sent before.
func (c *AckCount) add(r *dissect.Record, again bool) {
	c.Sent++
	if again {
		c.Again++
	}
	c.state(r.Ack.State, again, 1)
	c.RTT.add(&r.Ack)
	for i := range r.Notes {
		switch r.Notes[i].Code {
		case "resend_copy":
			c.Copies++
		case "out_of_window":
			c.Window++
		case "too_many_in_flight":
			c.TooMany++
		}
	}
}

// state counts one more, or less, in a state.
func (c *AckCount) state(s dissect.AckState, again bool, n int) {
	switch s {
	case dissect.AckPending:
		c.InFlight += n
	case dissect.AckAcked:
		c.Acked += n
	case dissect.AckUnacked:
		if c.Unacked += n; !again {
			c.Lost += n
		}
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
	for _, c := range []*AckCount{a.rows[w.row], &a.all} {
		c.state(w.state, w.again, -1)
		c.state(r.Ack.State, w.again, 1)
		c.RTT.add(&r.Ack)
	}
}

// Report returns what was counted so far, by file, session, direction and stream.
func (a *Acks) Report() *AckReport {
	r := &AckReport{Streams: []*AckCount{}, Sum: &a.all, Unlisted: a.unlisted}
	a.all.RTT.settle()
	for _, row := range slices.SortedFunc(maps.Values(a.rows), (*AckCount).compare) {
		row.RTT.settle()
		r.Streams = append(r.Streams, row)
	}
	return r
}

func (c *AckCount) compare(o *AckCount) int {
	return cmp.Or(
		c.key.place.compare(o.key.place), cmp.Compare(c.Direction, o.Direction), cmp.Compare(c.Stream, o.Stream), cmp.Compare(c.Transport, o.Transport),
		cmp.Compare(c.key.message, o.key.message),
	)
}

// WriteJSON writes a report as one line of JSON.
func (r *AckReport) WriteJSON(w io.Writer) error { return writeObject(w, r) }

// ackColumns are those of the table.
var ackColumns = []column{
	{"session", 0}, {"dir", 0}, {"over", 4}, {"stream", 1}, {"mode", 3}, {"sent", 0}, {"acked", 0}, {"served", 6}, {"again", 1}, {"copies", 5}, {"unacked", 4}, {"lost", 0},
	{"ignored", 6}, {"in flight", 1}, {"missing", 1}, {"window", 1}, {"too many", 2}, {"rtt p50", 0}, {"p90", 7}, {"p99", 3}, {"max", 2},
	{"messages", 0},
}

// WriteText writes a report as a table with the sum below it, at most width columns wide
// where that can be; 0 is for no limit.
func (r *AckReport) WriteText(w io.Writer, width int) error {
	several := slices.ContainsFunc(r.Streams, func(c *AckCount) bool { return c.File != r.Streams[0].File })
	var rows [][]string
	for _, c := range r.Streams {
		rows = append(rows, c.texts([]string{
			numbered(several, c.File, c.Session), c.Direction, c.Transport, some(c.Stream), modeText(c.Mode),
		}))
	}
	rows = append(rows, r.Sum.texts([]string{"all", "", "", "", ""}))
	var b strings.Builder
	if err := writeFitted(&b, ackColumns, rows, width); err != nil {
		return err
	}
	if r.Unlisted > 0 {
		b.WriteString("\nrecords of further streams, not listed: " + grouped(int64(r.Unlisted)) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func modeText(mode int) string {
	if mode < 0 {
		return ""
	}
	return strconv.Itoa(mode)
}

// texts appends the cells of a row to those that say whose it is.
func (c *AckCount) texts(row []string) []string {
	t := &c.RTT
	return append(row,
		grouped(int64(c.Sent)), some(c.Acked), some(c.Served), some(c.Again), some(c.Copies), some(c.Unacked), some(c.Lost), some(c.Ignored), some(c.InFlight),
		some(c.Missing), some(c.Window), some(c.TooMany), t.tripText(t.P50), t.tripText(t.P90), t.tripText(t.P99), t.tripText(t.Max),
		c.messagesText(),
	)
}

// messagesText names the first messages of a stream, and counts the others.
func (c *AckCount) messagesText() string {
	const named = 5
	text := string(appendEscaped(nil, strings.Join(c.Messages[:min(named, len(c.Messages))], " ")))
	if more := len(c.Messages) - named; more > 0 {
		text += " +" + strconv.Itoa(more)
	}
	return text
}
