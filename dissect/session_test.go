package dissect_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"opscope/dissect"
	"opscope/dissect/netrek"
	"opscope/dissect/protocols"
	"opscope/dissect/scene"
	"opscope/schema"
)

// greeting is what a server says first: its UDP port and a key.
func greeting(c *scene.Connection, port int, key string) {
	c.Open()
	c.Send(fromS, scene.AsFrame(scene.HelloUDP(port)), scene.AsFrame(scene.HelloKey(key)))
}

const feedback = "\x40\x00\x00\x00\x07"

// sessions returns the session of each record with a message, in their order.
func sessions(out *scene.Output, message string) (list []int) {
	for _, r := range out.Named(message) {
		list = append(list, r.Session)
	}
	return list
}

// Section 12, item 15: several clients of one host, told apart by the key.
func TestDatagramsFindTheirSessionByKey(t *testing.T) {
	for _, hold := range []time.Duration{0, dissect.DefaultHold} {
		for _, order := range [][2]int{{0, 1}, {1, 0}} {
			for _, late := range []bool{false, true} {
				t.Run(fmt.Sprintf("hold %v, order %v, key late %v", hold, order, late), func(t *testing.T) {
					s := &scene.Scene{}
					greeting(s.TCP("10.0.0.2:50001", server), 2627, "KeyA")
					greeting(s.TCP("10.0.0.2:50002", server), 2627, "KeyB")
					for _, i := range order {
						u := s.UDP([]string{"10.0.0.2:60001", "10.0.0.2:60002"}[i], server)
						key := scene.EchoKey([]string{"KeyA", "KeyB"}[i])
						if late {
							u.Send(fromC, scene.HelloThere)
							u.Send(fromC, key)
						} else {
							u.Send(fromC, scene.HelloThere, key)
						}
						u.Send(fromC, feedback)
					}
					o := known
					o.Hold = hold
					out := s.Play(t, o)
					if got, want := sessions(out, "INPUT_FEEDBACK"), []int{order[0] + 1, order[1] + 1}; !slices.Equal(got, want) {
						t.Errorf("got sessions %v, want %v\n%s", got, want, out)
					}
					if hold > 0 {
						if got, want := sessions(out, "ROOT"), []int{order[0] + 1, order[1] + 1}; !slices.Equal(got, want) {
							t.Errorf("got ROOT in %v, want %v", got, want)
						}
					}
					if len(out.Result.Sessions) != 2 {
						t.Errorf("got %d sessions\n%s", len(out.Result.Sessions), out)
					}
				})
			}
		}
	}
}

func TestDatagramsFindTheirSessionByAddress(t *testing.T) {
	s := &scene.Scene{}
	greeting(s.TCP("10.0.0.2:50001", server), 2627, "KeyA")
	greeting(s.TCP("10.0.0.3:50001", server), 2627, "KeyB")
	s.UDP("10.0.0.3:60001", server).Send(fromC, feedback)
	s.UDP("10.0.0.2:60001", server).Send(fromC, feedback)
	out := s.Play(t, known)
	if got := sessions(out, "INPUT_FEEDBACK"); !slices.Equal(got, []int{2, 1}) {
		t.Errorf("got sessions %v, want 2 1\n%s", got, out)
	}
	if f := out.Named("INPUT_FEEDBACK")[0]; f.Direction != dissect.ClientToServer || len(f.Notes) > 0 {
		t.Errorf("got %s", scene.Line(f))
	}
}

// Nothing tells two clients of one host apart: one is taken in the end.
func TestDatagramsThatDoNotSayWhose(t *testing.T) {
	s := &scene.Scene{}
	greeting(s.TCP("10.0.0.2:50001", server), 2627, "KeyA")
	greeting(s.TCP("10.0.0.2:50002", server), 2627, "KeyB")
	u := s.UDP("10.0.0.2:60001", server)
	for range 5 {
		u.Send(fromC, feedback)
		s.Wait(time.Second)
	}
	out := s.Play(t, known)
	if got := sessions(out, "INPUT_FEEDBACK"); !slices.Equal(got, []int{2, 2, 2, 2, 2}) {
		t.Errorf("got sessions %v\n%s", got, out)
	}
}

