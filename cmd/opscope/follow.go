package main

import (
	"github.com/spf13/cobra"
)

func newFollow(s streams) *cobra.Command {
	o := sessionOptions{decodeOptions: decodeOptions{sides: true}}
	c := &cobra.Command{
		Use:   "follow [flags] SESSION FILE...",
		Short: "Print what one session says, its two sides apart",
		Long: `follow prints the records of one session in their order, over all its connections and
datagrams, with what the server says further right. SESSION is the number that decode
shows behind the time; it comes before the files, and each file counts its sessions from
1. What got lost and was sent again says so as in decode.

A record is a line; -v gives each field one, -x shows the bytes. With -i it follows a
session as it goes on: the first that is heard of is 1, which goes without saying.`,
		Example: `  opscope follow 1 pcaps/wulfram/lossy.pcapng
  opscope follow -v 2 pcaps/mmo/nat.pcapng
  opscope follow -x 1 pcaps/netrek/tcp.pcapng
  opscope follow -i eth0 --port 2627
  opscope follow -T json 1 pcaps/wulfram/play.pcapng pcaps/wulfram/lossy.pcapng | jq .message`,
		RunE: func(c *cobra.Command, args []string) error { return o.show(c, s, args, nil) },
	}
	f := c.Flags()
	f.SortFlags = false
	inputFlags(f, &o.decodeOptions)
	o.liveOptions.flags(f)
	f.StringVarP(&o.format, "format", "T", "text", "output `FORMAT`: text or json (NDJSON, an object a line)")
	recordFlags(f, &o.decodeOptions)
	detailFlags(f, &o.decodeOptions)
	f.BoolVar(&o.raw, "raw", false, "with -T json: the bytes of each record as \"raw\"")
	outputFlags(f, &o.decodeOptions)
	completeFlags(c)
	return c
}
