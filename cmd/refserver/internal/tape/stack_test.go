package tape

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// ends are two hosts of either IP version.
var ends = map[string][2]netip.AddrPort{
	"IPv4": {netip.MustParseAddrPort("10.0.0.2:50111"), netip.MustParseAddrPort("10.0.0.1:2627")},
	"IPv6": {netip.MustParseAddrPort("[fd00::2]:50111"), netip.MustParseAddrPort("[fd00::1]:2627")},
}

// links are all the headers that may stand in front.
var links = map[string]Link{
	"Ethernet":           {},
	"VLAN":               {VLAN: 42},
	"cooked":             {Type: Cooked, Host: netip.MustParseAddr("10.0.0.1")},
	"cooked 2":           {Type: Cooked2, Host: netip.MustParseAddr("10.0.0.1")},
	"cooked 2 with VLAN": {Type: Cooked2, VLAN: 7},
}

// parsed is a packet read by hand, apart from what wrote it.
type parsed struct {
	ip      []byte
	v6      bool
	id      uint32
	offset  int
	more    bool
	payload []byte // of IP
}

// parse reads the headers up to IP and checks what they say.
func parse(t *testing.T, l Link, data []byte) parsed {
	t.Helper()
	at := map[LinkType]int{0: 12, Ethernet: 12, Cooked: 14, Cooked2: 0}[l.Type]
	size := map[LinkType]int{0: 14, Ethernet: 14, Cooked: 16, Cooked2: 20}[l.Type]
	protocol := binary.BigEndian.Uint16(data[at:])
	b := data[size:]
	if l.VLAN != 0 {
		if protocol != 0x8100 || binary.BigEndian.Uint16(b) != l.VLAN {
			t.Fatalf("tag: protocol %#x, tag % x", protocol, b[:4])
		}
		protocol, b = binary.BigEndian.Uint16(b[2:]), b[4:]
	}
	if protocol == 0x86dd {
		return parse6(t, b)
	}
	if protocol != 0x0800 {
		t.Fatalf("protocol %#x", protocol)
	}
	n := int(binary.BigEndian.Uint16(b[2:]))
	if b[0] != 0x45 || n > len(b) {
		t.Fatalf("IPv4 header % x of %d bytes", b[:20], len(b))
	}
	if sum := fold(0, b[:20]); sum != 0xffff {
		t.Errorf("IPv4 header sums up to %#x", sum)
	}
	piece := binary.BigEndian.Uint16(b[6:])
	return parsed{
		ip: b[:20], id: uint32(binary.BigEndian.Uint16(b[4:])), offset: int(piece&0x1fff) * 8, more: piece&0x2000 != 0, payload: b[20:n],
	}
}

func parse6(t *testing.T, b []byte) parsed {
	n := 40 + int(binary.BigEndian.Uint16(b[4:]))
	if b[0]>>4 != 6 || n > len(b) {
		t.Fatalf("IPv6 header % x of %d bytes", b[:40], len(b))
	}
	p := parsed{ip: b[:40], v6: true, payload: b[40:n]}
	if b[6] == 44 {
		f := b[40:48]
		if f[0] != 17 {
			t.Errorf("fragment of protocol %d", f[0])
		}
		p.offset, p.more = int(binary.BigEndian.Uint16(f[2:])&^7), f[3]&1 != 0
		p.id, p.payload = binary.BigEndian.Uint32(f[4:]), b[48:n]
	}
	return p
}

