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
	"github.com/spf13/pflag"

	"opscope/cmd/refserver/internal/lotr2"
	"opscope/cmd/refserver/internal/machine"
	"opscope/cmd/refserver/internal/misbehave"
	"opscope/cmd/refserver/internal/mmo"
	"opscope/cmd/refserver/internal/mmo/testserver"
	"opscope/cmd/refserver/internal/netrek"
	"opscope/cmd/refserver/internal/wulfram"
	"opscope/schema"
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
	c.AddCommand(newServeWulfram(s), newServeNetrek(s), newServeLOTR2(s), newServeMMO(s))
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
	runOptions
	listen string
}

func (o *serveOptions) flags(c *cobra.Command, listen string) {
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.listen, "listen", listen, "listen on this `ADDR`, a host and a port for TCP and UDP")
	o.runOptions.flags(f, 0, ", session keys too; without it one that nobody can guess", "never")
	c.PreRun = func(*cobra.Command, []string) { o.draw(c) }
}

// runOptions are what servers and bots both may be asked for.
type runOptions struct {
	log      string
	seed     uint64
	duration time.Duration
	breaks   string // a rule
}

// flags adds the flags. Drawn is said of the seed, over of a duration of 0.
func (o *runOptions) flags(f *pflag.FlagSet, seed uint64, drawn, over string) {
	f.StringVar(&o.log, "log", "", "write what is sent and received to this `FILE` as NDJSON, - is standard output")
	f.Uint64Var(&o.seed, "seed", seed, "the `NUMBER` that everything random is drawn from"+drawn)
	f.DurationVar(&o.duration, "duration", 0, "stop after this `TIME`; 0 is "+over)
	f.StringVar(&o.breaks, "misbehave", "", "break this `RULE` of the protocol, of those that refserver misbehaviours lists")
}