// Datagrams that wait for a key stay with the only session that they can belong to
// when its connection ends before the key comes.
func TestDatagramsStayWhenTheirConnectionEnds(t *testing.T) {
	s := &scene.Scene{}
	greeting(s.TCP("10.0.0.2:50001", server), 2627, "KeyA")
	c := s.TCP("10.0.0.2:50002", server)
	greeting(c, 2627, "KeyB")
	s.UDP("10.0.0.2:60001", server).Send(fromC, scene.HelloThere, scene.EchoKey("KeyA"))
	u := s.UDP("10.0.0.2:60002", server)
	u.Send(fromC, scene.HelloThere)
	c.Segment(fromS, scene.FIN|scene.ACK, "")
	c.Segment(fromC, scene.FIN|scene.ACK, "")
	s.Wait(3 * time.Second)
	u.Send(fromC, feedback)
	o := known
	o.Hold = dissect.DefaultHold
	out := s.Play(t, o)
	if got := append(sessions(out, "ROOT"), sessions(out, "INPUT_FEEDBACK")...); !slices.Equal(got, []int{1, 2, 2}) {
		t.Errorf("got sessions %v, want 1 2 2\n%s", got, out)
	}
}

// A client whose session began before the capture sits behind the same address: it
// is taken for the one whose session is known, until that one shows its key.
func TestDatagramsMakeRoomForTheOwner(t *testing.T) {
	s := &scene.Scene{}
	greeting(s.TCP("10.0.0.2:50001", server), 2627, "KeyA")
	former, owner := s.UDP("10.0.0.2:60002", server), s.UDP("10.0.0.2:60001", server)
	former.Send(fromC, feedback)
	owner.Send(fromC, scene.HelloThere, scene.EchoKey("KeyA"))
	for range 2 {
		former.Send(fromC, feedback)
		owner.Send(fromC, feedback)
	}
	out := s.Play(t, known)
	if got := sessions(out, "INPUT_FEEDBACK"); !slices.Equal(got, []int{1, 2, 1, 2, 1}) {
		t.Errorf("got sessions %v\n%s", got, out)
	}
	if got := out.Result.Sessions; len(got) != 2 || !got[1].Joined {
		t.Errorf("want a second session, joined\n%s", out)
	}
}

// The port of HELLO 1 is nobody's but this server's.
func TestUDPPortFromHello(t *testing.T) {
	s := &scene.Scene{}
	greeting(s.TCP(client, server), 9999, "KeyA")
	u := s.UDP("10.0.0.2:60001", "10.0.0.1:9999")
	u.Send(fromC, feedback)
	u.Send(fromS, "\x4d")
	s.UDP("10.0.0.2:60001", "10.0.0.9:9999").Send(fromC, feedback) // another's
	out := s.Play(t, known)
	scene.Want(t, out.Frames(), `
		s2c HELLO
		s2c HELLO
		c2s INPUT_FEEDBACK
		s2c IDENTIFIED_UDP`)
	if got := out.Result.Summary.OtherFlows; got != 1 {
		t.Errorf("got %d flows of no known protocol, want 1", got)
	}
}

