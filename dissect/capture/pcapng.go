package capture

import (
	"encoding/binary"
	"io"
	"math"
	"math/bits"
	"strconv"
	"time"

	"opscope/dissect"
	"opscope/schema/wire"
)

// A pcapng file is a list of blocks, each with its length at both ends, in
// sections that have an order of bytes and a list of interfaces of their own.
// Source: draft-ietf-opsawg-pcapng, sections 3 and 4.
//
//	0      type          4
//	4      total length  4, of all that is listed here
//	8      body
//	n - 4  total length  4, once more
const (
	sectionHeader        = 0x0a0d0d0a // reads the same in either order
	interfaceDescription = 1
	oldPacket            = 2
	simplePacket         = 3
	enhancedPacket       = 6
)

const (
	blockFrame = 12 // bytes of a block around its body
	bodyOffset = 8
)

// The bytes that the body of a block has at least.
const (
	sectionBody      = 16 // byte-order magic, version, section length
	interfaceBody    = 8  // link type, -, snap length
	oldPacketBody    = 20 // interface 2, drops 2, time 8, captured 4, length 4
	simplePacketBody = 4  // length
	enhancedBody     = 20 // interface 4, time 8, captured 4, length 4
)

// maxInterfaces and maxName bound what a file can have us remember. A packet of
// the old kind can name no more interfaces than that, and no system has names as long.
const (
	maxInterfaces = 1 << 16
	maxName       = 255
)

// The options of an interface that matter here.
const (
	optEnd        = 0
	optName       = 2
	optResolution = 9
	optTimeOffset = 14
)

// warnNoTime is a remark on simple packets.
const warnNoTime = "simple packets carry no time; shown at the start of 1970"

// pcapng reads the packets of a pcapng file.
type pcapng struct {
	in       *window
	warnings *warnings
	limits   Limits
	swapped  bool // numbers are big-endian
	all      []Interface
	clocks   []clock // one per interface
	section  int     // index of the first interface of the section
}

// openPcapng reads the first section header.
func openPcapng(in *window, w *warnings, l Limits) (*pcapng, error) {
	f := &pcapng{in: in, warnings: w, limits: l}
	b, err := f.block()
	if err != nil {
		return nil, err
	}
	return f, f.finish(&b)
}

func (f *pcapng) interfaces() []Interface { return f.all }

// block is the head of a block, and its body if it was read in one piece.
type block struct {
	kind  uint32
	total int64  // its length
	body  []byte // nil for a block that is passed over
	tail  uint32 // its length once more, behind a body
}

// next reads blocks until one holds a packet.
func (f *pcapng) next(p *dissect.Packet) error {
	for !f.usual(p) {
		b, err := f.block()
		if err != nil {
			return err
		}
		switch b.kind {
		case interfaceDescription:
			err = f.describe(b.body)
		case enhancedPacket:
			err = f.enhanced(p, b.body)
		case oldPacket:
			err = f.old(p, b.body)
		case simplePacket:
			err = f.simple(p, b.body)
		}
		if err != nil {
			return err
		}
		if err := f.finish(&b); err != nil {
			return err
		}
		if b.holdsPacket() {
			return nil
		}
	}
	return nil
}

// usual reads a block that is an enhanced packet with nothing odd about it, as most are. It
// returns false, and has done nothing, for any other.
func (f *pcapng) usual(p *dissect.Packet) bool {
	const captured, data, least = bodyOffset + 12, bodyOffset + enhancedBody, blockFrame + enhancedBody
	b := f.in.buffered()
	if len(b) < least || f.uint32(b) != enhancedPacket {
		return false
	}
	if f.uint32(b[4:]) > uint32(min(len(b), f.limits.Block)) {
		return false
	}
	total, n := int(f.uint32(b[4:])), f.uint32(b[captured:])
	if total < least || total%4 != 0 || n > uint32(min(total-least, f.limits.Packet)) || int(f.uint32(b[total-4:])) != total {
		return false
	}
	i := f.section + int(f.uint32(b[bodyOffset:]))
	if i >= len(f.all) {
		return false
	}
	f.stamp(p, i, b[bodyOffset:])
	fillPacket(p, b[data:][:n:n], int(f.uint32(b[captured+4:])), &f.all[i], f.warnings)
	f.in.use(total)
	return true
}

