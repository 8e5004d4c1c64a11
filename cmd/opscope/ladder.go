package main

import (
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"opscope/dissect/sink"
)

func newLadder(s streams) *cobra.Command {
	o := sessionOptions{decodeOptions: decodeOptions{format: "text"}}
	var ascii bool
	c := &cobra.Command{
		Use:   "ladder [flags] SESSION FILE...",
		Short: "Draw one session as a sequence diagram",
		Long: `ladder draws the records of one session as a sequence diagram in plain text: a column
for each host, an arrow for each record. SESSION is the number that decode shows behind
the time; it comes before the files, and each file counts its sessions from 1.

  ─────►  a record                    ═════►  one that was sent before
  ┄┄┄┄┄►  an acknowledgement          ───✗    one that was never acknowledged
  ~~~✗    bytes not captured          ┄ sequence 2 not seen ┄✗      as it says

The rails at the left join a record to its acknowledgement, which both name the packet
of the other one. A message that its sender sends several times by design is one arrow,
with "copies: 3".

With -i it draws a session as it goes on, the first that is heard of unless another is
named: each arrow once it is known whether it was acknowledged, at most --hold later.`,
		Example: `  opscope ladder 1 pcaps/wulfram/lossy.pcapng
  opscope ladder --ascii -t r 1 pcaps/lotr2/three.pcapng
  opscope ladder --width 80 2 pcaps/mmo/nat.pcapng
  opscope ladder -i eth0 --port 2627`,
		RunE: func(c *cobra.Command, args []string) error {
			return o.show(c, s, args, func(d *decoding) error {
				text, err := d.textOptions()
				d.writeTo(sink.NewLadder(s.out, sink.LadderOptions{TextOptions: text, ASCII: ascii || !showsUTF8(s.out)}))
				return err
			})
		},
	}
	f := c.Flags()
	f.SortFlags = false
	inputFlags(f, &o.decodeOptions)
	o.liveOptions.flags(f)
	recordFlags(f, &o.decodeOptions)
	f.BoolVar(&ascii, "ascii", false, "draw with ASCII, and show other characters as ?; also on a terminal whose locale is not UTF-8")
	outputFlags(f, &o.decodeOptions)
	completeFlags(c)
	return c
}

// showsUTF8 reports whether out shows UTF-8, as far as the locale of a terminal says. What
// is written elsewhere does not depend on it.
func showsUTF8(out io.Writer) bool {
	if !isTerminal(out) {
		return true
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := os.Getenv(name); locale != "" {
			locale = strings.ToUpper(locale)
			return strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8")
		}
	}
	return false
}
