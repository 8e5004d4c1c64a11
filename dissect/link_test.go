package dissect

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"opscope/schema/wire"
)

// The pieces that packets are put together from. Each has what it carries last.
// All checksums are 0, which nobody minds (B52).

func be16(v int) string { return string(binary.BigEndian.AppendUint16(nil, uint16(v))) }
func le16(v int) string { return string(binary.LittleEndian.AppendUint16(nil, uint16(v))) }
func le32(v int) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(v))) }
func be32(v int) string { return string(binary.BigEndian.AppendUint32(nil, uint32(v))) }

const (
	macs  = "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02"
	addrA = "\x0a\x00\x00\x02"
	addrB = "\x0a\x00\x00\x01"
	wideA = "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02"
	wideB = "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"
)

func ether(t int, s string) string { return macs + be16(t) + s }

// ipv4 makes an IPv4 packet with options and what stands at offset 4: the
// identification, and flags with fragment offset.
func ipv4(protocol int, options, s string, fragment ...int) string {
	fragment = append(fragment, 0, 0)
	n := 20 + len(options)
	return string(rune(0x40|n/4)) + "\x00" + be16(n+len(s)) + be16(fragment[0]) + be16(fragment[1]) +
		"\x40" + string(rune(protocol)) + "\x00\x00" + addrA + addrB + options + s
}

// tlv makes a note of netfilter, its numbers in the order of a little-endian host.
func tlv(kind int, value string) string {
	return le16(4+len(value)) + le16(kind) + value + strings.Repeat("\x00", -len(value)&3)
}

// swapped makes one of a big-endian host.
func swapped(kind int, value string) string {
	return be16(4+len(value)) + be16(kind) + value + strings.Repeat("\x00", -len(value)&3)
}

// pktap makes what macOS tells of a packet, with nothing in most of it.
func pktap(next, link, flags int, s string) string {
	return le32(108) + le32(next) + le32(link) + "en0" + strings.Repeat("\x00", 21) + le32(flags) + strings.Repeat("\x00", 68) + s
}

// ppi makes notes of 4 bytes in front of a packet.
func ppi(link int, s string) string { return "\x00\x00" + le16(12) + le32(link) + "note" + s }

// snap is what stands in front of an EtherType in IEEE 802.2.
const snap = "\xaa\xaa\x03\x00\x00\x00"

// label makes a label of MPLS with class 5 and a time to live of 64: the last one where last is 1.
func label(n, last int) string { return be32(n<<12 | 5<<9 | last<<8 | 64) }

func ipv6(next int, s string) string {
	return "\x60\x00\x00\x00" + be16(len(s)) + string(rune(next)) + "\x40" + wideA + wideB + s
}

func udp(src, dst int, s string) string {
	return be16(src) + be16(dst) + be16(8+len(s)) + "\x00\x00" + s
}

func tcp(options, s string) string {
	return be16(50111) + be16(2627) + be32(0x01020304) + be32(0x05060708) +
		string([]byte{byte(20+len(options)) / 4 << 4, byte(PSH | ACK)}) + be16(512) + "\x00\x00\x00\x00" + options + s
}

// game is a datagram of ours.
var game = udp(50111, 2627, "payload")

func decode(link LinkType, s string) (Headers, error) {
	var d LinkDecoder
	var h Headers
	err := d.Decode(&h, &Packet{Data: []byte(s), Length: len(s), Link: link})
	return h, err
}

func mustDecode(t *testing.T, link LinkType, s string) Headers {
	t.Helper()
	h, err := decode(link, s)
	if err != nil {
		t.Fatalf("%v\n% x", err, s)
	}
	return h
}

// wantGame checks for the datagram of ours.
func wantGame(t *testing.T, h Headers) {
	t.Helper()
	if h.Content != UDPContent || h.Protocol != ipUDP || h.SrcPort != 50111 || h.DstPort != 2627 {
		t.Errorf("got content %d, protocol %d, %v to %v", h.Content, h.Protocol, h.Source(), h.Destination())
	}
	if string(h.Payload) != "payload" || h.PayloadLength != 7 {
		t.Errorf("got payload %q of %d bytes", h.Payload, h.PayloadLength)
	}
	if src := h.Src.String(); src != "10.0.0.2" && src != "2001:db8::2" {
		t.Errorf("got source %s", src)
	}
	if dst := h.Dst.String(); dst != "10.0.0.1" && dst != "2001:db8::1" {
		t.Errorf("got destination %s", dst)
	}
}

