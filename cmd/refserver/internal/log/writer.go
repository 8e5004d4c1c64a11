package log

import (
	"cmp"
	"io"
	"net/netip"
	"time"

	"opscope/cmd/refserver/internal/machine"
	"opscope/schema"
)

// Transport is "tcp" or "udp".
type Transport string

// The transports.
const (
	TCP Transport = "tcp"
	UDP Transport = "udp"
)

// Writer writes the lines of several peers. With Hold it keeps every line until
// Close, so that each sequenced record tells whether it was acknowledged; without,
// an acknowledgement is a line of its own, of type ack.
type Writer struct {
	Hold bool

	to    io.Writer
	err   error
	buf   []byte
	lines []held
	byID  map[key]int // index in lines of the records that may be acknowledged
}

// held is a line that waits, without its end.
type held struct {
	text  []byte
	may   bool // it may be acknowledged
	acked bool
}

type key struct {
	peer string
	id   int
}

// NewWriter returns a writer of lines to w.
func NewWriter(w io.Writer) *Writer { return &Writer{to: w, byID: map[key]int{}} }

// Close writes what was held. It returns the first error of all writes.
func (w *Writer) Close() error {
	for i := range w.lines {
		h := &w.lines[i]
		if h.may {
			h.text = appendBool(append(h.text, `,"acked":`...), h.acked)
		}
		w.write(append(h.text, "}\n"...))
	}
	w.lines = nil
	return w.err
}

func (w *Writer) write(line []byte) {
	if w.err == nil {
		_, w.err = w.to.Write(line)
	}
}

// Peer is a machine's side of a log. It is the machine's Observer; its host tells it
// what the machine sends.
type Peer struct {
	Name     string // "server", or the name of a bot
	Server   bool
	Protocol string
	Addr     netip.AddrPort // of the machine's datagrams
	Stream   netip.AddrPort // of a bot's connection, once it has one, or where a server listens; Addr unless it is valid
	w        *Writer
}

// Peer returns the side of a machine.
func (w *Writer) Peer(p Peer) *Peer {
	p.w = w
	return &p
}

// Sent tells of an output. Local and remote are the ends that it travels between;
// base is how many bytes of the stream went before it, 0 for a datagram.
func (p *Peer) Sent(now time.Time, o machine.Output, local, remote netip.AddrPort, base int) {
	t := UDP
	if o.Kind == machine.SendStream {
		t = TCP
	}
	for i := range o.Records {
		r := o.Records[i]
		r.Offset += base
		p.line(now, t, local, remote, p.Server, &r)
	}
}

// Received tells of a record that the machine understood.
func (p *Peer) Received(now time.Time, from netip.AddrPort, r machine.Record) {
	t, at := UDP, p.Addr
	if r.Via == schema.TCP {
		t = TCP
		if p.Stream.IsValid() {
			at = p.Stream
		}
	}
	if r.Port != 0 {
		at = netip.AddrPortFrom(at.Addr(), r.Port)
	}
	r.ID = 0
	p.line(now, t, from, at, !p.Server, &r)
}

// Acknowledged tells that a record was acknowledged.
func (p *Peer) Acknowledged(now time.Time, id int) {
	if p.w.Hold {
		if i, ok := p.w.byID[key{p.Name, id}]; ok {
			p.w.lines[i].acked = true
		}
		return
	}
	b := appendTime(append(p.w.buf[:0], `{"type":"ack","time":`...), now)
	b = appendInt(append(b, `,"id":`...), id)
	b = appendText(append(b, `,"peer":`...), p.Name)
	p.finish(b, nil)
}

// Event tells of anything else.
func (p *Peer) Event(now time.Time, code, text string) {
	b := appendTime(append(p.w.buf[:0], `{"type":"event","time":`...), now)
	b = appendText(append(b, `,"code":`...), code)
	b = appendText(append(b, `,"text":`...), text)
	b = appendText(append(b, `,"peer":`...), p.Name)
	p.finish(b, nil)
}

func (p *Peer) line(now time.Time, t Transport, src, dst netip.AddrPort, byServer bool, r *machine.Record) {
	b := appendTime(append(p.w.buf[:0], `{"type":"record","time":`...), now)
	dir := `"c2s"`
	switch {
	case r.Aside:
		dir = "null"
	case byServer:
		dir = `"s2c"`
	}
	b = append(append(b, `,"dir":`...), dir...)
	b = append(append(b, `,"transport":"`...), t...)
	b = append(src.AppendTo(append(b, `","src":"`...)), `","dst":"`...)
	b = append(dst.AppendTo(b), `","protocol":`...)
	b = appendRecord(appendText(b, cmp.Or(r.Protocol, p.Protocol)), t, r)
	p.finish(appendText(append(b, `,"peer":`...), p.Name), r)
}

// finish writes a line, or holds it. r is the record in it, nil for none.
func (p *Peer) finish(b []byte, r *machine.Record) {
	w := p.w
	w.buf = b
	if !w.Hold {
		w.write(append(b, "}\n"...))
		return
	}
	h := held{text: append([]byte(nil), b...), may: r != nil && r.ID > 0 && r.Seq >= 0}
	if h.may {
		w.byID[key{p.Name, r.ID}] = len(w.lines)
	}
	w.lines = append(w.lines, h)
}
