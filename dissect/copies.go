package dissect

import (
	"hash/crc32"
	"hash/maphash"
	"time"
)

// A host that captures on several interfaces at once sees a packet wherever it passes: on the
// bridge and on its port, on the way in and on the way out. copies recognises the
// second and later sight of a packet, so that it is dissected once.

// copyTime is how far apart the sights of one packet may be.
const copyTime = 100 * time.Millisecond

// copySlots is how many packets are remembered: more than pass in copyTime on the links of
// a game. A packet that is not remembered is dissected, and reassembly finds it repeated.
const copySlots = 1 << 12

// copyWays is how many packets are remembered that would have the same place. Which place that
// is does not depend on chance: a capture tells the same each time.
const copyWays = 4

// copySights is on how many places a packet is recognised.
const copySights = 6

// copies remembers the packets of the last moment. The zero copies is ready.
type copies struct {
	seed  maphash.Seed
	slots [][copyWays]sighting // by checksum; nil as long as packets come from one place
}

// sighting is where a packet was seen.
type sighting struct {
	hash   uint64
	time   time.Time
	places [copySights]passage
	seen   int
}

// passage is an interface and a way through it.
type passage struct {
	file   int // index of the interface in the capture
	host   int // index on the host
	packet PacketType
}

// again reports whether this packet, of which h tells the headers, was seen at another place
// just now. One seen twice at one place was sent twice.
func (c *copies) again(h *Headers, p *Packet) bool {
	at := passage{p.Interface, h.Interface, h.PacketType}
	if at == (passage{}) && !p.Several || h.network == nil {
		return false // from one place, for all that the capture tells
	}
	if c.slots == nil {
		c.seed, c.slots = maphash.MakeSeed(), make([][copyWays]sighting, copySlots/copyWays)
	}
	hash, slot := c.hash(h)
	ways := &c.slots[slot%(copySlots/copyWays)]
	s := &ways[0] // the one of this packet, or the oldest
	for i := range ways {
		w := &ways[i]
		if w.hash == hash {
			s = w
			break
		}
		if w.time.Before(s.time) {
			s = w
		}
	}
	if s.hash != hash || p.Time.Sub(s.time).Abs() > copyTime || s.seen == copySights || s.at(at) {
		*s = sighting{hash: hash, time: p.Time, seen: 1}
		s.places[0] = at
		return false
	}
	s.places[s.seen] = at
	s.seen++
	return true
}

// at reports whether the packet was seen there.
func (s *sighting) at(p passage) bool {
	for _, q := range s.places[:s.seen] {
		if q == p {
			return true
		}
	}
	return false
}

// hash returns a hash of the innermost IP packet without what a router changes, which are the
// time to live and the checksum over it, and a sum that says where it is remembered.
func (c *copies) hash(h *Headers) (hash uint64, slot uint32) {
	const lives4, source4, lives6, source6 = 8, 12, 7, 8
	ip := h.network
	before, after := ip[:lives4], ip[source4:]
	if ip[0]>>4 == 6 {
		before, after = ip[:lives6], ip[source6:]
	}
	hash = maphash.Bytes(c.seed, before) ^ maphash.Bytes(c.seed, after)<<1 ^ uint64(h.Tunnel) ^ uint64(h.Protocol)
	return hash, crc32.Update(crc32.Checksum(before, castagnoli), castagnoli, after)
}

// castagnoli is the polynomial that processors know.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)
