package sink

import (
	"cmp"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"opscope/dissect"
)

// What Flows lists at most; of what comes beyond that the sums know.
const (
	maxFlowRows    = 4096
	maxSessionRows = 1024 // each may have a histogram of 20 kB
)

// Flows tells the sessions and flows of captures: their packets, which Traffic takes, and
// their records. It is a Sink that prints nothing.
type Flows struct {
	rows     map[place]*FlowCount
	sessions map[place]*SessionCount
	order    []place // of rows and sessions, as they came
	report   FlowReport
	redact   dissect.Redactor
}

// NewFlows returns a sink for sessions and flows.
func NewFlows(o dissect.Privacy) *Flows {
	return &Flows{
		rows: map[place]*FlowCount{}, sessions: map[place]*SessionCount{}, redact: dissect.Redactor{Privacy: o},
		report: FlowReport{Sessions: []*SessionCount{}, Flows: []*FlowCount{}},
	}
}

// place is a session, or a flow while it belongs to one.
type place struct{ file, session, flow int }

func (a place) compare(b place) int {
	return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.session, b.session), cmp.Compare(a.flow, b.flow))
}

// Counts is what a flow, a session, or all of them amount to.
type Counts struct {
	Packets         int   `json:"packets"`
	Bytes           int64 `json:"bytes"` // of packets, on the wire with all headers
	Records         int   `json:"records"`
	RecordBytes     int64 `json:"record_bytes"`
	Errors          int   `json:"errors"`          // records with one
	Retransmissions int   `json:"retransmissions"` // records that were sent again
	Gaps            int   `json:"gaps"`
	LostBytes       int64 `json:"lost_bytes"` // in gaps
	// Of segments.
	SegmentsAgain int `json:"segments_retransmitted"`
	OutOfOrder    int `json:"segments_out_of_order"`
}

// Period is from the first to the last of some packets or records, zero for none.
type Period struct {
	First   dissect.Stamp `json:"first_time"`
	Last    dissect.Stamp `json:"last_time"`
	Seconds float64       `json:"seconds"`
}

func (p *Period) add(t time.Time) {
	if p.First.IsZero() || t.Before(p.First.Time) {
		p.First.Time = t
	}
	if t.After(p.Last.Time) {
		p.Last.Time = t
	}
	p.Seconds = p.Last.Sub(p.First.Time).Seconds()
}

// Sent is the packets of one side.
type Sent struct {
	Packets int   `json:"packets"`
	Bytes   int64 `json:"bytes"`
}

// FlowCount is one flow, as long as it belonged to one session.
type FlowCount struct {
	File      int            `json:"file"`
	Session   int            `json:"session"`
	Flow      int            `json:"flow"`
	Protocol  string         `json:"protocol"`
	Transport string         `json:"transport"`
	Client    netip.AddrPort `json:"client"`
	Server    netip.AddrPort `json:"server"`
	Period
	ToServer Sent `json:"c2s"`
	ToClient Sent `json:"s2c"`
	Counts
	State string `json:"state"` // open, half-closed, closed, or reset and by whom; empty for UDP
	asked int    // how often it was looked for
}

// SessionCount is one session.
type SessionCount struct {
	File     int            `json:"file"`
	Session  int            `json:"session"`
	Protocol string         `json:"protocol"`
	Client   netip.AddrPort `json:"client"`
	Server   netip.AddrPort `json:"server"`
	Flows    int            `json:"flows"`
	Period
	Counts
	RTT   RoundTrips `json:"rtt"`
	State string     `json:"state"` // opened or closed
	Began string     `json:"began"` // how it was recognised
	Ended string     `json:"ended"` // why; empty for one that is open
}

// OtherFlows is flows that are only counted: Other those of no known protocol.
type OtherFlows struct {
	Flows   int   `json:"flows"`
	Packets int   `json:"packets"`
	Bytes   int64 `json:"bytes"`
}

