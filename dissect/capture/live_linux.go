//go:build linux && !libpcap

package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"opscope/dissect"
	"opscope/dissect/capture/pcapfilter"
)

// Packets come from a packet socket with a ring that it shares with the kernel
// (TPACKET_V3): blocks of packets, which the kernel hands over when they are full or
// have waited for blockTime. Source: packet(7), and Documentation/networking/
// packet_mmap.rst of Linux.
const (
	blockSize = 256 << 10             // holds the largest packet, with its headers
	blockTime = 20 * time.Millisecond // the longest that a packet waits for its block to fill
)

// packetSocket is an open interface.
type packetSocket struct {
	fd      int
	ring    []byte
	blocks  int
	current int // the block that comes next
	info    Interface
	cooked  bool    // the link layer is left out, and a cooked header takes its place
	merges  bool    // what offload has merged is said in front of each packet
	said    [2]bool // that it merges datagrams, segments
	packet  dissect.Packet
	scratch []byte
	lost    atomic.Uint64 // packets that the kernel dropped
	kept    atomic.Uint64 // packets that it has put into the ring
	taken   uint64        // of those
	options *LiveOptions
}

// Link types that a device may have.
const (
	linkEthernet = 1
	linkRaw      = 101
	linkCooked2  = 276
)

// openDevice opens an interface, and returns the text of its filter beside it.
func openDevice(name string, o *LiveOptions) (device, string, error) {
	s := &packetSocket{fd: -1, options: o, info: Interface{Name: name, SnapLen: o.SnapLen}}
	index := 0
	link := pcapfilter.LiveNetwork
	s.info.Link, s.cooked = linkCooked2, true
	if name != anyDevice {
		i, err := findInterface(name)
		if err != nil {
			return nil, "", err
		}
		if i.Flags&net.FlagUp == 0 {
			return nil, "", &Down{i.Name}
		}
		index, s.info.Name = i.Index, i.Name
		hardware, err := hardwareType(i.Name)
		if err != nil {
			return nil, "", err
		}
		switch hardware {
		case unix.ARPHRD_ETHER, unix.ARPHRD_LOOPBACK:
			s.info.Link, s.cooked, link = linkEthernet, false, pcapfilter.LiveEthernet
		case unix.ARPHRD_NONE, unix.ARPHRD_RAWIP:
			s.info.Link, s.cooked, link = linkRaw, false, pcapfilter.RawIP
		}
	}
	text, err := s.open(index, link)
	if err != nil {
		s.close()
		return nil, "", err
	}
	return s, text, nil
}

// hardwareType returns what kind of link an interface has (ARPHRD_*).
func hardwareType(name string) (uint16, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("%s: socket: %w", name, err)
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq(name)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFHWADDR, r); err != nil {
		return 0, fmt.Errorf("%s: SIOCGIFHWADDR: %w", name, err)
	}
	return r.Uint16(), nil
}

// open makes the socket. It takes no packet before the filter and the ring are there.
func (s *packetSocket) open(index int, link pcapfilter.Link) (string, error) {
	kind := unix.SOCK_RAW
	if s.cooked {
		kind = unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(unix.AF_PACKET, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
			return "", notPermitted()
		}
		return "", fmt.Errorf("%s: packet socket: %w", s.info.Name, err)
	}
	s.fd = fd
	text, err := s.filter(link)
	if err != nil {
		return "", err
	}
	if !s.cooked {
		s.merges = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1) == nil
	}
	if err := s.makeRing(); err != nil {
		return "", fmt.Errorf("%s: %w", s.info.Name, err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_ALL), Ifindex: index}); err != nil {
		return "", s.failed(fmt.Errorf("bind: %w", err))
	}
	if s.options.Promiscuous && index != 0 {
		m := unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_PROMISC}
		if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &m); err != nil {
			return "", s.failed(fmt.Errorf("promiscuous mode: %w", err))
		}
	}
	return text, nil
}

// bigEndian returns a number in the order of the network, as the kernel wants it.
func bigEndian(n uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, n))
}

