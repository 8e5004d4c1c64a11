package dissect

import (
	"slices"

	"opscope/reassembly"
	"opscope/schema"
)

// recognizePort finds the protocol of a new flow by its ports, or because its
// server was announced.
func (r *run) recognizePort(f *Flow) {
	if r.options.Only != nil {
		f.protocol = r.options.Only
	}
	for side, end := range f.Ends {
		client := reassembly.Side(side).Peer()
		if list := r.expected[end]; len(list) > 0 && f.Transport == schema.UDP {
			f.protocol = list[0].protocol
			if list[0].ofPeers() {
				return // of whom it may be anybody's
			}
			if list[0].waitsAt(end) == schema.Client {
				client = reassembly.Side(side)
			}
			f.setClient(client, saidEvidence)
			return
		}
		if p := r.ports[portKey{f.Transport, end.Port()}]; p != nil && (f.protocol == nil || f.protocol == p) {
			if f.protocol = p; f.evidence == portEvidence {
				f.client, f.evidence = -1, noEvidence // both ports are the protocol's
				return
			}
			f.setClient(client, portEvidence)
		}
	}
}

// recognizeContent offers the first bytes of a flow to each protocol, first to that of its
// port. A port is a guess: where its protocol knows nothing of a stream, another one has it
// whose session begins so.
func (r *run) recognizeContent(f *Flow, side reassembly.Side, data []byte) {
	if f.protocol != nil {
		by, as := r.recognize(f.protocol, f.Transport, data)
		if as != Foreign {
			f.setSender(side, by)
			return
		}
		if f.Transport != schema.TCP || r.options.Only != nil || r.assigned(f) {
			return
		}
	}
	for _, p := range r.options.Protocols {
		if p == f.protocol {
			continue
		}
		by, as := r.recognize(p, f.Transport, data)
		if as == Foreign || f.protocol != nil && as != Opening {
			continue
		}
		if f.protocol != nil {
			f.port = r.names[f.protocol]
			f.forgetPort()
		}
		f.protocol = p
		f.setSender(side, by)
		return
	}
}

// assigned reports whether the user has given a port of the flow to a protocol.
func (r *run) assigned(f *Flow) bool {
	return slices.ContainsFunc(r.options.Assigned, func(a Assignment) bool {
		return a.Transport == f.Transport && (a.Port == f.Ends[0].Port() || a.Port == f.Ends[1].Port())
	})
}

const (
	// maxLooks is how many datagrams or chunks may tell nothing before a flow is taken
	// for something else's.
	maxLooks = 8
	// leastKept is how many bytes of a connection have to tell nothing, too, so that the
	// size of its segments does not decide what it is. A protocol's test of a stream
	// that was joined within a frame needs so many.
	leastKept = 2 << 10
)

// decide settles what a flow is by its first bytes, and reports whether it is a
// protocol's.
func (r *run) decide(f *Flow, side reassembly.Side, data []byte) bool {
	if f.state != undecided {
		return f.state == accepted
	}
	// Behind the first looks the next comes when the stream is twice as long, so that
	// they stay few, however small its segments are.
	if f.looks >= maxLooks && len(data) < 2*f.streams[side].looked {
		return false
	}
	if f.looks++; f.Transport == schema.TCP {
		f.streams[side].looked = len(data)
	}
	if f.protocol == nil || f.evidence < saidEvidence {
		r.recognizeContent(f, side, data)
	}
	if f.protocol != nil {
		f.state = accepted
		return true
	}
	kept, passed := 0, int64(0)
	for i := range f.streams {
		kept, passed = kept+len(f.streams[i].buf), passed+f.streams[i].passed
	}
	if kept > maxUndecided || f.looks >= maxLooks && (f.Transport == schema.UDP || int64(kept)+passed >= leastKept) || kept > 0 && r.full() {
		r.ignore(f)
	}
	return false
}

// full reports whether the streams have as much in their buffers as they may, and counts it.
func (r *run) full() bool {
	if r.buffered <= r.limits.BufferedBytes {
		return false
	}
	r.summary.reached(LimitBufferedBytes, 1)
	return true
}

// ignore counts a flow of no known protocol, and looks at it no more.
func (r *run) ignore(f *Flow) {
	f.state = ignored
	r.summary.OtherFlows++
	for i := range f.streams {
		f.streams[i].clear()
	}
	f.conn, f.streams = nil, nil
}
