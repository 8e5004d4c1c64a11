package verify

import (
	_ "embed" // for the JSON Schema
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"opscope/dissect/filter"
	"opscope/schema"
)

// SpecSchema is the JSON Schema (draft 2020-12) of a spec, for editors.
//
//go:embed spec.schema.json
var SpecSchema string

// Spec is a file of expectations: rules of the user's own, beside changes of the others.
//
//	protocol: wulfram
//	rules:
//	  acknowledged: {within: 500ms}
//	  padding:      off
//	waive:
//	  - {rule: acknowledged, packets: [RETARGET], reason: our server does not answer them yet}
//	checks:
//	  - name: a player gets the vehicle that was born for him
//	    expect:
//	      - record:  message == "PLAYER"
//	        capture: {player: player_id}
//	      - record:  message == "BIRTH_NOTICE" and player_id == $player
//	        within:  5s
//	  - name:  nobody is told of a team twice
//	    count: message == "TEAM_INFO"
//	    most:  1
//	  - name:    pings are answered
//	    each:    message == "PING_REQUEST" and dir == "c2s"
//	    capture: {t: timestamp}
//	    answer:  message == "PING" and timestamp == $t
//	    within:  500ms
type Spec struct {
	Name     string // of the file
	protocol string // whose sessions are looked at; empty for all
	rules    []*Rule
	scopes   map[*Rule]scope
}

// scope is which records a check looks at together.
type scope uint8

const (
	perSession scope = iota
	overAll
)

// SpecError is a fault in a spec, with its place; lines and columns count from 1.
type SpecError struct {
	File      string
	Line, Col int
	Message   string
}

// Error formats e as "login.yaml:12:9: no check has ...".
func (e *SpecError) Error() string {
	return e.File + ":" + strconv.Itoa(e.Line) + ":" + strconv.Itoa(e.Col) + ": " + e.Message
}

// LoadSpec reads a spec, whose filters speak a language, for some protocols, and puts what
// it changes of the rules into settings. All mistakes show here: the error is a *SpecError.
func LoadSpec(name string, data []byte, l *filter.Language, protocols []string, settings *Settings) (*Spec, error) {
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, syntaxError(name, err)
	}
	x := &loader{file: name, language: l, protocols: protocols, settings: settings, spec: &Spec{Name: name, scopes: map[*Rule]scope{}}}
	if len(f.Docs) != 1 || f.Docs[0].Body == nil {
		return nil, &SpecError{name, 1, 1, "want one document with `checks`"}
	}
	if err := x.document(f.Docs[0].Body); err != nil {
		return nil, err
	}
	return x.spec, nil
}

func syntaxError(name string, err error) error {
	var e yaml.Error
	if errors.As(err, &e) && e.GetToken() != nil {
		p := e.GetToken().Position
		return &SpecError{name, p.Line, p.Column, e.GetMessage()}
	}
	return &SpecError{name, 1, 1, err.Error()}
}

// loader reads one spec.
type loader struct {
	file      string
	language  *filter.Language
	protocols []string
	settings  *Settings
	spec      *Spec
	names     map[string]bool // of checks
}

// node is a value of the document.
type node = ast.Node

func (x *loader) errorf(n node, format string, args ...any) error {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 { // whose own token is its first colon
		n = m.Values[0].Key
	}
	return x.errorAt(n.GetToken(), format, args...)
}

func (x *loader) errorAt(t *token.Token, format string, args ...any) error {
	return &SpecError{x.file, t.Position.Line, t.Position.Column, fmt.Sprintf(format, args...)}
}

// pairs calls f for each key of a mapping, which has to be one of those known.
func (x *loader) pairs(n node, known []string, f func(key string, value node) error) error {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return x.errorf(n, "want a mapping with %s", strings.Join(known, ", "))
	}
	for _, v := range m.Values {
		key := v.Key.GetToken().Value
		if known != nil && !slices.Contains(known, key) {
			return x.errorf(v.Key, "unknown key %q%s", key, schema.Hint(key, slices.Clone(known)))
		}
		if err := f(key, v.Value); err != nil {
			return err
		}
	}
	return nil
}

