package dissect

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"opscope/reassembly"
	"opscope/schema"
)

// Masking masks in the packets of a capture what its records hide, and mends the
// checksums. It sees the capture three times, since a segment may be sent again, and the
// checksum of fragments stands in the first of them:
//
//	Add     each record, when the capture is decoded
//	Survey  each packet, in their order
//	Mask    each packet that is wanted
//
// A value is masked where a record has it: in all segments with these bytes of the stream,
// and in all fragments with these bytes of the datagram. Besides, a secret is masked wherever
// its bytes come back in a packet of its session. What an ICMP message quotes of a packet
// between hosts with secrets is masked whole. Lengths stay as they are. A checksum that was
// wrong stays wrong by as much.
type Masking struct {
	link      LinkDecoder
	headers   Headers
	sums      []checksum
	streams   map[streamPage][]streamBlank
	datagrams map[int][]markedBlank // by the number of a packet with a part of the datagram, of whose start the bits count
	known     map[int]*Secrets
	flows     map[ends][]*Secrets
	hosts     map[hosts][]*Secrets
	marks     map[string]string // of values

	fragments reassembly.Defragmenter
	sets      map[reassembly.FragmentKey][]stretch
	patches   map[int][]patch // by packet

	buf, whole []byte
	spans      []Span
}

// ends are those of a packet: of its sender first.
type ends struct {
	src, dst  netip.AddrPort
	transport schema.Transport
}

// streamPage is a part of the sequence numbers of a stream, of pageSize bytes.
type streamPage struct {
	ends
	page uint32
}

const (
	pageBits = 11
	pageSize = 1 << pageBits
)

// streamBlank is a blank of a stream.
type streamBlank struct {
	seq  uint32 // of the record's first byte
	bits markedBlank
}

// markedBlank is a blank with what tells its value from others.
type markedBlank struct {
	Blank
	mark string
}

// udpSum is where in a UDP header its checksum stands, which may be none.
const udpSum = 6

// stretch is where a fragment's part of the datagram stands.
type stretch struct{ packet, offset, at, length int }

// patch is what takes the place of some bytes of a packet.
type patch struct {
	at   int
	data []byte
}

// NewMasking returns a Masking that has seen nothing. It reads headers as a decoder does.
func NewMasking(link LinkDecoder) *Masking {
	m := &Masking{
		streams: map[streamPage][]streamBlank{}, datagrams: map[int][]markedBlank{}, marks: map[string]string{},
		known: map[int]*Secrets{}, flows: map[ends][]*Secrets{}, hosts: map[hosts][]*Secrets{},
		sets: map[reassembly.FragmentKey][]stretch{}, patches: map[int][]patch{},
	}
	m.link = link
	m.link.sums = &m.sums
	return m
}

// Add takes a record and what of it is to be masked.
func (m *Masking) Add(r *Record, blanks []Blank) {
	e := ends{r.Src, r.Dst, r.Transport}
	m.learn(r, e)
	if r.Type != FrameRecord || r.Made {
		return
	}
	for _, b := range blanks {
		x := markedBlank{Blank: b}
		if b.Fill <= FillText && b.From&7 == 0 {
			x.mark = m.mark(r.Raw[b.From>>3 : min((b.To+7)>>3, len(r.Raw))])
		}
		if r.Transport == schema.TCP {
			m.addStream(e, r.Zero+uint32(r.Offset), x)
			continue
		}
		x.From += 8 * int(r.Offset)
		x.To += 8 * int(r.Offset)
		for _, n := range r.Packets {
			m.datagrams[n] = append(m.datagrams[n], x)
		}
	}
}

// addStream notes a blank of a record that begins at seq, with each page that it touches.
func (m *Masking) addStream(e ends, seq uint32, b markedBlank) {
	first := (seq + uint32(b.From>>3)) >> pageBits
	pages := int(seq+uint32(b.From>>3))&(pageSize-1) + (b.To+7)>>3 - b.From>>3
	for i := range (pages + pageSize - 1) / pageSize {
		k := streamPage{e, (first + uint32(i)) & (1<<(32-pageBits) - 1)}
		m.streams[k] = append(m.streams[k], streamBlank{seq, b})
	}
}

