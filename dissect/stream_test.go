package dissect_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"opscope/dissect"
	"opscope/dissect/protocols"
	"opscope/dissect/scene"
	"opscope/schema"
	"opscope/schema/wire"
)

const (
	client  = "10.0.0.2:50111"
	server  = "10.0.0.1:2627"
	fromC   = scene.Client
	fromS   = scene.Server
	garbage = "\xff\xff\xff\xff"
)

var known = dissect.Options{Protocols: protocols.All, Hold: dissect.DefaultHold}

// line is a frame of chat, with a number, of 24 bytes with one digit.
func line(n int) string { return scene.AsFrame(scene.Numbered(n)) }

func lines(from, to int) (s string) {
	for n := from; n <= to; n++ {
		s += line(n)
	}
	return s
}

// numbers returns the numbers of the chat lines among some records, as "1 2 3".
func numbers(list []*dissect.Record) string {
	var w []string
	for _, r := range list {
		if r.Message == "COMM_MESSAGE" && r.Err == nil {
			i := r.Body.Field("text")
			w = append(w, strings.TrimPrefix(string(r.Body.AppendText(nil, i)), "line "))
		}
	}
	return strings.Join(w, " ")
}

func count(from, to int) string {
	var w []string
	for n := from; n <= to; n++ {
		w = append(w, fmt.Sprint(n))
	}
	return strings.Join(w, " ")
}

func wantNumbers(t *testing.T, out *scene.Output, want string) {
	t.Helper()
	if got := numbers(out.Records); got != want {
		t.Errorf("got lines %s, want %s\n%s", got, want, out)
	}
}

// opened returns a connection that has been opened in view of the capture.
func opened(s *scene.Scene) *scene.Connection {
	c := s.TCP(client, server)
	c.Open()
	return c
}

// B25, B28: frames and segments have nothing to do with each other.
func TestEveryFrameOfASegment(t *testing.T) {
	s := &scene.Scene{}
	c := opened(s)
	c.Send(fromS, lines(1, 5))           // packet 4
	c.Send(fromS, line(6), line(7)[:13]) // 5
	c.Send(fromS, line(7)[13:], line(8)) // 6
	out := s.Play(t, known)
	wantNumbers(t, out, count(1, 8))
	size := int64(len(line(1)))
	for i, r := range out.Frames() {
		want := []int{4}
		switch i {
		case 5:
			want = []int{5}
		case 6:
			want = []int{5, 6}
		case 7:
			want = []int{6}
		}
		if !slices.Equal(r.Packets, want) || r.Offset != int64(i)*size || r.Size != int(size) || string(r.Raw) != line(i+1) {
			t.Errorf("frame %d: got packets %v, %d bytes at %d, % x; want packets %v", i+1, r.Packets, r.Size, r.Offset, r.Raw, want)
		}
	}
}

// B26.
func TestFramesByteByByte(t *testing.T) {
	s := &scene.Scene{}
	c := opened(s)
	c.Drip(fromS, 1, lines(1, 3))
	out := s.Play(t, known)
	wantNumbers(t, out, count(1, 3))
	n := len(line(1))
	for i, r := range out.Frames() {
		if len(r.Packets) != n || r.Packets[0] != 4+i*n || r.Packets[n-1] != 3+(i+1)*n {
			t.Errorf("frame %d: got packets %v", i+1, r.Packets)
		}
		if want := scene.Start.Add(time.Duration(2+(i+1)*n) * time.Millisecond); !r.Time.Equal(want) {
			t.Errorf("frame %d: got time %v, want that of its last packet, %v", i+1, r.Time, want)
		}
	}
}

// Whatever the segments, the frames are the same.
func TestFramesInSegmentsOfAnySize(t *testing.T) {
	data := lines(1, 4) + scene.AsFrame(scene.Behavior()) + scene.AsFrame(scene.Translation(4)) + lines(5, 9)
	for _, n := range []int{2, 3, 5, 7, 16, 17, 26, 27, 100, 1400, 4096} {
		s := &scene.Scene{}
		opened(s).Drip(fromS, n, data)
		out := s.Play(t, known)
		var raw string
		for _, r := range out.Frames() {
			raw += string(r.Raw)
			if r.Err != nil || len(r.Notes) > 0 {
				t.Errorf("segments of %d: got %s", n, scene.Line(r))
			}
		}
		if len(out.Frames()) != 11 || raw != data {
			t.Errorf("segments of %d: got %d frames\n%s", n, len(out.Frames()), out)
		}
	}
}

