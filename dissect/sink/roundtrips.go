package sink

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"opscope/dissect"
)

// What round trips are counted with: two digits, which is what a line shows of them, up to
// an hour, which no game waits. A histogram takes some 20 kB, whatever comes.
const (
	tripDigits = 2
	longestRTT = time.Hour
)

// RoundTrips is the times from records to their acknowledgements, in milliseconds; the
// percentiles are good to a hundredth of themselves, Max is exact. All are 0 where Count is.
type RoundTrips struct {
	Count int     `json:"count"` // of records sent once: of others nobody knows which copy was answered
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`

	histogram *hdrhistogram.Histogram // nil while there is nothing to count
	most      time.Duration
}

// add counts the acknowledgement of a record, if its round trip is known.
func (t *RoundTrips) add(a *dissect.Ack) {
	if a.State != dissect.AckAcked || a.RTT < 0 {
		return
	}
	if t.histogram == nil {
		t.histogram = hdrhistogram.New(1, longestRTT.Microseconds(), tripDigits)
	}
	t.Count++
	t.most = max(t.most, a.RTT)
	// NB: it refuses only what is longer than the longest.
	_ = t.histogram.RecordValue(max(1, min(a.RTT, longestRTT).Microseconds()))
}

// fork returns a copy that counts on by itself.
func (t *RoundTrips) fork() RoundTrips {
	f := *t
	if t.histogram != nil {
		f.histogram = hdrhistogram.Import(t.histogram.Export())
	}
	return f
}

// settle sets the numbers by what was counted.
func (t *RoundTrips) settle() {
	if t.histogram == nil {
		return
	}
	t.Max = milliseconds(t.most)
	at := func(percent float64) float64 {
		rank := math.Ceil(percent / 100 * float64(t.Count)) // the histogram would round it
		us := t.histogram.ValueAtQuantile(100 * rank / float64(t.Count))
		return min(milliseconds(time.Duration(us)*time.Microsecond), t.Max) // a step may reach beyond the greatest
	}
	t.P50, t.P90, t.P99 = at(50), at(90), at(99)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// tripText writes milliseconds to two digits or whole ones, nothing where none were counted.
func (t *RoundTrips) tripText(ms float64) string {
	if t.Count == 0 {
		return ""
	}
	return string(appendRTT(nil, time.Duration(ms*float64(time.Millisecond))))
}
