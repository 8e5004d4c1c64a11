package dissect

import (
	"fmt"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"opscope/schema"
	"opscope/schema/wire"
)

// Defect is a mistake in a protocol's code that a capture has brought to light: a
// panic. It costs the record in question, which is shown as bytes.
type Defect struct {
	Protocol string
	Text     string // of the panic
	Place    string // file and line: "wulfram/datagram.go:123"
	Packet   int    // number of the first packet that shows it, 0 for none
	Count    int    // how often it happened
}

// Error says in one line what happened where.
func (d *Defect) Error() string {
	text := "defect in the dissector of " + d.Protocol + " at " + d.Place + ": " + d.Text
	if d.Packet > 0 {
		text = "packet " + strconv.Itoa(d.Packet) + ": " + text
	}
	if d.Count > 1 {
		text += " (" + strconv.Itoa(d.Count) + " times)"
	}
	return text
}

// maxDefects is how many places are told apart. A protocol with more is no use.
const maxDefects = 64

// guarded stands between a run and a Conversation that may panic.
type guarded struct {
	Conversation
	run      *run
	protocol string
	fault    *wire.Error // of the last Cut, if it panicked
}

// converse opens a conversation, behind the guard if there is one.
func (r *run) converse(p Protocol, s *Session) (c Conversation) {
	if !r.options.Guard {
		return p.Open(s)
	}
	g := &guarded{run: r, protocol: s.schema.Name}
	defer func() {
		if v := recover(); v != nil {
			g.caught(v, nil)
		}
		c = g // NB: without a Conversation each of its methods panics, and is caught
		if _, ok := g.Conversation.(Connector); ok {
			c = guardedPeers{g}
		}
	}()
	g.Conversation = p.Open(s)
	return g
}

// guardedPeers is a guarded Conversation that is a Connector, too.
type guardedPeers struct{ *guarded }

// Connects denies where it panics.
func (g guardedPeers) Connects(f *Flow) (connects bool) {
	defer func() {
		if v := recover(); v != nil {
			g.caught(v, g.run.packets)
			connects = false
		}
	}()
	return g.Conversation.(Connector).Connects(f)
}

// recognize asks a protocol what first bytes are to it, of which nothing is known.
func (r *run) recognize(p Protocol, t schema.Transport, data []byte) (by schema.Sender, as Recognition) {
	if r.options.Guard {
		defer func() {
			if v := recover(); v != nil {
				r.defect(v, r.names[p], r.packets)
				by, as = schema.AnySender, Foreign
			}
		}()
	}
	r.scratch.Trial.State, r.scratch.Trial.Envelope = nil, nil
	return p.Recognize(&r.scratch, t, data)
}

// caught notes a panic of the conversation.
func (g *guarded) caught(v any, packets []int) { g.run.defect(v, g.protocol, packets) }

// defect notes a panic. What was being decoded with is in no state to go on.
func (r *run) defect(v any, protocol string, packets []int) {
	r.scratch = Scratch{look: r.scratch.look}
	r.summary.Defects++
	d := Defect{Protocol: protocol, Text: fmt.Sprint(v), Place: place(), Count: 1}
	if len(packets) > 0 {
		d.Packet = packets[len(packets)-1]
	}
	i := slices.IndexFunc(r.defects, func(o Defect) bool { return o.Place == d.Place && o.Protocol == d.Protocol })
	switch {
	case i >= 0:
		r.defects[i].Count++
	case len(r.defects) < maxDefects:
		r.defects = append(r.defects, d)
	}
	r.lastDefect = d.Place
}

// place returns where the panic that is being recovered began, without the folders
// of whoever built the program.
func place() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	for panicked := false; ; {
		f, more := frames.Next()
		inRuntime := strings.HasPrefix(f.Function, "runtime.")
		if panicked && !inRuntime {
			return path.Join(path.Base(path.Dir(f.File)), path.Base(f.File)) + ":" + strconv.Itoa(f.Line)
		}
		panicked = panicked || f.Function == "runtime.gopanic"
		if !more {
			return "an unknown place"
		}
	}
}

