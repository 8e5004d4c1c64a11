package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"opscope/dissect/scene"
)

// rewritten returns a little-endian pcap file of microseconds with another magic
// number, in either order, and with room behind the header of each packet.
func rewritten(pcap []byte, magic uint32, o binary.ByteOrder, nanoseconds bool, extra int) []byte {
	le := binary.LittleEndian
	out := make([]byte, 24)
	o.PutUint32(out, magic)
	o.PutUint16(out[4:], le.Uint16(pcap[4:]))
	o.PutUint16(out[6:], le.Uint16(pcap[6:]))
	for at := 8; at < 24; at += 4 {
		o.PutUint32(out[at:], le.Uint32(pcap[at:]))
	}
	for at := 24; at < len(pcap); {
		head := make([]byte, 16+extra)
		for i := 0; i < 16; i += 4 {
			v := le.Uint32(pcap[at+i:])
			if i == 4 && nanoseconds {
				v *= 1000
			}
			o.PutUint32(head[i:], v)
		}
		n := int(le.Uint32(pcap[at+8:]))
		out = append(append(out, head...), pcap[at+16:at+16+n]...)
		at += 16 + n
	}
	return out
}

// block returns a block of pcapng.
func block(o binary.AppendByteOrder, kind uint32, body []byte) []byte {
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	b := o.AppendUint32(o.AppendUint32(nil, kind), uint32(12+len(body)))
	return o.AppendUint32(append(b, body...), uint32(12+len(body)))
}

// pcapng returns the packets of a pcap file as a section of pcapng, with other blocks
// in front of each.
func pcapng(pcap []byte, o binary.AppendByteOrder, link uint16, others ...[]byte) []byte {
	le := binary.LittleEndian
	head := o.AppendUint32(nil, 0x1a2b3c4d)
	head = append(o.AppendUint16(o.AppendUint16(head, 1), 0), bytes.Repeat([]byte{0xff}, 8)...)
	out := block(o, 0x0a0d0d0a, head)
	out = append(out, block(o, 1, o.AppendUint32(o.AppendUint16(o.AppendUint16(nil, link), 0), 0))...)
	for at := 24; at < len(pcap); {
		for _, b := range others {
			out = append(out, b...)
		}
		n := int(le.Uint32(pcap[at+8:]))
		stamp := uint64(le.Uint32(pcap[at:]))*1e6 + uint64(le.Uint32(pcap[at+4:]))
		body := o.AppendUint32(nil, 0)
		body = o.AppendUint32(o.AppendUint32(body, uint32(stamp>>32)), uint32(stamp))
		body = o.AppendUint32(o.AppendUint32(body, uint32(n)), le.Uint32(pcap[at+12:]))
		out = append(out, block(o, 6, append(body, pcap[at+16:at+16+n]...))...)
		at += 16 + n
	}
	return out
}

// plainSession is a small capture over IPv4.
func plainSession() []byte { return session(versions[0], nil).Pcap(1) }

// B64: all magic numbers, in both orders, give the same records.
func TestMagicNumbers(t *testing.T) {
	data := plainSession()
	want := showFile(t, data)
	want.want("record", sessionRecords)
	le, be := binary.LittleEndian, binary.BigEndian
	for name, other := range map[string][]byte{
		"microseconds, big-endian":   rewritten(data, 0xa1b2c3d4, be, false, 0),
		"nanoseconds, little-endian": rewritten(data, 0xa1b23c4d, le, true, 0),
		"nanoseconds, big-endian":    rewritten(data, 0xa1b23c4d, be, true, 0),
		"modified, little-endian":    rewritten(data, 0xa1b2cd34, le, false, 8),
		"modified, big-endian":       rewritten(data, 0xa1b2cd34, be, false, 8),
		"pcapng, little-endian":      pcapng(data, le, 1),
		"pcapng, big-endian":         pcapng(data, be, 1),
	} {
		got := showFile(t, other)
		if !equal(got.objects, want.objects) || !equal(got.summary, want.summary) {
			t.Errorf("%s: got\n%s", name, strings.Join(got.lines(), "\n"))
		}
	}
}

