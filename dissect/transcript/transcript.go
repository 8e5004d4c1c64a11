// Package transcript writes down what was said in a capture, so that two captures can be
// compared: which messages with which fields, for each session, direction and transport in
// their order. It leaves out when, from which port, under which sequence and how often a
// thing had to be said again.
//
// A Transcript takes the lines of NDJSON, in which values have their final form, and
// secrets are masked. As text it has a line for each message, and can be kept in a
// repository; Parse reads it back.
package transcript

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"opscope/dissect/jsonscan"
)

// Transcript is what was said in one capture. The zero Transcript is empty; Ignore may be
// set before the first line is written.
type Transcript struct {
	Ignore []string // fields that are left out, as fields or MESSAGE.field, with * and ?

	texts    *texts           // of its lines
	lanes    map[string]*lane // by "session 1 wulfram c2s tcp"
	sessions map[int]int      // numbers in the order in which they come, by those of the capture
	ignored  map[string]bool  // what Ignore says of fields, by message and path
	rest     []byte           // the start of a line
	scan     jsonscan.Scanner // of a line
	said     said             // by it
	path     []byte           // scratch, of a field
	key      []byte           // scratch, of ignored: MESSAGE.path, without indexes
	name     []byte           // scratch, of a lane
}

// Counterpart returns an empty transcript to compare with t. It leaves out the same, and
// what both say is kept once.
func (t *Transcript) Counterpart() *Transcript {
	t.begin()
	return &Transcript{Ignore: t.Ignore, texts: t.texts}
}

// begin makes room for texts, if there is none.
func (t *Transcript) begin() {
	if t.texts == nil {
		t.texts = newTexts()
	}
}

// lane is what one side of a session said over one transport.
type lane struct {
	number  int // from 0, as they come
	lines   []line
	packets []uint32 // of all lines
}

// line is one message.
type line struct {
	text    textNumber // of message and fields, with tabs between them
	message textNumber // of its name
	packets uint32     // where those begin that carry it; there are none where only a text is known
}

// packetsOf returns the packets that carry line i.
func (l *lane) packetsOf(i int) []int {
	end := len(l.packets)
	if i+1 < len(l.lines) {
		end = int(l.lines[i+1].packets)
	}
	list := []int{}
	for _, n := range l.packets[l.lines[i].packets:end] {
		list = append(list, int(n))
	}
	return list
}

// Write takes lines of NDJSON, with their keys in the order of the NDJSON sink.
func (t *Transcript) Write(p []byte) (int, error) {
	size := len(p)
	for {
		line, after, ended := bytes.Cut(p, []byte("\n"))
		if !ended {
			t.rest = append(t.rest, p...)
			return size, nil
		}
		if len(t.rest) > 0 {
			t.rest = append(t.rest, line...)
			line = t.rest
		}
		if err := t.take(line); err != nil {
			return 0, err
		}
		t.rest, p = t.rest[:0], after
	}
}

// laneOf returns the name of the lane of what was said, valid until the next call.
func (t *Transcript) laneOf(r *said) []byte {
	number, known := t.sessions[r.session]
	if !known {
		if t.sessions == nil {
			t.sessions = map[int]int{}
		}
		number = len(t.sessions) + 1
		t.sessions[r.session] = number
	}
	t.name = strconv.AppendInt(append(t.name[:0], "session "...), int64(number), 10)
	for _, part := range [][]byte{r.protocol, r.dir, r.transport} {
		if len(part) > 0 {
			t.name = append(append(t.name, ' '), part...)
		}
	}
	return t.name
}

// add adds a line to a lane.
func (t *Transcript) add(name, text []byte, packets []int) {
	l := t.lanes[string(name)]
	if l == nil {
		if t.lanes == nil {
			t.begin()
			t.lanes = map[string]*lane{}
		}
		l = &lane{number: len(t.lanes)}
		t.lanes[string(name)] = l
	}
	message, _, _ := bytes.Cut(text, tab)
	l.lines = append(l.lines, line{t.texts.number(text, l.number), t.texts.number(message, l.number), uint32(len(l.packets))})
	for _, n := range packets {
		l.packets = append(l.packets, uint32(n))
	}
}

// tab is what stands between the fields of a line.
var tab = []byte("\t")

// Print writes the transcript as text: a heading for each lane, then its lines.
func (t *Transcript) Print(w io.Writer) error {
	b := bufio.NewWriter(w)
	for i, name := range slices.Sorted(maps.Keys(t.lanes)) {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("== " + name + "\n")
		for _, line := range t.lanes[name].lines {
			b.Write(t.texts.of(line.text))
			b.WriteByte('\n')
		}
	}
	return b.Flush()
}

// maxLine is longer than any record's line: a frame of 64 KiB, in hex.
const maxLine = 1 << 20

// Parse adds a transcript that Print has written. What is now ignored is left out of it.
func (t *Transcript) Parse(r io.Reader) error {
	var lane, kept []byte
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	for n := 1; s.Scan(); n++ {
		line := s.Bytes()
		heading, begins := bytes.CutPrefix(line, []byte("== "))
		switch {
		case len(line) == 0:
		case begins:
			lane = append(lane[:0], heading...)
		case len(lane) == 0:
			return fmt.Errorf("line %d: want a heading, such as == session 1 wulfram c2s tcp", n)
		default:
			kept = t.appendKept(kept[:0], line)
			t.add(lane, kept, nil)
		}
	}
	return s.Err()
}

// appendKept appends a line without what is ignored.
func (t *Transcript) appendKept(dst, line []byte) []byte {
	message, fields, more := bytes.Cut(line, tab)
	dst = append(dst, message...)
	for more {
		var field []byte
		field, fields, more = bytes.Cut(fields, tab)
		if at, _, _ := bytes.Cut(field, []byte("=")); !t.ignores(message, at) {
			dst = append(append(dst, '\t'), field...)
		}
	}
	return dst
}