// FlowReport is the sessions and flows of some captures.
type FlowReport struct {
	Packets  int             `json:"packets"` // of the captures
	Bytes    int64           `json:"bytes"`
	Sessions []*SessionCount `json:"sessions"`
	Flows    []*FlowCount    `json:"flows"`
	Sum      Counts          `json:"sum"` // of all flows of sessions, listed or not
	Other    OtherFlows      `json:"other"`
	// Sessionless are those of a known protocol, by their port, that brought nothing which
	// would make a session.
	Sessionless OtherFlows `json:"sessionless"`
	// Packets of no flow: neither TCP nor UDP, broken, seen at a second interface, or
	// pieces of a datagram that was not captured as a whole.
	Flowless         int `json:"flowless_packets"`
	UnlistedSessions int `json:"unlisted_sessions"`
	UnlistedFlows    int `json:"unlisted_flows"` // how often one found no room
}

// Fork returns a copy that counts on by itself.
func (f *Flows) Fork() *Flows {
	c := NewFlows(f.redact.Privacy)
	c.report, c.order = f.report, slices.Clip(f.order)
	for k, row := range f.rows {
		r := *row
		c.rows[k] = &r
	}
	for k, session := range f.sessions {
		s := *session
		s.RTT = session.RTT.fork()
		c.sessions[k] = &s
	}
	return c
}

// Flush does nothing.
func (f *Flows) Flush() error { return nil }

// AddSummary adds the packets of a capture.
func (f *Flows) AddSummary(s *dissect.Summary) {
	f.report.Packets += s.Packets
	f.report.Bytes += s.Bytes
}

// Traffic takes the packets of a flow, as dissect.Options.Traffic has them.
func (f *Flows) Traffic(t *dissect.Traffic) {
	c := Counts{
		Packets: t.Packets[0] + t.Packets[1], Bytes: t.Bytes[0] + t.Bytes[1],
		SegmentsAgain: t.Segments.Retransmitted, OutOfOrder: t.Segments.OutOfOrder,
	}
	if t.Session == 0 {
		o := &f.report.Other
		if t.Protocol != "" {
			o = &f.report.Sessionless
		}
		o.Flows, o.Packets, o.Bytes = o.Flows+1, o.Packets+c.Packets, o.Bytes+c.Bytes
		return
	}
	f.report.Sum.add(&c)
	s := f.session(t.File, t.Session, t.Protocol, t.Client, t.Server)
	if s != nil {
		s.Counts.add(&c)
		s.Period.add(t.First)
		s.Period.add(t.Last)
	}
	row := f.flow(place{t.File, t.Session, t.Flow}, t.Transport.String(), s)
	if row == nil {
		return
	}
	row.Protocol, row.Client, row.Server = t.Protocol, t.Client, t.Server
	row.Period.add(t.First)
	row.Period.add(t.Last)
	row.Counts.add(&c)
	row.ToServer = Sent{row.ToServer.Packets + t.Packets[0], row.ToServer.Bytes + t.Bytes[0]}
	row.ToClient = Sent{row.ToClient.Packets + t.Packets[1], row.ToClient.Bytes + t.Bytes[1]}
	if t.Ending != "" {
		row.State = t.Ending
	}
}

// Write takes one record.
func (f *Flows) Write(r *dissect.Record) error {
	if r.Session == 0 {
		return nil
	}
	switch r.Type {
	case dissect.SessionRecord:
		f.change(r)
		return nil
	case dissect.AckRecord: // of a record that was there before it was known
		if s := f.sessions[place{file: r.File, session: r.Session}]; s != nil {
			s.RTT.add(&r.Ack)
		}
		return nil
	}
	var c Counts
	switch {
	case r.Type == dissect.FrameRecord:
		c.count(r)
	case r.Type == dissect.GapRecord && r.Text != dissect.SnapLength: // the packet is there
		c.Gaps, c.LostBytes = 1, r.Bytes
	default:
		return nil
	}
	f.report.Sum.add(&c)
	client, server := r.Src, r.Dst
	if r.Direction == dissect.ServerToClient {
		client, server = server, client
	}
	s := f.session(r.File, r.Session, r.Protocol, client, server)
	if s != nil {
		s.Counts.add(&c)
		if r.Type == dissect.FrameRecord {
			s.Period.add(r.Time)
			s.RTT.add(&r.Ack)
		}
	}
	row := f.flow(place{r.File, r.Session, r.Flow}, r.Transport.String(), s)
	if row == nil {
		return nil
	}
	if !row.Client.IsValid() {
		row.Protocol, row.Client, row.Server = r.Protocol, client, server
	}
	row.Counts.add(&c)
	if r.Type == dissect.FrameRecord {
		row.Period.add(r.Time)
	}
	return nil
}

