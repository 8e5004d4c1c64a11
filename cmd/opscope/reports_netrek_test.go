package main

import (
	"fmt"
	"strings"
	"testing"

	"opscope/dissect/scene"
)

// The same kinds of faults in a protocol whose packets have no length: packets put
// together by hand, from the facts of Netrek.
const (
	cpSocket   = "\x1b\x04\x0a\x00\x00\x00\x75\x2f"
	cpSpeed    = "\x02\x05\x00\x00"
	cpShield   = "\x0c\x01\x00\x00"
	cpBye      = "\x1d\x00\x00\x00"
	cpVerify   = "\x23\x02\x00\x00\x00\x00\x00\x00"
	spMask     = "\x13\x0f\x00\x00"
	spPStatus  = "\x14\x01\x02\x00"
	spKills    = "\x03\x01\x00\x00\x00\x00\x00\x64"
	spPlayer   = "\x04\x01\x40\x05\x00\x00\x27\x10\x00\x00\x27\x10"
	spUDPReply = "\x1c\x03\x00\x00\x00\x00\x1b\x58"
)

func spSequence(n int) string { return "\x1d\x08" + scene.BE16(n) }

// netrekEnds are endpoints of Netrek.
func netrekEnds(e ends) (client, server string) {
	return e.client, strings.Replace(e.server, ":2627", ":2592", 1)
}

// netrekUDP opens a session and goes to UDP.
func netrekUDP(s *scene.Scene, e ends) (*scene.Connection, *scene.Datagrams) {
	client, server := netrekEnds(e)
	c := s.TCP(client, server)
	c.Open()
	c.Send(fromClient, cpSocket, "\x23\x01\x00\x00"+scene.BE32(6000))
	c.Send(fromServer, "\x1c\x01\x00\x00"+scene.BE32(7000))
	at := func(end, port string) string { return end[:strings.LastIndex(end, ":")+1] + port }
	u := s.UDP(at(client, "6000"), at(server, "7000"))
	u.Send(fromClient, cpVerify)
	u.Send(fromServer, spUDPReply, spKills)
	return c, u
}