// B46, B47, B53: every way to our datagram.
func TestLinkLayers(t *testing.T) {
	v4, v6 := ipv4(ipUDP, "", game), ipv6(ipUDP, game)
	sll := be16(4) + be16(1) + be16(6) + "\x02\x00\x00\x00\x00\x01\x00\x00"
	sll2 := be16(0) + be32(3) + be16(1) + "\x00\x06" + "\x02\x00\x00\x00\x00\x01\x00\x00"
	for name, c := range map[string]struct {
		link LinkType
		data string
	}{
		"Ethernet with IPv4":                  {1, ether(etherIP4, v4)},
		"Ethernet with IPv6":                  {1, ether(etherIP6, v6)},
		"a VLAN tag":                          {1, ether(etherVLAN, be16(0x6007)+be16(etherIP4)+v4)},
		"two VLAN tags":                       {1, ether(etherQinQ, be16(5)+be16(etherVLAN)+be16(7)+be16(etherIP6)+v6)},
		"two VLAN tags of the old kind":       {1, ether(etherOldQinQ, be16(5)+be16(etherVLAN)+be16(7)+be16(etherIP4)+v4)},
		"cooked with IPv4":                    {113, sll + be16(etherIP4) + v4},
		"cooked with IPv6":                    {113, sll + be16(etherIP6) + v6},
		"cooked with a VLAN tag":              {113, sll + be16(etherVLAN) + be16(7) + be16(etherIP4) + v4},
		"cooked v2 with IPv4":                 {276, be16(etherIP4) + sll2 + v4},
		"cooked v2 with IPv6":                 {276, be16(etherIP6) + sll2 + v6},
		"null, little-endian":                 {0, "\x02\x00\x00\x00" + v4},
		"null, big-endian":                    {0, "\x00\x00\x00\x02" + v4},
		"null with IPv6 of Linux":             {0, "\x0a\x00\x00\x00" + v6},
		"null with IPv6 of Windows":           {0, "\x17\x00\x00\x00" + v6},
		"null with IPv6 of NetBSD":            {0, "\x18\x00\x00\x00" + v6},
		"null with IPv6 of FreeBSD":           {0, "\x1c\x00\x00\x00" + v6},
		"null with IPv6 of Darwin":            {0, "\x1e\x00\x00\x00" + v6},
		"null with IPv6, big-endian":          {0, "\x00\x00\x00\x1e" + v6},
		"null with an EtherType":              {0, "\x00\x00\x08\x00" + v4},
		"null with an EtherType, other order": {0, "\x00\x08\x00\x00" + v4},
		"null with the EtherType of IPv6":     {0, "\x00\x00\x86\xdd" + v6},
		"loop":                                {108, "\x00\x00\x00\x02" + v4},
		"loop with IPv6":                      {108, "\x00\x00\x00\x18" + v6},
		"raw 12":                              {12, v4},
		"raw 14":                              {14, v6},
		"raw 101":                             {101, v4},
		"raw 101 with IPv6":                   {101, v6},
		"raw IPv4":                            {228, v4},
		"raw IPv6":                            {229, v6},
		"PPP":                                 {9, "\x00\x21" + v4},
		"PPP with IPv6":                       {9, "\x00\x57" + v6},
		"PPP with a short protocol":           {9, "\x21" + v4},
		"PPP, framed":                         {9, "\xff\x03\x00\x21" + v4},
		"PPP, framed, with a short protocol":  {50, "\xff\x03\x57" + v6},
		"Cisco's HDLC in the place of PPP":    {50, "\x0f\x00\x08\x00" + v4},
		"the same, to all":                    {50, "\x8f\x00\x86\xdd" + v6},
		"Cisco's HDLC":                        {104, "\x0f\x00\x08\x00" + v4},
		"802.3":                               {1, ether(8+len(v4), snap+be16(etherIP4)+v4) + "pad"},
		"802.3 with IPv6":                     {1, ether(8+len(v6), snap+be16(etherIP6)+v6)},
		"802.3 behind a VLAN tag":             {1, ether(etherVLAN, be16(7)+be16(8+len(v4))+snap+be16(etherIP4)+v4)},
		"802.3 with a VLAN tag in it":         {1, ether(12+len(v4), snap+be16(etherVLAN)+be16(7)+be16(etherIP4)+v4)},
		"cooked with 802.2":                   {113, sll + be16(4) + snap + be16(etherIP4) + v4},
		"cooked v2 with 802.2":                {276, be16(4) + sll2 + snap + be16(etherIP6) + v6},
		"NFLOG":                               {239, "\x02\x00\x00\x05" + tlv(1, "\x08\x00\x01\x00") + tlv(10, "a prefix\x00") + tlv(9, v4)},
		"NFLOG with IPv6":                     {239, "\x0a\x00\x00\x05" + tlv(9, v6+"pad") + tlv(0x8012, "conntrack")},
		"NFLOG, big-endian":                   {239, "\x02\x00\x00\x05" + swapped(1, "\x08\x00\x01\x00") + swapped(10, "p\x00") + swapped(9, v4)},
		"PKTAP with Ethernet":                 {258, pktap(1, 1, 2, ether(etherIP4, v4))},
		"PKTAP with loopback":                 {258, pktap(1, 0, 1, "\x1e\x00\x00\x00"+v6)},
		"PKTAP with raw IP":                   {258, pktap(1, 12, 0, v4)},
		"PPI":                                 {192, ppi(1, ether(etherIP6, v6))},
		"MPLS":                                {1, ether(0x8847, label(16, 1)+v4)},
		"MPLS with three labels":              {1, ether(0x8847, label(16, 0)+label(1, 0)+label(2, 1)+v6)},
		"MPLS to several":                     {1, ether(0x8848, label(0, 1)+v4)},
		"MPLS behind a VLAN tag":              {1, ether(0x8100, be16(7)+be16(0x8847)+label(16, 1)+v4)},
		"cooked with MPLS":                    {113, sll + be16(0x8847) + label(16, 1) + v4},
		"PPP with MPLS":                       {9, "\xff\x03\x02\x81" + label(16, 1) + v4},
		"PPP with MPLS to several":            {50, "\x02\x83" + label(16, 1) + v6},
		"PPPoE":                               {51, "\x11\x00" + be16(3) + be16(2+len(v4)) + "\x00\x21" + v4 + "pad"},
	} {
		t.Run(name, func(t *testing.T) {
			h := mustDecode(t, c.link, c.data)
			wantGame(t, h)
			if strings.Contains(name, "VLAN") && (h.VLAN != 7 || h.Tags != 1+strings.Count(name, "two")) {
				t.Errorf("got VLAN %d, %d tags", h.VLAN, h.Tags)
			}
			if strings.HasPrefix(name, "cooked v2") && (h.PacketType != Incoming || h.Interface != 3) {
				t.Errorf("got packet type %q, interface %d", h.PacketType, h.Interface)
			}
			if c.link == LinkCooked && h.PacketType != Outgoing {
				t.Errorf("got packet type %q", h.PacketType)
			}
			if !c.link.Supported() {
				t.Errorf("link type %s decodes and is not called supported", c.link)
			}
		})
	}
}

// B46: which way a packet passed the host, where its link layer tells, also in a tunnel.
func TestPassages(t *testing.T) {
	v4 := ipv4(ipUDP, "", game)
	in, out := tlv(4, be32(2)), tlv(5, be32(3))
	log := func(notes string) string { return "\x02\x00\x00\x00" + tlv(1, "\x08\x00\x01\x00") + notes + tlv(9, v4) }
	for name, c := range map[string]struct {
		link LinkType
		data string
		want Passage
	}{
		"NFLOG, received":          {239, log(in), Passage{Type: Incoming, Interface: 2}},
		"NFLOG, sent":              {239, log(out), Passage{Type: Outgoing, Interface: 3}},
		"NFLOG, on its way":        {239, log(in + out), Passage{Type: Outgoing, Interface: 3}},
		"NFLOG, behind a bridge":   {239, log(tlv(6, be32(7)) + in), Passage{Type: Incoming, Interface: 2}},
		"NFLOG, nothing said":      {239, log(""), Passage{}},
		"NFLOG, an index of bytes": {239, log(tlv(4, "\x02")), Passage{}},
		"PKTAP, received":          {258, pktap(1, 101, 1, v4), Passage{Type: Incoming}},
		"PKTAP, sent":              {258, pktap(1, 101, 2, v4), Passage{Type: Outgoing}},
		"PKTAP, sent in a tunnel":  {258, pktap(1, 101, 2, vxlan(1, ether(etherIP4, v4))), Passage{Type: Outgoing}},
		"PKTAP, nothing said":      {258, pktap(1, 101, 0x40, v4), Passage{}},
	} {
		h := mustDecode(t, c.link, c.data)
		if wantGame(t, h); h.Passage() != c.want {
			t.Errorf("%s: got %+v", name, h.Passage())
		}
	}
}

