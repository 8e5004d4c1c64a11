package dissect

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"net/netip"
	"strconv"

	"opscope/schema/wire"
)

// From the bytes of a packet to the payload of its segment or datagram. Here are
// the link layers of networks; link_ppp.go has those of lines, link_mpls.go labels, and
// link_host.go what hosts put in front of what they capture. link_ip.go,
// link_transport.go and link_tunnel.go go on.
//
// This runs once per packet and reads with encoding/binary, not wire.Reader: each
// header is checked for length as a whole before a field of it is looked at.

// Content says what a packet holds.
type Content uint8

// The contents.
const (
	NotIP           Content = iota // something else than IP: Headers.EtherType
	OtherIP                        // a transport that is not looked into: Headers.Protocol
	TCPContent                     // TCP
	UDPContent                     // UDP
	ICMPContent                    // of either version
	FragmentContent                // a piece of an IP packet: Headers.Piece
)

// PacketType says how a packet passed the host that captured it, if the link
// layer tells.
type PacketType uint8

// The packet types of cooked captures, which number them from 0.
const (
	UnknownPacketType PacketType = iota
	Incoming
	Broadcast
	Multicast
	OtherHost // not for this host
	Outgoing
)

// String returns "in", "out" and so on, or "".
func (t PacketType) String() string {
	return [...]string{"", "in", "broadcast", "multicast", "other host", "out"}[t]
}

// Passage is how a packet passed the host that captured it, as captures of a host's own
// kind of link tell: cooked ones and those of NFLOG and PKTAP.
type Passage struct {
	Type      PacketType
	Presumed  bool // the length of its IP packet is that of the packet
	Interface int  // index on that host, 0 where the link layer does not tell
}

// Headers is what the headers of one packet say. It is reused; Payload and
// Options alias the packet's data.
//
// Where a packet comes through a tunnel, all of it is about the inner packet but
// the fields of the link layer.
type Headers struct {
	Content   Content
	EtherType uint16 // of what the link layer carries; 0 where it names that by another number

	// Link layer.
	PacketType PacketType
	Interface  int    // index on the capturing host, 0 where the link layer does not tell
	VLAN       uint16 // the innermost VLAN
	Tags       int    // VLAN tags passed

	// IP.
	Tunnel   Tunnel // belongs to the key of the flow
	Src, Dst netip.Addr
	Protocol uint8 // of the transport, behind all extension headers
	Piece    Piece // for FragmentContent
	Presumed bool  // the IP length was 0 and is taken from the packet, as segmentation offload leaves it

	// Transport.
	SrcPort, DstPort uint16
	Seq, Ack         uint32
	Flags            TCPFlags
	Window           uint16
	Options          []byte  // of TCP, as far as captured
	Message          Message // for ICMP

	// Payload is what the innermost header that was understood carries, as far as
	// captured, without padding of the link layer. PayloadLength is how long it was
	// on the wire: PayloadLength - len(Payload) bytes were not captured.
	Payload       []byte
	PayloadLength int
	Surplus       int // bytes of the IP packet behind the end of the datagram

	network       []byte // the innermost IP packet, as far as captured, with its header whole
	ip, transport []byte // what the checksums of IPv4 and of the transport cover, where all of it is there

	at cursor
}

// Piece is the place of a fragment.
type Piece struct {
	ID     uint32 // 16 bits in IPv4
	Offset int    // bytes from the start of the whole IP payload
	More   bool   // it is not the last
}

// Passage returns how the packet passed the host that captured it.
func (h *Headers) Passage() Passage { return Passage{h.PacketType, h.Presumed, h.Interface} }

// Source returns the address and port of the sender.
func (h *Headers) Source() netip.AddrPort { return netip.AddrPortFrom(h.Src, h.SrcPort) }

// Destination returns the address and port of the receiver.
func (h *Headers) Destination() netip.AddrPort { return netip.AddrPortFrom(h.Dst, h.DstPort) }

// cursor is the place in a packet: data up to the end of the layer being
// decoded, as captured, and where on the wire that layer ends. Both count from
// the packet's first byte.
type cursor struct {
	data    []byte
	offset  int // beyond the data where the capture cut a header that could do without
	end     int // at least len(data)
	tunnels int // entered so far

	mostTunnels int
	sums        *[]checksum // takes what is passed, where somebody wants it
}

// checksum is where a checksum stands, and what it covers beside addresses: offsets from
// the first byte of what is decoded.
type checksum struct{ at, from, to int }

// sum notes a checksum some bytes from here, which covers all from here to the end of the layer.
func (c *cursor) sum(at int) {
	if c.sums != nil {
		*c.sums = append(*c.sums, checksum{c.offset + at, c.offset, c.end})
	}
}

// rest returns what the layers so far carry, as far as captured.
func (c *cursor) rest() []byte { return c.data[min(c.offset, len(c.data)):] }

// left returns how long that was on the wire.
func (c *cursor) left() int { return c.end - c.offset }

