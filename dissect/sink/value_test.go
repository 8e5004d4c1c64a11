package sink

import (
	"math"
	"strconv"
	"testing"
)

// Numbers are written as strconv writes them, wherever they get another digit.
func TestDecimalDigits(t *testing.T) {
	numbers := []uint64{0, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64}
	for power := uint64(1); ; power *= 10 {
		numbers = append(numbers, power-1, power, power+1, 9*power, 7*power+power/2)
		if power > math.MaxUint64/10 {
			break
		}
	}
	for shift := range 64 {
		numbers = append(numbers, 1<<shift, 1<<shift-1)
	}
	for _, v := range numbers {
		if got, want := string(appendUint([]byte("x"), v)), "x"+strconv.FormatUint(v, 10); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		for _, v := range []int64{int64(v), -int64(v)} {
			if got, want := string(appendInt(nil, v)), strconv.FormatInt(v, 10); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}
}

func TestFractions(t *testing.T) {
	for _, c := range []struct {
		nano, digits int
		want         string
	}{{0, 9, ".000000000"}, {104512000, 6, ".104512"}, {1, 9, ".000000001"}, {999999999, 9, ".999999999"}, {987654321, 4, ".9876"}, {5, 0, ""}} {
		if got := string(appendFraction(nil, c.nano, c.digits)); got != c.want {
			t.Errorf("%d in %d digits: got %q, want %q", c.nano, c.digits, got, c.want)
		}
	}
}
