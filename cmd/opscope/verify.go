package main

import (
	"cmp"
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
	"github.com/spf13/pflag"

	"opscope/dissect"
	"opscope/dissect/sink"
	"opscope/dissect/verify"
)

// verifyOptions are what `opscope verify` was asked for.
type verifyOptions struct {
	decodeOptions
	liveOptions
	run     string // makes the traffic
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
	texts   [][]byte // of specs
}

func newVerify(s streams) *cobra.Command {
	o := verifyOptions{decodeOptions: decodeOptions{time: "u", color: "auto", hold: dissect.DefaultHold, holdSet: true}}
	c := &cobra.Command{
		Use:   "verify [flags] CAPTURE...",
		Short: "Check captures, or live traffic, against the rules of their protocols",
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

With -i it captures as sniff does, until -a, an interrupt, or the end of the command of
--run, and then reports. The command runs by sh -c once the capture is open, its output
goes to standard error. What it leaves behind is stopped when it ends, and all of it when
the capture is told to end: by SIGTERM, and by SIGKILL after 5 seconds. What is said
meanwhile counts. -w keeps the capture: packets have their numbers in it.

Exit codes: 0 every rule is kept; 1 one is broken, or the command of --run ended with
another exit code than 0, which the report shows; 2 usage; 3 a capture unreadable or
damaged, packets dropped, or a report not writable; 4 the capture or the command could
not start, or the interface went away.`,
		Example: `  opscope verify pcaps/wulfram/play.pcapng
  opscope verify --rules wulfram
  opscope verify --rule acknowledged.within=500ms --rule in_order=error pcaps/wulfram/play.pcapng
  opscope verify --waive 'acknowledged:RETARGET,0x2b=our server does not answer them yet' pcaps/wulfram/play.pcapng
  opscope verify --spec testdata/verify/wulfram.yaml pcaps/wulfram/play.pcapng
  opscope verify -T json pcaps/mmo/move.pcapng | jq .passed
  opscope verify -i eth0 --port 2627 -a duration:60 -w game.pcapng
  opscope verify -i lo --port 2627 --run './my-server & ./my-client --script login' -w game.pcapng`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.fit(c.Flags(), append(o.read, args...)); err != nil {
				return err
			}
			return runVerify(c.Context(), s, append(o.read, args...), &o)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	inputFlags(f, &o.decodeOptions)
	jobsFlag(f, &o.decodeOptions)
	o.liveOptions.flags(f)
	f.StringVar(&o.run, "run", "", "with -i: run this `COMMAND`, and capture until it ends")
	repeatable(f, &o.specs, "spec", "", "check the expectations in this `FILE`, too; repeatable")
	f.StringVar(&o.list, "rules", "", "list the rules of a `PROTOCOL`, and check nothing")
	repeatable(f, &o.rules, "rule", "", "change a rule, as `RULE`=on, off, error or warning, or RULE.within=500ms; PROTOCOL/RULE is that of one protocol; repeatable")
	repeatable(f, &o.waivers, "waive", "", "let packets break a rule, as `RULE:PACKET,PACKET=REASON`; repeatable")
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
	completeFlags(c)
	return c
}

// runVerify checks captures, and writes the reports.
func runVerify(ctx context.Context, s streams, files []string, o *verifyOptions) error {
	if o.list != "" {
		return listRules(s, o.list)
	}
	if o.context < 0 || o.most < 1 {
		return usage("--context %d, --most %d: want 0 or more, and 1 or more", o.context, o.most)
	}
	if err := textOrJSON(o.format); err != nil {
		return err
	}
	var x *sniffing
	var err error
	if len(o.interfaces) > 0 {
		if x, err = newSniffing(&s, &o.liveOptions, o.packetFilter); err != nil {
			return err
		}
	}
	d, err := newDecoding(s, o.forDecoding())
	if err != nil {
		return err
	}
	d.checks = true
	if err := o.readSpecs(); err != nil {
		return err
	}
	checker, err := o.newChecker(d)
	if err != nil {
		return err
	}
	var damage error
	if x == nil {
		damage, err = o.judge(ctx, d, d.inputs(files), checker)
	} else {
		x.decoding = d
		if o.run != "" {
			x.command = &command{line: o.run}
		}
		damage, err = x.judge(ctx, checker)
	}
	if err != nil {
		return err
	}
	report := checker.Report()
	if err := o.report(s, report); err != nil {
		return err
	}
	switch {
	case damage != nil && (!o.lenient || exitCode(damage) != exitInput):
		return damage
	case report.Failed(o.strict):
		return &exitError{exitCheck, errors.New("")}
	}
	return nil
}

// fit checks that what was asked for fits together.
func (o *verifyOptions) fit(given *pflag.FlagSet, files []string) error {
	if o.run != "" && len(o.interfaces) == 0 {
		return usage("--run wants an interface to capture on\ntry: -i lo")
	}
	return o.liveOptions.fit(given, files)
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
			return nil, usage("--rule: %w", err)
		}
	}
	for _, text := range o.waivers {
		if err := settings.Waive(text); err != nil {
			return nil, usage("--waive: %w", err)
		}
	}
	return &settings, nil
}

// newChecker returns a checker of what a decoding takes.
func (o *verifyOptions) newChecker(d *decoding) (*verify.Checker, error) {
	settings, err := o.settings()
	if err != nil {
		return nil, err
	}
	for _, p := range settings.Unknown(d.knowsPacket) {
		return nil, usage("--waive: no packet is called %q", p)
	}
	specs, err := o.loadSpecs(d, settings)
	if err != nil {
		return nil, err
	}
	return verify.NewChecker(verify.Options{Settings: *settings, Specs: specs, Printer: newPrinter(d), Context: o.context, Most: o.most}), nil
}

// readSpecs reads the files of the specs: once, as they may be pipes.
func (o *verifyOptions) readSpecs() error {
	for _, name := range o.specs {
		text, err := os.ReadFile(name)
		if err != nil {
			return &exitError{exitInput, err}
		}
		o.texts = append(o.texts, text)
	}
	return nil
}

// loadSpecs loads the specs. What they change of the rules counts before what flags do.
func (o *verifyOptions) loadSpecs(d *decoding, settings *verify.Settings) (list []*verify.Spec, err error) {
	if len(o.specs) == 0 {
		return nil, nil
	}
	language, protocols := d.words(), slices.Sorted(maps.Keys(d.allSchemas()))
	var changes verify.Settings
	for i, name := range o.specs {
		spec, err := verify.LoadSpec(name, o.texts[i], language, protocols, &changes)
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

// judge has files looked at by a checker, or by one for each where several are read at the
// same time. What it returns as damage, and has complained of, is that one could not be
// read as a whole.
func (o *verifyOptions) judge(ctx context.Context, d *decoding, files []string, checker *verify.Checker) (damage, err error) {
	if len(files) == 0 {
		return nil, usage("no file to read\ntry: opscope verify CAPTURE, or opscope verify - for standard input")
	}
	d.silent = true
	if !o.quiet {
		defer d.watch(files)()
	}
	took := func(e error) (more bool) {
		if fatal(e) {
			err = e
			return false
		}
		if e != nil {
			damage = &exitError{exitInput, errors.New("")}
		}
		return !errors.Is(e, errInterrupted)
	}
	jobs := d.jobsFor(files)
	if jobs == 1 {
		for i, name := range files {
			if !took(d.judged(ctx, i, name, checker)) {
				break
			}
		}
		return damage, err
	}
	checkers := make([]*verify.Checker, len(files))
	read := func(ctx context.Context, c *decoding, i int) (err error) {
		if checkers[i], err = o.newChecker(c); err != nil {
			return err
		}
		return c.judged(ctx, i, files[i], checkers[i])
	}
	next := 0
	failed := d.ahead(ctx, files, jobs, read, func(_ *decoding, e error) bool {
		if checkers[next] != nil && !fatal(e) {
			checker.Report().Files = append(checker.Report().Files, checkers[next].Report().Files...)
		}
		checkers[next] = nil
		next++
		return took(e)
	})
	return damage, cmp.Or(err, failed)
}

// judged has a checker look at one file.
func (d *decoding) judged(ctx context.Context, i int, name string, checker *verify.Checker) error {
	d.writeTo(checker)
	checker.Begin(name)
	var last time.Time
	d.stats = []*statistic{{gather: func(_ int, r *dissect.Result) error { last = r.Summary.Last; return nil }}}
	err := d.file(ctx, i, name)
	if fatal(err) {
		return err
	}
	if checker.End(last); err != nil {
		complain(d.err, widen(err).Error())
		checker.Incomplete(widen(err).Error())
	}
	return err
}

// judge has a checker look at what is captured. What it returns as damage is why that is
// not all.
func (x *sniffing) judge(ctx context.Context, checker *verify.Checker) (damage, err error) {
	x.decoding.writeTo(checker)
	name := x.write
	if name == "" {
		name = strings.Join(x.interfaces, ", ")
	}
	checker.Begin(name)
	result, damage := x.capture(ctx)
	var summary dissect.Summary
	switch {
	case result != nil:
		summary = result.Summary
		x.tell()
	case !errors.Is(damage, errInterrupted):
		return nil, damage
	default:
		damage = nil // and nothing was checked, which the report shows
	}
	if checker.End(summary.Last); x.command != nil {
		checker.Command(x.command.failure)
	}
	if damage == nil && result != nil {
		damage = x.lost()
	}
	if damage != nil {
		checker.Incomplete(damage.Error())
	} else if len(summary.Records) == 0 {
		complain(x.err, name+": "+nothingIn(&summary))
	}
	return damage, nil
}

// lost returns an error if packets were dropped.
func (x *sniffing) lost() error {
	c := x.live.Total()
	if c.KernelDropped+c.OwnDropped == 0 {
		return nil
	}
	return &exitError{exitInput, fmt.Errorf("%d packets dropped by the kernel, %d by opscope\ntry: a larger -B or --queue, or --port", c.KernelDropped, c.OwnDropped)}
}

// report writes all reports that were asked for.
func (o *verifyOptions) report(s streams, r *verify.Report) error {
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

// textOrJSON checks the format of a report.
func textOrJSON(format string) error {
	if format != "text" && format != "json" {
		return usage("unknown format %q\ntry -T text or -T json", format)
	}
	return nil
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
	if err := sink.WriteTable(s.out, []string{"rule", "severity", "confidence", "what holds", "source"}, rows); err != nil {
		return outputError(err)
	}
	return nil
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
