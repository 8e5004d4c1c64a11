package verify

import (
	"slices"
	"strconv"
	"time"

	"opscope/dissect"
	"opscope/dissect/filter"
	"opscope/schema"
	"opscope/schema/wire"
)

// has reports whether a record has a note.
func has(r *dissect.Record, code string) bool {
	return slices.ContainsFunc(r.Notes, func(n dissect.Note) bool { return n.Code == code })
}

// isFrame reports whether r is a record of a frame.
func isFrame(r *dissect.Record) bool { return r.Type == dissect.FrameRecord }

// malformed reports whether r is a frame with bytes that its layout does not allow.
func malformed(r *dissect.Record) bool {
	return isFrame(r) && r.Err != nil && r.Err.Kind == wire.Malformed
}

// wanted says what an error wants, and where.
func wanted(e *wire.Error) string {
	return "want " + e.Want + ", at byte " + strconv.Itoa(e.Offset) + ": " + e.Path
}

// timeless is a watch that waits for nothing.
type timeless struct{}

func (timeless) end(*view, time.Time) {}

// wholeness finds what the capture does not hold, and no note tells.
type wholeness struct {
	sent [3]int   // records by direction
	last *Exhibit // of the only direction
}

// talkative is how many records of one side make it strange that the other one is silent.
const talkative = 8

func (w *wholeness) take(v *view) {
	r := v.record
	if isFrame(r) {
		w.sent[r.Direction]++
		w.last = nil
		if w.sent[client]+w.sent[dissect.UnknownDirection] == 0 || w.sent[server]+w.sent[dissect.UnknownDirection] == 0 {
			w.last = v.exhibit()
		}
	}
	switch {
	case r.Type == dissect.GapRecord:
		v.broken(strconv.FormatInt(r.Bytes, 10) + " bytes are missing: " + r.Text)
	case r.Type == dissect.EventRecord && slices.Contains([]string{"bad_packet", "capture_dropped", "fragments_incomplete", "evicted"}, r.Code):
		v.broken(r.Code + ": " + r.Text)
	case isFrame(r) && r.Err != nil && r.Err.Kind != wire.Malformed && !has(r, "not_captured") && !has(r, "frame_truncated"):
		v.broken("the record is " + r.Err.Kind.String())
	}
}

func (w *wholeness) end(v *view, _ time.Time) {
	if w.last != nil && w.sent[client]+w.sent[server] >= talkative {
		v.brokenAt(w.last, "all of the session is from one side: the other direction was not captured")
	}
}

// arrival finds sessions that began before the capture.
type arrival struct{ timeless }

func (arrival) take(v *view) {
	if r := v.record; r.Type == dissect.SessionRecord && r.Code == "opened" && r.Joined {
		v.broken("it begins with a session that was there before: " + r.Text)
	}
}

// legibility finds bytes that no layout reads. What another rule stands on has a name of
// its own, and counts there.
type legibility struct{ timeless }

func (legibility) take(v *view) {
	r := v.record
	if !isFrame(r) || v.named() {
		return
	}
	switch {
	case malformed(r):
		v.broken(wanted(r.Err))
	case r.Err == nil && len(r.Rest) > 0 && !has(r, "unknown_body") && !has(r, "trailing_bytes"):
		v.broken(wire.Bits(8*len(r.Rest)) + " left over")
	}
}

// faults finds records with an error in some place, such as "envelope.length".
type faults struct {
	timeless
	at func(r *dissect.Record) bool
}

func (f faults) take(v *view) {
	if r := v.record; malformed(r) && f.at(r) {
		v.broken(wanted(r.Err))
	}
}

// watch follows a session.
func (f faults) watch(time.Duration) watch { return f }

// claims says which errors a rule names, so that legibility leaves them to it.
func (r *Rule) claims(rec *dissect.Record) bool {
	if r.watch == nil || rec.Err == nil {
		return false
	}
	f, ok := r.watch(0).(faults)
	return ok && f.at(rec)
}

// plainly finds what one record alone shows. The text says what, "" for nothing.
type plainly struct {
	timeless
	show func(r *dissect.Record) string
}

func (p plainly) take(v *view) {
	if isFrame(v.record) {
		if text := p.show(v.record); text != "" {
			v.broken(text)
		}
	}
}

// watch follows a session.
func (p plainly) watch(time.Duration) watch { return p }

