package mmo

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"opscope/cmd/refserver/internal/script"
	"opscope/schema"
)

// Command is one line of a bot's script: a verb and its words. A bot has entered the
// game and is bound before the first one, unless its script has an enter; it leaves
// after the last.
//
//	enter                ask to be let in; wrong, expired or stranger is what is wrong with it
//	wait 2s              do nothing else for so long
//	await ChatNtf        wait for a message of the server, one since the last await of it
//	walk east            go on in a direction, 20 inputs a second; north, northeast, ...
//	stop                 stand still
//	say hello            talk to everybody
//	attack 2             attack, in a step of the combo; without a number in the next one
//	carry 0 5 1          carry so many from a slot to another; without a number all of them
//	use 3                use what is in a slot
//	stale                have the next carry or use name the revision before the present one
//	again                say the last carry or use again, with the same request id
//	echo cafe            have bytes sent back
//	login Ada secret     a deprecated request; register Ada secret a@b, servers, select 1 as well
//	send 0x0299 0801     send frames made by hand: ids and bodies, - for an empty one; datagram by UDP, all in one
//	raw 030001           send bytes, whatever they are; raw-datagram by UDP
//	flood 100            send so many echo requests at once
//	repeat 10 attack     a command so many times, once in 300 ms
//	leave                hang up at once
//
// Empty lines and those that begin with # are skipped.
type Command = script.Command

// Scripts are what bots can be told.
var Scripts = &script.Book{Verbs: leastWords(), Check: check, Texts: builtin}

// verbs are the commands, with the least and the largest number of words each takes;
// -1 is any.
var verbs = map[string]struct{ least, most int }{
	"enter": {0, 1}, "wait": {1, 1}, "await": {1, 1}, "walk": {1, 1}, "stop": {0, 0}, "say": {1, -1}, "attack": {0, 1},
	"carry": {2, 3}, "use": {1, 1}, "stale": {0, 0}, "again": {0, 0}, "echo": {1, 1},
	"login": {2, 2}, "register": {3, 3}, "servers": {0, 0}, "select": {1, 1},
	"send": {2, -1}, "datagram": {2, -1}, "raw": {1, 1}, "raw-datagram": {1, 1}, "flood": {1, 1}, "leave": {0, 0},
}

func leastWords() map[string]int {
	least := map[string]int{}
	for verb, takes := range verbs {
		least[verb] = takes.least
	}
	return least
}

// check finds out whether the words of a command are what it takes.
func check(c Command) (err error) {
	if most := verbs[c.Verb].most; most >= 0 && len(c.Words) > most {
		return fmt.Errorf("%d words behind it are too many", len(c.Words))
	}
	switch c.Verb {
	case "enter":
		if w := word(c, 0); w != "" && w != "wrong" && w != "expired" && w != "stranger" {
			return fmt.Errorf("want nothing, wrong, expired or stranger, got %q", w)
		}
	case "wait":
		_, err = time.ParseDuration(word(c, 0))
	case "await":
		return knownMessage(word(c, 0))
	case "walk":
		if heading(word(c, 0)) == nil {
			return fmt.Errorf("want a direction such as north or southeast, got %q", word(c, 0))
		}
	case "attack", "carry", "use", "select", "flood":
		for _, w := range c.Words {
			if _, bad := strconv.ParseUint(w, 10, 16); bad != nil {
				err = bad
			}
		}
	case "send", "datagram":
		return checkFrames(c)
	case "echo":
		_, err = hex.DecodeString(word(c, 0))
	case "raw", "raw-datagram":
		b, bad := hex.DecodeString(word(c, 0))
		if err = bad; err == nil && len(b) == 0 {
			err = errors.New("no bytes")
		}
	}
	return err
}

// checkFrames finds out whether the words are ids and bodies.
func checkFrames(c Command) error {
	if len(c.Words)%2 > 0 {
		return errors.New("want an id and a body for each frame")
	}
	for i := 0; i < len(c.Words); i += 2 {
		if _, err := strconv.ParseUint(word(c, i), 0, 16); err != nil {
			return err
		}
		if _, err := hex.DecodeString(word(c, i+1)); err != nil && word(c, i+1) != "-" {
			return err
		}
	}
	return nil
}

// word returns a word, "" where there is none.
func word(c Command, i int) string {
	if i < len(c.Words) {
		return c.Words[i]
	}
	return ""
}

// number returns a word that is a number, or another one where there is none.
func number(c Command, i int, without uint64) uint64 {
	n, err := strconv.ParseUint(word(c, i), 0, 64)
	if err != nil {
		return without
	}
	return n
}

// data returns a word of hexadecimal digits as bytes. Any other word, such as -, is
// none.
func data(c Command, i int) []byte {
	b, err := hex.DecodeString(word(c, i))
	if err != nil {
		return nil
	}
	return b
}

// heading returns the direction with a name, or nil.
func heading(name string) *direction {
	i := slices.IndexFunc(compass, func(d direction) bool { return d.name == name })
	if i < 0 {
		return nil
	}
	return &compass[i]
}

// knownMessage refuses a name that no message of the server has.
func knownMessage(name string) error {
	p := protocol()
	if k := p.PacketNamed(name); k == nil || k.From != schema.Server {
		return fmt.Errorf("no message of the server is called %q%s", name, p.HintPacket(name))
	}
	return nil
}

// builtin are the scripts that need no file.
var builtin = map[string]string{
	"enter": `wait 300ms
leave`,
	"play": `say hello there
echo 6869
walk east
wait 1s
walk northwest
wait 1s
stop
attack
wait 400ms
attack
wait 400ms
attack
carry 0 9
await InventoryOperationResult
use 9
await InventoryOperationResult
stale
use 9
again
walk south
wait 2s
repeat 4 attack
say good bye
wait 500ms
leave`,
	"walk": `walk north
wait 2s
walk southeast
wait 2s
walk west
wait 2s
stop
wait 300ms
leave`,
	"idle": `wait 1h`,
}
