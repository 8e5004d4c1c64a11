package transcript

// pair is two lines that stand beside each other, -1 for none.
type pair struct{ a, b int }

// align puts the lines of two lanes beside each other: equal ones where that can be, else
// such of the same message.
func align(a, b []line) []pair {
	g := aligner{a: a, b: b}
	g.between(0, len(a), 0, len(b))
	return g.pairs
}

type aligner struct {
	a, b  []line
	pairs []pair
}

// maxCells is how large a table for two stretches without a common anchor may be: 16 MB.
const maxCells = 4 << 20

// between aligns two stretches: what they begin and end with alike, then lines that each
// of them has once, which are anchors, and what is between those.
func (g *aligner) between(a, aEnd, b, bEnd int) {
	for a < aEnd && b < bEnd && g.a[a].text == g.b[b].text {
		g.pairs = append(g.pairs, pair{a, b})
		a, b = a+1, b+1
	}
	tail := 0
	for a < aEnd-tail && b < bEnd-tail && g.a[aEnd-tail-1].text == g.b[bEnd-tail-1].text {
		tail++
	}
	g.middle(a, aEnd-tail, b, bEnd-tail)
	for i := tail; i > 0; i-- {
		g.pairs = append(g.pairs, pair{aEnd - i, bEnd - i})
	}
}

func (g *aligner) middle(a, aEnd, b, bEnd int) {
	if a == aEnd || b == bEnd || (aEnd-a)*(bEnd-b) <= maxCells {
		g.table(a, aEnd, b, bEnd)
		return
	}
	anchors := g.anchors(a, aEnd, b, bEnd)
	if len(anchors) == 0 {
		g.inOrder(a, aEnd, b, bEnd)
		return
	}
	for _, p := range anchors {
		g.between(a, p.a, b, p.b)
		g.pairs = append(g.pairs, p)
		a, b = p.a+1, p.b+1
	}
	g.between(a, aEnd, b, bEnd)
}

// anchors returns the lines that stand once in each stretch, as many as are in the same
// order in both.
func (g *aligner) anchors(a, aEnd, b, bEnd int) []pair {
	type anchor struct{ a, b, countA, countB int }
	places := map[textNumber]*anchor{}
	var order []*anchor
	for i := a; i < aEnd; i++ {
		p := places[g.a[i].text]
		if p == nil {
			p = &anchor{a: i}
			places[g.a[i].text] = p
			order = append(order, p)
		}
		p.countA++
	}
	for i := b; i < bEnd; i++ {
		if p := places[g.b[i].text]; p != nil {
			p.b = i
			p.countB++
		}
	}
	// The longest row of rising b, by the least end of each length.
	var ends []int // index into once
	var once []pair
	var before []int
	for _, p := range order {
		if p.countA != 1 || p.countB != 1 {
			continue
		}
		low, high := 0, len(ends)
		for low < high {
			if m := (low + high) / 2; once[ends[m]].b < p.b {
				low = m + 1
			} else {
				high = m
			}
		}
		last := -1
		if low > 0 {
			last = ends[low-1]
		}
		once, before = append(once, pair{p.a, p.b}), append(before, last)
		if low == len(ends) {
			ends = append(ends, len(once)-1)
		} else {
			ends[low] = len(once) - 1
		}
	}
	list := make([]pair, len(ends))
	if len(ends) == 0 {
		return nil
	}
	for i, k := len(ends)-1, ends[len(ends)-1]; i >= 0; i, k = i-1, before[k] {
		list[i] = once[k]
	}
	return list
}

// What two lines are worth beside each other: as much as is alike. Two changed lines are
// worth less than one that is equal.
const (
	worthEqual   = 5
	worthMessage = 2
)

func (g *aligner) worth(i, k int) int32 {
	switch {
	case g.a[i].text == g.b[k].text:
		return worthEqual
	case g.a[i].message == g.b[k].message:
		return worthMessage
	}
	return 0
}

// table aligns two stretches by the most that they can be worth.
func (g *aligner) table(a, aEnd, b, bEnd int) {
	rows, columns := aEnd-a, bEnd-b
	best := make([]int32, (rows+1)*(columns+1))
	at := func(i, k int) *int32 { return &best[i*(columns+1)+k] }
	for i := rows - 1; i >= 0; i-- {
		for k := columns - 1; k >= 0; k-- {
			*at(i, k) = max(*at(i+1, k), *at(i, k+1))
			if w := g.worth(a+i, b+k); w > 0 {
				*at(i, k) = max(*at(i, k), w+*at(i+1, k+1))
			}
		}
	}
	i, k := 0, 0
	for i < rows || k < columns {
		switch w := int32(0); {
		case i == rows:
			g.pairs = append(g.pairs, pair{-1, b + k})
			k++
		case k == columns:
			g.pairs = append(g.pairs, pair{a + i, -1})
			i++
		default:
			if w = g.worth(a+i, b+k); w > 0 && *at(i, k) == w+*at(i+1, k+1) {
				g.pairs = append(g.pairs, pair{a + i, b + k})
				i, k = i+1, k+1
			} else if *at(i, k) == *at(i+1, k) {
				g.pairs = append(g.pairs, pair{a + i, -1})
				i++
			} else {
				g.pairs = append(g.pairs, pair{-1, b + k})
				k++
			}
		}
	}
}

// inOrder aligns two long stretches that have nothing in common but messages: as they come.
func (g *aligner) inOrder(a, aEnd, b, bEnd int) {
	for a < aEnd && b < bEnd {
		if g.worth(a, b) > 0 {
			g.pairs = append(g.pairs, pair{a, b})
		} else {
			g.pairs = append(g.pairs, pair{a, -1}, pair{-1, b})
		}
		a, b = a+1, b+1
	}
	for ; a < aEnd; a++ {
		g.pairs = append(g.pairs, pair{a, -1})
	}
	for ; b < bEnd; b++ {
		g.pairs = append(g.pairs, pair{-1, b})
	}
}