// due is what has to come by a time.
type due struct {
	exhibit *Exhibit
	by      time.Time
	n       int // number of the record
	key     deed
	packet  int // that brings it, 0 while nobody knows
	final   bool
	answer  *filter.Filter // that wants it, where it is a check's
}

// deed tells records apart that are the same thing sent.
type deed struct {
	direction dissect.Direction
	opcode    int
	seq       int
}

func deedOf(r *dissect.Record) deed { return deed{r.Direction, r.Opcode, r.Envelope.Seq} }

// maxDue bounds what a rule waits for in one session; beyond it the oldest counts as
// overdue.
const maxDue = 4096

// queue is what a rule waits for in one session, in the order of its records.
type queue []due

// overdue takes out what had to come before a time, and breaks the rule with it.
func (q *queue) overdue(v *view, now time.Time, text string) {
	*q = slices.DeleteFunc(*q, func(d due) bool {
		if !now.After(d.by) {
			return false
		}
		v.brokenAt(d.exhibit, text)
		return true
	})
}

func (q *queue) add(v *view, d due, text string) {
	if len(*q) == maxDue {
		v.brokenAt((*q)[0].exhibit, text)
		*q = slices.Delete(*q, 0, 1)
	}
	*q = append(*q, d)
}

// replies wants an acknowledgement, or an answer, of each record that has one to come.
type replies struct {
	within time.Duration
	open   queue
}

func newReplies(within time.Duration) watch { return &replies{within: within} }

func (a *replies) text() string { return "nothing within " + a.within.String() }

func (a *replies) take(v *view) {
	r := v.record
	a.resolve(v, r)
	a.open.overdue(v, r.Time, a.text())
	if !isFrame(r) || has(r, "retransmission") || has(r, "duplicate") || has(r, "resend_copy") || has(r, "same_payload_new_sequence") {
		return
	}
	d := due{by: r.Time.Add(a.within), n: r.N}
	switch r.Ack.State {
	case dissect.AckPending, dissect.AckUnacked:
	case dissect.AckAcked:
		if r.Ack.RTT > a.within {
			v.broken("only after " + r.Ack.RTT.String())
		}
		if d.packet = r.Ack.By; r.Ack.RTT >= 0 || d.packet <= r.LastPacket() {
			return
		}
	default:
		return
	}
	d.exhibit = v.exhibit()
	a.open.add(v, d, a.text())
}

// resolve takes out what a record acknowledges in time.
func (a *replies) resolve(v *view, r *dissect.Record) {
	a.open = slices.DeleteFunc(a.open, func(d due) bool {
		came := r.Type == dissect.AckRecord && d.n == r.Acked || isFrame(r) && d.packet > 0 && d.packet == r.LastPacket()
		return came && !r.Time.After(d.by)
	})
}

func (a *replies) end(v *view, at time.Time) { a.open.overdue(v, at, a.text()) }

// persistence wants a record that is not acknowledged to be sent again. In the mode where
// only the newest counts, a newer one does as well.
type persistence struct {
	within time.Duration
	open   queue
}

func newPersistence(within time.Duration) watch { return &persistence{within: within} }

const (
	modeLatest  = 1
	modeOrdered = 3
)

func (p *persistence) text() string { return "not sent again within " + p.within.String() }

func (p *persistence) take(v *view) {
	r := v.record
	key := deedOf(r)
	p.open = slices.DeleteFunc(p.open, func(d due) bool {
		switch {
		case r.Time.After(d.by):
			return false
		case r.Type == dissect.AckRecord:
			return d.n == r.Acked
		case !isFrame(r) || d.key.direction != key.direction || d.key.opcode != key.opcode || key.seq < 0:
			return false
		}
		return d.key.seq == key.seq || r.Envelope.Mode == modeLatest
	})
	p.open.overdue(v, r.Time, p.text())
	first := isFrame(r) && r.Envelope.Seq >= 0 && !has(r, "retransmission") && !has(r, "duplicate") && !has(r, "conflict")
	if !first || r.Ack.State == dissect.AckNone || r.Ack.State == dissect.AckIgnored || r.Ack.State == dissect.AckDuplicate {
		return
	}
	if r.Ack.State == dissect.AckAcked && (r.Ack.RTT < 0 || r.Ack.RTT <= p.within) {
		return
	}
	p.open.add(v, due{exhibit: v.exhibit(), by: r.Time.Add(p.within), n: r.N, key: key}, p.text())
}