// text returns a scalar as it is written, and the token that it begins with.
func (x *loader) text(n node) (string, *token.Token, error) {
	switch n := n.(type) {
	case *ast.LiteralNode: // | and >
		return strings.TrimRight(n.Value.Value, "\n"), n.Value.GetToken(), nil
	case ast.ScalarNode:
		return n.GetToken().Value, n.GetToken(), nil
	}
	return "", nil, x.errorf(n, "want a word")
}

func (x *loader) list(n node, f func(node) error) error {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		return x.errorf(n, "want a list")
	}
	for _, v := range s.Values {
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

func (x *loader) duration(n node) (time.Duration, error) {
	text, at, err := x.text(n)
	if err != nil {
		return 0, err
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, x.errorAt(at, "%q is no time: want such as 500ms or 2s", text)
	}
	return d, nil
}

func (x *loader) number(n node) (int, error) {
	text, at, err := x.text(n)
	if err != nil {
		return 0, err
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < 0 {
		return 0, x.errorAt(at, "%q: want a number from 0", text)
	}
	return v, nil
}

// The keys of a spec, and of its parts.
var (
	specKeys   = []string{"protocol", "rules", "waive", "checks"}
	ruleKeys   = []string{"severity", "within"}
	waiverKeys = []string{"rule", "packets", "reason"}
	checkKeys  = []string{
		"name", "severity", "per", "expect", "never", "always", "of", "count", "least", "most", "exactly", "each", "answer", "within", "capture",
	}
	stepKeys = []string{"record", "within", "after", "capture"}
)

func (x *loader) document(n node) error {
	x.names = map[string]bool{}
	return x.pairs(n, specKeys, func(key string, value node) error {
		switch key {
		case "protocol":
			text, at, err := x.text(value)
			if err == nil && !slices.Contains(x.protocols, text) {
				return x.errorAt(at, "unknown protocol %q%s", text, schema.Hint(text, slices.Clone(x.protocols)))
			}
			x.spec.protocol = text
			return err
		case "rules":
			return x.pairs(value, nil, x.change)
		case "waive":
			return x.list(value, x.waiver)
		}
		return x.list(value, x.check)
	})
}

// change takes what is wanted of a rule: a word, or a mapping.
func (x *loader) change(rule string, n node) error {
	if _, ok := n.(*ast.MappingNode); !ok {
		word, at, err := x.text(n)
		if err != nil {
			return err
		}
		return x.settle(at, x.settings.Change(rule+"="+word))
	}
	return x.pairs(n, ruleKeys, func(key string, value node) error {
		word, at, err := x.text(value)
		if err != nil {
			return err
		}
		if key == "within" {
			return x.settle(at, x.settings.Change(rule+".within="+word))
		}
		return x.settle(at, x.settings.Change(rule+"="+word))
	})
}

// settle gives an error its place.
func (x *loader) settle(at *token.Token, err error) error {
	if err != nil {
		return x.errorAt(at, "%v", err)
	}
	return nil
}

func (x *loader) waiver(n node) error {
	var rule, reason string
	var packets []string
	err := x.pairs(n, waiverKeys, func(key string, value node) (err error) {
		switch key {
		case "rule":
			rule, _, err = x.text(value)
		case "reason":
			reason, _, err = x.text(value)
		default:
			err = x.list(value, func(p node) error {
				text, _, err := x.text(p)
				packets = append(packets, text)
				return err
			})
		}
		return err
	})
	if err != nil {
		return err
	}
	return x.settle(n.GetToken(), x.settings.Waive(rule+":"+strings.Join(packets, ",")+"="+reason))
}

// check takes one check: what it is, it has one key for.
func (x *loader) check(n node) error {
	given := map[string]node{}
	if err := x.pairs(n, checkKeys, func(key string, value node) error {
		given[key] = value
		return nil
	}); err != nil {
		return err
	}
	var kinds []string
	for _, kind := range []string{"expect", "never", "always", "count", "each"} {
		if given[kind] != nil {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) != 1 {
		return x.errorf(n, "want one of expect, never, always, count and each in a check, got %d", len(kinds))
	}
	rule, per, err := x.head(n, given, kinds[0])
	if err != nil {
		return err
	}
	if rule.watch, err = x.watchOf(kinds[0], n, given, rule); err != nil {
		return err
	}
	x.spec.rules = append(x.spec.rules, rule)
	x.spec.scopes[rule] = per
	return nil
}

// allowed are the keys beside its own that a kind of check has.
var allowed = map[string][]string{
	"expect": {}, "never": {}, "always": {"of"}, "count": {"least", "most", "exactly"}, "each": {"answer", "within", "capture"},
}

// head takes what all kinds of checks have.
func (x *loader) head(n node, given map[string]node, kind string) (r *Rule, per scope, err error) {
	r = &Rule{Source: x.file + ":" + strconv.Itoa(n.GetToken().Position.Line), Confidence: schema.NoConfidence}
	for key, value := range given {
		if key != kind && !slices.Contains([]string{"name", "severity", "per"}, key) && !slices.Contains(allowed[kind], key) {
			return nil, 0, x.errorf(value, "%s goes with another kind of check, not with %s", key, kind)
		}
	}
	if given["name"] == nil {
		return nil, 0, x.errorf(n, "a check wants a name: reports have it")
	}
	name, at, err := x.text(given["name"])
	if err != nil {
		return nil, 0, err
	}
	if r.Sentence, r.ID = sentence(name), slug(name); r.ID == "" || x.names[r.ID] {
		return nil, 0, x.errorAt(at, "%q: want a name of letters that no other check has", name)
	}
	x.names[r.ID] = true
	if v := given["severity"]; v != nil {
		word, at, err := x.text(v)
		if err != nil {
			return nil, 0, err
		}
		switch word {
		case "error":
		case "warning":
			r.Severity = Warning
		default:
			return nil, 0, x.errorAt(at, "%q: want error or warning", word)
		}
	}
	if v := given["per"]; v != nil {
		word, at, err := x.text(v)
		switch {
		case err != nil:
			return nil, 0, err
		case word == "capture":
			per = overAll
		case word != "session":
			return nil, 0, x.errorAt(at, "%q: want session or capture", word)
		}
	}
	return r, per, nil
}

// sentence makes a sentence of a name.
func sentence(name string) string { return strings.TrimSuffix(name, ".") + "." }

var notInIDs = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[^a-z0-9]+`)
})

// slug makes an id of a name.
func slug(name string) string {
	return strings.Trim(notInIDs().ReplaceAllString(strings.ToLower(name), "_"), "_")
}

// watchOf returns what makes the watch of a check.
func (x *loader) watchOf(kind string, n node, given map[string]node, r *Rule) (func(time.Duration) watch, error) {
	if kind == "expect" {
		return x.expect(given[kind])
	}
	pick, err := x.query(given[kind], nil)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "never":
		return func(time.Duration) watch { return &unwanted{pick: pick} }, nil
	case "always":
		of, err := x.optional(given["of"])
		return func(time.Duration) watch { return &constant{of: of, holds: pick} }, err
	case "count":
		return x.count(n, given, pick)
	}
	return x.each(n, given, pick, r)
}

// optional compiles a filter that may be left out.
func (x *loader) optional(n node) (*query, error) {
	if n == nil {
		return nil, nil
	}
	return x.query(n, nil)
}

func (x *loader) count(n node, given map[string]node, pick *query) (func(time.Duration) watch, error) {
	t := tally{pick: pick, most: -1}
	for _, key := range []string{"least", "most", "exactly"} {
		if given[key] == nil {
			continue
		}
		v, err := x.number(given[key])
		if err != nil {
			return nil, err
		}
		if key != "most" {
			t.least = v
		}
		if key != "least" {
			t.most = v
		}
	}
	if given["least"] == nil && given["most"] == nil && given["exactly"] == nil {
		return nil, x.errorf(n, "count wants least, most or exactly")
	}
	return func(time.Duration) watch { w := t; return &w }, nil
}

func (x *loader) each(n node, given map[string]node, ask *query, r *Rule) (func(time.Duration) watch, error) {
	if given["answer"] == nil || given["within"] == nil {
		return nil, x.errorf(n, "each wants answer and within")
	}
	captures, err := x.captures(given["capture"])
	if err != nil {
		return nil, err
	}
	answer, err := x.query(given["answer"], namesOf(captures))
	if err != nil {
		return nil, err
	}
	if r.Within, err = x.duration(given["within"]); err != nil {
		return nil, err
	}
	return func(within time.Duration) watch {
		return &pairing{ask: ask, answer: answer, captures: captures, within: within}
	}, nil
}

// expect takes steps: a list of them, or of filters alone.
func (x *loader) expect(n node) (func(time.Duration) watch, error) {
	var steps []step
	var known []string
	err := x.list(n, func(v node) error {
		s, err := x.step(v, known)
		steps = append(steps, s)
		known = append(known, namesOf(s.captures)...)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(steps) == 0 {
		return nil, x.errorf(n, "expect wants at least one step")
	}
	return func(time.Duration) watch { return newCourse(steps) }, nil
}

func (x *loader) step(n node, known []string) (s step, err error) {
	if _, ok := n.(*ast.MappingNode); !ok {
		s.record, err = x.query(n, known)
		return s, err
	}
	err = x.pairs(n, stepKeys, func(key string, value node) (err error) {
		switch key {
		case "record":
			s.record, err = x.query(value, known)
		case "within":
			s.within, err = x.duration(value)
		case "after":
			s.after, err = x.duration(value)
		default:
			s.captures, err = x.captures(value)
		}
		return err
	})
	if err == nil && s.record == nil {
		err = x.errorf(n, "a step wants a record")
	}
	return s, err
}

var variableName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
})

// captures takes which fields are kept, under which names.
func (x *loader) captures(n node) (list []captured, err error) {
	if n == nil {
		return nil, nil
	}
	err = x.pairs(n, nil, func(name string, value node) error {
		field, at, err := x.text(value)
		if err != nil {
			return err
		}
		if !variableName().MatchString(name) {
			return x.errorf(value, "%q is no name of a value: want such as player_id", name)
		}
		if _, err := x.language.Compile(field); err != nil { // a field stands for whether it is there
			return x.filterError(at, field, err)
		}
		list = append(list, captured{name, strings.Split(field, ".")})
		return nil
	})
	return list, err
}

func namesOf(list []captured) (names []string) {
	for _, c := range list {
		names = append(names, c.name)
	}
	return names
}

// variable is where a filter has a value that was captured.
var variable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$[a-z][a-z0-9_]*`)
})

