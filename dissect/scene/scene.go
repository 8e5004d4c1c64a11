// Package scene makes up captures for tests, packet by packet, and plays them to
// a pipeline. Its bytes are put together by hand, without schema and without the
// decoders, so that they witness against both.
package scene

import (
	"encoding/binary"
	"io"
	"net/netip"
	"time"

	"opscope/dissect"
)

// Start is the time of the first packet.
var Start = time.Date(2026, 11, 29, 20, 15, 0, 0, time.UTC)

// Side is who sends.
type Side int

// The sides.
const (
	Client Side = iota
	Server
)

// Scene is a capture in the making. The zero Scene is an Ethernet one.
type Scene struct {
	Snap int // bytes captured of each packet, 0 for all
	// Around puts a link layer around an IP packet; nil is Ethernet.
	Around func(ip string) string

	elapsed time.Duration
	packets []dissect.Packet
	id      uint16
}

// Wait lets time pass before the next packet; back, too. A packet takes 1 ms.
func (s *Scene) Wait(d time.Duration) { s.elapsed += d }

// Len returns the number of packets so far, which is that of the last one.
func (s *Scene) Len() int { return len(s.packets) }

// Packet adds a packet with a link layer of its own.
func (s *Scene) Packet(data string) {
	p := dissect.Packet{
		Number: len(s.packets) + 1, Time: Start.Add(s.elapsed), Digits: 6,
		Data: []byte(data), Length: len(data), Link: 1,
	}
	if s.Snap > 0 && len(p.Data) > s.Snap {
		p.Data = p.Data[:s.Snap]
	}
	s.packets = append(s.packets, p)
	s.elapsed += time.Millisecond
}

// IP adds an IP packet.
func (s *Scene) IP(ip string) {
	if s.Around != nil {
		s.Packet(s.Around(ip))
		return
	}
	s.Packet(Ethernet(ip))
}

// Move takes a packet, by its number, to the end, with the time it had.
func (s *Scene) Move(number int) {
	moved := s.packets[number-1]
	s.packets = append(append(s.packets[:number-1:number-1], s.packets[number:]...), moved)
	for i := range s.packets {
		s.packets[i].Number = i + 1
	}
}

// Swap exchanges the times of two packets.
func (s *Scene) Swap(a, b int) {
	p := s.packets
	p[a-1].Time, p[b-1].Time = p[b-1].Time, p[a-1].Time
}

// Drop takes a packet, by its number, out of the capture.
func (s *Scene) Drop(number int) {
	s.packets = append(s.packets[:number-1:number-1], s.packets[number:]...)
	for i := range s.packets {
		s.packets[i].Number = i + 1
	}
}

// Packets returns the packets so far.
func (s *Scene) Packets() []dissect.Packet { return s.packets }

// Over returns the same endpoints in another scene.
func (s *Scene) Over(e Ends) Ends { return Ends{s, e.Addr} }

// Source returns the capture from its start. It reuses one buffer, as a file does,
// so that who keeps borrowed bytes is found out.
func (s *Scene) Source() dissect.Source { return &source{packets: s.packets} }

type source struct {
	packets []dissect.Packet
	buf     []byte
}

func (s *source) Next(p *dissect.Packet) error {
	if len(s.packets) == 0 {
		return io.EOF
	}
	*p = s.packets[0]
	for i := range s.buf {
		s.buf[i] = 0xdd
	}
	s.buf = append(s.buf[:0], p.Data...)
	p.Data = s.buf
	s.packets = s.packets[1:]
	return nil
}

// Ethernet puts an Ethernet header in front of an IP packet.
func Ethernet(ip string) string {
	const macs = "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02"
	if ip[0]>>4 == 6 {
		return macs + "\x86\xdd" + ip
	}
	return macs + "\x08\x00" + ip
}

// VLAN puts an Ethernet header with a tag in front of an IP packet.
func VLAN(ip string) string {
	e := Ethernet(ip)
	return e[:12] + "\x81\x00\x60\x07" + e[12:]
}

// VXLAN returns what puts a packet into a tunnel with this network number.
func VXLAN(network int) func(ip string) string {
	outer := netip.MustParseAddrPort("192.0.2.1:55555")
	return func(ip string) string {
		u := UDP(outer, netip.MustParseAddrPort("192.0.2.2:4789"), "\x08\x00\x00\x00"+BE32(network<<8)+Ethernet(ip))
		return Ethernet(IP(outer.Addr(), netip.MustParseAddr("192.0.2.2"), 17, u))
	}
}

// BE16 and BE32 are numbers in network order.
func BE16(v int) string { return string(binary.BigEndian.AppendUint16(nil, uint16(v))) }

// BE32 is a number in network order.
func BE32(v int) string { return string(binary.BigEndian.AppendUint32(nil, uint32(v))) }

// IP returns an IP packet of either version.
func IP(src, dst netip.Addr, protocol byte, payload string) string {
	if src.Is4() {
		return ip4(src, dst, protocol, payload, 0, 0)
	}
	return ip6(src, dst, protocol, payload)
}

func ip4(src, dst netip.Addr, protocol byte, payload string, id, fragment int) string {
	return "\x45\x00" + BE16(20+len(payload)) + BE16(id) + BE16(fragment) + string([]byte{64, protocol}) + "\x00\x00" +
		string(src.AsSlice()) + string(dst.AsSlice()) + payload
}

