package dissect_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"opscope/dissect"
	"opscope/dissect/capture"
)

// Every packet in the captures of others decodes; those that hold fragments hold
// as many as an independent decoder counted.
func TestRealPackets(t *testing.T) {
	root := filepath.Join("..", "..", "shared", "captures")
	paths, _ := filepath.Glob(filepath.Join(root, "*", "*.pcap*"))
	if len(paths) == 0 {
		t.Skip("no captures in " + root)
	}
	for _, path := range paths {
		var truth struct {
			Fragments int `json:"fragment_packets"`
		}
		if b, err := os.ReadFile(strings.TrimSuffix(path, filepath.Ext(path)) + ".truth.json"); err == nil {
			if err := json.Unmarshal(b, &truth); err != nil {
				t.Fatal(err)
			}
		}
		count := decodeAll(t, path)
		if count[dissect.TCPContent]+count[dissect.UDPContent] == 0 || count[dissect.FragmentContent] != truth.Fragments {
			t.Errorf("%s: got %v, want %d fragments", path, count, truth.Fragments)
		}
	}
}

// decodeAll counts what the packets of a capture hold.
func decodeAll(t *testing.T, path string) map[dissect.Content]int {
	t.Helper()
	f, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	count := map[dissect.Content]int{}
	var d dissect.LinkDecoder
	var h dissect.Headers
	var p dissect.Packet
	for {
		err := f.Next(&p)
		if err == io.EOF {
			return count
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Decode(&h, &p); err != nil {
			t.Errorf("%s: packet %d: %v", path, p.Number, err)
		}
		if len(h.Payload) != h.PayloadLength {
			t.Errorf("%s: packet %d: got %d of %d bytes", path, p.Number, len(h.Payload), h.PayloadLength)
		}
		count[h.Content]++
	}
}
