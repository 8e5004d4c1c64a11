package dissect

import (
	"encoding/binary"
	"net/netip"
)

// The IP protocol numbers that are looked into. Source:
// https://www.iana.org/assignments/protocol-numbers.
const (
	ipHopByHop    = 0
	ipICMP        = 1
	ipIP4         = 4
	ipTCP         = 6
	ipUDP         = 17
	ipIP6         = 41
	ipRouting     = 43
	ipFragment    = 44
	ipGRE         = 47
	ipAuth        = 51
	ipICMP6       = 58
	ipNothing     = 59
	ipDestination = 60
)

// ip4 decodes IPv4, RFC 791 section 3.1:
//
//	0   version, header length   4 bits + 4 bits, the length in 4 bytes
//	2   total length             2
//	4   identification           2
//	6   flags, fragment offset   3 bits + 13 bits, the offset in 8 bytes
//	9   protocol                 1
//	12  source, destination      4 + 4
//	20  options
//
// The total length rules: what the link layer has beyond it is padding. A total
// length of 0 is what a network card that segments for the host is handed.
func (d *LinkDecoder) ip4(h *Headers) error {
	b := h.at.rest()
	if len(b) < 20 {
		return h.at.short("ip4", 20)
	}
	if version := b[0] >> 4; version != 4 {
		return h.at.malformed("ip4", "version", 0, "4", int(version))
	}
	header := int(b[0]&0x0f) * 4
	if header < 20 {
		return h.at.malformed("ip4", "header_length", 0, "20 or more", header)
	}
	total := int(binary.BigEndian.Uint16(b[2:]))
	if total == 0 {
		total, h.Presumed = h.at.left(), true
	}
	if total < header {
		return h.at.malformed("ip4", "total_length", 2, "the header's length or more", total)
	}
	h.Content = OtherIP
	h.Src = netip.AddrFrom4([4]byte(b[12:16]))
	h.Dst = netip.AddrFrom4([4]byte(b[16:20]))
	h.Protocol = b[9]
	h.at.cut(total)
	if b = b[:min(len(b), total)]; len(b) < header {
		return h.at.short("ip4", header)
	}
	h.network, h.ip = b, b[:header]
	h.at.offset += header

	if place := binary.BigEndian.Uint16(b[6:]); place&0x3fff != 0 {
		h.fragment(uint32(binary.BigEndian.Uint16(b[4:])), int(place&0x1fff)*8, place&0x2000 != 0)
		return nil
	}
	return d.upper(h, b[9])
}

// ip6 decodes IPv6, RFC 8200 section 3:
//
//	0   version, class, flow label   4
//	4   payload length               2
//	6   next header                  1
//	8   source, destination          16 + 16
//
// A payload length of 0 stands for one that does not fit: a hop-by-hop option
// has it, or nothing does where a network card segments for the host.
func (d *LinkDecoder) ip6(h *Headers) error {
	b, err := h.at.need("ip6", 40)
	if err != nil {
		return err
	}
	if version := b[0] >> 4; version != 6 {
		return h.at.malformed("ip6", "version", 0, "6", int(version))
	}
	h.Content = OtherIP
	h.Src = netip.AddrFrom16([16]byte(b[8:24]))
	h.Dst = netip.AddrFrom16([16]byte(b[24:40]))
	h.Protocol = b[6]
	h.at.offset += 40
	switch n := int(binary.BigEndian.Uint16(b[4:])); {
	case n > 0 || b[6] == ipNothing:
		h.at.cut(n)
	case b[6] == ipHopByHop:
		jumbo, ok := jumboLength(h.at.rest())
		h.Presumed = !ok
		if ok {
			h.at.cut(jumbo)
		}
	default:
		h.Presumed = true
	}
	h.network = h.at.data[h.at.offset-40:]
	return d.upper(h, b[6])
}

// jumboLength returns the payload length in a hop-by-hop header, RFC 2675
// section 2: option type 0xc2, length 4, the number 4.
func jumboLength(b []byte) (n int, ok bool) {
	if len(b) < 8 || len(b) < 8+8*int(b[1]) {
		return 0, false
	}
	options := b[2 : 8+8*int(b[1])]
	for len(options) >= 2 {
		if options[0] == 0 { // one byte of padding, without a length
			options = options[1:]
			continue
		}
		whole := 2 + int(options[1])
		if whole > len(options) {
			return 0, false
		}
		if options[0] == 0xc2 && whole == 6 {
			n := binary.BigEndian.Uint32(options[2:])
			return int(n), n > 0xffff && n < 1<<31
		}
		options = options[whole:]
	}
	return 0, false
}

// upper goes on with what an IP header names, through the extension headers of
// IPv6, RFC 8200 section 4, and the authentication header of either version.
func (d *LinkDecoder) upper(h *Headers, next uint8) error {
	for {
		h.Protocol = next
		var err error
		switch {
		case next == ipAuth:
			next, err = h.extension("ah", 4)
		case h.Src.Is4():
			return d.transport(h, next)
		case next == ipHopByHop, next == ipRouting, next == ipDestination:
			next, err = h.extension("ip6 extension", 8)
		case next == ipFragment:
			next, err = h.fragment6()
		default:
			return d.transport(h, next)
		}
		if err != nil || h.Content == FragmentContent {
			return err
		}
	}
}

// extension passes over a header that begins with the next protocol 1 and its
// length 1, in units and without its first 8 bytes.
func (h *Headers) extension(layer string, unit int) (next uint8, err error) {
	b, err := h.at.need(layer, 8)
	if err != nil {
		return 0, err
	}
	n := 8 + unit*int(b[1])
	if len(b) < n {
		return 0, h.at.short(layer, n)
	}
	h.at.offset += n
	return b[0], nil
}

// fragment6 decodes the fragment header of IPv6: next header 1, reserved 1,
// offset in 8 bytes and flags 13 bits + 3 bits, identification 4.
func (h *Headers) fragment6() (next uint8, err error) {
	b, err := h.at.need("ip6 fragment", 8)
	if err != nil {
		return 0, err
	}
	h.at.offset += 8
	h.Protocol = b[0]
	// A piece that is neither moved nor followed is whole, RFC 6946.
	if place := binary.BigEndian.Uint16(b[2:]); place&0xfff9 != 0 {
		h.fragment(binary.BigEndian.Uint32(b[4:]), int(place&0xfff8), place&1 != 0)
	}
	return b[0], nil
}

// fragment stops at a piece of a packet: the transport header is in the first
// piece only, and that may not have all of it.
func (h *Headers) fragment(id uint32, offset int, more bool) {
	h.Content = FragmentContent
	h.Piece = Piece{ID: id, Offset: offset, More: more}
}
