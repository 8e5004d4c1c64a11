package dissect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"opscope/dissect"
	"opscope/dissect/protocols"
	"opscope/dissect/scene"
	"opscope/schema"
)

// opening is a session up to where context is taught.
func opening(s *scene.Scene) (*scene.Connection, *scene.Datagrams) {
	c, u := s.TCP(client, server), s.UDP("10.0.0.2:50112", server)
	greeting(c, 2627, "KeyA")
	u.Send(fromC, scene.HelloThere, scene.EchoKey("KeyA"))
	return c, u
}

// positions returns the first coordinate of the first position in each VIEW_UPDATE.
func positions(out *scene.Output) (list []string) {
	for _, r := range out.Named("VIEW_UPDATE") {
		t := &r.Body
		for i := range t.Nodes {
			if f := t.Nodes[i].Field; f != nil && f.Name == "position" {
				list = append(list, fmt.Sprintf("%.0f", t.Nodes[i+1].Float()))
				break
			}
		}
	}
	return list
}

// Section 12, item 8: what comes before its table waits for it, and is shown where
// it came.
func TestLateContext(t *testing.T) {
	s := &scene.Scene{}
	c, u := opening(s)
	u.Send(fromS, scene.View, "\x0b\x00\x00\x00\x07") // 6
	u.Send(fromC, feedback)                           // 7: waits behind it
	c.Send(fromS, line(1))                            // does not
	c.Send(fromS, scene.AsFrame(scene.Behavior()))
	c.Send(fromS, scene.AsFrame(scene.Translation(4)))
	u.Send(fromS, scene.View)
	out := s.Play(t, known)
	scene.Want(t, out.Frames()[4:], `
		s2c VIEW_UPDATE +late_context
		s2c PING_REQUEST
		c2s INPUT_FEEDBACK
		s2c COMM_MESSAGE
		s2c BEHAVIOR
		s2c TRANSLATION
		s2c VIEW_UPDATE`)
	for i, r := range out.Frames() {
		if r.N != i+1 {
			t.Errorf("record %d has number %d", i+1, r.N)
		}
	}
	for _, r := range out.Named("VIEW_UPDATE") {
		if r.Context != schema.Learned {
			t.Errorf("got context %v, want what was learned", r.Context)
		}
	}
	if got := out.Named("VIEW_UPDATE")[0]; got.Packets[0] != 6 || !got.Time.Equal(scene.Start.Add(5*time.Millisecond)) {
		t.Errorf("got packets %v at %v", got.Packets, got.Time)
	}
}

// Nothing else that is learned meanwhile counts for what waits.
func TestLateContextAndNothingElse(t *testing.T) {
	s := &scene.Scene{}
	c, u := opening(s)
	u.Send(fromS, scene.View)
	u.Send(fromC, "\x35\xff\xff\xff\xff")                        // raw: its handshake is still to come
	u.Send(fromC, scene.Original(1), scene.Viewpoint(1, -1))     // and holds from here on
	u.Send(fromC, "\x40\x00\x00\x00\x07", scene.Viewpoint(2, 2)) // likewise
	c.Send(fromS, scene.AsFrame(scene.Behavior()))
	c.Send(fromS, scene.AsFrame(scene.Translation(4)))
	out := s.Play(t, known)
	scene.Want(t, out.Frames()[4:], `
		s2c VIEW_UPDATE +late_context
		c2s VIEWPOINT_INFO
		c2s D_HANDSHAKE
		c2s VIEWPOINT_INFO 1 unacked +never_acknowledged
		c2s INPUT_FEEDBACK
		c2s VIEWPOINT_INFO 2 unacked +never_acknowledged
		s2c BEHAVIOR
		s2c TRANSLATION`)
}

