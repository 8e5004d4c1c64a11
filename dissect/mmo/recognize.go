package mmo

import (
	"slices"

	"opscope/dissect"
	"opscope/schema"
	"opscope/schema/wire"
)

const (
	// leastChain is how many frames in a row are believed where no port tells: related
	// games have the same header, and small ids.
	leastChain = 3
	// leastLate is the same for a row that begins somewhere in the bytes, of which there
	// are many to begin at.
	leastLate = 4
	// maxLate is how far into the bytes a row may begin: within a frame of usual size.
	maxLate = 1 << 10
)

// openers are the packets that a session begins with. The deprecated ones are those of
// old clients.
var openers = []string{"EnterGameReq", "LoginReq", "RegisterReq"}

// Recognize takes a stream that begins with the packet that enters the game, or holds a
// row of frames of one side; and a datagram that is a frame of UDP to its last byte.
// Items 4 and 12; no port is known.
func (p Protocol) Recognize(w *dissect.Scratch, t schema.Transport, data []byte) (schema.Sender, dissect.Recognition) {
	s, err := p.Schema()
	if err != nil {
		return schema.AnySender, dissect.Foreign
	}
	if t == schema.UDP {
		return recognizeDatagram(s, w, data)
	}
	if p := opener(s, w, data); p != nil {
		return p.From, dissect.Opening
	}
	f := framing(s, schema.TCP)
	for off := range min(maxLate, len(data)) {
		least := leastLate
		if off == 0 {
			least = leastChain
		}
		if by, ok := chain(s, f, w, data[off:], least); ok {
			return by, dissect.Familiar
		}
	}
	return schema.AnySender, dissect.Foreign
}

// opener returns the packet that opens a session, if the bytes begin with its start.
func opener(s *schema.Protocol, w *dissect.Scratch, data []byte) *schema.Packet {
	f := framing(s, schema.TCP)
	head, ok := headOf(f, data)
	if !ok {
		return nil
	}
	p := s.Packet(head.Opcode, schema.Client, schema.TCP)
	if p == nil || p.From != schema.Client || !slices.Contains(openers, p.Name) || len(p.Of(schema.Client)) == 0 {
		return nil
	}
	l := p.Of(schema.Client)[0]
	body := data[:min(head.Size, len(data))]
	w.Tree.Reset(body)
	w.Trial.State, w.Trial.Short = nil, wire.Incomplete
	if len(body) == head.Size {
		w.Trial.Short = wire.Malformed
	}
	err := w.Trial.Decode(s, p.Name, l, &w.Tree, 8*head.Head, 8*len(body))
	switch {
	case err != nil && err.Kind == wire.Incomplete && !l.Guessed() && err.Path != p.Name:
		return p // a known field, such as a long token, goes on in the next segment
	case err != nil || len(w.Trial.Remarks) > 0 || w.Trial.End < 8*len(body):
		return nil
	case l.Guessed() && !hasText(&w.Tree) || !l.Guessed() && !tells(&w.Tree):
		return nil
	}
	return p
}

// hasText reports whether a body has a text, as the name and the password of a login.
func hasText(t *schema.Tree) bool {
	return slices.ContainsFunc(t.Nodes, func(n schema.Node) bool { return n.Kind == schema.Text && n.BodyLen > 0 })
}

// chain walks whole frames of one side from the start of data: at least so many, one of
// which is convincing.
func chain(s *schema.Protocol, f *schema.Framing, w *dissect.Scratch, data []byte, least int) (schema.Sender, bool) {
	by, convinced := schema.AnySender, 0
	for n := 0; ; n++ {
		if n >= least {
			return by, convinced > 0 && by != schema.AnySender
		}
		head, err := f.Cut(data)
		if err != nil || head.Size > maxFrame {
			return by, false
		}
		p := s.Packet(head.Opcode, by, schema.TCP)
		if p == nil {
			return by, false
		}
		switch plausible(s, w, schema.TCP, by, data[:head.Size]) {
		case dissect.Implausible:
			return by, false
		case dissect.Convincing:
			convinced++
		}
		if p.From != schema.AnySender {
			by = p.From
		}
		data = data[head.Size:]
	}
}

// recognizeDatagram takes a datagram whose size is its own, with a packet that travels
// over UDP, and a body that its layout reads to the end.
func recognizeDatagram(s *schema.Protocol, w *dissect.Scratch, data []byte) (schema.Sender, dissect.Recognition) {
	head, ok := framing(s, schema.UDP).Head(data)
	if !ok || head.Size != len(data) || head.Size == head.Head {
		return schema.AnySender, dissect.Foreign
	}
	p := s.Packet(head.Opcode, schema.AnySender, schema.UDP)
	if p == nil || plausible(s, w, schema.UDP, schema.AnySender, data) == dissect.Implausible {
		return schema.AnySender, dissect.Foreign
	}
	return p.From, dissect.Familiar
}
