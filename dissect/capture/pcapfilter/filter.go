package pcapfilter

import (
	"fmt"

	"golang.org/x/net/bpf"
)

// Link is how the packets begin that a program is given.
type Link uint8

// The links.
const (
	Ethernet     Link = iota // of a file
	LiveEthernet             // of a packet socket, which takes VLAN tags out and tells them beside
	LiveNetwork              // of a packet socket that leaves out the link layer
	RawIP
	Cooked  // LINKTYPE_LINUX_SLL
	Cooked2 // LINKTYPE_LINUX_SLL2
)

// links are where the network layer begins.
var links = map[Link]base{
	Ethernet:     {kind: byField, at: 12, network: 14},
	LiveEthernet: {kind: byField, at: 12, network: 14},
	LiveNetwork:  {kind: byMetadata},
	RawIP:        {kind: byVersion},
	Cooked:       {kind: byField, at: 14, network: 16},
	Cooked2:      {kind: byField, at: 0, network: 20},
}

// Filter is a capture filter that has been understood.
type Filter struct {
	text string
	link Link
	wish condition // nil for every packet
}

// Parse reads an expression; an empty one is for every packet. It returns *SyntaxError.
func Parse(expr string, link Link) (*Filter, error) {
	f := &Filter{text: expr, link: link}
	tokens, err := lex(expr)
	if err != nil {
		return nil, err
	}
	if len(tokens) == 1 {
		return f, nil
	}
	p := parser{
		expr: expr, tokens: tokens, bases: []base{links[link]},
		ether: link == Ethernet || link == LiveEthernet, live: link == LiveEthernet || link == LiveNetwork,
	}
	f.wish = p.expression()
	if t := p.peek(); p.err == nil && t.text != "" {
		p.fail(t, "want and, or, or the end, got "+shown(t))
	}
	if p.err != nil {
		return nil, p.err
	}
	return f, nil
}

// Ports returns a filter for TCP segments and datagrams of some ports. Unlike the
// expression of the same words it lets through the later fragments, which have no
// ports, and packets behind one or two VLAN tags.
func Ports(ports []uint16, link Link) *Filter {
	untagged := links[link]
	bases := []base{untagged}
	if untagged.kind != byVersion {
		one := untagged.tagged()
		bases = append(bases, one, one.tagged())
	}
	var list []condition
	text := "later fragments"
	for _, b := range bases {
		var wish []condition
		for _, port := range ports {
			n := uint32(port)
			wish = append(wish, b.ports(protoUDP, n, n, eitherEnd), b.ports(protoTCP, n, n, eitherEnd))
		}
		list = append(list, all(b.guard, some(append(wish, b.later())...)))
	}
	for i := len(ports) - 1; i >= 0; i-- {
		text = fmt.Sprintf("port %d or %s", ports[i], text)
	}
	return &Filter{text: text, link: link, wish: some(list...)}
}

// String returns the expression.
func (f *Filter) String() string { return f.text }

// Program returns the instructions that keep snap bytes of a packet that passes, and
// none of another.
func (f *Filter) Program(snap int) ([]bpf.Instruction, error) { return assemble(f.wish, snap) }
