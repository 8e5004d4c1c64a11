package scenario

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
)

var (
	toyServer = netip.MustParseAddrPort("10.0.0.1:2627")
	toyClient = netip.MustParseAddrPort("10.0.0.2:50111")
)

// echo is a toy server: it returns what it gets.
type echo struct{ got []byte }

func (e *echo) Deadline() time.Time { return time.Time{} }

func (e *echo) Handle(_ time.Time, in machine.Input) []machine.Output {
	switch in.Kind {
	case machine.Stream:
		e.got = append(e.got, in.Data...)
		return []machine.Output{{Kind: machine.SendStream, Conn: in.Conn, Data: bytes.Clone(in.Data)}}
	case machine.Datagram:
		return []machine.Output{{Kind: machine.SendDatagram, Peer: in.Peer, Data: bytes.Clone(in.Data)}}
	}
	return nil
}

// talker is a toy client: each tick it sends a frame and a datagram, and in the end
// it closes.
type talker struct {
	left   int
	open   bool
	closed bool
	ended  bool // the connection is over
	next   time.Time
	wrote  []byte
	read   []byte
	sent   []string
	heard  map[string]int
	size   func(i int) int
}

func (c *talker) Deadline() time.Time { return c.next }

func (c *talker) Handle(now time.Time, in machine.Input) (out []machine.Output) {
	switch in.Kind {
	case machine.Opened:
		c.open = true
		c.next = now
	case machine.Stream:
		c.read = append(c.read, in.Data...)
	case machine.Datagram:
		c.heard[string(in.Data)]++
	case machine.Closed:
		c.ended = true
	case machine.Tick:
		if !c.open {
			c.next = time.Time{}
			return []machine.Output{{Kind: machine.Dial, Conn: 7, Peer: toyServer}}
		}
		if c.left == 0 {
			return c.finish(now)
		}
		c.left--
		c.next = now.Add(50 * time.Millisecond)
		data := bytes.Repeat([]byte{byte(c.left)}, c.size(c.left))
		c.wrote = append(c.wrote, data...)
		c.sent = append(c.sent, string(data))
		record := []machine.Record{{ID: c.left + 1, Message: "TOY", Size: len(data), Seq: -1, Mode: -1, Length: -1}}
		return []machine.Output{
			{Kind: machine.SendStream, Conn: 7, Data: data, Records: record},
			{Kind: machine.SendDatagram, Peer: toyServer, Data: data, Records: record},
		}
	}
	return nil
}

// finish closes, and some time later is done.
func (c *talker) finish(now time.Time) []machine.Output {
	if !c.closed {
		c.closed = true
		c.next = now.Add(15 * time.Second)
		return []machine.Output{{Kind: machine.Close, Conn: 7}}
	}
	c.next = time.Time{}
	return []machine.Output{{Kind: machine.Done}}
}

// toy is a scenario of the two.
func toy(f Faults) (*Scenario, *talker, *echo) {
	client := &talker{left: 40, heard: map[string]int{}, size: func(i int) int { return 1 + i*90 }}
	server := &echo{}
	return &Scenario{
		Name: "toy", Duration: time.Minute, Faults: f,
		Cast: func(uint64) []Role {
			return []Role{
				{Name: "server", Addr: toyServer, Server: true, Build: func(machine.Observer) machine.Machine { return server }},
				{Name: "client", Addr: toyClient, Build: func(machine.Observer) machine.Machine { return client }},
			}
		},
	}, client, server
}

var everything = Path{Loss: 0.1, Duplicate: 0.1, Reorder: 0.1, Delay: 50 * time.Millisecond}

