package dissect

import "time"

// Stamp is a time as JSON has it: RFC 3339 in UTC with nine digits, null where Written
// says that there is no such text.
type Stamp struct{ time.Time }

// The seconds since 1970 that RFC 3339 can say: those of the years 0 to 9999.
const (
	firstSecond = -62167219200
	lastSecond  = 253402300799
)

// Written reports whether there is a time, and RFC 3339 can say it. Only a damaged capture
// has others.
func (s Stamp) Written() bool {
	t := s.Unix()
	return !s.IsZero() && t >= firstSecond && t <= lastSecond
}

// MarshalJSON returns the text; it does not fail.
func (s Stamp) MarshalJSON() ([]byte, error) {
	if !s.Written() {
		return []byte("null"), nil
	}
	return s.UTC().AppendFormat(nil, `"2006-01-02T15:04:05.000000000Z"`), nil
}
