package dplay

import (
	"bytes"
	"net/netip"
	"slices"

	"opscope/dissect"
	"opscope/schema"
)

// foresee takes from a command, before its record, what the session is announced with:
// the game, and who is who.
func (c *conversation) foresee(f *frame, k *schema.Packet, opcode uint64) {
	if k != nil && k.From != schema.AnySender {
		f.Said(k.From)
	}
	switch opcode {
	case enumSessionsReply, enumSessions, superEnumPlayersReply, sessionDescChanged:
	default:
		return
	}
	if len(k.Of(schema.AnySender)) == 0 {
		return // a user's schema says so
	}
	t := &c.scratch.Tree
	t.Reset(f.data)
	c.scratch.Trial.State, c.scratch.Trial.Envelope, c.scratch.Trial.Short = nil, c.system.Envelope, f.short
	// What an error cuts off is not there.
	_ = c.scratch.Trial.Decode(c.Protocol, k.Name, k.Of(schema.AnySender)[0], t, 8*c.system.Size(), 8*len(f.data))
	app, instance := t.Field("app_guid"), -1
	if s := t.Field("session"); s >= 0 {
		app, instance = t.Member(s, "app_guid"), t.Member(s, "instance_guid")
	}
	if instance >= 0 {
		c.another(f, [16]byte(t.AppendBytes(nil, instance)))
	}
	if app >= 0 {
		c.named([16]byte(t.AppendBytes(nil, app)))
	}
	if opcode == enumSessions {
		c.seeks(f)
	}
}

// seeks notes where the client waits for the answer to a broadcast.
func (c *conversation) seeks(f *frame) {
	src, dst := f.Ends()
	if !toMany(dst.Addr()) {
		return // it knows the host
	}
	c.listens = addrOf(src.Addr(), c.system.Number("port", f.data))
	c.session.Expect(dst, schema.Server)
	c.session.Expect(c.listens, schema.Client)
	if dst.Addr() == c.session.Server.Addr() {
		c.broadcast = dst.Addr()
	}
}

// toMany reports whether an address is a broadcast, as far as one can tell without the
// mask of the network.
func toMany(a netip.Addr) bool {
	const all = 255
	return a.Is4() && a.As4()[3] == all || a.IsMulticast()
}

// another begins a new session when the hosts have agreed on another one.
func (c *conversation) another(f *frame, instance [16]byte) {
	if c.instance != ([16]byte{}) && c.instance != instance {
		c.session.Restart(f.Carrier, "another DirectPlay session", c.Tables())
		c.forget()
	}
	c.instance = instance
}

// forget drops what was learned, for a new session.
func (c *conversation) forget() {
	c.release()
	c.players.init(c.Protocol)
	c.verdict, c.passed, c.asked = undecided, 0, 0
	c.session.Name = c.Protocol.Name
	for _, q := range c.requests {
		c.session.Hold().Forget(&q.ticket)
	}
	c.requests, c.puzzles = nil, nil
	c.talk.Reset()
}

// named takes the GUID of the game that the session is for.
func (c *conversation) named(app [16]byte) {
	own := c.game.Application()
	switch {
	case c.session.Chosen():
	case bytes.Equal(app[:], own[:]):
		c.claim()
	default:
		c.verdict, c.session.Name = foreign, c.Protocol.Name
		c.release()
	}
}

// claim makes the session the game's.
func (c *conversation) claim() {
	if c.verdict == claimed {
		return
	}
	c.verdict, c.session.Name = claimed, c.session.Schema().Name
	c.release()
}

// waiting is a player message that waits until it is known whose it is.
type waiting struct {
	c       *conversation
	frame   frame
	carrier dissect.Carrier
	place   dissect.Place
}

// weigh reports whether a player message can be decoded now. Where nothing has named the
// game, the first ones wait until there are several that pass its tests.
func (c *conversation) weigh(f *frame) bool {
	if c.verdict != undecided || f.joined > 0 {
		return true
	}
	if f.missing > 0 || !c.talk.Passes(f.data[c.player.Size():]) {
		c.passed = 0
		c.release()
		return true
	}
	if c.passed++; c.passed >= several {
		c.recognized(f.Carrier)
		return true
	}
	w := &waiting{c: c, frame: *f, carrier: *f.Carrier}
	w.carrier.Packets = slices.Clone(f.Packets)
	w.frame.Carrier, w.frame.data = &w.carrier, slices.Clone(f.data)
	c.waiting = append(c.waiting, w)
	p := c.session.Reserve(w, len(f.data)+waitingBytes)
	if slices.Contains(c.waiting, w) { // else its time was up at once
		w.place = p
	}
	return false
}

// waitingBytes is what a message that waits takes beside its bytes.
const waitingBytes = 256

// recognized claims the session for the game because of messages that pass its tests.
func (c *conversation) recognized(at *dissect.Carrier) {
	c.claim()
	at.Turn()
	c.session.Event(at, "game_recognized", c.session.Name+": several messages pass its tests, and none named the game")
}

// Overdue decodes what waits with what is known by now: two messages are several, one is
// not.
func (w *waiting) Overdue(p dissect.Place) {
	w.place = p
	if len(w.c.waiting) > 1 {
		w.c.recognized(&w.carrier)
		return
	}
	w.c.release()
}

// release decodes what waits, each in its place.
func (c *conversation) release() {
	list := c.waiting
	c.waiting = nil
	for _, w := range list {
		c.session.At(w.place, func() {
			w.carrier.Turn()
			c.message(&w.frame)
		})
	}
}