func (p *persistence) end(v *view, at time.Time) { p.open.overdue(v, at, p.text()) }

// order wants something to have been said in the session before something else is. It
// speaks of sessions only that were seen from their start.
type order struct {
	timeless
	what func(*dissect.Record) bool // is to come later
	need func(*dissect.Record) bool // is to come first
	text string
	met  bool
}

// after returns a rule's watch: what comes behind need.
func after(need, what func(*dissect.Record) bool, text string) func(time.Duration) watch {
	return func(time.Duration) watch { return &order{what: what, need: need, text: text} }
}

func (o *order) take(v *view) {
	r := v.record
	if o.met || !isFrame(r) || r.Err != nil {
		return
	}
	if o.met = o.need(r); !o.met && o.what(r) && !v.joined() {
		o.met = true // once is enough
		v.broken(o.text)
	}
}

// messages picks records by their names.
func messages(names ...string) func(*dissect.Record) bool {
	return func(r *dissect.Record) bool { return slices.Contains(names, r.Message) }
}

// from picks those that one side sends.
func from(d dissect.Direction, pick func(*dissect.Record) bool) func(*dissect.Record) bool {
	return func(r *dissect.Record) bool { return r.Direction == d && pick(r) }
}

// with picks those of a name with a value.
func with(name, field string, value uint64) func(*dissect.Record) bool {
	return func(r *dissect.Record) bool {
		if r.Message != name {
			return false
		}
		v, ok := r.Body.Value(field)
		return ok && v == value
	}
}

// answered wants an answer of each request, in order. It is for packets of which nothing
// says which answers which.
type answered struct {
	requests
	within time.Duration
	over   bool // the last request has had its answer
	open   queue
	early  time.Time // of an answer that was there before its request: streams may pass each other
}

// requests are packets that want an answer, and which that is.
type requests struct {
	ask, reply func(*dissect.Record) bool
	// last picks requests after whose grant nobody answers any more; nil for none.
	last, grant func(*dissect.Record) bool
}

// passing is how long before its request an answer may stand in a capture whose packets
// are out of order.
const passing = 100 * time.Millisecond

// watch follows a session.
func (q requests) watch(within time.Duration) watch { return &answered{requests: q, within: within} }

func (a *answered) text() string { return "no answer within " + a.within.String() }

func (a *answered) take(v *view) {
	r := v.record
	if isFrame(r) && a.reply(r) && len(a.open) == 0 {
		a.early = r.Time
	}
	if isFrame(r) && a.reply(r) && len(a.open) > 0 && !r.Time.After(a.open[0].by) {
		if a.over = a.open[0].final && a.grant(r); a.over {
			a.open = nil
		} else {
			a.open = slices.Delete(a.open, 0, 1)
		}
	}
	a.open.overdue(v, r.Time, a.text())
	if isFrame(r) && r.Err == nil && !a.over && a.ask(r) {
		if !a.early.IsZero() && r.Time.Sub(a.early) < passing {
			a.early = time.Time{}
			return
		}
		a.open.add(v, due{exhibit: v.exhibit(), by: r.Time.Add(a.within), final: a.last != nil && a.last(r)}, a.text())
	}
}

func (a *answered) end(v *view, at time.Time) { a.open.overdue(v, at, a.text()) }

// secrecy finds the bytes of a secret where no field is one.
type secrecy struct{ timeless }

func (secrecy) take(v *view) {
	r := v.record
	if !isFrame(r) {
		return
	}
	for _, s := range v.session.checker.secretsIn(r) {
		if !covered(r, s) {
			v.broken("bytes " + strconv.Itoa(s.From) + " to " + strconv.Itoa(s.To) + " repeat a secret, where no field is one")
			return
		}
	}
}

// covered reports whether a span lies in a field that the schema calls secret.
func covered(r *dissect.Record, s dissect.Span) bool {
	return slices.ContainsFunc(r.Body.Nodes, func(n schema.Node) bool {
		from, to := int(n.Off)>>3, (int(n.Off)+int(n.Len)+7)>>3
		return n.Field != nil && n.Field.Redact == schema.Secret && from <= s.From && s.To <= to
	})
}
