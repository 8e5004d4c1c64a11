package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"opscope/dissect/scene"
)

// How streams start, end and are used again.
var connectionReports = []report{
	{"B01: a stream joined mid-way starts at once", func(t *testing.T, e ends) {
		for _, from := range []scene.Side{fromServer, fromClient} {
			s := &scene.Scene{}
			c := s.TCP(e.client, e.server)
			frames := []string{chat(1), chat(2)}
			if from == fromClient {
				frames = []string{scene.Frame(0x20, "\x00\x00\x00\x00"+scene.Text("a")), scene.Frame(0x20, "\x00\x00\x00\x00"+scene.Text("b"))}
			}
			c.Send(from, frames[0])
			c.Send(from, frames[1])
			out := show(t, s)
			if len(records(out.objects)) != 2 {
				t.Errorf("got\n%s", strings.Join(out.lines(), "\n"))
			}
			out.says("joined mid-stream", "joined_mid_stream")
		}
	}},
	{"B01: one that starts within a frame is resynchronised, and the bytes counted", func(t *testing.T, e ends) {
		s := &scene.Scene{}
		c := s.TCP(e.client, e.server)
		c.Send(fromServer, chat(1)[9:])
		for n := 2; n <= 6; n++ {
			c.Send(fromServer, chat(n))
		}
		out := show(t, s)
		out.wantTexts("2 3 4 5 6")
		out.says("resync: " + fmt.Sprint(len(chat(1))-9) + " bytes passed over")
		out.counts("undecoded_bytes", len(chat(1))-9)
		out.counts("resyncs", 1)
	}},
	{"B02: a refused connection closes at once", func(t *testing.T, e ends) {
		s := &scene.Scene{}
		c := s.TCP(e.client, e.server)
		c.Segment(fromClient, scene.SYN, "")
		c.SegmentAt(fromServer, scene.RST|scene.ACK, 0, "")
		out := show(t, s)
		out.want("event", "s2c event reset: by server")
		out.says("reset: by server")
	}},
	{"B02: a reset by one side ends both", func(t *testing.T, e ends) {
		for _, from := range []scene.Side{fromClient, fromServer} {
			s, c := opened(e)
			c.Send(fromServer, chat(1))
			c.Segment(from, scene.RST|scene.ACK, "")
			who := []string{"client", "server"}[from]
			show(t, s).want("event session", `
				session 1 opened: syn
				`+[]string{"c2s", "s2c"}[from]+` event reset: by `+who+`
				session 1 closed: reset by `+who)
		}
	}},
	{"B04: a new connection of the same endpoints is a new session", func(t *testing.T, e ends) {
		for name, again := range map[string]func(c *scene.Connection){
			"a higher number": func(c *scene.Connection) { c.Next = [2]uint32{50000, 90000} },
			"a lower number":  func(c *scene.Connection) { c.Next = [2]uint32{4, 5} },
			"after a one-sided reset": func(c *scene.Connection) {
				c.Segment(fromClient, scene.RST, "")
				c.Next = [2]uint32{4999, 9}
			},
		} {
			s := &scene.Scene{}
			c := s.TCP(e.client, e.server)
			c.Next = [2]uint32{9999, 70000}
			c.Open()
			c.Send(fromServer, chat(1))
			again(c)
			c.Open()
			c.Send(fromServer, chat(2))
			out := show(t, s)
			out.wantTexts("1 2")
			if a, b := out.record(0), out.record(1); a["session"] != 1.0 || b["session"] != 2.0 || b["flow"] != 2.0 || b["offset"] != 0.0 {
				t.Errorf("%s: got\n%s", name, strings.Join(out.lines(), "\n"))
			}
			if name != "after a one-sided reset" {
				out.says("closed", "port reused")
			}
			out.counts("gaps", 0)
		}
	}},
	{"B05: a SYN sent again splits nothing, and is counted", func(t *testing.T, e ends) {
		s := &scene.Scene{}
		c := s.TCP(e.client, e.server)
		c.Segment(fromClient, scene.SYN, "")
		c.Segment(fromServer, scene.SYN|scene.ACK, "")
		c.SegmentAt(fromClient, scene.SYN, 1000, "")
		c.SegmentAt(fromServer, scene.SYN|scene.ACK, 5000, "")
		c.Segment(fromClient, scene.ACK, "")
		c.Send(fromServer, chat(1))
		out := show(t, s)
		out.want("", "session 1 opened: syn\ns2c COMM_MESSAGE")
		out.counts("segments.retransmitted", 2)
	}},
	{"B07: a SYN that comes late belongs to its session", func(t *testing.T, e ends) {
		for _, monotone := range []bool{false, true} {
			s, c := opened(e)
			c.Send(fromServer, chat(1))
			c.Segment(fromServer, scene.FIN|scene.ACK, "")
			c.Segment(fromClient, scene.FIN|scene.ACK, "")
			s.Move(1)
			if monotone {
				list := s.Packets()
				for i := range list {
					list[i].Time = scene.Start.Add(time.Duration(i) * time.Millisecond)
				}
			}
			out := show(t, s)
			out.wantTexts("1")
			if n := strings.Count(out.text, "opened"); n != 1 {
				t.Errorf("%d sessions, monotone %v\n%s", n, monotone, out.text)
			}
		}
	}},
	{"B08: a FIN counts at its sequence number", func(t *testing.T, e ends) {
		s, c := opened(e)
		at := c.Next[fromServer]
		first, second := chat(1), chat(2)
		c.SegmentAt(fromServer, scene.FIN|scene.ACK, at+uint32(len(first)), second)
		c.SegmentAt(fromServer, scene.ACK, at, first)
		out := show(t, s)
		out.want("", `
			session 1 opened: syn
			s2c COMM_MESSAGE
			s2c COMM_MESSAGE
			s2c event closed: half-closed by server`)
		out.counts("gaps", 0)
	}},
	{"B08: a half-closed connection goes on the other way", func(t *testing.T, e ends) {
		s, c := opened(e)
		c.Segment(fromClient, scene.FIN|scene.ACK, scene.Frame(0x20, "\x00\x00\x00\x00"+scene.Text("bye")))
		for n := 1; n <= 60; n++ {
			s.Wait(time.Second)
			c.Send(fromServer, chat(n))
			c.Segment(fromClient, scene.ACK, "")
		}
		c.Segment(fromServer, scene.FIN|scene.ACK, "")
		out := show(t, s)
		out.wantTexts(numbersFrom(1, 60))
		out.want("event", "c2s event closed: half-closed by client\ns2c event closed: by server")
		out.says("half-closed by client", "closed: by server")
	}},
	{"B10: a reset after a FIN of the same side ends both", func(t *testing.T, e ends) {
		s, c := opened(e)
		c.Send(fromServer, chat(1))
		c.Segment(fromClient, scene.FIN|scene.ACK, "")
		c.Segment(fromClient, scene.RST, "")
		show(t, s).want("event session", `
			session 1 opened: syn
			c2s event closed: half-closed by client
			c2s event reset: by client
			session 1 closed: reset by client`)
	}},
	{"B11: a quiet direction is still open", func(t *testing.T, e ends) {
		s, c := opened(e)
		ping := scene.Frame(0x20, "\x00\x00\x00\x00"+scene.Text("here"))
		c.Send(fromClient, ping)
		for n := 1; n < 300; n++ {
			s.Wait(time.Second)
			c.Send(fromServer, chat(n))
		}
		c.Send(fromClient, ping)
		out := show(t, s)
		out.wantTexts(numbersFrom(1, 299))
		if n := len(records(out.objects)); n != 301 {
			t.Errorf("%d records, want 301", n)
		}
		out.want("event session", "session 1 opened: syn")
	}},
}