func (b *block) holdsPacket() bool {
	return b.kind == enhancedPacket || b.kind == simplePacket || b.kind == oldPacket
}

// block reads the next block up to its trailing length, which finish reads. The
// offset of the window stays at the start of a block with a body.
func (f *pcapng) block() (block, error) {
	head := f.in.peek(bodyOffset)
	if len(head) < bodyOffset {
		if f.in.atEnd() {
			return block{}, io.EOF
		}
		return block{}, f.in.short("pcapng", "block header", 0, bodyOffset)
	}
	b := block{}
	if binary.BigEndian.Uint32(head) == sectionHeader {
		if err := f.readOrder(); err != nil {
			return block{}, err
		}
		head = f.in.peek(bodyOffset)
	}
	b.kind, b.total = f.uint32(head), int64(f.uint32(head[4:]))
	name, least := blockName(b.kind)
	if b.total < int64(blockFrame+least) || b.total%4 != 0 {
		want := "a multiple of 4, at least " + strconv.Itoa(blockFrame+least)
		return block{}, f.malformed(name+".total_length", 4, want, strconv.FormatInt(b.total, 10))
	}
	if least == 0 {
		if n := f.in.skip(b.total - 4); n < b.total-4 {
			return block{}, f.in.short("pcapng", name, 0, b.total-n)
		}
		return b, nil
	}
	if most := f.limits.Block; b.total > int64(most) {
		want := "at most " + strconv.Itoa(most)
		return block{}, f.beyond(LimitBlock, name+".total_length", 4, want, strconv.FormatInt(b.total, 10))
	}
	whole := f.in.peek(int(b.total))
	if len(whole) < int(b.total) {
		return block{}, f.in.short("pcapng", name, bodyOffset, b.total-bodyOffset)
	}
	b.body, b.tail = whole[bodyOffset:b.total-4], f.uint32(whole[b.total-4:])
	return b, nil
}

// finish checks the trailing length of a block and moves behind it.
func (f *pcapng) finish(b *block) error {
	if b.body != nil {
		if int64(b.tail) == b.total { // the usual case
			f.in.use(int(b.total))
			return nil
		}
		f.in.use(int(b.total) - 4)
	}
	name, _ := blockName(b.kind)
	tail := f.in.peek(4)
	if len(tail) < 4 {
		return f.in.short("pcapng", name+".trailing_length", 0, 4)
	}
	if n := int64(f.uint32(tail)); n != b.total {
		return f.malformed(name+".trailing_length", 0, strconv.FormatInt(b.total, 10), strconv.FormatInt(n, 10))
	}
	f.in.use(4)
	return nil
}

// blockName names a kind of block, and says how long its body is at least. That
// is 0 for a block that is passed over.
func blockName(kind uint32) (name string, least int) {
	switch kind {
	case sectionHeader:
		return "section header", sectionBody
	case interfaceDescription:
		return "interface description", interfaceBody
	case oldPacket:
		return "packet", oldPacketBody
	case simplePacket:
		return "simple packet", simplePacketBody
	case enhancedPacket:
		return "enhanced packet", enhancedBody
	}
	return "block", 0
}

// readOrder begins a section: the magic number after the head of its header
// tells the order of bytes, also that of the head. The version follows.
func (f *pcapng) readOrder() error {
	const order, version = bodyOffset, bodyOffset + 4
	b := f.in.peek(version + 4)
	if len(b) < version+4 {
		return f.in.short("pcapng", "section header.byte_order", order, 8)
	}
	switch magic := binary.BigEndian.Uint32(b[order:]); magic {
	case 0x1a2b3c4d:
		f.swapped = true
	case 0x4d3c2b1a:
		f.swapped = false
	default:
		return f.malformed("section header.byte_order", order, "0x1a2b3c4d in either order", hex(magic))
	}
	if major := f.uint16(b[version:]); major != 1 {
		return f.malformed("section header.version", version, "1", strconv.Itoa(int(major)))
	}
	f.section = len(f.all)
	return nil
}

