package filter

import "opscope/dissect"

// MaxContext is how many records may be asked for in front of a hit: all of them are
// kept, whole.
const MaxContext = 10_000

// Window writes hits with the records around them, as grep -B and -A do.
type Window struct {
	Sink          dissect.Sink
	Before, After int
	// Separate is called between two groups of records with others left out between
	// them; nil for none. Without Before and After there are no groups.
	Separate func() error

	kept    []dissect.Kept // a ring
	first   int            // the oldest in it
	count   int
	due     int  // records still to be written behind a hit
	wrote   bool // anything
	skipped bool // something since
}

// Write takes the next record. It is written if it is a hit or near one.
func (w *Window) Write(r *dissect.Record, hit bool) error {
	switch {
	case hit:
		if err := w.release(); err != nil {
			return err
		}
		w.due = w.After
	case w.due > 0:
		w.due--
	default:
		w.keep(r)
		return nil
	}
	w.wrote = true
	return w.Sink.Write(r)
}

// Owes reports whether records behind a hit are still to come.
func (w *Window) Owes() bool { return w.due > 0 }

// Reset forgets what was kept: another file begins.
func (w *Window) Reset() { w.first, w.count, w.due, w.wrote, w.skipped = 0, 0, 0, false, false }

// keep keeps a record for a hit that may follow.
func (w *Window) keep(r *dissect.Record) {
	if w.Before == 0 {
		w.skipped = true
		return
	}
	if w.count < len(w.kept) {
		w.kept[(w.first+w.count)%len(w.kept)].Keep(r)
		w.count++
		return
	}
	if len(w.kept) < w.Before {
		w.kept = append(w.kept, dissect.Kept{})
		w.kept[len(w.kept)-1].Keep(r)
		w.count++
		return
	}
	w.kept[w.first].Keep(r)
	w.first = (w.first + 1) % len(w.kept)
	w.skipped = true
}

// release writes what stands in front of a hit.
func (w *Window) release() error {
	if w.wrote && w.skipped && w.Before+w.After > 0 && w.Separate != nil {
		if err := w.Separate(); err != nil {
			return err
		}
	}
	w.skipped = false
	for ; w.count > 0; w.count-- {
		if err := w.Sink.Write(w.kept[w.first].Record()); err != nil {
			return err
		}
		w.wrote = true
		w.first = (w.first + 1) % len(w.kept)
	}
	w.first = 0
	return nil
}
