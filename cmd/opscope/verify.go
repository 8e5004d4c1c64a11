package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"opscope/dissect"
	"opscope/dissect/sink"
	"opscope/dissect/verify"
	"opscope/schema"
)

// verifyOptions are what `opscope verify` was asked for.
type verifyOptions struct {
	decodeOptions
	list    string // protocol whose rules are listed
	specs   []string
	rules   []string
	waivers []string
	strict  bool
	context int
	most    int
	junit   string
	sarif   string
	github  bool
}

func newVerify(s streams) *cobra.Command {
	o := verifyOptions{decodeOptions: decodeOptions{time: "u", color: "auto", hold: dissect.DefaultHold, holdSet: true}}
	c := &cobra.Command{
		Use:   "verify [flags] CAPTURE...",
		Short: "Check captures against the rules of their protocols",
		Long: `verify decodes captures as decode does, and checks every record against the rules of
its protocol: that bytes, opcodes, directions and transports are what they should be,
that sequences, windows and acknowledgements hold, that things come in their order.
--rules PROTOCOL lists them, each with its source and how sure it is. --spec adds
expectations of your own: what comes in which order and how soon, what never comes,
what is answered by what; its JSON Schema is opscope schema json spec. For each break
verify shows the record with those around it, and their packets.

Errors fail the check; warnings do so with --strict. --rule switches and tightens
rules, --waive lets named packets break one, for a reason that the report shows. A
capture without a record of a known protocol fails.

Exit codes: 0 every rule is kept; 1 one is broken; 2 usage; 3 a capture unreadable or
damaged, or a report not writable.`,
		Example: `  opscope verify pcaps/wulfram/play.pcapng
  opscope verify --rules wulfram
  opscope verify --rule acknowledged.within=500ms --rule in_order=error pcaps/wulfram/play.pcapng
  opscope verify --waive 'acknowledged:RETARGET,0x2b=our server does not answer them yet' pcaps/wulfram/play.pcapng
  opscope verify --spec testdata/verify/wulfram.yaml pcaps/wulfram/play.pcapng
  opscope verify -T json pcaps/mmo/move.pcapng | jq .passed`,
		RunE: func(c *cobra.Command, args []string) error {
			return runVerify(c.Context(), s, append(o.read, args...), &o)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	inputFlags(f, &o.decodeOptions)
	f.StringArrayVar(&o.specs, "spec", nil, "check the expectations in this `FILE`, too; repeatable")
	f.StringVar(&o.list, "rules", "", "list the rules of a `PROTOCOL`, and check nothing")
	f.StringArrayVar(&o.rules, "rule", nil, "change a rule, as `RULE`=on, off, error or warning, or RULE.within=500ms; PROTOCOL/RULE is that of one protocol; repeatable")
	f.StringArrayVar(&o.waivers, "waive", nil, "let packets break a rule, as `RULE:PACKET,PACKET=REASON`; repeatable")
	f.BoolVar(&o.strict, "strict", false, "fail for warnings, too")
	f.StringVarP(&o.format, "format", "T", "text", "output `FORMAT`: text or json (one object)")
	f.StringVar(&o.junit, "junit", "", "write a report for JUnit readers to this `FILE`")
	f.StringVar(&o.sarif, "sarif", "", "write a report in SARIF 2.1.0 to this `FILE`")
	f.BoolVar(&o.github, "github", false, "print the breaks as annotations of GitHub Actions, too")
	f.IntVar(&o.context, "context", 2, "show `N` records of the session before and behind each that breaks a rule")
	f.IntVar(&o.most, "most", 10, "show at most `N` breaks of a rule in a capture; all are counted")
	f.DurationVar(&o.hold, "hold", dissect.DefaultHold, "wait so long, in capture `TIME`, for acknowledgements and for context")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print only captures that fail")
	f.BoolVar(&o.secrets, "show-secrets", false, "print passwords and tokens as they are")
	f.BoolVar(&o.personal, "mask-personal", false, "mask chat, and the names that persons give themselves, too")
	f.StringVar(&o.color, "color", "auto", "`WHEN` to use colour: auto, always or never")
	for flag, words := range map[string][]string{
		"format": {"text", "json"}, "color": {"auto", "always", "never"}, "protocol": schema.BuiltinNames(), "rules": verify.Protocols(), "limit": limitNames(),
	} {
		if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // no such flag: the line above is wrong
		}
	}
	return c
}

// runVerify checks captures, and writes the reports.
func runVerify(ctx context.Context, s streams, files []string, o *verifyOptions) error {
	if o.list != "" {
		return listRules(s, o.list)
	}
	settings, err := o.settings()
	if err != nil {
		return err
	}
	if o.context < 0 || o.most < 1 {
		return usage("--context %d, --most %d: want 0 or more, and 1 or more", o.context, o.most)
	}
	format := o.format
	if format != "text" && format != "json" {
		return usage("unknown format %q\ntry -T text or -T json", format)
	}
	d, err := newDecoding(s, o.forDecoding())
	if err != nil {
		return err
	}
	d.checks = true
	for _, p := range settings.Unknown(func(protocol, packet string) bool { return d.knowsPacket(protocol, packet) }) {
		return usage("--waive: no packet is called %q", p)
	}
	specs, err := o.loadSpecs(d, settings)
	if err != nil {
		return err
	}
	checker := verify.NewChecker(verify.Options{Settings: *settings, Specs: specs, Printer: newPrinter(d), Context: o.context, Most: o.most})
	failed, err := d.judge(ctx, files, checker)
	if err != nil {
		return err
	}
	report := checker.Report()
	if err := o.write(s, report); err != nil {
		return err
	}
	switch {
	case failed && !o.lenient:
		return &exitError{exitInput, errors.New("")}
	case report.Failed(o.strict):
		return &exitError{exitCheck, errors.New("")}
	}
	return nil
}

// forDecoding returns the options of the decoding below a check.
func (o *verifyOptions) forDecoding() *decodeOptions {
	below := o.decodeOptions
	below.format, below.quiet = "text", false
	return &below
}

func (o *verifyOptions) settings() (*verify.Settings, error) {
	var settings verify.Settings
	for _, text := range o.rules {
		if err := settings.Change(text); err != nil {
			return nil, usage("--rule %w", err)
		}
	}
	for _, text := range o.waivers {
		if err := settings.Waive(text); err != nil {
			return nil, usage("--waive %w", err)
		}
	}
	return &settings, nil
}

// loadSpecs reads the specs. What they change of the rules counts before what flags do.
func (o *verifyOptions) loadSpecs(d *decoding, settings *verify.Settings) (list []*verify.Spec, err error) {
	if len(o.specs) == 0 {
		return nil, nil
	}
	language, protocols := d.words(), slices.Sorted(maps.Keys(d.allSchemas()))
	var changes verify.Settings
	for _, name := range o.specs {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, &exitError{exitInput, err}
		}
		spec, err := verify.LoadSpec(name, data, language, protocols, &changes)
		if err != nil {
			return nil, &exitError{exitUsage, err}
		}
		list = append(list, spec)
	}
	*settings = *changes.With(settings)
	return list, nil
}

