package main

import (
	"encoding/json"
	"strings"
	"testing"

	"opscope/dissect/scene"
)

// strangeCapture has some of each kind of what is not understood, and a password.
func strangeCapture() []byte {
	s := &scene.Scene{}
	c, u := greet(s, versions[0])
	c.Send(fromClient, scene.Frame(0x21, "\x00"+scene.Text("user")+scene.BE16(90)+"swordfish\x00")) // its password is cut
	c.Send(fromClient, scene.Frame(0x21, "\x00"+scene.Text("user")+scene.Text("swordfish")+"swordfish"))
	u.Send(fromClient, "\xfe\x01")
	u.Send(fromClient, "\xfe\x02\x03")
	u.Send(fromClient, "\xfe\x01")
	u.Send(fromServer, "\xfe\x01")
	c.Send(fromServer, scene.Frame(0x23, scene.Text("x")+"abc"), scene.Frame(0x23, scene.Text("x")+"de"))
	for range 3 {
		c.Send(fromServer, scene.Frame(0x23, "\x00\x09abc"))
	}
	c.Send(fromServer, scene.Frame(0x15, "\x00\x00\x00\x03\xff\x00")) // an array that is too long
	c.Send(fromServer, chats(1, 3), "\xff\xff\xff", chats(4, 9))
	return s.Pcap(1)
}

func TestUnknown(t *testing.T) {
	file := writeTemp(t, "strange.pcap", strangeCapture())
	got := good(t, "unknown", file)
	squeezed := strings.Join(strings.Fields(got), " ")
	for _, want := range []string{
		"coverage protocol records decoded bytes decoded packets seen with a layout wulfram 26 50.0% ",
		" 6 of 83 51 unknown opcodes and bodies",
		"wulfram c2s udp 0xFE unknown(0xFE) 3 2-3 fe01 fe0203 wulfram s2c udp 0xFE unknown(0xFE) 1 2 fe01",
		"records with bytes left over protocol dir message count bytes samples wulfram s2c MOTD 2 2-3 616263 6465",
		"wulfram c2s LOGIN 1 9 ***",
		"wulfram s2c MOTD.text 3 malformed 9 bytes 3 bytes left ",
		"DELETE_OBJECT.objects 1 malformed",
		"LOGIN.password 1 malformed",
		"envelope.length 1 malformed",
	} {
		if !strings.Contains(squeezed, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "swordfish") || strings.Contains(got, "73776f7264") {
		t.Errorf("it shows the password:\n%s", got)
	}
	if shown := good(t, "unknown", "--show-secrets", file); !strings.Contains(shown, "73776f7264") {
		t.Errorf("--show-secrets does not show the password:\n%s", shown)
	}
	one := good(t, "unknown", "--samples", "1", file)
	if strings.Contains(one, "fe0203") || !strings.Contains(one, "fe01") {
		t.Errorf("--samples 1 shows\n%s", one)
	}
}

// TestUnknownAsJSON reads the same as one object, of several files, from a pipe, and out
// of records that are read back.
func TestUnknownAsJSON(t *testing.T) {
	file := writeTemp(t, "strange.pcap", strangeCapture())
	report := func(args ...string) (r struct {
		Coverage []struct {
			Protocol                      string
			Records, Decoded              int
			Bytes                         int64
			DecodedBytes                  int64 `json:"decoded_bytes"`
			PacketsSeen, Packets, Layouts int
		}
		Unknown []struct {
			Message, Dir, What string
			Count              int
			Size               struct{ Least, Most int }
			Samples            []string
		}
		Leftover []struct{ Message string }
		Failures []struct {
			Path, Kind, Sample string
			Count, Packet      int
		}
		PassedOver int64 `json:"passed_over_bytes"`
	}) {
		t.Helper()
		out := good(t, append([]string{"unknown", "-T", "json"}, args...)...)
		if _, err := strictJSON(out); err != nil || strings.Count(out, "\n") != 1 {
			t.Fatalf("%v in %s", err, out)
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	once, twice := report(file), report(file, "-r", file)
	if len(once.Unknown) != 2 || once.Unknown[0].Count != 3 || twice.Unknown[0].Count != 6 || once.Unknown[0].Size.Most != 3 ||
		once.Unknown[0].What != "unknown_opcode" || len(once.Unknown[0].Samples) != 2 {
		t.Errorf("got %+v and %+v", once.Unknown, twice.Unknown)
	}
	if c := once.Coverage[0]; c.Records != 26 || c.Decoded != 13 || c.DecodedBytes >= c.Bytes || once.PassedOver != 0 {
		t.Errorf("got %+v, %d bytes passed over", c, once.PassedOver)
	}
	if len(once.Failures) != 4 || once.Failures[0].Path != "MOTD.text" || once.Failures[0].Count != 3 {
		t.Errorf("got %+v", once.Failures)
	}
	records := writeTemp(t, "records.ndjson", []byte(good(t, "decode", "-T", "json", "--raw", file)))
	// A masked rest has lost its length.
	if back := report(records); back.Coverage[0].Records != 26 || back.Coverage[0].Decoded != 13 || len(back.Leftover) != len(once.Leftover) {
		t.Errorf("read back: %+v, want %+v", back.Coverage[0], once.Coverage[0])
	}
}

// TestUnknownOfDamage reports what there is of a damaged file, and says that it is one.
func TestUnknownOfDamage(t *testing.T) {
	data := strangeCapture()
	file := writeTemp(t, "cut.pcap", data[:len(data)-3])
	r := opscope(t, "unknown", file)
	if r.code != exitInput || !strings.Contains(r.out, "unknown(0xFE)") || !strings.Contains(r.err, "truncated") {
		t.Errorf("exit code %d, %q, %q", r.code, r.out, r.err)
	}
	if r := opscope(t, "unknown", "--lenient", file); r.code != exitDone {
		t.Errorf("--lenient: exit code %d", r.code)
	}
	for _, args := range [][]string{{"unknown"}, {"unknown", "--samples", "0", file}, {"unknown", "-T", "csv", file}} {
		if r := opscope(t, args...); r.code != exitUsage || r.out != "" {
			t.Errorf("%v: exit code %d, %q", args, r.code, r.out)
		}
	}
	if out := good(t, "unknown", writeTemp(t, "whole.pcap", plainSession())); !strings.Contains(out, "unknown opcodes and bodies: none") {
		t.Errorf("of a session that is understood: %s", out)
	}
}
