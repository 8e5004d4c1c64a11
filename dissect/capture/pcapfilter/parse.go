package pcapfilter

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/bpf"
)

// maxDepth is how deep parentheses may nest.
const maxDepth = 50

// qualifiers stand in front of an id, and hold for the ids behind it that have none.
type qualifiers struct {
	proto string
	of    ends
	kind  string // host, net, port, portrange or proto; "" for none
	said  bool
}

type parser struct {
	expr   string
	tokens []token
	at     int
	depth  int
	bases  []base
	ether  bool // there are MAC addresses
	live   bool
	last   qualifiers
	err    *SyntaxError
}

// fail keeps the first error.
func (p *parser) fail(t token, text string) condition {
	if p.err == nil {
		p.err = &SyntaxError{p.expr, t.at, text}
	}
	return never
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.text != "" {
		p.at++
	}
	return t
}

// accept takes the next token if it is one of these words.
func (p *parser) accept(words ...string) bool {
	if t := p.peek(); t.text != "" && slices.Contains(words, t.text) {
		p.at++
		return true
	}
	return false
}

func (p *parser) expect(word, why string) {
	if t := p.peek(); !p.accept(word) {
		p.fail(t, "want "+word+" "+why+", got "+shown(t))
	}
}

func shown(t token) string {
	if t.text == "" {
		return "the end"
	}
	return strconv.Quote(t.text)
}

// each applies f to every place where the network layer may begin.
func (p *parser) each(f func(b base) condition) condition {
	var list []condition
	for _, b := range p.bases {
		list = append(list, all(b.guard, f(b)))
	}
	return some(list...)
}

// expression is terms joined with and and or, which bind alike, from the left.
func (p *parser) expression() condition {
	c := p.term()
	for p.err == nil {
		switch {
		case p.accept("and", "&&"):
			c = both{c, p.term()}
		case p.accept("or", "||"):
			c = either{c, p.term()}
		default:
			return c
		}
	}
	return c
}

func (p *parser) term() condition {
	if p.depth++; p.depth > maxDepth {
		return p.fail(p.peek(), "nested too deep")
	}
	defer func() { p.depth-- }()
	if p.accept("not", "!") {
		return negated{p.term()}
	}
	if c, ok := p.relation(); ok {
		return c
	}
	if p.accept("(") {
		c := p.expression()
		p.expect(")", "behind the condition")
		return c
	}
	return p.primitive()
}

// relation is two numbers compared. It takes nothing where there is none.
func (p *parser) relation() (condition, bool) {
	switch t := p.peek(); {
	case t.text == "len", t.text == "(":
	case len(t.text) > 0 && p.tokens[min(p.at+1, len(p.tokens)-1)].text == "[":
	case isNumber(t.text) && isArithmetic(p.tokens[min(p.at+1, len(p.tokens)-1)].text):
	default:
		return nil, false
	}
	start, failed := p.at, p.err
	var guards []condition
	left := p.sum(&guards, 0)
	test, ok := comparisons[p.peek().text]
	if p.tokens[start].text == "(" && (!ok || p.err != failed) { // a condition in parentheses
		p.at, p.err = start, failed
		return nil, false
	}
	if !ok {
		return p.fail(p.peek(), "want a comparison such as = or >, got "+shown(p.peek())), true
	}
	p.next()
	right := p.sum(&guards, 0)
	return all(append(guards, compare{left, right, test})...), true
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 0, 32)
	return err == nil
}

func isArithmetic(op string) bool {
	_, ok := comparisons[op]
	return ok || precedence(op) >= 0
}

var comparisons = map[string]bpf.JumpTest{
	"=": bpf.JumpEqual, "==": bpf.JumpEqual, "!=": bpf.JumpNotEqual, ">": bpf.JumpGreaterThan,
	"<": bpf.JumpLessThan, ">=": bpf.JumpGreaterOrEqual, "<=": bpf.JumpLessOrEqual,
}

var operations = map[string]bpf.ALUOp{
	"+": bpf.ALUOpAdd, "-": bpf.ALUOpSub, "*": bpf.ALUOpMul, "/": bpf.ALUOpDiv, "%": bpf.ALUOpMod,
	"&": bpf.ALUOpAnd, "|": bpf.ALUOpOr, "^": bpf.ALUOpXor, "<<": bpf.ALUOpShiftLeft, ">>": bpf.ALUOpShiftRight,
}

