package dissect_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"opscope/dissect"
	"opscope/dissect/protocols"
	"opscope/dissect/scene"
	"opscope/schema"
	"opscope/schema/wire"
)

// defective is a protocol whose code panics in one of its methods, or in the midst of
// the record of a given opcode.
type defective struct {
	dissect.Protocol
	method string
	opcode byte
}

type defectiveConversation struct {
	dissect.Conversation
	p defective
	s *dissect.Session
}

func (p defective) fail(method string) {
	if p.method == method {
		var none []int
		_ = none[len(method)]
	}
}

func (p defective) Recognize(w *dissect.Scratch, t schema.Transport, data []byte) (schema.Sender, dissect.Recognition) {
	p.fail("Recognize")
	return p.Protocol.Recognize(w, t, data)
}

func (p defective) Open(s *dissect.Session) dissect.Conversation {
	p.fail("Open")
	return &defectiveConversation{p.Protocol.Open(s), p, s}
}

func (c *defectiveConversation) Cut(d dissect.Direction, data []byte) (schema.Frame, *wire.Error) {
	c.p.fail("Cut")
	return c.Conversation.Cut(d, data)
}

func (c *defectiveConversation) Fault(d dissect.Direction, data []byte) *wire.Error {
	c.p.fail("Fault")
	return c.Conversation.Fault(d, data)
}

func (c *defectiveConversation) Doubt(d dissect.Direction, frame, after []byte) *wire.Error {
	c.p.fail("Doubt")
	return c.Conversation.Doubt(d, frame, after)
}

func (c *defectiveConversation) Plausible(d dissect.Direction, frame []byte) dissect.Plausibility {
	c.p.fail("Plausible")
	return c.Conversation.Plausible(d, frame)
}

func (c *defectiveConversation) Claim(d *dissect.Datagram) dissect.Claim {
	c.p.fail("Claim")
	return c.Conversation.Claim(d)
}

func (c *defectiveConversation) Tables() []dissect.LearnedTable {
	c.p.fail("Tables")
	return c.Conversation.Tables()
}

func (c *defectiveConversation) Frame(f *dissect.Frame) {
	c.p.fail("Frame")
	if f.Data[2] == c.p.opcode {
		c.s.Record(&f.Carrier) // taken, and never pushed
		panic("in the midst of a frame")
	}
	c.Conversation.Frame(f)
}

// Datagram emits what stands in front of the record that it fails on.
func (c *defectiveConversation) Datagram(d *dissect.Datagram, final bool) bool {
	c.p.fail("Datagram")
	i := strings.IndexByte(string(d.Data), c.p.opcode)
	if c.p.opcode == 0 || i < 0 {
		return c.Conversation.Datagram(d, final)
	}
	head := *d
	head.Data, head.Length = d.Data[:i], i
	if i > 0 {
		c.Conversation.Datagram(&head, true)
	}
	c.s.Record(&d.Carrier)
	panic("in the midst of a datagram")
}

// guardedScene is some traffic of each kind.
func guardedScene() *scene.Scene {
	s := &scene.Scene{}
	c, u := opening(s)
	c.Send(fromS, line(1), scene.Frame(0x23, scene.Text("motd")), line(2))
	u.Send(fromC, feedback, "\x0c\x00\x00\x00\x09", feedback)
	u.Send(fromC, feedback)
	c.Send(fromS, garbage, lines(3, 6))
	c.Segment(fromS, scene.FIN|scene.ACK, "")
	c.Segment(fromC, scene.FIN|scene.ACK, "")
	return s
}

// A defect in a protocol's code costs the record in question, and names its place.
func TestADefectCostsOneRecord(t *testing.T) {
	o := known
	o.Guard = true
	o.Protocols = []dissect.Protocol{defective{Protocol: protocols.All[0], opcode: 0x23}}
	out := guardedScene().Play(t, o)
	scene.Want(t, out.Frames()[4:8], `
		s2c COMM_MESSAGE
		s2c defect +defect rest=000a2300056d6f746400
		s2c COMM_MESSAGE
		c2s INPUT_FEEDBACK`)
	r := out.Result
	if r.Summary.Defects != 1 || len(r.Defects) != 1 {
		t.Fatalf("got %d defects, %v", r.Summary.Defects, r.Defects)
	}
	d := r.Defects[0]
	if d.Packet != 6 || d.Protocol != "wulfram" || d.Text != "in the midst of a frame" || !strings.HasPrefix(d.Place, "dissect/guard_test.go:") {
		t.Errorf("got %+v", d)
	}
	if got := d.Error(); !strings.HasPrefix(got, "packet 6: defect in the dissector of wulfram at dissect/guard_test.go:") {
		t.Errorf("got %q", got)
	}
	wantNumbers(t, out, count(1, 6))
}

// In a datagram it costs what stands behind, and no byte is counted twice.
func TestADefectInADatagram(t *testing.T) {
	o := known
	o.Guard = true
	o.Protocols = []dissect.Protocol{defective{Protocol: protocols.All[0], opcode: 0x0c}}
	out := guardedScene().Play(t, o)
	var list []*dissect.Record
	for _, r := range out.Frames() {
		if r.Transport == schema.UDP {
			list = append(list, r)
		}
	}
	scene.Want(t, list[2:], `
		c2s INPUT_FEEDBACK
		c2s defect +defect rest=0c000000094000000007
		c2s INPUT_FEEDBACK`)
	if r := list[3]; r.Offset != int64(len(feedback)) || r.Size != 5+len(feedback) {
		t.Errorf("got %d bytes at %d", r.Size, r.Offset)
	}
}

// Wherever a protocol fails, the run ends as it should, and says so.
func TestADefectAnywhere(t *testing.T) {
	for _, method := range []string{"Recognize", "Open", "Cut", "Fault", "Doubt", "Plausible", "Claim", "Tables", "Frame", "Datagram"} {
		t.Run(method, func(t *testing.T) {
			o := known
			o.Guard = true
			o.Protocols = []dissect.Protocol{defective{Protocol: protocols.All[0], method: method}}
			s := guardedScene()
			s.Wait(time.Hour) // for what is over to be forgotten
			s.UDP("10.0.0.9:1", "10.0.0.8:2").Send(fromC, "whatever it is")
			out := &scene.Output{}
			r, err := dissect.NewPipeline(out, o).Run(context.Background(), s.Source())
			if err != nil || r.Summary.Packets != s.Len() {
				t.Fatalf("got %v after %d packets", err, r.Summary.Packets)
			}
			if len(r.Defects) == 0 || r.Summary.Defects == 0 {
				t.Error("nobody is told")
			}
			for _, x := range r.Sessions {
				x.Tables() // may fail, and does not stop anybody either
			}
		})
	}
}

// With the guard off, as in every other test, a defect stops the run.
func TestWithoutTheGuard(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	o := known
	o.Protocols = []dissect.Protocol{defective{Protocol: protocols.All[0], method: "Frame"}}
	guardedScene().Play(t, o)
}
