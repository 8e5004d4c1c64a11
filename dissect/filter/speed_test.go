package filter_test

import (
	"context"
	"testing"
	"time"

	"opscope/dissect"
	"opscope/dissect/capture"
	"opscope/dissect/filter"
	"opscope/dissect/protocols"
	"opscope/schema"
)

// expressions are filters as people type them, from cheap to dear.
var expressions = []struct{ name, text string }{
	{"direction", "dir == s2c"},
	{"opcode", "opcode in [D_ACK, 0x35, 33]"},
	{"late", "ack.rtt_ms > 200"},
	{"field", "code == accepted"},
	{"several", `dir == c2s and size > 8 and not note("retransmission") and error.kind != "malformed"`},
	{"array", "any(entities, .id == 1003 and .mask.position)"},
}

// taker writes nothing, and filters with a filter that may be nil.
type taker struct {
	f    *filter.Filter
	hits int
	n    int
}

func (t *taker) Write(r *dissect.Record) error {
	t.n++
	if t.f.Match(r) {
		t.hits++
	}
	return nil
}

func (t *taker) Flush() error { return nil }

// BenchmarkDecode decodes a capture with a filter and without, turn about, so that both meet
// the same machine. An operation is both. Of the least times, which others on the machine
// disturb the least, it reports what the filter takes in percent of the decoding: the goal is
// below a third.
func BenchmarkDecode(b *testing.B) {
	for _, e := range expressions {
		f := compile(b, e.text)
		b.Run(e.name, func(b *testing.B) {
			with, without := time.Hour, time.Hour
			for b.Loop() {
				without = min(without, decodeTime(b, nil))
				with = min(with, decodeTime(b, f))
			}
			b.ReportMetric(float64(without.Microseconds()), "µs/decode")
			b.ReportMetric(float64(with.Microseconds()), "µs/filtered")
			b.ReportMetric(100*(with-without).Seconds()/without.Seconds(), "%filter")
		})
	}
}

// decodeTime returns how long it takes to decode a capture and to filter its records; nil
// lets all pass.
func decodeTime(b *testing.B, f *filter.Filter) time.Duration {
	b.Helper()
	began := time.Now()
	src, err := capture.Open("../../pcaps/wulfram/play.pcapng")
	if err != nil {
		b.Fatal(err)
	}
	defer src.Close()
	if _, err := dissect.NewPipeline(&taker{f: f}, dissect.Options{Protocols: protocols.All}).Run(context.Background(), src); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

func compile(t testing.TB, text string) *filter.Filter {
	var list []*schema.Protocol
	for _, p := range protocols.All {
		s, err := p.Schema()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	f, err := filter.NewLanguage(list, dissect.Privacy{}).Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// kept copies the records of a run.
type kept struct{ records []*dissect.Kept }

func (k *kept) Write(r *dissect.Record) error {
	c := new(dissect.Kept)
	c.Keep(r)
	k.records = append(k.records, c)
	return nil
}

func (k *kept) Flush() error { return nil }

// BenchmarkMatch filters the records of a capture, which are decoded already. An
// operation is one record.
func BenchmarkMatch(b *testing.B) {
	var k kept
	src, err := capture.Open("../../pcaps/wulfram/play.pcapng")
	if err != nil {
		b.Fatal(err)
	}
	defer src.Close()
	if _, err := dissect.NewPipeline(&k, dissect.Options{Protocols: protocols.All}).Run(context.Background(), src); err != nil {
		b.Fatal(err)
	}
	for _, e := range expressions {
		f := compile(b, e.text)
		b.Run(e.name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				f.Match(k.records[i].Record())
				if i++; i == len(k.records) {
					i = 0
				}
			}
		})
	}
}
