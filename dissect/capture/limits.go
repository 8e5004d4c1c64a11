package capture

import (
	"cmp"
	"io"
	"os"
	"strconv"

	"opscope/schema/wire"
)

// Limits bound what a file can have us do. A zero field stands for its default.
type Limits struct {
	// Packet is the most bytes that one packet may hold. A longer one is taken for
	// damage: after a wrong length nothing that follows can be read.
	Packet int
	// Block is the most bytes of a pcapng block that is read in one piece. A block that
	// nobody looks into may have any length.
	Block int
	// Ratio is how many times its compressed size a file may grow to, once it has grown
	// to 16 MiB. gzip gets to 1,000 with nothing but zeros, and captures hardly to 50.
	Ratio int
}

// DefaultLimits are those of Open and OpenReader. The size of a packet is that of
// libpcap and Wireshark, that of a block Wireshark's.
var DefaultLimits = Limits{Packet: MaxPacket, Block: 16 << 20, Ratio: 500}

// The names of the limits, as wire.Error has them.
const (
	LimitPacket = "packet-bytes"
	LimitBlock  = "block-bytes"
	LimitRatio  = "ratio"
)

// ratioFrom is how much a compressed file may hold, whatever its ratio.
const ratioFrom = 16 << 20

// filled returns l with its zero fields filled in.
func (l Limits) filled() Limits {
	return Limits{
		Packet: cmp.Or(l.Packet, MaxPacket), Block: cmp.Or(l.Block, DefaultLimits.Block), Ratio: cmp.Or(l.Ratio, DefaultLimits.Ratio),
	}
}

// Open opens the capture file at path, like the function Open. What it reads goes through
// what a function returns for it, which may count it; nil is for none.
func (l Limits) Open(path string, through func(io.Reader) io.Reader) (*File, error) {
	disk, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	var r io.Reader = disk
	if through != nil {
		r = through(r)
	}
	f, err := l.OpenReader(path, r)
	if err != nil {
		disk.Close()
		return nil, err
	}
	f.closers = append(f.closers, disk)
	return f, nil
}

// OpenReader reads a capture file from r, like the function OpenReader.
func (l Limits) OpenReader(name string, r io.Reader) (*File, error) {
	f := &File{name: name, in: newWindow(r), limits: l.filled()}
	if err := f.open(); err != nil {
		f.Close()
		return nil, f.named(err)
	}
	return f, nil
}

// unpacked is what a decompressor gives, up to the limit on its ratio.
type unpacked struct {
	io.Reader
	layer  string
	packed *window
	ratio  int64
	given  int64
}

// Read returns an error once the file has grown too much.
func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	u.given += int64(n)
	// The decompressor has taken at most a buffer more than it has used.
	if used := max(u.packed.offset(), 1); u.given > ratioFrom && u.given/used > u.ratio {
		return 0, &wire.Error{
			Layer: u.layer, Path: "content", Offset: int(used), Kind: wire.Malformed, Limit: LimitRatio,
			Want: "at most " + strconv.FormatInt(u.ratio, 10) + " times the compressed size",
			Got:  strconv.FormatInt(u.given, 10) + " bytes",
		}
	}
	return n, err
}
