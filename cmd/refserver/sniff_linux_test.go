package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"opscope/dissect"
	"opscope/dissect/capture"
)

// lan is two hosts, network namespaces, that a cable joins: veth0 in each, and with a VLAN
// veth0.7 over it.
type lan struct {
	t       *testing.T
	dir     string
	opscope string
	self    string // refserver
	hosts   [2]string
}

var lans atomic.Int32

// commands builds the commands, and returns the directory with them.
var commands = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "opscope-sniff")
	if err != nil {
		return "", err
	}
	whenDone = append(whenDone, func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // for nobody
		return "", err
	}
	out, err := exec.Command("go", "build", "-o", dir, "opscope/cmd/opscope", "opscope/cmd/refserver").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return dir, nil
})

// newLAN makes the hosts. It skips, and says why, where it cannot.
func newLAN(t *testing.T) *lan {
	switch {
	case !*live:
		t.Skip("takes root and network namespaces: go test ./cmd/refserver -run Sniff -live")
	case os.Geteuid() != 0:
		t.Skip("network namespaces take root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("no ip (iproute2) to make network namespaces with")
	}
	dir, err := commands()
	if err != nil {
		t.Fatal(err)
	}
	l := &lan{t: t, dir: t.TempDir(), opscope: filepath.Join(dir, "opscope"), self: filepath.Join(dir, "refserver")}
	n := lans.Add(1)
	for i := range l.hosts {
		l.hosts[i] = fmt.Sprintf("opscope-%d-%d-%d", os.Getpid(), n, i)
		if out, err := exec.Command("ip", "netns", "add", l.hosts[i]).CombinedOutput(); err != nil {
			t.Skipf("no network namespaces here: %s", out)
		}
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", l.hosts[i]).Run() })
		l.on(i, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
	}
	l.run("ip", "link", "add", "veth0", "netns", l.hosts[0], "type", "veth", "peer", "name", "veth0", "netns", l.hosts[1])
	for i := range l.hosts {
		l.on(i, "ip", "link", "set", "lo", "up")
		l.on(i, "ip", "addr", "add", l.address(i)+"/24", "dev", "veth0")
		l.on(i, "ip", "link", "set", "veth0", "up")
	}
	for i := range l.hosts { // until the kernel has noticed the carrier, it drops what is sent
		up := func() bool {
			out, err := l.command(i, "ip", "link", "show", "veth0").Output()
			return err == nil && bytes.Contains(out, []byte(" state UP "))
		}
		if !await(up) {
			t.Fatal("the cable does not come up")
		}
	}
	// Port 9 of the second host is open: an answer that it is not may come before or after the end of a capture.
	l.within(1, func() error {
		discard, err := net.ListenPacket("udp", ":9")
		if err == nil {
			t.Cleanup(func() { discard.Close() })
		}
		return err
	})
	return l
}

// vlan gives the hosts a VLAN, in which their addresses are those of taggedAddress. Where
// the kernel has none, a relay stands in for it.
func (l *lan) vlan() {
	for i := range l.hosts {
		if err := l.command(i, "ip", "link", "add", "link", "veth0", "name", "veth0.7", "type", "vlan", "id", "7").Run(); err != nil {
			l.relay(i)
		}
		l.on(i, "ip", "link", "set", "veth0.7", "address", tagged(i))
		l.on(i, "ip", "link", "set", "veth0.7", "up")
		l.on(i, "ip", "addr", "add", l.taggedAddress(i)+"/24", "dev", "veth0.7")
		l.on(i, "ip", "neigh", "add", l.taggedAddress(1-i), "lladdr", tagged(1-i), "dev", "veth0.7")
	}
}

// tagged is the MAC address of a host in the VLAN.
func tagged(host int) string { return fmt.Sprintf("02:00:00:00:07:%02x", host) }

// relay makes veth0.7 in user space: what the host sends there goes out of veth0 with a tag,
// what comes in for its address loses the tag.
func (l *lan) relay(host int) {
	l.t.Helper()
	var tap, cable *os.File
	l.within(host, func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		r, err := unix.NewIfreq("veth0.7")
		if err != nil {
			return err
		}
		r.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, r); err != nil {
			return err
		}
		tap = os.NewFile(uintptr(fd), "tap") // no sooner: the poller wants it ready
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK, 0); err != nil {
			return err
		}
		cable = os.NewFile(uintptr(fd), "cable")
		i, err := net.InterfaceByName("veth0")
		if err != nil {
			return err
		}
		all := binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL})
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: i.Index})
	})
	const addresses = 12 // bytes of the two MAC addresses
	go func() {
		l.pin()
		for buf := make([]byte, 65536); ; {
			n, err := tap.Read(buf)
			if err != nil || n < addresses {
				return
			}
			frame := append(append(append([]byte(nil), buf[:addresses]...), 0x81, 0, 0, 7), buf[addresses:n]...)
			if _, err := cable.Write(frame); err != nil {
				return
			}
		}
	}()
	mine, err := net.ParseMAC(tagged(host))
	if err != nil {
		l.t.Fatal(err)
	}
	go func() {
		l.pin()
		for buf := make([]byte, 65536); ; { // the kernel has taken the tag out
			n, err := cable.Read(buf)
			if err != nil {
				return
			}
			if bytes.HasPrefix(buf[:n], mine) {
				if _, err := tap.Write(buf[:n]); err != nil {
					return
				}
			}
		}
	}()
	l.t.Cleanup(func() {
		tap.Close()
		cable.Close()
	})
}

