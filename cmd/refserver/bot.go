package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"opscope/cmd/refserver/internal/lotr2"
	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/mmo"
	"opscope/cmd/refserver/internal/netrek"
	"opscope/cmd/refserver/internal/script"
	"opscope/cmd/refserver/internal/wulfram"
	"opscope/schema"
)

func newBot(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "bot PROTOCOL",
		Short: "Play bots against a server, this one or somebody else's",
		Args:  oneOf,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newBotWulfram(s), newBotNetrek(s), newBotLOTR2(s), newBotMMO(s))
	return c
}

// botOptions are what every `refserver bot` may be asked for.
type botOptions struct {
	runOptions
	connect string
	name    string
	count   int
}

func (o *botOptions) flags(c *cobra.Command, connect string) {
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.connect, "connect", connect, "play against the server at this `ADDR`, a host and a port")
	f.StringVar(&o.name, "name", "Bot", "play under this `NAME`; several bots add a number to it")
	f.IntVar(&o.count, "count", 1, "play `N` bots at once")
	o.runOptions.flags(f, 1, "", "when the script is over")
}

func newBotWulfram(s streams) *cobra.Command {
	var o botOptions
	var text string
	c := &cobra.Command{
		Use:   "wulfram",
		Short: "Play Wulfram II",
		Example: `  refserver bot wulfram --connect 127.0.0.1:2627 --name Ada --script play
  refserver bot wulfram --count 4 --script ./attack.txt --log bots.ndjson`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			commands, err := scriptOf(text, wulfram.Scripts)
			if err != nil {
				return err
			}
			return playBots(c.Context(), s, "wulfram", &o, openBot, func(name string, i int, server netip.AddrPort, h *host) machine.Machine {
				return wulfram.NewBot(wulfram.BotConfig{Name: name, Server: server, Script: commands, Seed: o.seed + uint64(i)}, h.log)
			})
		},
	}
	o.flags(c, "127.0.0.1:2627")
	c.Flags().StringVar(&text, "script", "play", "what to do: a `FILE` with a command a line, or the name of a built-in script")
	return c
}

func newBotNetrek(s streams) *cobra.Command {
	var o botOptions
	var text string
	c := &cobra.Command{
		Use:   "netrek",
		Short: "Play Netrek",
		Example: `  refserver bot netrek --connect 127.0.0.1:2592 --name Ada --script play
  refserver bot netrek --count 2 --script duel --log bots.ndjson`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			commands, err := scriptOf(text, netrek.Scripts)
			if err != nil {
				return err
			}
			return playBots(c.Context(), s, "netrek", &o, openBot, func(name string, i int, server netip.AddrPort, h *host) machine.Machine {
				return netrek.NewBot(netrek.BotConfig{Name: name, Server: server, Local: h.local, Script: commands, Seed: o.seed + uint64(i)}, h.log)
			})
		},
	}
	o.flags(c, "127.0.0.1:2592")
	c.Flags().StringVar(&text, "script", "play", "what to do: a `FILE` with a command a line, or the name of a built-in script")
	return c
}

func newBotMMO(s streams) *cobra.Command {
	var o botOptions
	var text, config string
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
			commands, err := scriptOf(text, mmo.Scripts)
			if err != nil {
				return err
			}
			if !c.Flags().Changed("connect") {
				o.connect = fmt.Sprint("127.0.0.1:", settings.TCPPort)
			}
			return playBots(c.Context(), s, "mmo", &o, openBot, func(name string, i int, server netip.AddrPort, h *host) machine.Machine {
				return mmo.NewBot(mmo.BotConfig{Name: name, Server: server, Script: commands, Seed: o.seed + uint64(i), Settings: settings}, h.log)
			})
		},
	}
	o.flags(c, "127.0.0.1:7777")
	f := c.Flags()
	f.StringVar(&text, "script", "play", "what to do: a `FILE` with a command a line, or the name of a built-in script")
	f.StringVar(&config, "config", "", "the choices in this `FILE`, in YAML, over those of server.yaml")
	return c
}

// scriptOf returns a built-in script of a book, or reads one. A name is one of a file
// where there is one.
func scriptOf(name string, book *script.Book) ([]script.Command, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		commands, err := book.Builtin(name)
		if err != nil {
			return nil, usage("--script %s: neither a file nor built in: %w", name, err)
		}
		return commands, nil
	}
	if err != nil {
		return nil, fileError(err)
	}
	commands, err := book.Parse(string(text))
	if err != nil {
		return nil, usage("%s: %w", name, err)
	}
	return commands, nil
}

func newBotLOTR2(s streams) *cobra.Command {
	var o botOptions
	var listen, text string
	c := &cobra.Command{
		Use:   "lotr2",
		Short: "Join Lords of the Realm II",
		Long: `lotr2 looks for a session of Lords of the Realm II, of one host or by broadcast, and
joins it. The host dials the bot, so it listens as well; several bots listen at addresses
that follow each other.`,
		Example: `  refserver bot lotr2 --connect 127.0.0.1:47624 --listen 127.0.0.2:2300 --name Ada --script campaign
  refserver bot lotr2 --connect 255.255.255.255:47624 --listen 192.168.1.6:2300`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			commands, err := scriptOf(text, lotr2.JoinerScripts)
			if err != nil {
				return err
			}
			first, err := addressOf("--listen", listen)
			if err != nil {
				return err
			}
			open := func(h *host, i int, _ netip.AddrPort) error {
				at := first
				for range i {
					at = netip.AddrPortFrom(at.Addr().Next(), at.Port())
				}
				return h.settle(at, datagramsOf(at), netip.AddrPortFrom(at.Addr(), 0))
			}
			return playBots(c.Context(), s, "lotr2", &o, open, func(name string, i int, look netip.AddrPort, h *host) machine.Machine {
				return lotr2.NewJoiner(lotr2.JoinerConfig{
					Config: lotr2.Config{
						Name: name, Place: lotr2.Place{Streams: h.addr, Datagrams: h.local}, Script: commands, Seed: o.seed + uint64(i),
					},
					Look: look, From: addrOf(h.udp[1].LocalAddr()).Port(),
				}, h.log)
			})
		},
	}
	o.flags(c, "127.0.0.1:47624")
	c.Flags().StringVar(&listen, "listen", "127.0.0.2:2300", "listen on this `ADDR`, a host and a port for TCP")
	c.Flags().StringVar(&text, "script", "campaign", "what to do: a `FILE` with a command a line, or the name of a built-in script")
	return c
}

// newClient makes the i-th bot, with its name, for the sockets of a host.
type newClient func(name string, i int, server netip.AddrPort, h *host) machine.Machine

// openBot opens the socket of a bot that dials a server.
func openBot(h *host, _ int, server netip.AddrPort) error { return h.open(server) }

// playBots plays the bots that build returns, until all of them are done.
func playBots(
	ctx context.Context, s streams, protocol string, o *botOptions, open func(h *host, i int, server netip.AddrPort) error, build newClient,
) error {
	server, err := addressOf("--connect", o.connect)
	if err != nil {
		return err
	}
	if o.count < 1 {
		return usage("--count %d: want at least 1", o.count)
	}
	how, err := breaking(protocol, o.breaks, schema.Client)
	if err != nil {
		return err
	}
	ctx, stop := o.within(ctx)
	defer stop()
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
		h := host{log: j.peer(name, protocol, schema.Client)}
		if failures[i] = open(&h, i, server); failures[i] != nil {
			continue
		}
		if h.log.Addr = h.local; h.tcp != nil {
			h.log.Addr = h.addr
		}
		h.machine = how.Wrap(build(name, i, server, &h), schema.Client)
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
