package dplay

import (
	"slices"
	"time"

	"opscope/dissect"
)

// request is a command that waits for its answer. The answer comes over the other
// connection, so that requests are the session's.
type request struct {
	ticket  dissect.Ticket
	opcode  uint64
	subject uint64 // what the answer repeats: a tick or an id
	by      dissect.Direction
	message string
	packet  int
	time    time.Time
	done    bool
}

// maxRequests is how many commands are remembered that wait for an answer, or had one.
const maxRequests = 64

// answers says which command answers which, and the field that both have.
var answers = map[uint64]struct {
	asks    []uint64
	subject string
}{
	enumSessionsReply:     {[]uint64{enumSessions}, ""},
	enumPlayersReply:      {[]uint64{enumPlayers}, ""},
	requestPlayerReply:    {[]uint64{requestPlayerID}, ""},
	superEnumPlayersReply: {[]uint64{addForwardRequest}, ""},
	addForwardAck:         {[]uint64{addForward}, "player_id"},
	pong:                  {[]uint64{ping}, "tick"},
	youAreDead:            {[]uint64{ping}, ""},
}

// follow pairs requests with their answers, and writes on both what it finds.
func (c *conversation) follow(r *dissect.Record) {
	if r.Err != nil || !c.scratch.Follows() {
		return
	}
	opcode := uint64(r.Opcode)
	switch opcode {
	case enumSessions, enumPlayers, requestPlayerID, addForwardRequest:
		c.ask(r, opcode, 0)
	case addForward:
		id, _ := r.Body.Value("player_id")
		c.ask(r, opcode, id)
	case ping:
		tick, _ := r.Body.Value("tick")
		c.ask(r, opcode, tick)
	default:
		c.answer(r, opcode)
	}
}

// ask has a command wait for its answer.
func (c *conversation) ask(r *dissect.Record, opcode, subject uint64) {
	var q *request
	if len(c.requests) == maxRequests {
		q = c.requests[0]
		c.session.Hold().Forget(&q.ticket)
		c.requests = slices.Delete(c.requests, 0, 1)
	} else {
		q = &request{}
	}
	*q = request{opcode: opcode, subject: subject, by: r.Direction, message: r.Message, packet: r.LastPacket(), time: r.Time}
	r.Ack.State = dissect.AckPending
	c.session.Hold().Follow(r, &q.ticket)
	c.requests = append(c.requests, q)
}

// answer finds the request that a command answers: the oldest of its kind that waits,
// else the last one that had an answer already.
func (c *conversation) answer(r *dissect.Record, opcode uint64) {
	a, ok := answers[opcode]
	if !ok {
		return
	}
	subject, _ := r.Body.Value(a.subject)
	var found *request
	for _, q := range c.requests {
		if !slices.Contains(a.asks, q.opcode) || q.subject != subject && a.subject != "" || q.by == r.Direction && q.by != dissect.UnknownDirection {
			continue
		}
		if found = q; !q.done {
			break
		}
	}
	if found == nil {
		return
	}
	r.Acks = dissect.Acks{Verdict: dissect.AcksNew, Seq: -1, Message: found.message, Packet: found.packet, N: found.ticket.N, RTT: r.Time.Sub(found.time)}
	if found.done {
		r.Acks.Verdict = dissect.AcksAgain
		return
	}
	found.done = true
	c.session.Hold().Resolve(&found.ticket, dissect.Ack{State: dissect.AckAcked, By: r.LastPacket(), RTT: r.Acks.RTT}, r)
}