// bridge puts a bridge into the first host, with the cable in it, so that all packets of the
// host pass two interfaces.
func (l *lan) bridge() {
	l.on(0, "ip", "addr", "flush", "dev", "veth0")
	l.on(0, "ip", "link", "add", "br0", "type", "bridge")
	l.on(0, "ip", "link", "set", "veth0", "master", "br0")
	l.on(0, "ip", "addr", "add", l.address(0)+"/24", "dev", "br0")
	l.on(0, "ip", "link", "set", "br0", "up")
}

func (l *lan) address(host int) string       { return "10.77.0." + strconv.Itoa(host+1) }
func (l *lan) taggedAddress(host int) string { return "10.77.7." + strconv.Itoa(host+1) }

func (l *lan) file(name string) string { return filepath.Join(l.dir, name) }

func (l *lan) write(name, text string) {
	l.t.Helper()
	if err := os.WriteFile(l.file(name), []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lan) run(args ...string) {
	l.t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		l.t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// command is a program that runs on a host.
func (l *lan) command(host int, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", l.hosts[host]}, args...)...)
}

// on runs a program on a host to its end.
func (l *lan) on(host int, args ...string) {
	l.t.Helper()
	if out, err := l.command(host, args...).CombinedOutput(); err != nil {
		l.t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// sniff runs opscope on the first host, with its records in live.
func (l *lan) sniff(args ...string) *child {
	l.t.Helper()
	out, err := os.Create(l.file("live"))
	if err != nil {
		l.t.Fatal(err)
	}
	defer out.Close()
	cmd := l.command(0, append([]string{l.opscope, "sniff"}, args...)...)
	cmd.Stdout = out
	c := start(l.t, cmd)
	c.until("capturing on ")
	return c
}

// socket opens a UDP socket on a host, towards the other.
func (l *lan) socket(host, port int) net.Conn {
	l.t.Helper()
	var conn net.Conn
	l.within(host, func() (err error) {
		conn, err = net.Dial("udp", net.JoinHostPort(l.address(1-host), strconv.Itoa(port)))
		return err
	})
	l.t.Cleanup(func() { conn.Close() })
	return conn
}

// within runs f in the namespace of a host; the sockets that it opens stay there.
func (l *lan) within(host int, f func() error) {
	l.t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this
		space, err := os.Open("/run/netns/" + l.hosts[host])
		if err == nil {
			defer space.Close()
			err = unix.Setns(int(space.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		l.t.Fatal(err)
	}
}

const lastWords = "that was all, says the test"

// mark sends the last datagram, which all who capture are to have seen.
func (l *lan) mark(files ...string) {
	l.t.Helper()
	if _, err := l.socket(0, 9).Write([]byte(lastWords)); err != nil {
		l.t.Fatal(err)
	}
	for _, f := range files {
		waitFor(l.t, l.file(f), lastWords)
	}
}

// sniffedPlays are the games of TestLive and one of Netrek, whose datagrams go between ports
// of their own.
var sniffedPlays = append(slices.Clone(livePlays), livePlay{
	protocol: "netrek", port: 2592, serve: []string{"--seed", "0"}, bots: []string{"--count", "2"}, script: netrekLive,
})

const netrekLive = `feature SHIP_CAP
feature SP_RANK
feature SP_GENERIC_32
outfit any cruiser
ping on
say hello there
speed 4
course 32
wait 1s
udp port
torp 32
repeat 3 phaser 64
plasma 96
wait 1s
short v2
shield off
team-say on my way
repeat 3 torp enemy
wait 2s
mode fat
lock planet 0
wait 2s
tcp
short off
update
say good bye
wait 1s
leave
`

// sniffed is a game between two hosts, and where it is captured.
type sniffed struct {
	recording
	lan           *lan
	where, device string
	here, there   string // addresses, there is the server
}

// TestSniffGames has a server and bots play on two hosts, and compares what opscope shows
// live with its own recording, that with tcpdump's, and all with the logs.
// B53: tags that the kernel takes out are in all of them.
func TestSniffGames(t *testing.T) {
	for _, where := range []struct{ name, device string }{{"cable", "veth0"}, {"VLAN", "veth0"}, {"any", "any"}} {
		for _, g := range sniffedPlays {
			t.Run(where.name+" "+g.protocol, func(t *testing.T) {
				tcpdump, err := exec.LookPath("tcpdump")
				if err != nil {
					t.Skip(err)
				}
				t.Parallel() // they mostly wait
				l := newLAN(t)
				s := sniffed{recording{g, t, l.dir}, l, where.name, where.device, l.address(0), l.address(1)}
				switch where.name {
				case "VLAN":
					l.vlan()
					s.here, s.there = l.taggedAddress(0), l.taggedAddress(1)
				case "any":
					l.bridge()
				}
				s.capture(tcpdump)
				dump := l.reordered("own", "dump")
				if tag := []byte{0x81, 0, 0, 7}; where.name == "VLAN" && bytes.Count(l.read("own"), tag) < 100 {
					t.Error("there are no tags")
				}
				l.compareLines("live", s.decoded("own"), nil)
				// Each socket has the kernel read the clock anew.
				l.compareLines("live", s.decoded(dump), regexp.MustCompile(`_?time":"[^"]*"|"rtt_ms":[0-9.]+|\d+(\.\d+)?(µs|ms|s)\b`))
				if all := jsonLines(t, l.file("live")); g.protocol != "netrek" {
					s.compare(all)
				} else {
					p := play{t, all}
					p.compareLog(jsonLines(t, l.file("server")))
				}
			})
		}
	}
}

// capture plays the game, while opscope and tcpdump capture it.
func (s *sniffed) capture(tcpdump string) {
	l, t := s.lan, s.t
	filter := "tcp or udp"
	if s.where == "VLAN" {
		filter = "" // which would look in front of the tags
	}
	args := []string{tcpdump, "-i", s.device, "-n", "-U", "-B", "8192", "-Z", "root", "--nano", "-w", l.file("dump")}
	if s.device == "any" {
		args = append(args, "-y", "LINUX_SLL2")
	}
	if filter != "" {
		args = append(args, filter)
	}
	dump := start(t, l.command(0, args...))
	dump.until("listening on ")
	args = []string{"-i", s.device, "-w", l.file("own"), "-T", "json", "--summary", "--hold", "2s"}
	sniff := l.sniff(append(append(args, s.decoder...), filter)...)

	serve, bots := s.apart()
	// All who send do so on one processor: of packets on two, the second may overtake the first.
	server := start(t, l.command(1, append([]string{"taskset", "-c", strconv.Itoa(processor()), l.self, "serve", s.protocol, "--log", l.file("server")}, serve...)...))
	server.until("listening on ")
	play := start(t, l.command(0, append([]string{"taskset", "-c", strconv.Itoa(processor()), l.self, "bot", s.protocol, "--log", l.file("bots")}, bots...)...))
	if code := play.end(); code != exitDone {
		t.Errorf("the bots end with %d", code)
	}
	server.signal(os.Interrupt)
	if code := server.end(); code != exitDone {
		t.Errorf("the server ends with %d", code)
	}
	l.mark("dump", "own")
	for _, c := range []*child{sniff, dump} {
		c.signal(os.Interrupt)
		if code := c.end(); code != exitDone {
			t.Errorf("%v ends with %d", c.cmd.Args, code)
		}
	}
}

func (l *lan) read(name string) []byte {
	l.t.Helper()
	b, err := os.ReadFile(l.file(name))
	if err != nil {
		l.t.Fatal(err)
	}
	return b
}

// processor is the number of one that this process may use.
var processor = sync.OnceValue(func() int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &set); err != nil {
		panic(err)
	}
	n := 0
	for !set.IsSet(n) {
		n++
	}
	return n
})

// pin has the calling goroutine run on that processor until it ends.
func (l *lan) pin() {
	runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
	var set unix.CPUSet
	set.Set(processor())
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		l.t.Error(err)
	}
}

// apart returns the arguments of the server and the bots of a game over two hosts. Lords
// of the Realm II has one joiner: two would talk to each other on their own host.
func (s *sniffed) apart() (serve, bots []string) {
	addr := net.JoinHostPort(s.there, strconv.Itoa(s.port))
	serve, bots = append(slices.Clone(s.serve), "--listen", addr), append(slices.Clone(s.bots), "--connect", addr)
	host := s.host
	if s.protocol == "lotr2" {
		discovery := net.JoinHostPort(s.there, "47624")
		serve = append(serve, "--discovery", discovery)
		bots = []string{"--connect", discovery, "--listen", net.JoinHostPort(s.here, strconv.Itoa(s.port))}
		host = strings.Replace(host, "players 2", "players 1", 1)
		s.routes = 4 + 1
	}
	if host != "" {
		s.lan.write("host", host)
		serve = append(serve, "--script", s.file("host"))
	}
	s.lan.write("script", s.script)
	return serve, append(bots, "--script", s.file("script"))
}

// reordered wants the recording of opscope and that of tcpdump to have the same packets, and
// returns a file that has those of tcpdump in the order of opscope. Of two packets that two
// processors carry at once, one socket may see this one first, and another socket that one:
// a timer of the kernel is enough to have one sent beside the other.
func (l *lan) reordered(own, dump string) string {
	l.t.Helper()
	const header, recordHeader, stored = 24, 16, 8
	at := map[string][][]byte{} // the records of the file, by packet
	file := l.read(dump)
	sorted, rest := slices.Clone(file[:header]), file[header:]
	for _, p := range l.packets(dump) {
		n := recordHeader + binary.NativeEndian.Uint32(rest[stored:])
		at[p], rest = append(at[p], rest[:n]), rest[n:]
	}
	packets := l.packets(own)
	moved := 0
	for i, p := range packets {
		if len(at[p]) == 0 {
			l.t.Fatalf("packet %d of %q is not in %q: %s", i+1, own, dump, p)
		}
		if !bytes.HasPrefix(file[len(sorted):], at[p][0]) {
			moved++
		}
		sorted, at[p] = append(sorted, at[p][0]...), at[p][1:]
	}
	for p, left := range at {
		if len(left) > 0 {
			l.t.Fatalf("of %q, %q lacks %d: %s", dump, own, len(left), p)
		}
	}
	l.t.Logf("%d packets, %d of them in another order", len(packets), moved)
	l.write(dump+".sorted", string(sorted))
	return dump + ".sorted"
}

func (l *lan) packets(name string) (list []string) {
	l.t.Helper()
	f, err := capture.Open(l.file(name))
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	const cooked2, address, end = 276, 18, 20 // the address of six bytes stands in a field of eight
	var p dissect.Packet
	for err = f.Next(&p); err == nil; err = f.Next(&p) {
		if p.Link == cooked2 {
			clear(p.Data[address:end]) // in which tcpdump leaves anything
		}
		list = append(list, fmt.Sprintf("link type %d, %d bytes: %s", p.Link, p.Length, hex.EncodeToString(p.Data)))
	}
	if !errors.Is(err, io.EOF) {
		l.t.Fatal(err)
	}
	return list
}

// decoded decodes a recording of tcpdump as the live packets were, and returns the file
// with its records.
func (s *sniffed) decoded(name string) string {
	s.t.Helper()
	args := append([]string{"decode", "-T", "json", "--summary", "--hold", "2s", s.file(name)}, s.decoder...)
	out, err := exec.Command(s.lan.opscope, args...).Output()
	if err != nil {
		s.t.Fatal(err)
	}
	s.lan.write(name+".records", string(out))
	return name + ".records"
}

// compareLines wants two files to have the same lines, but for what matches.
func (l *lan) compareLines(got, want string, but *regexp.Regexp) {
	l.t.Helper()
	g, w := l.lines(got, but), l.lines(want, but)
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			l.t.Fatalf("line %d of %d and %d:\nlive %s\nfile %s", i+1, len(g), len(w),
				append(g, "none")[min(i, len(g))], append(w, "none")[min(i, len(w))])
		}
	}
}

func (l *lan) lines(name string, but *regexp.Regexp) []string {
	l.t.Helper()
	b := l.read(name)
	if but != nil {
		b = but.ReplaceAll(b, nil)
	}
	return strings.Split(string(b), "\n")
}

// counted are the numbers of the line in which sniff tells what became of the packets.
func counted(t *testing.T, c *child) (received, kernel, own int) {
	t.Helper()
	rest := c.until("veth0: ")
	m := regexp.MustCompile(`^(\d+) packets received, (\d+) dropped by the kernel, (\d+) dropped by opscope$`).FindStringSubmatch(rest)
	if m == nil {
		t.Fatalf("it says %q", rest)
	}
	for i, n := range []*int{&received, &kernel, &own} {
		*n, _ = strconv.Atoi(m[i+1])
	}
	return received, kernel, own
}

// TestSniffBurst sends 20,000 datagrams as fast as they arrive while nobody reads the records
// (B79): what is not decoded is counted, and the recording has all that the kernel had room
// for, which is less when opscope gets no processor. As long as it gets one every few seconds,
// 64 MiB have room for all: they are 256 blocks, of which each takes 20 ms, or more.
func TestSniffBurst(t *testing.T) {
	for _, c := range []struct {
		name, queue, kernel string // MiB
		stopped             bool
	}{{"room for all", "64", "64", false}, {"a queue of 1 MiB", "1", "64", false}, {"no processor", "64", "1", true}} {
		t.Run(c.name, func(t *testing.T) {
			l := newLAN(t)
			cmd := l.command(0, l.opscope, "sniff", "-i", "veth0", "--queue", c.queue, "-B", c.kernel, "-w", l.file("own"), "udp port 2627 or udp port 9")
			slow, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			sniff := start(t, cmd)
			sniff.until("capturing on ")
			if c.stopped {
				sniff.signal(syscall.SIGSTOP)
			}
			const datagrams = 20000
			l.burst(datagrams)
			if c.stopped {
				sniff.signal(syscall.SIGCONT)
				await(func() bool {
					sniff.signal(syscall.SIGUSR1)
					received, kernel, _ := counted(t, sniff)
					return received+kernel == datagrams
				})
			}
			l.mark("own")
			sniff.signal(os.Interrupt)
			read := make(chan int)
			go func() {
				b, _ := io.ReadAll(slow) // now somebody reads
				read <- bytes.Count(b, []byte("D_ACK"))
			}()
			received, kernel, own := counted(t, sniff)
			decoded, _ := strconv.Atoi(strings.Fields(sniff.until("opscope: "))[0])
			lines := <-read
			if code := sniff.end(); code != exitDone {
				t.Errorf("it ends with %d", code)
			}
			t.Logf("%d received, %d dropped by the kernel, %d by opscope; %d decoded, %d lines", received, kernel, own, decoded, lines)
			if want := datagrams + 1; received+kernel != want || decoded+own+kernel != want {
				t.Errorf("received %d + dropped %d, decoded %d + dropped %d + %d: want %d each", received, kernel, decoded, own, kernel, want)
			}
			if lines != decoded && lines != decoded-1 { // the last words are no record
				t.Errorf("%d lines of %d packets", lines, decoded)
			}
			if n := len(l.packets("own")); n != received {
				t.Errorf("the recording has %d packets of %d", n, received)
			}
			if (own > 0) != (c.queue == "1") || (kernel > 0) != c.stopped {
				t.Errorf("%d packets dropped by opscope, %d by the kernel", own, kernel)
			}
		})
	}
}

// burst sends datagrams from the second host to the first, a few at a time: the next ones when
// those have arrived. What the kernel has not delivered yet, and has no room for, nobody counts.
func (l *lan) burst(datagrams int) {
	l.t.Helper()
	var server net.PacketConn
	l.within(0, func() (err error) {
		server, err = net.ListenPacket("udp", l.address(0)+":2627") // what goes to this port is Wulfram's
		return err
	})
	defer server.Close()
	if err := server.SetReadDeadline(time.Now().Add(hang)); err != nil {
		l.t.Fatal(err)
	}
	client := l.socket(1, 2627)
	datagram, buf := []byte{2, 0, 0, 0, 1, 0xc7}, make([]byte, 100)
	const few = 40
	for n := 0; n < datagrams; n += few {
		for range few {
			if _, err := client.Write(datagram); err != nil {
				l.t.Fatal(err)
			}
		}
		for range few {
			if _, _, err := server.ReadFrom(buf); err != nil {
				l.t.Fatal(err)
			}
		}
	}
}

var soak = flag.Duration("soak", 10*time.Second, "how long TestSniffSoak sends 5,000 packets a second")

// TestSniffSoak sends packets of three protocols for long, each game again and again from
// another address (B82): all are decoded, and memory does not grow once it is warm.
func TestSniffSoak(t *testing.T) {
	l := newLAN(t)
	cmd := l.command(0, l.opscope, "sniff", "-i", "veth0", "-T", "json", "ip")
	records, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	cmd.Stdout = records
	sniff := start(t, cmd)
	sniff.until("capturing on ")
	r := replay{fd: l.packetSocket(1)}
	for _, name := range []string{"wulfram/play", "netrek/udp", "mmo/move"} {
		r.load(t, filepath.Join("../../pcaps", name+".pcapng"))
	}
	const rate, burst, warm = 5000, 50, 10 * time.Minute // twice as long as anything is remembered here
	began, most, next := time.Now(), 0, time.Duration(0)
	for ran := time.Duration(0); ran < *soak; ran = time.Since(began) {
		for range burst {
			r.send(t)
		}
		time.Sleep(time.Until(began.Add(time.Duration(r.sent) * time.Second / rate)))
		if ran < next {
			continue
		}
		next += min(time.Minute, *soak/10)
		rss, cpu := used(t, sniff.cmd.Process.Pid)
		t.Logf("%v: %d packets, %d times each game, %d MiB, %v of processor time", ran.Round(time.Second), r.sent, r.passes, rss>>20, cpu)
		if ran < warm {
			most = max(most, rss)
		} else if rss > most+most/4 {
			t.Errorf("%d MiB after %v, and at most %d in the first %v", rss>>20, ran, most>>20, warm)
		}
	}
	sniff.signal(os.Interrupt)
	received, kernel, own := counted(t, sniff)
	decoded, _ := strconv.Atoi(strings.Fields(sniff.until("opscope: "))[0])
	if code := sniff.end(); code != exitDone {
		t.Errorf("it ends with %d", code)
	}
	t.Logf("%d sent in %v: %d received, %d dropped by the kernel, %d by opscope, %d decoded", r.sent, time.Since(began), received, kernel, own, decoded)
	if r.sent != received+kernel || received != decoded+own {
		t.Error("some are missing")
	}
}

// packetSocket opens a socket that sends frames on a host's veth0.
func (l *lan) packetSocket(host int) (fd int) {
	l.within(host, func() error {
		i, err := net.InterfaceByName("veth0")
		if err != nil {
			return err
		}
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: i.Index})
	})
	l.t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// used returns the memory that a process has, in bytes, and what it has used of processors.
