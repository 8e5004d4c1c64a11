package capture

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"opscope/dissect"
	"opscope/schema/wire"
)

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	z.Close()
	return out.Bytes()
}

func zstded(b []byte) []byte {
	z, _ := zstd.NewWriter(nil)
	return z.EncodeAll(b, nil)
}

// samples are small intact files of every kind, with where each packet ends.
func samples() map[string][]byte {
	pcap := plain.build("first", "", "the third packet")
	ng := join(
		big.section(), big.iface(1, 0, big.option(optName, []byte("eth0"))),
		big.packet(0, 1, 5, "first"), big.block(77, []byte("unknown")), big.simple(4, "abcd"),
		little.section(), little.iface(1, 0), little.old(0, 1, "old"),
	)
	return map[string][]byte{
		"pcap":       pcap,
		"pcapng":     ng,
		"pcap.gz":    gzipped(pcap),
		"pcapng.gz":  gzipped(ng),
		"pcap.zst":   zstded(pcap),
		"pcapng.zst": zstded(ng),
	}
}

func TestIntactSamples(t *testing.T) {
	for name, b := range samples() {
		for how, r := range map[string]io.Reader{
			"in one piece":        bytes.NewReader(b),
			"byte by byte":        iotest.OneByteReader(bytes.NewReader(b)),
			"with data and error": iotest.DataErrReader(bytes.NewReader(b)),
		} {
			if all, _, err := readAll(r); err != nil || len(all) != 3 {
				t.Errorf("%s %s: got %d packets, %v", name, how, len(all), err)
			}
		}
	}
}

// B67: a file that is cut gives what is whole, then says so, wherever the cut is.
// A cut between packets cannot be seen, but in a compressed file.
func TestEveryTruncation(t *testing.T) {
	for name, b := range samples() {
		compressed := strings.Contains(name, ".")
		before := 0
		for n := 1; n < len(b); n++ {
			all, _, err := readAll(bytes.NewReader(b[:n]))
			if len(all) < before || len(all) > 3 {
				t.Fatalf("%s cut at %d: got %d packets, %d before", name, n, len(all), before)
			}
			before = len(all)
			var e *wire.Error
			var foreign *ForeignError
			switch {
			case errors.As(err, &e) && e.Kind == wire.Truncated:
				if !compressed && (e.Offset > n || e.Want == "") {
					t.Errorf("%s cut at %d: got %v", name, n, err)
				}
			case errors.As(err, &foreign) && n < 4: // too little to tell
			case err == nil && !compressed:
			default:
				t.Errorf("%s cut at %d: got %d packets, then %v", name, n, len(all), err)
			}
		}
	}
}

// B67: the four places of a cut in a pcap file.
func TestTruncationNamesThePlace(t *testing.T) {
	whole := plain.build("first", "second")
	second := pcapHeader + packetHeader + len("first")
	for name, c := range map[string]struct {
		cut    int
		offset int
		want   string
	}{
		"inside the file's header": {20, 0, "test: pcap/header at byte 0: want 24 bytes, 20 bytes left (truncated)"},
		"inside a packet's header": {second + 3, second, "test: pcap/packet 2.header at byte 45: want 16 bytes, 3 bytes left (truncated)"},
		"right after the header":   {second + 16, second + 16, "test: pcap/packet 2.data at byte 61: want 6 bytes, 0 bytes left (truncated)"},
		"inside the data":          {second + 17, second + 16, "test: pcap/packet 2.data at byte 61: want 6 bytes, 1 byte left (truncated)"},
	} {
		t.Run(name, func(t *testing.T) {
			all, _, err := readAll(bytes.NewReader(whole[:c.cut]))
			wantError(t, err, wire.Truncated, c.offset)
			if err.Error() != c.want {
				t.Errorf("got  %v\nwant %v", err, c.want)
			}
			if c.cut > second && len(all) != 1 {
				t.Errorf("got %d packets", len(all))
			}
		})
	}
}

