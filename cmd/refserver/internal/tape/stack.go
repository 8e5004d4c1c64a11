package tape

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// Packet is one packet on the wire, with what it carries of a payload: of a
// datagram's, or of a segment's.
type Packet struct {
	Data     []byte // from the link layer on
	From, To int    // bytes of the payload that it carries
	Start    int    // offset in Data of the first of them
}

// Captured returns how many bytes of the payload are among the first n of Data.
func (p *Packet) Captured(n int) int { return max(0, min(p.To-p.From, n-p.Start)) }

// Flags are the flags of a segment.
type Flags uint8

// The flags, RFC 9293 section 3.1.
const (
	FIN Flags = 1 << iota
	SYN
	RST
	PSH
	ACK
)

// Segment is a TCP segment as its sender makes it.
type Segment struct {
	Src, Dst netip.AddrPort
	Seq, Ack uint32
	Flags    Flags
	Window   uint16
	Data     []byte
}

const (
	defaultMTU  = 1500
	timeToLive  = 64
	header4     = 20
	header6     = 40
	headerPiece = 8 // of an IPv6 fragment
	headerUDP   = 8
	headerTCP   = 20
	pieceUnit   = 8 // fragments begin at multiples of it
)

// Stack builds the packets of a network's hosts. The zero Stack is Ethernet with
// an MTU of 1500 bytes.
type Stack struct {
	Link Link
	MTU  int // bytes of an IP packet

	ids map[netip.Addr]uint16 // the last IP identification of each host
}

// MSS returns the most bytes of a segment between these hosts.
func (s *Stack) MSS(a netip.Addr) int { return s.mtu() - ipHeader(a) - headerTCP }

func (s *Stack) mtu() int {
	if s.MTU == 0 {
		return defaultMTU
	}
	return s.MTU
}

func ipHeader(a netip.Addr) int {
	if a.Is4() {
		return header4
	}
	return header6
}

// nextID returns the next IP identification of a host.
func (s *Stack) nextID(a netip.Addr) uint16 {
	if s.ids == nil {
		s.ids = map[netip.Addr]uint16{}
	}
	s.ids[a]++
	return s.ids[a]
}

var serialize = gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}

// Segment returns the packet of a segment. A SYN carries its sender's MSS.
func (s *Stack) Segment(g *Segment) (Packet, error) {
	t := &layers.TCP{
		SrcPort: layers.TCPPort(g.Src.Port()), DstPort: layers.TCPPort(g.Dst.Port()), Seq: g.Seq, Ack: g.Ack, Window: g.Window,
		FIN: g.Flags&FIN != 0, SYN: g.Flags&SYN != 0, RST: g.Flags&RST != 0, PSH: g.Flags&PSH != 0, ACK: g.Flags&ACK != 0,
	}
	options := 0
	if g.Flags&SYN != 0 {
		mss := binary.BigEndian.AppendUint16(nil, uint16(s.MSS(g.Src.Addr())))
		t.Options = []layers.TCPOption{{OptionType: layers.TCPOptionKindMSS, OptionData: mss}}
		options = 4
	}
	src, dst := g.Src.Addr(), g.Dst.Addr()
	ip := s.ip(src, dst, layers.IPProtocolTCP, s.nextID(src))
	if err := t.SetNetworkLayerForChecksum(ip.(gopacket.NetworkLayer)); err != nil {
		return Packet{}, fmt.Errorf("segment from %v: %w", g.Src, err)
	}
	data, err := s.frame(src, dst, ip, t, gopacket.Payload(g.Data))
	if err != nil {
		return Packet{}, fmt.Errorf("segment from %v: %w", g.Src, err)
	}
	return Packet{Data: data, To: len(g.Data), Start: s.Link.size() + ipHeader(src) + headerTCP + options}, nil
}

// Datagram returns the packets of a datagram: one, or fragments where it is larger
// than the MTU.
func (s *Stack) Datagram(src, dst netip.AddrPort, data []byte) ([]Packet, error) {
	id := s.nextID(src.Addr())
	ip := s.ip(src.Addr(), dst.Addr(), layers.IPProtocolUDP, id)
	body, err := udp(src, dst, ip, data)
	if err != nil {
		return nil, fmt.Errorf("datagram from %v: %w", src, err)
	}
	most := s.mtu() - ipHeader(src.Addr())
	if len(body) <= most {
		b, err := s.frame(src.Addr(), dst.Addr(), ip, gopacket.Payload(body))
		if err != nil {
			return nil, fmt.Errorf("datagram from %v: %w", src, err)
		}
		return []Packet{{Data: b, To: len(data), Start: s.Link.size() + ipHeader(src.Addr()) + headerUDP}}, nil
	}
	return s.fragments(src.Addr(), dst.Addr(), id, body)
}

