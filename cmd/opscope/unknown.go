package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"opscope/dissect"
	"opscope/dissect/sink"
)

func newUnknown(s streams) *cobra.Command {
	o := decodeOptions{time: "a", color: "never", hold: dissect.DefaultHold, holdSet: true}
	var samples int
	c := &cobra.Command{
		Use:   "unknown [flags] FILE...",
		Short: "List what of some captures is not understood",
		Long: `unknown decodes capture files as decode does, and lists what is not understood, of all
of them together: opcodes and bodies without a layout, with their sizes and samples in
hex; records with bytes left over; fields at which decoding fails; and how much of each
protocol was decoded. Secrets are masked in samples, too.`,
		Example: `  opscope unknown pcaps/wulfram/session.pcapng
  opscope unknown -T json pcaps/wulfram/session.pcapng pcaps/netrek/udp.pcapng | jq '.unknown[] | {message, count}'`,
		RunE: func(c *cobra.Command, args []string) error {
			return unknown(c.Context(), s, append(o.read, args...), &o, samples)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	inputFlags(f, &o)
	f.StringVarP(&o.format, "format", "T", "text", "output `FORMAT`: text or json (one object)")
	f.IntVar(&samples, "samples", 3, "show at most `N` samples of each kind")
	f.BoolVar(&o.secrets, "show-secrets", false, "print passwords and tokens as they are")
	f.BoolVar(&o.personal, "mask-personal", false, "mask chat, and the names that persons give themselves, too")
	completeFlags(c)
	return c
}

// unfitted is a report that is as wide as it needs to be.
type unfitted struct{ *sink.Report }

// WriteText writes the report, whatever the width.
func (r unfitted) WriteText(w io.Writer, _ int) error { return r.Report.WriteText(w) }

// unknown decodes files and reports what was not understood, also of a damaged one.
func unknown(ctx context.Context, s streams, files []string, o *decodeOptions, samples int) error {
	if err := textOrJSON(o.format); err != nil {
		return err
	}
	if samples < 1 {
		return usage("--samples %d: want 1 or more", samples)
	}
	d, err := newDecoding(s, o)
	if err != nil {
		return err
	}
	u := sink.NewUnknown(sink.UnknownOptions{Samples: samples, Privacy: d.privacy(), Schema: d.schemaOf})
	return d.report(ctx, files, &statistic{
		out:    u,
		gather: func(_ int, r *dissect.Result) error { u.AddUndecoded(r.Summary.UndecodedBytes); return nil },
		report: func() printable { return unfitted{u.Report()} },
	})
}
