package dissect

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"opscope/schema"
	"opscope/schema/wire"
)

// start is the time of the first packet in these tests.
var start = time.Date(2026, 11, 29, 20, 15, 0, 0, time.UTC)

// at returns the time so many milliseconds after start.
func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

// journal is a sink that writes down one word per record: its message and the
// state of its acknowledgement.
type journal struct {
	lines []string
	raw   [][]byte
	err   error
}

func (j *journal) Write(r *Record) error {
	line := r.Message + " " + r.Ack.State.String()
	if r.Type == AckRecord {
		line = fmt.Sprintf("ack of %d by %d after %v", r.Acked, r.Ack.By, r.Ack.RTT)
	}
	j.lines = append(j.lines, line)
	j.raw = append(j.raw, slices.Clone(r.Raw))
	return j.err
}

func (j *journal) Flush() error { return nil }

// text returns what was written down since the last call, in one line.
func (j *journal) text() string {
	s := strings.Join(j.lines, "; ")
	j.lines = j.lines[:0]
	return s
}

// take returns a record of packet n, at that many milliseconds.
func take(h *Hold, name string, n, ms int, state AckState) *Record {
	r := h.Take()
	r.Message, r.Time = name, at(ms)
	r.Packets = append(r.Packets, n)
	r.Ack.State = state
	return r
}

func TestHoldKeepsTheOrder(t *testing.T) {
	var j journal
	h := NewHold(&j, DefaultHold)
	var ticket Ticket

	h.Push(take(h, "a", 1, 0, AckNone))
	if got, want := j.text(), "a none"; got != want {
		t.Errorf("nothing to wait for: got %q, want %q", got, want)
	}
	b := take(h, "b", 2, 1, AckPending)
	h.Follow(b, &ticket)
	h.Push(b)
	h.Push(take(h, "c", 3, 2, AckNone))
	if got, want := j.text(), ""; got != want {
		t.Errorf("b waits: got %q, want %q", got, want)
	}
	d := take(h, "d", 4, 3, AckNone)
	h.Resolve(&ticket, Ack{State: AckAcked, By: 4, RTT: 2 * time.Millisecond}, d)
	h.Push(d)
	if got, want := j.text(), "b acked; c none; d none"; got != want {
		t.Errorf("d acknowledges b: got %q, want %q", got, want)
	}
	if ticket.N != 2 {
		t.Errorf("number of b: got %d, want 2", ticket.N)
	}
}

// A record that is open waits for its copies, which change it as long as it is held.
func TestHoldKeepsWhatIsOpen(t *testing.T) {
	var j journal
	h := NewHold(&j, DefaultHold)
	var first, late Ticket
	a := take(h, "a", 1, 0, AckNone)
	a.Open = true
	h.Follow(a, &first)
	h.Push(a)
	h.Push(take(h, "b", 2, 1, AckNone))
	if got := j.text(); got != "" {
		t.Errorf("a waits: got %q", got)
	}
	if r := h.Held(&first); r == nil || r.Message != "a" {
		t.Fatalf("got %v, want a", r)
	}
	h.Held(&first).Message, h.Held(&first).Open = "a twice", false
	h.Push(take(h, "c", 3, 2, AckNone))
	if got, want := j.text(), "a twice none; b none; c none"; got != want {
		t.Errorf("a is no longer open: got %q, want %q", got, want)
	}
	if r := h.Held(&first); r != nil {
		t.Errorf("a has been released: got %v", r)
	}
	d := take(h, "d", 4, 10, AckNone)
	d.Open = true
	h.Follow(d, &late)
	h.Push(d)
	h.Advance(at(2011))
	if got, want := j.text(), "d none"; got != want || h.Held(&late) != nil {
		t.Errorf("the time is up: got %q, want %q", got, want)
	}
	h = NewHold(&j, 0)
	e := take(h, "e", 5, 0, AckNone)
	e.Open = true
	h.Push(e)
	if got, want := j.text(), "e none"; got != want {
		t.Errorf("nothing is held: got %q, want %q", got, want)
	}
}

