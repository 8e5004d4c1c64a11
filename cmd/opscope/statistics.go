package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"opscope/dissect"
	"opscope/dissect/sink"
)

// statistic is a table of what the files tell, all of them together.
type statistic struct {
	name    string
	out     dissect.Sink                             // takes the records that are wanted, and whatever is no frame; nil for nothing
	traffic func(*dissect.Traffic)                   // nil for nothing
	gather  func(index int, r *dissect.Result) error // takes the result of each file; nil for nothing
	report  func() printable
	fork    func() *statistic // returns one that counts on by itself; nil for one that is printed once
	// join adds what another one of this name took, of a file that was read beside others. It
	// is nil for what takes files in turn.
	join func(*statistic)
	body any // what takes it all, for join
}

// take takes the result of a file.
func (s *statistic) take(index int, r *dissect.Result) error {
	if s.gather == nil {
		return nil
	}
	return s.gather(index, r)
}

// printable is what is printed once all files are read.
type printable interface {
	WriteText(w io.Writer, width int) error
	WriteJSON(w io.Writer) error
}

// statisticNames are those that -z takes, each a command, too.
var statisticNames = []string{"flows", "opcodes", "acks", "tables"}

// newStatistic returns the statistic of a name, nil for none.
func (d *decoding) newStatistic(name string) *statistic {
	switch name {
	case "flows":
		return flowStatistic(sink.NewFlows(d.privacy()))
	case "opcodes":
		return opcodeStatistic(&sink.Opcodes{})
	case "acks":
		return ackStatistic(sink.NewAcks(d.schemaOf))
	case "tables":
		return d.tableStatistic(&sink.TableReport{})
	}
	return nil
}

func flowStatistic(f *sink.Flows) *statistic {
	return &statistic{
		name: "flows", out: f, traffic: f.Traffic,
		gather: func(_ int, r *dissect.Result) error { f.AddSummary(&r.Summary); return nil },
		report: func() printable { return f.Report() },
		fork:   func() *statistic { return flowStatistic(f.Fork()) },
		body:   f,
		join:   func(other *statistic) { f.Join(other.body.(*sink.Flows)) },
	}
}

func opcodeStatistic(o *sink.Opcodes) *statistic {
	return &statistic{
		name: "opcodes", out: o,
		gather: func(_ int, r *dissect.Result) error { o.AddSpan(&r.Summary); return nil },
		report: func() printable { return o.Report() },
		fork:   func() *statistic { return opcodeStatistic(o.Fork()) },
		body:   o,
		join:   func(other *statistic) { o.Join(other.body.(*sink.Opcodes)) },
	}
}

func ackStatistic(a *sink.Acks) *statistic {
	return &statistic{
		name: "acks", out: a,
		report: func() printable { return a.Report() },
		fork:   func() *statistic { return ackStatistic(a.Fork()) },
		body:   a,
		join:   func(other *statistic) { a.Join(other.body.(*sink.Acks)) },
	}
}

func (d *decoding) tableStatistic(t *sink.TableReport) *statistic {
	return &statistic{
		name:   "tables",
		gather: func(i int, r *dissect.Result) error { return t.Add(i, d.several, r, d.privacy()) },
		report: func() printable { return t },
		fork:   func() *statistic { return d.tableStatistic(t.Fork()) },
		body:   t,
		join:   func(other *statistic) { t.Join(other.body.(*sink.TableReport)) },
	}
}

// prepareStatistics sets up what -z asks for.
func (d *decoding) prepareStatistics() error {
	for _, name := range d.statistics {
		s := d.newStatistic(name)
		switch {
		case s == nil:
			return usage("unknown -z %q\ntry one of: flows opcodes acks tables", name)
		case d.format != "text" && d.format != "json":
			return usage("-z goes with -T text and json, not with %s\ntry: opscope %s FILE", d.format, name)
		}
		d.add(s)
	}
	return nil
}

// add has a statistic take what is read from now on.
func (d *decoding) add(s *statistic) {
	d.stats = append(d.stats, s)
	if s.out != nil {
		d.taps = append(d.taps, s.out)
	}
}

// traffic hands the packets of a flow to the statistics that want them.
func (d *decoding) traffic(t *dissect.Traffic) {
	for _, s := range d.stats {
		if s.traffic != nil {
			s.traffic(t)
		}
	}
}

// needsSessions reports whether anybody asks for the sessions that are over.
func (d *decoding) needsSessions() bool {
	return d.tables || slices.ContainsFunc(d.stats, func(s *statistic) bool { return s.name == "tables" })
}

// look says how much of the records anybody looks at.
func (d *decoding) look() dissect.Look {
	if d.saving != nil || d.checks || d.personal { // what is masked is looked for in the whole
		return dissect.LookWhole
	}
	return min(d.printed(), d.wanted.Look())
}

// printed says how much of the records the output looks at. No statistic looks at values, and
// the one of opcodes not at what sequences tell either, which summaries count.
func (d *decoding) printed() dissect.Look {
	switch d.out.(type) {
	case unprinted:
		if d.counts("opcodes") && d.intervals == nil && d.summary == "" && !d.quiet {
			return dissect.LookKind
		}
		return dissect.LookNothing
	case *sink.Text:
		if d.verbose == 0 && !d.hex && !d.full {
			return dissect.LookOutline
		}
	}
	return dissect.LookWhole
}

