package verify

import (
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"opscope/dissect"
	"opscope/dissect/filter"
	"opscope/schema"
)

// query is a filter, in which values that were captured may stand.
type query struct {
	text     string
	language *filter.Language
	fixed    *filter.Filter // of a text without variables; nil for one with some
}

// matches reports whether a record is wanted by a query without variables.
func (q *query) matches(r *dissect.Record) bool { return q.fixed.Match(r) }

// with returns the filter with values, by their names, for the variables. Where they make
// it senseless, as when it compares a number with a word, it wants nothing.
func (q *query) with(values map[string]string) *filter.Filter {
	if q.fixed != nil {
		return q.fixed
	}
	f, err := q.language.Compile(variable().ReplaceAllStringFunc(q.text, func(v string) string { return values[v[1:]] }))
	if err != nil {
		f, _ = q.language.Compile("false") // this is right
	}
	return f
}

// captured is a field whose value is kept under a name.
type captured struct {
	name string
	path []string
}

// take adds the values of a record. It reports which field is not there.
func take(r *dissect.Record, list []captured, values map[string]string) (missing string) {
	for _, c := range list {
		v, ok := valueOf(r, c.path)
		if !ok {
			return strings.Join(c.path, ".")
		}
		values[c.name] = v
	}
	return ""
}

// valueOf returns a field of the body, or the sequence of the envelope, as a filter would
// have it.
func valueOf(r *dissect.Record, path []string) (string, bool) {
	if slices.Equal(path, []string{"envelope", "seq"}) {
		return strconv.Itoa(r.Envelope.Seq), r.Envelope.Seq >= 0
	}
	t := &r.Body
	i := t.Field(path[0])
	for _, name := range path[1:] {
		i = t.Member(i, name)
	}
	if i < 0 {
		return "", false
	}
	switch n := &t.Nodes[i]; n.Kind {
	case schema.Uint, schema.Bool, schema.IPv4:
		if n.Num > math.MaxInt64 {
			return strconv.Quote(strconv.FormatUint(n.Num, 10)), true
		}
		return strconv.FormatUint(n.Num, 10), true
	case schema.Int:
		return strconv.FormatInt(int64(n.Num), 10), true
	case schema.Float:
		return strconv.FormatFloat(n.Float(), 'g', -1, 64), true
	case schema.Text, schema.String:
		text := string(t.AppendText(nil, i))
		if end := strings.IndexByte(text, 0); end >= 0 {
			text = text[:end]
		}
		return strconv.Quote(text), true
	case schema.Bytes:
		return `"` + hex.EncodeToString(t.AppendBytes(nil, i)) + `"`, true
	}
	return "", false
}

// unwanted is `never`: no record is.
type unwanted struct {
	timeless
	pick *query
}

func (u *unwanted) take(v *view) {
	if u.pick.matches(v.record) {
		v.broken("never: " + u.pick.text)
	}
}

// constant is `always`: of some records each is.
type constant struct {
	timeless
	of, holds *query // of nil: of all frames
}

func (c *constant) take(v *view) {
	r := v.record
	if c.of == nil && !isFrame(r) || c.of != nil && !c.of.matches(r) {
		return
	}
	if !c.holds.matches(r) {
		v.broken("always: " + c.holds.text)
	}
}

// tally is `count`: so many are.
type tally struct {
	pick        *query
	least, most int // most -1: any number
	seen        int
	last        *Exhibit // of those, or of all
}

func (c *tally) take(v *view) {
	if c.last == nil {
		c.last = v.exhibit()
	}
	if !c.pick.matches(v.record) {
		return
	}
	c.last = v.exhibit()
	if c.seen++; c.most >= 0 && c.seen == c.most+1 {
		v.broken("one more than " + strconv.Itoa(c.most) + ": " + c.pick.text)
	}
}

func (c *tally) end(v *view, _ time.Time) {
	if c.seen < c.least {
		v.brokenAt(orNothing(c.last), strconv.Itoa(c.seen)+", want at least "+strconv.Itoa(c.least)+": "+c.pick.text)
	}
}

// orNothing returns an exhibit also where there is no record to show.
func orNothing(x *Exhibit) *Exhibit {
	if x == nil {
		return &Exhibit{Opcode: -1}
	}
	return x
}

// pairing is `each`: each of some records has its answer in time.
type pairing struct {
	ask, answer *query
	captures    []captured
	within      time.Duration
	open        queue
}

func (p *pairing) text() string {
	return "no answer within " + p.within.String() + ": " + p.answer.text
}

func (p *pairing) take(v *view) {
	r := v.record
	p.open = slices.DeleteFunc(p.open, func(d due) bool { return !r.Time.After(d.by) && d.answer.Match(r) })
	p.open.overdue(v, r.Time, p.text())
	if !p.ask.matches(r) {
		return
	}
	values := map[string]string{}
	if missing := take(r, p.captures, values); missing != "" {
		v.broken("no field " + missing + " to capture")
		return
	}
	p.open.add(v, due{exhibit: v.exhibit(), by: r.Time.Add(p.within), answer: p.answer.with(values)}, p.text())
}

func (p *pairing) end(v *view, at time.Time) { p.open.overdue(v, at, p.text()) }

// step is one record that is expected.
type step struct {
	record        *query
	within, after time.Duration // of the step before, or of the first record; 0 for any time
	captures      []captured
}

// course is `expect`: records that come in this order, whatever is between them.
type course struct {
	steps  []step
	next   int
	want   *filter.Filter // of the next step
	values map[string]string
	since  time.Time // of the step before
	last   *Exhibit  // of the step before, or of the first record
	over   bool
}

// newCourse returns a course at its first step, which has no variables.
func newCourse(steps []step) *course {
	return &course{steps: steps, want: steps[0].record.fixed, values: map[string]string{}}
}

func (c *course) take(v *view) {
	r := v.record
	if c.over {
		return
	}
	if c.since.IsZero() {
		c.since, c.last = r.Time, v.exhibit()
	}
	s := &c.steps[c.next]
	passed := r.Time.Sub(c.since)
	if s.within > 0 && passed > s.within {
		c.fail(v, c.last, " not within "+s.within.String()+" behind this")
		return
	}
	if !c.want.Match(r) {
		return
	}
	if s.after > 0 && passed < s.after {
		c.fail(v, v.exhibit(), " after "+passed.String()+", want no sooner than "+s.after.String())
		return
	}
	if missing := take(r, s.captures, c.values); missing != "" {
		c.fail(v, v.exhibit(), ": no field "+missing+" to capture")
		return
	}
	c.since, c.last = r.Time, v.exhibit()
	c.next++
	if c.over = c.next == len(c.steps); !c.over {
		c.want = c.steps[c.next].record.with(c.values)
	}
}

// fail ends the course at its next step.
func (c *course) fail(v *view, at *Exhibit, text string) {
	c.over = true
	v.brokenAt(orNothing(at), "step "+strconv.Itoa(c.next+1)+text+": "+c.steps[c.next].record.text)
}

func (c *course) end(v *view, at time.Time) {
	if !c.over {
		c.fail(v, c.last, " has not come")
	}
}
