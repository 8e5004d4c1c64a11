// Package script reads the scripts that machines follow: a command a line, a verb and
// its words.
package script

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Command is one line of a script.
type Command struct {
	Verb  string
	Words []string
	Times int // at least 1
}

// Book is what the scripts of a machine can say, and those that need no file.
type Book struct {
	Verbs map[string]int      // the commands, with the least number of words each needs
	Check func(Command) error // finds out whether the words are what a command takes; nil takes any
	Texts map[string]string   // the built-in scripts, by their names
}

// Parse reads a script. "repeat 3" in front of a command is its number of times. Empty
// lines and those that begin with # are skipped. The error names the line.
func (b *Book) Parse(text string) (list []Command, err error) {
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		c, err := b.command(words)
		if err != nil {
			return nil, fmt.Errorf("script line %d: %w", i+1, err)
		}
		list = append(list, c)
	}
	return list, nil
}

// Builtin reads the built-in script with a name. The error lists those that there are.
func (b *Book) Builtin(name string) ([]Command, error) {
	text, ok := b.Texts[name]
	if !ok {
		return nil, fmt.Errorf("unknown script %q: want one of %s", name, names(b.Texts))
	}
	return b.Parse(text)
}

// Find reads a script of a list, or the built-in one with the name.
func (b *Book) Find(list map[string]string, name string) ([]Command, error) {
	if text, ok := list[name]; ok {
		return b.Parse(text)
	}
	return b.Builtin(name)
}

func (b *Book) command(words []string) (c Command, err error) {
	c.Times = 1
	if words[0] == "repeat" && len(words) > 2 {
		if c.Times, err = strconv.Atoi(words[1]); err != nil || c.Times < 1 {
			return c, fmt.Errorf("repeat %q: want a number of times", words[1])
		}
		words = words[2:]
	}
	c.Verb, c.Words = words[0], words[1:]
	least, known := b.Verbs[c.Verb]
	if !known {
		return c, fmt.Errorf("unknown command %q: want one of %s", c.Verb, names(b.Verbs))
	}
	if len(c.Words) < least {
		return c, fmt.Errorf("%s: want at least %d words behind it, got %d", c.Verb, least, len(c.Words))
	}
	if b.Check == nil {
		return c, nil
	}
	if err := b.Check(c); err != nil {
		return c, fmt.Errorf("%s: %w", c.Verb, err)
	}
	return c, nil
}

// names lists the keys of a map for a person.
func names[V any](m map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

// Choice returns the value that a word stands for.
func Choice[V any](choices map[string]V, word string) (V, error) {
	v, ok := choices[word]
	if !ok {
		return v, errors.New("want one of " + names(choices) + ", got " + strconv.Quote(word))
	}
	return v, nil
}

// Clip returns what of a text fits n bytes of Latin-1.
func Clip(s string, n int) string {
	var out []rune
	for _, r := range s {
		if len(out) == n {
			break
		}
		if r > 0xff {
			r = '?'
		}
		out = append(out, r)
	}
	return string(out)
}

// RepeatEvery is how far the times of a repeated command are apart.
const RepeatEvery = 300 * time.Millisecond

// Cursor is where a machine is in its script.
type Cursor struct {
	left []Command
	done int // times of the next command
	wake time.Time
}

// Begin returns a cursor at the start of a script.
func Begin(script []Command) Cursor { return Cursor{left: script} }

// Next returns the command that is to be done next, and false behind the last.
func (c *Cursor) Next() (Command, bool) {
	if len(c.left) == 0 {
		return Command{}, false
	}
	return c.left[0], true
}

// Done tells that the command was done once. It reports whether it is to be done again.
func (c *Cursor) Done() bool {
	if c.done++; c.done < c.left[0].Times {
		return true
	}
	c.left, c.done = c.left[1:], 0
	return false
}

// DoneAt is Done for a script that repeats a command at times RepeatEvery apart, unless the
// command itself has it sleep.
func (c *Cursor) DoneAt(now time.Time) {
	if c.Done() && !c.Asleep(now) {
		c.Sleep(now.Add(RepeatEvery))
	}
}

// Retry has the next Done count for nothing: the command could not be done yet.
func (c *Cursor) Retry() { c.done-- }

// Sleep has nothing be done before a time.
func (c *Cursor) Sleep(until time.Time) { c.wake = until }

// Asleep reports whether that time is still to come.
func (c *Cursor) Asleep(now time.Time) bool {
	if !now.Before(c.wake) {
		c.wake = time.Time{}
	}
	return !c.wake.IsZero()
}

// Wake returns when the sleep ends, zero for one that is awake.
func (c *Cursor) Wake() time.Time { return c.wake }
