package verify

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"opscope/dissect"
)

// Options say what a Checker checks, and what it keeps for the report.
type Options struct {
	Settings Settings
	Specs    []*Spec
	Printer  Printer
	Context  int // records of the session that are shown around one, on each side
	Most     int // breaks of a rule that are shown; all are counted
}

// Checker checks the records of captures, one after the other. It is a dissect.Sink.
type Checker struct {
	options  Options
	report   Report
	file     *File
	sessions map[int]*session
	lawful   map[string][]*Outcome // of the file, by family
	wanted   map[*Rule]*Outcome    // of the file, of the specs
	common   map[*Rule]*view       // of checks over all sessions
	lookedAt map[*Spec]bool        // a session of its protocol was there
	secrets  dissect.Secrets       // of all sessions
	latest   time.Time
}

// NewChecker returns a checker.
func NewChecker(o Options) *Checker { return &Checker{options: o} }

// session is one session, with what follows it.
type session struct {
	checker *Checker
	id      int
	family  string
	joined  bool
	closed  bool
	hosts   []netip.Addr // of its records, at most maxHosts
	scene   scene
	views   []*view
}

// view is what a rule sees: a record of a session.
type view struct {
	session *session
	outcome *Outcome
	watch   watch // nil where notes say all
	record  *dissect.Record
}

// Begin begins a capture.
func (c *Checker) Begin(name string) {
	c.report.Files = append(c.report.Files, &File{Name: name})
	c.file = c.report.Files[len(c.report.Files)-1]
	c.sessions, c.lawful = map[int]*session{}, map[string][]*Outcome{}
	c.secrets, c.latest = dissect.Secrets{}, time.Time{}
	c.wanted, c.common, c.lookedAt = map[*Rule]*Outcome{}, map[*Rule]*view{}, map[*Spec]bool{}
	for _, spec := range c.options.Specs {
		for _, r := range spec.rules {
			o := &Outcome{Protocol: spec.Name, Rule: r, On: true, Severity: r.Severity, Within: r.Within}
			if c.wanted[r] = o; spec.scopes[r] == overAll {
				c.common[r] = &view{session: &session{checker: c}, outcome: o, watch: r.watch(r.Within)}
			}
		}
	}
}

// End ends the capture, whose last packet came at a time.
func (c *Checker) End(last time.Time) {
	if last.Before(c.latest) {
		last = c.latest
	}
	for _, id := range slices.Sorted(maps.Keys(c.sessions)) {
		c.close(c.sessions[id], last)
	}
	c.file.finish(c.lawful)
	for _, spec := range c.options.Specs {
		for _, r := range spec.rules {
			o := c.wanted[r]
			if v := c.common[r]; v != nil {
				v.watch.end(v, last)
			} else if !c.lookedAt[spec] {
				o.Broken++
				o.Breaks = append(o.Breaks, Break{orNothing(nil), "no session to look at"})
			}
			o.sort()
			c.file.Outcomes = append(c.file.Outcomes, o)
		}
	}
}

// Report returns what was found.
func (c *Checker) Report() *Report { return &c.report }

// Flush does nothing: nothing is written before the end.
func (c *Checker) Flush() error { return nil }

// Write takes a record.
func (c *Checker) Write(r *dissect.Record) error {
	if r.Time.After(c.latest) {
		c.latest = r.Time
	}
	s := c.session(r)
	if s == nil {
		return nil
	}
	if isFrame(r) {
		c.file.Records++
	}
	c.learn(r)
	s.meet(r.Src.Addr())
	s.scene.add(c.options.Printer.Line(r))
	if r.Type == dissect.SessionRecord && r.Code == "opened" {
		s.joined = r.Joined
	}
	for _, v := range s.views {
		v.look(r)
	}
	s.overall(r)
	if r.Type == dissect.SessionRecord && r.Code == "closed" {
		c.close(s, r.Time)
	}
	return nil
}

// session returns the session of a record. What belongs to none has the rules about the
// capture alone.
func (c *Checker) session(r *dissect.Record) *session {
	s := c.sessions[r.Session]
	if s == nil {
		// One whose beginning nobody tells of has begun before.
		s = &session{checker: c, id: r.Session, joined: true, scene: scene{keep: c.options.Context}}
		c.forget()
		c.sessions[r.Session] = s
		c.file.Sessions += min(r.Session, 1)
		s.follow(family(r.Protocol))
	} else if f := family(r.Protocol); r.Session > 0 && f != s.family {
		s.follow(f)
	}
	return s
}

// maxSessions is how many sessions are followed at a time; those that are over make room.
const maxSessions = 4096

func (c *Checker) forget() {
	if len(c.sessions) < maxSessions {
		return
	}
	for id, s := range c.sessions {
		if s.closed {
			delete(c.sessions, id)
		}
	}
}