// filter puts the capture filter into the kernel, or one that only cuts packets.
func (s *packetSocket) filter(link pcapfilter.Link) (string, error) {
	filter, err := pcapfilter.Parse("", link)
	if s.options.Filter != nil {
		filter, err = s.options.Filter(link)
	}
	if err != nil {
		return "", err
	}
	program, err := filter.Program(s.options.SnapLen)
	if err != nil {
		return "", err
	}
	raw, err := bpf.Assemble(program)
	if err != nil {
		return "", err
	}
	list := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		list[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	f := unix.SockFprog{Len: uint16(len(list)), Filter: &list[0]}
	if err := unix.SetsockoptSockFprog(s.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &f); err != nil {
		return "", fmt.Errorf("%s: capture filter: %w", s.info.Name, err)
	}
	return filter.String(), nil
}

// makeRing asks for the ring; a smaller one where there is no memory for it.
func (s *packetSocket) makeRing() error {
	if err := unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3); err != nil {
		return fmt.Errorf("TPACKET_V3: %w", err)
	}
	for s.blocks = max(2, s.options.KernelBuffer/blockSize); ; s.blocks /= 2 {
		r := unix.TpacketReq3{
			Block_size: blockSize, Block_nr: uint32(s.blocks), Frame_size: unix.TPACKET_ALIGNMENT << 7,
			Frame_nr: uint32(s.blocks) * blockSize / (unix.TPACKET_ALIGNMENT << 7), Retire_blk_tov: uint32(blockTime.Milliseconds()),
		}
		err := unix.SetsockoptTpacketReq3(s.fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &r)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.ENOMEM) || s.blocks <= 2 {
			return fmt.Errorf("a ring of %d MiB: %w", s.blocks*blockSize>>20, err)
		}
	}
	ring, err := unix.Mmap(s.fd, 0, s.blocks*blockSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("mapping the ring: %w", err)
	}
	s.ring = ring
	return nil
}

// failed tells an interface that is gone from other errors.
func (s *packetSocket) failed(err error) error {
	if errors.Is(err, unix.ENETDOWN) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV) {
		return &Down{s.info.Name}
	}
	return fmt.Errorf("%s: %w", s.info.Name, err)
}

func (s *packetSocket) about() Interface { return s.info }

// close gives the socket and the ring back.
func (s *packetSocket) close() {
	if s.ring != nil {
		_ = unix.Munmap(s.ring) // of what was mapped; nothing could be done about an error
		s.ring = nil
	}
	if s.fd >= 0 {
		_ = unix.Close(s.fd)
		s.fd = -1
	}
}

// dropped adds what the kernel has counted since the last call.
func (s *packetSocket) dropped() uint64 {
	if t, err := unix.GetsockoptTpacketStatsV3(s.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
		s.lost.Add(uint64(t.Drops))
		s.kept.Add(uint64(t.Packets - t.Drops)) // which are among the packets
	}
	return s.lost.Load()
}

// read takes all blocks that are ready. When there is none it waits.
func (s *packetSocket) read(wait time.Duration, take func(*dissect.Packet)) error {
	for range 2 {
		for n := 0; s.ready(); n++ {
			s.block(take)
			s.release()
			if n == s.blocks {
				return nil
			}
		}
		fds := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN | unix.POLLERR}}
		n, err := unix.Poll(fds, int(max(wait, 2*blockTime).Milliseconds()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return s.failed(fmt.Errorf("poll: %w", err))
		}
		if n <= 0 {
			return nil
		}
		if fds[0].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0 {
			if code, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_ERROR); err == nil && code != 0 {
				return s.failed(unix.Errno(code))
			}
		}
	}
	return nil
}

// drainTime is how long drain waits for the kernel at most.
const drainTime = time.Second

// drain takes blocks until those packets have come that the kernel has now: the last block
// is handed over late on a busy machine.
func (s *packetSocket) drain(take func(*dissect.Packet)) error {
	s.dropped() // which asks for both counters
	err := s.read(0, take)
	for end := time.Now().Add(drainTime); err == nil && s.taken < s.kept.Load() && time.Now().Before(end); {
		err = s.read(0, take)
	}
	return err
}

func (s *packetSocket) header() *unix.TpacketHdrV1 {
	desc := (*unix.TpacketBlockDesc)(unsafe.Pointer(&s.ring[s.current*blockSize]))
	return (*unix.TpacketHdrV1)(unsafe.Pointer(&desc.Hdr))
}

// ready reports whether the kernel has handed over the current block.
func (s *packetSocket) ready() bool {
	return atomic.LoadUint32(&s.header().Block_status)&unix.TP_STATUS_USER != 0
}

// release gives the current block back to the kernel.
func (s *packetSocket) release() {
	atomic.StoreUint32(&s.header().Block_status, unix.TP_STATUS_KERNEL)
	s.current = (s.current + 1) % s.blocks
}

// block hands over the packets of the current block.
func (s *packetSocket) block(take func(*dissect.Packet)) {
	h := s.header()
	block := s.ring[s.current*blockSize:][:blockSize]
	at := int(h.Offset_to_first_pkt)
	s.taken += uint64(h.Num_pkts)
	for range h.Num_pkts {
		frame := block[at:]
		s.frame(frame, take)
		at += int((*unix.Tpacket3Hdr)(unsafe.Pointer(&frame[0])).Next_offset)
	}
}