// B29: one impossible size is an error with its place, and what follows is found.
func TestImpossibleSize(t *testing.T) {
	for name, n := range map[string]int{"in one segment": 100000, "in segments": 40, "byte by byte": 1} {
		t.Run(name, func(t *testing.T) {
			s := &scene.Scene{}
			opened(s).Drip(fromS, n, lines(1, 10), garbage, lines(11, 20))
			out := s.Play(t, known)
			wantNumbers(t, out, count(1, 20))
			if got := out.Result.Summary.UndecodedBytes; got != 4 {
				t.Errorf("got %d bytes undecoded, want 4", got)
			}
			broken := slices.IndexFunc(out.Records, func(r *dissect.Record) bool { return r.Err != nil })
			r := out.Records[broken]
			const want = "wulfram/envelope.length at byte 0"
			if !strings.HasPrefix(r.Err.Error(), want) || !strings.Contains(r.Err.Error(), "got 65535 (malformed)") {
				t.Errorf("got %q, want %q and the length", r.Err, want)
			}
			if r.Offset != int64(len(lines(1, 10))) || !strings.HasPrefix(garbage, string(r.Raw)) {
				t.Errorf("got % x at %d, want the garbage at %d", r.Raw, r.Offset, len(lines(1, 10)))
			}
			if next := out.Records[broken+1]; scene.Line(next) != "s2c event resync" || !strings.HasPrefix(next.Text, "4 bytes") {
				t.Errorf("got %s: %s, want a resync after 4 bytes", scene.Line(next), next.Text)
			}
		})
	}
}

func TestSizesThatNoFrameHas(t *testing.T) {
	for _, size := range []int{0, 1, 2, 10243, 65535} {
		s := &scene.Scene{}
		opened(s).Send(fromS, lines(1, 3), scene.BE16(size), lines(4, 6))
		out := s.Play(t, known)
		wantNumbers(t, out, count(1, 6))
		if got := out.Result.Summary.Errors[wire.Malformed]; got != 1 {
			t.Errorf("size %d: got %d errors\n%s", size, got, out)
		}
	}
}

func TestLargestFrame(t *testing.T) {
	s := &scene.Scene{}
	c := opened(s)
	c.Drip(fromS, 1400, scene.Frame(0x11, strings.Repeat("x", 10239)), line(1))
	out := s.Play(t, known)
	scene.Want(t, out.Frames(), "s2c HUD_MESSAGE +unknown_body rest=78787878787878787878787878787878\ns2c COMM_MESSAGE")
	if got := out.Frames()[0].Size; got != 10242 {
		t.Errorf("got a frame of %d bytes, want 10242", got)
	}
}

// B01.
func TestJoinedAtABoundary(t *testing.T) {
	s := &scene.Scene{}
	c := s.TCP(client, server)
	c.Send(fromS, line(1))
	c.Send(fromS, line(2))
	out := s.Play(t, known)
	scene.Want(t, out.Records, `
		s2c event joined_mid_stream
		session 1 opened: joined mid-stream
		s2c COMM_MESSAGE
		s2c COMM_MESSAGE`)
}

func TestJoinedInMidFrame(t *testing.T) {
	s := &scene.Scene{}
	c := s.TCP(client, server)
	c.Send(fromS, line(1)[7:], line(2))
	c.Send(fromS, line(3))
	c.Send(fromC, scene.AsFrame(scene.Hello)[3:], scene.Frame(0x39, ""))
	c.Send(fromC, scene.AsFrame(scene.Hello), scene.Frame(0x39, ""), scene.Frame(0x39, ""))
	out := s.Play(t, known)
	scene.Want(t, out.Records, `
		s2c event joined_mid_stream
		session 1 opened: joined mid-stream
		s2c event resync
		s2c COMM_MESSAGE
		s2c COMM_MESSAGE
		c2s event joined_mid_stream
		c2s event resync
		c2s WANT_UPDATES
		c2s HELLO
		c2s WANT_UPDATES
		c2s WANT_UPDATES`)
	if got, want := out.Result.Summary.UndecodedBytes, int64(len(line(1))-7+5); got != want {
		t.Errorf("got %d bytes passed over, want %d", got, want)
	}
}

