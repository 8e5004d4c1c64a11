// Package protocols names the protocols that opscope knows.
//
// To add one:
//
//  1. Write its layouts, with their sources, in schema/protocols/NAME/, and then
//     go generate ./schema, as after each change of them.
//  2. Write its state and its quirks in dissect/NAME: a dissect.Protocol, whose
//     Open returns a dissect.Conversation. wulfram is an example with everything.
//  3. Add it to All below.
//  4. Add its vectors to testdata/vectors/NAME and a capture to pcaps/NAME.
package protocols

import (
	"opscope/dissect"
	"opscope/dissect/lotr2"
	"opscope/dissect/mmo"
	"opscope/dissect/netrek"
	"opscope/dissect/wulfram"
)

// All is the protocols, in the order in which a flow is offered to them.
var All = []dissect.Protocol{
	wulfram.Protocol{},
	netrek.Protocol{},
	lotr2.Protocol{},
	mmo.Protocol{},
}