// knowsPacket reports whether a protocol, or any, has a packet with a name.
func (d *decoding) knowsPacket(protocol, packet string) bool {
	for name, p := range d.allSchemas() {
		if (protocol == "" || name == protocol || name == "dplay" && protocol == "lotr2") && p.PacketNamed(packet) != nil {
			return true
		}
	}
	return false
}

// judge has a checker look at files in turn. It reports whether one could not be read as a
// whole, which it has complained of.
func (d *decoding) judge(ctx context.Context, files []string, checker *verify.Checker) (failed bool, err error) {
	if len(files) == 0 {
		return false, usage("no file to read\ntry: opscope verify CAPTURE, or opscope verify - for standard input")
	}
	d.writeTo(checker)
	for i, name := range files {
		checker.Begin(name)
		var last time.Time
		d.stats = []*statistic{{gather: func(_ int, r *dissect.Result) error { last = r.Summary.Last; return nil }}}
		err := d.file(ctx, i, name)
		var e *exitError
		if errors.As(err, &e) {
			return false, err
		}
		if checker.End(last); err == nil {
			continue
		}
		complain(d.err, widen(err).Error())
		checker.Incomplete(widen(err).Error())
		failed = true
		if errors.Is(err, errInterrupted) {
			break
		}
	}
	return failed, nil
}