// mark returns what tells a value from others.
func (m *Masking) mark(value []byte) string {
	mark, ok := m.marks[string(value)]
	if !ok {
		mark = letters(len(m.marks))
		m.marks[string(value)] = mark
	}
	return mark
}

// learn takes the secrets of a record's session, also those that make room there.
func (m *Masking) learn(r *Record, e ends) {
	values := r.Secrets.Values()
	if len(values) == 0 {
		return
	}
	s := m.known[r.Session]
	if s == nil {
		s = &Secrets{Most: 1 << 20}
		m.known[r.Session] = s
	}
	for _, v := range values {
		s.Add(v)
	}
	for _, k := range []ends{e, {e.dst, e.src, e.transport}} {
		if !slices.Contains(m.flows[k], s) {
			m.flows[k] = append(m.flows[k], s)
		}
	}
	if k := hostsOf(e.src, e.dst); !slices.Contains(m.hosts[k], s) {
		m.hosts[k] = append(m.hosts[k], s)
	}
}

// Survey takes each packet: it masks the datagrams that come in fragments.
func (m *Masking) Survey(p *Packet) {
	h := &m.headers
	m.sums = m.sums[:0]
	if m.link.Decode(h, p) != nil || h.Content != FragmentContent {
		return
	}
	m.fragments.Tick(p.Time)
	f := reassembly.Fragment{
		Key: fragmentKey(h), Offset: h.Piece.Offset, More: h.Piece.More, Payload: h.Payload, Length: h.PayloadLength,
		Packet: p.Number, Time: p.Time,
	}
	if len(m.sets) > 2*reassembly.DefaultFragmentSets { // most of them will never be whole
		clear(m.sets)
	}
	m.sets[f.Key] = append(m.sets[f.Key], stretch{p.Number, f.Offset, h.at.offset, len(h.Payload)})
	d, verdict := m.fragments.Add(&f)
	if verdict != reassembly.Complete {
		return
	}
	set := m.sets[f.Key]
	delete(m.sets, f.Key)
	m.sums = m.sums[:0]
	m.whole = append(m.whole[:0], d.Payload...)
	_ = m.link.DecodeTransport(h, h.Protocol, d.Payload, d.Length) // what could be decoded is masked
	m.buf = append(m.buf[:0], d.Payload...)
	var packets []int
	for _, x := range set {
		packets = append(packets, x.packet)
	}
	m.payload(h, m.buf, packets)
	m.mend(m.whole, m.buf)
	for _, x := range set {
		m.patch(x, m.whole, m.buf)
	}
}

// patch notes what is new in the part of a datagram that a fragment has.
func (m *Masking) patch(x stretch, old, now []byte) {
	from, to := min(x.offset, len(now)), min(x.offset+x.length, len(now))
	if slices.Equal(old[from:to], now[from:to]) {
		return
	}
	m.patches[x.packet] = append(m.patches[x.packet], patch{x.at, slices.Clone(now[from:to])})
}

// Mask returns the bytes of a packet with everything masked, valid until the next call.
func (m *Masking) Mask(p *Packet) []byte {
	h := &m.headers
	m.sums = m.sums[:0]
	_ = m.link.Decode(h, p) // what could be decoded is masked
	m.buf = append(m.buf[:0], p.Data...)
	switch h.Content {
	case ICMPContent:
		m.quote(h, m.buf)
	case FragmentContent:
		for _, x := range m.patches[p.Number] {
			copy(m.buf[x.at:], x.data)
		}
		if len(m.patches[p.Number]) == 0 {
			m.values(h, m.buf, m.between(h.Src, h.Dst), true)
		}
	default:
		m.payload(h, m.buf, []int{p.Number})
	}
	m.mend(p.Data, m.buf)
	return m.buf
}