// troubles are faults of all kinds.
var troubles = map[string]Faults{
	"none":        {},
	"loss before": {Before: Path{Loss: 0.15}},
	"loss behind": {Behind: Path{Loss: 0.15}},
	"order":       {Before: Path{Reorder: 0.2, Delay: 30 * time.Millisecond}, Behind: Path{Reorder: 0.2, Delay: 30 * time.Millisecond}},
	"copies":      {Before: Path{Duplicate: 0.2}, Behind: Path{Duplicate: 0.2}},
	"cuts":        {Stream: Shape{Split: 0.5, Merge: 120 * time.Millisecond, Wrap: true}},
	"everything": {
		Before: everything, Behind: everything,
		Stream: Shape{Split: 0.3, Merge: 60 * time.Millisecond, Overlap: 0.8, Wrap: true},
	},
	"capture trouble": {Capture: Capture{Miss: 0.2, Snap: 200}},
}

func TestStreamsArriveWhatever(t *testing.T) {
	for name, f := range troubles {
		for seed := range uint64(5) {
			t.Run(fmt.Sprint(name, ", seed ", seed), func(t *testing.T) {
				s, client, server := toy(f)
				if _, err := s.Run(io.Discard, seed); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(server.got, client.wrote) {
					t.Errorf("the server got %d bytes of %d", len(server.got), len(client.wrote))
				}
				if !bytes.Equal(client.read, client.wrote) {
					t.Errorf("the client got %d bytes back of %d", len(client.read), len(client.wrote))
				}
				if !client.ended {
					t.Error("the client was not told that the connection is over")
				}
			})
		}
	}
}

func TestSameSeedSameBytes(t *testing.T) {
	for name, f := range troubles {
		run := func(seed uint64) []byte {
			var buf bytes.Buffer
			s, _, _ := toy(f)
			if _, err := s.Run(&buf, seed); err != nil {
				t.Fatal(err)
			}
			return buf.Bytes()
		}
		if !bytes.Equal(run(1), run(1)) {
			t.Errorf("%s: two runs differ", name)
		}
		if bytes.Equal(run(1), run(2)) {
			t.Errorf("%s: two seeds make the same", name)
		}
	}
}

// packetsOf reads a capture back with gopacket.
func packetsOf(t *testing.T, capture []byte) []gopacket.Packet {
	t.Helper()
	r, err := pcapgo.NewNgReader(bytes.NewReader(capture), pcapgo.NgReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var list []gopacket.Packet
	for {
		data, info, err := r.ReadPacketData()
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		p := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.Default)
		p.Metadata().CaptureInfo = info
		list = append(list, p)
	}
}

// TestTapeHoldsTheStreams puts the streams together from the capture alone, by
// sequence numbers, the first copy of each byte.
func TestTapeHoldsTheStreams(t *testing.T) {
	for name, f := range troubles {
		if f.Capture != (Capture{}) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			var buf bytes.Buffer
			s, client, _ := toy(f)
			if _, err := s.Run(&buf, 3); err != nil {
				t.Fatal(err)
			}
			streams := map[string][]byte{}
			first := map[string]uint32{}
			opened := map[string]bool{}
			fins := 0
			for _, p := range packetsOf(t, buf.Bytes()) {
				tcp, ok := p.Layer(layers.LayerTypeTCP).(*layers.TCP)
				if !ok {
					continue
				}
				side := p.NetworkLayer().NetworkFlow().Src().String()
				if tcp.SYN {
					first[side], opened[side] = tcp.Seq+1, true
				}
				if tcp.FIN {
					fins++
				}
				at := int(int32(tcp.Seq - first[side]))
				if n := at + len(tcp.Payload); len(tcp.Payload) > 0 && n > len(streams[side]) {
					streams[side] = append(streams[side], make([]byte, n-len(streams[side]))...)
				}
				if len(tcp.Payload) > 0 {
					copy(streams[side][at:], tcp.Payload)
				}
			}
			for _, side := range []string{"10.0.0.1", "10.0.0.2"} {
				if !opened[side] || !bytes.Equal(streams[side], client.wrote) {
					t.Errorf("%s sent %d bytes on the tape, want %d", side, len(streams[side]), len(client.wrote))
				}
			}
			if fins < 2 {
				t.Errorf("%d FIN", fins)
			}
		})
	}
}