// cut ends the layer n bytes from here, and returns how many bytes are cut off.
func (c *cursor) cut(n int) int {
	off := c.left() - n
	c.end = c.offset + n
	c.data = c.data[:min(len(c.data), c.end)]
	return off
}

// need returns the next n bytes, or an error for the header that they belong to.
func (c *cursor) need(layer string, n int) ([]byte, error) {
	if b := c.rest(); len(b) >= n {
		return b, nil
	}
	return nil, c.short(layer, n)
}

// short returns the error for a header of n bytes that is not there. The
// capture cut it if the wire had more.
func (c *cursor) short(layer string, n int) error {
	kind := wire.Malformed
	if c.left() > len(c.rest()) {
		kind = wire.Truncated
	}
	return &wire.Error{
		Layer:  layer,
		Path:   "header",
		Offset: c.offset,
		Size:   len(c.data),
		Want:   wire.Bits(8 * n),
		Got:    wire.Bits(8*len(c.rest())) + " left",
		Kind:   kind,
	}
}

// malformed returns the error for a field some bytes from here.
func (c *cursor) malformed(layer, field string, at int, want string, got int) *wire.Error {
	return &wire.Error{
		Layer:  layer,
		Path:   field,
		Offset: c.offset + at,
		Size:   len(c.data),
		Want:   want,
		Got:    strconv.Itoa(got),
	}
}

// LinkDecoder decodes the headers of packets. The zero LinkDecoder is ready.
type LinkDecoder struct {
	// Owned reports whether a UDP port belongs to a protocol that is being
	// looked for. Such a port is never taken for a tunnel's: the game on port 4789
	// is a game. Nil means that no port does.
	Owned func(port uint16) bool
	// Tunnels is how deep tunnels may lie in each other; 0 means 4.
	Tunnels int

	sums *[]checksum // takes the checksums of each packet, outer ones first
}

// Decode reads the headers of p into h, of which nothing is kept from before.
//
// It returns *wire.Error for a header that is malformed or that the capture cut,
// with the offset counted from the packet's first byte, and *UnsupportedLinkError.
// Beside an error, h holds what came before it; h.Payload is then what the
// broken header begins. That the capture cut the payload is no error.
func (d *LinkDecoder) Decode(h *Headers, p *Packet) error {
	*h = Headers{}
	h.at.data, h.at.end, h.at.sums = p.Data, max(p.Length, len(p.Data)), d.sums
	h.at.mostTunnels = cmp.Or(d.Tunnels, maxTunnels)
	err := d.link(h, p.Link)
	h.settle()
	return err
}

// DecodeTransport goes on with a reassembled IP payload of the protocol that its
// first fragment named, in h as it was for one of the fragments. length is how
// long the payload was on the wire. Offsets in errors count from its first byte.
func (d *LinkDecoder) DecodeTransport(h *Headers, protocol uint8, payload []byte, length int) error {
	h.Content, h.Piece = OtherIP, Piece{}
	h.at = cursor{data: payload, end: max(length, len(payload)), tunnels: h.at.tunnels, mostTunnels: h.at.mostTunnels, sums: d.sums}
	err := d.upper(h, protocol)
	h.settle()
	return err
}

// settle sets the payload: what is behind the last header.
func (h *Headers) settle() {
	h.Payload, h.PayloadLength = h.at.rest(), h.at.left()
}

// link decodes the link layer.
func (d *LinkDecoder) link(h *Headers, t LinkType) error {
	switch t {
	case LinkEthernet:
		return d.ethernet(h)
	case LinkCooked:
		return d.cooked(h)
	case LinkCooked2:
		return d.cooked2(h)
	case LinkNull, LinkLoop:
		return d.loopback(h)
	case LinkRaw, LinkRawBSD, LinkRawOpen:
		return d.raw(h)
	case LinkIPv4:
		return d.ip4(h)
	case LinkIPv6:
		return d.ip6(h)
	case LinkPPP, LinkPPPHDLC:
		return d.hdlc(h)
	case LinkCHDLC:
		return d.cisco(h)
	case LinkPPPEther:
		return d.pppoe(h)
	case LinkNFLOG:
		return d.nflog(h)
	case LinkPKTAP:
		return d.pktap(h)
	case LinkPPI:
		return d.ppi(h)
	}
	return &UnsupportedLinkError{Link: t}
}

// The EtherTypes that are looked into.
const (
	etherIP4     = 0x0800
	etherVLAN    = 0x8100
	etherIP6     = 0x86dd
	etherMPLS    = 0x8847
	etherMPLSAll = 0x8848 // to several
	etherPPPoE   = 0x8864
	etherQinQ    = 0x88a8
	etherOldQinQ = 0x9100
)

// leastEtherType is the lowest EtherType: what is below it is a length, IEEE 802.3.
const leastEtherType = 0x0600