// B83: direction comes from the role.
func TestRolesOnLoopback(t *testing.T) {
	t.Run("ephemeral port, opened", func(t *testing.T) {
		s := &scene.Scene{}
		c := s.TCP("127.0.0.1:50111", "127.0.0.1:2627")
		greeting(c, 2627, "KeyA")
		u := s.UDP("127.0.0.1:50112", "127.0.0.1:2627")
		u.Send(fromC, scene.HelloThere, scene.EchoKey("KeyA"))
		u.Send(fromS, "\x4d")
		out := s.Play(t, known)
		scene.Want(t, out.Frames(), "s2c HELLO\ns2c HELLO\nc2s ROOT\nc2s HELLO\ns2c IDENTIFIED_UDP")
	})
	t.Run("a client on a port below the server's", func(t *testing.T) {
		s := &scene.Scene{}
		c := s.TCP("127.0.0.1:1024", "127.0.0.1:2627")
		greeting(c, 2627, "KeyA")
		scene.Want(t, s.Play(t, known).Frames(), "s2c HELLO\ns2c HELLO")
	})
	t.Run("equal ports on two addresses", func(t *testing.T) {
		s := &scene.Scene{}
		c := s.TCP("127.0.0.2:2627", "127.0.0.1:2627")
		greeting(c, 2627, "KeyA")
		u := s.UDP("127.0.0.2:2627", "127.0.0.1:2627")
		u.Send(fromC, scene.HelloThere, scene.EchoKey("KeyA"))
		u.Send(fromS, "\x4d")
		out := s.Play(t, known)
		scene.Want(t, out.Frames(), "s2c HELLO\ns2c HELLO\nc2s ROOT\nc2s HELLO\ns2c IDENTIFIED_UDP")
	})
	t.Run("equal ports, joined, UDP only", func(t *testing.T) {
		s := &scene.Scene{}
		u := s.UDP("127.0.0.2:2627", "127.0.0.1:2627")
		u.Send(fromS, "\x0b\x00\x00\x00\x07") // either side may send it
		u.Send(fromC, feedback)
		u.Send(fromS, "\x4d")
		out := s.Play(t, known)
		if got := out.Frames(); got[0].Direction != dissect.UnknownDirection || !strings.Contains(scene.Line(got[0]), "+role_guessed") {
			t.Errorf("got %s for what either side may send", scene.Line(got[0]))
		}
		scene.Want(t, out.Frames()[1:], "c2s INPUT_FEEDBACK\ns2c IDENTIFIED_UDP")
		if got := out.Result.Sessions[0]; got.Client.String() != "127.0.0.2:2627" {
			t.Errorf("got client %v", got.Client)
		}
	})
	t.Run("ports that contradict the roles", func(t *testing.T) {
		s := &scene.Scene{}
		u := s.UDP("10.0.0.2:2627", "10.0.0.1:50000") // the server is on the odd port
		u.Send(fromC, feedback)
		u.Send(fromS, "\x4d")
		scene.Want(t, s.Play(t, known).Frames(), "c2s INPUT_FEEDBACK\ns2c IDENTIFIED_UDP")
	})
}

// -d and --protocol.
func TestPortsGivenByTheUser(t *testing.T) {
	build := func() *scene.Scene {
		s := &scene.Scene{}
		u := s.UDP("10.0.0.2:60001", "10.0.0.1:7777")
		u.Send(fromC, feedback)
		u.Send(fromS, "\x4d")
		c := s.TCP("10.0.0.2:60002", "10.0.0.1:7778")
		c.Open()
		c.Send(fromS, line(1))
		return s
	}
	t.Run("nothing given", func(t *testing.T) {
		out := build().Play(t, known)
		if len(out.Records) > 0 || out.Result.Summary.OtherFlows != 2 {
			t.Errorf("got %d other flows and\n%s", out.Result.Summary.OtherFlows, out)
		}
	})
	t.Run("a port", func(t *testing.T) {
		o := known
		o.Assigned = []dissect.Assignment{{Transport: schema.UDP, Port: 7777, Protocol: protocols.All[0]}}
		out := build().Play(t, o)
		scene.Want(t, out.Frames(), "c2s INPUT_FEEDBACK\ns2c IDENTIFIED_UDP")
		if got := out.Result.Summary.OtherFlows; got != 1 {
			t.Errorf("got %d other flows, want 1", got)
		}
	})
	t.Run("a port of another protocol's tunnel", func(t *testing.T) { // B62
		s := &scene.Scene{}
		s.UDP("10.0.0.2:60001", "10.0.0.1:4789").Send(fromC, "\x08"+scene.Text("Hello There"))
		o := known
		o.Assigned = []dissect.Assignment{{Transport: schema.UDP, Port: 4789, Protocol: protocols.All[0]}}
		scene.Want(t, s.Play(t, o).Frames(), "c2s ROOT")
	})
	t.Run("every flow", func(t *testing.T) {
		o := known
		o.Only = protocols.All[0]
		out := build().Play(t, o)
		scene.Want(t, out.Frames(), "c2s INPUT_FEEDBACK\ns2c IDENTIFIED_UDP\ns2c COMM_MESSAGE")
	})
}