// B01: output does not wait for the end.
func TestJoinedStreamIsShownWhileItIsRead(t *testing.T) {
	s := &scene.Scene{}
	c := s.TCP(client, server)
	for n := 1; n <= 20; n++ {
		if n == 1 {
			c.Send(fromS, line(n)[7:])
			continue
		}
		c.Send(fromS, line(n))
	}
	src, out, shown := s.Source(), &scene.Output{}, 0
	watch := sourceFunc(func(p *dissect.Packet) error {
		err := src.Next(p)
		if p.Number == 10 {
			shown = len(out.Frames())
		}
		return err
	})
	playInto(t, out, watch, known)
	if shown < 6 {
		t.Errorf("got %d frames while packet 10 was read, want 6 at least", shown)
	}
	wantNumbers(t, out, count(2, 20))
}

// A gap in a frame whose size is known: the next one is where it says.
func TestGapInsideAFrame(t *testing.T) {
	s := &scene.Scene{}
	c := opened(s)
	c.Send(fromS, line(1), line(2)[:10])
	c.Lose(fromS, line(2)[10:14])
	c.Send(fromS, line(2)[14:], line(3))
	c.Send(fromC, scene.AsFrame(scene.Hello))
	s.Wait(3 * time.Second)
	c.Send(fromS, line(4))
	out := s.Play(t, known)
	frames := slices.DeleteFunc(slices.Clone(out.Records), func(r *dissect.Record) bool { return r.Direction == dissect.ClientToServer })
	scene.Want(t, frames, `
		session 1 opened: syn
		s2c COMM_MESSAGE
		s2c COMM_MESSAGE +not_captured !incomplete COMM_MESSAGE.scope@9 rest=00
		s2c gap 4 not_captured
		s2c COMM_MESSAGE
		s2c COMM_MESSAGE`)
	r := frames[2]
	if r.Size != len(line(2)) || string(r.Raw) != line(2)[:10] {
		t.Errorf("got %d bytes, of which % x; want %d, of which 10", r.Size, r.Raw, len(line(2)))
	}
	sum := out.Result.Summary
	if left := int64(len(line(2)) - 14 + 1); sum.UndecodedBytes != left || sum.LostBytes != 4 || sum.Gaps != 1 {
		t.Errorf("got %d undecoded, %d lost in %d gaps; want %d, 4, 1", sum.UndecodedBytes, sum.LostBytes, sum.Gaps, left)
	}
}

func TestGapAtABoundary(t *testing.T) {
	s := &scene.Scene{}
	c := opened(s)
	c.Send(fromS, lines(1, 2))
	c.Lose(fromS, line(3))
	c.Send(fromS, line(4))
	s.Wait(3 * time.Second)
	c.Send(fromS, line(5))
	out := s.Play(t, known)
	scene.Want(t, out.Records, `
		session 1 opened: syn
		s2c COMM_MESSAGE
		s2c COMM_MESSAGE
		s2c gap 24 not_captured
		s2c COMM_MESSAGE
		s2c COMM_MESSAGE`)
	wantNumbers(t, out, "1 2 4 5")
	g := out.Records[3]
	if g.After != 4 || g.Before != 5 || g.Offset != int64(len(lines(1, 2))) {
		t.Errorf("got a gap at %d between packets %d and %d", g.Offset, g.After, g.Before)
	}
}

func TestGapOverSeveralFrames(t *testing.T) {
	s := &scene.Scene{}
	c := opened(s)
	c.Send(fromS, line(1), line(2)[:12])
	c.Lose(fromS, line(2)[12:], line(3), line(4)[:5])
	c.Send(fromS, line(4)[5:], line(5))
	s.Wait(3 * time.Second)
	c.Send(fromS, line(6))
	out := s.Play(t, known)
	scene.Want(t, out.Records, `
		session 1 opened: syn
		s2c COMM_MESSAGE
		s2c COMM_MESSAGE +not_captured !incomplete COMM_MESSAGE.recipient@11 rest=00
		s2c gap 41 not_captured
		s2c event resync
		s2c COMM_MESSAGE
		s2c COMM_MESSAGE`)
	wantNumbers(t, out, "1 5 6")
}

