package pcapfilter_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/bpf"

	"opscope/dissect"
	"opscope/dissect/capture"
	"opscope/dissect/capture/pcapfilter"
)

// samples returns packets of many kinds, each as Ethernet brings it, and such that end
// somewhere in a header.
func samples(t testing.TB) (list, cut [][]byte) {
	files, err := filepath.Glob("../../../pcaps/*/*.pcapng")
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures in pcaps: %v", err)
	}
	for _, name := range files {
		f, err := capture.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		var p dissect.Packet
		for n := 0; n < 40 && f.Next(&p) == nil; n++ {
			if p.Link == 1 {
				list = append(list, append([]byte(nil), p.Data...))
			}
		}
		f.Close()
	}
	whole, cut := crafted()
	return append(list, whole...), cut
}

// crafted returns packets that no game sends.
func crafted() (whole, cut [][]byte) {
	mac := "\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01"
	udp := "\x0a\x43\xc3\xbf\x00\x0c\x00\x00data"
	v4 := func(flags string, proto byte, options, payload string) string {
		head := string([]byte{0x45 + byte(len(options)/4), 0, 0, byte(20 + len(options) + len(payload)), 0, 1}) + flags + string([]byte{64, proto, 0, 0})
		return head + "\x0a\x00\x00\x01\xc0\xa8\x01\x07" + options + payload
	}
	v6 := func(next byte, payload string) string {
		return "\x60\x00\x00\x00\x00" + string([]byte{byte(len(payload)), next, 64}) +
			"\xfe\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" +
			"\xff\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xfb" + payload
	}
	arp := "\x00\x01\x08\x00\x06\x04\x00\x01\x02\x00\x00\x00\x00\x01\x0a\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\xa8\x01\x07"
	texts := []string{
		mac + "\x08\x00" + v4("\x00\x00", 17, "", udp),
		mac + "\x08\x00" + v4("\x00\x00", 17, "\x01\x01\x01\x00", udp),
		mac + "\x08\x00" + v4("\x20\x00", 17, "", udp),
		mac + "\x08\x00" + v4("\x00\xb9", 17, "", udp),
		mac + "\x08\x00" + v4("\x00\x00", 1, "", "\x08\x00\x00\x00\x00\x01\x00\x01"),
		mac + "\x08\x00" + v4("\x00\x00", 2, "", "\x16\x00\x00\x00\xe0\x00\x00\x01"),
		mac + "\x08\x00" + v4("\x00\x00", 6, "", "\xc3\xbf\x09\x00\x00\x00\x00\x01\x00\x00\x00\x00\x50\x02\xff\xff\x00\x00\x00\x00"),
		mac + "\x08\x00" + v4("\x00\x00", 132, "", udp),
		mac + "\x86\xdd" + v6(17, udp),
		mac + "\x86\xdd" + v6(44, "\x11\x00\x00\x01\x00\x00\x00\x01"+udp),
		mac + "\x86\xdd" + v6(44, "\x11\x00\x05\xa8\x00\x00\x00\x01rest"),
		mac + "\x86\xdd" + v6(58, "\x86\x00\x00\x00"),
		mac + "\x08\x06" + arp,
		mac + "\x80\x35" + arp,
		"\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x01\x08\x00" + v4("\x00\x00", 17, "", udp),
		"\x01\x00\x5e\x00\x00\xfb\x02\x00\x00\x00\x00\x01\x08\x00" + strings.Replace(v4("\x00\x00", 17, "", udp), "\xc0\xa8\x01\x07", "\xe0\x00\x00\xfb", 1),
		mac + "\x81\x00\x00\x07\x08\x00" + v4("\x00\x00", 17, "", udp),
		mac + "\x81\x00\x20\x2a\x86\xdd" + v6(17, udp),
		mac + "\x88\xa8\x00\x05\x81\x00\x00\x07\x08\x00" + v4("\x00\x00", 17, "", udp),
		mac + "\x88\xb5what is this",
	}
	cut = [][]byte{nil, []byte(mac)}
	for _, s := range texts {
		whole = append(whole, []byte(s))
		for _, n := range []int{len(s) - 1, len(s) / 2, 14, 34} {
			cut = append(cut, []byte(s[:min(n, len(s))]))
		}
	}
	return whole, cut
}

