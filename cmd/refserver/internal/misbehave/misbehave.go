// Package misbehave makes a server or a bot break one rule of its protocol, and no other:
// what it says passes through a wrapper that adds, changes, drops or delays. A capture of
// it shows what opscope verify is to find.
//
// The rules are named as opscope names them; there are no imports from there, so that a
// name which is wrong is a rule that nobody breaks, which a test of cmd/refserver notices.
// What is made by hand is told in the log like everything else, with a note that says so.
package misbehave

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
)

// Misbehaviour is one way to break a rule.
type Misbehaviour struct {
	Protocol string
	Rule     string
	Doc      string // what is done, in a line
	Scenario string // in which it breaks nothing else

	// What is wrong with the capture, where nobody's behaviour is.
	Late time.Duration // it begins so long after the scenario
	Lost int           // it misses this packet of the wire, counted from 1

	server, client func() act // nil for who behaves
}

// All is the misbehaviours of all protocols.
var All = slices.Concat(of("wulfram", wulfram), of("netrek", netrek), of("lotr2", lotr2), of("mmo", mmo))

// of returns misbehaviours as those of a protocol.
func of(protocol string, list []Misbehaviour) []Misbehaviour {
	list = slices.Clone(list)
	for i := range list {
		list[i].Protocol = protocol
	}
	return list
}

// Find returns how to break a rule of a protocol. The error lists the rules that can be.
func Find(protocol, rule string) (*Misbehaviour, error) {
	var names []string
	for i := range All {
		if m := &All[i]; m.Protocol == protocol {
			if m.Rule == rule {
				return m, nil
			}
			names = append(names, m.Rule)
		}
	}
	return nil, fmt.Errorf("no way to break a rule %q of %s: want one of %s", rule, protocol, strings.Join(names, ", "))
}

// Wrap returns the machine of a side as it misbehaves. A nil Misbehaviour leaves it as it
// is.
func (m *Misbehaviour) Wrap(x machine.Machine, side schema.Sender) machine.Machine {
	if m == nil || !m.Misbehaves(side) {
		return x
	}
	return &culprit{inner: x, rule: m.Rule, act: m.by(side)()}
}

// Misbehaves reports whether a side does: else the capture alone is wrong, or the other
// side.
func (m *Misbehaviour) Misbehaves(side schema.Sender) bool { return m.by(side) != nil }

func (m *Misbehaviour) by(side schema.Sender) func() act {
	if side == schema.Server {
		return m.server
	}
	return m.client
}

// act turns one thing that a machine does into what it does instead.
type act func(c *culprit, out machine.Output) []machine.Output

// culprit is a machine that misbehaves.
type culprit struct {
	inner   machine.Machine
	rule    string
	act     act
	now     time.Time
	delayed []errand
	last    int // number of a record of its own
	peer    machine.Input
}

// errand is something to do later.
type errand struct {
	at  time.Time
	out machine.Output
}

// Handle does what the machine does, with a difference.
func (c *culprit) Handle(now time.Time, in machine.Input) (list []machine.Output) {
	c.now = now
	if in.Kind == machine.Opened {
		c.peer = in
		c.peer.Data = nil
	}
	c.delayed = slices.DeleteFunc(c.delayed, func(e errand) bool {
		due := !e.at.After(now)
		if due {
			list = append(list, e.out)
		}
		return due
	})
	if at := c.inner.Deadline(); in.Kind == machine.Tick && !at.IsZero() && at.After(now) {
		return list
	}
	for _, out := range c.inner.Handle(now, in) {
		list = append(list, c.act(c, out)...)
	}
	return list
}

// Deadline returns when the machine has something to do, or has left something for later.
func (c *culprit) Deadline() time.Time {
	when := c.inner.Deadline()
	for _, e := range c.delayed {
		when = machine.Earlier(when, e.at)
	}
	return when
}

// later does something after a while.
func (c *culprit) later(d time.Duration, out machine.Output) {
	c.delayed = append(c.delayed, errand{c.now.Add(d), out})
}

// ownIDs is added to the numbers of a culprit's own records, which are beside those of its
// machine.
const ownIDs = 1 << 20

// frame is bytes made by hand, with what a log is to call them.
type frame struct {
	message string
	opcode  int
	data    []byte
	mode    int // stream mode, -1 for none
	seq     int
}