func used(t *testing.T, pid int) (rss int, cpu time.Duration) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	f := strings.Fields(rest) // from state, the third, on: utime and stime are the 14th and 15th, rss the 24th
	user, _ := strconv.Atoi(f[14-3])
	system, _ := strconv.Atoi(f[15-3])
	pages, _ := strconv.Atoi(f[24-3])
	const tick = time.Second / 100
	return pages * os.Getpagesize(), time.Duration(user+system) * tick
}

// replay sends the packets of some captures again and again, each time as if from other
// clients.
type replay struct {
	fd     int
	frames [][]byte // Ethernet and IPv4 each
	next   int
	passes int
	sent   int
}

func (r *replay) load(t *testing.T, name string) {
	t.Helper()
	f, err := capture.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var p dissect.Packet
	for err = f.Next(&p); err == nil; err = f.Next(&p) {
		r.frames = append(r.frames, bytes.Clone(p.Data))
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

// send sends the next packet. The network of both ends is 10.0.0 in the first pass; the two
// numbers in its middle count the passes.
func (r *replay) send(t *testing.T) {
	t.Helper()
	const protocol, sum, source, target, transport = 14 + 9, 14 + 10, 14 + 12, 14 + 16, 14 + 20
	b := r.frames[r.next]
	sums := []int{sum, transport + 16} // of IP and of TCP
	if b[protocol] == unix.IPPROTO_UDP {
		sums[1] = transport + 6
	}
	for _, at := range []int{source, target} {
		before := b[at+1 : at+3]
		after := binary.BigEndian.AppendUint16(nil, uint16(r.passes))
		for _, s := range sums {
			amend(b[s:], before, after)
		}
		copy(before, after)
	}
	if _, err := unix.Write(r.fd, b); err != nil {
		t.Fatal(err)
	}
	r.sent++
	if r.next++; r.next == len(r.frames) {
		r.next = 0
		r.passes++
	}
}

// amend changes an internet checksum as two bytes of what it is over change, of which the
// first is the second of a word. Source: RFC 1624, section 3.
func amend(sum, before, after []byte) {
	n := uint32(^binary.BigEndian.Uint16(sum)) + uint32(^binary.LittleEndian.Uint16(before)) + uint32(binary.LittleEndian.Uint16(after))
	for n > 0xffff {
		n = n&0xffff + n>>16
	}
	binary.BigEndian.PutUint16(sum, ^uint16(n))
}

// TestSniffEnds: on a silent link an interrupt ends it (B76), with the file whole.
func TestSniffEnds(t *testing.T) {
	l := newLAN(t)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		sniff := l.sniff("-i", "veth0", "-w", l.file("own"), "udp port 1")
		sniff.signal(syscall.SIGUSR1)
		if received, _, _ := counted(t, sniff); received != 0 {
			t.Errorf("%d packets on a silent link", received)
		}
		sniff.signal(s)
		if code := sniff.end(); code != exitDone {
			t.Errorf("%v: it ends with %d", s, code)
		}
		if n := len(l.packets("own")); n != 0 {
			t.Errorf("%d packets in the file", n)
		}
	}
}

// TestSniffStops: it ends by itself when it was asked to, with what it was asked for.
func TestSniffStops(t *testing.T) {
	l := newLAN(t)
	stopped := make(chan struct{})
	defer close(stopped)
	conn := l.socket(1, 2627)
	go func() { // somebody who never stops talking
		for n := 0; ; n++ {
			select {
			case <-stopped:
				return
			case <-time.After(5 * time.Millisecond):
				_, _ = conn.Write([]byte{2, 0, 0, 0, byte(n >> 8), byte(n)}) // it may be refused
			}
		}
	}()
	for _, c := range []struct {
		name    string
		args    []string
		records int // -1 for any number
		said    string
	}{
		{"after records", []string{"-c", "5"}, 5, ""},
		{"after packets", []string{"--packets", "7"}, 7, "7 packets decoded, 7 records"},
		{"after packets, as in tshark", []string{"-a", "packets:7"}, 7, "7 packets decoded, 7 records"},
		{"after a time", []string{"-a", "duration:1"}, -1, ""},
		{"after bytes", []string{"-a", "filesize:1", "-w", l.file("bytes"), "-q"}, -1, ""},
		{"after files", []string{"-b", "packets:4", "-a", "files:2", "-w", l.file("ring"), "-q"}, -1, ""},
		{"into standard output", []string{"-a", "packets:9", "-w", "-"}, -1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := l.command(0, append([]string{l.opscope, "sniff", "-i", "veth0", "-T", "json"}, append(c.args, "udp dst port 2627")...)...)
			out, err := os.Create(l.file("out"))
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			cmd.Stdout = out
			sniff := start(t, cmd)
			if c.said != "" {
				sniff.until(c.said)
			}
			if code := sniff.end(); code != exitDone {
				t.Errorf("it ends with %d", code)
			}
			if n := bytes.Count(l.read("out"), []byte(`"type":"record"`)); c.records >= 0 && n != c.records {
				t.Errorf("%d records, want %d", n, c.records)
			}
		})
	}
	if n := len(l.packets("out")); n != 9 {
		t.Errorf("%d packets in standard output, want 9", n)
	}
	if n := len(l.read("bytes")); n < 1000 || n > 1300 { // the packet that fills it, and the counters, still go in
		t.Errorf("%d bytes, want 1,000 and a little", n)
	}
	names, _ := filepath.Glob(l.file("ring*"))
	if len(names) != 2 {
		t.Errorf("files %v, want 2", names)
	}
	for _, name := range names {
		if n := len(l.packets(filepath.Base(name))); n != 4 {
			t.Errorf("%d packets in %s, want 4", n, name)
		}
	}
}

