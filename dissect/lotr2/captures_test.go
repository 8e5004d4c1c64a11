package lotr2_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"opscope/dissect"
	"opscope/dissect/capture"
	"opscope/dissect/protocols"
	"opscope/dissect/scene"
	"opscope/schema"
)

// captures returns the captures of stock clients beside the checkout, and skips the test
// where there are none.
func captures(t testing.TB) []string {
	root := filepath.Join("..", "..", "..", "shared", "captures", "lotr2")
	paths, _ := filepath.Glob(filepath.Join(root, "*.pcapng"))
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

// known are the options under which everything is looked for.
var known = dissect.Options{Protocols: protocols.All, Hold: dissect.DefaultHold}

// line is one line of a records file: a frame, as an independent decoder read it.
type line struct {
	Packet, Size, Cmd, Op, Len, Ck, Slot, Copy int

	Src, Tr, Name, From, To string
	CkOK                    bool `json:"ck_ok"`
}

func lines(t *testing.T, path string) (list []line) {
	t.Helper()
	f, err := os.Open(strings.TrimSuffix(path, filepath.Ext(path)) + ".records.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var l line
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		list = append(list, l)
	}
	return list
}

// want says the line as text says says a record.
func (l *line) want() string {
	head := fmt.Sprintf("packet %d %s %s size %d ", l.Packet, map[string]string{"host": "s2c", "joiner": "c2s"}[l.Src], l.Tr, l.Size)
	if l.Name != "" {
		return head + fmt.Sprintf("dplay %s %d", l.Name, l.Cmd)
	}
	from, _ := strconv.ParseUint(l.From, 0, 64)
	to, _ := strconv.ParseUint(l.To, 0, 64)
	return head + fmt.Sprintf("lotr2 %d from %d to %d length %d checksum %d %v slot %d copy %d", l.Op, from, to, l.Len, l.Ck, l.CkOK, l.Slot, l.Copy)
}

// says is what the lines of a records file say, of a record.
func says(r *dissect.Record) string {
	head := fmt.Sprintf("packet %d %s %s size %d ", r.Packets[len(r.Packets)-1], r.Direction, r.Transport, r.Size)
	if r.Protocol == "dplay" {
		return head + fmt.Sprintf("dplay %s %d", r.Message, r.Opcode)
	}
	number := func(name string) uint64 {
		v, _ := r.Head.Value(name)
		return v
	}
	return head + fmt.Sprintf("%s %d from %d to %d length %d checksum %d %v slot %d copy %d", r.Protocol, r.Opcode, number("from_id"), number("to_id"),
		r.Envelope.Length, number("checksum"), r.Err == nil, r.Envelope.Seq, number("copy"))
}

// TestForeignCaptures compares every record of the captures of stock clients with what an
// independent decoder read. Nothing is left over, and nothing is remarked on but copies.
func TestForeignCaptures(t *testing.T) {
	for _, path := range captures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			out := play(t, path, known)
			got, want := out.Frames(), lines(t, path)
			if len(got) != len(want) {
				t.Errorf("got %d records, want %d", len(got), len(want))
			}
			for i := range min(len(got), len(want)) {
				r, w := got[i], &want[i]
				if says(r) != w.want() {
					t.Fatalf("record %d: got\n%s\nwant\n%s", i, says(r), w.want())
				}
				if len(r.Rest) > 0 || r.Err != nil || r.Session != 1 {
					t.Errorf("%s: session %d, rest %x, %v", says(r), r.Session, r.Rest, r.Err)
				}
				checkCopy(t, r, w)
			}
			if s := &out.Result.Summary; s.UndecodedBytes != 0 || s.OtherFlows != 0 || len(out.Result.Sessions) != 1 {
				t.Errorf("got %d bytes undecoded, %d other flows, %d sessions", s.UndecodedBytes, s.OtherFlows, len(out.Result.Sessions))
			}
		})
	}
}

// checkCopy proves that a copy says whose it is, and that the first send counts three.
func checkCopy(t *testing.T, r *dissect.Record, w *line) {
	t.Helper()
	var notes []string
	for _, n := range r.Notes {
		notes = append(notes, n.Code)
	}
	codes := strings.Join(notes, " ")
	once := map[int]bool{0x0a: true, 0x0e: true, 0x23: true, 0x43: true, 0x54: true}
	copies := 0
	if w.Name == "" && w.Copy == 0 && !once[w.Op] {
		copies = 3
	}
	if r.Envelope.Copies != copies || (r.Envelope.First > 0) != (w.Copy > 0) || (codes == "resend_copy") != (w.Copy > 0) || codes != "" && w.Copy == 0 {
		t.Errorf("%s: %d copies, first in packet %d, notes %q", says(r), r.Envelope.Copies, r.Envelope.First, codes)
	}
}

