package sink

// arrow is one arrow of a ladder.
type arrow struct {
	from, to int // hosts
	line     string
	lost     bool // stops short of where it goes
	ink      ink
}

// shortfall is how many columns a lost arrow stops short, at least.
const shortfall = 3

// appendArrow appends the bars of all hosts and, between two of them, an arrow with the
// label, which stands where the arrow comes from:
//
//	│─ LABEL ───────────►│           │          a.from 0, a.to 1
//	│◄───────────────────────── LABEL ─│        2, 0
//	│─ LABEL ──────✗     │           │          0, 1, lost
//
// An arrow to everybody goes to the bar furthest off, one from a host to itself hangs on
// its bar.
func (l *Ladder) appendArrow(dst []byte, a *arrow, label ink) []byte {
	bars := max(len(l.hosts), 2)
	if a.to == everybody {
		if a.to = bars - 1; a.from > bars/2 {
			a.to = 0
		}
	}
	first, last := min(a.from, a.to), max(a.from, a.to)
	if first == last && last == bars-1 {
		first-- // there is no lane at its right
	} else if first == last {
		last++
	}
	for i := range bars {
		if i == first {
			dst = l.appendSpan(l.stroke(l.spaces(dst, l.bar(i)), l.with.bar, 1), a, label, l.bar(last)-l.bar(first)-1)
		} else if i < first || i >= last {
			dst = l.stroke(l.spaces(dst, l.bar(i)), l.with.bar, 1)
		}
	}
	return dst
}

// appendSpan appends an arrow over a number of columns.
func (l *Ladder) appendSpan(dst []byte, a *arrow, label ink, room int) []byte {
	t := l.t
	room -= len("-  ") + len(">") // around the label
	short := 0
	if a.lost || a.from == a.to {
		short = max(shortfall, min((room+4)/5, room-columns(l.label)))
	}
	l.shorten(max(room-short, 1))
	width := columns(l.label)
	run := max(room-short-width, 0)
	leftward := a.to < a.from || a.from == a.to && a.to > 0 && a.to == max(len(l.hosts), 2)-1
	head := l.with.right
	if leftward {
		head = l.with.left
	}
	if a.lost {
		head = l.with.lost
	}
	t.hidden += len(l.label) - width + 2*(len(a.ink.on)+len(a.ink.off)) + len(label.on) + len(label.off)
	if leftward {
		dst = append(append(dst, spaces[:min(short, len(spaces))]...), a.ink.on...)
		dst = append(append(l.stroke(l.stroke(dst, head, 1), a.line, run), a.ink.off...), ' ')
		dst = append(append(append(dst, label.on...), l.label...), label.off...)
		return append(l.stroke(append(append(dst, ' '), a.ink.on...), a.line, 1), a.ink.off...)
	}
	dst = append(append(l.stroke(append(dst, a.ink.on...), a.line, 1), a.ink.off...), ' ')
	dst = append(append(append(dst, label.on...), l.label...), label.off...)
	return append(l.stroke(l.stroke(append(append(dst, ' '), a.ink.on...), a.line, run), head, 1), a.ink.off...)
}

// shorten cuts the label of an arrow to a number of columns: first its mode, then the end
// of its name, and its sequence last.
func (l *Ladder) shorten(room int) {
	if columns(l.label) <= room {
		return
	}
	l.label, _ = cut(l.label[:l.named], 0, max(room-len(l.seq), 1))
	l.label, _ = cut(append(l.label, l.seq...), 0, room)
}
