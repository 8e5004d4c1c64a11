package dissect

// arena keeps copies that are made in turn and dropped in about the same order, side by
// side in slabs. A copy takes as much room as it has items, however large others are, and
// once warm nothing is allocated. The zero arena cannot be used: slabs need a size.
type arena[T any] struct {
	size int // items of a slab
	open *slab[T]
	free []*slab[T]
}

// slab is a piece of memory that is used again once none of its copies is in use.
type slab[T any] struct {
	items []T
	live  int // copies in use
}

// room returns space for n items, with no room to grow, and where it came from: done
// takes that back. No space at all comes from nowhere, which is nil.
func (a *arena[T]) room(n int) ([]T, *slab[T]) {
	if n == 0 {
		return nil, nil
	}
	if n > a.size {
		return make([]T, n), nil
	}
	if a.open == nil || len(a.open.items)+n > a.size {
		a.turn()
	}
	s := a.open
	from := len(s.items)
	s.items = s.items[:from+n]
	s.live++
	return s.items[from : from+n : from+n], s
}

// turn begins another slab. The one before is free once its last copy is done.
func (a *arena[T]) turn() {
	if last := len(a.free) - 1; last >= 0 {
		a.open, a.free = a.free[last], a.free[:last]
		return
	}
	a.open = &slab[T]{items: make([]T, 0, a.size)}
}

// done ends the use of a copy in s.
func (a *arena[T]) done(s *slab[T]) {
	if s == nil {
		return
	}
	if s.live--; s.live > 0 {
		return
	}
	s.items = s.items[:0]
	if s != a.open {
		a.free = append(a.free, s)
	}
}
