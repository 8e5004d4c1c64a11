package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestHostAndJoiners has two joiners find a host over loopback, each peer at an address
// of its own.
func TestHostAndJoiners(t *testing.T) {
	t.Parallel() // it waits for the reset
	for _, addr := range []string{"127.0.0.1:0", "127.0.0.2:0", "127.0.0.3:0"} {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Skip("not all of 127.0.0.0/8 is here: ", err)
		}
		l.Close()
	}
	dir := t.TempDir()
	hostScript, joinerScript := filepath.Join(dir, "host"), filepath.Join(dir, "joiner")
	for name, text := range map[string]string{hostScript: "await players 2\nsay welcome", joinerScript: "say hello\nping\nawait chat\nwait 300ms\nleave"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log := filepath.Join(dir, "log")
	host := refserver(t, "serve", "lotr2", "--listen", "127.0.0.1:0", "--discovery", "127.0.0.1:0", "--script", hostScript, "--log", log)
	sockets := strings.Split(host.until("listening on "), ", ") // for connections, for datagrams, for discovery; each with its transport
	_, discovery, _ := strings.Cut(sockets[len(sockets)-2], "and ")
	out, err := execute(t, "bot", "lotr2", "--connect", discovery, "--listen", "127.0.0.2:0", "--count", "2", "--script", joinerScript, "--log", "-")
	if err != nil {
		t.Fatal(err)
	}
	host.signal(os.Interrupt)
	if code := host.end(); code != exitDone {
		t.Errorf("the host ends with %d", code)
	}
	hosted, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		`"message":"SuperEnumPlayersReply"`: out, `"text":"welcome"`: out, `"message":"Pong"`: out, `"code":"left"`: out, `"peer":"Bot2"`: out,
		`"message":"AddForwardAck"`: string(hosted), `"message":"join_hello"`: string(hosted), `"text":"hello"`: string(hosted),
	} {
		if !strings.Contains(text, what) {
			t.Errorf("a log tells nothing of %s", what)
		}
	}
	if strings.Contains(out, `"code":"refused"`) || strings.Contains(string(hosted), `"code":"refused"`) {
		t.Error("frames are refused")
	}
}

// TestNobodyHosts has a joiner look where nobody is.
func TestNobodyHosts(t *testing.T) {
	t.Parallel()                                          // it waits for an answer
	silent, err := net.ListenPacket("udp", "127.0.0.1:0") // nobody answers
	if err != nil {
		t.Skip("no sockets here: ", err)
	}
	defer silent.Close()
	began := time.Now()
	_, err = execute(t, "bot", "lotr2", "--connect", silent.LocalAddr().String(), "--listen", "127.0.0.1:0")
	if exitCode(err) != exitSocket || !strings.Contains(err.Error(), "nobody answers") {
		t.Errorf("exit code %d after %v: %v", exitCode(err), time.Since(began), err)
	}
}
