package tape

import (
	"encoding/binary"
	"io"
	"math"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// FileOptions describe a capture file.
type FileOptions struct {
	Link         LinkType
	Snap         int    // the limit that the interface states, 0 for none
	Interface    string // its name
	Comment      string // of the whole file
	Microseconds bool   // the resolution of its times; nanoseconds otherwise
}

// Shot is what a capture has of one packet.
type Shot struct {
	Time    time.Time
	Data    []byte // the captured bytes
	Length  int    // bytes on the wire
	Comment string // "" for none
}

// File writes a pcapng file with one interface. pcapgo.NgWriter writes it, except
// what that cannot: link types above 255, microseconds, and packets with comments.
type File struct {
	out          io.Writer
	ng           *pcapgo.NgWriter // nil when all blocks are ours
	microseconds bool
	buf          []byte
}

const application = "opscope refserver"

// NewFile begins a file.
func NewFile(w io.Writer, o FileOptions) (*File, error) {
	f := &File{out: w, microseconds: o.Microseconds}
	if o.Link == 0 {
		o.Link = Ethernet
	}
	if o.Link > math.MaxUint8 || o.Microseconds {
		return f, f.begin(o)
	}
	ng, err := pcapgo.NewNgWriterInterface(w, pcapgo.NgInterface{
		Name: o.Interface, LinkType: layers.LinkType(o.Link), SnapLength: uint32(o.Snap),
	}, pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: application, Comment: o.Comment}})
	f.ng = ng
	return f, err
}

// Write appends a packet.
func (f *File) Write(s *Shot) error {
	if f.ng == nil {
		return f.packet(s)
	}
	if s.Comment != "" {
		if err := f.ng.Flush(); err != nil {
			return err
		}
		return f.packet(s)
	}
	return f.ng.WritePacket(gopacket.CaptureInfo{Timestamp: s.Time, CaptureLength: len(s.Data), Length: s.Length}, s.Data)
}

// Flush writes out what is buffered.
func (f *File) Flush() error {
	if f.ng == nil {
		return nil
	}
	return f.ng.Flush()
}

// Blocks and options of pcapng, draft-ietf-opsawg-pcapng sections 4.1 to 4.3 and 3.5.
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockPacket    = 6 // Enhanced Packet Block
	byteOrderMagic = 0x1a2b3c4d

	optionEnd         = 0
	optionComment     = 1
	optionApplication = 4 // shb_userappl
	optionName        = 2 // if_name
	optionResolution  = 9 // if_tsresol
)

// begin writes the section header and the interface.
func (f *File) begin(o FileOptions) error {
	b := binary.LittleEndian.AppendUint32(f.buf[:0], byteOrderMagic)
	b = binary.LittleEndian.AppendUint16(b, 1) // version 1.0
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint64(b, math.MaxUint64) // length of the section: not said
	b = appendOption(b, optionApplication, application)
	b = appendOption(b, optionComment, o.Comment)
	b = appendOptionEnd(b)
	if err := f.block(blockSection, b); err != nil {
		return err
	}
	b = binary.LittleEndian.AppendUint16(f.buf[:0], uint16(o.Link))
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(o.Snap))
	b = appendOption(b, optionName, o.Interface)
	digits := "\x09"
	if o.Microseconds {
		digits = "\x06"
	}
	b = appendOption(b, optionResolution, digits)
	b = appendOptionEnd(b)
	return f.block(blockInterface, b)
}

// packet writes an Enhanced Packet Block.
func (f *File) packet(s *Shot) error {
	stamp := uint64(s.Time.UnixNano())
	if f.microseconds {
		stamp = uint64(s.Time.UnixMicro())
	}
	b := binary.LittleEndian.AppendUint32(f.buf[:0], 0) // interface
	b = binary.LittleEndian.AppendUint32(b, uint32(stamp>>32))
	b = binary.LittleEndian.AppendUint32(b, uint32(stamp))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.Data)))
	b = binary.LittleEndian.AppendUint32(b, uint32(s.Length))
	b = appendPadded(b, s.Data)
	if s.Comment != "" {
		b = appendOption(b, optionComment, s.Comment)
		b = appendOptionEnd(b)
	}
	return f.block(blockPacket, b)
}

// block writes a block around a body, which it may keep for the next one.
func (f *File) block(kind uint32, body []byte) error {
	f.buf = body
	size := uint32(len(body) + 12)
	var head [8]byte
	binary.LittleEndian.PutUint32(head[:], kind)
	binary.LittleEndian.PutUint32(head[4:], size)
	if _, err := f.out.Write(head[:]); err != nil {
		return err
	}
	_, err := f.out.Write(binary.LittleEndian.AppendUint32(body, size))
	return err
}

// appendOption appends an option, unless its value is empty.
func appendOption(b []byte, code uint16, value string) []byte {
	if value == "" {
		return b
	}
	b = binary.LittleEndian.AppendUint16(b, code)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(value)))
	return appendPadded(b, []byte(value))
}

func appendOptionEnd(b []byte) []byte { return append(b, optionEnd, 0, 0, 0) }

// appendPadded appends data and zeros up to a multiple of 4 bytes. The blocks
// begin at one.
func appendPadded(b, data []byte) []byte {
	b = append(b, data...)
	return append(b, make([]byte, -len(data)&3)...)
}