// write writes all reports that were asked for.
func (o *verifyOptions) write(s streams, r *verify.Report) error {
	color, err := useColor(o.color, s.out)
	if err != nil {
		return err
	}
	text := verify.TextOptions{Strict: o.strict, Quiet: o.quiet}
	if color {
		text.Color = func(word string, v verify.Severity) string { return sink.Paint(word, v == verify.Error) }
	}
	print := func(w io.Writer) error { return r.WriteText(w, text) }
	if o.format == "json" {
		print = func(w io.Writer) error { return r.WriteJSON(w, o.strict) }
	}
	if err := print(s.out); err != nil {
		return outputError(err)
	}
	if o.github {
		if err := r.WriteGitHub(s.out, o.strict); err != nil {
			return outputError(err)
		}
	}
	if err := writeReport(o.junit, func(w io.Writer) error { return r.WriteJUnit(w, o.strict) }); err != nil {
		return err
	}
	return writeReport(o.sarif, func(w io.Writer) error { return r.WriteSARIF(w, version()) })
}

// outputError is the error for what could not be written.
func outputError(err error) error { return &exitError{exitInput, fmt.Errorf("output: %w", err)} }

// writeReport writes a report to a file, if it was asked for.
func writeReport(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return &exitError{exitInput, err}
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return &exitError{exitInput, fmt.Errorf("%s: %w", name, err)}
	}
	return nil
}

// listRules lists the rules of a protocol.
func listRules(s streams, protocol string) error {
	if !slices.Contains(verify.Protocols(), protocol) {
		return usage("unknown protocol %q\ntry one of: %s", protocol, strings.Join(verify.Protocols(), " "))
	}
	var rows [][]string
	for _, r := range verify.Rules(protocol) {
		sentence, severity := r.Sentence, r.Severity.String()
		if r.Within > 0 {
			sentence = strings.TrimSuffix(sentence, ".") + ": " + r.Within.String() + "."
		}
		if r.Off {
			severity = "off"
		}
		rows = append(rows, []string{r.ID, severity, r.Confidence.String(), sentence, r.Source})
	}
	return sink.WriteTable(s.out, []string{"rule", "severity", "confidence", "what holds", "source"}, rows)
}

// printer prints single records as decode does.
type printer struct {
	buffer strings.Builder
	text   *sink.Text
}

func newPrinter(d *decoding) *printer {
	p := &printer{}
	p.text = sink.NewText(&p.buffer, sink.TextOptions{
		Verbosity: 0, Time: d.times, Width: reportWidth, Privacy: d.privacy(), Immediate: true, Schema: d.schemaOf,
	})
	return p
}

// reportWidth is how wide the lines of records in reports are, wherever they are written.
const reportWidth = 120

// Line returns the line of a record, also of one that its first copy counts.
func (p *printer) Line(r *dissect.Record) string {
	p.buffer.Reset()
	shown := *r
	shown.Envelope.First = 0
	_ = p.text.Write(&shown) // to memory
	return strings.TrimSuffix(p.buffer.String(), "\n")
}

// Clean returns a text about a record as a line shows it.
func (p *printer) Clean(r *dissect.Record, text string) string { return p.text.Clean(r, text) }
