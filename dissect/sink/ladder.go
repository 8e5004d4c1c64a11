package sink

import (
	"io"
	"net/netip"
	"unicode/utf8"

	"opscope/dissect"
)

// LadderOptions say how a ladder looks. Of the TextOptions Verbosity, Hex and Sides mean
// nothing here.
type LadderOptions struct {
	TextOptions
	ASCII bool // nothing but ASCII, for terminals without UTF-8
}

// Ladder draws the records of one session as a sequence diagram, a row each, as they
// come:
//
//	packet time                       client 10.0.0.2                   server 10.0.0.1
//	    27 20:15:02.986917 udp ╭      │─ VIEWPOINT_INFO latest 1 ──────►│  acked by 28, 20ms  entity_id=1003
//	    28 20:15:03.007133 udp ╰      │◄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ D_ACK ┄│  acks VIEWPOINT_INFO 1 (packet 27, 20ms)
//	    41 20:15:03.587857 udp        │─ VIEWPOINT_INFO latest 2 ─✗     │  unacked  entity_id=-1 (none)
//	    56 20:15:04.043480 udp        │═ VIEWPOINT_INFO latest 2 ═✗     │  unacked  ! retransmission
//
// An arrow that stops short was never acknowledged; a double line was sent before; a
// dotted one acknowledges, and a rail at the left joins it to what it acknowledges. What
// somebody noticed to be missing is an arrow without packet and time.
//
// A column is a host, or a side where both have one address. It keeps nothing but the
// hosts and what waits for its acknowledgement, some of either.
type Ladder struct {
	t      *Text
	o      LadderOptions
	with   *strokes
	hosts  []host
	crowd  bool // hosts beyond those share the last column
	drawn  int  // hosts that the last header names
	file   int
	rails  rails
	acked  int    // record that the last row acknowledges, 0 for none
	left   int    // column of the first bar
	stride int    // from bar to bar
	label  []byte // of an arrow, or the name of a host
	seq    []byte // what stays of the label of an arrow when it has to be cut
	named  int    // bytes of the label in front of its mode and sequence
}

// host is a column of the diagram.
type host struct {
	endpoint
	role dissect.Direction // in which it sends, as far as that is known
}

// endpoint is what tells the hosts apart: the address and, where that is the same on both
// sides, the direction in which they send or, as long as that is unknown, the port.
type endpoint struct {
	addr netip.Addr
	side dissect.Direction
	port uint16
}

// strokes are what arrows are made of. Each takes one column.
type strokes struct {
	bar, line, again, dots, gap, right, left, lost string
	open, run, shut                                string // rails
}

var (
	drawing = strokes{"│", "─", "═", "┄", "~", "►", "◄", "✗", "╭", "│", "╰"}
	ascii   = strokes{"|", "-", "=", ".", "~", ">", "<", "x", "/", "|", "\\"}
)

// The columns of a row. A narrow line has fewer rails, and shorter arrows; with two hosts
// it is at least 67 columns wide.
const (
	packetWidth = 6
	carrierRoom = len(" tcp ")
	wideLine    = 100
	wideRails   = 6
	fewRails    = 3
	usualStride = 48
	leastStride = 12
	leastRemark = 24 // columns behind the last bar
	maxHosts    = 6
)

// NewLadder returns a sink that draws a ladder on w.
func NewLadder(w io.Writer, o LadderOptions) *Ladder {
	o.Verbosity, o.Hex, o.Sides = 0, false, false
	l := &Ladder{t: NewText(w, o.TextOptions), o: o, with: &drawing}
	if o.ASCII {
		l.with = &ascii
	}
	l.rails.most = wideRails
	if l.t.width < wideLine {
		l.rails.most = fewRails
	}
	return l
}

// Flush writes out what is buffered.
func (l *Ladder) Flush() error { return l.t.Flush() }

// Write draws one record.
func (l *Ladder) Write(r *dissect.Record) error {
	if l.t.out.err != nil {
		return l.t.out.err
	}
	switch {
	case r.Envelope.First > 0:
		return nil // its first record counts it
	case r.Type == dissect.AckRecord && r.Acked == l.acked:
		return nil // the row above says it
	}
	l.acked = r.Acks.N
	l.t.redact.Prepare(r)
	dst := l.t.out.buf
	start := len(dst)
	from, to := l.place(r)
	dst = l.appendHeader(dst, r)
	switch r.Type {
	case dissect.FrameRecord:
		dst = l.appendMissing(dst, r, from, to)
		dst = l.appendFrame(dst, r, from, to)
	case dissect.GapRecord:
		dst = l.appendGap(dst, r, from, to)
	default:
		dst = l.appendBanner(dst, r)
	}
	if l.o.ASCII {
		dst = toASCII(dst, start)
	}
	l.t.out.buf = dst
	return l.t.out.done()
}

