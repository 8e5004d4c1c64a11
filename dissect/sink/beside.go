package sink

import (
	"fmt"

	"opscope/dissect"
)

// Beside has another sink write records on a goroutine of its own, while the caller decodes
// those that follow:
//
//	Write -> batch of records -> goroutine: sink
//	      <- the same, written <-
//
// The sink is given the records that it would be given without, in their order and as they
// are at Write, and nobody else may use it meanwhile. Only its errors come later: Write
// returns one when it takes a batch back, and Flush and Close do in any case. Until a first
// batch is full there is no goroutine, so that few records cost nothing.
type Beside struct {
	sink    dissect.Sink
	batch   *batch      // that is being filled
	full    chan *batch // to be written
	written chan *batch // or never used
	begun   bool        // there is a goroutine
	err     error       // the sink's first
}

// A batch is full when it has so many records, or when these keep so many bytes: about a
// millisecond's work, of which waking the other side is a small part. With three of them
// one is filled, one is written, and one is on the way.
const (
	batches      = 3
	batchRecords = 512
	batchBytes   = 256 << 10
)

// batch is records on their way to the sink. It comes back with the sink's error.
type batch struct {
	records []*dissect.Record
	bytes   int
	err     error
}

// NewBeside returns a Beside in front of a sink.
func NewBeside(sink dissect.Sink) *Beside {
	b := &Beside{sink: sink, batch: new(batch), full: make(chan *batch, batches), written: make(chan *batch, batches)}
	for range batches - 1 {
		b.written <- new(batch)
	}
	return b
}

// Write takes one record.
func (b *Beside) Write(r *dissect.Record) error {
	if b.err != nil {
		return b.err
	}
	bytes, ok := r.Retain()
	if !ok {
		if b.settle() == nil {
			b.err = b.sink.Write(r)
		}
		return b.err
	}
	b.batch.records = append(b.batch.records, r)
	b.batch.bytes += bytes
	if len(b.batch.records) < batchRecords && b.batch.bytes < batchBytes {
		return nil
	}
	if !b.begun {
		b.begun = true
		go b.run()
	}
	b.full <- b.batch
	b.batch = <-b.written
	b.empty(b.batch)
	return b.err
}

// run writes batches until there are no more, or up to an error.
func (b *Beside) run() {
	var err error
	for full := range b.full {
		if err == nil {
			err = full.write(b.sink)
		}
		full.err = err
		b.written <- full
	}
}

// write writes the records of a batch, up to an error. A panic is one, too: nobody else could
// catch it.
func (b *batch) write(sink dissect.Sink) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("a defect in what writes the output: %v", v)
		}
	}()
	for _, r := range b.records {
		if err := sink.Write(r); err != nil {
			return err
		}
	}
	return nil
}

// empty empties a batch that has been written.
func (b *Beside) empty(done *batch) {
	for _, r := range done.records {
		r.Done()
	}
	if b.err == nil {
		b.err = done.err
	}
	done.records, done.bytes, done.err = done.records[:0], 0, nil
}

// settle waits until the sink has been given all records. It returns the sink's first error.
func (b *Beside) settle() error {
	var idle [batches - 1]*batch
	for i := range idle {
		idle[i] = <-b.written
		b.empty(idle[i])
	}
	if b.err == nil {
		b.err = b.batch.write(b.sink)
	}
	b.empty(b.batch)
	for _, i := range idle {
		b.written <- i
	}
	return b.err
}

// Flush has the sink write out all records.
func (b *Beside) Flush() error {
	if b.settle() == nil {
		b.err = b.sink.Flush()
	}
	return b.err
}

// Close waits until the sink has been given all records, and may be used by others again.
// What it has buffered stays there.
func (b *Beside) Close() error {
	defer close(b.full)
	return b.settle()
}
