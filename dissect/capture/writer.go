package capture

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"
	"time"

	"opscope/dissect"
)

// Writer writes a pcapng file. Unlike pcapgo.NgWriter it takes any link type, filters
// and comments on packets. It buffers; Flush writes out.
type Writer struct {
	out     *bufio.Writer
	block   []byte
	written int64
	count   int // of interfaces
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
	b = appendOption(b, optResolution, []byte{nanoseconds})
	if filter != "" {
		b = appendOption(b, optFilter, append([]byte{filterText}, filter...))
	}
	f.count++
	return f.end(interfaceDescription, appendEndOfOptions(b))
}

// Packet adds a packet of the interface that it names, with a comment unless that is
// empty.
func (f *Writer) Packet(p *dissect.Packet, comment string) error {
	b := binary.LittleEndian.AppendUint32(f.begin(), uint32(p.Interface))
	b = appendStamp(b, p.Time)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(p.Data)))
	b = binary.LittleEndian.AppendUint32(b, uint32(p.Length))
	b = appendPadded(b, p.Data)
	if comment != "" {
		b = appendEndOfOptions(appendOption(b, optComment, []byte(comment[:min(len(comment), math.MaxUint16)])))
	}
	return f.end(enhancedPacket, b)
}

// Statistics adds what became of the packets of an interface up to a time.
func (f *Writer) Statistics(index int, c Counters, at time.Time) error {
	b := binary.LittleEndian.AppendUint32(f.begin(), uint32(index))
	b = appendStamp(b, at)
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

func appendStamp(b []byte, t time.Time) []byte {
	stamp := uint64(t.UnixNano())
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
