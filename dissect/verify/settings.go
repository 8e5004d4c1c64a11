package verify

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"opscope/schema"
)

// Settings say how the rules are applied. The zero Settings take them as they are.
type Settings struct {
	changes []change
	waivers []Waiver
}

// change is what a user wants of a rule.
type change struct {
	protocol string // empty for all that have the rule
	id       string
	apply    func(*setting)
}

// setting is a rule as it is applied.
type setting struct {
	on       bool
	severity Severity
	within   time.Duration
}

// Waiver lets named packets break a rule, for a reason that the report shows.
type Waiver struct {
	Protocol string // empty for all that have the rule
	Rule     string
	Packets  []string // names, or opcodes in decimal or as 0x26; empty for all
	Reason   string
}

// With returns settings in which those of t come behind those of s, and so count more.
func (s *Settings) With(t *Settings) *Settings {
	return &Settings{slices.Concat(s.changes, t.changes), slices.Concat(t.waivers, s.waivers)}
}

// Change switches or tightens a rule, as in "acknowledged=off", "netrek/in_order=error" or
// "acknowledged.within=500ms". The words behind the sign are on, off, error and warning,
// or a time.
func (s *Settings) Change(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("%q: want RULE=on, off, error or warning, or RULE.within=TIME", text)
	}
	name, key, keyed := strings.Cut(strings.TrimSpace(name), ".")
	protocol, rule, err := ruleNamed(name)
	if err != nil {
		return err
	}
	c := change{protocol: protocol, id: rule.ID}
	switch value = strings.TrimSpace(value); {
	case keyed && key != "within":
		return fmt.Errorf("%s: no setting %q of a rule: want within", name, key)
	case keyed:
		within, err := time.ParseDuration(value)
		if err != nil || within <= 0 {
			return fmt.Errorf("%s: %q is no time: want such as 500ms", name, value)
		}
		if rule.Within == 0 {
			return fmt.Errorf("%s: it is no rule about time", name)
		}
		c.apply = func(s *setting) { s.within = within }
	case value == "off", value == "on":
		c.apply = func(s *setting) { s.on = value == "on" }
	case value == "error":
		c.apply = func(s *setting) { s.on, s.severity = true, Error }
	case value == "warning":
		c.apply = func(s *setting) { s.on, s.severity = true, Warning }
	default:
		return fmt.Errorf("%s: %q: want on, off, error or warning", name, value)
	}
	s.changes = append(s.changes, c)
	return nil
}

// Waive adds a waiver, as in "acknowledged:RETARGET,0x3a=the server does not answer them".
func (s *Settings) Waive(text string) error {
	what, reason, ok := strings.Cut(text, "=")
	if !ok || strings.TrimSpace(reason) == "" {
		return fmt.Errorf("%q: want RULE:PACKET,PACKET=REASON", text)
	}
	name, packets, _ := strings.Cut(what, ":")
	protocol, rule, err := ruleNamed(strings.TrimSpace(name))
	if err != nil {
		return err
	}
	w := Waiver{Protocol: protocol, Rule: rule.ID, Reason: strings.TrimSpace(reason)}
	for _, p := range strings.Split(packets, ",") {
		if p = strings.TrimSpace(p); p != "" {
			w.Packets = append(w.Packets, p)
		}
	}
	s.waivers = append(s.waivers, w)
	return nil
}

// ruleNamed returns the rule that "ID" or "PROTOCOL/ID" names, with its protocol if it is
// said.
func ruleNamed(name string) (protocol string, r *Rule, err error) {
	protocol, id, said := strings.Cut(name, "/")
	if !said {
		protocol, id = "", name
	}
	var ids []string
	for _, p := range Protocols() {
		if said && p != protocol {
			continue
		}
		for _, r := range Rules(p) {
			if r.ID == id {
				return protocol, r, nil
			}
			ids = append(ids, r.ID)
		}
	}
	if said && len(ids) == 0 {
		return "", nil, fmt.Errorf("unknown protocol %q: want one of %s", protocol, strings.Join(Protocols(), " "))
	}
	return "", nil, fmt.Errorf("unknown rule %q%s", name, schema.Hint(id, ids))
}

// of returns a rule of a protocol as it is applied.
func (s *Settings) of(protocol string, r *Rule) setting {
	set := setting{!r.Off, r.Severity, r.Within}
	for _, c := range s.changes {
		if c.id == r.ID && (c.protocol == "" || c.protocol == protocol) {
			c.apply(&set)
		}
	}
	return set
}

// waiver returns what lets a packet break a rule, or nil.
func (s *Settings) waiver(protocol, id, message string, opcode int) *Waiver {
	for i := range s.waivers {
		w := &s.waivers[i]
		if w.Rule == id && (w.Protocol == "" || w.Protocol == protocol) && w.covers(message, opcode) {
			return w
		}
	}
	return nil
}

func (w *Waiver) covers(message string, opcode int) bool {
	return len(w.Packets) == 0 || slices.ContainsFunc(w.Packets, func(p string) bool {
		if p == message {
			return true
		}
		n, err := strconv.ParseInt(p, 0, 32)
		return err == nil && int(n) == opcode && !strings.HasPrefix(p, "0b") && (p == "0" || p[0] != '0' || strings.HasPrefix(strings.ToLower(p), "0x"))
	})
}

// Unknown returns the packets of waivers that no protocol has, for a user who has mistyped
// one.
func (s *Settings) Unknown(known func(protocol, packet string) bool) (list []string) {
	for _, w := range s.waivers {
		for _, p := range w.Packets {
			if _, err := strconv.ParseInt(p, 0, 32); err != nil && !known(w.Protocol, p) {
				list = append(list, p)
			}
		}
	}
	return list
}
