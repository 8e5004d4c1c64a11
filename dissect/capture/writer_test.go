package capture

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket/pcapgo"

	"opscope/dissect"
)

// TestWriter: another library reads what we write.
func TestWriter(t *testing.T) {
	var file bytes.Buffer
	w, err := NewWriter(&file, "test 1.0")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		w.Interface(Interface{Name: "eth0", Link: 1, SnapLen: 96}, "udp port 2627"),
		w.Interface(Interface{Name: "lo", Link: 1, SnapLen: 262144}, ""),
		w.Packet(&dissect.Packet{Data: []byte("abcde"), Length: 70, Interface: 1, Time: time.Unix(7, 8)}, "D_ACK record VIEWPOINT_INFO 7"),
		w.Packet(&dissect.Packet{Data: []byte("abcd"), Length: 4, Interface: 0, Time: time.Unix(1<<33, 123456789)}, ""),
		w.Statistics(0, Counters{Received: 5, KernelDropped: 2}, time.Unix(9, 0)),
		w.Flush(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if int64(file.Len()) != w.Size() {
		t.Errorf("size %d, wrote %d", w.Size(), file.Len())
	}
	raw := append([]byte(nil), file.Bytes()...)
	r, err := pcapgo.NewNgReader(&file, pcapgo.NgReaderOptions{WantMixedLinkType: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.SectionInfo().Application; got != "test 1.0" {
		t.Errorf("application %q", got)
	}
	data, info, err := r.ReadPacketData()
	if err != nil || string(data) != "abcde" || info.Length != 70 || info.InterfaceIndex != 1 || !info.Timestamp.Equal(time.Unix(7, 8)) {
		t.Errorf("got %q %+v %v", data, info, err)
	}
	data, info, err = r.ReadPacketData()
	if err != nil || string(data) != "abcd" || info.InterfaceIndex != 0 || !info.Timestamp.Equal(time.Unix(1<<33, 123456789)) {
		t.Errorf("got %q %+v %v", data, info, err)
	}
	if _, _, err = r.ReadPacketData(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v at the end", err)
	}
	i, err := r.Interface(0)
	if err != nil || i.Name != "eth0" || i.SnapLength != 96 || i.Filter != "udp port 2627" || i.Statistics.PacketsReceived != 7 || i.Statistics.PacketsDropped != 2 {
		t.Errorf("got %+v %v", i, err)
	}
	if !bytes.Contains(raw, []byte("\x01\x00\x1d\x00D_ACK record VIEWPOINT_INFO 7\x00\x00\x00\x00\x00\x00\x00")) {
		t.Errorf("no comment in %x", raw)
	}
}

// TestRecording: files follow each other as asked, the oldest go, and each can be read by
// itself with all of its packets.
func TestRecording(t *testing.T) {
	start := time.Date(2026, 11, 30, 20, 15, 2, 0, time.UTC)
	for _, c := range []struct {
		name           string
		rotation, stop Rotation
		want           []int // packets in each file that is left
	}{
		{"one file", Rotation{}, Rotation{}, []int{10}},
		{"by packets", Rotation{Packets: 4}, Rotation{}, []int{4, 4, 2}},
		{"by time", Rotation{Time: 3 * time.Second}, Rotation{}, []int{3, 3, 3, 1}},
		{"by size", Rotation{Bytes: 400}, Rotation{}, []int{3, 3, 3, 1}}, // 28+16+28 before, 132 a packet: 72+3*132 = 468
		{"a ring", Rotation{Packets: 2, Files: 2}, Rotation{}, []int{2, 2}},
		{"a number of files", Rotation{Packets: 2}, Rotation{Files: 3}, []int{2, 2, 2}},
		{"a size", Rotation{}, Rotation{Bytes: 400}, []int{3}},
		{"a number of packets", Rotation{}, Rotation{Packets: 5}, []int{5}},
		{"a number of packets in several files", Rotation{Packets: 4}, Rotation{Packets: 6}, []int{4, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			r, err := NewRecording(filepath.Join(dir, "game.pcapng"), nil, "test", c.rotation, c.stop)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Begin([]Interface{{Name: "lo", Link: 1}}, []string{""}, start); err != nil {
				t.Fatal(err)
			}
			none := func(int) Counters { return Counters{} }
			for n := range 10 {
				p := dissect.Packet{Data: make([]byte, 100), Length: 100, Time: start.Add(time.Duration(n) * time.Second)}
				if err := r.Write(&p, none); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.Close(none); err != nil {
				t.Fatal(err)
			}
			names, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			for _, name := range names {
				f, err := Open(name)
				if err != nil {
					t.Fatal(err)
				}
				var p dissect.Packet
				n := 0
				for f.Next(&p) == nil {
					n++
				}
				f.Close()
				got = append(got, n)
			}
			if len(got) != len(c.want) {
				t.Fatalf("got %v in %v, want %v", got, names, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Fatalf("got %v in %v, want %v", got, names, c.want)
				}
			}
		})
	}
}

// TestRecordingCannot: a file that cannot be written is an error that says so.
func TestRecordingCannot(t *testing.T) {
	r, err := NewRecording(filepath.Join(t.TempDir(), "no", "such", "game.pcapng"), nil, "test", Rotation{}, Rotation{})
	if err != nil {
		t.Fatal(err)
	}
	err = r.Begin([]Interface{{Name: "lo", Link: 1}}, []string{""}, time.Now())
	if !errors.Is(err, ErrRecording) || !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "-w: ") {
		t.Errorf("got %v", err)
	}
	if _, err := NewRecording("-", io.Discard, "test", Rotation{Packets: 1}, Rotation{}); err == nil {
		t.Error("standard output rotates")
	}
}
