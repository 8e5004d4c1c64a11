package main

import (
	"github.com/spf13/cobra"

	"opscope/dissect"
	"opscope/dissect/sink"
)

func newNotes(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "notes",
		Short: "List the codes of notes that records may carry, with what they mean",
		Args:  argsBetween(0, 0),
		RunE: func(*cobra.Command, []string) error {
			rows := make([][]string, 0, len(dissect.NoteCodes))
			for _, n := range dissect.NoteCodes {
				rows = append(rows, []string{n.Code, n.Severity.String(), n.Text})
			}
			return sink.WriteTable(s.out, []string{"code", "severity", "meaning"}, rows)
		},
	}
}