// A gap that takes even the size.
func TestGapInsideAHeader(t *testing.T) {
	s := &scene.Scene{}
	c := opened(s)
	c.Send(fromS, line(1), line(2)[:1])
	c.Lose(fromS, line(2)[1:3])
	c.Send(fromS, line(2)[3:], line(3))
	s.Wait(3 * time.Second)
	c.Send(fromS, line(4))
	out := s.Play(t, known)
	scene.Want(t, out.Records, `
		session 1 opened: syn
		s2c COMM_MESSAGE
		s2c ? !incomplete envelope@0 rest=00
		s2c gap 2 not_captured
		s2c event resync
		s2c COMM_MESSAGE
		s2c COMM_MESSAGE`)
}

// The first bytes of a connection are missing.
func TestGapBeforeTheFirstFrame(t *testing.T) {
	s := &scene.Scene{}
	c := opened(s)
	c.Lose(fromS, line(1)[:9])
	c.Send(fromS, line(1)[9:], lines(2, 4))
	s.Wait(3 * time.Second)
	c.Send(fromS, line(5))
	out := s.Play(t, known)
	wantNumbers(t, out, count(2, 5))
	if got := out.Result.Summary; got.LostBytes != 9 || got.Gaps != 1 {
		t.Errorf("got %d bytes lost in %d gaps, want 9 in 1\n%s", got.LostBytes, got.Gaps, out)
	}
}

// A gap while a boundary is looked for.
func TestGapWhileHunting(t *testing.T) {
	s := &scene.Scene{}
	c := opened(s)
	c.Send(fromS, line(1), garbage, strings.Repeat("\xee", 100))
	c.Lose(fromS, strings.Repeat("\xee", 50))
	c.Send(fromS, strings.Repeat("\xee", 100), lines(2, 5))
	s.Wait(3 * time.Second)
	c.Send(fromS, line(6))
	out := s.Play(t, known)
	scene.Want(t, out.Records, `
		session 1 opened: syn
		s2c COMM_MESSAGE
		s2c ? !malformed envelope.length@0 rest=ffffffffeeeeeeeeeeeeeeeeeeeeeeee
		s2c gap 50 not_captured
		s2c event resync
		s2c COMM_MESSAGE
		s2c COMM_MESSAGE
		s2c COMM_MESSAGE
		s2c COMM_MESSAGE
		s2c COMM_MESSAGE`)
	if got := out.Result.Summary.UndecodedBytes; got != 204 {
		t.Errorf("got %d bytes undecoded, want 204", got)
	}
}

// B70: what the capture cut is not lost.
func TestSnapLength(t *testing.T) {
	long := scene.AsFrame("\x23" + scene.Text(strings.Repeat("motd ", 60)))
	t.Run("a frame in a segment", func(t *testing.T) {
		s := &scene.Scene{}
		c := opened(s)
		s.Snap = 96
		for range 3 {
			c.Send(fromS, long)
		}
		out := s.Play(t, known)
		const cut = "s2c MOTD +not_captured !truncated MOTD.text@5 rest=6d6f7464206d6f7464206d6f7464206d\n"
		scene.Want(t, out.Frames(), cut+cut+cut)
		r := out.Frames()[0]
		if r.Size != len(long) || len(r.Raw) != 96-54 {
			t.Errorf("got %d of %d bytes, want %d of %d", len(r.Raw), r.Size, 96-54, len(long))
		}
		sum := out.Result.Summary
		if sum.Gaps != 0 || sum.LostBytes != 0 || sum.CutBytes != int64(3*(len(long)+54-96)) {
			t.Errorf("got %d bytes lost in %d gaps, %d cut", sum.LostBytes, sum.Gaps, sum.CutBytes)
		}
	})
	t.Run("frames in a segment", func(t *testing.T) {
		s := &scene.Scene{}
		c := opened(s)
		s.Snap = 54 + 60
		c.Send(fromS, line(1), long, long) // one whole, one cut, one not there
		c.Send(fromS, line(2), long)       // ends with what is cut: found again
		c.Send(fromS, line(3), line(4))
		out := s.Play(t, known)
		scene.Want(t, out.Records[1:], `
			s2c COMM_MESSAGE
			s2c MOTD +not_captured !truncated MOTD.text@5 rest=6d6f7464206d6f7464206d6f7464206d
			s2c gap 576 snap_length
			s2c COMM_MESSAGE
			s2c MOTD +not_captured !truncated MOTD.text@5 rest=6d6f7464206d6f7464206d6f7464206d
			s2c COMM_MESSAGE
			s2c COMM_MESSAGE`)
	})
	t.Run("headers only", func(t *testing.T) {
		s := &scene.Scene{}
		c := opened(s)
		s.Snap = 54
		c.Send(fromS, long)
		c.Send(fromS, long)
		out := s.Play(t, known)
		scene.Want(t, out.Records, "session 1 opened: syn\ns2c gap 306 snap_length\ns2c gap 306 snap_length")
		if sum := out.Result.Summary; sum.Gaps != 0 || sum.LostBytes != 0 {
			t.Errorf("got %d bytes lost in %d gaps", sum.LostBytes, sum.Gaps)
		}
	})
}