// ethernet decodes destination 6, source 6, EtherType or length 2.
func (d *LinkDecoder) ethernet(h *Headers) error {
	b := h.at.rest()
	if len(b) < 14 {
		return h.at.short("ethernet", 14)
	}
	h.at.offset += 14
	t := binary.BigEndian.Uint16(b[12:])
	if t < leastEtherType {
		return d.ieee(h, t)
	}
	return d.ether(h, t)
}

// cooked decodes packet type 2, hardware type 2, address length 2, address 8,
// EtherType 2.
func (d *LinkDecoder) cooked(h *Headers) error {
	b, err := h.at.need("sll", 16)
	if err != nil {
		return err
	}
	h.at.offset += 16
	h.PacketType = cookedType(binary.BigEndian.Uint16(b))
	return d.linux(h, binary.BigEndian.Uint16(b[14:]))
}

// cooked2 decodes EtherType 2, reserved 2, interface index 4, hardware type 2,
// packet type 1, address length 1, address 8.
func (d *LinkDecoder) cooked2(h *Headers) error {
	b, err := h.at.need("sll2", 20)
	if err != nil {
		return err
	}
	h.at.offset += 20
	h.PacketType = cookedType(uint16(b[10]))
	h.Interface = int(binary.BigEndian.Uint32(b[4:]))
	return d.linux(h, binary.BigEndian.Uint16(b))
}

// cookedType returns the packet type for its number on the wire.
func cookedType(n uint16) PacketType {
	if n > 4 {
		return UnknownPacketType
	}
	return PacketType(n + 1)
}

// linux goes on with what an EtherType names or, below those, a number of Linux, of
// which 4 is for IEEE 802.2. Source: https://www.tcpdump.org/linktypes/LINKTYPE_LINUX_SLL.html.
func (d *LinkDecoder) linux(h *Headers, t uint16) error {
	if t == 4 {
		return d.llc(h)
	}
	return d.ether(h, t)
}

// ether goes on with what an EtherType names, through any VLAN tags: tag 2,
// EtherType or length 2.
func (d *LinkDecoder) ether(h *Headers, t uint16) error {
	for isTag(t) {
		h.EtherType = t
		b, err := h.at.need("vlan", 4)
		if err != nil {
			return err
		}
		h.at.offset += 4
		h.VLAN = binary.BigEndian.Uint16(b) & 0x0fff
		h.Tags++
		if t = binary.BigEndian.Uint16(b[2:]); t < leastEtherType {
			return d.ieee(h, t)
		}
	}
	h.EtherType = t
	switch t {
	case etherIP4:
		return d.ip4(h)
	case etherIP6:
		return d.ip6(h)
	case etherPPPoE:
		return d.pppoe(h)
	case etherMPLS, etherMPLSAll:
		return d.mpls(h)
	}
	return nil
}

// ieee goes on with what has a length in the place of an EtherType: IEEE 802.2. What is
// behind it is padding.
func (d *LinkDecoder) ieee(h *Headers, length uint16) error {
	h.EtherType = 0
	h.at.cut(min(int(length), h.at.left()))
	return d.llc(h)
}

// llc decodes IEEE 802.2 as RFC 1042 has it: addresses 0xaa 0xaa, control 3, and an
// organization 3 of zeros that says that an EtherType 2 follows. Others are not looked into.
func (d *LinkDecoder) llc(h *Headers) error {
	b, err := h.at.need("llc", 3)
	if err != nil || b[0] != 0xaa || b[1] != 0xaa || b[2] != 0x03 {
		return err
	}
	if b, err = h.at.need("snap", 8); err != nil || b[3]|b[4]|b[5] != 0 {
		return err
	}
	h.at.offset += 8
	return d.ether(h, binary.BigEndian.Uint16(b[6:]))
}

// isTag reports whether an EtherType stands in front of a VLAN tag.
func isTag(t uint16) bool { return t == etherVLAN || t == etherQinQ || t == etherOldQinQ }

// loopback decodes the address family 4, in the order of the host that wrote the
// file. Its number for IPv6 depends on the system, and some writers put an
// EtherType there.
func (d *LinkDecoder) loopback(h *Headers) error {
	b, err := h.at.need("loopback", 4)
	if err != nil {
		return err
	}
	family := binary.BigEndian.Uint32(b)
	if family > 0xffff {
		family = bits.ReverseBytes32(family)
	}
	switch family {
	case 2, etherIP4:
		h.at.offset += 4
		return d.ip4(h)
	case 10, 23, 24, 28, 30, etherIP6: // Linux, Windows, NetBSD, FreeBSD, Darwin
		h.at.offset += 4
		return d.ip6(h)
	}
	return nil
}

// raw decodes IP of the version that its first four bits name.
func (d *LinkDecoder) raw(h *Headers) error {
	b, err := h.at.need("ip", 1)
	if err != nil {
		return err
	}
	switch version := b[0] >> 4; version {
	case 4:
		return d.ip4(h)
	case 6:
		return d.ip6(h)
	default:
		return h.at.malformed("ip", "version", 0, "4 or 6", int(version))
	}
}
