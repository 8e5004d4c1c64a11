package dissect

import (
	"encoding/binary"
	"math/bits"
)

// Checksums are looked at, and nothing is dropped for a wrong one: the packets that
// the capturing host itself sends have theirs filled in by the network card, behind
// the place where they are captured.

// wrongSum says which layer of a packet has a wrong checksum, and which; "" when none
// has, or when the capture does not have all that it covers. A UDP checksum of 0 over IPv4 says
// that there is none (RFC 768).
func (h *Headers) wrongSum() (layer string, given uint16) {
	if b := h.ip; b != nil && fold(sum(0, b)) != 0xffff {
		return "ip", binary.BigEndian.Uint16(b[10:])
	}
	b, at := h.transport, 16
	layer = "tcp"
	if h.Content == UDPContent {
		layer, at = "udp", 6
	}
	if b == nil {
		return "", 0
	}
	given = binary.BigEndian.Uint16(b[at:])
	if given == 0 && layer == "udp" && h.Src.Is4() || fold(sum(h.pseudo(len(b)), b)) == 0xffff {
		return "", given
	}
	return layer, given
}

// pseudo sums up the header that stands for the addresses, RFC 9293 section 3.1 and
// RFC 8200 section 8.1.
func (h *Headers) pseudo(length int) uint64 {
	total := uint64(length) + uint64(h.Protocol)
	if h.Src.Is4() {
		src, dst := h.Src.As4(), h.Dst.As4()
		return total + uint64(binary.BigEndian.Uint32(src[:])) + uint64(binary.BigEndian.Uint32(dst[:]))
	}
	src, dst := h.Src.As16(), h.Dst.As16()
	return sum(sum(total, src[:]), dst[:])
}

// sum adds up b, in 16-bit words in network order, to a total that fold makes 16 bits of.
func sum(total uint64, b []byte) uint64 {
	var carry uint64
	for ; len(b) >= 32; b = b[32:] {
		total, carry = bits.Add64(total, binary.BigEndian.Uint64(b), carry)
		total, carry = bits.Add64(total, binary.BigEndian.Uint64(b[8:]), carry)
		total, carry = bits.Add64(total, binary.BigEndian.Uint64(b[16:]), carry)
		total, carry = bits.Add64(total, binary.BigEndian.Uint64(b[24:]), carry)
	}
	for ; len(b) >= 8; b = b[8:] {
		total, carry = bits.Add64(total, binary.BigEndian.Uint64(b), carry)
	}
	var rest uint64
	if len(b) >= 4 {
		rest, b = uint64(binary.BigEndian.Uint32(b)), b[4:]
	}
	if len(b) >= 2 {
		rest, b = rest+uint64(binary.BigEndian.Uint16(b)), b[2:]
	}
	if len(b) > 0 {
		rest += uint64(b[0]) << 8
	}
	total, carry = bits.Add64(total, rest, carry)
	return total + carry
}

// fold adds up the 16-bit words of a sum, and what that carries over.
func fold(total uint64) uint16 {
	total = total>>32 + total&0xffffffff // of 33 bits
	total = total>>16 + total&0xffff     // of 18
	total = total>>16 + total&0xffff     // of 17
	return uint16(total>>16 + total)
}
