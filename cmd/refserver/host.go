package main

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"opscope/cmd/refserver/internal/machine"
)

const (
	readSize    = 64 << 10 // no datagram is larger
	writeWithin = 2 * time.Second
	dialWithin  = 10 * time.Second
)

// host drives one machine with real sockets and real time. Each socket has a
// goroutine that reads it; all of them feed the one loop, where the machine is
// called and where everything is written.
type host struct {
	machine machine.Machine
	log     *peer // may be nil
	udp     *net.UDPConn
	local   netip.AddrPort   // of udp
	udpPort uint16           // where a server takes datagrams; 0 for the port of its connections
	tcp     *net.TCPListener // nil for a bot

	events  chan event
	done    chan struct{} // closed when the loop is over
	conns   map[machine.Conn]*connection
	opened  bool  // a dialled connection was there
	refused error // the last one that was not
}

// connection is one with how many bytes were written to it.
type connection struct {
	net.Conn
	written int
}

// event is something that a goroutine tells the loop.
type event struct {
	machine.Input
	conn net.Conn // of Opened
	err  error    // of Refused; or why a socket of the host cannot be read
}

// listen opens the sockets of a server. A port of 0 becomes any that is free, for
// both where it is the port of both.
func (h *host) listen(addr netip.AddrPort) (netip.AddrPort, error) {
	var err error
	for range 8 {
		if h.tcp, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr)); err != nil {
			return addr, err
		}
		bound := netip.AddrPortFrom(addr.Addr(), uint16(h.tcp.Addr().(*net.TCPAddr).Port))
		datagrams := bound
		if h.udpPort != 0 {
			datagrams = netip.AddrPortFrom(bound.Addr(), h.udpPort)
		}
		if err = h.listenUDP(datagrams); err == nil {
			return bound, nil
		}
		h.tcp.Close()
		if addr.Port() != 0 || h.udpPort != 0 {
			return addr, err
		}
	}
	return addr, err
}

// listenUDP opens the socket for datagrams.
func (h *host) listenUDP(addr netip.AddrPort) error {
	var err error
	if h.udp, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr)); err == nil {
		h.local = addrOf(h.udp.LocalAddr())
	}
	return err
}

// release closes the sockets of a host that does not run.
func (h *host) release() {
	h.udp.Close()
	if h.tcp != nil {
		h.tcp.Close()
	}
}

// open opens the UDP socket of a bot that talks to a server, on the address from which
// the server is reached: it is what the server sees, and what a log has to say.
func (h *host) open(server netip.AddrPort) error {
	route, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(server)) // this sends nothing
	if err != nil {
		return err
	}
	local := route.LocalAddr().(*net.UDPAddr)
	route.Close()
	if h.udp, err = net.ListenUDP("udp", &net.UDPAddr{IP: local.IP, Zone: local.Zone}); err == nil {
		h.local = addrOf(h.udp.LocalAddr())
	}
	return err
}

// run drives the machine until it is done or the context is.
func (h *host) run(ctx context.Context) error {
	h.events, h.done, h.conns = make(chan event), make(chan struct{}), map[machine.Conn]*connection{}
	defer h.close()
	go h.readDatagrams()
	if h.tcp != nil {
		go h.accept()
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var in machine.Input // a Tick
		select {
		case <-ctx.Done():
			return nil
		case e := <-h.events:
			if e.err != nil && e.Kind != machine.Refused {
				return e.err
			}
			if in = e.Input; !h.admit(&e) {
				continue
			}
		case <-timer.C:
		}
		now := time.Now()
		for _, out := range h.machine.Handle(now, in) {
			if out.Kind == machine.Done {
				return h.verdict()
			}
			h.do(ctx, now, out)
		}
		h.forget(in)
		timer.Stop()
		if at := h.machine.Deadline(); !at.IsZero() {
			timer.Reset(time.Until(at))
		}
	}
}

// verdict is the error of a bot that never got a connection.
func (h *host) verdict() error {
	if h.opened {
		return nil
	}
	return h.refused
}

// admit notes what an event changes of the connections. It reports whether the
// machine is to know.
func (h *host) admit(e *event) bool {
	switch e.Kind {
	case machine.Opened:
		h.opened = true
		if h.log != nil && h.tcp == nil {
			h.log.Stream = addrOf(e.conn.LocalAddr())
		}
		h.conns[e.Conn] = &connection{Conn: e.conn}
		go h.readStream(e.Conn, e.Peer, e.conn)
	case machine.Refused:
		h.refused = e.err
	case machine.Stream, machine.Closed:
		return h.conns[e.Conn] != nil
	}
	return true
}

