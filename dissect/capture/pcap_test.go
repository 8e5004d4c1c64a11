package capture

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"opscope/schema/wire"
)

// B64: every magic number, in either order.
func TestPcapVariants(t *testing.T) {
	for name, c := range map[string]struct {
		file   pcapFile
		nanos  int64
		digits int
	}{
		"little-endian microseconds": {pcapFile{order: binary.LittleEndian, magic: 0xa1b2c3d4}, 7000, 6},
		"big-endian microseconds":    {pcapFile{order: binary.BigEndian, magic: 0xa1b2c3d4}, 7000, 6},
		"little-endian nanoseconds":  {pcapFile{order: binary.LittleEndian, magic: 0xa1b23c4d}, 7, 9},
		"big-endian nanoseconds":     {pcapFile{order: binary.BigEndian, magic: 0xa1b23c4d}, 7, 9},
		"little-endian modified":     {pcapFile{order: binary.LittleEndian, magic: 0xa1b2cd34, extra: 8}, 7000, 6},
		"big-endian modified":        {pcapFile{order: binary.BigEndian, magic: 0xa1b2cd34, extra: 8}, 7000, 6},
		"a time zone that is ignored, B65": {
			pcapFile{order: binary.LittleEndian, magic: 0xa1b2c3d4, zone: 3600}, 7000, 6},
	} {
		t.Run(name, func(t *testing.T) {
			c.file.network, c.file.snapLen = 276, 65535
			all, f := mustRead(t, c.file.build("first", "", "third"))
			if len(all) != 3 || f.Format() != Pcap || len(f.Warnings()) != 0 {
				t.Fatalf("got %d packets of %s, warnings %q", len(all), f.Format(), f.Warnings())
			}
			p := all[0]
			if !p.Time.Equal(at(1e9, c.nanos)) || p.Digits != c.digits || p.Time.Location().String() != "UTC" {
				t.Errorf("got time %v with %d digits", p.Time, p.Digits)
			}
			if string(p.Data) != "first" || p.Length != 5 || p.Link != 276 || p.Number != 1 || all[2].Number != 3 {
				t.Errorf("got %+v", p)
			}
		})
	}
}

// The bits above the link type tell of the frame check sequence.
func TestPcapLinkTypeIsTheLowHalf(t *testing.T) {
	file := plain
	file.network = 0x4400_0001
	all, f := mustRead(t, file.build("x"))
	if all[0].Link != 1 || f.Interfaces()[0].Link != 1 {
		t.Errorf("got link type %d", all[0].Link)
	}
}

// B68: lengths that contradict each other are read, and said once.
func TestPcapOddLengths(t *testing.T) {
	long := strings.Repeat("x", 1500)
	for name, c := range map[string]struct {
		snapLen  uint32
		lengths  []uint32
		want     int
		warnings []string
	}{
		"a snap length of 0 means none":           {0, nil, 1500, nil},
		"a packet above the snap length":          {96, nil, 1500, []string{warnSnapLen}},
		"a packet longer than it was on the wire": {65535, []uint32{12, 12}, 1500, []string{warnLength}},
		"a packet cut by the snap length":         {1500, []uint32{9000}, 9000, nil},
	} {
		t.Run(name, func(t *testing.T) {
			file := plain
			file.snapLen, file.lengths = c.snapLen, c.lengths
			all, f := mustRead(t, file.build(long, long))
			if len(all) != 2 || len(all[0].Data) != 1500 || all[0].Length != c.want {
				t.Errorf("got %d packets, the first of %d bytes, %d on the wire", len(all), len(all[0].Data), all[0].Length)
			}
			if !slices.Equal(f.Warnings(), c.warnings) {
				t.Errorf("got warnings %q, want %q", f.Warnings(), c.warnings)
			}
		})
	}
}

// B68: what no capture can hold is damage, with its place.
func TestPcapImpossibleLength(t *testing.T) {
	b := plain.build("first", "second")
	binary.LittleEndian.PutUint32(b[pcapHeader+packetHeader+5+8:], MaxPacket+1)
	all, _, err := readAll(strings.NewReader(string(b)))
	e := wantError(t, err, wire.Malformed, pcapHeader+packetHeader+5+8)
	if len(all) != 1 || e.Path != "packet 2.captured_length" {
		t.Errorf("got %d packets, then %v", len(all), err)
	}
}

func TestPcapOddVersion(t *testing.T) {
	b := plain.build("x")
	b[6] = 9
	if _, f := mustRead(t, b); !slices.Equal(f.Warnings(), []string{warnVersion}) {
		t.Errorf("got warnings %q", f.Warnings())
	}
}

// The largest packet, right behind others, so that it lies across refills.
func TestPcapLargestPackets(t *testing.T) {
	file := plain
	file.snapLen = MaxPacket
	var data []string
	for i := range 9 {
		data = append(data, strings.Repeat(string(rune('a'+i)), MaxPacket-i))
	}
	all, _ := mustRead(t, file.build(data...))
	for i, p := range all {
		if string(p.Data) != data[i] {
			t.Errorf("packet %d came out wrong", i+1)
		}
	}
	if len(all) != len(data) {
		t.Errorf("got %d packets", len(all))
	}
}
