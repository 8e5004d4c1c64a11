package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"github.com/spf13/pflag"

	"opscope/dissect/sink"
)

// jobsFlag adds the flag of a command that may read several files at a time. What it
// prints is the same however many these are, so that it uses all cores unless told.
func jobsFlag(f *pflag.FlagSet, o *decodeOptions) {
	o.spread = true
	f.IntVarP(&o.jobs, "jobs", "j", 0, "use up to `N` cores, 0 for all: so many files are read at a time; the output is the same, in the order of the files")
}

// jobsFor returns how many files are read at a time: one where what is printed of a file
// depends on those before, and where one comes through a pipe, which may bring nothing
// until another one is read.
func (d *decoding) jobsFor(files []string) int {
	switch {
	case !d.spread || d.count > 0 || d.saving != nil || d.wants != nil || d.intervals != nil || d.format == "table",
		slices.ContainsFunc(d.stats, func(s *statistic) bool { return s.join == nil }), slices.ContainsFunc(files, comesThrough):
		return 1
	case d.jobs == 0:
		return min(len(files), runtime.GOMAXPROCS(0))
	}
	return min(len(files), d.jobs)
}

// comesThrough reports whether a file comes through a pipe.
func comesThrough(name string) bool { return name == "-" || readOnce(name) }

// overlaps reports whether records are written on another core than the one that decodes,
// where there is one and files are read in turn. It pays for NDJSON; a line of text is written
// in little more time than it takes to hand a record over. Nobody may be waiting for a record,
// at a terminal or behind a pipe that brings something now and then.
func (d *decoding) overlaps(files []string) bool {
	return d.spread && d.jobs != 1 && runtime.GOMAXPROCS(0) > 1 && d.format == "json" &&
		!d.silent && d.saving == nil && !d.immediate() && !slices.ContainsFunc(files, comesThrough)
}

// further is how many files may be begun, for each that is read at a time, before the one
// that is printed is done.
const further = 4

// reading is a file that is read while others are.
type reading struct {
	*decoding
	box  *outbox
	err  error         // what read returned
	done chan struct{} // closed when it has
}

// beside returns a decoding of one file beside others, which prints to its outbox.
func (d *decoding) beside(b *outbox) (*decoding, error) {
	c := &decoding{
		decodeOptions: d.decodeOptions, streams: b.streams(), silent: d.silent, several: d.several, protocols: d.protocols, only: d.only,
		checks: d.checks, assigned: d.assigned, changed: d.changed, schemas: maps.Clone(d.schemas), known: d.known, times: d.times,
		limits: d.limits, refused: d.refused, progress: d.progress,
	}
	c.loaded, c.language = d.loaded, d.language
	if err := c.outlet(); err != nil {
		return nil, err
	}
	if d.silent {
		c.writeTo(unprinted{})
	}
	for _, s := range d.stats {
		c.add(c.newStatistic(s.name))
	}
	return c, nil
}

// ahead reads so many files at the same time: each with a decoding of its own, in their order
// as far as anybody can see. What took is given, in that order, is what read has
// returned; when it returns false, no more is wanted. An error is one of the output.
//
// They begin in their order, too: so the one whose turn it is never waits for those behind.
func (d *decoding) ahead(ctx context.Context, files []string, jobs int, read func(ctx context.Context, c *decoding, i int) error, took func(c *decoding, err error) bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	head := &header{}
	if c, ok := d.out.(*sink.Columns); ok {
		head.text = c.Header()
	}
	room, begun, places, slots := newRoom(), make(chan *reading, further*jobs), make(chan struct{}, further*jobs), make(chan struct{}, jobs)
	go func() {
		defer close(begun)
		for i := range files {
			for _, free := range []chan struct{}{places, slots} {
				select {
				case free <- struct{}{}:
				case <-ctx.Done():
					return
				}
			}
			r := &reading{box: newOutbox(ctx, d.streams, room, head), done: make(chan struct{})}
			begun <- r
			go func() {
				defer func() { close(r.done); <-slots }()
				if r.decoding, r.err = d.beside(r.box); r.err == nil {
					r.err = read(ctx, r.decoding, i)
				}
			}()
		}
	}()
	err := deliver(begun, places, took)
	cancel(errInterrupted)
	for r := range begun { // those that nobody wants any more
		<-r.done
		r.box.discard()
	}
	return err
}

// deliver hands on what is read, in its order.
func deliver(begun chan *reading, places chan struct{}, took func(c *decoding, err error) bool) error {
	for r := range begun {
		err := r.box.begin()
		<-r.done
		if err == nil {
			err = r.box.err
		}
		if err != nil {
			return &exitError{exitInput, fmt.Errorf("output: %w", err)}
		}
		if !took(r.decoding, r.err) {
			return nil
		}
		<-places
	}
	return nil
}

// atOnce reads so many files at the same time.
func (d *decoding) atOnce(ctx context.Context, files []string, jobs int) (damaged bool, err error) {
	read := func(ctx context.Context, c *decoding, i int) error { return c.one(ctx, i, files[i]) }
	var failed error
	err = d.ahead(ctx, files, jobs, read, func(c *decoding, err error) bool {
		if c != nil {
			d.join(c)
		}
		switch {
		case errors.Is(err, errInterrupted):
			return false
		case fatal(err):
			failed = err
			return false
		}
		damaged = damaged || err != nil
		return true
	})
	return damaged, cmp.Or(failed, err)
}
