package lotr2

import (
	"encoding/hex"
	"fmt"
	"maps"
	"strconv"
	"time"

	"opscope/cmd/refserver/internal/script"
)

// HostScripts and JoinerScripts are what peers can be told. A joiner has been welcomed before its first one, and leaves
// after its last; a host begins at once and goes on.
//
//	wait 2s            do nothing else for so long
//	await start        wait for the ticks of a campaign or a battle; turn: for the end of one; chat: for somebody's
//	say hello          chat
//	letter 2 well met  write to the player with a number, in a campaign
//	trade -3           buy, or sell
//	mark               send what nobody can explain, two bytes
//	end-turn           end the turn
//	order 40 50        give an order in a battle
//	ping               ping the others
//	desync             have a state from here on that is not that of the others
//	opcode 2f 01ff     send a message that nobody knows
//	odd copy           make the next message odd: checksum, checksums, length, first, second, third, copy, slot
//
// Those of a host:
//
//	await players 2    wait until so many others have joined, or have chosen their shields: choice 2
//	option 2 1         edit an option
//	campaign           begin a campaign
//	end-turns          from here on end each turn when all others have
//	skirmish           go over to the set-up of a skirmish
//	battle, finish     begin its battle, end it
//
// Those of a joiner:
//
//	choose 2           choose a shield
//	leave              leave at once
//	rejoin             leave, and come back when the connections are reset
//
// "repeat 10 say hello" does a command so many times, once in 300 ms.
var (
	HostScripts = &script.Book{
		Verbs: with(common, map[string]int{"option": 2, "campaign": 0, "end-turns": 0, "skirmish": 0, "battle": 0, "finish": 0}),
		Check: check,
		Texts: hostTexts,
	}
	JoinerScripts = &script.Book{Verbs: with(common, map[string]int{"choose": 1, "leave": 0, "rejoin": 0}), Check: check, Texts: joinerTexts}
)

// common is what all peers can be told.
var common = map[string]int{
	"wait": 1, "await": 1, "say": 1, "letter": 2, "trade": 1, "mark": 0, "end-turn": 0, "order": 2, "ping": 0, "desync": 0, "opcode": 1, "odd": 1,
}

func with(a, b map[string]int) map[string]int {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// check finds out whether the words of a command are what it takes.
func check(c script.Command) (err error) {
	words := c.Words
	switch c.Verb {
	case "wait":
		_, err = time.ParseDuration(words[0])
	case "await":
		if _, err = script.Choice(awaited, words[0]); err == nil {
			err = areNumbers(words[1:])
		}
	case "letter", "trade":
		err = areNumbers(words[:1])
	case "order":
		err = areNumbers(words)
	case "opcode":
		_, _, err = messageOf(words)
	case "odd":
		_, err = script.Choice(oddities, words[0])
	case "option":
		if err = isBetween(words[0], 0, len(usualOptions)-1); err == nil {
			err = areNumbers(words[1:])
		}
	case "choose":
		err = isBetween(words[0], 1, maxPlayers)
	}
	return err
}

// awaited is what scripts may wait for.
var awaited = map[string]bool{"start": true, "turn": true, "chat": true, "players": true, "choice": true}

func areNumbers(words []string) error {
	for _, w := range words {
		if _, err := strconv.ParseInt(w, 10, 16); err != nil {
			return err
		}
	}
	return nil
}

func isBetween(word string, least, most int) error {
	if n, err := strconv.Atoi(word); err != nil || n < least || n > most {
		return fmt.Errorf("want a number from %d to %d, got %q", least, most, word)
	}
	return nil
}

// maxPayload is the most that a length of one byte says.
const maxPayload = 255

// messageOf returns an opcode and a payload in hex.
func messageOf(words []string) (opcode uint64, payload []byte, err error) {
	if opcode, err = strconv.ParseUint(words[0], 16, 8); err != nil || len(words) == 1 {
		return opcode, nil, err
	}
	if payload, err = hex.DecodeString(words[1]); err == nil && len(payload) > maxPayload {
		err = fmt.Errorf("%d bytes are too many", len(payload))
	}
	return opcode, payload, err
}

// hostTexts and joinerTexts are scripts that need no file. Those of one name belong together.
var (
	hostTexts = map[string]string{
		"lobby": `await players
say welcome`,
		"campaign": `await choice
say let us begin
wait 1s
campaign
end-turns
wait 2s
letter 2 Verily, your neighbour greets you.`,
		"skirmish": `await choice
skirmish
wait 2s
say to arms
battle`,
	}
	joinerTexts = map[string]string{
		"lobby": `choose 2
wait 1s
say hello there
wait 3s
ping
wait 500ms
leave`,
		"campaign": `choose 2
await start
wait 1s
trade 10
mark
end-turn
await turn
await start
wait 1s
trade -3
say good game
wait 500ms
leave`,
		"skirmish": `choose 2
await start
wait 1s
order 40 50
order 41 52
wait 3s
order 12 7
say well fought
wait 500ms
leave`,
	}
)
