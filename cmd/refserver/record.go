package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"opscope/cmd/refserver/internal/misbehave"
	"opscope/cmd/refserver/internal/scenario"
)

// recordOptions are what `refserver record` was asked for.
type recordOptions struct {
	output string
	log    string
	seed   uint64
	world  uint64 // 0 for the seed
	breaks string // a rule
}

func newRecord(s streams) *cobra.Command {
	var o recordOptions
	c := &cobra.Command{
		Use:   "record SCENARIO -o FILE",
		Short: "Play a scenario in memory and write its capture",
		Long: `record plays a scenario over a network in memory and writes what passes its tape as
pcapng. The same scenario and seed make the same bytes.

--log writes what is true of every record, as NDJSON: which packets carry it,
whether the capture has it whole, whether it arrived, who acknowledged it where. It
also tells every fault, those of the network apart from those of the capture.

--misbehave has the server, a client or the capture break one rule of those that
opscope verify --rules lists; refserver misbehaviours lists how, and the scenario in
which nothing else is broken.`,
		Example: `  refserver record login -o login.pcapng
  refserver record lossy -o - --seed 7 | opscope decode -
  refserver record mmo-inventory --world 1 --seed 7 -o again.pcapng
  refserver record login --misbehave window -o window.pcapng
  refserver record tcp-trouble -o trouble.pcapng --log trouble.ndjson`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return scenarioNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error { return record(s, args[0], &o) },
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVarP(&o.output, "output", "o", "", "write the capture to this `FILE`, - is standard output")
	f.Uint64Var(&o.seed, "seed", 1, "the `NUMBER` that everything random is drawn from")
	f.Uint64Var(&o.world, "world", 0, "draw what servers and clients do, and how long packets take, from this `NUMBER`, so that --seed changes faults and initial sequence numbers alone; 0 is the seed")
	f.StringVar(&o.breaks, "misbehave", "", "break this `RULE` of the protocol")
	f.StringVar(&o.log, "log", "", "write the truth about each record to this `FILE`, - is standard output")
	c.AddCommand(newLoad(s))
	return c
}

func scenarioNames() []string {
	var names []string
	for _, s := range scenario.All {
		names = append(names, s.Name)
	}
	for _, draw := range scenario.Drawn {
		names = append(names, draw(1).Name)
	}
	return names
}

// scenarioNamed returns the scenario with a name, one that is drawn from a seed
// among them.
func scenarioNamed(name string, seed uint64) (scenario.Scenario, bool) {
	for _, draw := range scenario.Drawn {
		if s := draw(seed); s.Name == name {
			return s, true
		}
	}
	return scenario.Find(name)
}

// record plays a scenario.
func record(s streams, name string, o *recordOptions) error {
	if o.output == "" {
		return usage("no file to write\ntry: refserver record %s -o FILE", name)
	}
	if o.output == "-" && o.log == "-" {
		return usage("the capture and the log cannot both go to standard output")
	}
	play, ok := scenarioNamed(name, o.seed)
	if !ok {
		return usage("unknown scenario %q\ntry: refserver scenarios", name)
	}
	play = play.InWorld(o.world)
	if o.breaks != "" {
		how, err := misbehave.Find(play.Protocol, o.breaks)
		if err != nil {
			return usage("--misbehave: %w", err)
		}
		play = play.Breaking(how)
	}
	var result *scenario.Result
	err := writeFile(s, o.output, func(w io.Writer) (err error) {
		result, err = play.Run(w, o.seed)
		return err
	})
	if err != nil || o.log == "" {
		return err
	}
	return writeFile(s, o.log, result.WriteLog)
}

// writeFile has a file written, or standard output.
func writeFile(s streams, name string, write func(io.Writer) error) error {
	if name == "-" {
		w := bufio.NewWriter(s.out)
		return fileError(errors.Join(write(w), w.Flush()))
	}
	f, err := os.Create(name)
	if err != nil {
		return fileError(err)
	}
	w := bufio.NewWriter(f)
	if err := errors.Join(write(w), w.Flush(), f.Close()); err != nil {
		return fileError(fmt.Errorf("%s: %w", name, err))
	}
	return nil
}

func fileError(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitFile, err}
}