// What is noted in front of a packet may be of any link type.
func TestUnsupportedBehindNotes(t *testing.T) {
	for link, data := range map[LinkType]string{192: ppi(105, "data"), 258: pktap(1, 105, 0, "data")} {
		h, err := decode(link, data)
		if err == nil || err.Error() != "link type 105 (IEEE802_11) is not supported" || string(h.Payload) != "data" {
			t.Errorf("got %v, payload %q", err, h.Payload)
		}
	}
}

// B46: an unknown link type is an error that names it.
func TestUnsupportedLinkTypes(t *testing.T) {
	for link, want := range map[LinkType]string{
		147:  "link type 147 (USER0) is not supported",
		162:  "link type 162 (USER15) is not supported",
		105:  "link type 105 (IEEE802_11) is not supported",
		127:  "link type 127 (IEEE802_11_RADIOTAP) is not supported",
		9999: "link type 9999 is not supported",
	} {
		h, err := decode(link, "data")
		var e *UnsupportedLinkError
		if !errors.As(err, &e) || e.Link != link || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if string(h.Payload) != "data" || link.Supported() {
			t.Errorf("got payload %q", h.Payload)
		}
	}
}

func TestNotIP(t *testing.T) {
	h := mustDecode(t, 1, ether(0x0806, "arp"))
	if h.Content != NotIP || h.EtherType != 0x0806 || string(h.Payload) != "arp" {
		t.Errorf("got %+v", h)
	}
	if h := mustDecode(t, 0, "\x07\x00\x00\x00iso"); h.Content != NotIP {
		t.Errorf("got %+v", h)
	}
	if h := mustDecode(t, 9, "\xff\x03\xc0\x21lcp"); h.Content != NotIP || string(h.Payload) != "lcp" {
		t.Errorf("got %+v", h)
	}
	for _, s := range []string{
		"\x10\x00\x00\x21alarm", // the associated channel, RFC 5586
		ether(etherIP4, "\x45"), // a pseudowire without a control word
		be32(1) + ether(etherIP4, "\x60"),
		be32(1) + ether(0x0806, "\x45"),
		"\x00\x40\x00\x01" + ether(etherIP4, "\x45"), // a control word of something else, RFC 4385
		be32(1) + macs,
		be32(1) + macs + "\x81\x00\x00\x07",
	} {
		if h := mustDecode(t, 1, ether(0x8847, label(16, 1)+s)); h.Content != NotIP || string(h.Payload) != s || h.Tunnel != 0 {
			t.Errorf("% x: got %+v", s, h)
		}
	}
	for _, s := range []string{
		"\x42\x42\x03spanning tree",
		"\xff\xffIPX", // as Novell had it, without 802.2
		"\xaa\xaa\x03\x00\x00\x0c\x20\x00of another organization",
	} {
		if h := mustDecode(t, 1, ether(len(s), s)+"padding"); h.Content != NotIP || h.EtherType != 0 || string(h.Payload) != s {
			t.Errorf("%q: got %+v", s, h)
		}
	}
	// Lengths stand where a frame has them, and nowhere else.
	if h := mustDecode(t, 1, ether(10, snap+be16(2)+"??")); h.Content != NotIP || h.EtherType != 2 || string(h.Payload) != "??" {
		t.Errorf("got %+v", h)
	}
	if h := mustDecode(t, 113, "\x00\x04\x00\x01\x00\x06"+macs[:8]+be16(1)+"\xff\xffIPX"); h.Content != NotIP || h.EtherType != 1 || string(h.Payload) != "\xff\xffIPX" {
		t.Errorf("got %+v", h)
	}
	for link, s := range map[LinkType]string{
		239: "\x03\x00\x00\x05" + tlv(1, "\x08\x06\x01\x00") + tlv(9, "arp"), // of family 3
		258: pktap(0, 1, 0, "arp"),                                           // nothing follows
	} {
		if h := mustDecode(t, link, s); h.Content != NotIP || !strings.HasSuffix(string(h.Payload), "arp") {
			t.Errorf("%q: got %+v", s, h)
		}
	}
	if h := mustDecode(t, 239, "\x02\x00\x00\x05"+tlv(10, "odd")[:7]); h.Content != NotIP || len(h.Payload) != 0 {
		t.Errorf("got %+v", h)
	}
	if h := mustDecode(t, 51, "\x11\x09\x00\x00\x00\x00"); h.Content != NotIP || h.Tunnel != 0 { // it looks for a server
		t.Errorf("got %+v", h)
	}
	if h := mustDecode(t, 101, ipv4(89, "", "ospf")); h.Content != OtherIP || h.Protocol != 89 || string(h.Payload) != "ospf" {
		t.Errorf("got %+v", h)
	}
}

func TestTCP(t *testing.T) {
	h := mustDecode(t, 101, ipv4(ipTCP, "", tcp("\x01\x01\x01\x00", "data")))
	if h.Content != TCPContent || h.Seq != 0x01020304 || h.Ack != 0x05060708 || h.Window != 512 ||
		h.Flags.String() != "PSH ACK" || string(h.Options) != "\x01\x01\x01\x00" || string(h.Payload) != "data" {
		t.Errorf("got %+v", h)
	}
	if src, dst := h.Source().String(), h.Destination().String(); src != "10.0.0.2:50111" || dst != "10.0.0.1:2627" {
		t.Errorf("got %s to %s", src, dst)
	}
}