// B67: the cut of a compressed stream is told with an offset in what it holds.
func TestTruncatedCompression(t *testing.T) {
	var data []string
	for i := range 2000 {
		data = append(data, strings.Repeat(string(rune('a'+i%26)), 100+i%700))
	}
	whole := plain.build(data...)
	for name, b := range map[string][]byte{"gzip": gzipped(whole), "zstd": zstded(whole)} {
		all, f, err := readAll(bytes.NewReader(b[:len(b)-5]))
		var e *wire.Error
		if !errors.As(err, &e) || e.Kind != wire.Truncated || int64(e.Offset) < f.Offset() {
			t.Errorf("%s: got %d packets, then %v", name, len(all), err)
		}
		if name == "gzip" && len(all) < 1500 {
			t.Errorf("%s: got %d packets only", name, len(all))
		}
	}
}

// A compressed file cut before it tells what it holds is told from a plain one.
func TestCompressionCutAtItsStart(t *testing.T) {
	for _, c := range []struct {
		name string
		cut  []byte
		want string
	}{
		{"plain", []byte("\x00"), "test: capture/magic at byte 0: want 4 bytes, 1 byte left (truncated)"},
		{"a header of gzip", gzipped([]byte("text"))[:5], "test: gzip/header at byte 0: want a whole header, got the end of the file (truncated)"},
		{"gzip", gzipped([]byte("text"))[:10], "test: gzip/content at byte 0: want 4 bytes, 0 bytes left (truncated)"},
		{"a header of zstd", zstded([]byte("text"))[:5], "test: zstd/content at byte 0: want 4 bytes, 0 bytes left (truncated)"},
		{"zstd", zstded([]byte("text"))[:8], "test: zstd/content at byte 0: want 4 bytes, 0 bytes left (truncated)"},
	} {
		_, err := OpenReader("test", bytes.NewReader(c.cut))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got  %v\nwant %s", c.name, err, c.want)
		}
	}
}

// B76: a read error comes out once the whole packets are out, with its cause, and
// comes again.
func TestReadError(t *testing.T) {
	cause := errors.New("device not configured")
	whole := plain.build("first", "second")
	for name, b := range map[string][]byte{
		"between packets": whole,
		"inside a packet": append(whole[:len(whole):len(whole)], 1, 2, 3),
	} {
		t.Run(name, func(t *testing.T) {
			f, err := OpenReader("test", io.MultiReader(bytes.NewReader(b), iotest.ErrReader(cause)))
			if err != nil {
				t.Fatal(err)
			}
			var p dissect.Packet
			for range 2 {
				if err := f.Next(&p); err != nil {
					t.Fatal(err)
				}
			}
			for range 3 {
				if err := f.Next(&p); !errors.Is(err, cause) {
					t.Fatalf("got %v", err)
				}
			}
		})
	}
	if _, err := OpenReader("test", iotest.ErrReader(cause)); !errors.Is(err, cause) {
		t.Errorf("at the start: got %v", err)
	}
	if _, err := OpenReader("test", io.MultiReader(strings.NewReader("ab"), iotest.ErrReader(cause))); !errors.Is(err, cause) {
		t.Errorf("after two bytes: got %v", err)
	}
}

// idle is a reader that never has anything.
type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

