package transport

import (
	"testing"
	"time"
)

const ms = time.Millisecond

// The averages are computed by hand from section 4.3: ten samples, seeded with 500
// ms, each new one 1.5 round trips or 1.5 timeouts.
func TestRetryTimer(t *testing.T) {
	tests := []struct {
		name  string
		feed  func(t *retryTimer)
		wants []time.Duration // the timeout after each feeding
	}{
		{"a new one has the seed", func(*retryTimer) {}, []time.Duration{500 * ms}},
		{"round trips of 100 ms drive a seed out each, down to the least",
			func(t *retryTimer) { t.measured(100 * ms) },
			[]time.Duration{465 * ms, 430 * ms, 395 * ms, 360 * ms, 325 * ms, 290 * ms, 255 * ms, 220 * ms, 200 * ms, 200 * ms}},
		{"a sample that is no whole average is truncated",
			func(t *retryTimer) { t.measured(333 * ms) }, // 499.5 enters: 4999.5 / 10
			[]time.Duration{499 * ms, 499 * ms, 499 * ms}},
		{"firings feed 1.5 times the timeout in force, truncated before",
			func(t *retryTimer) { t.fired() },
			// 750 enters: 5250/10; 787.5: 5537.5/10; 553*1.5 = 829.5: 5867/10; 586*1.5 = 879: 6246/10;
			// 624*1.5 = 936: 6682/10; 668*1.5 = 1002: 7184/10
			[]time.Duration{525 * ms, 553 * ms, 586 * ms, 624 * ms, 668 * ms, 718 * ms}},
		{"round trips of 5 s stop at the most",
			func(t *retryTimer) { t.measured(5 * time.Second) },
			[]time.Duration{1000 * ms, 1000 * ms}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			timer := newRetryTimer()
			for i, want := range test.wants {
				test.feed(&timer)
				if got := timer.timeout(); got != want {
					t.Errorf("timeout after feeding %d = %v, want %v", i+1, got, want)
				}
			}
		})
	}
}

func TestFiringsAloneReachTheMost(t *testing.T) {
	timer := newRetryTimer()
	for range 100 {
		timer.fired()
	}
	if got := timer.timeout(); got != RetryMax {
		t.Errorf("timeout after a hundred firings = %v, want %v", got, RetryMax)
	}
}