// count counts one record.
func (c *Counts) count(r *dissect.Record) {
	c.Records, c.RecordBytes = 1, int64(r.Size)
	if r.Err != nil {
		c.Errors = 1
	}
	for i := range r.Notes {
		if r.Notes[i].Code == "retransmission" {
			c.Retransmissions++
		}
	}
}

func (c *Counts) add(o *Counts) {
	c.Packets += o.Packets
	c.Bytes += o.Bytes
	c.Records += o.Records
	c.RecordBytes += o.RecordBytes
	c.Errors += o.Errors
	c.Retransmissions += o.Retransmissions
	c.Gaps += o.Gaps
	c.LostBytes += o.LostBytes
	c.SegmentsAgain += o.SegmentsAgain
	c.OutOfOrder += o.OutOfOrder
}

// change takes the record of a session that begins or ends.
func (f *Flows) change(r *dissect.Record) {
	s := f.session(r.File, r.Session, r.Protocol, r.Client, r.Server)
	if s == nil {
		return
	}
	f.redact.Prepare(r)
	s.Protocol, s.Client, s.Server, s.State = r.Protocol, r.Client, r.Server, r.Code
	if reason := strings.Clone(f.redact.Clean(r.Text)); r.Code == "opened" {
		s.Began = reason
	} else {
		s.Ended = reason
	}
}

// session returns the row of a session, nil where there is no room for another one.
func (f *Flows) session(file, number int, protocol string, client, server netip.AddrPort) *SessionCount {
	k := place{file: file, session: number}
	s := f.sessions[k]
	if s == nil && len(f.sessions) < maxSessionRows {
		s = &SessionCount{
			File: file, Session: number, Protocol: strings.Clone(protocol), Client: client, Server: server, State: "opened",
		}
		f.sessions[k] = s
		f.order = append(f.order, k)
	}
	return s
}

// flow returns the row of a flow, nil where there is no room for another one.
func (f *Flows) flow(k place, transport string, s *SessionCount) *FlowCount {
	row := f.rows[k]
	if row == nil && s != nil && len(f.rows) < maxFlowRows {
		row = &FlowCount{File: k.file, Session: k.session, Flow: k.flow, Transport: transport}
		if transport == "tcp" {
			row.State = "open"
		}
		f.rows[k] = row
		f.order = append(f.order, k)
		s.Flows++
	}
	if row == nil {
		f.report.UnlistedFlows++
		return nil
	}
	row.asked++
	return row
}

// Report returns what was counted so far, by file, session and flow.
func (f *Flows) Report() *FlowReport {
	r := f.report
	r.Flowless = r.Packets - r.Sum.Packets - r.Other.Packets - r.Sessionless.Packets
	for _, k := range slices.SortedFunc(maps.Keys(f.rows), place.compare) {
		r.Flows = append(r.Flows, f.rows[k])
	}
	for _, k := range slices.SortedFunc(maps.Keys(f.sessions), place.compare) {
		s := f.sessions[k]
		s.RTT.settle()
		r.Sessions = append(r.Sessions, s)
	}
	return &r
}

// WriteJSON writes a report as one line of JSON.
func (r *FlowReport) WriteJSON(w io.Writer) error { return writeObject(w, r) }