// within returns a context that ends with the duration, if there is one.
func (o *runOptions) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.duration <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, o.duration)
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
			style, err := wulfram.ParseHandshake(handshake)
			if err != nil {
				return usage("%w", err)
			}
			return serve(c.Context(), s, "wulfram", &o, (*host).listen, func(h *host) machine.Machine {
				return wulfram.NewServer(wulfram.ServerConfig{Addr: h.addr, Seed: o.seed, Handshake: style}, h.log)
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
				beside = append(beside, annex{"discovery", addr, func(h *host) machine.Machine {
					return netrek.NewDirectory(netrek.DirectoryConfig{Board: board}, h.log)
				}})
			}
			return serve(c.Context(), s, "netrek", &o, (*host).listen, func(h *host) machine.Machine {
				return netrek.NewServer(netrek.ServerConfig{Seed: o.seed, Slots: slots, NoUDP: noUDP, Board: board}, h.log)
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

// newServeLOTR2 is a host, and so a peer among peers.
func newServeLOTR2(s streams) *cobra.Command {
	var o serveOptions
	var name, discovery, commands string
	c := &cobra.Command{
		Use:   "lotr2",
		Short: "Host Lords of the Realm II",
		Long: `lotr2 hosts a session of Lords of the Realm II: whoever looks for one is dialled, may
join, and then dials back. When all have left, the script begins anew. A peer takes
datagrams at the port 50 above the one for connections. On one machine every peer wants
an address of its own.`,
		Example: `  refserver serve lotr2 --listen 127.0.0.1:2300 --discovery 127.0.0.1:47624
  refserver serve lotr2 --listen 192.168.1.5:2300 --discovery 0.0.0.0:47624 --script skirmish`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			script, err := scriptOf(commands, lotr2.HostScripts)
			if err != nil {
				return err
			}
			look, err := addressOf("--discovery", discovery)
			if err != nil {
				return err
			}
			open := func(h *host, addr netip.AddrPort) error { return h.settle(addr, datagramsOf(addr), look) }
			return serve(c.Context(), s, "lotr2", &o, open, func(h *host) machine.Machine {
				place := lotr2.Place{Streams: h.addr, Datagrams: h.local}
				return lotr2.NewHost(lotr2.HostConfig{Config: lotr2.Config{Name: name, Place: place, Script: script, Seed: o.seed}, Again: true}, h.log)
			})
		},
	}
	o.flags(c, "127.0.0.1:2300")
	f := c.Flags()
	f.StringVar(&name, "name", "Player1", "play under this `NAME`")
	f.StringVar(&discovery, "discovery", "127.0.0.1:47624", "take questions for sessions on this `ADDR`, a host and a UDP port")
	f.StringVar(&commands, "script", "campaign", "what to do: a `FILE` with a command a line, or the name of a built-in script")
	return c
}

// datagramsOf is where a peer of DirectPlay that listens at an address takes
// datagrams, as far from there as 2350 is from 2300.
func datagramsOf(streams netip.AddrPort) netip.AddrPort {
	port := streams.Port()
	if port != 0 {
		port += lotr2.DatagramPort - lotr2.StreamPort
	}
	return netip.AddrPortFrom(streams.Addr(), port)
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
			if !c.Flags().Changed("udp-port") {
				udpPort = int(settings.UDPPort)
			}
			open := (*host).listen
			if udpPort != 0 {
				open = func(h *host, addr netip.AddrPort) error {
					return h.settle(addr, netip.AddrPortFrom(addr.Addr(), uint16(udpPort)))
				}
			}
			return serve(c.Context(), s, "mmo", &o, open, func(h *host) machine.Machine {
				return mmo.NewServer(mmo.ServerConfig{
					Seed: o.seed, Settings: settings, UDPPort: h.local.Port(), Walkers: walkers, Development: development,
				}, h.log)
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

// newServer makes a server for the sockets of a host.
type newServer func(h *host) machine.Machine

// annex is a machine with a UDP socket of its own that belongs to a server.
type annex struct {
	name  string
	addr  netip.AddrPort
	build newServer
}

// serve opens the sockets, and drives the server that build returns, with what belongs to it.
func serve(
	ctx context.Context, s streams, protocol string, o *serveOptions, open func(*host, netip.AddrPort) error, build newServer, beside ...annex,
) error {
	addr, err := addressOf("--listen", o.listen)
	if err != nil {
		return err
	}
	how, err := breaking(protocol, o.breaks, schema.Server)
	if err != nil {
		return err
	}
	j, err := openJournal(s, o.log)
	if err != nil {
		return err
	}
	h := host{log: j.peer("server", protocol, schema.Server)}
	if err = open(&h, addr); err != nil {
		return errors.Join(&exitError{exitSocket, err}, j.Close())
	}
	h.log.Addr, h.log.Stream = h.local, h.addr
	h.machine = how.Wrap(build(&h), schema.Server)
	others := make([]host, len(beside))
	for i, a := range beside {
		x := &others[i]
		x.log = j.peer(a.name, protocol, schema.Server)
		if err := x.listenUDP(a.addr); err != nil {
			h.release()
			return errors.Join(&exitError{exitSocket, err}, j.Close())
		}
		x.log.Addr = x.local
		x.machine = a.build(x)
		fmt.Fprintf(s.err, "%s on %v, UDP\n", a.name, x.local)
	}
	fmt.Fprintf(s.err, "listening on %s\n", h.where())
	ctx, stop := o.within(ctx)
	defer stop()
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

// breaking returns how a side is to break a rule; nothing for none.
func breaking(protocol, rule string, side schema.Sender) (*misbehave.Misbehaviour, error) {
	if rule == "" {
		return nil, nil
	}
	how, err := misbehave.Find(protocol, rule)
	if err != nil {
		return nil, usage("--misbehave: %w", err)
	}
	if !how.Misbehaves(side) {
		return nil, usage("--misbehave %s: here nobody breaks it: %s\ntry: refserver record %s --misbehave %s", rule, how.Doc, how.Scenario, rule)
	}
	return how, nil
}

// addressOf returns the address that a flag names. A name is looked up.
func addressOf(flag, text string) (netip.AddrPort, error) {
	a, err := net.ResolveTCPAddr("tcp", text)
	if err != nil || a.IP == nil {
		return netip.AddrPort{}, usage("%s %s: want a host and a port, such as 127.0.0.1:2627", flag, text)
	}
	return addrOf(a), nil
}
