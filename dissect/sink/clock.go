package sink

import (
	"encoding/binary"
	"time"

	"opscope/dissect"
)

// TimeFormat says how text shows times, in tshark's words.
type TimeFormat uint8

// The formats. Local times are those of the location given to the sink.
const (
	Absolute          TimeFormat = iota // a: 20:15:02.104512, local
	AbsoluteDate                        // ad: 2026-11-29 20:15:02.104512
	AbsoluteDayOfYear                   // adoy: 2026/333 20:15:02.104512
	DeltaCaptured                       // d: since the packet before in the capture
	DeltaShown                          // dd: since the record before
	Epoch                               // e: seconds since 1970
	SinceStart                          // r: since the first packet
	UTC                                 // u: 20:15:02.104512, UTC
	UTCDate                             // ud
	UTCDayOfYear                        // udoy
)

// timeWords are tshark's words, in the order of the constants.
var timeWords = [...]string{"a", "ad", "adoy", "d", "dd", "e", "r", "u", "ud", "udoy"}

// String returns tshark's word.
func (f TimeFormat) String() string { return timeWords[f] }

// TimeFormatOf returns the format with this word, and whether there is one.
func TimeFormatOf(word string) (TimeFormat, bool) {
	for i, w := range timeWords {
		if w == word {
			return TimeFormat(i), true
		}
	}
	return Absolute, false
}

// Zone returns the zone of the times that are shown: for local ones local, or the
// system's if that is nil, for others UTC.
func (f TimeFormat) Zone(local *time.Location) *time.Location {
	switch f {
	case Absolute, AbsoluteDate, AbsoluteDayOfYear:
		return either(local, time.Local)
	}
	return time.UTC
}

// relativeWidth is the width of the seconds of a difference, so that columns
// stay in line for a day.
const relativeWidth = 5

// clock writes the times of records with the digits that their capture has. It
// keeps the text of the last second, which most records share.
type clock struct {
	format      TimeFormat
	location    *time.Location
	second      int64
	text        []byte // the text of second, empty before the first record
	first, last time.Time
}

// append appends the time of r, "-" where none is known.
func (c *clock) append(dst []byte, r *dissect.Record) []byte {
	if r.Time.IsZero() {
		return append(dst, '-')
	}
	if c.first.IsZero() {
		c.first, c.last = r.Time, r.Time
	}
	last := c.last
	c.last = r.Time
	switch c.format {
	case Epoch:
		return appendSeconds(dst, r.Time.Unix(), r.Time.Nanosecond(), r.Digits)
	case SinceStart:
		return appendDelta(dst, r.Time.Sub(either(r.Started, c.first)), r.Digits)
	case DeltaCaptured:
		return appendDelta(dst, r.Time.Sub(either(r.Previous, last)), r.Digits)
	case DeltaShown:
		return appendDelta(dst, r.Time.Sub(last), r.Digits)
	}
	if second := r.Time.Unix(); second != c.second || len(c.text) == 0 {
		c.second = second
		c.text = c.appendSecond(c.text[:0], r.Time)
	}
	return appendFraction(append(dst, c.text...), r.Time.Nanosecond(), r.Digits)
}

// either returns a, or b where there is none.
func either[T comparable](a, b T) T {
	var none T
	if a == none {
		return b
	}
	return a
}

// appendSecond appends date and time of day down to the second.
func (c *clock) appendSecond(dst []byte, t time.Time) []byte {
	t = t.In(c.format.Zone(c.location))
	switch c.format {
	case AbsoluteDate, UTCDate:
		dst = t.AppendFormat(dst, "2006-01-02 ")
	case AbsoluteDayOfYear, UTCDayOfYear:
		dst = t.AppendFormat(dst, "2006/002 ")
	}
	return t.AppendFormat(dst, "15:04:05")
}

// appendDelta appends a difference in seconds, negative ones with their sign.
func appendDelta(dst []byte, d time.Duration, digits int) []byte {
	start := len(dst)
	if d < 0 {
		dst = append(dst, '-')
		d = -d
	}
	dst = appendInt(dst, int64(d/time.Second))
	for len(dst)-start < relativeWidth {
		dst = append(dst, 0)
		copy(dst[start+1:], dst[start:])
		dst[start] = ' '
	}
	return appendFraction(dst, int(d%time.Second), digits)
}

// appendSeconds appends seconds since 1970, also before it.
func appendSeconds(dst []byte, second int64, nano, digits int) []byte {
	if second < 0 && nano > 0 {
		second, nano = second+1, int(time.Second)-nano
		if second == 0 {
			dst = append(dst, '-')
		}
	}
	return appendFraction(appendInt(dst, second), nano, digits)
}

// appendFraction appends the first digits of a number of nanoseconds, after a
// point; nothing for 0 digits.
func appendFraction(dst []byte, nano, digits int) []byte {
	if digits <= 0 {
		return dst
	}
	v, end := uint64(nano), len(dst)+1+min(digits, 9)
	dst = append(dst, '.', byte('0'+v/1e8))
	return binary.LittleEndian.AppendUint64(dst, eight(v%1e8)|zeros)[:end]
}

// appendRTT appends how long an acknowledgement took, in three digits or less.
func appendRTT(dst []byte, d time.Duration) []byte {
	switch tenths := d.Round(time.Millisecond/10) / (time.Millisecond / 10); {
	case tenths < 100:
		return append(appendTenths(dst, int64(tenths)), "ms"...)
	case tenths < 9995:
		return append(appendInt(dst, int64(d.Round(time.Millisecond)/time.Millisecond)), "ms"...)
	}
	return append(appendTenths(dst, int64(d.Round(time.Second/10)/(time.Second/10))), 's')
}

func appendTenths(dst []byte, n int64) []byte {
	return append(appendInt(dst, n/10), '.', byte('0'+n%10))
}