func TestReaderWithoutProgress(t *testing.T) {
	if _, err := OpenReader("test", idle{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("got %v", err)
	}
}

// A packet that is there is delivered, though the next is not.
func TestLivePipe(t *testing.T) {
	for name, c := range map[string]struct{ header, packet []byte }{
		"pcap":   {plain.build(), plain.build("data")[pcapHeader:]},
		"pcapng": {join(little.section(), little.iface(1, 0)), little.packet(0, 1, 4, "data")},
	} {
		t.Run(name, func(t *testing.T) {
			r, w := io.Pipe()
			got := make(chan string)
			go func() {
				f, err := OpenReader("pipe", r)
				for err == nil {
					var p dissect.Packet
					if err = f.Next(&p); err == nil {
						got <- string(p.Data)
					}
				}
				got <- err.Error()
			}()
			w.Write(c.header)
			for range 3 {
				w.Write(c.packet)
				if data := <-got; data != "data" { // if the packet is held back, nothing comes, ever
					t.Fatalf("got %q", data)
				}
			}
			w.Close()
			if end := <-got; end != "EOF" {
				t.Errorf("got %q at the end", end)
			}
		})
	}
}

// B74: the content decides, and what is foreign is named.
func TestForeignFiles(t *testing.T) {
	for content, want := range map[string]string{
		"":                                  "the file is empty",
		"hello, world\n":                    "text",
		"Gr\xc3\xbc\xc3\x9fe":               "text",
		" \n\t\n":                           "text",
		"[1, 2]":                            "a JSON array",
		"<html>":                            "XML or HTML",
		"<?xml version":                     "XML",
		"\x7fELF\x02\x01":                   "an ELF program",
		"MZ\x90\x00":                        "a Windows program",
		"PK\x03\x04\x14\x00":                "a zip archive",
		"\x89PNG\r\n\x1a\n":                 "a PNG image",
		"%PDF-1.7":                          "a PDF document",
		"snoop\x00\x00\x00\x00\x00\x00\x02": "a Solaris snoop capture",
		"\x04\x22\x4d\x18\x64":              "an lz4 file",
		"\xfd7zXZ\x00\x00":                  "an xz file",
		"BZh91AY":                           "a bzip2 file",
		"#!/bin/sh\n":                       "a script",
		"\x00\x01\x02\x03\x04":              "unknown binary data beginning 00 01 02 03 04",
		string(gzipped(nil)):                "the file is empty",
		string(gzipped([]byte("text"))):     "text",
		string(gzipped(gzipped(nil))):       "a file compressed twice",
		string(zstded(gzipped(nil))):        "a file compressed twice",
	} {
		_, err := OpenReader("test", strings.NewReader(content))
		if err == nil || !strings.HasPrefix(err.Error(), "test: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", content, err, want)
		}
	}
}

