package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"opscope/dissect/protocols"
	"opscope/dissect/scene"
)

// asMain has the test binary be opscope, so that a test can measure a whole process.
const asMain = "OPSCOPE_TEST_AS_MAIN"

// feed makes a capture while it is read, packet by packet, so that no test needs a large
// file.
type feed struct {
	// packet returns the nth packet, from 0, and nil after the last. It is valid until
	// the next call.
	packet func(n int) []byte
	step   time.Duration // between packets

	n    int
	buf  []byte // of the file; what is before used has been read
	used int
}

func newFeed(step time.Duration, packet func(n int) []byte) *feed {
	return &feed{packet: packet, step: step, buf: (&scene.Scene{}).Pcap(1)}
}

func (f *feed) Read(p []byte) (int, error) {
	f.buf, f.used = append(f.buf[:0], f.buf[f.used:]...), 0
	for len(f.buf) < len(p) {
		data := f.packet(f.n)
		if data == nil {
			break
		}
		at := scene.Start.Add(time.Duration(f.n) * f.step)
		f.n++
		le := binary.LittleEndian
		f.buf = le.AppendUint32(le.AppendUint32(f.buf, uint32(at.Unix())), uint32(at.Nanosecond()/1000))
		f.buf = le.AppendUint32(le.AppendUint32(f.buf, uint32(len(data))), uint32(len(data)))
		f.buf = append(f.buf, data...)
	}
	if len(f.buf) == 0 {
		return 0, io.EOF
	}
	f.used = copy(p, f.buf)
	return f.used, nil
}

// measured is what a process came to.
type measured struct {
	result
	summary map[string]any
	cpu     time.Duration
	rss     int64 // the most memory it had, in bytes; 0 where the system does not tell
}

// process runs opscope as a process of its own, that reads a capture from a pipe.
func process(t *testing.T, in io.Reader, args ...string) *measured {
	t.Helper()
	if raceDetector {
		t.Skip("the memory and the time of a process, which the race detector distorts")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, append([]string{"decode", "-q", "--summary", "json", "-"}, args...)...)
	memory := filepath.Join(t.TempDir(), "memory")
	cmd.Env = append(os.Environ(), peakFile+"="+memory)
	var out, messages bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &messages
	err = cmd.Run()
	m := &measured{result: result{out.String(), messages.String(), cmd.ProcessState.ExitCode()}}
	if err != nil && m.code < 0 {
		t.Fatalf("%v: %s", err, m.err)
	}
	m.cpu, m.rss = cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), peak(t, memory)
	if m.out != "" {
		m.summary = objects(t, m.out)[0]
	}
	return m
}

const mebi = 1 << 20

// bounded wants a process to keep within some memory.
func (m *measured) bounded(t *testing.T, most int64) {
	t.Helper()
	t.Logf("%d MiB, %v of processor time", m.rss/mebi, m.cpu.Round(10*time.Millisecond))
	if m.rss > most {
		t.Errorf("it took %d MiB, want at most %d", m.rss/mebi, most/mebi)
	}
}

