package main

import (
	"strings"

	"github.com/spf13/pflag"
)

// repeated is the value of a flag that may be given several times. It is pflag's
// stringArray, but for the CSV writer of 4 KiB that this makes to print each default: over
// all commands there are a hundred such flags, and they are made at every start.
type repeated struct {
	words *[]string
}

// repeatable adds a flag to f that may be given several times. The short name may be empty.
func repeatable(f *pflag.FlagSet, words *[]string, name, short, usage string) {
	f.VarP(repeated{words}, name, short, usage)
}

// Set adds a word.
func (r repeated) Set(word string) error {
	*r.words = append(*r.words, word)
	return nil
}

// GetSlice returns the words; that there is such a method tells cobra to offer the flag again.
func (r repeated) GetSlice() []string { return *r.words }

// Type returns pflag's name of it.
func (r repeated) Type() string { return "stringArray" }

// String returns the words, "" for none.
func (r repeated) String() string { return strings.Join(*r.words, ",") }