// B65: times are UTC, whatever the zone of the machine or of the file; text names the
// zone it is in.
func TestTimeZones(t *testing.T) {
	defer func(zone *time.Location) { time.Local = zone }(time.Local)
	data := plainSession()
	file := writeTemp(t, "zone.pcap", data)
	binary.LittleEndian.PutUint32(data[8:], 3600) // the zone in the header
	shifted := writeTemp(t, "shifted.pcap", data)
	var last map[string]string
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("JST", 9*3600), time.FixedZone("NST", -3*3600-1800)} {
		time.Local = zone
		now := map[string]string{
			"json": good(t, "decode", "-T", "json", "--summary", file), "utc": good(t, "decode", "-t", "ud", file),
			"epoch": good(t, "decode", "-t", "e", file),
		}
		if last != nil && fmt.Sprint(now) != fmt.Sprint(last) {
			t.Errorf("in %s: the output differs", zone)
		}
		last = now
		if got := good(t, "decode", "-T", "json", "--summary", shifted); got != now["json"] {
			t.Error("the zone in the file's header shifts the times")
		}
		local := good(t, "decode", "-t", "ad", file)
		if want := scene.Start.Add(3 * time.Millisecond).In(zone).Format("2006-01-02 15:04:05.000000"); !strings.HasPrefix(local, want) {
			t.Errorf("in %s: local times begin with %.30q, want %s", zone, local, want)
		}
		summary := good(t, "decode", "-q", file)
		if name, _ := scene.Start.In(zone).Zone(); !strings.Contains(summary, " "+name) {
			t.Errorf("in %s: the summary names no zone: %s", zone, summary)
		}
	}
}

// B67: a cut file gives all whole packets, one message with the place, and an exit
// code of its own.
func TestCutFiles(t *testing.T) {
	data := plainSession()
	le := binary.LittleEndian
	last := 24
	for next := 24; next < len(data); next += 16 + int(le.Uint32(data[next+8:])) {
		last = next
	}
	ng := pcapng(data, le, 1)
	lastBlock := 0
	for next := 0; next < len(ng); next += int(le.Uint32(ng[next+4:])) {
		lastBlock = next
	}
	packed := gzipped(t, data)
	want := strings.Split(strings.TrimSpace(sessionRecords), "\n")
	whole := len(want) - 1
	for name, c := range map[string]struct {
		data    []byte
		records int
	}{
		"inside the header of a packet":   {data[:last+7], whole},
		"right behind it":                 {data[:last+16], whole},
		"inside its data":                 {data[:last+30], whole},
		"inside the header of a block":    {ng[:lastBlock+5], whole},
		"inside a block":                  {ng[:lastBlock+30], whole},
		"before its trailing length":      {ng[:len(ng)-4], whole},
		"inside a gzip stream":            {packed[:len(packed)-20], 0},
		"before the checksum of gzip":     {packed[:len(packed)-8], whole + 1},
		"inside a zstd stream":            {zstandard(t, data)[:60], 0},
		"inside the header of the file":   {data[:20], 0},
		"inside the header of a section":  {ng[:20], 0},
		"a gzip stream inside its header": {packed[:5], 0},
	} {
		file := writeTemp(t, "cut.pcap", c.data)
		for _, args := range [][]string{{file}, {"-"}} {
			r := opscopeReading(t, bytes.NewReader(c.data), append([]string{"decode", "-T", "json"}, args...)...)
			if n := len(records(objects(t, r.out))); n < c.records || c.records > 0 && n > c.records {
				t.Errorf("%s: %d records, want %d", name, n, c.records)
			}
			if r.code != exitInput || !strings.Contains(r.err, "(truncated)") || !strings.Contains(r.err, " at byte ") || strings.Count(r.err, "truncated") != 1 {
				t.Errorf("%s: exit code %d, %q", name, r.code, r.err)
			}
		}
		if r := opscope(t, "decode", "--lenient", file); r.code != exitDone && c.records > 0 {
			t.Errorf("%s: exit code %d with --lenient", name, r.code)
		}
	}
}

