package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"opscope/schema/wire"
)

// Format is what a file holds.
type Format uint8

// The formats.
const (
	Pcap   Format = iota // packets, as tcpdump writes them
	Pcapng               // packets, as Wireshark writes them
	NDJSON               // records, as opscope itself writes them, one object a line
)

// String returns the name of the format.
func (f Format) String() string { return [...]string{"pcap", "pcapng", "ndjson"}[f] }

// The first bytes of the compressions that are undone.
const (
	gzipMagic = "\x1f\x8b"
	zstdMagic = "\x28\xb5\x2f\xfd"
)

// maxZstdWindow is how far back a zstd file may refer, and so how much memory
// it takes: the limit of the zstd command itself.
const maxZstdWindow = 128 << 20

// decompress puts a decompressor between the file and the window, if the file
// is compressed. It does so once: nobody compresses twice but to do harm.
func (f *File) decompress() error {
	head := f.in.peek(4)
	switch {
	case bytes.HasPrefix(head, []byte(gzipMagic)):
		z, err := gzip.NewReader(f.in)
		if err != nil {
			return cutCompression("gzip", err)
		}
		return f.unpack("gzip", z)
	case bytes.HasPrefix(head, []byte(zstdMagic)):
		z, err := zstd.NewReader(f.in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return cutCompression("zstd", err)
		}
		f.closers = append(f.closers, z.IOReadCloser())
		return f.unpack("zstd", z)
	}
	return nil
}

// unpack makes the file what z gives. A file that is cut before that tells what it
// is, is an error that names the compression.
func (f *File) unpack(layer string, z io.Reader) error {
	f.in = newWindow(&unpacked{Reader: z, layer: layer, packed: f.in, ratio: int64(f.limits.Ratio)})
	if len(f.in.peek(4)) < 4 && f.in.err != io.EOF {
		return f.in.short(layer, "content", 0, 4)
	}
	return nil
}

// cutCompression returns the error for a compressed file whose header cannot be
// read.
func cutCompression(layer string, err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return &wire.Error{
			Layer: layer,
			Path:  "header",
			Want:  "a whole header",
			Got:   "the end of the file",
			Kind:  wire.Truncated,
		}
	}
	return fmt.Errorf("%s header: %w", layer, err)
}

// Probe reports whether a file begins with the magic number of pcap or pcapng, behind a
// compression too. NDJSON has none. An error says why nobody can tell.
func Probe(path string) (bool, error) {
	disk, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer disk.Close()
	f := &File{name: path, in: &window{r: disk, buf: make([]byte, probed)}, limits: Limits{}.filled()}
	defer f.Close()
	if err := f.decompress(); err != nil {
		return false, f.named(err)
	}
	head := f.in.peek(4)
	if f.in.err != nil && f.in.err != io.EOF && len(head) < 4 {
		return false, f.named(f.in.err)
	}
	_, known := packetFormat(head)
	return known, nil
}

// probed is how much is read of a file that may be no capture.
const probed = 4 << 10

// packetFormat tells the format of a capture by its magic number.
func packetFormat(head []byte) (f Format, known bool) {
	if len(head) < 4 {
		return 0, false
	}
	magic := binary.BigEndian.Uint32(head)
	if magic == sectionHeader {
		return Pcapng, true
	}
	_, known = pcapVariants[magic]
	return Pcap, known
}

// recognise tells the format of a file by its first bytes, which it leaves where
// they are.
func recognise(in *window) (Format, error) {
	head := in.peek(4)
	if len(head) == 0 && in.err == io.EOF {
		return 0, errors.New("the file is empty")
	}
	if len(head) < 4 && in.err != io.EOF {
		return 0, in.short("capture", "magic", 0, 4)
	}
	if format, known := packetFormat(head); known {
		return format, nil
	}
	switch first := firstLetter(in); {
	case first == '{':
		return NDJSON, nil
	case len(in.buffered()) < 4 && first == 0:
		return 0, in.short("capture", "magic", 0, 4)
	}
	return 0, &ForeignError{Looks: looks(in.buffered())}
}

// firstLetter returns the first printable ASCII character of a file after blank
// space, and 0 if something else comes first. It reads no further than that.
func firstLetter(in *window) byte {
	for n := 1; ; n++ {
		head := in.peek(n)
		if len(head) < n || n > windowSize/2 {
			return 0
		}
		switch c := head[n-1]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case c > ' ' && c < 0x7f:
			return c
		default:
			return 0
		}
	}
}

// ForeignError says that a file is not a capture.
type ForeignError struct {
	Looks string // what it looks like: "a PNG image", "text"
}

// Error says what the file looks like and what was expected.
func (e *ForeignError) Error() string {
	return "not a capture: looks like " + e.Looks + " (want pcap, pcapng or opscope's NDJSON, plain, .gz or .zst)"
}

// foreign lists the first bytes of files that people mistake for captures.
var foreign = []struct{ magic, name string }{
	{gzipMagic, "a file compressed twice"},
	{zstdMagic, "a file compressed twice"},
	{"\x04\x22\x4d\x18", "an lz4 file; unpack it first"},
	{"\xfd7zXZ\x00", "an xz file; unpack it first"},
	{"BZh", "a bzip2 file; unpack it first"},
	{"PK\x03\x04", "a zip archive; unpack it first"},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it first"},
	{"snoop\x00\x00\x00", "a Solaris snoop capture; convert it to pcap first"},
	{"GMBU", "a Microsoft Network Monitor capture; convert it to pcap first"},
	{"RTSS", "a Microsoft Network Monitor capture; convert it to pcap first"},
	{"TRSNIFF data    \x1a", "a Sniffer capture; convert it to pcap first"},
	{"iptrace ", "an AIX iptrace capture; convert it to pcap first"},
	{"\x7fELF", "an ELF program"},
	{"MZ", "a Windows program"},
	{"\x89PNG", "a PNG image"},
	{"GIF8", "a GIF image"},
	{"\xff\xd8\xff", "a JPEG image"},
	{"%PDF", "a PDF document"},
	{"SQLite format 3\x00", "an SQLite database"},
	{"<?xml", "XML"},
	{"<", "XML or HTML"},
	{"[", "a JSON array"},
	{"#!", "a script"},
	{"\xff\xfe", "UTF-16 text"},
	{"\xfe\xff", "UTF-16 text"},
}

// looks says what a file looks like that is no capture.
func looks(head []byte) string {
	for _, f := range foreign {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return f.name
		}
	}
	if len(head) >= 262 && string(head[257:262]) == "ustar" {
		return "a tar archive; unpack it first"
	}
	if isText(head) {
		return "text"
	}
	return fmt.Sprintf("unknown binary data beginning % x", head[:min(len(head), 8)])
}

// isText reports whether head is UTF-8 without control characters. A character
// may be cut at its end.
func isText(head []byte) bool {
	head = head[:min(len(head), 512)]
	for len(head) > 0 {
		r, n := utf8.DecodeRune(head)
		if r == utf8.RuneError && n == 1 && len(head) >= utf8.UTFMax {
			return false
		}
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' && r != '\f' && r != 0x1b {
			return false
		}
		head = head[n:]
	}
	return true
}