func TestFINWithHalfAFrameLeft(t *testing.T) {
	s := &scene.Scene{}
	c := opened(s)
	c.Send(fromS, line(1), line(2)[:14])
	c.Segment(fromS, scene.FIN|scene.ACK, "")
	c.Send(fromC, scene.AsFrame(scene.Hello))
	c.Segment(fromC, scene.FIN|scene.ACK, "")
	out := s.Play(t, known)
	scene.Want(t, out.Records, `
		session 1 opened: syn
		s2c COMM_MESSAGE
		s2c COMM_MESSAGE +not_captured !incomplete COMM_MESSAGE.recipient@11 rest=000000
		s2c event closed
		c2s HELLO
		c2s event closed
		session 1 closed: closed`)
	texts := []string{out.Records[3].Text, out.Records[5].Text}
	if texts[0] != "half-closed by server" || texts[1] != "by client" {
		t.Errorf("got %q", texts)
	}
}

// B02, B10.
func TestReset(t *testing.T) {
	t.Run("with half a frame left", func(t *testing.T) {
		s := &scene.Scene{}
		c := opened(s)
		c.Send(fromC, scene.AsFrame(scene.Hello))
		c.Send(fromS, line(1)[:5])
		c.Segment(fromS, scene.RST, "")
		out := s.Play(t, known)
		scene.Want(t, out.Records, `
			session 1 opened: syn
			c2s HELLO
			s2c COMM_MESSAGE +not_captured !incomplete COMM_MESSAGE.source_id@5
			s2c event reset
			session 1 closed: reset by server`)
	})
	t.Run("after a FIN of the same side", func(t *testing.T) {
		s := &scene.Scene{}
		c := opened(s)
		c.Send(fromC, scene.AsFrame(scene.Hello))
		c.Segment(fromC, scene.FIN|scene.ACK, "")
		c.Segment(fromC, scene.RST, "")
		out := s.Play(t, known)
		scene.Want(t, out.Records, `
			session 1 opened: syn
			c2s HELLO
			c2s event closed
			c2s event reset
			session 1 closed: reset by client`)
	})
	t.Run("of a refused connection", func(t *testing.T) {
		s := &scene.Scene{}
		c := s.TCP(client, server)
		c.Segment(fromC, scene.SYN, "")
		c.SegmentAt(fromS, scene.RST|scene.ACK, 0, "")
		out := s.Play(t, known)
		scene.Want(t, out.Records, "s2c event reset")
	})
}

// B08.
func TestHalfClosedGoesOn(t *testing.T) {
	s := &scene.Scene{}
	c := opened(s)
	c.Send(fromC, scene.AsFrame(scene.Hello))
	c.Segment(fromC, scene.FIN|scene.ACK, "")
	for n := 1; n <= 60; n++ {
		s.Wait(time.Second)
		c.Send(fromS, line(n))
	}
	c.Segment(fromS, scene.FIN|scene.ACK, "")
	out := s.Play(t, known)
	wantNumbers(t, out, count(1, 60))
	if last := out.Records[len(out.Records)-1]; scene.Line(last) != "session 1 closed: closed" {
		t.Errorf("got %s last", scene.Line(last))
	}
}