// frame hands over one packet: the header of the ring, then the address that tells where it
// came from, then the packet.
func (s *packetSocket) frame(frame []byte, take func(*dissect.Packet)) {
	h := (*unix.Tpacket3Hdr)(unsafe.Pointer(&frame[0]))
	from := (*unix.RawSockaddrLinklayer)(unsafe.Pointer(&frame[unix.SizeofTpacket3Hdr]))
	if from.Pkttype == unix.PACKET_OUTGOING && from.Hatype == unix.ARPHRD_LOOPBACK {
		return // it comes in again at once
	}
	p := &s.packet
	p.Link, p.Length = s.info.Link, int(h.Len)
	p.Time = time.Unix(int64(h.Sec), int64(h.Nsec)).UTC()
	p.Data = frame[h.Mac:][:h.Snaplen]
	p.Dropped = 0
	if h.Status&unix.TP_STATUS_LOSING != 0 {
		before := s.lost.Load()
		p.Dropped = int(s.dropped() - before)
	}
	s.merged(h, frame, from)
	tagged := h.Status&unix.TP_STATUS_VLAN_VALID != 0
	tpid := uint16(0x8100)
	if h.Status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
		tpid = h.Hv1.Vlan_tpid
	}
	switch {
	case s.cooked:
		s.cook(from, tagged, tpid, uint16(h.Hv1.Vlan_tci))
	case tagged && s.info.Link == linkEthernet && len(p.Data) >= macAddresses:
		s.restore(tpid, uint16(h.Hv1.Vlan_tci))
	}
	take(p)
}

const macAddresses = 12 // bytes of the two in front of an EtherType

// restore puts a VLAN tag back, which the kernel has taken out.
func (s *packetSocket) restore(tpid, tci uint16) {
	p := &s.packet
	b := append(s.scratch[:0], p.Data[:macAddresses]...)
	b = binary.BigEndian.AppendUint16(b, tpid)
	b = binary.BigEndian.AppendUint16(b, tci)
	s.scratch = append(b, p.Data[macAddresses:]...)
	p.Data, p.Length = s.scratch, p.Length+4
}

// cook puts the header LINKTYPE_LINUX_SLL2 in front of a packet, and the VLAN tag behind
// it. Source: https://www.tcpdump.org/linktypes/LINKTYPE_LINUX_SLL2.html.
func (s *packetSocket) cook(from *unix.RawSockaddrLinklayer, tagged bool, tpid, tci uint16) {
	p := &s.packet
	etherType := bigEndian(from.Protocol)
	first := etherType
	if tagged {
		first = tpid
	}
	b := binary.BigEndian.AppendUint16(s.scratch[:0], first)
	b = binary.BigEndian.AppendUint16(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(from.Ifindex))
	b = binary.BigEndian.AppendUint16(b, from.Hatype)
	address := [len(from.Addr)]byte{} // behind its length, the kernel leaves what was there
	length := copy(address[:], from.Addr[:min(int(from.Halen), len(address))])
	b = append(b, from.Pkttype, uint8(length))
	b = append(b, address[:]...)
	if tagged {
		b = binary.BigEndian.AppendUint16(b, tci)
		b = binary.BigEndian.AppendUint16(b, etherType)
	}
	p.Length += len(b)
	s.scratch = append(b, p.Data...)
	p.Data = s.scratch
}

// Kinds of merged packets in the header in front of them (linux/virtio_net.h).
const (
	mergeHeader = 10 // bytes of the header
	mergeKind   = 1  // offset of its kind
	mergedUDP   = 5  // VIRTIO_NET_HDR_GSO_UDP_L4
)

// merged says, once for segments and once for datagrams, that offload merges them, and at
// which interface.
func (s *packetSocket) merged(h *unix.Tpacket3Hdr, frame []byte, from *unix.RawSockaddrLinklayer) {
	kind := byte(0)
	if s.merges {
		kind = frame[int(h.Mac)-mergeHeader+mergeKind] &^ 0x80 // without the bit for ECN
	} else if h.Status&unix.TP_STATUS_GSO_TCP != 0 {
		kind = 1
	}
	what, said := "segments", &s.said[1]
	if kind == mergedUDP {
		what, said = "datagrams", &s.said[0]
	}
	if kind != 0 && !*said {
		*said = true
		name := s.info.Name
		if i, err := net.InterfaceByIndex(int(from.Ifindex)); err == nil { // else it is gone
			name = i.Name
		}
		s.options.warnMerged(name, what)
	}
}

// notPermitted says how to be permitted.
func notPermitted() error {
	if os.Geteuid() == 0 {
		return errors.New("not permitted to capture, even as root: this container lacks CAP_NET_RAW\n" +
			"try: docker run --cap-add=NET_RAW, or securityContext.capabilities.add: [NET_RAW]")
	}
	path, err := os.Executable()
	if err != nil {
		path = "opscope"
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err == nil && fs.Flags&(unix.ST_NOSUID|unix.ST_RDONLY) != 0 {
		return fmt.Errorf("not permitted to capture, and %s lies where capabilities do not count\ntry: sudo %s", path, path)
	}
	return fmt.Errorf("not permitted to capture\ntry: sudo setcap cap_net_raw,cap_net_admin=eip %s", path)
}
