package capture

import (
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"opscope/dissect"
	"opscope/schema/wire"
)

// pcapFile builds a pcap file with one packet for each of data. Its times are
// 1,000,000,000.000007, .000008 and so on, in units of the magic number.
type pcapFile struct {
	order   binary.AppendByteOrder
	magic   uint32
	zone    uint32
	snapLen uint32
	network uint32
	extra   int // bytes more in the header of each packet
	lengths []uint32
}

func (f pcapFile) build(data ...string) []byte {
	b := f.order.AppendUint32(nil, f.magic)
	b = f.order.AppendUint16(b, 2)
	b = f.order.AppendUint16(b, 4)
	for _, n := range []uint32{f.zone, 0, f.snapLen, f.network} {
		b = f.order.AppendUint32(b, n)
	}
	for i, d := range data {
		length := uint32(len(d))
		if i < len(f.lengths) {
			length = f.lengths[i]
		}
		for _, n := range []uint32{1e9, uint32(7 + i), uint32(len(d)), length} {
			b = f.order.AppendUint32(b, n)
		}
		b = append(b, make([]byte, f.extra)...)
		b = append(b, d...)
	}
	return b
}

var plain = pcapFile{order: binary.LittleEndian, magic: 0xa1b2c3d4, snapLen: 65535, network: 1}

// ng builds pcapng blocks.
type ng struct {
	order binary.AppendByteOrder
}

func (g ng) block(kind uint32, body []byte) []byte {
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	b := g.order.AppendUint32(nil, kind)
	b = g.order.AppendUint32(b, uint32(12+len(body)))
	b = append(b, body...)
	return g.order.AppendUint32(b, uint32(12+len(body)))
}

func (g ng) section() []byte {
	b := g.order.AppendUint32(nil, 0x1a2b3c4d)
	b = g.order.AppendUint16(b, 1)
	b = g.order.AppendUint16(b, 0)
	b = g.order.AppendUint64(b, 1<<64-1)
	return g.block(sectionHeader, b)
}

func (g ng) option(code uint16, value []byte) []byte {
	b := g.order.AppendUint16(nil, code)
	b = g.order.AppendUint16(b, uint16(len(value)))
	b = append(b, value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func (g ng) iface(link uint16, snapLen uint32, options ...[]byte) []byte {
	b := g.order.AppendUint16(nil, link)
	b = g.order.AppendUint16(b, 0)
	b = g.order.AppendUint32(b, snapLen)
	for _, o := range options {
		b = append(b, o...)
	}
	return g.block(interfaceDescription, b)
}

func (g ng) packet(iface uint32, stamp uint64, length uint32, data string) []byte {
	b := g.order.AppendUint32(nil, iface)
	for _, n := range []uint32{uint32(stamp >> 32), uint32(stamp), uint32(len(data)), length} {
		b = g.order.AppendUint32(b, n)
	}
	return g.block(enhancedPacket, append(b, data...))
}

func (g ng) old(iface uint16, stamp uint64, data string) []byte {
	b := g.order.AppendUint16(nil, iface)
	b = g.order.AppendUint16(b, 0xffff)
	for _, n := range []uint32{uint32(stamp >> 32), uint32(stamp), uint32(len(data)), uint32(len(data))} {
		b = g.order.AppendUint32(b, n)
	}
	return g.block(oldPacket, append(b, data...))
}

func (g ng) simple(length uint32, data string) []byte {
	return g.block(simplePacket, append(g.order.AppendUint32(nil, length), data...))
}

var (
	little = ng{binary.LittleEndian}
	big    = ng{binary.BigEndian}
)

func join(parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// readAll returns the packets of a file, with their data copied, and what ended
// it: nil for a proper end.
func readAll(r io.Reader) ([]dissect.Packet, *File, error) {
	f, err := OpenReader("test", r)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if f.Format() == NDJSON {
		_, err := io.Copy(io.Discard, f.Text())
		return nil, f, err
	}
	var all []dissect.Packet
	for {
		var p dissect.Packet
		switch err := f.Next(&p); err {
		case nil:
			p.Data = append([]byte(nil), p.Data...)
			all = append(all, p)
		case io.EOF:
			return all, f, nil
		default:
			return all, f, err
		}
	}
}

// mustRead reads an intact file.
func mustRead(t *testing.T, b []byte) ([]dissect.Packet, *File) {
	t.Helper()
	all, f, err := readAll(strings.NewReader(string(b)))
	if err != nil {
		t.Fatalf("%v\n% x", err, b)
	}
	return all, f
}

// wantError checks for a *wire.Error of a kind at an offset.
func wantError(t *testing.T, err error, kind wire.Kind, offset int) *wire.Error {
	t.Helper()
	var e *wire.Error
	if !errors.As(err, &e) {
		t.Fatalf("got error %v, want a *wire.Error", err)
	}
	if e.Kind != kind || e.Offset != offset {
		t.Fatalf("got %v, want %s at byte %d", err, kind, offset)
	}
	return e
}

func at(seconds int64, nanos int64) time.Time { return time.Unix(seconds, nanos).UTC() }