// place returns the columns of the two ends of a record, as indices of hosts. Those that
// are not there yet find room at the right.
func (l *Ladder) place(r *dissect.Record) (from, to int) {
	if r.File != l.file {
		l.file, l.hosts, l.drawn, l.crowd, l.rails.lanes = r.File, l.hosts[:0], 0, false, l.rails.lanes[:0]
	}
	src, dst, d := r.Src, r.Dst, r.Direction
	switch {
	case r.Type == dissect.SessionRecord:
		src, dst, d = r.Client, r.Server, dissect.ClientToServer
	case r.Type != dissect.FrameRecord && r.Type != dissect.GapRecord:
		return 0, 0 // a banner
	}
	one, other := endsOf(src, dst, d)
	if d == dissect.ServerToClient && len(l.hosts) == 0 && !toAll(other.addr) {
		l.column(other) // the client stands at the left
	}
	from = l.column(one)
	l.learn(from, one, d)
	if toAll(other.addr) {
		return from, everybody
	}
	to = l.column(other)
	l.learn(to, other, d.Reverse())
	return from, to
}

// everybody stands for the column of what is sent to all.
const everybody = -1

// endsOf returns what tells the two ends of a record apart.
func endsOf(src, dst netip.AddrPort, d dissect.Direction) (from, to endpoint) {
	from, to = endpoint{addr: src.Addr()}, endpoint{addr: dst.Addr()}
	if from != to {
		return from, to
	}
	if d == dissect.UnknownDirection {
		from.port, to.port = src.Port(), dst.Port()
		return from, to
	}
	from.side, to.side = d, d.Reverse()
	return from, to
}

// learn notes in which direction the host of a column sends.
func (l *Ladder) learn(i int, e endpoint, role dissect.Direction) {
	if h := &l.hosts[i]; h.endpoint == e && h.role == dissect.UnknownDirection {
		h.role = role
	}
}

