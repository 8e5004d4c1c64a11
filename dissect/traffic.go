package dissect

import (
	"net/netip"
	"time"

	"opscope/reassembly"
	"opscope/schema"
)

// Traffic is what the packets of one flow amount to while it belongs to one session.
type Traffic struct {
	File, Session, Flow int    // Session is 0 for a flow of no session
	Protocol            string // of the session, or of the port; empty for a flow of no known protocol
	Transport           schema.Transport
	Client, Server      netip.AddrPort
	First, Last         time.Time // of its packets; the earliest and the latest
	// By the client and by the server: packets, and their bytes on the wire with all
	// headers. The pieces of a datagram that came in fragments count each.
	Packets  [2]int
	Bytes    [2]int64
	Segments Segments
	Ending   string // how the connection ended; empty for one that did not, and for UDP
}

// traffic is what a flow counts, by side.
type traffic struct {
	first, last time.Time
	packets     [2]int
	bytes       [2]int64
}

// count counts the packet, or the fragments, that were taken last.
func (r *run) count(f *Flow, side reassembly.Side) {
	t := &f.traffic
	switch now := r.packet.Time; {
	case t.packets == [2]int{}:
		t.first, t.last = now, now
	case now.After(t.last): // nearly always
		t.last = now
	case now.Before(t.first):
		t.first = now
	}
	t.packets[side] += len(r.packets)
	t.bytes[side] += r.wireBytes()
}

// wireBytes returns the bytes of the packet on the wire. Of fragments only the last packet
// is at hand: the headers of the others are taken to be as long as its own.
func (r *run) wireBytes() int64 {
	if len(r.parts) == 0 {
		return int64(r.packet.Length)
	}
	var payload int64
	last := 0
	for _, p := range r.parts {
		payload += int64(p.Length)
		if p.Packet == r.packet.Number {
			last = p.Length
		}
	}
	return payload + int64(len(r.parts))*int64(max(0, r.packet.Length-last))
}

// account tells what a flow has counted, and has it begin anew.
func (r *run) account(f *Flow) {
	t, counted := r.trafficOf(f)
	f.traffic = traffic{}
	if f.state == accepted {
		f.segments = Segments{} // else they are still to be added to the summary
	}
	if counted && r.options.Traffic != nil {
		r.options.Traffic(&t)
	}
}

// trafficOf returns what a flow has counted since it was last accounted for, and whether
// that is anything.
func (r *run) trafficOf(f *Flow) (t Traffic, counted bool) {
	if f.traffic.packets == [2]int{} {
		return t, false
	}
	t = Traffic{
		File: r.file, Flow: f.ID, Transport: f.Transport, First: f.traffic.first, Last: f.traffic.last,
		Packets: f.traffic.packets, Bytes: f.traffic.bytes, Segments: f.segments, Ending: f.ending,
	}
	t.Client, t.Server = f.ends()
	if f.client == 1 {
		t.Packets[0], t.Packets[1] = t.Packets[1], t.Packets[0]
		t.Bytes[0], t.Bytes[1] = t.Bytes[1], t.Bytes[0]
	}
	if f.ending == "closed" && !f.done {
		t.Ending = "half-closed"
	}
	if s := f.Session; s != nil {
		t.Session, t.Protocol = s.ID, s.Name
	} else if f.protocol != nil {
		t.Protocol = r.names[f.protocol]
	}
	return t, true
}

// Snapshot tells what Run has found in its capture up to now, and changes nothing: it hands
// the records that are held back to write, as they stand, and what the packets of the flows
// amount to that are not accounted for to traffic. What it returns is valid until Run goes
// on. It is for the source, in a call of Next.
func (p *Pipeline) Snapshot(write func(*Record) error, traffic func(*Traffic)) (*Result, error) {
	r := p.running
	if err := r.hold.each(write); err != nil {
		return nil, err
	}
	for f := r.flows.first; f != nil; f = f.next {
		if t, counted := r.trafficOf(f); counted {
			traffic(&t)
		}
	}
	return &Result{Summary: r.summary, Sessions: r.allSessions(), Dropped: r.dropped}, nil
}
