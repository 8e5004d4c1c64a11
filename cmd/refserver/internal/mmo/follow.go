package mmo

import (
	"slices"
	"strings"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
)

// inLobby reports whether the script says itself when to enter.
func (b *bot) inLobby() bool {
	return slices.ContainsFunc(b.cfg.Script, func(c Command) bool { return c.Verb == "enter" })
}

// follow does the commands of the script until it has to wait.
func (b *bot) follow(now time.Time) {
	for b.Leaving.IsZero() && !b.Over && !b.Waits(now) {
		c, more := b.Script.Next()
		if !more {
			b.leave(now)
			return
		}
		b.do(now, c)
		b.Script.DoneAt(now)
	}
}

// await has the script wait for a message, not forever.
func (b *bot) await(now time.Time, message string) {
	if b.heard[message] > 0 {
		b.heard[message] = 0
		return
	}
	b.waiting, b.Until = message, now.Add(patience)
}

func (b *bot) leave(now time.Time) {
	b.Leaving, b.walking = now, nil
}

// do does one command, which Scripts.Parse has checked.
func (b *bot) do(now time.Time, c Command) {
	switch c.Verb {
	case "enter":
		b.enter(now, word(c, 0))
	case "wait":
		d, _ := time.ParseDuration(word(c, 0))
		b.Script.Sleep(now.Add(d))
	case "await":
		b.await(now, word(c, 0))
	case "walk":
		b.walking = heading(word(c, 0))
		b.step(now)
	case "stop":
		if b.walking != nil {
			b.input(now, direction{yaw: b.walking.yaw})
			b.walking = nil
		}
	case "say":
		b.send("ChatReq", schema.Values{"text": strings.Join(c.Words, " ")})
	case "attack":
		b.attack(now, c)
	case "carry", "use", "stale", "again":
		b.inventory(c)
	case "leave":
		b.Finish(now, "left", "the script says so")
	default:
		b.odd(c)
	}
}

// attack attacks, in the next step of the combo unless the command says which.
func (b *bot) attack(now time.Time, c Command) {
	b.attacks++
	b.combo = uint32(number(c, 0, uint64(b.combo)%uint64(b.settings.Combat.Combo)+1))
	b.send("AttackReq", schema.Values{"attack_sequence": b.attacks, "combo_step": b.combo, "client_time_ms": b.clock(now)})
}

// inventory makes requests about the inventory.
func (b *bot) inventory(c Command) {
	g := &b.bag
	switch c.Verb {
	case "stale":
		g.stale = true
		return
	case "carry":
		it := g.inSlot(uint32(number(c, 0, 0)))
		g.last = request{"InventoryMoveReq", schema.Values{
			"client_request_id": b.requestID(), "expected_revision": g.expects(), "item_instance_id": it.instance,
			"source_slot": number(c, 0, 0), "destination_slot": number(c, 1, 0), "quantity": number(c, 2, uint64(it.quantity)),
		}}
	case "use":
		it := g.inSlot(uint32(number(c, 0, 0)))
		g.last = request{"InventoryUseReq", schema.Values{
			"client_request_id": b.requestID(), "expected_revision": g.expects(), "item_instance_id": it.instance, "slot_index": number(c, 0, 0),
		}}
	}
	if g.last.message != "" {
		b.send(g.last.message, g.last.values)
	}
}

// requestID returns 16 bytes that nobody else has drawn.
func (b *bot) requestID() []byte {
	id := make([]byte, 16)
	for i := range id {
		id[i] = byte(b.random.Uint32())
	}
	return id
}

// odd sends what an ordinary client does not.
func (b *bot) odd(c Command) {
	switch c.Verb {
	case "echo":
		b.send("EchoReq", schema.Values{"payload": data(c, 0)})
	case "flood":
		for range number(c, 0, 0) {
			b.send("EchoReq", schema.Values{"payload": []byte{byte(b.random.Uint32())}})
		}
	case "login":
		b.send("LoginReq", schema.Values{"name": word(c, 0), "password": word(c, 1)})
	case "register":
		b.send("RegisterReq", schema.Values{"name": word(c, 0), "password": word(c, 1), "mail": word(c, 2)})
	case "servers":
		b.send("ServerListReq", nil)
	case "select":
		b.send("SelectServerReq", schema.Values{"server_id": number(c, 0, 0)})
	case "send":
		b.byHands(&b.tcp, c)
	case "datagram":
		var p machine.Parcel
		b.byHands(&p, c)
		b.post(p)
	case "raw":
		b.tcp.Add(&b.clerk.Desk, raw(data(c, 0)), data(c, 0))
	case "raw-datagram":
		var p machine.Parcel
		p.Add(&b.clerk.Desk, raw(data(c, 0)), data(c, 0))
		b.post(p)
	}
}

// byHands puts the frames that a command spells into a parcel.
func (b *bot) byHands(p *machine.Parcel, c Command) {
	for i := 0; i < len(c.Words); i += 2 {
		r, data := b.byHand(int(number(c, i, 0)), data(c, i+1))
		p.Add(&b.clerk.Desk, r, data)
	}
}

// raw returns the record of bytes that are no frame.
func raw(data []byte) machine.Record {
	return machine.Record{
		Opcode: -1, Size: len(data), Mode: -1, Seq: -1, Length: -1, Opaque: true,
		Body: schema.NewTree(schema.Values{"opaque": data}), Note: "bytes that are no frame",
	}
}
