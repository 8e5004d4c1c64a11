package main

import "encoding/binary"

// sessionCapture is what most tests here read: a session of one client over a network
// that is not quite quiet, of 71 packets with 134 records.
const sessionCapture = "../../pcaps/wulfram/session.pcapng"

// datagramCapture makes a pcap of raw IPv4 with one UDP datagram for each text, from
// port 50111 to port 7777, without checksums.
func datagramCapture(datagrams ...string) []byte {
	be := binary.BigEndian
	var packets [][]byte
	for _, d := range datagrams {
		packet := be.AppendUint16([]byte{0x45, 0}, uint16(28+len(d)))
		packet = append(packet, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1)
		packet = be.AppendUint16(be.AppendUint16(packet, 50111), 7777)
		packet = be.AppendUint16(be.AppendUint16(packet, uint16(8+len(d))), 0)
		packets = append(packets, append(packet, d...))
	}
	return rawCapture(packets...)
}

// rawCapture makes a pcap of IPv4 packets without a link layer, all at one time.
func rawCapture(packets ...[]byte) []byte {
	le := binary.LittleEndian
	file := le.AppendUint32(nil, 0xa1b2c3d4)
	file = append(file, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0) // version 2.4, snap length 262144
	file = le.AppendUint32(file, 101)                                   // LINKTYPE_RAW
	for _, packet := range packets {
		file = append(file, make([]byte, 8)...) // the time
		file = le.AppendUint32(le.AppendUint32(file, uint32(len(packet))), uint32(len(packet)))
		file = append(file, packet...)
	}
	return file
}