// Context that does not come: the stated default, and it is said. It is used from
// the first that gave up on, and what is taught later all the same after that.
func TestContextThatNeverComes(t *testing.T) {
	for name, o := range map[string]dissect.Options{
		"holding":      known,
		"not holding":  {Protocols: protocols.All},
		"holding long": {Protocols: protocols.All, Hold: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scene.Scene{}
			_, u := opening(s)
			u.Send(fromS, scene.View, "\x0b\x00\x00\x00\x07")
			out := s.Play(t, o)
			scene.Want(t, out.Frames()[4:], "s2c VIEW_UPDATE +assumed_context\ns2c PING_REQUEST")
			if got := out.Named("VIEW_UPDATE")[0].Context; got != schema.Default {
				t.Errorf("got context %v", got)
			}
		})
	}
	t.Run("but after 5 s", func(t *testing.T) {
		s := &scene.Scene{}
		c, u := opening(s)
		u.Send(fromS, scene.View)
		for range 5 {
			s.Wait(time.Second)
			u.Send(fromC, feedback)
		}
		u.Send(fromS, scene.View) // does not wait again
		at := s.Len()
		c.Send(fromS, scene.AsFrame(scene.Translation(2)))
		u.Send(fromS, scene.View)
		c.Send(fromS, scene.AsFrame(scene.Behavior()))
		var before int
		out := &scene.Output{}
		src := s.Source()
		watch := sourceFunc(func(p *dissect.Packet) error {
			if p.Number == at {
				before = len(out.Named("VIEW_UPDATE"))
			}
			return src.Next(p)
		})
		playInto(t, out, watch, known)
		if before != 2 {
			t.Errorf("got %d of them when the table came, want 2 already shown", before)
		}
		list := out.Named("VIEW_UPDATE")
		scene.Want(t, list[:2], "s2c VIEW_UPDATE +assumed_context\ns2c VIEW_UPDATE +assumed_context")
		p := positions(out)
		if len(p) != 3 || p[0] != "100" || p[1] != "100" || p[2] == "100" {
			t.Errorf("got positions %v: want 100 by the default, and something else by the table", p)
		}
	})
}

// A session joined in its middle reads by the default at once.
func TestJoinedSessionDoesNotWait(t *testing.T) {
	s := &scene.Scene{}
	u := s.UDP("10.0.0.2:50112", server)
	u.Send(fromS, scene.View)
	out := s.Play(t, known)
	if got := scene.Line(out.Frames()[0]); !strings.Contains(got, "VIEW_UPDATE") || !strings.Contains(got, "+assumed_context") {
		t.Errorf("got %s", got)
	}
}

// The hold waits for acknowledgements without mixing the order.
func TestHoldingKeepsTheOrderOfTheCapture(t *testing.T) {
	s := &scene.Scene{}
	c, u := opening(s)
	u.Send(fromC, scene.Original(1))
	for n := 1; n <= 6; n++ {
		u.Send(fromC, scene.Viewpoint(n, n))
		c.Send(fromS, line(n))
		if n%2 == 0 {
			u.Send(fromS, scene.Ack(0x35, n))
		}
	}
	var last int
	for _, r := range s.Play(t, known).Frames() {
		if r.Packets[0] < last {
			t.Errorf("packet %d is shown after packet %d", r.Packets[0], last)
		}
		last = r.Packets[0]
	}
}

// Without holding an acknowledgement follows on its own.
func TestWithoutHolding(t *testing.T) {
	s := &scene.Scene{}
	_, u := opening(s)
	u.Send(fromC, scene.Original(1))
	u.Send(fromC, scene.Viewpoint(1, -1))
	u.Send(fromS, scene.Ack(0x35, 1))
	out := s.Play(t, dissect.Options{Protocols: protocols.All})
	scene.Want(t, out.Records[6:], "c2s VIEWPOINT_INFO 1 pending\ns2c D_ACK\nack of 6 by 8 acked")
}

type failing struct{ after int }

var errFull = errors.New("disk full")

func (f *failing) Write(*dissect.Record) error {
	if f.after--; f.after < 0 {
		return errFull
	}
	return nil
}

func (f *failing) Flush() error { return nil }

