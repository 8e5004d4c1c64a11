package scene

import "encoding/binary"

// Pcap returns the scene as a capture file of the classic format, of packets with a
// link type of https://www.tcpdump.org/linktypes.html.
func (s *Scene) Pcap(link int) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xa1b2c3d4)
	b = le.AppendUint16(le.AppendUint16(b, 2), 4)
	b = append(b, make([]byte, 8)...)
	b = le.AppendUint32(le.AppendUint32(b, 256<<10), uint32(link))
	for i := range s.packets {
		p := &s.packets[i]
		b = le.AppendUint32(le.AppendUint32(b, uint32(p.Time.Unix())), uint32(p.Time.Nanosecond()/1000))
		b = le.AppendUint32(le.AppendUint32(b, uint32(len(p.Data))), uint32(p.Length))
		b = append(b, p.Data...)
	}
	return b
}