// B11.
func TestQuietDirectionIsNotForgotten(t *testing.T) {
	s := &scene.Scene{}
	c := opened(s)
	c.Send(fromC, scene.AsFrame(scene.Hello))
	for n := 1; n <= 3000; n++ {
		s.Wait(time.Second)
		c.Send(fromS, line(n))
	}
	c.Send(fromC, scene.Frame(0x39, ""))
	out := s.Play(t, known)
	if got := len(out.Named("WANT_UPDATES")); got != 1 || out.Result.Summary.Gaps > 0 {
		t.Errorf("got %d frames after 50 minutes of silence", got)
	}
}

func TestTCPWithoutDataForHours(t *testing.T) {
	s := &scene.Scene{}
	c := opened(s)
	s.Wait(3 * time.Hour)
	s.UDP("10.9.9.9:1", "10.9.9.8:2").Send(fromC, "x")
	c.Send(fromS, line(1))
	out := s.Play(t, known)
	scene.Want(t, out.Records, "session 1 opened: syn\ns2c COMM_MESSAGE")
}

// B04: port reuse.
func TestPortReuse(t *testing.T) {
	for name, begin := range map[string]uint32{"with a higher sequence": 900000, "with a lower one": 3} {
		t.Run(name, func(t *testing.T) {
			s := &scene.Scene{}
			c := opened(s)
			c.Send(fromS, line(1), line(2)[:8])
			c.Next = [2]uint32{begin, begin + 7}
			c.Open()
			c.Send(fromS, line(3))
			out := s.Play(t, known)
			scene.Want(t, out.Records, `
				session 1 opened: syn
				s2c COMM_MESSAGE
				c2s event port_reused
				s2c COMM_MESSAGE +not_captured !incomplete COMM_MESSAGE.source_id@5 rest=000000
				session 1 closed: port reused
				session 2 opened: syn
				s2c COMM_MESSAGE`)
			if f := out.Frames(); f[0].Flow != 1 || f[2].Flow != 2 || f[2].Offset != 0 {
				t.Errorf("got flows %d and %d", f[0].Flow, f[2].Flow)
			}
		})
	}
}

// The ports of a connection that nobody has recognised yet, and that has bytes, are reused.
func TestPortReuseOfWhatIsNotRecognised(t *testing.T) {
	s := &scene.Scene{}
	c := s.TCP("10.0.0.2:50111", "10.0.0.1:9999")
	c.Open()
	c.Send(fromC, "?")
	c.Next = [2]uint32{900000, 900007}
	c.Open()
	c.Send(fromC, "?")
	out := s.Play(t, known)
	scene.Want(t, out.Records, "")
	if got := out.Result.Summary.OtherFlows; got != 2 {
		t.Errorf("%d flows of something else, want 2", got)
	}
}

// B05, B07.
func TestSYNOfTheSameConnection(t *testing.T) {
	t.Run("again", func(t *testing.T) {
		s := &scene.Scene{}
		c := s.TCP(client, server)
		c.Segment(fromC, scene.SYN, "")
		c.Segment(fromS, scene.SYN|scene.ACK, "")
		c.SegmentAt(fromC, scene.SYN, 1000, "")
		c.Segment(fromC, scene.ACK, "")
		c.Send(fromS, line(1))
		out := s.Play(t, known)
		scene.Want(t, out.Records, "session 1 opened: syn\ns2c COMM_MESSAGE")
	})
	t.Run("late", func(t *testing.T) {
		s := &scene.Scene{}
		c := opened(s)
		c.Send(fromS, line(1))
		c.Segment(fromS, scene.FIN|scene.ACK, "")
		c.Segment(fromC, scene.FIN|scene.ACK, "")
		s.Move(1)
		out := s.Play(t, known)
		if got := len(out.Result.Sessions); got != 1 || strings.Count(out.String(), "opened") != 1 {
			t.Errorf("got %d sessions\n%s", got, out)
		}
		wantNumbers(t, out, "1")
	})
}