// forget closes a connection that the peer has closed, once the machine knows.
func (h *host) forget(in machine.Input) {
	if in.Kind == machine.Closed {
		h.hangUp(in.Conn, false)
	}
}

// hangUp ends a connection.
func (h *host) hangUp(id machine.Conn, reset bool) {
	c := h.conns[id]
	if c == nil {
		return
	}
	if t, ok := c.Conn.(*net.TCPConn); ok && reset {
		_ = t.SetLinger(0) // it is closed next, whatever this says
	}
	c.Close()
	delete(h.conns, id)
}

// do carries out what the machine wants.
func (h *host) do(ctx context.Context, now time.Time, out machine.Output) {
	switch out.Kind {
	case machine.SendDatagram:
		h.tellSent(now, out, h.local, out.Peer, 0)
		_, _ = h.udp.WriteToUDPAddrPort(out.Data, out.Peer) // datagrams get lost
	case machine.SendStream:
		h.write(now, out)
	case machine.Dial:
		go h.dial(ctx, out.Conn, out.Peer)
	case machine.Close, machine.Abort:
		h.hangUp(out.Conn, out.Kind == machine.Abort)
	}
}

// write writes to a connection. A peer that does not read in time is cut off, which
// its own goroutine reports.
func (h *host) write(now time.Time, out machine.Output) {
	c := h.conns[out.Conn]
	if c == nil {
		return
	}
	h.tellSent(now, out, addrOf(c.LocalAddr()), addrOf(c.RemoteAddr()), c.written)
	c.written += len(out.Data)
	err := c.SetWriteDeadline(now.Add(writeWithin))
	if err == nil {
		_, err = c.Write(out.Data)
	}
	if err != nil {
		c.Close()
	}
}

func (h *host) tellSent(now time.Time, out machine.Output, local, remote netip.AddrPort, base int) {
	if h.log != nil {
		h.log.Sent(now, out, local, remote, base)
	}
}

// tell hands an event to the loop, and reports whether there still is one.
func (h *host) tell(e event) bool {
	select {
	case h.events <- e:
		return true
	case <-h.done:
		return false
	}
}

// accept accepts connections.
func (h *host) accept() {
	for id := machine.Conn(-1); ; id-- {
		c, err := h.tcp.AcceptTCP()
		if err != nil {
			h.tell(event{err: err})
			return
		}
		peer := addrOf(c.RemoteAddr())
		if !h.tell(event{Input: machine.Input{Kind: machine.Opened, Conn: id, Peer: peer}, conn: c}) {
			c.Close()
			return
		}
	}
}

// dial opens a connection.
func (h *host) dial(ctx context.Context, id machine.Conn, to netip.AddrPort) {
	d := net.Dialer{Timeout: dialWithin}
	c, err := d.DialContext(ctx, "tcp", to.String())
	e := event{Input: machine.Input{Kind: machine.Opened, Conn: id, Peer: to}, conn: c}
	if err != nil {
		e.Kind, e.err = machine.Refused, err
	}
	if !h.tell(e) && c != nil {
		c.Close()
	}
}

// readStream reads a connection. The buffers are not reused: the loop has one
// while the next is read.
func (h *host) readStream(id machine.Conn, peer netip.AddrPort, c net.Conn) {
	for {
		b := make([]byte, 4<<10)
		n, err := c.Read(b)
		if n > 0 && !h.tell(event{Input: machine.Input{Kind: machine.Stream, Conn: id, Peer: peer, Data: b[:n]}}) {
			return
		}
		if err != nil {
			h.tell(event{Input: machine.Input{Kind: machine.Closed, Conn: id, Peer: peer}})
			return
		}
	}
}

// readDatagrams reads the UDP socket. An ICMP error about an earlier datagram is no
// reason to stop.
func (h *host) readDatagrams() {
	b := make([]byte, readSize)
	for {
		n, from, err := h.udp.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		data := append([]byte(nil), b[:n]...)
		if !h.tell(event{Input: machine.Input{Kind: machine.Datagram, Peer: unmap(from), Data: data}}) {
			return
		}
	}
}

// close ends the goroutines and closes what is open.
func (h *host) close() {
	close(h.done)
	for id := range h.conns {
		h.hangUp(id, false)
	}
	h.release()
}

// addrOf returns the address of a socket.
func addrOf(a net.Addr) netip.AddrPort {
	switch a := a.(type) {
	case *net.TCPAddr:
		return unmap(a.AddrPort())
	case *net.UDPAddr:
		return unmap(a.AddrPort())
	}
	return netip.AddrPort{}
}

// unmap returns an IPv4 address as such, also where a socket for both versions
// gives it as IPv6.
func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
