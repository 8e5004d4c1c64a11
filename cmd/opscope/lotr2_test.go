package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"opscope/schema"
)

// tshark runs tshark, and skips the test where there is none.
func tshark(t *testing.T, args ...string) string {
	t.Helper()
	program, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip(err)
	}
	out, err := exec.Command(program, args...).Output()
	if err != nil {
		t.Fatalf("tshark %v: %v", args, err)
	}
	return string(out)
}

// TestDirectPlayNames compares the names of all commands with those that Wireshark has.
func TestDirectPlayNames(t *testing.T) {
	p, err := schema.Builtin("dplay")
	if err != nil {
		t.Fatal(err)
	}
	want := map[uint64]string{}
	for line := range strings.Lines(tshark(t, "-G", "values")) { // of all that it knows
		row, ours := strings.CutPrefix(line, "V\tdplay.command\t0x")
		if !ours {
			continue
		}
		digits, name, _ := strings.Cut(strings.TrimSpace(row), "\t")
		code, err := strconv.ParseUint(digits, 16, 16)
		if err != nil {
			t.Fatal(err)
		}
		want[code] = name
	}
	want[0x38] = "Create Player Verify" // it says Players, the facts do not
	if len(want) != len(p.Packets) {
		t.Errorf("got %d commands, want %d", len(p.Packets), len(want))
	}
	for code, name := range want {
		if got := p.OpcodeName(code); !strings.EqualFold(got, strings.ReplaceAll(name, " ", "")) {
			t.Errorf("0x%02X: got %s, want %s", code, got, name)
		}
	}
}

// TestDirectPlayCommands compares packet, command and size of each system message with
// what tshark says. Of player messages it knows nothing.
func TestDirectPlayCommands(t *testing.T) {
	for _, capture := range foreignCaptures(t, "lotr2") {
		said := tshark(t, "-r", capture, "-Y", "dplay", "-T", "fields", "-e", "frame.number", "-e", "dplay.command", "-e", "dplay.size")
		var got []string
		for _, r := range records(objects(t, good(t, "-T", "json", capture))) {
			if r["protocol"] == "dplay" {
				got = append(got, fmt.Sprintf("%v\t0x%04x\t%v", r["packets"].([]any)[0], int(r["opcode"].(float64)), r["size"]))
			}
		}
		if want := strings.Split(strings.TrimSpace(said), "\n"); !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", capture, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestCopiesAreShownOnce proves that text has a line for each message, which counts its
// copies, that everything has one for each copy, and NDJSON always.
func TestCopiesAreShownOnce(t *testing.T) {
	capture := foreignCapture(t, "lotr2", "chat.pcapng")
	lines := func(args ...string) (all, chats int, text string) {
		text = good(t, append(args, capture)...)
		for line := range strings.Lines(text) {
			if strings.Contains(line, " tcp ") || strings.Contains(line, " udp ") || strings.HasPrefix(line, `{"type":"record"`) {
				all++
			}
			if strings.Contains(line, " chat 0x06 ") || strings.Contains(line, `"message":"chat"`) {
				chats++
			}
		}
		return all, chats, text
	}
	const frames, copies = 92, 24 // of the truth file: 14 and 78 frames, 12 second and 12 third sends
	for _, c := range []struct {
		args       []string
		all, chats int
	}{
		{nil, frames - copies, 2}, {[]string{"-v"}, frames - copies, 2}, {[]string{"-V"}, frames, 6}, {[]string{"-T", "json"}, frames, 6},
	} {
		if all, chats, text := lines(c.args...); all != c.all || chats != c.chats {
			t.Errorf("%v: got %d lines, %d of chat, want %d and %d\n%s", c.args, all, chats, c.all, c.chats, text)
		}
	}
	_, _, text := lines()
	if got := regexp.MustCompile(`(?m)chat 0x06 +101  slot \d +copies: 3 `).FindAllString(text, -1); len(got) != 2 {
		t.Errorf("got %q\n%s", got, text)
	}
}

// TestLotr2Schema proves that the schema shows what is not settled, with the evidence, and
// where the client does what.
func TestLotr2Schema(t *testing.T) {
	text := strings.Join(strings.Fields(good(t, "schema", "show", "lotr2")), " ")
	for _, want := range []string{
		"open in which byte order are numbers? so far: little-endian", "open how wide is the checksum, and does it carry? so far: 8 bits",
		"evidence: 7,741 of 7,741 frames", "open which opcodes are sent once? so far: 0x0A, 0x0E, 0x23, 0x43 and 0x54",
		"0x40 the second send, 0x80 the third", "is the length ever a sentinel such as 0xFF?", "so far: still open; 27 opcodes have lengths here",
		"a dump of LORDS2.EXE would settle it", "client 0x00448c6c", "client 0x00448362 checks it against table 0x4f0988",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	p, err := schema.Builtin("lotr2")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range p.Packets {
		if !strings.Contains(k.Source, "client 0x00448641") {
			t.Errorf("%s: got the source %q, want the client's function too", k.Name, k.Source)
		}
	}
}

// TestLotr2Tables proves that the tables name the players, each with the packet that did.
func TestLotr2Tables(t *testing.T) {
	got := good(t, "--tables", foreignCapture(t, "lotr2", "chat.pcapng"))
	for _, want := range []string{
		"session 1  lotr2  client 169.254.3.245", `0x0384c8 +3 +joiner +user +0x0384c9 +Player2 +learned in packet 16`,
		`0x0384c9 +2 +joiner +system +0x0384c9 +- +learned in packet 10`, `0x0384ca +1 +host +user +0x0384cb +Player1 +learned in packet 13`,
		`0x0384cb +0 +host +system +0x0384cb +- +learned in packet 13`, `0x0284cb +learned in packet 4`,
	} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