// counts reports whether records are counted by this statistic, and by no other.
func (d *decoding) counts(name string) bool {
	return !slices.ContainsFunc(d.stats, func(s *statistic) bool { return s.name != name })
}

// gather hands the result of a file to the statistics.
func (d *decoding) gather(index int, r *dissect.Result) error {
	d.gathered = true
	for _, s := range d.stats {
		if err := s.take(index, r); err != nil {
			return err
		}
	}
	return nil
}

// join adds what the statistics of another decoding took, each to its own.
func (d *decoding) join(o *decoding) {
	d.gathered = d.gathered || o.gathered
	for i, s := range d.stats {
		s.join(o.stats[i])
	}
}

// printStatistics prints what -z asks for, behind the records.
func (d *decoding) printStatistics() error {
	for _, s := range d.stats {
		var b bytes.Buffer
		if d.format == "json" {
			if err := s.report().WriteJSON(&b); err != nil {
				return err
			}
			fmt.Fprintf(d.streams.out, `{"type":"%s",%s`, s.name, b.Bytes()[1:])
			continue
		}
		fmt.Fprintf(&b, "\n-- %s --\n", s.name)
		if err := s.report().WriteText(&b, d.tableWidth()); err != nil {
			return err
		}
		if _, err := d.streams.out.Write(b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// tableWidth returns how wide a table may be, 0 for as wide as it is.
func (d *decoding) tableWidth() int { return max(0, textWidth(d.width, d.streams.out)) }

// report reads files, and prints a statistic of all, also where one is damaged, but not where
// there was nothing to read. Records are not printed.
func (d *decoding) report(ctx context.Context, files []string, s *statistic) error {
	d.gatherOnly(s)
	failed := d.files(ctx, d.inputs(files))
	var e *exitError
	if errors.As(failed, &e) && e.Error() != "" || !d.gathered {
		return failed
	}
	if err := d.printLast(s); err != nil {
		return err
	}
	return failed
}

// gatherOnly has records go to a statistic, and be printed nowhere.
func (d *decoding) gatherOnly(s *statistic) {
	d.add(s)
	d.silent = true
	d.writeTo(unprinted{})
}

// printLast prints a statistic of all that was read.
func (d *decoding) printLast(s *statistic) error {
	if d.intervals != nil {
		return d.intervals.print(s, d.intervals.last)
	}
	return d.printReport(s.report(), time.Time{})
}

// printReport prints a report, with the time up to which it counts; zero for none.
func (d *decoding) printReport(r printable, until time.Time) error {
	var b bytes.Buffer
	write := func(w io.Writer) error { return r.WriteText(w, d.tableWidth()) }
	if d.format == "json" {
		write = r.WriteJSON
	}
	if err := write(&b); err != nil {
		return outputError(err)
	}
	text := b.Bytes()
	if !until.IsZero() {
		text = headed(text, d.format, until)
	}
	if _, err := d.streams.out.Write(text); err != nil {
		return outputError(err)
	}
	return nil
}

// unprinted is a sink for records that only statistics take.
type unprinted struct{}

func (unprinted) Write(*dissect.Record) error { return nil }
func (unprinted) Flush() error                { return nil }

// statisticOptions are what the command of a statistic was asked for.
type statisticOptions struct {
	decodeOptions
	liveOptions
	every time.Duration
}

// statisticCommand completes the command of a statistic.
func statisticCommand(s streams, c *cobra.Command) *cobra.Command {
	o := statisticOptions{decodeOptions: decodeOptions{time: "a", color: "never", holdSet: true}}
	c.Long += "\n\n" + everyHelp
	c.RunE = func(c *cobra.Command, args []string) error {
		files := append(o.read, args...)
		if err := o.liveOptions.fit(c.Flags(), files); err != nil {
			return err
		}
		return tell(c.Context(), s, c.Name(), files, &o)
	}
	f := c.Flags()
	f.SortFlags = false
	inputFlags(f, &o.decodeOptions)
	jobsFlag(f, &o.decodeOptions)
	o.liveOptions.flags(f)
	f.DurationVar(&o.every, "every", 0, "print the table after each `TIME` of the capture, as 5s, and at the end")
	f.StringVarP(&o.format, "format", "T", "text", "output `FORMAT`: text or json (an object a line)")
	if c.Name() == "tables" {
		f.BoolVar(&o.secrets, "show-secrets", false, "print passwords and tokens as they are")
		f.BoolVar(&o.personal, "mask-personal", false, "mask chat, and the names that persons give themselves, too")
	} else {
		o.choiceFlags(f)
	}
	f.DurationVar(&o.hold, "hold", dissect.DefaultHold, "wait so long, in capture `TIME`, for acknowledgements and for context")
	f.IntVar(&o.width, "width", 0, "columns of a table, -1 for no limit; 0 is the terminal's width, else no limit")
	completeFlags(c)
	return c
}

const everyHelp = `With -i it captures, as sniff does, until -a or an interrupt, and prints the table then.
With --every the table is printed again and again, each with all that came until then:
of an interface by the clock, of a file by the times of its packets; where none came
there is no new table. Each counts what still waits for its acknowledgement, as in
flight. On a terminal that is too narrow a table leaves columns out, and names them.`

// tell prints one statistic of some files, or of interfaces.
func tell(ctx context.Context, s streams, name string, files []string, o *statisticOptions) error {
	switch {
	case o.format != "text" && o.format != "json":
		return usage("unknown format %q\ntry -T text or -T json", o.format)
	case o.every < 0:
		return usage("--every %v: want a time such as 5s", o.every)
	}
	var x *sniffing
	if len(o.interfaces) > 0 {
		var err error
		if x, err = newSniffing(&s, &o.liveOptions, o.packetFilter); err != nil {
			return err
		}
	}
	d, err := newDecoding(s, &o.decodeOptions)
	if err != nil {
		return err
	}
	stat := d.newStatistic(name)
	if o.every > 0 {
		d.intervals = &intervals{decoding: d, statistic: stat, every: o.every}
	}
	if x == nil {
		return d.report(ctx, files, stat)
	}
	x.decoding = d
	return x.report(ctx, stat)
}

func newOpcodes(s streams) *cobra.Command {
	return statisticCommand(s, &cobra.Command{
		Use:   "opcodes [flags] FILE...",
		Short: "Count the records of some captures by message",
		Long: `opcodes decodes capture files as decode does, and counts their records by message and
direction, of all files together: how many, what share of all, how many in a second of
capture time, their bytes and sizes, and which have no layout. -Y, --only and --hide
choose the records that count.`,
		Example: `  opscope opcodes pcaps/wulfram/session.pcapng
  opscope opcodes -Y 'dir == c2s' pcaps/netrek/tcp.pcapng pcaps/netrek/udp.pcapng
  opscope opcodes -T json pcaps/mmo/enter.pcapng | jq '.opcodes[] | {message, count}'
  opscope opcodes -i eth0 --every 5s`,
	})
}

func newFlows(s streams) *cobra.Command {
	return statisticCommand(s, &cobra.Command{
		Use:   "flows [flags] FILE...",
		Short: "List the sessions and flows of some captures",
		Long: `flows decodes capture files as decode does, and lists their sessions and flows: who,
when, how long, packets and their bytes on the wire, records, errors, what was sent again,
gaps and the bytes lost in them, round trips, and how it ended. Flows of no known protocol
are only counted. -Y, --only and --hide choose the records that count; packets, gaps and
states are of all.

With several files a session is FILE/SESSION. A flow that went on in another session has
a line in each.`,
		Example: `  opscope flows pcaps/wulfram/lossy.pcapng
  opscope flows pcaps/mmo/nat.pcapng pcaps/netrek/udp.pcapng
  opscope flows -T json pcaps/mmo/nat.pcapng | jq '.sessions[] | {client, seconds, state}'
  opscope flows --every 1s pcaps/wulfram/lossy.pcapng
  opscope flows -i eth0 --every 5s`,
	})
}

func newAcks(s streams) *cobra.Command {
	return statisticCommand(s, &cobra.Command{
		Use:   "acks [flags] FILE...",
		Short: "Tell what became of the records of each stream",
		Long: `acks decodes capture files as decode does, and counts records by stream: those of one
session and direction whose sequences count together, as envelope.stream says. Of Wulfram
a stream is an opcode or a group of them, of Netrek the datagrams of one side, of Lords of
the Realm II the slots of one player, of the mmo the inputs of a client. Requests without
a sequence count by message.

  sent      as captured, copies too             again     sent again
  acked     acknowledged, or answered           copies    sent by design
  served    copies of what was acknowledged     ignored   on order of the sender
  unacked   never acknowledged; of these lost counts what had not been sent before
  in flight nobody knows yet                    missing   sequences not captured
  window    beyond the receiver's window        too many  more in flight than allowed

Round trips are of records that were sent once; percentiles are good to a hundredth, the
greatest is exact.`,
		Example: `  opscope acks pcaps/wulfram/lossy.pcapng
  opscope acks -Y 'dir == c2s' pcaps/wulfram/lossy.pcapng pcaps/wulfram/wrap.pcapng
  opscope acks -T json pcaps/wulfram/lossy.pcapng | jq '.streams[] | {messages, sent, acked}'
  opscope acks -i eth0 --port 2627 --every 5s`,
	})
}

func newTables(s streams) *cobra.Command {
	return statisticCommand(s, &cobra.Command{
		Use:   "tables [flags] FILE...",
		Short: "Print what the sessions of some captures have learned",
		Long: `tables decodes capture files as decode does, and prints what each session has learned,
each entry with the packet that taught it: stream modes, widths of numbers, ports,
players. It is decode --tables, for several files and as JSON, too. Tokens are masked.`,
		Example: `  opscope tables pcaps/wulfram/session.pcapng
  opscope tables -T json pcaps/mmo/enter.pcapng | jq '.sessions[].tables[] | {name, rows}'`,
	})
}