// levels are the operators from the loosest to the tightest, as in pcap-filter.
var levels = [][]string{{"|", "&", "^"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}}

func precedence(op string) int {
	return slices.IndexFunc(levels, func(l []string) bool { return slices.Contains(l, op) })
}

// sum is operands joined with operators of at least this level. What must hold for the
// operands to be there joins the guards.
func (p *parser) sum(guards *[]condition, level int) operand {
	if level == len(levels) {
		return p.operand(guards)
	}
	left := p.sum(guards, level+1)
	for p.err == nil && precedence(p.peek().text) == level {
		t := p.next()
		right := p.sum(guards, level+1)
		if n, ok := right.(number); ok && n == 0 && (t.text == "/" || t.text == "%") {
			p.fail(t, "division by zero")
		}
		left = folded(operations[t.text], left, right)
	}
	return left
}

// folded computes what is known.
func folded(op bpf.ALUOp, a, b operand) operand {
	x, ok := a.(number)
	y, both := b.(number)
	if !ok || !both {
		return arithmetic{op, a, b}
	}
	switch op {
	case bpf.ALUOpAdd:
		return x + y
	case bpf.ALUOpSub:
		return x - y
	case bpf.ALUOpMul:
		return x * y
	case bpf.ALUOpAnd:
		return x & y
	case bpf.ALUOpOr:
		return x | y
	case bpf.ALUOpXor:
		return x ^ y
	case bpf.ALUOpShiftLeft:
		return x << y
	case bpf.ALUOpShiftRight:
		return x >> y
	}
	if y == 0 {
		return number(0) // refused already
	}
	if op == bpf.ALUOpDiv {
		return x / y
	}
	return x % y
}

// constants are the names that pcap-filter gives to numbers.
var constants = map[string]uint32{
	"tcpflags": 13, "tcp-fin": 1, "tcp-syn": 2, "tcp-rst": 4, "tcp-push": 8, "tcp-ack": 16, "tcp-urg": 32, "tcp-ece": 64, "tcp-cwr": 128,
	"icmptype": 0, "icmpcode": 1, "icmp-echoreply": 0, "icmp-unreach": 3, "icmp-echo": 8, "icmp-timxceed": 11,
	"icmp6type": 0, "icmp6code": 1,
}

func (p *parser) operand(guards *[]condition) operand {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.peek(), "nested too deep")
		return number(0)
	}
	defer func() { p.depth-- }()
	t := p.next()
	if t.text == "(" {
		o := p.sum(guards, 0)
		p.expect(")", "behind the number")
		return o
	}
	if n, err := strconv.ParseUint(t.text, 0, 32); err == nil {
		return number(n)
	}
	if n, ok := constants[t.text]; ok {
		return number(n)
	}
	if t.text == "len" {
		return metadata(bpf.ExtLen)
	}
	if p.peek().text == "[" {
		return p.accessor(t, guards)
	}
	p.fail(t, "want a number, got "+shown(t))
	return number(0)
}

// accessor is PROTO[EXPR:SIZE], of which the protocol has been read.
func (p *parser) accessor(proto token, guards *[]condition) operand {
	p.next()
	index := p.sum(guards, 0)
	size := 1
	if p.accept(":") {
		switch t := p.next(); t.text {
		case "1", "2", "4":
			size = int(t.text[0] - '0')
		default:
			p.fail(t, "want 1, 2 or 4 bytes, got "+shown(t))
		}
	}
	p.expect("]", "behind the offset")
	if len(p.bases) > 1 {
		p.fail(proto, "bytes of a packet that may or may not have a VLAN tag in it are not at one place")
		return number(0)
	}
	b := p.bases[0]
	at, ip := b.network, -1
	switch proto.text {
	case "ether":
		if at = 0; !p.ether {
			p.fail(proto, "packets of this link type have no Ethernet header")
		}
	case "ip":
		*guards = append(*guards, b.carries(etherIP))
	case "ip6":
		*guards = append(*guards, b.carries(etherIP6))
	case "arp":
		*guards = append(*guards, b.carries(etherARP))
	case "icmp6":
		at += 40
		*guards = append(*guards, b.carries(etherIP6), equals(b.ip6(6, 1), protoICMP6))
	default:
		n, ok := transports[proto.text]
		if !ok {
			p.fail(proto, "no protocol whose bytes can be told: "+shown(proto))
			return number(0)
		}
		ip = b.network
		*guards = append(*guards, b.carries(etherIP), equals(b.ip4(9, 1), n), b.whole())
	}
	if n, ok := index.(number); ok && ip < 0 {
		return field{at + int(n), size}
	}
	return indexed{at: at, ip: ip, index: index, size: size}
}

