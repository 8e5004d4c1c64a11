package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// newMan makes the command that writes the manual pages. Their date is fixed, so
// that the same build writes the same pages.
func newMan(root *cobra.Command, s streams) *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages, one for each command",
		Example: "  opscope man ./man && man ./man/opscope-decode.1",
		Args:    argsBetween(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return &exitError{exitInput, err}
			}
			date := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
			root.DisableAutoGenTag = true
			showDefaults(root)
			if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "opscope", Date: &date}, args[0]); err != nil {
				return &exitError{exitInput, err}
			}
			return nil
		},
	}
}

// showDefaults has the pages show the default of a flag that may be repeated, as they do
// of any other.
func showDefaults(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if _, ok := f.Value.(repeated); ok {
			f.DefValue = "[]"
		}
	})
	for _, sub := range c.Commands() {
		showDefaults(sub)
	}
}
