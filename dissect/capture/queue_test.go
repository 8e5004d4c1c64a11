package capture

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"opscope/dissect"
)

// TestQueue: what goes in comes out, in order, through a ring that is full now and then, and
// only what found no room is missing.
func TestQueue(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	q := newQueue(1000)
	type sent struct {
		data   []byte
		number int
	}
	var waiting []sent
	refused, wrapped := 0, false
	for n := range 20000 {
		if r.IntN(2) == 0 {
			data := bytes.Repeat([]byte{byte(n)}, r.IntN(200))
			p := dissect.Packet{Data: data, Length: n, Interface: n % 3, Link: 276, Time: time.Unix(0, int64(n))}
			tail := q.tail
			if q.put(&p) {
				waiting = append(waiting, sent{data, n})
				wrapped = wrapped || q.tail < tail
			} else {
				refused++
				if q.used < 1000/2 {
					t.Fatalf("refused with %d of 1000 bytes used", q.used)
				}
			}
			continue
		}
		var p dissect.Packet
		ok, over := q.take(&p)
		if ok != (len(waiting) > 0) || over {
			t.Fatalf("took %v, over %v, with %d waiting", ok, over, len(waiting))
		}
		if !ok {
			continue
		}
		w := waiting[0]
		waiting = waiting[1:]
		if !bytes.Equal(p.Data, w.data) || p.Length != w.number || p.Interface != w.number%3 || p.Link != 276 || p.Time.UnixNano() != int64(w.number) {
			t.Fatalf("got %+v, want packet %d with %x", p, w.number, w.data)
		}
	}
	if refused == 0 || !wrapped {
		t.Fatalf("refused %d, wrapped %v: the ring was never full", refused, wrapped)
	}
	q.close()
	var p dissect.Packet
	for range waiting {
		if ok, _ := q.take(&p); !ok {
			t.Fatal("what was there before the end is gone")
		}
	}
	if ok, over := q.take(&p); ok || !over {
		t.Fatalf("got %v, %v at the end", ok, over)
	}
}

// TestQueueKeepsWhatIsRead: the bytes of the packet last taken are not written over by
// packets that come meanwhile.
func TestQueueKeepsWhatIsRead(t *testing.T) {
	q := newQueue(256)
	one := dissect.Packet{Data: bytes.Repeat([]byte{1}, 100)}
	two := dissect.Packet{Data: bytes.Repeat([]byte{2}, 100)}
	var p dissect.Packet
	if !q.put(&one) {
		t.Fatal("no room in an empty ring")
	}
	if ok, _ := q.take(&p); !ok {
		t.Fatal("nothing there")
	}
	for q.put(&two) {
	}
	if !bytes.Equal(p.Data, one.Data) {
		t.Errorf("got %x, want %x", p.Data, one.Data)
	}
}