// B23: buffers go from stream to stream, and gaps stay where bytes are missing.
func TestStreamsShareBuffers(t *testing.T) {
	s := &scene.Scene{}
	a, b := s.TCP(client, server), s.TCP("10.0.0.3:50111", server)
	a.Open()
	b.Open()
	a.Send(fromS, line(1), line(2)[:10])
	a.Lose(fromS, line(2)[10:])
	a.Send(fromS, line(3)[:7])
	s.Wait(3 * time.Second)
	for n := 4; n <= 9; n++ {
		b.Send(fromS, line(n)[:9])
		a.Send(fromS, line(n - 1)[7:], line(n)[:7])
		b.Send(fromS, line(n)[9:])
	}
	out := s.Play(t, known)
	list := out.Frames()
	scene.Want(t, slices.DeleteFunc(slices.Clone(list), func(r *dissect.Record) bool { return r.Flow == 1 }), strings.Repeat("s2c COMM_MESSAGE\n", 6))
	if got, want := numbers(slices.DeleteFunc(list, func(r *dissect.Record) bool { return r.Flow == 2 })), "1 3 4 5 6 7 8"; got != want {
		t.Errorf("got lines %s, want %s", got, want)
	}
	if sum := out.Result.Summary; sum.Gaps != 1 || sum.LostBytes != 14 {
		t.Errorf("got %d bytes lost in %d gaps, want 14 in 1", sum.LostBytes, sum.Gaps)
	}
}

// Section 12, items 13 and 20, and what the client does not take over TCP.
func TestOddFrames(t *testing.T) {
	s := &scene.Scene{}
	c := opened(s)
	c.Send(fromS,
		scene.Frame(0x01, "\x35\x00\x01"), scene.AsFrame(scene.Ack(0x35, 1)), scene.Frame(0x05, "\x01"),
		scene.AsFrame(scene.Forge(7)), scene.Frame(0x00, "\x02ab"), scene.Frame(0x57, "\x01"), scene.Frame(0xff, ""))
	c.Send(fromC, scene.Frame(0x22, "\x00\x08"), scene.Frame(0x39, "zz"), scene.Frame(0x35, "\xff\xff\xff\xff"))
	c.Send(fromC, scene.Frame(0x0b, "\x00\x00\x00\x01\x00\x00\x00\x02"))
	c.Send(fromS, scene.Frame(0x0b, "\x00\x00\x00\x01"))
	out := s.Play(t, known)
	scene.Want(t, out.Frames(), `
		s2c D_IGNORE +control_on_tcp
		s2c D_ACK +control_on_tcp
		s2c unknown(0x05) +control_on_tcp +unknown_opcode rest=01
		s2c D_HANDSHAKE +control_on_tcp
		s2c diagnostic
		s2c unknown(0x57) +unknown_opcode rest=01
		s2c unknown(0xFF) +unknown_opcode
		c2s LOGIN_STATUS +unexpected_direction
		c2s WANT_UPDATES +trailing_bytes rest=7a7a
		c2s VIEWPOINT_INFO
		c2s PING_REQUEST
		s2c PING_REQUEST`)
	for _, l := range out.Result.Sessions[0].Tables() {
		if l.Sender == schema.Server && l.Table.Len() > 0 {
			t.Error("a handshake over TCP taught modes")
		}
	}
}

// Strings that lie, counts that lie: the field is bad, the next frame is fine.
// B32 and section 12, items 18 and 19.
func TestHostileBodies(t *testing.T) {
	s := &scene.Scene{}
	c := opened(s)
	c.Send(fromS, scene.Frame(0x23, "\xff\xffabc"), scene.Frame(0x23, "\x00\x00"), scene.Frame(0x23, "\x00\x02ab"),
		scene.Frame(0x15, "\x00\x00\x00\x01\xff\x00"), line(1))
	out := s.Play(t, known)
	scene.Want(t, out.Frames(), `
		s2c MOTD !malformed MOTD.text@5 rest=616263
		s2c MOTD +empty_string
		s2c MOTD +text_without_nul
		s2c DELETE_OBJECT !malformed DELETE_OBJECT.objects@8 rest=00
		s2c COMM_MESSAGE`)
}