// transports are the IP protocols that have a name in a filter.
var transports = map[string]uint32{
	"icmp": protoICMP, "igmp": 2, "tcp": protoTCP, "udp": protoUDP, "sctp": protoSCTP, "esp": 50, "ah": 51, "pim": 103,
}

// networks are the protocols above Ethernet that have a name in a filter.
var networks = map[string]uint32{"ip": etherIP, "ip6": etherIP6, "arp": etherARP, "rarp": etherRARP}

// primitive is one condition without and, or, not.
func (p *parser) primitive() condition {
	t := p.peek()
	switch t.text {
	case "less", "greater":
		p.next()
		return p.length(t.text)
	case "inbound", "outbound":
		return p.passing(p.next())
	case "vlan":
		p.next()
		return p.vlan()
	case "broadcast", "multicast":
		return p.cast("ether")
	}
	q := p.qualifiers()
	if p.err != nil {
		return never
	}
	if n := p.peek(); n.text == "broadcast" || n.text == "multicast" {
		return p.cast(q.proto)
	}
	return p.ids(q)
}

// length is what less and greater ask for.
func (p *parser) length(word string) condition {
	t := p.next()
	n, err := strconv.ParseUint(t.text, 0, 32)
	if err != nil {
		return p.fail(t, "want a number of bytes behind "+word+", got "+shown(t))
	}
	test := bpf.JumpLessOrEqual
	if word == "greater" {
		test = bpf.JumpGreaterOrEqual
	}
	return compare{metadata(bpf.ExtLen), number(n), test}
}

// packetOutgoing is the packet type of what the host itself sent (linux/if_packet.h).
const packetOutgoing = 4

func (p *parser) passing(t token) condition {
	if !p.live {
		return p.fail(t, t.text+" can be told on a live interface only")
	}
	c := equals(metadata(bpf.ExtType), packetOutgoing)
	if t.text == "inbound" {
		return negated{c}
	}
	return c
}

// vlan wants a tag, and has what follows look behind it. The kernel takes the tag out
// of a packet, and tells it beside.
func (p *parser) vlan() condition {
	id := operand(nil)
	if n, err := strconv.ParseUint(p.peek().text, 0, 32); err == nil {
		if t := p.next(); n > 0xfff {
			return p.fail(t, "want a VLAN from 0 to 4095, got "+t.text)
		}
		id = number(n)
	}
	var list []condition
	var behind []base
	for _, b := range p.bases {
		inside := b.tagged()
		list = append(list, tagIs(inside.guard, masked(field{b.network, 2}, 0xfff), id))
		if p.live && b.kind != byVersion {
			stripped := b
			stripped.guard = all(b.guard, equals(metadata(bpf.ExtVLANTagPresent), 1))
			list = append(list, tagIs(stripped.guard, masked(metadata(bpf.ExtVLANTag), 0xfff), id))
			behind = append(behind, stripped)
		}
		behind = append(behind, inside)
	}
	p.bases = behind
	return some(list...)
}

func tagIs(guard condition, tag, id operand) condition {
	if id == nil {
		return guard
	}
	return all(guard, compare{tag, id, bpf.JumpEqual})
}

// cast is what broadcast and multicast ask for.
func (p *parser) cast(proto string) condition {
	t := p.next()
	switch {
	case (proto == "ether" || proto == "") && !p.ether:
		return p.fail(t, "packets of this link type have no Ethernet header")
	case (proto == "ether" || proto == "") && t.text == "broadcast":
		return all(equals(field{0, 4}, 0xffffffff), equals(field{4, 2}, 0xffff))
	case proto == "ether" || proto == "":
		return equals(masked(field{0, 1}, 1), 1)
	case proto == "ip" && t.text == "broadcast":
		return p.fail(t, "the broadcast address of the network is not known\ntry: dst host 192.0.2.255")
	case proto == "ip":
		return p.each(func(b base) condition {
			return all(b.carries(etherIP), compare{b.ip4(16, 1), number(0xe0), bpf.JumpGreaterOrEqual}) // and broadcast, as with libpcap
		})
	case proto == "ip6" && t.text == "multicast":
		return p.each(func(b base) condition { return all(b.carries(etherIP6), equals(b.ip6(24, 1), 0xff)) })
	}
	return p.fail(t, proto+" has no "+t.text)
}

