package main

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"opscope/dissect/scene"
)

const macs = "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02"

// etherTypeOf returns the EtherType of an IP packet.
func etherTypeOf(ip string) string {
	if ip[0]>>4 == 6 {
		return "\x86\xdd"
	}
	return "\x08\x00"
}

// session is a connection and datagrams over some link layer.
func session(e ends, around func(ip string) string) *scene.Scene {
	s := &scene.Scene{Around: around}
	c, u := greet(s, e)
	c.Send(fromServer, chat(1))
	u.Send(fromClient, counter)
	return s
}

// sessionRecords are the records of session.
const sessionRecords = `
	s2c HELLO
	s2c HELLO
	c2s ROOT
	c2s HELLO
	s2c COMM_MESSAGE
	c2s INPUT_FEEDBACK`

// encapsulations are what may be around an IP packet, beside what pcaps/ shows: the link
// type, and all that stands around one.
var encapsulations = map[string]struct {
	link   int
	around func(ip string) string
}{
	"PPP":            {9, func(ip string) string { return "\xff\x03" + pppOf(ip) + ip }},
	"compressed PPP": {9, func(ip string) string { return pppOf(ip)[1:] + ip }},
	"PPP in HDLC":    {50, func(ip string) string { return "\xff\x03" + pppOf(ip) + ip }},
	"Cisco's HDLC":   {104, func(ip string) string { return "\x0f\x00" + etherTypeOf(ip) + ip }},
	"PPPoE":          {1, func(ip string) string { return macs + "\x88\x64" + pppoe(ip) }},
	"bare PPPoE":     {51, pppoe},
	"MPLS":           {1, func(ip string) string { return macs + "\x88\x47" + labels + ip }},
	"MPLS in PPP":    {9, func(ip string) string { return "\x02\x81" + labels + ip }},
	"MPLS in GRE":    {1, func(ip string) string { return outside(47, "\x00\x00\x88\x47"+labels+ip) }},
	"a pseudowire":   {1, func(ip string) string { return macs + "\x88\x47" + labels + scene.BE32(0) + scene.Ethernet(ip) }},
	"802.3":          {1, func(ip string) string { return macs + scene.BE16(8+len(ip)) + snap + etherTypeOf(ip) + ip + "pad" }},
	"802.3 in a VLAN": {1, func(ip string) string {
		return macs + "\x81\x00\x00\x07" + scene.BE16(8+len(ip)) + snap + etherTypeOf(ip) + ip
	}},
	"802.2, cooked": {113, func(ip string) string {
		return "\x00\x00\x00\x01\x00\x06" + macs[:8] + "\x00\x04" + snap + etherTypeOf(ip) + ip
	}},
	"IP in IP": {1, func(ip string) string { return outside(map[byte]byte{4: 4, 6: 41}[ip[0]>>4], ip) }},
	"GRE":      {1, func(ip string) string { return outside(47, "\x20\x00"+etherTypeOf(ip)+scene.BE32(7)+ip) }},
	"VXLAN":    {1, func(ip string) string { return overlay(4789, "\x08\x00\x00\x00\x00\x00\x2a\x00"+scene.Ethernet(ip)) }},
	"Geneve": {1, func(ip string) string {
		return overlay(6081, "\x02\x00\x65\x58\x00\x00\x2a\x00\x01\x02\x80\x01data"+scene.Ethernet(ip))
	}},
	"Geneve of IP":      {1, func(ip string) string { return overlay(6081, "\x00\x00"+etherTypeOf(ip)+"\x00\x00\x2a\x00"+ip) }},
	"NFLOG":             {239, func(ip string) string { return nflog(binary.LittleEndian, ip) }},
	"big-endian NFLOG":  {239, func(ip string) string { return nflog(binary.BigEndian, ip) }},
	"PKTAP":             {258, func(ip string) string { return pktap(1, scene.Ethernet(ip)) }},
	"PKTAP of a tunnel": {258, func(ip string) string { return pktap(12, ip) }},
	"PPI":               {192, func(ip string) string { return "\x00\x00\x08\x00\x01\x00\x00\x00" + scene.Ethernet(ip) }},
}