// scaled returns a size, a tenth of it in a hurry.
func scaled(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// linear wants twice as much to take some twice as long. What takes its time as the
// square takes four times as long; a busy machine is given another chance.
func linear(t *testing.T, n int, run func(n int) *measured) {
	t.Helper()
	const few = 200 * time.Millisecond // what starting takes, and more
	var once, twice time.Duration
	for range 3 {
		once, twice = run(n).cpu, run(2*n).cpu
		if twice < 3*once+few {
			return
		}
	}
	t.Errorf("%v for so much, and %v for twice as much", once, twice)
}

// patch puts numbers into a packet that is used again and again.
func put32(b []byte, at int, v uint32) { binary.BigEndian.PutUint32(b[at:], v) }

// Where the headers of scene's packets over IPv4 have their numbers.
const (
	atSource      = 14 + 12
	atDestination = 14 + 16
	atSequence    = 14 + 20 + 4
	tcpHeaders    = 14 + 20 + 20
)

// templates returns the packets of a scene, to be changed in place.
func templates(s *scene.Scene) (list [][]byte) {
	for _, p := range s.Packets() {
		list = append(list, bytes.Clone(p.Data))
	}
	return list
}

// TestFlowsThatNeverEnd has more connections than are kept at a time, of which none is
// closed.
func TestFlowsThatNeverEnd(t *testing.T) {
	s := &scene.Scene{}
	c := s.TCP("10.0.0.2:50111", "10.0.0.1:2627")
	c.Segment(fromClient, scene.SYN, "")
	c.Segment(fromServer, scene.SYN|scene.ACK, "")
	c.Send(fromServer, chat(1), chat(2)[:9])
	list := templates(s)
	play := func(flows int, args ...string) *measured {
		return process(t, newFeed(100*time.Microsecond, func(n int) []byte {
			if n == flows*len(list) {
				return nil
			}
			b, address := list[n%len(list)], uint32(11<<24+n/len(list))
			put32(b, map[bool]int{true: atSource, false: atDestination}[n%len(list) == 0], address)
			return b
		}), args...)
	}
	flows := scaled(100_000)
	args := []string{"--limit", "flows=65536"}
	if flows < 65536 {
		args[1] = "flows=6553"
	}
	m := play(flows, args...)
	m.bounded(t, 768*mebi)
	most := map[bool]int{true: 65536, false: 6553}[flows > 65536]
	if got := m.summary["limits"].(map[string]any)["flows"]; got != float64(flows-most) || m.code != exitDone {
		t.Errorf("exit code %d, %v flows evicted, want %d", m.code, got, flows-most)
	}
	if got := m.summary["records"].(map[string]any)["wulfram"]; got != float64(2*flows) { // the second is incomplete
		t.Errorf("%v records, want %d", got, 2*flows)
	}
	linear(t, flows/4, func(n int) *measured { return play(n, "--limit", "flows=1000") })
}

// TestFlowsBetweenTwoHosts has as many clients behind one address as it has ports: some
// of datagrams alone, so that each may belong to any session there is, and some that wait
// to know theirs while two sessions greet again and again.
func TestFlowsBetweenTwoHosts(t *testing.T) {
	alone := &scene.Scene{}
	alone.UDP("10.0.0.2:50112", "10.0.0.1:7777").Send(fromClient, counter)
	greeting := scene.AsFrame(scene.HelloKey("KeyA"))
	waiting := &scene.Scene{}
	for _, client := range []string{"10.0.0.2:50", "10.0.0.2:51"} {
		c := waiting.TCP(client, "10.0.0.1:7777")
		c.Open()
		c.Send(fromServer, greeting)
	}
	opening := waiting.Len()
	c := waiting.TCP("10.0.0.2:50", "10.0.0.1:7777")
	c.Next[fromServer] += uint32(1 + len(greeting))
	c.Send(fromServer, greeting)
	waiting.UDP("10.0.0.2:50112", "10.0.0.1:7777").Send(fromClient, counter)
	for _, p := range protocols.All {
		known, err := p.Schema()
		if err != nil {
			t.Fatal(err)
		}
		for name, s := range map[string]*scene.Scene{"datagrams alone": alone, "waiting": waiting} {
			t.Run(known.Name+"/"+name, func(t *testing.T) {
				list := templates(s)
				first := 0
				if s == waiting {
					first = opening
				}
				linear(t, scaled(20_000), func(flows int) *measured {
					seq := binary.BigEndian.Uint32(list[first][atSequence:])
					m := process(t, newFeed(10*time.Microsecond, func(n int) []byte {
						if n < first {
							return list[n]
						}
						n -= first
						again := len(list) - first
						if n == flows*again {
							return nil
						}
						b := list[first+n%again]
						if n%again < again-1 { // greets
							put32(b, atSequence, seq+uint32(n/again*len(greeting)))
							return b
						}
						binary.BigEndian.PutUint16(b[14+20:], uint16(1000+n/again))
						return b
					}), "--protocol", known.Name, "--hold", "2s")
					if m.code != exitDone || m.rss > 768*mebi {
						t.Errorf("exit code %d, %d MiB, %q", m.code, m.rss/mebi, m.err)
					}
					t.Logf("%d flows: %v, %d MiB", flows, m.cpu, m.rss/mebi)
					return m
				})
			})
		}
	}
}

// TestAHoleOfTwoGigabytes leaves out nearly as much as sequence numbers can tell.
func TestAHoleOfTwoGigabytes(t *testing.T) {
	const hole = 0x7ff00000
	s := &scene.Scene{}
	c := s.TCP("10.0.0.2:50111", "10.0.0.1:2627")
	c.Open()
	c.Send(fromServer, chat(1))
	c.Next[fromServer] += hole
	for n := 2; n <= 9; n++ {
		c.Send(fromServer, chat(n))
	}
	list := s.Packets()
	m := process(t, newFeed(time.Millisecond, func(n int) []byte {
		if n == len(list) {
			return nil
		}
		return list[n].Data
	}))
	m.bounded(t, 100*mebi)
	// The first segment behind the hole is not believed until another one follows it.
	aside := len(chat(2))
	if m.code != exitDone || m.summary["lost_bytes"] != float64(hole+aside) || m.summary["gaps"] != 1.0 || m.summary["records"].(map[string]any)["wulfram"] != 8.0 {
		t.Errorf("exit code %d, %s", m.code, m.out)
	}
}

// lossy makes one stream, of which every so many segments are missing.
func lossy(total, every int, payload func([]byte)) *feed {
	const size = 1400
	s := &scene.Scene{}
	c := s.TCP("10.0.0.2:50111", "10.0.0.1:2627")
	c.Open()
	c.Send(fromServer, strings.Repeat("x", size))
	list := templates(s)
	b := list[3]
	start := binary.BigEndian.Uint32(b[atSequence:])
	sent := 0
	return newFeed(100*time.Microsecond, func(n int) []byte {
		if n < 3 {
			return list[n]
		}
		if sent*size >= total {
			return nil
		}
		for {
			payload(b[tcpHeaders:])
			put32(b, atSequence, start+uint32(sent*size))
			if sent++; every == 0 || sent%every != 0 {
				return b
			}
		}
	})
}

// framesIn returns a payload that goes through valid frames, again and again.
func framesIn() func([]byte) {
	all, at := chats(100, 199), 0
	return func(b []byte) {
		for i := range b {
			b[i] = all[at]
			at = (at + 1) % len(all)
		}
	}
}

func noiseIn() func([]byte) {
	random := rand.New(rand.NewPCG(5, 6))
	return func(b []byte) {
		for i := range b {
			b[i] = byte(random.Uint32())
		}
	}
}

// TestALossyStream misses every 20th segment of a long stream: of frames, which go on,
// and of noise, which is given up.
func TestALossyStream(t *testing.T) {
	total := scaled(60_000_000)
	for name, payload := range map[string]func() func([]byte){"frames": framesIn, "noise": noiseIn} {
		t.Run(name, func(t *testing.T) {
			m := process(t, lossy(total, 20, payload()))
			m.bounded(t, 100*mebi)
			lost := (total/1400 + 1) / 20
			if got := m.summary["gaps"].(float64); m.code != exitDone || name == "frames" && int(got) != lost && int(got) != lost-1 {
				t.Errorf("exit code %d, %v gaps, want %d", m.code, got, lost)
			}
			if name == "noise" && m.summary["limits"].(map[string]any)["resync-bytes"] == nil {
				t.Errorf("it is not given up: %s", m.out)
			}
			linear(t, total/4, func(n int) *measured { return process(t, lossy(n, 20, payload())) })
		})
	}
}

// startsOfFrames look like the start of a frame of DirectPlay at every fourth place, and are none.
var startsOfFrames = []string{"\x00\xf0\xbf\xfa", "\x40\x00\xb0\xfa", "\x02\x00", "\xff\xff\xbf\xfa\x02\x00\x08\xfc" + strings.Repeat("\x00", 12)}

// TestNoiseInEachProtocol gives noise of several kinds to each protocol there is, in both
// directions, as a stream and as datagrams: the time that it takes grows as the noise does.
func TestNoiseInEachProtocol(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	kinds := map[string]func([]byte){
		"noise": func(b []byte) {
			for i := range b {
				b[i] = byte(random.Uint32())
			}
		},
		"zeros": func(b []byte) { clear(b) },
		"small numbers": func(b []byte) {
			for i := range b {
				b[i] = byte(random.Uint32N(70))
			}
		},
	}
	for i, word := range startsOfFrames {
		kinds[fmt.Sprint("starts of frames ", i+1)] = func(b []byte) {
			for i := range b {
				b[i] = word[i%len(word)]
			}
		}
	}
	const size = 1400
	for _, p := range protocols.All {
		known, err := p.Schema()
		if err != nil {
			t.Fatal(err)
		}
		for kind, fill := range kinds {
			for _, from := range []scene.Side{fromClient, fromServer} {
				for _, transport := range []string{"tcp", "udp"} {
					if strings.HasPrefix(kind, "starts of frames") && (known.Name != "lotr2" || transport != "tcp" || from != fromClient) {
						continue
					}
					t.Run(known.Name+"/"+kind+"/"+transport+"/"+[]string{"c2s", "s2c"}[from], func(t *testing.T) {
						s := &scene.Scene{}
						headers := tcpHeaders
						if transport == "tcp" {
							c := s.TCP("10.0.0.2:50111", "10.0.0.1:7777")
							c.Open()
							c.Send(from, strings.Repeat("x", size))
						} else {
							headers = 14 + 20 + 8
							s.UDP("10.0.0.2:50112", "10.0.0.1:7777").Send(from, strings.Repeat("x", size))
						}
						list := templates(s)
						opening, b := list[:len(list)-1], list[len(list)-1]
						start := binary.BigEndian.Uint32(b[atSequence:])
						linear(t, scaled(1_000_000), func(total int) *measured {
							m := process(t, newFeed(time.Millisecond, func(n int) []byte {
								switch n -= len(opening); {
								case n < 0:
									return opening[n+len(opening)]
								case n*size >= total:
									return nil
								}
								fill(b[headers:])
								if transport == "tcp" {
									put32(b, atSequence, start+uint32(n*size))
								}
								return b
							}), "--protocol", known.Name)
							if m.code != exitDone || m.err != "" || m.rss > 150*mebi {
								t.Errorf("exit code %d, %d MiB, %q", m.code, m.rss/mebi, m.err)
							}
							return m
						})
					})
				}
			}
		}
	}
}

// BenchmarkLossyStream compares a stream of which every 20th segment is missing with a
// whole one: B31 wants it to take no more than three times as long.
func BenchmarkLossyStream(b *testing.B) {
	const total = 20_000_000
	for name, every := range map[string]int{"whole": 0, "lossy": 20} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(total)
			for b.Loop() {
				var messages bytes.Buffer
				if code := run(b.Context(), []string{"decode", "-q", "-"}, streams{lossy(total, every, framesIn()), io.Discard, &messages}); code != exitDone {
					b.Fatal(messages.String())
				}
			}
		})
	}
}