// B74: the name says nothing.
func TestOpenIgnoresTheName(t *testing.T) {
	for kind, b := range samples() {
		path := filepath.Join(t.TempDir(), "capture.txt")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if want, _, _ := strings.Cut(kind, "."); f.Format().String() != want {
			t.Errorf("%s: got %s", kind, f.Format())
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "absent.pcap")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestNDJSONIsHandedOnWhole(t *testing.T) {
	text := "\n  {\"type\":\"record\"}\n" + strings.Repeat("{}\n", 500_000)
	for name, b := range map[string][]byte{"plain": []byte(text), "gzip": gzipped([]byte(text)), "zstd": zstded([]byte(text))} {
		f, err := OpenReader("test", bytes.NewReader(b))
		if err != nil || f.Format() != NDJSON {
			t.Fatalf("%s: got %v, %v", name, f, err)
		}
		if got, err := io.ReadAll(f.Text()); err != nil || string(got) != text {
			t.Errorf("%s: got %d bytes, %v, want %d", name, len(got), err, len(text))
		}
		if err := f.Next(&dissect.Packet{}); err == nil {
			t.Errorf("%s: got a packet", name)
		}
	}
	if f, err := OpenReader("test", strings.NewReader("{")); err != nil || f.Format() != NDJSON {
		t.Errorf("a lone brace: got %v, %v", f, err)
	}
}

// manyPackets returns a file of each format with n packets of 400 bytes.
func manyPackets(n int) map[string][]byte {
	data := strings.Repeat("x", 400)
	pcap := plain.build()
	one := plain.build(data)[pcapHeader:]
	ng := join(little.section(), little.iface(1, 0))
	block := little.packet(0, 1, 400, data)
	for range n {
		pcap = append(pcap, one...)
		ng = append(ng, block...)
	}
	return map[string][]byte{"pcap": pcap, "pcapng": ng}
}

func TestNextDoesNotAllocate(t *testing.T) {
	const n = 5000
	for name, b := range manyPackets(n + 10) {
		f, err := OpenReader("test", bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		var p dissect.Packet
		if a := testing.AllocsPerRun(n, func() {
			if err := f.Next(&p); err != nil {
				t.Fatal(err)
			}
		}); a != 0 {
			t.Errorf("%s: got %v allocations a packet", name, a)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for name, file := range manyPackets(50_000) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			for b.Loop() {
				f, err := OpenReader("test", bytes.NewReader(file))
				var p dissect.Packet
				for err == nil {
					err = f.Next(&p)
				}
				if err != io.EOF {
					b.Fatal(err)
				}
			}
		})
	}
}

// The captures of others hold as many packets as an independent reader counted.
func TestRealCaptures(t *testing.T) {
	root := filepath.Join("..", "..", "..", "shared", "captures")
	paths, _ := filepath.Glob(filepath.Join(root, "*", "*.pcap*"))
	if len(paths) == 0 {
		t.Skip("no captures in " + root)
	}
	for _, path := range paths {
		truth := struct {
			Packets  int              `json:"packets"`
			LinkType dissect.LinkType `json:"link_type"`
		}{Packets: -1}
		if b, err := os.ReadFile(strings.TrimSuffix(path, filepath.Ext(path)) + ".truth.json"); err == nil {
			if err := json.Unmarshal(b, &truth); err != nil {
				t.Fatal(err)
			}
		}
		disk, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		all, f, err := readAll(disk)
		disk.Close()
		if err != nil || len(all) == 0 || len(f.Warnings()) > 0 {
			t.Errorf("%s: got %d packets, %v, warnings %q", path, len(all), err, f.Warnings())
		}
		if truth.Packets >= 0 && (len(all) != truth.Packets || all[0].Link != truth.LinkType) {
			t.Errorf("%s: got %d packets of link type %d, want %d of %d", path, len(all), all[0].Link, truth.Packets, truth.LinkType)
		}
	}
}

// fuzz reads a file that may hold anything: it must end, and say how.
func fuzz(t *testing.T, b []byte) {
	all, f, err := readAll(bytes.NewReader(b))
	total := 0
	for _, p := range all {
		if p.Length < len(p.Data) || p.Interface >= len(f.Interfaces()) || p.Digits < 0 || p.Digits > 9 {
			t.Fatalf("got packet %+v", p)
		}
		total += len(p.Data)
	}
	if total > len(b) {
		t.Fatalf("got %d bytes of packets out of %d", total, len(b))
	}
	if f != nil && f.Offset() > int64(len(b)) {
		t.Fatalf("got offset %d of %d", f.Offset(), len(b))
	}
	var e *wire.Error
	if errors.As(err, &e) && e.Offset > len(b) {
		t.Fatalf("got %v in a file of %d bytes", err, len(b))
	}
}

func FuzzPcap(f *testing.F) {
	f.Add(samples()["pcap"])
	for _, file := range []pcapFile{
		{order: plain.order, magic: 0xa1b23c4d, network: 276},
		{order: big.order, magic: 0xa1b2cd34, extra: 8, network: 101},
		{order: big.order, magic: 0xa1b2c3d4, snapLen: 2, network: 0xf4000071},
	} {
		f.Add(file.build("first", "", "third"))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if bytes.HasPrefix(b, []byte(gzipMagic)) || bytes.HasPrefix(b, []byte(zstdMagic)) {
			t.Skip("compressed")
		}
		fuzz(t, b)
	})
}

func FuzzPcapng(f *testing.F) {
	f.Add(samples()["pcapng"])
	f.Add(join(little.section(), little.iface(1, 64, little.option(optResolution, []byte{0xa0})),
		little.packet(0, 1<<40, 100, "some data"), little.simple(4, "abcd"), big.section()))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 4 || string(b[:4]) != "\n\r\r\n" {
			t.Skip("not pcapng")
		}
		fuzz(t, b)
	})
}

// FuzzCompressed unpacks arbitrary bytes: as they are behind a magic number, which is
// mostly damage, or what they make when they are packed, which is none.
func FuzzCompressed(f *testing.F) {
	for _, b := range samples() {
		f.Add(uint8(0), b)
		f.Add(uint8(1), b)
		f.Add(uint8(2), gzipped(b))
		f.Add(uint8(3), zstded(b))
	}
	f.Fuzz(func(t *testing.T, kind uint8, b []byte) {
		switch kind % 4 {
		case 0:
			b = gzipped(b)
		case 1:
			b = zstded(b)
		case 2:
			b = append([]byte(gzipMagic), b[min(len(b), 2):]...)
		case 3:
			b = append([]byte(zstdMagic), b[min(len(b), 4):]...)
		}
		_, file, err := readAll(bytes.NewReader(b))
		if err == nil {
			return
		}
		if text := err.Error(); !strings.HasPrefix(text, "test: ") || strings.Contains(text, "\n") {
			t.Fatalf("got %q", text)
		}
		if file != nil && len(file.in.buf) > 32<<20 {
			t.Fatalf("the buffer grew to %d bytes", len(file.in.buf))
		}
	})
}