// follow applies the rules of a protocol.
func (s *session) follow(family string) {
	s.family = family
	rules := Rules(family)
	if s.id == 0 {
		rules = []*Rule{complete}
	}
	s.views = nil
	for _, o := range s.checker.outcomes(family, rules) {
		if !o.On {
			continue
		}
		v := &view{session: s, outcome: o}
		if o.Rule.watch != nil {
			v.watch = o.Rule.watch(o.Within)
		}
		s.views = append(s.views, v)
	}
	s.expect()
}

// expect has the session looked at by the checks of specs, too.
func (s *session) expect() {
	c := s.checker
	for _, spec := range c.options.Specs {
		if s.id == 0 || spec.protocol != "" && family(spec.protocol) != s.family {
			continue
		}
		c.lookedAt[spec] = true
		for _, r := range spec.rules {
			if c.common[r] == nil {
				s.views = append(s.views, &view{session: s, outcome: c.wanted[r], watch: r.watch(r.Within)})
			}
		}
	}
}

// overall has a record looked at by the checks over all sessions.
func (s *session) overall(r *dissect.Record) {
	for _, spec := range s.checker.options.Specs {
		if spec.protocol != "" && family(spec.protocol) != s.family {
			continue
		}
		for _, rule := range spec.rules {
			if v := s.checker.common[rule]; v != nil {
				v.session = s
				v.look(r)
			}
		}
	}
}

// maxHosts is how many senders of a session are kept: its two, and room for strange ones.
const maxHosts = 8

// meet keeps who sends in the session.
func (s *session) meet(a netip.Addr) {
	if a.IsValid() && len(s.hosts) < maxHosts && !slices.Contains(s.hosts, a) {
		s.hosts = append(s.hosts, a)
	}
}

// outcomes returns those of the rules of a protocol, in the file.
func (c *Checker) outcomes(family string, rules []*Rule) []*Outcome {
	list := c.lawful[family]
	if list == nil {
		for _, r := range rules {
			set := c.options.Settings.of(family, r)
			list = append(list, &Outcome{Protocol: family, Rule: r, On: set.on, Severity: set.severity, Within: set.within})
		}
		c.lawful[family] = list
	}
	return list
}

// close ends a session. What its flows still bring is looked at, but waits for nothing.
func (c *Checker) close(s *session, at time.Time) {
	if s.closed {
		return
	}
	s.closed = true
	for _, v := range s.views {
		if v.watch != nil {
			v.watch.end(v, at)
		}
	}
}

// learn keeps the secrets of all sessions: one must not come back in another either.
func (c *Checker) learn(r *dissect.Record) {
	if values := r.Secrets.Values(); len(values) > 0 {
		for _, v := range values {
			c.secrets.Add(v)
		}
	}
}

func (c *Checker) secretsIn(r *dissect.Record) []dissect.Span {
	if c.secrets.Empty() {
		return nil
	}
	return c.secrets.AppendSpans(nil, r.Raw)
}

// look has the rule look at a record.
func (v *view) look(r *dissect.Record) {
	v.record = r
	rule := v.outcome.Rule
	if isFrame(r) && (rule.when == nil || rule.when(r)) && (rule.ID != residual || !v.named()) {
		for _, n := range r.Notes {
			if slices.Contains(rule.codes, n.Code) && (rule.excuse == nil || !rule.excuse(v)) {
				v.broken(textOf(n))
				break
			}
		}
	}
	if v.watch != nil {
		v.watch.take(v)
	}
	v.record = nil
}

// textOf says what a note remarks on.
func textOf(n dissect.Note) string {
	if n.Text == "" {
		return n.Code
	}
	return n.Code + ": " + n.Text
}

// residual is the rule for what has no rule of its own.
const residual = "decodes"

// named reports whether a note, or the error, of the record has a rule of its own.
func (v *view) named() bool {
	for _, rule := range Rules(v.session.family) {
		if rule.ID == residual {
			continue
		}
		for _, n := range v.record.Notes {
			if slices.Contains(rule.codes, n.Code) && (rule.when == nil || rule.when(v.record)) {
				return true
			}
		}
		if rule.claims(v.record) {
			return true
		}
	}
	return false
}

// joined reports whether the session began before the capture.
func (v *view) joined() bool { return v.session.joined }

// exhibit returns the exhibit of the record at hand.
func (v *view) exhibit() *Exhibit { return v.session.scene.exhibit(v.record) }

// broken says that the record at hand breaks the rule. The text may repeat what is masked.
func (v *view) broken(text string) {
	v.brokenAt(v.exhibit(), v.session.checker.options.Printer.Clean(v.record, text))
}

// brokenAt says that a record breaks the rule; the text repeats nothing of it.
func (v *view) brokenAt(x *Exhibit, text string) {
	o, c := v.outcome, v.session.checker
	if o.last == x {
		return // once a record
	}
	o.last = x
	if w := c.options.Settings.waiver(o.Protocol, o.Rule.ID, x.Message, x.Opcode); w != nil {
		o.waive(w)
		return
	}
	if o.Broken++; len(o.Breaks) < c.options.Most {
		o.Breaks = append(o.Breaks, Break{Exhibit: x, Text: text})
	}
}
