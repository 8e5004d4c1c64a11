package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"opscope/cmd/refserver/internal/scenario"
)

// execute runs a command line.
func execute(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	var buf bytes.Buffer
	ctx, stop := context.WithTimeout(context.Background(), hang)
	defer stop()
	err = run(ctx, args, streams{&buf, &buf})
	return buf.String(), err
}

func TestRecordWritesTheSameBytesForTheSameSeed(t *testing.T) {
	for _, s := range scenarioNames() {
		first, err := execute(t, "record", s, "-o", "-", "--seed", "5")
		if err != nil {
			t.Fatal(err)
		}
		if second, _ := execute(t, "record", s, "-o", "-", "--seed", "5"); first != second {
			t.Errorf("%s: two runs differ", s)
		}
		if other, _ := execute(t, "record", s, "-o", "-", "--seed", "6"); first == other {
			t.Errorf("%s: two seeds make the same", s)
		}
	}
}

func TestRecordWritesTheTruth(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lossy.ndjson")
	if _, err := execute(t, "record", "lossy", "-o", "-", "--log", name); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	kinds := map[string]int{}
	for _, line := range lines {
		var x struct {
			Type, Captured, Place string
			Packets               []int
		}
		if err := yaml.Unmarshal([]byte(line), &x); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		kinds[x.Type+x.Captured+x.Place]++
	}
	for _, want := range []string{"scenario", "recordwhole", "recordnone", "faultbefore the tape", "faultbehind the tape", "event"} {
		if kinds[want] == 0 {
			t.Errorf("no line of kind %q among %v", want, kinds)
		}
	}
}

func TestScenariosAreListed(t *testing.T) {
	out, err := execute(t, "scenarios")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scenario.All {
		if !strings.Contains(out, s.Name+" ") || !strings.Contains(out, s.Doc) {
			t.Errorf("%s is not listed", s.Name)
		}
	}
}

func TestExitCodes(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip("no sockets here: ", err)
	}
	defer taken.Close()
	busy, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for name, c := range map[string]struct {
		args []string
		code int
		text string
	}{
		"unknown scenario":      {[]string{"record", "nonsense", "-o", "-"}, exitUsage, `unknown scenario "nonsense"`},
		"no output":             {[]string{"record", "login"}, exitUsage, "no file to write"},
		"no such folder":        {[]string{"record", "login", "-o", "/nonexistent/x"}, exitFile, "/nonexistent/x"},
		"unknown flag":          {[]string{"record", "login", "--colour"}, exitUsage, "--colour"},
		"unknown protocol":      {[]string{"serve", "chess"}, exitUsage, `"chess"`},
		"unknown command":       {[]string{"play"}, exitUsage, `"play"`},
		"unknown handshake":     {[]string{"serve", "wulfram", "--handshake", "firm"}, exitUsage, "firm"},
		"no address":            {[]string{"serve", "wulfram", "--listen", "2627"}, exitUsage, "--listen 2627"},
		"address in use":        {[]string{"serve", "wulfram", "--listen", taken.Addr().String()}, exitSocket, "in use"},
		"nobody's address":      {[]string{"serve", "wulfram", "--listen", "192.0.2.1:2627"}, exitSocket, "192.0.2.1:2627"},
		"no bots":               {[]string{"bot", "wulfram", "--count", "0"}, exitUsage, "--count 0"},
		"unknown script":        {[]string{"bot", "wulfram", "--script", "dance"}, exitUsage, "dance"},
		"no slots":              {[]string{"serve", "netrek", "--slots", "0"}, exitUsage, "--slots 0"},
		"no discovery address":  {[]string{"serve", "netrek", "--listen", "127.0.0.1:0", "--discovery", "3521"}, exitUsage, "--discovery 3521"},
		"nobody's discovery":    {[]string{"serve", "netrek", "--listen", "127.0.0.1:0", "--discovery", "192.0.2.1:3521"}, exitSocket, "192.0.2.1:3521"},
		"no such UDP port":      {[]string{"serve", "mmo", "--udp-port", "65536"}, exitUsage, "--udp-port 65536"},
		"too many walkers":      {[]string{"serve", "mmo", "--walkers", "1001"}, exitUsage, "--walkers 1001"},
		"no such choices":       {[]string{"serve", "mmo", "--config", "/nonexistent/x"}, exitFile, "/nonexistent/x"},
		"choices of nothing":    {[]string{"bot", "mmo", "--config", "command_test.go"}, exitUsage, "command_test.go"},
		"UDP port in use":       {[]string{"serve", "mmo", "--listen", "127.0.0.1:0", "--udp-port", port(busy)}, exitSocket, "in use"},
		"unknown mmo script":    {[]string{"bot", "mmo", "--script", "dance"}, exitUsage, "dance"},
		"unknown netrek script": {[]string{"bot", "netrek", "--script", "dance"}, exitUsage, "dance"},
		"unknown lotr2 scripts": {[]string{"bot", "lotr2", "--script", "dance"}, exitUsage, "dance"},
		"a joiner's script":     {[]string{"serve", "lotr2", "--script", joinerOnly(t)}, exitUsage, "script line 1"},
		"nobody's joiner":       {[]string{"bot", "lotr2", "--listen", "192.0.2.1:2300"}, exitSocket, "192.0.2.1:2300"},
		"a port for discovery":  {[]string{"serve", "lotr2", "--listen", "127.0.0.1:0", "--discovery", "47624"}, exitUsage, "--discovery 47624"},
		"log of no such folder": {[]string{"bot", "wulfram", "--log", "/nonexistent/x"}, exitFile, "/nonexistent/x"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := execute(t, c.args...)
			if exitCode(err) != c.code || !strings.Contains(err.Error(), c.text) {
				t.Errorf("code %d: %v", exitCode(err), err)
			}
			if strings.Count(err.Error(), "\n") > 1 {
				t.Errorf("more than a line and a hint: %v", err)
			}
		})
	}
}

