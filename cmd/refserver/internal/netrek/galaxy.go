package netrek

import (
	"math"
	"math/rand/v2"
)

// Numbers of the usual server (section 1).
const (
	MaxSlots  = 32     // players of the usual server
	galaxy    = 100000 // units across
	perPixel  = 40     // units a pixel of the tactical window
	window    = 500    // pixels across it
	shotCount = 8      // torps of a player
)

// Teams are bits; CP_OUTFIT alone has indexes (section 6.5).
const (
	fed, rom, kli, ori = 1, 2, 4, 8
	allTeams           = fed | rom | kli | ori
)

// teamWords are the names of teams, by their index.
var teamWords = [...]struct {
	letter byte
	short  string
}{{'F', "FED"}, {'R', "ROM"}, {'K', "KLI"}, {'O', "ORI"}}

// teamIndex returns the index of a team's bit, -1 for none or several.
func teamIndex(team int) int {
	for i := range teamWords {
		if team == 1<<i {
			return i
		}
	}
	return -1
}

// teamLetter returns the letter of a team, I without one.
func teamLetter(team int) byte {
	if i := teamIndex(team); i >= 0 {
		return teamWords[i].letter
	}
	return 'I'
}

// Planet flags that this server uses (section 6.5).
const (
	planetRepair = 0x10
	planetFuel   = 0x20
	planetAgri   = 0x40
	planetMask   = 0xb70 // what is sent of them
)

// planet is one of the forty.
type planet struct {
	number int
	name   string
	x, y   int
	owner  int // a team's bit, 0 for nobody
	flags  int
	armies int
	info   int // teams that know the above
}

// atlas is the planets as every capture has them. The flags of the first thirty are
// those of udp-simple.pcap; servers shuffle them.
var atlas = [40]planet{
	{name: "Earth", x: 20000, y: 80000, flags: 0x930}, {name: "Rigel", x: 10000, y: 60000},
	{name: "Canopus", x: 25000, y: 60000, flags: 0x30}, {name: "Beta Crucis", x: 44000, y: 81000, flags: 0x40},
	{name: "Organia", x: 39000, y: 55000, flags: 0x20}, {name: "Deneb", x: 30000, y: 90000, flags: 0x830},
	{name: "Ceti Alpha V", x: 45000, y: 66000}, {name: "Altair", x: 11000, y: 75000, flags: 0x800},
	{name: "Vega", x: 8000, y: 93000, flags: 0x820}, {name: "Alpha Centauri", x: 32000, y: 74000, flags: 0x40},

	{name: "Romulus", x: 20000, y: 20000, flags: 0x930}, {name: "Eridani", x: 45000, y: 7000},
	{name: "Aldeberan", x: 4000, y: 12000, flags: 0x820}, {name: "Regulus", x: 42000, y: 44000, flags: 0x30},
	{name: "Capella", x: 13000, y: 45000}, {name: "Tauri", x: 28000, y: 8000, flags: 0x840},
	{name: "Draconis", x: 28000, y: 23000, flags: 0x820}, {name: "Sirius", x: 40000, y: 25000, flags: 0x20},
	{name: "Indi", x: 25000, y: 44000, flags: 0x40}, {name: "Hydrae", x: 8000, y: 29000, flags: 0x10},

	{name: "Klingus", x: 80000, y: 20000, flags: 0x930}, {name: "Pliedes V", x: 70000, y: 40000},
	{name: "Andromeda", x: 60000, y: 10000}, {name: "Lalande", x: 56400, y: 38200, flags: 0x30},
	{name: "Praxis", x: 91120, y: 9320, flags: 0x820}, {name: "Lyrae", x: 89960, y: 31760},
	{name: "Scorpii", x: 70720, y: 26320, flags: 0x800}, {name: "Mira", x: 83600, y: 45400, flags: 0x40},
	{name: "Cygni", x: 54600, y: 22600, flags: 0x20}, {name: "Achernar", x: 73080, y: 6640, flags: 0x870},

	{name: "Orion", x: 80000, y: 80000, flags: 0x930}, {name: "Cassiopeia", x: 91200, y: 56600, flags: 0x30},
	{name: "El Nath", x: 70800, y: 54200, flags: 0x20}, {name: "Spica", x: 57400, y: 62600, flags: 0x40},
	{name: "Procyon", x: 72720, y: 70880, flags: 0x800}, {name: "Polaris", x: 61400, y: 77000},
	{name: "Arcturus", x: 55600, y: 89000, flags: 0x10}, {name: "Ursae Majoris", x: 91000, y: 94000},
	{name: "Herculis", x: 70000, y: 93000, flags: 0x840}, {name: "Antares", x: 86920, y: 68920, flags: 0x820},
}

// newPlanets returns the planets at the start of a game: ten for each team, known
// to it, with about thirty armies each.
func newPlanets(random *rand.Rand) []*planet {
	var list []*planet
	for i, p := range atlas {
		p.number = i
		p.owner = 1 << (i / 10)
		p.info = p.owner
		p.armies = 28 + random.IntN(5)
		list = append(list, &p)
	}
	return list
}

// class is what a type of ship can do.
type class struct {
	name, desig string
	letter      string
	speed       int // warp
	fuel        int
	shield      int
	hull        int // the damage that destroys it
	armies      int
	torpSpeed   int // warp
	torpDamage  int
	phaser      int // per cent of the usual range and damage
	plasma      bool
	bitmap      int
}

// classes are the ships by their number. Those of destroyer, cruiser and battleship
// are SP_SHIP_CAP packets of captures as far as those go; the rest is this server's
// own.
var classes = [8]class{
	{"Scout", "SC", "s", 12, 5000, 75, 75, 2, 16, 25, 75, false, 0},
	{"Destroyer", "DD", "d", 10, 7000, 85, 85, 5, 14, 30, 85, true, 1},
	{"Cruiser", "CA", "c", 9, 10000, 100, 100, 10, 12, 40, 100, true, 2},
	{"Battleship", "BB", "b", 8, 14000, 130, 130, 6, 12, 40, 105, true, 3},
	{"Assault", "AS", "a", 8, 6000, 80, 200, 20, 16, 30, 80, false, 4},
	{"Starbase", "SB", "o", 2, 60000, 500, 600, 25, 14, 30, 120, true, 5},
	{"Galaxy", "GA", "g", 9, 12000, 140, 120, 5, 13, 40, 100, true, 6},
	{"AT&T", "AT", "*", 60, 12000, 30000, 30000, 1000, 30, 1000, 100, true, 7},
}

// maxHeat is 100 % of a temperature.
const maxHeat = 1000

// course is the way of each direction, in 1024ths: 0 is up, which is negative y,
// and 64 is right.
var course = newCourse()

func newCourse() (table [256]struct{ x, y int }) {
	for i := range table {
		a := float64(i) * math.Pi / 128
		table[i].x = int(math.Round(1024 * math.Sin(a)))
		table[i].y = int(math.Round(-1024 * math.Cos(a)))
	}
	return table
}

// bearing returns the direction from one place to another.
func bearing(x, y, tox, toy int) uint8 {
	a := math.Atan2(float64(tox-x), float64(y-toy))
	return uint8(int(math.Round(a*128/math.Pi)) & 255)
}

// apart reports whether two places are further apart than a distance, which is at
// most the galaxy's size.
func apart(x, y, tox, toy, distance int) bool {
	dx, dy := tox-x, toy-y
	return dx*dx+dy*dy > distance*distance
}

// within returns a coordinate that lies in the galaxy.
func within(v int) int { return max(0, min(galaxy, v)) }
