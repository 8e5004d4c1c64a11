package main

import (
	"io"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress tells a terminal how far the reading of files is: bytes of them as they are
// stored, compressed or not, records a second, and the time that is left. It is the
// writer of messages, too, which take its place on the line. A nil progress tells nobody.
type progress struct {
	bytes, records atomic.Int64
	bar            *progressbar.ProgressBar
	mu             sync.Mutex // of the terminal
	to             io.Writer
}

const (
	// patience is how long nothing is told: most runs are over by then.
	patience = 500 * time.Millisecond
	// progressStep is between two tellings.
	progressStep = 200 * time.Millisecond
)

// tells reports whether somebody is told: a person at a terminal who does not see the
// records come.
func (d *decoding) tells() bool {
	return !d.noProgress && !d.quiet && isTerminal(d.streams.err) && (d.silent || !isTerminal(d.streams.out))
}

// watch tells how far the reading of files is, from now until what it returns is called.
func (d *decoding) watch(files []string) (end func()) {
	if !d.tells() {
		return func() {}
	}
	p := &progress{to: d.streams.err}
	p.bar = progressbar.NewOptions64(d.sizeOf(files), progressbar.OptionSetWriter(p.to), progressbar.OptionSetWidth(20),
		progressbar.OptionShowBytes(true), progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true),
		progressbar.OptionSetElapsedTime(true), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetSpinnerChangeInterval(0)) // else, where the size is unknown, it draws by itself, and over what comes behind it
	p.bar.StartWithoutRender()
	d.progress, d.streams.err = p, p
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		p.run(done)
	}()
	return func() {
		close(done)
		<-gone
		_ = p.bar.Clear() // a terminal that is gone needs no progress
		d.progress, d.streams.err = nil, p.to
	}
}

// sizeOf returns how many bytes there are to be read, -1 where nobody knows.
func (d *decoding) sizeOf(files []string) int64 {
	var sum int64
	for _, name := range files {
		about, err := os.Stat(name)
		switch {
		case name == "-" || err == nil && !about.Mode().IsRegular() && !about.IsDir():
			return -1
		case err == nil && d.refused[name] == nil:
			sum += about.Size()
		}
	}
	return sum
}

// run tells until it is done.
func (p *progress) run(done chan struct{}) {
	start, next := time.Now(), patience
	for {
		select {
		case <-done:
			return
		case <-time.After(next):
		}
		next = progressStep
		rate := float64(p.records.Load()) / time.Since(start).Seconds()
		p.mu.Lock()
		p.bar.Describe(strconv.FormatFloat(rate, 'f', 0, 64) + " records/s")
		_ = p.bar.Set64(p.bytes.Load())
		p.mu.Unlock()
	}
}

// Write writes a message where the progress stood, which comes again below it.
func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.bar.Clear()
	return p.to.Write(b)
}

// record counts a record.
func (p *progress) record() {
	if p != nil {
		p.records.Add(1)
	}
}

// through counts what is read of a file.
func (p *progress) through(r io.Reader) io.Reader {
	if p == nil {
		return r
	}
	return &countedReader{r, &p.bytes}
}

// countedReader counts what is read.
type countedReader struct {
	io.Reader
	bytes *atomic.Int64
}

func (c *countedReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.bytes.Add(int64(n))
	return n, err
}