// TestForeignCounts compares the counts per flow and direction with the truth files.
func TestForeignCounts(t *testing.T) {
	for _, path := range captures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var truth struct {
				Flows []struct {
					Transport  string
					Directions []struct {
						Src, Role string
						Stream    int64          `json:"stream_bytes"`
						Commands  map[string]int `json:"dplay_commands"`
						Opcodes   map[string]struct {
							C0 int `json:"copy_00"`
							C1 int `json:"copy_40"`
							C2 int `json:"copy_80"`
						} `json:"lotr2_opcodes"`
						Bad int `json:"bad_checksums"`
					}
				}
			}
			data, err := os.ReadFile(strings.TrimSuffix(path, filepath.Ext(path)) + ".truth.json")
			if err == nil {
				err = json.Unmarshal(data, &truth)
			}
			if err != nil {
				t.Fatal(err)
			}
			got, bytes := map[string]int{}, map[string]int64{}
			for _, r := range play(t, path, known).Frames() {
				key := r.Transport.String() + " " + r.Src.String()
				bytes[key] += int64(len(r.Raw))
				if r.Protocol == "dplay" {
					got[key+" "+r.Message]++
					continue
				}
				copy, _ := r.Head.Value("copy")
				got[fmt.Sprintf("%s 0x%02x copy %d", key, r.Opcode, copy)]++
			}
			want := map[string]int{}
			for _, f := range truth.Flows {
				for _, d := range f.Directions {
					key := f.Transport + " " + d.Src
					for name, n := range d.Commands {
						want[key+" "+name] = n
					}
					for op, n := range d.Opcodes {
						for k, n := range []int{n.C0, n.C1, n.C2} {
							if n > 0 {
								want[fmt.Sprintf("%s %s copy %d", key, op, k)] = n
							}
						}
					}
					if bytes[key] != d.Stream {
						t.Errorf("%s: got %d bytes in frames, want %d", key, bytes[key], d.Stream)
					}
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("got\n%v\nwant\n%v", got, want)
			}
		})
	}
}

// TestForeignLengths proves that each opcode has the one length that the captures show.
func TestForeignLengths(t *testing.T) {
	p, err := schema.Builtin("lotr2")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range captures(t) {
		for _, l := range lines(t, path) {
			if l.Name != "" {
				continue
			}
			k := p.Packet(uint64(l.Op), schema.AnySender, schema.TCP)
			if k == nil || k.Of(schema.AnySender)[0].Bytes() != l.Len {
				t.Fatalf("0x%02x: got %v, want a length of %d", l.Op, k, l.Len)
			}
		}
	}
}

// without is a capture of which some packets were missed.
type without struct {
	dissect.Source
	missed func(number int) bool
}

func (w *without) Next(p *dissect.Packet) error {
	for {
		if err := w.Source.Next(p); err != nil || !w.missed(p.Number) {
			return err
		}
	}
}

// incomplete plays a capture without some of its packets.
func incomplete(t *testing.T, path string, missed func(number int) bool) *scene.Output {
	t.Helper()
	src, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	out := &scene.Output{}
	if out.Result, err = dissect.NewPipeline(out, known).Run(context.Background(), &without{src, missed}); err != nil {
		t.Fatal(err)
	}
	return out
}

// expectAll proves that the frames of all packets that were not missed are there. Who is
// who may not be known.
func expectAll(t *testing.T, what, path string, out *scene.Output, missed func(number int) bool) {
	t.Helper()
	var got, want []string
	frames := out.Frames()
	slices.SortStableFunc(frames, func(a, b *dissect.Record) int { return a.Packets[0] - b.Packets[0] }) // a gap takes its time
	for _, r := range frames {
		if strings.HasSuffix(path, "lotr2.pcapng") && (r.Packets[0] == 883 || r.Packets[0] == 5271) {
			continue // TCP sends again what was missed
		}
		if r.Message == "PlayerMessage" || r.Err != nil {
			t.Errorf("%s: packet %v: %s %v", what, r.Packets, r.Message, r.Err)
			return
		}
		if r.Direction == dissect.UnknownDirection {
			r.Direction = map[string]dissect.Direction{"169.254.3.245": dissect.ClientToServer}[r.Src.Addr().String()]
			if r.Direction == dissect.UnknownDirection {
				r.Direction = dissect.ServerToClient
			}
		}
		got = append(got, says(r))
	}
	for _, l := range lines(t, path) {
		if !missed(l.Packet) {
			want = append(want, l.want())
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: got %d records, want %d", what, len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("%s: record %d: got\n%s\nwant\n%s", what, i, got[i], want[i])
			return
		}
	}
}

// A capture that starts anywhere has all frames from there on, though nothing names the
// game; only a last one or two may be too few to tell.
func TestStartingAnywhere(t *testing.T) {
	for _, path := range captures(t) {
		all := lines(t, path)
		step, last := 1, all[len(all)-8].Packet
		if last > 1000 {
			step = 613
		}
		for first := 2; first < last; first += step {
			missed := func(number int) bool { return number < first }
			expectAll(t, fmt.Sprintf("%s from packet %d", filepath.Base(path), first), path, incomplete(t, path, missed), missed)
		}
	}
}

// A capture that misses packets has the frames of all others: each fills a segment.
func TestMissingAnything(t *testing.T) {
	for _, path := range captures(t) {
		for _, every := range []int{7, 10, 33} {
			missed := func(number int) bool { return number > 25 && number%every == 0 }
			expectAll(t, fmt.Sprintf("%s without each %dth packet", filepath.Base(path), every), path, incomplete(t, path, missed), missed)
		}
	}
}
