package main

import (
	"context"
	"errors"
	"fmt"
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
	return c
}

// unknown decodes files and reports what was not understood, also of a damaged one.
func unknown(ctx context.Context, s streams, files []string, o *decodeOptions, samples int) error {
	if o.format != "text" && o.format != "json" {
		return usage("unknown format %q\ntry -T text or -T json", o.format)
	}
	if samples < 1 {
		return usage("--samples %d: want 1 or more", samples)
	}
	d, err := newDecoding(s, o)
	if err != nil {
		return err
	}
	u := sink.NewUnknown(sink.UnknownOptions{Samples: samples, Privacy: d.privacy(), Schema: d.schemaOf})
	gather := func(r *dissect.Result) { u.AddUndecoded(r.Summary.UndecodedBytes) }
	return d.report(ctx, files, u, gather, func() printable { return u.Report() })
}

// printable is what is printed once all files are read.
type printable interface {
	WriteText(w io.Writer) error
	WriteJSON(w io.Writer) error
}

// report has a sink take the records of all files, and gather each file's result, and
// prints what comes of it, also where a file is damaged.
func (d *decoding) report(ctx context.Context, files []string, out dissect.Sink, gather func(*dissect.Result), made func() printable) error {
	d.writeTo(out)
	d.gather = gather
	d.window.Before, d.window.After = 0, 0 // what is near a hit does not count
	failed := d.files(ctx, files)
	var e *exitError
	if errors.As(failed, &e) && e.Error() != "" {
		return failed
	}
	r := made()
	write := r.WriteText
	if d.format == "json" {
		write = r.WriteJSON
	}
	if err := write(d.streams.out); err != nil {
		return &exitError{exitInput, fmt.Errorf("output: %w", err)}
	}
	return failed
}
