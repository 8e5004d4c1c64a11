package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"opscope/cmd/refserver/internal/scenario"
)

func newScenarios(s streams) *cobra.Command {
	return &cobra.Command{
		Use:     "scenarios",
		Short:   "List the scenarios that can be recorded",
		Example: "  refserver scenarios",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
			for _, x := range scenario.All {
				fmt.Fprintf(w, "%s\t%s\t%s\n", x.Name, x.Protocol, x.Doc)
			}
			for _, draw := range scenario.Drawn {
				x := draw(1)
				fmt.Fprintf(w, "%s\t%s\t%s\n", x.Name, x.Protocol, x.Doc)
			}
			return w.Flush()
		},
	}
}