// B49: what the link layer pads is not payload.
func TestPaddingIsNotPayload(t *testing.T) {
	presumed := ipv4(ipUDP, "", udp(1, 2, "abc"))
	presumed = presumed[:2] + "\x00\x00" + presumed[4:] // only 802.3 says how long it is
	for name, c := range map[string]struct {
		data string
		want string
	}{
		"a bare acknowledgement": {ether(etherIP4, ipv4(ipTCP, "", tcp("", ""))) + "padpad", ""},
		"a short datagram":       {ether(etherIP4, ipv4(ipUDP, "", udp(1, 2, "abc"))) + "padding, padding", "abc"},
		"IPv6 with a trailer":    {ether(etherIP6, ipv6(ipUDP, udp(1, 2, "abc"))) + "fcs!", "abc"},
		"IPv4 of no length":      {ether(8+28+3, snap+be16(etherIP4)+presumed) + "padpad", "abc"},
		"IPv6 without a payload": {ether(etherIP6, ipv6(ipNothing, "")) + "padpad", ""},
	} {
		if h := mustDecode(t, 1, c.data); string(h.Payload) != c.want || h.PayloadLength != len(c.want) {
			t.Errorf("%s: got %q of %d bytes", name, h.Payload, h.PayloadLength)
		}
	}
}

// B50: an IP length of 0 is that of the packet.
func TestPresumedLengths(t *testing.T) {
	zero := func(s string, at int) string { return s[:at] + "\x00\x00" + s[at+2:] }
	big := strings.Repeat("x", 20_000)
	huge := strings.Repeat("x", 70_000)
	jumboHeader := func(n int) string { return "\x11\x00\xc2\x04" + be32(n) }
	for name, c := range map[string]struct {
		data     string
		want     int
		presumed bool
	}{
		"IPv4 with 20 kB of TCP":   {ether(etherIP4, zero(ipv4(ipTCP, "", tcp("", big)), 2)), 20_000, true},
		"IPv6 with 70 kB of TCP":   {ether(etherIP6, zero(ipv6(ipTCP, tcp("", huge)), 4)), 70_000, true},
		"IPv4 with 20 kB of UDP":   {ether(etherIP4, zero(ipv4(ipUDP, "", zero(udp(1, 2, big), 4)), 2)), 20_000, true},
		"IPv6 with a jumbo option": {ether(etherIP6, zero(ipv6(ipHopByHop, jumboHeader(8+8+70_000)+zero(udp(1, 2, huge), 4)), 4)) + "pad", 70_000, false},
	} {
		h := mustDecode(t, 1, c.data)
		if len(h.Payload) != c.want || h.PayloadLength != c.want || h.Presumed != c.presumed {
			t.Errorf("%s: got %d of %d bytes, presumed %v", name, len(h.Payload), h.PayloadLength, h.Presumed)
		}
	}
}

// B56, B58: headers between IP and the transport.
func TestExtensionsAndOptions(t *testing.T) {
	hop := func(next int, s string) string { return string(rune(next)) + "\x00\x01\x04\x00\x00\x00\x00" + s }
	long := func(next int, s string) string { return string(rune(next)) + "\x01" + strings.Repeat("\x00", 14) + s }
	auth := func(next int, s string) string { return string(rune(next)) + "\x04" + strings.Repeat("\x00", 22) + s }
	atomic := func(next int, s string) string { return string(rune(next)) + "\x00\x00\x00\x00\x00\x00\x07" + s }
	for name, data := range map[string]string{
		"IPv4 with options":            ipv4(ipUDP, "\x01\x01\x01\x00", game),
		"IPv4 with 40 bytes of them":   ipv4(ipUDP, strings.Repeat("\x01", 40), game),
		"IPv4 with don't fragment":     ipv4(ipUDP, "", game, 7, 0x4000),
		"IPv4 with authentication":     ipv4(ipAuth, "", auth(ipUDP, game)),
		"IPv6 hop-by-hop":              ipv6(ipHopByHop, hop(ipUDP, game)),
		"IPv6 with all of them":        ipv6(ipHopByHop, hop(ipDestination, hop(ipRouting, long(ipAuth, auth(ipDestination, long(ipUDP, game)))))),
		"IPv6 with an atomic fragment": ipv6(ipFragment, atomic(ipUDP, game)),
	} {
		t.Run(name, func(t *testing.T) { wantGame(t, mustDecode(t, 101, data)) })
	}
}

// B56, B58: fragments are handed on with their place, and decode once joined.
func TestFragments(t *testing.T) {
	piece6 := func(next, place int, s string) string {
		return string(rune(next)) + "\x00" + be16(place) + be32(0x70001) + s
	}
	for name, c := range map[string]struct {
		data string
		want Piece
		load string
	}{
		"the first of IPv4":       {ipv4(ipUDP, "", game[:8], 7, 0x2000), Piece{7, 0, true}, game[:8]},
		"the last of IPv4":        {ipv4(ipUDP, "", game[8:], 7, 1), Piece{7, 8, false}, game[8:]},
		"one with don't fragment": {ipv4(ipUDP, "", game[:8], 7, 0x6000), Piece{7, 0, true}, game[:8]},
		"one with options":        {ipv4(ipUDP, "\x01\x01\x01\x00", game[:8], 7, 0x2000), Piece{7, 0, true}, game[:8]},
		"the first of IPv6":       {ipv6(ipFragment, piece6(ipUDP, 1, game[:8])), Piece{0x70001, 0, true}, game[:8]},
		"the last of IPv6":        {ipv6(ipFragment, piece6(ipUDP, 8, game[8:])), Piece{0x70001, 8, false}, game[8:]},
	} {
		t.Run(name, func(t *testing.T) {
			h := mustDecode(t, 1, ether(map[byte]int{4: etherIP4, 6: etherIP6}[c.data[0]>>4], c.data)+"pad")
			if h.Content != FragmentContent || h.Piece != c.want || h.Protocol != ipUDP || string(h.Payload) != c.load || h.SrcPort != 0 {
				t.Errorf("got %+v", h)
			}
			var d LinkDecoder
			if err := d.DecodeTransport(&h, h.Protocol, []byte(game), len(game)); err != nil {
				t.Fatal(err)
			}
			wantGame(t, h)
			if h.Piece != (Piece{}) {
				t.Errorf("got piece %+v", h.Piece)
			}
		})
	}
	// What was fragmented may begin with an extension header.
	h := mustDecode(t, 101, ipv6(ipFragment, piece6(ipDestination, 8, "x")))
	var d LinkDecoder
	joined := "\x11\x00\x01\x04\x00\x00\x00\x00" + game
	if err := d.DecodeTransport(&h, h.Protocol, []byte(joined), len(joined)); err != nil {
		t.Fatal(err)
	}
	wantGame(t, h)
}