// What ends a run: a sink or a source that fails, or whoever waits for it.
func TestWhatEndsARun(t *testing.T) {
	play := func(ctx context.Context, sink dissect.Sink, src dissect.Source) (*dissect.Result, error) {
		return dissect.NewPipeline(sink, known).Run(ctx, src)
	}
	t.Run("a sink that fails", func(t *testing.T) {
		r, err := play(context.Background(), &failing{after: 100}, newTraffic(1<<30))
		if err != errFull {
			t.Errorf("got %v", err)
		}
		if r.Summary.Packets > 1000 {
			t.Errorf("read %d packets after the sink had failed", r.Summary.Packets)
		}
	})
	t.Run("a source that fails", func(t *testing.T) {
		errDevice := errors.New("device gone")
		src, n := newTraffic(1<<30), 0
		out := &scene.Output{}
		r, err := play(context.Background(), out, sourceFunc(func(p *dissect.Packet) error {
			if n++; n > 50 {
				return errDevice
			}
			return src.Next(p)
		}))
		if err != errDevice || r.Summary.Packets != 50 || len(out.Frames()) < 50 {
			t.Errorf("got %v with %d packets, %d records", err, r.Summary.Packets, len(out.Frames()))
		}
	})
	t.Run("a context that is done", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(context.Background())
		errStop := errors.New("interrupted")
		src, n := newTraffic(1<<30), 0
		_, err := play(ctx, &discard{}, sourceFunc(func(p *dissect.Packet) error {
			if n++; n == 500 {
				cancel(errStop)
			}
			return src.Next(p)
		}))
		if err != errStop || n > 1000 {
			t.Errorf("got %v after %d packets", err, n)
		}
	})
	t.Run("a link type that nobody knows, at the end", func(t *testing.T) {
		src, n := newTraffic(1<<30), 0
		r, err := play(context.Background(), &discard{}, sourceFunc(func(p *dissect.Packet) error {
			if n++; n == 10 || n == 20 {
				*p = dissect.Packet{Number: n, Data: []byte("x"), Length: 1, Link: 147}
				return nil
			}
			if n > 30 {
				return io.EOF
			}
			return src.Next(p)
		}))
		var link *dissect.UnsupportedLinkError
		if !errors.As(err, &link) || r.Summary.Packets != 30 || r.Summary.Unsupported != 2 {
			t.Errorf("got %v with %d packets, %d unsupported", err, r.Summary.Packets, r.Summary.Unsupported)
		}
	})
}

// heap returns the bytes in use after a collection.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// peak watches the memory in use while a source is read.
type peak struct {
	dissect.Source
	every, n int
	most     int64
}

func (p *peak) Next(k *dissect.Packet) error {
	if p.n++; p.n%p.every == 0 {
		p.most = max(p.most, heap())
	}
	return p.Source.Next(k)
}

// scenes plays scenes one after the other, each made when it is needed.
type scenes struct {
	make   func(i int) *scene.Scene // nil at the end
	now    dissect.Source
	i      int
	number int
	at     time.Duration
	step   time.Duration // between the packets
}

func (s *scenes) Next(p *dissect.Packet) error {
	for {
		if s.now != nil {
			if err := s.now.Next(p); err == nil {
				s.number++
				p.Number, p.Time = s.number, scene.Start.Add(s.at)
				s.at += s.step
				return nil
			}
		}
		next := s.make(s.i)
		if next == nil {
			return io.EOF
		}
		s.i++
		s.now = next.Source()
	}
}

func endpoint(i, port int) string {
	return fmt.Sprintf("10.%d.%d.%d:%d", 1+i>>16&0x7f, i>>8&0xff, i&0xff, port)
}

// B82: memory does not grow with what is over.
func TestMemoryIsFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	const mib = 1 << 20
	for name, c := range map[string]struct {
		count int
		step  time.Duration
		bound int64
		make  func(i int) *scene.Scene
	}{
		"20,000 connections": {20000, 10 * time.Millisecond, 60 * mib, func(i int) *scene.Scene {
			s := &scene.Scene{}
			c := s.TCP(endpoint(i, 50111), server)
			greeting(c, 2627, fmt.Sprint("Key", i))
			u := s.UDP(endpoint(i, 50112), server)
			u.Send(fromC, scene.HelloThere, scene.EchoKey(fmt.Sprint("Key", i)))
			u.Send(fromC, scene.Original(1), scene.Viewpoint(1, -1))
			c.Send(fromS, scene.AsFrame(scene.Translation(4)))
			c.Segment(fromS, scene.FIN|scene.ACK, "")
			c.Segment(fromC, scene.FIN|scene.ACK, "")
			return s
		}},
		// As many as MaxFlows are kept at a time, each with a session of some 1.3 kB.
		"100,000 short exchanges of datagrams": {100000, 10 * time.Millisecond, 110 * mib, func(i int) *scene.Scene {
			s := &scene.Scene{}
			s.UDP(endpoint(i, 50112), server).Send(fromC, scene.HelloThere)
			return s
		}},
		"100,000 flows of others": {100000, 10 * time.Millisecond, 48 * mib, func(i int) *scene.Scene {
			s := &scene.Scene{}
			s.UDP(endpoint(i, 50112), "10.0.0.1:53").Send(fromC, "question")
			return s
		}},
	} {
		t.Run(name, func(t *testing.T) {
			src := &scenes{step: c.step, make: func(i int) *scene.Scene {
				if i == c.count {
					return nil
				}
				return c.make(i)
			}}
			before := heap()
			watch := &peak{Source: src, every: 40000}
			var d discard
			r := playInto(t, &d, watch, known)
			t.Logf("%d packets, %d records, at most %d MiB", src.number, d.records, (watch.most-before)/mib)
			if got := watch.most - before; got > c.bound {
				t.Errorf("got %d MiB, want at most %d", got/mib, c.bound/mib)
			}
			if kept := len(r.Sessions); kept+r.Dropped != c.count && d.records > 0 {
				t.Errorf("got %d sessions and %d dropped of %d", kept, r.Dropped, c.count)
			}
		})
	}
}