// counting wraps a protocol and counts the frames that are cut and judged.
type counting struct {
	dissect.Protocol
	cuts, judged *int
}

type countingConversation struct {
	dissect.Conversation
	p counting
}

func (p counting) Open(s *dissect.Session) dissect.Conversation {
	return countingConversation{p.Protocol.Open(s), p}
}

func (c countingConversation) Cut(d dissect.Direction, data []byte) (schema.Frame, *wire.Error) {
	*c.p.cuts++
	return c.Conversation.Cut(d, data)
}

func (c countingConversation) Plausible(d dissect.Direction, frame []byte) dissect.Plausibility {
	*c.p.judged++
	return c.Conversation.Plausible(d, frame)
}

// B31: hunting for a boundary takes linear time, and ends.
func TestHuntingIsLinear(t *testing.T) {
	const segment = 1400
	total := 20 << 20
	if testing.Short() {
		total = 4 << 20
	}
	random := rand.New(rand.NewPCG(1, 2))
	payload := make([]byte, segment)
	var valid []byte
	for n := 0; len(valid) < segment; n++ {
		valid = append(valid, line(n)...)
	}
	sent := 0
	play := func(fill func([]byte) []byte) (*discardEvents, *dissect.Result, int, int) {
		// One connection, made as it is read, with every 20th segment missing.
		s := &scene.Scene{}
		c := opened(s)
		src := s.Source()
		sent = 0
		feed := sourceFunc(func(p *dissect.Packet) error {
			if err := src.Next(p); err == nil || sent >= total {
				return err
			}
			one := &scene.Scene{}
			c.Ends = one.Over(c.Ends)
			for k := 0; k < 2; k++ {
				data := string(fill(payload))
				if sent += segment; sent/segment%20 == 0 {
					c.Lose(fromS, data)
					continue
				}
				c.Send(fromS, data)
				break
			}
			err := one.Source().Next(p)
			p.Number = sent / segment
			p.Time = scene.Start.Add(time.Duration(sent/segment) * 5 * time.Millisecond)
			return err
		})
		var cuts, judged int
		o := known
		o.Protocols = []dissect.Protocol{counting{protocols.All[0], &cuts, &judged}}
		d := &discardEvents{}
		return d, playInto(t, d, feed, o), cuts, judged
	}
	t.Run("random payloads", func(t *testing.T) {
		d, r, cuts, judged := play(func(b []byte) []byte {
			for i := range b {
				b[i] = byte(random.Uint32())
			}
			return b
		})
		t.Logf("%d cuts, %d judged, %v", cuts, judged, d.events)
		if cuts > 4*total || judged > total {
			t.Errorf("got %d cuts and %d frames judged in %d bytes", cuts, judged, total)
		}
		if d.events["resync_failed"] != 1 {
			t.Errorf("got events %v, want that it gives up once", d.events)
		}
		if cuts > 4*(2<<20) {
			t.Errorf("got %d cuts, want none after it gave up", cuts)
		}
		seen := r.Summary.UndecodedBytes + d.raw + d.lost
		if seen != int64(sent) {
			t.Errorf("got %d bytes accounted for, want %d", seen, sent)
		}
	})
	t.Run("frames", func(t *testing.T) {
		at := 0
		d, _, cuts, _ := play(func(b []byte) []byte {
			for i := range b {
				b[i] = valid[at%len(valid)]
				at++
			}
			return b
		})
		if d.events["resync_failed"] > 0 || d.events["resync"] == 0 {
			t.Errorf("got events %v, want it to go on", d.events)
		}
		if cuts > total {
			t.Errorf("got %d cuts in %d bytes", cuts, total)
		}
	})
}

// discardEvents counts events by their code.
type discardEvents struct {
	events    map[string]int
	raw, lost int64
}

func (d *discardEvents) Write(r *dissect.Record) error {
	if d.events == nil {
		d.events = map[string]int{}
	}
	switch r.Type {
	case dissect.EventRecord:
		d.events[r.Code]++
	case dissect.FrameRecord:
		d.raw += int64(len(r.Raw) - len(r.Rest))
	case dissect.GapRecord:
		d.lost += r.Bytes
	}
	return nil
}

func (d *discardEvents) Flush() error { return nil }