// describe adds an interface.
func (f *pcapng) describe(body []byte) error {
	if len(f.all) == maxInterfaces {
		return f.malformed("interface description", 0, "at most "+strconv.Itoa(maxInterfaces)+" interfaces", "more")
	}
	from := Interface{
		Link:    dissect.LinkType(f.uint16(body)),
		SnapLen: int(f.uint32(body[4:])),
	}
	c := clock{units: 1e6, digits: 6}
	for at := interfaceBody; at+4 <= len(body); {
		code, n := f.uint16(body[at:]), int(f.uint16(body[at+2:]))
		at += 4
		if code == optEnd {
			break
		}
		if n > len(body)-at {
			left := size(int64(len(body)-at)) + " left"
			return f.malformed("interface description.option", bodyOffset+at, size(int64(n)), left)
		}
		value := body[at : at+n]
		switch {
		case code == optName:
			from.Name = string(value[:min(n, maxName)])
		case code == optResolution && n == 1:
			if !c.setResolution(value[0]) {
				const want = "10^-0 to 10^-19 or 2^-0 to 2^-63"
				return f.malformed("interface description.if_tsresol", bodyOffset+at, want, hex(uint32(value[0])))
			}
		case code == optTimeOffset && n == 8:
			c.offset = int64(f.uint64(value))
		}
		at += (n + 3) &^ 3
	}
	from.Lacks = nanoseconds - c.digits
	f.all = append(f.all, from)
	f.clocks = append(f.clocks, c)
	return nil
}

// enhanced reads a packet of the usual kind.
func (f *pcapng) enhanced(p *dissect.Packet, body []byte) error {
	data, err := f.data("enhanced packet", body, enhancedBody, 12)
	if err != nil {
		return err
	}
	return f.fill(p, data, "enhanced packet", f.uint32(body), body)
}

// old reads a packet of the kind that enhanced packets replaced. It differs in
// the width of the interface only.
func (f *pcapng) old(p *dissect.Packet, body []byte) error {
	data, err := f.data("packet", body, oldPacketBody, 12)
	if err != nil {
		return err
	}
	return f.fill(p, data, "packet", uint32(f.uint16(body)), body)
}

// data returns the bytes of a packet whose captured length stands at an offset
// of the body.
func (f *pcapng) data(name string, body []byte, start, lengthAt int) ([]byte, error) {
	n := int64(f.uint32(body[lengthAt:]))
	if err := f.fits(name, ".captured_length", bodyOffset+lengthAt, n, len(body)-start); err != nil {
		return nil, err
	}
	return body[start : start+int(n)], nil
}

// fits returns an error for a packet of n bytes that is longer than its block has room
// for, or than a packet may be.
func (f *pcapng) fits(name, field string, at int, n int64, room int) error {
	switch {
	case n > int64(room):
		return f.malformed(name+field, at, "at most "+strconv.Itoa(room), strconv.FormatInt(n, 10))
	case n > int64(f.limits.Packet):
		return f.beyond(LimitPacket, name+field, at, "at most "+strconv.Itoa(f.limits.Packet), strconv.FormatInt(n, 10))
	}
	return nil
}

// fill sets p from a body of the enhanced or the old kind.
func (f *pcapng) fill(p *dissect.Packet, data []byte, name string, id uint32, body []byte) error {
	i, err := f.lookUp(name, id)
	if err != nil {
		return err
	}
	fillPacket(p, data, int(f.uint32(body[16:])), &f.all[i], f.warnings)
	f.stamp(p, i, body)
	return nil
}

// stamp sets when a packet came, and at which interface.
func (f *pcapng) stamp(p *dissect.Packet, i int, body []byte) {
	c := &f.clocks[i]
	p.Interface, p.Several = i, len(f.all)-f.section > 1
	p.Time, p.Digits = c.time(uint64(f.uint32(body[4:]))<<32|uint64(f.uint32(body[8:]))), c.digits
}

