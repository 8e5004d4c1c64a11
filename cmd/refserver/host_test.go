package main

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"runtime"
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

// porter has a socket opened for whoever connects, says its port, sends the first
// datagram back from there, and closes it.
type porter struct{ port chan uint16 }

func (*porter) Deadline() time.Time { return time.Time{} }

func (p *porter) Handle(_ time.Time, in machine.Input) []machine.Output {
	switch in.Kind {
	case machine.Opened:
		return []machine.Output{{Kind: machine.Bind, Conn: in.Conn}}
	case machine.Bound:
		p.port <- in.Port
	case machine.Datagram:
		return []machine.Output{
			{Kind: machine.SendDatagram, Port: in.Port, Peer: in.Peer, Data: bytes.Clone(in.Data)}, {Kind: machine.Unbind, Port: in.Port},
		}
	}
	return nil
}

func TestHostOpensMoreSockets(t *testing.T) {
	p := &porter{port: make(chan uint16, 1)}
	server := host{machine: p}
	if err := server.listen(netip.MustParseAddrPort("127.0.0.1:0")); err != nil {
		t.Skip("no sockets here: ", err)
	}
	addr := server.addr
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- server.run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	seen := map[netip.AddrPort]bool{addr: true}
	for range 3 {
		c, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		local := netip.AddrPortFrom(addr.Addr(), <-p.port)
		if seen[local] || local.Port() == 0 {
			t.Errorf("the new socket is %v", local)
		}
		seen[local] = true
		u, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(local)) // it takes what comes from there only
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		b := make([]byte, 10)
		if _, err := u.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		_ = u.SetReadDeadline(time.Now().Add(hang))
		if n, err := u.Read(b); err != nil || string(b[:n]) != "hello" {
			t.Fatalf("got %q, %v", b[:n], err)
		}
		// The socket is closed behind the answer; another can have its port then.
		var x *net.UDPConn
		if !await(func() bool { x, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(local)); return err == nil }) {
			t.Fatal(err)
		}
		defer x.Close()
	}
}

func TestHostsTalkOverLoopback(t *testing.T) {
	server := host{machine: echo{}}
	err := server.listen(netip.MustParseAddrPort("127.0.0.1:0"))
	addr := server.addr
	if err != nil {
		t.Skip("no sockets here: ", err)
	}
	ctx, stop := context.WithTimeout(context.Background(), hang)
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

// slow answers the first bytes of a connection when it is told to, with two writes, and
// counts all bytes up to the end.
type slow struct {
	busy, answer chan struct{}
	got          int
	ended        chan int
}

func (*slow) Deadline() time.Time { return time.Time{} }

func (s *slow) Handle(_ time.Time, in machine.Input) (out []machine.Output) {
	switch in.Kind {
	case machine.Stream:
		if s.got += len(in.Data); s.got == len(in.Data) {
			s.busy <- struct{}{}
			<-s.answer
			for range 2 {
				out = append(out, machine.Output{Kind: machine.SendStream, Conn: in.Conn, Data: []byte("hello")})
			}
		}
	case machine.Closed:
		s.ended <- s.got
	}
	return out
}

// TestHostHearsOutWhoIsGone has a server write to a peer that has said more than is read
// at a time, and has reset the connection. What it had said is there to be read on Linux.
func TestHostHearsOutWhoIsGone(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a reset may throw away here what came before it")
	}
	s := &slow{busy: make(chan struct{}), answer: make(chan struct{}), ended: make(chan int, 1)}
	server := host{machine: s}
	if err := server.listen(netip.MustParseAddrPort("127.0.0.1:0")); err != nil {
		t.Skip("no sockets here: ", err)
	}
	addr := server.addr
	ctx, stop := context.WithTimeout(context.Background(), hang)
	defer stop()
	ended := make(chan error)
	go func() { ended <- server.run(ctx) }()
	c, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	const more = 20 << 10
	for _, n := range []int{1, more} {
		if _, err := c.Write(make([]byte, n)); err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			<-s.busy
		}
	}
	if err := c.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	c.Close()
	close(s.answer)
	select {
	case got := <-s.ended:
		if got != 1+more {
			t.Errorf("the server hears %d bytes of %d", got, 1+more)
		}
	case <-ctx.Done():
		t.Error("the server does not see the end")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestHostTellsThatNobodyAnswers(t *testing.T) {
	needSockets(t)
	addr := netip.MustParseAddrPort("127.0.0.1:1") // a port that no system gives to who asks for any
	c := &caller{server: addr}
	client := host{machine: c}
	if err := client.open(addr); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), hang)
	defer stop()
	if err := client.run(ctx); err == nil || !c.refused {
		t.Errorf("refused %v, error %v", c.refused, err)
	}
}
