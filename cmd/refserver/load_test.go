package main_test

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"opscope/cmd/refserver/internal/load"
	"opscope/dissect"
	"opscope/dissect/capture"
	"opscope/dissect/protocols"
)

var loads = flag.Int64("load", 1500, "how many thousand bytes of load each protocol is read with")

var loadProtocols = []string{"wulfram", "netrek", "lotr2", "mmo"}

// TestLoad reads captures of many sessions, in which segments overtake each other and
// come twice: every record is found, and no other. Where some are missed, what was lost
// of the streams is told to the byte, and every record of which all bytes are there is
// found.
func TestLoad(t *testing.T) {
	for _, protocol := range loadProtocols {
		for name, lost := range map[string]float64{"all captured": 0, "some missed": 0.003} {
			t.Run(protocol+", "+name, func(t *testing.T) {
				o := load.Options{Protocol: protocol, Bytes: *loads * 1000, Flows: 60, Seed: 5, Lost: lost}
				file, err := os.Create(filepath.Join(t.TempDir(), "load.pcapng"))
				if err != nil {
					t.Fatal(err)
				}
				defer file.Close()
				truth, err := load.Write(file, o)
				if err != nil {
					t.Fatal(err)
				}
				if truth.Reordered == 0 || truth.Repeated == 0 || (lost > 0) != (truth.Lost.Records > 0) {
					t.Fatalf("nothing happens in this load: %+v", truth)
				}
				checkLoad(t, file.Name(), truth)
			})
		}
	}
}

// checkLoad compares what a capture holds with the truth.
func checkLoad(t *testing.T, name string, truth *load.Truth) {
	f, err := capture.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := counter{found: map[string]int{}}
	p := dissect.NewPipeline(&c, dissect.Options{Protocols: protocols.All, Hold: dissect.DefaultHold})
	result, err := p.Run(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(c.found, truth.Records) {
		for message := range truth.Records {
			if c.found[message] != truth.Records[message] {
				t.Errorf("%s: found %d, want %d", message, c.found[message], truth.Records[message])
			}
			delete(c.found, message)
		}
		t.Errorf("found beside what there is: %v", c.found)
	}
	if c.gaps != truth.Lost.Bytes {
		t.Errorf("gaps of %d bytes, want %d", c.gaps, truth.Lost.Bytes)
	}
	if got := result.Summary.Packets; got != truth.Packets {
		t.Errorf("%d packets, want %d", got, truth.Packets)
	}
}

// counter counts records that are whole.
type counter struct {
	found map[string]int
	gaps  int64
}

func (c *counter) Write(r *dissect.Record) error {
	switch {
	case r.Type == dissect.GapRecord:
		c.gaps += r.Bytes
	case r.Type == dissect.FrameRecord && len(r.Raw) == r.Size:
		c.found[r.Message]++
	}
	return nil
}

func (c *counter) Flush() error { return nil }

// TestLoadIsTheSameForItsSeed writes loads twice, and another seed's.
func TestLoadIsTheSameForItsSeed(t *testing.T) {
	for _, protocol := range loadProtocols {
		sums := map[string]uint64{}
		for _, seed := range []uint64{1, 1, 2} {
			h := sha256.New()
			truth, err := load.Write(h, load.Options{Protocol: protocol, Bytes: 200_000, Flows: 20, Seed: seed, Lost: 0.001})
			if err != nil {
				t.Fatal(err)
			}
			sum := fmt.Sprintf("%x %v", h.Sum(nil), *truth)
			if other, known := sums[sum]; known && other != seed {
				t.Errorf("%s: seeds %d and %d make the same", protocol, other, seed)
			}
			sums[sum] = seed
		}
		if len(sums) != 2 {
			t.Errorf("%s: two runs and another seed make %d captures, want 2", protocol, len(sums))
		}
	}
}

// TestLoadHasGoodChecksums lets opscope check every packet: none is wrong.
func TestLoadHasGoodChecksums(t *testing.T) {
	for _, protocol := range loadProtocols {
		var buf bytes.Buffer
		if _, err := load.Write(&buf, load.Options{Protocol: protocol, Bytes: 400_000, Flows: 20, Seed: 3}); err != nil {
			t.Fatal(err)
		}
		f, err := capture.OpenReader("load", &buf)
		if err != nil {
			t.Fatal(err)
		}
		result, err := dissect.NewPipeline(&counter{found: map[string]int{}}, dissect.Options{Protocols: protocols.All}).Run(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		if result.Summary.WrongSums > 0 {
			t.Errorf("%s: %d wrong checksums of %d packets", protocol, result.Summary.WrongSums, result.Summary.Packets)
		}
	}
}

// TestLoadIsOfTheSizeAskedFor asks for sizes, with one session's more or less.
func TestLoadIsOfTheSizeAskedFor(t *testing.T) {
	for _, size := range []int64{1_000_000, 3_000_000} {
		var n sizeOf
		if _, err := load.Write(&n, load.Options{Protocol: "wulfram", Bytes: size, Flows: 50, Seed: 1}); err != nil {
			t.Fatal(err)
		}
		if got := int64(n); got < size*9/10 || got > size+300_000 {
			t.Errorf("%d bytes, want about %d", got, size)
		}
	}
}

// sizeOf counts bytes.
type sizeOf int64

func (n *sizeOf) Write(b []byte) (int, error) {
	*n += sizeOf(len(b))
	return len(b), nil
}
