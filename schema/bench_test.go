package schema

import (
	"testing"

	"opscope/schema/wire"
)

// The bodies of a busy session: an acknowledgement, inputs, and a snapshot.
var hot = []struct{ name, vector string }{
	{"D_ACK", "server-ack-enveloped"},
	{"ACTION_UPDATE", "og-action-two"},
	{"VIEW_UPDATE", "view-update-two-tanks"},
}

// hotRecord returns the record of a vector, decoded once.
func hotRecord(t testing.TB, name string) (*Protocol, *decoded) {
	t.Helper()
	p := wulfram(t)
	for _, v := range loadVectors(t) {
		if v.Name == name {
			d := walk(t, p, v.Transport, v.senders()[0], v.Context, v.bytes(t))[0]
			if d.err != nil {
				t.Fatal(d.err)
			}
			return p, d
		}
	}
	t.Fatalf("no vector %q", name)
	return nil, nil
}

func TestDecodeDoesNotAllocateOnceWarm(t *testing.T) {
	for _, h := range hot {
		p, d := hotRecord(t, h.vector)
		dec := Decoder{State: d.state, Short: wire.Malformed}
		decode := func() {
			d.tree.Reset(d.data)
			if err := dec.Decode(p, d.message, d.layouts[d.chosen], &d.tree, 8*d.frame.Head, 8*len(d.data)); err != nil {
				t.Fatal(err)
			}
		}
		decode()
		if got := testing.AllocsPerRun(100, decode); got != 0 {
			t.Errorf("%s: got %v allocations, want 0", h.name, got)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, h := range hot {
		b.Run(h.name, func(b *testing.B) {
			p, d := hotRecord(b, h.vector)
			dec := Decoder{State: d.state, Short: wire.Malformed}
			b.SetBytes(int64(len(d.data)))
			b.ReportAllocs()
			for b.Loop() {
				d.tree.Reset(d.data)
				if err := dec.Decode(p, d.message, d.layouts[d.chosen], &d.tree, 8*d.frame.Head, 8*len(d.data)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, h := range hot {
		b.Run(h.name, func(b *testing.B) {
			p, d := hotRecord(b, h.vector)
			e := Encoder{State: d.state, Head: d.frame.Head}
			var body []byte
			b.SetBytes(int64(len(d.data)))
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if body, err = e.Append(body[:0], p, d.message, d.layouts[d.chosen], &d.tree); err != nil {
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