// B68: lengths that contradict each other are read, and said once.
func TestContradictoryLengths(t *testing.T) {
	le := binary.LittleEndian
	for name, c := range map[string]struct {
		change  func(b []byte)
		message string
	}{
		"snap length 0":                 {func(b []byte) { le.PutUint32(b[16:], 0) }, ""},
		"more than the snap length":     {func(b []byte) { le.PutUint32(b[16:], 60) }, "more bytes than the snap length allows"},
		"more than there was on a wire": {func(b []byte) { le.PutUint32(b[24+12:], 12) }, "more bytes than it is said to have had on the wire"},
	} {
		data := plainSession()
		c.change(data)
		out := showFile(t, data)
		out.want("record", sessionRecords)
		out.exits(exitDone, c.message)
		if strings.Count(out.err, "\n") > 1 {
			t.Errorf("%s: said more than once: %q", name, out.err)
		}
	}
	data := plainSession()
	le.PutUint32(data[24+8:], 1<<20)
	out := showFile(t, data)
	out.exits(exitInput, "want at most 262144, got 1048576 (malformed)\ntry: --limit packet-bytes=N")
	out.counts("limits.packet-bytes", 1)
}

// B70: what the snap length cut off is no loss.
func TestSnapLength(t *testing.T) {
	for _, e := range versions {
		s := &scene.Scene{}
		c, u := greet(s, e)
		s.Snap = 110
		c.Send(fromServer, scene.Frame(0x23, scene.Text(strings.Repeat("x", 300))))
		c.Send(fromClient, scene.Frame(0x20, "\x00\x00\x00\x00"+scene.Text("hi")))
		s.Snap = 0
		u.Send(fromClient, scene.Original(1))
		s.Snap = 110
		u.Send(fromClient, scene.Viewpoint(1, 1)+scene.Chat(1, strings.Repeat("y", 300)))
		s.Snap = 54 + 8
		if e.name == "IPv6" {
			s.Snap += 20
		}
		c.Send(fromServer, chat(1))
		s.Snap = 0
		c.Send(fromServer, chat(2))
		out := show(t, s)
		out.counts("gaps", 0)
		out.counts("lost_bytes", 0)
		out.want("record", `
			s2c HELLO
			s2c HELLO
			c2s ROOT
			c2s HELLO
			s2c MOTD +not_captured !truncated `+truncatedRest(out, 4)+`
			c2s COMM_MESSAGE_REQUEST
			c2s D_HANDSHAKE
			c2s VIEWPOINT_INFO 1 +never_acknowledged
			c2s COMM_MESSAGE_REQUEST 1 +not_captured +never_acknowledged !truncated `+truncatedRest(out, 8)+`
			s2c COMM_MESSAGE +not_captured !truncated `+truncatedRest(out, 9)+`
			s2c COMM_MESSAGE`)
		if r := out.record(10); r["offset"] != float64(19+11+306+24) {
			t.Errorf("the last is at %v: the offsets are off", r["offset"])
		}
		out.counts("errors.truncated", 3)
		if r := opscope(t, "decode", "-q", writeTemp(t, "snap.pcap", s.Pcap(1))); !strings.Contains(r.out, "capture with -s 0") {
			t.Errorf("the summary is\n%s", r.out)
		}
		headers := &scene.Scene{Snap: 54} // nothing but headers
		if e.name == "IPv6" {
			headers.Snap = 74
		}
		h := headers.TCP(e.client, e.server)
		h.Open()
		for n := range 5 {
			h.Send(fromServer, chat(n))
		}
		out = show(t, headers)
		out.counts("gaps", 0)
		out.counts("lost_bytes", 0)
	}
}

// truncatedRest returns the rest of a record, of which a test says nothing else.
func truncatedRest(s *shown, n int) string {
	if rest := s.record(n)["rest"].(string); rest != "" {
		return "~" + rest
	}
	return ""
}

// B71: the order is that of the file, and times that go back are shown and counted.
func TestBackwardTimes(t *testing.T) {
	for _, e := range versions {
		s := &scene.Scene{}
		c, u := greet(s, e)
		u.Send(fromClient, scene.Original(1))
		u.Send(fromClient, scene.Viewpoint(1, 1))
		s.Wait(-time.Hour)
		u.Send(fromClient, counter)
		s.Wait(time.Hour)
		u.Send(fromServer, scene.Ack(0x35, 1))
		c.Send(fromServer, chat(1))
		c.Send(fromServer, chat(2))
		s.Swap(s.Len(), s.Len()-1)
		out := show(t, s)
		out.wantTexts("1 2")
		out.counts("backward_times", 2)
		if r := out.record(5); r["ack"].(map[string]any)["state"] != "acked" {
			t.Errorf("the packet of an hour ago ends the wait: %v", r["ack"])
		}
		file := writeTemp(t, "back.pcap", s.Pcap(1))
		if text := good(t, "decode", "-t", "d", file); !strings.Contains(text, "-3599.999") || !strings.Contains(text, "-0.001") {
			t.Errorf("no negative time in\n%s", text)
		}
	}
}