// fold adds 16-bit words in one's complement.
func fold(sum uint32, b []byte) uint32 {
	for i := 0; i < len(b); i += 2 {
		if i+1 < len(b) {
			sum += uint32(b[i])<<8 | uint32(b[i+1])
		} else {
			sum += uint32(b[i]) << 8
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return sum
}

// checkTransport checks the checksum of UDP or TCP.
func checkTransport(t *testing.T, p parsed, protocol byte, body []byte) {
	t.Helper()
	addresses := p.ip[12:20]
	if p.v6 {
		addresses = p.ip[8:40]
	}
	sum := fold(0, addresses)
	sum = fold(sum, []byte{0, protocol, byte(len(body) >> 8), byte(len(body))})
	if sum = fold(sum, body); sum != 0xffff {
		t.Errorf("protocol %d sums up to %#x", protocol, sum)
	}
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

func TestDatagram(t *testing.T) {
	for version, e := range ends {
		for name, link := range links {
			for _, n := range []int{0, 1, 5, 1000, 1452, 1472, 1473, 3072, 9001} {
				t.Run(fmt.Sprintf("%s over %s, %d bytes", version, name, n), func(t *testing.T) {
					s := Stack{Link: link}
					data := pattern(n)
					packets, err := s.Datagram(e[0], e[1], data)
					if err != nil {
						t.Fatal(err)
					}
					checkDatagram(t, link, packets, data, e)
				})
			}
		}
	}
}

// checkDatagram puts a datagram together again.
func checkDatagram(t *testing.T, link Link, packets []Packet, data []byte, e [2]netip.AddrPort) {
	var body []byte
	var last parsed
	for i, p := range packets {
		if over := len(p.Data) - link.size() - 1500; over > 0 && len(p.Data) > 60 {
			t.Errorf("packet %d is %d bytes above the MTU", i, over)
		}
		last = parse(t, link, p.Data)
		if last.offset != len(body) || last.more != (i < len(packets)-1) {
			t.Errorf("fragment %d: offset %d, more %v; have %d bytes", i, last.offset, last.more, len(body))
		}
		body = append(body, last.payload...)
		if got := p.Data[p.Start : p.Start+p.To-p.From]; !bytes.Equal(got, data[p.From:p.To]) {
			t.Errorf("packet %d does not carry bytes %d to %d at %d", i, p.From, p.To, p.Start)
		}
		if got := p.Captured(p.Start + 1); got != min(1, p.To-p.From) {
			t.Errorf("one byte beyond the header: %d captured", got)
		}
	}
	checkTransport(t, last, 17, body)
	if src, dst, n := binary.BigEndian.Uint16(body), binary.BigEndian.Uint16(body[2:]), int(binary.BigEndian.Uint16(body[4:])); src != e[0].Port() || dst != e[1].Port() || n != len(body) {
		t.Errorf("UDP header % x in front of %d bytes", body[:8], len(body)-8)
	}
	if !bytes.Equal(body[8:], data) {
		t.Errorf("payload differs")
	}
}

func TestChecksumOfZeroIsSentAsOnes(t *testing.T) {
	e := ends["IPv4"]
	s := Stack{}
	for i := range 1 << 16 {
		packets, err := s.Datagram(e[0], e[1], []byte{byte(i >> 8), byte(i)})
		if err != nil {
			t.Fatal(err)
		}
		p := parse(t, Link{}, packets[0].Data)
		if sum := binary.BigEndian.Uint16(p.payload[6:]); sum == 0 {
			t.Fatalf("payload %04x: no checksum", i)
		} else if sum == 0xffff {
			checkTransport(t, p, 17, p.payload)
			return
		}
	}
	t.Fatal("no payload sums up to zero")
}

func TestSegment(t *testing.T) {
	for version, e := range ends {
		for name, link := range links {
			t.Run(version+" over "+name, func(t *testing.T) {
				s := Stack{Link: link}
				for _, flags := range []Flags{SYN, SYN | ACK, ACK, ACK | PSH, FIN | ACK, RST} {
					g := Segment{Src: e[0], Dst: e[1], Seq: 0xfffffff0, Ack: 77, Flags: flags, Window: 65535}
					if flags&PSH != 0 {
						g.Data = pattern(s.MSS(e[0].Addr()))
					}
					p, err := s.Segment(&g)
					if err != nil {
						t.Fatal(err)
					}
					checkSegment(t, link, p, g)
				}
			})
		}
	}
}

func checkSegment(t *testing.T, link Link, p Packet, g Segment) {
	ip := parse(t, link, p.Data)
	checkTransport(t, ip, 6, ip.payload)
	var tcp layers.TCP
	if err := tcp.DecodeFromBytes(ip.payload, gopacket.NilDecodeFeedback); err != nil {
		t.Fatal(err)
	}
	if uint16(tcp.SrcPort) != g.Src.Port() || uint16(tcp.DstPort) != g.Dst.Port() || tcp.Seq != g.Seq || tcp.Ack != g.Ack || tcp.Window != g.Window {
		t.Errorf("header %+v, want %+v", tcp, g)
	}
	got := Flags(ip.payload[13])
	if got != g.Flags {
		t.Errorf("flags %#x, want %#x", got, g.Flags)
	}
	if mss := len(tcp.Options) > 0; mss != (g.Flags&SYN != 0) {
		t.Errorf("options %v", tcp.Options)
	}
	if !bytes.Equal(tcp.Payload, g.Data) || !bytes.Equal(p.Data[p.Start:p.Start+p.To], g.Data) {
		t.Errorf("payload of %d bytes, want %d", len(tcp.Payload), len(g.Data))
	}
}

// TestBroadcast looks at the link layer of packets to everybody: for Ethernet the address
// of all ones, for cooked headers the type 1 of the LINKTYPE_LINUX_SLL page, unless the
// capturing host sends it.
func TestBroadcast(t *testing.T) {
	all := netip.MustParseAddrPort("255.255.255.255:47624")
	for name, test := range map[string]struct {
		link Link
		src  string
		at   int
		want []byte
	}{
		"Ethernet":            {Link{}, "10.0.0.2:1031", 0, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
		"cooked":              {links["cooked"], "10.0.0.2:1031", 0, []byte{0, 1}},
		"cooked, by the host": {links["cooked"], "10.0.0.1:1031", 0, []byte{0, 4}},
		"cooked 2":            {links["cooked 2"], "10.0.0.2:1031", 10, []byte{1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := Stack{Link: test.link}
			p, err := s.Datagram(netip.MustParseAddrPort(test.src), all, []byte("who is there?"))
			if err != nil {
				t.Fatal(err)
			}
			if got := p[0].Data[test.at:][:len(test.want)]; !bytes.Equal(got, test.want) {
				t.Errorf("% x, want % x", got, test.want)
			}
		})
	}
}