// Cut finds nothing where it panics, so that a boundary is looked for behind. Fault says so.
func (g *guarded) Cut(d Direction, data []byte) (f schema.Frame, err *wire.Error) {
	g.fault = nil
	defer func() {
		if v := recover(); v != nil {
			g.caught(v, g.run.packets)
			g.fault = &wire.Error{Layer: g.protocol, Path: "envelope", Want: "a frame", Got: "a defect at " + g.run.lastDefect}
			f, err = schema.Frame{}, g.fault
		}
	}()
	return g.Conversation.Cut(d, data)
}

// Fault tells of the defect where it, or the Cut before it, panics.
func (g *guarded) Fault(d Direction, data []byte) (err *wire.Error) {
	defer func() {
		if v := recover(); v != nil {
			g.caught(v, g.run.packets)
			err = &wire.Error{Layer: g.protocol, Path: "envelope", Want: "an error", Got: "a defect at " + g.run.lastDefect}
		}
	}()
	if g.fault != nil {
		return g.fault
	}
	return g.Conversation.Fault(d, data)
}

// Doubt doubts nothing where it panics.
func (g *guarded) Doubt(d Direction, frame, after []byte) (err *wire.Error) {
	defer func() {
		if v := recover(); v != nil {
			g.caught(v, g.run.packets)
			err = nil
		}
	}()
	return g.Conversation.Doubt(d, frame, after)
}

// Plausible finds a frame implausible where it panics.
func (g *guarded) Plausible(d Direction, frame []byte) (p Plausibility) {
	defer func() {
		if v := recover(); v != nil {
			g.caught(v, g.run.packets)
			p = Implausible
		}
	}()
	return g.Conversation.Plausible(d, frame)
}

// Claim claims nothing where it panics.
func (g *guarded) Claim(d *Datagram) (c Claim) {
	defer func() {
		if v := recover(); v != nil {
			g.caught(v, d.Packets)
			c = Maybe
		}
	}()
	return g.Conversation.Claim(d)
}

// Tables returns nothing where it panics.
func (g *guarded) Tables() (list []LearnedTable) {
	defer func() {
		if v := recover(); v != nil {
			g.caught(v, nil)
			list = nil
		}
	}()
	return g.Conversation.Tables()
}

// Frame shows a frame as bytes where it panics.
func (g *guarded) Frame(f *Frame) {
	outer, taken := g.begin(f.Offset)
	defer func() {
		if v := recover(); v != nil {
			g.caught(v, f.Packets)
			g.run.salvage(&f.Carrier, f.Data, f.Size, f.Offset, taken)
		}
		g.run.covered = outer
	}()
	g.Conversation.Frame(f)
}

// Datagram shows what is left of a datagram as bytes where it panics.
func (g *guarded) Datagram(d *Datagram, final bool) (done bool) {
	outer, taken := g.begin(0)
	defer func() {
		if v := recover(); v != nil {
			g.caught(v, d.Packets)
			g.run.salvage(&d.Carrier, d.Data, d.Length, 0, taken)
			done = true
		}
		g.run.covered = outer
	}()
	return g.Conversation.Datagram(d, final)
}

// begin notes what there was before a call: where the records so far end, and how many
// are taken and not pushed.
func (g *guarded) begin(offset int64) (outer int64, taken int) {
	outer, g.run.covered = g.run.covered, offset
	return outer, len(g.run.hold.out)
}

// salvage emits a record of the bytes that a defect has cost, which are those behind
// the last record that was emitted, and drops what was being filled.
func (r *run) salvage(c *Carrier, data []byte, size int, offset int64, taken int) {
	for len(r.hold.out) > taken {
		r.hold.Discard(&r.hold.out[len(r.hold.out)-1].record)
	}
	from := int(min(max(r.covered-offset, 0), int64(len(data))))
	rec := r.frameRecord(c)
	rec.Message, rec.Offset = "defect", offset+int64(from)
	rec.Raw, rec.Rest, rec.Size = data[from:], data[from:], max(size, len(data))-from
	rec.Note("defect", "at "+r.lastDefect)
	r.push(rec)
}
