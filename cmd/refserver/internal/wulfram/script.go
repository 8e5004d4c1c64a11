package wulfram

import (
	"strconv"
	"time"

	"opscope/cmd/refserver/internal/script"
)

// Command is one line of a bot's script: a verb and its words. A bot has logged in
// before the first one, and leaves after the last.
//
//	wait 2s              do nothing else for so long
//	say hello there      chat to everybody; long texts are split
//	team-say hello       chat to the own team
//	long 5000            chat of so many bytes
//	team red             choose a team: red, blue or a number
//	spawn 1 tank         enter the world at a pad, as a tank or a scout; then wait for it
//	move forward 0.5     set an input: turn, forward, strafe, jump, jets, tilt, roll, fire, ...
//	look 1003            look at an entity, or at none
//	drop, deploy         leave the cargo behind, as a box or as what is in it
//	resend               ask for the TANK again
//	ping                 ask for a round trip
//	skip                 use up a sequence of the chat, and have it ignored
//	squad, beacon, retarget, demand, kudos
//	                     requests whose bodies nobody knows, with made up ones
//	oversize             try to send what is too large
//	leave                leave at once
//	repeat 10 look 5     a command so many times, as fast as acknowledgements come
//
// Empty lines and those that begin with # are skipped.
type Command = script.Command

// Scripts are what bots can be told.
var Scripts = &script.Book{
	Verbs: map[string]int{
		"wait": 1, "say": 1, "team-say": 1, "long": 1, "team": 1, "spawn": 2, "move": 2, "look": 1, "drop": 0, "deploy": 0,
		"resend": 0, "ping": 0, "skip": 0, "squad": 0, "beacon": 0, "retarget": 0, "demand": 0, "kudos": 0, "oversize": 0, "leave": 0,
	},
	Check: check,
	Texts: builtin,
}

// check finds out whether the words of a command are what it takes.
func check(c Command) (err error) {
	switch c.Verb {
	case "wait":
		_, err = time.ParseDuration(c.Words[0])
	case "long":
		_, err = strconv.ParseUint(c.Words[0], 10, 16)
	case "team":
		_, err = numberOf(c.Words[0], teamNames)
	case "look":
		_, err = numberOf(c.Words[0], viewNames)
	case "spawn":
		if _, err = strconv.Atoi(c.Words[0]); err == nil {
			_, err = numberOf(c.Words[1], vehicleNames)
		}
	case "move":
		if _, err = numberOf(c.Words[0], channelNames); err == nil {
			_, err = strconv.ParseFloat(c.Words[1], 64)
		}
	}
	return err
}

var (
	teamNames    = map[string]int{"none": 0, "red": 1, "blue": 2}
	vehicleNames = map[string]int{"tank": kindTank, "scout": kindScout, "bomber": kindBomber}
	viewNames    = map[string]int{"none": -1}
)

// numberOf returns the number that a word names, or is.
func numberOf(word string, names map[string]int) (int, error) {
	if n, ok := names[word]; ok {
		return n, nil
	}
	return strconv.Atoi(word)
}

// builtin are the scripts that need no file.
var builtin = map[string]string{
	"login": `team blue
spawn 2 tank
wait 1s
leave`,
	"talk": `team blue
say hello
long 3052
wait 200ms
long 5000
wait 200ms
say /long 7000
wait 1s
team-say that was long
leave`,
	"squad": `team red
spawn 3 scout
repeat 3 squad
wait 300ms
beacon
repeat 2 squad
wait 300ms
repeat 4 beacon
kudos
demand
wait 1s
leave`,
	"play": `team red
spawn 1 tank
wait 500ms
say hello there
move forward 1
look 1003
wait 1s
move turn 0.5
move jump 1
wait 400ms
move jump 0
look none
move fire 1
wait 1200ms
move fire 0
squad
beacon
retarget
resend
ping
move turn 0
move forward 0
drop
team-say on my way
say /dock
wait 1s
say /die
wait 1s
spawn 1 scout
wait 2s
deploy
skip
say good bye
wait 300ms
leave`,
}
