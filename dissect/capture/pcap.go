package capture

import (
	"encoding/binary"
	"io"
	"math/bits"
	"strconv"
	"time"

	"opscope/dissect"
	"opscope/schema/wire"
)

// A pcap file is a header and packets, each with a header of its own. The magic
// number tells the order of bytes of all numbers and the unit of the fractions of
// seconds. Source: draft-ietf-opsawg-pcap, sections 4 and 5.
//
//	0   magic          4
//	4   version        2 + 2, always 2.4
//	8   time zone      4, ignored as the draft says: times are UTC
//	12  -              4
//	16  snap length    4
//	20  network        4: link type in the low 16 bits, above it what is
//	                   known of the frame check sequence
//
//	0   seconds        4
//	4   fraction       4
//	8   captured       4, length of the data that follows
//	12  length         4, on the wire
//
// A 'modified' file has 8 more bytes in the header of each packet: interface
// index, EtherType, packet type. They are passed over.
const (
	pcapHeader     = 24
	packetHeader   = 16
	modifiedHeader = 24
)

// pcapVariant is what a magic number says about its file.
type pcapVariant struct {
	swapped bool // numbers are little-endian
	nano    bool
	header  int // bytes in front of each packet
}

// pcapVariants are the magic numbers as they read in big-endian order.
var pcapVariants = map[uint32]pcapVariant{
	0xa1b2c3d4: {header: packetHeader},
	0xd4c3b2a1: {header: packetHeader, swapped: true},
	0xa1b23c4d: {header: packetHeader, nano: true},
	0x4d3cb2a1: {header: packetHeader, nano: true, swapped: true},
	0xa1b2cd34: {header: modifiedHeader},
	0x34cdb2a1: {header: modifiedHeader, swapped: true},
}

// The remarks on packets of either format.
const (
	warnSnapLen = "a packet holds more bytes than the snap length allows; read all the same"
	warnLength  = "a packet holds more bytes than it is said to have had on the wire; taken to be that long"
	warnVersion = "the version of the file is not 2.4; read as if it were"
)

// pcap reads the packets of a pcap file.
type pcap struct {
	pcapVariant
	in       *window
	warnings *warnings
	limits   Limits
	from     Interface
	unit     int64 // nanoseconds in a unit of the fraction
	digits   int
	number   int // of the last packet
}

// openPcap reads the header of a file whose magic number is known.
func openPcap(in *window, w *warnings, l Limits) (*pcap, error) {
	b := in.peek(pcapHeader)
	if len(b) < pcapHeader {
		return nil, in.short("pcap", "header", 0, pcapHeader)
	}
	f := &pcap{in: in, warnings: w, limits: l, unit: 1000, digits: 6}
	f.pcapVariant = pcapVariants[binary.BigEndian.Uint32(b)]
	if f.nano {
		f.unit, f.digits = 1, 9
	}
	if f.uint16(b[4:]) != 2 || f.uint16(b[6:]) != 4 {
		w.add(warnVersion)
	}
	f.from = Interface{
		SnapLen: int(f.uint32(b[16:])),
		Link:    dissect.LinkType(f.uint32(b[20:]) & 0xffff),
		Lacks:   nanoseconds - f.digits,
	}
	in.use(pcapHeader)
	return f, nil
}

func (f *pcap) interfaces() []Interface { return []Interface{f.from} }

// next reads a packet. The numbers are read without a wire.Reader: this runs
// once per packet, and what it reads was asked for in one piece.
func (f *pcap) next(p *dissect.Packet) error {
	b := f.in.peek(f.header)
	if len(b) < f.header {
		if f.in.atEnd() {
			return io.EOF
		}
		return f.in.short("pcap", f.path("header"), 0, int64(f.header))
	}
	seconds, fraction := f.uint32(b), f.uint32(b[4:])
	captured, length := int(f.uint32(b[8:])), int(f.uint32(b[12:]))
	if captured > f.limits.Packet {
		return &wire.Error{
			Layer:  "pcap",
			Path:   f.path("captured_length"),
			Offset: int(f.in.offset()) + 8,
			Want:   "at most " + strconv.Itoa(f.limits.Packet),
			Got:    strconv.Itoa(captured),
			Limit:  LimitPacket,
		}
	}
	whole := f.header + captured
	b = f.in.peek(whole)
	if len(b) < whole {
		return f.in.short("pcap", f.path("data"), f.header, int64(captured))
	}
	f.in.use(whole)
	f.number++
	fillPacket(p, b[f.header:], length, &f.from, f.warnings)
	p.Time = time.Unix(int64(seconds), int64(fraction)*f.unit).UTC()
	p.Digits = f.digits
	p.Interface, p.Several = 0, false
	return nil
}

// fillPacket sets data, lengths and link type of a packet of either format.
func fillPacket(p *dissect.Packet, data []byte, length int, from *Interface, w *warnings) {
	if from.SnapLen > 0 && len(data) > from.SnapLen {
		w.add(warnSnapLen)
	}
	if len(data) > length {
		w.add(warnLength)
		length = len(data)
	}
	p.Data, p.Length, p.Link = data, length, from.Link
}

// path names a part of the packet after the last.
func (f *pcap) path(part string) string {
	return "packet " + strconv.Itoa(f.number+1) + "." + part
}

func (v pcapVariant) uint16(b []byte) uint16 {
	if v.swapped {
		return binary.LittleEndian.Uint16(b)
	}
	return binary.BigEndian.Uint16(b)
}

func (v pcapVariant) uint32(b []byte) uint32 {
	n := binary.LittleEndian.Uint32(b)
	if v.swapped {
		return n
	}
	return bits.ReverseBytes32(n)
}