// snap is IEEE 802.2 up to an EtherType, and labels two of MPLS: 16 of class 5 and 17, the last.
const (
	snap   = "\xaa\xaa\x03\x00\x00\x00"
	labels = "\x00\x01\x0a\x40\x00\x01\x11\x40"
)

// pppOf returns the PPP protocol of an IP packet.
func pppOf(ip string) string {
	if ip[0]>>4 == 6 {
		return "\x00\x57"
	}
	return "\x00\x21"
}

// pppoe puts a session of PPPoE in front of an IP packet.
func pppoe(ip string) string { return "\x11\x00\x00\x03" + scene.BE16(2+len(ip)) + pppOf(ip) + ip }

// outside puts Ethernet and IPv4 between two routers in front of what that carries.
func outside(protocol byte, payload string) string {
	return scene.Ethernet(scene.IP(netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), protocol, payload))
}

// overlay puts a datagram between two routers around a payload, with its checksum.
func overlay(port uint16, payload string) string {
	from, to := netip.MustParseAddrPort("192.0.2.1:55555"), netip.AddrPortFrom(netip.MustParseAddr("192.0.2.2"), port)
	return scene.Ethernet(withSums(scene.IP(from.Addr(), to.Addr(), 17, scene.UDP(from, to, payload))))
}

// nflog puts what netfilter notes of a received packet in front of it: protocol and hook, a prefix, and the
// interface, whose index is always big-endian.
func nflog(order binary.AppendByteOrder, ip string) string {
	family := map[byte]byte{4: 2, 6: 10}[ip[0]>>4]
	b := []byte{family, 0, 0, 5}
	for _, n := range []struct {
		kind  uint16
		value string
	}{{1, etherTypeOf(ip) + "\x01\x00"}, {10, "game\x00"}, {4, "\x00\x00\x00\x02"}, {9, ip}} {
		b = order.AppendUint16(b, uint16(4+len(n.value)))
		b = order.AppendUint16(b, n.kind)
		b = append(b, n.value...)
		b = append(b, make([]byte, -len(b)&3)...)
	}
	return string(b)
}

// pktap puts what macOS notes of a received packet of a link type in front of it.
func pktap(link byte, packet string) string {
	b := make([]byte, 108)
	b[0], b[4], b[8], b[36] = 108, 1, link, 1
	copy(b[12:], "en0")
	return string(b) + packet
}

// zero puts zeros in the place of two bytes.
func zero(s string, at int) string { return s[:at] + "\x00\x00" + s[at+2:] }

