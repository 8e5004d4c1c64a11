package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"opscope/dissect"
	"opscope/dissect/capture"
)

// saved writes the records of a capture with -w and returns the file.
func saved(t *testing.T, capture string, flags ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "out.pcapng")
	if r := opscope(t, slices.Concat([]string{"decode", "-w", name}, flags, []string{capture})...); r.code != exitDone {
		t.Fatalf("%v %s: code %d, %s", flags, capture, r.code, r.err)
	}
	return name
}

// packetsIn reads all packets of a file.
func packetsIn(t *testing.T, name string) (data []string, from []capture.Interface) {
	t.Helper()
	f, err := capture.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for {
		var p dissect.Packet
		if err := f.Next(&p); err != nil {
			return data, f.Interfaces()
		}
		data = append(data, p.Time.String()+string(p.Data))
	}
}

// numbered are the parts of NDJSON that are numbers of packets.
var numbered = regexp.MustCompile(`"packets":\[[0-9,]*\]|"(by|learned_in|packet|after_packet|before_packet|first)":[0-9]+|packets? [0-9]+( and [0-9]+)?`)

// TestSaveDecodesAgain: the file that -w writes has the same records, masked or not, in every
// shape of capture.
func TestSaveDecodesAgain(t *testing.T) {
	for _, name := range []string{
		"wulfram/lossy", "wulfram/fragments", "wulfram/ipv6", "wulfram/snaplen", "wulfram/tcp-trouble", "wulfram/cooked2", "wulfram/vlan",
		"netrek/udp", "mmo/nat", "mmo/refused", "mmo/split", "mmo/lossy", "lotr2/mid-session", "lotr2/split",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := "../../pcaps/" + name + ".pcapng"
			want := numbered.ReplaceAllString(good(t, "decode", "-T", "json", file), "")
			for _, flags := range [][]string{{"-q"}, {"-q", "--mask"}} {
				out := saved(t, file, flags...)
				if got := numbered.ReplaceAllString(good(t, "decode", "-T", "json", out), ""); got != want {
					t.Errorf("%v: %s", flags, firstDifference(got, want))
				}
				if got := good(t, "decode", "-q", out); strings.Contains(got, "wrong checksum") {
					t.Errorf("%v: %s", flags, got)
				}
			}
		})
	}
}

// hiddenIn returns the values that --show-secrets shows and the usual output masks.
func hiddenIn(t *testing.T, file string) (values []string) {
	t.Helper()
	masked := strings.Split(good(t, "decode", "-T", "json", file), "\n")
	for i, line := range strings.Split(good(t, "decode", "-T", "json", "--show-secrets", file), "\n") {
		var a, b struct{ Fields map[string]any }
		if json.Unmarshal([]byte(line), &a) != nil || json.Unmarshal([]byte(masked[i]), &b) != nil {
			continue
		}
		for k, v := range a.Fields {
			if text, ok := v.(string); ok && b.Fields[k] == "***" && len(text) > 3 {
				values = append(values, text)
			}
		}
	}
	return values
}

// TestSaveMasks: no packet and no comment of a masked file has a secret, in any spelling,
// also where it crosses segments or fragments; lengths stay.
func TestSaveMasks(t *testing.T) {
	for _, name := range []string{"wulfram/session", "wulfram/lossy", "netrek/tcp", "mmo/enter", "mmo/split", "mmo/lossy", "mmo/errors", "mmo/mid-session", "mmo/wall"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := "../../pcaps/" + name + ".pcapng"
			secrets := hiddenIn(t, file)
			if len(secrets) == 0 && name != "mmo/mid-session" {
				t.Fatal("it has no secrets")
			}
			out := saved(t, file, "-q", "--mask", "-V", "-x")
			all := readFile(t, out)
			for _, s := range secrets {
				if bytes.Contains(all, []byte(s)) || bytes.Contains(all, []byte(hex.EncodeToString([]byte(s)))) || bytes.Contains(all, []byte(s[:4])) && len(s) > 20 {
					t.Errorf("it holds %q", s)
				}
			}
			before, from := packetsIn(t, file)
			after, to := packetsIn(t, out)
			if !slices.Equal(from, to) {
				t.Errorf("interfaces %+v, want %+v", to, from)
			}
			i := 0
			for _, p := range before {
				if i < len(after) && len(p) == len(after[i]) && p[:40] == after[i][:40] {
					i++
				}
			}
			if i != len(after) {
				t.Errorf("packet %d of %d is none of the source's, with its time and length", i+1, len(after))
			}
		})
	}
}

