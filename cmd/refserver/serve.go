package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/mmo"
	"opscope/cmd/refserver/internal/mmo/testserver"
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
	c.AddCommand(newServeWulfram(s), newServeNetrek(s), newServeMMO(s))
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
	udpPort  uint16 // 0 for that of listen
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
			return serve(c.Context(), s, "netrek", &o, func(addr netip.AddrPort, obs machine.Observer) machine.Machine {
				return netrek.NewServer(netrek.ServerConfig{Addr: addr, Seed: o.seed, Slots: slots, NoUDP: noUDP, Board: board}, obs)
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

func newServeMMO(s streams) *cobra.Command {
	var o serveOptions
	var config string
	var udpPort, walkers int
	var development bool
	c := &cobra.Command{
		Use:   "mmo",
		Short: "Serve the MMO",
		Long: `mmo serves the MMO whose messages are Protocol Buffers. What is not known of it, such
as most bodies, is this server's own choice: --config takes another one for numbers,
and cmd/refserver/internal/mmo/testserver has what it chooses by itself.`,
		Example: `  refserver serve mmo --listen 127.0.0.1:7777
  refserver serve mmo --udp-port 9000 --walkers 40 --log server.ndjson
  refserver serve mmo --config my.yaml --duration 1m`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			settings, err := settingsOf(config)
			if err != nil {
				return err
			}
			if udpPort < 0 || udpPort > 0xffff {
				return usage("--udp-port %d: want 0 to 65535", udpPort)
			}
			if walkers < 0 || walkers > mmo.MaxWalkers {
				return usage("--walkers %d: want 0 to %d", walkers, mmo.MaxWalkers)
			}
			if !c.Flags().Changed("listen") {
				o.listen = fmt.Sprint("127.0.0.1:", settings.TCPPort)
			}
			o.udpPort = settings.UDPPort
			if c.Flags().Changed("udp-port") {
				o.udpPort = uint16(udpPort)
			}
			return serve(c.Context(), s, "mmo", &o, func(addr netip.AddrPort, obs machine.Observer) machine.Machine {
				told := o.udpPort
				if told == 0 {
					told = addr.Port()
				}
				return mmo.NewServer(mmo.ServerConfig{Seed: o.seed, Settings: settings, UDPPort: told, Walkers: walkers, Development: development}, obs)
			})
		},
	}
	o.flags(c, "127.0.0.1:7777")
	f := c.Flags()
	f.StringVar(&config, "config", "", "the choices in this `FILE`, in YAML, over those of server.yaml")
	f.IntVar(&udpPort, "udp-port", 0, "take datagrams on this `PORT`, as clients are told; 0 is the port of --listen (default that of the choices)")
	f.IntVar(&walkers, "walkers", 0, "put `N` characters without a client into the world")
	f.BoolVar(&development, "development", false, "tell of combat as a development build does")
	return c
}

// settingsOf reads the choices of the test server, or returns the usual ones.
func settingsOf(file string) (*testserver.Settings, error) {
	if file == "" {
		return testserver.Default(), nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fileError(err)
	}
	settings, err := testserver.Parse(text)
	if err != nil {
		return nil, usage("%s: %w", file, err)
	}
	return settings, nil
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
	h := host{log: j.peer("server", protocol, true), udpPort: o.udpPort}
	if addr, err = h.listen(addr); err != nil {
		return errors.Join(&exitError{exitSocket, err}, j.Close())
	}
	h.log.Addr, h.log.Stream = h.local, addr
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
	if h.local == addr {
		fmt.Fprintf(s.err, "listening on %v, TCP and UDP\n", addr)
	} else {
		fmt.Fprintf(s.err, "listening on %v, TCP, and %v, UDP\n", addr, h.local)
	}
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