// Sessions with sequences of every kind, all of them full: what they remember is bounded
// in all, and those that were quiet the longest make room.
func TestSessionsRememberWithinLimits(t *testing.T) {
	const sessions = 24
	var pairs []scene.Pair
	for op := range 256 {
		pairs = append(pairs, scene.Pair{Opcode: op, Mode: 1})
	}
	src := &scenes{step: time.Microsecond, make: func(i int) *scene.Scene {
		if i == sessions {
			return nil
		}
		s := &scene.Scene{}
		u := s.UDP(endpoint(i, 50112), server)
		u.Send(fromC, scene.Handshake(1, nil, pairs...))
		for seq := 1; seq <= 70; seq++ {
			for op := 8; op < 256; op += 62 {
				var records string
				for n := range 62 {
					records += scene.Sequenced(byte(op+n), seq, "")
				}
				u.Send(fromC, records)
			}
		}
		return s
	}}
	o := dissect.Options{Protocols: protocols.All} // without a Hold, which has limits of its own
	o.Limits.Remembered = 1 << 16                  // the sequences of four
	before := heap()
	watch := &peak{Source: src, every: 500}
	d := &discardEvents{}
	r := playInto(t, d, watch, o)
	t.Logf("at most %d MiB", (watch.most-before)>>20)
	if got := watch.most - before; got > 48<<20 {
		t.Errorf("got %d MiB, want at most 48", got>>20)
	}
	if n := r.Summary.Limits[dissect.LimitRemembered]; n < sessions-5 || n != d.events["evicted"] || r.Summary.Evictions != n {
		t.Errorf("%d evicted for it, %d told, %d evictions", n, d.events["evicted"], r.Summary.Evictions)
	}
}

// More flows than are kept: the one that was quiet longest makes room, and says so.
func TestTooManyFlows(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	n := 0
	src := &scenes{step: time.Microsecond, make: func(i int) *scene.Scene {
		if n++; n > dissect.MaxFlows+3 {
			return nil
		}
		s := &scene.Scene{}
		s.UDP(endpoint(i, 50112), server).Send(fromC, feedback)
		return s
	}}
	d := &discardEvents{}
	r := playInto(t, d, src, known)
	if d.events["evicted"] != 3 || r.Summary.Evictions != 3 {
		t.Errorf("got %v, %d evictions; want 3", d.events, r.Summary.Evictions)
	}
}

// A capture of any size takes the same memory: 200 MB here, 1 GB with
// OPSCOPE_LONG=1 in the environment.
func TestLargeCapture(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	size := int64(200e6)
	if os.Getenv("OPSCOPE_LONG") != "" {
		size = 1e9
	}
	before := heap()
	watch := &peak{Source: newTraffic(size), every: 100000}
	var d discard
	r := playInto(t, &d, watch, known)
	t.Logf("%d records, at most %d KiB", d.records, (watch.most-before)>>10)
	if got := watch.most - before; got > 24<<20 {
		t.Errorf("got %d MiB for %d MB, want at most 24", got>>20, size/1e6)
	}
	if d.notes > 0 {
		t.Errorf("got notes %v on traffic without fault", r.Summary.Notes)
	}
}
