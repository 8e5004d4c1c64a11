package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"opscope/cmd/refserver/internal/misbehave"
)

func newMisbehaviours(s streams) *cobra.Command {
	return &cobra.Command{
		Use:     "misbehaviours",
		Short:   "List the rules that --misbehave breaks, how, and in which scenario nothing else is broken",
		Example: "  refserver misbehaviours",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
			for i := range misbehave.All {
				m := &misbehave.All[i]
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", m.Protocol, m.Rule, m.Scenario, m.Doc)
			}
			return w.Flush()
		},
	}
}