func TestDatagramFaultsAreCounted(t *testing.T) {
	s, client, _ := toy(troubles["everything"])
	var buf bytes.Buffer
	r, err := s.Run(&buf, 5)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, f := range r.Faults {
		seen[string(f.Place)+" "+f.What]++
	}
	for _, want := range []string{
		"before the tape lost", "before the tape duplicated", "before the tape delayed",
		"behind the tape lost", "behind the tape duplicated", "behind the tape delayed",
	} {
		if seen[want] == 0 {
			t.Errorf("no packet %s", want)
		}
	}
	if len(client.heard) == len(client.sent) {
		t.Error("every datagram came back, whatever was lost")
	}
	if len(packetsOf(t, buf.Bytes())) != r.Wire {
		t.Errorf("%d packets captured of %d on the wire", len(packetsOf(t, buf.Bytes())), r.Wire)
	}
}

// TestTruthIsOnTheTape looks for the bytes of every record in the packets that the
// truth names.
func TestTruthIsOnTheTape(t *testing.T) {
	all := troubles["everything"]
	all.Capture = Capture{Miss: 0.1, Snap: 1000}
	for name, f := range map[string]Faults{"none": {}, "everything": all, "late": {Capture: Capture{Start: time.Second}}} {
		t.Run(name, func(t *testing.T) {
			var buf bytes.Buffer
			s, _, _ := toy(f)
			r, err := s.Run(&buf, 9)
			if err != nil {
				t.Fatal(err)
			}
			packets := packetsOf(t, buf.Bytes())
			counts := map[Extent]int{}
			for _, x := range r.Sent {
				counts[x.Captured]++
				checkOnTape(t, packets, &x)
			}
			if counts[Whole] == 0 || f.Capture != (Capture{}) && counts[None] == 0 {
				t.Errorf("extents %v", counts)
			}
		})
	}
}

// checkOnTape counts the bytes of a toy's record, which are all the same, in its
// packets.
func checkOnTape(t *testing.T, packets []gopacket.Packet, x *Sent) {
	t.Helper()
	if (x.Captured == None) != (len(x.Packets) == 0) {
		t.Errorf("%s %d: captured %s, packets %v", x.Transport, x.ID, x.Captured, x.Packets)
	}
	n := 0
	for _, number := range x.Packets {
		data := packets[number-1].Data()
		n += bytes.Count(data, []byte{byte(x.ID - 1)})
	}
	if x.Captured == Whole && n < x.Size {
		t.Errorf("%s %d: %d of %d bytes in packets %v", x.Transport, x.ID, n, x.Size, x.Packets)
	}
	if x.Transport == schema.UDP && x.Captured == Whole && len(x.Packets) != (x.Size+8+1479)/1480 {
		t.Errorf("datagram of %d bytes in packets %v", x.Size, x.Packets)
	}
}

func TestRefusedConnection(t *testing.T) {
	s, client, _ := toy(Faults{})
	cast := s.Cast
	s.Cast = func(seed uint64) []Role {
		roles := cast(seed)
		roles[0].Addr = netip.MustParseAddrPort("10.0.0.1:7777")
		return roles
	}
	var buf bytes.Buffer
	if _, err := s.Run(&buf, 1); err != nil {
		t.Fatal(err)
	}
	packets := packetsOf(t, buf.Bytes())
	if client.open || len(packets) != 2 {
		t.Fatalf("open %v, %d packets", client.open, len(packets))
	}
	rst := packets[1].Layer(layers.LayerTypeTCP).(*layers.TCP)
	syn := packets[0].Layer(layers.LayerTypeTCP).(*layers.TCP)
	if !rst.RST || rst.Ack != syn.Seq+1 {
		t.Errorf("answer %+v", rst)
	}
	if mss := binary.BigEndian.Uint16(syn.Options[0].OptionData); mss != 1460 {
		t.Errorf("MSS %d", mss)
	}
}
