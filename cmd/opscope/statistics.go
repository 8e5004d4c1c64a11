package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

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
}

// printable is what is printed once all files are read.
type printable interface {
	WriteText(w io.Writer) error
	WriteJSON(w io.Writer) error
}

// statisticNames are those that -z takes, each a command, too.
var statisticNames = []string{"flows", "opcodes", "acks", "tables"}

// newStatistic returns the statistic of a name, nil for none.
func (d *decoding) newStatistic(name string) *statistic {
	s := &statistic{name: name}
	switch name {
	case "flows":
		f := sink.NewFlows(d.privacy())
		s.out, s.traffic = f, f.Traffic
		s.gather = func(_ int, r *dissect.Result) error { f.AddSummary(&r.Summary); return nil }
		s.report = func() printable { return f.Report() }
	case "opcodes":
		counts := &sink.Opcodes{}
		s.out = counts
		s.gather = func(_ int, r *dissect.Result) error { counts.AddSpan(&r.Summary); return nil }
		s.report = func() printable { return counts.Report() }
	case "acks":
		a := sink.NewAcks()
		s.out = a
		s.report = func() printable { return a.Report() }
	case "tables":
		var t sink.TableReport
		s.gather = func(i int, r *dissect.Result) error { return t.Add(i, d.several, r, d.privacy()) }
		s.report = func() printable { return &t }
	default:
		return nil
	}
	return s
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

// gather hands the result of a file to the statistics.
func (d *decoding) gather(index int, r *dissect.Result) error {
	for _, s := range d.stats {
		if s.gather == nil {
			continue
		}
		if err := s.gather(index, r); err != nil {
			return err
		}
	}
	return nil
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
		if err := s.report().WriteText(&b); err != nil {
			return err
		}
		if _, err := d.streams.out.Write(b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// report reads files, and prints a statistic of all, also where one is damaged. Records are
// not printed.
func (d *decoding) report(ctx context.Context, files []string, s *statistic) error {
	d.add(s)
	d.silent, d.unprinted = true, true
	d.writeTo(unprinted{})
	failed := d.files(ctx, files)
	var e *exitError
	if errors.As(failed, &e) && e.Error() != "" {
		return failed
	}
	r := s.report()
	write := r.WriteText
	if d.format == "json" {
		write = r.WriteJSON
	}
	if err := write(d.streams.out); err != nil {
		return &exitError{exitInput, fmt.Errorf("output: %w", err)}
	}
	return failed
}

// unprinted is a sink for records that only statistics take.
type unprinted struct{}

func (unprinted) Write(*dissect.Record) error { return nil }
func (unprinted) Flush() error                { return nil }

// statisticCommand completes the command of a statistic.
func statisticCommand(s streams, c *cobra.Command) *cobra.Command {
	o := decodeOptions{time: "a", color: "never", hold: dissect.DefaultHold, holdSet: true}
	c.RunE = func(c *cobra.Command, args []string) error {
		return tell(c.Context(), s, c.Name(), append(o.read, args...), &o)
	}
	f := c.Flags()
	f.SortFlags = false
	inputFlags(f, &o)
	f.StringVarP(&o.format, "format", "T", "text", "output `FORMAT`: text or json (one object)")
	if c.Name() == "tables" {
		f.BoolVar(&o.secrets, "show-secrets", false, "print passwords and tokens as they are")
	} else {
		o.choiceFlags(f)
	}
	return c
}

// tell prints one statistic of some files.
func tell(ctx context.Context, s streams, name string, files []string, o *decodeOptions) error {
	if o.format != "text" && o.format != "json" {
		return usage("unknown format %q\ntry -T text or -T json", o.format)
	}
	d, err := newDecoding(s, o)
	if err != nil {
		return err
	}
	return d.report(ctx, files, d.newStatistic(name))
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
  opscope opcodes -T json pcaps/mmo/enter.pcapng | jq '.opcodes[] | {message, count}'`,
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
  opscope flows -T json pcaps/mmo/nat.pcapng | jq '.sessions[] | {client, seconds, state}'`,
	})
}

func newAcks(s streams) *cobra.Command {
	return statisticCommand(s, &cobra.Command{
		Use:   "acks [flags] FILE...",
		Short: "Tell what became of records that want an acknowledgement",
		Long: `acks decodes capture files as decode does, and counts the records that want an
acknowledgement or an answer, by session, direction and message: sent (copies too),
acknowledged, copies served by the acknowledgement of an earlier one, sent again, never
acknowledged, ignored on order of the sender, still in flight, how often sequences before
one were not seen, and how often a window or the number in flight was exceeded. Round
trips are of records that were sent once; percentiles are good to a hundredth, the
greatest is exact.`,
		Example: `  opscope acks pcaps/wulfram/lossy.pcapng
  opscope acks -Y 'dir == c2s' pcaps/wulfram/lossy.pcapng pcaps/wulfram/wrap.pcapng
  opscope acks -T json pcaps/wulfram/lossy.pcapng | jq '.streams[] | {message, sent, acked}'`,
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