// TestTinyDatagrams reads a million of them.
func TestTinyDatagrams(t *testing.T) {
	s := &scene.Scene{}
	s.UDP("10.0.0.2:50112", "10.0.0.1:2627").Send(fromClient, counter)
	b := templates(s)[0]
	play := func(count int) *measured {
		return process(t, newFeed(10*time.Microsecond, func(n int) []byte {
			if n == count {
				return nil
			}
			put32(b, len(b)-4, uint32(n))
			return b
		}), "--hold", "2s")
	}
	count := scaled(1_000_000)
	m := play(count)
	m.bounded(t, 100*mebi)
	if got := m.summary["records"].(map[string]any)["wulfram"]; m.code != exitDone || got != float64(count) {
		t.Errorf("exit code %d, %v records, want %d", m.code, got, count)
	}
	linear(t, count/4, play)
}

// zeros is so many of them, after something else.
func zeros(head []byte, n int64) io.Reader {
	return io.MultiReader(bytes.NewReader(head), io.LimitReader(zeroReader{}, n))
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestZipBombs unpacks what grows without end: up to the ratio that captures have, and
// as far as it goes where that is asked for.
func TestZipBombs(t *testing.T) {
	le := binary.LittleEndian
	size := int64(scaled(800 * mebi))
	head := pcapng(plainSession(), le, 1)
	block := le.AppendUint32(le.AppendUint32(nil, 0xbad), uint32(size+12))
	head = append(head, block...)
	tail := le.AppendUint32(nil, uint32(size+12))
	bombs := map[string][]byte{}
	for _, kind := range []string{"gzip", "zstd"} {
		var b bytes.Buffer
		var w io.WriteCloser = gzip.NewWriter(&b)
		if kind == "zstd" {
			z, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(mebi))
			if err != nil {
				t.Fatal(err)
			}
			w = z
		}
		if _, err := io.Copy(w, io.MultiReader(zeros(head, size), bytes.NewReader(tail))); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		bombs[kind] = b.Bytes()
		t.Logf("%s: %d bytes make %d", kind, b.Len(), size)
	}
	for kind, bomb := range bombs {
		t.Run(kind, func(t *testing.T) {
			m := process(t, bytes.NewReader(bomb))
			m.bounded(t, 100*mebi)
			if m.code != exitInput || !strings.Contains(m.err, "want at most 500 times the compressed size") || !strings.Contains(m.err, "try: --limit ratio=N") ||
				m.summary["records"].(map[string]any)["wulfram"] != 6.0 {
				t.Errorf("exit code %d, %q, %s", m.code, m.err, m.out)
			}
			all := process(t, bytes.NewReader(bomb), "--limit", "ratio=1000000")
			all.bounded(t, 100*mebi)
			if all.code != exitDone || all.err != "" {
				t.Errorf("without a limit: exit code %d, %q", all.code, all.err)
			}
		})
	}
}