func TestUnknownPortsAreRecognisedByContent(t *testing.T) {
	s := &scene.Scene{}
	c := s.TCP("10.0.0.2:50111", "10.0.0.1:7777")
	greeting(c, 7778, "KeyA")
	u := s.UDP("10.0.0.2:50112", "10.0.0.1:7778")
	u.Send(fromC, scene.HelloThere, scene.EchoKey("KeyA"))
	alone := s.UDP("10.0.0.3:50112", "10.0.0.9:7779")
	alone.Send(fromC, scene.HelloThere)
	alone.Send(fromC, feedback)
	web := s.TCP("10.0.0.2:50113", "10.0.0.1:80")
	web.Open()
	for range 20 {
		web.Send(fromC, "GET / HTTP/1.0\r\n\r\n")
	}
	out := s.Play(t, known)
	scene.Want(t, out.Frames(), `
		s2c HELLO
		s2c HELLO
		c2s ROOT
		c2s HELLO
		c2s ROOT
		c2s INPUT_FEEDBACK`)
	if got := sessions(out, "ROOT"); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("got sessions %v", got)
	}
	if sum := out.Result.Summary; sum.OtherFlows != 1 || sum.Records["wulfram"] != 6 {
		t.Errorf("got %d other flows, %v records", sum.OtherFlows, sum.Records)
	}
}

// A port is a guess: a session that begins as another protocol's do is that one's, unless
// the user says otherwise.
func TestAPortOfAnotherProtocol(t *testing.T) {
	build := func(client, server string) *scene.Scene {
		s := &scene.Scene{}
		greeting(s.TCP(client, server), 7778, "KeyA")
		return s
	}
	for _, ends := range [][2]string{{"10.0.0.2:50111", "10.0.0.1:5000"}, {"10.0.0.2:2592", "10.0.0.1:7777"}} {
		out := build(ends[0], ends[1]).Play(t, known)
		scene.Want(t, out.Records, "session 1 opened: syn, on a port of netrek\ns2c HELLO\ns2c HELLO")
	}
	o := known
	o.Assigned = []dissect.Assignment{{Transport: schema.TCP, Port: 5000, Protocol: netrek.Protocol{}}}
	out := build("10.0.0.2:50111", "10.0.0.1:5000").Play(t, o)
	if n := out.Result.Summary.Records["netrek"]; n == 0 || len(out.Named("HELLO")) > 0 {
		t.Errorf("got\n%s", out)
	}
}

// The first frame is cut by a segment, and the flow is on no known port.
func TestRecognisedAcrossSegments(t *testing.T) {
	s := &scene.Scene{}
	c := s.TCP("10.0.0.2:50111", "10.0.0.1:7777")
	c.Open()
	c.Drip(fromS, 4, scene.AsFrame(scene.HelloUDP(7777)), line(1))
	out := s.Play(t, known)
	scene.Want(t, out.Records, "session 1 opened: syn\ns2c HELLO\ns2c COMM_MESSAGE")
}

// UDP first: a capture that begins in mid-session.
func TestConnectionJoinsTheSessionOfItsDatagrams(t *testing.T) {
	s := &scene.Scene{}
	u, c := s.UDP("10.0.0.2:50112", server), s.TCP(client, server)
	u.Send(fromC, feedback)
	c.Send(fromS, line(1), line(2))
	c.Send(fromC, scene.Frame(0x39, ""), scene.Frame(0x39, ""))
	u.Send(fromC, feedback)
	out := s.Play(t, known)
	for _, r := range out.Frames() {
		if r.Session != 1 {
			t.Errorf("got session %d for %s", r.Session, scene.Line(r))
		}
	}
	if len(out.Result.Sessions) != 1 || len(out.Frames()) != 6 {
		t.Errorf("got %d sessions\n%s", len(out.Result.Sessions), out)
	}
}

// A client that reconnects, and keeps its UDP port: the key moves the datagrams.
func TestDatagramsMoveToTheNewSession(t *testing.T) {
	s := &scene.Scene{}
	u := s.UDP("10.0.0.2:50112", server)
	u.Send(fromC, feedback)
	greeting(s.TCP(client, server), 2627, "KeyA")
	u.Send(fromC, scene.HelloThere, scene.EchoKey("KeyA"))
	u.Send(fromC, feedback)
	c := s.TCP("10.0.0.2:50115", server)
	greeting(c, 2627, "KeyB")
	u.Send(fromC, scene.HelloThere, scene.EchoKey("KeyB"))
	u.Send(fromC, feedback)
	out := s.Play(t, known)
	if got := sessions(out, "INPUT_FEEDBACK"); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("got sessions %v, want 1 2 3\n%s", got, out)
	}
}

