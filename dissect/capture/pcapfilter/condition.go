package pcapfilter

import "golang.org/x/net/bpf"

// condition is what an expression asks of a packet.
type condition interface{}

// The conditions.
type (
	both    struct{ a, b condition }
	either  struct{ a, b condition }
	negated struct{ of condition }
	compare struct {
		left, right operand
		test        bpf.JumpTest
	}
)

// operand is a number that is known or read from a packet.
type operand interface{}

// The operands.
type (
	number uint32
	// field is size bytes, big-endian, some bytes from the start of the packet.
	field struct{ at, size int }
	// indexed is size bytes at an offset that is computed, behind the IPv4 header at ip
	// unless that is -1.
	indexed struct {
		at, ip int
		index  operand
		size   int
	}
	metadata   bpf.Extension
	arithmetic struct {
		op   bpf.ALUOp
		a, b operand
	}
)

// all joins conditions that must hold together. Nil conditions always hold.
func all(list ...condition) condition {
	var joined condition
	for _, c := range list {
		switch {
		case c == nil:
		case joined == nil:
			joined = c
		default:
			joined = both{joined, c}
		}
	}
	return joined
}

// some joins conditions of which one must hold.
func some(list ...condition) condition {
	joined := list[0]
	for _, c := range list[1:] {
		joined = either{joined, c}
	}
	return joined
}

func equals(a operand, n uint32) condition { return compare{a, number(n), bpf.JumpEqual} }

// masked is a with only some of its bits.
func masked(a operand, bits uint32) operand {
	if bits == 1<<32-1 {
		return a
	}
	return arithmetic{bpf.ALUOpAnd, a, number(bits)}
}

// always holds for every packet, never for none.
var (
	always = equals(number(0), 0)
	never  = equals(number(0), 1)
)

// Numbers of EtherTypes and of IP protocols (IANA).
const (
	etherIP   = 0x0800
	etherARP  = 0x0806
	etherRARP = 0x8035
	etherIP6  = 0x86dd

	protoICMP     = 1
	protoTCP      = 6
	protoUDP      = 17
	protoFragment = 44 // of IPv6
	protoICMP6    = 58
	protoSCTP     = 132
)

// tags are the EtherTypes in front of a VLAN tag.
var tags = []uint32{0x8100, 0x88a8, 0x9100}

// base is one place where the network layer may begin.
type base struct {
	guard   condition // that it begins there; nil for always
	kind    kind
	at      int // of the EtherType, for those that have one
	network int // offset of the network header
}

// kind is how a base tells its network protocol.
type kind uint8

const (
	byField    kind = iota // an EtherType in the packet
	byMetadata             // an EtherType that the kernel tells
	byVersion              // the first nibble
)

// carries holds where the network protocol is the one with this EtherType.
func (b base) carries(etherType uint32) condition {
	switch b.kind {
	case byField:
		return equals(field{b.at, 2}, etherType)
	case byMetadata:
		return equals(metadata(bpf.ExtProto), etherType)
	}
	version := arithmetic{bpf.ALUOpShiftRight, field{b.network, 1}, number(4)}
	switch etherType {
	case etherIP:
		return equals(version, 4)
	case etherIP6:
		return equals(version, 6)
	}
	return never
}

// tagged returns the base behind a VLAN tag in the packet.
func (b base) tagged() base {
	var list []condition
	for _, t := range tags {
		list = append(list, b.carries(t))
	}
	return base{guard: all(b.guard, some(list...)), kind: byField, at: b.network + 2, network: b.network + 4}
}

// ip4 and ip6 are fields of the IP headers.
func (b base) ip4(at, size int) operand { return field{b.network + at, size} }
func (b base) ip6(at, size int) operand { return field{b.network + at, size} }

// transport holds for IP packets of a protocol, fragments included.
func (b base) transport(proto uint32) condition {
	return some(
		all(b.carries(etherIP), equals(b.ip4(9, 1), proto)),
		all(b.carries(etherIP6), some(
			equals(b.ip6(6, 1), proto),
			all(equals(b.ip6(6, 1), protoFragment), equals(b.ip6(40, 1), proto)))),
	)
}

// whole holds for IPv4 packets that are no later fragment.
func (b base) whole() condition { return equals(masked(b.ip4(6, 2), 0x1fff), 0) }

// later holds for the fragments that lack the ports: those of IPv4 behind the first,
// and all of IPv6, where the header of the fragment moves the ports.
func (b base) later() condition {
	return some(
		all(b.carries(etherIP), negated{b.whole()}),
		all(b.carries(etherIP6), equals(b.ip6(6, 1), protoFragment)),
	)
}

// ports holds where a port of the wanted ends, 0 the source and 1 the destination, lies
// between low and high.
func (b base) ports(proto, low, high uint32, of ends) condition {
	within := func(port operand) condition {
		if low == high {
			return equals(port, low)
		}
		return all(compare{port, number(low), bpf.JumpGreaterOrEqual}, compare{port, number(high), bpf.JumpLessOrEqual})
	}
	four := of.join(func(end int) condition {
		return within(indexed{at: b.network, ip: b.network, index: number(2 * end), size: 2})
	})
	six := of.join(func(end int) condition { return within(b.ip6(40+2*end, 2)) })
	return some(
		all(b.carries(etherIP), equals(b.ip4(9, 1), proto), b.whole(), four),
		all(b.carries(etherIP6), equals(b.ip6(6, 1), proto), six),
	)
}

// ends is which ends of a packet a qualifier means.
type ends uint8

const (
	eitherEnd ends = iota
	source
	destination
	bothEnds
)

// join applies a condition to the ends, 0 the source and 1 the destination.
func (e ends) join(f func(end int) condition) condition {
	switch e {
	case source:
		return f(0)
	case destination:
		return f(1)
	case bothEnds:
		return all(f(0), f(1))
	}
	return some(f(0), f(1))
}
