package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"opscope/dissect"
	"opscope/dissect/capture"
)

// passing is what only some link layers tell.
var passing = regexp.MustCompile(`"(passed":"[a-z ]+"|interface":[0-9]+),`)

// TestEncapsulations: whatever is around the packets of a capture, it has the same records,
// also once its secrets have been masked, which leaves all checksums right.
func TestEncapsulations(t *testing.T) {
	for _, name := range []string{"wulfram/session", "wulfram/ipv6", "mmo/enter"} {
		file := "../../pcaps/" + name + ".pcapng"
		want := good(t, "decode", "-T", "json", file)
		secrets := hiddenIn(t, file)
		for kind, c := range encapsulations {
			t.Run(name+" in "+kind, func(t *testing.T) {
				t.Parallel()
				records := func(file string) string {
					return passing.ReplaceAllString(good(t, "decode", "-T", "json", file), "")
				}
				whole := surrounded(t, file, dissect.LinkType(c.link), c.around)
				if got := records(whole); got != want {
					t.Fatal(firstDifference(got, want))
				}
				masked := saved(t, whole, "-q", "--mask")
				got, want := numbered.ReplaceAllString(records(masked), ""), numbered.ReplaceAllString(want, "")
				if got != want {
					t.Errorf("masked: %s", firstDifference(got, want))
				}
				all := readFile(t, masked)
				for _, s := range secrets {
					if bytes.Contains(all, []byte(s)) {
						t.Errorf("it holds %q", s)
					}
				}
				if summary := good(t, "decode", "-q", masked); strings.Contains(summary, "wrong checksum") {
					t.Error(summary)
				}
				packets, _ := packetsIn(t, masked)
				for i, p := range packets {
					_, ip, _ := strings.Cut(p, macs+"\x08\x00")
					if strings.HasPrefix(kind, "Geneve") && withSums(zero(zero(ip, 10), 20+6)) != ip {
						t.Errorf("packet %d: a wrong checksum outside\n% x", i+1, ip)
					}
				}
			})
		}
	}
}

// surrounded writes a capture of Ethernet again, with something else around its IP packets.
func surrounded(t *testing.T, file string, link dissect.LinkType, around func(ip string) string) string {
	t.Helper()
	in, err := capture.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	name := filepath.Join(t.TempDir(), "surrounded.pcapng")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out, err := capture.NewWriter(f, "test")
	if err != nil {
		t.Fatal(err)
	}
	var p dissect.Packet
	for n := 0; in.Next(&p) == nil; n++ {
		if n == 0 {
			i := in.Interfaces()[0]
			i.Link = link
			if err := out.Interface(i, ""); err != nil {
				t.Fatal(err)
			}
		}
		ip := string(p.Data[14:])
		length := binary.BigEndian.Uint16(p.Data[16:])
		if ip[0]>>4 == 6 {
			length = 40 + binary.BigEndian.Uint16(p.Data[18:])
		}
		p.Data = []byte(around(ip[:length])) // without padding
		p.Length = len(p.Data)
		if err := out.Packet(&p); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	return name
}
