package main

import (
	"bytes"
	"encoding/binary"
	"math"
	"net"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"opscope/schema"
)

// recording is a capture in the making: a client and a server on one Ethernet, a
// packet at a time.
type recording struct {
	t      *testing.T
	file   []byte // pcapng
	now    time.Time
	client host
	server host
}

// host is one end of a recording.
type host struct {
	mac      net.HardwareAddr
	ip       net.IP
	tcp, udp uint16
	id       uint16 // of its next IP packet
	seq      uint32 // of its next byte in the TCP connection
}

// maxSegment is the TCP payload that Ethernet carries beside 20 bytes of IP and 20
// of TCP.
const maxSegment = 1460

func newRecording(t *testing.T, iface, comment string, start time.Time) *recording {
	r := &recording{
		t: t, now: start,
		client: host{mac: net.HardwareAddr{2, 0, 0, 0, 0, 2}, ip: net.IPv4(10, 0, 0, 2), tcp: 50110, udp: 50111, id: 0x2000, seq: 1_000_000},
		server: host{mac: net.HardwareAddr{2, 0, 0, 0, 0, 1}, ip: net.IPv4(10, 0, 0, 1), tcp: 2627, udp: 2627, id: 0x1000, seq: 5_000_000},
	}
	le := binary.LittleEndian
	section := le.AppendUint32(nil, 0x1a2b3c4d)
	section = le.AppendUint32(section, 1)              // version 1.0
	section = le.AppendUint64(section, math.MaxUint64) // of unknown length
	r.block(sectionHeader, section, 1, comment)
	ethernet := le.AppendUint32(nil, uint32(layers.LinkTypeEthernet))
	r.block(interfaceDescription, le.AppendUint32(ethernet, 0), 2, iface)
	return r
}

// The blocks of pcapng.
const (
	sectionHeader        = 0x0a0d0d0a
	interfaceDescription = 1
	enhancedPacket       = 6
)

// block writes a block of pcapng with one option that is a text, or none. It is not
// left to pcapgo.NgWriter, which claims nanoseconds for every clock: without an
// option that says otherwise the times are in microseconds.
func (r *recording) block(kind uint32, body []byte, option uint16, text string) {
	le := binary.LittleEndian
	pad := func() { body = append(body, make([]byte, -len(body)&3)...) }
	pad()
	if text != "" {
		body = le.AppendUint16(body, option)
		body = append(le.AppendUint16(body, uint16(len(text))), text...)
		pad()
		body = le.AppendUint32(body, 0) // the end of the options
	}
	length := uint32(len(body) + 12)
	r.file = le.AppendUint32(le.AppendUint32(r.file, kind), length)
	r.file = le.AppendUint32(append(r.file, body...), length)
}

// after lets time pass.
func (r *recording) after(d time.Duration) { r.now = r.now.Add(d) }

// ends returns who sends and who receives.
func (r *recording) ends(from schema.Sender) (src, dst *host) {
	if from == schema.Client {
		return &r.client, &r.server
	}
	return &r.server, &r.client
}

// connect opens the TCP connection.
func (r *recording) connect() {
	r.segment(schema.Client, layers.TCP{SYN: true}, nil)
	r.after(180 * time.Microsecond)
	r.segment(schema.Server, layers.TCP{SYN: true, ACK: true}, nil)
	r.after(60 * time.Microsecond)
	r.acknowledge(schema.Client)
}

// closeFrom closes the TCP connection; from does so first.
func (r *recording) closeFrom(from schema.Sender) {
	peer := schema.Client + schema.Server - from
	r.segment(from, layers.TCP{FIN: true, ACK: true}, nil)
	r.after(240 * time.Microsecond)
	r.segment(peer, layers.TCP{FIN: true, ACK: true}, nil)
	r.after(70 * time.Microsecond)
	r.acknowledge(from)
}

func (r *recording) acknowledge(from schema.Sender) { r.segment(from, layers.TCP{ACK: true}, nil) }

// tcp sends a stream's next bytes, in as many segments as they need.
func (r *recording) tcp(from schema.Sender, data ...[]byte) {
	all := bytes.Join(data, nil)
	for len(all) > 0 {
		n := min(len(all), maxSegment)
		r.segment(from, layers.TCP{ACK: true, PSH: n == len(all)}, all[:n])
		if all = all[n:]; len(all) > 0 {
			r.after(12 * time.Microsecond)
		}
	}
}

// segment sends one TCP segment with the flags of head.
func (r *recording) segment(from schema.Sender, head layers.TCP, payload []byte) {
	src, dst := r.ends(from)
	head.SrcPort, head.DstPort = layers.TCPPort(src.tcp), layers.TCPPort(dst.tcp)
	head.Seq, head.Window = src.seq, 64240
	if head.ACK {
		head.Ack = dst.seq
	}
	if src.seq += uint32(len(payload)); head.SYN || head.FIN {
		src.seq++
	}
	ip := src.packet(dst, layers.IPProtocolTCP)
	if err := head.SetNetworkLayerForChecksum(ip); err != nil {
		r.t.Fatal(err)
	}
	r.write(src, dst, ip, &head, gopacket.Payload(payload))
}

// udp sends one datagram.
func (r *recording) udp(from schema.Sender, records ...[]byte) {
	src, dst := r.ends(from)
	head := &layers.UDP{SrcPort: layers.UDPPort(src.udp), DstPort: layers.UDPPort(dst.udp)}
	ip := src.packet(dst, layers.IPProtocolUDP)
	if err := head.SetNetworkLayerForChecksum(ip); err != nil {
		r.t.Fatal(err)
	}
	r.write(src, dst, ip, head, gopacket.Payload(bytes.Join(records, nil)))
}

// packet returns the header of the host's next IP packet.
func (h *host) packet(to *host, p layers.IPProtocol) *layers.IPv4 {
	h.id++
	return &layers.IPv4{
		Version: 4, TTL: 64, Id: h.id, Flags: layers.IPv4DontFragment, Protocol: p, SrcIP: h.ip.To4(), DstIP: to.ip.To4(),
	}
}

func (r *recording) write(src, dst *host, above ...gopacket.SerializableLayer) {
	eth := &layers.Ethernet{SrcMAC: src.mac, DstMAC: dst.mac, EthernetType: layers.EthernetTypeIPv4}
	buf := gopacket.NewSerializeBuffer()
	options := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(buf, options, append([]gopacket.SerializableLayer{eth}, above...)...); err != nil {
		r.t.Fatal(err)
	}
	le := binary.LittleEndian
	us := uint64(r.now.UnixMicro())
	head := le.AppendUint32(nil, 0) // the interface
	head = le.AppendUint32(le.AppendUint32(head, uint32(us>>32)), uint32(us))
	n := uint32(len(buf.Bytes()))
	head = le.AppendUint32(le.AppendUint32(head, n), n)
	r.block(enhancedPacket, append(head, buf.Bytes()...), 0, "")
}