// B70: what the capture cut behind the headers is counted, and no error.
func TestCutPayload(t *testing.T) {
	options := strings.Repeat("\x01", 12)
	segment := ether(etherIP4, ipv4(ipTCP, "", tcp(options, strings.Repeat("x", 234))))
	datagram := ether(etherIP4, ipv4(ipUDP, "", udp(1, 2, strings.Repeat("x", 258))))
	for name, c := range map[string]struct {
		data      string
		kept      int
		have, all int
	}{
		"a segment at 96":                     {segment, 96, 30, 234},
		"a segment at its headers":            {segment, 66, 0, 234},
		"a segment at 54, inside its options": {segment, 54, 0, 234},
		"a datagram at 96":                    {datagram, 96, 54, 258},
		"a datagram at its headers":           {datagram, 42, 0, 258},
	} {
		var d LinkDecoder
		var h Headers
		err := d.Decode(&h, &Packet{Data: []byte(c.data[:c.kept]), Length: len(c.data), Link: 1})
		if err != nil || len(h.Payload) != c.have || h.PayloadLength != c.all {
			t.Errorf("%s: got %d of %d bytes, %v", name, len(h.Payload), h.PayloadLength, err)
		}
	}
}

// B55: the quote is parsed as far as it goes, and is not the packet's flow.
func TestICMPQuotes(t *testing.T) {
	a, b := netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.1")
	a6, b6 := netip.MustParseAddr("2001:db8::2"), netip.MustParseAddr("2001:db8::1")
	message := func(t, code byte, quote string) string {
		return string([]byte{t, code}) + "\x00\x00\x00\x00\x00\x00" + quote
	}
	for name, c := range map[string]struct {
		data    string
		trouble string
		want    Quote
	}{
		"port unreachable": {
			ipv4(ipICMP, "", message(3, 3, ipv4(ipUDP, "", game)[:28])), "port unreachable", Quote{a, b, ipUDP, 50111, 2627}},
		"IPv6 port unreachable": {
			ipv6(ipICMP6, message(1, 4, ipv6(ipUDP, game))), "port unreachable", Quote{a6, b6, ipUDP, 50111, 2627}},
		"IPv6 with an extension header in the quote": {
			ipv6(ipICMP6, message(3, 0, ipv6(ipHopByHop, "\x11\x00\x01\x04\x00\x00\x00\x00"+game))), "time exceeded", Quote{a6, b6, ipUDP, 50111, 2627}},
		"IPv6-in-IPv4 cut short": {
			ipv4(ipICMP, "", message(3, 4, ipv4(ipIP6, "", ipv6(ipUDP, game))[:28])), "fragmentation needed", Quote{a, b, ipIP6, 0, 0}},
		"a quote cut inside the ports": {
			ipv4(ipICMP, "", message(3, 1, ipv4(ipUDP, "", game)[:22])), "host unreachable", Quote{a, b, ipUDP, 0, 0}},
		"a quote cut inside IP": {
			ipv4(ipICMP, "", message(11, 0, ipv4(ipUDP, "", game)[:19])), "time exceeded", Quote{}},
		"a later fragment in the quote": {
			ipv4(ipICMP, "", message(11, 1, ipv4(ipUDP, "", game, 7, 1))), "time exceeded", Quote{a, b, ipUDP, 0, 0}},
		"no quote at all":           {ipv4(ipICMP, "", message(3, 3, "")), "port unreachable", Quote{}},
		"an echo with an IP packet": {ipv4(ipICMP, "", message(8, 0, ipv4(ipUDP, "", game))), "", Quote{}},
	} {
		t.Run(name, func(t *testing.T) {
			h := mustDecode(t, 101, c.data)
			if h.Content != ICMPContent || h.Message.Quote != c.want || h.Trouble() != c.trouble || h.SrcPort != 0 {
				t.Errorf("got content %d, %q, quote %+v", h.Content, h.Trouble(), h.Message.Quote)
			}
		})
	}
}

func vxlan(network int, s string) string {
	return ipv4(ipUDP, "", udp(40000, vxlanPort, "\x08\x00\x00\x00"+be32(network<<8)+s))
}

// geneve makes a datagram of version 0 with options, for network 42.
func geneve(t int, options, s string) string {
	return ipv4(ipUDP, "", udp(40000, 6081, string(rune(len(options)/4))+"\x00"+be16(t)+be32(42<<8)+options+s))
}

// B61: the inner flow counts, and tells which tunnel it came through.
func TestTunnels(t *testing.T) {
	v4, v6 := ipv4(ipUDP, "", game), ipv6(ipUDP, game)
	for name, c := range map[string]struct{ data, want string }{
		"IPv4 in IPv4":        {ether(etherIP4, ipv4(ipIP4, "", v4)), "ip-in-ip"},
		"IPv6 in IPv4":        {ether(etherIP4, ipv4(ipIP6, "", v6)), "ip-in-ip"},
		"IPv4 in IPv6":        {ether(etherIP6, ipv6(ipIP4, v4)), "ip-in-ip"},
		"GRE":                 {ether(etherIP4, ipv4(ipGRE, "", "\x00\x00"+be16(etherIP4)+v4)), "gre"},
		"GRE with all of it":  {ether(etherIP4, ipv4(ipGRE, "", "\xb0\x00"+be16(etherIP6)+be32(0)+be32(42)+be32(1)+v6)), "gre 42"},
		"GRE with Ethernet":   {ether(etherIP4, ipv4(ipGRE, "", "\x20\x00"+be16(etherBridged)+be32(9)+ether(etherIP4, v4))), "gre 9"},
		"VXLAN":               {ether(etherIP4, vxlan(42, ether(etherIP4, v4))), "vxlan 42"},
		"PPPoE":               {ether(etherPPPoE, "\x11\x00"+be16(3)+be16(2+len(v4))+be16(pppIP4)+v4) + "pad", "pppoe 3"},
		"PPPoE with IPv6":     {ether(etherPPPoE, "\x11\x00"+be16(3)+be16(2+len(v6))+be16(pppIP6)+v6) + "pad", "pppoe 3"},
		"GRE with MPLS":       {ether(etherIP4, ipv4(ipGRE, "", "\x00\x00\x88\x47"+label(16, 1)+v4)), "gre"},
		"a pseudowire":        {ether(0x8847, label(16, 0)+label(17, 1)+be32(9)+ether(etherIP4, v4)), "pseudowire"},
		"one with VLAN tags":  {ether(0x8847, label(17, 1)+be32(0)+ether(etherQinQ, be16(5)+be16(etherVLAN)+be16(7)+be16(etherIP6)+v6)), "pseudowire"},
		"Geneve":              {ether(etherIP4, geneve(0x6558, "", ether(etherIP4, v4))), "geneve 42"},
		"Geneve with options": {ether(etherIP4, geneve(0x6558, "\x01\x02\x80\x01data", ether(etherIP6, v6))), "geneve 42"},
		"Geneve with IPv4":    {ether(etherIP4, geneve(0x0800, "", v4)), "geneve 42"},
		"Geneve with IPv6":    {ether(etherIP4, geneve(0x86dd, "", v6)), "geneve 42"},
		"Geneve with MPLS":    {ether(etherIP4, geneve(0x8847, "", label(16, 1)+v4)), "geneve 42"},
		"VXLAN in GRE":        {ether(etherIP4, ipv4(ipGRE, "", "\x00\x00"+be16(etherIP4)+vxlan(7, ether(etherIP4, v4)))), "vxlan 7"},
	} {
		t.Run(name, func(t *testing.T) {
			h := mustDecode(t, 1, c.data)
			wantGame(t, h)
			if h.Tunnel.String() != c.want {
				t.Errorf("got tunnel %q, want %q", h.Tunnel, c.want)
			}
		})
	}
}

