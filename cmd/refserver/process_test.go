package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asCommand in the environment makes the test binary the command itself, for tests
// that want a process of their own.
const asCommand = "REFSERVER_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	code := m.Run()
	for _, f := range whenDone {
		f()
	}
	os.Exit(code)
}

// whenDone is done after all tests.
var whenDone []func()

// hang is how long a test waits for what must happen: so long that a busy machine is in time.
const hang = 5 * time.Minute

// await waits until something is so, and returns false if that never comes.
func await(is func() bool) bool {
	for end := time.Now().Add(hang); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// child is a process of the test.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	said  chan string // the lines of its standard error, closed behind the last
	ended chan error
}

// start runs a program until it ends, or the test does.
func start(t *testing.T, cmd *exec.Cmd) *child {
	t.Helper()
	c := &child{t: t, cmd: cmd, said: make(chan string, 100), ended: make(chan error, 1)}
	r, w := io.Pipe()
	cmd.Stderr = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.said)
		for lines := bufio.NewScanner(r); lines.Scan(); {
			select {
			case c.said <- lines.Text():
			default: // nobody listens
			}
		}
	}()
	go func() {
		c.ended <- cmd.Wait()
		w.Close()
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, as a rule
	return c
}

// refserver runs the command.
func refserver(t *testing.T, args ...string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	return start(t, cmd)
}

// until waits for a line of standard error with some words, and returns what stands
// behind them.
func (c *child) until(words string) string {
	c.t.Helper()
	for late := time.After(hang); ; {
		select {
		case line, more := <-c.said:
			if !more {
				c.t.Fatalf("%v ended without saying %q", c.cmd.Args, words)
			}
			if _, rest, ok := strings.Cut(line, words); ok {
				return rest
			}
		case <-late:
			c.t.Fatalf("%v does not say %q", c.cmd.Args, words)
		}
	}
}

// end waits for the end of the process, and returns its exit code.
func (c *child) end() int {
	c.t.Helper()
	select {
	case <-c.ended:
		return c.cmd.ProcessState.ExitCode()
	case <-time.After(hang):
		c.t.Fatalf("%v does not end", c.cmd.Args)
		return -1
	}
}

// needSockets skips a test where there are no sockets.
func needSockets(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip("no sockets here: ", err)
	}
	l.Close()
}

// serving runs a server on a free port, and returns its address.
func serving(t *testing.T, protocol string, args ...string) (*child, string) {
	t.Helper()
	needSockets(t)
	c := refserver(t, append([]string{"serve", protocol, "--listen", "127.0.0.1:0"}, args...)...)
	addr, _, _ := strings.Cut(c.until("listening on "), ",")
	return c, addr
}

// signal sends a signal to the process.
func (c *child) signal(s os.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// TestSignals ends a server with players, and the players, and looks for the end of
// their logs.
func TestSignals(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals to other processes here")
	}
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(s.String(), func(t *testing.T) {
			dir := t.TempDir()
			script := filepath.Join(dir, "script")
			if err := os.WriteFile(script, []byte("team red\nspawn 1 tank\nwait 1h\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			server, addr := serving(t, "wulfram", "--log", filepath.Join(dir, "server"))
			bots := refserver(t, "bot", "wulfram", "--connect", addr, "--count", "2", "--script", script, "--log", filepath.Join(dir, "bots"))
			waitFor(t, filepath.Join(dir, "bots"), `"message":"TANK"`)
			bots.signal(s)
			if code := bots.end(); code != exitDone {
				t.Errorf("the bots end with %d", code)
			}
			server.signal(s)
			if code := server.end(); code != exitDone {
				t.Errorf("the server ends with %d", code)
			}
			for _, name := range []string{"bots", "server"} {
				jsonLines(t, filepath.Join(dir, name))
			}
		})
	}
}

// waitFor waits until a file has some text.
func waitFor(t *testing.T, file, text string) {
	t.Helper()
	var b []byte
	var err error
	if !await(func() bool { b, err = os.ReadFile(file); return bytes.Contains(b, []byte(text)) }) {
		t.Fatalf("%s, of %d bytes, does not come to have %q (%v)", file, len(b), text, err)
	}
}

// jsonLines reads a file of one JSON object a line.
func jsonLines(t *testing.T, file string) (list []map[string]any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		var o map[string]any
		if err := json.Unmarshal(line, &o); err != nil {
			t.Fatalf("%s: %s: %v", file, line, err)
		}
		list = append(list, o)
	}
	return list
}

