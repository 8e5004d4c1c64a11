package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/netrek"
	"opscope/cmd/refserver/internal/wulfram"
)

func newServe(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "serve PROTOCOL",
		Short: "Serve a protocol on real sockets",
		Long: `serve listens for the clients of a protocol, until it is interrupted or --duration is
over.`,
		Args: oneOf,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newServeWulfram(s), newServeNetrek(s))
	return c
}

// oneOf refuses arguments of a command that only has subcommands.
func oneOf(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("unknown protocol %q for %s\ntry: %s --help", args[0], c.CommandPath(), c.CommandPath())
	}
	return nil
}

// serveOptions are what every `refserver serve` may be asked for.
type serveOptions struct {
	listen   string
	log      string
	seed     uint64
	duration time.Duration
}

func (o *serveOptions) flags(c *cobra.Command, listen string) {
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.listen, "listen", listen, "listen on this `ADDR`, a host and a port for TCP and UDP")
	f.StringVar(&o.log, "log", "", "write what is sent and received to this `FILE` as NDJSON, - is standard output")
	f.Uint64Var(&o.seed, "seed", 0, "the `NUMBER` that everything random is drawn from, session keys too; without it one that nobody can guess")
	f.DurationVar(&o.duration, "duration", 0, "stop after this `TIME`; 0 is never")
}

// draw takes a seed that nobody can guess where none is given: the keys that tie
// datagrams to sessions come from it.
func (o *serveOptions) draw(c *cobra.Command) {
	if c.Flags().Changed("seed") {
		return
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	o.seed = binary.NativeEndian.Uint64(b[:])
}

func newServeWulfram(s streams) *cobra.Command {
	var o serveOptions
	var handshake string
	c := &cobra.Command{
		Use:   "wulfram",
		Short: "Serve Wulfram II",
		Example: `  refserver serve wulfram --listen 127.0.0.1:2627
  refserver serve wulfram --handshake game-data --log server.ndjson --duration 1m`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.draw(c)
			style, err := wulfram.ParseHandshake(handshake)
			if err != nil {
				return usage("%w", err)
			}
			return serve(c.Context(), s, "wulfram", &o, func(addr netip.AddrPort, obs machine.Observer) machine.Machine {
				return wulfram.NewServer(wulfram.ServerConfig{Addr: addr, Seed: o.seed, Handshake: style}, obs)
			})
		},
	}
	o.flags(c, "127.0.0.1:2627")
	c.Flags().StringVar(&handshake, "handshake", "policy", "stream modes to advertise, in the `STYLE` policy, original or game-data")
	return c
}

func newServeNetrek(s streams) *cobra.Command {
	var o serveOptions
	var slots int
	var noUDP bool
	var discovery string
	c := &cobra.Command{
		Use:   "netrek",
		Short: "Serve Netrek",
		Example: `  refserver serve netrek --listen 127.0.0.1:2592
  refserver serve netrek --discovery 0.0.0.0:3521 --log server.ndjson
  refserver serve netrek --slots 1 --no-udp --duration 1m`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if slots < 1 || slots > netrek.MaxSlots {
				return usage("--slots %d: want 1 to %d", slots, netrek.MaxSlots)
			}
			board := &netrek.Board{}
			var beside []annex
			if discovery != "" {
				addr, err := addressOf("--discovery", discovery)
				if err != nil {
					return err
				}
				beside = append(beside, annex{"discovery", addr, func(_ netip.AddrPort, obs machine.Observer) machine.Machine {
					return netrek.NewDirectory(netrek.DirectoryConfig{Board: board}, obs)
				}})
			}
			return serve(c.Context(), s, "netrek", &o, func(_ netip.AddrPort, obs machine.Observer) machine.Machine {
				return netrek.NewServer(netrek.ServerConfig{Seed: o.seed, Slots: slots, NoUDP: noUDP, Board: board}, obs)
			}, beside...)
		},
	}
	o.flags(c, "127.0.0.1:2592")
	f := c.Flags()
	f.IntVar(&slots, "slots", netrek.MaxSlots, "let `N` play at once, and others wait")
	f.BoolVar(&noUDP, "no-udp", false, "refuse every request for UDP")
	f.StringVar(&discovery, "discovery", "", "answer queries for servers on this `ADDR`, a host and a UDP port, usually 3521")
	return c
}

// newServer makes a server that listens at an address.
type newServer func(netip.AddrPort, machine.Observer) machine.Machine

// annex is a machine with a UDP socket of its own that belongs to a server.
type annex struct {
	name  string
	addr  netip.AddrPort
	build newServer
}

// serve listens, and drives the server that build returns, with what belongs to it.
func serve(ctx context.Context, s streams, protocol string, o *serveOptions, build newServer, beside ...annex) error {
	addr, err := addressOf("--listen", o.listen)
	if err != nil {
		return err
	}
	j, err := openJournal(s, o.log)
	if err != nil {
		return err
	}
	h := host{log: j.peer("server", protocol, true)}
	if addr, err = h.listen(addr); err != nil {
		return errors.Join(&exitError{exitSocket, err}, j.Close())
	}
	h.log.Addr = addr
	h.machine = build(addr, h.log)
	others := make([]host, len(beside))
	for i, a := range beside {
		x := &others[i]
		x.log = j.peer(a.name, protocol, true)
		if err := x.listenUDP(a.addr); err != nil {
			h.release()
			return errors.Join(&exitError{exitSocket, err}, j.Close())
		}
		x.log.Addr = x.local
		x.machine = a.build(x.local, x.log)
		fmt.Fprintf(s.err, "%s on %v, UDP\n", a.name, x.local)
	}
	fmt.Fprintf(s.err, "listening on %v, TCP and UDP\n", addr)
	if o.duration > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for i := range others {
		all.Go(func() { _ = others[i].run(ctx) }) // without a listener it ends with the context only
	}
	err = h.run(ctx)
	stop()
	all.Wait()
	if err != nil {
		err = &exitError{exitSocket, err}
	}
	return errors.Join(err, j.Close())
}

// addressOf returns the address that a flag names. A name is looked up.
func addressOf(flag, text string) (netip.AddrPort, error) {
	a, err := net.ResolveTCPAddr("tcp", text)
	if err != nil || a.IP == nil {
		return netip.AddrPort{}, usage("%s %s: want a host and a port, such as 127.0.0.1:2627", flag, text)
	}
	return addrOf(a), nil
}