// B61: equal inner flows in different tunnels are told apart, the two directions
// of one tunnel are not.
func TestTunnelKeys(t *testing.T) {
	inner := ipv4(ipUDP, "", game)
	tunnel := func(s string) Tunnel { return mustDecode(t, 1, ether(etherIP4, s)).Tunnel }
	between := func(src, dst string) string {
		s := ipv4(ipIP4, "", inner)
		return s[:12] + src + dst + s[20:]
	}
	if tunnel(vxlan(1, ether(etherIP4, inner))) == tunnel(vxlan(2, ether(etherIP4, inner))) {
		t.Error("two VXLAN networks are one")
	}
	if tunnel(between(addrA, addrB)) != tunnel(between(addrB, addrA)) {
		t.Error("the directions of a tunnel are two")
	}
	if tunnel(between(addrA, addrB)) == tunnel(between(addrA, "\x0a\x00\x00\x09")) {
		t.Error("tunnels between different hosts are one")
	}
	if tunnel(ipv4(ipUDP, "", game)) != 0 {
		t.Error("no tunnel has a name")
	}
}

// B62: a port of ours is ours; and what does not look like VXLAN is a datagram.
func TestTunnelsAreNotGuessed(t *testing.T) {
	inner := ether(etherIP4, ipv4(ipUDP, "", game))
	for owned, packet := range map[uint16]string{4789: vxlan(42, inner), 6081: geneve(0x6558, "", inner), 40000: geneve(0x6558, "", inner)} {
		d := LinkDecoder{Owned: func(port uint16) bool { return port == owned }}
		var h Headers
		if err := d.Decode(&h, &Packet{Data: []byte(packet), Link: 101}); err != nil || h.SrcPort != 40000 || h.Tunnel != 0 {
			t.Errorf("got %v to %v, %v", h.Source(), h.Destination(), err)
		}
	}
	for _, s := range []string{
		"\x40\x00\x65\x58\x00\x00\x2a\x00" + inner, // another version
		"\x00\x01\x65\x58\x00\x00\x2a\x00" + inner, // reserved bits
		"\x00\x00\x65\x58\x00\x00\x2a\x01" + inner,
		"\x00\x00\x08\x06\x00\x00\x2a\x00arp",
		"\x00\x00\x65\x58\x00\x00\x2a",
	} {
		if h := mustDecode(t, 101, ipv4(ipUDP, "", udp(40000, 6081, s))); string(h.Payload) != s || h.Tunnel != 0 {
			t.Errorf("% x: got %+v", s, h)
		}
	}
	for _, port := range []int{53, 123, 1812, 2152, 4789, 5060, 6081} {
		h := mustDecode(t, 101, ipv4(ipUDP, "", udp(50111, port, "payload")))
		if h.Content != UDPContent || int(h.DstPort) != port || string(h.Payload) != "payload" {
			t.Errorf("port %d: got %+v", port, h)
		}
	}
}

