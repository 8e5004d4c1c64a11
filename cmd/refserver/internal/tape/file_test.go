package tape

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/google/gopacket/pcapgo"
)

var start = time.Date(2026, 11, 29, 20, 15, 2, 104512345, time.UTC)

func TestFileReadsBack(t *testing.T) {
	for name, o := range map[string]FileOptions{
		"nanoseconds":  {Interface: "lan0", Comment: "scenario login, seed 1"},
		"microseconds": {Interface: "lan0", Comment: "scenario login, seed 1", Microseconds: true},
		"cooked":       {Interface: "any", Link: Cooked, Comment: "x", Snap: 96},
	} {
		t.Run(name, func(t *testing.T) {
			var buf bytes.Buffer
			shots := writeShots(t, &buf, o)
			r, err := pcapgo.NewNgReader(&buf, pcapgo.NgReaderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := r.SectionInfo().Comment; got != o.Comment {
				t.Errorf("comment %q, want %q", got, o.Comment)
			}
			if got := r.SectionInfo().Application; got != application {
				t.Errorf("application %q", got)
			}
			for i, want := range shots {
				data, info, err := r.ReadPacketData()
				if err != nil {
					t.Fatal(err)
				}
				at := want.Time
				if o.Microseconds {
					at = at.Truncate(time.Microsecond)
				}
				if !bytes.Equal(data, want.Data) || info.Length != want.Length || !info.Timestamp.Equal(at) {
					t.Errorf("packet %d: %d of %d bytes at %v, want %d of %d at %v",
						i, len(data), info.Length, info.Timestamp, len(want.Data), want.Length, at)
				}
			}
			if _, _, err := r.ReadPacketData(); err != io.EOF {
				t.Errorf("at the end: %v", err)
			}
			in, err := r.Interface(0)
			if err != nil || in.Name != o.Interface || in.SnapLength != uint32(o.Snap) {
				t.Errorf("interface %+v, %v", in, err)
			}
		})
	}
}

// writeShots writes packets of various sizes, one of them with a comment.
func writeShots(t *testing.T, w io.Writer, o FileOptions) []Shot {
	t.Helper()
	f, err := NewFile(w, o)
	if err != nil {
		t.Fatal(err)
	}
	var shots []Shot
	for i := range 9 {
		s := Shot{Time: start.Add(time.Duration(i) * 1001), Data: pattern(60 + i), Length: 60 + 2*i}
		if i == 4 {
			s.Comment = "lost behind the capture"
		}
		shots = append(shots, s)
		if err := f.Write(&s); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	return shots
}

// gopacket knows no link type above 255, so this one is read by hand.
func TestFileOfCooked2(t *testing.T) {
	var buf bytes.Buffer
	shots := writeShots(t, &buf, FileOptions{Link: Cooked2, Interface: "any"})
	var kinds []uint32
	var packets [][]byte
	for b := buf.Bytes(); len(b) > 0; {
		kind, size := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		if size%4 != 0 || binary.LittleEndian.Uint32(b[size-4:]) != size {
			t.Fatalf("block %#x of %d bytes is not closed", kind, size)
		}
		kinds = append(kinds, kind)
		switch kind {
		case 1:
			if link := binary.LittleEndian.Uint16(b[8:]); link != 276 {
				t.Errorf("link type %d", link)
			}
		case 6:
			packets = append(packets, b[28:28+binary.LittleEndian.Uint32(b[20:])])
		}
		b = b[size:]
	}
	if len(kinds) != len(shots)+2 || kinds[0] != 0x0a0d0d0a || kinds[1] != 1 {
		t.Errorf("blocks %x", kinds)
	}
	for i, p := range packets {
		if !bytes.Equal(p, shots[i].Data) {
			t.Errorf("packet %d: % x", i, p)
		}
	}
}

func TestCameraFaults(t *testing.T) {
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	for name, c := range map[string]struct {
		faults   Faults
		least    int // packets of 200
		most     int
		captured int // bytes of each
	}{
		"none":          {Faults{}, 200, 200, 100},
		"snap length":   {Faults{Snap: 64}, 200, 200, 64},
		"late start":    {Faults{Start: start.Add(50 * time.Second)}, 150, 150, 100},
		"early end":     {Faults{End: start.Add(49 * time.Second)}, 50, 50, 100},
		"one direction": {Faults{Only: b}, 100, 100, 100},
		"missed":        {Faults{Miss: 0.2}, 140, 180, 100},
	} {
		t.Run(name, func(t *testing.T) {
			var buf bytes.Buffer
			f, err := NewFile(&buf, FileOptions{})
			if err != nil {
				t.Fatal(err)
			}
			cam := NewCamera(f, c.faults, rand.New(rand.NewPCG(1, 2)))
			last := 0
			for i := range 200 {
				src := a
				if i%2 == 1 {
					src = b
				}
				n, captured, err := cam.Take(start.Add(time.Duration(i)*time.Second), src, pattern(100), "")
				switch {
				case err != nil:
					t.Fatal(err)
				case n == 0:
				case n != last+1 || captured != c.captured:
					t.Fatalf("number %d after %d, %d bytes", n, last, captured)
				default:
					last = n
				}
			}
			if last < c.least || last > c.most {
				t.Errorf("%d packets captured, want %d to %d", last, c.least, c.most)
			}
		})
	}
}