func TestHoldReleasesWhenTheTimeIsUp(t *testing.T) {
	var j journal
	h := NewHold(&j, DefaultHold)
	h.Push(take(h, "a", 1, 0, AckPending))
	h.Push(take(h, "b", 2, 500, AckPending))
	h.Push(take(h, "c", 3, 400, AckNone)) // the clock of the capture goes back
	steps := []struct {
		ms   int
		want string
	}{
		{1999, ""},
		{2000, "a unacked"},
		{1000, ""}, // and back again
		{2499, ""},
		{2500, "b unacked; c none"},
	}
	for _, s := range steps {
		h.Advance(at(s.ms))
		if got := j.text(); got != s.want {
			t.Errorf("at %d ms: got %q, want %q", s.ms, got, s.want)
		}
	}
	if got, want := h.Stats(), (HoldStats{Expired: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestHoldReleasesByWallTime(t *testing.T) {
	var j journal
	h := NewHold(&j, DefaultHold)
	h.Push(take(h, "a", 1, 0, AckPending))
	wall := start.AddDate(1, 0, 0)
	h.Expire(wall)
	h.Push(take(h, "b", 2, 1, AckPending))
	h.Expire(wall.Add(1500 * time.Millisecond))
	h.Push(take(h, "c", 3, 2, AckPending))
	if got, want := j.text(), ""; got != want {
		t.Errorf("after 1.5 s: got %q, want %q", got, want)
	}
	h.Expire(wall.Add(2 * time.Second))
	if got, want := j.text(), "a unacked; b unacked"; got != want {
		t.Errorf("after 2 s: got %q, want %q", got, want)
	}
}

func TestHoldOfNothingAnnouncesLateAcknowledgements(t *testing.T) {
	var j journal
	h := NewHold(&j, 0)
	var ticket Ticket
	h.Push(take(h, "a", 1, 0, AckNone))
	b := take(h, "b", 2, 1, AckPending)
	h.Follow(b, &ticket)
	h.Push(b)
	c := take(h, "c", 3, 42, AckNone)
	h.Resolve(&ticket, Ack{State: AckAcked, By: 3, RTT: 41 * time.Millisecond}, c)
	h.Push(c)
	h.Push(take(h, "d", 4, 5000, AckNone))
	want := "a none; b pending; c none; ack of 2 by 3 after 41ms; d none"
	if got := j.text(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestHoldAnnouncesAfterExpiryBehindTheAcknowledgement(t *testing.T) {
	var j journal
	h := NewHold(&j, DefaultHold)
	var first, second Ticket
	a := take(h, "a", 1, 0, AckPending)
	h.Follow(a, &first)
	h.Push(a)
	b := take(h, "b", 2, 2100, AckPending) // a is released here
	h.Follow(b, &second)
	h.Push(b)
	c := take(h, "c", 3, 2200, AckPending) // the acknowledgement wants one itself
	h.Resolve(&first, Ack{State: AckAcked, By: 3, RTT: 2200 * time.Millisecond}, c)
	h.Push(c)
	d := take(h, "d", 4, 2300, AckNone)
	h.Resolve(&second, Ack{State: AckAcked, By: 4, RTT: 200 * time.Millisecond}, d)
	h.Push(d)
	if got, want := j.text(), "a unacked; b acked"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	h.Close()
	if got, want := j.text(), "c unacked; ack of 1 by 3 after 2.2s; d none"; got != want {
		t.Errorf("at the end: got %q, want %q", got, want)
	}
}

func TestHoldEvictsWhenThereAreTooManyRecords(t *testing.T) {
	var j journal
	h := NewHold(&j, DefaultHold)
	var ticket Ticket
	a := take(h, "a", 1, 0, AckPending)
	h.Follow(a, &ticket)
	h.Push(a)
	h.Push(take(h, "b", 1, 0, AckPending))
	for range HoldRecords - 2 {
		h.Push(take(h, "x", 2, 1, AckNone))
	}
	if got, want := j.text(), ""; got != want {
		t.Errorf("full: got %q, want %q", got, want)
	}
	h.Push(take(h, "y", 3, 2, AckNone))
	if got, want := j.text(), "a pending"; got != want {
		t.Errorf("one more: got %q, want %q", got, want)
	}
	if got, want := h.Stats(), (HoldStats{Held: HoldRecords, Evicted: 1, Crowded: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if ticket.N != 1 {
		t.Errorf("number of a: got %d, want 1", ticket.N)
	}
}

func TestHoldEvictsWhenThereAreTooManyBytes(t *testing.T) {
	var j journal
	h := NewHold(&j, DefaultHold)
	big := make([]byte, HoldBytes/4)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		r := take(h, name, 1, 0, AckPending)
		r.Raw = big
		h.Push(r)
	}
	if got, want := j.text(), "a pending"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if h.bytes != HoldBytes {
		t.Errorf("bytes: got %d, want %d", h.bytes, HoldBytes)
	}
	h.Close()
	if free := slabBytes * len(h.copies.free); h.bytes != 0 || h.records != 0 || free > HoldBytes {
		t.Errorf("after the end: %d bytes, %d records, %d bytes free", h.bytes, h.records, free)
	}
}

// Records that are made together fill what the runtime has for memory of that size, 32 KiB,
// and take no more; a node takes what it counts for.
func TestHoldKnowsHowLargeThingsAre(t *testing.T) {
	if size, one := heldTogether*unsafe.Sizeof(held{}), unsafe.Sizeof(held{}); size > 32<<10 || size+one <= 32<<10 {
		t.Errorf("%d records of %d bytes do not fill 32 KiB", heldTogether, one)
	}
	if got := unsafe.Sizeof(schema.Node{}); got != nodeBytes {
		t.Errorf("a node takes %d bytes, and counts for %d", got, nodeBytes)
	}
}

// TestHoldKeepsWhatRecordsHave has one large record among many small ones go through the
// queue, again and again: the memory of it is not that of each.
func TestHoldKeepsWhatRecordsHave(t *testing.T) {
	h := NewHold(&journal{}, DefaultHold)
	now := 0
	turn := func(count int) {
		for i := range count {
			r := take(h, "r", 1, now, AckPending)
			r.Raw = make([]byte, 10)
			n := 4
			if i%100 == 0 {
				n = 2000
			}
			for range n {
				r.Body.Nodes = append(r.Body.Nodes, schema.Node{Len: 8})
			}
			h.Push(r)
		}
		now += 3000
		h.Advance(at(now))
	}
	for range 50 {
		turn(500) // 10,000 nodes of large records, 2,000 of small ones
	}
	if got := len(h.nodes.free) + 1; got > 6 {
		t.Errorf("%d slabs of %d nodes for 12,000 of them at a time", got, slabNodes)
	}
	if got := len(h.trees); got > 2 {
		t.Errorf("%d pairs of trees, and there is one record at a time", got)
	}
}

// latecomer is a datagram that waits for context; these are its records.
type latecomer struct {
	hold  *Hold
	names []string
}

func (w *latecomer) Overdue(p Place) {
	for _, name := range w.names {
		w.hold.Fill(p, take(w.hold, name, 9, 0, AckNone))
	}
}

// A place that is kept at another one is in front of what is filled in there later.
func TestPlaceAtAnother(t *testing.T) {
	var j journal
	h := NewHold(&j, DefaultHold)
	h.Push(take(h, "a", 1, 0, AckNone))
	p := h.Reserve(Place{}, &latecomer{hold: h}, 100)
	h.Push(take(h, "b", 4, 1, AckNone))
	q := h.Reserve(p, &latecomer{hold: h}, 100)
	h.Fill(p, take(h, "p1", 2, 1, AckNone))
	h.Done(p)
	h.Fill(q, take(h, "q1", 3, 1, AckNone))
	h.Done(q)
	if got, want := j.text(), "a none; q1 none; p1 none; b none"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPlaceFilledLateKeepsItsOrder(t *testing.T) {
	var j journal
	h := NewHold(&j, DefaultHold)
	h.Push(take(h, "a", 1, 0, AckNone))
	p := h.Reserve(Place{}, &latecomer{hold: h}, 100)
	q := h.Reserve(Place{}, &latecomer{hold: h}, 100)
	h.Push(take(h, "b", 4, 1, AckNone))
	h.Fill(q, take(h, "q1", 3, 1, AckNone))
	h.Done(q)
	if got, want := j.text(), "a none"; got != want {
		t.Errorf("p waits: got %q, want %q", got, want)
	}
	h.Fill(p, take(h, "p1", 2, 1, AckNone))
	h.Fill(p, take(h, "p2", 2, 1, AckNone))
	if got, want := j.text(), "p1 none; p2 none"; got != want {
		t.Errorf("p is filled: got %q, want %q", got, want)
	}
	h.Done(p)
	if got, want := j.text(), "q1 none; b none"; got != want {
		t.Errorf("p is done: got %q, want %q", got, want)
	}
	h.Fill(p, take(h, "late", 2, 1, AckNone))
	h.Done(p)
	if got, want := j.text(), "late none"; got != want {
		t.Errorf("p is gone: got %q, want %q", got, want)
	}
	if h.bytes != 0 || h.records != 0 {
		t.Errorf("left: %d bytes, %d records", h.bytes, h.records)
	}
}

func TestPlaceIsDecodedWithDefaultsWhenTheTimeIsUp(t *testing.T) {
	tests := []struct {
		name string
		do   func(*Hold)
		want string
	}{
		{"by capture time", func(h *Hold) { h.Advance(at(2000)) }, "p1 none; p2 none; b none"},
		{"at the end", func(h *Hold) { h.Close() }, "p1 none; p2 none; b none"},
		{"because of its size", func(h *Hold) { h.Reserve(Place{}, &latecomer{hold: h}, HoldBytes) },
			"p1 none; p2 none; b none"},
		{"not yet", func(h *Hold) { h.Advance(at(1999)) }, ""},
	}
	for _, tt := range tests {
		var j journal
		h := NewHold(&j, DefaultHold)
		h.Advance(start)
		h.Reserve(Place{}, &latecomer{h, []string{"p1", "p2"}}, 100)
		h.Push(take(h, "b", 2, 1, AckNone))
		tt.do(h)
		if got := j.text(); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}

	var j journal
	h := NewHold(&j, 0)
	p := h.Reserve(Place{}, &latecomer{h, []string{"p1"}}, 100)
	if got, want := j.text(), "p1 none"; got != want || p.Open() {
		t.Errorf("without holding: got %q, want %q; open %v", got, want, p.Open())
	}
}

func TestRecordsInAPlaceAreAsOldAsThePlace(t *testing.T) {
	var j journal
	h := NewHold(&j, DefaultHold)
	h.Advance(start)
	p := h.Reserve(Place{}, &latecomer{hold: h}, 100)
	h.Push(take(h, "b", 2, 1000, AckPending))
	h.Advance(at(1900))
	h.Fill(p, take(h, "p1", 1, 0, AckPending))
	h.Done(p)
	h.Advance(at(2000))
	if got, want := j.text(), "p1 unacked"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHeldRecordOwnsItsBytes(t *testing.T) {
	var j journal
	h := NewHold(&j, DefaultHold)
	packet := []byte{0x35, 0, 7, 0, 9, 0xff, 0xff, 0xff, 0xff, 0x40, 1, 2, 3, 4}
	cause := wire.Error{Layer: "wulfram"}
	r := take(h, "a", 1, 0, AckPending)
	r.Raw, r.Rest = packet[:9], packet[7:9]
	r.Body.Data = packet // the whole datagram, from the record on
	r.Body.Nodes = append(r.Body.Nodes, schema.Node{Off: 40, Len: 16})
	r.Err = &cause
	want := slices.Clone(packet)
	h.Push(r)
	clear(packet)
	cause.Layer = ""

	if !slices.Equal(r.Raw, want[:9]) || !slices.Equal(r.Rest, want[7:9]) || !slices.Equal(r.Body.Data, want[:9]) {
		t.Errorf("raw %x, rest %x, data %x; want %x", r.Raw, r.Rest, r.Body.Data, want[:9])
	}
	if r.Err.Layer != "wulfram" {
		t.Errorf("error: got %+v", r.Err)
	}

	packet = slices.Clone(want)
	r = take(h, "b", 1, 0, AckPending)
	r.Raw, r.Body.Data = packet[:1], packet // a builder's text lies beyond Raw
	r.Body.Nodes = append(r.Body.Nodes, schema.Node{Body: 80, BodyLen: 3})
	h.Push(r)
	clear(packet)
	if !slices.Equal(r.Raw, want[:1]) || !slices.Equal(r.Body.Data, want[:13]) {
		t.Errorf("raw %x, data %x; want %x, %x", r.Raw, r.Body.Data, want[:1], want[:13])
	}
}

// retainer is a sink that retains the records that it is given, and counts their bytes.
type retainer struct {
	records []*Record
	bytes   int
}

func (k *retainer) Write(r *Record) error {
	bytes, ok := r.Retain()
	if !ok {
		return errors.New("a record that a hold hands over cannot be retained")
	}
	k.records = append(k.records, r)
	k.bytes += bytes
	return nil
}

func (k *retainer) Flush() error { return nil }

// What a sink retains stays as it was when it was handed over, whether it has waited in the
// queue or not: its bytes, its values, its notes, and which secrets were known. It is used
// again only when the sink is done with it.
func TestRetainedRecordsStayAsTheyAre(t *testing.T) {
	var k retainer
	h := NewHold(&k, DefaultHold)
	var secrets Secrets
	secrets.Add([]byte("known before"))
	packet := []byte("............")
	var ticket Ticket
	const count = 3 * heldTogether
	for i := range count {
		state := AckNone
		if i%3 == 0 {
			state = AckPending
		}
		r := take(h, "a", i, i, state)
		copy(packet, fmt.Sprintf("bytes %6d", i))
		r.Raw, r.Rest, r.Secrets = packet, packet[6:], &secrets
		r.Body.Data = r.Raw
		r.Body.Nodes = append(r.Body.Nodes, schema.Node{Kind: schema.Uint, Num: uint64(i), Len: 8})
		r.Err = &wire.Error{Offset: i}
		r.Note("code", strconv.Itoa(i))
		h.Follow(r, &ticket)
		h.Push(r)
		if state == AckPending {
			h.Resolve(&ticket, Ack{State: AckAcked, By: i}, nil)
		}
		clear(packet)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	secrets.Add([]byte("learned later"))
	h.Resolve(&ticket, Ack{State: AckIgnored}, nil) // of a record that is out
	if len(k.records) != count || ticket.N != count {
		t.Fatalf("%d records, the last with ticket %d, want %d", len(k.records), ticket.N, count)
	}
	if want := count * (12 + 6 + nodeBytes); k.bytes != want {
		t.Errorf("they keep %d bytes, want %d", k.bytes, want)
	}
	seen := map[*Record]bool{}
	for i, r := range k.records {
		text := fmt.Sprintf("bytes %6d", i)
		if string(r.Raw) != text || string(r.Rest) != text[6:] || string(r.Body.Data) != text || r.N != i+1 || r.Packets[0] != i ||
			r.Body.Nodes[0].Num != uint64(i) || r.Err.Offset != i || r.Notes[0].Text != strconv.Itoa(i) || r.Ack.State == AckIgnored {
			t.Fatalf("record %d is %+v", i, r)
		}
		if !r.Secrets.Within("known before") || r.Secrets.Within("learned later") {
			t.Fatalf("record %d knows %q", i, r.Secrets.Values())
		}
		if seen[r] {
			t.Fatalf("record %d is used twice", i)
		}
		seen[r] = true
	}
	for _, r := range k.records {
		r.Done()
	}
	if got := h.Take(); !seen[got] {
		t.Error("a record that is done with is not used again")
	}
}

// A record that no Hold hands over is not retained: one that somebody has kept, one that is a
// copy, one that waits, and one of no Hold.
func TestOnlyWhatAHoldHandsOverIsRetained(t *testing.T) {
	var k retainer
	h := NewHold(&k, DefaultHold)
	r := take(h, "a", 1, 0, AckPending)
	h.Push(r)
	h.Push(take(h, "b", 1, 0, AckNone))
	var kept Kept
	kept.Keep(r)
	assigned := *r
	for name, r := range map[string]*Record{"kept": kept.Record(), "copied": &assigned, "waiting": r, "of no hold": {}} {
		if _, ok := r.Retain(); ok {
			t.Errorf("a record that is %s was retained", name)
		}
	}
	if err := h.Close(); err != nil || len(k.records) != 2 {
		t.Errorf("%d records were retained, want 2: %v", len(k.records), err)
	}
}

func TestRecordNumbersRestartWithTheFile(t *testing.T) {
	var j journal
	h := NewHold(&j, DefaultHold)
	var ticket Ticket
	push := func(file int, kind Type) int {
		r := take(h, "a", 1, 0, AckNone)
		r.File, r.Type = file, kind
		h.Follow(r, &ticket)
		h.Push(r)
		return ticket.N
	}
	got := []int{push(0, FrameRecord), push(0, GapRecord), push(0, FrameRecord), push(1, FrameRecord)}
	if want := []int{1, 0, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTicketIsSafeWhenTheRecordIsUsedAgain(t *testing.T) {
	var j journal
	h := NewHold(&j, DefaultHold)
	var ticket Ticket
	a := take(h, "a", 1, 0, AckNone)
	h.Follow(a, &ticket)
	h.Push(a)
	b := take(h, "b", 2, 0, AckPending)
	if a != b {
		t.Fatal("the record is not used again")
	}
	h.Push(b)
	h.Resolve(&ticket, Ack{State: AckAcked, By: 3}, nil)
	if b.Ack.State != AckPending {
		t.Errorf("b: got %v, want pending", b.Ack.State)
	}
	c := take(h, "c", 4, 0, AckPending)
	h.Follow(c, &ticket)
	h.Forget(&ticket)
	h.Push(c)
	h.Close()
	if ticket != (Ticket{}) {
		t.Errorf("forgotten ticket: got %+v", ticket)
	}
}

func TestDiscardedRecordLeavesItsAnnouncements(t *testing.T) {
	var j journal
	h := NewHold(&j, 0)
	var ticket Ticket
	a := take(h, "a", 1, 0, AckPending)
	h.Follow(a, &ticket)
	h.Push(a)
	b := take(h, "b", 2, 5, AckNone)
	h.Resolve(&ticket, Ack{State: AckAcked, By: 2, RTT: 5 * time.Millisecond}, b)
	h.Discard(b)
	if got, want := j.text(), "a pending; ack of 1 by 2 after 5ms"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestErrorOfTheSinkStays(t *testing.T) {
	full := errors.New("disk full")
	j := journal{err: full}
	h := NewHold(&j, DefaultHold)
	h.Push(take(h, "a", 1, 0, AckPending))
	if err := h.Push(take(h, "b", 2, 3000, AckNone)); err != full {
		t.Errorf("got %v, want %v", err, full)
	}
	if err := h.Close(); err != full || len(j.lines) != 1 || h.records != 0 {
		t.Errorf("got %v, %d written, %d left", err, len(j.lines), h.records)
	}
}

// naive is what a Hold ought to do, without limits: a list of groups, each the
// records of one place.
type naive struct{ groups [][]string }

type slot struct {
	hold  *Hold
	model *naive
	group int
}

func (s *slot) Overdue(p Place) { s.fill(p, "overdue") }

func (s *slot) fill(p Place, name string) {
	name = fmt.Sprint(name, s.group)
	s.model.groups[s.group] = append(s.model.groups[s.group], name+" none")
	s.hold.Fill(p, take(s.hold, name, 1, 0, AckNone))
}

func TestHoldAgainstANaiveModel(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		var j journal
		h := NewHold(&j, 100*time.Millisecond)
		var model naive
		var tickets []*Ticket
		type open struct {
			s *slot
			p Place
		}
		var places []open
		ms := 0
		for i := range 400 {
			ms += random.IntN(5)
			h.Advance(at(ms))
			name := fmt.Sprint("r", i)
			switch random.IntN(8) {
			case 0:
				s := &slot{h, &model, len(model.groups)}
				model.groups = append(model.groups, nil)
				places = append(places, open{s, h.Reserve(Place{}, s, random.IntN(100))})
			case 1:
				if len(places) > 0 {
					k := random.IntN(len(places))
					o := places[k]
					if o.p.Open() {
						for range random.IntN(3) {
							o.s.fill(o.p, name+"/")
						}
						h.Done(o.p)
					}
					places = slices.Delete(places, k, k+1)
				}
			case 2:
				if len(tickets) > 0 {
					k := random.IntN(len(tickets))
					h.Resolve(tickets[k], Ack{State: AckAcked}, nil)
					h.Forget(tickets[k])
					tickets = slices.Delete(tickets, k, k+1)
				}
			case 3, 4:
				r := take(h, name, i, ms, AckPending)
				tickets = append(tickets, new(Ticket))
				h.Follow(r, tickets[len(tickets)-1])
				r.Raw = []byte(name)
				model.groups = append(model.groups, []string{name})
				h.Push(r)
			default:
				model.groups = append(model.groups, []string{name})
				h.Push(take(h, name, i, ms, AckNone))
			}
		}
		h.Close()
		first := func(s string) string { return strings.Fields(s)[0] }
		var got, want []string
		for _, l := range j.lines {
			got = append(got, first(l))
		}
		for _, g := range model.groups {
			for _, l := range g {
				want = append(want, first(l))
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d:\ngot  %v\nwant %v", seed, got, want)
		}
		if s := h.Stats(); s.Held != 0 || h.bytes != 0 || len(h.out) != 0 {
			t.Fatalf("seed %d: left %+v, %d bytes, %d out", seed, s, h.bytes, len(h.out))
		}
	}
}

// discard is a sink that does nothing.
type discard struct{}

func (discard) Write(*Record) error { return nil }
func (discard) Flush() error        { return nil }

func TestHoldAllocatesNothingOnceWarm(t *testing.T) {
	h := NewHold(discard{}, DefaultHold)
	raw := make([]byte, 100)
	w := &latecomer{hold: h}
	ms := 0
	var ticket Ticket
	round := func() {
		for i := range 10 {
			ms++
			r := h.Take()
			r.Time, r.Raw = at(ms), raw
			r.Packets = append(r.Packets, ms)
			if i == 3 {
				r.Ack.State = AckPending
				h.Follow(r, &ticket)
			}
			h.Push(r)
			if i == 5 {
				p := h.Reserve(Place{}, w, 100)
				h.Done(p)
			}
		}
		h.Resolve(&ticket, Ack{State: AckAcked}, nil)
		h.Advance(at(ms))
	}
	round()
	if got := testing.AllocsPerRun(100, round); got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}

func BenchmarkHoldFastPath(b *testing.B) {
	h := NewHold(discard{}, DefaultHold)
	b.ReportAllocs()
	for b.Loop() {
		r := h.Take()
		r.Time = start
		h.Push(r)
	}
}

func BenchmarkHoldOneInTenWaits(b *testing.B) {
	h := NewHold(discard{}, DefaultHold)
	raw := make([]byte, 30)
	b.ReportAllocs()
	b.SetBytes(30)
	i := 0
	for b.Loop() {
		i++
		r := h.Take()
		r.Time, r.Raw = start.Add(time.Duration(i)*time.Millisecond), raw
		if i%10 == 0 {
			r.Ack.State = AckPending
		}
		h.Push(r)
	}
}
