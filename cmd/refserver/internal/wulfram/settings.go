package wulfram

import (
	"strconv"

	"opscope/schema"
)

// The weapon tables of BEHAVIOR (section 10.12).
const (
	weaponSlots  = 13
	weaponTables = 4
	pulseShell   = 4 // the weapon slot with which a local state has a pulse charge
	repairBeam   = 1 // and the one with which it has a repair charge
)

// weapons are the enabled weapon slots of each table. An enabled slot has a bit in
// every local state, so a reader that has not learned them cannot read one.
type weapons [weaponTables]uint16

// armed is what this server enables. No capture has anything enabled, and the
// order of the bits is unconfirmed: ServerConfig.Unarmed has none.
var armed = weapons{
	0: 1<<0 | 1<<pulseShell, // tank: autocannon and pulse shell
	1: 1<<0 | 1<<repairBeam, // scout: autocannon and repair beam
	3: 1 << 0,               // gun turret: autocannon
}

// teach puts the server's own tables into a state.
func (r *rules) teach(s *schema.State) {
	t := s.Table("translation")
	for i, e := range r.widths {
		t.Set(int64(i), schema.Entry{Values: []float64{float64(e.a), float64(e.b), e.top, e.span}, Origin: schema.Learned})
	}
	w := s.Table("weapon_slots")
	for i, mask := range r.weapons {
		w.Set(int64(i), schema.Entry{Values: []float64{float64(mask)}, Origin: schema.Learned})
	}
}

func (w *widths) fields() fields {
	var entries list
	for _, e := range w {
		entries = append(entries, fields{{"a", e.a}, {"unused", 0}, {"b", e.b}, {"max", e.topText}, {"range", e.spanText}})
	}
	return fields{{"entries", entries}}
}

// learnTranslation puts the table of a TRANSLATION into a state. It reports
// whether the table can be used.
func learnTranslation(s *schema.State, v values) bool {
	t := s.Table("translation")
	for i, e := range v.elements("entries") {
		top, err1 := strconv.ParseFloat(string(v.AppendText(nil, v.Member(e, "max"))), 64)
		span, err2 := strconv.ParseFloat(string(v.AppendText(nil, v.Member(e, "range"))), 64)
		a, b := v.member(e, "a"), v.member(e, "b")
		if err1 != nil || err2 != nil || a > 32 || b > 32 {
			return false
		}
		t.Set(int64(i), schema.Entry{Values: []float64{float64(a), float64(b), top, span}, Origin: schema.Learned})
	}
	return true
}

// learnBehavior puts the weapon masks of a BEHAVIOR into a state: a bit for each
// slot whose gate and active flags are both set (section 8.1).
func learnBehavior(s *schema.State, v values) {
	w := s.Table("weapon_slots")
	for i, table := range v.elements("weapon_tables") {
		mask, k := 0, 0
		for slot := table + 1; slot < v.Next(table); slot = v.Next(slot) {
			if v.member(slot, "gate") != 0 && v.member(slot, "active") != 0 {
				mask |= 1 << k
			}
			k++
		}
		w.Set(int64(i), schema.Entry{Values: []float64{float64(mask)}, Origin: schema.Learned})
	}
}

// fields is a BEHAVIOR with four points a jet shape: 3563 bytes. Numbers
// without a known meaning are zero.
func (w *weapons) fields() fields {
	return fields{
		{"u8_0", 0},
		{"construction_timeout", 30.0}, {"fixed_5", repeat(4, 0.0)},
		{"team_size", 16}, {"glimpse_ms", 5000}, {"push_ms", 250},
		{"gravity", 9.8125}, {"u32_37", repeat(2, 0)},
		{"minimum_pulse_strength", 0.25}, {"fixed_49", repeat(11, 0.0)},
		{"u8_93", repeat(2, 0)},
		{"weapon_tables", w.settings()},
		{"entity_types", repeat(39, fields{{"fixed_0", 1.0}, {"fixed_4", 1.0}, {"u32_8", 100}})},
		{"vehicles", repeat(2, vehicleSetting())},
		{"jet_shapes", repeat(4, jetShape())},
		{"tank", repeat(7, 1.0)}, {"scout", repeat(9, 1.0)}, {"bomber", repeat(11, 1.0)},
	}
}

func (w *weapons) settings() (tables list) {
	for _, mask := range w {
		var slots list
		for i := range weaponSlots {
			on := mask >> i & 1
			slots = append(slots, fields{
				{"gate", on}, {"ammo", on}, {"reload", 0}, {"active", on}, {"cooldown", 0},
				{"fixed_5", 0.0}, {"refire_ms", 500}, {"u32_13", repeat(4, 0)}, {"fixed_29", repeat(4, 0.0)},
			})
		}
		tables = append(tables, slots)
	}
	return tables
}

func vehicleSetting() fields {
	return fields{{"fixed_0", repeat(2, 1.0)}, {"u32_8", repeat(2, 0)}, {"fixed_16", repeat(3, 1.0)}, {"u32_28", repeat(2, 0)}}
}

func jetShape() fields {
	point := fields{{"fixed_0", repeat(6, 0.5)}, {"u32_24", 0}}
	return fields{{"count", 4}, {"points", repeat(4, point)}, {"fixed", 1.0}}
}
