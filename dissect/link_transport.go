package dissect

import (
	"encoding/binary"
	"net/netip"
	"strings"
)

// transport decodes what IP carries.
func (d *LinkDecoder) transport(h *Headers, protocol uint8) error {
	switch protocol {
	case ipTCP:
		return h.tcp()
	case ipUDP:
		return d.udp(h)
	case ipICMP:
		return h.icmp("icmp", icmpQuotes)
	case ipICMP6:
		return h.icmp("icmp6", icmp6Quotes)
	case ipIP4, ipIP6:
		return d.ipInIP(h, protocol)
	case ipGRE:
		return d.gre(h)
	}
	return nil
}

// TCPFlags are the flags of a segment.
type TCPFlags uint8

// The flags, RFC 9293 section 3.1.
const (
	FIN TCPFlags = 1 << iota
	SYN
	RST
	PSH
	ACK
	URG
	ECE
	CWR
)

// String returns the names of the flags that are set, as "SYN ACK".
func (f TCPFlags) String() string {
	var names []string
	for i, name := range [...]string{"FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"} {
		if f>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// tcp decodes TCP, RFC 9293 section 3.1:
//
//	0   source, destination port   2 + 2
//	4   sequence, acknowledgement  4 + 4
//	12  header length              4 bits, in 4 bytes
//	13  flags                      1
//	14  window                     2
//	16  checksum, urgent pointer   2 + 2, not used here
//	20  options
//
// Options that the capture cut are no error: all that counts is in front of them.
func (h *Headers) tcp() error {
	h.Content = TCPContent
	b := h.ports()
	if len(b) < 20 {
		return h.at.short("tcp", 20)
	}
	header := int(b[12]>>4) * 4
	h.Seq, h.Ack = binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	h.Flags = TCPFlags(b[13])
	h.Window = binary.BigEndian.Uint16(b[14:])
	if header < 20 || header > h.at.left() {
		return h.at.malformed("tcp", "header_length", 12, "20 or more, within the packet", header)
	}
	h.Options = b[20:min(header, len(b))]
	h.covered(b, h.at.left())
	h.at.sum(16)
	h.at.offset += header
	return nil
}

// udp decodes UDP, RFC 768: source and destination port 2 + 2, length 2, which
// rules, checksum 2. A length of 0 is right where the packet is longer than the
// field can say, RFC 2675 section 4.
func (d *LinkDecoder) udp(h *Headers) error {
	h.Content = UDPContent
	b := h.ports()
	if len(b) < 8 {
		return h.at.short("udp", 8)
	}
	n := int(binary.BigEndian.Uint16(b[4:]))
	if left := h.at.left(); n == 0 && (h.Presumed || left > 0xffff) {
		n = left
	} else if n < 8 || n > left {
		return h.at.malformed("udp", "length", 4, "8 or more, within the packet", n)
	}
	h.Surplus = h.at.cut(n)
	h.covered(b[:min(n, len(b))], n)
	h.at.sum(udpSum)
	h.at.offset += 8
	switch p := h.DstPort; {
	case p != vxlanPort && p != genevePort || d.owned(h.SrcPort) || d.owned(p):
		return nil
	case p == vxlanPort:
		return d.vxlan(h)
	}
	return d.geneve(h)
}

// covered notes what a transport's checksum covers, unless the capture has cut it.
func (h *Headers) covered(b []byte, length int) {
	if len(b) == length {
		h.transport = b
	}
}

// owned reports whether a protocol of ours has the port.
func (d *LinkDecoder) owned(port uint16) bool { return d.Owned != nil && d.Owned(port) }

// ports reads the ports that TCP and UDP begin with, as far as they are there,
// and returns what is.
func (h *Headers) ports() []byte {
	b := h.at.rest()
	h.SrcPort, h.DstPort = portsOf(b)
	return b
}

// portsOf returns the ports at the start of a transport header, 0 where it is cut.
func portsOf(b []byte) (src, dst uint16) {
	if len(b) < 4 {
		return 0, 0
	}
	return binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
}

// Message is an ICMP message. One that reports an error quotes the packet that
// it is about; the quote is not traffic, but says which flow is in trouble.
type Message struct {
	Type, Code uint8
	Quote      Quote
}

// Quote is the start of a packet in an ICMP message, as far as it goes: what is
// cut off is zero.
type Quote struct {
	Src, Dst         netip.Addr // invalid where there is no quote
	Protocol         uint8
	SrcPort, DstPort uint16
}

// icmpQuotes reports whether an ICMP message has a quote: unreachable, source
// quench, redirect, time exceeded, parameter problem. RFC 792.
func icmpQuotes(t uint8) bool {
	return t == 3 || t == 4 || t == 5 || t == 11 || t == 12
}

// icmp6Quotes does so for ICMPv6, where the types below 128 report errors. RFC
// 4443 section 2.1.
func icmp6Quotes(t uint8) bool { return t < 128 }

// icmp decodes ICMP of either version: type 1, code 1, checksum 2, and 4 bytes
// that depend on the type, behind which there may be a quote. The payload is what
// follows the first 4 bytes.
func (h *Headers) icmp(layer string, quotes func(uint8) bool) error {
	h.Content = ICMPContent
	b, err := h.at.need(layer, 4)
	if err != nil {
		return err
	}
	h.Message = Message{Type: b[0], Code: b[1]}
	h.at.sum(2)
	h.at.offset += 4
	if quotes(b[0]) && len(b) > 8 {
		h.Message.Quote = quote(b[8:])
	}
	return nil
}

// quote reads a packet without expecting it to be whole.
func quote(b []byte) Quote {
	switch {
	case len(b) >= 20 && b[0]>>4 == 4:
		return quote4(b)
	case len(b) >= 40 && b[0]>>4 == 6:
		return quote6(b)
	}
	return Quote{}
}

// quote4 reads a quoted IPv4 packet.
func quote4(b []byte) Quote {
	q := Quote{
		Src:      netip.AddrFrom4([4]byte(b[12:16])),
		Dst:      netip.AddrFrom4([4]byte(b[16:20])),
		Protocol: b[9],
	}
	header := int(b[0]&0x0f) * 4
	first := binary.BigEndian.Uint16(b[6:])&0x1fff == 0
	if first && header >= 20 && len(b) > header {
		q.setPorts(b[header:])
	}
	return q
}

// quote6 reads a quoted IPv6 packet.
func quote6(b []byte) Quote {
	q := Quote{
		Src:      netip.AddrFrom16([16]byte(b[8:24])),
		Dst:      netip.AddrFrom16([16]byte(b[24:40])),
		Protocol: b[6],
	}
	for b = b[40:]; len(b) >= 8; {
		n := 8
		switch q.Protocol {
		case ipHopByHop, ipRouting, ipDestination:
			n += 8 * int(b[1])
		case ipFragment:
			if binary.BigEndian.Uint16(b[2:])&0xfff8 != 0 {
				q.Protocol = b[0]
				return q
			}
		default:
			q.setPorts(b)
			return q
		}
		q.Protocol = b[0]
		b = b[min(n, len(b)):]
	}
	q.setPorts(b)
	return q
}

// setPorts takes the ports from the start of a transport header that has some.
func (q *Quote) setPorts(b []byte) {
	if q.Protocol == ipTCP || q.Protocol == ipUDP {
		q.SrcPort, q.DstPort = portsOf(b)
	}
}

// Trouble says in words what an ICMP message reports, and "" for one that
// reports no error.
func (h *Headers) Trouble() string {
	if h.Content != ICMPContent {
		return ""
	}
	m := h.Message
	if h.Protocol == ipICMP6 {
		return trouble6(m.Type, m.Code)
	}
	return trouble4(m.Type, m.Code)
}

// trouble4 names the errors of ICMP.
func trouble4(t, code uint8) string {
	switch t {
	case 3:
		switch code {
		case 0:
			return "network unreachable"
		case 1:
			return "host unreachable"
		case 2:
			return "protocol unreachable"
		case 3:
			return "port unreachable"
		case 4:
			return "fragmentation needed"
		case 9, 10, 13:
			return "administratively prohibited"
		}
		return "destination unreachable"
	case 4:
		return "source quench"
	case 5:
		return "redirect"
	case 11:
		return "time exceeded"
	case 12:
		return "parameter problem"
	}
	return ""
}

// trouble6 names the errors of ICMPv6.
func trouble6(t, code uint8) string {
	switch t {
	case 1:
		switch code {
		case 0:
			return "no route"
		case 1:
			return "administratively prohibited"
		case 3:
			return "address unreachable"
		case 4:
			return "port unreachable"
		}
		return "destination unreachable"
	case 2:
		return "packet too big"
	case 3:
		return "time exceeded"
	case 4:
		return "parameter problem"
	}
	return ""
}
