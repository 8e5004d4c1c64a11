package tape

import (
	"encoding/binary"
	"net"
	"net/netip"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// LinkType is the link-layer header type, as in https://www.tcpdump.org/linktypes.html.
type LinkType uint16

// The link types that are written.
const (
	Ethernet LinkType = 1
	Cooked   LinkType = 113 // LINKTYPE_LINUX_SLL, the "any" device of Linux
	Cooked2  LinkType = 276 // LINKTYPE_LINUX_SLL2, the same with the interface
)

// Link says what stands in front of IP. The zero Link is Ethernet II.
type Link struct {
	Type LinkType
	VLAN uint16 // identifier of an 802.1Q tag, 0 for no tag
	// Host is the capturing host: the packets it sends are outgoing ones where the
	// header can say so.
	Host netip.Addr
}

// linkType returns the type, which is Ethernet where none is set.
func (l Link) linkType() LinkType {
	if l.Type == 0 {
		return Ethernet
	}
	return l.Type
}

const (
	packetToHost   = 0 // of the cooked headers: to the capturing host
	packetToAll    = 1 // by broadcast
	packetOutgoing = 4 // from it
	hardwareEther  = 1 // ARPHRD_ETHER
	tagSize        = 4 // of an 802.1Q tag
)

// layers returns the link-layer headers of an IP packet.
func (l Link) layers(src, dst netip.Addr, protocol layers.EthernetType) []gopacket.SerializableLayer {
	outer := protocol
	var list []gopacket.SerializableLayer
	if l.VLAN != 0 {
		outer = layers.EthernetTypeDot1Q
		list = append(list, &layers.Dot1Q{VLANIdentifier: l.VLAN, Type: protocol})
	}
	var head gopacket.SerializableLayer
	switch l.linkType() {
	case Cooked:
		head = gopacket.Payload(l.cooked(src, dst, outer))
	case Cooked2:
		head = gopacket.Payload(l.cooked2(src, dst, outer))
	default:
		head = &layers.Ethernet{SrcMAC: hardwareAddress(src), DstMAC: hardwareAddress(dst), EthernetType: outer}
	}
	return append([]gopacket.SerializableLayer{head}, list...)
}

// size returns the bytes in front of IP.
func (l Link) size() int {
	size := map[LinkType]int{Ethernet: 14, Cooked: 16, Cooked2: 20}[l.linkType()]
	if l.VLAN != 0 {
		size += tagSize
	}
	return size
}

// cooked returns a header of version 1:
//
//	0   packet type, ARPHRD type, length of the address  2 + 2 + 2
//	6   address of the sender, padded                    8
//	14  protocol, an EtherType                           2
//
// Source: https://www.tcpdump.org/linktypes/LINKTYPE_LINUX_SLL.html.
func (l Link) cooked(src, dst netip.Addr, protocol layers.EthernetType) []byte {
	b := make([]byte, 0, 16)
	b = binary.BigEndian.AppendUint16(b, l.packetType(src, dst))
	b = binary.BigEndian.AppendUint16(b, hardwareEther)
	b = binary.BigEndian.AppendUint16(b, 6)
	b = append(append(b, hardwareAddress(src)...), 0, 0)
	return binary.BigEndian.AppendUint16(b, uint16(protocol))
}

// cooked2 returns a header of version 2:
//
//	0   protocol, an EtherType; reserved    2 + 2
//	4   interface index                     4
//	8   ARPHRD type                         2
//	10  packet type, length of the address  1 + 1
//	12  address of the sender, padded       8
//
// Source: https://www.tcpdump.org/linktypes/LINKTYPE_LINUX_SLL2.html.
func (l Link) cooked2(src, dst netip.Addr, protocol layers.EthernetType) []byte {
	b := make([]byte, 0, 20)
	b = binary.BigEndian.AppendUint16(b, uint16(protocol))
	b = binary.BigEndian.AppendUint16(b, 0)
	b = binary.BigEndian.AppendUint32(b, 2)
	b = binary.BigEndian.AppendUint16(b, hardwareEther)
	b = append(b, byte(l.packetType(src, dst)), 6)
	return append(append(b, hardwareAddress(src)...), 0, 0)
}

func (l Link) packetType(src, dst netip.Addr) uint16 {
	switch {
	case src == l.Host:
		return packetOutgoing
	case dst == broadcast:
		return packetToAll
	}
	return packetToHost
}

// broadcast is the address of everybody on the network.
var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// hardwareAddress returns the address of the only interface of a host: a locally
// administered one that ends like the host's IP address. That of everybody is all
// ones.
func hardwareAddress(a netip.Addr) net.HardwareAddr {
	if a == broadcast {
		return net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	}
	b := a.AsSlice()
	return append(net.HardwareAddr{0x02, 0x00}, b[len(b)-4:]...)
}