// payload masks what a segment or a datagram holds, in out, which is a copy of the bytes
// that h was decoded from.
func (m *Masking) payload(h *Headers, out []byte, packets []int) {
	e := ends{src: h.Source(), dst: h.Destination(), transport: schema.UDP}
	switch h.Content {
	case UDPContent:
		m.values(h, out, m.flows[e], h.PayloadLength > len(h.Payload))
		for _, n := range packets {
			for _, b := range m.datagrams[n] {
				b.Fill.fill(out, h.at.offset, b.From, b.To, b.mark)
			}
		}
	case TCPContent:
		e.transport = schema.TCP
		m.values(h, out, m.flows[e], true)
		m.segment(h, out, e)
	}
}

// segment fills the blanks of a stream that a segment has a part of.
func (m *Masking) segment(h *Headers, out []byte, e ends) {
	first, n := h.Seq, len(h.Payload)
	if h.Flags&SYN != 0 {
		first++
	}
	for page := first >> pageBits; n > 0; page = (page + 1) & (1<<(32-pageBits) - 1) {
		for _, b := range m.streams[streamPage{e, page}] {
			shift := 8 * int(reassembly.Diff32(b.seq, first))
			b.bits.Fill.fill(out[:h.at.offset+len(h.Payload)], h.at.offset, b.bits.From+shift, b.bits.To+shift, b.bits.mark)
		}
		if page == (first+uint32(len(h.Payload))-1)>>pageBits {
			return
		}
	}
}

// between returns the secrets of the sessions between two hosts.
func (m *Masking) between(a, b netip.Addr) []*Secrets {
	return m.hosts[hostsOf(netip.AddrPortFrom(a, 0), netip.AddrPortFrom(b, 0))]
}

// values masks the secrets of sessions in a payload; at its edges also a part of one, where
// the payload may be cut.
func (m *Masking) values(h *Headers, out []byte, secrets []*Secrets, cut bool) {
	m.spans = m.spans[:0]
	for _, s := range secrets {
		m.spans = s.AppendSpans(m.spans, h.Payload)
		if cut {
			m.spans = s.AppendEdges(m.spans, h.Payload)
		}
	}
	for _, s := range m.spans {
		FillBytes.fill(out, h.at.offset, 8*s.From, 8*s.To, m.marks[string(h.Payload[s.From:s.To])])
	}
}

// quote masks what an ICMP message quotes behind the transport header of a packet.
func (m *Masking) quote(h *Headers, out []byte) {
	q := &h.Message.Quote
	if len(m.between(q.Src, q.Dst)) == 0 {
		return
	}
	const icmpWord, udpHeader = 4, 8
	b := h.Payload[icmpWord:]
	headers := len(b)
	if b[0]>>4 == 4 {
		headers = 4 * int(b[0]&0x0f)
	} else if q.Protocol == ipTCP || q.Protocol == ipUDP {
		headers = 40 // what extension headers there are is masked as well
	}
	if q.Protocol == ipTCP && len(b) > headers+12 {
		headers += 4 * int(b[headers+12]>>4)
	} else {
		headers += udpHeader
	}
	FillBytes.fill(out, h.at.offset+icmpWord, 8*headers, 8*len(b), "")
}

// mend sets right the checksums that cover what has changed, inner ones first. As only the
// difference counts, they may cover bytes that the capture does not have.
func (m *Masking) mend(old, now []byte) {
	for _, c := range slices.Backward(m.sums) {
		from, to := min(c.from, len(now)), min(c.to, len(now))
		if c.at+2 > len(now) || slices.Equal(old[from:to], now[from:to]) {
			continue
		}
		given := binary.BigEndian.Uint16(old[c.at:])
		if given == 0 && c.at-c.from == udpSum {
			continue // there is none
		}
		// RFC 1624, section 3, equation 3: HC' = ~(~HC + ~m + m').
		total := uint64(^given) + uint64(^fold(sum(0, old[from:to]))) + uint64(fold(sum(0, now[from:to])))
		mended := ^fold(total)
		if mended == 0 && c.at-c.from == udpSum {
			mended = 0xffff
		}
		binary.BigEndian.PutUint16(now[c.at:], mended)
	}
}
