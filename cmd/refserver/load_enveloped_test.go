package main_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"opscope/cmd/refserver/internal/load"
	"opscope/dissect"
	"opscope/dissect/capture"
)

// enveloped writes an enveloped load.
func enveloped(t *testing.T, bytes int64, lost float64) (name string, truth *load.Truth) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "load.pcapng"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	truth, err = load.Write(file, load.Options{Protocol: "wulfram", Enveloped: true, Bytes: bytes, Flows: 60, Seed: 5, Lost: lost})
	if err != nil {
		t.Fatal(err)
	}
	return file.Name(), truth
}

// TestLoadEnveloped reads an enveloped load: every record is found, also where some are
// missed.
func TestLoadEnveloped(t *testing.T) {
	for _, lost := range []float64{0, 0.003} {
		name, truth := enveloped(t, *loads*1000, lost)
		if truth.Reordered == 0 || truth.Repeated == 0 || (lost > 0) != (truth.Lost.Records > 0) {
			t.Fatalf("nothing happens in this load: %+v", truth)
		}
		checkLoad(t, name, truth)
	}
}

// TestLoadEnvelopes walks the datagrams of an enveloped load as somebody who knows nothing
// but the envelope: opcode, sequence, and the length of the record. They end where their
// last record does; and the packets are as full as they are to be.
func TestLoadEnvelopes(t *testing.T) {
	name, truth := enveloped(t, 4_000_000, 0)
	f, err := capture.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var d dissect.LinkDecoder
	var h dissect.Headers
	var p dissect.Packet
	datagrams, segments := 0, 0
	for f.Next(&p) == nil {
		if err := d.Decode(&h, &p); err != nil {
			t.Fatal(err)
		}
		if h.Content != dissect.UDPContent {
			segments += min(1, len(h.Payload))
			continue
		}
		datagrams++
		rest := h.Payload
		for len(rest) > 0 {
			const envelope = 5
			n := len(rest)
			if n >= envelope {
				n = int(binary.BigEndian.Uint16(rest[3:]))
			}
			if n < envelope || n > len(rest) {
				t.Fatalf("packet %d: no envelope in % x of % x", p.Number, rest, h.Payload)
			}
			rest = rest[n:]
		}
	}
	size, fill := float64(truth.Bytes)/float64(truth.Packets), float64(truth.Total)/float64(truth.Packets)
	part := float64(datagrams) / float64(datagrams+segments)
	t.Logf("%.0f bytes and %.2f records a packet, %.0f %% datagrams", size, fill, 100*part)
	if size < 330 || size > 500 || fill < 2.3 || fill > 3.5 || part < 0.45 || part > 0.65 {
		t.Errorf("%.0f bytes and %.2f records a packet, %.2f of them datagrams; want about 412, 2.9 and 0.55", size, fill, part)
	}
}

// TestLoadEnvelopedTshark has tshark count the frames and records of an enveloped load, by the
// yardstick dissector that knows sizes and envelopes, and nothing else.
func TestLoadEnvelopedTshark(t *testing.T) {
	const yardstick = "../../../shared/bench/game.lua"
	if _, err := os.Stat(yardstick); err != nil {
		t.Skip(err)
	}
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip(err)
	}
	name, truth := enveloped(t, 2_000_000, 0)
	out := opinion{t, tshark, name}.ask("-q", "-X", "lua_script:"+yardstick, "-o", "tcp.reassemble_out_of_order:TRUE",
		"-z", "io,stat,0,COUNT(gtcp.size)gtcp.size,COUNT(gudp.len)gudp.len")
	counts := regexp.MustCompile(`<>[^|]*\| +(\d+) \| +(\d+) \|`).FindStringSubmatch(out)
	if counts == nil {
		t.Fatalf("tshark counts nothing:\n%s", out)
	}
	frames, _ := strconv.Atoi(counts[1])
	records, _ := strconv.Atoi(counts[2])
	if frames == 0 || records == 0 || frames+records != truth.Total {
		t.Errorf("%d frames and %d records, want %d together", frames, records, truth.Total)
	}
}
