package scenario

import (
	"bytes"
	"io"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// cuts is how the segments of a scenario lie to its frames.
type cuts struct {
	frames int
	own    int // that fill a segment, which has nothing else
	shared int // the most frames that one segment has whole
	inside int // that begin in one segment and end in another
	inSize int // of these, cut within the four bytes of their size
}

// cutsOf looks at the segments of a scenario.
func cutsOf(t *testing.T, name string) (c cuts) {
	t.Helper()
	s, ok := Find(name)
	if !ok {
		t.Fatalf("there is no scenario %s", name)
	}
	n, err := s.run(io.Discard, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range n.streams {
		for _, r := range e.records {
			c.frames++
			cut := int64(0)
			for _, g := range e.taped {
				switch {
				case g.from == r.from && g.to == r.to:
					c.own++
				case g.from > r.from && g.from < r.to && cut == 0:
					cut = g.from - r.from
				}
			}
			if cut > 0 {
				c.inside++
			}
			if cut > 0 && cut < 4 {
				c.inSize++
			}
		}
		for _, g := range e.taped {
			whole := 0
			for _, r := range e.records {
				if r.from >= g.from && r.to <= g.to {
					whole++
				}
			}
			c.shared = max(c.shared, whole)
		}
	}
	return c
}

// TestFramesAndSegments proves that the scenarios about merged and split segments have
// what real captures never show (rule 4 of section 8 of the facts), and that others look
// like those.
func TestFramesAndSegments(t *testing.T) {
	if c := cutsOf(t, "lotr2-lobby"); c.own != c.frames || c.shared > 1 {
		t.Errorf("lotr2-lobby: %+v, want a segment for each frame", c)
	}
	if c := cutsOf(t, "lotr2-merged"); c.shared < 6 {
		t.Errorf("lotr2-merged: %+v, want a segment with two messages of three sends", c)
	}
	if c := cutsOf(t, "lotr2-split"); c.inside < c.frames/3 || c.inSize < 3 {
		t.Errorf("lotr2-split: %+v, want a third of the frames cut, and some within their sizes", c)
	}
}

// TestDiscoveryGoesToEverybody looks at the first packet: a question by broadcast, to all
// on the link.
func TestDiscoveryGoesToEverybody(t *testing.T) {
	s, _ := Find("lotr2-lobby")
	var capture bytes.Buffer
	r, err := s.Run(&capture, 1)
	if err != nil {
		t.Fatal(err)
	}
	file, err := pcapgo.NewNgReader(&capture, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	data, _, err := file.ReadPacketData()
	if err != nil {
		t.Fatal(err)
	}
	p := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.Default)
	ether, _ := p.LinkLayer().(*layers.Ethernet)
	ip, _ := p.NetworkLayer().(*layers.IPv4)
	if ether == nil || ip == nil || ether.DstMAC.String() != "ff:ff:ff:ff:ff:ff" || ip.DstIP.String() != "255.255.255.255" {
		t.Errorf("the first packet goes to %v", p)
	}
	if first := r.Sent[0]; first.Message != "EnumSessions" || first.Arrivals != 1 {
		t.Errorf("the first record is %s, which arrives %d times", first.Message, first.Arrivals)
	}
}
