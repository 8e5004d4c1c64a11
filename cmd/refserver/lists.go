package main

import (
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"opscope/cmd/refserver/internal/misbehave"
	"opscope/cmd/refserver/internal/scenario"
)

func newScenarios(s streams) *cobra.Command {
	return newList(s, "scenarios", "List the scenarios that can be recorded", func(row func(...string)) {
		for _, x := range scenario.All {
			row(x.Name, x.Protocol, x.Doc)
		}
		for _, draw := range scenario.Drawn {
			x := draw(1)
			row(x.Name, x.Protocol, x.Doc)
		}
	})
}

func newMisbehaviours(s streams) *cobra.Command {
	const short = "List the rules that --misbehave breaks, how, and in which scenario nothing else is broken"
	return newList(s, "misbehaviours", short, func(row func(...string)) {
		for i := range misbehave.All {
			m := &misbehave.All[i]
			row(m.Protocol, m.Rule, m.Scenario, m.Doc)
		}
	})
}

// newList makes a command that prints a table.
func newList(s streams, name, short string, rows func(row func(cells ...string))) *cobra.Command {
	return &cobra.Command{
		Use:     name,
		Short:   short,
		Example: "  refserver " + name,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			var text strings.Builder
			rows(func(cells ...string) { text.WriteString(strings.Join(cells, "\t") + "\n") })
			w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
			if _, err := io.WriteString(w, text.String()); err != nil {
				return err
			}
			return w.Flush()
		},
	}
}