// TestSaveSelects: what is shown decides, and each packet is there once, in the order of the
// file.
func TestSaveSelects(t *testing.T) {
	// Packets 22 to 24 of lossy.pcapng have the handshake's records; -c counts records.
	const file = "../../pcaps/wulfram/lossy.pcapng"
	var want []int
	for line := range strings.Lines(good(t, "decode", "-T", "json", "-c", "30", file)) {
		var r struct{ Packets []int }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		want = append(want, r.Packets...)
	}
	slices.Sort(want)
	want = slices.Compact(want)
	all, _ := packetsIn(t, file)
	for _, flags := range [][]string{{"-q", "-c", "30"}, {"-q", "-c", "30", "--hold", "0"}} {
		got, _ := packetsIn(t, saved(t, file, flags...))
		if len(got) != len(want) {
			t.Fatalf("%v: %d packets, want %d", flags, len(got), len(want))
		}
		for i, n := range want {
			if got[i] != all[n-1] {
				t.Errorf("%v: packet %d is not number %d of the source", flags, i+1, n)
			}
		}
	}
}

// TestSaveOfEarlyStop: a secret behind the last record that is shown, in the same packet, is
// masked, too.
func TestSaveOfEarlyStop(t *testing.T) {
	const file = "../../pcaps/mmo/refused.pcapng"
	all := readFile(t, saved(t, file, "-q", "--mask", "-c", "1"))
	for _, s := range hiddenIn(t, file) {
		if bytes.Contains(all, []byte(s)) {
			t.Errorf("it holds %q", s)
		}
	}
}

// TestSaveToPipes: standard input can be read twice, standard output holds the capture alone,
// and several files follow each other.
func TestSaveToPipes(t *testing.T) {
	data := readFile(t, sessionCapture)
	want := readFile(t, saved(t, sessionCapture, "-q"))
	got := opscopeReading(t, bytes.NewReader(data), "decode", "--hold", "2s", "-w", "-", "-")
	if got.code != 0 || stripped(got.out) != stripped(string(want)) {
		t.Errorf("code %d, %d bytes, want %d", got.code, len(got.out), len(want))
	}
	one, _ := packetsIn(t, sessionCapture)
	two, from := packetsIn(t, saved(t, sessionCapture, "-q", "../../pcaps/wulfram/ipv6.pcapng"))
	v6, _ := packetsIn(t, "../../pcaps/wulfram/ipv6.pcapng")
	if len(two) != len(one)+len(v6) || len(from) != 2 || from[0].Lacks == from[1].Lacks {
		t.Errorf("%d packets of %+v, want %d and %d", len(two), from, len(one), len(v6))
	}
}

// stripped leaves out the name of the source, which comments have.
func stripped(text string) string { return strings.ReplaceAll(text, "session.pcapng", "-") }

// TestSaveRefuses: what cannot be meant.
func TestSaveRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.pcapng")
	if err := os.WriteFile(file, readFile(t, sessionCapture), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"-w", file, file}, exitUsage, "that file is read"},
		{[]string{"--mask", file}, exitUsage, "-w"},
		{[]string{"-w", file + "x", "--mask", "--show-secrets", file}, exitUsage, "one of them"},
		{[]string{"-w", "/no/such/dir/x", file}, exitInput, "-w: "},
	} {
		got := opscope(t, append([]string{"decode"}, c.args...)...)
		if got.code != c.code || !strings.Contains(got.err, c.says) {
			t.Errorf("%v: code %d, %q", c.args, got.code, got.err)
		}
	}
	if got := opscope(t, "decode", "-q", "-w", file+"y", file); strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, "as they were") {
		t.Errorf("on standard error: %q", got.err)
	}
}

// TestSaveTshark: tshark shows the comments, and finds every checksum right.
func TestSaveTshark(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("no tshark")
	}
	out := saved(t, sessionCapture, "-q", "--mask")
	got, err := exec.Command(tshark, "-r", out, "-T", "fields", "-e", "frame.comment").Output()
	if err != nil || !strings.Contains(string(got), "D_HANDSHAKE 0x03") || strings.Count(string(got), "\n") != 71 {
		t.Errorf("%v: %s", err, got)
	}
	got, err = exec.Command(tshark, "-r", out, "-o", "udp.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-Y",
		"udp.checksum.status == 0 or tcp.checksum.status == 0").Output()
	if err != nil || len(got) > 0 {
		t.Errorf("%v: wrong checksums: %s", err, got)
	}
}
