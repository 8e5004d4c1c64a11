package main_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"opscope/cmd/refserver/internal/load"
	"opscope/dissect"
	"opscope/dissect/capture"
	"opscope/dissect/protocols"
	"opscope/dissect/sink"
)

// BenchmarkLoad reads a load of each protocol, by way of each sink. The size is that of
// -load.
func BenchmarkLoad(b *testing.B) {
	for _, protocol := range loadProtocols {
		name := filepath.Join(b.TempDir(), "load.pcapng")
		file, err := os.Create(name)
		if err != nil {
			b.Fatal(err)
		}
		truth, err := load.Write(file, load.Options{Protocol: protocol, Bytes: *loads * 1000, Flows: 200, Seed: 1})
		if err != nil {
			b.Fatal(err)
		}
		file.Close()
		for _, way := range []struct {
			name string
			sink func() dissect.Sink
		}{
			{"count", func() dissect.Sink { return nothing{} }},
			{"text", func() dissect.Sink { return sink.NewText(io.Discard, sink.TextOptions{}) }},
			{"json", func() dissect.Sink { return sink.NewNDJSON(io.Discard, sink.NDJSONOptions{}) }},
		} {
			b.Run(protocol+"/"+way.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f, err := capture.Open(name)
					if err != nil {
						b.Fatal(err)
					}
					p := dissect.NewPipeline(way.sink(), dissect.Options{Protocols: protocols.All, Hold: dissect.DefaultHold})
					if _, err := p.Run(b.Context(), f); err != nil {
						b.Fatal(err)
					}
					f.Close()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*truth.Total), "ns/record")
				b.SetBytes(truth.Bytes)
			})
		}
	}
}

// nothing is a sink that records end in.
type nothing struct{}

func (nothing) Write(*dissect.Record) error { return nil }
func (nothing) Flush() error                { return nil }