// TestSniffProgress: with the records elsewhere, a terminal shows how far it is.
func TestSniffProgress(t *testing.T) {
	l := newLAN(t)
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	cmd := l.command(0, l.opscope, "sniff", "-i", "veth0", "-T", "json", "udp")
	cmd.Stderr = terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	shown := make(chan bool)
	go func() {
		var all []byte
		for buf := make([]byte, 4096); ; {
			n, err := master.Read(buf)
			all = append(all, buf[:n]...)
			if found := bytes.Contains(all, []byte("0 records, 0 packets dropped")); found || err != nil {
				shown <- found
				return
			}
		}
	}()
	select {
	case found := <-shown:
		if !found {
			t.Error("the terminal shows nothing")
		}
	case <-time.After(hang):
		t.Error("the terminal does not show how far it is")
	}
	_ = cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestSniffMerged: what offload has merged is told, once for segments and once for
// datagrams.
func TestSniffMerged(t *testing.T) {
	l := newLAN(t)
	sniff := l.sniff("-i", "veth0", "-w", l.file("own"), "tcp or udp")
	all := l.sniff("-i", "any", "tcp or udp")
	var server net.Listener
	l.within(0, func() (err error) {
		server, err = net.Listen("tcp", l.address(0)+":0")
		return err
	})
	defer server.Close()
	go func() {
		for conn, err := server.Accept(); err == nil; conn, err = server.Accept() {
			_, _ = io.Copy(io.Discard, conn)
			conn.Close()
		}
	}()
	much := make([]byte, 1<<20)
	transfer := func() {
		var conn net.Conn
		l.within(1, func() (err error) {
			conn, err = net.Dial("tcp", server.Addr().String())
			return err
		})
		defer conn.Close()
		if _, err := conn.Write(much); err != nil {
			t.Fatal(err)
		}
	}
	transfer()
	sniff.until("merges segments")
	all.until("try: ethtool -K veth0 ") // and not any, which it does not know
	all.signal(os.Interrupt)
	if code := all.end(); code != exitDone {
		t.Errorf("that of all interfaces ends with %d", code)
	}
	merged := l.socket(1, 9)
	raw, err := merged.(*net.UDPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT, 500) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if _, err := merged.Write(much[:2000]); err != nil {
		t.Fatal(err)
	}
	sniff.until("merges datagrams")
	transfer()
	l.mark("own")
	sniff.signal(os.Interrupt)
	if code := sniff.end(); code != exitDone {
		t.Errorf("it ends with %d", code)
	}
	for line := range sniff.said {
		if strings.Contains(line, "merges") {
			t.Errorf("it says again %q", line)
		}
	}
}

// TestSniffDown: an interface that goes down ends the capture with a message and a whole
// file, or is awaited.
func TestSniffDown(t *testing.T) {
	l := newLAN(t)
	sniff := l.sniff("-i", "veth0", "-w", l.file("own"), "udp")
	l.mark("own")
	l.on(0, "ip", "link", "set", "veth0", "down")
	sniff.until("veth0: the interface went down")
	if code := sniff.end(); code != 4 {
		t.Errorf("it ends with %d, want 4", code)
	}
	if n := len(l.packets("own")); n != 1 {
		t.Errorf("%d packets in the file, want 1", n)
	}

	sniff = start(t, l.command(0, l.opscope, "sniff", "-i", "veth0", "--wait", "-w", l.file("own"), "udp"))
	sniff.until("waiting for veth0")
	l.on(0, "ip", "link", "set", "veth0", "up")
	sniff.until("capturing on ")
	l.mark("own")
	l.on(0, "ip", "link", "set", "veth0", "down")
	sniff.until("waiting for veth0")
	l.on(0, "ip", "link", "set", "veth0", "up")
	sniff.until("capturing again")
	if _, err := l.socket(0, 9).Write([]byte("and once more")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, l.file("own"), "and once more")
	sniff.signal(os.Interrupt)
	if received, _, _ := counted(t, sniff); received != 2 {
		t.Errorf("%d packets received, want 2", received)
	}
	if code := sniff.end(); code != exitDone {
		t.Errorf("it ends with %d", code)
	}
}

// TestSniffCannot: what keeps it from starting is said in a way that helps.
func TestSniffCannot(t *testing.T) {
	l := newLAN(t)
	nobody := func(cmd *exec.Cmd) *exec.Cmd {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		return cmd
	}
	for _, c := range []struct {
		name string
		cmd  *exec.Cmd
		want []string
		code int
	}{
		{"not permitted", nobody(exec.Command(l.opscope, "sniff", "-i", "lo")), []string{"not permitted to capture", l.opscope}, 4},
		{"no such interface", l.command(0, l.opscope, "sniff", "-i", "veth9"), []string{`no interface "veth9"`, "sniff -D"}, 4},
		{"wrong filter", l.command(0, l.opscope, "sniff", "-i", "veth0", "udp", "port", "99999"), []string{"want a port", "udp port 99999", "         ^"}, 2},
		{"no filter for the link", l.command(0, l.opscope, "sniff", "-i", "any", "ether", "host", "02:00:00:00:00:01"), []string{"no Ethernet header"}, 2},
		{"no file", l.command(0, l.opscope, "sniff", "-i", "veth0", "-w", l.file("no/such")), []string{"-w: ", "no such file"}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			var said bytes.Buffer
			c.cmd.Stderr = &said
			err := c.cmd.Run()
			if code := c.cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("%v: it ends with %d, want %d", err, code, c.code)
			}
			for _, w := range c.want {
				if !strings.Contains(said.String(), w) {
					t.Errorf("no %q in %q", w, said.String())
				}
			}
		})
	}
}

