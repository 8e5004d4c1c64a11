package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"opscope/dissect"
)

// allCaptures returns the captures of this repository, and those of the folder
// ../shared beside the checkout where there is one.
func allCaptures(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"../../pcaps/*/*.pcapng", foreign + "wulfram/*.pcap*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, files...)
	}
	if len(all) == 0 {
		t.Fatal("no captures")
	}
	return thinned(all)
}

// thinned returns captures, of those in one directory only the first where the race detector
// is in a hurry: what it looks for is in any of them.
func thinned(files []string) []string {
	if !raceDetector || !testing.Short() {
		return files
	}
	return slices.CompactFunc(files, func(a, b string) bool { return filepath.Dir(a) == filepath.Dir(b) })
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeTemp(t *testing.T, name string, b []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func gzipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func zstandard(t *testing.T, b []byte) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	return z.EncodeAll(b, nil)
}

// TestSameOutputHoweverRead proves that the way in leaves no trace: a file, a
// pipe, gzip, zstd, and bytes that come one at a time give the same output.
func TestSameOutputHoweverRead(t *testing.T) {
	for _, capture := range allCaptures(t) {
		t.Run(filepath.Base(capture), func(t *testing.T) {
			data := readFile(t, capture)
			for _, format := range [][]string{{"-T", "json", "--summary"}, {"--width", "120"}, {"-V", "-x"}, {"--tables"}} {
				args := append([]string{"decode", "--hold", "2s"}, format...)
				want := good(t, append(args, capture)...)
				for name, packed := range map[string][]byte{"plain": data, "gzip": gzipped(t, data), "zstd": zstandard(t, data)} {
					file := writeTemp(t, "misnamed.txt", packed)
					if got := good(t, append(args, file)...); got != want {
						t.Errorf("%s, from a file: %s", name, firstDifference(got, want))
					}
					r := opscopeReading(t, pipe(t, packed), append(args, "-")...)
					if r.code != exitDone || r.out != want {
						t.Errorf("%s, from a pipe: exit code %d, %s", name, r.code, firstDifference(r.out, want))
					}
				}
			}
		})
	}
}

// pipe returns the reading end of a pipe of the system that brings b.
func pipe(t *testing.T, b []byte) io.Reader {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	go func() {
		defer w.Close()
		w.Write(b) // fails only when nobody reads on, which the reader sees
	}()
	return r
}

// TestSlowPipe proves the same for bytes that come one by one.
func TestSlowPipe(t *testing.T) {
	want := good(t, "decode", "-T", "json", "--hold", "2s", sessionCapture)
	r := opscopeReading(t, iotest.OneByteReader(bytes.NewReader(readFile(t, sessionCapture))), "decode", "-T", "json", "--hold", "2s", "-")
	if r.code != exitDone || r.out != want {
		t.Errorf("exit code %d, %s", r.code, firstDifference(r.out, want))
	}
}

// TestSilentPipe interrupts a run that waits for a pipe, as soon as it shows what has
// come by then; it ends well.
func TestSilentPipe(t *testing.T) {
	data := readFile(t, sessionCapture)
	r, w := io.Pipe()
	defer w.Close()
	go w.Write(data[:len(data)-100])
	ctx, cancel := context.WithCancelCause(t.Context())
	out := &interrupting{interrupt: func() { cancel(errInterrupted) }}
	var messages bytes.Buffer
	code := run(ctx, []string{"decode", "-"}, streams{r, out, &messages})
	if code != exitDone || messages.Len() > 0 {
		t.Errorf("exit code %d, %q", code, messages.String())
	}
	want := good(t, "decode", "--hold", "0", sessionCapture)
	if n := strings.Count(out.String(), "\n"); n < strings.Count(want, "\n")/2 {
		t.Errorf("%d lines; what had come is to be shown", n)
	}
}

// interrupting is a writer that interrupts the run when it is written to.
type interrupting struct {
	bytes.Buffer
	interrupt func()
}

func (w *interrupting) Write(p []byte) (int, error) {
	w.interrupt()
	return w.Buffer.Write(p)
}

// TestReadBack proves that the tool's own NDJSON, read back, gives itself again,
// and the text that the capture gives.
func TestReadBack(t *testing.T) {
	for _, capture := range allCaptures(t) {
		t.Run(filepath.Base(capture), func(t *testing.T) {
			for _, flags := range [][]string{nil, {"--raw"}, {"--show-secrets"}, {"--show-secrets", "--raw"}, {"--hold", "0"}} {
				args := append([]string{"decode", "-T", "json"}, flags...)
				want := good(t, append(args, capture)...)
				objects(t, want)
				file := writeTemp(t, "records.ndjson", []byte(want))
				if got := good(t, append(args, file)...); got != want {
					t.Errorf("with %v: %s", flags, firstDifference(got, want))
				}
				r := opscopeReading(t, pipe(t, zstandard(t, []byte(want))), append(args, "-")...)
				if r.code != exitDone || r.out != want {
					t.Errorf("with %v, from a pipe: %s", flags, firstDifference(r.out, want))
				}
			}
		})
	}
}

// TestReadBackDamaged proves that a line which is no record costs that line only.
func TestReadBackDamaged(t *testing.T) {
	want := good(t, "-T", "json", sessionCapture)
	first, others, _ := strings.Cut(want, "\n")
	file := writeTemp(t, "x.ndjson", []byte(first+"\n{\"type\":\"record\",\"n\":}\n"+others))
	r := opscope(t, "decode", "-T", "json", file)
	if r.code != exitInput || r.out != want {
		t.Errorf("exit code %d, %s", r.code, firstDifference(r.out, want))
	}
	if !strings.Contains(r.err, "line 2") && !strings.Contains(r.err, "byte") {
		t.Errorf("got %q, which says no place", r.err)
	}
	if r := opscope(t, "decode", "--lenient", "-T", "json", file); r.code != exitDone {
		t.Errorf("--lenient: exit code %d", r.code)
	}
}

// TestJSONSchema proves that whatever is decoded, each line is what the published
// JSON Schema says.
func TestJSONSchema(t *testing.T) {
	for _, capture := range allCaptures(t) {
		protocol := filepath.Base(filepath.Dir(capture))
		for _, flags := range [][]string{{"--summary"}, {"--raw", "--show-secrets"}, {"--hold", "0"}, {"--protocol", protocol}} {
			objects(t, good(t, append([]string{"-T", "json", capture}, flags...)...))
		}
	}
}

// TestTruncated cuts captures at every byte. Nothing panics or hangs; what is left
// is decoded as far as it goes; and the exit code is 3, with the offset of the cut
// packet, unless the cut is between two packets.
func TestTruncated(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // each run has large buffers of its own
	slow := testing.Short() || raceDetector
	for _, capture := range append(smallForeign(), sessionCapture) {
		t.Run(filepath.Base(capture), func(t *testing.T) {
			data := readFile(t, capture)
			step := 1
			if slow {
				step = 29
			}
			whole := boundaries(t, data)
			for n := 0; n < len(data); n += step {
				err := cutAt(t, data[:n])
				var e *exitError
				switch {
				case whole[n] && err != nil:
					t.Fatalf("cut behind a packet, at byte %d: %v", n, err)
				case whole[n]:
				case !errors.As(err, &e) || e.code != exitInput:
					t.Fatalf("cut at byte %d: got %v, want exit code %d", n, err, exitInput)
				}
			}
		})
	}
}

// smallForeign returns the smallest foreign capture of the classic format.
func smallForeign() []string {
	files, _ := filepath.Glob(foreign + "wulfram/session-prefixed-sll2.pcap")
	return files
}

// cutAt decodes the start of a capture, and wants that to end.
// The error that a user would see must name an offset.
func cutAt(t *testing.T, data []byte) error {
	t.Helper()
	var messages bytes.Buffer
	ended := make(chan error, 1)
	go func() {
		o := &decodeOptions{format: "json", time: "a", color: "never", hold: dissect.DefaultHold, holdSet: true}
		ended <- decode(context.Background(), streams{bytes.NewReader(data), io.Discard, &messages}, []string{"-"}, o)
	}()
	select {
	case err := <-ended:
		if err != nil && len(data) > 0 && !strings.Contains(messages.String(), " at byte ") {
			t.Fatalf("cut at byte %d: %q names no offset", len(data), messages.String())
		}
		return err
	case <-time.After(hang):
		t.Fatalf("cut at byte %d: does not end", len(data))
		return nil
	}
}

// The blocks of pcapng.
const (
	sectionHeader  = 0x0a0d0d0a
	enhancedPacket = 6
)

// boundaries returns where a pcap or pcapng file may end: behind its header, and
// behind each packet.
func boundaries(t *testing.T, data []byte) map[int]bool {
	t.Helper()
	at := map[int]bool{}
	le := binary.LittleEndian
	if le.Uint32(data) == sectionHeader {
		for off := 0; off < len(data); {
			off += int(le.Uint32(data[off+4:]))
			at[off] = true
		}
		return at
	}
	off := 24
	for at[off] = true; off < len(data); at[off] = true {
		off += 16 + int(le.Uint32(data[off+8:]))
	}
	return at
}

// TestTruncatedCompressed does the same to compressed captures, where there is no
// cut between packets: a cut stream is always damage.
func TestTruncatedCompressed(t *testing.T) {
	data := readFile(t, sessionCapture)
	for name, packed := range map[string][]byte{"gzip": gzipped(t, data), "zstd": zstandard(t, data)} {
		for n := 0; n < len(packed); n += 17 {
			var e *exitError
			if err := cutAt(t, packed[:n]); !errors.As(err, &e) || e.code != exitInput {
				t.Fatalf("%s cut at byte %d of %d: got %v, want exit code %d", name, n, len(packed), err, exitInput)
			}
		}
	}
}

// lastTime returns where a pcapng file has the time of its last packet.
func lastTime(data []byte) int {
	le, last := binary.LittleEndian, 0
	for off := 0; off < len(data); off += int(le.Uint32(data[off+4:])) {
		if le.Uint32(data[off:]) == enhancedPacket {
			last = off + 12
		}
	}
	return last
}

// TestFlipped damages a capture in one byte after the other, and in each of a time,
// which then may be beyond the year 9999. Whatever comes of it, it ends, and what it
// prints are records.
func TestFlipped(t *testing.T) {
	data := readFile(t, sessionCapture)
	step := 31
	if testing.Short() || raceDetector {
		step = 331
	}
	var places []int
	for n := 0; n < len(data); n += step {
		places = append(places, n)
	}
	for i := range 8 {
		places = append(places, lastTime(data)+i)
	}
	for _, n := range places {
		damaged := bytes.Clone(data)
		damaged[n] ^= 0xff
		r := opscopeReading(t, bytes.NewReader(damaged), "decode", "-T", "json", "--hold", "2s", "-")
		if r.code != exitDone && r.code != exitInput {
			t.Fatalf("byte %d: exit code %d\n%s", n, r.code, r.err)
		}
		objects(t, r.out)
	}
}

// TestBrokenOutput proves that a writer that fails ends the run, and says so.
func TestBrokenOutput(t *testing.T) {
	for _, line := range []string{
		"decode -l -T text " + sessionCapture, "decode -l -T json " + sessionCapture, "opcodes " + sessionCapture, "verify " + sessionCapture,
		"--help", "help filter", "decode --help", "--version", "version", "notes", "schema list", "schema show wulfram D_ACK",
		"schema json spec", "schema check", "completion bash", "verify --rules mmo", "sniff -D",
	} {
		var messages bytes.Buffer
		code := run(t.Context(), strings.Fields(line), streams{strings.NewReader(""), failing{}, &messages})
		if code != exitInput || !strings.Contains(messages.String(), "no space") {
			t.Errorf("opscope %s: exit code %d, %q", line, code, messages.String())
		}
	}
}

// failing is a writer without room.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space left") }