// byHand returns frames as one output, in the place of another one.
func (c *culprit) byHand(like machine.Output, frames ...frame) machine.Output {
	like.Data, like.Records = nil, nil
	for _, f := range frames {
		c.last++
		like.Records = append(like.Records, machine.Record{
			ID: ownIDs + c.last, Message: f.message, Opcode: f.opcode, Offset: len(like.Data), Size: len(f.data), Mode: f.mode, Seq: f.seq, Length: -1,
			Opaque: true, Body: schema.NewTree(schema.Values{"opaque": f.data}), Note: "made by hand, to break the rule " + c.rule,
		})
		like.Data = append(like.Data, f.data...)
	}
	return like
}

// says reports whether an output has a record of a message.
func says(out machine.Output, message string) bool {
	return slices.ContainsFunc(out.Records, func(r machine.Record) bool { return r.Message == message })
}

// trigger picks an output: the nth with a record of a message, over a transport.
type trigger struct {
	kind    machine.OutputKind
	message string
	nth     int // from 1
}

func stream(message string) trigger   { return trigger{machine.SendStream, message, 1} }
func datagram(message string) trigger { return trigger{machine.SendDatagram, message, 1} }

// the returns the trigger for a later one.
func (t trigger) the(nth int) trigger {
	t.nth = nth
	return t
}

// once acts on the output that a trigger picks, and lets all others pass.
func once(t trigger, do act) func() act {
	return func() act {
		seen := 0
		return func(c *culprit, out machine.Output) []machine.Output {
			if out.Kind == t.kind && says(out, t.message) {
				if seen++; seen == t.nth {
					return do(c, out)
				}
			}
			return []machine.Output{out}
		}
	}
}

// always acts on each output with a record of a message.
func always(message string, do act) func() act {
	return func() act {
		return func(c *culprit, out machine.Output) []machine.Output {
			if says(out, message) {
				return do(c, out)
			}
			return []machine.Output{out}
		}
	}
}

// behind adds frames behind an output, on the same way.
func behind(t trigger, frames ...frame) func() act {
	return once(t, func(c *culprit, out machine.Output) []machine.Output {
		return []machine.Output{out, c.byHand(out, frames...)}
	})
}

// before adds frames in front of an output.
func before(t trigger, frames ...frame) func() act {
	return once(t, func(c *culprit, out machine.Output) []machine.Output {
		return []machine.Output{c.byHand(out, frames...), out}
	})
}

// instead leaves an output out.
func instead(c *culprit, _ machine.Output) []machine.Output { return nil }

// rewrite changes the records of a message in an output, in place or in length.
func rewrite(message string, change func(r *machine.Record, data []byte) []byte) act {
	return func(c *culprit, out machine.Output) []machine.Output {
		return nonEmpty(c.edit(out, func(r *machine.Record, data []byte) []byte {
			if r.Message != message {
				return data
			}
			return change(r, data)
		}))
	}
}

// patched changes the records of a message in an output where they are.
func patched(message string, change func(data []byte)) act {
	return rewrite(message, func(_ *machine.Record, data []byte) []byte {
		change(data)
		return data
	})
}

// without leaves out the records of a message that a test picks, nil for all.
func without(message string, pick func(data []byte) bool) act {
	return rewrite(message, func(_ *machine.Record, data []byte) []byte {
		if pick == nil || pick(data) {
			return nil
		}
		return data
	})
}

func nonEmpty(out machine.Output) []machine.Output {
	if len(out.Data) == 0 {
		return nil
	}
	return []machine.Output{out}
}

// edit changes the records of an output one by one. One without bytes is left out.
func (c *culprit) edit(out machine.Output, change func(r *machine.Record, data []byte) []byte) machine.Output {
	edited := out
	edited.Data, edited.Records = nil, nil
	at := 0
	for _, r := range out.Records {
		edited.Data = append(edited.Data, out.Data[at:r.Offset]...) // what no record has
		at = r.Offset + r.Size
		was := out.Data[r.Offset:at]
		is := change(&r, bytes.Clone(was))
		if len(is) == 0 {
			continue
		}
		if !bytes.Equal(is, was) {
			r.Note, r.Opaque = "changed, to break the rule "+c.rule, true
			r.Body = schema.NewTree(schema.Values{"opaque": is})
		}
		r.Offset, r.Size = len(edited.Data), len(is)
		edited.Data = append(edited.Data, is...)
		edited.Records = append(edited.Records, r)
	}
	if len(edited.Records) > 0 || len(out.Records) == 0 {
		edited.Data = append(edited.Data, out.Data[at:]...)
	}
	return edited
}

// octets returns bytes given in hex, with spaces where they help. It panics on what is
// none, which is a programmer's mistake.
func octets(text string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}
