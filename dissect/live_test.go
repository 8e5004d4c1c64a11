package dissect_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"opscope/dissect"
	"opscope/dissect/scene"
	"opscope/schema"
)

// silent is a source that, after its packets, has nothing until something is over.
type silent struct {
	packets []dissect.Packet
	over    func() bool
	asked   int // in vain
}

func (s *silent) Next(p *dissect.Packet) error {
	if len(s.packets) > 0 {
		*p, s.packets = s.packets[0], s.packets[1:]
		return nil
	}
	if s.over() {
		return io.EOF
	}
	s.asked++
	return dissect.ErrIdle
}

// B76, B79: on a silent link what is held comes out when its time is over, and what the
// capture dropped is told in its place.
func TestSilentLink(t *testing.T) {
	s := &scene.Scene{}
	_, u := opening(s)
	u.Send(fromC, scene.Viewpoint(1, -1)) // waits for its acknowledgement, which never comes
	packets := s.Packets()
	last := &packets[len(packets)-1]
	last.Dropped = 3
	var out scene.Output
	src := &silent{packets: packets}
	late := time.Now().Add(5 * time.Minute) // only a hang takes so long
	src.over = func() bool { return len(out.Frames()) == 5 || time.Now().After(late) }
	o := known
	o.Hold, o.Live = 50*time.Millisecond, true
	if _, err := dissect.NewPipeline(&out, o).Run(context.Background(), src); err != nil {
		t.Fatal(err)
	}
	if src.asked == 0 || time.Now().After(late) {
		t.Errorf("%d records while the link was open, asked %d times", len(out.Frames()), src.asked)
	}
	if !slices.ContainsFunc(out.Records, func(r *dissect.Record) bool {
		return r.Type == dissect.EventRecord && r.Code == "capture_dropped" && strings.HasPrefix(r.Text, "3 packets")
	}) {
		t.Errorf("nobody tells of drops in\n%v", &out)
	}
}

// Schemas are loaded anew for the sessions that open from then on, unless they are wrong.
func TestReload(t *testing.T) {
	for _, good := range []bool{true, false} {
		s := &scene.Scene{}
		s.UDP(client, server).Send(fromC, scene.Viewpoint(1, -1))
		first := s.Len()
		s.UDP("10.0.0.9:50111", server).Send(fromC, scene.Viewpoint(1, -1))
		src := &silent{packets: s.Packets()[:first]}
		loaded, prepared := 0, 0
		o := known
		o.Schema = func(p *schema.Protocol) (*schema.Protocol, error) { loaded++; return p, nil }
		o.Anew = func() bool { prepared++; return good }
		var p *dissect.Pipeline
		before := 0
		src.over = func() bool {
			switch src.asked {
			case 0:
				before = loaded
				p.Reload()
			case 1:
				src.packets, src.asked = s.Packets()[first:], 2
			default:
				return src.asked > 3
			}
			return false
		}
		var out scene.Output
		p = dissect.NewPipeline(&out, o)
		if _, err := p.Run(context.Background(), src); err != nil {
			t.Fatal(err)
		}
		if again := loaded > before; prepared != 1 || again != good || len(out.Frames()) != 2 {
			t.Errorf("good %v: prepared %d times, loaded anew %v, %d records", good, prepared, again, len(out.Frames()))
		}
	}
}