// qualifiers reads what stands in front of an id.
func (p *parser) qualifiers() qualifiers {
	var q qualifiers
	if t := p.peek(); t.text == "ether" || networks[t.text] != 0 || transports[t.text] != 0 || t.text == "icmp6" {
		p.next()
		q.proto, q.said = t.text, true
	}
	if p.accept("src") {
		q.of, q.said = source, true
		if t := p.peek(); t.text == "or" || t.text == "and" {
			if p.tokens[p.at+1].text == "dst" {
				p.at += 2
				if q.of = eitherEnd; t.text == "and" {
					q.of = bothEnds
				}
			}
		}
	} else if p.accept("dst") {
		q.of, q.said = destination, true
		if t := p.peek(); (t.text == "or" || t.text == "and") && p.tokens[p.at+1].text == "src" {
			p.at += 2
			if q.of = eitherEnd; t.text == "and" {
				q.of = bothEnds
			}
		}
	}
	if t := p.peek(); slices.Contains([]string{"host", "net", "port", "portrange", "proto"}, t.text) {
		p.next()
		q.kind, q.said = t.text, true
	}
	return q
}

// ids reads an id, or several in parentheses, to which the qualifiers belong; an id
// without any takes those of the id before.
func (p *parser) ids(q qualifiers) condition {
	t := p.peek()
	if !q.said {
		if !startsID(t.text) {
			return p.fail(t, "want a condition, got "+shown(t))
		}
		if q = p.last; q.kind == "" && q.proto == "" && q.of == eitherEnd {
			q.kind = "host"
		}
	}
	p.last = q
	if p.accept("(") {
		c := p.idList(q)
		p.expect(")", "behind the ids")
		return c
	}
	if q.kind == "" && !startsID(t.text) {
		if q.of != eitherEnd {
			return p.fail(t, "want a host, a net or a port, got "+shown(t))
		}
		p.last = qualifiers{}
		return p.protocol(q.proto, t)
	}
	if q.kind == "" {
		q.kind = "host"
		if strings.Contains(t.text, "/") {
			q.kind = "net"
		}
	}
	p.next()
	return p.id(q, t)
}

// idList is ids joined with and, or, not.
func (p *parser) idList(q qualifiers) condition {
	var c condition
	join := func(d condition) { c = d }
	for p.err == nil {
		not := p.accept("not", "!")
		var d condition
		if p.depth++; p.depth > maxDepth {
			return p.fail(p.peek(), "nested too deep")
		}
		if p.accept("(") {
			d = p.idList(q)
			p.expect(")", "behind the ids")
		} else {
			d = p.id(q, p.next())
		}
		p.depth--
		if not {
			d = negated{d}
		}
		join(d)
		before := c
		switch {
		case p.accept("and", "&&"):
			join = func(d condition) { c = both{before, d} }
		case p.accept("or", "||"):
			join = func(d condition) { c = either{before, d} }
		default:
			return c
		}
	}
	return never
}

// startsID reports whether a word can be an address, a port or a MAC address.
func startsID(s string) bool {
	return s != "" && (s[0] >= '0' && s[0] <= '9' || strings.Contains(s, ":"))
}

// protocol holds for packets of a protocol.
func (p *parser) protocol(name string, at token) condition {
	if name == "icmp6" {
		return p.each(func(b base) condition {
			return all(b.carries(etherIP6), some(
				equals(b.ip6(6, 1), protoICMP6),
				all(equals(b.ip6(6, 1), protoFragment), equals(b.ip6(40, 1), protoICMP6))))
		})
	}
	if n, ok := networks[name]; ok {
		return p.each(func(b base) condition { return b.carries(n) })
	}
	n, ok := transports[name]
	switch {
	case !ok:
		return p.fail(at, "want a host, a net or a protocol behind "+name+", got "+shown(at))
	case name == "icmp" || name == "igmp":
		return p.each(func(b base) condition { return all(b.carries(etherIP), equals(b.ip4(9, 1), n)) })
	}
	return p.each(func(b base) condition { return b.transport(n) })
}

