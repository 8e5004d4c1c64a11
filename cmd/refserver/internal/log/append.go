package log

import (
	"time"

	"opscope/cmd/refserver/internal/machine"
)

// AppendRecord appends the keys of a record, from message on, each with a comma in
// front. It is for logs that know more of a record than its peers do.
func AppendRecord(b []byte, t Transport, r *machine.Record) []byte { return appendRecord(b, t, r) }

// AppendTime appends a time as RFC 3339 in UTC with nanoseconds, in quotes.
func AppendTime(b []byte, t time.Time) []byte { return appendTime(b, t) }

// AppendText appends a JSON string.
func AppendText(b []byte, s string) []byte { return appendText(b, s) }
