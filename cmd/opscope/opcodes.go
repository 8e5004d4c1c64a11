package main

import (
	"context"

	"github.com/spf13/cobra"

	"opscope/dissect"
	"opscope/dissect/sink"
)

func newOpcodes(s streams) *cobra.Command {
	o := decodeOptions{time: "a", color: "never", hold: dissect.DefaultHold, holdSet: true}
	c := &cobra.Command{
		Use:   "opcodes [flags] FILE...",
		Short: "Count the records of some captures by message",
		Long: `opcodes decodes capture files as decode does, and counts their records by message and
direction, of all files together: how many, what share of all, how many in a second of
capture time, their bytes and sizes, and which have no layout. -Y, --only and --hide
choose the records that count.`,
		Example: `  opscope opcodes pcaps/wulfram/session.pcapng
  opscope opcodes -Y 'dir == c2s' pcaps/netrek/tcp.pcapng pcaps/netrek/udp.pcapng
  opscope opcodes -T json pcaps/mmo/enter.pcapng | jq '.opcodes[] | {message, count}'`,
		RunE: func(c *cobra.Command, args []string) error {
			return opcodes(c.Context(), s, append(o.read, args...), &o)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	inputFlags(f, &o)
	f.StringVarP(&o.format, "format", "T", "text", "output `FORMAT`: text or json (one object)")
	o.choiceFlags(f)
	return c
}

func opcodes(ctx context.Context, s streams, files []string, o *decodeOptions) error {
	if o.format != "text" && o.format != "json" {
		return usage("unknown format %q\ntry -T text or -T json", o.format)
	}
	d, err := newDecoding(s, o)
	if err != nil {
		return err
	}
	var counts sink.Opcodes
	return d.report(ctx, files, &counts, func(r *dissect.Result) { counts.AddSpan(&r.Summary) }, func() printable { return counts.Report() })
}