// TestSniffLists: -D has each interface with its addresses and its state.
func TestSniffLists(t *testing.T) {
	l := newLAN(t)
	l.on(1, "ip", "link", "set", "veth0", "down") // which the other end notices
	for host, want := range map[int]string{0: "veth0 +no carrier +10.77.0.1/24", 1: "veth0 +down +10.77.0.2/24"} {
		row := regexp.MustCompile(`(?m)^\d+ +` + want + `$`)
		var out []byte
		listed := func() bool {
			var err error
			if out, err = l.command(host, l.opscope, "sniff", "-D").Output(); err != nil {
				t.Fatal(err)
			}
			return row.Match(out) && regexp.MustCompile(`(?m)^ +any `).Match(out)
		}
		if !await(listed) { // a carrier is lost after a while
			t.Fatalf("without %q:\n%s", want, out)
		}
	}
}

// TestSniffUser: the rights of root are gone once the interfaces are open.
func TestSniffUser(t *testing.T) {
	l := newLAN(t)
	sniff := l.sniff("-i", "veth0", "--user", "nobody", "udp")
	sniff.signal(syscall.SIGUSR1)
	counted(t, sniff)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", sniff.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Uid:\t65534\t65534\t65534\t65534\n", "Gid:\t65534\t65534\t65534\t65534\n", "CapEff:\t0000000000000000\n"} {
		if !strings.Contains(string(status), want) {
			t.Errorf("no %q in\n%s", want, status)
		}
	}
	sniff.signal(os.Interrupt)
	sniff.end()
}