// simple reads a packet that says nothing but its length: it came from the first
// interface, whose snap length says how much of it is here.
func (f *pcapng) simple(p *dissect.Packet, body []byte) error {
	i, err := f.lookUp("simple packet", 0)
	if err != nil {
		return err
	}
	from := &f.all[i]
	length := int64(f.uint32(body))
	captured := length
	if from.SnapLen > 0 {
		captured = min(captured, int64(from.SnapLen))
	}
	if err := f.fits("simple packet", ".length", bodyOffset, captured, len(body)-simplePacketBody); err != nil {
		return err
	}
	f.warnings.add(warnNoTime)
	fillPacket(p, body[simplePacketBody:simplePacketBody+captured], int(length), from, f.warnings)
	p.Interface, p.Several = i, len(f.all)-f.section > 1
	p.Time, p.Digits = time.Unix(0, 0).UTC(), 0
	return nil
}

// lookUp returns the index in the file of an interface of this section.
func (f *pcapng) lookUp(name string, id uint32) (int, error) {
	if have := len(f.all) - f.section; int64(id) >= int64(have) {
		want := "one of the section's " + strconv.Itoa(have) + " interfaces"
		return 0, f.malformed(name+".interface", bodyOffset, want, strconv.FormatUint(uint64(id), 10))
	}
	return f.section + int(id), nil
}

// beyond returns the error for what is larger than a limit.
func (f *pcapng) beyond(limit, path string, at int, want, got string) error {
	e := f.malformed(path, at, want, got)
	e.Limit = limit
	return e
}

// malformed returns the error for what stands some bytes from here.
func (f *pcapng) malformed(path string, at int, want, got string) *wire.Error {
	return &wire.Error{Layer: "pcapng", Path: path, Offset: int(f.in.offset()) + at, Want: want, Got: got}
}

func hex(n uint32) string { return "0x" + strconv.FormatUint(uint64(n), 16) }

func (f *pcapng) uint16(b []byte) uint16 {
	if f.swapped {
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}

func (f *pcapng) uint32(b []byte) uint32 {
	n := binary.LittleEndian.Uint32(b)
	if f.swapped {
		return bits.ReverseBytes32(n)
	}
	return n
}

func (f *pcapng) uint64(b []byte) uint64 {
	n := binary.LittleEndian.Uint64(b)
	if f.swapped {
		return bits.ReverseBytes64(n)
	}
	return n
}

// clock turns the time stamps of an interface into times.
type clock struct {
	units  uint64 // in a second; 0 where they are 2^-shift seconds long
	shift  uint
	digits int
	offset int64 // seconds
}

// setResolution takes the value of if_tsresol: a negative power of ten, or of two
// if the top bit is set. It reports whether a second's units fit in 64 bits.
func (c *clock) setResolution(v byte) bool {
	n := uint(v & 0x7f)
	if v&0x80 != 0 {
		c.units, c.shift, c.digits = 0, n, 9
		return n <= 63
	}
	if n > 19 {
		return false
	}
	c.units, c.digits = 1, min(int(n), 9)
	for range n {
		c.units *= 10
	}
	return true
}

// time returns the time of a stamp, cut to nanoseconds.
func (c *clock) time(stamp uint64) time.Time {
	var seconds, nanos uint64
	switch c.units {
	case 0:
		seconds = stamp >> c.shift
		high, low := bits.Mul64(stamp&(1<<c.shift-1), 1e9)
		nanos = high<<(64-c.shift) | low>>c.shift
	case 1e6: // as most have it; a constant is not divided by
		seconds, nanos = stamp/1e6, stamp%1e6*1e3
	case 1e9:
		seconds, nanos = stamp/1e9, stamp%1e9
	default:
		seconds = stamp / c.units
		high, low := bits.Mul64(stamp%c.units, 1e9)
		nanos, _ = bits.Div64(high, low, c.units)
	}
	return time.Unix(int64(seconds&math.MaxInt64)+c.offset, int64(nanos)).UTC()
}
