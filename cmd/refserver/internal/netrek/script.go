package netrek

import (
	"fmt"
	"strconv"
	"time"

	"opscope/cmd/refserver/internal/script"
)

// Command is one line of a bot's script: a verb and its words. A bot has logged in
// before the first one, and leaves after the last.
//
//	wait 2s              do nothing else for so long
//	feature SHIP_CAP     ask for a feature; SP_GENERIC_32 in its second version
//	outfit fed cruiser   choose a team, any is by the seed, and a ship; then wait for it
//	await dead           wait until the ship is lost, or another player is there: dead, enemy
//	udp port             go over to UDP, and wait for it: the client sends first, or packet: the server
//	tcp                  go back to TCP
//	mode simple          what goes over UDP: tcp, simple, fat, double
//	short v2             ask for short packets, v1 or v2, or off; then wait for them
//	update               ask for everything
//	rate 200ms           ask for updates so far apart
//	ping on              start pings, or stop them: off
//	speed 5              fly at this warp
//	course 64            turn; a direction of 0 to 255, or enemy: towards the nearest
//	torp enemy           fire a torp, likewise
//	phaser enemy         fire a phaser
//	plasma enemy         fire a plasma
//	det, mine            detonate the torps of enemies, the own ones
//	shield off           on or off; cloak and repair likewise
//	orbit                go into orbit
//	lock planet 3        lock on a planet or a player
//	tractor 1            tie a player, pressor pushes; off with -1
//	bomb, beam up        bomb a planet, beam armies up or down
//	war 15               declare war to a mask of teams
//	refit destroyer      change the ship
//	say hello            talk to everybody, team-say to the own team, tell 1 hello to one player
//	quit                 destroy the own ship
//	leave                say good bye at once
//	raw 01ff             send bytes, whatever they are
//	repeat 10 torp 64    a command so many times, once in 300 ms
//
// Empty lines and those that begin with # are skipped.
type Command = script.Command

// Scripts are what bots can be told.
var Scripts = &script.Book{
	Verbs: map[string]int{
		"wait": 1, "feature": 1, "outfit": 2, "await": 1, "udp": 1, "tcp": 0, "mode": 1, "short": 1, "update": 0, "rate": 1, "ping": 1,
		"speed": 1, "course": 1, "torp": 1, "phaser": 1, "plasma": 1, "det": 0, "mine": 0, "shield": 1, "cloak": 1, "repair": 1,
		"orbit": 0, "lock": 2, "tractor": 1, "pressor": 1, "bomb": 0, "beam": 1, "war": 1, "refit": 1,
		"say": 1, "team-say": 1, "tell": 2, "quit": 0, "leave": 0, "raw": 1,
	},
	Check: check,
	Texts: builtin,
}

// choices are the words that a number stands for, by the verb.
var choices = map[string]map[string]int{
	"udp":    {"port": connectPort, "packet": connectPacket},
	"mode":   {"tcp": modeTCP, "simple": modeSimple, "fat": modeFat, "double": modeDouble},
	"short":  {"v1": shortV1, "v2": shortV2, "off": 0},
	"ping":   {"on": 1, "off": 0},
	"shield": {"on": 1, "off": 0},
	"cloak":  {"on": 1, "off": 0},
	"repair": {"on": 1, "off": 0},
	"await":  {"dead": int(awaitDead), "enemy": int(awaitEnemy)},
	"beam":   {"up": 1, "down": 2, "stop": 0},
	"refit":  ships,
}

// ships and teams are the words of outfit; any is a team by the seed.
var (
	ships = map[string]int{
		"scout": 0, "destroyer": 1, "cruiser": 2, "battleship": 3, "assault": 4, "starbase": 5, "galaxy": 6, "att": 7,
	}
	teams = map[string]int{"fed": 0, "rom": 1, "kli": 2, "ori": 3, "any": anyTeam}
)

// anyTeam is a team by the seed.
const anyTeam = -1

// check finds out whether the words of a command are what it takes.
func check(c Command) (err error) {
	switch word := c.Words; c.Verb {
	case "wait", "rate":
		_, err = time.ParseDuration(word[0])
	case "outfit":
		if _, err = script.Choice(teams, word[0]); err == nil {
			_, err = script.Choice(ships, word[1])
		}
	case "speed", "tractor", "pressor", "war", "tell":
		_, err = strconv.ParseInt(word[0], 10, 8)
	case "course", "torp", "phaser", "plasma":
		if word[0] != "enemy" {
			_, err = strconv.ParseUint(word[0], 10, 8)
		}
	case "lock":
		if word[0] != "planet" && word[0] != "player" {
			return fmt.Errorf("want planet or player, got %q", word[0])
		}
		_, err = strconv.ParseUint(word[1], 10, 7)
	case "raw":
		_, err = unhex(word[0])
	default:
		if list := choices[c.Verb]; list != nil {
			_, err = script.Choice(list, word[0])
		}
	}
	return err
}

// builtin are the scripts that need no file.
var builtin = map[string]string{
	"login": `outfit fed cruiser
wait 500ms
speed 4
course 64
wait 1s
leave`,
	"play": `feature SHIP_CAP
feature SP_RANK
feature SP_GENERIC_32
feature WHY_DEAD_2
outfit any cruiser
ping on
wait 300ms
say hello there
speed 4
course 32
wait 1s
torp 32
torp 40
wait 300ms
phaser 64
plasma 96
cloak on
wait 500ms
cloak off
shield off
team-say on my way
lock planet 0
wait 6s
orbit
wait 500ms
bomb
beam up
wait 2s
beam down
wait 1s
refit destroyer
wait 3s
shield on
speed 3
wait 500ms
mine
quit
await dead
outfit any scout
wait 1s
say good bye
leave`,
	"duel": `feature WHY_DEAD_2
outfit any cruiser
await enemy
shield off
course enemy
repeat 12 torp enemy
phaser enemy
wait 1s
repeat 6 torp enemy
phaser enemy
wait 1s
det
phaser enemy
wait 2s
say good fight
leave`,
	"short": `feature SELF_8FLAGS
short v2
outfit any cruiser
wait 300ms
say hello, in short
speed 5
course 48
repeat 8 torp 48
phaser 64
wait 1s
plasma 10
bomb
wait 500ms
update
short v1
torp 10
phaser 10
wait 1s
short off
wait 500ms
leave`,
	"udp": `outfit any cruiser
udp port
wait 300ms
say hello by udp
speed 5
course 16
repeat 3 torp 16
phaser 80
ping on
wait 2s
update
mode tcp
wait 300ms
mode simple
mode fat
wait 300ms
udp packet
wait 500ms
course 128
tcp
wait 300ms
course 0
wait 300ms
leave`,
}