func TestMalformedHeaders(t *testing.T) {
	patch := func(s string, at int, bytes string) string { return s[:at] + bytes + s[at+len(bytes):] }
	v4, v6 := ipv4(ipUDP, "", game), ipv6(ipUDP, game)
	segment := ipv4(ipTCP, "", tcp("", "data"))
	deep := v4
	for range maxTunnels + 1 {
		deep = ipv4(ipIP4, "", deep)
	}
	wire := func(ip string) string { return label(16, 1) + be32(0) + ether(etherIP4, ip) }
	wires := v4
	for range maxTunnels / 2 {
		wires = ipv4(ipGRE, "", "\x00\x00\x88\x47"+wire(wires))
	}
	for name, c := range map[string]struct {
		link LinkType
		data string
		want string
	}{
		"an empty Ethernet frame":         {1, "", "ethernet/header at byte 0: want 14 bytes, 0 bytes left (malformed)"},
		"IPv4 of version 5":               {228, patch(v4, 0, "\x55"), "ip4/version at byte 0 of 35: want 4, got 5 (malformed)"},
		"raw IP of version 5":             {101, patch(v4, 0, "\x55"), "ip/version at byte 0 of 35: want 4 or 6, got 5 (malformed)"},
		"IPv6 that says it is IPv4":       {229, patch(v6, 0, "\x40"), "ip6/version at byte 0 of 55: want 6, got 4 (malformed)"},
		"an IPv4 header of 16 bytes":      {101, patch(v4, 0, "\x44"), "ip4/header_length at byte 0 of 35: want 20 or more, got 16 (malformed)"},
		"a total length of 19":            {101, patch(v4, 2, "\x00\x13"), "ip4/total_length at byte 2 of 35: want the header's length or more, got 19 (malformed)"},
		"a TCP header of 16 bytes":        {101, patch(segment, 32, "\x40"), "tcp/header_length at byte 32 of 44: want 20 or more, within the packet, got 16 (malformed)"},
		"a TCP header beyond the packet":  {101, patch(segment, 32, "\xf0"), "tcp/header_length at byte 32 of 44: want 20 or more, within the packet, got 60 (malformed)"},
		"a UDP length of 7":               {101, patch(v4, 24, "\x00\x07"), "udp/length at byte 24 of 35: want 8 or more, within the packet, got 7 (malformed)"},
		"a UDP length of 0":               {101, patch(v4, 24, "\x00\x00"), "udp/length at byte 24 of 35: want 8 or more, within the packet, got 0 (malformed)"},
		"a UDP length beyond the packet":  {101, patch(v4, 24, "\x00\x10"), "udp/length at byte 24 of 35: want 8 or more, within the packet, got 16 (malformed)"},
		"an extension beyond the packet":  {101, ipv6(ipHopByHop, "\x11\x04\x01\x04\x00\x00\x00\x00"), "ip6 extension/header at byte 40 of 48: want 40 bytes, 8 bytes left (malformed)"},
		"GRE cut after the flags":         {101, ipv4(ipGRE, "", "\xb0\x00"), "gre/header at byte 20 of 22: want 4 bytes, 2 bytes left (malformed)"},
		"GRE without the key it promises": {101, ipv4(ipGRE, "", "\xb0\x00"+be16(etherIP4)), "gre/header at byte 20 of 24: want 16 bytes, 4 bytes left (malformed)"},
		"GRE with source routes":          {101, ipv4(ipGRE, "", "\x40\x00"+be16(etherIP4)), "gre/flags at byte 20 of 24: want no source routes, got 16384 (malformed)"},
		"PPPoE of length 1":               {1, ether(etherPPPoE, "\x11\x00\x00\x03\x00\x01\x00\x21"), "pppoe/length at byte 18 of 22: want 2 or more, got 1 (malformed)"},
		"802.3 of length 2":               {1, ether(2, "\xaa\xaa\x03\x00"), "llc/header at byte 14 of 16: want 3 bytes, 2 bytes left (malformed)"},
		"802.3 longer than its frame":     {1, ether(100, snap), "snap/header at byte 14 of 20: want 8 bytes, 6 bytes left (malformed)"},
		"labels without an end":           {1, ether(0x8847, label(16, 0)+label(17, 0)+"\x00"), "mpls/header at byte 22 of 23: want 4 bytes, 1 byte left (malformed)"},
		"nothing behind the labels":       {1, ether(0x8847, label(16, 1)), "mpls payload/header at byte 18 of 18: want 1 byte, 0 bytes left (malformed)"},
		"pseudowires in pseudowires":      {1, ether(0x8847, wire(wires)), "tunnel/depth at byte 114 of 163: want at most 4, got 5 (malformed)"},
		"PPP of one byte":                 {9, "\x21", "ppp/header at byte 0 of 1: want 2 bytes, 1 byte left (malformed)"},
		"PPP that is only framed":         {50, "\xff\x03", "ppp/header at byte 2 of 2: want 2 bytes, 0 bytes left (malformed)"},
		"Cisco's HDLC cut short":          {104, "\x0f\x00\x08", "hdlc/header at byte 0 of 3: want 4 bytes, 3 bytes left (malformed)"},
		"Geneve of cut options":           {101, ipv4(ipUDP, "", udp(40000, 6081, "\x3f\x00\x65\x58\x00\x00\x2a\x00")), "geneve/header at byte 28 of 36: want 260 bytes, 8 bytes left (malformed)"},
		"NFLOG of 3 bytes":                {239, "\x02\x00\x00", "nflog/header at byte 0 of 3: want 4 bytes, 3 bytes left (malformed)"},
		"NFLOG with half a note":          {239, "\x02\x00\x00\x00" + tlv(1, "abcd") + "\x04\x00", "nflog note/header at byte 12 of 14: want 4 bytes, 2 bytes left (malformed)"},
		"a note of netfilter of length 3": {239, "\x02\x00\x00\x00\x03\x00\x01\x00", "nflog note/length at byte 4 of 8: want 4 or more, within the packet, got 3 (malformed)"},
		"one that is beyond the packet":   {239, "\x02\x00\x00\x00\x05\x00\x09\x00", "nflog note/length at byte 4 of 8: want 4 or more, within the packet, got 5 (malformed)"},
		"PKTAP cut short":                 {258, pktap(1, 1, 0, "")[:39], "pktap/header at byte 0 of 39: want 40 bytes, 39 bytes left (malformed)"},
		"PKTAP that ends in its flags":    {258, patch(pktap(1, 1, 0, ""), 0, "\x27"), "pktap/length at byte 0 of 108: want 40 or more, within the packet, got 39 (malformed)"},
		"PKTAP beyond the packet":         {258, patch(pktap(1, 1, 0, ""), 0, "\x6d"), "pktap/length at byte 0 of 108: want 40 or more, within the packet, got 109 (malformed)"},
		"PKTAP in PKTAP":                  {258, pktap(1, 258, 0, "data"), "pktap/link_type at byte 8 of 112: want that of a packet, got 258 (malformed)"},
		"PPI of length 7":                 {192, "\x00\x00\x07\x00\x01\x00\x00\x00", "ppi/length at byte 2 of 8: want 8 or more, within the packet, got 7 (malformed)"},
		"PPI beyond the packet":           {192, "\x00\x00\x09\x00\x01\x00\x00\x00", "ppi/length at byte 2 of 8: want 8 or more, within the packet, got 9 (malformed)"},
		"PPI in PPI":                      {192, ppi(192, "data"), "ppi/link_type at byte 4 of 16: want that of a packet, got 192 (malformed)"},
		"too many tunnels":                {101, deep, "tunnel/depth at byte 100 of 135: want at most 4, got 5 (malformed)"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decode(c.link, c.data)
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// Bytes behind the end of a datagram are counted.
func TestSurplus(t *testing.T) {
	h := mustDecode(t, 101, ipv4(ipUDP, "", game+"tail"))
	wantGame(t, h)
	if h.Surplus != 4 {
		t.Errorf("got a surplus of %d", h.Surplus)
	}
}

// seeds are packets of all kinds.
func seeds() map[string]Packet {
	v4, v6 := ipv4(ipUDP, "", game), ipv6(ipUDP, game)
	hop := "\x11\x00\x01\x04\x00\x00\x00\x00"
	quote := "\x03\x03\x00\x00\x00\x00\x00\x00" + v4
	list := map[string]Packet{}
	for name, c := range map[string]struct {
		link LinkType
		data string
	}{
		"udp":    {1, ether(etherVLAN, be16(7)+be16(etherIP4)+v4)},
		"tcp":    {113, "\x00\x04\x00\x01\x00\x06" + macs[:8] + be16(etherIP6) + ipv6(ipTCP, tcp("\x01\x01\x01\x00", "data"))},
		"cooked": {276, be16(etherIP4) + be16(0) + be32(3) + be16(1) + "\x04\x06" + macs[:8] + v4},
		"loop":   {0, "\x1e\x00\x00\x00" + ipv6(ipHopByHop, hop+game)},
		"piece":  {229, ipv6(ipFragment, "\x11\x00\x00\x09\x00\x00\x00\x01"+game)},
		"icmp":   {101, ipv4(ipICMP, "", quote)},
		"icmp6":  {101, ipv6(ipICMP6, "\x01\x04\x00\x00\x00\x00\x00\x00"+v6)},
		"gre":    {228, ipv4(ipGRE, "\x01\x01\x01\x00", "\xb0\x00"+be16(etherIP6)+be32(0)+be32(42)+be32(1)+v6)},
		"vxlan":  {12, vxlan(42, ether(etherIP4, v4))},
		"geneve": {1, ether(etherIP4, geneve(0x6558, "\x01\x02\x80\x01data", ether(etherIP6, v6)))},
		"nflog":  {239, "\x02\x00\x00\x05" + tlv(1, "\x08\x00\x01\x00") + tlv(10, "padded\x00") + tlv(4, be32(2)) + tlv(9, v4) + tlv(0x8012, "conntrack")},
		"pktap":  {258, pktap(1, 1, 2, ether(etherIP4, v4))},
		"ppi":    {192, ppi(9, "\x00\x57"+v6)},
		"pppoe":  {1, ether(etherPPPoE, "\x11\x00"+be16(3)+be16(2+len(v4))+be16(pppIP4)+v4)},
		"snap":   {1, ether(8+len(v6), snap+be16(etherIP6)+v6)},
		"tagged": {1, ether(etherQinQ, be16(5)+be16(12+len(v4))+snap+be16(etherVLAN)+be16(7)+be16(etherIP4)+v4)},
		"mpls":   {1, ether(0x8847, label(16, 0)+label(17, 1)+v4)},
		"wire":   {9, "\x02\x81" + label(17, 1) + be32(9) + ether(etherVLAN, be16(7)+be16(etherIP6)+v6)},
		"ppp":    {9, "\xff\x03\x00\x21" + v4},
		"hdlc":   {50, "\x0f\x00\x86\xdd" + v6},
		"line":   {51, "\x11\x00" + be16(3) + be16(1+len(v6)) + "\x57" + v6},
	} {
		list[name] = Packet{Data: []byte(c.data), Length: len(c.data), Link: c.link}
	}
	return list
}

// Cut anywhere, a packet gives what was captured or an error that says where it
// was cut, and never one that blames the sender.
func TestEveryTruncatedPacket(t *testing.T) {
	for name, p := range seeds() {
		whole := p.Data
		for n := range whole {
			p.Data = whole[:n:n]
			var d LinkDecoder
			var h Headers
			err := d.Decode(&h, &p)
			var e *wire.Error
			if err != nil && (!errors.As(err, &e) || e.Kind != wire.Truncated || e.Offset > n) {
				t.Errorf("%s cut at %d: got %v", name, n, err)
			}
			if len(h.Payload) > n || h.PayloadLength < len(h.Payload) {
				t.Errorf("%s cut at %d: got %d bytes of payload of %d", name, n, len(h.Payload), h.PayloadLength)
			}
		}
	}
}

func TestDecodeDoesNotAllocate(t *testing.T) {
	for name, p := range seeds() {
		d := LinkDecoder{Owned: func(uint16) bool { return false }}
		var h Headers
		if a := testing.AllocsPerRun(100, func() {
			if err := d.Decode(&h, &p); err != nil {
				t.Fatal(err)
			}
		}); a != 0 {
			t.Errorf("%s: got %v allocations a packet", name, a)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	load := strings.Repeat("x", 400)
	for name, data := range map[string]string{
		"tcp4":  ether(etherIP4, ipv4(ipTCP, "", tcp("", load))),
		"udp4":  ether(etherIP4, ipv4(ipUDP, "", udp(50111, 2627, load))),
		"udp6":  ether(etherIP6, ipv6(ipUDP, udp(50111, 2627, load))),
		"vxlan": ether(etherIP4, vxlan(42, ether(etherIP4, ipv4(ipUDP, "", udp(50111, 2627, load))))),
	} {
		b.Run(name, func(b *testing.B) {
			var d LinkDecoder
			var h Headers
			p := Packet{Data: []byte(data), Length: len(data), Link: LinkEthernet}
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := d.Decode(&h, &p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func FuzzLink(f *testing.F) {
	for _, p := range seeds() {
		f.Add(p.Data, p.Length, uint32(p.Link))
	}
	f.Fuzz(func(t *testing.T, data []byte, length int, link uint32) {
		if length < 0 || length > 1<<32 {
			t.Skip("no file can say so")
		}
		var d LinkDecoder
		var h Headers
		check := func(err error, data []byte) {
			var e *wire.Error
			var unsupported *UnsupportedLinkError
			switch {
			case errors.As(err, &e):
				if e.Layer == "" || e.Want == "" || e.Offset < 0 || e.Offset > len(data) {
					t.Fatalf("got %v in %d bytes", err, len(data))
				}
			case errors.As(err, &unsupported):
				if unsupported.Link.Supported() {
					t.Fatal(err)
				}
			case err != nil:
				t.Fatal(err)
			}
			if len(h.Payload) > len(data) || h.PayloadLength < len(h.Payload) || h.Surplus < 0 {
				t.Fatalf("got %+v", h)
			}
		}
		check(d.Decode(&h, &Packet{Data: data, Length: length, Link: LinkType(link)}), data)
		if h.Content == FragmentContent {
			whole := h.Payload
			check(d.DecodeTransport(&h, h.Protocol, whole, len(whole)), whole)
		}
	})
}
