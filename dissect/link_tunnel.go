package dissect

import (
	"encoding/binary"
	"net/netip"
	"strconv"
)

// maxTunnels is how deep tunnels may lie in each other. Networks nest two; more
// is an attempt to keep us busy.
const maxTunnels = 4

// Tunnel names the tunnel that a packet came through, the same in both
// directions; 0 is none. Flows with equal addresses in different tunnels are
// different flows, so it belongs to their key.
//
// From the top: kind 8 bits, a hash 24 bits of the tunnels around it and, where the
// endpoints are what names it, of those; number 32 bits.
type Tunnel uint64

// The kinds of tunnels.
const (
	tunnelIP = iota + 1
	tunnelGRE
	tunnelPseudowire
	tunnelVXLAN
	tunnelPPPoE
	tunnelGeneve
)

// String returns the kind of the innermost tunnel and its number where it has one:
// "vxlan 42", "ip-in-ip"; "" for none.
func (t Tunnel) String() string {
	kind := t >> 56
	if kind > tunnelGeneve {
		return "tunnel(" + strconv.FormatUint(uint64(t), 16) + ")"
	}
	name := [...]string{"", "ip-in-ip", "gre", "pseudowire", "vxlan", "pppoe", "geneve"}[kind]
	if number := uint32(t); number != 0 || kind >= tunnelVXLAN {
		name += " " + strconv.FormatUint(uint64(number), 10)
	}
	return name
}

// enter begins the inner packet of a tunnel: what was said of the outer one is
// forgotten, but for the link layer. A tunnel between two hosts is named by them.
func (h *Headers) enter(kind Tunnel, number uint32, between bool) error {
	if h.at.tunnels++; h.at.tunnels > h.at.mostTunnels {
		e := h.at.malformed("tunnel", "depth", 0, "at most "+strconv.Itoa(h.at.mostTunnels), h.at.tunnels)
		e.Limit = LimitTunnels
		return e
	}
	hash := mix(0, uint64(h.Tunnel))
	if between {
		// The sum is the same in both directions.
		hash = mix(hash, mixAddr(h.Src)+mixAddr(h.Dst))
	}
	*h = Headers{
		EtherType:  h.EtherType,
		PacketType: h.PacketType,
		Interface:  h.Interface,
		VLAN:       h.VLAN,
		Tags:       h.Tags,
		Tunnel:     kind<<56 | Tunnel(hash>>40)<<32 | Tunnel(number),
		at:         h.at,
	}
	return nil
}

// mix stirs a number into a hash, with the last steps of SplitMix64.
func mix(hash, n uint64) uint64 {
	n = (hash ^ n) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

func mixAddr(a netip.Addr) uint64 {
	b := a.As16()
	return mix(mix(1, binary.BigEndian.Uint64(b[:])), binary.BigEndian.Uint64(b[8:]))
}

// ipInIP goes on with IP that is carried by IP as it is, RFC 2003 and RFC 4213.
func (d *LinkDecoder) ipInIP(h *Headers, protocol uint8) error {
	if err := h.enter(tunnelIP, 0, true); err != nil {
		return err
	}
	if protocol == ipIP4 {
		return d.ip4(h)
	}
	return d.ip6(h)
}

// etherBridged is the EtherType that stands for Ethernet in a tunnel.
const etherBridged = 0x6558

// carried reports whether a tunnel's EtherType names something that is looked into.
func carried(t uint16) bool {
	return t == etherIP4 || t == etherIP6 || t == etherBridged || t == etherMPLS || t == etherMPLSAll
}

// inner goes on with what a tunnel's EtherType names.
func (d *LinkDecoder) inner(h *Headers, t uint16) error {
	if t == etherBridged {
		return d.ethernet(h)
	}
	return d.ether(h, t)
}

// gre decodes GRE, RFC 2784 and RFC 2890:
//
//	0   flags, version   2: checksum, routing, key, sequence from the top; version below
//	2   EtherType        2
//	4   checksum         4, if its flag or that of routing is set
//	..  key              4, if its flag is set
//	..  sequence         4, if its flag is set
//
// Version 1 carries PPP and is left alone, as is any EtherType that is not carried.
func (d *LinkDecoder) gre(h *Headers) error {
	b, err := h.at.need("gre", 4)
	if err != nil {
		return err
	}
	flags, t := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	if flags&0x0007 != 0 || !carried(t) {
		return nil
	}
	if flags&0x4000 != 0 { // source routes, RFC 1701, which RFC 2784 has receivers discard
		return h.at.malformed("gre", "flags", 0, "no source routes", int(flags))
	}
	header, keyAt := 4, 4
	if flags&0x8000 != 0 {
		header, keyAt = header+4, keyAt+4
	}
	if flags&0x2000 != 0 {
		header += 4
	}
	if flags&0x1000 != 0 {
		header += 4
	}
	if len(b) < header {
		return h.at.short("gre", header)
	}
	var key uint32
	if flags&0x2000 != 0 {
		key = binary.BigEndian.Uint32(b[keyAt:])
	}
	if flags&0x8000 != 0 {
		h.at.sum(4)
	}
	h.at.offset += header
	if err := h.enter(tunnelGRE, key, true); err != nil {
		return err
	}
	return d.inner(h, t)
}

// The ports that tunnels were given. They are a game's too, if the user says so.
const (
	vxlanPort  = 4789
	genevePort = 6081
)

// vxlan decodes VXLAN, RFC 7348 section 5: flags 1, reserved 3, network 3,
// reserved 1, then Ethernet. A datagram that does not begin like that is a datagram.
func (d *LinkDecoder) vxlan(h *Headers) error {
	b := h.at.rest()
	if len(b) < 8 || b[0] != 0x08 || b[1]|b[2]|b[3]|b[7] != 0 {
		return nil
	}
	h.at.offset += 8
	if err := h.enter(tunnelVXLAN, binary.BigEndian.Uint32(b[4:])>>8, false); err != nil {
		return err
	}
	return d.ethernet(h)
}

// geneve decodes Geneve, RFC 8926 section 3.4:
//
//	0   version, options' length   2 bits + 6 bits, the length in 4 bytes
//	1   flags, reserved            2 bits + 6 bits
//	2   EtherType                  2
//	4   network, reserved          3 + 1
//	8   options
//
// A datagram that does not begin like that is a datagram.
func (d *LinkDecoder) geneve(h *Headers) error {
	b := h.at.rest()
	if len(b) < 8 || b[0]>>6 != 0 || b[1]&0x3f|b[7] != 0 {
		return nil
	}
	t := binary.BigEndian.Uint16(b[2:])
	if !carried(t) {
		return nil
	}
	header := 8 + 4*int(b[0]&0x3f)
	if len(b) < header {
		return h.at.short("geneve", header)
	}
	h.at.offset += header
	if err := h.enter(tunnelGeneve, binary.BigEndian.Uint32(b[4:])>>8, false); err != nil {
		return err
	}
	return d.inner(h, t)
}
