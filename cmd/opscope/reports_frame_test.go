package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"opscope/dissect/scene"
)

// Framing on top of a stream.
var frameReports = []report{
	{"B25: all frames of a segment are shown, each with its bytes and packets", func(t *testing.T, e ends) {
		s, c := opened(e)
		c.Send(fromServer, chats(1, 5), chat(6)[:12]) // packet 4
		c.Send(fromServer, chat(6)[12:], chat(7))
		out := show(t, s)
		out.wantTexts("1 2 3 4 5 6 7")
		for n, want := range []string{"[4]", "[4]", "[4]", "[4]", "[4]", "[4 5]", "[5]"} {
			if r := out.record(n); fmt.Sprint(r["packets"]) != want || r["offset"] != float64(24*n) || r["size"] != 24.0 {
				t.Errorf("record %d: packets %v, %v bytes at %v", n+1, r["packets"], r["size"], r["offset"])
			}
		}
	}},
	{"B26: a frame that comes byte by byte is the same frame", func(t *testing.T, e ends) {
		s, c := opened(e)
		c.Drip(fromServer, 1, chats(1, 2))
		out := show(t, s)
		out.wantTexts("1 2")
		packets := out.record(0)["packets"].([]any)
		if len(packets) != 24 || packets[0] != 4.0 || packets[23] != 27.0 {
			t.Errorf("got packets %v", packets)
		}
	}},
	{"B28: the second frame of a segment goes on where it began", func(t *testing.T, e ends) {
		s, c := opened(e)
		c.Send(fromServer, chat(1), chat(2)[:5])
		c.Send(fromServer, chat(2)[5:], chat(3))
		out := show(t, s)
		out.wantTexts("1 2 3")
		if r := out.record(1); r["offset"] != 24.0 || fmt.Sprint(r["packets"]) != "[4 5]" {
			t.Errorf("got packets %v at %v", r["packets"], r["offset"])
		}
	}},
	{"B29: an impossible size is an error in its place, and later frames come back", func(t *testing.T, e ends) {
		for _, size := range []string{"\xff\xff\xff\xff", "\x00\x00", "\x00\x01\x02"} {
			s, c := opened(e)
			c.Drip(fromServer, 50, chats(1, 10)+size+chats(11, 20))
			out := show(t, s)
			out.wantTexts(numbersFrom(1, 20))
			r := out.record(10)
			fault, _ := r["error"].(map[string]any)
			// Bytes that may begin a frame are not shown, but counted.
			rest := r["rest"].(string)
			if fault == nil || fault["kind"] != "malformed" || rest == "" || !strings.HasPrefix(fmt.Sprintf("%x", size), rest) {
				t.Errorf("%x: got %s", size, lineOf(r))
			}
			out.says("(malformed)", fmt.Sprintf("resync: %d bytes passed over", len(size)))
			out.counts("undecoded_bytes", len(size))
		}
	}},
	{"B31: a stream of nothing but noise is left alone, with a note", func(t *testing.T, e ends) {
		s, c := opened(e)
		noise := strings.Repeat("\xff\xfe\xfd", 500)
		for n := 1; n <= 40; n++ {
			if n%20 == 0 {
				c.Lose(fromServer, noise)
			} else {
				c.Send(fromServer, noise)
			}
		}
		out := show(t, s, "--limit", "resync-bytes=20000")
		out.says("resync_failed", "what follows is only counted")
		out.counts("limits.resync-bytes", 1)
		shown := len(out.record(0)["rest"].(string)) / 2
		if got := out.summary["undecoded_bytes"]; got != float64(38*1500) {
			t.Errorf("%v bytes undecoded with %d shown, want %d", got, shown, 38*1500)
		}
	}},
	{"B32: a length that lies costs its field, and no memory", func(t *testing.T, e ends) {
		s, c := opened(e)
		c.Send(fromServer, scene.Frame(0x23, "\xff\xffabc"), scene.Frame(0x15, "\x00\x00\x00\x01\xff\x00"),
			scene.Frame(0x13, "\x01\x0a\x43\xff\xff"), chat(1))
		out := show(t, s)
		out.want("record", `
			s2c MOTD !malformed ~616263
			s2c DELETE_OBJECT !malformed ~00
			s2c HELLO !malformed
			s2c COMM_MESSAGE`)
		out.counts("errors.malformed", 3)
	}},
	{"B32: values and texts keep to their limits", func(t *testing.T, e ends) {
		s, c := opened(e)
		c.Send(fromServer, scene.Frame(0x23, scene.Text(strings.Repeat("x", 500))), scene.AsFrame(scene.Translation(4)), chat(1))
		out := show(t, s, "--limit", "text=100", "--limit", "values=50")
		out.wantTexts("1")
		out.says("want at most 100 bytes in a field, got 501", "want at most 50 values")
		out.counts("limits.text", 1)
		out.counts("limits.values", 1)
		if len(out.record(0)["rest"].(string)) != 2*501 {
			t.Errorf("got rest %v", out.record(0)["rest"])
		}
	}},
}