// atoms are conditions that tcpdump knows too.
var atoms = []string{
	"udp", "tcp", "ip", "ip6", "arp", "rarp", "icmp", "icmp6", "igmp", "sctp",
	"port 2627", "udp port 2627", "tcp dst port 2592", "src port 50111", "portrange 2300-2700", "udp portrange 1-3000", "port domain",
	"host 10.0.0.1", "src host 10.0.0.2", "dst 192.168.1.7", "src and dst host 10.0.0.1", "ip host 10.0.0.1", "arp host 10.0.0.1",
	"host fe80::1", "ip6 host ff02::fb", "dst host ff02::fb", "net 10.0.0.0/8", "net 10", "net 192.168", "dst net 192.168.1.0/24",
	"net 10.0.0.0 mask 255.0.0.0", "net fe80::/10", "src net 0.0.0.0/0", "net ::/0", "tcp and host 10.0.0.1",
	"ether host 02:00:00:00:00:01", "ether src 02:00:00:00:00:01", "ether dst ff:ff:ff:ff:ff:ff", "ether proto 0x88b5", `ether proto \arp`,
	"ip proto 17", `ip proto \udp`, "ip6 proto 58", "proto 6", "broadcast", "ether broadcast", "multicast", "ip multicast", "ip6 multicast",
	"less 60", "greater 100", "len > 80", "len <= 80", "udp[0:2] = 2627", "udp[4:2] > 12", "tcp[tcpflags] & tcp-syn != 0",
	"tcp[tcpflags] & (tcp-syn|tcp-ack) = tcp-syn", "tcp[13] == 0x18", "ip[0] & 0xf != 5", "ip[2:2] - ((ip[0] & 0xf) << 2) > 20", "ip[ip[8]/8] > 3",
	"ether[0] & 1 = 1", "ip6[6] = 44", "ip[6:2] & 0x1fff != 0", "icmp[icmptype] = icmp-echo", "arp[6:2] = 1", "udp[2*2:2] != 0", "5 > len - 60", "ip[8] * 2 / 4 + 1 % 3 ^ 1 >> 1 = 33",
	"host 10.0.0.1 or 10.0.0.2", "port 2627 or 2592", "port (2627 or 2592)", "dst host 10.0.0.1 and not port 2627", "host (10.0.0.1 and not 10.0.0.2)",
	"vlan", "vlan 7", "vlan and udp port 2627", "vlan 5 and vlan 7 and udp", "vlan or udp",
}

// tcpdump compiles an expression, for Ethernet frames in a file.
func tcpdump(t *testing.T, args ...string) []bpf.Instruction {
	t.Helper()
	expr := args[len(args)-1]
	out, err := exec.Command("tcpdump", append([]string{"-ddd"}, args...)...).Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) && strings.Contains(string(failed.Stderr), "expression rejects all packets") {
			return []bpf.Instruction{bpf.RetConstant{}}
		}
		if errors.As(err, &failed) {
			t.Fatalf("tcpdump refuses %q: %s", expr, failed.Stderr)
		}
		t.Fatal(err)
	}
	var raw []bpf.RawInstruction
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n")[1:] {
		var r bpf.RawInstruction
		if _, err := fmt.Sscan(line, &r.Op, &r.Jt, &r.Jf, &r.K); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		raw = append(raw, r)
	}
	program, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatalf("%q: cannot take tcpdump's program apart", expr)
	}
	return program
}

// TestAgainstTcpdump compares what our programs let through with what those of tcpdump
// do, for each condition and for random ones made of them. A read behind the end of a
// packet ends a program; which reads come first is not the same in both where
// conditions are joined.
func TestAgainstTcpdump(t *testing.T) {
	if _, err := exec.LookPath("tcpdump"); err != nil {
		t.Skip("no tcpdump here to compare with")
	}
	file := filepath.Join(t.TempDir(), "empty.pcap")
	head := []byte{0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0}
	if err := os.WriteFile(file, head, 0o600); err != nil {
		t.Fatal(err)
	}
	packets, cut := samples(t)
	r := rand.New(rand.NewPCG(1, 2))
	exprs := append([]string(nil), atoms...)
	for range 150 {
		exprs = append(exprs, randomExpr(r, 3))
	}
	for i, expr := range exprs {
		packets, args := packets, []string{"-r", file, expr}
		if i >= len(atoms) {
			args = []string{"-O", "-r", file, expr} // its optimiser got one of 3,000 wrong
		} else if !strings.Contains(expr, "vlan") {
			packets = append(packets, cut...)
		}
		want := machine(t, tcpdump(t, args...))
		got := machine(t, program(t, expr, pcapfilter.Ethernet))
		for _, p := range packets {
			if w, g := passes(t, want, p), passes(t, got, p); w != g {
				t.Errorf("%q: packet %x\ntcpdump %v, got %v", expr, p, w, g)
				break
			}
		}
	}
}

