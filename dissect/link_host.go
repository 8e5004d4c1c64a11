package dissect

import "encoding/binary"

// What a host puts in front of the packets that it captures, beside what cooked captures have.

// What netfilter tells of a packet, of which this is looked into. Source:
// https://www.tcpdump.org/linktypes/LINKTYPE_NFLOG.html.
const (
	nflogReceived = 4 // interface 4
	nflogSent     = 5 // interface 4
	nflogPayload  = 9 // the packet, from its network layer on

	nflogFlags = 0xc000 // beside the type
)

// nflog decodes family 1, version 1, group 2, and notes, of which the payload is one:
//
//	0   length, with this   2
//	2   type                2
//	4   value, padded to a multiple of 4 bytes
//
// Lengths and types are in the order of the host that wrote the file.
func (d *LinkDecoder) nflog(h *Headers) error {
	b, err := h.at.need("nflog", 4)
	if err != nil {
		return err
	}
	h.at.offset += 4
	order := noteOrder(h.at.rest())
	for h.at.left() > 0 {
		note, err := h.at.need("nflog note", 4)
		if err != nil {
			return err
		}
		n, kind := int(order.Uint16(note)), order.Uint16(note[2:])&^nflogFlags
		switch {
		case n < 4 || n > h.at.left():
			return h.at.malformed("nflog note", "length", 0, "4 or more, within the packet", n)
		case kind == nflogPayload:
			h.at.offset += 4
			h.at.cut(n - 4)
			return d.family(h, b[0])
		}
		if err := h.noted(kind, n); err != nil {
			return err
		}
	}
	return nil
}

// noteOrder tells the order by the first note: no type has more than 8 bits, so one of its
// two bytes is 0, and the first one has no flags.
func noteOrder(b []byte) binary.ByteOrder {
	if len(b) >= 4 && b[2] == 0 {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// noted takes what a note of n bytes tells of the packet's passage, and passes over it. Of
// a packet on its way, the interface that it leaves by is told last.
func (h *Headers) noted(kind uint16, n int) error {
	padded := min((n+3)&^3, h.at.left())
	b, err := h.at.need("nflog note", padded)
	if err != nil {
		return err
	}
	h.at.offset += padded
	if n != 8 {
		return nil
	}
	switch index := int(binary.BigEndian.Uint32(b[4:])); kind {
	case nflogReceived:
		h.PacketType, h.Interface = Incoming, index
	case nflogSent:
		h.PacketType, h.Interface = Outgoing, index
	}
	return nil
}

// family goes on with what an address family of Linux names.
func (d *LinkDecoder) family(h *Headers, n uint8) error {
	switch n {
	case 2:
		return d.ip4(h)
	case 10:
		return d.ip6(h)
	}
	return nil
}

// pktap decodes what macOS tells of a packet, little-endian:
//
//	0   length of it all        4
//	4   what follows            4: 1 for a packet
//	8   link type of that       4
//	12  name of the interface   24
//	36  flags                   4: 1 received, 2 sent
//	40  processes, and more
//
// Source: bsd/net/pktap.h of XNU, struct pktap_header.
func (d *LinkDecoder) pktap(h *Headers) error {
	b, err := h.at.need("pktap", 40)
	if err != nil {
		return err
	}
	switch flags := b[36]; {
	case flags&1 != 0:
		h.PacketType = Incoming
	case flags&2 != 0:
		h.PacketType = Outgoing
	}
	if binary.LittleEndian.Uint32(b[4:]) != 1 {
		return nil
	}
	n := int(binary.LittleEndian.Uint32(b))
	if n < 40 || n > h.at.left() {
		return h.at.malformed("pktap", "length", 0, "40 or more, within the packet", n)
	}
	return d.behind(h, "pktap", n, 8)
}

// ppi decodes version 1, flags 1, length of it all 2, link type of the packet 4, notes;
// little-endian. Source: CACE Technologies, PPI Per-Packet Information Header, version 1.0.10.
func (d *LinkDecoder) ppi(h *Headers) error {
	b, err := h.at.need("ppi", 8)
	if err != nil {
		return err
	}
	n := int(binary.LittleEndian.Uint16(b[2:]))
	if n < 8 || n > h.at.left() {
		return h.at.malformed("ppi", "length", 2, "8 or more, within the packet", n)
	}
	return d.behind(h, "ppi", n, 4)
}

// behind goes on with a packet behind notes of n bytes, which have its link type at some
// place. Notes behind notes are nobody's, and would have no end.
func (d *LinkDecoder) behind(h *Headers, layer string, n, typeAt int) error {
	b, err := h.at.need(layer, n)
	if err != nil {
		return err
	}
	t := LinkType(binary.LittleEndian.Uint32(b[typeAt:]))
	if t == LinkPKTAP || t == LinkPPI {
		return h.at.malformed(layer, "link_type", typeAt, "that of a packet", int(t))
	}
	h.at.offset += n
	return d.link(h, t)
}