// TestSniffReload: SIGHUP loads the user's schema files anew, and goes on with those from
// before when they are wrong.
func TestSniffReload(t *testing.T) {
	l := newLAN(t)
	schema := func(text string) {
		if err := os.WriteFile(l.file("schema/wulfram.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(l.file("schema"), 0o700); err != nil {
		t.Fatal(err)
	}
	with := func(field string) string {
		return "protocol: wulfram\npackets:\n  NEWS:\n    opcode: 0xf0\n    from: client\n    via: [udp]\n    source: a test\n    confidence: guess\n    fields:\n      - " + field + ": u8\n"
	}
	schema(with("before"))
	sniff := l.sniff("-i", "veth0", "-T", "json", "--schema", l.file("schema"), "udp")
	say := func(port int) {
		// A client of its own, so that a session begins.
		if _, err := l.socket(1, port).Write([]byte("\xf0\x07")); err != nil {
			t.Fatal(err)
		}
	}
	say(2627)
	waitFor(t, l.file("live"), `"before":7`)
	schema("protocol: wulfram\nnonsense: 5\n")
	sniff.signal(syscall.SIGHUP)
	sniff.until("the schemas from before stay in use")
	schema(with("after"))
	sniff.signal(syscall.SIGHUP)
	if !await(func() bool { say(2627); return bytes.Contains(l.read("live"), []byte(`"after":7`)) }) {
		t.Fatal("the new schema is not used")
	}
	sniff.signal(os.Interrupt)
	sniff.end()
}
