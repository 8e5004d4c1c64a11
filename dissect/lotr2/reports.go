package lotr2

import (
	"bytes"
	"strconv"

	"opscope/dissect"
)

// At the end of a turn, and now and then in a battle, each peer reports its state for a
// tick. Ten bytes are the same in both reports as long as the games are in step. Facts,
// section 7.1.

// report is one report.
type report struct {
	from   uint64
	opcode int
	tick   uint64
	state  []byte
	packet int
}

// reports are the last ones of a session. Ticks begin again with each turn, so that only
// a few are kept.
type reports struct {
	last [8]report
	next int
}

// take compares a report with what another player said of the same tick.
func (p *reports) take(r *dissect.Record, from uint64) {
	tick, _ := r.Body.Value("tick")
	q := &p.last[p.next%len(p.last)]
	state := r.Body.AppendBytes(q.state[:0], r.Body.Field("shared_state"))
	for back := 1; back < len(p.last); back++ {
		o := &p.last[(p.next+len(p.last)-back)%len(p.last)]
		if o.opcode != r.Opcode || o.tick != tick || o.from == from || o.packet == 0 {
			continue
		}
		if !bytes.Equal(o.state, state) {
			r.Note("out_of_step", "another state than in packet "+strconv.Itoa(o.packet))
		}
		break
	}
	*q = report{from: from, opcode: r.Opcode, tick: tick, state: state, packet: r.LastPacket()}
	p.next++
}
