package dissect

import "encoding/binary"

// mpls passes over the labels of MPLS, RFC 3032 section 2.1, up to the one that says that
// it is the last: label 20 bits, class 3, last 1, time to live 8. The two directions
// of a flow have different labels, so they name no tunnel.
//
// Nothing says what the labels carry. IP is told by its version, RFC 4928 section 2, which
// leaves to others what begins with neither 4 nor 6.
func (d *LinkDecoder) mpls(h *Headers) error {
	for last := false; !last; {
		b, err := h.at.need("mpls", 4)
		if err != nil {
			return err
		}
		h.at.offset += 4
		last = b[2]&1 != 0
	}
	b, err := h.at.need("mpls payload", 1)
	if err != nil {
		return err
	}
	switch b[0] >> 4 {
	case 4:
		return d.ip4(h)
	case 6:
		return d.ip6(h)
	}
	if !isPseudowire(b) {
		return nil
	}
	h.at.offset += controlWord
	if err := h.enter(tunnelPseudowire, 0, false); err != nil {
		return err
	}
	return d.ethernet(h)
}

// controlWord is the length of what a pseudowire has in front of Ethernet, where it has
// something: zeros 2, sequence 2. RFC 4448 section 4.6.
const controlWord = 4

// isPseudowire reports whether there is a control word and then Ethernet with IP in it. An
// address of Ethernet may begin like a control word, so all of it must be there and fit.
func isPseudowire(b []byte) bool {
	const typeAt = controlWord + 12
	if len(b) < typeAt || b[0]|b[1] != 0 {
		return false
	}
	b = b[typeAt:]
	for len(b) >= 4 && isTag(binary.BigEndian.Uint16(b)) {
		b = b[4:]
	}
	if len(b) < 3 {
		return false
	}
	t, version := binary.BigEndian.Uint16(b), b[2]>>4
	return t == etherIP4 && version == 4 || t == etherIP6 && version == 6
}
