package load

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"opscope/cmd/refserver/internal/scenario"
)

// session is a session that was played, to be told again and again.
type session struct {
	packets []packet
	records []record
	flows   int
	size    int64 // bytes of its packets in a file
}

// packet is a packet of a session.
type packet struct {
	after   time.Duration // from the start of the session
	data    []byte        // an Ethernet frame
	records []int         // those with bytes of it, by their index
	path    int           // number of the flow and the direction; those of one number come in order
	segment bool          // of TCP, with a payload
	whole   bool          // a datagram that is no fragment
}

// record is a record of a session.
type record struct {
	message int // index of its name
	packets int // how many packets carry bytes of it
}

// names gives each name a number.
type names struct {
	list []string
	of   map[string]int
}

func (n *names) number(name string) int {
	i, ok := n.of[name]
	if !ok {
		i = len(n.list)
		n.of[name] = i
		n.list = append(n.list, name)
	}
	return i
}

// overhead is what a file has beside the bytes of a packet: an Enhanced Packet Block
// without options, draft-ietf-opsawg-pcapng section 4.3, without its padding.
const overhead = 32

// play plays a session of some ten seconds, or times as long.
func play(protocol string, seed uint64, times int, n *names) (*session, error) {
	usual, ok := scenario.Usual(protocol, seed, times)
	if !ok {
		return nil, fmt.Errorf("no players of %q are known", protocol)
	}
	reel, truth, err := usual.Rehearse(seed)
	if err != nil {
		return nil, err
	}
	s := &session{packets: make([]packet, len(reel))}
	paths := map[[2]netip.AddrPort]int{}
	for i, shot := range reel {
		p := &s.packets[i]
		p.after, p.data = shot.Time.Sub(scenario.Start), shot.Data
		s.size += int64(overhead + (len(p.data)+3)&^3)
		p.segment, p.whole = kindOf(p.data)
		ends := endsOf(p.data)
		path, known := paths[ends]
		if !known {
			path = len(paths)
			paths[ends] = path
			if _, back := paths[[2]netip.AddrPort{ends[1], ends[0]}]; !back {
				s.flows++
			}
		}
		p.path = path
	}
	for _, sent := range truth.Sent {
		if sent.Captured != scenario.Whole {
			return nil, fmt.Errorf("session of %s, seed %d: the capture has not all of %s", protocol, seed, sent.Message)
		}
		for _, number := range sent.Packets {
			p := &s.packets[number-1]
			p.records = append(p.records, len(s.records))
		}
		s.records = append(s.records, record{n.number(sent.Message), len(sent.Packets)})
	}
	return s, nil
}

// Where things stand in a packet of the tape: IPv4 behind an Ethernet header.
const (
	atSrcMAC    = 6
	atIP        = 14
	atFragment  = atIP + 6
	atProtocol  = atIP + 9
	atHeaderSum = atIP + 10
	atSrc       = atIP + 12
	atDst       = atIP + 16
	atTransport = atIP + 20
	atUDPSum    = atTransport + 6
	atOffset    = atTransport + 12
	atTCPSum    = atTransport + 16

	protocolTCP = 6
)

// kindOf reports whether a packet is a segment with a payload, or a datagram in one
// piece.
func kindOf(data []byte) (segment, datagram bool) {
	if data[atProtocol] == protocolTCP {
		total := int(binary.BigEndian.Uint16(data[atIP+2:]))
		return total > 20+int(data[atOffset]>>4)*4, false
	}
	return false, binary.BigEndian.Uint16(data[atFragment:])&0x3fff == 0
}

// endsOf returns source and destination. All fragments of a flow count as those of one
// without ports.
func endsOf(data []byte) (ends [2]netip.AddrPort) {
	for i := range ends {
		addr, _ := netip.AddrFromSlice(data[atSrc+4*i:][:4])
		port := uint16(0)
		if binary.BigEndian.Uint16(data[atFragment:])&0x3fff == 0 {
			port = binary.BigEndian.Uint16(data[atTransport+2*i:])
		}
		ends[i] = netip.AddrPortFrom(addr, port)
	}
	return ends
}

// move puts a copy of a packet between the hosts of another cell: 10.0.0.n becomes
// 10.a.b.n. The checksums are mended by what that adds to them, RFC 1624. A cell beyond
// the 65,536th counts on in the first byte.
func move(data []byte, cell int) {
	high, low := uint16(10+cell>>16)<<8|uint16(cell>>8&0xff), byte(cell)
	sums := []int{atHeaderSum}
	if fragment := binary.BigEndian.Uint16(data[atFragment:]); data[atProtocol] == protocolTCP {
		sums = append(sums, atTCPSum)
	} else if fragment&0x1fff == 0 {
		sums = append(sums, atUDPSum)
	}
	for _, at := range []int{atSrc, atDst} {
		for i, v := range []uint16{high, uint16(low)<<8 | uint16(data[at+3])} {
			old := binary.BigEndian.Uint16(data[at+2*i:])
			binary.BigEndian.PutUint16(data[at+2*i:], v)
			for _, sum := range sums {
				mend(data[sum:], old, v)
			}
		}
	}
	if at := sums[len(sums)-1]; at == atUDPSum && data[at] == 0 && data[at+1] == 0 {
		data[at], data[at+1] = 0xff, 0xff // zero would say that there is none, RFC 768
	}
	copy(data[2:6], data[atDst:atDst+4])
	copy(data[atSrcMAC+2:atSrcMAC+6], data[atSrc:atSrc+4])
}

// mend mends a checksum over a word that changes, RFC 1624 section 3.
func mend(sum []byte, old, v uint16) {
	s := uint32(^binary.BigEndian.Uint16(sum)) + uint32(^old) + uint32(v)
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	binary.BigEndian.PutUint16(sum, ^uint16(s))
}