// id is a host, a net, a port, a range of ports or the number of a protocol.
func (p *parser) id(q qualifiers, t token) condition {
	if q.proto == "ether" && q.kind != "proto" {
		return p.mac(q, t)
	}
	switch q.kind {
	case "port", "portrange":
		return p.port(q, t)
	case "proto":
		return p.number(q, t)
	case "net":
		return p.network(q, t)
	}
	if q.kind == "" && strings.Contains(t.text, "/") {
		return p.network(q, t)
	}
	addr, err := netip.ParseAddr(t.text)
	if err != nil {
		return p.fail(t, "want an address, got "+shown(t)+"; names are not looked up")
	}
	return p.prefix(q, netip.PrefixFrom(addr.WithZone(""), addr.BitLen()), t)
}

// port is a port, or two with a hyphen between them.
func (p *parser) port(q qualifiers, t token) condition {
	var protos []uint32
	switch n := transports[q.proto]; {
	case q.proto == "":
		protos = []uint32{protoTCP, protoUDP, protoSCTP}
	case n == protoTCP || n == protoUDP || n == protoSCTP:
		protos = []uint32{n}
	default:
		return p.fail(t, q.proto+" has no ports")
	}
	first, last, isRange := strings.Cut(t.text, "-")
	if isRange != (q.kind == "portrange") {
		return p.fail(t, map[bool]string{true: "want one port, got a range\ntry: portrange " + t.text, false: "want a range such as 2300-2400, got " + shown(t)}[isRange])
	}
	if !isRange {
		last = first
	}
	low, err := portNumber(q.proto, first)
	high, errHigh := portNumber(q.proto, last)
	if err != nil || errHigh != nil {
		return p.fail(t, "want a port from 0 to 65535, got "+shown(t))
	}
	if low > high {
		low, high = high, low
	}
	return p.each(func(b base) condition {
		var list []condition
		for _, n := range protos {
			list = append(list, b.ports(n, low, high, q.of))
		}
		return some(list...)
	})
}

// portNumber takes a port by number, or by the name that the system has for it.
func portNumber(proto, s string) (uint32, error) {
	if n, err := strconv.ParseUint(s, 0, 16); err == nil {
		return uint32(n), nil
	}
	if startsID(s) {
		return 0, strconv.ErrRange
	}
	if proto == "" || proto == "sctp" {
		proto = "tcp"
	}
	n, err := net.LookupPort(proto, s)
	return uint32(n), err
}

// number is the number or name of a protocol within another.
func (p *parser) number(q qualifiers, t token) condition {
	name := strings.TrimPrefix(t.text, "\\")
	n, err := strconv.ParseUint(name, 0, 16)
	number := uint32(n)
	if q.proto == "ether" {
		if named, ok := networks[name]; ok {
			number, err = named, nil
		}
		if err != nil {
			return p.fail(t, "want an EtherType, got "+shown(t))
		}
		return p.each(func(b base) condition { return b.carries(number) })
	}
	if named, ok := transports[name]; ok {
		number, err = named, nil
	} else if name == "icmp6" {
		number, err = protoICMP6, nil
	}
	if err != nil || number > 255 {
		return p.fail(t, "want an IP protocol from 0 to 255, got "+shown(t))
	}
	return p.each(func(b base) condition {
		four := all(b.carries(etherIP), equals(b.ip4(9, 1), number))
		six := all(b.carries(etherIP6), some(equals(b.ip6(6, 1), number), all(equals(b.ip6(6, 1), protoFragment), equals(b.ip6(40, 1), number))))
		switch q.proto {
		case "ip":
			return four
		case "ip6":
			return six
		case "":
			return some(four, six)
		}
		return p.fail(t, q.proto+" carries no protocol that has a number")
	})
}