func ip6(src, dst netip.Addr, protocol byte, payload string) string {
	return "\x60\x00\x00\x00" + BE16(len(payload)) + string([]byte{protocol, 64}) +
		string(src.AsSlice()) + string(dst.AsSlice()) + payload
}

// UDP returns a datagram with its header.
func UDP(src, dst netip.AddrPort, payload string) string {
	return BE16(int(src.Port())) + BE16(int(dst.Port())) + BE16(8+len(payload)) + "\x00\x00" + payload
}

// Fragments returns an IP packet in fragments of at most n bytes, a multiple of 8.
func (s *Scene) Fragments(src, dst netip.Addr, protocol byte, payload string, n int) []string {
	s.id++
	var list []string
	for off := 0; off < len(payload); off += n {
		end, more := min(off+n, len(payload)), 1
		if end == len(payload) {
			more = 0
		}
		if src.Is4() {
			list = append(list, ip4(src, dst, protocol, payload[off:end], int(s.id), off/8|more<<13))
			continue
		}
		header := string([]byte{protocol, 0}) + BE16(off|more) + BE32(int(s.id))
		list = append(list, ip6(src, dst, 44, header+payload[off:end]))
	}
	return list
}

// Ends are two endpoints.
type Ends struct {
	s    *Scene
	Addr [2]netip.AddrPort // by Side
}

func (s *Scene) ends(client, server string) Ends {
	return Ends{s, [2]netip.AddrPort{netip.MustParseAddrPort(client), netip.MustParseAddrPort(server)}}
}

func (e *Ends) ip(from Side, protocol byte, payload string) string {
	return IP(e.Addr[from].Addr(), e.Addr[1-from].Addr(), protocol, payload)
}

// Datagrams are two endpoints that exchange datagrams.
type Datagrams struct{ Ends }

// UDP returns a pair of endpoints.
func (s *Scene) UDP(client, server string) *Datagrams { return &Datagrams{s.ends(client, server)} }

// Send sends records in one datagram.
func (d *Datagrams) Send(from Side, records ...string) {
	d.s.IP(d.ip(from, 17, UDP(d.Addr[from], d.Addr[1-from], join(records))))
}

// SendFragments sends records in one datagram that is in pieces of n bytes.
func (d *Datagrams) SendFragments(from Side, n int, records ...string) {
	u := UDP(d.Addr[from], d.Addr[1-from], join(records))
	for _, f := range d.s.Fragments(d.Addr[from].Addr(), d.Addr[1-from].Addr(), 17, u, n) {
		d.s.IP(f)
	}
}

// Unreachable has the receiver of a datagram from a side complain by ICMP.
func (d *Datagrams) Unreachable(from Side, records ...string) {
	quote := d.ip(from, 17, UDP(d.Addr[from], d.Addr[1-from], join(records)))
	if d.Addr[from].Addr().Is6() {
		d.s.IP(d.ip(1-from, 58, "\x01\x04\x00\x00\x00\x00\x00\x00"+quote))
		return
	}
	d.s.IP(d.ip(1-from, 1, "\x03\x03\x00\x00\x00\x00\x00\x00"+quote[:28]))
}

func join(list []string) string {
	var all string
	for _, s := range list {
		all += s
	}
	return all
}

// Connection is a TCP connection.
type Connection struct {
	Ends
	Next [2]uint32 // the sequence number of what each side sends next
}

// Flags of a segment.
const (
	FIN = 1
	SYN = 2
	RST = 4
	ACK = 16
)

// TCP returns a connection of which nothing has been sent.
func (s *Scene) TCP(client, server string) *Connection {
	return &Connection{s.ends(client, server), [2]uint32{1000, 5000}}
}

// Open exchanges SYNs.
func (c *Connection) Open() {
	c.Segment(Client, SYN, "")
	c.Segment(Server, SYN|ACK, "")
	c.Segment(Client, ACK, "")
}

// Segment sends a segment, and moves on by what it takes of the sequence.
func (c *Connection) Segment(from Side, flags int, data string) {
	c.SegmentAt(from, flags, c.Next[from], data)
	c.Next[from] += uint32(len(data) + flags&FIN + flags&SYN>>1)
}

// SegmentAt sends a segment with a sequence number.
func (c *Connection) SegmentAt(from Side, flags int, seq uint32, data string) {
	ack := c.Next[1-from]
	if flags&ACK == 0 {
		ack = 0
	}
	h := BE16(int(c.Addr[from].Port())) + BE16(int(c.Addr[1-from].Port())) + BE32(int(seq)) + BE32(int(ack)) +
		string([]byte{0x50, byte(flags)}) + "\x20\x00\x00\x00\x00\x00"
	c.s.IP(c.ip(from, 6, h+data))
}

// Send sends frames in one segment.
func (c *Connection) Send(from Side, frames ...string) { c.Segment(from, ACK, join(frames)) }

// Lose sends frames in a segment that the capture misses.
func (c *Connection) Lose(from Side, frames ...string) { c.Next[from] += uint32(len(join(frames))) }

// Drip sends frames in segments of n bytes.
func (c *Connection) Drip(from Side, n int, frames ...string) {
	for data := join(frames); len(data) > 0; data = data[min(n, len(data)):] {
		c.Send(from, data[:min(n, len(data))])
	}
}
