package sink

import (
	"io"
	"testing"
	"time"

	"opscope/dissect"
	"opscope/dissect/filter"
	"opscope/schema"
)

// sinks are those whose speed is watched.
func sinks() map[string]dissect.Sink {
	utc := func(o TextOptions) dissect.Sink {
		o.Location, o.Schema = time.UTC, protocols
		return NewText(io.Discard, o)
	}
	columns, err := filter.NewLanguage([]*schema.Protocol{protocols("wulfram")}, dissect.Privacy{}).Columns([]string{
		"time", "src", "message", "entity_id", "password", "bits", "ack.rtt_ms", "rest", "notes.text", "error.got"})
	if err != nil {
		panic(err)
	}
	return map[string]dissect.Sink{
		"csv":          NewColumns(io.Discard, columns, CSV, false),
		"text":         utc(TextOptions{}),
		"text colour":  utc(TextOptions{Color: true}),
		"text details": utc(TextOptions{Verbosity: 2, Hex: true, Color: true}),
		"text sides":   utc(TextOptions{Verbosity: 2, Hex: true, Sides: true}),
		"ladder":       NewLadder(io.Discard, LadderOptions{TextOptions: TextOptions{Location: time.UTC, Schema: protocols, Color: true}}),
		"ladder ascii": NewLadder(io.Discard, LadderOptions{TextOptions: TextOptions{Location: time.UTC, Schema: protocols}, ASCII: true}),
		"ndjson":       NewNDJSON(io.Discard, NDJSONOptions{}),
		"ndjson raw":   NewNDJSON(io.Discard, NDJSONOptions{Raw: true}),
		"opcodes":      &Opcodes{},
		"flows":        NewFlows(dissect.Privacy{}),
		"acks":         NewAcks(protocols),
	}
}

func TestNothingIsAllocatedPerRecord(t *testing.T) {
	records := []*dissect.Record{viewpoint(), login(), brokenLogin(), everything(), says("hello there \x1b[2J")}
	records = append(records, story()...)
	records = append(records, happenings()...)
	for name, sink := range sinks() {
		write := func() {
			for _, r := range records {
				if name == "flows" && r.Type == dissect.SessionRecord {
					continue // of which a session has two
				}
				if err := sink.Write(r); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range 2000 {
			write() // until the buffers have grown
		}
		if n := testing.AllocsPerRun(1000, write); n != 0 {
			t.Errorf("%s: %v allocations for %d records", name, n, len(records))
		}
	}
}

func BenchmarkSink(b *testing.B) {
	for _, c := range []struct {
		name string
		r    *dissect.Record
	}{{"short", viewpoint()}, {"typical", typical()}, {"long", everything()}} {
		for name, sink := range sinks() {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := sink.Write(c.r); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
