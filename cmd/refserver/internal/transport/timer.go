package transport

import "time"

// The numbers of section 4.3.
const (
	// RetrySeed is what the average holds before anything was measured.
	RetrySeed = 500 * time.Millisecond
	// RetryMin and RetryMax bound the timeout.
	RetryMin = 200 * time.Millisecond
	RetryMax = 1000 * time.Millisecond
	// RetrySamples is how many samples the average is taken over.
	RetrySamples = 10
)

// retryTimer is the rolling average from which a stream's retry timeout is
// taken. Times of 1.5 round trips enter it, and 1.5 timeouts when one fires; that
// is not exponential backoff.
type retryTimer struct {
	samples [RetrySamples]time.Duration
	at      int // the oldest sample
}

func newRetryTimer() retryTimer {
	var t retryTimer
	for i := range t.samples {
		t.samples[i] = RetrySeed
	}
	return t
}

// measured feeds a round trip into the average.
func (t *retryTimer) measured(roundTrip time.Duration) {
	t.samples[t.at] = roundTrip * 3 / 2
	t.at = (t.at + 1) % RetrySamples
}

// fired feeds the timeout that has just run out into the average.
func (t *retryTimer) fired() { t.measured(t.timeout()) }

// timeout returns the average, truncated to milliseconds and clamped.
func (t *retryTimer) timeout() time.Duration {
	var sum time.Duration
	for _, s := range t.samples {
		sum += s
	}
	average := (sum / RetrySamples).Truncate(time.Millisecond)
	return min(max(average, RetryMin), RetryMax)
}