func TestConnectionReports(t *testing.T) { hold(t, connectionReports) }

// Sequence numbers, overlaps and gaps.
var streamReports = []report{
	{"B13: a retransmission across the wrap brings its new bytes once", func(t *testing.T, e ends) {
		s := &scene.Scene{}
		c := s.TCP(e.client, e.server)
		eight, four := scene.Frame(0x23, "\x00\x03ab\x00"), scene.Frame(0x57, "\x07")
		c.Next[fromServer] = 0xfffffffb
		c.Open()
		c.SegmentAt(fromServer, scene.ACK, 0xfffffffc, eight)
		c.SegmentAt(fromServer, scene.ACK, 0xfffffffc, eight+four)
		out := show(t, s)
		out.want("record", "s2c MOTD\ns2c unknown(0x57) +unknown_opcode ~07")
		if r := out.record(1); r["offset"] != 8.0 || r["size"] != 4.0 {
			t.Errorf("got %v bytes at %v", r["size"], r["offset"])
		}
		out.counts("undecoded_bytes", 1)
	}},
	{"B13: a hole across the wrap is as long as it is", func(t *testing.T, e ends) {
		s := &scene.Scene{}
		c := s.TCP(e.client, e.server)
		c.Next[fromServer] = 0xfffffffe - uint32(len(chat(1))) - 1
		c.Open()
		c.Send(fromServer, chat(1)) // ends at 0xfffffffe
		c.Lose(fromServer, "sixbyt")
		c.Send(fromServer, chats(2, 5))
		out := show(t, s)
		out.wantTexts("1 2 3 4 5")
		out.want("gap", "s2c gap 6 not_captured")
		out.counts("lost_bytes", 6)
	}},
	{"B14: segments after the wrap stay behind those before it", func(t *testing.T, e ends) {
		s := &scene.Scene{}
		c := s.TCP(e.client, e.server)
		c.Next[fromServer] = 0xfffff000
		c.Open()
		var all strings.Builder
		n := 0
		for all.Len() < 64<<10 {
			n++
			all.WriteString(chat(n))
		}
		before := s.Len()
		c.Drip(fromServer, 1400, all.String())
		list := s.Packets()[before:]
		list[20].Data, list[21].Data = list[21].Data, list[20].Data
		list[20].Length, list[21].Length = len(list[20].Data), len(list[21].Data)
		out := show(t, s)
		out.wantTexts(numbersFrom(1, n))
		out.counts("gaps", 0)
		out.counts("segments.out_of_order", 1)
	}},
	{"B16: keep-alive probes with garbage change nothing", func(t *testing.T, e ends) {
		s, c := opened(e)
		c.Send(fromServer, chat(1))
		c.Segment(fromClient, scene.ACK, "")
		for range 3 {
			c.SegmentAt(fromServer, scene.ACK, c.Next[fromServer]-1, "\x00")
		}
		c.Send(fromServer, chat(2))
		out := show(t, s)
		out.want("", "session 1 opened: syn\ns2c COMM_MESSAGE\ns2c COMM_MESSAGE")
		out.counts("segments.keep_alives", 3)
		out.counts("segments.retransmitted", 0)
		out.counts("conflicts", 0)
	}},
	{"B17: copies are counted and bring nothing", func(t *testing.T, e ends) {
		s, c := opened(e)
		at := c.Next[fromServer]
		for range 3 {
			c.SegmentAt(fromServer, scene.ACK, at, chat(1))
		}
		c.SegmentAt(fromServer, scene.ACK, at+uint32(len(chat(1)))-1, "")
		out := show(t, s)
		out.wantTexts("1")
		out.counts("segments.retransmitted", 2)
		out.counts("segments.keep_alives", 1)
	}},
	{"B19: a retransmission longer or shorter than the original brings what is new", func(t *testing.T, e ends) {
		s, c := opened(e)
		at, data := c.Next[fromServer], chats(1, 2) // 48 bytes
		part := func(from, to int) { c.SegmentAt(fromServer, scene.ACK, at+uint32(from), data[from:to]) }
		part(0, 16)
		part(8, 24)
		part(0, 48)
		part(40, 44)
		out := show(t, s)
		out.wantTexts("1 2")
		if r := out.record(1); r["offset"] != 24.0 {
			t.Errorf("got the second at %v", r["offset"])
		}
		out.counts("segments.retransmitted", 3)
		out.counts("conflicts", 0)
		out.counts("gaps", 0)
	}},
	{"B20: a segment far ahead is set aside, and the stream goes on", func(t *testing.T, e ends) {
		s, c := opened(e)
		c.Send(fromServer, chat(1))
		c.SegmentAt(fromServer, scene.ACK, c.Next[fromServer]+0x7fff0000, "x")
		c.Send(fromServer, chat(2))
		out := show(t, s)
		out.wantTexts("1 2")
		out.counts("gaps", 0)
		out.says("out_of_window")
	}},
	{"B22: a hole that never fills is told, and what is behind it shown", func(t *testing.T, e ends) {
		s, c := opened(e)
		c.Send(fromServer, chat(1))
		c.Lose(fromServer, chat(2))
		total := 1000
		for n := 3; n <= total; n++ {
			s.Wait(600 * time.Second / 1000) // over ten minutes
			c.Send(fromServer, chat(n))
		}
		out := show(t, s)
		out.wantTexts("1 " + numbersFrom(3, total))
		out.want("gap", fmt.Sprintf("s2c gap %d not_captured", len(chat(2))))
		out.says(fmt.Sprintf("gap: %d bytes not captured between packets 4 and 5", len(chat(2))))
		if peak := out.summary["peak_waiting_bytes"].(float64); peak == 0 || peak > 4096 {
			t.Errorf("%v bytes waited, want those of some 2 s", peak)
		}
	}},
	{"B22: so it is when too much waits", func(t *testing.T, e ends) {
		s, c := opened(e)
		c.Send(fromServer, chat(1))
		c.Lose(fromServer, chat(2))
		c.Send(fromServer, chats(3, 100))
		c.Drip(fromServer, 1000, chats(101, 400))
		for limit, want := range map[string]int{"stream-bytes=4000": 1, "stream-segments=2": 1, "total-bytes=4000": 1} {
			out := show(t, s, "--limit", limit)
			out.wantTexts("1 " + numbersFrom(3, 400))
			out.want("gap", fmt.Sprintf("s2c gap %d memory_limit", len(chat(2))))
			name, _, _ := strings.Cut(limit, "=")
			out.counts("limits."+name, want)
			out.counts("evictions", 1)
		}
	}},
	{"B23: gaps are where bytes are missing, and nowhere else", func(t *testing.T, e ends) {
		s := &scene.Scene{}
		a, b := s.TCP(e.client, e.server), s.TCP(e.other, e.server)
		a.Open()
		a.Send(fromServer, chat(1))
		a.Lose(fromServer, chat(2))
		a.Send(fromServer, chat(3)[:5])
		s.Wait(3 * time.Second)
		a.Send(fromServer, chat(3)[5:], chats(4, 9))
		b.Open()
		for n := 1; n < 9; n++ {
			b.Send(fromServer, chat(n)[:7])
			b.Send(fromServer, chat(n)[7:])
		}
		a.Send(fromServer, chats(10, 12))
		out := show(t, s)
		out.want("gap", fmt.Sprintf("s2c gap %d not_captured", len(chat(2))))
		out.counts("gaps", 1)
		out.counts("lost_bytes", len(chat(2)))
	}},
}