// joinerOnly writes a script that a host does not follow.
func joinerOnly(t *testing.T) string {
	name := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(name, []byte("choose 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// port returns the port of a socket.
func port(c *net.UDPConn) string { return strconv.Itoa(c.LocalAddr().(*net.UDPAddr).Port) }

// TestServeAndBot has bots play against a server over loopback.
func TestServeAndBot(t *testing.T) {
	for _, test := range []struct {
		protocol, script string
		bots             []string // in their log
		server           string   // in its log
		options          []string // of the server
	}{
		{"wulfram", "login", []string{`"message":"TANK"`, `"peer":"Bot1"`, `"peer":"Bot2"`, `"code":"left"`}, `"message":"REINCARNATE"`, nil},
		{"netrek", "udp", []string{`"message":"SP_SEQUENCE"`, `"peer":"Bot1"`, `"peer":"Bot2"`, `"code":"left"`}, `"message":"CP_UDP_REQ"`, nil},
		{"mmo", "enter", []string{`"message":"UdpHelloRes"`, `"peer":"Bot1"`, `"peer":"Bot2"`, `"code":"left"`}, `"message":"EnterGameReq"`,
			[]string{"--udp-port", "0", "--seed", "3", "--walkers", "2"}},
	} {
		t.Run(test.protocol, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "server")
			server, addr := serving(t, test.protocol, append(test.options, "--log", log)...)
			out, err := execute(t, "bot", test.protocol, "--connect", addr, "--count", "2", "--script", test.script, "--log", "-")
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range test.bots {
				if !strings.Contains(out, want) {
					t.Errorf("the bots tell nothing of %s", want)
				}
			}
			server.signal(os.Interrupt)
			if code := server.end(); code != exitDone {
				t.Errorf("the server ends with %d", code)
			}
			text, err := os.ReadFile(log)
			if err != nil || !strings.Contains(string(text), test.server) {
				t.Errorf("the server's log, %d bytes, tells nothing of %s: %v", len(text), test.server, err)
			}
		})
	}
}

// TestSeeds: whose keys somebody could guess is for who asks for that alone.
func TestSeeds(t *testing.T) {
	commands := newServe(streams{}).Commands()
	if len(commands) != 4 {
		t.Fatalf("%d protocols are served", len(commands))
	}
	for _, c := range commands {
		seed := c.Flags().Lookup("seed")
		if c.PreRun(c, nil); seed.Value.String() == "0" {
			t.Errorf("%s draws no seed", c.Name())
		}
		if err := c.Flags().Set("seed", "5"); err != nil {
			t.Fatal(err)
		}
		if c.PreRun(c, nil); seed.Value.String() != "5" {
			t.Errorf("%s draws a seed, and is given one", c.Name())
		}
	}
}

// TestDiscovery asks a directory beside a server over loopback.
func TestDiscovery(t *testing.T) {
	needSockets(t)
	server := refserver(t, "serve", "netrek", "--listen", "127.0.0.1:0", "--discovery", "127.0.0.1:0")
	at, _, _ := strings.Cut(server.until("discovery on "), ",")
	asker, err := net.Dial("udp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer asker.Close()
	if _, err := asker.Write([]byte("?")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 200)
	_ = asker.SetReadDeadline(time.Now().Add(hang))
	n, err := asker.Read(b)
	if got := string(b[:n]); err != nil || got != "s,B,opscope reference server,1,2592,0,0\n" {
		t.Errorf("got %q, %v", got, err)
	}
	server.signal(os.Interrupt)
	if code := server.end(); code != exitDone {
		t.Errorf("the server ends with %d", code)
	}
}

// TestManifest makes the captures that pcaps/MANIFEST.yaml gives a command of ours
// for, and compares.
func TestManifest(t *testing.T) {
	const folder = "../../pcaps"
	text, err := os.ReadFile(filepath.Join(folder, "MANIFEST.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Captures []struct{ File, Command string }
	}
	if err := yaml.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	for _, c := range manifest.Captures {
		args, ours := strings.CutPrefix(c.Command, "refserver ")
		if !ours {
			continue
		}
		t.Run(c.File, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "capture")
			list := strings.Fields(args)
			for i := range list {
				if list[i] == "pcaps/"+c.File {
					list[i] = name
				}
			}
			if _, err := execute(t, list...); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(name)
			if err != nil {
				t.Fatalf("the command does not write pcaps/%s: %v", c.File, err)
			}
			want, err := os.ReadFile(filepath.Join(folder, c.File))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("pcaps/%s is not what its command writes: %d bytes, want %d (%v)\ntry: %s", c.File, len(want), len(got), err, c.Command)
			}
			if len(want) > 60_000 {
				t.Errorf("%d bytes are too many for a capture of pcaps/", len(want))
			}
		})
	}
}
