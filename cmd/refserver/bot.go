package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/mmo"
	"opscope/cmd/refserver/internal/netrek"
	"opscope/cmd/refserver/internal/wulfram"
)

func newBot(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "bot PROTOCOL",
		Short: "Play bots against a server, this one or somebody else's",
		Args:  oneOf,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newBotWulfram(s), newBotNetrek(s), newBotMMO(s))
	return c
}

// botOptions are what every `refserver bot` may be asked for.
type botOptions struct {
	connect  string
	name     string
	count    int
	log      string
	seed     uint64
	duration time.Duration
}

func (o *botOptions) flags(c *cobra.Command, connect string) {
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.connect, "connect", connect, "play against the server at this `ADDR`, a host and a port")
	f.StringVar(&o.name, "name", "Bot", "play under this `NAME`; several bots add a number to it")
	f.IntVar(&o.count, "count", 1, "play `N` bots at once")
	f.StringVar(&o.log, "log", "", "write what is sent and received to this `FILE` as NDJSON, - is standard output")
	f.Uint64Var(&o.seed, "seed", 1, "the `NUMBER` that everything random is drawn from")
	f.DurationVar(&o.duration, "duration", 0, "stop after this `TIME`; 0 is when the script is over")
}

func newBotWulfram(s streams) *cobra.Command {
	var o botOptions
	var script string
	c := &cobra.Command{
		Use:   "wulfram",
		Short: "Play Wulfram II",
		Example: `  refserver bot wulfram --connect 127.0.0.1:2627 --name Ada --script play
  refserver bot wulfram --count 4 --script ./attack.txt --log bots.ndjson`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			commands, err := scriptOf(script, wulfram.BuiltinScript, wulfram.ParseScript)
			if err != nil {
				return err
			}
			return playBots(c.Context(), s, "wulfram", &o, func(name string, i int, e ends, obs machine.Observer) machine.Machine {
				return wulfram.NewBot(wulfram.BotConfig{Name: name, Server: e.server, Script: commands, Seed: o.seed + uint64(i)}, obs)
			})
		},
	}
	o.flags(c, "127.0.0.1:2627")
	c.Flags().StringVar(&script, "script", "play", "what to do: a `FILE` with a command a line, or the name of a built-in script")
	return c
}

func newBotNetrek(s streams) *cobra.Command {
	var o botOptions
	var script string
	c := &cobra.Command{
		Use:   "netrek",
		Short: "Play Netrek",
		Example: `  refserver bot netrek --connect 127.0.0.1:2592 --name Ada --script play
  refserver bot netrek --count 2 --script duel --log bots.ndjson`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			commands, err := scriptOf(script, netrek.BuiltinScript, netrek.ParseScript)
			if err != nil {
				return err
			}
			return playBots(c.Context(), s, "netrek", &o, func(name string, i int, e ends, obs machine.Observer) machine.Machine {
				return netrek.NewBot(netrek.BotConfig{Name: name, Server: e.server, Local: e.local, Script: commands, Seed: o.seed + uint64(i)}, obs)
			})
		},
	}
	o.flags(c, "127.0.0.1:2592")
	c.Flags().StringVar(&script, "script", "play", "what to do: a `FILE` with a command a line, or the name of a built-in script")
	return c
}

func newBotMMO(s streams) *cobra.Command {
	var o botOptions
	var script, config string
	c := &cobra.Command{
		Use:   "mmo",
		Short: "Play the MMO",
		Long: `mmo plays against the server that serve mmo runs: another one does not know the
tokens that the bots make for themselves.`,
		Example: `  refserver bot mmo --connect 127.0.0.1:7777 --name Ada --script play
  refserver bot mmo --count 30 --script walk --log bots.ndjson`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			settings, err := settingsOf(config)
			if err != nil {
				return err
			}
			commands, err := scriptOf(script, mmo.BuiltinScript, mmo.ParseScript)
			if err != nil {
				return err
			}
			if !c.Flags().Changed("connect") {
				o.connect = fmt.Sprint("127.0.0.1:", settings.TCPPort)
			}
			return playBots(c.Context(), s, "mmo", &o, func(name string, i int, e ends, obs machine.Observer) machine.Machine {
				return mmo.NewBot(mmo.BotConfig{Name: name, Server: e.server, Script: commands, Seed: o.seed + uint64(i), Settings: settings}, obs)
			})
		},
	}
	o.flags(c, "127.0.0.1:7777")
	f := c.Flags()
	f.StringVar(&script, "script", "play", "what to do: a `FILE` with a command a line, or the name of a built-in script")
	f.StringVar(&config, "config", "", "the choices in this `FILE`, in YAML, over those of server.yaml")
	return c
}

// scriptOf returns a built-in script, or reads one. A name is one of a file where
// there is one.
func scriptOf[Command any](name string, builtin, parse func(string) ([]Command, error)) ([]Command, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		commands, err := builtin(name)
		if err != nil {
			return nil, usage("--script %s: neither a file nor built in: %w", name, err)
		}
		return commands, nil
	}
	if err != nil {
		return nil, fileError(err)
	}
	commands, err := parse(string(text))
	if err != nil {
		return nil, usage("%s: %w", name, err)
	}
	return commands, nil
}

// ends is where a bot is, with its datagrams, and where its server is.
type ends struct{ local, server netip.AddrPort }

// newClient makes the i-th bot, with its name.
type newClient func(name string, i int, e ends, obs machine.Observer) machine.Machine

// playBots plays the bots that build returns, until all of them are done.
func playBots(ctx context.Context, s streams, protocol string, o *botOptions, build newClient) error {
	server, err := addressOf("--connect", o.connect)
	if err != nil {
		return err
	}
	if o.count < 1 {
		return usage("--count %d: want at least 1", o.count)
	}
	if o.duration > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	j, err := openJournal(s, o.log)
	if err != nil {
		return err
	}
	failures := make([]error, o.count)
	var all sync.WaitGroup
	for i := range o.count {
		name := o.name
		if o.count > 1 {
			name = fmt.Sprintf("%s%d", o.name, i+1)
		}
		h := host{log: j.peer(name, protocol, false)}
		if failures[i] = h.open(server); failures[i] != nil {
			continue
		}
		h.log.Addr = h.local
		h.machine = build(name, i, ends{h.local, server}, h.log)
		all.Go(func() { failures[i] = h.run(ctx) })
	}
	all.Wait()
	for _, err := range failures { // one of them is enough
		if err != nil {
			return errors.Join(&exitError{exitSocket, err}, j.Close())
		}
	}
	return j.Close()
}