// udp returns a UDP header with the payload behind it. A checksum of zero is sent
// as all ones, RFC 768, which SerializeLayers leaves to us.
func udp(src, dst netip.AddrPort, ip gopacket.SerializableLayer, data []byte) ([]byte, error) {
	u := &layers.UDP{SrcPort: layers.UDPPort(src.Port()), DstPort: layers.UDPPort(dst.Port())}
	if err := u.SetNetworkLayerForChecksum(ip.(gopacket.NetworkLayer)); err != nil {
		return nil, err
	}
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, serialize, u, gopacket.Payload(data)); err != nil {
		return nil, err
	}
	b := buf.Bytes()
	if u.Checksum == 0 {
		b[6], b[7] = 0xff, 0xff
	}
	return b, nil
}

// fragments cuts an IP payload that is too large, RFC 791 section 3.2 and RFC 8200
// section 4.5. The payload begins with a UDP header, which no datagram counts.
func (s *Stack) fragments(src, dst netip.Addr, id uint16, body []byte) ([]Packet, error) {
	head := ipHeader(src)
	if src.Is6() {
		head += headerPiece
	}
	most := (s.mtu() - head) / pieceUnit * pieceUnit
	var list []Packet
	for at := 0; at < len(body); at += most {
		piece := body[at:min(at+most, len(body))]
		more := at+most < len(body)
		var b []byte
		var err error
		if src.Is4() {
			ip := s.ip(src, dst, layers.IPProtocolUDP, id).(*layers.IPv4)
			ip.Flags, ip.FragOffset = 0, uint16(at/pieceUnit)
			if more {
				ip.Flags = layers.IPv4MoreFragments
			}
			b, err = s.frame(src, dst, ip, gopacket.Payload(piece))
		} else {
			ip := s.ip(src, dst, layers.IPProtocolIPv6Fragment, id)
			b, err = s.frame(src, dst, ip, gopacket.Payload(fragmentHeader(id, at, more)), gopacket.Payload(piece))
		}
		if err != nil {
			return nil, fmt.Errorf("fragment from %v: %w", src, err)
		}
		p := Packet{Data: b, From: at - headerUDP, To: at - headerUDP + len(piece), Start: s.Link.size() + head}
		if at == 0 {
			p.From, p.Start = 0, p.Start+headerUDP
		}
		list = append(list, p)
	}
	return list, nil
}

// fragmentHeader is the one of IPv6: next header, reserved 1 + 1, offset in units
// of 8 bytes with the flag of more to come in its lowest bit 2, identification 4.
func fragmentHeader(id uint16, at int, more bool) []byte {
	offset := uint16(at)
	if more {
		offset |= 1
	}
	b := []byte{byte(layers.IPProtocolUDP), 0}
	b = binary.BigEndian.AppendUint16(b, offset)
	return binary.BigEndian.AppendUint32(b, uint32(id))
}

// ip returns the IP header between two hosts.
func (s *Stack) ip(src, dst netip.Addr, protocol layers.IPProtocol, id uint16) gopacket.SerializableLayer {
	if src.Is4() {
		return &layers.IPv4{
			Version: 4, Id: id, TTL: timeToLive, Protocol: protocol, SrcIP: src.AsSlice(), DstIP: dst.AsSlice(),
		}
	}
	return &layers.IPv6{Version: 6, HopLimit: timeToLive, NextHeader: protocol, SrcIP: src.AsSlice(), DstIP: dst.AsSlice()}
}

// frame returns a packet with these layers behind the link layer.
func (s *Stack) frame(src, dst netip.Addr, inner ...gopacket.SerializableLayer) ([]byte, error) {
	protocol := layers.EthernetTypeIPv4
	if src.Is6() {
		protocol = layers.EthernetTypeIPv6
	}
	buf := gopacket.NewSerializeBuffer()
	list := append(s.Link.layers(src, dst, protocol), inner...)
	if err := gopacket.SerializeLayers(buf, serialize, list...); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}
