package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"opscope/dissect/scene"
)

// FuzzCommand reads arbitrary bytes as a capture, from the file to the screen: whatever
// they are, the program ends with 0 or 3, says why, and prints nothing but whole objects
// as NDJSON, and nothing that a terminal obeys as text.
func FuzzCommand(f *testing.F) {
	f.Add(plainSession(), uint8(0))
	f.Add(strangeCapture(), uint8(1))
	f.Add(session(versions[1], nil).Pcap(1), uint8(2))
	f.Add(session(versions[0], scene.VXLAN(7)).Pcap(1), uint8(0))
	pieces := &scene.Scene{}
	_, u := greet(pieces, versions[0])
	u.SendFragments(fromClient, 80, scene.Original(1))
	f.Add(pieces.Pcap(1), uint8(4))
	f.Add(plainSession(), uint8(7))
	f.Add(strangeCapture(), uint8(8))
	f.Add(session(versions[1], nil).Pcap(1), uint8(6))
	f.Add([]byte(`{"type":"record","file":0,"n":1,"packets":[1],"time":"2026-11-29T20:15:02.104512000Z"}`+"\n"), uint8(0))
	args := [][]string{
		{"decode", "-T", "json", "--summary"}, {"decode", "-V", "-x"}, {"decode", "-T", "json", "--raw", "--hold", "2s"}, {"decode", "--tables"},
		{"decode", "--check", "--protocol", "netrek"}, {"decode", "-q"}, {"follow", "1", "-v", "-x"}, {"ladder", "1"}, {"ladder", "1", "--ascii", "--width", "70"},
	}
	f.Fuzz(func(t *testing.T, data []byte, way uint8) {
		if len(data) > 1<<14 {
			return
		}
		words := args[int(way)%len(args)]
		r := opscopeReading(t, bytes.NewReader(data), append(slices.Clone(words), "-")...)
		tables := words[1] == "--tables" && r.code == exitUsage // records teach none
		noSession := words[0] != "decode" && r.code == exitUsage && strings.Contains(r.err, "no session 1")
		if r.code != exitDone && r.code != exitInput && !tables && !noSession || r.code != exitDone && r.err == "" {
			t.Fatalf("exit code %d, %q", r.code, r.err)
		}
		if bad := obeyed(r.out + r.err); len(bad) > 0 {
			t.Fatalf("%q in the output", bad)
		}
		if words[1] != "-T" {
			return
		}
		for line := range strings.Lines(r.out) {
			if _, err := strictJSON(line); err != nil {
				t.Fatalf("%v in %q", err, line)
			}
		}
	})
}
