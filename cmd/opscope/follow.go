package main

import (
	"github.com/spf13/cobra"
)

func newFollow(s streams) *cobra.Command {
	o := decodeOptions{sides: true}
	c := &cobra.Command{
		Use:   "follow [flags] SESSION FILE...",
		Short: "Print what one session says, its two sides apart",
		Long: `follow prints the records of one session in their order, over all its connections and
datagrams, with what the server says further right. SESSION is the number that decode
shows behind the time; it comes before the files, and each file counts its sessions from
1. What got lost and was sent again says so as in decode.

A record is a line; -v gives each field one, -x shows the bytes.`,
		Example: `  opscope follow 1 pcaps/wulfram/lossy.pcapng
  opscope follow -v 2 pcaps/mmo/nat.pcapng
  opscope follow -x 1 pcaps/netrek/tcp.pcapng
  opscope follow -T json 1 pcaps/wulfram/play.pcapng pcaps/wulfram/lossy.pcapng | jq .message`,
		RunE: func(c *cobra.Command, args []string) error {
			o.holdSet = c.Flags().Changed("hold")
			session, files, err := sessionAndFiles("follow", args, o.read)
			if err != nil {
				return err
			}
			d, err := newDecoding(s, &o)
			if err != nil {
				return err
			}
			return d.session(c.Context(), session, d.inputs(files))
		},
	}
	f := c.Flags()
	f.SortFlags = false
	inputFlags(f, &o)
	f.StringVarP(&o.format, "format", "T", "text", "output `FORMAT`: text or json (NDJSON, an object a line)")
	recordFlags(f, &o)
	detailFlags(f, &o)
	f.BoolVar(&o.raw, "raw", false, "with -T json: the bytes of each record as \"raw\"")
	outputFlags(f, &o)
	completeFlags(c)
	return c
}