// Headers of links, networks and transports.
var linkReports = []report{
	{"B46: cooked captures say by which interface a packet passed, and how", func(t *testing.T, e ends) {
		const address = "\x02\x00\x00\x00\x00\x01\x00\x00"
		for link, around := range map[int]func(ip string) string{
			113: func(ip string) string { return "\x00\x04\x00\x01\x00\x06" + address + etherTypeOf(ip) + ip },
			276: func(ip string) string {
				return etherTypeOf(ip) + "\x00\x00\x00\x00\x00\x03\x00\x01\x04\x06" + address + ip
			},
		} {
			out := showFile(t, session(e, around).Pcap(link))
			out.want("record", sessionRecords)
			for _, r := range records(out.objects) {
				if r["passed"] != "out" || link == 276 && r["interface"] != 3.0 {
					t.Errorf("link type %d: passed %v, interface %v", link, r["passed"], r["interface"])
				}
			}
			detailed := showFile(t, session(e, around).Pcap(link), "-v")
			if want := map[int]string{113: "  out\n", 276: "  out on interface 3\n"}[link]; !strings.Contains(detailed.text, want) {
				t.Errorf("link type %d: no %q in\n%s", link, want, detailed.text)
			}
		}
	}},
	{"B46: an unknown link type is named, and not passed over in silence", func(t *testing.T, e ends) {
		out := showFile(t, session(e, nil).Pcap(147))
		out.exits(exitInput, "link type 147 (USER0) is not supported")
		out.counts("unsupported_packets", 7)
	}},
	{"B47: loopback headers of all systems", func(t *testing.T, e ends) {
		v6 := e.name == "IPv6"
		families := []string{"\x02\x00\x00\x00", "\x00\x00\x00\x02", "\x00\x00\x08\x00"}
		if v6 {
			families = []string{"\x18\x00\x00\x00", "\x1c\x00\x00\x00", "\x1e\x00\x00\x00", "\x00\x00\x00\x1e", "\x00\x00\x86\xdd"}
		}
		for _, f := range families {
			around := func(ip string) string { return f + ip }
			showFile(t, session(e, around).Pcap(0)).want("record", sessionRecords)
			if f[0] == 0 {
				showFile(t, session(e, around).Pcap(108)).want("record", sessionRecords)
			}
		}
		raw := []int{12, 101, 228}
		if v6 {
			raw = []int{12, 101, 229}
		}
		for _, link := range raw {
			showFile(t, session(e, func(ip string) string { return ip }).Pcap(link)).want("record", sessionRecords)
		}
	}},
	{"B49: padding is no payload", func(t *testing.T, e ends) {
		s := &scene.Scene{Around: func(ip string) string { return scene.Ethernet(ip) + "padpad" }}
		c, u := greet(s, e)
		c.Segment(fromClient, scene.ACK, "")
		c.Send(fromServer, chat(1))
		u.Send(fromClient, counter)
		u.Send(fromClient, "\xfe\x01\x02")
		c.Segment(fromServer, scene.FIN|scene.ACK, "")
		c.Segment(fromClient, scene.FIN|scene.ACK, "")
		out := show(t, s)
		out.want("record", sessionRecords+"\nc2s unknown(0xFE) +unknown_opcode ~0102")
		out.counts("undecoded_bytes", 2)
		out.counts("gaps", 0)
	}},
	{"B50: an IP length of 0 is that of the packet, and is told", func(t *testing.T, e ends) {
		at, size := 2, 20_000
		if e.name == "IPv6" {
			at, size = 4, 70_000
		}
		s, c := opened(e)
		n := size / 26
		s.Around = func(ip string) string { return scene.Ethernet(zero(ip, at)) }
		c.Send(fromServer, chats(1, n))
		s.Around = nil
		c.Send(fromServer, chat(n+1))
		out := show(t, s)
		out.wantTexts(numbersFrom(1, n+1))
		out.counts("gaps", 0)
		out.counts("notes.presumed_length", n)
		out.says("presumed_length")
		if has(out.record(n), "presumed_length") {
			t.Error("the packet behind it is marked, too")
		}
	}},
	{"B52: packets with wrong checksums are decoded, counted, and told of on request", func(t *testing.T, e ends) {
		s := session(e, nil) // all sums are 0
		out := show(t, s)
		out.want("record", sessionRecords)
		wrong := 7 // IPv4 has a sum of its own, and no UDP sum where that is 0
		out.counts("wrong_checksums", wrong)
		if n := strings.Count(strings.Join(out.lines("event"), "\n"), "wrong_checksum"); n != 0 {
			t.Errorf("%d events, and nobody has asked for them", n)
		}
		r := opscope(t, "decode", "-q", writeTemp(t, "sums.pcap", s.Pcap(1)))
		if !strings.Contains(r.out, "7 packets with a wrong checksum, as offloading leaves those of the capturing host; --check tells which\n") {
			t.Errorf("the summary is\n%s", r.out)
		}
		checked := show(t, s, "--check")
		checked.want("record", sessionRecords)
		if n := strings.Count(strings.Join(checked.lines("event"), "\n"), "event wrong_checksum: "); n != wrong {
			t.Errorf("%d events, want %d:\n%s", n, wrong, checked.text)
		}
		right := session(e, func(ip string) string { return scene.Ethernet(withSums(ip)) })
		show(t, right, "--check").counts("wrong_checksums", 0)
	}},
	{"B55: what an ICMP error quotes is no traffic, and its flow is told", func(t *testing.T, e ends) {
		s, u := greeted(e)
		u.Send(fromClient, counter)
		u.Unreachable(fromClient, counter)
		// One that quotes an IPv6 packet in an IPv4 one, cut short.
		four, six := netip.MustParseAddr("10.9.9.9"), netip.MustParseAddr("fd00::9")
		inner := scene.IP(four, four, 41, scene.IP(six, six, 17, scene.UDP(netip.AddrPortFrom(six, 1), netip.AddrPortFrom(six, 2), counter)))
		s.IP(scene.IP(four, four, 1, "\x03\x04\x00\x00\x00\x00\x00\x00"+inner[:28]))
		out := show(t, s)
		out.want("record event", strings.Replace(sessionRecords, "	s2c COMM_MESSAGE\n", "", 1)+"\nc2s event icmp_error: port unreachable")
		out.says("icmp_error: port unreachable")
		out.counts("other_flows", 0)
	}},
	{"B59: an id used again after a loss joins no strangers", func(t *testing.T, e ends) {
		s, u := greeted(e)
		a, b := u.Addr[0], u.Addr[1]
		var twelve []scene.Pair // enough for two pieces
		for n := range 12 {
			twelve = append(twelve, scene.Pair{Opcode: n, Mode: 1})
		}
		pieces := func(payload string) []string {
			fresh := &scene.Scene{} // so that each has the same id
			return fresh.Fragments(a.Addr(), b.Addr(), 17, payload, 104)
		}
		s.IP(pieces(scene.UDP(a, b, scene.Original(1)))[0])
		s.Wait(40 * time.Second)
		for _, f := range pieces(scene.UDP(a, b, scene.Handshake(2, nil, twelve...))) {
			s.IP(f)
		}
		out := show(t, s)
		r := out.record(4)
		if lineOf(r) != "c2s D_HANDSHAKE" || !strings.Contains(fmt.Sprint(r["fields"]), "timestamp:2") {
			t.Errorf("got %s, %v", lineOf(r), r["fields"])
		}
		out.counts("fragments.incomplete", 1)
		out.says("expired")
	}},
	{"B59: fragments of two protocols are those of two datagrams", func(t *testing.T, e ends) {
		s, u := greeted(e)
		a, b := u.Addr[0], u.Addr[1]
		one, two := &scene.Scene{}, &scene.Scene{} // the same ids
		game := one.Fragments(a.Addr(), b.Addr(), 17, scene.UDP(a, b, scene.Original(1)), 104)
		foreign := two.Fragments(a.Addr(), b.Addr(), 6, strings.Repeat("t", 208), 104)
		for i := range foreign {
			s.IP(foreign[i])
			s.IP(game[i])
		}
		out := show(t, s)
		if lineOf(out.record(4)) != "c2s D_HANDSHAKE" {
			t.Errorf("got\n%s", strings.Join(out.lines(), "\n"))
		}
	}},
	{"B61: the flow in a tunnel counts, and flows in two tunnels are two", func(t *testing.T, e ends) {
		one, two := scene.VXLAN(1), scene.VXLAN(2)
		s := &scene.Scene{Around: one}
		c, _ := greet(s, e)
		s.Around = two
		d, _ := greet(s, e)
		s.Around = one
		c.Send(fromServer, chat(1))
		s.Around = two
		d.Send(fromServer, chat(2))
		out := show(t, s)
		out.wantTexts("1 2")
		all := records(out.objects)
		if a, b := all[8], all[9]; a["session"] != 1.0 || b["session"] != 2.0 {
			t.Errorf("got sessions %v and %v", a["session"], b["session"])
		}
	}},
	{"B61: every kind of tunnel, and one that is cut", func(t *testing.T, e ends) {
		from, to := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
		gre := func(ip string) string { return scene.IP(from, to, 47, "\x20\x00"+etherTypeOf(ip)+scene.BE32(7)+ip) }
		for name, c := range encapsulations {
			out := showFile(t, session(e, c.around).Pcap(c.link))
			if out.want("record", sessionRecords); t.Failed() {
				t.Fatalf("in %s", name)
			}
		}
		s := session(e, nil)
		s.Packet(scene.Ethernet(scene.IP(from, to, 47, "\x20\x00\x08\x00"))) // its key is missing
		out := show(t, s)
		out.want("record", sessionRecords)
		if events := out.lines("event"); len(events) != 1 || !strings.Contains(events[0], "gre/header") {
			t.Errorf("got %q", events)
		}
		deep := scene.Ethernet(gre(gre(gre(gre(gre(scene.IP(from, to, 17, "12345678")))))))
		s.Packet(deep)
		out = show(t, s, "--limit", "tunnels=3")
		out.counts("limits.tunnels", 1)
		out.says("want at most 3, got 4")
	}},
	{"B62: the protocol that was asked for wins over what a port is for", func(t *testing.T, e ends) {
		for _, port := range []string{"53", "123", "1812", "2152", "4789", "5060", "6081"} {
			s := &scene.Scene{}
			host, _, _ := strings.Cut(e.server, "2627")
			u := s.UDP(e.other, host+port)
			u.Send(fromClient, counter)
			u.Send(fromServer, "\x0b\x00\x00\x00\x07")
			for _, args := range [][]string{{"-d", "udp.port==" + port + ",wulfram"}, {"--protocol", "wulfram"}} {
				out := show(t, s, args...)
				if got := strings.Join(out.lines("record"), " "); !strings.Contains(got, "INPUT_FEEDBACK") || !strings.Contains(got, "PING_REQUEST") {
					t.Errorf("port %s, %v: got %s", port, args, got)
				}
			}
		}
	}},
}

