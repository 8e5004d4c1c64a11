package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"opscope/dissect"
	"opscope/dissect/sink"
	"opscope/dissect/transcript"
)

// diffOptions are what `opscope diff` was asked for.
type diffOptions struct {
	decodeOptions
	ignore []string
	golden string
	update bool
}

func newDiff(s streams) *cobra.Command {
	o := diffOptions{decodeOptions: decodeOptions{time: "u", color: "auto", hold: dissect.DefaultHold, holdSet: true}}
	c := &cobra.Command{
		Use:   "diff [flags] A B",
		Short: "Compare what was said in two captures of one scenario",
		Long: `diff compares two captures record by record: an official server with ours, yesterday
with today. For each session, direction and transport it puts the messages of both
beside each other, and shows which are missing, added, or have another value in a
field. How two directions interleave does not count, nor what was sent again.

Left out are times, addresses and ports, sequence numbers, and the fields that carry
them: ` + strings.Join(transcript.Usual, " ") + `.
--ignore leaves out more: a field, MESSAGE.field or a path such as entities.position,
with * and ?. Secrets are masked, and so never differ.

--golden FILE compares one capture with a transcript that is kept as text; --update
writes it.

Exit codes: 0 both are the same; 1 they differ; 2 usage; 3 one is unreadable or damaged.`,
		Example: `  opscope diff -T json pcaps/wulfram/login.pcapng pcaps/wulfram/vlan.pcapng
  opscope diff -T json --ignore HELLO.key --ignore 'entities*' pcaps/wulfram/login.pcapng pcaps/wulfram/cooked.pcapng`,
		Args: func(c *cobra.Command, args []string) error {
			if o.golden != "" {
				return argsBetween(1, 1)(c, args)
			}
			return argsBetween(2, 2)(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error { return diff(c.Context(), s, args, &o) },
	}
	f := c.Flags()
	f.SortFlags = false
	inputFlags(f, &o.decodeOptions)
	repeatable(f, &o.ignore, "ignore", "", "leave this `FIELD` out; repeatable")
	f.StringVar(&o.golden, "golden", "", "compare one capture with the transcript in this `FILE`")
	f.BoolVar(&o.update, "update", false, "write the transcript of --golden, and compare nothing")
	f.StringVarP(&o.format, "format", "T", "text", "output `FORMAT`: text or json (one object)")
	f.BoolVar(&o.personal, "mask-personal", false, "mask chat, and the names that persons give themselves, too")
	f.StringVar(&o.color, "color", "auto", "`WHEN` to use colour: auto, always or never")
	completeFlags(c)
	return c
}

// diff compares two captures, or one with a transcript.
func diff(ctx context.Context, s streams, files []string, o *diffOptions) error {
	if err := textOrJSON(o.format); err != nil {
		return err
	}
	if o.update && o.golden == "" {
		return usage("--update writes what --golden names\ntry: opscope diff --golden FILE --update CAPTURE")
	}
	for _, pattern := range o.ignore {
		if err := transcript.Pattern(pattern); err != nil {
			return usage("--ignore %s: %w", pattern, err)
		}
	}
	last := len(files) - 1
	b := &transcript.Transcript{Ignore: o.ignore}
	failed, err := o.transcribe(ctx, s, files[last], b)
	if err != nil {
		return err
	}
	if o.update {
		if failed {
			return &exitError{exitInput, errors.New("")} // which it has complained of
		}
		return writeReport(o.golden, b.Print)
	}
	name, a := files[0], b.Counterpart()
	if o.golden != "" {
		name = o.golden
		err = o.readGolden(a)
	} else {
		var cut bool
		cut, err = o.transcribe(ctx, s, files[0], a)
		failed = failed || cut
	}
	if err != nil {
		return err
	}
	same, err := o.print(s, name, files[last], transcript.Compare(a, b))
	if err != nil {
		return outputError(err)
	}
	switch {
	case failed && !o.lenient:
		return &exitError{exitInput, errors.New("")}
	case !same:
		return &exitError{exitCheck, errors.New("")}
	}
	return nil
}

// transcribe reads a capture into t. It reports whether that could not be read as a whole,
// which it has complained of.
func (o *diffOptions) transcribe(ctx context.Context, s streams, name string, t *transcript.Transcript) (failed bool, err error) {
	below := o.decodeOptions
	below.format, below.spread = "json", true
	var complaints bytes.Buffer
	d, err := newDecoding(streams{s.in, t, io.MultiWriter(s.err, &complaints)}, &below)
	if err != nil {
		return false, err
	}
	err = d.files(ctx, []string{name})
	if ctx.Err() != nil { // the rest of it may be the same
		return false, &exitError{exitInput, context.Cause(ctx)}
	}
	if !d.gathered { // nothing of it could be read: that is not what was said
		return false, cmp.Or(err, error(&exitError{exitInput, errors.New("")}))
	}
	var e *exitError
	if errors.As(err, &e) && e.Error() == "" {
		return true, nil
	}
	return false, err
}

// readGolden reads the transcript that is kept into t.
func (o *diffOptions) readGolden(t *transcript.Transcript) error {
	f, err := os.Open(o.golden)
	if err != nil {
		return &exitError{exitInput, err}
	}
	defer f.Close()
	if err := t.Parse(f); err != nil {
		return &exitError{exitInput, fmt.Errorf("%s: %w", o.golden, err)}
	}
	return nil
}

// print writes what differs, and reports whether nothing does.
func (o *diffOptions) print(s streams, a, b string, list iter.Seq[transcript.Difference]) (same bool, err error) {
	if o.format == "json" {
		return transcript.WriteJSON(s.out, a, b, list)
	}
	color, err := useColor(o.color, s.out)
	if err != nil {
		return false, err
	}
	if !color {
		return transcript.WriteText(s.out, a, b, list, nil)
	}
	return transcript.WriteText(s.out, a, b, list, func(line string) string {
		switch line[0] {
		case '-':
			return sink.Paint(line, true)
		case '+', '!':
			return sink.Paint(line, false)
		}
		return line
	})
}