// B73: blocks that nobody knows, and sections of another order, change nothing.
func TestBlocksAndSections(t *testing.T) {
	one := session(versions[0], nil)
	le, be := binary.LittleEndian, binary.BigEndian
	names := append(le.AppendUint16(le.AppendUint16(nil, 1), 15), "\x0a\x00\x00\x01server\x00\x00\x00\x00\x00\x00\x00"...)
	others := [][]byte{
		block(le, 0xbad, le.AppendUint32(nil, 32473)), block(le, 0x40000bad, []byte("custom")), block(le, 4, names),
		block(le, 10, []byte("secrets")), block(le, 9, []byte("MESSAGE=journal\n")), block(le, 5, make([]byte, 12)),
	}
	want := showFile(t, one.Pcap(1))
	got := showFile(t, pcapng(one.Pcap(1), le, 1, others...))
	if !equal(got.objects, want.objects) {
		t.Errorf("with other blocks: got\n%s", strings.Join(got.lines(), "\n"))
	}
	if strings.Contains(got.text, "server:") {
		t.Error("a name is used that nobody asked for")
	}
	raw := session(versions[1], func(ip string) string { return ip })
	both := append(pcapng(one.Pcap(1), le, 1), pcapng(raw.Pcap(101), be, 101)...)
	out := showFile(t, both)
	out.want("record", sessionRecords+sessionRecords)
	if a, b := out.record(0), out.record(6); a["session"] != 1.0 || b["session"] != 2.0 {
		t.Errorf("got sessions %v and %v", a["session"], b["session"])
	}
}

// B74: what a file is, its content says.
func TestMisnamedFiles(t *testing.T) {
	data := plainSession()
	want := good(t, "decode", writeTemp(t, "a.pcap", data))
	for name, content := range map[string][]byte{
		"pcap.pcapng": data, "pcapng.pcap": pcapng(data, binary.LittleEndian, 1), "gz.pcap": gzipped(t, data), "zst.txt": zstandard(t, data),
	} {
		if got := good(t, "decode", writeTemp(t, name, content)); got != want {
			t.Errorf("%s: %s", name, firstDifference(got, want))
		}
	}
	for content, looks := range map[string]string{"hello\n": "text", "PK\x03\x04\x14\x00\x00\x00": "a zip archive", "\x7fELF\x02\x01\x01\x00": "an ELF program"} {
		out := opscope(t, "decode", writeTemp(t, "x.pcap", []byte(content)))
		if out.code != exitInput || !strings.Contains(out.err, "not a capture: looks like "+looks) || strings.Count(out.err, "\n") != 1 || out.out != "" {
			t.Errorf("%q: exit code %d, %q", content, out.code, out.err)
		}
	}
}

// gone is a reader whose device goes away.
type gone struct{ io.Reader }

var errGone = errors.New("device not configured")

func (g gone) Read(p []byte) (int, error) {
	n, err := g.Reader.Read(p)
	if err == io.EOF {
		err = errGone
	}
	return n, err
}

// B76: a read error ends the run, is printed, and what came before is decoded.
func TestReadErrors(t *testing.T) {
	data := plainSession()
	for name, cut := range map[string]int{"between packets": len(data), "inside a packet": len(data) - 5} {
		r := opscopeReading(t, gone{bytes.NewReader(data[:cut])}, "decode", "-T", "json", "-")
		if r.code != exitInput || !strings.Contains(r.err, "device not configured") || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%s: exit code %d, %q", name, r.code, r.err)
		}
		if n := len(records(objects(t, r.out))); n < 5 {
			t.Errorf("%s: %d records", name, n)
		}
	}
}

