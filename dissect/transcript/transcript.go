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
	"strings"

	"opscope/dissect/jsonscan"
)

// Transcript is what was said in one capture. The zero Transcript is empty; Ignore may be
// set before the first line is written.
type Transcript struct {
	Ignore []string // fields that are left out, as fields or MESSAGE.field, with * and ?

	lanes    map[string][]Line // what one side of a session said over one transport, by "session 1 wulfram c2s tcp"
	sessions map[int]int       // numbers in the order in which they come, by those of the capture
	ignored  map[string]bool   // what Ignore says of fields, by message and path
	rest     []byte            // the start of a line
	scan     jsonscan.Scanner  // of a line
	said     said              // by it
	path     []byte            // scratch, of a field
	key      []byte            // scratch, of ignored
	name     []byte            // scratch, of a lane
}

// Line is one message.
type Line struct {
	Text    string // message and fields, with tabs between them
	Packets []int  // that carry it; nil where only a text is known
}

// Message returns the name of the message.
func (l *Line) Message() string {
	name, _, _ := strings.Cut(l.Text, "\t")
	return name
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

// add adds what was said.
func (t *Transcript) add() {
	r := &t.said
	if t.sessions == nil {
		t.sessions, t.lanes = map[int]int{}, map[string][]Line{}
	}
	number, known := t.sessions[r.session]
	if !known {
		number = len(t.sessions) + 1
		t.sessions[r.session] = number
	}
	name := strconv.AppendInt(append(t.name[:0], "session "...), int64(number), 10)
	for _, part := range [][]byte{r.protocol, r.dir, r.transport} {
		if len(part) > 0 {
			name = append(append(name, ' '), part...)
		}
	}
	t.name = name
	t.lanes[string(name)] = append(t.lanes[string(name)], Line{string(r.text), slices.Clone(r.packets)})
}

// Print writes the transcript as text: a heading for each lane, then its lines.
func (t *Transcript) Print(w io.Writer) error {
	b := bufio.NewWriter(w)
	for i, name := range slices.Sorted(maps.Keys(t.lanes)) {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("== " + name + "\n")
		for _, line := range t.lanes[name] {
			b.WriteString(line.Text + "\n")
		}
	}
	return b.Flush()
}

// maxLine is longer than any record's line: a frame of 64 KiB, in hex.
const maxLine = 1 << 20

// Parse reads a transcript that Print has written. What is now ignored is left out of it.
func Parse(r io.Reader, ignore []string) (*Transcript, error) {
	t := &Transcript{Ignore: ignore, lanes: map[string][]Line{}}
	lane := ""
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	for n := 1; s.Scan(); n++ {
		switch line := s.Text(); {
		case line == "":
		case strings.HasPrefix(line, "== "):
			lane = line[3:]
		case lane == "":
			return nil, fmt.Errorf("line %d: want a heading, such as == session 1 wulfram c2s tcp", n)
		default:
			t.lanes[lane] = append(t.lanes[lane], Line{Text: t.filtered(line)})
		}
	}
	return t, s.Err()
}

func (t *Transcript) filtered(line string) string {
	items := strings.Split(line, "\t")
	message, kept := []byte(items[0]), items[:1]
	for _, item := range items[1:] {
		if at, _, _ := strings.Cut(item, "="); !t.ignores(message, []byte(at)) {
			kept = append(kept, item)
		}
	}
	return strings.Join(kept, "\t")
}
