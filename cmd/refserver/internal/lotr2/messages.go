package lotr2

import (
	"bytes"
	"fmt"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
)

// lastSlot is where the slots begin again, at 1: slot 0 is only that of the first
// message of a process (section 6).
const lastSlot = 39

// copies is how often a message is sent.
const copies = 3

// sentOnce are the messages that are not repeated (section 6).
var sentOnce = map[int]bool{0x0a: true, 0x0e: true, 0x23: true, 0x43: true, 0x54: true}

// oddity is what is on purpose wrong with the next message.
type oddity string

// The oddities.
const (
	oddChecksum  oddity = "checksum"  // the first send has a wrong checksum
	oddChecksums oddity = "checksums" // all of them have
	oddLength    oddity = "length"    // the length is not that of the payload
	oddFirst     oddity = "first"     // the first send is left out
	oddSecond    oddity = "second"    // the second
	oddThird     oddity = "third"     // the third
	oddCopy      oddity = "copy"      // the second send has another payload
	oddSlot      oddity = "slot"      // a slot is left out in front of it
)

var oddities = map[string]oddity{
	"checksum": oddChecksum, "checksums": oddChecksums, "length": oddLength, "first": oddFirst, "second": oddSecond, "third": oddThird,
	"copy": oddCopy, "slot": oddSlot,
}

// drops reports whether a send, counted from 0, is left out.
func (o oddity) drops(send int) bool {
	return o == oddFirst && send == 0 || o == oddSecond && send == 1 || o == oddThird && send == 2
}

// spoils reports whether the checksum of a send is wrong.
func (o oddity) spoils(send int) bool { return o == oddChecksums || o == oddChecksum && send == 0 }

// slots counts the messages of a process: 0, then 1 to 39 again and again.
type slots struct{ next int }

func (s *slots) take() int {
	n := s.next
	if s.next++; s.next > lastSlot {
		s.next = 1
	}
	return n
}

// say sends a message of the game to everybody who has joined, by the id 0. It takes a
// slot even while there is nobody.
func (p *peer) say(now time.Time, message string, v schema.Values) {
	p.send(now, p.joined(), 0, message, v)
}

// tell sends a message of the game to one player.
func (p *peer) tell(now time.Time, l *link, message string, v schema.Values) {
	p.send(now, []*link{l}, l.user, message, v)
}

// send sends a message of the game over some links, as often as its kind asks for.
func (p *peer) send(now time.Time, links []*link, to uint32, message string, v schema.Values) {
	r, payload, err := p.body(p.lotr2, message, p.player.Size()+p.frame.Size(), v)
	if err != nil {
		p.observer.Event(now, "dropped", err.Error())
		return
	}
	p.post(now, links, to, r, payload)
}

// post sends a payload.
func (p *peer) post(now time.Time, links []*link, to uint32, r machine.Record, payload []byte) {
	odd := p.odd
	p.odd = ""
	if odd == oddSlot {
		p.slots.take()
	}
	slot := p.slots.take()
	sends := copies
	if sentOnce[r.Opcode] {
		sends = 1
	}
	for _, l := range links {
		first := 0
		for send := range sends {
			if odd.drops(send) {
				continue
			}
			id := p.postOne(now, l, p.copyOf(r, payload, odd, send, first), to, slot)
			if first == 0 {
				first = id
			}
		}
	}
}

// parcel is one send of a message in the making.
type parcel struct {
	machine.Record
	payload []byte
	head    schema.Values // the envelopes'
}

// copyOf makes one send of a message, first being the number of the first.
func (p *peer) copyOf(r machine.Record, payload []byte, odd oddity, send, first int) parcel {
	c := parcel{Record: r, payload: payload, head: schema.Values{}}
	c.Resend = first
	c.Length = len(payload)
	switch {
	case odd == oddLength:
		c.Length++
		c.head["length"] = c.Length
		c.Note = "a length that is not that of the payload"
	case odd.spoils(send):
		c.head["checksum"] = schema.Sum8(payload) + 1
		c.Note = "a wrong checksum"
	case odd == oddCopy && send == 1 && len(payload) > 0:
		p.alter(&c)
	}
	c.head["opcode"], c.head["copy"] = r.Opcode, send // 1 is the bit 0x40, 2 the bit 0x80
	return c
}

// alter changes a copy: one letter of a text, as it stands behind four bytes, or
// another byte.
func (p *peer) alter(c *parcel) {
	c.payload = bytes.Clone(c.payload)
	c.payload[min(4, len(c.payload)-1)] ^= 0x20
	c.Note = "a copy that is not what was sent first"
	f, err := p.read(p.carry(schema.Values{"opcode": c.Opcode}, c.payload), p.side, schema.TCP)
	if err != nil {
		panic(fmt.Sprintf("lotr2: %s does not read back: %v", c.Message, err))
	}
	c.Body = f.Body
}

// postOne sends one frame over a link, and returns its number.
func (p *peer) postOne(now time.Time, l *link, c parcel, to uint32, slot int) int {
	c.head["slot"] = slot
	c.head["from_id"], c.head["to_id"] = p.user, to
	data := p.carry(c.head, c.payload)
	c.ID, c.Seq, c.Size = p.NextID(), slot, len(data)
	c.Head = logged(c.head)
	l.write(now, machine.Output{Kind: machine.SendStream, Data: data, Records: []machine.Record{c.Record}})
	return c.ID
}

// heard is the last message of a peer, by which its copies are known.
type heard struct {
	valid   bool
	slot    int
	opcode  int
	payload []byte
}

// message takes a frame of the game. What fails its checks is refused, and copies of
// what was taken are ignored (section 9).
func (l *link) message(now time.Time, f received, broken error) {
	p := l.peer
	switch last := &l.last; {
	case f.length != len(f.payload):
		l.complain(now, "refused", fmt.Sprintf("%s: a length of %d, with %d bytes", f.Message, f.length, len(f.payload)))
		return
	case f.checksum != schema.Sum8(f.payload):
		l.complain(now, "refused", fmt.Sprintf("%s: checksum %d, want %d", f.Message, f.checksum, schema.Sum8(f.payload)))
		return
	case broken != nil:
		l.complain(now, "malformed", broken.Error())
		return
	case f.copy > 0 && last.valid && last.slot == f.slot:
		if last.opcode != f.Opcode || !bytes.Equal(last.payload, f.payload) {
			l.complain(now, "refused", f.Message+": a copy that is not what was sent first")
		}
		return
	case l.user == 0 || f.from != l.user:
		l.complain(now, "stranger", fmt.Sprintf("%s from the id %#x, which is not the player's", f.Message, f.from))
		return
	case f.to != 0 && f.to != p.user:
		l.complain(now, "stranger", fmt.Sprintf("%s to the id %#x", f.Message, f.to))
		return
	}
	l.last = heard{true, f.slot, f.Opcode, bytes.Clone(f.payload)}
	p.observer.Received(now, l.from, f.Record)
	if !f.Opaque {
		p.played(now, l, f)
	}
}
