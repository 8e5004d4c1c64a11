package dissect

import (
	"encoding/json"
	"testing"
	"time"
)

func TestStamp(t *testing.T) {
	for _, c := range []struct {
		name string
		time time.Time
		want string
	}{
		{"nine digits", time.Date(2026, 11, 29, 20, 15, 2, 10_000_000, time.UTC), `"2026-11-29T20:15:02.010000000Z"`},
		{"UTC", time.Date(2026, 11, 29, 15, 15, 2, 1, time.FixedZone("EST", -5*3600)), `"2026-11-29T20:15:02.000000001Z"`},
		{"none", time.Time{}, "null"},
		{"the last one", time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), `"9999-12-31T23:59:59.999999999Z"`},
		{"a year of five digits", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), "null"},
		{"a year before the first", time.Date(-1, 12, 31, 23, 59, 59, 0, time.UTC), "null"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := json.Marshal(Stamp{c.time})
			if err != nil || string(got) != c.want {
				t.Errorf("got %s, %v, want %s", got, err, c.want)
			}
		})
	}
}
