package dissect

import (
	"testing"
	"time"

	"opscope/reassembly"
)

// interview plays requests and answers through a Hold, a millisecond apart.
type interview struct {
	*Requests
	hold   *Hold
	out    []*Record
	number int
	now    time.Time
}

func newInterview(limit time.Duration) *interview {
	x := &interview{now: time.Unix(1, 0)}
	x.hold = NewHold(x, limit)
	x.Requests = NewRequests(x.hold)
	return x
}

func (x *interview) Write(r *Record) error {
	c := *r
	c.Notes = append([]Note(nil), r.Notes...)
	x.out = append(x.out, &c)
	return nil
}

func (x *interview) Flush() error { return nil }

// say sends a record, with what is done to it before it is pushed.
func (x *interview) say(message string, do func(*Record)) {
	x.number++
	x.now = x.now.Add(time.Millisecond)
	r := x.hold.Take()
	r.Message, r.Time, r.Opcode = message, x.now, 7
	r.Packets = append(r.Packets, x.number)
	do(r)
	x.hold.Push(r)
}

func (x *interview) ask(key uint64) { x.say("ask", func(r *Record) { x.Asked(r, key) }) }

func (x *interview) states() (list []Ack) {
	for _, r := range x.out {
		if r.Message == "ask" {
			list = append(list, r.Ack)
		}
	}
	return list
}

func TestRequestsByKey(t *testing.T) {
	x := newInterview(time.Second)
	x.ask(1)
	x.ask(2)
	x.say("answer", func(r *Record) {
		if !x.Answered(r, 2) || r.Acks.Packet != 2 || r.Acks.RTT != time.Millisecond {
			t.Errorf("it answers %+v", r.Acks)
		}
	})
	x.say("answer", func(r *Record) {
		if !x.Answered(r, 2) || r.Acks.Verdict != AcksAgain {
			t.Errorf("said again, it answers %+v", r.Acks)
		}
	})
	x.say("answer", func(r *Record) {
		if x.Answered(r, 9) {
			t.Error("it answers what nobody asked")
		}
	})
	x.ask(3)
	x.ask(3)
	x.say("answer", func(r *Record) { x.Answered(r, 3) })
	x.ask(9) // read late: a stream held it back
	x.hold.Close()
	want := []Ack{
		{AckUnacked, 0, -1}, {AckAcked, 3, time.Millisecond}, {AckAcked, 8, -1}, {AckAcked, 8, -1}, {AckAcked, 5, -1},
	}
	for i, got := range x.states() {
		if got != want[i] {
			t.Errorf("request %d: %+v, want %+v", i, got, want[i])
		}
	}
}

func TestRequestsInOrder(t *testing.T) {
	x := newInterview(time.Second)
	x.ask(5)
	x.ask(6)
	x.ask(5)
	x.say("first", func(r *Record) { x.AnsweredFirst(r) })
	x.say("last with this key", func(r *Record) { x.AnsweredLast(r, 6) })
	x.say("last of any", func(r *Record) { x.AnsweredLast(r, 77) })
	x.say("none", func(r *Record) {
		if x.AnsweredLast(r, 5) || x.AnsweredFirst(r) || x.Refused(r, 7) {
			t.Error("it answers what was answered")
		}
	})
	x.hold.Close()
	for i, by := range []int{4, 5, 6} {
		if got := x.states()[i]; got.By != by {
			t.Errorf("request %d is answered by packet %d, want %d", i, got.By, by)
		}
	}
}

// An answer to all up to a sequence names the last; across the wrap, too.
func TestRequestsUpTo(t *testing.T) {
	x := newInterview(time.Second)
	serial := reassembly.Serial{Modulus: 1 << 32}
	for _, seq := range []uint64{1<<32 - 2, 1<<32 - 1, 0, 1} {
		x.ask(seq)
	}
	x.say("answer", func(r *Record) {
		x.AnsweredUpTo(r, serial, 0)
		if r.Acks.Packet != 3 || r.Acks.Seq != 0 || r.Acks.RTT != 2*time.Millisecond {
			t.Errorf("it answers %+v", r.Acks)
		}
	})
	x.say("again", func(r *Record) {
		if x.AnsweredUpTo(r, serial, 0); r.Acks.Message != "" {
			t.Errorf("it answers %+v once more", r.Acks)
		}
	})
	x.hold.Close()
	for i, state := range []AckState{AckAcked, AckAcked, AckAcked, AckUnacked} {
		if got := x.states()[i].State; got != state {
			t.Errorf("request %d: %v, want %v", i, got, state)
		}
	}
}

// Without holding, the acknowledgement follows as a record of its own.
func TestRequestsWithoutHolding(t *testing.T) {
	x := newInterview(0)
	x.ask(1)
	x.say("answer", func(r *Record) { x.Answered(r, 1) })
	if len(x.out) != 3 || x.out[0].Ack.State != AckPending || x.out[2].Type != AckRecord || x.out[2].Acked != x.out[0].N {
		t.Errorf("got %+v", x.out)
	}
}

func TestRequestsAreBounded(t *testing.T) {
	x := newInterview(0)
	for i := range 3 * maxRequests {
		x.ask(uint64(i))
	}
	x.say("answer", func(r *Record) {
		if x.Answered(r, 0) || !x.Answered(r, 3*maxRequests-1) {
			t.Error("the oldest does not make room")
		}
	})
	if n := len(x.list) + len(x.free); n > maxRequests+1 {
		t.Errorf("%d are kept", n)
	}
}
