package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"opscope/dissect"
	"opscope/dissect/capture"
	"opscope/dissect/capture/pcapfilter"
	"opscope/dissect/sink"
	"opscope/schema"
	"opscope/schema/wire"
)

// decodeOptions are what `opscope decode` was asked for.
type decodeOptions struct {
	read     []string
	protocol string
	decodeAs []string
	schema   []string
	proto    []string
	settings []string

	format  string
	columns []string
	time    string
	count   int
	selectionOptions
	quiet        bool
	verbose      int
	full         bool
	hex          bool
	raw          bool
	tables       bool
	statistics   []string
	summary      string // "" for none, auto, text or json
	limit        []string
	hold         time.Duration
	holdSet      bool
	check        bool
	lenient      bool
	copies       bool
	packetFilter string
	secrets      bool
	personal     bool
	write        string
	print        bool
	mask         bool
	color        string
	width        int
	numeric      bool
	buffered     bool
	spread       bool // several cores may be used: to read several files at a time, or to write what one decodes
	jobs         int  // so many, 0 for as many as there are cores
	noProgress   bool // on a terminal
	sides        bool // text tells the sides of the one session apart
}

func newDecode(s streams) *cobra.Command {
	var o decodeOptions
	c := &cobra.Command{
		Use:   "decode [flags] FILE...",
		Short: "Decode capture files and print their records",
		Long: `decode reads capture files (pcap, pcapng, plain or compressed with gzip or zstd, told
by their content) and prints a line for each record of a known protocol. "-" is
standard input. It also reads its own NDJSON back.

A directory stands for the captures in it and below it, in the order of their names;
what is none is passed over. A pattern in quotes stands for what it matches. Several
files are decoded at a time, as -j says, and shown in their order. Of one file, NDJSON is
written on another core than the one that decodes, unless -j is 1.

A protocol is recognised by its port, then by what its flows begin with; -d gives
it another port, --protocol every flow.

Passwords and tokens are masked in every output, wherever they come back;
--show-secrets shows them, --mask-personal masks chat and names, too. A game whose
frames hold Protocol Buffers needs no more than its .proto files and its ids: --proto.

` + limitsHelp(),
		Example: `  opscope decode pcaps/wulfram/session.pcapng
  opscope decode -v -x pcaps/wulfram/session.pcapng
  opscope decode -T json pcaps/wulfram/session.pcapng | jq .message
  opscope decode -T csv -e time -e message -e entity_id pcaps/wulfram/session.pcapng
  opscope decode --tables pcaps/wulfram/session.pcapng
  opscope decode -q -z flows -z acks pcaps/wulfram/lossy.pcapng
  opscope decode -T json -j 2 pcaps/wulfram 'pcaps/netrek/*.pcapng' | jq .message
  opscope decode -q -w commented.pcapng --mask pcaps/wulfram/session.pcapng
  opscope decode --proto cmd/refserver/internal/mmo/testserver/messages pcaps/mmo/enter.pcapng
  tcpdump -i lo -w - | opscope decode -d udp.port==7777,wulfram -`,
		RunE: func(c *cobra.Command, args []string) error {
			o.holdSet = c.Flags().Changed("hold")
			return decode(c.Context(), s, append(o.read, args...), &o)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	inputFlags(f, &o)
	jobsFlag(f, &o)
	printFlags(c, &o)
	f.StringVarP(&o.write, "write", "w", "", "write the packets of the records that are shown to this pcapng `FILE`, - for standard output, with the records as comments")
	f.BoolVar(&o.print, "print", false, "with -w -, print the records all the same, on standard error")
	f.BoolVar(&o.mask, "mask", false, "with -w, mask in the packets what is masked in the records; lengths stay, checksums are mended")
	return c
}

// printFlags adds the flags of a command that prints records in any format.
func printFlags(c *cobra.Command, o *decodeOptions) {
	f := c.Flags()
	f.StringVarP(&o.format, "format", "T", "text", "output `FORMAT`: text, json (NDJSON, an object a line), or values of -e as fields, tsv, csv, table")
	repeatable(f, &o.columns, "field", "e", "with -T fields, tsv, csv and table: a `FIELD` or key, as in -Y; repeatable")
	recordFlags(f, o)
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print no records, only the summary and what else is asked for")
	detailFlags(f, o)
	f.BoolVar(&o.raw, "raw", false, "with -T json: the bytes of each record as \"raw\"")
	f.BoolVar(&o.tables, "tables", false, "print what each session has learned, with the origin of each entry, instead of the records")
	repeatable(f, &o.statistics, "statistics", "z", "behind the records, print `TABLE` flows, opcodes, acks or tables, of all files together; repeatable")
	f.StringVar(&o.summary, "summary", "", "the counters of each file on standard error, as `FORMAT` text or json; with -T json the last object of the output")
	f.Lookup("summary").NoOptDefVal = "auto"
	f.BoolVar(&o.check, "check", false, "tell of each packet with a wrong checksum; all are decoded and counted")
	outputFlags(f, o)
	completeFlags(c)
}

// recordFlags adds the flags of a command that prints records: which, how many, and when
// they were.
func recordFlags(f *pflag.FlagSet, o *decodeOptions) {
	f.StringVarP(&o.time, "time", "t", "a", "time `FORMAT` of text: a ad adoy d dd e r u ud udoy, as in tshark; a ad adoy are local, in the zone that decode --summary names")
	f.IntVarP(&o.count, "count", "c", 0, "stop after `N` records, of those that are wanted")
	f.DurationVar(&o.hold, "hold", dissect.DefaultHold, "wait so long, in capture `TIME`, for acknowledgements and for context; 0 for standard input by default")
	o.selectionOptions.flags(f)
}

// detailFlags adds the flags that say how much is shown of a record.
func detailFlags(f *pflag.FlagSet, o *decodeOptions) {
	f.CountVarP(&o.verbose, "verbose", "v", "more detail: a line for the envelope and for each field")
	f.BoolVarP(&o.full, "full", "V", false, "everything: types, sources, places on the wire, fields without meaning")
	f.BoolVarP(&o.hex, "hex", "x", false, "the bytes of each record, marked with its fields")
}

// outputFlags adds the flags that say how records are written.
func outputFlags(f *pflag.FlagSet, o *decodeOptions) {
	f.BoolVar(&o.secrets, "show-secrets", false, "print passwords and tokens as they are")
	f.BoolVar(&o.personal, "mask-personal", false, "mask chat, and the names that persons give themselves, too")
	f.StringVar(&o.color, "color", "auto", "`WHEN` to use colour: auto, always or never")
	f.IntVar(&o.width, "width", 0, "columns of a line of text, -1 for no limit; 0 is the terminal's width, else 120")
	f.BoolVarP(&o.numeric, "no-resolve", "n", false, "print numbers, not names, of hosts and ports (always so)")
	f.BoolVarP(&o.buffered, "line-buffered", "l", false, "write each record at once")
}

// inputFlags adds the flags that say what is read, and how.
func inputFlags(f *pflag.FlagSet, o *decodeOptions) {
	repeatable(f, &o.read, "read", "r", "read this `FILE`; repeatable, - is standard input")
	f.BoolVar(&o.lenient, "lenient", false, "exit with 0 although a file is damaged")
	f.BoolVar(&o.noProgress, "no-progress", false, "do not tell a terminal how far it is")
	sessionFlags(f, o)
}

// sessionFlags adds the flags that say which packets count, and what they are taken for.
func sessionFlags(f *pflag.FlagSet, o *decodeOptions) {
	f.StringVarP(&o.packetFilter, "capture-filter", "f", "", "look only at packets that pass this capture `FILTER`, as tcpdump has it")
	f.BoolVar(&o.copies, "no-dedup", false, "dissect a packet again that was seen at another interface, or on the way out and in")
	f.StringVar(&o.protocol, "protocol", "", "take every flow for this `PROTOCOL`'s")
	repeatable(f, &o.decodeAs, "decode-as", "d", "give a port to a protocol, as `RULE` udp.port==7777,wulfram; repeatable")
	repeatable(f, &o.schema, "schema", "", "read schema files of this `DIR` over the built-in ones; repeatable")
	repeatable(f, &o.proto, "proto", "", "read the .proto files and the ids of this `DIR`: a game of its own, or more of the mmo's; repeatable")
	repeatable(f, &o.settings, "option", "o", "set an `OPTION` of a protocol, as mmo.order:be for big-endian numbers; repeatable")
	repeatable(f, &o.limit, "limit", "", "set the limit `NAME=N`, of those that decode --help lists; repeatable")
}

// decode reads files.
func decode(ctx context.Context, s streams, files []string, o *decodeOptions) error {
	stdout := s.out
	switch {
	case o.write == "" && (o.mask || o.print):
		return usage("--mask and --print are about the packets of -w, which is not there\ntry: -w FILE")
	case o.mask && o.secrets:
		return usage("--mask masks what --show-secrets shows\ntry: one of them")
	case o.write == "-":
		s.out = s.err
	}
	d, err := newDecoding(s, o)
	if err != nil {
		return err
	}
	files = d.inputs(files)
	if o.write != "" {
		err = d.save(ctx, files, stdout)
	} else {
		err = d.files(ctx, files)
	}
	var e *exitError
	if errors.As(err, &e) && e.Error() != "" {
		return err
	}
	if !d.gathered {
		return err
	}
	if e := d.printStatistics(); e != nil {
		return &exitError{exitInput, fmt.Errorf("output: %w", e)}
	}
	return err
}

// files reads files. The error of one that could not be read as a whole is printed, and
// leaves its exit code.
func (d *decoding) files(ctx context.Context, files []string) error {
	if len(files) == 0 {
		return usage("no file to read\ntry: opscope decode FILE, or opscope decode - for standard input")
	}
	d.several = len(files) > 1
	defer d.watch(files)()
	var damaged bool
	var err error
	if jobs := d.jobsFor(files); jobs > 1 {
		damaged, err = d.atOnce(ctx, files, jobs)
	} else {
		damaged, err = d.inTurn(ctx, files)
	}
	if err != nil {
		return err
	}
	if err := d.out.Flush(); err != nil {
		return &exitError{exitInput, fmt.Errorf("output: %w", err)}
	}
	if damaged && !d.lenient {
		return &exitError{exitInput, errors.New("")}
	}
	return nil
}

// inTurn reads files one after the other. It reports whether one could not be read as a
// whole; an error ends the run.
func (d *decoding) inTurn(ctx context.Context, files []string) (damaged bool, err error) {
	d.overlap = d.overlaps(files)
	for i, name := range files {
		switch e := d.one(ctx, i, name); {
		case d.over || errors.Is(e, errEnough) || errors.Is(e, errInterrupted):
			return damaged, nil
		case fatal(e):
			return damaged, e
		case e != nil:
			damaged = true
		}
	}
	return damaged, nil
}

// one reads one of the files. It complains of an error that does not end the run.
func (d *decoding) one(ctx context.Context, index int, name string) error {
	if d.several && d.format == "text" && !d.silent {
		if err := d.heading(name); err != nil {
			return &exitError{exitInput, fmt.Errorf("output: %w", err)}
		}
	}
	err := d.file(ctx, index, name)
	if d.format != "table" { // whose rows are aligned with those of the next file
		if e := d.out.Flush(); e != nil {
			return &exitError{exitInput, fmt.Errorf("output: %w", e)}
		}
	}
	if err != nil && !d.over && !errors.Is(err, errEnough) && !errors.Is(err, errInterrupted) && !fatal(err) {
		complain(d.err, widen(err).Error())
	}
	return err
}

// fatal reports whether an error ends the run, and not only one file.
func fatal(err error) bool {
	var e *exitError
	return errors.As(err, &e)
}

// errEnough ends a run after as many records as were asked for.
var errEnough = errors.New("enough records")

// decoding is a run of decode.
type decoding struct {
	*decodeOptions
	streams
	out       dissect.Sink
	text      *sink.Text   // of format text
	json      *sink.NDJSON // of format json
	stats     []*statistic
	gathered  bool       // the statistics have the result of a file
	intervals *intervals // nil without --every
	silent    bool       // no heading and no record is printed as files are read
	several   bool       // files
	protocols []dissect.Protocol
	only      dissect.Protocol
	checks    bool // records are checked against rules
	assigned  []dissect.Assignment
	changed   bool                        // the user has layouts, or limits of them
	schemas   map[string]*schema.Protocol // by name, with the user's files over them; see schemaOf
	known     []dissect.Protocol          // those that are built in, and the user's games
	times     sink.TimeFormat
	limits    *limits
	wants     func(*dissect.Record) bool // says which records there are; nil for all
	selection
	over     bool             // records were shown, though the run goes on
	overlap  bool             // records are written on another core than the one that decodes
	saving   *saving          // nil without -w
	refused  map[string]error // why some inputs are no files that can be read
	progress *progress        // nil where nobody is told
}

func newDecoding(s streams, o *decodeOptions) (*decoding, error) {
	d := &decoding{decodeOptions: o, streams: s}
	switch {
	case o.count < 0:
		return nil, usage("-c %d: want a number of records, 0 for all", o.count)
	case o.jobs < 0:
		return nil, usage("-j %d: want a number of files, 0 for as many as there are cores", o.jobs)
	case o.hold < 0:
		return nil, usage("--hold %v: want a time such as 2s, 0 to hold nothing", o.hold)
	case !slices.Contains([]string{"", "auto", "text", "json"}, o.summary):
		return nil, usage("unknown --summary %q\ntry --summary text or --summary json", o.summary)
	case o.tables && o.format != "text":
		return nil, usage("--tables prints text, not %s\ntry: without -T", o.format)
	}
	var err error
	if d.limits, err = parseLimits(o.limit); err != nil {
		return nil, err
	}
	if _, err := pcapfilter.Parse(o.packetFilter, pcapfilter.Ethernet); err != nil {
		return nil, &exitError{exitUsage, err}
	}
	if err := d.choose(); err != nil {
		return nil, err
	}
	var ok bool
	if d.times, ok = sink.TimeFormatOf(o.time); !ok {
		return nil, usage("unknown time format %q\ntry one of: a ad adoy d dd e r u ud udoy", o.time)
	}
	if o.secrets {
		fmt.Fprintln(s.err, secretsShown)
	}
	if len(o.columns) > 0 && (o.format == "text" || o.format == "json") {
		return nil, usage("-e goes with -T fields, tsv, csv or table")
	}
	if err := d.loadPresets(); err != nil {
		return nil, err
	}
	if err := d.outlet(); err != nil {
		return nil, err
	}
	return d, d.prepareStatistics()
}

// outlet sets up what records are chosen by, and written to.
func (d *decoding) outlet() error {
	text, err := d.textOptions()
	if err != nil {
		return err
	}
	switch d.format {
	case "text":
		d.text = sink.NewText(d.streams.out, text)
		d.out = d.text
	case "json":
		d.json = sink.NewNDJSON(d.streams.out, sink.NDJSONOptions{Raw: d.raw, Privacy: text.Privacy, Immediate: text.Immediate})
		d.out = d.json
	default:
		if d.out, err = d.columnsOut(text.Immediate); err != nil {
			return err
		}
	}
	return d.prepareSelection()
}

// textOptions returns how records are written as text.
func (d *decoding) textOptions() (o sink.TextOptions, err error) {
	o = sink.TextOptions{
		Verbosity: min(d.verbose, 2), Hex: d.hex, Time: d.times, Width: textWidth(d.width, d.streams.out), Privacy: d.privacy(),
		Sides: d.sides, Immediate: d.immediate(), Schema: d.schemaOf,
	}
	if d.full {
		o.Verbosity = 2
	}
	o.Color, err = useColor(d.color, d.streams.out)
	return o, err
}

// immediate reports whether each record is written at once.
func (d *decoding) immediate() bool { return isTerminal(d.streams.out) || d.buffered }

// secretsShown warns of output that gives secrets away.
const secretsShown = "opscope: passwords and tokens are shown as they are; do not hand the output on"

// privacy says what is masked.
func (o *decodeOptions) privacy() dissect.Privacy {
	return dissect.Privacy{ShowSecrets: o.secrets, MaskPersonal: o.personal}
}

// choose settles which protocols are looked for, and where.
func (d *decoding) choose() error {
	if err := d.load(); err != nil {
		return err
	}
	d.protocols = d.known
	if d.protocol != "" {
		p, err := d.protocolNamed(d.protocol)
		if err != nil {
			return err
		}
		d.only = p
		d.protocols = []dissect.Protocol{p}
	}
	for _, rule := range d.decodeAs {
		a, err := d.parseDecodeAs(rule)
		if err != nil {
			return err
		}
		d.assigned = append(d.assigned, a)
	}
	return nil
}

func (d *decoding) protocolNamed(name string) (dissect.Protocol, error) {
	var names []string
	for _, p := range d.known {
		head, err := p.Head()
		if err != nil {
			return nil, &exitError{exitUsage, err}
		}
		if head.Name == name {
			return p, nil
		}
		names = append(names, head.Name)
	}
	return nil, usage("unknown protocol %q\ntry one of: %s", name, strings.Join(names, " "))
}

// parseDecodeAs parses udp.port==7777,wulfram.
func (d *decoding) parseDecodeAs(rule string) (a dissect.Assignment, err error) {
	wrong := usage("-d %q is no rule\ntry: -d udp.port==7777,wulfram", rule)
	where, name, ok := strings.Cut(rule, ",")
	if !ok {
		return a, wrong
	}
	field, number, ok := strings.Cut(where, "==")
	switch strings.TrimSpace(field) {
	case "tcp.port":
		a.Transport = schema.TCP
	case "udp.port":
		a.Transport = schema.UDP
	default:
		ok = false
	}
	port, convErr := strconv.ParseUint(strings.TrimSpace(number), 10, 16)
	if !ok || convErr != nil || port == 0 {
		return a, wrong
	}
	a.Port = uint16(port)
	a.Protocol, err = d.protocolNamed(strings.TrimSpace(name))
	return a, err
}

// Write shows a record if it is wanted, and ends the run after enough of them.
func (d *decoding) Write(r *dissect.Record) error {
	d.progress.record()
	if d.saving != nil {
		d.saving.see(r)
	}
	if d.over || d.wants != nil && !d.wants(r) {
		return nil
	}
	err := d.take(r, d.count, (d.quiet || d.tables) && d.saving == nil)
	if d.mask && errors.Is(err, errEnough) {
		d.over = true // what follows may say what is secret in packets that were shown
		return nil
	}
	return err
}

// Flush writes out what is buffered.
func (d *decoding) Flush() error { return d.window.Sink.Flush() }

// heading says which of several files comes now.
func (d *decoding) heading(name string) error {
	if err := d.out.Flush(); err != nil {
		return err
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		name = strconv.Quote(name)
	}
	d.text.Anew()
	_, err := fmt.Fprintf(d.streams.out, "-- file: %s --\n", name)
	return err
}

// file decodes one file.
func (d *decoding) file(ctx context.Context, index int, name string) error {
	f, err := d.open(ctx, name)
	if err != nil {
		return err
	}
	defer f.Close()
	d.window.Reset()
	if d.intervals != nil {
		d.intervals.begin()
	}
	var result *dissect.Result
	if f.Format() == capture.NDJSON {
		if d.saving != nil {
			return usage("%s: holds records, and -w writes packets\ntry: -w on the capture that the records came from", name)
		}
		if d.checks {
			return usage("%s: holds records, and rules look at packets, too\ntry: the capture that the records came from", name)
		}
		if d.tables {
			return usage("%s: holds records, and tables are learned from packets\ntry: --tables on the capture that the records came from", name)
		}
		result, err = d.records(ctx, index, name, f.Text())
	} else {
		result, err = d.packets(ctx, f, index, name == "-")
	}
	if d.saving != nil {
		if e := d.saving.end(func() (*capture.File, error) { return d.reopen(name) }, name, packetsOf(result)); e != nil {
			return d.saving.failed(e)
		}
	}
	var link *dissect.UnsupportedLinkError
	if errors.As(err, &link) {
		err = fmt.Errorf("%s: %w (packets: %d of %d)", name, err, result.Summary.Unsupported, result.Summary.Packets)
	}
	if result != nil {
		d.told(name, result, err)
		var foreign *capture.ForeignError
		if errors.As(err, &foreign) {
			return err
		}
		if e := d.gather(index, result); e != nil {
			return e
		}
	}
	for _, w := range f.Warnings() {
		complain(d.err, name+": "+w)
	}
	if err == nil && !d.quiet && len(result.Summary.Records) == 0 {
		complain(d.err, name+": "+nothingIn(&result.Summary))
	}
	if result != nil {
		if e := d.epilogue(index, result); e != nil && err == nil {
			err = &exitError{exitInput, fmt.Errorf("output: %w", e)}
		}
	}
	return err
}

// noGuard is the environment variable that, when it is not empty, has a defect in a
// dissector stop the program with its stack.
const noGuard = "OPSCOPE_NO_GUARD"

// told counts the limit that ended a file, and names the defects that it brought to
// light.
func (d *decoding) told(name string, r *dissect.Result, err error) {
	var e *wire.Error
	if errors.As(err, &e) {
		r.Summary.Reached(e.Limit)
	}
	for i := range r.Defects {
		complain(d.err, name+": "+r.Defects[i].Error())
	}
}

// nothingIn says why a file gave no records, for somebody who waits for some.
func nothingIn(s *dissect.Summary) string {
	if s.Packets == 0 {
		return "no packets, and no records"
	}
	return fmt.Sprintf("no records of a known protocol (packets: %d, flows of something else: %d)\n"+
		"try: -d udp.port==PORT,PROTOCOL, or --protocol PROTOCOL", s.Packets, s.OtherFlows)
}

func (d *decoding) open(ctx context.Context, name string) (*capture.File, error) {
	if err := d.refused[name]; err != nil {
		return nil, err
	}
	if d.saving != nil {
		d.saving.begin()
	}
	switch {
	case name != "-" && (d.saving == nil || !readOnce(name)):
		return d.limits.capture.Open(name, d.progress.through)
	case d.saving == nil:
		return d.limits.capture.OpenReader(name, d.progress.through(newStandardInput(ctx, d.in, d.out)))
	case name == "-":
		return d.openKept(name, d.progress.through(newStandardInput(ctx, d.in, d.out)))
	}
	pipe, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	d.saving.pipe = pipe
	return d.openKept(name, d.progress.through(pipe))
}

// packets dissects a capture.
func (d *decoding) packets(ctx context.Context, src dissect.Source, index int, stdin bool) (*dissect.Result, error) {
	hold := d.hold
	if stdin && !d.holdSet {
		hold = 0
	}
	if d.packetFilter != "" {
		filtered, err := capture.NewFiltered(src, d.packetFilter)
		if err != nil {
			return nil, err
		}
		src = filtered
	}
	p := dissect.NewPipeline(d, d.pipelineOptions(hold, stdin, index))
	if d.intervals != nil {
		src = &timed{src, d.intervals, p, index}
	}
	if d.overlap {
		return d.overlapped(func() (*dissect.Result, error) { return p.Run(ctx, src) })
	}
	return p.Run(ctx, src)
}

// overlapped has records written on another core while a file is decoded. An error of the
// output ends the run some records later than it would on one core.
func (d *decoding) overlapped(run func() (*dissect.Result, error)) (*dissect.Result, error) {
	beside := sink.NewBeside(d.out)
	d.window.Sink = beside
	result, err := run()
	d.window.Sink = d.out
	if e := beside.Close(); err == nil {
		err = e
	}
	return result, err
}

func (d *decoding) pipelineOptions(hold time.Duration, live bool, index int) dissect.Options {
	return dissect.Options{
		Protocols: d.protocols, Assigned: d.assigned, Only: d.only, Hold: hold, Live: live, Copies: d.copies,
		Schema: d.overlay(), Anew: d.anew, File: index,
		Limits: d.limits.run, Check: d.check, Traffic: d.traffic,
		Forget: !d.needsSessions() && d.limits.run.Sessions == 0, Guard: os.Getenv(noGuard) == "", Look: d.look(),
	}
}

// epilogue prints what was asked for behind the records of a file.
func (d *decoding) epilogue(index int, r *dissect.Result) error {
	if d.tables {
		if err := d.out.Flush(); err != nil {
			return err
		}
		if err := sink.WriteTables(d.streams.out, r, d.privacy()); err != nil {
			return err
		}
	}
	if !d.quiet && d.summary == "" {
		return nil
	}
	if err := d.out.Flush(); err != nil {
		return err
	}
	out := d.err
	if d.quiet {
		out = d.streams.out
	}
	switch {
	case d.json != nil && d.summary != "text":
		return d.json.WriteSummary(index, &r.Summary)
	case d.summary == "json":
		j := sink.NewNDJSON(out, sink.NDJSONOptions{Immediate: true})
		return j.WriteSummary(index, &r.Summary)
	}
	return sink.WriteSummary(out, &r.Summary, d.times.Zone(nil))
}

// useColor decides whether to colour: auto for a terminal, unless NO_COLOR says
// otherwise.
func useColor(when string, out io.Writer) (bool, error) {
	switch when {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto":
	default:
		return false, usage("unknown --color %q\ntry auto, always or never", when)
	}
	for _, force := range []string{"FORCE_COLOR", "CLICOLOR_FORCE"} {
		if v := os.Getenv(force); v != "" && v != "0" && os.Getenv("NO_COLOR") == "" {
			return true, nil
		}
	}
	return isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", nil
}

func isTerminal(out io.Writer) bool {
	f, ok := out.(descriptor)
	return ok && isatty.IsTerminal(f.Fd())
}

// descriptor is a file, or what stands for one.
type descriptor interface{ Fd() uintptr }

// textWidth returns the columns of a line of text.
func textWidth(asked int, out io.Writer) int {
	if asked != 0 || !isTerminal(out) {
		return asked
	}
	w, _, err := term.GetSize(int(out.(descriptor).Fd()))
	if err != nil {
		return 0
	}
	return w
}
