package transport

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

var start = time.Unix(1000, 0)

func at(d time.Duration) time.Time { return start.Add(d) }

// show describes transmissions: kind, opcode, sequence.
func show(out []Transmission[int]) string {
	var words []string
	for _, t := range out {
		kind := [...]string{"", "again ", "renewed ", "ignore ", "start "}[t.Kind]
		words = append(words, fmt.Sprintf("%s%02X:%d", kind, t.Opcode, t.Seq))
	}
	return strings.Join(words, ", ")
}

func sender(first uint16) *Sender[int] { return NewSender[int](testTable, first) }

func put(t *testing.T, s *Sender[int], opcode uint8, n int) {
	t.Helper()
	for i := range n {
		if err := s.Send(Record[int]{Opcode: opcode, Body: []byte{byte(i)}, Item: i + 1}); err != nil {
			t.Fatalf("record %d: %v", i+1, err)
		}
	}
}

func expect(t *testing.T, s *Sender[int], d time.Duration, want string) {
	t.Helper()
	if got := show(s.Poll(at(d))); got != want {
		t.Errorf("at %v: sends %q, want %q", d, got, want)
	}
}

func TestSenderBeginsAtOneAndSharesGroups(t *testing.T) {
	s := sender(0)
	put(t, s, orderedOp, 2)
	put(t, s, beaconA, 1)
	put(t, s, beaconB, 1)
	expect(t, s, 0, "20:1, 20:2, 3A:1, 3B:2")
}

func TestSenderWraps(t *testing.T) {
	s := sender(65533)
	put(t, s, orderedOp, 4)
	expect(t, s, 0, "20:65533, 20:65534, 20:0, 20:1")
}

func TestSenderKeepsFifteenInFlight(t *testing.T) {
	s := sender(0)
	put(t, s, orderedOp, 20)
	if got := len(s.Poll(at(0))); got != 15 {
		t.Fatalf("%d records in flight, want 15", got)
	}
	if s.Room(orderedOp) || !s.Room(beaconA) {
		t.Error("room where there is none, or none where there is")
	}
	expect(t, s, 1*ms, "")
	s.Acknowledge(at(2*ms), orderedOp, 3)
	expect(t, s, 2*ms, "20:16")
}

func TestSenderRepeatsByTheTimer(t *testing.T) {
	s := sender(0)
	put(t, s, orderedOp, 1)
	expect(t, s, 0, "20:1")
	if got := s.Deadline(); !got.Equal(at(500 * ms)) {
		t.Errorf("deadline %v, want half a second", got.Sub(start))
	}
	expect(t, s, 499*ms, "")
	expect(t, s, 500*ms, "again 20:1")  // 750 enters the average: 525
	expect(t, s, 1024*ms, "")           //
	expect(t, s, 1025*ms, "again 20:1") // 787.5 enters: 553
	expect(t, s, 1577*ms, "")
	expect(t, s, 1578*ms, "again 20:1")
	if item, ok := s.Acknowledge(at(1600*ms), orderedOp, 1); !ok || item != 1 {
		t.Errorf("acknowledged %d, %v", item, ok)
	}
	if !s.Deadline().IsZero() || !s.Idle() {
		t.Error("something is left to do")
	}
	// Three firings (750, 787.5, 829.5 ms) are in the average, the acknowledgement
	// of a repeated record is not: (7*500 + 2367) / 10.
	put(t, s, orderedOp, 1)
	s.Poll(at(2000 * ms))
	if got := s.Deadline().Sub(at(2000 * ms)); got != 586*ms {
		t.Errorf("timeout %v, want 586 ms", got)
	}
}

func TestSenderMeasures(t *testing.T) {
	s := sender(0)
	put(t, s, orderedOp, 1)
	s.Poll(at(0))
	s.Acknowledge(at(100*ms), orderedOp, 1) // 150 enters: 465
	put(t, s, orderedOp, 1)
	s.Poll(at(100 * ms))
	if got := s.Deadline().Sub(at(100 * ms)); got != 465*ms {
		t.Errorf("timeout %v, want 465 ms", got)
	}
}

func TestOneTimeoutFiresOnceForAll(t *testing.T) {
	s := sender(0)
	put(t, s, orderedOp, 3)
	s.Poll(at(0))
	expect(t, s, 500*ms, "again 20:1, again 20:2, again 20:3")
	if got := s.Deadline().Sub(at(500 * ms)); got != 525*ms {
		t.Errorf("timeout %v, want 525 ms", got)
	}
}

func TestAcknowledgementsOfNothing(t *testing.T) {
	s := sender(0)
	put(t, s, beaconA, 1)
	s.Poll(at(0))
	for _, ack := range []struct {
		name   string
		opcode uint8
		seq    uint16
	}{
		{"a stream that has sent nothing", orderedOp, 1},
		{"a sequence that was not sent", beaconA, 2},
		{"another member of the group", beaconB, 1},
		{"a sequence that does not exist", beaconA, 65535},
	} {
		if _, ok := s.Acknowledge(at(1*ms), ack.opcode, ack.seq); ok {
			t.Errorf("%s is acknowledged", ack.name)
		}
	}
	if _, ok := s.Acknowledge(at(1*ms), beaconA, 1); !ok {
		t.Error("the record is not")
	}
	if _, ok := s.Acknowledge(at(2*ms), beaconA, 1); ok {
		t.Error("the record is acknowledged twice")
	}
}