// randomExpr joins conditions. Those about VLANs move what follows, also in branches
// that are not taken, and are left out.
func randomExpr(r *rand.Rand, depth int) string {
	if depth == 0 || r.IntN(4) == 0 {
		return "(" + atoms[r.IntN(len(atoms)-5)] + ")"
	}
	a, b := randomExpr(r, depth-1), randomExpr(r, depth-1)
	switch r.IntN(4) {
	case 0:
		return "not " + a
	case 1:
		return "(" + a + " or " + b + ")"
	case 2:
		return a + " or " + b
	}
	return a + " and " + b
}

func program(t *testing.T, expr string, link pcapfilter.Link) []bpf.Instruction {
	t.Helper()
	f, err := pcapfilter.Parse(expr, link)
	if err != nil {
		t.Fatalf("%q: %v", expr, err)
	}
	p, err := f.Program(1 << 18)
	if err != nil {
		t.Fatalf("%q: %v", expr, err)
	}
	if _, err := bpf.Assemble(p); err != nil {
		t.Fatalf("%q: %v", expr, err)
	}
	return p
}

func machine(t *testing.T, p []bpf.Instruction) *bpf.VM {
	t.Helper()
	vm, err := bpf.NewVM(p)
	if err != nil {
		t.Fatalf("%v\n%v", err, p)
	}
	return vm
}

