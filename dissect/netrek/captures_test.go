package netrek_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"opscope/dissect"
	"opscope/dissect/capture"
	"opscope/dissect/protocols"
	"opscope/dissect/scene"
)

// truth is what an independent decoder counted in a capture.
type truth struct {
	Flows []struct {
		Transport, Client, Server, Kind string
		Mid                             bool `json:"mid_stream"`
		LeadingS2C                      int  `json:"leading_fragment_s2c"`
		LeadingC2S                      int  `json:"leading_fragment_c2s"`
		C2S, S2C                        map[string]int
		Bytes                           map[string]int64
	}
	Malformed *struct {
		Client string
		Offset int64  `json:"fault_offset"`
		Stray  string `json:"stray_hex"`
	}
}

// captures returns the foreign captures, or skips.
func captures(t testing.TB) []string {
	root := filepath.Join("..", "..", "..", "shared", "captures", "netrek")
	paths, _ := filepath.Glob(filepath.Join(root, "*.pcap*"))
	if len(paths) == 0 {
		t.Skip("no captures in " + root)
	}
	return paths
}

func play(t testing.TB, path string, o dissect.Options) *scene.Output {
	t.Helper()
	src, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	out := &scene.Output{}
	if out.Result, err = dissect.NewPipeline(out, o).Run(context.Background(), src); err != nil {
		t.Fatal(err)
	}
	return out
}

// All protocols are offered a flow, in the order of the list.
var known = dissect.Options{Protocols: protocols.All, Hold: dissect.DefaultHold}

// stream names one direction of a flow.
type stream struct {
	transport, client, server, dir string
}

func streamOf(r *dissect.Record) stream {
	client, server := r.Src, r.Dst
	if r.Direction == dissect.ServerToClient {
		client, server = server, client
	}
	return stream{r.Transport.String(), client.String(), server.String(), r.Direction.String()}
}

// Every capture holds the packets that an independent decoder counted, in each
// direction of each flow, and not a byte is left over.
func TestForeignCaptures(t *testing.T) {
	for _, path := range captures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var want truth
			data, err := os.ReadFile(strings.TrimSuffix(path, filepath.Ext(path)) + ".truth.json")
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			want.check(t, play(t, path, known))
		})
	}
}

func (w *truth) check(t *testing.T, out *scene.Output) {
	t.Helper()
	counts := map[stream]map[string]int{}
	bytes := map[stream]int64{}
	for _, r := range out.Frames() {
		s := streamOf(r)
		if r.Message == "" { // bytes that begin no packet
			w.fault(t, r)
			continue
		}
		if r.Err != nil || len(r.Rest) > 0 {
			t.Errorf("packet %v: %s: %v, rest %x", r.Packets, r.Message, r.Err, r.Rest)
		}
		if counts[s] == nil {
			counts[s] = map[string]int{}
		}
		counts[s][r.Message]++
		bytes[s] += int64(r.Size)
	}
	skipped := int64(0)
	for _, f := range w.Flows {
		if f.Kind == "text" {
			continue
		}
		for dir, want := range map[string]map[string]int{"c2s": f.C2S, "s2c": f.S2C} {
			s := stream{f.Transport, f.Client, f.Server, dir}
			if diff := differ(counts[s], want); diff != "" {
				t.Errorf("%v: got, want: %s", s, diff)
			}
			lead := map[string]int{"c2s": f.LeadingC2S, "s2c": f.LeadingS2C}[dir]
			skipped += int64(lead)
			if total, ok := f.Bytes[dir]; ok && bytes[s]+int64(lead) != total {
				t.Errorf("%v: got %d bytes in packets and %d in front of them, want %d", s, bytes[s], lead, total)
			}
			delete(counts, s)
		}
	}
	for s := range counts {
		t.Errorf("nobody else found %v: %v", s, counts[s])
	}
	if w.Malformed != nil {
		skipped += int64(len(w.Malformed.Stray) / 2)
	}
	if got := out.Result.Summary.UndecodedBytes; got != skipped {
		t.Errorf("got %d bytes passed over, want %d", got, skipped)
	}
}

// fault checks bytes that begin no packet: only those that a capture's note tells.
func (w *truth) fault(t *testing.T, r *dissect.Record) {
	t.Helper()
	m := w.Malformed
	if m == nil || r.Src != netip.MustParseAddrPort(m.Client) || r.Offset != m.Offset || fmt.Sprintf("%x", r.Raw) != m.Stray {
		t.Errorf("packet %v: bytes that begin no packet at %d: %x: %v", r.Packets, r.Offset, r.Raw, r.Err)
	}
}

func differ(got, want map[string]int) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			lines = append(lines, fmt.Sprintf("%s %d, %d", name, got[name], want[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if want[name] == 0 {
			lines = append(lines, fmt.Sprintf("%s %d, 0", name, got[name]))
		}
	}
	return strings.Join(lines, "; ")
}
