package wulfram

import "math/bits"

// What an entity record may hold (section 8.2).
const (
	hasDefinition = 1 << iota
	hasPosition
	hasVelocity
	hasRotation
	hasSpin
	hasHealth
	hasWeapon
	hasEnergy
	hasOwner
	hardUpdate
)

// whole is the mask of an entity that a client does not know yet. A position never
// goes without a rotation: a client exits over that (section 8.2).
const whole = hasDefinition | hasPosition | hasRotation | hasHealth

// moving is the mask of one that has moved.
const moving = hasPosition | hasVelocity | hasRotation | hasSpin

// widths is a TRANSLATION, by slot.
type widths [slots]slot

// rules are what a server sets for its sessions and what its updates depend on.
type rules struct {
	widths  widths
	weapons weapons
}

// record returns an entity record with what the mask says.
func (r *rules) record(e *entity, mask int) fields {
	if e.snapped {
		mask |= whole | hardUpdate
	}
	manned := 0
	if e.driver != nil {
		manned = 1
	}
	f := fields{{"id", e.id}, {"manned", manned}, {"mask", mask}, {"bank", 0}}
	for m := mask; m != 0; m &= m - 1 {
		f = append(f, r.part(e, 1<<bits.TrailingZeros(uint(m)))...)
	}
	return f
}

// part returns the fields of one bit of the mask.
func (r *rules) part(e *entity, bit int) fields {
	w := &r.widths
	switch bit {
	case hasDefinition:
		return definition(e)
	case hasPosition:
		return fields{{"position", w[slotPosition].vector(e.position)}}
	case hasVelocity:
		return fields{{"velocity", w[slotVelocity].vector(e.velocity)}}
	case hasRotation:
		return fields{{"rotation", w[slotRotation].vector(e.rotation)}}
	case hasSpin:
		return fields{{"spin", w[slotSpin].vector(e.spin)}}
	case hasHealth:
		return fields{{"health", w[slotHealth].scalar(e.health)}}
	case hasWeapon:
		return fields{{"weapon_state", fields{{"weapon", weaponTable(e)}, {"active", r.active(e)}}}}
	case hasEnergy:
		return fields{{"energy", w[slotEnergy].scalar(e.energy)}}
	case hasOwner:
		return fields{{"owner", e.owner()}}
	}
	return nil // hardUpdate has no payload
}

func definition(e *entity) fields {
	f := fields{{"type", e.kind}, {"team_a", e.team}, {"team_b", e.team}}
	switch e.kind {
	case kindDecoration:
		f = append(f, field{"decoration", list{e.id, uint32(1)}})
	case kindCargoBox:
		f = append(f, field{"cargo", e.cargo})
	}
	snap := 0
	if e.snapped {
		snap = 1
	}
	return append(f, field{"snap", snap})
}

// owner returns the player that an entity belongs to, 0 for nobody.
func (e *entity) owner() uint32 {
	if e.driver == nil {
		return 0
	}
	return e.driver.player
}

// weaponTable returns the id of the weapon table of a vehicle.
func weaponTable(e *entity) int {
	switch e.kind {
	case kindScout:
		return 1
	case kindTurret:
		return 3
	}
	return 0
}

// active has a bit for each enabled slot of the vehicle's table, in slot
// order and the first in the highest bit: what the facts leave open.
func (r *rules) active(e *entity) int {
	mask := r.weapons[weaponTable(e)]
	if mask == 0 || e.driver == nil || e.driver.inputs[channelPrimary] == 0 {
		return 0
	}
	return 1 << (bits.OnesCount16(mask) - 1)
}

// localState returns the block about a player's own vehicle (section 8.1), nil
// without one.
func (r *rules) localState(e *entity) any {
	if e == nil {
		return nil
	}
	w, mask := &r.widths, r.weapons[weaponTable(e)]
	f := fields{{"weapon", weaponTable(e)}, {"health", w[slotHealth].scalar(e.health)},
		{"energy", w[slotEnergy].scalar(e.energy)}, {"active", r.active(e)}}
	if mask&(1<<pulseShell) != 0 {
		f = append(f, field{"pulse_charge", w[slotPulseCharge].scalar(e.energy / 2)})
	}
	if mask&(1<<repairBeam) != 0 {
		f = append(f, field{"repair_charge", w[slotRepairCharge].scalar(1 - e.energy/2)})
	}
	return f
}
