package main

import (
	"bytes"
	"slices"
	"time"

	"opscope/dissect"
)

// intervals print a statistic again and again while it grows.
type intervals struct {
	decoding  *decoding
	statistic *statistic
	every     time.Duration
	next      time.Time // when it is due; zero before the capture begins
	last      time.Time // up to when it has grown
}

// begin begins another capture, with intervals of its own.
func (i *intervals) begin() { i.next = time.Time{} }

// pass lets time pass. When the statistic is due it takes what there is so far into a copy,
// and prints that; intervals in which nobody called are left out.
func (i *intervals) pass(now time.Time, soFar func(*statistic) error) error {
	if i.next.IsZero() {
		i.next = now.Add(i.every)
	}
	if now.After(i.last) {
		i.last = now
	}
	if now.Before(i.next) {
		return nil
	}
	due := i.next
	i.next = due.Add(now.Sub(due).Truncate(i.every)).Add(i.every)
	copied := i.statistic.fork()
	if err := soFar(copied); err != nil {
		return err
	}
	return i.print(copied, due)
}

// print prints a statistic with the time up to which it counts.
func (i *intervals) print(s *statistic, until time.Time) error {
	return i.decoding.printReport(s.report(), until)
}

// timed is the source of a capture whose statistic is printed at intervals of its time.
type timed struct {
	dissect.Source
	intervals *intervals
	pipeline  *dissect.Pipeline
	index     int // of the file
}

// Next is the next packet, once everything before it is printed that is due.
func (t *timed) Next(p *dissect.Packet) error {
	if err := t.Source.Next(p); err != nil {
		return err
	}
	return t.intervals.pass(p.Time, func(s *statistic) error { return t.intervals.decoding.soFar(t.pipeline, t.index, s) })
}

// soFar has a statistic take what a pipeline has not told yet of the capture that it is at.
func (d *decoding) soFar(p *dissect.Pipeline, index int, s *statistic) error {
	result, err := p.Snapshot(func(r *dissect.Record) error {
		if s.out == nil || r.Type == dissect.FrameRecord && !d.wanted.Match(r) {
			return nil
		}
		return s.out.Write(r)
	}, func(t *dissect.Traffic) {
		if s.traffic != nil {
			s.traffic(t)
		}
	})
	if err != nil {
		return err
	}
	return s.take(index, result)
}

// headed puts a time in front of a report.
func headed(report []byte, format string, until time.Time) []byte {
	if format == "json" {
		stamp, _ := dissect.Stamp{Time: until}.MarshalJSON()
		return slices.Concat([]byte(`{"time":`), stamp, []byte(","), bytes.TrimPrefix(report, []byte("{")))
	}
	return append([]byte("-- until "+until.UTC().Format("2006-01-02 15:04:05.000")+" UTC --\n"), append(report, '\n')...)
}