// network is 192.0.2.0/24, 192.0.2, or 192.0.2.0 mask 255.255.255.0.
func (p *parser) network(q qualifiers, t token) condition {
	if prefix, err := netip.ParsePrefix(t.text); err == nil {
		return p.masked(q, prefix, t)
	}
	text, bits, sized := strings.Cut(t.text, "/")
	parts := strings.Split(text, ".")
	prefix := netip.Prefix{}
	if len(parts) <= 4 && !strings.Contains(text, ":") {
		padded := strings.Join(append(parts, slices.Repeat([]string{"0"}, 4-len(parts))...), ".")
		if addr, err := netip.ParseAddr(padded); err == nil {
			n := 8 * len(parts)
			if sized {
				if n, err = strconv.Atoi(bits); err != nil || n > 32 {
					n = -1
				}
			}
			prefix = netip.PrefixFrom(addr, n)
		}
	} else if addr, err := netip.ParseAddr(text); err == nil && !sized {
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	if !prefix.IsValid() {
		return p.fail(t, "want a net such as 192.0.2.0/24, got "+shown(t))
	}
	if !sized && p.accept("mask") {
		m := p.next()
		mask, err := netip.ParseAddr(m.text)
		ones, length := 0, 0
		if err == nil && mask.Is4() {
			four := mask.As4()
			ones, length = net.IPMask(four[:]).Size()
		}
		if length == 0 {
			return p.fail(m, "want a mask such as 255.255.255.0, got "+shown(m))
		}
		prefix = netip.PrefixFrom(prefix.Addr(), ones)
	}
	return p.masked(q, prefix, t)
}

// masked refuses a net with bits set behind its length, as in tcpdump.
func (p *parser) masked(q qualifiers, prefix netip.Prefix, t token) condition {
	if prefix.Masked() != prefix {
		return p.fail(t, "bits of the host are set in "+shown(t)+"\ntry: net "+prefix.Masked().String())
	}
	return p.prefix(q, prefix, t)
}

// prefix holds for packets from or to the addresses of a net.
func (p *parser) prefix(q qualifiers, prefix netip.Prefix, t token) condition {
	addr := prefix.Addr()
	if !addr.Is4() {
		if q.proto != "" && q.proto != "ip6" && transports[q.proto] == 0 {
			return p.fail(t, q.proto+" has no IPv6 addresses")
		}
		return p.each(func(b base) condition {
			return all(b.carries(etherIP6), p.within(q, b), q.of.join(func(end int) condition { return b.inside6(8+16*end, prefix) }))
		})
	}
	if q.proto == "ip6" {
		return p.fail(t, "ip6 has no IPv4 addresses")
	}
	bytes := addr.As4()
	value, mask := binary.BigEndian.Uint32(bytes[:]), maskOf(prefix.Bits())
	at := func(b base, etherType uint32, offset, step int) condition {
		return all(b.carries(etherType), p.within(q, b), q.of.join(func(end int) condition {
			if mask == 0 {
				return always
			}
			return equals(masked(field{b.network + offset + step*end, 4}, mask), value)
		}))
	}
	return p.each(func(b base) condition {
		switch q.proto {
		case "arp", "rarp":
			return at(b, networks[q.proto], 14, 10)
		case "":
			return some(at(b, etherIP, 12, 4), at(b, etherARP, 14, 10), at(b, etherRARP, 14, 10))
		}
		return at(b, etherIP, 12, 4)
	})
}

// within holds for the transport protocol that qualifies an address, if any.
func (p *parser) within(q qualifiers, b base) condition {
	if n := transports[q.proto]; n != 0 {
		return b.transport(n)
	}
	return nil
}

// maskOf returns a mask of n bits from the top.
func maskOf(n int) uint32 { return ^uint32(0) << uint(32-n) }

// inside6 compares an IPv6 address, some bytes into the header, with a net.
func (b base) inside6(at int, prefix netip.Prefix) condition {
	want := prefix.Addr().As16()
	list := []condition{always}
	for i := 0; i < 4; i++ {
		bits := min(max(prefix.Bits()-32*i, 0), 32)
		if bits == 0 {
			break
		}
		list = append(list, equals(masked(b.ip6(at+4*i, 4), maskOf(bits)), binary.BigEndian.Uint32(want[4*i:])&maskOf(bits)))
	}
	return all(list...)
}

// mac compares the addresses of Ethernet.
func (p *parser) mac(q qualifiers, t token) condition {
	addr, err := net.ParseMAC(t.text)
	if err != nil || len(addr) != 6 || q.kind != "host" && q.kind != "" {
		return p.fail(t, "want a MAC address such as 02:00:00:00:00:01, got "+shown(t))
	}
	if !p.ether {
		return p.fail(t, "packets of this link type have no Ethernet header")
	}
	return q.of.join(func(end int) condition {
		at := 6 * (1 - end) // the destination comes first
		return all(
			equals(field{at + 2, 4}, binary.BigEndian.Uint32(addr[2:])),
			equals(field{at, 2}, uint32(binary.BigEndian.Uint16(addr))))
	})
}
