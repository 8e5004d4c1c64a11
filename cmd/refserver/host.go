package main

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
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
	log     *peer            // may be nil
	udp     []*net.UDPConn   // the first is the usual one
	local   netip.AddrPort   // of the first
	tcp     *net.TCPListener // nil for one that only dials
	addr    netip.AddrPort   // of tcp
	dials   netip.Addr       // where it dials from, if it is valid

	sockets map[uint16]*net.UDPConn // those that the machine has asked for, by port
	turn    []machine.Input         // an input, and what came of it at once
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

// listen opens the sockets of a server. A port of 0 becomes any that is free for
// both.
func (h *host) listen(addr netip.AddrPort) error {
	var err error
	for range 8 {
		if h.tcp, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr)); err != nil {
			return err
		}
		bound := netip.AddrPortFrom(addr.Addr(), uint16(h.tcp.Addr().(*net.TCPAddr).Port))
		if err = h.listenUDP(bound); err == nil {
			h.addr, h.local = bound, bound
			return nil
		}
		h.tcp.Close()
		if addr.Port() != 0 {
			return err
		}
	}
	return err
}

// listenUDP opens a socket for datagrams, the usual one or one more.
func (h *host) listenUDP(addr netip.AddrPort) error {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr))
	if err != nil {
		return err
	}
	if len(h.udp) == 0 {
		h.local = addrOf(c.LocalAddr())
	}
	h.udp = append(h.udp, c)
	return nil
}

// settle opens the sockets of a peer that others dial and that dials others: for
// connections, which it dials from the same address, and for datagrams.
func (h *host) settle(streams netip.AddrPort, datagrams ...netip.AddrPort) error {
	var err error
	if h.tcp, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(streams)); err != nil {
		return err
	}
	h.addr = addrOf(h.tcp.Addr())
	if !streams.Addr().IsUnspecified() {
		h.dials = streams.Addr()
	}
	for _, addr := range datagrams {
		if err := h.listenUDP(addr); err != nil {
			h.release()
			return err
		}
	}
	return nil
}

// release closes the sockets of a host that does not run.
func (h *host) release() {
	for _, c := range h.udp {
		c.Close()
	}
	if h.tcp != nil {
		h.tcp.Close()
	}
}

// where lists the sockets for a person.
func (h *host) where() string {
	if len(h.udp) == 1 && h.local == h.addr {
		return h.addr.String() + ", TCP and UDP"
	}
	text := h.addr.String() + ", TCP"
	for _, c := range h.udp {
		text += ", and " + c.LocalAddr().String() + ", UDP"
	}
	return text
}

// socket returns the socket for datagrams with a port, the usual one for 0, nil for one
// that is closed.
func (h *host) socket(port uint16) *net.UDPConn {
	for _, c := range h.udp {
		if port == 0 || addrOf(c.LocalAddr()).Port() == port {
			return c
		}
	}
	return h.sockets[port]
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
	local.Port = 0
	return h.listenUDP(addrOf(local))
}

// run drives the machine until it is done or the context is.
func (h *host) run(ctx context.Context) error {
	h.events, h.done, h.conns = make(chan event), make(chan struct{}), map[machine.Conn]*connection{}
	defer h.close()
	h.sockets = map[uint16]*net.UDPConn{}
	for _, c := range h.udp {
		go h.readDatagrams(c)
	}
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
		if h.give(ctx, now, in) {
			return h.verdict()
		}
		timer.Stop()
		if at := h.machine.Deadline(); !at.IsZero() {
			timer.Reset(time.Until(at))
		}
	}
}

// give gives the machine an input, and what comes of it at once. It reports whether the
// machine is done.
func (h *host) give(ctx context.Context, now time.Time, in machine.Input) bool {
	h.turn = append(h.turn[:0], in)
	for i := 0; i < len(h.turn); i++ {
		for _, out := range h.machine.Handle(now, h.turn[i]) {
			if out.Kind == machine.Done {
				return true
			}
			h.do(ctx, now, out)
		}
	}
	h.forget(in)
	return false
}

// verdict is the error of a bot that never got a connection.
func (h *host) verdict() error {
	switch {
	case h.opened:
		return nil
	case h.refused == nil:
		return errors.New("nobody answers")
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
		h.sendDatagram(now, out)
	case machine.Bind:
		h.bind(out.Conn)
	case machine.Unbind:
		h.unbind(out.Port)
	case machine.SendStream:
		h.write(now, out)
	case machine.Dial:
		go h.dial(ctx, out.Conn, out.Peer)
	case machine.Close, machine.Abort:
		h.hangUp(out.Conn, out.Kind == machine.Abort)
	}
}

// bind opens one more UDP socket, of which the machine is to know.
func (h *host) bind(asker machine.Conn) {
	in := machine.Input{Kind: machine.Bound, Conn: asker}
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(h.local.Addr(), 0)))
	if err == nil {
		in.Port = addrOf(c.LocalAddr()).Port()
		h.sockets[in.Port] = c
		go h.readDatagrams(c)
	}
	h.turn = append(h.turn, in)
}

func (h *host) unbind(port uint16) {
	if c := h.sockets[port]; c != nil {
		c.Close()
		delete(h.sockets, port)
	}
}

// sendDatagram sends a datagram, from the socket that the machine wants.
func (h *host) sendDatagram(now time.Time, out machine.Output) {
	c := h.socket(out.Port)
	if c == nil {
		return
	}
	h.tellSent(now, out, addrOf(c.LocalAddr()), out.Peer, 0)
	_, _ = c.WriteToUDPAddrPort(out.Data, out.Peer) // datagrams get lost
}

// write writes to a connection. A peer that does not read in time is cut off, which its
// own goroutine reports. One that is gone is left to that goroutine, which may have
// something to read that the peer said before.
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
	if errors.Is(err, os.ErrDeadlineExceeded) {
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
	if h.dials.IsValid() {
		d.LocalAddr = &net.TCPAddr{IP: h.dials.AsSlice(), Zone: h.dials.Zone()}
	}
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

// readDatagrams reads a UDP socket. An ICMP error about an earlier datagram is no
// reason to stop.
func (h *host) readDatagrams(c *net.UDPConn) {
	port := addrOf(c.LocalAddr()).Port()
	b := make([]byte, readSize)
	for {
		n, from, err := c.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		data := append([]byte(nil), b[:n]...)
		if !h.tell(event{Input: machine.Input{Kind: machine.Datagram, Peer: unmap(from), Port: port, Data: data}}) {
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
	for port := range h.sockets {
		h.unbind(port)
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
