package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"opscope/dissect"
	"opscope/dissect/capture"
	"opscope/dissect/sink"
	"opscope/schema/wire"
)

// records reads opscope's own NDJSON. A line that is no record costs that line.
func (d *decoding) records(ctx context.Context, index int, name string, text io.Reader) (*dissect.Result, error) {
	r := sink.NewReader(text, sink.ReaderOptions{Schema: d.schemaOf, MaxLine: d.limits.line})
	var result dissect.Result
	bad := badLines{to: d.err, name: name}
	for ctx.Err() == nil {
		rec, err := r.Next()
		var line *wire.Error
		switch {
		case errors.Is(err, io.EOF):
			return &result, bad.end()
		case errors.As(err, &line):
			result.Summary.Errors[line.Kind]++
			result.Summary.Reached(line.Limit)
			if bad.add(line); bad.foreign() {
				return &result, bad.end()
			}
			continue
		case err != nil:
			return &result, err
		}
		bad.good()
		if d.intervals != nil {
			if err := d.intervals.pass(rec.Time, func(s *statistic) error { return s.take(index, &result) }); err != nil {
				return &result, err
			}
		}
		if d.only != nil && rec.Protocol != "" && rec.Protocol != d.protocol {
			continue
		}
		result.Summary.AddRecord(rec)
		reach(&result.Summary, rec.Time)
		if err := d.Write(rec); err != nil {
			return &result, err
		}
	}
	return &result, context.Cause(ctx)
}

// reach has the time that a summary is of reach to that of a record.
func reach(s *dissect.Summary, t time.Time) {
	if s.First.IsZero() || t.Before(s.First) {
		s.First = t
	}
	if t.After(s.Last) {
		s.Last = t
	}
}

const (
	// foreignAfter is how many lines may be no records before the first that is one: a
	// file that begins with more is JSON of something else.
	foreignAfter = 10
	// badShown is how many such lines are told of one by one.
	badShown = 20
)

// badLines tells of lines that are no records: of the first ones, as soon as there is a
// record among them.
type badLines struct {
	to    io.Writer
	name  string
	held  []*wire.Error // not told yet
	count int
	some  bool // there was a record
}

func (b *badLines) add(line *wire.Error) {
	b.count++
	if !b.some {
		b.held = append(b.held, line)
	} else if b.count <= badShown {
		complain(b.to, b.name+": "+line.Error())
	}
}

// good takes note of a record.
func (b *badLines) good() {
	if b.some {
		return
	}
	b.some = true
	for _, line := range b.held {
		complain(b.to, b.name+": "+line.Error())
	}
}

// foreign reports whether the file is taken for something else.
func (b *badLines) foreign() bool { return !b.some && b.count > foreignAfter }

// end returns the error of the whole file.
func (b *badLines) end() error {
	switch {
	case b.count == 0:
		return nil
	case !b.some:
		return fmt.Errorf("%s: %w; %w", b.name, &capture.ForeignError{Looks: "JSON of something else"}, b.held[0])
	case b.count > badShown:
		return fmt.Errorf("%s: %d lines are no records, of which the first %d are named", b.name, b.count, badShown)
	}
	return fmt.Errorf("%s: some lines are no records", b.name)
}
