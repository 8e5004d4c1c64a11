package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"opscope/dissect"
	"opscope/dissect/capture"
	"opscope/dissect/filter"
	"opscope/dissect/protocols"
	"opscope/dissect/verify"
	"opscope/schema"
)

// completion returns the words that a flag may take. It is asked only by a shell.
type completion func() []string

// complete completes a word, or the last one of a list with commas between them.
func (c completion) complete(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	before := begun[:strings.LastIndexByte(begun, ',')+1]
	var list []string
	for _, word := range c() {
		if strings.HasPrefix(before+word, begun) {
			list = append(list, before+word)
		}
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

// oneOf returns a completion to some words.
func oneOf(words ...string) completion { return func() []string { return words } }

// completeFlags lets a shell complete the flags of a command that take a word of those that
// there are. It is called when the command has its flags.
func completeFlags(c *cobra.Command) {
	formats := []string{"text", "json"}
	if c.Flags().Lookup("field") != nil {
		formats = append(formats, "fields", "tsv", "csv", "table")
	}
	for flag, words := range map[string]completion{
		"format": oneOf(formats...), "color": oneOf("auto", "always", "never"), "summary": oneOf("text", "json"),
		"time":       oneOf("a", "ad", "adoy", "d", "dd", "e", "r", "u", "ud", "udoy"),
		"statistics": oneOf(statisticNames...), "limit": limitNames, "option": oneOf("mmo.order:be", "mmo.order:le"),
		"protocol": protocolWords, "rules": verify.Protocols, "rule": ruleWords, "waive": ruleWords,
		"interface": interfaceWords, "field": fieldWords, "only": messageWords, "hide": messageWords,
	} {
		if c.Flags().Lookup(flag) == nil {
			continue
		}
		if err := c.RegisterFlagCompletionFunc(flag, words.complete); err != nil {
			panic(err) // it is there, and was not registered before
		}
	}
}

// protocolWords returns the protocols that a flow may be taken for.
func protocolWords() (list []string) {
	for _, p := range protocols.All {
		if head, err := p.Head(); err == nil {
			list = append(list, head.Name)
		}
	}
	return list
}

// ruleWords returns the rules of all protocols.
func ruleWords() (list []string) {
	for _, p := range verify.Protocols() {
		for _, r := range verify.Rules(p) {
			list = append(list, r.ID)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// interfaceWords returns the interfaces of this machine.
func interfaceWords() (list []string) {
	devices, err := capture.Devices()
	if err != nil {
		return nil
	}
	for _, d := range devices {
		list = append(list, d.Name)
	}
	return list
}

// builtin returns the schemas of all protocols.
func builtin() (list []*schema.Protocol) {
	for _, name := range schema.BuiltinNames() {
		if p, err := schemaNamed(name); err == nil {
			list = append(list, p)
		}
	}
	return list
}

// fieldWords returns the keys and fields of which there may be columns.
func fieldWords() []string { return filter.NewLanguage(builtin(), dissect.Privacy{}).Paths() }

// messageWords returns the names of all messages.
func messageWords() (list []string) {
	for _, p := range builtin() {
		for _, k := range p.Packets {
			list = append(list, k.Name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