// TestAbsurdBlocks reads pcapng files whose blocks say that they are gigabytes long.
func TestAbsurdBlocks(t *testing.T) {
	le := binary.LittleEndian
	head := pcapng(plainSession(), le, 1)
	for kind, name := range map[uint32]string{6: "enhanced packet", 3: "simple packet", 2: "packet", 1: "interface description", 0x0a0d0d0a: "section header", 0xbad: "block", 4: "block"} {
		for _, length := range []uint32{0xfffffffc, 0x7ffffffc, 1 << 30, 17 << 20, 0, 4, 13} {
			b := le.AppendUint32(le.AppendUint32(bytes.Clone(head), kind), length)
			b = append(b, "\x4d\x3c\x2b\x1a\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff and so on, but not for long"...)
			r := opscopeReading(t, bytes.NewReader(b), "decode", "-q", "-T", "json", "-")
			if r.code != exitInput || !strings.Contains(r.err, "pcapng/"+name) || strings.Count(r.err, "\n") > 2 || objects(t, r.out)[0]["records"].(map[string]any)["wulfram"] != 6.0 {
				t.Errorf("kind %#x of %d bytes: exit code %d, %q", kind, length, r.code, r.err)
			}
			if length == 0xfffffffc {
				process(t, bytes.NewReader(b)).bounded(t, 100*mebi)
			}
		}
	}
}
