package mmo

import (
	"net/netip"
	"slices"
	"strconv"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
)

// bag is what a bot knows of its inventory.
type bag struct {
	revision uint64
	items    []item
	stale    bool // the next request is to name the revision before
	last     request
}

// request is one that was made about the inventory.
type request struct {
	message string // "" for none
	values  schema.Values
}

// stream takes bytes of the connection. What is no frame ends the bot.
func (b *bot) stream(now time.Time, data []byte) {
	rest := append(b.in, data...)
	for !b.Over {
		frame, err := b.next(rest)
		if err != nil {
			b.Finish(now, "malformed", err.Error())
			return
		}
		if frame == nil {
			break
		}
		b.understand(now, b.cfg.Server, frame, schema.TCP)
		rest = rest[len(frame):]
	}
	b.in = slices.Clone(rest)
}

// datagram takes a datagram of the server.
func (b *bot) datagram(now time.Time, in machine.Input) {
	if in.Peer != b.hello.remote {
		b.observer.Event(now, "stranger", in.Peer.String())
		return
	}
	if frame, err := b.next(in.Data); err == nil && len(frame) == len(in.Data) {
		b.understand(now, in.Peer, frame, schema.UDP)
		return
	}
	b.observer.Event(now, "malformed", "a datagram that is not one frame")
}

// understand takes a frame.
func (b *bot) understand(now time.Time, from netip.AddrPort, frame []byte, via schema.Transport) {
	r, err := b.read(frame, via)
	if err != nil {
		b.observer.Event(now, "malformed", r.Message+": "+err.Error())
		return
	}
	b.observer.Received(now, from, r)
	b.heard[r.Message]++
	if b.waiting == r.Message && !b.Until.IsZero() {
		b.heard[r.Message], b.Until = 0, time.Time{}
	}
	b.handle(now, r.Message, body{r.Body})
}

// handle does what a client does about a message.
func (b *bot) handle(now time.Time, message string, v body) {
	switch message {
	case "EnterGameRes":
		b.answered(now, v)
	case "UdpHelloRes":
		b.hello.answered, b.Ready = true, true
	case "Ping":
		if !b.cfg.Mute {
			b.send("Pong", schema.Values{"number": v.uint("number"), "server_time_ms": v.uint("server_time_ms")})
		}
	case "InventorySnapshot":
		b.bag.take(v.Tree, 0, len(v.Nodes))
	case "InventoryOperationResult":
		if i := v.Field("snapshot"); i >= 0 && v.Nodes[i].Kind == schema.Struct {
			b.bag.take(v.Tree, i+1, v.Next(i))
		}
	}
}

// answered takes the answer to a request to be let in.
func (b *bot) answered(now time.Time, v body) {
	port := v.uint("udp_port")
	switch {
	case !v.bool("success") && !b.inLobby():
		b.Finish(now, "refused", "the server says "+strconv.Quote(v.Text("message")))
	case !v.bool("success"):
	case port == 0 || port > 0xffff:
		b.Finish(now, "malformed", "UDP to port "+strconv.FormatUint(port, 10))
	default:
		b.hello = hello{token: v.Text("udp_token"), remote: netip.AddrPortFrom(b.cfg.Server.Addr(), uint16(port))}
		b.knock(now)
	}
}

// take takes over a snapshot, whose members are nodes from one index up to another.
func (g *bag) take(t *schema.Tree, from, to int) {
	member := func(name string) int { return t.Find(from, to, name) }
	g.revision, g.items = t.Uint(member("revision")), g.items[:0]
	list := member("items")
	if list < 0 {
		return
	}
	for i := list + 1; i < t.Next(list); i = t.Next(i) {
		number := func(name string) uint64 { return t.Uint(t.Member(i, name)) }
		g.items = append(g.items, item{
			instance: number("item_instance_id"), template: uint32(number("template_id")), quantity: uint32(number("quantity")),
			slot: uint32(number("slot_index")), durability: uint32(number("durability")),
		})
	}
}

// inSlot returns what the bot believes to be in a slot; an empty item for nothing.
func (g *bag) inSlot(slot uint32) item {
	i := slices.IndexFunc(g.items, func(it item) bool { return it.slot == slot })
	if i < 0 {
		return item{}
	}
	return g.items[i]
}

// expects returns the revision that a request names.
func (g *bag) expects() uint64 {
	if g.stale && g.revision > 0 {
		g.stale = false
		return g.revision - 1
	}
	return g.revision
}
