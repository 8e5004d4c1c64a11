package netrek

import (
	"opscope/dissect"
	"opscope/schema"
	"opscope/schema/wire"
)

const (
	// leastKinds is how many types a row of packets has that is believed on a port
	// which tells nothing: a list of small numbers looks like packets of 4 bytes.
	leastKinds = 3
	// leastRow is how many bytes a row of two types has: the updates of a game may be
	// alike.
	leastRow = 512
	// longestRow is how many packets are looked at for that: enough of 12 bytes, and more
	// than the lines of text, some twenty, with which a server greets.
	longestRow = 48
	// leastDatagram is the least datagram that is believed for its SP_SEQUENCE alone.
	leastDatagram = 8
)

// Recognize takes a stream that begins with CP_SOCKET, or holds packets of one sender
// in a row; a datagram that begins with SP_SEQUENCE, or opens UDP; and text
// datagrams. Section 2.
func (p Protocol) Recognize(w *dissect.Scratch, t schema.Transport, data []byte) (schema.Sender, dissect.Recognition) {
	s, err := p.Schema()
	if err != nil || len(data) == 0 {
		return schema.AnySender, dissect.Foreign
	}
	if t == schema.TCP {
		return recognizeStream(s, w, data)
	}
	return recognizeDatagram(s, w, data)
}

func recognizeStream(s *schema.Protocol, w *dissect.Scratch, data []byte) (schema.Sender, dissect.Recognition) {
	f := s.Framing("tcp")
	if data[0] == cpSocket && opens(s, f, w, data) {
		return schema.Client, dissect.Opening
	}
	most := max(s.Limit("resync_server"), s.Limit("resync_client"))
	enough := int(s.Limit("resync_packets"))
	for off := range min(int(most)+1, len(data)) {
		client := believed(s, f, w, schema.Client, data[off:], enough)
		server := believed(s, f, w, schema.Server, data[off:], enough)
		switch {
		case client && server:
			return schema.AnySender, dissect.Familiar
		case client:
			return schema.Client, dissect.Familiar
		case server:
			return schema.Server, dissect.Familiar
		}
	}
	return schema.AnySender, dissect.Foreign
}

// opens reports whether a stream begins as a client's does. A client of another version,
// whom the server turns away, is known by the feature that it names next.
func opens(s *schema.Protocol, f *schema.Framing, w *dissect.Scratch, data []byte) bool {
	frame, err := f.FindTyped(&w.Trial, s, schema.Client, data)
	if err != nil {
		return false
	}
	if plausible(s, schema.TCP, w, schema.Client, data[:frame.Size]) == dissect.Convincing {
		return true
	}
	next := data[frame.Size:]
	if len(next) == 0 || next[0] != cpFeature {
		return false
	}
	frame, err = f.FindTyped(&w.Trial, s, schema.Client, next)
	return err == nil && plausible(s, schema.TCP, w, schema.Client, next[:frame.Size]) == dissect.Convincing
}

// believed reports whether data begins with a row of packets which is enough where no port
// tells: so many, or more of them.
func believed(s *schema.Protocol, f *schema.Framing, w *dissect.Scratch, by schema.Sender, data []byte, enough int) bool {
	for most := enough; ; most += enough {
		r := measure(s, f, w, by, data, most)
		switch {
		case !r.whole || r.packets < enough:
			return false
		case r.kinds >= leastKinds || r.kinds > 1 && r.size >= leastRow:
			return convincing(s, f, schema.TCP, w, by, data, enough) && convincing(s, f, schema.TCP, w, by, data, r.packets)
		case r.size == len(data) || r.packets >= longestRow:
			return false
		}
	}
}

func recognizeDatagram(s *schema.Protocol, w *dissect.Scratch, data []byte) (schema.Sender, dissect.Recognition) {
	if p := textPacket(s, data); p != nil {
		if !decodesText(s, w, p, data) {
			return schema.AnySender, dissect.Foreign
		}
		return p.From, dissect.Opening
	}
	by, as := schema.Server, dissect.Opening
	switch data[0] {
	case spSequence:
		if as = dissect.Familiar; len(data) < leastDatagram {
			return schema.AnySender, dissect.Foreign
		}
	case spUDPReply:
	case cpUDPReq:
		by = schema.Client
	default:
		return schema.AnySender, dissect.Foreign
	}
	if !walks(s, s.Framing("udp"), schema.UDP, w, by, data) {
		return schema.AnySender, dissect.Foreign
	}
	return by, as
}

// textPacket returns the packet of a text datagram; nil for one of the game.
func textPacket(s *schema.Protocol, data []byte) *schema.Packet {
	if len(data) == 0 {
		return nil
	}
	switch data[0] {
	case textQuery, textReply, textMetaReply, textSolicit:
		return s.Packet(uint64(data[0]), schema.AnySender, schema.UDP)
	}
	return nil
}

// decodesText reports whether a text datagram is read to its end, and can be shown.
func decodesText(s *schema.Protocol, w *dissect.Scratch, p *schema.Packet, data []byte) bool {
	w.Tree.Reset(data)
	w.Trial.Short = wire.Malformed
	err := w.Trial.Decode(s, p.Name, p.Of(p.From)[0], &w.Tree, 8, 8*len(data))
	return err == nil && controlsIn(&w.Tree) == 0
}