// query compiles a filter, in which $NAME stands for values that were captured before.
func (x *loader) query(n node, known []string) (*query, error) {
	text, at, err := x.text(n)
	if err != nil {
		return nil, err
	}
	q := &query{text: text, language: x.language}
	variables := variable().FindAllString(text, -1)
	for _, v := range variables {
		if !slices.Contains(known, v[1:]) {
			return nil, x.errorAt(at, "%s: nothing before it captures %s%s", v, v[1:], schema.Hint(v[1:], slices.Clone(known)))
		}
	}
	if len(variables) == 0 {
		q.fixed, err = x.language.Compile(text)
		return q, x.filterError(at, text, err)
	}
	// Nobody knows yet whether the values are numbers or words: one of them has to do, in
	// the same columns.
	as := func(value string) error {
		_, err := x.language.Compile(variable().ReplaceAllStringFunc(text, func(v string) string {
			return value + strings.Repeat(" ", len(v)-len(value))
		}))
		return err
	}
	if err = as("0"); err != nil && as(`""`) == nil {
		err = nil
	}
	return q, x.filterError(at, text, err)
}

// filterError gives the error of a filter its place in the file.
func (x *loader) filterError(at *token.Token, text string, err error) error {
	if err == nil {
		return nil
	}
	line, column, message, ok := filter.Place(err)
	if !ok {
		return x.errorAt(at, "%v", err)
	}
	quote := 0
	if at.Type == token.DoubleQuoteType || at.Type == token.SingleQuoteType {
		quote = 1
	}
	p := at.Position
	if line > 0 || strings.Contains(text, "\n") { // of a block, whose columns nobody knows
		return &SpecError{x.file, p.Line + line, p.Column, message}
	}
	return &SpecError{x.file, p.Line, p.Column + quote + column, message}
}
