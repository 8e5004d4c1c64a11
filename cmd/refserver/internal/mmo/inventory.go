package mmo

import (
	"bytes"
	"slices"

	"opscope/cmd/refserver/internal/mmo/testserver"
	"opscope/schema"
)

// item is a stack of things in a slot.
type item struct {
	instance                             uint64
	template, quantity, slot, durability uint32
}

// inventory is what a character carries. Each change makes another revision: a
// request that names an older one is refused (section 4).
type inventory struct {
	revision uint64
	items    []item // in the order in which they came
	results  []result
}

// result is what a request was answered with: one that comes again gets the same
// answer, and changes nothing.
type result struct {
	request []byte
	values  schema.Values
}

// firstInstance is the number before the first item.
const firstInstance = 900_000_000_000

// pack fills a fresh inventory.
func (w *world) pack(b *inventory) {
	b.revision = 1 + w.random.Uint64N(40)
	for i := range w.settings.Inventory.Items {
		w.instances++
		it := item{instance: firstInstance + w.instances, slot: uint32(i), quantity: 1}
		if i%2 == 0 {
			it.template, it.quantity = 10, uint32(2+w.random.IntN(8))
		} else {
			it.template, it.durability = 2001+uint32(i), uint32(20+w.random.IntN(80))
		}
		b.items = append(b.items, it)
	}
}

// snapshot returns the whole inventory as S_InventorySnapshot.
func (b *inventory) snapshot(s *testserver.Settings) schema.Values {
	var items []schema.Values
	for _, it := range b.items {
		items = append(items, schema.Values{
			"item_instance_id": it.instance, "template_id": it.template, "quantity": it.quantity, "slot_index": it.slot, "durability": it.durability,
		})
	}
	return schema.Values{"success": true, "message": "", "revision": b.revision, "capacity": s.Inventory.Capacity, "items": items}
}

// known returns the answer to a request that was answered before, or nil.
func (b *inventory) known(request []byte) schema.Values {
	for _, r := range b.results {
		if bytes.Equal(r.request, request) {
			return r.values
		}
	}
	return nil
}

// remember keeps an answer, and forgets the oldest beyond a number.
func (b *inventory) remember(s *testserver.Settings, request []byte, v schema.Values) {
	if len(b.results) >= s.Inventory.Remember {
		b.results = slices.Delete(b.results, 0, 1)
	}
	b.results = append(b.results, result{bytes.Clone(request), v})
}

func (b *inventory) inSlot(slot uint32) *item {
	i := slices.IndexFunc(b.items, func(it item) bool { return it.slot == slot })
	if i < 0 {
		return nil
	}
	return &b.items[i]
}

// operate does what C_InventoryMoveReq or C_InventoryUseReq ask for. It returns why
// not, "" for done.
func (w *world) operate(b *inventory, message string, v body) string {
	if v.uint("expected_revision") != b.revision {
		return conflict
	}
	refusal := ""
	if message == "InventoryMoveReq" {
		refusal = w.carry(b, v)
	} else {
		refusal = b.use(v)
	}
	if refusal == "" {
		b.revision++
	}
	return refusal
}

// conflict is the refusal of a request for another revision.
const conflict = "revision conflict"

// carry moves a stack, or a part of it, to another slot.
func (w *world) carry(b *inventory, v body) string {
	from, to, n := uint32(v.uint("source_slot")), uint32(v.uint("destination_slot")), uint32(v.uint("quantity"))
	it := b.inSlot(from)
	switch {
	case it == nil || it.instance != v.uint("item_instance_id"):
		return "no such item"
	case to >= uint32(w.settings.Inventory.Capacity) || to == from:
		return "no such slot"
	case n == 0 || n > it.quantity:
		return "not so many"
	}
	other := b.inSlot(to)
	switch {
	case other == nil && n == it.quantity:
		it.slot = to
	case other == nil:
		w.instances++
		part := *it
		part.instance, part.slot, part.quantity = firstInstance+w.instances, to, n
		it.quantity -= n
		b.items = append(b.items, part)
	case other.template == it.template && other.durability == it.durability:
		if other.quantity+n > uint32(w.settings.Inventory.Stack) {
			return "too many for a slot"
		}
		other.quantity += n
		b.consume(from, n)
	case n == it.quantity:
		it.slot, other.slot = to, from
	default:
		return "the slot is taken"
	}
	return ""
}

// use uses one of a stack, or wears off a thing that can be worn off.
func (b *inventory) use(v body) string {
	it := b.inSlot(uint32(v.uint("slot_index")))
	if it == nil || it.instance != v.uint("item_instance_id") {
		return "no such item"
	}
	const wear = 10
	if it.durability > wear {
		it.durability -= wear
		return ""
	}
	b.consume(it.slot, 1)
	return ""
}

// consume takes some of a stack away.
func (b *inventory) consume(slot, n uint32) {
	it := b.inSlot(slot)
	if it.quantity -= n; it.quantity == 0 {
		b.items = slices.DeleteFunc(b.items, func(o item) bool { return o.slot == slot })
	}
}