// hostile are texts that would drive a terminal, or fool who reads it.
var hostile = []string{
	"\x1b[2J", "\x1b]52;c;QUJD\x07", "\x9b2J", "\u202egnp.exe", "a\rb", "\x07", "\x00hidden", "\xff\xfe\x80", "\xe2\x80\xae", "\u2028", "\u009b31m",
	strings.Repeat("A", 10_000), // a frame has at most 10,242 bytes
}

// obeyed returns what of a text a terminal would obey.
func obeyed(text string) []string {
	var list []string
	for i, r := range text {
		switch {
		case r == '\n':
		case r < ' ', r >= 0x7f && r < 0xa0, r >= 0x202a && r <= 0x202e, r == 0x2028, r == 0x2029, r >= 0x2066 && r <= 0x2069:
			list = append(list, fmt.Sprintf("%#x at %d", r, i))
		}
	}
	if !utf8.ValidString(text) {
		list = append(list, "invalid UTF-8")
	}
	return list
}

// B77: nothing that comes off the wire drives the terminal, in any output.
func TestHostileTexts(t *testing.T) {
	for _, e := range versions {
		s := &scene.Scene{}
		c, u := greet(s, e)
		for _, text := range hostile {
			c.Send(fromServer, scene.Frame(0x23, scene.BE16(len(text)+1)+text+"\x00"))
			c.Send(fromServer, scene.Frame(0x23, scene.BE16(len(text)+2)+text)) // an error that quotes, perhaps
			if len(text) < 1000 {
				u.Send(fromClient, "\x13\x01"+scene.BE16(len(text)+1)+text+"\x00")
				u.Send(fromClient, "\xfe"+text)
			}
		}
		data := s.Pcap(1)
		for _, args := range [][]string{nil, {"-v"}, {"-V", "-x"}, {"--tables"}, {"--width", "-1"}, {"-q"}, {"--raw", "-T", "json"}, {"-T", "json"}} {
			r := opscopeReading(t, bytes.NewReader(data), append([]string{"decode", "-"}, args...)...)
			if bad := obeyed(r.out + r.err); r.code != exitDone || len(bad) > 0 {
				t.Errorf("%v: exit code %d, %q", args, r.code, bad[:min(len(bad), 5)])
			}
			if slices.Contains(args, "json") {
				objects(t, r.out)
			}
		}
		lines := opscopeReading(t, bytes.NewReader(data), "decode", "-")
		for line := range strings.Lines(lines.out) {
			if n := utf8.RuneCountInString(line); n > 400 {
				t.Fatalf("a line of %d columns", n)
			}
		}
		full := opscopeReading(t, bytes.NewReader(data), "decode", "-v", "-")
		if !strings.Contains(full.out, "(10,000 bytes)") {
			t.Errorf("the length of the long text is not shown")
		}
		if !strings.Contains(full.out, `\x1b[2J`) || !strings.Contains(full.out, `\u009b2J`) || !strings.Contains(full.out, `\x07`) {
			t.Error("the texts are not shown as escapes")
		}
	}
	// Names of files are texts, too, in errors and in headings.
	name := writeTemp(t, "x\x1b[2J\u202e.pcap", plainSession())
	for _, args := range [][]string{{"decode", name, name}, {"decode", name + "\x9b"}, {"decode", "--schema", "\x1b[2J", name}, {"\x1b[2J"}, {"decode", "-T", "\x1b[2J", name}} {
		if r := opscope(t, args...); len(obeyed(r.out+r.err)) > 0 {
			t.Errorf("%q prints %q", args, r.out+r.err)
		}
	}
}

// B80: each line is one object without a key that stands twice, also where a frame has
// several structures of one kind, and fields of one name.
func TestEqualNames(t *testing.T) {
	s := &scene.Scene{}
	c := s.TCP(versions[0].client, versions[0].server)
	c.Open()
	c.Send(fromServer, scene.AsFrame(scene.Translation(4)), scene.AsFrame(scene.View), scene.Frame(0x15, "\x00\x00\x00\x03\xff\x00\xfe\x00\xfd\x00"))
	out := show(t, s) // which parses strictly
	if r := out.record(0); len(r["fields"].(map[string]any)) == 0 || !strings.Contains(fmt.Sprint(r["fields"]), "[map[") {
		t.Errorf("got fields %v, want an array of objects", r["fields"])
	}
}
