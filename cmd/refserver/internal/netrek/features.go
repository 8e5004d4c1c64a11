package netrek

import (
	"strings"

	"opscope/cmd/refserver/internal/script"
	"opscope/schema"
)

// wants are the features of a session that the server looks at, by their names in
// capitals.
type wants map[string]bool

// offers are the features that this server turns on when it is asked, those of the
// client that it only grants among them. What is here works.
var offers = map[string]bool{
	"FEATURE_PACKETS": true, "WHY_DEAD": true, "WHY_DEAD_2": true, "SELF_8FLAGS": true, "19FLAGS": true, "SHIP_CAP": true,
	"SP_GENERIC_32": true, "FULL_DIRECTION_RESOLUTION": true, "FULL_WEAPON_RESOLUTION": true, "CHECK_PLANETS": true,
	"SP_FLAGS_ALL": true, "SP_RANK": true, "SP_LTD": true,

	"MULTIMACROS": true, "NEWMACRO": true, "SMARTMACRO": true, "CONTINUOUS_MOUSE": true, "CONTINUOUS_STEER": true,
	"INFO_MODE1": true, "BEEPLITE": true, "VIEW_BOX": true,
}

// refuses are the features that it knows and leaves off.
var refuses = map[string]bool{
	"CLOAK_MAXWARP": true, "SHOW_ALL_TRACTORS": true, "SHOW_ARMY_COUNT": true, "SHOW_OTHER_SPEED": true, "SHOW_CLOAKERS": true,
	"TURN_KEYS": true, "SHOW_VISIBILITY_RANGE": true, "AUTO_WEAPONS": true, "DEAD_WARP": true, "RC_DISTRESS": true, "SBHOURS": true, "TIPS": true,
}

// maxGeneric is the highest version of SP_GENERIC_32: b.
const maxGeneric = 2

// feature answers a CP_FEATURE: on, off or unknown. The type of an unknown one is
// NUL (section 3).
func (c *session) feature(b *schema.Tree) {
	name := b.Text("name")
	word := strings.ToUpper(name)
	kind, value := b.Text("feature_type"), -1
	arg1 := b.Number("arg1")
	switch on := b.Number("value") > 0; {
	case offers[word] && on:
		value = 1
	case offers[word] || refuses[word]:
		value = 0
	default:
		kind, arg1 = "", 0
	}
	if word == "SP_GENERIC_32" && value == 1 {
		arg1 = c.negotiate(arg1)
	}
	if c.wants == nil {
		c.wants = wants{}
	}
	if value >= 0 {
		c.wants[word] = value == 1
	}
	c.answer(kind, arg1, value, name)
	if word == "FEATURE_PACKETS" && value == 1 {
		c.answer("S", 0, int(1e9/frameEvery.Nanoseconds()), "FPS")
		c.answer("S", 0, int(1e9/c.every.Nanoseconds()), "UPS")
	}
}

// negotiate returns the version of SP_GENERIC_32 for a client that knows versions up
// to one. 0 counts as the first; beyond what the server has none is sent.
func (c *session) negotiate(highest int) int {
	switch {
	case highest == 0:
		c.generic = 'a'
	case highest > 0 && highest <= maxGeneric:
		c.generic = byte('a' + highest - 1)
	default:
		c.generic = 0
	}
	return maxGeneric
}

// answer sends an SP_FEATURE, from which the client learns.
func (c *session) answer(kind string, arg1, value int, name string) {
	c.send("SP_FEATURE", schema.Values{"feature_type": kind, "arg1": arg1, "arg2": 0, "value": value, "name": script.Clip(name, 79)})
	c.server.setFeature(c.state, name, value)
}

// has reports whether a feature is on.
func (c *session) has(name string) bool { return c.wants[name] }