func passes(t *testing.T, vm *bpf.VM, packet []byte) bool {
	t.Helper()
	n, err := vm.Run(packet)
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

// TestPorts: unlike `port 2627`, the filter for ports lets through what belongs to a
// datagram of the port and does not say so.
func TestPorts(t *testing.T) {
	f := pcapfilter.Ports([]uint16{2627, 9999}, pcapfilter.Ethernet)
	p, err := f.Program(64)
	if err != nil {
		t.Fatal(err)
	}
	vm := machine(t, p)
	mac := "\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01"
	ip := func(flags string, port string) string {
		return "\x45\x00\x00\x20\x00\x01" + flags + "\x40\x11\x00\x00\x0a\x00\x00\x01\x0a\x00\x00\x02" + port + "\xc3\xbf\x00\x0c\x00\x00data"
	}
	for _, c := range []struct {
		name, packet string
		want         bool
	}{
		{"the port", mac + "\x08\x00" + ip("\x00\x00", "\x0a\x43"), true},
		{"the other port", mac + "\x08\x00" + ip("\x00\x00", "\x27\x0f"), true},
		{"a third port", mac + "\x08\x00" + ip("\x00\x00", "\x0a\x44"), false},
		{"a first fragment of a third port", mac + "\x08\x00" + ip("\x20\x00", "\x0a\x44"), false},
		{"a later fragment", mac + "\x08\x00" + ip("\x00\xb9", "xx"), true},
		{"behind a tag", mac + "\x81\x00\x00\x07\x08\x00" + ip("\x00\x00", "\x0a\x43"), true},
		{"behind two tags", mac + "\x88\xa8\x00\x07\x81\x00\x00\x08\x08\x00" + ip("\x00\x00", "\x0a\x43"), true},
		{"a third port behind a tag", mac + "\x81\x00\x00\x07\x08\x00" + ip("\x00\x00", "\x0a\x44"), false},
		{"not IP", mac + "\x08\x06nothing of interest", false},
	} {
		if got := passes(t, vm, []byte(c.packet)); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestWrongExpressions(t *testing.T) {
	for _, c := range []struct {
		expr string
		at   int
		text string
	}{
		{"udp and", 7, "want a condition"},
		{"foo", 0, "want a condition"},
		{"udp prot 53", 4, "want and, or, or the end"},
		{"port 99999", 5, "want a port"},
		{"port 2300-2400", 5, "portrange 2300-2400"},
		{"portrange 2300", 10, "want a range"},
		{"host example.org", 5, "names are not looked up"},
		{"host", 4, "want an address"},
		{"(udp", 4, "want )"},
		{"udp)", 3, "want and, or, or the end"},
		{"net 10.0.0.1/8", 4, "try: net 10.0.0.0/8"},
		{"arp port 5", 9, "no ports"},
		{"tcp[0", 5, "want ]"},
		{"tcp[0:3] = 1", 6, "1, 2 or 4"},
		{"len", 3, "comparison"},
		{"len / 0 = 1", 4, "division by zero"},
		{"inbound", 0, "live"},
		{"udp @ 5", 4, "unexpected @"},
		{"wulfram.opcode == 3", 0, "want a condition"},
		{"vlan 5000", 5, "VLAN"},
		{"udp and \x1b[31m", 8, "unexpected"},
	} {
		_, err := pcapfilter.Parse(c.expr, pcapfilter.Ethernet)
		var e *pcapfilter.SyntaxError
		if !errors.As(err, &e) {
			t.Errorf("%q: got %v, want a syntax error", c.expr, err)
			continue
		}
		if e.At != c.at || !strings.Contains(e.Text, c.text) {
			t.Errorf("%q: got %d %q, want %d and %q", c.expr, e.At, e.Text, c.at, c.text)
		}
	}
	got := func() string { _, err := pcapfilter.Parse("udp port 99999", pcapfilter.Ethernet); return err.Error() }()
	want := "capture filter: want a port from 0 to 65535, got \"99999\"\n  udp port 99999\n           ^"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestLong: jumps of more than 255 instructions, and a program too long for the kernel.
func TestLong(t *testing.T) {
	expr := "port 1"
	for n := 2; n < 40; n++ {
		expr += " or port " + strconv.Itoa(n*60)
	}
	vm := machine(t, program(t, expr, pcapfilter.Ethernet))
	packet := append([]byte("\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x08\x00\x45\x00\x00\x1c\x00\x01\x00\x00\x40\x11\x00\x00\x0a\x00\x00\x01\x0a\x00\x00\x02"),
		0, 1, 0x09, 0x24, 0, 8, 0, 0) // from port 1 to port 2340 = 39 * 60
	if !passes(t, vm, packet) {
		t.Error("the first of many ports does not pass")
	}
	packet[35] = 2
	if !passes(t, vm, packet) {
		t.Error("the last of many ports does not pass")
	}
	packet[37]++
	if passes(t, vm, packet) {
		t.Error("a port that is not among many passes")
	}
	f, err := pcapfilter.Parse(strings.Repeat("host 10.0.0.1 or ", 1000)+"udp", pcapfilter.Ethernet)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Program(64); !errors.Is(err, pcapfilter.ErrTooLong) {
		t.Errorf("got %v, want %v", err, pcapfilter.ErrTooLong)
	}
	if _, err := pcapfilter.Parse(strings.Repeat("(", 10000), pcapfilter.Ethernet); err == nil {
		t.Error("10,000 parentheses are no error")
	}
}

// FuzzParse: no expression panics, and what is understood makes a program that runs.
func FuzzParse(f *testing.F) {
	for _, a := range atoms {
		f.Add(a)
	}
	f.Add("not (udp or (tcp[0] + 1) * 2 > 5) and 10.0.0.1")
	whole, cut := crafted()
	packets := append(whole, cut...)
	f.Fuzz(func(t *testing.T, expr string) {
		if len(expr) > 400 {
			return
		}
		for _, link := range []pcapfilter.Link{pcapfilter.Ethernet, pcapfilter.LiveEthernet, pcapfilter.LiveNetwork, pcapfilter.RawIP, pcapfilter.Cooked, pcapfilter.Cooked2} {
			filter, err := pcapfilter.Parse(expr, link)
			if err != nil {
				var e *pcapfilter.SyntaxError
				if !errors.As(err, &e) || e.At < 0 || e.At > len(expr) {
					t.Fatalf("%q: %v", expr, err)
				}
				_ = err.Error()
				continue
			}
			p, err := filter.Program(64)
			if err != nil {
				continue
			}
			if _, err := bpf.Assemble(p); err != nil {
				t.Fatalf("%q: %v", expr, err)
			}
			if link == pcapfilter.LiveEthernet || link == pcapfilter.LiveNetwork {
				continue // the machine of the tests has no metadata
			}
			vm, err := bpf.NewVM(p)
			if err != nil {
				t.Fatalf("%q: %v", expr, err)
			}
			for _, packet := range packets {
				if _, err := vm.Run(packet); err != nil && !errors.Is(err, io.EOF) {
					t.Fatalf("%q: %v", expr, err)
				}
			}
		}
	})
}
