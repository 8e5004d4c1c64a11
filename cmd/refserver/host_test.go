package main

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"opscope/cmd/refserver/internal/machine"
)

// echo returns what it gets.
type echo struct{}

func (echo) Deadline() time.Time { return time.Time{} }

func (echo) Handle(_ time.Time, in machine.Input) []machine.Output {
	switch in.Kind {
	case machine.Stream:
		return []machine.Output{{Kind: machine.SendStream, Conn: in.Conn, Data: bytes.Clone(in.Data)}}
	case machine.Datagram:
		return []machine.Output{{Kind: machine.SendDatagram, Peer: in.Peer, Data: bytes.Clone(in.Data)}}
	}
	return nil
}

// caller dials, says hello over both transports, and is done when both have
// answered.
type caller struct {
	server   netip.AddrPort
	stream   string
	datagram string
	refused  bool
	started  bool
}

func (c *caller) Deadline() time.Time { return time.Time{} }

func (c *caller) Handle(_ time.Time, in machine.Input) []machine.Output {
	switch in.Kind {
	case machine.Tick:
		if !c.started {
			c.started = true
			return []machine.Output{{Kind: machine.Dial, Conn: 1, Peer: c.server}}
		}
	case machine.Refused:
		c.refused = true
		return []machine.Output{{Kind: machine.Done}}
	case machine.Opened:
		return []machine.Output{
			{Kind: machine.SendStream, Conn: 1, Data: []byte("hello")}, {Kind: machine.SendDatagram, Peer: c.server, Data: []byte("hello")},
		}
	case machine.Stream:
		c.stream += string(in.Data)
	case machine.Datagram:
		c.datagram += string(in.Data)
	}
	if len(c.stream) == 5 && c.datagram != "" {
		return []machine.Output{{Kind: machine.Close, Conn: 1}, {Kind: machine.Done}}
	}
	return nil
}

func TestHostsTalkOverLoopback(t *testing.T) {
	server := host{machine: echo{}}
	err := server.listen(netip.MustParseAddrPort("127.0.0.1:0"))
	addr := server.addr
	if err != nil {
		t.Skip("no sockets here: ", err)
	}
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	ended := make(chan error)
	go func() { ended <- server.run(ctx) }()

	c := &caller{server: addr}
	client := host{machine: c}
	if err := client.open(addr); err != nil {
		t.Fatal(err)
	}
	if err := client.run(ctx); err != nil {
		t.Fatal(err)
	}
	if c.stream != "hello" || c.datagram != "hello" {
		t.Errorf("got %q over TCP, %q over UDP", c.stream, c.datagram)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

func TestHostTellsThatNobodyAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip("no sockets here: ", err)
	}
	addr := netip.MustParseAddrPort(l.Addr().String())
	l.Close()
	c := &caller{server: addr}
	client := host{machine: c}
	if err := client.open(addr); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	if err := client.run(ctx); err == nil || !c.refused {
		t.Errorf("refused %v, error %v", c.refused, err)
	}
}
