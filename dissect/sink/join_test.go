package sink_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"opscope/dissect"
	"opscope/dissect/sink"
	"opscope/schema"
)

// counted is a statistic as this test uses it.
type counted struct {
	write   func(*dissect.Record) error
	traffic func(*dissect.Traffic)
	summary func(*dissect.Summary)
	report  func() interface{ WriteJSON(io.Writer) error }
}

// TestJoin counts captures one after the other, and each by itself and joined: both tell the
// same, also where there are more sessions, flows, streams and messages than are listed.
func TestJoin(t *testing.T) {
	const files = 3
	makers := map[string]func() (any, counted){
		"flows": func() (any, counted) {
			f := sink.NewFlows(dissect.Privacy{})
			return f, counted{f.Write, f.Traffic, f.AddSummary, func() interface{ WriteJSON(io.Writer) error } { return f.Report() }}
		},
		"acks": func() (any, counted) {
			a := sink.NewAcks(func(string) *schema.Protocol { return nil })
			return a, counted{a.Write, nil, nil, func() interface{ WriteJSON(io.Writer) error } { return a.Report() }}
		},
		"opcodes": func() (any, counted) {
			o := &sink.Opcodes{}
			return o, counted{o.Write, nil, o.AddSpan, func() interface{ WriteJSON(io.Writer) error } { return o.Report() }}
		},
	}
	joins := map[string]func(a, b any){
		"flows":   func(a, b any) { a.(*sink.Flows).Join(b.(*sink.Flows)) },
		"acks":    func(a, b any) { a.(*sink.Acks).Join(b.(*sink.Acks)) },
		"opcodes": func(a, b any) { a.(*sink.Opcodes).Join(b.(*sink.Opcodes)) },
	}
	for name, make := range makers {
		for _, sessions := range []int{3, 400, 1500} {
			t.Run(name+" of "+strconv.Itoa(sessions)+" sessions", func(t *testing.T) {
				_, whole := make()
				joined, result := make()
				for file := range files {
					part, one := make()
					happen(t, file, sessions, whole)
					happen(t, file, sessions, one)
					joins[name](joined, part)
				}
				var want, got bytes.Buffer
				if err := whole.report().WriteJSON(&want); err != nil {
					t.Fatal(err)
				}
				if err := result.report().WriteJSON(&got); err != nil {
					t.Fatal(err)
				}
				if got.String() != want.String() {
					t.Errorf("got  %.3000s\nwant %.3000s", got.String(), want.String())
				}
				all := bytes.Contains(want.Bytes(), []byte(`"unlisted":0`)) || bytes.Contains(want.Bytes(), []byte(`"unlisted_flows":0`))
				if most := map[string]int{"flows": 3, "acks": 3, "opcodes": 400}[name]; all != (sessions <= most) {
					t.Errorf("all are listed: %v, so that this tests nothing else", all)
				}
			})
		}
	}
}

// happen has a statistic count a file, the same each time: records of many sessions, their
// flows and messages in no order.
func happen(t *testing.T, file, sessions int, c counted) {
	chance := rand.New(rand.NewPCG(uint64(file), 7))
	start := time.Unix(int64(1000*file), 0).UTC()
	ends := func(session int) (netip.AddrPort, netip.AddrPort) {
		a := netip.AddrFrom4([4]byte{10, 0, byte(session >> 8), byte(session)})
		return netip.AddrPortFrom(a, 50000), netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, 0, 1}), 2627)
	}
	for n := range 6 * sessions {
		session := 1 + chance.IntN(sessions)
		kind := chance.IntN(3 * sessions)
		r := &dissect.Record{
			File: file, N: n + 1, Session: session, Flow: 3*session + chance.IntN(3), Direction: dissect.ClientToServer, Transport: schema.UDP,
			Protocol: "wulfram", Message: "M" + strconv.Itoa(kind), Opcode: kind, Envelope: dissect.NoEnvelope, Size: 5 + chance.IntN(100),
			Stream: chance.IntN(3),
			Time:   start.Add(time.Duration(n) * time.Millisecond),
		}
		r.Src, r.Dst = ends(session)
		switch chance.IntN(4) {
		case 0:
			r.Ack = dissect.Ack{State: dissect.AckAcked, By: 7, RTT: time.Duration(chance.IntN(1e9))}
		case 1:
			r.Ack = dissect.Ack{State: dissect.AckUnacked}
			r.Notes = []dissect.Note{{Code: "retransmission"}, {Code: "sequence_gap"}, {Code: "unknown_opcode"}}
		case 2:
			r.Type, r.Bytes = dissect.GapRecord, int64(chance.IntN(1000))
		}
		if err := c.write(r); err != nil {
			t.Fatal(err)
		}
	}
	for session := 1; c.traffic != nil && session <= sessions+5; session++ {
		x := &dissect.Traffic{File: file, Session: session, Flow: 3 * session, Protocol: "wulfram", Transport: schema.UDP, First: start, Last: start.Add(time.Minute)}
		x.Client, x.Server = ends(session)
		x.Packets, x.Bytes = [2]int{chance.IntN(9), chance.IntN(9)}, [2]int64{100, 200}
		if session > sessions {
			x.Session = 0
		}
		c.traffic(x)
	}
	if c.summary != nil {
		c.summary(&dissect.Summary{Packets: 100 * sessions, Bytes: 1 << 20, First: start, Last: start.Add(time.Minute)})
	}
}