// TestSocketsThatCannotBeOpened wants one clear line and exit code 4.
func TestSocketsThatCannotBeOpened(t *testing.T) {
	tcp, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Skip("no sockets here: ", err)
	}
	defer tcp.Close()
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	for name, c := range map[string]struct{ addr, want string }{
		"the TCP port is in use":  {tcp.Addr().String(), "address already in use"},
		"the UDP port is in use":  {udp.LocalAddr().String(), "address already in use"},
		"the address is nobody's": {"192.0.2.1:2627", "192.0.2.1:2627"},
	} {
		t.Run(name, func(t *testing.T) {
			server := refserver(t, "serve", "wulfram", "--listen", c.addr)
			if line := server.until("refserver: "); !strings.Contains(line, c.want) && runtime.GOOS != "windows" {
				t.Errorf("it says %q", line)
			}
			if code := server.end(); code != exitSocket {
				t.Errorf("exit code %d", code)
			}
			for line := range server.said {
				t.Errorf("it says more than a line: %q", line)
			}
		})
	}
}

// TestServerSurvivesStrangers has a bot play while others send all kinds of rubbish,
// and another one afterwards.
func TestServerSurvivesStrangers(t *testing.T) {
	t.Run("wulfram", func(t *testing.T) { survive(t, "wulfram", "login", `"message":"TANK"`) })
	t.Run("mmo", func(t *testing.T) { survive(t, "mmo", "enter", `"message":"UdpHelloRes"`, "--udp-port", "0") })
}

// survive has bots follow a script against the server of a protocol, and wants each to
// hear a message.
func survive(t *testing.T, protocol, script, message string, options ...string) {
	log := filepath.Join(t.TempDir(), "server")
	server, addr := serving(t, protocol, append(options, "--log", log)...)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan struct{})
	strangers := []func(context.Context, string, *rand.Rand){strangeDatagrams, strangeStreams, strangeClients}
	for i, s := range strangers {
		go func() {
			defer func() { ended <- struct{}{} }()
			s(ctx, addr, rand.New(rand.NewPCG(uint64(i), 7)))
		}()
	}
	play := func(name string) {
		t.Helper()
		out, err := execute(t, "bot", protocol, "--connect", addr, "--name", name, "--script", script, "--log", "-")
		if err != nil || !strings.Contains(out, message) || !strings.Contains(out, `"code":"left"`) {
			t.Errorf("%s could not play: %v\n%s", name, err, out)
		}
	}
	play("Ada")
	stop()
	for range strangers {
		<-ended
	}
	play("Brin")
	server.signal(os.Interrupt)
	if code := server.end(); code != exitDone {
		t.Errorf("the server ends with %d", code)
	}
	jsonLines(t, log)
}

// strangeDatagrams sends datagrams of nobody: empty, short, huge, and such that begin
// as a client's do.
func strangeDatagrams(ctx context.Context, addr string, r *rand.Rand) {
	c, err := net.Dial("udp", addr)
	if err != nil {
		return
	}
	defer c.Close()
	for ctx.Err() == nil {
		b := noise(r, []int{0, 1, 5, 60, 1400, 60000}[r.IntN(6)])
		if len(b) > 0 {
			b[0] = []byte{0x00, 0x02, 0x03, 0x08, 0x13, 0x20, 0xff}[r.IntN(7)]
		}
		_, _ = c.Write(b) // it may be refused, which is well
		time.Sleep(time.Millisecond)
	}
}

// strangeStreams opens connections, writes what is no frame, and leaves in one way or
// another.
func strangeStreams(ctx context.Context, addr string, r *rand.Rand) {
	for ctx.Err() == nil {
		if c, err := net.Dial("tcp", addr); err == nil {
			_, _ = c.Write(noise(r, []int{0, 1, 2, 100, 100_000}[r.IntN(5)]))
			if r.IntN(2) == 0 {
				_ = c.(*net.TCPConn).SetLinger(0)
			}
			c.Close()
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// strangeClients keep connections that say half of what they should, and never read.
func strangeClients(ctx context.Context, addr string, r *rand.Rand) {
	var kept []net.Conn
	for ctx.Err() == nil {
		if c, err := net.Dial("tcp", addr); err == nil {
			_, _ = c.Write([]byte{0, 8, 0x13, 0, 0, 0}[:r.IntN(7)])
			kept = append(kept, c)
		}
		if len(kept) > 20 {
			kept[0].Close()
			kept = kept[1:]
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, c := range kept {
		c.Close()
	}
}

func noise(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