var netrekReports = []report{
	{"B01: a stream of packets without a length, joined mid-way", func(t *testing.T, e ends) {
		s := &scene.Scene{}
		c := s.TCP(netrekEnds(e))
		c.Send(fromServer, spPlayer[7:], spPlayer, spKills, spMask)
		c.Send(fromServer, spPlayer, spPStatus, spKills)
		out := show(t, s)
		if all := out.lines("record"); len(all) < 6 || !strings.Contains(strings.Join(all, " "), "SP_KILLS") {
			t.Errorf("got\n%s", strings.Join(out.lines(), "\n"))
		}
		out.says("joined mid-stream")
		out.counts("undecoded_bytes", 5)
	}},
	{"B04: the same endpoints again begin a session", func(t *testing.T, e ends) {
		s := &scene.Scene{}
		c := s.TCP(netrekEnds(e))
		c.Open()
		c.Send(fromClient, cpSocket)
		c.Next = [2]uint32{50000, 90000}
		c.Open()
		c.Send(fromClient, cpSocket)
		show(t, s).want("record session", `
			session 1 opened: syn
			c2s CP_SOCKET
			session 1 closed: port reused
			session 2 opened: syn
			c2s CP_SOCKET`)
	}},
	{"B25: all packets of a segment, B26: and those that come byte by byte", func(t *testing.T, e ends) {
		data := spMask + spPlayer + spPStatus + spKills + spPlayer
		for _, n := range []int{1, 3, 7, 100} {
			s := &scene.Scene{}
			c := s.TCP(netrekEnds(e))
			c.Open()
			c.Send(fromClient, cpSocket)
			c.Drip(fromServer, n, data)
			out := show(t, s)
			out.want("record", `
				c2s CP_SOCKET
				s2c SP_MASK
				s2c SP_PLAYER
				s2c SP_PSTATUS
				s2c SP_KILLS
				s2c SP_PLAYER`)
			if r := out.record(5); r["offset"] != 28.0 || r["size"] != 12.0 {
				t.Errorf("the last has %v bytes at %v", r["size"], r["offset"])
			}
		}
	}},
	{"B29: bytes of no packet are told, and the packets behind them found", func(t *testing.T, e ends) {
		for _, from := range []scene.Side{fromClient, fromServer} {
			s := &scene.Scene{}
			c := s.TCP(netrekEnds(e))
			c.Open()
			c.Send(fromClient, cpSocket)
			good, last := cpSpeed+cpShield+cpSpeed+cpShield, "CP_SHIELD"
			if from == fromServer {
				good, last = spMask+spPlayer+spPStatus+spKills+spPlayer+spPStatus, "SP_PSTATUS"
			}
			c.Send(from, good)
			c.Send(from, "\xff\xff\xff\xff", good)
			c.Send(from, good)
			out := show(t, s)
			all := out.lines("record")
			if !strings.HasSuffix(all[len(all)-1], last) {
				t.Errorf("the last is %s", all[len(all)-1])
			}
			out.counts("undecoded_bytes", 4)
			out.counts("errors.malformed", 1)
			out.says("resync")
		}
	}},
	{"B34: all packets of a datagram, and the bytes behind them", func(t *testing.T, e ends) {
		s := &scene.Scene{}
		_, u := netrekUDP(s, e)
		u.Send(fromServer, spSequence(1), spPlayer, spKills, "\xfe\xff")
		out := show(t, s)
		all := records(out.objects)
		all = all[len(all)-4:]
		for i, want := range []string{"s2c SP_SEQUENCE 1", "s2c SP_PLAYER", "s2c SP_KILLS", "s2c unknown(0xFE) !malformed ~feff"} {
			if got := lineOf(all[i]); strings.ReplaceAll(got, " +unknown_opcode", "") != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if at := []float64{0, 4, 16, 24}[i]; all[i]["offset"] != at {
				t.Errorf("%s is at %v", want, all[i]["offset"])
			}
		}
		out.counts("undecoded_bytes", 2)
	}},
	{"B38: a datagram in fragments, in another order", func(t *testing.T, e ends) {
		s := &scene.Scene{}
		_, u := netrekUDP(s, e)
		first := s.Len() + 1
		u.SendFragments(fromServer, 16, spSequence(1), spPlayer, spKills)
		s.Move(first)
		out := show(t, s)
		all := out.lines("record")
		if got := strings.Join(all[len(all)-3:], ", "); got != "s2c SP_SEQUENCE 1, s2c SP_PLAYER, s2c SP_KILLS" {
			t.Errorf("got %s", got)
		}
	}},
	{"B43: sequences are compared around their end", func(t *testing.T, e ends) {
		s := &scene.Scene{}
		_, u := netrekUDP(s, e)
		for _, n := range []int{20000, 40000, 60000, 65533, 65534, 65535, 0, 1, 65534, 2} {
			u.Send(fromServer, spSequence(n), spKills)
		}
		out := show(t, s)
		var got []string
		for _, r := range records(out.objects) {
			if r["message"] == "SP_SEQUENCE" {
				got = append(got, fmt.Sprint(has(r, "stale") || has(r, "duplicate") || has(r, "out_of_order")))
			}
		}
		if want := "false false false false false true false"; strings.Join(got[len(got)-7:], " ") != want {
			t.Errorf("late: %v, want %s\n%s", got, want, strings.Join(out.lines("record"), "\n"))
		}
	}},
	{"B44: datagrams that are too short do not end the flow", func(t *testing.T, e ends) {
		s := &scene.Scene{}
		_, u := netrekUDP(s, e)
		for _, d := range []string{"", "\x1d", "\x04\x01", "\xfe"} {
			u.Send(fromServer, d)
		}
		u.Send(fromServer, spSequence(1), spKills)
		out := show(t, s)
		all := out.lines("record")
		if n := len(all); all[n-1] != "s2c SP_KILLS" || n < 6 {
			t.Errorf("got\n%s", strings.Join(all, "\n"))
		}
		if n := strings.Count(strings.Join(out.lines("session"), " "), "opened"); n != 1 {
			t.Errorf("%d sessions", n)
		}
		out.counts("errors.malformed", 4)
	}},
	{"B70: what the snap length cut off is no loss", func(t *testing.T, e ends) {
		s := &scene.Scene{}
		client, server := netrekEnds(e)
		c := s.TCP(client, server)
		c.Open()
		c.Send(fromClient, cpSocket)
		s.Snap = 54 + 14
		if e.name == "IPv6" {
			s.Snap += 20
		}
		c.Send(fromServer, spMask, spPlayer, spKills)
		s.Snap = 0
		c.Send(fromServer, spKills, spPlayer, spMask)
		out := show(t, s)
		out.counts("gaps", 0)
		out.counts("lost_bytes", 0)
		out.counts("errors.truncated", 1)
		if all := out.lines("record"); all[len(all)-1] != "s2c SP_MASK" {
			t.Errorf("got\n%s", strings.Join(all, "\n"))
		}
	}},
}

func TestNetrekReports(t *testing.T) { hold(t, netrekReports) }