// A session ends with its connection, and late datagrams still belong to it.
func TestSessionEndsWithItsConnection(t *testing.T) {
	s := &scene.Scene{}
	c := s.TCP(client, server)
	greeting(c, 2627, "KeyA")
	u := s.UDP("10.0.0.2:50112", server)
	u.Send(fromC, scene.HelloThere, scene.EchoKey("KeyA"))
	c.Segment(fromS, scene.FIN|scene.ACK, "")
	c.Segment(fromC, scene.FIN|scene.ACK, "")
	u.Send(fromC, feedback)
	c2 := s.TCP("10.0.0.2:50115", server)
	greeting(c2, 2627, "KeyB")
	s.UDP("10.0.0.2:50116", server).Send(fromC, feedback)
	out := s.Play(t, known)
	scene.Want(t, out.Records, `
		session 1 opened: syn
		s2c HELLO
		s2c HELLO
		c2s ROOT
		c2s HELLO
		s2c event closed
		c2s event closed
		session 1 closed: closed
		c2s INPUT_FEEDBACK
		session 2 opened: syn
		s2c HELLO
		s2c HELLO
		c2s INPUT_FEEDBACK`)
	if got := sessions(out, "INPUT_FEEDBACK"); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("got sessions %v", got)
	}
}

// The same over IPv6, VLAN tags and fragments.
func TestOtherWaysToCarryASession(t *testing.T) {
	play := func(t *testing.T, s *scene.Scene, client, server string, send func(u *scene.Datagrams, from scene.Side, records ...string)) *scene.Output {
		c, u := s.TCP(client+":50111", server+":2627"), s.UDP(client+":50112", server+":2627")
		greeting(c, 2627, "KeyA")
		send(u, fromC, scene.HelloThere, scene.EchoKey("KeyA"))
		send(u, fromC, scene.Original(1), scene.Viewpoint(1, -1), feedback)
		out := s.Play(t, known)
		scene.Want(t, out.Records, `
			session 1 opened: syn
			s2c HELLO
			s2c HELLO
			c2s ROOT
			c2s HELLO
			c2s D_HANDSHAKE
			c2s VIEWPOINT_INFO 1 unacked +never_acknowledged
			c2s INPUT_FEEDBACK`)
		return out
	}
	whole := (*scene.Datagrams).Send
	pieces := func(u *scene.Datagrams, from scene.Side, records ...string) { u.SendFragments(from, 104, records...) }
	t.Run("IPv6", func(t *testing.T) { play(t, &scene.Scene{}, "[2001:db8::2]", "[2001:db8::1]", whole) })
	t.Run("VLAN", func(t *testing.T) { play(t, &scene.Scene{Around: scene.VLAN}, "10.0.0.2", "10.0.0.1", whole) })
	t.Run("VXLAN", func(t *testing.T) { play(t, &scene.Scene{Around: scene.VXLAN(7)}, "10.0.0.2", "10.0.0.1", whole) })
	for name, a := range map[string][2]string{"IPv4": {"10.0.0.2", "10.0.0.1"}, "IPv6": {"[2001:db8::2]", "[2001:db8::1]"}} {
		t.Run("fragments of "+name, func(t *testing.T) {
			out := play(t, &scene.Scene{}, a[0], a[1], pieces)
			// ROOT and HELLO fit into packet 5; then come 8+200 bytes in packets 6 and 7,
			// of 104 bytes each, and 9+5 in packet 8.
			want := map[string][]int{"ROOT": {5}, "D_HANDSHAKE": {6, 7}, "VIEWPOINT_INFO": {8}, "INPUT_FEEDBACK": {8}}
			for message, packets := range want {
				if got := out.Named(message)[0].Packets; !slices.Equal(got, packets) {
					t.Errorf("%s: got packets %v, want %v", message, got, packets)
				}
			}
		})
	}
}

// B61: equal inner addresses in two networks are two flows.
func TestTunnelsKeepFlowsApart(t *testing.T) {
	s := &scene.Scene{}
	for network := 1; network <= 2; network++ {
		s.Around = scene.VXLAN(network)
		c := s.TCP(client, server)
		greeting(c, 2627, "Key"+fmt.Sprint(network))
	}
	out := s.Play(t, known)
	if len(out.Result.Sessions) != 2 || len(out.Named("HELLO")) != 4 {
		t.Errorf("got %d sessions\n%s", len(out.Result.Sessions), out)
	}
}