func TestStreamReports(t *testing.T) { hold(t, streamReports) }

// watched is a writer that tells what it has got so far.
type watched struct {
	sync.Mutex
	text strings.Builder
	more chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	w.Lock()
	defer w.Unlock()
	w.text.Write(p)
	select {
	case w.more <- struct{}{}:
	default:
	}
	return len(p), nil
}

// await waits until some words have been written.
func (w *watched) await(t *testing.T, words string) {
	t.Helper()
	deadline := time.After(hang)
	for {
		w.Lock()
		found := strings.Contains(w.text.String(), words)
		w.Unlock()
		if found {
			return
		}
		select {
		case <-w.more:
		case <-deadline:
			t.Fatalf("%q does not come", words)
		}
	}
}

// B01: what a joined stream brings is shown while the capture is still being read.
func TestJoinedStreamIsShownAtOnce(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		s := &scene.Scene{}
		c := s.TCP(versions[0].client, versions[0].server)
		c.Send(fromServer, chat(1))
		c.Send(fromServer, chat(2))
		r, w := io.Pipe()
		out := &watched{more: make(chan struct{}, 1)}
		ended := make(chan int)
		go func() {
			ended <- run(t.Context(), []string{"decode", "-T", format, "--width", "-1", "-"}, streams{r, out, io.Discard})
		}()
		if _, err := w.Write(s.Pcap(1)); err != nil {
			t.Fatal(err)
		}
		out.await(t, "line 2")
		w.Close()
		if code := <-ended; code != exitDone {
			t.Errorf("exit code %d", code)
		}
	}
}