// toAll reports whether an address is nobody's own.
func toAll(a netip.Addr) bool {
	return a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// column returns the index of a host. Where there are too many the last one stands for
// all that follow.
func (l *Ladder) column(e endpoint) int {
	for i := range l.hosts {
		if l.hosts[i].endpoint == e {
			return i
		}
	}
	if len(l.hosts) == l.mostHosts() {
		if !l.crowd {
			l.crowd, l.drawn = true, 0
		}
		return len(l.hosts) - 1
	}
	l.hosts = append(l.hosts, host{endpoint: e})
	return len(l.hosts) - 1
}

// mostHosts returns how many columns a line has room for.
func (l *Ladder) mostHosts() int {
	room := l.t.width - l.leftmost(0) - leastRemark
	return min(max(2, 1+room/leastStride), maxHosts)
}

// leftmost returns the column of the first bar behind a time so many columns wide.
func (l *Ladder) leftmost(time int) int {
	const usual = len("20:15:02.104512")
	return packetWidth + 1 + max(time, usual) + carrierRoom + l.rails.most + 1
}

// appendHeader appends the names of the columns when there are others than before, and
// sets where they stand.
func (l *Ladder) appendHeader(dst []byte, r *dissect.Record) []byte {
	if l.drawn == max(len(l.hosts), 1) {
		return dst
	}
	l.drawn = max(len(l.hosts), 1)
	t := l.t
	t.start, t.hidden, t.origin = len(dst), 0, 0
	before := t.clock
	dst = t.clock.append(dst, r)
	l.left, t.clock = l.leftmost(t.column(dst)), before
	t.clock.text = t.clock.text[:0] // its bytes may be those of another second now
	dst = append(dst[:t.start], "packet time"...)
	lanes := max(l.drawn-1, 1)
	l.stride = min(max((t.width-l.left-leastRemark)/lanes, leastStride), usualStride)
	for i := range l.hosts {
		dst = l.appendName(dst, i)
	}
	return append(trimRight(dst, t.start), '\n')
}

// appendName appends the name of a host above its bar: in the middle, if it can.
func (l *Ladder) appendName(dst []byte, i int) []byte {
	t, h := l.t, &l.hosts[i]
	l.label = l.label[:0]
	if h.role != dissect.UnknownDirection {
		l.label = append(append(l.label, h.role.Sender().String()...), ' ')
	}
	switch {
	case l.crowd && i == len(l.hosts)-1:
		l.label = append(l.label, "others"...)
	case !h.addr.IsValid():
		l.label = append(l.label, '?')
	case h.addr.Zone() != "":
		l.label = appendEscaped(l.label, h.addr.String())
	default:
		l.label = h.addr.AppendTo(l.label)
	}
	if h.port > 0 {
		l.label = appendUint(append(l.label, " port "...), uint64(h.port))
	}
	room := l.stride - 1
	if i == len(l.hosts)-1 {
		room = max(leastRemark, room)
	}
	l.label, _ = cut(l.label, 0, room)
	width := columns(l.label)
	at := min(max(l.bar(i)-width/2, t.column(dst)+1), max(t.width-width, t.column(dst)+1))
	dst = l.spaces(dst, at)
	t.hidden += len(l.label) - width
	return append(dst, l.label...)
}

// bar returns the column of a host's bar.
func (l *Ladder) bar(i int) int { return l.left + i*l.stride }

// spaces appends spaces up to a column.
func (l *Ladder) spaces(dst []byte, column int) []byte {
	for n := column - l.t.column(dst); n > 0; n -= len(spaces) {
		dst = append(dst, spaces[:min(n, len(spaces))]...)
	}
	return dst
}

// begin begins a row with packet, time and transport, and ends it in front of the rails.
func (l *Ladder) begin(dst []byte, r *dissect.Record) []byte {
	t := l.t
	t.start, t.hidden, t.origin = len(dst), 0, 0
	packet := r.Before // of a gap
	if n := len(r.Packets); n > 0 {
		packet = r.Packets[n-1]
	}
	if packet > 0 {
		l.label = appendInt(l.label[:0], int64(packet))
	} else {
		l.label = append(l.label[:0], '-')
	}
	dst = append(l.spaces(dst, packetWidth-len(l.label)), l.label...)
	dst = t.clock.append(append(dst, ' '), r)
	if r.Transport == 0 || r.Type == dissect.SessionRecord {
		return dst
	}
	return append(append(l.spaces(append(dst, ' '), l.railColumn()-len("tcp ")), r.Transport.String()...), ' ')
}

// railColumn returns the column of the first rail.
func (l *Ladder) railColumn() int { return l.left - 1 - l.rails.most }

// stroke appends some of one stroke.
func (l *Ladder) stroke(dst []byte, s string, n int) []byte {
	for range n {
		dst = append(dst, s...)
		l.t.hidden += len(s) - 1
	}
	return dst
}

// appendRails appends the rails of a row, and the spaces up to the first bar.
func (l *Ladder) appendRails(dst []byte) []byte {
	t := l.t
	dst = l.spaces(dst, l.railColumn())
	if !l.rails.busy() {
		return l.spaces(dst, l.left)
	}
	dst = append(dst, t.ink.quiet.on...)
	t.hidden += len(t.ink.quiet.on) + len(t.ink.quiet.off)
	for i := range l.rails.lanes {
		switch l.rails.lanes[i].now {
		case opens:
			dst = l.stroke(dst, l.with.open, 1)
		case runs:
			dst = l.stroke(dst, l.with.run, 1)
		case shuts:
			dst = l.stroke(dst, l.with.shut, 1)
		default:
			dst = append(dst, ' ')
		}
	}
	return l.spaces(append(dst, t.ink.quiet.off...), l.left)
}

// appendFrame appends the row of a record.
func (l *Ladder) appendFrame(dst []byte, r *dissect.Record, from, to int) []byte {
	t := l.t
	dst = l.begin(dst, r)
	l.rails.pass(r)
	dst = l.appendRails(dst)
	hidden := t.hidden
	a := arrow{from: from, to: to, line: l.with.line, ink: t.ink.direction[r.Direction]}
	switch {
	case sentBefore(r):
		a.line = l.with.again
	case names(&r.Acks) || r.Acks.Verdict != dissect.AcksNew:
		a.line = l.with.dots
	}
	if a.lost = r.Ack.State == dissect.AckUnacked || r.Ack.State == dissect.AckIgnored; a.lost {
		a.ink = t.ink.failure
	}
	l.name(either(r.Message, "?"))
	if r.Envelope.Seq >= 0 {
		l.label = t.appendSequence(append(l.label, ' '), r)
		l.seq = appendInt(append(l.seq, ' '), int64(r.Envelope.Seq))
		t.hidden = hidden // the label is not part of the line yet
	}
	if to == everybody {
		l.label, l.seq = append(l.label, " to all"...), append(l.seq, " to all"...)
	}
	dst = l.appendArrow(dst, &a, t.ink.message)
	dst = l.appendAck(append(dst, gutter...), r)
	return append(t.appendContent(dst, r, max(t.width, t.column(dst)), l.left+2), '\n')
}

// name begins the label of an arrow.
func (l *Ladder) name(text string) {
	l.label = appendEscaped(l.label[:0], text)
	l.named, l.seq = len(l.label), l.seq[:0]
}

// sentBefore reports whether a record is not the first with its content.
func sentBefore(r *dissect.Record) bool {
	for i := range r.Notes {
		switch r.Notes[i].Code {
		case "retransmission", "duplicate", "same_payload_new_sequence", "resend_copy", "unexpected_copy":
			return true
		}
	}
	return false
}

// appendAck appends what became of a record, with a gutter behind it: "acked by 28, 20ms",
// or "by 28, 20ms" where there is little room.
func (l *Ladder) appendAck(dst []byte, r *dissect.Record) []byte {
	if r.Envelope.Copies > 0 {
		dst = append(appendInt(append(dst, "copies: "...), int64(r.Envelope.Copies)), gutter...)
	}
	if r.Ack.State == dissect.AckNone {
		return dst
	}
	state := r.Ack.State.String()
	l.label = append(l.label[:0], state...)
	if r.Ack.By > 0 {
		l.label = appendInt(append(l.label, " by "...), int64(r.Ack.By))
	}
	if r.Ack.State == dissect.AckAcked && r.Ack.RTT >= 0 {
		l.label = appendRTT(append(l.label, ", "...), r.Ack.RTT)
	}
	short := l.label
	if l.t.column(dst)+len(short)+moreWidth > l.t.width && r.Ack.By > 0 {
		short = short[:len(state)]
		if r.Ack.State == dissect.AckAcked {
			short = l.label[len(state)+1:]
		}
	}
	return append(append(dst, short...), gutter...)
}

// appendMissing appends an arrow for what a record shows to be missing before it, if it
// does.
func (l *Ladder) appendMissing(dst []byte, r *dissect.Record, from, to int) []byte {
	for i := range r.Notes {
		n := &r.Notes[i]
		if n.Code != "sequence_gap" {
			continue
		}
		t := l.t
		t.start, t.hidden, t.origin = len(dst), 0, 0
		l.rails.rest()
		dst = l.appendRails(dst)
		l.name(t.redact.Clean(either(n.Text, n.Code)))
		a := arrow{from: from, to: to, line: l.with.dots, lost: true, ink: t.ink.failure}
		dst = append(l.appendArrow(dst, &a, t.ink.failure), '\n')
	}
	return dst
}

// appendGap appends the row of bytes that were not captured.
func (l *Ladder) appendGap(dst []byte, r *dissect.Record, from, to int) []byte {
	t := l.t
	dst = l.begin(dst, r)
	l.rails.rest()
	dst = l.appendRails(dst)
	l.label, l.seq = appendGap(l.label[:0], r), l.seq[:0]
	l.named = len(l.label)
	a := arrow{from: from, to: to, line: l.with.gap, lost: true, ink: t.ink.failure}
	dst = l.appendArrow(dst, &a, t.ink.failure)
	l.label = appendGapReason(l.label[:0], r)
	l.label, _ = cut(l.label, 0, max(t.width-t.column(dst)-1, moreWidth))
	return append(append(append(dst, ' '), l.label...), '\n')
}

// appendBanner appends the row of something that is no arrow.
func (l *Ladder) appendBanner(dst []byte, r *dissect.Record) []byte {
	t := l.t
	dst = l.begin(dst, r)
	l.rails.rest()
	dst = l.stroke(l.appendRails(dst), l.with.bar, 1)
	k := t.ink.quiet
	dst = append(append(dst, k.on...), " -- "...)
	t.hidden += len(k.on) + len(k.off)
	from := len(dst)
	dst, _ = cut(t.appendHappened(dst, r), from, max(t.width-t.column(dst)-len(" --"), leastRemark))
	return append(append(append(dst, " --"...), k.off...), '\n')
}

// toASCII replaces, from an index on, what is not ASCII: the mark of what is left out by
// "~", other characters by as many "?" as they take columns.
func toASCII(b []byte, from int) []byte {
	to := from
	for i := from; i < len(b); {
		if b[i] < utf8.RuneSelf {
			b[to] = b[i]
			i, to = i+1, to+1
			continue
		}
		size, width := step(b[i:])
		mark := byte('?')
		if string(b[i:i+size]) == ellipsis {
			mark = '~'
		}
		for range width {
			b[to] = mark
			to++
		}
		i += size
	}
	return b[:to]
}