func TestOrderedBacklogIsAnError(t *testing.T) {
	s := sender(0)
	var err error
	n := 0
	for ; err == nil && n < 10000; n++ {
		err = s.Send(Record[int]{Opcode: orderedOp})
		s.Poll(at(0))
	}
	if !errors.Is(err, errBacklog) || n != InFlight+maxBacklog+1 {
		t.Errorf("record %d: %v, want the backlog full at %d", n, err, InFlight+maxBacklog+1)
	}
}

func TestLatestRepeatsOnlyTheNewest(t *testing.T) {
	s := sender(0)
	put(t, s, latestOp, 3)
	expect(t, s, 0, "35:1, 35:2, 35:3")
	expect(t, s, 500*ms, "again 35:3")
	expect(t, s, 1025*ms, "renewed 35:4") // a lost acknowledgement of 3 would never be repeated
	if _, ok := s.Acknowledge(at(1100*ms), latestOp, 3); ok {
		t.Error("the old sequence is still acknowledged")
	}
	if item, ok := s.Acknowledge(at(1100*ms), latestOp, 4); !ok || item != 3 {
		t.Errorf("acknowledged %d, %v; want the third record", item, ok)
	}
	if !s.Idle() {
		t.Error("something is left in flight")
	}
}

func TestLatestAsksForANewStartBeyondTheWindow(t *testing.T) {
	s := sender(0)
	put(t, s, latestOp, 8)
	s.Poll(at(0))
	expect(t, s, 500*ms, "start 35:8")
	put(t, s, latestOp, 1)
	expect(t, s, 501*ms, "") // paused
	expect(t, s, 1025*ms, "start 35:8")
	if s.Restarted(at(1030*ms), latestOp, 7) {
		t.Error("another start unpauses")
	}
	if !s.Restarted(at(1040*ms), latestOp, 8) {
		t.Fatal("the start does not unpause")
	}
	expect(t, s, 1040*ms, "again 35:8, 35:9")
}

func TestLatestIsGivenUp(t *testing.T) {
	s := sender(0)
	put(t, s, latestOp, 1)
	sent := 0
	for d := time.Duration(0); d < time.Minute; d += 10 * ms {
		sent += len(s.Poll(at(d)))
	}
	if sent != maxTries || !s.Idle() {
		t.Errorf("sent %d times, want %d; idle %v", sent, maxTries, s.Idle())
	}
}

func TestOrderedIsNeverGivenUp(t *testing.T) {
	s := sender(0)
	put(t, s, orderedOp, 1)
	sent := 0
	for d := time.Duration(0); d < time.Minute; d += 10 * ms {
		sent += len(s.Poll(at(d)))
	}
	if sent < 55 || s.Idle() {
		t.Errorf("sent %d times in a minute", sent)
	}
}

func TestSkipTellsThePeerUntilItAnswers(t *testing.T) {
	s := sender(0)
	put(t, s, orderedOp, 1)
	s.Poll(at(0))
	s.Skip(orderedOp)
	put(t, s, orderedOp, 1)
	expect(t, s, 1*ms, "ignore 20:2, 20:3")
	expect(t, s, 501*ms, "again 20:1, ignore 20:2, again 20:3")
	if item, ok := s.Acknowledge(at(510*ms), orderedOp, 2); !ok || item != 0 {
		t.Errorf("acknowledged %d, %v", item, ok)
	}
}

// A sender and a receiver over a path that loses, repeats and reorders.
func TestOrderedExactlyOnce(t *testing.T) {
	s, r := sender(65500), NewReceiver(65500)
	r.Learn(testTable)
	const total = 200
	sent, want := 0, uint16(65500)
	delivered := 0
	drop := func(n int) bool { return n*7919%10 < 3 }
	for n := 0; delivered < total && n < 100000; n++ {
		now := at(time.Duration(n) * 5 * ms)
		if sent < total && s.Room(orderedOp) {
			put(t, s, orderedOp, 1)
			sent++
		}
		out := s.Poll(now)
		if n%3 == 0 {
			for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
				out[i], out[j] = out[j], out[i]
			}
		}
		for k, x := range out {
			for copies := range 2 {
				if drop(n + 31*k + 17*copies) {
					continue
				}
				got, _, ack := r.Receive(x.Opcode, x.Seq, x.Body)
				for _, d := range got {
					if d.Seq != want {
						t.Fatalf("delivered %d, want %d", d.Seq, want)
					}
					want = next(want)
					delivered++
				}
				if ack && !drop(n+13*k+5) {
					s.Acknowledge(now, x.Opcode, x.Seq)
				}
			}
		}
	}
	if delivered != total {
		t.Errorf("delivered %d of %d", delivered, total)
	}
}
