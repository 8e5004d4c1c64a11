// Package pcapfilter compiles capture filters, the expressions of tcpdump, into
// programs for the packet filter of the kernel.
//
// The language is that of pcap-filter(7), without what asks a name server
// and without the link layers that nobody captures games on:
//
//	[ip|ip6|arp|tcp|udp|sctp|icmp|...] [src|dst|src or dst|src and dst] [host|net|port|portrange] ID
//	tcp udp sctp icmp icmp6 igmp ip ip6 arp rarp    [ip|ip6|ether] proto N
//	ether [src|dst] host MAC    [ether|ip|ip6] broadcast|multicast    vlan [ID]
//	less N    greater N    inbound    outbound    EXPR = EXPR, with len and PROTO[EXPR:SIZE]
//
// joined with and, or and not; and and or bind alike, from the left. What is not
// understood is a *SyntaxError that points at it: nothing is passed over.
package pcapfilter
