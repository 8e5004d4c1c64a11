package main_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"opscope/cmd/refserver/internal/scenario"
	"opscope/schema"
	"opscope/schema/wire"
)

// TestTshark has tshark give a second opinion of the captures in pcaps/: none of their
// packets is malformed, all checksums are good, and the bytes of each TCP stream are as
// many as were sent, and as many as opscope counts.
func TestTshark(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second for each capture")
	}
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip(err)
	}
	manifest, err := os.ReadFile("../../pcaps/MANIFEST.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`refserver record (\S+) -o (\S+) --seed (\d+)`).FindAllStringSubmatch(string(manifest), -1) {
		t.Run(m[1], func(t *testing.T) {
			t.Parallel()
			seed, err := strconv.ParseUint(m[3], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			opinion{t, tshark, filepath.Join("../..", m[2])}.compare(m[1], seed)
		})
	}
}

// opinion is what tshark says about a capture.
type opinion struct {
	t      *testing.T
	tshark string
	file   string
}

// ask runs tshark.
func (o opinion) ask(args ...string) string {
	o.t.Helper()
	cmd := exec.Command(o.tshark, append([]string{"-n", "-r", o.file}, args...)...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		o.t.Fatalf("tshark %v: %v\n%s", args, err, complaint.Bytes())
	}
	return string(out)
}

// compare compares it with the truth, and with what opscope finds.
func (o opinion) compare(name string, seed uint64) {
	t := o.t
	play, ok := scenario.Find(name)
	if !ok {
		t.Fatalf("no scenario %s", name)
	}
	truth, err := play.Run(io.Discard, seed)
	if err != nil {
		t.Fatal(err)
	}
	o.sound(&play)
	if play.Protocol == "lotr2" && !reshaped(&play) {
		o.commands(truth)
	}
	data, err := os.ReadFile(o.file)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := counted(read(t, data, layouts(t, &play)[0])), o.streams(len(truth.Streams)/2)
	for _, s := range truth.Streams {
		r := route{schema.TCP, s.Src, s.Dst}
		want := s.Bytes - s.Missing
		if theirs[r] != want {
			t.Errorf("%v to %v: tshark counts %d bytes, want %d", s.Src, s.Dst, theirs[r], want)
		}
		if ours[r] != want {
			t.Errorf("%v to %v: opscope counts %d bytes, want %d", s.Src, s.Dst, ours[r], want)
		}
		delete(theirs, r)
	}
	for r, n := range theirs {
		t.Errorf("tshark sees another stream, %v to %v: %d bytes", r.src, r.dst, n)
	}
}

// reshaped reports whether a scenario has frames that are not each in a segment, which
// tshark's dissector of DirectPlay does not put together.
func reshaped(s *scenario.Scenario) bool { return s.Protocol == "lotr2" && !s.Faults.Stream.Apart }

// commands compares the messages of DirectPlay with what tshark takes them for. It does
// not know what players send.
func (o opinion) commands(truth *scenario.Result) {
	var want strings.Builder
	for i := range truth.Sent {
		if s := &truth.Sent[i]; s.Protocol == "dplay" && s.Captured == scenario.Whole {
			fmt.Fprintf(&want, "%d\t%d\t%d\n", s.Packets[0], s.Opcode, s.Size)
		}
	}
	if got := o.ask("-Y", "dplay.command", "-T", "fields", "-e", "frame.number", "-e", "dplay.command", "-e", "dplay.size"); decimal(got) != want.String() {
		o.t.Errorf("tshark finds these messages of DirectPlay:\n%s\nwant\n%s", decimal(got), want.String())
	}
}

// decimal replaces hexadecimal numbers.
func decimal(text string) string {
	return regexp.MustCompile("0x[0-9a-f]+").ReplaceAllStringFunc(text, func(word string) string {
		n, _ := strconv.ParseUint(word, 0, 64)
		return strconv.FormatUint(n, 10)
	})
}

// sound wants no packet malformed, and every checksum good.
func (o opinion) sound(s *scenario.Scenario) {
	var args []string
	if reshaped(s) {
		args = []string{"--disable-protocol", "dplay"}
	}
	bad := o.ask(append(args, "-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE",
		"-Y", "_ws.malformed or ip.checksum.status == Bad or tcp.checksum.status == Bad or udp.checksum.status == Bad")...)
	if bad != "" {
		o.t.Errorf("tshark finds these packets bad:\n%s", bad)
	}
}

// followed finds the ends of a stream in what tshark prints of it.
var followed = regexp.MustCompile(`(?s)Node 0: (\S+)\nNode 1: (\S+)\n(.*?)={10}`)

// missing is what tshark puts where bytes of a stream are not there.
var missing = regexp.MustCompile(`^\[\d+ bytes missing in capture file\]\x00$`)

// streams returns how many bytes tshark finds of the streams of the first n
// connections.
func (o opinion) streams(n int) map[route]int64 {
	args := []string{"-q"}
	for i := range n {
		args = append(args, "-z", "follow,tcp,raw,"+strconv.Itoa(i))
	}
	counts := map[route]int64{}
	for _, m := range followed.FindAllStringSubmatch(o.ask(args...), -1) {
		ends := [2]netip.AddrPort{endOf(o.t, m[1]), endOf(o.t, m[2])}
		for line := range strings.Lines(m[3]) {
			text, back := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "\t")
			r := route{schema.TCP, ends[0], ends[1]}
			if back {
				r.src, r.dst = r.dst, r.src
			}
			b, err := hex.DecodeString(text)
			if err != nil {
				o.t.Fatalf("tshark prints %q: %v", line, err)
			}
			if !missing.Match(b) {
				counts[r] += int64(len(b))
			}
		}
	}
	return counts
}

// endOf reads an end as tshark prints it.
func endOf(t *testing.T, text string) netip.AddrPort {
	end, err := netip.ParseAddrPort(text)
	if err != nil {
		t.Fatalf("tshark names an end %q", text)
	}
	return end
}

// counted returns how many bytes opscope finds of each stream: up to the last that it
// tells of, without those that it says are missing.
func counted(c *collector) map[route]int64 {
	end, lost := map[route]int64{}, map[route]int64{}
	for i := range c.frames {
		f := &c.frames[i]
		r := route{f.Transport, f.Src, f.Dst}
		n := f.Size
		if f.Err != nil && f.Err.Kind == wire.Incomplete { // the stream ends inside it
			n = len(f.Raw)
		}
		end[r] = max(end[r], f.Offset+int64(n))
	}
	for i := range c.gaps {
		g := &c.gaps[i]
		r := route{schema.TCP, g.Src, g.Dst}
		end[r] = max(end[r], g.Offset+g.Bytes)
		lost[r] += g.Bytes
	}
	for r := range end {
		end[r] -= lost[r]
	}
	return end
}