func TestLinkReports(t *testing.T) { hold(t, linkReports) }

// withSums returns an IP packet with the checksums that belong there.
func withSums(ip string) string {
	b := []byte(ip)
	header, addresses, protocol := 20, b[12:20], b[9]
	if b[0]>>4 == 6 {
		header, addresses, protocol = 40, b[8:40], b[6]
	} else {
		binary.BigEndian.PutUint16(b[10:], onesComplement(b[:20]))
	}
	body := b[header:]
	pseudo := append([]byte(nil), addresses...)
	pseudo = binary.BigEndian.AppendUint16(append(pseudo, 0, protocol), uint16(len(body)))
	at := 16
	if protocol == 17 {
		at = 6
	}
	binary.BigEndian.PutUint16(body[at:], onesComplement(append(pseudo, body...)))
	return string(b)
}

// onesComplement is the checksum of RFC 1071, word by word.
func onesComplement(b []byte) uint16 {
	var sum uint32
	for i, c := range b {
		if i%2 == 0 {
			sum += uint32(c) << 8
		} else {
			sum += uint32(c)
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// B83: on loopback, the direction comes from the role, whatever the addresses.
func TestDirectionOnLoopback(t *testing.T) {
	for name, e := range map[string]ends{
		"one address":            {"", "127.0.0.1:50111", "127.0.0.1:50112", "127.0.0.1:2627"},
		"one address of IPv6":    {"", "[::1]:50111", "[::1]:50112", "[::1]:2627"},
		"two with equal ports":   {"", "127.0.0.2:2627", "127.0.0.2:2628", "127.0.0.1:2627"},
		"the other way around":   {"", "127.0.0.1:2627", "127.0.0.1:2628", "127.0.0.2:2627"},
		"a port that is not its": {"", "127.0.0.1:50111", "127.0.0.1:50112", "127.0.0.1:7777"},
	} {
		t.Run(name, func(t *testing.T) {
			s := session(e, func(ip string) string { return "\x02\x00\x00\x00" + ip })
			if strings.Contains(e.client, "[") {
				s = session(e, func(ip string) string { return "\x1e\x00\x00\x00" + ip })
			}
			var args []string
			if strings.HasSuffix(e.server, "7777") {
				args = []string{"-d", "tcp.port==7777,wulfram", "-d", "udp.port==7777,wulfram"}
			}
			out := showFile(t, s.Pcap(0), args...)
			out.want("record", sessionRecords)
			out.says("<- s2c tcp", "-> c2s udp")
			colored := showFile(t, s.Pcap(0), append([]string{"--color", "always"}, args...)...)
			ways := map[string]string{} // the colour of each direction
			for line := range strings.Lines(colored.text) {
				for _, arrow := range []string{"<- s2c", "-> c2s"} {
					before, _, found := strings.Cut(line, arrow)
					if !found {
						continue
					}
					color := before[strings.LastIndex(before, "\x1b"):]
					if ways[arrow] == "" {
						ways[arrow] = color
					}
					if ways[arrow] != color {
						t.Errorf("%s in two colours", arrow)
					}
				}
			}
			if len(ways) != 2 || ways["<- s2c"] == ways["-> c2s"] {
				t.Errorf("got colours %q", ways)
			}
		})
	}
}

// What only one version of IP has.
func TestReportsOfOneVersion(t *testing.T) {
	holdOver(t, "IPv6", []report{
		{"B56: headers between IP and the transport", func(t *testing.T, e ends) {
			extended := func(ip string) string {
				hop := "\x3c\x00\x01\x04\x00\x00\x00\x00"                                     // then destination options
				options := string([]byte{ip[6], 1}) + "\x01\x0c" + strings.Repeat("\x00", 12) // then what there was
				return scene.Ethernet(ip[:4] + scene.BE16(len(ip)-40+24) + "\x00" + ip[7:40] + hop + options + ip[40:])
			}
			s := &scene.Scene{Around: extended}
			c, u := greet(s, e)
			c.Send(fromServer, chat(1))
			u.Send(fromClient, counter)
			show(t, s).want("record", sessionRecords)
		}},
		{"B56: fragments whose ids differ in their upper half only, in any order", func(t *testing.T, e ends) {
			plain, pieces := &scene.Scene{}, &scene.Scene{}
			_, u := greet(plain, e)
			u.Send(fromClient, scene.Original(1))
			u.Send(fromServer, scene.Forge(1))
			_, v := greet(pieces, e)
			one := pieces.Fragments(v.Addr[0].Addr(), v.Addr[1].Addr(), 17, scene.UDP(v.Addr[0], v.Addr[1], scene.Original(1)), 80)
			two := pieces.Fragments(v.Addr[0].Addr(), v.Addr[1].Addr(), 17, scene.UDP(v.Addr[0], v.Addr[1], scene.Original(1)), 80)
			id := func(ip string, id string) string { return ip[:44] + id + ip[48:] }
			for i := len(one) - 1; i >= 0; i-- {
				pieces.IP(id(one[i], "\x00\x01\x00\x07"))
				if i != 1 { // the other one stays incomplete
					pieces.IP(id(two[i], "\x00\x02\x00\x07"))
				}
			}
			out := show(t, pieces)
			want := records(show(t, plain).objects)
			got := records(out.objects)
			if len(got) != 5 || !equal(got[4]["fields"], want[4]["fields"]) {
				t.Errorf("got\n%s", strings.Join(out.lines(), "\n"))
			}
			out.counts("fragments.incomplete", 1)
		}},
	})
	holdOver(t, "IPv4", []report{
		{"B58: a tiny last fragment, with DF and with options", func(t *testing.T, e ends) {
			options := func(ip string) string {
				return "\x46" + ip[1:2] + scene.BE16(len(ip)+4) + ip[4:20] + "\x01\x01\x01\x00" + ip[20:]
			}
			dontFragment := func(ip string) string { return ip[:6] + string([]byte{ip[6] | 0x40}) + ip[7:] }
			same := func(ip string) string { return ip }
			for name, change := range map[string][2]func(string) string{
				"as it is": {same, same}, "with DF": {dontFragment, dontFragment}, "options on all": {options, options}, "options on the first": {options, same},
			} {
				s, u := greeted(e)
				payload := scene.UDP(u.Addr[0], u.Addr[1], counter+counter+"\xfe") // 19 bytes: 16 and 3
				list := s.Fragments(u.Addr[0].Addr(), u.Addr[1].Addr(), 17, payload, 16)
				s.IP(change[0](list[0]))
				s.IP(change[1](list[1]))
				out := show(t, s)
				if all := out.lines("record"); len(all) != 7 || all[6] != "c2s unknown(0xFE) +unknown_opcode" {
					t.Errorf("%s: got\n%s", name, strings.Join(out.lines(), "\n"))
				}
			}
		}},
	})
}
