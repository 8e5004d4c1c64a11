package dissect

import "strconv"

// The link types that are decoded.
const (
	LinkNull     LinkType = 0 // BSD loopback: the address family in the order of the host
	LinkEthernet LinkType = 1
	LinkPPP      LinkType = 9   // PPP, in HDLC-like framing or not
	LinkRawBSD   LinkType = 12  // IP of either version, as most systems wrote it
	LinkRawOpen  LinkType = 14  // the same, as OpenBSD wrote it
	LinkPPPHDLC  LinkType = 50  // PPP in HDLC-like framing, or Cisco's HDLC
	LinkPPPEther LinkType = 51  // PPPoE without Ethernet in front
	LinkRaw      LinkType = 101 // the same, with the number that it was given
	LinkCHDLC    LinkType = 104 // Cisco's HDLC
	LinkLoop     LinkType = 108 // OpenBSD loopback: the address family in network order
	LinkCooked   LinkType = 113 // the "any" device of Linux
	LinkPPI      LinkType = 192 // notes in front of a packet of another type
	LinkIPv4     LinkType = 228
	LinkIPv6     LinkType = 229
	LinkNFLOG    LinkType = 239 // what Linux's netfilter logs
	LinkPKTAP    LinkType = 258 // macOS's notes in front of a packet of another type
	LinkCooked2  LinkType = 276 // the "any" device of Linux, with the interface
)

// String returns the name of the link type, or its number.
func (t LinkType) String() string {
	if name := t.name(); name != "" {
		return name
	}
	return strconv.Itoa(int(t))
}

// Supported reports whether packets of the link type can be decoded.
func (t LinkType) Supported() bool {
	switch t {
	case LinkNull, LinkEthernet, LinkPPP, LinkRawBSD, LinkRawOpen, LinkPPPHDLC, LinkPPPEther, LinkRaw, LinkCHDLC, LinkLoop,
		LinkCooked, LinkPPI, LinkIPv4, LinkIPv6, LinkNFLOG, LinkPKTAP, LinkCooked2:
		return true
	}
	return false
}

// name returns the name of a link type that is likely to turn up.
// Source: https://www.tcpdump.org/linktypes.html.
func (t LinkType) name() string {
	switch t {
	case LinkNull:
		return "NULL"
	case LinkEthernet:
		return "ETHERNET"
	case 6:
		return "IEEE802_5"
	case 8:
		return "SLIP"
	case LinkPPP:
		return "PPP"
	case 10:
		return "FDDI"
	case LinkRawBSD, LinkRawOpen, LinkRaw:
		return "RAW"
	case LinkPPPHDLC:
		return "PPP_HDLC"
	case LinkPPPEther:
		return "PPP_ETHER"
	case LinkCHDLC:
		return "C_HDLC"
	case 105:
		return "IEEE802_11"
	case 107:
		return "FRELAY"
	case LinkLoop:
		return "LOOP"
	case LinkCooked:
		return "LINUX_SLL"
	case 117:
		return "PFLOG"
	case 119:
		return "IEEE802_11_PRISM"
	case 127:
		return "IEEE802_11_RADIOTAP"
	case 163:
		return "IEEE802_11_AVS"
	case 187:
		return "BLUETOOTH_HCI_H4"
	case 189:
		return "USB_LINUX"
	case LinkPPI:
		return "PPI"
	case 195:
		return "IEEE802_15_4_WITHFCS"
	case 201:
		return "BLUETOOTH_HCI_H4_WITH_PHDR"
	case 220:
		return "USB_LINUX_MMAPPED"
	case 227:
		return "CAN_SOCKETCAN"
	case LinkIPv4:
		return "IPV4"
	case LinkIPv6:
		return "IPV6"
	case 230:
		return "IEEE802_15_4_NOFCS"
	case 231:
		return "DBUS"
	case LinkNFLOG:
		return "NFLOG"
	case 249:
		return "USBPCAP"
	case 252:
		return "WIRESHARK_UPPER_PDU"
	case 253:
		return "NETLINK"
	case LinkPKTAP:
		return "PKTAP"
	case LinkCooked2:
		return "LINUX_SLL2"
	}
	if t >= 147 && t <= 162 {
		return "USER" + strconv.Itoa(int(t)-147)
	}
	return ""
}

// UnsupportedLinkError says that packets of a link type cannot be decoded.
type UnsupportedLinkError struct {
	Link LinkType
}

// Error names the link type: "link type 147 (USER0) is not supported".
func (e *UnsupportedLinkError) Error() string {
	text := "link type " + strconv.Itoa(int(e.Link))
	if name := e.Link.name(); name != "" {
		text += " (" + name + ")"
	}
	return text + " is not supported"
}
