package capture

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"opscope/schema/wire"
)

// B64, B73: sections of either order, each with interfaces of its own, which
// count on over the file.
func TestPcapngSections(t *testing.T) {
	b := join(
		little.section(),
		little.iface(1, 65535, little.option(optName, []byte("eth0"))),
		little.iface(276, 0, little.option(optResolution, []byte{9}), little.option(optEnd, nil)),
		little.packet(1, 5_000_000_007, 100, "one"),
		little.packet(0, 5_000_007, 3, "two"),
		big.section(),
		big.iface(101, 0, big.option(optName, []byte("tun0"))),
		big.packet(0, 6_000_008, 5, "three"),
	)
	all, f := mustRead(t, b)
	type row struct {
		data   string
		length int
		link   int
		iface  int
		time   time.Time
		digits int
	}
	want := []row{
		{"one", 100, 276, 1, at(5, 7), 9},
		{"two", 3, 1, 0, at(5, 7000), 6},
		{"three", 5, 101, 2, at(6, 8000), 6},
	}
	var got []row
	for i, p := range all {
		got = append(got, row{string(p.Data), p.Length, int(p.Link), p.Interface, p.Time, p.Digits})
		if p.Number != i+1 {
			t.Errorf("packet %d has number %d", i+1, p.Number)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	wantFaces := []Interface{{"eth0", 1, 65535, 3}, {"", 276, 0, 0}, {"tun0", 101, 0, 3}}
	if !slices.Equal(f.Interfaces(), wantFaces) || len(f.Warnings()) != 0 {
		t.Errorf("got interfaces %v, warnings %q", f.Interfaces(), f.Warnings())
	}
}

func TestPcapngResolutions(t *testing.T) {
	for name, c := range map[string]struct {
		resolution byte
		stamp      uint64
		want       time.Time
		digits     int
	}{
		"seconds":               {0, 12, at(12, 0), 0},
		"milliseconds":          {3, 12_345, at(12, 345e6), 3},
		"microseconds":          {6, 12_345_678, at(12, 345_678e3), 6},
		"nanoseconds":           {9, 12_345_678_901, at(12, 345_678_901), 9},
		"picoseconds":           {12, 12_345_678_901_999, at(12, 345_678_901), 9},
		"10^-19":                {19, 12_345_678_901_234_567_890, at(1, 234_567_890), 9},
		"2^-0":                  {0x80, 12, at(12, 0), 9},
		"2^-10":                 {0x80 | 10, 12<<10 | 512, at(12, 5e8), 9},
		"2^-32":                 {0x80 | 32, 12<<32 | 1<<30, at(12, 25e7), 9},
		"2^-63":                 {0x80 | 63, 1<<63 | 1<<62, at(1, 5e8), 9},
		"the end of nanosecond": {9, 1<<64 - 1, at(18446744073, 709551615), 9},
	} {
		t.Run(name, func(t *testing.T) {
			all, _ := mustRead(t, join(
				big.section(),
				big.iface(1, 0, big.option(optResolution, []byte{c.resolution})),
				big.packet(0, c.stamp, 1, "x"),
			))
			if p := all[0]; !p.Time.Equal(c.want) || p.Digits != c.digits {
				t.Errorf("got %v, %d digits, want %v, %d", p.Time, p.Digits, c.want, c.digits)
			}
		})
	}
}

func TestPcapngTimeOffset(t *testing.T) {
	offset := little.order.AppendUint64(nil, 1<<64-3600)
	all, _ := mustRead(t, join(
		little.section(),
		little.iface(1, 0, little.option(optTimeOffset, offset)),
		little.packet(0, 4000e6, 1, "x"),
	))
	if !all[0].Time.Equal(at(400, 0)) {
		t.Errorf("got %v", all[0].Time)
	}
}

func TestPcapngPacketKinds(t *testing.T) {
	all, f := mustRead(t, join(
		little.section(),
		little.iface(113, 4),
		little.simple(6, "abcd"),
		little.simple(3, "abc"),
		little.old(0, 1_000_001, "older"),
	))
	var got []string
	for _, p := range all {
		got = append(got, string(p.Data)+" "+strconv.Itoa(p.Length)+" "+p.Time.Format("05.000000"))
	}
	want := []string{"abcd 6 00.000000", "abc 3 00.000000", "older 5 01.000001"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !slices.Equal(f.Warnings(), []string{warnNoTime, warnSnapLen}) {
		t.Errorf("got warnings %q", f.Warnings())
	}
}

// B73: what nobody looks into may be of any kind and any length.
func TestPcapngOtherBlocks(t *testing.T) {
	b := join(little.section(), little.iface(1, 0))
	for _, kind := range []uint32{4, 5, 7, 9, 10, 11, 0xbad, 0x40000bad, 0x80000001} {
		b = append(b, little.block(kind, []byte("something"))...)
	}
	b = append(b, little.block(12, nil)...)
	b = append(b, little.block(13, make([]byte, 5*windowSize))...)
	b = append(b, little.packet(0, 7, 1, "x")...)
	if all, f := mustRead(t, b); len(all) != 1 || f.Offset() != int64(len(b)) {
		t.Errorf("got %d packets and offset %d of %d", len(all), f.Offset(), len(b))
	} else if len(f.in.buf) != windowSize {
		t.Errorf("the buffer grew to %d bytes", len(f.in.buf))
	}
}

// A block with a packet may be larger than the buffer: its comments may.
func TestPcapngLargeBlock(t *testing.T) {
	body := make([]byte, enhancedBody+4+3*windowSize)
	binary.LittleEndian.PutUint32(body[12:], 4)
	binary.LittleEndian.PutUint32(body[16:], 4)
	b := join(little.section(), little.iface(1, 0), little.block(enhancedPacket, body), little.packet(0, 7, 1, "x"))
	if all, _ := mustRead(t, b); len(all) != 2 || len(all[0].Data) != 4 || string(all[1].Data) != "x" {
		t.Errorf("got %v", all)
	}
}

func TestPcapngDamage(t *testing.T) {
	start := join(little.section(), little.iface(1, 0), little.packet(0, 1, 4, "good"))
	n := len(start)
	patch := func(b []byte, at int, v uint32) []byte {
		binary.LittleEndian.PutUint32(b[at:], v)
		return b
	}
	packet := func() []byte { return little.packet(0, 1, 4, "data") }
	for name, c := range map[string]struct {
		block  []byte
		offset int
		path   string
	}{
		"a total length of 0":               {patch(packet(), 4, 0), n + 4, "enhanced packet.total_length"},
		"a total length below the least":    {patch(packet(), 4, 28), n + 4, "enhanced packet.total_length"},
		"a total length that is odd":        {patch(packet(), 4, 37), n + 4, "enhanced packet.total_length"},
		"a total length of 4 GiB":           {patch(packet(), 4, 0xfffffffc), n + 4, "enhanced packet.total_length"},
		"an unknown block of length 8":      {patch(little.block(77, nil), 4, 8), n + 4, "block.total_length"},
		"lengths that do not match":         {patch(packet(), 32, 40), n + 32, "enhanced packet.trailing_length"},
		"the same in an unknown block":      {patch(little.block(77, nil), 8, 40), n + 8, "block.trailing_length"},
		"more data than the block has":      {patch(packet(), 8+12, 5), n + 20, "enhanced packet.captured_length"},
		"an interface that is not there":    {patch(packet(), 8, 1), n + 8, "enhanced packet.interface"},
		"a simple packet beyond its block":  {little.simple(5, "data"), n + 8, "simple packet.length"},
		"an old packet beyond its block":    {patch(little.old(0, 1, "data"), 8+12, 9), n + 20, "packet.captured_length"},
		"an option beyond its block":        {little.iface(1, 0, little.order.AppendUint32(nil, 9<<16|2)), n + 20, "interface description.option"},
		"a resolution of 10^-20":            {little.iface(1, 0, little.option(optResolution, []byte{20})), n + 20, "interface description.if_tsresol"},
		"a resolution of 2^-64":             {little.iface(1, 0, little.option(optResolution, []byte{0xc0})), n + 20, "interface description.if_tsresol"},
		"a section of no known order":       {patch(little.section(), 8, 0x12345678), n + 8, "section header.byte_order"},
		"a section of version 2":            {patch(little.section(), 12, 2), n + 12, "section header.version"},
		"a packet before its own interface": {join(big.section(), big.packet(0, 1, 1, "x")), n + 28 + 8, "enhanced packet.interface"},
	} {
		t.Run(name, func(t *testing.T) {
			all, _, err := readAll(strings.NewReader(string(start) + string(c.block)))
			e := wantError(t, err, wire.Malformed, c.offset)
			if len(all) != 1 || e.Path != c.path || e.Want == "" || e.Got == "" {
				t.Errorf("got %d packets, then %v, path %q", len(all), err, e.Path)
			}
		})
	}
}

// A file cannot have us remember interfaces without end.
func TestPcapngInterfacesAreBounded(t *testing.T) {
	b := little.section()
	for range maxInterfaces + 1 {
		b = append(b, little.iface(1, 0)...)
	}
	_, f, err := readAll(strings.NewReader(string(b)))
	wantError(t, err, wire.Malformed, len(b)-20)
	if len(f.Interfaces()) != maxInterfaces {
		t.Errorf("got %d interfaces", len(f.Interfaces()))
	}
}
