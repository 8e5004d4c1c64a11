package main

import (
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"opscope/cmd/refserver/internal/load"
)

// loadOptions are what `refserver record load` was asked for.
type loadOptions struct {
	load.Options
	output string
	bytes  string
}

func newLoad(s streams) *cobra.Command {
	var o loadOptions
	c := &cobra.Command{
		Use:   "load --protocol PROTOCOL -o FILE",
		Short: "Write a large capture of many sessions, and what it holds",
		Long: `load plays a few sessions and writes a capture of many: one after the other, each
between other hosts, as many flows at a time as are asked for. One in a hundred of the
segments and datagrams is overtaken by the next one of its flow, one in a hundred comes
twice. The same options make the same bytes, in constant memory.

A line of JSON says what the capture holds: the records by their messages, each as often
as it is there as a whole. It goes to standard output, or to standard error where
that has the capture.`,
		Example: `  refserver record load --protocol wulfram --bytes 100MB --flows 200 --seed 1 -o load.pcapng
  refserver record load --protocol netrek --bytes 20MB --lost 0.001 -o - | opscope decode -q -
  refserver record load --protocol wulfram --enveloped --bytes 20MB -o enveloped.pcapng`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return writeLoad(s, &o) },
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVarP(&o.output, "output", "o", "", "write the capture to this `FILE`, - is standard output")
	f.StringVar(&o.Protocol, "protocol", "", "the `PROTOCOL` that is played")
	f.StringVar(&o.bytes, "bytes", "1MB", "about how `LARGE` the file is, as 500kB, 100MB or 4GB")
	f.BoolVar(&o.Enveloped, "enveloped", false, "of wulfram: each record by UDP in an envelope of five bytes, some three records to a packet, half of the packets datagrams")
	f.IntVar(&o.Flows, "flows", 200, "about so many `FLOWS` at a time")
	f.Uint64Var(&o.Seed, "seed", 1, "the `NUMBER` that everything random is drawn from")
	f.Float64Var(&o.Lost, "lost", 0, "the `PART` of the segments and datagrams that the capture misses, as 0.001; none at the start of a session")
	return c
}

// sizes are the units of --bytes.
var sizes = []struct {
	unit  string
	bytes int64
}{{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"", 1}}

// parseSize reads a number of bytes.
func parseSize(word string) (int64, bool) {
	for _, s := range sizes {
		if digits, ok := strings.CutSuffix(word, s.unit); ok {
			n, err := strconv.ParseInt(digits, 10, 32)
			return n * s.bytes, err == nil && n > 0
		}
	}
	return 0, false
}

// writeLoad writes the capture, then the truth.
func writeLoad(s streams, o *loadOptions) error {
	var ok bool
	if o.Bytes, ok = parseSize(o.bytes); !ok {
		return usage("--bytes %q is no size\ntry: --bytes 100MB", o.bytes)
	}
	switch {
	case o.output == "":
		return usage("no file to write\ntry: refserver record load --protocol wulfram -o FILE")
	case o.Protocol == "":
		return usage("no protocol\ntry: --protocol wulfram, netrek, lotr2 or mmo")
	case o.Enveloped && o.Protocol != "wulfram":
		return usage("--enveloped is about wulfram, not %s\ntry: --protocol wulfram", o.Protocol)
	case o.Flows < 1:
		return usage("--flows %d: want at least 1", o.Flows)
	case o.Lost < 0 || o.Lost > 1:
		return usage("--lost %v: want a part between 0 and 1", o.Lost)
	}
	var truth *load.Truth
	err := writeFile(s, o.output, func(w io.Writer) (err error) {
		truth, err = load.Write(w, o.Options)
		return err
	})
	if err != nil {
		return err
	}
	line, err := json.Marshal(truth)
	if err != nil {
		return err
	}
	out := s.out
	if o.output == "-" {
		out = s.err
	}
	_, err = out.Write(append(line, '\n'))
	return fileError(err)
}
