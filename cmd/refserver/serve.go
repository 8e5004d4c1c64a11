package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"opscope/cmd/refserver/internal/machine"
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
	c.AddCommand(newServeWulfram(s))
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

// newServer makes a server that listens at an address.
type newServer func(netip.AddrPort, machine.Observer) machine.Machine

// serve listens, and drives the server that build returns.
func serve(ctx context.Context, s streams, protocol string, o *serveOptions, build newServer) error {
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
	fmt.Fprintf(s.err, "listening on %v, TCP and UDP\n", addr)
	if o.duration > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	if err = h.run(ctx); err != nil {
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