// A datagram of which a piece is missing.
func TestFragmentsThatStayIncomplete(t *testing.T) {
	s := &scene.Scene{}
	u := s.UDP("10.0.0.2:50112", server)
	u.Send(fromC, feedback)
	u.SendFragments(fromC, 104, scene.Original(1))
	s.Move(3)
	lost := &scene.Scene{}
	for _, p := range s.Packets()[:2] {
		lost.Packet(string(p.Data))
	}
	out := lost.Play(t, known)
	last := out.Records[len(out.Records)-1]
	if scene.Line(last) != "event fragments_incomplete" || !slices.Equal(last.Packets, []int{2}) {
		t.Errorf("got\n%s", out)
	}
}

// B55: what an ICMP message quotes is no traffic.
func TestPortUnreachable(t *testing.T) {
	s := &scene.Scene{}
	u := s.UDP("10.0.0.2:50112", server)
	u.Send(fromC, feedback)
	u.Unreachable(fromC, feedback)
	s.UDP("10.0.0.7:1", "10.0.0.8:2").Unreachable(fromC, feedback) // of no flow of ours
	out := s.Play(t, known)
	scene.Want(t, out.Records, `
		session 1 opened: first packet
		c2s INPUT_FEEDBACK
		c2s event icmp_error`)
	if e := out.Records[2]; !strings.Contains(e.Text, "port unreachable") || e.Session != 1 {
		t.Errorf("got %q in session %d", e.Text, e.Session)
	}
	if got := out.Result.Summary.OtherFlows; got != 0 {
		t.Errorf("got %d other flows: the quote counts as traffic", got)
	}
}

func TestBadPackets(t *testing.T) {
	s := &scene.Scene{}
	s.IP("\x45\x00\x00\x14\x00")
	s.UDP("10.0.0.2:50112", server).Send(fromC, feedback)
	out := s.Play(t, known)
	scene.Want(t, out.Records, `
		event bad_packet
		session 1 opened: first packet
		c2s INPUT_FEEDBACK`)
	if e := out.Records[0]; e.Err == nil || e.Packets[0] != 1 || e.Text == "" {
		t.Errorf("got %v, %q", e.Err, e.Text)
	}
	if got := out.Result.Summary.Errors; got[0]+got[1]+got[2] != 1 {
		t.Errorf("got %v errors, want one", got)
	}
}

// B71: the order of the file is kept, and no timer fires early.
func TestTimeGoesBack(t *testing.T) {
	s := &scene.Scene{}
	c := s.TCP(client, server)
	greeting(c, 2627, "KeyA")
	u := s.UDP("10.0.0.2:50112", server)
	u.Send(fromC, scene.HelloThere, scene.EchoKey("KeyA"))
	u.Send(fromC, scene.Original(1))
	u.Send(fromC, scene.Viewpoint(1, -1))
	s.Wait(-time.Hour)
	u.Send(fromC, feedback)
	s.Wait(time.Hour)
	u.Send(fromS, scene.Ack(0x35, 1))
	c.Send(fromS, line(1))
	c.Send(fromS, line(2))
	s.Swap(s.Len(), s.Len()-1)
	out := s.Play(t, known)
	scene.Want(t, out.Frames()[5:], `
		c2s VIEWPOINT_INFO 1 acked
		c2s INPUT_FEEDBACK
		s2c D_ACK
		s2c COMM_MESSAGE
		s2c COMM_MESSAGE`)
	if got := out.Result.Summary.Backward; got != 2 {
		t.Errorf("got %d packets with an earlier time, want 2", got)
	}
}

// Each file has its own state and its own numbers.
func TestSeveralFiles(t *testing.T) {
	s := &scene.Scene{}
	c := s.TCP(client, server)
	greeting(c, 2627, "KeyA")
	out := &scene.Output{}
	p := dissect.NewPipeline(out, known)
	for range 2 {
		r, err := p.Run(t.Context(), s.Source())
		if err != nil || len(r.Sessions) != 1 || r.Summary.Records["wulfram"] != 2 {
			t.Errorf("got %v, %v", r, err)
		}
	}
	scene.Want(t, out.Records, strings.Repeat("session 1 opened: syn\ns2c HELLO\ns2c HELLO\n", 2))
	for i, r := range out.Frames() {
		if r.File != i/2 || r.N != i%2+1 {
			t.Errorf("record %d: got file %d, number %d", i, r.File, r.N)
		}
	}
}