// WriteText writes a report as two tables, of sessions and of flows, with the sums between
// and below, each at most width columns wide where that can be; 0 is for no limit.
func (r *FlowReport) WriteText(w io.Writer, width int) error {
	several := slices.ContainsFunc(r.Sessions, func(s *SessionCount) bool { return s.File != r.Sessions[0].File })
	var b strings.Builder
	if err := r.writeSessions(&b, several, width); err != nil {
		return err
	}
	b.WriteByte('\n')
	if err := r.writeFlows(&b, several, width); err != nil {
		return err
	}
	parts := []string{
		"packets: " + grouped(int64(r.Packets)) + ", of " + grouped(r.Bytes) + " bytes",
		"of these in the flows above: " + grouped(int64(r.Sum.Packets)),
		"in flows of no known protocol: " + r.Other.text(),
		"in flows without a session: " + r.Sessionless.text(),
		"in no flow: " + grouped(int64(r.Flowless)),
	}
	line := strings.Join(parts, "; ")
	if width > 0 && len(line) > width {
		line = strings.Join(parts, ";\n  ")
	}
	b.WriteString("\n" + line + "\n")
	if r.UnlistedFlows > 0 {
		b.WriteString("not all are listed; the sums are of all\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (o *OtherFlows) text() string {
	return grouped(int64(o.Packets)) + " (flows: " + grouped(int64(o.Flows)) + ")"
}

// numbered writes which session, or flow, of which file.
func numbered(several bool, file, number int) string {
	if several {
		return strconv.Itoa(file+1) + "/" + strconv.Itoa(number)
	}
	return strconv.Itoa(number)
}

// sessionColumns are those of the table of sessions.
var sessionColumns = []column{
	{"session", 0}, {"protocol", 3}, {"client", 0}, {"server", 0}, {"start (UTC)", 7}, {"seconds", 2}, {"flows", 5}, {"records", 0}, {"bytes", 3},
	{"errors", 1}, {"again", 1}, {"gaps", 2}, {"lost", 1}, {"rtt p50", 4}, {"max", 6}, {"state", 0},
}

func (r *FlowReport) writeSessions(b *strings.Builder, several bool, width int) error {
	var rows [][]string
	for _, s := range r.Sessions {
		row := []string{
			numbered(several, s.File, s.Session), s.Protocol, s.Client.String(), s.Server.String(), startText(s.First.Time), secondsText(s.Seconds),
			strconv.Itoa(s.Flows),
		}
		row = append(append(row, s.Counts.texts()...), s.RTT.tripText(s.RTT.P50), s.RTT.tripText(s.RTT.Max), sessionState(s))
		rows = append(rows, row)
	}
	rows = append(rows, append([]string{"all", "", "", "", "", "", ""}, append(r.Sum.texts(), "", "", "")...))
	return writeFitted(b, sessionColumns, rows, width)
}

// texts writes what records and gaps amount to.
func (c *Counts) texts() []string {
	return []string{
		grouped(int64(c.Records)), grouped(c.RecordBytes), some(c.Errors), some(c.Retransmissions), some(c.Gaps), some(int(c.LostBytes)),
	}
}

// some writes a number that is mostly 0, and then not worth a look.
func some(n int) string {
	if n == 0 {
		return ""
	}
	return grouped(int64(n))
}

func sessionState(s *SessionCount) string {
	if s.Ended != "" {
		return "closed: " + string(appendEscaped(nil, s.Ended))
	}
	return "open: " + string(appendEscaped(nil, s.Began))
}

// flowColumns are those of the table of flows.
var flowColumns = []column{
	{"session", 0}, {"flow", 0}, {"over", 0}, {"client", 0}, {"server", 0}, {"start (UTC)", 7}, {"seconds", 3}, {"packets", 0}, {"bytes", 0},
	{"c2s", 5}, {"c2s bytes", 6}, {"s2c", 5}, {"s2c bytes", 6}, {"records", 2}, {"resent", 1}, {"disordered", 4}, {"state", 1},
}

func (r *FlowReport) writeFlows(b *strings.Builder, several bool, width int) error {
	var rows [][]string
	for _, f := range r.Flows {
		rows = append(rows, []string{
			numbered(several, f.File, f.Session), strconv.Itoa(f.Flow), f.Transport, f.Client.String(), f.Server.String(), startText(f.First.Time),
			secondsText(f.Seconds), grouped(int64(f.Packets)), grouped(f.Bytes), grouped(int64(f.ToServer.Packets)), grouped(f.ToServer.Bytes),
			grouped(int64(f.ToClient.Packets)), grouped(f.ToClient.Bytes), grouped(int64(f.Records)), some(f.SegmentsAgain), some(f.OutOfOrder), f.State,
		})
	}
	rows = append(rows, []string{
		"all", "", "", "", "", "", "", grouped(int64(r.Sum.Packets)), grouped(r.Sum.Bytes), "", "", "", "", grouped(int64(r.Sum.Records)),
		some(r.Sum.SegmentsAgain), some(r.Sum.OutOfOrder), "",
	})
	return writeFitted(b, flowColumns, rows, width)
}

func startText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05.000")
}

func secondsText(s float64) string { return strconv.FormatFloat(s, 'f', 3, 64) }
