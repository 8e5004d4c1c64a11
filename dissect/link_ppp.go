package dissect

import "encoding/binary"

// Lines between two hosts, where a protocol of PPP takes the place of an EtherType.

// The PPP protocols that are looked into. Source:
// https://www.iana.org/assignments/ppp-numbers.
const (
	pppIP4     = 0x0021
	pppIP6     = 0x0057
	pppMPLS    = 0x0281
	pppMPLSAll = 0x0283
)

// ppp decodes PPP, RFC 1661 section 2: protocol 2, whose first byte is left out where
// both have agreed on it (section 6.5): an odd byte is the last one. Where the line is
// framed as by HDLC, address 0xff and control 0x03 stand in front, RFC 1662 section 3.1.
func (d *LinkDecoder) ppp(h *Headers) error {
	b, err := h.at.need("ppp", 2)
	if err == nil && b[0] == 0xff && b[1] == 0x03 {
		h.at.offset += 2
		b, err = h.at.need("ppp", 2)
	}
	if err != nil {
		return err
	}
	protocol, size := uint16(b[0]), 1
	if protocol&1 == 0 {
		protocol, size = binary.BigEndian.Uint16(b), 2
	}
	h.at.offset += size
	switch protocol {
	case pppIP4:
		return d.ip4(h)
	case pppIP6:
		return d.ip6(h)
	case pppMPLS, pppMPLSAll:
		return d.mpls(h)
	}
	return nil
}

// hdlc decodes PPP, or what Cisco has in its place. The address tells them apart: 0x0f is
// for one host, 0x8f for all.
// Source: https://www.tcpdump.org/linktypes.html, LINKTYPE_PPP_HDLC.
func (d *LinkDecoder) hdlc(h *Headers) error {
	if b := h.at.rest(); len(b) > 0 && b[0]&0x7f == 0x0f {
		return d.cisco(h)
	}
	return d.ppp(h)
}

// cisco decodes address 1, control 1, EtherType 2, RFC 1547 section 4.3.1.
func (d *LinkDecoder) cisco(h *Headers) error {
	b, err := h.at.need("hdlc", 4)
	if err != nil {
		return err
	}
	h.at.offset += 4
	return d.ether(h, binary.BigEndian.Uint16(b[2:]))
}

// pppoe decodes PPPoE, RFC 2516 section 4: version and type 1, code 1, session 2,
// length 2, and behind code 0 PPP. Other codes find and end sessions.
func (d *LinkDecoder) pppoe(h *Headers) error {
	b, err := h.at.need("pppoe", 6)
	if err != nil || b[1] != 0 {
		return err
	}
	n := int(binary.BigEndian.Uint16(b[4:]))
	if n < 2 {
		return h.at.malformed("pppoe", "length", 4, "2 or more", n)
	}
	h.at.offset += 6
	h.at.cut(n)
	if err := h.enter(tunnelPPPoE, uint32(binary.BigEndian.Uint16(b[2:])), false); err != nil {
		return err
	}
	return d.ppp(h)
}
