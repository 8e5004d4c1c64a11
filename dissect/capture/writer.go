package capture

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"
	"time"
	"unicode/utf8"

	"opscope/dissect"
)

// Writer writes a pcapng file. Unlike pcapgo.NgWriter it takes any link type, filters
// and comments on packets. It buffers; Flush writes out.
type Writer struct {
	out     *bufio.Writer
	block   []byte
	written int64
	lacks   []int // of each interface
}

// writeBuffer is how many bytes are written to a file at once.
const writeBuffer = 1 << 20

const (
	interfaceStatistics = 5
	byteOrderMagic      = 0x1a2b3c4d

	optComment     = 1
	optApplication = 4  // shb_userappl
	optFilter      = 11 // if_filter
	filterText     = 0  // its first byte: an expression of libpcap
	optReceived    = 4  // isb_ifrecv
	optDropped     = 5  // isb_ifdrop
	nanoseconds    = 9  // for optResolution

	// maxComments is how many bytes of comments a packet may have: less than what readers
	// allow a block to be long.
	maxComments = 8 << 20
)

// NewWriter begins a file, written by an application of this name.
func NewWriter(w io.Writer, application string) (*Writer, error) {
	f := &Writer{out: bufio.NewWriterSize(w, writeBuffer)}
	b := f.begin()
	b = binary.LittleEndian.AppendUint32(b, byteOrderMagic)
	b = binary.LittleEndian.AppendUint16(b, 1) // version 1.0
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint64(b, math.MaxUint64) // length of the section: not said
	b = appendOption(b, optApplication, []byte(application))
	return f, f.end(sectionHeader, appendEndOfOptions(b))
}

// Interface adds an interface, which has the next index from 0, and the filter of its
// capture, "" for none.
func (f *Writer) Interface(i Interface, filter string) error {
	b := binary.LittleEndian.AppendUint16(f.begin(), uint16(i.Link))
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(i.SnapLen))
	b = appendOption(b, optName, []byte(i.Name))
	b = appendOption(b, optResolution, []byte{byte(nanoseconds - i.Lacks)})
	if filter != "" {
		b = appendOption(b, optFilter, append([]byte{filterText}, filter...))
	}
	f.lacks = append(f.lacks, i.Lacks)
	return f.end(interfaceDescription, appendEndOfOptions(b))
}

// Packet adds a packet of the interface that it names, with comments, of which empty ones
// are left out, long ones cut, and no more taken than a reader takes.
func (f *Writer) Packet(p *dissect.Packet, comments ...string) error {
	b := binary.LittleEndian.AppendUint32(f.begin(), uint32(p.Interface))
	b = appendStamp(b, p.Time, f.lacks[p.Interface])
	b = binary.LittleEndian.AppendUint32(b, uint32(len(p.Data)))
	b = binary.LittleEndian.AppendUint32(b, uint32(p.Length))
	b = appendPadded(b, p.Data)
	from := len(b)
	for _, c := range comments {
		if len(b)-from < maxComments {
			b = appendOption(b, optComment, []byte(short(c)))
		}
	}
	if len(b) > from {
		b = appendEndOfOptions(b)
	}
	return f.end(enhancedPacket, b)
}

// short cuts a comment to what an option can hold, at the end of a character.
func short(comment string) string {
	const cut = "…"
	if len(comment) <= math.MaxUint16 {
		return comment
	}
	n := math.MaxUint16 - len(cut)
	for !utf8.RuneStart(comment[n]) {
		n--
	}
	return comment[:n] + cut
}

// Statistics adds what became of the packets of an interface up to a time.
func (f *Writer) Statistics(index int, c Counters, at time.Time) error {
	b := binary.LittleEndian.AppendUint32(f.begin(), uint32(index))
	b = appendStamp(b, at, f.lacks[index])
	b = appendOption(b, optReceived, binary.LittleEndian.AppendUint64(nil, c.Received+c.KernelDropped))
	b = appendOption(b, optDropped, binary.LittleEndian.AppendUint64(nil, c.KernelDropped))
	return f.end(interfaceStatistics, appendEndOfOptions(b))
}

// Size returns the bytes of the file so far.
func (f *Writer) Size() int64 { return f.written }

// Flush writes out what is buffered.
func (f *Writer) Flush() error { return f.out.Flush() }

// begin returns an empty block with room for its head.
func (f *Writer) begin() []byte { return append(f.block[:0], make([]byte, bodyOffset)...) }

// end writes a block around the body that begin began.
func (f *Writer) end(kind uint32, b []byte) error {
	total := uint32(len(b) + 4)
	b = binary.LittleEndian.AppendUint32(b, total)
	binary.LittleEndian.PutUint32(b, kind)
	binary.LittleEndian.PutUint32(b[4:], total)
	f.block = b
	f.written += int64(total)
	_, err := f.out.Write(b)
	return err
}

// appendStamp appends a time in units that lack so many digits of nanoseconds. It wraps
// where 64 bits are too few, as the reader's sum does.
func appendStamp(b []byte, t time.Time, lacks int) []byte {
	unit := uint64(1)
	for range lacks {
		unit *= 10
	}
	stamp := uint64(t.Unix())*(1e9/unit) + uint64(t.Nanosecond())/unit
	b = binary.LittleEndian.AppendUint32(b, uint32(stamp>>32))
	return binary.LittleEndian.AppendUint32(b, uint32(stamp))
}

func appendOption(b []byte, code uint16, value []byte) []byte {
	if len(value) == 0 {
		return b
	}
	b = binary.LittleEndian.AppendUint16(b, code)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(value)))
	return appendPadded(b, value)
}

func appendEndOfOptions(b []byte) []byte { return append(b, optEnd, 0, 0, 0) }

// appendPadded appends data and zeros up to a multiple of 4 bytes.
func appendPadded(b, data []byte) []byte {
	b = append(b, data...)
	return append(b, make([]byte, -len(data)&3)...)
}