func TestFrameReports(t *testing.T) { hold(t, frameReports) }

// Datagrams, what makes them reliable, and what a session knows.
var datagramReports = []report{
	{"B34: all records of a datagram are shown, and the bytes behind them", func(t *testing.T, e ends) {
		s, u := greeted(e)
		u.Send(fromClient, counter, counter, counter, "\xfe\xff")
		out := show(t, s)
		out.want("record", `
			s2c HELLO
			s2c HELLO
			c2s ROOT
			c2s HELLO
			c2s INPUT_FEEDBACK
			c2s INPUT_FEEDBACK
			c2s INPUT_FEEDBACK
			c2s unknown(0xFE) +unknown_opcode ~ff`)
		for i := range 4 {
			if r := out.record(4 + i); r["offset"] != float64(5*i) || fmt.Sprint(r["packets"]) != "[6]" {
				t.Errorf("record %d of the datagram: packets %v, offset %v", i+1, r["packets"], r["offset"])
			}
		}
	}},
	{"B35: the layout follows the handshake, for each direction", func(t *testing.T, e ends) {
		s, u := greeted(e)
		u.Send(fromClient, "\x35\xff\xff\xff\xff") // raw, as no handshake was there
		u.Send(fromClient, scene.Original(1))
		u.Send(fromClient, scene.Viewpoint(1, -1)) // 4 bytes more
		u.Send(fromServer, "\x0b\x00\x00\x00\x07") // the other direction stays raw
		out := show(t, s)
		out.want("record", `
			s2c HELLO
			s2c HELLO
			c2s ROOT
			c2s HELLO
			c2s VIEWPOINT_INFO
			c2s D_HANDSHAKE
			c2s VIEWPOINT_INFO 1 +never_acknowledged
			s2c PING_REQUEST`)
		raw, sequenced := out.record(4), out.record(6)
		if raw["size"] != 5.0 || sequenced["size"] != 9.0 || !equal(raw["fields"], sequenced["fields"]) {
			t.Errorf("got %v and %v", raw["fields"], sequenced["fields"])
		}
		tables := good(t, "decode", "--tables", writeTemp(t, "modes.pcap", s.Pcap(1)))
		if !strings.Contains(tables, "0x35 VIEWPOINT_INFO") || !strings.Contains(tables, "learned in packet 7") {
			t.Errorf("the tables are\n%s", tables)
		}
	}},
	{"B37: the same bytes under a new sequence are told, with both packets", func(t *testing.T, e ends) {
		s, u := greeted(e)
		u.Send(fromClient, scene.Original(1))
		u.Send(fromClient, scene.Chat(1, "one"))
		u.Send(fromClient, scene.Chat(2, "two")) // packet 8
		u.Send(fromClient, scene.Chat(3, "three"))
		u.Send(fromClient, scene.Chat(4, "two")) // 10
		u.Send(fromServer, scene.Ack(0x20, 1))
		u.Send(fromServer, scene.Ack(0x20, 3))
		out := show(t, s)
		r := out.record(8)
		if !has(r, "same_payload_new_sequence") || fmt.Sprint(r["packets"]) != "[10]" {
			t.Errorf("got %s", lineOf(r))
		}
		out.says("same payload as packet 8, sequence 2")
		if n := strings.Count(strings.Join(out.lines("record"), "\n"), "COMM_MESSAGE_REQUEST"); n != 4 {
			t.Errorf("%d records, want that nothing is merged", n)
		}
	}},
	{"B38: fragments are joined by their place", func(t *testing.T, e ends) {
		for name, change := range map[string]func(s *scene.Scene, first int){
			"in another order": func(s *scene.Scene, first int) { s.Move(first + 1); s.Move(first); s.Move(first) },
			"one of them twice": func(s *scene.Scene, first int) {
				s.Packet(string(s.Packets()[first-1].Data))
				s.Move(first + 1)
				s.Move(first + 1)
			},
		} {
			s, u := greeted(e)
			first := s.Len() + 1
			u.SendFragments(fromClient, 80, scene.Original(1)) // 3 pieces
			change(s, first)
			out := show(t, s)
			out.want("record", "s2c HELLO\ns2c HELLO\nc2s ROOT\nc2s HELLO\nc2s D_HANDSHAKE")
			if r := out.record(4); len(r["packets"].([]any)) != 3 {
				t.Errorf("%s: got packets %v", name, r["packets"])
			}
			if name == "one of them twice" {
				out.counts("fragments.duplicates", 1)
			}
		}
	}},
	{"B38: a set that stays incomplete is told after its time", func(t *testing.T, e ends) {
		s, u := greeted(e)
		u.SendFragments(fromClient, 80, scene.Original(1))
		s.Drop(s.Len())
		s.Wait(31 * time.Second)
		u.Send(fromClient, counter)
		out := show(t, s)
		out.want("event", "event fragments_incomplete: 160 bytes of a fragmented datagram captured: expired")
		out.counts("fragments.incomplete", 1)
		if last := out.objects[len(out.objects)-1]; lineOf(last) != "c2s INPUT_FEEDBACK" {
			t.Errorf("the last is %s", lineOf(last))
		}
	}},
	{"B40: both directions number their fragments as they like", func(t *testing.T, e ends) {
		s, u := greeted(e)
		other := &scene.Scene{} // numbers from the start as well
		v := other.UDP(e.other, e.server)
		u.SendFragments(fromClient, 104, scene.Original(1))
		v.SendFragments(fromServer, 104, scene.Forge(7))
		list := other.Packets()
		s.Packet(string(list[0].Data))
		for _, p := range list[1:] {
			s.Packet(string(p.Data))
		}
		s.Move(7) // the client's second piece comes last
		out := show(t, s)
		out.want("record", "s2c HELLO\ns2c HELLO\nc2s ROOT\nc2s HELLO\ns2c D_HANDSHAKE\nc2s D_HANDSHAKE")
		out.counts("errors.malformed", 0)
	}},
	{"B41: a peer that starts again begins a session, with tables of its own", func(t *testing.T, e ends) {
		s, u := greeted(e)
		u.Send(fromClient, scene.Original(5000))
		u.Send(fromClient, scene.Viewpoint(1, 1))
		u.Send(fromClient, scene.Viewpoint(2, 2))
		s.Wait(time.Minute)
		u.Send(fromClient, scene.HelloThere, scene.EchoKey("KeyA"))
		u.Send(fromClient, scene.Handshake(7, nil, scene.Pair{Opcode: 0x40, Mode: 1}, scene.Pair{Opcode: 0x35, Mode: 0}))
		u.Send(fromClient, scene.Sequenced(0x40, 1, "\x00\x00\x00\x07"))
		u.Send(fromClient, "\x35\xff\xff\xff\xff")
		out := show(t, s)
		if n := strings.Count(strings.Join(out.lines("session"), "\n"), "opened"); n != 2 {
			t.Errorf("%d sessions:\n%s", n, strings.Join(out.lines(), "\n"))
		}
		last := records(out.objects)
		if a, b := last[len(last)-2], last[len(last)-1]; lineOf(a) != "c2s INPUT_FEEDBACK 1 +never_acknowledged" || lineOf(b) != "c2s VIEWPOINT_INFO" || b["session"] != 2.0 {
			t.Errorf("got %s and %s in session %v", lineOf(a), lineOf(b), b["session"])
		}
		tables := good(t, "decode", "--tables", writeTemp(t, "modes.pcap", s.Pcap(1)))
		if !strings.Contains(tables, "session 1 ") || !strings.Contains(tables, "session 2 ") {
			t.Errorf("the tables are\n%s", tables)
		}
	}},
	{"B43: acknowledgements of long ago, and of what was never sent, are told", func(t *testing.T, e ends) {
		s, u := greeted(e)
		u.Send(fromClient, scene.Original(1))
		const modulus = 65535
		seq := func(n int) int { return (n + modulus) % modulus }
		// Up to where the numbers wrap: a jump of the capture, then one after the other.
		for n := -70; n <= 5; n++ {
			u.Send(fromClient, scene.Viewpoint(seq(n), n))
			if n < 0 {
				u.Send(fromServer, scene.Ack(0x35, seq(n)))
			}
		}
		u.Send(fromServer, scene.Ack(0x35, 2))
		u.Send(fromServer, scene.Ack(0x35, seq(-400))) // of the round before
		u.Send(fromServer, scene.Ack(0x35, 900))       // not sent yet
		out := show(t, s)
		all := records(out.objects)
		stale, future := all[len(all)-2], all[len(all)-1]
		if !has(stale, "stale_ack") && !has(stale, "ack_before_capture") {
			t.Errorf("the stale one: %s", lineOf(stale))
		}
		if !has(future, "acked_unseen") {
			t.Errorf("the future one: %s", lineOf(future))
		}
		states := map[string]string{}
		for _, r := range all {
			if ack, ok := r["ack"].(map[string]any); ok && r["message"] == "VIEWPOINT_INFO" {
				states[fmt.Sprint(r["envelope"].(map[string]any)["seq"])] = ack["state"].(string)
			}
		}
		for n, want := range map[string]string{"0": "unacked", "1": "unacked", "2": "acked", "3": "unacked", "5": "unacked", "65530": "acked"} {
			if states[n] != want {
				t.Errorf("sequence %s is %q, want %s", n, states[n], want)
			}
		}
	}},
	{"B44: datagrams that are too short do not end the flow", func(t *testing.T, e ends) {
		s, u := greeted(e)
		u.Send(fromClient, scene.Original(1))
		u.Send(fromClient, "\x35\x00\x01")                 // shorter than its envelope
		u.Send(fromClient, "")                             // nothing
		u.Send(fromClient, "\xfe")                         // one byte
		u.Send(fromClient, strings.Repeat("\xfd\x01", 10)) // 20 bytes of something else
		u.Send(fromClient, counter)
		out := show(t, s)
		all := out.lines("record")
		if got := all[len(all)-1]; got != "c2s INPUT_FEEDBACK" {
			t.Errorf("the last is %s", got)
		}
		out.want("session", "session 1 opened: syn")
		for n, want := range []string{"~350001", "empty", "unknown(0xFE)", "unknown(0xFD) +unknown_opcode ~01fd01"} {
			if got := all[5+n]; !strings.Contains(got, want) {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}},
}

func TestDatagramReports(t *testing.T) { hold(t, datagramReports) }
