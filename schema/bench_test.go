package schema

import (
	"cmp"
	"slices"
	"testing"

	"opscope/schema/wire"
)

// hot is a body that comes often: one of a vector, or one of these values.
type hot struct {
	protocol, message, vector string
	by                        Sender
	values                    Values
	name                      string // where message tells it not
}

// The bodies of busy sessions: acknowledgements, inputs, snapshots, ticks.
var hots = []hot{
	{protocol: "wulfram", message: "D_ACK", vector: "server-ack-enveloped"},
	{protocol: "wulfram", message: "ACTION_UPDATE", vector: "og-action-two"},
	{protocol: "wulfram", message: "VIEW_UPDATE", vector: "view-update-two-tanks"},
	{protocol: "wulfram", message: "UPDATE_ARRAY", by: Server, values: Values{"sequence": 7, "entities": []Values{mover, mover, mover, mover}}},
	{protocol: "wulfram", message: "UPDATE_ARRAY", name: "UPDATE_ARRAY_23", by: Server, values: Values{"sequence": 7, "entities": slices.Repeat([]Values{mover}, 23)}},
	{protocol: "wulfram", message: "ACK1", by: Client, values: Values{"entities": []Values{sampled, sampled}}},
	{protocol: "netrek", message: "SP_TORP", by: Server, values: Values{"dir": 64, "tnum": 17, "x": 50000, "y": 49000}},
	{protocol: "netrek", message: "SP_PLAYER", by: Server, values: Values{"pnum": 3, "dir": 64, "speed": 4, "x": 50000, "y": 49000}},
	{protocol: "netrek", message: "SP_YOU", by: Server, values: Values{
		"pnum": 3, "hostile": 2, "swar": 2, "armies": 0, "tractor": 0, "flags": 1, "damage": 0, "shield": 100, "fuel": 9000,
		"etemp": 0, "wtemp": 0, "whydead": 0, "whodead": 0,
	}},
	{protocol: "netrek", message: "SP_S_TORP", by: Server, values: Values{"bitset": 3, "whichtorps": 1, "torps": []Values{{"x": 1, "y": 2}, {"x": 3, "y": 4}}}},
	{protocol: "lotr2", message: "tick_reached", values: Values{"tick": 130, "byte_2": 0, "player_number": 1}},
	{protocol: "lotr2", message: "trade", values: Values{
		"byte_0": 1, "quantity": 5, "kind": 2, "i32_6": 0, "i32_10": 0, "player_number": 1, "byte_15": 11,
	}},
	{protocol: "mmo", message: "MoveBatchNotify", by: Server, values: Values{
		"reserved": 0, "server_time_ms": 1750000000123, "entries": []Values{walker, walker, walker, walker},
	}},
}

var (
	mover = Values{
		"id": 7, "manned": 1, "mask": 0x0e, "bank": 0, "position": []float64{100, -200, 30}, "velocity": []float64{1, 0, -3},
		"rotation": []float64{0, 3.1, 0.5},
	}
	sampled = Values{"id": 7, "timestamps": []int{1000, 1100, 1200, 1300}}
	walker  = Values{
		"character_id": 1001, "last_processed_input_sequence": 300, "x": 12.5, "y": -7.25, "z": 90.0, "velocity_x": 3.0,
		"velocity_y": -0.5, "velocity_z": 0.125, "yaw": 271.25,
	}
)

// hotBody is a body to be decoded again and again.
type hotBody struct {
	p       *Protocol
	message string
	layout  *Layout
	state   *State
	data    []byte
	head    int
	dec     Decoder
	tree    Tree
}

// body returns the body of h, decoded once.
func (h *hot) body(t testing.TB) *hotBody {
	t.Helper()
	p, err := Builtin(h.protocol)
	if err != nil {
		t.Fatal(err)
	}
	b := &hotBody{p: p, message: h.message}
	if h.vector != "" {
		d := hotRecord(t, p, h.vector)
		b.layout, b.state, b.data, b.head = d.layouts[d.chosen], d.state, d.data, d.frame.Head
	} else {
		b.layout, b.state, b.head = p.PacketNamed(h.message).Of(h.by)[0], netrekState(p), p.Envelopes[0].Size()
		e := Encoder{State: b.state, Head: b.head}
		if b.data, err = e.Append(make([]byte, b.head), p, h.message, b.layout, NewTree(h.values)); err != nil {
			t.Fatal(err)
		}
	}
	b.dec = Decoder{State: b.state, Short: wire.Malformed, Envelope: p.Envelopes[0]}
	b.decode(t)
	return b
}

func (b *hotBody) decode(t testing.TB) {
	b.tree.Reset(b.data)
	if err := b.dec.Decode(b.p, b.message, b.layout, &b.tree, 8*b.head, 8*len(b.data)); err != nil {
		t.Fatal(err)
	}
}

func (b *hotBody) skim(t testing.TB) {
	if err := b.dec.Skim(b.p, b.message, b.layout, b.data, 8*b.head, 8*len(b.data)); err != nil {
		t.Fatal(err)
	}
}

// hotRecord returns the record of a vector.
func hotRecord(t testing.TB, p *Protocol, name string) *decoded {
	t.Helper()
	for _, v := range loadVectors(t) {
		if v.Name == name {
			d := walk(t, p, v.Transport, v.senders()[0], v.Context, v.bytes(t))[0]
			if d.err != nil {
				t.Fatal(d.err)
			}
			return d
		}
	}
	t.Fatalf("no vector %q", name)
	return nil
}

func TestDecodeDoesNotAllocateOnceWarm(t *testing.T) {
	for _, h := range hots {
		b := h.body(t)
		if got := testing.AllocsPerRun(100, func() { b.decode(t) }); got != 0 {
			t.Errorf("%s: got %v allocations, want 0", h.message, got)
		}
		b.skim(t)
		if got := testing.AllocsPerRun(100, func() { b.skim(t) }); got != 0 {
			t.Errorf("%s: got %v allocations of skimming, want 0", h.message, got)
		}
		if len(b.dec.Remarks) > 0 {
			t.Errorf("%s: got remarks, and want a body without: %v", h.message, b.dec.Remarks)
		}
	}
}

func BenchmarkDecode(b *testing.B) { benchmark(b, (*hotBody).decode) }

func BenchmarkSkim(b *testing.B) { benchmark(b, (*hotBody).skim) }

// benchmark measures one way of reading, for each of the bodies.
func benchmark(b *testing.B, read func(*hotBody, testing.TB)) {
	for _, h := range hots {
		b.Run(cmp.Or(h.name, h.message), func(b *testing.B) {
			body := h.body(b)
			b.SetBytes(int64(len(body.data)))
			b.ReportAllocs()
			for b.Loop() {
				read(body, b)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, h := range hots[:3] {
		b.Run(h.message, func(b *testing.B) {
			d := h.body(b)
			e := Encoder{State: d.state, Head: d.head}
			var body []byte
			b.SetBytes(int64(len(d.data)))
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if body, err = e.Append(body[:0], d.p, d.message, d.layout, &d.tree); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := Load(builtin, "protocols/wulfram"); err != nil {
			b.Fatal(err)
		}
	}
}
